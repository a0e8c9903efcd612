//! Any text as a scenario: never a panic, and what is accepted says the same when it is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| dposlab::cli::fuzz::scenario(bytes));
