// The environment: a chain a test, which is gone afterwards, in CommonJS as jest has it.
const ids = [];
for (const n of [1, 2, 3]) {
    test(`test ${n} has a chain of its own`, async () => {
        const chain = await dposlab.chain();
        await chain.faucet(chain.accounts[0].address, n);
        const { balance } = await chain.api(`/wallets/${chain.accounts[0].address}`);
        expect(balance).toBe(String(100_000_000_000_000 + n));
        const testnet = await dposlab.testnet();
        expect((await testnet.chains()).map(({ id }) => id)).toStrictEqual([chain.id]);
        ids.push(chain.id);
    });
}

test("every test had another one, and they are gone", async () => {
    expect(new Set(ids).size).toBe(3);
    expect(await (await dposlab.testnet()).chains()).toEqual([]);
});

test("answers are of the tests' own realm", async () => {
    const chain = await dposlab.chain({ delegates: 3 });
    expect((await chain.status()).faults).toStrictEqual([]);
    await expect(chain.advance(0)).rejects.toMatchObject({ name: "ApiError", status: 422 });
});

describe("a chain that is made outside of tests", () => {
    let shared;
    beforeAll(async () => void (shared = await dposlab.chain()));
    test.each([1, 2])("lasts as long as the file: test %i", async () => {
        await dposlab.chain();
        const { height } = await shared.advance(1);
        expect(height).toBeGreaterThan(1);
    });
});
