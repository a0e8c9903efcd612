// The reference library and ours, each checking what the other makes. Ends with `N passed, N failed`.
const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { Blocks, Crypto, Identities, Managers, Transactions } = require("@arkecosystem/crypto");
const { Draw, samples, registerMagistrate } = require("./samples.js");
const { SAYS_OTHER, judge, mutations } = require("./broken.js");
const { networks } = require("./networks.js");
const { Tool } = require("./tool.js");

const tool = new Tool();
let passed = 0;
const failures = [];
const saidOther = new Set();

function same(label, ours, theirs) {
    const [one, other] = [JSON.stringify(ours), JSON.stringify(theirs)];
    if (one === other) passed++;
    else failures.push(`${label}\n    ours   ${one}\n    theirs ${other}`);
}

async function keys(network) {
    Managers.configManager.setFromPreset(network);
    const { pubKeyHash: byte, wif } = Managers.configManager.get("network");
    for (const passphrase of ["", " ", "own passphrase", "пароль Ѧ", "x".repeat(300)]) {
        const pair = Identities.Keys.fromPassphrase(passphrase);
        same(`keys of ${JSON.stringify(passphrase)} on ${network}`, await tool.ask({ op: "keys", network, passphrase }), {
            address: Identities.Address.fromPassphrase(passphrase, byte),
            publicKey: pair.publicKey,
            privateKey: pair.privateKey,
            wif: Identities.WIF.fromPassphrase(passphrase, { wif }),
        });
        const ours = await tool.ask({ op: "message", network, passphrase, message: `grüße ${passphrase}` });
        same("message", ours, Crypto.Message.sign(`grüße ${passphrase}`, passphrase));
        same("our message", Crypto.Message.verify(ours), true);
        same("their message", await tool.ask({ op: "check-message", message: ours }), { verified: true });
        const broken = { ...ours, message: "another" };
        same("a broken message", await tool.ask({ op: "check-message", message: broken }), { verified: Crypto.Message.verify(broken) });
    }
    for (let count = 1; count <= 16; count += 5) {
        const draw = new Draw(`asset ${count}`);
        const publicKeys = Array.from({ length: count }, () => Identities.PublicKey.fromPassphrase(draw.passphrase("k")));
        for (const min of [1, count]) {
            const publicKey = Identities.PublicKey.fromMultiSignatureAsset({ min, publicKeys });
            same(`wallet ${min} of ${count}`, await tool.ask({ op: "multisignature", network, min, publicKeys }), {
                publicKey,
                address: Identities.Address.fromPublicKey(publicKey, byte),
            });
        }
    }
}

/** Theirs read and signed anew by ours, and ours read by theirs. */
async function transactions(network, height, version) {
    const all = samples(network, height, version, "check");
    for (const sample of all) {
        const { label, bytes, id } = sample;
        const verified = sample.transaction.verified;
        const brief = (answer) => answer.error || { bytes: answer.bytes, id: answer.id, verified: answer.verified };
        const decoded = await tool.ask({ op: "decode", network, height, bytes });
        same(`${label}: decoded`, brief(decoded), { bytes, id, verified });
        const read = await tool.ask({ op: "read", network, height, transaction: sample.struct });
        same(`${label}: read`, brief(read), { bytes, id, verified });
        const theirs = Transactions.TransactionFactory.fromHex(bytes);
        same(`${label}: json`, decoded.json, JSON.parse(JSON.stringify(theirs.toJson())));

        const { signature, secondSignature, signatures, id: _, ...transaction } = sample.struct;
        const request = { op: "sign", network, height, transaction, participants: sample.participants };
        if (sample.signer) request.passphrase = sample.signer;
        if (sample.secondPassphrase) request.secondPassphrase = sample.secondPassphrase;
        if (sample.ecdsa) request.ecdsa = true;
        const made = await tool.ask(request);
        same(`${label}: signed by ours`, brief(made), { bytes, id, verified });
        if (made.error) continue;
        const back = Transactions.TransactionFactory.fromJson(made.json);
        same(`${label}: ours in theirs`, [back.id, back.verified], [id, verified]);
        if (sample.secondPassphrase) {
            const key = Identities.PublicKey.fromPassphrase(sample.secondPassphrase);
            same(`${label}: our second signature`, Transactions.Verifier.verifySecondSignature(back.data, key), true);
        }
        if (sample.multiSignature) {
            same(`${label}: our participants`, Transactions.Verifier.verifySignatures(back.data, sample.multiSignature), true);
        }
    }
    return all;
}

/** Ours names the first thing that is wrong, and the library all that it tried. */
function said(label, ours, theirs) {
    const known = SAYS_OTHER.find(([where, what]) => where.test(label) && what.test(theirs));
    if (known) saidOther.add(known);
    else if (ours && theirs.includes(ours)) passed++;
    else same(`${label}, what is said`, ours, theirs);
}

/** What is broken in the same way must be judged in the same way. */
async function broken(network, height, all) {
    for (const [number, sample] of all.entries()) {
        for (const { label, json, bytes } of mutations(sample, number)) {
            const request = json ? { op: "read", transaction: json } : { op: "decode", bytes };
            const answer = await tool.ask({ ...request, network, height, dialect: "reference" });
            const ours = answer.error ? "refused" : { verified: answer.verified, id: answer.id };
            const { outcome: theirs, complaint } = judge(json, bytes);
            same(`${sample.label}: ${label} (${answer.error})`, ours, theirs);
            if (json && answer.error && complaint) said(`${sample.label}: ${label}`, answer.reference, complaint);
            // Strictly read it may be refused for more reasons, but never pass for another transaction.
            const strict = await tool.ask({ ...request, network, height });
            if (!strict.error) same(`${sample.label}: ${label}, strictly`, { verified: strict.verified, id: strict.id }, theirs);
        }
    }
}

async function blocks(network, height, all) {
    Managers.configManager.setFromPreset(network);
    const draw = new Draw(`blocks ${network} ${height}`);
    const passphrase = draw.passphrase("forger");
    const full = Managers.configManager.getMilestone(height).block.idFullSha256;
    let previous = { height, id: full ? draw.hex() : "17184958558311101492" };
    // The last block of an old version: what follows it must be of the next one.
    const counts = Managers.configManager.getMilestone(height + 1).aip11 === Managers.configManager.getMilestone(height).aip11 ? [0, 1, 5, all.length] : [all.length];
    for (const count of counts) {
        const timestamp = 8 * (previous.height % 1000000);
        Managers.configManager.setHeight(previous.height);
        const bytes = all.slice(0, count).map((sample) => sample.bytes);
        const members = bytes.map((hex) => Transactions.TransactionFactory.fromHex(hex).data);
        const total = (key) => members.reduce((sum, data) => sum + BigInt(data[key].toString()), 0n).toString();
        const theirs = Blocks.BlockFactory.make({
            version: 0,
            timestamp,
            previousBlock: previous.id,
            previousBlockHex: full ? previous.id : Blocks.Block.toBytesHex(previous.id),
            height: previous.height + 1,
            numberOfTransactions: count,
            totalAmount: total("amount"),
            totalFee: total("fee"),
            reward: Managers.configManager.getMilestone(previous.height + 1).reward.toString(),
            payloadLength: 32 * count,
            payloadHash: Crypto.HashAlgorithms.sha256(members.map((data) => Buffer.from(data.id, "hex"))).toString("hex"),
            transactions: members,
        }, Identities.Keys.fromPassphrase(passphrase));
        const bytesOf = (block) => Blocks.Serializer.serializeWithTransactions({ ...block.data, transactions: block.transactions.map((one) => one.data) }).toString("hex");
        const label = `block ${network} ${previous.height + 1} of ${count}`;
        const ours = await tool.ask({
            op: "forge", network, timestamp, height: previous.height + 1, previousBlock: previous.id, transactions: bytes, passphrase,
        });
        same(`${label}: forged by ours`, [ours.id, ours.bytes], [theirs.data.id, bytesOf(theirs)]);
        if (ours.error) break;
        same(`${label}: errors`, ours.errors, theirs.verification.errors);
        same(`${label}: json`, ours.json, JSON.parse(JSON.stringify(theirs.toJson())));
        const back = Blocks.BlockFactory.fromHex(ours.bytes);
        same(`${label}: ours in theirs`, [back.data.id, back.verification.errors], [ours.id, ours.errors]);
        const decoded = await tool.ask({ op: "decode-block", network, bytes: bytesOf(theirs) });
        same(`${label}: decoded`, decoded.id, theirs.data.id);
        previous = { height: previous.height + 1, id: theirs.data.id };
    }
}

/** What /api/transactions/schemas answers, which a test of ours holds against a live node, and the library's schemas. */
function schemas() {
    const examples = JSON.parse(fs.readFileSync(path.join(__dirname, "../../../src/api/table/openapi/examples.json"), "utf8"));
    Managers.configManager.setFromPreset("testnet");
    Managers.configManager.setHeight(2);
    for (const dialect of ["documented", "core-2.6"]) {
        const ours = examples[dialect]["get /api/transactions/schemas"].answer.data;
        const names = Object.entries(ours).flatMap(([group, types]) => Object.keys(types).map((type) => [group, type]));
        same(`${dialect}: how many types have schemas`, names.length, 17);
        for (const [group, type] of names) {
            const theirs = Transactions.TransactionTypeFactory.get(Number(type), Number(group)).getSchema().properties;
            try {
                assert.deepStrictEqual(ours[group][type], JSON.parse(JSON.stringify(theirs)));
                passed++;
            } catch (error) {
                failures.push(`${dialect}: schema of type ${group}/${type}: ${error.message}`);
            }
        }
    }
}

async function main() {
    registerMagistrate();
    schemas();
    for (const network of ["testnet", "devnet", "mainnet", "unitnet"]) await keys(network);
    for (const [network, height, version] of [
        ["testnet", 1, 1], ["testnet", 2, 2], ["testnet", 100000, 2], ["unitnet", 4000000, 2],
        ["devnet", 4000000, 1], ["devnet", 4006000, 2], ["mainnet", 11272999, 1], ["mainnet", 11273000, 2],
    ]) {
        const all = await transactions(network, height, version);
        await blocks(network, height, all.filter((sample) => !sample.label.includes("largest")));
        // Under both sets of rules that the test network has: those of its first block, and all others'.
        if (network === "testnet" && height <= 2) {
            Managers.configManager.setHeight(height);
            await broken(network, height, all);
        }
    }
    await networks(tool, same);
    tool.end();
    for (const rule of SAYS_OTHER) same(`${rule}: is still needed`, saidOther.has(rule), true);
    failures.forEach((failure) => console.log(failure));
    console.log(`${passed} passed, ${failures.length} failed`);
    process.exitCode = failures.length ? 1 : 0;
}

main().catch((error) => {
    console.error(error);
    failures.forEach((failure) => console.log(failure));
    console.log(`${passed} passed, ${failures.length + 1} failed`);
    process.exit(1);
});
