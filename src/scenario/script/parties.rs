//! The parties of a script by name, and their keys.

use crate::{
    protocol::{Address, KeyPair, PublicKey, crypto::CryptoMode, keys::multisignature_key},
    scenario::Testnet,
};
use dashmap::DashMap;
use std::{collections::BTreeMap, sync::Arc};

/// A cache of the keys of passphrases for all runs on a network: a search plays hundreds of scripts in which the same
/// wallets act.
pub(crate) struct DerivedKeys {
    crypto: CryptoMode,
    known: DashMap<String, KeyPair>,
}

impl DerivedKeys {
    /// An empty cache for a network that treats signatures in this way.
    pub(in crate::scenario) fn new(crypto: CryptoMode) -> Self {
        Self { crypto, known: DashMap::new() }
    }

    pub(super) fn of(&self, passphrase: String) -> KeyPair {
        let derive = || KeyPair::from_passphrase(&passphrase, self.crypto);
        self.known.entry(passphrase.clone()).or_insert_with(derive).clone()
    }
}

/// The parties of a generated network by name.
#[derive(Clone)]
pub(crate) struct Parties {
    keys: BTreeMap<String, KeyPair>,
    pub(super) network: u8,
    /// Keys of all other names.
    pub(super) others: Arc<DerivedKeys>,
}

impl Parties {
    /// The parties of a network: accounts, delegates and all other names.
    pub fn of(testnet: &Testnet) -> Self {
        let delegates = testnet.delegates.iter().map(|one| (one.username.clone(), one.keys.clone()));
        let accounts = testnet.accounts.iter().enumerate();
        let accounts = accounts.map(|(index, one)| (format!("account_{}", index + 1), one.keys.clone()));
        let network = testnet.config.network.pub_key_hash;
        Self { keys: delegates.chain(accounts).collect(), network, others: testnet.others.clone() }
    }

    /// The keys of a name. Each unknown name has keys of its own.
    pub(super) fn keys(&self, name: &str) -> KeyPair {
        self.keys.get(name).cloned().unwrap_or_else(|| self.others.of(name.to_owned()))
    }

    /// The keys of a shared wallet's owner, counted from 0.
    pub(super) fn owner(&self, name: &str, index: u8) -> KeyPair {
        let which = match index {
            0 => "first".to_owned(),
            1 => "second".to_owned(),
            2 => "third".to_owned(),
            more => format!("{}th", u32::from(more) + 1),
        };
        self.others.of(format!("{which} owner of {name}"))
    }

    pub(super) fn owners_of(&self, name: &str) -> Vec<PublicKey> {
        (0..threshold(name).1).map(|index| *self.owner(name, index).public()).collect()
    }

    pub(super) fn public(&self, name: &str) -> PublicKey {
        match name.strip_prefix("shared_") {
            Some(name) => {
                let key = multisignature_key(threshold(name).0, &self.owners_of(name));
                key.unwrap_or(*self.keys(name).public())
            }
            None => *self.keys(name).public(),
        }
    }

    pub(super) fn address(&self, name: &str) -> Address {
        self.public(name).address(self.network)
    }
}

/// Returns the threshold and the number of keys of a shared wallet: by a name that ends in `-K-of-N`, or two of three.
pub(super) fn threshold(name: &str) -> (u8, u8) {
    let by_name = || {
        let (rest, count) = name.rsplit_once("-of-")?;
        let (_, min) = rest.rsplit_once('-')?;
        let (min, count) = (min.parse().ok()?, count.parse().ok()?);
        (1 <= min && min <= count && count <= 16).then_some((min, count))
    };
    by_name().unwrap_or((2, 3))
}
