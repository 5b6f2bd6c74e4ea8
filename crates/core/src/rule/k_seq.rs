//! `k-seq`: every draft is kept with min(1, p/(rho q)).

use super::step::{InTurn, Step, entry, normalise, ratio};
use super::{IID, RuleEntry, Verifies};

/// SpecTr's rule (Sun et al. 2023, "SpecTr: Fast speculative decoding via optimal transport",
/// Algorithm 2), with the smallest factor for which it is lossless.
#[derive(Debug)]
struct KSeq;

impl Step for KSeq {
    fn in_turn(&self, p: &[f64], q: &[f64], drafts: &[u32]) -> InTurn {
        let factor = factor(p, q, drafts.len());
        let ratios = drafts
            .iter()
            .map(|&token| ratio(entry(p, token) / factor, entry(q, token)))
            .collect();
        let taken: Vec<f64> = p.iter().zip(q).map(|(p, q)| (p / factor).min(*q)).collect();
        let share = repeats(taken.iter().sum(), drafts.len());
        let mut residual = p.to_vec();
        for (left, taken) in residual.iter_mut().zip(&taken) {
            *left = (*left - share * taken).max(0.0);
        }
        // At the root what p > rho q leaves is all there is: rounding is not.
        for (left, (p, q)) in residual.iter_mut().zip(p.iter().zip(q)) {
            if *p <= factor * q * (1.0 + 1e-12) {
                *left = 0.0;
            }
        }
        if !normalise(&mut residual) {
            residual.copy_from_slice(p);
        }
        InTurn { ratios, residual }
    }
}

/// (1 - (1-b)^n)/b, as the sum of the powers of 1-b: where p = q, rho b is 1 for every rho, and
/// b alone would not tell them apart.
fn repeats(one_draft: f64, drafts: usize) -> f64 {
    let miss = 1.0 - one_draft;
    (0..drafts).map(|k| miss.powi(k as i32)).sum()
}

/// The smallest rho in \[1, n\] with rho >= (1 - (1-b)^n)/b, b = sum of min(p/rho, q).
fn factor(p: &[f64], q: &[f64], drafts: usize) -> f64 {
    let fits = |factor: f64| {
        let b: f64 = p.iter().zip(q).map(|(p, q)| (p / factor).min(*q)).sum();
        b <= 0.0 || repeats(b, drafts) <= factor
    };
    let (mut low, mut high) = (1.0, drafts.max(1) as f64);
    if fits(low) {
        return low;
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if fits(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

pub(super) static K_SEQ: RuleEntry = RuleEntry {
    name: "k-seq",
    words: "keep each of n i.i.d. drafts with min(1, p/(rho q)), rho the same for all",
    step: Some(&KSeq),
    needs_full_rows: Some("what is left of p after a rejection is a sum over all tokens"),
    audited: true,
    ..RuleEntry::named(Verifies::Siblings, IID)
};
