//! Making a valid block.

use super::{Block, BlockHeader, BlockId, bytes::payload_hash};
use crate::protocol::{Arktoshi, Height, KeyPair, Milestones, SignedTransaction, Timestamp, crypto::ecdsa};
use std::sync::Arc;

/// The forger's choices. Everything else of a block follows from them.
#[derive(Clone, Debug)]
pub struct BlockDraft {
    pub timestamp: Timestamp,
    pub height: Height,
    /// `None` for genesis only.
    pub previous: Option<BlockId>,
    pub reward: Arktoshi,
    pub version: u32,
    pub transactions: Vec<Arc<SignedTransaction>>,
}

impl Block {
    /// A signed block of these transactions. The sums saturate; a block with a saturated sum fails verification.
    pub fn forge(draft: BlockDraft, keys: &KeyPair, milestones: &Milestones) -> Self {
        Self::forge_after(draft, Height(0), keys, milestones)
    }

    /// A block like that of [`Block::forge`], whose generator claims the height up to which it has forged before.
    pub fn forge_after(draft: BlockDraft, forged_before: Height, keys: &KeyPair, milestones: &Milestones) -> Self {
        let BlockDraft { timestamp, height, previous, reward, version, transactions } = draft;
        let ids: Vec<_> = transactions.iter().map(|transaction| transaction.id()).collect();
        let sum = |part: fn(&SignedTransaction) -> Arktoshi| {
            Arktoshi::checked_sum(transactions.iter().map(|transaction| part(transaction))).unwrap_or(Arktoshi::MAX)
        };
        let mut header = BlockHeader {
            version,
            timestamp,
            height,
            previous,
            number_of_transactions: ids.len() as u32,
            total_amount: sum(SignedTransaction::amount),
            total_fee: sum(SignedTransaction::fee),
            reward,
            payload_length: 32 * ids.len() as u32,
            payload_hash: payload_hash(&ids),
            generator: *keys.public(),
            forged_before,
            signature: Vec::new(),
        };
        header.signature = ecdsa::sign(&header.hash_for_signature(milestones), keys);
        Self::new(header.id(milestones), header, transactions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Nonce, Transaction, crypto::CryptoMode};

    const REAL: CryptoMode = CryptoMode::Real;

    /// The two worked blocks of protocol.md.
    #[test]
    fn the_contract_examples_are_reproduced() {
        let (forger, milestones) = (KeyPair::from_passphrase("spec forger", REAL), Milestones::testnet());
        let (timestamp, height) = (Timestamp(8), Height(2));
        let previous = Some(BlockId::Numeric(17_184_958_558_311_101_492));
        let (reward, version, transactions) = (Arktoshi::ZERO, 0, vec![]);
        let draft = BlockDraft { timestamp, height, previous, reward, version, transactions };
        let empty = Block::forge(draft.clone(), &forger, &milestones);
        assert_eq!(
            (empty.id_hex().as_str(), empty.id.to_string().as_str()),
            ("36184660ba824eac", "3897942858749071020")
        );

        let recipient = KeyPair::from_passphrase("spec recipient", REAL).public().address(23);
        let transfer = Transaction::transfer(recipient, Arktoshi::new(123_456_789).unwrap());
        let transfer = transfer.nonce(Nonce(7)).expiration(1000).vendor_field("hi");
        let transfer = Arc::new(transfer.sign(&KeyPair::from_passphrase("spec sender", REAL)));
        let (timestamp, height, previous) = (Timestamp(16), Height(3), Some(empty.id));
        let full = BlockDraft { timestamp, height, previous, transactions: vec![transfer], ..draft };
        let full = Block::forge(full, &forger, &milestones);
        assert_eq!(full.id.to_string(), "7663894789997557857");
        assert_eq!(full.size(&milestones), full.to_bytes(&milestones).len());
    }
}
