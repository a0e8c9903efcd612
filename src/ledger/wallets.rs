//! The wallets of a state: a persistent map by address, made for many states that differ in few wallets.
//!
//! ```text
//!   address ──► number ──► root ──► node ──► ... ──► leaf ──► wallet
//!         Numbers, shared      four branches each, a state's own where it differs
//! ```
//!
//! All states of a network share one table of numbers, and a state is a trie by number. Changing a wallet copies the nodes on its path.
//! Wallets that are made one after the other are neighbours, so a new one costs the same however many there are: its path was copied
//! just before. A copy counts its reference to each child: those counts may lie far apart in memory, so the nodes are narrow, and all
//! counts are read before the first is changed, which lets the machine fetch them at the same time instead of one after the other.

mod numbers;

use super::Wallet;
use crate::protocol::Address;
use numbers::Numbers;
use std::{array, hint::black_box, sync::Arc};

/// Bits of a number that choose a branch.
const BITS: u32 = 2;
const BRANCHES: usize = 1 << BITS;

/// All wallets by address. A clone shares everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wallets {
    numbers: Arc<Numbers>,
    root: Child,
    /// The number of nodes on the path to each wallet, the root included. It is 0 if there is no wallet, or only that of number 0.
    levels: u32,
    len: usize,
}

#[derive(Clone, Debug, Default)]
enum Child {
    #[default]
    Nothing,
    Node(Arc<Node>),
    Wallet(Arc<Wallet>),
}

#[derive(Debug, Default)]
struct Node {
    children: [Child; BRANCHES],
}

impl Wallets {
    /// No wallets, for a state of the same network.
    pub(super) fn none(&self) -> Self {
        Self { numbers: self.numbers.clone(), ..Self::default() }
    }

    /// The wallet at an address.
    pub fn get(&self, address: &Address) -> Option<&Arc<Wallet>> {
        let number = self.numbers.get(address)?;
        if !self.reaches(number) {
            return None;
        }
        let (mut child, mut level) = (&self.root, self.levels);
        loop {
            match child {
                Child::Nothing => return None,
                Child::Wallet(wallet) => return Some(wallet),
                Child::Node(node) => {
                    level -= 1;
                    child = &node.children[branch(number, level)];
                }
            }
        }
    }

    /// The wallet at an address, mutable. Inserts a cold one if there is none.
    pub(super) fn get_mut(&mut self, address: Address) -> &mut Wallet {
        let number = self.numbers.get_or_give(address);
        while !self.reaches(number) {
            let below = std::mem::take(&mut self.root);
            self.root =
                Child::Node(Arc::new(Node { children: [below, Child::Nothing, Child::Nothing, Child::Nothing] }));
            self.levels += 1;
        }
        let mut child = &mut self.root;
        for level in (0..self.levels).rev() {
            if let Child::Nothing = child {
                *child = Child::Node(Arc::default());
            }
            let Child::Node(node) = child else { unreachable!("wallets lie below all levels") };
            child = &mut Arc::make_mut(node).children[branch(number, level)];
        }
        if let Child::Nothing = child {
            *child = Child::Wallet(Arc::new(Wallet::cold(address, self.len as u32)));
            self.len += 1;
        }
        let Child::Wallet(wallet) = child else { unreachable!("no node lies below all levels") };
        Arc::make_mut(wallet)
    }

    /// All, in the order in which the chain first named them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Wallet>> {
        let mut all = Vec::with_capacity(self.len);
        self.root.differences(&Child::Nothing, &mut all);
        in_order(all).into_iter()
    }

    /// The wallets that differ from those in `before`, an earlier state or one of a fork, new ones included, in the order of
    /// [`Wallets::iter`]. Omits wallets that only `before` has, and skips shared branches.
    pub fn changed_since(&self, before: &Self) -> Vec<&Arc<Wallet>> {
        if !Arc::ptr_eq(&self.numbers, &before.numbers) {
            return self.iter().filter(|wallet| before.get(&wallet.address) != Some(wallet)).collect();
        }
        let mut changed = Vec::new();
        let (mut now, mut was) = (&self.root, &before.root);
        // Wallets that one reaches and the other does not lie beside the first branch.
        for _ in self.levels..before.levels {
            was = was.branches().map_or(&Child::Nothing, |[first, ..]| first);
        }
        for _ in before.levels..self.levels {
            let Some([first, others @ ..]) = now.branches() else { break };
            others.iter().for_each(|child| child.differences(&Child::Nothing, &mut changed));
            now = first;
        }
        now.differences(was, &mut changed);
        in_order(changed)
    }

    fn reaches(&self, number: u32) -> bool {
        u64::from(number) >> (BITS * self.levels) == 0
    }
}

impl Child {
    fn branches(&self) -> Option<&[Child; BRANCHES]> {
        match self {
            Child::Node(node) => Some(&node.children),
            _ => None,
        }
    }

    /// Gathers the wallets that are not in the same place in `before`.
    fn differences<'a>(&'a self, before: &Self, changed: &mut Vec<&'a Arc<Wallet>>) {
        match (self, before) {
            (Child::Nothing, _) => {}
            (Child::Wallet(wallet), Child::Wallet(was)) if Arc::ptr_eq(wallet, was) => {}
            (Child::Wallet(wallet), _) => changed.push(wallet),
            (Child::Node(node), Child::Node(was)) if Arc::ptr_eq(node, was) => {}
            (Child::Node(node), _) => {
                let was = before.branches().map(|branches| branches.each_ref());
                let was = was.unwrap_or([&Child::Nothing; BRANCHES]);
                node.children.iter().zip(was).for_each(|(child, was)| child.differences(was, changed));
            }
        }
    }
}

impl Node {
    /// Reads the reference counts of all children, which are about to change.
    fn look_at_counts(&self) {
        let counts = self.children.iter().map(|child| match child {
            Child::Nothing => 0,
            Child::Node(node) => Arc::strong_count(node),
            Child::Wallet(wallet) => Arc::strong_count(wallet),
        });
        black_box(counts.sum::<usize>());
    }
}

impl Clone for Node {
    fn clone(&self) -> Self {
        self.look_at_counts();
        Self { children: array::from_fn(|branch| self.children[branch].clone()) }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.look_at_counts();
    }
}

/// Returns the branch that leads to a number, `level` levels above the wallets.
fn branch(number: u32, level: u32) -> usize {
    (number >> (BITS * level)) as usize % BRANCHES
}

/// Sorts wallets by the order in which the chain first named them. They are nearly sorted already: numbers follow the first chain.
fn in_order(mut wallets: Vec<&Arc<Wallet>>) -> Vec<&Arc<Wallet>> {
    wallets.sort_by_key(|wallet| wallet.first_seen);
    wallets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ledger::Balance, protocol::Arktoshi};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Addresses that agree in many bits, so that paths are long, and return often.
    fn address() -> impl Strategy<Value = Address> {
        (0..3_u8, 0..6_usize, 0..3_u8).prop_map(|(first, place, last)| {
            let mut bytes = [0; 21];
            bytes[[0, 1, 2, 10, 19, 20][place]] = last << 3;
            bytes[1] |= first << 6;
            Address::from_bytes(bytes)
        })
    }

    fn contents(wallets: &Wallets) -> Vec<(Address, Balance, u32)> {
        wallets.iter().map(|wallet| (wallet.address, wallet.balance, wallet.first_seen)).collect()
    }

    type Plain = BTreeMap<Address, (Balance, u32)>;

    fn contents_of_plain(plain: &Plain) -> Vec<(Address, Balance, u32)> {
        let mut all: Vec<_> = plain.iter().map(|(address, (balance, seen))| (*address, *balance, *seen)).collect();
        all.sort_unstable_by_key(|(_, _, first_seen)| *first_seen);
        all
    }

    fn credit(wallets: &mut Wallets, plain: &mut Plain, payments: &[(Address, u64)]) {
        for (address, amount) in payments {
            let amount = Balance::from(Arktoshi::new(*amount).unwrap());
            wallets.get_mut(*address).balance += amount;
            let first_seen = plain.len() as u32;
            plain.entry(*address).or_insert((Balance::ZERO, first_seen)).0 += amount;
        }
    }

    fn payments(most: usize) -> impl Strategy<Value = Vec<(Address, u64)>> {
        prop::collection::vec((address(), 1..9_u64), 0..most)
    }

    proptest! {
        /// Compares this map with a plain one. A clone taken before stays as it was. The differences since then, from a fork
        /// that shares the numbers, and from a network that does not, are those that a comparison of all entries finds.
        #[test]
        fn is_a_map_whose_clones_do_not_change(
            before in payments(40),
            after in payments(10),
            fork in payments(20),
        ) {
            let (mut wallets, mut plain) = (Wallets::default(), Plain::new());
            credit(&mut wallets, &mut plain, &before);
            let (kept, as_it_was) = (wallets.clone(), plain.clone());
            let (mut forked, mut plain_fork) = (wallets.clone(), plain.clone());
            credit(&mut forked, &mut plain_fork, &fork);
            credit(&mut wallets, &mut plain, &after);
            let mut foreign = Wallets::default();
            credit(&mut foreign, &mut Plain::new(), &fork);
            for (one, plain) in [(&wallets, &plain), (&kept, &as_it_was), (&forked, &plain_fork)] {
                prop_assert_eq!(contents(one), contents_of_plain(plain));
                prop_assert_eq!(one.iter().len(), plain.len());
                for (address, _) in before.iter().chain(&after).chain(&fork) {
                    prop_assert_eq!(one.get(address).is_some(), plain.contains_key(address));
                }
                let changed = |other: &Wallets| -> Vec<_> {
                    one.iter().filter(|now| other.get(&now.address) != Some(now)).collect()
                };
                prop_assert_eq!(one.changed_since(&kept), changed(&kept));
                prop_assert_eq!(one.changed_since(&foreign), changed(&foreign));
                // Two forks may change a wallet in the same way independently: only then the list is longer.
                let (one_since, other_since) = (one.changed_since(&forked), one.changed_since(&wallets));
                for (since, other) in [(one_since, &forked), (other_since, &wallets)] {
                    let told = since.iter().filter(|now| other.get(&now.address) != Some(now)).copied();
                    prop_assert!(told.eq(changed(other)));
                    prop_assert!(since.iter().all(|now| !other.get(&now.address).is_some_and(|was| Arc::ptr_eq(was, now))));
                }
            }
            prop_assert!(wallets.get(&Address::from_bytes([255; 21])).is_none());
        }
    }
}
