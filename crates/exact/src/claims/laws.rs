//! Claims about the laws of the drafts and their Q.

use super::Finding;
use super::claim::claims;
use super::family::{
    Family, describe, each, fractions, optimum, over, part, positive, rows, under,
};
use super::scores::{is_in, not_convex, values};
use num_traits::Signed;
use specgap_core::optimum::ratio_scan;
use specgap_core::problem::Problem;
use specgap_core::scheme::{DistinctConditioned, SchemeName, WithReplacement};
use specgap_number::distribution::{Draft, Rational, round_nearest};
use specgap_number::number::Number;

claims! {
    holds "qconvex-wr" by |finding| q_convex(finding, SchemeName::WITH_REPLACEMENT, 201, [60, 250]),
        "Q is q-convex with replacement, and the ratio scan is optimal",
        "Hu et al., Theorems 3 and 6",
        "The definition is checked for every H and every pair of further tokens, and \
        the scan against the flow, in fractions.";
    holds "qconvex-distinct" by
        |finding| q_convex(finding, SchemeName::DISTINCT_CONDITIONED, 202, [60, 250]),
        "Q is q-convex for the ratio of elementary symmetric polynomials, and the ratio \
        scan is optimal",
        "Hu et al., Theorem 4 (stated there for sampling without replacement)",
        "As for qconvex-wr. The law is distinct-conditioned: i.i.d. draws given that \
        all differ. It is not the sequential law that the theorem names.";
    refuted "wo-formula" of wo_formula,
        in ["without-replacement/two-laws-sequential.toml",
            "without-replacement/two-laws-conditioned.toml"]
        "the ratio of elementary symmetric polynomials is the Q of sequential sampling \
        without replacement",
        "Hu et al., sec. 4.2.2 and the proof of Theorem 4, for the law of eq. 6",
        "Wrong: it is the Q of another law. For q = (1/2, 3/10, 1/5) and n = 2, two \
        sequential draws are {0, 1} with probability 3/10 + 3/14 = 18/35, while the polynomial \
        gives 15/31, the probability under i.i.d. draws conditioned on being different. For \
        p = (1/10, 1/5, 7/10) the optimum is 11/14 under the law of sequential draws and 253/310 \
        under the formula. On 1,500 random \
        problems the formula is above the sequential optimum by up to 0.083 and below it by \
        up to 0.055.";
    holds "qconvex-wo-sequential" by sequential,
        "Q is q-convex, and the ratio scan optimal, under sequential sampling without \
        replacement",
        "ours; Hu et al., Theorem 4, names this law and proves it for another",
        "Proof (docs/theory/sequential-draws.md): give every token an exponential clock of \
        rate q; the drafts are the first n to ring. Let S be H without x, U the time of the \
        (n-1)th ring in S, s the rate of all clocks outside S. The growth of Q by x is the \
        probability that x and n-1 clocks of S come first; the growth by y after that is the \
        same with x and y exchanged, and the probability that x, y and n-2 of S come first, \
        which is at least E[e^{-sU} (e^{xU}-1)(e^{yU}-1)]. Divided by q(x) and q(y) the first \
        two differ by E[e^{-sU} ((e^{xU}-1)/x - (e^{yU}-1)/y)], and the third makes up for \
        that at every U, because (e^{yU}-1)/y >= U >= (1-e^{-xU})/x. Checked: the definition \
        for every H and every pair of further tokens, and where it is strict; and the scan \
        against the flow; in fractions.";
    holds "supermodular" by supermodular,
        "every q-convex function is supermodular",
        "Hu et al., Theorem 5",
        "Random set functions on four tokens, q-convex ones kept: none fails \
        Q(H+x+y) + Q(H) >= Q(H+x) + Q(H+y). Proof: were the growth by y larger at H than at \
        H + x, then by q-convexity the growth to H + x + y would be smaller by way of x than by \
        way of y, and it is the same.";
    holds "wo-beats-wr" by wo_beats_wr,
        "alpha* of sequential sampling without replacement is at least that with \
        replacement",
        "Hu et al., observed in sec. 5; the proof is ours",
        "Proof: the first n different tokens of an endless i.i.d. sequence from q are \
        n sequential draws, since each new one is drawn from q given that it is new; and they \
        hold its first n tokens. So Q(H) of sequential draws is at most q(H)^n for every H. \
        Checked on random pairs, exact optima on both sides.";
}

/// The definition of the law's Q, and the scan.
fn q_convex(finding: &mut Finding, scheme: SchemeName, seed: u64, [laws, scans]: [usize; 2]) {
    let mut family = Family::new(seed);
    let problems = family.problems(scheme, laws, 5, 4);
    let name = "laws checked by the definition";
    each(finding, name, &problems, |finding, problem| {
        let ([_, q], inside) = (rows(problem)?, values(problem.scheme()));
        let violation = not_convex(problem.vocab(), &inside, &q, 0);
        finding.require(violation.is_none(), || format!("{violation:?}"));
        Some(())
    });
    let problems = family.problems(scheme, scans, 6, 4);
    let name = "scans against flows";
    each(finding, name, &problems, |finding, problem| {
        let scanned = ratio_scan::solve(problem)?;
        finding.equal(scanned.rate.rational(), Some(&optimum(problem)));
        Some(())
    });
}

/// Besides the definition and the scan, where the inequality is strict: for n >= 2 just
/// where H holds at least n-2 tokens of q > 0, so that the further two can complete a draw.
fn sequential(finding: &mut Finding) {
    let scheme = SchemeName::WITHOUT_REPLACEMENT;
    q_convex(finding, scheme, 203, [300, 3000]);
    let problems = Family::new(207).problems(scheme, 60, 6, 5);
    over(finding, &problems, |finding, problem| {
        let [_, q] = rows(problem)?;
        let support: Vec<usize> = positive(&q).map(|(token, _)| token).collect();
        let draws = problem.drafts().min(support.len());
        let values = values(problem.scheme());
        for mask in 0..values.len() {
            let further = || support.iter().filter(|&&token| !is_in(mask, token));
            let held = support.len() - further().count();
            let pairs = further().flat_map(|x| further().map(move |y| (*x, *y)));
            for (x, y) in pairs.filter(|(x, y)| x != y) {
                let (first, both) = (mask | 1 << x, mask | 1 << x | 1 << y);
                let before = (&values[first] - &values[mask]) / &q[x];
                let after = (&values[both] - &values[first]) / &q[y];
                let expected = draws >= 2 && held + 2 >= draws;
                finding.add("slopes compared", 1);
                finding.tally("of them strictly", expected);
                finding.require(after >= before && (after > before) == expected, || {
                    format!("set {mask:b}, tokens {x}, {y}")
                });
            }
        }
        Some(())
    });
}

fn wo_formula(finding: &mut Finding, [sequential, conditioned]: [Problem; 2]) {
    let [law, formula] =
        [&sequential, &conditioned].map(|problem| problem.scheme().inside_exact(&[0, 1]));
    finding.fraction("Q({0,1}) of sequential draws", &law);
    finding.fraction("Q({0,1}) by the formula", &formula);
    finding.require(law == formula, || {
        format!("Q({{0, 1}}) is {law} sequentially and {formula} by the formula")
    });
    finding.optimum("alpha* of sequential draws", &sequential);
    finding.optimum("alpha* by the formula", &conditioned);

    // How far the optima are apart, either way round.
    let (mut below, mut above) = (Rational::zero(), Rational::zero());
    for problem in Family::new(204).problems(SchemeName::WITHOUT_REPLACEMENT, 1500, 6, 3) {
        let Some(other) = under(&problem, DistinctConditioned::new) else {
            continue;
        };
        let difference = optimum(&other) - optimum(&problem);
        below = below.min(difference.clone());
        above = above.max(difference);
    }
    finding.count("random pairs", 1500);
    finding.number("formula above by up to", round_nearest(&above));
    finding.number("formula below by up to", round_nearest(&below.abs()));
}

fn supermodular(finding: &mut Finding) {
    let mut family = Family::new(205);
    let vocab = 4;
    for _ in 0..400 {
        finding.add("set functions", 1);
        let weights = fractions(&family.positive_weights(vocab));
        // Mixtures of laws that are q-convex with small random set functions.
        let noise: Vec<Rational> = (0..1 << vocab)
            .map(|_| part(family.below(5), 2000))
            .collect();
        let Ok(draft) = Draft::from_rationals(weights.clone()) else {
            continue;
        };
        let powers = WithReplacement::new(draft.clone(), family.between(1, 4));
        let symmetric = DistinctConditioned::new(draft.clone(), 2);
        let share = part(family.below(5), 4);
        let noisy = family.below(2) == 1;
        let mixed = values(&powers).into_iter().zip(values(&symmetric));
        let mut values: Vec<Rational> = mixed
            .map(|(power, other)| &share * power + share.complement() * other)
            .collect();
        if noisy {
            for (value, noise) in values.iter_mut().zip(&noise).skip(1) {
                *value += noise;
            }
        }
        let is_convex = not_convex(vocab, &values, &weights, 0).is_none();
        finding.tally("of them q-convex", is_convex);
        for mask in (0..values.len()).filter(|_| is_convex) {
            for (x, y) in (0..vocab).flat_map(|x| (0..x).map(move |y| (x, y))) {
                if is_in(mask, x) || is_in(mask, y) {
                    continue;
                }
                let (with_x, with_y) = (mask | 1 << x, mask | 1 << y);
                let fine =
                    &values[with_x | with_y] + &values[mask] >= &values[with_x] + &values[with_y];
                finding.require(fine, || format!("weights {weights:?}, set {mask:b}"));
            }
        }
    }
    finding.enough(&["of them q-convex"], 50);
}

fn wo_beats_wr(finding: &mut Finding) {
    let mut gains = Vec::new();
    for problem in Family::new(206).problems(SchemeName::WITHOUT_REPLACEMENT, 4000, 6, 4) {
        let Some(with) = under(&problem, WithReplacement::new) else {
            continue;
        };
        let gain = optimum(&problem) - optimum(&with);
        finding.require(!gain.is_negative(), || {
            format!("{}: {gain}", describe(&with))
        });
        gains.push(gain);
    }
    finding.count("pairs", 4000);
    let least = gains.into_iter().min().unwrap_or_default();
    finding.fraction("smallest gain", &least);
}
