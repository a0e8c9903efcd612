//! The invariants of a chain's state. Source: consensus.md 7.1.

use crate::{
    ledger::{Balance, BlockTree, Link, State, Wallet, rules::VoteShare},
    protocol::{Address, Height, PublicKey, transaction::Version},
};
use std::{collections::BTreeMap, sync::Arc};

/// Something that holds after every block.
pub struct Invariant {
    /// Short and unique, as in reports.
    pub name: &'static str,
    /// The section that states it.
    pub source: &'static str,
    check: fn(&Case<'_>) -> Result<(), String>,
}

/// A violation: the invariant that does not hold, and the block after which it does not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} ({origin}) does not hold after block {block} at height {height}: {what}")]
pub struct Violation {
    /// The name of the invariant.
    pub invariant: &'static str,
    /// The source of the invariant.
    pub origin: &'static str,
    /// The id of the block, as in JSON: decimal or hex.
    pub block: String,
    /// The height of that block.
    pub height: Height,
    /// A sentence: the values found and, mostly, the expected ones.
    pub what: String,
}

/// One block and the state after it.
struct Case<'a> {
    tree: &'a BlockTree,
    tip: &'a Arc<Link>,
    state: &'a State,
}

/// All invariants.
pub const INVARIANTS: [Invariant; 8] = [
    Invariant { name: "supply is conserved", source: "consensus.md 7.1 I1", check: supply_is_conserved },
    Invariant { name: "vote weights are their voters' coin", source: "consensus.md 7.1 I2", check: vote_weights },
    Invariant { name: "a nonce counts what was sent", source: "consensus.md 7.1 I3", check: nonces },
    Invariant {
        name: "balances are not negative, locked coin is that of open locks",
        source: "consensus.md 7.1 I4",
        check: balances,
    },
    Invariant { name: "one block a slot, forged by the slot's owner", source: "consensus.md 7.1 I5", check: slots },
    Invariant { name: "ranks are a permutation at a round's start", source: "consensus.md 7.1 I7", check: ranks },
    Invariant { name: "enough delegates have not resigned", source: "consensus.md 7.1 I8", check: enough_delegates },
    Invariant { name: "statistics add up to the chain's", source: "consensus.md 7.1 I11", check: statistics },
];

impl Invariant {
    /// Checks the invariant after a block of a tree.
    ///
    /// # Errors
    /// It does not hold.
    pub fn check(&self, tree: &BlockTree, tip: &Arc<Link>) -> Result<(), Violation> {
        let applied = tree.applied(tip);
        let case = Case { tree, tip, state: &applied.state };
        (self.check)(&case).map_err(|what| Violation {
            invariant: self.name,
            origin: self.source,
            block: tip.id().to_string(),
            height: tip.height(),
            what,
        })
    }
}

/// Checks every invariant after a block of a tree.
///
/// # Errors
/// The first one that does not hold.
pub fn check_all(tree: &BlockTree, tip: &Arc<Link>) -> Result<(), Violation> {
    INVARIANTS.iter().try_for_each(|invariant| invariant.check(tree, tip))
}

fn equal<T: PartialEq + std::fmt::Display>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: found {found}, expected {expected}")) }
}

fn supply_is_conserved(case: &Case<'_>) -> Result<(), String> {
    let all: Balance = case.state.wallets().map(|wallet| wallet.weight()).sum();
    let rewards = case.state.supply() - case.tree.genesis().block().header.total_amount;
    equal("sum of all wallets", all, rewards)
}

fn vote_weights(case: &Case<'_>) -> Result<(), String> {
    let mut weights: BTreeMap<PublicKey, Balance> = BTreeMap::new();
    let rule = case.tree.rules().ledger.votes;
    let parts = if rule.weight == VoteShare::Unit { i128::from(rule.most) } else { 1 };
    for wallet in case.state.wallets() {
        for key in wallet.votes() {
            *weights.entry(key).or_default() += Balance(wallet.weight().0.div_euclid(parts));
        }
    }
    for (wallet, delegate) in case.state.delegates().filter_map(|wallet| Some((wallet, wallet.delegate.as_ref()?))) {
        let expected = wallet.public_key.and_then(|key| weights.get(&key)).copied().unwrap_or_default();
        equal(&format!("weight of {}", delegate.username), delegate.vote_balance, expected)?;
    }
    Ok(())
}

/// Walks the whole chain: costs time in proportion to its height.
fn nonces(case: &Case<'_>) -> Result<(), String> {
    let mut sent: BTreeMap<Address, u64> = BTreeMap::new();
    for link in chain(case.tip) {
        for transaction in &link.block().transactions {
            let count = sent.entry(transaction.sender_address()).or_default();
            *count += 1;
            if let Version::Two(nonce) = transaction.transaction().version {
                equal(&format!("nonce of {}", transaction.id()), nonce.0, *count)?;
            }
        }
    }
    for wallet in case.state.wallets() {
        let expected = sent.get(&wallet.address).copied().unwrap_or_default();
        equal(&format!("nonce of {}", wallet.address), wallet.nonce.0, expected)?;
    }
    Ok(())
}

fn balances(case: &Case<'_>) -> Result<(), String> {
    let genesis: Vec<Address> =
        case.tree.genesis().block().transactions.iter().map(|transaction| transaction.sender_address()).collect();
    let negative = |wallet: &&Arc<Wallet>| wallet.balance.is_negative() && !genesis.contains(&wallet.address);
    if let Some(wallet) = case.state.wallets().find(negative) {
        return Err(format!("{} has {}", wallet.address, wallet.balance));
    }
    for wallet in case.state.wallets() {
        let open = wallet.htlc.iter().flat_map(|htlc| htlc.locks.values());
        let locked: Balance = open.map(|lock| Balance::from(lock.amount)).sum();
        equal(&format!("locked coin of {}", wallet.address), wallet.locked_balance(), locked)?;
    }
    let indexed = case.state.locks().count();
    let open: usize = case.state.wallets().filter_map(|wallet| wallet.htlc.as_ref()).map(|htlc| htlc.locks.len()).sum();
    equal("open locks", indexed, open)
}

fn slots(case: &Case<'_>) -> Result<(), String> {
    let Some(parent) = case.tip.parent() else { return Ok(()) };
    let slots = case.tree.slots();
    let slot = slots.slot(case.tip.block().header.timestamp);
    if slot <= slots.slot(parent.block().header.timestamp) {
        return Err(format!("slot {slot} does not follow its parent's"));
    }
    let (applied, forger) = (case.tree.applied(&parent), case.tip.block().header.generator);
    match applied.state.round().owns(slot, &forger) {
        true => Ok(()),
        false => Err(format!("{forger} forged slot {slot}, which it does not own")),
    }
}

fn ranks(case: &Case<'_>) -> Result<(), String> {
    if !case.tree.schedule().begins(case.state.height().next()) {
        return Ok(());
    }
    let delegates: Vec<_> = case.state.delegates().filter_map(|wallet| wallet.delegate.as_ref()).collect();
    let mut ranks: Vec<u32> =
        delegates.iter().filter(|delegate| !delegate.resigned).filter_map(|delegate| delegate.rank).collect();
    ranks.sort_unstable();
    let wanted: Vec<u32> = (1..=case.state.live_delegates() as u32).collect();
    if ranks != wanted {
        return Err(format!("found {ranks:?}, expected {wanted:?}"));
    }
    match delegates.iter().find(|delegate| delegate.resigned && delegate.rank.is_some()) {
        Some(delegate) => Err(format!("{} has resigned and has a rank", delegate.username)),
        None => Ok(()),
    }
}

fn enough_delegates(case: &Case<'_>) -> Result<(), String> {
    let delegates = case.state.delegates().filter_map(|wallet| wallet.delegate.as_ref());
    let live = delegates.filter(|delegate| !delegate.resigned).count();
    equal("live delegates", case.state.live_delegates(), live)?;
    let needed = case.state.round().members.len();
    if live >= needed { Ok(()) } else { Err(format!("{live} are left, {needed} are needed")) }
}

fn statistics(case: &Case<'_>) -> Result<(), String> {
    let delegates = || case.state.delegates().filter_map(|wallet| wallet.delegate.as_ref());
    let blocks: u32 = delegates().map(|delegate| delegate.produced_blocks).sum();
    equal("blocks produced", blocks, case.state.height().0 - 1)?;
    let gained: Balance = delegates().map(|delegate| delegate.forged_fees + delegate.forged_rewards).sum();
    let headers = chain(case.tip).filter(|link| link.height() > Height::GENESIS);
    let paid: Balance =
        headers.map(|link| Balance::from(link.block().header.reward) + link.block().header.total_fee).sum();
    equal("fees and rewards", gained, paid)
}

/// The blocks of a chain, lowest first.
fn chain(tip: &Arc<Link>) -> impl Iterator<Item = Arc<Link>> {
    let mut links: Vec<Arc<Link>> = std::iter::successors(Some(tip.clone()), |link| link.parent()).collect();
    links.reverse();
    links.into_iter()
}
