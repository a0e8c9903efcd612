pub mod actors;
pub mod ledger;
pub mod protocol;
