// Fails, and says how to replay what its chain was given, and what became of it.
import crypto from "@arkecosystem/crypto";
import { expect } from "vitest";
import { test } from "dposlab/vitest";

const { Managers, Transactions } = crypto;

test("a transfer that isn't paid", async ({ chain }) => {
    Managers.configManager.setFromPreset("testnet");
    Managers.configManager.setHeight(2);
    const [payer, paid] = chain.accounts;
    const transfer = (nonce) =>
        Transactions.BuilderFactory.transfer().recipientId(paid.address).amount("1").nonce(String(nonce)).fee("10000000").sign(payer.passphrase).build();
    await chain.submit(transfer(1));
    await chain.crash(4);
    await chain.submit(transfer(1)).catch(() => {});
    await chain.advance(3);
    expect(await chain.api("/node/syncing")).toMatchObject({ height: 0 });
});
