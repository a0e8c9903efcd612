//! docs/extending.md is true: each of its patches applies to the sources, and the page lists exactly the files of each.
//! `tests/extending/run.sh` has the compiler check all patches together.

use crate::support::root;
use std::{collections::BTreeMap, fs};

/// The patches of the page, each under a heading of its own.
const PATCHES: [&str; 10] =
    ["fault", "schedule", "fork-choice", "finality", "transaction", "endpoint", "event", "table", "rule", "invariant"];

#[test]
fn every_patch_applies_to_the_sources() {
    for name in PATCHES {
        for (file, hunks) in files(name) {
            let text = fs::read_to_string(root().join(&file)).unwrap_or_default();
            assert!(!hunks.is_empty(), "{name}.patch changes nothing in {file}");
            for hunk in hunks {
                assert!(applies(&hunk, &text), "{name}.patch, {file}: these lines are not there in a row:\n{hunk}");
            }
        }
    }
}

#[test]
fn the_page_lists_the_files_of_each_patch_and_counts_them() {
    let page = fs::read_to_string(root().join("docs/extending.md")).expect("it is there");
    for name in PATCHES {
        let link = format!("(../tests/extending/{name}.patch)");
        let section = page.split("\n## ").find(|section| section.contains(&link));
        let section = section.unwrap_or_else(|| panic!("docs/extending.md has no section with {name}.patch"));
        let rows = section.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned()));
        let mut listed: Vec<String> = rows.collect();
        listed.sort();
        let changed: Vec<String> = files(name).into_keys().collect();
        assert_eq!(listed, changed, "the files of {name}.patch");
        let sources = changed.iter().filter(|file| file.starts_with("src/")).count();
        let row = format!("(#{}) | {sources} | {} |", name_of_section(section), changed.len() - sources);
        assert!(page.contains(&row), "docs/extending.md counts {name}.patch otherwise than {row}");
    }
}

#[test]
fn a_patch_that_does_not_fit_is_noticed() {
    let text = "a\nb\nc\nd\n";
    assert!(applies(" b\n+new\n c\n", text));
    assert!(applies("-b\n-c\n+new\n", text));
    assert!(!applies(" b\n+new\n d\n", text));
    assert!(!applies("-e\n+new\n", text));
}

/// The hunks of a patch by file, without the lines that say where they are.
fn files(name: &str) -> BTreeMap<String, Vec<String>> {
    let path = root().join("tests/extending").join(name).with_extension("patch");
    let patch = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut file = String::new();
    for line in patch.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            path.clone_into(&mut file);
        } else if line.starts_with("@@ ") {
            files.entry(file.clone()).or_default().push(String::new());
        } else if line.starts_with(['+', '-', ' '])
            && !line.starts_with("--- ")
            && let Some(hunk) = files.get_mut(&file).and_then(|hunks| hunks.last_mut())
        {
            hunk.push_str(line);
            hunk.push('\n');
        }
    }
    files
}

/// Returns true if the lines that a hunk keeps and removes stand in a text in a row.
fn applies(hunk: &str, text: &str) -> bool {
    let old: Vec<&str> = hunk.lines().filter(|line| !line.starts_with('+')).map(|line| &line[1..]).collect();
    let lines: Vec<&str> = text.lines().collect();
    old.is_empty() || lines.windows(old.len()).any(|window| window == old)
}

/// The anchor of a section's heading.
fn name_of_section(section: &str) -> String {
    section.lines().next().unwrap_or_default().to_lowercase().replace(' ', "-")
}
