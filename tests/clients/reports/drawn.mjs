// Reads a drawing back: ticks give the scales, and paths the marks. Nothing here knows the scripts that drew it.
import { readFileSync } from "node:fs";

const SECONDS = { microseconds: 1e-6, milliseconds: 1e-3, seconds: 1, minutes: 60, hours: 3600, days: 86400 };
const SIGNS = { "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400 };

/** The number that a tick's label says: "1,000", "−2.5", "10 min" (in seconds), "40 %". */
function said(label, unit) {
    const [, text, sign] = label.replaceAll(",", "").replace("−", "-").match(/^([-\d.]+)\s*(\S*)$/u);
    return Number(text) * (SIGNS[sign] ?? SECONDS[unit] ?? 1);
}

/** From pixels to values by two ticks far apart, as a reader with a ruler would do it. */
function scaleBy(ticks, log) {
    const [first, last] = [ticks[0], ticks.at(-1)];
    const [forth, back] = log ? [Math.log, Math.exp] : [(value) => value, (value) => value];
    const per = (forth(last.value) - forth(first.value)) / (last.at - first.at);
    return { of: (pixel) => back(forth(first.value) + (pixel - first.at) * per), tolerance: Math.abs(per), log };
}

/** What a card's drawing says by itself: texts with their places, and the paths of each series. */
export function drawing(card) {
    return card.locator(".area > svg").evaluate((svg) => ({
        texts: [...svg.querySelectorAll("text")].map((text) => ({
            text: text.firstChild.data,
            x: Number(text.getAttribute("x")),
            y: Number(text.getAttribute("y")),
            axis: text.dataset.x !== undefined ? "x" : text.dataset.y !== undefined ? "y" : "",
            title: text.classList.contains("title"),
        })),
        series: Object.fromEntries(
            [...svg.querySelectorAll("[data-series]")].map((group) => [
                group.dataset.series,
                Object.fromEntries([...group.querySelectorAll("path")].map((path) => [path.getAttribute("class"), path.getAttribute("d")])),
            ]),
        ),
        spans: [...svg.querySelectorAll("rect.span")].map((rect) => [Number(rect.getAttribute("x")), Number(rect.getAttribute("width"))]),
        begins: [...svg.querySelectorAll("path.begin")].map((path) => path.getAttribute("d")),
        ends: [...svg.querySelectorAll("path.end")].map((path) => path.getAttribute("d")),
    }));
}

/** The horizontal scale; the unit stands in the title of the axis, which is the lowest text. */
export function across(drawn, log = false) {
    const titles = drawn.texts.filter((text) => text.title);
    const unit = titles.reduce((low, text) => (text.y > low.y ? text : low)).text.split(", ").at(-1);
    const ticks = drawn.texts.filter((text) => text.axis === "x").map((text) => ({ at: text.x, value: said(text.text, unit) }));
    return scaleBy(ticks, log);
}

/** The vertical scale of the panel below this title. */
export function up(drawn, title, log = false) {
    const heads = drawn.texts.filter((text) => text.title).sort((one, other) => one.y - other.y);
    const head = heads.findIndex((text) => text.text.startsWith(title));
    const [from, to] = [heads[head].y, heads[head + 1]?.y ?? Infinity];
    const unit = heads[head].text.split(", ").at(-1);
    const ticks = drawn.texts.filter((text) => text.axis === "y" && text.y > from && text.y < to);
    // A label's line lies 4 pixels below the middle of its letters.
    return scaleBy(ticks.map((text) => ({ at: text.y - 4, value: said(text.text, unit) })), log);
}

/** The corners of a path of lines, part by part. */
export function parts(d) {
    return d.split("M").slice(1).map((part) => part.split("L").map((point) => point.match(/-?[\d.]+/g).slice(0, 2).map(Number)));
}

/** The height of a line of steps at a place; undefined in a gap. */
export function stepAt(line, x) {
    const part = line.find((points) => points[0][0] <= x && points.at(-1)[0] >= x);
    return part?.findLast(([at]) => at <= x)[1];
}

/** Where each mark of a path stands. */
export const marks = (d) => d.split("M").slice(1).map((mark) => mark.match(/^(-?[\d.]+),(-?[\d.]+)/).slice(1).map(Number));

/** Rows of a CSV file without quoted cells. */
export function rows(file) {
    const [head, ...lines] = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => line.trimEnd().split(","));
    return lines.map((line) => Object.fromEntries(head.map((name, index) => [name, line[index]])));
}
