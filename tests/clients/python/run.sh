#!/usr/bin/env bash
# The reference's PyPI client against a running testnet. Needs a release build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
PYTHONDONTWRITEBYTECODE=1 "$folder/venv/bin/python" suite.py
PYTHONDONTWRITEBYTECODE=1 "$folder/venv/bin/python" snippets.py
