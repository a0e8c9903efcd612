#!/usr/bin/env bash
# The Python package: built from the sources, installed from the wheel into an empty environment, tested there.
# DPOSLAB_WHEELS names the folder of a wheel that is there already, and DPOSLAB_BIN a program whose wheel the tests take.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
root=$(cd ../../.. && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The package finds its own program.
program=$(realpath "${DPOSLAB_BIN:-}" 2>/dev/null || true)
unset DPOSLAB_BIN
export PYTHONDONTWRITEBYTECODE=1
pip() { "$folder/$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}"; }

echo "the wheel, as pip makes it from the checkout"
wheels=${DPOSLAB_WHEELS:-$folder/wheels}
[ -d "$wheels" ] || bash wheel.sh "$wheels"
built=$(ls "$wheels"/dposlab-*.whl)

echo "a wheel of a program that is there has the same files, but for the bill of the program"
if [ -z "$program" ]; then
    python3 -m zipfile -e "$built" "$folder/opened"
    program=$(ls "$folder"/opened/dposlab-*.data/scripts/dposlab)
    chmod +x "$program"
fi
python3 "$root/release/wheel.py" --program "$program" --out "$folder/packed"
python3 "$here/wheels.py" "$built" "$folder"/packed/dposlab-*.whl
# From here on its program, which may be one that is optimised.
wheel=$(ls "$folder"/packed/dposlab-*.whl)

echo "the first result in a fresh environment"
python3 -m venv "$folder/venv"
cp "$root/scenarios/missed-slots.toml" "$folder/first.toml"
begin=$(date +%s%N)
pip venv "$wheel"
(cd "$folder" && venv/bin/python -c 'import dposlab; print(dposlab.run("first.toml", seed=7))' | tee first)
took=$((($(date +%s%N) - begin) / 1000000))
echo "after $took ms"

echo "types"
pip venv -r requirements.txt
(cd "$root/python" && "$folder/venv/bin/mypy" --strict --python-version 3.10 --cache-dir "$folder/mypy" src/dposlab)

echo "tests"
cp -r "$root/python/tests" "$folder/tests"
(cd "$folder/tests" && DPOSLAB_SOURCES=$root ../venv/bin/python -m pytest -q -n 2 -p no:cacheprovider .)

echo "the wheel that pip made has a program that plays the same"
python3 -m venv "$folder/other"
pip other "$built"
(cd "$folder" && other/bin/python -c 'import dposlab; print(dposlab.run("first.toml", seed=7))') | diff "$folder/first" -
echo "the examples of the README and docs/python.md"
(cd "$folder" && venv/bin/python "$here/snippets.py" "$root")

echo "the notebooks"
(cd "$root/examples" && "$folder/venv/bin/python" "$here/notebook.py" latency.ipynb)
(cd "$root/examples/withholding" && "$folder/venv/bin/python" "$here/notebook.py" gains.ipynb)

echo "the lines of docs/clusters.md"
(cd "$folder" && venv/bin/python "$here/clusters.py" "$root")
