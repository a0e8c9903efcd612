//! Values as bytes and back: what a run is at one instant, written down so that another process goes on with it.
//!
//! ```text
//!   number      seven bits a byte, the lowest first        list    its length, then each of its elements
//!   variant     one byte                                   record  its fields, in the order in which `saved!` names them
//!   shared      0 and the value, or the number of the value that was written before, from 1 on
//!   block       of the tree: its id; any other: all of it
//! ```
//!
//! `saved!` takes every field and every variant apart by name, so a new one that is not written does not compile. Blocks of
//! the tree are not written: whoever reads has a tree that holds them, and knows the keys that forge.

use super::{
    Balance, BlockTree, Link,
    round::{Member, Round as RoundInfo, RoundPosition},
    state::{Notable, RoundEnd},
};
use crate::protocol::{
    Address, Arktoshi, Block, BlockHeader, BlockId, Height, KeyPair, Nonce, PublicKey, Round, SignedTransaction, Slot,
    Timestamp, TransactionId, hashing::IdHash,
};
use indexmap::{IndexMap, IndexSet};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    any::Any,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
    hash::Hash,
    ops::RangeInclusive,
    sync::Arc,
    time::Duration,
};

/// Why bytes are not what was saved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[rustfmt::skip]
pub enum LoadError {
    #[error("it ends too early")]
    End,
    #[error("byte {at}: found {found}, which is no {what}")]
    Wrong { at: usize, what: &'static str, found: String },
    #[error("byte {at}: the block {id} is not there")]
    NoBlock { at: usize, id: BlockId },
    #[error("byte {at}: the key {key} forges on no node")]
    NoKey { at: usize, key: PublicKey },
    #[error("{left} bytes too many")]
    Left { left: usize },
}

/// A value that can be written down and read again.
pub trait Saved: Sized {
    /// Appends it.
    fn save(&self, out: &mut Saver);

    /// Reads it again.
    ///
    /// # Errors
    /// The bytes are none of such a value.
    fn load(from: &mut Loader) -> Result<Self, LoadError>;
}

/// What an `Arc` leads to. Each is written once.
pub trait Shared {
    /// Appends what it says.
    fn save_shared(arc: &Arc<Self>, out: &mut Saver);

    /// Reads it again.
    ///
    /// # Errors
    /// The bytes are none of such a value.
    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError>;
}

/// Writes down.
pub struct Saver {
    bytes: Vec<u8>,
    tree: Arc<BlockTree>,
    /// Where each shared value lies in memory, and its number.
    shared: IndexMap<u64, u64, IdHash>,
    /// Blocks of the tree that are named.
    links: Vec<Arc<Link>>,
}

/// Reads what was written down.
pub struct Loader {
    bytes: Arc<[u8]>,
    at: usize,
    tree: Arc<BlockTree>,
    keys: Arc<[KeyPair]>,
    shared: Vec<Box<dyn Any>>,
}

impl Saver {
    /// Writes down values that share the blocks of a tree.
    pub fn new(tree: &Arc<BlockTree>) -> Self {
        Self { bytes: Vec::new(), tree: tree.clone(), shared: IndexMap::default(), links: Vec::new() }
    }

    /// The blocks of the network.
    pub fn tree(&self) -> &Arc<BlockTree> {
        &self.tree
    }

    /// What was written, and the blocks of the tree that it names.
    pub fn finish(self) -> (Vec<u8>, Vec<Arc<Link>>) {
        (self.bytes, self.links)
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a number.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Appends a list of so many elements.
    pub fn list<'a, T: Saved + 'a>(&mut self, length: usize, all: impl IntoIterator<Item = &'a T>) {
        self.number(length as u64);
        all.into_iter().for_each(|one| one.save(self));
    }

    /// Appends a value that has a text of its own.
    pub fn json<T: Serialize>(&mut self, value: &T) {
        let text = serde_json::to_vec(value).expect("what is read from a text can be written as one");
        self.number(text.len() as u64);
        self.raw(&text);
    }
}

impl Loader {
    /// Reads what was saved, of a network whose nodes forge with these keys.
    pub fn new(bytes: Arc<[u8]>, tree: &Arc<BlockTree>, keys: Arc<[KeyPair]>) -> Self {
        Self { bytes, at: 0, tree: tree.clone(), keys, shared: Vec::new() }
    }

    /// The blocks of the network.
    pub fn tree(&self) -> &Arc<BlockTree> {
        &self.tree
    }

    /// Nothing is left.
    ///
    /// # Errors
    /// Something is.
    pub fn finish(self) -> Result<(), LoadError> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            left => Err(LoadError::Left { left }),
        }
    }

    /// So many bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn raw(&mut self, length: usize) -> Result<Vec<u8>, LoadError> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len()).ok_or(LoadError::End)?;
        let bytes = self.bytes[self.at..end].to_vec();
        self.at = end;
        Ok(bytes)
    }

    /// As many bytes as an array has.
    ///
    /// # Errors
    /// There are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let end = self.at.checked_add(N).filter(|end| *end <= self.bytes.len()).ok_or(LoadError::End)?;
        let bytes = self.bytes[self.at..end].try_into().expect("as many as the array has");
        self.at = end;
        Ok(bytes)
    }

    /// A number.
    ///
    /// # Errors
    /// The bytes are none of a number.
    pub fn number(&mut self) -> Result<u64, LoadError> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = *self.bytes.get(self.at).ok_or(LoadError::End)?;
            self.at += 1;
            if shift > 63 || shift == 63 && byte > 1 {
                return Err(self.wrong("number of 64 bits", byte));
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    /// The length of a list. No element takes less than a byte.
    ///
    /// # Errors
    /// The bytes are none of a length.
    pub fn length(&mut self) -> Result<usize, LoadError> {
        let (length, left) = (self.number()?, self.bytes.len() - self.at);
        usize::try_from(length).ok().filter(|length| *length <= left).ok_or(LoadError::End)
    }

    /// The elements of a list.
    ///
    /// # Errors
    /// The bytes are none of such elements.
    pub fn list<T: Saved, C: FromIterator<T>>(&mut self) -> Result<C, LoadError> {
        let length = self.length()?;
        (0..length).map(|_| T::load(self)).collect()
    }

    /// A value that has a text of its own.
    ///
    /// # Errors
    /// The text is none of such a value.
    pub fn json<T: DeserializeOwned>(&mut self) -> Result<T, LoadError> {
        let length = self.length()?;
        let text = self.raw(length)?;
        serde_json::from_slice(&text).map_err(|why| self.wrong("text of what it should be", why))
    }

    /// The error of something that is not what it should be.
    pub fn wrong(&self, what: &'static str, found: impl ToString) -> LoadError {
        LoadError::Wrong { at: self.at, what, found: found.to_string() }
    }
}

/// Writes and reads a record or an enumeration field by field. What stands behind a semicolon is not written and has this
/// value when it is read.
///
/// ```text
/// saved!(struct Lock { amount, recipient; memo = OnceLock::new() });
/// saved!(enum Purpose { 0 Newcomer, 1 Chunk(place), 2 Asked { by } });
/// ```
macro_rules! saved {
    (struct $name:ident { $($field:ident),* $(,)? $(; $($skipped:ident = $value:expr),* $(,)?)? }) => {
        impl $crate::ledger::saved::Saved for $name {
            fn save(&self, out: &mut $crate::ledger::saved::Saver) {
                let Self { $($field,)* $($($skipped: _,)*)? } = self;
                $($crate::ledger::saved::Saved::save($field, out);)*
            }

            fn load(
                from: &mut $crate::ledger::saved::Loader,
            ) -> Result<Self, $crate::ledger::saved::LoadError> {
                $(let $field = $crate::ledger::saved::Saved::load(from)?;)*
                Ok(Self { $($field,)* $($($skipped: $value,)*)? })
            }
        }
    };
    (struct $name:ident ( $($field:ident),* $(,)? )) => {
        impl $crate::ledger::saved::Saved for $name {
            fn save(&self, out: &mut $crate::ledger::saved::Saver) {
                let Self($($field,)*) = self;
                $($crate::ledger::saved::Saved::save($field, out);)*
            }

            fn load(
                from: &mut $crate::ledger::saved::Loader,
            ) -> Result<Self, $crate::ledger::saved::LoadError> {
                $(let $field = $crate::ledger::saved::Saved::load(from)?;)*
                Ok(Self($($field,)*))
            }
        }
    };
    (enum $name:ident {
        $($number:literal $variant:ident $({ $($field:ident),* $(,)? })? $(( $($part:ident),* $(,)? ))?),* $(,)?
    }) => {
        impl $crate::ledger::saved::Saved for $name {
            fn save(&self, out: &mut $crate::ledger::saved::Saver) {
                match self {
                    $(Self::$variant $({ $($field),* })? $(( $($part),* ))? => {
                        out.raw(&[$number]);
                        $($($crate::ledger::saved::Saved::save($field, out);)*)?
                        $($($crate::ledger::saved::Saved::save($part, out);)*)?
                    })*
                }
            }

            fn load(
                from: &mut $crate::ledger::saved::Loader,
            ) -> Result<Self, $crate::ledger::saved::LoadError> {
                match from.array::<1>()?[0] {
                    $($number => {
                        $($(let $field = $crate::ledger::saved::Saved::load(from)?;)*)?
                        $($(let $part = $crate::ledger::saved::Saved::load(from)?;)*)?
                        Ok(Self::$variant $({ $($field),* })? $(( $($part),* ))?)
                    })*
                    found => Err(from.wrong(stringify!($name), found)),
                }
            }
        }
    };
}
pub(crate) use saved;

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Saved for $number {
            fn save(&self, out: &mut Saver) {
                out.number(*self as u64);
            }

            fn load(from: &mut Loader) -> Result<Self, LoadError> {
                let number = from.number()?;
                Self::try_from(number).map_err(|_| from.wrong(stringify!($number), number))
            }
        }
    )*};
}
numbers!(u16, u32, u64, usize);

macro_rules! plain {
    ($($number:ty),*) => {$(
        impl Saved for $number {
            fn save(&self, out: &mut Saver) {
                out.raw(&self.to_le_bytes());
            }

            fn load(from: &mut Loader) -> Result<Self, LoadError> {
                from.array().map(Self::from_le_bytes)
            }
        }
    )*};
}
plain!(u8, i32, i64, i128, f64);

impl Saved for bool {
    fn save(&self, out: &mut Saver) {
        out.raw(&[u8::from(*self)]);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        match from.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [found] => Err(from.wrong("truth", found)),
        }
    }
}

impl<T: Saved> Saved for Option<T> {
    fn save(&self, out: &mut Saver) {
        self.is_some().save(out);
        if let Some(value) = self {
            value.save(out);
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        Ok(match bool::load(from)? {
            true => Some(T::load(from)?),
            false => None,
        })
    }
}

impl<T: Saved> Saved for Box<T> {
    fn save(&self, out: &mut Saver) {
        (**self).save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        T::load(from).map(Self::new)
    }
}

macro_rules! lists {
    ($($list:ty),*) => {$(
        impl<T: Saved> Saved for $list {
            fn save(&self, out: &mut Saver) {
                out.list(self.len(), self.iter());
            }

            fn load(from: &mut Loader) -> Result<Self, LoadError> {
                from.list()
            }
        }
    )*};
}
lists!(Vec<T>, VecDeque<T>, Box<[T]>);

impl<T: Saved + Ord> Saved for BTreeSet<T> {
    fn save(&self, out: &mut Saver) {
        out.list(self.len(), self);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        from.list()
    }
}

/// Maps, as pairs in their order.
macro_rules! maps {
    ($($map:ty where $key:ident: $($bound:path),+;)*) => {$(
        impl<$key: Saved $(+ $bound)+, V: Saved> Saved for $map {
            fn save(&self, out: &mut Saver) {
                out.number(self.len() as u64);
                for (key, value) in self {
                    key.save(out);
                    value.save(out);
                }
            }

            fn load(from: &mut Loader) -> Result<Self, LoadError> {
                from.list::<(K, V), _>()
            }
        }
    )*};
}

maps! {
    BTreeMap<K, V> where K: Ord;
    IndexMap<K, V, IdHash> where K: Hash, Eq;
    IndexMap<K, V> where K: Hash, Eq;
}

impl<T: Saved + Hash + Eq> Saved for IndexSet<T, IdHash> {
    fn save(&self, out: &mut Saver) {
        out.list(self.len(), self);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        from.list()
    }
}

impl<T: Saved, const N: usize> Saved for [T; N] {
    fn save(&self, out: &mut Saver) {
        self.iter().for_each(|one| one.save(out));
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let all: Vec<T> = (0..N).map(|_| T::load(from)).collect::<Result<_, _>>()?;
        Ok(all.try_into().unwrap_or_else(|_| unreachable!("there are as many as the array has")))
    }
}

macro_rules! tuples {
    ($(($($name:ident $part:ident),*))*) => {$(
        impl<$($name: Saved),*> Saved for ($($name,)*) {
            fn save(&self, out: &mut Saver) {
                let ($($part,)*) = self;
                $($part.save(out);)*
            }

            fn load(from: &mut Loader) -> Result<Self, LoadError> {
                $(let $part = Saved::load(from)?;)*
                Ok(($($part,)*))
            }
        }
    )*};
}
tuples!((A a, B b) (A a, B b, C c) (A a, B b, C c, D d));

impl<T: Saved> Saved for Reverse<T> {
    fn save(&self, out: &mut Saver) {
        self.0.save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        T::load(from).map(Self)
    }
}

impl<T: Saved> Saved for RangeInclusive<T> {
    fn save(&self, out: &mut Saver) {
        self.start().save(out);
        self.end().save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        Ok(T::load(from)?..=T::load(from)?)
    }
}

impl Saved for String {
    fn save(&self, out: &mut Saver) {
        out.number(self.len() as u64);
        out.raw(self.as_bytes());
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let length = from.length()?;
        let bytes = from.raw(length)?;
        Self::from_utf8(bytes).map_err(|why| from.wrong("text", why))
    }
}

impl Saved for Duration {
    fn save(&self, out: &mut Saver) {
        out.number(self.as_secs());
        out.number(self.subsec_nanos().into());
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let (seconds, nanos) = (from.number()?, u32::load(from)?);
        match nanos {
            0..1_000_000_000 => Ok(Self::new(seconds, nanos)),
            _ => Err(from.wrong("part of a second", nanos)),
        }
    }
}

/// Seed, stream, and how many words were drawn.
impl Saved for ChaCha8Rng {
    fn save(&self, out: &mut Saver) {
        out.raw(&self.get_seed());
        out.number(self.get_stream());
        out.raw(&self.get_word_pos().to_le_bytes());
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let mut random = Self::from_seed(from.array()?);
        random.set_stream(from.number()?);
        random.set_word_pos(u128::from_le_bytes(from.array()?));
        Ok(random)
    }
}

impl<T: Shared + ?Sized + 'static> Saved for Arc<T> {
    fn save(&self, out: &mut Saver) {
        // Whoever is written down holds it, so nothing else can come to lie there meanwhile.
        let place = Arc::as_ptr(self).cast::<()>() as u64;
        if let Some(known) = out.shared.get(&place) {
            return out.number(*known);
        }
        out.number(0);
        T::save_shared(self, out);
        let number = out.shared.len() as u64 + 1;
        out.shared.insert(place, number);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let number = from.number()?;
        let Some(index) = number.checked_sub(1) else {
            let value = T::load_shared(from)?;
            from.shared.push(Box::new(value.clone()));
            return Ok(value);
        };
        let known = usize::try_from(index).ok().and_then(|index| from.shared.get(index));
        let known = known.and_then(|known| known.downcast_ref::<Self>()).cloned();
        known.ok_or_else(|| from.wrong("value that was read before", number))
    }
}

/// What is shared, and is written as itself.
macro_rules! shared {
    ($($name:ty),* $(,)?) => {$(
        impl $crate::ledger::saved::Shared for $name {
            fn save_shared(arc: &std::sync::Arc<Self>, out: &mut $crate::ledger::saved::Saver) {
                $crate::ledger::saved::Saved::save(&**arc, out);
            }

            fn load_shared(
                from: &mut $crate::ledger::saved::Loader,
            ) -> Result<std::sync::Arc<Self>, $crate::ledger::saved::LoadError> {
                $crate::ledger::saved::Saved::load(from).map(std::sync::Arc::new)
            }
        }
    )*};
}
pub(crate) use shared;

impl<T: Saved> Shared for [T] {
    fn save_shared(arc: &Arc<Self>, out: &mut Saver) {
        out.list(arc.len(), arc.iter());
    }

    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError> {
        from.list()
    }
}

impl Shared for str {
    fn save_shared(arc: &Arc<Self>, out: &mut Saver) {
        arc.to_string().save(out);
    }

    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError> {
        String::load(from).map(Into::into)
    }
}

/// The one that the reader has.
impl Shared for BlockTree {
    fn save_shared(_: &Arc<Self>, _: &mut Saver) {}

    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError> {
        Ok(from.tree.clone())
    }
}

impl Shared for Link {
    fn save_shared(arc: &Arc<Self>, out: &mut Saver) {
        arc.id().save(out);
        out.links.push(arc.clone());
    }

    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError> {
        let id = BlockId::load(from)?;
        from.tree.link(&id).ok_or(LoadError::NoBlock { at: from.at, id })
    }
}

/// That of the tree by its link, so that it is the same again; any other as it stands, whether it holds or not.
impl Shared for Block {
    fn save_shared(arc: &Arc<Self>, out: &mut Saver) {
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

impl Shared for SignedTransaction {
    fn save_shared(arc: &Arc<Self>, out: &mut Saver) {
        let (bytes, id, standing) = arc.as_kept();
        out.number(bytes.len() as u64);
        out.raw(bytes);
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

/// By its public key: no secret is written down.
impl Saved for KeyPair {
    fn save(&self, out: &mut Saver) {
        self.public().save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let key = PublicKey::load(from)?;
        let known = from.keys.iter().find(|pair| *pair.public() == key);
        known.cloned().ok_or(LoadError::NoKey { at: from.at, key })
    }
}

impl Saved for PublicKey {
    fn save(&self, out: &mut Saver) {
        out.raw(self.as_bytes());
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        from.array().map(Self::from_bytes)
    }
}

impl Saved for Address {
    fn save(&self, out: &mut Saver) {
        out.raw(self.as_bytes());
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        from.array().map(Self::from_bytes)
    }
}

impl Saved for Arktoshi {
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
saved!(struct Round(number));
saved!(struct Timestamp(seconds));
saved!(struct Nonce(number));
saved!(struct BlockHeader {
    version, timestamp, height, previous, number_of_transactions, total_amount, total_fee, reward, payload_length,
    payload_hash, generator, signature,
});
saved!(struct RoundPosition { round, first, delegates });
saved!(struct Member { public_key, address, vote_balance });
saved!(struct RoundInfo { position, members, order });
saved!(struct Balance(amount));
shared!(RoundInfo);

saved!(struct Notable { missing, round_end });
saved!(struct RoundEnd { missed, created });
shared!(Notable);
