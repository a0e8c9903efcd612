//! Any bytes as the folder of a testnet that is to go on: never a panic, whether it is refused or goes on.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    dposlab::cli::fuzz::data_folder(bytes, folder.path());
});
