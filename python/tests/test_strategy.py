"""Strategies that are functions of this process."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dposlab
from dposlab._strategy import Deciding

SCENARIO = """
version = 1
rounds = 6
[network]
delegates = 5
[[workload]]
kind = "generate"
per_second = 1.0
[[fault]]
kind = "{kind}"
{parameters}
from = {{ round = 2 }}
"""


@dposlab.strategy(
    "hold-back",
    actor="peer",
    on=["hears forged", "sends block"],
    breaks="forging",
    example={"delegates": [2], "release_ms": 4000},
)
def hold_back(turn: dposlab.Turn) -> None:
    """Delegates whose relays keep their blocks back, as the kind `withhold` has it."""
    assert turn.message is not None
    block = turn.message["block"]["id"]
    if turn.turn == "hears":
        turn.state = block
    elif turn.state == block:
        turn.send(turn.to, after_ms=turn.parameters["release_ms"])
        turn.swallow()


@dposlab.strategy(
    "push-later",
    actor="peer",
    on=["hears forged", "sends block", "wakes", "ends"],
    breaks="forging",
    example={"delegates": [2], "release_ms": 4000},
)
def push_later(turn: dposlab.Turn) -> None:
    """The same, with messages that are kept until the relay wakes up."""
    state = turn.state or {"own": None, "kept": {}}
    if turn.turn == "wakes":
        assert turn.number is not None
        turn.send(state["kept"].pop(str(turn.number)), kept=turn.number)
        turn.forget(turn.number)
    elif turn.message is not None:
        block = turn.message["block"]
        if turn.turn == "hears":
            state["own"] = block["id"]
        elif state["own"] == block["id"]:
            turn.keep(block["height"])
            state["kept"].setdefault(str(block["height"]), []).extend(turn.to)
            turn.wake(turn.parameters["release_ms"], block["height"])
            turn.swallow()
    turn.state = state


@dposlab.strategy("lazy", actor="pool", on=["sends forging-transactions"], breaks="nothing", example={"delegates": [1], "percent": 50})
def lazy(turn: dposlab.Turn) -> None:
    """Delegates whose blocks are empty now and then. It counts them, and every second one that it would leave is full."""
    assert turn.message is not None
    turn.state = (turn.state or 0) + 1
    if turn.below("empty", 100) < turn.parameters["percent"] and turn.state % 2:
        turn.without(turn.message["transactions"])


def written(kind: str, parameters: str = "delegates = [2]\nrelease_ms = 4000", name: str = "scenario.toml") -> str:
    Path(name).write_text(SCENARIO.format(kind=kind, parameters=parameters))
    return name


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("crypto", ["real", "modelled"])
def test_the_same_strategy_gives_the_same_run_in_both_languages(crypto: str) -> None:
    native = dposlab.run(written("withhold"), seed=7, crypto=crypto)
    without = dposlab.run(written("withhold"), seed=7, crypto=crypto, set={"rounds": 6, "fault[0].release_ms": 1})
    here = dposlab.run(written("hold-back"), seed=7, crypto=crypto, strategies=[lazy, hold_back])
    assert native.digest == here.digest and native.totals == here.totals
    assert without.totals != native.totals, "or the strategy changes nothing"


def test_a_message_is_kept_and_sent_at_a_wake_up() -> None:
    native = dposlab.run(written("withhold"), seed=7)
    assert dposlab.run(written("push-later"), seed=7, strategies=[push_later]).digest == native.digest


def test_what_a_strategy_draws_depends_on_the_seed() -> None:
    scenario = written("lazy", "delegates = [1, 2]\npercent = 60")
    assert len({dposlab.run(scenario, seed=seed, strategies=[lazy]).digest for seed in (7, 7, 8)}) == 2


@dposlab.strategy(
    "count-together",
    actor="pool",
    on=["sends forging-transactions"],
    breaks="nothing",
    example={"delegates": [1, 2]},
)
def count_together(turn: dposlab.Turn) -> None:
    """Delegates that count their blocks together: every third one is empty."""
    assert turn.message is not None
    turn.share((turn.memory or 0) + 1)
    if turn.memory % 3 == 0:
        turn.without(turn.message["transactions"])


@pytest.mark.parametrize(
    ("of", "parameters"),
    [
        (lazy, "delegates = [1, 2]\npercent = 60"),
        # Of each delegate a block is kept nearly always.
        (push_later, "delegates = [0, 1, 2, 3, 4]\nrelease_ms = 7000"),
        (count_together, "delegates = [1, 2, 3]"),
    ],
)
def test_what_a_strategy_remembers_keeps_and_shares_is_part_of_the_run(of: dposlab.Strategy, parameters: str) -> None:
    """Through a snapshot, and through checkpoints: the folder is started again after each few slots."""
    scenario = written(of.name, parameters)

    def testnet(arguments: list[str]) -> dposlab.Testnet:
        return dposlab.Testnet(scenario, seed=3, pace="manual", set={"rounds": 100}, strategies=[of], arguments=arguments)

    def tip(net: dposlab.Testnet) -> str:
        found: str = net.get("blocks?limit=1")["data"][0]["id"]
        return found

    with testnet([]) as net:
        net.advance(45)
        snapshot = net.snapshot()
        net.advance(20)
        before = tip(net)
        net.revert(snapshot)
        net.advance(20)
        assert tip(net) == before
    parts = [13, 11, 7, 13, 9]
    with testnet([]) as net:
        tips = []
        for slots in parts:
            net.advance(slots)
            tips.append(tip(net))
    kept = ["--data-dir", "kept", "--checkpoint-every", "1"]
    again = []
    for slots in parts:
        with testnet(kept) as net:
            net.advance(slots)
            again.append(tip(net))
    assert again == tips


def test_each_turn_comes_when_it_is_due() -> None:
    seen: list[tuple[str, int, object]] = []

    @dposlab.strategy(
        "tell", actor="peer", on=["begins", "hears forged", "learns", "wakes", "ends"], breaks="nothing", example={"delegates": [1, 2]}
    )
    def tell(turn: dposlab.Turn) -> None:
        seen.append((turn.turn, turn.node, turn.memory))
        if turn.turn == "begins":
            turn.wake(3_000, number=7)
        if turn.turn == "wakes":
            assert turn.number == 7
        if turn.turn == "hears":
            assert turn.sender == turn.node and turn.tip is not None
            turn.share({"forged by": turn.node})

    text = SCENARIO.format(kind="tell", parameters="delegates = [1, 2]\nuntil = { round = 4 }")
    Path("tell.toml").write_text(text)
    dposlab.run("tell.toml", strategies=[tell])
    of = [[(turn, memory) for turn, node, memory in seen if node == this] for this in (1, 2)]
    for this, turns in enumerate(of, 1):
        words = [turn for turn, _ in turns]
        assert words[0] == "begins" and words[-1] == "ends" and words.count("begins") == words.count("ends") == words.count("wakes") == 1
        # Two rounds: each forges twice, and learns of what the other has written.
        assert words.count("hears") >= 2 and words.count("learns") == [turn for turn, _ in of[2 - this]].count("hears")
        assert all(memory == {"forged by": 3 - this} for turn, memory in turns if turn == "learns")


def test_the_tip_of_a_turn_is_that_of_the_node_after_a_rollback_and_a_crash_too() -> None:
    seen: list[tuple[int, str]] = []

    @dposlab.strategy("watch-tip", actor="peer", on=["begins", "wakes"], breaks="nothing", example={"delegates": [0]})
    def watch_tip(turn: dposlab.Turn) -> None:
        assert turn.tip is not None
        seen.append((turn.now, turn.tip["id"]))
        # After the split a node that has left its chain stands below it for a moment only.
        turn.wake(40 if 530e6 < turn.now < 560e6 else 7_000)

    faults = """
[[fault]]
kind = "partition"
groups = [["genesis_1", "genesis_2"]]
from = { round = 6 }
until = { round = 9 }
[[fault]]
kind = "crash"
nodes = ["genesis_1"]
from = { round = 16 }
until = { round = 17 }
"""
    text = SCENARIO.replace("rounds = 6", "rounds = 24").format(kind="watch-tip", parameters="delegates = [0]")
    Path("watch.toml").write_text(text + faults + '[rules]\nbase = "tron"\n')
    run = dposlab.run("watch.toml", strategies=[watch_tip], out="watched")
    assert run.ok
    tip, tips = "", []
    for line in Path("watched/events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event.get("node") == 0 and event["kind"] in ("block.applied", "block.reverted"):
            is_left = event["kind"] == "block.reverted"
            tip = event["block"]["previous" if is_left else "id"]
            tips.append((event["at"], tip, is_left))
    last_left = [(at, tip) for at, tip, is_left in tips if is_left][-1]
    between = [told for now, told in seen if told == last_left[1] and now > last_left[0]]
    assert len(between) > 2, "it was asked while it stood below the chain that it had left"
    for now, told in seen:
        # Of the events of one instant some came after the turn.
        fits = {tip for at, tip, _ in tips if at == now} | {[tip for at, tip, _ in tips if at < now][-1]}
        assert told in fits, f"at {now}"


def test_what_is_forgotten_cannot_be_sent() -> None:
    def twice(turn: dposlab.Turn) -> None:
        if turn.state is None:
            turn.keep(1)
            turn.state = "kept"
        elif turn.state == "kept":
            turn.send([1], kept=1)
            turn.forget(1)
            turn.state = "forgotten"
        else:
            turn.send([1], kept=1)

    with pytest.raises(dposlab.StrategyFailed, match="kept: found 1, which is none"):
        dposlab.run(written("odd", "delegates = [2]"), strategies=[fails(twice)])


def test_faults_of_its_kind_come_through_the_lab_and_the_search() -> None:
    with dposlab.Testnet(delegates=5, strategies=[hold_back]) as net:
        net.fault("hold-back", delegates=[0, 1], release_ms=500)
        net.advance(6)
        assert [fault["fault"]["kind"] for fault in net.faults] == ["hold-back"]
        with pytest.raises(dposlab.HttpError, match="release_ms"):
            net.fault("hold-back", delegates=[0])
    seen = []

    @dposlab.strategy("watch", actor="peer", on=["begins"], breaks="nothing", example={"nodes": [1]}, lists=["nodes"])
    def watch(turn: dposlab.Turn) -> None:
        seen.append(turn.node)

    searches = [dposlab.check(runs=150, delegates=5, jobs=jobs, strategies=[watch], out=f"out{jobs}") for jobs in (1, 2)]
    assert seen, "150 runs draw it"
    assert searches[0].runs == searches[1].runs and searches[0].slots == searches[1].slots
    with ThreadPoolExecutor(1) as executor, pytest.raises(dposlab.UsageError, match="executor"):
        dposlab.check(runs=1, executor=executor, strategies=[watch])


def fails(decide: Callable[[dposlab.Turn], None], on: str = "sends block") -> dposlab.Strategy:
    return dposlab.strategy("odd", actor="peer", on=[on], breaks="forging", example={"delegates": [2]})(decide)


def test_an_error_of_a_strategy_is_the_cause_of_what_is_raised() -> None:
    scenario = written("odd", "delegates = [2]")
    with pytest.raises(dposlab.StrategyFailed, match="'odd' failed") as raised:
        dposlab.run(scenario, strategies=[fails(lambda turn: print(1 // 0))])
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    with pytest.raises(dposlab.StrategyFailed) as raised:
        dposlab.run(scenario, strategies=[fails(lambda turn: setattr(turn, "state", object()))])
    assert isinstance(raised.value.__cause__, TypeError)
    for decide, on, why in [
        (lambda turn: turn.send([1], kept=7), "sends block", "kept: found 7, which is none"),
        (lambda turn: turn.send([1]), "begins", "send: found nothing to send"),
        (lambda turn: turn.swallow(), "begins", "found keep, swallow or without"),
        (lambda turn: turn.send([1]), "hears forged", "send: found forged, allowed are block"),
        (lambda turn: turn.send([5]), "sends block", "send: found node 5, allowed are 0 to 4"),
        (lambda turn: turn.send([-1]), "sends block", "no answer"),
        (lambda turn: turn.without(["none"]), "sends transactions", "no answer"),
    ]:
        with pytest.raises(dposlab.StrategyFailed, match=why):
            dposlab.run(scenario, strategies=[fails(decide, on)])


def test_what_is_no_strategy_is_refused_and_named() -> None:
    def made(name: str = "odd", on: str = "sends block", **more: object) -> dposlab.Strategy:
        said = {"actor": "peer", "on": [on], "breaks": "forging", "example": {"delegates": [2], "count": 3}, **more}
        return dposlab.strategy(name, **said)(lambda turn: None)  # type: ignore[arg-type]

    good = written("odd", "delegates = [2]\ncount = 3")
    for strategies, scenario, why in [
        ([made()], written("odd", "delegates = [2]\ncount = 3.5", "a.toml"), "count.*3.5.*integer"),
        ([made()], written("odd", "delegates = [2]\ncount = 'x'", "b.toml"), 'count.*"x".*integer'),
        ([made()], written("odd", "delegates = [2]", "c.toml"), "missing field `count`"),
        ([made()], written("odd", "delegates = [2]\ncount = 3\nmore = 1", "d.toml"), "unknown field `more`.*`count`"),
        ([made()], written("odd", "delegates = [9]\ncount = 3", "e.toml"), "delegates.*9"),
        ([made(name="withhold")], good, "a kind of fault of this name is there"),
        ([made(on="sends blok")], good, "found 'sends blok', allowed are begins.*block"),
        ([made(actor="wallet")], good, "wallet"),
        ([made(breaks="hearts")], good, "hearts"),
        ([made(lists=["nodes"])], good, "example: has no 'nodes'"),
        ([made(lists=[])], good, "lists: found none"),
        ([made(), made()], good, "two have one name"),
        ([], good, "unknown variant `odd`"),
    ]:
        with pytest.raises((dposlab.UsageError, dposlab.StrategyFailed), match=why):
            dposlab.run(scenario, strategies=strategies)
    with pytest.raises(dposlab.UsageError, match="small letters"):
        made(name="Odd One")
    with pytest.raises(dposlab.UsageError, match="odd"):
        made(example={"delegates": {1}})


def test_it_answers_nobody_but_the_program() -> None:
    deciding = Deciding([hold_back])
    host, port = deciding.address.split(":")
    assert host == "127.0.0.1"
    for said in [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b'{"dposlab":2}\n', b"\xff\n", b"\n"]:
        with socket.create_connection((host, int(port)), timeout=600) as stranger:
            stranger.sendall(said)
            try:
                assert stranger.recv(1) == b""
            except ConnectionResetError:
                pass  # it did not read all of it
    deciding.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=600)
