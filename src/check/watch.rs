//! An observer that compares the events of a run with the rules, from outside.
//!
//! Every block is judged once, by whichever node takes it in first ([`super::step`]). The actions of a single node (whether its own
//! relay accepts its block, where a rollback ends, which transactions its pool drops) are judged from its events. Interesting things
//! that should happen *sometimes* are counted, so that a search which never saw a fork does not pass for one that found no fault in
//! forks.

mod forging;
mod losses;
#[cfg(feature = "cli")]
mod marks;
mod pools;
mod proofs;
#[cfg(test)]
mod tests;

use super::{
    Certificate, Finding, Sometimes,
    certificate::network::{self, NetworkProof},
    conduct::{self, Conduct},
    liveness::{Alive, Liveness, deviants, irregulars, is_liveness, may_forge_in_vain},
    sights::Sights,
    step::check_step,
    story::StoryEntry,
    wakers::stuck,
};
use crate::{
    actors::{Event, NodeId, RollbackCause, SimTime, fork_choice::Strength},
    ledger::{
        ApplyError, BlockRejected, BlockTree, Link, Round,
        finality::FinalBlocks,
        rules::{ElectionRule, FinalityRule},
        state::Applied,
    },
    protocol::{Block, BlockId, Height, PublicKey, SignedTransaction, Slot, TransactionId, hashing::IdHash},
    scenario::Scenario,
    sim::{
        NetworkEvent, Observer, Outlook, Plan, Tips, network::Tally, stage::inline::InlineStage, tips::common_height,
        world::INSTANT_LIMIT,
    },
};
use indexmap::IndexMap;
use losses::Losses;
use proofs::{Facts, Heard};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    iter,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

/// The largest number of events in a story: the last ones before a finding.
const TOLD: usize = 40;

/// The watch over one run. Clones share its observations: one observes the stage, another answers queries.
#[derive(Clone)]
pub struct Watch(Arc<Mutex<Observations>>);

/// The observations of a run.
#[derive(Clone)]
pub struct Observations {
    tree: Arc<BlockTree>,
    nodes: Vec<Node>,
    tips: Tips,
    judged: IndexMap<BlockId, Arc<Applied>, IdHash>,
    /// The block that a node applied last. As a rule the next node applies the same block.
    last: Option<Arc<Link>>,
    /// The first of each invariant and cause, in the order found.
    findings: Vec<Finding>,
    /// Liveness, where it is asked for.
    alive: Option<Alive>,
    start: SimTime,
    /// The end of the slot that is running.
    slot_ends: SimTime,
    sometimes: Sometimes,
    /// The last events worth telling.
    told: VecDeque<StoryEntry>,
    /// The highest block any node has taken in.
    best: Arc<Link>,
    /// The final blocks of all nodes.
    finals: FinalBlocks,
    sights: Sights,
    /// The keys of the nodes' delegates.
    keys: Vec<Option<PublicKey>>,
    /// The blocks that any node has heard of.
    heard: Heard,
}

/// The state of a node.
#[derive(Clone)]
struct Node {
    tip: Arc<Link>,
    /// The last time at which its chain grew or shrank.
    moved: Option<SimTime>,
    /// The block from which its chain grew at that time. Its tip, once its pool has dropped something later.
    grew_from: Arc<Link>,
    /// True if a fault makes it deviate. Its conduct is not judged.
    deviant: bool,
    /// True if its relay may refuse the block of its own delegate by a fault, although that follows the rules.
    may_forge_in_vain: bool,
    /// True if a fault makes its delegate break the rules of forging, or makes another node forge for it. The claims of its blocks are
    /// not judged.
    irregular: bool,
    /// The last block its delegate made.
    forged: Option<(Slot, Arc<Block>)>,
    /// True if its relay has applied that block. A later refusal of a copy from other nodes does not concern the delegate.
    forged_taken: bool,
    /// The greatest height at which it made a block, by the delegate, where a rule of finality asks.
    forged_up_to: BTreeMap<PublicKey, Height>,
    pending: BTreeMap<TransactionId, Arc<SignedTransaction>>,
    /// The transactions that have left the pool. They are judged once all that left together are known.
    removed: Vec<TransactionId>,
    /// The transactions that were pending until a block of its chain took them in.
    taken: BTreeMap<TransactionId, Arc<SignedTransaction>>,
    /// Transactions that gave way and whose successor has not been reported yet.
    evicted: BTreeSet<TransactionId>,
    /// The proofs of the causes of its rollbacks and refused blocks.
    facts: Facts,
    /// The proofs of the causes of its pool's losses.
    losses: Losses,
}

impl Watch {
    /// A watch over a run of a scenario, which requires liveness if `liveness` is given.
    pub fn of(scenario: &Scenario, plan: &Plan, liveness: Option<Liveness>) -> Self {
        let watch = Self::new(
            plan.tree.clone(),
            &plan.tip,
            plan.nodes.len(),
            &deviants(scenario),
            &may_forge_in_vain(scenario),
        );
        let slots = plan.tree.slots();
        let round_seconds = scenario.round_slots() * slots.blocktime();
        let mut seen = watch.seen();
        seen.start = plan.start;
        seen.alive = liveness.map(|asked| Alive::new(asked, plan.start, round_seconds));
        for node in irregulars(scenario) {
            seen.nodes[node.0 as usize].irregular = true;
        }
        let keys = plan.nodes.iter().map(|node| node.forger.as_ref().map(|keys| *keys.public()));
        seen.keys = keys.collect();
        seen.slot_ends = SimTime::from_seconds(slots.start(Slot(slots.slot(plan.start.seconds()).0 + 1)));
        drop(seen);
        watch
    }

    /// A watch over a run of `nodes` nodes that begin on `tip`. It does not judge the conduct of `deviants`, nor whether the relays of
    /// the nodes that `may_forge_in_vain` accept their blocks.
    pub fn new(
        tree: Arc<BlockTree>,
        tip: &Arc<Link>,
        nodes: usize,
        deviants: &BTreeSet<NodeId>,
        may_forge_in_vain: &BTreeSet<NodeId>,
    ) -> Self {
        let node = |index: usize| Node {
            tip: tip.clone(),
            moved: None,
            grew_from: tip.clone(),
            deviant: deviants.contains(&NodeId(index as u32)),
            may_forge_in_vain: may_forge_in_vain.contains(&NodeId(index as u32)),
            irregular: false,
            forged: None,
            forged_taken: false,
            forged_up_to: BTreeMap::new(),
            pending: BTreeMap::new(),
            removed: Vec::new(),
            taken: BTreeMap::new(),
            evicted: BTreeSet::new(),
            facts: Facts::default(),
            losses: Losses::default(),
        };
        let (start, finals) = (SimTime::from_seconds(tree.slots().start(Slot(1))), FinalBlocks::new(&tree));
        Self(Arc::new(Mutex::new(Observations {
            tree,
            start,
            nodes: (0..nodes).map(node).collect(),
            tips: Tips::new(nodes, tip),
            judged: IndexMap::default(),
            last: None,
            findings: Vec::new(),
            alive: None,
            slot_ends: SimTime::default(),
            sometimes: Sometimes::default(),
            told: VecDeque::new(),
            best: tip.clone(),
            finals,
            sights: Sights::default(),
            keys: vec![None; nodes],
            heard: Heard::default(),
        })))
    }

    /// Returns an independent copy, for a copy of the run that continues from this instant.
    pub fn apart(&self) -> Self {
        Self(Arc::new(Mutex::new(self.seen().clone())))
    }

    /// Returns the observations so far.
    pub fn seen(&self) -> MutexGuard<'_, Observations> {
        self.0.lock().expect("no thread panics while holding it")
    }
}

impl Observations {
    /// The first finding of each invariant and cause, in the order found.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the number of times that interesting things happened.
    pub fn sometimes(&self) -> &Sometimes {
        &self.sometimes
    }

    /// Counts the sights that hold for a whole run, or that are known only at its end.
    pub fn close(&mut self, scenario: &Scenario, tally: &Tally) {
        self.sights.of_run(scenario, tally, &mut self.sometimes);
    }

    /// Returns true if a node forges for a delegate of the round that a block is followed in.
    pub(super) fn has_forgers(&self, link: &Arc<Link>) -> bool {
        let applied = self.tree.applied(link);
        let has_node = |key: &PublicKey| self.keys.contains(&Some(*key));
        applied.state.round().members.iter().any(|member| has_node(&member.public_key))
    }

    /// The highest block any node has taken in; the first of equals.
    pub fn best(&self) -> &Arc<Link> {
        &self.best
    }

    /// Returns the tips of the nodes.
    pub fn tips(&self) -> &Tips {
        &self.tips
    }

    /// Liveness, where it is asked for.
    pub fn alive(&self) -> Option<&Alive> {
        self.alive.as_ref()
    }

    /// Asks for liveness at the end of each slot that is over.
    pub fn look_until(&mut self, now: SimTime) {
        if now < self.slot_ends {
            return;
        }
        let Some(mut alive) = self.alive.take_if(|alive| !alive.is_decided()) else { return };
        while self.slot_ends <= now {
            alive.look(self.slot_ends, self);
            self.slot_ends = self.slot_ends + Duration::from_secs(self.tree.slots().blocktime().into());
        }
        self.alive = Some(alive);
    }

    /// Proves, from the world at the end of a slot, why a network does not come to one chain or stands still, if that was just
    /// found.
    pub(super) fn prove(&mut self, stage: &InlineStage) {
        let is_unproved =
            |finding: &Finding| finding.certificate == Certificate::None && is_liveness(finding.invariant);
        if !self.findings.iter().any(is_unproved) {
            return;
        }
        let shown = match self.tree.rules().is_of_the_reference() {
            true => network::held(stage, &self.keys),
            false => Err("no proof is known for the fork choice of these rules".to_owned()),
        };
        for finding in self.findings.iter_mut().filter(|finding| is_unproved(finding)) {
            finding.certificate = match shown.clone() {
                Ok(NetworkProof::Held(words)) => Certificate::Shown(words),
                Ok(NetworkProof::Late(words)) if finding.invariant == conduct::CONVERGED.name => {
                    "one chain comes late".clone_into(&mut finding.cause);
                    Certificate::Shown(words)
                }
                Ok(NetworkProof::Late(why)) | Err(why) => Certificate::Missing(why),
            };
        }
    }

    /// Records a finding, if it is the first of its invariant.
    pub fn find(&mut self, conduct: &Conduct, now: SimTime, node: Option<NodeId>, block: Option<&Link>, what: String) {
        self.find_for(conduct, "", now, node, block, what);
    }

    /// Records a finding, if it is the first of its invariant and cause.
    pub fn find_for(
        &mut self,
        conduct: &Conduct,
        cause: impl Into<String>,
        now: SimTime,
        node: Option<NodeId>,
        block: Option<&Link>,
        what: String,
    ) {
        self.find_proved(conduct, (cause, Certificate::None), now, node, block, what);
    }

    /// Records a finding, if it is the first of its invariant and cause with a certificate, or without.
    pub(super) fn find_proved(
        &mut self,
        conduct: &Conduct,
        (cause, certificate): (impl Into<String>, Certificate),
        now: SimTime,
        node: Option<NodeId>,
        block: Option<&Link>,
        what: String,
    ) {
        let (block, height) = (block.map(|link| link.id().to_string()), block.map(|link| link.height()));
        self.found(Finding {
            invariant: conduct.name,
            origin: conduct.source,
            cause: cause.into(),
            node,
            block,
            height,
            at: now,
            after_seconds: 0.0,
            what,
            certificate,
            story: Vec::new(),
        });
    }

    /// Records a finding, if it is the first of its invariant and cause with a certificate, or without. Adds its time and the events
    /// before it.
    pub(super) fn found(&mut self, mut finding: Finding) {
        if !self.findings.iter().any(|known| known.signature() == finding.signature()) {
            finding.after_seconds = finding.at.seconds_since(self.start);
            finding.story = self.told.iter().map(|told| told.in_words(&self.tree)).collect();
            self.findings.push(finding);
        }
    }

    fn tell(&mut self, now: SimTime, node: NodeId, event: &Event) {
        if StoryEntry::is_worth_telling(event) {
            if self.told.len() == TOLD {
                self.told.pop_front();
            }
            self.told.push_back(StoryEntry { now, node: Some(node), what: event.clone().into() });
        }
    }

    fn applied(&mut self, now: SimTime, node: NodeId, link: &Arc<Link>) {
        if !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, link)) {
            let applied = self.tree.applied(link);
            match self.judged.get(&link.id()) {
                None => self.judge(now, node, link, &applied),
                Some(first) if !Arc::ptr_eq(first, &applied) => self.compare(now, node, link, &first.clone(), &applied),
                Some(_) => {}
            }
            self.last = Some(link.clone());
        }
        let known = &self.nodes[node.0 as usize];
        let slots = self.tree.slots();
        let (slot, running) = (slots.slot(link.block().header.timestamp), slots.slot(now.seconds()));
        if slot > running && !known.deviant {
            let what = format!("it took in a block of slot {slot} in slot {running}");
            self.find(&conduct::EARLY, now, Some(node), Some(link), what);
        }
        let before = &self.nodes[node.0 as usize].tip;
        if link.parent().is_none_or(|parent| !parent.is(before)) {
            let what = format!("it stood on {:?} and took in {link:?}", before);
            self.find(&conduct::CHAIN, now, Some(node), Some(link), what);
        }
        let known = &mut self.nodes[node.0 as usize];
        known.facts.takes(now, &self.tree, &known.tip, link);
        known.losses.takes(now, link);
        if known.moved != Some(now) {
            known.grew_from = known.tip.clone();
        }
        (known.tip, known.moved) = (link.clone(), Some(now));
        known.forged_taken |= known.forged.as_ref().is_some_and(|(_, block)| block.id == link.id());
        if link.height() > self.best.height() {
            self.best = link.clone();
        }
    }

    /// Judges a block. Called once for each block.
    fn judge(&mut self, now: SimTime, node: NodeId, link: &Arc<Link>, applied: &Arc<Applied>) {
        self.judged.insert(link.id(), applied.clone());
        self.heard.takes(link);
        if let Some(sibling) = link.parent().filter(|parent| parent.height() < self.best.height()) {
            self.sometimes.count(conduct::FORK);
            let slots = self.tree.slots();
            let same_slot = self.best.ancestor(link.height()).is_some_and(|other| {
                slots.slot(other.block().header.timestamp) == slots.slot(link.block().header.timestamp)
            });
            if same_slot && sibling.height().next() == link.height() {
                self.sometimes.count(conduct::DOUBLE);
            }
        }
        if !link.missing().is_empty() {
            self.sometimes.count(conduct::MISSED);
        }
        if let Some(end) = link.round_end()
            && let Some(parent) = link.parent()
        {
            let old = self.tree.applied(&parent).state.round().clone();
            let keys =
                |round: &Round| -> BTreeSet<_> { round.members.iter().map(|member| member.public_key).collect() };
            if keys(&old) != keys(&end.created) {
                self.sometimes.count(conduct::NEW_MEMBER);
            }
        }
        for transaction in &link.block().transactions {
            self.sometimes.count(transaction.kind().name());
        }
        self.sights.block(&self.tree, link, &mut self.sometimes);
        self.judge_final(now, node, link, applied);
        let twice = link.parent().and_then(|parent| {
            link.block().transactions.iter().find(|one| self.tree.block_of(&parent, &one.id()).is_some())
        });
        if let Some(one) = twice {
            let what = format!("transaction {} was on the chain already", one.id());
            self.find(&conduct::ONCE, now, Some(node), Some(link), what);
        }
        if let Err(violation) = check_step(&self.tree, link, &applied.state) {
            self.found(Finding {
                invariant: violation.invariant,
                origin: violation.origin,
                cause: String::new(),
                node: Some(node),
                block: Some(violation.block),
                height: Some(violation.height),
                at: now,
                after_seconds: 0.0,
                what: violation.what,
                certificate: Certificate::None,
                story: Vec::new(),
            });
        }
    }

    /// Judges that the final blocks of all nodes are on one chain, and that the agreed height does not fall.
    fn judge_final(&mut self, now: SimTime, node: NodeId, link: &Arc<Link>, applied: &Applied) {
        if let Err(own) = self.finals.take(link, &applied.state) {
            let what = format!("{own:?} is final on its chain, and {:?} is on another one", self.finals.highest());
            self.find_for(&conduct::FINAL, self.beyond_finality(link), now, Some(node), Some(link), what);
        }
        let Some(parent) = link.parent() else { return };
        let before = self.tree.applied(&parent).state.finality().agreed();
        let agreed = applied.state.finality().agreed();
        if agreed < before {
            let what = format!("the agreed height is {agreed}, and before this block it was {before}");
            self.find(&conduct::AGREED, now, Some(node), Some(link), what);
        }
    }

    /// Returns the condition without which the rule of finality promises nothing for this chain beside that of the highest final block.
    /// An empty text means that the rule promises one chain.
    fn beyond_finality(&self, link: &Arc<Link>) -> &'static str {
        let keys = |round: &Round| -> BTreeSet<_> { round.members.iter().map(|member| member.public_key).collect() };
        let (other, common) = (self.finals.tip(), common_height(link, self.finals.tip()));
        let parting = link.ancestor(common).expect("two chains share genesis");
        let members = keys(self.tree.applied(&parting).state.round());
        // The members of the common block's round, and of each later round.
        let rounds = |tip: &Arc<Link>| -> Vec<BTreeSet<_>> {
            let above = iter::successors(tip.parent(), |link| link.parent()).take_while(|link| link.height() > common);
            let mut rounds: Vec<_> = above.filter_map(|link| link.round_end().map(|end| keys(&end.created))).collect();
            rounds.push(members.clone());
            rounds.reverse();
            rounds
        };
        let (own, others) = (rounds(link), rounds(other));
        let differ = |round: usize| own[round.min(own.len() - 1)] != others[round.min(others.len() - 1)];
        // Members that wait until they are final do not differ, unless a milestone wants another number of them.
        let waits = self.tree.rules().ledger.election == ElectionRule::WhenFinal;
        let may_differ = !waits || own.iter().chain(&others).any(|round| round.len() != members.len());
        let nodes = self.nodes.iter().zip(&self.keys);
        let irregular = nodes.filter(|(node, key)| node.irregular && key.is_some_and(|key| members.contains(&key)));
        let is_a_third = 3 * irregular.count() >= members.len();
        match () {
            () if !is_a_third && may_differ && (0..own.len().max(others.len())).any(differ) => {
                "the chains have other delegates"
            }
            () if !self.tree.rules().ledger.finality.asks_forgers() => {
                "a delegate counts on each chain on which it forges"
            }
            () if self.tree.rules().has_known_fault() => "the rules have a known fault",
            () if is_a_third => "a third of the delegates breaks the rules",
            () => "",
        }
    }

    /// Compares the states that two nodes computed for one block.
    fn compare(&mut self, now: SimTime, node: NodeId, link: &Arc<Link>, first: &Applied, second: &Applied) {
        let same = first.state.wallets().eq(second.state.wallets()) && first.state.round() == second.state.round();
        if !same {
            let what = "another node computed another state for this block".to_owned();
            self.find(&conduct::AGREEMENT, now, Some(node), Some(link), what);
        }
    }

    fn refused(&mut self, now: SimTime, node: NodeId, why: &BlockRejected) {
        self.sometimes.count(conduct::REFUSED);
        self.nodes[node.0 as usize].losses.refuses(now, why.id());
        let known = &self.nodes[node.0 as usize];
        let own = known.forged.as_ref().filter(|(_, block)| block.id == why.id() && !known.forged_taken);
        // Where too few are left for the next round, the block that ends this one is refused, by any forger.
        let is_judged =
            !(known.deviant || known.may_forge_in_vain) || matches!(why, BlockRejected::TooFewDelegates { .. });
        if let Some((_, block)) = own.filter(|_| is_judged) {
            let proof = self.refusal_proof(now, known, block, why);
            let cause = match why {
                BlockRejected::NotApplicable { source: ApplyError::NotEnoughDelegates, .. } => {
                    &conduct::RELAY_RESIGNATION
                }
                BlockRejected::NotApplicable { source: ApplyError::IpfsHashAlreadyExists, .. } => &conduct::RELAY_IPFS,
                BlockRejected::TooFewDelegates { .. } => &conduct::ENOUGH,
                _ => &conduct::RELAY,
            };
            let rule = match why {
                BlockRejected::NotApplicable { source, .. } => kind_of(source),
                why => kind_of(why),
            };
            self.find_proved(cause, (rule, proof.into()), now, Some(node), None, why.to_string());
        }
    }

    fn rolled_back(&mut self, now: SimTime, node: NodeId, from: &Arc<Link>, to: &Arc<Link>, why: RollbackCause) {
        self.sometimes.count(conduct::ROLLBACK);
        let known = &mut self.nodes[node.0 as usize];
        known.facts.leaves(now, from);
        (known.tip, known.moved, known.grew_from) = (to.clone(), Some(now), to.clone());
        let depth = from.height().0 - to.height().0;
        let applied = self.tree.applied(from);
        let last_final = applied.state.finality().height();
        if to.height() < last_final && why != RollbackCause::Asked {
            let what = format!("it went back to height {}, and {last_final} was final", to.height());
            self.find(&conduct::FINAL, now, Some(node), Some(from), what);
        }
        let round = applied.state.round().position.blocks();
        // Where a rule says which blocks are final, all others may be left.
        if depth > round && self.tree.rules().ledger.finality == FinalityRule::None {
            let what = format!("it left {depth} blocks behind, a round has {round}");
            let proof = self.rollback_proof(now, node, from, to, why);
            self.find_proved(&conduct::SHALLOW, (why.to_string(), proof), now, Some(node), Some(from), what);
        }
        let (common, shared_with) = match self.tree.rules().node.fork_choice.goes_to_the_stronger() {
            true => (self.common_with_stronger(now, from, to), "no stronger chain leaves"),
            false => (self.common_with_others(node, from), "most other nodes share"),
        };
        if let Some(common) = common
            && to.height() < common
        {
            let needless = common.0 - to.height().0;
            let what = format!(
                "it went from height {} to {}, though {shared_with} its chain up to {common}: {needless} blocks \
                 too deep",
                from.height(),
                to.height()
            );
            let proof = self.rollback_proof(now, node, from, to, why);
            self.find_proved(&conduct::COMMON, (why.to_string(), proof), now, Some(node), Some(from), what);
        }
    }

    /// Returns the highest height that a chain has in common with a stronger one, or its own height if no chain is stronger. `None` if a
    /// stronger one parts from it right above `to`. The chains are those of live nodes and those that a node left within the slot
    /// before.
    fn common_with_stronger(&self, now: SimTime, from: &Arc<Link>, to: &Arc<Link>) -> Option<Height> {
        let strength = |tip: &Arc<Link>| Strength::of(tip, &self.tree.applied(tip).state);
        let own = strength(from);
        let left = self.nodes.iter().flat_map(|node| self.left_lately(now, node));
        let tips = self.tips.of_live().map(|(_, tip)| tip).chain(left);
        let stronger = tips.filter(|tip| !from.descends_from(tip) && strength(tip) > own);
        let commons: Vec<Height> = stronger.map(|tip| common_height(tip, from)).collect();
        let highest = commons.iter().max().copied().unwrap_or(from.height());
        (!commons.contains(&to.height())).then_some(highest)
    }

    /// The height up to which most of the other nodes share a chain.
    fn common_with_others(&self, node: NodeId, from: &Arc<Link>) -> Option<Height> {
        let others = self.nodes.iter().enumerate().filter(|(index, _)| *index != node.0 as usize);
        let mut shared: Vec<_> = others.map(|(_, other)| common_height(&other.tip, from)).collect();
        shared.sort_unstable();
        shared.get(shared.len() / 2).copied()
    }
}

impl Observer for Watch {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        let mut guard = self.seen();
        let seen = &mut *guard;
        seen.look_until(now);
        seen.tell(now, node, event);
        if is_of_pool(event) {
            seen.pool_speaks(now, node);
        }
        match event {
            Event::PoolRemoved(_) => {}
            // The removed transactions did not fit beside those chosen before them.
            Event::BlockForged(block) => seen.judge_removals(now, node, event, Some(block)),
            _ => seen.judge_removals(now, node, event, None),
        }
        seen.tips.follow(node, event);
        match event {
            Event::BlockApplied(link) => seen.applied(now, node, link),
            Event::BlockForged(block) => {
                let slot = seen.tree.slots().slot(block.header.timestamp);
                seen.forged(now, node, slot, block);
            }
            Event::BlockRefused(why) => seen.refused(now, node, why),
            Event::RolledBack { from, to, cause } => seen.rolled_back(now, node, from, to, *cause),
            Event::ForgingSuspended { .. } => seen.sometimes.count(conduct::SUSPENDED),
            Event::HealthChecked { peers, forked } => {
                seen.sometimes.count(conduct::HEALTH);
                seen.nodes[node.0 as usize].facts.checks(now, *peers, *forked);
            }
            Event::PoolAdded(added) => seen.pool_added(now, node, added),
            Event::PoolRemoved(id) => seen.pool_removed(now, node, id),
            Event::PoolExpired(one) | Event::PoolPurged(one) => {
                seen.nodes[node.0 as usize].pending.remove(&one.id());
            }
            Event::PoolEvicted(one) => seen.pool_evicted(now, node, one),
            Event::PoolReplaced(kept) => seen.pool_replaced(now, node, kept),
            Event::PoolRejected(rejected) => seen.pool_rejected(now, node, rejected),
            Event::PeerRemoved(peer) => seen.sights.removed(*peer),
            Event::BlockReceived(block) | Event::BlockDisregarded(block) => seen.heard.hears(block),
            Event::BlockReverted(link) => seen.nodes[node.0 as usize].losses.reverts(link),
            Event::PeerAdded(_) | Event::ForgerStarted { .. } | Event::ForgerFailed { .. } => {}
        }
    }

    fn restless(&mut self, now: SimTime) {
        let what = format!("after {INSTANT_LIMIT} inputs more the clock still stands there");
        self.seen().find(&conduct::RESTS, now, None, None, what);
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let mut guard = self.seen();
        let seen = &mut *guard;
        seen.look_until(now);
        if let NetworkEvent::NodeDown { node, .. } = event {
            // Other nodes act for a while on its last reports about its chain.
            let known = &mut seen.nodes[node.0 as usize];
            known.facts.leaves(now, &known.tip);
        }
        seen.tips.follow_network(event);
        seen.sights.network(event, &seen.tree, seen.best.height(), &mut seen.sometimes);
        if let Some(told) = StoryEntry::of_network(now, event) {
            if seen.told.len() == TOLD {
                seen.told.pop_front();
            }
            seen.told.push_back(told);
        }
    }

    fn look(&mut self, outlook: &Outlook<'_>) {
        let mut seen = self.seen();
        for stuck in stuck(outlook) {
            seen.find_for(&conduct::WAKER, stuck.cause(), outlook.now(), Some(stuck.node), None, stuck.to_string());
        }
    }

    fn looks(&self) -> bool {
        true
    }
}

/// An event that a pool tells.
fn is_of_pool(event: &Event) -> bool {
    matches!(
        event,
        Event::PoolAdded(_)
            | Event::PoolRejected(_)
            | Event::PoolRemoved(_)
            | Event::PoolExpired(_)
            | Event::PoolEvicted(_)
            | Event::PoolPurged(_)
            | Event::PoolReplaced(_)
    )
}

/// The name of an error's kind.
fn kind_of(error: &impl std::fmt::Debug) -> String {
    format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}
