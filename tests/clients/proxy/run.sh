#!/usr/bin/env bash
# A testnet behind nginx, with the configuration of docs/access.md. Needs a release build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
. ../../../.ci/packages.sh
PATH=$PATH:/usr/sbin
command -v nginx >/dev/null || packages nginx-light
node --test proxy.test.mjs
