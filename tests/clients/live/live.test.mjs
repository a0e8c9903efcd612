// The page at `/`, used as people use it: what it shows is what /lab and /api answer, its buttons act, and it asks nobody else.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browsing, figure, open, outcome, press, testnet, until } from "./testnet.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "dposlab-live-"));
const TOKEN = "a-token-of-more-than-sixteen";

let browser;
let wide;
let small;
const all = [];
const start = async (...options) => {
    const net = await testnet(...options);
    all.push(net);
    return net;
};

before(async () => {
    writeFileSync(join(folder, "token"), TOKEN);
    [browser, wide, small] = await Promise.all([
        browsing(),
        start("--pace", "manual", "--stage", "inline", "--seed", "5"),
        start("--pace", "manual", "--stage", "inline", "--seed", "6", "--delegates", "5"),
    ]);
    await wide.advance(20);
    await small.advance(20);
});

after(async () => {
    await browser?.close();
    for (const net of all) net.stop();
    rmSync(folder, { recursive: true, force: true });
});

const heights = async (net) => (await net.get("/lab")).nodes.map((node) => node.height);

test("the live view follows a partition, which a button begins, and its end", async () => {
    const { page, told, close } = await open(browser, wide);
    await figure(page, "Branches", 1);
    await page.getByLabel("Cut off").fill("0-19");
    await press(page, "Begin");
    await outcome(page, "partition, is in force");
    await until(page, () => document.querySelector("svg.nodes")?.getAttribute("aria-label").includes("cut into 2 parts of 20, 31"));
    assert.equal(await page.locator(".cut-count").textContent(), "620 links cut");
    await page.getByLabel("How many").fill("30");
    await press(page, "Advance");
    await outcome(page, "Played 30 slots");
    await figure(page, "Branches", 2);
    const [one, other] = await page.locator(".tree .stand:not(.small)").allTextContents();
    assert.deepEqual([one, other].sort(), ["20 nodes", "31 nodes"]);
    assert.match(await page.locator(".legend").allTextContents().then((all) => all.join()), /on a branch from height \d+/);
    // What is drawn is what is told: each branch has its blocks, each slot its state.
    const tree = await wide.get("/lab/tree?from=1");
    const lost = tree.blocks.filter((block) => !block.winning);
    const drawn = await page.locator(".tree .block").evaluateAll((blocks) => blocks.map((block) => block.dataset.block));
    assert.ok(lost.length > 3 && lost.every(({ id }) => drawn.includes(id)), `${lost.length} blocks of the other branch`);
    const round = await wide.get("/lab/round");
    const count = (state) => round.slots.filter((slot) => slot.state === state).length;
    assert.ok(count("elsewhere") > 0 && count("elsewhere") === lost.filter(({ height }) => height >= round.first).length);
    assert.ok((await page.locator(".ringed").getAttribute("aria-label")).includes(`${count("forged")} of 51 blocks forged, ${count("missed")} missed, ${count("elsewhere")} on another branch`));
    assert.ok((await page.locator(".events").innerText()).includes("fault 0 began: partition"));
    // Whose slots they are is told of a round with missed slots, too.
    assert.deepEqual(await page.locator(".owners text").allTextContents(), round.slots.map(({ owner }) => owner ?? "genesis blo…"));

    await page.getByRole("button", { name: "End fault 0, partition" }).click();
    await outcome(page, "Fault 0 has ended");
    // A few slots at a time: the page keeps the last events only.
    for (let turns = 0; turns < 60 && new Set((await wide.get("/lab")).nodes.map((node) => node.tip)).size > 1; turns += 1) await wide.advance(7);
    await figure(page, "Branches", 1);
    await figure(page, "On the winning tip", "100 %");
    await until(page, () => !document.querySelector("svg.nodes").getAttribute("aria-label").includes("cut"));
    await until(page, () => /rolled back from height/.test(document.querySelector(".events")?.textContent));
    assert.deepEqual(told, []);
    await close();
});

test("pace, advance, snapshots, reorganisations, the faucet, crashes: the buttons act", async () => {
    const { page, told, close } = await open(browser, small);
    const [before] = await heights(small);
    await figure(page, "Height", before);
    await press(page, "+1 slot");
    await figure(page, "Height", before + 1);

    await press(page, "100×");
    await until(page, () => document.querySelector('.pace[aria-pressed="true"]')?.textContent === "100×");
    assert.equal((await small.get("/lab/pace")).pace, 100);
    await press(page, "Manual");
    await outcome(page, "The pace is manual");
    assert.equal((await small.get("/lab/pace")).pace, "manual");

    await page.getByLabel("Name of the snapshot").fill("<b onmouseover=alert(1)>before</b>");
    await press(page, "Take");
    await outcome(page, "Snapshot 1 keeps height");
    const [kept] = await heights(small);
    await page.getByLabel("How many").fill("9");
    await press(page, "Advance");
    await outcome(page, "Played 9 slots");
    await press(page, "Go back to 1");
    await figure(page, "Height", kept);
    assert.equal((await heights(small))[0], kept);
    assert.equal(await page.locator(".snapshots bdi").innerText(), "<b onmouseover=alert(1)>before</b>", "a name is text, and turns no other");

    await page.getByLabel("Blocks to leave").fill("2");
    await press(page, "Reorganise");
    await outcome(page, "2 blocks left for 2 others: 5 nodes went along");
    await until(page, () => document.querySelectorAll(".tree .block.left").length === 2);

    const { address } = small.ready.accounts[0];
    await page.getByLabel("Address to pay").fill(address);
    await page.getByLabel("Amount in coins").fill("1.5");
    await press(page, "Pay");
    await outcome(page, "1.5");
    const id = (await page.locator(".outcome a").getAttribute("href")).split("/").pop();
    await figure(page, "Pool, mean", "[1-9.]+|0\\.[2-9]");
    await small.advance(3);
    assert.equal((await small.get(`/api/transactions/${id}`)).amount, "150000000");

    await page.locator("svg.nodes").focus();
    for (const key of ["Home", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
    await page.locator(".standing .read", { hasText: "Node 2" }).getByRole("button", { name: "Crash" }).click();
    await figure(page, "Nodes live", "4 of 5");
    assert.equal((await small.get("/lab")).nodes[2].cause, "crash");
    await press(page, "Restart");
    await figure(page, "Nodes live", "5 of 5");

    await page.getByLabel("Kind of fault").selectOption("");
    await page.getByLabel("Fault", { exact: true }).fill('{"kind": "crash", "nodes": ["nobody"]}');
    await press(page, "Begin");
    await outcome(page, "nodes: “nobody” is not possible, genesis_1 to genesis_5 is.");
    assert.deepEqual(told.filter((line) => !line.includes("422")), []);
    await close();
});

test("the answer to a button stands beside it, in words of people, also on a small screen", async () => {
    for (const [width, height] of [[390, 844], [1440, 900]]) {
        const { page, told, close } = await open(browser, small, "/", { width, height });
        await page.waitForSelector(".tile");
        const field = async (name, text) => page.getByLabel(name, { exact: true }).fill(text);
        // A button that the press replaces by another one stands for its line.
        const answered = async (button, text, near = null) => {
            const pressed = page.getByRole("button", { name: button, exact: true });
            await pressed.click();
            await outcome(page, text);
            const answer = page.locator(".outcome", { hasText: text });
            const [from, to] = [await (near ? page.locator(near) : pressed).boundingBox(), await answer.boundingBox()];
            const away = Math.max(0, to.y - (from.y + from.height), from.y - (to.y + to.height));
            assert.ok(away < 40, `${width} px: '${text}' stands ${away} px from ${button}`);
            assert.ok(to.y >= 0 && to.y + to.height <= height && to.x >= 0 && to.x + to.width <= width, `${width} px: '${text}' is outside`);
            assert.equal(await page.locator(".outcome:not(:empty)").count(), 1, "the answer to an earlier button is gone");
            assert.doesNotMatch(await answer.textContent(), /key '|found |arktoshi|byte|undefined|unsupported|integer|u32|fails because/i);
        };
        await answered("Pay", "Give the address to pay.");
        await field("Address to pay", "nonsense");
        await answered("Pay", "“nonsense” is no address of this network.");
        await field("Address to pay", small.ready.accounts[0].address);
        await field("Amount in coins", "much");
        await answered("Pay", "“much” is no amount: give coins such as 10, 1.5 or 1,000.");
        await field("Amount in coins", "99999999999");
        await answered("Pay", "99,999,999,999\u00a0TARK cannot be paid: ");
        await field("Blocks to leave", "4000");
        await answered("Reorganise", "4,000 blocks cannot be left: 1 to ");
        await answered("Begin", "Cut off: give something like 0-3, 7");
        await page.getByLabel("Kind of fault").selectOption({ label: "Crash" });
        await page.getByRole("textbox", { name: "Nodes" }).fill("nobody");
        await answered("Begin", "Nodes: “nobody” is not possible, genesis_1 to genesis_5 is; nodes are numbers from 0 to 4");
        await page.getByLabel("Kind of fault").selectOption({ label: "Partition" });
        await field("Cut off", " / ");
        await answered("Begin", "Cut off: give something like 0-3, 7");
        await page.getByLabel("Kind of fault").selectOption({ label: "Drop messages" });
        await field("Chance", "20 %");
        await answered("Begin", "Chance: “20 %” is no number: give something like 0.2.");
        await page.getByLabel("Kind of fault").selectOption({ label: "Delay messages" });
        await field("By ms", "-5");
        await answered("Begin", "By ms: “-5” is not possible, a whole number from 0 on is.");
        await field("By ms", "300");
        await field("Seconds it lasts; empty until it is ended", "-3");
        await answered("Begin", "The seconds it lasts: “-3” is not possible");
        // A field that is not shown stops no other form.
        await page.getByLabel("Kind of fault").selectOption("");
        await field("Fault", "{kind");
        await answered("Begin", "This is no JSON");
        await field("Fault", '{"kind": "slow", "nodes": [1], "step_ms": "x"}');
        await answered("Begin", "step_ms: “x” is not possible, a whole number from 0 on is.");
        await field("Fault", '{"kind": "nope"}');
        await answered("Begin", "There is no kind “nope”. The kinds are partition, heal, ");
        await field("How many", "0");
        await answered("Advance", "“0” cannot be played: give a whole number from 1 to 100,000.");
        await page.getByLabel("Unit", { exact: true }).selectOption("height");
        await field("How many", "2");
        await answered("Advance", "The chain has height ");
        await field("Blocks to leave", "-3");
        await answered("Reorganise", "Blocks to leave: “-3” is not possible");
        await field("Name of the snapshot", "here");
        await answered("Take", "keeps height");
        await page.locator("svg.nodes").focus();
        await page.keyboard.press("Home");
        await answered("Crash", "Node 0 has crashed.", ".standing .read");
        await answered("Restart", "Node 0 is up again.", ".standing .read");
        await page.goto(`${small.origin}/#/lab`);
        await field("How many accounts", "5000");
        await page.getByRole("form", { name: "New accounts" }).waitFor();
        const make = async (form, text) => {
            const pressed = page.getByRole("form", { name: form }).getByRole("button");
            await pressed.click();
            await outcome(page, text);
            const [from, to] = [await pressed.boundingBox(), await page.locator(".outcome", { hasText: text }).boundingBox()];
            assert.ok(to.y - (from.y + from.height) < 40 && to.y + to.height <= height, `${width} px: '${text}' stands at ${to.y}, the button at ${from.y}`);
            assert.doesNotMatch(await page.locator(".outcome", { hasText: text }).textContent(), /key '|found |arktoshi|fails because/i);
        };
        await make("New accounts", "The number of accounts: “5000” is not possible, a whole number from 1 to 1000 is.");
        await field("How many accounts", "1");
        await field("Coins of each", "0");
        await make("New accounts", "An account cannot begin with 0\u00a0TARK: 0.00000001\u00a0TARK to ");
        await field("Milliseconds", "99999999");
        await make("New rule", "Milliseconds must be 60,000 or less.");
        await field("Milliseconds", "soon");
        await field("Per cent of them", "300");
        await make("New rule", "“300” is no share: give 0 to 100 per cent.");
        await page.getByLabel("Delegates; empty").fill("999");
        await make("New chain", "Delegates must be 200 or less.");
        assert.deepEqual(told.filter((line) => !line.includes("422")), []);
        await close();
    }
});

test("every pace, every advance, every kind of fault of the form, and every other button acts", async () => {
    const net = await start("--pace", "manual", "--stage", "inline", "--seed", "11", "--delegates", "5");
    await net.advance(3);
    const { page, told, close } = await open(browser, net);
    await figure(page, "Height", 4);
    for (const [name, pace] of [["On demand", "on-demand"], ["1×", 1], ["10×", 10], ["Max", "max"], ["Manual", "manual"]]) {
        await press(page, name);
        await until(page, (name) => document.querySelector('.pace[aria-pressed="true"]')?.textContent === name, name);
        assert.equal((await net.get("/lab/pace")).pace, pace);
    }
    const { round } = await net.get("/lab/round");
    await figure(page, "Round", `${round.toLocaleString("en")}, \\d of 5`);
    await press(page, "+1 round");
    await figure(page, "Round", `${(round + 1).toLocaleString("en")}, \\d of 5`);
    const unit = page.getByLabel("Unit", { exact: true });
    await unit.selectOption("rounds");
    await page.getByLabel("How many").fill("2");
    await press(page, "Advance");
    await figure(page, "Round", `${(round + 3).toLocaleString("en")}, \\d of 5`);
    const [height] = await heights(net);
    await unit.selectOption("height");
    await page.getByLabel("How many").fill(String(height + 7));
    await press(page, "Advance");
    await figure(page, "Height", (height + 7).toLocaleString("en"));

    for (const [name, fields] of [
        ["Isolate", { Nodes: "4" }],
        ["Crash", { Nodes: "3" }],
        ["Pause", { Nodes: "genesis_3" }],
        ["Delegates offline", { Delegates: "genesis_1, genesis_2" }],
        ["Delay messages", { "By ms": "300" }],
        ["Drop messages", { Chance: "0.2" }],
        ["Other, as JSON", { Fault: '{"kind": "slow", "nodes": [1], "step_ms": 20}' }],
    ]) {
        await page.getByLabel("Kind of fault").selectOption({ label: name });
        for (const [field, text] of Object.entries(fields)) await page.locator(".fault").getByLabel(field, { exact: true }).fill(text);
        if (name === "Delay messages") await page.getByLabel("Seconds it lasts; empty until it is ended").fill("900");
        const { length } = await net.get("/lab/faults");
        await press(page, "Begin");
        await outcome(page, `Fault ${length}, `);
        const added = (await net.get("/lab/faults"))[length];
        assert.equal(added.state, "in-force", JSON.stringify(added));
        await page.getByRole("button", { name: `End fault ${length}, ${added.fault.kind}` }).click();
        await outcome(page, `Fault ${length} has ended`);
    }
    await page.getByLabel("Kind of fault").selectOption({ label: "Heal partitions" });
    await press(page, "Begin");
    await outcome(page, "heal");

    await press(page, "Take");
    await outcome(page, "Snapshot 1 keeps");
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "File of snapshot 1" }).click()]);
    assert.ok(readFileSync(await download.path(), "utf8").startsWith('{"state":1,'));
    await press(page, "Delete 1");
    await outcome(page, "Snapshot 1 is deleted");
    assert.deepEqual((await net.get("/lab")).snapshots, []);

    // The chips leave events out, Hold keeps the list, and the theme changes.
    await net.advance(1);
    await until(page, () => document.querySelector(".events")?.textContent.includes("forged height"));
    await press(page, "Blocks");
    await until(page, () => !document.querySelector(".events").textContent.includes("forged height"));
    await press(page, "Blocks");
    await press(page, "Hold");
    const held = await page.locator(".events").innerText();
    const [before] = await heights(net);
    await press(page, "+1 slot");
    await figure(page, "Height", (before + 1).toLocaleString("en"));
    assert.equal(await page.locator(".events").innerText(), held);
    await press(page, "Hold");
    await until(page, (held) => document.querySelector(".events").innerText !== held, held);
    await press(page, "Light or dark");
    assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
    assert.deepEqual(told, []);
    await close();
});

test("a search finds blocks, transactions, wallets and delegates, and says where nothing is", async () => {
    const { page, told, close } = await open(browser, small, "/#/blocks");
    await small.advance(1);
    const block = await small.get("/api/blocks/5");
    const [transaction] = await small.get("/api/transactions?limit=1");
    const wallet = await small.get(`/api/wallets/${small.ready.accounts[0].address}`);
    const delegate = await small.get("/api/delegates/genesis_3");
    for (const [text, address, shown] of [
        ["5", "#/blocks/5", block.id],
        [block.id, `#/blocks/${block.id}`, block.signature],
        [transaction.id, `#/transactions/${transaction.id}`, transaction.blockId],
        [wallet.address, `#/wallets/${wallet.address}`, wallet.publicKey ?? wallet.address],
        [delegate.publicKey, `#/wallets/${delegate.address}`, delegate.address],
        ["genesis_3", "#/delegates/genesis_3", delegate.publicKey],
        ["no such thing", "#/search/no%20such%20thing", "Nothing found"],
    ]) {
        await page.getByRole("searchbox").fill(text);
        await page.getByRole("searchbox").press("Enter");
        await until(page, ([address, shown]) => location.hash === address && document.querySelector("main")?.textContent.includes(shown), [address, shown]);
    }
    // A beginning of a username leads to all that have it.
    await page.goto(`${small.origin}/#/search/genesis_`);
    await until(page, () => document.querySelectorAll("main tbody tr").length >= 5);
    // What is not there is answered with 404, which the console tells.
    assert.deepEqual(told.filter((line) => !/40[04]|422/.test(line)), []);
    await close();
});

test("every page of the explorer shows what the API answers, and turns its pages", async () => {
    await wide.advance(40);
    const { page, told, close } = await open(browser, wide, "/#/delegates");
    await until(page, () => document.querySelectorAll("main tbody tr").length === 51);
    const delegates = await wide.get("/api/delegates?limit=100");
    const shown = await page.locator("main tbody tr").evaluateAll((rows) => rows.map((row) => [row.cells[0].textContent, row.cells[1].textContent]));
    assert.deepEqual(shown, delegates.map(({ rank, username }) => [String(rank), username]));
    await page.goto(`${wide.origin}/#/blocks?page=2`);
    const blocks = await wide.get("/api/blocks?limit=25&page=2");
    await until(page, (height) => document.querySelector("main tbody a")?.textContent === height, blocks[0].height.toLocaleString("en"));
    await page.getByRole("link", { name: "Newer" }).click();
    await until(page, (height) => document.querySelector("main tbody a")?.textContent === height, (blocks[0].height + 25).toLocaleString("en"));
    await page.getByRole("link", { name: (blocks[0].height + 25).toLocaleString("en"), exact: true }).click();
    await until(page, () => document.querySelector("main h2")?.textContent.startsWith("Block "));
    // A list that is shown follows the chain.
    await page.goto(`${wide.origin}/#/blocks`);
    await wide.advance(1);
    const { height } = (await wide.get("/api/blockchain")).block;
    await until(page, (height) => document.querySelector("main tbody a")?.textContent === height, height.toLocaleString("en"));
    assert.deepEqual(told, []);
    await close();
});

test("a round of turns and short slots: its blocks, and the events that one line stands for", async () => {
    const net = await start("--pace", "manual", "--stage", "inline", "--seed", "5", "--delegates", "21", "--set", "rules.base=eos", "--set", "network.block_time_s=4");
    await net.advance(5);
    const { page, told, close } = await open(browser, net, "/#/pool");
    const down = [[8e6, 1], [9e6, 1], [11e6, 2], [13e6, 3]].map(([at, node]) => ({ at, node, kind: "node.down", cause: "crash" }));
    await page.route(/\/lab\/happened/, (route) => route.fulfill({ json: { data: down } }));
    await page.goto(`${net.origin}/#/`);
    const { round, blocks } = await net.get("/lab/round");
    assert.equal(blocks, 252);
    await figure(page, "Round", `${round}, \\d+ of 252`);
    assert.match(await page.locator(".ringed").getAttribute("aria-label"), /of 252 blocks forged/);
    // Two nodes within a slot, one of them twice, and one in the next.
    await until(page, () => document.querySelector(".events")?.textContent.includes("2 nodes"));
    const lines = await page.locator(".events li b").allTextContents();
    assert.deepEqual(lines.slice(0, 2).map((line) => line.trim()), ["genesis_4", "2 nodes:"]);
    await press(page, "+1 round");
    await figure(page, "Round", `${round + 1}, \\d+ of 252`);
    assert.deepEqual(told, []);
    await close();
});

test("text of others is text: usernames, notes and reasons never become elements", async () => {
    const { page, told, close } = await open(browser, small, "/#/pool");
    const evil = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`;
    await page.route(/\/(api|lab)(\/|\?|$)/, async (route) => {
        if (route.request().url().includes("/lab/events")) {
            const events = [{ at: 8e6, node: 0, kind: "block.refused", reason: evil }, { at: 8e6, node: 0, kind: "block.forged", block: { id: "ff".repeat(32), height: 999 } }];
            return route.fulfill({ contentType: "text/event-stream", body: events.map((event, index) => `id: ${index + 9}\ndata: ${JSON.stringify(event)}\n\n`).join("") });
        }
        const response = await route.fetch();
        const text = (await response.text()).replaceAll(/"(genesis_\d)"/g, JSON.stringify(evil)).replace(/"vendorField":"[^"]*"|"version":[12]/g, `"vendorField":${JSON.stringify(evil)}`);
        return route.fulfill({ response, body: text });
    });
    const { id } = (await small.get("/api/transactions?limit=1"))[0];
    for (const address of ["#/", "#/blocks", "#/delegates", "#/delegates/genesis_1", "#/transactions", `#/transactions/${id}`, `#/search/${encodeURIComponent(evil)}`]) {
        await page.goto(`${small.origin}/${address}`);
        await until(page, () => document.querySelector("main")?.textContent.includes("<img src=x")).catch(async (why) => { throw new Error(`${address}: ${await page.locator("main").innerText()}`, { cause: why }); });
    }
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.notEqual(await page.title(), "taken");
    // A block that is on no branch that the page knows has the colour of none.
    await page.goto(`${small.origin}/#/`);
    await until(page, () => document.querySelector(".events")?.textContent.includes("forged height 999"));
    const signs = await page.locator(".events li", { hasText: "forged height 999" }).locator(".sign").evaluateAll((all) => all.map((sign) => sign.style.color));
    assert.deepEqual([...new Set(signs)], ["var(--soft)"]);
    assert.deepEqual(told.filter((line) => !/40[04]|422/.test(line)), []);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await close();
});

test("the page may run nothing that it did not bring", async () => {
    const { page, told, close } = await open(browser, small);
    const policy = (await page.request.get(small.origin, { headers: { accept: "text/html" } })).headers()["content-security-policy"];
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'/);
    const ran = await page.evaluate(async () => {
        const script = document.createElement("script");
        script.textContent = "globalThis.ran = true";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", '<b onclick="globalThis.ran = true" style="color: red">x</b>');
        document.body.lastElementChild.click();
        const away = await fetch("http://127.0.0.1:9/").then(() => "asked", () => "blocked");
        return [globalThis.ran ?? false, away, document.body.lastElementChild.style.color];
    });
    assert.deepEqual(ran, [false, "blocked", ""]);
    assert.ok(told.length > 0 && told.every((line) => line.includes("Content Security Policy")), told.join("\n"));
    await close();
});

test("whoever may not steer a testnet sees its explorer first and its live picture, without anything that steers", async () => {
    const [off, locked] = await Promise.all([
        start("--speed", "20", "--stage", "inline", "--delegates", "5", "--lab", "off", "--public-faucet", "2.5", "--faucet-limit", "1/3600"),
        start("--pace", "manual", "--stage", "inline", "--delegates", "3", "--lab", "token", "--lab-token", join(folder, "token")),
    ]);
    for (const width of [1440, 390]) {
        const { page, told, close } = await open(browser, off, "/", { width });
        await until(page, () => document.querySelectorAll("main tbody tr").length >= 8);
        assert.deepEqual(await page.locator("#views a").allTextContents(), ["Explorer", "Blocks", "Transactions", "Wallets", "Delegates", "Pool", "Live"]);
        await page.getByRole("link", { name: "Live", exact: true }).click();
        await figure(page, "Nodes live", "5 of 5");
        await figure(page, "Seed", "–");
        await until(page, () => /forged height/.test(document.querySelector(".events")?.textContent));
        const height = await page.locator(".tile dd").first().textContent();
        await until(page, (height) => document.querySelector(".tile dd").textContent !== height, height);
        await page.locator("svg.nodes").focus();
        await page.keyboard.press("Home");
        await until(page, () => document.querySelector(".standing .read")?.textContent.includes("Node 0"));
        const controls = await page.locator("main button, main input, main select, #travel button").evaluateAll((all) => all.filter((one) => one.checkVisibility()).map((one) => one.textContent));
        assert.deepEqual(controls, ["throughput", "pool", "Blocks", "Forks", "Faults and nodes", "Rounds", "Hold"], "only what chooses what is seen is left");
        assert.equal(await page.locator("#banner").textContent(), "");
        assert.ok((await page.locator("main").innerText()).includes("Every visitor may watch this testnet. It is steered from elsewhere."));
        if (width === 390) assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
        assert.deepEqual(told, []);
        await close();
    }
    // Its faucet pays what the operator says, so often.
    const { page, told, close } = await open(browser, off);
    const payee = off.ready.accounts[0].address;
    const before = BigInt((await off.get(`/api/wallets/${payee}`)).balance);
    await page.getByLabel("Address to pay").fill("nonsense");
    await page.getByRole("button", { name: /^Pay 2.5/ }).click();
    await outcome(page, "“nonsense” is no address of this network.");
    await page.getByLabel("Address to pay").fill(payee);
    await page.getByRole("button", { name: /^Pay 2.5/ }).click();
    await outcome(page, "are on their way");
    await page.getByRole("button", { name: /^Pay 2.5/ }).click();
    await outcome(page, "That was too often. Try again in ");
    for (let balance = before; balance === before; balance = BigInt((await off.get(`/api/wallets/${payee}`)).balance)) await page.waitForTimeout(0);
    assert.equal(BigInt((await off.get(`/api/wallets/${payee}`)).balance), before + 250000000n);
    assert.deepEqual(told.filter((line) => !/422|429/.test(line)), []);
    await close();

    // With a token one steers: the page asks for it, and says when it is another.
    const held = await open(browser, locked, "/#/live");
    await figure(held.page, "Height", 1);
    assert.equal(await held.page.getByRole("button", { name: "+1 slot" }).count(), 0);
    const use = async (token) => {
        await held.page.getByLabel("Token of --lab-token").fill(token);
        await press(held.page, "Use this token");
    };
    await use("not-the-right-token");
    await outcome(held.page, "This is not the token of this testnet.");
    await use(TOKEN);
    await press(held.page, "+1 slot");
    await figure(held.page, "Height", 2);
    await until(held.page, () => document.querySelector(".events")?.textContent.includes("forged height 2"));
    assert.deepEqual(await held.page.locator("#views a").allTextContents(), ["Live", "Blocks", "Transactions", "Wallets", "Delegates", "Pool", "Lab"]);
    assert.deepEqual(held.told, []);
    await held.close();
    // Without the option nobody has coin of it.
    assert.equal((await fetch(`${locked.origin}/faucet`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ recipient: locked.ready.accounts[0].address }) })).status, 404);
});

test("an isolated chain has a page of its own", async () => {
    const { id } = await small.post("/lab/chains", { delegates: 3, seed: 4 });
    await small.post(`/chains/${id}/lab/advance`, { slots: 4 });
    const { page, told, close } = await open(browser, small, `/chains/${id}`);
    assert.equal(new URL(page.url()).pathname, `/chains/${id}/`);
    await figure(page, "Nodes live", "3 of 3");
    await press(page, "+1 slot");
    await figure(page, "Height", 6);
    await page.getByRole("link", { name: "Delegates" }).click();
    await until(page, () => document.querySelectorAll("main tbody tr").length === 3);
    await until(page, () => document.querySelector("#origin")?.textContent.includes("it began with a genesis block of its own, with seed 4 and 3 delegates"));
    assert.equal(await page.title(), `Delegates · chain ${id} · dposlab`);
    await page.getByRole("link", { name: "Back to the testnet" }).click();
    await page.waitForURL(`${small.origin}/#/`);
    assert.ok(await page.locator("#origin").isHidden());
    assert.deepEqual(told, []);
    await close();
});

test("a chain that goes on says from which instant, leads back, and never names a height from which no branch goes", async () => {
    const net = await start("--pace", "manual", "--stage", "inline", "--seed", "12", "--delegates", "21");
    await net.advance(20);
    await net.post("/lab/faults", { kind: "partition", groups: [{ from: 0, to: 8 }] });
    await net.advance(300);
    const { blocks } = await net.get("/lab/tree?from=1");
    const [{ height: from }] = blocks.filter(({ winning, nodes }) => !winning || nodes > 21);
    const { height } = await net.get("/lab/tree");
    assert.ok(height - from > 100, `a branch from ${from} to ${height}, deeper than the page looks at first`);
    const { page, told, close } = await open(browser, net);
    // All that the legend says from the beginning on.
    await page.addInitScript(() => {
        globalThis.said = new Set();
        new MutationObserver(() => document.querySelectorAll(".legend li").forEach((item) => globalThis.said.add(item.textContent))).observe(document, { subtree: true, childList: true, characterData: true });
    });
    const isTrue = async () => {
        await until(page, (words) => globalThis.said?.has(words), `on a branch from height ${from}`);
        const said = await page.evaluate(() => [...globalThis.said].filter((words) => words.startsWith("on a branch from height")));
        assert.deepEqual(said, [`on a branch from height ${from}`]);
    };
    await page.reload();
    await isTrue();
    await press(page, "Back by one slot");
    await until(page, () => document.querySelector(".when")?.textContent.startsWith("As it was at"));
    const instant = new URL(page.url()).searchParams.get("at");
    const when = (await page.locator(".when").textContent()).match(/\d\d:\d\d:\d\d/)[0];
    await press(page, "Go on from here");
    await page.waitForURL(/\/chains\/1\/$/);
    await isTrue();
    await until(page, (when) => document.querySelector("#origin")?.textContent.includes(`it went on from the testnet as it was at ${when}, height`), when);
    await page.getByRole("link", { name: "The testnet at that instant" }).click();
    await page.waitForURL((url) => url.searchParams.get("at") === instant && url.pathname === "/");
    await until(page, () => document.querySelector(".when")?.textContent.startsWith("As it was at"));
    assert.deepEqual(told, []);
    await close();
});

test("events are there after a reload, and the past has those that had happened by then", async () => {
    const net = await start("--pace", "manual", "--stage", "inline", "--seed", "13", "--delegates", "7");
    await net.advance(10);
    const { nowMicros } = await net.get("/lab");
    await net.advance(1);
    await net.post("/lab/nodes/2/crash");
    await net.advance(4);
    const { page, told, close } = await open(browser, net);
    const events = () => page.locator(".events li").evaluateAll((lines) => lines.map((line) => `${line.firstChild.textContent} ${line.lastChild.textContent}`));
    await until(page, () => document.querySelector(".events")?.textContent.includes("forged height 2"));
    const first = await events();
    assert.ok(first.some((line) => line.includes("down: crash")) && first.some((line) => line.includes("round 2 began")), first.join("\n"));
    await press(page, "+1 slot");
    await until(page, (count) => document.querySelectorAll(".events li").length > count, first.length);
    const heard = await events();
    await page.reload();
    await until(page, (count) => document.querySelectorAll(".events li").length === count, heard.length);
    assert.deepEqual(await events(), heard);
    // Nobody has watched this: it is there all the same.
    await page.goto("about:blank");
    await net.advance(4);
    await page.goto(`${net.origin}/?at=${nowMicros}#/`);
    await until(page, () => document.querySelector(".when")?.textContent.startsWith("As it was at") && document.querySelectorAll(".events li").length > 5);
    const then = await events();
    assert.ok(then.every((line) => !line.includes("crash")), then.join("\n"));
    assert.deepEqual(then, first.slice(-then.length), "the same events, as far as they had happened");
    await press(page, "Back to now");
    await until(page, () => /down: crash/.test(document.querySelector(".events")?.textContent));
    assert.equal((await events()).length, new Set(await events()).size, "none is told twice");
    assert.deepEqual(told, []);
    await close();
});

test("accounts with passphrases, API faults and isolated chains have their forms", async () => {
    const net = await start("--pace", "manual", "--stage", "inline", "--seed", "14", "--delegates", "5");
    await net.advance(3);
    const { page, told, close } = await open(browser, net, "/#/lab");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByLabel("How many accounts").fill("2");
    await page.getByLabel("Coins of each").fill("7.5");
    await page.getByRole("form", { name: "New accounts" }).getByRole("button", { name: "Make" }).click();
    await outcome(page, "2 accounts made");
    await net.advance(3);
    const address = await page.locator(".accounts a").first().textContent();
    assert.equal((await net.get(`/api/wallets/${address}`)).balance, "750000000");
    await page.getByRole("button", { name: "Copy the passphrase" }).first().click();
    await until(page, () => [...document.querySelectorAll(".copy")].some((button) => button.textContent === "Copied"));
    const passphrase = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(passphrase.split(" ").length, 12);
    await page.reload();
    await until(page, (passphrase) => document.querySelector(".accounts")?.textContent.includes(passphrase), passphrase);
    assert.equal(await page.locator(".accounts li").count(), 2);
    await page.getByLabel("How many accounts").fill("0");
    await page.getByRole("form", { name: "New accounts" }).getByRole("button", { name: "Make" }).click();
    await page.getByLabel("Coins of each").fill("x");
    await page.getByLabel("How many accounts").fill("1");
    await page.getByRole("form", { name: "New accounts" }).getByRole("button", { name: "Make" }).click();
    await outcome(page, "“x” is no amount");

    const effects = await page.getByLabel("What goes wrong").locator("option").evaluateAll((all) => all.map(({ value }) => value));
    for (const effect of effects) {
        await page.getByLabel("What goes wrong").selectOption(effect);
        if (effect === "status") {
            await page.getByLabel("Route, or a beginning").fill("/api/blocks");
            await page.getByLabel("Per cent of them").fill("50");
        } else await page.getByLabel("Per cent of them").fill("0");
        await page.getByRole("button", { name: "Add", exact: true }).click();
        await until(page, (effect) => /Rule \d+ is in force/.test(document.querySelector(".lab .outcome:not(:empty)")?.textContent) || effect === null, effect);
        const rules = await net.get("/lab/chaos");
        assert.ok(effect in rules.at(-1), `${effect}: ${JSON.stringify(rules)}`);
        await until(page, (count) => document.querySelectorAll("[aria-label='Rules in force'] button").length === count, rules.length);
    }
    const wrong = (await net.get("/lab/chaos")).find(({ status }) => status);
    assert.deepEqual([wrong.route, wrong.share], ["/api/blocks", 0.5]);
    await page.getByLabel("What goes wrong").selectOption("status");
    await page.getByLabel("Status, 429 or 500 to 599").fill("450");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await until(page, () => /450/.test(document.querySelector(".lab .outcome.wrong")?.textContent));
    for (let left = effects.length; left > 0; left -= 1) {
        await page.getByRole("button", { name: /^End rule/ }).first().click();
        await until(page, (count) => document.querySelectorAll("[aria-label='Rules in force'] button").length === count, left - 1);
    }
    assert.deepEqual(await net.get("/lab/chaos"), []);

    await page.getByLabel("Delegates; empty").fill("3");
    await page.getByLabel("Seed; empty").fill("5");
    await page.getByRole("form", { name: "New chain" }).getByRole("button", { name: "Make" }).click();
    await outcome(page, "Chain 1 has begun");
    const [chain] = await net.get("/lab/chains");
    assert.deepEqual([chain.seed, chain.delegates], [5, 3]);
    await page.getByRole("link", { name: "Chain 1", exact: true }).click();
    await figure(page, "Nodes live", "3 of 3");
    await page.getByRole("link", { name: "Lab", exact: true }).click();
    await until(page, (passphrase) => document.querySelector(".accounts")?.textContent.includes(passphrase), chain.accounts[0].passphrase);
    assert.equal(await page.getByRole("form", { name: "New chain" }).count(), 0);
    await page.goto(`${net.origin}/#/lab`);
    await page.getByRole("button", { name: "Delete chain 1" }).click();
    await outcome(page, "Chain 1 is deleted.");
    assert.deepEqual(await net.get("/lab/chains"), []);
    assert.deepEqual(told.filter((line) => !line.includes("422")), []);
    await close();
});

test("an address that names no instant says so, on every view", async () => {
    for (const [at, text] of [["yesterday", "The address names no instant: “yesterday”."], ["999000000", "00:16:39 cannot be shown: the past that is kept goes from 00:00:08 to "], ["8000000-1", "The address names no instant"]])
        for (const view of ["#/", "#/blocks"]) {
            const { page, told, close } = await open(browser, small, `/?at=${at}${view}`);
            await until(page, (text) => document.querySelector(".when")?.checkVisibility() && document.querySelector(".when")?.textContent.startsWith(text), text);
            // The answer that the instant cannot be shown may come before the range of the slider.
            await until(page, () => {
                const slider = document.querySelector('[aria-label="Instant shown"]');
                return slider.value === slider.max && Number(slider.max) > Number(slider.min);
            });
            assert.deepEqual(told.filter((line) => !line.includes("422")), []);
            await close();
        }
});

test("an address that asks for an instant where there is no past to look at says so", async () => {
    const off = await start("--pace", "manual", "--stage", "inline", "--delegates", "3", "--lab", "off");
    const { id } = await small.post("/lab/chains", { delegates: 3, seed: 9 });
    for (const [net, address, text] of [
        [off, "/?at=8000000#/live", "The address asks for the instant “8000000”. Only a client that may steer this testnet can look at its past. What is shown here is now."],
        [small, `/chains/${id}/?at=8000000`, "The address asks for the instant “8000000”. An isolated chain has no past of its own to look at. What is shown here is now."],
        [small, `/chains/${id}/`, null],
    ]) {
        const { page, told, close } = await open(browser, net, address);
        await figure(page, "Nodes live", "3 of 3");
        assert.deepEqual(await page.locator(".banner").allTextContents(), text === null ? [] : [text]);
        assert.deepEqual(told, []);
        await close();
    }
});

test("a wide screen is used, nothing that is chosen is cut off, and figures say what they count", async () => {
    const net = await start("--speed", "20", "--stage", "inline", "--seed", "5");
    const { page, told, close } = await open(browser, net, "/", { width: 2200, height: 1200 });
    await figure(page, "Height", "[1-9]\\d*");
    const used = await page.locator("main").evaluate((main) => main.getBoundingClientRect().width / innerWidth);
    assert.ok(used > 0.95, `${used} of the width`);
    const tops = await page.locator(".live > .third, .live > .eventful").evaluateAll((cards) => cards.map((card) => card.getBoundingClientRect().top));
    assert.deepEqual([tops.length, new Set(tops).size], [4, 1], "ring, nodes, faults and events stand side by side");
    // A pace without a button has one while it is in force.
    assert.deepEqual(await page.locator('.pace[aria-pressed="true"]').allTextContents(), ["20×"]);
    await press(page, "Manual");
    await until(page, () => document.querySelector('.pace[aria-pressed="true"]')?.textContent === "Manual");
    assert.equal(await page.locator(".pace:visible").count(), 6);
    // It is now, so the slider is at its end.
    assert.ok(await page.getByLabel("Instant shown").evaluate((slider) => slider.value === slider.max));
    await page.setViewportSize({ width: 1440, height: 900 });
    for (const width of [2200, 1440, 390]) {
        await page.setViewportSize({ width, height: 900 });
        const cut = await page.locator("main select").evaluateAll((all) => all.filter((one) => one.checkVisibility()).map((one) => {
            const probe = document.createElement("select");
            probe.append(new Option(one.selectedOptions[0].text));
            one.parentElement.append(probe);
            probe.style.flex = "none";
            const wanted = probe.getBoundingClientRect().width;
            probe.remove();
            return wanted - one.getBoundingClientRect().width;
        }));
        assert.ok(cut.every((missing) => missing < 1), `${width}: ${cut}`);
    }
    assert.ok((await page.locator(".tools .row", { hasText: "Faucet" }).innerText()).includes("TARK"));

    // A partition: a fault's time is told as the clock is, and slots of the other side are not called missed.
    await page.setViewportSize({ width: 1440, height: 900 });
    await net.post("/lab/faults", { kind: "partition", groups: [{ from: 0, to: 19 }] });
    await net.advance(30);
    await until(page, () => /since \d\d:\d\d:\d\d,/.test(document.querySelector(".faults")?.textContent));
    // Beside another card the events go down to the end of their own.
    await page.setViewportSize({ width: 1280, height: 900 });
    await until(page, () => document.querySelector(".plot .span"));
    const [list, card] = await page.locator(".events").evaluate((events) => [events, events.closest(".card")].map((one) => one.getBoundingClientRect().bottom));
    assert.ok(card - list < 20, `the list ends at ${list}, its card at ${card}`);
    await page.setViewportSize({ width: 1440, height: 900 });
    const { slots } = await net.get("/lab/round");
    const count = (state) => slots.filter((slot) => slot.state === state).length;
    await figure(page, "Missed in round", `${count("missed")}, ${count("elsewhere")} elsewhere`);
    await until(page, (count) => document.querySelector(".ringed")?.textContent.includes(`${count} on another branch`), count("elsewhere"));
    // An event has the colour of the branch its block is on.
    const looks = await page.locator(".events .sign path").evaluateAll((all) => all.map((path) => path.style.fill));
    assert.deepEqual(new Set(looks), new Set(["var(--good)", "var(--bad)"]));

    // A wallet's page says which way coin went.
    const { transactions: [paid] } = await net.post("/lab/faucet", { recipient: net.ready.accounts[0].address, amount: "150000000" });
    await net.post("/lab/advance", { until: { transaction: paid }, limit: 100 });
    const { sender, recipient } = await net.get(`/api/transactions/${paid}`);
    for (const [address, way, amount] of [[recipient, "← in", "+1.5"], [sender, "out →", "−1.5"]]) {
        await page.goto(`${net.origin}/#/wallets/${address}`);
        await until(page, (way) => [...document.querySelectorAll("main tbody td:first-child")].some((cell) => cell.textContent === way), way);
        assert.ok((await page.locator("main tbody").innerText()).includes(amount));
        assert.equal(await page.locator("th", { hasText: "Amount, TARK" }).count(), 1);
    }
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy the address" }).click();
    await until(page, () => document.querySelector(".copy")?.textContent === "Copied");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), sender);
    for (const [view, id] of [["transactions", paid], ["blocks", (await net.get("/api/blocks/1")).id]]) {
        await page.goto(`${net.origin}/#/${view}/${id}`);
        await page.getByRole("button", { name: "Copy the id" }).click();
        await until(page, () => document.querySelector(".copy")?.textContent === "Copied");
        assert.equal(await page.evaluate(() => navigator.clipboard.readText()), id);
    }
    assert.deepEqual(told, []);
    await close();
});

test("the description of the API is dark where the page is, and leads back", async () => {
    const { page, told, close } = await open(browser, small, "/api/docs/index.html", { theme: "dark" });
    await page.waitForSelector(".swagger-ui .info");
    const [red, green, blue] = (await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)).match(/\d+/g).map(Number);
    assert.ok(red + green + blue < 200, `rgb ${red} ${green} ${blue}`);
    await page.getByRole("link", { name: "Back to the testnet" }).click();
    await page.waitForURL(`${small.origin}/`);
    await page.waitForSelector(".tile");
    assert.deepEqual(told, []);
    await close();
});

test("time travel shows the balances that the API gave then, by slider, keyboard and steps, and a chain goes on from there", async () => {
    const net = await start("--pace", "manual", "--stage", "inline", "--seed", "9", "--delegates", "7");
    const seen = [];
    const note = async () => seen.push({ lab: await net.get("/lab"), wallets: await net.get("/api/wallets?limit=25"), pool: await net.get("/api/transactions/unconfirmed") });
    await net.advance(6);
    for (let turn = 0; turn < 6; turn += 1) {
        await net.post("/lab/faucet", { recipient: net.ready.accounts[0].address, amount: 150000000 * (turn + 1) });
        await note();
        await net.advance(1);
        await note();
        await net.advance(2);
    }
    // The other six go on: each reaches five others, which is what forging takes. With five nodes the network would halt.
    await net.post("/lab/faults", { kind: "crash", nodes: [2] });
    await net.advance(20);
    const { page, told, close } = await open(browser, net);
    const slider = page.getByLabel("Instant shown");
    const when = (text) => until(page, (text) => document.querySelector(".when")?.textContent.includes(text), text);
    await figure(page, "Nodes live", "6 of 7");

    // The slider goes by slots, and what is drawn is what was.
    await slider.focus();
    await page.keyboard.press("Home");
    await figure(page, "Height", 1);
    await figure(page, "Nodes live", "7 of 7");
    for (let slot = 2; slot <= 7; slot += 1) {
        await page.keyboard.press("ArrowRight");
        await figure(page, "Height", slot);
    }
    // Back by a block: to where the seventh came about, then to where the sixth did.
    await page.keyboard.press("Shift+ArrowLeft");
    await when("slot 6, round 2, height 7");
    await page.keyboard.press("Shift+ArrowLeft");
    await figure(page, "Height", 6);
    await page.keyboard.press("PageUp");
    await figure(page, "Round", "2, \\d of 7");
    assert.ok(await page.locator(".paces").evaluate((paces) => paces.closest("[inert]") !== null), "nobody steers the past");

    // At each instant that was looked at, every balance is the one that was answered then: on the page that is open, and on one
    // that begins there.
    const table = () => page.locator("main tbody tr").evaluateAll((rows) => rows.map((row) => [row.querySelector("a").title, row.querySelector(".num").textContent]));
    const wanted = ({ wallets }) => wallets.map(({ address, balance }) => [address, (Number(balance) / 1e8).toLocaleString("en", { maximumFractionDigits: 8 }).replace("-", "−")]);
    for (const then of seen.filter((_, index) => index % 3 === 1)) {
        await page.goto(`${net.origin}/?at=${then.lab.nowMicros}#/wallets`);
        await until(page, () => document.querySelectorAll("main tbody tr").length > 0 && !document.querySelector("#travel").hidden);
        assert.deepEqual(await table(), wanted(then), `at ${then.lab.now} s`);
        await page.getByRole("link", { name: "Pool" }).click();
        await until(page, (count) => document.querySelector("main .card .more")?.textContent === `${count} in all`, then.pool.length);
    }
    // A page that begins in the past draws what was before, from the blocks, and the faults that were in force.
    const drawn = (name) => page.locator(`.plot [data-series="${name}"] path.line`).evaluate((path) => path.getTotalLength());
    await page.goto(`${net.origin}/?at=${seen.at(-1).lab.nowMicros}#/`);
    await figure(page, "Transactions/s", "0\\.\\d+");
    assert.ok((await drawn("throughput")) > 100);
    assert.ok(!(await page.locator(".plot").textContent()).includes("milliseconds"));
    assert.equal(await page.locator(".plot .span").count(), 0);
    const fault = (await net.get("/lab")).faults[0].since;
    await page.goto(`${net.origin}/?at=${fault + 24_000_000}#/`);
    await until(page, () => document.querySelector(".plot .span") && document.querySelector(".plot")?.textContent.includes("crash"));
    await page.goto(`${net.origin}/?at=${seen.at(-1).lab.nowMicros}#/pool`);
    await until(page, () => document.querySelector("main .card .more")?.textContent.endsWith(" in all"));
    // The live network goes on meanwhile, and the page stays where it is.
    const { height } = (await net.get("/api/blockchain")).block;
    await net.advance(5);
    const { height: newest } = (await net.get("/api/blockchain")).block;
    assert.ok(newest > height, `the network goes on from ${height}, and is at ${newest}`);
    await page.getByRole("link", { name: "Live", exact: true }).click();
    const instant = () => new URL(page.url()).searchParams.get("at").split("-").map(Number);
    const isLater = ([at, delivered, inputs], [than, ...rest]) => at > than || (at === than && (delivered > rest[0] || (delivered === rest[0] && inputs > rest[1])));
    const step = async (name, isThere) => {
        const before = instant();
        await press(page, name);
        await page.waitForURL((url) => url.searchParams.get("at") !== before.join("-"));
        assert.ok(isThere(instant(), before), `${name}: from ${before} to ${instant()}`);
    };
    for (const kind of ["event", "block", "slot", "round"]) await step(`On by one ${kind}`, isLater);
    for (const kind of ["round", "slot", "block", "event"]) await step(`Back by one ${kind}`, (now, before) => isLater(before, now));
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
    assert.deepEqual(violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => [id, nodes[0].html]), []);
    await press(page, "Back to now");
    await when("Now.");
    await figure(page, "Height", newest);
    await figure(page, "Nodes live", "6 of 7");
    assert.ok(!page.url().includes("at="));

    // The explorer of another node shows its chain: that of the crashed node ends where it crashed.
    const { nodes, nowMicros } = await net.get("/lab");
    assert.ok(nodes[2].height < nodes[0].height);
    const topmost = (height) => until(page, (height) => document.querySelector("main tbody a")?.textContent === height, height.toLocaleString("en"));
    await page.goto(`${net.origin}/?at=${nowMicros}#/blocks`);
    await topmost(nodes[0].height);
    await page.getByLabel("Node whose explorer is shown").fill("2");
    await page.keyboard.press("Enter");
    await topmost(nodes[2].height);
    await press(page, "Back by one slot");
    await until(page, (now) => Number(new URL(location.href).searchParams.get("at").split("-")[0]) < now, nowMicros);
    await topmost(nodes[2].height);

    // A chain that goes on.
    const then = seen.at(-1);
    await page.goto(`${net.origin}/?at=${then.lab.nowMicros}`);
    await figure(page, "Height", Math.max(...then.lab.nodes.map((node) => node.height)));
    await page.getByLabel("Node whose explorer is shown").fill("3");
    await page.keyboard.press("Enter");
    await until(page, () => !document.querySelector("#travel").hidden);
    await press(page, "Go on from here");
    await page.waitForURL(/\/chains\/1\/$/);
    await figure(page, "Height", Math.max(...then.lab.nodes.map((node) => node.height)));
    await press(page, "+1 slot");
    await figure(page, "Height", Math.max(...then.lab.nodes.map((node) => node.height)) + 1);
    assert.ok(await page.locator("#travel").isHidden());
    assert.deepEqual(told, []);
    await close();
});

test("who goes back to now stays there, whatever is on its way, and a node that is not there is told of once", async () => {
    const net = await start("--pace", "manual", "--stage", "inline", "--seed", "10", "--delegates", "5");
    await net.advance(12);
    const { page, told, close } = await open(browser, net);
    await figure(page, "Height", 13);
    // Answers of views come when they are let go.
    const held = [];
    await page.route("**/lab/views", (route) => (route.request().method() === "POST" && held.hold ? held.push(route) : route.continue()));
    const back = page.getByRole("button", { name: "Back by one slot" });
    await back.click();
    await figure(page, "Height", 12);
    held.hold = true;
    await back.click();
    await press(page, "Back to now");
    await page.waitForTimeout(0);
    held.hold = false;
    assert.equal(held.length, 1);
    const [answer] = await Promise.all([page.waitForResponse((response) => response.request().method() === "POST"), held[0].continue()]);
    assert.equal(answer.status(), 201);
    await until(page, () => document.querySelector(".when")?.textContent.startsWith("Now."));
    await figure(page, "Height", 13);
    await net.advance(1);
    await figure(page, "Height", 14);
    assert.ok(!page.url().includes("at="));
    for (let views; (views = (await net.get("/lab/views")).views).length;) assert.ok(views.length <= 2, "no view is left open");

    await back.click();
    await page.getByLabel("Node whose explorer is shown").fill("9");
    await page.keyboard.press("Enter");
    await until(page, () => document.querySelector(".when")?.textContent.includes("There is no node 9: they have the numbers 0 to 4."));
    assert.equal(await page.getByLabel("Node whose explorer is shown").inputValue(), "0");
    await back.click();
    await figure(page, "Height", 12);
    await until(page, () => !document.querySelector(".when").textContent.includes("found 9"));
    assert.deepEqual(told.filter((line) => !line.includes("422")), []);
    await close();
});

test("51 delegates at 100 times real time: frames come, and memory and elements stay bounded", async () => {
    const net = await start("--speed", "100", "--seed", "7");
    const { page, told, close } = await open(browser, net);
    const devtools = await page.context().newCDPSession(page);
    // Seconds of the processor, not of the wall clock: others build beside this.
    await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
    const metric = async (wanted) => (await devtools.send("Performance.getMetrics")).metrics.find(({ name }) => name === wanted).value;
    await figure(page, "Height", "[1-9]\\d+");
    const frames = (count) => page.evaluate((count) => new Promise((done) => {
        const step = () => (count-- > 0 ? requestAnimationFrame(step) : done());
        requestAnimationFrame(step);
    }), count);
    const [worked, before] = [await metric("TaskDuration"), (await net.get("/lab")).now];
    await frames(200);
    const work = ((await metric("TaskDuration")) - worked) * 1000 / 200;
    const played = (await net.get("/lab")).now - before;
    const heap = await metric("JSHeapUsedSize");
    const elements = await page.evaluate(() => document.querySelectorAll("*").length);
    console.log(`${work.toFixed(1)} ms of the processor a frame; ${played} virtual seconds; heap ${(heap / 1e6).toFixed(1)} MB; ${elements} elements`);
    assert.ok(work > 0 && work <= 1000 / 30, `a frame takes ${work} ms of the processor, so there are fewer than 30 a second`);
    assert.ok(played > 0, "the network runs");
    assert.ok(heap < 150e6, `${heap} bytes`);
    assert.ok(elements < 4000, `${elements} elements`);
    assert.ok((await page.locator(".events li").count()) <= 60);
    assert.deepEqual(told, []);
    await close();
});

test("where not all nodes are linked, only links are drawn and counted as cut", async () => {
    const file = join(folder, "regular.toml");
    writeFileSync(file, 'version = 1\ndescription = "few links"\nrounds = 20\n[network]\ndelegates = 24\ntopology = { regular = 6 }\n[rules.node]\ndiscovery = false\n');
    const net = await start(file, "--pace", "manual", "--stage", "inline");
    await net.advance(3);
    const { page, told, close } = await open(browser, net);
    const { nodes } = await net.get("/lab?peers=true");
    const links = new Set(nodes.flatMap(({ node, peers }) => peers.map((peer) => [node, peer].sort((one, other) => one - other).join())));
    assert.ok(links.size <= (24 * 6) / 2, `${links.size} links`);
    const drawn = (kind) => page.locator(kind).evaluate((path) => (path.getAttribute("d") ?? "").split("M").length - 1);
    await until(page, (count) => document.querySelector("path.links:not(.cut)")?.getAttribute("d")?.split("M").length - 1 === count, links.size);
    await net.post("/lab/faults", { kind: "partition", groups: [{ from: 0, to: 9 }] });
    const cut = [...links].filter((link) => { const [one, other] = link.split(",").map(Number); return one <= 9 !== other <= 9; }).length;
    assert.ok(cut > 3 && cut < 60, `${cut} links between the parts`);
    await until(page, (cut) => document.querySelector(".cut-count")?.textContent === `${cut} links cut`, cut);
    assert.equal(await drawn("path.links.cut"), cut);
    // The nodes forget each other; the page does not.
    await net.advance(60);
    await until(page, (cut) => document.querySelector(".cut-count")?.textContent === `${cut} links cut`, cut);
    assert.deepEqual(told, []);
    await close();
});

test("a slot that becomes another one's without a new block has its piece in the ring as in the figures", async () => {
    const net = await start("--pace", "manual", "--stage", "inline", "--seed", "15", "--delegates", "7");
    await net.advance(12);
    const { page, told, close } = await open(browser, net);
    await figure(page, "Missed in round", "0");
    await page.route(/\/lab\/round$/, async (route) => {
        const response = await route.fetch();
        const answer = await response.json();
        answer.data.slots.find(({ state }) => state === "forged").state = "elsewhere";
        return route.fulfill({ response, json: answer });
    });
    await figure(page, "Missed in round", "0, 1 elsewhere");
    assert.equal(await page.locator("path.slot.elsewhere").evaluate((path) => path.getAttribute("d").split("Z").length - 1), 1);
    assert.ok((await page.locator(".ringed").textContent()).includes("1 on another branch"));
    assert.deepEqual(told, []);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await close();
});

test("a thousand nodes are drawn, those of each part together", async () => {
    const net = await start("--pace", "manual", "--stage", "inline", "--seed", "8", "--delegates", "1000");
    await net.advance(5);
    await net.post("/lab/faults", { kind: "partition", groups: [{ from: 0, to: 399 }] });
    const { page, told, close } = await open(browser, net);
    await until(page, () => document.querySelectorAll("svg.nodes > g > path").length >= 1000);
    assert.match(await page.locator("svg.nodes").getAttribute("aria-label"), /1,000 nodes, 1,000 live, cut into 2 parts of 400, 600 nodes/);
    // Nodes stand apart: no two at one place, and none outside.
    const places = await page.locator("svg.nodes > g:not(.parts) > path").evaluateAll((marks) => marks.map((mark) => mark.getAttribute("d").match(/^M([\d.]+),([\d.]+)/).slice(1).map(Number)));
    assert.equal(new Set(places.map(([x, y]) => `${x},${y}`)).size, 1000);
    assert.equal(await page.locator("svg.nodes .parts text").first().textContent(), "400 nodes, 240,000 links cut");
    assert.ok(places.every(([x, y]) => x > 0 && x < 460 && y > 0 && y < 460));
    assert.deepEqual(told, []);
    await close();
});

test("every view, light and dark, wide and narrow: axe finds nothing serious, nothing is cut off, the console is silent", async () => {
    const { id } = (await small.get("/api/transactions?limit=1"))[0];
    const views = ["#/", "#/blocks", "#/blocks/3", "#/transactions", `#/transactions/${id}`, "#/wallets", `#/wallets/${small.ready.accounts[0].address}`, "#/delegates", "#/delegates/genesis_1", "#/pool", "#/lab", "#/search/no%20such%20thing"];
    await small.post("/lab/faults", { kind: "partition", groups: [[0]] });
    for (const [theme, width] of [["light", 1440], ["dark", 360], ["light", 360], ["dark", 1440]]) {
        const { page, told, close } = await open(browser, small, `/?theme=${theme}`, { theme, width });
        // Colours are looked at twice, sizes twice; the live view in all.
        const few = (theme === "light") === (width === 360);
        // Those of the past follow.
        const past = [views[0], "#/wallets"].map((view) => `&at=40000000${view}`);
        for (const view of [...(few ? views.slice(0, 1) : views), ...past]) {
            // What was shown before is not taken for what is to be shown.
            await page.evaluate(() => document.querySelector("main").replaceChildren());
            await page.goto(`${small.origin}/?theme=${theme}${view}`);
            if (view.startsWith("&")) await until(page, () => document.querySelector("#travel.away:not([hidden])"));
            await until(page, () => document.querySelector("main .card") && !/^…$/m.test(document.querySelector("main")?.innerText));
            if (width === 360) assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360, `${view} is too wide`);
            if (view.endsWith(views[0])) await page.waitForSelector(".tile");
            if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
            const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
            const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
            assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes[0].html, nodes[0].failureSummary]), [], `${view}, ${theme}, ${width}`);
        }
        assert.deepEqual(told, [], `${theme}, ${width}`);
        await close();
    }
});
