#!/usr/bin/env bash
# The Python package: built from the sources, installed from the wheel into an empty environment, tested there.
# DPOSLAB_WHEELS names the folder of a wheel that is there already.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
root=$(cd ../../.. && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The package finds its own program.
unset DPOSLAB_BIN
export PYTHONDONTWRITEBYTECODE=1
pip() { "$folder/$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}"; }

echo "the wheel, as pip makes it from the checkout"
wheels=${DPOSLAB_WHEELS:-$folder/wheels}
[ -d "$wheels" ] || bash wheel.sh "$wheels"
wheel=$(ls "$wheels"/dposlab-*.whl)

echo "the first result in a fresh environment"
python3 -m venv "$folder/venv"
cp "$root/scenarios/missed-slots.toml" "$folder/first.toml"
begin=$(date +%s%N)
pip venv "$wheel"
(cd "$folder" && venv/bin/python -c 'import dposlab; print(dposlab.run("first.toml", seed=7))')
took=$((($(date +%s%N) - begin) / 1000000))
echo "after $took ms"

echo "types"
pip venv -r requirements.txt
(cd "$root/python" && "$folder/venv/bin/mypy" --strict --python-version 3.10 --cache-dir "$folder/mypy" src/dposlab)

echo "tests"
cp -r "$root/python/tests" "$folder/tests"
(cd "$folder/tests" && DPOSLAB_SOURCES=$root ../venv/bin/python -m pytest -q -n 2 -p no:cacheprovider .)

echo "a wheel of a program that is there has the same files, but for the bill of the program"
python3 "$root/release/wheel.py" --program "$folder/venv/bin/dposlab" --out "$folder/packed"
python3 "$here/wheels.py" "$wheel" "$folder"/packed/dposlab-*.whl
python3 -m venv "$folder/other"
pip other "$folder"/packed/dposlab-*.whl
(cd "$folder" && other/bin/python -c 'import dposlab; print(dposlab.run("first.toml", seed=7))')

echo "the examples of the README and docs/python.md"
(cd "$folder" && venv/bin/python "$here/snippets.py" "$root")

echo "the notebook"
(cd "$root/examples" && "$folder/venv/bin/python" "$here/notebook.py" latency.ipynb)

echo "the lines of docs/clusters.md"
(cd "$folder" && venv/bin/python "$here/clusters.py" "$root")
