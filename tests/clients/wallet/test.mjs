// A wallet and its test, on a testnet whose lab takes blocks back and makes answers go wrong.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, afterEach, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import sdkClient from "@arkecosystem/client";
import sdkCrypto from "@arkecosystem/crypto";

const { Managers, Transactions } = sdkCrypto;
const connect = (url, options) => new sdkClient.Connection(url).withOptions({ retry: { limit: 0 }, ...options });
let testnet, lab, node, alice, bob, delegate;

// The wallet. What gets no answer in time, or a 5xx, is asked again.
async function ask(resource, method, argument, tries = 10) {
    return node.api(resource)[method](argument).then(({ body }) => body, async (error) => {
        if (tries === 1 || error.response?.status < 500) throw error;
        return setTimeout(20).then(() => ask(resource, method, argument, tries - 1));
    });
}
async function send(builder) {
    const { nonce } = (await ask("wallets", "get", alice.address)).data;
    const transaction = builder.nonce(String(BigInt(nonce) + 1n)).sign(alice.passphrase).build().toJson();
    const { errors } = await ask("transactions", "create", { transactions: [transaction] });
    // A node whose answer was lost has the transaction already.
    const [refused] = Object.values(errors ?? {}).flat();
    assert.ok(!refused || refused.type === "ERR_DUPLICATE", refused?.message);
    return transaction.id;
}
const find = async (id) => (await ask("transactions", "get", id)).data;
const pay = (amount) => send(Transactions.BuilderFactory.transfer().recipientId(bob.address).amount(amount));
const vote = () => send(Transactions.BuilderFactory.vote().votesAsset([`+${delegate.publicKey}`]));

// The testnet. Its clock stands but for `forge`, and each test has the chain as it was at first.
const post = async (path, body = {}) => (await lab.post(path, { body })).body.data;
const forge = (id) => post("advance", { until: { transaction: id }, limit: 10 }).then(() => find(id));
const change = async ({ address, balance }) => BigInt((await ask("wallets", "get", address)).data.balance) - BigInt(balance);
const changes = async () => [await change(alice), await change(bob)];
const fails = (asked, status) => assert.rejects(asked, ({ response }) => response?.status === status);
const struck = async () => (await lab.get("chaos")).body.data.at(-1).applied;

before(async () => {
    const file = `${tmpdir()}/wallet-${process.pid}.json`;
    const options = ["--port", "0", "--pace", "manual", "--ready-file", file, "--exit-with-parent"];
    const binary = process.env.DPOSLAB_BIN ?? "../../../target/release/dposlab";
    testnet = spawn(binary, ["up", ...options], { stdio: ["ignore", "ignore", "inherit"] });
    for (; !existsSync(file); await setTimeout(20)) assert.ok(testnet.exitCode === null && performance.now() < 60_000, "no testnet");
    const ready = JSON.parse(readFileSync(file, "utf8"));
    ({ accounts: [alice, bob], delegates: [delegate] } = ready);
    [node, lab] = [connect(ready.url), connect(ready.url.replace(/api$/, "lab"), { timeout: 600_000 })];
    Managers.configManager.setFromPreset("testnet");
    Managers.configManager.setHeight(2);
    await post("advance", { slots: 3 });
    await post("snapshots");
});
afterEach(() => post("snapshots/1/revert"));
after(async () => {
    testnet.kill("SIGINT");
    assert.deepEqual(await once(testnet, "exit"), [0, null]);
});

test("a transfer and a vote are confirmed, and the balances are right", async () => {
    assert.equal((await forge(await pay("150000000"))).confirmations, 1);
    assert.deepEqual(await changes(), [-160_000_000n, 150_000_000n]);
    await forge(await vote());
    assert.deepEqual(await changes(), [-260_000_000n, 150_000_000n]);
    assert.equal((await ask("wallets", "get", alice.address)).data.vote, delegate.publicKey);
    assert.ok((await ask("delegates", "voters", delegate.username)).data.some(({ address }) => address === alice.address));
});

test("a reorganisation takes a transfer back: one is dropped, another one comes back", async () => {
    const dropped = await forge(await pay("150000000"));
    await post("reorg", { depth: dropped.confirmations, transactions: "drop" });
    await fails(find(dropped.id), 404);
    assert.deepEqual(await changes(), [0n, 0n]);
    const returned = await forge(await pay("270000000"));
    await post("reorg", { depth: returned.confirmations, transactions: "return" });
    await fails(find(returned.id), 404);
    assert.equal((await ask("transactions", "getUnconfirmed", returned.id)).data.id, returned.id);
    assert.deepEqual(await changes(), [0n, 0n]);
    assert.notEqual((await forge(returned.id)).blockId, returned.blockId);
    assert.deepEqual(await changes(), [-280_000_000n, 270_000_000n]);
});

test("after a revert the wallet is where it was, and what it does again has the same outcome", async () => {
    await forge(await vote());
    const { id } = await post("snapshots");
    const paid = await forge(await pay("150000000"));
    await post(`snapshots/${id}/revert`);
    await fails(find(paid.id), 404);
    assert.deepEqual(await changes(), [-100_000_000n, 0n]);
    assert.deepEqual(await forge(await pay("150000000")), paid);
});

test("a slow answer is waited for, and what is too slow is asked again", async () => {
    await post("chaos", { route: "/api/wallets/{id}", delay_ms: 400, count: 1 });
    const began = performance.now();
    assert.deepEqual(await changes(), [0n, 0n]);
    assert.ok(performance.now() - began >= 400);
    // The client gives up after 1.5 s.
    await post("chaos", { method: "POST", delay_ms: 3000, count: 1 });
    await forge(await pay("150000000"));
    assert.equal(await struck(), 1);
    assert.deepEqual(await changes(), [-160_000_000n, 150_000_000n]);
});

test("a transfer that the node has taken is made once, though half of its answer is lost", async () => {
    await post("chaos", { method: "POST", cut: true, count: 1 });
    await forge(await pay("150000000"));
    assert.equal(await struck(), 1);
    assert.deepEqual(await changes(), [-160_000_000n, 150_000_000n]);
});

test("half of the answers are 503, and the transfer is made", async () => {
    await post("chaos", { share: 0.5, seed: 5, status: 503, count: 6 });
    await fails(ask("wallets", "get", alice.address, 1), 503);
    await forge(await pay("150000000"));
    assert.deepEqual(await changes(), [-160_000_000n, 150_000_000n]);
    assert.equal(await struck(), 6);
});
