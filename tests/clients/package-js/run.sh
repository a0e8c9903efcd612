#!/usr/bin/env bash
# The npm packages as users have them: packed with a program, installed from the files, and tried with vitest, jest, tsc and
# the command. Needs a build, or DPOSLAB_BIN.
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
root=$(cd ../../.. && pwd)
program=$(realpath "${DPOSLAB_BIN:-$root/target/debug/dposlab}")
# From here on the program is the one in the package.
unset DPOSLAB_BIN
# Without native parts, the SDK must be told to use its JavaScript.
export NODE_BACKEND=js npm_config_audit=false npm_config_fund=false npm_config_loglevel=error npm_config_ignore_scripts=true
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

step() { printf '==> npm package: %s (%s s)\n' "$*" "$SECONDS"; }

step "packed"
strip -o "$folder/dposlab" "$program"
npm ci --prefix "$root/js"
node "$root/js/pack.mjs" --out "$folder/packages" --binary "linux-$(node -p process.arch)-gnu=$folder/dposlab"

step "the first result in a fresh environment: nothing is fetched, nothing is built"
mkdir "$folder/fresh" && cd "$folder/fresh"
began=$(date +%s%N)
echo '{ "type": "module" }' > package.json
npm install --offline --cache "$folder/cache" "$folder"/packages/*.tgz
node --eval 'import("dposlab").then(async ({ Testnet }) => {
    const testnet = await Testnet.start();
    console.log(await testnet.advance(10));
    await testnet.stop();
})'
took=$((($(date +%s%N) - began) / 1000000))
echo "first result after $took ms"
npx --offline dposlab --version

step "what a user has beside it"
cp -r "$here" "$folder/user" && cd "$folder/user"
rm -rf node_modules
npm ci --prefer-offline
npm install --offline --no-save "$folder"/packages/*.tgz

step "the table of methods names all of them"
node methods.mjs "$root/docs/javascript.md"

step "types"
npx --offline tsc -p .
# A project that has nothing but the package, the compiler and @types/node, and no option for them.
mkdir -p "$folder/strict/node_modules/@types"
cp strict.ts "$folder/strict"
cp -r node_modules/dposlab node_modules/undici-types "$folder/strict/node_modules"
cp -r node_modules/@types/node "$folder/strict/node_modules/@types"
(cd "$folder/strict" && "$folder/user/node_modules/.bin/tsc" --strict --target es2022 --noEmit strict.ts)
step "vitest, and the examples of the documents"
node example.mjs "$root/README.md" wallet.test.js > wallet.test.js
node example.mjs "$root/docs/javascript.md" transfer.test.js > transfer.test.js
node example.mjs "$root/docs/javascript.md" reorganised.test.js > reorganised.test.js
node example.mjs "$root/docs/javascript.md" down.test.js > jest/down.test.js
npx --offline vitest run
step "jest"
npx --offline jest
step "processes"
node --test --test-reporter=spec processes.test.mjs
if pgrep -f "^$folder"; then
    echo "these testnets were left behind" >&2
    exit 1
fi
step "done"
