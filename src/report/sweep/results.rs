//! What a sweep leaves when all of its runs are done: `runs.parquet` and `runs.csv` with a row a run, `failures.csv`,
//! `summary.json` and `report.html`. All of it is a function of the rows, in the order of the runs: the same whoever
//! played them.

use super::{
    Manifest, Place, Sweep, SweepError,
    columns::{self, FIGURES, Status},
    rows::Rows,
};
use crate::report::{
    bundle::pretty,
    page,
    sheet::{Cell, Kind, Sheet, column, write_whole},
    statistics::{Distribution, DistributionReport, Share, ShareReport},
};
use serde::Serialize;
use std::{collections::BTreeMap, fs, path::Path};

/// Failed runs that the summary names; the others stand in `failures.csv`.
const FAILURES_NAMED: usize = 100;

/// `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    #[serde(flatten)]
    pub manifest: Manifest,
    pub runs: u64,
    pub failed: u64,
    /// Runs by how they ended.
    pub by_status: BTreeMap<&'static str, u64>,
    /// The first ones.
    pub failures: Vec<Failed>,
    pub cells: Vec<CellSummary>,
}

/// A run that did not end well.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    pub run: u64,
    pub seed: u64,
    pub status: &'static str,
    /// The assertions that did not hold.
    pub broken: Vec<String>,
    /// The command that repeats it.
    pub reproduce: String,
}

/// The runs of one combination of values.
#[derive(Clone, Debug, Serialize)]
pub struct CellSummary {
    /// By path; empty where nothing was varied.
    pub varied: BTreeMap<String, String>,
    /// What a reader of the scenario would not expect of these runs.
    pub notes: Vec<String>,
    /// Runs that ended well.
    pub ok: Option<ShareReport>,
    /// Runs in which each assertion held.
    pub assertions: Vec<AssertionSummary>,
    /// By figure, over the runs that have it.
    pub figures: BTreeMap<&'static str, DistributionReport>,
}

/// How often an assertion held.
#[derive(Clone, Debug, Serialize)]
pub struct AssertionSummary {
    pub assertion: String,
    pub holds: ShareReport,
}

/// Reads all rows once and writes the results.
///
/// # Errors
/// A run is missing, or a file cannot be written.
pub fn write(sweep: &Sweep, folder: &Path) -> Result<Summary, SweepError> {
    let rows = Rows::open(folder)?.ok_or_else(|| SweepError::InUse { folder: folder.to_path_buf() })?;
    let mut runs = Sheet::create(folder, "runs", columns::table(&sweep.cells))?;
    let failure_columns = [
        ("run", Kind::Count),
        ("seed", Kind::Count),
        ("status", Kind::Text),
        ("broken", Kind::Text),
        ("reproduce", Kind::Text),
    ];
    let failure_columns = failure_columns.map(|(name, kind)| column(name, kind)).to_vec();
    let mut failures = Sheet::create(folder, "failures", failure_columns)?;
    let mut summary = Summary {
        manifest: sweep.manifest.clone(),
        runs: 0,
        failed: 0,
        by_status: BTreeMap::new(),
        failures: Vec::new(),
        cells: Vec::new(),
    };
    // Runs come cell by cell, so one cell's figures are in memory at a time.
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
        if row.status != Status::Ok {
            summary.failed += 1;
            let reproduce = sweep.command(place);
            let (status, broken) = (row.status.word(), broken(sweep, place, &row));
            let told = broken.join("; ");
            failures.row(vec![
                place.run.into(),
                place.seed.into(),
                status.into(),
                told.into(),
                reproduce.as_str().into(),
            ])?;
            if summary.failures.len() < FAILURES_NAMED {
                summary.failures.push(Failed { run: place.run, seed: place.seed, status, broken, reproduce });
            }
        }
        runs.row(cells_of(sweep, place, &row))?;
    }
    if missing > 0 {
        return Err(SweepError::NotDone { folder: folder.to_path_buf(), missing, total: sweep.len() });
    }
    if summary.runs > 0 {
        summary.cells.push(cell.report(sweep));
    }
    runs.finish()?;
    failures.finish()?;
    write_whole(&folder.join("summary.json"), pretty(&summary).as_bytes())?;
    write_whole(&folder.join("report.html"), page::sweep::page(&summary).as_bytes())?;
    Ok(summary)
}

/// Joins the parts of a sweep into a folder, and writes the results of the whole there: the same, byte for byte, as if
/// it had not been parted.
///
/// # Errors
/// The folders are not all parts of one sweep, a part is missing or not done, or a file cannot be written.
pub fn merge(parts: &[&Path], folder: &Path) -> Result<Summary, SweepError> {
    let sweeps = parts.iter().map(|part| Sweep::of(part)).collect::<Result<Vec<_>, _>>()?;
    let whole = Manifest { shard: None, ..sweeps[0].manifest.clone() };
    let of = sweeps[0].manifest.shard.map_or(1, |shard| shard.of);
    let mut found = Vec::new();
    for (sweep, part) in sweeps.iter().zip(parts) {
        Manifest { shard: None, ..sweep.manifest.clone() }.check_same(&whole, part)?;
        let index = sweep.manifest.shard.map_or(1, |shard| shard.index);
        if sweep.manifest.shard.map_or(1, |shard| shard.of) != of || found.contains(&index) {
            let shard = sweep.manifest.shard.map_or("the whole".to_owned(), String::from);
            return Err(SweepError::Parts(format!("{}: part {shard} does not fit beside the others", part.display())));
        }
        found.push(index);
    }
    let lacking: Vec<String> =
        (1..=of).filter(|index| !found.contains(index)).map(|index| format!("{index}/{of}")).collect();
    if !lacking.is_empty() {
        return Err(SweepError::Parts(format!("parts are missing: {}", lacking.join(", "))));
    }
    if parts.iter().any(|part| fs::canonicalize(part).ok() == fs::canonicalize(folder).ok()) {
        return Err(SweepError::Parts(format!("--out {}: is one of the parts", folder.display())));
    }
    whole.claim(folder)?;
    let merged = Sweep { manifest: whole, cells: sweeps.into_iter().next().expect("there is a first part").cells };
    let into = Rows::open(folder)?.ok_or_else(|| SweepError::InUse { folder: folder.to_path_buf() })?;
    for part in parts {
        let sweep = Sweep { manifest: Manifest::read(part)?, cells: Vec::new() };
        let from = Rows::open(part)?.ok_or_else(|| SweepError::InUse { folder: part.to_path_buf() })?;
        copy(&merged, &sweep, part, &from, &into)?;
    }
    into.sync()?;
    drop(into);
    write(&merged, folder)
}

fn copy(merged: &Sweep, part: &Sweep, folder: &Path, from: &Rows, into: &Rows) -> Result<(), SweepError> {
    let part = Sweep { manifest: part.manifest.clone(), cells: Vec::new() };
    let (first, step) = part.manifest.shard.map_or((0, 1), |shard| (shard.index - 1, shard.of));
    let (mut missing, mut total) = (0, 0);
    for run in (first..merged.runs()).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        total += 1;
        match from.read(run / step)? {
            Some(row) => into.write(run, &row)?,
            None => missing += 1,
        }
    }
    match missing {
        0 => Ok(()),
        _ => Err(SweepError::NotDone { folder: folder.to_path_buf(), missing, total }),
    }
}

fn cells_of(sweep: &Sweep, place: Place, row: &super::rows::Row) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![place.run.into()];
    cells.extend(columns::varied(&sweep.cells, &sweep.cells[place.cell]));
    cells.push(place.seed.into());
    cells.push(row.status.word().into());
    let broken = broken(sweep, place, row);
    cells.push((!broken.is_empty()).then(|| broken.join("; ")).into());
    cells.extend(FIGURES.iter().zip(&row.figures).map(|(figure, value)| match (figure.kind, value) {
        (_, None) => Cell::Empty,
        (Kind::Count, Some(value)) => Cell::Count(*value as u64),
        (_, Some(value)) => Cell::Number(*value),
    }));
    cells.push(hex::encode(row.digest).into());
    cells
}

/// The assertions that did not hold in a run.
fn broken(sweep: &Sweep, place: Place, row: &super::rows::Row) -> Vec<String> {
    let assertions = sweep.cells[place.cell].scenario.assertions.iter().enumerate();
    let broken = assertions.filter(|(index, _)| row.broken >> index.min(&63) & 1 == 1);
    broken.map(|(_, assertion)| assertion.to_string()).collect()
}

struct CellFigures {
    cell: usize,
    ok: Share,
    assertions: Vec<Share>,
    figures: Vec<Distribution>,
}

impl CellFigures {
    fn new(sweep: &Sweep, cell: usize) -> Self {
        let assertions = vec![Share::default(); sweep.cells[cell].scenario.assertions.len()];
        Self { cell, ok: Share::default(), assertions, figures: vec![Distribution::new(); FIGURES.len()] }
    }

    fn add(&mut self, row: &super::rows::Row) {
        self.ok.add(row.status == Status::Ok);
        if row.status != Status::Died {
            for (index, share) in self.assertions.iter_mut().enumerate() {
                share.add(row.broken >> index.min(63) & 1 == 0);
            }
        }
        for (distribution, figure) in self.figures.iter_mut().zip(&row.figures) {
            if let Some(figure) = figure {
                distribution.add(*figure);
            }
        }
    }

    fn report(&self, sweep: &Sweep) -> CellSummary {
        let varied = sweep.cells[self.cell].varied.iter().map(|varied| (varied.path(), varied.value_text()));
        let figures = FIGURES.iter().zip(&self.figures);
        let assertions = sweep.cells[self.cell].scenario.assertions.iter().zip(&self.assertions);
        CellSummary {
            varied: varied.collect(),
            notes: sweep.cells[self.cell].scenario.notes(),
            ok: self.ok.report(),
            assertions: assertions
                .filter_map(|(text, share)| {
                    Some(AssertionSummary { assertion: text.to_string(), holds: share.report()? })
                })
                .collect(),
            figures: figures.filter_map(|(figure, values)| Some((figure.name, values.report()?))).collect(),
        }
    }
}
