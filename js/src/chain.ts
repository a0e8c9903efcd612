// An isolated chain in the process of a testnet: one for each test, with its own clock, accounts and lab.

import { readFile } from "node:fs/promises";
import { checkOptions, shown, TEXT, WHOLE, type Form, type Forms } from "./arguments.js";
import { UsageError } from "./errors.js";
import type { Client } from "./http.js";
import { Network } from "./network.js";
import { SETTINGS, settings } from "./settings.js";
import type { Account, ChainOptions, NetworkOptions } from "./types.js";

/** The API's data of a chain. */
export interface ChainData {
    id: number;
    url: string;
    lab: string;
    seed: number | bigint;
    delegates: number;
    nethash: string;
    height: number;
    accounts: Account[];
}

/** An isolated chain. It lasts until it is deleted or its testnet ends. */
export class Chain extends Network {
    readonly id: number;
    readonly #itself: string;
    #deleted: Promise<void> | undefined;

    constructor(client: Client, testnetLab: string, data: ChainData) {
        super(client, data.url, data.lab, data.seed, data.nethash, data.accounts);
        this.id = data.id;
        this.#itself = `${testnetLab}/chains/${data.id}`;
    }

    /** Stops the chain and frees its memory. Does nothing if it is already deleted. */
    delete(): Promise<void> {
        return (this.#deleted ??= this.#delete());
    }

    async #delete(): Promise<void> {
        await this.client.json({ method: "DELETE", url: this.#itself });
        this.closeStreams();
    }

    /** Deletes it at the end of a block: `await using chain = await testnet.chain()`. */
    [Symbol.asyncDispose](): Promise<void> {
        return this.delete();
    }
}

const PACES = ["manual", "on-demand", "max"];
const SEED: Form = ["a whole number, from 2^53 on as a bigint", (value) => typeof value === "bigint" || Number.isSafeInteger(value)];

/** The forms of the options of every network. */
export const NETWORK_FORMS: Forms<NetworkOptions> = {
    delegates: WHOLE,
    seed: SEED,
    scenario: ["the path or the file URL of a scenario", (value) => TEXT[1](value) || value instanceof URL],
    set: SETTINGS,
    pace: ["a number, 'max', 'manual' or 'on-demand'", (value) => typeof value === "number" || PACES.includes(value as string)],
};

/** The forms of the options of a chain. The API takes no larger seed. */
const CHAIN_FORMS: Forms<ChainOptions> = {
    ...NETWORK_FORMS,
    seed: ["a whole number below 2^53", (value) => SEED[1](value) && Number.isSafeInteger(Number(value))],
};

/** The body of a request for a chain. */
export async function chainBody(options: ChainOptions): Promise<object> {
    const call = "Testnet.chain";
    checkOptions(call, options, CHAIN_FORMS);
    const { set, scenario, pace = "on-demand", ...others } = options;
    const text = scenario === undefined ? {} : { scenario: await read(call, scenario) };
    return { ...others, ...text, set: settings(set), pace: String(pace) };
}

async function read(call: string, scenario: string | URL): Promise<string> {
    try {
        return await readFile(scenario, "utf8");
    } catch (cause) {
        const found = `found ${shown(String(scenario))}, which cannot be read (${(cause as Error).message})`;
        throw new UsageError(`${call}: option 'scenario': ${found}, allowed is the path of a scenario file`, { cause });
    }
}
