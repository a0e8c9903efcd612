#!/usr/bin/env bash
# The pages that `run --out` and `sweep --out` leave, opened from the disk in Chromium. Needs a release build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
. ../../../.ci/packages.sh
command -v chromium >/dev/null || packages chromium
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm test
