//! Any bytes as rows of a sweep that another machine hands over: never a panic, whether they are refused or become results.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    dposlab::cli::fuzz::handed(bytes, folder.path());
});
