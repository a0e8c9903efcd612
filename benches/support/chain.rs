//! A generated network and a chain on it, made block by block without actors.
#![allow(dead_code, reason = "each bench uses a part of it")]

use dposlab::{
    ledger::{BlockTree, Link, Rules},
    protocol::{
        Address, Arktoshi, Block, BlockDraft, KeyPair, Milestones, NetworkConfig, Nonce, PublicKey, SignedTransaction,
        Slot, Transaction, Vote,
        crypto::{CryptoMode::Real, sha256},
        genesis::GenesisPlan,
        network::Network,
    },
};
use std::{collections::BTreeMap, sync::Arc};

/// A network with so many delegates and funded wallets.
pub struct Bench {
    pub config: Arc<NetworkConfig>,
    pub rules: Arc<Rules>,
    wallets: Vec<KeyPair>,
    delegates: Vec<KeyPair>,
    by_key: BTreeMap<PublicKey, KeyPair>,
}

/// A chain on it.
pub struct Chain<'a> {
    bench: &'a Bench,
    pub tree: Arc<BlockTree>,
    pub tip: Arc<Link>,
    nonces: BTreeMap<usize, u64>,
}

impl Bench {
    pub fn new(delegates: u32, wallets: usize) -> Self {
        Self::with_rules(delegates, wallets, Rules::reference())
    }

    pub fn with_rules(delegates: u32, wallets: usize, rules: Rules) -> Self {
        let network = Network::testnet();
        let mut list: Vec<_> = Milestones::testnet().all().iter().map(|milestone| milestone.json.clone()).collect();
        for milestone in &mut list {
            milestone["activeDelegates"] = delegates.into();
        }
        let keys = |kind: &str, count: usize| -> Vec<KeyPair> {
            (0..count).map(|number| KeyPair::from_passphrase(&format!("bench {kind} {number}"), Real)).collect()
        };
        let (wallets, delegates) = (keys("wallet", wallets), keys("delegate", delegates as usize));
        let plan = GenesisPlan {
            milestones: Milestones::from_json(&list.into()).unwrap(),
            premine: KeyPair::from_passphrase("bench premine", Real),
            delegates: delegates.iter().enumerate().map(|(n, keys)| (format!("bench_{n}"), keys.clone())).collect(),
            total: Arktoshi::coins(125_000_000),
            accounts: wallets
                .iter()
                .map(|keys| (keys.public().address(network.pub_key_hash), Arktoshi::coins(10_000)))
                .collect(),
            network,
        };
        let config = Arc::new(NetworkConfig::from_plan(plan).unwrap());
        let by_key = delegates.iter().map(|keys| (*keys.public(), keys.clone())).collect();
        Self { config, rules: Arc::new(rules), wallets, delegates, by_key }
    }

    pub fn keys(&self, wallet: usize) -> &KeyPair {
        &self.wallets[wallet]
    }

    pub fn address(&self, wallet: usize) -> Address {
        self.wallets[wallet].public().address(23)
    }

    /// The first transaction of a wallet: its vote for one of the delegates.
    pub fn vote(&self, wallet: usize) -> Arc<SignedTransaction> {
        let delegate = *self.delegates[wallet % self.delegates.len()].public();
        Arc::new(Transaction::vote(Vote::For(delegate)).nonce(Nonce(1)).sign(self.keys(wallet)))
    }

    /// A fresh tree on genesis.
    pub fn start(&self) -> Chain<'_> {
        let tree = Arc::new(BlockTree::new(self.config.clone(), self.rules.clone()).unwrap());
        Chain { bench: self, tip: tree.genesis().clone(), tree, nonces: BTreeMap::new() }
    }

    /// A fresh tree with these blocks.
    pub fn replay(&self, blocks: &[Arc<Block>]) -> Chain<'_> {
        let mut chain = self.start();
        chain.extend(blocks);
        chain
    }
}

impl Chain<'_> {
    /// Makes the next block, in the next slot, and takes it in.
    pub fn forge(&mut self, transactions: Vec<Arc<SignedTransaction>>) -> Arc<Block> {
        let block = self.make(transactions);
        self.extend(std::slice::from_ref(&block));
        block
    }

    /// Makes the next block, in the next slot, and looks at its signature.
    pub fn make(&self, transactions: Vec<Arc<SignedTransaction>>) -> Arc<Block> {
        let slots = self.tree.slots();
        let slot = Slot(slots.slot(self.tip.block().header.timestamp).0 + 1);
        let owner = self.tree.applied(&self.tip).state.round().owner(slot).expect("each slot has an owner").public_key;
        let milestones = &self.tree.config().milestones;
        let draft = BlockDraft {
            timestamp: slots.start(slot),
            height: self.tip.height().next(),
            previous: Some(self.tip.id()),
            reward: milestones.at(self.tip.height().next()).reward,
            version: 0,
            transactions,
        };
        let block = Arc::new(Block::forge(draft, &self.bench.by_key[&owner], milestones));
        assert!(block.check_content(&self.tree.config().block_context()).is_empty());
        block
    }

    pub fn extend(&mut self, blocks: &[Arc<Block>]) {
        for block in blocks {
            self.tip = self.tree.extend(&self.tip, block).unwrap();
        }
    }

    /// The nonce of a wallet's next transaction, counting those asked for before.
    pub fn next_nonce(&mut self, wallet: usize) -> u64 {
        let known = self.tree.applied(&self.tip).state.wallet(&self.bench.address(wallet)).map_or(0, |w| w.nonce.0);
        let nonce = self.nonces.entry(wallet).or_insert(known);
        *nonce += 1;
        *nonce
    }

    /// Of the tip and of every wallet.
    pub fn digest(&self) -> String {
        let mut bytes = self.tip.id().to_string().into_bytes();
        for wallet in self.tree.applied(&self.tip).state.wallets() {
            bytes.extend(wallet.address.as_bytes());
            bytes.extend(wallet.balance.0.to_le_bytes());
            bytes.extend(wallet.nonce.0.to_le_bytes());
            if let Some(delegate) = &wallet.delegate {
                bytes.extend(delegate.vote_balance.0.to_le_bytes());
                bytes.extend(delegate.produced_blocks.to_le_bytes());
            }
        }
        hex::encode(&sha256(&bytes)[..8])
    }

    /// Bytes of all transactions of the chain.
    pub fn bytes(&self) -> usize {
        let links = std::iter::successors(Some(self.tip.clone()), |link| link.parent());
        let bytes = |link: &Link| link.block().transactions.iter().map(|one| one.bytes().len()).sum::<usize>();
        links.map(|link| bytes(&link)).sum()
    }
}
