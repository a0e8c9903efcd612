//! Serialization of a run: its state at one instant as bytes, from which another process continues the run.
//!
//! ```text
//!   number      seven bits a byte, the lowest first        list    its length, then each of its elements
//!   variant     one byte                                   record  its fields, in the order in which `saved!` names them
//!   shared      0 and the value, or the number of the value that was written before, from 1 on
//!   block       of the tree: its id; any other: all of it
//! ```
//!
//! `saved!` destructures every record and variant by name, so a new field or variant that is not written does not compile. Blocks of
//! the tree are not written: the reader has a tree that contains them, and knows the keys of the forgers.

mod chain;
mod values;

pub use values::DiagnosticCount;

use super::{BlockTree, Link};
use crate::protocol::{BlockId, KeyPair, PublicKey, hashing::IdHash};
use indexmap::IndexMap;
use serde::{Serialize, de::DeserializeOwned};
use std::{any::Any, sync::Arc};

/// The reason why bytes cannot be loaded.
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

/// A value that can be saved and loaded.
pub trait Save: Sized {
    /// Appends the value to `out`.
    fn save(&self, out: &mut Saver);

    /// Loads a value.
    ///
    /// # Errors
    /// The bytes are not a saved value of this type.
    fn load(from: &mut Loader) -> Result<Self, LoadError>;
}

/// A value behind an `Arc`. Each is written once.
pub trait SaveShared {
    /// Appends the value behind `arc` to `out`.
    fn save_shared(arc: &Arc<Self>, out: &mut Saver);

    /// Loads a value into an `Arc`.
    ///
    /// # Errors
    /// The bytes are not a saved value of this type.
    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError>;
}

/// A writer of saved values.
pub struct Saver {
    bytes: Vec<u8>,
    tree: Arc<BlockTree>,
    /// The number of each shared value, by its address in memory.
    shared: IndexMap<u64, u64, IdHash>,
    /// Blocks of the tree that are named.
    links: Vec<Arc<Link>>,
    /// An instant in microseconds since the epoch. If set, only data that affects the run after it is written.
    ahead: Option<u64>,
}

/// A reader of saved values.
pub struct Loader {
    bytes: Arc<[u8]>,
    at: usize,
    tree: Arc<BlockTree>,
    keys: Arc<[KeyPair]>,
    shared: Vec<Box<dyn Any>>,
}

impl Saver {
    /// A writer for values that share the blocks of a tree.
    pub fn new(tree: &Arc<BlockTree>) -> Self {
        Self { bytes: Vec::new(), tree: tree.clone(), shared: IndexMap::default(), links: Vec::new(), ahead: None }
    }

    /// A writer for only the data that affects the run after `now`, the beginning of a slot in microseconds since the epoch: two
    /// runs that give the same bytes continue alike. All clocks have to be right. These bytes are never loaded.
    pub fn of_what_is_ahead(tree: &Arc<BlockTree>, now: u64) -> Self {
        Self { ahead: Some(now), ..Self::new(tree) }
    }

    /// The beginning of a slot, in microseconds since the epoch, if only data that affects the run after it is written. Mere counts and
    /// finished work are not.
    pub fn ahead_of(&self) -> Option<u64> {
        self.ahead
    }

    /// The blocks of the network.
    pub fn tree(&self) -> &Arc<BlockTree> {
        &self.tree
    }

    /// The bytes that were written, and the blocks of the tree that they name.
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

    /// Appends a list of `length` elements.
    pub fn list<'a, T: Save + 'a>(&mut self, length: usize, all: impl IntoIterator<Item = &'a T>) {
        self.number(length as u64);
        all.into_iter().for_each(|one| one.save(self));
    }

    /// Appends a value as JSON.
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

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// Bytes are left.
    pub fn finish(self) -> Result<(), LoadError> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            left => Err(LoadError::Left { left }),
        }
    }

    /// Takes the next `length` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn raw(&mut self, length: usize) -> Result<Vec<u8>, LoadError> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len()).ok_or(LoadError::End)?;
        let bytes = self.bytes[self.at..end].to_vec();
        self.at = end;
        Ok(bytes)
    }

    /// Takes the next `N` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], LoadError> {
        let end = self.at.checked_add(N).filter(|end| *end <= self.bytes.len()).ok_or(LoadError::End)?;
        let bytes = self.bytes[self.at..end].try_into().expect("as many as the array has");
        self.at = end;
        Ok(bytes)
    }

    /// Skips the next byte if it equals `byte`, and returns true then.
    pub fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
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
    pub fn list<T: Save, C: FromIterator<T>>(&mut self) -> Result<C, LoadError> {
        let length = self.length()?;
        (0..length).map(|_| T::load(self)).collect()
    }

    /// Reads a value from its JSON.
    ///
    /// # Errors
    /// The text is none of such a value.
    pub fn json<T: DeserializeOwned>(&mut self) -> Result<T, LoadError> {
        let length = self.length()?;
        let text = self.raw(length)?;
        serde_json::from_slice(&text).map_err(|why| self.wrong("text of what it should be", why))
    }

    /// An error at the present byte: a `what` was expected, and `found` was there.
    pub fn wrong(&self, what: &'static str, found: impl ToString) -> LoadError {
        LoadError::Wrong { at: self.at, what, found: found.to_string() }
    }
}

/// Writes and reads a record or an enumeration field by field. A field behind a semicolon is not written, and has this value after
/// reading.
///
/// ```text
/// saved!(struct Lock { amount, recipient; memo = OnceLock::new() });
/// saved!(enum Purpose { 0 Newcomer, 1 Chunk(place), 2 Asked { by } });
/// ```
#[macro_export]
macro_rules! saved {
    (struct $name:ident { $($field:ident),* $(,)? $(; $($skipped:ident = $value:expr),* $(,)?)? }) => {
        #[allow(unused_variables, reason = "some records have no fields")]
        impl $crate::ledger::codec::Save for $name {
            fn save(&self, out: &mut $crate::ledger::codec::Saver) {
                let Self { $($field,)* $($($skipped: _,)*)? } = self;
                $($crate::ledger::codec::Save::save($field, out);)*
            }

            fn load(
                from: &mut $crate::ledger::codec::Loader,
            ) -> Result<Self, $crate::ledger::codec::LoadError> {
                $(let $field = $crate::ledger::codec::Save::load(from)?;)*
                Ok(Self { $($field,)* $($($skipped: $value,)*)? })
            }
        }
    };
    (struct $name:ident ( $($field:ident),* $(,)? )) => {
        impl $crate::ledger::codec::Save for $name {
            fn save(&self, out: &mut $crate::ledger::codec::Saver) {
                let Self($($field,)*) = self;
                $($crate::ledger::codec::Save::save($field, out);)*
            }

            fn load(
                from: &mut $crate::ledger::codec::Loader,
            ) -> Result<Self, $crate::ledger::codec::LoadError> {
                $(let $field = $crate::ledger::codec::Save::load(from)?;)*
                Ok(Self($($field,)*))
            }
        }
    };
    (enum $name:ident {
        $($number:literal $variant:ident $({ $($field:ident),* $(,)? })? $(( $($part:ident),* $(,)? ))?),* $(,)?
    }) => {
        impl $crate::ledger::codec::Save for $name {
            fn save(&self, out: &mut $crate::ledger::codec::Saver) {
                match self {
                    $(Self::$variant $({ $($field),* })? $(( $($part),* ))? => {
                        out.raw(&[$number]);
                        $($($crate::ledger::codec::Save::save($field, out);)*)?
                        $($($crate::ledger::codec::Save::save($part, out);)*)?
                    })*
                }
            }

            fn load(
                from: &mut $crate::ledger::codec::Loader,
            ) -> Result<Self, $crate::ledger::codec::LoadError> {
                match from.array::<1>()?[0] {
                    $($number => {
                        $($(let $field = $crate::ledger::codec::Save::load(from)?;)*)?
                        $($(let $part = $crate::ledger::codec::Save::load(from)?;)*)?
                        Ok(Self::$variant $({ $($field),* })? $(( $($part),* ))?)
                    })*
                    found => Err(from.wrong(stringify!($name), found)),
                }
            }
        }
    };
}
pub use saved;

impl<T: SaveShared + ?Sized + 'static> Save for Arc<T> {
    fn save(&self, out: &mut Saver) {
        // Sharing does not affect any decision.
        if out.ahead.is_some() {
            return T::save_shared(self, out);
        }
        // The value that is being saved holds it, so its address cannot be reused meanwhile.
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

/// Implements [`SaveShared`] for types that are written as themselves.
macro_rules! shared {
    ($($name:ty),* $(,)?) => {$(
        impl $crate::ledger::codec::SaveShared for $name {
            fn save_shared(arc: &std::sync::Arc<Self>, out: &mut $crate::ledger::codec::Saver) {
                $crate::ledger::codec::Save::save(&**arc, out);
            }

            fn load_shared(
                from: &mut $crate::ledger::codec::Loader,
            ) -> Result<std::sync::Arc<Self>, $crate::ledger::codec::LoadError> {
                $crate::ledger::codec::Save::load(from).map(std::sync::Arc::new)
            }
        }
    )*};
}
pub(crate) use shared;

impl<T: Save> SaveShared for [T] {
    fn save_shared(arc: &Arc<Self>, out: &mut Saver) {
        out.list(arc.len(), arc.iter());
    }

    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError> {
        from.list()
    }
}

impl SaveShared for str {
    fn save_shared(arc: &Arc<Self>, out: &mut Saver) {
        arc.to_string().save(out);
    }

    fn load_shared(from: &mut Loader) -> Result<Arc<Self>, LoadError> {
        String::load(from).map(Into::into)
    }
}
