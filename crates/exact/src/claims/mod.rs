//! The ledger of claims: every theorem, lemma and table that the field rests on
//! and that a machine can check, with a verdict.
//!
//! A check searches for a violation of its claim, in exact arithmetic wherever
//! the claim is about exact quantities, on families of problems from fixed
//! seeds. It has no other way to end: a violation refutes, none leaves the claim
//! standing, as proved or as searched. So a verdict that changes means that
//! either the claim or the code has turned, and [`compare`] fails on it.

mod baseline;
mod blocks;
mod claim;
mod codes;
mod counted;
mod family;
mod field;
mod frontier;
mod laws;
mod layers;
mod length;
mod levels;
mod lists;
mod moves;
mod optimum;
mod paths;
mod rollouts;
mod rounds;
mod scores;
mod seeds;
mod selected;
mod siblings;
mod slots;
mod starts;
mod table;
mod text;
mod traversal;
mod trees;
mod verifiers;

pub use baseline::{Baseline, BaselineClaim, Changes, VALUE_TOLERANCE, compare};
pub use claim::{Checked, Claim, Finding, Value, Verdict};
use specgap_base::pairs;
use specgap_base::side_by_side;

/// The whole ledger, in the order of the reports.
///
/// # Example
/// ```
/// use specgap_exact::claims::{Verdict, check_one, ledger};
/// let claim = ledger().into_iter().find(|claim| claim.id == "wo-formula").unwrap();
/// assert_eq!(check_one(&claim).verdict, Verdict::Refuted);
/// ```
pub fn ledger() -> Vec<Claim> {
    [
        optimum::CLAIMS,
        laws::CLAIMS,
        scores::CLAIMS,
        slots::CLAIMS,
        frontier::CLAIMS,
        moves::CLAIMS,
        verifiers::CLAIMS,
        field::CLAIMS,
        levels::CLAIMS,
        table::CLAIMS,
        blocks::CLAIMS,
        paths::CLAIMS,
        codes::CLAIMS,
        length::CLAIMS,
        text::CLAIMS,
        rounds::CLAIMS,
        siblings::CLAIMS,
        starts::CLAIMS,
        seeds::CLAIMS,
        rollouts::CLAIMS,
        trees::CLAIMS,
        traversal::CLAIMS,
        layers::CLAIMS,
        selected::CLAIMS,
        lists::CLAIMS,
        counted::CLAIMS,
    ]
    .concat()
}

/// Statements of the literature that no check here covers, with the reason.
pub const UNCHECKED: [(&str, &str); 8] = pairs! {
    "SpecTr, Lemma 2 and the paragraph on complexity: a plan in time polynomial in V^n"
        "a running time is measured in benches/, not proved by instances";
    "SpecTr, Theorem 2, last sentence: the factor is found in O(V log n)" "as above";
    "Hu et al., sec. 4.2: the optimum in O(V log V)"
        "as above; benches/ measures how the scan grows";
    "Hu et al., Table 1 and Figures 1 and 2"
        "they need the rows of the models and texts used there, which are not published";
    "SpecHub, Tables 1 to 3, and SpecTr's, SpecTr-GBV's and SpecDec++'s timings"
        "as above, and they depend on hardware";
    "SpecHub, Theorem 3 and 4 read token by token"
        "the proofs compare single tokens' rates; the checks take the statement about the total";
    "SpecDec++, Theorem 4.3: stop when the predicted rejection probability exceeds a threshold"
        "the threshold holds a problem-specific constant that the statement does not determine";
    "SpecTr-GBV, Definition of its optimum over conditionally independent couplings, K >= 2"
        "the set of couplings is degenerate, see gbv-cic-trivial; what the sum in Lemma 5.1 is a \
        maximum of is therefore not defined";
};

/// Runs one check.
pub fn check_one(claim: &Claim) -> Checked {
    let started = std::time::Instant::now();
    let mut finding = Finding::default();
    (claim.check)(&mut finding);
    let verdict = match finding.violation {
        Some(_) => Verdict::Refuted,
        None if claim.expected == Verdict::Supported => Verdict::Supported,
        None => Verdict::Holds,
    };
    Checked {
        claim: *claim,
        verdict,
        finding,
        seconds: started.elapsed().as_secs_f64(),
    }
}

/// Runs the checks of some claims, in parallel; the order is that of the ledger, and every
/// check has its own fixed seed.
pub fn check_some(asked: impl Fn(&Claim) -> bool, done: impl Fn() + Sync) -> Vec<Checked> {
    let claims: Vec<Claim> = ledger().into_iter().filter(|claim| asked(claim)).collect();
    side_by_side::each(&claims, |claim| {
        let checked = check_one(claim);
        done();
        checked
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_refuted_claims_have_counterexamples() {
        let ledger = ledger();
        let ids: std::collections::BTreeSet<_> = ledger.iter().map(|claim| claim.id).collect();
        assert_eq!(ids.len(), ledger.len());
        for claim in &ledger {
            for file in claim.counterexamples {
                let problems = concat!(env!("CARGO_MANIFEST_DIR"), "/../../problems");
                assert!(
                    std::path::Path::new(problems).join(file).is_file(),
                    "{file}"
                );
            }
            let refuted = claim.expected == Verdict::Refuted;
            assert_eq!(refuted, !claim.counterexamples.is_empty(), "{}", claim.id);
        }
    }
}
