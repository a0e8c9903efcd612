//! What a long chain and many wallets cost: memory of a chain of empty blocks with 51 delegates and its full history,
//! and whether a block or a wallet costs more at the end than at the beginning.
//!
//! `cargo bench --bench growth` plays 50,000 blocks and 50,000 wallets; `-- 1000000` a million of each (minutes: each
//! block is signed). Processor time is counted, not the clock on the wall, so a busy machine does not show.

#[path = "support/chain.rs"]
mod chain;

use chain::Bench;
use dposlab::{
    ledger::apply::Terms,
    protocol::{Address, Arktoshi, Height, Nonce, Transaction},
};
use std::{fs, sync::Arc};

/// Blocks, or wallets, over which the cost at either end is taken.
const WINDOW: u32 = 1_000;

/// Memory of the process, in bytes.
fn memory() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4_096
}

/// Time this thread has had of a processor, in nanoseconds.
fn processor_time() -> u64 {
    fs::read_to_string("/proc/thread-self/schedstat").unwrap().split(' ').next().unwrap().parse().unwrap()
}

fn main() {
    let count = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(50_000u32);
    blocks(count.max(3 * WINDOW));
    wallets(count.max(3 * WINDOW));
}

fn blocks(count: u32) {
    let bench = Bench::new(51, 10);
    let before = memory();
    let mut chain = bench.start();
    let (mut early, mut late) = (0, 0);
    for height in 2..=count {
        // Applying alone is timed: making the block, and looking at its signature once, come before.
        let block = chain.make(Vec::new());
        let start = processor_time();
        chain.extend(std::slice::from_ref(&block));
        let spent = processor_time() - start;
        if (WINDOW..2 * WINDOW).contains(&height) {
            early += spent;
        } else if height > count - WINDOW {
            late += spent;
        }
    }
    let used = memory() - before;
    for height in [1, 2, count / 2, count] {
        assert_eq!(chain.tip.ancestor(Height(height)).unwrap().height(), Height(height), "the history is served");
    }
    let old = chain.tip.ancestor(Height(count / 2)).unwrap();
    assert_eq!(chain.tree.applied(&old).state.height(), old.height(), "and so are old states");
    println!("growth/blocks: {count} blocks, digest {}", chain.digest());
    println!("memory: {} MiB, {} bytes a block", used >> 20, used / u64::from(count));
    report("block", early, late);
}

fn wallets(count: u32) {
    let bench = Bench::new(51, 10);
    let mut chain = bench.start();
    chain.forge(Vec::new());
    let tree = chain.tree.clone();
    let mut state = tree.applied(&chain.tip).state.clone();
    let terms: Terms<'_> = tree.terms(chain.tip.height());
    let before = memory();
    let (mut early, mut late, mut kept) = (0, 0, state.clone());
    for number in 1..=count {
        let mut address = [23; 21];
        address[1..5].copy_from_slice(&number.wrapping_mul(2_654_435_761).to_be_bytes());
        let transfer = Transaction::transfer(Address::from_bytes(address), Arktoshi::new(1).unwrap());
        let transfer =
            Arc::new(transfer.fee(Arktoshi::new(1).unwrap()).nonce(Nonce(number.into())).sign(bench.keys(0)));
        let start = processor_time();
        // As each block does: the state before stays, and the next one shares with it.
        if number % 150 == 0 {
            kept = state.clone();
        }
        state.try_apply(&transfer, state.timestamp(), &terms).unwrap();
        let spent = processor_time() - start;
        if (WINDOW..2 * WINDOW).contains(&number) {
            early += spent;
        } else if number > count - WINDOW {
            late += spent;
        }
    }
    assert!(kept.wallets().len() <= state.wallets().len());
    println!("growth/wallets: {} wallets", state.wallets().len());
    println!("memory: {} MiB, {} bytes a wallet", (memory() - before) >> 20, (memory() - before) / u64::from(count));
    report("transfer to a new wallet", early, late);
}

fn report(what: &str, early: u64, late: u64) {
    let each = |sum: u64| sum as f64 / f64::from(WINDOW) / 1_000.0;
    let ratio = late as f64 / early as f64;
    println!("processor time of a {what}: {:.2} µs early, {:.2} µs late, ratio {ratio:.2}", each(early), each(late));
}
