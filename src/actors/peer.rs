//! A peer: maintains its node's chain, accepts and relays blocks, exchanges messages with other peers, and serves its delegate as
//! relay. Source: consensus.md 2.2, 3 and 6.
//!
//! ```text
//!   pushed block ─► acceptance ─► chain (tip) ─► gossip            neighbours  who is there, as last verified
//!   downloaded ───►     │  └──────► fork: rollback                 ping        asks them all, in rounds
//!                       ▼                ▲                         verification  is a claimed tip signed, and forked?
//!   wake-up ──────► sync: download ──► health check ◄── missed     discovery   finds more of them
//!   delegate ─────► relay: round, network state                    limits      what one address may send
//! ```
//!
//! A neighbour's record is small and there is no tick: a peer that has nothing to do is woken once a minute to see
//! whether blocks still come in, and once in ten minutes to look for other peers.

mod acceptance;
mod announcing;
mod branches;
mod discovery;
mod draws;
mod endpoint;
mod fork;
mod gossip;
mod inquiry;
mod limits;
mod neighbours;
#[cfg(test)]
mod omissions;
mod ping;
mod relay;
mod sync;
mod verification;
mod waits;

use super::{
    ActorId, Choices, Effect, Event, Input, Message, NodeId, Role, SimTime, Wake,
    message::{AddTransactions, RequestId, Transactions},
    prefetch::{self, Prefetch},
};
use crate::{
    ledger::{BlockTree, Link, Rules, codec::saved, rules::NodeRules},
    protocol::{SignedTransaction, Slot},
};
use announcing::AnnouncedBlock;
use discovery::{Discovery, Newcomers};
use draws::{About, Decisions};
use endpoint::Endpoint;
use fork::ForkWatch;
use gossip::Passing;
use inquiry::Inquiries;
use limits::Limits;
use neighbours::Neighbours;
pub use neighbours::VerificationResult;
use ping::Pings;
use std::{sync::Arc, time::Duration};
use sync::SyncState;
use verification::{AskedBlocks, Probes};

/// Data of nodes below this number is kept in a table: most networks are no larger, and a table is the quickest.
const TABLED: u32 = 128;

/// The peer of one node. The fields that every message is compared with come first and together: with many peers, waiting for memory is
/// most of the work, and it comes in lines of 64 bytes.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct Peer {
    node: NodeId,
    /// True if the relay must still report, once, that the network starts cold.
    cold: bool,
    /// True while `limits` may hold blocked callers.
    blocks_callers: bool,
    /// Has caught up with the network since it started.
    started: bool,
    /// True while `sync` counts downloads in vain.
    in_vain: bool,
    tree: Arc<BlockTree>,
    tip: Arc<Link>,
    /// The block that is being passed around, and how often it was seen.
    passing: Option<Passing>,
    /// The instant at which the wake-up timer was last started.
    timed_from: SimTime,
    neighbours: Neighbours,
    /// Discoveries so far; here, so that what follows begins a line.
    discoveries: u32,
    /// The wake-up timer runs, from `timed_from`.
    timed: bool,
    /// A wake-up of the timer is in the queue: when the timer ends, or before.
    alarmed: bool,
    /// The instants at which blocks were last passed on, the latest last.
    pushed: [Option<SimTime>; 2],
    random: Decisions,
    limits: Limits,
    sync: SyncState,
    pings: Pings,
    probes: Probes,
    watch: ForkWatch,
    /// Messages that this peer has sent lately, where their number comes near a limit.
    sent: Limits,
    held_back: Vec<(NodeId, Message)>,
    /// Transactions' messages in the running second.
    transactions_sent: (SimTime, u32),
    /// Blocks last asked for.
    asked: Option<AskedBlocks>,
    inquiries: Inquiries,
    newcomers: Newcomers,
    discovery: Option<Discovery>,
    /// Transactions collected for one message; `None` where the next ones may go out at once.
    bundle: Option<Vec<Arc<SignedTransaction>>>,
    /// The last blocks that it has heard of by an announcement, or announced itself, the latest last.
    announced: Vec<AnnouncedBlock>,
}

impl Peer {
    /// A peer on `tip` of a running network. It is connected to the nodes `given`, which were all on `tip` when last verified; its own
    /// number among them does no harm. It draws from `choices`, which no other actor uses.
    pub fn new(
        node: NodeId,
        tree: Arc<BlockTree>,
        tip: Arc<Link>,
        given: impl Into<Arc<[NodeId]>>,
        choices: Choices,
    ) -> Self {
        let neighbours = Neighbours::connected(node, given.into(), tip.height());
        let cold = tree.rules().node.network_start;
        Self {
            node,
            tree,
            tip,
            random: Decisions::new(choices),
            neighbours,
            passing: None,
            pushed: [None; 2],
            pings: Pings::default(),
            probes: Probes::default(),
            asked: None,
            inquiries: Inquiries::default(),
            newcomers: Newcomers::default(),
            discovery: None,
            bundle: None,
            announced: Vec::new(),
            discoveries: 0,
            sync: SyncState::started(),
            watch: ForkWatch::default(),
            limits: Limits::default(),
            sent: Limits::default(),
            held_back: Vec::new(),
            transactions_sent: (SimTime::default(), 0),
            timed_from: SimTime::default(),
            timed: false,
            alarmed: false,
            cold,
            blocks_callers: false,
            started: true,
            in_vain: false,
        }
    }

    /// The peer of a node that starts late or restarts, on the chain that it has retained. It knows the addresses `given`, has no
    /// connection, and disregards pushed blocks until it has caught up.
    pub fn starting(
        node: NodeId,
        tree: Arc<BlockTree>,
        tip: Arc<Link>,
        given: impl Into<Arc<[NodeId]>>,
        choices: Choices,
    ) -> Self {
        let neighbours = Neighbours::alone(node, given.into());
        Self {
            neighbours,
            started: false,
            sync: SyncState::starting(),
            ..Self::new(node, tree, tip, Vec::new(), choices)
        }
    }

    /// Replaces the source of its random numbers by `choices`.
    pub fn draw_anew(&mut self, choices: Choices) {
        self.random = Decisions::new(choices);
    }

    /// Its node.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// All blocks, of all forks.
    pub fn tree(&self) -> &Arc<BlockTree> {
        &self.tree
    }

    /// An estimate of the bytes it takes beside its own size, without data that it shares with others.
    pub fn bytes(&self) -> usize {
        self.neighbours.bytes() + self.limits.bytes() + self.sent.bytes()
    }

    /// The tip of the node's chain.
    pub fn tip(&self) -> &Arc<Link> {
        &self.tip
    }

    /// Returns true if the node has caught up with the network since it started.
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// The nodes it is connected to, ascending.
    pub fn connected(&self) -> impl Iterator<Item = NodeId> {
        self.neighbours.numbers().iter().copied()
    }

    /// Returns the connected nodes, each with the last verification of its tip.
    pub fn records(&self) -> impl Iterator<Item = (NodeId, VerificationResult)> {
        self.neighbours.all().iter().map(|neighbour| (neighbour.node, neighbour.verified))
    }

    /// Handles one input. Appends the effects that the peer wants, in order.
    pub fn step(&mut self, now: SimTime, input: Input, effects: &mut Vec<Effect>) {
        match input {
            Input::Start => self.start(now, effects),
            Input::Wake(wake) => self.woken(now, wake, effects),
            Input::Submit { request, transactions } => self.to_pool(transactions, Some(request), effects),
            Input::Message { from, message } => self.read(now, from, &message, effects),
            Input::Reorganise(to) => self.reorganise(now, &to, effects),
        }
    }

    /// Handles a message as [`Peer::step`] does, but by reference: of most messages the peer retains hardly anything.
    pub fn read(&mut self, now: SimTime, from: ActorId, message: &Message, effects: &mut Vec<Effect>) {
        match from.node == self.node {
            true => self.told(now, message, effects),
            false => self.called(now, from.node, message, effects),
        }
    }

    fn say_status(&self, to: NodeId, effects: &mut Vec<Effect>) {
        let to = ActorId { node: to, role: Role::Peer };
        Effect::put(effects, || Effect::Send { to, message: Message::Status { tip: self.tip.block().clone() } });
    }

    fn start(&mut self, now: SimTime, effects: &mut Vec<Effect>) {
        if self.neighbours.knows_nobody() {
            return self.rest(now, effects);
        }
        if self.started {
            self.rest(now, effects);
            self.plan_first_discovery(now, effects);
        } else {
            self.find_peers_to_start_with(now, effects);
        }
    }

    fn woken(&mut self, now: SimTime, wake: Wake, effects: &mut Vec<Effect>) {
        match wake {
            Wake::Gossip(id) => self.gossip_again(now, &id, effects),
            Wake::PingOver { ping } => self.ping_over(now, ping, effects),
            Wake::PingAgain { ping } => self.send_pings(now, ping, effects),
            Wake::WakeUp => self.timer_rings(now, effects),
            Wake::Unanswered => self.see_unanswered(now, effects),
            Wake::Throttled => self.send_held_back(now, effects),
            Wake::Discover => self.discover_again(now, effects),
            Wake::DiscoveryOver { step } => self.discovery_over(now, step, effects),
            Wake::Bundle => self.bundle_over(now, effects),
            Wake::Forge { .. } | Wake::Behaviour { .. } => {}
        }
    }

    /// Handles a message from an actor of the same node.
    fn told(&mut self, now: SimTime, message: &Message, effects: &mut Vec<Effect>) {
        match message {
            Message::RoundRequest => self.tell(Role::Delegate, Message::Round(self.round_view().into()), effects),
            Message::NetworkStateRequest => self.ping_before_forging(now, effects),
            Message::ForgingTransactionsRequest => {
                self.tell(Role::Pool, Message::ChooseTransactions { tip: self.tip.clone() }, effects);
            }
            Message::Forged(block) => self.block_forged(now, block, effects),
            Message::WakeUp => self.forger_wakes(now, effects),
            Message::Broadcast(transactions) => self.broadcast(now, transactions, effects),
            // A client that controls the run sends it.
            Message::Block(block) => self.block_pushed(now, block, 0, effects),
            Message::Reorganised { dropped, .. } => self.drop_pending(dropped, effects),
            // Its own node sends a peer no other message.
            _ => {}
        }
    }

    /// Handles a message from another node's peer: a request, if its limits allow it, or an answer.
    fn called(&mut self, now: SimTime, from: NodeId, message: &Message, effects: &mut Vec<Effect>) {
        if let Some(endpoint) = Endpoint::of(message)
            && !self.lets_in(now, from, endpoint, effects)
        {
            return;
        }
        match message {
            Message::Block(block) => self.block_pushed(now, block, 1, effects),
            Message::Announcement(id) => self.hear_of(now, from, **id, effects),
            Message::BodyRequest { inquiry, id } => self.send_body(from, *inquiry, id, effects),
            Message::Body { inquiry, block, .. } => self.body_came(now, from, *inquiry, block, effects),
            Message::Transactions(transactions) => self.to_pool(transactions.clone(), None, effects),
            Message::StatusRequest => self.say_status(from, effects),
            Message::BlocksRequest { inquiry, above, limit, .. } => {
                let (height, blocks) = (self.tip.height(), self.blocks_above(*above, *limit));
                send(from, Message::Blocks { inquiry: *inquiry, height, blocks }, effects);
            }
            Message::CommonBlocksRequest { inquiry, ids } => {
                let (height, common) = (self.tip.height(), self.highest_common(ids).map(Box::new));
                send(from, Message::CommonBlocks { inquiry: *inquiry, height, common }, effects);
            }
            Message::PeersRequest => send(from, Message::Peers(self.neighbours.told()), effects),
            Message::Connect { trip } => send(from, Message::Connected { trip: *trip }, effects),
            Message::Connected { trip } => self.connected_by(now, from, *trip, effects),
            Message::Status { tip } => self.status_known(now, from, tip, effects),
            Message::Blocks { inquiry, height, blocks } => {
                self.neighbours.stands_at(from, *height);
                self.blocks_answered(now, from, *inquiry, blocks, effects);
            }
            Message::CommonBlocks { inquiry, height, common } => {
                self.neighbours.stands_at(from, *height);
                self.common_answered(now, from, *inquiry, common.as_deref().copied(), effects);
            }
            Message::Peers(list) => self.peers_answered(now, from, list, effects),
            Message::HungUp => self.drop_peer(now, from, effects),
            // Nodes send each other no other message.
            _ => {}
        }
    }

    fn to_pool(&self, transactions: Transactions, request: Option<RequestId>, effects: &mut Vec<Effect>) {
        let add = AddTransactions { tip: self.tip.clone(), transactions, request };
        self.tell(Role::Pool, Message::AddTransactions(add.into()), effects);
    }

    fn tell(&self, role: Role, message: Message, effects: &mut Vec<Effect>) {
        effects.push(Effect::Send { to: ActorId { node: self.node, role }, message });
    }

    fn slot(&self, now: SimTime) -> Slot {
        self.tree.slots().slot(now.seconds())
    }

    fn rules(&self) -> &Rules {
        self.tree.rules()
    }

    fn node_rules(&self) -> &NodeRules {
        &self.tree.rules().node
    }

    /// The time to answer anything but a request for blocks.
    fn answer_timeout(&self) -> Duration {
        Duration::from_millis(self.node_rules().answer_timeout_ms.into())
    }

    fn connecting_timeout(&self) -> Duration {
        Duration::from_millis(self.node_rules().connecting_timeout_ms.into())
    }

    /// The time for all of a verification, unless a ping before forging asked for it.
    fn verification_timeout(&self) -> Duration {
        Duration::from_millis(self.node_rules().verification_timeout_ms.into())
    }

    /// The wait before a block is passed on, counted from when it was first seen.
    fn gossip_wait(&self) -> Duration {
        Duration::from_millis(self.node_rules().gossip_wait_ms.into())
    }

    /// The time for which transactions are collected after some were relayed.
    fn bundle_time(&self) -> Duration {
        Duration::from_millis(self.node_rules().bundle_ms.into())
    }
}

/// Sends a message to another node's peer.
fn send(to: NodeId, message: Message, effects: &mut Vec<Effect>) {
    effects.push(Effect::Send { to: ActorId { node: to, role: Role::Peer }, message });
}

impl Prefetch<prefetch::UpcomingInput> for Peer {
    /// Fetches first the cache lines with the fields that messages, or wake-ups, are compared with. Then it fetches the record of the
    /// node that sends the message.
    fn fetch(&self, what: prefetch::UpcomingInput) {
        match what {
            prefetch::UpcomingInput::Near { is_wake } => {
                prefetch::value(&self.node);
                prefetch::value(&self.neighbours);
                prefetch::value(&self.discoveries);
                if is_wake {
                    prefetch::value(&self.pushed);
                    prefetch::ends(&self.random);
                }
            }
            prefetch::UpcomingInput::Next { from } => self.neighbours.fetch(from),
        }
    }
}

fn observe(event: Event, effects: &mut Vec<Effect>) {
    effects.push(Effect::Observe(event));
}

saved!(struct Peer {
    node, cold, blocks_callers, started, in_vain, timed, alarmed, tree, tip, passing, timed_from, neighbours, discoveries, pushed, random, limits,
    sync, pings, probes, watch, sent, held_back, transactions_sent, asked, inquiries, newcomers, discovery, bundle,
    announced,
});

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Fields outside the fetched lines would only cost time, so no other test notices them.
    #[test]
    fn what_messages_are_held_against_lies_in_the_lines_that_are_fetched() {
        assert_eq!(offset_of!(Peer, neighbours), 64, "what comes before fills the first line");
        let line = |offset| offset / 64;
        let pushed = line(offset_of!(Peer, pushed));
        assert_eq!(pushed, line(offset_of!(Peer, random)), "when blocks were passed on, and draws");
    }
}
