//! The chain of one head, indexed: blocks by height, transactions by number, wallet and type.
//!
//! All collections are persistent: a head shares them with the head before, and a reader that holds a head holds its index, even if
//! blocks are applied or rolled back meanwhile. So a result needs no check against the chain.
//!
//! Settled blocks may be on disk (`older.rs`). Memory then holds the blocks above a base, and the rows of each list above it. A
//! reader sees one list.

mod list;

use super::older::{List, Older, Summary, present, readable};
use crate::{
    api::view::{ConfirmedBlock, ConfirmedTransaction, Contents, Entry, Facts, Spot, Totals},
    ledger::{Link, apply::recipients},
    protocol::{
        Address, Asset, BlockExcerpt, Height, PublicKey, SignedTransaction, TransactionId,
        transaction::{Kind, Version},
    },
};
use imbl::{HashMap, Vector};
use std::{
    collections::BTreeMap,
    ops::{ControlFlow, Range},
    sync::Arc,
};

pub(crate) use list::ChainList;

/// The places of the transactions of a wallet, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub sent: Vector<Spot>,
    /// The transactions that a filter by recipient alone finds. Source: api.md 4.2.
    pub received: Vector<Spot>,
    /// The transactions in which the wallet takes part, in any role.
    pub any: Vector<Spot>,
}

/// A chain from genesis to a tip.
#[derive(Clone)]
pub struct Chain {
    /// The holder of the settled blocks, up to the base at the least.
    older: Option<Arc<dyn Older>>,
    /// The highest block that is not in memory; `Height(0)` where all are.
    base: Height,
    /// The epoch of the older part when the chain last changed.
    epoch: u64,
    /// The blocks above the base.
    blocks: Vector<Arc<Entry>>,
    wallets: HashMap<Address, History>,
    /// The transactions of each type, in the order of [`Kind::ALL`], with the fee paid.
    kinds: [Vector<(Spot, u64)>; Kind::ALL.len()],
    /// The heights of each generator's blocks.
    forged: HashMap<PublicKey, Vector<Height>>,
    /// The claim or refund of each lock.
    unlocks: HashMap<TransactionId, Spot>,
    /// The number of transactions above genesis with a timestamp of their own, so that time and place may order differently.
    own_timestamps: u64,
}

/// A transaction of a list during a visit.
pub struct VisitedTransaction<'s> {
    pub spot: Spot,
    pub facts: &'s Facts,
    /// Its block, if that is in memory.
    entry: Option<&'s Arc<Entry>>,
}

/// A block during a visit.
pub enum Block<'s> {
    Recent(&'s Arc<Entry>),
    Older(&'s Summary),
}

/// The recipient as it is stored: one that the transaction names. A vote of version 1 names its sender.
pub(crate) fn stored_recipient(transaction: &SignedTransaction) -> Option<Address> {
    let is_old_vote =
        matches!((transaction.transaction().version, transaction.asset()), (Version::One(_), Asset::Vote(_)));
    transaction.asset().recipient().or(is_old_vote.then(|| transaction.sender_address()))
}

impl Chain {
    /// The chain that ends in a block, all of it in memory but for what has settled.
    pub fn new(tip: &Arc<Link>, network: u8, older: Option<Arc<dyn Older>>) -> Self {
        let base = older.as_ref().map_or(Height(0), |_| below_memory(tip));
        let epoch = match &older {
            Some(older) if base > Height(0) => {
                readable(older.extend(base, &|height| tip.ancestor(height).expect("it is below the tip")));
                older.epoch()
            }
            Some(older) => older.epoch(),
            None => 0,
        };
        let own_timestamps = match &older {
            Some(older) if base > Height(0) => present(older.summary(base), base).own_timestamps,
            _ => 0,
        };
        let mut chain = Self {
            older,
            base,
            epoch,
            blocks: Vector::new(),
            wallets: HashMap::new(),
            kinds: Default::default(),
            forged: HashMap::new(),
            unlocks: HashMap::new(),
            own_timestamps,
        };
        chain.move_to(tip, network);
        chain
    }

    /// Makes it the chain that ends in `tip`: removes the blocks that are not on that chain, and adds the missing ones.
    pub fn move_to(&mut self, tip: &Arc<Link>, network: u8) {
        if self.older.is_some() && !self.meets(below_memory(tip)) {
            // After a revert fewer blocks had settled, or at the new tip more have.
            *self = Self::new(tip, network, self.older.clone());
            return;
        }
        let (mut missing, mut at) = (Vec::new(), Some(tip.clone()));
        while let Some(link) = at.take_if(|link| link.height() > self.base && !self.holds(link)) {
            at = link.parent();
            missing.push(link);
        }
        let common = at.map_or(0, |link| link.height().0);
        while self.base.0 + self.blocks.len() as u32 > common.max(self.base.0) {
            self.pop();
        }
        missing.into_iter().rev().for_each(|link| self.push(&link, network));
    }

    /// True if the blocks in memory begin at or below the height `below` and reach it.
    fn meets(&self, below: Height) -> bool {
        self.base <= below && below.0 <= self.base.0 + self.blocks.len() as u32
    }

    /// Drops the blocks that the tree has dropped from memory, after the older part has stored them.
    pub fn settle(&mut self, tip: &Arc<Link>) {
        let Some(older) = self.older.clone() else { return };
        let cut = below_memory(tip);
        if cut <= self.base {
            return;
        }
        let at = |height| match self.recent(height) {
            Some(entry) => entry.link().clone(),
            None => tip.ancestor(height).expect("it is below the tip"),
        };
        readable(older.extend(cut, &at));
        while self.base < cut && self.blocks.len() > 1 {
            self.pop_oldest();
        }
        self.epoch = older.epoch();
    }

    /// True if all reads so far were from one chain: no revert went below the settled blocks meanwhile.
    pub fn still_stands(&self) -> bool {
        self.older().is_none_or(|older| older.epoch() == self.epoch)
    }

    /// The highest block that is not in memory; `Height(0)` where all are.
    pub fn base(&self) -> Height {
        self.base
    }

    /// The block at a height, if it is in memory.
    fn recent(&self, height: Height) -> Option<&Arc<Entry>> {
        self.blocks.get((height.0.checked_sub(self.base.0)? as usize).checked_sub(1)?)
    }

    /// The holder of the settled blocks, if they leave memory.
    pub fn older_part(&self) -> Option<Arc<dyn Older>> {
        self.older.clone()
    }

    /// The holder of the blocks that are not in memory, if there are any.
    fn older(&self) -> Option<&dyn Older> {
        self.older.as_deref().filter(|_| self.base > Height(0))
    }

    /// The block at a height.
    pub fn at(&self, height: Height) -> Option<Arc<Entry>> {
        match self.older() {
            Some(older) if (1..=self.base.0).contains(&height.0) => Some(match older.at_hand(height) {
                Some(entry) => entry,
                None => readable(older.with(self.blocks.front()?.link().ancestor(height)?)),
            }),
            _ => self.recent(height).cloned(),
        }
    }

    /// The block at a height, without its transactions. If the block is not in memory, only its header is read.
    pub fn block(&self, height: Height) -> Option<ConfirmedBlock> {
        if let Some(entry) = self.recent(height) {
            return Some(ConfirmedBlock::of(entry));
        }
        let older = self.older().filter(|_| (1..=self.base.0).contains(&height.0))?;
        match older.at_hand(height) {
            Some(entry) => Some(ConfirmedBlock::of(&entry)),
            None => {
                let BlockExcerpt { id, header, .. } = self.excerpt(height, &[])?;
                Some(ConfirmedBlock::read(id, header, older.network()))
            }
        }
    }

    /// A part of a block that is not in memory.
    fn excerpt(&self, height: Height, indexes: &[u32]) -> Option<BlockExcerpt> {
        readable(self.blocks.front()?.link().excerpt(height, indexes))
    }

    /// A block of the tree, if it is on this chain.
    pub fn entry_of(&self, link: Arc<Link>) -> Option<Arc<Entry>> {
        match self.older() {
            // Every chain contains all settled blocks.
            Some(older) if link.height() <= self.base => Some(readable(older.with(link))),
            _ => self.recent(link.height()).filter(|entry| entry.link().id() == link.id()).cloned(),
        }
    }

    /// True if a block is on this chain.
    pub fn holds(&self, link: &Link) -> bool {
        match self.recent(link.height()) {
            Some(entry) => entry.link().id() == link.id(),
            None => self.at(link.height()).is_some_and(|entry| entry.link().id() == link.id()),
        }
    }

    /// Visits the blocks, newest first.
    pub fn blocks_down(&self, mut visit: impl FnMut(&Block<'_>) -> ControlFlow<()>) {
        if self.blocks.iter().rev().try_for_each(|entry| visit(&Block::Recent(entry))).is_break() {
            return;
        }
        if let Some(older) = self.older() {
            readable(older.down_from(self.base, &mut |summary| visit(&Block::Older(summary))));
        }
    }

    /// Calls `look` with the block at a height.
    pub fn look_at<T>(&self, height: Height, look: impl FnOnce(&Block<'_>) -> T) -> Option<T> {
        if let Some(entry) = self.recent(height) {
            return Some(look(&Block::Recent(entry)));
        }
        let older = self.older().filter(|_| (1..=self.base.0).contains(&height.0))?;
        if let Some(entry) = older.at_hand(height) {
            return Some(look(&Block::Recent(&entry)));
        }
        Some(look(&Block::Older(&present(older.summary(height), height))))
    }

    /// The number of transactions on the chain.
    pub fn transactions(&self) -> u64 {
        self.blocks.last().map_or(0, |entry| entry.link().transactions())
    }

    /// The spots of the transactions with these numbers, the last first. Number 0 is the first transaction of the genesis block.
    pub fn numbered_down(&self, numbers: Range<u64>) -> Vec<Spot> {
        let mut spots = Vec::with_capacity((numbers.end - numbers.start) as usize);
        let Some(last) = numbers.end.checked_sub(1) else { return spots };
        let mut height = self.height_of_number(last);
        while (spots.len() as u64) < numbers.end - numbers.start && height > Height(0) {
            let looked_at = self.look_at(height, |block| (block.transactions(), block.contents().facts.len() as u64));
            let Some((until, count)) = looked_at else { break };
            let end = numbers.end.min(until);
            let indexes = numbers.start.max(until - count)..end;
            spots.extend(indexes.rev().map(|number| Spot { height, index: (number - (until - count)) as u32 }));
            height = Height(height.0 - 1);
        }
        spots
    }

    /// The height of the transaction with this number.
    fn height_of_number(&self, number: u64) -> Height {
        let is_below = |block: &Block<'_>| block.transactions() <= number;
        self.first_not(is_below)
    }

    /// The transaction at a spot of this chain.
    pub fn place(&self, spot: Spot) -> Option<ConfirmedTransaction> {
        self.places(&[spot]).pop()
    }

    /// The transaction with an index in a settled block, from an excerpt with this transaction alone.
    pub fn place_in(&self, index: u32, excerpt: BlockExcerpt) -> Option<ConfirmedTransaction> {
        let height = excerpt.header.height;
        match self.older().filter(|_| height <= self.base) {
            Some(older) => Self::read_in(older, excerpt, &[index]).pop(),
            None => self.place(Spot { height, index }),
        }
    }

    /// The transactions at some spots of this chain, in that order. From a block that is not in memory only these transactions are
    /// read, all at once.
    pub fn places(&self, spots: &[Spot]) -> Vec<ConfirmedTransaction> {
        let mut places: Vec<Option<ConfirmedTransaction>> = Vec::with_capacity(spots.len());
        let mut to_read: BTreeMap<Height, Vec<usize>> = BTreeMap::new();
        for (at, spot) in spots.iter().enumerate() {
            let recent = self.recent(spot.height);
            places.push(recent.and_then(|entry| ConfirmedTransaction::of(entry, spot.index as usize)));
            if recent.is_none() {
                to_read.entry(spot.height).or_default().push(at);
            }
        }
        let older = self.older();
        for (height, wanted) in to_read.into_iter().filter(|(height, _)| (1..=self.base.0).contains(&height.0)) {
            let indexes: Vec<u32> = wanted.iter().map(|at| spots[*at].index).collect();
            let read = older.map(|older| self.read_of(older, height, &indexes)).unwrap_or_default();
            wanted.into_iter().zip(read).for_each(|(at, place)| places[at] = Some(place));
        }
        places.into_iter().flatten().collect()
    }

    /// Some transactions of a block that is not in memory.
    fn read_of(&self, older: &dyn Older, height: Height, indexes: &[u32]) -> Vec<ConfirmedTransaction> {
        if let Some(entry) = older.at_hand(height) {
            let place = |index: &u32| ConfirmedTransaction::of(&entry, *index as usize);
            return present(Ok(indexes.iter().map(place).collect()), height);
        }
        self.excerpt(height, indexes).map(|excerpt| Self::read_in(older, excerpt, indexes)).unwrap_or_default()
    }

    /// The transactions of an excerpt, which have these indexes in their block.
    fn read_in(older: &dyn Older, excerpt: BlockExcerpt, indexes: &[u32]) -> Vec<ConfirmedTransaction> {
        let BlockExcerpt { id, header, transactions } = excerpt;
        let height = header.height;
        // Every index must lead to a transaction.
        present(Ok((transactions.len() == indexes.len()).then_some(())), height);
        let is_old = |one: &SignedTransaction| matches!(one.transaction().version, Version::One(_));
        let counted = match transactions.iter().any(|one| is_old(one)) {
            true => Some(present(older.summary(height), height).contents.facts),
            false => None,
        };
        let place = |(transaction, index): (Arc<SignedTransaction>, &u32)| {
            let running =
                || counted.as_ref().and_then(|facts| facts.get(*index as usize)).map_or(0, |facts| facts.nonce);
            let facts = Facts::of(&transaction, header.timestamp, running);
            ConfirmedTransaction::read(transaction, id, Spot { height, index: *index }, facts)
        };
        transactions.into_iter().zip(indexes).map(place).collect()
    }

    /// The number of rows of a list that are not in memory.
    fn settled(&self, list: &List) -> u64 {
        self.older().map_or(0, |older| readable(older.length(list, self.base)))
    }

    /// The claim or refund of a lock.
    pub fn unlock(&self, lock: &TransactionId) -> Option<ConfirmedTransaction> {
        let recent = self.unlocks.get(lock).copied();
        let spot = recent.or_else(|| readable(self.older()?.unlock(lock)).filter(|spot| spot.height <= self.base))?;
        self.place(spot)
    }

    /// True if the order of the chain is the order of time for all transactions.
    pub fn is_in_time_order(&self) -> bool {
        self.own_timestamps == 0
    }

    /// The lowest height whose block is not older than an instant, in seconds since the epoch. It is one above the tip if all are
    /// older.
    pub fn height_since(&self, timestamp: i64) -> Height {
        self.first_not(|block| i64::from(block.totals().timestamp.0) < timestamp)
    }

    /// The lowest height whose block does not pass, or one above the tip if all pass. The blocks that pass must come first.
    fn first_not(&self, passes: impl Fn(&Block<'_>) -> bool) -> Height {
        let (mut low, mut high) = (1, self.base.0 + self.blocks.len() as u32 + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.look_at(Height(middle), &passes).unwrap_or(false) { low = middle + 1 } else { high = middle }
        }
        Height(low)
    }

    fn push(&mut self, link: &Arc<Link>, network: u8) {
        let block = link.block();
        let height = link.height();
        let mut running = Vec::new();
        for (index, transaction) in block.transactions.iter().enumerate() {
            let spot = Spot { height, index: index as u32 };
            let sender = transaction.sender_address();
            let sent = &mut self.wallets.entry(sender).or_default().sent;
            sent.push_back(spot);
            if matches!(transaction.transaction().version, Version::One(_)) {
                let sent = sent.len() as u64;
                running.resize(index + 1, 0);
                running[index] = sent + self.settled(&List::Sent(sender));
                self.own_timestamps += u64::from(height > Height::GENESIS);
            }
            for (party, is_recipient) in parties(transaction) {
                let history = self.wallets.entry(party).or_default();
                history.any.push_back(spot);
                if is_recipient {
                    history.received.push_back(spot);
                }
            }
            self.kinds[transaction.kind() as usize].push_back((spot, transaction.fee().value()));
            if let Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } = transaction.asset() {
                self.unlocks.insert(*lock, spot);
            }
        }
        self.forged.entry(block.header.generator).or_default().push_back(height);
        let contents = Contents::of(link, |index| running[index]);
        self.blocks.push_back(Arc::new(Entry::new(link.clone(), contents, network)));
    }

    /// Removes the newest block. Its transactions are the last rows of every list, so they are removed from there, newest first.
    fn pop(&mut self) {
        let Some(entry) = self.blocks.pop_back() else { return };
        let block = entry.link().block();
        for transaction in block.transactions.iter().rev() {
            if let Some(history) = self.wallets.get_mut(&transaction.sender_address()) {
                history.sent.pop_back();
            }
            for (party, is_recipient) in parties(transaction) {
                let history = self.wallets.entry(party).or_default();
                history.any.pop_back();
                if is_recipient {
                    history.received.pop_back();
                }
            }
            self.kinds[transaction.kind() as usize].pop_back();
            if let Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } = transaction.asset() {
                self.unlocks.remove(lock);
            }
            let is_old = matches!(transaction.transaction().version, Version::One(_));
            self.own_timestamps -= u64::from(is_old && entry.height() > Height::GENESIS);
        }
        if let Some(heights) = self.forged.get_mut(&block.header.generator) {
            heights.pop_back();
        }
    }

    /// Drops the oldest block from memory. Its transactions are the first rows in memory of every list, so they are dropped from
    /// there, oldest first.
    fn pop_oldest(&mut self) {
        let Some(entry) = self.blocks.pop_front() else { return };
        let block = entry.link().block();
        for transaction in &block.transactions {
            let sender = transaction.sender_address();
            if let Some(history) = self.wallets.get_mut(&sender) {
                history.sent.pop_front();
            }
            for (party, is_recipient) in parties(transaction) {
                let history = self.wallets.entry(party).or_default();
                history.any.pop_front();
                if is_recipient {
                    history.received.pop_front();
                }
                if history.any.is_empty() {
                    self.wallets.remove(&party);
                }
            }
            self.kinds[transaction.kind() as usize].pop_front();
            if let Asset::HtlcClaim { lock, .. } | Asset::HtlcRefund { lock } = transaction.asset() {
                self.unlocks.remove(lock);
            }
        }
        if let Some(heights) = self.forged.get_mut(&block.header.generator) {
            heights.pop_front();
        }
        self.base = entry.height();
    }
}

impl<'s> VisitedTransaction<'s> {
    /// The confirmed transaction.
    pub fn place(&self, chain: &Chain) -> Option<ConfirmedTransaction> {
        match self.entry {
            Some(entry) => ConfirmedTransaction::of(entry, self.spot.index as usize),
            None => chain.place(self.spot),
        }
    }
}

impl<'s> Block<'s> {
    /// Its height.
    pub fn height(&self) -> Height {
        match self {
            Self::Recent(entry) => entry.height(),
            Self::Older(summary) => summary.totals.height,
        }
    }

    /// The part of its transactions that lists read.
    pub fn contents(&self) -> &'s Contents {
        match self {
            Self::Recent(entry) => &entry.contents,
            Self::Older(summary) => &summary.contents,
        }
    }

    /// The numbers of its header.
    pub fn totals(&self) -> Totals {
        match self {
            Self::Recent(entry) => Totals::of(entry.header()),
            Self::Older(summary) => summary.totals,
        }
    }

    /// The number of transactions on the chain up to and including the block.
    pub fn transactions(&self) -> u64 {
        match self {
            Self::Recent(entry) => entry.link().transactions(),
            Self::Older(summary) => summary.transactions,
        }
    }

    /// One of its transactions.
    pub fn seen(&self, index: usize) -> VisitedTransaction<'s> {
        let spot = Spot { height: self.height(), index: index as u32 };
        let entry = match self {
            Self::Recent(entry) => Some(*entry),
            Self::Older(_) => None,
        };
        VisitedTransaction { spot, facts: &self.contents().facts[index], entry }
    }

    /// The block without its transactions.
    pub fn confirmed(&self, chain: &Chain) -> Option<ConfirmedBlock> {
        match self {
            Self::Recent(entry) => Some(ConfirmedBlock::of(entry)),
            Self::Older(summary) => chain.block(summary.totals.height),
        }
    }

    /// The whole block.
    pub fn entry(&self, chain: &Chain) -> Option<Arc<Entry>> {
        match self {
            Self::Recent(entry) => Some(Arc::clone(entry)),
            Self::Older(summary) => chain.at(summary.totals.height),
        }
    }
}

/// The height below the lowest block that the chain up to `tip` has in memory.
fn below_memory(tip: &Arc<Link>) -> Height {
    Height(tip.lowest_in_memory().0 - 1)
}

/// Every wallet that takes part in a transaction, once, with true if a filter by recipient finds it.
pub(super) fn parties(transaction: &SignedTransaction) -> impl Iterator<Item = (Address, bool)> {
    let sender = transaction.sender_address();
    let mut parties = recipients(transaction);
    // A transaction without a stored recipient is found under its sender.
    let sender_is_recipient = stored_recipient(transaction).is_none_or(|recipient| recipient == sender);
    parties.sort_unstable();
    parties.dedup();
    let also_sender = (!parties.contains(&sender)).then_some((sender, sender_is_recipient));
    parties.into_iter().map(|party| (party, true)).chain(also_sender)
}
