//! Laws that only compositions have, and what of them is refused, known or the same, by hand.

use super::tests::{a_composition, draws_of, weights};
use super::without_replacement::by_falling_mass;
use super::*;
use specgap_number::distribution::{Draft, Rational, parse_rational};
use specgap_number::quadrature::log_time_step;

fn fraction(text: &str) -> Rational {
    parse_rational(text).unwrap()
}

/// One half, one quarter, two eighths: four tokens whose probabilities have 4 bits.
fn q() -> Draft {
    weights(&[4, 2, 1, 1])
}

fn draws(count: usize, how: Draws) -> Composition {
    draws_of(&q(), count, how)
}

fn law(composition: Composition) -> Composed {
    Composed::new(4, composition).unwrap()
}

/// The law of sets, one set at a time, tuples and chains of laws that only [`Composed`] has.
#[test]
fn four_derivations_of_conditioned_and_merged_laws() {
    let other = weights(&[1, 0, 5, 2]);
    let stop = || Draws::Stopped(fraction("1/3"));
    let merged = |into: [usize; 4], law| Composition::Merged {
        into: into.to_vec(),
        law: Box::new(law),
    };
    let avoiding = |tokens: &[usize], law| Composition::Avoiding(tokens.to_vec(), Box::new(law));
    let union = || {
        Composition::Union(vec![
            draws(2, Draws::Sequential),
            Composition::Poisson(["1/2", "1/4", "0", "3/4"].map(fraction).to_vec()),
        ])
    };
    for composition in [
        merged([3, 1, 1, 3], draws(3, Draws::Sequential)),
        merged([3, 3, 3, 3], draws(2, stop())),
        merged([0, 1, 0, 1], draws(3, Draws::Distinct)),
        merged([0, 0, 2, 1], draws(2, stop())),
        avoiding(&[1], draws(2, Draws::Sequential)),
        avoiding(&[0, 1], draws(3, stop())),
        avoiding(&[0, 1, 2, 3], union_with_nothing(stop())),
        avoiding(&[3], merged([3, 1, 1, 0], draws(2, Draws::Sequential))),
        merged([1, 1, 0, 2], avoiding(&[0], draws(2, Draws::Sequential))),
        avoiding(&[1], avoiding(&[2], draws(2, Draws::Sequential))),
        avoiding(&[2], union()),
        merged([0, 2, 2, 0], union()),
        avoiding(&[0], a_composition(&q(), &other, 2)),
        draws(2, stop()),
        draws(3, Draws::Stopped(fraction("1/1000000"))),
        draws(4, Draws::Stopped(fraction("40"))),
    ] {
        super::tests::check(&law(composition));
    }
}

/// Draws that may stop at once, and a token that may be drafted besides.
fn union_with_nothing(stop: Draws) -> Composition {
    let chances = ["1/2", "0", "0", "0"].map(fraction);
    Composition::Union(vec![draws(2, stop), Composition::Poisson(chances.to_vec())])
}

#[test]
fn what_cannot_avoid_a_token() {
    let refused = |composition| {
        let avoiding = Composition::Avoiding(vec![0], Box::new(composition));
        let fault = Composed::new(4, avoiding).map(|_| ()).unwrap_err().fault;
        assert_eq!(fault, CompositionFault::Impossible);
    };
    let sure = || Composition::Fixed(vec![0, 2]);
    refused(sure());
    // One part of a union is enough, and all of a mixture.
    refused(Composition::Union(vec![
        draws(1, Draws::Independent),
        sure(),
    ]));
    refused(Composition::Mixture(vec![(fraction("1"), sure()); 2]));
    let alone = draws_of(&weights(&[3, 0, 0, 1]), 2, Draws::Distinct);
    refused(alone);
    refused(draws(4, Draws::Sequential));
    // What is impossible leaves its weight to the rest: 1/2 and 1/2 * 1/2.
    let left = law(Composition::Avoiding(
        vec![0],
        Box::new(Composition::Mixture(vec![
            (fraction("1/2"), sure()),
            (fraction("1/4"), draws(1, Draws::Independent)),
            (fraction("1/4"), Composition::Fixed(vec![3])),
        ])),
    ));
    assert_eq!(left.set_probability_exact(&[3]), fraction("3/4"));
    assert_eq!(left.set_probability_exact(&[1]), fraction("1/6"));
}

/// Draws of one token or of all tokens are known; draws that may stop are not.
#[test]
fn draws_that_are_known_stand_as_tokens() {
    let of = |row: &[u32], count, how| {
        let composition = draws_of(&weights(row), count, how);
        law(composition).scores().unwrap().forced
    };
    assert_eq!(of(&[0, 5, 0, 0], 2, Draws::Independent), [1]);
    assert_eq!(of(&[0, 5, 0, 1], 2, Draws::Sequential), [1, 3]);
    assert_eq!(of(&[0, 5, 0, 1], 2, Draws::Distinct), [1, 3]);
    assert!(of(&[0, 5, 0, 1], 2, Draws::Independent).is_empty());
    assert!(of(&[0, 5, 0, 1], 1, Draws::Sequential).is_empty());
    assert!(of(&[0, 5, 0, 0], 1, Draws::Stopped(fraction("1/3"))).is_empty());
}

/// Draws from tokens that are known to come add nothing.
#[test]
fn draws_of_known_tokens_are_a_factor_of_one() {
    let draw = |row: &[u32]| draws_of(&weights(row), 1, Draws::Independent);
    let polynomial = |parts: Vec<Composition>| {
        let law = law(Composition::Union(parts));
        let scores = law.scores().unwrap();
        assert_eq!(scores.forced, [0, 1]);
        scores.polynomial.unwrap()
    };
    let known = || Composition::Fixed(vec![0, 1]);
    // Parts of either draw are the known token: (1/2 + x) (1/3 + y).
    let (x, y) = (|| draw(&[2, 0, 1, 1]), || draw(&[2, 0, 1, 3]));
    let without = polynomial(vec![known(), x(), y()]);
    let product = [
        ([0, 0], "1/6"),
        ([0, 1], "1/2"),
        ([1, 0], "1/3"),
        ([1, 1], "1"),
    ]
    .map(|(powers, coefficient)| Term {
        coefficient: fraction(coefficient),
        powers: powers.to_vec(),
    });
    assert_eq!(without, product);
    let with = polynomial(vec![known(), draw(&[1, 3, 0, 0]), x(), y()]);
    assert_eq!(with, without);
}

/// What is refused says why, and in which part.
#[test]
fn limits_of_compositions() {
    let one = || draws(1, Draws::Independent);
    let many = |count: usize| Composition::Union((0..count).map(|_| one()).collect());
    let mixed = |weight| Composition::Mixture(vec![(fraction(weight), one())]);
    let chance = |text| Composition::Poisson([text, "1/2", "0", "0"].map(fraction).to_vec());
    let stopped = |rate| draws(1, Draws::Stopped(fraction(rate)));
    let avoiding = |tokens: &[usize], law| Composition::Avoiding(tokens.to_vec(), Box::new(law));
    // Every kind of part is a level.
    type Wrap = fn(Composition) -> Composition;
    let kinds: [Wrap; 4] = [
        |law| Composition::Union(vec![law]),
        |law| Composition::Mixture(vec![(fraction("1"), law)]),
        |law| Composition::Avoiding(vec![0], Box::new(law)),
        |law| Composition::Merged {
            into: vec![0, 1, 2, 3],
            law: Box::new(law),
        },
    ];
    let nested = |levels: usize| kinds.map(|wrap| (0..levels).fold(one(), |law, _| wrap(law)));
    let fitting = [
        many(MOST_PARTS),
        mixed("1/9"),
        chance("0"),
        chance("1"),
        stopped("1/1000000000"),
        stopped("1000000000"),
        // Independent draws may be more than there are tokens.
        draws(5, Draws::Independent),
        draws(4, Draws::Distinct),
    ];
    for law in fitting.into_iter().chain(nested(MOST_LEVELS)) {
        assert!(Composed::new(4, law).is_ok());
    }
    let with_one = |part| Composition::Union(vec![one(), part]);
    let unknown = Composition::Union(vec![Composition::Fixed(vec![4])]);
    let other = draws_of(&weights(&[1, 1]), 1, Draws::Independent);
    let three = Composition::Poisson(vec![fraction("1/2"); 3]);
    let refused = [
        (many(MOST_PARTS + 1), "there are 65 parts; give 1 to 64"),
        (
            with_one(unknown),
            "of[1].of[0]: token 4 is not in the vocabulary 0..4",
        ),
        (mixed("0"), "weights[0] is 0; it must be above 0"),
        (mixed("-1"), "weights[0] is -1; it must be above 0"),
        (chance("-1/9"), "chances[0] is -1/9; it must be in [0, 1]"),
        (chance("10/9"), "chances[0] is 10/9; it must be in [0, 1]"),
        (three, "chances has 3 entries; it must have 4, one a token"),
        (other, "q has 2 entries; it must have 4, one a token"),
        (
            draws(5, Draws::Distinct),
            "drafts is 5; it must be in 1..=4",
        ),
        (
            draws(5, Draws::Sequential),
            "drafts is 5; it must be in 1..=4",
        ),
        (
            with_one(draws(0, Draws::Independent)),
            "of[1]: drafts is 0; it must be in 1..=64",
        ),
        (
            draws(0, Draws::Independent),
            "the law never drafts a token; give at least one part that does",
        ),
        (stopped("0"), "stop is 0; it must be in [1e-9, 1e9]"),
        (
            stopped("1/2000000000"),
            "stop is 1/2000000000; it must be in [1e-9, 1e9]",
        ),
        (
            avoiding(&[0, 1, 2, 3], one()),
            "every draw holds one of the tokens to avoid, so nothing is left to draw",
        ),
    ];
    let complaint = |vocab, law| Composed::new(vocab, law).unwrap_err().to_string();
    for (law, expected) in refused {
        assert_eq!(complaint(4, law), expected);
    }
    for law in nested(MOST_LEVELS + 1) {
        assert!(complaint(4, law).contains(": laws nest more than 32 deep"));
    }
    // Conditioning lists the sets: too many of 60 tokens' sets of 6.
    let large = draws_of(&weights(&[1; 60]), 6, Draws::Sequential);
    let error = complaint(60, avoiding(&[0], large));
    assert!(error.starts_with("6 sequential draws from 60 tokens are too many to be conditioned"));
}

/// What is left after the heaviest token has no finite inverse.
#[test]
fn four_derivations_of_rows_whose_odds_leave_the_range() {
    for drafts in [2, 3] {
        let row = Draft::new(&[1.0, 1e-300, 1e-310, 2e-310]).unwrap();
        super::tests::check(&WithoutReplacement::new(row, drafts));
    }
}

/// Lists of tokens have scores of their own, unless another has the same tokens.
#[test]
fn lists_are_scores_where_no_other_serves() {
    let list = |tokens: &[usize]| Composition::Fixed(tokens.to_vec());
    let count = |parts: Vec<Composition>| {
        let parts = parts.into_iter().map(|part| (fraction("1"), part));
        let law = law(Composition::Mixture(parts.collect()));
        law.scores().unwrap().distinct.len()
    };
    let one = |row: &[u32]| draws_of(&weights(row), 2, Draws::Independent);
    assert_eq!(count(vec![list(&[1]), list(&[2])]), 2);
    assert_eq!(count(vec![list(&[1, 2]), list(&[1, 2])]), 0);
    assert_eq!(
        count(vec![one(&[1, 2, 0, 0]), one(&[0, 0, 2, 1]), list(&[2, 3])]),
        2
    );
    assert_eq!(
        count(vec![one(&[1, 2, 0, 0]), one(&[0, 0, 2, 1]), list(&[1, 2])]),
        3
    );
}

#[test]
fn ties_go_to_the_lower_token() {
    assert_eq!(
        by_falling_mass(&Draft::new(&[0.25, 0.0, 0.5, 0.25]).unwrap()),
        [2, 0, 3]
    );
    assert_eq!(by_falling_mass(&weights(&[1, 0, 2, 1])), [2, 0, 3]);
    assert_eq!(most_probable(&q(), 3), [0, 1, 2]);
    // As few as hold the share: exactly 3/4 needs two, any more needs three.
    assert_eq!(nucleus(&q(), &fraction("3/4")), [0, 1]);
    assert_eq!(nucleus(&q(), &fraction("751/1000")), [0, 1, 2]);
    assert_eq!(nucleus(&q(), &fraction("1/1000")), [0]);
}

/// Operations that no other test counts.
#[test]
fn costs_of_checks_and_of_parts() {
    let of = |drafts| WithoutReplacement::new(q(), drafts);
    // 2^3 3^2 a set of 4; the whole support is known.
    assert_eq!(of(3).set_check_cost(), 288.0);
    assert_eq!([of(5).set_check_cost(), of(5).set_law_cost()], [1.0; 2]);
    // Odds beyond the range of f64 have a route of their own.
    let extreme = WithoutReplacement::new(Draft::new(&[1.0, 1e-300, 1e-310]).unwrap(), 2);
    let error = extreme.prefix_scan(&[0, 1, 2]).absolute_error;
    assert_eq!(error, 16.0 * f64::EPSILON);
    // Merging: 2 * 4 sets, (4 + 8) each, with the 80 and 4 of the parts; a check of 4 tokens: 2
    // parts of 16^2, and 16 of each part's.
    let parts = vec![draws(3, Draws::Sequential), Composition::Fixed(vec![1])];
    let union = law(Composition::Union(parts));
    let joined = 2.0 * 256.0 + 16.0 * (16.0 * 17.0 * 3.0) + 16.0 * 2.0;
    let own = 2.0 * 4.0 * 12.0 + (64.0 + 4.0 * 4.0) + 4.0;
    assert_eq!(
        [union.set_law_cost(), union.set_check_cost()],
        [own, 4.0 * joined]
    );
    // What avoids a token is divided by the chance that it does: bits of two laws.
    let two = || Box::new(draws(2, Draws::Sequential));
    let avoiding = law(Composition::Avoiding(vec![2], two()));
    assert_eq!(avoiding.exact_bits(), 40.0);
    // Two groups of two tokens: up to 2^2 choices of each of two draws.
    let into = vec![3, 1, 1, 3];
    let merged = law(Composition::Merged { into, law: two() });
    assert_eq!(merged.set_check_cost(), 6.0 * (4.0 * 5.0 * 2.0) * 16.0);
    // Subsets of a set are summed, but of the whole support.
    assert_eq!(
        [of(3), of(5)].map(|law| law.largest_checked_set()),
        [20, usize::MAX]
    );
}

/// Bounds on errors of chains have a part for each thing that is left out or rounded.
#[test]
fn chains_count_all_of_their_errors() {
    const E: f64 = f64::EPSILON;
    let error = |law: &Composed| law.prefix_scan(&[0, 1, 3, 2]).absolute_error;
    let parts = || vec![draws(3, Draws::Sequential), Composition::Fixed(vec![1])];
    // 37 + 1 and 1, and one in the end.
    assert_eq!(error(&law(Composition::Union(parts()))), 40.0 * E);
    // 3/4 of 37 and two roundings a part.
    let thirds = ["3", "1"].map(fraction).into_iter();
    let mixture = law(Composition::Mixture(thirds.zip(parts()).collect()));
    assert_eq!(error(&mixture), (0.75 * 37.0 + 5.0) * E);
    // Over the chance that neither of two draws is the token.
    let row = [0.5, 0.25, 0.125, 0.125];
    let second = [0, 1, 3].map(|x| row[x] * row[2] / (1.0 - row[x]));
    let kept = 1.0 - row[2] - second.iter().sum::<f64>();
    let two = Box::new(draws(2, Draws::Sequential));
    let found = error(&law(Composition::Avoiding(vec![2], two)));
    assert!(
        (found - 8.0 * E / kept - 5.0 * E).abs() < 1e-3 * E,
        "{found}"
    );
    // From where a mass of 1e-19 is left out, to 50 over the least mass outside.
    let (step, quadrature) = log_time_step(3, 5e-14);
    let nodes = (((50.0f64 / 0.125).ln() - 1e-19f64.ln() / 4.0) / step).ceil();
    let expected = 2.0 * quadrature + 4.0 * (3.0 + nodes) * E + 4e-19;
    let found = race::scan(&row, 3, &[1, 3, 0]).absolute_error;
    assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
}
