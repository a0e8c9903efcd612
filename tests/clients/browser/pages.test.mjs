// A page that somebody happens to have open must not reach /lab or the webhooks; a page of the testnet itself may.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const binary =
    process.env.DPOSLAB_BIN ?? fileURLToPath(new URL("../../../target/release/dposlab", import.meta.url));

/** A name that leads to this machine, as a page's own name does after DNS rebinding. */
const REBOUND = "rebound.test";

let testnet;
let port;
let foreign;
let browser;

before(async () => {
    testnet = spawn(binary, ["up", "--json", "--port", "0", "--pace", "manual"], { stdio: ["ignore", "pipe", "inherit"] });
    const ready = await new Promise((resolve, reject) => {
        testnet.once("exit", (code) => reject(new Error(`dposlab up ended with code ${code}`)));
        createInterface({ input: testnet.stdout }).on("line", (line) => {
            const message = JSON.parse(line);
            if (message.event === "ready") resolve(message);
        });
    });
    port = Number(new URL(ready.url).port);
    foreign = createServer((_, response) => {
        response.setHeader("content-type", "text/html");
        response.end("<!doctype html><title>somebody's page</title><iframe name=hidden></iframe>");
    });
    await new Promise((resolve) => foreign.listen(0, "127.0.0.1", resolve));
    browser = await chromium.launch({
        executablePath: "/usr/bin/chromium",
        args: [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            `--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`,
        ],
    });
});

after(async () => {
    await browser?.close();
    foreign?.close();
    testnet?.kill("SIGINT");
});

async function ask(path) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return (await response.json()).data;
}

/** What a page could have changed. */
async function state() {
    const [chain, pace, hooks] = [await ask("/api/blockchain"), await ask("/lab/pace"), await ask("/api/webhooks")];
    return { height: chain.block.height, pace: pace.pace, webhooks: hooks.length };
}

/** Everything a page can send without being asked, and what it can read of the answers. */
async function attack({ target, hook }) {
    const json = { "content-type": "application/json" };
    const tricks = {
        beacon: async () => navigator.sendBeacon(`${target}/lab/advance`, '{"slots":5}'),
        "no type": () => fetch(`${target}/lab/advance`, { method: "POST", mode: "no-cors", body: new Blob(['{"slots":5}']) }),
        text: () => fetch(`${target}/lab/advance`, { method: "POST", mode: "no-cors", body: '{"slots":5}' }),
        json: () => fetch(`${target}/lab/advance`, { method: "POST", headers: json, body: '{"slots":5}' }),
        pace: () => fetch(`${target}/lab/pace`, { method: "POST", headers: json, body: '{"pace":"max"}' }),
        read: () => fetch(`${target}/lab/pace`),
        hook: () => fetch(`${target}/api/webhooks`, { method: "POST", headers: json, body: hook }),
        "hook as text": () => fetch(`${target}/api/webhooks`, { method: "POST", mode: "no-cors", body: hook }),
        "read hooks": () => fetch(`${target}/api/webhooks`),
        form: async () => {
            const form = document.createElement("form");
            Object.assign(form, { action: `${target}/lab/advance`, method: "POST", enctype: "text/plain", target: "hidden" });
            const field = Object.assign(document.createElement("input"), { name: '{"slots":5,"x":"', value: '"}' });
            form.append(field);
            document.body.append(form);
            form.submit();
            await new Promise((resolve) => document.querySelector("iframe").addEventListener("load", resolve, { once: true }));
        },
    };
    const outcomes = {};
    for (const [name, trick] of Object.entries(tricks)) {
        if (name === "form" && !document.querySelector("iframe")) continue;
        try {
            const response = await trick();
            outcomes[name] = response instanceof Response ? `${response.type} ${response.status}` : "sent";
        } catch (error) {
            outcomes[name] = "blocked";
        }
    }
    return outcomes;
}

const hook = JSON.stringify({ event: "block.forged", target: "http://127.0.0.1:9/", conditions: [] });

test("a page of another origin neither steers nor reads", async () => {
    const before = await state();
    for (const host of ["127.0.0.1", "localhost"]) {
        const page = await browser.newPage();
        await page.goto(`http://${host}:${foreign.address().port}/`);
        const outcomes = await page.evaluate(attack, { target: `http://127.0.0.1:${port}`, hook });
        for (const name of ["json", "pace", "read", "hook", "read hooks"]) assert.equal(outcomes[name], "blocked", name);
        for (const name of ["no type", "text", "hook as text"]) assert.equal(outcomes[name], "opaque 0", name);
        await page.close();
    }
    assert.deepEqual(await state(), before);
});

test("a page whose name was made to lead here does not either", async () => {
    const before = await state();
    const page = await browser.newPage();
    await page.goto(`http://${REBOUND}:${port}/api/node/status`);
    const outcomes = await page.evaluate(attack, { target: "", hook });
    for (const name of ["json", "pace", "read", "hook", "read hooks"]) assert.equal(outcomes[name], "basic 403", name);
    await page.close();
    assert.deepEqual(await state(), before);
});

test("a page of the testnet itself may", async () => {
    const page = await browser.newPage();
    await page.goto(`http://localhost:${port}/api/node/status`);
    const outcomes = await page.evaluate(attack, { target: "", hook });
    assert.equal(outcomes.json, "basic 200");
    assert.equal(outcomes.hook, "basic 201");
    assert.equal(outcomes.read, "basic 200");
    assert.equal((await state()).webhooks, 1);
    await page.close();
});
