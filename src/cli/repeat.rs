//! `dposlab run DIR` and `dposlab sweep DIR`: a study played again from its folder alone, and compared with what the folder holds.

use super::{
    Failure, output,
    run::{PlannedRun, Run},
    sweep::{Sweep, failure},
};
use crate::{
    report::{
        bundle::Output,
        provenance::{
            KeptStudy, PROVENANCE, Program, Provenance, ProvenanceError, RunStudy, compare::FolderComparison,
        },
        sweep::{Manifest, Sweep as Plan, results},
        trace::TraceWriter,
    },
    scenario::{Ended, Scenario},
};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;

/// The name of the file that a study writes last.
const SUMMARY: &str = "summary.json";
/// The name of the file with a sweep's rows.
const RUNS: &str = "runs.csv";
/// The largest size of a summary in bytes.
const SUMMARY_LIMIT: u64 = 1 << 30;

impl Run {
    /// Plays the run of a folder again.
    ///
    /// # Errors
    /// The folder does not say enough, the repetition was interrupted, or it differs.
    pub(super) fn repeat(mut self) -> Result<(), Failure> {
        let folder = self.scenario.clone();
        let given = [
            ("--seed", self.seed.is_some()),
            ("--set", !self.set.is_empty()),
            ("--crypto", self.crypto.is_some()),
            ("--check-determinism", self.check_determinism),
            ("--out", self.out.is_some()),
            ("--trace", self.trace.is_some()),
            ("--trace-network", self.trace_network),
            ("--max-time or --max-events", self.limits.is_given()),
        ];
        refuse(&folder, &given, "--stage, --json, --progress and those of the process")?;
        let provenance = Provenance::read(&folder).map_err(unread)?;
        let KeptStudy::Run(study) = &provenance.study else {
            return Err(Failure::usage(format!("{}: is of a sweep: dposlab sweep repeats it", folder.display())));
        };
        let summary = summary_of(&folder)?;
        let by_chance = [Ended::RealTime, Ended::Memory].map(Ended::word);
        if summary["interrupted"] == true || by_chance.iter().any(|word| summary["ended"] == *word) {
            let why =
                "its user, the real time or its memory ended the run, and no repetition ends after the same event";
            return Err(Failure::usage(format!("{}: {why}", folder.join(SUMMARY).display())));
        }
        self.take(study, &folder)?;
        let files = provenance.files(&folder).map_err(unread)?;
        let scenario = Scenario::load_from(&files, &self.set).map_err(Failure::usage)?;
        let planned = PlannedRun::new(&scenario, self.seeds());
        let judge = planned.judge(&folder)?;
        let other = Other::than(&provenance);
        let events = folder.join("events.jsonl");
        let found = Arc::default();
        let trace = match fs::symlink_metadata(&events).is_ok() && !self.without.contains(&Output::Events) {
            true => {
                let (header, passes) = (self.header(&planned.plan), other.is_version);
                let trace = TraceWriter::against(&events, passes, Arc::clone(&found), &header, &planned.plan);
                Some(trace.map_err(Failure::usage)?)
            }
            false => None,
        };
        let played = self.play(&planned, judge, trace.as_slice())?;
        if played.outcome.ended == Ended::Interrupted {
            return Err(Failure::broken(format!("interrupted: nothing is known of {}", folder.display())));
        }
        let repeated = temporary()?;
        self.leave(&planned, &played, &files, repeated.path())?;
        let mut compared = FolderComparison {
            difference: found.lock().expect("the run has ended").take(),
            ..FolderComparison::default()
        };
        match (&trace, &compared.difference) {
            (Some(_), None) => compared.same.push("events.jsonl".to_owned()),
            (None, _) if !self.without.contains(&Output::Events) => compared.missing.push("events.jsonl".to_owned()),
            _ => {}
        }
        let digest = played.outcome.digest.to_string();
        if compared.difference.is_none() && summary["digest"] != digest {
            let told = summary["digest"].as_str().unwrap_or("none");
            compared.difference = Some(format!("{SUMMARY}: key 'digest': found {told}, the repetition has {digest}"));
        }
        let outputs = Output::value_variants().iter().filter(|output| **output != Output::Events);
        let names: Vec<&str> = outputs.flat_map(|output| output.files()).copied().chain([SUMMARY]).collect();
        other.compare(&mut compared, &folder, repeated.path(), &names)?;
        tell(&folder, &compared, &other, self.json, &format!("digest {digest}"))
    }

    /// Takes over the options of a recorded study.
    fn take(&mut self, study: &RunStudy, folder: &Path) -> Result<(), Failure> {
        let file = folder.join(PROVENANCE);
        let wrong = |why: String| Failure::usage(format!("{}: {why}", file.display()));
        self.scenario = PathBuf::from(&study.scenario);
        self.seed = Some(study.seed);
        self.trace_network = study.trace_network;
        let set = study.set.iter().map(|set| set.parse()).collect::<Result<_, _>>();
        self.set = set.map_err(|why: crate::scenario::overrides::OverrideError| wrong(why.to_string()))?;
        let without = study.without.iter().map(|name| Output::from_str(name, false)).collect::<Result<_, _>>();
        self.without = without.map_err(|why| wrong(format!("key 'without': {why}")))?;
        Ok(())
    }
}

impl Sweep {
    /// Plays the sweep of a folder again.
    ///
    /// # Errors
    /// The folder does not say enough, the repetition was interrupted, or it differs.
    pub(super) fn repeat(&self) -> Result<(), Failure> {
        let folder = &self.scenario;
        let given = [
            ("--seeds", self.seeds.is_some()),
            ("--vary", !self.vary.is_empty()),
            ("--points", self.points.is_some()),
            ("--set", !self.set.is_empty()),
            ("--out", self.out.is_some()),
            ("--shard", self.shard.is_some()),
            ("--plan", self.plan),
            ("--only", self.only.is_some()),
            ("--gather", !self.gather.is_empty()),
            ("--compare", self.compare),
            ("--until-ci", self.until_ci.is_some()),
            ("--max-time or --max-events", self.limits.is_given()),
        ];
        refuse(folder, &given, "--jobs, --json, --progress and those of the process")?;
        let provenance = Provenance::read(folder).map_err(unread)?;
        if matches!(provenance.study, KeptStudy::Run(_)) {
            return Err(Failure::usage(format!("{}: is of a run: dposlab run repeats it", folder.display())));
        }
        let manifest = Manifest::read(folder).map_err(failure)?;
        summary_of(folder)?;
        let mut plan = Plan::described(&manifest, &provenance, folder).map_err(failure)?;
        if plan.study.max_time {
            refuse_real_time(folder)?;
        }
        let other = Other::than(&provenance);
        if !other.is_version {
            manifest.check_same(&plan.manifest, folder).map_err(failure)?;
        }
        let until = plan.study.until_ci.as_deref().map(str::parse).transpose();
        let until = until.map_err(|why: String| {
            Failure::usage(format!("{}: key 'until_ci': {why}", folder.join(PROVENANCE).display()))
        })?;
        let repeated = temporary()?;
        let (progress, rows, report) = self.play_into(&mut plan, repeated.path(), until)?;
        let (done, total) = (progress.done, progress.total);
        if done < total && report.is_none() {
            let told = format!(
                "interrupted: {done} of {total} runs were repeated, and nothing is known of {}",
                folder.display()
            );
            return Err(Failure::broken(told));
        }
        results::write(&plan, &rows, repeated.path(), report).map_err(failure)?;
        let mut compared = FolderComparison::default();
        other.compare(&mut compared, folder, repeated.path(), &results::RESULTS)?;
        tell(folder, &compared, &other, self.json, &format!("{} runs", plan.len()))
    }
}

/// The last program that wrote into a folder and differs from this one, if there is one.
struct Other {
    program: Option<Program>,
    /// True if its version differs. Its description of itself and the form of its files may differ then: only values of tables are
    /// compared.
    is_version: bool,
}

impl Other {
    fn than(provenance: &Provenance) -> Self {
        let this = Program::this();
        let of_version = provenance.programs().rev().find(|left| left.version != this.version);
        let other = of_version.or_else(|| provenance.programs().rev().find(|left| **left != this));
        Self { program: other.cloned(), is_version: of_version.is_some() }
    }

    /// Compares these files, tables first.
    fn compare(
        &self,
        compared: &mut FolderComparison,
        folder: &Path,
        repeated: &Path,
        names: &[&str],
    ) -> Result<(), Failure> {
        let by_other = self.program.is_some();
        let is_compared = |name: &&&str| !self.is_version || name.ends_with(".csv");
        let (tables, others): (Vec<&str>, Vec<&str>) =
            names.iter().copied().filter(|name| is_compared(&name)).partition(|name| name.ends_with(".csv"));
        let differ = compared
            .files(folder, repeated, &tables, by_other)
            .and_then(|()| compared.files(folder, repeated, &others, by_other));
        differ.map_err(|(file, why)| Failure::usage(format!("{}: {why}", file.display())))
    }

    fn in_words(&self) -> Option<String> {
        let left = self.program.as_ref()?.in_words();
        let which = if self.is_version { ", so the files that name it are not compared" } else { "" };
        Some(format!("left by dposlab {left}; this is {}{which}", Program::this().in_words()))
    }
}

/// Refuses options that would change the study.
fn refuse(folder: &Path, given: &[(&str, bool)], allowed: &str) -> Result<(), Failure> {
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::usage(format!(
            "{}: is a folder, whose study is repeated as it was: found {option}, allowed are {allowed}",
            folder.display()
        ))),
    }
}

/// Reads the summary of a folder. Without one, the study has not ended.
fn summary_of(folder: &Path) -> Result<Value, Failure> {
    let file = folder.join(SUMMARY);
    if fs::symlink_metadata(&file).is_err() {
        let why = "there is none: the study did not end, so there is nothing to compare a repetition with";
        return Err(Failure::usage(format!("{}: {why}", file.display())));
    }
    let read = crate::files::read_text(&file, SUMMARY_LIMIT).map_err(|why| why.to_string());
    let read = read.and_then(|text| serde_json::from_str(&text).map_err(|why| why.to_string()));
    read.map_err(|why| Failure::usage(format!("{}: {why}", file.display())))
}

/// Refuses a sweep in which the real time ended a run: no repetition ends after the same event.
fn refuse_real_time(folder: &Path) -> Result<(), Failure> {
    let file = folder.join(RUNS);
    let wrong = |why: String| Failure::usage(format!("{}: {why}", file.display()));
    let mut rows = csv::Reader::from_reader(crate::files::open(&file).map_err(|why| wrong(why.to_string()))?);
    let column = rows.headers().ok().and_then(|head| head.iter().position(|name| name == "ended"));
    let is_such = |row: &csv::StringRecord| column.and_then(|column| row.get(column)) == Some(Ended::RealTime.word());
    for row in rows.records() {
        let row = row.map_err(|why| wrong(why.to_string()))?;
        if is_such(&row) {
            let line = row.position().map_or(0, csv::Position::line);
            let why = "the real time ended the run, and no repetition ends after the same event";
            return Err(wrong(format!("line {line}: {why}")));
        }
    }
    Ok(())
}

fn temporary() -> Result<TempDir, Failure> {
    TempDir::with_prefix("dposlab-").map_err(|why| Failure::broken(format!("a folder for the repetition: {why}")))
}

fn unread(error: ProvenanceError) -> Failure {
    match error.is_bad_input() {
        true => Failure::usage(error),
        false => Failure::broken(error),
    }
}

/// Prints whether the repetition gave the same files.
///
/// # Errors
/// The repetition differs.
fn tell(folder: &Path, compared: &FolderComparison, other: &Other, as_json: bool, what: &str) -> Result<(), Failure> {
    let FolderComparison { same, missing, difference } = compared;
    if as_json {
        let told = json!({
            "folder": folder.display().to_string(),
            "is_same": difference.is_none(),
            "difference": difference,
            "same": same,
            "missing": missing,
            "program": other.program.as_ref(),
        });
        output::line(&told.to_string());
    } else {
        output::line(&match difference {
            None => format!("{}: the same: {what}, {} files", folder.display(), same.len()),
            Some(difference) => format!("{}: differs: {difference}", folder.display()),
        });
        if !missing.is_empty() {
            output::line(&format!("not compared, since they are not there: {}", missing.join(", ")));
        }
        if let Some(other) = other.in_words() {
            output::line(&other);
        }
    }
    if difference.is_none() { Ok(()) } else { Err(Failure::Told) }
}
