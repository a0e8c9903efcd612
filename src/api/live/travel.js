// Time travel: a slider over virtual time, and steps. The whole page then shows a view of the past. The server makes it by playing the
// network again from a retained moment. The live network goes on meanwhile.
import { Refused, drop, ask, post, setBase } from "./ask.js";
import { clock, element, number, plural, setText } from "./show.js";
import { inWords } from "./words.js";

/** Isolated chains and views have no past of their own to go to. */
const HAS_PAST = !/\/(?:chains|views)\/\d+\/?$/.test(location.pathname);
const STEPS = [
  ["round", "Round"],
  ["block", "Block"],
  ["slot", "Slot"],
  ["event", "Event"],
];
/** Keys of the slider: what they step by, and whether back. Home and End go to the ends. */
const KEYS = {
  ArrowLeft: ["slot", true],
  ArrowDown: ["slot", true],
  ArrowRight: ["slot", false],
  ArrowUp: ["slot", false],
  PageDown: ["round", true],
  PageUp: ["round", false],
};
const SHIFTED = { ArrowLeft: ["block", true], ArrowDown: ["block", true], ArrowRight: ["block", false], ArrowUp: ["block", false] };
const MICRO = 1e6;

export class Travel {
  /** `moved` is called where another instant is shown. */
  constructor(where, network, moved) {
    Object.assign(this, { where, network, moved, view: null, first: 0, last: 0, next: null, busy: false, node: null });
    where.hidden = true;
    if (!HAS_PAST) return;
    this.slider = element("input", {
      type: "range",
      "aria-label": "Instant shown",
      min: 0,
      max: 0,
      step: 1,
      oninput: () => this.slide(),
      onkeydown: (event) => this.key(event),
    });
    const step = (back) => (kind, name) =>
      element(
        "button",
        {
          type: "button",
          class: "act",
          "aria-label": `${back ? "Back" : "On"} by one ${kind}`,
          title: `${back ? "Back" : "On"} by one ${kind}`,
          onclick: () => this.go({ step: kind, back }),
        },
        back ? `‹ ${name}` : `${name} ›`,
      );
    this.back = STEPS.map(([kind, name]) => step(true)(kind, name));
    this.on = STEPS.toReversed().map(([kind, name]) => step(false)(kind, name));
    this.words = element("p", { class: "when", role: "status" });
    this.seen = element("input", {
      type: "number",
      min: 0,
      value: 0,
      class: "few",
      "aria-label": "Node whose explorer is shown",
      onchange: () => this.as(),
    });
    this.more = element(
      "span",
      { class: "parts" },
      element("label", { class: "soft" }, "Explorer of node ", this.seen),
      element("button", { type: "button", class: "act", onclick: () => this.goOn() }, "Go on from here"),
      element("button", { type: "button", class: "act", onclick: () => this.toNow() }, "Back to now"),
    );
    where.append(
      element("div", { class: "travelling" }, this.words, this.more),
      element(
        "div",
        { class: "travelling" },
        element("span", { class: "steps", role: "group", "aria-label": "Steps back" }, this.back),
        this.slider,
        element("span", { class: "steps", role: "group", "aria-label": "Steps on" }, this.on),
      ),
    );
    this.draw();
  }

  /** Whether it is to be seen: on the live view, and wherever the past is shown. */
  show(isLive) {
    this.isLive = isLive;
    this.draw();
  }

  /** Goes to the instant that the address names, if it names one. */
  async begin() {
    const named = new URLSearchParams(location.search).get("at");
    const isClosed = !HAS_PAST || this.network.shared;
    if (named !== null && isClosed) {
      const why = HAS_PAST ? "Only a client that may steer this testnet can look at its past." : "An isolated chain has no past of its own to look at.";
      this.instead ??= element("div", { class: "banner", role: "status" });
      this.where.after(this.instead);
      this.instead.textContent = `The address asks for the instant “${named}”. ${why} What is shown here is now.`;
    } else this.instead?.remove();
    if (named === null || isClosed) return;
    if (/^\d{1,15}(-\d{1,15}-\d{1,15})?$/.test(named)) {
      const [at, delivered, inputs] = named.split("-").map(Number);
      await this.go(delivered === undefined ? { at } : { at, delivered, inputs });
    } else this.wrong = `The address names no instant: “${named}”. An instant is a number of microseconds, such as at=488000000.`;
    if (this.wrong) await this.range();
    this.draw();
  }

  /** The network has been looked at. */
  looked() {
    if (!HAS_PAST || this.network.shared) return;
    const { lab } = this.network;
    if (!this.view && lab) this.last = lab.nowMicros;
    if (this.view === null && !this.asked && lab && !this.network.refused) {
      this.asked = true;
      this.range();
    }
    this.draw();
  }

  /** Asks how far back it goes, and what time it is now. */
  async range() {
    try {
      const { first, last } = await ask("lab/views", { live: true });
      Object.assign(this, { first, last });
      this.draw();
    } catch (why) {
      if (!(why instanceof Refused)) throw why;
    }
  }

  slide() {
    const seconds = Number(this.slider.value);
    if (seconds >= Number(this.slider.max)) this.toNow();
    else this.go({ at: Math.max(this.first, Math.min(this.last, Math.round(seconds * MICRO))) });
  }

  key(event) {
    const step = (event.shiftKey ? SHIFTED : KEYS)[event.key];
    if (event.key === "Home") this.go({ at: this.first });
    else if (event.key === "End") this.toNow();
    else if (step) this.go({ step: step[0], back: step[1] });
    else return;
    event.preventDefault();
  }

  /** Goes to an instant, or a step away from where it is. While one is on its way, only the last that was asked for is kept. */
  async go(wish) {
    this.next = wish;
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.next) {
        const wanted = this.next;
        this.next = null;
        if (wanted.isNow) await this.close();
        else if (wanted.isOn) await this.leave();
        else if (!wanted.step || wanted.back || this.view) await this.open(wanted);
      }
    } finally {
      this.busy = false;
      this.draw();
    }
  }

  async open(wanted, isAgain = false) {
    const old = this.view;
    const from = wanted.step && old ? { view: old.id, ...wanted } : wanted;
    try {
      const view = await post("lab/views", { ...from, ...(this.node === null ? {} : { node: this.node }) }, { live: true });
      if (this.next?.isNow) return void drop(`lab/views/${view.id}`, { live: true }).catch(() => {});
      const isNow = wanted.step && !wanted.back && view.at >= this.last && old && view.at === old.at && view.delivered === old.delivered;
      this.wrong = isNow ? "This is the newest instant that the page knows; Back to now shows what comes." : null;
      await this.set(view);
      this.range();
    } catch (why) {
      if (!(why instanceof Refused)) throw why;
      this.wrong = inWords(why.message);
      // A node that is not there is not asked for again.
      if (old) [this.node, this.seen.value] = [old.node, old.node];
      if (why.status !== 404 || !wanted.step || !old || isAgain) return;
      // It was closed meanwhile, so it is opened anew first.
      await this.open({ at: old.at, delivered: old.delivered, inputs: old.inputs }, true);
      return this.open(wanted, true);
    }
    if (old) drop(`lab/views/${old.id}`, { live: true }).catch(() => {});
  }

  /** Shows a view, or the live network. */
  async set(view) {
    this.view = view;
    if (view) this.seen.value = view.node;
    setBase(view ? `views/${view.id}/` : "", async () => {
      // The server closed it, because other views were opened since.
      if (!this.view) return "";
      const { at, delivered, inputs, node } = this.view;
      this.view = await post("lab/views", { at, delivered, inputs, node }, { live: true });
      return `views/${this.view.id}/`;
    });
    const url = new URL(location.href);
    if (view) url.searchParams.set("at", `${view.at}-${view.delivered}-${view.inputs}`);
    else url.searchParams.delete("at");
    history.replaceState(null, "", url);
    document.body.classList.toggle("past", Boolean(view));
    this.draw();
    await this.network.travel(Boolean(view));
    this.moved();
  }

  /** Shows the live network again, whatever is on its way. */
  toNow() {
    return this.go({ isNow: true });
  }

  async close() {
    const old = this.view;
    this.wrong = null;
    this.node = null;
    if (!old) return;
    await this.set(null);
    drop(`lab/views/${old.id}`, { live: true }).catch(() => {});
  }

  /** The explorer as another node sees it. */
  as() {
    const node = Math.floor(Number(this.seen.value));
    if (!this.view || !(node >= 0)) return;
    this.node = node;
    const { at, delivered, inputs } = this.view;
    this.go({ at, delivered, inputs });
  }

  /** Makes an isolated chain that begins here, and goes there. */
  goOn() {
    return this.go({ isOn: true });
  }

  async leave() {
    if (!this.view) return;
    try {
      const { id } = await post(`lab/views/${this.view.id}/chain`, {}, { live: true });
      location.assign(`chains/${id}/`);
    } catch (why) {
      if (!(why instanceof Refused)) throw why;
      this.wrong = inWords(why.message);
      this.draw();
    }
  }

  draw() {
    if (!HAS_PAST) return;
    const { view, first, last } = this;
    this.where.hidden = Boolean(this.network.shared) || !view && !this.wrong && (!this.isLive || !this.network.lab || Boolean(this.network.refused));
    this.where.classList.toggle("away", Boolean(view));
    // While it is held or on its way, the slider is where the hand has put it.
    Object.assign(this.slider, { min: Math.floor(first / MICRO), max: Math.ceil(last / MICRO) });
    if (!this.busy || !this.slider.matches(":active")) this.slider.value = view ? String(Math.round(view.at / MICRO)) : this.slider.max;
    const words = view
      ? `As it was at ${clock(Math.floor(view.at / MICRO))}, slot ${number(view.slot)}, round ${number(view.round)}, height ${number(view.height)}: ${ago(last - view.at)}`
      : "Now. The slider and the steps go back in time; the network goes on meanwhile.";
    setText(this.words, [view ? words : this.wrong, view ? this.wrong : words].filter(Boolean).join(" "));
    this.slider.setAttribute(
      "aria-valuetext",
      view ? `${clock(Math.floor(view.at / MICRO))}, height ${number(view.height)}` : "now",
    );
    this.more.hidden = !view;
    for (const button of this.on) button.disabled = !view;
    for (const button of this.back) button.disabled = view ? view.at <= first : last <= first;
  }
}

/** How long before now. */
function ago(micros) {
  const seconds = Math.round(micros / MICRO);
  if (seconds < 1) return "now";
  if (seconds < 120) return `${plural(seconds, "virtual second")} ago`;
  if (seconds < 7200) return `${number(Math.round(seconds / 60))} virtual minutes ago`;
  return `${number(seconds / 3600, 1)} virtual hours ago`;
}
