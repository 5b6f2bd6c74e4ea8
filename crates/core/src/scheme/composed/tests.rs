//! Composed laws against the simple ones that they equal, and scores against the definition.

use super::*;
use crate::scheme::tests::{draws_of as draws, weights as q};
use crate::scheme::{DistinctConditioned, Greedy, Hub, Product, WithReplacement};
use specgap_number::distribution::parse_rational;

fn law(vocab: usize, composition: Composition) -> Composed {
    Composed::new(vocab, composition).unwrap()
}

fn sets(scheme: &dyn DraftScheme) -> BTreeMap<Vec<u32>, Rational> {
    let law = scheme.exact_set_law();
    law.sets
        .iter()
        .zip(&law.weights)
        .map(|(set, weight)| (set.to_vec(), Rational::fraction(weight, &law.total)))
        .collect()
}

#[test]
fn known_laws_are_compositions() {
    let draft = q(&[7, 3, 5, 1, 0]);
    let rest = draft.restricted(|token| token != 0 && token != 2).unwrap();
    // The top two and one of the rest.
    let greedy = law(
        5,
        Composition::Union(vec![
            Composition::Fixed(vec![2, 0]),
            draws(&rest, 1, Draws::Sequential),
        ]),
    );
    assert_eq!(sets(&greedy), sets(&Greedy::new(draft.clone(), 3)));
    assert_eq!(greedy.forced, [0, 2]);
    let rest = draft.restricted(|token| token != 0).unwrap();
    let hub = law(
        5,
        Composition::Union(vec![
            Composition::Fixed(vec![0]),
            draws(&rest, 1, Draws::Distinct),
        ]),
    );
    assert_eq!(sets(&hub), sets(&Hub::new(draft.clone())));
    // Two groups from one q are one group, and two models are a product.
    let groups = law(
        5,
        Composition::Union(vec![
            draws(&draft, 1, Draws::Independent),
            draws(&draft, 2, Draws::Independent),
        ]),
    );
    assert_eq!(sets(&groups), sets(&WithReplacement::new(draft.clone(), 3)));
    let other = q(&[1, 1, 2, 3, 5]);
    let both = Product::new(vec![draft.clone(), other.clone()]).unwrap();
    let union = law(
        5,
        Composition::Union(vec![
            draws(&draft, 1, Draws::Independent),
            draws(&other, 1, Draws::Independent),
        ]),
    );
    assert_eq!(sets(&union), sets(&both));
    assert_eq!(
        union.scores().unwrap().polynomial,
        both.scores().unwrap().polynomial
    );
    assert!(!union.has_sort_theorem());
    // Draws of nothing but what is forced anyway add nothing.
    let forced = |more: Vec<Composition>| {
        let own = [
            Composition::Fixed(vec![2]),
            draws(&draft, 1, Draws::Independent),
            draws(&other, 1, Draws::Independent),
        ];
        law(5, Composition::Union(own.into_iter().chain(more).collect()))
    };
    let covered = draft.restricted(|token| token == 2).unwrap();
    let with = forced(vec![draws(&covered, 2, Draws::Independent)]);
    let without = forced(Vec::new());
    assert_eq!(sets(&with), sets(&without));
    let polynomial = with.scores().unwrap().polynomial;
    assert!(polynomial.is_some());
    assert_eq!(polynomial, without.scores().unwrap().polynomial);
    // Distinct draws that avoid a token are distinct draws from the others.
    let avoiding = law(
        5,
        Composition::Avoiding(vec![0], Box::new(draws(&draft, 2, Draws::Distinct))),
    );
    let others = DistinctConditioned::new(rest, 2);
    assert_eq!(sets(&avoiding), sets(&others));
    // i.i.d. draws of merged tokens are i.i.d. draws.
    let merged = law(
        2,
        Composition::Merged {
            into: vec![0, 1, 1, 0, 0],
            law: Box::new(draws(&draft, 3, Draws::Independent)),
        },
    );
    let two = WithReplacement::new(q(&[8, 8]), 3);
    assert_eq!(sets(&merged), sets(&two));
}

#[test]
fn one_score_is_told_from_two() {
    let (draft, other) = (q(&[4, 3, 2, 1]), q(&[1, 2, 3, 4]));
    let iid = |draft: &Draft, n| draws(draft, n, Draws::Independent);
    let count = |composition| law(4, composition).scores().unwrap().distinct.len();
    let half = || Rational::new(1.into(), 2.into());
    let mixture = |a, b| Composition::Mixture(vec![(half(), a), (half(), b)]);
    assert_eq!(count(mixture(iid(&draft, 1), iid(&draft, 3))), 1);
    assert_eq!(count(mixture(iid(&draft, 1), iid(&other, 1))), 2);
    assert_eq!(
        count(Composition::Union(vec![
            draws(&draft, 2, Draws::Sequential),
            draws(&draft, 2, Draws::Distinct),
            draws(&draft, 2, Draws::Stopped(half())),
        ])),
        1
    );
    // Truncated before drawing: another score, unless the tokens cut off are forced anyway.
    let rest = draft.restricted(|token| token != 0).unwrap();
    let groups = vec![iid(&draft, 1), draws(&rest, 2, Draws::Sequential)];
    assert_eq!(count(Composition::Union(groups.clone())), 2);
    let forced = [groups, vec![Composition::Fixed(vec![0])]].concat();
    assert_eq!(count(Composition::Union(forced)), 1);
    // A list that is not in every draw has a score of its own, or one of the same tokens.
    let list = Composition::Fixed(vec![1, 2, 3]);
    assert_eq!(count(mixture(list.clone(), iid(&draft, 1))), 2);
    assert_eq!(count(mixture(list.clone(), iid(&rest, 2))), 1);
    assert_eq!(count(list), 0);
    // Chances are no masses.
    let chances = ["1/2", "1/3", "0", "1"].map(|text| parse_rational(text).unwrap());
    let poisson = Composition::Poisson(chances.to_vec());
    assert_eq!(count(poisson.clone()), 1);
    assert_eq!(law(4, poisson.clone()).forced, [3]);
    assert_eq!(
        count(Composition::Union(vec![poisson.clone(), poisson.clone()])),
        1
    );
    assert_eq!(count(Composition::Union(vec![poisson, iid(&draft, 1)])), 2);
}

#[test]
fn complaints_name_the_part() {
    let draft = q(&[1, 2]);
    let complaint = |composition| Composed::new(2, composition).unwrap_err().to_string();
    let wrong = Composition::Union(vec![
        draws(&draft, 1, Draws::Independent),
        Composition::Union(vec![Composition::Fixed(vec![2])]),
    ]);
    assert_eq!(
        complaint(wrong),
        "of[1].of[0]: token 2 is not in the vocabulary 0..2"
    );
    assert_eq!(
        complaint(draws(&draft, 3, Draws::Sequential)),
        "drafts is 3; it must be in 1..=2"
    );
    let stop = Rational::zero();
    assert_eq!(
        complaint(draws(&draft, 1, Draws::Stopped(stop))),
        "stop is 0; it must be in [1e-9, 1e9]"
    );
    let all = Composition::Avoiding(vec![0, 1], Box::new(draws(&draft, 1, Draws::Independent)));
    assert_eq!(
        complaint(all),
        "every draw holds one of the tokens to avoid, so nothing is left to draw"
    );
    assert_eq!(
        complaint(Composition::Fixed(Vec::new())),
        "the law never drafts a token; give at least one part that does"
    );
}
