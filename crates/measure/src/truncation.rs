//! Bounds on what the tokens that a row does not list can change, for every number of a
//! position: what laws and verifiers say of a cut row, put into the report's numbers.

use super::answers::Answers;
use super::metric::{Metric, Place, Temperature};
use super::settings::Asked;
use specgap_number::known::Known;
use specgap_row::{CUT_ROUNDING, CutAnswer, CutQuestion, CutRow};

/// Answers everything that is asked at a temperature with bounds over all completions of
/// the rows. No completion is taken for the full row: the value of a number is the middle
/// of its bounds.
pub(super) fn answer(
    cut: &mut CutRow<'_>,
    asked: &[Asked],
    temperature: Temperature,
    answers: &mut Answers,
) -> Result<(), String> {
    let overlap = widened(cut.overlap(), CUT_ROUNDING);
    answers.insert(Metric::Overlap { temperature }, between(overlap));
    for one in asked {
        let drafts = one.drafts;
        let place = Place::new(temperature, drafts);
        let room = cut.rounding(drafts);
        let mut ask = |answer: CutAnswer| {
            let found = answer(cut, CutQuestion { drafts, overlap });
            found
                .map(|found| widened(found, room))
                .map_err(|error| error.to_string())
        };
        for &(scheme, optimum) in &one.optima {
            let best = between(ask(optimum.cut)?);
            answers.insert(Metric::Optimum { place, scheme }, best);
        }
        for &(rule, computed) in &one.rules {
            let (scheme, name) = rule;
            let best = answers.get(&Metric::Optimum { place, scheme });
            let best = best.map_or([0.0, 1.0], |best| [best.lower(), best.upper()]);
            let [lower, upper] = match computed.cut {
                _ if (name.entry().attains)(scheme) => best,
                Some(cut) => ask(cut)?,
                None => [0.0, 1.0],
            };
            // No lossless rule accepts more than alpha*.
            let rate = between([lower.min(best[1]), upper.min(best[1])]);
            answers.insert(Metric::Acceptance { place, rule }, rate);
        }
    }
    Ok(())
}

/// Bounds with room for rounding. Those that are no numbers bound nothing.
fn widened([lower, upper]: [f64; 2], room: f64) -> [f64; 2] {
    let (lower, upper) = (lower - room, upper + room);
    if lower <= upper {
        [lower.max(0.0), upper.clamp(0.0, 1.0)]
    } else {
        [0.0, 1.0]
    }
}

/// A number of which nothing is known but bounds.
fn between([lower, upper]: [f64; 2]) -> Known {
    let middle = 0.5 * (lower + upper);
    let room = CUT_ROUNDING.min(0.5 * (upper - lower));
    Known::truncated(&Known::rate_within(middle, room), [lower, upper])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Settings;
    use crate::metric::schemes;
    use crate::position::{AskedOf, Cut, Pair};
    use rand::rngs::SmallRng;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng};
    use specgap_core::optimum::best;
    use specgap_core::problem::Problem;
    use specgap_core::scheme::{MadeOf, SchemeName};
    use specgap_core::verifier::VerifierName;
    use specgap_exact::evaluate::verify;
    use specgap_number::distribution::{Draft, Target};
    use specgap_number::known::Kind;
    use specgap_row::{Row, Rows, Unlisted, Workspace};

    const TEMPERATURE: Temperature = Temperature(1.0);

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

    /// Returns what full rows answer: the overlap, the optima of exact solvers, and the acceptance
    /// of rules by enumeration, with their gaps.
    pub(crate) fn of_full_rows(
        [p, q]: [&[f64]; 2],
        place: Place,
        settings: &Settings,
    ) -> Vec<(Metric, f64)> {
        let Place {
            temperature,
            drafts,
        } = place;
        let overlap = p.iter().zip(q).map(|(p, q)| p.min(*q)).sum();
        let mut all = vec![(Metric::Overlap { temperature }, overlap)];
        for (scheme, problem) in problems(p, q, drafts) {
            let best = best(&problem).unwrap().rate.value();
            all.push((Metric::Optimum { place, scheme }, best));
            let evaluation = verify(&problem);
            let rules = settings.rules(drafts).map(|(rule, _)| rule);
            for rule in rules.filter(|rule| rule.0 == scheme) {
                let rate = evaluation.measured(rule.1).unwrap().membership.value();
                all.push((Metric::Acceptance { place, rule }, rate));
                all.push((Metric::Gap { place, rule }, best - rate));
            }
        }
        all
    }

    /// The shares of listed tokens in the order of `tokens`, NaN for those that are not.
    fn shares(row: &[f64], tokens: &[usize], listed: &[usize]) -> Vec<f64> {
        let mass: f64 = listed.iter().map(|&i| row[i]).sum();
        let share = |i: &usize| match listed.contains(i) {
            true => row[*i] / mass,
            false => f64::NAN,
        };
        tokens.iter().map(share).collect()
    }

    /// Returns what is true of the tokens that a list leaves out.
    fn unlisted(row: &[f64], listed: &[usize]) -> Unlisted {
        let others = (0..row.len()).filter(|i| !listed.contains(i));
        let mass: f64 = listed.iter().map(|&i| row[i]).sum();
        let (mut rest, mut largest) = (0.0, 0.0);
        for token in others {
            rest += row[token];
            largest = f64::max(largest, row[token] / mass);
        }
        unlisted_of(rest, largest)
    }

    fn unlisted_of(mass: f64, largest: f64) -> Unlisted {
        Unlisted {
            mass: [mass, mass],
            largest,
        }
    }

    fn answers_of(
        lists: [&[f64]; 2],
        unlisted: [Unlisted; 2],
        vocabulary: usize,
        settings: &Settings,
    ) -> Answers {
        answers_of_lists(lists, unlisted, [vocabulary, lists[0].len()], settings)
    }

    fn answers_of_lists(
        lists: [&[f64]; 2],
        unlisted: [Unlisted; 2],
        [vocabulary, missing]: [usize; 2],
        settings: &Settings,
    ) -> Answers {
        let mut answers = Answers::new();
        let mut pair = Pair {
            target: lists[0].to_vec(),
            draft: lists[1].to_vec(),
            ..Pair::default()
        };
        let cut = Cut {
            unlisted,
            vocabulary,
            missing,
        };
        let asked = AskedOf {
            asked: &settings.asked(),
            audit: true,
            audit_plans: true,
            every_plan: true,
        };
        pair.answer(asked, TEMPERATURE, Some(cut), 1, &mut answers)
            .unwrap();
        answers
    }

    /// Changes what is not listed, keeping its masses: in proportion, apart, or even.
    fn rearrange(p: &mut [f64], q: &mut [f64], others: &[usize], way: usize) {
        let mass = |row: &[f64]| others.iter().map(|&i| row[i]).sum::<f64>();
        let (a, b, m) = (mass(p), mass(q), others.len());
        for (place, &token) in others.iter().enumerate() {
            match way {
                0 => p[token] = if b > 0.0 { a * q[token] / b } else { p[token] },
                1 if m > 1 => {
                    p[token] = if place == 0 { a } else { 0.0 };
                    q[token] = if place == 0 { 0.0 } else { b / (m - 1) as f64 };
                }
                2 => (p[token], q[token]) = (a / m as f64, b / m as f64),
                3 => {
                    p[token] = if place == 0 { a } else { 0.0 };
                    q[token] = if place == 0 { b } else { 0.0 };
                }
                _ => {}
            }
        }
    }

    /// Lists of some tokens of a full row, whichever: the full row's optima, by exact
    /// solvers, and its rules' acceptance, by enumeration, lie within the bounds. Both rows
    /// list the same tokens or each its own, the masses are known or between bounds, and it
    /// is known how much an unlisted token has at most, or not.
    #[test]
    fn every_completion_lies_within_the_bounds() {
        let mut rng = SmallRng::seed_from_u64(11);
        let (mut checked, mut widths) = (0, [Vec::new(), Vec::new()]);
        for round in 0..160 {
            let vocabulary = rng.random_range(4..=7usize);
            let (mut p, mut q) = (row(&mut rng, vocabulary), row(&mut rng, vocabulary));
            let n = rng.random_range(1..=3usize);
            let mut tokens: Vec<usize> = (0..vocabulary).collect();
            tokens.shuffle(&mut rng);
            let is_alike = round % 4 < 2;
            let mut lists = [0, 1].map(|_| tokens[..rng.random_range(n..vocabulary)].to_vec());
            if is_alike {
                lists[1] = lists[0].clone();
                let others = &tokens[lists[0].len()..];
                rearrange(&mut p, &mut q, others, rng.random_range(0..8));
            } else {
                // The most probable of each.
                for (list, row) in lists.iter_mut().zip([&p, &q]) {
                    let mut order: Vec<usize> = (0..vocabulary).collect();
                    order.sort_by(|&i, &j| row[j].total_cmp(&row[i]));
                    *list = order[..list.len()].to_vec();
                }
            }
            let mass = |row: &[f64], list: &[usize]| list.iter().map(|&i| row[i]).sum::<f64>();
            if mass(&p, &lists[0]) < 1e-9 || mass(&q, &lists[1]) < 1e-9 {
                continue;
            }
            let mut listed = lists[0].clone();
            listed.extend(lists[1].iter().filter(|i| !lists[0].contains(i)));
            let mut known = [unlisted(&p, &lists[0]), unlisted(&q, &lists[1])];
            for one in &mut known {
                if rng.random_bool(0.5) {
                    one.largest = f64::INFINITY;
                }
                if round % 2 == 1 {
                    let [rest, _] = one.mass;
                    let more = rest + (1.0 - rest) * rng.random_range(0.0..0.3);
                    one.mass = [rest * rng.random_range(0.0..1.0), more];
                }
            }
            let settings = Settings::of_all_schemes(&[1.0], &[n], 1);
            let (target, draft) = (
                shares(&p, &listed, &lists[0]),
                shares(&q, &listed, &lists[1]),
            );
            let answers = answers_of([&target, &draft], known, vocabulary, &settings);
            let place = Place::new(TEMPERATURE, n);
            for (metric, full) in of_full_rows([&p, &q], place, &settings) {
                let answer = &answers[&metric];
                let (lower, upper) = (answer.lower(), answer.upper());
                assert!(
                    lower - 1e-9 <= full && full <= upper + 1e-9,
                    "{metric:?} is {full} of the full row, outside {answer:?}; p {p:?}, q {q:?}, \
                     lists {lists:?}, {known:?}"
                );
                assert!(lower <= answer.value() && answer.value() <= upper);
                checked += 1;
                if answer.kind() == Kind::Truncated {
                    widths[usize::from(is_alike)].push(upper - lower);
                }
            }
        }
        assert!(checked > 2_000, "{checked}");
        // Bounds that say nothing would pass too.
        for widths in widths {
            let narrow = widths.iter().filter(|&&width| width < 0.9).count();
            assert!(
                narrow * 10 > widths.len() * 8,
                "{narrow} of {}",
                widths.len()
            );
        }
    }

    /// One token is missing, and what the others lack to 1 is its mass: among equal ones its id
    /// decides which stratum it is in. Where only rounding tells it from them, either order holds.
    #[test]
    fn the_one_token_that_is_missing_ties_by_its_id() {
        let (p, q) = ([0.1, 0.45, 0.05, 0.4], [0.2, 0.2, 0.2, 0.4]);
        let settings = Settings::of_all_schemes(&[1.0], &[2], 1);
        let place = Place::new(TEMPERATURE, 2);
        let full = of_full_rows([&p, &q], place, &settings);
        for missing in 0..4 {
            let listed: Vec<usize> = (0..4).filter(|&i| i != missing).collect();
            let lists = [&p, &q].map(|row| shares(row, &listed, &listed));
            for (less, width) in [(0.0, 1e-9), (1e-17, 1e-9), (1e-8, 1.0)] {
                let known = [&p, &q].map(|row| unlisted_of(row[missing] - less, f64::INFINITY));
                let lists = [lists[0].as_slice(), &lists[1]];
                let answers = answers_of_lists(lists, known, [4, missing], &settings);
                for &(metric, value) in &full {
                    let Metric::Optimum { scheme, .. } = metric else {
                        continue;
                    };
                    let answer = &answers[&metric];
                    let room = 1e-9 + 10.0 * less;
                    let holds = answer.lower() - room <= value && value <= answer.upper() + room;
                    assert!(holds, "{missing} {less} {metric:?} {value} {answer:?}");
                    if scheme == SchemeName::STRATIFIED {
                        assert!(answer.upper() - answer.lower() <= width, "{answer:?}");
                    }
                }
            }
        }
    }

    /// Both ends are those of full rows: with one unlisted token, and with tokens that have p
    /// or q alone. The lower end of sequential draws is so in the limit of many tokens.
    #[test]
    fn tight_bounds_are_reached() {
        let mut rng = SmallRng::seed_from_u64(23);
        let (mut scan, mut checked) = (Workspace::new(), 0);
        let tight = [
            SchemeName::WITH_REPLACEMENT,
            SchemeName::WITHOUT_REPLACEMENT,
        ];
        let tight_rules = [
            (tight[0], VerifierName::K_SEQ),
            (tight[0], VerifierName::EXACT_MATCH),
            (tight[0], VerifierName::NAIVE_TREE),
            (tight[1], VerifierName::EXACT_MATCH),
        ];
        for _ in 0..60 {
            let (listed, n) = (rng.random_range(4..9usize), rng.random_range(1..=4usize));
            let (p, q) = (row(&mut rng, listed), row(&mut rng, listed));
            let (a, b) = (rng.random_range(0.01..0.6), rng.random_range(0.01..0.6));
            let known = [a, b].map(|mass| unlisted_of(mass, f64::INFINITY));
            let many = 5_000;
            let settings = Settings::new(&[1.0], &[n], 1).unwrap();
            let answers = answers_of([&p, &q], known, listed + many + 1, &settings);
            let scaled = |row: &[f64], rest: f64, more: &[f64]| -> Vec<f64> {
                let own = row.iter().map(|x| x * (1.0 - rest));
                own.chain(more.iter().map(|x| x * rest)).collect()
            };
            let one = [scaled(&p, a, &[1.0]), scaled(&q, b, &[1.0])];
            let mut apart = [vec![0.0; many + 1], vec![1.0 / many as f64; many + 1]];
            (apart[0][0], apart[1][0]) = (1.0, 0.0);
            let apart = [scaled(&p, a, &apart[0]), scaled(&q, b, &apart[1])];
            let place = Place::new(TEMPERATURE, n);
            let asked = settings.asked();
            let one_n = asked.iter().find(|one| one.drafts == n).unwrap();
            // How far the lower end is above that of full rows.
            let mut above =
                |metric: Metric, scheme: SchemeName, on: &dyn Fn(&mut Row<'_>) -> f64| {
                    let mut of = |[target, draft]: &[Vec<f64>; 2]| {
                        on(&mut scan.load(Rows { target, draft }, n).unwrap())
                    };
                    let (upper, lower) = (of(&one), of(&apart));
                    let answer = &answers[&metric];
                    let off = (answer.upper() - upper).abs();
                    assert!(off < 1e-9, "{metric:?} {answer:?} {upper}");
                    // Sequential draws: 1,024 tokens stand for many, and what more could do is
                    // taken off.
                    let room = if scheme == tight[0] { 1e-9 } else { 6e-3 };
                    let above = answer.lower() - lower;
                    assert!(above.abs() < room, "{metric:?} {answer:?} {lower}");
                    checked += 1;
                    above
                };
            let optima = one_n.optima.iter();
            for &(scheme, optimum) in optima.filter(|(scheme, _)| tight.contains(scheme)) {
                let metric = Metric::Optimum { place, scheme };
                let on = |row: &mut Row<'_>| (optimum.full)(row, n).unwrap().value();
                assert!(above(metric, scheme, &on) <= 1e-9);
            }
            let rules = one_n.rules.iter();
            for &(rule, computed) in rules.filter(|(rule, _)| tight_rules.contains(rule)) {
                let metric = Metric::Acceptance { place, rule };
                let on = |row: &mut Row<'_>| computed.answer(row, n, 1).unwrap().rate.value();
                above(metric, rule.0, &on);
            }
        }
        assert!(checked > 250, "{checked}");
    }

    /// Shows that where the rest is small, so is what it can change.
    #[test]
    fn a_small_rest_leaves_little_open() {
        let mut rng = SmallRng::seed_from_u64(5);
        let settings = Settings::new(&[1.0], &[2, 3], 1).unwrap();
        let iid = SchemeName::WITH_REPLACEMENT;
        let distinct = [
            SchemeName::WITHOUT_REPLACEMENT,
            SchemeName::DISTINCT_CONDITIONED,
        ];
        let near = [
            VerifierName::K_SEQ,
            VerifierName::EXACT_MATCH,
            VerifierName::NAIVE_TREE,
        ];
        for _ in 0..20 {
            let (p, q) = (row(&mut rng, 30), row(&mut rng, 30));
            let (a, b) = (1e-3, 2e-3);
            let known = [a, b].map(|mass| unlisted_of(mass, f64::INFINITY));
            let answers = answers_of([&p, &q], known, 1000, &settings);
            for (metric, answer) in &answers {
                let most = match *metric {
                    Metric::Overlap { .. } => a,
                    Metric::Optimum { scheme, .. } if scheme == iid => a,
                    Metric::Optimum { scheme, .. } if distinct.contains(&scheme) => 3.0 * a,
                    Metric::Acceptance { rule, .. } if rule == (iid, VerifierName::RRS) => 8.0 * a,
                    Metric::Acceptance { rule, .. } if rule.0 == iid && near.contains(&rule.1) => a,
                    _ => continue,
                };
                let width = answer.upper() - answer.lower();
                assert!(width <= most + 1e-9, "{metric:?} {answer:?}");
            }
        }
    }
}
