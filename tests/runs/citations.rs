//! Every citation of the contract resolves: `docs/contract` holds each cited place as an anchor, once.
//!
//! The one form, which docs/contract/README.md documents:
//!
//! ```text
//! citation = document " " place { (", " | " and " | " to ") place }      consensus.md 3.5, 8 Q17
//! document = "consensus.md" | "api.md" | "protocol.md"
//! place    = section [ " " label ] | invariant                            4.5 type 8; I6
//! section  = number [ "." number ]                                        3; 3.5
//! label    = Q17 | I5 | ("row" | "step" | "type" | "item") " " name | a quoted heading
//! ```
//!
//! A place's anchor is the place in lower case, without quotes, with `-` for blanks: `4.5-type-8`. An invariant alone is
//! that of consensus.md 7.1. A document's name without a place cites the whole document.

use crate::support::root;
use fancy_regex::{Captures, Regex};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

const DOCUMENTS: [&str; 3] = ["consensus", "api", "protocol"];
/// Files and folders that cite.
const CITING: [&str; 11] = [
    "src",
    "tests",
    "benches",
    "examples",
    "docs",
    "scenarios",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "fuzz/fuzz_targets",
];
/// Of files that are read.
const ENDINGS: [&str; 7] = ["rs", "md", "toml", "txt", "py", "js", "mjs"];
/// A place, as the form has it.
const PLACE: &str = r#"(?:\d+(?:\.\d+)?(?: (?:[QI]\d+|(?:row|step|type|item) [0-9A-Z]+(?:/\d+)?|"[^"\n]+"))?|I\d+)"#;
/// A text that begins like a place that the form does not know.
const LEFT_OVER: &str =
    r"^(?:\.\d|[-–/]\d|[,;:]? ?(?:and |to |\()?(?:\d|§|[QI]\d|(?:row|rows|step|steps|type|item|section) ))";

/// The anchors of each document, by the document's name without `.md`.
type Anchors = BTreeMap<&'static str, BTreeSet<String>>;

#[test]
fn every_citation_names_a_place_of_the_contract() {
    let anchors = contract();
    let (mut found, mut wrong) = (0, Vec::new());
    for file in CITING.iter().flat_map(|name| texts(&root().join(name))) {
        let text = fs::read_to_string(&file).expect("the file is text");
        let name = file.strip_prefix(root()).expect("the file is the package's").display().to_string();
        let (cited, refused) = citations(&text, &anchors);
        found += cited;
        wrong.extend(refused.into_iter().map(|(line, why)| format!("{name}:{line}: {why}")));
        wrong.extend(quirks(&name, &text, &anchors["consensus"]));
    }
    assert!(wrong.is_empty(), "{} wrong citations:\n{}", wrong.len(), wrong.join("\n"));
    assert!(found > 350, "the project cites the contract some 400 times; the parser sees {found}");
}

#[test]
fn the_contract_has_each_anchor_once_and_its_links_lead_somewhere() {
    let (anchors, link) = (contract(), regex(r"\]\((?:(\w+)\.md)?#([^)]+)\)"));
    for document in DOCUMENTS {
        let text = fs::read_to_string(path(document)).expect("the contract is text");
        let all = ids(&text);
        let distinct: BTreeSet<&String> = all.iter().collect();
        let twice: Vec<&&String> =
            distinct.iter().filter(|id| all.iter().filter(|one| one == *id).count() > 1).collect();
        assert!(twice.is_empty(), "{document}.md has these anchors twice: {twice:?}");
        for link in link.captures_iter(text.as_str()).map(|found| found.expect("the text is short")) {
            let other = link.get(1).map_or(document, |name| name.as_str());
            assert!(
                anchors[other].contains(&link[2]),
                "{document}.md links to {other}.md#{}, which is not there",
                &link[2]
            );
        }
        for section in regex(r"(?m)^#+ (\d+(?:\.\d+)?)\.? ").captures_iter(text.as_str()) {
            let section = section.expect("the text is short")[1].to_owned();
            assert!(distinct.contains(&section), "{document}.md: section {section} has no anchor");
        }
    }
}

#[test]
fn a_wrong_citation_is_noticed_with_its_line() {
    let anchors = Anchors::from([(
        "consensus",
        ["3", "3.1", "3.5", "3.3-row-8", "4.5-type-8", "7.1-i6", "8", "8-q3", "3.5-fork-detection"]
            .map(str::to_owned)
            .into(),
    )]);
    let judge = |text: &str| citations(&text.replace("DOC", "consensus.md"), &anchors);
    let right = [
        "Source: DOC 3.5.",
        "DOC 3.1, 8 Q3",
        "DOC 3.1 to 3.5 and 8 marks it",
        "(DOC 3.3 row 8)",
        "DOC 4.5 type 8, and recorded",
        "DOC 3.1, I6\"",
        "DOC 3.5 \"Fork detection\": what",
        "DOC 3 blocks",
        "of DOC. 9",
        "DOC 8\n    //! Q3.",
    ];
    for text in right {
        assert_eq!(judge(text), (1, Vec::new()), "{text}");
    }
    let wrong = [
        "DOC 9.9",
        "DOC 8 Q99",
        "DOC 3.1, 8.4",
        "DOC 8, Q3",
        "DOC 3.1; 8",
        "DOC 3.1-3.5",
        "DOC 3.1 (5)",
        "DOC, 3.5",
        "DOC 3.3, row 8",
        "DOC 3.3 row 9",
        "DOC 3.5 \"Fork\"",
        "DOC I9",
        "DOC section 3",
    ];
    for text in wrong {
        let (cited, refused) = judge(&format!("one\n    /// two, {text}\n"));
        assert_eq!((cited, refused.len(), refused[0].0), (0, 1, 2), "{text}: {refused:?}");
    }
    let quirk = quirks("src/a.rs", "let a = 1;\nlet b = 2; // Q99: odd\n// Q3: known\n", &anchors["consensus"]);
    assert_eq!(quirk, ["src/a.rs:2: Q99 is no quirk of consensus.md 8".to_owned()]);
}

/// The number of citations that resolve, and what is wrong with the others, by line.
fn citations(text: &str, anchors: &Anchors) -> (usize, Vec<(usize, String)>) {
    let (flat, lines) = joined(text);
    let one = regex(&format!(
        r"(?<![\w/-])(?:docs/contract/)?(consensus|api|protocol)\.md(?: ({PLACE}(?:(?:, | and | to ){PLACE})*))?"
    ));
    let (mut cited, mut wrong) = (0, Vec::new());
    for found in one.captures_iter(flat.as_str()).map(|found| found.expect("the text is short")) {
        let whole = found.get(0).expect("a match has a whole");
        match judge(&found, &flat[whole.end()..], anchors) {
            Ok(()) => cited += 1,
            Err(why) => wrong.push((lines.partition_point(|start| *start <= whole.start()), why)),
        }
    }
    (cited, wrong)
}

/// Checks that all places of a citation are there, and that nothing behind it looks like another place.
fn judge(found: &Captures<'_, str>, behind: &str, anchors: &Anchors) -> Result<(), String> {
    let (cited, document) = (found[0].to_owned(), &found[1]);
    if regex(LEFT_OVER).is_match(behind).expect("the text is short") {
        let behind: String = behind.chars().take(12).collect();
        return Err(format!("`{cited}{behind}` is not of the form that docs/contract/README.md describes"));
    }
    let places = found.get(2).map_or("", |places| places.as_str());
    for place in regex(PLACE).find_iter(places).map(|place| place.expect("the text is short").as_str()) {
        let anchor = anchor(place);
        if !anchors.get(document).is_some_and(|known| known.contains(&anchor)) {
            return Err(format!("`{cited}`: docs/contract/{document}.md has no anchor `{anchor}`"));
        }
    }
    Ok(())
}

/// Quirks named by number alone, in comments of sources, that the contract does not list.
fn quirks(name: &str, text: &str, known: &BTreeSet<String>) -> Vec<String> {
    let (quirk, source) = (regex(r"\bQ\d+\b"), name.ends_with(".rs") && !name.ends_with("citations.rs"));
    let comments = text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, line.split_once("//")?.1)));
    let named = comments.flat_map(|(at, line)| {
        quirk
            .find_iter(line)
            .map(|found| found.expect("the text is short").as_str().to_owned())
            .map(move |one| (at, one))
    });
    named
        .filter(|(_, one)| source && !known.contains(&format!("8-{}", one.to_lowercase())))
        .map(|(at, one)| format!("{name}:{at}: {one} is no quirk of consensus.md 8"))
        .collect()
}

/// The anchor of a place.
fn anchor(place: &str) -> String {
    let alone = if place.starts_with('I') { format!("7.1 {place}") } else { place.to_owned() };
    alone.to_lowercase().replace('"', "").replace(' ', "-")
}

/// The text in one line, without the marks of comments, and where each line begins in it.
fn joined(text: &str) -> (String, Vec<usize>) {
    let (mut flat, mut starts) = (String::new(), Vec::new());
    for line in text.lines() {
        starts.push(flat.len());
        let line = line.trim();
        let bare = ["//!", "///", "//", "#"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
        flat.push_str(bare.trim());
        flat.push(' ');
    }
    (flat, starts)
}

fn contract() -> Anchors {
    let anchors = |document| ids(&fs::read_to_string(path(document)).expect("the contract is text"));
    DOCUMENTS.map(|document| (document, anchors(document).into_iter().collect())).into()
}

/// The anchors of a text, in its order.
fn ids(text: &str) -> Vec<String> {
    let id = regex(r#"<a id="([^"]+)"></a>"#);
    id.captures_iter(text).map(|found| found.expect("the text is short")[1].to_owned()).collect()
}

fn path(document: &str) -> PathBuf {
    root().join("docs/contract").join(document).with_extension("md")
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is well-formed")
}

/// The files below a path that may cite: sources, documents, scenarios and lists.
fn texts(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        let cites = path.extension().and_then(OsStr::to_str).is_some_and(|ending| ENDINGS.contains(&ending));
        return if cites { vec![path.to_owned()] } else { Vec::new() };
    }
    let Ok(folder) = fs::read_dir(path) else { return Vec::new() };
    let inside = folder.map(|entry| entry.expect("the folder can be listed").path());
    let mut found: Vec<PathBuf> =
        inside.filter(|path| !path.ends_with("node_modules")).flat_map(|path| texts(&path)).collect();
    found.sort();
    found
}
