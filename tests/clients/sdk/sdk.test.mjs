// What a wallet developer does first: a transfer, then a delegate of one's own, then a vote for it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Identities, Testnet, Transactions } from "./testnet.mjs";

const { BuilderFactory } = Transactions;
let testnet;

before(async () => {
    testnet = await Testnet.start("--speed", "200", "--seed", "11");
    // Version-2 transactions are allowed once block 2 is there.
    await testnet.until("block 2", () => testnet.height(), (height) => height >= 2);
});

after(async () => {
    assert.equal(await testnet.stop(), 0, "a stopped testnet ends with code 0");
});

test("the printed accounts hold what was printed, and belong to their passphrases", async () => {
    assert.equal(testnet.accounts.length, 10);
    for (const account of testnet.accounts) {
        assert.equal(Identities.Address.fromPassphrase(account.passphrase, 23), account.address);
        const wallet = await testnet.wallet(account.address);
        assert.equal(wallet.balance, account.balance);
        assert.equal(wallet.nonce, "0");
    }
});

test("configuration is that of the SDK's testnet preset", async () => {
    const { body } = await testnet.client.api("node").configuration();
    const { data } = body;
    assert.equal(data.version, 23);
    assert.equal(data.wif, 186);
    assert.equal(data.token, "TARK");
    assert.equal(data.constants.activeDelegates, 51);
    assert.equal(data.constants.blocktime, 8);
    assert.equal(data.constants.aip11, true);
    assert.equal(data.nethash, testnet.nethash);
    const crypto = (await testnet.client.api("node").crypto()).body.data;
    assert.equal(crypto.genesisBlock.payloadHash, testnet.nethash);
    assert.equal(crypto.network.pubKeyHash, 23);
    assert.equal(crypto.milestones.length, 5);
});

test("a transfer is signed, posted, confirmed, and seen by both parties", async () => {
    const [sender] = testnet.accounts;
    const recipient = Identities.Address.fromPassphrase("a wallet nobody has used yet", 23);
    const transaction = BuilderFactory.transfer()
        .recipientId(recipient)
        .amount("12345678900")
        .vendorField("hello, dposlab: żółw")
        .nonce("1")
        .sign(sender.passphrase)
        .build()
        .toJson();

    const body = await testnet.post(transaction);
    assert.deepEqual(body.data, {
        accept: [transaction.id],
        broadcast: [transaction.id],
        excess: [],
        invalid: [],
    });
    assert.equal(body.errors ?? null, null);

    const { body: confirmed } = await testnet.until(
        "the transfer",
        () => testnet.client.api("transactions").get(transaction.id),
        (response) => response.body.data.confirmations > 0,
    );
    assert.equal(confirmed.data.amount, "12345678900");
    assert.equal(confirmed.data.fee, "10000000");
    assert.equal(confirmed.data.sender, sender.address);
    assert.equal(confirmed.data.recipient, recipient);
    assert.equal(confirmed.data.vendorField, "hello, dposlab: żółw");
    assert.equal(confirmed.data.signature, transaction.signature);

    const from = await testnet.wallet(sender.address);
    assert.equal(from.nonce, "1");
    assert.equal(from.publicKey, sender.publicKey);
    assert.equal(BigInt(from.balance), BigInt(sender.balance) - 12345678900n - 10000000n);
    assert.equal((await testnet.wallet(recipient)).balance, "12345678900");

    const block = (await testnet.client.api("blocks").get(confirmed.data.blockId)).body.data;
    assert.equal(block.id, confirmed.data.blockId);
    assert.equal(block.transactions, 1);
    assert.equal(block.forged.fee, "10000000");
    const inBlock = (await testnet.client.api("blocks").transactions(block.id)).body;
    assert.deepEqual(inBlock.data.map(({ id }) => id), [transaction.id]);

    for (const [id, list] of [[sender.address, "transactionsSent"], [recipient, "transactionsReceived"]]) {
        const listed = (await testnet.client.api("wallets")[list](id)).body;
        // The recipient's only one is this; the sender was also paid by genesis, which is not "sent".
        assert.deepEqual(listed.data.map(({ id }) => id), [transaction.id]);
        assert.equal(listed.meta.totalCount, 1);
    }
    const all = (await testnet.client.api("wallets").transactions(sender.address)).body;
    assert.equal(all.meta.totalCount, 2, "the transfer, and genesis' payment to the account");
    assert.equal(all.data[0].id, transaction.id);
});

test("a memo that was cut inside an emoji is taken as it was signed", async () => {
    const sender = testnet.accounts[9];
    const signed = BuilderFactory.transfer()
        .recipientId(sender.address)
        .amount("1")
        .vendorField("cut 😀".slice(0, 5))
        .nonce("1")
        .sign(sender.passphrase);
    assert.equal(signed.verify(), true);
    const json = signed.getStruct();
    assert.match(JSON.stringify(json), /"cut \\ud83d"/);
    await testnet.confirm(json);
    const { data } = (await testnet.client.api("transactions").get(json.id)).body;
    assert.equal(data.vendorField, "cut \ufffd");
    const found = (await testnet.client.api("transactions").search({ vendorField: "cut 😀".slice(0, 5) })).body;
    assert.deepEqual(found.data.map(({ id }) => id), [json.id]);
});

test("a delegate is registered, voted for, and its weight shows", async () => {
    const [, candidate, voter] = testnet.accounts;
    const registration = BuilderFactory.delegateRegistration()
        .usernameAsset("newcomer")
        .nonce("1")
        .sign(candidate.passphrase)
        .build()
        .toJson();
    await testnet.confirm(registration);
    const before = (await testnet.client.api("delegates").get("newcomer")).body.data;
    assert.equal(before.address, candidate.address);
    assert.equal(String(before.votes), "0");

    const vote = BuilderFactory.vote()
        .votesAsset([`+${candidate.publicKey}`])
        .nonce("1")
        .sign(voter.passphrase)
        .build()
        .toJson();
    const confirmed = await testnet.confirm(vote);
    assert.equal(confirmed.recipient, voter.address);

    const wallet = await testnet.wallet(voter.address);
    assert.equal(wallet.vote, candidate.publicKey);
    assert.equal(wallet.attributes.vote, candidate.publicKey);
    const after = (await testnet.client.api("delegates").get("newcomer")).body.data;
    assert.equal(BigInt(after.votes), BigInt(wallet.balance), "the voter's balance after the fee");
    const voters = (await testnet.client.api("delegates").voters("newcomer")).body;
    assert.deepEqual(voters.data.map(({ address }) => address), [voter.address]);

    const votes = (await testnet.client.api("wallets").votes(voter.address)).body;
    assert.deepEqual(votes.data.map(({ id }) => id), [vote.id]);

    const unvote = BuilderFactory.vote()
        .votesAsset([`-${candidate.publicKey}`])
        .nonce("2")
        .sign(voter.passphrase)
        .build()
        .toJson();
    await testnet.confirm(unvote);
    assert.equal((await testnet.wallet(voter.address)).vote, undefined);
    assert.equal(String((await testnet.client.api("delegates").get("newcomer")).body.data.votes), "0");
});

test("an ECDSA signature in version 2 is as good as Schnorr", async () => {
    const [, , , sender] = testnet.accounts;
    const builder = BuilderFactory.transfer().recipientId(sender.address).amount("1").nonce("1");
    builder.data.senderPublicKey = sender.publicKey;
    const { Crypto } = await import("./testnet.mjs").then(() => import("node:module")).then(({ createRequire }) =>
        createRequire(import.meta.url)("@arkecosystem/crypto"),
    );
    const keys = Identities.Keys.fromPassphrase(sender.passphrase);
    const hash = Transactions.Utils.toHash(builder.data, { excludeSignature: true, excludeSecondSignature: true });
    builder.data.signature = Crypto.Hash.signECDSA(hash, keys);
    const transaction = builder.build().toJson();
    assert.notEqual(transaction.signature.length, 128);
    await testnet.confirm(transaction);
});

test("refusals are answered one by one and nothing is lost", async () => {
    const [, , , , sender] = testnet.accounts;
    const transfer = (nonce, amount) =>
        BuilderFactory.transfer().recipientId(sender.address).amount(amount).nonce(nonce).sign(sender.passphrase);
    const good = transfer("1", "1").build().toJson();
    const gap = transfer("7", "1").build().toJson();
    const tooMuch = transfer("2", "999999999999999999").build().toJson();
    const cheap = transfer("2", "1").fee("1").sign(sender.passphrase).build().toJson();
    const forged = { ...transfer("2", "3").build().toJson(), amount: "4" };

    const { data, errors } = await testnet.post(good, gap, tooMuch, cheap, forged);
    assert.deepEqual(data.accept, [good.id]);
    assert.deepEqual(data.excess, []);
    assert.equal(data.invalid.length, 4);
    assert.equal(errors[gap.id][0].type, "ERR_APPLY");
    assert.equal(
        errors[gap.id][0].message,
        `Cannot apply a transaction with nonce 7: the sender ${sender.publicKey} has nonce 1.`,
    );
    assert.equal(errors[tooMuch.id][0].message, "Insufficient balance in the wallet.");
    assert.equal(errors[cheap.id][0].type, "ERR_LOW_FEE");
    const altered = data.invalid.find((id) => ![gap.id, tooMuch.id, cheap.id].includes(id));
    assert.equal(errors[altered][0].type, "ERR_BAD_DATA");

    const twice = await testnet.post(gap);
    assert.equal(twice.errors[gap.id][0].type === "ERR_DUPLICATE" || twice.errors[gap.id][0].type === "ERR_APPLY", true);
    await testnet.until(
        "the good one of the batch",
        () => testnet.client.api("transactions").get(good.id),
        (response) => response.body.data.confirmations > 0,
    );
});

test("a request that is none is refused as a whole", async () => {
    const status = async (body) => {
        const response = await fetch(`${testnet.url}/transactions`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body,
        });
        return [response.status, await response.json()];
    };
    for (const body of ["", "{", "[]", "{}", '{"transactions":[]}', '{"transactions":[{}]}', '{"transactions":7}']) {
        const [code, error] = await status(body);
        assert.equal(code, 422, body);
        assert.equal(error.statusCode, 422);
        assert.equal(error.error, "Unprocessable Entity");
        assert.equal(typeof error.message, "string");
    }
});

test("lists page as the SDK expects", async () => {
    const page = (await testnet.client.api("delegates").all({ limit: 20, page: 2 })).body;
    assert.equal(page.meta.count, 20);
    assert.equal(page.data[0].rank, 21);
    const blocks = (await testnet.client.api("blocks").all({ limit: 2 })).body;
    assert.equal(blocks.data.length, 2);
    assert.equal(blocks.data[0].height, blocks.data[1].height + 1);
    const last = (await testnet.client.api("blocks").last()).body.data;
    assert.ok(last.height >= blocks.data[0].height);
    const first = (await testnet.client.api("blocks").first()).body.data;
    assert.equal(first.height, 1);
});
