//! The page of one run.

use crate::{
    protocol::{Height, Slot},
    report::{
        bundle::Bundle,
        rounds::{DelegateSlots, totals},
        sheet::{SheetError, write_whole},
    },
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path};

pub(super) const SCRIPT: &str = concat!(include_str!("trace.js"), include_str!("traceview.js"), include_str!("run.js"));

/// Writes the page of a run, `report.html`, beside its tables.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(bundle: &Bundle<'_>, folder: &Path) -> Result<(), SheetError> {
    write_whole(&folder.join("report.html"), page(bundle).as_bytes())
}

/// The whole page.
pub(crate) fn page(bundle: &Bundle<'_>) -> String {
    let about = bundle.about;
    super::page(&format!("{}, seed {}", about.scenario, about.seed), &data(bundle), SCRIPT)
}

fn data(bundle: &Bundle<'_>) -> Value {
    let figures = bundle.figures;
    let slots = bundle.tree.slots();
    let delegates = totals(&figures.chain);
    json!({
        "about": bundle.about,
        "totals": figures.total,
        "assertions": bundle.verdicts,
        "blocktime": slots.blocktime(),
        "start": slots.start(Slot(figures.time.first().map_or(0, |row| row.first_slot))),
        "rounds": super::columns(&rounds(bundle)),
        "time": super::columns(&figures.time.iter().map(|row| json!(row)).collect::<Vec<_>>()),
        "faults": figures.faults,
        "heals": figures.heals,
        "orphans": figures.orphans,
        "curve": figures.propagation_curve,
        "rings": rings(bundle, &delegates),
        "missed": missed(bundle, &delegates),
        "delegates": delegates,
    })
}

fn rounds(bundle: &Bundle<'_>) -> Vec<Value> {
    let figures = bundle.figures;
    let rows = figures.rounds.iter().map(|round| {
        let mut row = json!(round);
        row["agreement_mean"] = json!(round.slots.agreement_mean());
        row["pool_mean"] = json!(round.slots.pool_mean());
        let chain = figures.chain.iter().find(|chain| chain.round == round.round);
        row["blocks"] = json!(chain.map(|chain| chain.blocks));
        row["missed_slots"] = json!(chain.map(|chain| chain.missed_slots));
        row
    });
    rows.collect()
}

/// The last rounds for the ring of slots. Each has its slots, its first height, the index of each slot's owner among the delegates, the
/// indices of the missed slots, and the number of blocks that the round lacks at the end of the run. Heights of a round are
/// consecutive. If its slots are, too, `slots` holds the first one only: 120 rounds in this form take a third of the size of a list of
/// slots. Under a lottery a slot has no owner, one or several, so `slots` holds the slot of each owner.
fn rings(bundle: &Bundle<'_>, delegates: &[DelegateSlots]) -> Value {
    let place = places(delegates);
    let rounds = bundle.figures.chain.iter().filter(|round| !round.turns.is_empty());
    let milestones = &bundle.tree.config().milestones;
    let rings = rounds.map(|round| {
        let owners: Vec<usize> = round.turns.iter().map(|turn| place(&turn.owner)).collect();
        let missed = round.turns.iter().enumerate().filter(|(_, turn)| turn.height.is_none());
        let missed: Vec<usize> = missed.map(|(place, _)| place).collect();
        let mut slots: Vec<u32> = round.turns.iter().map(|turn| turn.slot).collect();
        if slots.windows(2).all(|pair| pair[0] + 1 == pair[1]) {
            slots.truncate(1);
        }
        let height = round.turns.iter().find_map(|turn| turn.height);
        let seats = milestones.at(Height(round.first_height)).active_delegates;
        let seats = seats * bundle.tree.rules().ledger.slots_a_turn;
        let lacks = (round.first_height + seats).saturating_sub(round.last_height + 1);
        json!({
            "round": round.round,
            "slots": slots,
            "height": height,
            "owners": owners,
            "missed": missed,
            "lacks": lacks,
        })
    });
    rings.collect()
}

/// Returns the missed slots as rows of round, index of the delegate, and count.
fn missed(bundle: &Bundle<'_>, delegates: &[DelegateSlots]) -> Value {
    let place = places(delegates);
    let rounds = bundle.figures.chain.iter();
    let rows = rounds.flat_map(|round| round.delegates.iter().map(move |delegate| (round.round, delegate)));
    let missed = rows.filter(|(_, delegate)| delegate.missed > 0);
    missed.map(|(round, delegate)| json!([round, place(&delegate.username), delegate.missed])).collect()
}

/// A delegate's index in the list, by username.
fn places(delegates: &[DelegateSlots]) -> impl Fn(&str) -> usize {
    let places: BTreeMap<&str, usize> =
        delegates.iter().enumerate().map(|(place, delegate)| (delegate.username.as_str(), place)).collect();
    move |owner| *places.get(owner).expect("who owns a slot is one of the delegates of its round")
}
