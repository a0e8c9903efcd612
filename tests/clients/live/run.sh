#!/usr/bin/env bash
# The live page and the explorer that `dposlab up` serves, used in Chromium. Needs a release build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
if ! command -v chromium >/dev/null; then
    apt-get update -q >&2 && apt-get install -yq --no-install-recommends chromium >&2
fi
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm test
