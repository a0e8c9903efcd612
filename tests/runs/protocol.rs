//! The protocol against vectors, laws and broken input: a module for each area.

mod edges;
mod refusals;
mod samples;
mod support;

mod allocations;
mod formulas;
mod laws;
mod memory;
mod recorded;
mod vectors;
