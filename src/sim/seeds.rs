//! One seed, many named streams of random numbers.

use crate::{actors::Choices, ledger::codec::saved, protocol::crypto::sha256};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use std::{cell::RefCell, panic::Location};

thread_local! {
    /// The requested streams, during a recording.
    static REQUESTED: RefCell<Option<Vec<StreamRequest>>> = const { RefCell::new(None) };
}

/// A stream that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRequest {
    pub seed: u64,
    pub name: String,
    /// The place in the source that asked.
    pub by: &'static Location<'static>,
}

/// Calls `run` and returns the streams that it requested, on this thread and in this order: two consumers of one stream would draw the
/// same numbers. In nested recordings only the inner one receives a request.
pub fn recorded<T>(run: impl FnOnce() -> T) -> (T, Vec<StreamRequest>) {
    let outer = REQUESTED.replace(Some(Vec::new()));
    let result = run();
    (result, REQUESTED.replace(outer).unwrap_or_default())
}

/// The seed of a run. Each consumer draws from a stream of its own name, so a new consumer does not change the draws of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedTree {
    seed: u64,
}

impl SeedTree {
    /// The streams of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed, to be printed with every result.
    pub fn seed(self) -> u64 {
        self.seed
    }

    /// The random numbers for the decisions of a named party.
    #[track_caller]
    pub fn choices(self, name: &str) -> Choices {
        Choices::new(self.number(name))
    }

    /// The stream of a name: ChaCha8, which stays the same between versions.
    #[track_caller]
    pub fn stream(self, name: &str) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(self.bytes(name))
    }

    /// A number that belongs to a name, as the seed of a small generator.
    #[track_caller]
    pub fn number(self, name: &str) -> u64 {
        u64::from_le_bytes(self.bytes(name)[..8].try_into().expect("8 of 32 bytes"))
    }

    /// 32 bytes that belong to a name.
    #[track_caller]
    pub fn bytes(self, name: &str) -> [u8; 32] {
        let by = Location::caller();
        REQUESTED.with_borrow_mut(|asked| {
            if let Some(asked) = asked {
                asked.push(StreamRequest { seed: self.seed, name: name.to_owned(), by });
            }
        });
        sha256(format!("dposlab seed {} stream {name}", self.seed).as_bytes())
    }
}

saved!(struct SeedTree { seed });

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

    #[test]
    fn a_recording_tells_what_was_asked_for_and_by_whom() {
        let seeds = SeedTree::new(7);
        let ((), asked) = recorded(|| {
            seeds.stream("one").next_u64();
            seeds.bytes("two");
        });
        let names: Vec<(u64, &str)> = asked.iter().map(|asked| (asked.seed, asked.name.as_str())).collect();
        assert_eq!(names, [(7, "one"), (7, "two")]);
        assert!(asked[0].by.file().ends_with("seeds.rs") && asked[0].by.line() + 1 == asked[1].by.line());
        seeds.bytes("three");
        assert_eq!(recorded(|| ()).1, []);
    }
}
