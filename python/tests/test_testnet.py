"""Testnets, and the fixtures of pytest."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dposlab
from conftest import wait_until_gone


def test_a_testnet_does_what_it_is_told() -> None:
    with dposlab.Testnet(delegates=5, seed=3) as net:
        assert net.url.startswith("http://127.0.0.1:") and net.ready["seed"] == 3
        assert net.advance(10)["height"] == net.height == 11
        snapshot = net.snapshot("before")
        [paid] = net.new_accounts(1, 500_000_000)
        net.advance(3)
        assert net.get(f"wallets/{paid.address}")["data"]["balance"] == "500000000"
        assert len(net.reorg(1)["reverted"]) == 1
        fault = net.fault("partition", groups=[[0, 1]], until={"after": 900})
        assert net.advance(until={"height": 1000}, limit=4)["stopped"] == "limit"
        assert net.faults[fault]["state"] == "in-force"
        net.heal(fault)
        net.revert(snapshot)
        assert net.height == 11 and net.get("transactions/unconfirmed")["meta"]["count"] == 0
        [transaction] = net.faucet(net.accounts[0].address, 150_000_000)
        assert net.advance(until={"transaction": transaction}, limit=5)["stopped"] == "reached"
        with pytest.raises(dposlab.HttpError, match="allowed is 1 to") as refused:
            net.reorg(10_000)
        assert refused.value.status == 422
        pid = net.process.pid
    wait_until_gone(pid)


def test_chains_do_not_see_each_other() -> None:
    with dposlab.Testnet(delegates=5) as net:
        with net.chain(delegates=3, set={"network.reward": 0}) as one, net.chain(delegates=3) as other:
            one.advance(7)
            assert (one.height, other.height, net.height) == (8, 1, 1)
            assert len(one.accounts) == 10 and one.accounts[0].passphrase
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
    chain.advance(1)
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
    with dposlab.Testnet(delegates=3) as net:
        net.advance(8)
        done = net.reorg(to=5)
        assert (done["common"]["height"], len(done["reverted"])) == (5, 4)
        again = net.reorg(to=done["common"]["id"], transactions="drop")
        assert again["common"] == done["common"]
        with pytest.raises(dposlab.HttpError, match="keys 'depth' and 'to': found both"):
            net.reorg(1, to=5)


def test_a_pending_transaction_is_dropped_and_a_wrong_block_is_refused() -> None:
    with dposlab.Testnet(delegates=5) as net:
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


def test_submit_says_why_a_transaction_is_refused() -> None:
    with dposlab.Testnet(delegates=3) as net, net.chain(pace="on-demand") as one, net.chain(pace="on-demand") as other:
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


FAILING = """
import dposlab
import pytest

def test_pays({network}):
    {network}.advance(2)
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
        "  3: * by genesis_?, transactions: 0, fees: 0",
        "faults in force:",
        "  0, since second *: *\"by_ms\": 7*",
    ])
    [file] = [line.split(": ", 1)[1] for line in result.outlines if line.startswith("recording: ")]
    assert subprocess.run([dposlab.binary(), "replay", file], capture_output=True).returncode == 0


TWENTY = """
import pytest

@pytest.mark.parametrize("number", range(20))
def test_each_has_a_chain(chain, number):
    assert chain.height == 1
    chain.advance(5)
    assert chain.height == 6
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_twenty_tests_have_a_chain_each(pytester: pytest.Pytester, workers: list[str]) -> None:
    if workers:
        pytest.importorskip("xdist")
    pytester.makepyfile(TWENTY)
    pytester.runpytest_subprocess(*workers).assert_outcomes(passed=20)
