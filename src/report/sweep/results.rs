//! The results of a sweep when all of its runs are done: `runs.parquet` and `runs.csv` with a row a run, `failures.csv`, `summary.json`
//! and `report.html`. All of it is a function of the rows, in the order of the runs, independent of the threads that played them.

use super::{
    Manifest, Shard, Sweep, SweepError, SweepRun,
    columns::{self, FIGURES, Status, TIMES},
    pairs,
    rows::Rows,
    stopping_rule::UntilReport,
    summary::{AssertionSummary, CellSummary, FailedRun, Summary},
};
use crate::{
    files::Identity,
    report::{
        bundle::pretty,
        page,
        provenance::{Provenance, SweepStudy},
        sheet::{Cell, Kind, Sheet, column, write_whole},
        statistics::{Bounds, Distribution, Share},
        survival::Survival,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// The name of the file with a study's points, as given.
pub(crate) const POINTS: &str = "points.csv";
/// The files of the results, in the order in which they are compared with those of a repetition.
pub(crate) const RESULTS: [&str; 7] =
    ["runs.csv", "failures.csv", POINTS, "summary.json", "runs.parquet", "failures.parquet", "report.html"];
/// The largest number of missing parts that an error names.
const PARTS_NAMED: usize = 10;
/// The number of failed runs that the summary names. All of them are in `failures.csv`.
const FAILURES_NAMED: usize = 100;

/// Reads all rows of the folder and writes the results there. `until` is the reason why a sweep ended early.
///
/// # Errors
/// A run is missing, or a file cannot be written.
pub(crate) fn write(
    sweep: &Sweep,
    rows: &Rows,
    folder: &Path,
    until: Option<UntilReport>,
) -> Result<Summary, SweepError> {
    let compared = sweep.study.compare;
    if compared {
        sweep.check_compared()?;
    }
    rows.check_there()?;
    let kinds = columns::varied_kinds(&sweep.cells);
    let about = sweep.metadata();
    let mut runs = Sheet::create(folder, "runs", columns::table(&sweep.cells), &about)?;
    let failure_columns = [
        ("run", Kind::Count),
        ("seed", Kind::Count),
        ("status", Kind::Text),
        ("ended", Kind::Text),
        ("broken", Kind::Text),
        ("reproduce", Kind::Text),
    ];
    let failure_columns = failure_columns.map(|(name, kind)| column(name, kind)).to_vec();
    let mut failures = Sheet::create(folder, "failures", failure_columns, &about)?;
    let mut summary = Summary {
        manifest: sweep.manifest.clone(),
        rules: rules_in_words(sweep),
        runs: 0,
        failed: 0,
        censored: 0,
        died: 0,
        by_status: BTreeMap::new(),
        failures: Vec::new(),
        cells: Vec::new(),
        compared: Vec::new(),
        until_ci: until,
    };
    // Runs are read cell by cell, so only one cell's figures are in memory at a time.
    let mut cell = CellFigures::new(sweep, 0);
    let mut missing = 0;
    for place in sweep.places() {
        let Some(row) = rows.read(sweep.row_of(place))? else {
            missing += 1;
            continue;
        };
        if place.cell != cell.cell {
            summary.cells.push(cell.report(sweep));
            cell = CellFigures::new(sweep, place.cell);
        }
        cell.add(&row);
        summary.runs += 1;
        *summary.by_status.entry(row.status.word()).or_default() += 1;
        summary.censored += u64::from(row.status == Status::Censored);
        summary.died += u64::from(row.status == Status::Died);
        if row.status.is_failed() {
            summary.failed += 1;
            let reproduce = sweep.command(place);
            let (status, broken) = (row.status.word(), assertions(sweep, place, row.broken));
            let (ended, told) = (columns::end_of_number(row.ended), broken.join("; "));
            failures.row(vec![
                place.run.into(),
                place.seed.into(),
                status.into(),
                ended.clone().into(),
                told.into(),
                reproduce.as_str().into(),
            ])?;
            if summary.failures.len() < FAILURES_NAMED {
                summary.failures.push(FailedRun { run: place.run, seed: place.seed, status, ended, broken, reproduce });
            }
        }
        runs.row(cells_of(sweep, &kinds, place, &row))?;
    }
    if missing > 0 {
        return Err(SweepError::NotDone { folder: folder.to_path_buf(), missing, total: sweep.len() });
    }
    if summary.runs > 0 {
        summary.cells.push(cell.report(sweep));
    }
    if compared {
        summary.compared = pairs::compare(sweep, rows)?;
    }
    runs.finish()?;
    failures.finish()?;
    if let Some(points) = &sweep.manifest.points {
        write_whole(&folder.join(POINTS), points.to_csv().as_bytes())?;
    }
    write_whole(&folder.join("summary.json"), pretty(&summary).as_bytes())?;
    write_whole(&folder.join("report.html"), page::sweep::page(&summary, &sweep.study.scenario).as_bytes())?;
    Ok(summary)
}

/// The rules in words, if all runs have the same.
fn rules_in_words(sweep: &Sweep) -> String {
    let all: BTreeSet<String> = sweep.cells.iter().map(|cell| cell.scenario.rules_in_words()).collect();
    match all.first() {
        Some(only) if all.len() == 1 => only.clone(),
        _ => "rules as varied".to_owned(),
    }
}

/// Joins the parts of a sweep into a folder, and writes the results of the whole sweep there. They are the same, byte for byte,
/// as those of a sweep in one piece.
///
/// # Errors
/// The folders are not all parts of one sweep, a part is missing or not done, or a file cannot be written.
pub(crate) fn merge(
    parts: &[&Path],
    folder: &Path,
    compare: bool,
    command: Vec<String>,
) -> Result<(Sweep, Summary), SweepError> {
    for (index, part) in parts.iter().enumerate() {
        let same = |other: &&Path| Identity::at(other).is_some_and(|other| Identity::at(part) == Some(other));
        if parts[..index].iter().any(same) {
            return Err(SweepError::Parts(format!("{}: is given twice", part.display())));
        }
        if same(&folder) {
            return Err(SweepError::Parts(format!("--out {}: is one of the parts", folder.display())));
        }
    }
    let (sweeps, rows): (Vec<_>, Vec<_>) =
        parts.iter().map(|part| Sweep::of(part)).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let whole = Manifest { shard: None, ..sweeps[0].manifest.clone() };
    let of = sweeps[0].manifest.shard.map_or(1, |shard| shard.of);
    let mut found = BTreeSet::new();
    for (sweep, part) in sweeps.iter().zip(parts) {
        Manifest { shard: None, ..sweep.manifest.clone() }.check_same(&whole, part)?;
        let index = sweep.manifest.shard.map_or(1, |shard| shard.index);
        if sweep.manifest.shard.map_or(1, |shard| shard.of) != of || found.contains(&index) {
            let shard = sweep.manifest.shard.map_or("the whole".to_owned(), String::from);
            return Err(SweepError::Parts(format!("{}: part {shard} does not fit beside the others", part.display())));
        }
        found.insert(index);
    }
    let lacking = of - found.len() as u64;
    if lacking > 0 {
        let named = (1..=of).filter(|index| !found.contains(index)).take(PARTS_NAMED);
        let named: Vec<String> = named.map(|index| format!("{index}/{of}")).collect();
        let more = match lacking.saturating_sub(PARTS_NAMED as u64) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        return Err(SweepError::Parts(format!("parts are missing: {}{more}", named.join(", "))));
    }
    let shards: Vec<Option<Shard>> = sweeps.iter().map(|sweep| sweep.manifest.shard).collect();
    let max_time = sweeps.iter().any(|part| part.study.max_time);
    let first = sweeps.into_iter().next().expect("there is a first part");
    // The seeds of a sweep that ended early are those of its manifest, and nothing ends a merged one early.
    let study = SweepStudy { compare, until_ci: None, max_time, ..first.study.clone() };
    let merged = Sweep { manifest: whole, study, command, ..first };
    let mut earlier = Vec::new();
    for part in parts {
        earlier.extend(Provenance::left_in(part)?.into_iter().flat_map(|before| before.played));
    }
    let into = merged.manifest.claim(folder)?;
    merged.keep(folder, earlier)?;
    for ((part, shard), from) in parts.iter().zip(shards).zip(&rows) {
        copy(&merged, shard, part, from, &into)?;
    }
    into.sync()?;
    let summary = write(&merged, &into, folder, None)?;
    Ok((merged, summary))
}

fn copy(merged: &Sweep, part: Option<Shard>, folder: &Path, from: &Rows, into: &Rows) -> Result<(), SweepError> {
    let (first, step) = part.map_or((0, 1), |shard| (shard.index - 1, shard.of));
    let (mut missing, mut total) = (0, 0);
    for run in (first..merged.runs()).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        total += 1;
        let place = merged.row_of(merged.place(run));
        match from.read(if part.is_some() { run / step } else { place })? {
            Some(row) => into.write(place, &row)?,
            None => missing += 1,
        }
    }
    match missing {
        0 => Ok(()),
        _ => Err(SweepError::NotDone { folder: folder.to_path_buf(), missing, total }),
    }
}

fn cells_of(sweep: &Sweep, kinds: &[Kind], place: SweepRun, row: &super::rows::Row) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![place.run.into()];
    cells.extend(columns::varied(kinds, &sweep.cells[place.cell]));
    cells.push(place.seed.into());
    cells.push(row.status.word().into());
    cells.push(columns::end_of_number(row.ended).into());
    for which in [row.broken, row.undecided] {
        let told = assertions(sweep, place, which);
        cells.push((!told.is_empty()).then(|| told.join("; ")).into());
    }
    cells.extend(FIGURES.iter().zip(&row.figures).map(|(figure, value)| match (figure.kind, value) {
        (_, None) => Cell::Empty,
        (Kind::Count, Some(value)) => Cell::Count(*value as u64),
        (_, Some(value)) => Cell::Number(*value),
    }));
    cells.push(hex::encode(row.digest).into());
    cells
}

/// The assertions of a run whose bits are set.
fn assertions(sweep: &Sweep, place: SweepRun, bits: u64) -> Vec<String> {
    let assertions = sweep.cells[place.cell].scenario.assertions.iter().enumerate();
    let which = assertions.filter(|(index, _)| bits >> index & 1 == 1);
    which.map(|(_, assertion)| assertion.to_string()).collect()
}

struct CellFigures {
    cell: usize,
    runs: u64,
    censored: u64,
    cut_short: u64,
    died: u64,
    ok: Share,
    assertions: Vec<AssertionTally>,
    converged: Survival,
    figures: Vec<Distribution>,
}

#[derive(Clone, Default)]
struct AssertionTally {
    share: Share,
    undecided: u64,
}

impl CellFigures {
    fn new(sweep: &Sweep, cell: usize) -> Self {
        let assertions = vec![AssertionTally::default(); sweep.cells[cell].scenario.assertions.len()];
        let figures = vec![Distribution::new(); FIGURES.len()];
        let (ok, converged) = (Share::default(), Survival::default());
        Self { cell, runs: 0, censored: 0, cut_short: 0, died: 0, ok, assertions, converged, figures }
    }

    fn add(&mut self, row: &super::rows::Row) {
        self.runs += 1;
        self.censored += u64::from(row.status == Status::Censored);
        self.died += u64::from(row.status == Status::Died);
        self.cut_short += u64::from(row.status != Status::Died && !columns::is_complete(row.ended));
        if row.status.is_decided() {
            self.ok.add(row.status == Status::Ok);
        }
        if row.status != Status::Died {
            for (index, held) in self.assertions.iter_mut().enumerate() {
                let is_in = |bits: u64| bits >> index & 1 == 1;
                match is_in(row.broken) {
                    false if is_in(row.undecided) => held.undecided += 1,
                    broken => held.share.add(!broken),
                }
            }
        }
        let [converged, observed] = TIMES.map(|name| row.figure(name));
        if let Some(observed) = observed {
            self.converged.add(observed, converged.is_some());
        }
        for (distribution, figure) in self.figures.iter_mut().zip(&row.figures) {
            if let Some(figure) = figure {
                distribution.add(*figure);
            }
        }
    }

    fn report(&self, sweep: &Sweep) -> CellSummary {
        let varied = sweep.cells[self.cell].varied.iter().map(|varied| (varied.path(), varied.value_text()));
        let figures = FIGURES.iter().zip(&self.figures).filter(|(figure, _)| !TIMES.contains(&figure.name));
        let assertions = sweep.cells[self.cell].scenario.assertions.iter().zip(&self.assertions);
        CellSummary {
            varied: varied.collect(),
            notes: sweep.cells[self.cell].scenario.notes(None),
            runs: self.runs,
            censored: self.censored,
            cut_short: self.cut_short,
            died: self.died,
            slot_s: sweep.cells[self.cell].scenario.network.block_time_s,
            ok: self.ok.report(),
            converged_seconds: self.converged.report(),
            converged_curve: self.converged.curve(),
            assertions: assertions
                .map(|(text, held)| AssertionSummary {
                    assertion: text.to_string(),
                    holds: held.share.report(),
                    bounds: Bounds::of(held.share, held.undecided),
                    undecided: held.undecided,
                })
                .collect(),
            figures: figures.filter_map(|(figure, values)| Some((figure.name, values.report()?))).collect(),
        }
    }
}
