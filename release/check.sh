#!/usr/bin/env bash
# Packs a release twice from one program, in two folders, under two umasks: the artefacts are equal byte for byte, and what is
# in them works. Needs a build, or DPOSLAB_BIN. What is compiled is compared by hand: docs/releasing.md.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "${DPOSLAB_BIN:-target/debug/dposlab}")
unset DPOSLAB_BIN
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# As build.sh asks, which must not have to fetch anything through the link below.
[ js/node_modules/.package-lock.json -nt js/package-lock.json ] || npm ci --prefix js --ignore-scripts --no-audit --no-fund --loglevel=error

pack() {
    umask "$2"
    mkdir -p "$folder/$1"
    cp -a Cargo.toml Cargo.lock LICENSE README.md CHANGELOG.md release scenarios "$folder/$1"
    mkdir "$folder/$1/js" && cp -a js/{package.json,package-lock.json,tsconfig.json,pack.mjs,README.md,src} "$folder/$1/js"
    ln -s "$PWD/js/node_modules" "$folder/$1/js/node_modules"
    # Without the sources of the library there is nothing to list.
    (cd "$folder/$1" && SOURCE_DATE_EPOCH=1700000000 bash release/build.sh --binary "$program" --out artefacts)
}
(pack one 022)
(pack two/deeper 077)
diff -r "$folder/one/artefacts" "$folder/two/deeper/artefacts"

cd "$folder/one/artefacts"
sha256sum --check --quiet SHA256SUMS
tar xzf dposlab-*.tar.gz && cd dposlab-*/
./dposlab run scenarios/healthy.toml > /dev/null
for page in dposlab dposlab-up; do test -s "man/$page.1"; done
bash -n completions/dposlab.bash
echo "a release packed twice is the same, and works"
