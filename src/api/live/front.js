// The first page of a shared testnet: the newest blocks and transactions, and the faucet if it is open to everybody.
import { post } from "./ask.js";
import { COLUMNS, List, LISTS } from "./explorer.js";
import { card, coins, element, facts, link, number, plural, span } from "./show.js";
import { place } from "./steer.js";

/** Rows of each list, and the columns that tell most. */
const ROWS = 8;
const SHOWN = {
  blocks: ["Height", "Time", "Forger", "Transactions"],
  transactions: ["Id", "Type", "Time", "Amount"],
};

/** The front page: what to show, and what to load again and again. */
export function front(network, named, deeds) {
  const list = (view) => {
    const columns = COLUMNS[view].filter(([name]) => SHOWN[view].includes(name));
    const made = new List({ ...LISTS[view], columns, rows: ROWS, all: `#/${view}` }, 1);
    made.node.classList.add("half", "brief");
    return made;
  };
  const [blocks, transactions] = [list("blocks"), list("transactions")];
  const grid = element(
    "div",
    { class: "grid" },
    card(
      "A shared testnet",
      network.faucet ? "half" : "",
      null,
      facts([
        ["Network", element("code", {}, named.nethash)],
        ["Token", named.token],
        ["Delegates", number(named.delegates)],
        ["A block every", plural(named.slotSeconds, "second")],
      ]),
      element("p", { class: "soft" }, "Look up whatever is on its chain, or ", element("a", { href: "#/live" }, "watch the network live"), "."),
    ),
    network.faucet ? card("Faucet", "half", null, faucet(network.faucet, deeds)) : null,
    blocks.node,
    transactions.node,
  );
  return { title: "Explorer", nodes: [grid], loads: [() => blocks.load(), () => transactions.load()] };
}

/** The form of the faucet for everybody. */
function faucet({ amount, payments, seconds }, deeds) {
  const told = place();
  const payee = element("input", { "aria-label": "Address to pay", placeholder: "address", spellcheck: "false", autocomplete: "off" });
  const pay = () => {
    const recipient = payee.value.trim();
    if (!recipient) return deeds.say(told, "wrong", "Give the address to pay.");
    return deeds.do(
      told,
      "Paying",
      () => post("faucet", { recipient }),
      ({ transactions: [id] }) => [`${coins(amount)} are on their way: `, link("transactions", id, "the transaction")],
    );
  };
  const form = element(
    "form",
    {
      class: "row",
      novalidate: "",
      onsubmit: (event) => {
        event.preventDefault();
        pay();
      },
    },
    element("span", { class: "parts" }, payee, element("button", { type: "submit", class: "act" }, `Pay ${coins(amount)}`)),
    told,
  );
  return element(
    "div",
    { class: "tools" },
    element("p", { class: "soft" }, `${coins(amount)} at a time, ${plural(payments, "time")} in ${span(seconds)} for each visitor.`),
    form,
  );
}
