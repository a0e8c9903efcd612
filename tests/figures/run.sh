#!/usr/bin/env bash
# Computes every figure again from the raw trace, in Python and apart from the program, and compares: all scenarios, a
# hundred drawn ones, sweeps. Needs a release build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
PYTHONDONTWRITEBYTECODE=1 "$folder/venv/bin/python" suite.py
