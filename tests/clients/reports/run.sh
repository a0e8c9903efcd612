#!/usr/bin/env bash
# The pages that `run --out` and `sweep --out` leave, opened from the disk in Chromium, and the files of `figures`. Needs a release build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
. ../../../.ci/packages.sh
command -v chromium >/dev/null || packages chromium
# The type that files of figures have, and a second program that shows them.
fc-list : family | grep -q '^Liberation Sans$' && command -v rsvg-convert >/dev/null || packages fontconfig fonts-liberation librsvg2-bin
npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
npm test
