//! Ranges of versions as npm writes them: `2.6.57`, `2.5.*`, `^2.5.0`, `~2.6`, `>=2.5 <3`, `2.5.1 - 2.5.2`, `a || b`.
//! Source: api.md 8.

/// Major, minor and patch number.
type Version = (u64, u64, u64);

/// A range: any of these alternatives, each from a version on and below another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range(Vec<(Version, Version)>);

const ALL: (Version, Version) = ((0, 0, 0), (u64::MAX, 0, 0));

impl Range {
    /// `None` if the text is no range.
    pub fn parse(text: &str) -> Option<Self> {
        text.split("||").map(|alternative| all_of(alternative.trim())).collect::<Option<_>>().map(Self)
    }

    /// True if a version, without anything after its patch number, lies in the range.
    pub fn contains(&self, version: &str) -> bool {
        let Some(version) = Partial::parse(version).map(|partial| partial.first()) else { return false };
        self.0.iter().any(|(from, below)| *from <= version && version < *below)
    }
}

/// The range that lies in all ranges written one after another.
fn all_of(text: &str) -> Option<(Version, Version)> {
    if let Some((from, to)) = text.split_once(" - ") {
        return Some((Partial::parse(from.trim())?.first(), Partial::parse(to.trim())?.after()));
    }
    let mut meet = ALL;
    // An operator may stand apart from its version.
    let mut operator = "";
    for word in text.split_whitespace() {
        if word.bytes().all(|byte| b"<>=^~".contains(&byte)) && operator.is_empty() {
            operator = word;
            continue;
        }
        let (from, below) = one(&format!("{operator}{word}"))?;
        operator = "";
        meet = (meet.0.max(from), meet.1.min(below));
    }
    operator.is_empty().then_some(meet)
}

fn one(text: &str) -> Option<(Version, Version)> {
    let version = text.trim_start_matches(['<', '>', '=', '^', '~']);
    let partial = Partial::parse(version)?;
    let (first, after) = (partial.first(), partial.after());
    match &text[..text.len() - version.len()] {
        "" | "=" => Some((first, after)),
        "^" => Some((first, partial.caret())),
        "~" | "~>" => Some((first, partial.tilde())),
        ">=" => Some((first, ALL.1)),
        ">" => Some((after, ALL.1)),
        "<" => Some((ALL.0, first)),
        "<=" => Some((ALL.0, after)),
        _ => None,
    }
}

/// A version of which the last numbers may be left open.
struct Partial {
    major: Option<u64>,
    minor: Option<u64>,
    patch: Option<u64>,
}

impl Partial {
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let mut numbers = [None; 3];
        let mut is_open = text.is_empty();
        let mut parts = text.split('.');
        for number in &mut numbers {
            match parts.next() {
                None | Some("*" | "x" | "X") => is_open = true,
                Some("") if text.is_empty() => is_open = true,
                Some(part) => {
                    let parsed: u64 = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())??;
                    *number = (!is_open).then_some(parsed);
                }
            }
        }
        let [major, minor, patch] = numbers;
        // The greatest numbers have none after them.
        let is_in_reach = numbers.iter().flatten().all(|number| *number < u64::MAX);
        (parts.next().is_none() && is_in_reach).then_some(Self { major, minor, patch })
    }

    fn first(&self) -> Version {
        (self.major.unwrap_or(0), self.minor.unwrap_or(0), self.patch.unwrap_or(0))
    }

    /// The first version that is none of these.
    fn after(&self) -> Version {
        match (self.major, self.minor, self.patch) {
            (None, ..) => ALL.1,
            (Some(major), None, _) => (major + 1, 0, 0),
            (Some(major), Some(minor), None) => (major, minor + 1, 0),
            (Some(major), Some(minor), Some(patch)) => (major, minor, patch + 1),
        }
    }

    /// The first version whose patches do not count as the same.
    fn tilde(&self) -> Version {
        Self { patch: None, ..*self }.after()
    }

    /// The first version in which the leftmost number that is not 0 is greater.
    fn caret(&self) -> Version {
        match (self.major, self.minor, self.patch) {
            (Some(0), Some(0), Some(_)) => self.after(),
            (Some(0), Some(_), _) => self.tilde(),
            _ => Self { minor: None, patch: None, ..*self }.after(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_npm() {
        let holds = |range: &str, version: &str| Range::parse(range).unwrap().contains(version);
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
            assert_eq!(Range::parse(text), None, "{text}");
        }
    }
}
