//! Nobody reads half a block: while the chain grows and is rolled back, every answer is of one head.

use crate::support::get;
use dposlab::{
    actors::{Event, NodeId, RollbackCause, SimTime},
    api::{ApiContext, View},
    ledger::{BlockTree, Link},
    protocol::{
        Address, Arktoshi, Block, BlockDraft, Nonce, SignedTransaction, Slot, Transaction, crypto::CryptoMode::Real,
    },
    scenario::{Testnet, testnet::rules_for},
    sim::{LiveHandle, Observer, SeedTree},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// Blocks of each branch.
const LENGTH: u32 = 12;
/// The number of times that the chain goes back and up another branch.
const TURNS: usize = 150;
const READERS: usize = 3;

/// A network whose blocks are made by hand.
pub struct Forge {
    pub testnet: Testnet,
    pub tree: Arc<BlockTree>,
}

impl Forge {
    /// Puts a block with these transactions on top of another one, so many slots later.
    pub fn block(&self, parent: &Arc<Link>, later: u32, transactions: Vec<Arc<SignedTransaction>>) -> Arc<Link> {
        let (slots, milestones) = (self.tree.slots(), &self.tree.config().milestones);
        let slot = Slot(slots.slot(parent.block().header.timestamp).0 + later);
        let owner = self.tree.applied(parent).state.round().owner(slot).expect("each slot has an owner").public_key;
        let keys = self.testnet.delegates.iter().map(|delegate| &delegate.keys).find(|keys| *keys.public() == owner);
        let draft = BlockDraft {
            version: milestones.at(parent.height().next()).block.version,
            timestamp: slots.start(slot),
            height: parent.height().next(),
            previous: Some(parent.id()),
            reward: milestones.at(parent.height().next()).reward,
            transactions,
        };
        let block = Block::forge(draft, keys.expect("the owner is one of them"), milestones);
        self.tree.extend(parent, &Arc::new(block)).expect("a block that holds")
    }

    /// Two transfers in every block, of amounts and to wallets that no other branch has.
    fn branch(&self, from: &Arc<Link>, branch: u8) -> Vec<Arc<Link>> {
        let mut links = vec![from.clone()];
        for number in 1..=LENGTH {
            let transfers = [0, 1].map(|account| {
                let amount = 1_000 * u64::from(number) + u64::from(branch);
                let transfer = Transaction::transfer(wallet(branch, number as u8 % 4), amount_of(amount));
                let transfer = transfer.nonce(Nonce(number.into())).fee(amount_of(10_000_000));
                Arc::new(transfer.sign(&self.testnet.accounts[account].keys))
            });
            let top = links.last().expect("it begins with one");
            // Another slot for the first block, so that no branch begins as another one does.
            let later = if number == 1 { 1 + u32::from(branch) } else { 1 };
            links.push(self.block(top, later, transfers.into()));
        }
        links
    }
}

fn amount_of(value: u64) -> Arktoshi {
    Arktoshi::new(value).expect("far below all there is")
}

fn wallet(branch: u8, number: u8) -> Address {
    let mut bytes = [23; 21];
    (bytes[1], bytes[2]) = (branch, number);
    Address::from_bytes(bytes)
}

fn rows(body: &Value) -> &Vec<Value> {
    body["data"].as_array().expect("a list")
}

/// The sums that each answer must come to, whatever the head.
struct Sums {
    context: ApiContext,
    /// Transactions on the chain up to each block.
    transactions: BTreeMap<String, u64>,
    genesis_amount: i128,
}

impl Sums {
    fn check_wallets(&self) {
        let body = get(&self.context, "/api/wallets?limit=100").body;
        let amounts: Vec<i128> =
            rows(&body).iter().map(|row| row["balance"].as_str().expect("a text").parse().expect("a number")).collect();
        assert_eq!(body["meta"]["totalCount"], amounts.len() as u64, "all of them are on one page");
        // No block has a reward here: what genesis gave is what there is, and its sender owes all of it.
        assert_eq!(amounts.iter().sum::<i128>(), 0, "{body}");
        let held: i128 = amounts.iter().filter(|amount| **amount > 0).sum();
        assert_eq!(held, self.genesis_amount, "{body}");
        let nonces: u64 = rows(&body)
            .iter()
            .map(|row| row["nonce"].as_str().expect("a text").parse::<u64>().expect("a number"))
            .sum();
        assert!(self.transactions.values().any(|count| *count == nonces), "{nonces} is sent on no chain");
    }

    fn check_blocks(&self) {
        let body = get(&self.context, "/api/blocks?limit=100").body;
        let rows = rows(&body);
        assert_eq!(body["meta"]["totalCount"], rows[0]["height"], "the highest block is the newest");
        for (index, pair) in rows.windows(2).enumerate() {
            assert_eq!(pair[0]["previous"], pair[1]["id"], "every block stands on the next one");
            assert_eq!(pair[0]["confirmations"], index as u64);
        }
        let sum: u64 = rows.iter().map(|row| row["transactions"].as_u64().expect("a number")).sum();
        assert_eq!(sum, self.transactions[rows[0]["id"].as_str().expect("a text")]);
    }

    /// Every block above genesis has transactions, so the newest one tells the head.
    fn check_transactions(&self, target: &str) {
        let body = get(&self.context, target).body;
        let rows = rows(&body);
        let total = self.transactions[rows[0]["blockId"].as_str().expect("a text")];
        assert_eq!(body["meta"]["totalCount"], total, "{target}");
        assert_eq!(rows.len() as u64, total.min(100));
        let mut blocks: Vec<_> =
            rows.iter().map(|row| (row["confirmations"].as_u64(), row["blockId"].as_str())).collect();
        assert!(blocks.is_sorted(), "newest first");
        blocks.dedup();
        let confirmations: Vec<u64> = blocks.iter().map(|(number, _)| number.expect("a number")).collect();
        assert!(confirmations.windows(2).all(|pair| pair[1] > pair[0]), "one block for each number: {blocks:?}");
    }

    /// A transfer names its recipient's wallet, which is there and holds what the transfers on the same chain sum up to.
    fn check_received(&self, address: &Address) {
        let body = get(&self.context, &format!("/api/wallets/{address}/transactions/received?limit=100"));
        if body.status == 404 {
            return;
        }
        let rows = rows(&body.body);
        assert_eq!(body.body["meta"]["totalCount"], rows.len() as u64);
        assert!(rows.iter().all(|row| row["recipient"] == address.to_string()));
    }
}

#[test]
fn no_answer_is_torn_while_the_chain_forks() {
    let testnet = Testnet::generate(SeedTree::new(9), 5, Real);
    let tree = testnet.tree(rules_for(5)).expect("as many delegates as it wants");
    let forge = Forge { testnet, tree: tree.clone() };
    // Version 2 is allowed from here on; the block has no transactions, so the view starts one higher.
    let second = forge.block(tree.genesis(), 1, Vec::new());
    let transfer = Transaction::transfer(wallet(9, 9), amount_of(5)).nonce(Nonce(1)).fee(amount_of(10_000_000));
    let base = forge.block(&second, 1, vec![Arc::new(transfer.sign(&forge.testnet.accounts[2].keys))]);
    let branches: Vec<Vec<Arc<Link>>> = (0..3).map(|number| forge.branch(&base, number)).collect();
    let mut view = View::new(NodeId(0), tree.clone(), base.clone(), SimTime::default());
    let all = branches.iter().flatten();
    let sums = Sums {
        context: ApiContext::new(view.clone(), LiveHandle::ended()),
        transactions: all.map(|link| (link.id().to_string(), link.transactions())).collect(),
        genesis_amount: tree.genesis().block().header.total_amount.value().into(),
    };
    let (is_over, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                // Once more after the last change, so that every reader has read.
                let mut is_last = false;
                while !is_last {
                    is_last = is_over.load(Ordering::Relaxed);
                    sums.check_wallets();
                    sums.check_blocks();
                    sums.check_transactions("/api/transactions?limit=100");
                    sums.check_transactions("/api/transactions?limit=100&fee.from=0");
                    sums.check_received(&wallet(1, 1));
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let now = SimTime::default();
        for turn in 0..TURNS {
            let branch = &branches[turn % branches.len()];
            let height = 1 + turn % LENGTH as usize;
            for link in &branch[1..=height] {
                view.observe(now, NodeId(0), &Event::BlockApplied(link.clone()));
            }
            let (from, to) = (branch[height].clone(), branch[turn % height].clone());
            let cause = RollbackCause::Forked;
            view.observe(now, NodeId(0), &Event::RolledBack { from, to: to.clone(), cause });
            let event = Event::RolledBack { from: to, to: base.clone(), cause };
            view.observe(now, NodeId(0), &event);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(reads.into_inner() >= READERS, "every reader has read at least once");
    assert_eq!(get(&sums.context, "/api/blockchain").body["data"]["block"]["id"], base.id().to_string());
    assert_eq!(get(&sums.context, &format!("/api/wallets/{}", wallet(1, 1))).status, 404, "rolled back for good");
}
