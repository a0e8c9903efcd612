// Waits for ever, busy, until it is killed from outside. Says first which process is its testnet.
import { writeFileSync } from "node:fs";
import { test } from "dposlab/vitest";

test("busy until it is killed", async ({ testnet }) => {
    writeFileSync(process.env.PID_FILE, String(testnet.pid));
    for (;;);
});
