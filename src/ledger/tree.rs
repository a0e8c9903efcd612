//! The block tree: every block any node accepted, each with its state, computed once per process.
//!
//! ```text
//!   genesis ◄── 2 ◄── 3 ◄── 4      a node's chain is an Arc<Link>: here two nodes, on 4 and on 4',
//!                     ▲            a fork is two pointers, a rollback moves one of them back
//!                     └──── 4'
//! ```
//!
//! All nodes with the same rules share one tree; a node with deviant rules has its own. What is memoised is a function
//! of the block alone, so it does not matter which node asks first.

use super::{
    apply::Terms,
    round::RoundSchedule,
    rules::Rules,
    state::{Applied, BlockRejected, State},
};
use crate::protocol::{
    Block, BlockError, BlockId, Height, NetworkConfig, Slot, TransactionId, crypto::CryptoMode, slots::Slots,
    transaction::Version,
};
use arc_swap::ArcSwapOption;
use dashmap::DashMap;
use std::{collections::BTreeMap, fmt, sync::Arc};

/// Blocks below the newest whose states are kept at hand: more than the reference ever rolls back at random (102).
const STATES_KEPT: u32 = 128;
/// Every so many blocks a state is kept for good, so that an old one is recomputed from not too far.
const CHECKPOINT: u32 = 1_000;

/// One block in the tree.
pub struct Link {
    block: Arc<Block>,
    parent: Option<Arc<Link>>,
    /// An ancestor farther back, so that any height is found in logarithmic time.
    jump: Option<Arc<Link>>,
    applied: ArcSwapOption<Applied>,
    /// Transactions on the chain up to and with this block.
    transactions: u64,
}

/// All blocks, by id; what is shared by the nodes of one network.
pub struct BlockTree {
    config: Arc<NetworkConfig>,
    rules: Arc<Rules>,
    schedule: RoundSchedule,
    slots: Slots,
    links: DashMap<BlockId, Arc<Link>>,
    /// The blocks that hold a transaction, one for each fork it is on.
    transactions: DashMap<TransactionId, Vec<Arc<Link>>>,
    genesis: Arc<Link>,
}

impl Link {
    /// The block.
    pub fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// Its id.
    pub fn id(&self) -> BlockId {
        self.block.id
    }

    /// Its height.
    pub fn height(&self) -> Height {
        self.block.header.height
    }

    /// The block before; `None` for genesis.
    pub fn parent(&self) -> Option<&Arc<Link>> {
        self.parent.as_ref()
    }

    /// Transactions on the chain up to and with this block.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// The block of this chain at a height, in logarithmic time; `None` above this block.
    pub fn ancestor(self: &Arc<Self>, height: Height) -> Option<Arc<Link>> {
        let mut link = self;
        if height.0 == 0 || height > link.height() {
            return None;
        }
        while link.height() > height {
            link = match &link.jump {
                Some(jump) if jump.height() >= height => jump,
                _ => link.parent.as_ref().expect("only genesis has no parent, and its height is the least"),
            };
        }
        Some(link.clone())
    }

    /// Whether `other` is this block or below it on the same chain.
    pub fn descends_from(self: &Arc<Self>, other: &Link) -> bool {
        self.ancestor(other.height()).is_some_and(|link| link.id() == other.id())
    }

    /// The jump pointer of a child of `parent`: skew-binary, so that two jumps of one length merge into a longer one.
    fn jump_over(parent: &Arc<Link>) -> Arc<Link> {
        let length = |link: &Arc<Link>| link.jump.as_ref().map_or(0, |jump| link.height().0 - jump.height().0);
        match &parent.jump {
            Some(first) if length(parent) == length(first) => match &first.jump {
                Some(second) => second.clone(),
                None => parent.clone(),
            },
            _ => parent.clone(),
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.id(), self.height())
    }
}

/// A million links drop one after the other, not one inside the other.
impl Drop for Link {
    fn drop(&mut self) {
        let mut orphans: Vec<Arc<Link>> = self.parent.take().into_iter().chain(self.jump.take()).collect();
        while let Some(link) = orphans.pop() {
            if let Some(mut link) = Arc::into_inner(link) {
                orphans.extend(link.parent.take().into_iter().chain(link.jump.take()));
            }
        }
    }
}

impl BlockTree {
    /// The tree of a network, with its genesis block.
    ///
    /// # Errors
    /// The genesis block registers fewer delegates than the first milestone wants.
    pub fn new(config: Arc<NetworkConfig>, rules: Arc<Rules>) -> Result<Self, BlockRejected> {
        let schedule = RoundSchedule::new(&config.milestones);
        let state = State::genesis(&config, &schedule)?;
        let block = Arc::new(config.genesis.block.clone());
        let genesis = Arc::new(Link {
            transactions: block.transactions.len() as u64,
            block,
            parent: None,
            jump: None,
            applied: ArcSwapOption::from_pointee(Applied { state, missing: Vec::new(), round_end: None }),
        });
        let tree = Self {
            slots: config.slots(),
            config,
            rules,
            schedule,
            links: DashMap::new(),
            transactions: DashMap::new(),
            genesis: genesis.clone(),
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

    /// Heights to rounds.
    pub fn schedule(&self) -> &RoundSchedule {
        &self.schedule
    }

    /// The genesis block.
    pub fn genesis(&self) -> &Arc<Link> {
        &self.genesis
    }

    /// A block by id, whichever fork it is on.
    pub fn link(&self, id: &BlockId) -> Option<Arc<Link>> {
        self.links.get(id).map(|link| link.clone())
    }

    /// The block of the chain ending in `tip` that holds a transaction.
    pub fn block_of(&self, tip: &Arc<Link>, transaction: &TransactionId) -> Option<Arc<Link>> {
        let holders = self.transactions.get(transaction)?;
        holders.iter().find(|holder| tip.descends_from(holder)).cloned()
    }

    /// The state after a block and what led to it. Recent ones are at hand, older ones are computed again.
    pub fn applied(&self, link: &Arc<Link>) -> Arc<Applied> {
        let mut missing = Vec::new();
        let mut at = link.clone();
        let mut applied = loop {
            if let Some(applied) = at.applied.load_full() {
                break applied;
            }
            let parent = at.parent.clone().expect("the state of genesis is never dropped");
            missing.push(at);
            at = parent;
        };
        while let Some(next) = missing.pop() {
            applied = Arc::new(
                self.apply(&applied.state, &next.block)
                    .expect("it was applied before, and state is a function of the block"),
            );
        }
        applied
    }

    /// Puts a block on top of another: verifies it, applies it, remembers it. Asked again for the same block, it
    /// answers from memory. The clock is not looked at; a caller checks [`BlockTree::check_time`].
    ///
    /// # Errors
    /// Why the block cannot follow `parent`, by the first rule of consensus.md 3.3 that it breaks.
    pub fn extend(&self, parent: &Arc<Link>, block: &Arc<Block>) -> Result<Arc<Link>, BlockRejected> {
        let (id, height) = (block.id, block.header.height);
        if let Some(known) = self.link(&id)
            && known.parent.as_ref().is_some_and(|known| known.id() == parent.id())
            && (Arc::ptr_eq(&known.block, block) || *known.block == **block)
        {
            if CryptoMode::current() == CryptoMode::EveryNode {
                // What it finds is known; that it is looked for anew is what the mode is for.
                let _known = known.block.check_content(&self.config.block_context());
            }
            return Ok(known);
        }
        let computed = block.header.id(&self.config.milestones);
        if computed != id {
            return Err(BlockRejected::WrongId { id, height, computed });
        }
        let applied = self.applied(parent);
        let state = &applied.state;
        self.check_content(block, state)?;
        self.check_versions_and_nonces(block, state)?;
        self.check_chained(parent, block)?;
        self.check_owner(block, state)?;
        if let Some(transaction) =
            block.transactions.iter().find(|transaction| self.block_of(parent, &transaction.id()).is_some())
        {
            return Err(BlockRejected::AlreadyForged { id, height, transaction: transaction.id() });
        }
        let link = Arc::new(Link {
            block: block.clone(),
            jump: Some(Link::jump_over(parent)),
            parent: Some(parent.clone()),
            applied: ArcSwapOption::from_pointee(self.apply(state, block)?),
            transactions: parent.transactions + block.transactions.len() as u64,
        });
        self.insert(&link);
        self.drop_old_state(&link);
        Ok(link)
    }

    /// Whether a block's slot has begun at `now`. Source: consensus.md 3.1 (5), protocol.md 4.3.
    pub fn check_time(&self, block: &Block, now: Slot) -> Result<(), BlockRejected> {
        let slot = self.slots.slot(block.header.timestamp);
        if slot > now && !planted!(FutureBlockTaken) {
            return Err(BlockRejected::FromFuture { id: block.id, height: block.header.height, slot, now });
        }
        Ok(())
    }

    /// `chained(P, B)` of consensus.md 3.1.
    pub fn chains(&self, parent: &Link, block: &Block) -> bool {
        block.header.previous == Some(parent.id())
            && block.header.height == parent.height().next()
            && self.slots.slot(block.header.timestamp) > self.slots.slot(parent.block.header.timestamp)
    }

    fn check_chained(&self, parent: &Link, block: &Block) -> Result<(), BlockRejected> {
        if self.chains(parent, block) {
            return Ok(());
        }
        let (id, height) = (block.id, block.header.height);
        Err(BlockRejected::NotChained { id, height, tip: parent.id(), tip_height: parent.height() })
    }

    /// What the block says of itself. Transactions of multisignature wallets do not verify by themselves: their
    /// senders' wallets vouch for them. Source: consensus.md 3.4.
    fn check_content(&self, block: &Block, state: &State) -> Result<(), BlockRejected> {
        let errors = block.check_content(&self.config.block_context());
        if errors.is_empty() {
            return Ok(());
        }
        let only_unverified = errors
            .iter()
            .all(|error| matches!(error, BlockError::TransactionsNotVerified { .. } | BlockError::NotVerified { .. }));
        if only_unverified && block.unverified().all(|transaction| state.vouches_for(transaction)) {
            return Ok(());
        }
        let errors = errors.iter().map(ToString::to_string).collect();
        Err(BlockRejected::NotVerified { id: block.id, height: block.header.height, errors })
    }

    fn check_versions_and_nonces(&self, block: &Block, state: &State) -> Result<(), BlockRejected> {
        let (id, height) = (block.id, block.header.height);
        let mut nonces = BTreeMap::new();
        let mut kinds = block.transactions.iter().map(|transaction| transaction.transaction().version);
        let first_is_two =
            matches!(block.transactions.first().map(|first| first.transaction().version), Some(Version::Two(_)));
        if kinds.any(|version| matches!(version, Version::Two(_)) != first_is_two) {
            return Err(BlockRejected::MixedVersions { id, height });
        }
        for transaction in &block.transactions {
            let content = transaction.transaction();
            let Version::Two(found) = content.version else { break };
            let address = transaction.sender_address();
            let nonce = nonces
                .entry(address)
                .or_insert_with(|| state.wallet(&address).map_or(crate::protocol::Nonce(0), |wallet| wallet.nonce));
            if found != nonce.next() && !planted!(NonceUnchecked) {
                let source = super::ApplyError::UnexpectedNonce { found, sender: content.sender, nonce: *nonce };
                return Err(BlockRejected::NotApplicable { id, height, transaction: transaction.id(), source });
            }
            *nonce = found;
        }
        Ok(())
    }

    fn check_owner(&self, block: &Block, state: &State) -> Result<(), BlockRejected> {
        let slot = self.slots.slot(block.header.timestamp);
        let (expected, got) = (state.round().owner(slot).public_key, block.header.generator);
        if expected == got || planted!(SlotOwnerUnchecked) {
            return Ok(());
        }
        Err(BlockRejected::WrongForger { id: block.id, height: block.header.height, slot, expected, got })
    }

    fn apply(&self, state: &State, block: &Arc<Block>) -> Result<Applied, BlockRejected> {
        let reward = self.config.milestones.at(block.header.height).reward;
        state.apply_block(block, reward, &self.terms(state.height()), &self.schedule, &self.slots)
    }

    /// What transactions on top of a block of this height are judged by.
    pub fn terms(&self, tip: Height) -> Terms<'_> {
        let milestone = self.config.milestones.at(tip);
        Terms { milestone, rules: &self.rules, blocktime: self.slots.blocktime() }
    }

    fn insert(&self, link: &Arc<Link>) {
        for transaction in &link.block.transactions {
            self.transactions.entry(transaction.id()).or_default().push(link.clone());
        }
        self.links.insert(link.id(), link.clone());
    }

    fn drop_old_state(&self, link: &Arc<Link>) {
        let old = link.height().0.saturating_sub(STATES_KEPT);
        if old > 1 && !old.is_multiple_of(CHECKPOINT) {
            let link = link.ancestor(Height(old)).expect("the height is below the link's");
            link.applied.store(None);
        }
    }
}
