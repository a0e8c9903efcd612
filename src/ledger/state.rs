//! The state after a block, and how a block makes the next one. Source: consensus.md 1.2, 1.5, 4.2, 4.6.
//!
//! To apply a block that has been verified and follows this state's block (`State::apply_block`):
//!
//! 1. The state is cloned, which copies nothing that does not change. A failure drops the clone, so nothing is reverted.
//! 2. Each transaction in order is checked against the clone and applied to it (`apply.rs`): sender, recipients, vote weights.
//!    The first that fails refuses the block.
//! 3. Supply grows by the reward. The generator gets reward and fees, and so does the weight of the delegate it votes for.
//! 4. The owners of the empty slots since the block before are noted, by this block's round, one round of them at most.
//! 5. The rule of finality follows (`finality.rs`).
//! 6. If the next height begins a round: members without a block in this round are noted, all delegates are ranked, and the
//!    rule of election (`election.rs`) chooses the round's members, who have its forging order (`round.rs`). Too few delegates refuse
//!    the block. Notes go with the block, for events and figures. Most blocks have none.
//!
//! There is no revert: a rollback moves a node's tip to an older block, whose state is in memory or computed again (`tree.rs`).

mod codec;

use super::{
    Balance, Wallet,
    apply::{self, ApplyError, Terms},
    election::Election,
    finality::Finality,
    round::{Member, Round, RoundPosition, RoundSchedule},
    rules::{LedgerRules, MissedBlocks, VoteRule},
    votes::VotedDelegates,
    wallet::{DelegateAttributes, LastBlock, Lock},
    wallets::Wallets,
};
use crate::protocol::{
    Address, Arktoshi, Block, BlockError, BlockId, Height, NetworkConfig, PublicKey, SignedTransaction, Slot,
    Timestamp, TransactionId, hashing::IdHash, slots::Slots,
};
use imbl::OrdMap;
use indexmap::IndexSet;
use std::{mem, sync::Arc};

/// The knowledge of every honest node after a block. Cheap to clone: successive states share all that did not change.
#[derive(Clone, Debug)]
pub struct State {
    height: Height,
    timestamp: Timestamp,
    wallets: Wallets,
    /// Every registered username, resigned ones included: they stay taken for ever.
    usernames: OrdMap<Arc<str>, Address>,
    /// Registered delegates that have not resigned.
    live_delegates: usize,
    /// Open locks and their owners.
    locks: OrdMap<TransactionId, Address>,
    /// Every registered multihash, and who registered it.
    ipfs: OrdMap<Vec<u8>, Address>,
    /// Every wallet with a business, resigned ones included, in the order of registration.
    businesses: imbl::Vector<Address>,
    /// The round of the next block.
    round: Arc<Round>,
    /// The number of blocks of each member in the round so far.
    forged_in_round: Vec<u16>,
    /// The state of the network's rule of election.
    election: Election,
    /// The state of the network's rule of finality.
    finality: Finality,
    /// Coin in circulation: genesis plus all rewards. Source: consensus.md 1.6.
    supply: Balance,
    /// Transactions on the chain.
    transactions: u64,
    network_byte: u8,
}

/// A state, and data of its block that is needed while the state is in memory.
#[derive(Debug)]
pub struct Applied {
    pub state: State,
    /// The senders of the block's transactions: every pool asks whether it knows one of them.
    pub senders: IndexSet<Address, IdHash>,
}

/// The notable consequences of a block. Most blocks have none: they follow another in the next slot, within a round.
#[derive(Debug, PartialEq)]
pub struct Notable {
    /// The owner of each slot left empty before the block, at most one round of them (`forger.missing`).
    pub missing: Vec<PublicKey>,
    /// Set where the block ended a round.
    pub round_end: Option<RoundEnd>,
}

/// The consequences of the last block of a round.
#[derive(Debug, PartialEq)]
pub struct RoundEnd {
    /// Members of the ended round that forged nothing in it (`round.missed`).
    pub missed: Vec<PublicKey>,
    /// The round that begins (`round.created`).
    pub created: Arc<Round>,
}

fn owner_named(owner: &Option<PublicKey>) -> String {
    owner.map_or_else(|| "no delegate".to_owned(), |owner| owner.to_string())
}

/// The reason why a block is rejected. Source: consensus.md 3.3, 3.4.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[rustfmt::skip]
pub enum BlockRejected {
    #[error("block {id} at height {height} does not chain to {tip} at height {tip_height}")]
    NotChained { id: BlockId, height: Height, tip: BlockId, tip_height: Height },
    #[error("block {id} at height {height}: its id should be {computed}")]
    WrongId { id: BlockId, height: Height, computed: BlockId },
    #[error("Received block {id} at height {height} contained too many transactions ({count}).")]
    Crowded { id: BlockId, height: Height, count: usize },
    #[error("block {id} at height {height} is not verified: {}", texts(errors))]
    NotVerified { id: BlockId, height: Height, errors: Arc<[BlockError]> },
    #[error("block {id} at height {height} lies in slot {slot}, the clock is in slot {now}")]
    FromFuture { id: BlockId, height: Height, slot: Slot, now: Slot },
    #[error("block {id} at height {height} holds transactions of different versions")]
    MixedVersions { id: BlockId, height: Height },
    #[error("block {id} at height {height}: slot {slot} is {}'s, but {got} forged it", owner_named(expected))]
    WrongForger { id: BlockId, height: Height, slot: Slot, expected: Option<PublicKey>, got: PublicKey },
    #[error("block {id} at height {height}: transaction {transaction} is on the chain already")]
    AlreadyForged { id: BlockId, height: Height, transaction: TransactionId },
    #[error("block {id} at height {height}: transaction {transaction}: {source}")]
    NotApplicable { id: BlockId, height: Height, transaction: TransactionId, source: ApplyError },
    #[error("block {id} at height {height} ends a round: expected to find {expected} delegates but only found {found}")]
    TooFewDelegates { id: BlockId, height: Height, expected: usize, found: usize },
    #[error("block {id} at height {height} confirms the blocks below it from height {from} on, and its forger has confirmed up to {own}")]
    ConfirmsTwice { id: BlockId, height: Height, from: Height, own: Height },
}

impl BlockRejected {
    /// The id of the rejected block.
    pub fn id(&self) -> BlockId {
        match self {
            Self::NotChained { id, .. }
            | Self::WrongId { id, .. }
            | Self::Crowded { id, .. }
            | Self::NotVerified { id, .. }
            | Self::FromFuture { id, .. }
            | Self::MixedVersions { id, .. }
            | Self::WrongForger { id, .. }
            | Self::AlreadyForged { id, .. }
            | Self::NotApplicable { id, .. }
            | Self::TooFewDelegates { id, .. }
            | Self::ConfirmsTwice { id, .. } => *id,
        }
    }
}

fn texts(errors: &[BlockError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl State {
    /// The state after the genesis block, which is taken as it is: its transactions are not checked.
    /// Source: consensus.md 4.6.
    pub fn genesis(
        config: &NetworkConfig,
        schedule: &RoundSchedule,
        rules: &LedgerRules,
    ) -> Result<Self, BlockRejected> {
        let block = &config.genesis.block;
        let position = schedule.at(Height::GENESIS);
        let mut state = Self {
            height: Height::GENESIS,
            timestamp: block.header.timestamp,
            wallets: Wallets::default(),
            usernames: OrdMap::new(),
            live_delegates: 0,
            locks: OrdMap::new(),
            ipfs: OrdMap::new(),
            businesses: imbl::Vector::new(),
            round: Arc::new(Round::new(position, Vec::new(), rules.shuffle)),
            forged_in_round: Vec::new(),
            election: rules.election.begin(),
            finality: rules.finality.begin(),
            supply: Balance::from(block.header.total_amount) + config.milestones.at(Height::GENESIS).reward,
            transactions: block.transactions.len() as u64,
            network_byte: config.network.pub_key_hash,
        };
        for transaction in &block.transactions {
            apply::apply(transaction, block.header.timestamp, rules, &mut state);
        }
        let (header, generator) = (&block.header, block.header.generator);
        let wallet = state.wallet_mut(generator.address(state.network_byte));
        wallet.public_key = Some(generator);
        wallet.balance += Balance::from(header.reward) + header.total_fee;
        state.weigh_anew(rules.votes);
        state.begin_round(block, position, rules)?;
        // A round of one delegate is over with the genesis block.
        let next = schedule.at(Height::GENESIS.next());
        if next != position {
            state.begin_round(block, next, rules)?;
        }
        Ok(state)
    }

    /// Computes vote weights and the number of live delegates from the wallets alone: in a given genesis block a vote may
    /// precede the registration of its delegate.
    fn weigh_anew(&mut self, votes: VoteRule) {
        let delegates: Vec<Address> = self.usernames.values().copied().collect();
        self.live_delegates = 0;
        for address in delegates {
            if let Some(delegate) = self.wallet_mut(address).delegate_mut() {
                delegate.vote_balance = Balance::ZERO;
                self.live_delegates += usize::from(!delegate.resigned);
            }
        }
        let voters: Vec<(VotedDelegates, Balance)> = self
            .wallets()
            .filter(|wallet| wallet.vote.is_some())
            .map(|wallet| (wallet.voted_delegates(), wallet.weight()))
            .collect();
        for (voted, weight) in voters {
            self.reweigh(&voted, votes, Balance::ZERO, weight);
        }
    }

    /// Height of the block that led to this state.
    pub fn height(&self) -> Height {
        self.height
    }

    /// Timestamp of that block.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// The round the next block belongs to.
    pub fn round(&self) -> &Arc<Round> {
        &self.round
    }

    /// Returns the state of the chain's rule of finality.
    pub fn finality(&self) -> &Finality {
        &self.finality
    }

    /// Coin in circulation: genesis amount plus the rewards of all blocks.
    pub fn supply(&self) -> Balance {
        self.supply
    }

    /// Number of transactions on the chain.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// First byte of this network's addresses.
    pub fn network_byte(&self) -> u8 {
        self.network_byte
    }

    /// A wallet the chain has named; reading never makes one.
    pub fn wallet(&self, address: &Address) -> Option<&Arc<Wallet>> {
        self.wallets.get(address)
    }

    /// All wallets, in the order in which the chain first named them.
    pub fn wallets(&self) -> impl ExactSizeIterator<Item = &Arc<Wallet>> {
        self.wallets.iter()
    }

    /// The wallets that are not the same in another state, in the order of [`State::wallets`]. Between two states of one
    /// tree the cost is proportional to the difference.
    pub fn wallets_changed_since(&self, before: &Self) -> Vec<&Arc<Wallet>> {
        self.wallets.changed_since(&before.wallets)
    }

    /// The wallet of a delegate, resigned or not.
    pub fn wallet_by_username(&self, username: &str) -> Option<&Arc<Wallet>> {
        self.address_of(username).and_then(|address| self.wallets.get(address))
    }

    /// The address a username is registered to.
    pub fn address_of(&self, username: &str) -> Option<&Address> {
        self.usernames.get(username)
    }

    /// All delegates' wallets, resigned ones included, ascending by username.
    pub fn delegates(&self) -> impl Iterator<Item = &Arc<Wallet>> {
        self.usernames.values().filter_map(|address| self.wallets.get(address))
    }

    /// Registered delegates that have not resigned.
    pub fn live_delegates(&self) -> usize {
        self.live_delegates
    }

    /// The delegate of a key, resigned or not.
    pub fn delegate_of(&self, key: &PublicKey) -> Option<&DelegateAttributes> {
        self.wallets.get(&key.address(self.network_byte))?.delegate.as_deref()
    }

    /// An open lock.
    pub fn lock(&self, id: &TransactionId) -> Option<&Lock> {
        let owner = self.locks.get(id)?;
        self.wallets.get(owner)?.htlc.as_ref()?.locks.get(id)
    }

    /// All open locks with their owners, ascending by id.
    pub fn locks(&self) -> impl Iterator<Item = (&TransactionId, &Address)> {
        self.locks.iter()
    }

    /// Returns true if a multihash is registered.
    pub fn has_ipfs(&self, multihash: &[u8]) -> bool {
        self.ipfs.contains_key(multihash)
    }

    /// All registered multihashes with who registered them, ascending.
    pub fn ipfs_hashes(&self) -> impl Iterator<Item = (&Vec<u8>, &Address)> {
        self.ipfs.iter()
    }

    /// The wallet that registered a multihash.
    pub fn ipfs_owner(&self, multihash: &[u8]) -> Option<&Address> {
        self.ipfs.get(multihash)
    }

    /// The wallet that made an open lock.
    pub fn lock_owner(&self, id: &TransactionId) -> Option<&Address> {
        self.locks.get(id)
    }

    /// All wallets with a business, in the order of registration, resigned ones included.
    pub fn businesses(&self) -> impl Iterator<Item = &Arc<Wallet>> {
        self.businesses.iter().filter_map(|address| self.wallets.get(address))
    }

    pub(super) fn index_lock(&mut self, id: TransactionId, owner: Address) {
        self.locks.insert(id, owner);
    }

    pub(super) fn forget_lock(&mut self, id: &TransactionId) -> Option<Address> {
        self.locks.remove(id)
    }

    pub(super) fn index_ipfs(&mut self, multihash: &[u8], owner: Address) {
        self.ipfs.insert(multihash.to_vec(), owner);
    }

    pub(super) fn index_business(&mut self, address: Address) {
        self.businesses.push_back(address);
    }

    /// A wallet to be changed behind the chain's back, to see whether that is seen.
    #[cfg(test)]
    pub(crate) fn tampered(&mut self, address: Address) -> &mut Wallet {
        self.wallet_mut(address)
    }

    /// The rule's knowledge, to be changed in the same way.
    #[cfg(test)]
    pub(crate) fn tampered_finality(&mut self) -> &mut Finality {
        &mut self.finality
    }

    /// A state whose lists name what no wallet has, one list at a time.
    #[cfg(test)]
    pub(crate) fn with_false_lists(&self, address: Address) -> [Self; 5] {
        let with = |change: fn(&mut Self, Address)| {
            let mut state = self.clone();
            change(&mut state, address);
            state
        };
        [
            with(|state, address| _ = state.usernames.insert("unused".into(), address)),
            with(|state, _| state.live_delegates += 1),
            with(|state, address| state.index_lock(TransactionId([7; 32]), address)),
            with(|state, address| state.index_ipfs(&[1, 2, 3], address)),
            with(|state, address| state.index_business(address)),
        ]
    }

    /// The wallet at an address, made if the chain names it for the first time.
    pub(super) fn wallet_mut(&mut self, address: Address) -> &mut Wallet {
        self.wallets.get_mut(address)
    }

    pub(super) fn add_vote_weight(&mut self, delegate: Address, change: Balance) {
        if change != Balance::ZERO
            && let Some(attributes) = self.wallet_mut(delegate).delegate_mut()
        {
            attributes.vote_balance += change;
        }
    }

    /// Applies a change of a voter's coin to the weights of the delegates that it backs.
    pub(super) fn reweigh(&mut self, voted: &VotedDelegates, votes: VoteRule, before: Balance, after: Balance) {
        let change = votes.weight_of(after) - votes.weight_of(before);
        voted.delegates().for_each(|delegate| self.add_vote_weight(delegate, change));
    }

    pub(super) fn register_delegate(&mut self, username: Arc<str>, address: Address) {
        let registered = self.usernames.len() as u32;
        if let Some(delegate) = self.wallet_mut(address).delegate_mut() {
            delegate.registered = registered;
        }
        self.usernames.insert(username, address);
        self.live_delegates += 1;
    }

    pub(super) fn count_resignation(&mut self) {
        self.live_delegates = self.live_delegates.saturating_sub(1);
    }

    /// Applies a transaction if it may be applied on top, as part of a block of this time; else changes nothing.
    ///
    /// # Errors
    /// The first precondition that does not hold.
    pub fn try_apply(
        &mut self,
        transaction: &SignedTransaction,
        block: Timestamp,
        terms: &Terms<'_>,
    ) -> Result<(), ApplyError> {
        let address = transaction.sender_address();
        let sender = self.wallets.get(&address).cloned();
        let sender = sender.unwrap_or_else(|| Arc::new(Wallet::cold(address, 0)));
        apply::check(transaction, &sender, self, terms)?;
        apply::apply(transaction, block, &terms.rules.ledger, self);
        Ok(())
    }

    /// The state after `block`, which has been verified and chains to this state's block. A state that others share is copied
    /// where it changes. Source: consensus.md 1.5, 4.2.
    pub(super) fn apply_block(
        self,
        block: &Arc<Block>,
        reward: Arktoshi,
        terms: &Terms<'_>,
        schedule: &RoundSchedule,
        slots: &Slots,
    ) -> Result<(Applied, Option<Notable>), BlockRejected> {
        let (id, header) = (block.id, &block.header);
        let (before, is_after_genesis) = (slots.slot(self.timestamp), self.height == Height::GENESIS);
        let mut state = self;
        let slot = slots.slot(header.timestamp);
        for transaction in &block.transactions {
            state.try_apply(transaction, header.timestamp, terms).map_err(|source| BlockRejected::NotApplicable {
                id,
                height: header.height,
                transaction: transaction.id(),
                source,
            })?;
        }
        state.height = header.height;
        state.timestamp = header.timestamp;
        state.transactions += block.transactions.len() as u64;
        state.supply += reward;
        let rules = &terms.rules.ledger;
        state.reward_generator(block, slot, rules.votes);
        let missing = state.missing(before, slot, is_after_genesis);
        if rules.missed_blocks == MissedBlocks::Slots {
            state.count_missed(&missing);
        }
        if let Some(owner) = state.round.counted(slot, &header.generator) {
            state.forged_in_round[owner] += 1;
        }
        if let Some((from, own)) = state.finality.confirmed_twice(block, &state.round) {
            return Err(BlockRejected::ConfirmsTwice { id, height: header.height, from, own });
        }
        state.finality.follow(block, &state.round);
        let next = schedule.at(header.height.next());
        let ends = next.first == header.height.next();
        let round_end = ends
            .then(|| {
                let missed = state.idle_members();
                if rules.missed_blocks == MissedBlocks::Rounds {
                    state.count_missed(&missed);
                }
                state.begin_round(block, next, rules)?;
                Ok(RoundEnd { missed, created: state.round.clone() })
            })
            .transpose()?;
        state.prepare_election();
        let senders = block.transactions.iter().map(|transaction| transaction.sender_address()).collect();
        let is_notable = round_end.is_some() || !missing.is_empty();
        Ok((Applied { state, senders }, is_notable.then_some(Notable { missing, round_end })))
    }

    fn reward_generator(&mut self, block: &Arc<Block>, slot: Slot, votes: VoteRule) {
        let header = &block.header;
        // The slot's owner, whose address is known here, unless the block is an exception.
        let address = match self.round.owner_with(slot, &header.generator) {
            Some(owner) => self.round.members[owner].address,
            None => header.generator.address(self.network_byte),
        };
        let gain = Balance::from(header.reward) + header.total_fee;
        let wallet = self.wallet_mut(address);
        wallet.balance += gain;
        let (voted, weight) = (wallet.voted_delegates(), wallet.weight());
        if let Some(delegate) = wallet.delegate_mut() {
            delegate.produced_blocks += 1;
            delegate.forged_fees += header.total_fee;
            delegate.forged_rewards += header.reward;
            delegate.last_block = Some(LastBlock(block.clone()));
        }
        self.reweigh(&voted, votes, weight - gain, weight);
    }

    /// The owners of the empty slots between two blocks. The gap after genesis has none.
    fn missing(&self, before: Slot, slot: Slot, after_genesis: bool) -> Vec<PublicKey> {
        if after_genesis {
            return Vec::new();
        }
        // A listed exception may stand in the slot of the block before.
        let gap = slot.0.saturating_sub(before.0 + 1).min(self.round.position.blocks());
        let owners = (1..=gap).flat_map(|step| self.round.owners(Slot(before.0 + step)));
        owners.map(|owner| self.round.members[owner].public_key).collect()
    }

    fn count_missed(&mut self, missing: &[PublicKey]) {
        for key in missing {
            if let Some(delegate) = self.wallet_mut(key.address(self.network_byte)).delegate_mut() {
                delegate.missed_blocks += 1;
            }
        }
    }

    fn idle_members(&self) -> Vec<PublicKey> {
        let idle = self.round.members.iter().zip(&self.forged_in_round).filter(|(_, forged)| **forged == 0);
        idle.map(|(member, _)| member.public_key).collect()
    }

    /// Updates the rule of election by the block.
    fn prepare_election(&mut self) {
        let (mut election, last_final) = (mem::replace(&mut self.election, Election::AtOnce), self.finality.height());
        election.follow(self.height, self.timestamp, last_final, &self.round.members, || self.ranking());
        self.election = election;
    }

    /// All delegates that have not resigned, by vote weight. Source: consensus.md 1.2.
    fn ranking(&self) -> Vec<Member> {
        let mut ranking: Vec<Member> = self
            .delegates()
            .filter_map(|wallet| {
                let delegate = wallet.delegate.as_ref().filter(|delegate| !delegate.resigned)?;
                let public_key = wallet.public_key?;
                Some(Member { public_key, address: wallet.address, vote_balance: delegate.vote_balance })
            })
            .collect();
        ranking.sort_by(|a, b| b.vote_balance.cmp(&a.vote_balance).then(a.public_key.cmp(&b.public_key)));
        ranking
    }

    /// Ranks all delegates, and begins a round of the members that the rule of election chooses. Source: consensus.md 1.2.
    fn begin_round(
        &mut self,
        block: &Block,
        position: RoundPosition,
        rules: &LedgerRules,
    ) -> Result<(), BlockRejected> {
        let ranking = self.ranking();
        let expected = position.delegates as usize;
        if ranking.len() < expected {
            let (id, height) = (block.id, block.header.height);
            return Err(BlockRejected::TooFewDelegates { id, height, expected, found: ranking.len() });
        }
        for (index, member) in ranking.iter().enumerate() {
            if let Some(delegate) = self.wallet_mut(member.address).delegate_mut() {
                delegate.rank = Some(index as u32 + 1);
            }
        }
        self.unrank_resigned(ranking.len());
        let (time, last_final) = (block.header.timestamp, self.finality.height());
        let members = self.election.elect(&ranking, &self.round.members, expected, time, last_final);
        for member in &members {
            if let Some(delegate) = self.wallet_mut(member.address).delegate_mut() {
                delegate.round = position.round.0;
            }
        }
        self.forged_in_round = vec![0; expected];
        self.round = Arc::new(Round::new(position, members, rules.shuffle));
        Ok(())
    }

    fn unrank_resigned(&mut self, ranked: usize) {
        if ranked == self.usernames.len() {
            return;
        }
        let resigned: Vec<Address> = self
            .delegates()
            .filter(|wallet| wallet.delegate.as_ref().is_some_and(|delegate| delegate.resigned))
            .map(|wallet| wallet.address)
            .collect();
        for address in resigned {
            if let Some(delegate) = self.wallet_mut(address).delegate_mut() {
                delegate.rank = None;
            }
        }
    }
}
