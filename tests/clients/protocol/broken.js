// One thing changed in a good transaction, and what the reference says of it.
const { Transactions } = require("@arkecosystem/crypto");

/** What the reference answers: refused, or the id it computes and whether the signature holds; and what its schema says against it. */
function judge(json, bytes) {
    try {
        const found = json
            ? Transactions.TransactionFactory.fromJson(JSON.parse(JSON.stringify(json)))
            : Transactions.TransactionFactory.fromHex(bytes);
        return { outcome: { verified: found.verified, id: found.id } };
    } catch (error) {
        const complaint = error.constructor.name === "TransactionSchemaError" ? error.message : undefined;
        return { outcome: "refused", complaint };
    }
}

const VALUES = [null, "", "abc", "0", 0, 1, -1, 1.5, "9223372036854775808", true, [], {}];

/**
 * Every member, also those of the asset, missing and with each of several values; bytes cut, longer, and with one bit changed: every third
 * byte, and another third in the next sample, for types have their head in common.
 */
function mutations(sample, number) {
    const out = [];
    const json = () => JSON.parse(JSON.stringify(sample.struct));
    const walk = (path, value) => {
        const change = (label, edit) => {
            const copy = json();
            let parent = copy;
            for (const key of path.slice(0, -1)) parent = parent[key];
            edit(parent, path[path.length - 1]);
            out.push({ label: `${path.join(".")} ${label}`, json: copy });
        };
        if (path.length) {
            change("missing", (parent, key) => (Array.isArray(parent) ? parent.splice(key, 1) : delete parent[key]));
            for (const other of VALUES) change(`= ${JSON.stringify(other)}`, (parent, key) => (parent[key] = other));
            if (typeof value === "string" && value.length) {
                change("one longer", (parent, key) => (parent[key] += "a"));
                change("much longer", (parent, key) => (parent[key] = value.repeat(1 + Math.ceil(300 / value.length))));
                // The library reads no byte from a signature that is no hex, and signs for nothing: here it is refused.
                if (!path.some((key) => /ignature/.test(key) && key !== "multiSignature")) {
                    change("of other letters", (parent, key) => (parent[key] = "z".repeat(value.length)));
                }
                change("one shorter", (parent, key) => (parent[key] = value.slice(1)));
                change("upper case", (parent, key) => (parent[key] = value.toUpperCase()));
                const characters = Array.from(value);
                const last = characters.pop() === "1" ? "2" : "1";
                change("one character other", (parent, key) => (parent[key] = characters.join("") + last));
            }
            if (Array.isArray(value)) change("doubled", (parent, key) => (parent[key] = [...value, ...value]));
        }
        if (value && typeof value === "object") {
            const keys = Object.keys(value);
            for (const key of Array.isArray(value) ? keys.slice(0, 2) : keys) walk([...path, key], value[key]);
        }
    };
    walk([], sample.struct);
    const bytes = Buffer.from(sample.bytes, "hex");
    for (let length = bytes.length - 1; length >= 0; length -= 1 + Math.floor((bytes.length - length) / 8)) {
        out.push({ label: `cut to ${length} bytes`, bytes: bytes.subarray(0, length).toString("hex") });
    }
    for (const more of [1, 2, 63, 64, 65, 66, 128, 129]) {
        out.push({ label: `${more} bytes more`, bytes: sample.bytes + "07".repeat(more) });
    }
    for (let at = number % 3; at < bytes.length; at += bytes.length > 600 ? 13 : 3) {
        const copy = Buffer.from(bytes);
        copy[at] ^= 1 << at % 8;
        out.push({ label: `bit ${at % 8} of byte ${at}`, bytes: copy.toString("hex") });
    }
    return out;
}

/** Mutations of which ours says something else, and why. */
const SAYS_OTHER = [
    // Its limits of `signatures` are those that the asset names, whatever that is.
    [/asset(\.multiSignature(\.\w+)?)? = /, /^data\.signatures /],
    [/asset\.multiSignature\.min = -1/, /min should be >= 1$/],
    // Required members are asked for in another order.
    [/asset\.multiSignature = \{\}/, /required property 'min'$/],
    [/version (missing|= 1$)/, /required property '\.timestamp'/],
    // A type as text finds no schema here.
    [/ type = "0"/, /^data\.(type|amount) should pass /],
    // Its limit of payments is asked first.
    [/asset\.payments = /, /"transactionType" keyword validation$/],
    // Nothing but null is allowed there, and it says so of any other value.
    [/secondSignature /, /^data\.secondSignature should be null$/],
    // Its rule for addresses on the web forgets to ask for a text.
    [/(website|[rR]epository) = \[\]/, /should match format "uri"$/],
    [/ports( = \{\}|\.@arkecosystem\/core-api missing)/, /fewer than 1 properties$/],
    // It takes a signature that is none, until it looks for what stands behind it.
    [/signature much longer/, /^data\.signatures\[0\] should NOT be /],
];

module.exports = { SAYS_OTHER, judge, mutations };
