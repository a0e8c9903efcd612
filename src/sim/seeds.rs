//! One seed, many named streams of random numbers.

use crate::protocol::crypto::sha256;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// The seed of a run. Each consumer draws from a stream of its own name, so a new consumer moves nobody else's draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedTree(u64);

impl SeedTree {
    /// The streams of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed, to be printed with every result.
    pub fn seed(self) -> u64 {
        self.0
    }

    /// The stream of a name: ChaCha8, which stays the same between versions.
    pub fn stream(self, name: &str) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(self.bytes(name))
    }

    /// 32 bytes that belong to a name.
    pub fn bytes(self, name: &str) -> [u8; 32] {
        sha256(format!("dposlab seed {} stream {name}", self.0).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngCore;

    #[test]
    fn a_stream_depends_on_seed_and_name_only() {
        let draw = |seed, name| SeedTree::new(seed).stream(name).next_u64();
        assert_eq!(draw(7, "latency"), draw(7, "latency"));
        assert_ne!(draw(7, "latency"), draw(8, "latency"));
        assert_ne!(draw(7, "latency"), draw(7, "gossip"));
    }
}
