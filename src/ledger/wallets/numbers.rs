//! A number for each address that any state of a network names.

use crate::protocol::{Address, hashing::IdHash};
use dashmap::DashMap;
use std::sync::atomic::{AtomicU32, Ordering};

/// Numbers of addresses, in the order in which they were first requested. The number of an address does not depend on a chain: forks and
/// other readers ahead of it share the numbers. With them a state needs no map of its own.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    known: DashMap<Address, u32, IdHash>,
    next: AtomicU32,
}

impl Numbers {
    /// The number of an address, if it has one.
    pub fn get(&self, address: &Address) -> Option<u32> {
        self.known.get(address).map(|number| *number)
    }

    /// The number of an address, given to it now if it has none.
    pub fn get_or_give(&self, address: Address) -> u32 {
        match self.get(&address) {
            Some(number) => number,
            None => *self.known.entry(address).or_insert_with(|| self.next.fetch_add(1, Ordering::Relaxed)),
        }
    }
}
