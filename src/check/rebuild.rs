//! The check that a state is a function of its chain: a tree's states are compared with those of the same chain built anew.
//! It takes time in proportion to the height.

use super::Violation;
use crate::ledger::{BlockTree, Link, State};
use std::sync::Arc;

/// Moving back restores: after its child was applied, and whatever was tried on other forks, a block's state is what it
/// was before. Source: consensus.md 7.1 I9.
const RESTORED: (&str, &str) = ("moving back restores the state", "consensus.md 7.1 I9");
/// A state is that of the chain, not of what the process has been through. Source: consensus.md 7.1 I10.
const REBUILT: (&str, &str) = ("a state is that of its chain built anew", "consensus.md 7.1 I10");

/// Compares the states of a block and of its parent with those of the same chain on a fresh tree.
///
/// # Errors
/// The first in which they differ.
///
/// # Panics
/// If the fresh tree refuses the chain: it was accepted under the same rules.
pub fn check_rebuilt(tree: &BlockTree, tip: &Arc<Link>) -> Result<(), Violation> {
    let fresh = BlockTree::new(tree.config().clone(), tree.rules().clone()).expect("the tree was made of the same");
    let mut links: Vec<Arc<Link>> = std::iter::successors(Some(tip.clone()), |link| link.parent()).collect();
    links.pop();
    let mut anew = fresh.genesis().clone();
    for link in links.iter().rev() {
        if link.id() == tip.id() {
            same(tree, &tip.parent().unwrap_or_else(|| tip.clone()), &fresh, &anew, RESTORED)?;
        }
        anew = fresh.extend(&anew, link.block()).expect("it was accepted under the same rules");
    }
    same(tree, tip, &fresh, &anew, REBUILT)
}

fn same(
    tree: &BlockTree,
    link: &Arc<Link>,
    fresh: &BlockTree,
    anew: &Arc<Link>,
    (invariant, origin): (&'static str, &'static str),
) -> Result<(), Violation> {
    match difference(&tree.applied(link).state, &fresh.applied(anew).state) {
        None => Ok(()),
        Some(what) => Err(Violation { invariant, origin, block: link.id().to_string(), height: link.height(), what }),
    }
}

/// The first thing in which two states differ.
pub(crate) fn difference(one: &State, other: &State) -> Option<String> {
    let wallets = one.wallets().zip(other.wallets()).find(|(one, other)| one != other);
    if let Some((one, other)) = wallets {
        return Some(format!("{one:?} beside {other:?}"));
    }
    let same = [
        ("height", one.height() == other.height() && one.timestamp() == other.timestamp()),
        ("number of wallets", one.wallets().len() == other.wallets().len()),
        ("round", one.round() == other.round()),
        ("live delegates", one.live_delegates() == other.live_delegates()),
        ("usernames", one.delegates().eq(other.delegates())),
        ("locks", one.locks().eq(other.locks())),
        ("businesses", one.businesses().eq(other.businesses())),
        ("hashes", one.ipfs_hashes().eq(other.ipfs_hashes())),
        ("supply", one.supply() == other.supply() && one.transactions() == other.transactions()),
    ];
    same.iter().find(|(_, same)| !same).map(|(what, _)| format!("{what} differs"))
}
