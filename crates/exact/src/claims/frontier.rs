//! Claims about rules that are allowed to be lossy: one frontier for all divergences.

use super::Finding;
use super::claim::claims;
use super::family::{Family, describe, excess, fractions, half, optimum, part};
use super::scores::{is_in, mask_of, mass, minimisers, values};
use super::slots::Sets;
use specgap_core::problem::Problem;
use specgap_core::scheme::{DraftScheme, SchemeName};
use specgap_number::distribution::{Rational, Target};
use specgap_number::number::Number;
use specgap_plan::even_selection;
use std::cmp::Ordering;

claims! {
    holds "one-lossy-frontier" by frontier,
        "of all output laws p' with which some rule accepts at least beta, alpha* <= beta \
        <= P(something is drafted), one makes the sum of p f(p'/p) the least for every convex f \
        at once; its total variation from p is beta - alpha*; and for laws that are sorted by \
        w/p it is p times the slopes of the least concave function above the points (P, (Q - 1 + \
        beta)+) of the first tokens, with 1 in place of beta at the last",
        "ours, after Fujishige (1980), the lexicographically optimal base of a polymatroid; \
        docs/theory/plans.md, section 4",
        "Proof: p' is allowed if and only if p'(H) >= g(H) = (Q(H) - 1 + beta)+ for all \
        H, with g = 1 for all tokens. g is supermodular. Every convex f is a line and a mixture \
        of (p'/p - t)+, and the sum of (p' - t p)+ is at least g(H) - t P(H) for every H; where \
        all sets {p'/p >= t} have p' = g it attains that. Checked in fractions: p' by \
        decomposition has all p' >= g, and these sets tight, which is the whole certificate; \
        the sum of (p' - t p)+ is the largest g - t P at all of its corners and between; it \
        accepts beta and no more; it is never above any vertex of the allowed laws, random \
        points, or allowed laws of a grid, in chi-square, largest ratio and at every corner of \
        its sum, hence at every t, total variation among them; and the closed form, for every law of \
        one score.";
    refuted "lossy-coin" of coin,
        in ["refuted/lossy-coin.toml"]
        "a coin between a lossless rule of the largest acceptance and the rule that always \
        puts out a draft, nearest to p, is as near to p as its acceptance allows in every \
        divergence, as it is in total variation",
        "a natural reading of lossy-frontier",
        "Wrong for one draft: p uniform on three tokens, q = (7, 5, 0)/12. An even coin \
        accepts 5/6 and puts out (11, 9, 4)/24. (10, 10, 4)/24 allows the same acceptance at the \
        same total variation, 1/6, and its chi-square is 1/8 against 13/96.";
}

/// Returns what p' has to hold of each set if a rule is to accept beta.
fn demands(q: &[Rational], beta: &Rational) -> Vec<Rational> {
    let missed = beta.complement();
    let mut demands: Vec<Rational> = q.iter().map(|q| q.excess_over(&missed)).collect();
    if let Some(all) = demands.last_mut() {
        *all = Rational::one();
    }
    demands
}

/// The law of p' >= g that is the nearest to p, by decomposition: the set of the largest g/P, and
/// the largest of these, first.
fn even_base(p: &[Rational], g: &[Rational]) -> Vec<Rational> {
    let all = g.len() - 1;
    let mut law = vec![Rational::zero(); p.len()];
    let mut done = 0;
    for token in (0..p.len()).filter(|&token| p[token].is_nil()) {
        law[token] = &g[done | 1 << token] - &g[done];
        done |= 1 << token;
    }
    while done != all {
        let open = (1..=all).filter(|set| set & done == 0);
        let slopes = open.map(|set| {
            let slope = (&g[done | set] - &g[done]).over(&mass(p, set));
            (slope, set.count_ones(), std::cmp::Reverse(set))
        });
        let Some((slope, _, std::cmp::Reverse(set))) = slopes.max() else {
            break;
        };
        for token in (0..p.len()).filter(|&token| is_in(set, token)) {
            law[token] = p[token].times(&slope);
        }
        done |= set;
    }
    law
}

/// Computes that in closed form, along an order of the tokens; tokens of p = 0 get what the order
/// gives them before any other.
fn along(p: &[Rational], g: &[Rational], order: &[usize]) -> Vec<Rational> {
    // P and g of the first tokens, of those of one P the last, and how many they are.
    let mut points = vec![(Rational::zero(), Rational::zero(), 0)];
    let (mut set, mut law) = (0, vec![Rational::zero(); p.len()]);
    for (place, &token) in order.iter().enumerate() {
        let last = points.len() - 1;
        if p[token].is_nil() {
            if points[last].0.is_nil() {
                law[token] = &g[set | 1 << token] - &g[set];
            }
        } else {
            points.push(points[last].clone());
        }
        set |= 1 << token;
        let last = points.len() - 1;
        points[last] = (mass(p, set), g[set].clone(), place + 1);
    }
    let mut corners: Vec<(Rational, Rational, usize)> = Vec::new();
    let slope = |from: &(Rational, Rational, usize), to: &(Rational, Rational, usize)| {
        (&to.1 - &from.1).over(&(&to.0 - &from.0))
    };
    for point in points {
        while let [.., before, last] = &corners[..]
            && slope(before, last) <= slope(last, &point)
        {
            corners.pop();
        }
        corners.push(point);
    }
    for pair in corners.windows(2) {
        let share = slope(&pair[0], &pair[1]);
        for &token in &order[pair[0].2..pair[1].2] {
            if !p[token].is_nil() {
                law[token] = p[token].times(&share);
            }
        }
    }
    law
}

/// The tokens in the order by w/p of a law of one score, those it needs first; `None` for others.
fn sorted(scheme: &dyn DraftScheme, target: &Target) -> Option<Vec<usize>> {
    let scores = scheme.scores().filter(|_| scheme.has_sort_theorem())?;
    let weights = &target.exact().weights;
    let score = scores.distinct.first();
    let free = (0..scheme.vocab()).filter(|token| !scores.forced.contains(token));
    let counts = |&token: &usize| score.is_some_and(|score| score.is_positive(token));
    let (mut order, rest): (Vec<usize>, Vec<usize>) = free.partition(counts);
    let mut is_decided = true;
    order.sort_by(|&a, &b| {
        let order = score.and_then(|score| score.compare(weights, b, a));
        is_decided &= order.is_some();
        order.unwrap_or(Ordering::Equal)
    });
    is_decided.then(|| [scores.forced.to_vec(), order, rest].concat())
}

/// The sum of (p' - t p)+.
fn hinge(law: &[Rational], p: &[Rational], t: &Rational) -> Rational {
    excess(law, &p.iter().map(|p| t.times(p)).collect::<Vec<_>>())
}

/// The ratios p'/p, where p is above 0.
fn ratios<'a>(law: &'a [Rational], p: &'a [Rational]) -> impl Iterator<Item = Rational> + 'a {
    let rows = law.iter().zip(p).filter(|(_, p)| !p.is_nil());
    rows.map(|(law, p)| law.over(p))
}

/// Mass where p has none.
fn beyond(law: &[Rational], p: &[Rational]) -> Rational {
    let rows = law.iter().zip(p).filter(|(_, p)| p.is_nil());
    rows.map(|(law, _)| law).sum()
}

/// Chi-square; `None` for infinity.
fn chi_square(law: &[Rational], p: &[Rational]) -> Option<Rational> {
    let off = |ratio: Rational| (&ratio - Rational::one()).power(2);
    let weights = p.iter().filter(|p| !p.is_nil());
    let terms = ratios(law, p).zip(weights).map(|(ratio, p)| p * off(ratio));
    let sum = terms.sum();
    beyond(law, p).is_nil().then_some(sum)
}

/// Says in what another law is nearer to p, if in anything. Between corners of its own sum of
/// (p' - t p)+ that is a line, and the other sum convex: no less at the corners is no less at any t.
fn nearer(law: &[Rational], other: &[Rational], p: &[Rational]) -> Option<String> {
    let corners = ratios(other, p).chain([Rational::zero()]);
    for t in corners {
        if hinge(other, p, &t) < hinge(law, p, &t) {
            return Some(format!("{other:?} has the smaller sum at t = {t}"));
        }
    }
    if beyond(other, p) < beyond(law, p) {
        return Some(format!("{other:?} has less mass where p has none"));
    }
    let (Some(least), Some(square)) = (chi_square(law, p), chi_square(other, p)) else {
        return None;
    };
    let by_ratio = ratios(other, p).max() < ratios(law, p).max();
    (square < least || by_ratio).then(|| format!("{other:?} has {square}, not {least}"))
}

/// The certificate: all sets have what is demanded, and those above a ratio no more.
fn uncertified(law: &[Rational], p: &[Rational], g: &[Rational]) -> Option<String> {
    for (set, demanded) in g.iter().enumerate() {
        if mass(law, set) < *demanded {
            return Some(format!("set {set:b} has less than {demanded}"));
        }
    }
    for least in ratios(law, p).map(Some).chain([None]) {
        let is_above = |&token: &usize| {
            let least = least.as_ref();
            p[token].is_nil() || least.is_some_and(|least| law[token] >= least.times(&p[token]))
        };
        let set = mask_of((0..p.len()).filter(is_above));
        if mass(law, set) != g[set] {
            return Some(format!("set {set:b} has more than {}", g[set]));
        }
    }
    // The same by duality, at the corners of the sum, between any two and behind the last.
    let mut corners: Vec<Rational> = ratios(law, p).chain([Rational::zero()]).collect();
    corners.sort();
    let between = corners
        .windows(2)
        .map(|pair| (&pair[0] + &pair[1]) * half());
    let behind = corners.last().map(|last| last + Rational::one());
    for t in between.chain(behind).chain(corners.iter().cloned()) {
        let bounds = g
            .iter()
            .enumerate()
            .map(|(set, g)| g - t.times(&mass(p, set)));
        let (bound, sum) = (bounds.max(), hinge(law, p, &t));
        if bound.as_ref() != Some(&sum) {
            return Some(format!("the sum at t = {t} is {sum}, its bound {bound:?}"));
        }
    }
    None
}

/// The vertices of the laws that are allowed: the growths of g along every order.
fn vertices(g: &[Rational], vocab: usize) -> Vec<Vec<Rational>> {
    let mut partial = vec![(0usize, vec![Rational::zero(); vocab])];
    for _ in 0..vocab {
        let longer = partial.iter().flat_map(|(set, law)| {
            (0..vocab)
                .filter(|&token| !is_in(*set, token))
                .map(move |token| {
                    let mut law = law.clone();
                    law[token] = &g[set | 1 << token] - &g[*set];
                    (set | 1 << token, law)
                })
        });
        partial = longer.collect();
    }
    partial.into_iter().map(|(_, law)| law).collect()
}

/// alpha* of the law for another target.
fn accepts(law: &[Rational], q: &[Rational]) -> Rational {
    minimisers(law, q).0 + Rational::one()
}

/// Laws over a grid of twelfths, three tokens.
fn grid() -> Vec<Vec<Rational>> {
    let whole = |(a, b): (u64, u64)| fractions(&[a, b, 12 - a - b]);
    let pairs = (0..=12).flat_map(|a| (0..=12 - a).map(move |b| (a, b)));
    pairs.map(whole).collect()
}

fn check_one(
    finding: &mut Finding,
    family: &mut Family,
    (problem, grid): (&Problem, &[Vec<Rational>]),
) {
    let (p, q) = (Rational::row(problem.target()), values(problem.scheme()));
    let alpha = optimum(problem);
    let most = q[0].complement();
    finding.add("laws of drafts", 1);
    finding.tally(KINDS[0], !q[0].is_nil());
    let order = sorted(problem.scheme(), problem.target());
    let inner = part(family.between(1, 11), 12);
    for share in [Rational::zero(), inner, Rational::one()] {
        let beta = &alpha + (&most - &alpha) * &share;
        let g = demands(&q, &beta);
        let law = even_base(&p, &g);
        let name = || format!("{}, beta = {beta}: {law:?}", describe(problem));
        finding.about(name, |finding| {
            finding.add("least laws p'", 1);
            let different: std::collections::BTreeSet<Rational> = ratios(&law, &p).collect();
            finding.tally(KINDS[1], different.len() > 2);
            let violation = uncertified(&law, &p, &g);
            finding.require(violation.is_none(), || format!("{violation:?}"));
            finding.equal(&accepts(&law, &q), &beta);
            finding.equal(excess(&law, &p), &beta - &alpha);
            let compare = |finding: &mut Finding, other: &[Rational]| {
                let violation = nearer(&law, other, &p);
                finding.require(violation.is_none(), || format!("{violation:?}"));
            };
            let corners = vertices(&g, p.len());
            for corner in &corners {
                compare(finding, corner);
            }
            finding.add("vertices of the allowed laws", corners.len() as u64);
            for _ in 0..2 {
                let shares = family.row(corners.len());
                let mut point = vec![Rational::zero(); p.len()];
                for (corner, share) in corners.iter().zip(&shares) {
                    for (entry, mass) in point.iter_mut().zip(corner) {
                        entry.gain(&mass.times(share));
                    }
                }
                compare(finding, &point);
                finding.add("random points", 1);
            }
            let grid = grid.iter().filter(|other| other.len() == p.len());
            let allowed: Vec<_> = grid.filter(|other| accepts(other, &q) >= beta).collect();
            finding.add(KINDS[2], allowed.len() as u64);
            allowed
                .into_iter()
                .for_each(|other| compare(finding, other));
            finding.tally(KINDS[3], order.is_some());
            if let Some(order) = &order {
                let closed = along(&p, &g, order);
                let same = ratios(&closed, &p).eq(ratios(&law, &p));
                finding.require(same && beyond(&closed, &p) == beyond(&law, &p), || {
                    format!("{closed:?} in closed form")
                });
            }
            let draft = problem.scheme().draft().map(|draft| Rational::row(draft));
            if problem.scheme().name() == SchemeName::WITH_REPLACEMENT
                && let Some(draft) = draft.filter(|_| share == Rational::one())
            {
                let even = even_selection(&p, &draft, problem.drafts());
                let same = ratios(&even, &p).eq(ratios(&law, &p));
                finding.require(same, || format!("the even selection is {even:?}"));
            }
            Some(())
        });
    }
}

/// Kinds of which there have to be some.
const KINDS: [&str; 4] = [
    "that may draft nothing",
    "with three ratios to p and more",
    "allowed laws of a grid",
    "closed forms",
];

fn frontier(finding: &mut Finding) {
    let mut family = Family::new(1701);
    let grid = grid();
    for index in 0..90 {
        let vocab = 2 + index % 3;
        let (sets, p) = (Sets::random(&mut family, vocab), family.row(vocab));
        if let Some(problem) = sets.problem(&p) {
            check_one(finding, &mut family, (&problem, &grid));
        }
    }
    for scheme in SchemeName::ALL {
        for problem in family.problems(scheme, 8, 4, 3) {
            check_one(finding, &mut family, (&problem, &[]));
        }
    }
    finding.enough(&KINDS, 20);
}

fn coin(finding: &mut Finding, [problem]: [Problem; 1]) {
    let (p, q) = (Rational::row(problem.target()), values(problem.scheme()));
    let always = even_base(&p, &demands(&q, &Rational::one()));
    let rows = p.iter().zip(&always);
    let coin: Vec<Rational> = rows.map(|(p, always)| (p + always) * half()).collect();
    let accepted = (optimum(&problem) + Rational::one()) * half();
    let best = even_base(&p, &demands(&q, &accepted));
    let variation = [&coin, &best].map(|law| excess(law, &p));
    let squares = [&coin, &best].map(|law| chi_square(law, &p).unwrap_or_default());
    finding.fraction("accepted by both", &accepted);
    finding.fraction("total variation of both", &variation[0]);
    finding.fraction("chi-square of the coin", &squares[0]);
    finding.fraction("least chi-square", &squares[1]);
    // What is compared has to be allowed; else nothing would be refuted.
    let same = accepts(&coin, &q) == accepted
        && accepts(&best, &q) == accepted
        && variation[0] == variation[1];
    let [of_coin, least] = &squares;
    finding.require(!same || of_coin <= least, || {
        format!("chi-square is {of_coin} by a coin, at least {least}")
    });
}

#[cfg(test)]
mod tests {
    use super::super::family::fraction;
    use super::*;

    /// One draft from (7, 5, 0)/12 and p uniform, by hand at beta = 5/6: 5/12 and 3/12 are
    /// demanded of the first two tokens, 10/12 of both.
    #[test]
    fn a_law_that_is_not_the_nearest_is_noticed() {
        let (p, third) = (vec![fraction("1/3"); 3], ["5/12", "5/12", "1/6"]);
        let q = ["0", "7/12", "5/12", "1", "0", "7/12", "5/12", "1"].map(fraction);
        let g = demands(&q, &fraction("5/6"));
        assert_eq!(
            g,
            ["0", "5/12", "1/4", "5/6", "0", "5/12", "1/4", "1"].map(fraction)
        );
        let best = third.map(fraction);
        assert_eq!(even_base(&p, &g), best);
        assert_eq!(along(&p, &g, &[0, 1, 2]), best);
        assert_eq!(uncertified(&best, &p, &g), None);
        let coin = ["11/24", "9/24", "4/24"].map(fraction);
        assert!(uncertified(&coin, &p, &g).unwrap().contains("more than"));
        assert!(nearer(&coin, &best, &p).is_some() && nearer(&best, &coin, &p).is_none());
        // p itself is not allowed, and without 1 at the end of the order a mass is missing.
        assert!(uncertified(&p, &p, &g).unwrap().contains("less than"));
        let mut open = g.clone();
        open[7] = fraction("5/6");
        assert_eq!(
            Rational::total(&along(&p, &open, &[0, 1, 2])),
            fraction("5/6")
        );
    }
}
