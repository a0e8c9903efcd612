"""The strategy of examples/strategy.rs as a function: the run has the digest that the crate outside gave it."""

import sys

import dposlab


@dposlab.strategy(
    "empty-blocks",
    actor="pool",
    on=["sends forging-transactions"],
    breaks="nothing",
    example={"delegates": [1], "percent": 50},
)
def empty_blocks(turn: dposlab.Turn) -> None:
    """Delegates whose blocks are empty now and then."""
    if turn.below("empty", 100) < turn.parameters["percent"]:
        turn.without(turn.message["transactions"])


scenario, wanted = sys.argv[1:]
found = f'"digest":"{dposlab.run(scenario, seed=7, strategies=[empty_blocks], progress=False).digest}"'
assert found == wanted, f"found {found}, allowed is {wanted}"

print("a function in Python gives the same run")
