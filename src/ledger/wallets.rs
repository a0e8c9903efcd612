//! The wallets of a state: a persistent map by address, made for many states that differ in few wallets.
//!
//! A trie of four branches: an address, read two bits at a time, is its own path, so the shape depends on the addresses
//! alone and the order is theirs. Changing a wallet copies the nodes on its path, and a copy counts its reference to each
//! child: those counts lie far apart in memory, so the nodes are narrow, and all counts are looked at before the first is
//! changed, which lets the machine fetch them at the same time instead of one after the other.

use super::Wallet;
use crate::protocol::Address;
use std::{array, hint::black_box, slice, sync::Arc};

const BRANCHES: usize = 4;

/// All wallets by address. A clone shares everything.
#[derive(Clone, Debug, Default)]
pub struct Wallets {
    root: Arc<Node>,
    len: usize,
}

#[derive(Debug, Default)]
struct Node {
    children: [Option<Child>; BRANCHES],
}

#[derive(Clone, Debug)]
enum Child {
    Node(Arc<Node>),
    Wallet(Arc<Wallet>),
}

impl Wallets {
    /// The wallet at an address.
    pub fn get(&self, address: &Address) -> Option<&Arc<Wallet>> {
        let mut node = &*self.root;
        for depth in 0.. {
            match node.children[branch(address, depth)].as_ref()? {
                Child::Node(next) => node = next,
                Child::Wallet(wallet) => return Some(wallet).filter(|wallet| wallet.address == *address),
            }
        }
        None
    }

    /// The wallet at an address, to be changed; where there is none, a cold one is put there.
    pub(super) fn get_mut(&mut self, address: Address) -> &mut Wallet {
        let first_seen = self.len as u32;
        let mut node = Arc::make_mut(&mut self.root);
        let mut depth = 0;
        loop {
            let child = &mut node.children[branch(&address, depth)];
            depth += 1;
            // Two wallets in one place go a node deeper, as often as their addresses agree.
            if let Some(Child::Wallet(other)) = child
                && other.address != address
            {
                let mut below = Node::default();
                below.children[branch(&other.address, depth)] = Some(Child::Wallet(other.clone()));
                *child = Some(Child::Node(Arc::new(below)));
            }
            let child = child.get_or_insert_with(|| {
                self.len += 1;
                Child::Wallet(Arc::new(Wallet::cold(address, first_seen)))
            });
            match child {
                Child::Node(next) => node = Arc::make_mut(next),
                Child::Wallet(wallet) => return Arc::make_mut(wallet),
            }
        }
    }

    /// All, ascending by the address's hash, then by network byte.
    pub fn iter(&self) -> Iter<'_> {
        Iter { walk: self.root.walk(), left: self.len }
    }

    /// Those that are not the same in `before`, new ones included, in the order of [`Wallets::iter`]. Wallets of
    /// `before` alone are not among them. What the two share is not looked at.
    pub fn changed_since(&self, before: &Self) -> Vec<&Arc<Wallet>> {
        let mut changed = Vec::new();
        if !Arc::ptr_eq(&self.root, &before.root) {
            self.root.differences(&before.root, &mut changed);
        }
        changed
    }
}

impl Node {
    fn differences<'a>(&'a self, before: &Self, changed: &mut Vec<&'a Arc<Wallet>>) {
        for (child, was) in self.children.iter().zip(&before.children) {
            match (child, was) {
                (None, _) => {}
                (Some(Child::Node(node)), Some(Child::Node(was))) => {
                    if !Arc::ptr_eq(node, was) {
                        node.differences(was, changed);
                    }
                }
                (Some(Child::Wallet(wallet)), Some(Child::Wallet(was))) => {
                    if !Arc::ptr_eq(wallet, was) {
                        changed.push(wallet);
                    }
                }
                (Some(Child::Wallet(wallet)), _) => changed.push(wallet),
                (Some(Child::Node(node)), Some(Child::Wallet(was))) => {
                    changed.extend(node.walk().filter(|wallet| !Arc::ptr_eq(wallet, was)));
                }
                (Some(Child::Node(node)), None) => changed.extend(node.walk()),
            }
        }
    }

    /// All below, ascending.
    fn walk(&self) -> Walk<'_> {
        Walk { path: vec![self.children.iter()] }
    }

    /// Looks at what a change of all children's reference counts will change.
    fn look_at_counts(&self) {
        let counts = self.children.iter().flatten().map(|child| match child {
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

/// Two bits of an address, from the top of its hash; the network byte, which tells hardly any apart, comes last.
fn branch(address: &Address, depth: usize) -> usize {
    let byte = address.as_bytes()[(depth / 4 + 1) % 21];
    usize::from(byte >> (6 - depth % 4 * 2)) % BRANCHES
}

/// Wallets, ascending by address.
struct Walk<'a> {
    /// What is left of each node on the path.
    path: Vec<slice::Iter<'a, Option<Child>>>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = &'a Arc<Wallet>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.path.last_mut()?.next() {
                None => {
                    self.path.pop();
                }
                Some(None) => {}
                Some(Some(Child::Node(node))) => self.path.push(node.children.iter()),
                Some(Some(Child::Wallet(wallet))) => return Some(wallet),
            }
        }
    }
}

/// All wallets, ascending by address.
pub struct Iter<'a> {
    walk: Walk<'a>,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Arc<Wallet>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.saturating_sub(1);
        self.walk.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

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

    type Plain = BTreeMap<([u8; 20], u8), (Address, Balance, u32)>;

    fn credit(wallets: &mut Wallets, plain: &mut Plain, address: Address, amount: u64) {
        let amount = Balance::from(Arktoshi::new(amount).unwrap());
        wallets.get_mut(address).balance += amount;
        let hash: [u8; 20] = address.as_bytes()[1..].try_into().unwrap();
        let first_seen = plain.len() as u32;
        plain.entry((hash, address.network_byte())).or_insert((address, Balance::ZERO, first_seen)).1 += amount;
    }

    proptest! {
        /// What a plain map does, this does; a clone taken before stays as it was; and what changed since is what a
        /// comparison of all says.
        #[test]
        fn is_a_map_whose_clones_do_not_change(
            before in prop::collection::vec((address(), 1..9_u64), 0..40),
            after in prop::collection::vec((address(), 1..9_u64), 0..10),
        ) {
            let (mut wallets, mut plain) = (Wallets::default(), Plain::new());
            for (address, amount) in before {
                credit(&mut wallets, &mut plain, address, amount);
            }
            let (kept, as_it_was) = (wallets.clone(), plain.values().copied().collect::<Vec<_>>());
            for (address, amount) in after {
                credit(&mut wallets, &mut plain, address, amount);
                prop_assert_eq!(wallets.get(&address).map(|wallet| wallet.address), Some(address));
            }
            prop_assert_eq!(contents(&wallets), plain.values().copied().collect::<Vec<_>>());
            prop_assert_eq!(wallets.iter().len(), plain.len());
            prop_assert_eq!(contents(&kept), as_it_was);
            let expected: Vec<_> = wallets.iter().filter(|now| kept.get(&now.address) != Some(now)).collect();
            prop_assert_eq!(wallets.changed_since(&kept), expected);
            prop_assert!(kept.get(&Address::from_bytes([255; 21])).is_none());
        }
    }
}
