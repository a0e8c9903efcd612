//! What faults can name: the nodes, delegates, accounts and moments of a run. One set of rules for scenario files and for
//! runs that go on.

use super::limits::{Checked, Mistake, rate, ratio, within};
use crate::{
    protocol::Address,
    sim::{
        Fault, FaultKind, Trigger,
        fault::{NodeRef, Nodes, Share},
    },
};

/// Seconds a trigger can name: a century.
const SECONDS_LIMIT: f64 = 3.2e9;

/// What there is in a run.
pub struct Ground<'a> {
    pub nodes: u32,
    /// So many of the nodes, the first ones, forge.
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
            if matches!(fault.kind, FaultKind::Heal(_) | FaultKind::Restart(_)) {
                let found = format!("a '{}' that ends", fault.kind.name());
                return Err(Mistake::new(format!("{key}.until"), found, "none: it is over at once"));
            }
        }
        for (name, nodes) in fault.kind.nodes() {
            self.check_nodes(&format!("{key}.{name}"), nodes, name == "delegates")?;
        }
        if let Some(chance) = fault.kind.messages().and_then(|which| which.chance) {
            ratio(&format!("{key}.chance"), chance)?;
        }
        self.check_kind(key, &fault.kind)
    }

    fn check_kind(&self, key: &str, kind: &FaultKind) -> Checked {
        match kind {
            FaultKind::Partition(partition) => match (partition.groups.is_empty(), partition.share) {
                (true, None) => Err(Mistake::new(key, "neither", "groups or share")),
                (false, Some(_)) => Err(Mistake::new(format!("{key}.share"), "both", "groups or share")),
                (true, Some(Share { share, .. })) => ratio(&format!("{key}.share.share"), share),
                (false, None) => Ok(()),
            },
            FaultKind::Duplicate(duplicate) => within(&format!("{key}.copies"), duplicate.copies, 1..=100),
            FaultKind::ForgeOutOfTurn(turn) => within(&format!("{key}.every"), turn.every, 1..=1_000_000),
            FaultKind::ClockSkew(skew) => {
                let (offset, drift) = (skew.offset_ms.unsigned_abs(), skew.drift_ppm.unsigned_abs());
                within(&format!("{key}.offset_ms"), u32::try_from(offset).unwrap_or(u32::MAX), 0..=1_000_000_000)?;
                within(&format!("{key}.drift_ppm"), drift, 0..=100_000)
            }
            FaultKind::LieAboutTip(lie) => within(&format!("{key}.by"), lie.by.unsigned_abs(), 0..=1_000_000),
            FaultKind::Offline(offline) => {
                let Some(rounds) = &offline.rounds else { return Ok(()) };
                let key = format!("{key}.rounds");
                if rounds.spans().is_empty() {
                    return Err(Mistake::new(key, "an empty list", "at least one"));
                }
                for span in rounds.spans() {
                    within(&key, span.start().0, 1..=self.rounds)?;
                    within(&key, span.end().0, span.start().0..=self.rounds)?;
                }
                Ok(())
            }
            FaultKind::Censor(censor) => self.check_party(&format!("{key}.sender"), &censor.sender),
            FaultKind::VoteSwing(swing) => {
                within(&format!("{key}.voters"), swing.voters, 1..=self.accounts)?;
                within(&format!("{key}.round"), swing.round, 2..=self.rounds)?;
                self.check_delegate(&format!("{key}.delegate"), &swing.delegate)
            }
            FaultKind::SpamPool(spam) => rate(&format!("{key}.per_second"), spam.per_second),
            FaultKind::LowFeeFlood(flood) => rate(&format!("{key}.per_second"), flood.per_second),
            _ => Ok(()),
        }
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
