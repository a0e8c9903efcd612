//! The proofs of the causes of a pool's losses and of its excess: which transactions came together, the blocks that were applied,
//! refused and reverted just before, and the turn in which a transaction would have been chosen.

use super::{Node, Observations};
#[cfg(feature = "cli")]
use crate::ledger::codec::{Save, Saver};
use crate::{
    actors::{NodeId, SimTime},
    check::selection::ChosenTransactions,
    ledger::Link,
    protocol::{Address, Arktoshi, Block, BlockId, SignedTransaction, Slot, TransactionId},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

/// The largest number of applied blocks in memory.
const TAKEN: usize = 512;

/// The events of a pool and its node that prove causes.
#[derive(Clone, Default)]
pub(super) struct Losses {
    /// True if the node has reverted blocks since the pool last began anew. `reverted` contains their transactions.
    left: bool,
    reverted: BTreeMap<TransactionId, Arc<SignedTransaction>>,
    /// The last two instants of the pool's events, the latest first. A pool follows the chain whenever it gets a request.
    spoke: [Option<SimTime>; 2],
    /// The last block that the node refused, and when.
    refused: Option<(SimTime, BlockId)>,
    /// Blocks with transactions that the node took in, and when.
    taken: VecDeque<(SimTime, Arc<Link>)>,
    /// Requests that added something, and transactions, so far.
    requests: u64,
    arrivals: u64,
    /// The place of a transaction among all that came, and its request; no request if it came back with a reverted block.
    came: BTreeMap<TransactionId, (u64, Option<u64>)>,
    /// The size of a pool that began anew above its limit, as long as it stays above.
    over: Option<usize>,
    /// The number of transactions in the pool when the request of this instant first made room.
    request: Option<(SimTime, usize)>,
    /// The cheapest that gave way to that request.
    cheapest: Option<Arktoshi>,
    added: usize,
}

impl Losses {
    /// Appends the memory that can decide later findings.
    #[cfg(feature = "cli")]
    pub(super) fn mark(&self, out: &mut Saver) {
        let Self { left, reverted, spoke, refused, taken, requests, arrivals, came, over, request, cheapest, added } =
            self;
        left.save(out);
        reverted.keys().copied().collect::<BTreeSet<_>>().save(out);
        spoke.iter().for_each(|spoke| spoke.save(out));
        refused.save(out);
        taken.save(out);
        requests.save(out);
        arrivals.save(out);
        came.save(out);
        over.save(out);
        request.save(out);
        cheapest.save(out);
        added.save(out);
    }

    /// Records a block that the node applied.
    pub(super) fn takes(&mut self, now: SimTime, link: &Arc<Link>) {
        if link.block().transactions.is_empty() {
            return;
        }
        if self.taken.len() == TAKEN {
            self.taken.pop_front();
        }
        self.taken.push_back((now, link.clone()));
    }

    /// Records the time of an event of the pool.
    pub(super) fn speaks(&mut self, now: SimTime) {
        if self.spoke[0] != Some(now) {
            self.spoke = [Some(now), self.spoke[0]];
        }
    }

    /// Records a block that the node refused.
    pub(super) fn refuses(&mut self, now: SimTime, id: BlockId) {
        self.refused = Some((now, id));
    }

    /// Records a block that the node reverted.
    pub(super) fn reverts(&mut self, link: &Link) {
        self.left = true;
        self.reverted.extend(link.block().transactions.iter().map(|one| (one.id(), one.clone())));
    }

    /// Returns the transactions of the blocks that the node has reverted since the pool last began anew.
    pub(super) fn reverted(&self) -> &BTreeMap<TransactionId, Arc<SignedTransaction>> {
        &self.reverted
    }

    /// Records that the pool, with `held` transactions, evicted one to make room.
    pub(super) fn makes_room(&mut self, now: SimTime, held: usize, one: &SignedTransaction) {
        if self.request.is_none_or(|(at, _)| at != now) {
            (self.request, self.cheapest, self.added) = (Some((now, held)), None, 0);
        }
        let cheapest = self.cheapest.map_or(one.fee(), |cheapest| cheapest.min(one.fee()));
        self.cheapest = Some(cheapest);
    }

    /// Records the transactions that the pool added in one request.
    pub(super) fn adds(&mut self, added: &[Arc<SignedTransaction>]) {
        (self.requests, self.added) = (self.requests + 1, added.len());
        for one in added {
            self.came.insert(one.id(), (self.arrivals, Some(self.requests)));
            self.arrivals += 1;
        }
    }

    /// The pool holds `held`, of at most `limit`.
    pub(super) fn holds(&mut self, held: usize, limit: usize) {
        self.over = self.over.filter(|_| held > limit).map(|over| over.min(held));
    }

    /// Records that the pool began anew with `kept`, in their order of arrival. Returns the transactions of the reverted blocks, if
    /// a rollback is the reason.
    pub(super) fn begins_anew(
        &mut self,
        kept: &[Arc<SignedTransaction>],
        limit: usize,
    ) -> Option<BTreeSet<TransactionId>> {
        let reverted: BTreeSet<TransactionId> = std::mem::take(&mut self.reverted).into_keys().collect();
        let came_back = std::mem::take(&mut self.left).then_some(reverted);
        let before = std::mem::take(&mut self.came);
        let of_rollback = came_back.as_ref().is_some_and(|back| kept.iter().all(|one| back.contains(&one.id())));
        for one in kept {
            let request = before.get(&one.id()).and_then(|(_, request)| *request).filter(|_| !of_rollback);
            self.came.insert(one.id(), (self.arrivals, request));
            self.arrivals += 1;
        }
        self.over = (of_rollback && kept.len() > limit).then_some(kept.len());
        came_back.filter(|_| of_rollback)
    }

    /// Returns the proof that a pool of this size is too large because it began anew above its limit.
    pub(super) fn size_proof(&self, held: usize) -> Result<String, String> {
        match self.over {
            Some(over) if held <= over => {
                Ok(format!("it began anew with {over} transactions of reverted blocks or more"))
            }
            Some(over) => Err(format!("it began anew with {over} transactions and has grown since")),
            None => Err("it did not begin anew above its limit".to_owned()),
        }
    }

    /// Returns the proof that transactions of one kind came together: in one request, or with reverted blocks. The pool then could not see
    /// one of them before the other.
    pub(super) fn request_proof(&self, ids: &[TransactionId]) -> Result<String, String> {
        let requests: BTreeSet<u64> = ids.iter().filter_map(|id| self.came.get(id)?.1).collect();
        match requests.len() {
            0 | 1 => Ok("all of them came in one request, or with the reverted blocks".to_owned()),
            count => Err(format!("they came in {count} requests")),
        }
    }

    /// The proof that room was made in a full pool, for a dearer transaction.
    pub(super) fn room_proof(&self, now: SimTime, limit: usize, newcomer: Arktoshi) -> Result<String, String> {
        let Some((_, held)) = self.request.filter(|(at, _)| *at == now) else {
            return Err("no room was made in this request".to_owned());
        };
        let most = held + self.added;
        match self.cheapest {
            _ if most < limit => Err(format!("the pool held {most} at most, its limit is {limit}")),
            Some(cheapest) if cheapest < newcomer => Ok(format!(
                "the pool was full with {limit}, and what gave way paid {cheapest}, the newcomer {newcomer}"
            )),
            _ => Err(format!("what gave way paid no less than the newcomer's {newcomer}")),
        }
    }
}

impl Observations {
    /// The proof that a pool lost a transaction by Q4, for another of its sender, or in its turn.
    pub(super) fn loss_proof(
        &self,
        now: SimTime,
        node: NodeId,
        gone: &[Arc<SignedTransaction>],
        lost: &SignedTransaction,
    ) -> Result<String, String> {
        let known = &self.nodes[node.0 as usize];
        let refused = self.refused_proof(now, known, lost);
        let taken = || taken_proof(&known.losses, gone, lost);
        let chosen = || self.chosen_proof(now, node, gone, lost);
        refused
            .or_else(|_| taken())
            .or_else(|_| chosen())
            .map_err(|why| format!("{} {} of {node}: {why}", lost.kind().name(), lost.id()))
    }

    /// Returns the proof that the node has just refused a block with the transaction, or with another one of its sender. Source:
    /// consensus.md 8 Q4.
    pub(super) fn refused_proof(&self, now: SimTime, known: &Node, lost: &SignedTransaction) -> Result<String, String> {
        let none = || "no block with it, or with one of its sender, was refused in the slot before".to_owned();
        let (_, id) = known.losses.refused.filter(|(at, _)| self.is_recent(now, *at)).ok_or_else(none)?;
        let sender = lost.sender_address();
        let takes = |block: &Block| {
            block.transactions.iter().any(|one| one.id() == lost.id() || one.sender_address() == sender)
        };
        let takes_any = self.tree.rules().pool.refused_block_takes_transactions;
        let block = self.heard.block(&id).filter(|block| takes_any && takes(block)).ok_or_else(none)?;
        Ok(format!("block {} took it along and was refused", block.id))
    }

    /// Returns the proof that the node's delegate is choosing, and that the transaction does not fit in its turn. Source:
    /// consensus.md 2.3, 5.5.
    fn chosen_proof(
        &self,
        now: SimTime,
        node: NodeId,
        gone: &[Arc<SignedTransaction>],
        lost: &SignedTransaction,
    ) -> Result<String, String> {
        let known = &self.nodes[node.0 as usize];
        let (slots, applied) = (self.tree.slots(), self.tree.applied(&known.tip));
        let running = slots.slot(now.seconds());
        let forges = |slot| self.keys[node.0 as usize].is_some_and(|key| applied.state.round().owns(slot, &key));
        let made = known.forged.as_ref().is_some_and(|(slot, _)| *slot == running);
        // A clock that is off shows the slot before or after.
        let near = [running.0.saturating_sub(1), running.0, running.0.saturating_add(1)];
        if !made && !near.into_iter().any(|slot| forges(Slot(slot))) {
            return Err(
                "no block with it or with one of its sender was refused or taken in time, and none was made".to_owned()
            );
        }
        let terms = self.tree.terms(known.tip.height());
        let mut chosen = ChosenTransactions::new(&applied.state, &self.tree.rules().pool);
        for one in in_turn(known, gone) {
            let fits = chosen.add(one, now.seconds(), &terms);
            if one.id() == lost.id() {
                let words = "in its turn, after those that come before it in the pool";
                return if fits { Err(format!("it fits {words}")) } else { Ok(format!("it does not fit {words}")) };
            }
        }
        Err("it was not in the pool".to_owned())
    }

    fn is_recent(&self, now: SimTime, at: SimTime) -> bool {
        now.since(at) <= Duration::from_secs(self.tree.slots().blocktime().into())
    }
}

/// Returns the proof that, since the pool's last event, its node has applied a block with another transaction of the sender. The
/// pool did not hold that transaction, and had given its nonce to another one. Source: consensus.md 5.6.
fn taken_proof(losses: &Losses, gone: &[Arc<SignedTransaction>], lost: &SignedTransaction) -> Result<String, String> {
    let sender: Address = lost.sender_address();
    let own = || gone.iter().filter(|one| one.sender_address() == sender);
    let last = own().filter_map(|one| one.nonce()).max();
    let is_rival = |one: &&Arc<SignedTransaction>| {
        one.sender_address() == sender && one.nonce() <= last && own().all(|held| held.id() != one.id())
    };
    let recent = losses.taken.iter().rev().filter(|(at, _)| losses.spoke[1].is_none_or(|before| *at >= before));
    let rival = recent.map(|(_, link)| link).find(|link| link.block().transactions.iter().any(|one| is_rival(&one)));
    let block = rival.ok_or("no block with another of its sender was taken since the pool was last asked")?;
    Ok(format!("block {} holds another transaction of its sender", block.id()))
}

/// The content of a pool in forging order: by fee, then by arrival, and before each its sender's lower nonces. Source: consensus.md
/// 5.5.
fn in_turn<'a>(known: &'a Node, gone: &'a [Arc<SignedTransaction>]) -> Vec<&'a Arc<SignedTransaction>> {
    let arrival = |one: &SignedTransaction| known.losses.came.get(&one.id()).map_or(u64::MAX, |(arrival, _)| *arrival);
    let mut by_fee: Vec<&Arc<SignedTransaction>> = known.pending.values().chain(gone).collect();
    by_fee.sort_by_key(|one| (Reverse(one.fee()), arrival(one)));
    let (mut order, mut come) = (Vec::new(), BTreeSet::new());
    for one in &by_fee {
        let is_before = |other: &&&Arc<SignedTransaction>| {
            other.sender_address() == one.sender_address() && other.nonce().is_some() && other.nonce() < one.nonce()
        };
        let mut own: Vec<_> = by_fee.iter().filter(is_before).copied().collect();
        own.sort_by_key(|other| other.nonce());
        own.push(one);
        order.extend(own.into_iter().filter(|one| come.insert(one.id())));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ledger::Rules, protocol::crypto::CryptoMode, scenario::Testnet, sim::SeedTree};

    #[test]
    fn two_of_a_kind_came_in_one_request_or_with_reverted_blocks() {
        let tree = Testnet::generate(SeedTree::new(1), 5, CryptoMode::Real)
            .tree(Rules::corrected())
            .expect("a generated genesis");
        let genesis = &tree.genesis().block().transactions;
        let (two, ids) = (&genesis[..2], [genesis[0].id(), genesis[1].id()]);
        let requests = |requests: &[&[Arc<SignedTransaction>]]| {
            let mut losses = Losses::default();
            requests.iter().for_each(|added| losses.adds(added));
            losses
        };
        let together = requests(&[two]);
        assert!(together.request_proof(&ids).is_ok());
        let mut apart = requests(&[&two[..1], &two[1..]]);
        assert_eq!(apart.request_proof(&ids), Err("they came in 2 requests".to_owned()));
        assert_eq!(apart.begins_anew(two, 10), None, "no block was reverted");
        assert!(apart.request_proof(&ids).is_err());
    }
}
