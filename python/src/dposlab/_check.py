"""A search for runs in which something does not hold."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from math import exp, lgamma
from pathlib import Path
from typing import Any

from ._deal import PATIENCE, Dealer, MakeExecutor, Range, check_effect, cut, halves, parts_for
from ._errors import DposlabError, UsageError
from ._lease import Lease, lease
from ._process import Name, Tell, call, options, path, whole
from ._progress import Progress
from ._strategy import Strategy, deciding
from ._worker import Job, Played, by_value, minimal, search

#: The chance of a false alarm for each known cause (``ALARM`` in ``src/check/known_causes.rs``).
ALARM = 1e-4


@dataclass(frozen=True)
class Finding:
    """A broken invariant with its cause, from all runs of a search that showed both, with or without the certificate of the cause."""

    invariant: str
    cause: str
    #: The source of the invariant.
    source: str
    #: The number of runs that showed it, and the seed of the first one.
    runs: int
    seed: int
    #: Whether the list of known findings has it. The list covers only findings with a certificate.
    known: bool
    #: The first observation.
    what: dict[str, Any]
    #: The scenario file that shows it, minimised unless the minimiser died. ``None`` for a known finding, and for one whose seed is in
    #: :attr:`Check.died`.
    file: Path | None
    #: Whether the runs show the certificate of the cause.
    certified: bool
    #: Whether it is known and comes more often than the list has recorded.
    too_often: bool


@dataclass(frozen=True)
class Check:
    """The result of a search."""

    runs: int
    slots: int
    findings: list[Finding]
    #: The seeds of runs that died, each with the cause: ``{"seed": 7, "by": "signal 9"}``. Some died only when they were played again
    #: to write the file of a finding.
    died: list[dict[str, Any]] = field(default_factory=list)
    #: Whether the program was stopped before its end.
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        """Whether every run was played, all findings are known, and none comes more often than recorded."""
        is_whole = not self.died and not self.interrupted
        return is_whole and all(finding.known and not finding.too_often for finding in self.findings)


def check(
    scenario: Name | None = None,
    *,
    runs: int = 200,
    seed: int = 1,
    rules: str = "corrected",
    delegates: int | None = None,
    budget: int = 400,
    out: Name = "findings",
    known: Name | None = None,
    jobs: int | None = None,
    executor: Executor | MakeExecutor | None = None,
    timeout: float | None = None,
    memory: int | None = None,
    patience: float | None = PATIENCE,
    strategies: Sequence[Strategy] = (),
    progress: bool | None = None,
) -> Check:
    """Draws networks, clients and faults from seeds, plays them, and checks the invariants.

    ``scenario`` is a scenario to search around. It has a number of delegates, so ``delegates`` beside it is refused. ``rules`` are
    ``"corrected"`` or ``"reference"``. ``budget`` runs are spent on minimising each finding. Files of findings go to ``out``. With an
    ``executor``, ranges of seeds are dealt out to its workers, as :func:`dposlab.sweep` deals out runs. Findings are merged by
    invariant, cause and certificate. A run may take ``timeout`` seconds there. ``timeout`` and ``patience`` need an executor, and
    ``jobs`` needs a search without one. ``strategies`` are functions whose kinds of faults are drawn beside the others
    (:func:`dposlab.strategy`). They decide in this process, so they cannot be used with an ``executor``. Raises :class:`UsageError` for
    arguments that allow no search.
    """
    check_effect(executor, jobs, timeout=timeout, patience=patience)
    arguments = ["check"] + ([] if scenario is None else [path(scenario)]) + ["--rules", rules]
    arguments += [] if delegates is None else ["--delegates", whole("delegates", delegates, 1)]
    numbers = [*options(seed), "--runs", whole("runs", runs), "--budget", whole("budget", budget)]
    if executor is not None and strategies:
        raise UsageError("strategies: they decide in this process, so allowed is no executor")
    with Progress("check", "run", progress) as bar:
        if executor is not None:
            listed = ["--known", path(known)] if known is not None else []
            files = [path(name) for name in (scenario, known) if name is not None]
            if scenario is not None:
                files += call(["sweep", path(scenario), "--seeds", "0..1", "--plan"]).json()["files"]
            with lease() as wanted:
                spreading = _Spread([*arguments, *listed], files, Path(path(out)), seed, runs, wanted, bar.tell)
                return spreading.run(executor, budget, timeout, memory, patience)
        more = [*numbers, "--out", path(out)]
        more += ["--json", "--progress", "json"]
        more += [] if jobs is None else ["--jobs", whole("jobs", jobs, 1)]
        more += [] if known is None else ["--known", path(known)]
        more += [] if memory is None else [f"--max-memory={memory}"]
        with deciding(strategies) as known_here:
            told = call([*arguments, *more, *known_here], bar.tell).json()
    findings = [_finding(found, found["file"]) for found in told["found"]]
    return Check(told["runs"], told["slots"], findings, interrupted=told["interrupted"])


def _finding(found: dict[str, Any], file: str | Path | None) -> Finding:
    return Finding(
        invariant=found["invariant"],
        cause=found["cause"],
        source=found["source"],
        runs=found["runs"],
        seed=found["seed"],
        known=found["known"],
        what=found["finding"],
        file=None if file is None else Path(file),
        certified=found["certified"],
        too_often=found["too_often"],
    )


#: The invariant, the cause, and whether the runs show its certificate. Findings with equal signatures count as one.
Signature = tuple[str, str, bool]


def _signature(found: dict[str, Any]) -> Signature:
    return found["invariant"], found["cause"], found["certified"]


def _comes_too_often(so: int, of: int, recorded: list[int] | None) -> bool:
    """Whether a cause that ``so`` of ``of`` runs show comes more often than recorded, by the test of ``src/check/known_causes.rs``.

    It is Fisher's exact test, one-sided.
    """
    if recorded is None:
        return False
    both, others = so + recorded[0], recorded[1]
    # Far below the mean the first term is too small for a float.
    if so * others <= recorded[0] * of:
        return False

    def ways(total: int, count: int) -> float:
        return lgamma(total + 1) - lgamma(count + 1) - lgamma(total - count + 1)

    chance = exp(ways(of, so) + ways(others, both - so) - ways(of + others, both))
    total = chance
    # Each term follows from the one before. The terms behind the largest one fall, so the rest soon changes nothing.
    for count in range(so, min(both, of)):
        chance *= (of - count) * (both - count) / ((count + 1) * (others - both + count + 1))
        total += chance
        if total >= ALARM or chance < total * 1e-12:
            break
    return total < ALARM


class _Spread:
    """A search on an executor: first all runs, then one more job for each seed, which minimises the findings that it showed first.

    If that job dies, another one writes the scenarios as they were found.
    """

    def __init__(
        self, arguments: list[str], files: list[str], out: Path, seed: int, runs: int, wanted: Lease, tell: Tell
    ) -> None:
        names = [argument if argument not in files else path(os.path.relpath(argument)) for argument in arguments]
        self._arguments, self._out, self._wanted, self._tell = names, out, wanted, tell
        self._files, self._here = by_value(files)
        self._seeds, self._runs, self._slots = (seed, seed + runs), 0, 0
        self._found: dict[Signature, dict[str, Any]] = {}
        self._texts: dict[Signature, Path] = {}
        self._died: list[dict[str, Any]] = []
        #: The end of the last job that minimised the findings of a seed.
        self._ends: dict[int, str] = {}

    def run(
        self,
        executor: Executor | MakeExecutor,
        budget: int,
        timeout: float | None,
        memory: int | None,
        patience: float | None,
    ) -> Check:
        whole = self._job(0, timeout, memory)
        self._deal(executor, partial(search, whole), self._take, patience, [self._seeds], self._lost)
        self._minimise(executor, self._job(budget, timeout, memory), patience)
        for seed in self._unwritten():
            told = "the run is played again, and its scenario stays as it was found"
            warnings.warn(f"seed {seed}: minimising its findings ended by {self._ends[seed]}: {told}", stacklevel=3)
        self._minimise(executor, self._job(0, timeout, memory), patience)
        self._died += [{"seed": seed, "by": self._ends[seed]} for seed in self._unwritten()]
        for found in self._found.values():
            # A piece of the search alone proves nothing: each would be a test of its own.
            found["too_often"] = found["known"] and _comes_too_often(found["runs"], self._runs, found["recorded"])
        ordered = sorted(self._found.items(), key=lambda item: (item[1]["seed"], item[0]))
        findings = [_finding(found, self._texts.get(signature)) for signature, found in ordered]
        return Check(self._runs, self._slots, findings, sorted(self._died, key=lambda died: int(died["seed"])))

    def _unwritten(self) -> list[int]:
        """The seeds with a finding that should have a file and has none."""
        return sorted({found["seed"] for one, found in self._found.items() if not found["known"] and one not in self._texts})

    def _minimise(self, executor: Executor | MakeExecutor, job: Job, patience: float | None) -> None:
        one_each = [(seed, seed + 1) for seed in self._unwritten()]
        if one_each:
            lost = lambda seed: self._ends.update({seed: "lost"})
            self._deal(executor, partial(minimal, job), self._take_small, patience, one_each, lost)

    def _job(self, budget: int, timeout: float | None, memory: int | None) -> Job:
        more = ("--budget", str(budget), "--json", "--out", "findings")
        return Job((*self._arguments, *more), self._files, self._here, timeout, memory, self._wanted)

    def _deal(
        self,
        executor: Executor | MakeExecutor,
        work: Callable[[int, int], Played],
        take: Callable[[Range, Played], list[Range]],
        patience: float | None,
        ranges: list[Range],
        lost: Callable[[int], None],
    ) -> None:
        pieces = cut(ranges, lambda seed: 1.0, parts_for(executor))
        Dealer(executor, work, take, lost, patience).deal(pieces)

    def _take(self, work: Range, played: Played) -> list[Range]:
        told = json.loads(played.lines[0]) if played.by is None and played.lines else None
        if told is None or told["interrupted"]:
            if work[1] - work[0] > 1:
                return halves(work)
            self._died.append({"seed": work[0], "by": played.death()})
            return []
        self._runs += told["runs"]
        self._slots += told["slots"]
        for found in told["found"]:
            so_far = self._found.setdefault(_signature(found), {**found, "runs": 0})
            runs = so_far["runs"] + found["runs"]
            if found["seed"] < so_far["seed"]:
                so_far.update(found)
            so_far["runs"] = runs
        self._tell({"done": self._runs, "total": self._seeds[1] - self._seeds[0]})
        return []

    def _take_small(self, work: Range, played: Played) -> list[Range]:
        self._ends[work[0]] = played.death()
        if played.by is None and len(played.lines) == 2:
            told, texts = (json.loads(line) for line in played.lines)
            for found in told["found"]:
                signature = _signature(found)
                if found["file"] is not None and self._found.get(signature, {}).get("seed") == work[0]:
                    name = Path(found["file"]).name
                    self._texts[signature] = self._write(name, texts[name])
        return []

    def _write(self, name: str, text: str) -> Path:
        """Writes a finding's file, under a name that no other finding's file has."""
        self._out.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            file = self._out / (name if number == 1 else f"{Path(name).stem}-{number}.toml")
            if not file.exists():
                file.write_text(text, encoding="utf-8")
            if file.read_text(encoding="utf-8") == text:
                return file
        raise DposlabError(f"{self._out}: has too many files named like {name}")

    def _lost(self, seed: int) -> None:
        self._died.append({"seed": seed, "by": "lost"})
