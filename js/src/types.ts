// The requests to a testnet and its answers. The names of answers are those of the API.

/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };

/**
 * How virtual time passes: virtual seconds per real second, as fast as possible (`"max"`), only when a test advances it
 * (`"manual"`), or also whenever a transaction comes in, which is in a block at once (`"on-demand"`).
 */
export type Pace = number | "max" | "manual" | "on-demand";

/** An amount in arktoshi; 1 coin is 100,000,000. Answers hold texts of digits. */
export type Amount = bigint | number | string;

/** A value of a scenario. A text is a text, whatever it looks like. */
export type Setting = bigint | boolean | number | string | readonly Setting[] | { readonly [key: string]: Setting };

/** Values in place of a scenario's: `{"network.loss": 0.05}`, or texts `PATH=VALUE`, in which a value is as in the file. */
export type Settings = { readonly [path: string]: Setting } | readonly string[];

/** The options of every network. */
export interface NetworkOptions {
    /** Number of delegates, 1 to 200. Without it 51, or those of the scenario. Not allowed of a testnet with a scenario. */
    delegates?: number;
    /** The seed of keys, latencies and choices. Without it 1, and for a chain that of its testnet. */
    seed?: number;
    /** The path of a scenario file. */
    scenario?: string | URL;
    /** Values in place of the scenario's, or of what runs without one. */
    set?: Settings;
    /** `"on-demand"`, if it is not given. */
    pace?: Pace;
}

/** The further options of a process. */
export interface StartOptions extends NetworkOptions {
    /** A port of this machine; any free one, if it is not given. */
    port?: number;
    /** Two stages have the same outcome; `"inline"`, which is used if none is given, is the faster one. */
    stage?: "inline" | "ractor";
    /** More options of `dposlab up`, such as `["--dialect", "core-2.6"]`. */
    args?: readonly string[];
    /** The program; without it `DPOSLAB_BIN`, or that of the package for this platform. */
    binary?: string;
    /** How long the start may take [ms]; 60,000, if it is not given. */
    timeout?: number;
    /** The number of a process: when it ends, the testnet ends. It ends with this process in any case. */
    exitWith?: number;
    /** Reads the texts of answers; `JSON.parse`, if it is not given. */
    parse?: (text: string) => unknown;
}

/** An isolated chain. Its `scenario` is read here, and its text is sent; such a text cannot include other files. */
export type ChainOptions = NetworkOptions;

/** An account with coin, for tests only. */
export interface Account {
    address: string;
    publicKey: string;
    passphrase: string;
    /** [arktoshi], at genesis or when it was made. */
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

/** The condition that ends an advance: exactly one of these. `docs/lab.md` describes when each is reached. */
export type Until =
    | { height: number }
    | { round: number }
    | { time: number }
    | { transaction: string }
    | { event: { kind: string; node?: number | string; count?: number } };

/** How far an advance came. */
export interface Advanced {
    /** Whole slots that were played. */
    slots: number;
    /** The height of the observed node. */
    height: number;
    /** The clock, in seconds since the network's epoch. */
    now: number;
    /** Slots that were asked for, where fewer were played. */
    asked?: number;
    /** The reason of its end: `reached` or `limit`, or that a client set the pace. */
    stopped?: string;
}

/** A kept state of the whole network. */
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
    /** The treatment of the transactions in the reverted blocks: offered to the pools (the default), dropped, or these offered. */
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
    /** Nodes that went along, and those that stayed. */
    moved: number[];
    left: number[];
}

/** A fault as in a scenario file: `{ kind: "crash", nodes: [3] }`. The API says what each kind takes. */
export interface Fault {
    kind: string;
    [member: string]: unknown;
}

/** How a fault stands. */
export interface FaultData {
    id: number;
    state: "waiting" | "in-force" | "over";
    /** Its beginning [s], while it is in force. */
    since?: number;
    fault: Fault;
}

/** A rule by which answers or posts of webhooks go wrong. `docs/lab.md` tells what each member means. */
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

/** A rule in force, with how many requests or posts matched and how many were struck. */
export interface ChaosData extends ChaosRule {
    id: number;
    share: number;
    matched: number;
    applied: number;
}

/** A signed transaction as JSON, or an object of an SDK that makes it: the reference's `build()` does. */
export type SignedTransaction = object | { toJson(): object };

/** A transaction that was handed in, and what its node answered. */
export interface SubmissionData {
    /** Microseconds since the network's epoch. */
    at: number;
    node: number;
    /** The height of the node when it came in. */
    height: number;
    /** Null for a request that was refused as a whole. */
    id: string | null;
    accepted: boolean;
    /** Why it was refused: null if it was accepted. */
    type: string | null;
    message: string | null;
}

/** The whole network at once. */
export interface Status {
    ready: boolean;
    pace: Pace | null;
    now: number;
    nowMicros: number;
    seed: number | null;
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
    /** In microseconds since the network's epoch; now, if it is not given. */
    at?: number;
    /** Inputs that actors had been given within the instant, as views tell them. */
    delivered?: number;
    /** Inputs from outside within the instant, as views tell them. */
    inputs?: number;
    /** The node whose API it has; the observed one, if it is not given. */
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

/** Which events are wanted. */
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

/** Something that happened, as a line of a trace (`docs/trace.md`). */
export interface LabEvent {
    /** Its number in the run. Null for `kind: "gap"`, which tells how many events were left out (`missed`). */
    id: number | null;
    kind: string;
    /** Microseconds since the network's epoch. */
    at?: number;
    node?: number;
    [member: string]: unknown;
}
