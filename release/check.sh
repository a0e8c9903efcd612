#!/usr/bin/env bash
# A release made twice is the same byte for byte, and what is in it works.
#
#   release/check.sh          packs one program twice, in two folders, under two umasks. Needs a build, or DPOSLAB_BIN; CI runs it
#   release/check.sh --full   makes the release of the commit twice, in two clones, from nothing: compiles each time and compares
#                             all artefacts. Takes two release builds; arguments that follow are those of release/build.sh
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# What is compared: two places, of paths with other lengths and depths, made by somebody with other habits.
places=(one two/deeper)

# pack PLACE UMASK: the sources of what is packed, without those of the library, and one program.
pack() {
    umask "$2"
    mkdir -p "$folder/$1"
    cp -a Cargo.toml Cargo.lock LICENSE CHANGELOG.md release scenarios "$folder/$1"
    mkdir "$folder/$1/python" && cp -a python/{pyproject.toml,README.md,src} "$folder/$1/python"
    mkdir "$folder/$1/js" && cp -a js/{package.json,package-lock.json,tsconfig.json,pack.mjs,README.md,src} "$folder/$1/js"
    ln -s "$PWD/js/node_modules" "$folder/$1/js/node_modules"
    (cd "$folder/$1" && SOURCE_DATE_EPOCH=1700000000 bash release/build.sh --binary "$program" --out artefacts)
}

# make PLACE UMASK LANGUAGE ZONE ARGUMENTS...: a clone of the commit, and all of a release from it.
make() {
    umask "$2"
    git clone --quiet --no-hardlinks "$root" "$folder/$1"
    git -C "$folder/$1" checkout --quiet "$commit"
    (cd "$folder/$1" && LANG=$3 TZ=$4 bash release/build.sh --out artefacts "${@:5}")
    # Two of them take gigabytes.
    rm -rf "$folder/$1/target"
}

# The archive, unpacked by somebody.
archive_works() {
    tar xzf dposlab-*.tar.gz && cd dposlab-*/
    ./dposlab run scenarios/healthy.toml > /dev/null
    for page in dposlab dposlab-up; do test -s "man/$page.1"; done
    python3 "$root/release/links.py" check .
    bash -n completions/dposlab.bash
}

# The wheel in an empty environment, without a compiler: the first result, and how long that took.
wheel_works() {
    python3 -m venv "$folder/venv"
    local begin=$EPOCHREALTIME
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check ./*.whl
    PATH=$folder/venv/bin "$folder/venv/bin/python" -c 'import dposlab, sys; print(dposlab.run(sys.argv[1], seed=7))' \
        "$root/scenarios/missed-slots.toml"
    first_result "the wheel" "$begin"
}

# The npm packages in an empty folder; nothing is fetched.
npm_packages_work() {
    mkdir "$folder/npm" && echo '{ "type": "module" }' > "$folder/npm/package.json"
    local begin=$EPOCHREALTIME
    npm install --prefix "$folder/npm" --offline --cache "$folder/cache" --no-audit --no-fund --loglevel=error ./*.tgz
    (cd "$folder/npm" && node --eval 'import("dposlab").then(async ({ Testnet }) => {
        const testnet = await Testnet.start();
        console.log(await testnet.advance(10));
        await testnet.stop();
    })')
    first_result "the npm packages" "$begin"
}

first_result() {
    local took=$(((${EPOCHREALTIME/./} - ${2/./}) / 1000))
    echo "the first result from $1: after $took ms"
    test "$took" -lt 10000
}

full() {
    export RELEASE_TOOLS=${RELEASE_TOOLS:-$root/target/release-tools}
    # The folder may go on to another one meanwhile.
    commit=$(git rev-parse HEAD)
    [ -z "$(git status --porcelain)" ] || echo "what is not committed is not compared" >&2
    (make "${places[0]}" 022 C UTC "$@")
    (make "${places[1]}" 077 en_US.UTF-8 Asia/Kathmandu "$@")
    (cd "$folder/${places[1]}/artefacts" && cat SHA256SUMS)
    diff -r "$folder/${places[0]}/artefacts" "$folder/${places[1]}/artefacts"
    cd "$folder/${places[0]}/artefacts"
    sha256sum --check --strict SHA256SUMS
    unset DPOSLAB_BIN
    (archive_works)
    wheel_works
    npm_packages_work
    echo "two builds of $commit are the same, and work"
}

packed() {
    program=$(realpath "${DPOSLAB_BIN:-target/debug/dposlab}")
    unset DPOSLAB_BIN
    # As build.sh asks, which must not have to fetch anything through the link above.
    [ js/node_modules/.package-lock.json -nt js/package-lock.json ] ||
        npm ci --prefix js --ignore-scripts --no-audit --no-fund --loglevel=error
    (pack "${places[0]}" 022)
    (pack "${places[1]}" 077)
    diff -r "$folder/${places[0]}/artefacts" "$folder/${places[1]}/artefacts"
    cd "$folder/${places[0]}/artefacts"
    sha256sum --check --quiet SHA256SUMS
    (archive_works)
    # The suite of the Python package installs such a wheel.
    echo "a release packed twice is the same, and works"
}

case ${1:-} in
'') packed ;;
--full) shift && full "$@" ;;
*) echo "release/check.sh: found '$1', allowed is --full" >&2 && exit 2 ;;
esac
