//! The state that judges a transaction.

use crate::{
    ledger::{
        State, Wallet,
        wallet::{DelegateAttributes, Lock, MultiSignature},
    },
    protocol::{Address, Height, PublicKey, SignedTransaction, Timestamp, TransactionId, crypto::CryptoMode},
};

/// The state that judges a transaction: the state after a block, or a forger's [`super::super::Scratch`] on top of one.
pub trait Look {
    /// Height of the last block.
    fn height(&self) -> Height;
    /// Timestamp of the last block.
    fn timestamp(&self) -> Timestamp;
    /// First byte of this network's addresses.
    fn network_byte(&self) -> u8;
    /// A wallet the chain has named.
    fn wallet(&self, address: &Address) -> Option<&Wallet>;
    /// Returns true if a username is taken, even by a delegate that has resigned.
    fn has_username(&self, username: &str) -> bool;
    /// Returns true if a multihash is registered.
    fn has_ipfs(&self, multihash: &[u8]) -> bool;
    /// An open lock.
    fn lock(&self, id: &TransactionId) -> Option<&Lock>;
    /// Registered delegates that have not resigned.
    fn live_delegates(&self) -> usize;

    /// The delegate of a key, resigned or not.
    fn delegate_of(&self, key: &PublicKey) -> Option<&DelegateAttributes> {
        self.wallet(&key.address(self.network_byte()))?.delegate.as_deref()
    }

    /// Returns true if the transaction carries the signatures that its sender, a multisignature wallet, asks for.
    fn vouches_for(&self, transaction: &SignedTransaction, crypto: CryptoMode) -> bool {
        let owners = self.wallet(&transaction.sender_address()).and_then(|wallet| wallet.multi_signature.as_ref());
        let signed_by = |owners: &MultiSignature| transaction.verify_multi(owners.min, &owners.public_keys, crypto);
        owners.is_some_and(|owners| matches!(signed_by(owners), Ok(true)))
    }
}

impl Look for State {
    fn height(&self) -> Height {
        self.height()
    }

    fn timestamp(&self) -> Timestamp {
        self.timestamp()
    }

    fn network_byte(&self) -> u8 {
        self.network_byte()
    }

    fn wallet(&self, address: &Address) -> Option<&Wallet> {
        self.wallet(address).map(|wallet| &**wallet)
    }

    fn has_username(&self, username: &str) -> bool {
        self.address_of(username).is_some()
    }

    fn has_ipfs(&self, multihash: &[u8]) -> bool {
        self.has_ipfs(multihash)
    }

    fn lock(&self, id: &TransactionId) -> Option<&Lock> {
        self.lock(id)
    }

    fn live_delegates(&self) -> usize {
        self.live_delegates()
    }
}
