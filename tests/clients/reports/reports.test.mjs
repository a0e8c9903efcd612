// The pages of a run and of sweeps, opened from the disk: what is drawn is what the folder's own tables say, what a reader
// may do works, and nothing is asked of any network.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { contrast, nearest } from "./sight.mjs";
import { across, drawing, marks, parts, rows, stepAt, up } from "./drawn.mjs";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const binary = process.env.DPOSLAB_BIN ?? join(root, "target/release/dposlab");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const REPORTS = {
    heal: ["run", "scenarios/heal.toml", "--seed", "7"],
    crash: ["run", "scenarios/crash-and-restart.toml", "--seed", "7"],
    busy: ["run", "scenarios/busy.toml", "--seed", "7"],
    numbers: ["sweep", "scenarios/healthy.toml", "--seeds", "0..4", "--set", "rounds=3", "--vary", "network.latency.max_ms=600,2000,9000,90000", "--vary", "network.loss=0.0,0.4"],
    words: ["sweep", "scenarios/healthy.toml", "--seeds", "0..3", "--set", "rounds=2", "--vary", "network.gossip=once,reference", "--vary", "network.topology={ regular = 8 },{ regular = 12 },mesh"],
};

let out;
let browser;

before(async () => {
    out = mkdtempSync(join(tmpdir(), "dposlab-reports-"));
    for (const [name, args] of Object.entries(REPORTS)) {
        try {
            execFileSync(binary, [...args, "--out", join(out, name)], { cwd: root, stdio: "ignore" });
        } catch (error) {
            // 1 is a sweep of which a run has failed, as some of these do.
            if (error.status !== 1 || args[0] !== "sweep") throw error;
        }
    }
    browser = await chromium.launch({
        executablePath: "/usr/bin/chromium",
        args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
});

after(async () => {
    await browser?.close();
    rmSync(out, { recursive: true, force: true });
});

/** Opens a report without a network; `said` fills with what its console says and what it asks for. */
async function open(name, { theme = "light", width = 1400 } = {}) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, offline: true, acceptDownloads: true });
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    const page = await context.newPage();
    const told = [];
    page.on("console", (message) => told.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => told.push(`error: ${error.stack}`));
    page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) told.push(`request: ${request.url()}`); });
    await page.goto(`${pathToFileURL(join(out, name, "report.html"))}?theme=${theme}`);
    return { page, told, data: await page.evaluate(() => data), close: () => context.close() };
}

const cardOf = (page, title) => page.locator(`section.card[aria-label="${title}"]`);
const table = (name, file) => rows(join(out, name, `${file}.csv`));

/** Equal within a pixel and a half of the drawing, or the hundredth part of the value on a logarithmic axis. */
function near(found, expected, scale, what) {
    const bound = scale.log ? expected * (Math.exp(scale.tolerance * 1.5) - 1) : scale.tolerance * 1.5;
    assert.ok(Math.abs(found - expected) <= bound, `${what}: drawn ${found}, in the table ${expected}, within ${bound}`);
}

for (const name of Object.keys(REPORTS)) {
    test(`${name}: in every theme and width all is drawn, nothing is asked for, and axe finds nothing serious`, async () => {
        assert.ok(statSync(join(out, name, "report.html")).size < 300_000, "under 300 KB");
        for (const [theme, width] of [["light", 1400], ["dark", 1400], ["light", 420], ["dark", 420]]) {
            const { page, told, close } = await open(name, { theme, width });
            const drawings = page.locator(".area > svg");
            assert.ok((await drawings.count()) >= 3, "plots are there");
            const empty = await drawings.evaluateAll((all) => all.filter((svg) => ![...svg.querySelectorAll("[data-series] path, path.forged")].some((path) => path.getTotalLength() > 3)).length);
            assert.equal(empty, 0, "every plot has marks");
            const broken = await drawings.evaluateAll((all) => all.filter((svg) => /NaN|Infinity|undefined/.test(svg.outerHTML)).map((svg) => svg.parentElement.getAttribute("aria-label")));
            assert.deepEqual(broken, [], "every mark has a place");
            assert.deepEqual(await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]), [width, width], "nothing is cut off");
            await page.evaluate(axe);
            const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
            const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
            assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes[0].html, nodes[0].failureSummary]), [], `${theme}, ${width}`);
            assert.deepEqual(told, [], `${theme}, ${width}`);
            await close();
        }
    });

    test(`${name}: every link leads to a file of the folder`, async () => {
        const { page, close } = await open(name);
        const links = await page.locator("a[href]").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
        assert.ok(links.includes("summary.json") && links.length >= 6, String(links));
        for (const link of new Set(links)) assert.ok(existsSync(join(out, name, link)), link);
        await close();
    });
}

test("labels of an axis do not overlap and stay in the drawing", async () => {
    for (const name of Object.keys(REPORTS)) for (const width of [1400, 420]) {
        const { page, close } = await open(name, { width });
        const clashes = await page.locator(".area > svg").evaluateAll((all) => all.flatMap((svg) => {
            const frame = svg.getBoundingClientRect();
            const straight = [...svg.querySelectorAll("text[data-x]:not([transform]), text[data-y]")];
            const boxes = straight.map((text) => [text, text.getBoundingClientRect()]);
            const out = [...svg.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()])
                .filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1);
            const over = boxes.filter(([one, box], index) => boxes.some(([other, next], place) => place > index && (one.dataset.x === undefined) === (other.dataset.x === undefined)
                && box.left < next.right && next.left < box.right && box.top + 3 < next.bottom && next.top + 3 < box.bottom));
            return [...out, ...over].map(([text]) => `${svg.parentElement.getAttribute("aria-label").slice(0, 40)}: ${text.textContent}`);
        }));
        assert.deepEqual(clashes, [], `${name}, ${width}`);
        await close();
    }
});

test("lines, crosses and shades stand where the tables and the trace say", async () => {
    const { page, data, close } = await open("heal");
    const time = table("heal", "time");
    const start = Number(time[0].at_us) / 1e6;
    const drawn = await drawing(cardOf(page, "Chain and forks"));
    const x = across(drawn);
    const pixel = (seconds) => (seconds - x.of(0)) / (x.of(1) - x.of(0));
    const [height, depth, branches] = [up(drawn, "height"), up(drawn, "blocks on the longest"), up(drawn, "branches")];
    for (const [series, column, scale] of [["highest node", "height_greatest", height], ["lowest node", "height_least", height], ["fork depth", "fork_depth_max", depth], ["branches", "branches_max", branches]]) {
        const line = parts(drawn.series[series].line);
        for (const row of time) {
            const middle = pixel(Number(row.at_us) / 1e6 - start + (Number(row.slots) * data.blocktime) / 2);
            near(scale.of(stepAt(line, middle)), Number(row[column]), scale, `${series} in slot ${row.first_slot}`);
        }
    }
    const orphans = table("heal", "orphans");
    const crosses = marks(drawn.series["orphaned block"].marker);
    for (const orphan of orphans) {
        const seconds = Number(orphan.at_us) / 1e6 - start;
        // A cross is drawn about its place, once for each pixel.
        const there = crosses.some(([cx, cy]) => Math.abs(x.of(cx) - seconds) <= 2 * x.tolerance && Math.abs(height.of(cy) - Number(orphan.height)) <= 2 * height.tolerance);
        assert.ok(there, `a cross for ${JSON.stringify(orphan)}`);
    }
    const events = readFileSync(join(out, "heal", "events.jsonl"), "utf8").split("\n").filter((line) => line.includes('"fault.')).map((line) => JSON.parse(line));
    const when = (kind, fault) => events.find((event) => event.kind === kind && event.fault === fault).at / 1e6 - start;
    const [[left, width]] = drawn.spans;
    near(x.of(left), when("fault.began", 0), x, "the partition begins");
    near(x.of(left + width), when("fault.ended", 0), x, "and ends");
    assert.ok(drawn.begins.length >= 6 && drawn.ends.length >= 3, "in each panel a line where a fault begins and one where it ends");

    const agreement = await drawing(cardOf(page, "Agreement"));
    const [ax, ay] = [across(agreement), up(agreement, "share")];
    const nodes = parts(agreement.series.nodes.line);
    for (const row of time) {
        const middle = (Number(row.at_us) / 1e6 - start + data.blocktime / 2 - ax.of(0)) / (ax.of(1) - ax.of(0));
        near(ay.of(stepAt(nodes, middle)), Number(row.agreement_min) * 100, ay, `agreement in slot ${row.first_slot}`);
    }
    await close();
});

test("bars, percentiles and cells are those of the rounds' table", async () => {
    const { page, close } = await open("heal");
    const rounds = table("heal", "rounds");
    const slots = await drawing(cardOf(page, "Slots by round"));
    const [x, y] = [across(slots), up(slots, "slots")];
    const bars = (d) => d.split("M").slice(1).map((bar) => bar.match(/^([\d.]+),([\d.]+)V([\d.]+)h([\d.]+)/).slice(1).map(Number));
    for (const [series, column] of [["blocks", "blocks"], ["missed", "missed_slots"]]) {
        const drawn = bars(slots.series[series].bar);
        const expected = rounds.filter((row) => Number(row[column]) > 0);
        assert.equal(drawn.length, expected.length, series);
        expected.forEach((row, index) => {
            const [left, foot, top, width] = drawn[index];
            near(x.of(left + width / 2), Number(row.round), x, `${series}: round`);
            near(y.of(top) - y.of(foot), Number(row[column]), y, `${series} in round ${row.round}`);
            near(y.of(foot), series === "missed" ? Number(row.blocks) : 0, y, `${series} in round ${row.round} stands on what is below`);
        });
    }
    const propagation = await drawing(cardOf(page, "Propagation by round"));
    const [px, py] = [across(propagation), up(propagation, "delay", true)];
    for (const [series, p] of [["median", "p50"], ["90 %", "p90"], ["99 %", "p99"]]) {
        const line = parts(propagation.series[series].line).flat();
        assert.equal(line.length, rounds.length, series);
        rounds.forEach((row, index) => {
            near(px.of(line[index][0]), Number(row.round), px, `${series}: round`);
            near(py.of(line[index][1]), Number(row[`propagation_${p}_ms`]) / 1000, py, `${series} in round ${row.round}`);
        });
    }
    const cells = await cardOf(page, "Missed slots, by round").locator("[data-series] path:not([data-level='0'])").evaluateAll((all) => all.map((path) => path.getAttribute("d").split("M").length - 1));
    const missed = table("heal", "delegates").filter((row) => Number(row.missed) > 0);
    assert.equal(cells.reduce((one, other) => one + other), missed.length, "a strong cell for each delegate and round with a missed slot");
    await close();
});

test("the ring has a piece for each slot, in its place, and tells whose it is", async () => {
    const { page, data, close } = await open("heal");
    const ring = cardOf(page, "Round ring");
    const [forged, missed] = await ring.evaluate((card) => ["forged", "missed"].map((kind) => card.querySelector(`path.${kind}`).getAttribute("d")));
    const summary = JSON.parse(readFileSync(join(out, "heal", "summary.json")));
    assert.deepEqual([marks(forged).length, marks(missed).length], [summary.totals.blocks, summary.totals.missed_slots]);
    // From the angle at which a piece begins to the place of the slot in its round.
    const places = data.rings.flatMap(({ turns, lacks }) => turns.flatMap(([, , height], turn) => (height ? [] : [turn / (turns.length + lacks)])));
    marks(missed).forEach(([x, y], index) => {
        const turn = (Math.atan2(x - 260, 260 - y) / (2 * Math.PI) + 1) % 1;
        assert.ok(Math.abs(turn - places[index]) < 0.004, `piece ${index} begins at ${turn} of a turn, the slot at ${places[index]}`);
    });
    await ring.locator(".area").focus();
    await page.keyboard.press("End");
    const [slot, owner, height] = data.rings.at(-1).turns.at(-1);
    const told = `${data.delegates[owner].username}, round ${data.rings.at(-1).round}, slot ${slot}, forged height ${height}`;
    assert.equal(await ring.locator("[role=status]").textContent(), told);
    await page.keyboard.press("ArrowDown");
    assert.match(await ring.locator("[role=status]").textContent(), new RegExp(`round ${data.rings.at(-2).round}, `));
    await close();
});

test("means, intervals and boxes of a sweep stand at their values, on a logarithmic axis", async () => {
    const { page, close } = await open("numbers");
    const { cells } = JSON.parse(readFileSync(join(out, "numbers", "summary.json")));
    const select = page.locator("select");
    await select.selectOption("missed_slots");
    const loss = "0.4";
    const has = cells.filter((cell) => cell.varied["network.loss"] === loss && cell.figures.missed_slots);
    const drawn = await drawing(cardOf(page, "Mean"));
    // A quantity that is spread over more than two powers of ten has a logarithmic axis, too.
    const wide = (values) => Math.min(...values) > 0 && Math.max(...values) > 100 * Math.min(...values);
    const means = cells.flatMap(({ figures: { missed_slots: missed } }) => (missed ? [missed.mean, missed.confidence?.low ?? missed.mean] : []));
    const [x, y] = [across(drawn, true), up(drawn, "missed slots", wide(means))];
    const line = parts(drawn.series[`loss=${loss}`].line).flat();
    assert.equal(line.length, has.length);
    has.forEach((cell, index) => {
        const latency = Number(cell.varied["network.latency.max_ms"]);
        assert.ok(Math.abs(x.of(line[index][0] - 3.5) / latency - 1) < 0.03, `beside ${latency}: ${x.of(line[index][0] - 3.5)}`);
        near(y.of(line[index][1]), cell.figures.missed_slots.mean, y, `mean at ${latency}`);
    });
    const errors = drawn.series[`loss=${loss}`].error.split("M").slice(1).filter((bar) => bar.includes("V")).map((bar) => bar.match(/^[\d.]+,([\d.]+)V([\d.]+)/).slice(1).map(Number));
    const sure = has.filter((cell) => cell.figures.missed_slots.confidence);
    assert.ok(sure.length > 0, "there are intervals to hold");
    assert.equal(errors.length, sure.length);
    sure.forEach((cell, index) => {
        near(y.of(errors[index][0]), cell.figures.missed_slots.confidence.low, y, "low end");
        near(y.of(errors[index][1]), cell.figures.missed_slots.confidence.high, y, "high end");
    });
    const spread = await drawing(cardOf(page, "Distribution"));
    const by = up(spread, "missed slots", wide(cells.flatMap(({ figures: { missed_slots: missed } }) => (missed ? [missed.min, missed.max] : []))));
    marks(spread.series[`loss=${loss}`].median).forEach(([, at], index) => near(by.of(at), has[index].figures.missed_slots.p50, by, "median"));
    const values = drawn.texts.filter((text) => text.axis === "x").map((text) => text.text);
    assert.deepEqual(values, ["600", "2,000", "9,000", "90,000"], "ticks stand at the values that were run");
    await close();
});

test("a drag zooms, a double click shows all again, and keys do the same", async () => {
    const { page, close } = await open("heal");
    const card = cardOf(page, "Chain and forks");
    const area = card.locator("div.area");
    await area.scrollIntoViewIfNeeded();
    const box = await area.boundingBox();
    const all = await drawing(card);
    const width = (drawn) => across(drawn).of(box.width) - across(drawn).of(0);
    await page.mouse.move(box.x + box.width * 0.3, box.y + 150);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 160, { steps: 4 });
    await page.mouse.up();
    const zoomed = await drawing(card);
    assert.ok(Math.abs(width(zoomed) / width(all) - 0.2) < 0.02, "a fifth of the time fills the plot");
    const [left, wide] = await card.locator("clipPath rect").evaluate((rect) => [rect.x.baseVal.value + 1, rect.width.baseVal.value - 2]);
    near(across(zoomed).of(left), across(all).of(box.width * 0.3), across(all), "from where the drag began");
    near(across(zoomed).of(left + wide), across(all).of(box.width * 0.5), across(all), "to where it ended");
    await area.dblclick({ position: { x: box.width / 2, y: 150 } });
    assert.deepEqual((await drawing(card)).series, all.series);
    await area.focus();
    await page.keyboard.press("+");
    assert.ok(Math.abs(width(await drawing(card)) / width(all) - 0.5) < 0.02);
    await page.keyboard.press("Escape");
    assert.deepEqual((await drawing(card)).series, all.series);
    await close();
});

test("the legend switches series off and on, and the axis follows", async () => {
    const { page, close } = await open("heal");
    const card = cardOf(page, "Slots by round");
    const before = await drawing(card);
    const key = card.getByRole("button", { name: "blocks", exact: true });
    await key.click();
    const after = await drawing(card);
    assert.deepEqual(Object.keys(before.series).filter((name) => !(name in after.series)), ["blocks"]);
    assert.equal(await key.getAttribute("aria-pressed"), "false");
    const most = Math.max(...table("heal", "rounds").map((row) => Number(row.missed_slots)));
    const [, foot, top] = after.series.missed.bar.match(/,([\d.]+)V([\d.]+)/).map(Number);
    // A round without one has no bar.
    const first = table("heal", "rounds").map((row) => Number(row.missed_slots)).find((missed) => missed > 0);
    near(up(after, "slots").of(top) - up(after, "slots").of(foot), first, up(after, "slots"), "bars stand on the ground now");
    assert.ok(up(after, "slots").of(0) < 3 * most, "and the axis ends where they do");
    await key.press("Enter");
    assert.deepEqual((await drawing(card)).series, before.series);
    await close();
});

test("the read-out tells by mouse and by keys what the table says", async () => {
    const { page, close } = await open("crash");
    const time = table("crash", "time");
    const card = cardOf(page, "Chain and forks");
    await card.locator("div.area").focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    const told = await card.locator("[role=status]").textContent();
    assert.match(told, new RegExp(`slot ${time[1].first_slot};.*highest node: ${time[1].height_greatest};`));
    await page.keyboard.press("End");
    assert.match(await card.locator("[role=status]").textContent(), new RegExp(`highest node: ${time.at(-1).height_greatest}; .*nodes down: ${time.at(-1).down_max}`));
    const fault = Math.max(...time.map((row) => Number(row.down_max)));
    const drawn = await drawing(card);
    const box = await card.locator("div.area").boundingBox();
    const [[left, width]] = drawn.spans;
    await page.mouse.move(box.x + left + width / 2, box.y + 120);
    assert.match(await card.locator(".readout.open").innerText(), new RegExp(`nodes down\\s+${fault}\\s+in force: crash`));
    await close();
});

test("the numbers of a plot are the table's, and a command is copied whole", async () => {
    const { page, close } = await open("heal");
    const card = cardOf(page, "Slots by round");
    await card.getByRole("button", { name: /^Table/ }).click();
    const shown = await card.locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(shown, table("heal", "rounds").map((row) => [row.round, row.blocks, row.missed_slots, row.forks]));
    await page.locator(".command button").first().click();
    await page.locator(".command button", { hasText: "Copied" }).waitFor();
    const summary = JSON.parse(readFileSync(join(out, "heal", "summary.json")));
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), summary.reproduce);
    await close();
});

test("what is saved stands alone: an SVG with its styles, and a PNG of twice its size", async () => {
    for (const theme of ["light", "dark"]) {
        const { page, told, close } = await open("heal", { theme });
        for (const title of ["Round ring", "Chain and forks", "Slots by round", "Missed slots, by round"]) {
            const card = cardOf(page, title);
            const save = async (kind) => {
                const [download] = await Promise.all([page.waitForEvent("download"), card.getByRole("button", { name: `as ${kind}` }).click()]);
                assert.match(download.suggestedFilename(), new RegExp(`^heal-seed-7-[a-z-]+\\.${kind.toLowerCase()}$`));
                return readFileSync(await download.path());
            };
            const text = (await save("SVG")).toString();
            assert.ok(!/var\(|class=|href|<image|NaN/.test(text), `${title}: nothing is left that the page would have to say`);
            const read = await page.evaluate(async (text) => {
                const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
                const ids = [...text.matchAll(/url\(['"]?#([\w-]+)/g)].map(([, id]) => id);
                const image = new Image();
                image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
                await image.decode();
                return { broken: parsed.querySelector("parsererror")?.textContent, missing: ids.filter((id) => !parsed.getElementById(id)), size: [image.naturalWidth, image.naturalHeight],
                    plain: [...parsed.querySelectorAll("text")].filter((text) => !/font(-family)?:[^;]*sans-serif/.test(text.getAttribute("style"))).length,
                    marks: [...parsed.querySelectorAll("path")].map((path) => path.getAttribute("d")) };
            }, text);
            assert.deepEqual([read.broken, read.missing, read.plain], [undefined, [], 0], `${title}: it is whole, and every text has its type`);
            const shown = await card.locator(".area > svg path").evaluateAll((all) => all.map((path) => path.getAttribute("d")).filter(Boolean));
            assert.deepEqual(shown.filter((d) => !read.marks.includes(d)), [], `${title}: every mark of the page is in it`);
            const png = await save("PNG");
            assert.equal(png.subarray(1, 4).toString(), "PNG");
            assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], read.size.map((side) => side * 2), title);
            const colours = await page.evaluate(async (bytes) => {
                const image = new Image();
                image.src = `data:image/png;base64,${bytes}`;
                await image.decode();
                const canvas = Object.assign(document.createElement("canvas"), { width: image.naturalWidth, height: image.naturalHeight });
                const context = canvas.getContext("2d");
                context.drawImage(image, 0, 0);
                const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
                const count = new Map();
                for (let at = 0; at < pixels.length; at += 4) {
                    const colour = pixels.slice(at, at + 4).join();
                    count.set(colour, (count.get(colour) || 0) + 1);
                }
                return { ground: pixels.slice(0, 4).join(), many: [...count.values()].filter((times) => times > 50).length };
            }, png.toString("base64"));
            assert.equal(colours.ground, theme === "light" ? "255,255,255,255" : "24,29,37,255", "on the card's colour");
            assert.ok(colours.many >= 4, `${title}: ${colours.many} colours`);
        }
        assert.deepEqual(told, []);
        await close();
    }
});

test("100,000 points are thinned to the pixels, and none of the extremes is lost", async () => {
    const { page, close } = await open("busy");
    const found = await page.evaluate(() => {
        const where = document.createElement("div");
        document.querySelector("main").append(where);
        const x = Array.from({ length: 100_000 }, (_, index) => index);
        const y = x.map((index) => Math.sin(index / 9000) + (index === 43_210 ? 5 : 0) - (index === 77_777 ? 6 : 0));
        const plot = new Plot(where, { title: "many", x: { label: "x", tight: true }, panels: [{ y: { label: "y" }, height: 200, series: [{ kind: "line", name: "line", color: "good", x, y }] }] });
        plot.draw();
        const points = where.querySelector("path.line").getAttribute("d").match(/-?[\d.]+,-?[\d.]+/g).map((point) => point.split(",").map(Number));
        const scale = plot.panels[0].scale;
        return { points: points.length, width: plot.right - plot.left, highest: Math.min(...points.map(([, at]) => at)) - scale.at(5 + Math.sin(43_210 / 9000)), lowest: Math.max(...points.map(([, at]) => at)) - scale.at(-6 + Math.sin(77_777 / 9000)) };
    });
    assert.ok(found.points <= 4 * (found.width + 2), `${found.points} points on ${found.width} pixels`);
    assert.ok(Math.abs(found.highest) < 0.01 && Math.abs(found.lowest) < 0.01, JSON.stringify(found));
    await close();
});

test("the theme may be changed, and all drawings follow without being drawn anew", async () => {
    const { page, close } = await open("heal", { theme: "light" });
    const colours = () => page.locator("path.line, path.bar, path.forged").evaluateAll((all) => all.map((path) => [getComputedStyle(path).stroke, getComputedStyle(path).fill].join()));
    const light = await colours();
    await page.getByRole("button", { name: "Light or dark" }).click();
    const dark = await colours();
    assert.ok(light.length > 8 && light.every((colour, index) => colour !== dark[index]));
    await close();
});

test("colours of marks are told apart by every kind of colour vision, and stand out from the card", async () => {
    for (const theme of ["light", "dark"]) {
        const { page, close } = await open("busy", { theme });
        const names = ["good", "bad", "third", "fourth", "fifth", "sixth"];
        const [card, ...colours] = await page.evaluate((names) => names.map((name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()), ["card", ...names]);
        for (const [vision, distance] of Object.entries(nearest(colours))) assert.ok(distance > 0.09, `${theme}, ${vision}: ${distance}`);
        for (const [index, colour] of colours.entries()) assert.ok(contrast(colour, card) >= 3, `${theme}: ${names[index]}`);
        await close();
    }
});

test("a report names no folder of the machine, wherever it was made", async () => {
    const file = join(root, "scenarios/missed-slots.toml");
    const elsewhere = mkdtempSync(join(tmpdir(), "dposlab-elsewhere-"));
    const made = (...args) => {
        const { status, stderr } = spawnSync(binary, args, { cwd: elsewhere, encoding: "utf8" });
        assert.ok(status === 0 || status === 1, `${args.join(" ")}: ${stderr}`);
    };
    try {
        made("run", file, "--seed", "7", "--out", join(elsewhere, "run"));
        made("sweep", file, "--seeds", "0..2", "--out", join(elsewhere, "sweep"));
        // A folder, as for a run, or a file.
        made("explain", file, "--budget", "0", "--repeats", "0", "--out", join(elsewhere, "why"));
        made("explain", file, "--budget", "0", "--repeats", "0", "--out", join(elsewhere, "why.html"));
        for (const page of ["run/report.html", "run/summary.json", "run/events.jsonl", "sweep/report.html", "why/report.html", "why.html"]) {
            const text = readFileSync(join(elsewhere, page), "utf8");
            assert.ok(text.includes("missed-slots.toml"), page);
            for (const folder of [root, elsewhere]) assert.ok(!text.includes(folder), `${page} names ${folder}`);
        }
    } finally {
        rmSync(elsewhere, { recursive: true, force: true });
    }
});

test("the share of runs that ended well says of which runs it is", async () => {
    execFileSync(binary, ["sweep", "scenarios/healthy.toml", "--seeds", "0..3", "--set", "rounds=2", "--vary", "time_limit_seconds=100,100000", "--out", join(out, "cut")], { cwd: root, stdio: "ignore" });
    const { page, told, close } = await open("cut");
    const { censored, runs, cells } = JSON.parse(readFileSync(join(out, "cut", "summary.json"), "utf8"));
    assert.deepEqual([censored, runs, cells.map(({ ok }) => ok?.of ?? null)], [3, 6, [null, 3]]);
    const words = await page.locator(".card", { hasText: "Runs that ended well" }).first().innerText();
    assert.ok(words.includes("The share of the decided runs in which all went well"), words);
    assert.ok(words.includes("Left out of all 6: 3 that were ended before their end (censored)."), words);
    assert.deepEqual(told, []);
    await close();
});

test("a comparison stands at its differences, and its table says the same", async () => {
    const sweep = ["sweep", "scenarios/healthy.toml", "--seeds", "0..4", "--set", "rounds=3", "--vary", "network.latency.max_ms=600,2000,9000", "--vary", "network.loss=0.0,0.4", "--compare", "--out", join(out, "compared")];
    assert.ok(spawnSync(binary, sweep, { cwd: root, stdio: "ignore" }).status < 2);
    const { page, told, close } = await open("compared");
    const { compared, cells } = JSON.parse(readFileSync(join(out, "compared", "summary.json"), "utf8"));
    assert.equal(compared.length, cells.length - 1);
    assert.ok((await page.locator("header + .command").innerText()).includes(" --compare "));
    await page.locator("select").selectOption("missed_slots");
    const card = cardOf(page, "Difference");
    assert.ok((await card.innerText()).includes("Each combination minus max_ms=600, loss=0.0, seed by seed"));
    const drawn = await drawing(card);
    const y = up(drawn, "missed slots");
    for (const loss of ["0.0", "0.4"]) {
        const of = compared.filter(({ varied }) => varied["network.loss"] === loss).map(({ figures: { missed_slots: missed } }) => missed);
        const found = marks(drawn.series[`loss=${loss}`].marker);
        assert.equal(found.length, of.length, loss);
        of.forEach(({ difference }, index) => near(y.of(found[index][1]), difference, y, `loss ${loss}, difference ${index}`));
        const sure = of.filter(({ confidence }) => confidence);
        const errors = (drawn.series[`loss=${loss}`].error ?? "").split("M").slice(1).filter((bar) => bar.includes("V")).map((bar) => bar.match(/^[\d.]+,([\d.]+)V([\d.]+)/).slice(1).map(Number));
        assert.equal(errors.length, sure.length);
        sure.forEach(({ confidence: { low, high } }, index) => {
            near(y.of(errors[index][0]), low, y, "low end");
            near(y.of(errors[index][1]), high, y, "high end");
        });
    }
    assert.ok(compared.some(({ figures }) => figures.missed_slots.confidence && figures.missed_slots.difference > 1), "there is something to see");
    const rows = await cardOf(page, "Differences").locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(rows.map(([name, left]) => [name, left]), compared.map(({ varied, left_out: left }) => [`max_ms=${varied["network.latency.max_ms"]}, loss=${varied["network.loss"]}`, String(left)]));
    rows.forEach(([, , missed], index) => assert.ok(Math.abs(Number(missed.split(/[ ;]/)[0].replaceAll(",", "").replace("−", "-")) - compared[index].figures.missed_slots.difference) <= 0.001 * Math.abs(compared[index].figures.missed_slots.difference), `${missed} in row ${index}`));
    assert.deepEqual(told, []);
    await close();
    // Without the option nothing is compared.
    const plain = await open("numbers");
    assert.equal(await cardOf(plain.page, "Difference").count() + (await cardOf(plain.page, "Differences").count()), 0);
    await plain.close();
});

test("a sweep that ended when a mean was known draws it with its intervals", async () => {
    for (const [name, width, seeds] of [["known", "0.7", "0..200"], ["unknown", "0.0001", "0..3"]]) {
        const sweep = ["sweep", "scenarios/healthy.toml", "--seeds", seeds, "--set", "rounds=2", "--vary", "network.loss=0.0,0.4", "--until-ci", `missed.rate<${width}`, "--out", join(out, name)];
        assert.ok(spawnSync(binary, sweep, { cwd: root, stdio: "ignore" }).status < 2);
        const { page, told, close } = await open(name);
        const { until_ci: until } = JSON.parse(readFileSync(join(out, name, "summary.json"), "utf8"));
        assert.equal(until.reached, name === "known");
        assert.ok((await page.locator("header + .command").innerText()).includes(` --until-ci 'missed.rate<${width}' `));
        const card = cardOf(page, "The mean of missed.rate");
        const words = until.reached ? `After ${until.cells[0].runs} runs of each combination every interval was narrower than 70\u00a0%, so the sweep ended.` : "The seeds were over before every interval was narrower than 0.01\u00a0%: more --seeds are needed.";
        assert.ok((await card.innerText()).includes(words), await card.innerText());
        const drawn = await drawing(card);
        const y = up(drawn, "share of the slots that were missed");
        const { marker, error } = Object.values(drawn.series)[0];
        assert.equal(marks(marker).length, 2);
        const errors = error.split("M").slice(1).filter((bar) => bar.includes("V")).map((bar) => bar.match(/^[\d.]+,([\d.]+)V([\d.]+)/).slice(1).map(Number));
        until.cells.forEach(({ mean, confidence }, index) => {
            near(y.of(marks(marker)[index][1]), mean * 100, y, `mean ${index}`);
            near(y.of(errors[index][0]), confidence.low * 100, y, `low end ${index}`);
            near(y.of(errors[index][1]), confidence.high * 100, y, `high end ${index}`);
        });
        assert.deepEqual(told, []);
        await close();
    }
});

test("a study of points has a plot for each value, with a mark at each point", async () => {
    const [points, folder] = [join(out, "points.csv"), join(out, "study")];
    execFileSync(binary, ["points", "sobol", "--count", "16", "network.loss=uniform(0,0.05)", "rounds=integer(1,4)", "--out", points]);
    const study = ["sweep", "scenarios/healthy.toml", "--set", "crypto=modelled", "--points", points, "--seeds", "0..2", "--out", folder];
    execFileSync(binary, study, { cwd: root, stdio: "ignore" });
    const { page, told, close } = await open("study");
    assert.ok((await page.locator("header").first().innerText()).includes("16 points of network.loss and rounds"));
    const { cells } = JSON.parse(readFileSync(join(folder, "summary.json"), "utf8"));
    await page.locator("select").selectOption("height");
    for (const path of ["network.loss", "rounds"]) {
        const drawn = await drawing(cardOf(page, `By ${path}`));
        const [x, y, of] = [across(drawn), up(drawn, "height"), marks(drawn.series.mean.marker)];
        // Points at one place share a mark: a height follows from the rounds.
        const expected = path === "rounds" ? cells.filter((cell, index) => cells.findIndex((other) => other.varied.rounds === cell.varied.rounds) === index) : cells;
        assert.equal(of.length, expected.length, path);
        expected.forEach((cell, index) => {
            near(y.of(of[index][1]), cell.figures.height.mean, y, `${path}: mean of point ${index}`);
            near(x.of(of[index][0]), Number(cell.varied[path]), x, `${path} of point ${index}`);
        });
    }
    assert.deepEqual(told, []);
    await close();
});

test("a censored run has neither succeeded nor failed, unless an assertion broke before", async () => {
    for (const [name, more, isOpen] of [["short", [], true], ["broke", ["--set", 'assert[+]={ always = "height >= 99" }'], false]]) {
        const play = ["run", "scenarios/healthy.toml", "--set", "time_limit_seconds=100", ...more, "--out", join(out, name)];
        spawnSync(binary, play, { cwd: root, stdio: "ignore" });
        const { page, told, data, close } = await open(name);
        assert.ok(data.assertions.some(({ holds }) => holds === null), "an assertion on the end is undecided");
        const words = await cardOf(page, "This run is censored").innerText();
        assert.equal(words.includes("it has neither succeeded nor failed"), isOpen, words);
        assert.deepEqual(told, []);
        await close();
    }
});
