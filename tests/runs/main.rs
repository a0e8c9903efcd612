//! Whole runs and what holds the house together: one binary, a module an area.

mod bad_input;
mod checking;
mod crypto_modes;
mod determinism;
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
mod searching;
mod support;
mod sweeps;
mod testnet;
mod webhooks;
mod workload;
