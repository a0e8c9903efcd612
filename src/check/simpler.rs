//! Proposals of simpler networks, actions and faults: links without imperfections, plain clocks, fewer members.

use crate::{
    scenario::{
        Action, Scenario,
        section::{Change, NetworkSection},
        vote_weights::VoteWeights,
    },
    sim::{
        Fault, Trigger,
        network::{NetworkModel, Sharing},
    },
};

/// Scenarios with one imperfection or milestone less.
pub(super) fn networks(scenario: &Scenario) -> Vec<Scenario> {
    let model = &scenario.network.model;
    let plain = [
        NetworkModel { loss: 0.0, ..model.clone() },
        NetworkModel { duplication: 0.0, ..model.clone() },
        NetworkModel { reordering: None, ..model.clone() },
        NetworkModel { bandwidth: None, ..model.clone() },
        NetworkModel { uplink: None, ..model.clone() },
        NetworkModel { downlink: None, ..model.clone() },
        NetworkModel { sharing: Sharing::default(), ..model.clone() },
        NetworkModel { uplink: None, downlink: None, sharing: Sharing::default(), ..model.clone() },
        NetworkModel { overhead: None, ..model.clone() },
        NetworkModel { compact: None, ..model.clone() },
        NetworkModel { block_bytes: 0, ..model.clone() },
        NetworkModel { processor: None, ..model.clone() },
        NetworkModel { regions: None, ..model.clone() },
        NetworkModel { classes: None, ..model.clone() },
        NetworkModel { clocks: None, ..model.clone() },
    ];
    let fewer_links = super::shrink::without_parts(&model.links);
    let models = plain.into_iter().chain(fewer_links.into_iter().map(|links| NetworkModel { links, ..model.clone() }));
    let mut all = Vec::new();
    for model in models.filter(|model| *model != scenario.network.model) {
        let mut simpler = scenario.clone();
        simpler.network.model = model;
        all.push(simpler);
    }
    if scenario.network.vote_weights != VoteWeights::Equal {
        let mut simpler = scenario.clone();
        simpler.network.vote_weights = VoteWeights::Equal;
        all.push(simpler);
    }
    for index in 0..scenario.network.milestones.len() {
        let mut simpler = scenario.clone();
        simpler.network.milestones.remove(index);
        refit(&scenario.network, &mut simpler.network);
        all.push(simpler);
    }
    all
}

/// Proposes actions with fewer parameters.
pub(super) fn actions(action: &Action) -> Vec<Action> {
    let simpler = [
        Action { signers: Vec::new(), ..action.clone() },
        Action { by_time: false, ..action.clone() },
        Action { payments: 0, ..action.clone() },
        Action { members: Vec::new(), ..action.clone() },
        Action { vendor_field: None, ..action.clone() },
    ];
    simpler.into_iter().filter(|simpler| simpler != action).collect()
}

/// Proposes simpler forms of a fault that begins with a height: an earlier end, or a beginning at the time at which a chain without a
/// missed slot has the block before that height.
pub(super) fn faults(fault: &Fault, block_time_s: u32) -> Vec<Fault> {
    let (Trigger::HeightAtAny(from), Some(Trigger::Seconds(until))) = (&fault.from, &fault.until) else {
        return Vec::new();
    };
    let sooner = super::shrink::smaller(*until as u32, 1).into_iter();
    let sooner = sooner.map(|until| Fault { until: Some(Trigger::Seconds(until.into())), ..fault.clone() });
    let seconds = f64::from(from.saturating_sub(1)) * f64::from(block_time_s);
    let at_once = Fault { from: Trigger::Seconds(seconds), ..fault.clone() };
    sooner.chain([at_once]).collect()
}

/// Milestones of one network, made to fit another: where the number of delegates changes, the same round begins.
pub(super) fn refit(old: &NetworkSection, new: &mut NetworkSection) {
    if let VoteWeights::List(weights) = &mut new.vote_weights {
        weights.truncate((new.delegates + new.standby) as usize);
    }
    let changes = std::mem::take(&mut new.milestones);
    for change in changes {
        let fitted = if change.delegates.is_some() { fitted(change, old, new) } else { change };
        let last = new.milestones.last().map_or(1, |last| last.height);
        if fitted.height > last {
            new.milestones.push(fitted);
        }
    }
}

fn fitted(change: Change, old: &NetworkSection, new: &NetworkSection) -> Change {
    let round = (1..).find(|round| old.round(*round, 1).0 >= change.height).unwrap_or(1);
    let delegates = change.delegates.map(|delegates| delegates.clamp(1, new.delegates + new.standby));
    Change { height: new.round(round, 1).0, delegates, ..change }
}
