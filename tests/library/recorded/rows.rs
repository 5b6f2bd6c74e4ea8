//! Rows: what each question is answered with.

use super::{Number, Record, bounds, count, known, many, plain, refusal};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Target};
use specgap::row::{
    CutQuestion, CutWorkspace, Listed, RejectionBudget, Row, RowError, Rows, ScannedRate, Unlisted,
    Workspace,
};

use specgap::scheme::{DraftScheme, WithReplacement, WithoutReplacement};

/// A pair of rows with a name.
pub struct Pair {
    pub name: &'static str,
    pub target: Vec<f64>,
    pub draft: Vec<f64>,
}

impl Pair {
    fn of(name: &'static str, target: Vec<f64>, draft: Vec<f64>) -> Self {
        let over_its_sum = |row: Vec<f64>| -> Vec<f64> {
            let sum: f64 = row.iter().sum();
            row.iter().map(|x| x / sum).collect()
        };
        Self {
            name,
            target: over_its_sum(target),
            draft: over_its_sum(draft),
        }
    }

    pub fn rows(&self) -> Rows<'_> {
        Rows {
            target: &self.target,
            draft: &self.draft,
        }
    }

    pub fn typed(&self) -> (Target, Draft) {
        (
            Target::new(&self.target).unwrap(),
            Draft::new(&self.draft).unwrap(),
        )
    }
}

/// Noise over a fall like rank^-`slope`, of which both rows have a part in common, and some
/// tokens that one of them does not have. Without `exp` and `ln`, which are not the same on all
/// systems.
fn falling(
    name: &'static str,
    (vocab, slope, noise, absent): (usize, i32, f64, f64),
    seed: u64,
) -> Pair {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut rows = [Vec::new(), Vec::new()];
    for token in 0..vocab {
        let fall = (token as f64 + 1.0).sqrt().powi(-slope);
        let shared = 1.0 + noise * rng.random::<f64>();
        for row in &mut rows {
            let own = 1.0 + noise * rng.random::<f64>();
            let kept = token == 0 || rng.random::<f64>() >= absent;
            row.push(if kept { fall * shared * own } else { 0.0 });
        }
    }
    let [target, draft] = rows;
    Pair::of(name, target, draft)
}

/// Entries over many orders of magnitude, the two rows apart by as many as `own`.
fn wide(name: &'static str, vocab: usize, decades: f64, own: f64, seed: u64) -> Pair {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let power = |decades: f64| {
        let whole = decades.floor();
        10f64.powi(whole as i32) * (1.0 + 9.0 * (decades - whole))
    };
    let mut rows = [Vec::new(), Vec::new()];
    for _ in 0..vocab {
        let shared = -decades * rng.random::<f64>();
        for row in &mut rows {
            row.push(power(shared - own * rng.random::<f64>()));
        }
    }
    let [target, draft] = rows;
    Pair::of(name, target, draft)
}

/// A target of which each prefix by p/q has hardly more than two drafts of q, drawn by this law,
/// have in it: all of them are nearly minimisers.
fn near_ties(
    name: &'static str,
    vocab: usize,
    law: impl Fn(Draft) -> Box<dyn DraftScheme>,
) -> Pair {
    let draft = Pair::of(
        "",
        vec![1.0; vocab],
        (0..vocab).map(|i| 1.0 + i as f64 * 0.1).collect(),
    );
    let draft = draft.draft;
    let law = law(Draft::new(&draft).unwrap());
    let order: Vec<usize> = (0..vocab).collect();
    let inside = |count: usize| law.inside(&order[..count]);
    let steps = (1..=vocab).map(|count| inside(count) - inside(count - 1));
    let target = steps
        .enumerate()
        .map(|(token, step)| step + 1e-9 / (1.0 + token as f64));
    Pair::of(name, target.collect(), draft.clone())
}

/// Rows of all shapes that the questions tell apart.
pub fn pairs() -> Vec<Pair> {
    let whole = |row: &[u32]| -> Vec<f64> { row.iter().map(|&x| f64::from(x)).collect() };
    let cycle = |numbers: &[u32], vocab| -> Vec<f64> {
        let numbers = numbers.iter().cycle().take(vocab);
        numbers.map(|&x| f64::from(x)).collect()
    };
    let mut peaked = [vec![1.0], vec![1.0]];
    for token in 1..60 {
        peaked[0].push(1e-9 / f64::from(token));
        peaked[1].push(1e-7 / f64::from(61 - token));
    }
    let [peaked_target, peaked_draft] = peaked;
    let one = falling("", (50, 2, 3.0, 0.0), 31).draft;
    let mut tiny = vec![1e-300; 12];
    tiny[3] = 1.0;
    tiny[7] = 1e-12;
    vec![
        Pair::of("three", whole(&[1, 2, 5]), whole(&[4, 2, 2])),
        Pair::of(
            "ties",
            cycle(&[1, 2, 4, 0], 26),
            cycle(&[2, 4, 2, 1, 1], 26),
        ),
        Pair::of("peaked", peaked_target, peaked_draft),
        Pair::of("same", one.clone(), one),
        Pair::of("tiny", vec![1.0; 12], tiny),
        Pair::of(
            "apart",
            cycle(&[3, 0, 1, 0, 0, 2], 30),
            cycle(&[0, 2, 0, 1, 0, 1], 30),
        ),
        falling("flat-4", (4, 1, 1.0, 0.0), 1),
        falling("short-12", (12, 2, 4.0, 0.2), 2),
        falling("flat-40", (40, 0, 0.5, 0.0), 3),
        falling("steep-40", (40, 4, 5.0, 0.3), 4),
        falling("fall-300", (300, 2, 4.0, 0.0), 5),
        falling("gaps-300", (300, 3, 9.0, 0.2), 6),
        near_ties("near-ties-6", 6, |q| Box::new(WithReplacement::new(q, 2))),
        near_ties("near-ties-30", 30, |q| Box::new(WithReplacement::new(q, 2))),
        near_ties("near-ties-in-turn", 7, |q| {
            Box::new(WithoutReplacement::new(q, 2))
        }),
        wide("wide-200", 200, 14.0, 2.0, 7),
        wide("wide-900", 900, 5.0, 0.5, 8),
        falling("fall-2000", (2000, 2, 6.0, 0.0), 9),
        falling("flat-2000", (2000, 1, 3.0, 0.1), 10),
        falling("steep-20000", (20_000, 3, 6.0, 0.1), 11),
    ]
}

fn scanned(found: Result<ScannedRate, RowError>) -> Number {
    let found = match found {
        Ok(found) => found,
        Err(error) => return refusal(&error),
    };
    let mut number = known(&found.rate);
    let masses = [found.target_mass, found.draft_mass, found.inside];
    number.bits.extend(masses.map(f64::to_bits));
    let subset = format!("{:?}", found.subset);
    number.bits.extend(subset.bytes().map(u64::from));
    number
}

/// A line a pair of rows and a question, with an answer a number of drafts.
fn ask<const N: usize>(
    record: &mut Record,
    question: &str,
    counts: [usize; N],
    answer: impl Fn(&mut Row<'_>, usize) -> Number,
) {
    let mut workspace = Workspace::new();
    for pair in pairs() {
        let mut row = workspace.load(pair.rows(), 12).unwrap();
        let answers = counts.map(|drafts| answer(&mut row, drafts));
        record.line(&format!("{} {question}", pair.name), answers);
    }
}

#[test]
fn optima_of_rows() {
    let mut record = Record::new("row-optima.txt", include_str!("row-optima.txt"));
    ask(&mut record, "iid", [1, 2, 3, 5, 12], |row, n| {
        scanned(row.with_replacement(n))
    });
    ask(&mut record, "distinct", [1, 2, 3, 8], |row, n| {
        scanned(row.distinct_conditioned(n))
    });
    ask(&mut record, "sequential", [1, 2, 3, 4, 8], |row, n| {
        scanned(row.without_replacement(n))
    });
    ask(&mut record, "with fixed", [0, 1, 2, 7], |row, n| {
        known(&row.optimum_with_fixed(n))
    });
    record.compare();
}

#[test]
fn rules_on_rows() {
    let mut record = Record::new("row-rules.txt", include_str!("row-rules.txt"));
    ask(
        &mut record,
        "overlap, residuals",
        [1, 2, 3, 8],
        |row, n| match n {
            1 => known(&row.overlap()),
            _ => plain(row.residual_mass(1.0 / (n as f64 - 1.3))),
        },
    );
    ask(&mut record, "hits", [1, 2, 3, 12], |row, n| {
        known(&row.hits_iid(n))
    });
    ask(&mut record, "sequential hits", [1, 2, 3, 5, 8], |row, n| {
        known(&row.hits_sequential(n))
    });
    ask(&mut record, "top, fixed", [0, 1, 2, 7], |row, n| {
        let mut number = known(&row.top_mass(n));
        for other in [row.accepted_with_fixed(n), row.hits_with_fixed(n)] {
            number.bits.extend(known(&other).bits);
        }
        number
    });
    ask(&mut record, "heaviest", [3], |row, n| {
        let tokens: Vec<f64> = row.heaviest(n).iter().map(|&x| x as f64).collect();
        many(&tokens)
    });
    record.compare();
}

#[test]
fn rejections_on_rows() {
    let mut record = Record::new("row-rejections.txt", include_str!("row-rejections.txt"));
    let budget = RejectionBudget {
        width: 1e-5,
        work_limit: 20_000,
        samples: 2_000,
        ..RejectionBudget::default()
    };
    ask(&mut record, "in turn", [1, 2, 3, 4, 7], |row, n| {
        known(&row.accepted_in_turn(n, &budget))
    });
    let drawn = RejectionBudget {
        work_limit: 0,
        confidence: 0.9,
        ..budget
    };
    ask(&mut record, "in turn, drawn", [3, 6], |row, n| {
        known(&row.accepted_in_turn(n, &drawn))
    });
    // What is known half way.
    let few = RejectionBudget {
        work_limit: 400,
        widest: 1.0,
        ..budget
    };
    ask(&mut record, "in turn, few groups", [3, 4, 7], |row, n| {
        known(&row.accepted_in_turn(n, &few))
    });
    let coarse = RejectionBudget {
        width: 1e-2,
        ..budget
    };
    ask(&mut record, "in turn, coarsely", [3, 5], |row, n| {
        known(&row.accepted_in_turn(n, &coarse))
    });
    ask(
        &mut record,
        "in turn, fast",
        [2, 3, 4, 6, 8, 12],
        |row, n| known(&row.accepted_in_turn_fast(n, &budget)),
    );
    record.compare();
}

#[test]
fn sequential_subsets() {
    let mut record = Record::new("row-subsets.txt", include_str!("row-subsets.txt"));
    let mut workspace = Workspace::new();
    for pair in pairs() {
        let mut scanned = |drafts| {
            let mut row = workspace.load(pair.rows(), drafts)?;
            row.without_replacement(drafts)
        };
        let subsets = [2, 3, 8].map(|drafts| match scanned(drafts) {
            Ok(found) => {
                let tokens = found.subset.tokens(pair.rows());
                let mut number = count(tokens.len());
                number.bits.extend(tokens.iter().map(|&token| token as u64));
                number
            }
            Err(error) => refusal(&error),
        });
        record.line(pair.name, subsets);
    }
    record.compare();
}

/// Rows of which only the heaviest tokens are listed.
#[test]
fn cut_rows() {
    let mut record = Record::new("row-cuts.txt", include_str!("row-cuts.txt"));
    let mut workspace = CutWorkspace::default();
    for pair in pairs() {
        let vocab = pair.target.len();
        for (listed, way) in [(2, 0), (8, 0), (8, 1), (8, 2), (64, 1)] {
            if listed >= vocab {
                continue;
            }
            let name = format!("{} {listed} {way}", pair.name);
            let heaviest = |row: &[f64]| {
                let mut order: Vec<usize> = (0..vocab).collect();
                order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
                order.truncate(listed);
                order
            };
            // 0: the heaviest of the draft, of both rows. 1 and 2: each row has its own.
            let lists = match way {
                0 => [heaviest(&pair.draft), heaviest(&pair.draft)],
                _ => [heaviest(&pair.target), heaviest(&pair.draft)],
            };
            let mut tokens = lists.concat();
            tokens.sort_unstable();
            tokens.dedup();
            let shares = |row: &[f64], list: &[usize]| -> (Vec<f64>, Unlisted) {
                let mass: f64 = list.iter().map(|&token| row[token]).sum();
                let share = |token: &usize| match list.contains(token) {
                    true => row[*token] / mass,
                    false => f64::NAN,
                };
                let rest = (1.0 - mass).max(0.0);
                let least = list.iter().map(|&token| row[token]).fold(1.0, f64::min);
                let unlisted = match way {
                    2 => Unlisted {
                        mass: [0.5 * rest, rest],
                        largest: least / mass,
                    },
                    _ => Unlisted {
                        mass: [rest, rest],
                        largest: f64::INFINITY,
                    },
                };
                (tokens.iter().map(share).collect(), unlisted)
            };
            let (target, of_target) = shares(&pair.target, &lists[0]);
            let (draft, of_draft) = shares(&pair.draft, &lists[1]);
            let question = Listed {
                target: &target,
                draft: &draft,
                unlisted: [of_target, of_draft],
                vocabulary: vocab,
                missing: usize::MAX,
            };
            let mut row = match workspace.load(question, 8) {
                Ok(Some(row)) => row,
                Ok(None) => {
                    record.line(&name, [count(0)]);
                    continue;
                }
                Err(error) => {
                    record.line(&name, [refusal(&error)]);
                    continue;
                }
            };
            let overlap = row.overlap();
            let rests = row.rests();
            let mut numbers = vec![bounds::<RowError>(Ok(overlap))];
            numbers.extend(rests.map(|rest| bounds::<RowError>(Ok(rest))));
            numbers.push(bounds::<RowError>(Ok(row.residual_mass(0.7))));
            numbers.push(bounds::<RowError>(Ok(row.residual_mass(2.0))));
            record.line(&format!("{name} masses"), numbers);
            for drafts in [1, 2, 3, 8] {
                let ask = CutQuestion { drafts, overlap };
                let numbers = [
                    bounds(row.optimum_iid(ask)),
                    bounds(row.optimum_sequential(ask)),
                    bounds(row.optimum_distinct(ask)),
                    bounds(row.optimum_with_fixed(ask)),
                    bounds(row.top_mass(ask)),
                    bounds(row.hits_iid(ask)),
                    bounds(row.hits_sequential(ask)),
                    bounds(row.hits_with_fixed(ask)),
                    bounds::<RowError>(Ok(row.rejected_in_turn(drafts))),
                ];
                record.line(&format!("{name} n={drafts}"), numbers);
            }
        }
    }
    record.compare();
}
