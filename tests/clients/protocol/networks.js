// Folders of networks: every key of the four files with values of every kind, and folders in the form of other networks.
// Each is loaded and used by the library and by ours. They agree on whether it can be used, and on what every value means.
const { Blocks, Crypto, Identities, Managers, Transactions, Utils } = require("@arkecosystem/crypto");
const dayjs = require("dayjs");

const { configManager } = Managers;
const { BuilderFactory, TransactionTypeFactory } = Transactions;
const clone = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

/** Last applied blocks for which transactions are tried; the block above each is tried too. */
const HEIGHTS = [1, 2, 3, 4, 6];
/** Instants [ms since 1970] at which slots are compared. */
const TIMES = [1490101200000, 1490101207999, 1490101208000, 1636376660687, 1636376660688, 1700000000123, 1900000001001];
/** Counts that are held against a limit. */
const COUNTS = [0, 1, 2, 49, 50, 51, 63, 64, 65, 150, 255, 256, 500, 501, 2097152, 2097153, 4294967295];
const TYPES = Array.from({ length: 11 }, (_, type) => type);
/** A block and a transaction for exceptions. */
const [ID, OTHER] = ["11".repeat(32), "22".repeat(32)];
const MOST = 9223372036854775807n;

const MILESTONES = [
    {
        height: 1,
        reward: 0,
        activeDelegates: 3,
        blocktime: 8,
        block: { version: 0, maxTransactions: 50, maxPayload: 2097152, idFullSha256: false, acceptExpiredTransactionTimestamps: false },
        epoch: "2017-03-21T13:00:00.000Z",
        fees: { staticFees: { transfer: 10000000, vote: 100000000, multiPayment: 10000000 } },
        vendorFieldLength: 64,
        multiPaymentLimit: 64,
        ignoreInvalidSecondSignatureField: false,
        ignoreExpiredTransactions: false,
    },
    { height: 2, aip11: true, htlcEnabled: true },
    {
        height: 4,
        reward: 200000000,
        activeDelegates: 2,
        blocktime: 10,
        block: { version: 1, maxTransactions: 150, maxPayload: 6300000, idFullSha256: true },
        epoch: "2018-01-01T00:00:00.000Z",
        fees: { staticFees: { transfer: 20000000 } },
        vendorFieldLength: 255,
        multiPaymentLimit: 128,
    },
];
const NETWORK = {
    name: "forknet",
    messagePrefix: "FORK message:\n",
    bip32: { public: 70617039, private: 70615956 },
    pubKeyHash: 23,
    nethash: "",
    wif: 186,
    slip44: 1,
    aip20: 1,
    client: { token: "FORK", symbol: "F", explorer: "http://explorer.example" },
};
const EXCEPTIONS = {
    blocks: ["5", ID],
    transactions: [ID],
    blocksTransactions: { 5: [OTHER, ID] },
    outlookTable: { 5: "6" },
    transactionIdFixTable: { [ID]: OTHER },
    wrongTransactionOrder: { 7: [OTHER, ID] },
    negativeBalances: { ["02".repeat(33)]: { 1: "-5" } },
};

/** What stands in the place of a value. A function sees the value. */
const KINDS = {
    missing: undefined,
    null: null,
    "its text": (value) => (typeof value === "object" ? JSON.stringify(value) : String(value)),
    "its text between blanks": (value) => ` ${value}\n`,
    "its text in an array": (value) => [String(value)],
    "an array of it": (value) => [value],
    "an array of it twice": (value) => [value, value],
    "the number of its text": (value) => (typeof value === "string" ? Number(value) : value),
    "one more": (value) => (typeof value === "number" ? value + 1 : value),
    "its double": (value) => (typeof value === "number" ? value * 2 : value),
    "a half more": (value) => (typeof value === "number" ? value + 0.5 : value),
    "its negative": (value) => (typeof value === "number" ? -value : value),
    "its hex": (value) => (typeof value === "number" ? `0x${value.toString(16)}` : value),
    "upper case": (value) => (typeof value === "string" ? value.toUpperCase() : value),
    "another member": (value) => (value && typeof value === "object" && !Array.isArray(value) ? { ...value, other: { a: 1 } } : value),
    0: 0,
    1: 1,
    "-1": -1,
    0.5: 0.5,
    255: 255,
    256: 256,
    300: 300,
    65535: 65535,
    65536: 65536,
    1e6: 1e6,
    1000001: 1000001,
    4294967295: 4294967295,
    4294967296: 4294967296,
    "2^53 + 2": 9007199254740994,
    "2^63": 9223372036854775808,
    "2^63 - 1 as text": "9223372036854775807",
    "2^63 as text": "9223372036854775808",
    1e21: 1e21,
    true: true,
    false: false,
    "empty text": "",
    "a word": "abc",
    "text of 0": "0",
    "text of -1": "-1",
    "text of 1e1": "1e1",
    "text of Infinity": "Infinity",
    "an id": ID,
    "empty array": [],
    "array of 0": [0],
    "array of two": [1, 2],
    "empty object": {},
    "an object": { a: 1 },
};

/** Forms of the epoch. A time without a zone is local time to the library, hence UTC in `main`. */
const DATES = [
    "2017-03-21T13:00:00.000Z", "2021-11-08T13:04:13.688Z", "2017-03-21", "2017", "2017-03", "20170321", "2017032113", "201703211300",
    "2017/03/21", "2017/3/1 7:05", "2017-3-1", "2017-03-21T13:00:00", "2017-03-21 13:00:00", "2017-03-21 13:00:00.9", "2017-03-21T13:00:00.12345",
    "2017-13-45", "2017-00-00", "2017-03-00", "2017-03-21T25:61:61", "2017-03-21T13", "2017-03-21T", "2017-03-21 ", "2017-03-21tT 13:00",
    "0050-01-01", "0000-01-01", "0100-01-01", "9999-12-31", "9999-12-31T23:59:59.999Z", "1490101200000", "99999", "2017-03:15", "2017 03 21", "2017-03-21-",
    "2017-03-21T13:00:00+02:00", "2017-03-21T13:00+0200", "2017-03-21T13:00:00-11:30", "2017-03-21T13:00:00+99:00", "2017-03-21T13:00Z", "2017-03-21T13Z", "2017-03-21Z",
    "2017-03Z", "2017Z", "2017-02-29T00:00:00Z", "2017-02-31T00:00:00Z", "2017-02-32T00:00:00Z", "2017-00-01T00:00:00Z", "2017-13-01T00:00:00Z",
    "2017-03-21t13:00:00z", "2017-03-21 13:00:00Z", "2017-03-21T24:00:00Z", "2017-03-21T24:00:01Z", "2017-03-21T13:60:00Z", "2017-03-21T13:00:60Z",
    "2017-03-21T13:00:00.9Z", "2017-03-21T13:00:00.98765Z", "2017-03-21T13:00:00.Z", "+002017-03-21T13:00:00Z", "-000001-03-21T13:00:00Z", "-000000-03-21T13:00:00Z",
    "Tue, 21 Mar 2017 13:00:00 GMT", "Tue, 21 Mar 2017 13:00:00 +0200", "21 Mar 2017 13:00:00 +0000", "21 Mar 2017", "Mar 21, 2017 13:00 UTC",
    "March 21, 2017", "3/21/2017", "12", "17-03-21T13:00:00Z", "2017-3-21T1:2:3Z", "yesterday", "", " ", "Z", " 2017-03-21", "2017-03-21T13:00:00.000Z ",
    1490101200000, 1490101200, 1490101200.5, 0, -1, -86400000, 1.5, 1e12, 253402300799999, 253402300800000, 8.64e15, 8.65e15, [2017], ["2017-03-21T13:00:00Z"], [1490101200000], [2017, 3],
];

/** A folder: its genesis block is made for its network and its milestones. */
function folder(network, milestones, exceptions = {}) {
    const files = clone({ network, milestones, exceptions, genesisBlock: { transactions: [] } });
    use(files, 1);
    const keys = Identities.Keys.fromPassphrase("fork premine");
    const delegate = Identities.Keys.fromPassphrase("fork delegate");
    const address = Identities.Address.fromPublicKey(delegate.publicKey);
    const version = configManager.getMilestone(1).aip11 ? 2 : 1;
    const signed = [
        [BuilderFactory.transfer().recipientId(address).amount("12500000000000000"), "fork premine"],
        [BuilderFactory.delegateRegistration().usernameAsset("fork_1"), "fork delegate"],
        [BuilderFactory.vote().votesAsset([`+${delegate.publicKey}`]), "fork delegate"],
    ].map(([builder, passphrase], nonce) => {
        builder.version(version).network(files.network.pubKeyHash).fee("0");
        if (version === 1) builder.data.timestamp = 0;
        else builder.nonce(String(Math.max(nonce, 1)));
        return builder.sign(passphrase).getStruct();
    });
    const transactions = signed.map((one) => ({ ...clone(one), ...(version === 2 && { network: files.network.pubKeyHash }) }));
    const data = {
        version: configManager.getMilestone(1).block.version,
        totalAmount: "12500000000000000",
        totalFee: "0",
        reward: String(configManager.getMilestone(1).reward),
        payloadHash: Crypto.HashAlgorithms.sha256(transactions.map(({ id }) => Buffer.from(id, "hex"))).toString("hex"),
        timestamp: 0,
        numberOfTransactions: transactions.length,
        payloadLength: 32 * transactions.length,
        // With full ids the library's serializer takes no null.
        previousBlock: configManager.getMilestone(1).block.idFullSha256 ? "0".repeat(64) : null,
        generatorPublicKey: keys.publicKey,
        transactions,
        height: 1,
    };
    data.blockSignature = Crypto.Hash.signECDSA(Crypto.HashAlgorithms.sha256(Blocks.Block.serialize(data, false)), keys);
    data.id = Blocks.Block.getId(data);
    for (const key of ["previousBlockHex", "idHex"]) delete data[key];
    files.genesisBlock = clone(data);
    files.network.nethash = data.payloadHash;
    delete files.network.run;
    return { network: files.network, milestones: clone(milestones), exceptions: clone(exceptions), genesisBlock: files.genesisBlock };
}

let run = 0;
/** The library keeps what it knows of a network by the network's JSON, so each load is of another one. */
function use(files, height) {
    const config = clone(files);
    if (config.network && typeof config.network === "object") config.network.run = ++run;
    configManager.setHeight(undefined);
    configManager.setConfig(config);
    configManager.setHeight(height);
}

const must = (holds, what) => {
    if (!holds) throw new Error(what);
};
const amount = (value) => {
    const number = Utils.BigNumber.make(value).toBigInt();
    must(number >= 0n && number <= MOST, `no amount: ${number}`);
    return String(number);
};
const whole = (value, most, what) => {
    must(Number.isInteger(value) && value >= 0 && value <= most, `${what}: ${value}`);
    return value;
};

/** What the library makes of a folder, in the form of the tool's answer; throws if it cannot be used. */
function theirs(files) {
    use(files, 1);
    const network = configManager.get("network");
    const genesis = Blocks.BlockFactory.fromJson(clone(files.genesisBlock));
    must(genesis.verifySignature(), "the genesis block is not signed");
    must(genesis.data.height === 1, "not the first block");
    // What a node of the reference asks before it begins.
    must(genesis.data.payloadHash === network.nethash, "another nethash");
    const keys = Identities.Keys.fromPassphrase("fork delegate");
    const answer = {
        address: Identities.Address.fromPublicKey(keys.publicKey),
        wif: Identities.WIF.fromKeys(keys),
        genesis: { id: genesis.data.id, transactions: genesis.transactions.map(({ id }) => id), amount: amount(genesis.data.totalAmount) },
        unix: dayjs(configManager.getMilestone(1).epoch).valueOf(),
        slots: TIMES.map((time) => {
            const timestamp = Crypto.Slots.getTime(time);
            must(Number.isFinite(timestamp), "no time");
            // Before the epoch no block is, and beyond 32 bits neither.
            if (timestamp < 0 || timestamp > 4294967295) return null;
            const slot = Crypto.Slots.getSlotNumber(timestamp);
            return [timestamp, slot, Crypto.Slots.getSlotTime(slot), Crypto.Slots.isForgingAllowed(timestamp)];
        }),
    };
    answer.milestones = HEIGHTS.map((height) => {
        configManager.setHeight(height);
        const milestone = configManager.getMilestone(height);
        const limit = milestone.multiPaymentLimit || 500;
        return {
            reward: amount(milestone.reward),
            version: milestone.block.version,
            isNew: configManager.isNewMilestone(height),
            transactions: COUNTS.filter((count) => !(count > milestone.block.maxTransactions)),
            payload: COUNTS.filter((count) => !(count > milestone.block.maxPayload)),
            vendorField: COUNTS.filter((count) => count <= 255 && count <= Utils.maxVendorFieldLength()),
            payments: COUNTS.filter((count) => count >= 2 && count <= 65535 && count <= limit),
            full: Boolean(milestone.block.idFullSha256),
            late: Boolean(milestone.block.acceptExpiredTransactionTimestamps),
            expired: network.name === "devnet" && Boolean(milestone.ignoreExpiredTransactions),
            aip11: Boolean(milestone.aip11),
            htlc: milestone.aip11 === true && milestone.htlcEnabled === true,
            fees: TYPES.map((type) => amount(TransactionTypeFactory.get(type, 1).staticFee({ height }))),
        };
    });
    // Made by the library, read by both.
    answer.made = HEIGHTS.map((height) => {
        configManager.setHeight(height);
        const version = configManager.getMilestone(height).aip11 ? 2 : 1;
        const builder = BuilderFactory.transfer().recipientId(answer.address).amount("1").version(version).fee("10000000");
        if (version === 1) builder.data.timestamp = 8 * height;
        else builder.nonce("1");
        builder.network(network.pubKeyHash);
        const transfer = builder.sign("fork delegate").getStruct();
        const bytes = Transactions.Serializer.serialize(TransactionTypeFactory.create(clone(transfer))).toString("hex");
        const read = Transactions.TransactionFactory.fromHex(bytes);
        must(read.verified, "a transfer does not verify");
        const own = configManager.getMilestone(height + 1);
        const full = configManager.getMilestone(height).block.idFullSha256;
        const data = {
            version: own.block.version,
            timestamp: 8 * (height + 1),
            height: height + 1,
            previousBlock: full ? OTHER : "5",
            numberOfTransactions: 0,
            totalAmount: Utils.BigNumber.ZERO,
            totalFee: Utils.BigNumber.ZERO,
            reward: Utils.BigNumber.make(own.reward),
            payloadLength: 0,
            payloadHash: Crypto.HashAlgorithms.sha256([]).toString("hex"),
            transactions: [],
        };
        const block = Blocks.BlockFactory.make(data, keys);
        must(block.verification.verified, `a block does not verify: ${block.verification.errors}`);
        return { transfer: { bytes, id: read.id }, block: { bytes: block.serialized, id: block.data.id } };
    });
    configManager.setHeight(1);
    const { transactionIdFixTable, outlookTable, wrongTransactionOrder } = configManager.get("exceptions");
    answer.exceptions = {
        blocks: [["5", [ID, OTHER]], ["5", [OTHER, ID]], ["5", [ID]], ["5", []], ["6", []], [ID, []], [OTHER, [ID]]].map(([id, list]) =>
            Utils.isException({ id, transactions: list.map((one) => ({ id: one })) })),
        transactions: [ID, OTHER].map((id) => Utils.isException({ id })),
        outlook: ["5", "6", ID].map((id) => (outlookTable && outlookTable[id]) || null),
        fix: [ID, OTHER].map((id) => (transactionIdFixTable && transactionIdFixTable[id]) || null),
        order: ["7", ID].map((id) => (wrongTransactionOrder && wrongTransactionOrder[id] ? wrongTransactionOrder[id].map((one) => one) : null)),
    };
    return clone(answer);
}

/** Every path of a value, those to objects and lists too. */
function* paths(value, path = []) {
    if (path.length) yield path;
    if (value && typeof value === "object") for (const key of Object.keys(value)) yield* paths(value[key], [...path, key]);
}

/** The files with another value at a path; what lies above it may be missing so far. */
function changed(files, path, kind) {
    const copy = clone(files);
    let parent = copy;
    for (const key of path.slice(0, -1)) parent = parent[key] ??= {};
    const key = path[path.length - 1];
    const value = typeof kind === "function" ? kind(parent[key]) : kind;
    if (value === undefined && Array.isArray(parent)) parent.splice(key, 1);
    else if (value === undefined) delete parent[key];
    else if (JSON.stringify(value) === JSON.stringify(parent[key])) return undefined;
    else parent[key] = clone(value);
    return copy;
}

/** Every case: what it is called, and its files. */
function* cases() {
    const files = folder(NETWORK, MILESTONES, EXCEPTIONS);
    yield ["as it is", files];
    // Members that the base does not have, in a later milestone.
    const more = ["multiPaymentLimit", "aip11", "htlcEnabled", "ignoreExpiredTransactions"].map((key) => ["milestones", 2, key]);
    // Transactions are compared elsewhere, so one of the genesis block's is enough.
    const known = [...paths(files)].filter((path) => path[0] !== "genesisBlock" || path[1] !== "transactions" || !(path[2] > 0));
    const seen = new Set();
    for (const path of [...known, ...more, ["milestones", 1, "reward"], ["milestones", 1, "activeDelegates"], ["exceptions", "other"], ["network", "other"]]) {
        if (seen.has(path.join("."))) continue;
        seen.add(path.join("."));
        for (const [name, kind] of Object.entries(KINDS)) {
            const other = changed(files, path, kind);
            if (other) yield [`${path.join(".")} ${name}`, other];
        }
    }
    for (const date of DATES) {
        const other = changed(files, ["milestones", 0, "epoch"], date);
        if (other) yield [`milestones.0.epoch form ${JSON.stringify(date)}`, other];
    }
    for (const name of ["devnet", "mainnet"]) {
        yield [`network.name ${name}, ignoring`, folder({ ...NETWORK, name }, [{ ...MILESTONES[0], ignoreExpiredTransactions: true }, ...MILESTONES.slice(1)])];
    }
    for (const pubKeyHash of [0, 1, 23, 30, 55, 63, 100, 128, 255]) yield [`a network of byte ${pubKeyHash}`, folder({ ...NETWORK, pubKeyHash }, MILESTONES)];
    const [first, second, third] = MILESTONES;
    const lists = {
        "out of order": [third, first, second],
        "one height twice": [first, second, third, { height: 4, reward: 5 }],
        "twice with the same delegates inside a round": [first, { height: 2, activeDelegates: 3 }, { height: 5, activeDelegates: 2 }],
        "delegates as text and as number": [{ ...first, activeDelegates: "3" }, { height: 3, activeDelegates: 3 }],
        "delegates inside a round": [first, { height: 3, activeDelegates: 2 }],
        "the first at height 2": [{ ...first, height: 2 }, third],
        "the first at height 0": [{ ...first, height: 0 }, second, { ...third, activeDelegates: 3 }],
        "two below the first block": [{ ...first, height: -3 }, { height: 0, vendorFieldLength: 7 }, second, { ...third, activeDelegates: 3 }],
        "between two heights": [first, { height: 2.5, reward: 7 }, { height: 2.75, vendorFieldLength: 100 }, third],
        "heights beyond 32 bits": [first, second, third, { height: 4294967296, reward: -1 }, { height: 1e300, reward: -1 }],
        "no height in between": [first, second, { vendorFieldLength: 100 }, third],
        "no height, out of order": [first, third, { vendorFieldLength: 100 }, second],
        "a milestone that is null": [first, null, third],
        "a milestone that is a number": [first, 5, third],
        "a milestone that is a list": [first, [], third],
        "no milestones": [],
    };
    for (const [name, milestones] of Object.entries(lists)) yield [`milestones: ${name}`, { ...files, milestones }];
    for (const name of ["network", "milestones", "exceptions", "genesisBlock"]) {
        for (const value of [null, 1, "abc", true, [], [1], {}]) yield [`${name} is ${JSON.stringify(value)}`, { ...files, [name]: value }];
    }
    for (const [name, network, milestones] of FORKS) yield [`in the form of ${name}`, folder({ ...NETWORK, ...network }, milestones, {})];
}

/** What public networks have in their files that the official ones do not. */
const first = (members, block) => ({ ...MILESTONES[0], activeDelegates: 51, ...members, block: { version: 0, maxTransactions: 150, maxPayload: 6300000, ...block } });
const without = (object, ...keys) => Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
const FORKS = [
    ["Solar: rewards as text, members of its own", { pubKeyHash: 63, wif: 252 }, [
        first({ reward: "0", epoch: "2022-03-28T18:00:00.000Z", burnPercentage: 90, dynamicFees: { enabled: true, addonBytes: { burn: 0 } } }),
        { height: 2, reward: "1000000000" },
        { height: 4, dynamicReward: { enabled: true, ranks: { 1: 675000000 } }, bip340: true, p2p: { minimumVersions: ["^3.3.0 || ^4.0.0"] } },
    ]],
    ["Ripa: no limit of vendor fields, no slip44", { pubKeyHash: 55, wif: 170, slip44: undefined }, [without(first({ activeDelegates: 101 }), "vendorFieldLength", "multiPaymentLimit")]],
    ["Phantom: 512 bytes, an epoch between two seconds", {}, [first({ activeDelegates: 53, blocktime: 6, epoch: "2021-11-08T13:04:13.688Z", vendorFieldLength: 512, htlcEnabled: false }), { height: 2, aip11: true }]],
    ["Wortheum: a limit of a billion bytes", {}, [first({ reward: 200000000, blocktime: 3, epoch: "2019-09-04T11:49:19.235Z", vendorFieldLength: 1000000000 })]],
    ["Swapblocks: heights out of order", {}, [first({}), { height: 5, reward: 3 }, { height: 6, reward: 2 }, { height: 3, block: { maxTransactions: 1 } }]],
    ["Compendia: no vendor field, its own keys", { pubKeyHash: 88 }, [
        first({ activeDelegates: 47, topReward: 0, vendorFieldLength: 0, staticFeesOnly: true, stakeLevels: { 7889400: 50 }, ipfs: { maxFileSize: { logo: 3 } } }),
        { height: 2, aip11: true, block: { idFullSha256: true } },
    ]],
    ["Hydra: full ids from the first block on", { pubKeyHash: 100, wif: 111, slip44: 4741444, aip20: 4741444, bip32: { public: 3238353751, private: 1307004399 } }, [
        first({ activeDelegates: 53, blocktime: 12 }, { idFullSha256: true }), { height: 5, aip11: true, htlcEnabled: true },
    ]],
    ["numbers as text, everywhere", { wif: "186", slip44: "1", aip20: "1", bip32: { public: "70617039", private: "70615956" } }, [
        first({ height: "1", reward: "0", activeDelegates: "51", blocktime: "8", vendorFieldLength: "64", multiPaymentLimit: "64", epoch: "2017-03-21",
            fees: { staticFees: { transfer: "10000000", vote: "100000000" } } }, { maxTransactions: "150", maxPayload: "2097152" }),
        { height: "2", aip11: true, reward: "200000000" },
    ]],
];

/** Differences that stay, each with its reason. The suite fails if one of them is no longer needed. */
const refusedHere = (place, said) => ({ name, error }) => place.test(name) && said.test(error);
const refusedThere = (place, said) => ({ name, error, refused }) => !error && place.test(name) && said.test(refused);
const LISTED = [
    ["a number of delegates that is no whole one from 1 to 1,000,000: the library never counts with it, but no round can be made of it",
        refusedHere(/activeDelegates/, /`activeDelegates` is (?!.*changes)|`activeDelegates` is missing/)],
    ["a block time that is no whole number: the simulation counts seconds", refusedHere(/blocktime/, /`blocktime` is/)],
    ["delegates that change where the rounds counted from the first block do not end",
        refusedHere(/twice with the same delegates/, /changes inside a round/)],
    ["a change of delegates that the library measures from the last entry with a number, or from a height as it stands: rounds count from the last change",
        refusedThere(/^milestones/, /Bad milestone/)],
    ["an epoch in words, or in another form that only V8 reads", refusedHere(/epoch/, /`epoch` is/)],
    ["an epoch that is still to come: the library looks at its own clock", refusedThere(/epoch/, /Invalid block timestamp/)],
    ["a height that is no number: the library never comes to it, nor to those behind it", refusedHere(/^milestones.1.height/, /`height` is/)],
    ["a milestone that is no object: the library goes over it, or loses all that was set", refusedHere(/^milestones.*(\d |a milestone)/, /allowed is a number, in an object/)],
    ["a payload below that of an empty block: no block is valid, here as there", refusedThere(/maxPayload/, /Payload is too large/)],
    ["numbers of HD wallets that have more than 32 bits, or are none: the API has to show one", refusedHere(/^network\.(bip32|slip44|aip20)/, /^network.json: `/)],
    ["a table of exceptions that is a text: the library takes its letters by their places",
        ({ name }) => /^exceptions\.(blocksTransactions|outlookTable|wrongTransactionOrder)(\.5)? /.test(name) && /text|an id/.test(name)],
    ["an exception that gives an id which is none", refusedHere(/^exceptions\.(outlookTable|transactionIdFixTable)/, /allowed is a (block|transaction) id/)],
    ["an order that names what is no transaction: the library leaves a hole in the block", refusedHere(/^exceptions\.wrongTransactionOrder/, /allowed is an array of transaction ids/)],
    ["a number of the genesis block beyond 32 bits: the library cuts it off", refusedHere(/^genesisBlock\.(version|timestamp|transactions\.0\.(timestamp|expiration))/, /allowed is a whole number/)],
    ["a fee of the genesis block beyond 63 bits", refusedHere(/^genesisBlock\.transactions\.0\.fee (1e\+21|an id)/, /`fee`/)],
    ["an id of the genesis block in upper case: the library does not know it again", refusedThere(/^genesisBlock\.transactions\.0\.id upper case/, /bignumber/)],
    ["transactions of version 1 in the genesis block of a network that begins with version 2", refusedThere(/^milestones.1.height/, /Version 1 not supported/)],
    ["a full id of the genesis block: the library reads it as a number", refusedThere(/Hydra/, /Cannot convert/)],
];

/** Loads every case in both; `tell` gets a case's name, our answer and theirs. */
async function networks(tool, tell) {
    process.env.TZ = "UTC";
    const needed = new Set();
    for (const [name, files] of cases()) {
        let library;
        try {
            library = theirs(files);
        } catch (error) {
            library = { refused: error.message };
        }
        const question = {
            op: "network", files, heights: HEIGHTS, times: TIMES, counts: COUNTS, types: TYPES, passphrase: "fork delegate",
            made: (library.made || []).map(({ transfer, block }) => [transfer.bytes, block.bytes]),
            blocks: [["5", [ID, OTHER]], ["5", [OTHER, ID]], ["5", [ID]], ["5", []], ["6", []], [ID, []], [OTHER, [ID]]],
            transactions: [ID, OTHER], outlook: ["5", "6", ID], order: ["7", ID],
        };
        const ours = await tool.ask(question);
        const [one, other] = [ours.error ? "refused" : ours, library.refused ? "refused" : library];
        const listed = JSON.stringify(one) !== JSON.stringify(other)
            && LISTED.find(([, holds]) => holds({ name, error: ours.error || "", refused: library.refused || "", ours, theirs: library }));
        if (listed) needed.add(listed[0]);
        else tell(`network: ${name}${ours.error ? ` (${ours.error})` : ""}${library.refused ? ` (theirs: ${library.refused})` : ""}`, one, other);
    }
    for (const [reason] of LISTED) tell(`network: ${reason}: is still needed`, needed.has(reason), true);
}

module.exports = { cases, networks, theirs };
