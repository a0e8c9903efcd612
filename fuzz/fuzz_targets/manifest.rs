//! Any bytes as a sweep's manifest, and as its rows: never a panic, whether they are refused or become results.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    dposlab::cli::fuzz::manifest(bytes, folder.path());
});
