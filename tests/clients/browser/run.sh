#!/usr/bin/env bash
# A web page of another origin, in Chromium, tries to steer a running testnet. Needs a release build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
. ../../../.ci/packages.sh
command -v chromium >/dev/null || packages chromium
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm test
