//! Claims about which laws have an order of the tokens that finds the optimum.

use super::Finding;
use super::claim::claims;
use super::family::{Family, describe, fractions, half, optimum, part, subsets};
use num_traits::Signed;
use specgap_core::optimum::{ratio_scan, thresholds};
use specgap_core::problem::Problem;
use specgap_core::scheme::{Composed, Composition, DraftScheme, Draws, Explicit, Product, Score};
use specgap_number::distribution::{Draft, Rational, Target, TupleProbabilities, format_rational};
use specgap_number::number::{Number, normalised};
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
    refuted "one-score-two-models" of two_models,
        in ["refuted/two-models-left.toml", "refuted/two-models-right.toml"]
        "drafts from two models can be sorted: some score made of a token's own p, q_1 and \
        q_2 puts a best set first",
        "a natural extension of the ratio scan",
        "Wrong: q_1 = (.1, .2, .7, 0), q_2 = (.2, .1, 0, .7), one draft each. With p = \
        (.15, .15, 0, .7) the only best set is {0, 2}, with p = (.15, .15, .7, 0) it is {1, 3}. \
        Tokens 0 and 1 have the same p, q_1 and q_2 in both, and change sides. Two thresholds \
        take the place of the order (linear-thresholds). For V = 3 no such pair was found.";
    refuted "any-race-sorts" of any_race,
        in ["refuted/race-not-proportional-early.toml", "refuted/race-not-proportional-late.toml"]
        "the first n of any independent clocks to ring can be sorted by some w/p",
        "a reading of the proof by exponential clocks",
        "Wrong where hazards keep no fixed ratio. Clock 0 rings at 1 (probability 1/4) \
        or 10, clock 1 at 0.9 (1/8), 3 (1/2) or 11, clock 2 at 0 or 2, clock 3 at 0.001 or 4 \
        (1/2 each), n = 2. One target asks for w_0/w_1 >= 2/3, another for w_0/w_1 <= 7/11. \
        Normal noise in place of Gumbel noise on the logits (perturb and take the top n) is \
        such a race.";
    refuted "two-temperatures-sort" of two_temperatures,
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
    refuted "distinct-beats-wr" of distinct_below_iid,
        in ["refuted/distinct-below-replacement-distinct.toml",
            "refuted/distinct-below-replacement-iid.toml"]
        "alpha* of i.i.d. drafts given that they differ is at least that of i.i.d. drafts",
        "a natural reading: what is drawn twice is of no use",
        "Wrong: q = (3/4, 1/8, 1/8), two drafts and a target on token 0 give 12/13 \
        against 15/16. The condition throws away draws of the heavy token alone. Sequential \
        draws, which draw again in its place, have 27/28, and are never worse than i.i.d. \
        ones (wo-beats-wr).";
    refuted "distinct-laws-ordered" of no_order,
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
    let members = (0..row.len()).filter(|&token| is_in(set, token));
    members.map(|token| &row[token]).sum()
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
    let mut tried = 0u64;
    while finding.counted(LAWS[0]) < 400 && tried < 20_000 {
        tried += 1;
        let _ = one_closure(finding, &mut family);
    }
    finding.enough(&LAWS[..1], 399);
    finding.enough(&LAWS, 9);
}

/// Kinds of laws that [`one_closure`] counts.
const LAWS: [&str; 5] = [
    "compositions of one score",
    "with forced tokens",
    "that may draft nothing",
    "of merged tokens",
    "with logarithms as scores",
];

/// Checks a random composition; `None` if it has not one score.
fn one_closure(finding: &mut Finding, family: &mut Family) -> Option<()> {
    let vocab = family.between(2, 5);
    let fine = vocab + family.below(2) * family.below(3);
    let row = vec![family.weights(fine)];
    let mut law = family.composition(fine, 3, 2, &row)?;
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
    let law = Composed::new(vocab, law).ok()?;
    let scores = law.scores().filter(|_| law.has_sort_theorem())?;
    let held = mask_of(scores.forced.iter().copied());
    let q = values(&law);
    let mut weights = match scores.distinct.first() {
        None => vec![Rational::zero(); vocab],
        Some(Score::Mass(draft)) => Rational::row(draft),
        // Logarithms: the scan alone is checked.
        Some(Score::Chance(_)) => Vec::new(),
    };
    let is_early = !law.nothing_exact().is_nil();
    let kinds = [true, held != 0, is_early, is_merged, weights.is_empty()];
    for (name, is_one) in LAWS.into_iter().zip(kinds) {
        finding.tally(name, is_one);
    }
    if !weights.is_empty() {
        let forced = (0..vocab).filter(|&token| is_in(held, token));
        forced.for_each(|token| weights[token] = Rational::zero());
        let violation = not_convex(vocab, &q, &weights, held);
        finding.require(violation.is_none(), || format!("{law:?}: {violation:?}"));
    }
    let empty = (0..q.len()).find(|mask| mask & held != held && !q[*mask].is_nil());
    finding.require(empty.is_none(), || {
        format!("{law:?}: forced, and {empty:?}")
    });
    let law: Arc<dyn DraftScheme> = Arc::new(law);
    for _ in 0..3 {
        let p = target(family.row(vocab))?;
        let problem = Problem::from_law("random", p, Arc::clone(&law)).ok()?;
        let scan = ratio_scan::solve(&problem);
        let scan = scan.as_ref().and_then(|found| found.rate.rational());
        finding.same(scan, Some(&optimum(&problem)), || {
            format!("{}, {law:?}", describe(&problem))
        });
    }
    Some(())
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
    let masses = law.weights.iter().map(|weight| {
        let moved = part(95 + family.below(11), 100);
        Rational::fraction(weight, &law.total) * moved
    });
    let masses = normalised(&masses.collect::<Vec<_>>())?;
    let sets = law.sets.iter().map(<[u32]>::to_vec).collect();
    let law = TupleProbabilities::from_rationals(masses).ok()?;
    Explicit::new(vocab, 2, sets, law).ok()
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
    let (vocab, laws) = (4, "laws of sets");
    while finding.counted(laws) < 150 {
        let law = match family.below(3) {
            0 => sets_law(&mut family, vocab),
            _ => moved_law(&mut family, vocab),
        };
        let Some(law) = law else { continue };
        let q = values(&law);
        finding.add(laws, 1);
        let score = weights_of(vocab, &q);
        finding.tally("with a score", score.is_some());
        finding.tally("without one", score.is_none());
        if let Some(weights) = &score {
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
        // Any weights that fail: the scan by them misses the optimum of some target.
        let weights = fractions(&family.positive_weights(vocab));
        let Some((mask, x, y)) = not_convex(vocab, &q, &weights, 0) else {
            continue;
        };
        let found = (1..60).find_map(|halvings| {
            let p = target_of_proof(vocab, &q, (mask, x, y), &part(1, 1u64 << halvings))?;
            let (least, masks) = minimisers(&p, &q);
            let apart = masks.iter().all(|&mask| is_in(mask, x) && !is_in(mask, y));
            let first = weights[y].times(&p[x]) > weights[x].times(&p[y]);
            (apart && first && scan(&p, &weights, &q) > least).then_some(())
        });
        finding.add("weights that miss an optimum", 1);
        finding.require(found.is_some(), || {
            format!("{law:?}, w = {weights:?}: not convex at {mask:b}, {x}, {y}, and never missed")
        });
    }
    finding.enough(&["with a score", "without one"], 9);
    finding.enough(&["weights that miss an optimum"], 49);
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
                _ => Draws::Stopped(part(1, 3)),
            },
        };
        let both = [part(family, 0), part(family, 1)];
        let composition = match family.below(3) {
            0 => Composition::Mixture(both.map(|part| (half(), part)).to_vec()),
            1 => Composition::Union(both.to_vec()),
            _ => {
                let [first, second] = both;
                let more = Composition::Union(vec![first.clone(), second]);
                Composition::Mixture(vec![(half(), first), (half(), more)])
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
                match is_in(mask, i) {
                    true => p[i] <= price,
                    false => p[i] >= price,
                }
            })
    };
    // The region lies in a quadrant, so that it has a corner if it holds anything.
    lines.iter().enumerate().any(|(k, [a, b, c])| {
        lines[..k].iter().any(|[d, e, f]| {
            let determinant = a * e - b * d;
            let corner = [c * e - b * f, a * f - c * d];
            !determinant.is_nil() && fits(corner.map(|side| side.over(&determinant)))
        })
    })
}

fn linear(finding: &mut Finding) {
    let mut family = Family::new(1503);
    while finding.counted("problems of two scores") < 300 {
        let _ = one_linear(finding, &mut family);
    }
}

/// Checks a random problem; `None` if it has not two scores.
fn one_linear(finding: &mut Finding, family: &mut Family) -> Option<()> {
    let problem = two_scores(family)?;
    let found = thresholds::solve(&problem).ok()?;
    let scores = problem.scheme().scores()?;
    let &[Score::Mass(first), Score::Mass(second)] = scores.distinct.as_slice() else {
        return None;
    };
    finding.add("problems of two scores", 1);
    let alpha = optimum(&problem);
    finding.same(found.rate.rational(), Some(&alpha), || describe(&problem));
    let (p, q) = (Rational::row(problem.target()), values(problem.scheme()));
    let held = mask_of(scores.forced.iter().copied());
    // Forced tokens are in anyway.
    let free: Vec<usize> = (0..p.len()).filter(|&i| !is_in(held, i)).collect();
    let only = |row: &[Rational]| free.iter().map(|&i| row[i].clone()).collect::<Vec<_>>();
    let w = [first, second].map(|row| only(&Rational::row(row)));
    let least = minimisers(&p, &q).1.into_iter();
    for mask in least.filter(|mask| mask & held == held) {
        finding.add("minimisers", 1);
        let places = 0..free.len();
        let inside = mask_of(places.filter(|&place| is_in(mask, free[place])));
        finding.require(has_thresholds(&only(&p), &w, inside), || {
            format!("{}: {mask:b} is no threshold set", describe(&problem))
        });
    }
    Some(())
}

fn children(finding: &mut Finding) {
    let mut family = Family::new(1504);
    let trees = "trees";
    while finding.counted(trees) < 120 {
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
        let part = |mask: usize, x: usize| mask >> (x * tokens) & ((1 << tokens) - 1);
        let value = |mask: usize| {
            let inside = chosen.iter().enumerate().map(|(drafted, chance)| {
                let parents = (0..parents).filter(|&x| is_in(drafted, x));
                chance
                    * parents
                        .map(|x| &laws[x][0][part(mask, x)])
                        .product::<Rational>()
            });
            mass(&p, mask) - inside.sum::<Rational>()
        };
        // Prefixes of the children of each parent; those with p = q = 0 do not matter.
        let mut sorted = vec![0usize];
        for (x, [_, q]) in laws.iter().enumerate() {
            let p = &p[x * tokens..];
            let mut order: Vec<usize> = (0..tokens).collect();
            order.retain(|&y| !(q[y].is_nil() && p[y].is_nil()));
            sort_by_ratio(&mut order, q, p);
            let prefixes = (0..=order.len()).map(|count| mask_of(order[..count].iter().copied()));
            let prefixes: Vec<usize> = prefixes.map(|prefix| prefix << (x * tokens)).collect();
            let longer = |&mask: &usize| prefixes.iter().map(move |prefix| mask | prefix);
            sorted = sorted.iter().flat_map(longer).collect();
        }
        let all = 0..1usize << (parents * tokens);
        let least = all.map(value).min().unwrap_or_default();
        let best = sorted.into_iter().map(value).min().unwrap_or_default();
        finding.add(trees, 1);
        let name = "of them with a parent for sure and alpha* below 1";
        finding.tally(name, least.is_negative() && chosen[0].is_nil());
        finding.same(best, least, || format!("p = {p:?}, parents {chosen:?}"));
    }
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
    problems: &[Problem; 2],
    [x, y]: [usize; 2],
    [product, at_least, at_most]: [&'static str; 3],
) {
    let q = values(problems[0].scheme());
    let vocab = problems[0].vocab();
    let both = quotient(vocab, &q, x, y).zip(quotient(vocab, &q, y, x));
    let Some([least, most]) = asked(problems, [x, y]) else {
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

fn any_race(finding: &mut Finding, problems: [Problem; 2]) {
    contradict(finding, &problems, [0, 1], ASKED);
}

fn two_temperatures(finding: &mut Finding, [light, heavy, s_light, s_heavy]: [Problem; 4]) {
    contradict(finding, &[light, heavy], [2, 3], ASKED);
    let mut sequential = Finding::default();
    let names = [
        "sequentially, c(x,y) c(y,x)",
        "sequentially, w_x/w_y at least",
        "sequentially, and at most",
    ];
    contradict(&mut sequential, &[s_light, s_heavy], [2, 3], names);
    finding.evidence.extend(sequential.evidence);
    // Both ways of drawing have to refute it.
    if sequential.violation.is_none() {
        finding.violation = None;
    }
}

fn two_models(finding: &mut Finding, problems: [Problem; 2]) {
    let rows = problems
        .each_ref()
        .map(|problem| Rational::row(problem.target()));
    let same = rows[0][..2] == rows[1][..2];
    let asked = asked(&problems, [0, 1]);
    for (name, problem) in ["best set left", "best set right"]
        .into_iter()
        .zip(&problems)
    {
        let best = only_minimiser(problem).map_or(String::new(), |mask| {
            let members: Vec<usize> = (0..4).filter(|&i| is_in(mask, i)).collect();
            format!("{members:?}")
        });
        finding.text(name, best);
    }
    finding.optimum("alpha*", &problems[0]);
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

fn distinct_below_iid(finding: &mut Finding, [distinct, iid]: [Problem; 2]) {
    let distinct = finding.optimum("alpha* given that drafts differ", &distinct);
    let iid = finding.optimum("alpha* with replacement", &iid);
    finding.require(distinct >= iid, || {
        let [distinct, iid] = [distinct, iid].map(|value| format_rational(&value));
        format!("{distinct} given that drafts differ, {iid} with replacement")
    });
}

fn no_order(finding: &mut Finding, [t, e, s, d]: [Problem; 4]) {
    let s = finding.optimum("sequential, heavy token", &s);
    let d = finding.optimum("distinct, heavy token", &d);
    let t = finding.optimum("sequential, light token", &t);
    let e = finding.optimum("distinct, light token", &e);
    finding.require(!(s > d && t < e), || {
        "sequential draws are better for one target, distinct ones for another".to_owned()
    });
}
