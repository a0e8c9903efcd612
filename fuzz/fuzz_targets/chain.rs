//! Any text as a chain, or as the files of a network with their chain: never a panic, whether it is refused or played on.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| dposlab::cli::fuzz::chain(bytes));
