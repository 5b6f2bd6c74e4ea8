//! Bounds on what the tokens that a row does not list can change, for every number of a
//! position: what laws and verifiers say of a cut row, put into the report's numbers.

use super::answers::Answers;
use super::metric::{Metric, Place, Temperature};
use super::settings::Asked;
use crate::known::Known;
use crate::row::{CUT_ROUNDING, CutAnswer, CutQuestion, CutRow, Row};

/// Puts bounds on every number at a temperature; `even` is the even completion, whose
/// answers are given.
pub(super) fn bound(
    cut: &mut CutRow<'_>,
    asked: &[Asked],
    temperature: Temperature,
    even: &mut Row<'_>,
    answers: &mut Answers,
) -> Result<(), String> {
    if let Some(overlap) = answers.get_mut(&Metric::Overlap { temperature }) {
        widen(overlap, cut.overlap(bounds_of(overlap)));
    }
    let overlap = bounds(answers, Metric::Overlap { temperature });
    for one in asked {
        let drafts = one.drafts;
        let place = Place {
            temperature,
            drafts,
        };
        let mut ask = |answer: CutAnswer, even_rate: &Known| {
            let question = CutQuestion {
                drafts,
                even: &mut *even,
                on_even: bounds_of(even_rate),
                overlap,
            };
            answer(cut, question).map_err(|error| error.to_string())
        };
        for &(scheme, optimum) in &one.optima {
            if let Some(best) = answers.get_mut(&Metric::Optimum { place, scheme }) {
                let found = ask(optimum.cut, best)?;
                widen(best, found);
            }
        }
        for &(rule, computed) in &one.rules {
            let (scheme, name) = rule;
            let best = bounds(answers, Metric::Optimum { place, scheme });
            if let Some(rate) = answers.get_mut(&Metric::Acceptance { place, rule }) {
                let [lower, upper] = match computed.cut {
                    _ if (name.entry().attains)(scheme) => best,
                    Some(cut) => ask(cut, rate)?,
                    None => [0.0, 1.0],
                };
                // No lossless rule accepts more than alpha*.
                widen(rate, [lower, upper.min(best[1])]);
            }
        }
    }
    Ok(())
}

/// Bounds on an answer, or on any probability.
fn bounds(answers: &Answers, metric: Metric) -> [f64; 2] {
    answers.get(&metric).map_or([0.0, 1.0], bounds_of)
}

/// Records bounds on the full row's number, which the completion's is among.
fn widen(number: &mut Known, [lower, upper]: [f64; 2]) {
    let lower = (lower - CUT_ROUNDING).max(0.0).min(number.lower());
    let upper = (upper + CUT_ROUNDING).min(1.0).max(number.upper());
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
    use crate::evaluate::verify;
    use crate::gap::Settings;
    use crate::gap::metric::schemes;
    use crate::gap::position::Pair;
    use crate::known::Kind;
    use crate::optimum::best;
    use crate::problem::Problem;
    use crate::scheme::{MadeOf, SchemeName};
    use crate::verifier::VerifierName;
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
                let best = best(&problem).unwrap().rate.value();
                within(Metric::Optimum { place, scheme }, best);
                let evaluation = verify(&problem);
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
