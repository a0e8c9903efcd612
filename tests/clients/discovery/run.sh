#!/usr/bin/env bash
# The reference's npm library for the discovery of nodes against running testnets. Needs a release build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm test
