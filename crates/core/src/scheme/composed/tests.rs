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
    let union = |parts: &[Composition]| law(5, Composition::Union(parts.to_vec()));
    let fixed = |tokens: &[usize]| Composition::Fixed(tokens.to_vec());
    let iid = |draft: &Draft, count| draws(draft, count, Draws::Independent);
    let draft = q(&[7, 3, 5, 1, 0]);
    let rest = draft.restricted(|token| token != 0 && token != 2).unwrap();
    // The top two and one of the rest.
    let greedy = union(&[fixed(&[2, 0]), draws(&rest, 1, Draws::Sequential)]);
    assert_eq!(sets(&greedy), sets(&Greedy::new(draft.clone(), 3)));
    assert_eq!(greedy.forced, [0, 2]);
    let rest = draft.restricted(|token| token != 0).unwrap();
    let hub = union(&[fixed(&[0]), draws(&rest, 1, Draws::Distinct)]);
    assert_eq!(sets(&hub), sets(&Hub::new(draft.clone())));
    // Two groups from one q are one group, and two models are a product.
    let groups = union(&[iid(&draft, 1), iid(&draft, 2)]);
    assert_eq!(sets(&groups), sets(&WithReplacement::new(draft.clone(), 3)));
    let other = q(&[1, 1, 2, 3, 5]);
    let both = Product::new(vec![draft.clone(), other.clone()]).unwrap();
    let models = [iid(&draft, 1), iid(&other, 1)];
    let polynomial = |law: &dyn DraftScheme| law.scores().unwrap().polynomial;
    assert_eq!(sets(&union(&models)), sets(&both));
    assert_eq!(polynomial(&union(&models)), polynomial(&both));
    assert!(!union(&models).has_sort_theorem());
    // Draws of nothing but what is forced anyway add nothing.
    let covered = draft.restricted(|token| token == 2).unwrap();
    let forced = [&[fixed(&[2])][..], &models].concat();
    let with = union(&[&forced[..], &[iid(&covered, 2)]].concat());
    let without = union(&forced);
    assert_eq!(sets(&with), sets(&without));
    assert!(polynomial(&with).is_some());
    assert_eq!(polynomial(&with), polynomial(&without));
    // Distinct draws that avoid a token are distinct draws from the others.
    let pair = Box::new(draws(&draft, 2, Draws::Distinct));
    let avoiding = law(5, Composition::Avoiding(vec![0], pair));
    assert_eq!(sets(&avoiding), sets(&DistinctConditioned::new(rest, 2)));
    // i.i.d. draws of merged tokens are i.i.d. draws.
    let (into, three) = (vec![0, 1, 1, 0, 0], Box::new(iid(&draft, 3)));
    let merged = law(2, Composition::Merged { into, law: three });
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
