// Transactions of every type made and signed by the reference library, from values drawn with a fixed seed.
const { createHash } = require("node:crypto");
const { Identities, Managers, Transactions, Enums } = require("@arkecosystem/crypto");
const Magistrate = require("@arkecosystem/core-magistrate-crypto");

const { Builders } = Transactions.BuilderFactory ? { Builders: Transactions.BuilderFactory } : { Builders: undefined };

let registered = false;
function registerMagistrate() {
    if (registered) return;
    registered = true;
    for (const type of Object.values(Magistrate.Transactions)) {
        Transactions.TransactionRegistry.registerTransactionType(type);
    }
}

/** Numbers and texts that depend on a seed alone. */
class Draw {
    constructor(seed) {
        this.seed = seed;
        this.count = 0;
    }
    hex() {
        return createHash("sha256").update(`${this.seed}/${this.count++}`).digest("hex");
    }
    below(limit) {
        return Number(BigInt("0x" + this.hex().slice(0, 12)) % BigInt(limit));
    }
    passphrase(name) {
        return `own vectors ${this.seed} ${name} ${this.hex().slice(0, 8)}`;
    }
}

/**
 * One sample: { label, network, height, struct, bytes, id, passphrase, secondPassphrase, participants, ecdsa, ... }.
 * `version` 1 makes those types that existed then.
 */
function samples(network, height, version, seed) {
    Managers.configManager.setFromPreset(network);
    Managers.configManager.setHeight(height);
    registerMagistrate();
    const byte = Managers.configManager.get("network.pubKeyHash");
    const out = [];
    const address = (draw) => Identities.Address.fromPassphrase(draw.passphrase("recipient"), byte);
    const key = (draw, name = "other") => Identities.PublicKey.fromPassphrase(draw.passphrase(name));

    const add = (label, build, options = {}) => {
        const draw = new Draw(`${seed} ${network} ${height} v${version} ${label}`);
        const passphrase = draw.passphrase("sender");
        const builder = build(draw, passphrase);
        builder.version(version).network(byte);
        if (version === 1) builder.data.timestamp = 305000000 + draw.below(1000000);
        else builder.nonce(String(1 + draw.below(100000)));
        const sample = { label: `${network}@${height} v${version} ${label}`, network, height, version };
        if (options.wallet) {
            const wallet = options.wallet(draw);
            builder.senderPublicKey(Identities.PublicKey.fromMultiSignatureAsset(wallet.asset));
            for (const index of wallet.signers) builder.multiSign(wallet.passphrases[index], index);
            Object.assign(sample, { multiSignature: wallet.asset, passphrases: wallet.passphrases });
            sample.participants = wallet.signers.map((index) => [index, wallet.passphrases[index]]);
        } else if (options.participants) {
            builder.senderPublicKey(Identities.PublicKey.fromPassphrase(builder.members[0]));
            builder.members.forEach((member, index) => builder.multiSign(member, index));
            builder.sign(builder.members[0]);
            Object.assign(sample, { passphrases: builder.members, passphrase: undefined });
            sample.participants = builder.members.map((member, index) => [index, member]);
            sample.signer = builder.members[0];
        } else {
            sample.passphrase = sample.signer = passphrase;
            if (options.ecdsa) {
                builder.senderPublicKey(Identities.PublicKey.fromPassphrase(passphrase));
                signEcdsa(builder, passphrase);
                sample.ecdsa = true;
            } else builder.sign(passphrase);
            if (options.second) {
                sample.secondPassphrase = draw.passphrase("second");
                builder.secondSign(sample.secondPassphrase);
            }
        }
        const built = builder.build();
        sample.struct = { ...builder.getStruct(), id: built.id };
        sample.transaction = built;
        sample.bytes = built.serialized.toString("hex");
        sample.id = built.id;
        out.push(sample);
    };

    const core = Transactions.BuilderFactory;
    const transfer = (draw) =>
        core.transfer().recipientId(address(draw)).amount(String(1 + draw.below(1e9))).expiration(0);
    const wallet = (min, count) => (draw) => {
        const passphrases = Array.from({ length: count }, (_, index) => draw.passphrase(`member ${index}`));
        const asset = { min, publicKeys: passphrases.map((text) => Identities.PublicKey.fromPassphrase(text)) };
        const signers = Array.from({ length: min }, (_, place) => count - 1 - place);
        return { asset, passphrases, signers };
    };
    const registration = (min, count) => (draw) => {
        const { asset, passphrases } = wallet(min, count)(draw);
        const builder = core.multiSignature().multiSignatureAsset(asset);
        builder.members = passphrases;
        return builder;
    };

    add("transfer", transfer);
    add("transfer expiring", (draw) => transfer(draw).expiration(1 + draw.below(1e9)));
    add("transfer vendorField utf8", (draw) => transfer(draw).vendorField(`grüße Ѧ ${draw.below(1000)} 🚀`));
    add("transfer vendorField full", (draw) => transfer(draw).vendorField("v".repeat(64)));
    add("transfer largest", (draw) => transfer(draw).amount("9223372036854775807").fee("9223372036854775807"));
    add("transfer ecdsa", transfer, { ecdsa: true });
    add("transfer second signature", transfer, { second: true });
    add("second signature registration", (draw) => core.secondSignature().signatureAsset(draw.passphrase("second")));
    add("delegate registration", (draw) => core.delegateRegistration().usernameAsset(`own_${draw.below(1e6)}!@$&.`));
    add("vote", (draw) => core.vote().votesAsset([`+${key(draw)}`]));
    add("unvote", (draw) => core.vote().votesAsset([`-${key(draw)}`]));
    if (version === 1) return out;

    add("multisignature registration 2of3", registration(2, 3), { participants: true });
    add("multisignature registration 1of1", registration(1, 1), { participants: true });
    add("multisignature registration 16of16", registration(16, 16), { participants: true });
    add("transfer from multisignature 2of3", transfer, { wallet: wallet(2, 3) });
    add("transfer from multisignature 5of15", transfer, { wallet: wallet(5, 15) });
    const lockId = (draw) => draw.hex();
    add("ipfs", () => core.ipfs().ipfsAsset("QmYSK2JyM3RyDyB52caZCTKFR3HKniEcMnNJYdk8DQ6KKB"));
    const payments = (count) => (draw) => {
        const builder = core.multiPayment();
        for (let n = 0; n < count; n++) builder.addPayment(address(draw), String(1 + draw.below(1e9)));
        return builder;
    };
    add("multi payment", payments(3));
    add("multi payment many", payments(64));
    add("multi payment vendorField", (draw) => payments(2)(draw).vendorField("several"));
    add("delegate resignation", () => core.delegateResignation());
    const lock = (type) => (draw) =>
        core.htlcLock().recipientId(address(draw)).amount(String(1 + draw.below(1e9)))
            .htlcLockAsset({ secretHash: draw.hex(), expiration: { type, value: 1 + draw.below(1e9) } });
    add("htlc lock height", lock(2));
    add("htlc lock epoch", (draw) => lock(1)(draw).vendorField("locked"));
    add("htlc claim", (draw) => core.htlcClaim().htlcClaimAsset({ lockTransactionId: lockId(draw), unlockSecret: draw.hex() }));
    add("htlc refund", (draw) => core.htlcRefund().htlcRefundAsset({ lockTransactionId: lockId(draw) }));

    const group2 = Magistrate.Builders;
    const website = (draw) => `https://own${draw.below(1000)}.example`;
    add("business registration", (draw) => new group2.BusinessRegistrationBuilder().businessRegistrationAsset({
        name: `Own ${draw.below(1000)}`, website: website(draw), vat: "DE12345678", repository: "https://own.example/code" }));
    add("business registration minimal", (draw) => new group2.BusinessRegistrationBuilder().businessRegistrationAsset({
        name: `Own${draw.below(1000)}`, website: website(draw) }));
    add("business resignation", () => new group2.BusinessResignationBuilder());
    add("business update", (draw) => new group2.BusinessUpdateBuilder().businessUpdateAsset({ name: `New - ${draw.below(1000)}.` }));
    add("business update all", (draw) => new group2.BusinessUpdateBuilder().businessUpdateAsset({
        name: "New", website: website(draw), vat: "12345678", repository: "https://own.example/new" }));
    const ports = { "b-plugin": 1, "10": 2, "@arkecosystem/core-api": 4003, "a-plugin": 65535, "2": 0 };
    add("bridgechain registration", (draw) => new group2.BridgechainRegistrationBuilder().bridgechainRegistrationAsset({
        name: `chain${draw.below(1000)}`, seedNodes: ["1.2.3.4", "2001:db8::7"], genesisHash: draw.hex(),
        bridgechainRepository: "https://own.example/chain", ports }));
    add("bridgechain registration assets", (draw) => new group2.BridgechainRegistrationBuilder().bridgechainRegistrationAsset({
        name: `chain${draw.below(1000)}`, seedNodes: ["1.2.3.4"], genesisHash: draw.hex(),
        bridgechainRepository: "https://own.example/chain", bridgechainAssetRepository: "https://own.example/assets",
        ports: { "@arkecosystem/core-api": 4003 } }));
    add("bridgechain resignation", (draw) => new group2.BridgechainResignationBuilder().bridgechainResignationAsset(draw.hex()));
    add("bridgechain update", (draw) => new group2.BridgechainUpdateBuilder().bridgechainUpdateAsset({
        bridgechainId: draw.hex(), seedNodes: ["5.6.7.8"] }));
    add("bridgechain update all", (draw) => new group2.BridgechainUpdateBuilder().bridgechainUpdateAsset({
        bridgechainId: draw.hex(), seedNodes: ["5.6.7.8"], ports, bridgechainRepository: "https://own.example/c",
        bridgechainAssetRepository: "https://own.example/d" }));
    return out;
}

/** What the library's own builder does for version 1, applied to version 2. */
function signEcdsa(builder, passphrase) {
    const { Crypto } = require("@arkecosystem/crypto");
    const hash = Transactions.Utils.toHash(
        { ...builder.getSigningObject ? builder.getSigningObject() : builder.data },
        { excludeSignature: true, excludeSecondSignature: true },
    );
    builder.data.signature = Crypto.Hash.signECDSA(hash, Identities.Keys.fromPassphrase(passphrase));
}

module.exports = { Draw, samples, registerMagistrate };
