//! Texts that are too many for memory: in a file without a name, which is gone when they are.

use super::position::{Rest, TextPosition};
use super::read::Text;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Numbers of a position, with the place of its row.
const NUMBERS: usize = 23;

/// By which number of the same position each is predicted; those that name themselves, by that of the
/// position before. Only what is predicted wrong is written.
const BY: [usize; NUMBERS] = [
    0, 0, 1, 3, 3, 4, 6, 7, 8, 9, 10, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
];

/// Those of which that is another one of the same position.
const FOLLOW: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 11;

/// What stands for a number that is not there: no number of a position is this.
const NOTHING: u64 = u64::MAX;

/// Where something is in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    begin: u64,
    bytes: usize,
}

/// A stretch of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    at: Stretch,
    pub(super) tokens: usize,
}

/// A file, which is made when something is written, and where it ends.
#[derive(Debug, Default)]
pub(super) struct Spill {
    file: Mutex<Option<(File, u64)>>,
    /// Why something could not be written or read, if so.
    failed: Mutex<Option<io::Error>>,
}

/// Two files are never the same.
impl PartialEq for Spill {
    fn eq(&self, other: &Self) -> bool {
        let is_used = |one: &Self| locked(&one.file).is_some();
        std::ptr::eq(self, other) || !is_used(self) && !is_used(other)
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spill {
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<Stretch> {
        let mut file = locked(&self.file);
        let (file, end) = match &mut *file {
            Some(file) => file,
            none => none.insert((tempfile::tempfile()?, 0)),
        };
        let stretch = Stretch {
            begin: *end,
            bytes: bytes.len(),
        };
        file.seek(SeekFrom::Start(*end))?;
        file.write_all(bytes)?;
        *end += bytes.len() as u64;
        Ok(stretch)
    }

    pub(super) fn read(&self, stretch: Stretch) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; stretch.bytes];
        if let Some((file, _)) = &mut *locked(&self.file) {
            file.seek(SeekFrom::Start(stretch.begin))?;
            file.read_exact(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// What was done, or nothing where it failed, which [`Spill::check`] tells.
    pub(super) fn done<T>(&self, result: io::Result<T>) -> Option<T> {
        let keep = |error| _ = locked(&self.failed).get_or_insert(error);
        result.map_err(keep).ok()
    }

    /// Tells whether all that was written could be read.
    pub(super) fn check(&self) -> io::Result<()> {
        locked(&self.failed).take().map_or(Ok(()), Err)
    }

    /// Takes the positions of a text out of memory.
    pub(super) fn take(&self, text: &mut Text) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(64 * text.places.len());
        let mut before = [0u64; NUMBERS];
        for (place, &number) in text.places.iter().zip(&text.numbers) {
            let here = numbers(place, number);
            before[NUMBERS - 1] = before[NUMBERS - 1].wrapping_add(1);
            let predicted = |at: usize| match BY[at] {
                by if by == at => before[at],
                by => here[by],
            };
            let begin = bytes.len();
            let mut mask = 0u32;
            bytes.extend_from_slice(&[0; 4]);
            for (at, number) in here.iter().enumerate() {
                if *number != predicted(at) {
                    mask |= 1 << at;
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
            }
            bytes[begin..][..4].copy_from_slice(&mask.to_le_bytes());
            before = here;
        }
        text.pieces.push(Piece {
            at: self.write(&bytes)?,
            tokens: text.places.len(),
        });
        (text.places, text.ratios, text.numbers) = Default::default();
        Ok(())
    }

    /// A text with all of its positions. Of one that cannot be read there are none, and
    /// [`Spill::check`] tells.
    pub(super) fn whole<'a>(&self, text: &'a Text) -> Cow<'a, Text> {
        if text.pieces.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut whole = Text {
            pieces: Vec::new(),
            places: Vec::with_capacity(text.tokens()),
            numbers: Vec::with_capacity(text.tokens()),
            ..text.clone()
        };
        for piece in &text.pieces {
            if self.done(self.put_back(piece, &mut whole)).is_none() {
                return Cow::Owned(Text {
                    places: Vec::new(),
                    numbers: Vec::new(),
                    ..whole
                });
            }
        }
        whole.places.extend_from_slice(&text.places);
        whole.numbers.extend_from_slice(&text.numbers);
        whole.ratios = whole.places.iter().map(|place| place.ratio).collect();
        Cow::Owned(whole)
    }

    fn put_back(&self, piece: &Piece, text: &mut Text) -> io::Result<()> {
        let bytes = self.read(piece.at)?;
        let mut rest = &bytes[..];
        let mut here = [0u64; NUMBERS];
        for _ in 0..piece.tokens {
            here[NUMBERS - 1] = here[NUMBERS - 1].wrapping_add(1);
            let mask = u32::from_le_bytes(*first(&mut rest)?);
            // Bit by bit: loops over ranges are slow in a crate that is hardly optimised.
            let (mut written, mut follow) = (mask, FOLLOW & !mask);
            while written != 0 {
                here[written.trailing_zeros() as usize] = u64::from_le_bytes(*first(&mut rest)?);
                written &= written - 1;
            }
            while follow != 0 {
                let at = follow.trailing_zeros() as usize;
                here[at] = here[BY[at]];
                follow &= follow - 1;
            }
            text.places.push(place(&here));
            text.numbers.push(here[NUMBERS - 1] as usize);
        }
        Ok(())
    }
}

/// Takes the first bytes.
pub(super) fn first<'a, const N: usize>(rest: &mut &'a [u8]) -> io::Result<&'a [u8; N]> {
    let (first, others) = (rest.split_first_chunk()).ok_or(io::ErrorKind::UnexpectedEof)?;
    *rest = others;
    Ok(first)
}

/// The numbers of a position: bounds behind what they bound, and an overlap behind the exact one.
fn numbers(place: &TextPosition, number: usize) -> [u64; NUMBERS] {
    let may = |x: Option<f64>| x.map_or(NOTHING, f64::to_bits);
    let [low, high] = place.ratio_bounds;
    let [least, most] = place.draft_bounds;
    let [noise, from, to] = place.one_noise;
    [
        place.ratio.to_bits(),
        low.to_bits(),
        high.to_bits(),
        place.draft.to_bits(),
        least.to_bits(),
        most.to_bits(),
        noise.to_bits(),
        from.to_bits(),
        to.to_bits(),
        may(place.p_hit),
        may(place.exact_overlap),
        place.overlap.to_bits(),
        may(place.covered),
        place.top.to_bits(),
        place.entropy.to_bits(),
        may(place.head_acceptance),
        may(place.head_overlap),
        place.hit.map_or(NOTHING, u64::from),
        u64::from(place.listed),
        place.unlisted[0].to_bits(),
        place.unlisted[1].to_bits(),
        match place.rest {
            Rest::None => NOTHING,
            Rest::Known { heaviest } => heaviest as u64,
            Rest::Open => NOTHING - 1,
        },
        number as u64,
    ]
}

fn place(numbers: &[u64; NUMBERS]) -> TextPosition {
    let at = |at: usize| f64::from_bits(numbers[at]);
    let may = |of: usize| (numbers[of] != NOTHING).then(|| at(of));
    TextPosition {
        ratio: at(0),
        ratio_bounds: [at(1), at(2)],
        draft: at(3),
        draft_bounds: [at(4), at(5)],
        one_noise: [at(6), at(7), at(8)],
        p_hit: may(9),
        exact_overlap: may(10),
        overlap: at(11),
        covered: may(12),
        top: at(13),
        entropy: at(14),
        head_acceptance: may(15),
        head_overlap: may(16),
        hit: (numbers[17] != NOTHING).then_some(numbers[17] == 1),
        listed: numbers[18] == 1,
        unlisted: [at(19), at(20)],
        rest: match numbers[21] {
            NOTHING => Rest::None,
            number if number == NOTHING - 1 => Rest::Open,
            heaviest => Rest::Known {
                heaviest: heaviest as usize,
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Whatever positions are, in however many pieces they are written, they come back to the bit.
    #[test]
    fn texts_come_back_as_they_were() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut number = || match rng.random_range(0..4) {
            0 => NOTHING,
            1 => f64::to_bits(0.25),
            2 => rng.random_range(0..2),
            _ => rng.random_range(0..1000),
        };
        let mut texts = vec![Text::default(); 3];
        let spill = Spill::default();
        let mut kept = texts.clone();
        for round in 0..40 {
            for (at, (text, kept)) in texts.iter_mut().zip(&mut kept).enumerate() {
                for _ in 0..round % (at + 2) {
                    let mut numbers: [u64; NUMBERS] = std::array::from_fn(|_| number());
                    numbers[22] = number() % 5;
                    let place = place(&numbers);
                    for text in [&mut *text, &mut *kept] {
                        text.places.push(place);
                        text.ratios.push(place.ratio);
                        text.numbers.push(numbers[22] as usize);
                    }
                }
                if round % 3 == at {
                    spill.take(text).unwrap();
                }
            }
        }
        let bits = |text: &Text| -> Vec<[u64; NUMBERS]> {
            let each = text.places.iter().zip(&text.numbers);
            each.map(|(place, &at)| numbers(place, at)).collect()
        };
        for (text, kept) in texts.iter().zip(&kept) {
            assert!(text.pieces.len() > 10 && text.tokens() == kept.places.len());
            let whole = spill.whole(text);
            assert_eq!(bits(&whole), bits(kept));
            let ratios = |text: &Text| text.ratios.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(ratios(&whole), ratios(kept));
        }
        spill.check().unwrap();
        // A file that was cut is told of.
        let file = locked(&spill.file);
        file.as_ref().unwrap().0.set_len(10).unwrap();
        drop(file);
        assert!(spill.whole(&texts[0]).places.is_empty());
        assert!(spill.check().is_err() && spill.check().is_ok());
    }
}
