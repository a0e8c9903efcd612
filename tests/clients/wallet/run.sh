#!/usr/bin/env bash
# A wallet's own test against a testnet of its own. Needs a release build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
# Native parts of the packages are optional; their JavaScript does the same.
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
# Without native parts, the packages must be told to use their JavaScript.
NODE_BACKEND=js npm test
