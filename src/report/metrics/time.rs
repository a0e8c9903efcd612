//! A run over time in a bounded number of rows: if there are too many, neighbouring rows are merged in pairs.

use super::sample::{Sample, lesser};
use crate::protocol::Slot;
use serde::Serialize;

/// The largest number of rows. Each row summarises the same number of slots, a power of two.
pub(crate) const BUCKETS: usize = 2_000;

/// The figures of consecutive slots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bucket {
    pub first_slot: u32,
    pub slots: u32,
    /// The lowest height of a live node at the end of any of these slots. Members that can be empty are so if no node was live
    /// then.
    pub height_least: Option<u32>,
    pub height_greatest: Option<u32>,
    pub branches_max: u32,
    pub fork_depth_max: u32,
    /// Most nodes down at the end of any of these slots.
    pub down_max: u32,
    pub agreement_min: Option<f64>,
    pub weight_agreement_min: Option<f64>,
    /// Transactions in a pool, mean over live nodes, then over the slots at whose end there were any.
    pub pool_mean: Option<f64>,
    pub pool_max: Option<u32>,
    /// Transactions that half of the nodes have on their chain since these slots.
    pub transactions: u64,
    /// Slots at whose end a node was live.
    #[serde(skip)]
    live_slots: u32,
}

/// Rows over time.
pub(crate) struct TimeRows {
    rows: Vec<Bucket>,
    /// The number of slots per row.
    width: u32,
    next: Slot,
    /// Transactions confirmed since the last sample.
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
            height_least: sample.height_least.map(|height| height.0),
            height_greatest: sample.height_greatest.map(|height| height.0),
            branches_max: sample.branches,
            fork_depth_max: sample.depth,
            down_max: sample.down,
            agreement_min: sample.agreement,
            weight_agreement_min: sample.weight_agreement,
            pool_mean: sample.pool_mean,
            pool_max: sample.pool_max,
            transactions: std::mem::take(&mut self.transactions),
            live_slots: u32::from(sample.pool_mean.is_some()),
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
        let sum = |row: &Self| row.pool_mean.unwrap_or(0.0) * f64::from(row.live_slots);
        let live_slots = self.live_slots + later.live_slots;
        let mean = (sum(self) + sum(later)) / f64::from(live_slots);
        self.pool_mean = (live_slots > 0).then_some(mean);
        self.live_slots = live_slots;
        self.slots += later.slots;
        self.height_least = lesser(self.height_least, later.height_least);
        self.height_greatest = self.height_greatest.max(later.height_greatest);
        self.branches_max = self.branches_max.max(later.branches_max);
        self.fork_depth_max = self.fork_depth_max.max(later.fork_depth_max);
        self.down_max = self.down_max.max(later.down_max);
        self.agreement_min = lesser(self.agreement_min, later.agreement_min);
        self.weight_agreement_min = lesser(self.weight_agreement_min, later.weight_agreement_min);
        self.pool_max = self.pool_max.max(later.pool_max);
        self.transactions += later.transactions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{protocol::Height, sim::SeedTree};
    use rand::Rng;

    #[test]
    fn a_long_run_has_no_more_rows_than_a_short_one_and_loses_nothing() {
        let mut rows = TimeRows::new(Slot(5));
        for slot in 5..100_005 {
            rows.transactions(2);
            rows.add(&Sample {
                slot: Slot(slot),
                down: u32::from(slot == 88_888),
                agreement: Some(if slot == 77_777 { 0.25 } else { 1.0 }),
                weight_agreement: Some(1.0),
                branches: 1,
                depth: 0,
                pool_mean: Some(3.0),
                pool_max: Some(slot),
                height_least: Some(Height(slot)),
                height_greatest: Some(Height(slot)),
            });
        }
        let rows = rows.finish();
        assert!((BUCKETS / 2..=BUCKETS).contains(&rows.len()), "{}", rows.len());
        assert_eq!(rows.iter().map(|row| row.slots).sum::<u32>(), 100_000);
        assert_eq!(rows.iter().map(|row| row.transactions).sum::<u64>(), 200_000);
        assert_eq!(rows.iter().filter(|row| row.agreement_min < Some(1.0)).count(), 1);
        assert_eq!(rows.iter().filter(|row| row.down_max == 1).count(), 1);
        assert_eq!((rows[0].first_slot, rows.last().unwrap().pool_max), (5, Some(100_004)));
        assert!(rows.windows(2).all(|pair| pair[0].first_slot + pair[0].slots == pair[1].first_slot));
        assert!(rows.iter().all(|row| (row.pool_mean.unwrap() - 3.0).abs() < 1e-9));
    }

    #[test]
    fn slots_without_a_live_node_leave_means_and_minima_alone() {
        let mut rows = TimeRows::new(Slot(0));
        let live = |slot: u32| slot.is_multiple_of(4);
        for slot in 0..2 * BUCKETS as u32 {
            let defined = |value: f64| live(slot).then_some(value);
            rows.add(&Sample {
                slot: Slot(slot),
                down: if live(slot) { 1 } else { 5 },
                agreement: defined(0.75),
                weight_agreement: defined(0.5),
                branches: u32::from(live(slot)),
                depth: 0,
                pool_mean: defined(7.0),
                pool_max: live(slot).then_some(8),
                height_least: live(slot).then_some(Height(9)),
                height_greatest: live(slot).then_some(Height(11)),
            });
        }
        let rows = rows.finish();
        // Two slots a row: every other row has seen no live node.
        let told = |row: &Bucket| (row.agreement_min, row.weight_agreement_min, row.pool_mean, row.height_least);
        assert_eq!((told(&rows[0]), rows[0].down_max), ((Some(0.75), Some(0.5), Some(7.0), Some(9)), 5));
        assert_eq!((told(&rows[1]), rows[1].down_max), ((None, None, None, None), 5));
        assert_eq!((rows[0].pool_max, rows[1].pool_max, rows[1].height_greatest), (Some(8), None, None));
    }

    /// A row summarises the samples of its slots, with and without live nodes.
    #[test]
    fn each_row_adds_up_the_samples_of_its_slots() {
        let mut random = SeedTree::new(7).stream("samples");
        for slots in [1, BUCKETS, BUCKETS + 1, 2 * BUCKETS + 7, 5 * BUCKETS + 3] {
            let mut rows = TimeRows::new(Slot(0));
            let mut confirmed = Vec::new();
            let samples: Vec<Sample> = (0..slots as u32)
                .map(|slot| {
                    let is_live = random.random_bool(0.8);
                    let share = is_live.then(|| random.random::<f64>());
                    Sample {
                        slot: Slot(slot),
                        down: random.random_range(0..9),
                        agreement: share,
                        weight_agreement: share.map(|share| share / 2.0),
                        branches: random.random_range(0..4),
                        depth: random.random_range(0..5),
                        pool_mean: share.map(|share| 90.0 * share),
                        pool_max: is_live.then(|| random.random_range(0..500)),
                        height_least: is_live.then(|| Height(random.random_range(1..50))),
                        height_greatest: is_live.then(|| Height(random.random_range(50..99))),
                    }
                })
                .collect();
            for sample in &samples {
                confirmed.push(random.random_range(0..3));
                rows.transactions(confirmed[confirmed.len() - 1]);
                rows.add(sample);
            }
            let rows = rows.finish();
            assert_eq!(rows.iter().map(|row| row.slots as usize).sum::<usize>(), slots);
            for row in rows {
                let range = row.first_slot as usize..(row.first_slot + row.slots) as usize;
                let of = &samples[range.clone()];
                let least = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::min);
                let means: Vec<f64> = of.iter().filter_map(|sample| sample.pool_mean).collect();
                let mean = (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64);
                assert_eq!(
                    (row.pool_mean.is_some(), row.transactions),
                    (mean.is_some(), confirmed[range].iter().sum())
                );
                assert!(
                    row.pool_mean.zip(mean).is_none_or(|(one, other)| (one - other).abs() < 1e-9),
                    "{row:?}, {mean:?}"
                );
                assert_eq!(row.agreement_min, least(&mut of.iter().filter_map(|sample| sample.agreement)));
                assert_eq!(
                    row.weight_agreement_min,
                    least(&mut of.iter().filter_map(|sample| sample.weight_agreement))
                );
                assert_eq!(Some(row.down_max), of.iter().map(|sample| sample.down).max());
                assert_eq!(Some(row.branches_max), of.iter().map(|sample| sample.branches).max());
                assert_eq!(Some(row.fork_depth_max), of.iter().map(|sample| sample.depth).max());
                assert_eq!(row.pool_max, of.iter().filter_map(|sample| sample.pool_max).max());
                assert_eq!(
                    row.height_least,
                    of.iter().filter_map(|sample| sample.height_least).map(|height| height.0).min()
                );
                let greatest = of.iter().filter_map(|sample| sample.height_greatest).map(|height| height.0).max();
                assert_eq!(row.height_greatest, greatest);
            }
        }
    }
}
