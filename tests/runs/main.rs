//! Whole runs and what holds the house together: one binary, a module an area.

mod determinism;
mod layering;
mod ledger_laws;
mod missed_slots;
mod recorded_chain;
mod support;
