"""Mistakes of the caller: each is an error of the package that names the argument, what was found and what is allowed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dposlab

START: list[tuple[dict[str, Any], str]] = [
    ({"set": [1]}, r"set: found \[1\], allowed is a dict"),
    ({"delegates": -1}, "delegates: found -1, allowed is a whole number from 1 on"),
    ({"delegates": "3"}, "delegates: found '3', allowed is a whole number from 1 on"),
    ({"delegates": True}, "delegates: found True, allowed is a whole number from 1 on"),
    ({"seed": -1}, "seed: found -1, allowed is a whole number from 0 on"),
    ({"pace": -1}, r'pace: found -1, allowed are "manual", "on-demand", "max" and a number from 0\.001 to 1000000'),
    ({"pace": "fast"}, "pace: found 'fast', allowed are"),
    ({"stage": 3}, "found 3 as an argument after '--stage', allowed is a text"),
    ({"strategies": [1]}, "strategies: found 1, allowed are functions"),
    ({"strategies": 1}, "strategies: found 1, allowed is a list"),
]


@pytest.mark.parametrize(("given", "told"), START, ids=[str(given) for given, _ in START])
def test_a_testnet_names_the_argument(given: dict[str, Any], told: str) -> None:
    with pytest.raises(dposlab.UsageError, match=told):
        dposlab.Testnet(**given)


CALLS: list[tuple[Callable[[str], object], str]] = [
    (lambda name: dposlab.run(name, seed=-1), "seed: found -1, allowed is a whole number from 0 on"),
    (lambda name: dposlab.run(name, set="rounds"), "set: found 'rounds', allowed is a dict"),
    (lambda name: dposlab.run(name, memory=-1), "'-1' is no number of bytes"),
    (lambda name: dposlab.run(name, crypto=1), "found 1 as an argument after '--crypto'"),
    (lambda name: dposlab.run(name, claims=print), "claims: found .*, allowed is a list"),
    (lambda name: dposlab.sweep(name, claims=print), "claims: found .*, allowed is a list"),
    (lambda name: dposlab.check(name, runs=-1), "runs: found -1, allowed is a whole number from 0 on"),
    (lambda name: dposlab.check(name, seed=-1), "seed: found -1"),
    (lambda name: dposlab.check(name, budget=-1), "budget: found -1, allowed is a whole number from 0 on"),
    (lambda name: dposlab.check(name, jobs=-1), "jobs: found -1, allowed is a whole number from 1 on"),
    (lambda name: dposlab.check(delegates=-1), "delegates: found -1, allowed is a whole number from 1 on"),
    (lambda name: dposlab.explain(name, repeats=-1), "repeats: found -1, allowed is a whole number from 0 on"),
    (lambda name: dposlab.explain(name, budget=-1), "budget: found -1"),
    (lambda name: dposlab.explain(name, beside="lisk"), "beside: found 'lisk', allowed is a list"),
    (lambda name: dposlab.sweep(name, jobs=-1), "jobs: found -1, allowed is a whole number from 1 on"),
    (lambda name: dposlab.sweep(name, memory=-1), "'-1' is no number of bytes"),
    (lambda name: dposlab.sweep(name, vary=[1]), r"vary: found \[1\], allowed is a mapping of paths to lists"),
    (lambda name: dposlab.sweep(name, vary={"network.loss": 0.1}), "vary: network.loss: found 0.1, allowed is a list"),
    (lambda name: dposlab.sweep(name, vary={"network.gossip": "once"}), "vary: network.gossip: found 'once', allowed is a list"),
    (lambda name: dposlab.sweep(name, points=5), "points: found 5, allowed is a list"),
    (lambda name: dposlab.sweep(name, points=[5]), "points: found 5, allowed are mappings"),
]


@pytest.mark.parametrize(("call", "told"), CALLS, ids=[told for _, told in CALLS])
def test_a_call_names_the_argument(scenario: str, call: Callable[[str], object], told: str) -> None:
    with pytest.raises(dposlab.UsageError, match=told):
        call(scenario)


@pytest.mark.parametrize("values", [[0, 0.0], [0, 0], [0.1, 0.2, 0.10]])
def test_a_sweep_refuses_a_value_that_it_would_play_twice(scenario: str, values: list[float]) -> None:
    told = rf"vary: network.loss: found {values[0]} and {values[-1]}, which are equal, allowed are different values"
    with pytest.raises(dposlab.UsageError, match=told):
        dposlab.sweep(scenario, seeds=range(1), vary={"network.loss": values})


def test_values_of_different_types_are_different(scenario: str) -> None:
    varied = dposlab.sweep(scenario, seeds=range(1), vary={"description": ["0", "0.0", "false"], "rounds": [3, 4]})
    assert len(varied.cells) == 6


def test_a_request_names_the_argument(tmp_path: Path) -> None:
    class Odd:
        def to_json(self) -> str:
            return "5"

    (tmp_path / "binary").write_bytes(b"\xff")
    payment = {"recipient": "A", "amount": 1}
    with dposlab.Testnet(delegates=3) as net:
        mistakes: list[tuple[Callable[[], object], str]] = [
            (lambda: net.advance(3, until={"height": 9}), "slots=3, until=.*, allowed are slots alone, or until, with limit or without"),
            (lambda: net.advance(), "slots=None, until=None"),
            (lambda: net.advance(3, limit=5), "limit=5, allowed are slots alone"),
            (lambda: net.advance(until="height"), "until: found 'height', allowed is a mapping with one condition"),
            (lambda: net.faucet([payment], 99), "amount: found 99 beside a list of payments, allowed is None"),
            (lambda: net.faucet("A"), "amount: found None, allowed is an amount in arktoshi"),
            (lambda: net.submit([{}]), r"found \[\{\}\], .*: unpack the list, submit\(\*transactions\)"),
            (lambda: net.faucet([5]), r"recipient: found \[5\], allowed is an address, or a list"),
            (lambda: net.faucet(payment), "recipient: found .*, allowed is an address, or a list"),
            (lambda: net.submit(None), "transactions: found None, allowed is a signed transaction"),
            (lambda: net.submit("abc"), "transactions: found 'abc', allowed is a signed transaction"),
            (lambda: net.submit(Odd()), "transactions: found .*Odd.*, allowed is a signed transaction"),
            (lambda: net.submit({"id": b"x"}), "found a body that is no JSON: .*bytes"),
            (lambda: net.chain(scenario="nope"), "scenario: found 'nope', allowed is a file of text .*No such file"),
            (lambda: net.chain(scenario=tmp_path / "binary"), "scenario: found .*binary', allowed is a file of text"),
            (lambda: net.chain(set=[1]), r"set: found \[1\], allowed is a dict"),
            (lambda: net.push_block(5), "block: found 5, allowed is a block of the API as a mapping, or its wire bytes in hex"),
            (lambda: net.push_block({"timestamp": {}}), "block: found .*, without .*, allowed is a whole block of the API"),
        ]
        for call, told in mistakes:
            with pytest.raises(dposlab.UsageError, match=told):
                call()
        assert net.height == 2, "none of them played a slot"


def test_an_error_of_an_advance_survives_a_process_boundary() -> None:
    error = dposlab.NotReached({"height": 9}, {"slots": 3, "height": 4, "now": 24, "stopped": "limit"})
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.slots, again.height, again.now) == (str(error), 3, 4, 24)
