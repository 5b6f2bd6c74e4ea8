//! Claims about rows that list some tokens only.

use super::Finding;
use super::claim::claims;
use super::family::{Family, describe, drafting, optimum, under, whole};
use specgap_core::problem::Problem;
use specgap_core::scheme::{WithReplacement, WithoutReplacement};
use specgap_core::verifier::{VerifierName, output_law_exact, verifier};
use specgap_number::distribution::Rational;
use specgap_number::number::Number;

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
    while finding.counted("rows") < 150 {
        let (listed, others) = (family.between(1, 3), family.between(1, 3));
        let drafts = family.between(1, 3.min(listed + 1));
        let [p, q] = family.rows(listed + others);
        let (p_listed, p_rest) = p.split_at(listed);
        let (q_listed, q_rest) = q.split_at(listed);
        let [a, b] = [p_rest, q_rest].map(Rational::total);
        let with = |p: &[Rational], q: &[Rational]| {
            pair(&[p_listed, p].concat(), &[q_listed, q].concat(), drafts)
        };
        let mut apart_p = vec![Rational::zero(); others + 1];
        let mut apart_q = vec![&b / whole(others); others + 1];
        (apart_p[0], apart_q[0]) = (a.clone(), Rational::zero());
        let rows = [
            with(&apart_p, &apart_q),
            with(p_rest, q_rest),
            with(&[a], &[b]),
        ];
        let [Some(apart), Some(full), Some(one)] = rows else {
            continue;
        };
        finding.add("rows", 1);
        for ((full, one), apart) in full.iter().zip(&one).zip(&apart) {
            let (lower, value, upper) = (optimum(apart), optimum(full), optimum(one));
            finding.tally("bounds that differ", lower < upper);
            finding.require(lower <= value && value <= upper, || {
                let name = describe(full);
                format!("{name}, {listed} listed: {value} is not in [{lower}, {upper}]")
            });
        }
    }
}

fn rejection(finding: &mut Finding) {
    let mut family = Family::new(952);
    while finding.counted("pairs") < 150 {
        let vocab = family.between(2, 5);
        let drafts = family.between(1, 3.min(vocab));
        let [p, q] = family.rows(vocab);
        let Some([iid, sequential]) = pair(&p, &q, drafts) else {
            continue;
        };
        let name = || describe(&iid);
        finding.about(name, |finding| {
            finding.add("pairs", 1);
            // Rates of rules are exact at this size.
            let with = verifier(VerifierName::RRS, &iid).ok()?.acceptance();
            let rule = verifier(VerifierName::RRS_WO, &sequential).ok()?;
            let without = output_law_exact(&*rule, sequential.scheme())?.algorithmic;
            let with = with.membership.rational()?;
            finding.at_most("i.i.d. drafts", with, &without);
            finding.tally("pairs where it accepts more", without > *with);
            Some(())
        });
    }
}
