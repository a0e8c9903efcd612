//! Messages that leave at the same time and share uplinks, downlinks and links, with max-min fair rates.
//!
//! Rates change when a message begins or ends. All rates are constant between two changes, so the rest of each message follows without a
//! step of time. Each change computes the rates of all messages anew.

use crate::{
    actors::{ActorId, Message, NodeId, SimTime},
    ledger::codec::{LoadError, Loader, Save, Saver, saved},
};
use std::{collections::BTreeMap, mem, time::Duration};

/// A capacity that several messages share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Resource {
    Uplink(NodeId),
    Downlink(NodeId),
    Link(NodeId, NodeId),
}

/// A message that is leaving its sender.
#[derive(Clone, Debug)]
pub struct Flow {
    pub(in crate::sim) from: ActorId,
    pub(in crate::sim) to: ActorId,
    /// The receiver's generation when the message began to leave.
    pub(in crate::sim) generation: u32,
    pub(in crate::sim) message: Message,
    /// The time of each copy between the departure of the last byte and its arrival.
    pub(in crate::sim) after: Vec<Duration>,
    /// Bytes of the whole message.
    size: u64,
    /// Bytes that have not left yet.
    rest: f64,
    /// Bytes per second.
    rate: f64,
}

/// All messages that are leaving, in the order in which they began.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    /// Bytes per second of uplinks by node. Empty if uplinks have no limit.
    up: Vec<u64>,
    /// Bytes per second of downlinks by node. Empty if downlinks have no limit.
    down: Vec<u64>,
    /// Bytes per second of each direction of a link.
    link: Option<u64>,
    all: Vec<Flow>,
    /// The instant for which `rest` of each message holds.
    at: SimTime,
    /// The instant of the next change.
    due: Option<SimTime>,
}

impl Flow {
    /// A message of `size` bytes that begins to leave.
    pub(in crate::sim) fn new(
        (from, to, generation): (ActorId, ActorId, u32),
        message: Message,
        size: u64,
        after: Vec<Duration>,
    ) -> Self {
        Self { from, to, generation, message, after, size, rest: size as f64, rate: 0.0 }
    }
}

impl Flows {
    /// No messages, with these rates.
    pub(super) fn new(up: &[u64], down: &[u64], link: Option<u64>) -> Self {
        let at = SimTime::default();
        Self { up: up.to_vec(), down: down.to_vec(), link, all: Vec::new(), at, due: None }
    }

    /// The messages that are leaving.
    pub(super) fn all(&self) -> &[Flow] {
        &self.all
    }

    pub(super) fn all_mut(&mut self) -> &mut [Flow] {
        &mut self.all
    }

    /// The capacities that a message between two nodes uses, in bytes per second.
    fn limits(&self, from: NodeId, to: NodeId) -> impl Iterator<Item = (Resource, u64)> {
        let of = |rates: &[u64], node: NodeId, shared| rates.get(node.0 as usize).map(|rate| (shared, *rate));
        let link = self.link.map(|rate| (Resource::Link(from, to), rate));
        let ends = [of(&self.up, from, Resource::Uplink(from)), of(&self.down, to, Resource::Downlink(to)), link];
        ends.into_iter().flatten()
    }

    /// Returns true if a message takes no time: it is alone at both ends, and all its bytes leave within less than a microsecond.
    pub(super) fn is_instant(&self, from: NodeId, to: NodeId, size: u64) -> bool {
        self.limits(from, to).all(|(_, rate)| u128::from(size) * 1_000_000 < u128::from(rate))
            && self.all.iter().all(|flow| flow.from.node != from && flow.to.node != to)
    }

    /// Adds a message that begins to leave now. Returns the time at which to call [`Flows::departed`], if no such call is scheduled yet.
    pub(super) fn begin(&mut self, now: SimTime, flow: Flow) -> Option<SimTime> {
        self.advance(now);
        self.all.push(flow);
        (self.due.replace(now) != Some(now)).then_some(now)
    }

    /// Removes and returns the messages that have left by now, with the time of the next call. Does nothing if this is not the time of the
    /// next change: a change in between has replaced the call.
    pub(super) fn departed(&mut self, now: SimTime) -> (Vec<Flow>, Option<SimTime>) {
        if self.due != Some(now) {
            return (Vec::new(), None);
        }
        self.advance(now);
        // Rounding leaves less than this part of a message.
        let (departed, all) =
            mem::take(&mut self.all).into_iter().partition(|flow| flow.rest <= 1e-9 * flow.size as f64);
        self.all = all;
        self.set_rates();
        let end = |flow: &Flow| now + Duration::from_micros((flow.rest / flow.rate * 1e6).ceil().max(1.0) as u64);
        self.due = self.all.iter().map(end).min();
        (departed, self.due)
    }

    fn advance(&mut self, now: SimTime) {
        let seconds = now.since(self.at).as_secs_f64();
        self.all.iter_mut().for_each(|flow| flow.rest -= flow.rate * seconds);
        self.at = now;
    }

    fn set_rates(&mut self) {
        let of: Vec<Vec<(Resource, u64)>> =
            self.all.iter().map(|flow| self.limits(flow.from.node, flow.to.node).collect()).collect();
        for (flow, rate) in self.all.iter_mut().zip(max_min(&of)) {
            flow.rate = rate;
        }
    }

    /// Appends what changes while a run goes on.
    pub(super) fn save(&self, out: &mut Saver) {
        let Self { up: _, down: _, link: _, all, at, due } = self;
        all.save(out);
        at.save(out);
        due.save(out);
    }

    /// Continues from the saved values of flows that began like these.
    pub(super) fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        (self.all, self.at, self.due) = Save::load(from)?;
        Ok(())
    }
}

/// The max-min fair rate of each message, by the capacities that it uses (progressive filling). All rates grow alike until a capacity is
/// full. The rates of the messages that use it are then final.
fn max_min<S: Copy + Ord>(of: &[Vec<(S, u64)>]) -> Vec<f64> {
    let mut capacities: BTreeMap<S, Capacity> = BTreeMap::new();
    for (index, limits) in of.iter().enumerate() {
        for (what, rate) in limits {
            let capacity = capacities.entry(*what).or_insert_with(|| Capacity::new(*rate));
            capacity.growing += 1;
            capacity.messages.push(index);
        }
    }
    let mut rates = vec![f64::INFINITY; of.len()];
    loop {
        let growing = capacities.values_mut().filter(|capacity| capacity.growing > 0);
        let Some(full) = growing.min_by(|one, other| one.share().total_cmp(&other.share())) else { return rates };
        let (rate, messages) = (full.share(), mem::take(&mut full.messages));
        for index in messages {
            if rates[index] < f64::INFINITY {
                continue;
            }
            rates[index] = rate;
            for (what, _) in &of[index] {
                if let Some(capacity) = capacities.get_mut(what) {
                    capacity.rest -= rate;
                    capacity.growing -= 1;
                }
            }
        }
    }
}

/// A capacity while rates grow.
struct Capacity {
    /// Bytes per second that no final rate uses.
    rest: f64,
    /// The number of messages whose rates still grow.
    growing: usize,
    /// The indexes of all messages that use it.
    messages: Vec<usize>,
}

impl Capacity {
    fn new(rate: u64) -> Self {
        Self { rest: rate as f64, growing: 0, messages: Vec::new() }
    }

    /// The rate of each growing message at which the capacity is full.
    fn share(&self) -> f64 {
        (self.rest / self.growing as f64).max(0.0)
    }
}

saved!(struct Flow { from, to, generation, message, after, size, rest, rate });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::Role;
    use proptest::prelude::*;

    fn flow(from: u32, to: u32, size: u64) -> Flow {
        let [from, to] = [from, to].map(|node| ActorId { node: NodeId(node), role: Role::Peer });
        Flow::new((from, to, 0), Message::StatusRequest, size, vec![Duration::ZERO])
    }

    /// The time at which the last byte of each message leaves, by the index in `begins`.
    fn ends(mut flows: Flows, begins: &[(u64, u32, u32, u64)]) -> Vec<u64> {
        let mut ends = vec![0; begins.len()];
        let mut coming: Vec<(u64, usize)> = begins.iter().enumerate().map(|(index, begin)| (begin.0, index)).collect();
        coming.sort_unstable();
        let (mut coming, mut ask) = (coming.into_iter().peekable(), BTreeMap::<u64, ()>::new());
        loop {
            let next = ask.keys().next().copied();
            match coming.peek() {
                Some((at, index)) if next.is_none_or(|next| *at <= next) => {
                    let (_, from, to, size) = begins[*index];
                    let one = Flow { generation: *index as u32, ..flow(from, to, size) };
                    if let Some(at) = flows.begin(SimTime::from_micros(*at), one) {
                        ask.insert(at.micros(), ());
                    }
                    coming.next();
                }
                _ => {
                    let Some((now, ())) = ask.pop_first() else { return ends };
                    let (departed, again) = flows.departed(SimTime::from_micros(now));
                    departed.iter().for_each(|flow| ends[flow.generation as usize] = now);
                    ask.extend(again.map(|at| (at.micros(), ())));
                }
            }
        }
    }

    /// The fluid model: messages that begin together on one uplink have equal rates.
    #[test]
    fn messages_of_one_uplink_end_as_the_fluid_model_says() {
        let ends = ends(Flows::new(&[1_000; 4], &[], None), &[(0, 0, 1, 1_000), (0, 0, 2, 2_000), (0, 0, 3, 3_000)]);
        // 1,000 bytes of each by 3 s, 1,000 of two by 5 s, 1,000 of one by 6 s.
        assert_eq!(ends, [3_000_000, 5_000_000, 6_000_000]);
    }

    /// Both ends: node 0 sends to 2 and 3, node 1 to 3, whose downlink is the narrowest.
    #[test]
    fn a_rate_that_one_message_cannot_use_goes_to_the_others() {
        let (up, down) = ([900, 900, 1, 1], [9_000, 9_000, 9_000, 600]);
        let flows = Flows::new(&up, &down, None);
        let of = [(0, 2), (0, 3), (1, 3)].map(|(from, to)| flows.limits(NodeId(from), NodeId(to)).collect());
        assert_eq!(max_min(&of), [600.0, 300.0, 300.0]);
        assert!(Flows::new(&[u64::MAX], &[u64::MAX; 2], None).is_instant(NodeId(0), NodeId(1), 1 << 20));
        assert!(!Flows::new(&[1 << 20], &[], None).is_instant(NodeId(0), NodeId(1), 1 << 20));
    }

    proptest! {
        /// No capacity carries more than it can. Each message uses a full capacity in which no other message has a higher rate.
        #[test]
        fn rates_are_max_min_fair(
            up in prop::collection::vec(1..1_000_000_u64, 5),
            down in prop::collection::vec(1..1_000_000_u64, 5),
            link in prop::option::of(1..1_000_000_u64),
            pairs in prop::collection::vec((0..5_u32, 0..5_u32), 1..40),
        ) {
            let flows = Flows::new(&up, &down, link);
            let of: Vec<Vec<(Resource, u64)>> =
                pairs.iter().map(|(from, to)| flows.limits(NodeId(*from), NodeId(*to)).collect()).collect();
            let rates = max_min(&of);
            let by = |what: Resource| {
                let of = of.iter().zip(&rates).filter(move |(limits, _)| limits.iter().any(|(one, _)| *one == what));
                of.map(|(_, rate)| *rate).collect::<Vec<f64>>()
            };
            for (limits, rate) in of.iter().zip(&rates) {
                let mut is_held = false;
                for (what, limit) in limits {
                    let (sum, limit) = (by(*what).iter().sum::<f64>(), *limit as f64);
                    prop_assert!(sum <= limit * (1.0 + 1e-9), "{:?} carries {} of {}", what, sum, limit);
                    let is_highest = by(*what).iter().all(|other| *other <= rate * (1.0 + 1e-9));
                    is_held |= sum >= limit * (1.0 - 1e-9) && is_highest;
                }
                prop_assert!(is_held, "{} could be more", rate);
            }
        }

        /// No message is faster than its size divided by the rate, and the uplink is never idle while a message is leaving.
        #[test]
        fn no_message_is_faster_than_its_size_and_no_uplink_is_idle_in_vain(
            rate in 1_000..1_000_000_u64,
            begins in prop::collection::vec((0..2_000_000_u64, 1..100_000_u64), 1..25),
        ) {
            let begins: Vec<(u64, u32, u32, u64)> =
                (1..).zip(&begins).map(|(to, (at, size))| (*at, 0, to, *size)).collect();
            let ends = ends(Flows::new(&[rate; 30], &[], None), &begins);
            for ((at, _, _, size), end) in begins.iter().zip(&ends) {
                prop_assert!(u128::from(end - at) * u128::from(rate) >= u128::from(*size) * 1_000_000);
            }
            // All servers that are never idle while there is work finish it at the same time.
            let mut sorted = begins.clone();
            sorted.sort_unstable();
            let busy = sorted.iter().fold(0.0_f64, |busy, (at, .., size)| {
                busy.max(*at as f64) + *size as f64 * 1e6 / rate as f64
            });
            let last = *ends.iter().max().unwrap_or(&0) as f64;
            prop_assert!((last - busy).abs() <= 2.0 * begins.len() as f64 + 1.0, "{} and {}", last, busy);
        }
    }
}
