//! What else is asked of rows, answer by answer.
//!
//! Who asks gets a [`Slot`] for each answer and reads by it: where answers stand among a
//! position's numbers is known here alone. An answer of another width, one that is missing and one
//! out of turn are refused where they are given.

use std::marker::PhantomData;

/// The place of one answer: numbers of a width that is known when it is asked for, or an array.
#[derive(Debug)]
pub(super) struct Slot<T: ?Sized = [f64]> {
    begin: usize,
    width: usize,
    answer: PhantomData<fn(&T)>,
}

impl<T: ?Sized> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

/// All that is asked of a position.
#[derive(Debug, Default)]
pub(super) struct Slots {
    width: usize,
}

/// The answers of a position, one for each slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answers(Vec<f64>);

impl Slots {
    /// Asks for so many numbers.
    pub(super) fn numbers(&mut self, width: usize) -> Slot {
        self.next(width)
    }

    /// Asks for `N` numbers.
    pub(super) fn array<const N: usize>(&mut self) -> Slot<[f64; N]> {
        self.next(N)
    }

    fn next<T: ?Sized>(&mut self, width: usize) -> Slot<T> {
        let begin = self.width;
        self.width += width;
        Slot {
            begin,
            width,
            answer: PhantomData,
        }
    }

    /// The answers that `give` puts, which are those that were asked for.
    pub(super) fn answered(
        &self,
        give: impl FnOnce(&mut Answers) -> Result<(), String>,
    ) -> Result<Answers, String> {
        let mut answers = Answers(Vec::with_capacity(self.width));
        give(&mut answers)?;
        let given = answers.0.len();
        match given == self.width {
            true => Ok(answers),
            false => Err(format!("{given} numbers where {} are asked", self.width)),
        }
    }
}

impl Answers {
    /// The next answer.
    pub(super) fn put<T: ?Sized>(
        &mut self,
        slot: &Slot<T>,
        numbers: impl IntoIterator<Item = f64>,
    ) -> Result<(), String> {
        let begin = self.0.len();
        self.0.extend(numbers);
        let given = [begin, self.0.len() - begin];
        match given == [slot.begin, slot.width] {
            true => Ok(()),
            false => Err(format!(
                "{} numbers at {begin} where {} are asked at {}",
                given[1], slot.width, slot.begin
            )),
        }
    }

    /// As many, all 0.
    pub(super) fn nil(&self) -> Self {
        Self(vec![0.0; self.0.len()])
    }
}

impl Slot {
    pub(super) fn of<'a>(&self, answers: &'a Answers) -> &'a [f64] {
        &answers.0[self.begin..self.begin + self.width]
    }
}

impl<const N: usize> Slot<[f64; N]> {
    pub(super) fn of(&self, answers: &Answers) -> [f64; N] {
        std::array::from_fn(|at| answers.0[self.begin + at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_another_width_are_refused() {
        let mut slots = Slots::default();
        let (table, interval) = (slots.numbers(3), slots.array::<2>());
        let answered = |table_of: &[f64], interval_of: &[f64]| {
            slots.answered(|answers| {
                answers.put(&table, table_of.iter().copied())?;
                answers.put(&interval, interval_of.iter().copied())
            })
        };
        let answers = answered(&[1.0, 2.0, 3.0], &[4.0, 5.0]).unwrap();
        assert_eq!(table.of(&answers), [1.0, 2.0, 3.0]);
        assert_eq!(interval.of(&answers), [4.0, 5.0]);
        for (table, interval) in [(2, 3), (3, 1), (4, 2), (3, 0)] {
            assert!(answered(&[0.0; 4][..table], &[0.0; 3][..interval]).is_err());
        }
        let turned = |answers: &mut Answers| answers.put(&interval, [0.0; 2]);
        assert!(slots.answered(turned).is_err());
        let half = |answers: &mut Answers| answers.put(&table, [0.0; 3]);
        assert!(slots.answered(half).is_err());
    }
}
