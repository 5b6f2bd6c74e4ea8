//! What laws say of themselves, against what is counted by hand: numbers of tuples and sets,
//! operations, bits and bounds on errors. Routes are chosen by these, and enclosures need them.

use super::tests::{a_composition, draws_of, weights};
use super::without_replacement::by_falling_mass;
use super::*;
use specgap_number::distribution::{Draft, Rational, TupleProbabilities, parse_rational};
use specgap_number::quadrature::log_time_step;

const E: f64 = f64::EPSILON;
const ANY: usize = usize::MAX;

fn fraction(text: &str) -> Rational {
    parse_rational(text).unwrap()
}

/// One half, one quarter, two eighths: four tokens whose probabilities have 4 bits.
fn q() -> Draft {
    weights(&[4, 2, 1, 1])
}

/// Tuples and sets; operations of the law, of all checks, of an exact chain; bits.
fn costs(law: &dyn DraftScheme) -> [f64; 6] {
    [
        law.tuple_count(),
        law.set_count(),
        law.set_law_cost(),
        law.set_check_cost(),
        law.exact_scan_cost(),
        law.exact_bits(),
    ]
}

/// The costs; bounds on errors, in epsilons, of the law of sets, of one set and of a chain; and the
/// largest set that is checked, whether fractions are added, and fixed drafts.
fn says(
    law: &dyn DraftScheme,
    costs: [f64; 6],
    errors: [f64; 3],
    kind: (usize, bool, Option<usize>),
) {
    let order: Vec<usize> = (0..law.vocab()).collect();
    assert_eq!(self::costs(law), costs, "{law:?}");
    let found = [
        law.set_law().relative_error,
        law.set_probability_error(),
        law.prefix_scan(&order).absolute_error,
    ];
    assert_eq!(found, errors.map(|error| error * E), "{law:?}");
    let found = (
        law.largest_checked_set(),
        law.adds_fractions(),
        law.fixed_drafts(),
    );
    assert_eq!(found, kind, "{law:?}");
}

#[test]
fn independent_draws() {
    // Sets of 1, 2, 3 of 4 tokens: 4, 6, 4. Surjections of 3 draws onto k: k 3 2^k each.
    let (errors, kind) = ([33.0, 66.0, 11.0], (20, false, None));
    let law = WithReplacement::new(q(), 3);
    says(&law, [64.0, 14.0, 126.0, 456.0, 0.0, 12.0], errors, kind);
    assert!(law.independent_draft(2).is_some() && law.independent_draft(3).is_none());
    // No more distinct tokens than there are.
    let law = WithReplacement::new(weights(&[3, 0, 5]), 4);
    assert_eq!(costs(&law), [16.0, 3.0, 48.0, 48.0, 0.0, 16.0]);

    let law = Product::new(vec![q(), q(), weights(&[0, 3, 4, 1])]).unwrap();
    says(&law, [48.0, 14.0, 456.0, 456.0, 0.0, 12.0], errors, kind);
    assert!(law.independent_draft(2).is_some() && law.independent_draft(3).is_none());
    assert!(Product::new(vec![q(), weights(&[1, 1])]).is_none());
    assert!(Product::new(Vec::new()).is_none());
}

#[test]
fn distinct_draws() {
    let (errors, kind) = ([33.0, 66.0, 13.0], (ANY, false, None));
    let law = DistinctConditioned::new(q(), 3);
    says(&law, [24.0, 4.0, 36.0, 36.0, 0.0, 12.0], errors, kind);
    assert_eq!(law.set_probability(&[0, 1]), 0.0);
    assert_eq!(law.set_probability_exact(&[0, 1]), Rational::default());
    // As many draws as there are tokens to draw.
    let law = DistinctConditioned::new(weights(&[3, 0, 5]), 4);
    assert_eq!(costs(&law), [2.0, 1.0, 16.0, 16.0, 0.0, 8.0]);
    // Two of two, whose product is all that there is.
    assert_eq!(law.inside_exact(&[2, 0]), fraction("1"));
}

#[test]
fn sequential_draws() {
    // The law: 4 sets of 1 token, 6 of 2 and 4 of 3, k^2 each; a check: 2^3 3^2 a set. A
    // denominator for each set of 1 or 2 tokens, and that of q.
    let (of, kind) = (|n| WithoutReplacement::new(q(), n), (20, true, None));
    let errors = [33.0, 66.0, 37.0];
    says(&of(3), [24.0, 4.0, 64.0, 288.0, 64.0, 44.0], errors, kind);
    let errors = [20.0, 40.0, 8.0];
    says(&of(2), [12.0, 6.0, 28.0, 96.0, 0.0, 20.0], errors, kind);
    let errors = [9.0, 18.0, 4.0];
    says(&of(1), [4.0, 4.0, 4.0, 8.0, 0.0, 4.0], errors, kind);
    // The whole support, for sure.
    assert_eq!(costs(&of(5)), [24.0, 1.0, 1.0, 1.0, 1.0, 60.0]);
    assert_eq!(of(5).largest_checked_set(), ANY);
    // Odds beyond the range of f64 have a route of their own.
    let extreme = WithoutReplacement::new(Draft::new(&[1.0, 1e-300, 1e-310]).unwrap(), 2);
    assert_eq!(extreme.prefix_scan(&[0, 1, 2]).absolute_error, 16.0 * E);
}

#[test]
fn tokens_for_sure() {
    let (errors, kind) = ([4.0, 66.0, 4.0], (ANY, false, Some(2)));
    let law = Greedy::new(q(), 3);
    says(&law, [2.0, 2.0, 18.0, 18.0, 0.0, 4.0], errors, kind);
    let all = Greedy::new(q(), 5);
    assert_eq!(costs(&all)[..2], [1.0, 1.0]);
    assert_eq!(all.set_probability(&[0, 1, 2]), 0.0);
    assert_eq!(law.set_probability(&[0, 1]), 0.0);

    let (errors, kind) = ([4.0, 40.0, 4.0], (ANY, false, Some(1)));
    let law = Hub::new(q());
    says(&law, [6.0, 3.0, 12.0, 12.0, 0.0, 4.0], errors, kind);
    let alone = Hub::new(weights(&[0, 7]));
    assert_eq!(costs(&alone)[..2], [1.0, 1.0]);
    assert_eq!(alone.set_probability(&[0]), 0.0);
    assert_eq!(law.set_probability(&[0]), 0.0);

    let (errors, kind) = ([0.0, 66.0, 0.0], (ANY, false, Some(3)));
    let law = Top::new(q(), 3);
    says(&law, [1.0, 1.0, 9.0, 9.0, 0.0, 1.0], errors, kind);
}

#[test]
fn tuples_that_are_listed() {
    let masses = TupleProbabilities::new(&[0.5, 0.25, 0.25]).unwrap();
    let tuples = vec![vec![0, 1], vec![1, 0], vec![2, 2]];
    let law = Explicit::new(3, 2, tuples, masses).unwrap();
    let (errors, kind) = ([2.0, 40.0, 3.0], (ANY, false, None));
    says(&law, [3.0, 3.0, 12.0, 12.0, 0.0, 3.0], errors, kind);
    assert_eq!(law.set_law().probabilities, [0.75, 0.25]);
}

fn draws(count: usize, how: Draws) -> Composition {
    draws_of(&q(), count, how)
}

fn law(composition: Composition) -> Composed {
    Composed::new(4, composition).unwrap()
}

#[test]
fn leaves_of_composed_laws() {
    let (float, fractions) = ((20, false, None), (20, true, None));
    let fixed = law(Composition::Fixed(vec![2, 0]));
    says(
        &fixed,
        [1.0, 1.0, 2.0, 3.0, 0.0, 1.0],
        [0.0, 0.0, 1.0],
        float,
    );

    // Three tokens may come or not. Denominators of 2, 3, 1 and 3 bits.
    let chances = ["1/2", "1/4", "0", "3/4"].map(fraction);
    let poisson = law(Composition::Poisson(chances.to_vec()));
    let errors = [10.0, 10.0, 9.0];
    says(&poisson, [8.0, 8.0, 24.0, 32.0, 0.0, 10.0], errors, float);

    // A leaf adds the images of 4 sets of 3 tokens to the cost of its law, and checks each of
    // the 8 (9 + 1) steps of a set for each draw.
    let sequential = law(draws(3, Draws::Sequential));
    let (costs_of_three, errors) = ([24.0, 4.0, 76.0, 960.0, 64.0, 44.0], [70.0, 70.0, 38.0]);
    says(&sequential, costs_of_three, errors, fractions);

    // 1, 4 and 12 tuples, 1, 4 and 6 sets; 4 (1 + 4) + 6 (4 + 4) + 1 operations. The bits of
    // q, 4, and of 1/3, 3, for each set of 0 or 1 tokens and once more.
    let stopped = law(draws(2, Draws::Stopped(fraction("1/3"))));
    let (costs_of_two, errors) = ([17.0, 11.0, 91.0, 880.0, 69.0, 42.0], [84.0, 84.0, 25.0]);
    says(&stopped, costs_of_two, errors, fractions);
    // As many as there are tokens, and more draws than that: every set counts.
    let all = law(draws(4, Draws::Stopped(fraction("2"))));
    assert_eq!(costs(&all)[..2], [65.0, 16.0]);
    // 4 of q, 1 and 2 of 2; all sets of up to 3 tokens.
    assert_eq!(costs(&all)[5], 7.0 * 16.0);
}

#[test]
fn parts_of_composed_laws() {
    let fractions = (20, true, None);
    let parts = || vec![draws(3, Draws::Sequential), Composition::Fixed(vec![1])];
    // Errors of parts add up, each with four roundings: (70 + 4) + (0 + 4), and in a chain
    // 37 + 1 and 1, and one in the end. Merging: 2 * 4 sets, (4 + 8) each, with the 76 and 4
    // of the parts; a check of 4 tokens: 2 parts of 16^2, and 16 of each part's.
    let union = law(Composition::Union(parts()));
    let joined = 2.0 * 256.0 + 16.0 * (16.0 * 17.0 * 3.0) + 16.0 * 2.0;
    let own = 2.0 * 4.0 * 12.0 + (64.0 + 4.0 * 4.0) + 4.0;
    let costs_of_union = [24.0, 4.0, own, 4.0 * joined, 64.0, 45.0];
    says(&union, costs_of_union, [78.0, 78.0, 40.0], fractions);
    let both = [draws(2, Draws::Independent), draws(1, Draws::Independent)];
    let union = law(Composition::Union(both.to_vec()));
    assert!(!union.adds_fractions());
    assert_eq!(costs(&union)[..2], [64.0, 40.0]);

    // The largest error of a part and four roundings; in a chain 3/4 of 37 and two roundings
    // a part.
    let thirds = ["3", "1"].map(fraction).into_iter();
    let mixture = law(Composition::Mixture(thirds.zip(parts()).collect()));
    let own = (64.0 + 4.0 * 3.0) + 3.0 + 5.0 * 3.0;
    let checks = 5.0 * (8.0 * 10.0 * 3.0 + 2.0);
    let costs_of_mixture = [25.0, 5.0, own, checks, 64.0, 51.0];
    let errors = [74.0, 74.0, 0.75 * 37.0 + 5.0];
    says(&mixture, costs_of_mixture, errors, fractions);
    // Fractions are added even where no part adds any.
    let half = || fraction("1/2");
    let mixture = law(Composition::Mixture(vec![
        (half(), draws(1, Draws::Independent)),
        (half(), Composition::Fixed(vec![0])),
    ]));
    assert!(mixture.adds_fractions());
}

#[test]
fn conditioned_and_merged_laws() {
    // Three sequential draws of four tokens that avoid one: they are known to be the others,
    // and are not listed. Their law costs twice, and so do the bits.
    let avoiding = law(Composition::Avoiding(
        vec![2],
        Box::new(draws(2, Draws::Sequential)),
    ));
    assert_eq!(costs(&avoiding)[4..], [28.0, 40.0]);
    let stopped = law(Composition::Avoiding(
        vec![2],
        Box::new(draws(2, Draws::Stopped(fraction("1/3")))),
    ));
    assert_eq!(costs(&stopped)[4..], [138.0, 84.0]);
    // The error of a chain is one of the whole law: over the chance to avoid the token.
    let kept = 1.0 - avoided_in_pairs();
    let error = avoiding.prefix_scan(&[0, 1, 3, 2]).absolute_error;
    let expected = 8.0 * E / kept + 5.0 * E;
    assert!((error - expected).abs() < 1e-3 * E, "{error} {expected}");

    // Two groups of two tokens: up to 2^2 choices of each of two draws.
    let merged = law(Composition::Merged {
        into: vec![3, 1, 1, 3],
        law: Box::new(draws(2, Draws::Sequential)),
    });
    assert_eq!(costs(&merged)[3], 6.0 * (4.0 * 5.0 * 2.0) * 16.0);
}

/// P(token 2 is one of two sequential draws), from the definition.
fn avoided_in_pairs() -> f64 {
    let row = [0.5, 0.25, 0.125, 0.125];
    let second: f64 = [0, 1, 3]
        .map(|x| row[x] * row[2] / (1.0 - row[x]))
        .iter()
        .sum();
    row[2] + second
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

/// The bound of the race's integral has a part for each thing that is left out of it.
#[test]
fn the_race_counts_all_of_its_errors() {
    let row = [0.5, 0.25, 0.125, 0.125];
    let order = [1, 3, 0];
    let scan = race::scan(&row, 3, &order);
    let (step, quadrature) = log_time_step(3, 5e-14);
    // From where a mass of 1e-19 is left out, to 50 over the least mass outside.
    let left = 1e-19f64.ln() / 4.0;
    let nodes = (((50.0f64 / 0.125).ln() - left) / step).ceil();
    let expected = 2.0 * quadrature + 4.0 * (3.0 + nodes) * E + 4e-19;
    let error = scan.absolute_error;
    assert!((error / expected - 1.0).abs() < 1e-12, "{error} {expected}");
    let exact = WithoutReplacement::new(weights(&[4, 2, 1, 1]), 3).prefix_scan(&order);
    for (a, b) in scan.inside.iter().zip(&exact.inside) {
        assert!((a - b).abs() < 1e-13, "{a} {b}");
    }
    // Two tokens cannot hold three drafts, and what holds all of them is known.
    assert_eq!(scan.inside[..2], [0.0, 0.0]);
    assert_eq!(race::scan(&row, 3, &[0, 1, 2, 3]).inside[3], 1.0);
    assert_eq!(race::outside_masses(&row, &order), [0.75, 0.625, 0.125]);
}
