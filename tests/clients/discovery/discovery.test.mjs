// @arkecosystem/peers, by which wallets and exchanges choose a node: it asks one node for its peers, picks any of them, and takes
// those that serve an API.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const { PeerDiscovery } = createRequire(import.meta.url)("@arkecosystem/peers");
const binary =
    process.env.DPOSLAB_BIN ?? fileURLToPath(new URL("../../../target/release/dposlab", import.meta.url));

/** Gives a testnet to a test, and stops it afterwards. */
async function withTestnet(args, use) {
    const child = spawn(binary, ["up", "--json", "--port", "0", "--exit-with-parent", ...args], { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    try {
        const ready = await new Promise((resolve, reject) => {
            exited.then(([code]) => reject(new Error(`dposlab up ended with code ${code} before it was ready`)));
            createInterface({ input: child.stdout }).on("line", (line) => {
                const message = JSON.parse(line);
                if (message.event === "ready") resolve(message);
            });
        });
        await use(ready);
    } finally {
        child.kill("SIGINT");
        await exited;
    }
}

const urlOf = ({ ip, port }) => `http://${ip}:${port}/api`;
const heightOf = async (url) => (await (await fetch(`${url}/node/status`)).json()).data.now;

test("from one node the library finds the others, whichever it picks", async () => {
    await withTestnet(["--delegates", "5", "--api-nodes", "5", "--pace", "on-demand"], async ({ url, urls }) => {
        const discovery = await PeerDiscovery.new({ networkOrHost: `${url}/peers` });
        const others = urls.filter((other) => other !== url).sort();
        assert.deepEqual(discovery.getSeeds().map(urlOf).sort(), others, "every seed is a node that answers");
        const seen = new Set();
        // It draws the node that it asks.
        for (let drawn = 0; drawn < 60 && seen.size < urls.length; drawn += 1) {
            const found = await discovery.withVersion("^2.6.0").sortBy("latency", "asc").findPeersWithPlugin("core-api");
            assert.equal(found.length, 4, "all but the one that was asked");
            found.forEach((peer) => seen.add(urlOf(peer)));
        }
        assert.deepEqual([...seen].sort(), [...urls].sort());
        for (const found of seen) assert.equal(await heightOf(found), 2, found);
        // It asks each for a block, and fails if one does not answer. A count of blocks is an estimate, as with the reference.
        assert.deepEqual(await discovery.findPeersWithoutEstimates(), []);
    });
});

test("of a network in which few nodes serve an API it takes those", async () => {
    await withTestnet(["--delegates", "5", "--api-nodes", "3", "--pace", "on-demand"], async ({ url, urls }) => {
        const discovery = await PeerDiscovery.new({ networkOrHost: `${url}/peers` });
        // A node without an API is no seed that answers, as on a real network.
        discovery.seeds = discovery.getSeeds().filter((seed) => seed.ip === "127.0.0.1" && urls.includes(urlOf(seed)));
        assert.equal(discovery.getSeeds().length, 2);
        const found = await discovery.findPeersWithPlugin("core-api", { additional: ["height", "version"] });
        assert.equal(found.length, 2);
        for (const peer of found) {
            assert.ok(urls.includes(urlOf(peer)), urlOf(peer));
            assert.equal(await heightOf(urlOf(peer)), peer.height);
        }
    });
});
