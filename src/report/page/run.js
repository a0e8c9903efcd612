"use strict";
const { about, totals, rounds, time } = data;

// Virtual time since the first slot of the run, in the unit that reads best.
const units = [["minutes", 60], ["hours", 3600], ["days", 86400]];
const [unit, unitSeconds] = units.findLast(([, seconds]) => totals.seconds >= 3 * seconds) || units[0];
const since = (slot) => ((slot * data.blocktime) - data.start) / unitSeconds;
const slotX = time.map((row) => since(row.first_slot));
const timeAxis = (more = {}) => axis(`virtual time in ${unit}`, more);
const roundAxis = (more = {}) => axis("round", { dtick: rounds.length <= 20 ? 1 : undefined, ...more });
const spans = time.length && time[0].slots > 1 ? ` A point stands for ${time[0].slots} slots.` : "";

page.append(heading(about.scenario, about.description));

const traffic = totals.transactions > 0 || totals.transactions_rejected > 0 || (totals.pool_max || 0) > 0;
page.append(element("div", { class: "tiles" },
  tile(number(totals.height), "height"),
  tile(number(totals.rounds), "rounds"),
  tile(number(totals.blocks), "blocks on the chain"),
  tile(number(totals.missed_slots), "slots missed", totals.missed_slots > 0),
  tile(number(totals.orphaned), "blocks orphaned", totals.orphaned > 0),
  tile(number(totals.fork_depth_max), "blocks, longest branch beside the chain", totals.fork_depth_max > 0),
  tile(number(totals.rollbacks), "rollbacks", totals.rollbacks > 0),
  totals.propagation_ms.count ? tile(ms(totals.propagation_ms.p50), "propagation, median") : null,
  totals.propagation_ms.count ? tile(ms(totals.propagation_ms.p99), "propagation, 99 %") : null,
  tile(percent(totals.agreement_mean), "mean agreement of live nodes", totals.agreement_mean !== null && totals.agreement_mean < 0.99),
  totals.down_max > 0 ? tile(number(totals.down_max), "nodes down at most", true) : null,
  about.ended !== "complete" ? tile(about.censored ? `censored (${about.ended})` : about.ended, `at height ${totals.height}`, true) : null,
  traffic ? tile(number(totals.transactions), "transactions") : null,
  traffic ? tile(`${number(totals.transactions_per_second)} /s`, "throughput") : null));

const grid = element("div", { class: "grid" });
page.append(grid);

grid.append(reproduce(about.reproduce, [
  ["scenario", about.scenario], ["seed", about.seed], ["set", about.set.join("  ")], ["version", `dposlab ${about.version}`],
  ["digest", about.digest], ["events", number(about.events)], ["inputs delivered", number(about.delivered)],
  ["notes", about.notes.join("; ")],
  ["ended", about.ended],
  ["proof that no block can ever follow", about.halt ? `${about.halt.proof}; the same ${number(about.halt.first_us / 1e6 - data.start)} s and ${number(about.halt.second_us / 1e6 - data.start)} s into the run; fingerprint ${about.halt.fingerprint}` : ""],
]));

if (about.censored) {
  grid.append(element("section", { class: "card" }, element("h2", {}, "This run is censored"), element("p", { class: "soft" },
    `It was ended before its last round (${about.ended}), and nobody knows how it would have gone on: it has neither succeeded nor failed. Times that were still running are longer than what is told.`)));
}

if (data.assertions.length) {
  const broken = data.assertions.filter((verdict) => verdict.holds === false).length;
  const open = data.assertions.filter((verdict) => verdict.holds === null).length;
  const ruling = (verdict) => (verdict.holds ? "holds" : { class: "bad", text: verdict.holds === null ? "is undecided" : "does not hold" });
  grid.append(element("section", { class: "card" }, element("h2", {}, broken ? `${broken} of ${data.assertions.length} assertions do not hold` : open ? `${open} of ${data.assertions.length} assertions are undecided` : "All assertions hold"),
    element("div", { style: "height:6px" }),
    table(["assertion", "", "found"], data.assertions.map((verdict) => [verdict.assertion, ruling(verdict), verdict.found]))));
  grid.lastChild.classList.add("words");
}

// The ring: a slot is a piece, a round is a ring, the latest outside.
const RINGS = 10;
let lastRing = data.rings.length;
const shownRings = () => data.rings.slice(Math.max(0, lastRing - RINGS), lastRing);
const ring = plotCard("wide", "Round ring", "Each ring is a round, the latest outside, clockwise from the top; each piece is a slot and its owner.", () => {
  const pieces = { forged: [], missed: [] };
  shownRings().forEach(({ round, turns, lacks }, index) => {
    const width = 360 / (turns.length + lacks);
    turns.forEach(([slot, owner, height], turn) => {
      pieces[height ? "forged" : "missed"].push({
        base: 5 + index * 1.15, theta: (turn + 0.5) * width, width: width * 0.86,
        text: `round ${round}, slot ${slot}<br>${owner}<br>${height ? `forged height ${height}` : "<b>missed</b>"}`,
      });
    });
  });
  const trace = (name, list, fill) => ({
    type: "barpolar", name, base: list.map((piece) => piece.base), r: list.map(() => 1), theta: list.map((piece) => piece.theta),
    width: list.map((piece) => piece.width), text: list.map((piece) => piece.text), hovertemplate: "%{text}<extra></extra>", marker: { color: fill },
  });
  const hidden = { visible: false, showticklabels: false };
  return {
    traces: [trace("forged", pieces.forged, color("good")), trace("missed", pieces.missed, color("bad"))],
    layout: layout(540, {
      margin: { l: 8, r: 8, t: 8, b: 8 }, legend: { ...layout(0).legend, y: 0.5, x: 0.5, xanchor: "center", yanchor: "middle", orientation: "v" },
      polar: { bgcolor: "rgba(0,0,0,0)", radialaxis: { ...hidden, range: [0, 5 + shownRings().length * 1.15] }, angularaxis: { ...hidden, rotation: 90, direction: "clockwise" } },
    }),
  };
});
if (data.rings.length > RINGS) {
  const label = element("span", { class: "soft" });
  const say = () => { const shown = shownRings(); label.textContent = `rounds ${shown[0].round} to ${shown.at(-1).round}`; };
  const slider = element("input", { type: "range", min: RINGS, max: data.rings.length, value: data.rings.length, "aria-label": "last round shown",
    oninput: () => { lastRing = Number(slider.value); say(); ring.draw(); } });
  say();
  ring.card.append(element("div", { class: "bar" }, slider, label));
}
grid.append(ring.card);

const worst = [...data.delegates].sort((one, other) => other.missed - one.missed);
grid.append(element("section", { class: "card third" }, element("h2", {}, "Delegates"),
  element("p", { class: "soft" }, "Slots over all rounds, most missed first."),
  element("div", { style: "height:8px" }),
  table(["", "owned", "forged", "missed"], worst.map(({ username, owned, forged, missed }) =>
    [username, owned, forged, missed ? { class: "bad", text: String(missed) } : 0])),
));
grid.lastChild.querySelector(".scroll").style.maxHeight = "520px";

const line = (name, x, y, stroke, more = {}) => ({
  type: "scatter", mode: x.length <= 2 ? "lines+markers" : "lines", name, x, y, line: { color: stroke, width: 2, ...more.line }, ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== "line")),
});

const healMarks = () => data.heals.map((heal) => ({
  type: "line", xref: "x", yref: "paper", x0: (heal.at_us / 1e6 - data.start) / unitSeconds, x1: (heal.at_us / 1e6 - data.start) / unitSeconds,
  y0: 0, y1: 1, line: { color: color("third"), width: 1.5, dash: "dot" },
}));

grid.append(plotCard("", "Chain and forks", `Heights of the live nodes at the end of each slot, blocks that did not make it, the number of branches the live nodes stand on, and how many nodes are down.${spans}${data.heals.length ? " Dotted: a fault ends." : ""}`, () => ({
  traces: [
    line("highest node", slotX, time.map((row) => row.height_greatest), color("good")),
    line("lowest node", slotX, time.map((row) => row.height_least), color("good"), { line: { width: 1, dash: "dot" }, fill: "tonexty", fillcolor: `${color("bad")}22` }),
    { type: "scatter", mode: "markers", name: "orphaned block", x: data.orphans.map((block) => (block.at_us / 1e6 - data.start) / unitSeconds), y: data.orphans.map((block) => block.height),
      text: data.orphans.map((block) => `${block.id}<br>by node-${block.node} in slot ${block.slot}`), hovertemplate: "height %{y}<br>%{text}<extra>orphaned</extra>",
      marker: { color: color("bad"), size: 6, symbol: "x" } },
    { ...line("branches", slotX, time.map((row) => row.branches_max), color("bad"), { line: { shape: "hv" } }), yaxis: "y2" },
    { ...line("fork depth", slotX, time.map((row) => row.fork_depth_max), color("fourth"), { line: { shape: "hv" } }), yaxis: "y2" },
    ...(totals.down_max > 0 ? [{ ...line("nodes down", slotX, time.map((row) => row.down_max), color("soft"), { line: { shape: "hv" }, fill: "tozeroy", fillcolor: `${color("soft")}22` }), yaxis: "y2" }] : []),
  ],
  layout: layout(440, {
    hovermode: "x", xaxis: timeAxis({ anchor: "y2" }), yaxis: axis("height", { domain: [0.36, 1] }), yaxis2: axis(totals.down_max > 0 ? "branches, depth, down" : "branches, depth", { domain: [0, 0.26], rangemode: "tozero" }),
    shapes: healMarks(),
  }),
})).card);

grid.append(plotCard("half", "Agreement", `Share of the live nodes, and of the vote weight behind them, on the block most of them stand on; the least at a slot's end. A gap: no node was live.${spans}`, () => ({
  traces: [
    line("nodes", slotX, time.map((row) => (row.agreement_min === null ? null : row.agreement_min * 100)), color("good"), { line: { shape: "hv" }, hovertemplate: "%{y:.1f} %" }),
    line("vote weight", slotX, time.map((row) => (row.weight_agreement_min === null ? null : row.weight_agreement_min * 100)), color("fourth"), { line: { shape: "hv", dash: "dot" }, hovertemplate: "%{y:.1f} %" }),
  ],
  layout: layout(300, { hovermode: "x unified", xaxis: timeAxis(), yaxis: axis("percent", { range: [0, 104] }), shapes: healMarks() }),
})).card);

const roundX = rounds.map((round) => round.round);
grid.append(plotCard("half", "Slots by round", "Blocks on the winning chain, slots left empty, and forks: blocks forged on a parent on which another block had been forged before.", () => ({
  traces: [["blocks", "blocks", "good"], ["missed_slots", "missed", "bad"], ["forks", "forks", "fourth"]].map(([key, name, fill]) => ({
    type: "bar", name, x: roundX, y: rounds.map((round) => round[key]), marker: { color: color(fill) }, hovertemplate: `%{y} ${name}<extra>round %{x}</extra>`,
  })),
  layout: layout(300, { barmode: "stack", bargap: 0.25, xaxis: roundAxis(), yaxis: axis("slots") }),
})).card);

if (totals.propagation_ms.count > 0) grid.append(plotCard("half", "Propagation", "How many deliveries, from forging to the chain of a node that was live then, took no longer than this.", () => ({
  traces: [line("deliveries", data.curve.map(([delay]) => delay), data.curve.map(([, share]) => share * 100), color("good"), { fill: "tozeroy", fillcolor: `${color("good")}22`, hovertemplate: "%{y:.1f} % within %{x:.0f} ms<extra></extra>" })],
  layout: layout(300, { xaxis: axis("milliseconds", { rangemode: "tozero" }), yaxis: axis("percent of deliveries", { range: [0, 102] }), showlegend: false }),
})).card);

if (totals.propagation_ms.count > 0) grid.append(plotCard("half", "Propagation by round", "Half, nine in ten, and 99 in a hundred deliveries took no longer.", () => ({
  traces: [["p50", "good"], ["p90", "third"], ["p99", "bad"]].map(([key, stroke]) =>
    line(`${key.slice(1)} %`, roundX, rounds.map((round) => (round.propagation_ms.count ? round.propagation_ms[key] : null)), color(stroke), { mode: "lines+markers", marker: { size: 5 }, hovertemplate: "%{y:.0f} ms" })),
  layout: layout(300, { hovermode: "x unified", xaxis: roundAxis(), yaxis: axis("milliseconds", { rangemode: "tozero" }) }),
})).card);

if (traffic) {
  grid.append(plotCard("half", "Pools", `Transactions waiting, mean over the live nodes and in the fullest pool of one.${spans}`, () => ({
    traces: [
      line("mean", slotX, time.map((row) => row.pool_mean), color("good"), { fill: "tozeroy", fillcolor: `${color("good")}22`, hovertemplate: "%{y:.1f}" }),
      line("fullest", slotX, time.map((row) => row.pool_max), color("bad"), { line: { width: 1, dash: "dot" }, hovertemplate: "%{y}" }),
    ],
    layout: layout(300, { hovermode: "x unified", xaxis: timeAxis(), yaxis: axis("transactions", { rangemode: "tozero" }) }),
  })).card);

  grid.append(plotCard("half", "Throughput", `Transactions that half of the nodes have on their chain, a second.${spans}`, () => ({
    traces: [line("a second", slotX, time.map((row) => row.transactions / (row.slots * data.blocktime)), color("third"), { line: { shape: "hv" }, fill: "tozeroy", fillcolor: `${color("third")}22`, hovertemplate: "%{y:.2f} /s<extra></extra>" })],
    layout: layout(300, { hovermode: "x", xaxis: timeAxis(), yaxis: axis("transactions a second", { rangemode: "tozero" }), showlegend: false }),
  })).card);

  grid.append(plotCard("half", "Transaction latency by round", "From the first pool to the chains of half of the nodes.", () => ({
    traces: [["p50", "good"], ["p90", "third"], ["p99", "bad"]].map(([key, stroke]) =>
      line(`${key.slice(1)} %`, roundX, rounds.map((round) => (round.transaction_latency_ms.count ? round.transaction_latency_ms[key] / 1000 : null)), color(stroke), { mode: "lines+markers", marker: { size: 5 }, hovertemplate: "%{y:.1f} s" })),
    layout: layout(300, { hovermode: "x unified", xaxis: roundAxis(), yaxis: axis("seconds", { rangemode: "tozero" }) }),
  })).card);
}

if (totals.rollbacks > 0) {
  grid.append(plotCard("half", "Rollbacks by round", `How often a node left its chain, and the most blocks one took back at once, be they on a fork or to be downloaded again. ${Object.entries(totals.rollbacks_by_cause).map(([cause, count]) => `${cause}: ${count}`).join(", ")}.`, () => ({
    traces: [
      { type: "bar", name: "rollbacks", x: roundX, y: rounds.map((round) => round.rollbacks), marker: { color: color("fourth") } },
      { ...line("deepest, in blocks", roundX, rounds.map((round) => round.rollback_depth_max), color("bad"), { mode: "lines+markers" }), yaxis: "y2" },
    ],
    layout: layout(300, { hovermode: "x unified", xaxis: roundAxis(), yaxis: axis("rollbacks", { rangemode: "tozero" }), yaxis2: axis("blocks", { overlaying: "y", side: "right", rangemode: "tozero", showgrid: false }) }),
  })).card);
}

// Who missed when, over more rounds than the ring shows.
if (totals.missed_slots > 0) {
  const names = worst.filter((delegate) => delegate.missed > 0).map((delegate) => delegate.username).slice(0, 40).reverse();
  const missed = names.map((name) => data.rings.map(({ turns }) => turns.filter(([, owner, height]) => owner === name && !height).length));
  grid.append(plotCard("half", "Who missed, by round", "Slots missed of the delegates that missed most.", () => ({
    traces: [{ type: "heatmap", x: data.rings.map(({ round }) => round), y: names, z: missed, xgap: 2, ygap: 2, zmin: 0, showscale: false, colorscale: [[0, color("faint")], [1, color("bad")]], hovertemplate: "%{y}, round %{x}: %{z} missed<extra></extra>" }],
    layout: layout(Math.max(300, 90 + names.length * 15), { xaxis: roundAxis({ showgrid: false }), yaxis: axis("", { showgrid: false }) }),
  })).card);
}

if (data.heals.length) {
  grid.append(element("section", { class: "card half" }, element("h2", {}, "After the faults"),
    element("p", { class: "soft" }, "Virtual seconds from a fault's end until all live nodes stood on one block. Censored: the run ended before, so the time is longer than what is told."), element("div", { style: "height:8px" }),
    table(["fault", `ended, in ${unit}`, "seconds to one chain"], data.heals.map((heal) => [`${heal.fault}: ${heal.kind}`,
      number((heal.at_us / 1e6 - data.start) / unitSeconds), heal.converged_seconds === null ? { class: "bad", text: `more than ${number(heal.observed_seconds, 1)}, censored` } : number(heal.converged_seconds, 1)]))));
}

drawAll();
