// A testnet behind nginx: who is answered, who is counted as whom, and that events arrive.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const binary = process.env.DPOSLAB_BIN ?? join(root, "target/release/dposlab");
const folder = mkdtempSync(join(tmpdir(), "dposlab-proxy-"));
/** Nobody, where the suite runs as root. */
const user = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {};
const TOKEN = "0123456789abcdef";
/** What is started here, each with what ends it. */
const children = [];
/** The server of docs/access.md, as it stands there. */
const documented = readFileSync(join(root, "docs/access.md"), "utf8").match(/```nginx\n([^]*?)```/)[1];

after(async () => {
    for (const [child, signal] of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        child.kill(signal);
        await once(child, "exit");
    }
    rmSync(folder, { recursive: true, force: true });
});

/** A port that is free now. */
async function freePort() {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address();
    server.close();
    await once(server, "close");
    return port;
}

/** The port of a testnet. */
async function testnet(...args) {
    const given = ["up", "--json", "--port", "0", "--delegates", "3", "--pace", "manual", ...args];
    const child = spawn(binary, given, { stdio: ["ignore", "pipe", "inherit"] });
    children.push([child, "SIGINT"]);
    for await (const line of createInterface({ input: child.stdout })) {
        const message = JSON.parse(line);
        if (message.event !== "ready") continue;
        child.stdout.resume();
        return Number(new URL(message.url).port);
    }
    throw new Error("dposlab up ended before it was ready");
}

/** The port of an nginx before a port, by a configuration of one server that listens on 8080 before 4003. */
async function proxy(before, server = documented) {
    const [port, prefix] = [await freePort(), mkdtempSync(join(folder, "nginx-"))];
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    const text = server.replaceAll("8080", `127.0.0.1:${port}`).replaceAll("127.0.0.1:4003", `127.0.0.1:${before}`);
    const lines = temporary.map((name) => `${name}_temp_path ${prefix}/${name};`).join("\n");
    const file = join(prefix, "nginx.conf");
    const main = `daemon off;\nmaster_process off;\npid ${prefix}/pid;\nevents {}\n`;
    writeFileSync(file, `${main}http {\naccess_log off;\n${lines}\n${text}}\n`);
    mkdirSync(join(prefix, "logs"));
    if (user.uid) [folder, prefix, join(prefix, "logs")].forEach((path) => chownSync(path, user.uid, user.gid));
    const child = spawn("nginx", ["-p", prefix, "-c", file, "-e", join(prefix, "errors")], { stdio: "inherit", ...user });
    children.push([child, "SIGTERM"]);
    for (let attempt = 0; attempt < 10_000; attempt++) {
        if (child.exitCode !== null) throw new Error(readFileSync(join(prefix, "errors"), "utf8"));
        const answered = await ask(port, "/api/blockchain").catch(() => undefined);
        if (answered) return port;
    }
    throw new Error("nginx does not answer");
}

/** Asks, from an address of this machine, and answers status, headers and text. */
function ask(port, path, { from = "127.0.0.1", headers = {}, body } = {}) {
    return new Promise((resolve, reject) => {
        const method = body === undefined ? "GET" : "POST";
        const typed = body === undefined ? headers : { "content-type": "application/json", ...headers };
        const options = { port, path, method, host: "127.0.0.1", localAddress: from, headers: typed, agent: false };
        const request = http.request(options, (response) => {
            let text = "";
            response.setEncoding("utf8").on("data", (part) => (text += part));
            response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
            response.on("error", reject);
        });
        request.on("error", reject).end(body);
    });
}

const status = async (...asked) => (await ask(...asked)).status;

test("nothing is steered through a proxy, and all of the public API is there", async () => {
    const direct = await testnet();
    const through = await proxy(direct);
    for (const path of ["/lab", "/lab/pace", "/metrics", "/api/webhooks"]) {
        assert.equal(await status(direct, path), 200, path);
        assert.equal(await status(through, path), 403, path);
    }
    assert.equal(await status(through, "/lab/advance", { body: '{"slots":1}' }), 403);
    for (const path of ["/api/blockchain", "/api/blocks", "/api/docs/index.html", "/", "/page/main.js"]) {
        assert.equal(await status(through, path), 200, path);
    }
});

test("each client has requests of its own, and none has those of another", async () => {
    const direct = await testnet("--behind-proxy", "X-Forwarded-For", "--rate-limit", "3/3600");
    const through = await proxy(direct);
    const left = async (from, headers) => {
        const answered = await ask(through, "/api/blocks", { from, headers });
        return [answered.status, answered.headers["x-ratelimit-userremaining"]];
    };
    // Pages and their files are not counted.
    for (let load = 0; load < 5; load++) {
        for (const path of ["/", "/page/main.js", "/page/live.css", "/page/drawing.js", "/api/docs/start.js"]) {
            assert.equal(await status(through, path, { from: "127.0.0.3", headers: { accept: "text/html" } }), 200);
        }
    }
    assert.deepEqual(await left("127.0.0.3"), [200, "2"]);
    assert.deepEqual(await left("127.0.0.2"), [200, "2"]);
    // What a client says of itself does not count.
    assert.deepEqual(await left("127.0.0.2", { "x-forwarded-for": "198.51.100.1" }), [200, "1"]);
    assert.deepEqual(await left("127.0.0.2", { "x-forwarded-for": "127.0.0.3" }), [200, "0"]);
    assert.deepEqual(await left("127.0.0.2", { "x-forwarded-for": "198.51.100.2" }), [429, "-1"]);
    assert.deepEqual(await left("127.0.0.3"), [200, "1"]);
});

test("behind a proxy that says nothing of itself nobody steers, either", async () => {
    const bare = "server { listen 8080; location / { proxy_pass http://127.0.0.1:4003; } }\n";
    const direct = await testnet("--behind-proxy", "X-Forwarded-For");
    const through = await proxy(direct, bare);
    for (const path of ["/lab", "/metrics", "/api/webhooks"]) {
        assert.equal(await status(through, path), 403, path);
        assert.equal(await status(direct, path), 403, path);
    }
});

test("who has the token steers through the proxy, and events come as they happen", async () => {
    const file = join(folder, "token");
    writeFileSync(file, TOKEN);
    const through = await proxy(await testnet("--behind-proxy", "X-Forwarded-For", "--lab", "token", "--lab-token", file));
    const headers = { authorization: `Bearer ${TOKEN}` };
    assert.equal(await status(through, "/lab/pace"), 401);
    assert.equal(await status(through, "/lab/pace", { headers }), 200);
    const request = http.get({ port: through, host: "127.0.0.1", path: "/lab/events", headers, agent: false });
    const [events] = await once(request, "response");
    assert.equal(events.statusCode, 200);
    const [greeting] = await once(events.setEncoding("utf8"), "data");
    assert.match(greeting, /the next event is/);
    // What comes before somebody listens is lost, and the event may come before the answer does.
    const heard = once(events, "data");
    const advanced = await ask(through, "/lab/advance", { headers, body: '{"slots":1}' });
    assert.equal(advanced.status, 200, advanced.text);
    const [event] = await heard;
    assert.match(event, /^id: \d+\ndata: /);
    request.destroy();
});
