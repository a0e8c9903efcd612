//! Overriding rules of a set by name, as files do.

use super::{FORGING_POLL_LIMIT_MS, Gossip, Rules, Shuffle, sets};
use crate::ledger::votes::MOST_VOTES;
use toml::{Table, Value};

/// The error of a table of rules that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[rustfmt::skip]
pub enum RulesError {
    #[error("key '{key}': no such rule, allowed is {allowed}")]
    Unknown { key: String, allowed: String },
    #[error("key '{key}': found {found}, allowed is {allowed}")]
    NotAllowed { key: String, found: String, allowed: String },
}

impl Rules {
    /// The set of rules of a table that names none.
    pub const DEFAULT_BASE: &str = "reference";

    /// Reads rules in the form of a file. `base` names a set of rules (docs/protocols.md lists them). It is `"reference"` where a
    /// table has none. The other keys override its rules.
    ///
    /// ```
    /// use dposlab::ledger::Rules;
    /// let table = toml::toml! {
    ///     base = "corrected"
    ///     minimum_network_reach = false
    ///     pool.eviction_compares_fee_with_nonce = true
    /// };
    /// let rules = Rules::from_toml(&table)?;
    /// assert!(rules.pool.eviction_compares_fee_with_nonce && !rules.pool.too_large_ends_request);
    ///
    /// let misspelt = toml::toml! { pool.max_transaction = 1 };
    /// let error = Rules::from_toml(&misspelt).unwrap_err().to_string();
    /// assert!(error.starts_with("key 'pool.max_transaction': no such rule, allowed is pool.allowed_senders, "));
    /// # Ok::<(), dposlab::ledger::rules::RulesError>(())
    /// ```
    ///
    /// # Errors
    /// The first key that names no rule, or whose value its rule does not allow.
    pub fn from_toml(table: &Table) -> Result<Self, RulesError> {
        let base = match table.get("base") {
            None => Self::named(Self::DEFAULT_BASE)?,
            Some(Value::String(name)) => Self::named(name)?,
            Some(other) => return Err(no_such_base(other)),
        };
        base.overridden(table)
    }

    /// The set of rules of this name. docs/protocols.md lists all names.
    ///
    /// # Errors
    /// Any other name.
    pub fn named(name: &str) -> Result<Self, RulesError> {
        let named = sets::all().find(|named| named.name == name);
        named.map(|named| (named.rules)()).ok_or_else(|| no_such_base(&Value::from(name)))
    }

    /// These rules, overridden by those of a table. A rule within a group is named by a table in the table
    /// or by a dotted name: `pool = { recent_ids = 0 }` or `"pool.recent_ids" = 0`. The key `base` is ignored.
    ///
    /// # Errors
    /// As [`Rules::from_toml`].
    pub fn overridden(&self, table: &Table) -> Result<Self, RulesError> {
        let mut rules = self.clone();
        let mut leaves = Vec::new();
        let whole = Value::try_from(&rules).expect("rules are made of what TOML can hold");
        collect(table, &whole, "", &mut leaves)?;
        for (path, value) in leaves {
            rules = rules.with(&path, value)?;
        }
        rules.check()?;
        Ok(rules)
    }

    /// One rule replaced, by dotted name.
    fn with(&self, path: &str, value: &Value) -> Result<Self, RulesError> {
        let mut whole = Value::try_from(self).expect("rules are made of what TOML can hold");
        let place = path.split('.').try_fold(&mut whole, |at, name| at.get_mut(name)).expect("the path was followed");
        *place = value.clone();
        whole.try_into().map_err(|error: toml::de::Error| RulesError::NotAllowed {
            key: path.to_owned(),
            found: value.to_string(),
            allowed: allowed(error.message()),
        })
    }

    /// Checks the ranges that a number's type does not express.
    fn check(&self) -> Result<(), RulesError> {
        let lottery = match self.ledger.shuffle {
            Shuffle::Lottery(active_per_million) => active_per_million,
            _ => 1,
        };
        let node = &self.node;
        let push = if let Gossip::Push(peers) = self.gossip { peers } else { 1 };
        let ranges = [
            ("gossip.push", push.into(), 1..=u64::MAX),
            ("ledger.shuffle.lottery", lottery.into(), 1..=999_999),
            ("pool.max_transactions", self.pool.max_transactions as u64, 1..=u64::MAX),
            ("pool.max_transactions_per_request", self.pool.max_transactions_per_request as u64, 1..=u64::MAX),
            ("ledger.slots_a_turn", self.ledger.slots_a_turn.into(), 1..=1_000),
            ("ledger.votes.most", self.ledger.votes.most.into(), 1..=MOST_VOTES),
            ("quorum_percent", self.quorum_percent.into(), 0..=100),
            (
                "node.forging_ping_ms",
                node.forging_ping_ms.into(),
                0..=u64::from(node.relay_timeout_ms).saturating_sub(1),
            ),
            ("node.body_timeout_s", node.body_timeout_s.into(), 1..=u64::MAX),
            ("node.forging_poll_ms", node.forging_poll_ms.into(), 0..=FORGING_POLL_LIMIT_MS.into()),
        ];
        // The ends of waits: with a time of 0, what ends one begins the next at the same instant.
        let times = [
            ("node.answer_timeout_ms", node.answer_timeout_ms),
            ("node.connecting_timeout_ms", node.connecting_timeout_ms),
            ("node.verification_timeout_ms", node.verification_timeout_ms),
            ("node.post_timeout_ms", node.post_timeout_ms),
            ("node.discovery_ms", node.discovery_ms),
            ("node.discovery_below_reach_ms", node.discovery_below_reach_ms),
            ("node.relay_timeout_ms", node.relay_timeout_ms),
            ("node.forging_retry_ms", node.forging_retry_ms),
        ];
        let mut ranges = times.into_iter().map(|(key, value)| (key, value.into(), 1..=u64::MAX)).chain(ranges);
        match ranges.find(|(_, value, range)| !range.contains(value)) {
            None => Ok(()),
            Some((key, found, allowed)) => Err(RulesError::NotAllowed {
                key: key.to_owned(),
                found: found.to_string(),
                allowed: match allowed.into_inner() {
                    (low, u64::MAX) => format!("{low} or more"),
                    (low, high) => format!("{low} to {high}"),
                },
            }),
        }
    }
}

/// The part of a deserializer's message that states the allowed values.
fn allowed(message: &str) -> String {
    let message = message.trim().replace('\n', " ");
    let allowed = message.split_once(", expected ").map_or(message.as_str(), |(_, allowed)| allowed);
    match allowed {
        "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on".to_owned(),
        "a boolean" => "true or false".to_owned(),
        other => other.to_owned(),
    }
}

fn no_such_base(found: &Value) -> RulesError {
    RulesError::NotAllowed { key: "base".to_owned(), found: found.to_string(), allowed: sets::names() }
}

/// The single rules that a table names, with their dotted names.
fn collect<'a>(
    table: &'a Table,
    whole: &Value,
    group: &str,
    leaves: &mut Vec<(String, &'a Value)>,
) -> Result<(), RulesError> {
    for (name, value) in table.iter().filter(|(name, _)| !(group.is_empty() && *name == "base")) {
        let key = format!("{group}{name}");
        let mut at = whole;
        let mut parent = group.to_owned();
        for part in name.split('.') {
            let known = at.as_table().ok_or_else(|| unknown(&key, &Table::new(), &parent))?;
            at = known.get(part).ok_or_else(|| unknown(&key, known, &parent))?;
            parent = format!("{parent}{part}.");
        }
        match (value, at) {
            // A group, or a rule that is a table itself, of which single members may be given.
            (Value::Table(inner), Value::Table(_)) => collect(inner, at, &parent, leaves)?,
            _ => leaves.push((key, value)),
        }
    }
    Ok(())
}

fn collect_names(known: &Table, group: &str) -> String {
    known.keys().map(|name| format!("{group}{name}")).collect::<Vec<_>>().join(", ")
}

fn unknown(key: &str, known: &Table, group: &str) -> RulesError {
    let allowed = if known.is_empty() { "no part of it".to_owned() } else { collect_names(known, group) };
    RulesError::Unknown { key: key.to_owned(), allowed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::rules::{DynamicFees, Gossip};

    fn parse(text: &str) -> Result<Rules, String> {
        Rules::from_toml(&text.parse().expect("TOML")).map_err(|error| error.to_string())
    }

    #[test]
    fn rules_survive_the_way_through_a_file() {
        for rules in sets::all().map(|named| (named.rules)()) {
            let text = toml::to_string(&rules).expect("rules are made of what TOML can hold");
            assert_eq!(toml::from_str::<Rules>(&text), Ok(rules.clone()));
            assert_eq!(parse(&text), Ok(rules));
        }
    }

    #[test]
    fn a_rule_is_named_by_a_table_or_by_dots() {
        let nested = parse("gossip = \"once\"\n[pool]\nrecent_ids = 0\ndynamic_fees = false").expect("all exist");
        let dotted = parse("gossip = \"once\"\n\"pool.recent_ids\" = 0\npool.dynamic_fees = false").expect("all exist");
        assert_eq!(nested, dotted);
        assert_eq!((nested.gossip, nested.pool.recent_ids, nested.pool.dynamic_fees), (Gossip::Once, 0, None));
        let one_member = parse("[pool.dynamic_fees]\nmin_fee_pool = 7").expect("it exists");
        assert_eq!(one_member.pool.dynamic_fees, Some(DynamicFees { min_fee_pool: 7, min_fee_broadcast: 1_000 }));
        assert_eq!(parse("base = \"corrected\""), Ok(Rules::corrected()));
        assert_eq!(parse(""), Ok(Rules::reference()));
    }

    #[test]
    fn an_error_names_the_key_and_what_is_allowed() {
        let refused = |text| parse(text).expect_err("it must be refused");
        let unknown = refused("pool.max = 1");
        assert!(unknown.starts_with("key 'pool.max': no such rule, allowed is pool.allowed_senders, "), "{unknown}");
        let group = refused("pols = 1");
        assert!(group.starts_with("key 'pols': no such rule, allowed is gossip, ledger, "), "{group}");
        let base = refused("base = \"best\"");
        assert!(base.starts_with("key 'base': found \"best\", allowed is \"reference\", \"corrected\", "), "{base}");
        let kind = refused("ledger.shuffle = \"cards\"");
        assert!(kind.contains("key 'ledger.shuffle': found \"cards\"") && kind.contains("`every-place`"), "{kind}");
        assert_eq!(refused("quorum_percent = 101"), "key 'quorum_percent': found 101, allowed is 0 to 100");
        assert_eq!(refused("pool.max_transactions = 0"), "key 'pool.max_transactions': found 0, allowed is 1 or more");
        let ping = "key 'node.forging_ping_ms': found 4000, allowed is 0 to 3999";
        assert_eq!(refused("node.forging_ping_ms = 4000"), ping);
        let votes = "key 'ledger.votes.most': found 1001, allowed is 1 to 1000";
        assert_eq!(refused("[ledger.votes]\nmost = 1001"), votes);
        assert_eq!(refused("ledger.votes.most = 0"), votes.replace("1001", "0"));
        let share = refused("ledger.votes.weight = \"half\"");
        assert!(share.starts_with("key 'ledger.votes.weight': found \"half\", allowed is "), "{share}");
        assert!(share.contains("`unit`") && !share.contains("unknown"), "{share}");
        assert!(refused("ledger.votes.least = 1").ends_with("allowed is ledger.votes.most, ledger.votes.weight"));
        let type_of = refused("pool.too_large_ends_request = 1");
        assert_eq!(type_of, "key 'pool.too_large_ends_request': found 1, allowed is true or false");
        let part = refused("ledger.votes.most = 1.5");
        assert_eq!(part, "key 'ledger.votes.most': found 1.5, allowed is a whole number from 0 on");
        assert!(refused("gossip.once = 1").contains("gossip"));
    }
}
