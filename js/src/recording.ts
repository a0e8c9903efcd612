// The traces of a failed test: a recording of its chain, the commands that replay and show it, and its story.

import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Network } from "./network.js";

/** The number of newest blocks in the story. */
const BLOCKS = 5;

/**
 * Saves the recording of a network for a failed test. Never fails, because an error here would hide why the test failed.
 *
 * @param test its full name
 * @param place the test's file and the number of this network in the test, which tell tests of one name apart
 * @returns lines with the path of the recording, the command that replays it and the story; or the reason why there is none
 */
export async function keepRecording(network: Network, test: string, ...place: (string | number)[]): Promise<string> {
    try {
        const text = await network.recording();
        const folder = process.env["DPOSLAB_RECORDINGS"] ?? join(process.cwd(), ".dposlab");
        await mkdir(folder, { recursive: true });
        // They do not belong in a repository.
        await writeFile(join(folder, ".gitignore"), "*\n");
        const file = join(folder, `${fileName(test, place)}.jsonl`);
        await writeFile(file, text);
        const path = quote(relative(process.cwd(), file));
        return [
            `dposlab: '${test}' failed; what came in to its chain: ${path}`,
            `  replay it: npx dposlab replay ${path}`,
            `  look at it on a page: npx dposlab up --pace manual --from ${path}`,
            ...(await story(network)),
        ].join("\n");
    } catch (error) {
        return `dposlab: '${test}' failed, and there is no recording: ${(error as Error).message}`;
    }
}

/** The story of a network: all submissions with the answers, the newest blocks, and the faults in force. */
async function story(network: Network): Promise<string[]> {
    const [submissions, faults, blocks] = await Promise.all([
        network.submissions(),
        network.faults.list(),
        network.api<Block[]>(`/blocks?limit=${BLOCKS}`),
    ]);
    const inForce = faults.filter(({ state }) => state === "in-force");
    return [
        submissions.length > 0 ? "  handed in:" : "  nothing was handed in",
        ...submissions.map(({ height, node, id, accepted, type, message }) => {
            const what = id === null ? "a request" : `transaction ${id}`;
            const answer = accepted ? "accepted" : `refused: ${[type, message].filter(Boolean).join(": ")}`;
            return `    at height ${height}, node ${node}: ${what}: ${answer}`;
        }),
        "  newest blocks:",
        ...blocks.map(
            ({ height, id, generator, forged, transactions }) =>
                `    ${height}: ${id} by ${generator.username ?? generator.publicKey}, transactions: ${transactions}, fees: ${forged.fee}`,
        ),
        inForce.length > 0 ? "  faults in force:" : "  no fault is in force",
        ...inForce.map(({ id, since, fault }) => `    ${id}, since second ${since}: ${JSON.stringify(fault)}`),
    ];
}

/** The members of a block in the story. */
interface Block {
    height: number;
    id: string;
    generator: { username?: string; publicKey: string };
    forged: { fee: string };
    transactions: number;
}

/** A unique file name for a test: letters, digits and dashes, short enough for a file system. */
function fileName(test: string, place: readonly (string | number)[]): string {
    const name = test.normalize("NFKD").replace(/[^\p{Letter}\p{Number}]+/gu, "-");
    const which = createHash("sha256").update(JSON.stringify([test, ...place])).digest("hex");
    return `${name.replace(/^-|-$/g, "").slice(0, 60) || "test"}-${which.slice(0, 8)}`;
}

function quote(path: string): string {
    return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
