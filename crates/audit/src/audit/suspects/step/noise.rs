//! What noise on the engine's logits may do to a step.

use super::Here;
use crate::audit::suspects::factor::Factor;
use statrs::function::erf::erfc;

/// How far the engine's rows may be from the log's: normal noise on every logit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Noise {
    /// Its standard deviation.
    pub sigma: f64,
    /// It is stated: laws may differ by it everywhere. Else they may where it decides which of two
    /// near numbers is larger, and nowhere else.
    pub stated: bool,
}

impl Noise {
    /// Returns what a mean over noise may add to a probability, relatively.
    pub(super) fn width(self) -> f64 {
        if !self.stated {
            return 0.0;
        }
        (self.sigma * self.sigma).exp_m1()
    }

    /// The standard deviation of ln(p/q).
    pub(super) fn spread(self) -> f64 {
        self.sigma * std::f64::consts::SQRT_2
    }

    /// E (p' - q')+, up to the normalisers: the price of an option.
    pub(super) fn call(self, p: f64, q: f64) -> f64 {
        if p <= 0.0 {
            return 0.0;
        }
        if q <= 0.0 {
            return p;
        }
        let s = self.spread();
        let log = (p / q).ln();
        if log.abs() > 6.0 * s {
            return (p - q).max(0.0);
        }
        let normal = |x: f64| 0.5 * erfc(-x / std::f64::consts::SQRT_2);
        let d = log / s + 0.5 * s;
        (p * normal(d) - q * normal(d - s)).max(0.0)
    }
}

impl<'a> Here<'a> {
    /// Returns what noise may do to a correction, relatively.
    pub(super) fn apart(&self) -> f64 {
        let mut apart = 2.0 * self.known.width;
        if self.known.noisy_left > 0.0 {
            let ends = self.known.left / self.known.noisy_left;
            apart += ((1.0 - ends) / (1.0 + ends)).abs();
        }
        apart
    }

    /// Returns what the claim's noise could add to a law that moves so much.
    pub(super) fn price(&self, moved: impl FnOnce() -> f64) -> f64 {
        match self.noise.sigma > 0.0 {
            true => 2.0 * self.known.width * moved(),
            false => 0.0,
        }
    }

    /// Tells whether what came out is cut, but so near to the end of the cut that noise decides.
    pub(super) fn is_edge(&self) -> bool {
        let whole = self.whole.get(self.output).copied().unwrap_or(0.0);
        self.noise.sigma > 0.0
            && whole > 0.0
            && self.least.is_finite()
            && (whole / self.least).ln().abs() < 3.0 * self.noise.spread()
    }

    /// Returns what an engine with noise on its logits does where a rule compares p and q, over the
    /// claim: for what is nothing but another pass of the models.
    pub(crate) fn noisy(&self, sigma: f64) -> [f64; 2] {
        let noise = Noise {
            sigma,
            stated: true,
        };
        let draft = self
            .draft()
            .filter(|x| self.compares() && !self.p.is_rest(*x));
        let Some((p, q)) = draft.map(|x| self.both_at(x)).filter(|(_, q)| *q > 0.0) else {
            return [1.0; 2];
        };
        let ratio = ((p - noise.call(p, q)) / q).clamp(0.0, 1.0);
        let keep = self.stop(ratio, self.known.left);
        let first = self.on_acceptance(keep).ratio;
        let y = self.output;
        if self.kept || self.p.is_rest(y) || self.known.left <= 0.0 {
            return [first, 1.0];
        }
        let call = |place: usize| {
            let (p, q) = self.both_at(place);
            noise.call(p, q)
        };
        let size = self.p.row.len() - usize::from(self.p.rest);
        let sum: f64 = (0..size).map(call).sum();
        let own = call(y) / sum.max(1e-300);
        [first, Factor::of(own, self.correction(y), 0.0).ratio]
    }
}
