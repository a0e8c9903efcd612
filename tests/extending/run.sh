#!/usr/bin/env bash
# Applies every patch of this folder to one copy of the tree and has the compiler check it: docs/extending.md says what they add.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
copy=$root/target/extended
rm -rf "$copy"
mkdir -p "$copy"
cd "$root"
cp -r Cargo.toml Cargo.lock README.md src crates benches tests docs scenarios "$copy"
cd "$copy"
# Otherwise git would take the checkout around the copy for what is patched, and pass over all files.
git init --quiet
for patch in "$root"/tests/extending/*.patch; do
    git apply -C1 "$patch" || { echo "$patch does not apply: bring it up to date" >&2; exit 1; }
done
CARGO_TARGET_DIR=$root/target cargo check --lib --locked
rm -rf "$copy"
