//! Ranges of versions as npm writes them: `2.6.57`, `2.5.*`, `^2.5.0`, `~2.6`, `>=2.5 <3`, `2.5.1 - 2.5.2`, `a || b`.
//! Source: api.md 8.
//!
//! The crate `semver` reads and compares. Its ranges are Cargo's, so each part is first written as Cargo writes it: a bare
//! version means exactly that one, parts are joined by commas, and a range has its ends as two parts.

use semver::{Version, VersionReq};

/// A range: a version lies in it if it lies in one of the alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionRange(Vec<VersionReq>);

impl VersionRange {
    /// Reads a range. `None` if the text is not a range.
    pub fn parse(text: &str) -> Option<Self> {
        text.split("||").map(|alternative| all_of(alternative.trim())).collect::<Option<_>>().map(Self)
    }

    /// Returns true if a version lies in the range.
    pub fn contains(&self, version: &Version) -> bool {
        self.0.iter().any(|alternative| alternative.matches(version))
    }
}

/// The intersection of ranges that are written one after another.
fn all_of(text: &str) -> Option<VersionReq> {
    let mut parts = Vec::new();
    if let Some((from, to)) = text.split_once(" - ") {
        parts.extend(part(">=", from.trim())?);
        parts.extend(part("<=", to.trim())?);
    } else {
        // An operator and its version may be separate words.
        let mut operator = "";
        for word in text.split_whitespace() {
            let version = word.trim_start_matches(['<', '>', '=', '^', '~']);
            let here = &word[..word.len() - version.len()];
            if !here.is_empty() {
                if !operator.is_empty() {
                    return None;
                }
                operator = here;
            }
            if !version.is_empty() {
                parts.extend(part(operator, version)?);
                operator = "";
            }
        }
        if !operator.is_empty() {
            return None;
        }
    }
    if parts.is_empty() { Some(VersionReq::STAR) } else { VersionReq::parse(&parts.join(", ")).ok() }
}

/// One part as Cargo writes it. The inner `None` is a part that every version meets. The outer `None` means that the text
/// is no part of a range.
fn part(operator: &str, version: &str) -> Option<Option<String>> {
    let version = version.strip_prefix(['v', 'V']).unwrap_or(version);
    let numbers: Vec<&str> = version.split('.').collect();
    let is_open = |number: &&str| matches!(*number, "*" | "x" | "X");
    let is_number = |number: &&str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if numbers.len() > 3 || !numbers.iter().all(|number| is_open(number) || is_number(number)) {
        return None;
    }
    // A number after an open one is open, too.
    let fixed: Vec<&str> = numbers.into_iter().take_while(|number| !is_open(number)).collect();
    let operator = match operator {
        "" | "=" => "=",
        "~>" => "~",
        "^" | "~" | ">=" | "<=" | ">" | "<" => operator,
        _ => return None,
    };
    match (fixed.is_empty(), operator) {
        (false, _) => Some(Some(format!("{operator}{}", fixed.join(".")))),
        // No version is below or above all versions.
        (true, ">" | "<") => Some(Some("<0.0.0".to_owned())),
        (true, _) => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_npm() {
        let holds =
            |range: &str, version: &str| VersionRange::parse(range).unwrap().contains(&version.parse().unwrap());
        for range in [
            "2.6.57",
            "=2.6.57",
            "v2.6.57",
            "2.6.*",
            "2.x",
            "*",
            "",
            "x",
            "^2.5.0",
            "~2.6.9",
            ">=2.5 <3",
            "> 2.6.56",
            "2.6.0 - 2.6",
            "1.0.0 || ^2.6",
            "<=2.6.57",
            "~>2.6",
        ] {
            assert!(holds(range, "2.6.57"), "{range}");
        }
        for range in ["2.5.*", "2.6.5", "~2.5", "^3.0", "<2.6.57", ">2.6", "2.5.1 - 2.5.2", "^0.2.6", ">=2.7 || 1.x"] {
            assert!(!holds(range, "2.6.57"), "{range}");
        }
        assert!(holds("^0.2.3", "0.2.9") && !holds("^0.2.3", "0.3.0") && !holds("^0.0.3", "0.0.4"));
    }

    #[test]
    fn anything_else_is_none() {
        for text in ["latest", "2.6.57.1", "2..6", "><2", ">", "1 - ", "2.-1", "99999999999999999999"] {
            assert_eq!(VersionRange::parse(text), None, "{text}");
        }
    }
}
