"""Every method of every resource of the PyPI client, found by reflection, and transactions of its own library."""

import hashlib
import inspect
import json
import sys
import traceback

from client import ArkClient
from client.exceptions import ArkHTTPException
from client.resource import Resource
from crypto.configuration.network import set_network
from crypto.networks.testnet import Testnet as TestnetPreset
from crypto.transactions.builder.htlc_claim import HtlcClaim
from crypto.transactions.builder.htlc_lock import HtlcLock
from crypto.transactions.builder.transfer import Transfer
from crypto.transactions.builder.vote import Vote

from testnet import Testnet

# This library signs the secret as 32 letters; on the wire and in JSON those are 32 bytes in hex.
SECRET = "thirty-two letters of no meaning"


def signed(builder, account, nonce):
    builder.set_nonce(nonce)
    builder.schnorr_sign(account["passphrase"])
    transaction = json.loads(builder.to_json())
    return {name: value for name, value in transaction.items() if value is not None}


def ids(body):
    return [row["id"] for row in body["data"]]


def addresses(body):
    return [row["address"] for row in body["data"]]


class Suite:
    def __init__(self, testnet):
        self.testnet = testnet
        self.client = ArkClient(testnet.url)
        self.sender, self.recipient, self.voter, self.locker = testnet.accounts[:4]
        testnet.advance(3)
        self.delegate = self.client.delegates.all(limit=1)["data"][0]
        digest = hashlib.sha256(SECRET.encode()).hexdigest()
        self.transfer = signed(Transfer(self.recipient["address"], 1_234_500_000, "every method"), self.sender, 1)
        self.vote = signed(Vote("+" + self.delegate["publicKey"]), self.voter, 1)
        self.open, self.closed = (
            signed(HtlcLock(self.recipient["address"], 5_000_000, digest, 2, 10_000), self.locker, nonce)
            for nonce in (1, 2)
        )
        self.post(self.transfer, self.vote, self.open, self.closed)
        testnet.advance(2)
        self.claim = signed(HtlcClaim(self.closed["id"], SECRET), self.recipient, 1)
        self.claim["asset"]["claim"]["unlockSecret"] = SECRET.encode().hex()
        self.post(self.claim)
        testnet.advance(2)
        self.pending = signed(Transfer(self.recipient["address"], 1), self.sender, 2)
        self.post(self.pending)
        self.block = self.client.transactions.get(self.transfer["id"])["data"]["blockId"]

    def post(self, *transactions):
        body = self.client.transactions.create(list(transactions))
        assert body["data"]["accept"] == [transaction["id"] for transaction in transactions], body
        return body

    def cases(self):
        """For every method its arguments and what its body must be."""
        transfer, recipient, delegate = self.transfer, self.recipient["address"], self.delegate
        next_one = signed(Transfer(recipient, 7), self.locker, 3)
        return {
            "blocks.all": ((), {"limit": 2, "height": {"from": 2, "to": 3}}, lambda b: [r["height"] for r in b["data"]] == [3, 2]),
            "blocks.first": ((), {}, lambda b: b["data"]["height"] == 1),
            "blocks.last": ((), {}, lambda b: b["data"]["confirmations"] == 0),
            "blocks.get": ((self.block,), {}, lambda b: b["data"]["id"] == self.block),
            "blocks.transactions": ((self.block,), {}, lambda b: transfer["id"] in ids(b)),
            "delegates.all": ((), {"limit": 51, "orderBy": "rank:asc"}, lambda b: [r["rank"] for r in b["data"]] == list(range(1, 52))),
            "delegates.get": ((delegate["username"],), {}, lambda b: b["data"]["publicKey"] == delegate["publicKey"]),
            "delegates.blocks": ((delegate["username"],), {}, lambda b: all(r["generator"]["publicKey"] == delegate["publicKey"] for r in b["data"])),
            "delegates.voters": ((delegate["username"],), {}, lambda b: self.voter["address"] in addresses(b)),
            "locks.all": ((), {"orderBy": "amount:asc"}, lambda b: [r["lockId"] for r in b["data"]] == [self.open["id"]]),
            "locks.get": ((self.open["id"],), {}, lambda b: b["data"]["amount"] == "5000000"),
            "locks.unlocked": (({"ids": [self.closed["id"]]},), {}, lambda b: ids(b) == [self.claim["id"]]),
            "node.status": ((), {}, lambda b: b["data"]["synced"] is True),
            "node.syncing": ((), {}, lambda b: b["data"]["syncing"] is False),
            "node.configuration": ((), {}, lambda b: b["data"]["version"] == 23),
            "node.crypto": ((), {}, lambda b: b["data"]["network"]["wif"] == 186),
            "node.fees": ((), {}, lambda b: b["meta"]["days"] == 7 and any(r["key"] == "transfer" for r in b["data"])),
            "peers.all": ((), {"os": "linux", "status": 200, "port": 4000, "version": "2.6.*", "order_by": "latency:asc", "limit": 9}, lambda b: len(b["data"]) == 9),
            "peers.get": (("198.18.0.2",), {}, lambda b: b["data"]["ip"] == "198.18.0.2"),
            "rounds.delegates": ((1,), {}, lambda b: len(b["data"]) == 51),
            "transactions.all": ((), {"type": 0, "amount": {"from": 1_234_500_000, "to": 1_234_500_000}}, lambda b: ids(b) == [transfer["id"]]),
            "transactions.create": (([next_one],), {}, lambda b: b["data"]["accept"] == [next_one["id"]]),
            "transactions.get": ((transfer["id"],), {}, lambda b: b["data"]["vendorField"] == "every method"),
            "transactions.all_unconfirmed": ((), {"limit": 10, "offset": 0}, lambda b: self.pending["id"] in ids(b)),
            "transactions.get_unconfirmed": ((self.pending["id"],), {}, lambda b: b["data"]["confirmations"] == 0),
            "transactions.types": ((), {}, lambda b: b["data"]["1"]["HtlcLock"] == 8),
            "transactions.fees": ((), {}, lambda b: b["data"]["1"]["transfer"] == "10000000"),
            "votes.all": ((), {"limit": 1}, lambda b: ids(b) == [self.vote["id"]]),
            "votes.get": ((self.vote["id"],), {}, lambda b: b["data"]["asset"]["votes"] == ["+" + delegate["publicKey"]]),
            "wallets.all": ((), {"limit": 5}, lambda b: b["meta"]["count"] == 5),
            "wallets.top": ((), {"limit": 2}, lambda b: int(b["data"][0]["balance"]) >= int(b["data"][1]["balance"])),
            "wallets.get": ((self.sender["publicKey"],), {}, lambda b: b["data"]["address"] == self.sender["address"]),
            "wallets.locks": ((self.locker["address"],), {}, lambda b: [r["lockId"] for r in b["data"]] == [self.open["id"]]),
            "wallets.transactions": ((recipient,), {}, lambda b: transfer["id"] in ids(b)),
            "wallets.transactions_sent": ((self.sender["address"],), {}, lambda b: ids(b) == [transfer["id"]]),
            "wallets.transactions_received": ((recipient,), {}, lambda b: transfer["id"] in ids(b)),
            "wallets.votes": ((self.voter["address"],), {}, lambda b: ids(b) == [self.vote["id"]]),
        }

    def methods(self):
        """All methods of all resources that the client has."""
        for resource, value in vars(self.client).items():
            if isinstance(value, Resource):
                own = vars(type(value)).items()
                yield from (f"{resource}.{name}" for name, method in own if inspect.isfunction(method))

    def check(self, method, arguments, named, accepts):
        resource, name = method.split(".")
        body = getattr(getattr(self.client, resource), name)(*arguments, **named)
        assert accepts(body), json.dumps(body)

    def check_every_method_has_a_case(self):
        assert sorted(self.methods()) == sorted(self.cases())

    def check_unknown_things_are_errors(self):
        try:
            self.client.wallets.get("nobody")
        except ArkHTTPException as error:
            assert error.response.json()["message"] == "Wallet not found"
        else:
            raise AssertionError("an unknown wallet was found")

    def check_what_was_posted_is_forged(self):
        self.testnet.advance(2)
        assert self.client.transactions.get(self.pending["id"])["data"]["confirmations"] > 0

    def run(self):
        checks = [("a case for every method", self.check_every_method_has_a_case)]
        for method, (arguments, named, accepts) in self.cases().items():
            checks.append((method, lambda m=method, a=arguments, n=named, ok=accepts: self.check(m, a, n, ok)))
        checks.append(("unknown things are errors", self.check_unknown_things_are_errors))
        checks.append(("what was posted is forged", self.check_what_was_posted_is_forged))
        failed = 0
        for name, check in checks:
            try:
                check()
            except Exception:
                failed += 1
                print(f"FAILED {name}")
                traceback.print_exc()
        return len(checks) - failed, failed


def main():
    set_network(TestnetPreset)
    testnet = Testnet("--seed", "13")
    try:
        passed, failed = Suite(testnet).run()
    finally:
        code = testnet.stop()
    assert code == 0, f"a stopped testnet ends with code {code}"
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
