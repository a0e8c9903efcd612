"use strict";
// Shared by the pages: the theme, cards, tables, copying and saving.

const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const wanted = new URLSearchParams(location.search).get("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
root.dataset.theme = wanted || (dark.matches ? "dark" : "light");

const page = document.getElementById("page");

/** The rows of a table that came column by column, which is a quarter of the size. */
function rowsOf(columns) {
  const names = Object.keys(columns);
  return names.length ? columns[names[0]].map((_, row) => Object.fromEntries(names.map((name) => [name, columns[name][row]]))) : [];
}

/** Draws all plots, once they are in the page and have a width. */
const plots = [];
function drawAll() {
  document.body.append(svg("svg", { width: 0, height: 0, style: "position:absolute", "aria-hidden": "true" }, textures()));
  even(page.querySelector(".grid"));
  for (const plot of plots) plot.draw();
  dark.addEventListener("change", (event) => { if (!wanted) setTheme(event.matches ? "dark" : "light"); });
}

/** Cards of half the width stand in pairs: where their number is odd, the first takes the whole. */
function even(grid) {
  let run = [];
  const close = () => {
    if (run.length % 2) run[0].classList.remove("half");
    run = [];
  };
  for (const card of grid.children) {
    if (!card.classList.contains("half") || card.dataset.pair === "new") close();
    if (card.classList.contains("half")) run.push(card);
  }
  close();
}

const stem = () => document.title.replace(/^.*\//, "").replace(".toml", "");
const slug = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
const TABLE_ROWS = 1000;

function card(size, title, explanation, ...more) {
  return element("section", { class: `card ${size}`, "aria-label": title },
    element("div", { class: "top" }, element("h2", {}, title)), explanation ? element("p", { class: "soft" }, explanation) : null, more);
}

/** Every drawing of the page, in order: its title, and a function that draws it for a file. */
const drawings = [];

/** The buttons above a plot: `more`, and two that save the drawing as SVG and PNG. */
function tools(title, drawing, more = [], shows = () => title) {
  drawings.push({ shows, drawing });
  const save = (kind, how) => element("button", { type: "button", class: "tool", "aria-label": `Save “${title}” as ${kind}`, onclick: () => how(slug(`${stem()} ${title}`), drawing()) }, kind);
  return element("div", { class: "tools" }, more, save("SVG", saveSvg), save("PNG", savePng));
}

/** A card with a plot. `file` names the table in the folder that has all of its numbers. */
function plotCard(size, title, explanation, spec, file) {
  const where = element("div", { class: "plot" });
  const numbers = element("div");
  const made = card(size, title, explanation, where, numbers);
  const plot = new Plot(where, { title, ...spec });
  const toggle = element("button", { type: "button", class: "tool", "aria-expanded": "false", "aria-label": `Table of “${title}”`, onclick: () => {
    toggle.setAttribute("aria-expanded", String(toggle.getAttribute("aria-expanded") !== "true"));
    plot.drawn();
  } }, "Table");
  plot.drawn = () => numbers.replaceChildren(...(toggle.getAttribute("aria-expanded") === "true" ? [numbersOf(plot, title, file)] : []));
  const keys = () => {
    const named = plot.shown().map(([series]) => series).filter((series) => series.name && !series.quiet);
    const once = named.filter((series, index) => named.findIndex((other) => other.name === series.name) === index);
    return once.length > 1 ? once : [];
  };
  const drawing = () => { plot.hide(); return standalone(plot.svg, title, keys()); };
  made.querySelector(".top").append(tools(title, drawing, [toggle, file ? element("a", { class: "tool", href: file, "aria-label": `${file}, which has all numbers` }, file) : null], () => plot.spec.title));
  plots.push(plot);
  return { card: made, plot };
}

function numbersOf(plot, title, file) {
  const { head, rows, more } = plot.table(TABLE_ROWS);
  return element("div", {}, table(head, rows, `Numbers of ${title}`), more ? element("p", { class: "soft" }, `${number(more)} rows more${file ? ` in ${file}` : ""}; zoom in to see others.`) : null);
}

function tile(value, name, bad = false) {
  return element("div", { class: `tile${bad ? " bad" : ""}${value.length > 8 ? " long" : ""}` }, element("b", {}, value), element("span", {}, name));
}

function heading(title, below) {
  const button = element("button", { type: "button", onclick: () => setTheme(root.dataset.theme === "dark" ? "light" : "dark") }, "Light or dark");
  return element("header", {}, element("div", {}, element("h1", {}, title), element("p", { class: "soft" }, below)), button);
}

/** A command, whole, with a button that copies it. */
function command(text) {
  const button = element("button", { type: "button", class: "copy", "aria-label": `Copy ${text}`, onclick: async () => {
    button.textContent = (await copied(text)) ? "Copied" : "Select it";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  } }, "Copy");
  return element("div", { class: "command" }, element("code", {}, text), button);
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Some browsers have no clipboard for files.
    const area = element("textarea", { readonly: "", class: "unseen", "aria-hidden": "true" }, text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function facts(title, all) {
  const made = card("half", title, "", element("dl", {}, all.filter(([, fact]) => fact !== "").flatMap(([name, fact]) => [element("dt", {}, name), element("dd", {}, element("code", {}, String(fact)))])));
  made.dataset.pair = "new";
  return made;
}

/** The files beside this page: [name, endings, what it holds]. */
function files(all) {
  const links = (name, endings) => endings.flatMap((ending, index) => [index ? " " : null, element("a", { href: `${name}.${ending}` }, index ? `.${ending}` : `${name}.${ending}`)]);
  return card("half", "Files of this folder", "The data behind the plots, for your own tools.",
    element("dl", { class: "files" }, all.flatMap(([name, endings, holds]) => [element("dt", {}, links(name, endings)), element("dd", {}, holds)])));
}

function setTheme(theme) {
  root.dataset.theme = theme;
}
