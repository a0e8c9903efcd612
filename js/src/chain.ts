// An isolated chain in the process of a testnet: one for each test, with its own clock, accounts and lab.

import { readFile } from "node:fs/promises";
import type { Client } from "./http.js";
import { Network } from "./network.js";
import { settings } from "./settings.js";
import type { Account, ChainOptions } from "./types.js";

/** The API's data of a chain. */
export interface ChainData {
    id: number;
    url: string;
    lab: string;
    seed: number;
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

/** The body of a request for a chain. */
export async function chainBody({ set, scenario, pace = "on-demand", ...others }: ChainOptions): Promise<object> {
    const text = scenario === undefined ? {} : { scenario: await readFile(scenario, "utf8") };
    return { ...others, ...text, set: settings(set), pace: String(pace) };
}
