//! Making transactions: a constructor for each type, in its module of `types`, then common members, then signatures.
//! Source: protocol.md 2.4, 3.5.
//!
//! ```
//! use dposlab::protocol::{Arktoshi, KeyPair, Nonce, Transaction, crypto::CryptoMode::Real};
//!
//! let [sender, recipient] = ["spec sender", "spec recipient"].map(|text| KeyPair::from_passphrase(text, Real));
//! let transfer = Transaction::transfer(recipient.public().address(23), Arktoshi::new(123456789).unwrap())
//!     .nonce(Nonce(7))
//!     .expiration(1000)
//!     .vendor_field("hi")
//!     .sign(&sender);
//! assert_eq!(transfer.id().to_string(), "7531ad9424ddc0976189ab3149a9b00bc215d951db90fefe05978f48424b3998");
//! assert!(transfer.verified(Real));
//! ```
//!
//! A multisignature wallet names itself first, then its participants sign:
//!
//! ```
//! # use dposlab::protocol::{Arktoshi, KeyPair, Nonce, Transaction, crypto::CryptoMode::Real, keys::multisignature_key};
//! let participants = ["ms one", "ms two", "ms three"].map(|text| KeyPair::from_passphrase(text, Real));
//! let keys = participants.clone().map(|keys| *keys.public());
//! let recipient = KeyPair::from_passphrase("spec recipient", Real).public().address(23);
//! let transfer = Transaction::transfer(recipient, Arktoshi::new(1).unwrap())
//!     .sender(multisignature_key(2, &keys).unwrap())
//!     .multi_sign(0, &participants[0])
//!     .multi_sign(2, &participants[2])
//!     .finish();
//! assert_eq!(transfer.id().to_string(), "77097ed0d5c3d918d5d2d4c880fa0a9c83eb79c506f0f7004f7f8d521655358e");
//! assert!(!transfer.verified(Real));
//! assert_eq!(transfer.verify_multi(2, &keys, Real), Ok(true));
//! ```

use super::{Asset, IndexedSignature, SignedTransaction, StaticFees, Transaction, Version};
use crate::protocol::{
    Arktoshi, KeyPair, Nonce, PublicKey, Timestamp,
    crypto::{ecdsa, schnorr},
};

/// A transaction without a sender. Defaults: version 2, nonce 1, the static fee, the network of the recipient or else 23.
#[derive(Clone, Debug)]
pub struct TransactionBuilder {
    network: u8,
    version: Version,
    fee: Option<Arktoshi>,
    vendor_field: Option<String>,
    asset: Asset,
}

/// A transaction with its sender, to which signatures are added. Each covers those made before it, so the order of signing is that
/// of the methods here.
#[derive(Clone, Debug)]
pub struct UnsignedTransaction(Transaction);

/// The address byte of testnet and mainnet.
const DEFAULT_NETWORK: u8 = 23;

impl TransactionBuilder {
    /// Begins a transaction with any asset.
    pub fn new(asset: Asset) -> Self {
        let network = match &asset {
            Asset::MultiPayment { payments } => payments.first().map(|payment| payment.recipient),
            asset => asset.recipient(),
        };
        Self {
            network: network.map_or(DEFAULT_NETWORK, |recipient| recipient.network_byte()),
            version: Version::Two(Nonce(1)),
            fee: None,
            vendor_field: None,
            asset,
        }
    }

    /// The address byte of the network the transaction is for.
    pub fn network(self, network: u8) -> Self {
        Self { network, ..self }
    }

    /// The old version, which has a timestamp instead of a nonce and signs with ECDSA.
    pub fn version_one(self, timestamp: Timestamp) -> Self {
        Self { version: Version::One(timestamp), ..self }
    }

    /// Version 2 with this nonce.
    pub fn nonce(self, nonce: Nonce) -> Self {
        Self { version: Version::Two(nonce), ..self }
    }

    pub fn fee(self, fee: Arktoshi) -> Self {
        Self { fee: Some(fee), ..self }
    }

    /// Sets a text for transfers, multipayments and locks; "" is none. Other types drop it, as they drop an
    /// unknown member of JSON.
    pub fn vendor_field(self, text: impl Into<String>) -> Self {
        let text = Some(text.into()).filter(|text| !text.is_empty() && self.asset.kind().has_vendor_field());
        Self { vendor_field: text, ..self }
    }

    /// Sets the height from which a transfer is rejected, 0 for never. It has no effect on other types.
    pub fn expiration(mut self, height: u32) -> Self {
        if let Asset::Transfer { expiration, .. } = &mut self.asset {
            *expiration = height;
        }
        self
    }

    /// Sets the sender, for signatures other than the sender's own single one.
    pub fn sender(self, sender: PublicKey) -> UnsignedTransaction {
        let fee = self.fee.unwrap_or_else(|| StaticFees::default().of_asset(&self.asset));
        UnsignedTransaction(Transaction {
            network: self.network,
            version: self.version,
            sender,
            fee,
            vendor_field: self.vendor_field,
            asset: self.asset,
            signature: None,
            second_signature: None,
            signatures: Vec::new(),
        })
    }

    /// Sent and signed by these keys: ECDSA in version 1, Schnorr in version 2.
    pub fn sign(self, keys: &KeyPair) -> SignedTransaction {
        self.sender(*keys.public()).sign(keys).finish_for(keys)
    }

    /// Sent and signed by these keys with ECDSA, which version 2 allows too.
    pub fn sign_ecdsa(self, keys: &KeyPair) -> SignedTransaction {
        self.sender(*keys.public()).sign_ecdsa(keys).finish_for(keys)
    }
}

/// Continues or replaces the signatures of a transaction. It keeps those it has.
impl From<Transaction> for UnsignedTransaction {
    fn from(transaction: Transaction) -> Self {
        Self(transaction)
    }
}

impl UnsignedTransaction {
    /// Adds a participant's signature. These come first: `signature` covers them.
    pub fn multi_sign(mut self, index: u8, keys: &KeyPair) -> Self {
        let signature = schnorr::sign(&self.0.hash_for_signatures(), keys);
        self.0.signatures.push(IndexedSignature { index, signature });
        self
    }

    /// Sets `signature`: ECDSA in version 1, Schnorr in version 2.
    pub fn sign(mut self, keys: &KeyPair) -> Self {
        self.0.signature = Some(sign(&self.0, &self.0.hash_for_signature(), keys));
        self
    }

    /// Sets `signature` with ECDSA.
    pub fn sign_ecdsa(mut self, keys: &KeyPair) -> Self {
        self.0.signature = Some(ecdsa::sign(&self.0.hash_for_signature(), keys));
        self
    }

    /// Sets the second signature, in the scheme of the first: a mixed pair cannot be read.
    pub fn second_sign(mut self, keys: &KeyPair) -> Self {
        let hash = self.0.hash_for_second_signature();
        self.0.second_signature = Some(match &self.0.signature {
            Some(first) if first.len() != 64 => ecdsa::sign(&hash, keys),
            _ => sign(&self.0, &hash, keys),
        });
        self
    }

    /// As [`UnsignedTransaction::finish`], with the cached address of these keys as the sender's.
    fn finish_for(self, keys: &KeyPair) -> SignedTransaction {
        let address = keys.address(self.0.network);
        SignedTransaction::sent_from(self.0, address)
    }

    /// The transaction with its bytes and id.
    pub fn finish(self) -> SignedTransaction {
        SignedTransaction::new(self.0)
    }
}

impl SignedTransaction {
    /// The same with a second signature.
    pub fn second_sign(self, keys: &KeyPair) -> Self {
        UnsignedTransaction(self.into_transaction()).second_sign(keys).finish()
    }

    /// Adds a participant's signature to a transaction that has no other yet, such as one passed around.
    pub fn multi_sign(self, index: u8, keys: &KeyPair) -> Self {
        UnsignedTransaction(self.into_transaction()).multi_sign(index, keys).finish()
    }
}

fn sign(transaction: &Transaction, hash: &[u8; 32], keys: &KeyPair) -> Vec<u8> {
    match transaction.version {
        Version::One(_) => ecdsa::sign(hash, keys),
        Version::Two(_) => schnorr::sign(hash, keys).to_vec(),
    }
}
