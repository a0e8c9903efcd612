//! The protocol against vectors, laws and broken input: one binary, a module for each area.

#[path = "protocol/edges.rs"]
mod edges;
#[path = "protocol/refusals.rs"]
mod refusals;
#[path = "protocol/samples.rs"]
mod samples;
#[path = "protocol/support.rs"]
mod support;

#[path = "protocol/allocations.rs"]
mod allocations;
#[path = "protocol/laws.rs"]
mod laws;
#[path = "protocol/memory.rs"]
mod memory;
#[path = "protocol/recorded.rs"]
mod recorded;
#[path = "protocol/vectors.rs"]
mod vectors;
