"""A dposlab testnet of one's own whose clock stands until it is told to go on."""

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path

BINARY = os.environ.get("DPOSLAB_BIN") or str(Path(__file__).resolve().parents[3] / "target/release/dposlab")


class Testnet:
    def __init__(self, *arguments):
        command = [BINARY, "up", "--json", "--port", "0", "--pace", "manual", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            message = json.loads(line)
            if message["event"] == "ready":
                self.url, self.accounts = message["url"], message["accounts"]
                return
        raise RuntimeError(f"dposlab up ended with code {self.process.wait()} before it was ready")

    def advance(self, slots):
        """Plays so many slots."""
        request = urllib.request.Request(
            self.url.removesuffix("/api") + "/lab/advance",
            data=json.dumps({"slots": slots}).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=600) as response:
            assert response.status == 200

    def stop(self):
        """Stops it as Ctrl-C does, and gives its exit code."""
        self.process.send_signal(signal.SIGINT)
        for _ in self.process.stdout:
            pass
        return self.process.wait(timeout=600)
