// Tests of one name that fail, each at another height.
describe.each([["one", [2, 3]], ["two", [4, 5]]])("%s", (_, all) => {
    test("works", async () => {
        for (const slots of all) {
            const chain = await dposlab.chain();
            await chain.pace("manual");
            await chain.advance({ until: { height: slots + 1 } });
        }
        expect(all).toBe(0);
    });
});
