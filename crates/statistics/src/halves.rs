//! The halves of the prompts: one chooses, the other measures what was chosen.

/// Returns the half that a prompt is in: 0, which chooses, or 1.
///
/// # Formula
/// The ones of the prompt's number in binary, modulo 2 (the sequence of Thue and Morse): 0, 3, 5, 6, 9, .. choose. Of
/// each two neighbours one is in each half; so are kinds of prompts that take turns, one by one, two by two, or by any
/// power of 2. Every other prompt would be of one kind.
///
/// # Example
/// ```
/// use specgap_statistics::half_of;
///
/// assert_eq!((0..8).map(half_of).collect::<Vec<_>>(), [0, 1, 1, 0, 1, 0, 0, 1]);
/// ```
#[must_use]
pub fn half_of(prompt: usize) -> usize {
    usize::from(prompt.count_ones() % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::half_of;

    #[test]
    fn kinds_that_take_turns_are_on_both_halves() {
        for turn in [1, 2, 4, 8] {
            let mut counts = [[0; 2]; 2];
            for prompt in 0..64 {
                counts[prompt / turn % 2][half_of(prompt)] += 1;
            }
            assert_eq!(counts, [[16; 2]; 2], "turns of {turn}");
        }
    }
}
