// Fails, and says how to replay what its chain was given.
import { expect } from "vitest";
import { test } from "dposlab/vitest";

test("a transfer that isn't paid", async ({ chain }) => {
    await chain.faucet(chain.accounts[0].address, 5);
    await chain.advance(3);
    expect(await chain.api("/node/syncing")).toMatchObject({ height: 0 });
});
