//! The figures that matter most, counted again from nothing but the blocks of the chain, and held against what the API
//! says. An index that is made anew may share a mistake with one that has seen everything; this shares none.

use super::{
    books::Books,
    history::{ROUND, chain},
};
use crate::support::get;
use dposlab::{
    api::ApiContext,
    ledger::Link,
    protocol::{Address, Asset, Kind, PublicKey, SignedTransaction, transaction::Expiration},
};
use serde_json::{Value, json};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A transaction with its height and its index in the block.
type Confirmed = (u32, usize, Arc<SignedTransaction>);

/// Holds the API of a chain's node against the books of that chain.
pub struct Naive<'n> {
    context: &'n ApiContext,
    links: Vec<Arc<Link>>,
    books: Books,
    confirmed: Vec<Confirmed>,
}

impl<'n> Naive<'n> {
    pub fn new(context: &'n ApiContext, tip: &Arc<Link>) -> Self {
        let links = chain(tip);
        let confirmed = links.iter().flat_map(|link| {
            let transactions = link.block().transactions.iter().cloned().enumerate();
            transactions.map(|(index, transaction)| (link.height().0, index, transaction))
        });
        let confirmed = confirmed.collect();
        Self { context, confirmed, books: Books::of(&links, ROUND as usize), links }
    }

    /// All of it; `now` in seconds of the chain's own time.
    pub fn check(&self, pool: &[Arc<SignedTransaction>], now: u32) {
        self.check_blocks();
        self.check_transactions();
        self.check_orders();
        self.check_wallets();
        self.check_delegates();
        self.check_rounds();
        self.check_locks();
        self.check_businesses();
        self.check_pool(pool);
        self.check_fees(now);
        self.check_whole();
    }

    /// All rows of a list, over as many pages as it takes, and what each page says of the whole.
    fn rows(&self, target: &str, limit: usize) -> Vec<Value> {
        let sign = if target.contains('?') { '&' } else { '?' };
        let ask = |number: usize| get(self.context, &format!("{target}{sign}limit={limit}&page={number}")).body;
        let link =
            |link: &Value| link.as_str().map(|link| get(self.context, &format!("/api{link}")).body["data"].clone());
        let (mut rows, mut number, mut pages) = (Vec::new(), 1, vec![ask(1)]);
        let total = pages[0]["meta"]["totalCount"].as_u64().expect("a count") as usize;
        let last = total.div_ceil(limit).max(1);
        loop {
            let page = pages.last().expect("it begins with one").clone();
            let (meta, data) = (&page["meta"], page["data"].as_array().expect("a list"));
            let wanted = limit.min(total.saturating_sub((number - 1) * limit));
            let said = [&meta["count"], &meta["totalCount"], &meta["pageCount"]];
            assert_eq!(said, [&json!(wanted), &json!(total), &json!(last)], "{target} page {number}: {meta}");
            assert_eq!(data.len(), wanted, "{target} page {number}: {meta}");
            assert_eq!(meta["next"].is_null(), number >= last, "{target} page {number}: {meta}");
            assert_eq!(meta["previous"].is_null(), number == 1 || total == 0, "{target} page {number}: {meta}");
            if let Some(previous) = link(&meta["previous"]) {
                assert_eq!(previous, pages[number - 2]["data"], "{target} page {number}: {meta}");
            }
            assert_eq!(link(&meta["self"]), Some(page["data"].clone()), "{target} page {number}: {meta}");
            assert_eq!(link(&meta["first"]), Some(pages[0]["data"].clone()), "{target} page {number}: {meta}");
            rows.extend(data.iter().cloned());
            // One page beyond the end is empty.
            if number > last {
                assert_eq!(link(&meta["last"]).unwrap_or(json!([])), pages[last - 1]["data"], "{target}: {meta}");
                return rows;
            }
            let follows = ask(number + 1);
            if let Some(next) = link(&meta["next"]) {
                assert_eq!(next, follows["data"], "{target} page {number}: {meta}");
            }
            pages.push(follows);
            number += 1;
        }
    }

    fn ids(&self, target: &str, limit: usize) -> Vec<String> {
        self.rows(target, limit).iter().map(|row| text(&row["id"])).collect()
    }

    fn check_blocks(&self) {
        let tip = self.links.last().expect("genesis").height().0;
        let rows = self.rows("/api/blocks", 3);
        let ids: Vec<String> = self.links.iter().rev().map(|link| link.id().to_string()).collect();
        assert_eq!(rows.iter().map(|row| text(&row["id"])).collect::<Vec<_>>(), ids);
        for (row, link) in rows.iter().zip(self.links.iter().rev()) {
            let (header, transactions) = (&link.block().header, &link.block().transactions);
            let fees: i128 = transactions.iter().map(|one| i128::from(one.fee().value())).sum();
            let reward = i128::from(header.reward.value());
            let forged = [&row["forged"]["fee"], &row["forged"]["reward"], &row["forged"]["total"]].map(number);
            assert_eq!(forged, [fees, reward, fees + reward], "{row}");
            let counts = [&row["transactions"], &row["confirmations"], &row["height"]].map(number);
            let wanted = [transactions.len() as i128, (tip - link.height().0).into(), link.height().0.into()];
            assert_eq!(counts, wanted, "{row}");
            let of_block = self.ids(&format!("/api/blocks/{}/transactions", link.id()), 2);
            let wanted: Vec<String> = transactions.iter().map(|one| one.id().to_string()).collect();
            assert_eq!(of_block, wanted, "in the order of the block");
        }
        let generators: BTreeSet<PublicKey> = self.links.iter().map(|link| link.block().header.generator).collect();
        for key in generators {
            let by_key = |link: &&Arc<Link>| link.block().header.generator == key;
            let wanted: Vec<String> =
                self.links.iter().rev().filter(by_key).map(|link| link.id().to_string()).collect();
            assert_eq!(self.ids(&format!("/api/blocks?generatorPublicKey={key}"), 4), wanted);
            if self.books.delegates.contains_key(&key) {
                assert_eq!(self.ids(&format!("/api/delegates/{key}/blocks"), 3), wanted);
            }
        }
        for (name, of) in [
            ("numberOfTransactions", (|row| number(&row["transactions"])) as fn(&Value) -> i128),
            ("totalFee", |row| number(&row["forged"]["fee"])),
            ("height", |row| number(&row["height"])),
        ] {
            for (order, sign) in [("asc", 1), ("desc", -1)] {
                let mut wanted = rows.clone();
                // Equals stand in the order of the chain, in the same direction.
                wanted.sort_by_key(|row| (sign * of(row), sign * number(&row["height"])));
                let wanted: Vec<String> = wanted.iter().map(|row| text(&row["id"])).collect();
                assert_eq!(self.ids(&format!("/api/blocks?orderBy={name}:{order}"), 5), wanted, "{name}:{order}");
            }
        }
    }

    /// The transactions that pass, newest first, the last of a block first.
    fn those(&self, passes: impl Fn(&SignedTransaction) -> bool) -> Vec<String> {
        let mut found: Vec<&Confirmed> = self.confirmed.iter().filter(|(_, _, one)| passes(one)).collect();
        // The whole chain is of one time order: of one height, of one time.
        found.sort_by_key(|(height, index, _)| (Reverse(*height), Reverse(*index)));
        found.iter().map(|(_, _, one)| one.id().to_string()).collect()
    }

    fn check_transactions(&self) {
        assert_eq!(self.ids("/api/transactions", 7), self.those(|_| true));
        for kind in Kind::ALL {
            let (group, number) = kind.numbers();
            let wanted = self.those(|one| one.kind() == kind);
            assert_eq!(self.ids(&format!("/api/transactions?type={number}&typeGroup={group}"), 7), wanted, "{kind:?}");
        }
        assert_eq!(self.ids("/api/votes", 2), self.those(|one| one.kind() == Kind::Vote));
        for text in ["a", "on"] {
            let holds = |one: &SignedTransaction| {
                one.transaction().vendor_field.as_ref().is_some_and(|field| field.contains(text))
            };
            assert_eq!(self.ids(&format!("/api/transactions?vendorField={text}"), 3), self.those(holds), "{text}");
        }
        for wallet in self.books.balances.keys() {
            let sent = self.those(|one| one.sender_address() == *wallet);
            let received = self.those(|one| is_received(one, wallet));
            let any = self.those(|one| one.sender_address() == *wallet || is_received(one, wallet));
            assert_eq!(self.ids(&format!("/api/transactions?senderId={wallet}"), 4), sent, "{wallet}");
            assert_eq!(self.ids(&format!("/api/transactions?recipientId={wallet}"), 4), received, "{wallet}");
            if get(self.context, &format!("/api/wallets/{wallet}")).status == 404 {
                continue;
            }
            assert_eq!(self.ids(&format!("/api/wallets/{wallet}/transactions/sent"), 5), sent, "{wallet}");
            assert_eq!(self.ids(&format!("/api/wallets/{wallet}/transactions/received"), 5), received, "{wallet}");
            assert_eq!(self.ids(&format!("/api/wallets/{wallet}/transactions"), 5), any, "{wallet}");
            let votes = self.those(|one| one.sender_address() == *wallet && one.kind() == Kind::Vote);
            assert_eq!(self.ids(&format!("/api/wallets/{wallet}/votes"), 2), votes, "{wallet}");
            if let Some((_, _, one)) = self.confirmed.iter().find(|(_, _, one)| one.sender_address() == *wallet) {
                let target = format!("/api/transactions?senderPublicKey={}", one.sender());
                assert_eq!(self.ids(&target, 9), sent, "{wallet}");
            }
        }
        let tip = self.links.last().expect("genesis").height().0;
        for (height, _, one) in &self.confirmed {
            let shown = get(self.context, &format!("/api/transactions/{}", one.id())).body["data"].clone();
            let id = self.links[*height as usize - 1].id().to_string();
            assert_eq!((text(&shown["blockId"]), number(&shown["confirmations"])), (id, (tip - height + 1).into()));
        }
    }

    fn check_orders(&self) {
        for (name, of) in [
            ("amount", (|one| one.amount().value()) as fn(&SignedTransaction) -> u64),
            ("fee", |one| one.fee().value()),
            ("type", |one| one.kind().numbers().1.into()),
            ("typeGroup", |one| one.kind().numbers().0.into()),
        ] {
            for order in ["asc", "desc"] {
                let mut wanted: Vec<&Confirmed> = self.confirmed.iter().collect();
                // Among equals the last in its block is first, whatever the height. Source: api.md 3.
                wanted.sort_by_key(|(height, index, _)| Reverse((*index, *height)));
                wanted.sort_by_key(|(_, _, one)| if order == "asc" { of(one) } else { u64::MAX - of(one) });
                let wanted: Vec<String> = wanted.iter().map(|(_, _, one)| one.id().to_string()).collect();
                assert_eq!(self.ids(&format!("/api/transactions?orderBy={name}:{order}"), 8), wanted, "{name}:{order}");
            }
        }
    }

    fn check_wallets(&self) {
        let rows = self.rows("/api/wallets", 4);
        for row in &rows {
            let wallet: Address = text(&row["address"]).parse().expect("an address");
            let nonce = self.books.nonces.get(&wallet).copied().unwrap_or(0);
            let wanted = [self.books.balance(&wallet), nonce.into(), self.books.locked(&wallet)];
            assert_eq!([&row["balance"], &row["nonce"], &row["lockedBalance"]].map(number), wanted, "{row}");
            let vote = self.books.votes.get(&wallet).map(ToString::to_string);
            assert_eq!(row["vote"].as_str(), vote.as_deref(), "{row}");
        }
        let shown: BTreeSet<String> = rows.iter().map(|row| text(&row["address"])).collect();
        let with_coin = self.books.balances.iter().filter(|(_, balance)| **balance != 0);
        for (wallet, _) in with_coin {
            assert!(shown.contains(&wallet.to_string()), "{wallet} is not shown");
        }
        let balances: Vec<i128> = rows.iter().map(|row| number(&row["balance"])).collect();
        assert!(balances.is_sorted_by(|one, other| one >= other), "richest first: {balances:?}");
        // One list and one order, found in three ways.
        let addresses = |rows: &[Value]| rows.iter().map(|row| text(&row["address"])).collect::<Vec<_>>();
        assert_eq!(addresses(&self.rows("/api/wallets/top", 6)), addresses(&rows));
        let searched = self.rows(&format!("/api/wallets?balance.from={}", i64::MIN + 1), 5);
        assert_eq!(addresses(&searched), addresses(&rows), "equals stand in one order");
    }

    fn check_delegates(&self) {
        let rows = self.rows("/api/delegates", 3);
        assert_eq!(rows.len(), self.books.delegates.len());
        for row in &rows {
            let key: PublicKey = text(&row["publicKey"]).parse().expect("a key");
            let (name, resigned) = &self.books.delegates[&key];
            assert_eq!((&text(&row["username"]), row["isResigned"].as_bool()), (name, Some(*resigned)), "{row}");
            let (blocks, fees, rewards, last) = self.books.forged.get(&key).cloned().unwrap_or_default();
            let forged = &row["forged"];
            let said =
                [&row["blocks"]["produced"], &forged["fees"], &forged["rewards"], &forged["total"], &row["votes"]];
            let wanted = [blocks.into(), fees, rewards, fees + rewards, self.books.weight(&key)];
            assert_eq!(said.map(number), wanted, "{row}");
            if blocks > 0 {
                assert_eq!(text(&row["blocks"]["last"]["id"]), last, "{row}");
            }
            let approval = 100.0 * self.books.weight(&key) as f64 / self.books.supply as f64;
            let shown = row["production"]["approval"].as_f64().expect("a number");
            assert!((shown - approval).abs() < 0.0051, "{approval}: {row}");
            let mut voters: Vec<String> = Vec::new();
            voters.extend(
                self.books.votes.iter().filter(|(_, voted)| **voted == key).map(|(voter, _)| voter.to_string()),
            );
            let found = self.rows(&format!("/api/delegates/{key}/voters"), 2);
            let mut found: Vec<String> = found.iter().map(|row| text(&row["address"])).collect();
            voters.sort();
            found.sort();
            assert_eq!(found, voters, "{name}'s voters");
        }
        let ranked = self.books.ranking.iter().filter(|(key, _)| !self.books.delegates[key].1);
        for (key, _) in ranked {
            let rank = self.books.ranking.iter().position(|(other, _)| other == key).expect("it is there") + 1;
            let shown = get(self.context, &format!("/api/delegates/{key}")).body["data"]["rank"].clone();
            assert_eq!(shown, rank, "{key}");
        }
        let ranks: Vec<u64> = rows.iter().map(|row| row["rank"].as_u64().unwrap_or(u64::MAX)).collect();
        assert!(ranks.is_sorted(), "by rank: {ranks:?}");
    }

    fn check_rounds(&self) {
        let tip = self.links.last().expect("genesis").height().0;
        // The round of the next block has begun with the last block of the one before.
        let running = tip / ROUND + 1;
        for round in 1..=running {
            let answered = get(self.context, &format!("/api/rounds/{round}/delegates"));
            let members =
                answered.body["data"].as_array().unwrap_or_else(|| panic!("round {round}: {}", answered.body));
            let members =
                members.iter().map(|one| (text(&one["publicKey"]).parse().expect("a key"), number(&one["votes"])));
            assert_eq!(members.collect::<BTreeMap<_, _>>(), self.books.rounds[round as usize - 1], "round {round}");
        }
        assert_eq!(get(self.context, &format!("/api/rounds/{}/delegates", running + 1)).status, 404);
    }

    fn check_locks(&self) {
        let tip = self.links.last().expect("genesis");
        let is_expired = |expiration: &Expiration| match expiration {
            Expiration::EpochTime(seconds) => *seconds <= tip.block().header.timestamp.0,
            Expiration::BlockHeight(height) => *height <= tip.height().0,
        };
        let rows = self.rows("/api/locks", 2);
        let shown: BTreeMap<String, (i128, Value, Option<bool>)> = rows
            .iter()
            .map(|row| {
                let said = (number(&row["amount"]), row["recipientId"].clone(), row["isExpired"].as_bool());
                (text(&row["lockId"]), said)
            })
            .collect();
        let open = self.books.locks.iter().map(|(id, (_, recipient, amount, expiration))| {
            (id.to_string(), (*amount, json!(recipient.to_string()), Some(is_expired(expiration))))
        });
        assert_eq!(shown, open.collect());
        for owner in self.books.locks.values().map(|(owner, ..)| owner).collect::<BTreeSet<_>>() {
            let of_owner = self.rows(&format!("/api/wallets/{owner}/locks"), 2);
            let open = self.books.locks.values().filter(|(other, ..)| other == owner).count();
            assert_eq!(of_owner.len(), open, "{owner}");
        }
        for (lock, closing) in &self.books.closed {
            let found = get(self.context, &format!("/api/locks/unlocked?ids={lock}")).body;
            assert_eq!(found["data"][0]["id"], closing.to_string(), "{found}");
            assert_eq!(get(self.context, &format!("/api/locks/{lock}")).status, 404);
        }
        for lock in self.books.locks.keys() {
            let found = get(self.context, &format!("/api/locks/unlocked?ids={lock}")).body;
            assert_eq!(found["meta"]["totalCount"], 0, "{found}");
        }
    }

    fn check_businesses(&self) {
        let rows = self.rows("/api/businesses", 1);
        let shown: BTreeMap<String, (String, bool)> = rows
            .iter()
            .map(|row| (text(&row["address"]), (text(&row["name"]), row["isResigned"].as_bool().unwrap_or(false))))
            .collect();
        let wanted = self.books.businesses.iter().map(|(wallet, said)| (wallet.to_string(), said.clone()));
        assert_eq!(shown, wanted.collect());
        let names: Vec<String> = rows.iter().map(|row| text(&row["name"])).collect();
        assert!(names.is_sorted(), "by name: {names:?}");
        let chains = self.rows("/api/bridgechains", 2);
        let shown: BTreeMap<(String, String), bool> = chains
            .iter()
            .map(|row| {
                let key = (text(&row["address"]), text(&row["genesisHash"]));
                (key, row["isResigned"].as_bool().unwrap_or(false))
            })
            .collect();
        let wanted = self
            .books
            .bridgechains
            .iter()
            .map(|((wallet, hash), closed)| ((wallet.to_string(), hash.clone()), *closed));
        assert_eq!(shown, wanted.collect());
    }

    fn check_pool(&self, pool: &[Arc<SignedTransaction>]) {
        let mut shown = self.ids("/api/transactions/unconfirmed", 3);
        let mut wanted: Vec<String> = pool.iter().map(|one| one.id().to_string()).collect();
        shown.sort();
        wanted.sort();
        assert_eq!(shown, wanted);
        for one in pool {
            let id = one.id();
            assert_eq!(get(self.context, &format!("/api/transactions/unconfirmed/{id}")).status, 200, "{id}");
            assert_eq!(get(self.context, &format!("/api/transactions/{id}")).status, 404, "{id}");
        }
    }

    /// A fee below the least that the node passes on does not count. Source: api.md 7.
    fn check_fees(&self, now: u32) {
        let configuration = get(self.context, "/api/node/configuration").body;
        let passed_on = number(&configuration["data"]["transactionPool"]["dynamicFees"]["minFeeBroadcast"]);
        for days in [1, 2] {
            let body = get(self.context, &format!("/api/node/fees?days={days}")).body;
            let since = i64::from(now) - days * 86_400;
            let rows = body["data"].as_array().expect("a list");
            for kind in Kind::ALL {
                let recent = self.confirmed.iter().filter(|(height, _, one)| {
                    let made = self.links[*height as usize - 1].block().header.timestamp.0;
                    one.kind() == kind && i64::from(made) >= since
                });
                let fees = recent.map(|(_, _, one)| i128::from(one.fee().value()));
                let fees: Vec<i128> = fees.filter(|fee| *fee >= passed_on).collect();
                let shown = rows.iter().find(|row| row["key"] == kind.key() || row["type"] == kind.key());
                let said = shown.map(|row| (number(&row["min"]), number(&row["max"]), number(&row["sum"])));
                let least = |fees: &[i128]| fees.iter().copied().min();
                let wanted = least(&fees)
                    .map(|min| (min, fees.iter().copied().max().expect("there is one"), fees.iter().sum::<i128>()));
                assert_eq!(said, wanted, "{kind:?} in {days} days: {body}");
            }
        }
    }

    fn check_whole(&self) {
        let whole = get(self.context, "/api/blockchain").body["data"].clone();
        let tip = self.links.last().expect("genesis");
        assert_eq!(whole["block"]["id"], tip.id().to_string());
        assert_eq!(whole["block"]["height"], tip.height().0);
        assert_eq!(number(&whole["supply"]), self.books.supply);
    }
}

/// Returns true if a filter by recipient alone finds it. Source: api.md 4.2.
fn is_received(one: &SignedTransaction, wallet: &Address) -> bool {
    match one.asset() {
        Asset::Transfer { recipient, .. } | Asset::HtlcLock { recipient, .. } => recipient == wallet,
        Asset::MultiPayment { payments } => {
            one.sender_address() == *wallet || payments.iter().any(|payment| payment.recipient == *wallet)
        }
        _ => one.sender_address() == *wallet,
    }
}

/// A number, or a text of one; 0 if it is not shown.
fn number(value: &Value) -> i128 {
    match value {
        Value::Null => 0,
        Value::String(text) => text.parse().expect("a number"),
        value => value.to_string().parse().expect("a whole number"),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}")).to_owned()
}
