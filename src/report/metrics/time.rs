//! A run over time in a bounded number of rows: when they are too many, two become one.

use super::Sample;
use crate::protocol::Slot;
use serde::Serialize;

/// Rows at most; each stands for the same number of slots, a power of two.
pub const BUCKETS: usize = 2_000;

/// Some slots on end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bucket {
    pub first_slot: u32,
    pub slots: u32,
    /// Of all nodes at the end of any of these slots.
    pub height_least: u32,
    pub height_greatest: u32,
    pub branches_max: u32,
    pub fork_depth_max: u32,
    pub agreement_min: f64,
    pub weight_agreement_min: f64,
    /// Transactions in a pool, mean over nodes and slots.
    pub pool_mean: f64,
    pub pool_max: u32,
    /// Transactions that half of the nodes have on their chain since these slots.
    pub transactions: u64,
}

/// Rows over time.
pub struct TimeRows {
    rows: Vec<Bucket>,
    /// Slots a row.
    width: u32,
    next: Slot,
    /// Since the last sample.
    transactions: u64,
}

impl TimeRows {
    pub(super) fn new(start: Slot) -> Self {
        Self { rows: Vec::new(), width: 1, next: start, transactions: 0 }
    }

    pub(super) fn transactions(&mut self, confirmed: u64) {
        self.transactions += confirmed;
    }

    pub(super) fn add(&mut self, sample: &Sample) {
        let row = Bucket {
            first_slot: sample.slot.0,
            slots: 1,
            height_least: sample.height_least.0,
            height_greatest: sample.height_greatest.0,
            branches_max: sample.branches,
            fork_depth_max: sample.depth,
            agreement_min: sample.agreement,
            weight_agreement_min: sample.weight_agreement,
            pool_mean: sample.pool_mean,
            pool_max: sample.pool_max,
            transactions: std::mem::take(&mut self.transactions),
        };
        self.next = Slot(sample.slot.0 + 1);
        match self.rows.last_mut() {
            Some(last) if last.slots < self.width => last.merge(&row),
            _ => {
                if self.rows.len() == BUCKETS {
                    self.halve();
                }
                self.rows.push(row);
            }
        }
    }

    pub(super) fn finish(&mut self) -> Vec<Bucket> {
        if let Some(last) = self.rows.last_mut() {
            last.transactions += std::mem::take(&mut self.transactions);
        }
        std::mem::take(&mut self.rows)
    }

    fn halve(&mut self) {
        self.rows = self
            .rows
            .chunks(2)
            .map(|pair| {
                let mut one = pair[0];
                pair[1..].iter().for_each(|other| one.merge(other));
                one
            })
            .collect();
        self.width *= 2;
    }
}

impl Bucket {
    fn merge(&mut self, later: &Self) {
        let counted_already = if planted!(MergedRowsWeighTwice) { later.slots } else { 0 };
        let (before, after) = (f64::from(self.slots + counted_already), f64::from(later.slots));
        self.pool_mean = (self.pool_mean * before + later.pool_mean * after) / (before + after);
        self.slots += later.slots;
        self.height_least = self.height_least.min(later.height_least);
        self.height_greatest = self.height_greatest.max(later.height_greatest);
        self.branches_max = self.branches_max.max(later.branches_max);
        self.fork_depth_max = self.fork_depth_max.max(later.fork_depth_max);
        self.agreement_min = self.agreement_min.min(later.agreement_min);
        self.weight_agreement_min = self.weight_agreement_min.min(later.weight_agreement_min);
        self.pool_max = self.pool_max.max(later.pool_max);
        self.transactions += later.transactions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Height;

    #[test]
    fn a_long_run_has_no_more_rows_than_a_short_one_and_loses_nothing() {
        let mut rows = TimeRows::new(Slot(5));
        for slot in 5..100_005 {
            rows.transactions(2);
            rows.add(&Sample {
                slot: Slot(slot),
                agreement: if slot == 77_777 { 0.25 } else { 1.0 },
                weight_agreement: 1.0,
                branches: 1,
                depth: 0,
                pool_mean: 3.0,
                pool_max: slot,
                height_least: Height(slot),
                height_greatest: Height(slot),
            });
        }
        let rows = rows.finish();
        assert!((BUCKETS / 2..=BUCKETS).contains(&rows.len()), "{}", rows.len());
        assert_eq!(rows.iter().map(|row| row.slots).sum::<u32>(), 100_000);
        assert_eq!(rows.iter().map(|row| row.transactions).sum::<u64>(), 200_000);
        assert_eq!(rows.iter().filter(|row| row.agreement_min < 1.0).count(), 1);
        assert_eq!((rows[0].first_slot, rows.last().unwrap().pool_max), (5, 100_004));
        assert!(rows.windows(2).all(|pair| pair[0].first_slot + pair[0].slots == pair[1].first_slot));
        assert!(rows.iter().all(|row| (row.pool_mean - 3.0).abs() < 1e-9));
    }
}
