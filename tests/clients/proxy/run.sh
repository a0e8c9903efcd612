#!/usr/bin/env bash
# A testnet behind nginx, with the configuration of docs/access.md. Needs a release build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
if [ ! -x /usr/sbin/nginx ] && ! command -v nginx >/dev/null; then
    # Nothing is to be started: the tests run it themselves.
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    apt-get update -q >&2 && apt-get install -yq --no-install-recommends nginx-light >&2
fi
PATH=$PATH:/usr/sbin node --test proxy.test.mjs
