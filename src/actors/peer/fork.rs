//! Finding out that the node is on another chain than its peers, and leaving that chain. Source: consensus.md 3.5.
//!
//! 1. Each slot missed before an accepted block is counted. The end of a round sets the count to 0.
//! 2. A count of a third of the delegates, less one, passes a gate by chance (80 %). That sets the count to 0 and asks for
//!    a health check, at most one in ten minutes. Sync asks for one, too, when downloads bring nothing (`sync.rs`).
//! 3. A health check looks for peers, and asks all peers where they stand.
//! 4. It ends when each has answered or is gone. With half of them or more on other chains, the node is forked.
//! 5. A forked node goes back to the highest block common with the first peer stored, or, where the rules say so, with the
//!    largest group of forked peers.
//! 6. If that is the tip itself, so that no block comes off, the depth is random, 4 to 102 (Q17). It is 5,000 at most, and
//!    the genesis block stays.
//! 7. Blocks come off from the top, each with its event. Then the tip moves, and the pool and the delegate hear of it.
//! 8. Downloads under way are void. All peers are asked again where they stand, and sync goes on.

use super::{About, Peer, observe, ping::PingFor};
use crate::{
    actors::{Effect, Event, Message, Role, RollbackCause, SimTime, message::Reorganisation},
    ledger::{Link, rules::RollbackTarget, saved::saved, state::Notable},
    protocol::Height,
};
use rand::Rng;
use std::{collections::BTreeMap, iter, sync::Arc, time::Duration};

/// A node's record of missed slots and health checks.
#[derive(Clone, Debug, Default)]
pub(super) struct ForkWatch {
    /// Slots missed since the round began, or since they last caused a check.
    missed: u32,
    /// The last time they did.
    checked: Option<SimTime>,
    pub(super) checking: bool,
}

impl Peer {
    /// Counts the slots missed before a block; enough of them cause a health check, more often than not.
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

    /// All peers have answered or are gone: with half of them on other chains, the node leaves its own.
    pub(super) fn health_known(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        self.watch.checking = false;
        let all = self.neighbours.all();
        let peers = all.len() as u32;
        let forked = all.iter().filter(|neighbour| neighbour.verified.is_forked()).count() as u32;
        observe(Event::HealthChecked { peers, forked }, effects);
        let is_forked = peers > 0 && 100 * forked >= self.node_rules().forked_percent * peers;
        if !is_forked || self.is_recovering() {
            return self.health_settled(now, effects);
        }
        let target = self.rollback_target();
        let blocks = self.tip.height().0.saturating_sub(target.0);
        self.fork(now, Some(blocks), RollbackCause::Forked, effects);
    }

    /// The height to go back to.
    fn rollback_target(&self) -> Height {
        let common = |neighbour: &super::neighbours::Neighbour| neighbour.verified.highest_common;
        match self.node_rules().rollback_target {
            RollbackTarget::FirstPeer => self.neighbours.first_stored().map(common),
            RollbackTarget::LargestGroup => {
                let mut groups: BTreeMap<Height, usize> = BTreeMap::new();
                for neighbour in self.neighbours.all().iter().filter(|neighbour| neighbour.verified.is_forked()) {
                    *groups.entry(common(neighbour)).or_default() += 1;
                }
                // Of the largest groups the last one counts, so the lowest comes last.
                groups.into_iter().rev().max_by_key(|(_, size)| *size).map(|(height, _)| height)
            }
        }
        .unwrap_or_else(|| self.tip.height())
    }

    /// Leaves the chain by so many blocks, or by a random number of them, and asks the peers again where they stand.
    pub(super) fn fork(&mut self, now: SimTime, blocks: Option<u32>, cause: RollbackCause, effects: &mut Vec<Effect>) {
        let rules = self.node_rules().clone();
        // Q17: no block to remove counts as no number given.
        let blocks = blocks.filter(|blocks| *blocks > 0 || !rules.zero_rollback_is_random).unwrap_or_else(|| {
            let least = rules.random_rollback_min;
            let mut random = self.random.about(&self.tree, now, About::Rollback);
            random.random_range(least..=rules.random_rollback_max.max(least))
        });
        self.void_downloads();
        self.roll_back(blocks.min(rules.rollback_max), cause, effects);
        self.ping_all(now, PingFor::Recovery, effects);
    }

    /// Moves to another branch, as those who steer the run ask, unless the node's chain is another one by now. The pool
    /// goes from tip to tip at once.
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
        if !self.tip.is(common) {
            self.take_off(common.clone(), RollbackCause::Asked, effects);
        }
        self.tell(Role::Pool, Message::Reorganised { tip: tip.clone(), dropped: dropped.clone() }, effects);
        let above = |link: &Arc<Link>| link.height() > common.height();
        let branch: Vec<Arc<Link>> =
            iter::successors(Some(tip.clone()), |link| link.parent()).take_while(above).collect();
        for link in branch.into_iter().rev() {
            self.accept(now, link, effects);
        }
        self.tell_round(effects);
        if !is_starting {
            self.ping_all(now, PingFor::Recovery, effects);
        }
    }

    /// Moves the tip so many blocks back, to genesis at most.
    fn roll_back(&mut self, blocks: u32, cause: RollbackCause, effects: &mut Vec<Effect>) {
        let from = self.tip.clone();
        let height = Height(from.height().0.saturating_sub(blocks).max(Height::GENESIS.0));
        let Some(to) = from.ancestor(height) else { return };
        if to.id() == from.id() {
            return;
        }
        self.take_off(to.clone(), cause, effects);
        self.tell(Role::Pool, Message::TipMoved { tip: to }, effects);
        self.tell_round(effects);
    }

    /// Takes the blocks above an ancestor off the chain, from the top.
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

saved!(struct ForkWatch { missed, checked, checking });
