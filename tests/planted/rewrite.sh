#!/usr/bin/env bash
# Writes source/ and patches/ anew from sources with planted faults:
#
#     rewrite.sh             from the copy that build.sh makes, target/planted-source, as it has been edited
#     rewrite.sh FOLDER      from another folder, whose Cargo.toml, src and tests are this checkout's with faults planted in them
#
# A file that only the faults need goes into source/ whole. For each file that they change, faults.py writes a patch.
set -euo pipefail
. "$(dirname "$0")/copy.sh"

prepare_copy
if [ $# -gt 0 ]; then
    other=$(cd "$1" && pwd)
    refuse_edits
    tag_clean
    places "$root" | git_on "$root" rm --quiet -r --cached --pathspec-from-file=-
    places "$other" | git_on "$other" add --force --pathspec-from-file=-
else
    git -C "$copy" rev-parse --quiet --verify clean >/dev/null || { echo "tests/planted/build.sh makes the copy first" >&2; exit 1; }
    rejected=$(find "$copy" -name '*.rej')
    [ -z "$rejected" ] || { printf '%s\nA hunk is still to be put in: delete the file then\n' "$rejected" >&2; exit 1; }
    rm -f "$index"
    git_on "$copy" add --force --all .
fi
planted=$(commit_index "with the faults")

changes() {
    git_on "$copy" diff --no-renames --name-only --diff-filter="$1" clean "$planted"
}
lacking=$(changes D)
[ -z "$lacking" ] || { printf '%s\nThe sources with faults lack these files: no patch takes a file away\n' "$lacking" >&2; exit 1; }
rm -rf "$here/source"
mkdir -p "$here/source"
changes A | while IFS= read -r file; do
    mkdir -p "$here/source/$(dirname "$file")"
    git_on "$copy" show "$planted:$file" >"$here/source/$file"
done
sides=$(mktemp -d)
trap 'rm -rf "$sides"' EXIT
for side in clean "$planted"; do
    mkdir "$sides/$side"
    git -C "$copy" archive "$side" | tar -x -C "$sides/$side"
done
# A hunk that names no fault is part of one that another hunk of the file names.
python3 "$here/faults.py" write "$sides/clean" "$sides/$planted" "$here/patches"
show "$planted"
echo "$(ls "$here/patches" | wc -l) patches, $(changes A | wc -l) files"
refuse_unplanted
