//! The certificate of a network that stays split, or stands still: why each live node stays where it is.
//!
//! The checker plays a copy of the run on, for at most a quarter of an hour, until each live node has been *held* once. A node is held
//! at an instant at which
//!
//! 1. each of its phases has an end ahead (`check::wakers`), and its synchronisation is idle;
//! 2. nothing of its own is under way, and no message on its way to it reports a tip or contains a block;
//! 3. its records of its peers are true: the chains of node and peer have the block in common that the record names. Or the node has no
//!    reason to ask its peers, since its chain grows, its rounds miss too few slots for doubt, and its delegate is not active;
//! 4. by the real tips of its peers, it does not leave its chain (consensus.md 3.5). Or a health check within the quarter of an hour
//!    has counted the peers correctly with this result, since peers come and go. Or its chain gives it no reason for a health check,
//!    since its rounds miss too few slots;
//! 5. it applies blocks and is not behind on its chain. Or its delegate may not forge by its numbers (consensus.md 2.2), or has counted
//!    its peers correctly in its turn with this result.
//!
//! A node at the border of two chains may have half of its peers on each. It leaves its chain, and chance decides whose blocks it
//! applies next. With blocks of both chains it mistakes one for double forging (consensus.md 3.5, 3.6). It counts as held if the real
//! tips of its peers, or a block of the other chain, made it leave, and if it is at rest again on blocks that it has applied since.
//!
//! If the copy converges to one chain through such nodes alone, the cause is another one: nothing holds the network, and convergence by
//! chance takes longer than the time that it had.
//!
//! If a node leaves its chain for another reason, all earlier observations are void. The proof fails if a node has a phase without an
//! end, or forges without a quorum. A peer counts by its present tip or by its tip a second before, since several nodes may leave their
//! chains in one second. A forger may also count a peer by its own record, since a verification may last longer than the race before
//! forging (consensus.md 2.2). A leaving node may also count a peer by its record, if the peer stood there within the minute that a
//! verification may take. So these are never held: a node that waits for an event that never comes, a node whose numbers require it to
//! forge or to leave, and a network that is converging.

use super::numbers::{LOOKS, Numbers, false_record, is_parted};
use crate::{
    actors::{
        Event, NodeId, RollbackCause, SimTime,
        peer::VerificationResult,
        wait::{Phase, Wait},
    },
    check::wakers::stuck,
    ledger::{BlockTree, Link},
    protocol::{Height, PublicKey},
    sim::{Observer, Outlook, Tips, stage::inline::InlineStage},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

/// The longest time for which the copy is played on, in seconds. It exceeds the interval between two health checks.
const PATIENCE: u64 = 900;
/// Blocks that a node may be behind because they are on their way.
const ON_THE_WAY: u32 = 2;

/// The content of the certificate, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NetworkProof {
    /// Each node is held.
    Held(String),
    /// The nodes come to one chain later.
    Late(String),
}

/// Tries to prove why each node of a run stays where it is. `keys` are those of the nodes' delegates.
///
/// # Errors
/// Says which node is not held, and why.
pub(crate) fn held(stage: &InlineStage, keys: &[Option<PublicKey>]) -> Result<NetworkProof, String> {
    let mut vigil = Vigil::new(stage, keys);
    for second in 0..=PATIENCE {
        if second > 0 {
            vigil.play_on()?;
        }
        if vigil.tips().is_converged() {
            let words = format!("the nodes come to one chain {second} s later");
            return match !vigil.is_void && !vigil.leavers.is_empty() {
                true => Ok(NetworkProof::Late(format!("{words}, and each node that left its chain had to leave it"))),
                false => Err(format!("{words}: nothing holds them")),
            };
        }
        if vigil.look()? {
            return Ok(NetworkProof::Held(vigil.proof()));
        }
    }
    Err(vigil.missing())
}

/// A copy of the run that is played on, and the nodes that have been held.
struct Vigil<'a> {
    keys: &'a [Option<PublicKey>],
    stage: InlineStage,
    tree: Arc<BlockTree>,
    /// The height of each node at the start of the copy, or after its last rollback. Blocks above it are new.
    began: BTreeMap<NodeId, Height>,
    notes: Notes,
    /// Nodes whose health check counted their peers right, and found too few on other chains.
    stays: BTreeSet<NodeId>,
    /// Nodes whose delegates counted their peers right, and may not forge.
    waits: BTreeSet<NodeId>,
    /// Nodes that had to leave their chain, and did.
    leavers: BTreeSet<NodeId>,
    /// True if a node left its chain without having to.
    is_void: bool,
    /// The tips of all nodes in the last seconds. The last entry is the present one.
    looks: VecDeque<Tips>,
    /// Why a node stays, of those held so far.
    held: BTreeMap<NodeId, String>,
    why_not: BTreeMap<NodeId, String>,
}

/// The events of nodes in a second played after the run.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Second>>);

/// The events of a second.
#[derive(Default)]
struct Second {
    /// Nodes that left their chains: from which block, to which, and why.
    left: Vec<(NodeId, Arc<Link>, Arc<Link>, RollbackCause)>,
    /// By node, the peers that a health check found, and those of them on other chains.
    checked: BTreeMap<NodeId, (u32, u32)>,
    /// By node that may not forge, the peers reached, and those of them in quorum.
    suspended: BTreeMap<NodeId, (u32, u32)>,
    forged: BTreeSet<NodeId>,
}

impl Observer for Notes {
    fn observe(&mut self, _: SimTime, node: NodeId, event: &Event) {
        let mut second = self.0.lock().expect("no thread panics while holding it");
        match event {
            Event::RolledBack { from, to, cause } => second.left.push((node, from.clone(), to.clone(), *cause)),
            Event::HealthChecked { peers, forked } => drop(second.checked.insert(node, (*peers, *forked))),
            Event::ForgingSuspended { reached, in_quorum } => {
                second.suspended.insert(node, (*reached, *in_quorum));
            }
            Event::BlockForged(_) => drop(second.forged.insert(node)),
            _ => {}
        }
    }
}

impl<'a> Vigil<'a> {
    fn new(stage: &InlineStage, keys: &'a [Option<PublicKey>]) -> Self {
        let mut stage = InlineStage::at(&stage.moment());
        let notes = Notes::default();
        stage.watch(Box::new(notes.clone()));
        let began = stage.world().tips().of_live().map(|(node, tip)| (node, tip.height())).collect();
        let tree = stage.world().tree().clone();
        let (held, why_not) = (BTreeMap::new(), BTreeMap::new());
        let (stays, waits, leavers) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let looks = VecDeque::from([stage.world().tips().clone()]);
        Self { keys, stage, tree, began, notes, stays, waits, leavers, is_void: false, looks, held, why_not }
    }

    fn tips(&self) -> &Tips {
        self.stage.world().tips()
    }

    /// Plays a second.
    ///
    /// # Errors
    /// A node forged without a quorum.
    fn play_on(&mut self) -> Result<(), String> {
        let live = self.tips().of_live().map(|(node, _)| node);
        let before: BTreeMap<NodeId, _> = live.map(|node| (node, (self.records(node), self.numbers(node)))).collect();
        self.stage.run_until(self.stage.world().now() + Duration::from_secs(1));
        let second = std::mem::take(&mut *self.notes.0.lock().expect("no thread panics while holding it"));
        let rules = self.tree.rules().clone();
        if self.looks.len() == LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back(self.tips().clone());
        for node in second.forged {
            let last_known = before.get(&node).map_or(&[][..], |(records, _)| records.as_slice());
            let numbers = Numbers::of_forger(last_known, &self.records(node), self.tips().of(node), self.around());
            if !numbers.may_have_quorum(&rules) {
                return Err(format!("{node} forges without a quorum: {}", numbers.quorum(&rules)));
            }
        }
        // A node counts at some instant of the second.
        let around = |node| before.get(&node).map(|(_, numbers)| *numbers).into_iter().chain([self.numbers(node)]);
        let (mut stays, mut waits) = (Vec::new(), Vec::new());
        for (node, (peers, forked)) in second.checked {
            let so = |numbers: Numbers| (numbers.peers, numbers.forked) == (peers, forked) && !numbers.leaves(&rules);
            if around(node).any(so) {
                stays.push(node);
            }
        }
        for (node, (reached, in_quorum)) in second.suspended {
            let counted = |numbers: Numbers| (numbers.peers, numbers.in_quorum) == (reached, in_quorum);
            if around(node).any(|numbers| counted(numbers) && !numbers.has_quorum(&rules)) {
                waits.push(node);
            }
        }
        self.stays.extend(stays);
        self.waits.extend(waits);
        for (node, from, to, cause) in second.left {
            let had_to = match cause {
                RollbackCause::Forked => {
                    let known = before.get(&node).map_or(&[][..], |(records, _)| records.as_slice());
                    Numbers::of_leaver(known, &from, &self.looks).leaves(&rules)
                }
                RollbackCause::DoubleForging => self.has_rival(&from),
                RollbackCause::NeverReady | RollbackCause::Stronger | RollbackCause::Asked => false,
            };
            if had_to {
                self.leavers.insert(node);
                self.held.remove(&node);
            } else {
                [&mut self.stays, &mut self.waits, &mut self.leavers].into_iter().for_each(BTreeSet::clear);
                self.held.clear();
                self.is_void = true;
            }
            self.began.insert(node, to.height());
            self.why_not.insert(node, format!("it leaves its chain ({cause}) later"));
        }
        Ok(())
    }

    /// Returns the tips of all nodes at the beginning and at the end of the last second.
    fn around(&self) -> impl Iterator<Item = &Tips> + Clone {
        self.looks.iter().rev().take(2)
    }

    /// Returns true if some chain has a block at this height or the next, by the owner of its slot, that does not follow this one. A
    /// node that stands here and downloads that block mistakes it for double forging. Source: consensus.md 3.6.
    fn has_rival(&self, from: &Arc<Link>) -> bool {
        let (slots, applied) = (self.tree.slots(), self.tree.applied(from));
        let is_rival = |link: &Arc<Link>| {
            let header = &link.block().header;
            is_parted(from, link) && applied.state.round().owns(slots.slot(header.timestamp), &header.generator)
        };
        let heights = [from.height(), from.height().next()];
        self.around()
            .flat_map(Tips::distinct)
            .any(|tip| heights.iter().filter_map(|height| tip.ancestor(*height)).any(|link| is_rival(&link)))
    }

    fn records(&self, node: NodeId) -> Vec<(NodeId, VerificationResult)> {
        self.stage.peer(node).records().collect()
    }

    fn numbers(&self, node: NodeId) -> Numbers {
        Numbers::of(&self.records(node), self.tips().of(node), self.tips())
    }

    /// Checks each node that was not held yet. Returns true if all nodes have been held by now.
    ///
    /// # Errors
    /// A node waits for an event that never comes.
    fn look(&mut self) -> Result<bool, String> {
        let live: Vec<NodeId> = self.tips().of_live().map(|(node, _)| node).collect();
        let outlook = self.stage.outlook();
        if let Some(stuck) = stuck(&outlook).first() {
            return Err(format!("{}: {stuck}", stuck.node));
        }
        let restless = restless(&outlook);
        for node in &live {
            if !self.held.contains_key(node) {
                if let Some(why) = restless.get(node) {
                    self.why_not.entry(*node).or_insert_with(|| why.clone());
                    continue;
                }
                match self.reason(*node) {
                    Ok(words) => drop(self.held.insert(*node, words)),
                    Err(why) => drop(self.why_not.insert(*node, why)),
                }
            }
        }
        Ok(live.iter().all(|node| self.held.contains_key(node)))
    }

    /// Returns the reason why a quiet node stays where it is. The error is the reason why it is not held.
    fn reason(&self, node: NodeId) -> Result<String, String> {
        let (tips, rules) = (self.tips(), self.tree.rules());
        let (own, records) = (tips.of(node), self.records(node));
        let ahead = tips.distinct().filter(|tip| tip.descends_from(own)).map(|tip| tip.height().0 - own.height().0);
        if let Some(ahead) = ahead.max().filter(|ahead| *ahead > ON_THE_WAY) {
            return Err(format!("it is {ahead} blocks behind on its chain"));
        }
        let grows = self.began.get(&node).is_some_and(|began| own.height() > *began);
        let (missed, seats) = (self.most_missed(own), self.tree.schedule().at(own.height()).delegates);
        let slots = format!("its chain misses {missed} slots of a round of {seats}");
        let doubts = !grows || 3 * (missed + 1) >= seats;
        let is_active = self.is_active(node, own);
        if !doubts && !is_active {
            return Ok(format!("{slots}, too few to doubt it, and its delegate is not active"));
        }
        if let Some(why) = false_record(&records, own, tips) {
            return Err(why);
        }
        let numbers = Numbers::of(&records, own, tips);
        let (doubt, quorum) = (numbers.doubt(rules), numbers.quorum(rules));
        let leaves = numbers.leaves(rules) && !self.stays.contains(&node);
        match (grows, leaves) {
            (true, _) if self.leavers.contains(&node) => {
                Ok("it had to leave its chain, and took blocks again".to_owned())
            }
            (true, false) => Ok(doubt),
            (true, true) if !doubts => Ok(format!("{slots}, too few to doubt it")),
            (true, true) => Err(format!("it should leave its chain: {doubt}, and {slots}")),
            (false, true) => Err(format!("it should leave its chain: {doubt}")),
            (false, false) if is_active && numbers.may_have_quorum(rules) && !self.waits.contains(&node) => {
                Err(format!("it should forge: {quorum}"))
            }
            (false, false) => Ok(format!("{doubt}; {quorum}")),
        }
    }

    /// Returns true if the node's delegate is active in the round of a block.
    fn is_active(&self, node: NodeId, own: &Arc<Link>) -> bool {
        let applied = self.tree.applied(own);
        let is_member = |key| applied.state.round().members.iter().any(|member| member.public_key == key);
        self.keys[node.0 as usize].is_some_and(is_member)
    }

    /// Returns the largest number of slots missed in one round, over the running round and the two before it.
    fn most_missed(&self, own: &Arc<Link>) -> u32 {
        let (mut at, mut rounds, mut missed, mut most) = (Some(own.clone()), 0, 0, 0);
        while let Some(link) = at
            && rounds < 3
        {
            missed += link.missing().len() as u32;
            most = most.max(missed);
            if self.tree.schedule().begins(link.height()) {
                (rounds, missed) = (rounds + 1, 0);
            }
            at = link.parent();
        }
        most
    }

    fn proof(&self) -> String {
        let mut told: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
        for (node, words) in &self.held {
            told.entry(words).or_default().push(*node);
        }
        let words: Vec<String> = told.iter().map(|(words, nodes)| format!("{}: {words}", names(nodes))).collect();
        words.join("; ")
    }

    fn missing(&self) -> String {
        let not_held = self.why_not.iter().filter(|(node, _)| !self.held.contains_key(node));
        let words: Vec<String> = not_held.map(|(node, why)| format!("{node}: {why}")).collect();
        words.join("; ")
    }
}

/// Returns the nodes with an open task or an incoming message that may move their tip, each with the reason.
fn restless(outlook: &Outlook<'_>) -> BTreeMap<NodeId, String> {
    let told = outlook.about_to_hear().into_iter();
    let mut restless: BTreeMap<NodeId, String> =
        told.map(|node| (node, "a message is on its way to it".to_owned())).collect();
    for node in outlook.up() {
        let mut waits = Vec::new();
        outlook.peer(node).iter().for_each(|peer| peer.waits(outlook.local(node), &mut waits));
        let open = waits.iter().find(|wait| !is_rest(wait));
        restless.extend(open.map(|wait| (node, format!("'{}' is under way", wait.phase))));
    }
    restless
}

/// Returns true for a phase in which a peer awaits nothing that may move its tip.
fn is_rest(wait: &Wait) -> bool {
    matches!(wait.phase, Phase::Idle | Phase::BetweenDiscoveries | Phase::Bundling | Phase::PassingOn)
}

/// Returns the names of the first few nodes, and the number of the others.
fn names(nodes: &[NodeId]) -> String {
    const FEW: usize = 4;
    let some: Vec<String> = nodes.iter().take(FEW).map(ToString::to_string).collect();
    match nodes.len().saturating_sub(FEW) {
        0 => some.join(", "),
        more => format!("{} and {more} more", some.join(", ")),
    }
}
