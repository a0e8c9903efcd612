// Every method of the package is in the table of docs/javascript.md, and every one in the table is there: `node methods.mjs FILE`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Chain, Network, Testnet, View } from "dposlab";

const [, table] = readFileSync(process.argv[2], "utf8").split("### Methods");
const rows = table.split("\n`events`")[0].split("\n").filter((line) => line.startsWith("| `"));
const told = new Set(rows.flatMap((row) => [...row.split(" | ")[0].matchAll(/`([^`]+)`/g)].map(([, code]) => code.split(/[([]/)[0])));
const named = new Set([...told].map((name) => name.split(".").at(-1)));
const methods = (prototype) => Object.getOwnPropertyNames(prototype).filter((name) => name !== "constructor" && name !== "closeStreams");
for (const kind of [Network, Testnet, Chain, View]) for (const name of methods(kind.prototype)) assert.ok(named.has(name), `${kind.name}.${name}`);
const testnet = await Testnet.start({ delegates: 3 });
const [chain, view] = [await testnet.chain(), await testnet.view()];
const things = { Testnet, testnet, chain, view, faults: testnet.faults, chaos: testnet.chaos };
for (const name of told) {
    const [member, owner] = name.split(".").reverse();
    assert.ok(member in (owner === undefined ? testnet : things[owner]), name);
}
await testnet.stop();
console.log(`${told.size} names`);
