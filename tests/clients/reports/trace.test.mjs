// The trace of a run, opened in the run's report: what is shown at an event is what the lines of the file say, read by other
// code; and looking at one event after the other never takes longer than a frame or two.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const binary = process.env.DPOSLAB_BIN ?? join(root, "target/release/dposlab");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let out;
let browser;
let lines;

before(async () => {
    out = mkdtempSync(join(tmpdir(), "dposlab-trace-"));
    execFileSync(binary, ["run", "scenarios/heal.toml", "--seed", "7", "--out", join(out, "heal")], { cwd: root, stdio: "ignore" });
    execFileSync(binary, ["run", "scenarios/crash-and-restart.toml", "--seed", "7", "--trace", join(out, "crash.jsonl"), "--trace-network"], { cwd: root, stdio: "ignore" });
    lines = readFileSync(join(out, "heal", "events.jsonl"), "utf8").trimEnd().split("\n");
    browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
});

after(async () => {
    await browser?.close();
    rmSync(out, { recursive: true, force: true });
});

const card = (page) => page.locator('section.card[aria-label="Trace, event by event"]');

/** Opens the report without a network, and in it a trace. */
async function open(file, { theme = "light", width = 1400 } = {}) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, offline: true });
    const page = await context.newPage();
    const told = [];
    page.on("console", (message) => told.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => told.push(`error: ${error.stack}`));
    page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) told.push(`request: ${request.url()}`); });
    await page.goto(`${pathToFileURL(join(out, "heal", "report.html"))}?theme=${theme}`);
    if (file) {
        await card(page).locator("input[type=file]").setInputFiles(file);
        await card(page).locator(".trace:not([hidden])").waitFor();
    }
    return { page, told, close: () => context.close() };
}

/** Goes to an event, and waits until its line was read. */
async function look(page, event) {
    await card(page).getByRole("slider", { name: "Event of the trace" }).evaluate((slider, event) => { slider.value = event; slider.dispatchEvent(new Event("input")); }, event);
    return shown(page, event);
}

async function shown(page, event) {
    const first = `${(event + 1).toLocaleString("en")} of `;
    await page.waitForFunction((first) => {
        const all = [...document.querySelectorAll(".trace .detail dd")].map((text) => text.textContent);
        return all[0]?.startsWith(first);
    }, first);
    const rows = () => card(page).locator(".detail dl").evaluate((list) => Object.fromEntries([...list.querySelectorAll("dt")].map((name) => [name.textContent, name.nextElementSibling.textContent])));
    const members = Object.keys(JSON.parse(lines[event + 1])).length - 3;
    await page.waitForFunction((count) => document.querySelectorAll(".trace .detail dt").length === count, 4 + members);
    return rows();
}

/** Where each node stands after an event, from the lines alone. */
function tipsAfter(event) {
    const head = JSON.parse(lines[0]);
    const tips = Array.from({ length: head.nodes }, () => head.tip.id);
    for (const line of lines.slice(1, event + 2)) {
        const { kind, node, block, to } = JSON.parse(line);
        if (kind === "block.applied") tips[node] = block.id;
        if (kind === "block.reverted") tips[node] = block.previous;
        if (kind === "chain.rolled-back") tips[node] = to.id;
    }
    const stand = {};
    tips.forEach((tip) => { stand[tip] = (stand[tip] || 0) + 1; });
    return stand;
}

test("an event is what its line says, and the nodes stand where all lines before it put them", async () => {
    const { page, told, close } = await open(join(out, "heal", "events.jsonl"));
    const count = lines.length - 1;
    assert.match(await card(page).locator("p[role=status]").textContent(), new RegExp(`seed 7; ${count.toLocaleString("en")} events of 51 nodes`));
    const rolledBack = lines.findIndex((line) => line.includes('"chain.rolled-back"')) - 1;
    for (const event of [0, 1, rolledBack - 1, rolledBack, rolledBack + 1, 20_011, count - 1]) {
        const said = await look(page, event);
        const { at, node, kind, ...rest } = JSON.parse(lines[event + 1]);
        assert.equal(said.when, `${((at - JSON.parse(lines[0]).start) / 1e6).toFixed(6)} s`);
        assert.deepEqual([said.who, said.what], [node === null ? "the network" : `node ${node}`, kind]);
        for (const [name, value] of Object.entries(rest)) assert.equal(said[name], typeof value === "string" ? value : JSON.stringify(value));
        const rows = await card(page).locator(".trace tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
        assert.deepEqual(Object.fromEntries(rows.map(([, nodes, , tip]) => [tip, Number(nodes)])), tipsAfter(event), `after event ${event}`);
    }
    assert.deepEqual(told, []);
    await close();
});

test("keys and buttons step by event, kind and node, and look closer", async () => {
    const { page, close } = await open(join(out, "heal", "events.jsonl"));
    const slider = card(page).getByRole("slider", { name: "Event of the trace" });
    await slider.focus();
    for (const [key, event] of [["ArrowRight", 1], ["ArrowRight", 2], ["ArrowLeft", 1], ["End", lines.length - 2], ["Home", 0]]) {
        await page.keyboard.press(key);
        await shown(page, event);
    }
    assert.match(await slider.getAttribute("aria-valuetext"), /^event 1 of .*, 0\.\d+ s, /);
    await card(page).getByLabel("Kind of event to step over").selectOption({ label: `health.checked (${lines.filter((line) => line.includes('"health.checked"')).length.toLocaleString("en")})` });
    await card(page).getByLabel("Node to step over").selectOption("node 17");
    const wanted = lines.flatMap((line, index) => { const { kind, node } = JSON.parse(line); return kind === "health.checked" && node === 17 ? [index - 1] : []; });
    const next = card(page).getByRole("button", { name: "Next event of this kind and node" });
    for (const event of wanted.slice(0, 2)) {
        await next.click();
        await shown(page, event);
    }
    const pixels = () => card(page).locator("canvas").evaluate((canvas) => canvas.toDataURL());
    const whole = await pixels();
    await slider.focus();
    await page.keyboard.press("+");
    assert.notEqual(await pixels(), whole, "a part of the time fills the canvas");
    await page.keyboard.press("0");
    assert.equal(await pixels(), whole);
    const box = await card(page).locator("canvas").boundingBox();
    await page.mouse.move(box.x + 140, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 11, box.y + 40, { steps: 3 });
    await page.mouse.up();
    assert.ok(Number(await slider.inputValue()) > (lines.length - 2) * 0.98, "the end of the time is the last event");
    await close();
});

test("messages, crashes and packed traces are read; what is no trace is named", async () => {
    const packed = join(out, "packed.jsonl.gz");
    writeFileSync(packed, gzipSync(readFileSync(join(out, "crash.jsonl"))));
    const { page, told, close } = await open(packed);
    const said = await card(page).locator("p[role=status]").textContent();
    assert.match(said, /crash-and-restart\.toml, seed 7/);
    await card(page).getByLabel("Kind of event to step over").selectOption({ index: await card(page).locator("select").first().locator("option").evaluateAll((all) => all.findIndex((one) => one.textContent.startsWith("node.down"))) });
    await card(page).getByRole("button", { name: "Next event of this kind and node" }).click();
    await page.waitForFunction(() => /\(down\)/.test(document.querySelector(".trace table").textContent));
    let files = 0;
    let file;
    const write = (text) => { files += 1; file = join(out, `none-${files}.jsonl`); writeFileSync(file, text); };
    for (const [text, why] of [["", "is no trace"], ["{}\n", "is no trace"], ["\u0000\u0001\n", "is no trace"], [`${lines[0]}\n`, "holds no event"], [`${lines[0].replace('"schema":1', '"schema":2')}\n${lines[1]}\n`, "line 1: schema: found 2, allowed is 1"],
        [`${lines[0]}\n${lines[1]}\n{"at":1}\n`, "line 3: is no event of a trace"], [`${lines[0]}\n{"at":8000000,"node":51,"kind":"round.began"}\n`, "line 2: is no event of a trace"], [lines[0], "is no trace"]]) {
        write(text);
        await card(page).locator("input[type=file]").setInputFiles(file);
        await page.waitForFunction((why) => document.querySelector('section[aria-label="Trace, event by event"] p[role=status]').textContent.includes(why), `none-${files}.jsonl: ${why}`);
        assert.equal(await card(page).locator(".trace:not([hidden])").count(), 0, text);
    }
    // The members of a line may stand in any order, and between spaces.
    const other = lines.slice(1, 400).map((line) => { const { at, ...rest } = JSON.parse(line); return JSON.stringify({ ...rest, at }, null, 1).replaceAll("\n", ""); });
    write(`${lines[0]}\n${other.join("\n")}\n`);
    await card(page).locator("input[type=file]").setInputFiles(file);
    await card(page).locator(".trace:not([hidden])").waitFor();
    await look(page, 398);
    const rows = await card(page).locator(".trace tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(Object.fromEntries(rows.map(([, nodes, , tip]) => [tip, Number(nodes)])), tipsAfter(398));
    assert.deepEqual(told, []);
    await close();
});

test("in every theme and width axe finds nothing serious, and nothing is cut off", async () => {
    for (const [theme, width] of [["light", 1400], ["dark", 1400], ["light", 420], ["dark", 420]]) {
        const { page, told, close } = await open(join(out, "heal", "events.jsonl"), { theme, width });
        await look(page, 30_000);
        assert.deepEqual(await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]), [width, width]);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes[0].html, nodes[0].failureSummary]), [], `${theme}, ${width}`);
        assert.deepEqual(told, []);
        await close();
    }
});

test("a trace of a million events opens in three seconds, and going through it is drawn in a frame each", async () => {
    // The run's own events again and again, each time later, after its first line.
    const events = lines.slice(1, -1).map((line) => JSON.parse(line).at);
    const span = events.at(-1) - events[0];
    const file = join(out, "million.jsonl");
    let count = 0;
    writeFileSync(file, `${lines[0]}\n`);
    for (let turn = 0; count < 1_000_000; turn += 1) {
        appendFileSync(file, lines.slice(1, -1).map((line) => line.replace(/"at":(\d+)/, (_, at) => `"at":${Number(at) + turn * span}`)).join("\n") + "\n");
        count += events.length;
    }
    const { page, told, close } = await open();
    const input = card(page).locator("input[type=file]");
    await input.evaluate((input) => input.addEventListener("change", () => { globalThis.began = performance.now(); }, true));
    await page.evaluate(() => new MutationObserver(() => { if (document.querySelector(".trace:not([hidden])")) globalThis.opened ??= performance.now(); }).observe(document.body, { attributes: true, subtree: true }));
    await input.setInputFiles(file);
    await page.waitForFunction(() => globalThis.opened, undefined, { timeout: 600_000 });
    // On a busy machine nothing is as fast as it is; so is a page that does nothing with the file but decode it.
    const floor = await input.evaluate(async (input) => {
        const began = performance.now();
        const reader = input.files[0].stream().pipeThrough(new TextDecoderStream()).getReader();
        while (!(await reader.read()).done);
        return performance.now() - began;
    });
    const took = await page.evaluate(() => opened - began);
    assert.match(await card(page).locator("p[role=status]").textContent(), new RegExp(`${count.toLocaleString("en")} events of 51 nodes`));
    const gaps = await page.evaluate(async () => {
        const slider = document.querySelector(".trace input[type=range]");
        const times = [];
        for (let step = 0; step < 200; step += 1) {
            slider.value = Math.floor(((step * 7919) % 201) / 200 * Number(slider.max));
            slider.dispatchEvent(new Event("input"));
            times.push(await new Promise(requestAnimationFrame));
        }
        return times.slice(1).map((time, index) => time - times[index]).sort((one, other) => one - other);
    });
    // Twenty hours: ticks stand at whole ones.
    const texts = await page.evaluate(async () => {
        const texts = [];
        const { fillText } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...all) { texts.push(text); return fillText.call(this, text, ...all); };
        for (const key of ["+", "0"]) {
            document.querySelector(".trace input[type=range]").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
        }
        CanvasRenderingContext2D.prototype.fillText = fillText;
        return texts;
    });
    const hours = texts.filter((text) => text.endsWith(" h"));
    assert.ok(hours.length >= 3 && hours.every((text) => /^\d+ h$/.test(text)), String(texts));
    console.log(`${count} events opened in ${took.toFixed(0)} ms, decoded in ${floor.toFixed(0)} ms; a step takes ${gaps[gaps.length >> 1].toFixed(1)} ms in the median, ${gaps[Math.floor(gaps.length * 0.95)].toFixed(1)} ms at 95 %`);
    assert.ok(took < Math.max(3000, 8 * floor), `opened in ${took} ms, decoded in ${floor} ms`);
    assert.ok(gaps[gaps.length >> 1] < 50, `a step takes ${gaps[gaps.length >> 1]} ms`);
    assert.deepEqual(told, []);
    rmSync(file);
    await close();
});

test("looking at 200 events far apart goes over a few events each, and is drawn in a frame each", async () => {
    const { page, close } = await open(join(out, "heal", "events.jsonl"));
    await look(page, 0);
    const { most, drawn, long } = await page.evaluate(async () => {
        let [long, followed, most, drawn] = [0, 0, 0, 0];
        new PerformanceObserver((list) => { long += list.getEntries().length; }).observe({ type: "longtask" });
        const { follow } = Trace.prototype;
        Trace.prototype.follow = function (...all) { followed += 1; return follow.apply(this, all); };
        const { drawImage } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.drawImage = function (...all) { drawn += 1; return drawImage.apply(this, all); };
        const slider = document.querySelector(".trace input[type=range]");
        for (let step = 0; step < 200; step += 1) {
            followed = 0;
            slider.value = Math.floor(((step * 7919) % 201) / 200 * Number(slider.max));
            for (let twice = 0; twice < 3; twice += 1) slider.dispatchEvent(new Event("input"));
            await new Promise(requestAnimationFrame);
            most = Math.max(most, followed);
        }
        return { most, drawn, long };
    });
    // A state is kept every 32 events of a trace of this size; a line that was being read when the next event was looked at
    // tells once more.
    assert.ok(most <= 2 * 32, `${most} events were gone over for one`);
    assert.ok(drawn <= 201, `${drawn} times drawn in 200 frames`);
    assert.ok(long < 100, `${long} tasks of more than 50 ms in 200 frames`);
    await close();
});
