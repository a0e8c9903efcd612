// Waits for ever, busy, until it is killed from outside. Says first which process is its testnet.
const { writeFileSync } = require("node:fs");

test("busy until it is killed", async () => {
    writeFileSync(process.env.PID_FILE, String((await dposlab.testnet()).pid));
    for (;;);
});
