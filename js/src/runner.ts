// The common part of the fixtures of vitest and jest.

import { Testnet } from "./testnet.js";
import type { StartOptions } from "./types.js";

/**
 * Starts a testnet for the tests of a worker. It ends with the worker, and with the process that started the worker, because a
 * busy worker does not notice that the test run was killed.
 */
export function startForTests(options: StartOptions): Promise<Testnet> {
    const runner = process.connected === true ? process.ppid : process.pid;
    return Testnet.start({ exitWith: runner, ...options });
}
