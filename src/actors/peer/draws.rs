//! The random numbers of a peer.

use crate::{
    actors::{
        Choices, Random, SimTime,
        ahead::{self, Ahead},
        random::Drawing,
    },
    ledger::{
        BlockTree,
        saved::{LoadError, Loader, Saved, Saver, saved},
    },
    protocol::Slot,
};
use rand::{
    RngCore, SeedableRng,
    rand_core::impls::fill_bytes_via_next,
    seq::index::{self, IndexVec},
};
use rand_chacha::ChaCha8Rng;

/// What a peer decides at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Whom a block is passed on to.
    Block,
    /// Whom transactions are passed on to.
    Transactions,
    /// Whom to download from.
    Download,
    /// Whether missed slots are worth a health check.
    Health,
    /// How many blocks to leave.
    Rollback,
    /// When to look for peers, and which of those found to take.
    Discovery,
}

/// Kinds of decisions.
const KINDS: usize = About::Discovery as usize + 1;

/// The random numbers of all decisions of a peer. The tag lies beside what tells where the next number of a stream is.
#[derive(Clone)]
#[repr(u8)]
#[expect(
    clippy::large_enum_variant,
    reason = "the larger one is the usual one, and a pointer to it would have to be waited for"
)]
pub(super) enum Decisions {
    InOrder(Draws),
    ByName(Named),
}

/// A decision is named by its slot, its kind, and its number among those of that kind in the slot.
#[derive(Clone, Debug)]
pub(super) struct Named {
    choices: Choices,
    slot: Slot,
    decided: [u32; KINDS],
}

impl Decisions {
    /// The bytes at its beginning that tell where the next number of a stream lies.
    #[cfg(test)]
    pub(super) const TELLS: usize = align_of::<Draws>() + std::mem::offset_of!(Draws, words);

    /// The numbers of a decision that begins now.
    #[inline]
    pub(super) fn about(&mut self, tree: &BlockTree, now: SimTime, what: About) -> Drawing<'_, Draws> {
        match self {
            Self::InOrder(draws) => Drawing::InOrder(draws),
            Self::ByName(named) => Drawing::ByName(named.next(tree.slots().slot(now.seconds()), what)),
        }
    }
}

impl Decisions {
    /// The places of so many of `length`, chosen by a decision that begins now. Each block that is passed on takes a choice: to ask once
    /// where the numbers come from, and not for each of them, saves 3 % of the instructions of gossip.
    #[inline]
    pub(super) fn sample(
        &mut self,
        tree: &BlockTree,
        now: SimTime,
        what: About,
        length: usize,
        count: usize,
    ) -> IndexVec {
        match self {
            Self::InOrder(draws) => index::sample(draws, length, count),
            Self::ByName(named) => named.sample(tree.slots().slot(now.seconds()), what, length, count),
        }
    }
}

impl Named {
    /// The numbers of the next decision of a kind. On a clock that was set back, the latest slot goes on.
    fn next(&mut self, slot: Slot, what: About) -> rand_xoshiro::SplitMix64 {
        if self.slot < slot {
            (self.slot, self.decided) = (slot, [0; KINDS]);
        }
        let number = &mut self.decided[what as usize];
        let numbers = self.choices.at(&[self.slot.0.into(), what as u64, (*number).into()]);
        *number += 1;
        numbers
    }

    /// Out of the way of those that draw in order.
    #[cold]
    fn sample(&mut self, slot: Slot, what: About, length: usize, count: usize) -> IndexVec {
        index::sample(&mut self.next(slot, what), length, count)
    }
}

impl From<Random> for Decisions {
    /// From where a stream stands.
    ///
    /// # Panics
    /// The stream is not number 0 of its seed.
    fn from(random: Random) -> Self {
        match random {
            Random::InOrder(stream) => Self::InOrder(stream.into()),
            Random::ByName(choices) => Self::ByName(Named { choices, slot: Slot(0), decided: [0; KINDS] }),
        }
    }
}

impl Ahead<()> for Decisions {
    /// The next numbers of a stream.
    fn fetch(&self, (): ()) {
        if let Self::InOrder(draws) = self {
            draws.fetch(());
        }
    }
}

saved!(enum Decisions { 0 InOrder(draws), 1 ByName(named) });

impl Saved for Named {
    fn save(&self, out: &mut Saver) {
        let Self { choices, slot, decided } = self;
        choices.save(out);
        if out.ahead_of().is_none() {
            slot.save(out);
            decided.iter().for_each(|number| number.save(out));
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let mut named = Self { choices: Saved::load(from)?, slot: Saved::load(from)?, decided: [0; KINDS] };
        for number in &mut named.decided {
            *number = Saved::load(from)?;
        }
        Ok(named)
    }
}

/// The numbers of a stream, so many drawn at once. With thousands of peers each draw waits for memory, unless it is known
/// which: a stream itself does not tell where its next number lies.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Draws {
    next: u8,
    /// Drawn, and from `next` on not given out yet.
    words: [u32; WORDS as usize],
    /// The stream. Its position is known by the number of words drawn from it: all of `words`, and all before them.
    stream: ChaCha8Rng,
}

const WORDS: u8 = 64;
/// Numbers that a wake-up may need.
const NEEDED: usize = 8;

impl Draws {
    /// Draws more, and gives the first of these out.
    #[cold]
    fn draw(&mut self) -> u32 {
        self.draw_words();
        self.next = 1;
        self.words[0]
    }

    fn draw_words(&mut self) {
        self.words.iter_mut().for_each(|word| *word = self.stream.next_u32());
    }

    /// Those of a stream from this number on.
    fn from_place(mut stream: ChaCha8Rng, place: u128) -> Self {
        let next = (place % u128::from(WORDS)) as u8;
        stream.set_word_pos(place - u128::from(next));
        let mut draws = Self { next: WORDS, words: [0; WORDS as usize], stream };
        if next > 0 {
            draws.draw_words();
            draws.next = next;
        }
        draws
    }

    /// The count of numbers of the stream that were given out.
    fn place(&self) -> u128 {
        self.stream.get_word_pos() + u128::from(self.next) - u128::from(WORDS)
    }
}

impl Ahead<()> for Draws {
    /// The next numbers.
    fn fetch(&self, (): ()) {
        let next = usize::from(self.next);
        ahead::line(&self.words, next);
        ahead::line(&self.words, next + NEEDED);
    }
}

impl From<ChaCha8Rng> for Draws {
    /// From where the stream stands.
    ///
    /// # Panics
    /// The stream is not number 0 of its seed.
    fn from(stream: ChaCha8Rng) -> Self {
        assert_eq!(stream.get_stream(), 0, "each stream has a seed of its own");
        let place = stream.get_word_pos();
        Self::from_place(stream, place)
    }
}

impl RngCore for Draws {
    #[inline]
    fn next_u32(&mut self) -> u32 {
        match self.words.get(usize::from(self.next)) {
            Some(word) => {
                self.next += 1;
                *word
            }
            None => self.draw(),
        }
    }

    /// Low word first, as the stream has it.
    fn next_u64(&mut self) -> u64 {
        let low = u64::from(self.next_u32());
        u64::from(self.next_u32()) << 32 | low
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        fill_bytes_via_next(self, bytes);
    }
}

impl Saved for Draws {
    fn save(&self, out: &mut Saver) {
        out.raw(&self.stream.get_seed());
        out.raw(&self.place().to_le_bytes());
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let stream = ChaCha8Rng::from_seed(from.array()?);
        Ok(Self::from_place(stream, u128::from_le_bytes(from.array()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn they_are_those_of_the_stream(given in 0..200, draws in vec(0..40_usize, 1..200)) {
            let mut stream = ChaCha8Rng::seed_from_u64(7);
            (0..given).for_each(|_| { stream.next_u32(); });
            let mut ahead = Draws::from(stream.clone());
            for draw in draws {
                match draw {
                    0..10 => prop_assert_eq!(ahead.next_u32(), stream.next_u32()),
                    10..20 => prop_assert_eq!(ahead.next_u64(), stream.next_u64()),
                    _ => {
                        let (mut found, mut wanted) = (vec![0; draw - 20], vec![0; draw - 20]);
                        ahead.fill_bytes(&mut found);
                        stream.fill_bytes(&mut wanted);
                        prop_assert_eq!(found, wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn by_name_a_decision_has_its_numbers_whatever_was_decided_before_and_none_twice() {
        let drawn = |names: &[(u32, About)]| -> Vec<u64> {
            let mut named = Named { choices: Choices::new(7), slot: Slot(0), decided: [0; KINDS] };
            names.iter().map(|(slot, what)| named.next(Slot(*slot), *what).next_u64()).collect()
        };
        use About::{Block, Download, Transactions};
        let all = drawn(&[(10, Block), (10, Download), (10, Block), (11, Block), (12, Transactions)]);
        assert_eq!(drawn(&[(10, Block), (10, Block)]), [all[0], all[2]]);
        assert_eq!(drawn(&[(11, Block)]), [all[3]]);
        // The clock is set back from slot 12 to slot 10: what was decided there is not decided again.
        let back = drawn(&[(10, Block), (12, Block), (10, Block), (11, Block), (13, Block)]);
        let different: std::collections::BTreeSet<&u64> = back.iter().chain(&all[1..]).collect();
        assert_eq!(different.len(), 9, "{back:?} {all:?}");
    }
}
