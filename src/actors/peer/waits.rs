//! The phases of a peer that only an event ends. Source: consensus.md 2.2, 3.5, 6.
//!
//! Every wait for another node has a timer, because a message may be lost. So a message under way ends no phase here: the timer
//! does.

use super::{
    Peer,
    discovery::Meeting,
    gossip::GOSSIP_HOPS,
    inquiry::{OpenInquiry, Purpose},
    limits::LOOK_AGAIN,
    ping::{Ping, PingFor},
    sync,
};
use crate::{
    actors::{
        NodeId, SimTime, Wake,
        wait::{End, Phase, QuestionPurpose, Reason, Wait},
    },
    ledger::rules::Gossip,
};
use std::time::Duration;

impl Peer {
    /// Adds the phases that the peer is in at an instant of its node's clock, between two inputs after its start.
    pub fn waits(&self, now: SimTime, waits: &mut Vec<Wait>) {
        self.waits_in_sync(now, waits);
        self.waits_for_peers(now, waits);
        self.waits_in_pings(now, waits);
        for open in self.questions() {
            waits.push(Wait::new(question(open), [End::Wake(Wake::Unanswered, Some(open.until))]));
        }
        for node in self.probes.keys() {
            waits.push(Wait::new(Phase::Probe(*node), [End::Phase(Phase::Question(QuestionPurpose::Probe, *node))]));
        }
        if !self.held_back.is_empty() {
            waits.push(Wait::new(Phase::HoldingBack, [woken(Wake::Throttled, now, LOOK_AGAIN)]));
        }
        if self.bundle.is_some() {
            waits.push(Wait::new(Phase::Bundling, [woken(Wake::Bundle, now, self.bundle_time())]));
        }
        self.waits_to_pass_on(now, waits);
    }

    fn waits_in_sync(&self, now: SimTime, waits: &mut Vec<Wait>) {
        match &self.sync.phase {
            sync::Phase::Starting => waits.push(Wait::new(Phase::Starting, [End::Phase(Phase::Discovery)])),
            sync::Phase::Idle => {
                let timer = self.timed.then(|| woken(Wake::WakeUp, now, self.wake_up_time()));
                waits.push(Wait::new(Phase::Idle, timer));
            }
            // A peer is between two steps only while it handles an input.
            sync::Phase::Syncing => waits.push(Wait::new(Phase::Syncing, [])),
            sync::Phase::Downloading(download) => {
                let all = download.chunks.iter().enumerate();
                let missing = all.filter(|(_, chunk)| !chunk.over).map(|(place, _)| place);
                let first = missing.clone().next().map(|place| End::Phase(Phase::Chunk(place)));
                waits.push(Wait::new(Phase::Downloading, first));
                for place in missing {
                    let asked = self.questions().filter(|open| open.purpose == Purpose::Chunk(place));
                    waits.push(Wait::new(Phase::Chunk(place), asked.map(|open| End::Phase(question(open)))));
                }
            }
            sync::Phase::Halted => waits.push(Wait::new(Phase::Halted, [End::Phase(Phase::HealthCheck)])),
            sync::Phase::Recovering => {
                waits.push(Wait::new(Phase::Recovering, self.waits_for_ping(PingFor::Recovery)));
            }
        }
        if self.watch.checking {
            let discovery = self.discovery.as_ref().filter(|discovery| discovery.for_health);
            let discovery = discovery.map(|_| End::Phase(Phase::Discovery));
            waits.push(Wait::new(Phase::HealthCheck, discovery.or(self.waits_for_ping(PingFor::Health))));
        }
    }

    /// Discoveries, and nodes that are no peers yet.
    fn waits_for_peers(&self, now: SimTime, waits: &mut Vec<Wait>) {
        if let Some(discovery) = &self.discovery {
            let wake = Wake::DiscoveryOver { step: discovery.step };
            let answering = self.answer_timeout();
            let time = if discovery.asking { answering } else { self.connecting_timeout() + answering };
            waits.push(Wait::new(Phase::Discovery, [woken(wake, now, time)]));
        }
        let looks = self.node_rules().discovery || self.node_rules().retry_dropped_peers;
        if looks && !self.neighbours.knows_nobody() {
            let longest = self.node_rules().discovery_ms.max(self.node_rules().discovery_below_reach_ms);
            let ends = self.or_at_start(woken(Wake::Discover, now, Duration::from_millis(longest.into())));
            waits.push(Wait::new(Phase::BetweenDiscoveries, ends));
        }
        for (node, meeting) in &self.newcomers {
            let end = match meeting {
                Meeting::Connecting(_) | Meeting::Asked => Phase::Question(QuestionPurpose::Newcomer, *node),
                Meeting::Answered => Phase::Probe(*node),
            };
            waits.push(Wait::new(Phase::Newcomer(*node), [End::Phase(end)]));
        }
    }

    /// The ends of a phase whose timer is `end`. The timer is set only after a peer has looked for peers to start with, so the end of that
    /// discovery ends the phase, too.
    fn or_at_start(&self, end: End) -> impl Iterator<Item = End> {
        let starts = self.discovery.as_ref().filter(|discovery| discovery.for_start.is_some());
        std::iter::once(end).chain(starts.map(|_| End::Phase(Phase::Discovery)))
    }

    fn waits_in_pings(&self, now: SimTime, waits: &mut Vec<Wait>) {
        let time = self.answer_timeout().max(Duration::from_millis(self.node_rules().forging_ping_ms.into()));
        for ping in &self.pings.running {
            let over = woken(Wake::PingOver { ping: ping.number }, now, time);
            let mut found = 0;
            for node in self.awaited(ping) {
                // After its time, a ping still waits for peers that are being verified.
                let ends = [over, End::Phase(Phase::Probe(node))];
                waits.push(Wait::new(Phase::Ping(reason(ping.purpose), node), ends));
                found += 1;
            }
            if found < ping.awaited {
                // The ping waits for a node that is no peer any more. Time ends no such wait.
                waits.push(Wait::new(Phase::Ping(reason(ping.purpose), self.node), []));
            }
            if !ping.unasked.is_empty() {
                let again = woken(Wake::PingAgain { ping: ping.number }, now, LOOK_AGAIN);
                waits.push(Wait::new(Phase::PingHeldBack(reason(ping.purpose)), [again]));
            }
        }
    }

    /// The peers that have not answered a ping.
    fn awaited(&self, ping: &Ping) -> impl Iterator<Item = NodeId> {
        let number = ping.number;
        self.neighbours
            .all()
            .iter()
            .filter(move |neighbour| neighbour.answered < number)
            .map(|neighbour| neighbour.node)
    }

    /// The end of a ping of all peers that runs for a reason.
    fn waits_for_ping(&self, purpose: PingFor) -> Option<End> {
        let ping = self.pings.running.iter().find(|ping| ping.purpose == purpose)?;
        let node = self.awaited(ping).next().unwrap_or(self.node);
        Some(End::Phase(Phase::Ping(reason(purpose), node)))
    }

    fn questions(&self) -> impl Iterator<Item = &OpenInquiry> + Clone {
        self.inquiries.open.iter().map(|(_, open)| open)
    }

    /// Adds the phase of a block that was accepted when it was first seen and is to be relayed.
    fn waits_to_pass_on(&self, now: SimTime, waits: &mut Vec<Wait>) {
        let Some(passing) = &self.passing else { return };
        let began = self.tree.slots().start(self.slot(passing.first));
        let is_passed_on = self.rules().gossip == Gossip::Reference
            && passing.is_of(self.tip.block())
            && self.timed_from == passing.first
            && passing.block.header.timestamp >= began
            && passing.seen < GOSSIP_HOPS;
        let at = passing.first + self.gossip_wait();
        if is_passed_on && now < at {
            let wake = Wake::Gossip(passing.block.id);
            waits.push(Wait::new(Phase::PassingOn, [End::Wake(wake, Some(at))]));
        }
    }
}

/// A wake-up that is already scheduled and comes within a time from now.
fn woken(wake: Wake, now: SimTime, within: Duration) -> End {
    End::Wake(wake, Some(now + within))
}

fn question(open: &OpenInquiry) -> Phase {
    let asked = match open.purpose {
        Purpose::Newcomer => QuestionPurpose::Newcomer,
        Purpose::Probe => QuestionPurpose::Probe,
        Purpose::Chunk(place) => QuestionPurpose::Chunk(place),
        Purpose::Body(id) => QuestionPurpose::Body(id),
    };
    Phase::Question(asked, open.to)
}

fn reason(purpose: PingFor) -> Reason {
    match purpose {
        PingFor::Forging => Reason::Forging,
        PingFor::Health => Reason::Health,
        PingFor::Recovery => Reason::Recovery,
    }
}
