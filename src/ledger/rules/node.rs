//! The behaviour of a node besides keeping a chain: accepting, forging, fork recovery and talking to peers, as switches.
//!
//! Quirks carry the number consensus.md 8 gives them. [`NodeRules::reference`] is node 2.6.57; [`NodeRules::corrected`]
//! turns off what the contract marks as a mistake (S or F) and keeps what it marks as a choice (K).

use serde::{Deserialize, Serialize};

/// Switches and limits of a node's behaviour towards its peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeRules {
    /// Q10: a pushed block is remembered before its slot is checked, so that one dropped as too early counts as known when it is pushed
    /// again. Off: only an accepted block is remembered.
    pub ping_before_slot_check: bool,
    /// Q11: verifying a forked peer also checks the first block of the next round, against this round's
    /// delegates. Off: it ends with the round.
    pub verify_next_round_block: bool,
    /// Q17: a health check that asks for a rollback of no block causes one of random depth. Off: none.
    pub zero_rollback_is_random: bool,
    /// When a node leaves its chain, and when its delegate may forge. The reference's reads `rollback_target`, `forked_percent`
    /// and `quorum_percent`.
    pub fork_choice: ForkChoiceRule,
    /// Q17: how far a health check rolls back.
    pub rollback_target: RollbackTarget,
    /// A block that does not follow the tip makes the node go back by a random number of blocks, if its slot is the tip's or a later one
    /// and its forger owns that slot. Off: the fork choice alone decides. Source: consensus.md 3.6.
    pub second_block_rolls_back: bool,
    /// A delegate forges on its relay's new tip if that has changed between the relay's two answers, even if the round has changed too.
    /// Off: it asks again. Source: consensus.md 2.1 step E, 2.4.
    pub forges_on_another_tip: bool,
    /// After a health check that does not make it leave its chain, a node downloads nothing, however many more blocks of that chain its
    /// peers have. Off: it downloads these at once. Source: consensus.md 3.1 step 3, 3.5.
    pub stays_behind: bool,
    /// Q18: a node reports `block.forged` when the delegate has made a block, even if its relay refuses it. Off: when the relay has
    /// accepted it.
    pub forged_before_accepted: bool,
    /// The relays start a new network (`--networkStart`): the first time its delegate asks, a relay forbids to forge.
    /// Source: consensus.md 2.2, ColdStart.
    pub network_start: bool,
    /// Share of peers on other chains from which on a health check finds the node forked, in percent.
    /// Source: consensus.md 3.5.
    pub forked_percent: u32,
    /// Chance that missed slots cause a health check once they are enough, in percent. Source: consensus.md 3.5.
    pub health_check_percent: u32,
    /// Least time between two health checks for missed slots, in seconds. Source: consensus.md 3.5.
    pub health_check_gap_s: u32,
    /// Wake-ups without a block, each of six failed downloads, up to the one that checks the network's health.
    /// Source: consensus.md 3.5.
    pub wake_ups_to_health_check: u32,
    /// Time without an accepted block after which a node wakes up and asks for some, in seconds. Source: consensus.md 3.5.
    pub wake_up_s: u32,
    /// Least depth of a random rollback, in blocks. Source: consensus.md 3.5.
    pub random_rollback_min: u32,
    /// Greatest depth of a random rollback, in blocks; at least the least. Source: consensus.md 3.5.
    pub random_rollback_max: u32,
    /// Greatest depth of any rollback, in blocks. Source: consensus.md 3.5.
    pub rollback_max: u32,
    /// A node retains blocks of other branches that are pushed to it, relays them, and moves to a chain of them as soon as that is
    /// stronger. Off, as in the reference: it rejects them, and downloads such a chain once a health check finds it.
    pub keeps_branches: bool,
    /// Peers ask each other for more peers. Off: a node talks to those it was given and to those that call it.
    /// Source: consensus.md 6.
    pub discovery: bool,
    /// Q27: peers that were dropped are tried again at each discovery; all nodes that a simulated node was given count as its
    /// seeds. Off, as in the reference: only while the node is below the minimum network reach. So a partition whose sides
    /// are both at or above the reach does not end by itself. Source: consensus.md 6, 7.2.
    pub retry_dropped_peers: bool,
    /// The rate at which one address may send is limited. Source: consensus.md 6.
    pub rate_limits: bool,
    /// A node relays transactions in bundles. A receiver retains those that it cannot accept yet, because of a gap in the nonces or a
    /// missing block, until it can. With gossip `once` the node that a client submitted them to sends them to all of its peers, and no
    /// peer relays them. So every node holds the transactions that one accepted. Off, as in the reference: a node refuses transactions
    /// out of order, and no node sends them again.
    pub transactions_in_order: bool,
    /// Peers in one /24 network at most; those a node was given are exempt. Source: consensus.md 6.
    pub peers_per_subnet: u32,
    /// Time to answer a request for blocks, in seconds. Source: consensus.md 6.
    pub blocks_timeout_s: u32,
    /// Time to send an announced block, in seconds, where blocks are announced. The reference announces none: this is its time to answer
    /// anything but a request for blocks.
    pub body_timeout_s: u32,
    /// Time to answer anything but a request for blocks, in milliseconds: 1 or more. Source: consensus.md 6.
    pub answer_timeout_ms: u32,
    /// Time to connect to a node, in milliseconds: 1 or more. Source: consensus.md 6.
    pub connecting_timeout_ms: u32,
    /// Time for all of a peer's verification, unless a ping before forging asked for it, in milliseconds: 1 or more.
    /// Source: consensus.md 6.
    pub verification_timeout_ms: u32,
    /// Time after which the sender of a block or of transactions gives up a connection that is silent, in milliseconds: 1 or more.
    /// Source: consensus.md 6.
    pub post_timeout_ms: u32,
    /// Time for which a caller that breaks the limit of all calls together gets no answers, in milliseconds. Source: consensus.md 6.
    pub blocking_ms: u32,
    /// Time between two discoveries, in milliseconds: 1 or more. Source: consensus.md 6.
    pub discovery_ms: u32,
    /// The time between two discoveries of a node below the minimum network reach, in milliseconds: 1 or more. Source: consensus.md 6.
    pub discovery_below_reach_ms: u32,
    /// Wait before a block is passed on by the reference's gossip, counted from when it was first seen, in milliseconds.
    /// Source: consensus.md 6.
    pub gossip_wait_ms: u32,
    /// Time for which transactions are collected after some were relayed, where they travel in bundles, in milliseconds. A client that
    /// submits one after the other would otherwise use up what peers allow this node to send, pings before forging included.
    pub bundle_ms: u32,
    /// Time that a relay has to answer its delegate, in milliseconds: 1 or more. Source: consensus.md 2.1 step D.
    pub relay_timeout_ms: u32,
    /// Wait of a delegate after a failure, in milliseconds: 1 or more. Source: consensus.md 2.5.
    pub forging_retry_ms: u32,
    /// Time the peers have to answer before the delegate forges, in milliseconds: less than `relay_timeout_ms`. Peers that
    /// have not answered count once more and are dropped then. So with one-way latencies of half of this and more each
    /// delegate forges once, and then no more. With 0 it asks none of them and forges at once, as protocols without a quorum do.
    /// Source: consensus.md 2.2.
    pub forging_ping_ms: u32,
    /// Whole seconds that must be left of a slot for its block to be forged and sent. Source: consensus.md 2.4.
    pub least_seconds_left: u32,
    /// Time into a slot for which the block of the slot before is waited for, in seconds. Source: consensus.md 2.1.
    pub settling_s: u32,
    /// The headers of a delegate that restarts claim that it has forged nothing before (lisk-sdk #4727, #5490). Off: they state the
    /// height up to which it has forged. This matters only where a rule of finality reads it.
    pub forgets_forged: bool,
    /// Time between two polls of a relay by its delegate, in milliseconds, up to [`FORGING_POLL_LIMIT_MS`]. It is also the greatest delay
    /// until the delegate notices that it may forge. With 0 it notices at once. Source: consensus.md 2.1 step B.
    pub forging_poll_ms: u32,
}

/// The longest time between two polls of a delegate \[ms\]: with more, some slots would be over before it looks.
pub const FORGING_POLL_LIMIT_MS: u32 = 1_000;

/// The depth of a rollback by a health check that found the node forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RollbackTarget {
    /// To the highest block in common with the first peer, whichever chain that one is on.
    FirstPeer,
    /// To the highest block in common with the largest group of peers that share one; among equals, the lowest.
    LargestGroup,
}

/// When a node leaves its chain, and when its delegate may forge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForkChoiceRule {
    /// Half of the peers on other chains; 66 % of them on the own one.
    Reference,
    /// ARK 3: more peers on another chain than on this one, from each block on which they part.
    #[serde(rename = "ark-4432")]
    Ark4432,
    /// Solar: a majority of the delegates.
    Solar,
    /// As Solar, but if two halves are equal, one of them yields.
    SolarTieBroken,
    /// The longest chain, or the one with the higher agreed block by the rule of finality. Delegates forge without a quorum.
    LongestChain,
}

impl ForkChoiceRule {
    /// Returns true if a delegate needs at least [`Rules::least_reach`](super::Rules::least_reach) peers to forge.
    pub fn asks_for_reach(self) -> bool {
        matches!(self, Self::Reference | Self::Ark4432)
    }

    /// Returns true if the share of the peers on other chains decides whether a node leaves its chain.
    pub fn counts_forked(self) -> bool {
        self == Self::Reference
    }

    /// Returns true if a node moves to a stronger chain, however many of its peers are on that chain.
    pub fn goes_to_the_stronger(self) -> bool {
        self == Self::LongestChain
    }
}

impl NodeRules {
    /// Node 2.6.57.
    pub const fn reference() -> Self {
        Self {
            ping_before_slot_check: true,
            verify_next_round_block: true,
            zero_rollback_is_random: true,
            fork_choice: ForkChoiceRule::Reference,
            rollback_target: RollbackTarget::FirstPeer,
            second_block_rolls_back: true,
            forges_on_another_tip: true,
            stays_behind: true,
            forged_before_accepted: true,
            network_start: false,
            forked_percent: 50,
            health_check_percent: 80,
            health_check_gap_s: 600,
            wake_ups_to_health_check: 4,
            wake_up_s: 60,
            random_rollback_min: 4,
            random_rollback_max: 102,
            rollback_max: 5_000,
            keeps_branches: false,
            discovery: true,
            retry_dropped_peers: false,
            rate_limits: true,
            transactions_in_order: false,
            peers_per_subnet: 5,
            blocks_timeout_s: 600,
            body_timeout_s: 5,
            answer_timeout_ms: 5_000,
            connecting_timeout_ms: 2_000,
            verification_timeout_ms: 60_000,
            post_timeout_ms: 10_000,
            blocking_ms: 60_000,
            discovery_ms: 600_000,
            discovery_below_reach_ms: 60_000,
            gossip_wait_ms: 500,
            bundle_ms: 100,
            relay_timeout_ms: 4_000,
            forging_retry_ms: 2_000,
            forging_ping_ms: 1_500,
            least_seconds_left: 2,
            settling_s: 2,
            forgets_forged: false,
            forging_poll_ms: 200,
        }
    }

    /// Node 2.6.57 without its mistakes: Q11, Q17 and Q27.
    pub const fn corrected() -> Self {
        Self {
            retry_dropped_peers: true,
            verify_next_round_block: false,
            zero_rollback_is_random: false,
            rollback_target: RollbackTarget::LargestGroup,
            ..Self::reference()
        }
    }
}

impl Default for NodeRules {
    fn default() -> Self {
        Self::reference()
    }
}
