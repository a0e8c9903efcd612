// The compiler keeps these two lines in the declarations, so that a user's compiler needs no option for them.
/// <reference types="node" preserve="true" />
/// <reference lib="esnext.disposable" preserve="true" />

// One network and its lab: a testnet's own network or an isolated chain. Each method is one request of docs/lab.md
// in the project's sources.

import { AMOUNT, checkArgument, checkOptions, idOf, isObject, shown, TEXT, TRUTH, WHOLE } from "./arguments.js";
import { RefusedError, UsageError, type Refusal } from "./errors.js";
import { eventsQuery, eventStream, type EventStream } from "./events.js";
import { join, type Client } from "./http.js";
import type {
    Account,
    Advanced,
    Amount,
    BlockReference,
    ChaosData,
    ChaosRule,
    EventsOptions,
    Fault,
    FaultData,
    Pace,
    Reorg,
    ReorgOptions,
    SignedTransaction,
    SnapshotData,
    Status,
    SubmissionData,
    Until,
} from "./types.js";

/** A saved state of the whole network, to which it can revert any number of times. */
export interface Snapshot extends SnapshotData {
    /** Reverts the network to this state. */
    revert(): Promise<Snapshot>;
}

/**
 * A network and its lab. Every method that sends a request fails with an `ApiError` if the network refuses it, and with a `GoneError` if
 * the testnet no longer answers.
 */
export class Network {
    readonly #streams = new Set<EventStream>();

    /** Faults in the network: nodes that crash, links that lose messages, delegates that cheat. */
    readonly faults = {
        /** Adds a fault as in a scenario file. It begins now, or when its trigger `from` fires. */
        add: async (fault: Fault) => {
            checkArgument("faults.add", "fault", fault, ['an object such as { kind: "crash", nodes: [3] }', isObject]);
            return this.lab<FaultData>("POST", "/faults", fault);
        },
        list: () => this.lab<FaultData[]>("GET", "/faults"),
        /** Ends a fault now. A waiting fault then never begins. */
        end: async (fault: number | { id: number }) => {
            return this.lab<void>("DELETE", `/faults/${idOf("faults.end", "fault", fault, "a fault or its number")}`);
        },
    };

    /** Faults between the network and its clients: answers that are late, cut off or 503, posts that are lost. */
    readonly chaos = {
        add: async (rule: ChaosRule) => {
            checkArgument("chaos.add", "rule", rule, ['an object such as { route: "/api/blocks", status: 503 }', isObject]);
            return this.lab<ChaosData>("POST", "/chaos", rule);
        },
        list: () => this.lab<ChaosData[]>("GET", "/chaos"),
        /** Ends a rule and returns it with the number of requests or posts that it struck. */
        end: async (rule: number | { id: number }) => {
            return this.lab<ChaosData>("DELETE", `/chaos/${idOf("chaos.end", "rule", rule, "a rule or its number")}`);
        },
        /** Ends all rules. */
        clear: () => this.lab<{ deleted: number }>("DELETE", "/chaos"),
    };

    /**
     * @param url the base of the public API, for SDKs
     * @param labUrl the base of the lab
     * @param seed the seed of keys, latencies and choices: a `bigint` from 2^53 on, where a number would round it
     * @param accounts the funded accounts
     */
    constructor(
        protected readonly client: Client,
        readonly url: string,
        readonly labUrl: string,
        readonly seed: number | bigint,
        readonly nethash: string,
        readonly accounts: readonly Account[],
    ) {}

    /** The whole network at once: the clock, every node, faults, snapshots. */
    status(): Promise<Status> {
        return this.lab("GET", "");
    }

    /** Plays slots of 8 virtual seconds, or until a condition holds (`limit` slots at most, 10,000 by default). */
    advance(slots: number | { until: Until; limit?: number }): Promise<Advanced> {
        return this.lab("POST", "/advance", typeof slots === "number" ? { slots } : slots);
    }

    /** Sets the pace of virtual time, if given, and returns it. */
    pace(pace?: Pace): Promise<{ pace: Pace; now: number }> {
        return pace === undefined ? this.lab("GET", "/pace") : this.lab("POST", "/pace", { pace });
    }

    /** Pays one or several addresses. On demand the answer comes when the transactions are confirmed. */
    faucet(recipient: string, amount: Amount): Promise<{ transactions: string[] }>;
    faucet(payments: readonly { recipient: string; amount: Amount }[]): Promise<{ transactions: string[] }>;
    async faucet(to: string | readonly object[], amount?: Amount): Promise<{ transactions: string[] }> {
        checkArgument("faucet", "recipient", to, ["an address, or a list of { recipient, amount }", isRecipient]);
        if (typeof to === "string") checkArgument("faucet", "amount", amount, AMOUNT);
        return this.lab("POST", "/faucet", typeof to === "string" ? { recipient: to, amount } : to);
    }

    /** Makes new accounts and has them paid. */
    createAccounts(count: number, balance: Amount): Promise<{ accounts: Account[]; transactions: string[] }> {
        return this.lab("POST", "/accounts", { count, balance });
    }

    /**
     * Submits signed transactions. On demand they are in blocks when the promise resolves.
     *
     * @returns their ids
     * @throws RefusedError the node refused one of them; the error has the node's reason
     */
    async submit(...transactions: SignedTransaction[]): Promise<string[]> {
        const body = { transactions: transactions.map(signed) };
        const text = await this.client.text({ method: "POST", url: `${this.url}/transactions`, body });
        const { data, errors } = this.client.parse(text) as {
            data: { accept: string[]; excess: string[] };
            errors?: Record<string, Omit<Refusal, "id">[]> | null;
        };
        const refusals = Object.entries(errors ?? {}).flatMap(([id, reasons]) => reasons.map(({ type, message }) => ({ id, type, message })));
        const told = new Set(refusals.map(({ id }) => id));
        // The pool has no room for more transactions of their sender. `errors` does not contain them.
        const message = "its sender has as many pending transactions as the node keeps";
        for (const id of data.excess) if (!told.has(id) && !data.accept.includes(id)) refusals.push({ id, type: "excess", message });
        if (refusals.length > 0) throw new RefusedError(refusals, data.accept);
        return data.accept;
    }

    /** The newest 1,000 transactions that clients submitted, with the nodes' answers, the oldest first. */
    submissions(): Promise<SubmissionData[]> {
        return this.lab("GET", "/submissions");
    }

    /** Saves the present state of the whole network. */
    async snapshot(name?: string): Promise<Snapshot> {
        return this.#withRevert(await this.lab("POST", "/snapshots", name === undefined ? {} : { name }));
    }

    /** All snapshots, the oldest first. */
    async snapshots(): Promise<Snapshot[]> {
        const all = await this.lab<SnapshotData[]>("GET", "/snapshots");
        return all.map((data) => this.#withRevert(data));
    }

    /** Reverts the whole network to a snapshot, which is also found by its number, or by a name that no other snapshot has. */
    async revert(snapshot: number | string | { id: number }): Promise<Snapshot> {
        return this.#withRevert(await this.lab("POST", `/snapshots/${await this.#snapshotId("revert", snapshot)}/revert`, {}));
    }

    /** Deletes a snapshot, which is also found by its number, or by a name that no other snapshot has. */
    async deleteSnapshot(snapshot: number | string | { id: number }): Promise<void> {
        return this.lab("DELETE", `/snapshots/${await this.#snapshotId("deleteSnapshot", snapshot)}`);
    }

    async #snapshotId(call: string, snapshot: number | string | { id: number }): Promise<number> {
        const allowed = "a snapshot, its number or its name";
        if (typeof snapshot !== "string") return idOf(call, "snapshot", snapshot, allowed);
        const named = (await this.lab<SnapshotData[]>("GET", "/snapshots")).filter(({ name }) => name === snapshot);
        if (named.length === 1) return named[0]!.id;
        const whose = named.length === 0 ? "no snapshot" : `the snapshots ${named.map(({ id }) => id).join(", ")}`;
        throw new UsageError(`${call}: snapshot: found ${shown(snapshot)}, the name of ${whose}, allowed is ${allowed}, if only one has it`);
    }

    /** Makes the network leave its newest blocks for another branch: a number of them, or those above a block, by its height or its id. */
    async reorg(depth: number | { to: number | string }, options: ReorgOptions = {}): Promise<Reorg> {
        checkArgument("reorg", "depth", depth, ["a number of blocks, or { to: HEIGHT_OR_ID }", isDepth]);
        checkOptions("reorg", options, { transactions: ["'return', 'drop' or a list of ids", isTransactions], node: WHOLE });
        return this.lab("POST", "/reorg", { ...(typeof depth === "number" ? { depth } : depth), ...options });
    }

    /**
     * Submits a block: an object of the SDK's `Blocks.Block`, the JSON of such an object, or the block's wire bytes in hex. The promise
     * resolves once the block is the node's tip.
     *
     * @throws ApiError the block breaks a rule; the error names the rule
     */
    async pushBlock(
        block: object | string,
        options: { node?: number } = {},
    ): Promise<BlockReference & { node: number; transactions: number }> {
        checkArgument("pushBlock", "block", block, ["a block of the SDK, its JSON, or its wire bytes in hex", isBlock]);
        checkOptions("pushBlock", options, { node: WHOLE });
        return this.lab("POST", "/blocks", { block: typeof block === "object" ? jsonOf(block) : block, ...options });
    }

    /** Removes a pending transaction and its sender's later ones from all pools. */
    async dropPending(id: string): Promise<{ transactions: string[]; nodes: number[]; underWay: number }> {
        checkArgument("dropPending", "id", id, ["the id of a transaction", TEXT[1]]);
        return this.lab("DELETE", `/pool/${id}`);
    }

    /** Crashes a node, which is down until it is restarted. */
    crash(node: number, options: { keepPool?: boolean } = {}): Promise<FaultData> {
        return this.#turn("crash", node, options);
    }

    /** Restarts a node, whatever crash kept it down. */
    restart(node: number, options: { keepPool?: boolean } = {}): Promise<FaultData> {
        return this.#turn("restart", node, options);
    }

    async #turn(how: "crash" | "restart", node: number, options: { keepPool?: boolean }): Promise<FaultData> {
        checkArgument(how, "node", node, ["the number of a node", WHOLE[1]]);
        checkOptions(how, options, { keepPool: TRUTH });
        const { keepPool = true } = options;
        return this.lab("POST", `/nodes/${node}/${how}`, { keep_pool: keepPool });
    }

    /** The events from now on. The stream is open when the promise resolves. */
    async events(options: EventsOptions = {}): Promise<EventStream> {
        const url = `${this.labUrl}/events${eventsQuery(options)}`;
        const { signal } = options;
        const answer = await this.client.open({ method: "GET", url, signal });
        const stream = eventStream(answer, this.client, signal);
        this.#streams.add(stream);
        answer.once("close", () => this.#streams.delete(stream));
        return stream;
    }

    /** Ends the streams of events of a network that ends. */
    protected closeStreams(): void {
        for (const stream of this.#streams) stream.close();
    }

    /** The recording of all inputs so far, in the form that `dposlab replay` accepts. */
    recording(): Promise<string> {
        return this.client.text({ method: "GET", url: `${this.labUrl}/recording` });
    }

    /** The `data` of a route of the public API: `api("/wallets/A...")`. */
    async api<T = unknown>(path: string): Promise<T> {
        return this.client.json({ method: "GET", url: join("api", this.url, path) }) as Promise<T>;
    }

    /** The `data` of any route of the lab: `lab("POST", "/advance", { slots: 3 })`. */
    async lab<T = unknown>(method: "GET" | "POST" | "DELETE", path = "", body?: unknown): Promise<T> {
        return this.client.json({ method, url: join("lab", this.labUrl, path), body }) as Promise<T>;
    }

    #withRevert(data: SnapshotData): Snapshot {
        return { ...data, revert: () => this.revert(data.id) };
    }
}

function isRecipient(value: unknown): boolean {
    return typeof value === "string" || (typeof value === "object" && value !== null);
}

function isDepth(value: unknown): boolean {
    return typeof value === "number" || isObject(value);
}

function isBlock(value: unknown): boolean {
    return typeof value === "string" || isObject(value);
}

function isTransactions(value: unknown): boolean {
    return value === "return" || value === "drop" || Array.isArray(value);
}

/** The JSON of a submitted transaction. */
function signed(transaction: SignedTransaction, index: number): object {
    const where = `submit: transaction ${index + 1}`;
    const allowed = "allowed is a signed transaction";
    if (Array.isArray(transaction)) throw new UsageError(`${where}: found a list, ${allowed}: spread the list, submit(...list)`);
    checkArgument("submit", `transaction ${index + 1}`, transaction, ["a signed transaction, as JSON or as the SDK's object", isObject]);
    const isBuilder = "build" in transaction && typeof transaction.build === "function";
    if (isBuilder) throw new UsageError(`${where}: found a builder, ${allowed}: it is not built, call .build()`);
    if ("then" in transaction) throw new UsageError(`${where}: found a promise, ${allowed}: await it`);
    return jsonOf(transaction);
}

/** The JSON of an SDK's object, or the object itself. */
function jsonOf(what: object): object {
    return "toJson" in what && typeof what.toJson === "function" ? what.toJson() : what;
}
