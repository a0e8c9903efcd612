// Testnets and pages of their own for the tests: started on any free port, and watched for what they should not do.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const binary = process.env.DPOSLAB_BIN ?? fileURLToPath(new URL("../../../target/release/dposlab", import.meta.url));

/** A running testnet: `get` and `post` ask it, `ready` is what it said when it began. */
export async function testnet(...options) {
    const running = spawn(binary, ["up", "--json", "--port", "0", ...options], { stdio: ["ignore", "pipe", "inherit"] });
    const ready = await new Promise((resolve, reject) => {
        running.once("error", reject);
        running.once("exit", (code) => reject(new Error(`dposlab up ended with code ${code}`)));
        createInterface({ input: running.stdout }).on("line", (line) => {
            const message = JSON.parse(line);
            if (message.event === "ready") resolve(message);
        });
    });
    const origin = new URL(ready.url).origin;
    const ask = async (path, init) => {
        const response = await fetch(`${origin}${path}`, init);
        if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
        return response.status === 204 ? null : (await response.json()).data;
    };
    return {
        ready,
        origin,
        get: (path) => ask(path),
        post: (path, body = {}) => ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
        advance: (slots) => ask("/lab/advance", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ slots }) }),
        stop: () => running.kill("SIGINT"),
    };
}

/** A page of a testnet. `told` fills with what its console says, what fails in it, and what it asks of others. */
export async function open(browser, net, address = "/", { theme = "light", width = 1440, height = 900 } = {}) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: "reduce" });
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    const told = [];
    page.on("console", (message) => { if (["error", "warning"].includes(message.type())) told.push(`console: ${message.text()}`); });
    page.on("pageerror", (error) => told.push(`error: ${error.stack}`));
    page.on("request", (request) => { if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== net.origin) told.push(`request: ${request.url()}`); });
    await page.goto(`${net.origin}${address}`);
    return { page, told, close: () => context.close() };
}

/** Waits until a function of the page gives true; its argument is `value`. */
export const until = (page, holds, value) => page.waitForFunction(holds, value, { polling: 50 });

/** Waits until the figure of a tile is one that passes. */
export const figure = (page, name, wanted) => until(page, ([name, wanted]) => {
    const tile = [...document.querySelectorAll(".tile")].find((tile) => tile.querySelector("dt").textContent === name);
    return tile && new RegExp(`^(?:${wanted})$`).test(tile.querySelector("dd").textContent);
}, [name, String(wanted)]);

/** A browser without requests of its own. */
export const browsing = () => chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** Presses the button with a name. */
export const press = (page, name) => page.getByRole("button", { name, exact: true }).click();

/** Waits until an answer to a button has a text. */
export const outcome = (page, text) => until(page, (text) => [...document.querySelectorAll(".outcome")].some((told) => told.textContent.includes(text)), text);
