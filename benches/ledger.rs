//! Applying blocks whose signatures have been looked at: empty ones, as most are, and full ones of 150 transfers among
//! 2,000 wallets, half of which vote. Each bench takes the same blocks onto a fresh tree and prints the digest of the
//! state they end in, so nobody makes it fast by making it wrong.

mod support {
    pub mod chain;
}

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dposlab::protocol::{Arktoshi, Block, Nonce, Transaction};
use std::sync::Arc;
use support::chain::Bench;

/// Empty blocks a round of the bench applies: some twenty rounds.
const EMPTY: u64 = 1_020;
/// Full blocks a round of the bench applies.
const FULL: u64 = 60;
/// Transfers in a full block.
const TRANSFERS: u64 = 150;
/// Wallets that send and receive.
const WALLETS: usize = 2_000;

fn blocks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ledger");
    let bench = Bench::new(51, 10);
    let mut chain = bench.start();
    let empty: Vec<Arc<Block>> = (0..EMPTY).map(|_| chain.forge(Vec::new())).collect();
    let expected = chain.digest();
    println!("ledger/empty: {EMPTY} blocks, {} bytes, digest {expected}", chain.bytes());
    group.throughput(Throughput::Elements(EMPTY));
    group.bench_function("empty blocks", |bencher| {
        bencher.iter_batched(
            || bench.start(),
            |mut chain| {
                chain.extend(&empty);
                chain
            },
            BatchSize::LargeInput,
        );
    });
    assert_eq!(bench.replay(&empty).digest(), expected);

    let bench = Bench::new(51, WALLETS);
    let mut chain = bench.start();
    let mut all = vec![chain.forge(Vec::new())];
    for first in (0..WALLETS / 2).step_by(TRANSFERS as usize) {
        let votes = (first..(first + TRANSFERS as usize).min(WALLETS / 2)).map(|wallet| bench.vote(wallet));
        all.push(chain.forge(votes.collect()));
    }
    let prelude = all.len();
    let mut sent = 0;
    for _ in 0..FULL {
        let transfers = (0..TRANSFERS).map(|_| {
            let from = (sent * 7) as usize % WALLETS;
            let nonce = chain.next_nonce(from);
            sent += 1;
            let to = bench.address((sent * 13) as usize % WALLETS);
            Arc::new(Transaction::transfer(to, Arktoshi::coins(1)).nonce(Nonce(nonce)).sign(bench.keys(from)))
        });
        let transfers = transfers.collect();
        all.push(chain.forge(transfers));
    }
    let expected = chain.digest();
    println!("ledger/transfers: {sent} transfers, {} bytes, digest {expected}", chain.bytes());
    group.throughput(Throughput::Elements(sent));
    group.bench_function("blocks of 150 transfers", |bencher| {
        bencher.iter_batched(
            || bench.replay(&all[..prelude]),
            |mut chain| {
                chain.extend(&all[prelude..]);
                chain
            },
            BatchSize::LargeInput,
        );
    });
    assert_eq!(bench.replay(&all).digest(), expected);
    group.finish();
}

criterion_group!(benches, blocks);
criterion_main!(benches);
