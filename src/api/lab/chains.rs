//! Isolated chains in one process: one for each test of a client, under a path of its own.
//!
//! `/chains/{id}/api` and `/chains/{id}/lab` answer as `/api` and `/lab` do, from another network. Clients have a setting for
//! the base URL, so they need no change.

use crate::{
    api::http::error::ApiError,
    protocol::Height,
    scenario::Account,
    sim::{Pace, past::RunPoint},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The largest number of chains of one process at a time.
pub(crate) const CHAINS_MAX: usize = 1_000;
/// The text before the number of a chain.
const PREFIX: &str = "/chains/";

/// The chain that a client requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainWish {
    /// The seed. `None` for the testnet's.
    pub seed: Option<u64>,
    /// The text of a scenario file. `None` for the testnet's.
    pub scenario: Option<String>,
    /// Values in place of the scenario's, each `PATH=VALUE`.
    pub set: Vec<String>,
    /// The pace. `None` for manual.
    pub pace: Option<Pace>,
}

/// An account that has coin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainAccount {
    pub address: String,
    pub public_key: String,
    pub balance: String,
    pub passphrase: String,
}

impl ChainAccount {
    /// An account of a testnet, on a network of this byte.
    pub fn of(account: &Account, network_byte: u8) -> Self {
        Self {
            address: account.keys.public().address(network_byte).to_string(),
            public_key: account.keys.public().to_string(),
            balance: account.balance.value().to_string(),
            passphrase: account.passphrase.clone(),
        }
    }
}

/// The context of a run, which ends with its chain.
pub trait Running {
    /// Stops the run and ends its streams.
    fn end(&self);
}

/// A chain that runs, with the context of its requests.
pub struct Chain<C> {
    /// The context from which its requests are answered.
    pub context: C,
    pub seed: u64,
    pub delegates: u32,
    pub nethash: String,
    pub accounts: Vec<ChainAccount>,
    /// The point of the testnet's past from which the chain continued. `None` for a chain with a genesis block of its own.
    pub origin: Option<ChainOrigin>,
}

/// The instant of the testnet's past from which a chain goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainOrigin {
    pub place: RunPoint,
    /// The height of the chain that most live nodes stood on.
    pub height: Height,
}

/// Makes a chain beside the network of this context.
pub(crate) type MakeChain<C> = Arc<dyn Fn(&ChainWish, &C) -> Result<Chain<C>, ApiError> + Send + Sync>;

/// All chains of a process. Cheap to clone.
pub struct Chains<C>(Arc<ChainRegistry<C>>);

impl<C> Clone for Chains<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct ChainRegistry<C> {
    make: MakeChain<C>,
    all: Mutex<All<C>>,
}

struct All<C> {
    last: u64,
    chains: BTreeMap<u64, Arc<Chain<C>>>,
}

impl<C: Running> Chains<C> {
    /// No chains yet.
    pub fn new(make: MakeChain<C>) -> Self {
        let all = Mutex::new(All { last: 0, chains: BTreeMap::new() });
        Self(Arc::new(ChainRegistry { make, all }))
    }

    /// Makes a chain and returns it with its number.
    ///
    /// # Errors
    /// There are [`CHAINS_MAX`] chains, or the requested chain is invalid.
    pub fn make(&self, wish: &ChainWish, beside: &C) -> Result<(u64, Arc<Chain<C>>), ApiError> {
        if self.lock().chains.len() >= CHAINS_MAX {
            return Err(full());
        }
        self.add((self.0.make)(wish, beside)?)
    }

    /// Adds a chain that was made elsewhere, and returns it with its number.
    ///
    /// # Errors
    /// There are [`CHAINS_MAX`] chains. Ends the given one.
    pub fn add(&self, chain: Chain<C>) -> Result<(u64, Arc<Chain<C>>), ApiError> {
        let chain = Arc::new(chain);
        let mut all = self.lock();
        if all.chains.len() >= CHAINS_MAX {
            chain.context.end();
            return Err(full());
        }
        all.last += 1;
        let id = all.last;
        all.chains.insert(id, chain.clone());
        Ok((id, chain))
    }

    /// The chain with a number.
    pub fn get(&self, id: u64) -> Option<Arc<Chain<C>>> {
        self.lock().chains.get(&id).cloned()
    }

    /// All, by number.
    pub fn list(&self) -> Vec<(u64, Arc<Chain<C>>)> {
        self.lock().chains.iter().map(|(id, chain)| (*id, chain.clone())).collect()
    }

    /// Stops a chain, ends its streams and removes it. Returns true if there was one.
    pub fn delete(&self, id: u64) -> bool {
        let Some(chain) = self.lock().chains.remove(&id) else { return false };
        chain.context.end();
        true
    }

    fn lock(&self) -> MutexGuard<'_, All<C>> {
        // A panic while it was locked leaves whole entries.
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn full() -> ApiError {
    ApiError::Unprocessable(format!(
        "there are {CHAINS_MAX} chains, which is as many as a process has; delete one first"
    ))
}

/// Splits a path below `/chains/` into the chain's number, if it is a number, and the path within the chain.
pub(crate) fn split(path: &str) -> Option<(Option<u64>, &str)> {
    split_below(PREFIX, path)
}

/// Splits a path behind `prefix` into a number, if it is one, and the rest. `None` if the path has another prefix.
pub(crate) fn split_below<'p>(prefix: &str, path: &'p str) -> Option<(Option<u64>, &'p str)> {
    let rest = path.strip_prefix(prefix)?;
    let end = rest.find('/').unwrap_or(rest.len());
    let (id, rest) = rest.split_at(end);
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let id = if is_number { id.parse().ok() } else { None };
    Some((id, if rest.is_empty() { "/" } else { rest }))
}

/// The path below which a chain answers.
pub(crate) fn prefix(id: u64) -> String {
    format!("{PREFIX}{id}")
}

#[cfg(test)]
mod tests {
    use crate::api::lab::chains::split;

    #[test]
    fn a_path_is_of_a_chain_by_its_number() {
        assert_eq!(split("/chains/7/api/blocks"), Some((Some(7), "/api/blocks")));
        assert_eq!(split("/chains/7"), Some((Some(7), "/")));
        for (path, rest) in [("/chains/x/api", "/api"), ("/chains//lab", "/lab"), ("/chains/+7/lab", "/lab")] {
            assert_eq!(split(path), Some((None, rest)), "{path}");
        }
        assert_eq!(split("/chains/99999999999999999999/api"), Some((None, "/api")));
        for path in ["/api/blocks", "/chain/7", "/lab/chains/7", "/"] {
            assert_eq!(split(path), None, "{path}");
        }
    }
}
