// The files of `dposlab figures` beside what the page saves in Chromium: the same elements, styles and texts, and places within a
// pixel. Both draw with the same scripts; layout, cascade and numbers are the browser's here and the program's own there.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const binary = process.env.DPOSLAB_BIN ?? join(root, "target/release/dposlab");
const FONTS = "Arial, Helvetica, 'Liberation Sans', 'Nimbus Sans', sans-serif";

const REPORTS = {
    heal: ["run", "scenarios/heal.toml", "--seed", "7", "--without", "events"],
    busy: ["run", "scenarios/busy.toml", "--seed", "7", "--without", "events"],
    sweep: ["sweep", "scenarios/healthy.toml", "--seeds", "0..4", "--set", "rounds=3", "--vary", "network.latency.max_ms=600,2000,9000,90000", "--vary", "network.loss=0.0,0.4", "--compare"],
    words: ["sweep", "scenarios/healthy.toml", "--seeds", "0..3", "--set", "rounds=2", "--vary", "network.gossip=once,reference", "--vary", "network.topology={ regular = 8 },{ regular = 12 },mesh"],
    explain: ["explain", "scenarios/findings/the-chain-grows-once-all-faults-are-over.toml", "--repeats", "10", "--instants", "8", "--budget", "0"],
};

let out;
let browser;

before(async () => {
    out = mkdtempSync(join(tmpdir(), "dposlab-figures-"));
    for (const [name, args] of Object.entries(REPORTS)) {
        const { status } = spawnSync(binary, [...args, "--out", join(out, name)], { cwd: root, stdio: "ignore" });
        // 1 is a sweep of which a run has failed, or a failure that was explained.
        assert.ok(status === 0 || (status === 1 && args[0] !== "run"), `${name}: ${status}`);
        // The same page in the type of the files.
        const page = readFileSync(join(out, name, "report.html"), "utf8");
        mkdirSync(join(out, `${name}-page`));
        writeFileSync(join(out, `${name}-page`, "report.html"), page.replace("</style>", `body { font-family: ${FONTS}; }</style>`));
    }
    browser = await chromium.launch({
        executablePath: "/usr/bin/chromium",
        // Without hinting a letter is as wide as its font says, and not a whole number of pixels.
        args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--font-render-hinting=none"],
    });
});

after(async () => {
    await browser?.close();
    rmSync(out, { recursive: true, force: true });
});

/** Has the program write the files, and returns what it says of them. */
function written(name, theme, options = []) {
    const folder = join(out, name, theme);
    const printed = execFileSync(binary, ["figures", join(out, name), "--out", folder, "--theme", theme, "--json", ...options], { encoding: "utf8" });
    const said = JSON.parse(printed);
    return { ...said, figures: said.figures.map((figure) => ({ ...figure, svg: readFileSync(join(folder, figure.file), "utf8") })) };
}

async function open(name, theme, width = 1400) {
    const context = await browser.newContext({ viewport: { width, height: 900 }, offline: true, acceptDownloads: true });
    const page = await context.newPage();
    await page.goto(`${pathToFileURL(join(out, `${name}-page`, "report.html"))}?theme=${theme}`);
    return { page, close: () => context.close() };
}

/** The page's own files, saved by its buttons in their order. */
async function saved(page) {
    const all = [];
    for (const button of await page.locator('button[aria-label$=" as SVG"]').all()) {
        const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
        all.push(readFileSync(await download.path(), "utf8"));
    }
    return all;
}

/** The elements of a file in their order, read by the browser: names, attributes, styles one by one, and texts. */
function elements(page, svg) {
    return page.evaluate((text) => {
        const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
        if (parsed.querySelector("parsererror")) throw new Error(parsed.querySelector("parsererror").textContent);
        const styles = (element) => Object.fromEntries([...element.style].map((name) => [name, element.style.getPropertyValue(name)]));
        return [...parsed.querySelectorAll("*")].map((element) => ({
            name: element.tagName,
            attributes: Object.fromEntries([...element.attributes].filter(({ name }) => name !== "style").map(({ name, value }) => [name, value])),
            style: styles(element),
            text: [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join(""),
        }));
    }, svg);
}

const NUMBER = /-?\d+(?:\.\d+)?(?:e-?\d+)?/g;

/** Holds two values of an attribute against each other: the same but for numbers, which are within a pixel. */
function near(found, expected, what) {
    assert.equal(found.replace(NUMBER, "#"), expected.replace(NUMBER, "#"), what);
    const [ours, theirs] = [found, expected].map((value) => (value.match(NUMBER) ?? []).map(Number));
    const apart = ours.map((number, index) => Math.abs(number - theirs[index])).reduce((most, one) => Math.max(most, one), 0);
    assert.ok(apart <= 1, `${what}: ${apart} pixels apart`);
}

/** Holds a file against the one that the page saved. */
async function same(page, ours, theirs, what) {
    const [found, expected] = [await elements(page, ours), await elements(page, theirs)];
    assert.deepEqual(found.map(({ name }) => name), expected.map(({ name }) => name), `${what}: elements`);
    assert.ok(found.filter(({ style }) => style.fill !== undefined).length > 10, `${what}: elements have styles of their own`);
    found.forEach((element, index) => {
        const other = expected[index];
        const place = `${what}, <${element.name}> number ${index}`;
        assert.equal(element.text, other.text, place);
        assert.deepEqual(element.style, other.style, place);
        assert.deepEqual(Object.keys(element.attributes).sort(), Object.keys(other.attributes).sort(), place);
        for (const [key, value] of Object.entries(element.attributes)) near(value, other.attributes[key], `${place}, ${key}`);
    });
}

for (const name of Object.keys(REPORTS)) {
    for (const theme of ["light", "dark"]) {
        test(`${name}, ${theme}: each file is what the page's button saves`, async () => {
            const { figures } = written(name, theme);
            const { page, close } = await open(name, theme);
            const theirs = await saved(page);
            assert.equal(figures.length, theirs.length, figures.map(({ file }) => file).join(" "));
            assert.ok(figures.length >= 2);
            for (const [index, { file, svg }] of figures.entries()) await same(page, svg, theirs[index], file);
            await close();
        });
    }
}

test("a width is that of a page in a window as narrow", async () => {
    for (const name of Object.keys(REPORTS)) {
        const { page, close } = await open(name, "light", 420);
        const area = await page.locator(".area:not(.ring)").first().evaluate(({ clientWidth }) => clientWidth);
        const { figures } = written(name, "light", ["--width", String(area + 24)]);
        const theirs = await saved(page);
        assert.equal(figures.length, theirs.length);
        for (const [index, { file, svg }] of figures.entries()) await same(page, svg, theirs[index], `${name}, ${file}`);
        await close();
    }
});

test("a metric that a reader chooses is drawn as on the page", async () => {
    const { metrics } = written("sweep", "light");
    const { page, close } = await open("sweep", "light");
    const options = await page.getByLabel("figure", { exact: true }).locator("option").evaluateAll((all) => all.map(({ value }) => value));
    assert.deepEqual(metrics, options);
    assert.ok(metrics.length > 12);
    for (const metric of metrics.filter((_, index) => index % 5 === 2)) {
        const { figures } = written("sweep", "light", ["--metric", metric]);
        await page.getByLabel("figure", { exact: true }).selectOption(metric);
        const theirs = await saved(page);
        assert.equal(figures.length, theirs.length);
        for (const [index, { file, svg }] of figures.entries()) await same(page, svg, theirs[index], `${metric}, ${file}`);
    }
    await close();
});

test("numbers are written as the browser writes them", async () => {
    // Labels of axes of many magnitudes, in a page whose data were multiplied.
    const page = readFileSync(join(out, "sweep", "report.html"), "utf8");
    for (const power of [-9, -3, 5, 8, 15]) {
        const grown = page.replace(/("(?:min|p5|p25|p50|p75|p95|max|mean|low|high|difference|deviation)":)(-?[\d.]+(?:e-?\d+)?)/g, (_, key, value) => `${key}${Number(value) * 1.00001234567 * 10 ** power}`);
        for (const [folder, text] of [["grown", grown], ["grown-page", grown.replace("</style>", `body { font-family: ${FONTS}; }</style>`)]]) {
            mkdirSync(join(out, folder), { recursive: true });
            writeFileSync(join(out, folder, "report.html"), text);
        }
        const { figures } = written("grown", "light");
        const { page: browsed, close } = await open("grown", "light");
        const theirs = await saved(browsed);
        for (const [index, { file, svg }] of figures.entries()) await same(browsed, svg, theirs[index], `${file} times 10^${power}`);
        await close();
    }
});

test("Chromium and librsvg show each file alike, and not blank", async () => {
    const { page, close } = await open("heal", "light");
    for (const name of Object.keys(REPORTS)) {
        for (const theme of name === "heal" ? ["light", "dark"] : ["light"]) {
            const { figures, folder } = written(name, theme);
            for (const { file, svg, width, height } of figures) {
                const png = execFileSync("rsvg-convert", [join(folder, file)], { maxBuffer: 1 << 26 }).toString("base64");
                const pictures = [`data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`, `data:image/png;base64,${png}`];
                const { sizes, colours, corners, apart } = await page.evaluate(async (sources) => {
                    const [one, other] = await Promise.all(sources.map(async (src) => {
                        const image = Object.assign(new Image(), { src });
                        await image.decode();
                        const canvas = Object.assign(document.createElement("canvas"), { width: image.naturalWidth, height: image.naturalHeight });
                        const context = canvas.getContext("2d", { willReadFrequently: true });
                        context.drawImage(image, 0, 0);
                        return context.getImageData(0, 0, canvas.width, canvas.height);
                    }));
                    let far = 0;
                    for (let at = 0; at < one.data.length; at += 4) far += [0, 1, 2].some((place) => Math.abs(one.data[at + place] - other.data[at + place]) > 96);
                    const pixels = [one, other].map(({ data }) => new Uint32Array(data.buffer));
                    return { sizes: [one, other].map(({ width, height }) => [width, height]), colours: pixels.map((all) => new Set(all).size), corners: pixels.map(([first]) => first.toString(16)), apart: (far * 4) / one.data.length };
                }, pictures);
                assert.deepEqual(sizes, [[width, height], [width, height]], file);
                assert.ok(colours.every((count) => count > 20), `${file}: ${colours} colours`);
                const card = theme === "dark" ? "ff251d18" : "ffffffff";
                assert.deepEqual(corners, [card, card], `${file}: the corner has the colour of the card`);
                assert.ok(apart < 0.02, `${name}, ${file}: ${apart * 100} % of the pixels differ`);
            }
        }
    }
    await close();
});

test("a folder holds the files that were named, and no other", () => {
    const { figures, folder } = written("words", "dark");
    assert.deepEqual(readdirSync(folder).sort(), figures.map(({ file }) => file).sort());
});
