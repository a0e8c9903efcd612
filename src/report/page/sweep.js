"use strict";
const { summary, command } = data;
const { cells } = summary;
const paths = Object.keys(cells[0] ? cells[0].varied : {});
const short = (path) => (paths.length > 1 ? path.split(".").slice(-2).join(".") : path);
const name = (cell) => (paths.length ? paths.map((path) => (paths.length > 1 ? `${short(path)}=${cell.varied[path]}` : cell.varied[path])).join("<br>") : "all runs");
const names = cells.map(name);
// Equal names would share a place: then the number tells them apart.
const unique = names.map((text, index) => (names.indexOf(text) === index ? text : `${text} (${index + 1})`));

page.append(heading(summary.scenario, `seeds ${summary.seeds}${summary.vary.length ? `, with ${summary.vary.join(" and ")}` : ""}`));
page.append(element("div", { class: "tiles" },
  tile(number(summary.runs), "runs"), tile(number(cells.length), cells.length === 1 ? "combination" : "combinations"),
  tile(number(summary.failed), "runs failed", summary.failed > 0),
  summary.censored ? tile(number(summary.censored), "runs censored: ended before their end", true) : null,
  Object.entries(summary.by_status).filter(([status]) => status !== "ok" && status !== "censored").map(([status, count]) => tile(number(count), status, true)),
  tile(percent(summary.runs > summary.censored ? 1 - summary.failed / (summary.runs - summary.censored) : null), summary.censored ? "ended well, of those not censored" : "ended well", summary.failed > 0)));

const grid = element("div", { class: "grid" });
page.append(grid);
grid.append(reproduce(`${command} --out DIR`, [
  ["scenario", summary.scenario], ["seeds", summary.seeds], ["varied", summary.vary.join("  ")], ["set", summary.set.join("  ")],
  ["version", `dposlab ${summary.version}`], ["digest of the scenario", summary.scenario_digest],
]));

const wordOf = (figure) => figure.replace(/_ms$/, ", ms").replaceAll("_", " ");
const figures = [...new Set(cells.flatMap((cell) => Object.keys(cell.figures)))];
const varies = (figure) => cells.some((cell) => cell.figures[figure] && cell.figures[figure].min !== cells[0].figures[figure]?.max);
const order = ["missed_slots", "agreement_mean", "propagation_p50_ms", "orphaned", "rollbacks", "fork_depth_max", "transactions_per_second", "height"];
figures.sort((one, other) => (order.indexOf(one) + 1 || 99) - (order.indexOf(other) + 1 || 99));
const categories = () => axis(paths.length === 1 ? paths[0] : "", { type: "category", categoryorder: "array", categoryarray: unique });

// One varied path with numbers is an axis.
const numeric = paths.length === 1 && cells.every((cell) => cell.varied[paths[0]] !== "" && Number.isFinite(Number(cell.varied[paths[0]])));
const xs = () => (numeric ? cells.map((cell) => Number(cell.varied[paths[0]])) : unique);

function distribution(figure) {
  const has = cells.map((cell, index) => [cell.figures[figure], unique[index], color("good")]).filter(([values]) => values);
  const pick = (key) => has.map(([values]) => values[key]);
  return {
    traces: [{
      type: "box", x: has.map(([, where]) => where), q1: pick("p25"), median: pick("p50"), q3: pick("p75"), lowerfence: pick("p5"), upperfence: pick("p95"), mean: pick("mean"),
      name: "", boxpoints: false, line: { color: color("good"), width: 1.5 }, fillcolor: `${color("good")}33`, whiskerwidth: 0.5, width: 0.5, showlegend: false,
    },
    ...["min", "max"].map((end) => ({ type: "scatter", mode: "markers", x: has.map(([, where]) => where), y: pick(end), marker: { color: color("soft"), size: 5, symbol: "line-ew-open" }, hovertemplate: `%{y:.4~g}<extra>${end}</extra>`, showlegend: false }))],
    layout: layout(340, { xaxis: categories(), yaxis: axis(wordOf(figure), { rangemode: "normal" }) }),
  };
}

function uncertain(values, digits) {
  if (values.confidence) return ` ± ${number(values.confidence.high - values.mean, digits)}`;
  return values.count > 1 ? ` in all; others in ${percent(values.differ_at_most)} of the runs at most` : "";
}

function means(figure) {
  const has = cells.map((cell, index) => [cell.figures[figure], xs()[index]]).filter(([values]) => values);
  // Equal values have no interval: a spread of 0 would claim too much.
  const spread = (values) => (values.confidence ? values.confidence.high - values.mean : 0);
  return {
    traces: [{
      type: "scatter", mode: numeric ? "lines+markers" : "markers", x: has.map(([, where]) => where), y: has.map(([values]) => values.mean), line: { color: color("good"), width: 2 },
      marker: { size: 8, color: color("good") }, error_y: { type: "data", array: has.map(([values]) => spread(values)), color: color("soft"), thickness: 1.5, width: 6 },
      text: has.map(([values]) => `${number(values.mean, 4)}${uncertain(values, 4)}<br>deviation ${number(values.deviation, 4)}, ${number(values.count)} runs`), hovertemplate: "%{text}<extra></extra>",
    }],
    layout: layout(340, { xaxis: numeric ? axis(paths[0]) : categories(), yaxis: axis(wordOf(figure)), showlegend: false }),
  };
}

const chosen = [figures.find(varies) || figures[0]];
const select = element("select", { "aria-label": "figure", style: "font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:7px;padding:5px 9px" },
  figures.map((figure) => element("option", { value: figure }, wordOf(figure))));
select.value = chosen[0];
const boxes = plotCard("half", "Distribution", "Boxes hold the middle half of the runs, whiskers nine in ten, dashes the least and the greatest.", () => distribution(chosen[0]));
const lines = plotCard("half", "Mean", "With the interval that holds the true mean with 95 % confidence (Student); none where every run has the same value.", () => means(chosen[0]));
select.addEventListener("change", () => { chosen[0] = select.value; boxes.draw(); lines.draw(); });
grid.append(element("section", { class: "card", style: "display:flex;gap:14px;align-items:center;flex-wrap:wrap" }, element("h2", { style: "margin:0" }, "Figure"), select,
  element("span", { class: "soft" }, "of each run, by what was varied")));
grid.append(boxes.card, lines.card);

const decided = cells.map((cell, index) => [cell, unique[index]]).filter(([cell]) => cell.ok);
grid.append(plotCard("half", "Runs that ended well", "Share of the runs that are not censored, with Wilson's interval at 95 % confidence; of none and of all with the exact one.", () => ({
  traces: [{
    type: "scatter", mode: "markers", x: decided.map(([, where]) => where), y: decided.map(([cell]) => cell.ok.share * 100), marker: { size: 9, color: color("third") },
    error_y: { type: "data", symmetric: false, array: decided.map(([cell]) => (cell.ok.confidence.high - cell.ok.share) * 100), arrayminus: decided.map(([cell]) => (cell.ok.share - cell.ok.confidence.low) * 100), color: color("third"), thickness: 1.5, width: 6 },
    text: decided.map(([cell]) => `${cell.ok.so} of ${cell.ok.of}${cell.censored ? `, ${cell.censored} more censored` : ""}`), hovertemplate: "%{y:.2f} %<br>%{text}<extra></extra>",
  }],
  layout: layout(300, { xaxis: categories(), yaxis: axis("percent", { range: [-3, 104] }), showlegend: false }),
})).card);

grid.append(element("section", { class: "card half" }, element("h2", {}, summary.failed ? "Runs that failed" : "No run failed"),
  element("p", { class: "soft" }, summary.failed ? `The first ${number(summary.failures.length)} of ${number(summary.failed)}; all of them are in failures.csv.` : summary.censored ? `${number(summary.censored)} of ${number(summary.runs)} are censored: ended before their end.` : "Every seed ended well with every value."),
  element("div", { style: "height:8px" }),
  summary.failures.length ? table(["seed", "ended", "to repeat it"], summary.failures.map((failed) => [String(failed.seed), { class: "bad", text: [failed.status, ...failed.broken].join(": ") }, failed.reproduce])) : null));

const asserted = [...new Set(cells.flatMap((cell) => cell.assertions.map((held) => held.assertion)))];
if (asserted.length) {
  grid.append(element("section", { class: "card words" }, element("h2", {}, "Assertions"), element("p", { class: "soft" }, "Share of the runs in which each held, of those in which it was decided, with Wilson's interval at 95 % confidence; of none and of all with the exact one."), element("div", { style: "height:8px" }),
    table(["assertion", ...unique.map((text) => text.replaceAll("<br>", ", "))], asserted.map((assertion) => [assertion, ...cells.map((cell) => {
      const found = cell.assertions.find((held) => held.assertion === assertion);
      if (!found) return "–";
      const open = found.undecided ? `${number(found.undecided)} undecided` : "";
      if (!found.holds) return { class: "bad", text: open };
      const text = `${percent(found.holds.share)} (${number(found.holds.confidence.low * 100, 1)}–${number(found.holds.confidence.high * 100, 1)})${open ? `, ${open}` : ""}`;
      return found.holds.so < found.holds.of ? { class: "bad", text } : text;
    })]))));
}

const timed = cells.map((cell, index) => [cell.converged_seconds, unique[index]]).filter(([times]) => times && times.watched_max > 0);
if (timed.length) {
  const known = (value) => (value === null ? "not known" : number(value, 1));
  grid.append(element("section", { class: "card" }, element("h2", {}, "Time to converge"),
    element("p", { class: "soft" }, "Seconds from a fault's end until all live nodes stood on one block, the longest of each run. Runs that ended before are right-censored, and the quantiles are Kaplan's and Meier's: not known where too many are."),
    element("div", { style: "height:8px" }),
    table(["", "runs", "converged", "censored", "25 %", "median", "95 % confidence", "75 %", "95 %", "longest watched"], timed.map(([times, where]) => [where.replaceAll("<br>", ", "),
      number(times.runs), number(times.seen), number(times.censored), known(times.p25), known(times.p50), `${known(times.p50_low)} to ${known(times.p50_high)}`, known(times.p75), known(times.p95), number(times.watched_max, 1)]))));
}

const shown = figures.filter((figure) => order.includes(figure));
grid.append(element("section", { class: "card" }, element("h2", {}, "Means"), element("p", { class: "soft" }, "Over the runs of each combination, ± 95 % confidence; (all): every run has this value, and no interval of the mean can be told."), element("div", { style: "height:8px" }),
  table([paths.map(short).join(", "), "runs", ...shown.map(wordOf)], cells.map((cell) => [paths.map((path) => cell.varied[path]).join(", ") || "all", `${number(cell.runs)}${cell.censored ? ` (${number(cell.censored)} censored)` : ""}`,
    ...shown.map((figure) => { const values = cell.figures[figure]; return values ? `${number(values.mean, 3)}${values.confidence ? ` ± ${number(values.confidence.high - values.mean, 3)}` : values.count > 1 ? " (all)" : ""}` : "–"; })]))));

drawAll();
