//! Any bytes as a file to explain, a scenario or a recorded session: never a panic, whether it is refused or explained.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| dposlab::cli::fuzz::explained(bytes));
