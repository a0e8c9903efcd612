#!/usr/bin/env bash
# A crate outside the workspace. Its sources are examples/strategy.rs, examples/policy.rs and the test of docs/property-tests.md. Scenario
# files, the lab, the schema, the search and the minimiser know its strategy. Where DPOSLAB_BIN names a program, a function in Python gives
# the same. It has the profiles of the checkout, so its own lines alone are compiled when the checkout is built.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
crate=$(mktemp -d)
served=
trap 'kill $served 2>/dev/null || true; rm -rf "$crate"' EXIT
mkdir "$crate/src"
cp "$root/examples/strategy.rs" "$crate/src/main.rs"
mkdir "$crate/src/bin"
cp "$root/examples/policy.rs" "$crate/src/bin/policy.rs"
cat > "$crate/Cargo.toml" <<EOF
[package]
name = "outside"
version = "0.1.0"
edition = "2024"

[dependencies]
dposlab = { path = "$root" }
schemars = "1"
serde = { version = "1", features = ["derive"] }

[dev-dependencies]
proptest = "1"

$(sed -n '/^\[profile\.dev\]/,/^\[profile\.release\]/p' "$root/Cargo.toml" | sed '$d')
EOF
# The versions of the checkout; what is new is the crate itself.
cp "$root/Cargo.lock" "$crate/Cargo.lock"
lines=$(wc -l < "$crate/src/main.rs")
[ "$lines" -le 60 ] || { echo "examples/strategy.rs has $lines lines, allowed is 60" >&2; exit 1; }
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
bash "$root/tests/outside/without-the-program.sh"
cargo build --quiet --manifest-path "$crate/Cargo.toml"
outside=$CARGO_TARGET_DIR/debug/outside

cat > "$crate/scenario.toml" <<'EOF'
# Every second block of two delegates is empty, about.
version = 1
rounds = 3
crypto = "modelled"
[network]
delegates = 5
[[workload]]
kind = "generate"
per_second = 2.0
[[fault]]
kind = "empty-blocks"
delegates = [1, 2]
percent = 50
from = { round = 2 }
EOF
digest() { "$outside" run "$crate/scenario.toml" --seed 7 --json "$@" | grep -o '"digest":"[0-9a-f]*"'; }
with=$(digest)
[ -n "$with" ] || { echo "no digest" >&2; exit 1; }
[ "$with" = "$(digest --stage ractor)" ] || { echo "the stages differ" >&2; exit 1; }

# The same strategy as a function in Python, which the program of the checkout asks: the same run.
if [ -n "${DPOSLAB_BIN:-}" ]; then
    python3 -m venv "$crate/venv"
    "$crate/venv/bin/pip" install --quiet --disable-pip-version-check tqdm
    PYTHONPATH=$root/python/src PYTHONDONTWRITEBYTECODE=1 "$crate/venv/bin/python" "$root/tests/outside/empty_blocks.py" \
        "$crate/scenario.toml" "$with"
fi
sed -i 's/percent = 50/percent = 0/' "$crate/scenario.toml"
[ "$with" != "$(digest)" ] || { echo "the strategy changes nothing" >&2; exit 1; }
sed -i 's/percent = 0/percent = 101/' "$crate/scenario.toml"
refused=$("$outside" run "$crate/scenario.toml" 2>&1) && { echo "101 % was accepted" >&2; exit 1; }
grep -q "fault\[0\].percent.*101.*0 to 100" <<< "$refused" || { echo "$refused" >&2; exit 1; }
"$outside" schema | grep -q '"empty-blocks"'

"$outside" up --pace manual --port 0 --delegates 3 --json > "$crate/ready" &
served=$!
until [ -s "$crate/ready" ]; do read -rt 0.1 <> <(:) || true; done
url=$(grep -o '"url":"[^"]*"' "$crate/ready" | cut -d'"' -f4)
lab=${url%/api}/lab
curl -sf -X POST -H 'content-type: application/json' -d '{"kind":"empty-blocks","delegates":[0],"percent":10}' "$lab/faults" | grep -q '"state":"in-force"'
curl -sf -X POST -H 'content-type: application/json' -d '{"slots":6}' "$lab/advance" > /dev/null
curl -sf "$lab/faults" | grep -q '"percent":10'
kill "$served"; wait "$served" 2>/dev/null || true; served=

# A policy of agents: both stages play it, the schema knows it, and its limits hold.
cat > "$crate/policy.toml" <<'EOF'
version = 1
rounds = 6
crypto = "modelled"
[network]
delegates = 5
standby = 1
[[agents]]
kind = "demanding"
chance = 1
voters = 20
stake = 90_000_000
[[fault]]
kind = "offline"
delegates = [1]
rounds = { from = 2, to = 6 }
[[assert]]
finally = "transactions >= 20"
EOF
policy=$CARGO_TARGET_DIR/debug/policy
digest() { "$policy" run "$crate/policy.toml" --seed 7 --json "$@" | grep -o '"digest":"[0-9a-f]*"'; }
with=$(digest)
[ -n "$with" ] || { echo "no digest of a policy" >&2; exit 1; }
[ "$with" = "$(digest --stage ractor)" ] || { echo "the stages differ in a policy" >&2; exit 1; }
"$policy" schema | grep -q '"demanding"'
refused=$("$policy" run "$crate/policy.toml" --set 'agents[0].chance=1.5' 2>&1) && { echo "a chance of 1.5 was accepted" >&2; exit 1; }
grep -q "agents\[0\].chance.*1.5.*0 to 1" <<< "$refused" || { echo "$refused" >&2; exit 1; }

# The search draws it beside the project's own kinds.
"$outside" check --draw --runs 150 --rules corrected --out "$crate/drawn" > /dev/null
grep -lq empty-blocks "$crate"/drawn/*.toml || { echo "150 drawn scenarios have none" >&2; exit 1; }

# What breaks because of it is found, and made smaller: of the faults that the search draws beside it none is left.
cat > "$crate/broken.toml" <<'EOF'
version = 1
rounds = 3
[network]
delegates = 5
[[workload]]
kind = "generate"
per_second = 1.0
[[fault]]
kind = "empty-blocks"
delegates = [0, 1, 2, 3, 4]
percent = 100
[[assert]]
finally = "transactions >= 20"
EOF
count() { grep -c '^\[\[fault\]\]' "$1"; }
"$outside" check "$crate/broken.toml" --draw --seed 1 --runs 20 --out "$crate/around" > /dev/null
seed=
for number in {1..20}; do
    if [ "$(count "$crate/around/drawn-$number.toml")" -ge 3 ]; then seed=$number && break; fi
done
[ -n "$seed" ] || { echo "none of 20 scenarios has two faults beside" >&2; exit 1; }
"$outside" check "$crate/broken.toml" --seed "$seed" --runs 1 --out "$crate/found" > "$crate/told" 2>&1 && { echo "nothing was found" >&2; exit 1; }
found=("$crate"/found/*.toml)
grep -q '"empty-blocks"' "${found[0]}" || { cat "$crate/told" >&2; exit 1; }
[ "$(count "${found[0]}")" = 1 ] || { echo "the minimiser kept what has nothing to do with it:" >&2; cat "${found[0]}" >&2; exit 1; }
"$outside" run "${found[0]}" > /dev/null 2>&1 && { echo "the finding does not break" >&2; exit 1; }
# The page on property tests, as it stands: the property does not hold, and the file of the smallest counterexample breaks it, too.
mkdir "$crate/tests"
sed -n '/^In `tests\/agreement.rs`:/,/^```$/p' "$root/docs/property-tests.md" | sed '1,/^```rust/d; /^```$/d; s/^# //' > "$crate/tests/agreement.rs"
grep -q "fn no_slot_is_missed" "$crate/tests/agreement.rs"
cargo test --quiet --manifest-path "$crate/Cargo.toml" --test agreement > "$crate/told" 2>&1 && { echo "no slot is missed" >&2; exit 1; }
line=$(grep -o -m 1 "dposlab run no-slot-is-missed.toml --seed [0-9]*" "$crate/told") || { cat "$crate/told" >&2; exit 1; }
grep -q "minimal failing input" "$crate/told" || { cat "$crate/told" >&2; exit 1; }
(cd "$crate" && "$outside" ${line#dposlab } > /dev/null 2> told) && { echo "the counterexample holds" >&2; exit 1; }
grep -q "always missed < 1: does not hold" "$crate/told" || { cat "$crate/told" >&2; exit 1; }

echo "a strategy in a file of $lines lines, in a crate outside: scenarios, both stages, limits, schema, lab, search and minimiser know it"
