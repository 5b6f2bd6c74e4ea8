//! What a plan emits, by a second path.
//!
//! Weights and tiers are read off the plan; nothing is shared with the
//! solve. Both integrals are done by Gauss-Legendre panels, with exponentials one by
//! one, and light tokens are told from heavy ones by another rule.

use crate::plan::TokenPlan;
use specgap_number::distribution::{TwoFloat, exp_nonpositive};
use specgap_number::quadrature::gauss_legendre;

/// Points a panel, and how much longer each panel's right end is than its left.
const POINTS: usize = 16;
const GROWTH: f64 = 2.2;

/// Where e^{-x} is nothing.
const CUT: f64 = 42.0;

/// Light tokens have q t below this at every node...
const LIGHT: f64 = 0.04;
/// ...and powers of q t up to this are kept, for n = 2; each draft more takes one.
const POWERS: usize = 9;

/// Tokens that are summed before they join the others.
const CHUNK: usize = 256;

/// A panel's nodes with their weights, from 0 on.
fn panels(first: f64, last: f64) -> Vec<(f64, f64)> {
    let rule = gauss_legendre(POINTS);
    let (mut left, mut right) = (0.0, first);
    let mut nodes = Vec::new();
    while left < last && nodes.len() < 100_000 {
        for &(x, weight) in &rule {
            let half = 0.5 * (right - left);
            nodes.push((left + half + half * x, half * weight));
        }
        (left, right) = (right, right * GROWTH);
    }
    nodes
}

/// e^{-at} t^k-free polynomials: coefficients of z^m, and of epsilon z^m.
type Pair = (Vec<f64>, Vec<f64>);

fn convolve(a: &Pair, b: &Pair) -> Pair {
    let n = a.0.len();
    let mut out = (vec![0.0; n], vec![0.0; n]);
    for i in 0..n {
        for j in 0..n - i {
            out.0[i + j] += a.0[i] * b.0[j];
            out.1[i + j] += a.0[i] * b.1[j] + a.1[i] * b.0[j];
        }
    }
    out
}

/// Multiplies by `wait + u (z rung + epsilon now)`.
fn absorb(pair: &mut Pair, wait: f64, rung: f64, now: f64) {
    for m in (0..pair.0.len()).rev() {
        let (c, d) = if m > 0 {
            (pair.0[m - 1], pair.1[m - 1])
        } else {
            (0.0, 0.0)
        };
        pair.1[m] = wait * pair.1[m] + rung * d + now * pair.0[m];
        pair.0[m] = wait * pair.0[m] + rung * c;
    }
}

/// Taylor coefficients of (e^y - 1)^m, by powers of y up to `most`.
fn powers(most: usize, drafts: usize) -> Vec<Vec<f64>> {
    let mut table = vec![vec![0.0; most + 1]; drafts + 1];
    table[0][0] = 1.0;
    for m in 1..=drafts {
        for k in m..=most {
            let mut factorial = 1.0;
            for j in 1..=k {
                factorial *= j as f64;
                table[m][k] += table[m - 1][k - j] / factorial;
            }
        }
    }
    table
}

/// The tokens of one tier, and all others.
struct Members<'a> {
    drafts: usize,
    reject: f64,
    q: &'a [f64],
    /// Competitors with weights.
    players: Vec<(usize, f64)>,
    present: Vec<usize>,
    absent: f64,
}

impl Members<'_> {
    fn emission(&self, times: &[(f64, f64)], last: f64) -> Vec<f64> {
        let n = self.drafts;
        let most = POWERS + n;
        let table = powers(most, n);
        let (light, heavy): (Vec<_>, Vec<_>) = self
            .players
            .iter()
            .enumerate()
            .partition(|(_, (token, _))| self.q[*token] * last < LIGHT);
        let largest = self
            .players
            .iter()
            .map(|player| player.1)
            .fold(0.0, f64::max);
        let smallest = self
            .players
            .iter()
            .map(|player| player.1)
            .fold(f64::INFINITY, f64::min);
        let least = if self.reject > 0.0 {
            self.reject
        } else {
            smallest
        };
        let nodes = panels(1.0 / (n as f64 * largest + self.reject), CUT / least);
        // What does not compete, by time. Light tokens by their number of powers.
        let own = |q: f64| if q * last < 1e-5 { 3.min(most) } else { most };
        let unit = 1.0 / last;
        let exponential = |rung: &[f64], now: &[f64]| -> Pair {
            let mut c = vec![0.0; n];
            c[0] = 1.0;
            for m in 1..n {
                c[m] = (1..=m).map(|j| j as f64 * rung[j] * c[m - j]).sum::<f64>() / m as f64;
            }
            let d = (0..n)
                .map(|m| (0..=m).map(|j| now[j] * c[m - j]).sum())
                .collect();
            (c, d)
        };
        // Of a light token's logarithm at a time, by m and k: coefficients of z^m and of
        // epsilon z^{m-1}, times m.
        let expand = |time: f64| -> Vec<Vec<(f64, f64)>> {
            let x = time * unit;
            (0..=n)
                .map(|m| {
                    let sign = if m % 2 == 1 { 1.0 } else { -1.0 };
                    (0..=most)
                        .map(|k| {
                            if m == 0 || k < m {
                                return (0.0, 0.0);
                            }
                            let power = x.powi(k as i32 - 1);
                            (
                                sign * table[m][k] * power * x,
                                sign * m as f64 * table[m - 1][k - 1] * power * unit,
                            )
                        })
                        .collect()
                })
                .collect()
        };
        // sums[m][k]: sum of (q/unit)^k u^m.
        let ring = |sums: &[Vec<f64>], expansion: &[Vec<(f64, f64)>]| -> Pair {
            let (mut rung, mut now) = (vec![0.0; n + 1], vec![0.0; n]);
            for m in 1..=n {
                let (mut plain, mut dual) = (0.0, 0.0);
                for ((a, b), sum) in expansion[m].iter().zip(&sums[m]).skip(m) {
                    plain += a * sum;
                    dual += b * sum;
                }
                rung[m] = plain / m as f64;
                now[m - 1] = dual / m as f64;
            }
            exponential(&rung, &now)
        };
        let expansions: Vec<_> = times.iter().map(|&(time, _)| expand(time)).collect();
        let mut still = vec![vec![0.0; most + 1]; n + 1];
        let mut light_mass = TwoFloat::from(self.absent);
        let mut heavy_present = Vec::new();
        for &token in &self.present {
            let q = self.q[token];
            if q * last < LIGHT {
                light_mass += q;
                let mut power = 1.0;
                for slot in &mut still[1][1..=own(q)] {
                    power *= q / unit;
                    *slot += power;
                }
            } else {
                heavy_present.push(q);
            }
        }
        for m in 2..=n {
            still[m] = still[1].clone();
        }
        for (_, (token, _)) in &light {
            light_mass += self.q[*token];
        }
        let base: Vec<Pair> = times
            .iter()
            .zip(&expansions)
            .map(|(&(time, _), expansion)| {
                let mut pair = ring(&still, expansion);
                let quiet = (-light_mass.value() * time).exp();
                for value in pair.0.iter_mut().chain(&mut pair.1) {
                    *value *= quiet;
                }
                for q in &heavy_present {
                    let wait = (-q * time).exp();
                    absorb(&mut pair, wait, -(-q * time).exp_m1(), q * wait);
                }
                pair
            })
            .collect();
        let mut emitted = vec![0.0; self.players.len()];
        let scaled: Vec<f64> = light
            .iter()
            .map(|(_, (token, _))| self.q[*token] / unit)
            .collect();
        let factors: Vec<Vec<(f64, f64, f64)>> = times
            .iter()
            .map(|&(time, _)| {
                heavy
                    .iter()
                    .map(|(_, (token, _))| {
                        let q = self.q[*token];
                        let wait = (-q * time).exp();
                        (wait, -(-q * time).exp_m1(), q * wait)
                    })
                    .collect()
            })
            .collect();
        let mut decays = vec![0.0; light.len()];
        let mut before: Vec<Pair> = vec![(vec![0.0; n], vec![0.0; n]); heavy.len()];
        for &(s, ds) in &nodes {
            for (decay, (_, (_, w))) in decays.iter_mut().zip(&light) {
                *decay = exp_nonpositive(-s * w);
            }
            let mut sums = vec![vec![0.0; most + 1]; n + 1];
            for (scaled, decays) in scaled.chunks(CHUNK).zip(decays.chunks(CHUNK)) {
                let mut own_sums = vec![vec![0.0; most + 1]; n + 1];
                for (&x, &u) in scaled.iter().zip(decays) {
                    let terms = own(x * unit);
                    let mut power = 1.0;
                    for (m, row) in own_sums.iter_mut().enumerate().skip(1).take(terms) {
                        power *= u * x;
                        let mut value = power;
                        for slot in &mut row[m..=terms] {
                            *slot += value;
                            value *= x;
                        }
                    }
                }
                for (sum, own) in sums.iter_mut().flatten().zip(own_sums.iter().flatten()) {
                    *sum += own;
                }
            }
            let heavy_decays: Vec<f64> = heavy.iter().map(|(_, (_, w))| (-s * w).exp()).collect();
            let share = ds * (-s * self.reject).exp();
            let mut back = vec![vec![0.0; most + 1]; n + 1];
            let nodes_of = times.iter().zip(&base).zip(&factors).zip(&expansions);
            for ((((_, dt), base), factors), expansion) in nodes_of {
                let mut all = convolve(base, &ring(&sums, expansion));
                let tokens = factors.iter().zip(&heavy_decays).zip(&mut before);
                for ((&(wait, rung, now), &u), before) in tokens {
                    before.0.copy_from_slice(&all.0);
                    before.1.copy_from_slice(&all.1);
                    absorb(&mut all, wait, u * rung, u * now);
                }
                let mut after: Pair = (vec![0.0; n], vec![0.0; n]);
                after.0[0] = 1.0;
                for (h, (&(wait, rung, now), &u)) in
                    factors.iter().zip(&heavy_decays).enumerate().rev()
                {
                    let (a, b) = (&before[h], &after);
                    let plain: f64 = (0..n).map(|k| a.0[k] * b.0[n - 1 - k]).sum();
                    let dual: f64 = (0..n - 1)
                        .map(|k| a.0[k] * b.1[n - 2 - k] + a.1[k] * b.0[n - 2 - k])
                        .sum();
                    let (index, (_, w)) = heavy[h];
                    emitted[index] += share * dt * w * u * (rung * dual + now * plain);
                    absorb(&mut after, wait, u * rung, u * now);
                }
                for m in 1..=n {
                    let plain = share * dt * all.0[n - m];
                    let dual = if m < n {
                        share * dt * all.1[n - 1 - m]
                    } else {
                        0.0
                    };
                    let row = back[m].iter_mut().zip(&expansion[m]).skip(m);
                    for (slot, (a, b)) in row {
                        *slot += a * dual + b * plain;
                    }
                }
            }
            for (((index, (_, w)), &x), &u) in light.iter().zip(&scaled).zip(&decays) {
                let terms = own(x * unit);
                let (mut sum, mut power) = (0.0, w * 1.0);
                for m in 1..=n.min(terms) {
                    power *= u;
                    let mut value = power * x.powi(m as i32);
                    for coefficient in &back[m][m..=terms] {
                        sum += value * coefficient;
                        value *= x;
                    }
                }
                emitted[*index] += sum;
            }
        }
        emitted
    }
}

/// How often every token is emitted before it is thinned, by Gauss-Legendre panels in s and
/// t: O(V) exponentials a node of s, some 400 nodes.
pub(in crate::plan) fn emission(plan: &TokenPlan, draft: &[f64]) -> Vec<f64> {
    let support: Vec<u32> = (0u32..)
        .zip(draft)
        .filter(|(_, q)| **q > 0.0)
        .map(|(token, _)| token)
        .collect();
    let mut emitted = vec![0.0; plan.vocab()];
    if !plan.looks_at_all() || plan.drafts() == 1 {
        // One draft.
        for (token, (mass, q)) in (0u32..).zip(emitted.iter_mut().zip(draft)) {
            *mass = q * plan.picked(&[token])[0];
        }
        return emitted;
    }
    if plan.drafts() >= support.len() {
        // One set.
        for (&token, share) in support.iter().zip(plan.picked(&support)) {
            emitted[token as usize] = share;
        }
        return emitted;
    }
    let last = last_ring(draft, plan.drafts());
    let times = panels(1.0, last);
    let last = times.last().map_or(last, |node| node.0);
    for tier in [0, 1] {
        let (mut players, mut present, mut absent) = (Vec::new(), Vec::new(), TwoFloat::ZERO);
        for &token in &support {
            let (index, q) = (token as usize, draft[token as usize]);
            match plan.tier_of(token) {
                Some(own) if own == tier => players.push((index, plan.weights()[index])),
                Some(own) if own > tier => absent += q,
                _ => present.push(index),
            }
        }
        if players.is_empty() {
            continue;
        }
        let tokens: Vec<usize> = players.iter().map(|player| player.0).collect();
        let members = Members {
            drafts: plan.drafts(),
            reject: plan.rejecting_weight(tier),
            q: draft,
            players,
            present,
            absent: absent.value(),
        };
        for (token, mass) in tokens.into_iter().zip(members.emission(&times, last)) {
            emitted[token] = mass;
        }
    }
    emitted
}

/// A time by which n tokens have rung but for about 1e-17: the light tokens' rings
/// are a Poisson variable, and each of the heaviest rings or not.
fn last_ring(q: &[f64], drafts: usize) -> f64 {
    let mut sorted: Vec<f64> = q.iter().copied().filter(|&q| q > 0.0).collect();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let mut time = 1.0;
    loop {
        let mut waiting: Pair = (vec![0.0; drafts], vec![0.0; drafts]);
        waiting.0[0] = 1.0;
        for q in &sorted {
            let wait = (-q * time).exp();
            absorb(&mut waiting, wait, 1.0 - wait, 0.0);
            if waiting.0.iter().sum::<f64>() < 1e-17 {
                break;
            }
        }
        if waiting.0.iter().sum::<f64>() < 1e-17 || time > 1e290 {
            return time;
        }
        time *= 1.5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first power of 3/2 by which n have rung but for 1e-17.
    #[test]
    fn last_rings_by_hand() {
        // e^-t and 2 e^(-t/2) - e^-t.
        assert_eq!(last_ring(&[0.5, 0.0, 0.5], 1), 1.5f64.powi(10));
        assert_eq!(last_ring(&[0.5, 0.5], 2), 1.5f64.powi(11));
        // The lighter of two, e^(-t/1000), whichever stands first.
        for row in [[0.999, 0.001], [0.001, 0.999]] {
            assert_eq!(last_ring(&row, 2), 1.5f64.powi(27));
            assert_eq!(last_ring(&row, 1), 1.5f64.powi(10));
        }
        // Not in this world.
        assert!(last_ring(&[1.0, 1e-300], 2) > 1e290);
    }

    /// Panels reach the end, and integrate e^-t and t e^-t up to there.
    #[test]
    fn panels_reach_the_end() {
        let nodes = panels(1.0, 40.0);
        assert_eq!(nodes.len(), 6 * POINTS);
        let whole: f64 = nodes.iter().map(|(_, weight)| weight).sum();
        assert!((whole / GROWTH.powi(5) - 1.0).abs() < 1e-14, "{whole}");
        let [zeroth, first] = [0, 1].map(|k| -> f64 {
            let term = |&(t, weight): &(f64, f64)| weight * t.powi(k) * (-t).exp();
            nodes.iter().map(term).sum()
        });
        assert!((zeroth - 1.0).abs() < 1e-12 && (first - 1.0).abs() < 1e-12);
    }
}
