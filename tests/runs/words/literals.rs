//! The string literals of a source, and the texts of a page, for the wording rules.

use fancy_regex::Regex;
use std::{ffi::OsStr, path::Path};

/// A literal: the place in the file where it begins, and its value.
pub type Literal = (usize, String);

/// The string literals of a file in Rust, JavaScript, TypeScript, Python or JSON, and the texts and labels of a page in HTML. Docstrings
/// are not among them: the rules read those as comments.
pub fn literals(name: &str, text: &str) -> Vec<Literal> {
    match Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default() {
        "md" => Vec::new(),
        "html" => of_page(text),
        ends => of_source(ends, text),
    }
}

/// The paragraphs of a literal, each on one line.
pub fn paragraphs(literal: &str) -> Vec<String> {
    let paragraphs = literal.split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.filter(|text| text.chars().any(char::is_alphabetic)).collect()
}

/// The texts between tags, and the attributes that a reader sees or hears.
fn of_page(text: &str) -> Vec<Literal> {
    let between = r"(?s)(?:<script\b.*?</script|<style\b.*?</style|<!--.*?--)?>([^<]*)";
    let attribute = r#"\b(?:title|placeholder|aria-label|alt|content)="([^"]*)""#;
    let shown = Regex::new(&format!("{between}|{attribute}")).expect("it is well-formed");
    let found = shown.captures_iter(text).map(|found| found.expect("no page is too long for it"));
    let parts = found.filter_map(|found| found.get(1).or(found.get(2)));
    parts.map(|part| (part.start(), part.as_str().to_owned())).collect()
}

fn of_source(ends: &str, text: &str) -> Vec<Literal> {
    let is_script = ["js", "mjs", "ts"].contains(&ends);
    let (mut found, mut at, mut depth) = (Vec::new(), 0, 0_usize);
    // Templates within whose expressions the place is: the depth of braces around the expression, the template's place, its text so far.
    let mut templates: Vec<(usize, usize, String)> = Vec::new();
    while let Some(letter) = text[at..].chars().next() {
        let (before, rest) = text.split_at(at);
        let skipped = comment_length(ends, rest)
            .or_else(|| (ends == "rs").then(|| character_length(rest)).flatten())
            .or_else(|| (is_script && expects_value(before)).then(|| pattern_length(rest)).flatten());
        if let Some(length) = skipped {
            at += length;
        } else if let Some((length, value)) = (ends == "rs").then(|| raw(before, rest)).flatten() {
            found.push((at, value.to_owned()));
            at += length;
        } else if ends == "py" && (rest.starts_with("\"\"\"") || rest.starts_with("'''")) {
            let line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
            let (length, value, _) = quoted(&rest[3..], &rest[..3], false);
            if !["", "r"].contains(&line.trim()) {
                found.push((at, value));
            }
            at += 3 + length;
        } else if letter == '"' || (letter == '\'' && ends != "rs") {
            let (length, value, _) = quoted(&rest[1..], &rest[..1], false);
            found.push((at, value));
            at += 1 + length;
        } else if is_script && (letter == '`' || letter == '}' && templates.last().is_some_and(|last| last.0 == depth))
        {
            let opened = if letter == '`' { None } else { templates.pop() };
            let (_, start, begun) = opened.unwrap_or((depth, at, String::new()));
            let (length, value, is_interrupted) = quoted(&rest[1..], "`", true);
            match is_interrupted {
                true => templates.push((depth, start, format!("{begun}{value}X"))),
                false => found.push((start, begun + &value)),
            }
            at += 1 + length;
        } else {
            match letter {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += letter.len_utf8();
        }
    }
    found
}

/// The length of the comment with which a text begins.
fn comment_length(ends: &str, text: &str) -> Option<usize> {
    let to_end_of_line = || text.find('\n').unwrap_or(text.len());
    match ends {
        "json" => None,
        "py" => text.starts_with('#').then(to_end_of_line),
        _ if text.starts_with("//") => Some(to_end_of_line()),
        _ => text.starts_with("/*").then(|| text.find("*/").map_or(text.len(), |end| end + 2)),
    }
}

/// The length of the character literal of Rust with which a text begins. A lifetime is none.
fn character_length(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let end = match inner.strip_prefix('\\') {
        Some(escaped) => 2 + escaped.chars().next()?.len_utf8() + escaped[1..].find('\'')?,
        None => 1 + inner.chars().next()?.len_utf8(),
    };
    text[end..].starts_with('\'').then_some(end + 1)
}

/// The raw literal of Rust with which a text begins: its length and its value.
fn raw<'a>(before: &str, text: &'a str) -> Option<(usize, &'a str)> {
    if before.ends_with(|letter: char| letter.is_alphanumeric() && letter != 'b' || letter == '_') {
        return None;
    }
    let marks = text.strip_prefix('r')?.find(|letter| letter != '#')?;
    let value = text[1 + marks..].strip_prefix('"')?;
    let length = value.find(&format!("\"{}", "#".repeat(marks)))?;
    Some((length + 2 * marks + 3, &value[..length]))
}

/// Whether the next token of a script may be a value. There a slash begins a pattern, elsewhere it divides.
fn expects_value(before: &str) -> bool {
    let before = before.trim_end();
    before.is_empty() || before.ends_with("return") || before.ends_with(|letter| "(,=:[!&|?{;>".contains(letter))
}

/// The length of the pattern with which a text of a script begins.
fn pattern_length(text: &str) -> Option<usize> {
    let (mut is_escaped, mut is_in_class) = (false, false);
    for (at, letter) in text.strip_prefix('/')?.char_indices() {
        match letter {
            '\n' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '/' if !is_in_class => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// Reads a literal up to its end mark, or a template up to its next expression. Returns the length with the mark, the value without
/// escapes, and whether an expression follows.
fn quoted(text: &str, end: &str, is_template: bool) -> (usize, String, bool) {
    let (mut value, mut is_break) = (String::new(), false);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        let rest = &text[at..];
        if rest.starts_with(end) {
            return (at + end.len(), value, false);
        }
        if is_template && rest.starts_with("${") {
            return (at + 2, value, true);
        }
        // An escaped line break of Rust takes the indentation of the next line with it.
        is_break &= letter.is_whitespace();
        match letter {
            _ if is_break => {}
            '\\' => match letters.next() {
                Some((_, '\n')) => is_break = true,
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push(' '),
                Some((_, other)) => value.push(other),
                None => {}
            },
            _ => value.push(letter),
        }
    }
    (text.len(), value, false)
}
