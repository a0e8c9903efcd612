// Options of the fixtures, as docs/javascript.md gives them.
import { expect } from "vitest";
import { test as base } from "dposlab/vitest";

const test = base.extend({
    testnetOptions: [{ delegates: 7, seed: 3 }, { scope: "worker" }],
    chainOptions: { delegates: 3, pace: "manual" },
});

test("the options are those of the file", async ({ testnet, chain }) => {
    expect(testnet.delegates).toHaveLength(7);
    expect([chain.seed, (await chain.status()).nodes.length, await chain.pace()]).toMatchObject([3, 3, { pace: "manual" }]);
});
