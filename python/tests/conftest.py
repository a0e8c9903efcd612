"""What the package's tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

import dposlab

pytest_plugins = ["pytester"]

SCENARIO = """
version = 1
rounds = 6
[network]
delegates = 9
latency = { min_ms = 20, max_ms = 100 }
[[fault]]
kind = "offline"
delegates = ["genesis_3"]
rounds = { from = 2, to = 3 }
"""

#: Does what the program does, but for one run of a sweep, or one seed of a search, at which it kills itself each time.
DEADLY = """#!/bin/bash
case " $* " in
*" --only "*) "{binary}" "$@" | while IFS= read -r line; do
    case $line in '{{"run":7,'*) kill -9 $$; exit ;; esac
    printf '%s\\n' "$line"
  done ;;
*" --seed 7 --runs 1 "*|*" run "*" --seed 7 "*) kill -9 $$ ;;
*) exec "{binary}" "$@" ;;
esac
"""


class Watched(Executor):
    """Passes everything on, and does something once, as soon as so many answers are there."""

    def __init__(self, executor: Executor, after: int, do: Callable[[], None]) -> None:
        self._executor, self._left, self._do = executor, after, do
        self.did = False
        self._client = getattr(executor, "_client", None)

    def submit(self, work: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = self._executor.submit(work, *arguments, **named)
        future.add_done_callback(self._count)
        return future

    def _count(self, future: Future[Any]) -> None:
        self._left -= 1
        if self._left == 0:
            self.did = True
            self._do()


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A small scenario in the working directory."""
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(SCENARIO)
    return "s.toml"


@pytest.fixture
def deadly(tmp_path: Path) -> Path:
    """A program that kills itself at run 7."""
    file = tmp_path / "deadly"
    file.write_text(DEADLY.format(binary=dposlab.binary()))
    file.chmod(0o755)
    return file


def program(folder: Path, case: str) -> Path:
    """A program that does what dposlab does, but in one case of a shell's `case`, by its arguments with spaces around."""
    file = folder / "program"
    file.write_text(f'#!/bin/bash\ncase " $* " in\n{case}\n*) exec "{dposlab.binary()}" "$@" ;;\nesac\n')
    file.chmod(0o755)
    return file


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


#: How long what should happen at once may take on a machine that is busy with other things [s].
PATIENCE = 60.0


def wait_until_gone(pid: int) -> None:
    """Waits for the end of a process that may be another's child."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    import select

    poll = select.poll()
    poll.register(handle, select.POLLIN)
    gone = poll.poll(PATIENCE * 1000)
    os.close(handle)
    assert gone or not is_alive(pid), f"process {pid} is still there after {PATIENCE} s"
