// Requests to one network, by node:http and not by fetch: tests mock fetch, and an advance may take longer than fetch waits.

import { Agent, request, type IncomingMessage } from "node:http";
import { checkArgument, TEXT } from "./arguments.js";
import { ApiError, GoneError } from "./errors.js";

/** The parts of a request. */
export interface Call {
    method: "GET" | "POST" | "DELETE";
    /** The whole address. */
    url: string;
    body?: unknown;
    signal?: AbortSignal | undefined;
}

/** A client of a testnet, over persistent connections that keep no process alive. */
export class Client {
    readonly #agent = new Agent({ keepAlive: true });
    /** Parses the texts of answers. */
    readonly parse: (text: string) => unknown;
    /** True from the moment when the caller stops the testnet. */
    isStopping = false;

    /**
     * @param parse parses JSON
     * @param gone returns the reason why the testnet no longer answers, or undefined while it runs
     */
    constructor(
        parse: (text: string) => unknown,
        readonly gone: () => Promise<GoneError | undefined>,
    ) {
        this.parse = (text) => parseExactly(text, parse);
    }

    /**
     * The answer's `data`, the whole answer if it has no `data`, or undefined if it is empty.
     *
     * @throws ApiError the answer is an error
     * @throws GoneError there is no answer
     */
    async json(call: Call): Promise<unknown> {
        const text = await this.text(call);
        if (text === "") return undefined;
        const answer = this.parse(text);
        return typeof answer === "object" && answer !== null && "data" in answer ? answer.data : answer;
    }

    /**
     * The answer as it is.
     *
     * @throws ApiError the answer is an error
     * @throws GoneError there is no answer
     */
    async text(call: Call): Promise<string> {
        return this.#read(await this.open(call), call);
    }

    /**
     * The answer as soon as its head is here.
     *
     * @throws ApiError the answer is an error
     * @throws GoneError there is no answer
     */
    async open(call: Call): Promise<IncomingMessage> {
        let answer = await this.#send(call);
        // A path with a slash at its end has another address.
        const { location } = answer.headers;
        if (answer.statusCode === 301 && location !== undefined && call.method === "GET") {
            answer.resume();
            answer = await this.#send({ ...call, url: new URL(location, call.url).href });
        }
        const status = answer.statusCode ?? 0;
        if (status < 300) return answer;
        const text = await this.#read(answer, call);
        throw new ApiError(call.method, new URL(call.url).pathname, status, this.#errorBody(text));
    }

    /** Closes idle connections. */
    close(): void {
        this.#agent.destroy();
    }

    async #send(call: Call, again = true): Promise<IncomingMessage> {
        const text = call.body === undefined ? undefined : toJson(call.body);
        const headers = text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
        const { method, signal } = call;
        const sent = request(call.url, { agent: this.#agent, method, headers, ...(signal && { signal }) });
        try {
            return await new Promise((resolve, reject) => {
                sent.on("response", resolve).on("error", reject).end(text);
            });
        } catch (error) {
            // The server closed the idle connection while this request was being sent, so the server has not read the request.
            if (again && sent.reusedSocket && (error as NodeJS.ErrnoException).code === "ECONNRESET") {
                return this.#send(call, false);
            }
            throw await this.#failed(call, error);
        }
    }

    async #read(answer: IncomingMessage, call: Call): Promise<string> {
        answer.setEncoding("utf8");
        let text = "";
        try {
            for await (const part of answer) text += part;
        } catch (error) {
            throw await this.#failed(call, error);
        }
        return text;
    }

    async #failed(call: Call, error: unknown): Promise<unknown> {
        if (call.signal?.aborted) return error;
        const why = `${call.method} ${call.url}: ${(error as Error).message}`;
        return (await this.gone()) ?? new GoneError(why, undefined, { cause: error });
    }

    #errorBody(text: string): unknown {
        try {
            return this.parse(text);
        } catch {
            return text;
        }
    }
}

/**
 * The address of a path below a base. The slash in front of the path may be missing.
 *
 * @throws UsageError the path is no text
 */
export function join(call: string, base: string, path: string): string {
    checkArgument(call, "path", path, TEXT);
    return base + (/^(?:$|[/?])/.test(path) ? path : `/${path}`);
}

/** Seeds that a number may round. A text in JSON does not contain this, because a quote in a text has a backslash in front. */
const LARGE_SEEDS = /"seed":(\d{16,})/g;

/** Parses JSON. A seed from 2^53 on becomes a `bigint`. */
function parseExactly(text: string, parse: (text: string) => unknown): unknown {
    const mark = (member: string, digits: string): string => (Number.isSafeInteger(Number(digits)) ? member : `"seed":"${digits}n"`);
    const marked = text.replace(LARGE_SEEDS, mark);
    return marked === text ? parse(text) : withSeeds(parse(marked));
}

/** Replaces the marked seeds. */
function withSeeds(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    const members = value as Record<string, unknown>;
    for (const [name, member] of Object.entries(members)) {
        const isSeed = name === "seed" && typeof member === "string" && /^\d{16,}n$/.test(member);
        members[name] = isSeed ? BigInt(member.slice(0, -1)) : withSeeds(member);
    }
    return value;
}

/** JSON in which a `bigint` is a text of digits, as the API accepts it. */
function toJson(body: unknown): string {
    return JSON.stringify(body, (_member, value: unknown) => (typeof value === "bigint" ? value.toString() : value));
}
