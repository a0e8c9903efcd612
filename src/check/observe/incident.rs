//! An incident as a scenario: delegates that are offline in the slots that stayed empty, and double forging in those that have
//! several blocks of one delegate.
//!
//! The keys of a real network are not known, so the scenario has a network of its own, with as many delegates and slots of the same
//! length. The order of its delegates differs: a delegate is chosen for each slot by forging the chain in advance
//! ([`Incident::scenario`]), so that the same slots stay empty.

use super::story::Story;
use crate::{
    files::printable,
    ledger::BlockTree,
    protocol::{Block, BlockDraft, Height, Slot},
    scenario::{Scenario, ScenarioError},
    sim::SeedTree,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::Path,
    sync::Arc,
};

/// The largest number of slots of a scenario, from the first slot on that is not in order.
const SLOTS: u32 = 2_000;
/// Rounds that are played on after the last of them.
const ROUNDS_AFTER: u32 = 3;
/// The seed of `dposlab run`, if none is given.
const SEED: u64 = 1;

/// The slots of the longest chain that are not in order.
#[derive(Clone, Debug, Default)]
pub struct Incident {
    delegates: u32,
    block_time_s: u32,
    slots: BTreeMap<Slot, Disorder>,
    /// Slots above [`SLOTS`] that are left out.
    left_out: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Disorder {
    Empty(Option<String>),
    Double(String),
}

/// The reason why there is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum NoIncident {
    #[error("no slot of the chain is empty, and none has several blocks of one delegate")]
    Nothing,
    #[error("a scenario cannot have such a network: {0}")]
    Unlike(#[from] ScenarioError),
}

impl Incident {
    pub(super) fn of(tree: &BlockTree, story: &Story) -> Self {
        let mut slots = BTreeMap::new();
        let mut left_out = 0_u32;
        let doubles = story.doubles.iter().map(|double| double.slot);
        let first = story.gaps.iter().map(|gap| gap.from).chain(doubles).min().unwrap_or_default();
        let end = Slot(first.0.saturating_add(SLOTS));
        for gap in &story.gaps {
            let names: BTreeMap<Slot, &String> =
                gap.missed.iter().filter_map(|one| Some((one.slot, one.delegate.as_ref()?))).collect();
            let last = Slot(gap.from.0.saturating_add(gap.slots));
            left_out = left_out.saturating_add(last.0.saturating_sub(end.0.max(gap.from.0)));
            let looked_at = gap.from.0.saturating_add(gap.looked_at);
            for slot in (gap.from.0..last.0.min(end.0)).map(Slot) {
                // Under a lottery no delegate owned it.
                if gap.is_known() && slot.0 < looked_at && !names.contains_key(&slot) {
                    continue;
                }
                slots.insert(slot, Disorder::Empty(names.get(&slot).map(|name| (*name).clone())));
            }
        }
        for double in &story.doubles {
            if double.slot < end {
                slots.insert(double.slot, Disorder::Double(double.delegate.clone()));
            } else {
                left_out = left_out.saturating_add(1);
            }
        }
        let height = story.told_to.unwrap_or(Height::GENESIS);
        let delegates = tree.schedule().at(height).delegates;
        Self { delegates, block_time_s: tree.slots().blocktime(), slots, left_out }
    }

    /// The scenario as the text of a file. A round without disorder comes first, so that the network has converged.
    ///
    /// # Errors
    /// There is nothing to play, or no scenario can have this number of delegates or such slots.
    pub fn scenario(&self) -> Result<String, NoIncident> {
        let (Some((first, _)), Some((last, _))) = (self.slots.first_key_value(), self.slots.last_key_value()) else {
            return Err(NoIncident::Nothing);
        };
        // The slot of the run in which the first disorder comes.
        let lead = self.delegates + 1;
        let in_run = |slot: Slot| Slot(slot.0 - first.0 + lead);
        let scenario = Scenario::parse(&self.head(1), Path::new("incident"))?;
        let seeds = SeedTree::new(SEED);
        let testnet = scenario.testnet(seeds);
        let tree = scenario.tree(testnet.config.clone(), seeds).expect("a generated genesis has its delegates");
        let (milestones, slots) = (&tree.config().milestones, tree.slots());
        let disorder: BTreeMap<Slot, &Disorder> = self.slots.iter().map(|(slot, what)| (in_run(*slot), what)).collect();
        let mut tip = tree.genesis().clone();
        let (mut offline, mut doubles) = (Spells::default(), Spells::default());
        for slot in (1..=in_run(*last).0).map(Slot) {
            let round = tree.applied(&tip).state.round().clone();
            let Some(owner) = round.owner(slot).map(|owner| owner.public_key) else { continue };
            let found = testnet.delegates.iter().find(|delegate| *delegate.keys.public() == owner);
            let delegate = found.expect("all delegates of a generated network are known");
            let shown = Slot(slot.0 + first.0 - lead.min(slot.0 + first.0));
            match disorder.get(&slot) {
                Some(Disorder::Empty(who)) => {
                    offline.put(&delegate.username, slot, shown, who.as_deref());
                    continue;
                }
                Some(Disorder::Double(who)) => doubles.put(&delegate.username, slot, shown, Some(who)),
                None => {}
            }
            offline.ends(&delegate.username);
            if !disorder.contains_key(&slot) {
                doubles.ends(&delegate.username);
            }
            let height = tip.height().next();
            let milestone = milestones.at(height);
            let draft = BlockDraft {
                timestamp: slots.start(slot),
                height,
                previous: Some(tip.id()),
                reward: milestone.reward,
                version: milestone.block.version,
                transactions: Vec::new(),
            };
            let block = Arc::new(Block::forge(draft, &delegate.keys, milestones));
            tip = tree.extend(&tip, &block).expect("it is forged by the owner of its slot");
        }
        let rounds = tip.height().0.div_ceil(self.delegates) + ROUNDS_AFTER;
        let mut text = self.head(rounds);
        offline.write("offline", &mut text);
        doubles.write("double-forge", &mut text);
        Ok(text)
    }

    fn head(&self, rounds: u32) -> String {
        let count =
            |is_empty: bool| self.slots.values().filter(|one| matches!(one, Disorder::Empty(_)) == is_empty).count();
        let (empty, double) = (count(true), count(false));
        let left_out = match self.left_out {
            0 => String::new(),
            more => format!("# {more} more slots come later than {SLOTS} slots after the first and are left out.\n"),
        };
        let Self { delegates, block_time_s, .. } = self;
        format!(
            "# Made by dposlab observe. The delegates are those of a generated network under seed {SEED}: for each slot the one\n\
             # whose turn it is here. A comment names the slot and delegate that were observed.\n{left_out}version = 1\n\
             description = \"{empty} empty slots and {double} with two blocks, as observed\"\nrounds = {rounds}\n\n[network]\n\
             delegates = {delegates}\nblock_time_s = {block_time_s}\ngossip = \"reference\"\n"
        )
    }
}

/// The slots in which delegates deviate, as spells. Between the first and the last slot of a spell its delegate owns no other slot.
#[derive(Default)]
struct Spells {
    open: BTreeMap<String, usize>,
    spells: Vec<Spell>,
}

struct Spell {
    delegate: String,
    from: Slot,
    to: Slot,
    observed: Vec<String>,
}

impl Spells {
    fn put(&mut self, delegate: &str, slot: Slot, shown: Slot, who: Option<&str>) {
        // A name from outside must not end the comment.
        let observed = who.map_or_else(|| format!("{shown}"), |who| format!("{shown} ({})", printable(who)));
        match self.open.get(delegate) {
            Some(index) => {
                self.spells[*index].to = slot;
                self.spells[*index].observed.push(observed);
            }
            None => {
                self.open.insert(delegate.to_owned(), self.spells.len());
                self.spells.push(Spell {
                    delegate: delegate.to_owned(),
                    from: slot,
                    to: slot,
                    observed: vec![observed],
                });
            }
        }
    }

    fn ends(&mut self, delegate: &str) {
        self.open.remove(delegate);
    }

    fn write(&self, kind: &str, text: &mut String) {
        for Spell { delegate, from, to, observed } in &self.spells {
            let what = observed.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect::<Vec<_>>().join(", ");
            write!(
                text,
                "\n# Slot {what}\n[[fault]]\nkind = \"{kind}\"\ndelegates = [\"{delegate}\"]\nfrom = {{ slot = {from} }}\nuntil = \
                 {{ slot = {} }}\n",
                to.0 + 1
            )
            .expect("text takes everything");
        }
    }
}
