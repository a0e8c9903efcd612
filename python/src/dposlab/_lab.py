"""Control of a network: each method is a request of docs/lab.md."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from http.client import HTTPException
from operator import getitem
from typing import Any, Literal, Protocol
from weakref import WeakSet

from ._errors import DposlabError, NotReached, Refused, UsageError
from ._events import EventStream, query
from ._http import asked

Pace = Literal["manual", "on-demand", "max"] | float


class Signed(Protocol):
    """A signed transaction of an SDK."""

    def to_json(self) -> object:
        """Its JSON, as a text or a dict."""


@dataclass(frozen=True)
class Account:
    """A funded account, for tests only. ``balance`` is in arktoshi."""

    address: str
    passphrase: str
    public_key: str
    balance: int


class Chaos:
    """Faults between a network and its clients: answers that are late, cut off or 503, posts that are lost."""

    def __init__(self, network: Lab) -> None:
        self._network = network

    def add(self, **members: Any) -> dict[str, Any]:
        """Adds a rule, such as ``add(route="/api/blocks", share=0.5, status=503)``, and returns it with its ``id``."""
        rule: dict[str, Any] = self._network.lab("POST", "chaos", members)
        return rule

    def list(self) -> list[dict[str, Any]]:
        """The rules in force, each with the number of requests or posts that it ``matched`` and to which it was ``applied``."""
        rules: list[dict[str, Any]] = self._network.lab("GET", "chaos")
        return rules

    def end(self, rule: int | Mapping[str, Any]) -> dict[str, Any]:
        """Ends a rule, and returns it with its counts."""
        ended: dict[str, Any] = self._network.lab("DELETE", f"chaos/{_number(rule, 'rule', 'a rule or its number')}")
        return ended

    def clear(self) -> int:
        """Ends all rules, and returns their number."""
        deleted: int = self._network.lab("DELETE", "chaos")["deleted"]
        return deleted


class Asked:
    """A part of a testnet with a public API and a lab of its own: a network or a view of the past."""

    def __init__(self, url: str, lab_url: str) -> None:
        #: The base URL for an SDK: ``http://127.0.0.1:PORT/api``.
        self.url = url
        #: The URL of the lab.
        self.lab_url = lab_url

    def get(self, path: str) -> Any:
        """Sends ``GET`` to a path of the public API, such as ``"node/status"``, and returns the answer's JSON."""
        return self._request("GET", f"{self.url}/{path.lstrip('/')}", None)

    def _lab(self, method: str, path: str, body: object = None) -> Any:
        path = path.lstrip("/")
        between = "" if not path or path.startswith("?") else "/"
        answer = self._request(method, f"{self.lab_url}{between}{path}", body)
        return answer["data"] if isinstance(answer, dict) and "data" in answer else answer

    def _request(self, method: str, url: str, body: object) -> Any:
        content = self._bytes(method, url, body)
        return json.loads(content) if content else None

    def _bytes(self, method: str, url: str, body: object) -> bytes:
        try:
            return asked(method, url, body)
        except (OSError, HTTPException) as error:
            raise self._gone() or error

    def _gone(self) -> DposlabError | None:
        """The error for the end of the process, or ``None`` while it runs."""
        raise NotImplementedError


class Lab(Asked):
    """Control of a network, a testnet's own or a chain's. Errors of the network are :class:`HttpError`."""

    def __init__(self, url: str, lab_url: str, seed: int, nethash: str, accounts: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(url, lab_url)
        #: The seed of its keys and choices.
        self.seed = seed
        #: The payload hash of its genesis block.
        self.nethash = nethash
        #: Funded accounts.
        self.accounts: list[Account] = [_account(account) for account in accounts]
        #: Rules that make answers fail.
        self.chaos = Chaos(self)
        self._streams: WeakSet[EventStream] = WeakSet()

    def lab(self, method: Literal["GET", "POST", "DELETE"], path: str = "", body: object = None) -> Any:
        """The ``data`` of any route of the lab, such as ``lab("POST", "advance", {"slots": 3})``; ``None`` for an empty answer."""
        return self._lab(method, path, body)

    def post(self, path: str, body: object) -> Any:
        """Sends ``POST`` with JSON to a path of the public API, such as ``"transactions"``, and returns the answer's JSON."""
        return self._request("POST", f"{self.url}/{path.lstrip('/')}", body)

    @property
    def status(self) -> dict[str, Any]:
        """The whole network at once: the clock, every node, faults, snapshots."""
        status: dict[str, Any] = self._lab("GET", "")
        return status

    def advance(
        self,
        slots: int | None = None,
        *,
        until: Mapping[str, Any] | None = None,
        limit: int | None = None,
        required: bool = True,
    ) -> Any:
        """Plays ``slots`` slots, or ``until`` a condition holds, such as ``{"height": 100}``, within ``limit`` slots (10,000 by default).
        Returns ``slots``, ``height`` and ``now`` [s], and with ``until`` also ``stopped``. Raises :class:`NotReached` if the condition
        does not hold at the end. With ``required=False`` it returns then, too, and ``stopped`` is not ``"reached"``.

        At the pace on demand the block of a payment uses the slot in which it was forged. The rest of that slot is the first of the
        ``slots``, so ``advance(n)`` after a payment adds ``n - 1`` blocks. ``advance(until={"height": net.height + n})`` adds ``n``."""
        if (slots is None) == (until is None) or (until is None and limit is not None):
            found = f"slots={slots!r}, until={until!r}, limit={limit!r}"
            raise UsageError(f"advance: found {found}, allowed are slots alone, or until, with limit or without")
        if until is None:
            return self._lab("POST", "advance", {"slots": slots})
        if not isinstance(until, Mapping):
            raise UsageError(f'until: found {until!r}, allowed is a mapping with one condition, such as {{"height": 100}}')
        body = {"until": dict(until), **({} if limit is None else {"limit": limit})}
        advanced = self._lab("POST", "advance", body)
        if required and advanced["stopped"] != "reached":
            raise NotReached(until, advanced)
        return advanced

    def pace(self, pace: Pace | None = None) -> Any:
        """Sets the pace of the clock, if given: virtual seconds per real second, ``"max"``, ``"manual"`` or ``"on-demand"``.
        Returns ``pace`` and ``now`` [s]."""
        return self._lab("GET", "pace") if pace is None else self._lab("POST", "pace", {"pace": pace})

    def faucet(self, recipient: str | Iterable[Mapping[str, Any]], amount: int | None = None) -> list[str]:
        """Pays ``amount`` arktoshi to an address, or ``[{"recipient": ..., "amount": ...}, ...]``. Returns the transactions' ids. At the
        pace on demand they are in blocks when the call returns, unless no block contains them within 120 slots: see :meth:`submit`."""
        ids: list[str] = self._lab("POST", "faucet", _payments(recipient, amount))["transactions"]
        return ids

    def new_accounts(self, count: int, balance: int) -> list[Account]:
        """Creates accounts and pays ``balance`` arktoshi to each."""
        made = self._lab("POST", "accounts", {"count": count, "balance": balance})["accounts"]
        return [_account(account) for account in made]

    def submit(self, *transactions: Mapping[str, Any] | Signed) -> list[str]:
        """Submits signed transactions and returns their ids. Each is the dict of its JSON, or an object with ``to_json()``, whose
        members without a value are left out. Raises :class:`Refused` with the reason if the node refuses one of them.

        At the pace on demand the transactions are in blocks when the call returns. The clock advances at most 120 slots for them. If no
        block contains them by then, because no delegate forges, the call returns nevertheless, and they stay in the pool:
        ``get(f"transactions/{id}")`` raises an :class:`HttpError` with the status 404 as long as a transaction is in no block."""
        answer = self.post("transactions", {"transactions": [_signed(transaction) for transaction in transactions]})
        accepted: list[str] = answer["data"]["accept"]
        errors = (answer.get("errors") or {}).items()
        refusals = [(id_, error["type"], error["message"]) for id_, reasons in errors for error in reasons]
        told = {id_ for id_, _, _ in refusals}
        # The pool has no room for more transactions of their sender. `errors` does not contain them.
        why = "its sender has as many pending transactions as the node keeps"
        excess = [id_ for id_ in answer["data"]["excess"] if id_ not in told and id_ not in accepted]
        refusals += [(id_, "excess", why) for id_ in excess]
        if refusals:
            raise Refused(refusals, accepted)
        return accepted

    @property
    def submissions(self) -> list[dict[str, Any]]:
        """The newest 1,000 transactions that clients submitted, with the nodes' answers, the oldest first."""
        submissions: list[dict[str, Any]] = self._lab("GET", "submissions")
        return submissions

    def snapshot(self, name: str = "") -> int:
        """Saves the present state of the whole network. Returns the number of the snapshot, for :meth:`revert`."""
        number: int = self._lab("POST", "snapshots", {"name": name} if name else {})["id"]
        return number

    @property
    def snapshots(self) -> list[dict[str, Any]]:
        """All snapshots, the oldest first."""
        snapshots: list[dict[str, Any]] = self._lab("GET", "snapshots")
        return snapshots

    def revert(self, snapshot: int | str | Mapping[str, Any]) -> Any:
        """Reverts the whole network to a snapshot: its number, an element of :attr:`snapshots`, or a name that no other snapshot has."""
        return self._lab("POST", f"snapshots/{self._snapshot(snapshot)}/revert")

    def delete_snapshot(self, snapshot: int | str | Mapping[str, Any]) -> None:
        """Deletes a snapshot: its number, an element of :attr:`snapshots`, or a name that no other snapshot has."""
        self._lab("DELETE", f"snapshots/{self._snapshot(snapshot)}")

    def _snapshot(self, snapshot: int | str | Mapping[str, Any]) -> int:
        allowed = "a snapshot, its number or its name"
        if not isinstance(snapshot, str):
            return _number(snapshot, "snapshot", allowed)
        named: list[int] = [each["id"] for each in self.snapshots if each["name"] == snapshot]
        if len(named) == 1:
            return named[0]
        whose = f"the snapshots {', '.join(map(str, named))}" if named else "no snapshot"
        raise UsageError(f"snapshot: found {snapshot!r}, the name of {whose}, allowed is {allowed}, if only one has it")

    def reorg(
        self,
        depth: int | None = None,
        transactions: Literal["return", "drop"] | Sequence[str] = "return",
        *,
        to: int | str | None = None,
        node: int | None = None,
    ) -> Any:
        """Makes the network leave its newest blocks for another branch: ``depth`` blocks, or those above the block ``to``, by its height
        or its id. ``node`` names the node whose chain is left."""
        what = transactions if isinstance(transactions, str) else list(transactions)
        back = {name: value for name, value in (("depth", depth), ("to", to), ("node", node)) if value is not None}
        return self._lab("POST", "reorg", {**back, "transactions": what})

    def push_block(self, block: Mapping[str, Any] | str, *, node: int | None = None) -> Any:
        """Submits a block as a peer would push it. Returns the node's answer, and raises :class:`HttpError` with the rule that it breaks.

        ``block`` is its wire bytes in hex, or a mapping as ``get(f"blocks/{id}")`` returns it in ``data``, with or without
        ``?transform=false``. In both shapes ``transactions`` must be the list of its transactions, in their order, as
        ``get(f"blocks/{id}/transactions?transform=false")`` returns it in ``data``. A block without transactions needs no list. A node
        passes over a block whose id it has seen, so change a block and sign it again, or push it after :meth:`revert`."""
        body = {"block": _block(block)}
        return self._lab("POST", "blocks", body if node is None else {**body, "node": node})

    def drop_pending(self, transaction: str) -> Any:
        """Removes a pending transaction and its sender's later ones from all pools."""
        if not isinstance(transaction, str):
            raise UsageError(f"transaction: found {transaction!r}, allowed is the id of a transaction")
        return self._lab("DELETE", f"pool/{transaction}")

    def fault(self, kind: str, **members: Any) -> int:
        """Adds a fault, as a ``[[fault]]`` of a scenario does. Returns its number, for :meth:`heal`. A member named like a keyword of
        Python gets a ``_`` at its end (``from_``)."""
        body = {name.rstrip("_"): value for name, value in members.items()}
        number: int = self._lab("POST", "faults", {"kind": kind, **body})["id"]
        return number

    @property
    def faults(self) -> list[dict[str, Any]]:
        """All faults, each ``waiting``, ``in-force`` or ``over``."""
        faults: list[dict[str, Any]] = self._lab("GET", "faults")
        return faults

    def heal(self, fault: int | Mapping[str, Any]) -> None:
        """Ends a fault: its number, or an element of :attr:`faults`."""
        self._lab("DELETE", f"faults/{_number(fault, 'fault', 'a fault or its number')}")

    def crash(self, node: int, *, keep_pool: bool = True) -> int:
        """Crashes a node, which is down until it is restarted. Returns the number of the fault."""
        number: int = self._lab("POST", f"nodes/{_number(node, 'node', 'the number of a node')}/crash", {"keep_pool": keep_pool})["id"]
        return number

    def restart(self, node: int, *, keep_pool: bool = True) -> None:
        """Restarts a node, whatever crash kept it down."""
        self._lab("POST", f"nodes/{_number(node, 'node', 'the number of a node')}/restart", {"keep_pool": keep_pool})

    def events(
        self,
        kind: str | Iterable[str] | None = None,
        *,
        node: int | Iterable[int] | None = None,
        last_event_id: int | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> EventStream:
        """The events from now on, or after an event, of these kinds and on these nodes. The returned stream is already open. It ends after
        ``limit`` events. ``next`` raises :class:`NoEvent` if none comes within ``timeout`` seconds of real time."""
        try:
            stream = EventStream(f"{self.lab_url}/events{query(kind, node, last_event_id, limit)}", timeout, self._gone)
        except (OSError, HTTPException) as error:
            raise self._gone() or error
        self._streams.add(stream)
        return stream

    @property
    def height(self) -> int:
        """The height of the observed node's chain."""
        height: int = self.get("node/syncing")["data"]["height"]
        return height

    def recording(self) -> bytes:
        """The recording of all inputs so far, in the form that ``dposlab replay`` accepts."""
        return self._bytes("GET", f"{self.lab_url}/recording", None)

    def _close_streams(self) -> None:
        for stream in list(self._streams):
            stream.close()


def _account(account: Mapping[str, Any]) -> Account:
    balance = int(account.get("balance", 0))
    return Account(account["address"], account["passphrase"], account.get("publicKey", ""), balance)


def _signed(transaction: Mapping[str, Any] | Signed) -> dict[str, Any]:
    if isinstance(transaction, Mapping):
        return dict(transaction)
    try:
        members = transaction.to_json()
        parsed: Any = json.loads(members) if isinstance(members, (str, bytes)) else members
    except (AttributeError, ValueError):
        parsed = None
    if not isinstance(parsed, Mapping):
        hint = ": unpack the list, submit(*transactions)" if isinstance(transaction, (list, tuple)) else ""
        allowed = "allowed is a signed transaction: the dict of its JSON, or an object whose to_json() returns that"
        raise UsageError(f"transactions: found {transaction!r:.100}, {allowed}{hint}")
    # The reference's library writes null for a member without a value, and a node refuses null.
    return {name: value for name, value in parsed.items() if value is not None}


def _payments(recipient: str | Iterable[Mapping[str, Any]], amount: int | None) -> object:
    """The body of a payment, to one address or to several."""
    if isinstance(recipient, str):
        if amount is None:
            raise UsageError("amount: found None, allowed is an amount in arktoshi beside an address")
        return {"recipient": recipient, "amount": amount}
    if not isinstance(recipient, Iterable) or isinstance(recipient, Mapping):
        raise UsageError(f"recipient: found {recipient!r}, allowed is an address, or a list of payments")
    if amount is not None:
        raise UsageError(f"amount: found {amount!r} beside a list of payments, allowed is None: each payment has an amount of its own")
    try:
        return [dict(payment) for payment in recipient]
    except (TypeError, ValueError):
        allowed = 'allowed is an address, or a list of {"recipient": ..., "amount": ...}'
        raise UsageError(f"recipient: found {recipient!r}, {allowed}") from None


#: The places of a block's members in the API's shape, for members with another name or place than in a block. The other members of
#: that shape follow from these.
_SHOWN = {
    "timestamp": ("timestamp", "epoch"),
    "previousBlock": ("previous",),
    "numberOfTransactions": ("transactions",),
    "totalAmount": ("forged", "amount"),
    "totalFee": ("forged", "fee"),
    "reward": ("forged", "reward"),
    "payloadLength": ("payload", "length"),
    "payloadHash": ("payload", "hash"),
    "generatorPublicKey": ("generator", "publicKey"),
    "blockSignature": ("signature",),
}


def _block(block: Mapping[str, Any] | str) -> object:
    """A block as the lab reads it, from its wire bytes or from a mapping of the API in either shape."""
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        raise UsageError(f"block: found {block!r}, allowed is a block of the API as a mapping, or its wire bytes in hex")
    transactions = block.get("transactions", [])
    whole = dict(block)
    if isinstance(block.get("timestamp"), Mapping):
        try:
            whole = {name: block[name] for name in ("id", "version", "height")}
            whole |= {name: reduce(getitem, place, block) for name, place in _SHOWN.items()}
        except (KeyError, TypeError) as error:
            raise UsageError(f"block: found {block!r}, without {error}, allowed is a whole block of the API") from None
        if not isinstance(transactions, int):
            whole["numberOfTransactions"] = len(transactions)
    whole["transactions"] = [] if isinstance(transactions, int) else [dict(transaction) for transaction in transactions]
    is_shown = any(isinstance(transaction.get("timestamp"), Mapping) or "sender" in transaction for transaction in whole["transactions"])
    if is_shown or (whole.get("numberOfTransactions") and not whole["transactions"]):
        found = "transactions of another shape" if is_shown else f"none of its {whole['numberOfTransactions']} transactions"
        allowed = f'get("blocks/{whole.get("id")}/transactions?transform=false")["data"]'
        raise UsageError(f"block: found {found}, allowed is the list 'transactions': {allowed}")
    return whole


def _number(of: int | Mapping[str, Any], what: str, allowed: str) -> int:
    number: Any = of.get("id") if isinstance(of, Mapping) else of
    # Other whole numbers, such as numpy's, have `__index__`.
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise UsageError(f"{what}: found {of!r}, allowed is {allowed}")
    return operator.index(number)
