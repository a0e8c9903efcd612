"""A sweep on an executor.

    plan ──► shards of equal cost ──► workers: dposlab sweep --only A..B ──► shards/A-B.rows here, by atomic rename
                   ▲                            │ the child died at run k                   │ all there
                   └── k alone, then the rest ◄─┘                                           ▼
                                                                     dposlab sweep --out DIR --gather rows
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from ._deal import ATTEMPTS, Dealer, MakeExecutor, Range, cut, halves, parts_for
from ._errors import DposlabError, UsageError
from ._lease import lease
from ._process import Ended, Tell, call, path
from ._worker import Job, Played, by_value, rows

#: The folder with the rows of shards.
SHARDS = "shards"
#: The least address space that the program needs at its start [bytes].
LEAST_MEMORY = 64 << 20


def spread(
    arguments: list[str],
    folder: Path,
    executor: Executor | MakeExecutor,
    timeout: float | None,
    memory: int | None,
    patience: float | None,
    shards: int | None,
    compare: bool,
    tell: Tell,
) -> Ended:
    """Plays the missing runs and makes the results. Returns the end of the last command, with code 0, or 1 if runs failed."""
    plan: dict[str, Any] = call([*arguments, "--plan"]).json()
    if memory is not None and memory < LEAST_MEMORY:
        raise UsageError(f"memory: found {memory} bytes, allowed are {LEAST_MEMORY} and more: the program needs that to begin")
    files, here = by_value(plan["files"])
    each = plan["runs"] // len(plan["cells"])
    costs = [max(cell["cost"], 1) for cell in plan["cells"]]
    with _told(folder), alone(folder / SHARDS), lease() as wanted:
        job = Job(tuple(_relative(arguments)), files, here, timeout, memory, wanted)
        store = Store(folder / SHARDS, plan, tell)
        pieces = cut(store.missing(), lambda run: costs[run // each], shards or parts_for(executor))
        Dealer(executor, partial(rows, job), store.take, store.lost, patience).deal(pieces)
        return store.gather([*arguments, "--compare"] if compare else arguments, folder)


@contextlib.contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Turns an error of the system into one of this package that names the folder."""
    try:
        yield
    except OSError as error:
        raise DposlabError(f"{error.filename or folder}: {error.strerror or error}; rows that came in before are kept") from error


#: Folders that threads of this process put rows into, by their real names.
_IN_USE: set[str] = set()


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Makes the folder, and locks it for this sweep. Raises :class:`DposlabError` if another sweep has locked it.

    The lock belongs to the process and not to the open file, because forked workers would hold a file's lock after the caller's end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = os.path.realpath(folder)
    in_use = DposlabError(f"{folder}: another sweep puts its rows there, allowed is one at a time")
    if name in _IN_USE:
        raise in_use
    _IN_USE.add(name)
    try:
        with (folder / "lock").open("w", encoding="utf-8") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise in_use from None
                # A file system without locks.
            yield
    finally:
        _IN_USE.discard(name)


def _relative(arguments: list[str]) -> list[str]:
    """The arguments with relative paths of the scenario's file and of the points' file, as a worker finds them."""
    points = "--points="
    of = lambda one: points + path(os.path.relpath(one.removeprefix(points))) if one.startswith(points) else one
    return [arguments[0], path(os.path.relpath(arguments[1])), *map(of, arguments[2:])]


class Store:
    """The rows that have arrived, one file per shard. Each file appears whole or not at all."""

    def __init__(self, folder: Path, plan: dict[str, Any], tell: Tell) -> None:
        self._folder, self._rows_of, self._runs, self._tell = folder, plan["rows_of"], plan["runs"], tell
        self._done: set[int] = set()
        self._counts = {"failed": 0, "censored": 0}
        #: Runs whose process has died once.
        self._suspects: set[int] = set()
        #: The number of times that a run's process ended by itself without its row.
        self._empty: dict[int, int] = {}
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("*.partial"):
            file.unlink()
        for file in sorted(folder.glob("*.rows")):
            self._read(file)

    def _read(self, file: Path) -> None:
        """Counts the rows of an earlier call. A damaged file is deleted, and its runs are played again."""
        first, _, end = file.stem.partition("-")
        work = (int(first), int(end))
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        kept = _good(work, lines[1:])
        if self._is_ours(lines, str(file)) and len(kept) == work[1] - work[0]:
            self._count(kept)
        else:
            warnings.warn(f"{file}: found no rows of the runs {work[0]} to {work[1] - 1}: they are played again", stacklevel=5)
            file.unlink()

    def missing(self) -> list[Range]:
        """The missing runs, as ranges."""
        ranges: list[Range] = []
        for run in range(self._runs):
            if run in self._done:
                continue
            if ranges and ranges[-1][1] == run:
                ranges[-1] = (ranges[-1][0], run + 1)
            else:
                ranges.append((run, run + 1))
        return ranges

    def take(self, work: Range, played: Played) -> list[Range]:
        """Keeps the rows of a shard, and returns the ranges to be played again: the run at which the child died, alone, and the
        rest. If the child dies at that run again, the run gets a row with the cause. The same happens if the child ends three times
        without a valid row for the run."""
        first, end = work
        lines = _good(work, played.lines[1:]) if self._is_ours(played.lines, "a worker") else []
        culprit = first + len(lines)
        if culprit < end and (self._died(culprit) if played.by is not None else self._was_empty(culprit)):
            lines.append(json.dumps({"run": culprit, "status": "died", "by": played.death()}))
            if played.by is None:
                found = played.lines[culprit - first + 1 : culprit - first + 2] or ["nothing more"]
                warnings.warn(f"run {culprit}: found {found[0][:80]!r}, allowed is its row: it counts as died", stacklevel=6)
        self._keep(work, lines)
        rest = first + len(lines)
        if rest == end:
            return []
        if played.by is None:
            return halves((rest, end))
        alone = [(rest, rest + 1)] if rest in self._suspects else []
        left = (rest + len(alone), end)
        return alone + (halves(left) if left[0] < end else [])

    def _died(self, run: int) -> bool:
        """Whether the process of a run has died before. Records that it has died now."""
        before = run in self._suspects
        self._suspects.add(run)
        return before

    def _was_empty(self, run: int) -> bool:
        """Records that the process of a run ended without its row. Returns whether this is the third time."""
        self._empty[run] = self._empty.get(run, 0) + 1
        return self._empty[run] >= ATTEMPTS

    def lost(self, run: int) -> None:
        """Records a run whose worker was lost repeatedly."""
        self._keep((run, run + 1), [json.dumps({"run": run, "status": "died", "by": "lost"})])

    def gather(self, arguments: list[str], folder: Path) -> Ended:
        """Makes the results of all rows."""
        whole = self._folder / "all"
        with whole.open("w", encoding="utf-8") as to:
            to.write(json.dumps({"rows_of": self._rows_of}) + "\n")
            for file in sorted(self._folder.glob("*.rows")):
                with file.open(encoding="utf-8") as lines:
                    next(lines)
                    shutil.copyfileobj(lines, to)
        ended = call([*arguments, "--out", str(folder), "--gather", str(whole), "--json"])
        if not ended.stdout.startswith("{"):
            raise DposlabError(ended.stderr)
        shutil.rmtree(self._folder)
        return ended

    def _keep(self, work: Range, lines: list[str]) -> None:
        if not lines:
            return
        handle, partial_name = tempfile.mkstemp(dir=self._folder, suffix=".partial")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write("\n".join([json.dumps({"rows_of": self._rows_of}), *lines]) + "\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial_name, self._folder / f"{work[0]:012}-{work[0] + len(lines):012}.rows")
        except BaseException:
            os.unlink(partial_name)
            raise
        self._count(lines)

    def _count(self, lines: list[str]) -> None:
        for line in lines:
            row = json.loads(line)
            self._done.add(row["run"])
            self._counts["failed"] += row["status"] in ("broken", "halted", "died")
            self._counts["censored"] += row["status"] == "censored"
        self._tell({"done": len(self._done), "total": self._runs, **self._counts})

    def _is_ours(self, lines: list[str], where: str) -> bool:
        """Whether the first line names this sweep. False if it names none. Raises :class:`UsageError` if it names another sweep."""
        found = _object(lines[0]).get("rows_of") if lines else None
        if found is not None and found != self._rows_of:
            raise UsageError(
                f"{where}: found rows of another sweep or version of dposlab, {found}, allowed are those of {self._rows_of}"
            )
        return found is not None


def _good(work: Range, lines: list[str]) -> list[str]:
    """The lines up to the first that is not the row of its run."""
    runs = zip(range(*work), lines)
    return [line for _, line in itertools.takewhile(lambda pair: _is_row_of(*pair), runs)]


def _is_row_of(run: int, line: str) -> bool:
    """Whether a line is a run's row, by the checksum in it (`report::sweep::rows`), or says that the run died."""
    row = _object(line)
    if row.get("run") != run:
        return False
    if row.get("status") == "died" and isinstance(row.get("by"), str):
        return True
    try:
        encoded = bytes.fromhex(row["row"])
    except (KeyError, TypeError, ValueError):
        return False
    content, checksum = encoded[:-4], encoded[-4:]
    return zlib.crc32(b"dposlab row" + run.to_bytes(8, "little") + content).to_bytes(4, "little") == checksum


def _object(line: str) -> dict[str, Any]:
    """The JSON object of a line, or an empty one if the line is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
