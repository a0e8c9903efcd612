#!/usr/bin/env bash
# Makes what a release consists of, from the commit that is checked out: docs/releasing.md. Two builds of one commit on one
# toolchain are equal byte for byte. A shell script, since all it does is call cargo, npm, maturin, tar and gzip.
#
#   release/build.sh [--profile NAME] [--out DIR] [--binary PATH]
#
#   --profile  release, if it is not given; optimised is built in half the time, for trying this script
#   --out      where the artefacts go; target/release-artefacts, if it is not given
#   --binary   packs this program and compiles nothing; then there is no bill of materials, since nobody knows what is in the program
#
# What packing needs is installed into target/release-tools (release/tools.sh). RELEASE_TOOLS names another folder.
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
source release/tools.sh
step() { printf '==> release: %s (%s s)\n' "$*" "$SECONDS"; }

need cargo "https://rustup.rs"
need cc "apt-get install gcc libc6-dev"
need strip "apt-get install binutils"
need npm "apt-get install nodejs npm, Node.js 20 or newer"
need python3 "apt-get install python3 python3-venv"
# Before the flags: what only packs may be compiled like anything else.
[ -n "$program" ] || install_tools
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
    cp -r LICENSE CHANGELOG.md scenarios "$folder"
    # That of the sources leads to files that are not in the archive.
    cp release/archive.md "$folder/README.md"
    python3 release/links.py cut "$folder"
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
    # The program is there already; maturin asks cargo for it with the flags that it was compiled with.
    (cd python && maturin build --quiet --profile "$profile" --target "$target" --locked --out "$out")
    python3 - "$out"/*.whl "$PWD" "$work/dposlab" << 'END'
import sys, zipfile

wheel, folder, program = zipfile.ZipFile(sys.argv[1]), sys.argv[2].encode(), open(sys.argv[3], "rb").read()
for name in wheel.namelist():
    if folder in wheel.read(name):
        sys.exit(f"release/build.sh: {name} in the wheel names the folder it was made in")
[packed] = [name for name in wheel.namelist() if name.endswith("/scripts/dposlab")]
if wheel.read(packed) != program:
    sys.exit("release/build.sh: the program in the wheel is not that of the archive")
END
}

# Of a program that is there. No packer has to be installed.
wheel_of_program() {
    step "a wheel"
    python3 -c 'import tomllib' 2> /dev/null || missing "Python 3.11 or newer" "apt-get install python3"
    python3 release/wheel.py --program "$work/dposlab" --out "$out"
}

bill_of_materials() {
    step "a bill of materials"
    # It writes beside Cargo.toml, and names the folder.
    cargo cyclonedx --quiet --format json --spec-version 1.5 --target "$target" --override-filename sbom
    sed "s|file://$PWD|file:///dposlab|g" sbom.json > "$out/$name.cdx.json"
    # It writes one beside each crate of the workspace.
    rm sbom.json
    rm -f crates/*/sbom.json
}

if [ -n "$program" ]; then
    strip -o "$work/dposlab" "$program"
    archive
    npm_packages
    wheel_of_program
else
    step "compiled with profile $profile for $target"
    # The compiler strips it.
    cp "$(compile "$profile" "$target")" "$work/dposlab"
    archive
    npm_packages
    wheel
    bill_of_materials
fi
step "checksums"
(cd "$out" && sha256sum -- * > "$work/sums" && mv "$work/sums" SHA256SUMS && cat SHA256SUMS)
