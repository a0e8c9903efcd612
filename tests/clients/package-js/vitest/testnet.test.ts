// Each method of the package against a testnet: what it asks is taken, and what it answers is what its types say.
import { afterAll, beforeAll, expect, test } from "vitest";
import crypto from "@arkecosystem/crypto";
import { ApiError, GoneError, NoBinaryError, RefusedError, StartError, Testnet, type Chain } from "dposlab";

let testnet: Testnet;
let chain: Chain;

beforeAll(async () => {
    testnet = await Testnet.start({ delegates: 5, seed: 7, set: { "network.reward": 0 } });
    chain = await testnet.chain();
});
afterAll(async () => {
    expect(await testnet.stop()).toMatchObject({ code: 0, signal: null });
});

test("a testnet tells what it is", async () => {
    expect(testnet.seed).toBe(7);
    expect(testnet.accounts).toHaveLength(10);
    expect(testnet.delegates.map(({ username }) => username)).toContain("genesis_5");
    expect(await testnet.api("/node/syncing")).toMatchObject({ height: 2 });
    expect((await testnet.status()).nodes).toHaveLength(5);
    expect(await testnet.pace()).toMatchObject({ pace: "on-demand" });
});

test("coin is given out", async () => {
    const { accounts } = await chain.createAccounts(2, 500_000_000n);
    await chain.faucet(accounts[0]!.address, "900719925474099");
    await chain.faucet([{ recipient: accounts[1]!.address, amount: 1 }]);
    expect(await chain.api(`/wallets/${accounts[0]!.address}`)).toMatchObject({ balance: "900720425474099" });
    expect(await chain.api(`/wallets/${accounts[1]!.address}`)).toMatchObject({ balance: "500000001" });
});

test("the node says why it refuses a transaction", async () => {
    const { Managers, Transactions } = crypto;
    Managers.configManager.setFromPreset("testnet");
    Managers.configManager.setHeight(2);
    const apart = await testnet.chain();
    const [payer, paid] = apart.accounts;
    const transfer = (nonce: string) =>
        Transactions.BuilderFactory.transfer().recipientId(paid!.address).amount("1").nonce(nonce).fee("10000000").sign(payer!.passphrase).build();
    const first = transfer("1");
    expect(await apart.submit(first)).toEqual([first.id]);
    expect(await apart.api(`/transactions/${first.id}`)).toMatchObject({ nonce: "1" });
    const second = transfer("2").toJson();
    expect(await apart.submit(second)).toEqual([second.id]);
    const why = await apart.submit(first).then(() => undefined, (error: unknown) => error);
    expect(why).toBeInstanceOf(RefusedError);
    expect(why).toMatchObject({ refusals: [{ id: first.id, type: expect.stringMatching(/^ERR_/) }], accepted: [] });
    expect(String(why)).toMatch(`the node refused transaction ${first.id}: ERR_`);
    await expect(apart.submit()).rejects.toThrow("should NOT have fewer than 1 items");
    const told = await apart.submissions();
    expect(told.map(({ id, accepted }) => [id, accepted])).toEqual([[first.id, true], [second.id, true], [first.id, false], [null, false]]);
    await apart.delete();
});

test("a block of one's own is taken, and a pending transaction is dropped", async () => {
    const { Blocks, Identities, Managers, Transactions, Utils } = crypto;
    Managers.configManager.setFromPreset("testnet");
    Managers.configManager.setHeight(2);
    const apart = await testnet.chain({ pace: "manual" });
    await apart.advance(3);
    const answer = await fetch(apart.url.replace(/\/api$/, "/lab/round"));
    const { data: round } = (await answer.json()) as {
        data: { tip: string; height: number; slotNow: number; slots: { slot: number; time: number; owner: string }[] };
    };
    const slot = round.slots.find((one) => one.slot === round.slotNow)!;
    const forger = testnet.delegates.find(({ username }) => username === slot.owner)!;
    const zero = Utils.BigNumber.ZERO;
    const draft = {
        version: 0, timestamp: slot.time, height: round.height + 1, previousBlock: round.tip, numberOfTransactions: 0, totalAmount: zero,
        totalFee: zero, reward: zero, payloadLength: 0, payloadHash: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        transactions: [], generatorPublicKey: "",
    };
    const make = (passphrase: string) => Blocks.BlockFactory.make({ ...draft }, Identities.Keys.fromPassphrase(passphrase))!;
    const other = testnet.delegates.find(({ username }) => username !== slot.owner)!;
    await expect(apart.pushBlock(make(other.passphrase))).rejects.toThrow("refuses block");
    const block = make(forger.passphrase);
    expect(await apart.pushBlock(block)).toEqual({ node: 0, id: block.data.id, height: round.height + 1, transactions: 0 });
    expect(await apart.api("/blockchain")).toMatchObject({ block: { id: block.data.id } });
    await expect(apart.pushBlock(block)).rejects.toThrow("passes block");

    const [payer, paid] = apart.accounts;
    const transfer = Transactions.BuilderFactory.transfer().recipientId(paid!.address).amount("1").nonce("1").fee("10000000");
    const [id] = await apart.submit(transfer.sign(payer!.passphrase).build());
    expect(await apart.dropPending(id!)).toMatchObject({ transactions: [id], nodes: [0] });
    await apart.advance(4);
    await expect(apart.api(`/transactions/${id}`)).rejects.toThrow("Transaction not found");
    await expect(apart.dropPending(id!)).rejects.toThrow("Transaction not found");
    await apart.delete();
});

test("time passes as it is told to", async () => {
    const { height } = await chain.advance(10);
    expect(await chain.advance({ until: { height: height + 3 } })).toMatchObject({ height: height + 3, stopped: "reached" });
    expect(await chain.pace("manual")).toMatchObject({ pace: "manual" });
});

test("what is undone is as it was", async () => {
    const snapshot = await chain.snapshot("here");
    await chain.advance(5);
    expect(await snapshot.revert()).toMatchObject({ name: "here", height: snapshot.height, tip: snapshot.tip });
    expect((await chain.snapshots()).map(({ id }) => id)).toContain(snapshot.id);
    await chain.deleteSnapshot(snapshot);
    await expect(chain.revert(snapshot)).rejects.toThrow(ApiError);
});

test("blocks are taken back", async () => {
    const { height } = await chain.advance(5);
    const reorg = await chain.reorg(2, { transactions: "drop" });
    expect(reorg.reverted.map((block) => block.height)).toEqual([height, height - 1]);
    expect(reorg.moved).toEqual([0, 1, 2, 3, 4]);
    const again = await chain.reorg({ to: height - 3 });
    expect(again).toMatchObject({ common: { height: height - 3 }, reverted: [{}, {}, {}] });
    expect(await chain.reorg({ to: again.common.id })).toMatchObject({ common: again.common });
});

test("nodes and links go wrong", async () => {
    const fault = await chain.faults.add({ kind: "delay", by_ms: 300, messages: ["block"] });
    expect(await chain.faults.list()).toEqual([fault]);
    await chain.faults.end(fault);
    await chain.crash(3);
    expect((await chain.status()).nodes[3]).toMatchObject({ live: false, cause: "crash" });
    await chain.restart(3, { keepPool: false });
    expect((await chain.status()).nodes[3]).toMatchObject({ live: true });
});

test("answers go wrong", async () => {
    const rule = await chain.chaos.add({ route: "/api/blocks", status: 503, count: 1 });
    await expect(chain.api("/blocks")).rejects.toMatchObject({ name: "ApiError", status: 503 });
    expect(await chain.chaos.end(rule)).toMatchObject({ matched: 1, applied: 1 });
    await chain.chaos.add({ delay_ms: 1 });
    expect(await chain.chaos.list()).toHaveLength(1);
    expect(await chain.chaos.clear()).toEqual({ deleted: 1 });
});

test("events are heard from the moment the stream is there", async () => {
    await using other = await testnet.chain();
    const events = await other.events({ kind: "block.applied", node: 0 });
    const { height } = await other.advance({ until: { height: 4 } });
    const heights = [];
    for await (const { id, block } of events) {
        expect(id).toBeTypeOf("number");
        heights.push((block as { height: number }).height);
        if (heights.length === 2) break;
    }
    expect(heights).toEqual([height - 1, height]);
    expect((await events.next()).done).toBe(true);
});

test("a stream is closed by who reads it, by a signal, or with its chain", async () => {
    await using other = await testnet.chain();
    const [mine, gone] = [await other.events(), await other.events()];
    mine.close();
    expect((await mine.next()).done).toBe(true);
    const stop = new AbortController();
    const stopped = await other.events({ signal: stop.signal });
    stop.abort();
    await expect(stopped.next()).resolves.toMatchObject({ done: true });
    await other.delete();
    await expect(gone.next()).resolves.toMatchObject({ done: true });
});

test("chains are alone, and end", async () => {
    const before = await chain.status();
    await using other = await testnet.chain({ seed: 9, delegates: 3, pace: "manual", set: ["network.reward=1"] });
    await other.advance(4);
    expect(other.nethash).not.toBe(testnet.nethash);
    expect(await chain.status()).toEqual(before);
    expect((await testnet.chains()).map(({ id }) => id)).toContain(other.id);
    const { id } = other;
    await other.delete();
    expect((await testnet.chains()).map((each) => each.id)).not.toContain(id);
    await expect(other.status()).rejects.toMatchObject({ status: 404 });
});

test("the past can be looked at", async () => {
    await using other = await Testnet.start({ delegates: 5, pace: "manual" });
    await other.advance(30);
    const view = await other.view({ at: 88_000_000 });
    expect(view).toMatchObject({ at: 88_000_000, height: 11, data: { slot: 11 } });
    expect(await view.api("/node/syncing")).toMatchObject({ height: 11 });
    expect(await view.lab("/round")).toMatchObject({ height: 11 });
    const before = await view.step("slot", { back: true });
    expect(before.height).toBe(10);
    expect((await other.views()).map(({ id }) => id)).toEqual([view.id, before.id]);
    const goesOn = await before.chain();
    expect(await goesOn.advance(3)).toMatchObject({ height: 13 });
    expect(await other.api("/node/syncing")).toMatchObject({ height: 31 });
    const { delivered, inputs } = view.data;
    {
        await using again = await other.view({ at: view.at, delivered, inputs, node: 4 });
        expect(again).toMatchObject({ height: 11, data: { node: 4 } });
    }
    await before.delete();
    await view.delete();
    expect(await other.views()).toEqual([]);
    expect((await other.view()).height).toBe(31);
    await expect(other.view({ at: 999_000_000 })).rejects.toThrow("which is now");
});

test("a chain plays a scenario file", async () => {
    const scenario = new URL("../scenario.toml", import.meta.url);
    await using other = await testnet.chain({ scenario });
    expect(await other.api("/delegates")).toHaveLength(4);
});

test("errors carry what the API said", async () => {
    const error = await chain.reorg(1_000_000).catch((why: unknown) => why as ApiError);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ method: "POST", status: 422, body: { statusCode: 422, error: "Unprocessable Entity" } });
    expect((error as ApiError).reason).toMatch(/^key 'depth': found 1000000, allowed is 1 to/);
});

test("a testnet that does not start says why", async () => {
    const error = await Testnet.start({ set: ["rounds"] }).catch((why: unknown) => why as StartError);
    expect(error).toBeInstanceOf(StartError);
    expect(error).toMatchObject({ ending: { code: 2 } });
    expect((error as StartError).message).toMatch(/up .*--set rounds.*'rounds' sets nothing/);
    await expect(Testnet.start({ binary: "/none" })).rejects.toThrow(StartError);
    const { DPOSLAB_BIN } = process.env;
    process.env.DPOSLAB_BIN = "/none";
    await expect(Testnet.start()).rejects.toThrow(NoBinaryError);
    if (DPOSLAB_BIN === undefined) delete process.env.DPOSLAB_BIN;
    else process.env.DPOSLAB_BIN = DPOSLAB_BIN;
});

test("a testnet that is gone says how it ended", async () => {
    const other = await Testnet.start({ delegates: 3 });
    process.kill(other.pid, "SIGKILL");
    const error = await other.advance(1).catch((why: unknown) => why as GoneError);
    expect(error).toBeInstanceOf(GoneError);
    expect(error).toMatchObject({ message: "the testnet was ended by SIGKILL", ending: { signal: "SIGKILL" } });
    expect(await other.stop()).toMatchObject({ signal: "SIGKILL" });
});

test("a testnet and its streams end with a block", async () => {
    const streams = [];
    {
        await using other = await Testnet.start({ delegates: 3 });
        streams.push(await other.events());
    }
    expect(await streams[0]!.next()).toMatchObject({ done: true });
});
