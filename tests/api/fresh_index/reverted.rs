//! Each type of transaction, and what it causes, is applied, taken back without and with another block in its place, and applied
//! again: every list and search answers what an index made anew answers.

use super::{
    Comparison, check_naively, context,
    history::{Change, Deed, Network},
    shown,
};
use crate::support::{Answered, ask, get, of_json};
use dposlab::{
    api::{ApiContext, Dialect},
    check::strategies::{Attempt, Stage, Try},
    ledger::{Link, apply},
    protocol::{Asset, Kind},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use warp::http::Method;

/// A sender and what it tries.
type Turn = [(usize, Attempt); 1];

/// Senders and what they try, each on the chain of those before; and what another block holds in its place.
fn course() -> Vec<(Turn, Turn)> {
    use Attempt::*;
    let transfer = |to| Transfer { to, amount: 3 };
    let shared = 8;
    let pay = |to| MultiPayment { to, amounts: [5, 6] };
    let lock = |blocks| Lock { to: 3, amount: 1_000, blocks };
    let bridgechain = |name, hash| Bridgechain { name, hash, good_port: true };
    let alike: Vec<(usize, Attempt, usize, Attempt)> = vec![
        (0, transfer(1), 2, transfer(1)),
        (4, SecondSignature, 3, SecondSignature),
        (1, Register { name: 1 }, 2, Register { name: 1 }),
        (0, Vote { delegate: 1 }, 0, Vote { delegate: 2 }),
        (2, Vote { delegate: 1 }, 3, Vote { delegate: 1 }),
        (0, Unvote { delegate: 1 }, 2, Unvote { delegate: 1 }),
        (2, MultiSignature { first: 1, min: 2, whole: true }, 2, transfer(4)),
        (2, Transfer { to: shared, amount: 5_000_000_000 }, 3, Transfer { to: shared, amount: 7 }),
        (0, SpendTogether { to: 1, amount: 9, signers: 2 }, 0, transfer(2)),
        (0, Ipfs { hash: 1 }, 2, Ipfs { hash: 1 }),
        (0, pay([1, 2]), 0, pay([2, 2])),
        (0, lock(4), 0, transfer(5)),
        (2, lock(2), 0, transfer(5)),
        (3, Claim { lock: 0, right: true }, 0, transfer(5)),
        (1, Refund { lock: 1 }, 0, transfer(5)),
        (0, Business { name: 1 }, 2, Business { name: 1 }),
        (0, UpdateBusiness { name: 2 }, 0, ResignBusiness),
        (0, bridgechain(1, 1), 0, bridgechain(1, 2)),
        (0, UpdateBridgechain { hash: 1, good_port: true }, 0, ResignBridgechain { hash: 1 }),
        (0, bridgechain(2, 2), 0, bridgechain(2, 0)),
        (0, ResignBridgechain { hash: 1 }, 0, ResignBridgechain { hash: 2 }),
        (0, ResignBridgechain { hash: 2 }, 0, transfer(2)),
        (0, ResignBusiness, 0, UpdateBusiness { name: 0 }),
        (1, Resign, 5, Resign),
        (2, Unvote { delegate: 1 }, 2, transfer(1)),
    ];
    alike.into_iter().map(|(sender, one, other, instead)| ([(sender, one)], [(other, instead)])).collect()
}

fn forges(tries: &[(usize, Attempt)], missed: u32) -> Deed {
    let tries = tries.iter().map(|(sender, attempt)| Try { sender: *sender, attempt: attempt.clone(), flaw: None });
    Deed::Forges { stage: Stage { missed, back: 0, tries: tries.collect() }, announced: false }
}

fn change(network: &mut Network, node: usize, deed: Deed) {
    network.change(&Change { node, deed, later: 0 }, |_| {});
}

/// Requests that name nothing: each list of the API, and each list in each other order it knows.
fn lists(described: &Value) -> (Vec<String>, Vec<String>) {
    let own = ["/api/blockchain", "/api/node/fees?days=3", "/api/transactions/fees"];
    let rounds = [1, 2, 6].map(|round| format!("/api/rounds/{round}/delegates"));
    let mut lists: Vec<String> = own.map(str::to_owned).into_iter().chain(rounds).collect();
    let mut orders = Vec::new();
    for (path, methods) in described["paths"].as_object().expect("it has paths") {
        let parameters = methods["get"]["parameters"].as_array().cloned().unwrap_or_default();
        let taken = |name: &str| parameters.iter().find(|one| one["in"] == "query" && one["name"] == name);
        let is_of_chain = path.starts_with("/api/") && !path.contains('{') && !path.contains("webhooks");
        if !is_of_chain || taken("limit").is_none() {
            continue;
        }
        lists.push(format!("{path}?limit=100"));
        if taken("transform").is_some() {
            lists.push(format!("{path}?limit=100&transform=false"));
        }
        let known = taken("orderBy").and_then(|order| order["schema"]["enum"].as_array());
        let names = known.into_iter().flatten().filter_map(Value::as_str);
        orders.extend(names.map(|order| format!("{path}?limit=100&orderBy={order}")));
    }
    (lists, orders)
}

/// Requests about one block and all that its transactions name.
fn about(network: &Network, link: &Arc<Link>) -> (BTreeSet<String>, Vec<(String, Value)>) {
    let block = link.block();
    let (id, generator) = (link.id(), block.header.generator);
    let mut paths: BTreeSet<String> = [
        format!("/api/blocks/{id}"),
        format!("/api/blocks/{id}/transactions"),
        format!("/api/delegates/{generator}"),
        format!("/api/delegates/{generator}/blocks"),
    ]
    .into();
    let mut searches = vec![("/api/blocks/search".to_owned(), json!({"id": id.to_string()}))];
    for transaction in &block.transactions {
        let (id, sender) = (transaction.id(), transaction.sender_address());
        paths.extend(["transactions", "votes", "locks"].map(|list| format!("/api/{list}/{id}")));
        let delegates = network.play.testnet.delegates.iter().map(|delegate| delegate.keys.public().address(23));
        for wallet in apply::recipients(transaction).into_iter().chain([sender]).chain(delegates.take(1)) {
            paths.extend(
                ["", "/transactions", "/transactions/sent", "/transactions/received", "/votes", "/locks"]
                    .map(|of| format!("/api/wallets/{wallet}{of}")),
            );
            paths.insert(format!("/api/delegates/{wallet}/voters"));
            searches.push(("/api/wallets/search".to_owned(), json!({"address": wallet.to_string()})));
            searches.push(("/api/transactions/search".to_owned(), json!({"recipientId": wallet.to_string()})));
        }
        paths.extend(["", "/bridgechains"].map(|of| format!("/api/businesses/{sender}{of}")));
        let (group, number) = transaction.kind().numbers();
        let lock = match transaction.asset() {
            Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } => *lock,
            _ => id,
        };
        searches.extend([
            ("/api/transactions/search".to_owned(), json!({"senderPublicKey": transaction.sender().to_string()})),
            ("/api/transactions/search".to_owned(), json!({"type": number, "typeGroup": group})),
            ("/api/locks/search".to_owned(), json!({"senderPublicKey": transaction.sender().to_string()})),
            ("/api/businesses/search".to_owned(), json!({"publicKey": transaction.sender().to_string()})),
            ("/api/locks/unlocked".to_owned(), json!({"ids": [lock.to_string()]})),
        ]);
    }
    (paths, searches)
}

struct Asker {
    lists: Vec<String>,
    /// Asked for after some of the changes only: there are many.
    orders: Vec<String>,
    /// Of lists and searches, those that ever had a row.
    found: BTreeSet<String>,
}

impl Asker {
    fn compare(&mut self, network: &Network, links: &[Arc<Link>], ordered: bool, what: &str) {
        let fresh = network.fresh(0);
        let [running, fresh] = [&network.views[0], &fresh].map(|view| context(view, Dialect::Documented));
        let (mut paths, mut searches) = (BTreeSet::from_iter(self.lists.iter().cloned()), Vec::new());
        paths.extend(self.orders.iter().filter(|_| ordered).cloned());
        for link in links {
            let (more, asked) = about(network, link);
            paths.extend(more);
            searches.extend(asked);
        }
        for path in &paths {
            self.same(path, what, &get(&running, path), &get(&fresh, path));
        }
        for (path, body) in searches {
            let asked =
                |context: &ApiContext| ask(context, &of_json(Method::POST, &path), body.to_string().into_bytes());
            self.same(&format!("{path} {body}"), what, &asked(&running), &asked(&fresh));
        }
    }

    fn same(&mut self, asked: &str, what: &str, answered: &Answered, wanted: &Answered) {
        assert!(
            answered.status == wanted.status && answered.reply.body == wanted.reply.body,
            "{what}: {asked}\nanswered {} {}\n   fresh {} {}",
            answered.status,
            shown(&answered.body),
            wanted.status,
            shown(&wanted.body),
        );
        let list = asked.split(['?', ' ']).next().unwrap_or_default().to_owned();
        if answered.body["data"].as_array().is_some_and(|rows| !rows.is_empty()) {
            self.found.insert(list);
        }
    }
}

#[test]
fn every_list_is_right_after_the_rollback_of_each_type_of_transaction() {
    let mut network = Network::new();
    let described = get(&context(&network.views[0], Dialect::Documented), "/api/openapi.json").body;
    let (lists, orders) = lists(&described);
    assert!(lists.len() > 12 && orders.len() > 30, "{lists:?} {orders:?}");
    let mut asker = Asker { lists, orders, found: BTreeSet::new() };
    let mut comparison = Comparison::new(7, &network.views[0]);
    let mut kinds = BTreeSet::new();
    for (number, (tries, instead)) in course().iter().enumerate() {
        let what = format!("{:?}", tries[0].1);
        change(&mut network, 0, forges(tries, 0));
        let with = network.tips[0].clone();
        let [transaction] = &with.block().transactions[..] else { panic!("{what} is not allowed") };
        kinds.insert(transaction.kind());
        // Another node keeps the block, to be followed later.
        change(&mut network, 1, Deed::Follows { other: 0 });
        change(&mut network, 0, Deed::FallsBack { blocks: 1 });
        asker.compare(&network, std::slice::from_ref(&with), number % 6 == 1, &format!("{what}, taken back"));
        change(&mut network, 0, forges(instead, 1));
        let other = network.tips[0].clone();
        assert_eq!(other.block().transactions.len(), 1, "{what}: {:?} is not allowed", instead[0].1);
        asker.compare(
            &network,
            &[with.clone(), other.clone()],
            number % 6 == 3,
            &format!("{what}, with another in its place"),
        );
        change(&mut network, 0, Deed::Follows { other: 1 });
        assert!(network.tips[0].is(&with));
        asker.compare(&network, &[with, other], number % 6 == 5, &format!("{what}, applied again"));
        if number % 8 == 7 {
            comparison.compare(&network, 0);
        }
    }
    assert_eq!(kinds.len(), Kind::ALL.len(), "every type: {kinds:?}");
    // All of it at once, and again.
    let tip = network.tips[0].clone();
    change(&mut network, 0, Deed::Repeats { blocks: tip.height().0 });
    asker.compare(&network, &[tip], true, "all of it, taken back and applied again");
    check_naively(&network, 0);
    let never: Vec<&String> = asker
        .lists
        .iter()
        .filter(|list| {
            let list = list.split('?').next().unwrap_or_default();
            !asker.found.contains(list)
                && !["/api/blockchain", "unlocked", "fees", "unconfirmed", "peers", "rounds"]
                    .iter()
                    .any(|of| list.contains(of))
        })
        .collect();
    assert!(never.is_empty(), "lists that never had a row: {never:?}");
}
