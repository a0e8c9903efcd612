//! A network generated from a seed: real keys, a signed genesis block, funded accounts. Source: protocol.md 6.

use super::{
    agents::{Agents, Voter},
    script::DerivedKeys,
    section::{Change, NetworkSection},
    vote_weights::VoteWeights,
};
use crate::{
    ledger::{BlockRejected, BlockTree, Rules},
    protocol::{
        Address, Arktoshi, Height, KeyPair, Milestones, NetworkConfig, SignedTransaction, TransactionContext,
        crypto::CryptoMode,
        genesis::GenesisPlan,
        keys::generate_passphrase,
        network::{Exceptions, Network},
        transaction::{Dialect, TransactionError},
    },
    sim::SeedTree,
};
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc};

/// The total supply of a generated network, which is that of the reference's testnet.
const TOTAL: Arktoshi = Arktoshi::coins(125_000_000);
/// The number of funded accounts of a generated network.
pub const ACCOUNTS_LIMIT: u32 = 10;
/// The vote weight that an active delegate of a generated network has more than a standby delegate.
const LEAD: Arktoshi = Arktoshi::coins(1);
/// The balance with which each account begins.
const ACCOUNT_BALANCE: Arktoshi = Arktoshi::coins(1_000_000);
/// The largest number of delegates of a generated network.
pub const DELEGATES_LIMIT: u32 = 1_000;

/// A generated network: parameters of the reference's `testnet`, so that an SDK with that preset works unchanged, and
/// keys and a genesis block of its own.
#[derive(Clone)]
pub struct Testnet {
    /// The configuration, with the genesis block.
    pub config: Arc<NetworkConfig>,
    /// `genesis_1`, `genesis_2`, … in this order.
    pub delegates: Vec<NamedDelegate>,
    /// The funded accounts: ten in a generated network, none in a loaded one.
    pub accounts: Vec<Account>,
    /// The voters of each group of agents.
    pub voters: Vec<Arc<[Voter]>>,
    /// Keys of wallets that scripts name.
    pub(super) others: Arc<DerivedKeys>,
}

/// A delegate with its keys.
#[derive(Clone)]
pub struct NamedDelegate {
    /// The username in the genesis block.
    pub username: String,
    /// The passphrase that the keys come from.
    pub passphrase: String,
    /// The keys that the delegate forges with.
    pub keys: KeyPair,
}

/// A funded account.
#[derive(Clone)]
pub struct Account {
    /// The passphrase that the keys come from.
    pub passphrase: String,
    /// The keys that the account signs with.
    pub keys: KeyPair,
    /// The address of these keys on the network.
    pub address: Address,
    /// The balance at genesis.
    pub balance: Arktoshi,
}

/// All parts of a scenario that decide the keys and the genesis block of its network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Origin<'a> {
    delegates: u32,
    standby: u32,
    block_time_s: u32,
    reward: Option<u64>,
    vendor_field_bytes: Option<u32>,
    milestones: &'a [Change],
    vote_weights: &'a VoteWeights,
    agents: &'a [Agents],
    crypto: CryptoMode,
}

impl<'a> Origin<'a> {
    /// The parts of a network section, with the voters of `agents` and the kind of signatures.
    pub fn of(section: &'a NetworkSection, crypto: CryptoMode, agents: &'a [Agents]) -> Self {
        let &NetworkSection { delegates, standby, block_time_s, reward, vendor_field_bytes, .. } = section;
        let NetworkSection { milestones, vote_weights, .. } = section;
        Self { delegates, standby, block_time_s, reward, vendor_field_bytes, milestones, vote_weights, agents, crypto }
    }
}

/// The part of a generated network that decides whether bytes are a transaction. It needs no keys.
pub(super) struct Decoder {
    network: u8,
    milestones: Milestones,
}

impl Decoder {
    /// The decoder of a network whose section was checked.
    pub fn of(origin: Origin<'_>) -> Self {
        Self { network: Network::testnet().pub_key_hash, milestones: milestones(origin) }
    }

    /// Checks that bytes decode under one of the milestones.
    ///
    /// # Errors
    /// They do not: the reason under the last milestone.
    pub fn check(&self, bytes: &[u8]) -> Result<(), TransactionError> {
        let (genesis_ids, exceptions, dialect) = (BTreeSet::new(), Exceptions::none(), Dialect::Strict);
        let decoded = |milestone| {
            let network = self.network;
            let context = TransactionContext { network, milestone, genesis_ids: &genesis_ids, exceptions, dialect };
            SignedTransaction::from_bytes(bytes, &context).map(drop)
        };
        let mut last = None;
        for milestone in self.milestones.all() {
            match decoded(milestone) {
                Ok(()) => return Ok(()),
                Err(why) => last = Some(why),
            }
        }
        Err(last.expect("there is a first milestone"))
    }
}

impl Testnet {
    /// The network of a seed, with 1 to 1,000 delegates.
    pub fn generate(seeds: SeedTree, delegates: u32, crypto: CryptoMode) -> Self {
        Self::of(seeds, Origin::of(&NetworkSection { delegates, ..NetworkSection::default() }, crypto, &[]))
    }

    /// The network that a scenario describes, from a seed: active delegates, standby delegates after them in name and rank, the
    /// reward of a block, and changes by height. The genesis block pays the stakes of the voters of `agents`.
    pub fn of(seeds: SeedTree, origin: Origin<'_>) -> Self {
        let Origin { delegates: active, standby, crypto, agents, vote_weights, .. } = origin;
        let network = Network::testnet();
        let network_byte = network.pub_key_hash;
        let milestones = milestones(origin);
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
        let voters = Voter::of(agents, seeds, crypto, network_byte);
        let (_, premine) = secret(seeds, "keys/premine", crypto);
        let leaders = if standby > 0 && vote_weights.is_equal() { active as usize } else { 0 };
        let address = |delegate: &NamedDelegate| delegate.keys.public().address(network_byte);
        let lead = delegates.iter().take(leaders).map(|delegate| (address(delegate), LEAD));
        let mut funded: Vec<(Address, Arktoshi)> =
            accounts.iter().map(|account| (account.address, account.balance)).chain(lead).collect();
        let stakes = voters.iter().flat_map(|group| group.iter()).map(|voter| (voter.address, voter.stake));
        funded.extend(stakes.filter(|(_, stake)| *stake > Arktoshi::ZERO));
        let spare = left_of(&funded);
        let kept = match vote_weights.divide(delegates.len(), spare.value()) {
            // The premine wallet pays itself the remainder of the division: a delegate that got it would always rank first.
            None => part(spare.value() % delegates.len() as u64),
            Some(weights) => {
                let weighed = delegates.iter().map(address).zip(weights.into_iter().map(part));
                funded.extend(weighed.filter(|(_, weight)| *weight > Arktoshi::ZERO));
                left_of(&funded)
            }
        };
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
        Self { config, delegates, accounts, voters, others: Arc::new(DerivedKeys::new(crypto)) }
    }

    /// A loaded network, of which only these delegates' keys are known.
    pub fn loaded(config: Arc<NetworkConfig>, delegates: Vec<NamedDelegate>) -> Self {
        let others = Arc::new(DerivedKeys::new(config.crypto));
        Self { config, delegates, accounts: Vec::new(), voters: Vec::new(), others }
    }

    /// The block tree of this network under these rules.
    ///
    /// # Errors
    /// None for a generated network: its genesis registers as many delegates as its first milestone wants.
    pub fn tree(&self, rules: Rules) -> Result<Arc<BlockTree>, BlockRejected> {
        BlockTree::new(self.config.clone(), Arc::new(rules)).map(Arc::new)
    }
}

/// The reference's rules, fitted to `nodes` nodes. If these are too few for the reference's minimum network reach, a node must reach
/// all others. A lone node forges as in the reference's test environment.
pub fn rules_for(nodes: usize) -> Rules {
    let reference = Rules::reference();
    let others = u32::try_from(nodes.saturating_sub(1)).unwrap_or(u32::MAX);
    let reach = reference.minimum_network_reach.map(|reach| reach.min(others)).filter(|reach| *reach > 0);
    Rules { minimum_network_reach: reach, ..reference }
}

/// The coins that delegates can have, in arktoshi: all but those of the accounts and of the voters of `agents`.
pub(super) fn spare(agents: &[Agents]) -> u64 {
    let accounts = ACCOUNT_BALANCE.value() * u64::from(ACCOUNTS_LIMIT);
    let stakes: u64 = agents.iter().map(|group| Arktoshi::coins(group.stake.into()).value()).sum();
    TOTAL.value() - accounts - stakes
}

/// The coins that are left after these wallets are funded.
fn left_of(funded: &[(Address, Arktoshi)]) -> Arktoshi {
    let paid: u64 = funded.iter().map(|(_, amount)| amount.value()).sum();
    part(TOTAL.value() - paid)
}

fn part(value: u64) -> Arktoshi {
    Arktoshi::new(value).expect("a part of the total, which is an amount")
}

/// Returns the milestones of the preset, with these values in each, and with further milestones for the changes.
fn milestones(origin: Origin<'_>) -> Milestones {
    let Origin { delegates, block_time_s, reward, vendor_field_bytes, milestones: changes, .. } = origin;
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
        if let Some(bytes) = vendor_field_bytes {
            milestone["vendorFieldLength"] = json!(bytes);
        }
        // Genesis has no reward.
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
        let testnet = Testnet::of(SeedTree::new(7), Origin::of(&section, CryptoMode::Real, &[]));
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
