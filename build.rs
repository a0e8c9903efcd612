//! Tells the program what it was built from: `dposlab run --out` and `sweep --out` write it down (`src/report/provenance.rs`).
//!
//! The commit is that of `DPOSLAB_COMMIT`, or of git where that is there. Only an optimised build asks git, so that a commit alone makes no
//! other build compile anything again.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-env-changed=DPOSLAB_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let profile = env::var("PROFILE").unwrap_or_default();
    let commit = env::var("DPOSLAB_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = commit.or_else(|| if profile == "release" { of_git() } else { None });
    tell("COMMIT", commit.as_deref().unwrap_or("unknown"));
    tell("PROFILE", &profile);
    tell("OPTIMISATION", &env::var("OPT_LEVEL").unwrap_or_default());
    tell("TARGET", &env::var("TARGET").unwrap_or_default());
}

fn tell(name: &str, value: &str) {
    println!("cargo::rustc-env=DPOSLAB_BUILT_{name}={value}");
}

/// The commit of these sources, and whether they differ from it.
fn of_git() -> Option<String> {
    // Sources in a repository of others, such as a packed crate in a folder of vendored ones, have none.
    if !Path::new(".git").exists() {
        return None;
    }
    for place in [".git/HEAD", ".git/logs/HEAD", "src", "crates", "Cargo.toml", "Cargo.lock"] {
        if Path::new(place).exists() {
            println!("cargo::rerun-if-changed={place}");
        }
    }
    let described =
        Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]).output();
    let described = described.ok().filter(|output| output.status.success())?;
    let commit = String::from_utf8(described.stdout).ok()?.trim().to_owned();
    let is_commit = |letter: char| letter.is_ascii_hexdigit() || "-dirty".contains(letter);
    (commit.len() >= 40 && commit.chars().all(is_commit)).then_some(commit)
}
