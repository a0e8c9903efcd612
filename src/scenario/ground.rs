//! The things that faults can name: the nodes, delegates, accounts and moments of a run. Scenario files and runs that go on
//! have one set of rules.

use super::mistake::{Checked, Mistake, join, rate, ratio, within};
use crate::{
    protocol::Address,
    sim::{
        Fault, Trigger,
        fault::{NodeRef, Nodes, Rounds, Said},
    },
};

/// Seconds a trigger can name: a century.
const SECONDS_LIMIT: f64 = 3.2e9;

/// The things that there are in a run.
pub struct Ground<'a> {
    pub nodes: u32,
    /// The number of nodes that forge; these are the first ones.
    pub forgers: u32,
    pub usernames: Usernames<'a>,
    /// Funded accounts: `account_1` and so on.
    pub accounts: u32,
    /// The last round that can be named.
    pub rounds: u32,
    pub last_height: u32,
}

/// The delegates' usernames.
pub enum Usernames<'a> {
    /// `genesis_1` and so on: so many.
    Numbered(u32),
    /// These, in the order of their nodes.
    Listed(&'a [String]),
}

impl Usernames<'_> {
    /// Returns true if a delegate has this username.
    fn has(&self, name: &str) -> bool {
        match self {
            // Without making all of them: lists of delegates may be long.
            Self::Numbered(count) => {
                let number = name.strip_prefix("genesis_").filter(|number| !number.starts_with(['0', '+']));
                let number = number.and_then(|number| number.parse::<u32>().ok());
                number.is_some_and(|number| (1..=*count).contains(&number))
            }
            Self::Listed(names) => names.iter().any(|one| one == name),
        }
    }

    /// 'first' to 'last'.
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
    /// A fault, under a key.
    pub fn check_fault(&self, key: &str, fault: &Fault) -> Checked {
        self.check_trigger(&format!("{key}.from"), &fault.from, true)?;
        if let Some(until) = &fault.until {
            self.check_trigger(&format!("{key}.until"), until, false)?;
            if fault.kind.facts().is_over_at_once() {
                let found = format!("a '{}' that ends", fault.kind.name());
                return Err(Mistake::new(format!("{key}.until"), found, "none: it is over at once"));
            }
        }
        for (name, nodes) in fault.kind.nodes() {
            self.check_nodes(&format!("{key}.{name}"), nodes, name == "delegates")?;
        }
        fault.kind.said().iter().try_for_each(|(name, said)| self.check_said(&join(key, name), said))
    }

    /// Checks a statement of a fault beside its lists of nodes, under its key.
    fn check_said(&self, key: &str, said: &Said<'_>) -> Checked {
        match said {
            Said::Number(number, allowed) => within(key, *number, allowed.clone()),
            Said::Part(part) => ratio(key, *part),
            Said::Rate(per_second) => rate(key, *per_second),
            Said::Rounds(rounds) => self.check_rounds(key, rounds),
            Said::LaterRound(round) => within(key, *round, 2..=self.rounds),
            Said::Accounts(count) => within(key, *count, 1..=self.accounts),
            Said::Delegate(name) => self.check_delegate(key, name),
            Said::Party(name) => self.check_party(key, name),
            Said::Clash { found, allowed } => Err(Mistake::new(key, found, *allowed)),
        }
    }

    fn check_rounds(&self, key: &str, rounds: &Rounds) -> Checked {
        let spans = rounds.spans();
        if spans.is_empty() {
            return Err(Mistake::new(key, "an empty list", "at least one"));
        }
        for span in spans {
            within(key, span.start().0, 1..=self.rounds)?;
            within(key, span.end().0, span.start().0..=self.rounds)?;
        }
        Ok(())
    }

    /// Some nodes, or some that forge.
    pub fn check_nodes(&self, key: &str, nodes: &Nodes, delegates: bool) -> Checked {
        match nodes {
            Nodes::List(list) if list.is_empty() => Err(Mistake::new(key, "an empty list", "at least one")),
            Nodes::List(list) => list.iter().try_for_each(|node| self.check_node(key, node, delegates)),
            Nodes::Span(span) => {
                self.check_node(key, &span.from, delegates)?;
                self.check_node(key, &span.to, delegates)
            }
            Nodes::Share(share) => ratio(&format!("{key}.share"), share.share),
        }
    }

    fn check_node(&self, key: &str, node: &NodeRef, delegates: bool) -> Checked {
        match node {
            NodeRef::Delegate(name) => self.check_delegate(key, name),
            NodeRef::Number(number) => {
                let count = if delegates { self.forgers } else { self.nodes };
                within(key, *number, 0..=count.saturating_sub(1))
            }
        }
    }

    fn check_delegate(&self, key: &str, name: &str) -> Checked {
        if self.usernames.has(name) {
            return Ok(());
        }
        Err(Mistake::new(key, format!("'{name}'"), self.usernames.words()))
    }

    /// An account, a delegate or an address.
    fn check_party(&self, key: &str, name: &str) -> Checked {
        let account = name.strip_prefix("account_").and_then(|number| number.parse::<u32>().ok());
        let known = account.is_some_and(|number| (1..=self.accounts).contains(&number))
            || self.usernames.has(name)
            || name.parse::<Address>().is_ok();
        if known {
            return Ok(());
        }
        let accounts = match self.accounts {
            0 => String::new(),
            last => format!("'account_1' to 'account_{last}' or "),
        };
        let allowed = format!("an address, {accounts}{}", self.usernames.words());
        Err(Mistake::new(key, format!("'{name}'"), allowed))
    }

    /// A moment within the run; only an end can count from a beginning.
    pub fn check_trigger(&self, key: &str, trigger: &Trigger, begins: bool) -> Checked {
        match trigger {
            Trigger::Start | Trigger::Slot(_) => Ok(()),
            Trigger::After(_) if begins => {
                let allowed = "start, seconds, slot, height, round or event: only an end can count from the beginning";
                Err(Mistake::new(key, "after", allowed))
            }
            Trigger::Seconds(seconds) | Trigger::After(seconds) => match (0.0..=SECONDS_LIMIT).contains(seconds) {
                true => Ok(()),
                false => Err(Mistake::new(key, seconds, format!("0 to {SECONDS_LIMIT} seconds"))),
            },
            Trigger::Height(height) => within(&format!("{key}.height"), *height, 1..=self.last_height),
            Trigger::Round(round) => within(&format!("{key}.round"), *round, 1..=self.rounds + 1),
            Trigger::Event(event) => {
                within(&format!("{key}.event.count"), event.count, 1..=u32::MAX)?;
                event.node.as_ref().map_or(Ok(()), |node| self.check_node(&format!("{key}.event.node"), node, false))
            }
        }
    }
}
