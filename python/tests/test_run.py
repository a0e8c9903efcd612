"""Runs: what they leave, and what becomes of them when they die."""

from __future__ import annotations

import json
import os
import pickle
import shlex
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dposlab
from conftest import wait_until_gone
from dposlab._process import literal


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


def test_a_report_writes_its_figures_as_files(scenario: str, tmp_path: Path) -> None:
    files = dposlab.run(scenario).report().figures(tmp_path / "figures", theme="dark", width=400)
    assert tmp_path / "figures" / "chain-and-forks.svg" in files
    assert all(file.read_text(encoding="utf-8").startswith("<svg ") for file in files)
    with pytest.raises(dposlab.UsageError, match="--metric height"):
        dposlab.run(scenario).report().figures(tmp_path / "figures", metrics=["height"])


def test_a_run_that_does_not_hold_is_answered_and_says_why(scenario: str) -> None:
    with open(scenario, "a") as file:
        file.write('[[assert]]\nalways = "missed == 0"\n')
    run = dposlab.run(scenario)
    assert not run.ok and "missed == 0" in run.why and run.ended == "complete"


def test_claims_are_functions_over_tables(scenario: str) -> None:
    def forges_in_its_turn(run: dposlab.Run) -> bool:
        delegates = run.delegates.to_pandas()
        return bool((delegates["forged"] + delegates["missed"] == delegates["owned"]).all())

    def misses_nothing(run: dposlab.Run) -> str | None:
        return f"{run.missed_slots} slots are missed" if run.missed_slots else None

    def ends_high(run: dposlab.Run) -> None:
        assert run.height > 1_000, "it is low"

    run = dposlab.run(scenario, claims=[forges_in_its_turn, misses_nothing, ends_high])
    assert [(verdict.claim, verdict.holds) for verdict in run.verdicts] == [
        ("forges_in_its_turn", True),
        ("misses_nothing", False),
        ("ends_high", False),
    ]
    assert not run.ok and run.ended == "complete"
    # pytest adds the values to the text of an assertion.
    assert run.why.startswith("misses_nothing: does not hold: 2 slots are missed\nends_high: does not hold: it is low")
    assert dposlab.run(scenario, claims=[forges_in_its_turn]).ok
    with pytest.raises(dposlab.UsageError, match="answered 3, allowed are a truth value"):
        dposlab.run(scenario, claims=[lambda _: 3])
    with pytest.raises(ZeroDivisionError):
        dposlab.run(scenario, claims=[lambda _: 1 // 0])


def test_an_assertion_is_added_to_those_of_the_file(scenario: str) -> None:
    run = dposlab.run(scenario, set={"assert[+]": {"finally": "missed == 0"}})
    assert not run.ok and "finally missed == 0" in run.why and run.set == ["assert[+]={ finally = \"missed == 0\" }"]


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
    assert "KeyboardInterrupt" in caller.communicate(timeout=600)[1]
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
    assert (told["curve"], told["nearest"], told["beside"]) == (None, None, None)
    other = dposlab.explain(scenario, repeats=0, budget=0, beside=["solar", "lisk"])
    assert [run["rules"] for run in other["beside"]["runs"]][1:] == ["solar", "lisk"]
    with pytest.raises(dposlab.UsageError, match="nothing.toml"):
        dposlab.explain("nothing.toml")


def test_the_version_is_that_of_the_program() -> None:
    from importlib import metadata

    assert dposlab.version() == metadata.version("dposlab")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (0.05, "0.05"),
        (10**30, "1" + "0" * 30),
        (float("inf"), "inf"),
        ("off", "off"),
        ("true", '"true"'),
        ("inf", '"inf"'),
        ("7", '"7"'),
        ("", '""'),
        ("a,b", '"a,b"'),
        ("say \"no\"\n", r'"say \"no\"\n"'),
        ("\U0001f600\x7f", '"\U0001f600\\u007f"'),
        (Path("a b/ü.toml"), '"a b/ü.toml"'),
        (["genesis_1", 2, ["x"]], '["genesis_1", 2, ["x"]]'),
        (range(2), "[0, 1]"),
        ({"min_ms": 1, "a b": {"c": "off"}}, '{ "min_ms" = 1, "a b" = { "c" = "off" } }'),
    ],
)
def test_a_value_is_written_as_toml_has_it(value: object, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize("value", [None, b"x", {1, 2}, object(), [None]])
def test_a_value_that_toml_has_no_form_for_is_a_mistake(value: object) -> None:
    with pytest.raises(dposlab.UsageError, match="set: found .*, allowed are texts, numbers"):
        literal(value)


@pytest.mark.parametrize(
    ("set", "found"),
    [
        ({"description": "\ud800"}, r"set: found '\\ud800', allowed is text without lone surrogates"),
        ({"description": ["\udc80"]}, r"allowed is text without lone surrogates"),
        ({"\ud800": 1}, r"allowed is text without lone surrogates"),
        ({"a\0": 1}, r"allowed is text without NUL"),
        ({"description": "x" * 200_000}, r"which has 2000\d\d bytes, allowed are 131071: write it into the scenario's file"),
        ({"-x": 1}, r"'-x=1'|'-x'"),
        ({"-h": 1}, r"'-h=1'|'-h'"),
    ],
)
def test_what_no_command_can_be_given_is_a_mistake(scenario: str, set: dict[str, object], found: str) -> None:
    with pytest.raises(dposlab.UsageError, match=found):
        dposlab.run(scenario, set=set)


def test_a_path_is_a_text_or_bytes(scenario: str, tmp_path: Path) -> None:
    run = dposlab.run(os.fsencode(scenario), set={"rounds": 3}, out=os.fsencode(tmp_path / "out"))
    assert run.rounds.num_rows == 3
    assert (tmp_path / "out" / "summary.json").is_file()
    for wrong in (5, None, ["a"]):
        with pytest.raises(dposlab.UsageError, match="allowed is the path of a file"):
            dposlab.run(wrong)


@pytest.mark.parametrize("text", ["7", "true", "a,b", "\U0001f600 ☃", "", "{ a = 1", "[1]"])
def test_a_text_is_a_text_whatever_it_looks_like(scenario: str, text: str) -> None:
    run = dposlab.run(scenario, set={"description": text, "rounds": 3})
    assert run.description == text
    # What the run says of itself can be given again.
    command = shlex.split(run.reproduce.removeprefix("dposlab "))
    ended = subprocess.run([dposlab.binary(), *command, "--json"], capture_output=True, text=True)
    assert (json.loads(ended.stdout)["description"], json.loads(ended.stdout)["digest"]) == (text, run.digest)
    sweep = dposlab.sweep(scenario, seeds=(0, 1), set={"rounds": 3}, vary={"description": [text or "-", "b"]})
    assert [cell["varied"]["description"] for cell in sweep.cells] == [text or "-", "b"]


@pytest.mark.parametrize("name", ["-s.toml", "with spaces/ü ☃.toml"])
def test_names_of_files_are_any(scenario: str, name: str) -> None:
    file = Path(name)
    file.parent.mkdir(exist_ok=True)
    shutil.copy(scenario, os.path.join(".", name))
    run = dposlab.run(name, set={"rounds": 3}, out="-out ☃")
    assert run.ok and run.report().html.startswith("<!")
    with ThreadPoolExecutor(1) as pool:
        spread = dposlab.sweep(name, seeds=(0, 2), set={"rounds": 3}, executor=pool)
    assert spread.digest == dposlab.sweep(name, seeds=(0, 2), set={"rounds": 3}).digest


def test_a_run_that_cannot_be_written_is_an_error_and_never_the_run_before_it(scenario: str) -> None:
    before = dposlab.run(scenario, seed=1, out="out")
    Path("out/report.html").unlink()
    Path("out/report.html").mkdir()
    with pytest.raises(dposlab.DposlabError, match="out/report.html: Is a directory"):
        dposlab.run(scenario, seed=2, out="out")
    assert before.seed == 1


#: Tells its progress in words that nobody understands, and much else, before it does what it is asked.
NOISY = """#!/bin/bash
echo '{"progress": garbage' >&2
echo '{"progress": {"x": 1}}' >&2
head -c 300000 /dev/zero | tr '\\0' x >&2
exec "BINARY" "$@"
"""


def test_progress_that_cannot_be_shown_stops_nothing(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("noisy").write_text(NOISY.replace("BINARY", dposlab.binary()))
    Path("noisy").chmod(0o755)
    monkeypatch.setenv("DPOSLAB_BIN", "noisy")
    assert dposlab.run(scenario, progress=True).ok


#: Begins when somebody reads what it says, prints more than a pipe holds when it is told to stop, and says when it has ended in good order.
LAST_WORDS = """#!/bin/bash
trap 'head -c 300000 /dev/zero; touch in-good-order; exit 1' INT
head -c 300000 /dev/zero >&2
touch begun
while :; do read -t 0.05 <> <(:); done
"""


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_child_that_is_stopped_may_say_its_last_words(tmp_path: Path, command: str) -> None:
    (tmp_path / "program").write_text(LAST_WORDS)
    (tmp_path / "program").chmod(0o755)
    code = f"import dposlab, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\ndposlab.{command}('s.toml')"
    environment = {**os.environ, "DPOSLAB_BIN": str(tmp_path / "program")}
    caller = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
    while not (tmp_path / "begun").exists():
        assert caller.poll() is None, caller.communicate()[1]
        os.sched_yield()
    caller.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in caller.communicate(timeout=600)[1]
    assert (tmp_path / "in-good-order").exists()


def test_the_first_calls_may_be_made_in_threads(scenario: str) -> None:
    code = """
import sys, threading
sys.setswitchinterval(1e-6)
import dposlab
barrier, found = threading.Barrier(8), []
def call():
    barrier.wait()
    found.append(dposlab.version())
threads = [threading.Thread(target=call) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(found) == 8, found
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
