// Every method of every resource of the npm client, found by reflection, against a testnet whose clock stands.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { Identities, Testnet, Transactions } from "./testnet.mjs";

const { Resources } = createRequire(import.meta.url)("@arkecosystem/client/dist/resources");
const { BuilderFactory } = Transactions;
const SECRET = "ab".repeat(32);

let testnet;
/** Ids of what the cases look for. */
const known = {};

async function advance(slots) {
    const response = await fetch(testnet.url.replace(/\/api$/, "/lab/advance"), {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ slots }),
    });
    assert.equal(response.status, 200);
}

/** Posts what must be accepted. */
async function post(...transactions) {
    const body = await testnet.post(...transactions);
    assert.deepEqual(body.data.accept, transactions.map(({ id }) => id), JSON.stringify(body));
}

before(async () => {
    testnet = await Testnet.start("--pace", "manual", "--seed", "12");
    await advance(3);
    const [sender, recipient, voter, locker] = testnet.accounts;
    const delegate = (await testnet.client.api("delegates").all({ limit: 1 })).body.data[0];
    const sign = (builder, account, nonce) => builder.nonce(nonce).sign(account.passphrase).build().toJson();
    const transfer = sign(
        BuilderFactory.transfer().recipientId(recipient.address).amount("1234500000").vendorField("every method"),
        sender,
        "1",
    );
    const vote = sign(BuilderFactory.vote().votesAsset([`+${delegate.publicKey}`]), voter, "1");
    const lock = (nonce) =>
        sign(
            BuilderFactory.htlcLock()
                .htlcLockAsset({
                    secretHash: createHash("sha256").update(Buffer.from(SECRET, "hex")).digest("hex"),
                    expiration: { type: 2, value: 10000 },
                })
                .recipientId(recipient.address)
                .amount("5000000"),
            locker,
            nonce,
        );
    const [open, closed] = [lock("1"), lock("2")];
    await post(transfer, vote, open, closed);
    await advance(2);
    const claim = sign(
        BuilderFactory.htlcClaim().htlcClaimAsset({ lockTransactionId: closed.id, unlockSecret: SECRET }),
        recipient,
        "1",
    );
    await post(claim);
    await advance(2);
    const pending = sign(BuilderFactory.transfer().recipientId(recipient.address).amount("1"), sender, "2");
    await post(pending);
    Object.assign(known, { sender, recipient, voter, locker, delegate, transfer, vote, open, closed, claim, pending });
    known.block = (await testnet.client.api("transactions").get(transfer.id)).body.data.blockId;
});

after(async () => {
    assert.equal(await testnet.stop(), 0);
});

const ids = ({ data }) => data.map(({ id }) => id);
const addresses = ({ data }) => data.map(({ address }) => address);

/** A case for every method: `[arguments, what its body must be]`. */
const CASES = {
    "blocks.all": () => [[{ limit: 3, height: { from: 2, to: 3 } }], ({ data }) => assert.deepEqual(data.map(({ height }) => height), [3, 2])],
    "blocks.first": () => [[], ({ data }) => assert.equal(data.height, 1)],
    "blocks.last": () => [[], ({ data }) => assert.equal(data.confirmations, 0)],
    "blocks.get": () => [[known.block], ({ data }) => assert.equal(data.id, known.block)],
    "blocks.transactions": () => [[known.block, { limit: 50 }], (body) => assert.ok(ids(body).includes(known.transfer.id))],
    "blocks.search": () => [[{ id: known.block }, { limit: 1 }], (body) => assert.deepEqual(ids(body), [known.block])],
    "delegates.all": () => [[{ orderBy: "rank:asc", limit: 51 }], ({ data }) => assert.deepEqual(data.map(({ rank }) => rank), [...Array(51).keys()].map((rank) => rank + 1))],
    "delegates.get": () => [[known.delegate.username], ({ data }) => assert.equal(data.publicKey, known.delegate.publicKey)],
    "delegates.blocks": () => [[known.delegate.username, { limit: 2 }], ({ data }) => data.forEach((block) => assert.equal(block.generator.publicKey, known.delegate.publicKey))],
    "delegates.voters": () => [[known.delegate.username], (body) => assert.ok(addresses(body).includes(known.voter.address))],
    "delegates.search": () => [[{ username: known.delegate.username }, { limit: 1 }], ({ data }) => assert.equal(data[0].username, known.delegate.username)],
    "locks.all": () => [[{ orderBy: "amount:asc" }], ({ data }) => assert.deepEqual(data.map(({ lockId }) => lockId), [known.open.id])],
    "locks.get": () => [[known.open.id], ({ data }) => assert.equal(data.amount, "5000000")],
    "locks.search": () => [[{ lockId: known.open.id }], ({ meta }) => assert.equal(meta.totalCount, 1)],
    "locks.unlocked": () => [[{ ids: [known.closed.id] }], (body) => assert.deepEqual(ids(body), [known.claim.id])],
    "node.configuration": () => [[], ({ data }) => assert.equal(data.nethash, testnet.nethash)],
    "node.crypto": () => [[], ({ data }) => assert.equal(data.network.pubKeyHash, 23)],
    "node.fees": () => [[], ({ data, meta }) => (assert.equal(meta.days, 7), assert.ok(data.some(({ key, max }) => key === "transfer" && max === "10000000")))],
    "node.status": () => [[], ({ data }) => assert.equal(data.synced, true)],
    "node.syncing": () => [[], ({ data }) => assert.equal(data.syncing, false)],
    "peers.all": () => [[{ limit: 10, version: "2.6.*" }], ({ data }) => assert.equal(data.length, 10)],
    "peers.get": () => [["198.18.0.2"], ({ data }) => assert.equal(data.ip, "198.18.0.2")],
    "rounds.delegates": () => [[1], ({ data }) => assert.equal(data.length, 51)],
    "transactions.all": () => [[{ type: 0, amount: { from: 1234500000, to: 1234500000 } }], (body) => assert.deepEqual(ids(body), [known.transfer.id])],
    "transactions.create": () => {
        const transfer = BuilderFactory.transfer().recipientId(known.sender.address).amount("7").nonce("3");
        const next = transfer.sign(known.locker.passphrase).build().toJson();
        return [[{ transactions: [next] }], ({ data }) => assert.deepEqual(data.accept, [next.id])];
    },
    "transactions.get": () => [[known.transfer.id], ({ data }) => (assert.equal(data.vendorField, "every method"), assert.ok(data.confirmations > 0))],
    "transactions.allUnconfirmed": () => [[{ limit: 10 }], (body) => assert.ok(ids(body).includes(known.pending.id))],
    "transactions.getUnconfirmed": () => [[known.pending.id], ({ data }) => assert.equal(data.confirmations, 0)],
    "transactions.search": () => [[{ senderPublicKey: known.sender.publicKey, vendorField: "every" }, { limit: 5 }], (body) => assert.deepEqual(ids(body), [known.transfer.id])],
    "transactions.types": () => [[], ({ data }) => assert.equal(data["1"].HtlcLock, 8)],
    "transactions.fees": () => [[], ({ data }) => assert.equal(data["1"].transfer, "10000000")],
    "transactions.schemas": () => [[], ({ data }) => assert.ok(data["1"]["0"].recipientId)],
    "votes.all": () => [[{ limit: 1 }], (body) => assert.deepEqual(ids(body), [known.vote.id])],
    "votes.get": () => [[known.vote.id], ({ data }) => assert.deepEqual(data.asset.votes, [`+${known.delegate.publicKey}`])],
    "wallets.all": () => [[{ limit: 5 }], ({ meta }) => assert.equal(meta.count, 5)],
    "wallets.get": () => [[known.sender.publicKey], ({ data }) => assert.equal(data.address, known.sender.address)],
    "wallets.transactions": () => [[known.recipient.address], (body) => assert.ok(ids(body).includes(known.transfer.id))],
    "wallets.transactionsReceived": () => [[known.recipient.address, { limit: 100 }], (body) => assert.ok(ids(body).includes(known.transfer.id))],
    "wallets.transactionsSent": () => [[known.sender.address], (body) => assert.deepEqual(ids(body), [known.transfer.id])],
    "wallets.votes": () => [[known.voter.address], (body) => assert.deepEqual(ids(body), [known.vote.id])],
    "wallets.top": () => [[{ limit: 2 }], ({ data }) => assert.ok(BigInt(data[0].balance) >= BigInt(data[1].balance))],
    "wallets.search": () => [[{ address: known.sender.address }], (body) => assert.deepEqual(addresses(body), [known.sender.address])],
    "wallets.locks": () => [[known.locker.address], ({ data }) => assert.deepEqual(data.map(({ lockId }) => lockId), [known.open.id])],
};

const methods = Object.entries(Resources).flatMap(([resource, { prototype }]) =>
    Object.getOwnPropertyNames(prototype)
        .filter((name) => name !== "constructor")
        .map((name) => `${resource}.${name}`),
);

test("there is a case for every method, and for nothing else", () => {
    assert.deepEqual(Object.keys(CASES).sort(), methods.toSorted());
});

for (const method of methods) {
    test(method, async () => {
        const [resource, name] = method.split(".");
        const [parameters, check] = CASES[method]();
        const { status, body } = await testnet.client.api(resource)[name](...parameters);
        assert.equal(status, 200);
        check(body);
    });
}

test("what is unknown is an error that the client can read", async () => {
    await assert.rejects(testnet.client.api("wallets").get("nobody"), ({ response }) => {
        assert.equal(response.status, 404);
        assert.equal(response.body.message, "Wallet not found");
        return true;
    });
});

test("what was posted is forged once the clock moves", async () => {
    await advance(2);
    const { body } = await testnet.client.api("transactions").get(known.pending.id);
    assert.ok(body.data.confirmations > 0);
    assert.equal(Identities.Address.fromPublicKey(body.data.senderPublicKey, 23), known.sender.address);
});
