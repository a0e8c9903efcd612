"""Testnets, and the fixtures of pytest."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import dposlab
from conftest import PATIENCE, wait_until_gone


def test_a_testnet_does_what_it_is_told() -> None:
    with dposlab.Testnet(delegates=5, seed=3, pace="manual") as net:
        assert net.url.startswith("http://127.0.0.1:") and net.ready["seed"] == 3
        assert net.advance(10)["height"] == net.height == 11
        snapshot = net.snapshot("before")
        [paid] = net.new_accounts(1, 500_000_000)
        net.advance(3)
        assert net.get(f"wallets/{paid.address}")["data"]["balance"] == "500000000"
        assert len(net.reorg(1)["reverted"]) == 1
        fault = net.fault("partition", groups=[[0, 1]], until={"after": 900})
        assert net.advance(until={"height": 1000}, limit=4, required=False)["stopped"] == "limit"
        assert net.faults[fault]["state"] == "in-force"
        net.heal(fault)
        net.revert(snapshot)
        assert net.height == 11 and net.get("transactions/unconfirmed")["meta"]["count"] == 0
        [transaction] = net.faucet(net.accounts[0].address, 150_000_000)
        assert net.advance(until={"transaction": transaction}, limit=5)["stopped"] == "reached"
        with pytest.raises(dposlab.HttpError, match="allowed is 1 to") as refused:
            net.reorg(10_000)
        assert refused.value.status == 422
        assert (net.seed, net.nethash, net.pid) == (3, net.ready["nethash"], net.process.pid)
        assert net.version == dposlab.version()
        assert [delegate.username for delegate in net.delegates] == [f"genesis_{number}" for number in range(1, 6)]
        pid = net.pid
    wait_until_gone(pid)


def test_it_forges_on_demand_where_no_pace_is_given() -> None:
    with dposlab.Testnet(delegates=5) as net, net.chain() as chain:
        for network in (net, chain):
            assert (network.pace()["pace"], network.height, network.status["stage"]) == ("on-demand", 2, "inline")
            [paid] = network.new_accounts(1, 500_000_000)
            assert network.get(f"wallets/{paid.address}")["data"]["balance"] == "500000000"
            assert network.height == 3
            assert network.pace("manual")["pace"] == "manual"


def test_a_condition_that_does_not_come_true_is_an_error() -> None:
    with dposlab.Testnet(delegates=3, pace="manual") as net:
        assert net.advance(until={"height": 3})["stopped"] == "reached"
        with pytest.raises(dposlab.NotReached, match=r"\{'height': 99\} does not hold after 4 slots, at height \d .*limit") as failed:
            net.advance(until={"height": 99}, limit=4)
        error = failed.value
        assert (error.slots, error.height, error.stopped, error.until) == (4, net.height, "limit", {"height": 99})
        again = net.advance(until={"height": 99}, limit=4, required=False)
        assert again == {**error.advanced, "height": error.height + 4, "now": error.now + 32}
        net.fault("offline", delegates=[delegate.username for delegate in net.delegates])
        with pytest.raises(dposlab.NotReached) as failed:
            net.advance(until={"height": 99})
        assert failed.value.slots == 10_000, "the default limit"


def test_the_slot_of_a_payment_counts() -> None:
    with dposlab.Testnet(delegates=5) as net:
        [paid] = net.faucet(net.accounts[0].address, 5)
        before = net.height
        net.advance(3)
        assert net.height == before + 2
        [paid] = net.faucet(net.accounts[0].address, 5)
        net.advance(until={"height": net.height + 3})
        assert net.get(f"transactions/{paid}")["data"]["confirmations"] == 4


def test_a_transaction_that_no_delegate_forges_stays_in_the_pool() -> None:
    with dposlab.Testnet(delegates=3) as net:
        net.fault("offline", delegates=[delegate.username for delegate in net.delegates])
        [paid] = net.faucet(net.accounts[0].address, 5)
        with pytest.raises(dposlab.HttpError) as failed:
            net.get(f"transactions/{paid}")
        assert (failed.value.status, net.height) == (404, 2)
        assert net.get("transactions/unconfirmed")["meta"]["count"] == 1


def test_chains_do_not_see_each_other(tmp_path: Path) -> None:
    with dposlab.Testnet(delegates=5, pace="manual") as net:
        reward, scenario = {"network.reward": 7}, tmp_path / "s.toml"
        scenario.write_text("version = 1\nrounds = 1\n[network]\ndelegates = 4\n")
        with net.chain(delegates=3, set=reward, pace="manual") as one, net.chain(scenario=scenario, pace="manual", seed=9) as other:
            one.advance(7)
            assert (one.height, other.height, net.height) == (8, 1, 1)
            assert len(one.accounts) == 10 and one.accounts[0].passphrase
            assert one.get("blocks/8")["data"]["forged"]["reward"] == "7"
            assert (one.seed, other.seed, len(other.status["nodes"])) == (1, 9, 4)
            assert one.nethash != other.nethash != net.nethash
            assert [chain.id for chain in net.chains] == [one.id, other.id]
        assert net.chains == []
        with pytest.raises(dposlab.HttpError):
            one.advance(1)


def test_mistakes_and_deaths_are_errors() -> None:
    with pytest.raises(dposlab.UsageError, match="found 0|is not in|invalid value"):
        dposlab.Testnet(delegates=0)
    net = dposlab.Testnet(delegates=4)
    net.process.kill()
    net.process.wait()
    with pytest.raises(dposlab.RunDied, match="signal 9") as died:
        net.stop()
    assert died.value.command.startswith("dposlab up ")


def test_wrong_arguments_are_errors_that_name_them() -> None:
    with dposlab.Testnet(delegates=3) as net:
        snapshot = "allowed is a snapshot, its number or its name"
        calls: list[tuple[str, Callable[[], object]]] = [
            ("set: found 'network.loss=0.05', allowed is a dict", lambda: dposlab.Testnet(set="network.loss=0.05")),  # type: ignore[arg-type]
            ("arguments: found '--foo', allowed is a list", lambda: dposlab.Testnet(arguments="--foo")),
            ("set: found 'a=1', allowed is a dict", lambda: net.chain(set="a=1")),  # type: ignore[arg-type]
            (f"snapshot: found None, {snapshot}", lambda: net.revert(None)),  # type: ignore[arg-type]
            (f"snapshot: found {{}}, {snapshot}", lambda: net.revert({})),
            (f"snapshot: found 'x', the name of no snapshot, {snapshot}", lambda: net.delete_snapshot("x")),
            ("fault: found None, allowed is a fault or its number", lambda: net.heal(None)),  # type: ignore[arg-type]
            ("rule: found 'x', allowed is a rule or its number", lambda: net.chaos.end("x")),  # type: ignore[arg-type]
            ("node: found None, allowed is the number of a node", lambda: net.crash(None)),  # type: ignore[arg-type]
            ("node: found '1', allowed is the number of a node", lambda: net.restart("1")),  # type: ignore[arg-type]
            ("recipient: found None, allowed is an address", lambda: net.faucet(None, 5)),  # type: ignore[arg-type]
            ("amount: found None, allowed is an amount", lambda: net.faucet(net.accounts[0].address)),
            ("block: found None, allowed is a block", lambda: net.push_block(None)),  # type: ignore[arg-type]
            ("transaction: found None, allowed is the id", lambda: net.drop_pending(None)),  # type: ignore[arg-type]
            ("found None, allowed is a signed transaction", lambda: net.submit(None)),  # type: ignore[arg-type]
            ("unpack the list, submit(*transactions)", lambda: net.submit([{}])),  # type: ignore[arg-type]
        ]
        for message, call in calls:
            with pytest.raises(dposlab.UsageError, match=re.escape(message)):
                call()


def test_a_snapshot_has_a_number_and_a_name() -> None:
    with dposlab.Testnet(delegates=3, pace="manual") as net:
        one = net.snapshot("one")
        net.advance(3)
        assert net.revert("one")["id"] == one and net.height == 1
        assert net.revert(net.snapshots[0])["id"] == one
        again = net.snapshot("one")
        with pytest.raises(dposlab.UsageError, match=f"'one', the name of the snapshots {one}, {again}, allowed is"):
            net.revert("one")
        net.delete_snapshot(again)
        net.delete_snapshot("one")
        fault = net.fault("delay", by_ms=5)
        net.heal(net.faults[fault])
        assert net.snapshots == [] and net.faults[fault]["state"] == "over"


def test_a_seed_is_exact_and_each_node_has_its_api() -> None:
    with dposlab.Testnet(delegates=3, seed=2**64 - 1, arguments=["--api-nodes", "2"]) as net, net.chain() as chain:
        assert net.seed == chain.seed == net.status["seed"] == 2**64 - 1
        assert len(net.urls) == 2 and net.urls[0] == net.url


def test_a_request_to_a_testnet_that_has_died_says_how() -> None:
    net = dposlab.Testnet(delegates=4)
    chain = net.chain(delegates=3)
    chain.close()
    chain.close()  # harmless
    net.process.kill()
    for ask in (lambda: net.advance(1), lambda: net.get("blocks"), net.recording, chain.snapshot, chain.close):
        with pytest.raises(dposlab.RunDied, match="signal 9") as died:
            ask()
        assert died.value.command.startswith("dposlab up ")
    with pytest.raises(dposlab.RunDied):
        net.stop()


def test_a_request_to_a_testnet_that_was_stopped_says_so() -> None:
    net = dposlab.Testnet(delegates=3)
    chain = net.chain()
    net.stop()
    for ask in (lambda: net.height, lambda: net.advance(1), net.events, chain.snapshot):
        with pytest.raises(dposlab.Stopped, match="the testnet at http://127.0.0.1:[0-9]+/api was stopped"):
            ask()
    chain.close()  # harmless
    net.stop()
    other = dposlab.Testnet(delegates=3)
    other.process.send_signal(signal.SIGINT)
    other.process.wait()
    with pytest.raises(dposlab.Stopped):
        other.advance(1)
    other.stop()


def test_nothing_stays_open(scenario: str) -> None:
    code = """
import gc, os, sys, warnings
warnings.simplefilter("error")
import dposlab
from concurrent.futures import ThreadPoolExecutor
try:
    dposlab.Testnet(delegates=0)
except dposlab.UsageError:
    pass
with dposlab.Testnet(delegates=3) as net, net.chain() as chain:
    streams = [chain.events(), net.events(limit=1), net.events("block.applied")]
    chain.advance(3)
    net.advance(3)
    assert next(streams[1]) and [*streams[1]] == [] and next(streams[0])
    streams.append(net.events())
    streams.pop()
    net.view().close()
with ThreadPoolExecutor(1) as pool:
    dposlab.check(runs=2, delegates=4, budget=0, executor=pool)
    folders = [dposlab.run("s.toml").folder, dposlab.sweep("s.toml", seeds=(0, 2), executor=pool).folder]
assert not any(folder.exists() for folder in folders), "they go with their answers"
run = dposlab.run("s.toml")
if os.fork() == 0:
    sys.exit()
os.wait()
assert run.report().html, "a fork takes nothing with it"
gc.collect()
"""
    ended = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_reorganisation_goes_back_to_a_block() -> None:
    with dposlab.Testnet(delegates=3, pace="manual") as net:
        net.advance(8)
        done = net.reorg(to=5)
        assert (done["common"]["height"], len(done["reverted"])) == (5, 4)
        again = net.reorg(to=done["common"]["id"], transactions="drop")
        assert again["common"] == done["common"]
        net.advance(1)
        assert net.reorg(1, node=2)["node"] == 2
        with pytest.raises(dposlab.HttpError, match="keys 'depth' and 'to': found both"):
            net.reorg(1, to=5)


def test_a_pending_transaction_is_dropped_and_a_wrong_block_is_refused() -> None:
    with dposlab.Testnet(delegates=5, pace="manual") as net:
        net.advance(3)
        [paid] = net.faucet(net.accounts[0].address, 7)
        dropped = net.drop_pending(paid)
        assert (dropped["transactions"], dropped["nodes"]) == ([paid], [0])
        net.advance(4)
        with pytest.raises(dposlab.HttpError, match="Transaction not found"):
            net.drop_pending(paid)
        newest = net.get("blocks?transform=false&limit=1")["data"][0]
        with pytest.raises(dposlab.HttpError, match="node-0 "):
            net.push_block({**newest, "transactions": []})


def test_a_block_is_pushed_in_either_shape_of_the_api() -> None:
    with dposlab.Testnet(delegates=5, pace="manual") as net:
        net.advance(3)
        net.faucet([{"recipient": account.address, "amount": 5} for account in net.accounts[:2]])
        net.faucet(net.accounts[0].address, 7)
        before = net.snapshot()
        net.advance(until={"height": net.height + 1})
        made = net.height
        shown, stored = (net.get(f"blocks/{made}?transform={shape}")["data"] for shape in ("true", "false"))
        transactions = net.get(f"blocks/{stored['id']}/transactions?transform=false")["data"]
        other_shape = net.get(f"blocks/{stored['id']}/transactions")["data"]
        assert shown["transactions"] == len(transactions) > 0
        net.revert(before)
        for block in (shown, stored):
            with pytest.raises(dposlab.UsageError, match=r'found none of its \d transactions, .*get."blocks/\d+/transactions.tran'):
                net.push_block(block)
            with pytest.raises(dposlab.UsageError, match="found transactions of another shape"):
                net.push_block({**block, "transactions": other_shape})
        for node, block in enumerate((shown, stored)):
            answer = net.push_block({**block, "transactions": transactions}, node=node)
            assert answer == {"node": node, "id": stored["id"], "height": made, "transactions": len(transactions)}
        net.advance(3)
        assert net.get(f"blocks/{made}")["data"]["id"] == stored["id"]
        before = net.snapshot()
        net.advance(1)
        empty = net.get("blocks?limit=1")["data"][0]
        net.revert(before)
        assert net.push_block(empty)["id"] == empty["id"]


def test_submit_says_why_a_transaction_is_refused() -> None:
    with dposlab.Testnet(delegates=3) as net, net.chain() as one, net.chain() as other:
        [id_] = one.faucet(one.accounts[3].address, 5)
        signed = one.get(f"transactions/{id_}?transform=false")["data"]
        # Both chains are of one seed: what was signed on one is valid on the other.
        assert other.submit(signed) == [id_]
        assert other.height == 3
        with pytest.raises(dposlab.Refused, match=f"the node refused transaction {id_}: ERR_[A-Z_]+: .+") as refused:
            other.submit(signed)
        [(refused_id, kind, why)] = refused.value.refusals
        assert (refused_id, refused.value.accepted) == (id_, ())
        with pytest.raises(dposlab.HttpError, match="should NOT have fewer than 1 items"):
            other.submit()
        told = [(line["id"], line["accepted"], line["type"], line["message"]) for line in other.submissions]
        whole = (None, False, None, "should NOT have fewer than 1 items")
        assert told == [(id_, True, None, None), (id_, False, kind, why), whole]
        assert one.submissions == [], "the faucet is no client"


def test_submit_takes_what_an_sdk_signs() -> None:
    class Transfer:
        """As the reference's library: a text, with null for what has no value."""

        def __init__(self, members: dict[str, object]) -> None:
            self.members = members

        def to_json(self) -> str:
            return json.dumps({**self.members, "vendorField": None, "secondSignature": None})

    with dposlab.Testnet(delegates=3) as net, net.chain() as other:
        ids = net.faucet([{"recipient": net.accounts[at].address, "amount": 5} for at in (3, 4)])
        [signed] = [net.get(f"transactions/{id_}?transform=false")["data"] for id_ in ids]
        assert other.submit(Transfer(signed)) == ids


def test_answers_go_wrong() -> None:
    with dposlab.Testnet(delegates=3) as net, net.chain() as chain:
        rule = chain.chaos.add(route="/api/blocks", status=503, count=1)
        with pytest.raises(dposlab.HttpError) as failed:
            chain.get("blocks")
        assert failed.value.status == 503
        assert net.get("blocks") and net.chaos.list() == [], "only there"
        assert chain.chaos.list()[0]["applied"] == 1
        assert chain.chaos.end(rule)["matched"] == 1
        chain.chaos.add(delay_ms=1)
        other = chain.chaos.add(cut=True, share=0)
        assert chain.chaos.end(other["id"])["applied"] == 0
        assert (chain.chaos.clear(), chain.chaos.list()) == (1, [])


def test_nodes_go_down_and_come_back() -> None:
    with dposlab.Testnet(delegates=5) as net:
        net.crash(3)
        assert [node["cause"] for node in net.status["nodes"]] == [None, None, None, "crash", None]
        net.restart(3, keep_pool=False)
        fault = net.crash(4, keep_pool=False)
        net.heal(fault)
        assert all(node["live"] for node in net.status["nodes"])


def test_any_route_of_the_lab_can_be_asked() -> None:
    with dposlab.Testnet(delegates=3, pace="manual") as net:
        assert net.lab("POST", "/advance", {"slots": 3})["height"] == 4
        assert net.lab("GET") == net.status
        assert net.lab("GET", "?peers=true")["nodes"][0]["peers"] == [1, 2]
        assert net.lab("GET", "round")["height"] == 4
        number = net.snapshot("here")
        assert [snapshot["name"] for snapshot in net.snapshots] == ["here"]
        assert net.lab("DELETE", f"snapshots/{number}") is None
        again = net.snapshot()
        net.delete_snapshot(again)
        assert net.snapshots == []


def test_events_are_heard_from_the_moment_the_stream_is_there() -> None:
    with dposlab.Testnet(delegates=3) as net, net.chain() as chain:
        with chain.events("block.applied", node=0) as events:
            height = chain.advance(until={"height": 4})["height"]
            heard = [next(events), next(events)]
        assert [event["block"]["height"] for event in heard] == [height - 1, height]
        assert all(event["kind"] == "block.applied" and event["node"] == 0 for event in heard)
        assert list(events) == [], "it is closed"
        after = chain.events(["block.applied", "block.forged"], node=[0, 1], last_event_id=heard[0]["id"], limit=1)
        assert next(after)["id"] > heard[0]["id"]
        assert list(after) == [], "its limit is reached"
        with pytest.raises(dposlab.HttpError, match="allowed"):
            chain.events("no-such-kind")


def test_a_reader_that_comes_too_late_is_told_what_it_missed() -> None:
    with dposlab.Testnet(delegates=3) as net, net.events(last_event_id=10**9) as events:
        gap = next(events)
        assert (gap["kind"], gap["id"]) == ("gap", None) and "missed" in gap


def test_a_stream_ends_with_its_chain_its_testnet_or_by_another_thread() -> None:
    net = dposlab.Testnet(delegates=3)
    chain = net.chain()
    of_chain, of_net, closed, killed = chain.events(), net.events(), net.events("node.down"), net.events("node.down")
    heard: list[list[object]] = []
    reader = threading.Thread(target=lambda: heard.append(list(closed)))
    reader.start()
    closed.close()
    reader.join(PATIENCE)
    assert heard == [[]]
    chain.close()
    assert list(of_chain) == []
    net.process.kill()
    for stream in (killed, of_net):
        with pytest.raises(dposlab.RunDied, match="signal 9"):
            list(stream)
        assert list(stream) == [], "it has ended"
    with pytest.raises(dposlab.RunDied, match="signal 9"):
        net.events()
    with pytest.raises(dposlab.RunDied):
        net.stop()


def test_a_stream_ends_with_a_stop() -> None:
    net = dposlab.Testnet(delegates=3)
    deleted, other, waiting = net.chain(), net.events("node.down"), net.events("node.down")
    of_chain = deleted.events("node.down")
    net.lab("DELETE", f"chains/{deleted.id}")
    assert list(of_chain) == []
    heard: list[list[object]] = []
    reader = threading.Thread(target=lambda: heard.append(list(waiting)))
    reader.start()
    net.stop()
    reader.join(PATIENCE)
    assert (heard, list(other)) == ([[]], [])


def test_a_stream_waits_as_long_as_it_may() -> None:
    with dposlab.Testnet(delegates=3) as net, net.events("block.applied", node=0, timeout=0.01) as events:
        for _ in range(2):
            with pytest.raises(dposlab.NoEvent, match="within 0.01 s"):
                next(events)
        assert issubclass(dposlab.NoEvent, TimeoutError)
        height = net.advance(until={"height": net.height + 2})["height"]
        events.timeout = PATIENCE
        assert [next(events)["block"]["height"] for _ in range(2)] == [height - 1, height]


class Answers(BaseHTTPRequestHandler):
    """Answers with the chunks of its server, without an end."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in self.server.chunks:  # type: ignore[attr-defined]
            self.wfile.write(b"%X\r\n%s\r\n" % (len(chunk), chunk))
        self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Prints nothing."""


def test_a_stream_hides_no_error() -> None:
    event = json.dumps({"at": 1, "kind": "x", "text": "\u2028"}, ensure_ascii=False).encode()
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        server.chunks = [b": hello\n\nid: 1\nda", b"ta: " + event, b"\n\nid: 2\ndata: nonsense\n\n"]  # type: ignore[attr-defined]
        threading.Thread(target=server.handle_request).start()
        events = dposlab.EventStream(f"http://127.0.0.1:{server.server_port}/lab/events", timeout=PATIENCE)
        assert next(events) == {"id": 1, "at": 1, "kind": "x", "text": "\u2028"}
        with pytest.raises(dposlab.DposlabError, match="found .*nonsense.*, allowed is an event"):
            next(events)
        with pytest.raises(dposlab.DposlabError, match="broke off"):
            next(events)
        assert list(events) == []


def test_a_stream_passes_on_an_error_of_the_callers_signals() -> None:
    def late(number: int, frame: object) -> None:
        raise TimeoutError("of the caller")

    before = signal.signal(signal.SIGALRM, late)
    try:
        with dposlab.Testnet(delegates=3) as net, net.events("block.applied", node=0) as events:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(TimeoutError, match="of the caller"):
                next(events)
            net.advance(2)
            assert next(events)["kind"] == "block.applied", "the stream is still open"
    finally:
        signal.signal(signal.SIGALRM, before)


def test_the_past_can_be_looked_at() -> None:
    with dposlab.Testnet(delegates=5, pace="manual") as net:
        net.advance(30)
        with net.view(88_000_000) as view:
            assert (view.at, view.height, view.made["slot"]) == (88_000_000, 11, 11)
            assert view.get("node/syncing")["data"]["height"] == 11
            assert view.lab("round")["height"] == 11
            before = view.step("slot", back=True)
            assert (before.height, net.height) == (10, 31)
            assert [each.id for each in net.views] == [view.id, before.id]
            with before.chain() as chain:
                assert chain.height == 10
                chain.advance(3)
                assert (chain.height, before.height) == (13, 10)
            before.close()
            before.close()  # harmless
        assert net.views == []
        place = {name: view.made[name] for name in ("delivered", "inputs")}
        with net.view(view.at, node=4, **place) as again:
            assert (again.made["node"], again.height) == (4, 11)
        with net.view() as now:
            assert now.height == 31
        with pytest.raises(dposlab.HttpError, match="which is now"):
            net.view(999_000_000)


def test_the_table_of_methods_names_all_of_them() -> None:
    page = (Path(os.environ["DPOSLAB_SOURCES"]) / "docs/javascript.md").read_text()
    table = page.partition("### Methods")[2].partition("\n`events`")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    told = {name for row in rows for code in re.findall(r"`([^`]+)`", row[1]) for name in [re.split(r"[(\[]", code)[0]]}
    with dposlab.Testnet(delegates=3) as net, net.chain() as chain, net.view() as view:
        things = {"Testnet": dposlab, "net": net, "chain": chain, "view": view, "chaos": net.chaos}
        for name in told:
            owner, _, member = name.rpartition(".")
            assert hasattr(things[owner] if owner else dposlab if name == "Testnet" else net, member), name
    kinds = (*dposlab.Testnet.__mro__[:3], dposlab.Chain, dposlab.View)
    methods = {kind: {name for name in vars(kind) if not name.startswith("_")} for kind in kinds}
    known = {name.rpartition(".")[2] for name in told}
    for kind, names in methods.items():
        assert names - known == set(), kind


FAILING = """
import dposlab
import pytest

def test_pays({network}):
    {network}.advance(1)
    {network}.faucet({network}.accounts[0].address, 5)
    {network}.fault("delay", by_ms=7, messages=["block"])
    with pytest.raises(dposlab.HttpError):
        {network}.submit()
    assert {network}.height == 4711
"""


def records_chains() -> bool:
    """Whether this program has recordings of chains."""
    with dposlab.Testnet(delegates=3) as net, net.chain() as chain:
        try:
            return bool(chain.recording())
        except dposlab.HttpError as error:
            assert error.status == 404
            return False


@pytest.mark.parametrize("network", ["testnet", "chain"])
def test_a_failing_test_prints_its_recording_and_the_command(pytester: pytest.Pytester, network: str) -> None:
    if network == "chain" and not records_chains():
        pytest.skip("this program has no recordings of chains")
    pytester.makepyfile(FAILING.format(network=network))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "*- dposlab -*",
        "recording: *.jsonl",
        "to repeat: dposlab replay *.jsonl",
        "to look at it on a page: dposlab up --pace manual --from *.jsonl",
        "handed in:",
        "  at height 3, node 0: a request: refused: should NOT have fewer than 1 items",
        "newest blocks:",
        "  3: * by genesis_?, transactions: 1, fees: 10000000",
        "faults in force:",
        "  0, since second *: *\"by_ms\": 7*",
    ])
    [file] = [line.split(": ", 1)[1] for line in result.outlines if line.startswith("recording: ")]
    assert subprocess.run([dposlab.binary(), "replay", file], capture_output=True).returncode == 0


TWENTY = """
import pytest

@pytest.mark.parametrize("number", range(20))
def test_each_has_a_chain(chain, number):
    assert chain.height == 2
    chain.advance(5)
    assert chain.height == 6
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_twenty_tests_have_a_chain_each(pytester: pytest.Pytester, workers: list[str]) -> None:
    if workers:
        pytest.importorskip("xdist")
    pytester.makepyfile(TWENTY)
    pytester.runpytest_subprocess(*workers).assert_outcomes(passed=20)


OWN_OPTIONS = """
import pytest

@pytest.fixture(scope="session")
def testnet_options():
    return {"delegates": 4, "pace": "manual"}

@pytest.fixture
def chain_options():
    return {"delegates": 3, "pace": "manual", "seed": 8}

def test_they_are_what_was_asked_for(testnet, chain):
    assert (len(testnet.delegates), testnet.height) == (4, 1)
    assert (len(chain.status["nodes"]), chain.height, chain.seed) == (3, 1, 8)
"""


def test_fixtures_take_the_options_of_the_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OWN_OPTIONS)
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
