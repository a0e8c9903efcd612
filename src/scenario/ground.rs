//! The things that faults can name: the nodes, delegates, accounts and moments of a run. The same rules hold for scenario files and
//! for live runs.

use super::mistake::{CheckResult, Mistake, amount as amount_of, join, rate, ratio, within};
use crate::{
    protocol::Address,
    sim::{
        Fault, FaultKind, Trigger,
        fault::{BoundedValue, NodeRef, Nodes, Partition, Rounds},
        strategy::SpareForger,
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of seconds that a trigger can name: a century.
const SECONDS_LIMIT: f64 = 3.2e9;

/// A thing of a run that a number names, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Node,
    /// A node that forges.
    Delegate,
    Fault,
    /// An owner of a shared wallet, with the number of its owners.
    Owner {
        of: u32,
    },
}

/// The things that there are in a run. This module alone checks every number and name that a scenario uses.
pub(crate) struct Ground<'a> {
    pub nodes: u32,
    /// The number of nodes that forge; these are the first ones.
    pub forgers: u32,
    pub usernames: Usernames<'a>,
    /// Funded accounts: `account_1` and so on.
    pub accounts: u32,
    /// The faults of the scenario.
    pub faults: u32,
    /// The last round that can be named.
    pub rounds: u32,
    pub last_height: u32,
}

/// The delegates' usernames.
pub(crate) enum Usernames<'a> {
    /// This number of names: `genesis_1` and so on.
    Numbered(u32),
    /// These, in the order of their nodes.
    Listed(&'a [String]),
}

/// The nodes to which the clients of a fault submit, if the fault names them.
fn clients_nodes(kind: &FaultKind) -> Option<&Nodes> {
    match kind {
        FaultKind::SpamPool(spam) => spam.nodes.as_ref(),
        FaultKind::LowFeeFlood(flood) => flood.nodes.as_ref(),
        _ => None,
    }
}

/// Returns the number in a numbered name, such as 3 for `account_3`. There is only one way to write it.
fn counted(name: &str, prefix: &str) -> Option<u32> {
    let number = name.strip_prefix(prefix).filter(|number| !number.starts_with(['0', '+']))?;
    number.parse().ok()
}

impl Usernames<'_> {
    /// Returns true if a delegate has this username.
    fn has(&self, name: &str) -> bool {
        match self {
            // The names are not generated for this: lists of delegates may be long.
            Self::Numbered(count) => counted(name, "genesis_").is_some_and(|number| (1..=*count).contains(&number)),
            Self::Listed(names) => names.iter().any(|one| one == name),
        }
    }

    /// The place of a username in the order of the nodes.
    fn place(&self, name: &str) -> Option<u32> {
        match self {
            Self::Numbered(_) => self.has(name).then(|| counted(name, "genesis_"))?.map(|number| number - 1),
            Self::Listed(names) => names.iter().position(|one| one == name).map(|index| index as u32),
        }
    }

    /// The usernames in words: 'first' to 'last'.
    fn words(&self) -> String {
        match self {
            Self::Numbered(0) | Self::Listed([]) => "none".to_owned(),
            Self::Numbered(1) => "'genesis_1'".to_owned(),
            Self::Numbered(last) => format!("'genesis_1' to 'genesis_{last}'"),
            Self::Listed([only]) => format!("'{only}'"),
            Self::Listed([first, .., last]) => format!("'{first}' to '{last}'"),
        }
    }
}

impl Ground<'_> {
    /// Checks a fault under its key.
    pub fn check_fault(&self, key: &str, fault: &Fault) -> CheckResult {
        if fault.kind.by_rounds().is_some() && (fault.from != Trigger::Start || fault.until.is_some()) {
            let part = if fault.until.is_some() { "until" } else { "from" };
            return Err(Mistake::new(format!("{key}.{part}"), "it beside 'rounds'", "one or the other"));
        }
        self.check_span(key, &fault.from, fault.until.as_ref())?;
        if fault.until.is_some() && fault.kind.facts().is_over_at_once() {
            let found = format!("a '{}' that ends", fault.kind.name());
            return Err(Mistake::new(format!("{key}.until"), found, "none: it is over at once"));
        }
        for (name, nodes) in fault.kind.nodes() {
            let thing = if name == "delegates" { Thing::Delegate } else { Thing::Node };
            self.check_nodes(&format!("{key}.{name}"), nodes, thing)?;
        }
        if let FaultKind::Partition(partition) = &fault.kind {
            self.check_groups(&format!("{key}.groups"), partition)?;
        }
        if let Some(spare) = fault.kind.strategy::<SpareForger>() {
            let own = self.numbers_of(&spare.delegates);
            if let Some(node) = self.numbers_of(&spare.nodes).into_iter().find(|node| own.contains(node)) {
                let found = format!("node {node}, which has a key of 'delegates' for its own");
                return Err(Mistake::new(format!("{key}.nodes"), found, "nodes of other delegates, or without one"));
            }
        }
        if let Some(nodes) = clients_nodes(&fault.kind) {
            Self::check_somebody(&format!("{key}.nodes"), nodes)?;
        }
        fault.kind.bounded_values().iter().try_for_each(|(name, value)| self.check_value(&join(key, name), value))
    }

    /// Checks a parameter of a fault or a policy, other than a list of nodes, under its key.
    pub fn check_value(&self, key: &str, value: &BoundedValue<'_>) -> CheckResult {
        match value {
            BoundedValue::Number(number, allowed) => within(key, *number, allowed.clone()),
            BoundedValue::Part(part) => ratio(key, *part),
            BoundedValue::Rate(per_second) => rate(key, *per_second),
            BoundedValue::Amount(amount) => amount_of(key, *amount, 0),
            BoundedValue::Durations(durations) => match durations.wrong() {
                Some((found, allowed)) => Err(Mistake::new(key, found, allowed)),
                None => Ok(()),
            },
            BoundedValue::Rounds(rounds) => self.check_rounds(key, rounds),
            BoundedValue::LaterRound(round) => within(key, *round, 2..=self.rounds),
            BoundedValue::Accounts(count) => within(key, *count, 1..=self.accounts),
            BoundedValue::Delegate(name) => self.check_delegate(key, name),
            BoundedValue::Party(name) => self.check_party(key, name),
            BoundedValue::Clash { found, allowed } => Err(Mistake::new(key, found, *allowed)),
        }
    }

    fn check_rounds(&self, key: &str, rounds: &Rounds) -> CheckResult {
        let spans = rounds.spans();
        if spans.is_empty() {
            return Err(Mistake::new(key, "an empty list", "at least one"));
        }
        let mut seen = BTreeSet::new();
        for span in spans {
            within(key, span.start().0, 1..=self.rounds)?;
            within(key, span.end().0, span.start().0..=self.rounds)?;
            if !seen.insert((span.start().0, span.end().0)) {
                return Err(Mistake::new(key, format!("{} twice", span.start()), "each round once"));
            }
        }
        Ok(())
    }

    /// A number that names a thing.
    pub fn check_number(&self, key: &str, number: u32, thing: Thing) -> CheckResult {
        let count = match thing {
            Thing::Node => self.nodes,
            Thing::Delegate => self.forgers,
            Thing::Fault => self.faults,
            Thing::Owner { of } => of,
        };
        match count.checked_sub(1) {
            Some(last) => within(key, number, 0..=last),
            None => Err(Mistake::new(key, number, "none: there is nothing to be named")),
        }
    }

    /// Two nodes that are to be connected.
    pub fn check_pair(&self, key: &str, (a, b): (u32, u32)) -> CheckResult {
        self.check_number(key, a, Thing::Node)?;
        self.check_number(key, b, Thing::Node)?;
        if a == b {
            return Err(Mistake::new(key, format!("node {a} twice"), "two nodes"));
        }
        Ok(())
    }

    /// Checks nodes, or nodes that must forge.
    pub fn check_nodes(&self, key: &str, nodes: &Nodes, thing: Thing) -> CheckResult {
        match nodes {
            Nodes::List(list) if list.is_empty() => Err(Mistake::new(key, "an empty list", "at least one")),
            Nodes::List(list) => {
                let mut seen: BTreeMap<u32, &NodeRef> = BTreeMap::new();
                for node in list {
                    self.check_node(key, node, thing)?;
                    let Some(before) = self.number_of(node).and_then(|number| seen.insert(number, node)) else {
                        continue;
                    };
                    let found = if before == node {
                        format!("{node} twice")
                    } else {
                        format!("{before} and {node}, which are one")
                    };
                    return Err(Mistake::new(key, found, "each node once"));
                }
                Ok(())
            }
            Nodes::Span(span) => {
                self.check_node(key, &span.from, thing)?;
                self.check_node(key, &span.to, thing)?;
                match (self.number_of(&span.from), self.number_of(&span.to)) {
                    (Some(from), Some(to)) if from > to => {
                        Err(Mistake::new(key, format!("{} to {}", span.from, span.to), "the first node first"))
                    }
                    _ => Ok(()),
                }
            }
            Nodes::Share(share) => ratio(&format!("{key}.share"), share.share),
        }
    }

    /// Checks the nodes to which clients submit. A share of no node would mean all nodes.
    pub fn check_somebody(key: &str, nodes: &Nodes) -> CheckResult {
        match nodes {
            Nodes::Share(share) if share.share <= 0.0 => {
                Err(Mistake::new(format!("{key}.share"), share.share, "above 0: clients need a node"))
            }
            _ => Ok(()),
        }
    }

    /// Checks the groups of a partition: no node is in two of them, and together they keep some nodes apart.
    fn check_groups(&self, key: &str, partition: &Partition) -> CheckResult {
        let groups = &partition.groups;
        if partition.one_way && groups.len() > 1 {
            let found = format!("{} groups beside 'one_way'", groups.len());
            return Err(Mistake::new(key, found, "one: the others are all nodes that are not in it"));
        }
        let mut group_of: BTreeMap<u32, usize> = BTreeMap::new();
        for (index, group) in groups.iter().enumerate() {
            for node in self.numbers_of(group) {
                if let Some(before) = group_of.insert(node, index) {
                    let found = format!("node {node} in the groups {before} and {index}");
                    return Err(Mistake::new(key, found, "each node in one group"));
                }
            }
        }
        let is_whole = groups.len() == 1 && group_of.len() as u32 == self.nodes && self.nodes > 0;
        if is_whole {
            return Err(Mistake::new(key, "all nodes in one group", "groups that keep nodes apart"));
        }
        Ok(())
    }

    /// The numbers of the named nodes. A share names none.
    pub fn numbers_of(&self, nodes: &Nodes) -> Vec<u32> {
        match nodes {
            Nodes::List(list) => list.iter().filter_map(|node| self.number_of(node)).collect(),
            Nodes::Span(span) => match (self.number_of(&span.from), self.number_of(&span.to)) {
                (Some(from), Some(to)) => (from..=to).collect(),
                _ => Vec::new(),
            },
            Nodes::Share(_) => Vec::new(),
        }
    }

    fn number_of(&self, node: &NodeRef) -> Option<u32> {
        match node {
            NodeRef::Number(number) => Some(*number),
            NodeRef::Delegate(name) => self.usernames.place(name),
        }
    }

    fn check_node(&self, key: &str, node: &NodeRef, thing: Thing) -> CheckResult {
        match node {
            NodeRef::Delegate(name) => self.check_delegate(key, name),
            NodeRef::Number(number) => self.check_number(key, *number, thing),
        }
    }

    fn check_delegate(&self, key: &str, name: &str) -> CheckResult {
        if self.usernames.has(name) {
            return Ok(());
        }
        Err(Mistake::new(key, format!("'{name}'"), self.usernames.words()))
    }

    /// Checks the name of an account or a delegate, or an address.
    fn check_party(&self, key: &str, name: &str) -> CheckResult {
        if self.has_party(name) || name.parse::<Address>().is_ok() {
            return Ok(());
        }
        let allowed = format!("an address, {}{}", self.account_words(), self.usernames.words());
        Err(Mistake::new(key, format!("'{name}'"), allowed))
    }

    /// Checks the name of an account, a delegate or a shared wallet.
    pub fn check_actor(&self, key: &str, name: &str) -> CheckResult {
        if self.has_party(name) || name.strip_prefix("shared_").is_some_and(|name| !name.is_empty()) {
            return Ok(());
        }
        let allowed = format!("'shared_NAME', {}{}", self.account_words(), self.usernames.words());
        Err(Mistake::new(key, format!("'{name}'"), allowed))
    }

    fn has_party(&self, name: &str) -> bool {
        let account = counted(name, "account_");
        account.is_some_and(|number| (1..=self.accounts).contains(&number)) || self.usernames.has(name)
    }

    fn account_words(&self) -> String {
        match self.accounts {
            0 => String::new(),
            last => format!("'account_1' to 'account_{last}' or "),
        }
    }

    /// Checks a beginning and an end, which must come after it.
    pub fn check_span(&self, key: &str, from: &Trigger, until: Option<&Trigger>) -> CheckResult {
        self.check_trigger(&format!("{key}.from"), from, true)?;
        let Some(until) = until else { return Ok(()) };
        let key = format!("{key}.until");
        self.check_trigger(&key, until, false)?;
        if *until == Trigger::Start {
            return Err(Mistake::new(key, "start", "a moment after the beginning"));
        }
        let is_over_before = match (from, until) {
            (Trigger::Seconds(from), Trigger::Seconds(until)) => until <= from,
            (Trigger::Slot(from), Trigger::Slot(until))
            | (Trigger::Height(from), Trigger::Height(until))
            | (Trigger::HeightAtAny(from), Trigger::HeightAtAny(until))
            | (Trigger::Round(from), Trigger::Round(until))
            | (Trigger::RoundAtAny(from), Trigger::RoundAtAny(until)) => until <= from,
            _ => false,
        };
        match is_over_before {
            true => Err(Mistake::new(key, "no later moment than 'from'", "a moment after the beginning")),
            false => Ok(()),
        }
    }

    /// A moment within the run; only an end can count from a beginning.
    pub fn check_trigger(&self, key: &str, trigger: &Trigger, begins: bool) -> CheckResult {
        match trigger {
            Trigger::Start | Trigger::Slot(_) => Ok(()),
            Trigger::After(_) if begins => {
                let allowed = "start, seconds, slot, height, round, height-at-any, round-at-any or event: only an end can count from the \
                               beginning";
                Err(Mistake::new(key, "after", allowed))
            }
            Trigger::Seconds(seconds) | Trigger::After(seconds) => match (0.0..=SECONDS_LIMIT).contains(seconds) {
                true => Ok(()),
                false => Err(Mistake::new(key, seconds, format!("0 to {SECONDS_LIMIT} seconds"))),
            },
            Trigger::Height(height) => within(&format!("{key}.height"), *height, 1..=self.last_height),
            Trigger::HeightAtAny(height) => within(&format!("{key}.height-at-any"), *height, 1..=self.last_height),
            Trigger::Round(round) => within(&format!("{key}.round"), *round, 1..=self.rounds + 1),
            Trigger::RoundAtAny(round) => within(&format!("{key}.round-at-any"), *round, 1..=self.rounds + 1),
            Trigger::Event(event) => {
                within(&format!("{key}.event.count"), event.count, 1..=u32::MAX)?;
                let key = format!("{key}.event.node");
                event.node.as_ref().map_or(Ok(()), |node| self.check_node(&key, node, Thing::Node))
            }
        }
    }
}
