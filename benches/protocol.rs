//! The protocol's hot paths, as a node meets them: blocks of 150 transfers from 150 wallets.
//!
//! `ecdsa/verify` is the baseline; the other signatures are read as ratios to it in the same run. Every bench first
//! prints a digest of what it computes: a change of speed that changes a digest is no change of speed.
//!
//! On a busy machine the separate figures drift apart, so the ratios are printed too: measured in turns, 150 of each,
//! and the quickest round of each taken.
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dposlab::protocol::{
    Arktoshi, KeyPair, Milestones, Nonce, SignedTransaction, Transaction, TransactionContext,
    crypto::{CryptoMode::Real, ecdsa, schnorr, sha256},
};
use std::{
    collections::BTreeSet,
    hint::black_box,
    time::{Duration, Instant},
};

/// Transactions of a full block.
const FULL: usize = 150;

struct Load {
    keys: Vec<KeyPair>,
    hashes: Vec<[u8; 32]>,
    schnorr: Vec<[u8; 64]>,
    ecdsa: Vec<Vec<u8>>,
}

impl Load {
    fn new() -> Self {
        let keys: Vec<KeyPair> =
            (0..FULL).map(|n| KeyPair::from_passphrase(&format!("bench sender {n}"), Real)).collect();
        let hashes: Vec<[u8; 32]> = (0..FULL).map(|n| sha256(format!("bench message {n}").as_bytes())).collect();
        let pairs = || keys.iter().zip(&hashes);
        let schnorr = pairs().map(|(keys, hash)| schnorr::sign(hash, keys)).collect();
        let ecdsa = pairs().map(|(keys, hash)| ecdsa::sign(hash, keys)).collect();
        Self { keys, hashes, schnorr, ecdsa }
    }
}

fn digest(name: &str, pieces: impl IntoIterator<Item = Vec<u8>>) {
    let all: Vec<u8> = pieces.into_iter().flatten().collect();
    println!("digest {name}: {}", hex::encode(&sha256(&all)[..8]));
}

/// Each work as a multiple of the first.
fn print_ratios<const N: usize>(works: [(&str, &dyn Fn() -> bool); N]) {
    let mut best = [Duration::MAX; N];
    for _ in 0..100 {
        for ((_, work), best) in works.iter().zip(&mut best) {
            let start = Instant::now();
            assert!(work());
            *best = start.elapsed().min(*best);
        }
    }
    for ((name, _), time) in works.iter().zip(best) {
        let ratio = time.as_secs_f64() / best[0].as_secs_f64();
        println!("ratio {name}: {ratio:.3} ({:.2} µs each)", time.as_secs_f64() * 1e6 / FULL as f64);
    }
}

fn signatures(criterion: &mut Criterion) {
    let load = Load::new();
    digest("ecdsa", load.ecdsa.iter().cloned());
    digest("schnorr", load.schnorr.iter().map(|signature| signature.to_vec()));
    let verdicts = (0..FULL).map(|n| {
        let mut broken = load.schnorr[n];
        broken[n % 64] ^= 1;
        let good = schnorr::verify(&load.hashes[n], &load.schnorr[n], load.keys[n].public(), Real);
        let bad = schnorr::verify(&load.hashes[n], &broken, load.keys[n].public(), Real);
        vec![u8::from(good), u8::from(bad)]
    });
    digest("verdicts", verdicts);

    // The library alone with everything parsed: nothing of ours makes the baseline slower than it is.
    let curve = secp256k1::Secp256k1::verification_only();
    let parsed: Vec<_> = (0..FULL)
        .map(|n| {
            let key = secp256k1::PublicKey::from_slice(load.keys[n].public().as_bytes()).unwrap();
            let signature = secp256k1::ecdsa::Signature::from_der(&load.ecdsa[n]).unwrap();
            (secp256k1::Message::from_digest(load.hashes[n]), signature, key)
        })
        .collect();
    let mut group = criterion.benchmark_group("signatures");
    let mut n = 0;
    group.bench_function("libsecp256k1 ecdsa verify, parsed", |bencher| {
        bencher.iter(|| {
            n = (n + 1) % FULL;
            let (message, signature, key) = &parsed[n];
            assert!(curve.verify_ecdsa(*message, black_box(signature), key).is_ok());
        })
    });
    group.bench_function("ecdsa verify", |bencher| {
        bencher.iter(|| {
            n = (n + 1) % FULL;
            assert!(ecdsa::verify(&load.hashes[n], black_box(&load.ecdsa[n]), load.keys[n].public(), Real));
        })
    });
    group.bench_function("schnorr verify", |bencher| {
        bencher.iter(|| {
            n = (n + 1) % FULL;
            assert!(schnorr::verify(&load.hashes[n], black_box(&load.schnorr[n]), load.keys[n].public(), Real));
        })
    });
    let batch: Vec<schnorr::Item> = (0..FULL)
        .map(|n| schnorr::Item {
            hash: load.hashes[n],
            signature: load.schnorr[n],
            public: *load.keys[n].public().as_bytes(),
        })
        .collect();
    let (curve, load) = (&curve, &load);
    print_ratios([
        ("libsecp256k1 ecdsa verify, parsed", &|| {
            parsed.iter().all(|(message, signature, key)| curve.verify_ecdsa(*message, signature, key).is_ok())
        }),
        ("ecdsa verify", &|| {
            (0..FULL).all(|n| ecdsa::verify(&load.hashes[n], &load.ecdsa[n], load.keys[n].public(), Real))
        }),
        ("schnorr verify", &|| {
            (0..FULL).all(|n| schnorr::verify(&load.hashes[n], &load.schnorr[n], load.keys[n].public(), Real))
        }),
        ("schnorr batch of 150", &|| schnorr::verify_batch(black_box(&batch), Real)),
    ]);
    group.throughput(Throughput::Elements(FULL as u64));
    group.bench_function("schnorr batch of 150", |bencher| {
        bencher.iter(|| assert!(schnorr::verify_batch(black_box(&batch), Real)))
    });
    group.finish();
}

fn transactions(criterion: &mut Criterion) {
    let (milestones, genesis) = (Milestones::testnet(), BTreeSet::new());
    let context = TransactionContext::new(23, milestones.at(2.into()), &genesis);
    let recipient = KeyPair::from_passphrase("bench recipient", Real).public().address(23);
    let transfers: Vec<SignedTransaction> = (0..FULL as u64)
        .map(|n| {
            let transfer = Transaction::transfer(recipient, Arktoshi::new(n + 1).unwrap());
            transfer.nonce(Nonce(n + 1)).sign(&KeyPair::from_passphrase(&format!("bench sender {n}"), Real))
        })
        .collect();
    digest("transfers", transfers.iter().map(|transfer| transfer.id().0.to_vec()));
    let texts: Vec<String> = transfers.iter().map(|transfer| transfer.to_json().to_string()).collect();
    let values: Vec<serde_json::Value> = transfers.iter().map(SignedTransaction::to_json).collect();
    let (mut n, mut group) = (0, criterion.benchmark_group("transactions"));
    group.bench_function("decode and id of a transfer", |bencher| {
        bencher.iter(|| {
            n = (n + 1) % FULL;
            SignedTransaction::from_bytes(&black_box(transfers[n].bytes()), &context).unwrap().id()
        })
    });
    group.bench_function("json value to transaction", |bencher| {
        bencher.iter(|| {
            n = (n + 1) % FULL;
            SignedTransaction::from_json(black_box(&values[n]), &context).unwrap().id()
        })
    });
    group.bench_function("json text to transaction", |bencher| {
        bencher.iter(|| {
            n = (n + 1) % FULL;
            let value = serde_json::from_str(black_box(&texts[n])).unwrap();
            SignedTransaction::from_json(&value, &context).unwrap().id()
        })
    });
    group.finish();
}

criterion_group!(benches, signatures, transactions);
criterion_main!(benches);
