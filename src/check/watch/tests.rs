//! Rules of conduct that a watch judges by what it remembers.

use super::*;
use crate::{
    ledger::{
        Rules,
        rules::{FinalityRule, PoolRules},
    },
    protocol::{Arktoshi, BlockDraft, Nonce, Transaction, crypto::CryptoMode},
    scenario::Testnet,
};

const NODE: NodeId = NodeId(0);

/// A watch over one node on genesis.
struct WatchedNode {
    testnet: Testnet,
    tree: Arc<BlockTree>,
    watch: Watch,
    now: SimTime,
}

impl WatchedNode {
    fn new(change: impl FnOnce(&mut Rules)) -> Self {
        let testnet = Testnet::generate(crate::sim::SeedTree::new(1), 1, CryptoMode::Modelled);
        let mut rules = Rules::corrected();
        change(&mut rules);
        let tree = testnet.tree(rules).expect("it has its delegate");
        let watch = Watch::new(tree.clone(), tree.genesis(), 1, &BTreeSet::new(), &BTreeSet::new());
        let now = SimTime::from_micros(80_000_000);
        Self { testnet, tree, watch, now }
    }

    fn hears(&mut self, event: Event) {
        self.watch.observe(self.now, NODE, &event);
    }

    fn breaks(&self, conduct: &Conduct) -> bool {
        self.watch.seen().findings().iter().any(|finding| finding.invariant == conduct.name)
    }

    /// The delegate makes a block of a height, which names the height up to which it has forged.
    fn forges(&mut self, height: u32, forged_before: u32) {
        let milestones = &self.tree.config().milestones;
        let draft = BlockDraft {
            version: 0,
            timestamp: self.tree.slots().start(Slot(100 + height)),
            height: Height(height),
            previous: Some(self.tree.genesis().id()),
            reward: milestones.at(Height(height)).reward,
            transactions: Vec::new(),
        };
        let keys = &self.testnet.delegates[0].keys;
        let block = Block::forge_after(draft, Height(forged_before), keys, milestones);
        self.hears(Event::BlockForged(Arc::new(block)));
    }

    /// Transfers of one account with these nonces.
    fn transfers(&self, nonces: std::ops::RangeInclusive<u64>) -> Vec<Arc<SignedTransaction>> {
        let account = &self.testnet.accounts[0];
        let transfer = |nonce| {
            let transfer = Transaction::transfer(account.keys.public().address(0x17), Arktoshi::coins(1));
            Arc::new(transfer.network(0x17).nonce(Nonce(nonce)).sign(&account.keys))
        };
        nonces.map(transfer).collect()
    }
}

#[test]
fn a_delegate_names_the_greatest_height_at_which_it_forged() {
    // The delegate leaves its chain at height 9, forges on a lower one, and does not forget the height there.
    let breaks = |rule: FinalityRule, blocks: &[(u32, u32)]| {
        let mut watched = WatchedNode::new(|rules| rules.ledger.finality = rule);
        blocks.iter().for_each(|(height, before)| watched.forges(*height, *before));
        watched.breaks(&conduct::DISCLOSED)
    };
    let lisk = FinalityRule::LiskBft;
    assert!(!breaks(lisk, &[(4, 0), (9, 4), (6, 9), (8, 9), (12, 9), (14, 12)]));
    assert!(breaks(lisk, &[(4, 0), (9, 4), (6, 9), (8, 6)]), "it names the block before, and not the highest one");
    assert!(breaks(lisk, &[(4, 0), (9, 0)]), "it forgot");
    assert!(breaks(lisk, &[(4, 0), (9, 7)]), "it names a block that it did not make");
    assert!(!breaks(FinalityRule::Solidified, &[(4, 0), (9, 0)]), "the rule does not ask");
}

/// A registration that a rollback brought back may stand beside another one, and no pool adds a second one itself.
#[test]
fn a_pool_adds_no_second_registration_of_a_sender() {
    let breaks = |rollback_empties_pool: bool, requests: &[&[usize]]| {
        let mut watched = WatchedNode::new(|rules| rules.pool.rollback_empties_pool = rollback_empties_pool);
        let account = &watched.testnet.accounts[0];
        let register = |nonce: u64| {
            let builder = Transaction::delegate_registration(format!("delegate_{nonce}"));
            Arc::new(builder.network(0x17).nonce(Nonce(nonce)).sign(&account.keys))
        };
        let all: Vec<_> = (1..=2).map(register).collect();
        for request in requests {
            watched.hears(Event::PoolAdded(request.iter().map(|one| all[*one].clone()).collect()));
        }
        watched.breaks(&conduct::POOL_ONE_OF_A_KIND)
    };
    for rollback_empties_pool in [true, false] {
        assert!(!breaks(rollback_empties_pool, &[&[0]]));
        assert!(breaks(rollback_empties_pool, &[&[0], &[1]]));
        assert!(breaks(rollback_empties_pool, &[&[0, 1]]));
    }
}

#[test]
fn a_pool_holds_no_more_of_one_sender_than_its_limit() {
    let breaks = |checks_precede_adding: bool, limit: usize, requests: &[std::ops::RangeInclusive<u64>]| {
        let mut watched = WatchedNode::new(|rules| {
            let pool = rules.pool.clone();
            rules.pool = PoolRules { max_transactions_per_sender: limit, checks_precede_adding, ..pool };
        });
        for nonces in requests {
            let added = watched.transfers(nonces.clone());
            watched.hears(Event::PoolAdded(added));
        }
        watched.breaks(&conduct::POOL_SIZE)
    };
    assert!(!breaks(true, 3, &[1..=1, 2..=2, 3..=3]));
    assert!(breaks(true, 3, &[1..=1, 2..=2, 3..=3, 4..=4]), "one too many");
    assert!(!breaks(true, 3, &[1..=2, 3..=6]), "all of a request is checked before any of it is added");
    assert!(breaks(true, 3, &[1..=3, 4..=6]), "the limit was reached before the request");
    assert!(breaks(false, 3, &[1..=2, 3..=4]), "each is checked behind the one before");
}

/// One delegate with a node is enough for a chain to grow.
#[test]
fn a_chain_has_forgers_if_a_node_forges_for_one_of_its_delegates() {
    let testnet = Testnet::generate(crate::sim::SeedTree::new(1), 3, CryptoMode::Modelled);
    let tree = testnet.tree(Rules::corrected()).expect("it has its delegates");
    let watch = Watch::new(tree.clone(), tree.genesis(), 2, &BTreeSet::new(), &BTreeSet::new());
    assert!(!watch.seen().has_forgers(tree.genesis()));
    watch.seen().keys[1] = Some(*testnet.accounts[0].keys.public());
    assert!(!watch.seen().has_forgers(tree.genesis()), "an account is no delegate");
    watch.seen().keys[1] = Some(*testnet.delegates[2].keys.public());
    assert!(watch.seen().has_forgers(tree.genesis()));
}
