//! Claims about which laws have an order of the tokens that finds the optimum.

use super::Finding;
use super::claim::{claims, problem};
use super::family::{Family, describe, fractions, optimum, shipped_optima, subsets};
use num_traits::Signed;
use specgap_core::optimum::{ratio_scan, thresholds};
use specgap_core::problem::Problem;
use specgap_core::scheme::{
    Composed, Composition, DraftScheme, Draws, Explicit, Product, Score, SetFamily,
};
use specgap_number::distribution::{Draft, Rational, Target, TupleProbabilities, format_rational};
use specgap_number::number::Number;
use std::sync::Arc;

claims! {
    holds "closure" by closure,
        "what is composed of parts that are convex in one score w by mixing, independent \
        union, forced tokens, conditioning on avoiding tokens and merging of tokens is convex \
        in w, and sorting by w/p finds its optimum; so are races that an independent clock \
        stops, and Poisson sampling, whose score is -log(1 - chance)",
        "ours (docs/theory/laws.md, Theorems 1 and 2)",
        "The definition for every H and every pair of further tokens, and the scan \
        against the flow, in fractions, on random compositions. Proof: the inequality is linear \
        in Q, which covers mixtures. The growth of Q_1 Q_2 is Q_1(H+y) dQ_2 + dQ_1 Q_2(H) \
        upwards and Q_1(H) dQ_2 + dQ_1 Q_2(H-x) downwards, term by term no less. Conditioning \
        and forcing restrict the sets that are compared. The mean growth over a merged block \
        lies between those of its first and last token. Stopped races: the proof of sequential \
        draws with every time cut off at the stop.";
    holds "score-converse" by converse,
        "for weights w > 0 the best prefix of the order by w/p is optimal for every target \
        p if and only if Q is w-convex; and weights that serve exist if and only if no cycle of \
        tokens has a product of c(x, y) above 1, c being the largest quotient of the slopes \
        at x before and at y after",
        "ours (docs/theory/laws.md, Theorem 3)",
        "Random laws of sets of four tokens, in fractions. Where the cycle condition \
        holds, the weights that it gives are checked against the definition, and their scan \
        against the optimum for random targets. Where given weights fail the definition, the \
        target of the proof is built, and the scan misses its optimum. Proof: Q is \
        supermodular, so the growths of Q along an order that begins with y, and back along one \
        that begins with x, make a target for which x is in every best set and y in none, \
        while w/p puts y strictly first. Weights exist if the constraints on differences of \
        log w have no negative cycle.";
    holds "linear-thresholds" by linear,
        "let Q be a sum of products of functions that are convex in one of m scores w^j \
        each: every minimiser of P - Q is { p < sum of l_j w^j } for some l >= 0, tokens with \
        equality on either side; so drafts from two models take at most 2 V^2 sets",
        "ours (docs/theory/laws.md, Theorem 4)",
        "Every minimiser of random problems with two scores (drafts from two models, \
        groups, mixtures, stopped races) among all 2^V subsets, and whether such an l exists, \
        by the corners of its polygon; and the optimum by the cells of the plane against the \
        flow; in fractions. Proof: take l_j as a number between the slopes of Q_j at H \
        downwards and upwards, times the other factors, and telescope.";
    holds "children-sorted" by children,
        "the children of a tree's nodes at its last level, drawn by q-convex laws from \
        q(.|x) for each drafted parent x whatever the law of the parents: in some best set, \
        the children of each parent are a prefix of the order by q(y|x)/p(y|x)",
        "ours (docs/theory/laws.md, section 6)",
        "Random laws of up to three parents, i.i.d., sequential and distinct children, \
        in fractions: the least P - Q over all sets of (parent, child) pairs against the least \
        over prefixes. Proof: Q is affine in each Q_x(H_x) with a slope of at least 0, so that \
        for fixed children of the other parents Theorem 1 applies to the children of x.";
    refuted "one-score-two-models" by two_models,
        in ["refuted/two-models-left.toml", "refuted/two-models-right.toml"]
        "drafts from two models can be sorted: some score made of a token's own p, q_1 and \
        q_2 puts a best set first",
        "a natural extension of the ratio scan",
        "Wrong: q_1 = (.1, .2, .7, 0), q_2 = (.2, .1, 0, .7), one draft each. With p = \
        (.15, .15, 0, .7) the only best set is {0, 2}, with p = (.15, .15, .7, 0) it is {1, 3}. \
        Tokens 0 and 1 have the same p, q_1 and q_2 in both, and change sides. Two thresholds \
        take the place of the order (linear-thresholds). For V = 3 no such pair was found.";
    refuted "any-race-sorts" by any_race,
        in ["refuted/race-not-proportional-early.toml", "refuted/race-not-proportional-late.toml"]
        "the first n of any independent clocks to ring can be sorted by some w/p",
        "a reading of the proof by exponential clocks",
        "Wrong where hazards keep no fixed ratio. Clock 0 rings at 1 (probability 1/4) \
        or 10, clock 1 at 0.9 (1/8), 3 (1/2) or 11, clock 2 at 0 or 2, clock 3 at 0.001 or 4 \
        (1/2 each), n = 2. One target asks for w_0/w_1 >= 2/3, another for w_0/w_1 <= 7/11. \
        Normal noise in place of Gumbel noise on the logits (perturb and take the top n) is \
        such a race.";
    refuted "two-temperatures-sort" by two_temperatures,
        in ["refuted/two-temperatures-light.toml",
            "refuted/two-temperatures-heavy.toml",
            "refuted/two-temperatures-sequential-light.toml",
            "refuted/two-temperatures-sequential-heavy.toml"]
        "drafts of one model at two temperatures can be sorted by some w/p, since one \
        temperature orders the tokens as the other does",
        "a natural reading of the ratio scan",
        "Wrong, drawn independently or one after the other. Independently: q ~ (50, 8, 6, \
        1) and its squares, where one target asks for w_2/w_3 >= 52/7 and another for at most \
        51/7. Sequentially, q ~ (50, 6, 4, 1) first and then its squares without the first: \
        w_2/w_3 >= 15/2 and at most 172/23. Draw all drafts at one temperature, or search two \
        thresholds.";
    refuted "distinct-beats-wr" by distinct_below_iid,
        in ["refuted/distinct-below-replacement-distinct.toml",
            "refuted/distinct-below-replacement-iid.toml"]
        "alpha* of i.i.d. drafts given that they differ is at least that of i.i.d. drafts",
        "a natural reading: what is drawn twice is of no use",
        "Wrong: q = (3/4, 1/8, 1/8), two drafts and a target on token 0 give 12/13 \
        against 15/16. The condition throws away draws of the heavy token alone. Sequential \
        draws, which draw again in its place, have 27/28, and are never worse than i.i.d. \
        ones (wo-beats-wr).";
    refuted "distinct-laws-ordered" by no_order,
        in ["refuted/sequential-below-distinct-sequential.toml",
            "refuted/sequential-below-distinct-distinct.toml",
            "without-replacement/half-token-sequential.toml",
            "without-replacement/half-token-conditioned.toml"]
        "of the two laws of distinct drafts one has the larger alpha* on every problem with \
        the same p, q and n",
        "a natural reading of the comparison in Hu et al., sec. 5",
        "Wrong, and for every q that gives the two laws different chances P(i in X): a \
        target on i alone has alpha* = P(i in X), and these chances add up to n under either \
        law. With q = (1/2, 1/4, 1/4), n = 2 a target on token 1 has 7/12 sequentially and 3/5 \
        given that drafts differ; on token 0 it is 5/6 against 4/5.";
}

/// Q of all subsets, by mask.
pub(super) fn values(scheme: &dyn DraftScheme) -> Vec<Rational> {
    subsets(scheme.vocab())
        .map(|subset| scheme.inside_exact(&subset))
        .collect()
}

pub(super) fn is_in(mask: usize, token: usize) -> bool {
    mask >> token & 1 == 1
}

/// The set of some tokens, by mask.
pub(super) fn mask_of(tokens: impl IntoIterator<Item = usize>) -> usize {
    tokens.into_iter().fold(0, |set, token| set | 1 << token)
}

/// The mass of a set.
pub(super) fn mass(row: &[Rational], set: usize) -> Rational {
    let members = row.iter().enumerate();
    Rational::total(
        members
            .filter(|(token, _)| is_in(set, *token))
            .map(|(_, mass)| mass),
    )
}

/// The first (H, x, y) with x in H and y not at which Q is not w-convex: the growth by y on top of
/// H, over w(y), is below that by x to H, over w(x).
pub(super) fn not_convex(
    vocab: usize,
    q: &[Rational],
    weights: &[Rational],
    held: usize,
) -> Option<(usize, usize, usize)> {
    for mask in (0..q.len()).filter(|mask| mask & held == held) {
        for x in (0..vocab).filter(|&x| is_in(mask, x) && !is_in(held, x)) {
            let before = &q[mask] - &q[mask ^ 1 << x];
            if weights[x].is_nil() {
                if !before.is_nil() {
                    return Some((mask, x, x));
                }
                continue;
            }
            for y in (0..vocab).filter(|&y| !is_in(mask, y)) {
                let after = &q[mask | 1 << y] - &q[mask];
                if &after * &weights[x] < &before * &weights[y] {
                    return Some((mask, x, y));
                }
            }
        }
    }
    None
}

/// Least P - Q, and the masks that have it.
pub(super) fn minimisers(p: &[Rational], q: &[Rational]) -> (Rational, Vec<usize>) {
    let mut least: Option<Rational> = None;
    let mut masks = Vec::new();
    for (held, inside) in q.iter().enumerate() {
        let value = mass(p, held) - inside;
        match &least {
            Some(known) if value > *known => continue,
            Some(known) if value == *known => {}
            _ => masks.clear(),
        }
        masks.push(held);
        least = Some(value);
    }
    (least.unwrap_or_default(), masks)
}

fn target(row: Vec<Rational>) -> Option<Target> {
    Target::from_rationals(row).ok()
}

fn closure(finding: &mut Finding) {
    let mut family = Family::new(1501);
    let (mut laws, mut chances, mut forced, mut early, mut merged) = (0u64, 0u64, 0u64, 0u64, 0u64);
    let mut tried = 0u64;
    while laws < 400 && tried < 20_000 {
        tried += 1;
        let vocab = family.between(2, 5);
        let fine = vocab + family.below(2) * family.below(3);
        let row = vec![family.weights(fine)];
        let Some(mut law) = family.composition(fine, 3, 2, &row) else {
            continue;
        };
        let is_merged = fine > vocab;
        if is_merged {
            let into = (0..fine).map(|token| match token < vocab {
                true => token,
                false => family.below(vocab),
            });
            law = Composition::Merged {
                into: into.collect(),
                law: Box::new(law),
            };
        }
        let Ok(law) = Composed::new(vocab, law) else {
            continue;
        };
        if !law.has_sort_theorem() {
            continue;
        }
        let Some(scores) = law.scores() else { continue };
        let held = mask_of(scores.forced.iter().copied());
        let q = values(&law);
        let weights = match scores.distinct.first() {
            None => vec![Rational::zero(); vocab],
            Some(Score::Mass(draft)) => Rational::row(draft),
            // Logarithms: the scan alone is checked.
            Some(Score::Chance(_)) => Vec::new(),
        };
        laws += 1;
        forced += u64::from(held != 0);
        early += u64::from(!law.nothing_exact().is_nil());
        merged += u64::from(is_merged);
        chances += u64::from(weights.is_empty());
        let free: Vec<Rational> = (weights.iter().enumerate())
            .map(|(token, weight)| match is_in(held, token) {
                true => Rational::zero(),
                false => weight.clone(),
            })
            .collect();
        if !weights.is_empty() {
            let violation = not_convex(vocab, &q, &free, held);
            finding.require(violation.is_none(), || format!("{law:?}: {violation:?}"));
        }
        let empty = (0..q.len()).find(|mask| mask & held != held && !q[*mask].is_nil());
        finding.require(empty.is_none(), || {
            format!("{law:?}: forced, and {empty:?}")
        });
        let law: Arc<dyn DraftScheme> = Arc::new(law);
        for _ in 0..3 {
            let Some(p) = target(family.row(vocab)) else {
                continue;
            };
            let Ok(problem) = Problem::from_law("random", p, Arc::clone(&law)) else {
                continue;
            };
            let scan = ratio_scan::solve(&problem);
            let scan = scan.as_ref().and_then(|found| found.rate.rational());
            finding.same(scan, Some(&optimum(&problem)), || {
                format!("{}, {law:?}", describe(&problem))
            });
        }
    }
    finding.count("compositions of one score", laws);
    finding.count("with forced tokens", forced);
    finding.count("that may draft nothing", early);
    finding.count("of merged tokens", merged);
    finding.count("with logarithms as scores", chances);
    let enough = laws == 400 && [forced, early, merged, chances].iter().all(|&n| n >= 10);
    finding.enough(enough, "laws of some kind");
}

/// A random law of sets of four tokens, each drawn by at most one of a few tuples.
fn sets_law(family: &mut Family, vocab: usize) -> Option<Explicit> {
    let drafts = family.between(2, 3);
    let sets = subsets(vocab).filter(|set| set.len() == drafts);
    let ids = |set: Vec<usize>| set.into_iter().map(|x| x as u32).collect();
    let tuples: Vec<Vec<u32>> = sets.map(ids).collect();
    let law = TupleProbabilities::from_rationals(family.row(tuples.len())).ok()?;
    Explicit::new(vocab, drafts, tuples, law).ok()
}

/// Q of a near-sequential law: the sets of sequential draws, with their chances moved a little.
fn moved_law(family: &mut Family, vocab: usize) -> Option<Explicit> {
    let row = Draft::from_rationals(fractions(&family.positive_weights(vocab))).ok()?;
    let law = specgap_core::scheme::WithoutReplacement::new(row, 2).exact_set_law();
    let whole = |weight: &num_bigint::BigUint| Rational::fraction(weight, &law.total);
    let masses = law.weights.iter().map(|weight| {
        let part = Rational::new((95 + family.below(11)).into(), 100.into());
        whole(weight).times(&part)
    });
    let masses: Vec<Rational> = masses.collect();
    let total = Rational::total(&masses);
    let masses = masses.iter().map(|mass| mass.over(&total)).collect();
    let listed = |sets: &SetFamily| sets.iter().map(<[u32]>::to_vec).collect();
    let law_of = TupleProbabilities::from_rationals(masses).ok()?;
    Explicit::new(vocab, 2, listed(&law.sets), law_of).ok()
}

/// c(x, y), or `None` for infinity.
fn quotient(vocab: usize, q: &[Rational], x: usize, y: usize) -> Option<Rational> {
    let mut largest = Rational::zero();
    for mask in (0..1usize << vocab).filter(|&mask| is_in(mask, x) && !is_in(mask, y)) {
        let before = &q[mask] - &q[mask ^ 1 << x];
        let after = &q[mask | 1 << y] - &q[mask];
        if before.is_nil() {
            continue;
        }
        if after.is_nil() {
            return None;
        }
        largest = largest.max(before.over(&after));
    }
    Some(largest)
}

/// Weights that Q is convex in, if no cycle forbids them: the largest products along paths.
fn weights_of(vocab: usize, q: &[Rational]) -> Option<Vec<Rational>> {
    let mut best: Vec<Vec<Rational>> = Vec::new();
    for x in 0..vocab {
        let row = (0..vocab).map(|y| match x == y {
            true => Some(Rational::one()),
            false => quotient(vocab, q, x, y),
        });
        best.push(row.collect::<Option<_>>()?);
    }
    for middle in 0..vocab {
        for x in 0..vocab {
            for y in 0..vocab {
                let way = best[x][middle].times(&best[middle][y]);
                if way > best[x][y] {
                    best[x][y] = way;
                }
            }
        }
        if (0..vocab).any(|x| best[x][x] > Rational::one()) {
            return None;
        }
    }
    // w_x >= c(x, y) w_y for all pairs.
    let weights = (0..vocab).map(|x| {
        let ways = (0..vocab).map(|y| best[x][y].clone());
        ways.max().unwrap_or_else(Rational::one)
    });
    Some(weights.collect())
}

/// The target of the proof: x is in every best set and y in none, p_x and p_y being off the
/// slopes by `delta`.
fn target_of_proof(
    vocab: usize,
    q: &[Rational],
    (mask, x, y): (usize, usize, usize),
    delta: &Rational,
) -> Option<Vec<Rational>> {
    let mut p = vec![Rational::zero(); vocab];
    let mut held = mask;
    let outside = (0..vocab).filter(|&token| token != y && !is_in(mask, token));
    for token in [y].into_iter().chain(outside) {
        p[token] = &q[held | 1 << token] - &q[held];
        held |= 1 << token;
    }
    held = mask;
    let inside = (0..vocab).filter(|&token| token != x && is_in(mask, token));
    for token in [x].into_iter().chain(inside) {
        p[token] = &q[held] - &q[held ^ 1 << token];
        held ^= 1 << token;
    }
    p[y] += delta;
    p[x] -= delta;
    (!p[x].is_negative()).then_some(p)
}

fn converse(finding: &mut Finding) {
    let mut family = Family::new(1502);
    let (vocab, mut laws) = (4, 0u64);
    let (mut scored, mut without, mut missed) = (0u64, 0u64, 0u64);
    while laws < 150 {
        let law = if family.below(3) == 0 {
            sets_law(&mut family, vocab)
        } else {
            moved_law(&mut family, vocab)
        };
        let Some(law) = law else { continue };
        let q = values(&law);
        laws += 1;
        let score = weights_of(vocab, &q);
        if let Some(weights) = &score {
            scored += 1;
            finding.require(not_convex(vocab, &q, weights, 0).is_none(), || {
                format!("{law:?}: weights {weights:?} are no score")
            });
            for _ in 0..20 {
                let p = family.row(vocab);
                let (least, _) = minimisers(&p, &q);
                let scanned = scan(&p, weights, &q);
                finding.same(scanned, least, || format!("{law:?}, p = {p:?}"));
            }
        }
        without += u64::from(score.is_none());
        // Any weights that fail: the scan by them misses the optimum of some target.
        let weights = fractions(&family.positive_weights(vocab));
        let Some((mask, x, y)) = not_convex(vocab, &q, &weights, 0) else {
            continue;
        };
        let found = (1..60).find_map(|halvings| {
            let delta = Rational::new(1.into(), num_bigint::BigInt::from(1u64 << halvings));
            let p = target_of_proof(vocab, &q, (mask, x, y), &delta)?;
            let (least, masks) = minimisers(&p, &q);
            let apart = masks.iter().all(|&mask| is_in(mask, x) && !is_in(mask, y));
            let first = weights[y].times(&p[x]) > weights[x].times(&p[y]);
            (apart && first && scan(&p, &weights, &q) > least).then_some(())
        });
        missed += 1;
        finding.require(found.is_some(), || {
            format!("{law:?}, w = {weights:?}: not convex at {mask:b}, {x}, {y}, and never missed")
        });
    }
    finding.count("laws of sets", laws);
    finding.count("with a score", scored);
    finding.count("without one", without);
    finding.count("weights that miss an optimum", missed);
    finding.enough(
        scored >= 10 && without >= 10 && missed >= 50,
        "laws of some kind",
    );
}

/// Sorts by falling w/p.
fn sort_by_ratio(tokens: &mut [usize], weights: &[Rational], p: &[Rational]) {
    tokens.sort_by(|&a, &b| {
        let (left, right) = (weights[a].times(&p[b]), weights[b].times(&p[a]));
        right.cmp(&left)
    });
}

/// The least P - Q over prefixes of the order by w/p, w > 0.
fn scan(p: &[Rational], weights: &[Rational], q: &[Rational]) -> Rational {
    let mut order: Vec<usize> = (0..p.len()).collect();
    sort_by_ratio(&mut order, weights, p);
    let (mut mask, mut held) = (0, Rational::zero());
    let mut least = -q[0].clone();
    for token in order {
        mask |= 1 << token;
        held += &p[token];
        least = least.min(&held - &q[mask]);
    }
    least
}

/// A problem of two scores at most, of one of several kinds.
fn two_scores(family: &mut Family) -> Option<Problem> {
    let vocab = family.between(2, 5);
    let rows = family.rows(vocab).into_iter();
    let p = target(family.row(vocab))?;
    let drafts: Vec<Draft> = rows.flat_map(Draft::from_rationals).collect();
    let law: Arc<dyn DraftScheme> = if family.below(3) == 0 {
        let models = (0..family.between(2, 4)).map(|k| drafts[k % 2].clone());
        Arc::new(Product::new(models.collect())?)
    } else {
        let part = |family: &mut Family, row: usize| Composition::Draws {
            draft: drafts[row].clone(),
            count: family.between(1, 2.min(vocab)),
            how: match family.below(4) {
                0 => Draws::Independent,
                1 => Draws::Distinct,
                2 => Draws::Sequential,
                _ => Draws::Stopped(Rational::new(1.into(), 3.into())),
            },
        };
        let both = [part(family, 0), part(family, 1)];
        let weight = || Rational::new(1.into(), 2.into());
        let composition = match family.below(3) {
            0 => Composition::Mixture(both.map(|part| (weight(), part)).to_vec()),
            1 => Composition::Union(both.to_vec()),
            _ => {
                let [first, second] = both;
                let more = Composition::Union(vec![first.clone(), second]);
                Composition::Mixture(vec![(weight(), first), (weight(), more)])
            }
        };
        Arc::new(Composed::new(vocab, composition).ok()?)
    };
    Problem::from_law("random", p, law).ok()
}

/// Tells whether some l >= 0 has p <= l.w in the set and p >= l.w outside.
fn has_thresholds(p: &[Rational], w: &[Vec<Rational>; 2], mask: usize) -> bool {
    let zero = Rational::zero;
    // Lines a l_1 + b l_2 = c: of the tokens, and the axes.
    let mut lines: Vec<[Rational; 3]> = (0..p.len())
        .map(|i| [w[0][i].clone(), w[1][i].clone(), p[i].clone()])
        .collect();
    lines.push([Rational::one(), zero(), zero()]);
    lines.push([zero(), Rational::one(), zero()]);
    let fits = |l: [Rational; 2]| {
        l.iter().all(|l| !l.is_negative())
            && (0..p.len()).all(|i| {
                let price = l[0].times(&w[0][i]) + l[1].times(&w[1][i]);
                if is_in(mask, i) {
                    p[i] <= price
                } else {
                    p[i] >= price
                }
            })
    };
    // The region lies in a quadrant, so that it has a corner if it holds anything.
    lines.iter().enumerate().any(|(k, [a, b, c])| {
        lines[..k].iter().any(|[d, e, f]| {
            let determinant = a * e - b * d;
            if determinant.is_nil() {
                return false;
            }
            fits([
                (c * e - b * f).over(&determinant),
                (a * f - c * d).over(&determinant),
            ])
        })
    })
}

fn linear(finding: &mut Finding) {
    let mut family = Family::new(1503);
    let (mut problems, mut sets) = (0u64, 0u64);
    while problems < 300 {
        let Some(problem) = two_scores(&mut family) else {
            continue;
        };
        let Ok(found) = thresholds::solve(&problem) else {
            continue;
        };
        let Some(scores) = problem.scheme().scores() else {
            continue;
        };
        let &[Score::Mass(first), Score::Mass(second)] = scores.distinct.as_slice() else {
            continue;
        };
        problems += 1;
        let alpha = optimum(&problem);
        finding.same(found.rate.rational(), Some(&alpha), || describe(&problem));
        let (p, w) = (
            Rational::row(problem.target()),
            [first, second].map(|row| Rational::row(row)),
        );
        let q = values(problem.scheme());
        let held = mask_of(scores.forced.iter().copied());
        for mask in minimisers(&p, &q).1 {
            if mask & held != held {
                continue;
            }
            sets += 1;
            // Forced tokens are in anyway.
            let free: Vec<usize> = (0..p.len()).filter(|&i| !is_in(held, i)).collect();
            let only = |row: &[Rational]| free.iter().map(|&i| row[i].clone()).collect::<Vec<_>>();
            let places = 0..free.len();
            let inside = mask_of(places.filter(|&place| is_in(mask, free[place])));
            let w = [only(&w[0]), only(&w[1])];
            finding.require(has_thresholds(&only(&p), &w, inside), || {
                format!("{}: {mask:b} is no threshold set", describe(&problem))
            });
        }
    }
    finding.count("problems of two scores", problems);
    finding.count("minimisers", sets);
}

fn children(finding: &mut Finding) {
    let mut family = Family::new(1504);
    let (mut trees, mut better) = (0u64, 0u64);
    while trees < 120 {
        let (parents, tokens) = (family.between(2, 3), family.between(2, 3));
        // Chances of the sets of drafted parents, by mask.
        let chosen = family.row(1 << parents);
        let p = family.row(parents * tokens);
        let laws: Option<Vec<[Vec<Rational>; 2]>> = (0..parents)
            .map(|_| {
                let row = family.row(tokens);
                let draft = Draft::from_rationals(row.clone()).ok()?;
                let count = family.between(1, 2);
                let how = match family.below(3) {
                    0 => Draws::Independent,
                    1 => Draws::Sequential,
                    _ => Draws::Distinct,
                };
                let law = Composition::Draws { draft, count, how };
                Some([values(&Composed::new(tokens, law).ok()?), row])
            })
            .collect();
        let Some(laws) = laws else { continue };
        trees += 1;
        let part = |mask: usize, x: usize| mask >> (x * tokens) & ((1 << tokens) - 1);
        let value = |mask: usize| {
            let held = (0..parents * tokens).filter(|&pair| is_in(mask, pair));
            let mut difference = Rational::total(held.map(|pair| &p[pair]));
            for (drafted, chance) in chosen.iter().enumerate() {
                let mut inside = chance.clone();
                for x in (0..parents).filter(|&x| is_in(drafted, x)) {
                    inside = inside.times(&laws[x][0][part(mask, x)]);
                }
                difference -= inside;
            }
            difference
        };
        // Prefixes of the children of each parent; those with p = q = 0 do not matter.
        let prefixes: Vec<Vec<usize>> = (0..parents)
            .map(|x| {
                let (p, q) = (&p[x * tokens..], &laws[x][1]);
                let mut order: Vec<usize> = (0..tokens).collect();
                order.retain(|&y| !(q[y].is_nil() && p[y].is_nil()));
                sort_by_ratio(&mut order, q, p);
                let mut mask = 0;
                let grown = order.into_iter().map(|y| {
                    mask |= 1 << y;
                    mask
                });
                [0].into_iter().chain(grown).collect()
            })
            .collect();
        let least = (0..1usize << (parents * tokens))
            .map(value)
            .min()
            .unwrap_or_default();
        let mut sorted = vec![0usize];
        for (x, prefixes) in prefixes.iter().enumerate() {
            let longer = |&mask: &usize| {
                prefixes
                    .iter()
                    .map(move |prefix| mask | prefix << (x * tokens))
            };
            sorted = sorted.iter().flat_map(longer).collect();
        }
        let best = sorted.into_iter().map(value).min().unwrap_or_default();
        better += u64::from(least.is_negative() && chosen[0].is_nil());
        finding.same(best, least, || format!("p = {p:?}, parents {chosen:?}"));
    }
    finding.count("trees", trees);
    finding.count("of them with a parent for sure and alpha* below 1", better);
}

/// A problem's only minimiser, as a mask.
fn only_minimiser(problem: &Problem) -> Option<usize> {
    let p = Rational::row(problem.target());
    match minimisers(&p, &values(problem.scheme())).1.as_slice() {
        &[mask] => Some(mask),
        _ => None,
    }
}

/// Two targets of one law whose only minimisers ask for both orders of two tokens, if they do:
/// the least and the largest quotient of their weights.
fn asked(problems: &[Problem; 2], [x, y]: [usize; 2]) -> Option<[Rational; 2]> {
    let [first, second] = problems;
    if values(first.scheme()) != values(second.scheme()) {
        return None;
    }
    let (one, other) = (only_minimiser(first)?, only_minimiser(second)?);
    let sides = is_in(one, x) && !is_in(one, y) && is_in(other, y) && !is_in(other, x);
    let quotient = |problem: &Problem| {
        let p = Rational::row(problem.target());
        (!p[y].is_nil()).then(|| p[x].over(&p[y]))
    };
    sides.then_some([quotient(first)?, quotient(second)?])
}

fn contradict(
    finding: &mut Finding,
    texts: [&str; 2],
    [x, y]: [usize; 2],
    [product, at_least, at_most]: [&'static str; 3],
) {
    let Some(problems) = finding.shipped(texts) else {
        return;
    };
    let q = values(problems[0].scheme());
    let vocab = problems[0].vocab();
    let both = quotient(vocab, &q, x, y).zip(quotient(vocab, &q, y, x));
    let Some([least, most]) = asked(&problems, [x, y]) else {
        return;
    };
    if let Some((there, back)) = both {
        finding.fraction(product, &there.times(&back));
    }
    finding.fraction(at_least, &least);
    finding.fraction(at_most, &most);
    finding.require(least <= most, || {
        let [least, most] = [least, most].map(|value| format_rational(&value));
        format!(
            "{} asks for w_{x}/w_{y} >= {least}, {} for at most {most}",
            problems[0].name(),
            problems[1].name()
        )
    });
}

/// What two targets ask of the weights, as evidence.
const ASKED: [&str; 3] = ["c(x,y) c(y,x)", "w_x/w_y at least", "and at most"];

fn any_race(finding: &mut Finding) {
    let files = [
        problem!("refuted/race-not-proportional-early"),
        problem!("refuted/race-not-proportional-late"),
    ];
    contradict(finding, files, [0, 1], ASKED);
}

fn two_temperatures(finding: &mut Finding) {
    let files = [
        problem!("refuted/two-temperatures-light"),
        problem!("refuted/two-temperatures-heavy"),
    ];
    contradict(finding, files, [2, 3], ASKED);
    let mut sequential = Finding::default();
    let files = [
        problem!("refuted/two-temperatures-sequential-light"),
        problem!("refuted/two-temperatures-sequential-heavy"),
    ];
    let names = [
        "sequentially, c(x,y) c(y,x)",
        "sequentially, w_x/w_y at least",
        "sequentially, and at most",
    ];
    contradict(&mut sequential, files, [2, 3], names);
    finding.evidence.extend(sequential.evidence);
    // Both ways of drawing have to refute it.
    if sequential.violation.is_none() {
        finding.violation = None;
    }
}

fn two_models(finding: &mut Finding) {
    let texts = [
        problem!("refuted/two-models-left"),
        problem!("refuted/two-models-right"),
    ];
    let Some(problems) = finding.shipped(texts) else {
        return;
    };
    let same = (0..2).all(|token| {
        let p = |problem: &Problem| problem.target().exact().probability(token);
        p(&problems[0]) == p(&problems[1])
    });
    let asked = asked(&problems, [0, 1]);
    for (name, problem) in [
        ("best set left", &problems[0]),
        ("best set right", &problems[1]),
    ] {
        let best = only_minimiser(problem).map_or(String::new(), |mask| {
            format!(
                "{:?}",
                (0..4).filter(|&i| is_in(mask, i)).collect::<Vec<_>>()
            )
        });
        finding.text(name, best);
    }
    finding.fraction("alpha*", &optimum(&problems[0]));
    finding.require(!(same && asked.is_some()), || {
        "tokens 0 and 1 keep their p, q_1 and q_2, and change sides".to_owned()
    });
    // Both by two thresholds.
    for problem in &problems {
        let found = thresholds::solve(problem).ok();
        let exact = found.and_then(|found| found.rate.rational().cloned());
        if exact != Some(optimum(problem)) {
            finding.text("thresholds", "miss the optimum");
        }
    }
}

fn distinct_below_iid(finding: &mut Finding) {
    let texts = [
        problem!("refuted/distinct-below-replacement-distinct"),
        problem!("refuted/distinct-below-replacement-iid"),
    ];
    let names = ["alpha* given that drafts differ", "alpha* with replacement"];
    if let Some([(_, distinct), (_, iid)]) = shipped_optima(finding, texts, names) {
        finding.require(distinct >= iid, || {
            let [distinct, iid] = [distinct, iid].map(|value| format_rational(&value));
            format!("{distinct} given that drafts differ, {iid} with replacement")
        });
    }
}

fn no_order(finding: &mut Finding) {
    let texts = [
        problem!("without-replacement/half-token-sequential"),
        problem!("without-replacement/half-token-conditioned"),
        problem!("refuted/sequential-below-distinct-sequential"),
        problem!("refuted/sequential-below-distinct-distinct"),
    ];
    let names = [
        "sequential, heavy token",
        "distinct, heavy token",
        "sequential, light token",
        "distinct, light token",
    ];
    if let Some([(_, s), (_, d), (_, t), (_, e)]) = shipped_optima(finding, texts, names) {
        finding.require(!(s > d && t < e), || {
            "sequential draws are better for one target, distinct ones for another".to_owned()
        });
    }
}
