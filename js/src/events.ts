// The stream of a network's events: server-sent events, read as they come.

import type { IncomingMessage } from "node:http";
import { checkOptions, isObject, oneOrMore, TEXT, WHOLE, type Forms } from "./arguments.js";
import { GoneError } from "./errors.js";
import type { Client } from "./http.js";
import type { EventsOptions, LabEvent } from "./types.js";

/**
 * Events as they come. The stream ends with its `limit`, with its chain, with a testnet that is stopped, by `close()`, or when a loop over
 * it is left. It fails with a `GoneError` if its testnet ends in another way, such as by a kill.
 */
export interface EventStream extends AsyncIterableIterator<LabEvent> {
    /** Ends it. */
    close(): void;
}

const FORMS: Forms<EventsOptions> = {
    kind: oneOrMore(TEXT),
    node: oneOrMore(WHOLE),
    lastEventId: WHOLE,
    limit: WHOLE,
    signal: ["an AbortSignal", (value) => isObject(value) && "aborted" in value],
};

/** The query of the request for a stream. */
export function eventsQuery(options: EventsOptions): string {
    checkOptions("events", options, FORMS);
    const { kind, node, lastEventId, limit } = options;
    const query = new URLSearchParams();
    if (kind !== undefined) query.set("kind", [kind].flat().join(","));
    if (node !== undefined) query.set("node", [node].flat().join(","));
    if (lastEventId !== undefined) query.set("last_event_id", String(lastEventId));
    if (limit !== undefined) query.set("limit", String(limit));
    return query.size === 0 ? "" : `?${query}`;
}

/** The events of an answer that has begun. */
export function eventStream(answer: IncomingMessage, client: Client, signal?: AbortSignal): EventStream {
    let isClosed = false;
    const events = read(answer, client, () => isClosed || signal?.aborted === true || client.isStopping);
    return Object.assign(events, { close: () => void ((isClosed = true), answer.destroy()) });
}

/** @param isEnded whether the caller has ended the stream */
async function* read(answer: IncomingMessage, client: Client, isEnded: () => boolean): AsyncGenerator<LabEvent, undefined> {
    answer.setEncoding("utf8");
    let text = "";
    try {
        for await (const part of answer) {
            text += part;
            const blocks = text.split("\n\n");
            text = blocks.pop() ?? "";
            for (const block of blocks) {
                const event = readBlock(block, client.parse);
                if (event !== undefined) yield event;
            }
        }
    } catch (error) {
        const gone = isEnded() ? undefined : await client.gone();
        // A testnet that another process stops, as Ctrl-C does, ends with code 0.
        if (isEnded() || gone?.ending?.code === 0) return;
        throw gone ?? new GoneError(`the stream of events broke off: ${(error as Error).message}`, undefined, { cause: error });
    } finally {
        answer.destroy();
    }
}

/** One event, or undefined for a comment or a `retry` field. */
function readBlock(block: string, parse: (text: string) => unknown): LabEvent | undefined {
    let id: number | null = null;
    let name = "message";
    const data: string[] = [];
    for (const line of block.split("\n")) {
        const [field, value] = split(line);
        if (field === "id") id = Number(value);
        if (field === "event") name = value;
        if (field === "data") data.push(value);
    }
    if (data.length === 0) return undefined;
    const members = parse(data.join("\n")) as object;
    return name === "message" ? ({ id, ...members } as LabEvent) : { id: null, kind: name, ...members };
}

function split(line: string): [string, string] {
    const colon = line.indexOf(":");
    return colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
}
