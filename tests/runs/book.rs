//! The documents as a book: each page of docs/ is a chapter, each relative link leads to a file and to a heading of it, and the
//! `justfile` names commands that exist. `.ci/book.py check` builds the book and follows the links of its pages.

use crate::support::root;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

#[test]
fn every_page_is_a_chapter_once_and_every_chapter_is_a_page() {
    let mut pages: Vec<String> =
        texts(&root().join("docs")).iter().map(|page| below(&root().join("docs"), page)).collect();
    pages.retain(|page| page != "SUMMARY.md");
    pages.sort();
    let summary = read(&root().join("docs/SUMMARY.md"));
    let mut chapters: Vec<String> = links(&summary).into_iter().map(|(_, target)| target).collect();
    chapters.sort();
    assert_eq!(chapters, pages, "docs/SUMMARY.md names each page of docs/ once");
    let index = read(&root().join("docs/README.md"));
    let named: BTreeSet<String> = links(&index).into_iter().map(|(_, target)| target).collect();
    let unnamed: Vec<&String> = pages.iter().filter(|page| *page != "README.md" && !named.contains(*page)).collect();
    assert!(unnamed.is_empty(), "docs/README.md does not name {unnamed:?}");
}

#[test]
fn every_relative_link_leads_somewhere() {
    let outside = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "fuzz/README.md"];
    let mut pages: Vec<PathBuf> = outside.iter().map(|page| root().join(page)).collect();
    for folder in ["docs", "scenarios", "tests/data"] {
        pages.extend(texts(&root().join(folder)));
    }
    let (mut followed, mut broken) = (0, Vec::new());
    for page in &pages {
        for (line, target) in links(&read(page)) {
            followed += 1;
            if let Err(why) = follow(page, &target) {
                broken.push(format!("{}:{line}: {target}: {why}", below(root(), page)));
            }
        }
    }
    assert!(broken.is_empty(), "{} links lead nowhere:\n{}", broken.len(), broken.join("\n"));
    assert!(followed > 150, "the documents have some 200 relative links; the scan sees {followed}");
}

#[test]
fn a_link_to_nothing_is_noticed() {
    let page = root().join("docs/README.md");
    assert_eq!(follow(&page, "figures.md#quantiles"), Ok(()));
    assert_eq!(follow(&page, "contract/consensus.md#3.5"), Ok(()));
    assert_eq!(follow(&page, "figure.md"), Err("no such file".to_owned()));
    assert_eq!(follow(&page, "figures.md#quantile"), Err("no such heading".to_owned()));
    let text = "[a](b.md) and [c](d#e)\n```\n[no](link)\n```\n`[no](link)` [f](https://g)\n";
    assert_eq!(links(text), [(1, "b.md".to_owned()), (1, "d#e".to_owned())]);
    assert_eq!(anchor("## What `check` may *not* do, 2.6"), "what-check-may-not-do-26");
}

/// The commands that people use most, each of which CI runs as well or which a test holds, and the check before a release.
#[test]
fn the_justfile_names_commands_that_exist() {
    let text = read(&root().join("justfile"));
    let recipes: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with(['#', ' ']) && !line.contains(":="))
        .filter_map(|line| line.split_once(':')?.0.split_whitespace().next())
        .collect();
    assert_eq!(recipes, ["run", "test", "ci", "bench", "docs", "semver"]);
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert_eq!(commands.len(), recipes.len(), "one command each");
    let known = ["cargo run -- ", "cargo test", "bash ", "cargo bench", "mdbook ", "cargo semver-checks "];
    for (command, known) in commands.iter().zip(known) {
        assert!(command.starts_with(known), "{command} begins otherwise than {known}");
    }
    let script = commands[2].split_whitespace().nth(1).expect("bash takes a script");
    assert!(root().join(script).is_file(), "{script} is not there");
}

/// The relative links of a page outside its code, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let (mut code, mut found) = (false, Vec::new());
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            // Text between backticks is code: every second part.
            let plain: Vec<&str> = line.split('`').step_by(2).collect();
            let plain = plain.join("`");
            let targets = plain.split("](").skip(1).filter_map(|behind| Some(behind.split_once(')')?.0.to_owned()));
            found.extend(targets.filter(|target| !target.contains("://")).map(|target| (at + 1, target)));
        }
    }
    found
}

/// Checks that a link of a page leads to a file, and to a heading or an anchor of it.
fn follow(page: &Path, target: &str) -> Result<(), String> {
    let (file, part) = target.split_once('#').map_or((target, None), |(file, part)| (file, Some(part)));
    let there = if file.is_empty() { page.to_owned() } else { page.with_file_name(file) };
    if !there.exists() {
        return Err("no such file".to_owned());
    }
    let Some(part) = part else { return Ok(()) };
    let text = read(&there);
    let headings: BTreeSet<String> = text.lines().filter(|line| line.starts_with('#')).map(anchor).collect();
    if headings.contains(part) || text.contains(&format!("<a id=\"{part}\">")) {
        return Ok(());
    }
    Err("no such heading".to_owned())
}

/// The anchor of a heading: its letters and digits in lower case, `-` for blanks.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// The Markdown below a folder, in the order of paths.
fn texts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            found.extend(texts(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn below(folder: &Path, path: &Path) -> String {
    path.strip_prefix(folder).expect("it is below").display().to_string()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
