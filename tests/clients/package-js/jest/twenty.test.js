// Twenty tests with a chain each: it says how long they take, the start of the testnet among it.
let began;
beforeAll(() => void (began = performance.now()));
afterAll(() => {
    const took = performance.now() - began;
    process.stderr.write(`twenty tests with a chain each: ${took.toFixed(0)} ms\n`);
});

test.each(Array.from({ length: 20 }, (_, n) => n + 1))("test %i", async (n) => {
    const chain = await dposlab.chain();
    await chain.faucet(chain.accounts[0].address, n);
    expect((await chain.status()).nodes[0].height).toBeGreaterThan(2);
});
