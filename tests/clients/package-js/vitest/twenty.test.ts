// Twenty tests with a chain each: it says how long they take, the start of the testnet among it.
import { afterAll, beforeAll, expect } from "vitest";
import { test } from "dposlab/vitest";

const ids: number[] = [];
let began = 0;
beforeAll(() => void (began = performance.now()));
afterAll(() => {
    const took = performance.now() - began;
    console.log(`twenty tests with a chain each: ${took.toFixed(0)} ms`);
});

for (let n = 1; n <= 20; n += 1) {
    test(`test ${n} has a chain of its own`, async ({ chain, testnet }) => {
        await chain.faucet(chain.accounts[0]!.address, n);
        expect(await chain.api(`/wallets/${chain.accounts[0]!.address}`)).toMatchObject({ balance: String(100_000_000_000_000 + n) });
        expect(ids).not.toContain(chain.id);
        ids.push(chain.id);
        // Those of the tests before are gone.
        expect((await testnet.chains()).map(({ id }) => id)).toEqual([chain.id]);
    });
}
