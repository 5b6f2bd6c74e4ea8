//! The claim about random numbers that every round begins anew with.

use super::Finding;
use super::claim::claims;
use super::family::{Family, rows};
use specgap_core::problem::Problem;
use specgap_number::distribution::{Rational, format_rational};
use specgap_number::number::{Number, normalised};
use std::collections::BTreeMap;

claims! {
    refuted "seed-reset-each-round" of check,
        in ["refuted/seed-reset-each-round.toml"]
        "a decoder whose every round, over its random numbers, puts out tokens by the target's law \
        writes texts by the target's law, also if each round of a request begins with the same numbers",
        "a reading of tests that give every trial a seed of its own",
        "Wrong. Token verification, one draft a round, with one number for the draft, one for the \
        coin and one for the token that is the target's own. With p = (1/2, 1/2), q = (3/4, 1/4) and three \
        tokens the first token has the law p, and so have the first two, over all seeds: a trial that is \
        one round long cannot see it. The text of three is off by a total variation of 3/8. The check goes \
        through all cells of the three numbers, in fractions, on random pairs too. `specgap audit` sees it \
        in the target law of texts of several rounds.";
}

/// Finds where the sums of a law end: the numbers at which what they choose changes.
fn ends(law: &[Rational]) -> Vec<Rational> {
    let sums = law.iter().scan(Rational::zero(), |sum, mass| {
        sum.gain(mass);
        Some(sum.clone())
    });
    sums.collect()
}

/// The token that a number in [0, 1) chooses.
fn chosen(ends: &[Rational], number: &Rational) -> usize {
    ends.iter().take_while(|end| *end <= number).count()
}

/// The pieces of [0, 1) between such ends: the first number of each, and how long it is.
fn pieces(ends: impl Iterator<Item = Rational>) -> Vec<(Rational, Rational)> {
    let mut all: Vec<Rational> = ends.chain([Rational::zero(), Rational::one()]).collect();
    all.sort();
    all.dedup();
    let lengths = all.iter().zip(all.iter().skip(1));
    let pieces = lengths.map(|(from, to)| (from.clone(), to - from));
    pieces.collect()
}

/// A decoder of one draft a round for rows that do not depend on the text.
struct Decoder {
    /// Ends of p, of q and of the residual; and min(1, p/q) by token.
    target: Vec<Rational>,
    draft: Vec<Rational>,
    residual: Vec<Rational>,
    keeps: Vec<Rational>,
}

impl Decoder {
    fn new(p: &[Rational], q: &[Rational]) -> Self {
        let rows = || p.iter().zip(q);
        let left: Vec<Rational> = rows().map(|(p, q)| p.excess_over(q)).collect();
        let keeps = rows().map(|(p, q)| match p < q {
            true => p.over(q),
            false => Rational::one(),
        });
        Self {
            target: ends(p),
            draft: ends(q),
            residual: ends(&normalised(&left).unwrap_or(left)),
            keeps: keeps.collect(),
        }
    }

    /// Writes a round that may have so many tokens.
    fn round(&self, left: usize, [draft, coin, own]: [&Rational; 3]) -> Vec<usize> {
        if left < 2 {
            return vec![chosen(&self.target, own)];
        }
        let drafted = chosen(&self.draft, draft);
        if *coin < self.keeps[drafted] {
            vec![drafted, chosen(&self.target, own)]
        } else {
            vec![chosen(&self.residual, own)]
        }
    }

    /// The law of the text if every round begins with the same three numbers.
    fn law(&self, tokens: usize) -> BTreeMap<Vec<usize>, Rational> {
        let own = self.target.iter().chain(&self.residual).cloned();
        let [drafts, coins, own] = [
            pieces(self.draft.iter().cloned()),
            pieces(self.keeps.iter().cloned()),
            pieces(own),
        ];
        let mut law = BTreeMap::new();
        for (draft, of_draft) in &drafts {
            for (coin, of_coin) in &coins {
                for (own, of_own) in &own {
                    let mut text = Vec::new();
                    while text.len() < tokens {
                        text.extend(self.round(tokens - text.len(), [draft, coin, own]));
                    }
                    *law.entry(text).or_insert_with(Rational::zero) += of_draft * of_coin * of_own;
                }
            }
        }
        law
    }
}

/// Returns how far the text's law is from independent draws of p.
fn off(p: &[Rational], q: &[Rational], tokens: usize) -> Rational {
    let law = Decoder::new(p, q).law(tokens);
    let over = law.into_iter().map(|(text, mass)| {
        let wanted: Rational = text.iter().map(|&token| &p[token]).product();
        mass.excess_over(&wanted)
    });
    over.sum()
}

fn check(finding: &mut Finding, [problem]: [Problem; 1]) {
    let [p, q] = rows(&problem).unwrap_or_default();
    for (tokens, name) in [
        (1, "total variation, first token"),
        (2, "total variation, two tokens"),
        (3, "total variation, three tokens"),
    ] {
        let off = off(&p, &q, tokens);
        finding.fraction(name, &off);
        finding.require(off.is_nil(), || {
            let off = format_rational(&off);
            format!("texts of {tokens} tokens are off by {off}")
        });
    }
    let mut family = Family::new(2103);
    for _ in 0..200 {
        let vocab = family.between(2, 4);
        let [p, q] = family.rows(vocab);
        let [first, three] = [1, 3].map(|tokens| off(&p, &q, tokens).is_nil());
        finding.tally("of 200 random pairs, first token by p", first);
        finding.tally("of 200, text of three tokens off", !three);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::family::fraction;

    #[test]
    fn the_text_of_three_tokens_by_hand() {
        let [p, q] = [["1/2", "1/2"], ["3/4", "1/4"]].map(|row| row.map(fraction));
        let law = Decoder::new(&p, &q).law(3);
        // By hand: kept 0 (1/2), then the target's own token twice; and so on.
        let by_hand = [
            ([0, 0, 0], "1/4"),
            ([0, 1, 1], "1/4"),
            ([1, 0, 0], "1/8"),
            ([1, 1, 0], "1/8"),
            ([1, 1, 1], "1/4"),
        ];
        assert_eq!(law.len(), by_hand.len());
        for (text, mass) in by_hand {
            assert_eq!(law[&text.to_vec()], fraction(mass), "{text:?}");
        }
    }
}
