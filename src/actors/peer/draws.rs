//! The random numbers of a peer.

use crate::actors::ahead::{self, Ahead};
use rand::{
    RngCore, SeedableRng,
    rand_core::{block::BlockRngCore, impls::fill_bytes_via_next},
};
use rand_chacha::{ChaCha8Core, ChaCha8Rng};

/// The numbers of a stream, so many drawn at once. With thousands of peers each draw waits for memory, unless it is known
/// which: a stream itself does not tell where its next number lies.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Draws {
    next: u8,
    /// Drawn, and from `next` on not given out yet.
    words: Words,
    stream: ChaCha8Core,
}

/// [`WORDS`] numbers.
type Words = <ChaCha8Core as BlockRngCore>::Results;

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
        self.stream.generate(&mut self.words);
        self.next = 1;
        self.words.as_ref()[0]
    }
}

impl Ahead<()> for Draws {
    /// The next numbers.
    fn fetch(&self, (): ()) {
        let next = usize::from(self.next);
        ahead::line(self.words.as_ref(), next);
        ahead::line(self.words.as_ref(), next + NEEDED);
    }
}

impl From<ChaCha8Rng> for Draws {
    /// From where the stream stands.
    ///
    /// # Panics
    /// The stream is not number 0 of its seed.
    fn from(stream: ChaCha8Rng) -> Self {
        assert_eq!(stream.get_stream(), 0, "each stream has a seed of its own");
        let given = stream.get_word_pos();
        let mut draws =
            Self { next: WORDS, words: Words::default(), stream: ChaCha8Core::from_seed(stream.get_seed()) };
        for _ in 0..given {
            draws.next_u32();
        }
        draws
    }
}

impl RngCore for Draws {
    #[inline]
    fn next_u32(&mut self) -> u32 {
        match self.words.as_ref().get(usize::from(self.next)) {
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

#[cfg(test)]
mod tests {
    use super::Draws;
    use proptest::{collection::vec, prop_assert_eq, proptest};
    use rand::{RngCore, SeedableRng};
    use rand_chacha::ChaCha8Rng;

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
}
