//! The wording rules of CONTRIBUTING.md, as far as a pattern can check them, and type names that the crate defines more than once.
//!
//! `tests/data/words.toml` records how often each rule is still broken. A count that grows fails the test. So does a count that
//! shrank without being recorded: `REWRITE_WORDS=1` records it, and refuses to record growth. The patterns read comments, prose, string
//! literals and the texts of pages. They skip other code and everything between backticks.

mod literals;

use self::literals::literals;
use crate::support::root;
use fancy_regex::Regex;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsStr,
    fmt::Write,
    fs,
    path::Path,
};

/// Each banned word or opening: its name in the record, and a pattern over one paragraph. `\A` is the paragraph's begin.
const BANNED: [(&str, &str); 13] = [
    ("so many", r"(?i)\bso many\b"),
    ("so much", r"(?i)\bso much\b"),
    ("nobody", r"(?i)\b(?:nobody|no one)\b"),
    ("whoever", r"(?i)\bwho(?:m|se)?ever\b"),
    ("somebody", r"(?i)\b(?:somebody|someone)\b"),
    ("is said", r"(?i)\b(?:is|are|was|were|be|been) (?:said|told)\b"),
    ("as ever", r"(?i)\bas ever\b"),
    ("what stands in", r"(?i)\bwhat [\w' ]{1,40} (?:stands?|lies?|lie) (?:in|at|on|below|above|beside)\b"),
    ("Of ...", r"(?:\A|[.!?] )Of (?!course\b)"),
    ("What ...", r"(?:\A|[.!?] )What(?:ever)? [^?]*?(?:\.(?= |\z)|\z)"),
    ("Who ...", r"(?:\A|[.!?] )(?:Who|Whose|Whom) [^?]*?(?:\.(?= |\z)|\z)"),
    ("That ...", r"(?:\A|[.!?] )(?:That|Those) (?:of|which|who|what|there|in|at|on|with|from|to|for)\b"),
    ("... continued", r"\A(?:…|\.\.\.) "),
];

/// The folders and pages that follow the rules. `docs/contract` quotes the reference, so it is not among them.
const PLACES: [&str; 11] = [
    "src",
    "js/src",
    "js/README.md",
    "python/src",
    "python/README.md",
    "docs",
    "examples",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];

/// Literals whose text is fixed, each with the reason.
const FIXED: [(&str, &str); 4] = [
    ("a refused transaction displaces nobody", "an invariant's public name: scenarios and recorded findings cite it"),
    ("nobody is answered who has not asked", "an invariant's public name: scenarios and recorded findings cite it"),
    ("somebody else", "the passphrase of a key: another text changes recorded runs"),
    ("the second key of whoever registers one", "the passphrase of a key: another text changes recorded runs"),
];

/// What the tree still holds against the rules.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
struct Leftovers {
    /// Places in comments and documents for each entry of [`BANNED`].
    sentences: BTreeMap<String, usize>,
    /// Places in string literals and in the texts of pages for each entry of [`BANNED`].
    literals: BTreeMap<String, usize>,
    /// Definitions for each public type name that has more than one.
    types: BTreeMap<String, usize>,
}

#[test]
fn banned_words_and_double_names_only_become_fewer() {
    let (mut counted, mut definitions) = (Leftovers::default(), BTreeMap::new());
    let (mut in_sentences, mut in_literals) = (BTreeMap::new(), BTreeMap::new());
    let (mut fixed, mut literal_count): (BTreeSet<&str>, usize) = Default::default();
    let patterns = patterns();
    for (name, text) in PLACES.iter().flat_map(|place| texts(&root().join(place))) {
        for (line, paragraph) in paragraphs(&name, &text) {
            for rule in broken(&patterns, &paragraph) {
                note(&mut counted.sentences, &mut in_sentences, rule, &format!("{name}:{line}: {paragraph}"));
            }
        }
        for (at, literal) in literals(&name, &text) {
            literal_count += 1;
            if let Some((known, _)) = FIXED.iter().find(|(known, _)| *known == literal) {
                fixed.insert(known);
                continue;
            }
            for rule in broken_by(&patterns, &literal) {
                let line = line_of(&text, at);
                note(&mut counted.literals, &mut in_literals, rule, &format!("{name}:{line}: {literal:?}"));
            }
        }
        if name.ends_with(".rs") && name.starts_with("src/") && !name.contains("tests") {
            for defined in text.lines().filter_map(type_defined) {
                *definitions.entry(defined.to_owned()).or_insert(0_usize) += 1;
            }
        }
    }
    assert!(definitions.len() > 500, "the crate defines some 900 public types; the scan sees {}", definitions.len());
    assert!(literal_count > 20_000, "the sources hold some 28,000 string literals; the scan sees {literal_count}");
    let unused: Vec<_> = FIXED.iter().filter(|(known, _)| !fixed.contains(known)).collect();
    assert!(unused.is_empty(), "no source holds these exceptions any more: {unused:?}");
    counted.types = definitions.into_iter().filter(|(_, count)| *count > 1).collect();
    let file = root().join("tests/data/words.toml");
    let text = fs::read_to_string(&file).expect("it is there");
    let recorded: Leftovers = toml::from_str(&text).expect("it has the three tables");
    let grown: Vec<String> = grown(&recorded.sentences, &counted.sentences, "comments and documents", &in_sentences)
        .chain(grown(&recorded.literals, &counted.literals, "literals and pages", &in_literals))
        .chain(
            growth(&recorded.types, &counted.types)
                .map(|(name, before, now)| format!("type {name}: {} definitions before, {now} now", before.max(1))),
        )
        .collect();
    assert!(grown.is_empty(), "CONTRIBUTING.md (Words) says how to write it instead:\n{}", grown.join("\n"));
    if env::var_os("REWRITE_WORDS").is_some() {
        let head: String =
            text.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
        let body = toml::to_string(&counted).expect("counts are numbers");
        fs::write(&file, format!("{head}\n{body}")).expect("it can be written");
    } else {
        assert_eq!(recorded, counted, "REWRITE_WORDS=1 records what became fewer");
    }
}

#[test]
fn a_broken_rule_is_noticed_and_a_good_sentence_is_not() {
    let broken_in = |name: &str, text: &str| -> Vec<(usize, &str)> {
        let patterns = patterns();
        let found = paragraphs(name, text);
        found.iter().flat_map(|(line, text)| broken(&patterns, text).map(move |rule| (*line, rule))).collect()
    };
    let source = "let a = 1; // Nobody knows.\n/// Returns it. Of\n/// all peers.\nlet b = \"so many\";\n";
    assert_eq!(broken_in("src/a.rs", source), [(1, "nobody"), (2, "Of ...")]);
    assert_eq!(broken_in("src/a.rs", "/// What it holds.\n///\n/// What is it? A `nobody`.\n"), [(1, "What ...")]);
    assert_eq!(broken_in("src/a.rs", "/// ```\n/// // so many\n/// ```\n/// whoever\n"), [(4, "whoever")]);
    let page =
        "# What it is\n\n| a | b |\n|---|---|\n| x | Of it |\n\nOne,\nso\nmany.\n\n- Of it\n\n```sh\nso many\n```\n";
    assert_eq!(broken_in("docs/a.md", page), [(5, "Of ..."), (7, "so many"), (11, "Of ...")]);
    let script = "x = 'nobody'\ndef f():\n    \"\"\"Takes so much.\n\n    Whoever asks.\"\"\"\n    pass  # nobody\n";
    assert_eq!(broken_in("python/a.py", script), [(3, "so much"), (5, "whoever"), (6, "nobody")]);
    let module = "/** What it is. */\nconst a = 'nobody';\n/**\n * A call.\n * It is said.\n */\n";
    assert_eq!(broken_in("js/a.ts", module), [(1, "What ..."), (4, "is said")]);
    for good in ["The peers of a node.", "Of course.", "That rule holds.", "Says what it holds.", "Who asks? A peer."] {
        assert_eq!(broken_in("docs/a.md", good), [], "{good}");
    }
    assert_eq!(type_defined("pub struct Row<'a> {"), Some("Row"));
    assert_eq!(type_defined("pub type Row = u8;"), Some("Row"));
    assert_eq!(type_defined("    pub(crate) enum Row {"), Some("Row"));
    assert_eq!(type_defined("    pub(super) enum Row {"), None);
    assert_eq!(type_defined("pub fn row() {"), None);
    let of = |count| BTreeMap::from([("Row".to_owned(), count)]);
    assert_eq!(growth(&of(2), &of(3)).collect::<Vec<_>>(), [("Row".to_owned(), 2, 3)]);
    assert_eq!(growth(&of(3), &of(2)).count(), 0);
}

#[test]
fn a_broken_rule_in_a_literal_is_noticed() {
    let broken_in = |name: &str, text: &str| -> Vec<(usize, &str)> {
        let patterns = patterns();
        let found = literals(name, text);
        let found = found.iter().map(|(at, literal)| (line_of(text, *at), literal));
        found.flat_map(|(line, literal)| broken_by(&patterns, literal).map(move |rule| (line, rule))).collect()
    };
    let source = "// \"so many\"\nlet a: &'a str = \"nobody\"; let b = '\"'; let c = '\\'';\nlet d = r#\"so \"many\"#;\n\
                  let e = \"one so \\\n      many \\\" of them\"; /* \"nobody\" */\nlet f = br\"whoever\"; for_r(\"`nobody`\");\n";
    assert_eq!(broken_in("src/a.rs", source), [(2, "nobody"), (4, "so many"), (6, "whoever")]);
    let script = "const a = /[\"'/]\\//; const b = 1 / 2; // 'nobody'\nconst c = `so ${d ? `by ${'nobody'} of` : \"\"} much`;\n\
                  const e = { f: `${g}` }; const h = \"whoever\";\nconst i = `so ${{}}\nmany so\nmuch`;\n";
    assert_eq!(broken_in("js/a.ts", script), [(2, "nobody"), (3, "whoever"), (4, "so much")]);
    let module = "x = 'nobody'  # \"whoever\"\ndef f():\n    \"\"\"Nobody.\"\"\"\n    g(f\"it's {a}\", \"\"\"so\n  many\"\"\")\n";
    assert_eq!(broken_in("python/a.py", module), [(1, "nobody"), (4, "so many")]);
    assert_eq!(broken_in("src/a.json", "{\n\"a // b\": \"nobody\"}"), [(2, "nobody")]);
    let page = "<style>\nnobody</style><!-- nobody -->\n<p title=\"whoever\" id=\"nobody\">So\n many</p>";
    assert_eq!(broken_in("src/a.html", page), [(3, "whoever"), (3, "so many")]);
    for good in ["\"What was run\"", "\"Who forged, by slot\"", "\"What is it?\"", "nobody(\"a\")"] {
        assert_eq!(broken_in("src/a.js", good), [], "{good}");
    }
    assert_eq!(broken_in("src/a.rs", "\"What was run.\""), [(1, "What ...")]);
}

/// Notes one place where a rule is broken.
fn note<'a>(counts: &mut BTreeMap<String, usize>, places: &mut BTreeMap<&'a str, String>, rule: &'a str, place: &str) {
    *counts.entry(rule.to_owned()).or_default() += 1;
    writeln!(places.entry(rule).or_default(), "  {place}").expect("a text takes all");
}

/// A line for each rule whose count grew, and its places.
fn grown<'a>(
    before: &'a BTreeMap<String, usize>,
    now: &'a BTreeMap<String, usize>,
    kind: &'a str,
    places: &'a BTreeMap<&str, String>,
) -> impl Iterator<Item = String> + 'a {
    growth(before, now).map(move |(rule, before, now)| {
        format!("\"{rule}\" in {kind}: {before} places before, {now} now:\n{}", places[rule.as_str()])
    })
}

/// The keys whose count grew, with the count before and now.
fn growth<'a>(
    before: &'a BTreeMap<String, usize>,
    now: &'a BTreeMap<String, usize>,
) -> impl Iterator<Item = (String, usize, usize)> + 'a {
    let pairs = now.iter().map(|(key, count)| (key.clone(), before.get(key).copied().unwrap_or(0), *count));
    pairs.filter(|(_, before, now)| now > before)
}

fn patterns() -> Vec<(&'static str, Regex)> {
    BANNED.map(|(name, pattern)| (name, Regex::new(pattern).expect("the pattern is well-formed"))).into()
}

/// The rules that a paragraph breaks, each as often as it does.
fn broken<'a>(patterns: &'a [(&'static str, Regex)], paragraph: &'a str) -> impl Iterator<Item = &'static str> + 'a {
    patterns.iter().flat_map(move |(name, pattern)| pattern.find_iter(paragraph).map(move |_| *name))
}

/// The rules that the paragraphs of a literal break. A literal without a full stop may be a heading or a label, which may open with
/// "What" or "Who".
fn broken_by(patterns: &[(&'static str, Regex)], literal: &str) -> impl Iterator<Item = &'static str> + use<> {
    let mut found = Vec::new();
    for paragraph in literals::paragraphs(&without_code(literal)) {
        let is_label = !paragraph.ends_with('.');
        found.extend(broken(patterns, &paragraph).filter(|rule| !(is_label && ["What ...", "Who ..."].contains(rule))));
    }
    found.into_iter()
}

/// The number of the line at a place in a text.
fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The name of the type that a line defines for the crate or for its users.
fn type_defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) "))?;
    let rest = ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
}

/// The paragraphs of prose in a file, each on one line, with the number of its first line. A list item and a table cell are paragraphs.
fn paragraphs(name: &str, text: &str) -> Vec<(usize, String)> {
    let (mut found, mut fenced, mut docstring): (Vec<(usize, String)>, bool, bool) = Default::default();
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        let (prose, joins) = match Path::new(name).extension().and_then(OsStr::to_str) {
            // A heading may be a question or a part of one.
            Some("md") if line.starts_with('#') => (String::new(), false),
            Some("md") => (line.trim().to_owned(), true),
            Some("py") => python(line, &mut docstring),
            _ => comment(line),
        };
        if prose.starts_with("```") {
            fenced = !fenced;
        }
        // A line that is no prose, such as a table's rule, ends a paragraph like an empty one.
        if fenced || !prose.chars().any(char::is_alphabetic) || prose.starts_with("```") {
            open = false;
            continue;
        }
        let item = prose.trim_start_matches(|letter: char| letter.is_numeric() || "-*.>#! ".contains(letter));
        let begins = !open || !joins || item.len() < prose.len() || prose.starts_with('|');
        for cell in if prose.starts_with('|') { prose.trim_matches('|').split(" | ").collect() } else { vec![item] } {
            match found.last_mut() {
                Some((_, last)) if !begins => *last = format!("{last} {}", cell.trim()),
                _ => found.push((at + 1, cell.trim().to_owned())),
            }
        }
        open = joins && !prose.starts_with('|');
    }
    found.into_iter().map(|(line, text)| (line, without_code(&text))).collect()
}

/// The comment of a line of Rust, JavaScript or TypeScript, and whether it goes on in the next line.
fn comment(line: &str) -> (String, bool) {
    let bare = line.trim();
    if let Some(marked) = ["//!", "///", "//", "/**", "/*", "* "].iter().find_map(|mark| bare.strip_prefix(mark)) {
        return (marked.trim_end_matches("*/").trim().to_owned(), !bare.ends_with("*/"));
    }
    (line.split_once(" // ").map_or("", |(_, comment)| comment).trim().to_owned(), false)
}

/// The comment or the part of a docstring in a line of Python, and whether it goes on in the next line.
fn python(line: &str, docstring: &mut bool) -> (String, bool) {
    let bare = line.trim();
    let (marks, inside) = (bare.matches("\"\"\"").count(), *docstring);
    *docstring = inside != (marks == 1);
    if inside || bare.starts_with("\"\"\"") || bare.starts_with("r\"\"\"") {
        return (bare.trim_start_matches('r').replace("\"\"\"", ""), *docstring);
    }
    match bare.strip_prefix('#') {
        Some(comment) => (comment.trim().to_owned(), true),
        None => (bare.split_once("  # ").map_or("", |(_, comment)| comment).to_owned(), false),
    }
}

/// The text with `X` in place of what stands between backticks.
fn without_code(text: &str) -> String {
    text.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "X" }).collect()
}

/// The sources and pages at a path, in order, by their names below the package's folder.
fn texts(path: &Path) -> Vec<(String, String)> {
    if path.is_dir() {
        let inside =
            fs::read_dir(path).expect("the folder can be listed").map(|entry| entry.expect("so can this").path());
        let mut inside: Vec<_> = inside.filter(|path| !path.ends_with("docs/contract")).collect();
        inside.sort();
        return inside.iter().flat_map(|path| texts(path)).collect();
    }
    let ends = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    if !["rs", "md", "js", "ts", "py", "html", "json"].contains(&ends) {
        return Vec::new();
    }
    let name = path.strip_prefix(root()).expect("the file is the package's").display().to_string();
    vec![(name, fs::read_to_string(path).expect("it is text"))]
}
