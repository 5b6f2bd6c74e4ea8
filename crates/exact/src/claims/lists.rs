//! Claims about rows that list some tokens only.

use super::Finding;
use super::claim::claims;
use super::family::{Family, describe, drafting, optimum, under, whole};
use num_traits::Zero;
use specgap_core::problem::Problem;
use specgap_core::scheme::{WithReplacement, WithoutReplacement};
use specgap_core::verifier::{VerifierName, verifier};
use specgap_number::distribution::Rational;

claims! {
    holds "truncated-bounds" by bounds,
        "of all rows that agree on some tokens, alpha* of i.i.d. drafts and of sequential \
        draws is largest where all others are one token, and smallest where one of the others \
        has all of their p and the rest of them share their q evenly",
        "this crate (docs/theory/truncated-rows.md)",
        "Exact optima of random rows of up to six tokens, of which one to three are \
        listed, against those of the two other rows. For sequential draws the upper end needs \
        the race alone: a set with nothing of the rest has the same Q in every row, and one \
        with all of it has the least Q where it is one token.";
    holds "rrs-wo-above-rrs" by rejection,
        "recursive rejection without replacement accepts no less than recursive rejection \
        of i.i.d. drafts from the same q",
        "this crate (docs/theory/truncated-rows.md)",
        "Both accept 1 - E[M(L_n)]; a step of the first adds M(L)/(1-s) to L, one of the \
        second M(L). Exact acceptance on random pairs of rows, V <= 5, n <= 3.";
}

/// i.i.d. and sequential drafts of one pair of rows, in this order.
fn pair(p: &[Rational], q: &[Rational], drafts: usize) -> Option<[Problem; 2]> {
    let law = |q| WithReplacement::new(q, drafts);
    let iid = drafting(p.to_vec(), q.to_vec(), law)?;
    let sequential = under(&iid, WithoutReplacement::new)?;
    Some([iid, sequential])
}

fn bounds(finding: &mut Finding) {
    let mut family = Family::new(951);
    let (mut rows, mut wide) = (0u64, 0u64);
    while rows < 150 {
        let (listed, others) = (family.between(1, 3), family.between(1, 3));
        let drafts = family.between(1, 3.min(listed + 1));
        let [p, q] = family.rows(listed + others);
        let (p_listed, p_rest) = p.split_at(listed);
        let (q_listed, q_rest) = q.split_at(listed);
        let (a, b): (Rational, Rational) = (p_rest.iter().sum(), q_rest.iter().sum());
        let with = |listed: &[Rational], more: Vec<Rational>| [listed.to_vec(), more].concat();
        let one = pair(
            &with(p_listed, vec![a.clone()]),
            &with(q_listed, vec![b.clone()]),
            drafts,
        );
        let share = &b / whole(others);
        let mut apart_p = vec![Rational::zero(); others + 1];
        let mut apart_q = vec![share; others + 1];
        (apart_p[0], apart_q[0]) = (a, Rational::zero());
        let apart = pair(&with(p_listed, apart_p), &with(q_listed, apart_q), drafts);
        let (Some(full), Some(one), Some(apart)) = (pair(&p, &q, drafts), one, apart) else {
            continue;
        };
        rows += 1;
        for ((full, one), apart) in full.iter().zip(&one).zip(&apart) {
            let (lower, value, upper) = (optimum(apart), optimum(full), optimum(one));
            wide += u64::from(lower < upper);
            finding.require(lower <= value && value <= upper, || {
                format!(
                    "{}, {listed} listed: {value} is not in [{lower}, {upper}]",
                    describe(full)
                )
            });
        }
    }
    finding.count("rows", rows);
    finding.count("bounds that differ", wide);
}

fn rejection(finding: &mut Finding) {
    let mut family = Family::new(952);
    let (mut pairs, mut above) = (0u64, 0u64);
    while pairs < 150 {
        let vocab = family.between(2, 5);
        let drafts = family.between(1, 3.min(vocab));
        let [p, q] = family.rows(vocab);
        let Some([iid, sequential]) = pair(&p, &q, drafts) else {
            continue;
        };
        let rate = |problem: &Problem, name: VerifierName| {
            let acceptance = verifier(name, problem).ok()?.acceptance();
            acceptance.membership.rational().cloned()
        };
        // Rates of rules are exact at this size.
        let rates = (rate(&iid, VerifierName::RRS), exact_rrs_wo(&sequential));
        let (Some(with), Some(without)) = rates else {
            finding.require(false, || format!("{}: no exact rate", describe(&iid)));
            continue;
        };
        pairs += 1;
        above += u64::from(without > with);
        finding.require(without >= with, || {
            format!("{}: {without} is below {with}", describe(&iid))
        });
    }
    finding.count("pairs", pairs);
    finding.count("pairs where it accepts more", above);
}

/// The acceptance of `rrs-wo`, summed over its tuples.
fn exact_rrs_wo(problem: &Problem) -> Option<Rational> {
    let rule = verifier(VerifierName::RRS_WO, problem).ok()?;
    let law = specgap_core::verifier::output_law_exact(&*rule, problem.scheme())?;
    Some(law.algorithmic)
}
