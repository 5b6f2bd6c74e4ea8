//! Cells and search against the maximum flow, and against each other.

use super::*;
use crate::optimum::{flow, submodular};
use crate::scheme::tests::normalised;
use crate::scheme::{Composed, Composition, DraftScheme, Draws, Product};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_number::distribution::{Draft, Rational, Target};

/// Whole-number weights that tie often.
fn weights(rng: &mut ChaCha8Rng, vocab: usize, most: u64) -> Vec<Rational> {
    loop {
        let row: Vec<u64> = (0..vocab)
            .map(|_| match rng.random_range(0..6) {
                0 => 0,
                _ => rng.random_range(1..=most),
            })
            .collect();
        let total: u64 = row.iter().sum();
        if total > 0 {
            let part = |weight: u64| Rational::new(weight.into(), total.into());
            return row.into_iter().map(part).collect();
        }
    }
}

fn draft(row: &[Rational]) -> Draft {
    Draft::from_rationals(row.to_vec()).unwrap()
}

/// A law of two scores, of one of five kinds.
fn law(rng: &mut ChaCha8Rng, vocab: usize, most: u64) -> std::sync::Arc<dyn DraftScheme> {
    let rows = [0, 1].map(|_| draft(&weights(rng, vocab, most)));
    let draws = |row: usize, count: usize, how| Composition::Draws {
        draft: rows[row].clone(),
        count,
        how,
    };
    let count = rng.random_range(1..3);
    let third = || Rational::new(1.into(), 3.into());
    let both = |how: fn() -> Draws| vec![draws(0, count, how()), draws(1, 1, how())];
    let composition = match rng.random_range(0..5) {
        0 => {
            let all: Vec<Draft> = (0..=count).map(|k| rows[k % 2].clone()).collect();
            return std::sync::Arc::new(Product::new(all).unwrap());
        }
        1 => Composition::Union(both(|| Draws::Sequential)),
        2 => Composition::Mixture(
            both(|| Draws::Independent)
                .into_iter()
                .map(|x| (third(), x))
                .collect(),
        ),
        3 => Composition::Union(vec![
            Composition::Fixed(vec![rng.random_range(0..vocab)]),
            Composition::Union(both(|| Draws::Independent)),
        ]),
        _ => Composition::Union(vec![
            draws(0, 1, Draws::Stopped(third())),
            draws(1, 1, Draws::Independent),
        ]),
    };
    std::sync::Arc::new(Composed::new(vocab, composition).unwrap())
}

#[test]
fn both_ways_find_the_optimum_of_small_problems() {
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let (mut exact, mut enclosed) = (0, 0);
    for round in 0..400 {
        let vocab = rng.random_range(2..7);
        // Small weights: most lines cross in threes, or coincide.
        let most = if round % 2 == 0 { 3 } else { 40 };
        let target = Target::from_rationals(weights(&mut rng, vocab, most)).unwrap();
        let problem = Problem::from_law("r", target, law(&mut rng, vocab, most)).unwrap();
        let best = flow::solve(&problem).optimum().rate;
        let best = best.rational().unwrap();
        let Ok(found) = solve(&problem) else { continue };
        exact += 1;
        assert_eq!(found.rate.rational(), Some(best), "{problem:?}");
        let subset = found.subset.unwrap();
        let cut = problem.target().exact().mass(&subset) - problem.scheme().inside_exact(&subset);
        assert_eq!(cut + Rational::from_integer(1.into()), *best);
        if let Ok(found) = enclose(&problem) {
            enclosed += 1;
            assert!(
                found
                    .rate
                    .may_equal(&specgap_number::known::Known::exact(best.clone())),
                "{found:?} {best}"
            );
            assert!(found.rate.width() < 1e-9, "{found:?} {problem:?}");
        }
    }
    assert!(exact > 200 && enclosed > 100, "{exact} {enclosed}");
}

fn row(rng: &mut ChaCha8Rng, shared: &[f64], spread: f64) -> Vec<f64> {
    let logits = shared
        .iter()
        .map(|x| x + spread * rng.random_range(-1.0f64..1.0));
    normalised(&logits.map(f64::exp).collect::<Vec<f64>>())
}

/// Rows of two drafts that resemble a target.
fn made(vocab: usize, drafts: [usize; 2], seed: u64) -> Problem {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let shared: Vec<f64> = (0..vocab).map(|_| rng.random_range(-6.0..6.0)).collect();
    let rows = [0.2, 0.8, 1.5].map(|spread| row(&mut rng, &shared, spread));
    let target = Target::new(&rows[0]).unwrap();
    let models = [1, 2].map(|model| Draft::new(&rows[model]).unwrap());
    let all = [0, 1].map(|k| vec![models[k].clone(); drafts[k]]).concat();
    Problem::new("made", target, Product::new(all).unwrap()).unwrap()
}

#[test]
fn the_search_agrees_with_the_cells_and_the_minimiser() {
    for (vocab, drafts, seed) in [(40, [1, 1], 1), (60, [2, 1], 2), (50, [3, 3], 3)] {
        let problem = made(vocab, drafts, seed);
        let cells = solve(&problem).unwrap().rate;
        assert!(cells.rational().is_some());
        let search = enclose(&problem).unwrap();
        assert!(
            search.rate.may_equal(&cells) && search.rate.width() < 1e-11,
            "{search:?}"
        );
        let minimiser = submodular::solve(&problem).unwrap();
        assert!(minimiser.rate.may_equal(&cells), "{minimiser:?}");
    }
}

#[test]
fn the_search_encloses_large_problems() {
    for (vocab, drafts) in [(5_000, [1, 1]), (20_000, [2, 2])] {
        let problem = made(vocab, drafts, 5);
        let found = solve(&problem).unwrap();
        eprintln!("{vocab}: {:?}", found.note);
        assert!(
            found.rate.width() < 1e-11,
            "{:?} {:?}",
            found.rate,
            found.note
        );
    }
}
