#!/usr/bin/env bash
# What can be known of the Dockerfile without a daemon.
#
#   release/check-dockerfile.sh          each file that it copies is there and not ignored, cargo can read the package from these
#                                        files alone, all files that the program includes are among them, and what CMD says is a
#                                        testnet. With hadolint on the PATH its findings, too. Needs a build, or DPOSLAB_BIN
#   release/check-dockerfile.sh --build  builds the static program as well, from what is copied and by the command of the
#                                        Dockerfile, and starts it in a folder that holds nothing else, as the image does. Needs
#                                        root, `rustup target add x86_64-unknown-linux-musl` and musl-gcc (musl-tools)
set -euo pipefail
cd "$(dirname "$0")/.."
scenario=$PWD/scenarios/missed-slots.toml
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
user=$(sed -n 's/^USER //p' Dockerfile | tail -1)
words=$(sed -n 's/^CMD \[\(.*\)\]$/\1/p' Dockerfile | tr -d '",')

sources_suffice() {
    # COPY SOURCE... PLACE, but for what comes from another stage.
    sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' Dockerfile | tr ' ' '\n' | while read -r source; do
        test -e "$source" || { echo "Dockerfile: COPY $source: there is no such file" >&2 && exit 1; }
        grep -qx "!$source" .dockerignore || { echo ".dockerignore keeps $source from the Dockerfile" >&2 && exit 1; }
        cp -r "$source" "$context/"
    done
    (cd "$context" && cargo metadata --locked --offline --no-deps --format-version 1 > /dev/null)
    # Tests, tests.rs among them, and documentation may include more; they are not built there.
    grep -rnoE '^[^#]*include_(str|bytes)!\("[^"]+"\)' "$context/src" --include='*.rs' --exclude=tests.rs | while IFS=: read -r file line found; do
        included=$(dirname "$file")/$(sed 's/.*("\(.*\)")/\1/' <<< "$found")
        tests=$(grep -n -m1 '^#\[cfg(test)\]' "$file" | cut -d: -f1 || true)
        [ -e "$included" ] || [ "$line" -gt "${tests:-$line}" ] || { echo "$file:$line includes what is not copied" >&2 && exit 1; }
    done
    version=$(sed -n 's/^FROM rust:\([0-9.]*\)-.*/\1/p' Dockerfile)
    grep -q "^rust-version = \"$version\"$" Cargo.toml || { echo "Dockerfile: found Rust $version, not that of Cargo.toml" >&2 && exit 1; }
    ! grep -qE '^(root|0)?(:|$)' <<< "$user"
    # What the README has people type is what stands here.
    sed -n '/^docker /p' README.md | while read -r line; do
        grep -qxF "#   $line" Dockerfile || { echo "README.md: found '$line', which the Dockerfile does not name" >&2 && exit 1; }
    done
}

# ready FILE: waits for it to have a line, and answers the port of the API in it.
ready() {
    for _ in $(seq 200); do [ -s "$1" ] && break || sleep 0.05; done
    sed -n 's|.*"url":"http://[^:]*:\([0-9]*\)/api".*|\1|p' "$1" | head -1
}

# CMD, on another port, with the token of the comment.
command_is_a_testnet() {
    local program
    program=$(realpath "${DPOSLAB_BIN:-target/debug/dposlab}")
    echo "a token of sixteen or more" | tr ' ' - > "$context/token"
    # shellcheck disable=SC2086 # words are what is wanted
    "$program" $words --port 0 --lab token --lab-token "$context/token" --ready-file "$context/ready.json" --exit-with-parent > /dev/null &
    local testnet=$! port
    port=$(ready "$context/ready.json")
    asked() { curl -s -o /dev/null -w '%{http_code}' "$@" "http://127.0.0.1:$port/lab"; }
    test "$(asked)" = 401
    test "$(asked -H "authorization: Bearer $(cat "$context/token")")" = 200
    kill -INT $testnet && wait $testnet
}

# The command of the Dockerfile, for the target that its image has.
static_program() {
    local target command built=${CARGO_TARGET_DIR:-$context/target}
    target=$(uname -m)-unknown-linux-musl
    command=$(sed -n 's/^RUN \(cargo build[^&]*\).*/\1/p' Dockerfile)
    (cd "$context" && CARGO_BUILD_TARGET=$target CARGO_TARGET_DIR=$built "CC_${target//-/_}=musl-gcc" $command >&2)
    strip "$built/$target/release/dposlab"
    echo "$built/$target/release/dposlab"
}

# alone WORDS: the program in a folder with nothing else, as the user of the Dockerfile.
alone() { exec chroot --userspec="$user" --groups= "$context/root" /dposlab "$@"; }

static_program_works() {
    case $(ldd "$1" 2>&1) in *"statically linked"* | *"not a dynamic executable"*) ;; *) echo "$1 is not static" >&2 && exit 1 ;; esac
    mkdir -m 755 "$context/root" && chmod 755 "$context" && install -m 755 "$1" "$context/root/dposlab"
    (alone --version)
    # shellcheck disable=SC2086
    (alone $words --port 0 --json) > "$context/up.jsonl" &
    local testnet=$! port
    port=$(ready "$context/up.jsonl")
    curl -sf "http://127.0.0.1:$port/api/node/configuration" > /dev/null
    grep -qxE "Uid:(\s${user%:*}){4}" "/proc/$testnet/status"
    grep -qx 'CapEff:\s*0*' "/proc/$testnet/status"
    # Nothing but the program is mapped: no library was found anywhere.
    test "$(awk '$6 ~ "^/" { print $6 }' "/proc/$testnet/maps" | sort -u)" = "$context/root/dposlab"
    kill -INT $testnet && wait $testnet
    # The one file it needs for a run.
    install -m 644 "$scenario" "$context/root/s.toml"
    (alone run s.toml --seed 7) | tail -1
    echo "the static program of $(stat -c %s "$1") bytes works alone"
}

sources_suffice
case ${1:-} in
'') command_is_a_testnet ;;
--build)
    [ "$(id -u)" = 0 ] || { echo "release/check-dockerfile.sh --build: needs root, for chroot" >&2 && exit 1; }
    command -v musl-gcc > /dev/null || { echo "release/check-dockerfile.sh --build: needs musl-gcc: apt-get install musl-tools" >&2 && exit 1; }
    static_program_works "${STATIC_PROGRAM:-$(static_program)}"
    ;;
*) echo "release/check-dockerfile.sh: found '$1', allowed is --build" >&2 && exit 2 ;;
esac
if command -v hadolint > /dev/null; then hadolint Dockerfile; fi
echo "the Dockerfile holds as far as can be seen without a daemon"
