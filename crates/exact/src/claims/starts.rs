//! The claim about drafts whose rows depend on where their round began.

use super::Finding;
use super::claim::claims;
use super::family::Family;

claims! {
    refuted "calls-by-start" by check,
        in ["refuted/calls-by-start.toml"]
        "where the draft's rows depend on where a round began, as those of EAGLE and MTP heads, \
        the fewest target calls of one path are still the mean over texts of the sum of s_t, s_t = \
        (1 - sum over k of s_(t-k) times the ratios of the last k tokens in a round from t - k)+",
        "a reading of docs/theory/several-rounds.md, Theorem 1",
        "Wrong: it can pay to accept less. Let the text be 0000 for sure, and rounds draft two \
        tokens: from the start 0 and a wrong one, from the second place 0 and 0, from the third wrong \
        ones. The sum is 3: the first round keeps its right draft, and the next one begins where \
        drafts are poor. A round that keeps none begins at the second place, and 2 calls are enough. \
        With one draft a round, or rows that depend on the text alone, the theorem stands. The \
        check goes through all decoders of sure texts.";
}

/// The sum of `s_t`, where `right[t][i]` says whether draft i of a round from t is the text's.
fn forward(right: &[Vec<bool>]) -> usize {
    let mut starts: Vec<usize> = Vec::new();
    for t in 0..right.len() {
        let supply: usize = (starts.iter().enumerate())
            .filter(|(z, _)| {
                let drafts = right[*z].get(..t - z);
                drafts.is_some_and(|drafts| drafts.iter().all(|right| *right))
            })
            .map(|(_, start)| start)
            .sum();
        starts.push(1usize.saturating_sub(supply));
    }
    starts.iter().sum()
}

/// The fewest calls of all decoders, which may keep fewer drafts than are right.
fn fewest(right: &[Vec<bool>]) -> usize {
    // By place, calls from there to the end; behind the end none.
    let mut least = vec![0; right.len() + 1];
    for start in (0..right.len()).rev() {
        let most = right[start].iter().take_while(|right| **right).count();
        let ends = (0..=most).map(|kept| (start + kept + 1).min(right.len()));
        least[start] = 1 + ends.map(|end| least[end]).min().unwrap_or(0);
    }
    least[0]
}

fn check(finding: &mut Finding) {
    let mut family = Family::new(1907);
    let by_hand = vec![vec![true, false], vec![true, true], vec![false], Vec::new()];
    let random = (1..400).map(|_| {
        let (tokens, most) = (family.between(3, 7), family.between(1, 3));
        let rounds = (0..tokens).map(|start| {
            let drafts = most.min(tokens - 1 - start);
            (0..drafts).map(|_| family.between(0, 2) > 0).collect()
        });
        rounds.collect()
    });
    for right in std::iter::once(by_hand).chain(random) {
        let (sum, least) = (forward(&right), fewest(&right));
        finding.add("sure texts, all decoders", 1);
        finding.tally("texts with fewer calls than the sum", least < sum);
        finding.require(least >= sum, || {
            format!(
                "sure texts, drafts that are right by start {right:?}: {least} calls, the sum {sum}"
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_the_page_takes_two_calls_where_the_sum_is_three() {
        let right = [vec![true, false], vec![true, true], vec![false], vec![]];
        assert_eq!((forward(&right), fewest(&right)), (3, 2));
        // Rows that depend on the text alone: a draft is right wherever its round began.
        let right = [vec![true, false], vec![false, true], vec![true], vec![]];
        assert_eq!((forward(&right), fewest(&right)), (2, 2));
    }

    /// One draft a round is a function of the text: Theorem 1 stands.
    #[test]
    fn one_draft_a_round_takes_the_sum() {
        for mask in 0..1u32 << 6 {
            let rounds = (0..6).map(|start| vec![mask >> start & 1 == 1]);
            let right: Vec<Vec<bool>> = rounds.chain([Vec::new()]).collect();
            assert_eq!(forward(&right), fewest(&right), "{right:?}");
        }
    }
}
