//! The treatment of signatures on this thread: real ones, real ones that every node verifies again, or modelled ones.
//!
//! A modelled signature is a digest of the signer's public key and what is signed, so anybody could make it and checking
//! it costs a hash. It has the form of a real one, and everything but signatures and the ids that depend on them stays
//! the same. The mode is the thread's and not an argument, because signing is at the bottom of everything.

use super::sha256_of;
use crate::protocol::{PrivateKey, PublicKey, hashing::IdHash};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};

/// The treatment of signatures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CryptoMode {
    /// Signed, and verified once in the process however many nodes ask.
    #[default]
    Real,
    /// Signed, and verified by every node that asks.
    EveryNode,
    /// Replaced by a cheap digest: for large studies.
    Modelled,
}

thread_local! {
    static MODE: Cell<CryptoMode> = const { Cell::new(CryptoMode::Real) };
    /// The public keys of the private keys that have signed in modelled mode: deriving one costs as much as signing.
    static PUBLIC: RefCell<IndexMap<[u8; 32], [u8; 33], IdHash>> = const { RefCell::new(IndexMap::with_hasher(IdHash::new())) };
}

/// Puts the thread's mode back when it goes.
struct Restore(CryptoMode);

impl Drop for Restore {
    fn drop(&mut self) {
        MODE.set(self.0);
    }
}

impl CryptoMode {
    /// Does something with signatures on this thread treated in this way; afterwards they are as before.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        let _restore = Restore(MODE.replace(self));
        work()
    }

    /// The treatment of signatures on this thread.
    pub fn current() -> Self {
        MODE.get()
    }
}

/// Returns true if the remembered verdict on a signature counts.
pub(in crate::protocol) fn remembers() -> bool {
    CryptoMode::current() != CryptoMode::EveryNode
}

pub(super) fn is_modelled() -> bool {
    CryptoMode::current() == CryptoMode::Modelled
}

/// 32 bytes that stand for a signature, the first from 1 to 127.
pub(super) fn model(hash: &[u8; 32], public: &[u8; 33]) -> [u8; 32] {
    let mut digest = sha256_of(&[b"modelled", public, hash]);
    digest[0] = (digest[0] & 0x7f).max(1);
    digest
}

/// [`model`] by a private key.
pub(super) fn model_by(hash: &[u8; 32], private: &PrivateKey) -> [u8; 32] {
    PUBLIC.with_borrow_mut(|known| {
        let derive = || private.to_secret().public_key(super::curve()).serialize();
        model(hash, known.entry(*private.as_bytes()).or_insert_with(derive))
    })
}

/// Returns true if bytes are the model of a Schnorr signature.
pub(super) fn is_schnorr_model(hash: &[u8; 32], signature: &[u8], public: &PublicKey) -> bool {
    let digest = model(hash, public.as_bytes());
    signature.len() == 64 && signature[..32] == digest && signature[32..] == digest
}
