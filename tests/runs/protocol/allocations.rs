//! The number of times that reading a transfer asks for memory, and the memory it holds. Counted on the thread of the test alone.

use super::support::Rules;
use dposlab::protocol::{
    Arktoshi, KeyPair, SignedTransaction, Transaction, crypto::CryptoMode::Real, transaction::Dialect,
};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// Bytes that this thread has asked for and not given back; what another one gives back counts there.
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

fn has(more: i64) {
    BYTES.with(|bytes| bytes.set(bytes.get() + more));
}

/// The bytes that this thread has.
pub fn bytes_now() -> i64 {
    BYTES.with(Cell::get)
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        has(layout.size() as i64);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        has(-(layout.size() as i64));
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations<T>(work: impl FnOnce() -> T) -> usize {
    let before = COUNT.with(Cell::get);
    let made = work();
    let count = COUNT.with(Cell::get) - before;
    drop(made);
    count
}

#[test]
fn a_transfer_is_read_with_a_handful_of_allocations() {
    let (rules, keys) = (Rules::of("testnet"), KeyPair::from_passphrase("allocations", Real));
    let context = rules.at(2, Dialect::Strict);
    let transfer = Transaction::transfer(keys.public().address(23), Arktoshi::coins(1)).sign(&keys);
    let (json, bytes) = (transfer.to_json(), transfer.bytes());
    let from_bytes = allocations(|| SignedTransaction::from_bytes(&bytes, &context).unwrap());
    let from_json = allocations(|| SignedTransaction::from_json(&json, &context).unwrap());
    println!("from bytes {from_bytes}, from json {from_json}");
    // Where assertions are checked, what was decoded is encoded again for one of them.
    let checking = if cfg!(debug_assertions) { allocations(|| transfer.bytes()) } else { 0 };
    // The signature; for JSON buffers to make the bytes in, and what is decoded from hex and base 58.
    assert!(from_bytes <= 1 + checking, "{from_bytes} with {checking}");
    assert!(from_json <= 5 + checking, "{from_json} with {checking}");
}
