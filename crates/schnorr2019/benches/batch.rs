//! Batches against one by one: the signatures of a full block are 150 from 150 senders.
//!
//! `one by one` over `batch` of the same number is the gain. Each bench asserts its answer.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use schnorr2019::{Item, sign, verify, verify_batch};
use secp256k1::{Secp256k1, SecretKey};
use sha2::{Digest, Sha256};
use std::hint::black_box;

fn items(count: u8) -> Vec<Item> {
    let curve = Secp256k1::signing_only();
    let item = |number: u8| {
        // Keys that are multiples of one another would meet in a bucket, as those of an attacker do.
        let secret = SecretKey::from_byte_array(Sha256::digest([number]).into()).expect("in range");
        let hash = Sha256::digest([number, 1]).into();
        Item { hash, signature: sign(&hash, &secret), public: secret.public_key(&curve).serialize() }
    };
    (0..count).map(item).collect()
}

fn batches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schnorr2019");
    for count in [8, 16, 40, 150] {
        let items = items(count);
        group.throughput(Throughput::Elements(count.into()));
        group.bench_function(BenchmarkId::new("one by one", count), |bencher| {
            bencher.iter(|| {
                let all = items.iter().all(|item| verify(black_box(&item.hash), &item.signature, &item.public));
                assert!(all);
            })
        });
        group.bench_function(BenchmarkId::new("batch", count), |bencher| {
            bencher.iter(|| assert!(verify_batch(black_box(&items))))
        });
    }
    group.finish();
}

criterion_group!(benches, batches);
criterion_main!(benches);
