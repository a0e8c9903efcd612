//! Judges each block by each rule, as far as the shown data allow.

use super::{
    BlockClaim, BrokenBlock, ChainReport, ChainRule, Claims, Extent, RuleCount, RuleViolation, Seats, SeatsError,
    incident::Incident,
    story::{ShownBlock, Story},
};
use crate::{
    check::check_step,
    ledger::{BlockTree, Link, Wallet, round::Round},
    protocol::{Block, BlockError, BlockHeader, BlockId, Height, PublicKey},
};
use rayon::prelude::*;
use std::{collections::BTreeMap, sync::Arc};

/// Judges all blocks that are shown. `tree` belongs to their network. It contains the genesis block, or more of the chain, and
/// every block that keeps the rules is added to it. `tell` receives the number of judged blocks and the total, after each block.
///
/// # Errors
/// A list of delegates does not fit the network.
pub fn observe(
    tree: &BlockTree,
    claims: Claims,
    seats: &Seats,
    mut tell: impl FnMut(usize, usize),
) -> Result<ChainReport, SeatsError> {
    let (claims, unreadable) = claims.into_list();
    let config = tree.config();
    claims.par_iter().for_each(|claim| {
        if let Extent::Whole(block) | Extent::Unordered(block) = &claim.extent {
            let _remembered = block.check_content(&config.block_context());
        }
    });
    let mut judge = Judge::new(tree, &claims, seats);
    judge.below.extend(unreadable.iter().filter_map(|one| Some((one.height?, None))));
    let mut verdicts = Vec::with_capacity(claims.len());
    for (index, claim) in claims.iter().enumerate() {
        verdicts.push(judge.judge(claim)?);
        tell(index + 1, claims.len());
    }
    let broken_claims = claims.iter().zip(&verdicts).flat_map(|(claim, verdict)| {
        let broken = |violation: &RuleViolation| BrokenBlock {
            origin: claim.origin.clone(),
            id: Some(claim.id.to_string()),
            height: Some(claim.header.height),
            violation: violation.clone(),
        };
        verdict.violations.iter().map(broken)
    });
    let broken_values = unreadable.iter().map(|one| BrokenBlock {
        origin: one.origin.clone(),
        id: one.id.clone(),
        height: one.height,
        violation: one.violation.clone(),
    });
    let mut broken: Vec<BrokenBlock> = broken_claims.chain(broken_values).collect();
    broken.sort_by_key(|one| one.height);
    let mut names = judge.names.clone();
    names.extend(usernames(tree, &judge.tip));
    let shown: Vec<ShownBlock<'_>> = claims
        .iter()
        .zip(&verdicts)
        .map(|(claim, verdict)| ShownBlock {
            id: verdict.id,
            said: claim.id,
            header: &claim.header,
            round: verdict.round.as_ref(),
            is_applied: tree.link(&verdict.id).is_some_and(|link| is_same_place(&link.block().header, &claim.header)),
            is_broken: !verdict.violations.is_empty(),
        })
        .collect();
    let story = Story::of(tree, &shown, &names);
    let applied_to = Some(judge.tip.height()).filter(|height| *height > Height::GENESIS);
    let heights = claims.iter().map(|claim| claim.header.height);
    Ok(ChainReport {
        blocks: claims.len() + unreadable.len(),
        heights: heights.clone().min().zip(heights.max()),
        applied_to,
        broken,
        rules: held(&verdicts, unreadable.len()),
        incident: Incident::of(tree, &story),
        told_to: story.told_to,
        gaps: story.gaps,
        forks: story.forks,
        doubles: story.doubles,
    })
}

/// The judgement of one block.
struct Verdict {
    /// The id that its header gives, where there is one; else as it is shown.
    id: BlockId,
    is_genesis: bool,
    violations: Vec<RuleViolation>,
    not_judged: BTreeMap<ChainRule, String>,
    /// The round that it is in, if that is known.
    round: Option<Arc<Round>>,
}

impl Verdict {
    fn breaks(&mut self, rule: ChainRule, what: impl Into<String>) {
        self.violations.push(RuleViolation::new(rule, what));
    }

    fn leaves(&mut self, rules: &[ChainRule], why: &str) {
        for rule in rules {
            self.not_judged.entry(*rule).or_insert_with(|| why.to_owned());
        }
    }
}

/// A block that another one may name as its parent.
#[derive(Clone, Copy)]
struct ParentCandidate<'a> {
    header: &'a BlockHeader,
    trust: Trust,
}

/// The strength of the link between a header and the id of a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    /// The header gives another id, or one id is shown with two places.
    Nothing,
    /// Nothing contradicts the id, and nothing confirms it.
    Place,
    /// The header gives the id.
    Header,
}

struct Judge<'a> {
    tree: &'a BlockTree,
    seats: &'a Seats,
    known: BTreeMap<BlockId, ParentCandidate<'a>>,
    /// The block of each height below; `None` where there are several, or it breaks a rule, or nothing ties it to its id.
    below: BTreeMap<Height, Option<BlockId>>,
    /// The highest block that was applied.
    tip: Arc<Link>,
    /// Usernames from the list of delegates, the blocks and the genesis block.
    names: BTreeMap<PublicKey, String>,
}

impl<'a> Judge<'a> {
    fn new(tree: &'a BlockTree, claims: &'a [BlockClaim], seats: &'a Seats) -> Self {
        let genesis = &tree.genesis().block().header;
        let below = BTreeMap::from([(Height::GENESIS, Some(tree.genesis().id()))]);
        let mut known =
            BTreeMap::from([(tree.genesis().id(), ParentCandidate { header: genesis, trust: Trust::Header })]);
        for claim in claims.iter().filter(|claim| claim.header.height != Height::GENESIS) {
            let computed = Self::computed(tree, claim);
            let of_claim = if computed.is_some() { Trust::Nothing } else { Trust::Place };
            for (id, trust) in [(claim.id, of_claim)].into_iter().chain(computed.map(|id| (id, Trust::Header))) {
                let known = known.entry(id).or_insert(ParentCandidate { header: &claim.header, trust });
                if trust > known.trust {
                    *known = ParentCandidate { header: &claim.header, trust };
                } else if trust == Trust::Place && known.trust == trust && *known.header != claim.header {
                    known.trust = Trust::Nothing;
                }
            }
        }
        let shown = claims.iter().filter_map(|claim| Some((claim.header.generator, claim.username.clone()?)));
        let told = seats.names().iter().map(|(key, name)| (*key, name.clone()));
        let names = told.chain(shown).chain(usernames(tree, tree.genesis())).collect();
        Self { tree, seats, known, below, tip: tree.genesis().clone(), names }
    }

    /// Returns the id that the header gives, corrected by the network's exceptions.
    fn computed(tree: &BlockTree, claim: &BlockClaim) -> Option<BlockId> {
        match &claim.extent {
            Extent::Whole(block) | Extent::Unordered(block) => Some(block.id),
            Extent::Header(_) => {
                Some(Block::assemble(claim.header.clone(), Vec::new(), &tree.config().block_context()).id)
            }
            Extent::Place => None,
        }
    }

    fn judge(&mut self, claim: &BlockClaim) -> Result<Verdict, SeatsError> {
        let id = Self::computed(self.tree, claim).unwrap_or(claim.id);
        let is_genesis = claim.header.height == Height::GENESIS;
        let mut verdict =
            Verdict { id, is_genesis, violations: claim.violations.clone(), not_judged: BTreeMap::new(), round: None };
        if is_genesis {
            self.judge_genesis(claim, &mut verdict);
            return Ok(verdict);
        }
        let is_exception = self.judge_content(claim, &mut verdict);
        self.judge_place(claim, is_exception, &mut verdict);
        let parent = claim.header.previous.and_then(|previous| self.tree.link(&previous));
        self.judge_turn(claim, parent.as_ref(), is_exception, &mut verdict)?;
        self.judge_state(claim, parent.as_ref(), is_exception, &mut verdict);
        let named = Some(id).filter(|_| verdict.violations.is_empty() && claim.extent != Extent::Place);
        let below = self.below.entry(claim.header.height).or_insert(named);
        *below = below.filter(|below| Some(*below) == named);
        Ok(verdict)
    }

    fn judge_genesis(&self, claim: &BlockClaim, verdict: &mut Verdict) {
        let genesis = self.tree.genesis();
        verdict.id = genesis.id();
        let own = &genesis.block().header;
        let header = &claim.header;
        let is_place = claim.extent == Extent::Place;
        if claim.id != genesis.id() {
            let what = format!("found the block {}, that of the network is {}", claim.id, genesis.id());
            verdict.breaks(ChainRule::Genesis, what);
        } else if !is_same_place(header, own) || !is_place && header != own {
            verdict.breaks(ChainRule::Genesis, "its header is not that of the network's genesis block");
        }
    }

    /// The rules that need nothing but the block. Returns true if the network lists it as an exception.
    fn judge_content(&self, claim: &BlockClaim, verdict: &mut Verdict) -> bool {
        let context = self.tree.config().block_context();
        if verdict.id != claim.id {
            let what = format!("found {}, the header gives {}", claim.id, verdict.id);
            verdict.breaks(ChainRule::Id, what);
        }
        let is_listed = context.exceptions.blocks.contains(&verdict.id);
        let alone;
        let (block, is_exception) = match &claim.extent {
            Extent::Place => {
                let why = "no more is shown than id, height, previous block, timestamp and generator";
                verdict.leaves(&ChainRule::OF_HEADER, why);
                verdict.leaves(&ChainRule::OF_TRANSACTIONS, why);
                let known = self.known.get(&claim.id).filter(|known| known.trust == Trust::Header);
                if known.is_some_and(|known| !is_same_place(known.header, &claim.header)) {
                    verdict.breaks(ChainRule::Id, "its place is not that of the header that gives the id");
                }
                (None, is_listed)
            }
            Extent::Header(why) => {
                verdict.leaves(&ChainRule::OF_TRANSACTIONS, why);
                alone = Block::assemble(claim.header.clone(), Vec::new(), &context);
                ((!is_listed).then_some(&alone), is_listed)
            }
            Extent::Whole(block) | Extent::Unordered(block) => {
                let ids = block.transactions.iter().map(|one| one.id());
                (Some(&**block), context.exceptions.covers_block(block.id, ids))
            }
        };
        let has_all = matches!(claim.extent, Extent::Whole(_) | Extent::Unordered(_));
        if is_exception && !has_all {
            let why = "the network lists a block of this id as an exception, and not all of it is shown";
            verdict.leaves(&[ChainRule::Signature, ChainRule::Version, ChainRule::Reward], why);
            verdict.leaves(&[ChainRule::Slot, ChainRule::Turn], why);
        }
        let Some(block) = block else { return is_exception };
        for error in block.check_content(&context).iter() {
            let is_of_header = ChainRule::of_content(error)
                .is_some_and(|rule| ChainRule::OF_HEADER.contains(&rule) || rule == ChainRule::Previous);
            match error {
                _ if !has_all && !is_of_header => {}
                BlockError::PayloadHash if matches!(claim.extent, Extent::Unordered(_)) => {}
                // Its sender's wallet may vouch for it.
                BlockError::NotVerified(one) if !one.transaction().signatures.is_empty() => {
                    let why = "a transaction of several signatures needs its sender's wallet";
                    verdict.leaves(&[ChainRule::TransactionSignature], why);
                }
                _ => verdict.violations.extend(RuleViolation::of_content(error)),
            }
            if let BlockError::SignatureEncoding(_) = error {
                let why = "the signature cannot be read, which ends the verification";
                verdict.leaves(&[ChainRule::Version], why);
                verdict.leaves(&ChainRule::OF_TRANSACTIONS, why);
            }
        }
        if matches!(claim.extent, Extent::Unordered(_)) {
            verdict.leaves(&[ChainRule::PayloadHash], NO_ORDER);
        }
        if block.mixes_versions() {
            let what = "some of its transactions are of version 1 and others of version 2";
            verdict.breaks(ChainRule::TransactionVersions, what);
        }
        is_exception
    }

    /// The rules that need the block before.
    fn judge_place(&self, claim: &BlockClaim, is_exception: bool, verdict: &mut Verdict) {
        let header = &claim.header;
        let slots = self.tree.slots();
        let Some(previous) = header.previous else {
            // The content has been judged, unless there is none.
            if claim.extent == Extent::Place {
                verdict.breaks(ChainRule::Previous, "it names no block before it");
            }
            return verdict.leaves(&[ChainRule::Height, ChainRule::Slot], "it names no block before it");
        };
        let link = self.tree.link(&previous);
        let on_tree = link.as_ref().map(|link| ParentCandidate { header: &link.block().header, trust: Trust::Header });
        let Some(before) = on_tree.or_else(|| self.known.get(&previous).copied()) else {
            let below = Height(header.height.0 - 1);
            let shown = self.below.get(&below).copied().flatten();
            // Nothing ties the place alone to the id: it may be on a branch that is not shown.
            if let Some(other) = shown.filter(|_| claim.extent != Extent::Place) {
                verdict
                    .breaks(ChainRule::Previous, format!("found {previous}, the block at height {below} is {other}"));
                return verdict.leaves(&[ChainRule::Height, ChainRule::Slot], "the block before it is not shown");
            }
            let why = "the block before it is not shown";
            return verdict.leaves(&[ChainRule::Previous, ChainRule::Height, ChainRule::Slot], why);
        };
        if before.trust == Trust::Nothing {
            let why = "the header of the block before it is not that of its id";
            return verdict.leaves(&[ChainRule::Height, ChainRule::Slot], why);
        }
        if Some(header.height.0) != before.header.height.0.checked_add(1) {
            let what = format!("found {}, the block before it has height {}", header.height, before.header.height);
            verdict.breaks(ChainRule::Height, what);
        }
        let (slot, last) = (slots.slot(header.timestamp), slots.slot(before.header.timestamp));
        if slot <= last && !is_exception {
            verdict.breaks(ChainRule::Slot, format!("found slot {slot}, the block before it is of slot {last}"));
        }
    }

    fn judge_turn(
        &self,
        claim: &BlockClaim,
        parent: Option<&Arc<Link>>,
        is_exception: bool,
        verdict: &mut Verdict,
    ) -> Result<(), SeatsError> {
        let header = &claim.header;
        verdict.round = match parent {
            Some(parent) => Some(self.tree.applied(parent).state.round().clone()),
            None => {
                let network = self.tree.config().network.pub_key_hash;
                self.seats.round(self.tree.schedule().at(header.height), self.tree.rules().ledger.shuffle, network)?
            }
        };
        let Some(round) = &verdict.round else {
            let why = "the delegates of the round, and for a lottery their vote weights, are known neither from the chain below nor from a list";
            verdict.leaves(&[ChainRule::Turn], why);
            return Ok(());
        };
        let slot = self.tree.slots().slot(header.timestamp);
        if !round.owns(slot, &header.generator) && !is_exception {
            let (found, number) = (named(&self.names, &header.generator), round.number());
            let owner =
                round.owner(slot).map_or("no delegate".to_owned(), |owner| named(&self.names, &owner.public_key));
            let what = format!("found {found}, slot {slot} of round {number} is {owner}'s");
            verdict.breaks(ChainRule::Turn, what);
        }
        Ok(())
    }

    /// The rules that need the state before the block.
    fn judge_state(
        &mut self,
        claim: &BlockClaim,
        parent: Option<&Arc<Link>>,
        is_exception: bool,
        verdict: &mut Verdict,
    ) {
        let block = match &claim.extent {
            Extent::Whole(block) => block,
            Extent::Unordered(_) => return verdict.leaves(&ChainRule::OF_STATE, NO_ORDER),
            _ => return verdict.leaves(&ChainRule::OF_STATE, "its transactions are not all shown"),
        };
        let Some(parent) = parent else {
            return verdict.leaves(
                &ChainRule::OF_STATE,
                "the state before it is not known: not every block from genesis on is shown and in order",
            );
        };
        // A wrong id or hex form beside a valid header does not affect the blocks above.
        if verdict.violations.iter().any(|violation| ![ChainRule::Id, ChainRule::Form].contains(&violation.rule)) {
            return verdict.leaves(&ChainRule::OF_STATE, "it breaks another rule");
        }
        match self.tree.extend(parent, block) {
            Ok(link) => {
                verdict.not_judged.remove(&ChainRule::TransactionSignature);
                let after = self.tree.applied(&link);
                if is_exception {
                    verdict.leaves(&[ChainRule::Checker], "the network lists the block as an exception");
                } else if let Err(violation) = check_step(self.tree, &link, &after.state) {
                    verdict.breaks(ChainRule::Checker, format!("{}: {}", violation.invariant, violation.what));
                }
                if link.height() > self.tip.height() {
                    self.tip = link;
                }
            }
            Err(refused) => {
                let found = RuleViolation::of_refusal(&refused);
                for violation in found {
                    verdict.not_judged.remove(&violation.rule);
                    let later: Vec<ChainRule> =
                        ChainRule::OF_STATE.into_iter().filter(|rule| *rule > violation.rule).collect();
                    verdict.leaves(&later, "it breaks another rule");
                    verdict.violations.push(violation);
                }
            }
        }
    }
}

fn usernames(tree: &BlockTree, at: &Arc<Link>) -> Vec<(PublicKey, String)> {
    let applied = tree.applied(at);
    let named = |wallet: &Arc<Wallet>| Some((wallet.public_key?, wallet.username()?.to_owned()));
    applied.state.delegates().filter_map(named).collect()
}

/// A delegate's name, or its key.
pub(super) fn named(names: &BTreeMap<PublicKey, String>, key: &PublicKey) -> String {
    names.get(key).cloned().unwrap_or_else(|| key.to_string())
}

/// The reason why the rules that need the order of a block's transactions are not judged.
const NO_ORDER: &str = "the order of its transactions is not shown";

fn is_same_place(one: &BlockHeader, other: &BlockHeader) -> bool {
    let place = |header: &BlockHeader| (header.height, header.previous, header.timestamp, header.generator);
    place(one) == place(other)
}

/// Counts how often each rule was judged. The genesis block is compared with the network's own, so it has a rule of its own.
fn held(verdicts: &[Verdict], unreadable: usize) -> Vec<RuleCount> {
    let count = |rule: &ChainRule| {
        let concerns =
            |verdict: &&Verdict| *rule == ChainRule::Form || (*rule == ChainRule::Genesis) == verdict.is_genesis;
        let concerned = verdicts.iter().filter(concerns).count();
        let mut reasons: BTreeMap<&String, usize> = BTreeMap::new();
        verdicts
            .iter()
            .filter_map(|verdict| verdict.not_judged.get(rule))
            .for_each(|why| *reasons.entry(why).or_default() += 1);
        let left: usize = reasons.values().sum();
        let (read, unread) = match rule {
            ChainRule::Form => (unreadable, 0),
            ChainRule::Genesis => (0, 0),
            _ => (0, unreadable),
        };
        let why_not = reasons.into_iter().max_by_key(|(_, count)| *count).map(|(why, _)| why.clone());
        RuleCount {
            rule: *rule,
            source: rule.source(),
            judged: concerned - left + read,
            not_judged: left + unread,
            why_not: why_not.or_else(|| (unread > 0).then(|| "it cannot be read".to_owned())),
        }
    };
    ChainRule::ALL.iter().map(count).collect()
}
