//! Claims about verifiers on single-step problems.

use super::Finding;
use super::claim::claims;
use super::family::{Family, describe, each, half, optimum, over, overlap, rows, under, whole};
use crate::evaluate::verify;
use num_traits::Signed;
use specgap_core::problem::Problem;
use specgap_core::scheme::{Greedy, Hub, SchemeName, WithReplacement};
use specgap_core::verifier::{VerifierName, verifier};
use specgap_number::distribution::{Rational, round_nearest};
use specgap_number::number::Number;

claims! {
    holds "verifiers-lossless" by lossless,
        "token, rrs, rrs-wo, shared-gumbel, gls, k-seq, spechub, greedy, optimal and exact-match \
        emit exactly the target's law under their own draft laws, and none accepts more than alpha*",
        "Leviathan et al.; SpecTr, Theorem 2; SpecHub, Theorem 2; Hu et al., sec. 2 and 5; \
        trymirai/lalamo, pull request 209",
        "The output law is summed over all tuples, in fractions, with total variation \
        0 asked for; membership acceptance is compared with the flow's optimum.";
    holds "optimal-attains" by optimal_attains,
        "the verifier that follows the maximum flow's plan accepts exactly alpha*",
        "SpecTr, sec. 4; Hu et al., sec. 3",
        "Exact acceptance of the plan's conditional laws, summed over tuples, against \
        the flow, under all seven draft laws.";
    holds "greedy-optimal" by greedy_optimal,
        "greedy verification attains alpha* of greedy drafts",
        "Hu et al., Theorem 7",
        "Exact acceptance against the flow.";
    holds "hub-equals-greedy" by hub_equals_greedy,
        "SpecHub's acceptance equals greedy's with two drafts, and both are optimal for \
        their draft laws",
        "Hu et al., sec. 5.3",
        "Exact acceptance of both on the same pairs, against each other and the flow.";
    holds "spechub-top" by spechub_top,
        "SpecHub emits the top draft token exactly as often as the target asks, always as \
        an accepted draft",
        "SpecHub, Corollary 1",
        "Exact mass of accepted draws of the hub token, summed over all pairs, against \
        p of it.";
    holds "spechub-beats-rrs" by spechub_beats_rrs,
        "SpecHub accepts at least as much as recursive rejection with replacement at n = 2 \
        if q(a)/(1-q(a)) >= 1 - sum of min(p, q)",
        "SpecHub, Theorem 3",
        "Exact acceptance of both on random pairs that meet the condition. Proof: let r \
        be the right-hand side, the probability that the first draft is rejected. Recursive \
        rejection accepts min(p, q) + min((p-q)+, r q) = min(p, (1+r) q) of a token; SpecHub \
        accepts p(a) of a and min(p, q/(1-q(a))) of any other, and 1/(1-q(a)) = \
        1 + q(a)/(1-q(a)) >= 1 + r.";
    holds "spechub-beats-otm" by spechub_beats_otm,
        "SpecHub accepts at least the optimum of two drafts with replacement if \
        q(a) >= 1/2",
        "SpecHub, Theorem 4",
        "Exact acceptance against the exact optimum on random pairs that meet the \
        condition. Proof: with replacement a token x other than a is drafted with probability at \
        most 2 q(x) <= q(x)/(1-q(a)), and SpecHub accepts min(p(x), q(x)/(1-q(a))) of it and all \
        of p(a).";
    holds "kseq-ratio" by kseq_ratio,
        "k-seq accepts at least (1-(1-1/n)^n) alpha*, hence at least (1-1/e) alpha*",
        "SpecTr, Theorem 2",
        "Its algorithmic acceptance, by formula, against the flow on random pairs; the \
        smallest ratio found is evidence of how much is left.";
    holds "rrs-wo-recursion" by rrs_wo_recursion,
        "after rejections the residual of recursive rejection without replacement is \
        proportional to (p - L q)+ for one scalar L, so its acceptance needs no enumeration",
        "ours",
        "Acceptance by the recursion in (L, s) against the law summed over all tuples, \
        n = 2 to 4.";
    holds "shared-gumbel-bound" by shared_gumbel_bound,
        "the token of least E/p is that of least E/q, one noise E, with the sum over i of \
        1/sum over j of max(p_j/p_i, q_j/q_i), which is at least (1-TV)/(1+TV)",
        "Daliri, Musco, Suresh 2024, \"Coupling without communication\"",
        "The sum against what the rule accepts of one draft, in fractions; equality with \
        the bound where p = (0, 1/2, 1/2) and q = (1/2, 0, 1/2). Proof of the bound: with \
        m = min(p_i, q_i) a term is m/sum over j of max(p_j m/p_i, q_j m/q_i), and that sum is at \
        most the sum of max(p_j, q_j) = 1+TV.";
    holds "gls-bound" by gls_bound,
        "of n noises, the token of least E/p over all is that of least E/q in one of them with at least the sum \
        over j of n/sum over i of [max(p_i/p_j, q_i/q_j) + (n-1) p_i/p_j]",
        "GLS, arXiv 2506.05632, by notes on it; the proof is ours",
        "The rule's rate against the sum, in fractions. Proof: what is summed is p_j n/(n + A), A the sum over \
        i of (p_j q_i/q_j - p_i)+: the chance that the output is j, and the draft of its own noise \
        (docs/theory/shared-noise.md).";
    refuted "shared-gumbel-over-rrs-wo" of shared_gumbel_over_rrs_wo,
        in ["refuted/shared-gumbel-below-rrs-wo.toml"]
        "shared-gumbel accepts at least as much as rrs-wo of as many drafts",
        "a natural guess; refuted by specgap",
        "Wrong for one draft, which rrs-wo accepts with 1-TV, the most that any rule does: \
        p = (0, 1/2, 1/2), q = (1/2, 0, 1/2) give 1/3 and 1/2.";
    refuted "rrs-wo-over-shared-gumbel" of rrs_wo_over_shared_gumbel,
        in ["refuted/shared-gumbel-above-rrs-wo.toml"]
        "rrs-wo, which sees q, accepts at least as much as shared-gumbel of as many drafts",
        "a natural guess; refuted by specgap",
        "Wrong for two drafts: p = (0, 1/3, 2/3), q = (1/3, 1/3, 1/3) give 5/6 and 9/10. \
        Rejection loses all where 0 is refused and 1 comes next; with one noise an output of 2 \
        makes it likely that 2 comes early.";
}

/// Exact membership acceptance, summed over tuples.
fn accepted(problem: &Problem, name: VerifierName) -> Option<Rational> {
    let evaluation = verify(problem);
    evaluation.measured(name)?.membership.rational().cloned()
}

fn lossless(finding: &mut Finding) {
    finding.count("problems a law", 12);
    over(
        finding,
        &Family::new(301).of_all_schemes(12, 4, 3),
        |finding, problem| {
            let evaluation = verify(problem);
            for name in [VerifierName::EXACT_MATCH, VerifierName::OPTIMAL] {
                let is_run = evaluation.measured(name).is_some();
                finding.require(is_run, || format!("{name} was not run"));
            }
            let runs = evaluation.verifiers.iter();
            for (name, result) in runs.filter_map(|one| Some((one.name, one.outcome.done()?))) {
                let formula = result.formula_agrees != Some(false);
                for (holds, otherwise) in [
                    (result.lossless == Some(true), "is not lossless"),
                    (!result.exceeds_optimum, "exceeds alpha*"),
                    (formula, "has a formula that is off"),
                ] {
                    finding.require(holds, || format!("{name} {otherwise}"));
                }
            }
            Some(())
        },
    );
}

/// Requires that a verifier accepts alpha* of every problem.
fn attains(finding: &mut Finding, problems: &[Problem], name: VerifierName) {
    over(finding, problems, |finding, problem| {
        finding.equal(accepted(problem, name)?, optimum(problem));
        Some(())
    });
}

fn optimal_attains(finding: &mut Finding) {
    let problems = Family::new(302).of_all_schemes(15, 4, 3);
    attains(finding, &problems, VerifierName::OPTIMAL);
    finding.count("problems a law", 15);
}

fn greedy_optimal(finding: &mut Finding) {
    let problems = Family::new(303).problems(SchemeName::GREEDY, 200, 6, 4);
    finding.count("problems", problems.len() as u64);
    attains(finding, &problems, VerifierName::GREEDY);
}

/// Draws problems of the hub law, each with the greedy and the i.i.d. law on the same rows.
fn hub_pairs(seed: u64, count: usize, vocab: usize) -> Vec<(Problem, Problem, Problem)> {
    let problems = Family::new(seed).problems(SchemeName::HUB, count, vocab, 2);
    let pairs = problems.into_iter().filter_map(|hub| {
        let greedy = under(&hub, Greedy::new)?;
        let iid = under(&hub, WithReplacement::new)?;
        Some((hub, greedy, iid))
    });
    pairs.collect()
}

fn hub_equals_greedy(finding: &mut Finding) {
    let pairs = hub_pairs(304, 150, 6);
    finding.count("pairs", pairs.len() as u64);
    for (hub, greedy, _) in &pairs {
        let a = accepted(hub, VerifierName::SPECHUB);
        let b = accepted(greedy, VerifierName::GREEDY);
        finding.require(a.is_some() && a == b && a == Some(optimum(hub)), || {
            format!("{}: {a:?} {b:?}", describe(hub))
        });
    }
}

fn spechub_top(finding: &mut Finding) {
    let problems = Family::new(305).problems(SchemeName::HUB, 150, 6, 2);
    each(finding, "problems", &problems, |finding, problem| {
        let hub = Hub::new(problem.scheme().draft()?.clone()).hub();
        let rule = verifier(VerifierName::SPECHUB, problem).ok()?;
        let mut emitted = Rational::zero();
        problem.scheme().for_each_tuple_exact(&mut |tuple, chance| {
            if let Some(law) = rule.conditional_exact(tuple) {
                let each = tuple.iter().zip(&law.accepted);
                for (_, mass) in each.filter(|(token, _)| **token as usize == hub) {
                    emitted += mass * chance;
                }
            }
        });
        let wanted = problem.target().exact().probability(hub);
        finding.equal(emitted, wanted);
        Some(())
    });
}

fn spechub_beats_rrs(finding: &mut Finding) {
    let tried = "pairs that meet the condition";
    let mut gains = Vec::new();
    for (hub, _, iid) in hub_pairs(306, 1500, 6) {
        let Some([p, q]) = rows(&hub) else { continue };
        let top = q.iter().max().cloned().unwrap_or_default();
        // q(a) >= (1 - overlap)(1 - q(a))
        if top < overlap(&p, &q).complement() * top.complement() {
            continue;
        }
        finding.add(tried, 1);
        let exact = |problem: &Problem, name| {
            let acceptance = verifier(name, problem).ok()?.acceptance();
            acceptance.membership.rational().cloned()
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
        gains.push(gain);
    }
    finding.enough(&[tried], 100);
    let least = gains.into_iter().min().unwrap_or_default();
    finding.fraction("smallest gain", &least);
}

fn spechub_beats_otm(finding: &mut Finding) {
    let tried = "pairs with q(a) >= 1/2";
    for (hub, _, iid) in hub_pairs(307, 1200, 6) {
        let top = rows(&hub).and_then(|[_, q]| q.into_iter().max());
        if top.is_some_and(|top| top >= half()) {
            finding.add(tried, 1);
            let gain = optimum(&hub) - optimum(&iid);
            finding.require(!gain.is_negative(), || {
                format!("{}: {gain}", describe(&hub))
            });
        }
    }
    finding.enough(&[tried], 100);
}

fn kseq_ratio(finding: &mut Finding) {
    let problems = Family::new(308).problems(SchemeName::WITH_REPLACEMENT, 400, 6, 6);
    let mut smallest = f64::INFINITY;
    each(finding, "problems", &problems, |finding, problem| {
        let rule = verifier(VerifierName::K_SEQ, problem).ok()?;
        let alpha = round_nearest(&optimum(problem));
        let accepts = rule.acceptance().algorithmic.upper();
        let n = problem.drafts() as i32;
        let factor = 1.0 - (1.0 - 1.0 / f64::from(n)).powi(n);
        finding.at_most("the share", factor * alpha - 1e-12, accepts);
        if alpha > 0.0 {
            smallest = smallest.min(accepts / alpha);
        }
        Some(())
    });
    finding.number("smallest ratio to alpha*", smallest);
    finding.number("1 - 1/e", 1.0 - (-1.0f64).exp());
}

fn rrs_wo_recursion(finding: &mut Finding) {
    let problems = Family::new(309).problems(SchemeName::WITHOUT_REPLACEMENT, 150, 5, 4);
    let mut worst: f64 = 0.0;
    each(finding, "problems", &problems, |finding, problem| {
        let truth = round_nearest(&accepted(problem, VerifierName::RRS_WO)?);
        let rule = verifier(VerifierName::RRS_WO, problem).ok()?;
        let rate = rule.acceptance().membership;
        worst = worst.max((rate.value() - truth).abs());
        finding.at_most("the lower end", rate.lower(), truth + 1e-12);
        finding.at_most("the truth", truth, rate.upper() + 1e-12);
        Some(())
    });
    finding.require(worst <= 1e-6, || format!("off by {worst:e}"));
    finding.text("largest difference at most", "1e-6");
}

fn shared_gumbel_bound(finding: &mut Finding) {
    let mut problems = Family::new(310).problems(SchemeName::WITHOUT_REPLACEMENT, 300, 6, 1);
    let tight = include_str!("../../../../problems/refuted/shared-gumbel-below-rrs-wo.toml");
    problems.extend(finding.shipped([tight]).into_iter().flatten());
    let mut least: Option<Rational> = None;
    each(finding, "pairs", &problems, |finding, problem| {
        let [p, q] = rows(problem)?;
        let both = || p.iter().zip(&q);
        let mut sum = Rational::zero();
        for (p_i, q_i) in both().filter(|(p, q)| !p.is_nil() && !q.is_nil()) {
            let larger = both().map(|(p, q)| p.over(p_i).max(q.over(q_i)));
            sum += Rational::one().over(&larger.sum());
        }
        let found = accepted(problem, VerifierName::SHARED_GUMBEL)?;
        finding.equal(&found, &sum);
        let overlap = overlap(&p, &q);
        // 1 + TV is 2 - overlap.
        let bound = overlap.over(&overlap.complement().plus(&Rational::one()));
        finding.at_most("the bound", &bound, &found);
        if !overlap.is_nil() {
            let spare = found - bound;
            least = least.take().into_iter().chain([spare]).min();
        }
        Some(())
    });
    finding.fraction("smallest excess over the bound", &least.unwrap_or_default());
}

fn gls_bound(finding: &mut Finding) {
    let mut problems = Family::new(311).problems(SchemeName::WITH_REPLACEMENT, 100, 4, 2);
    problems.extend(Family::new(312).problems(SchemeName::WITH_REPLACEMENT, 20, 3, 3));
    each(finding, "pairs", &problems, |finding, problem| {
        let [p, q] = rows(problem)?;
        let both = || p.iter().zip(&q);
        let drafts = whole(problem.drafts());
        let mut bound = Rational::zero();
        for (p_j, q_j) in both().filter(|(p, q)| !p.is_nil() && !q.is_nil()) {
            let each = both().map(|(p, q)| {
                let more = p.over(p_j).times(&drafts.minus(&Rational::one()));
                p.over(p_j).max(q.over(q_j)).plus(&more)
            });
            bound += drafts.over(&each.sum());
        }
        let found = accepted(problem, VerifierName::GLS)?;
        finding.at_most("the bound", &bound, &found);
        finding.tally("pairs above the bound", bound < found);
        Some(())
    });
}

/// Requires that the first of two rules accepts no less than the second.
fn accepts_no_less(finding: &mut Finding, [problem]: [Problem; 1], names: [VerifierName; 2]) {
    let [Some(one), Some(other)] = names.map(|name| accepted(&problem, name)) else {
        return;
    };
    finding.fraction(names[0].as_str(), &one);
    finding.fraction(names[1].as_str(), &other);
    finding.require(one >= other, || {
        format!("{}: {one} and {other}", describe(&problem))
    });
}

fn shared_gumbel_over_rrs_wo(finding: &mut Finding, problems: [Problem; 1]) {
    let names = [VerifierName::SHARED_GUMBEL, VerifierName::RRS_WO];
    accepts_no_less(finding, problems, names);
}

fn rrs_wo_over_shared_gumbel(finding: &mut Finding, problems: [Problem; 1]) {
    let names = [VerifierName::RRS_WO, VerifierName::SHARED_GUMBEL];
    accepts_no_less(finding, problems, names);
}
