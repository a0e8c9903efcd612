// The network of a testnet as it was at an earlier instant. It is only read.

import { checkOptions, TRUTH } from "./arguments.js";
import { Chain, type ChainData } from "./chain.js";
import { join, type Client } from "./http.js";
import type { ViewData, ViewStep } from "./types.js";

/** A view of the past. It lasts until it is deleted or its testnet ends. A testnet has at most 16 at a time. */
export class View {
    readonly id: number;
    /** The base URL of the public API at that instant. */
    readonly url: string;
    /** The base URL of the lab at that instant. */
    readonly labUrl: string;
    /** The instant, in microseconds since the network's epoch. */
    readonly at: number;
    /** The height of the chain then. */
    readonly height: number;
    readonly #client: Client;
    readonly #testnetLab: string;

    constructor(client: Client, testnetLab: string, readonly data: ViewData) {
        this.id = data.id;
        this.url = data.url;
        this.labUrl = data.lab;
        this.at = data.at;
        this.height = data.height;
        this.#client = client;
        this.#testnetLab = testnetLab;
    }

    /** The `data` of a route of the public API at that instant. */
    api<T = unknown>(path: string): Promise<T> {
        return this.#client.json({ method: "GET", url: join("View.api", this.url, path) }) as Promise<T>;
    }

    /** The `data` of a route of the lab at that instant: `lab("/round")`. */
    lab<T = unknown>(path = ""): Promise<T> {
        return this.#client.json({ method: "GET", url: join("View.lab", this.labUrl, path) }) as Promise<T>;
    }

    /** Opens a view one step on, or back. */
    async step(step: ViewStep, options: { back?: boolean } = {}): Promise<View> {
        checkOptions("View.step", options, { back: TRUTH });
        const { back = false } = options;
        const body = { view: this.id, step, back };
        const data = await this.#client.json({ method: "POST", url: `${this.#testnetLab}/views`, body });
        return new View(this.#client, this.#testnetLab, data as ViewData);
    }

    /** Makes an isolated chain that continues from this instant, at a manual pace. */
    async chain(): Promise<Chain> {
        const data = await this.#client.json({ method: "POST", url: `${this.#testnetLab}/views/${this.id}/chain` });
        return new Chain(this.#client, this.#testnetLab, data as ChainData);
    }

    /** Closes it. */
    async delete(): Promise<void> {
        await this.#client.json({ method: "DELETE", url: `${this.#testnetLab}/views/${this.id}` });
    }

    /** Closes it at the end of a block: `await using view = await testnet.view({ at })`. */
    [Symbol.asyncDispose](): Promise<void> {
        return this.delete();
    }
}
