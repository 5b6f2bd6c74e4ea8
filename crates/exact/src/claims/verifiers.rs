//! Claims about verifiers on single-step problems.

use super::family::{Family, describe, optimum, under};
use super::{Claim, Finding};
use crate::evaluate::{Measured, verify};
use num_traits::{One, Signed, Zero};
use specgap_core::problem::Problem;
use specgap_core::scheme::{Greedy, Hub, SchemeName, WithReplacement};
use specgap_core::verifier::{VerifierName, verifier};
use specgap_number::distribution::{Rational, format_rational, round_nearest};

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        id: "verifiers-lossless",
        statement: "token, rrs, rrs-wo, k-seq, spechub, greedy, optimal and exact-match emit exactly the \
            target's law under their own draft laws, and none accepts more than alpha*",
        source: "Leviathan et al.; SpecTr, Theorem 2; SpecHub, Theorem 2; Hu et al., sec. 2 and 5",
        explanation: "The output law is summed over all tuples, in fractions, with total variation \
            0 asked for; membership acceptance is compared with the flow's optimum.",
        check: lossless,
        ..Claim::HOLDS
    },
    Claim {
        id: "optimal-attains",
        statement: "the verifier that follows the maximum flow's plan accepts exactly alpha*",
        source: "SpecTr, sec. 4; Hu et al., sec. 3",
        explanation: "Exact acceptance of the plan's conditional laws, summed over tuples, against \
            the flow, under all seven draft laws.",
        check: optimal_attains,
        ..Claim::HOLDS
    },
    Claim {
        id: "greedy-optimal",
        statement: "greedy verification attains alpha* of greedy drafts",
        source: "Hu et al., Theorem 7",
        explanation: "Exact acceptance against the flow.",
        check: greedy_optimal,
        ..Claim::HOLDS
    },
    Claim {
        id: "hub-equals-greedy",
        statement: "SpecHub's acceptance equals greedy's with two drafts, and both are optimal for \
            their draft laws",
        source: "Hu et al., sec. 5.3",
        explanation: "Exact acceptance of both on the same pairs, against each other and the flow.",
        check: hub_equals_greedy,
        ..Claim::HOLDS
    },
    Claim {
        id: "spechub-top",
        statement: "SpecHub emits the top draft token exactly as often as the target asks, always as \
            an accepted draft",
        source: "SpecHub, Corollary 1",
        explanation: "Exact mass of accepted draws of the hub token, summed over all pairs, against \
            p of it.",
        check: spechub_top,
        ..Claim::HOLDS
    },
    Claim {
        id: "spechub-beats-rrs",
        statement: "SpecHub accepts at least as much as recursive rejection with replacement at n = 2 \
            if q(a)/(1-q(a)) >= 1 - sum of min(p, q)",
        source: "SpecHub, Theorem 3",
        explanation: "Exact acceptance of both on random pairs that meet the condition. Proof: let r \
            be the right-hand side, the probability that the first draft is rejected. Recursive \
            rejection accepts min(p, q) + min((p-q)+, r q) = min(p, (1+r) q) of a token; SpecHub \
            accepts p(a) of a and min(p, q/(1-q(a))) of any other, and 1/(1-q(a)) = \
            1 + q(a)/(1-q(a)) >= 1 + r.",
        check: spechub_beats_rrs,
        ..Claim::HOLDS
    },
    Claim {
        id: "spechub-beats-otm",
        statement: "SpecHub accepts at least the optimum of two drafts with replacement if \
            q(a) >= 1/2",
        source: "SpecHub, Theorem 4",
        explanation: "Exact acceptance against the exact optimum on random pairs that meet the \
            condition. Proof: with replacement a token x other than a is drafted with probability at \
            most 2 q(x) <= q(x)/(1-q(a)), and SpecHub accepts min(p(x), q(x)/(1-q(a))) of it and all \
            of p(a).",
        check: spechub_beats_otm,
        ..Claim::HOLDS
    },
    Claim {
        id: "kseq-ratio",
        statement: "k-seq accepts at least (1-(1-1/n)^n) alpha*, hence at least (1-1/e) alpha*",
        source: "SpecTr, Theorem 2",
        explanation: "Its algorithmic acceptance, by formula, against the flow on random pairs; the \
            smallest ratio found is evidence of how much is left.",
        check: kseq_ratio,
        ..Claim::HOLDS
    },
    Claim {
        id: "rrs-wo-recursion",
        statement: "after rejections the residual of recursive rejection without replacement is \
            proportional to (p - L q)+ for one scalar L, so its acceptance needs no enumeration",
        source: "ours",
        explanation: "Acceptance by the recursion in (L, s) against the law summed over all tuples, \
            n = 2 to 4.",
        check: rrs_wo_recursion,
        ..Claim::HOLDS
    },
];

/// Exact membership acceptance, summed over tuples.
fn accepted(problem: &Problem, name: VerifierName) -> Option<Rational> {
    verify(problem)
        .measured(name)?
        .membership
        .rational()
        .cloned()
}

fn measured(problem: &Problem) -> Vec<(VerifierName, Measured)> {
    let evaluation = verify(problem);
    VerifierName::ALL
        .into_iter()
        .filter_map(|name| Some((name, evaluation.measured(name)?.clone())))
        .collect()
}

fn lossless(finding: &mut Finding) {
    let mut family = Family::new(301);
    for scheme in SchemeName::ALL {
        for problem in family.problems(scheme, 12, 4, 3) {
            let runs = measured(&problem);
            let all_drafts = |name: VerifierName| runs.iter().any(|(run, _)| *run == name);
            finding.require(
                all_drafts(VerifierName::EXACT_MATCH) && all_drafts(VerifierName::OPTIMAL),
                || format!("{}: exact-match or optimal was not run", describe(&problem)),
            );
            for (name, result) in runs {
                finding.require(result.lossless == Some(true), || {
                    format!("{}: {} is not lossless", describe(&problem), name.as_str())
                });
                finding.require(!result.exceeds_optimum, || {
                    format!("{}: {} exceeds alpha*", describe(&problem), name.as_str())
                });
                finding.require(result.formula_agrees != Some(false), || {
                    format!("{}: {}'s formula is off", describe(&problem), name.as_str())
                });
            }
        }
    }
    finding.count("problems a law", 12);
}

fn optimal_attains(finding: &mut Finding) {
    let mut family = Family::new(302);
    for scheme in SchemeName::ALL {
        for problem in family.problems(scheme, 15, 4, 3) {
            let (found, alpha) = (accepted(&problem, VerifierName::OPTIMAL), optimum(&problem));
            finding.require(found.as_ref() == Some(&alpha), || {
                format!("{}: accepts {found:?} of {alpha}", describe(&problem))
            });
        }
    }
    finding.count("problems a law", 15);
}

fn greedy_optimal(finding: &mut Finding) {
    let mut family = Family::new(303);
    let problems = family.problems(SchemeName::GREEDY, 200, 6, 4);
    finding.count("problems", problems.len() as u64);
    for problem in &problems {
        let (found, alpha) = (accepted(problem, VerifierName::GREEDY), optimum(problem));
        finding.require(found.as_ref() == Some(&alpha), || {
            format!("{}: accepts {found:?} of {alpha}", describe(problem))
        });
    }
}

/// The same pair under two draft laws.
fn hub_pairs(seed: u64, count: usize, vocab: usize) -> Vec<(Problem, Problem, Problem)> {
    let mut family = Family::new(seed);
    family
        .problems(SchemeName::HUB, count, vocab, 2)
        .into_iter()
        .filter_map(|hub| {
            let greedy = under(&hub, Greedy::new)?;
            let iid = under(&hub, WithReplacement::new)?;
            Some((hub, greedy, iid))
        })
        .collect()
}

fn hub_equals_greedy(finding: &mut Finding) {
    let pairs = hub_pairs(304, 150, 6);
    finding.count("pairs", pairs.len() as u64);
    for (hub, greedy, _) in &pairs {
        let (a, b) = (
            accepted(hub, VerifierName::SPECHUB),
            accepted(greedy, VerifierName::GREEDY),
        );
        finding.require(a.is_some() && a == b && a == Some(optimum(hub)), || {
            format!("{}: {a:?} {b:?}", describe(hub))
        });
    }
}

fn spechub_top(finding: &mut Finding) {
    let mut family = Family::new(305);
    let problems = family.problems(SchemeName::HUB, 150, 6, 2);
    finding.count("problems", problems.len() as u64);
    for problem in &problems {
        let Some(draft) = problem.scheme().draft().cloned() else {
            continue;
        };
        let hub = Hub::new(draft).hub();
        let Ok(rule) = verifier(VerifierName::SPECHUB, problem) else {
            continue;
        };
        let mut emitted = Rational::zero();
        problem
            .scheme()
            .for_each_tuple_exact(&mut |tuple, probability| {
                if let Some(law) = rule.conditional_exact(tuple) {
                    for (token, mass) in tuple.iter().zip(&law.accepted) {
                        if *token as usize == hub {
                            emitted += mass * probability;
                        }
                    }
                }
            });
        let wanted = problem.target().exact().probability(hub);
        finding.require(emitted == wanted, || {
            format!("{}: {emitted} of {wanted}", describe(problem))
        });
    }
}

fn spechub_beats_rrs(finding: &mut Finding) {
    let mut tried = 0;
    let mut smallest: Option<Rational> = None;
    for (hub, _, iid) in hub_pairs(306, 1500, 6) {
        let Some(draft) = hub.scheme().draft() else {
            continue;
        };
        let (p, q) = (hub.target().exact(), draft.exact());
        let top = (0..hub.vocab())
            .map(|token| q.probability(token))
            .max()
            .unwrap_or_default();
        let overlap: Rational = (0..hub.vocab())
            .map(|token| p.probability(token).min(q.probability(token)))
            .sum();
        // q(a) >= (1 - overlap)(1 - q(a))
        if top < (Rational::one() - overlap) * (Rational::one() - &top) {
            continue;
        }
        tried += 1;
        let exact = |problem: &Problem, name| {
            verifier(name, problem)
                .ok()?
                .acceptance()
                .membership
                .rational()
                .cloned()
        };
        let a = exact(&hub, VerifierName::SPECHUB).unwrap_or_else(|| optimum(&hub));
        let Some(b) = exact(&iid, VerifierName::RRS).or_else(|| accepted(&iid, VerifierName::RRS))
        else {
            continue;
        };
        let gain = a - b;
        finding.require(!gain.is_negative(), || {
            format!("{}: {gain}", describe(&hub))
        });
        smallest = Some(smallest.map_or(gain.clone(), |known| known.min(gain)));
    }
    finding.count("pairs that meet the condition", tried);
    finding.enough(tried > 100, "pairs");
    finding.text(
        "smallest gain",
        smallest.map_or(String::new(), |gain| format_rational(&gain)),
    );
}

fn spechub_beats_otm(finding: &mut Finding) {
    let mut tried = 0;
    for (hub, _, iid) in hub_pairs(307, 1200, 6) {
        let Some(draft) = hub.scheme().draft() else {
            continue;
        };
        let q = draft.exact();
        let two = Rational::from_integer(2.into());
        if !(0..hub.vocab()).any(|token| q.probability(token) * &two >= Rational::one()) {
            continue;
        }
        tried += 1;
        let gain = optimum(&hub) - optimum(&iid);
        finding.require(!gain.is_negative(), || {
            format!("{}: {gain}", describe(&hub))
        });
    }
    finding.count("pairs with q(a) >= 1/2", tried);
    finding.enough(tried > 100, "pairs");
}

fn kseq_ratio(finding: &mut Finding) {
    let mut family = Family::new(308);
    let problems = family.problems(SchemeName::WITH_REPLACEMENT, 400, 6, 6);
    finding.count("problems", problems.len() as u64);
    let mut smallest = f64::INFINITY;
    for problem in &problems {
        let Ok(rule) = verifier(VerifierName::K_SEQ, problem) else {
            finding.require(false, || {
                format!("{}: k-seq does not apply", describe(problem))
            });
            continue;
        };
        let alpha = round_nearest(&optimum(problem));
        let accepts = rule.acceptance().algorithmic.upper();
        let n = problem.drafts() as i32;
        let factor = 1.0 - (1.0 - 1.0 / f64::from(n)).powi(n);
        finding.require(accepts >= factor * alpha - 1e-12, || {
            format!("{}: {accepts} of {alpha}", describe(problem))
        });
        if alpha > 0.0 {
            smallest = smallest.min(accepts / alpha);
        }
    }
    finding.number("smallest ratio to alpha*", smallest);
    finding.number("1 - 1/e", 1.0 - (-1.0f64).exp());
}

fn rrs_wo_recursion(finding: &mut Finding) {
    let mut family = Family::new(309);
    let mut worst: f64 = 0.0;
    let problems = family.problems(SchemeName::WITHOUT_REPLACEMENT, 150, 5, 4);
    finding.count("problems", problems.len() as u64);
    for problem in &problems {
        let Some(summed) = accepted(problem, VerifierName::RRS_WO) else {
            finding.require(false, || format!("{}: not summed", describe(problem)));
            continue;
        };
        let Ok(rule) = verifier(VerifierName::RRS_WO, problem) else {
            continue;
        };
        let rate = rule.acceptance().membership;
        let truth = round_nearest(&summed);
        worst = worst.max((rate.value() - truth).abs());
        finding.require(
            rate.lower() <= truth + 1e-12 && truth <= rate.upper() + 1e-12,
            || format!("{}: {rate:?} {truth}", describe(problem)),
        );
    }
    finding.require(worst <= 1e-6, || format!("off by {worst:e}"));
    finding.text("largest difference at most", "1e-6");
}
