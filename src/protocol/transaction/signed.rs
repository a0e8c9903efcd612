//! A transaction together with what is computed from it once.

use super::{
    Asset, Kind, MultiSignatureCheckError, Transaction, TransactionContext, TransactionError, TransactionId, encode,
    schema,
};
use crate::protocol::{Address, Arktoshi, Nonce, PublicKey, crypto::sha256, keys::multisignature_key};
use std::sync::OnceLock;

/// A transaction with its id and the length of its wire bytes. The bytes are encoded on request: a network holds a million
/// transactions, and sends or writes each once. A value that came from bytes or JSON is well-formed. A builder does not check its
/// values (see [`SignedTransaction::check`]). The signatures are not verified.
#[derive(Clone, Debug)]
pub struct SignedTransaction {
    transaction: Transaction,
    id: TransactionId,
    sender_address: Address,
    /// Length of the wire bytes.
    size: u32,
    standing: Standing,
    verified: OnceLock<bool>,
    known: OnceLock<Box<VerificationCache>>,
}

/// Results that few transactions need, but these on every node that sees them. Each is the first one, with its arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct VerificationCache {
    pub second: OnceLock<(PublicKey, bool)>,
    pub multi: OnceLock<SignatureCount>,
    pub registers: OnceLock<Option<PublicKey>>,
}

/// The result of counting `signatures`.
#[derive(Clone, Debug)]
pub(super) struct SignatureCount {
    pub min: u8,
    pub keys: Vec<PublicKey>,
    pub outcome: Result<bool, MultiSignatureCheckError>,
}

/// The effect of the place where a transaction was read on its `verified` flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The signature decides.
    Judged,
    /// The type is not in force yet: never verified.
    Gated,
    /// A listed exception: verified whatever the signature.
    Exempt,
}

/// Compares the content of the transactions, and not whether or when they were verified.
impl PartialEq for SignedTransaction {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.transaction == other.transaction
    }
}

impl Eq for SignedTransaction {}

impl SignedTransaction {
    /// Encodes a value without a check.
    ///
    /// # Panics
    /// If a text is longer than 255 bytes or a list longer than its count can say: no such transaction exists.
    pub fn new(transaction: Transaction) -> Self {
        let address = transaction.sender.address(transaction.network);
        Self::sent_from(transaction, address)
    }

    /// [`SignedTransaction::new`] of a sender whose address on the transaction's network is known.
    pub(super) fn sent_from(transaction: Transaction, sender_address: Address) -> Self {
        let bytes = encode::bytes(&transaction);
        Self::assemble(transaction, sender_address, &bytes)
    }

    /// From a value and the bytes known to be its encoding.
    pub(super) fn from_encoding(transaction: Transaction, bytes: &[u8]) -> Self {
        debug_assert_eq!(encode::bytes(&transaction), bytes, "only what encoding gives is read");
        let address = transaction.sender.address(transaction.network);
        Self::assemble(transaction, address, bytes)
    }

    fn assemble(transaction: Transaction, sender_address: Address, bytes: &[u8]) -> Self {
        let id = match transaction.nonce() {
            Some(_) => TransactionId(sha256(bytes)),
            None => TransactionId(transaction.version_one_hash(true, true)),
        };
        Self {
            id,
            sender_address,
            transaction,
            size: u32::try_from(bytes.len()).expect("lists and texts are short"),
            standing: Standing::Judged,
            verified: OnceLock::new(),
            known: OnceLock::new(),
        }
    }

    pub(super) fn placed(mut self, id: TransactionId, standing: Standing) -> Self {
        self.id = id;
        self.standing = standing;
        self
    }

    /// The parts from which [`SignedTransaction::from_kept`] restores the transaction: bytes, id and standing.
    pub fn as_kept(&self) -> (Vec<u8>, TransactionId, u8) {
        let standing = match self.standing {
            Standing::Judged => 0,
            Standing::Gated => 1,
            Standing::Exempt => 2,
        };
        (self.bytes(), self.id, standing)
    }

    /// Restores a transaction from these parts. It was admitted before, or made wrong on purpose, so no rule is checked. `None`
    /// if the bytes are no transaction.
    pub fn from_kept(bytes: &[u8], id: TransactionId, standing: u8) -> Option<Self> {
        let standing = match standing {
            0 => Standing::Judged,
            1 => Standing::Gated,
            2 => Standing::Exempt,
            _ => return None,
        };
        Some(Self::unchecked(bytes).ok()?.placed(id, standing))
    }

    /// The SHA256 of the wire bytes in version 2, and of the signed bytes with the signatures in version 1. The network's exceptions
    /// can replace it.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// The content, including the signatures.
    pub fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// The value alone, for instance to change and sign it anew.
    pub fn into_transaction(self) -> Transaction {
        self.transaction
    }

    /// The wire bytes, encoded from the value.
    pub fn bytes(&self) -> Vec<u8> {
        encode::bytes(&self.transaction)
    }

    /// Length of the wire bytes.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// The public key of the sender.
    pub fn sender(&self) -> &PublicKey {
        &self.transaction.sender
    }

    /// The address of the sender on the transaction's network, computed once.
    pub fn sender_address(&self) -> Address {
        self.sender_address
    }

    /// The type, which follows from the asset.
    pub fn kind(&self) -> Kind {
        self.transaction.kind()
    }

    /// The effect of the transaction.
    pub fn asset(&self) -> &Asset {
        &self.transaction.asset
    }

    /// The fee in arktoshi. It can be 0 in genesis transactions and in group 2, and is 0 in claims and refunds of locks.
    pub fn fee(&self) -> Arktoshi {
        self.transaction.fee
    }

    /// The nonce; nothing in version 1.
    pub fn nonce(&self) -> Option<Nonce> {
        self.transaction.nonce()
    }

    /// The amount that the transaction itself moves: 0 for types without an amount and for multipayments.
    pub fn amount(&self) -> Arktoshi {
        self.transaction.asset.amount()
    }

    /// Checks the rules of the schema in a context. Transactions from bytes and JSON have passed them when they were read.
    pub fn check(&self, context: &TransactionContext<'_>) -> Result<(), TransactionError> {
        Ok(schema::check(&self.transaction, self.id, context)?)
    }

    pub(super) fn standing(&self) -> Standing {
        self.standing
    }

    pub(super) fn verified_once(&self) -> &OnceLock<bool> {
        &self.verified
    }

    pub(super) fn known(&self) -> &VerificationCache {
        self.known.get_or_init(Box::default)
    }

    /// The key of the multisignature wallet that the transaction registers, computed once. `None` if it registers none, its minimum is 0
    /// or above the number of keys, a key is off the curve, or the keys have no sum.
    pub fn registers(&self) -> Option<PublicKey> {
        let Asset::MultiSignature { min, public_keys } = self.asset() else { return None };
        *self.known().registers.get_or_init(|| multisignature_key(*min, public_keys).ok())
    }
}
