//! What the tokens that a row does not list can change.
//!
//! A top-heavy row lists some tokens L with their p and q, and the masses a of the target
//! and b of the draft outside them. The full row is one of many completions. For each
//! number of a report this module gives bounds that hold its value under every completion;
//! `docs/truncated-rows.md` has the proofs.
//!
//! Two completions do most of the work. In the *even* one, 64 tokens share a and b: the
//! row that the report's values are of. In the *disjoint* one, one token has p = a, q = 0
//! and one has p = 0, q = b: nothing of the rest can be accepted.

use super::answers::{Answers, REST_ENTRIES};
use super::metric::{Metric, Place, Rule, Temperature};
use super::settings::Asked;
use crate::distribution::heaviest;
use crate::known::Known;
use crate::row::{Row, RowError, Rows};
use crate::scheme::SchemeName;
use crate::verifier::VerifierName;

/// Rows of the disjoint completion.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    target: Vec<f64>,
    draft: Vec<f64>,
    workspace: crate::row::Workspace,
}

/// Bounds are widened by this, which is more than any rate is off by rounding.
const ROUNDING: f64 = 1e-11;

/// A row of listed tokens, and what is known of the others.
#[derive(Debug)]
pub(super) struct Truncation<'a> {
    /// On the disjoint completion.
    disjoint: Row<'a>,
    target: &'a [f64],
    draft: &'a [f64],
    /// a.
    target_rest: f64,
    /// b.
    draft_rest: f64,
    /// The listed tokens of largest q, by falling q.
    heaviest: Vec<usize>,
    /// q of the listed tokens but the k heaviest, for k from 0: sums, so that nothing
    /// cancels.
    without: Vec<f64>,
}

impl<'a> Truncation<'a> {
    /// For listed tokens' p and q, which sum to 1 - a and 1 - b; `None` if nothing is
    /// missing.
    pub(super) fn new(
        target: &[f64],
        draft: &[f64],
        [target_rest, draft_rest]: [f64; 2],
        most_drafts: usize,
        workspace: &'a mut Workspace,
    ) -> Result<Option<Self>, String> {
        if target_rest <= 0.0 && draft_rest <= 0.0 {
            return Ok(None);
        }
        let Workspace {
            target: disjoint_target,
            draft: disjoint_draft,
            workspace,
        } = workspace;
        for (row, listed, rest) in [
            (&mut *disjoint_target, target, [target_rest, 0.0]),
            (&mut *disjoint_draft, draft, [0.0, draft_rest]),
        ] {
            row.clear();
            row.extend(listed);
            row.extend(rest);
        }
        let (target, draft) = (&*disjoint_target, &*disjoint_draft);
        let listed = draft.len() - 2;
        let disjoint = workspace
            .load(Rows { target, draft }, most_drafts)
            .map_err(|error| error.to_string())?;
        let (target, draft) = (&target[..listed], &draft[..listed]);
        let heaviest = heaviest(draft, most_drafts);
        let others = draft.iter().enumerate();
        let others = others.filter(|(token, _)| !heaviest.contains(token));
        let mut without = vec![others.map(|(_, &q)| q).sum::<f64>()];
        for &token in heaviest.iter().rev() {
            without.push(without[without.len() - 1] + draft[token]);
        }
        without.reverse();
        Ok(Some(Self {
            disjoint,
            target,
            draft,
            target_rest,
            draft_rest,
            heaviest,
            without,
        }))
    }

    /// Puts bounds on every number at a temperature; `even` are the rates of the even
    /// completion, whose answers are given.
    pub(super) fn bound(
        &mut self,
        asked: &[Asked],
        temperature: Temperature,
        even: &mut Row<'_>,
        answers: &mut Answers,
    ) -> Result<(), String> {
        if let Some(overlap) = answers.get_mut(&Metric::Overlap { temperature }) {
            widen(overlap, self.overlap(overlap));
        }
        for one in asked {
            let drafts = one.drafts;
            let place = Place {
                temperature,
                drafts,
            };
            for &(scheme, _) in &one.optima {
                if let Some(best) = answers.get(&Metric::Optimum { place, scheme }) {
                    let bounds = self.optimum(scheme, drafts, best)?;
                    if let Some(best) = answers.get_mut(&Metric::Optimum { place, scheme }) {
                        widen(best, bounds);
                    }
                }
            }
            for &(rule, _) in &one.rules {
                let scheme = rule.0;
                let best = answers.get(&Metric::Optimum { place, scheme });
                let best = best.map_or([0.0, 1.0], bounds_of);
                let overlap = answers.get(&Metric::Overlap { temperature });
                let overlap = overlap.map_or([0.0, 1.0], bounds_of);
                if let Some(rate) = answers.get_mut(&Metric::Acceptance { place, rule }) {
                    let bounds = self.acceptance(rule, drafts, rate, even, best, overlap);
                    // No lossless rule accepts more than alpha*.
                    widen(rate, [bounds[0], bounds[1].min(best[1])]);
                }
            }
        }
        Ok(())
    }

    /// Listed tokens' part is known; the others' is between 0 and min(a, b), which the even
    /// completion reaches.
    fn overlap(&self, even: &Known) -> [f64; 2] {
        let most = self.target_rest.min(self.draft_rest);
        [even.lower() - most, even.upper()]
    }

    fn optimum(
        &mut self,
        scheme: SchemeName,
        drafts: usize,
        even: &Known,
    ) -> Result<[f64; 2], String> {
        if scheme == SchemeName::TOP {
            return Ok(self.of_the_top(drafts));
        }
        // One draw from q is one draw from q, whatever its scheme.
        if drafts == 1 {
            return Ok(self.overlap(even));
        }
        let (a, disjoint) = (self.target_rest, &mut self.disjoint);
        let refused = |error: RowError| error.to_string();
        // Merging tokens cannot lower alpha*, splitting them cannot raise it; the even
        // completion has the alpha* of one merged token.
        if scheme == SchemeName::WITH_REPLACEMENT {
            let rate = disjoint.with_replacement(drafts);
            return Ok([rate.map_err(refused)?.rate.lower(), even.upper()]);
        }
        // P of drafts inside a set that holds the rest only rises as the rest is split,
        // from one token to infinitely many, by no more than P of their meeting. And
        // drafts that differ cover no less than independent ones.
        if scheme == SchemeName::WITHOUT_REPLACEMENT {
            let independent = disjoint.with_replacement(drafts);
            let independent = independent.map_err(refused)?.rate.lower();
            let met = self.meeting(drafts, 0);
            let lower = even.lower() - a - met / REST_ENTRIES as f64;
            return Ok([lower.max(independent), even.upper() + a + met]);
        }
        if scheme == SchemeName::DISTINCT_CONDITIONED {
            let merged = disjoint.distinct_conditioned(drafts);
            let upper = merged.map_err(refused)?.rate.upper() + a;
            return Ok([even.lower() - a - self.meeting_of_distinct(drafts), upper]);
        }
        if scheme == SchemeName::GREEDY || scheme == SchemeName::HUB {
            return Ok(self.with_fixed(drafts - 1, even));
        }
        Ok([0.0, 1.0])
    }

    fn acceptance(
        &mut self,
        (scheme, name): Rule,
        drafts: usize,
        even: &Known,
        even_row: &mut Row<'_>,
        best: [f64; 2],
        overlap: [f64; 2],
    ) -> [f64; 2] {
        let (a, b, n) = (self.target_rest, self.draft_rest, drafts as f64);
        let is = |one: SchemeName, other: VerifierName| scheme == one && name == other;
        // M(L) is smallest on one merged token and largest where the rest is disjoint,
        // at every L, and L grows with it.
        if is(SchemeName::WITH_REPLACEMENT, VerifierName::RRS) {
            let (low, high) = (even_row, &mut self.disjoint);
            let (mut least, mut most) = (0.0, 0.0);
            let (mut least_left, mut most_left) = (1.0, 1.0);
            for _ in 0..drafts {
                least += least_left;
                most += most_left;
                least_left = low.residual_mass(least);
                most_left = high.residual_mass(most);
            }
            let lower = 1.0 - high.residual_mass(least);
            return [lower.max(overlap[0]), 1.0 - low.residual_mass(most)];
        }
        // The root moves by no more than the curve that it lies on.
        if is(SchemeName::WITH_REPLACEMENT, VerifierName::K_SEQ) {
            return [even.lower() - a.min(n * b), even.upper()];
        }
        // sum of p (1 - (1-q)^n), of which listed tokens' part is known.
        if is(SchemeName::WITH_REPLACEMENT, VerifierName::NAIVE) {
            let drafted = |q: f64| -(n * (-q).ln_1p()).exp_m1();
            let spread = a * drafted(b / REST_ENTRIES as f64);
            return [
                even.lower() - spread,
                even.upper() - spread + a * drafted(b.min(1.0)),
            ];
        }
        // A listed token is drafted least where the rest is many tokens, most where it
        // is one.
        if is(SchemeName::WITHOUT_REPLACEMENT, VerifierName::NAIVE) {
            let met = self.meeting(drafts, 1);
            let lower = even.lower() - a - met / REST_ENTRIES as f64;
            return [lower, even.upper() + a + met];
        }
        if (name.entry().attains)(scheme) {
            return best;
        }
        if name == VerifierName::NAIVE && [SchemeName::GREEDY, SchemeName::HUB].contains(&scheme) {
            return self.naive_with_fixed(drafts - 1, even);
        }
        // The first draft alone is accepted with the overlap.
        if is(SchemeName::WITHOUT_REPLACEMENT, VerifierName::RRS_WO)
            || is(SchemeName::WITH_REPLACEMENT, VerifierName::NAIVE_TREE)
        {
            return [overlap[0], best[1]];
        }
        [0.0, best[1]]
    }

    /// p of the n tokens of largest q, of which unlisted ones may be some. Which of equal
    /// ones are drafted is left open.
    fn of_the_top(&self, drafts: usize) -> [f64; 2] {
        let last = drafts.checked_sub(1).and_then(|k| self.heaviest.get(k));
        let least = last.map_or(0.0, |&token| self.draft[token]);
        let held = |belongs: &dyn Fn(f64) -> bool| -> f64 {
            let listed = self.target.iter().zip(self.draft);
            listed.filter(|(_, q)| belongs(**q)).map(|(p, _)| p).sum()
        };
        let most = held(&|q| q >= least);
        if least > self.draft_rest {
            // No unlisted token is among the top.
            let drafted = self.draft.iter().filter(|&&q| q >= least).count();
            let sure = if drafted == drafts {
                most
            } else {
                held(&|q| q > least)
            };
            return [sure, most];
        }
        [held(&|q| q > self.draft_rest), most + self.target_rest]
    }

    /// The mean number of pairs among n sequential drafts that are both from the rest, at
    /// most, `gone` more listed tokens being out: the probability of any event is off by no
    /// more where one token stands for all of the rest, and by a 64th of that where 64 do.
    ///
    /// Draw j is from the rest with probability at most c(j-1) = b / (b + q of the listed
    /// tokens but the j-1 heaviest), and c(j-2) if an earlier one was.
    fn meeting(&self, drafts: usize, gone: usize) -> f64 {
        let b = self.draft_rest;
        if b <= 0.0 {
            return 0.0;
        }
        let one = |drawn: usize| b / (b + self.without(drawn + gone));
        let mut sum = 0.0;
        let mut earlier = 0.0;
        for draw in 2..=drafts {
            earlier += one(draw - 2);
            sum += earlier * one(draw - 2);
        }
        sum
    }

    /// q of the listed tokens but the heaviest ones.
    fn without(&self, heaviest: usize) -> f64 {
        let last = self.without.len() - 1;
        self.without[heaviest.min(last)]
    }

    /// The same of independent draws given that all differ: their P of a meeting is at most
    /// that without the condition, over the probability of the condition.
    fn meeting_of_distinct(&self, drafts: usize) -> f64 {
        let (b, entries) = (self.draft_rest, REST_ENTRIES as f64);
        if b <= 0.0 {
            return 0.0;
        }
        // n! e_n of the listed tokens and one of mass b: P(all differ), at least.
        let mut differ = vec![0.0; drafts + 1];
        differ[0] = 1.0;
        for &q in self.draft.iter().chain([&b]) {
            for k in (1..=drafts).rev() {
                differ[k] += k as f64 * q * differ[k - 1];
            }
        }
        let met = pairs(drafts) * b * b / (entries * differ[drafts] * (1.0 - ROUNDING));
        let all: f64 = (0..drafts).map(|k| 1.0 - k as f64 / entries).product();
        met.min(1.0 - all)
    }

    /// alpha*, and its verifier's acceptance, where the heaviest tokens of q are drafts
    /// anyway: p(top) + sum over the others of min(p, q/(1-q(top))).
    fn with_fixed(&self, fixed: usize, even: &Known) -> [f64; 2] {
        let (a, b) = (self.target_rest, self.draft_rest);
        let others = self.without(fixed);
        let least = match fixed.checked_sub(1) {
            None => f64::INFINITY,
            // Fewer can be drawn: unlisted ones are among the top.
            Some(last) => self
                .heaviest
                .get(last)
                .map_or(0.0, |&token| self.draft[token]),
        };
        if b < least {
            // No unlisted token is among the top.
            return [even.lower() - a.min(b / (others + b)), even.upper()];
        }
        // The top has q between that of the listed top and b more.
        let (mut lower, mut upper) = (0.0, a);
        for (&p, &q) in self.target.iter().zip(self.draft) {
            lower += p.min(q / (others + b));
            upper += if q >= least { p } else { p.min(q / others) };
        }
        [lower, upper]
    }

    /// A draw from p among the heaviest tokens of q and one draw from the others:
    /// p(top) + sum over the others of p q/(1-q(top)), of which the unlisted tokens' part is
    /// at most a b/(1-q(top)).
    fn naive_with_fixed(&self, fixed: usize, even: &Known) -> [f64; 2] {
        let (a, b) = (self.target_rest, self.draft_rest);
        let outside = self.without(fixed) + b;
        let least = match fixed.checked_sub(1) {
            None => f64::INFINITY,
            Some(last) => (self.heaviest.get(last)).map_or(0.0, |&token| self.draft[token]),
        };
        if b < least {
            // No unlisted token is among the top.
            let drawn = a * (b / outside);
            return [
                even.lower() - drawn / REST_ENTRIES as f64,
                even.upper() + drawn,
            ];
        }
        // A top of unlisted tokens too has no less of q, so that the last draw hits any
        // other token no less often; and listed tokens above b stay in it.
        let mut lower = 0.0;
        for (token, (&p, &q)) in self.target.iter().zip(self.draft).enumerate() {
            let stays = q > b && self.heaviest.iter().take(fixed).any(|&one| one == token);
            lower += p * if stays { 1.0 } else { (q / outside).min(1.0) };
        }
        [lower, 1.0]
    }
}

/// n (n-1) / 2.
fn pairs(drafts: usize) -> f64 {
    (drafts * (drafts - 1)) as f64 * 0.5
}

/// Records bounds on the full row's number, which the completion's is among.
fn widen(number: &mut Known, [lower, upper]: [f64; 2]) {
    let lower = (lower - ROUNDING).max(0.0).min(number.lower());
    let upper = (upper + ROUNDING).min(1.0).max(number.upper());
    // Bounds that are no numbers bound nothing.
    let bounds = if lower <= upper {
        [lower, upper]
    } else {
        [0.0, 1.0]
    };
    *number = Known::truncated(number, bounds);
}

fn bounds_of(number: &Known) -> [f64; 2] {
    [number.lower(), number.upper()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{Draft, Target};
    use crate::gap::Settings;
    use crate::gap::metric::schemes;
    use crate::gap::position::Pair;
    use crate::known::Kind;
    use crate::problem::Problem;
    use crate::scheme::MadeOf;
    use crate::verifier::{evaluate, optimal_rate};
    use rand::rngs::SmallRng;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng};

    /// p or q of some tokens, even or peaked, some of them 0.
    fn row(rng: &mut SmallRng, tokens: usize) -> Vec<f64> {
        let sharp = [0.3, 1.0, 3.0, 8.0][rng.random_range(0..4)];
        let mut row: Vec<f64> = (0..tokens)
            .map(|_| (sharp * rng.random_range(-1.5..1.5f64)).exp())
            .collect();
        if rng.random_bool(0.3) {
            row[rng.random_range(0..tokens)] = 0.0;
        }
        let sum: f64 = row.iter().sum();
        row.iter().map(|x| x / sum).collect()
    }

    /// A problem for each law of n drafts that a log's rows make.
    fn problems(p: &[f64], q: &[f64], n: usize) -> Vec<(SchemeName, Problem)> {
        let (p, q) = (Target::new(p).unwrap(), Draft::new(q).unwrap());
        schemes()
            .filter(|scheme| scheme.fits(n))
            .filter_map(|scheme| match scheme.entry().made_of {
                MadeOf::OneDraft(make) => Some((scheme, make(q.clone(), n))),
                _ => None,
            })
            .map(|(scheme, law)| (scheme, Problem::from_law("", p.clone(), law).unwrap()))
            .collect()
    }

    /// Lists of some tokens of a full row, whichever: the full row's optima, by exact
    /// solvers, and its rules' acceptance, by enumeration, lie within the bounds.
    #[test]
    fn every_completion_lies_within_the_bounds() {
        let mut rng = SmallRng::seed_from_u64(11);
        let temperature = Temperature(1.0);
        let (mut checked, mut widths) = (0, Vec::new());
        for round in 0..150 {
            let vocabulary = rng.random_range(4..=7usize);
            let (p, q) = (row(&mut rng, vocabulary), row(&mut rng, vocabulary));
            let mut tokens: Vec<usize> = (0..vocabulary).collect();
            if round % 2 == 0 {
                // The most probable of both, as a log lists them.
                tokens.sort_by(|&i, &j| p[j].max(q[j]).total_cmp(&p[i].max(q[i])));
            } else {
                tokens.shuffle(&mut rng);
            }
            let n = rng.random_range(1..=3usize);
            let listed = &tokens[..rng.random_range(n..vocabulary)];
            let others = &tokens[listed.len()..];
            let mass = |row: &[f64]| others.iter().map(|&i| row[i]).sum::<f64>();
            let rest = [mass(&p), mass(&q)];
            if listed.iter().all(|&i| q[i] == 0.0) || listed.iter().all(|&i| p[i] == 0.0) {
                continue;
            }
            let settings = Settings::new(&[1.0], &[n], 1).unwrap();
            let mut pair = Pair {
                target: listed.iter().map(|&i| p[i]).collect(),
                draft: listed.iter().map(|&i| q[i]).collect(),
                ..Pair::default()
            };
            let mut answers = Answers::new();
            pair.answer(&settings.asked(), temperature, Some(rest), 1, &mut answers)
                .unwrap();
            let place = Place {
                temperature,
                drafts: n,
            };
            let mut within = |metric: Metric, full: f64| {
                let answer = &answers[&metric];
                let [lower, upper] = bounds_of(answer);
                assert!(
                    lower - 1e-9 <= full && full <= upper + 1e-9,
                    "{metric:?} is {full} of the full row, outside {answer:?}; p {p:?}, q {q:?}, \
                     listed {listed:?}"
                );
                assert!(lower <= answer.value() && answer.value() <= upper);
                checked += 1;
                if answer.kind() == Kind::Truncated {
                    widths.push(upper - lower);
                }
            };
            let overlap = p.iter().zip(&q).map(|(p, q)| p.min(*q)).sum();
            within(Metric::Overlap { temperature }, overlap);
            for (scheme, problem) in problems(&p, &q, n) {
                let best = optimal_rate(&problem).unwrap().value();
                within(Metric::Optimum { place, scheme }, best);
                let evaluation = evaluate(&problem);
                let rules = settings.rules(n).map(|(rule, _)| rule);
                for rule in rules.filter(|rule| rule.0 == scheme) {
                    let measured = evaluation.measured(rule.1).unwrap();
                    let rate = measured.membership.value();
                    within(Metric::Acceptance { place, rule }, rate);
                    within(Metric::Gap { place, rule }, best - rate);
                }
            }
        }
        assert!(checked > 2_000, "{checked}");
        // Bounds that say nothing would pass too.
        let narrow = widths.iter().filter(|&&width| width < 0.9).count();
        assert!(
            narrow * 10 > widths.len() * 8,
            "{narrow} of {}",
            widths.len()
        );
    }

    /// Where the rest is small, so is what it can change.
    #[test]
    fn a_small_rest_leaves_little_open() {
        let mut rng = SmallRng::seed_from_u64(5);
        let settings = Settings::new(&[1.0], &[2, 3], 1).unwrap();
        let temperature = Temperature(1.0);
        for _ in 0..20 {
            let (p, q) = (row(&mut rng, 30), row(&mut rng, 30));
            let scaled = |row: &[f64], mass: f64| row.iter().map(|x| x * (1.0 - mass)).collect();
            let (a, b) = (1e-3, 2e-3);
            let mut pair = Pair {
                target: scaled(&p, a),
                draft: scaled(&q, b),
                ..Pair::default()
            };
            let mut answers = Answers::new();
            pair.answer(
                &settings.asked(),
                temperature,
                Some([a, b]),
                1,
                &mut answers,
            )
            .unwrap();
            for (metric, answer) in &answers {
                let [lower, upper] = bounds_of(answer);
                let independent = SchemeName::WITH_REPLACEMENT;
                let most = match *metric {
                    Metric::Overlap { .. } => a,
                    Metric::Optimum { scheme, .. } if scheme == independent => a,
                    Metric::Acceptance { rule, .. } if rule == (independent, VerifierName::RRS) => {
                        8.0 * a
                    }
                    Metric::Acceptance { rule, .. }
                        if rule == (independent, VerifierName::K_SEQ)
                            || rule == (independent, VerifierName::NAIVE) =>
                    {
                        a
                    }
                    _ => continue,
                };
                assert!(upper - lower <= most + 1e-9, "{metric:?} {answer:?}");
            }
        }
    }
}
