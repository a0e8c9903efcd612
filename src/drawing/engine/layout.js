// The layout: widths of cards and of texts, and numbers for people. A browser has these from its window, its fonts and its
// tables of languages; here they are those of a wide window, of fonts with the metrics of Helvetica, and of English.

/** The width of the pages' grid at its widest, the gap between its columns, and the padding and border of a card [px]. */
const [GRID, GRID_GAP, CARD_EDGE] = [1272, 16, 38];

/** The width inside of the card that holds an element. */
function widthInside(element) {
  if (given.width) return given.width;
  let card = element;
  while (card && !card.classList.contains("card")) card = card.parentNode;
  if (!card) return 0;
  const columns = Number(getComputedStyle(card).getPropertyValue("grid-column").match(/span (\d+)/)[1]);
  const column = (GRID - 11 * GRID_GAP) / 12;
  return Math.round(columns * column + (columns - 1) * GRID_GAP) - CARD_EDGE;
}

/** Widths of letters by weight, in parts of 2,048 of the size of the type. */
const WIDTHS = Object.fromEntries(Object.entries(given.widths).map(([weight, widths]) =>
  [weight, new Map(Object.entries(widths).flatMap(([width, letters]) => [...letters].map((letter) => [letter, Number(width)])))]));
const [DIGIT, IDEOGRAPH] = [1139, 2048];

/** The width of a text [px]. Letters that the table lacks are taken to be as wide as a digit, those of East Asia as a square. */
function textWidth(text, size, weight) {
  const widths = WIDTHS[weight >= 600 ? "bold" : "regular"];
  const widthOf = (letter) => widths.get(letter) ?? (letter.codePointAt(0) >= 0x2e80 ? IDEOGRAPH : DIGIT);
  return ([...text].reduce((sum, letter) => sum + widthOf(letter), 0) * size) / 2048;
}

/** The digits of a number without its sign, rounded half away from zero to `decimals` decimals: "1234.5". */
function rounded(value, decimals) {
  const [mantissa, power = "0"] = String(Math.abs(value)).split("e");
  const [whole, part = ""] = mantissa.split(".");
  const point = whole.length + Number(power);
  const digits = `${"0".repeat(Math.max(0, -point))}${whole}${part}${"0".repeat(Math.max(0, point - whole.length - part.length))}`;
  const at = Math.max(0, point);
  const kept = at + decimals;
  let number = BigInt(digits.slice(0, kept).padEnd(kept, "0") || "0");
  if (Number(digits[kept] ?? 0) >= 5) number += 1n;
  const all = String(number).padStart(decimals + 1, "0");
  const [front, back] = decimals ? [all.slice(0, -decimals), all.slice(-decimals).replace(/0+$/, "")] : [all, ""];
  return back ? `${front}.${back}` : front;
}

const COMPACT = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"], [1, ""]];

/** `Number.prototype.toLocaleString` in English, with the options that the pages give. */
function inEnglish(value, { notation, maximumFractionDigits }) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value < 0 ? "-∞" : "∞";
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  if (notation !== "compact") return sign + grouped(rounded(value, maximumFractionDigits), 4);
  const fit = ([size]) => Math.abs(value) >= size;
  let place = COMPACT.findIndex(fit);
  if (place < 0) place = COMPACT.length - 1;
  const written = (at) => rounded(shifted(value, COMPACT[at][0]), maximumFractionDigits);
  // 999,999,999 is 1B, and not 1000M.
  if (place > 0 && Number(written(place)) >= 1000) place -= 1;
  return sign + grouped(written(place), 5) + COMPACT[place][1];
}

/** A value divided by a power of ten, without a new error of rounding. */
const shifted = (value, size) => Number(`${value}`.includes("e") ? value / size : `${value}e-${Math.log10(size)}`);

/** The same with a comma before each three digits, if the whole part has `least` digits or more. */
function grouped(digits, least) {
  const [whole, part] = digits.split(".");
  const apart = whole.length < least ? whole : whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return part ? `${apart}.${part}` : apart;
}
