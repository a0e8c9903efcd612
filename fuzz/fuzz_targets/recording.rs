//! Any bytes as a recorded session: never a panic, whether it is refused or played again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| dposlab::cli::fuzz::recording(bytes));
