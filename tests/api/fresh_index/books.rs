//! The sums over the blocks of a chain, counted the slow way: nothing here uses the ledger's rules or its state.

use super::history::ROUND;
use dposlab::{
    ledger::Link,
    protocol::{Address, Asset, Kind, PublicKey, SignedTransaction, TransactionId, Vote, transaction::Expiration},
};
use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

/// The network's byte of addresses.
const NETWORK: u8 = 23;

/// The sums over the blocks of a chain.
#[derive(Default)]
pub struct Books {
    pub balances: BTreeMap<Address, i128>,
    pub nonces: BTreeMap<Address, u64>,
    /// Voters and whom they vote for.
    pub votes: BTreeMap<Address, PublicKey>,
    /// Open locks: owner, recipient, amount, expiration.
    pub locks: BTreeMap<TransactionId, (Address, Address, i128, Expiration)>,
    /// The transactions that closed the others.
    pub closed: BTreeMap<TransactionId, TransactionId>,
    /// Names of delegates, and whether they have resigned.
    pub delegates: BTreeMap<PublicKey, (String, bool)>,
    /// Blocks, fees and rewards of each forger, and its last block.
    pub forged: BTreeMap<PublicKey, (u64, i128, i128, String)>,
    /// Names of businesses, and whether they are closed.
    pub businesses: BTreeMap<Address, (String, bool)>,
    /// Genesis hashes of their bridgechains, and whether they are closed.
    pub bridgechains: BTreeMap<(Address, String), bool>,
    pub supply: i128,
    /// The delegates in the order of the ranking at the last end of a round, each with its weight.
    pub ranking: Vec<(PublicKey, i128)>,
    /// The active delegates of each round up to the running one, from the first.
    pub rounds: Vec<BTreeMap<PublicKey, i128>>,
}

impl Books {
    /// `members` delegates are active at a time.
    pub fn of(links: &[Arc<Link>], members: usize) -> Self {
        let mut books = Self::default();
        for link in links {
            let block = link.block();
            let (header, height) = (&block.header, link.height().0);
            for transaction in &block.transactions {
                books.book(transaction);
            }
            let (fees, reward) = (i128::from(header.total_fee.value()), i128::from(header.reward.value()));
            books.supply += reward;
            if height == 1 {
                books.supply += i128::from(header.total_amount.value());
            } else {
                *books.balances.entry(header.generator.address(NETWORK)).or_default() += fees + reward;
                let (blocks, all_fees, rewards, last) = books.forged.entry(header.generator).or_default();
                (*blocks, *all_fees, *rewards) = (*blocks + 1, *all_fees + fees, *rewards + reward);
                *last = link.id().to_string();
            }
            // The next block begins a round.
            if height == 1 || height.is_multiple_of(ROUND) {
                books.rank(members);
            }
        }
        books
    }

    fn book(&mut self, transaction: &SignedTransaction) {
        let (sender, key) = (transaction.sender_address(), *transaction.sender());
        *self.nonces.entry(sender).or_default() += 1;
        *self.balances.entry(sender).or_default() -= i128::from(transaction.fee().value());
        let mut pay = |from: Option<Address>, to: Option<Address>, amount: i128| {
            from.into_iter().for_each(|from| *self.balances.entry(from).or_default() -= amount);
            to.into_iter().for_each(|to| *self.balances.entry(to).or_default() += amount);
        };
        match transaction.asset() {
            Asset::Transfer { amount, recipient, .. } => pay(Some(sender), Some(*recipient), amount.value().into()),
            Asset::MultiPayment { payments } => {
                payments.iter().for_each(|one| pay(Some(sender), Some(one.recipient), one.amount.value().into()));
            }
            Asset::HtlcLock { amount, recipient, expiration, .. } => {
                pay(Some(sender), None, amount.value().into());
                let lock = (sender, *recipient, amount.value().into(), *expiration);
                self.locks.insert(transaction.id(), lock);
            }
            Asset::HtlcClaim { lock, .. } => {
                let (_, recipient, amount, _) = self.locks.remove(lock).expect("it was open");
                pay(None, Some(recipient), amount);
                self.closed.insert(*lock, transaction.id());
            }
            Asset::HtlcRefund { lock } => {
                let (owner, _, amount, _) = self.locks.remove(lock).expect("it was open");
                pay(None, Some(owner), amount);
                self.closed.insert(*lock, transaction.id());
            }
            Asset::Vote(Vote::For(delegate)) => drop(self.votes.insert(sender, *delegate)),
            Asset::Vote(Vote::Against(_)) => drop(self.votes.remove(&sender)),
            Asset::DelegateRegistration { username } => {
                self.delegates.insert(key, (username.as_str().to_owned(), false));
            }
            Asset::DelegateResignation => self.delegates.get_mut(&key).expect("it is one").1 = true,
            _ => self.book_business(transaction, sender),
        }
    }

    /// By the JSON of the transaction, as clients read it.
    fn book_business(&mut self, transaction: &SignedTransaction, sender: Address) {
        let asset = transaction.asset().to_json().unwrap_or_default();
        let name = |member: &str| asset[member]["name"].as_str().map(str::to_owned);
        let hash = |member: &str, key: &str| asset[member][key].as_str().expect("a hash").to_owned();
        match transaction.kind() {
            Kind::BusinessRegistration => {
                self.businesses.insert(sender, (name("businessRegistration").expect("a name"), false));
            }
            Kind::BusinessUpdate => {
                let business = self.businesses.get_mut(&sender).expect("it has one");
                business.0 = name("businessUpdate").unwrap_or(business.0.clone());
            }
            Kind::BusinessResignation => self.businesses.get_mut(&sender).expect("it has one").1 = true,
            Kind::BridgechainRegistration => {
                self.bridgechains.insert((sender, hash("bridgechainRegistration", "genesisHash")), false);
            }
            Kind::BridgechainResignation => {
                self.bridgechains.insert((sender, hash("bridgechainResignation", "bridgechainId")), true);
            }
            _ => {}
        }
    }

    /// The coin of a delegate's voters, in their wallets and in open locks.
    pub fn weight(&self, delegate: &PublicKey) -> i128 {
        let voters = self.votes.iter().filter(|(_, voted)| *voted == delegate).map(|(voter, _)| voter);
        voters.map(|voter| self.balance(voter) + self.locked(voter)).sum()
    }

    pub fn balance(&self, wallet: &Address) -> i128 {
        self.balances.get(wallet).copied().unwrap_or(0)
    }

    pub fn locked(&self, wallet: &Address) -> i128 {
        self.locks.values().filter(|(owner, ..)| owner == wallet).map(|(_, _, amount, _)| amount).sum()
    }

    fn rank(&mut self, members: usize) {
        let live = self.delegates.iter().filter(|(_, (_, resigned))| !resigned).map(|(key, _)| *key);
        self.ranking = live.map(|key| (key, self.weight(&key))).collect();
        self.ranking.sort_by_key(|(key, weight)| (Reverse(*weight), *key));
        self.rounds.push(self.ranking.iter().take(members).copied().collect());
    }
}
