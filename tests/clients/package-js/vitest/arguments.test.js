// Wrong arguments are the package's own errors, which name the argument, what was found and what is allowed.
import crypto from "@arkecosystem/crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ApiError, DposlabError, GoneError, Testnet, UsageError } from "dposlab";

const LARGEST = 18_446_744_073_709_551_615n;
let testnet;
let chain;

beforeAll(async () => {
    testnet = await Testnet.start({ delegates: 3, seed: LARGEST, args: ["--api-nodes", "2"] });
    chain = await testnet.chain();
});
afterAll(async () => {
    await testnet.stop();
});

const addresses = "an address, or a list of { recipient, amount }";
const block = "a block of the SDK, its JSON, or its wire bytes in hex";
const chainOptions = "'delegates', 'seed', 'scenario', 'set', 'pace'";
const startOptions = `${chainOptions}, 'port', 'stage', 'args', 'binary', 'timeout', 'exitWith', 'parse'`;
const snapshots = "a snapshot, its number or its name";
const transaction = "a signed transaction, as JSON or as the SDK's object";

test.each([
    ["Testnet.start: options: found null, allowed is an object of " + startOptions, () => Testnet.start(null)],
    ["Testnet.start: options: found 'x', allowed is an object of " + startOptions, () => Testnet.start("x")],
    [
        "Testnet.start: option 'delegatess': no such option, the nearest is 'delegates', allowed are " + startOptions,
        () => Testnet.start({ delegatess: 5 }),
    ],
    ["Testnet.start: option 'delegates': found '5', allowed is a whole number", () => Testnet.start({ delegates: "5" })],
    [
        "Testnet.start: option 'set': found 'network.loss=0.05', allowed is an object such as {\"network.loss\": 0.05}, or a list of texts 'PATH=VALUE'",
        () => Testnet.start({ set: "network.loss=0.05" }),
    ],
    ["Testnet.start: option 'args': found '--foo', allowed is a list of texts", () => Testnet.start({ args: "--foo" })],
    [
        "Testnet.start: option 'seed': found 18446744073709552000, allowed is a whole number, from 2^53 on as a bigint",
        () => Testnet.start({ seed: Number(LARGEST) }),
    ],
    ["Testnet.chain: options: found null, allowed is an object of " + chainOptions, () => testnet.chain(null)],
    ["Testnet.chain: option 'port': no such option, allowed are " + chainOptions, () => testnet.chain({ port: 5 })],
    [
        "Testnet.chain: option 'scenario': found '/nope', which cannot be read (ENOENT: no such file or directory, open '/nope'), allowed is the path of a scenario file",
        () => testnet.chain({ scenario: "/nope" }),
    ],
    [`Testnet.chain: option 'seed': found ${LARGEST}, allowed is a whole number below 2^53`, () => testnet.chain({ seed: LARGEST })],
    ["Testnet.view: option 'att': no such option, the nearest is 'at', allowed are 'at', 'delivered', 'inputs', 'node'", () => testnet.view({ att: 5 })],
    ["View.step: option 'bakc': no such option, the nearest is 'back', allowed are 'back'", async () => (await testnet.view()).step("slot", { bakc: true })],
    ["pushBlock: block: found null, allowed is " + block, () => chain.pushBlock(null)],
    ["pushBlock: option 'nod': no such option, the nearest is 'node', allowed are 'node'", () => chain.pushBlock("00", { nod: 1 })],
    ["submit: transaction 1: found null, allowed is " + transaction, () => chain.submit(null)],
    ["submit: transaction 1: found undefined, allowed is " + transaction, () => chain.submit(undefined)],
    ["submit: transaction 2: found 5, allowed is " + transaction, () => chain.submit({}, 5)],
    ["submit: transaction 1: found 'abc', allowed is " + transaction, () => chain.submit("abc")],
    ["submit: transaction 1: found NaN, allowed is " + transaction, () => chain.submit(NaN)],
    ["submit: transaction 1: found a list, allowed is a signed transaction: spread the list, submit(...list)", () => chain.submit([{}])],
    ["submit: transaction 1: found a promise, allowed is a signed transaction: await it", () => chain.submit(Promise.resolve({}))],
    [
        "submit: transaction 1: found a builder, allowed is a signed transaction: it is not built, call .build()",
        () => chain.submit(crypto.Transactions.BuilderFactory.transfer().amount("1").sign(chain.accounts[0].passphrase)),
    ],
    ["revert: snapshot: found null, allowed is " + snapshots, () => chain.revert(null)],
    ["revert: snapshot: found {}, allowed is " + snapshots, () => chain.revert({})],
    ["deleteSnapshot: snapshot: found null, allowed is " + snapshots, () => chain.deleteSnapshot(null)],
    [
        `deleteSnapshot: snapshot: found 'x', the name of no snapshot, allowed is ${snapshots}, if only one has it`,
        () => chain.deleteSnapshot("x"),
    ],
    ["faults.add: fault: found undefined, allowed is an object such as { kind: \"crash\", nodes: [3] }", () => chain.faults.add()],
    ["faults.end: fault: found null, allowed is a fault or its number", () => chain.faults.end(null)],
    ["faults.end: fault: found {}, allowed is a fault or its number", () => chain.faults.end({})],
    ["chaos.end: rule: found 'x', allowed is a rule or its number", () => chain.chaos.end("x")],
    ["crash: node: found undefined, allowed is the number of a node", () => chain.crash()],
    ["crash: options: found null, allowed is an object of 'keepPool'", () => chain.crash(2, null)],
    ["restart: option 'keepPol': no such option, the nearest is 'keepPool', allowed are 'keepPool'", () => chain.restart(2, { keepPol: true })],
    [
        "events: options: found null, allowed is an object of 'kind', 'node', 'lastEventId', 'limit', 'signal'",
        () => chain.events(null),
    ],
    [
        "events: option 'kinds': no such option, the nearest is 'kind', allowed are 'kind', 'node', 'lastEventId', 'limit', 'signal'",
        () => chain.events({ kinds: ["block.applied"] }),
    ],
    ["events: option 'kind': found 5, allowed is a text or a list of them", () => chain.events({ kind: 5 })],
    ["reorg: options: found 'drop', allowed is an object of 'transactions', 'node'", () => chain.reorg(1, "drop")],
    ["reorg: depth: found '2', allowed is a number of blocks, or { to: HEIGHT_OR_ID }", () => chain.reorg("2")],
    [`faucet: recipient: found null, allowed is ${addresses}`, () => chain.faucet(null, 5)],
    ["faucet: amount: found undefined, allowed is an amount in arktoshi", () => chain.faucet("A")],
    ["dropPending: id: found undefined, allowed is the id of a transaction", () => chain.dropPending()],
    ["api: path: found null, allowed is a text", () => chain.api(null)],
])("%s", async (message, call) => {
    const error = await call().catch((why) => why);
    expect(error).toBeInstanceOf(UsageError);
    expect(error).toBeInstanceOf(DposlabError);
    expect(error.message).toBe(message);
});

test("a seed is exact, also above 2^53", async () => {
    expect([testnet.seed, chain.seed, (await testnet.status()).seed]).toEqual([LARGEST, LARGEST, LARGEST]);
    expect((await testnet.chains()).map(({ seed }) => seed)).toContain(LARGEST);
    for (const seed of [2 ** 53 - 1, BigInt(2 ** 53 - 1)]) {
        const other = await testnet.chain({ seed });
        expect(other.seed).toBe(2 ** 53 - 1);
        await other.delete();
    }
});

test("a name stands for its snapshot, if only one has it", async () => {
    const one = await chain.snapshot("one");
    await chain.advance(3);
    expect(await chain.revert("one")).toMatchObject({ id: one.id, tip: one.tip });
    const { id } = await chain.snapshot("one");
    await expect(chain.revert("one")).rejects.toThrow(`revert: snapshot: found 'one', the name of the snapshots ${one.id}, ${id}, allowed is`);
    await chain.deleteSnapshot(id);
    await chain.deleteSnapshot("one");
    expect(await chain.snapshots()).toEqual([]);
});

test("a path may have a slash at its end, and none in front", async () => {
    const status = await chain.status();
    for (const path of ["/", "", undefined]) expect(await chain.lab("GET", path)).toEqual(status);
    expect(await chain.lab("GET", "round/")).toEqual(await chain.lab("GET", "/round"));
    expect(await chain.api("blocks/")).toEqual(await chain.api("/blocks"));
    await expect(chain.lab("GET", "/none")).rejects.toThrow(ApiError);
});

test("each node of --api-nodes has its API", async () => {
    expect(testnet.urls).toHaveLength(2);
    expect(testnet.urls[0]).toBe(testnet.url);
    const answer = await fetch(`${testnet.urls[1]}/node/status`);
    expect(await answer.json()).toMatchObject({ data: { synced: true } });
});

/** Reads a stream of events to its end. */
async function read(events) {
    for await (const event of events) expect(event).toBeDefined();
    return "the end";
}

test("a stream of events fails if its testnet is killed", async () => {
    const other = await Testnet.start({ delegates: 3 });
    const apart = await other.chain();
    const late = await other.events();
    const reading = [other, apart].map(async (network) => read(await network.events()).catch((why) => why));
    await other.status();
    process.kill(other.pid, "SIGKILL");
    for (const error of await Promise.all(reading)) {
        expect(error).toBeInstanceOf(GoneError);
        expect(error).toMatchObject({ message: "the testnet was ended by SIGKILL", ending: { signal: "SIGKILL" } });
    }
    await expect(read(late)).rejects.toThrow(GoneError);
    await other.stop();
});

test("a stream of events ends with a testnet that is stopped, here or by a signal that asks for it, and with its chain", async () => {
    for (const end of [(one) => one.stop(), (one) => process.kill(one.pid, "SIGINT"), (one) => process.kill(one.pid, "SIGTERM")]) {
        const other = await Testnet.start({ delegates: 3 });
        const reading = read(await other.events());
        await end(other);
        expect(await reading).toBe("the end");
        await other.stop();
    }
    const apart = await testnet.chain();
    const reading = read(await apart.events());
    const [same] = (await testnet.chains()).filter(({ id }) => id === apart.id);
    await same.delete();
    expect(await reading).toBe("the end");
});
