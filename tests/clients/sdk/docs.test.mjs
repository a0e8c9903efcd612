// The JavaScript of docs/sdk.md and docs/webhooks.md, as it stands there, against a testnet; and the former without its one setting.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Testnet } from "./testnet.mjs";

const snippetsOf = (name) => {
    const page = readFileSync(new URL(`../../../docs/${name}`, import.meta.url), "utf8");
    return [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
};
const snippets = snippetsOf("sdk.md");
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
    const { stdout } = await promisify(execFile)(process.execPath, [file], { timeout: 600_000 });
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

/** The posts of a node about a transfer that is confirmed, reverted, and confirmed again, in the order of their places. */
async function postsOfReorganisation() {
    const net = await Testnet.start("--pace", "on-demand", "--delegates", "5");
    const posts = [];
    const server = createServer((request, response) => {
        let text = "";
        request.on("data", (part) => (text += part));
        request.on("end", () => {
            const body = JSON.parse(text);
            assert.equal(request.headers["webhook-sequence"], `${body.sequence.event}.${body.sequence.post}`);
            posts.push(body);
            response.end();
        });
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const post = async (path, body) => {
        const url = path.startsWith("/lab") ? net.url.replace(/\/api$/, path) : `${net.url}${path}`;
        const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
        assert.ok(answer.ok, `${path}: ${answer.status}`);
        return (await answer.json()).data;
    };
    const target = `http://127.0.0.1:${server.address().port}/`;
    // A webhook each, so that nothing but the places orders them.
    for (const event of ["transaction.applied", "transaction.reverted"]) await post("/webhooks", { event, target, conditions: [] });
    const [one, other] = net.accounts.slice(3).map(({ address }) => address);
    const [kept] = (await post("/lab/faucet", { recipient: one, amount: "7" })).transactions;
    await post("/lab/faucet", { recipient: other, amount: "8" });
    await post("/lab/reorg", { depth: 2, transactions: [kept] });
    await net.until("the transfer once more", () => post("/lab/advance", { until: { transaction: kept }, limit: 20 }));
    await net.until("five posts", () => posts.length, (count) => count === 5);
    const confirmed = (await (await fetch(`${net.url}/transactions`)).json()).data.filter(({ type }) => type === 0).map(({ id }) => id);
    server.close();
    assert.equal(await net.stop(), 0);
    posts.sort((one, other) => one.sequence.event - other.sequence.event || one.sequence.post - other.sequence.post);
    return { posts, kept, confirmed };
}

/** All orders of a list. */
function* orders(list) {
    if (list.length < 2) yield list;
    for (const [index, first] of list.entries()) {
        if (list.length < 2) return;
        for (const rest of orders(list.toSpliced(index, 1))) yield [first, ...rest];
    }
}

test("the books of docs/webhooks.md are right in whatever order posts arrive", async () => {
    const { posts, kept, confirmed } = await postsOfReorganisation();
    assert.deepEqual(
        posts.map(({ event }) => event.split(".")[1]),
        ["applied", "applied", "reverted", "reverted", "applied"],
        "by their places they are in the order in which it happened",
    );
    const [code, ...others] = snippetsOf("webhooks.md");
    assert.equal(others.length, 0);
    let tried = 0;
    for (const order of orders(posts)) {
        writeFileSync(file, `${code}\n// ${(tried += 1)}\n`);
        const books = await import(`data:text/javascript,${encodeURIComponent(readFileSync(file, "utf8"))}`);
        // One that is made again changes nothing.
        for (const body of [...order, order[0], order[2]]) books.enter(body);
        assert.deepEqual(books.confirmed().map(({ id }) => id), [kept], JSON.stringify(order.map(({ sequence }) => sequence)));
    }
    assert.equal(tried, 120);
    assert.ok(confirmed.includes(kept), "and the node says the same");
});
