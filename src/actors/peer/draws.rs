//! The random numbers of a peer.

use crate::{
    actors::{
        Random,
        ahead::{self, Ahead},
    },
    ledger::saved::{LoadError, Loader, Saved, Saver},
    protocol::Slot,
};
use rand::{RngCore, SeedableRng, rand_core::impls::fill_bytes_via_next};
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

/// The numbers of a peer, so many drawn at once. With thousands of peers each draw waits for memory, unless it is known
/// which: a stream itself does not tell where its next number lies.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Draws {
    next: u8,
    /// Each decision has to be named. `source` tells the same, in memory that a draw seldom needs.
    by_name: bool,
    /// Drawn, and from `next` on not given out yet.
    words: [u32; WORDS as usize],
    /// Of a stream, the position is known by the number of words drawn from it: all of `words`, and all before them.
    source: Random,
    /// The slot of the last decisions, and how many of each kind it has seen; by name alone.
    slot: Slot,
    decided: [u32; KINDS],
}

const WORDS: u8 = 64;
/// Numbers that a wake-up may need.
const NEEDED: usize = 8;

impl Draws {
    /// The bytes at its beginning that tell where the next number lies.
    #[cfg(test)]
    pub(super) const TELLS: usize = std::mem::offset_of!(Self, words);

    /// Draws more, and gives the first of these out.
    #[cold]
    fn draw(&mut self) -> u32 {
        self.draw_words();
        self.next = 1;
        self.words[0]
    }

    fn draw_words(&mut self) {
        self.words.iter_mut().for_each(|word| *word = self.source.next_u32());
    }

    /// Returns true if each decision has to be named.
    #[inline]
    pub(super) fn is_by_name(&self) -> bool {
        self.by_name
    }

    /// A decision begins: it is that of this kind, slot and number in the slot. On a clock that was set back, the latest slot goes on.
    pub(super) fn name(&mut self, slot: Slot, what: About) {
        if self.slot < slot {
            (self.slot, self.decided) = (slot, [0; KINDS]);
        }
        let number = &mut self.decided[what as usize];
        self.source.about(&[self.slot.0.into(), what as u64, (*number).into()]);
        *number += 1;
        self.next = WORDS;
    }

    fn new(source: Random) -> Self {
        let by_name = matches!(source, Random::ByName { .. });
        Self { next: WORDS, by_name, words: [0; WORDS as usize], source, slot: Slot(0), decided: [0; KINDS] }
    }

    /// Those of a stream from this number on.
    fn from_place(mut stream: ChaCha8Rng, place: u128) -> Self {
        let next = (place % u128::from(WORDS)) as u8;
        stream.set_word_pos(place - u128::from(next));
        let mut draws = Self::new(stream.into());
        if next > 0 {
            draws.draw_words();
            draws.next = next;
        }
        draws
    }

    /// The count of numbers of its stream that were given out.
    fn place(&self, stream: &ChaCha8Rng) -> u128 {
        stream.get_word_pos() + u128::from(self.next) - u128::from(WORDS)
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

impl From<Random> for Draws {
    /// From where a stream stands.
    ///
    /// # Panics
    /// The stream is not number 0 of its seed.
    fn from(source: Random) -> Self {
        let Random::InOrder(stream) = source else { return Self::new(source) };
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
        let Self { next: _, by_name: _, words: _, source, slot, decided } = self;
        match source {
            Random::InOrder(stream) => {
                false.save(out);
                out.raw(&stream.get_seed());
                out.raw(&self.place(stream).to_le_bytes());
            }
            Random::ByName { .. } => {
                true.save(out);
                source.save(out);
                slot.save(out);
                decided.iter().for_each(|number| number.save(out));
            }
        }
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        if bool::load(from)? {
            let mut draws = Self::new(Saved::load(from)?);
            draws.slot = Saved::load(from)?;
            for number in &mut draws.decided {
                *number = Saved::load(from)?;
            }
            return Ok(draws);
        }
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
            let mut ahead = Draws::from(Random::from(stream.clone()));
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
            let mut draws = Draws::from(Random::by_name(crate::actors::Choices::new(7)));
            let draw = |(slot, what): &(u32, About)| {
                draws.name(Slot(*slot), *what);
                draws.next_u64()
            };
            names.iter().map(draw).collect()
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
