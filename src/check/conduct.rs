//! Rules for a node's conduct, and events that a search should see sometimes.

use super::sights::SIGHTS;

/// Something that an honest node does always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conduct {
    /// Short and unique, as in reports.
    pub name: &'static str,
    /// The section that states it, or that states that the reference breaks it.
    pub source: &'static str,
    /// Its place in [`CONDUCT`].
    pub place: usize,
}

/// Declares the rules of conduct, so that the list contains them all.
macro_rules! conduct {
    ($($(#[$doc:meta])* $constant:ident: $name:literal, $source:literal;)*) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "named as the rules are")]
        enum Index { $($constant),* }

        $($(#[$doc])* pub const $constant: Conduct =
            Conduct { name: $name, source: $source, place: Index::$constant as usize };)*

        /// All rules of conduct.
        pub const CONDUCT: &[Conduct] = &[$($constant),*];
    };
}

conduct! {
    /// A node's chain only grows at its tip and shrinks by rollbacks.
    CHAIN: "a node's chain grows block by block", "consensus.md 3.1";
    /// Two nodes on one block have one state.
    AGREEMENT: "one block, one state", "consensus.md 7.1 I14";
    /// No transaction stands twice on a chain.
    ONCE: "no transaction stands twice on a chain", "consensus.md 7.1 I12";
    /// Final blocks of any two nodes are on one chain, where a rule makes blocks final.
    FINAL: "a final block is never left", "protocols.md finality";
    /// The height that the delegates have agreed on never falls from a block to the next, where it decides between chains.
    AGREED: "the agreed height never falls along a chain", "protocols.md finality";
    /// An honest delegate names the height up to which it has forged, where a rule of finality asks.
    DISCLOSED: "a delegate names the height up to which it has forged", "protocols.md finality";
    /// An honest delegate makes one block in a slot.
    ONE_A_SLOT: "a delegate makes one block in a slot", "consensus.md 7.1 I5";
    /// A round has as many delegates as its milestone says, or the chain ends with the round before.
    ENOUGH: "resignations leave enough delegates for the next milestone", "consensus.md 1.2, 4.5 type 7";
    /// An honest delegate's own relay accepts its block.
    RELAY: "a forger's own relay takes its block", "consensus.md 2.4, 8 Q18";
    /// An honest delegate's own relay does not refuse its block for miscounted resignations.
    RELAY_RESIGNATION: "a forger counts pending resignations", "consensus.md 8 Q2";
    /// An honest delegate's own relay does not refuse its block for an overlooked registered hash.
    RELAY_IPFS: "a forger sees registered hashes", "consensus.md 8 Q3";
    /// A rollback ends where the node's chain and that of most others part.
    COMMON: "a rollback ends at the common block", "consensus.md 3.5, 8 Q17";
    /// A rollback is no deeper than a round.
    SHALLOW: "a rollback is no deeper than a round", "consensus.md 3.5, 7.2";
    /// A pool drops no transaction that could still be forged.
    KEPT: "a pool keeps what can still be forged", "consensus.md 8 Q4";
    /// A rollback drops no pending transaction that could still be forged.
    KEPT_IN_ROLLBACK: "a rollback keeps what is pending", "consensus.md 5.7";
    /// Transactions of a rolled-back block are pending again, if they can still be forged.
    RETURNED: "what a rollback takes off the chain is pending again", "consensus.md 5.7";
    /// A pool holds the next nonces of each sender without a gap.
    POOL_NONCES: "pending nonces follow the chain's without a gap", "consensus.md 7.1 I13";
    /// A pool holds no more transactions than its limit.
    POOL_SIZE: "a pool holds no more than its limit", "consensus.md 5.7, 7.1 I13";
    /// A pool holds no transaction that is on its chain.
    POOL_FORGED: "a pool holds nothing that is on its chain", "consensus.md 7.1 I13";
    /// One pending transaction of a kind for a sender, where the pool allows one.
    POOL_ONE_OF_A_KIND: "a pool holds one vote or registration of a sender", "consensus.md 5.2, 8 Q15";
    /// No node with a right clock accepts a block of a slot that has not begun.
    EARLY: "no block is taken before its slot", "consensus.md 3.1, 3.4";
    /// A refused transaction displaces no other.
    DISPLACED: "a refused transaction displaces nobody", "consensus.md 5.4";
    /// After all faults are over, all nodes come to one chain.
    CONVERGED: "all nodes come to one chain once all faults are over", "consensus.md 3.5, 7.2";
    /// After all faults are over, the chain grows.
    PROGRESS: "the chain grows once all faults are over", "consensus.md 7.2";

    /// A phase that only an event ends has such an event ahead.
    WAKER: "no wait without a waker", "consensus.md 2.1, 3.5, 6";
    /// Nodes do not ask and answer each other for ever at one instant.
    RESTS: "every instant comes to an end", "consensus.md 6";

    // Acts of a node after each input, judged by a model of its own (`behaviour`).
    /// A request gets one answer of its kind, with the content that the node's chain and peers require.
    ANSWERED: "a question gets one answer, and the right one", "consensus.md 6";
    /// A node sends answers only to requests.
    UNASKED: "nobody is answered who has not asked", "consensus.md 6";
    /// Callers within their limits are heard; beyond them there are no answers.
    LIMITED: "callers are heard within the limits and not beyond", "consensus.md 6";
    /// A node accepts a block if and only if it fits.
    TAKEN: "a block that fits is taken, and no other", "consensus.md 3.1, 3.3";
    /// A node relays a block to the required number of peers, in time.
    PASSED_ON: "a block is passed on to as many as it should, when it should", "consensus.md 3.2, 6";
    /// Transactions go from peers and clients to the pool.
    TO_POOL: "what comes in goes to the pool as it is", "consensus.md 5.1, 6";
    /// Transactions that a pool finds worth relaying go to 20 peers.
    BATCHED: "accepted transactions are sent to twenty peers", "consensus.md 6";
    /// A relay tells its delegate the round of its tip.
    ROUND_TOLD: "a relay tells the round of its tip", "consensus.md 2.1";
    /// All peers are pinged before forging and after a rollback.
    PINGED: "all peers are pinged, and once", "consensus.md 2.2, 3.5";
    /// A relay reports the right counts of peers to its delegate.
    COUNTED: "a relay counts its peers right", "consensus.md 2.2";
    /// A peer that fails a ping or its verification is dropped.
    DROPPED: "peers that fail are dropped, and no others", "consensus.md 2.2, 6";
    /// A peer that has answered and been verified is added.
    ADDED: "peers that pass are added, and no others", "consensus.md 6";
    /// Callers that are no peers are pinged back.
    MET: "a caller that is no peer is pinged back", "consensus.md 6";
    /// A node looks for peers in time, and tries dropped ones again.
    DISCOVERED: "peers are looked for every ten minutes", "consensus.md 6";
    /// Downloads ask the right peers for the right blocks.
    ASKED: "a download asks peers of this chain for what comes next", "consensus.md 3.5, 6";
    /// A chunk that does not come is asked of another peer.
    RETRIED: "a chunk that fails is asked of another peer", "consensus.md 6";
    /// A minute without a block makes a node look for blocks, and so does its delegate before it forges; nothing else does.
    WOKEN: "a node that gets no block for a minute looks for some", "consensus.md 3.5";
    /// Downloads in vain lead to a health check.
    DOUBTED: "a node doubts its chain when it should", "consensus.md 3.5";
    /// A health check counts the peers on other chains, and a rollback follows from the count.
    HEALED: "a health check counts right, and the rollback follows from it", "consensus.md 3.5, 8 Q17";
    /// Other rollbacks are as deep as their causes allow.
    DEPTH: "a rollback is as deep as its cause allows", "consensus.md 3.5, 3.6";
    /// The search for the highest common block.
    SEARCHED: "a verification finds the highest common block", "consensus.md 6";
    /// A node that restarts connects to all nodes that it was given.
    RESTARTED: "a node that starts again calls those it knows", "consensus.md 3.5, 6";
    /// A delegate forges by the state of the network that its relay reports.
    DECIDED: "a delegate forges with a quorum and not without", "consensus.md 2.2";
    /// A delegate whose turn it is asks its relay.
    TURN: "a delegate uses its slot", "consensus.md 2.1";
    /// A block is built from the reports of relay and pool.
    MADE: "a block is made of what relay and pool have said", "consensus.md 2.4";
    /// A block gets the first transactions of the pool that fit.
    CHOSEN: "a block gets what comes first in the pool and fits", "consensus.md 2.3, 5.5";
    /// A pool accepts the transactions that pass its checks, and reports the others.
    ADMITTED: "a pool takes what passes its checks, and says so", "consensus.md 5.1 to 5.4";
    /// Expired transactions leave, with later ones of their senders.
    EXPIRED: "what expires leaves the pool, and nothing before", "consensus.md 5.6";
    /// Blocks take their transactions out of the pool.
    FOLLOWED: "a pool gives up what blocks make void, and nothing else", "consensus.md 5.6";
    /// After a rollback the pool holds the reverted transactions.
    REPLAYED: "a rollback leaves a pool what it took back, in its order", "consensus.md 5.7";
}

/// Returns true if a rule is judged by the model of a node (`behaviour`), and not from events alone.
pub fn is_modelled(name: &str) -> bool {
    CONDUCT[ANSWERED.place..].iter().any(|conduct| conduct.name == name)
}

/// Two blocks on one parent.
pub const FORK: &str = "a fork";
/// Two blocks of one slot.
pub const DOUBLE: &str = "two blocks in one slot";
/// A slot without a block.
pub const MISSED: &str = "a missed slot";
/// A round with another member than the one before.
pub const NEW_MEMBER: &str = "a vote swing at a boundary";
/// A node that left its chain.
pub const ROLLBACK: &str = "a rollback";
/// A block refused by a node.
pub const REFUSED: &str = "a refused block";
/// A delegate without peers or quorum.
pub const SUSPENDED: &str = "forging suspended";
/// A health check.
pub const HEALTH: &str = "a health check";
/// A pool that refused or evicted a transaction because it was full.
pub const FULL: &str = "a full pool";

/// Events of runs beside [`SIGHTS`].
const EVENTS: [&str; 9] = [FORK, DOUBLE, MISSED, NEW_MEMBER, ROLLBACK, REFUSED, SUSPENDED, HEALTH, FULL];

/// Events that a search of some size should see. Without them it did not look where faults are.
pub const INTERESTING: [&str; EVENTS.len() + SIGHTS.len()] = {
    let mut all = [""; EVENTS.len() + SIGHTS.len()];
    let mut place = 0;
    while place < all.len() {
        all[place] = if place < EVENTS.len() { EVENTS[place] } else { SIGHTS[place - EVENTS.len()] };
        place += 1;
    }
    all
};
