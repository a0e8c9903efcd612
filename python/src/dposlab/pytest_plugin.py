"""Fixtures for pytest: ``testnet``, a process for each session, and ``chain``, an isolated chain for each test.

A failing test that used one prints the file of its recording, the commands that replay and show it, and its story.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ._errors import DposlabError
from ._lab import Lab
from ._testnet import Chain, Testnet

_RECORDINGS: pytest.StashKey[Path] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--dposlab-delegates`` and ``--dposlab-seed``, and the same as keys of pytest's configuration."""
    group = parser.getgroup("dposlab")
    group.addoption("--dposlab-delegates", type=int, default=None, help="delegates of the testnet (5)")
    group.addoption("--dposlab-seed", type=int, default=None, help="seed of the testnet and of chains (1)")
    parser.addini("dposlab_delegates", "delegates of the testnet", default="5")
    parser.addini("dposlab_seed", "seed of the testnet and of chains", default="1")


def _number(config: pytest.Config, name: str) -> int:
    given = config.getoption(f"--dposlab-{name}")
    return int(config.getini(f"dposlab_{name}") if given is None else given)


@pytest.fixture(scope="session")
def testnet_options() -> dict[str, Any]:
    """The options of ``testnet``. Override this fixture in your own tests: ``{"pace": "manual", "delegates": 7}``."""
    return {}


@pytest.fixture
def chain_options() -> dict[str, Any]:
    """The options of ``chain``. Override this fixture in your own tests: ``{"pace": "manual"}``."""
    return {}


@pytest.fixture(scope="session")
def testnet(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, testnet_options: dict[str, Any]
) -> Iterator[Testnet]:
    """A testnet for the session, or for each worker of pytest-xdist. It forges on demand."""
    config = request.config
    record = tmp_path_factory.mktemp("dposlab") / "testnet.jsonl"
    given = {"delegates": _number(config, "delegates"), "seed": _number(config, "seed"), "record": record}
    if "scenario" in testnet_options:
        del given["delegates"]
    with Testnet(**{**given, **testnet_options}) as net:
        config.stash[_RECORDINGS] = Path(os.fsdecode(net.record)) if net.record is not None else record
        yield net


@pytest.fixture
def chain(testnet: Testnet, chain_options: dict[str, Any]) -> Iterator[Chain]:
    """An isolated chain for one test. It forges on demand, and is deleted afterwards."""
    with testnet.chain(**chain_options) as chain:
        yield chain


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Adds the recording and the story of its network to the report of a failing test."""
    report = (yield).get_result()
    used = getattr(item, "funcargs", {})
    if report.failed and ("chain" in used or "testnet" in used):
        file = _recording(item, used)
        if file is not None:
            lines = [
                f"recording: {file}",
                f"to repeat: {shlex.join(['dposlab', 'replay', str(file)])}",
                f"to look at it on a page: {shlex.join(['dposlab', 'up', '--pace', 'manual', '--from', str(file)])}",
                *_story(used.get("chain") or used["testnet"]),
            ]
            report.sections.append(("dposlab", "\n".join(lines)))


#: The number of newest blocks in the story.
_BLOCKS = 5


def _story(network: object) -> list[str]:
    """The story of a network: all submissions with the answers, the newest blocks, and the faults in force."""
    if not isinstance(network, Lab):
        return []
    try:
        submissions, faults = network.submissions, network.faults
        blocks = network.get(f"blocks?limit={_BLOCKS}")["data"]
    except (DposlabError, OSError) as error:
        return [f"what happened is not known: {error}"]
    lines = ["handed in:" if submissions else "nothing was handed in"]
    for line in submissions:
        what = "a request" if line["id"] is None else f"transaction {line['id']}"
        reason = ": ".join(part for part in (line["type"], line["message"]) if part)
        answer = "accepted" if line["accepted"] else f"refused: {reason}"
        lines.append(f"  at height {line['height']}, node {line['node']}: {what}: {answer}")
    lines.append("newest blocks:")
    for block in blocks:
        by = block["generator"].get("username", block["generator"]["publicKey"])
        count, fee = block["transactions"], block["forged"]["fee"]
        lines.append(f"  {block['height']}: {block['id']} by {by}, transactions: {count}, fees: {fee}")
    in_force = [fault for fault in faults if fault["state"] == "in-force"]
    lines.append("faults in force:" if in_force else "no fault is in force")
    lines += [f"  {fault['id']}, since second {fault['since']}: {json.dumps(fault['fault'])}" for fault in in_force]
    return lines


def _recording(item: pytest.Item, used: dict[str, Any]) -> Path | None:
    """The recording's file: the chain's if the test has one, otherwise the testnet's. ``None`` if it is no longer available."""
    own = used.get("chain")
    session = item.config.stash.get(_RECORDINGS, None)
    if session is None or not isinstance(own, Chain):
        return session
    try:
        content = own.recording()
    except OSError:
        return None
    except Exception as error:
        report = getattr(error, "status", None)
        # A testnet of another version has no recordings of chains.
        return None if report == 404 else session
    file = session.parent / f"chain-{own.id}.jsonl"
    file.write_bytes(content)
    return file
