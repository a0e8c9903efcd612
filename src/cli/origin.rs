//! The two parts of an output's origin that only the command knows: its command line and the date.

use super::Failure;
use crate::report::{
    bundle::About,
    provenance::{
        Provenance,
        metadata::{CrateText, write},
    },
    sweep::Sweep,
};
use std::{env, path::Path, time::UNIX_EPOCH};

/// The words of the command line. The first is the program's name without its path.
pub(super) fn command() -> Vec<String> {
    let words = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    ["dposlab".to_owned()].into_iter().chain(words).collect()
}

/// Describes the folder of a run for archives.
///
/// # Errors
/// The file cannot be written.
pub(super) fn describe_run(about: &About, provenance: &Provenance, folder: &Path) -> Result<(), Failure> {
    let name = format!("A run of {} with seed {}", about.scenario, about.seed);
    let ended = if about.interrupted { " It was interrupted." } else { "" };
    describe(folder, provenance, &name, &format!("{} Digest {}.{ended}", sentence(&about.description), about.digest))
}

/// Describes the folder of a sweep for archives.
///
/// # Errors
/// The file cannot be written, or the provenance of the folder can no longer be read.
pub(super) fn describe_sweep(sweep: &Sweep, folder: &Path) -> Result<(), Failure> {
    let (manifest, runs) = (&sweep.manifest, sweep.runs());
    let name = format!("A sweep of {} with seeds {}", manifest.scenario, String::from(manifest.seeds));
    let scenario = sentence(&sweep.cells[0].scenario.description);
    let provenance = Provenance::read(folder).map_err(Failure::broken)?;
    describe(
        folder,
        &provenance,
        &name,
        &format!("{scenario} {runs} runs, {} combinations of values.", sweep.cells.len()),
    )
}

fn sentence(text: &str) -> String {
    match text.is_empty() || text.ends_with('.') {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

fn describe(folder: &Path, provenance: &Provenance, name: &str, description: &str) -> Result<(), Failure> {
    let date = today();
    let described = CrateText { name, description: description.trim(), date: &date };
    write(folder, provenance, &described).map_err(|why| Failure::broken(format!("--out {}: {why}", folder.display())))
}

/// The day, in UTC.
#[expect(clippy::disallowed_methods, reason = "an archive asks for the day on which something was left")]
fn today() -> String {
    let unix = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = jiff::Timestamp::from_second(unix.as_secs() as i64).unwrap_or_default();
    now.strftime("%Y-%m-%d").to_string()
}
