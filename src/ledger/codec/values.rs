//! Numbers, texts, lists, maps, times and random streams as bytes.

use super::{LoadError, Loader, Save, Saver};
use crate::protocol::hashing::IdHash;
use indexmap::{IndexMap, IndexSet};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
    hash::Hash,
    ops::RangeInclusive,
    time::Duration,
};

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Save for $number {
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

/// A mere count, which no decision depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiagnosticCount(pub u64);

impl Save for DiagnosticCount {
    fn save(&self, out: &mut Saver) {
        if out.ahead_of().is_none() {
            self.0.save(out);
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        u64::load(from).map(Self)
    }
}

macro_rules! plain {
    ($($number:ty),*) => {$(
        impl Save for $number {
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

impl Save for bool {
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

impl<T: Save> Save for Option<T> {
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

impl<T: Save> Save for Box<T> {
    fn save(&self, out: &mut Saver) {
        (**self).save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        T::load(from).map(Self::new)
    }
}

macro_rules! lists {
    ($($list:ty),*) => {$(
        impl<T: Save> Save for $list {
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

impl<T: Save + Ord> Save for BTreeSet<T> {
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
        impl<$key: Save $(+ $bound)+, V: Save> Save for $map {
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

impl<T: Save + Hash + Eq> Save for IndexSet<T, IdHash> {
    fn save(&self, out: &mut Saver) {
        out.list(self.len(), self);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        from.list()
    }
}

impl<T: Save, const N: usize> Save for [T; N] {
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
        impl<$($name: Save),*> Save for ($($name,)*) {
            fn save(&self, out: &mut Saver) {
                let ($($part,)*) = self;
                $($part.save(out);)*
            }

            fn load(from: &mut Loader) -> Result<Self, LoadError> {
                $(let $part = Save::load(from)?;)*
                Ok(($($part,)*))
            }
        }
    )*};
}
tuples!((A a, B b) (A a, B b, C c) (A a, B b, C c, D d));

impl<T: Save> Save for Reverse<T> {
    fn save(&self, out: &mut Saver) {
        self.0.save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        T::load(from).map(Self)
    }
}

impl<T: Save> Save for RangeInclusive<T> {
    fn save(&self, out: &mut Saver) {
        self.start().save(out);
        self.end().save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        Ok(T::load(from)?..=T::load(from)?)
    }
}

impl Save for String {
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

impl Save for Duration {
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

/// Saves the seed, the stream, and the number of words drawn.
impl Save for ChaCha8Rng {
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
