// An environment for jest: `testEnvironment: "dposlab/jest"`. It gives tests the global `dposlab`. It is an environment and not a
// module, because jest's tests are usually CommonJS and cannot import modules.

import type { EnvironmentContext, JestEnvironmentConfig } from "@jest/environment";
import type { Circus } from "@jest/types";
import { relative } from "node:path";
import { TestEnvironment } from "jest-environment-node";
import { checkOptions, OBJECT } from "./arguments.js";
import type { Chain } from "./chain.js";
import { keepRecording } from "./recording.js";
import { startForTests } from "./runner.js";
import type { Testnet } from "./testnet.js";
import type { ChainOptions, StartOptions } from "./types.js";

/** The functions that tests call. */
export interface DposlabGlobal {
    /** The testnet of this test file. It starts with the first call. */
    testnet(): Promise<Testnet>;
    /** A chain of this test's own, deleted after the test. A failed test prints how to replay the chain. */
    chain(options?: ChainOptions): Promise<Chain>;
}

declare global {
    var dposlab: DposlabGlobal;
}

/** Options in `testEnvironmentOptions.dposlab`, or in a file's docblock. */
export interface DposlabOptions {
    testnet?: StartOptions;
    chain?: ChainOptions;
}

export default class DposlabEnvironment extends TestEnvironment {
    readonly #options: DposlabOptions;
    readonly #file: string;
    #testnet: Promise<Testnet> | undefined;
    /** The running test. A chain that is made outside of tests lasts as long as the file. */
    #test: Circus.TestEntry | undefined;
    readonly #chains = new Map<Chain, Circus.TestEntry | undefined>();

    constructor(config: JestEnvironmentConfig, context: EnvironmentContext) {
        super(config, context);
        this.#file = relative(config.projectConfig.rootDir, context.testPath);
        this.#options = (config.projectConfig.testEnvironmentOptions["dposlab"] ?? {}) as DposlabOptions;
        checkOptions("testEnvironmentOptions.dposlab", this.#options, { testnet: OBJECT, chain: OBJECT });
    }

    override async setup(): Promise<void> {
        await super.setup();
        this.global.dposlab = { testnet: () => this.#start(), chain: (options) => this.#chain(options) };
    }

    override async teardown(): Promise<void> {
        // A testnet that did not start has failed the caller's request already.
        const testnet = await this.#testnet?.catch(() => undefined);
        await testnet?.stop();
        await super.teardown();
    }

    async handleTestEvent(event: Circus.AsyncEvent | Circus.SyncEvent): Promise<void> {
        if (event.name === "test_start") this.#test = event.test;
        if (event.name === "test_done") {
            this.#test = undefined;
            await this.#clear(event.test);
        }
    }

    #start(): Promise<Testnet> {
        // Parses answers in the tests' own realm: `toStrictEqual` refuses objects of another realm.
        const parse = (text: string): unknown => this.global.JSON.parse(text);
        return (this.#testnet ??= startForTests({ parse, ...this.#options.testnet }));
    }

    async #chain(options: ChainOptions = {}): Promise<Chain> {
        // Nothing shows which of several concurrent tests is calling.
        const test = this.#test?.concurrent ? undefined : this.#test;
        const testnet = await this.#start();
        const chain = await testnet.chain({ ...this.#options.chain, ...options });
        this.#chains.set(chain, test);
        return chain;
    }

    async #clear(test: Circus.TestEntry): Promise<void> {
        let number = 0;
        for (const [chain, owner] of this.#chains) {
            if (owner !== test) continue;
            if (test.errors.length > 0) {
                process.stderr.write(`${await keepRecording(chain, fullName(test), this.#file, number)}\n`);
            }
            number += 1;
            this.#chains.delete(chain);
            await chain.delete();
        }
    }
}

/** The test's name after the names of its enclosing blocks, without the root block. */
function fullName(test: Circus.TestEntry): string {
    const names = [test.name];
    for (let around = test.parent; around.parent !== undefined; around = around.parent) names.unshift(around.name);
    return names.join(" > ");
}
