// The buttons that steer: pace, advance, snapshots, reorganisations and the faucet. Each calls a route of /lab and says what came of it.
import { Refused, drop, post } from "./ask.js";
import { arktoshi, clock, coins, element, network as named, noAmount, number, plural } from "./show.js";
import { inWords } from "./words.js";

const PACES = [
  ["manual", "Manual"],
  ["on-demand", "On demand"],
  [1, "1×"],
  [10, "10×"],
  [100, "100×"],
  ["max", "Max"],
];
/** Slots that one press may play. */
const MOST = 100000;

const button = (name, act, more = {}) => element("button", { type: "button", class: "act", onclick: act, ...more }, name);
const input = (name, more) => element("input", { "aria-label": name, ...more });
const select = (name, options) =>
  element(
    "select",
    { "aria-label": name },
    options.map(([value, words]) => element("option", { value }, words)),
  );
/** A row: its name, and what is in it, as a form that Enter submits, with the answer below. */
const row = (name, act, told, ...parts) =>
  element(
    "form",
    {
      class: "row",
      novalidate: "",
      onsubmit: (event) => {
        event.preventDefault();
        act();
      },
    },
    element("span", { class: "name" }, name),
    element("span", { class: "parts" }, parts),
    told,
  );

/** Where the answer to a button stands: beside it. */
export const place = () => element("p", { class: "outcome", role: "status" });

/** Carries out the requests of buttons. Each outcome appears at one place, beside its button. */
export class Deeds {
  constructor(network) {
    this.network = network;
  }

  /** Carries out `act`. `done` puts its outcome into words, and `names` are the form's names for the keys of the API. */
  async do(told, what, act, done, names) {
    this.say(told, "doing", `${what} …`);
    try {
      const came = await act();
      this.say(told, "done", done(came));
    } catch (why) {
      if (!(why instanceof Refused)) throw why;
      this.say(told, "wrong", inWords(why.message, names));
    }
    await this.network.look();
  }

  /** Removes an answer, for example that to an earlier choice. */
  clear(told) {
    told.replaceChildren();
    told.className = "outcome";
  }

  /** Texts and links. */
  say(told, how, what) {
    if (this.last && this.last !== told) this.clear(this.last);
    this.last = told;
    told.className = `outcome ${how}`;
    told.replaceChildren(...[what].flat());
    // On a small screen the place may be outside of the window.
    if (how !== "done") told.scrollIntoView({ block: "nearest" });
  }
}

/** Pace and advance, which stand above everything. */
export class Clock {
  constructor(deeds) {
    this.deeds = deeds;
    this.told = place();
    this.now = element("b", { class: "now" }, "–");
    this.below = element("span", { class: "soft" });
    this.paces = PACES.map(([pace, name]) =>
      element("button", { type: "button", class: "pace", "aria-pressed": "false", onclick: () => this.setPace(pace) }, name),
    );
    // A pace that has no button of its own stands beside them while it is in force.
    this.other = element("button", { type: "button", class: "pace", "aria-pressed": "true", hidden: "" }, "");
    this.count = input("How many", { type: "number", min: 1, max: MOST, value: 10, class: "few" });
    this.unit = select("Unit", [
      ["slots", "slots"],
      ["rounds", "rounds"],
      ["height", "until height"],
    ]);
    this.more = [button("+1 slot", () => this.advance({ slots: 1 })), button("+1 round", () => this.advanceRounds(1))];
    this.group = element("div", { class: "paces", role: "group", "aria-label": "Pace" }, this.paces, this.other);
    this.form = element(
      "form",
      {
        class: "advance",
        novalidate: "",
        "aria-label": "Advance",
        onsubmit: (event) => {
          event.preventDefault();
          this.submit();
        },
      },
      this.more,
      element("span", { class: "joined" }, this.count, this.unit, element("button", { type: "submit", class: "act" }, "Advance")),
    );
    this.node = element(
      "div",
      { class: "steering" },
      element("div", { class: "time" }, this.now, this.below),
      this.group,
      this.form,
      this.told,
    );
  }

  setPace(pace) {
    return this.deeds.do(
      this.told,
      `Pace ${pace}`,
      () => post("lab/pace", { pace }),
      (came) => `The pace is ${typeof came.pace === "number" ? `${number(came.pace)}×` : came.pace}.`,
    );
  }

  advance(body) {
    return this.deeds.do(
      this.told,
      "Advancing",
      async () => {
        const came = await post("lab/advance", body);
        if (came.stopped !== "reached") return came;
        // The observed node is first or last to have it: with the end of the slot all have.
        const rest = await post("lab/advance", { slots: 1 });
        return { ...rest, slots: came.slots + rest.slots, stopped: rest.stopped };
      },
      ({ slots, height, stopped }) =>
        `Played ${plural(slots, "slot")}: the observed node is at height ${number(height)}${stopped === "limit" ? ", and the limit was met first" : stopped && stopped !== "reached" ? `; ${stopped}` : ""}.`,
    );
  }

  advanceRounds(count) {
    const { round } = this.deeds.network;
    if (round) this.advance({ until: { round: round.round + count }, limit: Math.min(MOST, 200 * count * round.blocks + 50) });
  }

  submit() {
    const count = Number(this.count.value);
    if (!Number.isInteger(count) || count < 1 || count > MOST)
      return this.deeds.say(this.told, "wrong", `“${this.count.value}” cannot be played: give a whole number from 1 to ${number(MOST)}.`);
    const { height } = this.deeds.network.tree ?? { height: 0 };
    if (this.unit.value === "height" && count <= height)
      return this.deeds.say(this.told, "wrong", `The chain has height ${number(height)} already.`);
    if (this.unit.value === "slots") this.advance({ slots: count });
    else if (this.unit.value === "rounds") this.advanceRounds(count);
    else this.advance({ until: { height: count }, limit: MOST });
  }

  draw({ lab, round, isPast }) {
    this.now.textContent = clock(lab.now);
    const pace = isPast
      ? "in the past"
      : typeof lab.pace === "number"
        ? `${number(lab.pace)} times real time`
        : lab.ready
          ? `the clock ${lab.pace === "max" ? "runs as fast as it can" : "stands"}`
          : "the run has ended";
    this.below.textContent = `slot ${number(round.slotNow)}, ${pace}`;
    this.paces.forEach((made, index) => made.setAttribute("aria-pressed", String(lab.pace === PACES[index][0])));
    this.other.hidden = typeof lab.pace !== "number" || PACES.some(([pace]) => pace === lab.pace);
    if (!this.other.hidden) this.other.textContent = `${number(lab.pace)}×`;
  }
}

/** Snapshots, reorganisations and the faucet. */
export class Tools {
  constructor(deeds) {
    this.deeds = deeds;
    this.name = input("Name of the snapshot", { placeholder: "name", maxlength: 100 });
    this.depth = input("Blocks to leave", { type: "number", min: 1, value: 2, class: "tiny" });
    this.fate = select("What becomes of their transactions", [
      ["return", "return transactions"],
      ["drop", "drop transactions"],
    ]);
    this.payee = input("Address to pay", { placeholder: "address", spellcheck: "false", autocomplete: "off" });
    this.amount = input("Amount in coins", { value: "10", class: "few", inputmode: "decimal" });
    this.list = element("ol", { class: "snapshots", "aria-label": "Snapshots" });
    const submit = (name) => element("button", { type: "submit", class: "act" }, name);
    this.told = { snapshot: place(), reorg: place(), faucet: place() };
    this.node = element(
      "div",
      { class: "tools" },
      row("Snapshot", () => this.take(), this.told.snapshot, this.name, submit("Take")),
      this.list,
      row(
        "Reorganise",
        () => this.reorganise(),
        this.told.reorg,
        this.depth,
        element("span", { class: "soft" }, "blocks,"),
        this.fate,
        submit("Reorganise"),
      ),
      row("Faucet", () => this.pay(), this.told.faucet, this.payee, this.amount, element("span", { class: "soft" }, named.token), submit("Pay")),
    );
  }

  take() {
    const name = this.name.value.trim();
    this.deeds.do(
      this.told.snapshot,
      "Taking a snapshot",
      () => post("lab/snapshots", name ? { name } : {}),
      (taken) => {
        this.name.value = "";
        return `Snapshot ${taken.id} keeps height ${number(taken.height)}.`;
      },
    );
  }

  reorganise() {
    const body = { depth: Math.floor(Number(this.depth.value)), transactions: this.fate.value };
    this.deeds.do(
      this.told.reorg,
      "Reorganising",
      () => post("lab/reorg", body),
      (done) =>
        `${plural(done.reverted.length, "block")} left for ${plural(done.blocks.length, "other")}: ${plural(done.moved.length, "node")} went along${done.left.length ? `, ${number(done.left.length)} stay` : ""}${done.transactions.length ? `; ${plural(done.transactions.length, "transaction")} ${this.fate.value === "drop" ? "dropped" : "returned"}` : ""}.`,
      { depth: "Blocks to leave" },
    );
  }

  pay() {
    const amount = arktoshi(this.amount.value);
    if (amount === null) {
      this.deeds.say(this.told.faucet, "wrong", noAmount(this.amount.value));
      return;
    }
    const recipient = this.payee.value.trim();
    if (!recipient) {
      this.deeds.say(this.told.faucet, "wrong", "Give the address to pay.");
      return;
    }
    this.deeds.do(
      this.told.faucet,
      "Paying",
      () => post("lab/faucet", { recipient, amount }),
      ({ transactions: [id] }) => [
        `${coins(amount)} are on their way: `,
        element("a", { href: `#/transactions/${id}` }, "the transaction"),
      ],
    );
  }

  draw({ lab }) {
    const key = JSON.stringify(lab.snapshots);
    if (key === this.key) return;
    this.key = key;
    const act = (id, how, does, done) => button(how, () => this.deeds.do(this.told.snapshot, `${how} ${id}`, does, done), { "aria-label": `${how} ${id}` });
    this.list.replaceChildren(
      ...lab.snapshots
        .slice(-20)
        .reverse()
        .map(({ id, name, height, now }) =>
          element(
            "li",
            {},
            element(
              "span",
              {},
              element("b", {}, `${id}`),
              name ? [" ", element("bdi", {}, name)] : "",
              element("span", { class: "soft" }, ` height ${number(height)}, ${clock(now)}`),
            ),
            element(
              "span",
              { class: "parts" },
              act(
                id,
                "Go back to",
                () => post(`lab/snapshots/${id}/revert`),
                (back) => `Back at snapshot ${back.id}: height ${number(back.height)}.`,
              ),
              element(
                "a",
                { href: `lab/snapshots/${id}/file`, download: `snapshot-${id}.state`, "aria-label": `File of snapshot ${id}` },
                "File",
              ),
              act(
                id,
                "Delete",
                () => drop(`lab/snapshots/${id}`),
                () => `Snapshot ${id} is deleted.`,
              ),
            ),
          ),
        ),
    );
  }
}
