// Starts a dposlab testnet of its own and gives it to a test, with the reference's SDK around it.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
export const { Identities, Managers, Transactions } = require("@arkecosystem/crypto");
export const { Connection } = require("@arkecosystem/client");

const binary =
    process.env.DPOSLAB_BIN ?? fileURLToPath(new URL("../../../target/release/dposlab", import.meta.url));

/** How long a test waits for the chain at most [ms]. */
const PATIENCE = 60_000;

export class Testnet {
    /** `args` go to `dposlab up`; the port is a free one. */
    static async start(...args) {
        const child = spawn(binary, ["up", "--json", "--port", "0", ...args], { stdio: ["ignore", "pipe", "inherit"] });
        const lines = createInterface({ input: child.stdout });
        const testnet = new Testnet(child);
        const exited = new Promise((resolve) => child.once("exit", (code) => resolve(code)));
        testnet.exited = exited;
        const ready = await new Promise((resolve, reject) => {
            exited.then((code) => reject(new Error(`dposlab up ended with code ${code} before it was ready`)));
            lines.on("line", (line) => {
                const message = JSON.parse(line);
                if (message.event === "ready") resolve(message);
                else testnet.lines.push(message);
            });
        });
        Object.assign(testnet, ready);
        testnet.client = new Connection(ready.url);
        // An SDK as its own documentation sets it up: the preset, and the height of the node.
        Managers.configManager.setFromPreset("testnet");
        Managers.configManager.setHeight(2);
        return testnet;
    }

    constructor(child) {
        this.child = child;
        this.lines = [];
    }

    /** Stops it as Ctrl-C does, and answers its exit code. */
    async stop() {
        this.child.kill("SIGINT");
        return this.exited;
    }

    /** Asks until `done` likes the answer; a request that is refused counts as not yet. */
    async until(what, ask, done = Boolean) {
        const end = Date.now() + PATIENCE;
        let last;
        while (Date.now() < end) {
            try {
                last = await ask();
                if (done(last)) return last;
            } catch (error) {
                last = error;
            }
            await new Promise((resolve) => setTimeout(resolve, 25));
        }
        throw new Error(`waited ${PATIENCE / 1000} s for ${what}; last answer: ${JSON.stringify(last?.body ?? String(last))}`);
    }

    height() {
        return this.client.api("node").status().then((response) => response.body.data.now);
    }

    wallet(id) {
        return this.client.api("wallets").get(id).then((response) => response.body.data);
    }

    /** Posts, and answers the whole body. */
    async post(...transactions) {
        const response = await this.client.api("transactions").create({ transactions });
        return response.body;
    }

    /** Posts one transaction that must be taken, and waits until it is confirmed. */
    async confirm(transaction) {
        const body = await this.post(transaction);
        if (!body.data.accept.includes(transaction.id)) {
            throw new Error(`not accepted: ${JSON.stringify(body)}`);
        }
        const response = await this.until(
            `transaction ${transaction.id}`,
            () => this.client.api("transactions").get(transaction.id),
            (response) => response.body.data.confirmations > 0,
        );
        return response.body.data;
    }

    /** The nonce of an address's next transaction. */
    async nextNonce(address) {
        return (BigInt((await this.wallet(address)).nonce) + 1n).toString();
    }
}
