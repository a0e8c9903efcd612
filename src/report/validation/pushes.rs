//! Studies of gossip that pushes a block to some peers, as Lisk's does (LIP-0004).

use super::{Study, claim, parsed, play};
use crate::{
    actors::{Event, NodeId, SimTime},
    protocol::BlockId,
    sim::Observer,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The nodes of a network: 101 with a delegate, and relays.
const NODES: u32 = 500;
/// The time after which all pushes of a block are over.
const OVER: Duration = Duration::from_secs(10);

/// The studies of pushes.
pub(super) static STUDIES: [Study; 1] = [Study {
    what: "500 nodes in a full mesh, each of which pushes a block to 2, 3 or 16 peers",
    seeds: 40,
    play: |seed| vec![[2, 3, 16].map(|peers| reached(peers, seed)).to_vec()],
    claims: &[
        claim("share of nodes that pushes to 2 reach", "closed form: x = 1 - exp(-2 x)", 0.796_8, 0.002),
        claim("to 3", "closed form: x = 1 - exp(-3 x)", 0.940_5, 0.002),
        claim("to 16, as LIP-0004 has it", "closed form", 1.0, 0.000_001),
    ],
}];

/// The share of the nodes that have the first block soon after its forging. Later ones find nodes that lack their parents.
fn reached(peers: u32, seed: u64) -> f64 {
    let text = format!(
        "version = 1\nrounds = 100000\ncrypto = \"modelled\"\n[network]\ndelegates = 101\nrelays = {}\nblock_time_s = 30\n\
         latency = {{ min_ms = 20, max_ms = 200 }}\ngossip = {{ push = {peers} }}\n[rules]\nbase = \"lisk\"\nnode.rate_limits = false\n\
         node.forging_ping_ms = 0\n",
        NODES - 101
    );
    let seen = Arc::new(Mutex::new(BTreeMap::new()));
    let mut slots = 0;
    play(&parsed(&text), seed, Some(Box::new(BlockReach(seen.clone()))), |_, _| {
        slots += 1;
        slots < 3
    });
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    // A node that the first block does not reach may forge a second block of its height.
    let first = seen.values().min_by_key(|(forged, _)| *forged);
    first.map_or(f64::NAN, |(_, nodes)| f64::from(*nodes) / f64::from(NODES))
}

/// The forging of each block, and the number of nodes that have it soon after.
struct BlockReach(Arc<Mutex<BTreeMap<BlockId, (SimTime, u32)>>>);

impl Observer for BlockReach {
    fn observe(&mut self, now: SimTime, _: NodeId, event: &Event) {
        if let Event::BlockApplied(link) = event {
            let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (first, nodes) = seen.entry(link.id()).or_insert((now, 0));
            *nodes += u32::from(now < *first + OVER);
        }
    }
}
