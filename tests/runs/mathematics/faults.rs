//! The effect of faults on messages equals its closed form, and faults draw apart from each other.

use super::samples::{binomial, distributed, independent};
use dposlab::{
    actors::{Choices, NodeId},
    sim::{
        fault::MessageKind,
        network::interference::{Action, Interference, MessageRule},
    },
};
use std::{collections::BTreeMap, time::Duration};

const MESSAGES: usize = 60_000;

fn rule(action: Action, chance: f64, name: u64) -> MessageRule {
    MessageRule { kinds: Vec::new(), senders: None, receivers: None, chance, only: None, met: 0, action, name }
}

/// Faults in force, and the messages sent so far.
struct Judge {
    interference: Interference,
    sent: BTreeMap<(u32, u32), u64>,
}

impl Judge {
    fn new() -> Self {
        Self { interference: Interference::new(4), sent: BTreeMap::new() }
    }

    fn rule(&mut self, number: usize, action: Action, chance: f64) {
        self.interference.rule(number, rule(action, chance, number as u64));
    }

    fn judge(&mut self, from: u32, to: u32) -> (bool, Duration, usize) {
        let number = self.sent.entry((from, to)).or_default();
        *number += 1;
        let numbers = Choices::new(2).of(from.into()).of(to.into()).of(*number);
        let verdict = self.interference.judge(NodeId(from), NodeId(to), Some(MessageKind::Block), numbers);
        (verdict.lost, verdict.delay, verdict.copies.len())
    }
}

#[test]
fn dropped_delayed_and_doubled_messages_are_as_many_as_their_chances_say() {
    let mut faults = Judge::new();
    let (by, jitter) = (Duration::from_millis(100), Duration::from_millis(300));
    faults.rule(0, Action::Drop, 0.15);
    faults.rule(1, Action::Delay { by, jitter }, 0.5);
    faults.rule(2, Action::Duplicate { copies: 3, within: by }, 0.2);
    let there: Vec<_> = (0..MESSAGES).map(|_| faults.judge(0, 1)).collect();
    binomial(there.iter().filter(|verdict| verdict.0).count(), MESSAGES, 0.15);
    binomial(there.iter().filter(|verdict| verdict.1 > Duration::ZERO).count(), MESSAGES, 0.5);
    binomial(there.iter().filter(|verdict| verdict.2 == 3).count(), MESSAGES, 0.2);
    let delays: Vec<f64> =
        there.iter().filter(|verdict| verdict.1 > Duration::ZERO).map(|verdict| verdict.1.as_secs_f64()).collect();
    let uniform = |high: f64| move |x: f64| ((x - 0.1) / (high - 0.1)).clamp(0.0, 1.0);
    distributed(&delays, uniform(0.4), uniform(0.41));
    let numbers = |of: fn(&(bool, Duration, usize)) -> f64| there.iter().map(of).collect::<Vec<f64>>();
    let (lost, delayed) = (numbers(|verdict| f64::from(verdict.0)), numbers(|verdict| verdict.1.as_secs_f64()));
    independent(&lost.iter().copied().zip(delayed).collect::<Vec<_>>());
    independent(&lost.iter().copied().zip(numbers(|verdict| verdict.2 as f64)).collect::<Vec<_>>());
}

#[test]
fn neither_another_direction_nor_another_fault_moves_what_is_drawn() {
    let drops = || {
        let mut faults = Judge::new();
        faults.rule(0, Action::Drop, 0.3);
        faults
    };
    let mut alone = drops();
    let wanted: Vec<bool> = (0..5_000).map(|_| alone.judge(1, 0).0).collect();
    let (mut busy, mut crowded) = (drops(), drops());
    let jitter = Duration::from_millis(300);
    crowded.rule(1, Action::Delay { by: jitter, jitter }, 0.5);
    let mut both = Vec::new();
    for lost in &wanted {
        let other = busy.judge(0, 1).0;
        assert_eq!(busy.judge(1, 0).0, *lost, "messages the other way move nothing");
        assert_eq!(crowded.judge(1, 0).0, *lost, "another fault moves nothing");
        both.push((f64::from(other), f64::from(*lost)));
    }
    independent(&both);
}
