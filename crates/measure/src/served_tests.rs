//! Rates of rows as they are served, against the definition in whole numbers.

use super::Settings;
use super::answers::Answers;
use super::metric::{Metric, Place, Temperature};
use super::position::{AskedOf, Pair};
use super::truncation::tests::of_full_rows;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use specgap_log::log::{Row, RowKind};
use specgap_number::known::Kind;
use specgap_row::Unlisted;
use specgap_sampling::{Cuts, Logged, Model, Room, Serving};

/// Returns what is left of whole weights, from the definition alone, in whole numbers: `power` is
/// 1/T, none of T = 0; a top-p is a fraction of hundredths, as is a min-p.
fn by_definition(
    weights: &[u64],
    power: Option<u32>,
    (top_k, top_p, min_p): (Option<usize>, Option<u64>, Option<u64>),
) -> Vec<u64> {
    let largest = *weights.iter().max().unwrap();
    let mut left: Vec<u64> = match power {
        Some(power) => weights.iter().map(|w| w.pow(power)).collect(),
        None => {
            let first = weights.iter().position(|&w| w == largest).unwrap();
            (0..weights.len()).map(|i| u64::from(i == first)).collect()
        }
    };
    // How many tokens come before one.
    let rank = |row: &[u64], i: usize| {
        let before = |j: &usize| row[*j] > row[i] || row[*j] == row[i] && *j < i;
        (0..row.len()).filter(before).count()
    };
    if let Some(k) = top_k {
        let row = left.clone();
        (0..row.len())
            .filter(|&i| rank(&row, i) >= k)
            .for_each(|i| left[i] = 0);
    }
    if let Some(hundredths) = top_p {
        let row = left.clone();
        let total: u64 = row.iter().sum();
        for (i, left) in left.iter_mut().enumerate() {
            let own = rank(&row, i);
            let before = (0..row.len()).filter(|&j| rank(&row, j) < own);
            let before: u64 = before.map(|j| row[j]).sum();
            // What comes before has the mass already.
            if 100 * before >= hundredths * total {
                *left = 0;
            }
        }
    }
    if let Some(hundredths) = min_p {
        let largest = *left.iter().max().unwrap();
        left.iter_mut()
            .filter(|w| 100 * **w < hundredths * largest)
            .for_each(|w| *w = 0);
    }
    left
}

fn row_of(target: &[u64], draft: &[u64]) -> Row {
    // Probabilities, as logs have them.
    let shares = |row: &[u64]| -> Vec<f64> {
        let total: u64 = row.iter().sum();
        row.iter().map(|&w| w as f64 / total as f64).collect()
    };
    let mut row = Row::default();
    (row.target, row.draft) = (shares(target), shares(draft));
    row.target_kind = RowKind::Probabilities;
    row.draft_kind = RowKind::Probabilities;
    row
}

type Told = (Option<usize>, Option<u64>, Option<u64>);

fn cuts((top_k, top_p, min_p): Told) -> Cuts {
    let share = |hundredths: u64| hundredths as f64 / 100.0;
    Cuts {
        top_k,
        top_p: top_p.map(share),
        min_p: min_p.map(share),
        cut_order: None,
    }
}

const ALL: [Told; 9] = [
    (None, None, None),
    (Some(1), None, None),
    (Some(3), None, None),
    (None, Some(37), None),
    (None, Some(83), None),
    (None, None, Some(31)),
    (Some(4), Some(71), None),
    (None, Some(91), Some(13)),
    (Some(4), Some(93), Some(17)),
];

fn weights(rng: &mut SmallRng, tokens: usize) -> Vec<u64> {
    let most = [3, 9, 60][rng.random_range(0..3)];
    let mut row: Vec<u64> = (0..tokens).map(|_| rng.random_range(0..=most)).collect();
    row[rng.random_range(0..tokens)] += 1;
    row
}

/// Every law and verifier of rows at temperatures 0, 1/2 and 1, cut in all ways: the rows
/// are those of the definition in whole numbers, and the rates are those of problems of
/// these rows, by exact solvers and by enumeration.
#[test]
fn rates_of_served_rows_are_those_of_the_definition() {
    let mut rng = SmallRng::seed_from_u64(41);
    let (mut checked, mut zeros, mut ones) = (0, 0, 0);
    for round in 0..5 * 27 {
        let tokens = rng.random_range(4..=6usize);
        let (target, draft) = (weights(&mut rng, tokens), weights(&mut rng, tokens));
        let row = row_of(&target, &draft);
        let told = ALL[round % ALL.len()];
        let temperatures = [(0.0, None), (0.5, Some(2)), (1.0, Some(1))];
        let (temperature, power) = temperatures[round / ALL.len() % temperatures.len()];
        let n = rng.random_range(1..=3usize);
        let logged = Logged {
            lists: None,
            applied: 1.0,
            row: &row,
        };
        let serving = |model| Serving {
            model,
            temperature,
            cuts: cuts(told),
            own: false,
        };
        let mut room = Room::default();
        let mut pair = Pair::default();
        for (model, weights) in [(Model::Target, &target), (Model::Draft, &draft)] {
            let out = match model {
                Model::Target => &mut pair.target,
                Model::Draft => &mut pair.draft,
            };
            let unlisted = logged.fill(serving(model), &mut room, out).unwrap();
            assert_eq!(unlisted, Unlisted::NONE);
            let expected = by_definition(weights, power, told);
            let total: u64 = expected.iter().sum();
            for (found, weight) in out.iter().zip(expected) {
                let share = weight as f64 / total as f64;
                assert!(
                    (found - share).abs() < 1e-14 && (*found == 0.0) == (weight == 0),
                    "{weights:?} {told:?} {temperature}: {out:?}"
                );
            }
        }
        let (p, q) = (pair.target.clone(), pair.draft.clone());
        let settings = Settings::of_all_schemes(&[temperature], &[n], 1);
        let mut answers = Answers::new();
        let asked = AskedOf {
            asked: &settings.asked(),
            audit: false,
            audit_plans: false,
            every_plan: true,
        };
        let temperature = Temperature(temperature);
        pair.answer(asked, temperature, None, 1, &mut answers)
            .unwrap();
        let place = Place::new(temperature, n);
        for (metric, expected) in of_full_rows([&p, &q], place, &settings) {
            let found = &answers[&metric];
            let room = match metric {
                Metric::Overlap { .. } => 1e-12,
                Metric::Optimum { .. } => 1e-10,
                _ => 1e-8,
            };
            // An interval of samples misses at times; bounds of proofs never.
            let room = room + f64::from(found.kind() == Kind::MonteCarlo) * 5e-2;
            assert!(
                (found.value() - expected).abs() < room
                    && found.lower() - room <= expected
                    && expected <= found.upper() + room,
                "{metric:?} is {expected}, not {found:?}; p {p:?}, q {q:?}"
            );
            checked += 1;
            zeros += usize::from(expected.abs() < 1e-12);
            ones += usize::from((expected - 1.0).abs() < 1e-12);
        }
    }
    assert!(
        checked > 1_500 && zeros > 300 && ones > 100,
        "{checked} {zeros} {ones}"
    );
}
