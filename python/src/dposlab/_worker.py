"""The work of a worker: it plays runs in a child process, within limits, and returns their rows by value.

The job contains all files, so no disk is shared. The worker needs this package and nothing else.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._errors import DposlabError, UsageError
from ._lease import Lease
from ._process import Listener, close, start


#: The interval at which a worker checks whether its caller still waits [s].
EVERY = 0.5


@dataclass(frozen=True)
class Job:
    """The common part of all shards of a sweep or a search."""

    #: The program's arguments, without those that choose the runs.
    arguments: tuple[str, ...]
    #: Contents of files by their path below a common folder.
    files: dict[str, bytes]
    #: The working directory of the command, as a path below that folder.
    folder: str
    #: Seconds that one run may take.
    timeout: float | None
    #: Bytes of address space that the child may have (RLIMIT_AS).
    memory: int | None
    #: Shows whether the caller still waits for the result.
    wanted: Lease


@dataclass(frozen=True)
class Played:
    """The result of a worker: the lines that the child printed, the cause of its death, if it died, and its exit code."""

    lines: list[str]
    by: str | None
    code: int = 0

    def death(self) -> str:
        """The reason why the child ended before it had printed everything, in the program's words."""
        return self.by or f"exit {self.code}"


def rows(job: Job, first: int, end: int) -> Played:
    """Plays the runs of a sweep from one number up to another. Raises :class:`UsageError` if the job is not a valid sweep."""
    return _played(job, ["--only", f"{first}..{end}", "--jobs", "1"], job.timeout)


def search(job: Job, first: int, end: int) -> Played:
    """Plays the runs of a search from one seed up to another. The only line is the output of ``check --json``."""
    limit = None if job.timeout is None else job.timeout * (end - first)
    return _played(job, ["--seed", str(first), "--runs", str(end - first), "--jobs", "1"], limit)


def minimal(job: Job, first: int, end: int) -> Played:
    """Does the same as :func:`search`. The second line has the texts of the scenario files by their names."""
    return _played(job, ["--seed", str(first), "--runs", str(end - first), "--jobs", "1"], None, findings=True)


def _played(job: Job, more: list[str], limit: float | None, findings: bool = False) -> Played:
    with tempfile.TemporaryDirectory(prefix="dposlab-") as place:
        for name, content in job.files.items():
            file = Path(place, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        folder = Path(place, job.folder)
        folder.mkdir(parents=True, exist_ok=True)
        played = _child([*job.arguments, *more], str(folder), limit, job.memory, job.wanted)
        if findings:
            texts = {file.name: file.read_text(encoding="utf-8") for file in (folder / "findings").glob("*.toml")}
            played.lines.append(json.dumps(texts))
        return played


def _child(arguments: list[str], cwd: str, limit: float | None, memory: int | None, wanted: Lease) -> Played:
    """Runs the program. Kills it if it prints nothing for longer than the limit [s], or if its caller no longer waits."""
    # The system limits the memory, so the program's own limit must not be lower.
    most = [] if memory is None else ["--max-memory", str(memory)]
    child = start([*arguments, *most], cwd=cwd, memory=memory)
    printed: queue.Queue[str | None] = queue.Queue()
    told = Listener(child.stderr, None)
    reader = threading.Thread(target=_read, args=(child.stdout, printed), daemon=True)
    reader.start()
    try:
        lines, late = _lines(printed, limit, wanted)
        if late:
            child.kill()
        code = child.wait()
    except BaseException:
        child.kill()
        child.wait()
        raise
    finally:
        # The end of the child closes its pipes, which ends the threads.
        reader.join()
        told.join()
        close(child)
    if code == 2:
        raise UsageError(told.text().removeprefix("dposlab: "))
    return Played(lines, "time limit" if late else _death(code, told.text()), code)


def _read(stream: Any, printed: queue.Queue[str | None]) -> None:
    for line in stream:
        if line.endswith("\n"):  # an incomplete line does not count
            printed.put(line.rstrip("\n"))
    printed.put(None)


def _lines(printed: queue.Queue[str | None], limit: float | None, wanted: Lease) -> tuple[list[str], bool]:
    lines: list[str] = []
    left = limit
    while True:
        wait = EVERY if left is None else min(EVERY, max(left, 0))
        try:
            line = printed.get(timeout=wait)
        except queue.Empty:
            if wanted.is_over():
                raise DposlabError("the caller of these runs no longer waits for them") from None
            left = None if left is None else left - wait
            if left is not None and left <= 0:
                return lines, True
            continue
        if line is None:
            return lines, False
        lines.append(line)
        left = limit


def _death(code: int, stderr: str) -> str | None:
    """The cause of a child's death, in the program's words; ``None`` if the child ended normally."""
    if code in (0, 1):
        return None
    if code == -signal.SIGABRT and "memory allocation of" in stderr:
        return "memory limit"
    return f"signal {-code}" if code < 0 else f"exit {code}"


def by_value(names: list[str]) -> tuple[dict[str, bytes], str]:
    """The files of these names by their path below their common folder with the working directory, and the path of that directory."""
    here = os.getcwd()
    paths = [os.path.abspath(name) for name in names]
    common = os.path.commonpath([here, *(os.path.dirname(path) for path in paths)])
    files = {os.path.relpath(path, common): Path(path).read_bytes() for path in paths}
    return files, os.path.relpath(here, common)
