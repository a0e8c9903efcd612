const { target, chain, curve, nearest } = data;
const seconds = (value) => `${Number(value.toFixed(3))} s`;
const nodeNames = (nodes) => (nodes.length ? `${nodes.length > 1 ? "nodes" : "node"} ${nodeList(nodes)}` : "the network");
const passing = nearest ? nearest.tried.filter((tried) => tried.passes === true) : [];
const failedTitle = data.failed ? `${target.name}${target.kind === "halt" || target.kind === "stall" ? "" : " does not hold"}` : target.kind === "nothing" ? "Nothing failed" : `Nothing failed; the nearest to it was ${target.name}`;

page.append(heading(failedTitle, `${data.file}: ${target.what}`), command(data.reproduce));

page.append(element("div", { class: "tiles" },
  tile(seconds(target.after_seconds), "virtual time at which it showed", data.failed),
  target.node === null ? null : tile(String(target.node), "node"),
  target.height === null ? null : tile(number(target.height), "height"),
  tile(number(chain.steps_in_slice), `steps before it, of ${number(chain.steps)} ${chain.steps_forgotten ? `behind the first ${number(chain.steps_forgotten)}` : "in all"}`),
  tile(number(chain.messages), "messages before it"),
  curve && curve.points.length ? tile(percent(curve.points[0].share), "of copies from the start show it") : null,
  curve && curve.certain_from_seconds !== null ? tile(seconds(curve.certain_from_seconds), "from here on each copy shows it") : null,
  nearest ? tile(`${number(passing.length)} of ${number(nearest.tried.length)}`, "changes tried make it pass") : null));

const grid = element("div", { class: "grid" });
page.append(grid);

grid.append(card("", "Why", "", element("ul", { class: "why" }, data.why.map((sentence) => element("li", {}, sentence)))));

if (chain.rows.length) {
  const title = "What happened before";
  const where = element("div");
  const detail = element("dl");
  const made = card("", title, "A lane for each node; colour, dashes and letter are the branch it stands on, where there are rivals. Squares: forged; circles: taken; triangles: rolled back; diamonds: counted its peers; crosses: refused, lost or failed. Point at a row, or use the arrow keys, to see what it changed.", where, element("div", { class: "detail", role: "status" }, detail));
  const show = (row) => detail.replaceChildren(...[
    ["when", row.folded ? `from ${seconds(row.after_seconds)}` : `${seconds(row.after_seconds)}, slot ${row.slot}`],
    ["who", row.folded ? "folded" : nodeNames(row.nodes)],
    ["what", row.text],
    ["block", row.block ? `${row.block.id} at height ${row.block.height}` : ""],
    ["changed", row.changed.map((change) => `node ${change.node}: ${change.from} → ${change.to}${change.reverted ? ` (${change.reverted} reverted)` : ""}`).join("; ")],
    ["numbers", row.numbers.map((one) => one.text).join("; ")],
  ].filter(([, text]) => text !== "").flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]));
  const sequence = new Sequence(where, title, data, show);
  made.querySelector(".top").append(tools(title, () => standalone(sequence.svg, title)));
  plots.push(sequence);
  show(chain.rows.at(-1));
  grid.append(made);
}

if (chain.numbers.length) {
  grid.append(card("half words", "Numbers that decided", "Each beside the threshold of its rule.",
    table(["number", "rule", "who", "when"], chain.numbers.map((one) => [one.met ? one.text : { class: "bad", text: one.text }, one.rule, nodeNames(one.nodes), seconds(one.at_us / 1e6 - data.start_us / 1e6)]), "Numbers that decided")));
}

if (chain.rivals.length) {
  grid.append(card("half words", "Rival blocks", "Blocks on one parent, and who stands on each when the failure shows.",
    table(["branch", "height", "slot", "forged by", "stand on it", "block"], chain.rivals.map((one) => [one.branch, number(one.height), one.slot, one.node === null ? "–" : `node ${one.node}`, one.stand_on_it.length ? nodeList(one.stand_on_it) : "no node", one.id]), "Rival blocks")));
}

if (curve && curve.points.length) {
  const spans = data.faults.filter((fault) => fault.from_seconds !== null).map((fault) =>
    ({ from: fault.from_seconds, to: fault.until_seconds, name: `${fault.kind} (fault ${fault.fault})`, instant: fault.until_seconds === fault.from_seconds }));
  const { points } = curve;
  const series = { kind: "points", name: "copies that show it", color: "bad", join: true, size: 4, x: points.map((one) => one.after_seconds), y: points.map((one) => one.share * 100),
    low: points.map((one) => one.interval.low * 100), high: points.map((one) => one.interval.high * 100),
    text: points.map((one) => `${one.failed} of ${one.runs} = ${percent(one.share)} (${percent(one.interval.low)} to ${percent(one.interval.high)})`) };
  const x = { label: "instant from which the run is repeated with other draws", unit: "seconds", tight: true, inset: 6, tell: (at) => seconds(at) };
  const cut = curve.cut_short ? ` Not all instants were looked at: ${curve.cut_short}.` : "";
  grid.append(plotCard("", "When it was decided", `Share of ${number(curve.repeats)} copies of the run that show the same, with the interval that holds the true share with 95 % confidence. Where it rises, it was decided.${spans.length ? " Shaded: a fault is in force." : ""}${cut}`,
    { x, spans, panels: [...(spans.length ? [{ lanes: true, height: 16 }] : []), { y: { label: "share of copies", unit: "percent", range: [0, 104] }, height: 240, series: [series] }] }).card);
  if (curve.jump) {
    const { jump } = curve;
    grid.append(card("half words", "The steepest rise", `From ${percent(jump.from_share)} before ${seconds(jump.from_seconds)} to ${percent(jump.to_share)} before ${seconds(jump.to_seconds)}${jump.is_clear ? "" : "; chance alone may explain it"}. Between them:`,
      element("ul", { class: "why" }, jump.events.map((event) => element("li", {}, event)), jump.more_events ? element("li", {}, `and ${number(jump.more_events)} more`) : null)));
  }
}

if (nearest) {
  const verdict = (tried) => (tried.passes === true ? "does not fail" : tried.passes === false ? { class: "bad", text: "fails" } : "not known");
  const rows = nearest.tried.map((tried) => [tried.change, verdict(tried), tried.other_draws ? `${tried.other_draws.failed} of ${tried.other_draws.runs} fail` : "–", tried.distance.toFixed(2), tried.set ? command(`--set ${tried.set}`) : "–"]);
  grid.append(card("words", "Single changes", `Tried in ${number(nearest.runs)} runs, those with which it does not fail first, the least change on top.${nearest.unchanged ? ` Unchanged, with the same other draws from its start, it fails in ${nearest.unchanged.failed} of ${nearest.unchanged.runs}.` : ""}${nearest.cut_short ? " There were more than could be tried." : ""}${nearest.untried ? ` Not tried are ${nearest.untried}.` : ""}`,
    table(["change", "the run then", "with other draws", "how much", "as an option"], rows, "Single changes")));
}

if (data.beside) {
  const { runs, slots, alike } = data.beside;
  const end = (run) => (run.failed ? { class: "bad", text: run.target.name } : "nothing failed");
  const ends = [["end", ...runs.map(end)], ["missed", ...runs.map((run) => `${number(run.missed)} of ${number(run.slots)} slots`)],
    ["height", ...runs.map((run) => number(run.height))], ["left", ...runs.map((run) => `${number(run.rolled_back)} blocks, over all nodes`)]];
  const rows = slots.map((slot) => [seconds(slot.seconds), ...slot.cells.map((cell) => cell || "–")]);
  grid.append(card("words", "Under other rules", `The same run under each, with the same draws up to the first decision that differs. ${number(alike)} slots are alike; these are the others.`,
    table(["", ...runs.map((run) => `rules '${run.rules}'`)], [...ends, ...rows], "Under other rules")));
}

if (data.faults.length) {
  grid.append(card("half words", "Faults", "", table(["fault", "kind", "from", "until", "parameters"], data.faults.map((fault) =>
    [fault.fault, fault.kind, fault.from_seconds === null ? "an event" : seconds(fault.from_seconds), fault.until_seconds === null ? "–" : seconds(fault.until_seconds),
      Object.entries(fault.what).filter(([key]) => key !== "kind").map(([key, value]) => `${key}: ${JSON.stringify(value)}`).join(", ")]), "Faults")));
}

grid.append(facts("What was run", [
  ["file", data.file], ["seed", data.seed], ["set", data.set.join("  ")], ["version", `dposlab ${data.version}`], ["ended", data.ended],
  ["recording", data.recording ? `line ${data.recording.line} of ${data.recording.lines}, with ${number(data.recording.inputs)} inputs, until ${seconds(data.recording.end_seconds)}` : ""],
  ["rules for clients", data.recording && data.recording.rules ? `${number(data.recording.rules)} changes, which the run did not know of` : ""],
  ["a copy has failed if", target.fails_if], ["source", target.source], ["cause", target.cause], ["interrupted", data.interrupted ? "yes: the page shows the results until then" : ""],
]));

drawAll();
