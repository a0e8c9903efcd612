// Writes the crate's own small vectors: what the reference library makes of invented passphrases.
// Run after `npm ci`: node vectors.js ../../data/protocol
const fs = require("node:fs");
const path = require("node:path");
const { Blocks, Crypto, Identities, Managers, Transactions } = require("@arkecosystem/crypto");
const { Draw, samples, registerMagistrate } = require("./samples.js");
const { mutations } = require("./broken.js");

const directory = process.argv[2];
const write = (name, value) => fs.writeFileSync(path.join(directory, name), JSON.stringify(value, null, 1) + "\n");
const plain = (value) => JSON.parse(JSON.stringify(value));
const NETWORKS = ["mainnet", "devnet", "testnet", "unitnet"];
registerMagistrate();

function identities() {
    const each = (make) => Object.fromEntries(NETWORKS.map((name) => {
        Managers.configManager.setFromPreset(name);
        return [name, make(Managers.configManager.get("network"))];
    }));
    const identity = (passphrase) => ({
        passphrase,
        ...((keys) => ({ privateKey: keys.privateKey, publicKey: keys.publicKey }))(Identities.Keys.fromPassphrase(passphrase)),
        addresses: each((network) => Identities.Address.fromPassphrase(passphrase, network.pubKeyHash)),
        wif: each((network) => Identities.WIF.fromPassphrase(passphrase, { wif: network.wif })),
        message: Crypto.Message.sign(`a message of ${passphrase}`, passphrase),
    });
    const wallet = (min, count) => {
        const draw = new Draw(`wallet ${min} ${count}`);
        const publicKeys = Array.from({ length: count }, () => Identities.PublicKey.fromPassphrase(draw.passphrase("m")));
        const publicKey = Identities.PublicKey.fromMultiSignatureAsset({ min, publicKeys });
        return { asset: { min, publicKeys }, publicKey, address: { testnet: Identities.Address.fromPublicKey(publicKey, 23) } };
    };
    write("identities.json", {
        identities: ["", "our own passphrase", "наш ключ Ѧ", "  blanks stay  "].map(identity),
        multiSignature: [wallet(1, 1), wallet(2, 3), wallet(16, 16)],
    });
}

function signatures() {
    write("signatures.json", Array.from({ length: 6 }, (_, n) => {
        const draw = new Draw(`signature ${n}`);
        const keys = Identities.Keys.fromPassphrase(draw.passphrase("signer"));
        const hash = Buffer.from(draw.hex(), "hex");
        const ecdsa = Crypto.Hash.signECDSA(hash, keys);
        const schnorr = Crypto.Hash.signSchnorr(hash, keys);
        const flip = (hex) => { const bytes = Buffer.from(hex, "hex"); bytes[20] ^= 1; return bytes.toString("hex"); };
        return {
            privateKey: keys.privateKey, publicKey: keys.publicKey, hash: hash.toString("hex"), ecdsa, schnorr,
            invalid: {
                schnorr: flip(schnorr), schnorrVerifies: Crypto.Hash.verifySchnorr(hash, flip(schnorr), keys.publicKey),
                ecdsa: flip(ecdsa), ecdsaVerifies: Crypto.Hash.verifyECDSA(hash, flip(ecdsa), keys.publicKey),
            },
        };
    }));
}

function transactions() {
    const entries = [["testnet", 2, 2], ["devnet", 4000000, 1], ["mainnet", 11273000, 2]].flatMap(([network, height, version]) =>
        samples(network, height, version, "own").map((sample) => {
            const { label, passphrase, passphrases, secondPassphrase, multiSignature, struct, bytes, id } = sample;
            const hash = Transactions.Utils.toHash(sample.transaction.data, { excludeSignature: true, excludeSecondSignature: true });
            return plain({
                label, network, height, passphrase, passphrases, secondPassphrase, multiSignature, json: struct,
                serialized: bytes, id, hashForSignature: hash.toString("hex"), verified: sample.transaction.verified,
            });
        }));
    write("transactions.json", entries.filter((entry) => !entry.label.startsWith("mainnet") || entry.label.includes("htlc")));
}

function broken() {
    Managers.configManager.setFromPreset("testnet");
    const all = samples("testnet", 100000, 2, "broken");
    Managers.configManager.setHeight(100000);
    const invalid = [];
    const malformed = [];
    all.forEach((sample, turn) => mutations(sample).forEach(({ label, json, bytes }, n) => {
        const size = (json ? JSON.stringify(json) : bytes).length;
        if (size > 1500 || n % 61 !== turn % 61) return;
        const entry = { label: `${sample.label}: ${label}`, network: "testnet", height: 100000 };
        try {
            const found = json ? Transactions.TransactionFactory.fromJson(plain(json)) : Transactions.TransactionFactory.fromHex(bytes);
            const same = found.id === (json ? json.id : sample.id);
            const result = { accepted: true, verified: found.verified };
            if (json) invalid.push({ ...entry, json, result: { ...result, idMatches: same, id: found.id } });
            else malformed.push({ label: sample.label, mutation: label, serialized: bytes, result: { ...result, sameId: same } });
        } catch (error) {
            const result = { accepted: false, error: error.name || error.constructor.name, message: error.message };
            if (json) invalid.push({ ...entry, json, result });
            else malformed.push({ label: sample.label, mutation: label, serialized: bytes, result });
        }
    }));
    // What the reference's lax grammar of numbers lets pass, strictly read ours refuses; that is tested elsewhere.
    write("invalid-transactions.json", invalid.filter((entry) => !/ = (""|\[\]|true|0|"0")$/.test(entry.label)));
    write("malformed-bytes.json", malformed);
}

function blocks() {
    const entries = [];
    for (const [network, height] of [["testnet", 2], ["testnet", 1000000000]]) {
        const all = samples(network, height, 2, "own").filter((sample) => !sample.label.includes("largest"));
        const full = Managers.configManager.getMilestone(height).block.idFullSha256;
        let previous = { height, id: full ? new Draw("full").hex() : "17184958558311101492" };
        for (const count of [0, 2, 5]) {
            Managers.configManager.setHeight(previous.height);
            const passphrase = new Draw(`forger ${previous.height}`).passphrase("forger");
            const keys = Identities.Keys.fromPassphrase(passphrase);
            const members = all.slice(0, count).map((sample) => Transactions.TransactionFactory.fromHex(sample.bytes).data);
            const total = (key) => members.reduce((sum, data) => sum + BigInt(data[key].toString()), 0n).toString();
            const block = Blocks.BlockFactory.make({
                version: 0, timestamp: 8000 + 8 * count, previousBlock: previous.id,
                previousBlockHex: full ? previous.id : Blocks.Block.toBytesHex(previous.id), height: previous.height + 1,
                numberOfTransactions: count, totalAmount: total("amount"), totalFee: total("fee"),
                reward: Managers.configManager.getMilestone(previous.height + 1).reward.toString(), payloadLength: 32 * count,
                payloadHash: Crypto.HashAlgorithms.sha256(members.map((data) => Buffer.from(data.id, "hex"))).toString("hex"),
                transactions: members,
            }, keys);
            const data = { ...block.data, transactions: block.transactions.map((one) => one.data) };
            entries.push(plain({
                label: `${network} ${block.data.height} of ${count}`, network, privateKey: keys.privateKey, json: block.toJson(),
                serialized: Blocks.Serializer.serializeWithTransactions(data).toString("hex"),
                headerSerialized: Blocks.Serializer.serialize(block.data).toString("hex"),
                id: block.data.id, idHex: block.data.idHex,
                verification: { verified: block.verification.verified, errors: block.verification.errors },
            }));
            previous = { height: previous.height + 1, id: block.data.id };
        }
    }
    write("blocks.json", entries);
}

function slots() {
    write("slots.json", NETWORKS.flatMap((network) => {
        Managers.configManager.setFromPreset(network);
        return [0, 3, 4, 7, 8, 65830364, 305118256, 4294967295 - 4294967295 % 8].map((epochSeconds) => ({
            network, epochSeconds, slot: Crypto.Slots.getSlotNumber(epochSeconds),
            slotTime: Crypto.Slots.getSlotTime(Crypto.Slots.getSlotNumber(epochSeconds)),
            forgingAllowed: Crypto.Slots.isForgingAllowed(epochSeconds),
        }));
    }));
}

identities();
signatures();
transactions();
broken();
blocks();
slots();
