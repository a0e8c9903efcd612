// Ends the process it runs in, in the way that END names. Says first which process is its testnet.
import { writeFileSync } from "node:fs";
import { test } from "dposlab/vitest";

const signal = (name) => {
    process.kill(process.pid, name);
    return new Promise(() => {});
};
const ends = {
    "an exception": () => {
        throw new Error("as planned");
    },
    "an exception that nobody catches": () => {
        setTimeout(() => {
            throw new Error("as planned");
        });
        return new Promise((resolve) => setTimeout(resolve, 100));
    },
    "process.exit": () => process.exit(3),
    "SIGKILL": () => signal("SIGKILL"),
    "SIGTERM": () => signal("SIGTERM"),
    "SIGINT": () => signal("SIGINT"),
    "abort": () => process.abort(),
    "nothing": () => new Promise(() => {}),
};

test("ends", { timeout: 10_000 }, async ({ testnet, chain }) => {
    await chain.advance(1);
    writeFileSync(process.env.PID_FILE, String(testnet.pid));
    await ends[process.env.END]();
});
