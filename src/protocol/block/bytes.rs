//! Blocks into bytes and back. Source: protocol.md 4.1.

use super::{Block, BlockContext, BlockDecodeError, BlockExcerpt, BlockHeader, BlockId, context};
use crate::protocol::{
    Arktoshi, Height, Milestones, PublicKey, SignedTransaction, Timestamp, TransactionId,
    crypto::{sha256, sha256_of},
};
use std::sync::Arc;

impl BlockHeader {
    /// The header's bytes on the wire, or, without its signature, the bytes that are signed.
    pub fn to_bytes(&self, milestones: &Milestones, with_signature: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(141 + 72);
        out.extend(self.version.to_le_bytes());
        out.extend(self.timestamp.0.to_le_bytes());
        out.extend(self.height.0.to_le_bytes());
        self.put_previous(milestones, &mut out);
        out.extend(self.number_of_transactions.to_le_bytes());
        for amount in [self.total_amount, self.total_fee, self.reward] {
            out.extend(amount.value().to_le_bytes());
        }
        out.extend(self.payload_length.to_le_bytes());
        out.extend(self.payload_hash);
        out.extend(self.generator.as_bytes());
        if with_signature {
            out.extend(&self.signature);
        }
        out
    }

    /// The signed and hashed bytes: those on the wire, and the generator's additional claim, if any.
    fn hashed_bytes(&self, milestones: &Milestones, with_signature: bool) -> Vec<u8> {
        let mut out = self.to_bytes(milestones, with_signature);
        if self.forged_before >= Height::GENESIS {
            out.extend(self.forged_before.0.to_le_bytes());
        }
        out
    }

    /// The milestone decides the format, not the id: the first block after the switch has 32 bytes. An id of
    /// the other format (or none) cannot be written there. The zeros written instead make the signature fail.
    fn put_previous(&self, milestones: &Milestones, out: &mut Vec<u8>) {
        match (full_previous(milestones, self.height), self.previous) {
            (false, Some(BlockId::Numeric(number))) => out.extend(number.to_be_bytes()),
            (true, Some(BlockId::Full(hash))) => out.extend(hash),
            (false, _) => out.extend([0; 8]),
            (true, _) => out.extend([0; 32]),
        }
    }

    /// The header at the start of `bytes`, and its length in bytes.
    pub fn from_bytes(bytes: &[u8], milestones: &Milestones) -> Result<(Self, usize), BlockDecodeError> {
        let mut reader = Reader { bytes, at: 0 };
        let version = reader.u32("version")?;
        let timestamp = Timestamp(reader.u32("timestamp")?);
        let height = Height(reader.u32("height")?);
        if height < Height::GENESIS {
            let (path, allowed) = (".height".to_owned(), "a whole number from 1".to_owned());
            return Err(BlockDecodeError::Schema { height: "0".to_owned(), path, found: "0".to_owned(), allowed });
        }
        let previous = match full_previous(milestones, height) {
            true => BlockId::Full(reader.array("previousBlock")?),
            false => BlockId::Numeric(u64::from_be_bytes(reader.array("previousBlock")?)),
        };
        let nothing = matches!(previous, BlockId::Numeric(0) | BlockId::Full(NO_HASH));
        let header = Self {
            version,
            timestamp,
            height,
            previous: Some(previous).filter(|_| height != Height::GENESIS || !nothing),
            number_of_transactions: reader.u32("numberOfTransactions")?,
            total_amount: reader.amount("totalAmount")?,
            total_fee: reader.amount("totalFee")?,
            reward: reader.amount("reward")?,
            payload_length: reader.u32("payloadLength")?,
            payload_hash: reader.array("payloadHash")?,
            generator: PublicKey::from_bytes(reader.array("generatorPublicKey")?),
            forged_before: Height(0),
            signature: reader.der()?.to_vec(),
        };
        Ok((header, reader.at))
    }

    /// The id this header computes to: from all of it, for genesis from all but the signature.
    pub fn id(&self, milestones: &Milestones) -> BlockId {
        let full = milestones.at(self.height).block.id_full_sha256;
        BlockId::of_hash(sha256(&self.hashed_bytes(milestones, self.height != Height::GENESIS)), full)
    }

    /// The id this header computes to, as exceptions correct it.
    fn corrected_id(&self, context: &BlockContext<'_>) -> BlockId {
        let computed = self.id(context.milestones);
        context.exceptions.outlook_table.get(&computed).copied().unwrap_or(computed)
    }

    /// The digest the signature is over.
    pub fn hash_for_signature(&self, milestones: &Milestones) -> [u8; 32] {
        sha256(&self.hashed_bytes(milestones, false))
    }
}

const NO_HASH: [u8; 32] = [0; 32];

/// Returns true if the previous block's id is 32 bytes in a block of this height.
pub(super) fn full_previous(milestones: &Milestones, height: Height) -> bool {
    context::before(milestones, height).block.id_full_sha256
}

/// SHA256 over the ids of transactions, one after the other.
pub(super) fn payload_hash<'a>(ids: impl IntoIterator<Item = &'a TransactionId>) -> [u8; 32] {
    let ids: Vec<&[u8]> = ids.into_iter().map(|id| &id.0[..]).collect();
    sha256_of(&ids)
}

impl Block {
    /// Header, lengths, transactions.
    pub fn to_bytes(&self, milestones: &Milestones) -> Vec<u8> {
        let mut out = self.header.to_bytes(milestones, true);
        for transaction in &self.transactions {
            out.extend((transaction.size() as u32).to_le_bytes());
        }
        self.transactions.iter().for_each(|transaction| out.extend(transaction.bytes()));
        out
    }

    /// The length of [`Block::to_bytes`], without making the bytes.
    pub fn size(&self, milestones: &Milestones) -> usize {
        let previous = if full_previous(milestones, self.header.height) { 32 } else { 8 };
        let transactions: usize = self.transactions.iter().map(|transaction| 4 + transaction.size()).sum();
        109 + previous + self.header.signature.len() + transactions
    }

    /// The block of exactly these bytes, transactions included.
    ///
    /// # Errors
    /// Names the field and byte at fault, or the transaction and what is wrong with it. Never panics, and allocates
    /// only for what the bytes really hold.
    pub fn from_bytes(bytes: &[u8], context: &BlockContext<'_>) -> Result<Self, BlockDecodeError> {
        let (header, at) = BlockHeader::from_bytes(bytes, context.milestones)?;
        let mut reader = Reader { bytes, at };
        let count = header.number_of_transactions as usize;
        reader.require("transaction lengths", count.saturating_mul(4))?;
        let lengths: Vec<usize> = (0..count)
            .map(|_| Ok(reader.u32("transaction lengths")? as usize))
            .collect::<Result<_, BlockDecodeError>>()?;
        let within = context.transactions_of(header.height);
        let mut transactions = Vec::with_capacity(count);
        for (index, length) in lengths.into_iter().enumerate() {
            let bytes = reader.take("transactions", length)?;
            let transaction = SignedTransaction::from_bytes(bytes, &within);
            let wrong = |source| BlockDecodeError::Transaction { index, source };
            transactions.push(Arc::new(transaction.map_err(wrong)?));
        }
        match bytes.len() - reader.at {
            left @ 1.. if context.dialect != crate::protocol::transaction::Dialect::Reference => {
                Err(BlockDecodeError::Trailing { left })
            }
            _ => Ok(Self::assemble(header, transactions, context)),
        }
    }

    /// The header of the block of these bytes, and those of its transactions that `indexes` name, in that order. Skips an index without
    /// a transaction. Reads only the lengths of the other transactions.
    ///
    /// # Errors
    /// As [`Block::from_bytes`], for what is read.
    pub fn excerpt_from_bytes(
        bytes: &[u8],
        indexes: &[u32],
        context: &BlockContext<'_>,
    ) -> Result<BlockExcerpt, BlockDecodeError> {
        let (header, at) = BlockHeader::from_bytes(bytes, context.milestones)?;
        let id = header.corrected_id(context);
        if context.exceptions.wrong_transaction_order.contains_key(&id) {
            // The indexes follow another order than the bytes.
            return Ok(Self::from_bytes(bytes, context)?.excerpt(indexes));
        }
        let mut reader = Reader { bytes, at };
        let lengths = reader.take("transaction lengths", (header.number_of_transactions as usize).saturating_mul(4))?;
        let mut starts = Vec::with_capacity(lengths.len() / 4 + 1);
        let mut start = reader.at;
        starts.push(start);
        for length in lengths.as_chunks().0 {
            start = start.saturating_add(u32::from_le_bytes(*length) as usize);
            starts.push(start);
        }
        let within = context.transactions_of(header.height);
        let mut transactions = Vec::with_capacity(indexes.len());
        for index in indexes.iter().map(|index| *index as usize) {
            let Some([start, end]) = starts.get(index..index + 2) else { continue };
            let length = end - start;
            let bytes = Reader { bytes, at: (*start).min(bytes.len()) }.take("transactions", length)?;
            let transaction = SignedTransaction::from_bytes(bytes, &within);
            transactions.push(Arc::new(transaction.map_err(|source| BlockDecodeError::Transaction { index, source })?));
        }
        Ok(BlockExcerpt { id, header, transactions })
    }

    /// Makes a block whose id is computed from the header. Exceptions correct the id and the order of the transactions.
    pub fn assemble(
        header: BlockHeader,
        mut transactions: Vec<Arc<SignedTransaction>>,
        context: &BlockContext<'_>,
    ) -> Self {
        let id = header.corrected_id(context);
        if let Some(order) = context.exceptions.wrong_transaction_order.get(&id) {
            let place = |id: TransactionId| order.iter().position(|listed| *listed == id).unwrap_or(order.len());
            transactions.sort_by_key(|transaction| place(transaction.id()));
        }
        Self::new(id, header, transactions)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn u32(&mut self, field: &'static str) -> Result<u32, BlockDecodeError> {
        self.array(field).map(u32::from_le_bytes)
    }

    fn amount(&mut self, field: &'static str) -> Result<Arktoshi, BlockDecodeError> {
        let found = u64::from_le_bytes(self.array(field)?);
        Arktoshi::new(found).ok_or(BlockDecodeError::Amount { field, found })
    }

    /// A signature whose second byte is its length.
    fn der(&mut self) -> Result<&'a [u8], BlockDecodeError> {
        self.require("blockSignature", 2)?;
        self.take("blockSignature", usize::from(self.bytes[self.at + 1]) + 2)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], BlockDecodeError> {
        Ok(self.take(field, N)?.try_into().expect("as many bytes as were asked for"))
    }

    fn take(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], BlockDecodeError> {
        self.require(field, length)?;
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    fn require(&self, field: &'static str, needed: usize) -> Result<(), BlockDecodeError> {
        let available = self.bytes.len() - self.at;
        if needed <= available {
            return Ok(());
        }
        Err(BlockDecodeError::Truncated { field, at: self.at, needed, available })
    }
}
