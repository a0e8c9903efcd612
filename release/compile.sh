# Sourced by build.sh: compiles the program so that two builds of one commit are equal byte for byte, in whatever folder.

# The flags of every compiler that takes part: no path of this machine gets into what they write.
reproducible_flags() {
    local cargo_home=${CARGO_HOME:-$HOME/.cargo}
    local separator=$'\x1f'
    CARGO_ENCODED_RUSTFLAGS="--remap-path-prefix=$cargo_home=/cargo"
    CARGO_ENCODED_RUSTFLAGS+="$separator--remap-path-prefix=$(rustc --print sysroot)=/rust"
    CARGO_ENCODED_RUSTFLAGS+="$separator--remap-path-prefix=$PWD=/dposlab"
    CARGO_ENCODED_RUSTFLAGS+="$separator-Cstrip=symbols"
    CFLAGS="-ffile-prefix-map=$cargo_home=/cargo -ffile-prefix-map=$PWD=/dposlab"
    # A folder of its own: other flags would have everything in the usual one built again.
    CARGO_TARGET_DIR=$PWD/target/release-build
    CARGO_INCREMENTAL=0
    # C code writes down when it was compiled: that is the time of the commit.
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
    export SOURCE_DATE_EPOCH CARGO_ENCODED_RUSTFLAGS CFLAGS CARGO_TARGET_DIR CARGO_INCREMENTAL
}

# compile PROFILE TARGET: prints the path of the program. The flags are set before.
compile() {
    cargo build --locked --profile "$1" --target "$2" --bin dposlab >&2
    echo "$CARGO_TARGET_DIR/$2/$1/dposlab"
}
