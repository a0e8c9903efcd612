// Fixtures for vitest: `import { test } from "dposlab/vitest"`.

import { test as base, type TestContext } from "vitest";
import type { Chain } from "./chain.js";
import { keepRecording } from "./recording.js";
import { startForTests } from "./runner.js";
import type { Testnet } from "./testnet.js";
import type { ChainOptions, StartOptions } from "./types.js";

/** The fixtures of a test. */
export interface Fixtures {
    /** The options of `testnet`: `test.extend({ testnetOptions: [{ delegates: 5 }, { scope: "worker" }] })`. */
    testnetOptions: StartOptions;
    /** A process for each worker. It starts with the first test that needs it. */
    testnet: Testnet;
    /** The options of `chain`: `test.extend({ chainOptions: { delegates: 5 } })`. */
    chainOptions: ChainOptions;
    /** A chain of this test's own, deleted after the test. A failed test prints how to replay the chain. */
    chain: Chain;
}

/** `test` of vitest, with a testnet. */
export const test = base.extend<Fixtures>({
    testnetOptions: [{}, { scope: "worker" }],
    testnet: [
        async ({ testnetOptions }, use) => {
            const testnet = await startForTests(testnetOptions);
            await use(testnet);
            await testnet.stop();
        },
        { scope: "worker" },
    ],
    chainOptions: {},
    chain: async ({ testnet, chainOptions, task }, use) => {
        const chain = await testnet.chain(chainOptions);
        await use(chain);
        if (task.result?.state === "fail" && task.fails !== true) console.error(await keepRecording(chain, fullName(task), task.file.name));
        await chain.delete();
    },
});

/** The test's name after the names of its suites. */
function fullName({ name, suite }: Readonly<TestContext["task"]>): string {
    const names = [name];
    for (let around = suite; around !== undefined; around = around.suite) names.unshift(around.name);
    return names.filter(Boolean).join(" > ");
}

export const it = test;
