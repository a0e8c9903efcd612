"""Runs the Python of the README and of docs/python.md as it stands there: what has tests by pytest, all else as a program."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

root = Path(sys.argv[1])
SNIPPET = re.compile(r"```python\n(.*?)```", re.DOTALL)


def play(page, number, text):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "scenarios").symlink_to(root / "scenarios")
        is_test = re.search(r"^def test_", text, re.MULTILINE)
        file = Path(folder) / ("test_snippet.py" if is_test else "snippet.py")
        file.write_text(text)
        how = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if is_test else []
        ended = subprocess.run([sys.executable, *how, file.name], cwd=folder, capture_output=True, text=True, timeout=600)
        assert ended.returncode == 0, f"{page}, snippet {number}:\n{ended.stdout}\n{ended.stderr}"


count = 0
for page in ("README.md", "docs/python.md", "python/README.md"):
    for number, text in enumerate(SNIPPET.findall((root / page).read_text()), 1):
        play(page, number, text)
        count += 1
assert count >= 5, f"{count} snippets"
print(f"{count} snippets, in {os.path.basename(sys.executable)}")
