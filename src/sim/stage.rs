//! The two stages that host actors. Both give the same events in the same order.

pub mod inline;
pub mod ractor;
