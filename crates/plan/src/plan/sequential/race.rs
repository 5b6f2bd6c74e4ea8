//! The draws as a race of clocks, as one tier sees it: data that every sum is taken of.

use super::arrivals::{Arrivals, MOST};
use super::times::Times;
use specgap_number::scratch::Scratch;

/// Light tokens, or groups of them, that need the same number of powers of q.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Powers q^1..q^terms are used.
    pub(super) terms: usize,
    /// `moments[k-1][item]`: sum of (q tau)^k over the item's tokens.
    pub(super) moments: Vec<Scratch<f64>>,
}

impl Class {
    /// Of tokens with these q tau.
    pub(super) fn new(terms: usize, scaled: Scratch<f64>) -> Self {
        let mut moments = vec![scaled];
        for k in 1..terms {
            let power = moments[k - 1].iter().zip(&moments[0]);
            let next = power.map(|(power, q)| power * q).collect();
            moments.push(next);
        }
        Self { terms, moments }
    }

    pub(super) fn len(&self) -> usize {
        self.moments.first().map_or(0, |moments| moments.len())
    }
}

/// The race of the draws as one tier sees it.
#[derive(Clone, Debug)]
pub(super) struct Race {
    pub(super) drafts: usize,
    /// w_0: 1 where tuples may be rejected, else 0.
    pub(super) reject: f64,
    /// q of the heavy tokens.
    pub(super) heavy: Vec<f64>,
    /// q summed over the light tokens.
    pub(super) light: f64,
    /// By time: product over all tokens that do not compete.
    pub(super) base: Vec<Arrivals<f64, MOST>>,
    /// By time and heavy token: e^{-qt} and 1 - e^{-qt}.
    pub(super) waits: Vec<f64>,
    pub(super) arrives: Vec<f64>,
}

impl Race {
    pub(super) fn new(
        times: &Times,
        drafts: usize,
        reject: f64,
        heavy: Vec<f64>,
        light: f64,
        base: Vec<Arrivals<f64, MOST>>,
    ) -> Self {
        let mut waits = Vec::with_capacity(times.t.len() * heavy.len());
        let mut arrives = Vec::with_capacity(times.t.len() * heavy.len());
        for t in &times.t.nodes {
            for q in &heavy {
                waits.push((-q * t).exp());
                arrives.push(-(-q * t).exp_m1());
            }
        }
        Self {
            drafts,
            reject,
            heavy,
            light,
            base,
            waits,
            arrives,
        }
    }
}
