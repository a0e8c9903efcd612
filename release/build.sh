#!/usr/bin/env bash
# Makes what a release consists of, from the commit that is checked out: docs/releasing.md. Two builds of one commit on one
# toolchain are equal byte for byte. A shell script, since all it does is call cargo, npm, maturin, tar and gzip.
#
#   release/build.sh [--profile NAME] [--out DIR] [--binary PATH]
#
#   --profile  release, if it is not given; optimised is built in half the time, for trying this script
#   --out      where the artefacts go; target/release-artefacts, if it is not given
#   --binary   packs this program and compiles nothing; then there is no wheel, whose packer compiles by itself
set -euo pipefail
cd "$(dirname "$0")/.."
# What is made must not depend on who makes it, where, or in which language.
umask 022
export LC_ALL=C TZ=UTC npm_config_audit=false npm_config_fund=false npm_config_loglevel=error

profile=release out=$PWD/target/release-artefacts program=
while [ $# -gt 0 ]; do
    case $1 in
    --profile) profile=$2 ;;
    --out) out=$(realpath -m "$2") ;;
    --binary) program=$(realpath "$2") ;;
    *) echo "release/build.sh: found '$1', allowed are --profile, --out and --binary" >&2 && exit 2 ;;
    esac
    shift 2
done

source release/compile.sh
step() { printf '==> release: %s\n' "$*"; }
skip() { printf '    left out: %s\n' "$*"; }

reproducible_flags
version=$(sed -n '/^\[package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
target=$(rustc -vV | sed -n 's/^host: //p')
name=dposlab-$version-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out" && mkdir -p "$out"

archive() {
    step "an archive: the program, its manual, completions of shells, scenarios"
    local folder=$work/$name
    mkdir "$folder"
    cp -r LICENSE README.md CHANGELOG.md scenarios "$folder"
    install -m 755 "$work/dposlab" "$folder/dposlab"
    "$work/dposlab" pages "$folder"
    tar --create --directory "$work" --format ustar --sort name --owner 0 --group 0 --numeric-owner \
        --mode u=rwX,go=rX --mtime "@$SOURCE_DATE_EPOCH" "$name" | gzip -n9 > "$out/$name.tar.gz"
}

npm_packages() {
    step "npm packages"
    # node_modules remembers which lock file it was made from.
    [ js/node_modules/.package-lock.json -nt js/package-lock.json ] || npm ci --prefix js --ignore-scripts
    local cpu=${target%%-*}
    case $cpu in x86_64) cpu=x64 ;; aarch64) cpu=arm64 ;; esac
    node js/pack.mjs --out "$out" --binary "linux-$cpu-${target##*-}=$work/dposlab"
}

wheel() {
    step "a wheel"
    [ -f python/pyproject.toml ] || { skip "there is no python/" && return; }
    [ -z "$compiled" ] && skip "nothing is compiled with --binary" && return
    command -v maturin > /dev/null || { echo "release/build.sh: needs maturin: pip install maturin" >&2 && exit 1; }
    (cd python && maturin build --profile "$profile" --target "$target" --locked --strip --out "$out")
    local search='import sys, zipfile; wheel = zipfile.ZipFile(sys.argv[1])
sys.exit(not any(sys.argv[2].encode() in wheel.read(name) for name in wheel.namelist()))'
    if python3 -c "$search" "$out"/*.whl "$PWD"; then
        echo "release/build.sh: the wheel names this folder; python/pyproject.toml needs rust = false in [tool.maturin.sbom]" >&2
        exit 1
    fi
}

bill_of_materials() {
    step "a bill of materials"
    command -v cargo-cyclonedx > /dev/null || { skip "needs cargo-cyclonedx: cargo install cargo-cyclonedx --locked" && return; }
    # It writes beside Cargo.toml, and names the folder.
    cargo cyclonedx --quiet --format json --spec-version 1.5 --target "$target" --override-filename sbom
    sed "s|file://$PWD|file:///dposlab|g" sbom.json > "$out/$name.cdx.json"
    rm sbom.json
}

compiled=
if [ -z "$program" ]; then
    step "compiled with profile $profile for $target"
    compiled=yes
    program=$(compile "$profile" "$target")
fi
strip -o "$work/dposlab" "$program"
archive
npm_packages
wheel
bill_of_materials
step "checksums"
(cd "$out" && sha256sum -- * > "$work/sums" && mv "$work/sums" SHA256SUMS && cat SHA256SUMS)
