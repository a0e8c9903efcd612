"""However a caller ends, or a test process, nothing that it started is left: no testnet, no run, no search."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import PATIENCE, is_alive, wait_until_gone

LONG = "set={'rounds': 100_000, 'stall': 'off'}"
#: Calls that take minutes.
CALLS = {
    "run": f"dposlab.run('s.toml', {LONG})",
    "run without progress": f"dposlab._process.call(['run', 's.toml', '--set', 'rounds=100000', '--set', 'stall=off'])",
    "sweep": f"dposlab.sweep('s.toml', seeds=range(100_000), out='out')",
    "sweep of one long run": f"dposlab.sweep('s.toml', seeds=range(1), jobs=1, {LONG}, out='out')",
    "sweep on threads": f"dposlab.sweep('s.toml', seeds=range(1_000), {LONG}, executor=ThreadPoolExecutor(2))",
    "check": "dposlab.check(runs=1_000_000, out='findings')",
    "explain": f"dposlab.explain('s.toml', {LONG})",
    "testnet": "dposlab.Testnet(delegates=4); signal.pause()",
}


def children(pid: int) -> list[int]:
    """The processes that any thread of a process has started."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found += map(int, (thread / "children").read_text().split())
    return found


def is_dposlab(pid: int) -> bool:
    """Whether the child has become the program."""
    try:
        return b"dposlab" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].rpartition(b"/")[2]
    except OSError:
        return False


@pytest.mark.parametrize("call", CALLS)
def test_nothing_outlives_a_caller_that_is_killed(scenario: str, call: str) -> None:
    code = f"import dposlab, signal\nfrom concurrent.futures import ThreadPoolExecutor\n{CALLS[call]}"
    caller = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    # More than one thread: it has got as far as to watch its parent, or farther.
    while not (found := [pid for pid in children(caller.pid) if is_dposlab(pid) and threads(pid) > 1]):
        assert caller.poll() is None, caller.communicate()[1]
        assert time.monotonic() < end, "nothing was started within a minute"
        os.sched_yield()
    caller.kill()
    caller.communicate()
    for pid in found:
        wait_until_gone(pid)


#: Calls on executors, whose programs are started by threads or by processes of others.
SPREAD = {
    "sweep on threads": f"dposlab.sweep('s.toml', seeds=range(100), {LONG}, executor=pool)",
    "check on threads": "dposlab.check(runs=1_000_000, out='findings', executor=pool)",
    "sweep on processes": f"dposlab.sweep('s.toml', seeds=range(100), {LONG}, executor=pool)",
    "sweep in place of an executor that is lost": f"pool.shutdown(); dposlab.sweep('s.toml', seeds=range(9), {LONG}, executor=pool)",
}


def descendants(pid: int) -> list[int]:
    """The processes below one that are the program."""
    below = [pid]
    for each in below:
        with contextlib.suppress(OSError):
            below += children(each)
    found: list[int] = []
    for each in below[1:]:
        with contextlib.suppress(OSError):
            found += [each] if is_dposlab(each) and threads(each) > 1 else []
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("call", SPREAD)
def test_nothing_is_played_on_for_a_caller_that_was_interrupted_or_killed(
    scenario: str, call: str, number: signal.Signals
) -> None:
    pool = "ProcessPoolExecutor" if "processes" in call else "ThreadPoolExecutor"
    code = f"""
import dposlab, signal, warnings
from concurrent.futures import ThreadPoolExecutor, ProcessPoolExecutor
warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)
if __name__ == "__main__":
    with {pool}(2) as pool:
        {SPREAD[call]}
"""
    caller = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not (found := descendants(caller.pid)):
        assert caller.poll() is None and time.monotonic() < end
        os.sched_yield()
    workers = children(caller.pid)
    try:
        caller.send_signal(number)
        for pid in found:
            wait_until_gone(pid)
        assert caller.wait(timeout=PATIENCE) == -number
        assert not descendants(caller.pid)
    finally:
        caller.kill()
        caller.wait()
        # Python's own workers outlive a caller that was killed, and wait for work.
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def test_a_program_that_is_started_when_its_caller_is_gone_does_nothing(scenario: str) -> None:
    import dposlab

    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    command = [dposlab.binary(), "run", scenario, "--out", "out", f"--exit-with-parent={gone.pid}"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "") and "No such process" in ended.stderr
    assert not Path("out").exists()


#: What the test does that has the fixture, once it has said which processes it uses.
ENDS = {
    "exception": "raise RuntimeError('as planned')",
    "SystemExit": "sys.exit(3)",
    "pytest.exit": "pytest.exit('as planned')",
    "os._exit": "os._exit(3)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM); signal.pause()",
    "SIGINT": "os.kill(os.getpid(), signal.SIGINT); signal.pause()",
    "abort": "os.abort()",
    "a closed standard output": "os.closerange(1, 3)",
}

TEST = """
import os, signal, sys
import pytest

def test_ends(testnet, chain):
    chain.advance(2)
    with open("pids", "w") as file:
        print(testnet.process.pid, os.getpid(), file=file)
    {end}
"""


#: Where the tests run in the background SIGINT may be ignored, by all children, too.
PYTEST = "import pytest, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(pytest.main(sys.argv[1:]))"


def pytest_command(*more: str) -> list[str]:
    return [sys.executable, "-c", PYTEST, "-q", "-p", "no:cacheprovider", *more]


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "worker"])
@pytest.mark.parametrize("end", ENDS)
def test_no_testnet_outlives_a_test_process_however_that_ends(pytester: pytest.Pytester, end: str, workers: list[str]) -> None:
    if workers:
        pytest.importorskip("xdist")
    pytester.makepyfile(TEST.format(end=ENDS[end]))
    ended = subprocess.run(pytest_command(*workers), cwd=pytester.path, capture_output=True, text=True, timeout=600)
    numbers = pytester.path / "pids"
    assert numbers.exists(), ended.stdout + ended.stderr
    testnet, worker = map(int, numbers.read_text().split())
    wait_until_gone(worker)
    wait_until_gone(testnet)


BUSY = TEST.format(end="while True: pass")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "worker"])
def test_no_testnet_outlives_a_test_run_that_is_killed_while_a_test_is_busy(
    pytester: pytest.Pytester, number: signal.Signals, workers: list[str]
) -> None:
    if workers:
        pytest.importorskip("xdist")
    pytester.makepyfile(BUSY)
    runner = subprocess.Popen(pytest_command(*workers), cwd=pytester.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    numbers, end = pytester.path / "pids", time.monotonic() + 60
    while not (numbers.exists() and numbers.read_text().endswith("\n")):
        assert runner.poll() is None and time.monotonic() < end
        os.sched_yield()
    testnet, worker = map(int, numbers.read_text().split())
    runner.send_signal(number)
    wait_until_gone(testnet)
    runner.kill()
    runner.wait()
    if is_alive(worker):
        os.kill(worker, signal.SIGKILL)
