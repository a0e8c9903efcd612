// The stream of a network's events: server-sent events, read as they come.

import type { IncomingMessage } from "node:http";
import type { EventsOptions, LabEvent } from "./types.js";

/** Events as they come. The stream ends with its `limit`, with its testnet, by `close()`, or when a loop over it is left. */
export interface EventStream extends AsyncIterableIterator<LabEvent> {
    /** Ends it. */
    close(): void;
}

/** The query of the request for a stream. */
export function eventsQuery({ kind, node, lastEventId, limit }: EventsOptions): string {
    const query = new URLSearchParams();
    if (kind !== undefined) query.set("kind", [kind].flat().join(","));
    if (node !== undefined) query.set("node", [node].flat().join(","));
    if (lastEventId !== undefined) query.set("last_event_id", String(lastEventId));
    if (limit !== undefined) query.set("limit", String(limit));
    return query.size === 0 ? "" : `?${query}`;
}

/** The events of an answer that has begun. */
export function eventStream(answer: IncomingMessage, parse: (text: string) => unknown): EventStream {
    const events = read(answer, parse);
    return Object.assign(events, { close: () => void answer.destroy() });
}

async function* read(answer: IncomingMessage, parse: (text: string) => unknown): AsyncGenerator<LabEvent, undefined> {
    answer.setEncoding("utf8");
    let text = "";
    try {
        for await (const part of answer) {
            text += part;
            const blocks = text.split("\n\n");
            text = blocks.pop() ?? "";
            for (const block of blocks) {
                const event = readBlock(block, parse);
                if (event !== undefined) yield event;
            }
        }
    } catch (error) {
        // The stream was closed here or by the end of the testnet, so no more events follow.
        const { code } = error as NodeJS.ErrnoException;
        if (!answer.destroyed && code !== "ECONNRESET") throw error;
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
