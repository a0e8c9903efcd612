"""The Python of docs/sdk.md, as it stands there, against a testnet."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

from testnet import Testnet

DEFAULT = "http://127.0.0.1:4003/api"


def main():
    page = (Path(__file__).resolve().parents[3] / "docs/sdk.md").read_text()
    snippets = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(snippets) == 1, f"{len(snippets)} snippets"
    testnet = Testnet()
    try:
        testnet.advance(3)
        assert DEFAULT in snippets[0], "it names the default address"
        code = snippets[0].replace(DEFAULT, testnet.url)
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
        assert run.returncode == 0, run.stderr
        body = json.loads(run.stdout)
        assert len(body["data"]["accept"]) == 1, body
        testnet.advance(2)
        url = f"{testnet.url}/transactions/{body['data']['accept'][0]}"
        with urllib.request.urlopen(url, timeout=600) as response:
            assert json.load(response)["data"]["confirmations"] > 0
    finally:
        code = testnet.stop()
    assert code == 0, f"a stopped testnet ends with code {code}"
    print("1 passed, 0 failed")


main()
