//! alpha* between what one run of the level rule accepts and what its set proves.

use num_traits::One;
use specgap_core::certify::{self, CertificateError};
use specgap_core::problem::Problem;
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::{Level, Staged, Verifier, VerifierError, VerifierName};
use specgap_number::distribution::{Rational, format_rational, round_nearest, round_up};
use specgap_number::known::Known;

/// Why there is no enclosure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnclosureError {
    /// The level rule is not for this law of drafts.
    #[error(transparent)]
    Law(#[from] VerifierError),
    /// The set is refused, or the two bounds contradict each other.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// What one run of the level rule proves of alpha*: that it accepts so much, and that nothing
/// accepts more than 1 + P(H) - Q(H).
///
/// H is found in `f64`. P(H) and Q(H) are recomputed from the problem in fractions, so that the
/// upper bound holds whatever the run did; a bad H makes it wide.
#[derive(Clone, Debug)]
pub struct Enclosure {
    /// H, ascending.
    pub subset: Vec<usize>,
    /// 1 + P(H) - Q(H), at most 1, exactly.
    pub upper: Rational,
    /// What a rule accepts: the level rule, or level-4 where that accepts more, as it may of
    /// independent strata with tokens over cuts.
    pub accepted: Known,
    /// Which.
    pub rule: VerifierName,
}

impl Enclosure {
    /// alpha*: exact where the rule accepts the upper bound exactly, else between the two.
    pub fn rate(&self) -> Known {
        if self.accepted.rational() == Some(&self.upper) {
            return Known::exact(self.upper.clone());
        }
        let (lower, upper) = (self.accepted.lower(), round_up(&self.upper));
        let value = round_nearest(&self.upper).clamp(lower, upper);
        Known::rate(value, lower, upper)
    }
}

/// Runs the level rule once, and has its set checked by [`certify`].
///
/// # Errors
/// A law of drafts other than i.i.d. and stratified ones; bounds that contradict each other.
///
/// # Example
/// ```
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::{Straddle, Stratified};
/// use specgap_exact::evaluate::enclose;
/// use specgap_number::distribution::{Draft, Target};
/// // Token 1 is certain; token 0, the only one that is wanted, is drafted with 1/2.
/// let law = Stratified::new(Draft::new(&[0.25, 0.5, 0.25])?, 2, Straddle::Once);
/// let problem = Problem::new("strata", Target::new(&[1.0, 0.0, 0.0])?, law)?;
/// let found = enclose(&problem)?;
/// assert_eq!((found.subset, found.upper.to_string()), (vec![1, 2], "1/2".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn enclose(problem: &Problem) -> Result<Enclosure, EnclosureError> {
    let rule = Level::new(problem)?;
    let subset = rule.held();
    let proved = certify::upper_bound(problem, &subset)?.into_inner();
    let upper = proved.min(Rational::one());
    let (mut accepted, mut by) = (rule.acceptance().membership, VerifierName::LEVEL);
    if problem.scheme().name() == SchemeName::STRATIFIED_INDEPENDENT {
        let four = Staged::four(problem)?.acceptance().membership;
        if four.lower() > accepted.lower() {
            (accepted, by) = (four, VerifierName::LEVEL_4);
        }
    }
    if accepted.lower() > round_up(&upper) {
        return Err(CertificateError::Contradiction(
            accepted.lower().to_string(),
            format_rational(&upper),
        )
        .into());
    }
    Ok(Enclosure {
        subset,
        upper,
        accepted,
        rule: by,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::{Limits, solve};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_core::scheme::{
        DraftScheme, Straddle, Stratified, WithReplacement, WithoutReplacement,
    };
    use specgap_number::distribution::{Draft, Target, round_down};
    use std::sync::Arc;

    /// A row of fractions, some of them 0.
    fn row(rng: &mut ChaCha8Rng, vocab: usize, least: i64) -> Vec<Rational> {
        loop {
            let weights: Vec<i64> = (0..vocab).map(|_| rng.random_range(least..12)).collect();
            let total: i64 = weights.iter().sum();
            if total > 0 {
                let of = |weight: i64| Rational::new(weight.into(), total.into());
                return weights.into_iter().map(of).collect();
            }
        }
    }

    /// The set of one run proves in fractions the alpha* that a flow and a cut prove: for i.i.d.
    /// drafts and for strata that draw a token across a cut once, always; for independent strata
    /// where no token lies across a cut.
    #[test]
    fn the_set_of_a_run_proves_the_optimum_of_a_flow() {
        let mut rng = ChaCha8Rng::seed_from_u64(31);
        let (mut met, mut wide) = ([0; 3], 0);
        for _ in 0..60 {
            let vocab = rng.random_range(3..6);
            let drafts = rng.random_range(1..4);
            let (p, q) = (row(&mut rng, vocab, 0), row(&mut rng, vocab, 0));
            let draft = || Draft::from_rationals(q.clone()).unwrap();
            let strata = |straddle| Stratified::new(draft(), drafts, straddle);
            let laws: [Arc<dyn DraftScheme>; 3] = [
                Arc::new(WithReplacement::new(draft(), drafts)),
                Arc::new(strata(Straddle::Once)),
                Arc::new(strata(Straddle::Independent)),
            ];
            let straddles = strata(Straddle::Independent);
            let mut shares = straddles.strata().strata().iter().flatten();
            let straddles = shares.any(|s| s.across_right);
            for (law, met) in laws.into_iter().zip(&mut met) {
                let target = Target::from_rationals(p.clone()).unwrap();
                let problem = Problem::from_law("made", target, law).unwrap();
                let found = enclose(&problem).unwrap();
                let solved = solve(&problem, &Limits::default()).optimal_acceptance_rate;
                let optimum = solved.rational().unwrap();
                assert!(&found.upper >= optimum);
                assert!(found.accepted.lower() <= round_up(optimum));
                let rate = found.rate();
                assert!(rate.lower() <= round_up(optimum) && rate.upper() >= round_down(optimum));
                if &found.upper == optimum {
                    *met += 1;
                } else {
                    // Only where a token lies across a cut may a set be another one.
                    assert!(straddles, "{p:?} {q:?} {drafts}: {} {optimum}", found.upper);
                    wide += 1;
                }
            }
        }
        assert_eq!(met[0], 60);
        assert!(met[1] >= 57 && met[2] >= 50 && wide <= 8, "{met:?} {wide}");
    }

    /// Of independent strata with a token over a cut `level-4` may accept more than the level rule.
    #[test]
    fn the_lower_end_is_of_the_best_rule() {
        let q = Draft::new(&[0.4, 0.2, 0.2, 0.2]).unwrap();
        let law = Stratified::new(q, 2, Straddle::Independent);
        let target = Target::new(&[0.0, 0.125, 0.5, 0.375]).unwrap();
        let found = enclose(&Problem::new("over", target, law).unwrap()).unwrap();
        assert_eq!(found.rule, VerifierName::LEVEL_4);
        assert!(found.accepted.lower() > 0.893, "{found:?}");
    }

    #[test]
    fn iid_drafts_are_exact_and_other_laws_are_refused() {
        let target = Target::new(&[0.5, 0.5]).unwrap();
        let draft = Draft::new(&[0.75, 0.25]).unwrap();
        let law = WithReplacement::new(draft.clone(), 2);
        let problem = Problem::new("bernoulli", target.clone(), law).unwrap();
        let found = enclose(&problem).unwrap();
        assert_eq!(
            (found.subset, found.upper.to_string()),
            (vec![0], "15/16".to_owned())
        );
        let rate = enclose(&problem).unwrap().rate();
        assert_eq!(rate.rational().unwrap().to_string(), "15/16");
        let law = WithoutReplacement::new(draft, 1);
        let other = Problem::new("sequential", target, law).unwrap();
        assert!(matches!(enclose(&other), Err(EnclosureError::Law(_))));
    }
}
