// The page "Lab", for tests of wallets and explorers: accounts with passphrases, rules by which answers go wrong, and isolated
// chains. Each card has a form and a list.
import { ask, drop, post } from "./ask.js";
import { CHAIN, instantOf } from "./origin.js";
import { arktoshi, card, clock, coins, copier, element, link, network as named, noAmount, number, plural } from "./show.js";
import { place } from "./steer.js";

const input = (name, more = {}) => element("input", { "aria-label": name, autocomplete: "off", spellcheck: "false", ...more });
const select = (name, options, more = {}) =>
  element("select", { "aria-label": name, ...more }, options.map(([value, words]) => element("option", { value }, words)));
const soft = (text) => element("span", { class: "soft" }, text);
const submit = (name) => element("button", { type: "submit", class: "act" }, name);
const form = (name, act, ...parts) =>
  element(
    "form",
    {
      class: "fault",
      novalidate: "",
      "aria-label": name,
      onsubmit: (event) => {
        event.preventDefault();
        act();
      },
    },
    parts,
  );
const whole = (field) => Math.floor(Number(field.value));

/** Accounts that this tab has had made, so that their passphrases are there after the page was loaded again. */
const KEPT = `dposlab-accounts-${location.pathname}`;
const MOST = 100;
const kept = () => JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");

class Accounts {
  constructor(deeds) {
    Object.assign(this, { deeds, told: place() });
    this.count = input("How many accounts", { type: "number", min: 1, max: 1000, value: 1, class: "few" });
    this.balance = input("Coins of each", { value: "100", class: "few", inputmode: "decimal" });
    this.list = element("ul", { class: "accounts", "aria-label": "Accounts" });
    this.node = card(
      "Accounts with passphrases",
      "half",
      null,
      form("New accounts", () => this.make(), this.count, soft("with"), this.balance, soft(`${named.token} each`), submit("Make")),
      this.told,
      this.list,
    );
  }

  make() {
    const balance = arktoshi(this.balance.value);
    if (balance === null) return this.deeds.say(this.told, "wrong", noAmount(this.balance.value));
    return this.deeds.do(
      this.told,
      "Making accounts",
      () => post("lab/accounts", { count: whole(this.count), balance }),
      ({ accounts }) => {
        sessionStorage.setItem(KEPT, JSON.stringify([...accounts.toReversed(), ...kept()].slice(0, MOST)));
        this.load();
        return `${plural(accounts.length, "account")} made: the coin is on its way. This tab keeps the passphrases.`;
      },
      { count: "The number of accounts", balance: "The coins" },
    );
  }

  async load() {
    // An isolated chain tells those that it began with.
    this.first ??= CHAIN === null ? [] : ((await ask(`../../lab/chains/${CHAIN}`).catch(() => null))?.accounts ?? []);
    const all = [...kept(), ...this.first];
    if (this.shown === all.length) return;
    this.shown = all.length;
    this.list.replaceChildren(
      ...all.map(({ address, passphrase, balance }) =>
        element(
          "li",
          {},
          element("span", {}, link("wallets", address), copier(address, "Copy the address"), soft(` began with ${coins(balance)}`)),
          element("span", {}, element("code", {}, passphrase), copier(passphrase, "Copy the passphrase")),
        ),
      ),
      ...(all.length
        ? []
        : [element("li", { class: "soft" }, "None made in this tab. Those that the testnet began with are in what dposlab up printed.")]),
    );
  }
}

/** The effects of rules: member of the API, name, label of its value, an example of the value, and its unit. */
const EFFECTS = [
  ["delay_ms", "Answer later", "Milliseconds", "500", "ms"],
  ["status", "Answer with an error", "Status, 429 or 500 to 599", "503", ""],
  ["refuse", "Close without an answer"],
  ["cut", "Cut the answer off"],
  ["stale", "Answer as of earlier", "Blocks behind", "10", "blocks"],
  ["late_ms", "Post a webhook later", "Milliseconds", "2000", "ms"],
  ["twice", "Post a webhook twice"],
  ["reorder", "Post webhooks out of order"],
  ["lost", "Never post a webhook"],
];
/** The effects on posts of webhooks. All others concern answers of the API. */
const OF_POSTS = new Set(["late_ms", "twice", "reorder", "lost"]);

class Chaos {
  constructor(deeds) {
    Object.assign(this, { deeds, told: place() });
    this.effect = select("What goes wrong", EFFECTS.map(([name, words]) => [name, words]), { onchange: () => this.ask() });
    this.value = input("Value", { class: "some" });
    this.unit = element("span", {});
    this.valued = element("label", { class: "lasts" }, this.value, " ", this.unit);
    this.what = input("For what");
    this.share = input("Per cent of them", { type: "number", min: 0, max: 100, value: 100, class: "few" });
    this.count = input("At most; empty for all", { type: "number", min: 1, placeholder: "all", class: "few" });
    this.list = element("ul", { class: "faults", "aria-label": "Rules in force" });
    this.node = card(
      "API faults",
      "half",
      null,
      form(
        "New rule",
        () => this.begin(),
        this.effect,
        this.valued,
        this.what,
        element("label", { class: "lasts" }, this.share, " %"),
        element("label", { class: "lasts" }, "at most ", this.count, " times"),
        submit("Add"),
      ),
      this.told,
      this.list,
    );
    this.ask();
  }

  get chosen() {
    return EFFECTS.find(([name]) => name === this.effect.value);
  }

  ask() {
    const [name, , label, value, unit] = this.chosen;
    this.valued.hidden = label === undefined;
    this.unit.textContent = unit ?? "";
    this.value.value = value ?? "";
    this.value.setAttribute("aria-label", label ?? "Value");
    this.value.title = label ?? "";
    this.deeds.clear(this.told);
    const [words, hint, first] =
      OF_POSTS.has(name) ? ["Event of the webhook", "all events", ""] : ["Route, or a beginning with * behind it", "all routes", "/api/*"];
    Object.assign(this.what, { placeholder: hint, value: first, title: words });
    this.what.setAttribute("aria-label", words);
  }

  begin() {
    const [name, words, label] = this.chosen;
    const what = this.what.value.trim();
    const share = Number(this.share.value);
    if (!(share >= 0 && share <= 100)) return this.deeds.say(this.told, "wrong", `“${this.share.value}” is no share: give 0 to 100 per cent.`);
    const body = { [name]: label === undefined ? true : whole(this.value), share: share / 100 };
    if (what) body[OF_POSTS.has(name) ? "event" : "route"] = what;
    if (this.count.value) body.count = whole(this.count);
    this.deeds.do(
      this.told,
      "The rule",
      () => post("lab/chaos", body),
      ({ id }) => {
        this.load();
        return `Rule ${id} is in force: ${words.toLowerCase()}.`;
      },
      { [name]: label?.split(",")[0] ?? words, route: "Route", event: "Event", count: "At most" },
    );
  }

  async load() {
    const rules = await ask("lab/chaos");
    const text = JSON.stringify(rules);
    if (text === this.shown) return;
    this.shown = text;
    this.list.replaceChildren(
      ...rules.map((rule) => this.row(rule)),
      ...(rules.length ? [] : [element("li", { class: "soft" }, "None: every request is answered as it should be.")]),
    );
  }

  row(rule) {
    const [name, words, label, , unit] = EFFECTS.find(([name]) => rule[name] !== undefined) ?? ["node", "Answer as another node", "node"];
    const of = rule.route ?? rule.event ?? "all";
    const part = rule.share < 1 ? `${number(rule.share * 100, 3)} % of ` : "";
    const end = element(
      "button",
      {
        type: "button",
        class: "act",
        "aria-label": `End rule ${rule.id}`,
        onclick: () =>
          this.deeds.do(
            this.told,
            `Ending rule ${rule.id}`,
            () => drop(`lab/chaos/${rule.id}`),
            () => {
              this.load();
              return `Rule ${rule.id} has ended.`;
            },
          ),
      },
      "End",
    );
    return element(
      "li",
      {},
      element(
        "span",
        {},
        element("b", {}, words),
        label ? ` (${rule[name]}${unit ? ` ${unit}` : ""})` : "",
        ` ${part}`,
        element("code", {}, of),
        soft(`: ${number(rule.applied)} of ${plural(rule.matched, OF_POSTS.has(name) ? "post" : "request")} so far`),
      ),
      end,
    );
  }
}

const PACES = [
  ["manual", "manual pace"],
  ["on-demand", "on demand"],
  ["1", "1×"],
  ["100", "100×"],
  ["max", "as fast as it goes"],
];

class Chains {
  constructor(deeds) {
    Object.assign(this, { deeds, told: place() });
    this.delegates = input("Delegates; empty for as many as here", { type: "number", min: 1, max: 200, placeholder: "as here", class: "some" });
    this.seed = input("Seed; empty for that of the testnet", { type: "number", min: 0, placeholder: "as here", class: "some" });
    this.pace = select("Pace of the chain", PACES);
    this.list = element("ul", { class: "faults", "aria-label": "Isolated chains" });
    this.node = card(
      "Isolated chains",
      "",
      null,
      form(
        "New chain",
        () => this.make(),
        element("label", { class: "lasts" }, "delegates ", this.delegates),
        element("label", { class: "lasts" }, "seed ", this.seed),
        this.pace,
        submit("Make"),
      ),
      this.told,
      this.list,
    );
  }

  make() {
    const body = { pace: this.pace.value };
    if (this.delegates.value) body.delegates = whole(this.delegates);
    if (this.seed.value) body.seed = whole(this.seed);
    this.deeds.do(
      this.told,
      "Making a chain",
      () => post("lab/chains", body),
      ({ id }) => {
        this.load();
        return [`Chain ${id} has begun: `, element("a", { href: `chains/${id}/` }, "its page"), "."];
      },
      { delegates: "Delegates", seed: "Seed", pace: "Pace" },
    );
  }

  async load() {
    const chains = await ask("lab/chains");
    const text = JSON.stringify(chains.map(({ id, height }) => [id, height]));
    if (text === this.shown || this.list.contains(document.activeElement)) return;
    this.shown = text;
    this.list.replaceChildren(
      ...chains.toReversed().map((chain) => this.row(chain)),
      ...(chains.length ? [] : [element("li", { class: "soft" }, "None. “Go on from here” in the past makes one, too.")]),
    );
  }

  row({ id, seed, delegates, height, from, url }) {
    const origin = from
      ? [", went on from ", element("a", { href: instantOf(from) }, `${clock(Math.floor(from.at / 1e6))}, height ${number(from.height)}`)]
      : [`, seed ${seed}`];
    const end = element(
      "button",
      {
        type: "button",
        class: "act",
        "aria-label": `Delete chain ${id}`,
        onclick: (event) => {
          event.target.blur();
          this.deeds.do(
            this.told,
            `Deleting chain ${id}`,
            () => drop(`lab/chains/${id}`),
            () => {
              this.load();
              return `Chain ${id} is deleted.`;
            },
          );
        },
      },
      "Delete",
    );
    return element(
      "li",
      {},
      element(
        "span",
        {},
        element("a", { href: `chains/${id}/` }, `Chain ${id}`),
        ` height ${number(height)}, ${plural(delegates, "delegate")}`,
        origin,
        " ",
        element("code", {}, url),
        copier(url, `Copy the API's address of chain ${id}`),
      ),
      end,
    );
  }
}

/** The view with all of them. An isolated chain has no chains of its own. */
export function bench(network, deeds) {
  if (network.isPast)
    return { title: "Lab", nodes: [card("Lab", "", null, element("p", {}, "The past can be looked at only. Go back to now first."))], loads: [] };
  const parts = [new Accounts(deeds), new Chaos(deeds), ...(CHAIN === null ? [new Chains(deeds)] : [])];
  return {
    title: "Lab",
    nodes: [element("div", { class: "grid lab" }, parts.map((part) => part.node))],
    loads: parts.map((part) => () => part.load()),
  };
}
