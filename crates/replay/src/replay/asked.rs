//! What else is asked of rows, answer by answer.
//!
//! Who asks gets a [`Slot`] for each answer and reads by it: where answers stand among a
//! position's numbers is known here alone. An answer of another width, one that is missing and one
//! out of turn are refused where they are given.

use serde::{Deserialize, Serialize};

/// The place of one answer: numbers of a width that is known when it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    begin: usize,
    width: usize,
}

/// All that is asked of a position.
#[derive(Debug, Default)]
pub(super) struct Slots {
    width: usize,
}

/// The answers of a position, one for each slot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Answers(Vec<f64>);

impl Slots {
    /// Asks for so many numbers.
    pub(super) fn numbers(&mut self, width: usize) -> Slot {
        let begin = self.width;
        self.width += width;
        Slot { begin, width }
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
    pub(super) fn put(
        &mut self,
        slot: &Slot,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_another_width_are_refused() {
        let mut slots = Slots::default();
        let (table, pair) = (slots.numbers(3), slots.numbers(2));
        let answered = |table_of: &[f64], pair_of: &[f64]| {
            slots.answered(|answers| {
                answers.put(&table, table_of.iter().copied())?;
                answers.put(&pair, pair_of.iter().copied())
            })
        };
        let answers = answered(&[1.0, 2.0, 3.0], &[4.0, 5.0]).unwrap();
        assert_eq!(table.of(&answers), [1.0, 2.0, 3.0]);
        assert_eq!(pair.of(&answers), [4.0, 5.0]);
        for (table, pair) in [(2, 3), (3, 1), (4, 2), (3, 0)] {
            assert!(answered(&[0.0; 4][..table], &[0.0; 3][..pair]).is_err());
        }
        let turned = |answers: &mut Answers| answers.put(&pair, [0.0; 2]);
        assert!(slots.answered(turned).is_err());
        let half = |answers: &mut Answers| answers.put(&table, [0.0; 3]);
        assert!(slots.answered(half).is_err());
    }
}
