"""Sweeps and searches: on an executor as without one, whatever dies."""

from __future__ import annotations

import contextlib
import csv
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from math import comb
from pathlib import Path
from typing import Any

import pytest

import dposlab
from conftest import Watched, program
from dposlab._check import ALARM, _comes_too_often
from dposlab._deal import Dealer, cut
from dposlab._process import call, limited

VARY = {"network.latency.max_ms": [100, 700]}


def test_claims_are_asked_of_the_table_of_runs(scenario: str) -> None:
    def half_is_late(sweep: dposlab.Sweep) -> object:
        return sweep.runs.to_pandas()["missed_slots"].mean() > 1_000

    sweep = dposlab.sweep(scenario, seeds=range(3), claims=[half_is_late, lambda sweep: sweep.runs.num_rows == 3])
    assert [verdict.holds for verdict in sweep.verdicts] == [False, True]
    assert not sweep.ok and sweep.why == "half_is_late: does not hold"


def test_an_executor_gives_the_results_of_one_process(scenario: str) -> None:
    alone = dposlab.sweep(scenario, seeds=range(5, 12), vary=VARY, out="alone", jobs=1)
    assert alone.ok and alone.runs.num_rows == 14 and len(alone.cells) == 2
    with ProcessPoolExecutor(2) as pool:
        spread = dposlab.sweep(scenario, seeds=range(5, 12), vary=VARY, out="spread", executor=pool)
        # A path of another form is another scenario for a reader, and the same for a worker.
        absolute = dposlab.sweep(os.path.abspath(scenario), seeds=range(5, 12), vary=VARY, executor=pool)
    assert spread.digest == alone.digest
    assert absolute.runs.equals(alone.runs)
    assert Path("spread/rows.bin").read_bytes() == Path("alone/rows.bin").read_bytes()
    assert not Path("spread/shards").exists()
    assert dposlab.sweep(scenario, seeds=range(5, 12), vary=VARY, out="spread").digest == alone.digest


def test_points_are_played_wherever_they_come_from(scenario: str) -> None:
    points = [{"network.loss": loss, "rounds": rounds} for loss, rounds in ((0.0, 4), (0.01, 3), (0.0, 3))]
    alone = dposlab.sweep(scenario, seeds=range(2), points=points, out="alone")
    rows = [(row["network.loss"], row["rounds"], row["seed"]) for row in alone.runs.to_pylist()]
    assert rows == [(0.0, 4, 0), (0.0, 4, 1), (0.01, 3, 0), (0.01, 3, 1), (0.0, 3, 0), (0.0, 3, 1)]
    assert dposlab.sweep(scenario, seeds=range(2), points="alone/points.csv").digest == alone.digest
    with ThreadPoolExecutor(2) as pool:
        assert dposlab.sweep(scenario, seeds=range(2), points=points, executor=pool).digest == alone.digest
    for wrong in ([], [{}], [{"rounds": 1}, {"network.loss": 0.1}]):
        with pytest.raises(dposlab.UsageError, match="points: found"):
            dposlab.sweep(scenario, points=wrong)
    with pytest.raises(dposlab.UsageError, match="point 2 in line 3 .rounds=0.: "):
        dposlab.sweep(scenario, points=[{"rounds": 3}, {"rounds": 0}])


def test_indices_of_a_study(scenario: str) -> None:
    pairs = [(3, 5), (5, 8), (4, 6), (6, 7)]
    mixed = [point for (a, b), (c, d) in zip(pairs, pairs[1:]) for point in ((a, b), (c, b), (a, d), (c, d))]
    study = dposlab.sweep(scenario, seeds=range(1), points=[{"rounds": a, "network.relays": b} for a, b in mixed])
    (height, blocks) = study.indices("height", "blocks")
    assert (height["figure"], blocks["figure"], height["pairs"]) == ("height", "blocks", 3)
    assert [value["path"] for value in height["values"]] == ["rounds", "network.relays"]
    assert height["values"][0]["total"] > 0.5 and height["values"][1]["total"] == 0
    with pytest.raises(dposlab.UsageError, match="allowed are missed.rate"):
        study.indices("heights")


def test_included_files_go_with_the_work(scenario: str) -> None:
    os.makedirs("deep/er")
    Path("deep/er/top.toml").write_text('include = ["../../s.toml"]\nrounds = 3\n')
    with ThreadPoolExecutor(2) as pool:
        spread = dposlab.sweep("deep/er/top.toml", seeds=(0, 4), executor=pool)
    assert spread.digest == dposlab.sweep("deep/er/top.toml", seeds=(0, 4)).digest


def test_a_run_that_kills_its_process_is_one_row(scenario: str, deadly: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = dposlab.sweep(scenario, seeds=range(24)).runs.to_pylist()
    monkeypatch.setenv("DPOSLAB_BIN", str(deadly))
    with ProcessPoolExecutor(2) as pool:
        spread = dposlab.sweep(scenario, seeds=range(24), executor=pool, shards=3)
    rows = spread.runs.to_pylist()
    assert [row["run"] for row in rows] == list(range(24))
    assert (rows[7]["status"], rows[7]["ended"], rows[7]["height"]) == ("died", "signal 9", None)
    assert rows[:7] + rows[8:] == whole[:7] + whole[8:]
    assert not spread.ok and spread.summary["died"] == spread.cells[0]["died"] == 1
    assert spread.cells[0]["ok"]["of"] == 23, "who died says nothing of the network"
    assert spread.failures[0]["ended"] == "signal 9" and "--seed 7" in spread.failures[0]["reproduce"]


@pytest.mark.parametrize("makes_new", [False, True], ids=["one pool", "a pool after another"])
def test_a_killed_worker_of_a_pool_costs_no_run(scenario: str, makes_new: bool) -> None:
    whole = dposlab.sweep(scenario, seeds=range(40))
    pools: list[ProcessPoolExecutor] = []

    def make() -> Executor:
        pool = ProcessPoolExecutor(2)
        pids = [pool.submit(os.getpid).result() for _ in range(2)]
        pools.append(pool)
        # The first one loses a worker as soon as three shards are there. A pool is broken as a whole by that.
        kill = lambda: os.kill(pids[0], signal.SIGKILL)
        return Watched(pool, 3, kill) if len(pools) == 1 else pool

    with pytest.warns(UserWarning, match="the executor is lost") if not makes_new else contextlib.nullcontext():
        sweep = dposlab.sweep(scenario, seeds=range(40), executor=make if makes_new else make())
    assert len(pools) == 1 + makes_new
    assert [row["run"] for row in sweep.runs.to_pylist()] == list(range(40))
    assert sweep.ok and sweep.digest == whole.digest
    for pool in pools:
        pool.shutdown()


def test_a_run_that_takes_too_long_is_a_row(scenario: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        late = dposlab.sweep(scenario, seeds=(0, 2), set={"rounds": 100_000}, executor=pool, timeout=0.5)
    assert [row["ended"] for row in late.runs.to_pylist()] == ["time limit"] * 2


def test_a_run_that_needs_more_than_its_memory_is_a_row_and_harms_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text("version = 1\nrounds = 3\n[network]\ndelegates = 9\n")
    asked: Any = {"seeds": (3, 5), "vary": {"network.relays": [0, 2_200, 1]}}
    command = ["sweep", "s.toml", "--seeds", "3..5", "--vary", "network.relays=0,2200,1"]
    # The small runs fit; a full mesh of 2,209 nodes does not.
    limit = 150 << 20
    whole = dposlab.sweep("s.toml", **asked).runs.to_pylist()
    assert {row["status"] for row in whole} == {"ok"}
    with ThreadPoolExecutor(2) as pool:
        tight = dposlab.sweep("s.toml", **asked, executor=pool, memory=limit)
        wide = dposlab.sweep("s.toml", **asked, executor=pool, memory=4 * limit)
    rows = tight.runs.to_pylist()
    # Nothing but the limit differs between the two.
    assert wide.runs.to_pylist() == whole
    assert [(row["status"], row["ended"]) for row in rows[2:4]] == [("died", "memory limit")] * 2
    assert rows[:2] + rows[4:] == whole[:2] + whole[4:]
    assert [cell["died"] for cell in tight.cells] == [0, 2, 0] and not tight.ok
    command += ["--only", "2..3", "--jobs", "1"]
    for memory, code in ((limit, -signal.SIGABRT), (4 * limit, 0)):
        ended = subprocess.run([*limited(memory), dposlab.binary(), *command], capture_output=True, text=True)
        assert ended.returncode == code, ended.stderr
        assert ("memory allocation of" in ended.stderr) == (code != 0)


def test_the_limit_of_memory_is_in_force_from_the_beginning() -> None:
    command = [*limited(100 << 20), sys.executable, "-c", "import resource; print(resource.getrlimit(resource.RLIMIT_AS))"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == f"({100 << 20}, {100 << 20})\n"


def test_a_sweep_goes_on_from_the_rows_it_has(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dposlab._spread import Store

    whole = dposlab.sweep(scenario, seeds=range(20))
    taken: list[Any] = []

    def take(store: Store, work: Any, played: Any, take: Any = Store.take) -> Any:
        taken.append(work)
        if len(taken) == 4:
            raise KeyboardInterrupt
        return take(store, work, played)

    monkeypatch.setattr(Store, "take", take)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(KeyboardInterrupt):
            dposlab.sweep(scenario, seeds=range(20), out="out", executor=pool, shards=10)
        kept = len(list(Path("out/shards").glob("*.rows")))
        assert kept == 3
        again = dposlab.sweep(scenario, seeds=range(20), out="out", executor=pool, shards=7)
    assert again.digest == whole.digest
    assert not {number for work in taken[:3] for number in range(*work)} & {n for w in taken[4:] for n in range(*w)}


def _number(first: int, end: int) -> list[int]:
    return list(range(first, end))


class Flaky(ThreadPoolExecutor):
    """An executor whose every second answer is lost, and which is broken from the sixth on."""

    def __init__(self, kill: Callable[[int], BaseException | None]) -> None:
        super().__init__(2)
        self._kill, self._given = kill, 0

    def submit(self, *arguments: Any, **named: Any) -> Future[Any]:
        self._given += 1
        why = self._kill(self._given)
        if why is None:
            return super().submit(*arguments, **named)
        lost: Future[Any] = Future()
        lost.set_exception(why)
        return lost


@pytest.mark.parametrize("makes_new", [False, True])
def test_no_number_is_lost_or_doubled_whatever_the_executor_does(makes_new: bool) -> None:
    from concurrent.futures.process import BrokenProcessPool

    def kill(given: int) -> BaseException | None:
        if given >= 6:
            return BrokenProcessPool("a worker is gone")
        return OSError("its worker is gone") if given % 2 else None

    came: list[int] = []
    lost: list[int] = []
    make: Callable[[], Executor] = lambda: Flaky(kill)
    dealer = Dealer(
        make if makes_new else make(), _number, lambda work, numbers: came.extend(numbers) or [], lost.append, None
    )
    with pytest.warns(UserWarning, match="the executor is lost") if not makes_new else contextlib.nullcontext():
        dealer.deal(cut([(0, 40)], lambda number: 1.0, 8))
    assert sorted(came + lost) == list(range(40)) and (makes_new or not lost)


class Handle:
    """What submitit calls a job, and what it raises for one whose process is gone."""

    def __init__(self, future: Future[Any], is_lost: bool) -> None:
        self._future, self._is_lost, self.done, self.cancel = future, is_lost, future.done, future.cancel

    def result(self) -> Any:
        if self._is_lost:
            raise RuntimeError("the job was not requeued, and has no result")
        return self._future.result()


class Giver:
    """An executor without the protocol: it gives out jobs. Every fifth is lost."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool, self.given = pool, 0

    def submit(self, work: Any, *arguments: Any) -> Handle:
        self.given += 1
        return Handle(self._pool.submit(work, *arguments), self.given % 5 == 0)


@pytest.mark.parametrize("makes", [False, True])
def test_an_executor_that_gives_out_jobs_does_as_well(scenario: str, makes: bool) -> None:
    whole = dposlab.sweep(scenario, seeds=range(20))
    with ThreadPoolExecutor(2) as pool:
        giver: Any = Giver(pool)
        sweep = dposlab.sweep(scenario, seeds=range(20), executor=(lambda: giver) if makes else giver, shards=6)
    assert sweep.digest == whole.digest and giver.given > 6
    with ThreadPoolExecutor(1) as pool, pytest.raises(dposlab.UsageError, match="memory"):
        dposlab.sweep(scenario, seeds=range(20), executor=Giver(pool), memory=1)  # type: ignore[arg-type]


def test_a_future_that_is_cancelled_cancels_its_job() -> None:
    from dposlab._jobs import Jobs

    begun, go_on = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        jobs = Jobs(Giver(pool))
        first = jobs.submit(lambda: (begun.set(), go_on.wait()))
        second = jobs.submit(begun.is_set)
        begun.wait()
        assert second.cancel() and not first.done()
        go_on.set()
        assert first.result(timeout=600)
        jobs.shutdown()
        assert jobs.submit(len, "abc").result(timeout=600) == 3, "it watches again"


def test_a_shard_has_its_share_of_the_cost() -> None:
    pieces = cut([(0, 10), (20, 30)], lambda number: 9.0 if number < 10 else 1.0, 10)
    assert pieces == [(n, n + 2) for n in range(0, 10, 2)] + [(20, 30)]


def test_a_search_finds_on_an_executor_what_it_finds_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = lambda search: [(one.invariant, one.cause, one.runs, one.seed) for one in search.findings]
    asked: Any = {"runs": 10, "seed": 8, "rules": "reference", "delegates": 5, "budget": 10}
    alone = dposlab.check(**asked, out="alone")
    with ThreadPoolExecutor(2) as pool:
        spread = dposlab.check(**asked, out="spread", executor=pool)
    assert told(alone) == told(spread) and alone.findings
    assert (alone.runs, alone.slots, alone.ok) == (spread.runs, spread.slots, spread.ok) == (10, alone.slots, False)
    for finding in spread.findings:
        assert finding.file is not None and not dposlab.run(finding.file).ok


def test_a_search_says_which_seed_killed_its_process(deadly: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPOSLAB_BIN", str(deadly))
    with ThreadPoolExecutor(2) as pool:
        search = dposlab.check(runs=4, seed=5, delegates=4, budget=0, executor=pool)
    assert search.runs + len(search.died) == 4


#: A search with findings, and the first line of a list of known causes for it.
SEARCHED: Any = {"runs": 10, "seed": 8, "rules": "reference", "delegates": 5, "budget": 10}
DRAWN = "drawn with: networks as drawn; rules 'reference'; delegates 5; one of four quick and without flaws"


def _listed(search: dposlab.Check, **recorded: str) -> str:
    """A list of the causes of a search. ``once`` and ``twice`` are the records of causes that one run showed, or two."""
    name = lambda one: f"{one.invariant}: {one.cause}" if one.cause else one.invariant
    record = lambda one: recorded.get({1: "once", 2: "twice"}.get(one.runs, ""), f"{one.runs} of {search.runs}")
    Path("known.txt").write_text("\n".join([DRAWN, *(f"{name(one)} | {record(one)}" for one in search.findings)]) + "\n")
    return "known.txt"


def test_a_listed_cause_without_its_certificate_is_another_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    search = dposlab.check(**{**SEARCHED, "budget": 0}, out="alone")
    assert all(finding.certified for finding in search.findings)
    chosen = next(finding for finding in search.findings if finding.runs == 2)
    known = _listed(search)
    # The program finds no certificate in the run that shows the cause first, and so does not take it for known.
    Path("none.txt").write_text("")
    unlisted = f'"{dposlab.binary()}" "${{@/known.txt/{tmp_path}/none.txt}}"'
    uncertified = """sed 's/"certified":true/"certified":false/g'"""
    other = program(tmp_path, f'*" --seed {chosen.seed} --runs 1 "*) {unlisted} | {uncertified} ;;')
    with monkeypatch.context() as patched, ThreadPoolExecutor(2) as pool:
        patched.setenv("DPOSLAB_BIN", str(other))
        spread = dposlab.check(**SEARCHED, known=known, out="spread", executor=pool)
    is_chosen = lambda finding: (finding.invariant, finding.cause) == (chosen.invariant, chosen.cause)
    first, second = filter(is_chosen, spread.findings)
    assert (first.certified, first.known, first.runs, first.seed) == (False, False, 1, chosen.seed)
    assert (second.certified, second.known, second.runs, second.file) == (True, True, 1, None)
    assert first.file is not None and first.file.exists()
    assert not spread.ok


def test_a_known_cause_that_comes_too_often_is_not_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    search = dposlab.check(**{**SEARCHED, "budget": 0}, out="alone")
    assert {finding.runs for finding in search.findings} == {1, 2} and not any(one.too_often for one in search.findings)
    too_often = lambda search: {finding.runs for finding in search.findings if finding.too_often}
    with ThreadPoolExecutor(2) as pool:
        both = lambda known: [dposlab.check(**SEARCHED, known=known, executor=executor) for executor in (None, pool)]
        for found in both(_listed(search)):
            assert found.ok and all(finding.known for finding in found.findings)
        # No piece of the search has too many of them, and the sum has.
        for found in both(_listed(search, twice="1 of 5000")):
            assert not found.ok and too_often(found) == {2} and all(finding.known for finding in found.findings)
        # A piece of one run has too many, and the sum has not.
        assert all(found.ok for found in both(_listed(search, once="1 of 50000")))


def test_the_test_of_too_often_is_fishers() -> None:
    # The exact sums of binomials, and a recorded list beside a long search, which takes no time.
    def exact(so: int, of: int, recorded: list[int]) -> float:
        both = so + recorded[0]
        ways = sum(comb(of, count) * comb(recorded[1], both - count) for count in range(so, min(both, of) + 1))
        return ways / comb(of + recorded[1], both)

    cases = [(3, 4, [1, 4]), (12, 400, [2, 6000]), (40, 400, [400, 6000]), (9, 60, [1, 5000]), (10, 10, [0, 9000]), (0, 5, [3, 9]), (5, 4000, [500, 1000])]
    for so, of, recorded in cases:
        assert _comes_too_often(so, of, recorded) == (exact(so, of, recorded) < ALARM), (so, of, recorded)
    assert not _comes_too_often(62_000, 500_000, [745, 6_000]) and _comes_too_often(66_000, 500_000, [600, 6_000])
    assert not _comes_too_often(5, 10, None)


def test_an_interrupted_search_is_not_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    filter = """sed 's/"interrupted":false/"interrupted":true/'"""
    other = program(tmp_path, f'*" --seed 5 "*) "{dposlab.binary()}" "$@" | {filter} ;;')
    asked: Any = {"runs": 2, "seed": 5, "rules": "repaired", "delegates": 4}
    assert dposlab.check(**asked).ok
    monkeypatch.setenv("DPOSLAB_BIN", str(other))
    alone = dposlab.check(**asked)
    assert alone.interrupted and not alone.ok and not alone.findings
    with ThreadPoolExecutor(2) as pool:
        spread = dposlab.check(**asked, executor=pool)
    assert [died["seed"] for died in spread.died] == [5] and spread.runs == 1 and not spread.ok


def test_a_finding_whose_minimiser_dies_has_the_file_of_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DPOSLAB_BIN", str(program(tmp_path, '*" --budget 10 "*) kill -9 $$ ;;')))
    with ThreadPoolExecutor(1) as pool, pytest.warns(UserWarning, match="minimising its findings ended by signal 9"):
        search = dposlab.check(**SEARCHED, executor=pool)
    assert search.findings and not search.died
    for finding in search.findings:
        assert finding.file is not None and not dposlab.run(finding.file).ok


def test_a_finding_without_a_file_is_known_or_its_run_died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # One worker gets pieces of two runs. Only the jobs that write files have one.
    monkeypatch.setenv("DPOSLAB_BIN", str(program(tmp_path, '*" --runs 1 "*) kill -9 $$ ;;')))
    with ThreadPoolExecutor(1) as pool, pytest.warns(UserWarning, match="ended by signal 9"):
        search = dposlab.check(**SEARCHED, executor=pool)
    assert search.runs == 10 and search.findings and all(finding.file is None for finding in search.findings)
    assert search.died == [{"seed": seed, "by": "signal 9"} for seed in sorted({one.seed for one in search.findings})]


@pytest.mark.parametrize("name", ["timeout", "patience", "shards", "jobs"])
def test_an_argument_without_effect_is_a_mistake(scenario: str, name: str) -> None:
    asked: Any = {name: 2}
    calls: list[Callable[..., Any]] = [lambda **more: dposlab.sweep(scenario, seeds=range(2), **more)]
    calls += [] if name == "shards" else [lambda **more: dposlab.check(runs=2, delegates=4, **more)]
    with ThreadPoolExecutor(1) as pool:
        executor = pool if name == "jobs" else None
        wanted = "allowed is None with an executor" if name == "jobs" else "allowed is (None|600.0) without an executor"
        for one in calls:
            with pytest.raises(dposlab.UsageError, match=f"{name}: found 2, {wanted}"):
                one(**asked, executor=executor)
            one(**asked, executor=None if name == "jobs" else pool)


def test_an_executor_must_be_one(scenario: str) -> None:
    whole = dposlab.sweep(scenario, seeds=range(4))
    with pytest.raises(dposlab.UsageError, match="executor: found 5, allowed is one of concurrent.futures"):
        dposlab.sweep(scenario, seeds=range(4), executor=5)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dposlab.sweep(scenario, seeds=range(4), executor=ThreadPoolExecutor).digest == whole.digest, "a class makes them"


@pytest.mark.parametrize("seeds", [5, [1, 2], (1,), (-1, 3), range(0, 10, 2), "0..5", (0, 1.5)])
def test_what_are_no_seeds_is_a_mistake(scenario: str, seeds: Any) -> None:
    with pytest.raises(dposlab.UsageError, match=r"seeds: found .*, allowed are a range in steps of one"):
        dposlab.sweep(scenario, seeds=seeds)


#: What becomes of a worker's rows, as a filter of lines, and what run 5 counts as then.
SPOILED: dict[str, tuple[str, str]] = {
    "each process prints garbage": ("head -c 400 /dev/urandom", "exit 0"),
    "a process prints nothing": ("cat > /dev/null", "exit 0"),
    "a process ends with 1": ("cat > /dev/null; exit 1", "exit 1"),
    "one row is garbage each time": ("sed '/\"run\":5,/s/.*/garbage/'", "exit 0"),
    "one row has a wrong digit each time": ("sed '/\"run\":5,/s/\"row\":\"f/\"row\":\"e/'", "exit 0"),
    "one row is another run's": ("sed '/\"run\":5,/s/\"run\":5/\"run\":6/'", "exit 0"),
    "one row is missing each time": ("sed '/\"run\":5,/d'", "exit 0"),
    "a row comes twice": ("sed '2p'", ""),
    "more is printed than was asked for": ("cat; echo []; echo '{\"run\":3}'", ""),
}


@pytest.mark.parametrize("how", SPOILED)
@pytest.mark.filterwarnings("ignore:run .* allowed is its row:UserWarning")
def test_rows_that_are_none_are_played_again_and_no_run_is_missing(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    filter, by = SPOILED[how]
    whole = dposlab.sweep(scenario, seeds=range(8)).runs.to_pylist()
    monkeypatch.setenv("DPOSLAB_BIN", str(program(tmp_path, f'*" --only "*) "{dposlab.binary()}" "$@" | {{ {filter}; }} ;;')))
    with ThreadPoolExecutor(2) as pool:
        sweep = dposlab.sweep(scenario, seeds=range(8), executor=pool, shards=2)
    rows = sweep.runs.to_pylist()
    assert [row["run"] for row in rows] == list(range(8))
    died = [row for row in rows if row["status"] == "died"]
    assert {row["ended"] for row in died} == ({by} if by else set()) and sweep.ok == (not by)
    assert "one row" not in how or [row["run"] for row in died] == [5]
    assert all(row == whole[row["run"]] for row in rows if row["status"] != "died")


def test_rows_of_another_version_are_refused(scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = program(tmp_path, f'*" --only "*) "{dposlab.binary()}" "$@" | sed "1s/:.*/:\\"0000\\"}}/" ;;')
    monkeypatch.setenv("DPOSLAB_BIN", str(other))
    with ThreadPoolExecutor(2) as pool, pytest.raises(dposlab.UsageError, match="another sweep or version of dposlab, 0000, allowed"):
        dposlab.sweep(scenario, seeds=range(8), executor=pool)


def test_kept_rows_that_have_come_to_harm_are_played_again(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dposlab._spread import Store

    whole = dposlab.sweep(scenario, seeds=range(12))

    def gather(*_: Any) -> Any:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        with monkeypatch.context() as interrupted, pytest.raises(KeyboardInterrupt):
            interrupted.setattr(Store, "gather", gather)
            dposlab.sweep(scenario, seeds=range(12), out="out", executor=pool, shards=4)
        kept = sorted(Path("out/shards").glob("*.rows"))
        assert len(kept) == 4
        kept[0].write_text(kept[0].read_text().replace('"row":"f', '"row":"e'))
        kept[1].write_text("")
        kept[2].write_bytes(kept[2].read_bytes()[:-100])
        Path("out/shards/x.partial").write_text("torn")
        with pytest.warns(UserWarning, match="found no rows of the runs 0 to 2: they are played again") as warned:
            sweep = dposlab.sweep(scenario, seeds=range(12), out="out", executor=pool)
    assert len(warned) == 3 and sweep.digest == whole.digest


def test_a_folder_is_one_sweeps_at_a_time(scenario: str, tmp_path: Path) -> None:
    from dposlab._spread import alone

    code = "import sys; from pathlib import Path; from dposlab._spread import alone\nwith alone(Path('shards')): print('mine')"
    with alone(Path("shards")):
        with pytest.raises(dposlab.DposlabError, match="shards: another sweep puts its rows there"), alone(Path("shards")):
            pass
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert other.returncode == 1 and "another sweep puts its rows there" in other.stderr
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (other.stdout, other.stderr) == ("mine\n", "")
    with alone(Path("shards")):
        pass


class Refusing(Executor):
    """An executor whose workers fail all in the same way, but for some that do what is asked."""

    def __init__(self, why: BaseException, well: int) -> None:
        self._why, self._well = why, well

    def submit(self, work: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._well -= 1
        if self._well >= 0:
            future.set_result(work(*arguments, **named))
        else:
            future.set_exception(self._why)
        return future


@pytest.mark.parametrize("why", [dposlab.DposlabError("no program dposlab"), ModuleNotFoundError("No module named 'dposlab'")])
def test_workers_that_cannot_do_the_work_are_an_error_and_no_dead_runs(scenario: str, why: Exception) -> None:
    with pytest.raises(dposlab.DposlabError, match="no worker can do the work: .*dposlab"):
        dposlab.sweep(scenario, seeds=range(4), executor=Refusing(why, 0))
    with pytest.warns(UserWarning, match="is given up, lost with its worker 3 times, the last time by .*dposlab"):
        sweep = dposlab.sweep(scenario, seeds=range(4), executor=Refusing(why, 1), shards=2)
    assert [row["status"] for row in sweep.runs.to_pylist()].count("died") == 2


def test_a_full_disk_is_an_error_that_names_the_folder(scenario: str) -> None:
    code = """
import resource, dposlab
from concurrent.futures import ThreadPoolExecutor
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
with ThreadPoolExecutor(1) as pool:
    try:
        dposlab.sweep("s.toml", seeds=range(30), out="out", executor=pool, shards=1)
    except dposlab.DposlabError as error:
        print(error)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stdout == "out: File too large; rows that came in before are kept\n", ended.stderr
    assert [file.name for file in Path("out/shards").iterdir()] == ["lock"], "nothing is left half done"


class Printed:
    """Lines that come so many seconds after each other, on a clock of its own."""

    def __init__(self, *after: float) -> None:
        self._after = list(after)

    def get(self, timeout: float) -> str | None:
        import queue

        if not self._after:
            return None
        if self._after[0] > timeout:
            self._after[0] -= timeout
            raise queue.Empty
        return f"after {self._after.pop(0)}"


@pytest.mark.parametrize(("after", "lines", "late"), [((9, 9, 9), 3, False), ((9, 9, 11), 2, True), ((11, 1), 0, True)])
def test_each_run_of_a_shard_may_take_the_whole_of_its_time(after: tuple[float, ...], lines: int, late: bool) -> None:
    from dposlab._lease import lease
    from dposlab._worker import _lines

    with lease() as wanted:
        printed: Any = Printed(*after)
        found = _lines(printed, 10.0, wanted)
    assert (len(found[0]), found[1]) == (lines, late)
    # Nobody waits for it any more.
    with pytest.raises(dposlab.DposlabError, match="no longer waits for them"):
        _lines(Printed(1), None, wanted)  # type: ignore[arg-type]


def test_a_lease_is_over_with_its_block_and_its_process_alone() -> None:
    import dataclasses

    from dposlab._lease import lease

    with lease() as wanted:
        for _ in range(5):
            assert not wanted.is_over(), "asking uses nothing up"
        assert dataclasses.replace(wanted, born="1").is_over(), "another process of that number"
        assert dataclasses.replace(wanted, pid=2**22 - 1).is_over()
        assert not dataclasses.replace(wanted, place="another machine", born="1").is_over(), "nobody can know"
        assert not dataclasses.replace(wanted, place="", born="1").is_over()
        # A fork holds the socket, too.
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
    assert wanted.is_over()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_sweep_ends_when_a_mean_is_known(scenario: str) -> None:
    sweep = dposlab.sweep(scenario, seeds=range(1000), until_ci="ok.rate<0.6")
    until = sweep.summary["until_ci"]
    assert sweep.ok and until["reached"] and 2 < sweep.summary["runs"] < 100
    assert until["cells"][0]["confidence"]["high"] == 1.0, "all runs end well"
    few = dposlab.sweep(scenario, seeds=range(2), until_ci="ok.rate<0.6", out="study")
    assert not few.ok and not few.summary["until_ci"]["reached"]
    more = dposlab.sweep(scenario, seeds=range(1000), until_ci="ok.rate<0.6", out="study")
    assert more.ok and more.summary == sweep.summary and more.digest == sweep.digest
    with pytest.raises(dposlab.UsageError, match="allowed is FIGURE<WIDTH"):
        dposlab.sweep(scenario, until_ci="height<0.6")
    with ThreadPoolExecutor(1) as executor, pytest.raises(dposlab.UsageError, match="executor"):
        dposlab.sweep(scenario, until_ci="ok.rate<0.6", executor=executor)


def test_combinations_are_compared_with_the_first(scenario: str) -> None:
    [path] = VARY
    sweep = dposlab.sweep(scenario, seeds=range(4), vary=VARY, compare=True)
    [compared] = sweep.summary["compared"]
    assert (compared["varied"], compared["with"]) == ({path: "700"}, {path: "100"})
    rows = list(csv.DictReader((sweep.folder / "runs.csv").read_text().splitlines()))
    by_seed = {(row[path], row["seed"]): float(row["propagation_p50_ms"]) for row in rows if row["status"] not in ("censored", "died")}
    pairs = [by_seed["700", seed] - by_seed["100", seed] for latency, seed in by_seed if latency == "100" and ("700", seed) in by_seed]
    propagation = compared["figures"]["propagation_p50_ms"]
    assert propagation["pairs"] == len(pairs) > 0
    assert propagation["difference"] == pytest.approx(sum(pairs) / len(pairs)) and propagation["difference"] > 50
    with ThreadPoolExecutor(1) as executor:
        dealt = dposlab.sweep(scenario, seeds=range(4), vary=VARY, compare=True, executor=executor)
    assert dealt.summary["compared"] == sweep.summary["compared"]
    assert dealt.digest == sweep.digest
    assert "compared" not in dposlab.sweep(scenario, seeds=range(1), vary=VARY).summary
    with pytest.raises(dposlab.UsageError, match="two or more can be compared"):
        dposlab.sweep(scenario, seeds=range(1), compare=True)
