//! The claim about what counts of one draft length tell of another.

use super::Finding;
use super::claim::claims;
use super::scores::is_in;

claims! {
    holds "counters-tell-lengths" by check,
        "where a draft's coin belongs to its token and not to its round, and n_j rounds of K drafts \
        accept j, rounds of k drafts put the same text out in at most sum n_j ceil((j+1)/(k+1)) calls, and \
        in at least that less n_K if k + 1 does not divide K + 1; if it does, in exactly as many",
        "ours; docs/guide/counters.md",
        "Any round ends right behind a token whose coin is down, and between two such tokens are m of \
        which rounds of k take ceil(m/(k+1)); m is the sum of the tokens of some wholly accepted rounds \
        and of the next. Every string of coins of up to 14 tokens that ends with one that is down, every K \
        and k up to 6. 1 + S_1 + .. + S_k, the first places of longer rounds, is another number on most of \
        them: rounds of k start elsewhere.";
}

/// How many drafts each round accepts of a text whose every token has a coin.
fn rounds(coins: &[bool], drafts: usize) -> Vec<usize> {
    let (mut at, mut all) = (0, Vec::new());
    while at < coins.len() {
        let ahead = coins.iter().skip(at).take(drafts);
        let accepted = ahead.take_while(|coin| **coin).count();
        all.push(accepted);
        at += accepted + 1;
    }
    all
}

fn check(finding: &mut Finding) {
    let (mut texts, mut exact, mut open, mut elsewhere) = (0, 0, 0, 0);
    for tokens in 1..=14_usize {
        for string in 0..1_usize << (tokens - 1) {
            let coins: Vec<bool> = (0..tokens).map(|at| is_in(string, at)).collect();
            texts += 1;
            let all = [1, 2, 3, 4, 5, 6].map(|drafts| rounds(&coins, drafts));
            for (most, counted) in (1..).zip(&all) {
                let whole = counted.iter().filter(|accepted| **accepted == most).count();
                for (drafts, found) in (1..=most).zip(all.iter().map(Vec::len)) {
                    let pieces = counted.iter().map(|j| (j + 1).div_ceil(drafts + 1));
                    let upper: usize = pieces.sum();
                    let divides = (most + 1).is_multiple_of(drafts + 1);
                    let lower = if divides { upper } else { upper - whole };
                    finding.require((lower..=upper).contains(&found), || {
                        format!("{coins:?}, K = {most}, k = {drafts}: {found} calls, not {lower} to {upper}")
                    });
                    exact += u64::from(divides);
                    open += u64::from(lower < upper);
                    let places: usize = counted.iter().map(|j| j.min(&drafts) + 1).sum();
                    elsewhere += u64::from(places * found != tokens * counted.len());
                }
            }
        }
    }
    finding.count("texts, by their coins", texts);
    finding.count("pairs of lengths that are exact", exact);
    finding.count("pairs of lengths that leave something open", open);
    let name = "pairs of which the first places say another number";
    finding.count(name, elsewhere);
    finding.enough(&[name], texts);
}
