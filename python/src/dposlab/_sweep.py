"""Many runs of one scenario: on the cores of this machine, or on the workers of an executor."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _tables
from ._deal import PATIENCE, MakeExecutor, check_effect
from ._errors import DposlabError, UsageError
from ._process import Ended, Name, call, is_number, listed, literal, options, path, plain, whole
from ._progress import Progress
from ._run import Report
from ._temporary import Temporary
from ._verdict import Verdict, judged_by

if TYPE_CHECKING:
    import pyarrow

#: The files from which :attr:`Sweep.digest` is computed.
RESULTS = ("runs.parquet", "runs.csv", "failures.parquet", "failures.csv", "summary.json", "report.html")


class Sweep:
    """The results of a sweep. ``docs/figures.md`` defines each member and column."""

    def __init__(self, folder: Path, ok: bool, keep: Temporary | None) -> None:
        #: The folder with all files.
        self.folder = folder
        #: Whether no run failed and all claims hold. A censored run has not failed.
        self.ok = ok
        #: ``summary.json``.
        self.summary: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        #: The claims of the caller that do not hold, in words; empty if all hold.
        self.why = ""
        #: The verdicts on the claims of the caller, in their order.
        self.verdicts: list[Verdict] = []
        self._keep = keep

    @cached_property
    def runs(self) -> pyarrow.Table:
        """A row for each run. Raises :class:`MissingExtra` without pyarrow."""
        return _tables.parquet(self.folder / "runs.parquet")

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The distributions of each combination of varied values, with their confidence intervals."""
        cells: list[dict[str, Any]] = self.summary["cells"]
        return cells

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The first 100 runs that failed, each with the command that repeats it (``reproduce``)."""
        failures: list[dict[str, Any]] = self.summary["failures"]
        return failures

    def indices(self, *figures: str) -> list[dict[str, Any]]:
        """The indices of Sobol of each figure: the share of its variance that each varied value explains, alone and with others.

        The points must be those of ``dposlab points saltelli``, or have the same layout.
        """
        of = [word for figure in figures for word in ("--of", figure)]
        indices: list[dict[str, Any]] = call(["indices", path(self.folder), *of, "--json"]).json()["indices"]
        return indices

    @cached_property
    def digest(self) -> str:
        """SHA256 of all results, 64 hexadecimal digits: the same on any machine and with any number of workers."""
        digest = hashlib.sha256()
        for name in RESULTS:
            digest.update(hashlib.sha256((self.folder / name).read_bytes()).digest())
        return digest.hexdigest()

    def report(self) -> Report:
        """The page with plots."""
        return Report(self.folder / "report.html", self._keep)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.summary["by_status"].items())
        return f"<Sweep of {self.summary['scenario']}: {self.summary['runs']} runs ({counts}), digest {self.digest[:16]}>"


def sweep(
    scenario: Name,
    *,
    seeds: range | tuple[int, int] = range(100),
    vary: Mapping[str, Sequence[object]] | None = None,
    points: Name | Sequence[Mapping[str, object]] | None = None,
    set: Mapping[str, object] | None = None,
    out: Name | None = None,
    jobs: int | None = None,
    executor: Executor | MakeExecutor | None = None,
    timeout: float | None = None,
    memory: int | None = None,
    patience: float | None = PATIENCE,
    shards: int | None = None,
    until_ci: str | None = None,
    compare: bool = False,
    claims: Sequence[Callable[[Sweep], object]] = (),
    progress: bool | None = None,
) -> Sweep:
    """Runs a scenario with many seeds and every combination of values.

    ``seeds`` is a range, or the first seed and the one after the last. ``vary`` has the values by path. ``points`` are more
    combinations, each with the same paths: mappings, or a CSV file as ``dposlab points`` draws it. ``out`` is a folder that keeps all
    files; the same call continues an unfinished sweep there, also with more seeds. Without ``out``, a temporary folder lasts as long as
    the returned object. ``jobs`` runs are played at a time, without an ``executor`` only. ``until_ci``, such as
    ``"missed.rate<0.001"``, ends the sweep with the first seed after which the mean of a figure is known that well. Then
    ``summary["until_ci"]`` has the mean, and ``seeds`` are the most that are played. ``compare`` compares each combination of values with
    the first one, seed by seed: ``summary["compared"]`` has the differences. Each of ``claims`` is called with the finished sweep, as
    the claims of :func:`run` are called with the run.

    With an ``executor``, shards of runs are dealt out to its workers, each of which needs this package. An executor is any object with
    the protocol of :class:`concurrent.futures.Executor`, an executor of submitit, or a callable that makes an executor and is called
    again when that is lost. A run may take ``timeout`` seconds and ``memory`` bytes of address space. A run that takes more, or whose
    process dies otherwise twice, becomes a row with the status ``died``. If no worker answers for ``patience`` seconds, the executor
    counts as lost, and the rest is played here. ``timeout``, ``patience`` and ``shards``, the number of shards, need an executor. The
    results are those of a sweep without executor, byte for byte.

    Raises :class:`UsageError` if the arguments describe no sweep, and :class:`RunDied` if the program itself died. Ctrl-C stops the whole
    sweep; with ``out`` no row is lost.
    """
    first, end = _seeds(seeds)
    check_effect(executor, jobs, timeout=timeout, patience=patience, shards=shards)
    if executor is not None and until_ci is not None:
        raise UsageError("until_ci: its seeds come one after the other, so allowed is no executor")
    keep = Temporary() if out is None else None
    folder = Path(path(out)) if out is not None else Path(keep.name if keep else "")
    arguments = ["sweep", path(scenario), "--seeds", f"{first}..{end}", *options(set=set)]
    arguments += _varied(vary)
    claims = listed("claims", claims, "[a_function]")
    with _table(points) as table, Progress("sweep", "run", progress) as bar:
        arguments += [] if table is None else [f"--points={table}"]
        if executor is None:
            more = ["--out", path(folder), "--json", "--progress", "json"]
            more += [] if jobs is None else ["--jobs", whole("jobs", jobs, 1)]
            more += [] if until_ci is None else [f"--until-ci={until_ci}"]
            more += ["--compare"] if compare else []
            more += [] if memory is None else [f"--max-memory={memory}"]
            ended = call([*arguments, *more], bar.tell)
        else:
            from ._spread import spread

            ended = spread(arguments, folder, executor, timeout, memory, patience, shards, compare, bar.tell)
    played = Sweep(folder, _is_well(ended), keep)
    judged_by(claims, played)
    return played


def _varied(vary: Mapping[str, Sequence[object]] | None) -> list[str]:
    """The options for varied values. Raises :class:`UsageError` for a path whose values are no list, or not different from each other."""
    if vary is not None and not isinstance(vary, Mapping):
        raise UsageError(f'vary: found {vary!r}, allowed is a mapping of paths to lists, such as {{"network.loss": [0, 0.1]}}')
    arguments = []
    for name, given in (vary or {}).items():
        values = listed(f"vary: {name}", given, "[0, 0.1]")
        seen: dict[object, object] = {}
        for value in values:
            key = _compared(value)
            if key in seen:
                raise UsageError(f"vary: {name}: found {seen[key]!r} and {value!r}, which are equal, allowed are different values")
            seen[key] = value
        arguments.append(f"--vary={name}={','.join(map(literal, values))}")
    return arguments


def _compared(value: object) -> object:
    """A key that equal values of a scenario share: ``0`` and ``0.0``, but not ``"0"`` or ``False``."""
    value = plain(value)
    return value if is_number(value) else literal(value)


@contextlib.contextmanager
def _table(points: Name | Sequence[Mapping[str, object]] | None) -> Iterator[str | None]:
    """The file of the points."""
    if points is None or isinstance(points, (str, bytes, os.PathLike)):
        yield None if points is None else path(points)
        return
    rows = listed("points", points, '[{"network.loss": 0.1}]')
    strange = next((row for row in rows if not isinstance(row, Mapping) or set(row) != set(rows[0])), None)
    paths = list(rows[0]) if rows and strange is None else []
    if not paths or strange is not None:
        raise UsageError(f"points: found {strange or points!r}, allowed are mappings with one list of paths")
    with tempfile.TemporaryDirectory(prefix="dposlab-") as folder:
        file = Path(folder) / "points.csv"
        with file.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([paths, *([literal(row[name]) for name in paths] for row in rows)])
        yield path(file)


def _seeds(given: Any) -> tuple[int, int]:
    """The first seed and the one after the last."""
    allowed = "allowed are a range in steps of one, or its first number and the one after its last, from 0 on"
    found = (given.start, given.stop) if isinstance(given, range) and given.step == 1 else given
    if not (isinstance(found, tuple) and len(found) == 2 and all(isinstance(seed, int) and seed >= 0 for seed in found)):
        raise UsageError(f"seeds: found {given!r}, {allowed}")
    return found


def _is_well(ended: Ended) -> bool:
    if ended.code == 1 and not ended.stdout.startswith("{"):
        raise DposlabError(ended.stderr)
    return ended.code == 0
