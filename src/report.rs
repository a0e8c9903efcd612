//! What a run leaves behind: who owned, forged and missed which slots, as a table for people and JSON for scripts.

pub mod rounds;
pub mod table;

pub use rounds::{DelegateSlots, Gap, RoundReport, Rounds};
