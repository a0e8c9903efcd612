//! `dposlab run`: plays a scenario and prints what came of it.

use super::Failure;
use crate::{
    actors::NodeId,
    check,
    report::{Rounds, table},
    scenario::{Outcome, Scenario, StageKind, Verdict},
    sim::{Observer, SeedTree},
};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Play a scenario file and print who owned, forged and missed which slot.
///
/// The run is a function of the file and the seed: the same two give the same chain and the same digest, always.
#[derive(Debug, Args)]
pub struct Run {
    /// The scenario, a TOML file (see scenarios/).
    scenario: PathBuf,
    /// The seed all keys, latencies and choices are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What hosts the actors; changes the speed, not the outcome.
    #[arg(long, value_enum, default_value_t)]
    stage: StageKind,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

impl Run {
    /// Plays the scenario.
    ///
    /// # Errors
    /// The file is no scenario, or the run broke off.
    pub fn run(self) -> Result<(), Failure> {
        let scenario = Scenario::load(&self.scenario).map_err(Failure::usage)?;
        let seeds = SeedTree::new(self.seed);
        let testnet = scenario.testnet(seeds);
        let plan = scenario.plan(&testnet, seeds);
        let start = plan.tree.slots().slot(plan.start.seconds());
        let rounds = Rounds::new(NodeId(0), plan.tree.clone(), start);
        let judge = check::judge(&scenario, &plan)
            .map_err(|why| Failure::usage(format!("{}: {why}", self.scenario.display())))?;
        let observers: Vec<Box<dyn Observer>> = vec![Box::new(rounds.clone()), Box::new(judge.clone())];
        let bar = progress_bar(scenario.last_height().0.into());
        let height = || rounds.height();
        let outcome = scenario
            .play(&plan, self.stage, observers, height, |height| bar.set_position(height.0.into()))
            .map_err(Failure::broken)?;
        bar.finish_and_clear();
        rounds.close(plan.tree.slots().slot(outcome.end.seconds()));
        let verdicts = judge.verdicts(outcome.end);
        if self.json {
            super::output::line(&self.as_json(&scenario, &rounds, &outcome, &verdicts).to_string());
        } else {
            super::output::line(&self.as_text(&scenario, &rounds, &outcome, &verdicts));
        }
        if rounds.height() < scenario.last_height() {
            let (reached, wanted) = (rounds.height(), scenario.last_height());
            return Err(Failure::broken(format!(
                "the chain stalled at height {reached}, with no block for four rounds' worth of slots; {} rounds end at \
                 height {wanted}",
                scenario.rounds
            )));
        }
        let broken: Vec<String> = verdicts.iter().filter(|verdict| !verdict.holds).map(ToString::to_string).collect();
        if broken.is_empty() { Ok(()) } else { Err(Failure::broken(broken.join("; "))) }
    }

    fn as_json(&self, scenario: &Scenario, rounds: &Rounds, outcome: &Outcome, verdicts: &[Verdict]) -> Value {
        let per_round = rounds.rounds();
        json!({
            "scenario": self.scenario.display().to_string(),
            "description": scenario.description,
            "version": env!("CARGO_PKG_VERSION"),
            "seed": self.seed,
            "digest": outcome.digest.to_string(),
            "height": rounds.height(),
            "rounds": per_round.len(),
            "blocks": per_round.iter().map(|round| round.blocks).sum::<u32>(),
            "missed_slots": per_round.iter().map(|round| round.missed_slots).sum::<u32>(),
            "events": outcome.events,
            "end_seconds": outcome.end.seconds(),
            "assertions": verdicts,
            "delegates": rounds.totals(),
            "per_round": per_round,
        })
    }

    fn as_text(&self, scenario: &Scenario, rounds: &Rounds, outcome: &Outcome, verdicts: &[Verdict]) -> String {
        let per_round = rounds.rounds();
        let blocks: u32 = per_round.iter().map(|round| round.blocks).sum();
        let missed: u32 = per_round.iter().map(|round| round.missed_slots).sum();
        let title = if scenario.description.is_empty() { String::new() } else { format!(": {}", scenario.description) };
        format!(
            "{}{title}\n\n{}\nsummary: seed {}, height {}, {} rounds, {blocks} blocks forged, {missed} slots missed, \
             {} events\n{}digest:  {}",
            self.scenario.display(),
            table::render(rounds),
            self.seed,
            rounds.height(),
            per_round.len(),
            outcome.events,
            verdicts.iter().map(|verdict| format!("asserted: {verdict}\n")).collect::<String>(),
            outcome.digest,
        )
    }
}

/// Shown on a terminal only, and gone when the run is over.
fn progress_bar(heights: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} height {pos}/{len}, {eta} left").expect("the template is fixed");
    ProgressBar::new(heights).with_style(style)
}
