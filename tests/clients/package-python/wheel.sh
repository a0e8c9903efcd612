#!/usr/bin/env bash
# Makes the wheel in a folder, as pip makes it from the checkout: wheel.sh FOLDER
#
# It has the program of `cargo build`, so that the folder of other builds is used; a release makes its own.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
MATURIN_PEP517_ARGS="--profile dev --strip --locked" "$tools/bin/pip" wheel --quiet --disable-pip-version-check --no-deps \
    --wheel-dir "$1" "$root/python"
