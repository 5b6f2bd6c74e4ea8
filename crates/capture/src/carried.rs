//! Chains settled by rules that keep numbers from token to token: lossless as a text, not round by
//! round.

use super::rounds::{Chance, residual};
use super::sampling::Law;
use specgap_core::rounds::{BlockCarry, Carry};
use specgap_core::rule::RuleName;

/// What such a rule keeps in front of the next token of a text: a function of the text so far.
///
/// A round is settled by [`Self::keep`], then [`Self::end`].
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TextCarry {
    /// Of the rule `carried`.
    ByToken(Carry<f64>),
    /// Of the rule `carried-block`.
    ByBlock(BlockCarry<f64>),
}

impl TextCarry {
    /// In front of a text, for rounds of at most `most` drafts; none of rules that keep nothing.
    pub(super) fn of(rule: RuleName, most: usize) -> Option<Self> {
        if rule == RuleName::CARRIED {
            Some(Self::ByToken(Carry::new(most)))
        } else if rule == RuleName::CARRIED_BLOCK {
            Some(Self::ByBlock(BlockCarry::new(most)))
        } else {
            None
        }
    }

    /// Returns how many drafts a round keeps, the first ones; goes on behind them. The laws are those in
    /// front of each draft. Nothing where the lists do not fit.
    ///
    /// Time O(K) by token, O(K^2 V) by block.
    pub(super) fn keep(
        &mut self,
        [target, draft]: [&[Law]; 2],
        drafts: &[u32],
        chance: &mut dyn Chance,
    ) -> Option<usize> {
        match self {
            Self::ByToken(carry) => {
                for (place, &token) in drafts.iter().enumerate() {
                    let ratio = ratio([target.get(place)?, draft.get(place)?], token as usize);
                    if !chance.below(carry.keeps(&ratio)) {
                        return Some(place);
                    }
                    carry.pass(&ratio);
                }
                Some(drafts.len())
            }
            Self::ByBlock(carry) => {
                // In front of each draft and behind all, where a round of this age gives out nothing.
                let (mut here, mut path) = (carry.clone(), Vec::with_capacity(drafts.len() + 1));
                for (place, &token) in drafts.iter().enumerate() {
                    let rows = [target.get(place)?, draft.get(place)?];
                    let given = here.give_out(Some((&row(rows[0]), &row(rows[1]))));
                    let before = here.clone();
                    here.pass_given(
                        &given,
                        rows.map(|law| law.probability(token as usize)).each_ref(),
                    );
                    path.push((before, given));
                }
                let given = here.give_out(None);
                path.push((here, given));
                let stops = path.into_iter().enumerate().rev();
                for (age, (here, given)) in stops {
                    if age == 0 || chance.below(given.stops(&here, age)) {
                        *carry = here;
                        return Some(age);
                    }
                }
                None
            }
        }
    }

    /// The token behind the drafts that a round keeps; goes on behind it. `draft` is none where
    /// nothing can be drafted, as at the last token that a text may have.
    ///
    /// Time O(V) by token, O(K V) by block; memory O(V).
    pub(super) fn end(
        &mut self,
        target: &Law,
        draft: Option<&Law>,
        chance: &mut dyn Chance,
        scratch: &mut Vec<f64>,
    ) -> usize {
        let Some(draft) = draft else {
            return chance.token(target);
        };
        scratch.clear();
        // Nothing is left only by rounding, and p is then as good.
        let mut drawn = |left: &[f64]| chance.of(left).unwrap_or_else(|| chance.token(target));
        match self {
            Self::ByToken(carry) => {
                scratch.extend(residual(target, draft, [1.0, carry.standing()]));
                let token = drawn(scratch);
                carry.pass(&ratio([target, draft], token));
                token
            }
            Self::ByBlock(carry) => {
                let (p, q) = (row(target), row(draft));
                let given = carry.give_out(Some((&p, &q)));
                scratch.extend(p.iter().zip(&q).map(|(p, q)| given.free(p, q)));
                let token = drawn(scratch);
                let of_token = [target, draft].map(|law| law.probability(token));
                carry.pass_given(&given, of_token.each_ref());
                token
            }
        }
    }
}

/// q/p of a token.
fn ratio([target, draft]: [&Law; 2], token: usize) -> f64 {
    draft.probability(token) / target.probability(token)
}

fn row(law: &Law) -> Vec<f64> {
    law.probabilities().collect()
}

#[cfg(test)]
mod tests {
    use super::super::every::{
        Counted, Every, Pair, masses, mean_rounds, moments, texts_in_rounds,
    };
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use specgap_core::rounds::{carried_block_starts, carried_starts};
    use specgap_replay::replay::CarriedAlong;

    const RULES: [RuleName; 2] = [RuleName::CARRIED, RuleName::CARRIED_BLOCK];

    /// Texts in rounds of at most `most` drafts, by every draft and coin: the first `end` tokens
    /// of `total`. With `forget` every round begins as a text does.
    fn texts(pair: &Pair, rule: RuleName, lengths: [usize; 3], forget: bool) -> Counted {
        let [_, total, most] = lengths;
        let fresh = TextCarry::of(rule, most).unwrap();
        // What is kept is a function of the text, whatever its rounds were.
        let same = |_: &TextCarry, _: &TextCarry| true;
        texts_in_rounds(lengths, fresh.clone(), same, |prefix, before, drafted| {
            let (mut written, mut chance) = (Vec::new(), Every::default());
            loop {
                let ([p, q], drafts) = pair.chain(prefix, drafted, &mut chance);
                let mut carry = if forget { &fresh } else { before }.clone();
                let kept = carry.keep([&p, &q], &drafts, &mut chance).unwrap();
                let mut text = prefix.to_vec();
                text.extend(drafts.iter().take(kept).map(|&draft| draft as usize));
                let target = pair.law(0, &text);
                let draft = (text.len() + 1 < total).then(|| pair.law(1, &text));
                text.push(carry.end(&target, draft.as_ref(), &mut chance, &mut Vec::new()));
                written.push((text, carry, chance.weight()));
                if !chance.next() {
                    return written;
                }
            }
        })
    }

    /// p, q and the token at each place of a text.
    fn rows<'a>(pair: &'a Pair, text: &[usize]) -> Vec<(&'a [f64], &'a [f64], usize)> {
        let each = (0..text.len()).map(|at| {
            let [p, q] = &pair.laws[&text[..at]];
            (&p[..], &q[..], text[at])
        });
        each.collect()
    }

    /// The mean over the target's texts of what the replay along them says.
    fn replayed(pair: &Pair, rule: RuleName, [total, most]: [usize; 2]) -> f64 {
        let texts = pair.texts(&[], total, 1.0).into_iter();
        let written = texts.filter(|(_, mass)| *mass > 0.0);
        let calls = written.map(|(text, mass)| {
            let rows = rows(pair, &text);
            let starts = if rule == RuleName::CARRIED {
                let ratios: Vec<f64> = rows.iter().map(|&(p, q, x)| q[x] / p[x]).collect();
                carried_starts(&ratios, most)
            } else {
                carried_block_starts(&rows, most)
            };
            mass * starts.iter().sum::<f64>()
        });
        calls.sum()
    }

    /// Models of (tokens of the vocabulary, of the text, drafts a round).
    const SHAPES: [(usize, usize, usize); 6] = [
        (2, 4, 1),
        (3, 4, 1),
        (3, 3, 2),
        (2, 4, 2),
        (2, 5, 2),
        (2, 4, 3),
    ];

    #[test]
    fn texts_in_rounds_have_the_targets_law() {
        let mut rng = ChaCha8Rng::seed_from_u64(31);
        for (vocab, total, most) in SHAPES {
            let mut pair = Pair::random(&mut rng, vocab, total);
            // What the checks below would say of rounds that lose what is kept. By token, rounds
            // that reach the text's end need nothing from those before.
            for rule in RULES.into_iter().filter(|_| most + 1 < total) {
                let texts = texts(&pair, rule, [total, total, most], true);
                let lost = pair.apart(masses(&texts), total);
                assert!(lost > 1e-3, "{rule}: N = {total}, K = {most}: {lost}");
            }
            // Tokens that the target never writes, as behind a cut.
            for (prefix, [p, _]) in &mut pair.laws {
                if prefix.len() == 1 {
                    p.fill(0.0);
                    p[prefix[0]] = 1.0;
                }
            }
            for rule in RULES {
                let name = format!("{rule}: V = {vocab}, N = {total}, K = {most}");
                let texts = texts(&pair, rule, [total, total, most], false);
                let wrong = pair.apart(masses(&texts), total);
                assert!(wrong < 1e-12, "{name}: {wrong}");
                let (rounds, expected) =
                    (mean_rounds(&texts), replayed(&pair, rule, [total, most]));
                let wrong = (rounds - expected).abs();
                assert!(wrong < 1e-12, "{name}: {rounds}, {expected}");
            }
        }
    }

    /// Given each text, also one that ends before it has to: mean and variance of both counts.
    #[test]
    fn rounds_given_a_text_are_as_many_as_its_replay_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(33);
        let mut apart_from_starts = 0.0f64;
        for (vocab, total, most) in SHAPES {
            let pair = Pair::random(&mut rng, vocab, total);
            for (rule, end) in RULES
                .into_iter()
                .flat_map(|rule| [(rule, total), (rule, total - 1)])
            {
                for (text, ways) in texts(&pair, rule, [end, total, most], false) {
                    let mut along = match rule == RuleName::CARRIED {
                        true => CarriedAlong::by_token(most),
                        false => CarriedAlong::by_block(most),
                    };
                    let rows = rows(&pair, &text);
                    for (at, &(p, q, token)) in rows.iter().enumerate() {
                        along.take((at + 1 < total).then_some((p, q)), token);
                    }
                    let spread = along.spread();
                    for (which, said) in [Some(&spread.calls), spread.drafts.as_ref()]
                        .into_iter()
                        .enumerate()
                    {
                        let said = said.unwrap();
                        let [mean, variance] = moments(&ways, which);
                        let name = format!("{rule}: K = {most}, {text:?} of {total}, {which}");
                        assert!((said.mean - mean).abs() < 1e-9, "{name}: {said:?}, {mean}");
                        let wrong = (said.variance - variance).abs();
                        assert!(wrong < 1e-9, "{name}: {said:?}, {variance}");
                    }
                    if rule == RuleName::CARRIED && end == total {
                        let ratios: Vec<f64> = rows.iter().map(|&(p, q, x)| q[x] / p[x]).collect();
                        let starts: f64 = carried_starts(&ratios, most).iter().sum();
                        let wrong = (starts - spread.calls.mean).abs();
                        apart_from_starts = apart_from_starts.max(wrong);
                    }
                }
            }
        }
        // What is known before each token is not what is known behind all.
        assert!(apart_from_starts > 0.01, "{apart_from_starts}");
    }

    #[test]
    fn rules_of_single_rounds_keep_nothing() {
        for rule in [RuleName::TOKEN, RuleName::BLOCK, RuleName::SELECT_BLOCK] {
            assert_eq!(TextCarry::of(rule, 3), None);
        }
    }
}
