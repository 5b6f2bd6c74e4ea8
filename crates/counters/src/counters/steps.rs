//! Rounds of other lengths replayed along requests whose every round is listed.
//!
//! A round that accepts tau of n drafts tells the coins of its places: tau that came up, and one
//! that did not, if tau < n. Behind a wholly accepted round stands the bonus token, whose coin
//! nobody threw. A round of k drafts that starts at s accepts what comes up from s on, up to k, and
//! the next starts behind one more token.
//!
//! A text may end inside its last round: some servers count what is accepted behind the end, others
//! cut the round. It ends at any token of the listed last round, then, and of a last round of k
//! drafts as much may be counted as its coins let come up, or as little as is needed.

use super::counted::Step;

/// What a request may have come to: tokens that are counted, and rounds.
pub(super) type Ends = Vec<[f64; 2]>;

/// Tokens and rounds of `length` drafts along a request: the pairs of which one has the fewest
/// tokens a round, and those of which one has the most.
///
/// # Exactness
/// They hold for drafters whose coin at a token does not depend on where the round started. Linear in
/// the tokens, times the length.
pub(super) fn ends(steps: &[Step], length: usize) -> [Ends; 2] {
    let coins = coins(steps);
    let Some(last) = steps.last() else {
        return [vec![[0.0; 2]], vec![[0.0; 2]]];
    };
    // The text is longer than this.
    let sure = coins.len() - (last.accepted + 1);
    // Of each token that a round may start at: the fewest and the most rounds before it.
    let mut before: Vec<Option<[f64; 2]>> = vec![None; coins.len()];
    before[0] = Some([0.0; 2]);
    let mut found = [Ends::new(), Ends::new()];
    for start in 0..coins.len() {
        let Some(rounds) = before[start].map(|rounds| rounds.map(|count| count + 1.0)) else {
            continue;
        };
        for accepted in 0..=length {
            let coin = coins.get(start + accepted).copied().flatten();
            let end = start + accepted + 1;
            if accepted == length || coin != Some(true) {
                if end > sure {
                    found[0].push([(start + 1).max(sure + 1) as f64, rounds[1]]);
                    found[1].push([end as f64, rounds[0]]);
                }
                if let Some(next) = before.get_mut(end) {
                    let [few, many] = next.unwrap_or([f64::INFINITY, 0.0]);
                    *next = Some([few.min(rounds[0]), many.max(rounds[1])]);
                }
            }
            if coin == Some(false) {
                break;
            }
        }
    }
    found
}

/// Coins of the last places of rounds: how many came up, and how many were thrown. Behind those that came
/// up stand the coins that nobody threw.
pub(super) fn last_coins(steps: &[Step]) -> [f64; 2] {
    let thrown = steps
        .iter()
        .filter(|step| step.accepted + 1 >= step.drafted);
    thrown.fold([0.0; 2], |[up, all], step| {
        let is_up = step.accepted == step.drafted;
        [up + f64::from(u8::from(is_up)), all + 1.0]
    })
}

/// The expected tokens and rounds of `length` drafts that start along a request, where each coin that
/// nobody threw comes up with a chance.
///
/// The text ends behind its last listed round, which coins up to there tell, so that the quotient of sums
/// is the mean of a round (Wald). Linear in the tokens, times the length.
pub(super) fn expected(steps: &[Step], length: usize, chance: f64) -> [f64; 2] {
    let coins = coins(steps);
    let mut starts = vec![0.0; coins.len()];
    if let Some(first) = starts.first_mut() {
        *first = 1.0;
    }
    let (mut tokens, mut rounds) = (0.0, 0.0);
    for start in 0..coins.len() {
        let mut here = starts[start];
        rounds += here;
        for accepted in 0..=length {
            let coin = coins.get(start + accepted).copied().flatten();
            let goes_on = match coin {
                _ if accepted == length => 0.0,
                Some(is_up) => f64::from(u8::from(is_up)),
                None => chance,
            };
            let ends = here * (1.0 - goes_on);
            let end = start + accepted + 1;
            tokens += ends * (accepted + 1) as f64;
            if let Some(next) = starts.get_mut(end) {
                *next += ends;
            }
            here *= goes_on;
        }
    }
    [tokens, rounds]
}

/// Picks for each request the pair that gives all together the most tokens a round, or the fewest.
pub(super) fn extreme(requests: &[Ends], most: bool) -> Vec<[f64; 2]> {
    let mut rate = 1.0;
    loop {
        let worth = |&[tokens, rounds]: &[f64; 2]| match most {
            true => tokens - rate * rounds,
            false => rate * rounds - tokens,
        };
        let best = |ends: &Ends| {
            let ends = ends.iter().copied();
            ends.max_by(|a, b| worth(a).total_cmp(&worth(b)))
        };
        let taken: Vec<[f64; 2]> = requests.iter().filter_map(best).collect();
        let sum = |at: usize| taken.iter().map(|one| one[at]).sum::<f64>();
        let next = sum(0) / sum(1);
        // Of fewest tokens the first step goes down from above.
        let moves = match most {
            true => next > rate,
            false => next < rate || rate == 1.0,
        };
        if !moves || taken.is_empty() || next == rate {
            return taken;
        }
        rate = next;
    }
}

/// Tells whether rounds of `length` drafts would have been these.
pub(super) fn ran(steps: &[Step], length: usize) -> bool {
    let whole = |step: &Step| step.drafted == length || step.accepted < step.drafted;
    let before = steps.split_last().map_or(&[][..], |(_, before)| before);
    before.iter().all(whole)
}

/// Returns what is known of the coin at each token of the text.
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

    /// Rounds along a text of so many tokens, and what is counted of its last one: all that is
    /// accepted, what the text has room for, or with drafts that leave room for one more token.
    fn served(coins: &[bool], tokens: usize, length: usize, how: usize) -> Vec<Step> {
        let (mut at, mut steps) = (0, Vec::new());
        while at < tokens {
            let left = tokens - at;
            let most = if how == 2 { left - 1 } else { length };
            let drafted = length.min(most);
            let tried = coins[at..].iter().take(drafted);
            let kept = tried.take_while(|coin| **coin).count();
            at += kept + 1;
            let accepted = if how == 1 { kept.min(left) } else { kept };
            if drafted > 0 {
                steps.push(Step { drafted, accepted });
            }
        }
        steps
    }

    /// Short and long texts that end inside a round, as servers count it: the replay of the same
    /// coins is between the two ends, of a text and of several.
    #[test]
    fn the_same_coins_are_between_the_ends_however_a_text_was_cut() {
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1);
            ((state >> 33) % below) as usize
        };
        let of = |steps: &[Step]| {
            let tokens: usize = steps.iter().map(|step| step.accepted + 1).sum();
            [tokens as f64, steps.len() as f64]
        };
        let ratio = |all: &[[f64; 2]]| {
            let sum = |at: usize| all.iter().map(|one| one[at]).sum::<f64>();
            sum(0) / sum(1)
        };
        let mut tight = 0;
        for round in 0..3_000 {
            let (most, how, tenths) = (2 + round % 5, round / 5 % 3, 3 + random(7));
            let length = 1 + random(most as u64 - 1);
            let (mut found, mut truth) = ([Vec::new(), Vec::new()], Vec::new());
            for _ in 0..=random(6) {
                let tokens = 3 + random(38);
                let coins: Vec<bool> = (0..tokens + 8).map(|_| random(10) < tenths).collect();
                let listed = served(&coins, tokens, most, how);
                let [low, high] = ends(&listed, length);
                found[0].push(low);
                found[1].push(high);
                truth.push(of(&served(&coins, tokens, length, how)));
                assert!(ran(&listed, most));
            }
            let [low, high] = [false, true].map(|most| extreme(&found[usize::from(most)], most));
            let (low, truth, high) = (ratio(&low), ratio(&truth), ratio(&high));
            let case = (how, length, most, low, truth, high);
            assert!(low <= truth && truth <= high, "{case:?}");
            tight += usize::from(truth == low) + usize::from(truth == high);
        }
        assert!(tight > 100, "{tight}");
    }
}
