//! What must hold of every chain, looked at from the outside.
//!
//! Each invariant is a named value with its source, so that a failure can say which one broke and where.

pub mod assertions;
pub mod invariants;

pub use assertions::judge;
pub use invariants::{INVARIANTS, Invariant, Violation, check_all};
