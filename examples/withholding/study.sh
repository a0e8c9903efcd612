#!/bin/sh
# Plays the study and writes gains.csv, intervals.csv and figure.svg into this folder; everything else goes into out/.
# Needs dposlab on PATH, and Python with numpy, scipy and matplotlib (PYTHON names another one).
# `./study.sh again` then repeats each sweep from its folder alone.
set -eu
cd "$(dirname "$0")"
PYTHON=${PYTHON:-python3}

if [ "${1:-}" = again ]; then
    for folder in out/sweeps/*; do
        dposlab sweep "$folder"
    done
    exit
fi

rm -rf out
mkdir -p out/sweeps
# name, seeds, values set
while read -r name seeds sets; do
    # shellcheck disable=SC2086 # the values hold no spaces, and each is an argument
    dposlab sweep withholding.toml --seeds "$seeds" $sets \
        --vary 'fault[0].delegates=["genesis_1"],["genesis_1","genesis_2"]' \
        --compare --out "out/sweeps/$name" > "out/$name.txt"
    echo "$name: $(head -n 1 "out/$name.txt")"
done <<'PROTOCOLS'
reference 0..60 --set rules.base=reference
solar 0..60 --set rules.base=solar
tron 0..60 --set rules.base=tron
lisk 0..60 --set rules.base=lisk
eos 0..12 --set rules.base=eos
eos-short-turns 0..60 --set rules.base=eos --set rules.ledger.slots_a_turn=1
PROTOCOLS
"$PYTHON" gains.py
