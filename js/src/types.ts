// The requests to a testnet and its answers. The members of answers have the names of the API.

/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };

/**
 * How virtual time passes: virtual seconds per real second, as fast as possible (`"max"`), only when a test advances it
 * (`"manual"`), or also whenever a transaction arrives, which is then in a block at once (`"on-demand"`).
 */
export type Pace = number | "max" | "manual" | "on-demand";

/** An amount in arktoshi; 1 coin is 100,000,000. Answers hold texts of digits. */
export type Amount = bigint | number | string;

/** A value of a scenario. A text is a text, whatever it looks like. */
export type Setting = bigint | boolean | number | string | readonly Setting[] | { readonly [key: string]: Setting };

/** Values that replace those of a scenario: `{"network.loss": 0.05}`, or texts `PATH=VALUE` with the syntax of the file. */
export type Settings = { readonly [path: string]: Setting } | readonly string[];

/** The options of every network. */
export interface NetworkOptions {
    /**
     * The number of delegates: 1 to 1000 for a testnet, 1 to 200 for a chain. By default 51, or the number in the scenario. Not allowed
     * for a testnet with a scenario.
     */
    delegates?: number;
    /**
     * The seed of keys, latencies and choices. By default 1; for a chain, the seed of its testnet. The largest is 2^64 - 1, for
     * a chain 2^53 - 1. From 2^53 on it is a `bigint`, because a number would round it.
     */
    seed?: number | bigint;
    /** The path of a scenario file. */
    scenario?: string | URL;
    /** Values that replace those of the scenario, or of the default scenario. */
    set?: Settings;
    /** The pace; `"on-demand"` by default. */
    pace?: Pace;
}

/** The further options of a process. */
export interface StartOptions extends NetworkOptions {
    /** A port of this machine; any free port by default. */
    port?: number;
    /** The stage. Both stages have the same outcome; the default, `"inline"`, is faster. */
    stage?: "inline" | "ractor";
    /** More options of `dposlab up`, such as `["--dialect", "core-2.6"]`. */
    args?: readonly string[];
    /** The program; by default `DPOSLAB_BIN`, or the program in the package for this platform. */
    binary?: string;
    /** The longest time that the start may take [ms]; 60,000 by default. */
    timeout?: number;
    /** The id of a process with which the testnet ends. The testnet ends with this process in any case. */
    exitWith?: number;
    /** Parses the texts of answers; `JSON.parse` by default. */
    parse?: (text: string) => unknown;
}

/** The options of an isolated chain. The client reads the file of `scenario` and sends its text, which cannot include other files. */
export type ChainOptions = NetworkOptions;

/** An account with coin, for tests only. */
export interface Account {
    address: string;
    publicKey: string;
    passphrase: string;
    /** The balance at genesis or when the account was made [arktoshi]. */
    balance: string;
}

/** A delegate that forges. */
export interface Delegate {
    username: string;
    address: string;
    publicKey: string;
    passphrase: string;
}

/** A block, by its id and height. */
export interface BlockReference {
    id: string;
    height: number;
}

/** The condition that ends an advance: exactly one of these. `docs/lab.md` in the project's sources describes when each is reached. */
export type Until =
    | { height: number }
    | { round: number }
    | { time: number }
    | { transaction: string }
    | { event: { kind: string; node?: number | string; count?: number } };

/** The result of an advance. */
export interface Advanced {
    /** Whole slots that were played. */
    slots: number;
    /** The height of the observed node. */
    height: number;
    /** The clock, in seconds since the network's epoch. */
    now: number;
    /** The number of requested slots, if fewer were played. */
    asked?: number;
    /** The reason of its end: `reached` or `limit`, or that a client set the pace. */
    stopped?: string;
}

/** A saved state of the whole network. */
export interface SnapshotData {
    id: number;
    name: string | null;
    now: number;
    height: number;
    /** The id of the newest block. */
    tip: string;
}

/** The options of a reorganisation beside its depth. */
export interface ReorgOptions {
    /** The transactions of the reverted blocks: offer all to the pools (the default), drop all, or offer only the listed ids. */
    transactions?: "return" | "drop" | readonly string[];
    /** The node whose chain is left; the observed node by default. */
    node?: number;
}

/** The result of a reorganisation. */
export interface Reorg {
    node: number;
    from: BlockReference;
    to: BlockReference;
    common: BlockReference;
    /** The newest first. */
    reverted: BlockReference[];
    /** The oldest first. */
    blocks: BlockReference[];
    transactions: { id: string; became: "returned" | "refused" | "dropped" }[];
    /** The nodes that moved to the new branch, and below the nodes that stayed. */
    moved: number[];
    left: number[];
}

/** A fault as in a scenario file: `{ kind: "crash", nodes: [3] }`. The API describes the members of each kind. */
export interface Fault {
    kind: string;
    [member: string]: unknown;
}

/** The state of a fault. */
export interface FaultData {
    id: number;
    state: "waiting" | "in-force" | "over";
    /** Its beginning [s], while it is in force. */
    since?: number;
    fault: Fault;
}

/** A rule that makes answers or posts of webhooks fail. `docs/lab.md` in the project's sources describes each member. */
export interface ChaosRule {
    route?: string;
    method?: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
    event?: string;
    share?: number;
    count?: number;
    seed?: number;
    delay_ms?: number;
    refuse?: boolean;
    status?: number;
    cut?: boolean;
    stale?: number;
    node?: number;
    late_ms?: number;
    twice?: boolean;
    reorder?: boolean;
    lost?: boolean;
}

/** A rule in force, with the numbers of requests or posts that it matched and struck. */
export interface ChaosData extends ChaosRule {
    id: number;
    share: number;
    matched: number;
    applied: number;
}

/** A signed transaction as JSON, or an SDK's object with `toJson()`, such as the result of the reference's `build()`. */
export type SignedTransaction = object | { toJson(): object };

/** A submitted transaction and the answer of its node. */
export interface SubmissionData {
    /** Microseconds since the network's epoch. */
    at: number;
    node: number;
    /** The height of the node when the transaction arrived. */
    height: number;
    /** Null for a request that was refused as a whole. */
    id: string | null;
    accepted: boolean;
    /** The type of the refusal; null if the transaction was accepted. */
    type: string | null;
    message: string | null;
}

/** The whole network at once. */
export interface Status {
    ready: boolean;
    pace: Pace | null;
    now: number;
    nowMicros: number;
    /** A `bigint` from 2^53 on. */
    seed: number | bigint | null;
    stage: string | null;
    nodes: {
        node: number;
        delegate: string | null;
        height: number;
        tip: string;
        live: boolean;
        cause: string | null;
        pool: number;
    }[];
    faults: { fault: number; kind: string; since: number }[];
    snapshots: SnapshotData[];
}

/** The instant of a view. */
export interface ViewOptions {
    /** Microseconds since the network's epoch; now by default. */
    at?: number;
    /** The number of inputs delivered to actors by then, as in the data of a view. */
    delivered?: number;
    /** The number of inputs from outside by then, as in the data of a view. */
    inputs?: number;
    /** The node whose API the view has; the observed node by default. */
    node?: number;
}

/** The distance between two views. */
export type ViewStep = "event" | "slot" | "block" | "round";

/** The API's data of a view. */
export interface ViewData {
    id: number;
    url: string;
    lab: string;
    node: number;
    /** Microseconds since the network's epoch. */
    at: number;
    /** Seconds since then. */
    now: number;
    delivered: number;
    inputs: number;
    slot: number;
    round: number;
    height: number;
    /** The id of the newest block. */
    tip: string;
}

/** The choice of events. */
export interface EventsOptions {
    /** Only these kinds, such as `"block.applied"`. */
    kind?: string | readonly string[];
    /** Only what happens on these nodes. */
    node?: number | readonly number[];
    /** Go on after this event. */
    lastEventId?: number;
    /** The number of events after which the stream ends. */
    limit?: number;
    /** Ends the stream. */
    signal?: AbortSignal;
}

/** Something that happened, as a line of a trace (`docs/trace.md` in the project's sources). */
export interface LabEvent {
    /** Its number in the run. Null for `kind: "gap"`, whose `missed` is the number of events left out. */
    id: number | null;
    kind: string;
    /** Microseconds since the network's epoch. */
    at?: number;
    node?: number;
    [member: string]: unknown;
}
