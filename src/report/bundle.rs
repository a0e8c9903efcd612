//! The output folder of one run: `summary.json`, `events.jsonl`, tables as CSV and Parquet, and `report.html`.

use super::{
    metrics::{Figures, Totals},
    page,
    rounds::{DelegateSlots, RoundReport, totals},
    sheet::{Cell, Column, Kind, Sheet, SheetError, column, write_whole},
};
use crate::{
    actors::NodeId,
    ledger::BlockTree,
    protocol::{Height, Slot},
    scenario::{Ended, Halt, Verdict},
    sim::{
        ActiveSet,
        network::{Links, MessageNetwork},
    },
};
use serde::Serialize;
use serde_json::{Value, json};
use std::{fs, io, path::Path};

/// The description of a run, and of how to repeat it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct About {
    pub scenario: String,
    pub description: String,
    pub version: &'static str,
    pub seed: u64,
    /// Values set beside the scenario's, as `path=value`.
    pub set: Vec<String>,
    /// The rules of the nodes, in words.
    pub rules: String,
    pub digest: String,
    pub events: u64,
    /// Inputs delivered to actors.
    pub delivered: u64,
    /// The end of the run.
    pub ended: Ended,
    /// The run was stopped before its end, so its further course is unknown. The digest is that of the played part.
    pub censored: bool,
    /// True if its user ended the run. Its assertions are then not judged.
    pub interrupted: bool,
    /// Notes on behaviour of the run that a reader of the scenario would not expect.
    pub notes: Vec<String>,
    /// The proof that no block can ever be made again, if the run ended with one.
    pub halt: Option<Halt>,
    /// The one command that repeats the run.
    pub reproduce: String,
}

/// The command that plays a scenario again.
pub(crate) fn command(scenario: &str, seed: u64, set: &[String]) -> String {
    let mut command = format!("dposlab run {} --seed {seed}", quoted(scenario));
    for set in set {
        command.push_str(&format!(" --set {}", quoted(set)));
    }
    command
}

/// The name of a file in a report. A report must not reveal the folders of the machine, so a file below the program's working folder has
/// its relative path, and any other absolute path only its last name.
pub(crate) fn shown(file: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let shown = match file.strip_prefix(&here) {
        Ok(below) => below,
        Err(_) if file.is_absolute() => file.file_name().map_or(file, Path::new),
        Err(_) => file,
    };
    shown.display().to_string()
}

/// Quotes a word for a shell, with single quotes if it needs them.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:+@%".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The largest full mesh, in nodes, whose links are written. The number of links grows with the square of the nodes.
const MESH_LIMIT: usize = 128;

/// An output of a run, by the name of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Events,
    Rounds,
    Delegates,
    Elections,
    Time,
    Blocks,
    Orphans,
    Links,
    Report,
}

impl Output {
    /// Its files, in the order in which they are compared with those of a repetition.
    pub fn files(self) -> &'static [&'static str] {
        match self {
            Self::Events => &["events.jsonl"],
            Self::Rounds => &["rounds.csv", "rounds.parquet"],
            Self::Delegates => &["delegates.csv", "delegates.parquet"],
            Self::Elections => &["elections.csv", "elections.parquet"],
            Self::Time => &["time.csv", "time.parquet"],
            Self::Blocks => &["blocks.csv", "blocks.parquet"],
            Self::Orphans => &["orphans.csv", "orphans.parquet"],
            Self::Links => &["links.csv", "links.parquet"],
            Self::Report => &["report.html"],
        }
    }
}

/// The data of a whole run, from which its folder is written.
pub(crate) struct Bundle<'a> {
    pub about: &'a About,
    pub figures: &'a Figures,
    /// The verdicts on the scenario's assertions.
    pub verdicts: &'a [Verdict],
    pub tree: &'a BlockTree,
    /// The network of the run as it began, without faults.
    pub network: &'a MessageNetwork,
    /// The metadata of the Parquet files.
    pub metadata: &'a [(String, String)],
    /// Outputs that are not wanted.
    pub without: &'a [Output],
}

/// `summary.json`.
#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten)]
    about: &'a About,
    totals: &'a Totals,
    assertions: &'a [Verdict],
    delegates: Vec<DelegateSlots>,
    heals: &'a [super::metrics::heals::Heal],
}

impl Bundle<'_> {
    /// Writes summary, tables and page. A trace writer has written `events.jsonl` while the run went on.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), SheetError> {
        type Table<'a> = (Output, fn(&Bundle<'a>, &Path) -> Result<(), SheetError>);
        let tables: [Table<'_>; 7] = [
            (Output::Rounds, Self::rounds),
            (Output::Delegates, Self::delegates),
            (Output::Elections, Self::elections),
            (Output::Time, Self::time),
            (Output::Blocks, Self::blocks),
            (Output::Orphans, Self::orphans),
            (Output::Links, Self::links),
        ];
        for (_, table) in tables.iter().filter(|(output, _)| !self.without.contains(output)) {
            table(self, folder)?;
        }
        if !self.without.contains(&Output::Report) {
            page::run::write(self, folder)?;
        }
        write_whole(&folder.join("summary.json"), pretty(&self.summary()).as_bytes())
    }

    /// The summary as JSON.
    pub fn summary(&self) -> Value {
        let Figures { chain, total, heals, .. } = self.figures;
        let (about, assertions) = (self.about, self.verdicts);
        json!(Summary { about, totals: total, assertions, delegates: totals(chain), heals })
    }

    fn rounds(&self, folder: &Path) -> Result<(), SheetError> {
        let counts = ["round", "first_height", "last_height", "blocks", "missed_slots", "gap_slots_max", "slots"];
        let mut columns: Vec<Column> = counts.map(|name| column(name, Kind::Count)).to_vec();
        for name in
            ["slots_forked", "branches_max", "fork_depth_max", "down_max", "forks", "rollbacks", "rollback_depth_max"]
        {
            columns.push(column(name, Kind::Count));
        }
        let shares = ["agreement_mean", "agreement_min", "weight_agreement_mean", "weight_agreement_min"];
        columns.extend(shares.map(|name| column(name, Kind::Number)));
        for times in ["propagation", "transaction_latency"] {
            columns.push(column(format!("{times}_count"), Kind::Count));
            columns.extend(["p50", "p90", "p99", "max"].map(|p| column(format!("{times}_{p}_ms"), Kind::Number)));
        }
        columns.push(column("transactions", Kind::Count));
        columns.push(column("transactions_per_second", Kind::Number));
        columns.push(column("pool_mean", Kind::Number));
        columns.push(column("pool_max", Kind::Count));
        let mut sheet = Sheet::create(folder, "rounds", columns, self.metadata)?;
        for figures in &self.figures.rounds {
            let chain = self.figures.chain.iter().find(|round| round.round == figures.round);
            let of_chain = |count: fn(&RoundReport) -> u32| Cell::from(chain.map(count));
            let slots = &figures.slots;
            let mut row: Vec<Cell> = vec![
                figures.round.into(),
                of_chain(|round| round.first_height),
                chain.filter(|round| round.blocks > 0).map(|round| round.last_height).into(),
                of_chain(|round| round.blocks),
                of_chain(|round| round.missed_slots),
                of_chain(RoundReport::longest_gap_slots),
                slots.slots.into(),
                slots.slots_forked.into(),
                slots.branches_max.into(),
                slots.fork_depth_max.into(),
                slots.down_max.into(),
                figures.forks.into(),
                figures.rollbacks.into(),
                figures.rollback_depth_max.into(),
                slots.agreement_mean().into(),
                slots.agreement_min.into(),
                slots.weight_agreement_mean().into(),
                slots.weight_agreement_min.into(),
            ];
            for times in [&figures.propagation_ms, &figures.transaction_latency_ms] {
                row.push(times.count.into());
                let any = times.count > 0;
                row.extend([times.p50, times.p90, times.p99, times.max].map(|time| any.then_some(time).into()));
            }
            row.push(figures.transactions.into());
            row.push(figures.transactions_per_second.into());
            row.push(slots.pool_mean().into());
            row.push(slots.pool_max.into());
            sheet.row(row)?;
        }
        sheet.finish()
    }

    fn sheet<const N: usize>(
        &self,
        folder: &Path,
        name: &str,
        columns: [(&'static str, Kind); N],
    ) -> Result<Sheet, SheetError> {
        Sheet::create(folder, name, columns.map(|(name, kind)| column(name, kind)).to_vec(), self.metadata)
    }

    fn delegates(&self, folder: &Path) -> Result<(), SheetError> {
        let columns = [
            ("round", Kind::Count),
            ("username", Kind::Text),
            ("public_key", Kind::Text),
            ("owned", Kind::Count),
            ("forged", Kind::Count),
            ("missed", Kind::Count),
        ];
        let mut sheet = self.sheet(folder, "delegates", columns)?;
        for round in &self.figures.chain {
            for delegate in &round.delegates {
                sheet.row(vec![
                    round.round.into(),
                    delegate.username.as_str().into(),
                    delegate.public_key.as_str().into(),
                    delegate.owned.into(),
                    delegate.forged.into(),
                    delegate.missed.into(),
                ])?;
            }
        }
        sheet.finish()
    }

    fn elections(&self, folder: &Path) -> Result<(), SheetError> {
        let columns = [
            ("round", Kind::Count),
            ("members", Kind::Count),
            ("weight", Kind::Count),
            ("weight_least", Kind::Count),
            ("weight_greatest", Kind::Count),
            ("turnover", Kind::Count),
            ("gini", Kind::Number),
            ("nakamoto", Kind::Count),
            ("captured", Kind::Count),
        ];
        let mut sheet = self.sheet(folder, "elections", columns)?;
        for round in &self.figures.chain {
            let ActiveSet { members, weight, least, greatest, turnover, gini, nakamoto, captured } = round.active_set;
            sheet.row(vec![
                round.round.into(),
                members.into(),
                weight.into(),
                least.into(),
                greatest.into(),
                turnover.into(),
                gini.into(),
                nakamoto.into(),
                captured.into(),
            ])?;
        }
        sheet.finish()
    }

    fn time(&self, folder: &Path) -> Result<(), SheetError> {
        let columns = [
            ("at_us", Kind::Count),
            ("first_slot", Kind::Count),
            ("slots", Kind::Count),
            ("height_least", Kind::Count),
            ("height_greatest", Kind::Count),
            ("branches_max", Kind::Count),
            ("fork_depth_max", Kind::Count),
            ("down_max", Kind::Count),
            ("agreement_min", Kind::Number),
            ("weight_agreement_min", Kind::Number),
            ("pool_mean", Kind::Number),
            ("pool_max", Kind::Count),
            ("transactions", Kind::Count),
        ];
        let mut sheet = self.sheet(folder, "time", columns)?;
        for row in &self.figures.time {
            let at = u64::from(self.tree.slots().start(Slot(row.first_slot)).0) * 1_000_000;
            sheet.row(vec![
                at.into(),
                row.first_slot.into(),
                row.slots.into(),
                row.height_least.into(),
                row.height_greatest.into(),
                row.branches_max.into(),
                row.fork_depth_max.into(),
                row.down_max.into(),
                row.agreement_min.into(),
                row.weight_agreement_min.into(),
                row.pool_mean.into(),
                row.pool_max.into(),
                row.transactions.into(),
            ])?;
        }
        sheet.finish()
    }

    /// The winning chain without the genesis block, which has no forger.
    fn blocks(&self, folder: &Path) -> Result<(), SheetError> {
        let columns = [
            ("height", Kind::Count),
            ("id", Kind::Text),
            ("slot", Kind::Count),
            ("round", Kind::Count),
            ("forger", Kind::Text),
            ("transactions", Kind::Count),
            ("fees", Kind::Count),
        ];
        let mut sheet = self.sheet(folder, "blocks", columns)?;
        let tip = &self.figures.tip;
        let first = self.figures.chain.first().map_or(1, |round| round.first_height).max(Height::GENESIS.0 + 1);
        for height in (first..=tip.height().0).map(Height) {
            let link = tip.ancestor(height).expect("the height is the tip's at most");
            let header = &link.block().header;
            sheet.row(vec![
                height.0.into(),
                link.id().to_string().into(),
                self.tree.slots().slot(header.timestamp).0.into(),
                self.tree.schedule().at(height).round.0.into(),
                header.generator.to_string().into(),
                header.number_of_transactions.into(),
                header.total_fee.value().into(),
            ])?;
        }
        sheet.finish()
    }

    fn orphans(&self, folder: &Path) -> Result<(), SheetError> {
        let columns = [
            ("height", Kind::Count),
            ("id", Kind::Text),
            ("slot", Kind::Count),
            ("at_us", Kind::Count),
            ("node", Kind::Count),
            ("transactions", Kind::Count),
        ];
        let mut sheet = self.sheet(folder, "orphans", columns)?;
        for orphan in &self.figures.orphans {
            sheet.row(vec![
                orphan.height.into(),
                orphan.id.as_str().into(),
                orphan.slot.into(),
                orphan.at_us.into(),
                orphan.node.into(),
                orphan.transactions.into(),
            ])?;
        }
        sheet.finish()
    }

    /// Each link once, by the numbers of its nodes.
    fn links(&self, folder: &Path) -> Result<(), SheetError> {
        let (network, links) = (self.network, self.network.links());
        if matches!(links, Links::Mesh(all) if all.len() > MESH_LIMIT) {
            // A reader would take the links of an earlier run for the links of this run.
            for file in Output::Links.files().iter().map(|name| folder.join(name)) {
                match fs::remove_file(&file) {
                    Err(source) if source.kind() != io::ErrorKind::NotFound => {
                        return Err(SheetError::Io { file, source });
                    }
                    _ => {}
                }
            }
            return Ok(());
        }
        let columns =
            [("from", Kind::Count), ("to", Kind::Count), ("latency_us", Kind::Count), ("latency_back_us", Kind::Count)];
        let mut sheet = self.sheet(folder, "links", columns)?;
        for from in (0..self.figures.nodes as u32).map(NodeId) {
            for to in links.of(from).into_iter().filter(|to| *to > from) {
                sheet.row(vec![
                    from.0.into(),
                    to.0.into(),
                    network.fixed_latency(from, to).into(),
                    network.fixed_latency(to, from).into(),
                ])?;
            }
        }
        sheet.finish()
    }
}

/// JSON for people, ending with a line end.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("figures have text as keys");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let set = ["rounds=3".to_owned(), "network.latency={ min_ms = 1, max_ms = 2 }".to_owned()];
        let expected = "dposlab run 'my files/it'\\''s.toml' --seed 7 --set rounds=3 \
                        --set 'network.latency={ min_ms = 1, max_ms = 2 }'";
        assert_eq!(command("my files/it's.toml", 7, &set), expected);
    }
}
