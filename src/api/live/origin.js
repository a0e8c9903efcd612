// An isolated chain says what it is, where it comes from, and how to get back.
import { ask } from "./ask.js";
import { clock, element, number, plural } from "./show.js";

/** The number of the isolated chain that this page is of; null on the testnet's own page. */
const found = /\/chains\/(\d+)\/$/.exec(location.pathname);
export const CHAIN = found ? Number(found[1]) : null;
const PARENT = "../../";

/** The instant of the testnet's past from which a chain goes on, as an address below the testnet's. */
export const instantOf = ({ at, delivered, inputs }) => `?at=${at}-${delivered}-${inputs}#/`;

/** Puts the words where they are to stand. */
export async function tellOrigin(where) {
  if (CHAIN === null) return;
  const words = element("span", {}, `Isolated chain ${CHAIN} of this testnet.`);
  const links = element("span", { class: "links-back" }, element("a", { href: `${PARENT}#/` }, "Back to the testnet"));
  where.replaceChildren(element("div", { class: "origin" }, element("p", {}, words), links));
  where.hidden = false;
  // A client that may not use the lab sees the number of the chain only.
  const chain = await ask(`${PARENT}lab/chains/${CHAIN}`).catch(() => null);
  if (!chain) return;
  if (chain.from) {
    words.textContent = `Isolated chain ${CHAIN}: it went on from the testnet as it was at ${clock(Math.floor(chain.from.at / 1e6))}, height ${number(chain.from.height)}, and has gone its own way since.`;
    links.prepend(element("a", { href: `${PARENT}${instantOf(chain.from)}` }, "The testnet at that instant"));
  } else
    words.textContent = `Isolated chain ${CHAIN} of this testnet: it began with a genesis block of its own, with seed ${chain.seed} and ${plural(chain.delegates, "delegate")}.`;
}
