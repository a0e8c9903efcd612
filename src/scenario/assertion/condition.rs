//! Conditions of assertions, and their parser.

use super::Metric;
use std::{fmt, str::FromStr};

/// A condition on the network at an instant.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Returns the conditions on the network that it joins and that join no others. A condition that joins none returns itself.
    pub fn parts(&self) -> Vec<&Self> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::parts).collect(),
            Self::Not(part) => part.parts(),
            Self::Converged | Self::Invariants(_) | Self::Compare { .. } | Self::Each { .. } => vec![self],
        }
    }

    /// Returns the metrics whose changes it compares, each with the group of its members, or with `None` for the network.
    pub fn changes(&self) -> Vec<(Option<MemberKind>, Metric)> {
        let mut changes = Vec::new();
        for (group, part) in self.leaves(None) {
            if let Self::Compare { figure: Operand::Change(metric), .. } = part {
                changes.push((group, *metric));
            }
        }
        changes
    }

    /// Returns true if it asks whether the network, a node or a delegate has converged.
    pub fn is_about_convergence(&self) -> bool {
        self.leaves(None).iter().any(|(_, part)| **part == Self::Converged)
    }

    /// Returns the conditions that contain no other, each with the group of the quantifier around it.
    fn leaves(&self, group: Option<MemberKind>) -> Vec<(Option<MemberKind>, &Self)> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(|part| part.leaves(group)).collect(),
            Self::Not(part) => part.leaves(group),
            Self::Each { group, part, .. } => part.leaves(Some(*group)),
            Self::Converged | Self::Invariants(_) | Self::Compare { .. } => vec![(group, self)],
        }
    }

    /// Returns the forms that an assertion can have.
    fn allowed() -> String {
        let names = |metrics: &[Metric]| metrics.iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ");
        let groups = MemberKind::ALL.map(|group| format!("of a {} {}", group.name(), names(group.metrics())));
        format!(
            "'converged', 'invariants', 'invariant NAME', or a metric or 'change' and a metric, one of < <= == != >= > and a number, \
             joined by 'and', 'or', 'not' and at most {DEPTH_LIMIT} parentheses in each other (NAME is in double quotes beside others), or \
             'every' or 'some', one of node, delegate and block, and a condition on its metrics, of a node and a delegate also on their \
             'change' and 'converged'; metrics are {}; {}",
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
        match any(&mut words, Place::default()) {
            Ok(condition) if words.peek().is_none() => Ok(condition),
            Ok(_) | Err(Misfit::Form) => Err(Self::allowed()),
            Err(Misfit::Meaning(allowed)) => Err(allowed),
        }
    }
}

/// The reason why words are no condition.
enum Misfit {
    /// They are not in one of the forms.
    Form,
    /// They name a combination without a meaning. The text says which, and what is allowed in its place.
    Meaning(String),
}

/// The part that was read, or the reason why the words do not fit.
type ParseResult<T> = Result<T, Misfit>;

/// The largest number of parentheses, negations and quantifiers around a condition.
const DEPTH_LIMIT: u32 = 32;

/// The context of a part of a condition.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The number of parentheses, negations and quantifiers around it.
    depth: u32,
    /// The group whose members it is about, or `None` for the network.
    group: Option<MemberKind>,
}

impl Place {
    fn within(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

impl MemberKind {
    /// Returns its metric of this name.
    fn metric(self, name: &str) -> ParseResult<Metric> {
        let found = metric(name)?;
        let is_of_it = self.metrics().contains(&found);
        is_of_it.then_some(found).ok_or_else(|| {
            let names: Vec<&str> = self.metrics().iter().map(|metric| metric.name()).collect();
            Misfit::Meaning(format!(
                "one of {} in the place of '{name}', for a {} has no such metric",
                names.join(", "),
                self.name()
            ))
        })
    }

    /// Refuses words that have a meaning for the network and none for one of its members.
    fn refuse<T>(self, words: &str) -> ParseResult<T> {
        let (name, metrics) = (self.name(), "its metrics");
        let (allowed, reason) = match (self, words) {
            (Self::Block, "change") => (metrics, "a block never changes".to_owned()),
            (Self::Block, "converged") => (metrics, "a block stands on no chain of its own".to_owned()),
            (Self::Block, _) => (metrics, format!("a quantifier asks one {name} at a time")),
            _ => ("its metrics, their 'change' and 'converged'", format!("a quantifier asks one {name} at a time")),
        };
        Err(Misfit::Meaning(format!("{allowed} in a condition on a {name}, and '{words}' outside of it, for {reason}")))
    }
}

type Words<'a> = std::iter::Peekable<std::vec::IntoIter<&'a str>>;

/// Splits a text into parentheses, quoted names with their opening quote, and words between spaces.
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

/// Reads conditions that are joined by `joint`.
fn joined(
    words: &mut Words<'_>,
    joint: &str,
    part: impl Fn(&mut Words<'_>) -> ParseResult<Condition>,
) -> ParseResult<Vec<Condition>> {
    let mut parts = vec![part(words)?];
    while words.next_if_eq(&joint).is_some() {
        parts.push(part(words)?);
    }
    Ok(parts)
}

fn any(words: &mut Words<'_>, place: Place) -> ParseResult<Condition> {
    let mut parts = joined(words, "or", |words| all(words, place))?;
    if parts.len() > 1 { Ok(Condition::Any(parts)) } else { parts.pop().ok_or(Misfit::Form) }
}

fn all(words: &mut Words<'_>, place: Place) -> ParseResult<Condition> {
    let mut parts = joined(words, "and", |words| one(words, place))?;
    if parts.len() > 1 { Ok(Condition::All(parts)) } else { parts.pop().ok_or(Misfit::Form) }
}

fn one(words: &mut Words<'_>, place: Place) -> ParseResult<Condition> {
    if place.depth > DEPTH_LIMIT {
        return Err(Misfit::Form);
    }
    match (next(words)?, place.group) {
        ("not", _) => Ok(Condition::Not(Box::new(one(words, place.within())?))),
        ("(", _) => {
            let condition = any(words, place.within())?;
            if words.next() == Some(")") { Ok(condition) } else { Err(Misfit::Form) }
        }
        (word @ ("change" | "converged"), Some(MemberKind::Block)) => MemberKind::Block.refuse(word),
        (word @ ("invariants" | "invariant" | "every" | "some"), Some(group)) => group.refuse(word),
        ("converged", _) => Ok(Condition::Converged),
        ("change", group) => {
            let name = next(words)?;
            if let "converged" | "invariants" | "invariant" | "every" | "some" | "not" | "(" | "change" = name {
                let allowed = format!("a metric behind 'change', for '{name}' is no number and has no difference");
                return Err(Misfit::Meaning(allowed));
            }
            compare(words, Operand::Change(figure(name, group)?))
        }
        ("invariants", None) => Ok(Condition::Invariants(None)),
        ("invariant", None) => {
            let name = next(words)?.strip_prefix('"').filter(|name| !name.is_empty()).ok_or(Misfit::Form)?;
            Ok(Condition::Invariants(Some(name.to_owned())))
        }
        ("every", None) => each(words, place, Quantifier::Every),
        ("some", None) => each(words, place, Quantifier::Some),
        (name, group) => {
            let metric = figure(name, group)?;
            compare(words, Operand::Now(metric))
        }
    }
}

fn next<'a>(words: &mut Words<'a>) -> ParseResult<&'a str> {
    words.next().ok_or(Misfit::Form)
}

/// Reads a metric of the network or of a member.
fn figure(name: &str, group: Option<MemberKind>) -> ParseResult<Metric> {
    group.map_or_else(|| metric(name), |group| group.metric(name))
}

fn metric(name: &str) -> ParseResult<Metric> {
    Metric::ALL.iter().copied().find(|metric| metric.name() == name).ok_or(Misfit::Form)
}

fn each(words: &mut Words<'_>, place: Place, quantifier: Quantifier) -> ParseResult<Condition> {
    let name = next(words)?;
    let group = MemberKind::ALL.into_iter().find(|group| group.name() == name).ok_or(Misfit::Form)?;
    let part = one(words, Place { group: Some(group), ..place.within() })?;
    Ok(Condition::Each { quantifier, group, part: Box::new(part) })
}

fn compare(words: &mut Words<'_>, figure: Operand) -> ParseResult<Condition> {
    let comparison = match next(words)? {
        "<" => Comparison::Less,
        "<=" => Comparison::AtMost,
        "==" => Comparison::Equal,
        "!=" => Comparison::Not,
        ">=" => Comparison::AtLeast,
        ">" => Comparison::More,
        _ => return Err(Misfit::Form),
    };
    let value = next(words)?.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or(Misfit::Form)?;
    Ok(Condition::Compare { figure, comparison, value })
}

impl Comparison {
    /// Returns true if `found` compares with `value` in this way.
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
        assert_eq!(condition.changes(), [(None, Metric::Height), (None, Metric::Pool)]);
    }

    #[test]
    fn members_change_and_converge() {
        let compare = |figure, comparison, value| Condition::Compare { figure, comparison, value };
        let each = |quantifier, group, part| Condition::Each { quantifier, group, part: Box::new(part) };
        let grown = compare(Operand::Change(Metric::Height), Comparison::AtMost, 1.0);
        let lost = compare(Operand::Change(Metric::Missed), Comparison::More, 0.0);
        assert_eq!(read("every node change height <= 1"), each(Quantifier::Every, MemberKind::Node, grown.clone()));
        assert_eq!(read("some delegate change missed > 0"), each(Quantifier::Some, MemberKind::Delegate, lost.clone()));
        let both = Condition::Any(vec![Condition::Converged, not(grown)]);
        let condition = read("every node (converged or not change height <= 1) and change pool > 2");
        let change = compare(Operand::Change(Metric::Pool), Comparison::More, 2.0);
        assert_eq!(condition, Condition::All(vec![each(Quantifier::Every, MemberKind::Node, both), change]));
        assert_eq!(condition.changes(), [(Some(MemberKind::Node), Metric::Height), (None, Metric::Pool)]);
        assert!(condition.is_about_convergence() && !read("change height > 1").is_about_convergence());
        let delegate = read("some delegate (not converged and change missed > 0)");
        assert_eq!(
            delegate,
            each(Quantifier::Some, MemberKind::Delegate, Condition::All(vec![not(Condition::Converged), lost]))
        );
    }

    /// The message names the part and the group, and the reason.
    #[test]
    fn combinations_without_a_meaning_are_named() {
        for (text, wanted) in [
            (
                "every block change gap > 1",
                "its metrics in a condition on a block, and 'change' outside of it, for a block never changes",
            ),
            (
                "some block (height > 3 and not converged)",
                "on a block, and 'converged' outside of it, for a block stands on no chain",
            ),
            (
                "every node some block height > 1",
                "'converged' in a condition on a node, and 'some' outside of it, for a quantifier asks one node",
            ),
            ("every block every node height > 1", "its metrics in a condition on a block, and 'every' outside"),
            ("every delegate invariants", "on a delegate, and 'invariants' outside of it"),
            ("some node invariant \"supply is conserved\"", "on a node, and 'invariant' outside of it"),
            ("every node missed <= 1", "rollbacks, rollback-depth, suspended"),
            ("every node change missed <= 1", "in the place of 'missed', for a node has no such metric"),
            (
                "some block pool > 1",
                "one of height, gap, transactions in the place of 'pool', for a block has no such metric",
            ),
            (
                "every delegate change height > 1",
                "one of blocks, missed in the place of 'height', for a delegate has no such metric",
            ),
            ("change converged", "a metric behind 'change', for 'converged' is no number"),
            ("change every node height > 1", "a metric behind 'change', for 'every' is no number"),
            ("every node change (height > 1)", "a metric behind 'change', for '(' is no number"),
            ("change invariants", "a metric behind 'change', for 'invariants' is no number"),
            ("every node change converged", "a metric behind 'change', for 'converged' is no number"),
        ] {
            let allowed = text.parse::<Condition>().expect_err(text);
            assert!(allowed.contains(wanted), "{text}: {allowed}");
        }
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
            "every node converged > 1",
            "every node change",
            "every node change hight > 1",
            "every node change height",
            "every node hight > 1",
            "change",
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
