/**
 * @jest-environment-options {"dposlab": {"testnet": {"args": ["--none"]}}}
 */
// Its testnet has an option that there is not.
test("has no chain", async () => {
    await dposlab.chain();
});

test("has no testnet", async () => {
    await dposlab.testnet();
});
