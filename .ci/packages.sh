# Installs packages of the distribution that a suite needs. Suites run beside each other, and two installations at once refuse
# each other: one waits for the other here. Nothing that is installed is started: the tests do that themselves.
packages() {
    (
        flock 9
        export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
        apt-get update -q >&2
        apt-get install -yq --no-install-recommends "$@" >&2
    ) 9> "${TMPDIR:-/tmp}/dposlab-packages.lock"
}
