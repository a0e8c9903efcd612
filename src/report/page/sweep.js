"use strict";
const { summary } = data;
const { cells } = summary;
const paths = Object.keys(cells[0] ? cells[0].varied : {});
// Every combination of values but the first is compared with the first, where that was asked.
(summary.compared ?? []).forEach((pairs, index) => { cells[index + 1].pairs = pairs; });
const last = (path) => path.split(".").at(-1);
const short = (path) => (paths.length > 1 && paths.filter((other) => last(other) === last(path)).length === 1 ? last(path) : path);
const together = (cell, of) => of.map((path) => `${short(path)}=${cell.varied[path]}`).join(", ");
const names = cells.map((cell) => (paths.length === 1 ? cell.varied[paths[0]] : together(cell, paths) || "all runs"));
// Equal names would share a place: then the number tells them apart.
const unique = names.map((text, index) => (names.indexOf(text) === index ? text : `${text} (${index + 1})`));

// The horizontal axis: one of the varied paths, best one whose values are numbers, with a line for each combination
// of the others; where those are too many, every combination in a row.
const GROUPS = 6;
const valuesOf = (path) => [...new Set(cells.map((cell) => cell.varied[path]))];
const isNumeric = (path) => valuesOf(path).every((value) => value.trim() !== "" && Number.isFinite(Number(value)));
const others = (path) => paths.filter((other) => other !== path);
const groupsBeside = (path) => new Set(cells.map((cell) => together(cell, others(path)))).size;
const distinct = new Set(cells.map((cell) => together(cell, paths))).size === cells.length;
const along = distinct ? paths.filter((path) => valuesOf(path).length > 1 && groupsBeside(path) <= GROUPS)
  .sort((one, other) => isNumeric(other) - isNumeric(one) || valuesOf(other).length - valuesOf(one).length)[0] : undefined;
const rest = others(along);
const numeric = along && isNumeric(along);
const numbers = numeric ? valuesOf(along).map(Number).sort((one, other) => one - other) : [];
const axis = numeric ? { label: along, values: numbers, log: spread(numbers), tight: true, inset: 40 }
  : { label: along || (paths.length === 1 ? paths[0] : "combination"), categories: along ? valuesOf(along) : unique };
const where = cells.map((cell, index) => (numeric ? Number(cell.varied[along]) : along ? valuesOf(along).indexOf(cell.varied[along]) : index));
const LOOKS = [["good", "circle", null], ["bad", "square", "dash"], ["third", "triangle", "dot"], ["fourth", "diamond", "dashdot"], ["fifth", "circle", "dash"], ["sixth", "square", "dot"]];
const groupNames = along ? [...new Set(cells.map((cell) => together(cell, rest)))] : [""];
/** The cells of each line, by their value on the axis: [name, indices, look]. */
const groups = groupNames.map((group, place) => {
  const [color, marker, dash] = LOOKS[place];
  const of = cells.map((_, index) => index).filter((index) => !along || together(cells[index], rest) === group).sort((one, other) => where[one] - where[other]);
  return { name: group || "all runs", quiet: groupNames.length === 1, of, look: { color, marker, dash, place, places: groupNames.length, spots: where } };
});
const axisTold = axis.log ? " The axis of what was varied is logarithmic." : "";

page.append(heading(summary.scenario, `seeds ${summary.seeds}${summary.points ? `, ${number(summary.points.rows.length)} points of ${summary.points.paths.join(" and ")}` : ""}${summary.vary.length ? `, with ${summary.vary.join(" and ")}` : ""}`), command(`${data.command} --out DIR`));
// Censored runs and those that died say nothing of how their networks end.
const judged = summary.runs - summary.censored - summary.died;
page.append(element("div", { class: "tiles" },
  tile(number(summary.runs), "runs"), tile(number(cells.length), cells.length === 1 ? "combination" : "combinations"),
  tile(number(summary.failed), "runs failed", summary.failed > 0),
  summary.censored ? tile(number(summary.censored), "runs censored: ended before their end", true) : null,
  Object.entries(summary.by_status).filter(([status]) => status !== "ok" && status !== "censored").map(([status, count]) => tile(number(count), status, true)),
  tile(percent(judged ? (summary.by_status.ok ?? 0) / judged : null), summary.censored || summary.died ? "ended well, of those decided" : "ended well", summary.failed > 0)));

const grid = element("div", { class: "grid" });
page.append(grid);

const wordOf = (figure) => figure.replace(/_(ms|seconds)$/, "").replace(/_seconds_max$/, " max").replaceAll("_", " ").replace(/^seconds$/, "virtual time").replace(/ p(\d\d)$/, ", $1 %").replace(", 50 %", ", median");
/** The axis of a figure, and by what its values are multiplied for the unit. */
const axisOf = (figure) => (figure.endsWith("_ms") ? [{ label: wordOf(figure), unit: "seconds" }, 0.001]
  : figure.includes("seconds") ? [{ label: wordOf(figure), unit: "seconds" }, 1]
    : figure.includes("agreement") ? [{ label: wordOf(figure), unit: "percent" }, 100] : [{ label: wordOf(figure) }, 1]);
const figures = [...new Set(cells.flatMap((cell) => Object.keys(cell.figures)))];
const varies = (figure) => cells.some((cell) => cell.figures[figure] && cell.figures[figure].min !== cells[0].figures[figure]?.max);
const order = ["missed_slots", "agreement_mean", "propagation_p50_ms", "orphaned", "rollbacks", "fork_depth_max", "transactions_per_second", "height"];
figures.sort((one, other) => (order.indexOf(one) + 1 || 99) - (order.indexOf(other) + 1 || 99));

/** A series a group of what `pick` makes of its cells; cells without are left out. */
function grouped(kind, pick, more = {}) {
  return groups.map(({ name, quiet, of, look }) => {
    const has = of.filter((index) => pick(cells[index]));
    const picked = has.map((index) => pick(cells[index]));
    return { kind, name: quiet ? more.name || name : name, quiet, ...look, ...more, x: has.map((index) => where[index]), nudge: (look.place - (look.places - 1) / 2) * 7, ...Object.fromEntries(Object.keys(picked[0] || { y: 0 }).map((key) => [key, picked.map((one) => one[key])])) };
  }).filter((series) => series.x.length);
}

function distribution(figure) {
  const [y, by] = axisOf(figure);
  const keys = ["min", "p5", "p25", "p50", "p75", "p95", "max", "mean"];
  const series = grouped("boxes", (cell) => cell.figures[figure] && { y: Object.fromEntries(keys.map((key) => [key, cell.figures[figure][key] * by])) });
  return { title: `Distribution of ${wordOf(figure)}`, x: axis, panels: [{ y: { ...y, log: spread(series.flatMap((one) => one.y.flatMap((box) => [box.min, box.max]))) }, height: 270, series }] };
}

function uncertain(values, y, by) {
  if (values.confidence) return ` ± ${tell(y, (values.confidence.high - values.mean) * by)}`;
  return values.count > 1 ? ` in all; others in ${percent(values.differ_at_most)} of the runs at most` : "";
}

function means(figure) {
  const [y, by] = axisOf(figure);
  // Equal values have no interval: a spread of 0 would claim too much.
  const series = grouped("points", ({ figures: { [figure]: values } }) => values && {
    y: values.mean * by, low: values.confidence ? values.confidence.low * by : null, high: values.confidence ? values.confidence.high * by : null,
    text: `${tell(y, values.mean * by)}${uncertain(values, y, by)}; deviation ${tell(y, values.deviation * by)}, ${number(values.count)} runs`,
  }, { join: Boolean(numeric), size: 4.5 });
  return { title: `Mean of ${wordOf(figure)}`, x: axis, panels: [{ y: { ...y, log: spread(series.flatMap((one) => [...one.y, ...one.low])) }, height: 270, series }] };
}

/** The number of pairs, and what pairing them was worth. */
function paired({ pairs, correlation, variance_saved: saved }) {
  return `${number(pairs)} ${pairs === 1 ? "pair" : "pairs"}${correlation === null ? "" : `, correlation ${number(correlation, 2)}`}${saved === null ? "" : `, variance divided by ${number(saved, 1)}`}`;
}

/** The mean difference from the first combination, seed by seed. */
function differences(figure) {
  const [y, by] = axisOf(figure);
  const series = grouped("points", ({ pairs }) => { const of = pairs?.figures[figure]; return of && {
    y: of.difference * by, low: of.confidence ? of.confidence.low * by : null, high: of.confidence ? of.confidence.high * by : null,
    text: `${tell(y, of.difference * by)}${of.confidence ? ` ± ${tell(y, (of.confidence.high - of.difference) * by)}` : ""}; ${paired(of)}`,
  }; }, { size: 4.5 });
  return { title: `Difference of ${wordOf(figure)}`, x: axis, panels: [{ y: { ...y, zero: true }, height: 230, series }] };
}

// The points of a study differ in all values at once: a plot for each value whose values are numbers.
const scattered = summary.points ? paths.filter((path) => isNumeric(path) && valuesOf(path).length > 1) : [];

/** The mean of a figure at each point, by one of its values. */
function against(path, figure) {
  const [y, by] = axisOf(figure);
  const [color, marker, dash] = LOOKS[0];
  const has = cells.filter((cell) => cell.figures[figure]);
  const spots = has.map((cell) => Number(cell.varied[path]));
  const sorted = [...new Set(spots)].sort((one, other) => one - other);
  const values = has.map((cell) => cell.figures[figure]);
  // Where most lie close together on a plain axis; a single small one is no reason.
  const log = sorted[0] > 0 && sorted[Math.floor(0.75 * sorted.length)] > 8 * sorted[Math.floor(0.25 * sorted.length)];
  const series = { kind: "points", name: "mean", quiet: true, color, marker, dash, place: 0, places: 1, nudge: 0, size: 3.5, x: spots, y: values.map((one) => one.mean * by),
    low: values.map((one) => (one.confidence ? one.confidence.low * by : null)), high: values.map((one) => (one.confidence ? one.confidence.high * by : null)),
    text: has.map((cell, index) => `${tell(y, values[index].mean * by)}${uncertain(values[index], y, by)}; ${together(cell, paths)}`) };
  return { title: `${wordOf(figure)} by ${path}`, x: { label: path, values: sorted, log, tight: true, inset: 20 }, panels: [{ y: { ...y, log: spread(series.y) }, height: 230, series: [series] }] };
}

if (figures.length) {
  const first = figures.find(varies) || figures[0];
  // The function that describes the plot of a figure, and the plot's card.
  const drawn = (title, text, of, file, size = "half") => [of, plotCard(size, title, text, of(first), file)];
  const plots = scattered.length
    ? scattered.map((path) => drawn(`By ${path}`, "The mean at each point, with its interval at 95 % confidence (Student).", (figure) => against(path, figure), "summary.json"))
    : [
      drawn("Distribution", `Boxes hold the middle half of the runs, with a bold line at the median and a marker at the mean; whiskers hold nine in ten, and small rings are the least and the greatest.${axisTold}`, distribution, "runs.csv"),
      drawn("Mean", `With the interval that holds the true mean with 95 % confidence (Student); none where every run has the same value.${axisTold}`, means, "summary.json"),
    ];
  // The points of a study are too many for it; the table below has them.
  if (summary.compared && !scattered.length)
    plots.push(drawn("Difference", `Each combination minus ${unique[0]}, seed by seed, with the interval that holds the true mean difference with 95 % confidence (Student); none where all differences are equal.${axisTold}`, differences, "summary.json", ""));
  const select = element("select", { "aria-label": "figure" }, figures.map((figure) => element("option", { value: figure }, wordOf(figure))));
  select.value = first;
  select.addEventListener("change", () => plots.forEach(([of, { plot }]) => plot.set(of(select.value))));
  grid.append(element("section", { class: "card choose", "aria-label": "Figure" }, element("h2", {}, "Figure"), select, element("span", { class: "soft" }, "of each run, by what was varied")));
  grid.append(...plots.map(([, { card }]) => card));
}

// The mean by which the sweep ended. Its combinations are those of `cells`.
const until = summary.until_ci;
if (until) {
  const RATES = { "missed.rate": "share of the slots that were missed", "forked.rate": "share of the slots that ended forked", "agreement.mean": "agreement of the nodes, mean", "ok.rate": "share of the runs that ended well" };
  const y = { label: RATES[until.figure] ?? until.figure, unit: "percent", range: [-2, 104] };
  until.cells.forEach((known, index) => { cells[index].known = known; });
  const told = until.reached
    ? `After ${number(until.cells[0].runs)} ${until.cells[0].runs === 1 ? "run" : "runs"} of each combination every interval was narrower than ${percent(until.width)}, so the sweep ended.`
    : `The seeds were over before every interval was narrower than ${percent(until.width)}: more --seeds are needed.`;
  grid.append(plotCard("", `The mean of ${until.figure}`, `${told} The intervals are those of a confidence sequence, which hold at 95 % confidence although what was seen decided when the sweep ended.`, {
    x: axis,
    panels: [{ y, height: 160, series: grouped("points", ({ known: { mean, confidence, runs } }) => mean !== null && {
      y: mean * 100, low: confidence.low * 100, high: confidence.high * 100,
      text: `${significant(mean * 100, 4)} % (${significant(confidence.low * 100, 4)} to ${significant(confidence.high * 100, 4)}), ${number(runs)} runs`,
    }, { size: 4.5 }) }],
  }, "summary.json").card);
}

const failed = summary.failures.length;
const decided = cells.some((cell) => cell.ok);
// Censored runs and runs that died are not in the shares. The text counts them.
const [censored, died] = [summary.censored, summary.died].map((count) => count || 0);
const left = [censored && `${number(censored)} that ${censored === 1 ? "was" : "were"} ended before their end (censored)`, died && `${number(died)} that died`].filter(Boolean);
const well = left.length ? ` Left out of all ${number(summary.runs)}: ${left.join(" and ")}.` : failed ? "" : " No run failed.";
if (decided) {
  grid.append(plotCard("", "Runs that ended well", `The share of the decided runs in which all went well, with Wilson's interval at 95 % confidence, or the exact one if the share is 0 or 1. A run is decided if it came to its end or broke an assertion before.${well}`, {
    x: axis,
    panels: [{ y: { label: "share of the runs that were decided", unit: "percent", range: [-2, 104] }, height: 160, series: grouped("points", (cell) => cell.ok && {
      y: cell.ok.share * 100, low: cell.ok.confidence.low * 100, high: cell.ok.confidence.high * 100,
      text: `${significant(cell.ok.share * 100)} %: ${cell.ok.so} of ${cell.ok.of}${cell.censored ? `, ${cell.censored} more censored` : ""}${cell.died ? `, ${cell.died} more died` : ""}`,
    }, { size: 4.5 }) }],
  }, "summary.json").card);
}

if (failed) {
  grid.append(card("words commands", "Runs that failed", failed < summary.failed ? `The first ${number(failed)} of ${number(summary.failed)}; all of them are in failures.csv.` : "Each with the command that repeats it.",
    table(["seed", "ended", "to repeat it"], summary.failures.map((one) => [String(one.seed), { class: "bad", text: [one.status, ...(one.status === "died" && one.ended ? [one.ended] : []), ...one.broken].join(": ") }, command(one.reproduce)]), "Runs that failed")));
}

const asserted = [...new Set(cells.flatMap((cell) => cell.assertions.map((held) => held.assertion)))];
if (asserted.length) {
  grid.append(card("words", "Assertions", "Share of the runs in which each held, with Wilson's interval at 95 % confidence; of none and of all with the exact one. Where runs were ended before it was decided, the lowest and the highest share that is possible.",
    table(["assertion", ...unique], asserted.map((assertion) => [assertion, ...cells.map((cell) => {
      const found = cell.assertions.find((held) => held.assertion === assertion);
      if (!found) return "–";
      if (!found.bounds) return "–";
      const { low, high, confidence } = found.bounds;
      const share = low === high ? percent(low) : `${percent(low)} to ${percent(high)}`;
      const open = found.undecided ? `, ${number(found.undecided)} undecided` : "";
      const text = `${share} (${number(confidence.low * 100, 1)}–${number(confidence.high * 100, 1)})${open}`;
      return low < 1 ? { class: "bad", text } : text;
    })]), "Assertions")));
}

const timed = cells.map((cell, index) => [cell.converged_seconds, unique[index]]).filter(([times]) => times && times.watched_max > 0);
if (timed.length) {
  const known = (value) => (value === null ? "not known" : duration(value, 4));
  const interval = (low, high) => (low === null && high === null ? "not known" : `${known(low)} to ${known(high)}`);
  grid.append(card("", "Time to converge", "From a fault's end until all live nodes stood on one block, the longest of each run. Runs that ended before are right-censored, and the quantiles are Kaplan's and Meier's: not known where too many are.",
    table(["values", "runs", "converged", "censored", "25 %", "median", "95 % confidence", "75 %", "95 %", "longest watched"], timed.map(([times, name]) => [name,
      number(times.runs), number(times.seen), number(times.censored), known(times.p25), known(times.p50), interval(times.p50_low, times.p50_high), known(times.p75), known(times.p95), duration(times.watched_max, 4)]), "Time to converge")));
}

const shown = figures.filter((figure) => order.includes(figure));
const withUnit = (figure) => `${wordOf(figure)}${figure.endsWith("_ms") ? ", ms" : ""}`;
grid.append(card("", "Means", "Over the runs of each combination, ± 95 % confidence; (all): every run has this value, and the mean has no interval.",
  table([paths.map(short).join(", ") || "runs with", "runs", ...shown.map(withUnit)], cells.map((cell, index) => [unique[index], `${number(cell.runs)}${cell.censored ? ` (${number(cell.censored)} censored)` : ""}`,
    ...shown.map((figure) => { const values = cell.figures[figure]; return values ? `${significant(values.mean, 5)}${values.confidence ? ` ± ${significant(values.confidence.high - values.mean, 3)}` : values.count > 1 ? " (all)" : ""}` : "–"; })]), "Means")));

const quantileOf = (values, name) => {
  const end = (value) => (value === null ? "not known" : significant(value, 3));
  return `${significant(values[name], 3)} (${end(values[`${name}_low`])} to ${end(values[`${name}_high`])})`;
};
grid.append(card("", "Quantiles", "Over the runs of each combination: the median and the 95th percentile, each with its interval at 95 % from the ranks of the values. An end that this number of runs cannot tell is not known.",
  table([paths.map(short).join(", ") || "runs with", "", ...shown.map(withUnit)], cells.flatMap((cell, index) => [["p50", "median"], ["p95", "95 %"]].map(([name, word]) => [unique[index], word,
    ...shown.map((figure) => (cell.figures[figure] ? quantileOf(cell.figures[figure], name) : "–"))])), "Quantiles")));

if (summary.compared) {
  const compared = cells.map((cell, index) => [cell.pairs, unique[index]]).filter(([pairs]) => pairs);
  const cellOf = (of) => (of ? `${significant(of.difference, 4)}${of.confidence ? ` ± ${significant(of.confidence.high - of.difference, 3)}` : of.pairs > 1 ? " (all)" : ""}` : "–");
  grid.append(card("", "Differences", `Each combination minus ${unique[0]}, over the seeds of which neither run was censored or died, ± 95 % confidence; (all): every pair has this difference.`,
    table([paths.map(short).join(", "), "seeds left out", ...shown.map(withUnit)], compared.map(([pairs, name]) => [name, number(pairs.left_out), ...shown.map((figure) => cellOf(pairs.figures[figure]))]), "Differences")));
  const sooner = compared.filter(([pairs]) => pairs.converged);
  if (sooner.length) {
    grid.append(card("", "Which converged sooner", `Pairs of runs of one seed, each combination beside ${unique[0]}: one run converged while the other had not. The log-rank test, stratified by seed.`,
      table([paths.map(short).join(", "), "sooner", "later", "χ²", "p"], sooner.map(([{ converged: times }, name]) => [name, number(times.second_sooner), number(times.first_sooner), significant(times.chi_squared, 4), significant(times.p, 2)]), "Which converged sooner")));
  }
}

grid.append(facts("What was run", [
  ["scenario", summary.scenario], ["seeds", summary.seeds], ["varied", summary.vary.join("  ")], ["set", summary.set.join("  ")],
  ["version", `dposlab ${summary.version}`], ["digest of the scenario", summary.scenario_digest],
]), files([
  ["summary", ["json"], "distributions with their confidence intervals"], ["runs", ["csv", "parquet"], "a row a run"], ["failures", ["csv", "parquet"], "runs that failed, with the command that repeats each"],
]));

drawAll();
