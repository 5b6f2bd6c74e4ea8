//! Texts that are too many for memory: in a file without a name, which is gone when they are.

use super::position::{Rest, TextPosition};
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

    /// Writes positions of a text, with the places of their rows.
    pub(super) fn put(&self, places: &[TextPosition], numbers: &[usize]) -> io::Result<Piece> {
        let mut bytes = Vec::with_capacity(64 * places.len());
        let mut before = [0u64; NUMBERS];
        for (place, &number) in places.iter().zip(numbers) {
            let here = numbers_of(place, number);
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
        Ok(Piece {
            at: self.write(&bytes)?,
            tokens: places.len(),
        })
    }

    /// Reads them behind others.
    pub(super) fn get(
        &self,
        piece: &Piece,
        places: &mut Vec<TextPosition>,
        numbers: &mut Vec<usize>,
    ) -> io::Result<()> {
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
            places.push(place(&here));
            numbers.push(here[NUMBERS - 1] as usize);
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
fn numbers_of(place: &TextPosition, number: usize) -> [u64; NUMBERS] {
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
    fn positions_come_back_as_they_were() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut number = || match rng.random_range(0..4) {
            0 => NOTHING,
            1 => f64::to_bits(0.25),
            2 => rng.random_range(0..2),
            _ => rng.random_range(0..1000),
        };
        let spill = Spill::default();
        let mut written = Vec::new();
        for count in 0..40 {
            let made = (0..count % 7).map(|_| {
                let numbers: [u64; NUMBERS] = std::array::from_fn(|_| number());
                (place(&numbers), number() as usize)
            });
            let (places, numbers): (Vec<TextPosition>, Vec<usize>) = made.unzip();
            written.push((spill.put(&places, &numbers).unwrap(), places, numbers));
        }
        let bits = |places: &[TextPosition], numbers: &[usize]| -> Vec<[u64; NUMBERS]> {
            let each = places.iter().zip(numbers);
            each.map(|(place, &at)| numbers_of(place, at)).collect()
        };
        let (mut places, mut numbers) = (Vec::new(), Vec::new());
        let (mut all_places, mut all_numbers) = (Vec::new(), Vec::new());
        for (piece, own, at) in written.iter().rev() {
            assert_eq!(piece.tokens, own.len());
            spill.get(piece, &mut places, &mut numbers).unwrap();
            all_places.extend_from_slice(own);
            all_numbers.extend_from_slice(at);
        }
        assert!(all_places.len() > 100);
        assert_eq!(bits(&places, &numbers), bits(&all_places, &all_numbers));
        // A file that was cut is told of.
        let file = locked(&spill.file);
        file.as_ref().unwrap().0.set_len(10).unwrap();
        drop(file);
        let read = spill.get(&written[39].0, &mut places, &mut numbers);
        assert!(spill.done(read).is_none() && spill.check().is_err() && spill.check().is_ok());
    }
}
