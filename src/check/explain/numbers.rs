//! The numbers of the rules that decided, each beside its threshold.

use crate::{
    actors::{Event, NodeId, SimTime},
    check::explain::record::Quorum,
    ledger::{BlockRejected, BlockTree},
};
use serde::Serialize;

/// A number that decided the outcome of a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Number {
    /// The rule, as in a scenario file, or a substitute for it.
    pub rule: &'static str,
    pub found: f64,
    /// In per cent, peers, blocks, transactions, delegates or slots.
    pub unit: &'static str,
    pub threshold: f64,
    /// True if the threshold was met.
    pub met: bool,
    /// The sentence: `3 of 5 peers = 60 % on the chain is below the 66 % to forge`.
    pub text: String,
    /// The same without its words: `3 of 5 = 60 %, 66 % needed`.
    pub brief: String,
    /// The nodes that found it, ascending.
    pub nodes: Vec<NodeId>,
    /// The last time at which it was found.
    #[serde(rename = "at_us")]
    pub at: SimTime,
}

/// Returns a share in per cent, truncated to one decimal. Rounding could lift a share just below a threshold
/// onto it.
fn percent(some: u32, of: u32) -> f64 {
    (u64::from(some) * 1_000).checked_div(of.into()).unwrap_or(0) as f64 / 10.0
}

fn compared(met: bool) -> &'static str {
    if met { "reaches" } else { "is below" }
}

/// Formats a number, without decimals if it is whole.
fn short(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.1}") }
}

/// The numbers behind an event of a node; none behind most events.
pub(super) fn numbers(
    at: SimTime,
    node: NodeId,
    event: &Event,
    quorum: Option<Quorum>,
    tree: &BlockTree,
) -> Vec<Number> {
    let rules = tree.rules();
    let number = |rule, found, unit, threshold, met, text: String| Number {
        rule,
        found,
        unit,
        threshold,
        met,
        brief: text.clone(),
        text,
        nodes: vec![node],
        at,
    };
    let share = |rule, some: u32, of: u32, which: &str, needed: u32, what: &str| {
        let (found, needed) = (percent(some, of), f64::from(needed));
        // As the node counts: in whole numbers, without a rounded share.
        let met = of > 0 && f64::from(some) * 100.0 >= needed * f64::from(of);
        let compared = compared(met);
        let text =
            format!("{some} of {of} peers = {} % {which} {compared} the {} % {what}", short(found), short(needed));
        let brief = format!("{some} of {of} = {} %, {} % needed", short(found), short(needed));
        Number { brief, ..number(rule, found, "%", needed, met, text) }
    };
    let forging = |Quorum { reached, in_quorum }: Quorum| {
        let reach = rules.minimum_network_reach.map(|least| {
            let met = reached >= least;
            let peers = if reached == 1 { "peer reached is" } else { "peers reached are" };
            let not = if met { " not" } else { "" };
            let text = format!("{reached} {peers}{not} below the {least} to forge");
            number("minimum_network_reach", reached.into(), "peers", least.into(), met, text)
        });
        let quorum = share("quorum_percent", in_quorum, reached, "on the chain", rules.quorum_percent, "to forge");
        match reach {
            Some(reach) if !reach.met => vec![reach],
            _ => vec![quorum],
        }
    };
    match event {
        // Under other choices these numbers decide nothing.
        Event::HealthChecked { .. } if !rules.node.fork_choice.counts_forked() => Vec::new(),
        Event::ForgingSuspended { .. } | Event::BlockForged(_) if !rules.node.fork_choice.asks_for_reach() => {
            Vec::new()
        }
        Event::HealthChecked { peers, forked } => {
            let needed = rules.node.forked_percent;
            vec![share("node.forked_percent", *forked, *peers, "on other chains", needed, "to roll back")]
        }
        Event::ForgingSuspended { reached, in_quorum } => forging(Quorum { reached: *reached, in_quorum: *in_quorum }),
        Event::BlockForged(_) => quorum.map(forging).unwrap_or_default(),
        Event::RolledBack { from, to, .. } => {
            let depth = from.height().0 - to.height().0;
            let round = tree.applied(from).state.round().position.blocks();
            let met = depth <= round;
            let deeper = if met { "no deeper than" } else { "deeper than" };
            let text = match depth {
                1 => format!("1 block taken back is {deeper} a round of {round}"),
                _ => format!("{depth} blocks taken back are {deeper} a round of {round}"),
            };
            vec![number("rollback", depth.into(), "blocks", round.into(), met, text)]
        }
        Event::PoolReplaced(kept) if !kept.is_empty() => {
            let limit = rules.pool.max_transactions;
            let met = kept.len() <= limit;
            let within = if met { "within" } else { "above" };
            let text = format!("{} transactions in the new pool are {within} its limit of {limit}", kept.len());
            vec![number("pool.max_transactions", kept.len() as f64, "transactions", limit as f64, met, text)]
        }
        Event::BlockRefused(why) => match &**why {
            BlockRejected::TooFewDelegates { expected, found, .. } => {
                let text =
                    format!("{found} delegates that have not resigned are below the {expected} of the next round");
                vec![number("delegates", *found as f64, "delegates", *expected as f64, false, text)]
            }
            BlockRejected::FromFuture { slot, now, .. } => {
                let text = format!("slot {slot} of the block is after slot {now} of the node's clock");
                vec![number("slot", slot.0.into(), "slots", now.0.into(), false, text)]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Adds a number, or merges it with the same number of other nodes.
pub(super) fn add(numbers: &mut Vec<Number>, one: Number) {
    match numbers.iter_mut().find(|known| known.text == one.text && known.rule == one.rule) {
        Some(known) => {
            known.nodes.extend(one.nodes);
            known.nodes.sort_unstable();
            known.nodes.dedup();
            known.at = known.at.max(one.at);
        }
        None => numbers.push(one),
    }
}
