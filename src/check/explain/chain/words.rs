//! Words for ids, blocks and nodes.

use super::super::numbers::Number;
use crate::{ledger::Link, protocol::BlockId};

/// A block's id without its end.
pub(super) fn brief(id: &BlockId) -> String {
    let text = id.to_string();
    if text.len() > 7 { format!("{}…", &text[..6]) } else { text }
}

pub(super) fn tip(link: &Link) -> String {
    format!("block {} at {}", brief(&link.id()), link.height())
}

pub(super) fn texts(numbers: &[Number]) -> String {
    numbers.iter().map(|number| number.brief.as_str()).collect::<Vec<_>>().join("; ")
}

/// A text without the ends of ids and keys.
pub(in crate::check::explain) fn shortened(text: &str) -> String {
    let brief = |word: &str| {
        let end = word.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (id, rest) = word.split_at(end);
        let is_block = id.len() > 12 && id.bytes().all(|byte| byte.is_ascii_digit());
        let is_hex = id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (is_block, is_hex) {
            (true, _) => format!("{}…{rest}", &id[..6]),
            (_, true) => format!("{}…{rest}", &id[..8]),
            _ => word.to_owned(),
        }
    };
    let words: Vec<String> = text.split(' ').map(brief).collect();
    words.join(" ")
}

/// Turns the text about one node into one about several.
pub(super) fn of_several(text: &str) -> String {
    const VERBS: [(&str, &str); 14] = [
        ("checks its health", "check their health"),
        ("does not forge", "do not forge"),
        ("takes", "take"),
        ("refuses", "refuse"),
        ("rolls back", "roll back"),
        ("its pool gives up", "their pools give up"),
        ("begins its pool anew", "begin their pools anew"),
        ("gives up its peer", "give up their peer"),
        ("gives up", "give up"),
        ("goes down", "go down"),
        ("is up again", "are up again"),
        ("cannot forge", "cannot forge"),
        ("forges", "forge"),
        ("gets", "get"),
    ];
    let found = VERBS.iter().find_map(|(one, several)| Some((several, text.strip_prefix(one)?)));
    let text = found.map_or_else(|| text.to_owned(), |(several, rest)| format!("{several}{rest}"));
    text.replace(" into its pool", " into their pools")
}
