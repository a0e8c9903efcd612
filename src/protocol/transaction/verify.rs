//! The verification of signatures. Source: protocol.md 2.3 to 2.5.

use super::{
    SignedTransaction, Version,
    signed::{SignatureCount, Standing},
};
use crate::protocol::{
    PublicKey,
    crypto::{CryptoMode, ecdsa, schnorr},
};
use rayon::prelude::*;
use std::sync::Arc;

/// The smallest batch: fewer signatures are worth neither a thread of their own nor another halving.
const LEAST_BATCH: usize = 16;
/// The largest batch: more signatures in one gain next to nothing.
const GREATEST_BATCH: usize = 256;

/// The reason why `signatures` cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MultiSignatureCheckError {
    #[error("Invalid multi signature, because duplicate participant found.")]
    Duplicate,
    #[error("signature of participant {index}, allowed are 0 to {last}")]
    Index { index: u8, last: usize },
}

impl SignedTransaction {
    /// Returns true if the transaction is valid by itself: it has a signature of its sender, and its type is in force
    /// where it was read. False for a multisignature wallet's, see [`Self::verify_multi`]. Computed once.
    pub fn verified(&self, crypto: CryptoMode) -> bool {
        match self.standing() {
            Standing::Exempt => true,
            Standing::Gated => false,
            Standing::Judged if !crypto.remembers() => self.verify_signature(crypto),
            Standing::Judged => *self.verified_once().get_or_init(|| self.verify_signature(crypto)),
        }
    }

    /// Returns true if the transaction is in force where it was read; one that is not never counts as verified.
    pub fn is_permitted(&self) -> bool {
        self.standing() != Standing::Gated
    }

    /// Returns true if the transaction has a valid second signature by this key. Computed once for one key.
    pub fn verify_second(&self, key: &PublicKey, crypto: CryptoMode) -> bool {
        let Some(second) = &self.transaction().second_signature else { return false };
        if let Some((known, outcome)) = self.known().second.get()
            && known == key
            && crypto.remembers()
        {
            return *outcome;
        }
        let outcome = self.holds(&self.transaction().hash_for_second_signature(), second, key, crypto);
        // The first result stays.
        let _ = self.known().second.set((*key, outcome));
        outcome
    }

    /// Returns true if at least `min` of `signatures` are valid for the keys they name. Signatures after the last one needed are
    /// not checked. Computed once for one minimum and list of keys.
    pub fn verify_multi(
        &self,
        min: u8,
        keys: &[PublicKey],
        crypto: CryptoMode,
    ) -> Result<bool, MultiSignatureCheckError> {
        if let Some(known) = self.known().multi.get()
            && (known.min, known.keys.as_slice()) == (min, keys)
            && crypto.remembers()
        {
            return known.outcome;
        }
        let outcome = self.count_signatures(min, keys, crypto);
        // The first result stays.
        let _ = self.known().multi.set(SignatureCount { min, keys: keys.to_vec(), outcome });
        outcome
    }

    fn count_signatures(
        &self,
        min: u8,
        keys: &[PublicKey],
        crypto: CryptoMode,
    ) -> Result<bool, MultiSignatureCheckError> {
        let signatures = &self.transaction().signatures;
        let hash = self.transaction().hash_for_signatures();
        let (mut seen, mut valid) = ([false; 256], 0);
        for (position, signature) in signatures.iter().enumerate() {
            let index = usize::from(signature.index);
            if std::mem::replace(&mut seen[index], true) {
                return Err(MultiSignatureCheckError::Duplicate);
            }
            let last = keys.len().saturating_sub(1);
            let key = keys.get(index).ok_or(MultiSignatureCheckError::Index { index: signature.index, last })?;
            valid += usize::from(schnorr::verify(&hash, &signature.signature, key, crypto));
            if valid >= usize::from(min) {
                return Ok(true);
            }
            if signatures.len() - position - 1 + valid < usize::from(min) {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Computes [`Self::verified`] for many transactions, faster than one by one. Later calls return the same as without this.
    pub fn verify_together(transactions: &[Arc<Self>], crypto: CryptoMode) {
        let (open, items): (Vec<_>, Vec<_>) =
            transactions.iter().filter_map(|one| Some((&**one, one.open_item()?))).unzip();
        Self::settle(&open, &items, crypto);
    }

    /// As [`Self::verify_together`], on all cores, and for every kind of signature: afterwards each flag is known.
    /// Used where transactions enter, before one actor handles them one by one.
    pub fn verify_all(transactions: &[Arc<Self>], crypto: CryptoMode) {
        let open: Vec<Arc<Self>> = transactions.iter().filter(|one| one.is_open()).cloned().collect();
        let share = open.len().div_ceil(rayon::current_num_threads()).clamp(LEAST_BATCH, GREATEST_BATCH);
        open.par_chunks(share).for_each(|batch| {
            Self::verify_together(batch, crypto);
            for transaction in batch {
                transaction.verified(crypto);
            }
        });
    }

    /// Sets the flags of a valid batch. Halves an invalid batch until the faulty ones are among few.
    fn settle(open: &[&Self], items: &[schnorr::Item], crypto: CryptoMode) {
        if schnorr::verify_batch(items, crypto) {
            // If another thread has set the flag meanwhile, it has the same value.
            for transaction in open {
                let _ = transaction.verified_once().set(true);
            }
        } else if open.len() >= LEAST_BATCH {
            let middle = open.len() / 2;
            Self::settle(&open[..middle], &items[..middle], crypto);
            Self::settle(&open[middle..], &items[middle..], crypto);
        }
    }

    fn is_open(&self) -> bool {
        self.standing() == Standing::Judged && self.verified_once().get().is_none()
    }

    /// The signature of a transaction whose flag is not known yet and needs a Schnorr verification.
    fn open_item(&self) -> Option<schnorr::Item> {
        let transaction = self.transaction();
        let signature = transaction.signature.as_deref().filter(|_| self.is_open() && transaction.nonce().is_some())?;
        let signature = signature.try_into().ok()?;
        Some(schnorr::Item {
            hash: transaction.hash_for_signature(),
            signature,
            public: *transaction.sender.as_bytes(),
        })
    }

    fn verify_signature(&self, crypto: CryptoMode) -> bool {
        let transaction = self.transaction();
        let Some(signature) = &transaction.signature else { return false };
        self.holds(&transaction.hash_for_signature(), signature, &transaction.sender, crypto)
    }

    /// The rule that tells the schemes apart: in version 2, 64 bytes are Schnorr.
    fn holds(&self, hash: &[u8; 32], signature: &[u8], key: &PublicKey, crypto: CryptoMode) -> bool {
        match self.transaction().version {
            Version::Two(_) if signature.len() == 64 => schnorr::verify(hash, signature, key, crypto),
            _ => ecdsa::verify(hash, signature, key, crypto),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GREATEST_BATCH, SignedTransaction};
    use crate::protocol::{Arktoshi, KeyPair, Nonce, PublicKey, Transaction, crypto::CryptoMode};
    use std::sync::Arc;

    const REAL: CryptoMode = CryptoMode::Real;

    /// An answer for one wallet does not hold for another.
    #[test]
    fn an_answer_that_is_remembered_is_that_of_its_question() {
        let people = ["first", "second", "third"].map(|text| KeyPair::from_passphrase(text, REAL));
        let keys: [PublicKey; 3] = people.each_ref().map(|keys| *keys.public());
        let others = [keys[1], keys[0], keys[2]];
        let transfer = Transaction::transfer(keys[0].address(23), Arktoshi::new(1).unwrap());
        let shared = transfer.clone().sender(keys[0]).multi_sign(0, &people[0]).multi_sign(1, &people[1]).finish();
        let twice = transfer.sign(&people[0]).second_sign(&people[1]);
        for _ in 0..2 {
            assert_eq!(shared.verify_multi(2, &keys, REAL), Ok(true));
            assert_eq!(shared.verify_multi(2, &others, REAL), Ok(false));
            assert_eq!(shared.verify_multi(3, &keys, REAL), Ok(false));
            assert!(twice.verify_second(&keys[1], REAL) && !twice.verify_second(&keys[2], REAL));
        }
        assert_eq!(shared.verify_multi(2, &keys, CryptoMode::EveryNode), Ok(true));
        assert!(twice.verify_second(&keys[1], CryptoMode::EveryNode));
    }

    /// More than one batch, so that other threads than this one are asked, on any number of cores.
    #[test]
    fn many_hold_as_their_keys_sign_and_not_otherwise() {
        const MODES: [CryptoMode; 2] = [CryptoMode::Modelled, REAL];
        for (by, asked) in MODES.into_iter().flat_map(|by| MODES.map(|asked| (by, asked))) {
            let keys = KeyPair::from_passphrase("many", by);
            let transfer = |nonce| {
                let builder = Transaction::transfer(keys.public().address(23), Arktoshi::new(1).unwrap());
                Arc::new(builder.nonce(Nonce(nonce)).sign(&keys))
            };
            let signed: Vec<Arc<SignedTransaction>> = (0..2 * GREATEST_BATCH as u64).map(transfer).collect();
            SignedTransaction::verify_all(&signed, asked);
            assert!(signed.iter().all(|one| one.verified(asked) == (by == asked)), "{by:?}, {asked:?}");
        }
    }
}
