// The page as its readers met it: forms that say what they take, views that follow the network, and what a search finds.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browsing, figure, open, outcome, press, testnet, until } from "./testnet.mjs";

const folder = mkdtempSync(join(tmpdir(), "dposlab-explorer-"));
const TOKEN = "a-token-of-more-than-sixteen";
let browser;
let small;
const all = [];
const start = async (...options) => {
    const net = await testnet("--stage", "inline", ...options);
    all.push(net);
    return net;
};

before(async () => {
    writeFileSync(join(folder, "token"), TOKEN);
    [browser, small] = await Promise.all([
        browsing(),
        start("--pace", "manual", "--seed", "6", "--delegates", "7"),
    ]);
    await small.advance(20);
});

after(async () => {
    await browser?.close();
    for (const net of all) net.stop();
    rmSync(folder, { recursive: true, force: true });
});

const main = (page, text) => until(page, (text) => document.querySelector("main")?.innerText.includes(text), text);
const fact = (page, name, wanted) => until(page, ([name, wanted]) => {
    const dt = [...document.querySelectorAll(".facts dt")].find((one) => one.textContent === name);
    return dt && new RegExp(`^(?:${wanted})$`).test(dt.nextElementSibling.textContent);
}, [name, wanted]);

test("a comma separates thousands in an amount, as in those that the page shows, and is never taken for a point", async () => {
    const { page, told, close } = await open(browser, small);
    const { address } = small.ready.accounts[1];
    const balance = async () => BigInt((await small.get(`/api/wallets/${address}`)).balance);
    const before = await balance();
    await page.getByLabel("Address to pay").fill(address);
    for (const [text, paid] of [["1,000", 1000], ["2,500.5", 2500.5]]) {
        await page.getByLabel("Amount in coins").fill(text);
        await press(page, "Pay");
        await outcome(page, `${text}\u00a0TARK are on their way`);
        const id = (await page.locator(".outcome a").getAttribute("href")).split("/").pop();
        await small.post("/lab/advance", { until: { transaction: id }, limit: 100 });
        assert.equal((await small.get(`/api/transactions/${id}`)).amount, String(paid * 1e8));
    }
    assert.equal((await balance()) - before, 350050000000n);
    for (const wrong of ["1,5", "1,0000", ",5", "1.000,5", "1,000,00", "1.123456789"]) {
        await page.getByLabel("Amount in coins").fill(wrong);
        await press(page, "Pay");
        await outcome(page, `“${wrong}” is no amount: give coins such as 10, 1.5 or 1,000. A comma separates thousands`);
    }
    // The limit is named.
    await page.getByLabel("Amount in coins").fill("999999999999");
    await press(page, "Pay");
    await outcome(page, "999,999,999,999\u00a0TARK cannot be paid: 0.00000001\u00a0TARK to 92,233,720,368.54775807\u00a0TARK can.");
    await page.goto(`${small.origin}/#/lab`);
    for (const [text, said] of [["1,5", "“1,5” is no amount"], ["999999999999", "An account cannot begin with 999,999,999,999\u00a0TARK: 0.00000001"]]) {
        await page.getByLabel("Coins of each").fill(text);
        await page.getByRole("form", { name: "New accounts" }).getByRole("button", { name: "Make" }).click();
        await outcome(page, said);
    }
    assert.deepEqual(told.filter((line) => !line.includes("422")), []);
    await close();
});

test("the form of faults says what is wrong with nodes, and forgets it when another kind is chosen", async () => {
    const { page, told, close } = await open(browser, small);
    await figure(page, "Nodes live", "7 of 7");
    const begin = async (kind, label, text, said) => {
        await page.getByLabel("Kind of fault").selectOption({ label: kind });
        assert.equal(await page.locator(".outcome:not(:empty)").count(), 0, `${kind}: the answer for another kind is gone`);
        await page.locator(".fault").getByLabel(label, { exact: true }).fill(text);
        await press(page, "Begin");
        await outcome(page, said);
    };
    const also = "genesis_1 to genesis_7 is; nodes are numbers from 0 to 6, ranges such as 0-3, or names, with commas between them.";
    await begin("Isolate", "Nodes", "5-3", "5-3 is no range: give the smaller number first.");
    await begin("Partition", "Cut off", "3-0", "3-0 is no range: give the smaller number first.");
    await begin("Crash", "Nodes", "0-3; 5", `Nodes: “0-3;” is not possible, ${also}`);
    await begin("Partition", "Cut off", "0-3; 5", `Cut off: “0-3;” is not possible, ${also}`);
    await begin("Pause", "Nodes", "9", "Nodes: “9” is not possible, 0 to 6 is; nodes are numbers");
    await begin("Partition", "Cut off", "0-6", "These are all nodes, which cuts off none. Leave at least one node out.");
    await begin("Isolate", "Nodes", "9", "Nodes: “9” is not possible");
    await begin("Partition", "Cut off", "0-2 / 2-3", "Node 2 is in two parts. Name each node in one part only.");
    await begin("Other, as JSON", "Fault", '{"kind": "nope"}', "There is no kind “nope”. The kinds are partition, heal, ");
    assert.match(await page.locator(".outcome.wrong").textContent(), / and [a-z-]+\.$/);
    await page.goto(`${small.origin}/#/lab`);
    await page.getByLabel("Milliseconds").fill("99999999");
    await press(page, "Add");
    await outcome(page, "Milliseconds must be 60,000 or less.");
    await page.getByLabel("What goes wrong").selectOption("cut");
    assert.equal(await page.locator(".outcome:not(:empty)").count(), 0);
    assert.deepEqual(told.filter((line) => !line.includes("422")), []);
    await close();
});

test("the ring is read by keyboard, the link over the navigation leads to the content, and held events are filtered", async () => {
    // A payment that was waited for ends within a slot.
    await small.advance(1);
    const { page, told, close } = await open(browser, small);
    await figure(page, "Nodes live", "7 of 7");
    const { slots } = await small.get("/lab/round");
    await page.locator(".ringed").focus();
    await page.keyboard.press("Home");
    await until(page, (owner) => document.querySelector(".ringing .told").textContent.startsWith(owner), slots[0].owner);
    await page.keyboard.press("ArrowRight");
    await until(page, (owner) => document.querySelector(".ringing .told").textContent.startsWith(owner), slots[1].owner);

    await until(page, () => document.querySelector(".events")?.textContent.includes("forged height"));
    await press(page, "Hold");
    await press(page, "Blocks");
    const left = await page.locator(".events").innerText();
    assert.ok(!left.includes("forged height") && left.includes("round 2 began"), left);
    const { height } = await small.get("/lab/tree");
    await press(page, "+1 slot");
    await figure(page, "Height", height + 1);
    await press(page, "Blocks");
    const newest = `forged height ${height + 1}`;
    const held = await page.locator(".events").innerText();
    assert.ok(held.includes("forged height") && !held.includes(newest), held);
    await press(page, "Hold");
    await until(page, (newest) => document.querySelector(".events").textContent.includes(newest), newest);
    assert.match(await page.locator(".events time").first().getAttribute("title"), /When the node acted\. The time of a block is the begin of its slot/);

    for (const view of ["#/", "#/blocks"]) {
        await page.goto(`${small.origin}/${view}`);
        await page.waitForSelector("main .card");
        await page.locator(".skip").focus();
        await page.keyboard.press("Enter");
        assert.equal(await page.evaluate(() => document.activeElement.id), "page");
        assert.ok(page.url().endsWith(view), page.url());
        assert.ok(!(await page.locator("main").innerText()).includes("There is no such view"));
    }
    assert.deepEqual(told, []);
    await close();
});

test("names of faults in the plot do not cover each other, also of those that begin one after the other or at once", async () => {
    const net = await start("--pace", "manual", "--seed", "7", "--delegates", "7");
    await net.advance(60);
    const { page, told, close } = await open(browser, net);
    await figure(page, "Nodes live", "7 of 7");
    const shown = async (names) => {
        await until(page, (names) => {
            const all = [...document.querySelectorAll(".flowing .lane ~ text, .flowing .lane + text")].map((text) => text.textContent);
            return names.every((name) => all.includes(name));
        }, names);
        const boxes = await page.locator(".flowing g:has(> .lane) > text").evaluateAll((all) => all.map((text) => ({ name: text.textContent, ...text.getBoundingClientRect().toJSON() })));
        for (const [index, one] of boxes.entries())
            for (const other of boxes.slice(index + 1))
                assert.ok(one.right <= other.left || other.right <= one.left || one.bottom - 4 <= other.top || other.bottom - 4 <= one.top, `${one.name} and ${other.name} cover each other`);
    };
    await net.post("/lab/faults", { kind: "delay", by_ms: 300, until: { after: 8 } });
    await figure(page, "Faults in force", "1");
    await net.advance(2);
    await net.post("/lab/faults", { kind: "drop", chance: 0.1, until: { after: 8 } });
    await net.post("/lab/faults", { kind: "pause", nodes: [1], until: { after: 8 } });
    await figure(page, "Faults in force", "2");
    await net.advance(2);
    await net.post("/lab/faults", { kind: "isolate", nodes: [6] });
    await shown(["delay", "drop", "pause", "isolate"]);
    await net.advance(20);
    await shown(["delay", "drop", "pause", "isolate"]);
    assert.deepEqual(told, []);
    await close();
});

test("lists, the lab and single things come back by themselves after the server was away", async () => {
    for (const view of ["#/blocks", "#/lab", "#/wallets/genesis_1", "#/blocks/3"]) {
        const { page, close } = await open(browser, small, `/${view}`);
        await until(page, () => document.querySelector("main .card") && !/^…$/m.test(document.querySelector("main").innerText));
        const seen = await page.locator("main .card h2").allTextContents();
        await page.route(/\/(api|lab)\//, (route) => route.abort());
        await until(page, () => document.querySelector(".banner[role=alert]")?.textContent === "The testnet does not answer.");
        assert.deepEqual(await page.locator("main .card h2").allTextContents(), seen, "what was seen stays");
        await page.unrouteAll({ behavior: "ignoreErrors" });
        await until(page, () => !document.querySelector(".banner"));
        assert.deepEqual(await page.locator("main .card h2").allTextContents(), seen);
        await close();
    }
    // It was away when the address was opened.
    const { page, close } = await open(browser, small, "/#/blocks");
    await until(page, () => document.querySelectorAll("main tbody tr").length > 0);
    await page.route(/\/api\//, (route) => route.abort());
    await page.evaluate(() => { location.hash = "#/blocks/3"; });
    await main(page, "The testnet does not answer.");
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await main(page, "Block 3");
    await close();
});

test("an open block, transaction, wallet and delegate follow the chain, and focus and scroll stay", async () => {
    const net = await start("--pace", "manual", "--seed", "16", "--delegates", "7");
    await net.advance(6);
    const { address } = net.ready.accounts[2];
    const { transactions: [id] } = await net.post("/lab/faucet", { recipient: address, amount: "700000000" });
    const { page, told, close } = await open(browser, net, "/#/blocks/3", { height: 260 });
    const { confirmations } = await net.get("/api/blocks/3");
    await fact(page, "Confirmations", String(confirmations));
    const copy = page.getByRole("button", { name: "Copy the id" });
    const keeps = async (act) => {
        await copy.focus();
        await page.evaluate(() => scrollTo(0, 90));
        const before = await page.evaluate(() => scrollY);
        assert.ok(before > 0);
        await act();
        assert.equal(await page.evaluate(() => scrollY), before);
        assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Copy the id");
    };
    await keeps(async () => {
        await net.advance(1);
        await fact(page, "Confirmations", String((await net.get("/api/blocks/3")).confirmations));
    });
    const { transactions: [other] } = await net.post("/lab/faucet", { recipient: address, amount: "100000000" });
    await page.goto(`${net.origin}/#/transactions/${other}`);
    await fact(page, "Block", "in none yet.*");
    await keeps(async () => {
        await net.post("/lab/advance", { until: { transaction: other }, limit: 100 });
        await fact(page, "Confirmations", "[1-9]\\d*");
    });
    assert.ok(!(await page.locator("main").innerText()).includes("pending"));
    const balance = async () => (Number((await net.get(`/api/wallets/${address}`)).balance) / 1e8).toLocaleString("en");
    await page.goto(`${net.origin}/#/wallets/${address}`);
    await fact(page, "Balance", `${await balance()}.TARK`);
    const { transactions: [third] } = await net.post("/lab/faucet", { recipient: address, amount: "300000000" });
    await net.post("/lab/advance", { until: { transaction: third }, limit: 100 });
    await fact(page, "Balance", `${await balance()}.TARK`);
    assert.ok(id !== third);
    await page.goto(`${net.origin}/#/delegates/genesis_1`);
    const forged = (await net.get("/api/delegates/genesis_1")).blocks.produced;
    await fact(page, "Blocks forged", String(forged));
    assert.match(await page.locator(".facts [title]", { hasText: /^\d+$/ }).first().getAttribute("title"), /Ranks are fixed at the begin of a round/);
    await net.advance(20);
    await fact(page, "Blocks forged", String((await net.get("/api/delegates/genesis_1")).blocks.produced));
    assert.deepEqual(told, []);

    // Another testnet answers at this address from now on.
    await page.goto(`${net.origin}/#/blocks/3`);
    await fact(page, "Id", `${(await net.get("/api/blocks/3")).id}Copy`);
    await page.route(/\/(api|lab)\//, (route) => route.abort());
    await until(page, () => document.querySelector(".banner[role=alert]"));
    await page.route(/\/(api|lab)\//, async (route) => route.fulfill({ response: await route.fetch({ url: route.request().url().replace(net.origin, small.origin) }) }));
    await fact(page, "Id", `${(await small.get("/api/blocks/3")).id}Copy`);
    await until(page, () => !document.querySelector(".banner"));
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await close();
});

test("a search takes beginnings of ids and capital letters, and what is not there is no failure", async () => {
    const { page, told, close } = await open(browser, small, "/#/delegates");
    await until(page, () => document.querySelector("th[title]")?.title.startsWith("Ranks are fixed at the begin of a round."));
    const [transaction] = await small.get("/api/transactions?limit=1");
    const { id: block } = await small.get("/api/blocks/9");
    const { publicKey } = small.ready.accounts[5];
    const { address: delegate, publicKey: key } = await small.get("/api/delegates/genesis_3");
    for (const [text, address, shown] of [
        [transaction.id.slice(0, 12), `#/transactions/${transaction.id}`, transaction.id],
        [transaction.id.toUpperCase(), `#/transactions/${transaction.id}`, transaction.id],
        [block.slice(0, 12), "#/blocks/9", block],
        [block, `#/blocks/${block}`, block],
        ["9", "#/blocks/9", block],
        ["GENESIS_3", "#/delegates/genesis_3", delegate],
        [delegate, `#/wallets/${delegate}`, delegate],
        [key, `#/wallets/${delegate}`, delegate],
        [publicKey, `#/search/${publicKey}`, "the public key of an account that has sent a transaction"],
        ["ff".repeat(32), `#/search/${"ff".repeat(32)}`, "Nothing found"],
        ["99999", "#/search/99999", "Nothing found"],
        ["nobody_of_this", "#/search/nobody_of_this", "Nothing found"],
    ]) {
        await page.getByRole("searchbox").fill(text);
        await page.getByRole("searchbox").press("Enter");
        await until(page, ([address, shown]) => location.hash === address && document.querySelector("main")?.textContent.includes(shown), [address, shown]).catch(async (why) => { throw new Error(`${text}: ${page.url()} ${await page.locator("main").innerText()}`, { cause: why }); });
    }
    // It waits in the pool.
    const { transactions: [pending] } = await small.post("/lab/faucet", { recipient: delegate, amount: "100000000" });
    for (const text of [pending, pending.slice(0, 10)]) {
        await page.goto(`${small.origin}/#/search/${text}`);
        await until(page, (pending) => location.hash === `#/transactions/${pending}` && document.querySelector("main")?.textContent.includes("in none yet"), pending);
    }
    await small.advance(2);
    // A page after the last one is the last one.
    for (const view of ["blocks", "delegates", `wallets/${delegate}`]) {
        await page.goto(`${small.origin}/#/${view}?page=9999`);
        await until(page, () => document.querySelectorAll("main tbody tr").length > 0 && !location.hash.includes("9999"));
        assert.ok(!(await page.locator("main").innerText()).includes("9,999"));
    }
    assert.deepEqual(told, []);
    await close();
});

test("the lab asks for its token, and the first page of a shared testnet fits a narrow screen", async () => {
    const net = await start("--speed", "50", "--seed", "5", "--delegates", "51", "--lab", "token", "--lab-token", join(folder, "token"));
    for (let height = 0; height < 14; ({ height } = (await net.get("/api/blockchain")).block));
    for (const theme of ["light", "dark"]) {
        const { page, told, close } = await open(browser, net, "/", { width: 390, height: 844, theme });
        await until(page, () => document.querySelectorAll("main tbody tr").length >= 16);
        const cut = await page.locator("main .scroll").evaluateAll((all) => all.map((table) => table.scrollWidth - table.clientWidth));
        assert.deepEqual(cut, [0, 0], "no column is outside");
        // The shade at the edge of a wider table differs from the card.
        await page.goto(`${net.origin}/#/blocks`);
        await until(page, () => document.querySelectorAll("main tbody tr").length > 9);
        const shade = await page.locator("main .scroll").evaluate((table) => getComputedStyle(table).backgroundImage.match(/rgba\((\d+), (\d+), (\d+), 0\.\d+\)/).slice(1).map(Number));
        assert.deepEqual(shade, theme === "dark" ? [255, 255, 255] : [0, 0, 0]);
        assert.deepEqual(told, []);
        await close();
    }
    const { page, told, close } = await open(browser, net, "/#/lab");
    await page.getByLabel("Token of --lab-token").fill("not-the-right-token");
    await press(page, "Use this token");
    await outcome(page, "This is not the token of this testnet.");
    await page.getByLabel("Token of --lab-token").fill(TOKEN);
    await press(page, "Use this token");
    await page.getByRole("form", { name: "New accounts" }).waitFor();
    // In the past the buttons of its two rows stand apart.
    await page.goto(`${net.origin}/#/`);
    await press(page, "Back by one slot");
    const [back, step] = await Promise.all([page.getByRole("button", { name: "Back to now" }).boundingBox(), page.getByRole("button", { name: "On by one slot" }).boundingBox()]);
    assert.ok(step.y - (back.y + back.height) >= 4, `${step.y - (back.y + back.height)} px`);
    assert.deepEqual(told, []);
    await close();
});
