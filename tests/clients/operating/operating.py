"""The unit, the backup, the proxies and the dashboard of docs/operating.md, with a real testnet."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILES = ROOT / "examples" / "operating"
PAGE = (ROOT / "docs" / "operating.md").read_text()
PROGRAM = os.path.abspath(os.environ.get("DPOSLAB_BIN", ROOT / "target/release/dposlab"))
TOKEN = "0123456789abcdef"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def until(true, what):
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, f"{what} did not come within a minute"
        time.sleep(0.02)


def ask(port, path, method="GET", body=None, token=None, tls=False):
    context = ssl._create_unverified_context() if tls else None
    client = http.client.HTTPSConnection("127.0.0.1", port, timeout=600, context=context) if tls else http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    headers = {"content-type": "application/json"} if body is not None else {}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    client.request(method, path, None if body is None else json.dumps(body), headers)
    answer = client.getresponse()
    text = answer.read().decode()
    client.close()
    return answer.status, text


def answers(port, tls=False):
    try:
        return ask(port, "/api/blockchain", tls=tls)[0] == 200
    except OSError:
        return False


class Operating(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="dposlab-operating-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def begin(self, *words):
        # Caddy writes below these.
        own = {"XDG_CONFIG_HOME": str(self.folder / "config"), "XDG_DATA_HOME": str(self.folder / "data")}
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, cwd=self.folder, env={**os.environ, **own})

        def end():
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
                child.wait(20)

        self.addCleanup(end)
        return child

    def started(self, *options, name="ready"):
        ready = self.folder / f"{name}.json"
        given = ["up", "--port", "0", "--delegates", "5", "--stage", "inline", "--ready-file", str(ready)]
        child = self.begin(PROGRAM, *given, *options)
        until(lambda: ready.exists() or child.poll() is not None, "a testnet")
        return child, int(re.search(r":(\d+)/api", json.loads(ready.read_text())["url"])[1])

    def test_the_command_of_the_unit_runs_reloads_and_stops(self):
        unit = (FILES / "dposlab.service").read_text()
        command = re.search(r"^ExecStart=(.*?[^\\])$", unit, re.M | re.S)[1].replace("\\\n", " ").split()
        places = {"/usr/local/bin/dposlab": PROGRAM}
        for place in ("/var/lib/dposlab", "/var/log/dposlab", "/run/dposlab"):
            (self.folder / place.replace("/", "-")).mkdir()
            places[place] = str(self.folder / place.replace("/", "-"))
        for place, instead in places.items():
            command = [word.replace(place, instead) for word in command]
        port = free_port()
        child = self.begin(*command, "--port", str(port), "--speed", "50")
        wait = re.search(r"^ExecStartPost=/bin/sh -c '(.*)'$", unit, re.M)[1]
        for place, instead in places.items():
            wait = wait.replace(place, instead)
        subprocess.run(["sh", "-c", wait], check=True, timeout=600)
        self.assertEqual(ask(port, "/api/node/status")[0], 200)
        log = self.folder / "-var-log-dposlab" / "node.log"
        until(lambda: log.exists() and log.stat().st_size > 0, "a line of the log")
        log.rename(log.with_suffix(".old"))
        self.assertIn("ExecReload=/bin/kill -HUP $MAINPID", unit)
        child.send_signal(signal.SIGHUP)
        until(log.exists, "a new log")
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(3.5), 0)
        refused = subprocess.run([PROGRAM, "up", "--no-such-option"], capture_output=True)
        self.assertIn(f"RestartPreventExitStatus={refused.returncode}", unit)

    def test_the_unit_and_the_other_files_are_what_their_programs_take(self):
        if shutil.which("systemd-analyze"):
            text = (FILES / "dposlab.service").read_text().replace("/usr/local/bin/dposlab", PROGRAM)
            unit = self.folder / "dposlab.service"
            unit.write_text(text)
            told = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
            ours = [line for line in told.stderr.splitlines() if "dposlab" in line]
            self.assertEqual((told.returncode, ours), (0, []))
        if shutil.which("promtool"):
            subprocess.run(["promtool", "check", "config", str(FILES / "prometheus.yml")], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["sh", "-n", str(FILES / "backup.sh")], check=True)

    def test_logrotate_moves_the_log_and_no_line_is_lost(self):
        child, port = self.started("--pace", "manual", "--log", "node.log")
        text = (FILES / "logrotate.conf").read_text()
        hang_up = "systemctl kill --signal HUP --kill-whom main dposlab.service"
        for shown, instead in (("/var/log/dposlab/node.log", str(self.folder / "node.log")), ("    su dposlab dposlab\n", ""), (hang_up, f"kill -HUP {child.pid}")):
            self.assertIn(shown, text)
            text = text.replace(shown, instead)
        rules, log, old = self.folder / "logrotate.conf", self.folder / "node.log", self.folder / "node.log.1"
        rules.write_text(text)
        rules.chmod(0o644)
        ask(port, "/lab/advance", "POST", {"slots": 20})
        subprocess.run(["logrotate", "--force", "--state", str(self.folder / "state"), str(rules)], check=True)
        until(lambda: log.exists(), "a new log")
        ask(port, "/lab/advance", "POST", {"slots": 20})
        child.send_signal(signal.SIGTERM)
        child.wait(10)
        heights = [[int(height) for height in re.findall(r"Applied block \d+ at height (\d+)", file.read_text())] for file in (old, log)]
        self.assertEqual(heights, [list(range(2, 22)), list(range(22, 42))])

    def test_a_copy_of_a_running_testnet_goes_on_with_its_blocks(self):
        given = ["--checkpoint-every", "50", "--pace", "manual"]
        _, port = self.started("--data-dir", "kept", "--speed", "2000", "--checkpoint-every", "50")
        for number in range(3):
            subprocess.run([FILES / "backup.sh", "kept", f"copy-{number}"], cwd=self.folder, check=True)
            height = json.loads(ask(port, "/api/blockchain")[1])["data"]["block"]["height"]
            until(lambda: json.loads(ask(port, "/api/blockchain")[1])["data"]["block"]["height"] > height + 100, "100 blocks")
        for number in range(3):
            _, copy = self.started("--data-dir", f"copy-{number}", *given, name=f"copy-{number}")
            tip = json.loads(ask(copy, "/api/blockchain")[1])["data"]["block"]
            original = json.loads(ask(port, f"/api/blocks/{tip['height']}")[1])["data"]
            self.assertEqual(original["id"], tip["id"])
            self.assertGreater(tip["height"], 1)

    def test_an_upgrade_by_the_chain_has_the_same_blocks(self):
        child, port = self.started("--data-dir", "kept", "--pace", "manual")
        ask(port, "/lab/advance", "POST", {"slots": 30})
        tip = json.loads(ask(port, "/api/blockchain")[1])["data"]["block"]
        child.send_signal(signal.SIGTERM)
        child.wait(10)
        manifest = self.folder / "kept" / "network.json"
        now = manifest.read_text()
        manifest.write_text(re.sub(r'"version": "[^"]+"', '"version": "0.0.9"', now))
        refused = subprocess.run([PROGRAM, "up", "--data-dir", "kept", "--delegates", "5"], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("was begun by dposlab 0.0.9", refused.stderr)
        manifest.write_text(now)
        subprocess.run([PROGRAM, "export", "kept", "--out", "chain.jsonl"], cwd=self.folder, check=True)
        for name in ("new", "again"):
            child, port = self.started("--data-dir", "new", "--chain", "chain.jsonl", "--pace", "manual", name=name)
            self.assertEqual(json.loads(ask(port, "/api/blockchain")[1])["data"]["block"], tip)
            child.send_signal(signal.SIGTERM)
            child.wait(10)

    @unittest.skipUnless(subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0, "buildah needs to mount for a container without a daemon")
    def test_the_image_of_the_dockerfile_runs_as_the_page_says(self):
        # No image of Rust or Alpine can be had, so the first stage is not built: the program is the one of the tests, with its libraries.
        store = ["buildah", "--storage-driver", "vfs", "--root", str(self.folder / "store"), "--runroot", str(self.folder / "run")]
        context = self.folder / "context"
        stage = re.search(r"^FROM scratch\n.*", (ROOT / "Dockerfile").read_text(), re.M | re.S)[0]
        source, place = re.search(r"COPY --from=build (\S+) (\S+)", stage).groups()
        stage = stage.replace("--from=build ", "")
        files = {source: PROGRAM}
        for library in re.findall(r"/\S+", subprocess.run(["ldd", PROGRAM], check=True, capture_output=True, text=True).stdout):
            files[library] = library
            stage += f"COPY {library} {library}\n"
        for name, original in files.items():
            (context / name.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(original, context / name.lstrip("/"))
        (context / "Dockerfile").write_text(stage)
        subprocess.run([*store, "bud", "--isolation", "chroot", "-t", "dposlab", str(context)], check=True, capture_output=True)
        container = subprocess.run([*store, "from", "dposlab"], check=True, capture_output=True, text=True).stdout.strip()
        config = json.loads(subprocess.run([*store, "inspect", container], check=True, capture_output=True, text=True).stdout)["OCIv1"]["config"]
        self.assertEqual(config["Entrypoint"], [place])

        port = free_port()
        block = re.search(r"docker run.*?\n    dposlab (up .*?)\n", PAGE, re.S)
        data, token = self.folder / "data", self.folder / "token"
        data.mkdir()
        os.chown(data, 65532, 65532)
        token.write_text(TOKEN)
        token.chmod(0o644)
        volumes = ["--volume", f"{data}:/data", "--volume", f"{token}:/token:ro"]
        for name, words in (("as the page says", block[1].split()), ("as it is", config["Cmd"])):
            own = ["--port", str(port), "--stage", "inline", "--delegates", "5"]
            child = self.begin(*store, "run", "--isolation", "chroot", *volumes, container, "--", *config["Entrypoint"], *words, *own)
            until(lambda: answers(port) or child.poll() is not None, f"a testnet {name}")
            # A container's port mapping does not arrive from loopback. Here it does, so only the token closes the lab.
            if name == "as the page says":
                self.assertEqual([ask(port, "/lab")[0], ask(port, "/lab", token=TOKEN)[0]], [401, 200])
            running = self.descendants(child.pid)
            [testnet] = [pid for pid in running if os.path.basename(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]) == b"dposlab"]
            status = Path(f"/proc/{testnet}/status").read_text()
            self.assertRegex(status, r"Uid:(\s65532){4}")
            self.assertRegex(status, r"CapEff:\s0+\n")
            os.kill(testnet, signal.SIGTERM)
            self.assertEqual(child.wait(20), 0)
        self.assertTrue((data / "testnet" / "network.json").exists())
        self.assertEqual((data / "testnet").stat().st_uid, 65532)

    def descendants(self, pid):
        of = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        for task in Path(f"/proc/{pid}/task").iterdir():
            of += [int(child) for child in (task / "children").read_text().split() if int(child) not in of]
        return of + [below for child in of for below in self.descendants(child)]

    def test_nginx_serves_the_public_api_and_nothing_of_the_lab(self):
        _, before = self.started("--pace", "manual", "--behind-proxy", "X-Forwarded-For")
        subject = ["-subj", "/CN=testnet.example.com", "-keyout", "key.pem", "-out", "cert.pem"]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject], cwd=self.folder, check=True, capture_output=True)
        server = re.search(r"```nginx\n(.*?)```", PAGE, re.S)[1]
        port = free_port()
        for shown, instead in (("listen 443", f"listen 127.0.0.1:{port}"), ("/etc/ssl/testnet.pem", f"{self.folder}/cert.pem"), ("/etc/ssl/testnet.key", f"{self.folder}/key.pem"), ("127.0.0.1:4003", f"127.0.0.1:{before}")):
            self.assertIn(shown, server)
            server = server.replace(shown, instead)
        places = "".join(f"{name}_temp_path {self.folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;\n" if os.getuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(f"{user}daemon off;\nmaster_process off;\npid {self.folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{places}{server}}}\n")
        self.begin("nginx", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"), "-e", str(self.folder / "errors"))
        self.closed(port, tls=True)

    def test_caddy_serves_the_public_api_and_nothing_of_the_lab(self):
        _, before = self.started("--pace", "manual", "--behind-proxy", "X-Forwarded-For")
        server = re.search(r"```caddyfile\n(.*?)```", PAGE, re.S)[1]
        port = free_port()
        server = server.replace("testnet.example.com", f"http://127.0.0.1:{port}").replace("127.0.0.1:4003", f"127.0.0.1:{before}")
        (self.folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https off\n}\n" + server)
        self.begin("caddy", "run", "--config", str(self.folder / "Caddyfile"))
        self.closed(port)

    def closed(self, port, tls=False):
        until(lambda: answers(port, tls), "a proxy")
        for path in ("/api/node/status", "/api/blocks", "/", "/page/main.js"):
            self.assertEqual(ask(port, path, tls=tls)[0], 200, path)
        for path in ("/lab", "/lab/pace", "/metrics", "/chains/1/api/blocks", "/views/1/lab"):
            self.assertEqual(ask(port, path, tls=tls)[0], 404, path)
        self.assertEqual(ask(port, "/lab/advance", "POST", {"slots": 1}, tls=tls)[0], 404)
        self.assertEqual(ask(port, "/api/webhooks", tls=tls)[0], 403)

    def test_the_dashboard_and_the_alerts_name_figures_that_are_served(self):
        (self.folder / "token").write_text(TOKEN)
        _, port = self.started("--pace", "manual", "--lab", "token", "--lab-token", "token")
        self.assertEqual(ask(port, "/metrics")[0], 401)
        ask(port, "/api/blocks")
        status, text = ask(port, "/metrics", token=TOKEN)
        self.assertEqual(status, 200)
        served = {re.match(r"[a-z_]+", line)[0] for line in text.splitlines() if line and not line.startswith("#")}
        dashboard = json.loads((FILES / "grafana.json").read_text())
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        queries += re.findall(r"expr: (.*)", (FILES / "alerts.yml").read_text())
        named = {name for query in queries for name in re.findall(r"\b(?:dposlab|process)_[a-z_]+", query)}
        self.assertGreater(len(named), 15)
        self.assertEqual(named - served, set())
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), 16)
        self.assertIn(f"{len(dashboard['panels'])} panels", PAGE)


if __name__ == "__main__":
    unittest.main()
