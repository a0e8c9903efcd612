// The pages of explanations, opened from the disk: they hold what is printed, draw all of it, and ask for nothing.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const binary = process.env.DPOSLAB_BIN ?? join(root, "target/release/dposlab");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const few = ["--repeats", "10", "--instants", "8", "--budget", "30", "--json"];
const FILES = {
    halt: ["scenarios/findings/the-chain-grows-once-all-faults-are-over.toml", 1],
    pool: ["scenarios/findings/a-pool-holds-no-more-than-its-limit.toml", 1],
    missed: ["scenarios/missed-slots.toml", 0],
};

let out;
let browser;
const said = {};

before(async () => {
    out = mkdtempSync(join(tmpdir(), "dposlab-explained-"));
    for (const [name, [file, code]] of Object.entries(FILES)) {
        const { status, stdout } = spawnSync(binary, ["explain", file, "--out", join(out, `${name}.html`), ...few], { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 });
        assert.equal(status, code, file);
        said[name] = JSON.parse(stdout);
    }
    browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
});

after(async () => {
    await browser?.close();
    rmSync(out, { recursive: true, force: true });
});

async function open(name, { theme = "light", width = 1400 } = {}) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, offline: true });
    const page = await context.newPage();
    const told = [];
    page.on("console", (message) => told.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => told.push(`error: ${error.stack}`));
    page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) told.push(`request: ${request.url()}`); });
    await page.goto(`${pathToFileURL(join(out, `${name}.html`))}?theme=${theme}`);
    return { page, told, close: () => context.close() };
}

for (const name of Object.keys(FILES)) {
    test(`${name}: in every theme and width all is drawn, nothing is asked for, and axe finds nothing serious`, async () => {
        assert.ok(statSync(join(out, `${name}.html`)).size < 300_000, "under 300 KB");
        for (const [theme, width] of [["light", 1400], ["dark", 1400], ["light", 420], ["dark", 420]]) {
            const { page, told, close } = await open(name, { theme, width });
            assert.deepEqual(await page.evaluate(() => data), said[name], "the page holds what is printed");
            const drawings = page.locator(".area > svg");
            const broken = await drawings.evaluateAll((all) => all.filter((svg) => /NaN|Infinity|undefined/.test(svg.outerHTML)).length);
            assert.equal(broken, 0, "every mark has a place");
            assert.equal(await page.locator(".sequence title").count(), said[name].chain.rows.length, "every row is drawn");
            assert.deepEqual(await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]), [width, width], "nothing is cut off");
            await page.evaluate(axe);
            const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
            const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
            assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes[0].html, nodes[0].failureSummary]), [], `${theme}, ${width}`);
            assert.deepEqual(told, [], `${theme}, ${width}`);
            await close();
        }
    });
}

test("the keys go from row to row and tell what each changed", async () => {
    const { page, close } = await open("halt");
    const { rows } = said.halt.chain;
    await page.locator(".sequence").focus();
    await page.keyboard.press("Home");
    for (const row of rows) {
        const told = await page.locator(".detail").innerText();
        assert.ok(told.includes(row.text), `${row.text} in ${told}`);
        for (const { to } of row.changed) assert.ok(told.includes(to), `${to} in ${told}`);
        for (const { text } of row.numbers) assert.ok(told.includes(text), `${text} in ${told}`);
        await page.keyboard.press("ArrowDown");
    }
    await close();
});

test("the tables hold every number, rival and change, and the curve a point for each instant", async () => {
    const { page, close } = await open("halt");
    const rowsOf = (title) => page.locator(`section[aria-label="${title}"] tbody tr`).count();
    const { chain, nearest, curve } = said.halt;
    assert.equal(await rowsOf("Numbers that decided"), chain.numbers.length);
    assert.equal(await rowsOf("Rival blocks"), chain.rivals.length);
    assert.equal(await rowsOf("Single changes"), nearest.tried.length);
    await page.getByRole("button", { name: "Table of “When it was decided”" }).click();
    assert.equal(await rowsOf("When it was decided"), curve.points.length);
    await close();
});
