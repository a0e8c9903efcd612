#!/bin/sh
# Signs every type with the reference library and with ours, and compares. The last line is `N passed, N failed`.
set -eu
cd "$(dirname "$0")"
npm ci --no-audit --no-fund --loglevel=error >&2
(cd ../../.. && cargo build --quiet --example transaction_tool)
exec node check.js
