// One thing of the explorer: a block, a transaction, a wallet, a delegate; and what is found by a search.
import { ask, askSome, post } from "./ask.js";
import { card, coins, copier, element, facts, idLink, link, number, plural } from "./show.js";
import { List, amountOf, columnsOf, kindOf, rowsOf, COLUMNS, timeOf } from "./explorer.js";

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
  new List({ title, path, columns }, Number(query.get("page") ?? 1), (page) => `#/${view}/${encodeURIComponent(id)}?page=${page}`);

async function block(id, query) {
  const found = await askSome(`api/blocks/${encodeURIComponent(id)}`);
  if (!found) return { title: "Block", nodes: [nothing("block", id)], loads: [] };
  const height = Number(found.height);
  const transactions = list("Transactions of this block", `api/blocks/${found.id}/transactions`, "transactions", "blocks", id, query);
  const forger = found.generator;
  const beside = element(
    "span",
    { class: "beside" },
    height > 1 ? link("blocks", String(height - 1), "← before") : null,
    " ",
    link("blocks", String(height + 1), "after →"),
  );
  return {
    title: `Block ${number(height)}`,
    nodes: [
      card(
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
      ),
      found.transactions ? transactions.node : null,
    ],
    loads: found.transactions ? [() => transactions.load()] : [],
  };
}

async function transaction(id) {
  const path = encodeURIComponent(id);
  const found = (await askSome(`api/transactions/${path}`)) ?? (await askSome(`api/transactions/unconfirmed/${path}`));
  if (!found) return { title: "Transaction", nodes: [nothing("transaction", id)], loads: [] };
  const pending = !found.blockId;
  const known = new Set(["payments", "votes"]);
  const payments = found.asset?.payments;
  const rest = Object.fromEntries(Object.entries(found.asset ?? {}).filter(([name]) => !known.has(name)));
  return {
    title: "Transaction",
    nodes: [
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
    ],
    loads: [],
  };
}

async function wallet(id, query) {
  const path = encodeURIComponent(id);
  const found = await askSome(`api/wallets/${path}`);
  if (!found) return { title: "Wallet", nodes: [nothing("wallet", id)], loads: [] };
  const name = found.username ?? found.attributes?.delegate?.username;
  const vote = found.vote ?? found.attributes?.vote;
  const transactions = list("Transactions", `api/wallets/${path}/transactions`, columnsOf(found.address), "wallets", id, query);
  const { delegate, vote: voted, ...rest } = found.attributes ?? {};
  return {
    title: "Wallet",
    nodes: [
      card(
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
      ),
      transactions.node,
    ],
    loads: [() => transactions.load()],
  };
}

async function delegate(id, query) {
  const path = encodeURIComponent(id);
  const found = await askSome(`api/delegates/${path}`);
  if (!found) return { title: "Delegate", nodes: [nothing("delegate", id)], loads: [] };
  const blocks = list("Blocks", `api/delegates/${path}/blocks`, "blocks", "delegates", id, query);
  const voters = new List(
    { title: "Voters", path: `api/delegates/${path}/voters`, columns: "wallets", rows: 10, empty: "Nobody votes for this delegate." },
    Number(query.get("voters") ?? 1),
    (page) => `#/delegates/${path}?voters=${page}`,
  );
  return {
    title: found.username,
    nodes: [
      card(
        `Delegate ${found.username}`,
        "",
        element("span", { class: "soft" }, `rank ${number(found.rank)}`),
        facts([
          ["Address", idLink("wallets", found.address, 17)],
          ["Public key", code(found.publicKey)],
          ["Rank", number(found.rank)],
          ["Votes", coins(found.votes)],
          ["Share of all coin", `${number(found.production?.approval ?? 0, 2)} %`],
          ["Blocks forged", number(found.blocks?.produced ?? 0)],
          ["Fees", coins(found.forged?.fees ?? 0)],
          ["Rewards", coins(found.forged?.rewards ?? 0)],
          ["Forged in all", coins(found.forged?.total ?? 0)],
          ["Resigned", found.isResigned ? "yes" : null],
        ]),
      ),
      voters.node,
      blocks.node,
    ],
    loads: [() => blocks.load(), () => voters.load()],
  };
}

export const THINGS = { blocks: block, transactions: transaction, wallets: wallet, delegates: delegate };

const USERNAME = /^[a-z0-9!@$&_.]{1,20}$/;

/** Where a text may lead: [view, id, words]. */
async function found(text) {
  const path = encodeURIComponent(text);
  const tries = [];
  const look = (view, from, id, words) => tries.push(askSome(from).then((it) => (it ? [view, id(it), words(it)] : null)));
  if (/^\d{1,20}$/.test(text) || /^[0-9a-f]{64}$/.test(text))
    look(
      "blocks",
      `api/blocks/${path}`,
      (it) => (it.id === text ? it.id : String(it.height)),
      (it) => `Block ${number(Number(it.height))}`,
    );
  if (/^[0-9a-f]{64}$/.test(text)) {
    look(
      "transactions",
      `api/transactions/${path}`,
      (it) => it.id,
      (it) => `${kindOf(it)} ${it.id}`,
    );
    look(
      "transactions",
      `api/transactions/unconfirmed/${path}`,
      (it) => it.id,
      (it) => `${kindOf(it)} ${it.id}, pending`,
    );
  }
  if (/^[0-9A-Za-z]{34}$/.test(text) || /^[0-9a-f]{66}$/.test(text))
    look(
      "wallets",
      `api/wallets/${path}`,
      (it) => it.address,
      (it) => `Wallet ${it.address}`,
    );
  if (USERNAME.test(text))
    look(
      "delegates",
      `api/delegates/${path}`,
      (it) => it.username,
      (it) => `Delegate ${it.username}`,
    );
  const exact = (await Promise.all(tries)).filter(Boolean);
  if (exact.length) return { exact, more: [] };
  const [named, noted] = await Promise.all([
    USERNAME.test(text) ? post("api/delegates/search?limit=20", { username: text }).catch(() => []) : [],
    post("api/transactions/search?limit=25", { vendorField: text }).catch(() => []),
  ]);
  return { exact: [], more: [named ?? [], noted ?? []] };
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
          "Looked for: a height or the id of a block, the id of a transaction, an address, a public key, a username or its beginning, and the note of a transaction.",
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
