"""A sweep on Dask: a worker is killed in the middle, then the scheduler, then a run kills its process each time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dposlab
from conftest import Watched

pytest.importorskip("distributed")
import dask
from distributed import Client, LocalCluster

RUNS = 60


@pytest.fixture
def settings() -> Any:
    quick = {"distributed.comm.timeouts.connect": "3s", "distributed.comm.retry.count": 0, "distributed.admin.log-length": 0}
    with dask.config.set({**quick, "distributed.scheduler.allowed-failures": 3}):
        yield


def same_rows(sweep: dposlab.Sweep, whole: dposlab.Sweep) -> None:
    assert [row["run"] for row in sweep.runs.to_pylist()] == list(range(RUNS)), "none is missing and none is there twice"
    assert sweep.digest == whole.digest


def test_a_killed_worker_costs_no_run(scenario: str, settings: None) -> None:
    whole = dposlab.sweep(scenario, seeds=range(RUNS))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        pool = Watched(client.get_executor(), 3, lambda: os.kill(pids[0], signal.SIGKILL))
        sweep = dposlab.sweep(scenario, seeds=range(RUNS), executor=pool)
        # A callable that makes executors is as good, and its executor is ended.
        made = dposlab.sweep(scenario, seeds=range(RUNS), executor=client.get_executor)
    assert pool.did
    same_rows(sweep, whole)
    same_rows(made, whole)


def test_a_killed_scheduler_costs_no_run(scenario: str, settings: None) -> None:
    whole = dposlab.sweep(scenario, seeds=range(RUNS))
    # Processes of one's own: the scheduler of a LocalCluster is in this one.
    where = ["--scheduler-file", "scheduler.json", "--no-dashboard"]
    begin = lambda *arguments: subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments, *where], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    scheduler = begin("scheduler", "--host", "127.0.0.1", "--port", "0")
    workers = [begin("worker", "--nthreads", "1", "--no-nanny", "--death-timeout", "10") for _ in range(2)]
    try:
        client = Client(scheduler_file="scheduler.json", timeout="600s")
        client.wait_for_workers(2, timeout=600)
        pool = Watched(client.get_executor(), 3, scheduler.kill)
        with pytest.warns(UserWarning, match="the executor is lost"):
            sweep = dposlab.sweep(scenario, seeds=range(RUNS), executor=pool, patience=10.0)
        assert pool.did
        same_rows(sweep, whole)
        with contextlib.suppress(OSError, TimeoutError):
            client.close(timeout=1)
    finally:
        for process in (scheduler, *workers):
            process.kill()
            process.wait()


def test_a_run_that_kills_its_process_each_time_is_one_row(
    scenario: str, settings: None, deadly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = dposlab.sweep(scenario, seeds=range(RUNS)).runs.to_pylist()
    monkeypatch.setenv("DPOSLAB_BIN", str(deadly))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        rows = dposlab.sweep(scenario, seeds=range(RUNS), executor=client.get_executor()).runs.to_pylist()
    assert (rows[7]["status"], rows[7]["ended"]) == ("died", "signal 9")
    assert rows[:7] + rows[8:] == whole[:7] + whole[8:]
