//! The `dposlab` binary: parses arguments and calls the library.

use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    dposlab::cli::Cli::parse().run()
}
