// What is set is set as it is, whatever it looks like.
import { expect, test } from "vitest";
import { DposlabError, StartError, Testnet, type Setting, type Settings } from "dposlab";

/** What the command takes for a scenario's description, which is a text; the refusal names anything else. */
async function described(value: Setting): Promise<string> {
    const set: Settings = { "network.delegates": 3, description: value };
    const started = await Testnet.start({ set }).catch((error: unknown) => error);
    if (started instanceof StartError) return /key 'description': (.*)/.exec(started.message)![1]!;
    await (started as Testnet).stop();
    return "a text";
}

for (const text of ["off", "7", "true", "inf", "a,b", "[1]", "{ a = 1 }", "😀 ☃ \x7f", "\"", ""]) {
    test(`a text is a text: '${text}'`, async () => expect(await described(text)).toBe("a text"));
}

test.each<[Setting, RegExp]>([
    [7, /integer `7`/],
    [7n, /integer `7`/],
    [0.5, /floating point `0.5`/],
    [Infinity, /floating point `inf`/],
    [NaN, /floating point `NaN`/],
    [true, /boolean `true`/],
    [["😀", [1]], /sequence/],
    [{ "a b": "c" }, /map/],
])("%o is what it is", async (value, told) => {
    expect(await described(value)).toMatch(told);
});

test.each([[null], [undefined], [new Date(0)], [() => 1], [[null]]])("%o is no value", async (value) => {
    const set = { description: value } as unknown as Settings;
    await expect(Testnet.start({ set })).rejects.toThrow(DposlabError);
    await expect(Testnet.start({ set })).rejects.toThrow(/^set 'description': found .*, allowed are texts, numbers/);
});

test("a table is set in one", async () => {
    await using testnet = await Testnet.start({ set: { "network.delegates": 3, "network.latency": { min_ms: 5, max_ms: 9 } } });
    expect(testnet.delegates).toHaveLength(3);
});

test("a name that begins with a dash is no option", async () => {
    await expect(Testnet.start({ scenario: "-none.toml" })).rejects.toThrow(/-none.toml: cannot be read/);
});
