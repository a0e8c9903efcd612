// A testnet: `dposlab up` as a child process. It ends when this process ends, even by a kill.

import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { checkOptions, FUNCTION, NUMBER, TEXT, TEXTS, WHOLE, type Forms } from "./arguments.js";
import { findBinary } from "./binary.js";
import { Chain, chainBody, NETWORK_FORMS, type ChainData } from "./chain.js";
import { GoneError, inWords, StartError, type Ending } from "./errors.js";
import { Client } from "./http.js";
import { Network } from "./network.js";
import { settings } from "./settings.js";
import type { Account, ChainOptions, Delegate, StartOptions, ViewData, ViewOptions } from "./types.js";
import { View } from "./view.js";

/** The first line that `dposlab up --json` prints. */
interface Ready {
    pid: number;
    version: string;
    url: string;
    urls: string[];
    seed: number | bigint;
    nethash: string;
    accounts: Account[];
    delegates: Delegate[];
}

/** The forms of the options of a testnet. */
const START_FORMS: Forms<StartOptions> = {
    ...NETWORK_FORMS,
    port: WHOLE,
    stage: ["'inline' or 'ractor'", (value) => value === "inline" || value === "ractor"],
    args: TEXTS,
    binary: TEXT,
    timeout: NUMBER,
    exitWith: WHOLE,
    parse: FUNCTION,
};

/** The length of the retained end of standard error [characters]. */
const STDERR_KEPT = 4_000;

/** The longest time for an orderly stop [ms]. */
const STOP_PATIENCE = 10_000;

/** The time for which a failed request waits for the end of the process, to report how the process ended [ms]. */
const ENDING_PATIENCE = 500;

/** A testnet in a process of its own. */
export class Testnet extends Network {
    readonly pid: number;
    /** The base URLs of the public APIs: one for each node of `--api-nodes`, the first of them `url`. */
    readonly urls: readonly string[];
    /** The version of the program. */
    readonly version: string;
    /** The delegates that forge, with their passphrases. */
    readonly delegates: readonly Delegate[];
    readonly #child: ChildProcess;
    readonly #ended: Promise<Ending>;

    private constructor(client: Client, ready: Ready, child: ChildProcess, ended: Promise<Ending>) {
        super(client, ready.url, ready.url.replace(/api$/, "lab"), ready.seed, ready.nethash, ready.accounts);
        this.pid = ready.pid;
        this.urls = ready.urls;
        this.version = ready.version;
        this.delegates = ready.delegates;
        this.#child = child;
        this.#ended = ended;
    }

    /**
     * Starts one. It takes some ten milliseconds.
     *
     * @throws UsageError an option is unknown or has another form
     * @throws StartError the process did not become a testnet; the error has the process's own message
     * @throws NoBinaryError there is no program for this platform
     */
    static async start(options: StartOptions = {}): Promise<Testnet> {
        checkOptions("Testnet.start", options, START_FORMS);
        const command = [options.binary ?? findBinary(), ...words(options)];
        const child = spawn(command[0]!, command.slice(1), { stdio: ["ignore", "pipe", "pipe"] });
        const ended = ending(child);
        try {
            const ready = await firstLine(child, ended, command, options.timeout ?? 60_000);
            letGo(child);
            const client = new Client(options.parse ?? JSON.parse, () => gone(ended));
            return new Testnet(client, client.parse(ready) as Ready, child, ended);
        } catch (error) {
            child.kill("SIGKILL");
            throw error;
        }
    }

    /** Makes an isolated chain in this process. */
    async chain(options: ChainOptions = {}): Promise<Chain> {
        const data = await this.lab<ChainData>("POST", "/chains", await chainBody(options));
        const chain = new Chain(this.client, this.labUrl, data);
        // The answer for a chain comes before its first block is forged on demand. Its lab answers after that.
        await chain.pace();
        return chain;
    }

    /** The isolated chains of this process. */
    async chains(): Promise<Chain[]> {
        const all = await this.lab<ChainData[]>("GET", "/chains");
        return all.map((data) => new Chain(this.client, this.labUrl, data));
    }

    /** Opens a view of the network at the last moment when its clock showed an instant, or of the present without an instant. */
    async view(options: ViewOptions = {}): Promise<View> {
        checkOptions("Testnet.view", options, { at: WHOLE, delivered: WHOLE, inputs: WHOLE, node: WHOLE } satisfies Forms<ViewOptions>);
        return new View(this.client, this.labUrl, await this.lab<ViewData>("POST", "/views", options));
    }

    /** The views that are open. */
    async views(): Promise<View[]> {
        const { views } = await this.lab<{ views: ViewData[] }>("GET", "/views");
        return views.map((data) => new View(this.client, this.labUrl, data));
    }

    /**
     * Stops it as Ctrl-C does, and waits for its end, which takes three seconds at most. Kills a process that has not ended after
     * ten seconds. Does nothing if it has already ended.
     *
     * @returns how its process ended: with exit code 0 if nothing went wrong
     */
    async stop(): Promise<Ending> {
        this.client.isStopping = true;
        this.#child.ref();
        this.#child.kill("SIGINT");
        const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_PATIENCE);
        const ended = await this.#ended;
        clearTimeout(timer);
        this.client.close();
        return ended;
    }

    /** Stops it at the end of a block: `await using testnet = await Testnet.start()`. */
    async [Symbol.asyncDispose](): Promise<void> {
        await this.stop();
    }
}

/** The arguments of the program. */
function words(options: StartOptions): string[] {
    const { delegates, seed, scenario, pace = "on-demand", port = 0, stage = "inline", exitWith, args = [] } = options;
    const path = scenario instanceof URL ? fileURLToPath(scenario) : scenario;
    const timed = pace === "manual" || pace === "on-demand" ? "--pace" : "--speed";
    return [
        "up",
        // A dash in front would begin an option.
        ...(path === undefined ? [] : [path.startsWith("-") ? `./${path}` : path]),
        ...["--json", "--port", String(port), "--stage", stage, timed, String(pace)],
        ...(delegates === undefined ? [] : ["--delegates", String(delegates)]),
        ...(seed === undefined ? [] : [`--seed=${seed}`]),
        ...settings(options.set).flatMap((value) => ["--set", value]),
        // The testnet notices the end of this process by its standard output, which is a pipe to this process.
        `--exit-with-parent=${exitWith ?? process.pid}`,
        ...args,
    ];
}

/** How the process ends, and the last of its standard error. */
function ending(child: ChildProcess): Promise<Ending> {
    let stderr = "";
    child.stderr?.setEncoding("utf8").on("data", (part: string) => (stderr = (stderr + part).slice(-STDERR_KEPT)));
    return new Promise((resolve) => {
        child.on("close", (code, signal) => resolve({ code, signal, stderr }));
    });
}

/** The first line of standard output. Later output is read and discarded. */
async function firstLine(child: ChildProcess, ended: Promise<Ending>, command: string[], timeout: number): Promise<string> {
    const lines = createInterface({ input: child.stdout! });
    let timer: NodeJS.Timeout | undefined;
    const line = new Promise<string>((resolve, reject) => {
        lines.once("line", resolve);
        child.once("error", (cause) => reject(new StartError(cause.message, command, undefined, { cause })));
        void ended.then((how) => reject(new StartError(inWords(how), command, how)));
        timer = setTimeout(() => reject(new StartError(`not ready after ${timeout} ms`, command)), timeout);
    });
    try {
        return await line;
    } finally {
        clearTimeout(timer);
        lines.close();
        child.stdout?.resume();
    }
}

/** Lets this process end without waiting for the testnet, which then ends, too. */
function letGo(child: ChildProcess): void {
    child.unref();
    for (const pipe of [child.stdout, child.stderr]) (pipe as unknown as { unref(): void } | null)?.unref();
}

/** The reason why the testnet no longer answers, if the process has ended or is about to. */
async function gone(ended: Promise<Ending>): Promise<GoneError | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ENDING_PATIENCE, undefined)));
    const how = await Promise.race([ended, patience]);
    clearTimeout(timer);
    return how && new GoneError(`the testnet ${inWords(how)}`, how);
}
