//! The random numbers of a peer.

use crate::{
    actors::ahead::{self, Ahead},
    ledger::saved::{LoadError, Loader, Saved, Saver},
};
use rand::{RngCore, SeedableRng, rand_core::impls::fill_bytes_via_next};
use rand_chacha::ChaCha8Rng;

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
