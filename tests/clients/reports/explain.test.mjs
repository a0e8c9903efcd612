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
import { across, drawing, parts, up } from "./drawn.mjs";

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
            const beyond = await drawings.evaluateAll((all) => all.flatMap((svg) => {
                const frame = svg.getBoundingClientRect();
                return [...svg.querySelectorAll("text")].filter((text) => { const box = text.getBoundingClientRect(); return box.left < frame.left - 1 || box.right > frame.right + 1; }).map((text) => text.textContent);
            }));
            assert.deepEqual(beyond, [], `${width}: no text is cut off at the edges of its drawing`);
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

test("each arrow goes from the node that sent to the node that heard, in the row of what it brought about", async () => {
    const { page, close } = await open("halt");
    const { rows } = said.halt.chain;
    const { lanes, arrows, heads, times } = await page.locator(".sequence svg").evaluate((svg) => ({
        lanes: [...svg.querySelectorAll(".lane-name")].map((text) => [Number(text.textContent), Number(text.getAttribute("x"))]),
        arrows: [...svg.querySelectorAll("path")].map((path) => path.getAttribute("d").match(/^M([\d.]+),([\d.]+)H([\d.]+)$/)).filter(Boolean).map((found) => found.slice(1).map(Number)),
        heads: [...svg.querySelectorAll("path")].map((path) => path.getAttribute("d").match(/^M([\d.]+),[\d.]+l(-?)6,-3.5v7z$/)).filter(Boolean).map(([, at, left]) => [Number(at), left === "-" ? 1 : -1]),
        times: [...svg.querySelectorAll("text.tick[x='0']")].map((text) => Number(text.getAttribute("y")) - 4),
    }));
    const node = (x, within) => lanes.find(([, at]) => Math.abs(at - x) <= within)?.[0];
    const drawn = arrows.map(([start, y, tip]) => [times.indexOf(y), node(start, 0.5), node(tip + Math.sign(tip - start) * 6, 0.5)]);
    const expected = rows.flatMap((row, index) => row.arrows.map(({ from, to }) => [index, from, to]));
    assert.ok(expected.length > 5, `${expected.length} arrows`);
    assert.deepEqual(drawn, expected);
    const met = arrows.flatMap(([start, , tip], index) => (rows.flatMap((row) => row.arrows)[index].lost ? [] : [Math.sign(tip - start)]));
    assert.deepEqual(heads.map(([, side]) => side), met, "heads point where arrows go");
    await close();
});

test("the curve stands at the shares that are printed, with their intervals", async () => {
    const { page, close } = await open("halt");
    const { points } = said.halt.curve;
    const drawn = await drawing(page.locator('section[aria-label="When it was decided"]'));
    const [x, y] = [across(drawn), up(drawn, "share of copies")];
    const { line, error } = drawn.series["copies that show it"];
    const at = parts(line).flat();
    const bars = error.split("M").slice(1).filter((bar) => bar.includes("V")).map((bar) => bar.match(/^[\d.]+,([\d.]+)V([\d.]+)/).slice(1).map(Number));
    assert.deepEqual([at.length, bars.length], [points.length, points.length]);
    const near = (found, expected, scale, what) => assert.ok(Math.abs(found - expected) <= 1.5 * scale.tolerance, `${what}: drawn ${found}, printed ${expected}`);
    points.forEach(({ after_seconds: after, share, interval }, index) => {
        near(x.of(at[index][0]), after, x, "instant");
        near(y.of(at[index][1]), share * 100, y, `share from ${after} s`);
        near(y.of(Math.max(...bars[index])), interval.low * 100, y, `low end from ${after} s`);
        near(y.of(Math.min(...bars[index])), interval.high * 100, y, `high end from ${after} s`);
    });
    await close();
});

test("of many nodes spans are told, on the page as in the text", async () => {
    const { page, close } = await open("missed");
    const told = await page.evaluate(() => [[3], [0, 1, 2], [0, 1, 3, 4, 5, 9, 10, 11, 12, 20], [...Array(35).keys()]].map(nodeList));
    assert.deepEqual(told, ["3", "0 1 2", "0 1 3–5 9–12 20", "0–34"]);
    await close();
});

test("the tables hold every number, rival and change, and the curve a point for each instant", async () => {
    const { page, close } = await open("halt");
    const rowsOf = (title) => page.locator(`section[aria-label="${title}"] tbody tr`).count();
    const { chain, nearest, curve } = said.halt;
    assert.equal(await rowsOf("Numbers that decided"), chain.numbers.length);
    const numbers = await page.locator('section[aria-label="Numbers that decided"] tbody tr').evaluateAll((all) => all.map((row) => [row.cells[0].textContent, row.cells[0].className === "bad", row.cells[1].textContent]));
    assert.deepEqual(numbers, chain.numbers.map(({ text, met, rule }) => [text, !met, rule]), "each beside its rule, and marked where it falls short");
    assert.equal(await rowsOf("Rival blocks"), chain.rivals.length);
    assert.equal(await rowsOf("Single changes"), nearest.tried.length);
    await page.getByRole("button", { name: "Table of “When it was decided”" }).click();
    assert.equal(await rowsOf("When it was decided"), curve.points.length);
    await close();
});
