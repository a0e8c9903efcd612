//! The cost of a long chain and many wallets: memory of a chain of empty blocks with 51 delegates and its full history,
//! and whether a block or a wallet costs more at the end than at the beginning. What no map can help, that memory
//! answers later the more of it is in use, is measured beside: the same wallets in a plain map that changes in place.
//!
//! `cargo bench --bench growth` plays 50,000 blocks and 50,000 wallets; `-- 1000000` a million of each (minutes: each
//! block is signed). Of each time the median is taken, so what else the machine does hardly shows.

#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

mod support {
    pub mod chain;
}

use dposlab::{
    ledger::{Wallet, apply::Terms},
    protocol::{Address, Arktoshi, Height, Nonce, Transaction},
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{
    collections::BTreeMap,
    fs,
    sync::Arc,
    time::{Duration, Instant},
};
use support::chain::Bench;

/// Blocks, or wallets, over which the cost at either end is taken.
const WINDOW: u32 = 10_000;
/// The first of them are left out: the caches are still empty.
const FIRST: u32 = 1_000;

/// Memory of the process, in bytes.
fn memory() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}

/// The durations of the first and of the last.
#[derive(Default)]
struct Times {
    early: Vec<Duration>,
    late: Vec<Duration>,
}

impl Times {
    fn add(&mut self, number: u32, count: u32, spent: Duration) {
        if (FIRST..FIRST + WINDOW).contains(&number) {
            self.early.push(spent);
        } else if number > count - WINDOW {
            self.late.push(spent);
        }
    }

    fn report(mut self, what: &str) {
        let [early, late] = [&mut self.early, &mut self.late].map(|times| {
            let middle = times.len() / 2;
            times.select_nth_unstable(middle).1.as_nanos() as f64 / 1_000.0
        });
        println!("a {what}: {early:.2} µs early, {late:.2} µs late, ratio {:.2}", late / early);
    }
}

fn main() {
    let count = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(50_000u32);
    blocks(count.max(3 * WINDOW));
    wallets(count.max(3 * WINDOW));
    plain(count.max(3 * WINDOW));
}

fn blocks(count: u32) {
    let bench = Bench::new(51, 10);
    let before = memory();
    let mut chain = bench.start();
    let mut times = Times::default();
    for height in 2..=count {
        // Applying alone is timed: making the block, and looking at its signature once, come before.
        let block = chain.make(Vec::new());
        let start = Instant::now();
        chain.extend(std::slice::from_ref(&block));
        times.add(height, count, start.elapsed());
    }
    let used = memory() - before;
    for height in [1, 2, count / 2, count] {
        assert_eq!(chain.tip.ancestor(Height(height)).unwrap().height(), Height(height), "the history is served");
    }
    let old = chain.tip.ancestor(Height(count / 2)).unwrap();
    assert_eq!(chain.tree.applied(&old).state.height(), old.height(), "and so are old states");
    println!("growth/blocks: {count} blocks, digest {}", chain.digest());
    println!("memory: {} MiB, {} bytes a block", used >> 20, used / u64::from(count));
    times.report("block");
}

/// Blocks of 150 transfers, on one state after the other: three of four to an address not named before, the fourth to
/// any of those that were.
fn wallets(count: u32) {
    let bench = Bench::new(51, 10);
    let mut chain = bench.start();
    chain.forge(Vec::new());
    let tree = chain.tree.clone();
    let mut state = tree.applied(&chain.tip).state.clone();
    let terms: Terms<'_> = tree.terms(chain.tip.height());
    let (mut new, mut old, mut kept) = (Times::default(), Times::default(), state.clone());
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut named, mut nonce) = (vec![bench.address(0)], Nonce(0));
    while named.len() < count as usize {
        let mut transfer = |to| {
            nonce = nonce.next();
            let transfer = Transaction::transfer(to, Arktoshi::new(1).unwrap()).fee(Arktoshi::new(1).unwrap());
            Arc::new(transfer.nonce(nonce).sign(bench.keys(0)))
        };
        let before = named.len();
        let transfers: Vec<_> = (0..150)
            .map(|place| {
                let is_old = place % 4 == 3;
                let to = if is_old { named[random.random_range(0..before)] } else { address(&mut random) };
                named.extend((!is_old).then_some(to));
                (named.len() as u32, is_old, transfer(to))
            })
            .collect();
        // As each block does: the state before stays, and the next one shares with it.
        kept = state.clone();
        for (number, is_old, transfer) in &transfers {
            let start = Instant::now();
            state.try_apply(transfer, state.timestamp(), &terms).unwrap();
            let times = if *is_old { &mut old } else { &mut new };
            times.add(*number, count, start.elapsed());
        }
    }
    assert!(kept.wallets().len() <= state.wallets().len());
    println!("growth/wallets: {} wallets", state.wallets().len());
    new.report("transfer to a new wallet");
    old.report("transfer to one of all wallets");
}

fn plain(count: u32) {
    let mut addresses = ChaCha8Rng::seed_from_u64(1);
    let (mut times, mut plain) = (Times::default(), BTreeMap::new());
    for number in 1..=count {
        let address = address(&mut addresses);
        let start = Instant::now();
        let wallet = plain.entry(address).or_insert_with_key(|to| Box::new(Wallet::cold(*to, 0)));
        wallet.balance += Arktoshi::new(1).unwrap();
        times.add(number, count, start.elapsed());
    }
    times.report("new wallet in a plain map");
}

fn address(random: &mut ChaCha8Rng) -> Address {
    let mut bytes: [u8; 21] = random.random();
    bytes[0] = 23;
    Address::from_bytes(bytes)
}
