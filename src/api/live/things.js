// One thing of the explorer: a block, a transaction, a wallet, a delegate; and what is found by a search.
import { ask, askSome, orElse, askWhole, post } from "./ask.js";
import { card, coins, copier, element, facts, idLink, link, number, plural } from "./show.js";
import { List, amountOf, columnsOf, kindOf, rowsOf, COLUMNS, RANKED, timeOf } from "./explorer.js";

const code = (text) => element("code", {}, text);
const copied = (text, name) => element("span", {}, code(text), copier(text, name));
const nothing = (what, id) =>
  card(
    "Not found",
    "",
    null,
    element("p", {}, `There is no ${what} `, code(id), ". It may be on a chain that this node has left, or not be in a block yet."),
  );
const list = (title, path, columns, view, id, query) =>
  new List({ title, path, columns }, Number(query.get("page")), (page) => `#/${view}/${encodeURIComponent(id)}?page=${page}`);

/** Makes the shown cards like the new ones. It replaces parts that differ only. The focus stays on the link or button of the same name. */
function renew(where, made) {
  const names = (of) => [...of.querySelectorAll("h2, dt, th")].map(({ textContent }) => textContent).join("\n");
  const parts = (of) => [...of.querySelectorAll(".more, dd, td")];
  const name = (of) => `${of.tagName} ${of.getAttribute("aria-label") ?? of.textContent}`;
  const held = where.contains(document.activeElement) ? document.activeElement : null;
  const [old, now] = [parts(where), parts(made)];
  if (names(where) !== names(made) || old.length !== now.length) where.replaceChildren(...made.childNodes);
  else old.forEach((part, index) => part.isEqualNode(now[index]) || part.replaceChildren(...now[index].childNodes));
  if (held && !held.isConnected)
    [...where.querySelectorAll("a, button")].find((one) => name(one) === name(held))?.focus({ preventScroll: true });
}

/**
 * Shows a thing, and asks for it again with each new block. `find` returns it, or null if it is not there. `draw` makes its cards, and
 * `lists` makes the lists below them.
 */
async function lasting(what, id, find, draw, lists = () => []) {
  const where = element("div", {});
  const below = element("div", {});
  let tip;
  let shown;
  let parts = [];
  const look = async (newest) => {
    const found = await find();
    tip = newest;
    const text = JSON.stringify(found);
    if (text === shown) return;
    shown = text;
    renew(where, element("div", {}, found ? draw(found) : nothing(what, id)));
    const made = found ? lists(found) : [];
    // The same lists stay, with their pages and the focus.
    if (made.map(({ path }) => path).join() === parts.map(({ path }) => path).join()) return;
    parts = made;
    below.replaceChildren(...parts.map(({ node }) => node));
  };
  const newest = async () => (await ask("api/blockchain")).block.id;
  await look(await newest());
  let title = where.querySelector("h2").textContent;
  const load = async () => {
    // The block is asked for first, so that none between the two answers is missed.
    const block = await newest();
    if (block !== tip) await look(block);
    // A thing that was not found may be there now.
    const now = where.querySelector("h2").textContent;
    if (now !== title) {
      document.title = document.title.replace(title, () => now);
      document.querySelector("h1.unseen")?.replaceChildren(now);
      title = now;
    }
    await Promise.all(parts.map((part) => part.load()));
  };
  return { title, nodes: [where, below], loads: [load] };
}

function block(id, query) {
  return lasting(
    "block",
    id,
    () => askSome(`api/blocks/${encodeURIComponent(id)}`),
    (found) => blockCard(found),
    (found) =>
      found.transactions
        ? [list("Transactions of this block", `api/blocks/${found.id}/transactions`, "transactions", "blocks", id, query)]
        : [],
  );
}

function blockCard(found) {
  const height = Number(found.height);
  const forger = found.generator;
  const beside = element(
    "span",
    { class: "beside" },
    height > 1 ? link("blocks", String(height - 1), "← before") : null,
    " ",
    link("blocks", String(height + 1), "after →"),
  );
  return card(
    `Block ${number(height)}`,
    "",
    beside,
    facts([
      ["Id", copied(found.id, "Copy the id")],
      ["Previous", height > 1 ? idLink("blocks", found.previous, 20) : "none: the first block"],
      ["Time", timeOf(found.timestamp)],
      ["Forger", forger.username ? link("delegates", forger.username) : code(forger.publicKey)],
      ["Transactions", number(found.transactions)],
      ["Transferred", coins(found.forged.amount)],
      ["Fees", coins(found.forged.fee)],
      ["Reward", coins(found.forged.reward)],
      ["Confirmations", number(found.confirmations)],
      ["Payload", `${number(found.payload.length)} bytes, ${found.payload.hash}`],
      ["Signature", code(found.signature)],
    ]),
  );
}

/** Rows of each list in which a search looks for the beginning of an id. */
const NEWEST = 100;

/** The rows of a search of the API: none where it takes no such value. */
const some = (path, body) => orElse(post(path, body), []);

/** The pending transactions whose ids begin with a text. Beyond the newest ones it finds a whole id only. */
async function pooled(begin) {
  const { data, meta } = await askWhole(`api/transactions/unconfirmed?limit=${NEWEST}`);
  const rows = data.filter(({ id }) => id.startsWith(begin));
  if (rows.length || begin.length < 64 || meta.totalCount <= NEWEST) return rows;
  return [await askSome(`api/transactions/unconfirmed/${encodeURIComponent(begin)}`)].filter(Boolean);
}

function transaction(id) {
  // A search that finds none is no failure, which a browser would log.
  const confirmed = async () => (await some("api/transactions/search", { id }))[0];
  const pending = async () => (await pooled(id)).find((one) => one.id === id);
  // A block may take it from the pool between the first two answers.
  const find = async () => (await confirmed()) ?? (await pending()) ?? (await confirmed()) ?? null;
  return lasting("transaction", id, find, transactionCards);
}

function transactionCards(found) {
  const pending = !found.blockId;
  const known = new Set(["payments", "votes"]);
  const payments = found.asset?.payments;
  const rest = Object.fromEntries(Object.entries(found.asset ?? {}).filter(([name]) => !known.has(name)));
  return [
    card(
      kindOf(found),
      "",
      pending ? element("span", { class: "chip" }, "pending") : null,
      facts([
        ["Id", copied(found.id, "Copy the id")],
        ["Block", pending ? "in none yet: it waits in the pool" : idLink("blocks", found.blockId, 20)],
        ["Time", timeOf(found.timestamp)],
        ["Confirmations", pending ? null : number(found.confirmations ?? 0)],
        ["Sender", idLink("wallets", found.sender, 17)],
        ["Recipient", found.recipient && !payments ? idLink("wallets", found.recipient, 17) : null],
        ["Amount", coins(amountOf(found))],
        ["Fee", coins(found.fee)],
        ["Nonce", found.nonce],
        ["Note", found.vendorField ? element("span", { class: "note" }, found.vendorField) : null],
        [
          "Votes",
          found.asset?.votes &&
            element(
              "span",
              {},
              found.asset.votes.map((vote) => [vote.startsWith("-") ? "taken from " : "for ", idLink("wallets", vote.slice(1), 17), " "]),
            ),
        ],
        ["Asset", Object.keys(rest).length ? element("pre", {}, JSON.stringify(rest, null, 2)) : null],
        ["Version", found.version],
        ["Signature", found.signature && code(found.signature)],
        ["Second signature", (found.secondSignature ?? found.signSignature) && code(found.secondSignature ?? found.signSignature)],
      ]),
    ),
    payments
      ? card(
          "Payments",
          "",
          plural(payments.length, "payment"),
          rowsOf(
            [
              ["Recipient", (one) => idLink("wallets", one.recipientId, 17)],
              ["Amount", (one) => coins(one.amount), true],
            ],
            payments,
            "Payments",
          ),
        )
      : null,
  ];
}

function wallet(id, query) {
  const path = encodeURIComponent(id);
  return lasting(
    "wallet",
    id,
    () => askSome(`api/wallets/${path}`),
    walletCard,
    ({ address }) => [list("Transactions", `api/wallets/${path}/transactions`, columnsOf(address), "wallets", id, query)],
  );
}

function walletCard(found) {
  const name = found.username ?? found.attributes?.delegate?.username;
  const vote = found.vote ?? found.attributes?.vote;
  const { delegate, vote: voted, ...rest } = found.attributes ?? {};
  return card(
    "Wallet",
    "",
    null,
    facts([
      ["Address", copied(found.address, "Copy the address")],
      ["Public key", found.publicKey && copied(found.publicKey, "Copy the public key")],
      ["Balance", coins(found.balance)],
      ["Nonce", found.nonce],
      ["Delegate", name && link("delegates", name)],
      ["Votes for", vote && idLink("wallets", vote, 17)],
      ["Resigned", found.isResigned ? "yes" : null],
      ["More", Object.keys(rest).length ? element("pre", {}, JSON.stringify(rest, null, 2)) : null],
    ]),
  );
}

function delegate(id, query) {
  const path = encodeURIComponent(id);
  const voters = {
    title: "Voters",
    path: `api/delegates/${path}/voters`,
    columns: "wallets",
    rows: 10,
    empty: "No wallet votes for this delegate.",
  };
  return lasting(
    "delegate",
    id,
    () => askSome(`api/delegates/${path}`),
    delegateCard,
    () => [
      new List(voters, Number(query.get("voters")), (page) => `#/delegates/${path}?voters=${page}`),
      list("Blocks", `api/delegates/${path}/blocks`, "blocks", "delegates", id, query),
    ],
  );
}

function delegateCard(found) {
  return card(
    `Delegate ${found.username}`,
    "",
    element("span", { class: "soft", title: RANKED }, `rank ${number(found.rank)}`),
    facts([
      ["Address", idLink("wallets", found.address, 17)],
      ["Public key", code(found.publicKey)],
      ["Rank", element("span", { title: RANKED }, number(found.rank))],
      ["Votes", coins(found.votes)],
      ["Share of all coin", `${number(found.production?.approval ?? 0, 2)} %`],
      ["Blocks forged", number(found.blocks?.produced ?? 0)],
      ["Fees", coins(found.forged?.fees ?? 0)],
      ["Rewards", coins(found.forged?.rewards ?? 0)],
      ["Forged in all", coins(found.forged?.total ?? 0)],
      ["Resigned", found.isResigned ? "yes" : null],
    ]),
  );
}

export const THINGS = { blocks: block, transactions: transaction, wallets: wallet, delegates: delegate };

const USERNAME = /^[a-z0-9!@$&_.]{1,20}$/;

/** Where a text may lead: [view, id, words]. A search without a match is answered with an empty list, so a browser logs no failure. */
async function found(written) {
  // Ids, keys and usernames have no capital letters. Addresses have.
  const text = written.toLowerCase();
  const isNumber = /^\d{1,20}$/.test(text);
  const isId = /^[0-9a-f]{64}$/.test(text);
  const blockOf = (it) => ["blocks", it.id === text ? it.id : String(it.height), `Block ${number(Number(it.height))}`];
  const transactionOf = (it) => ["transactions", it.id, `${kindOf(it)} ${it.id}${it.blockId ? "" : ", pending"}`];
  const walletOf = (it) => ["wallets", it.address, `Wallet ${it.address}`];
  const delegateOf = (it) => ["delegates", it.username, `Delegate ${it.username}`];
  const tries = [];
  const look = (rows, to) => tries.push(rows.then((all) => all.map(to)));
  // Heights are shorter than the ids of old blocks.
  if (isNumber) look(some("api/blocks/search", text.length < 10 ? { height: Number(text) } : { id: text }), blockOf);
  if (isId) {
    look(some("api/blocks/search", { id: text }), blockOf);
    look(some("api/transactions/search", { id: text }), transactionOf);
    look(pooled(text), transactionOf);
  }
  if (/^[0-9A-Za-z]{34}$/.test(written)) look(some("api/wallets/search", { address: written }), walletOf);
  if (/^[0-9a-f]{66}$/.test(text)) look(some("api/wallets/search", { publicKey: text }), walletOf);
  // One request answers both questions: the delegate of this name, and the delegates whose names contain it.
  const delegates = USERNAME.test(text) ? some("api/delegates/search?limit=100", { username: text }) : Promise.resolve([]);
  look(
    delegates.then((all) => all.filter(({ username }) => username === text)),
    delegateOf,
  );
  const exact = (await Promise.all(tries)).flat();
  if (exact.length) return { exact, more: [] };
  const begins = /^[0-9a-f]{4,63}$/.test(text)
    ? [
        some(`api/transactions/search?limit=${NEWEST}`, {}).then((all) => all.filter(({ id }) => id.startsWith(text))),
        pooled(text),
        some(`api/blocks/search?limit=${NEWEST}`, {}).then((all) => all.filter(({ id }) => id.startsWith(text))),
      ]
    : [[], [], []];
  const [named, noted, confirmed, pending, blocks] = await Promise.all([
    delegates.then((all) => all.slice(0, 20)),
    written.length < 256 ? some("api/transactions/search?limit=25", { vendorField: written }) : [],
    ...begins,
  ]);
  const begun = [...confirmed.map(transactionOf), ...pending.map(transactionOf), ...blocks.map(blockOf)];
  if (begun.length && !named.length && !noted.length) return { exact: begun, more: [] };
  return { exact: [], more: [named, noted] };
}

/** The page of a search. A single exact match leads to its own page at once. */
export async function search(text) {
  const { exact, more } = await found(text);
  if (exact.length === 1) return { to: `#/${exact[0][0]}/${encodeURIComponent(exact[0][1])}` };
  if (exact.length)
    return {
      title: text,
      nodes: [
        card(
          `Found for “${text}”`,
          "",
          null,
          element(
            "ul",
            {},
            exact.map(([view, id, words]) => element("li", {}, link(view, id, words))),
          ),
        ),
      ],
      loads: [],
    };
  const [named, noted] = more;
  const nodes = [
    named.length ? card("Delegates", "", plural(named.length, "delegate"), rowsOf(COLUMNS.delegates, named, "Delegates found")) : null,
    noted.length
      ? card(
          "Transactions with this note",
          "",
          plural(noted.length, "transaction"),
          rowsOf(COLUMNS.transactions, noted, "Transactions found"),
        )
      : null,
  ].filter(Boolean);
  if (!nodes.length)
    nodes.push(
      card(
        `Nothing found for “${text}”`,
        "",
        null,
        element(
          "p",
          {},
          `Looked for: a height or the id of a block, the id of a transaction, the beginning of the id of one of the newest ${NEWEST}, an address, the public key of an account that has sent a transaction, a username or a part of it, and the whole note of a transaction.`,
        ),
      ),
    );
  return { title: text, nodes, loads: [] };
}

/** Reads the network's token, epoch and constants, for amounts and times. */
export async function about(network) {
  const found = await ask("api/node/configuration");
  network.token = found.token;
  network.epoch = Date.parse(found.constants.epoch) / 1000;
  network.delegates = found.constants.activeDelegates;
  network.slotSeconds = found.constants.blocktime;
  network.nethash = found.nethash;
}
