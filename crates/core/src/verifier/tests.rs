//! Every verifier against its definition: losslessness in exact arithmetic, the
//! formulas against enumeration, the samplers against the law, and rules that are
//! broken on purpose.

use super::*;
use crate::optimum::{fractions, row_of_bits};
use crate::problem::Problem;
use crate::scheme::tests::{all_schemes, normalised};
use crate::scheme::{
    DistinctConditioned, DraftScheme, Greedy, Hub, MadeOf, SchemeName, Straddle, Stratified,
    WithReplacement, WithoutReplacement,
};
use proptest::prelude::*;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_number::distribution::{
    Draft, Rational, Target, parse_rational, round_down, round_nearest, round_up,
};
use specgap_number::known::Known;
use specgap_number::number::Number;
use specgap_row::{Row, Rows, Workspace};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use std::collections::BTreeSet;

fn rational(text: &str) -> Rational {
    parse_rational(text).unwrap()
}

fn target(raw: &[f64]) -> Target {
    Target::new(&normalised(raw)).unwrap()
}

fn draft(raw: &[f64]) -> Draft {
    Draft::new(&normalised(raw)).unwrap()
}

fn rows<'a>(p: &'a Target, q: &'a Draft) -> Rows<'a> {
    Rows::new(p.probabilities(), q.probabilities())
}

fn of(target: &Target, scheme: impl DraftScheme + 'static) -> Problem {
    Problem::new("test", target.clone(), scheme).unwrap()
}

fn iid(p: &Target, q: &Draft, drafts: usize) -> Problem {
    of(p, WithReplacement::new(q.clone(), drafts))
}

fn sequential(p: &Target, q: &Draft, drafts: usize) -> Problem {
    of(p, WithoutReplacement::new(q.clone(), drafts))
}

fn fixed(p: &Target, q: &Draft, drafts: usize) -> Problem {
    of(p, Greedy::new(q.clone(), drafts))
}

/// All rules that take a problem.
fn rules(problem: &Problem) -> impl Iterator<Item = (VerifierName, Box<dyn Verifier>)> {
    let all = VerifierName::ALL.into_iter();
    all.filter_map(|name| Some((name, verifier(name, problem).ok()?)))
}

/// Every law of the table where it applies, on one q.
fn all_problems(p: &Target, q: &Draft, other: &Draft, drafts: usize) -> Vec<Problem> {
    let laws = all_schemes(q.probabilities(), other.probabilities(), drafts).into_iter();
    laws.filter(|law| drafts <= q.vocab() || !law.name().draws_distinct_tokens())
        .map(|law| Problem::from_law(law.name().as_str(), p.clone(), law).unwrap())
        .collect()
}

/// Constructors refuse what the table says that they refuse, and nothing else.
#[test]
fn every_entry_says_what_its_rule_takes() {
    let (p, q) = (target(&[0.2, 0.3, 0.5]), draft(&[0.5, 0.3, 0.2]));
    for drafts in 1..=3 {
        for problem in all_problems(&p, &q, &draft(p.probabilities()), drafts) {
            for name in VerifierName::ALL {
                let takes = name.is_lossless(problem.scheme().name(), drafts);
                let rule = verifier(name, &problem);
                assert_eq!(rule.is_ok(), takes, "{name} on {}", problem.name());
                if let Ok(rule) = rule {
                    assert_eq!(rule.name(), name);
                }
            }
        }
    }
    for name in VerifierName::ALL {
        assert_eq!(name.as_str().parse(), Ok(name));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// The same rules in `f64`, on inputs that are not fractions.
    #[test]
    fn the_float_rule_is_the_exact_rule(
        (p, q, other, drafts) in (1usize..6).prop_flat_map(|vocab| {
            let row = || prop::collection::vec(-25.0f64..0.0, vocab);
            (row(), row(), row(), 1usize..4)
        })
    ) {
        let row = |logs: &[f64]| logs.iter().map(|x| x.exp()).collect::<Vec<_>>();
        let (p, q, other) = (target(&row(&p)), draft(&row(&q)), draft(&row(&other)));
        for problem in all_problems(&p, &q, &other, drafts) {
            for (name, rule) in rules(&problem) {
                let law = output_law(rule.as_ref(), problem.scheme());
                let variation = total_variation(&law, problem.target());
                prop_assert!(variation.value < 1e-13, "{name}: {variation:?}");
                problem.scheme().for_each_tuple(&mut |tuple, _| {
                    let float = rule.conditional(tuple);
                    let sum: f64 = float.accepted.iter().sum::<f64>() + float.rejected;
                    assert!((sum - 1.0).abs() < 1e-13, "{name}");
                    let residual: f64 = float.residual.iter().sum();
                    assert!((residual - 1.0).abs() < 1e-13, "{name}");
                });
            }
        }
    }
}

#[test]
fn mismatched_schemes_are_refused_with_a_cure() {
    let (p, q) = (target(&[0.2, 0.3, 0.5]), draft(&[0.5, 0.3, 0.2]));
    let error = verifier(VerifierName::RRS, &sequential(&p, &q, 2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rrs is lossless for with-replacement, product, stratified and stratified-independent \
         drafts only, and this problem has 2 without-replacement draft(s); use rrs-wo or \
         shared-gumbel for these drafts"
    );
    let conditioned = of(&p, DistinctConditioned::new(q.clone(), 2));
    for name in VerifierName::ALL {
        if let Err(error) = verifier(name, &conditioned) {
            let error = error.to_string();
            let cure = "; use optimal or exact-match for these drafts";
            assert!(error.ends_with(cure), "{error}");
        }
    }
    let iid = iid(&p, &q, 2);
    let error = KSeq::with_factor(&iid, rational("1"))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("k-seq: the factor is 1; it must be >= 1."));
    assert!(KSeq::with_factor(&iid, rational("-1")).is_err());
    assert!("k-sec".parse::<VerifierName>().is_err());
    assert_eq!("rrs-wo".parse(), Ok(VerifierName::RRS_WO));
}

#[test]
fn k_seq_with_a_large_factor_has_two_acceptances() {
    let iid = iid(&target(&[0.2, 0.3, 0.5]), &draft(&[0.5, 0.3, 0.2]), 2);
    let best = KSeq::new(&iid).unwrap();
    let largest = KSeq::with_factor(&iid, rational("2")).unwrap();
    let law = output_law_exact(&largest, iid.scheme()).unwrap();
    let variation = total_variation_exact(&law, iid.target());
    assert!(variation.exact.unwrap().is_nil());
    assert!(law.membership > law.algorithmic);
    let formula = largest.acceptance();
    assert_eq!(formula.algorithmic, Known::exact(law.algorithmic.clone()));
    assert_eq!(formula.membership, Known::exact(law.membership));
    assert!(&law.algorithmic < best.acceptance().algorithmic.rational().unwrap());
    // One step below the root the residual would be negative.
    let below = best.factor() * (1.0 - 1e-12);
    let below = specgap_number::distribution::exact_value(below).unwrap();
    assert!(KSeq::with_factor(&iid, below).is_err());
}

/// A generator that draws the largest number below 1, or 0.
struct Always(u64);

impl RngCore for Always {
    fn next_u32(&mut self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn next_u64(&mut self) -> u64 {
        self.0
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        bytes.fill(self.0 as u8);
    }
}

/// Where rounding leaves a sliver beyond the last event that can happen, that one happens, and
/// never one of probability 0.
#[test]
fn what_has_no_mass_is_never_drawn() {
    use super::rule::{draw, draw_from};
    use rand::Rng;
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut slivers = 0;
    for _ in 0..200 {
        let mut weights: Vec<f64> = (0..12).map(|_| rng.random::<f64>()).collect();
        weights[0] = 0.0;
        weights[11] = 0.0;
        assert_eq!(draw(&weights, &mut Always(0)), 1);
        assert_eq!(draw(&weights, &mut Always(u64::MAX)), 10);
        let below = 1.0 - 0.5 * f64::EPSILON;
        let sum = specgap_number::distribution::compensated_sum(weights.iter().copied());
        let left = weights
            .iter()
            .fold(below * sum, |left, weight| left - weight);
        slivers += usize::from(left >= 0.0);
    }
    assert!(slivers > 0);

    let small = f64::EPSILON;
    let law = ConditionalLaw {
        accepted: vec![0.0, 0.5, 0.25, 0.25 - small, 0.0],
        rejected: 0.0,
        residual: vec![0.0, 1.0].into(),
    };
    for (drawn, position) in [(0, 1), (u64::MAX, 3)] {
        let verdict = draw_from(&law, &[5, 6, 7, 8, 9], &mut Always(drawn));
        assert_eq!(verdict.accepted, Some(position));
        assert_eq!(verdict.token as usize, 5 + position);
    }
    // What is left is a rejection where there may be one.
    let law = ConditionalLaw {
        rejected: small,
        ..law
    };
    let verdict = draw_from(&law, &[5, 6, 7, 8, 9], &mut Always(u64::MAX));
    assert_eq!((verdict.accepted, verdict.token), (None, 1));
}

/// What rules say of themselves, by which sums over tuples are planned, is so of their laws.
#[test]
fn rules_say_of_themselves_what_is_so() {
    let (p, q) = (
        target(&[0.1, 0.15, 0.3, 0.45]),
        draft(&[0.4, 0.3, 0.2, 0.1]),
    );
    let (mut of_sets, mut of_rows) = (BTreeSet::new(), BTreeSet::new());
    for problem in all_problems(&p, &q, &draft(p.probabilities()), 2) {
        for (name, rule) in rules(&problem) {
            let what = format!("{name} on {}", problem.name());
            let is_iid = problem.scheme().name() == SchemeName::WITH_REPLACEMENT;
            let is_rounded = [VerifierName::K_SEQ, VerifierName::LEVEL].contains(&name)
                || is_iid && name == VerifierName::LEVEL_4;
            assert_eq!(rule.has_rounded_parameter(), is_rounded, "{what}");
            if name == VerifierName::LEVEL {
                // It has no law in fractions.
                continue;
            }
            let mut tuples = Vec::new();
            problem.scheme().for_each_tuple_exact(&mut |tuple, mass| {
                if !mass.is_nil() {
                    tuples.push(tuple.to_vec());
                }
            });
            let law = |tuple: &[u32]| {
                let law = rule.conditional_exact(tuple).unwrap();
                let mut of_tokens = vec![<Rational as Number>::zero(); p.vocab()];
                for (token, mass) in tuple.iter().zip(&law.accepted) {
                    of_tokens[*token as usize] += mass;
                }
                (of_tokens, law.rejected, law.residual)
            };
            if rule.depends_on_set_only() {
                of_sets.insert(name.as_str());
                for tuple in &tuples {
                    let swapped: Vec<u32> = tuple.iter().rev().copied().collect();
                    if tuples.contains(&swapped) {
                        assert_eq!(law(tuple), law(&swapped), "{what}");
                    }
                }
            }
            if rule.handles_all_tokens() {
                of_rows.insert(name.as_str());
            } else {
                let mut residuals: Vec<_> = (tuples.iter().map(|tuple| law(tuple)))
                    .filter(|(_, rejected, _)| !rejected.is_nil())
                    .map(|(_, _, residual)| residual)
                    .collect();
                residuals.dedup();
                assert!(residuals.len() <= 1, "{what}");
            }
        }
    }
    let listed = |names: BTreeSet<&'static str>| Vec::from_iter(names).join(" ");
    assert_eq!(listed(of_sets), "exact-match greedy importance optimal");
    let all = "exact-match gls naive-tree rrs rrs-wo shared-gumbel spechub";
    assert_eq!(listed(of_rows), all);
}

/// A rule with its law changed, or its sampler.
#[derive(Debug)]
struct Broken {
    rule: Rrs,
    law: fn(&mut ConditionalLaw<Rational>),
    sample: fn(&Rrs, &[u32], &mut dyn RngCore) -> Verdict,
}

impl Broken {
    fn of(rule: Rrs) -> Self {
        Self {
            rule,
            law: |_| {},
            sample: |rule, tuple, rng| rule.sample(tuple, rng),
        }
    }
}

impl Verifier for Broken {
    fn name(&self) -> VerifierName {
        self.rule.name()
    }
    fn conditional(&self, tuple: &[u32]) -> ConditionalLaw<f64> {
        let law = self.conditional_exact(tuple).unwrap();
        ConditionalLaw {
            accepted: law.accepted.iter().map(round_nearest).collect(),
            rejected: round_nearest(&law.rejected),
            residual: law.residual.iter().map(round_nearest).collect(),
        }
    }
    fn conditional_exact(&self, tuple: &[u32]) -> Option<ConditionalLaw<Rational>> {
        let mut law = self.rule.conditional_exact(tuple)?;
        (self.law)(&mut law);
        Some(law)
    }
    fn sample(&self, tuple: &[u32], rng: &mut dyn RngCore) -> Verdict {
        (self.sample)(&self.rule, tuple, rng)
    }
    fn acceptance(&self) -> Acceptance {
        self.rule.acceptance()
    }
}

/// Accepts the first draft with probability at least 2^-53, as `u <= ratio` does for a draw u
/// that can be 0.
fn not_strict(law: &mut ConditionalLaw<Rational>) {
    let sliver = Rational::new(1.into(), num_bigint::BigInt::from(1) << 53);
    if law.accepted[0].is_nil() {
        law.accepted[0] = sliver.clone();
        for later in law.accepted[1..].iter_mut().chain([&mut law.rejected]) {
            *later *= Rational::one() - &sliver;
        }
    }
}

/// Four published bugs, each seen by the total variation.
#[test]
fn broken_rules_are_caught() {
    let p = Target::from_rationals(fractions(&["1/2", "1/3", "1/6", "0"])).unwrap();
    let q = Draft::from_rationals(fractions(&["1/4"; 4])).unwrap();
    let sharp = Draft::from_rationals(fractions(&["2/5", "1/5", "1/5", "1/5"])).unwrap();
    let (iid, sequential) = (iid(&p, &q, 2), sequential(&p, &q, 2));
    let distance = |rule: &dyn Verifier, scheme: &dyn DraftScheme| {
        let law = output_law_exact(rule, scheme).unwrap();
        assert!(law.output.iter().sum::<Rational>() == Rational::one());
        let float = total_variation(&output_law(rule, scheme), &p);
        (total_variation_exact(&law, &p), float)
    };
    let rrs = || Rrs::new(&iid).unwrap();
    let (right, _) = distance(&rrs(), iid.scheme());
    assert_eq!(right.worst_token, None);

    // The residual is drawn from q instead of (p - q)+.
    let wrong = Broken {
        law: |law| law.residual = fractions(&["1/4"; 4]).into(),
        ..Broken::of(rrs())
    };
    let (exact, float) = distance(&wrong, iid.scheme());
    assert!(exact.value > 0.01 && (exact.value - float.value).abs() < 1e-15);
    assert_eq!(exact.worst_token, float.worst_token);

    // The q of the ratio is not the q that was sampled (another temperature).
    let sampled = WithReplacement::new(sharp, 2);
    assert!(distance(&rrs(), &sampled).0.value > 0.01);

    // Drafts with replacement, verified as if without, and the reverse.
    let without = RrsWo::new(&sequential).unwrap();
    assert!(distance(&without, iid.scheme()).0.value > 0.01);
    assert!(distance(&rrs(), sequential.scheme()).0.value > 0.01);
    let (right, _) = distance(&without, sequential.scheme());
    assert!(right.worst_token.is_none());

    // A token of probability 0 is accepted when the uniform draw is 0: only
    // exact arithmetic sees it.
    let wrong = Broken {
        law: not_strict,
        ..Broken::of(rrs())
    };
    let (exact, float) = distance(&wrong, iid.scheme());
    assert!(exact.value > 0.0 && exact.value < 1e-15);
    assert_eq!(exact.worst_token, Some(3));
    assert!(float.value < 1e-15);
}

/// Pearson's statistic of sampled (token, accepted) pairs against the law, and
/// its quantile. Cells with fewer than 5 expected are pooled.
fn chi_square(rule: &dyn Verifier, scheme: &dyn DraftScheme, seed: u64) -> (f64, f64) {
    const RUNS: u32 = 40_000;
    // False-positive rate of one test.
    const LEVEL: f64 = 1e-5;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let vocab = scheme.vocab();
    let (mut tuples, mut masses) = (Vec::new(), Vec::new());
    let slots = scheme.drafts() + 1;
    let mut expected = vec![0.0; vocab * slots];
    scheme.for_each_tuple(&mut |tuple, mass| {
        tuples.push(tuple.to_vec());
        masses.push(mass);
        let law = rule.conditional(tuple);
        for (k, (&token, accepted)) in tuple.iter().zip(&law.accepted).enumerate() {
            expected[token as usize * slots + k + 1] += mass * accepted * f64::from(RUNS);
        }
        for (token, residual) in law.residual.iter().enumerate() {
            expected[token * slots] += mass * law.rejected * residual * f64::from(RUNS);
        }
    });
    let mut counts = vec![0.0; expected.len()];
    for _ in 0..RUNS {
        let tuple = &tuples[draw(&masses, &mut rng) as usize];
        let verdict = rule.sample(tuple, &mut rng);
        if let Some(position) = verdict.accepted {
            assert_eq!(tuple[position], verdict.token);
        }
        let slot = verdict.accepted.map_or(0, |position| position + 1);
        counts[verdict.token as usize * slots + slot] += 1.0;
    }
    let (mut statistic, mut cells) = (0.0, 0u32);
    let mut pooled = (0.0, 0.0);
    for (&seen, &mean) in counts.iter().zip(&expected) {
        if mean < 1e-9 {
            assert_eq!(seen, 0.0, "an impossible event happened");
        } else if mean < 5.0 {
            pooled = (pooled.0 + seen, pooled.1 + mean);
        } else {
            statistic += (seen - mean) * (seen - mean) / mean;
            cells += 1;
        }
    }
    if pooled.1 >= 5.0 {
        statistic += (pooled.0 - pooled.1) * (pooled.0 - pooled.1) / pooled.1;
        cells += 1;
    }
    if cells < 2 {
        return (0.0, 0.0);
    }
    let law = ChiSquared::new(f64::from(cells - 1)).unwrap();
    (statistic, law.inverse_cdf(1.0 - LEVEL))
}

/// At most 40 tests of false-positive rate 1e-5: one false alarm in 2500 seeds.
#[test]
fn samplers_follow_their_laws() {
    let p = target(&[0.05, 0.4, 0.0, 0.3, 0.15, 0.1]);
    let q = draft(&[0.3, 0.2, 0.2, 0.0, 0.05, 0.25]);
    let other = draft(&[0.1, 0.1, 0.3, 0.3, 0.1, 0.1]);
    let mut tests = 0;
    for drafts in 1..=3 {
        for problem in all_problems(&p, &q, &other, drafts) {
            for (name, rule) in rules(&problem) {
                tests += 1;
                let (statistic, limit) = chi_square(rule.as_ref(), problem.scheme(), tests);
                let what = format!("{name} on {}", problem.name());
                assert!(statistic <= limit, "{what}: {statistic} > {limit}");
            }
        }
    }
    assert!(tests >= 30, "{tests} tests");
}

/// The chi-square test sees a sampler that is off.
#[test]
fn a_wrong_sampler_fails_the_chi_square() {
    // A residual of several tokens shows it.
    let wide = iid(
        &target(&[0.1, 0.2, 0.3, 0.4]),
        &draft(&[0.7, 0.1, 0.1, 0.1]),
        1,
    );
    let rule = Broken {
        sample: |rule, tuple, rng| {
            // A reseeded generator: the accept draw is the residual draw.
            let mut twin = ChaCha8Rng::seed_from_u64(rng.next_u64());
            let verdict = rule.sample(tuple, &mut twin.clone());
            match verdict.accepted {
                Some(_) => verdict,
                None => Verdict {
                    token: draw(&rule.conditional(tuple).residual, &mut twin),
                    accepted: None,
                },
            }
        },
        ..Broken::of(Rrs::new(&wide).unwrap())
    };
    let (statistic, limit) = chi_square(&rule, wide.scheme(), 1);
    assert!(statistic > limit);
}

/// The closed forms of `f64` are as wide as what is said of their rounding: no wider, and not
/// narrower by a term.
#[test]
fn closed_forms_are_as_wide_as_their_analysis() {
    let (p, q) = (target(&[0.4, 0.3, 0.2, 0.1]), draft(&[0.1, 0.2, 0.3, 0.4]));
    let other = draft(&[0.3, 0.2, 0.4, 0.1]);
    let epsilon = f64::EPSILON;
    let is = |rate: &Known, error: f64, what: &str| {
        let width = rate.upper() - rate.lower();
        assert!(rate.upper() < 1.0 && rate.lower() > 0.0, "{what}: {rate:?}");
        let off = (width - 2.0 * error * epsilon).abs();
        assert!(off <= 1.01 * epsilon, "{what}: {width} {error}");
        assert_eq!(rate.kind(), specgap_number::known::Kind::Enclosed, "{what}");
    };
    for drafts in 1..=3usize {
        let n = drafts as f64;
        let iid = iid(&p, &q, drafts);
        let rrs = Rrs::new(&iid).unwrap().enclosed();
        is(&rrs, 4.0 * (n + 1.0) * (n + 1.0), "rrs");
        let k_seq = KSeq::new(&iid).unwrap().enclosed();
        is(&k_seq.algorithmic, 8.0 * n + 8.0, "k-seq");
        is(&k_seq.membership, 16.0 * n + 16.0, "k-seq");
        let largest = Rational::from_integer((drafts + 1).into());
        let rule = KSeq::with_factor(&iid, largest).unwrap();
        let (wide, exact) = (rule.enclosed(), rule.acceptance());
        is(&wide.membership, 16.0 * n + 16.0, "k-seq");
        // Some drafts are refused that the residual puts out again.
        let hits = exact.membership.value() - exact.algorithmic.value();
        let found = wide.membership.value() - wide.algorithmic.value();
        let off = (found - hits).abs();
        assert!(hits > 1e-3 && off < 1e-14, "{found} {hits}");
        let mut workspace = Workspace::new();
        let mut row = workspace.load(rows(&p, &q), 4).unwrap();
        let rule = VerifierName::NAIVE_TREE.on_row(SchemeName::WITH_REPLACEMENT);
        let rate = rule.unwrap().answer(&mut row, drafts, 0).unwrap().rate;
        is(&rate, 2.0 * n + 8.0, "naive-tree");
        let (_, rounding, _) = ExactMatch::new(&iid).formula();
        assert_eq!(rounding, (4.0 * n + 16.0) * epsilon);
        let each = (0..drafts).map(|k| if k % 2 == 0 { q.clone() } else { other.clone() });
        let product = crate::scheme::Product::new(each.collect()).unwrap();
        let rrs = Rrs::new(&of(&p, product)).unwrap().enclosed();
        is(&rrs, 8.0 * 2f64.powf(n), "rrs of a product");
        let greedy = GreedyVerifier::new(&fixed(&p, &q, drafts))
            .unwrap()
            .enclosed();
        is(&greedy, 8.0, "greedy");
        if drafts == 1 {
            is(&Token::new(&iid).unwrap().enclosed(), 4.0, "token");
        }
        if drafts == 2 {
            let star = of(&p, Hub::new(q.clone()));
            is(&SpecHub::new(&star).unwrap().enclosed(), 8.0, "spechub");
        }
    }
}

/// 1, 1/2, 1/3.. in another order for each step.
fn harmonic(vocab: usize, step: usize) -> Vec<f64> {
    (0..vocab)
        .map(|token| 1.0 / (1.0 + ((token * step) % vocab) as f64))
        .collect()
}

/// Rates are fractions while these cost no more than is allowed, by each verifier's own count:
/// just below it, and just above.
#[test]
fn rates_are_fractions_while_they_are_cheap() {
    use crate::verifier::rule::EXACT_FORMULA_BITS;
    use specgap_number::known::Kind;
    // Some 650 bits, most of them for one light token. No two rows are of one length.
    type Cost = fn([f64; 2], f64) -> f64;
    let [iid, greedy, hub] = ["with-replacement", "greedy", "hub"];
    let rules: [(&str, &str, usize, Cost); 6] = [
        ("token", iid, 1, |[p, q], vocab| (p + q) * vocab),
        ("rrs", iid, 3, |[p, q], vocab| (p + 3.0 * q) * 3.0 * vocab),
        ("k-seq", iid, 3, |[p, q], v| {
            (p + q + 64.0) * (v + 3.0) * 3.0
        }),
        ("naive-tree", iid, 3, |[p, q], v| (p + 3.0 * q) * 3.0 * v),
        ("greedy", greedy, 2, |[p, q], vocab| (p + q) * vocab),
        ("spechub", hub, 2, |[p, q], vocab| (p + q) * vocab),
    ];
    for (what, law, drafts, cost) in rules {
        let of = |vocab: usize| {
            let rows = [(0, 600), (1, 590)].map(|(light, bits)| row_of_bits(vocab, light, bits));
            let (p, q) = (target(&rows[0]), draft(&rows[1]));
            let bits = [p.exact_bits(), q.exact_bits()].map(|bits| bits as f64);
            (cost(bits, vocab as f64) / EXACT_FORMULA_BITS, p, q)
        };
        let mut vocab = 40;
        while of(vocab + 5).0 <= 1.0 {
            vocab += 5;
        }
        for (vocab, kind) in [(vocab, Kind::Exact), (vocab + 5, Kind::Enclosed)] {
            let (share, p, q) = of(vocab);
            assert!((share - 1.0).abs() < 0.1, "{what}: {share}");
            let law: SchemeName = law.parse().unwrap();
            let MadeOf::OneDraft(made) = law.entry().made_of else {
                panic!("{law} draws from one q")
            };
            let problem = Problem::from_law("", p, made(q, drafts)).unwrap();
            let rule = verifier(what.parse().unwrap(), &problem).unwrap();
            let rate = rule.acceptance();
            assert_eq!(rate.algorithmic.kind(), kind, "{what} {vocab}");
            assert_eq!(rate.membership.kind(), kind, "{what} {vocab}");
        }
    }
}

/// `importance`: alpha* in fractions while these are short, then enclosed, and its law p to rounding;
/// a plan that is too large is refused.
#[test]
fn importance_is_solved_as_well_as_it_can_be() {
    use specgap_number::known::Kind;
    for (vocab, drafts, kind) in [(4, 3, Kind::Exact), (60, 2, Kind::Enclosed)] {
        let row = |step| -> Vec<f64> {
            let weights = (0..vocab).map(|token| 1 + token * step % 17);
            weights.map(|weight| weight as f64).collect()
        };
        let (p, q) = (target(&row(3)), draft(&row(5)));
        let iid = iid(&p, &q, drafts);
        let rule = Importance::new(&iid).unwrap();
        let rate = rule.acceptance().membership;
        assert_eq!(rate.kind(), kind);
        let most = Optimal::new(&iid).unwrap().acceptance().membership;
        assert!((rate.value() - most.value()).abs() <= rate.width().max(1e-15));
        assert!(rate.lower() <= most.value() && most.value() <= rate.upper());
        let exact = rule.conditional_exact(&[0, 1]);
        assert_eq!(exact.is_some(), kind == Kind::Exact);
        let law = output_law(&rule, iid.scheme());
        assert!(total_variation(&law, iid.target()).value < 1e-13);
    }
    let flat = vec![1.0; 2000];
    let refused = Importance::new(&iid(&target(&flat), &draft(&flat), 3)).unwrap_err();
    assert!(matches!(refused, VerifierError::Size(..)));
}

/// `exact-match`: in fractions while sets are few, however many drafts; by a formula that is as wide as
/// it says; else over all tuples, or not at all.
#[test]
fn naive_is_answered_as_well_as_it_can_be() {
    use crate::optimum::ScaledInstance;
    use specgap_number::known::Kind;
    // 8,191 sets of up to 13 tokens, of 64 drafts.
    let mut row = [1.0; 13];
    row[..3].fill(2.0);
    let p = target(&row);
    row.reverse();
    let many = iid(&p, &draft(&row), 64);
    let naive = ExactMatch::new(&many);
    let (value, error, note) = naive.formula();
    let rate = naive.acceptance().membership;
    assert!(rate.rational().is_some() && note.is_none());
    assert!((rate.value() - value).abs() <= error, "{rate:?} {value}");

    // Numbers of many bits: sets are few, and sums of their fractions are not.
    let flat = vec![1.0 / 13.0; 13];
    let many = iid(&target(&flat), &draft(&flat), 64);
    let rate = ExactMatch::new(&many).acceptance().membership;
    assert_eq!(rate.kind(), Kind::Enclosed);
    assert!(rate.width() < 1e-12, "{rate:?}");

    // 85,400 sets of up to three tokens are summed, and 121,575 are not; nor are 20,100 sets whose
    // fractions have 3,000 bits.
    let flat = |vocab: usize| vec![1.0; vocab];
    let light = |vocab: usize| row_of_bits(vocab, 0, 990);
    for (row, drafts, kind) in [
        (flat(80), 3, Kind::Exact),
        (flat(90), 3, Kind::Enclosed),
        (light(120), 2, Kind::Exact),
        (light(200), 2, Kind::Enclosed),
    ] {
        let (p, q) = if row[0] == 1.0 {
            let row = vec![Rational::new(1.into(), row.len().into()); row.len()];
            let p = Target::from_rationals(row.clone()).unwrap();
            (p, Draft::from_rationals(row).unwrap())
        } else {
            (target(&row), draft(&row))
        };
        let many = iid(&p, &q, drafts);
        assert!(ScaledInstance::exact_is_affordable(&many));
        let rate = ExactMatch::new(&many).acceptance().membership;
        assert_eq!(rate.kind(), kind, "{} {drafts}", row.len());
    }

    // As many drafts as there are tokens that can be drafted: all of those, and no others.
    let (p, q) = (target(&[0.25, 0.25, 0.5]), draft(&[0.5, 0.5, 0.0]));
    let distinct = of(&p, DistinctConditioned::new(q.clone(), 2));
    for problem in [sequential(&p, &q, 2), distinct] {
        let rounding = (4.0 * 2.0 + 16.0) * f64::EPSILON;
        assert_eq!(ExactMatch::new(&problem).formula(), (0.5, rounding, None));
    }

    let each = |vocab: usize, drafts: usize| {
        let row = |step: usize| harmonic(vocab, step);
        all_problems(&target(&row(1)), &draft(&row(7)), &draft(&row(11)), drafts)
    };
    let mut listed = 0;
    for problem in each(5, 3) {
        let rounding = (4.0 * 3.0 + 16.0) * f64::EPSILON;
        let (_, error, note) = ExactMatch::new(&problem).formula();
        assert!(note.is_none());
        let law = problem.scheme().name();
        if law != SchemeName::WITHOUT_REPLACEMENT {
            let sums = law == SchemeName::DISTINCT_CONDITIONED;
            let expected = if sums { 24.0 * rounding } else { rounding };
            assert_eq!(error, expected, "{law}");
        }
    }
    for problem in each(400, 3) {
        let scheme = problem.scheme();
        let is_known = scheme.draft().is_some() || scheme.independent_draft(0).is_some();
        if !is_known && scheme.tuple_count() > 1.1e7 {
            listed += 1;
            let (value, error, note) = ExactMatch::new(&problem).formula();
            assert_eq!((value, error), (0.5, 1.0), "{}", problem.name());
            assert!(note.unwrap().starts_with("no formula"));
            let rate = ExactMatch::new(&problem).acceptance();
            assert_eq!(rate.membership.lower(), 0.0);
            assert_eq!(rate.membership.upper(), 1.0);
            assert!(rate.note.is_some());
        }
    }
    assert!(listed > 0);
}

/// The rate in fractions.
fn in_fractions(rule: &dyn Verifier) -> Rational {
    rule.acceptance().membership.rational().cloned().unwrap()
}

/// Returns what a gap report says of `exact-match` at a row.
fn naive_at(row: &mut Row<'_>, scheme: SchemeName, drafts: usize) -> Known {
    let rule = VerifierName::EXACT_MATCH.on_row(scheme).unwrap();
    rule.answer(row, drafts, 0).unwrap().rate
}

/// Where almost nothing of q is outside the top, what is drawn there counts in full.
#[test]
fn naive_on_fixed_drafts_is_exact_for_subnormal_q() {
    let (p, q) = (target(&[0.0, 0.5, 0.5]), draft(&[1.0, 3e-320, 1e-320]));
    let mut workspace = Workspace::new();
    let mut row = workspace.load(rows(&p, &q), 2).unwrap();
    let hub = of(&p, Hub::new(q.clone()));
    for (scheme, problem) in [
        (SchemeName::GREEDY, fixed(&p, &q, 2)),
        (SchemeName::HUB, hub),
    ] {
        let exact = ExactMatch::new(&problem).summed();
        assert_eq!(round_nearest(&exact), 0.5);
        let rate = naive_at(&mut row, scheme, 2);
        assert!(rate.lower() <= 0.5 && 0.5 <= rate.upper(), "{rate:?}");
        assert!(rate.width() < 1e-14, "{rate:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The closed forms of large vocabularies, against exact sums on small ones:
    /// the exact value lies within the stated bounds, and those are narrow.
    #[test]
    fn closed_forms_enclose_the_exact_rates(
        (p, q, other, drafts) in (1usize..7).prop_flat_map(|vocab| {
            let row = || prop::collection::vec(-18.0f64..0.0, vocab);
            (row(), row(), row(), 1usize..5)
        })
    ) {
        let row = |logs: &[f64]| logs.iter().map(|x| x.exp()).collect::<Vec<_>>();
        let (p, q, other) = (target(&row(&p)), draft(&row(&q)), draft(&row(&other)));
        let holds = |rate: &Known, exact: &Rational| {
            // Rates are cut to [0, 1], and bounds are `f64` around a rational.
            rate.lower() <= round_up(exact) && round_down(exact) <= rate.upper()
        };
        // The rates of a row without its problems, against the verifiers one by one.
        // One pass answers for few drafts, and each number of drafts has its own in a row of many.
        let most = if p.vocab().is_multiple_of(2) { 4 } else { 9 };
        let mut workspace = Workspace::new();
        let mut row = workspace.load(rows(&p, &q), most).unwrap();
        let mut at_row = |name: VerifierName, scheme: SchemeName| {
            let rule = name.on_row(scheme).unwrap();
            rule.answer(&mut row, drafts, 0).unwrap().rate
        };
        let iid = iid(&p, &q, drafts);
        prop_assert!(holds(&at_row(VerifierName::RRS, SchemeName::WITH_REPLACEMENT), &in_fractions(&Rrs::new(&iid).unwrap())));
        prop_assert!(holds(&at_row(VerifierName::EXACT_MATCH, SchemeName::WITH_REPLACEMENT), &ExactMatch::new(&iid).summed()));
        let tree = at_row(VerifierName::NAIVE_TREE, SchemeName::WITH_REPLACEMENT);
        prop_assert!(holds(&tree, &in_fractions(&NaiveTree::new(&iid).unwrap())) && tree.width() < 1e-14);
        let k_seq = at_row(VerifierName::K_SEQ, SchemeName::WITH_REPLACEMENT);
        prop_assert!(holds(&k_seq, &in_fractions(&KSeq::new(&iid).unwrap())));
        prop_assert!(k_seq.width() < 1e-12);
        if drafts <= p.vocab() {
            let fixed = fixed(&p, &q, drafts);
            let rule = GreedyVerifier::new(&fixed).unwrap();
            prop_assert!(holds(&at_row(VerifierName::GREEDY, SchemeName::GREEDY), &in_fractions(&rule)));
            let naive = at_row(VerifierName::EXACT_MATCH, SchemeName::GREEDY);
            prop_assert!(holds(&naive, &ExactMatch::new(&fixed).summed()) && naive.width() < 1e-14);
            let drawn = sequential(&p, &q, drafts);
            let rule = RrsWo::new(&drawn).unwrap();
            let summed = output_law_exact(&rule, drawn.scheme()).unwrap().membership;
            let settings = RrsWoSettings { width: 1e-9, ..RrsWoSettings::default() };
            let rate = Workspace::new().load(rows(&p, &q), 4).unwrap().accepted_in_turn(drafts, &settings);
            prop_assert!(holds(&rate, &summed), "{rate:?}");
            prop_assert!(rate.width() <= 1e-9, "{rate:?}");
            let summed = ExactMatch::new(&drawn).summed();
            let rate = at_row(VerifierName::EXACT_MATCH, SchemeName::WITHOUT_REPLACEMENT);
            prop_assert!(holds(&rate, &summed), "{rate:?}");
            prop_assert!(rate.width() < 1e-11, "{rate:?}");
        }
        if p.vocab() > 1 {
            let star = of(&p, Hub::new(q.clone()));
            prop_assert!(holds(&at_row(VerifierName::SPECHUB, SchemeName::HUB), &in_fractions(&SpecHub::new(&star).unwrap())));
            let naive = at_row(VerifierName::EXACT_MATCH, SchemeName::HUB);
            prop_assert!(holds(&naive, &ExactMatch::new(&star).summed()) && naive.width() < 1e-14);
        }
        for problem in all_problems(&p, &q, &other, drafts) {
            let naive = ExactMatch::new(&problem);
            let (value, error, _) = naive.formula();
            let exact = naive.summed();
            let difference = (value - round_nearest(&exact)).abs();
            prop_assert!(difference <= error, "naive, {}: {difference} {error}", problem.name());
            prop_assert!(error < 1e-11, "{} {error}", problem.name());
            if let Ok(rule) = Token::new(&problem) {
                prop_assert!(holds(&rule.enclosed(), &in_fractions(&rule)));
            }
            if let Ok(rule) = Rrs::new(&problem) {
                let rate = rule.enclosed();
                prop_assert!(holds(&rate, &in_fractions(&rule)));
                prop_assert!(rate.width() < 1e-12);
            }
            if let Ok(rule) = SpecHub::new(&problem) {
                prop_assert!(holds(&rule.enclosed(), &in_fractions(&rule)));
            }
            if let Ok(rule) = GreedyVerifier::new(&problem) {
                prop_assert!(holds(&rule.enclosed(), &in_fractions(&rule)));
            }
            if let Ok(rule) = KSeq::new(&problem) {
                let (float, exact) = (rule.enclosed(), rule.acceptance());
                prop_assert!(holds(&float.algorithmic, exact.algorithmic.rational().unwrap()));
                prop_assert!(holds(&float.membership, exact.membership.rational().unwrap()));
                prop_assert!(float.membership.width() < 1e-12);
                let largest = Rational::from_integer(drafts.into());
                let rule = KSeq::with_factor(&problem, largest).unwrap();
                let (float, exact) = (rule.enclosed(), rule.acceptance());
                prop_assert!(holds(&float.membership, exact.membership.rational().unwrap()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Rows over hundreds of decades, zeros among them, and up to 64 drafts: `exact-match` is
    /// enclosed, grows with n, and stays below the optimum.
    #[test]
    fn naive_on_sequential_drafts_of_extreme_rows(
        (p, q) in (1usize..80).prop_flat_map(|vocab| {
            let entry = prop_oneof![4 => -700.0f64..0.0, 2 => -3.0f64..0.0, 1 => Just(f64::NEG_INFINITY)];
            (prop::collection::vec(entry.clone(), vocab), prop::collection::vec(entry, vocab))
        })
    ) {
        let row = |logs: &[f64]| {
            let mut row: Vec<f64> = logs.iter().map(|x| x.exp()).collect();
            row[0] += 1e-3;
            row
        };
        let (p, q) = (target(&row(&p)), draft(&row(&q)));
        let mut workspace = Workspace::new();
        let mut row = workspace.load(rows(&p, &q), 64).unwrap();
        let mut more = f64::INFINITY;
        for drafts in [64, 17, 8, 3, 2, 1] {
            let rate = row.hits_sequential(drafts);
            prop_assert!(rate.lower() <= rate.value() && rate.value() <= rate.upper());
            prop_assert!(rate.lower() <= more + 1e-12, "{drafts} {rate:?} {more}");
            more = rate.upper();
            let best = row.without_replacement(drafts).unwrap().rate.upper();
            prop_assert!(rate.lower() <= best, "{drafts} {rate:?} {best}");
            if drafts <= 8 && p.vocab() <= 8 {
                let drawn = sequential(&p, &q, drafts.min(p.vocab()));
                let summed = round_nearest(&ExactMatch::new(&drawn).summed());
                prop_assert!(rate.lower() - 1e-12 <= summed && summed <= rate.upper() + 1e-12);
            }
        }
    }
}

/// p and q.
const OF_NOISE: [[&str; 3]; 2] = [["1/2", "3/10", "1/5"], ["1/5", "1/5", "3/5"]];

/// One noise by hand, and its two acceptances; rates and laws in floats beside those in fractions; an
/// output that is drafted for sure; drafts that cannot be.
#[test]
fn shared_gumbel_by_hand() {
    let [p, q] = OF_NOISE.map(|row| fractions(&row));
    let target = Target::from_rationals(p.clone()).unwrap();
    let draft = Draft::from_rationals(q).unwrap();
    for (drafts, expected) in [(1, "49/85"), (2, "1289/1380"), (3, "1")] {
        let problem = sequential(&target, &draft, drafts);
        let rule = SharedGumbel::new(&problem).unwrap();
        let rate = rule.acceptance();
        assert_eq!(rate.algorithmic, Known::exact(rational(expected)));
        assert_eq!(rate.membership, rate.algorithmic);
        let enclosed = rule.enclosed();
        assert!(enclosed.lower() <= rate.membership.value() + 1e-15);
        assert!(rate.membership.value() - 1e-15 <= enclosed.upper());
        assert!(enclosed.width() < 1e-10, "{enclosed:?}");
        problem.scheme().for_each_tuple_exact(&mut |tuple, _| {
            let float = rule.conditional(tuple);
            let exact = rule.conditional_exact(tuple).unwrap();
            let pairs = float.accepted.iter().zip(&exact.accepted);
            let all = pairs.chain([(&float.rejected, &exact.rejected)]);
            for (float, exact) in all {
                assert!((float - exact.to_f64()).abs() < 1e-13, "{tuple:?}");
            }
        });
    }
    // Whenever token 2 is put out it is the draft: of the times when it is, with p/q.
    let rule = SharedGumbel::new(&sequential(&target, &draft, 1)).unwrap();
    let law = rule.conditional_exact(&[2]).unwrap();
    assert_eq!(law.accepted[0], rational("1/5") / rational("3/5"));
    // Drafts that are never drawn are no evidence.
    for tuple in [[0, 0], [1, 1]] {
        let law = rule.conditional_exact(&tuple).unwrap();
        assert!(law.accepted.iter().all(Number::is_nil) && law.rejected == Rational::one());
        assert_eq!(law.residual.to_vec(), p);
    }
}

/// A noise a draft: one draft as with one noise; rates by hand, in floats, and above the bound of the
/// noise that gave the output.
#[test]
fn gls_by_hand() {
    let [p, q] = OF_NOISE.map(|row| fractions(&row));
    let target = Target::from_rationals(p).unwrap();
    let draft = Draft::from_rationals(q).unwrap();
    for (drafts, expected) in [(1, "49/85"), (2, "19682/26775")] {
        let rule = Gls::new(&iid(&target, &draft, drafts)).unwrap();
        let rate = rule.acceptance().membership;
        assert_eq!(rate, Known::exact(rational(expected)));
        let enclosed = rule.enclosed();
        assert!(enclosed.lower() <= rate.value() && rate.value() <= enclosed.upper());
        assert!(enclosed.width() < 1e-6, "{enclosed:?}");
        let n = drafts as f64;
        let bound = 0.5 * n / (n + 1.5) + 0.3 * n / (n + 0.7) + 0.2;
        assert!(rate.value() >= bound - 1e-12, "{rate:?} {bound}");
    }
}

/// Draws of one noise, from the definition: drafts and output are sorted, and nothing else is used.
/// 200,000 runs a row, within 4.5 standard errors (false-positive rate 7e-6 a number).
#[test]
fn shared_gumbel_is_what_one_noise_does() {
    use rand::Rng;
    let mut rng = ChaCha8Rng::seed_from_u64(91);
    let p = target(&[0.05, 0.4, 0.0, 0.3, 0.15, 0.1]);
    let q = draft(&[0.3, 0.2, 0.2, 0.0, 0.05, 0.25]);
    let runs = 200_000;
    let mut kept = [0.0; 4];
    for _ in 0..runs {
        let noise: Vec<f64> = (0..6).map(|_| -(-rng.random::<f64>()).ln_1p()).collect();
        let first = |row: &[f64]| -> Vec<usize> {
            let mut order: Vec<usize> = (0..6).filter(|&x| row[x] > 0.0).collect();
            order.sort_by(|&a, &b| (noise[a] / row[a]).total_cmp(&(noise[b] / row[b])));
            order
        };
        let (drafts, output) = (first(q.probabilities()), first(p.probabilities())[0]);
        for (kept, n) in kept.iter_mut().zip(1..) {
            *kept += f64::from(u8::from(drafts[..n].contains(&output)));
        }
    }
    for (kept, n) in kept.into_iter().zip(1..) {
        let rule = SharedGumbel::new(&sequential(&p, &q, n)).unwrap();
        let rate = rule.acceptance().membership.value();
        let error = (rate * (1.0 - rate) / f64::from(runs)).sqrt();
        let off = kept / f64::from(runs) - rate;
        assert!(off.abs() < 4.5 * error + 1e-12, "{n}: {rate} {off} {error}");
    }
}

/// What strata draft of each token, against the sum over their sets.
#[test]
fn strata_meet_the_target_by_their_shares() {
    let q = [0.37, 0.2, 0.11, 0.1, 0.09, 0.06, 0.04, 0.02, 0.01];
    let p = [0.02, 0.3, 0.05, 0.2, 0.01, 0.22, 0.1, 0.06, 0.04];
    for straddle in [Straddle::Once, Straddle::Independent] {
        for n in 1..=5 {
            let law = Stratified::new(draft(&q), n, straddle);
            let problem = Problem::new("strata", target(&p), law).unwrap();
            let rule = ExactMatch::new(&problem);
            let (value, error, note) = rule.formula();
            let off = (value - round_nearest(&rule.summed())).abs();
            assert!(note.is_none() && off <= error, "{straddle:?} {n}: {off:e}");
        }
    }
}
