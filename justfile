# The five things people do: `just test`. Each recipe is one command, which works without `just`, too.

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
