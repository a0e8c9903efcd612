#!/bin/sh
# backup.sh DIR COPY: copies the folder of a testnet while it runs. COPY must not be there yet.
#
# Checkpoints and bases come first: the log that is copied after them holds all that they need. The index is left out, since a
# start makes it again from the log. The record that was being written is cut off by the first start from the copy.
set -eu
mkdir -m 700 "$2"
copy=$(realpath "$2")
cd "$1"
# shellcheck disable=SC2046 # words are what is wanted: the names hold no blanks
small() { cp -a network.json $(ls -d checkpoint-* base-* webhooks-* 2> /dev/null || true) "$copy/"; }
# The testnet may have replaced a checkpoint between ls and cp. Then the next try finds the new one.
small 2> /dev/null || small
cp -a log "$copy/"
