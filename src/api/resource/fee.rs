//! Statistics of the fees paid for one type of transactions. Source: api.md 4.10 row 2, 7.

use crate::{
    api::table::{Member, Shape, shape},
    protocol::transaction::Kind,
};

/// The fees of one type, at least one of them.
#[derive(Clone, Debug)]
pub(crate) struct FeeRow {
    pub kind: Kind,
    /// In arktoshi, ascending.
    fees: Vec<u64>,
}

impl FeeRow {
    /// The row of a type with the paid fees. `None` if there are none.
    pub fn new(kind: Kind, mut fees: Vec<u64>) -> Option<Self> {
        fees.sort_unstable();
        (!fees.is_empty()).then_some(Self { kind, fees })
    }

    fn sum(&self) -> i128 {
        self.fees.iter().map(|fee| i128::from(*fee)).sum()
    }

    /// Rounded half up.
    fn average(&self) -> i128 {
        let count = self.fees.len() as i128;
        (2 * self.sum() + count) / (2 * count)
    }

    /// The median, the lower one of two middle fees.
    fn median(&self) -> u64 {
        self.fees[(self.fees.len() - 1) / 2]
    }
}

const AVERAGE: Member<FeeRow> = Member::new("avg", shape::AMOUNT, |row, _| row.average().into());
const MOST: Member<FeeRow> = Member::new("max", shape::AMOUNT, |row, _| row.fees.last().copied().into());
const LEAST: Member<FeeRow> = Member::new("min", shape::AMOUNT, |row, _| row.fees.first().copied().into());
const SUM: Member<FeeRow> = Member::new("sum", shape::AMOUNT, |row, _| row.sum().into());

/// An entry under its type's key.
pub(crate) const GROUPED: &[Member<FeeRow>] = &[AVERAGE, MOST, LEAST, SUM];

/// An entry that says its type.
pub(crate) const LISTED: &[Member<FeeRow>] = &[
    Member::new("type", shape::AMOUNT, |row, _| row.kind.numbers().1.into()),
    Member::new("typeGroup", Shape::Integer, |row, _| row.kind.numbers().0.into()),
    Member::new("key", Shape::Text, |row, _| row.kind.key().into()),
    LEAST,
    MOST,
    AVERAGE,
    SUM,
    Member::new("median", shape::AMOUNT, |row, _| row.median().into()),
];

/// The shape of an entry under its type's key.
pub(crate) const GROUPED_SHAPE: Shape = Shape::Resource("FeesOfType", &GROUPED);

/// The shape of an entry that says its type.
pub(crate) const LISTED_SHAPE: Shape = Shape::Resource("Fees", &LISTED);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_round_half_up_and_medians_are_paid_fees() {
        let row = FeeRow::new(Kind::Vote, vec![4, 1, 2, 3]).unwrap();
        assert_eq!((row.sum(), row.average(), row.median()), (10, 3, 2));
        assert!(FeeRow::new(Kind::Vote, Vec::new()).is_none());
    }
}
