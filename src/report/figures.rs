//! The figures of a report as SVG files: the page's own scripts draw them, in an engine without a browser.
//!
//! A figure is what the page's button "SVG" saves, in type whose widths are known everywhere. The scripts are this program's own,
//! and those of the file must be the same. Only the data come from the file.

use super::page;
use crate::{
    drawing::engine::{self, EngineError, Window},
    files,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

/// The largest size of a page in bytes.
pub(crate) const PAGE_LIMIT: u64 = 64 << 20;
/// The largest number of letters in a file's name without its ending.
const NAME_MAX: usize = 100;
const COLLECT: &str = include_str!("figures/collect.js");
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The beginning of a file's last line: the digest of all before it follows.
const SEAL: &str = "\n<!-- drawn by dposlab figures, sha256 of the lines above: ";
const SEAL_END: &str = " -->\n";

/// The look of figures.
#[derive(Clone, Debug)]
pub(crate) struct FigureLook {
    pub is_dark: bool,
    /// The width of each file's picture in pixels; `None` for that on the page in a wide window.
    pub width: Option<u16>,
    /// The metrics that a sweep's plots show. If empty, the plots show the metric that the page opens with.
    pub metrics: Vec<String>,
}

/// The margin on each side of a drawing, in pixels.
const MARGIN: u16 = 12;

/// A figure as a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FigureFile {
    /// The name of the file: the title in kebab case.
    pub file: String,
    pub title: String,
    /// The size of the picture in pixels.
    pub width: u32,
    pub height: u32,
    #[serde(skip)]
    pub svg: String,
}

/// The figures of a page in its order, and the metrics to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FigureSet {
    pub figures: Vec<FigureFile>,
    pub metrics: Vec<String>,
}

/// The reason why a report gives no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FiguresError {
    #[error("{}: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}: found no report.html, allowed is a folder that `run --out`, `sweep --out` or `explain --out` left, or such a page", folder.display())]
    NoReport { folder: PathBuf },
    #[error("{}: found no page of a report, allowed are those that `run --out`, `sweep --out` and `explain --out` leave", file.display())]
    NoPage { file: PathBuf },
    #[error("{}: found data that are no JSON ({source}): the file is damaged", file.display())]
    NoJson { file: PathBuf, source: serde_json::Error },
    #[error("{}: found a page of dposlab {found}, allowed is one of {VERSION}: that version draws it, or this one makes the report again", file.display())]
    OtherVersion { file: PathBuf, found: String },
    #[error("{}: found other scripts or styles than this build of dposlab {VERSION} writes: the file was changed, or another build wrote it; make the report again", file.display())]
    OtherScripts { file: PathBuf },
    #[error("{}: its data cannot be drawn: {source}", file.display())]
    Undrawn { file: PathBuf, source: EngineError },
    #[error("--metric {metric}: {}: found no such metric, allowed are {}", file.display(), in_words(allowed))]
    UnknownMetric { file: PathBuf, metric: String, allowed: Vec<String> },
    #[error("{}: found a file that `figures` has not written, or that was changed since: take it away, or give another --out", file.display())]
    Foreign { file: PathBuf },
    #[error("{}: {source}", file.display())]
    Unwritten { file: PathBuf, source: io::Error },
}

impl FiguresError {
    /// True if the caller can mend it: the report, an option, or a file in the way.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Unwritten { .. })
    }
}

fn in_words(allowed: &[String]) -> String {
    match allowed {
        [] => "those of a sweep's page, and this page has none".to_owned(),
        allowed => allowed.join(", "),
    }
}

/// The answer of the last script.
#[derive(Deserialize)]
struct CollectedFigures {
    unknown: Option<String>,
    choices: Vec<String>,
    figures: Vec<CollectedFigure>,
}

#[derive(Deserialize)]
struct CollectedFigure {
    name: String,
    title: String,
    width: f64,
    height: f64,
    svg: String,
}

/// Returns the page of a folder, or the path itself if it is a file.
///
/// # Errors
/// There is neither.
pub(crate) fn page_of(path: &Path) -> Result<PathBuf, FiguresError> {
    let found = fs::metadata(path).map_err(|source| FiguresError::Unreadable { file: path.to_path_buf(), source })?;
    if !found.is_dir() {
        return Ok(path.to_path_buf());
    }
    let file = path.join("report.html");
    match fs::symlink_metadata(&file) {
        Ok(_) => Ok(file),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Err(FiguresError::NoReport { folder: path.to_path_buf() }),
        Err(source) => Err(FiguresError::Unreadable { file, source }),
    }
}

/// Draws every figure of a page.
///
/// # Errors
/// The file cannot be read, is no page of this version, or its data cannot be drawn; or it has no such metric.
pub(crate) fn draw(file: &Path, look: &FigureLook) -> Result<FigureSet, FiguresError> {
    let named = || file.to_path_buf();
    let text =
        files::read_text(file, PAGE_LIMIT).map_err(|source| FiguresError::Unreadable { file: named(), source })?;
    let parts = page::parts(&text).ok_or_else(|| FiguresError::NoPage { file: named() })?;
    let data: Value =
        serde_json::from_str(parts.data).map_err(|source| FiguresError::NoJson { file: named(), source })?;
    let scripts = parts.scripts.ok_or_else(|| match version_of(&data) {
        Some(found) if found != VERSION => FiguresError::OtherVersion { file: named(), found: found.to_owned() },
        _ => FiguresError::OtherScripts { file: named() },
    })?;
    let window = Window {
        style: &parts.style,
        data: parts.data,
        theme: if look.is_dark { "dark" } else { "light" },
        width: look.width.map(|width| width.saturating_sub(2 * MARGIN)),
        asked: &json!({ "metrics": look.metrics }),
    };
    let undrawn = |source| FiguresError::Undrawn { file: named(), source };
    let answer = engine::run(&[&scripts[0], &scripts[1]], COLLECT, window).map_err(undrawn)?;
    let collected: CollectedFigures = serde_json::from_str(&answer)
        .map_err(|why| undrawn(EngineError::Thrown(format!("they give something else than figures: {why}"))))?;
    if let Some(metric) = collected.unknown {
        return Err(FiguresError::UnknownMetric { file: named(), metric, allowed: collected.choices });
    }
    let mut taken = BTreeSet::new();
    let figures = collected.figures.into_iter().map(|figure| figure.into_file(&mut taken)).collect();
    Ok(FigureSet { figures, metrics: collected.choices })
}

fn version_of(data: &Value) -> Option<&str> {
    ["/about/version", "/summary/version", "/version"].iter().find_map(|path| data.pointer(path)?.as_str())
}

impl CollectedFigure {
    /// The file, under a name that is not taken yet.
    fn into_file(self, taken: &mut BTreeSet<String>) -> FigureFile {
        let plain: String =
            self.name.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
        let short = plain[..plain.len().min(NAME_MAX)].trim_matches('-');
        let name = if short.is_empty() { "figure" } else { short };
        let numbered = (1..).map(|number| if number == 1 { name.to_owned() } else { format!("{name}-{number}") });
        let free = numbered.into_iter().find(|name| !taken.contains(name)).expect("numbers do not end");
        taken.insert(free.clone());
        FigureFile {
            file: format!("{free}.svg"),
            title: self.title,
            width: self.width as u32,
            height: self.height as u32,
            svg: sealed(&self.svg),
        }
    }
}

/// The text of a file: the picture, and a comment with its digest, by which a later command knows the file as unchanged.
fn sealed(svg: &str) -> String {
    format!("{svg}{SEAL}{}{SEAL_END}", hex::encode(Sha256::digest(svg)))
}

/// Returns true if this program wrote the text, and it is unchanged.
fn is_sealed(text: &str) -> bool {
    text.rsplit_once(SEAL).is_some_and(|(svg, _)| sealed(svg) == text)
}

/// Writes the files into a folder, which is made. Writes none of them if one is in the way.
///
/// # Errors
/// A file that this program has not written is in the way, or one cannot be written.
pub(crate) fn write(figures: &[FigureFile], folder: &Path) -> Result<(), FiguresError> {
    let unwritten = |file: &Path, source| FiguresError::Unwritten { file: file.to_path_buf(), source };
    fs::create_dir_all(folder).map_err(|source| FiguresError::Unreadable { file: folder.to_path_buf(), source })?;
    for file in figures.iter().map(|figure| folder.join(&figure.file)) {
        let is_free = match fs::symlink_metadata(&file) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => true,
            Err(source) => return Err(unwritten(&file, source)),
            Ok(found) => found.is_file() && files::read_text(&file, PAGE_LIMIT).is_ok_and(|text| is_sealed(&text)),
        };
        if !is_free {
            return Err(FiguresError::Foreign { file });
        }
    }
    for figure in figures {
        let file = folder.join(&figure.file);
        super::sheet::write_whole(&file, figure.svg.as_bytes())
            .map_err(|why| unwritten(&file, io::Error::other(why.to_string())))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(name: &str) -> CollectedFigure {
        CollectedFigure {
            name: name.to_owned(),
            title: String::new(),
            width: 1.0,
            height: 1.0,
            svg: "<svg/>".to_owned(),
        }
    }

    #[test]
    fn names_are_short_plain_and_each_once() {
        let mut taken = BTreeSet::new();
        let names = ["a-b", "a-b", "", "../../etc", "", &"x".repeat(400), &"x".repeat(300)];
        let files = names.map(|name| collected(name).into_file(&mut taken).file);
        let long = "x".repeat(NAME_MAX);
        assert_eq!(
            files,
            [
                "a-b.svg".to_owned(),
                "a-b-2.svg".to_owned(),
                "figure.svg".to_owned(),
                "etc.svg".to_owned(),
                "figure-2.svg".to_owned(),
                format!("{long}.svg"),
                format!("{long}-2.svg"),
            ]
        );
    }

    #[test]
    fn a_seal_holds_for_the_text_alone() {
        let text = sealed("<svg/>");
        assert!(is_sealed(&text));
        for other in [text.replace("<svg/>", "<svg />"), format!("{text} "), "<svg/>".to_owned(), String::new()] {
            assert!(!is_sealed(&other), "{other}");
        }
    }
}
