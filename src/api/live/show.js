// Amounts, times, ids, cards and links for the page. All that comes from a chain is put in as text.
import { duration, element, number as rounded } from "./drawing.js";

const SMALLEST = 100000000n;
/** The network: its token, and the instant that its times count from. */
export const network = { token: "", epoch: 0, nethash: "", delegates: 0, slotSeconds: 8 };

/** The scheduler: each drawing at most once in a frame. */
const due = new Map();
export function inFrame(key, draw) {
  if (due.size === 0) {
    requestAnimationFrame(() => {
      const all = [...due.values()];
      due.clear();
      for (const one of all) one();
    });
  }
  due.set(key, draw);
}

/** Arktoshi as coins, exactly: 1.5 TARK. */
export function coins(arktoshi, unit = true) {
  const value = BigInt(arktoshi ?? 0);
  const sign = value < 0n ? "−" : "";
  const size = value < 0n ? -value : value;
  const whole = (size / SMALLEST).toLocaleString("en");
  const part = (size % SMALLEST).toString().padStart(8, "0").replace(/0+$/, "");
  return `${sign}${whole}${part ? `.${part}` : ""}${unit && network.token ? `\u00a0${network.token}` : ""}`;
}

/** Arktoshi in a text of coins. A comma separates thousands, as in the amounts that the page shows. Null for any other text. */
export function arktoshi(text) {
  const found = /^(\d{1,12}|\d{1,3}(?:,\d{3}){1,3})(?:\.(\d{1,8}))?$/.exec(text.trim());
  return found ? (BigInt(found[1].replaceAll(",", "")) * SMALLEST + BigInt((found[2] ?? "").padEnd(8, "0"))).toString() : null;
}
/** The refusal of a text that is no amount. */
export const noAmount = (text) =>
  `“${text}” is no amount: give coins such as 10, 1.5 or 1,000. A comma separates thousands, and a point up to eight digits of a coin.`;

/** Seconds of the network's epoch as people read them: 2 d 03:04:05, or a date where they are years. */
export function clock(seconds) {
  if (seconds > 86400 * 365) return dated(network.epoch + seconds);
  const [days, rest] = [Math.floor(seconds / 86400), seconds % 86400];
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  return `${days ? `${days} d ` : ""}${two(rest / 3600)}:${two((rest % 3600) / 60)}:${two(rest % 60)}`;
}
/** Unix seconds as date and time. */
export const dated = (unix) => new Date(unix * 1000).toISOString().replace("T", " ").slice(0, 19);

/** The letters of an id that stay at each end. A narrow screen has room for few. */
const ENDS = matchMedia("(max-width: 700px)").matches ? 4 : 8;
/** A long id without its middle. Its element shows the whole id as its title. */
export const short = (id, kept = ENDS) => (id.length > 2 * kept + 1 ? `${id.slice(0, kept)}…${id.slice(-kept)}` : id);
export const link = (view, id, text = id) =>
  element("a", { href: `#/${view}/${encodeURIComponent(id)}`, title: text === id ? null : id }, text);
export const idLink = (view, id, kept) =>
  element("a", { href: `#/${view}/${encodeURIComponent(id)}`, title: id, class: "id" }, short(id, kept));
/** A time in whole units, as people say it: 1 hour, 90 seconds. */
export function span(seconds) {
  for (const [size, name] of [[86400, "day"], [3600, "hour"], [60, "minute"]])
    if (seconds >= size && seconds % size === 0) return plural(seconds / size, name);
  return plural(seconds, "second");
}
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
export { duration, element };
/** A number for people; heights and slots exactly. */
export const number = (value, digits) => (Number.isInteger(value) ? value.toLocaleString("en") : rounded(value, digits));

/** A card; `more` stands at the right of its title. */
export function card(title, size, more, ...children) {
  return element(
    "section",
    { class: `card ${size}`, "aria-label": title },
    element("div", { class: "top" }, element("h2", {}, title), element("div", { class: "more" }, more)),
    children,
  );
}

/** Names and values; those without a value are left out. */
export function facts(all) {
  const told = all.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return element(
    "dl",
    { class: "facts" },
    told.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
  );
}

/** A button that copies a text; it says so for a moment. */
export function copier(text, name) {
  const button = element("button", { type: "button", class: "copy", "aria-label": name, title: name, onclick: () => copy() }, "Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Only pages of this machine, or over TLS, may write there.
      button.textContent = "Cannot copy";
    }
    say(button.textContent);
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1500);
  };
  return button;
}

/** Sets a text where it is another. */
export function setText(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

const said = document.getElementById("said");
/** Tells those who listen and do not see. */
export const say = (text) => setText(said, text);
