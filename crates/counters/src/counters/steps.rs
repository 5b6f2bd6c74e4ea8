//! Rounds of other lengths replayed along requests whose every round is listed.
//!
//! A round that accepts tau of n drafts tells the coins of its places: tau that came up, and one
//! that did not, if tau < n. Behind a wholly accepted round stands the bonus token, whose coin
//! nobody threw. A round of k drafts that starts at s accepts what comes up from s on, up to k, and
//! the next starts behind one more token. Where it starts is monotone in s and in every coin, so
//! that coins that nobody threw give exactly two ends: all came up, or none did.

use super::counted::Step;

/// Tokens of a request, and the fewest and the most rounds of `length` drafts that make them.
///
/// # Exactness
/// Exact for drafters whose coin at a token does not depend on where the round started, and for the
/// text as it was put out. Linear in the tokens.
pub(super) fn rounds(steps: &[Step], length: usize) -> (f64, [f64; 2]) {
    let coins = coins(steps);
    let ends = [true, false].map(|unknown| {
        let (mut rounds, mut at) = (0usize, 0usize);
        while at < coins.len() {
            let from = coins.iter().skip(at).take(length);
            let accepted = from.take_while(|coin| coin.unwrap_or(unknown)).count();
            at += accepted + 1;
            rounds += 1;
        }
        rounds as f64
    });
    (coins.len() as f64, ends)
}

/// What is known of the coin at each token of the text.
fn coins(steps: &[Step]) -> Vec<Option<bool>> {
    let mut coins = Vec::new();
    for step in steps {
        coins.extend(std::iter::repeat_n(Some(true), step.accepted));
        coins.push((step.accepted < step.drafted).then_some(false));
    }
    coins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(all: &[(usize, usize)]) -> Vec<Step> {
        let step = |&(drafted, accepted): &(usize, usize)| Step { drafted, accepted };
        all.iter().map(step).collect()
    }

    /// Every setting of the coins that nobody threw lies between the two ends.
    #[test]
    fn no_setting_of_unknown_coins_is_outside_the_ends() {
        let run = steps(&[
            (3, 3),
            (3, 1),
            (1, 1),
            (3, 3),
            (2, 0),
            (3, 3),
            (3, 2),
            (2, 2),
        ]);
        let known = coins(&run);
        let open: Vec<usize> = (0..known.len()).filter(|&at| known[at].is_none()).collect();
        assert_eq!(open.len(), 5);
        for length in 1..=4 {
            let (_, [least, most]) = rounds(&run, length);
            let mut met = [false; 2];
            for setting in 0..1usize << open.len() {
                let mut set: Vec<bool> = known.iter().map(|coin| coin.unwrap_or(false)).collect();
                for (bit, &at) in open.iter().enumerate() {
                    set[at] = setting >> bit & 1 == 1;
                }
                let (mut at, mut count) = (0, 0.0);
                while at < set.len() {
                    let mut taken = 0;
                    while taken < length && at + taken < set.len() && set[at + taken] {
                        taken += 1;
                    }
                    at += taken + 1;
                    count += 1.0;
                }
                assert!(
                    (least..=most).contains(&count),
                    "{length} {setting}: {count}"
                );
                met[0] |= count == least;
                met[1] |= count == most;
            }
            assert_eq!(met, [true; 2], "{length}");
        }
    }
}
