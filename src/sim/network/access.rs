//! The uplink and the downlink of a node, which all links of the node share.
//!
//! With `fifo`, messages leave their sender one after another. The downlink of the receiver then takes the size of each message divided
//! by its rate, in the order in which the last bytes come. A byte can pass the downlink while the next one leaves the uplink, so a
//! message that meets no other takes its size divided by the smaller rate. With `fair`, messages that leave at the same time share both
//! ends ([`Flows`]).

use super::{
    Busy,
    by_class::{ByClass, PerClass},
    fair::Flows,
};
use crate::{
    actors::{NodeId, SimTime},
    ledger::codec::{LoadError, Loader, Save, Saver},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes per second that a node's uplink or downlink carries.
pub type AccessRate = ByClass<u64>;

impl PerClass for u64 {
    const FORMS: &'static str = "a whole number of bytes per second, or a list with one such number for each class";
}

/// The way in which messages share a node's uplink and downlink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Messages pass one after another, at the full rate.
    #[default]
    Fifo,
    /// A node sends one message with blocks at a time, and the next one when this one has arrived. It takes its size divided by the
    /// smaller of the sender's uplink and the receiver's downlink. A downlink takes any number at the same time, and messages without
    /// blocks take no time.
    OneAtATime,
    /// Messages pass at the same time. Their rates are max-min fair: none can be higher without lowering one that is not higher.
    Fair,
}

/// The uplinks and downlinks of all nodes.
#[derive(Clone, Debug)]
pub(super) struct AccessLinks {
    sharing: Sharing,
    /// Bytes per second by node. Empty if uplinks have no limit.
    up: Vec<u64>,
    /// Bytes per second by node. Empty if downlinks have no limit.
    down: Vec<u64>,
    /// The time until which each uplink is busy.
    uplinks: Vec<Busy>,
    /// The time until which each downlink is busy.
    downlinks: Vec<Busy>,
    pub(super) flows: Flows,
}

/// The time that a message takes to leave its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Departure {
    /// The time at which the first byte leaves.
    pub(super) first: SimTime,
    /// The time at which the last byte leaves.
    pub(super) last: SimTime,
    /// The message waits for others.
    pub(super) waited: bool,
}

impl Departure {
    /// A message of which all bytes leave at once.
    pub(super) fn at_once(now: SimTime) -> Self {
        Self { first: now, last: now, waited: false }
    }
}

impl AccessLinks {
    /// The uplinks and downlinks of `nodes` nodes in these classes, or `None` if the model limits neither.
    pub(super) fn new(nodes: u32, classes: &[u16], model: &super::NetworkModel) -> Option<Self> {
        if model.uplink.is_none() && model.downlink.is_none() {
            return None;
        }
        let rates = |rate: &Option<AccessRate>| {
            let of = |node: u32| rate.as_ref().map(|rate| (*rate.of(classes.get(node as usize))).max(1));
            (0..nodes).map_while(of).collect::<Vec<u64>>()
        };
        let (up, down) = (rates(&model.uplink), rates(&model.downlink));
        let busy = |of: &Vec<u64>| vec![Busy::default(); of.len()];
        let flows = Flows::new(&up, &down, model.bandwidth);
        let uplinks = match model.sharing {
            Sharing::OneAtATime => vec![Busy::default(); nodes as usize],
            Sharing::Fifo | Sharing::Fair => busy(&up),
        };
        Some(Self { sharing: model.sharing, uplinks, downlinks: busy(&down), up, down, flows })
    }

    pub(super) fn is_fair(&self) -> bool {
        self.sharing == Sharing::Fair
    }

    pub(super) fn is_one_at_a_time(&self) -> bool {
        self.sharing == Sharing::OneAtATime
    }

    /// Returns true if messages wait for each other on the way into a node.
    pub(super) fn queues_downlinks(&self) -> bool {
        self.sharing == Sharing::Fifo && !self.down.is_empty()
    }

    /// Sends a message over the uplink, after those that were sent before. With `fair`, [`Flows`] decides the time later.
    pub(super) fn send(&mut self, now: SimTime, from: NodeId, size: u64) -> Departure {
        let from = from.0 as usize;
        let Some(rate) = self.up.get(from).filter(|_| !self.is_fair()) else { return Departure::at_once(now) };
        let busy = &mut self.uplinks[from];
        let (waited, first) = (busy.until > now, busy.until.max(now));
        Departure { first, last: busy.send(now, size, *rate), waited }
    }

    /// Sends a message when all that were sent before have arrived, at the smaller rate of both ends. [`AccessLinks::occupy`] has to
    /// follow.
    pub(super) fn send_alone(&self, now: SimTime, from: NodeId, to: NodeId, size: u64) -> Departure {
        let until = self.uplinks[from.0 as usize].until;
        let rates = [self.up.get(from.0 as usize), self.down.get(to.0 as usize)];
        let rate = rates.into_iter().flatten().min().copied().unwrap_or(u64::MAX);
        let first = until.max(now);
        Departure { first, last: Busy { until: first, part: 0 }.send(first, size, rate), waited: until > now }
    }

    /// The sender of a message is busy until the message arrives.
    pub(super) fn occupy(&mut self, from: NodeId, until: SimTime) {
        self.uplinks[from.0 as usize].until = until;
    }

    /// Takes a message whose first byte came to a node's downlink at `first`, and whose last byte comes now. Returns the time at which
    /// it has passed the downlink.
    pub(super) fn receive(&mut self, now: SimTime, to: NodeId, size: u64, first: SimTime) -> SimTime {
        let Some(rate) = self.down.get(to.0 as usize) else { return now };
        // Bytes of messages that come at the same time interleave, so the downlink can have begun with this message at `first`.
        self.downlinks[to.0 as usize].send(first, size, *rate).max(now)
    }
}

impl AccessLinks {
    /// Appends what changes while a run goes on.
    pub(super) fn save(&self, out: &mut Saver) {
        let Self { sharing: _, up: _, down: _, uplinks, downlinks, flows } = self;
        uplinks.save(out);
        downlinks.save(out);
        flows.save(out);
    }

    /// Continues from the saved values of links that began like these.
    pub(super) fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        for busy in [&mut self.uplinks, &mut self.downlinks] {
            let saved: Vec<Busy> = Save::load(from)?;
            if saved.len() != busy.len() {
                return Err(from.wrong("number of uplinks or downlinks", saved.len()));
            }
            *busy = saved;
        }
        self.flows.go_on(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::NetworkModel;
    use proptest::prelude::*;

    fn access(nodes: u32, up: u64, down: u64) -> AccessLinks {
        let (uplink, downlink) = (Some(AccessRate::All(up)), Some(AccessRate::All(down)));
        AccessLinks::new(nodes, &[], &NetworkModel { uplink, downlink, ..NetworkModel::default() })
            .expect("it is limited")
    }

    #[test]
    fn a_message_alone_takes_its_size_by_the_smaller_rate() {
        for (up, down, wanted) in [(1_000, 4_000, 2_000_000), (4_000, 1_000, 2_000_000), (1_000, 1_000, 2_000_000)] {
            let mut access = access(2, up, down);
            let now = SimTime::from_micros(7);
            let left = access.send(now, NodeId(0), 2_000);
            assert_eq!(access.receive(left.last, NodeId(1), 2_000, left.first), SimTime::from_micros(7 + wanted));
        }
    }

    proptest! {
        /// Neither end carries more than its rate in any time that begins with the first byte of a message. No message is faster than
        /// its size divided by the rate, and messages leave in order.
        #[test]
        fn no_end_carries_more_than_it_can(
            up in 1_000..100_000_u64,
            down in 1_000..100_000_u64,
            sent in prop::collection::vec((0..400_000_u64, 0..3_u32, 1..20_000_u64), 1..40),
        ) {
            let mut access = access(4, up, down);
            let mut now = 0;
            // Three senders and one receiver: (comes, first, size).
            let mut coming: Vec<(SimTime, SimTime, u64)> = Vec::new();
            let mut left_before = [SimTime::default(); 3];
            for (gap, from, size) in sent {
                now += gap;
                let at = SimTime::from_micros(now);
                let left = access.send(at, NodeId(from), size);
                prop_assert!(left.first >= left_before[from as usize].max(at), "one after another");
                prop_assert!(u128::from(left.last.micros() + 1 - now) * u128::from(up) >= u128::from(size) * 1_000_000);
                left_before[from as usize] = left.last;
                coming.push((left.last, left.first, size));
            }
            coming.sort_unstable();
            let all: Vec<(SimTime, SimTime, u64)> = coming
                .iter()
                .map(|(last, first, size)| (*first, access.receive(*last, NodeId(3), *size, *first), *size))
                .collect();
            for (from, ..) in &all {
                for (_, until, _) in &all {
                    let within = all.iter().filter(|(first, end, _)| first >= from && end <= until);
                    let bytes: u64 = within.map(|(.., size)| size).sum();
                    let time = u128::from(until.micros().saturating_sub(from.micros())) + 1;
                    prop_assert!(u128::from(bytes) * 1_000_000 <= time * u128::from(down) + 1_000_000);
                }
            }
        }
    }
}
