"""Sweeps and searches: on an executor as without one, whatever dies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import dposlab
from conftest import Watched
from dposlab._deal import Dealer, cut
from dposlab._process import call, limited

VARY = {"network.latency.max_ms": [100, 700]}


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
    asked: Any = {"seeds": (3, 5), "vary": {"network.relays": [0, 2_000, 1]}}
    command = ["sweep", "s.toml", "--seeds", "3..5", "--vary", "network.relays=0,2000,1"]
    # What a run of 2,009 nodes allocates fits, by the program's own estimate; its code and stacks beside it do not.
    limit = max(cell["memory_bytes"] for cell in call([*command, "--plan"]).json()["cells"])
    assert limit > 150 << 20, "the others have room"
    whole = dposlab.sweep("s.toml", **asked).runs.to_pylist()
    assert {row["status"] for row in whole} == {"ok"}
    with ThreadPoolExecutor(2) as pool:
        with pytest.raises(dposlab.UsageError, match=f"memory: found {limit - 1} bytes, allowed are {limit} and more"):
            dposlab.sweep("s.toml", **asked, executor=pool, memory=limit - 1)
        tight = dposlab.sweep("s.toml", **asked, executor=pool, memory=limit)
        wide = dposlab.sweep("s.toml", **asked, executor=pool, memory=4 * limit)
    rows = tight.runs.to_pylist()
    # Nothing but the limit differs between the two.
    assert wide.runs.to_pylist() == whole
    assert [(row["status"], row["ended"]) for row in rows[2:4]] == [("died", "memory limit")] * 2
    assert rows[:2] + rows[4:] == whole[:2] + whole[4:]
    assert [cell["died"] for cell in tight.cells] == [0, 2, 0] and not tight.ok
    # It is the system that refuses the memory, not the program's estimate.
    command += ["--only", "2..3", "--jobs", "1", "--allow-memory", str(limit)]
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
        assert first.result(timeout=20)
        jobs.shutdown()
        assert jobs.submit(len, "abc").result(timeout=20) == 3, "it watches again"


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
