// Fails, and says how to replay what its chain was given.
test("a vote that isn't counted", async () => {
    const chain = await dposlab.chain();
    await chain.submit().catch(() => {});
    await chain.advance(3);
    expect(chain.seed).toBe(2);
});
