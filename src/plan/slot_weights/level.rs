//! Slot weights of one level: a convex problem, by Newton's method.
//!
//! A level has groups of tokens with masses q_j and target ratios rho_j, a mass b
//! of draft tokens that never emit at this level, and perhaps a slot of weight w_0
//! that is always there and rejects. With `phi(s) = b + sum of q_j e^{-s w_j}` and
//! `g(s) = n e^{-s w_0} phi(s)^{n-1}`, a token of weight w is emitted q F(w) of the
//! time,
//!
//! ```text
//! F(w) = w integral over s of e^{-sw} g(s) ds
//!      = g(inf) + w integral over s of e^{-sw} (g(s) - g(inf)) ds,
//! ```
//!
//! and F(w_j) = rho_j is solved for all groups at once. F grows from
//! r_low = g(inf) to r_up = g(0).

use super::nodes::Nodes;
use multiversion::multiversion;

/// Steps in log w are cut to this.
pub(super) const LONGEST_STEP: f64 = 2.0;

/// A ratio is kept this far (relative to r_up) from the ends of its range.
pub(super) const MARGIN: f64 = 1e-15;

/// Range of weights: products of two of them and of two nodes stay normal.
const SMALLEST_WEIGHT: f64 = 1e-140;
const LARGEST_WEIGHT: f64 = 1e140;

/// Contests won this seldom by the tokens of a prefix call for weights that are
/// set apart from the start.
const APART: f64 = 1e-3;

/// Steps in a row that may gain next to nothing.
const PATIENCE: usize = 3;

/// Cuts are not asked to be smaller, since rounding is not.
const SMALLEST_CUT: f64 = 2e-15;

/// Ratios below this times r_up are taken for it: their tokens hold nothing.
const SMALLEST_RATIO: f64 = 1e-290;

/// Groups up to which every Newton step uses the whole Hessian, and up to which
/// it may when the steps of low rank no longer help.
const ALWAYS_WHOLE: usize = 48;
const LARGEST_WHOLE: usize = 256;

/// Longest step of a weight against the next lower one, where the cuts are solved; how
/// often such a step is tried shorter, and how often in a row none may help.
const LONGEST_CLIMB: f64 = 10.0;
const SHORTER_CLIMBS: usize = 3;
const LOST_CLIMBS: usize = 8;

/// Nodes of a Newton step of low rank: one an octave is good to 1e-5, which is
/// enough unless groups hardly compete.
#[derive(Clone, Copy)]
enum Rule {
    Coarse,
    Fine,
}

/// One level.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// Group masses under q.
    pub(super) mass: Vec<f64>,
    /// Wanted emission over mass, within the level's range.
    pub(super) ratio: Vec<f64>,
    /// Draft mass that never emits here.
    pub(super) base: f64,
    /// `base` plus all masses.
    pub(super) inside: f64,
    /// n.
    pub(super) drafts: usize,
    /// Probability that must be rejected; `None` if nothing may be.
    pub(super) rejected: Option<f64>,
}

/// A level's state: weights, and all that follows from them.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) weights: Vec<f64>,
    pub(super) field: Field,
    value: Vec<f64>,
    slope: Vec<f64>,
    /// Sum of |wanted - emitted|.
    pub(super) residual: f64,
}

/// phi at the nodes, and what gives F for any weight.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) nodes: Nodes,
    pub(super) phi: Vec<f64>,
    pub(super) coefficients: Vec<f64>,
}

/// How a level ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    pub(super) iterations: usize,
}

impl Level {
    pub(super) fn reject_weight(&self) -> f64 {
        if self.rejected.is_some() { 1.0 } else { 0.0 }
    }

    /// (r_low, r_up).
    pub(super) fn range(&self) -> (f64, f64) {
        let n = self.drafts as f64;
        let power = |mass: f64| n * mass.powi(self.drafts as i32 - 1);
        let low = if self.rejected.is_some() {
            0.0
        } else {
            power(self.base)
        };
        (low, power(self.inside))
    }

    /// log((rho - r_low) / (r_up - rho)), nearly log w plus a constant.
    pub(super) fn coordinate(&self, ratio: f64) -> f64 {
        let (low, up) = self.range();
        let below = (ratio - low).max(self.least_above_low());
        (below / (up - ratio).max(MARGIN * up)).ln()
    }

    /// What a ratio is taken to be above r_low at least.
    pub(super) fn least_above_low(&self) -> f64 {
        let (_, up) = self.range();
        if self.rejected.is_some() {
            SMALLEST_RATIO * up
        } else {
            MARGIN * up
        }
    }

    /// The ratio at a coordinate.
    pub(super) fn ratio_at(&self, coordinate: f64) -> f64 {
        let (low, up) = self.range();
        if coordinate > 0.0 {
            let rest = (-coordinate).exp();
            up - (up - low) * rest / (1.0 + rest)
        } else {
            let odds = coordinate.exp();
            low + (up - low) * odds / (1.0 + odds)
        }
    }

    fn smallest_total(&self, smallest: f64) -> f64 {
        if self.rejected.is_some() {
            1.0
        } else {
            smallest
        }
    }

    /// The field of given groups and weights.
    fn field(&self, mass: &[f64], weights: &[f64]) -> Field {
        let nodes = self.nodes(weights);
        let phi = nodes.transform(mass, weights);
        self.field_at(nodes, phi)
    }

    /// Nodes for given weights.
    pub(super) fn nodes(&self, weights: &[f64]) -> Nodes {
        let (mut smallest, mut largest) = (f64::INFINITY, 0.0f64);
        for &weight in weights {
            smallest = smallest.min(weight);
            largest = largest.max(weight);
        }
        Nodes::new(
            self.smallest_total(smallest).max(f64::MIN_POSITIVE),
            (self.drafts as f64 * largest + self.reject_weight()).max(f64::MIN_POSITIVE),
        )
    }

    /// The field of given sums of mass e^{-s w} at the nodes.
    pub(super) fn field_at(&self, nodes: Nodes, mut phi: Vec<f64>) -> Field {
        let reject = self.reject_weight();
        let (low, _) = self.range();
        let (n, power) = (self.drafts as f64, self.drafts as i32 - 1);
        let coefficients = phi
            .iter_mut()
            .zip(nodes.s.iter().zip(&nodes.weight))
            .map(|(phi, (s, weight))| {
                let emitting = *phi;
                *phi += self.base;
                let beyond = if self.rejected.is_some() {
                    (-s * reject).exp() * n * phi.powi(power)
                } else if low == 0.0 {
                    n * phi.powi(power)
                } else {
                    // phi^(n-1) - b^(n-1) without cancellation.
                    let mut sum = 0.0;
                    let mut base = 1.0;
                    for k in 0..power {
                        sum += phi.powi(power - 1 - k) * base;
                        base *= self.base;
                    }
                    n * emitting * sum
                };
                weight * beyond
            })
            .collect();
        Field {
            nodes,
            phi,
            coefficients,
        }
    }

    /// F and dF/dlog w for weights within the range of the field.
    pub(super) fn emission(&self, field: &Field, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (low, _) = self.range();
        let (mut value, slope) = field.nodes.back(weights, &field.coefficients);
        if low > 0.0 {
            for value in &mut value {
                *value += low;
            }
        }
        (value, slope)
    }

    fn state(&self, mut weights: Vec<f64>) -> State {
        if self.rejected.is_none() {
            // The scale is free: the largest weight is 1.
            let largest = weights.iter().copied().fold(0.0, f64::max);
            for weight in &mut weights {
                *weight = (*weight / largest).max(SMALLEST_WEIGHT);
            }
        } else {
            for weight in &mut weights {
                *weight = weight.min(LARGEST_WEIGHT);
            }
        }
        let field = self.field(&self.mass, &weights);
        let (value, slope) = self.emission(&field, &weights);
        let residual = value
            .iter()
            .zip(&self.ratio)
            .zip(&self.mass)
            .map(|((value, ratio), mass)| mass * (ratio - value).abs())
            .sum();
        State {
            weights,
            field,
            value,
            slope,
            residual,
        }
    }

    /// Weights from the coordinate alone, scaled so that the level rejects what
    /// it must.
    fn first_weights(&self) -> Vec<f64> {
        let mut weights: Vec<f64> = self
            .ratio
            .iter()
            .map(|&r| self.coordinate(r).exp())
            .collect();
        let Some(rejected) = self.rejected else {
            return weights;
        };
        // w_0 integral of e^{-s w_0} phi^n = rejected, increasing in w_0.
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if largest <= 0.0 {
            return weights;
        }
        let n = self.drafts as f64;
        let (floor, ceiling) = (1e-15 * largest, 1e4 * n * largest);
        let nodes = Nodes::new(floor, ceiling + n * largest);
        let phi = nodes.transform(&self.mass, &weights);
        let refuse = |weight: f64| -> f64 {
            let terms = nodes.s.iter().zip(&nodes.weight).zip(&phi);
            weight
                * terms
                    .map(|((s, c), phi)| {
                        c * (-s * weight).exp() * (phi + self.base).powi(self.drafts as i32)
                    })
                    .sum::<f64>()
        };
        let (mut low, mut high) = (floor.ln(), ceiling.ln());
        for _ in 0..30 {
            let middle = 0.5 * (low + high);
            if refuse(middle.exp()) < rejected {
                low = middle;
            } else {
                high = middle;
            }
        }
        let scale = (-0.5 * (low + high)).exp();
        for weight in &mut weights {
            *weight *= scale;
        }
        weights
    }

    /// Weights for levels whose prefixes are nearly minimisers; `None` if none is.
    ///
    /// The tokens of a prefix must be emitted `delta = t(prefix) - P(all drafts in
    /// it)` of the time against tokens above it, out of M, the probability that
    /// both are drafted; so their weights stand to those above about as delta to
    /// M - delta.
    fn apart(&self) -> Option<Vec<f64>> {
        let power = |mass: f64| mass.powi(self.drafts as i32);
        let total = power(self.inside);
        let refused = self.rejected.unwrap_or(0.0);
        let (mut held, mut wanted) = (self.base, refused);
        let below = if self.rejected.is_some() {
            0.0
        } else {
            power(self.base)
        };
        let mut weights = Vec::with_capacity(self.mass.len());
        let mut logarithm = 0.0f64;
        let mut previous = None;
        let mut found = false;
        for (&mass, &ratio) in self.mass.iter().zip(&self.ratio) {
            let delta = (wanted - (power(held) - below)).max(1e-16);
            let both = if self.rejected.is_some() {
                total - power(held)
            } else {
                total - power(held) - (power(self.inside - held + self.base) - power(self.base))
            };
            let odds = delta / (both - delta).max(1e-16);
            let coordinate = self.coordinate(ratio);
            let rise = previous.map_or(0.0, |before: f64| (coordinate - before).max(0.0));
            let first = previous.is_none() && self.rejected.is_none();
            if odds < APART && !first {
                found = true;
                logarithm += rise.max(-odds.ln());
            } else {
                logarithm += rise.min(2.0);
            }
            weights.push(logarithm.min(300.0).exp());
            previous = Some(coordinate);
            held += mass;
            wanted += mass * ratio;
        }
        found.then_some(weights)
    }

    /// Weights at which F, with phi held fixed, meets every ratio: the fixed
    /// point map, which is monotone and never expands distances of log w.
    fn fixed_point(&self, state: &State) -> Vec<f64> {
        let mut weights = state.weights.clone();
        let smallest = weights.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = weights.iter().copied().fold(0.0, f64::max);
        let (mut value, mut slope) = (state.value.clone(), state.slope.clone());
        for _ in 0..4 {
            let mut moved = 0.0f64;
            for (index, weight) in weights.iter_mut().enumerate() {
                let step = self.inverse_step(value[index], slope[index], self.ratio[index]);
                // The field's nodes reach a little beyond its weights.
                let next = (*weight * step.exp()).clamp(smallest / 16.0, largest * 1.5);
                moved = moved.max((next / *weight).ln().abs());
                *weight = next;
            }
            if moved < 1e-4 {
                break;
            }
            (value, slope) = self.emission(&state.field, &weights);
        }
        weights
    }

    /// Newton step in log w for F(w) = ratio, in log((F - r_low)/(r_up - F)), which
    /// is nearly linear.
    pub(super) fn inverse_step(&self, value: f64, slope: f64, ratio: f64) -> f64 {
        let (low, up) = self.range();
        let margin = MARGIN * up;
        let floor = if self.rejected.is_some() { 0.0 } else { margin };
        let (below, above) = ((value - low).max(floor), (up - value).max(margin));
        if below <= 0.0 || slope <= 0.0 {
            return if value < ratio {
                LONGEST_STEP
            } else {
                -LONGEST_STEP
            };
        }
        let offset = self.coordinate(ratio) - (below / above).ln();
        let rate = slope * (1.0 / below + 1.0 / above);
        (offset / rate).clamp(-LONGEST_STEP, LONGEST_STEP)
    }

    /// Without rejection the scale is free: the heaviest group stands still.
    fn pinned(&self) -> Option<usize> {
        let share = |j: usize| self.mass[j] * self.ratio[j];
        let heaviest = |best: usize, j: usize| if share(j) > share(best) { j } else { best };
        self.rejected
            .is_none()
            .then(|| (0..self.mass.len()).fold(0, heaviest))
    }

    /// n (n-1) s e^{-s w_0} phi^{n-2}, the kernel of the Hessian.
    fn kernel(&self, s: f64, phi: f64) -> f64 {
        if self.drafts < 2 {
            return 0.0;
        }
        let n = self.drafts as f64;
        let reject = (-s * self.reject_weight()).exp();
        n * (n - 1.0) * s * reject * phi.powi(self.drafts as i32 - 2)
    }

    /// n s w_0 e^{-s w_0} phi^{n-1}, what the rejecting slot competes for.
    fn refusal(&self, s: f64, phi: f64) -> f64 {
        let reject = self.reject_weight();
        self.drafts as f64 * s * reject * (-s * reject).exp() * phi.powi(self.drafts as i32 - 1)
    }

    /// A Newton step with the whole Hessian.
    fn whole_newton(&self, state: &State) -> Option<Vec<f64>> {
        let right = (0..self.mass.len())
            .map(|j| self.mass[j] * (self.ratio[j] - state.value[j]))
            .collect();
        let step = self.eliminate(state, right)?;
        let moved: Vec<f64> = (state.weights.iter().zip(&step))
            .map(|(w, step)| w * step.clamp(-LONGEST_STEP, LONGEST_STEP).exp())
            .collect();
        moved.iter().all(|w| w.is_finite()).then_some(moved)
    }

    /// The change of log w that changes emissions by `right`, to first order.
    ///
    /// The Hessian is the Laplacian of a graph whose edges say how much emission two
    /// groups compete for, plus what each competes for with the rejecting slot (or the
    /// pinned group). Edges are integrals of positive functions, and elimination adds
    /// and never subtracts, so that the step is right even where groups hardly compete.
    fn eliminate(&self, state: &State, mut right: Vec<f64>) -> Option<Vec<f64>> {
        let nodes = &state.field.nodes;
        let count = self.mass.len();
        let pinned = self.pinned();
        let kernel: Vec<f64> = (0..nodes.len())
            .map(|m| nodes.weight[m] * self.kernel(nodes.s[m], state.field.phi[m]))
            .collect();
        let rows: Vec<Vec<f64>> = (state.weights.iter().zip(&self.mass))
            .map(|(w, q)| nodes.s.iter().map(|s| q * w * (-s * w).exp()).collect())
            .collect();
        let refusal: Vec<f64> = (0..nodes.len())
            .map(|m| nodes.weight[m] * self.refusal(nodes.s[m], state.field.phi[m]))
            .collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut edges = vec![0.0; count * count];
        let mut leaks = vec![0.0; count];
        for i in 0..count {
            let scaled: Vec<f64> = rows[i].iter().zip(&kernel).map(|(u, k)| u * k).collect();
            if self.rejected.is_some() {
                leaks[i] = dot(&rows[i], &refusal).max(0.0);
            }
            for j in 0..i {
                let edge = dot(&scaled, &rows[j]).max(0.0);
                edges[i * count + j] = edge;
                edges[j * count + i] = edge;
            }
        }
        if let Some(pin) = pinned {
            for i in 0..count {
                leaks[i] += edges[i * count + pin];
                edges[i * count + pin] = 0.0;
                edges[pin * count + i] = 0.0;
            }
            leaks[pin] = 1.0;
            right[pin] = 0.0;
        }
        let mut diagonal = vec![0.0; count];
        for k in (0..count).rev() {
            let (upper, lower) = edges.split_at_mut(k * count);
            let row = &lower[..k];
            let total = row.iter().sum::<f64>() + leaks[k];
            if !total.is_finite() {
                return None;
            }
            // Competes with nothing: it stays where it is.
            diagonal[k] = total;
            if total <= 0.0 {
                continue;
            }
            for i in 0..k {
                let share = row[i] / total;
                if share == 0.0 {
                    continue;
                }
                for (edge, other) in upper[i * count..i * count + k].iter_mut().zip(row) {
                    *edge += share * other;
                }
                upper[i * count + i] = 0.0;
                leaks[i] += share * leaks[k];
                right[i] += share * right[k];
            }
        }
        let mut step = vec![0.0; count];
        for k in 0..count {
            if diagonal[k] > 0.0 {
                let row = &edges[k * count..k * count + k];
                step[k] = (right[k] + dot(row, &step[..k])) / diagonal[k];
            }
        }
        Some(step)
    }

    /// What each cut must be: for k = 0, 1, .., how often a draft above the first k
    /// groups loses to one of them or to the rejecting slot,
    ///
    /// `R + t(first k) - P(all drafts are among them or below)`, R what is rejected;
    ///
    /// small where the first k groups are nearly a minimiser.
    fn wanted_cuts(&self) -> Vec<f64> {
        let power = |mass: f64| mass.powi(self.drafts as i32);
        let (mut wanted, below) = match self.rejected {
            Some(rejected) => (rejected, 0.0),
            None => (0.0, power(self.base)),
        };
        let mut held = self.base;
        let mut cuts = Vec::with_capacity(self.mass.len());
        for (&mass, &ratio) in self.mass.iter().zip(&self.ratio) {
            cuts.push((wanted - (power(held) - below)).max(SMALLEST_CUT));
            held += mass;
            wanted += mass * ratio;
        }
        cuts
    }

    /// What the cuts are: integrals of sums of positive terms, which keep their digits
    /// however small they are.
    fn cuts(&self, state: &State) -> Vec<f64> {
        let nodes = &state.field.nodes;
        let count = self.mass.len();
        let reject = self.reject_weight();
        let mut cuts = vec![0.0; count];
        let mut decays = vec![0.0; count];
        let mut above = vec![0.0; count];
        for (m, &s) in nodes.s.iter().enumerate() {
            let phi = state.field.phi[m];
            let mut sum = 0.0;
            for k in (0..count).rev() {
                decays[k] = self.mass[k] * (-s * state.weights[k]).exp();
                sum += decays[k];
                above[k] = sum;
            }
            let scale = nodes.weight[m] * (-s * reject).exp();
            let (mut below, mut pull) = (self.base, 0.0);
            for k in 0..count {
                // phi^n - below^n and phi^(n-1) - below^(n-1), over phi - below.
                let (mut shorter, mut power) = (0.0, 1.0);
                for _ in 1..self.drafts {
                    shorter = shorter * phi + power;
                    power *= below;
                }
                let whole = shorter * phi + power;
                let wins = self.drafts as f64 * pull * shorter + reject * whole;
                cuts[k] += scale * above[k] * wins;
                below += decays[k];
                pull += state.weights[k] * decays[k];
            }
        }
        cuts
    }

    /// Newton's method on the logarithms of the cuts, for levels whose prefixes are
    /// nearly minimisers; the number of steps.
    ///
    /// Far from the solution a cut is about e^{-(how far log w is apart there)}, so
    /// that its logarithm is nearly linear where emissions are flat. In the steps
    /// between neighbours the Hessian is the symmetric matrix of derivatives of the
    /// cuts; the step for logarithms is Newton's with `cut log(wanted/cut)` in the place
    /// of `wanted - cut`. What the cuts hardly see, a group that holds nearly nothing of
    /// its cut, is left to the fixed point map.
    fn climb(&self, best: &mut State, tolerance: f64, limit: usize) -> usize {
        let wanted = self.wanted_cuts();
        let count = wanted.len();
        // Below the first group there may be nothing to lose to.
        let first = usize::from(self.rejected.is_none());
        let measure = |state: &State| {
            let cuts = self.cuts(state);
            let logarithms: Vec<f64> = (0..count)
                .map(|k| {
                    if k < first {
                        0.0
                    } else {
                        (wanted[k] / cuts[k].max(f64::MIN_POSITIVE)).ln()
                    }
                })
                .collect();
            let merit: f64 = logarithms.iter().map(|x| x * x).sum();
            (cuts, logarithms, merit)
        };
        let mut state = best.clone();
        let (mut cuts, mut logarithms, mut merit) = measure(&state);
        let (mut iterations, mut lost) = (0, 0);
        while best.residual > tolerance && iterations < limit && lost < LOST_CLIMBS {
            iterations += 1;
            let flow = |k: usize| {
                if (first..count).contains(&k) {
                    cuts[k] * logarithms[k]
                } else {
                    0.0
                }
            };
            let right = (0..count).map(|k| flow(k + 1) - flow(k)).collect();
            let Some(step) = self.eliminate(&state, right) else {
                break;
            };
            let mut share = 1.0;
            let mut better = None;
            for _ in 0..SHORTER_CLIMBS {
                let (mut before, mut total) = (0.0, 0.0);
                let mut weights = Vec::with_capacity(count);
                for (k, (weight, &step)) in state.weights.iter().zip(&step).enumerate() {
                    if k >= first {
                        total += (step - before).clamp(-LONGEST_CLIMB, LONGEST_CLIMB);
                    }
                    before = step;
                    weights.push(weight * (share * total).exp());
                }
                if weights.iter().all(|w| w.is_finite()) {
                    let next = self.state(weights);
                    let measured = measure(&next);
                    if measured.2 < merit || next.residual < 0.5 * state.residual {
                        better = Some((next, measured));
                        break;
                    }
                }
                share *= 0.4;
            }
            lost = if better.is_some() { 0 } else { lost + 1 };
            (state, (cuts, logarithms, merit)) = better.unwrap_or_else(|| {
                let next = self.state(self.fixed_point(&state));
                let measured = measure(&next);
                (next, measured)
            });
            if state.residual < best.residual {
                *best = state.clone();
            }
        }
        iterations
    }

    /// Newton's method on all groups: the Hessian of the convex function is
    /// diagonal minus a product of rank `nodes`, on one node an octave or on all.
    fn newton(&self, state: &State, rule: Rule) -> Option<Vec<f64>> {
        let nodes = &state.field.nodes;
        let (stride, weights) = match rule {
            Rule::Coarse => (super::nodes::PER_OCTAVE, &nodes.coarse_weight),
            Rule::Fine => (1, &nodes.weight),
        };
        let count = weights.len();
        let decays = nodes.decays(&state.weights, stride);
        let kernel: Vec<f64> = (0..count)
            .map(|m| {
                let fine = m * stride;
                weights[m] * self.kernel(nodes.s[fine], state.field.phi[fine])
            })
            .collect();
        let pinned = self.pinned();
        // What each group competes for, with every other, with itself and with the
        // rejecting slot, by the same rule as the coupling below: both are off by
        // little, relatively, and so is then their difference.
        let mut rivals = vec![0.0; count];
        for (j, row) in decays.chunks_exact(count).enumerate() {
            let outer = self.mass[j] * state.weights[j];
            for (rivals, decay) in rivals.iter_mut().zip(row) {
                *rivals += outer * decay;
            }
        }
        for (m, rivals) in rivals.iter_mut().enumerate() {
            let fine = m * stride;
            *rivals = kernel[m] * *rivals
                + weights[m] * self.refusal(nodes.s[fine], state.field.phi[fine]);
        }
        let mut gram = vec![0.0; count * count];
        let mut right = vec![0.0; count];
        let mut diagonal = vec![0.0; self.mass.len()];
        let mut scaled = vec![0.0; count];
        for (j, row) in decays.chunks_exact(count).enumerate() {
            if Some(j) == pinned {
                continue;
            }
            let least = 1e-14 * state.value[j].max(f64::MIN_POSITIVE);
            let competed: f64 = row.iter().zip(&rivals).map(|(a, b)| a * b).sum();
            diagonal[j] = self.mass[j] * (state.weights[j] * competed).max(least);
            let outer = self.mass[j] * state.weights[j];
            let factor = outer * (outer / diagonal[j]);
            let wanted = outer * (self.mass[j] * (self.ratio[j] - state.value[j]) / diagonal[j]);
            for m in 0..count {
                scaled[m] = factor * row[m];
                right[m] += wanted * row[m];
            }
            add_products(row, &scaled, &mut gram);
        }
        for (m, line) in gram.chunks_exact_mut(count).enumerate() {
            for (entry, kernel) in line.iter_mut().zip(&kernel) {
                *entry *= -kernel;
            }
            line[m] += 1.0;
        }
        solve_dense(&mut gram, &mut right)?;
        for (value, kernel) in right.iter_mut().zip(&kernel) {
            *value *= kernel;
        }
        let mut weights = state.weights.clone();
        for (j, row) in decays.chunks_exact(count).enumerate() {
            if Some(j) == pinned {
                continue;
            }
            let coupled: f64 = row.iter().zip(&right).map(|(a, b)| a * b).sum();
            let outer = self.mass[j] * state.weights[j];
            let gap = self.mass[j] * (self.ratio[j] - state.value[j]);
            let step = (gap + outer * coupled) / diagonal[j];
            if !step.is_finite() {
                return None;
            }
            weights[j] *= step.clamp(-LONGEST_STEP, LONGEST_STEP).exp();
        }
        Some(weights)
    }

    /// Solves the level to `tolerance` in the sum of |wanted - emitted|, or until
    /// nothing improves any more.
    pub(super) fn solve(&self, tolerance: f64, limit: usize) -> (State, Effort) {
        let mut state = self.state(self.first_weights());
        let mut iterations = self.descend(&mut state, tolerance, limit);
        if state.residual > 10.0 * tolerance && self.mass.len() <= LARGEST_WHOLE {
            let reached = state.weights.clone();
            let starts = [self.apart(), Some(reached), Some(self.first_weights())];
            for start in starts.into_iter().flatten() {
                let mut other = self.state(start);
                iterations += self.climb(&mut other, tolerance, limit);
                if other.residual < state.residual {
                    state = other;
                }
                if state.residual <= tolerance {
                    break;
                }
            }
        }
        (state, Effort { iterations })
    }

    /// Newton steps, with the fixed point map where they fail; the number done.
    fn descend(&self, state: &mut State, tolerance: f64, limit: usize) -> usize {
        let groups = self.mass.len();
        let mut iterations = 0;
        let (mut stalled, mut struggling) = (0, false);
        let mut best = state.clone();
        while best.residual > tolerance && iterations < limit && stalled < PATIENCE {
            iterations += 1;
            let before = state.residual;
            let whole = groups <= ALWAYS_WHOLE || (struggling && groups <= LARGEST_WHOLE);
            let step = if whole {
                self.whole_newton(state)
            } else {
                self.newton(state, if struggling { Rule::Fine } else { Rule::Coarse })
            };
            let newton = step.map(|weights| self.state(weights));
            match newton {
                Some(next) if next.residual <= 0.25 * before => *state = next,
                newton => {
                    // The fixed point map never expands distances, so it may be
                    // followed although the residual, another norm, has grown.
                    let mut next = self.state(self.fixed_point(state));
                    if let Some(other) = newton
                        && other.residual < next.residual
                    {
                        next = other;
                    }
                    if next.residual < 2.0 * before {
                        *state = next;
                    }
                }
            }
            if state.residual < 0.97 * best.residual {
                stalled = 0;
            } else {
                stalled += 1;
                struggling = true;
            }
            if state.residual < best.residual {
                best = state.clone();
            }
        }
        *state = best;
        iterations
    }
}

/// Adds the matrix of products of two rows, the first one's entries falling.
#[multiversion(targets = "simd")]
fn add_products(left: &[f64], right: &[f64], matrix: &mut [f64]) {
    for (&left, line) in left.iter().zip(matrix.chunks_exact_mut(right.len())) {
        if left == 0.0 {
            break;
        }
        for (sum, value) in line.iter_mut().zip(right) {
            *sum += left * value;
        }
    }
}

/// Gaussian elimination with row pivots, in place; `None` if singular.
fn solve_dense(matrix: &mut [f64], right: &mut [f64]) -> Option<()> {
    let size = right.len();
    for column in 0..size {
        let pivot = (column..size).fold(column, |best, row| {
            let entry = |row: usize| matrix[row * size + column].abs();
            if entry(row) > entry(best) { row } else { best }
        });
        let value = matrix[pivot * size + column];
        if !value.is_finite() || value == 0.0 {
            return None;
        }
        if pivot != column {
            for k in 0..size {
                matrix.swap(pivot * size + k, column * size + k);
            }
            right.swap(pivot, column);
        }
        for row in column + 1..size {
            let factor = matrix[row * size + column] / value;
            if factor == 0.0 {
                continue;
            }
            let (upper, lower) = matrix.split_at_mut(row * size);
            let top = &upper[column * size + column..(column + 1) * size];
            for (entry, above) in lower[column..size].iter_mut().zip(top) {
                *entry -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..size).rev() {
        let mut sum = right[row];
        for column in row + 1..size {
            sum -= matrix[row * size + column] * right[column];
        }
        right[row] = sum / matrix[row * size + row];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cuts as integrals against what emissions say by subtraction.
    #[test]
    fn cuts_are_what_is_emitted_beyond_a_prefix() {
        for (base, rejected) in [(0.0, None), (0.2, None), (0.1, Some(0.05))] {
            for drafts in 1..5 {
                let level = Level {
                    mass: vec![0.1, 0.25, 0.15, 0.3],
                    ratio: vec![0.2, 0.5, 0.9, 1.3],
                    base,
                    inside: base + 0.8,
                    drafts,
                    rejected,
                };
                let state = level.state(vec![0.1, 0.7, 2.0, 30.0]);
                let power = |mass: f64| mass.powi(drafts as i32);
                let emitted: Vec<f64> = (level.mass.iter().zip(&state.value))
                    .map(|(mass, value)| mass * value)
                    .collect();
                let mut sum = match rejected {
                    Some(_) => power(level.inside) - emitted.iter().sum::<f64>(),
                    None => power(base),
                };
                let mut held = base;
                for (k, cut) in level.cuts(&state).into_iter().enumerate() {
                    let beyond = sum - power(held);
                    assert!((cut - beyond).abs() < 1e-14, "{k}: {cut} {beyond}");
                    sum += emitted[k];
                    held += level.mass[k];
                }
            }
        }
    }

    /// The step of low rank on one node an octave against the step by elimination,
    /// which shares nothing with it, where one group has nearly all of the emission
    /// and the level rejects next to nothing: the small difference between what that
    /// group competes for in all and with itself decides the step.
    #[test]
    fn a_step_of_low_rank_is_newtons_step_for_a_heavy_group() {
        let (light, heavy, drafts) = (60, 0.95, 3);
        let mut mass = vec![(1.0 - heavy) / f64::from(light); light as usize];
        let mut ratio: Vec<f64> = (0..light).map(|k| 1e-3 * 1.08f64.powi(k)).collect();
        mass.push(heavy);
        let share: f64 = mass.iter().zip(&ratio).map(|(q, r)| q * r).sum();
        let rejected = 1e-7;
        ratio.push((1.0 - rejected - share) / heavy);
        let level = Level {
            mass,
            ratio,
            base: 0.0,
            inside: 1.0,
            drafts,
            rejected: Some(rejected),
        };
        let state = level.state(level.first_weights());
        let whole = level.whole_newton(&state).unwrap();
        for rule in [Rule::Coarse, Rule::Fine] {
            let step = level.newton(&state, rule).unwrap();
            for ((a, b), before) in step.iter().zip(&whole).zip(&state.weights) {
                let (a, b) = ((a / before).ln(), (b / before).ln());
                assert!((a - b).abs() < 1e-3 * b.abs() + 1e-6, "{a} {b}");
            }
        }
    }
}
