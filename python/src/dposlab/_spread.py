"""A sweep on an executor.

    plan ──► shards of equal cost ──► workers: dposlab sweep --only A..B ──► shards/A-B.rows here, by atomic rename
                   ▲                            │ the child died at run k                   │ all there
                   └── k alone, then the rest ◄─┘                                           ▼
                                                                     dposlab sweep --out DIR --gather rows
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from ._deal import Dealer, MakeExecutor, Range, cut, halves, parts_for
from ._errors import DposlabError, UsageError
from ._process import Ended, Tell, call
from ._worker import Job, Played, by_value, rows

#: The folder with the rows of shards.
SHARDS = "shards"


def spread(
    arguments: list[str],
    folder: Path,
    executor: Executor | MakeExecutor,
    timeout: float | None,
    memory: int | None,
    patience: float | None,
    shards: int | None,
    tell: Tell,
) -> Ended:
    """Plays what is not there yet, and makes the results. Answers how the last command ended: 0, or 1 where runs failed."""
    plan: dict[str, Any] = call([*arguments, "--plan"]).json()
    most = max(cell["memory_bytes"] for cell in plan["cells"])
    if memory is not None and most > memory:
        raise UsageError(f"memory: found {memory} bytes, allowed are {most} and more, which a run of this sweep needs")
    files, here = by_value(plan["files"])
    job = Job(tuple(_relative(arguments)), files, here, timeout, memory)
    store = Store(folder / SHARDS, plan, tell)
    each = plan["runs"] // len(plan["cells"])
    costs = [max(cell["cost"], 1) for cell in plan["cells"]]
    pieces = cut(store.missing(), lambda run: costs[run // each], shards or parts_for(executor))
    Dealer(executor, partial(rows, job), store.take, store.lost, patience).deal(pieces)
    return store.gather(arguments, folder)


def _relative(arguments: list[str]) -> list[str]:
    """The arguments with the scenario's file as a worker finds it."""
    return [arguments[0], os.path.relpath(arguments[1]), *arguments[2:]]


class Store:
    """The rows that have come in, a file a shard. Each file appears whole or not at all."""

    def __init__(self, folder: Path, plan: dict[str, Any], tell: Tell) -> None:
        self._folder, self._rows_of, self._runs, self._tell = folder, plan["rows_of"], plan["runs"], tell
        self._done: set[int] = set()
        self._counts = {"failed": 0, "censored": 0}
        #: Runs whose process has died once.
        self._suspects: set[int] = set()
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(folder.glob("*.rows")):
            head, *lines = file.read_text(encoding="utf-8").splitlines()
            self._check(head, str(file))
            self._count(lines)

    def missing(self) -> list[Range]:
        """The runs that have not come in, as ranges."""
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
        """Keeps the rows of a shard, and answers what is to be played again: the run at which the child died, alone, and the
        rest. A run whose child dies again is a row that says by what."""
        first, end = work
        lines = played.lines[1:]
        if played.lines:
            self._check(played.lines[0], "a worker")
        if played.by is not None and len(lines) < end - first:
            culprit = first + len(lines)
            if culprit in self._suspects:
                lines.append(json.dumps({"run": culprit, "status": "died", "by": played.by}))
            self._suspects.add(culprit)
        self._keep(work, lines)
        rest = first + len(lines)
        if rest == end:
            return []
        if played.by is None:
            return halves((rest, end))
        alone = [(rest, rest + 1)] if rest in self._suspects else []
        left = (rest + len(alone), end)
        return alone + (halves(left) if left[0] < end else [])

    def lost(self, run: int) -> None:
        """Writes down a run whose worker was lost again and again."""
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
        numbers = [json.loads(line)["run"] for line in lines]
        if numbers != list(range(work[0], work[0] + len(lines))):
            raise DposlabError(f"a worker: found rows of the runs {numbers}, allowed are those of {work[0]} to {work[1] - 1}")
        handle, partial_name = tempfile.mkstemp(dir=self._folder, suffix=".partial")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("\n".join([json.dumps({"rows_of": self._rows_of}), *lines]) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial_name, self._folder / f"{work[0]:012}-{work[0] + len(lines):012}.rows")
        self._count(lines)

    def _count(self, lines: list[str]) -> None:
        for line in lines:
            row = json.loads(line)
            self._done.add(row["run"])
            self._counts["failed"] += row["status"] in ("broken", "halted", "died")
            self._counts["censored"] += row["status"] == "censored"
        self._tell({"done": len(self._done), "total": self._runs, **self._counts})

    def _check(self, head: str, where: str) -> None:
        found = json.loads(head).get("rows_of")
        if found != self._rows_of:
            raise UsageError(
                f"{where}: found rows of another sweep or version of dposlab, {found}, allowed are those of {self._rows_of}"
            )
