//! Conditions of assertions, and the text that says them.

use super::Metric;
use std::{fmt, str::FromStr};

/// Something that holds of the network at an instant or does not.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// At least one node is live, and all live nodes stand on one block.
    Converged,
    /// All invariants hold of the winning chain, or the one of this name.
    Invariants(Option<String>),
    Compare {
        figure: Operand,
        comparison: Comparison,
        value: f64,
    },
    /// A condition on the figures of each member of a group.
    Each {
        quantifier: Quantifier,
        group: MemberKind,
        part: Box<Self>,
    },
    /// All of at least two conditions.
    All(Vec<Self>),
    /// One of at least two conditions, or more.
    Any(Vec<Self>),
    /// The opposite of a condition.
    Not(Box<Self>),
}

/// A number that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operand {
    /// The metric now.
    Now(Metric),
    /// The metric now, less the metric at the end of the slot before.
    Change(Metric),
}

/// Its words in a condition.
impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(metric) => f.write_str(metric.name()),
            Self::Change(metric) => write!(f, "change of {}", metric.name()),
        }
    }
}

/// The number of members of which a condition must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    Every,
    Some,
}

/// Members with metrics of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// The live nodes.
    Node,
    /// The active delegates of the winning chain's next block.
    Delegate,
    /// The blocks of the winning chain that were forged in the run.
    Block,
}

impl MemberKind {
    const ALL: [Self; 3] = [Self::Node, Self::Delegate, Self::Block];

    /// Its word in a condition.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Delegate => "delegate",
            Self::Block => "block",
        }
    }

    /// The metrics that each of its members has.
    pub fn metrics(self) -> &'static [Metric] {
        match self {
            Self::Node => &[
                Metric::Height,
                Metric::LongestGap,
                Metric::BlocksForged,
                Metric::BlocksRefused,
                Metric::BlocksReverted,
                Metric::Rollbacks,
                Metric::RollbackDepth,
                Metric::Suspended,
                Metric::HealthChecks,
                Metric::Pool,
                Metric::Rejected,
                Metric::Expired,
                Metric::Evicted,
                Metric::PeersRemoved,
            ],
            Self::Delegate => &[Metric::Blocks, Metric::Missed],
            Self::Block => &[Metric::Height, Metric::Gap, Metric::Transactions],
        }
    }
}

/// The comparison of a figure with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Less,
    AtMost,
    Equal,
    Not,
    AtLeast,
    More,
}

impl Condition {
    /// Returns the conditions on the network that it is made of, which join no others; itself, if it joins none.
    pub fn parts(&self) -> Vec<&Self> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::parts).collect(),
            Self::Not(part) => part.parts(),
            Self::Converged | Self::Invariants(_) | Self::Compare { .. } | Self::Each { .. } => vec![self],
        }
    }

    /// Returns the metrics of whose change it says something.
    pub fn changes(&self) -> impl Iterator<Item = Metric> {
        self.parts().into_iter().filter_map(|part| match part {
            Self::Compare { figure: Operand::Change(metric), .. } => Some(*metric),
            _ => None,
        })
    }

    /// Returns the forms that an assertion can have.
    fn allowed() -> String {
        let names = |metrics: &[Metric]| metrics.iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ");
        let groups = MemberKind::ALL.map(|group| format!("of a {} {}", group.name(), names(group.metrics())));
        format!(
            "'converged', 'invariants', 'invariant NAME', or a metric or 'change' and a metric, one of < <= == != >= > and a number, \
             joined by 'and', 'or', 'not' and at most {DEPTH_LIMIT} parentheses in each other (NAME is in double quotes beside others), or \
             'every' or 'some', one of node, delegate and block, and a condition on its metrics alone; metrics are {}; {}",
            names(Metric::ALL),
            groups.join("; ")
        )
    }
}

/// Reads a condition: `not` binds closest, then `and`, then `or`.
impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(name) = text.strip_prefix("invariant ").map(str::trim).filter(|name| !name.contains('"')) {
            return Ok(Self::Invariants(Some(name.to_owned())));
        }
        let mut words = words(text).into_iter().peekable();
        let condition = any(&mut words, Place::default()).filter(|_| words.peek().is_none());
        condition.ok_or_else(Self::allowed)
    }
}

/// Conditions stand within this number of parentheses and negations at most.
const DEPTH_LIMIT: u32 = 32;

/// Where a part of a condition stands.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The parentheses, negations and quantifiers around it.
    depth: u32,
    /// The group of whose member it is about.
    group: Option<MemberKind>,
}

impl Place {
    fn within(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

type Words<'a> = std::iter::Peekable<std::vec::IntoIter<&'a str>>;

/// Parentheses, quoted names with their first quote, and what stands between spaces.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '(' | ')' => 1,
            // A quote without an end begins no name.
            '"' => rest[1..].find('"').map_or(1, |end| end + 1),
            _ => rest.find(|letter: char| letter.is_whitespace() || "()\"".contains(letter)).unwrap_or(rest.len()),
        };
        words.push(&rest[..end]);
        rest = rest[end..].strip_prefix('"').filter(|_| first == '"').unwrap_or(&rest[end..]).trim_start();
    }
    words
}

/// Reads conditions between which `joint` stands.
fn joined(
    words: &mut Words<'_>,
    joint: &str,
    part: impl Fn(&mut Words<'_>) -> Option<Condition>,
) -> Option<Vec<Condition>> {
    let mut parts = vec![part(words)?];
    while words.next_if_eq(&joint).is_some() {
        parts.push(part(words)?);
    }
    Some(parts)
}

fn any(words: &mut Words<'_>, place: Place) -> Option<Condition> {
    let mut parts = joined(words, "or", |words| all(words, place))?;
    if parts.len() > 1 { Some(Condition::Any(parts)) } else { parts.pop() }
}

fn all(words: &mut Words<'_>, place: Place) -> Option<Condition> {
    let mut parts = joined(words, "and", |words| one(words, place))?;
    if parts.len() > 1 { Some(Condition::All(parts)) } else { parts.pop() }
}

fn one(words: &mut Words<'_>, place: Place) -> Option<Condition> {
    if place.depth > DEPTH_LIMIT {
        return None;
    }
    match words.next()? {
        "not" => Some(Condition::Not(Box::new(one(words, place.within())?))),
        "(" => any(words, place.within()).filter(|_| words.next() == Some(")")),
        name if let Some(group) = place.group => {
            let metric = group.metrics().iter().find(|metric| metric.name() == name)?;
            compare(words, Operand::Now(*metric))
        }
        "converged" => Some(Condition::Converged),
        "invariants" => Some(Condition::Invariants(None)),
        "invariant" => {
            let name = words.next()?.strip_prefix('"').filter(|name| !name.is_empty())?;
            Some(Condition::Invariants(Some(name.to_owned())))
        }
        "every" => each(words, place, Quantifier::Every),
        "some" => each(words, place, Quantifier::Some),
        "change" => {
            let metric = metric(words.next()?)?;
            compare(words, Operand::Change(metric))
        }
        name => compare(words, Operand::Now(metric(name)?)),
    }
}

fn metric(name: &str) -> Option<Metric> {
    Metric::ALL.iter().copied().find(|metric| metric.name() == name)
}

fn each(words: &mut Words<'_>, place: Place, quantifier: Quantifier) -> Option<Condition> {
    let name = words.next()?;
    let group = MemberKind::ALL.into_iter().find(|group| group.name() == name)?;
    let part = one(words, Place { group: Some(group), ..place.within() })?;
    Some(Condition::Each { quantifier, group, part: Box::new(part) })
}

fn compare(words: &mut Words<'_>, figure: Operand) -> Option<Condition> {
    let comparison = match words.next()? {
        "<" => Comparison::Less,
        "<=" => Comparison::AtMost,
        "==" => Comparison::Equal,
        "!=" => Comparison::Not,
        ">=" => Comparison::AtLeast,
        ">" => Comparison::More,
        _ => return None,
    };
    let value = words.next()?.parse::<f64>().ok().filter(|number| number.is_finite())?;
    Some(Condition::Compare { figure, comparison, value })
}

impl Comparison {
    /// Returns true if a number compares so with another.
    pub fn holds(self, found: f64, value: f64) -> bool {
        match self {
            Self::Less => found < value,
            Self::AtMost => found <= value,
            Self::Equal => found == value,
            Self::Not => found != value,
            Self::AtLeast => found >= value,
            Self::More => found > value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Condition {
        text.parse().unwrap_or_else(|allowed| panic!("{text}: {allowed}"))
    }

    fn missed(value: f64) -> Condition {
        Condition::Compare { figure: Operand::Now(Metric::Missed), comparison: Comparison::AtMost, value }
    }

    #[test]
    fn conditions_join_others() {
        let (a, b, c) =
            (missed(1.0), Condition::Converged, Condition::Invariants(Some("a and (b) or not c".to_owned())));
        assert_eq!(read("missed <= 1 and converged"), Condition::All(vec![a.clone(), b.clone()]));
        let both = Condition::All(vec![b.clone(), c.clone()]);
        let text = "missed <= 1 or converged and invariant \"a and (b) or not c\"";
        assert_eq!(read(text), Condition::Any(vec![a.clone(), both.clone()]));
        let either = Condition::Any(vec![a.clone(), b.clone()]);
        assert_eq!(read("(missed <= 1 or converged)and not converged"), Condition::All(vec![either, not(b.clone())]));
        assert_eq!(read("not(not missed <= 1)"), not(not(a.clone())));
        assert_eq!(read("not converged and missed <= 1"), Condition::All(vec![not(b.clone()), a.clone()]));
        // The name of a single invariant needs no quotes, whatever words it has.
        assert_eq!(read("invariant a and (b) or not c"), c);
        assert_eq!(read("invariant \"a and (b) or not c\""), c);
        assert_eq!(read(text).parts(), [&a, &b, &c]);
    }

    #[test]
    fn conditions_quantify_over_groups_and_take_differences() {
        let compare = |figure, comparison, value| Condition::Compare { figure, comparison, value };
        let each =
            |quantifier, group, part: &Condition| Condition::Each { quantifier, group, part: Box::new(part.clone()) };
        let low = compare(Operand::Now(Metric::Height), Comparison::Less, 5.0);
        let full = compare(Operand::Now(Metric::Pool), Comparison::More, 3.0);
        let every = each(Quantifier::Every, MemberKind::Node, &low);
        assert_eq!(read("every node height < 5"), every);
        // Without parentheses a quantifier takes the next condition only.
        let joined = Condition::All(vec![every.clone(), Condition::Converged]);
        assert_eq!(read("every node height < 5 and converged"), joined);
        let both = Condition::All(vec![not(low), full]);
        assert_eq!(read("some node (not height < 5 and pool > 3)"), each(Quantifier::Some, MemberKind::Node, &both));
        assert_eq!(read("not every node height < 5"), not(every));
        assert_eq!(read("every delegate missed <= 1"), each(Quantifier::Every, MemberKind::Delegate, &missed(1.0)));
        let change = compare(Operand::Change(Metric::Height), Comparison::AtMost, 1.0);
        assert_eq!(read("change height <= 1"), change);
        let condition = read("not change height <= 1 or change pool > 2 and every block gap < 9");
        assert_eq!(condition.changes().collect::<Vec<_>>(), [Metric::Height, Metric::Pool]);
    }

    fn not(condition: Condition) -> Condition {
        Condition::Not(Box::new(condition))
    }

    #[test]
    fn half_conditions_are_refused() {
        for text in [
            "",
            "and",
            "converged and",
            "or converged",
            "not",
            "(converged",
            "converged)",
            "()",
            "converged converged",
            "missed <= 1 <= 2",
            "missed <= or",
            "invariant",
            "converged and invariant supply",
            "\"converged\"",
            "invariant \"supply is conserved",
            "converged and invariant \"supply is conserved and missed <= 1",
            "invariant \"\"",
            "missed<=1",
            "every",
            "every height > 1",
            "every node",
            "every nodes height > 1",
            // No metric of this group.
            "every node missed <= 1",
            "some block pool > 1",
            "every node converged",
            "every node change height > 1",
            "every node some block height > 1",
            "change",
            "change converged",
            "change height",
        ] {
            let found = text.parse::<Condition>();
            assert!(found.as_ref().is_err_and(|allowed| allowed.contains("'or'")), "'{text}': {found:?}");
        }
        assert!(format!("{}converged{}", "(".repeat(99), ")".repeat(99)).parse::<Condition>().is_err());
        assert!(format!("{}converged", "not ".repeat(99)).parse::<Condition>().is_err());
        assert!(format!("every node {}height > 1", "not ".repeat(99)).parse::<Condition>().is_err());
    }
}
