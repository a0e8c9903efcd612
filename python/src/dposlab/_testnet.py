"""A testnet of one's own, and the chains in it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from types import TracebackType
from typing import Any, Literal

from ._errors import DposlabError, HttpError, Refused, RunDied
from ._process import Listener, Name, close, judged, options, path, start, stop

#: How long an answer may take [s]; an advance of many slots takes its time.
TIMEOUT = 300.0
#: How long a request that failed waits for the end of the process, to say how it ended [s].
ENDING_PATIENCE = 0.5

Pace = Literal["manual", "on-demand", "max"] | float


@dataclass(frozen=True)
class Account:
    """A funded account, for tests only. ``balance`` is in arktoshi."""

    address: str
    passphrase: str
    public_key: str
    balance: int


class Lab:
    """What can be done to a network, be it a testnet's own or a chain's. Errors of the network are :class:`HttpError`."""

    def __init__(self, url: str, lab: str, accounts: Sequence[Mapping[str, Any]]) -> None:
        #: The base URL for an SDK: ``http://127.0.0.1:PORT/api``.
        self.url = url
        #: The URL of the lab.
        self.lab = lab
        #: Funded accounts.
        self.accounts: list[Account] = [_account(account) for account in accounts]

    def get(self, path: str) -> Any:
        """``GET`` of a path of the public API, such as ``"node/status"``; the answer's JSON."""
        return self._request("GET", f"{self.url}/{path.lstrip('/')}", None)

    def post(self, path: str, body: object) -> Any:
        """``POST`` of JSON to a path of the public API, such as ``"transactions"``; the answer's JSON."""
        return self._request("POST", f"{self.url}/{path.lstrip('/')}", body)

    def advance(self, slots: int | None = None, *, until: Mapping[str, Any] | None = None, limit: int | None = None) -> Any:
        """Plays so many slots of eight seconds, or ``until`` something has come, such as ``{"height": 100}``, within ``limit``
        slots. Answers ``slots``, ``height`` and ``now`` [s]."""
        body: dict[str, Any] = {"slots": slots} if until is None else {"until": dict(until)}
        if limit is not None:
            body["limit"] = limit
        return self._lab("POST", "advance", body)

    def pace(self, pace: Pace) -> Any:
        """Sets how fast the clock goes: virtual seconds a real second, ``"max"``, ``"manual"`` or ``"on-demand"``."""
        return self._lab("POST", "pace", {"pace": pace})

    def faucet(self, recipient: str, amount: int) -> list[str]:
        """Pays so many arktoshi; the ids of the transactions."""
        ids: list[str] = self._lab("POST", "faucet", {"recipient": recipient, "amount": amount})["transactions"]
        return ids

    def new_accounts(self, count: int, balance: int) -> list[Account]:
        """Makes accounts and has each paid so many arktoshi."""
        made = self._lab("POST", "accounts", {"count": count, "balance": balance})["accounts"]
        return [_account(account) for account in made]

    def submit(self, *transactions: Mapping[str, Any]) -> list[str]:
        """Hands in signed transactions, each as the dict of its JSON; their ids. At the pace on demand they are in blocks then. Raises
        :class:`Refused`, with the reason, where the node refuses one of them."""
        answer = self.post("transactions", {"transactions": [dict(transaction) for transaction in transactions]})
        accepted: list[str] = answer["data"]["accept"]
        errors = (answer.get("errors") or {}).items()
        refusals = [(id_, error["type"], error["message"]) for id_, reasons in errors for error in reasons]
        told = {id_ for id_, _, _ in refusals}
        # The pool has no room for more of their sender. They are in no error.
        why = "its sender has as many pending transactions as the node keeps"
        excess = [id_ for id_ in answer["data"]["excess"] if id_ not in told and id_ not in accepted]
        refusals += [(id_, "excess", why) for id_ in excess]
        if refusals:
            raise Refused(refusals, accepted)
        return accepted

    @property
    def submissions(self) -> list[dict[str, Any]]:
        """What was handed in, by whomever, and what the nodes answered: the newest 1,000, the oldest first."""
        submissions: list[dict[str, Any]] = self._lab("GET", "submissions", None)
        return submissions

    def snapshot(self, name: str = "") -> int:
        """Keeps the whole network as it is; its number, for :meth:`revert`."""
        number: int = self._lab("POST", "snapshots", {"name": name} if name else {})["id"]
        return number

    def revert(self, snapshot: int) -> Any:
        """Puts all back as it was."""
        return self._lab("POST", f"snapshots/{snapshot}/revert", None)

    def reorg(
        self,
        depth: int | None = None,
        transactions: Literal["return", "drop"] | Sequence[str] = "return",
        *,
        to: int | str | None = None,
    ) -> Any:
        """Makes the network leave its newest blocks for others: so many, or those above a block, by its height or its id."""
        what = transactions if isinstance(transactions, str) else list(transactions)
        back = {name: value for name, value in (("depth", depth), ("to", to)) if value is not None}
        return self._lab("POST", "reorg", {**back, "transactions": what})

    def push_block(self, block: Mapping[str, Any] | str, *, node: int | None = None) -> Any:
        """Hands in a block, as the API shows one with its transactions or as wire bytes in hex; what the node made of it."""
        return self._lab("POST", "blocks", {"block": block} if node is None else {"block": block, "node": node})

    def drop_pending(self, transaction: str) -> Any:
        """Takes a pending transaction out of all pools, with what its sender has pending after it."""
        return self._lab("DELETE", f"pool/{transaction}", None)

    def fault(self, kind: str, **members: Any) -> int:
        """Makes something go wrong, as a ``[[fault]]`` of a scenario does; a member named like a word of Python has a ``_`` behind
        it (``from_``). Its number, for :meth:`heal`."""
        body = {name.rstrip("_"): value for name, value in members.items()}
        number: int = self._lab("POST", "faults", {"kind": kind, **body})["id"]
        return number

    @property
    def faults(self) -> list[dict[str, Any]]:
        """All faults, each ``waiting``, ``in-force`` or ``over``."""
        faults: list[dict[str, Any]] = self._lab("GET", "faults", None)
        return faults

    def heal(self, fault: int) -> None:
        """Ends a fault."""
        self._lab("DELETE", f"faults/{fault}", None)

    @property
    def height(self) -> int:
        """The height of the chain of the node that answers."""
        height: int = self.get("node/syncing")["data"]["height"]
        return height

    def recording(self) -> bytes:
        """All that has come in so far, as ``dposlab replay`` takes it."""
        return self._bytes("GET", f"{self.lab}/recording", None)

    def _lab(self, method: str, path: str, body: object) -> Any:
        answer = self._request(method, f"{self.lab}/{path}", body)
        return None if answer is None else answer["data"]

    def _request(self, method: str, url: str, body: object) -> Any:
        content = self._bytes(method, url, body)
        return json.loads(content) if content else None

    def _bytes(self, method: str, url: str, body: object) -> bytes:
        try:
            return _bytes(method, url, body)
        except (OSError, HTTPException) as error:
            raise self._gone() or error

    def _gone(self) -> DposlabError | None:
        """How the process has ended, if it has."""
        raise NotImplementedError


class Chain(Lab):
    """An isolated chain in the process of a testnet, at a manual pace if none is given. A context manager that deletes it."""

    def __init__(self, net: Testnet, made: Mapping[str, Any]) -> None:
        super().__init__(made["url"], made["lab"], made["accounts"])
        #: Its number.
        self.id: int = made["id"]
        #: The seed of its keys and choices.
        self.seed: int = made["seed"]
        self._net = net

    def close(self) -> None:
        """Deletes it. Harmless if that was done before."""
        try:
            self._net._lab("DELETE", f"chains/{self.id}", None)
        except HttpError as error:
            if error.status != 404:
                raise

    def _gone(self) -> DposlabError | None:
        return self._net._gone()

    def __enter__(self) -> Chain:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Testnet(Lab):
    """A process with a testnet on a free port of this machine, at a manual pace if none is given.

    A context manager; :meth:`stop` ends it as well. However this process ends, by SIGKILL too, the testnet ends with it.
    """

    __test__ = False  # pytest: it is no test

    def __init__(
        self,
        scenario: Name | None = None,
        *,
        delegates: int | None = None,
        seed: int = 1,
        pace: Pace = "manual",
        set: Mapping[str, object] | None = None,
        record: Name | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        """``set`` replaces values of the scenario by path, ``record`` is a new file for all that comes in, ``arguments`` are more
        of ``dposlab up``. Answers when the API does. Raises :class:`UsageError` for what is no testnet."""
        given = ["up"] + ([] if scenario is None else [path(scenario)])
        given += ["--json", "--port", "0", f"--exit-with-parent={os.getpid()}", *options(seed, set)]
        given += ["--pace", pace] if pace in ("manual", "on-demand") else ["--speed", str(pace)]
        given += [] if delegates is None else ["--delegates", str(delegates)]
        given += [] if record is None else ["--record", path(record)]
        self._arguments = [*given, *arguments]
        #: The file of ``record``.
        self.record = record
        #: The process.
        self.process: subprocess.Popen[str] = start(self._arguments)
        self._told = Listener(self.process.stderr, None)
        ready = self._ready()
        super().__init__(ready["url"], ready["url"].removesuffix("/api") + "/lab", ready["accounts"])
        #: What ``dposlab up --json`` says when it is ready.
        self.ready = ready
        self._drain = threading.Thread(target=deque, args=(self.process.stdout, 0), daemon=True)
        self._drain.start()

    def _ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        try:
            for line in self.process.stdout:
                message: dict[str, Any] = json.loads(line)
                if message["event"] == "ready":
                    return message
        except BaseException:
            stop(self.process)
            raise
        code = self.process.wait()
        self._told.join()
        close(self.process)
        judged(self._arguments, code, "", self._told.text())
        raise DposlabError(self._told.text() or f"dposlab up ended with code {code} before it was ready")

    def chain(
        self,
        *,
        seed: int | None = None,
        delegates: int | None = None,
        scenario: str | None = None,
        set: Mapping[str, object] | None = None,
        pace: Pace = "manual",
    ) -> Chain:
        """Makes an isolated chain, in about a millisecond. ``scenario`` is the text of one."""
        wish: dict[str, Any] = {"seed": seed, "delegates": delegates, "scenario": scenario, "pace": str(pace)}
        wish["set"] = options(set=set)[1::2] or None
        return Chain(self, self._lab("POST", "chains", {name: value for name, value in wish.items() if value is not None}))

    def stop(self) -> None:
        """Stops it in good order. Raises :class:`RunDied` where it has ended by itself before, by a signal or a failure."""
        before = self.process.poll()
        stop(self.process)
        self._told.join()
        self._drain.join()
        close(self.process)
        if before is not None and before not in (0, 130):
            raise RunDied(self._arguments, before, self._told.text())

    def _gone(self) -> DposlabError | None:
        try:
            code = self.process.wait(ENDING_PATIENCE)
        except subprocess.TimeoutExpired:
            return None
        self._told.join()
        return RunDied(self._arguments, code, self._told.text())

    def __enter__(self) -> Testnet:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def _account(account: Mapping[str, Any]) -> Account:
    balance = int(account.get("balance", 0))
    return Account(account["address"], account["passphrase"], account.get("publicKey", ""), balance)


# Straight to this machine, whatever proxy the environment names.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _bytes(method: str, url: str, body: object) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    try:
        with _OPENER.open(request, timeout=TIMEOUT) as response:
            content: bytes = response.read()
            return content
    except urllib.error.HTTPError as error:
        raise HttpError(method, url, error.code, error.read().decode(errors="replace")) from None
