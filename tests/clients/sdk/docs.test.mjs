// The JavaScript of docs/sdk.md, as it stands there, against a testnet; and without its one setting.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Testnet } from "./testnet.mjs";

const page = readFileSync(new URL("../../../docs/sdk.md", import.meta.url), "utf8");
const snippets = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
// Beside the packages, where node looks for them.
const file = fileURLToPath(new URL(".snippet.mjs", import.meta.url));
let testnet;

before(async () => {
    testnet = await Testnet.start("--speed", "200");
    await testnet.until("block 2", () => testnet.height(), (height) => height >= 2);
});

after(async () => {
    rmSync(file, { force: true });
    assert.equal(await testnet.stop(), 0, "a stopped testnet ends with code 0");
});

/** Runs a snippet and answers what it prints; only the port is another one. */
async function run(code) {
    assert.ok(code.includes("http://127.0.0.1:4003/api"), "it names the default address");
    writeFileSync(file, code.replace("http://127.0.0.1:4003/api", testnet.url));
    const { stdout } = await promisify(execFile)(process.execPath, [file], { timeout: 60_000 });
    return JSON.parse(stdout);
}

test("the transfer of the page is accepted and confirmed", async () => {
    assert.equal(snippets.length, 1);
    const body = await run(snippets[0]);
    assert.equal(body.data.accept.length, 1, JSON.stringify(body));
    await testnet.until(
        "the transfer",
        () => testnet.client.api("transactions").get(body.data.accept[0]),
        (response) => response.body.data.confirmations > 0,
    );
});

test("without setHeight(2) it is refused as from the future", async () => {
    const without = snippets[0].replace(/^.*setHeight\(2\).*\n/m, "");
    assert.notEqual(without, snippets[0]);
    const body = await run(without);
    const [errors] = Object.values(body.errors);
    assert.deepEqual([body.data.accept.length, errors[0].type], [0, "ERR_FROM_FUTURE"], JSON.stringify(body));
});
