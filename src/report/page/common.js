"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const wanted = new URLSearchParams(location.search).get("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
root.dataset.theme = wanted || (dark.matches ? "dark" : "light");

/** An element with attributes and children; text children are put in as text. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

const page = document.getElementById("page");
const color = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
const number = (value, digits = 2) =>
  value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits });
const percent = (value) => (value === null || value === undefined ? "–" : `${number(value * 100, 2)} %`);
const ms = (value) => (value >= 10000 ? `${number(value / 1000, 1)} s` : `${number(value, value < 10 ? 1 : 0)} ms`);

/** Plots are functions of the theme: they are drawn again when it changes. */
const plots = [];
const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

function axis(title, more = {}) {
  return {
    title: { text: title, font: { size: 12, color: color("soft") }, standoff: 8 }, gridcolor: color("grid"), zerolinecolor: color("grid"),
    linecolor: color("line"), tickfont: { color: color("soft"), size: 12 }, automargin: true, ...more,
  };
}

function layout(height, more = {}) {
  return {
    height, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 56, r: 16, t: 32, b: 44 },
    font: { color: color("text"), family: getComputedStyle(document.body).fontFamily, size: 13 },
    hoverlabel: { bgcolor: color("card"), bordercolor: color("line"), font: { color: color("text") } },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { color: color("soft"), size: 12 } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: color("soft"), activecolor: color("text") }, ...more,
  };
}

/** A card with a plot; `figure` answers { traces, layout } in the colours of the theme. */
function plotCard(size, title, explanation, figure, ...more) {
  const where = element("div", { class: "plot" });
  const card = element("section", { class: `card ${size}` }, element("h2", {}, title), element("p", { class: "soft" }, explanation), where, more);
  const draw = () => {
    const { traces, layout } = figure();
    Plotly.react(where, traces, layout, config);
  };
  plots.push(draw);
  return { card, draw };
}

function table(head, rows) {
  const cell = (value) => (value !== null && typeof value === "object" ? element("td", { class: value.class }, value.text) : element("td", {}, String(value)));
  return element("div", { class: "scroll" }, element("table", {},
    element("thead", {}, element("tr", {}, head.map((name) => element("th", {}, name)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell))))));
}

function tile(value, name, bad = false) {
  return element("div", { class: bad ? "tile bad" : "tile" }, element("b", {}, value), element("span", {}, name));
}

function heading(title, below) {
  const button = element("button", { type: "button", onclick: () => setTheme(root.dataset.theme === "dark" ? "light" : "dark") });
  const label = () => { button.textContent = root.dataset.theme === "dark" ? "Light" : "Dark"; };
  plots.push(label);
  label();
  return element("header", {}, element("div", {}, element("h1", {}, title), element("p", { class: "soft" }, below)), button);
}

/** How to do it again. */
function reproduce(command, facts) {
  const button = element("button", { type: "button", onclick: () => {
    const done = () => { button.textContent = "Copied"; };
    if (navigator.clipboard) navigator.clipboard.writeText(command).then(done, () => {});
  } }, "Copy");
  return element("section", { class: "card" },
    element("div", { style: "display:flex;justify-content:space-between;align-items:center" }, element("h2", {}, "To repeat it"), button),
    element("pre", {}, command),
    element("dl", {}, facts.filter(([, fact]) => fact !== "").flatMap(([name, fact]) => [element("dt", {}, name), element("dd", {}, element("code", {}, String(fact)))])));
}

function setTheme(theme) {
  root.dataset.theme = theme;
  for (const draw of plots) draw();
}

function drawAll() {
  for (const draw of plots) draw();
  dark.addEventListener("change", (event) => { if (!wanted) setTheme(event.matches ? "dark" : "light"); });
}
