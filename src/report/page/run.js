"use strict";
const { about, totals } = data;
const [rounds, time] = [rowsOf(data.rounds), rowsOf(data.time)];
data.rings = data.rings.map(({ slots, height, owners, missed, ...ring }) => {
  const empty = new Set(missed);
  let next = height;
  return { ...ring, turns: owners.map((owner, place) => [slots[place] ?? slots[0] + place, owner, empty.has(place) ? 0 : next++]) };
});

// Virtual seconds since the first slot of the run.
const sinceSlot = (slot) => slot * data.blocktime - data.start;
const since = (micros) => micros / 1e6 - data.start;
const slotX = time.map((row) => sinceSlot(row.first_slot));
const hold = time.length ? time[0].slots * data.blocktime : 0;
const slotOf = (seconds) => Math.floor((seconds + data.start) / data.blocktime + 1e-9);
const timeX = { label: "virtual time since the first slot", short: "", unit: "seconds", tight: true, tell: (seconds) => `${duration(seconds, 4)}, slot ${number(slotOf(seconds))}` };
const roundX = rounds.map((round) => round.round);
const roundAxis = { label: "round", whole: true, room: 34, tight: true, inset: 8, tell: (round) => number(round) };
const rowsSpan = time.length && time[0].slots > 1 ? ` A step stands for ${time[0].slots} slots.` : "";

// A fault that is over at once, such as a restart, has no length.
const spans = data.faults.map(({ fault, kind, began_us, ended_us }) =>
  ({ from: since(began_us), to: ended_us === null ? null : since(ended_us), name: `${kind}${data.faults.length > 1 ? ` (fault ${fault})` : ""}`, instant: ended_us === began_us || ["heal", "restart"].includes(kind) }));
const spansTold = spans.length ? " Shaded: a fault is in force, from the full line to the dotted one." : "";

const line = (name, color, y, more = {}) => ({ kind: "line", name, color, x: slotX, y, step: true, hold, ...more });
const column = (key) => time.map((row) => row[key]);
const timed = (panels) => ({ x: timeX, spans, panels });
const byRound = (panels) => ({ x: roundAxis, panels });
const percentile = (key, pick) => [["p50", "median", "good", "circle", null], ["p90", "90 %", "third", "square", "dash"], ["p99", "99 %", "bad", "triangle", "dot"]].map(([p, name, color, marker, dash]) =>
  ({ kind: "line", name, color, marker, dash, x: roundX, y: rounds.map((round) => (round[key].count ? pick(round[key][p]) : null)) }));
/** An axis of spans of time: logarithmic where one would dwarf all others. */
const timesAxis = (label, all) => {
  const values = all.flatMap((series) => series.y);
  return spread(values) ? { label, unit: "seconds", log: true } : { label, unit: "seconds", zero: true };
};

page.append(heading(about.scenario, about.description), command(about.reproduce));

const traffic = totals.transactions > 0 || totals.transactions_rejected > 0 || (totals.pool_max || 0) > 0;
page.append(element("div", { class: "tiles" },
  tile(number(totals.height), "height"),
  tile(number(totals.rounds), "rounds"),
  tile(number(totals.blocks), "blocks on the chain"),
  tile(number(totals.missed_slots), "slots missed", totals.missed_slots > 0),
  tile(number(totals.orphaned), "blocks orphaned", totals.orphaned > 0),
  tile(number(totals.fork_depth_max), "blocks, longest branch beside the chain", totals.fork_depth_max > 0),
  tile(number(totals.rollbacks), "rollbacks", totals.rollbacks > 0),
  totals.propagation_ms.count ? tile(duration(totals.propagation_ms.p50 / 1000), "propagation, median") : null,
  totals.propagation_ms.count ? tile(duration(totals.propagation_ms.p99 / 1000), "propagation, 99\u00a0%") : null,
  tile(percent(totals.agreement_mean), "mean agreement of live nodes", totals.agreement_mean !== null && totals.agreement_mean < 0.99),
  totals.down_max > 0 ? tile(number(totals.down_max), "nodes down at most", true) : null,
  about.ended !== "complete" ? tile(about.censored ? `censored (${about.ended})` : about.ended, `at height ${number(totals.height)}`, true) : null,
  traffic ? tile(number(totals.transactions), "transactions") : null,
  traffic ? tile(`${number(totals.transactions_per_second)} /s`, "throughput") : null,
  tile(duration(totals.seconds), "of virtual time")));

const grid = element("div", { class: "grid" });
page.append(grid);

if (about.censored) {
  const hasFailed = data.assertions.some((verdict) => verdict.holds === false);
  grid.append(card("", "This run is censored",
    `It was ended before its last round (${about.ended}), so its further course is unknown${hasFailed ? "" : ": it has neither succeeded nor failed"}. Times that were still running are longer than the values shown.`));
}

if (data.assertions.length) {
  const broken = data.assertions.filter((verdict) => verdict.holds === false).length;
  const open = data.assertions.filter((verdict) => verdict.holds === null).length;
  const ruling = (verdict) => (verdict.holds ? "holds" : { class: "bad", text: verdict.holds === null ? "is undecided" : "does not hold" });
  const title = broken ? `${broken} of ${data.assertions.length} assertions do not hold` : open ? `${open} of ${data.assertions.length} assertions are undecided` : "All assertions hold";
  grid.append(card("words", title, "", table(["assertion", "verdict", "found"], data.assertions.map((verdict) => [verdict.assertion, ruling(verdict), verdict.found]), title)));
}

if (data.rings.length) {
  const title = "Round ring";
  const where = element("div");
  const made = card("wide", title, "Each ring is a round, the latest outside, clockwise from the top; each piece is a slot. Point at one to see its owner, and the owner's other slots.",
    element("div", { class: "rings soft" }, [["forged", "good"], ["missed", "bad", "rising"]].map(([name, color, texture]) =>
      element("span", {}, svg("svg", { width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true" }, swatch({ kind: "bars", color, texture })), name))), where);
  const ring = new Ring(where, title, data.rings, data.delegates.map((delegate) => delegate.username));
  made.querySelector(".top").append(tools(title, () => {
    ring.show(null);
    return standalone(ring.svg, title, [{ kind: "bars", name: "forged", color: "good" }, { kind: "bars", name: "missed", color: "bad", texture: "rising" }]);
  }, [element("a", { class: "tool", href: "delegates.csv", "aria-label": "delegates.csv, which has the slots by round and delegate" }, "delegates.csv")]));
  if (data.rings.length > RINGS) {
    const label = element("span", { class: "soft" });
    const say = () => { const shown = ring.shown(); label.textContent = `rounds ${number(shown[0].round)} to ${number(shown.at(-1).round)}`; };
    const slider = element("input", { type: "range", min: RINGS, max: data.rings.length, value: data.rings.length, "aria-label": "last round shown",
      oninput: () => { ring.last = Number(slider.value); say(); ring.draw(); } });
    say();
    made.append(element("div", { class: "bar" }, slider, label));
  }
  plots.push(ring);
  grid.append(made);
}

const worst = [...data.delegates].sort((one, other) => other.missed - one.missed);
if (worst.length) grid.append(card("third tall", "Delegates", "Slots over all rounds, most missed first.",
  table(["delegate", "owned", "forged", "missed"], worst.map(({ username, owned, forged, missed }) => [username, owned, forged, missed ? { class: "bad", text: String(missed) } : 0]), "Slots of delegates")));

const orphans = [...data.orphans].sort((one, other) => one.at_us - other.at_us);
grid.append(plotCard("", "Chain and forks", `Heights of the live nodes at the end of each slot and blocks that did not make it onto the chain; below, the longest branch beside the chain and the branches that live nodes stand on.${spansTold}${rowsSpan}`, timed([
  ...(spans.length ? [{ lanes: true, height: 16 }] : []),
  { y: { label: "height", whole: true }, height: 250, series: [
    { kind: "band", name: "lowest to highest node", color: "bad", x: slotX, low: column("height_least"), high: column("height_greatest"), step: true, hold },
    line("lowest node", "bad", column("height_least"), { width: 1.5, dash: "dash" }),
    line("highest node", "good", column("height_greatest")),
    ...(orphans.length ? [{ kind: "points", name: "orphaned block", color: "bad", marker: "cross", size: 3, x: orphans.map((block) => since(block.at_us)), y: orphans.map((block) => block.height),
      text: orphans.map((block) => `height ${number(block.height)}, by node-${block.node} in slot ${block.slot}`) }] : []),
  ] },
  { y: { label: "blocks on the longest branch beside the chain", zero: true, whole: true }, height: 74, series: [line("fork depth", "fourth", column("fork_depth_max"), { fill: true })] },
  { y: { label: "branches", zero: true, whole: true }, height: 54, series: [line("branches", "third", column("branches_max"), { fill: true })] },
  ...(totals.down_max > 0 ? [{ y: { label: "nodes down", zero: true, whole: true }, height: 54, series: [line("nodes down", "sixth", column("down_max"), { fill: true })] }] : []),
]), "time.csv").card);

if (data.faults.length) {
  const heal = (fault) => data.heals.find((heal) => heal.fault === fault);
  const at = (micros) => `${duration(since(micros), 4)}, slot ${number(slotOf(since(micros)))}`;
  const converged = (found) => (!found ? "–" : found.converged_seconds === null ? { class: "bad", text: `more than ${duration(found.observed_seconds, 4)}, censored` } : duration(found.converged_seconds, 4));
  grid.append(card("", "Faults", "Converged: virtual time from a fault's end until all live nodes stood on one block. Censored: the run ended before, so the time is longer than the value shown.",
    table(["fault", "began", "ended", "converged after"], data.faults.map(({ fault, kind, began_us, ended_us }) =>
      [`${fault}: ${kind}`, at(began_us), ended_us === null ? "not in this run" : at(ended_us), converged(heal(fault))]), "Faults")));
}

const shares = (key) => column(key).map((share) => (share === null ? null : share * 100));
grid.append(plotCard("half", "Agreement", `Share of the live nodes, and of the vote weight behind them, on the block most of them stand on; the least at a slot's end. A gap: no node was live.${spansTold}${rowsSpan}`, timed([
  { y: { label: "share of live nodes", unit: "percent", range: [0, 104] }, height: 220, series: [line("nodes", "good", shares("agreement_min")), line("vote weight", "fourth", shares("weight_agreement_min"), { dash: "dash" })] },
]), "time.csv").card);

const forks = rounds.map((round) => round.forks);
const bars = (name, color, y, texture) => ({ kind: "bars", name, color, texture, x: roundX, y, width: 1 });
const slots = [bars("blocks", "good", rounds.map((round) => round.blocks)), bars("missed", "bad", rounds.map((round) => round.missed_slots), "rising")];
const anyForks = forks.some((count) => count > 0);
grid.append(plotCard("half", "Slots by round", `Blocks on the winning chain and slots left empty${anyForks ? "; below, forks: blocks forged on a parent on which another block had been forged before" : "; no block was forged on a parent that had one already"}.`, byRound([
  { y: { label: "slots", zero: true, whole: true }, height: anyForks ? 148 : 220, series: slots },
  ...(anyForks ? [{ y: { label: "forks", zero: true, whole: true }, height: 36, series: [bars("forks", "fourth", forks, "crossed")] }] : []),
]), "rounds.csv").card);

if (totals.propagation_ms.count > 0) {
  const log = spread(data.curve.map(([delay]) => delay).filter((delay) => delay > 0));
  const curve = data.curve.filter(([delay]) => delay > 0 || !log);
  grid.append(plotCard("half", "Propagation", `How many deliveries, from forging to the chain of a node that was live then, took no longer than this.${log ? " The axis of times is logarithmic." : ""}`, {
    x: { label: "delay", unit: "seconds", log, zero: !log },
    panels: [{ y: { label: "share of deliveries", unit: "percent", range: [0, 104] }, height: 220, series: [
      { kind: "line", name: "deliveries", color: "good", fill: true, x: curve.map(([delay]) => delay / 1000), y: curve.map(([, share]) => share * 100) }] }],
  }).card);

  const series = percentile("propagation_ms", (delay) => delay / 1000);
  grid.append(plotCard("half", "Propagation by round", "Half, nine in ten, and 99 in a hundred deliveries took no longer.", byRound([{ y: timesAxis("delay", series), height: 220, series }]), "rounds.csv").card);
}

if (traffic) {
  grid.append(plotCard("half", "Pools", `Transactions waiting, mean over the live nodes and in the fullest pool of one.${spansTold}${rowsSpan}`, timed([
    { y: { label: "transactions", zero: true }, height: 220, series: [line("mean", "good", column("pool_mean"), { fill: true }), line("fullest", "bad", column("pool_max"), { width: 1.5, dash: "dash" })] },
  ]), "time.csv").card);

  grid.append(plotCard("half", "Throughput", `Transactions that half of the nodes have on their chain, a second.${spansTold}${rowsSpan}`, timed([
    { y: { label: "transactions a second", zero: true }, height: 220, series: [line("transactions a second", "third", time.map((row) => row.transactions / (row.slots * data.blocktime)), { fill: true })] },
  ]), "time.csv").card);

  const series = percentile("transaction_latency_ms", (delay) => delay / 1000);
  grid.append(plotCard("half", "Transaction latency by round", "From the first pool to the chains of half of the nodes: half, nine in ten, and 99 in a hundred transactions took no longer.", byRound([{ y: timesAxis("latency", series), height: 220, series }]), "rounds.csv").card);
}

if (totals.rollbacks > 0) {
  grid.append(plotCard("half", "Rollbacks by round", `How often a node left its chain, and the most blocks one took back at once, be they on a fork or to be downloaded again. ${Object.entries(totals.rollbacks_by_cause).map(([cause, count]) => `${cause}: ${number(count)}`).join(", ")}.`, byRound([
    { y: { label: "rollbacks", zero: true, whole: true }, height: 110, series: [bars("rollbacks", "fourth", rounds.map((round) => round.rollbacks))] },
    { y: { label: "blocks, deepest rollback", zero: true, whole: true }, height: 90, series: [bars("deepest", "bad", rounds.map((round) => round.rollback_depth_max), "rising")] },
  ]), "rounds.csv").card);
}

// The delegates that missed slots, over all rounds and not only those that the ring shows.
if (totals.missed_slots > 0) {
  const who = [...data.delegates.keys()].filter((place) => data.delegates[place].missed > 0)
    .sort((one, other) => data.delegates[other].missed - data.delegates[one].missed).slice(0, 40).reverse();
  const counts = new Map(data.missed.map(([round, place, count]) => [`${round} ${place}`, count]));
  const names = who.map((place) => data.delegates[place].username);
  grid.append(plotCard(names.length > 14 ? "" : "half", "Missed slots, by round", "Slots missed of the delegates that missed most; the more, the stronger.", byRound([
    { y: { label: "", categories: names }, height: Math.max(16, Math.min(60, 180 / names.length)) * names.length, series: [
      { kind: "heat", name: "missed", color: "bad", x: roundX, rows: names, y: who.map((place) => roundX.map((round) => counts.get(`${round} ${place}`) || 0)) }] },
  ]), "delegates.csv").card);
}

grid.append(new TraceView().card("events.jsonl"));

grid.append(facts("What was run", [
  ["scenario", about.scenario], ["seed", about.seed], ["set", about.set.join("  ")], ["version", `dposlab ${about.version}`],
  ["digest", about.digest], ["events", number(about.events)], ["inputs delivered", number(about.delivered)],
  ["notes", about.notes.join("; ")], ["ended", about.ended],
  ["proof that no block can ever follow", about.halt ? `${about.halt.proof}; the same ${number(since(about.halt.first_us))} s and ${number(since(about.halt.second_us))} s into the run; fingerprint ${about.halt.fingerprint}` : ""],
]), files([
  ["summary", ["json"], "the figures of the whole run"], ["rounds", ["csv", "parquet"], "the figures by round"], ["time", ["csv", "parquet"], "what is sampled at the end of each slot"],
  ["delegates", ["csv", "parquet"], "slots by round and delegate"], ["blocks", ["csv", "parquet"], "the winning chain"], ["orphans", ["csv", "parquet"], "blocks beside it"], ["events", ["jsonl"], "every event"],
]));

drawAll();
