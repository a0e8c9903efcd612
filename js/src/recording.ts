// What a failed test leaves: a recording of its chain, and the command that replays it.

import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Network } from "./network.js";

/**
 * Writes down what came in to a network, for a test that failed. Never fails: that would hide why the test did.
 *
 * @param test its full name
 * @returns lines that say where the recording is and how to replay it, or why there is none
 */
export async function keepRecording(network: Network, test: string): Promise<string> {
    try {
        const text = await network.recording();
        const folder = process.env["DPOSLAB_RECORDINGS"] ?? join(process.cwd(), ".dposlab");
        await mkdir(folder, { recursive: true });
        // Nobody wants them in a repository.
        await writeFile(join(folder, ".gitignore"), "*\n");
        const file = join(folder, `${fileName(test)}.jsonl`);
        await writeFile(file, text);
        const path = quote(relative(process.cwd(), file));
        return `dposlab: '${test}' failed; what came in to its chain: ${path}\n  replay it: npx dposlab replay ${path}`;
    } catch (error) {
        return `dposlab: '${test}' failed, and there is no recording: ${(error as Error).message}`;
    }
}

/** A name for a file: letters, digits and dashes, and no more than a file system takes. */
function fileName(test: string): string {
    const name = test.normalize("NFKD").replace(/[^\p{Letter}\p{Number}]+/gu, "-");
    return name.replace(/^-|-$/g, "").slice(0, 60) || "test";
}

function quote(path: string): string {
    return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
