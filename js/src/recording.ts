// What a failed test leaves: a recording of its chain, and the command that replays it.

import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Network } from "./network.js";

/**
 * Writes down what came in to a network, for a test that failed. Never fails: that would hide why the test did.
 *
 * @param test its full name
 * @param place where else a test of that name may be: its file, and which of the test's networks this is
 * @returns lines that say where the recording is and how to replay it, or why there is none
 */
export async function keepRecording(network: Network, test: string, ...place: (string | number)[]): Promise<string> {
    try {
        const text = await network.recording();
        const folder = process.env["DPOSLAB_RECORDINGS"] ?? join(process.cwd(), ".dposlab");
        await mkdir(folder, { recursive: true });
        // Nobody wants them in a repository.
        await writeFile(join(folder, ".gitignore"), "*\n");
        const file = join(folder, `${fileName(test, place)}.jsonl`);
        await writeFile(file, text);
        const path = quote(relative(process.cwd(), file));
        return `dposlab: '${test}' failed; what came in to its chain: ${path}\n  replay it: npx dposlab replay ${path}`;
    } catch (error) {
        return `dposlab: '${test}' failed, and there is no recording: ${(error as Error).message}`;
    }
}

/** A name for a file: letters, digits and dashes, and no more than a file system takes. No two tests have the same. */
function fileName(test: string, place: readonly (string | number)[]): string {
    const name = test.normalize("NFKD").replace(/[^\p{Letter}\p{Number}]+/gu, "-");
    const which = createHash("sha256").update(JSON.stringify([test, ...place])).digest("hex");
    return `${name.replace(/^-|-$/g, "").slice(0, 60) || "test"}-${which.slice(0, 8)}`;
}

function quote(path: string): string {
    return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
