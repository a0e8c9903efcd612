#!/bin/sh
# Signs every type with the reference library and with ours, and compares. The last line is `N passed, N failed`.
set -eu
cd "$(dirname "$0")"
npm ci --no-audit --no-fund --loglevel=error >&2
# The tests built it. Where they did not, or long ago, it is built now.
tool=${CARGO_TARGET_DIR:-../../../target}/debug/examples/transaction_tool
[ -n "${CI_BUILT:-}" ] && [ -x "$tool" ] || (cd ../../.. && cargo build --quiet --example transaction_tool)
exec node check.js
