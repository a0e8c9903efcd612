//! The row of a height as bytes: numbers are LEB128, public keys are numbers.

use crate::{
    files::segments::Spot,
    ledger::{
        Balance,
        round::{Member, Round, RoundPosition, Turns},
        state::{Notable, RoundEnd},
    },
    protocol::{Address, Height, PublicKey, RoundNumber},
};
use std::{collections::BTreeMap, sync::Arc};

/// Public keys by number, in the order in which they came up.
pub(super) struct Keys {
    network: u8,
    all: Vec<PublicKey>,
    addresses: Vec<Address>,
    numbers: BTreeMap<PublicKey, usize>,
}

impl Keys {
    pub(super) fn new(network: u8) -> Self {
        Self { network, all: Vec::new(), addresses: Vec::new(), numbers: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn all(&self) -> &[PublicKey] {
        &self.all
    }

    /// The number of a key, which may be new.
    pub(super) fn number(&mut self, key: &PublicKey) -> usize {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        self.all.push(*key);
        self.addresses.push(key.address(self.network));
        self.numbers.insert(*key, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// The row of a height.
pub(super) struct Row {
    /// The record of the log that holds the block.
    pub(super) spot: Spot,
    pub(super) transactions: u64,
    pub(super) notable: Option<Arc<Notable>>,
}

impl Row {
    pub(super) fn bytes(&self, keys: &mut Keys) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        let Spot { segment, at, length } = self.spot;
        for number in [u64::from(segment), at, u64::from(length), self.transactions] {
            put(&mut out, u128::from(number));
        }
        let Some(notable) = &self.notable else { return out };
        put_keys(&mut out, &notable.missing, keys);
        let Some(RoundEnd { missed, created }) = &notable.round_end else { return out };
        put_keys(&mut out, missed, keys);
        let RoundPosition { round, first, delegates, turn } = created.position;
        // A turn of one slot adds nothing to the number. Folders of earlier versions have only such turns.
        let delegates = u64::from(delegates) | u64::from(turn - 1) << 32;
        for number in [round.0.into(), first.0.into(), delegates] {
            put(&mut out, u128::from(number));
        }
        put(&mut out, created.members.len() as u128);
        for member in &created.members {
            put(&mut out, keys.number(&member.public_key) as u128);
            let Balance(weight) = member.vote_balance;
            put(&mut out, (weight.cast_unsigned() << 1) ^ (weight >> 127).cast_unsigned());
        }
        match &created.turns {
            Turns::Order(order) => order.iter().for_each(|place| put(&mut out, *place as u128)),
            // The number of members marks a lottery: no order begins with a place beyond the last.
            Turns::Lottery(chances) => {
                put(&mut out, chances.len() as u128);
                chances.iter().for_each(|chance| put(&mut out, (*chance).into()));
            }
        }
        out
    }

    /// Reads a row, or returns `None` if the bytes are not understood.
    pub(super) fn read(bytes: &[u8], keys: &Keys) -> Option<Self> {
        let mut left = bytes;
        let [segment, at, length, transactions] = [(); 4].map(|()| take(&mut left));
        let spot =
            Spot { segment: segment?.try_into().ok()?, at: at?.try_into().ok()?, length: length?.try_into().ok()? };
        let transactions = transactions?.try_into().ok()?;
        if left.is_empty() {
            return Some(Self { spot, transactions, notable: None });
        }
        let missing = take_keys(&mut left, keys)?;
        let round_end = match left.is_empty() {
            true => None,
            false => Some(take_round_end(&mut left, keys)?),
        };
        left.is_empty().then(|| Self { spot, transactions, notable: Some(Arc::new(Notable { missing, round_end })) })
    }
}

fn take_round_end(left: &mut &[u8], keys: &Keys) -> Option<RoundEnd> {
    let missed = take_keys(left, keys)?;
    let [round, first] = [(); 2].map(|()| take(left).and_then(|number| u32::try_from(number).ok()));
    let delegates = u64::try_from(take(left)?).ok()?;
    let (delegates, turn) = (delegates as u32, (delegates >> 32) as u32 + 1);
    let position = RoundPosition { round: RoundNumber(round?), first: Height(first?), delegates, turn };
    let count = take(left)?;
    let mut members = Vec::new();
    for _ in 0..count {
        let number = usize::try_from(take(left)?).ok()?;
        let weight = take(left)?;
        let weight = (weight >> 1).cast_signed() ^ -(weight & 1).cast_signed();
        let (public_key, address) = (*keys.all.get(number)?, *keys.addresses.get(number)?);
        members.push(Member { public_key, address, vote_balance: Balance(weight) });
    }
    let mut first = *left;
    let is_lottery = !members.is_empty() && take(&mut first)? == members.len() as u128;
    let turns = match is_lottery {
        true => {
            *left = first;
            let chances: Option<Vec<u64>> = members.iter().map(|_| take(left)?.try_into().ok()).collect();
            Turns::Lottery(chances?)
        }
        false => {
            let place = |_| usize::try_from(take(left)?).ok().filter(|place| *place < members.len());
            let order: Option<Vec<usize>> = (0..members.len()).map(place).collect();
            Turns::Order(order?)
        }
    };
    Some(RoundEnd { missed, created: Arc::new(Round { position, members, turns }) })
}

fn put(out: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(left: &mut &[u8]) -> Option<u128> {
    let (mut number, mut shift) = (0_u128, 0);
    loop {
        let (byte, rest) = left.split_first()?;
        *left = rest;
        number |= u128::from(byte & 0x7f).checked_shl(shift).filter(|part| part >> shift == u128::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

fn put_keys(out: &mut Vec<u8>, some: &[PublicKey], keys: &mut Keys) {
    put(out, some.len() as u128);
    for key in some {
        let number = keys.number(key);
        put(out, number as u128);
    }
}

fn take_keys(left: &mut &[u8], keys: &Keys) -> Option<Vec<PublicKey>> {
    let count = take(left)?;
    let mut some = Vec::new();
    for _ in 0..count {
        some.push(*keys.all.get(usize::try_from(take(left)?).ok()?)?);
    }
    Some(some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Reading gives back the row that was written, and no bytes make it panic.
        #[test]
        fn rows_are_read_as_they_were_written(
            segment in any::<u32>(),
            at in any::<u64>(),
            length in any::<u32>(),
            transactions in any::<u64>(),
            missing in prop::collection::vec(0_u8..9, 0..5),
            weights in prop::option::of(prop::collection::vec(any::<i128>(), 1..6)),
            is_lottery in any::<bool>(),
            junk in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let key = |number: u8| PublicKey::from_bytes([number; 33]);
            let mut keys = Keys::new(30);
            let round_end = weights.map(|weights| {
                let members: Vec<Member> = weights
                    .iter()
                    .enumerate()
                    .map(|(at, weight)| {
                        let public_key = key(at as u8 + 20);
                        Member { public_key, address: public_key.address(30), vote_balance: Balance(*weight) }
                    })
                    .collect();
                let position = RoundPosition { round: RoundNumber(7), first: Height(300), delegates: 51, turn: 12 };
                let turns = match is_lottery {
                    true => Turns::Lottery((0..members.len() as u64).map(|place| u64::MAX - place).collect()),
                    false => Turns::Order((0..members.len()).rev().collect()),
                };
                RoundEnd { missed: vec![key(3)], created: Arc::new(Round { position, members, turns }) }
            });
            let missing: Vec<PublicKey> = missing.into_iter().map(key).collect();
            let is_notable = !missing.is_empty() || round_end.is_some();
            let notable = is_notable.then(|| Arc::new(Notable { missing, round_end }));
            let row = Row { spot: Spot { segment, at, length }, transactions, notable };
            let bytes = row.bytes(&mut keys);
            let again = Row::read(&bytes, &keys).expect("it was written");
            prop_assert_eq!((again.spot, again.transactions), (row.spot, row.transactions));
            prop_assert_eq!(again.notable, row.notable);
            if let Some(row) = Row::read(&junk, &keys) {
                let _no_panic = row.bytes(&mut keys);
            }
        }
    }
}
