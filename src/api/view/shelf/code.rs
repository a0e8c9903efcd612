//! Keys and values of a shelf as bytes. Numbers in keys are big-endian, so that keys sort by number. Numbers in values have a
//! variable length: seven bits a byte, the least significant first.

use super::super::{
    entry::{Contents, Facts, Spot, Totals},
    older::{List, Row, Summary},
};
use crate::protocol::{Arktoshi, BlockId, Height, Timestamp, TransactionId, transaction::Kind};

/// The version of the encoding. A shelf of another version is rebuilt.
pub(crate) const VERSION: u64 = 1;

/// The key of the mark.
pub(crate) const MARK: &[u8] = b"m";
/// The first byte of the keys of batches.
pub(crate) const BATCH: u8 = b'c';

/// The version of a shelf and the height up to which it is complete.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    pub version: u64,
    pub top: Height,
}

/// The numbers of rows of a wallet's three lists, or of one other list.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts([u64; 3]);

impl Mark {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let (version, top) = (reader.number()?, Height(reader.number32()?));
        reader.0.is_empty().then_some(Self { version, top })
    }

    pub fn write(self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.version);
        put(&mut out, self.top.0.into());
        out
    }
}

impl Counts {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let counts = [reader.number()?, reader.number()?, reader.number()?];
        reader.0.is_empty().then_some(Self(counts))
    }

    pub fn write(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(6);
        self.0.iter().for_each(|count| put(&mut out, *count));
        out
    }

    pub fn of(self, list: &List) -> u64 {
        self.0[column(list)]
    }

    /// Increments the count of a list. Returns the count before.
    pub fn count_up(&mut self, list: &List) -> u64 {
        let count = &mut self.0[column(list)];
        *count += 1;
        *count - 1
    }
}

fn column(list: &List) -> usize {
    match list {
        List::Sent(_) | List::Of(_) | List::Forged(_) => 0,
        List::Received(_) => 1,
        List::Any(_) => 2,
    }
}

/// The common beginning of the keys of a list's rows: the first byte, and the rest.
fn name(list: &List) -> (u8, &[u8]) {
    match list {
        List::Sent(address) => (b's', address.as_bytes()),
        List::Received(address) => (b'r', address.as_bytes()),
        List::Any(address) => (b'a', address.as_bytes()),
        List::Of(kind) => (b'k', std::slice::from_ref(&KIND_NUMBERS[*kind as usize])),
        List::Forged(generator) => (b'f', generator.as_bytes()),
    }
}

const KIND_NUMBERS: [u8; Kind::ALL.len()] = {
    let mut numbers = [0; Kind::ALL.len()];
    let mut at = 0;
    while at < numbers.len() {
        numbers[at] = at as u8;
        at += 1;
    }
    numbers
};

/// The bytes that distinguish a block from others at its height.
pub(crate) fn id_mark(id: &BlockId) -> [u8; 8] {
    match id {
        BlockId::Numeric(number) => number.to_be_bytes(),
        BlockId::Full(hash) => *hash.first_chunk().expect("it has 32 bytes"),
    }
}

pub(crate) fn block_key(height: Height) -> Vec<u8> {
    key(b'b', &[], height.0)
}

pub(crate) fn batch_key(height: Height) -> Vec<u8> {
    key(BATCH, &[], height.0)
}

pub(crate) fn row_key(list: &List, position: u64) -> Vec<u8> {
    let (first, of) = name(list);
    // A chain of `u32::MAX` rows would not fit any disk.
    key(first, of, u32::try_from(position).unwrap_or(u32::MAX))
}

/// The key of a list's count. The three lists of a wallet share one.
pub(crate) fn count_key(list: &List) -> Vec<u8> {
    let (first, of) = name(list);
    let kind = if matches!(first, b's' | b'r') { b'a' } else { first };
    [&[b'n', kind][..], of].concat()
}

pub(crate) fn unlock_key(lock: &TransactionId) -> Vec<u8> {
    [&b"u"[..], &lock.0].concat()
}

fn key(first: u8, of: &[u8], number: u32) -> Vec<u8> {
    let mut key = Vec::with_capacity(5 + of.len());
    key.push(first);
    key.extend(of);
    key.extend(number.to_be_bytes());
    key
}

/// Reads a height in the encoding of keys.
pub(crate) fn height(bytes: &[u8]) -> Option<Height> {
    Some(Height(u32::from_be_bytes(bytes.try_into().ok()?)))
}

pub(crate) fn write_height(height: Height) -> Vec<u8> {
    write_spot(Spot { height, index: 0 })
}

pub(crate) fn write_spot(spot: Spot) -> Vec<u8> {
    let mut out = Vec::with_capacity(7);
    put(&mut out, spot.height.0.into());
    put(&mut out, spot.index.into());
    out
}

pub(crate) fn read_spot(bytes: &[u8]) -> Option<Spot> {
    let mut reader = Reader(bytes);
    let spot = reader.spot()?;
    reader.0.is_empty().then_some(spot)
}

pub(crate) fn write_row(spot: Spot, facts: &Facts) -> Vec<u8> {
    let mut out = Vec::with_capacity(28);
    put(&mut out, spot.height.0.into());
    put(&mut out, spot.index.into());
    put_facts(&mut out, facts);
    out
}

pub(crate) fn read_row(list: &List, bytes: &[u8]) -> Option<Row> {
    let mut reader = Reader(bytes);
    let spot = reader.spot()?;
    let facts = match list {
        List::Forged(_) => None,
        _ => Some(reader.facts()?),
    };
    reader.0.is_empty().then_some(Row { spot, facts })
}

pub(crate) fn write_summary(summary: &Summary) -> Vec<u8> {
    let mut out = Vec::with_capacity(48 + 24 * summary.contents.facts.len());
    out.extend(summary.id_mark);
    out.extend(summary.payload_mark);
    out.extend(summary.signature_mark);
    let totals = &summary.totals;
    for number in [
        totals.version.into(),
        totals.timestamp.0.into(),
        totals.transactions.into(),
        totals.amount.value(),
        totals.fee.value(),
        totals.reward.value(),
        totals.payload_length.into(),
        summary.transactions,
        summary.own_timestamps,
        summary.contents.facts.len() as u64,
    ] {
        put(&mut out, number);
    }
    summary.contents.facts.iter().for_each(|facts| put_facts(&mut out, facts));
    put(&mut out, summary.contents.vendor_starts.len() as u64);
    for (start, index) in &summary.contents.vendor_starts {
        put(&mut out, (*start).into());
        put(&mut out, (*index).into());
    }
    out.extend(summary.contents.vendor_fields.as_bytes());
    out
}

pub(crate) fn read_summary(height: Height, bytes: &[u8]) -> Option<Summary> {
    let mut reader = Reader(bytes);
    let (id_mark, payload_mark, signature_mark) = (reader.array()?, reader.array()?, reader.array()?);
    let totals = Totals {
        version: reader.number32()?,
        timestamp: Timestamp(reader.number32()?),
        height,
        transactions: reader.number32()?,
        amount: Arktoshi::new(reader.number()?)?,
        fee: Arktoshi::new(reader.number()?)?,
        reward: Arktoshi::new(reader.number()?)?,
        payload_length: reader.number32()?,
    };
    let (transactions, own_timestamps) = (reader.number()?, reader.number()?);
    let facts = (0..reader.count()?).map(|_| reader.facts()).collect::<Option<_>>()?;
    let starts = (0..reader.count()?).map(|_| Some((reader.number32()?, reader.number32()?)));
    let vendor_starts = starts.collect::<Option<_>>()?;
    let vendor_fields = std::str::from_utf8(reader.0).ok()?.into();
    let contents = Contents { facts, vendor_fields, vendor_starts };
    Some(Summary { id_mark, totals, contents, transactions, own_timestamps, payload_mark, signature_mark })
}

fn put_facts(out: &mut Vec<u8>, facts: &Facts) {
    out.push(facts.kind as u8);
    out.push(facts.version);
    [facts.amount, facts.fee, facts.nonce, facts.timestamp.0.into()].into_iter().for_each(|number| put(out, number));
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn number32(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// The number of following items. `None` if it exceeds the number of bytes, since an item has at least one.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    fn spot(&mut self) -> Option<Spot> {
        Some(Spot { height: Height(self.number32()?), index: self.number32()? })
    }

    fn facts(&mut self) -> Option<Facts> {
        let kind = *Kind::ALL.get(usize::from(self.byte()?))?;
        let version = self.byte()?;
        let (amount, fee, nonce) = (self.number()?, self.number()?, self.number()?);
        Some(Facts { amount, fee, nonce, timestamp: Timestamp(self.number32()?), kind, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn facts() -> impl Strategy<Value = Facts> {
        let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>());
        (numbers, prop::sample::select(&Kind::ALL[..]), 1..3u8).prop_map(|(numbers, kind, version)| {
            let (amount, fee, nonce, timestamp) = numbers;
            Facts { amount, fee, nonce, timestamp: Timestamp(timestamp), kind, version }
        })
    }

    fn summary() -> impl Strategy<Value = Summary> {
        let amounts = prop::array::uniform3(0..=i64::MAX as u64);
        let contents = (prop::collection::vec(facts(), 0..5), prop::collection::vec("[a-zä]{0,9}", 0..4));
        let numbers = (any::<[u32; 4]>(), any::<[u64; 2]>(), any::<[[u8; 4]; 2]>());
        (amounts, contents, numbers).prop_map(|(amounts, (facts, texts), (small, great, marks))| {
            let [amount, fee, reward] = amounts.map(|amount| Arktoshi::new(amount).expect("not too great"));
            let [version, timestamp, transactions, payload_length] = small;
            let timestamp = Timestamp(timestamp);
            let height = Height(7);
            let starts = texts.iter().scan(0, |end, text| {
                let start = *end;
                *end += text.len() as u32 + 1;
                Some((start, start % 5))
            });
            Summary {
                id_mark: small[0].to_be_bytes().repeat(2).try_into().expect("8 bytes"),
                totals: Totals { version, timestamp, height, transactions, amount, fee, reward, payload_length },
                contents: Contents {
                    facts: facts.into(),
                    vendor_starts: starts.collect(),
                    vendor_fields: texts.iter().map(|text| format!("{text}\0")).collect::<String>().into(),
                },
                transactions: great[0],
                own_timestamps: great[1],
                payload_mark: marks[0],
                signature_mark: marks[1],
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(summary in summary(), facts in facts(), height: u32, index: u32) {
            let bytes = write_summary(&summary);
            prop_assert_eq!(read_summary(Height(7), &bytes), Some(summary));
            let spot = Spot { height: Height(height), index };
            prop_assert_eq!(read_spot(&write_spot(spot)), Some(spot));
            let list = List::Of(Kind::Transfer);
            prop_assert_eq!(read_row(&list, &write_row(spot, &facts)), Some(Row { spot, facts: Some(facts) }));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let list = List::Of(Kind::Vote);
            let _any = (read_summary(Height(1), &bytes), read_row(&list, &bytes), Counts::read(&bytes).is_some());
            let _any = (Mark::read(&bytes).is_some(), read_spot(&bytes));
        }
    }
}
