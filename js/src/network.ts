// One network and its lab: a testnet's own network or an isolated chain. Each method is one request of docs/lab.md.

import { RefusedError, type Refusal } from "./errors.js";
import { eventsQuery, eventStream, type EventStream } from "./events.js";
import type { Client } from "./http.js";
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
        add: (fault: Fault) => this.lab<FaultData>("POST", "/faults", fault),
        list: () => this.lab<FaultData[]>("GET", "/faults"),
        /** Ends a fault now. A waiting fault then never begins. */
        end: (fault: number | { id: number }) => this.lab<void>("DELETE", `/faults/${idOf(fault)}`),
    };

    /** Faults between the network and its clients: answers that are late, cut off or 503, posts that are lost. */
    readonly chaos = {
        add: (rule: ChaosRule) => this.lab<ChaosData>("POST", "/chaos", rule),
        list: () => this.lab<ChaosData[]>("GET", "/chaos"),
        /** Ends a rule and returns it with the number of requests or posts that it struck. */
        end: (rule: number | { id: number }) => this.lab<ChaosData>("DELETE", `/chaos/${idOf(rule)}`),
        /** Ends all rules. */
        clear: () => this.lab<{ deleted: number }>("DELETE", "/chaos"),
    };

    /**
     * @param url the base of the public API, for SDKs
     * @param labUrl the base of the lab
     * @param accounts the funded accounts
     */
    constructor(
        protected readonly client: Client,
        readonly url: string,
        readonly labUrl: string,
        readonly seed: number,
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
    faucet(to: string | readonly object[], amount?: Amount): Promise<{ transactions: string[] }> {
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
        const body = { transactions: transactions.map((one) => ("toJson" in one && typeof one.toJson === "function" ? one.toJson() : one)) };
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

    /** Reverts the whole network to a snapshot. */
    async revert(snapshot: number | { id: number }): Promise<Snapshot> {
        return this.#withRevert(await this.lab("POST", `/snapshots/${idOf(snapshot)}/revert`, {}));
    }

    /** Deletes a snapshot. */
    deleteSnapshot(snapshot: number | { id: number }): Promise<void> {
        return this.lab("DELETE", `/snapshots/${idOf(snapshot)}`);
    }

    /** Makes the network leave its newest blocks for another branch: a number of them, or those above a block, by its height or its id. */
    reorg(depth: number | { to: number | string }, options: ReorgOptions = {}): Promise<Reorg> {
        return this.lab("POST", "/reorg", { ...(typeof depth === "number" ? { depth } : depth), ...options });
    }

    /**
     * Submits a block: an object of the SDK's `Blocks.Block`, the JSON of such an object, or the block's wire bytes in hex. The promise
     * resolves once the block is the node's tip.
     *
     * @throws ApiError the block breaks a rule; the error names the rule
     */
    pushBlock(block: object | string, options: { node?: number } = {}): Promise<BlockReference & { node: number; transactions: number }> {
        const body = typeof block === "object" && "toJson" in block && typeof block.toJson === "function" ? block.toJson() : block;
        return this.lab("POST", "/blocks", { block: body, ...options });
    }

    /** Removes a pending transaction and its sender's later ones from all pools. */
    dropPending(id: string): Promise<{ transactions: string[]; nodes: number[]; underWay: number }> {
        return this.lab("DELETE", `/pool/${id}`);
    }

    /** Crashes a node, which is down until it is restarted. */
    crash(node: number, { keepPool = true } = {}): Promise<FaultData> {
        return this.lab("POST", `/nodes/${node}/crash`, { keep_pool: keepPool });
    }

    /** Restarts a node, whatever crash kept it down. */
    restart(node: number, { keepPool = true } = {}): Promise<FaultData> {
        return this.lab("POST", `/nodes/${node}/restart`, { keep_pool: keepPool });
    }

    /** The events from now on. The stream is open when the promise resolves. */
    async events(options: EventsOptions = {}): Promise<EventStream> {
        const { signal } = options;
        const url = `${this.labUrl}/events${eventsQuery(options)}`;
        const answer = await this.client.open({ method: "GET", url, signal });
        const stream = eventStream(answer, this.client.parse);
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
    api<T = unknown>(path: string): Promise<T> {
        return this.client.json({ method: "GET", url: this.url + path }) as Promise<T>;
    }

    /** The `data` of any route of the lab: `lab("POST", "/advance", { slots: 3 })`. */
    lab<T = unknown>(method: "GET" | "POST" | "DELETE", path: string, body?: unknown): Promise<T> {
        return this.client.json({ method, url: this.labUrl + path, body }) as Promise<T>;
    }

    #withRevert(data: SnapshotData): Snapshot {
        return { ...data, revert: () => this.revert(data.id) };
    }
}

function idOf(what: number | { id: number }): number {
    return typeof what === "number" ? what : what.id;
}
