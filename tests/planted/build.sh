#!/usr/bin/env bash
# Makes the crate with the planted faults: a copy of the sources in target/planted-source, with the files of source/ and the faults
# of patches/. With arguments it then runs cargo in the copy, with the feature `planted` and this checkout's target folder:
#
#     build.sh                                  the copy alone
#     build.sh build --profile optimised        target/optimised/dposlab with all faults compiled in
#     build.sh test --lib planted::             unit tests that plant faults
#
# A fault whose place is not found is an error that names the file, the function and the fault. docs/planted.md says how to mend it.
set -euo pipefail
. "$(dirname "$0")/copy.sh"

refuse_planted
prepare_copy
refuse_edits
tag_clean
changed=$(mktemp -d)
trap 'rm -rf "$changed"' EXIT
planted=yes
python3 "$here/faults.py" plant "$root" "$here/patches" "$changed" || planted=no
for folder in "$changed" "$here/source"; do git_on "$folder" add --force --ignore-removal .; done
show "$(commit_index "with the faults")"
if [ $planted = no ]; then
    echo "The rest is in target/planted-source: put in what each FILE.rej holds, delete it, and run tests/planted/rewrite.sh." >&2
    exit 1
fi
refuse_unplanted
[ $# -gt 0 ] || exit 0
cd "$copy"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
rm -rf "$changed"
case $1 in
    fmt) exec cargo "$@" ;;
    *) exec cargo "$1" --features planted --locked "${@:2}" ;;
esac
