// Lists of the explorer: blocks, transactions, wallets, delegates, the pool. All of it is read from the public /api.
import { Refused, askWhole } from "./ask.js";
import { clock, card, coins, element, idLink, link, network, number, plural, setText } from "./show.js";

const ROWS = 25;
/** How long a list is shown before it is asked for again [ms]. */
export const AGAIN = 3000;
export const KINDS = [
  [
    "Transfer",
    "Second signature",
    "Delegate registration",
    "Vote",
    "Multisignature",
    "IPFS",
    "Multipayment",
    "Delegate resignation",
    "HTLC lock",
    "HTLC claim",
    "HTLC refund",
  ],
  [
    "Business registration",
    "Business resignation",
    "Business update",
    "Bridgechain registration",
    "Bridgechain resignation",
    "Bridgechain update",
  ],
];
export const kindOf = ({ type, typeGroup }) => KINDS[typeGroup === 2 ? 1 : 0]?.[type] ?? `Type ${typeGroup ?? 1}/${type}`;
export const timeOf = (stamp) =>
  stamp
    ? element("time", { datetime: stamp.human, title: stamp.human.replace("T", " ").slice(0, 19) }, clock(stamp.unix - network.epoch))
    : "pending";

/** The reason why ranks and votes can disagree. */
export const RANKED = "Ranks are fixed at the begin of a round. Votes count at once, so they can be ahead of the ranks.";

/** The columns of each table: [name, cell, numeric, title]. `numeric` is "coin" for amounts, and `title` explains the name. */
export const COLUMNS = {
  blocks: [
    ["Height", (block) => link("blocks", String(block.height), number(block.height))],
    ["Id", (block) => idLink("blocks", block.id)],
    ["Time", (block) => timeOf(block.timestamp)],
    [
      "Forger",
      (block) =>
        block.generator.username
          ? link("delegates", block.generator.username)
          : idLink("wallets", block.generator.address ?? block.generator.publicKey),
    ],
    ["Transactions", (block) => number(block.transactions), true],
    ["Fees", (block) => coins(block.forged.fee, false), "coin"],
    ["Reward", (block) => coins(block.forged.reward, false), "coin"],
  ],
  transactions: [
    ["Id", (one) => idLink("transactions", one.id)],
    ["Type", kindOf],
    ["Time", (one) => timeOf(one.timestamp)],
    ["Sender", (one) => idLink("wallets", one.sender)],
    ["Recipient", (one) => recipientOf(one)],
    ["Amount", (one) => coins(amountOf(one), false), "coin"],
    ["Fee", (one) => coins(one.fee, false), "coin"],
    ["Note", (one) => element("span", { class: "note" }, one.vendorField ?? "")],
  ],
  wallets: [
    ["Address", (wallet) => idLink("wallets", wallet.address, 17)],
    [
      "Username",
      (wallet) => {
        const name = wallet.username ?? wallet.attributes?.delegate?.username;
        return name ? link("delegates", name) : "";
      },
    ],
    ["Balance", (wallet) => coins(wallet.balance, false), "coin"],
    ["Nonce", (wallet) => number(Number(wallet.nonce ?? 0)), true],
    [
      "Votes for",
      (wallet) => {
        const vote = wallet.vote ?? wallet.attributes?.vote;
        return vote ? idLink("wallets", vote) : "";
      },
    ],
  ],
  delegates: [
    ["Rank", (one) => number(one.rank), true, RANKED],
    ["Delegate", (one) => link("delegates", one.username)],
    ["Votes", (one) => coins(one.votes, false), "coin"],
    ["Share", (one) => `${number(one.production?.approval ?? 0, 2)} %`, true],
    ["Blocks", (one) => number(one.blocks?.produced ?? 0), true],
    ["Last block", (one) => (one.blocks?.last ? link("blocks", String(one.blocks.last.height), number(one.blocks.last.height)) : ""), true],
    ["Forged", (one) => coins(one.forged?.total ?? 0, false), "coin"],
    ["", (one) => (one.isResigned ? "resigned" : "")],
  ],
};

/** Payments go to many. */
export const amountOf = (one) => one.asset?.payments?.reduce((sum, { amount }) => sum + BigInt(amount), 0n) ?? one.amount;
function recipientOf(one) {
  if (one.asset?.payments) return plural(one.asset.payments.length, "recipient");
  const votes = one.asset?.votes;
  if (votes)
    return element(
      "span",
      {},
      votes.flatMap((vote, index) => [index ? ", " : "", vote.startsWith("-") ? "not " : "", idLink("wallets", vote.slice(1), 6)]),
    );
  return one.recipient ? idLink("wallets", one.recipient) : "";
}

export const LISTS = {
  blocks: { title: "Blocks", path: "api/blocks", columns: "blocks" },
  transactions: { title: "Transactions", path: "api/transactions", columns: "transactions" },
  wallets: { title: "Wallets", path: "api/wallets", columns: "wallets" },
  delegates: { title: "Delegates", path: "api/delegates", columns: "delegates", rows: 100 },
  pool: { title: "Pool", path: "api/transactions/unconfirmed", columns: "transactions" },
};

/** A table of rows. */
export function rowsOf(columns, rows, title) {
  const head = element(
    "tr",
    {},
    columns.map(([name, , numeric, title]) =>
      name
        ? element("th", { scope: "col", class: numeric ? "num" : null, title }, numeric === "coin" ? `${name}, ${network.token}` : name)
        : element("td"),
    ),
  );
  const body = rows.map((row) =>
    element(
      "tr",
      {},
      columns.map(([, cell, numeric]) => element("td", { class: numeric ? "num" : null }, cell(row))),
    ),
  );
  return element(
    "div",
    { class: "scroll wide", tabindex: 0, role: "region", "aria-label": `Table of ${title}` },
    element("table", {}, element("thead", {}, head), element("tbody", {}, body)),
  );
}

/** The transactions of a wallet: which way the coin went, and how much of it was this wallet's. */
export function columnsOf(address) {
  const isOut = (one) => one.sender === address;
  const incoming = (one) =>
    one.asset?.payments?.filter(({ recipientId }) => recipientId === address).reduce((sum, { amount }) => sum + BigInt(amount), 0n) ??
    (one.recipient === address ? BigInt(one.amount) : 0n);
  const way = (one) => (isOut(one) ? (incoming(one) > 0n ? "self" : "out") : "in");
  const words = { in: "← in", out: "out →", self: "to itself" };
  const signed = (one) => {
    const amount = isOut(one) ? -BigInt(amountOf(one)) : incoming(one);
    return element("span", { class: `way ${way(one)}` }, `${amount > 0n ? "+" : ""}${coins(amount, false)}`);
  };
  return [
    ["Way", (one) => element("span", { class: `way ${way(one)}` }, words[way(one)])],
    ...COLUMNS.transactions.map((column) => (column[0] === "Amount" ? ["Amount", signed, "coin"] : column)),
  ];
}

/** A list with pages of its own: `address` gives the address of a page. Shown again as long as `seen` says so. */
export class List {
  /** `all` is the address of the whole list, where this is but its beginning. */
  constructor({ title, path, columns, rows = ROWS, empty = "Nothing here yet.", all = null }, page, address) {
    Object.assign(this, { title, path, columns: COLUMNS[columns] ?? columns, rows, address, empty, all });
    this.page = Math.max(1, Math.floor(page) || 1);
    this.count = element("span", { class: "soft" });
    this.body = element("div", {}, element("p", { class: "soft" }, "…"));
    this.pager = element("nav", { class: "pager", "aria-label": `Pages of ${title}` });
    this.node = card(title, "", this.count, this.body, this.pager);
  }

  async load() {
    const answer = await askWhole(`${this.path}${this.path.includes("?") ? "&" : "?"}page=${this.page}&limit=${this.rows}`);
    const text = JSON.stringify(answer.data);
    const total = answer.meta?.totalCount ?? answer.data.length;
    const pages = Math.max(1, answer.meta?.pageCount ?? 1);
    if (this.page > pages && !this.all) {
      this.page = pages;
      history.replaceState(null, "", this.address(pages));
      return this.load();
    }
    setText(this.count, `${number(total)} in all`);
    this.turn(pages);
    // A link that has the focus stays where it is.
    if (text === this.shown || this.body.contains(document.activeElement)) return;
    this.shown = text;
    this.body.replaceChildren(
      answer.data.length ? rowsOf(this.columns, answer.data, this.title) : element("p", { class: "soft" }, this.empty),
    );
  }

  turn(pages) {
    if (pages === this.pages) return;
    this.pages = pages;
    if (this.all) return this.pager.replaceChildren(element("a", { href: this.all }, "All of them"));
    const to = (page, words) =>
      page < 1 || page > pages || page === this.page
        ? element("span", { class: "off" }, words)
        : element("a", { href: this.address(page) }, words);
    this.pager.replaceChildren(
      ...(pages < 2
        ? []
        : [
            to(1, "First"),
            to(this.page - 1, "Newer"),
            element("span", {}, `Page ${number(this.page)} of ${number(pages)}`),
            to(this.page + 1, "Older"),
            to(pages, "Last"),
          ]),
    );
  }
}

/** Loads things again and again for as long as they are shown and the page is seen. */
export class Fresh {
  /** `failed` is called with each refusal, and `returned` after the first loads that succeed again. */
  constructor(loads, failed, returned) {
    Object.assign(this, { loads, failed, returned });
    this.go();
  }

  async go() {
    let wait = AGAIN;
    try {
      if (!document.hidden) {
        await Promise.all(this.loads.map((load) => load()));
        if (this.isDown && !this.over) await this.returned();
        this.isDown = false;
      }
    } catch (why) {
      if (!(why instanceof Refused)) throw why;
      // Above the rate limit the page leaves its rows as they are and asks later.
      if (why.status === 429) wait = Math.max(AGAIN, why.wait * 1000);
      else if (!this.over) {
        this.isDown = true;
        this.failed(why);
      }
    }
    if (!this.over) this.timer = setTimeout(() => this.go(), wait);
  }

  stop() {
    this.over = true;
    clearTimeout(this.timer);
  }
}
