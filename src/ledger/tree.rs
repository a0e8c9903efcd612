//! The block tree: every block any node accepted, each with its state, computed once per process.
//!
//! To put a block on top of another (`BlockTree::extend`), in the order of consensus.md 3.3:
//!
//! 1. A block that has followed this parent before is returned from memory.
//! 2. A listed exception only has to be the next block.
//! 3. Any other is verified by itself, multisignature transactions by the wallets before it; then one version, nonces
//!    without gaps, chaining, the slot's owner, and no transaction that is on this chain.
//! 4. Applying it to the parent's state gives its own (`state.rs`).
//! 5. The new link points to its parent and, by a jump, to an ancestor farther back, so that the block at any height of any
//!    fork is found in logarithmic time.
//! 6. The states of the newest 128 blocks of a chain stay in memory, 1,024 in all. The states below seams, where settled blocks may
//!    end, stay for good. A missing state is computed again from the nearest below (`reapplication.rs`). After a start in a
//!    folder, most states below the newest seam are missing.
//! 7. Every thousandth block is a seam. No jump but a seam's goes below one, so a chain that has settled (`settled_chain.rs`) is
//!    cut only at a seam: the pointer below a seam can be replaced, the pointer below another block never is.
//!
//! ```text
//!   genesis ◄── 2 ◄── 3 ◄── 4      a node's chain is an Arc<Link>: here two nodes, on 4 and on 4',
//!                     ▲            a fork is two pointers, a rollback moves one of them back
//!                     └──── 4'
//! ```
//!
//! ```text
//!   settled, on disk ◄─┤ seam ◄── · ◄── · ◄── seam ◄── · ◄── · ◄── tip      BlockTree::settle moves the cut to a later seam
//! ```
//!
//! All nodes with the same rules share one tree; a node with deviant rules has its own. Every memoised value is a function of the block
//! alone, so it does not matter which node asks first.

mod link;
mod reapplication;
mod settling;

pub use link::Link;
#[cfg(feature = "cli")]
pub(crate) use reapplication::ReapplyError;

use self::link::{Below, is_seam};
use super::{
    apply::{Look, Terms},
    base::Base,
    round::RoundSchedule,
    rules::Rules,
    settled_chain::{SettledChain, read},
    state::{Applied, BlockRejected, Notable, State},
};
use crate::protocol::{
    Asset, Block, BlockError, BlockId, Height, Milestone, NetworkConfig, SignedTransaction, Slot, TransactionContext,
    TransactionId, crypto::CryptoMode, hashing::IdHash, slots::Slots, transaction::Version,
};
use arc_swap::ArcSwapOption;
use dashmap::DashMap;
use indexmap::IndexSet;
use smallvec::SmallVec;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, OnceLock, Weak, atomic::AtomicU32},
};

/// Blocks below the newest whose states stay in memory: more than the reference ever rolls back at random (102).
const STATES_KEPT: u32 = 128;
/// The number of states that the tree keeps for all forks together, the most recently used ones. States of abandoned forks are among
/// the first to go.
pub(crate) const STATES_KEPT_IN_ALL: usize = 1_024;
/// The distance between seams, in blocks. The tree keeps the state below a seam once it is computed, which limits the work to recompute
/// an old state.
pub(crate) const SPAN: u32 = 1_000;

/// All blocks by id, shared by the nodes of one network.
pub struct BlockTree {
    config: Arc<NetworkConfig>,
    rules: Arc<Rules>,
    schedule: RoundSchedule,
    slots: Slots,
    links: DashMap<BlockId, Arc<Link>, IdHash>,
    /// The blocks that hold a transaction, one for each fork it is on.
    transactions: DashMap<TransactionId, SmallVec<[Arc<Link>; 2]>, IdHash>,
    genesis: Arc<Link>,
    /// The distance between seams, in blocks.
    span: u32,
    /// The blocks that have settled, if any ever do. They are in neither of the maps.
    settled: ArcSwapOption<Arc<dyn SettledChain>>,
    cut: AtomicU32,
    /// The state after the block at the cut; `None` where nothing has settled, or the run went back.
    base: ArcSwapOption<Base>,
    /// Blocks whose states are in memory, in the order in which they were computed.
    with_state: Mutex<VecDeque<Weak<Link>>>,
}

impl BlockTree {
    /// The tree of a network, with its genesis block.
    ///
    /// # Errors
    /// The genesis block registers fewer delegates than the first milestone wants.
    pub fn new(config: Arc<NetworkConfig>, rules: Arc<Rules>) -> Result<Self, BlockRejected> {
        Self::with_span(config, rules, SPAN)
    }

    /// [`BlockTree::new`] with a seam every `span` blocks, in place of every 1,000.
    ///
    /// # Errors
    /// As [`BlockTree::new`].
    ///
    /// # Panics
    /// `span` is 0.
    pub fn with_span(config: Arc<NetworkConfig>, rules: Arc<Rules>, span: u32) -> Result<Self, BlockRejected> {
        assert!(span > 0, "a span has blocks");
        let schedule = RoundSchedule::new(&config.milestones, rules.ledger.slots_a_turn);
        let state = State::genesis(&config, &schedule, &rules.ledger)?;
        let block = Arc::new(config.genesis.block.clone());
        let genesis = Arc::new(Link {
            transactions: block.transactions.len() as u64,
            height: block.header.height,
            block,
            below: Below::Nothing,
            applied: ArcSwapOption::from_pointee(Applied { state, senders: IndexSet::default() }),
            notable: None,
            child: OnceLock::new(),
        });
        let tree = Self {
            slots: config.slots(),
            config,
            rules,
            schedule,
            links: DashMap::default(),
            transactions: DashMap::default(),
            genesis: genesis.clone(),
            span,
            settled: ArcSwapOption::empty(),
            cut: AtomicU32::new(0),
            base: ArcSwapOption::empty(),
            with_state: Mutex::default(),
        };
        tree.insert(&genesis);
        Ok(tree)
    }

    /// The network.
    pub fn config(&self) -> &Arc<NetworkConfig> {
        &self.config
    }

    /// The rules its nodes follow.
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// Slot arithmetic.
    pub fn slots(&self) -> Slots {
        self.slots
    }

    /// The map from heights to rounds.
    pub fn schedule(&self) -> &RoundSchedule {
        &self.schedule
    }

    /// The genesis block.
    pub fn genesis(&self) -> &Arc<Link> {
        &self.genesis
    }

    /// A block by id, whichever fork it is on. Reads a settled block from its store.
    pub fn link(&self, id: &BlockId) -> Option<Arc<Link>> {
        self.link_in_memory(id).or_else(|| {
            let settled = self.settled()?;
            let height = settled.height_of(id).unwrap_or_else(|why| why.ends_the_run())?;
            // The store may hold more settled blocks than this run has come to.
            (height <= self.cut()).then(|| read(&*settled, height))
        })
    }

    /// A block in memory by id, whichever fork it is on.
    pub fn link_in_memory(&self, id: &BlockId) -> Option<Arc<Link>> {
        self.links.get(id).map(|link| link.clone())
    }

    /// Returns true if a block in memory holds a transaction, whichever fork it is on.
    pub fn is_in_memory(&self, transaction: &TransactionId) -> bool {
        self.transactions.contains_key(transaction)
    }

    /// The block of the chain ending in `tip` that holds a transaction. Reads a settled block from its store.
    pub fn block_of(&self, tip: &Arc<Link>, transaction: &TransactionId) -> Option<Arc<Link>> {
        let holders = self.transactions.get(transaction);
        let in_memory = holders.and_then(|holders| holders.iter().find(|holder| tip.descends_from(holder)).cloned());
        in_memory.or_else(|| self.settled_block_of(tip, transaction))
    }

    /// Returns true if a block of the chain ending in `tip` holds a transaction. Searches settled blocks only if the transaction can
    /// be there: the nonces of a sender have no gap, so the chain holds none above the wallet's.
    pub fn holds(&self, tip: &Arc<Link>, transaction: &SignedTransaction) -> bool {
        let holders = self.transactions.get(&transaction.id());
        if holders.is_some_and(|holders| holders.iter().any(|holder| tip.descends_from(holder))) {
            return true;
        }
        let may_have_settled = self.cut() > Height::GENESIS
            && transaction.nonce().is_none_or(|nonce| {
                let applied = self.applied(tip);
                applied.state.wallet(&transaction.sender_address()).is_some_and(|sender| nonce <= sender.nonce)
            });
        may_have_settled && self.settled_block_of(tip, &transaction.id()).is_some()
    }

    pub(super) fn genesis_applied(&self) -> Arc<Applied> {
        self.genesis.applied.load_full().expect("the state of genesis is never dropped")
    }

    /// The state after a block and what led to it. Recent ones are in memory, older ones are computed again, from at most a thousand
    /// blocks below.
    pub fn applied(&self, link: &Arc<Link>) -> Arc<Applied> {
        if let Some(applied) = link.applied.load_full() {
            return applied;
        }
        let applied = self.recomputed(link);
        link.applied.store(Some(applied.clone()));
        self.remember_state(link);
        applied
    }

    /// Puts a block on top of another: verifies, applies and stores it. A second call for the same block returns the stored link.
    /// It does not read the clock; a caller checks [`BlockTree::check_time`].
    ///
    /// # Errors
    /// Why the block cannot follow `parent`, by the first rule of consensus.md 3.3 that it breaks.
    pub fn extend(&self, parent: &Arc<Link>, block: &Arc<Block>) -> Result<Arc<Link>, BlockRejected> {
        if let Some(known) = self.known(parent, block) {
            if self.config.crypto == CryptoMode::EveryNode {
                // The result is known. This mode exists to measure the cost of finding it again.
                let _known = known.block.check_content(&self.config.block_context());
            }
            return Ok(known);
        }
        let id = block.id;
        let applied = self.applied(parent);
        let state = &applied.state;
        let ids = block.transactions.iter().map(|transaction| transaction.id());
        if self.config.exceptions.covers_block(id, ids) {
            self.check_exception(parent, block)?;
        } else {
            self.check(parent, block, state)?;
        }
        self.put_applied(parent, block, state.clone())
    }

    fn put_applied(&self, parent: &Arc<Link>, block: &Arc<Block>, state: State) -> Result<Arc<Link>, BlockRejected> {
        let (applied, notable) = self.apply(state, block)?;
        let link = self.put(parent, block, Some(Arc::new(applied)), notable.map(Arc::new));
        self.drop_old_state(&link);
        self.remember_state(&link);
        Ok(link)
    }

    fn put(
        &self,
        parent: &Arc<Link>,
        block: &Arc<Block>,
        applied: Option<Arc<Applied>>,
        notable: Option<Arc<Notable>>,
    ) -> Arc<Link> {
        let link = Arc::new(Link {
            block: block.clone(),
            height: block.header.height,
            below: self.below_child(parent),
            notable,
            applied: ArcSwapOption::new(applied),
            child: OnceLock::new(),
            transactions: parent.transactions + block.transactions.len() as u64,
        });
        self.insert(&link);
        // An exception may stand where it does not fit.
        if self.fits_on(parent, block) {
            let _one_came_before = parent.child.set((block.clone(), Arc::downgrade(&link)));
        }
        link
    }

    /// The link of a block that has followed `parent` before.
    fn known(&self, parent: &Link, block: &Arc<Block>) -> Option<Arc<Link>> {
        if let Some(child) = parent.child(block).and_then(Weak::upgrade).filter(|child| self.is_whole(child)) {
            return Some(child);
        }
        let known = self.links.get(&block.id).map(|link| link.clone())?;
        let follows = known.parent().is_some_and(|known| known.id() == parent.id());
        (follows && (Arc::ptr_eq(&known.block, block) || *known.block == **block)).then_some(known)
    }

    /// Rules 2 to 7 of consensus.md 3.3.
    fn check(&self, parent: &Arc<Link>, block: &Block, state: &State) -> Result<(), BlockRejected> {
        let (id, height) = (block.id, block.header.height);
        let computed = block.header.id(&self.config.milestones);
        if computed != id {
            return Err(BlockRejected::WrongId { id, height, computed });
        }
        self.check_content(block, state)?;
        self.check_versions_and_nonces(block, state)?;
        self.check_chained(parent, block)?;
        self.check_owner(block, state)?;
        let forged = block.transactions.iter().find(|one| self.holds(parent, one));
        match forged.map(|transaction| transaction.id()) {
            Some(transaction) => Err(BlockRejected::AlreadyForged { id, height, transaction }),
            None => Ok(()),
        }
    }

    /// Checks that a block that the network lists as an exception is the next one. Its slot, its forger and its other content are
    /// accepted as they are. Source: consensus.md 3.3 row 1.
    fn check_exception(&self, parent: &Link, block: &Block) -> Result<(), BlockRejected> {
        let header = &block.header;
        if header.previous == Some(parent.id()) && header.height == parent.height().next() {
            return Ok(());
        }
        let (id, height) = (block.id, header.height);
        Err(BlockRejected::NotChained { id, height, tip: parent.id(), tip_height: parent.height() })
    }

    /// Checks that a block's slot has begun at `now`. Source: consensus.md 3.1 step 5, protocol.md 4.3.
    pub fn check_time(&self, block: &Block, now: Slot) -> Result<(), BlockRejected> {
        let slot = self.slots.slot(block.header.timestamp);
        if slot > now {
            return Err(BlockRejected::FromFuture { id: block.id, height: block.header.height, slot, now });
        }
        Ok(())
    }

    /// `chained(P, B)` of consensus.md 3.1.
    pub fn chains(&self, parent: &Link, block: &Arc<Block>) -> bool {
        parent.child(block).is_some() || self.fits_on(parent, block)
    }

    fn fits_on(&self, parent: &Link, block: &Block) -> bool {
        block.header.previous == Some(parent.id())
            && block.header.height == parent.height().next()
            && self.slots.slot(block.header.timestamp) > self.slots.slot(parent.block.header.timestamp)
    }

    fn check_chained(&self, parent: &Link, block: &Block) -> Result<(), BlockRejected> {
        if self.fits_on(parent, block) {
            return Ok(());
        }
        let (id, height) = (block.id, block.header.height);
        Err(BlockRejected::NotChained { id, height, tip: parent.id(), tip_height: parent.height() })
    }

    /// Checks the block's own content. Transactions of multisignature wallets do not verify by themselves: their senders'
    /// wallets vouch for them. Source: consensus.md 3.4.
    fn check_content(&self, block: &Block, state: &State) -> Result<(), BlockRejected> {
        let errors = block.check_content(&self.config.block_context());
        if errors.is_empty() {
            return Ok(());
        }
        let only_unverified = errors
            .iter()
            .all(|error| matches!(error, BlockError::TransactionsNotVerified { .. } | BlockError::NotVerified(_)));
        let mut unverified = block.unverified(self.config.crypto);
        if only_unverified && unverified.all(|transaction| self.is_vouched_for(transaction, block, state)) {
            return Ok(());
        }
        Err(BlockRejected::NotVerified { id: block.id, height: block.header.height, errors: errors.clone() })
    }

    /// Returns true if the sender's wallet vouches for a transaction, as it is before the block or, where the rules allow it, as an earlier
    /// transaction of the block makes it.
    fn is_vouched_for(&self, transaction: &SignedTransaction, block: &Block, state: &State) -> bool {
        let crypto = self.config.crypto;
        if state.vouches_for(transaction, crypto) || self.rules.ledger.multi_signature_waits_for_block {
            return state.vouches_for(transaction, crypto);
        }
        let before = block.transactions.iter().take_while(|other| other.id() != transaction.id());
        let sender = transaction.sender();
        before.into_iter().any(|other| match other.asset() {
            Asset::MultiSignature { min, public_keys } => {
                other.registers() == Some(*sender)
                    && matches!(transaction.verify_multi(*min, public_keys, crypto), Ok(true))
            }
            _ => false,
        })
    }

    fn check_versions_and_nonces(&self, block: &Block, state: &State) -> Result<(), BlockRejected> {
        let (id, height) = (block.id, block.header.height);
        let mut nonces = BTreeMap::new();
        if block.mixes_versions() {
            return Err(BlockRejected::MixedVersions { id, height });
        }
        for transaction in &block.transactions {
            let content = transaction.transaction();
            let Version::Two(found) = content.version else { break };
            let address = transaction.sender_address();
            let nonce = nonces
                .entry(address)
                .or_insert_with(|| state.wallet(&address).map_or(crate::protocol::Nonce(0), |wallet| wallet.nonce));
            if found != nonce.next() {
                let source = super::ApplyError::UnexpectedNonce { found, sender: content.sender, nonce: *nonce };
                return Err(BlockRejected::NotApplicable { id, height, transaction: transaction.id(), source });
            }
            *nonce = found;
        }
        Ok(())
    }

    fn check_owner(&self, block: &Block, state: &State) -> Result<(), BlockRejected> {
        let slot = self.slots.slot(block.header.timestamp);
        let (round, got) = (state.round(), block.header.generator);
        if round.owns(slot, &got) {
            return Ok(());
        }
        let expected = round.owner(slot).map(|owner| owner.public_key);
        Err(BlockRejected::WrongForger { id: block.id, height: block.header.height, slot, expected, got })
    }

    fn apply(&self, state: State, block: &Arc<Block>) -> Result<(Applied, Option<Notable>), BlockRejected> {
        let reward = self.config.milestones.at(block.header.height).reward;
        let terms = self.terms(state.height());
        state.apply_block(block, reward, &terms, &self.schedule, &self.slots)
    }

    /// The rules that judge transactions on top of a block of this height.
    pub fn terms(&self, tip: Height) -> Terms<'_> {
        let milestone = self.milestone_after(tip);
        let later = self.config.milestones.all().iter().filter(|later| later.height > tip);
        let most = later.map(|later| later.active_delegates).max().filter(|_| {
            // The reference ignores later milestones.
            !self.rules.ledger.resignations_ignore_later_milestones
        });
        Terms {
            milestone,
            delegates: milestone.active_delegates.max(most.unwrap_or(0)),
            rules: &self.rules,
            exceptions: &self.config.exceptions,
            blocktime: self.slots.blocktime(),
            crypto: self.config.crypto,
        }
    }

    /// The context in which to read a transaction that follows a block of this height.
    pub fn transaction_context(&self, tip: Height) -> TransactionContext<'_> {
        TransactionContext { milestone: self.milestone_after(tip), ..self.config.transaction_context(tip) }
    }

    /// The milestone whose rules bind transactions on top of a block of this height: by the reference's the block's
    /// own. Source: consensus.md 4.4, 8 Q24.
    pub fn milestone_after(&self, tip: Height) -> &Milestone {
        let height = if self.rules.ledger.transaction_rules_lag { tip } else { tip.next() };
        self.config.milestones.at(height)
    }

    fn insert(&self, link: &Arc<Link>) {
        for transaction in &link.block.transactions {
            self.transactions.entry(transaction.id()).or_default().push(link.clone());
        }
        self.links.insert(link.id(), link.clone());
    }

    /// The number of states in memory, without the permanent ones; for tests and benches.
    pub fn states_at_hand(&self) -> usize {
        let with_state = self.with_state.lock().expect("no thread panics while holding it");
        let links = with_state.iter().filter_map(Weak::upgrade);
        let mut heights: Vec<BlockId> =
            links.filter(|link| link.applied.load().is_some()).map(|link| link.id()).collect();
        heights.sort_unstable();
        heights.dedup();
        heights.len()
    }

    /// Records a block whose state is in memory, and evicts the state that was computed longest ago if there are too many.
    fn remember_state(&self, link: &Arc<Link>) {
        let mut with_state = self.with_state.lock().expect("no thread panics while holding it");
        with_state.push_back(Arc::downgrade(link));
        while with_state.len() > STATES_KEPT_IN_ALL
            && let Some(oldest) = with_state.pop_front()
        {
            if let Some(oldest) = oldest.upgrade().filter(|oldest| !self.keeps_state(oldest.height())) {
                oldest.applied.store(None);
            }
        }
    }

    fn drop_old_state(&self, link: &Arc<Link>) {
        let old = Height(link.height().0.saturating_sub(STATES_KEPT));
        if old.0 > 1 && !self.keeps_state(old) {
            let link = link.ancestor(old).expect("the height is below the link's");
            link.applied.store(None);
        }
    }

    /// Returns true if the state of this height is kept once it is computed.
    fn keeps_state(&self, height: Height) -> bool {
        height == Height::GENESIS || is_seam(height.next(), self.span)
    }
}
