//! Finding out that the node is on another chain than its peers, and leaving that chain. Source: consensus.md 3.5.
//!
//! 1. Each slot missed before an accepted block is counted. The end of a round sets the count to 0.
//! 2. A count of a third of the delegates, less one, passes a gate by chance (80 %). That sets the count to 0 and asks for
//!    a health check, at most one in ten minutes. Sync asks for one, too, when downloads bring nothing (`sync.rs`).
//! 3. A health check looks for peers, and asks all peers where they stand.
//! 4. It ends when each has answered or is gone. The fork choice decides whether the node leaves its chain (`actors/fork_choice`): by the
//!    reference's, with half of its peers or more on other chains.
//! 5. It also decides how far the node goes back.
//! 6. If that is the tip itself, so that no block would be removed, the depth is random, 4 to 102 (Q17). The depth is at most 5,000,
//!    and final blocks stay, the genesis block among them.
//! 7. Blocks are removed from the top, each with its event. Then the tip moves, and the pool and the delegate are notified.
//! 8. Downloads under way are void. All peers are asked again where they stand, and sync goes on.

use super::{About, Peer, branches::Place, neighbours::Neighbour, observe, ping::PingFor};
use crate::{
    actors::{
        Effect, Event, Message, NodeId, Role, RollbackCause, SimTime,
        fork_choice::{self, Chain, ForkChoice, Look, Stance, Strength},
        message::Reorganisation,
    },
    ledger::{Link, codec::saved, state::Notable},
    protocol::{Block, BlockId, Height, TransactionId},
};
use rand::Rng;
use std::{collections::BTreeMap, iter, sync::Arc, time::Duration};

/// A node's record of missed slots and health checks.
#[derive(Clone, Debug, Default)]
pub(super) struct ForkWatch {
    /// Slots missed since the round began, or since they last caused a check.
    missed: u32,
    /// The instant of the last check that they caused.
    checked: Option<SimTime>,
    pub(super) checking: bool,
    /// The instant of the last check that a block off the own chain caused, if the fork choice has such checks.
    doubted: Option<SimTime>,
    /// The verified tips of the peers, and the instants at which they reported them, if the fork choice reads their chains.
    tips: BTreeMap<NodeId, (BlockId, SimTime)>,
    /// Retained blocks of other branches, if the rules retain any.
    pub(super) branches: BTreeMap<Place, Arc<Block>>,
}

impl Peer {
    /// Counts the slots missed before a block. If there are enough, they cause a health check with a configured probability.
    pub(super) fn count_missed(&mut self, now: SimTime, notable: &Notable, effects: &mut Vec<Effect>) {
        let delegates = self.tree.applied(&self.tip).state.round().position.delegates;
        for _ in &notable.missing {
            self.watch.missed += 1;
            let enough = 3 * (self.watch.missed + 1) >= delegates;
            let percent = self.node_rules().health_check_percent.min(100);
            if enough && self.random.about(&self.tree, now, About::Health).random_ratio(percent, 100) {
                self.watch.missed = 0;
                let gap = Duration::from_secs(u64::from(self.node_rules().health_check_gap_s));
                if self.watch.checked.is_none_or(|checked| now >= checked + gap) {
                    self.watch.checked = Some(now);
                    self.check_health(now, effects);
                }
            }
        }
        if notable.round_end.is_some() {
            self.watch.missed = 0;
        }
    }

    /// Looks for peers and asks all of them where they stand.
    pub(super) fn check_health(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        if !self.watch.checking {
            self.watch.checking = true;
            self.find_peers_for_health(now, effects);
        }
    }

    /// Ends a health check, once all peers have answered or are gone. The fork choice decides whether the node leaves its chain.
    pub(super) fn health_known(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.watch.checking = false;
        let look = self.look(now);
        let forked = look.peers.iter().filter(|peer| peer.verified.is_forked()).count() as u32;
        let target = self.choice().goes_back_to(&look);
        observe(Event::HealthChecked { peers: look.peers.len() as u32, forked }, effects);
        let Some(target) = target.filter(|_| !self.is_recovering()) else { return self.health_settled(now, effects) };
        let blocks = self.tip.height().0.saturating_sub(target.0);
        self.fork(now, Some(blocks), RollbackCause::Forked, effects);
    }

    /// The rule by which the node chooses its chain.
    pub(super) fn choice(&self) -> &'static dyn ForkChoice {
        fork_choice::of(self.node_rules().fork_choice)
    }

    /// The tip that a peer has reported recently. By now it may have left the chain of an older report.
    fn tip_of(&self, now: SimTime, node: NodeId) -> Option<Arc<Link>> {
        let (tip, said) = self.watch.tips.get(&node)?;
        (now <= *said + self.fresh_time()).then(|| self.tree.link(tip)).flatten()
    }

    /// The strength of the chain that a peer reported last, if that has more blocks than the own one.
    pub(super) fn strength_above(&self, node: NodeId) -> Option<Strength> {
        let (tip, _) = self.watch.tips.get(&node)?;
        let tip = self.tree.link(tip).filter(|tip| tip.height() > self.tip.height())?;
        Some(Strength::of(&tip, &self.tree.applied(&tip).state))
    }

    /// Where all peers stand.
    fn look(&self, now: SimTime) -> Look<'_> {
        let applied = self.tree.applied(&self.tip);
        let (own, last_final) = (Strength::of(&self.tip, &applied.state), applied.state.finality().height());
        let chain_of = |neighbour: &Neighbour| {
            let his = self.tip_of(now, neighbour.node)?;
            let applied = self.tree.applied(&his);
            Chain::beside(&self.tip, &his, neighbour.verified.highest_common, &applied.state)
        };
        let stance = |neighbour: &Neighbour| {
            let verified = neighbour.verified;
            let is_read = verified.is_forked() && self.choice().reads_chains();
            Stance { verified, chain: is_read.then(|| chain_of(neighbour)).flatten() }
        };
        // If a peer has further blocks of the own chain, another chain has to beat the chain with these blocks.
        let ahead = self.neighbours.in_storage().filter_map(|neighbour| self.tip_of(now, neighbour.node));
        let ahead = ahead.filter(|his| his.height() > self.tip.height() && his.descends_from(&self.tip));
        let strengths = ahead.map(|his| Strength::of(&his, &self.tree.applied(&his).state));
        let own = strengths.fold(own, Strength::max);
        Look { own, last_final, peers: self.neighbours.in_storage().map(stance).collect(), rules: self.node_rules() }
    }

    /// Records the verified tip of a peer, and the instant at which the peer reported it.
    pub(super) fn stands_on(&mut self, node: NodeId, tip: &Block, said: SimTime) {
        if self.choice().reads_chains() {
            // An id proves nothing beside another header than its own.
            match self.tree.link(&tip.id).is_some_and(|link| link.block().header == tip.header) {
                true => drop(self.watch.tips.insert(node, (tip.id, said))),
                false => drop(self.watch.tips.remove(&node)),
            }
        }
    }

    /// Forgets the tip of a node that is no peer any more.
    pub(super) fn forget_tip(&mut self, node: NodeId) {
        self.watch.tips.remove(&node);
    }

    /// Starts a health check because of a pushed block that does not follow the tip and rivals it, if the fork choice has such checks.
    pub(super) fn doubt_for(&mut self, now: SimTime, block: &Block, effects: &mut Vec<Effect>) {
        let pause = Duration::from_secs(self.tree.slots().blocktime().into());
        let is_due = self.watch.doubted.is_none_or(|before| now >= before + pause);
        if self.choice().doubts_for_a_block() && self.started && is_due && self.is_rival(block) {
            self.watch.doubted = Some(now);
            self.check_health(now, effects);
        }
    }

    /// Returns true if a block is not on this chain and is signed by an active delegate. Where heights decide between chains, it must also
    /// be at least as high as the tip.
    fn is_rival(&self, block: &Block) -> bool {
        let (tip, rules) = (&self.tip, self.rules());
        let is_high = block.header.height >= tip.height() || rules.ledger.finality.asks_forgers();
        let is_own = block.header.height <= tip.height()
            && tip.ancestor(block.header.height).is_some_and(|own| own.id() == block.id);
        let applied = self.tree.applied(tip);
        let is_member = applied.state.round().members.iter().any(|member| member.public_key == block.header.generator);
        is_high && !is_own && is_member && self.is_signed(block)
    }

    /// Rolls back by `blocks` blocks, or by a random number of them, and asks the peers for their tips again.
    pub(super) fn fork(&mut self, now: SimTime, blocks: Option<u32>, cause: RollbackCause, effects: &mut Vec<Effect>) {
        let rules = self.node_rules().clone();
        // Q17: a depth of 0 counts as no depth given.
        let blocks = blocks.filter(|blocks| *blocks > 0 || !rules.zero_rollback_is_random).unwrap_or_else(|| {
            let least = rules.random_rollback_min;
            let mut random = self.random.about(&self.tree, now, About::Rollback);
            random.random_range(least..=rules.random_rollback_max.max(least))
        });
        self.void_downloads();
        self.roll_back(blocks.min(rules.rollback_max), cause, effects);
        self.ping_all(now, PingFor::Recovery, effects);
    }

    /// Moves to another branch at the request of a client that controls the run, unless the node's chain is another one by now. The
    /// pool moves from tip to tip at once.
    pub(super) fn reorganise(&mut self, now: SimTime, asked: &Reorganisation, effects: &mut Vec<Effect>) {
        let Reorganisation { common, tip, dropped } = asked;
        if !self.tip.descends_from(common) {
            return;
        }
        // A node that still looks for peers to start with goes on doing so.
        let is_starting = self.is_starting();
        if !is_starting {
            self.void_downloads();
        }
        self.move_over(now, common.clone(), tip, (RollbackCause::Asked, dropped.clone()), effects);
        if !is_starting {
            self.ping_all(now, PingFor::Recovery, effects);
        }
    }

    /// Rolls back to an ancestor, and accepts the blocks up to `tip` above it. The pool moves from tip to tip at once, without `dropped`.
    pub(super) fn move_over(
        &mut self,
        now: SimTime,
        common: Arc<Link>,
        tip: &Arc<Link>,
        (cause, dropped): (RollbackCause, Arc<[TransactionId]>),
        effects: &mut Vec<Effect>,
    ) {
        let above = |link: &Arc<Link>| link.height() > common.height();
        let branch: Vec<Arc<Link>> =
            iter::successors(Some(tip.clone()), |link| link.parent()).take_while(above).collect();
        if !self.tip.is(&common) {
            self.take_off(common, cause, effects);
        }
        self.tell(Role::Pool, Message::Reorganised { tip: tip.clone(), dropped }, effects);
        for link in branch.into_iter().rev() {
            self.accept(now, link, effects);
        }
        self.tell_round(effects);
    }

    /// Moves the tip `blocks` blocks back, but not below the last final block. Without finality that is genesis.
    fn roll_back(&mut self, blocks: u32, cause: RollbackCause, effects: &mut Vec<Effect>) {
        let from = self.tip.clone();
        let last_final = self.tree.applied(&from).state.finality().height();
        let height = Height(from.height().0.saturating_sub(blocks)).max(last_final);
        let Some(to) = from.ancestor(height) else { return };
        if to.id() == from.id() {
            return;
        }
        self.take_off(to.clone(), cause, effects);
        self.tell(Role::Pool, Message::TipMoved { tip: to }, effects);
        self.tell_round(effects);
    }

    /// Removes the blocks above an ancestor from the chain, from the top.
    fn take_off(&mut self, to: Arc<Link>, cause: RollbackCause, effects: &mut Vec<Effect>) {
        let from = self.tip.clone();
        let mut at: Arc<Link> = from.clone();
        while at.id() != to.id() {
            let Some(parent) = at.parent() else { break };
            observe(Event::BlockReverted(at), effects);
            at = parent;
        }
        self.tip = to.clone();
        observe(Event::RolledBack { from, to, cause }, effects);
    }
}

saved!(struct ForkWatch { missed, checked, checking, doubted, tips, branches });
