#!/usr/bin/env bash
# What docs/operating.md says of a testnet for others, tried with its own files. Needs a release build, or DPOSLAB_BIN.
# systemd-analyze, promtool and logrotate check their files where they are installed.
set -euo pipefail
cd "$(dirname "$0")"
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 PATH=$PATH:/usr/sbin
missing=()
for program in nginx:nginx-light caddy:caddy openssl:openssl; do
    command -v "${program%:*}" > /dev/null || missing+=("${program#*:}")
done
if [ ${#missing[@]} -gt 0 ]; then
    # Nothing is to be started: the tests run them themselves.
    apt-get update -q >&2 && apt-get install -yq --no-install-recommends "${missing[@]}" >&2
fi
PYTHONDONTWRITEBYTECODE=1 python3 -m unittest -v operating
