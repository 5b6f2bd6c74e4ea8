//! Rows that list only some tokens: what stratified drafts accept under every completion.

use super::interiors::{Falling, Interiors};
use super::passes::Levels;
use super::rates::LevelRates;
use super::strata::{Straddle, Strata};
use specgap_number::distribution::compensated_sum;

/// What is known of two rows. Entries of both belong to the same tokens.
#[derive(Clone, Copy, Debug)]
pub struct ListedRows<'a> {
    /// p of each token that the draft lists, 0 where the target does not list it.
    pub target: &'a [f64],
    /// q of it, one entry a token.
    pub draft: &'a [f64],
    /// Mass of the tokens that the draft does not list.
    pub unlisted: f64,
    /// q of the tokens of the list whose p is not known, as the target does not list them.
    pub apart: f64,
    /// None of them has more q than this.
    pub largest: f64,
}

/// Bounds that hold for every completion of two rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListedRates {
    /// On alpha\*. The lower one is alpha\* of a completion, but for the width of an
    /// enclosure.
    pub optimum: [f64; 2],
    /// On what level passes that end with level 0 accept.
    pub passes: [f64; 2],
}

/// Bounds on the rates of `drafts` stratified drafts. `None` where what is not listed decides
/// which tokens are certain: then only `alpha* of i.i.d. drafts <= alpha*` is left.
///
/// Let A be the listed tokens with more q than any other token can have, U all others, and
/// q(U) known. Strata are laid heaviest first, so U is laid last: what is certain, the scale c,
/// and all positions of A are known.
///
/// - *Lower bound.* Let L be the least of `1 + P(H) - Q(H + U)` over H in A. For every completion
///   and every set H + B, B in U: `1 + P(H) + p(B) - Q(H + B) >= 1 + P(H) - Q(H + U)`, so
///   alpha\* >= L. And `Q(H + U)` does not depend on how U is made up: strata behind the last
///   one with a token of A lie in U whole, so that all drafts there are in `H + U` whatever
///   was drafted before, and tokens of U meet no other cut. L is alpha\* of the completion in which
///   U has p = 0 and the rest of p has q = 0.
/// - *Upper bound.* An optimal rule accepts at most L in A: without what it accepts in U it is
///   a rule for that completion. In U it accepts at most the sum of min(p, P(drafted)), and
///   P(drafted) <= c q. So `alpha* <= L + min(p(U), c q(U))`, p(U) being all that p has
///   outside A. Tokens of A that the target does not list have p = 0 in L, and are added as
///   those of U are. `beyond`, given c, is what tokens that are not in both lists add at most.
/// - *Passes.* They accept at most alpha\*, and at least alpha\* - alpha\*^2/4 (theorem G),
///   which rises with alpha\*: passes over independent strata, and adaptive ones, in which a token
///   across a cut has one clock. Fixed levels over strata that draft it once may fall short.
///
/// Complexity: that of adaptive passes over the listed tokens.
///
/// # Example
/// ```
/// use specgap_plan::{ListedRows, Straddle, listed_rates};
/// // p has 0.2 elsewhere, q 0.1 in tokens below 0.05.
/// let rows = ListedRows {
///     target: &[0.5, 0.3],
///     draft: &[0.3, 0.6],
///     unlisted: 0.1,
///     apart: 0.0,
///     largest: 0.05,
/// };
/// let rates = listed_rates(rows, 2, Straddle::Once, |c| c * 0.1).ok_or("open")?;
/// // Token 1 is certain; 0 comes with 0.3/0.4, what is not listed with 0.1/0.4.
/// assert!((rates.optimum[0] - 0.8).abs() < 1e-9);
/// assert!((rates.optimum[1] - 1.0).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn listed_rates(
    rows: ListedRows<'_>,
    drafts: usize,
    straddle: Straddle,
    beyond: impl Fn(f64) -> f64,
) -> Option<ListedRates> {
    let outside = |q: f64| q <= rows.largest;
    let tokens = || rows.target.iter().zip(rows.draft);
    let inside = || tokens().filter(|one| !outside(*one.1));
    let p: Vec<f64> = inside().map(|one| *one.0).collect();
    let q: Vec<f64> = inside().map(|one| *one.1).collect();
    let light = || tokens().filter(|one| outside(*one.1));
    let unlisted = compensated_sum(light().map(|one| *one.1).chain([rows.unlisted]));
    if drafts == 0 {
        return None;
    }
    let strata = Strata::listed(&q, unlisted, drafts);
    let open = strata.certain().len() == q.len() && strata.strata() > 1;
    if open {
        return None;
    }
    // What is certain comes with min(1, c q) too, also where nothing else has q and c is 0.
    let surest = strata.certain().iter().map(|&x| 1.0 / q[x as usize]);
    let scale = surest.fold(strata.scale(), f64::max).min(f64::MAX);
    let all = Interiors::of(&Falling::of((&p, &q)), strata);
    let least = LevelRates::of_interiors(&all, straddle, Levels::Best).optimum;
    let short = (1.0 - compensated_sum(p.iter().copied())).max(0.0);
    let kept = light().map(|(&p, &q)| p.min(scale * q));
    let more = (compensated_sum(kept) + beyond(scale))
        .min(scale * (unlisted + rows.apart))
        .min(short);
    let optimum = [least.lower(), (least.upper() + more).min(1.0)];
    let rejection = optimum[0] * (1.0 - 0.25 * optimum[0]);
    Some(ListedRates {
        optimum,
        passes: [rejection, optimum[1]],
    })
}
