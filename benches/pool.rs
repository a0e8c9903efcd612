//! A pool under load: transfers of 2,000 senders, handed in 40 at a time as the API does, with 15,000 pending.
//!
//! Printed first: digests of what is chosen and accepted, so nobody makes it fast by making it wrong, and the rate of
//! verifying alone beside that of verifying and admitting, measured in turns in one process.
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

mod support {
    pub mod chain;
}

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dposlab::{
    actors::{
        ActorId, Effect, Input, Message, NodeId, RequestId, Role, SimTime, TransactionPool, message::AddTransactions,
    },
    ledger::Rules,
    protocol::{
        Arktoshi, Nonce, SignedTransaction, Transaction,
        crypto::{CryptoMode::Real, sha256},
    },
};
use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};
use support::chain::{Bench, Chain};

const SENDERS: usize = 2_000;
/// Pending before the bench begins.
const PENDING: usize = 15_000;
/// Handed in by the bench.
const MORE: usize = 5_000;
/// Of one request.
const BATCH: usize = 40;

fn transfers(bench: &Bench, from: usize, count: usize) -> Vec<Arc<SignedTransaction>> {
    (from..from + count)
        .map(|number| {
            let (sender, nonce) = (number % SENDERS, number / SENDERS + 1);
            let fee = Arktoshi::new(10_000_000 + (number as u64 * 7_919) % 1_000).unwrap();
            let to = bench.address((number * 13) % SENDERS);
            Arc::new(
                Transaction::transfer(to, Arktoshi::coins(1))
                    .fee(fee)
                    .nonce(Nonce(nonce as u64))
                    .sign(bench.keys(sender)),
            )
        })
        .collect()
}

fn fresh(transactions: &[Arc<SignedTransaction>]) -> Vec<Arc<SignedTransaction>> {
    transactions.iter().map(|one| Arc::new(SignedTransaction::new(one.transaction().clone()))).collect()
}

fn step(pool: &mut TransactionPool, chain: &Chain<'_>, message: Message) -> Vec<Effect> {
    let now = SimTime::from_seconds(chain.tip.block().header.timestamp);
    let from = ActorId { node: NodeId(0), role: Role::Peer };
    let mut effects = Vec::new();
    pool.step(now, Input::Message { from, message }, &mut effects);
    effects
}

fn submit(pool: &mut TransactionPool, chain: &Chain<'_>, batch: &[Arc<SignedTransaction>]) -> usize {
    let (tip, transactions) = (chain.tip.clone(), batch.into());
    let add = AddTransactions { tip, transactions, request: Some(RequestId(0)) };
    let effects = step(pool, chain, Message::AddTransactions(add.into()));
    let accepted = effects.iter().map(|effect| match effect {
        Effect::Answer { submission, .. } => submission.accept.len(),
        _ => 0,
    });
    accepted.sum()
}

fn filled<'a>(chain: &'a Chain<'a>, pending: &[Arc<SignedTransaction>]) -> TransactionPool {
    let mut pool = TransactionPool::new(NodeId(0), chain.tree.clone(), chain.tip.clone());
    let accepted: usize = pending.chunks(BATCH).map(|batch| submit(&mut pool, chain, batch)).sum();
    assert_eq!(accepted, pending.len());
    pool
}

fn choose(pool: &mut TransactionPool, chain: &Chain<'_>) -> Vec<Arc<SignedTransaction>> {
    let effects = step(pool, chain, Message::ChooseTransactions { tip: chain.tip.clone() });
    let chosen = effects.into_iter().find_map(|effect| match effect {
        Effect::Send { message: Message::ForgingTransactions(chosen), .. } => Some(chosen.to_vec()),
        _ => None,
    });
    chosen.unwrap()
}

fn digest(transactions: &[Arc<SignedTransaction>]) -> String {
    let ids: Vec<u8> = transactions.iter().flat_map(|transaction| transaction.id().0).collect();
    hex::encode(&sha256(&ids)[..8])
}

/// Verifying alone, verifying and admitting in turn, and both at once, as threads of the API and the actor do.
fn print_ratios(chain: &Chain<'_>, pending: &[Arc<SignedTransaction>], more: &[Arc<SignedTransaction>]) {
    let mut best = [Duration::MAX; 3];
    for _ in 0..5 {
        let load = fresh(more);
        let start = Instant::now();
        load.chunks(10 * BATCH).for_each(|batch| SignedTransaction::verify_all(batch, Real));
        best[0] = best[0].min(start.elapsed());

        let (load, mut pool) = (fresh(more), filled(chain, pending));
        let start = Instant::now();
        for verified in load.chunks(10 * BATCH) {
            SignedTransaction::verify_all(verified, Real);
            verified.chunks(BATCH).for_each(|batch| assert_eq!(submit(&mut pool, chain, batch), batch.len()));
        }
        best[1] = best[1].min(start.elapsed());

        let (load, mut pool) = (fresh(more), filled(chain, pending));
        let start = Instant::now();
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel::<&[Arc<SignedTransaction>]>(4);
            scope.spawn(|| {
                for verified in receiver {
                    verified.chunks(BATCH).for_each(|batch| assert_eq!(submit(&mut pool, chain, batch), batch.len()));
                }
            });
            for verified in load.chunks(10 * BATCH) {
                SignedTransaction::verify_all(verified, Real);
                sender.send(verified).unwrap();
            }
            drop(sender);
        });
        best[2] = best[2].min(start.elapsed());
    }
    let rate = |time: Duration| more.len() as f64 / time.as_secs_f64();
    let names = ["verifying alone", "then admitting", "and admitting at once"];
    for (name, time) in names.iter().zip(best) {
        println!("ratio {name}: {:.3} ({:.0} a second)", rate(time) / rate(best[0]), rate(time));
    }
}

fn pool(criterion: &mut Criterion) {
    let mut rules = Rules::reference();
    rules.pool.max_transactions = PENDING + MORE;
    let bench = Bench::with_rules(51, SENDERS, rules);
    let mut chain = bench.start();
    chain.forge(Vec::new());
    let chain = chain;
    let (pending, more) = (transfers(&bench, 0, PENDING), transfers(&bench, PENDING, MORE));
    for transactions in [&pending, &more] {
        SignedTransaction::verify_all(transactions, Real);
    }
    let bytes: usize = more.iter().map(|transaction| transaction.bytes().len()).sum();
    println!("pool/admission: {MORE} transfers, {bytes} bytes");
    print_ratios(&chain, &pending, &more);

    let mut group = criterion.benchmark_group("pool");
    group.throughput(Throughput::Elements(MORE as u64));
    group.bench_function("admission of verified transfers", |bencher| {
        bencher.iter_batched(
            || filled(&chain, &pending),
            |mut pool| {
                let accepted: usize = more.chunks(BATCH).map(|batch| submit(&mut pool, &chain, batch)).sum();
                assert_eq!(accepted, MORE);
                pool
            },
            BatchSize::LargeInput,
        );
    });
    let mut pool = filled(&chain, &pending);
    let chosen = choose(&mut pool, &chain);
    println!("pool/choice: {} of {PENDING}, digest {}", chosen.len(), digest(&chosen));
    group.throughput(Throughput::Elements(chosen.len() as u64));
    group.bench_function("choice of 150", |bencher| {
        bencher.iter(|| assert_eq!(choose(&mut pool, &chain).len(), chosen.len()));
    });
    assert_eq!(digest(&choose(&mut pool, &chain)), digest(&chosen));
    group.finish();
}

criterion_group!(benches, pool);
criterion_main!(benches);
