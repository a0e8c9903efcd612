//! Whole runs and what holds the house together: one binary, a module an area.

mod bad_input;
mod checking;
mod crypto_modes;
mod determinism;
mod endings;
mod faults;
mod layering;
mod ledger_laws;
mod milestones;
mod missed_slots;
mod node;
mod pool;
mod pool_laws;
mod pool_refusals;
mod quirks;
mod readme;
mod recorded_chain;
mod replays;
mod reports;
mod scenarios;
mod support;
mod sweeps;
mod testnet;
mod tips;
mod webhooks;
mod workload;
