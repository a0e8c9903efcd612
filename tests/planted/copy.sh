# The copy of the sources that the planted faults go into, for build.sh and rewrite.sh.
#
# It is a git repository of its own. The tag `clean` is the sources as they are tracked. The branch `planted` is the same with
# the faults, as the files of source/ and patches/ say or as rewrite.sh has found them.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
copy=$root/target/planted-source
index=$copy/.git/index.next

# git on that repository, with an index of its own, and with the files of another folder.
git_on() {
    GIT_DIR=$copy/.git GIT_WORK_TREE=$1 GIT_INDEX_FILE=$index git --literal-pathspecs -C "$1" -c core.autocrlf=false "${@:2}"
}

# git on the checkout, whoever owns it.
git_root() {
    git -c safe.directory="$root" -C "$root" "$@"
}

# What a fault may be planted in, in a folder of sources.
places() {
    (cd "$1" && shopt -s nullglob && printf '%s\n' Cargo.toml src tests/*.rs tests/api tests/runs)
}

# Commits that index; the commit.
commit_index() {
    git_on "$copy" -c user.name=planted -c user.email=planted@localhost commit-tree -m "$1" "$(git_on "$copy" write-tree)"
}

# Makes the repository if there is none.
prepare_copy() {
    [ -d "$copy/.git" ] || git init --quiet --initial-branch planted "$copy"
}

# Fails if the copy holds edits that rewrite.sh has not seen.
refuse_edits() {
    if git -C "$copy" rev-parse --quiet --verify HEAD >/dev/null && [ -n "$(git -C "$copy" status --porcelain)" ]; then
        git -C "$copy" status --short >&2
        echo "target/planted-source holds these edits: tests/planted/rewrite.sh keeps them, rm -rf target/planted-source drops them" >&2
        exit 1
    fi
}

# The sources: all tracked files, and new ones where faults may be planted. Without a repository, all that is not ignored.
sources() {
    if git_root rev-parse --git-dir >/dev/null 2>&1; then
        git_root ls-files -z --cached
        git_root ls-files -z --others --exclude-standard -- $(places "$root")
    else
        git_on "$root" ls-files -z --others --exclude-standard
    fi
}

# Tags the sources as they are.
tag_clean() {
    rm -f "$index"
    sources |
        (cd "$root" && while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done) |
        git_on "$root" add --force --pathspec-from-file=- --pathspec-file-nul
    git -C "$copy" tag --force clean "$(commit_index "the sources")" >/dev/null
}

# Brings the files of the copy to a commit. A file that stays the same keeps its time, so that cargo builds no more than it must.
show() {
    git -C "$copy" reset --quiet --hard "$1"
    git -C "$copy" clean --quiet --force -d -x
}

# Fails if the sources themselves hold a fault.
refuse_planted() {
    ! grep -rn 'planted!(' "$root/src" >&2 || { echo "A fault belongs into target/planted-source and not into src" >&2; exit 1; }
}

# Fails if a fault of the list is planted nowhere.
refuse_unplanted() {
    local lost
    lost=$(comm -23 \
        <(sed -n 's/^ *\([A-Z][A-Za-z0-9]*\): ".*",$/\1/p' "$here/source/src/planted.rs" | sort -u) \
        <(grep -h '^+' "$here"/patches/*.patch | grep -o 'planted!([A-Za-z0-9]*)' | sed 's/.*(//; s/)//' | sort -u))
    [ -z "$lost" ] || { printf '%s\nThese faults of source/src/planted.rs are in no patch\n' "$lost" >&2; exit 1; }
}
