# The five things people do, such as `just test`, and a check before a release. Each recipe is one command, which works without
# `just`, too.

# A testnet, or another command of dposlab: `just run check --runs 20`.
run *arguments="up":
    cargo run -- {{arguments}}

# All tests, or those whose name holds a word: `just test layering`.
test *arguments:
    cargo test --locked {{arguments}}

# Everything that CI runs.
ci:
    bash .ci/run

# All benchmarks, or one group: `just bench --bench pool`.
bench *arguments:
    cargo bench {{arguments}}

# The documents as a book with a search, at http://127.0.0.1:3000.
docs:
    mdbook serve --hostname 127.0.0.1 --port 3000

# Changes of the libraries since a commit that break their users: `just semver HEAD~20`. It needs cargo-semver-checks.
semver commit:
    cargo semver-checks --workspace --baseline-rev {{commit}}
