pub mod actors;
pub mod api;
pub mod ledger;
pub mod protocol;
pub mod sim;
