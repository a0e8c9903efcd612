#!/usr/bin/env bash
# Holds the API against its own description: schemathesis asks a running testnet what the description allows, and what
# it does not, in both dialects. Needs a release build, or DPOSLAB_BIN; EXAMPLES is how many requests an operation gets.
set -euo pipefail
cd "$(dirname "$0")"
binary=${DPOSLAB_BIN:-../../../target/release/dposlab}
folder=$(mktemp -d)
running=
trap 'test -z "$running" || kill "$running" 2>/dev/null; rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
for dialect in documented core-2.6; do
    "$binary" up --json --port 0 --pace manual --seed 14 --dialect "$dialect" >"$folder/out" &
    running=$!
    url=
    for _ in $(seq 200); do
        url=$(sed -n 's/.*"event":"ready".*"url":"\([^"]*\)".*/\1/p' "$folder/out")
        test -z "$url" || break
        sleep 0.1
    done
    test -n "$url" || { echo "dposlab up is not ready after 20 s" >&2; exit 1; }
    # Something to look at: blocks, and what the first ones allow.
    curl -sf "${url%/api}/lab/advance" -H 'content-type: application/json' -d '{"slots": 120}' >/dev/null
    echo "schemathesis, dialect $dialect"
    # Bounded in requests and in time; a fixed seed, so that what it finds can be found again.
    asked() {
        timeout 900 "$folder/venv/bin/schemathesis" --config-file schemathesis.toml run "$url/openapi.json" --seed 1 "$@"
    }
    asked --exclude-path-regex "^/(lab|chains)" --max-examples "${EXAMPLES:-6}"
    # The lab in one dialect, for it has none. Streams do not end, and slots and pace would play for hours.
    test "$dialect" != documented ||
        asked --include-path-regex "^/lab" --exclude-path-regex "^/lab/(events|advance|pace)" --max-examples 6
    kill -INT "$running"
    wait "$running"
    running=
done
echo "2 passed, 0 failed"
