#!/usr/bin/env bash
# What can be known of the Dockerfile without a daemon: each file that it copies is there and not ignored, cargo can read the
# package from these files alone, all files that the program includes are among them, and what CMD says is a testnet. With
# hadolint on the PATH its findings, too. Needs a build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${DPOSLAB_BIN:-target/debug/dposlab}")
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

# COPY SOURCE... PLACE, but for what comes from another stage.
sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' Dockerfile | tr ' ' '\n' | while read -r source; do
    test -e "$source" || { echo "Dockerfile: COPY $source: there is no such file" >&2 && exit 1; }
    grep -qx "!$source" .dockerignore || { echo ".dockerignore keeps $source from the Dockerfile" >&2 && exit 1; }
    cp -r "$source" "$context/"
done
(cd "$context" && cargo metadata --locked --offline --no-deps --format-version 1 > /dev/null)
# Tests and documentation may include more; they are not built there.
grep -rnoE '^[^#]*include_(str|bytes)!\("[^"]+"\)' "$context/src" --include='*.rs' | while IFS=: read -r file line found; do
    included=$(dirname "$file")/$(sed 's/.*("\(.*\)")/\1/' <<< "$found")
    tests=$(grep -n -m1 '^#\[cfg(test)\]' "$file" | cut -d: -f1 || true)
    [ -e "$included" ] || [ "$line" -gt "${tests:-$line}" ] || { echo "$file:$line includes what is not copied" >&2 && exit 1; }
done
version=$(sed -n 's/^FROM rust:\([0-9.]*\)-.*/\1/p' Dockerfile)
grep -q "^rust-version = \"$version\"$" Cargo.toml || { echo "Dockerfile: found Rust $version, not that of Cargo.toml" >&2 && exit 1; }
! sed -n 's/^USER //p' Dockerfile | tail -1 | grep -qE '^(root|0)?(:|$)'

# CMD, on another port, with the token of the comment.
echo "a token of sixteen or more" | tr ' ' - > "$context/token"
words=$(sed -n 's/^CMD \[\(.*\)\]$/\1/p' Dockerfile | tr -d '",')
# shellcheck disable=SC2086 # words are what is wanted
"$program" $words --port 0 --lab token --lab-token "$context/token" --ready-file "$context/ready.json" --exit-with-parent > /dev/null &
testnet=$!
for _ in $(seq 200); do [ -e "$context/ready.json" ] && break || sleep 0.05; done
port=$(sed -n 's|.*"url":"http://[^:]*:\([0-9]*\)/api".*|\1|p' "$context/ready.json")
asked() { curl -s -o /dev/null -w '%{http_code}' "$@" "http://127.0.0.1:$port/lab"; }
test "$(asked)" = 401
test "$(asked -H "authorization: Bearer $(cat "$context/token")")" = 200
kill -INT $testnet && wait $testnet

if command -v hadolint > /dev/null; then hadolint Dockerfile; fi
echo "the Dockerfile holds as far as can be seen without a daemon"
