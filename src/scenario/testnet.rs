//! A network made from a seed: real keys, a really signed genesis, funded accounts. Source: protocol.md 6.

use super::{
    script::DerivedKeys,
    section::{Change, NetworkSection},
};
use crate::{
    ledger::{BlockRejected, BlockTree, Rules},
    protocol::{
        Address, Arktoshi, Height, KeyPair, Milestones, NetworkConfig, crypto::CryptoMode, genesis::GenesisPlan,
        keys::generate_passphrase, network::Network,
    },
    sim::SeedTree,
};
use serde_json::json;
use std::sync::Arc;

/// Coin of a generated network: that of the reference's testnet.
const TOTAL: Arktoshi = Arktoshi::coins(125_000_000);
/// Funded accounts of a generated network.
pub const ACCOUNTS_LIMIT: u32 = 10;
/// The amount by which an active delegate of a generated network is ahead of one that stands by.
const LEAD: Arktoshi = Arktoshi::coins(1);
/// The balance with which each account begins.
const ACCOUNT_BALANCE: Arktoshi = Arktoshi::coins(1_000_000);
/// Delegates a generated network can have.
pub const DELEGATES_LIMIT: u32 = 1_000;

/// A generated network: parameters of the reference's `testnet`, so that an SDK set to that preset just works, with
/// keys and a genesis block of its own.
#[derive(Clone)]
pub struct Testnet {
    pub config: Arc<NetworkConfig>,
    /// `genesis_1`, `genesis_2`, … in this order.
    pub delegates: Vec<NamedDelegate>,
    pub accounts: Vec<Account>,
    /// Keys of wallets that scripts name.
    pub(super) others: Arc<DerivedKeys>,
}

/// A delegate with its keys.
#[derive(Clone)]
pub struct NamedDelegate {
    pub username: String,
    pub passphrase: String,
    pub keys: KeyPair,
}

/// A funded account.
#[derive(Clone)]
pub struct Account {
    pub passphrase: String,
    pub keys: KeyPair,
    pub address: Address,
    pub balance: Arktoshi,
}

impl Testnet {
    /// The network of a seed, with 1 to [`DELEGATES_LIMIT`] delegates.
    pub fn generate(seeds: SeedTree, delegates: u32, crypto: CryptoMode) -> Self {
        Self::of(seeds, &NetworkSection { delegates, ..NetworkSection::default() }, crypto)
    }

    /// The network of a seed that a scenario describes: active delegates and registered ones after them in name and
    /// rank, what a forged block pays, and what changes with height.
    pub fn of(seeds: SeedTree, section: &NetworkSection, crypto: CryptoMode) -> Self {
        let NetworkSection { delegates: active, standby, block_time_s, reward, milestones: changes, .. } = section;
        let (active, standby) = (*active, *standby);
        let network = Network::testnet();
        let network_byte = network.pub_key_hash;
        let milestones = milestones(active, *block_time_s, *reward, changes);
        let delegates: Vec<NamedDelegate> = (1..=active + standby)
            .map(|number| {
                let (passphrase, keys) = secret(seeds, &format!("keys/delegate/{number}"), crypto);
                NamedDelegate { username: format!("genesis_{number}"), passphrase, keys }
            })
            .collect();
        let accounts: Vec<Account> = (1..=ACCOUNTS_LIMIT)
            .map(|number| {
                let (passphrase, keys) = secret(seeds, &format!("keys/account/{number}"), crypto);
                Account { passphrase, address: keys.public().address(network_byte), keys, balance: ACCOUNT_BALANCE }
            })
            .collect();
        let (_, premine) = secret(seeds, "keys/premine", crypto);
        let leaders = if standby > 0 { active as usize } else { 0 };
        let lead = delegates.iter().take(leaders).map(|delegate| (delegate.keys.public().address(network_byte), LEAD));
        let mut funded: Vec<(Address, Arktoshi)> =
            accounts.iter().map(|account| (account.address, account.balance)).chain(lead).collect();
        // The premine wallet pays itself what cannot be divided evenly: a delegate with more would always rank first.
        let kept = indivisible(&funded, delegates.len());
        if kept > Arktoshi::ZERO {
            funded.push((premine.public().address(network_byte), kept));
        }
        let plan = GenesisPlan {
            network,
            milestones,
            premine,
            delegates: delegates.iter().map(|delegate| (delegate.username.clone(), delegate.keys.clone())).collect(),
            total: TOTAL,
            accounts: funded,
        };
        let config =
            NetworkConfig::from_plan(plan).expect("the accounts get less than the total, and delegates the rest");
        let config = Arc::new(config);
        Self { config, delegates, accounts, others: Arc::new(DerivedKeys::new(crypto)) }
    }

    /// A network from elsewhere, of which these delegates' keys are known, and of nobody else.
    pub fn loaded(config: Arc<NetworkConfig>, delegates: Vec<NamedDelegate>) -> Self {
        let others = Arc::new(DerivedKeys::new(config.crypto));
        Self { config, delegates, accounts: Vec::new(), others }
    }

    /// The block tree of this network under these rules.
    ///
    /// # Errors
    /// None for a generated network: its genesis registers as many delegates as its first milestone wants.
    pub fn tree(&self, rules: Rules) -> Result<Arc<BlockTree>, BlockRejected> {
        BlockTree::new(self.config.clone(), Arc::new(rules)).map(Arc::new)
    }
}

/// The reference's rules, fitted to so many nodes: where they are too few for the network reach the reference asks
/// for, all of the others are asked for; a lone node forges as in the reference's test environment.
pub fn rules_for(nodes: usize) -> Rules {
    let reference = Rules::reference();
    let others = u32::try_from(nodes.saturating_sub(1)).unwrap_or(u32::MAX);
    let reach = reference.minimum_network_reach.map(|reach| reach.min(others)).filter(|reach| *reach > 0);
    Rules { minimum_network_reach: reach, ..reference }
}

/// The coin left once these are funded and so many delegates, at least one, have got equal whole shares.
fn indivisible(funded: &[(Address, Arktoshi)], delegates: usize) -> Arktoshi {
    let paid: u64 = funded.iter().map(|(_, amount)| amount.value()).sum();
    Arktoshi::new((TOTAL.value() - paid) % delegates as u64).expect("it is less than the number of delegates")
}

/// Returns the milestones of the preset, with other numbers in each and further ones between.
fn milestones(delegates: u32, block_time_s: u32, reward: Option<u64>, changes: &[Change]) -> Milestones {
    let testnet = Milestones::testnet();
    let mut list: Vec<_> = testnet.all().iter().map(|milestone| milestone.json.clone()).collect();
    for change in changes {
        if list.iter().all(|milestone| milestone["height"] != json!(change.height)) {
            let before = testnet.at(Height(change.height)).json.clone();
            list.push(before);
            let last = list.len() - 1;
            list[last]["height"] = json!(change.height);
        }
    }
    for milestone in &mut list {
        let height = milestone["height"].as_u64().unwrap_or(1);
        let in_force = |changes: &[Change]| changes.partition_point(|change| u64::from(change.height) <= height);
        let past = &changes[..in_force(changes)];
        let seats = past.iter().rev().find_map(|change| change.delegates).unwrap_or(delegates);
        milestone["activeDelegates"] = json!(seats);
        milestone["blocktime"] = json!(block_time_s);
        // Genesis pays nobody.
        let pays = past.iter().rev().find_map(|change| change.reward).or(reward);
        if let Some(reward) = pays.filter(|_| height != 1) {
            milestone["reward"] = json!(reward);
        }
    }
    Milestones::from_json(&list.into()).expect("changes were checked to begin with rounds when the file was read")
}

/// The passphrase and the keys of a name.
pub fn secret(seeds: SeedTree, name: &str, crypto: CryptoMode) -> (String, KeyPair) {
    let bytes = seeds.bytes(name);
    let entropy: [u8; 16] = bytes[..16].try_into().expect("16 of 32 bytes");
    let passphrase = generate_passphrase(entropy);
    let keys = KeyPair::from_passphrase(&passphrase, crypto);
    (passphrase, keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Balance;
    use std::collections::BTreeSet;

    /// The weights of all delegates at genesis, in the order of their numbers.
    fn weights(active: u32, standby: u32) -> Vec<Balance> {
        let section = NetworkSection { delegates: active, standby, ..NetworkSection::default() };
        let testnet = Testnet::of(SeedTree::new(7), &section, CryptoMode::Real);
        let tree = testnet.tree(Rules::reference()).expect("a generated genesis registers as many as it needs");
        let state = tree.applied(tree.genesis()).state.clone();
        assert_eq!(testnet.config.genesis.block.header.total_amount, TOTAL, "no coin is lost");
        let weight = |delegate: &NamedDelegate| {
            state.delegate_of(delegate.keys.public()).expect("it is registered").vote_balance
        };
        testnet.delegates.iter().map(weight).collect()
    }

    #[test]
    fn delegates_begin_with_equal_weights_whatever_their_number() {
        for active in [1, 3, 7, 13, 51, 53] {
            assert_eq!(BTreeSet::from_iter(weights(active, 0)).len(), 1, "{active} delegates");
        }
        let weights = weights(7, 4);
        assert_eq!(BTreeSet::from_iter(&weights[..7]).len(), 1, "{weights:?}");
        assert_eq!(BTreeSet::from_iter(&weights[7..]).len(), 1, "{weights:?}");
        assert!(weights[0] > weights[7], "who stands by begins below the active ones");
    }
}
