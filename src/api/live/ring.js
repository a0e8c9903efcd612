// The slots of the round in force, clockwise from the top: whose each is, and what became of it.
import { patternOf, px, svg } from "./drawing.js";
import { number, plural, setText } from "./show.js";

const SIDE = 460;
const MIDDLE = SIDE / 2;
/** Slots that are drawn at most, and those whose owners are named. */
const MOST = 1200;
const NAMED = 106;
const STATES = [
  ["forged", "forged", "var(--good)", null],
  ["missed", "missed", "var(--bad)", "rising"],
  ["elsewhere", "forged on another branch", "var(--fourth)", "crossed"],
  ["running", "running", "var(--shade)", null],
  ["coming", "to come", "var(--faint)", null],
  ["unowned", "without an owner", "var(--card)", null],
];
const WORDS = Object.fromEntries(STATES.map(([state, words]) => [state, words]));

export class Ring {
  constructor(where, choose) {
    this.at = null;
    this.choose = choose;
    this.words = svg("g", { "text-anchor": "middle" });
    this.names = svg("g", { class: "owners" });
    this.paths = STATES.map(([state, , color, texture]) => [
      state,
      svg("path", { class: `slot ${state}`, style: `fill:${color}` }),
      texture && svg("path", { style: `fill:${patternOf(texture)}` }),
    ]);
    this.mark = svg("path", { class: "picked" });
    this.svg = svg(
      "svg",
      { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "ringed", tabindex: 0, role: "img", "aria-label": "The slots of the round" },
      this.paths.map(([, path, texture]) => [path, texture]),
      this.mark,
      this.names,
      this.words,
    );
    this.told = where.querySelector(".told");
    where.prepend(this.svg);
    this.svg.addEventListener("pointermove", (event) => this.show(this.under(event)));
    this.svg.addEventListener("pointerleave", () => this.show(null));
    this.svg.addEventListener("blur", () => this.show(null));
    this.svg.addEventListener("click", () => this.at !== null && this.slots[this.at]?.block && this.choose(this.slots[this.at].block));
    this.svg.addEventListener("keydown", (event) => this.key(event));
  }

  piece(index, [inner, outer]) {
    const wide = (2 * Math.PI) / this.slots.length;
    const gap = Math.min(0.08 * wide, 0.012);
    const [from, to] = [index * wide + gap, (index + 1) * wide - gap];
    const point = (radius, angle) => `${px(MIDDLE + radius * Math.sin(angle))},${px(MIDDLE - radius * Math.cos(angle))}`;
    const long = to - from > Math.PI ? 1 : 0;
    return `M${point(inner, from)}L${point(outer, from)}A${px(outer)},${px(outer)} 0 ${long},1 ${point(outer, to)}L${point(inner, to)}A${px(inner)},${px(inner)} 0 ${long},0 ${point(inner, from)}Z`;
  }

  draw(round) {
    const now = round.slots.findIndex(({ slot }) => slot >= round.slotNow);
    const first = Math.max(0, Math.min(now < 0 ? Infinity : now - MOST / 2, round.slots.length - MOST));
    const slots = round.slots.slice(first, first + MOST);
    // A block of another branch changes a slot of which the winning chain says nothing new.
    const key = `${round.tip} ${round.slotNow} ${slots.map(({ state }) => state).join()}`;
    const same = this.drawn === key;
    // The genesis block has no owner, and a lottery leaves slots without one.
    for (const slot of slots) slot.owner ??= slot.height === 1 ? "genesis block" : "no owner";
    Object.assign(this, { round, slots, drawn: key });
    this.counts = Object.fromEntries(STATES.map(([state]) => [state, round.slots.filter((slot) => slot.state === state).length]));
    if (same) return;
    const named = slots.length <= NAMED;
    this.radii = named ? [104, 150] : [122, 218];
    for (const [state, path, texture] of this.paths) {
      const d = slots.map((slot, index) => (slot.state === state ? this.piece(index, this.radii) : "")).join("");
      path.setAttribute("d", d);
      texture?.setAttribute("d", slots.length > 250 ? "" : d);
    }
    this.label(named);
    const { forged, missed, elsewhere } = this.counts;
    const told = `Round ${number(round.round)}: ${number(forged)} of ${number(round.blocks)} blocks forged, ${number(missed)} missed${elsewhere ? `, ${number(elsewhere)} on another branch` : ""}`;
    this.svg.setAttribute("aria-label", `${told}. Arrow keys go from slot to slot.`);
    this.show(this.at !== null && this.at < slots.length ? this.at : null);
  }

  label(named) {
    if (!named) {
      this.names.replaceChildren();
      return;
    }
    const wide = 360 / this.slots.length;
    const size = Math.min(13, Math.max(7.5, 280 / this.slots.length + 3.5));
    this.names.replaceChildren(
      ...this.slots.map(({ owner, state }, index) => {
        const angle = (index + 0.5) * wide;
        const left = angle > 180;
        const few = this.slots.length <= 12;
        const turn = few
          ? `rotate(${px(angle)} ${MIDDLE} ${MIDDLE}) translate(${MIDDLE} ${MIDDLE - 158}) rotate(${px(-angle)})`
          : `rotate(${px(angle - 90)} ${MIDDLE} ${MIDDLE}) translate(${MIDDLE + 156} ${MIDDLE})${left ? " rotate(180)" : ""}`;
        const side = Math.sin((angle * Math.PI) / 180);
        const anchor = few ? (Math.abs(side) < 0.2 ? "middle" : side > 0 ? "start" : "end") : left ? "end" : "start";
        return svg(
          "text",
          { transform: turn, "text-anchor": anchor, dy: "0.35em", "font-size": px(size), class: state },
          owner.length > 12 ? `${owner.slice(0, 11)}…` : owner,
        );
      }),
    );
  }

  /** Shows a slot in the middle, and marks those of the same owner. */
  show(index, aloud = false) {
    if (!this.slots) return;
    this.at = index;
    const { round, counts } = this;
    const slot = index === null ? null : this.slots[index];
    const lines = slot
      ? [slot.owner, `slot ${number(slot.slot)}`, WORDS[slot.state], slot.height ? `height ${number(slot.height)}` : ""]
      : [
          `Round ${number(round.round)}`,
          `${number(counts.forged)} of ${number(round.blocks)} forged`,
          counts.missed ? `${number(counts.missed)} missed` : "none missed",
          counts.elsewhere ? `${number(counts.elsewhere)} on another branch` : "",
          this.slots.length < round.slots.length || round.leftOff ? `${plural(this.slots.length, "slot")} shown` : "",
        ];
    this.words.replaceChildren(
      ...lines.filter(Boolean).map((line, place) =>
        svg(
          "text",
          { x: MIDDLE, y: MIDDLE - (lines.filter(Boolean).length > 3 ? 27 : 18) + place * 21, class: place ? "tick" : "middle", "font-size": place ? 14 : 18 },
          line.length > 22 ? `${line.slice(0, 21)}…` : line,
        ),
      ),
    );
    this.mark.setAttribute(
      "d",
      slot
        ? this.slots
            .map((other, place) => (other.owner === slot.owner ? this.piece(place, [this.radii[0] - 7, this.radii[0] - 3]) : ""))
            .join("") + this.piece(index, [this.radii[0] - 7, this.radii[1] + 4])
        : "",
    );
    if (aloud) setText(this.told, lines.filter(Boolean).join(", "));
  }

  under(event) {
    if (!this.slots) return null;
    const box = this.svg.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) / box.width - 0.5) * SIDE, ((event.clientY - box.top) / box.height - 0.5) * SIDE];
    const away = Math.hypot(x, y);
    if (away < this.radii[0] - 8 || away > MIDDLE) return null;
    return Math.floor(((Math.atan2(x, -y) / (2 * Math.PI) + 1) % 1) * this.slots.length);
  }

  key(event) {
    const last = this.slots ? this.slots.length - 1 : -1;
    const moves = { ArrowRight: (this.at ?? -1) + 1, ArrowLeft: (this.at ?? 1) - 1, Home: 0, End: last };
    if (event.key === "Escape") this.show(null);
    else if (event.key === "Enter" && this.slots?.[this.at]?.block) this.choose(this.slots[this.at].block);
    else if (event.key in moves && last >= 0) this.show(Math.max(0, Math.min(last, moves[event.key])), true);
    else return;
    event.preventDefault();
  }
}

/** The legend: each state with its colour and texture. */
export const ringKeys = () =>
  STATES.map(([, words, color, texture]) => [
    words,
    [
      svg("rect", { x: 1, y: 1, width: 14, height: 10, rx: 2, style: `fill:${color}`, class: "keyed" }),
      texture && svg("rect", { x: 1, y: 1, width: 14, height: 10, style: `fill:${patternOf(texture)}` }),
    ],
  ]);
