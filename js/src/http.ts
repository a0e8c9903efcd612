// Requests to one network, by node:http and not by fetch: tests mock fetch, and an advance may take longer than fetch waits.

import { Agent, request, type IncomingMessage } from "node:http";
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

    /**
     * @param parse parses the texts of answers
     * @param gone returns the reason why the testnet no longer answers, or undefined while it runs
     */
    constructor(
        readonly parse: (text: string) => unknown,
        readonly gone: () => Promise<GoneError | undefined>,
    ) {}

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
        const answer = await this.#send(call);
        const status = answer.statusCode ?? 0;
        if (status < 400) return answer;
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

/** JSON in which a `bigint` is a text of digits, as the API accepts it. */
function toJson(body: unknown): string {
    return JSON.stringify(body, (_member, value: unknown) => (typeof value === "bigint" ? value.toString() : value));
}
