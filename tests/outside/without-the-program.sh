#!/usr/bin/env bash
# A crate outside the workspace that names dposlab without its default features: examples/missed_slot.rs, which plays a simulation.
# It needs no more packages than packages.txt allows, and none of the program's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
crate=$(mktemp -d)
trap 'rm -rf "$crate"' EXIT
mkdir "$crate/src"
cp "$root/examples/missed_slot.rs" "$crate/src/main.rs"
cat > "$crate/Cargo.toml" <<EOF
[package]
name = "without-the-program"
version = "0.1.0"
edition = "2024"

[dependencies]
dposlab = { path = "$root", default-features = false }

$(sed -n '/^\[profile\.dev\]/,/^\[profile\.release\]/p' "$root/Cargo.toml" | sed '$d')
EOF
cp "$root/Cargo.lock" "$crate/Cargo.lock"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}

# All that is compiled or run to compile it, without this crate.
cargo tree --quiet --manifest-path "$crate/Cargo.toml" --edges normal,build --prefix none --format '{p}' |
    cut -d ' ' -f 1,2 | sort -u | grep -v '^without-the-program ' > "$crate/packages"
count=$(wc -l < "$crate/packages")
allowed=$(grep -v '^#' "$here/packages.txt")
[ "$count" -le "$allowed" ] || {
    cat "$crate/packages" >&2
    echo "without the program: found $count packages, allowed is $allowed (tests/outside/packages.txt)" >&2
    exit 1
}
program=$(sed -n 's/^ *"dep:\(.*\)",$/\1/p' "$root/Cargo.toml")
[ -n "$program" ] || { echo "the feature \`cli\` of Cargo.toml names no dependency" >&2; exit 1; }
for name in $program; do
    ! grep "^$name " "$crate/packages" >&2 || { echo "without the program: $name is of the program alone" >&2; exit 1; }
done

said=$(cargo run --quiet --manifest-path "$crate/Cargo.toml")
[ "$said" = $'height 28 after 28 slots\nslots missed: 1' ] || { echo "without the program: $said" >&2; exit 1; }
echo "without the program: $count packages, at most $allowed, and a simulation plays"
