#!/usr/bin/env bash
# What docs/operating.md says of a testnet for others, tried with its own files. Needs a release build, or DPOSLAB_BIN.
# systemd-analyze and promtool check their files where they are installed.
set -euo pipefail
cd "$(dirname "$0")"
. ../../../.ci/packages.sh
export PATH=$PATH:/usr/sbin
missing=()
for program in nginx:nginx-light caddy:caddy openssl:openssl buildah:buildah logrotate:logrotate; do
    command -v "${program%:*}" > /dev/null || missing+=("${program#*:}")
done
[ ${#missing[@]} -eq 0 ] || packages "${missing[@]}"
PYTHONDONTWRITEBYTECODE=1 python3 -m unittest -v operating
