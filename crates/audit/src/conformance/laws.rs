//! What a kernel has to do with a vector: the conditional laws of the rules.

use super::rows::wide;
use super::situation::Vector;
use specgap_core::problem::Problem;
use specgap_core::rule::{Drafts, RuleName};
use specgap_core::scheme::{DraftScheme, MadeOf, SchemeName, WithReplacement};
use specgap_core::verifier::{ConditionalLaw, verifier};
use specgap_number::distribution::{Draft, Target, round_nearest};
use std::error::Error;
use std::sync::Arc;

/// The law of what comes out, given the drafts.
#[derive(Clone, Debug, Default)]
pub(super) struct Laws {
    /// Of a chain: probability that draft k is kept once it is its turn. Of siblings: that
    /// draft k is, once those before were rejected. Of a chain from its end: that it is the last
    /// that is kept, once none behind it is.
    pub keeps: Vec<f64>,
    /// How far off, absolutely, rounding may bring each of these in a kernel.
    pub spread: Vec<f64>,
    /// Of a chain: probability that k drafts are accepted, k = 0..=K. Of siblings: that
    /// draft k is accepted, and at last that none is.
    pub accepted: Vec<f64>,
    /// Of a chain: for each number of accepted drafts, the law of the next token; all 0
    /// where the draft behind them is never rejected. Of siblings: the law of the output, alone.
    pub next: Vec<Vec<f64>>,
    /// Of rules that carry numbers: for each number of accepted drafts, the likeliest next token,
    /// -1 where there is none, and what is carried on behind it.
    pub next_token: Vec<i64>,
    pub carry_next: Vec<Vec<f64>>,
    /// They were computed in fractions. Of many strata and large V these take too long.
    pub exact: bool,
}

impl Laws {
    /// The laws of a rule that carries nothing, on a vector; in fractions that are rounded once, or in `f64`.
    pub(super) fn new(
        rule: RuleName,
        vector: &Vector,
        exact: bool,
    ) -> Result<Self, Box<dyn Error>> {
        match rule.is_chain() {
            true => Self::chain(vector, exact),
            false => Self::siblings(rule, vector, exact),
        }
    }

    fn chain(vector: &Vector, exact: bool) -> Result<Self, Box<dyn Error>> {
        let (mut keeps, mut accepted, mut next) = (Vec::new(), Vec::new(), Vec::new());
        let (mut reached, mut all_exact) = (1.0, true);
        for ((p, q), &token) in vector.target.iter().zip(&vector.draft).zip(&vector.drafts) {
            let scheme = Arc::new(WithReplacement::new(Draft::new(&wide(q))?, 1));
            let (law, is_exact) = conditional(RuleName::TOKEN, p, scheme, &[token], exact)?;
            all_exact &= is_exact;
            let keep = law.accepted.first().copied().unwrap_or(0.0);
            keeps.push(keep);
            accepted.push(reached * law.rejected);
            next.push(match law.rejected > 0.0 {
                true => law.residual.to_vec(),
                false => vec![0.0; p.len()],
            });
            reached *= keep;
        }
        accepted.push(reached);
        let bonus = vector.target.last().ok_or("no rows")?;
        next.push(Target::new(&wide(bonus))?.probabilities().to_vec());
        Ok(Self {
            spread: vec![0.0; keeps.len()],
            keeps,
            accepted,
            next,
            exact: all_exact,
            ..Self::default()
        })
    }

    fn siblings(rule: RuleName, vector: &Vector, exact: bool) -> Result<Self, Box<dyn Error>> {
        let (Some(p), Some(q)) = (vector.target.first(), vector.draft.first()) else {
            return Err("no rows".into());
        };
        let n = vector.drafts.len();
        let draft = Draft::new(&wide(q))?;
        let tuple = &vector.drafts[..];
        // Whatever the drafts are, a rule for any does not look at their law.
        let law = match rule.entry().drafts {
            Drafts::Drawn(law) => law,
            Drafts::Likeliest | Drafts::Any => SchemeName::WITH_REPLACEMENT,
        };
        let MadeOf::OneDraft(made) = law.entry().made_of else {
            return Err(format!("{law} drafts are not drawn from one q").into());
        };
        let (law, exact) = conditional(rule, p, made(draft, n), tuple, exact)?;
        let mut left = 1.0;
        let mut keeps = Vec::with_capacity(n);
        for &mass in &law.accepted {
            let keep = if left > 0.0 { mass / left } else { 0.0 };
            keeps.push(keep.min(1.0));
            left -= mass;
        }
        let mut output: Vec<f64> = match law.rejected > 0.0 {
            true => law.residual.iter().map(|x| law.rejected * x).collect(),
            false => vec![0.0; p.len()],
        };
        for (&token, mass) in tuple.iter().zip(&law.accepted) {
            if let Some(entry) = output.get_mut(token as usize) {
                *entry += mass;
            }
        }
        let mut accepted = law.accepted;
        accepted.push(law.rejected);
        Ok(Self {
            spread: vec![0.0; n],
            keeps,
            accepted,
            next: vec![output],
            exact,
            ..Self::default()
        })
    }
}

/// The law of one verifier's output given its drafts, and whether it comes of fractions.
fn conditional(
    rule: RuleName,
    p: &[f32],
    scheme: Arc<dyn DraftScheme>,
    tuple: &[u32],
    exact: bool,
) -> Result<(ConditionalLaw<f64>, bool), Box<dyn Error>> {
    let problem = Problem::from_law("conformance", Target::new(&wide(p))?, scheme)?;
    let rule = verifier(rule.as_str().parse()?, &problem)?;
    let fractions = exact.then(|| rule.conditional_exact(tuple)).flatten();
    let is_exact = fractions.is_some();
    let law = match fractions {
        Some(law) => ConditionalLaw {
            accepted: law.accepted.iter().map(round_nearest).collect(),
            rejected: round_nearest(&law.rejected),
            residual: law.residual.iter().map(round_nearest).collect(),
        },
        None => rule.conditional(tuple),
    };
    Ok((law, is_exact))
}
