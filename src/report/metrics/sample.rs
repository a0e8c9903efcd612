//! The figures of a network at the end of a slot.

use crate::protocol::{Height, Slot};

/// The sample at the end of one slot. The members that need a live node are empty while none is live.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub slot: Slot,
    pub down: u32,
    pub agreement: Option<f64>,
    pub weight_agreement: Option<f64>,
    pub branches: u32,
    pub depth: u32,
    pub pool_mean: Option<f64>,
    pub pool_max: Option<u32>,
    pub height_least: Option<Height>,
    pub height_greatest: Option<Height>,
}

/// The lesser of two numbers, as far as they are there.
pub(super) fn lesser<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}
