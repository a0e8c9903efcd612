//! The model of a delegate: when it asks its relay, whether it forges, and what. Source: consensus.md 2.

use super::{
    Case, ModelContext,
    state::{PeerModel, name},
    step::Cause,
};
use crate::{
    actors::{
        Event, Message, Role, SimTime,
        message::{NetworkState, NetworkStatus, Transactions},
    },
    check::conduct,
    ledger::Link,
    protocol::{Block, Height, PublicKey, Slot},
};
use std::{sync::Arc, time::Duration};

/// A model of the knowledge of a node's forger.
#[derive(Clone)]
pub(super) struct DelegateModel {
    /// The key of the node's own delegate.
    own: Option<PublicKey>,
    /// The keys that it forges with: its own, and others that a fault adds.
    keys: Vec<PublicKey>,
    /// The slot of its open question to the relay, the height of the tip that it knew, and the time of its last request.
    asked: Option<(Slot, Height, SimTime)>,
    /// The network state that allowed it to forge.
    may: Option<NetworkState>,
    /// True if it may have stopped waiting for the relay's answer.
    gives_up: bool,
    /// The running slot, if it is the delegate's own.
    turn: Option<Turn>,
    /// The last slot looked at.
    slot: Option<Slot>,
    /// The time until which answers may come to questions that it asked while it deviated.
    quiet_until: SimTime,
}

#[derive(Clone)]
struct Turn {
    slot: Slot,
    asked: bool,
    /// The block it would follow.
    tip: Arc<Link>,
}

impl DelegateModel {
    pub(super) fn new(own: Option<PublicKey>) -> Self {
        Self {
            own,
            keys: own.into_iter().collect(),
            asked: None,
            may: None,
            gives_up: false,
            turn: None,
            slot: None,
            quiet_until: SimTime::default(),
        }
    }

    /// Begins or ceases to forge with a further key.
    fn spare(&mut self, on: bool, key: PublicKey) {
        match (on, self.keys.iter().rposition(|known| *known == key)) {
            (true, _) => self.keys.push(key),
            (false, Some(index)) => drop(self.keys.remove(index)),
            (false, None) => {}
        }
    }

    /// A fault no longer makes an actor of the node deviate.
    pub(super) fn mended(&mut self, _: Role) {
        self.turn = None;
        self.slot = None;
    }

    /// Judges the use of own slots. If the round of the tip gives a slot to the delegate from its beginning to a second after the
    /// settling time, the delegate must ask its relay for the state of the network. Two polls are at most a second apart.
    pub(super) fn time_passes(&mut self, case: &mut Case<'_>, peer: &PeerModel, honest: bool) {
        if self.keys.is_empty() {
            return;
        }
        let slots = case.known.tree.slots();
        let timely = case.known.timely[case.step.actor.node.0 as usize];
        if !honest
            || !timely
            || matches!(case.step.cause, Cause::Begins | Cause::Start | Cause::Deviates(_) | Cause::Spare(..))
        {
            self.turn = None;
            self.slot = None;
            return;
        }
        let running = slots.slot(case.step.local.seconds());
        if let Some(turn) = &self.turn {
            let settling = Duration::from_secs(case.known.rules().node.settling_s.into());
            let ends = SimTime::from_seconds(slots.start(turn.slot)) + settling + Duration::from_secs(1);
            if case.step.local > ends {
                case.report.judge(&conduct::TURN, turn.asked, || {
                    format!("slot {} was its own, {:?} its tip, and it did not ask its relay", turn.slot, turn.tip)
                });
                self.turn = None;
            } else if !turn.tip.is(&peer.tip) && !owns(case.known, &peer.tip, turn.slot, &self.keys) {
                self.turn = None;
            }
        }
        let before = self.slot.replace(running);
        if before.is_none_or(|before| before == running) {
            return;
        }
        // The tip has not moved since the slot began: every move is a step.
        let own = |slot: Slot| owns(case.known, &peer.tip, slot, &self.keys);
        let twice = own(Slot(running.0.saturating_sub(1)));
        let first = before.is_some_and(|before| before.0 + 1 == running.0);
        if own(running) && !twice && first {
            self.turn = Some(Turn { slot: running, asked: false, tip: peer.tip.clone() });
        }
    }

    pub(super) fn judge(&mut self, case: &mut Case<'_>) {
        if let Cause::Spare(on, key) = case.step.cause {
            return self.spare(on, key);
        }
        if self.keys.is_empty() {
            return;
        }
        match &case.step.cause {
            // It receives the other keys again.
            Cause::Begins => *self = Self::new(self.own),
            Cause::Message(from, message) if from.node == case.step.actor.node => match message {
                Message::Round(view) => {
                    self.asks_for_state(case, view);
                }
                Message::NetworkState(state) => self.decides(case, state),
                Message::ForgingTransactions(chosen) => self.makes(case, chosen),
                _ => {}
            },
            _ => {}
        }
        if case.report.muted {
            (self.asked, self.may) = (None, None);
            self.quiet_until = case.step.local + Duration::from_secs(30);
            return;
        }
        if let Some(event) = case.left.events().find(|event| matches!(event, Event::BlockForged(_))) {
            case.report.breach(&conduct::MADE, || format!("it told {event:?} out of turn"));
        }
        for (_, message) in case.left.sent() {
            if matches!(
                message,
                Message::NetworkStateRequest | Message::ForgingTransactionsRequest | Message::Forged(_)
            ) {
                case.report.breach(&conduct::MADE, || format!("it told its relay {} out of turn", name(message)));
            }
        }
        // The delegate gives up if the relay does not answer for four seconds. The model does not know at which wake-up.
        let late = self.asked.is_some_and(|(.., at)| case.step.local >= at + Duration::from_secs(4));
        self.gives_up |= late && matches!(case.step.cause, Cause::Wake(_));
    }

    /// Judges the request for the state of the network. It comes only in an own slot, and not before the slot's third
    /// second unless slots were missed.
    fn asks_for_state(&mut self, case: &mut Case<'_>, view: &crate::actors::message::RoundView) {
        let asks =
            case.left.take_own(Role::Peer, |message| matches!(message, Message::NetworkStateRequest).then_some(()));
        if asks.is_none() {
            return;
        }
        let slots = case.known.tree.slots();
        let slot = slots.slot(case.step.local.seconds());
        let own = self.keys.iter().any(|key| view.round.owns(slot, key)) && view.tip_slot < slot;
        let settling = case.known.rules().node.settling_s;
        let earliest = slots.start(Slot(view.tip_slot.0 + 1)).0 + settling;
        case.report.judge(&conduct::TURN, own && case.step.local.seconds().0 >= earliest, || {
            format!("it asked to forge in slot {slot}, at {}, on a tip of slot {}", case.step.local, view.tip_slot)
        });
        self.asked = Some((slot, view.tip_height, case.step.local));
        (self.may, self.gives_up) = (None, false);
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.slot == slot) {
            turn.asked = true;
        }
    }

    fn decides(&mut self, case: &mut Case<'_>, state: &NetworkState) {
        let asks = case
            .left
            .take_own(Role::Peer, |message| matches!(message, Message::ForgingTransactionsRequest).then_some(()));
        let suspended = case.left.take_event(|event| match event {
            Event::ForgingSuspended { reached, in_quorum } => Some((*reached, *in_quorum)),
            _ => None,
        });
        if self.asked.is_none() || self.may.is_some() {
            return;
        }
        if self.gives_up && asks.is_none() && suspended.is_none() {
            self.asked = None;
            return;
        }
        let against = state.over_height + state.forked;
        let all = state.in_quorum + against;
        let enough = match state.status {
            NetworkStatus::ColdStart | NetworkStatus::BelowMinimumPeers => false,
            NetworkStatus::Test => true,
            NetworkStatus::Default => {
                all > 0
                    && 100 * u64::from(state.in_quorum) >= u64::from(case.known.rules().quorum_percent) * u64::from(all)
            }
        };
        let said = (!enough).then_some((state.reached, state.in_quorum));
        case.report.judge(&conduct::DECIDED, asks.is_some() == enough && suspended == said, || {
            format!(
                "told {state:?}, it {}, and said {suspended:?}",
                if asks.is_some() { "went on" } else { "did not forge" }
            )
        });
        if asks.is_some() {
            self.may = Some(state.clone());
            self.asked = self.asked.map(|(slot, height, _)| (slot, height, case.step.local));
            self.gives_up = false;
        } else {
            self.asked = None;
        }
    }

    fn makes(&mut self, case: &mut Case<'_>, chosen: &Transactions) {
        let event = case.left.take_event(|event| match event {
            Event::BlockForged(block) => Some(block),
            _ => None,
        });
        let sent = case.left.take_own(Role::Peer, |message| match message {
            Message::Forged(block) => Some(block),
            _ => None,
        });
        let (Some((slot, tip_height, _)), Some(state)) = (self.asked.take(), self.may.take()) else {
            let quiet = case.step.local < self.quiet_until;
            case.report
                .judge(&conduct::MADE, sent.is_none() || quiet, || "it made a block without a request".to_owned());
            return;
        };
        if self.gives_up && sent.is_none() && event.is_none() {
            return;
        }
        let slots = case.known.tree.slots();
        let ends = slots.start(Slot(slot.0 + 1)).0;
        let least = case.known.rules().node.least_seconds_left;
        let in_time = slots.slot(case.step.local.seconds()) == slot && ends - case.step.local.seconds().0 >= least;
        let told = event.is_some() || !case.known.rules().node.forged_before_accepted;
        case.report.judge(&conduct::MADE, sent.is_some() == in_time && (told || !in_time), || {
            format!(
                "transactions came {} in slot {slot}, and it made {sent:?}",
                if in_time { "in time" } else { "too late" }
            )
        });
        let Some(block) = sent else { return };
        let wrong = wrong_in_block(case.known, block, &self.keys, slot, tip_height, &state, chosen);
        case.report.judge(&conduct::MADE, wrong.is_none(), || wrong.unwrap_or_default().to_owned());
    }
}

/// Returns true if a slot after the tip's belongs to a delegate with one of these keys.
fn owns(known: &ModelContext, tip: &Arc<Link>, slot: Slot, keys: &[PublicKey]) -> bool {
    let tip_slot = known.tree.slots().slot(tip.block().header.timestamp);
    slot > tip_slot && keys.iter().any(|key| known.tree.applied(tip).state.round().owns(slot, key))
}

fn wrong_in_block(
    known: &ModelContext,
    block: &Arc<Block>,
    keys: &[PublicKey],
    slot: Slot,
    tip_height: Height,
    state: &NetworkState,
    chosen: &Transactions,
) -> Option<&'static str> {
    let (header, milestones) = (&block.header, &known.tree.config().milestones);
    let terms = milestones.at(Height(tip_height.0 + 1));
    let fees: u64 = chosen.iter().map(|one| one.fee().value()).sum();
    let checks = [
        (keys.contains(&header.generator), "it is not signed by the delegate"),
        (header.timestamp == known.tree.slots().start(slot), "its time is not the beginning of its slot"),
        (header.height.0 == state.height.0 + 1, "its height does not follow the relay's"),
        (header.previous == Some(state.tip), "it does not follow the relay's tip"),
        (header.reward == terms.reward, "its reward is not the milestone's"),
        (header.version == terms.block.version, "its version is not the milestone's"),
        (
            block.transactions.iter().map(|one| one.id()).eq(chosen.iter().map(|one| one.id())),
            "it does not hold what the pool chose",
        ),
        (header.number_of_transactions as usize == chosen.len(), "it counts its transactions wrong"),
        (header.total_fee.value() == fees, "its fees are not those of its transactions"),
        (
            header.payload_length as usize == 32 * chosen.len(),
            "its payload length is not 32 bytes for each transaction",
        ),
    ];
    checks.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what)
}
