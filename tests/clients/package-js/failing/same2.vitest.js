// Tests of one name that fail, each at another height.
import { describe, expect } from "vitest";
import { test } from "dposlab/vitest";

for (const [suite, slots] of [["one", 4], ["two", 5]]) {
    describe(suite, () => {
        test("works", async ({ chain }) => {
            await chain.pace("manual");
            await chain.advance({ until: { height: slots + 1 } });
            expect(slots).toBe(0);
        });
    });
}
