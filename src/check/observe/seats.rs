//! The active delegates of rounds, from a list or a node: for blocks whose state is not known.

use crate::{
    ledger::{
        Balance,
        import::values_of,
        round::{Member, Round, RoundPosition},
        rules::Shuffle,
    },
    protocol::PublicKey,
};
use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

/// The reason why a list names no delegates.
#[derive(Debug, thiserror::Error)]
#[rustfmt::skip]
pub enum SeatsError {
    #[error("line {line}: not JSON: {source}")]
    NotJson { line: usize, source: serde_json::Error },
    #[error("line {line}: key '{key}': found {found}, allowed is {allowed}")]
    Wrong { line: usize, key: &'static str, found: String, allowed: &'static str },
    #[error("round {round}: found {found} delegates, allowed are {allowed}, as many as the milestones say")]
    Number { round: u32, found: usize, allowed: u32 },
}

/// The delegates of rounds, in the order of their rank.
#[derive(Default)]
pub struct Seats {
    by_round: BTreeMap<u32, Vec<PublicKey>>,
    /// The delegates of every round that the list does not name.
    of_all: Vec<PublicKey>,
    names: BTreeMap<PublicKey, String>,
    rounds: RefCell<BTreeMap<u32, Arc<Round>>>,
}

impl Seats {
    /// Reads a list: objects with a `publicKey`, in the order of their rank, and perhaps with the `round` and a `username`.
    ///
    /// # Errors
    /// The first entry that is none.
    pub fn read(&mut self, text: &str) -> Result<(), SeatsError> {
        for (line, value) in values_of(text) {
            let value = value.map_err(|source| SeatsError::NotJson { line, source })?;
            let wrong = |key, allowed| {
                let found =
                    value.get(key).map_or("nothing".to_owned(), |found| found.to_string().chars().take(80).collect());
                SeatsError::Wrong { line, key, found, allowed }
            };
            let key = value["publicKey"].as_str().and_then(|key| key.parse().ok());
            let key: PublicKey = key.ok_or_else(|| wrong("publicKey", "66 hex digits"))?;
            let round = match value.get("round") {
                None => None,
                Some(round) => {
                    let number = round.as_u64().and_then(|round| u32::try_from(round).ok()).filter(|round| *round > 0);
                    Some(number.ok_or_else(|| wrong("round", "a whole number from 1"))?)
                }
            };
            self.add(round, key, value["username"].as_str());
        }
        Ok(())
    }

    /// Adds the next delegate of a round, or of every round.
    pub fn add(&mut self, round: Option<u32>, key: PublicKey, username: Option<&str>) {
        round.map_or(&mut self.of_all, |round| self.by_round.entry(round).or_default()).push(key);
        if let Some(username) = username {
            self.names.insert(key, username.to_owned());
        }
    }

    /// Returns true if no delegate is listed.
    pub fn is_empty(&self) -> bool {
        self.by_round.is_empty() && self.of_all.is_empty()
    }

    /// The usernames.
    pub(super) fn names(&self) -> &BTreeMap<PublicKey, String> {
        &self.names
    }

    /// The round at a position; `None` if no list has its delegates.
    ///
    /// # Errors
    /// Their number is not that of the position.
    pub(super) fn round(
        &self,
        position: RoundPosition,
        shuffle: Shuffle,
        network: u8,
    ) -> Result<Option<Arc<Round>>, SeatsError> {
        let round = position.round.0;
        if let Some(known) = self.rounds.borrow().get(&round) {
            return Ok(Some(known.clone()));
        }
        let keys = self.by_round.get(&round).unwrap_or(&self.of_all);
        // The owners of a lottery also depend on vote weights, which no list has.
        if keys.is_empty() || matches!(shuffle, Shuffle::Lottery(_)) {
            return Ok(None);
        }
        if keys.len() != position.delegates as usize {
            return Err(SeatsError::Number { round, found: keys.len(), allowed: position.delegates });
        }
        let member =
            |key: &PublicKey| Member { public_key: *key, address: key.address(network), vote_balance: Balance::ZERO };
        let made = Arc::new(Round::new(position, keys.iter().map(member).collect(), shuffle));
        self.rounds.borrow_mut().insert(round, made.clone());
        Ok(Some(made))
    }
}
