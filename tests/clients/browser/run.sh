#!/usr/bin/env bash
# A web page of another origin, in Chromium, tries to steer a running testnet. Needs a release build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
if ! command -v chromium >/dev/null; then
    apt-get update -q >&2 && apt-get install -yq --no-install-recommends chromium >&2
fi
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm test
