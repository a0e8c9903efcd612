"""Runs: what they leave, and what becomes of them when they die."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dposlab
from conftest import wait_until_gone


def test_a_run_has_its_summary_as_attributes_and_its_tables_as_arrow(scenario: str) -> None:
    run = dposlab.run(scenario, seed=7, set={"network.latency.max_ms": 200}, out="out")
    assert (run.ok, run.ended, run.seed) == (True, "complete", 7)
    assert run.height == run.totals["height"] == 54 and len(run.digest) == 64
    assert run.set == ["network.latency.max_ms=200"]
    assert run.rounds.num_rows == 6 and run.delegates.num_rows == 54
    assert run.blocks.num_rows >= 53 and run.time.num_rows > 53
    assert "block.forged" in run.events.column("kind").to_pylist()
    with pytest.raises(AttributeError, match="a run has no 'heigt'"):
        run.heigt
    again = dposlab.run(scenario, seed=7, set={"network.latency.max_ms": 200})
    assert again.digest == run.digest and again.folder.exists()


def test_tables_go_to_pandas_polars_and_duckdb_as_they_are(scenario: str) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    delegates = dposlab.run(scenario).delegates
    missed = delegates.to_pandas()["missed"].sum()
    assert missed == 2, "genesis_3 is off in two rounds"
    assert polars.from_arrow(delegates)["missed"].sum() == missed
    assert duckdb.sql("select sum(missed) from delegates").fetchall() == [(missed,)]


def test_a_report_shows_itself_in_a_notebook(scenario: str) -> None:
    shown = dposlab.run(scenario).report()._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!') and shown.count('"') == 4


def test_a_run_that_does_not_hold_is_answered_and_says_why(scenario: str) -> None:
    with open(scenario, "a") as file:
        file.write('[[assert]]\nalways = "missed == 0"\n')
    run = dposlab.run(scenario)
    assert not run.ok and "missed == 0" in run.why and run.ended == "complete"


def test_mistakes_name_the_thing(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(dposlab.UsageError, match="key 'rounds': found 0"):
        dposlab.run(scenario, set={"rounds": 0})
    with pytest.raises(dposlab.UsageError, match="nothing.toml"):
        dposlab.run("nothing.toml")
    monkeypatch.setenv("DPOSLAB_BIN", "/nowhere/dposlab")
    with pytest.raises(dposlab.DposlabError, match="DPOSLAB_BIN: found '/nowhere/dposlab'"):
        dposlab.run(scenario)


def test_without_pyarrow_the_error_names_the_extra(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    run = dposlab.run(scenario)
    assert run.height == 54
    with pytest.raises(dposlab.MissingExtra, match=r"pip install 'dposlab\[tables\]'"):
        run.rounds


def test_a_death_is_an_error_with_the_signal_and_the_command(
    scenario: str, deadly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPOSLAB_BIN", str(deadly))
    with pytest.raises(dposlab.RunDied, match=r"signal 9 \(SIGKILL\); to repeat: dposlab run s.toml --seed 7") as died:
        dposlab.run(scenario, seed=7)
    again = pickle.loads(pickle.dumps(died.value))
    assert (again.signal, again.returncode, again.command) == (9, -9, died.value.command)


def test_ctrl_c_leaves_no_child(scenario: str) -> None:
    code = "import dposlab, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\ndposlab.run('s.toml', set={'rounds': 100000, 'stall': 'off'}, out='long')"
    caller = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    events = Path("long/events.jsonl")
    while not events.exists() or not events.stat().st_size:
        assert caller.poll() is None, caller.communicate()[1]
        os.sched_yield()
    children = Path(f"/proc/{caller.pid}/task/{caller.pid}/children").read_text().split()
    assert len(children) == 1
    caller.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in caller.communicate(timeout=30)[1]
    wait_until_gone(int(children[0]))


@pytest.mark.parametrize("finding", ["a-forger-sees-registered-hashes", "a-rollback-keeps-what-is-pending"])
def test_an_explanation_of_a_finding_is_that_of_the_program(
    finding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # run.sh says where the sources are.
    shutil.copytree(Path(os.environ["DPOSLAB_SOURCES"], "scenarios/findings"), tmp_path / "findings")
    monkeypatch.chdir(tmp_path)
    file = f"findings/{finding}.toml"
    told = dposlab.explain(file, repeats=4, budget=3, jobs=1, out="why.html")
    assert told["failed"] and told["why"] and told["chain"]["steps"] and told["curve"] and told["nearest"]
    command = [dposlab.binary(), "explain", file, "--json", "--repeats", "4", "--budget", "3"]
    alone = subprocess.run(command, capture_output=True, text=True)
    assert (alone.returncode, json.loads(alone.stdout)) == (1, told), "the same, with another number of jobs"
    assert told["reproduce"] == f"dposlab explain {file} --repeats 4 --budget 3"
    assert Path("why.html").read_text().startswith("<!")
    # Another way to the same: the run fails, of which that is said.
    run = dposlab.run(file, seed=told["seed"])
    assert not run.ok and run.why


def test_an_explanation_of_a_run_that_holds_says_so(scenario: str) -> None:
    told = dposlab.explain(scenario, seed=3, set={"fault[0].rounds": 2}, repeats=0, budget=0)
    assert (told["failed"], told["seed"], told["set"]) == (False, 3, ["fault[0].rounds=2"])
    assert (told["curve"], told["nearest"]) == (None, None)
    with pytest.raises(dposlab.UsageError, match="nothing.toml"):
        dposlab.explain("nothing.toml")


def test_the_version_is_that_of_the_program() -> None:
    from importlib import metadata

    assert dposlab.version() == metadata.version("dposlab")
