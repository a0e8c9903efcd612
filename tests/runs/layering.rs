//! Names go downwards only: what a room may name is written here, and every import is held against it.

use crate::support::root;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Each room, and the rooms below it that it may name.
const ROOMS: [(&str, &[&str]); 13] = [
    ("drawing", &[]),
    ("statistics", &[]),
    ("threads", &[]),
    ("files", &[]),
    ("protocol", &["files"]),
    ("ledger", &["protocol"]),
    ("actors", &["ledger", "protocol"]),
    ("sim", &["actors", "ledger", "protocol"]),
    ("scenario", &["files", "sim", "actors", "ledger", "protocol"]),
    ("report", &["drawing", "statistics", "threads", "files", "scenario", "sim", "actors", "ledger", "protocol"]),
    ("api", &["drawing", "files", "scenario", "sim", "actors", "ledger", "protocol"]),
    ("check", &["statistics", "threads", "files", "scenario", "sim", "actors", "ledger", "protocol"]),
    (
        "cli",
        &[
            "api",
            "check",
            "report",
            "statistics",
            "threads",
            "files",
            "scenario",
            "sim",
            "actors",
            "ledger",
            "protocol",
        ],
    ),
];

/// Words that stand for what a room must know nothing of.
const FOREIGN: [(&str, &[&str]); 7] = [
    ("protocol", &["tokio", "warp", "hyper", "ractor", "clap", "std::time", "std::thread", "dashmap"]),
    ("ledger", &["tokio", "warp", "hyper", "ractor", "clap", "std::time", "std::net", "std::fs"]),
    ("actors", &["tokio", "warp", "hyper", "ractor", "clap", "std::net", "std::fs"]),
    ("sim", &["warp", "hyper", "clap", "std::net", "std::fs", "println!"]),
    ("scenario", &["warp", "hyper", "clap", "std::net", "println!"]),
    ("check", &["warp", "hyper", "clap", "std::net", "println!"]),
    ("report", &["warp", "hyper", "clap", "std::net", "println!"]),
];

#[test]
fn rooms_name_only_rooms_below_them() {
    let allowed: BTreeMap<&str, &[&str]> = ROOMS.into();
    let mut named_at_all = 0;
    for (room, below) in &allowed {
        for file in sources(room) {
            for named in rooms_named(&fs::read_to_string(&file).expect("sources are text")) {
                named_at_all += 1;
                let fine = named == *room || below.contains(&named.as_str());
                assert!(fine, "{} names `{named}`, which is not below `{room}`", file.display());
            }
        }
    }
    assert!(named_at_all > 50, "or the scan finds nothing");
    let rooms: BTreeSet<String> = allowed.keys().map(ToString::to_string).collect();
    let library = fs::read_to_string(root().join("src/lib.rs")).expect("sources are text");
    let declared = library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    assert_eq!(declared.map(str::to_owned).collect::<BTreeSet<_>>(), rooms, "every room stands in the table above");
}

#[test]
fn rooms_know_nothing_of_what_is_foreign_to_them() {
    for (room, words) in FOREIGN {
        for file in sources(room) {
            let is_stage = file.ends_with("sim/stage/ractor.rs") || file.ends_with("sim/live.rs");
            let text = fs::read_to_string(&file).expect("sources are text");
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                for word in words.iter().filter(|word| !(is_stage && ["tokio", "ractor"].contains(word))) {
                    let at_word = match word.ends_with('!') {
                        true => line.contains(word),
                        false => line.contains(&format!("{word}::")) || line.contains(&format!("use {word}")),
                    };
                    assert!(!at_word, "{} knows of {word}: {line}", file.display());
                }
            }
        }
    }
}

/// The files of a room: one with its name, and those of a folder with its name where it has one.
fn sources(room: &str) -> Vec<PathBuf> {
    let mut files = vec![root().join("src").join(format!("{room}.rs"))];
    let folder = root().join("src").join(room);
    if folder.is_dir() {
        collect(&folder, &mut files);
    }
    files
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The rooms named after `crate::` in a text: one, or those of a group in braces.
fn rooms_named(text: &str) -> Vec<String> {
    let mut named = Vec::new();
    for after in text.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            Some(group) => named.extend(heads_of_group(group)),
            None => named.push(identifier(after)),
        }
    }
    named
}

fn heads_of_group(group: &str) -> Vec<String> {
    let (mut depth, mut at_head, mut heads) = (0, true, Vec::new());
    for (index, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_head = true,
            letter if at_head && letter.is_alphabetic() => {
                heads.push(identifier(&group[index..]));
                at_head = false;
            }
            _ => {}
        }
    }
    heads
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}
