#!/usr/bin/env bash
# Each planted fault that the search does not find is noticed by a named test (noticed.txt): it passes without the fault and
# fails with it. Builds the tests in the copy that build.sh makes. The last line is `N passed, M failed`.
set -euo pipefail
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r ../figures/requirements.txt
PYTHONDONTWRITEBYTECODE=1 "$folder/venv/bin/python" measure.py --hold
