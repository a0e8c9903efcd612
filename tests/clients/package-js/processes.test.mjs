// The package as processes see it: the command, what a failed test prints, and that no testnet outlives its tests.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

const folder = mkdtempSync(join(tmpdir(), "dposlab-js-"));
const command = "node_modules/.bin/dposlab";
const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "failing/vitest.config.js"];
const long = ["scenario.toml", "--set", "rounds=100000", "--set", "stall='off'"];
const jest = ["node_modules/jest/bin/jest.js", "--testMatch"];

function run(program, words, env = {}) {
    const { status, stdout, stderr } = spawnSync(program, words, { encoding: "utf8", env: { ...process.env, NO_COLOR: "1", ...env } });
    return { status, stdout, stderr };
}

/** Waits until `done`, 20 s at most if nothing else is said. */
async function until(what, done, limit = 20_000) {
    for (const end = Date.now() + limit; !done(); await pause(20)) assert.ok(Date.now() < end, `waited ${limit} ms until ${what}`);
}

function isThere(pid) {
    try {
        process.kill(pid, 0);
        // What has ended and was not waited for is there in name only.
        return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
    } catch {
        return false;
    }
}

test("the command gives its words, exit code and output on", () => {
    assert.match(run(command, ["--version"]).stdout, /^dposlab \d+\.\d+\.\d+\n$/);
    const refused = run(command, ["run", "none.toml"]);
    assert.equal(refused.status, 2);
    assert.match(refused.stderr, /none\.toml/);
});

test("the command gives signals on", async () => {
    for (const [signal, ...ends] of [["SIGINT", 0], ["SIGTERM", 0], ["SIGHUP", 129, null]]) {
        const child = spawn(command, ["up", "--port", "0", "--json", "--pace", "manual"], { stdio: ["ignore", "pipe", "inherit"] });
        const [line] = await once(child.stdout.setEncoding("utf8"), "data");
        const pid = Number(/"pid":(\d+)/.exec(line)[1]);
        child.stdout.resume();
        child.kill(signal);
        const [code] = await once(child, "exit");
        assert.ok(ends.includes(code), `${signal}: ${code}`);
        await until("the testnet is gone", () => !isThere(pid));
    }
});

for (const [what, input] of [["with the terminal as its input", ""], ["with another input", " < /dev/null"]]) {
    test(`Ctrl-C in a terminal ends the command in good order, ${what}`, async () => {
        const out = join(folder, `ctrl-c${input.length}`);
        const line = `${command} run ${long.map((word) => `"${word}"`).join(" ")} --out ${out}${input}`;
        const terminal = spawn("script", ["--quiet", "--return", "--command", line, "/dev/null"], { stdio: ["pipe", "ignore", "ignore"] });
        await until("the run has begun", () => existsSync(join(out, "events.jsonl")) && statSync(join(out, "events.jsonl")).size > 0);
        terminal.stdin.write("\x03");
        await until("it has ended", () => terminal.exitCode !== null);
        assert.equal(JSON.parse(readFileSync(join(out, "summary.json"), "utf8")).interrupted, true);
    });
}

test("a command that is stopped and goes on takes its program with it", async () => {
    const child = spawn(command, ["up", "--port", "0", "--json", "--pace", "manual"], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = await once(child.stdout.setEncoding("utf8"), "data");
    const pid = Number(/"pid":(\d+)/.exec(line)[1]);
    child.stdout.resume();
    const isStopped = () => [pid, child.pid].every((each) => /^State:\s+T/m.test(readFileSync(`/proc/${each}/status`, "utf8")));
    child.kill("SIGTSTP");
    await until("both are stopped", isStopped);
    child.kill("SIGCONT");
    await until("both go on", () => !isStopped());
    child.kill("SIGINT");
    const [code] = await once(child, "exit");
    assert.equal(code, 0);
});

/** The processes that one has started, in whichever thread. */
function children(pid) {
    try {
        const threads = readdirSync(`/proc/${pid}/task`);
        const lists = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8"));
        return lists.join(" ").split(" ").filter(Boolean).map(Number);
    } catch {
        return [];
    }
}

for (const [name, ...words] of [
    ["run", ...long, "--out", join(folder, "run")],
    ["sweep", ...long, "--out", join(folder, "sweep")],
    ["check", "--runs", "1000000", "--out", join(folder, "check")],
    ["explain", ...long],
    ["up", "--port", "0", "--pace", "manual"],
]) {
    test(`a command that is killed takes its program with it: ${name}`, async () => {
        const child = spawn(command, [name, ...words], { stdio: "ignore" });
        // It watches with a thread of its own. Newer versions of Node.js are the program themselves.
        const programs = () => [child.pid, ...children(child.pid)].filter((pid) => program(pid) && threads(pid) > 1);
        await until("the program is there", () => programs().length > 0);
        const found = programs();
        child.kill("SIGKILL");
        await until("the program is gone", () => !found.some(isThere), 2_000);
    });
}

test("npx that is ended by SIGTERM takes its program with it", async () => {
    const words = ["--offline", "dposlab", "up", "--port", "0", "--json", "--pace", "manual"];
    const child = spawn("npx", words, { stdio: ["ignore", "pipe", "ignore"] });
    const [line] = await once(child.stdout.setEncoding("utf8"), "data");
    const pid = Number(/"pid":(\d+)/.exec(line)[1]);
    child.stdout.resume();
    assert.ok(isThere(pid));
    child.kill("SIGTERM");
    try {
        await until("the program is gone", () => !isThere(pid), 5_000);
    } finally {
        if (isThere(pid)) process.kill(pid, "SIGKILL");
    }
});

test("a command in the background outlives the shell that started it", async () => {
    const ready = join(folder, "ready");
    run("sh", ["-c", `${command} up --port 0 --pace manual --ready-file ${ready} > /dev/null 2>&1 &`]);
    await until("the testnet is ready", () => existsSync(ready));
    const { pid } = JSON.parse(readFileSync(ready, "utf8"));
    await pause(1_000);
    assert.ok(isThere(pid));
    process.kill(pid, "SIGINT");
    await until("the testnet is gone", () => !isThere(pid));
});

/** Whether a process has become the program. */
function program(pid) {
    try {
        return /\/bin\/dposlab$/.test(readlinkSync(`/proc/${pid}/exe`));
    } catch {
        return false;
    }
}

function threads(pid) {
    return existsSync(`/proc/${pid}/task`) ? readdirSync(`/proc/${pid}/task`).length : 0;
}

test("DPOSLAB_BIN names another program, which must be there", () => {
    assert.equal(run(command, ["word"], { DPOSLAB_BIN: "/bin/echo" }).stdout, "word\n");
    const none = run(command, [], { DPOSLAB_BIN: "/none" });
    assert.deepEqual([none.status, none.stderr], [1, "dposlab: DPOSLAB_BIN: found '/none', which is no file\n"]);
});

test("a platform without a program is named", () => {
    const preload = join(folder, "platform.mjs");
    writeFileSync(preload, 'for (const name of ["platform", "arch"]) Object.defineProperty(process, name, { value: process.env[`FAKE_${name}`] });');
    const words = ["--import", preload, "node_modules/dposlab/dist/bin.js"];
    const none = run(process.execPath, words, { FAKE_platform: "sunos", FAKE_arch: "mips" });
    assert.equal(none.status, 1);
    assert.match(none.stderr, /^dposlab: there is no program for sunos-mips, only for linux-\w+-gnu; or build one/);
});

test("a failed test says where its recording is, and how to replay it", () => {
    const env = { DPOSLAB_RECORDINGS: join(folder, "recordings") };
    const failed = [run(process.execPath, [...vitest, "failing/fails"], env), run(process.execPath, [...jest, "**/failing/fails.jest.js"], env)];
    for (const [index, name] of ["a transfer that isn't paid", "a vote that isn't counted"].entries()) {
        const { status, stderr } = failed[index];
        assert.equal(status, 1);
        assert.ok(stderr.includes(`dposlab: '${name}' failed; what came in to its chain: `), stderr);
        const [, file] = /replay it: npx dposlab replay (\S+)/.exec(stderr);
        assert.match(run(command, ["replay", file]).stdout, /digest/);
        assert.match(stderr, /newest blocks:\n    \d+: \d+ by genesis_\d+, transactions: \d+, fees: \d+\n/);
    }
    const [{ stderr: vitestSaid }, { stderr: jestSaid }] = failed;
    assert.match(vitestSaid, /at height 2, node 0: transaction [0-9a-f]{64}: accepted\n/);
    assert.match(vitestSaid, /at height 3, node 0: transaction [0-9a-f]{64}: refused: ERR_\w+: .+\n/);
    assert.match(vitestSaid, /faults in force:\n    0, since second \d+: {"kind":"crash","nodes":\[4\]/);
    assert.match(jestSaid, /a request: refused: should NOT have fewer than 1 items\n/);
    assert.match(jestSaid, /no fault is in force/);
});

test("the command that a failed test prints shows its chain on a page, as the test left it", async () => {
    const { stderr } = run(process.execPath, [...vitest, "failing/fails"], { DPOSLAB_RECORDINGS: join(folder, "looked at") });
    const [, words] = /look at it on a page: npx dposlab (.+)\n/.exec(stderr);
    const [, height] = /newest blocks:\n    (\d+):/.exec(stderr);
    const shell = ["-c", `exec ${command} ${words} --json --port 0`];
    const child = spawn("sh", shell, { stdio: ["ignore", "pipe", "inherit"] });
    try {
        const [line] = await once(createInterface({ input: child.stdout }), "line");
        const { url } = JSON.parse(line);
        const page = await fetch(new URL("/", url), { headers: { accept: "text/html" } });
        assert.match(await page.text(), /<html/);
        const { data } = await (await fetch(`${url}/node/status`)).json();
        assert.equal(data.now, Number(height));
        const { data: lab } = await (await fetch(new URL("/lab", url))).json();
        assert.equal(lab.nodes[4].live, false, "the crash of the test is in force");
    } finally {
        child.kill("SIGINT");
        await once(child, "exit");
    }
});

for (const [name, words] of [
    ["vitest", [...vitest, "failing/same"]],
    ["jest", [...jest, "**/failing/same*.jest.js"]],
]) {
    test(`each failed chain has a recording of its own, whatever the names of the tests: ${name}`, () => {
        const env = { DPOSLAB_RECORDINGS: join(folder, `same-${name}`) };
        const { status, stderr } = run(process.execPath, words, env);
        assert.equal(status, 1);
        const files = [...stderr.matchAll(/replay it: npx dposlab replay (\S+)/g)].map(([, file]) => file);
        assert.equal(files.length, 4, stderr);
        const digests = files.map((file) => /digest: +(\w+)/.exec(run(command, ["replay", file]).stdout)[1]);
        assert.equal(new Set(digests).size, 4, "the chains are of different lengths");
        assert.match(stderr, /dposlab: 'one > works' failed/);
    });
}

test("a testnet that does not start fails its tests, and not the environment", () => {
    const { status, stderr } = run(process.execPath, [...jest, "**/failing/unstarted.jest.js"]);
    assert.equal(status, 1);
    assert.match(stderr, /Tests: +2 failed, 2 total/);
    assert.doesNotMatch(stderr, /Test suite failed to run/);
});

test("jest's options of the environment have known names", () => {
    const words = [...jest, "**/jest/down.test.js", "--testEnvironmentOptions", '{"dposlab":{"chains":{}}}'];
    const { status, stderr } = run(process.execPath, words);
    assert.equal(status, 1);
    assert.match(stderr, /testEnvironmentOptions.dposlab: option 'chains': no such option, the nearest is 'chain', allowed are 'testnet', 'chain'/);
});

test("a script that forgets its testnet ends, and the testnet with it", async () => {
    const script = 'import { Testnet } from "dposlab"; console.log((await Testnet.start({ delegates: 3 })).pid);';
    const { status, stdout } = run(process.execPath, ["--input-type=module", "-e", script]);
    assert.equal(status, 0);
    await until("the testnet is gone", () => !isThere(Number(stdout)));
});

for (const [end, pools] of Object.entries({
    "an exception": ["forks", "threads"],
    "process.exit": ["forks", "threads"],
    "an exception that nobody catches": ["forks", "threads"],
    "SIGKILL": ["forks"],
    "SIGTERM": ["forks"],
    "SIGINT": ["forks"],
    "abort": ["forks"],
})) {
    for (const POOL of pools) {
        test(`no testnet outlives a worker of vitest that ends by ${end}, in ${POOL}`, async () => {
            const PID_FILE = join(folder, `${end}-${POOL}`.replaceAll(/\W+/g, "-"));
            const { status } = run(process.execPath, [...vitest, "failing/ends"], { POOL, PID_FILE, END: end });
            assert.notEqual(status, 0);
            const pid = Number(readFileSync(PID_FILE, "utf8"));
            assert.ok(pid > 0);
            await until("the testnet is gone", () => !isThere(pid), 5_000);
        });
    }
}

for (const signal of ["SIGINT", "SIGTERM"]) {
    test(`no testnet outlives a test run that is ended by ${signal}`, async () => {
        const PID_FILE = join(folder, `waits-${signal}`);
        const env = { ...process.env, PID_FILE, END: "nothing" };
        const runner = spawn(process.execPath, [...vitest, "failing/ends"], { stdio: "ignore", detached: true, env });
        await until("the testnet is there", () => existsSync(PID_FILE) && readFileSync(PID_FILE, "utf8") !== "");
        const pid = Number(readFileSync(PID_FILE, "utf8"));
        runner.kill(signal);
        await until("the testnet is gone", () => !isThere(pid));
        spawnSync("kill", ["-KILL", "--", `-${runner.pid}`]);
    });
}

for (const [name, words, env] of [
    ["vitest, in processes", [...vitest, "failing/hangs"], { POOL: "forks" }],
    ["vitest, in threads", [...vitest, "failing/hangs"], { POOL: "threads" }],
    ["jest, in its own process", [...jest, "**/failing/hangs.jest.js", "--runInBand"], {}],
    ["jest, in a worker", [...jest, "**/failing/{hangs,other}.jest.js", "--maxWorkers=2"], {}],
]) {
    test(`no testnet outlives a killed test run: ${name}`, async () => {
        const PID_FILE = join(folder, name.replaceAll(/\W+/g, "-"));
        const runner = spawn(process.execPath, words, { stdio: "ignore", detached: true, env: { ...process.env, PID_FILE, ...env } });
        await until("the testnet is there", () => existsSync(PID_FILE) && readFileSync(PID_FILE, "utf8") !== "");
        const pid = Number(readFileSync(PID_FILE, "utf8"));
        assert.ok(isThere(pid));
        runner.kill("SIGKILL");
        await until("the testnet is gone", () => !isThere(pid));
        // A busy worker may be left behind, which is this test's to take away.
        spawnSync("kill", ["-KILL", "--", `-${runner.pid}`]);
    });
}
