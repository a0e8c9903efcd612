//! Any bytes on a connection to the API: never a panic, and never an answer that the server is at fault.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| dposlab::cli::fuzz::http(bytes));
