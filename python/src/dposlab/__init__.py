"""dposlab from Python: runs, sweeps, searches and testnets of a delegated-proof-of-stake network.

Every call starts the program ``dposlab`` as a child process. If a run crashes, runs out of memory or is killed, the call raises
:class:`RunDied`, and no other process ends.
"""

from __future__ import annotations

from ._check import Check, Finding, check
from ._errors import DposlabError, HttpError, MissingExtra, NoEvent, NotReached, Refused, RunDied, Stopped, UsageError
from ._events import EventStream
from ._explain import explain
from ._lab import Account
from ._process import binary, version
from ._run import Report, Run, run
from ._strategy import Strategy, StrategyFailed, Turn, strategy
from ._sweep import Sweep, sweep
from ._testnet import Chain, Delegate, Testnet, View
from ._verdict import Verdict

__all__ = [
    "Account",
    "Chain",
    "Check",
    "Delegate",
    "DposlabError",
    "EventStream",
    "Finding",
    "HttpError",
    "MissingExtra",
    "NoEvent",
    "NotReached",
    "Refused",
    "Report",
    "Run",
    "RunDied",
    "Stopped",
    "Strategy",
    "StrategyFailed",
    "Sweep",
    "Testnet",
    "Turn",
    "UsageError",
    "Verdict",
    "View",
    "binary",
    "check",
    "explain",
    "run",
    "strategy",
    "sweep",
    "version",
]
