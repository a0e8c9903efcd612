# Sourced by build.sh: the packers that a release needs beside cargo, npm and Python, in the versions that it was made with. Other
# versions pack other bytes. They go to a folder of their own and change nothing of the machine.

maturin_version=1.16.0 cyclonedx_version=0.5.9

# install_tools: sets RELEASE_TOOLS to the folder, and puts its programs on the PATH. Two builds may share one folder.
install_tools() {
    : "${RELEASE_TOOLS:=$PWD/target/release-tools}"
    local bin=$RELEASE_TOOLS/bin
    mkdir -p "$bin"
    export RELEASE_TOOLS PATH=$bin:$PATH
    if [ "$("$bin/maturin" --version 2> /dev/null)" != "maturin $maturin_version" ]; then
        step "maturin $maturin_version, into $RELEASE_TOOLS"
        python3 -c 'import ensurepip' 2> /dev/null || missing "the venv module of Python" "apt-get install python3-venv"
        python3 -m venv "$RELEASE_TOOLS/python"
        "$RELEASE_TOOLS/python/bin/pip" install --quiet --disable-pip-version-check "maturin==$maturin_version"
        ln -sf "$RELEASE_TOOLS/python/bin/maturin" "$bin/maturin"
    fi
    if [[ $("$bin/cargo-cyclonedx" cyclonedx --version 2> /dev/null) != *" $cyclonedx_version" ]]; then
        step "cargo-cyclonedx $cyclonedx_version, into $RELEASE_TOOLS: a minute or two"
        cargo install --quiet --locked --root "$RELEASE_TOOLS" --target-dir "$RELEASE_TOOLS/target" --force \
            "cargo-cyclonedx@$cyclonedx_version"
        rm -rf "$RELEASE_TOOLS/target"
    fi
}

# need PROGRAM HOW...: the script ends where a program is not there that it does not install by itself.
need() { command -v "$1" > /dev/null || missing "$1" "${*:2}"; }
missing() { echo "release/build.sh: needs $1: $2" >&2 && exit 1; }
