"use strict";
// Scales: from values to pixels, with ticks at round values and labels in a unit of the right size.
//
// The members of an axis:
//   label, short   its name, and its name in read-outs
//   unit           the unit of the data: "seconds", "percent" or nothing; ticks choose a unit of time by its size
//   log            logarithmic
//   categories     names instead of numbers; a value is an index into them
//   values         the values with a tick, as far as their labels fit
//   range, tight   both ends fixed; or where the first and last value are, `inset` pixels from the edges
//   zero, whole    begins at 0; has ticks at whole numbers only
//   room           pixels that a tick needs
//   tell           a value in words, for read-outs

/** Units of time: sign, size in seconds, name, and steps at which ticks look round. */
const TENS = [1, 2, 5];
const UNITS = [
  ["µs", 1e-6, "microseconds", TENS],
  ["ms", 1e-3, "milliseconds", TENS],
  ["s", 1, "seconds", [1, 2, 5, 10, 15, 20, 30, 60, 120]],
  ["min", 60, "minutes", [1, 2, 5, 10, 15, 20, 30, 60, 120]],
  ["h", 3600, "hours", [1, 2, 3, 4, 6, 12, 24, 48]],
  ["d", 86400, "days", TENS],
];
const unitOf = (seconds, times = 1) => UNITS.findLast(([, size]) => Math.abs(seconds) >= times * size * (1 - 1e-9)) || UNITS[0];

/** A number for people: at most `digits` digits after the point, groups of thousands, tens of millions and more in short form. */
function number(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Math.abs(value) >= 1e7) return value.toLocaleString("en", { notation: "compact", maximumFractionDigits: Math.max(1, digits) });
  return value.toLocaleString("en", { maximumFractionDigits: digits }).replace(/^-0$/, "0").replace(/^-/, "−");
}
/** A number with `digits` significant digits. */
const significant = (value, digits = 4) =>
  number(value, value === 0 ? 0 : Math.min(12, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))))));
const percent = (value) => (value === null || value === undefined ? "–" : `${number(value * 100, 2)}\u00a0%`);
/** A span of time, in the unit of its size. */
function duration(seconds, digits = 3) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds === 0) return "0 s";
  const [sign, size] = unitOf(seconds);
  return `${significant(seconds / size, digits)} ${sign}`;
}

/** A value of an axis in words, with its unit. */
function tell(axis, value) {
  if (value === null || value === undefined) return "–";
  if (axis.tell) return axis.tell(value);
  if (axis.categories) return axis.categories[Math.round(value)] ?? "";
  if (axis.unit === "seconds") return duration(value, 4);
  return axis.unit === "percent" ? `${significant(value, 4)} %` : significant(value, 6);
}

/** The least step of these, times a power of ten, of which no more than `count` fit into the span. */
function roundStep(span, count, steps = TENS) {
  const least = span / Math.max(1, count);
  const listed = least >= 1 && steps.find((step) => step >= least);
  if (listed) return listed;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * (TENS.find((step) => step * power >= least * (1 - 1e-9)) || 10);
}

function linearTicks(axis, [low, high], count) {
  const [sign, size, name, steps] = axis.unit === "seconds" ? unitOf(Math.max(high - low, Math.abs(high) / 50), 2) : ["", 1, "", TENS];
  const fixed = axis.values && axis.values.filter((value) => value >= low && value <= high);
  if (fixed && fixed.length) return { name, ticks: fixed.map((value) => ({ value, label: significant(value / size, 6) })) };
  let step = roundStep((high - low) / size, count, steps);
  if (axis.whole) step = Math.max(1, Math.ceil(step));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let tick = Math.ceil(low / size / step - 1e-9); tick * step <= (high / size) * (1 + 1e-12) + step * 1e-9; tick += 1) {
    const value = tick * step;
    ticks.push({ value: value * size, label: number(value, digits) + (axis.unit === "percent" ? " %" : "") });
  }
  return { name: sign && name, ticks };
}

function logTicks(axis, [low, high], count) {
  const label = (value) => (axis.unit === "seconds" ? duration(value) : significant(value, 3));
  const fixed = axis.values && axis.values.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  if (fixed && fixed.length) return { name: "", ticks: fixed.map((value) => ({ value, label: label(value) })) };
  // Minutes and hours have round values of their own.
  const times = axis.unit === "seconds" ? [60, 600, 3600, 36000, 86400, 864000, 8640000] : [];
  const decades = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) decades.push(10 ** power);
  const majors = times.length ? [...decades.filter((value) => value < 60), ...times] : decades;
  const within = (value) => value >= low * 0.999 && value <= high * 1.001;
  let values = majors.filter(within);
  if (values.length < 3) values = majors.flatMap((value) => [1, 2, 5].map((by) => value * by)).filter(within);
  if (values.length < 2) return linearTicks(axis, [low, high], count);
  const every = Math.ceil(values.length / Math.max(2, count));
  return { name: "", ticks: values.map((value, index) => ({ value, label: index % every ? "" : label(value) })) };
}

/** A scale of an axis from its domain to pixels from `start` to `end`: there, back, and the ticks. */
function scale(axis, [low, high], start, end, room = 70) {
  const count = Math.max(2, Math.floor(Math.abs(end - start) / room));
  const log = axis.log && low > 0;
  const forth = log ? Math.log : (value) => value;
  const back = log ? Math.exp : (value) => value;
  const [from, per] = [forth(low), (end - start) / (forth(high) - forth(low) || 1)];
  const at = (value) => start + (forth(log ? Math.max(value, low * 1e-6) : value) - from) * per;
  const { name, ticks } = axis.categories
    ? { name: "", ticks: axis.categories.map((label, value) => ({ value, label })).filter(({ value }) => value >= low && value <= high) }
    : (log ? logTicks : linearTicks)(axis, [low, high], count);
  return {
    axis,
    domain: [low, high],
    at,
    of: (pixel) => back(from + (pixel - start) / per),
    ticks,
    title: [axis.label, name].filter(Boolean).join(", "),
  };
}

/** The domain in which values from `low` to `high` are shown, with a little room on both sides. */
function domainOf(axis, low, high) {
  if (axis.categories) return [-0.5, axis.categories.length - 0.5];
  if (axis.range) return axis.range;
  if (!(low <= high)) return axis.log ? [1, 10] : [0, 1];
  if (axis.tight && low < high) return [low, high];
  if (axis.log) return low < high ? [low / (high / low) ** 0.05, high * (high / low) ** 0.05] : [low / 2, high * 2];
  const room = (high - low) * 0.05 || Math.abs(high) * 0.1 || 1;
  if (axis.tight) return [low - room, high + room];
  if (axis.zero) return [Math.min(0, low), high > 0 ? high + room : Math.max(1, high)];
  // Counts below 0 would say something that cannot be.
  return [low >= 0 ? Math.max(0, low - room) : low - room, high + room];
}

/** True if all values are positive and one is more than `times` the smallest: only a logarithmic axis shows both. */
function spread(values, times = 100) {
  const known = values.filter((value) => value !== null && value !== undefined);
  const low = known.reduce((one, other) => Math.min(one, other), Infinity);
  return known.length > 1 && low > 0 && known.some((value) => value > low * times);
}
