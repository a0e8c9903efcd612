#!/usr/bin/env bash
# Makes the crate with the planted faults: a copy of the sources in target/planted-source, with the files of source/ and the patches
# of patches/. With arguments it then runs cargo in the copy, with the feature `planted` and this checkout's target folder:
#
#     build.sh                                  the copy alone
#     build.sh build --profile optimised        target/optimised/dposlab with all faults compiled in
#     build.sh test --lib planted::             unit tests that plant faults
#
# A patch that does not apply is an error that names the file, the hunk and its faults. docs/planted.md says how to mend it.
set -euo pipefail
. "$(dirname "$0")/copy.sh"

# Applies what it can to the files of the copy, and says what it cannot.
tell_rejected() {
    show clean
    local patch file why
    for patch in "$here"/patches/*.patch; do
        why=$(git -C "$copy" apply -C1 --reject "$patch" 2>&1) && continue
        echo "${patch#"$root"/} does not apply:"
        file=$(sed -n 's|^+++ b/||p' "$patch")
        if [ -e "$copy/$file.rej" ]; then tell_hunks "$file" <"$copy/$file.rej"; else grep '^error' <<<"$why"; fi
    done
    cp -R "$here/source/." "$copy"
    git -C "$copy" add --all --force
    git -C "$copy" -c user.name=planted -c user.email=planted@localhost commit --quiet --message "what of the faults applies"
    echo "The rest is in target/planted-source: put in what each FILE.rej holds, delete it, and run tests/planted/rewrite.sh."
}

# The hunks of a file, each with the faults that it adds.
tell_hunks() {
    awk -v file="$1" '
        function tell() { if (hunk != "") print "  " file ", hunk " hunk ": " (faults == "" ? "names no fault" : faults) }
        /^@@/ { tell(); hunk = $2 " " $3; faults = "" }
        /^\+/ {
            rest = $0
            while (match(rest, /planted!\([A-Za-z0-9]+\)/)) {
                faults = faults (faults == "" ? "" : ", ") substr(rest, RSTART + 9, RLENGTH - 10)
                rest = substr(rest, RSTART + RLENGTH)
            }
        }
        END { tell() }'
}

refuse_planted
prepare_copy
refuse_edits
tag_clean
if git_on "$copy" apply --cached -C1 "$here"/patches/*.patch 2>/dev/null; then
    git_on "$here/source" add --force --ignore-removal .
    show "$(commit_index "with the faults")"
else
    tell_rejected >&2
    exit 1
fi
refuse_unplanted
[ $# -gt 0 ] || exit 0
cd "$copy"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
case $1 in
    fmt) exec cargo "$@" ;;
    *) exec cargo "$1" --features planted --locked "${@:2}" ;;
esac
