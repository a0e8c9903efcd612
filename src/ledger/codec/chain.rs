//! Blocks, transactions, rounds, keys and amounts as bytes.

use super::{LoadError, Loader, Save, SaveShared, Saver, saved, shared};
use crate::{
    ledger::{
        Balance, BlockTree, Link,
        round::{Member, Round, RoundPosition, Turns},
        state::{Notable, RoundEnd},
    },
    protocol::{
        Address, Arktoshi, Block, BlockHeader, BlockId, Height, KeyPair, Nonce, PublicKey, RoundNumber,
        SignedTransaction, Slot, Timestamp, TransactionId,
    },
};
use std::sync::Arc;

/// Saves no bytes. Loading returns the reader's tree.
impl SaveShared for BlockTree {
    fn save_shared(_: &Arc<Self>, _: &mut Saver) {}

    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError> {
        Ok(from.tree.clone())
    }
}

impl SaveShared for Link {
    fn save_shared(arc: &Arc<Self>, out: &mut Saver) {
        arc.id().save(out);
        out.links.push(arc.clone());
    }

    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError> {
        let id = BlockId::load(from)?;
        from.tree.link(&id).ok_or(LoadError::NoBlock { at: from.at, id })
    }
}

/// A block of the tree is saved by its link, so that loading gives the same one. Any other is saved in full, valid or not.
impl SaveShared for Block {
    fn save_shared(arc: &Arc<Self>, out: &mut Saver) {
        if out.ahead.is_some() {
            // Saves the content, not the identity of the copy, nor whether any run accepted it.
            arc.id.save(out);
            arc.header.save(out);
            out.number(arc.transactions.len() as u64);
            return arc.transactions.iter().for_each(|one| one.id().save(out));
        }
        let link = out.tree.link(&arc.id).filter(|link| Arc::ptr_eq(link.block(), arc));
        link.is_some().save(out);
        match link {
            Some(link) => link.save(out),
            None => {
                arc.id.save(out);
                arc.header.save(out);
                arc.transactions.save(out);
            }
        }
    }

    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError> {
        if bool::load(from)? {
            return Ok(Arc::<Link>::load(from)?.block().clone());
        }
        let (id, header) = (BlockId::load(from)?, BlockHeader::load(from)?);
        Ok(Arc::new(Self::new(id, header, Vec::load(from)?)))
    }
}

impl SaveShared for SignedTransaction {
    fn save_shared(arc: &Arc<Self>, out: &mut Saver) {
        let (bytes, id, standing) = arc.as_kept();
        out.number(bytes.len() as u64);
        out.raw(&bytes);
        id.save(out);
        standing.save(out);
    }

    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError> {
        let length = from.length()?;
        let (bytes, id, standing) = (from.raw(length)?, TransactionId::load(from)?, u8::load(from)?);
        let kept = Self::from_kept(&bytes, id, standing);
        kept.map(Arc::new).ok_or_else(|| from.wrong("transaction", id))
    }
}

/// Saves only the public key, never the secret.
impl Save for KeyPair {
    fn save(&self, out: &mut Saver) {
        self.public().save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let key = PublicKey::load(from)?;
        let known = from.keys.iter().find(|pair| *pair.public() == key);
        known.cloned().ok_or(LoadError::NoKey { at: from.at, key })
    }
}

impl Save for PublicKey {
    fn save(&self, out: &mut Saver) {
        out.raw(self.as_bytes());
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        from.array().map(Self::from_bytes)
    }
}

impl Save for Address {
    fn save(&self, out: &mut Saver) {
        out.raw(self.as_bytes());
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        from.array().map(Self::from_bytes)
    }
}

impl Save for Arktoshi {
    fn save(&self, out: &mut Saver) {
        out.number(self.value());
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let value = from.number()?;
        Self::new(value).ok_or_else(|| from.wrong("amount", value))
    }
}

saved!(enum BlockId { 0 Numeric(number), 1 Full(hash) });
saved!(struct TransactionId(hash));
saved!(struct Height(number));
saved!(struct Slot(number));
saved!(struct RoundNumber(number));
saved!(struct Timestamp(seconds));
saved!(struct Nonce(number));
saved!(struct BlockHeader {
    version, timestamp, height, previous, number_of_transactions, total_amount, total_fee, reward, payload_length,
    payload_hash, generator, forged_before, signature,
});
saved!(struct RoundPosition { round, first, delegates, turn });
saved!(struct Member { public_key, address, vote_balance });
saved!(struct Round { position, members, turns });
saved!(enum Turns { 0 Order(order), 1 Lottery(chances) });
saved!(struct Balance(amount));
shared!(Round);

saved!(struct Notable { missing, round_end });
saved!(struct RoundEnd { missed, created });
shared!(Notable);
