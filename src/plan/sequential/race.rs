//! The draws as a race of clocks, as one tier sees it: data that every sum is taken of.

use super::arrivals::Arrivals;
use super::times::Times;

/// Light tokens, or groups of them, that need the same number of powers of q.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Powers q^1..q^terms are used.
    pub(super) terms: usize,
    /// `moments[k-1][item]`: sum of (q tau)^k over the item's tokens.
    pub(super) moments: Vec<Vec<f64>>,
}

impl Class {
    pub(super) fn len(&self) -> usize {
        self.moments.first().map_or(0, Vec::len)
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
    pub(super) base: Vec<Arrivals>,
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
        base: Vec<Arrivals>,
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
