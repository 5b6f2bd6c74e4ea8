//! How often the output is drafted where each draft has a noise of its own and the output has all.
//!
//! Noise k gives every token x a number E^k_x ~ Exp(1). Draft k is the token of least E^k_x/q_x; the
//! output is that of least E^k_x/p_x over all x and k.
//!
//! # One output
//! Let the output be y, of noise k, and t = E^k_y/p_y: of density n e^{-nt}, whatever y and k are. Of
//! all others is known that E > p t, and by how much is Exp(1) again. So along z = s t token x
//! rings at rate q_x from s = p_x/q_x on, and with
//!
//! ```text
//! A(s) = sum of (s q_x - p_x)+,   l = p_y/q_y,   g(t) = q_y t integral over s > l of e^{-t A(s)} ds,
//! ```
//!
//! draft k is y with chance e^{-t A(l)} and every other draft with g(t), independently. The output
//! is lost with
//!
//! ```text
//! integral over t > 0 of n e^{-nt} L(t) dt,   L = sum of p_y (1 - e^{-t A(l)}) (1 - g(t))^{n-1},
//! ```
//!
//! and where q_y = 0. Between two ratios A is a line of slope Q, the q of what has begun, so that
//! g is a sum of (e^{-t A(s)} - e^{-t A(s')})/Q: one sweep a t for all outputs and all n.
//!
//! # Error
//! The trapezoidal rule in log t. For t = r e^{ia}, tau = Re t = r cos a > 0 both exponentials
//! stay below 1, so |g(t)| <= g(tau)/cos a and |1 - e^{-tA}| <= 2: with c = 1/cos a the integral of
//! |n t e^{-nt} L(t)| along the line Im log t = a is at most M = 2 c (1 + c)^{n-1}, and the rule of step h
//! is off by at most 2 M/(e^{2 pi a/h} - 1), as `specgap_number::quadrature` proves of the race of draws.
//! L is at most L_1 = sum of p_y (1 - e^{-t A(l)}), which rises: what is left out before t is at most
//! n t L_1(t), and behind t it is e^{-nt}.
//!
//! Rounding: A and Q are sums of positive terms in the order of p/q, so they are those of p/q off by
//! an epsilon each, and off by V epsilon as a whole: by x e^{-x} of this in e^{-tA}, and no more in g,
//! as t times the integral of t A e^{-tA} dA is at most 1.

use super::scan::Row;
use specgap_number::distribution::{Rows, by_rising_ratio};
use specgap_number::known::Known;
use std::f64::consts::TAU;

/// Tokens of less q are drafted with no chance that matters, and their p/q might leave `f64`.
const LEAST_DRAFT: f64 = 1e-290;

/// A token of q > 0, in the order of p/q.
#[derive(Clone, Copy, Debug)]
struct Token {
    id: usize,
    p: f64,
    q: f64,
    /// A at its p/q.
    others: f64,
    /// Q behind it.
    begun: f64,
    /// What A rises by up to the next; the last has no next.
    rise: f64,
}

/// Bound on the error of the trapezoidal rule of a step in log t, at the best of some angles.
fn step_error(drafts: usize, step: f64) -> f64 {
    let of = |angle: f64| {
        let c = 1.0 / angle.cos();
        // (1 + c)^(n-1) may leave the range.
        let power = TAU * angle / step - (drafts as f64 - 1.0) * c.ln_1p();
        4.0 * c * (-power).exp() / (1.0 - (-TAU * angle / step).exp())
    };
    (1..15).map(|k| of(0.1 * f64::from(k))).fold(1.0, f64::min)
}

/// P(the output is among the drafts) for n = 1, .., `drafts`, each known to some `width`. The rows
/// sum to 1. A sort, and O(V (1 + n)) a node, of which there are some ten to a hundred.
pub fn rates_of_several_noises(rows: Rows<'_>, drafts: usize, width: f64) -> Vec<Known> {
    let tokens = in_order(rows);
    let most = drafts as f64;
    let width = width.max(1e-13);
    let reachable: f64 = tokens.iter().map(|token| token.p).sum();
    let rounding = (most + 4.0) * (tokens.len() as f64 + 32.0) * f64::EPSILON;
    let first = tokens.iter().map(|token| token.p / (1.0 + token.others));
    let mut rates = vec![Known::rate_within(first.sum(), rounding)];
    if drafts < 2 {
        return rates;
    }
    let (mut step, third) = (0.5, width / 3.0);
    while step_error(drafts, step) > 0.5 * third {
        step *= 0.96;
    }
    let error = step_error(drafts, step) + rounding;
    // From e^{-2t} on; each node to the left is a factor e^{-step}.
    let last = -0.5 * third.ln();
    let (mut sums, mut losses) = (vec![0.0; drafts + 1], vec![0.0; drafts + 1]);
    for node in 0.. {
        let t = last * (-step * f64::from(node)).exp();
        lost(&tokens, t, &mut losses);
        for (n, (sum, loss)) in sums.iter_mut().zip(&losses).enumerate() {
            let n = n as f64;
            *sum += step * n * t * (-n * t).exp() * loss;
        }
        let before = most * t * losses[1];
        if before <= third {
            let of_more = (2..=drafts).map(|n| {
                let missing = n as f64 * t * losses[1] + (-(n as f64) * last).exp();
                let kept = reachable - sums[n];
                Known::rate(kept, kept - missing - error, kept + error)
            });
            rates.extend(of_more);
            break;
        }
    }
    rates
}

fn in_order(rows: Rows<'_>) -> Vec<Token> {
    let order = by_rising_ratio(rows);
    let mut tokens: Vec<Token> = Vec::with_capacity(order.len());
    let (mut others, mut begun, mut ratio) = (0.0, 0.0, 0.0);
    for &(next, token) in order.iter() {
        let (p, q) = (rows.target[token as usize], rows.draft[token as usize]);
        if q < LEAST_DRAFT {
            continue;
        }
        if let Some(before) = tokens.last_mut() {
            before.rise = begun * (next - ratio);
            others += before.rise;
        }
        begun += q;
        ratio = next;
        tokens.push(Token {
            id: token as usize,
            p,
            q,
            others,
            begun,
            rise: f64::INFINITY,
        });
    }
    tokens
}

/// Tokens from the last to the first, each with e^{-tA} at its p/q, and with t times the integral of
/// e^{-tA} from there on.
fn waits(tokens: &[Token], t: f64) -> impl Iterator<Item = (&Token, f64, f64)> {
    tokens.iter().rev().scan(0.0, move |left, token| {
        let (waits, passes) = ((-t * token.others).exp(), -(-t * token.rise).exp_m1());
        *left += waits * passes / token.begun;
        Some((token, waits, *left))
    })
}

/// L at t for n = 1 and on.
fn lost(tokens: &[Token], t: f64, losses: &mut [f64]) {
    losses.fill(0.0);
    for (token, waits, left) in waits(tokens, t) {
        let missed = (1.0 - token.q * left).max(0.0);
        let mut loss = token.p * (1.0 - waits);
        for sum in &mut losses[1..] {
            *sum += loss;
            loss *= missed;
        }
    }
}

/// P(the output is w, and the drafts are these) for every w, to 1e-14. The rows sum to 1. O(nV) a
/// node, of which there are some hundreds.
///
/// With the noise of the output at t, its draft is x other than w with
/// q_x t times the integral of e^{-tA} from p_x/q_x to p_w/q_w; each is weighed by the chance of all
/// other drafts in their own noises.
pub fn masses_of_several_noises(rows: Rows<'_>, drafts: &[usize]) -> Vec<f64> {
    let tokens = in_order(rows);
    let (mut step, n) = (0.5, drafts.len() as f64);
    while step_error(drafts.len() + 1, step) > 1e-15 {
        step *= 0.96;
    }
    let vocab = rows.target.len();
    let (mut masses, mut left, mut alone) = (vec![0.0; vocab], vec![0.0; vocab], vec![0.0; vocab]);
    let mut t = 40.0 / n;
    while n * t > 1e-16 {
        for (token, waits, from) in waits(&tokens, t) {
            (alone[token.id], left[token.id]) = (waits, from);
        }
        let chances = || drafts.iter().map(|&draft| rows.draft[draft] * left[draft]);
        let weight = step * t * (-n * t).exp();
        for (own, &draft) in drafts.iter().enumerate() {
            let each = chances().enumerate();
            let others: f64 = each
                .filter(|(other, _)| *other != own)
                .map(|(_, g)| g)
                .product();
            if others <= 0.0 {
                continue;
            }
            for (token, (mass, p)) in masses.iter_mut().zip(rows.target).enumerate() {
                let first = if token == draft {
                    alone[draft]
                } else {
                    rows.draft[draft] * (left[draft] - left[token]).max(0.0)
                };
                *mass += weight * others * p * first;
            }
        }
        t *= (-step).exp();
    }
    masses
}

/// The rates of a row, for n = 1 and on.
struct SeveralRates(Vec<Known>);

impl Row<'_> {
    /// P(the output is among n drafts) where every draft has a noise and the output all of them. What
    /// the first call computes serves all numbers of drafts that the row was loaded for. See
    /// [`rates_of_several_noises`].
    pub fn several_noises(&mut self, drafts: usize, width: f64) -> Known {
        let drafts = drafts.max(1);
        let all = self.most_drafts().max(drafts);
        self.kept(
            |rates: &SeveralRates| rates.0.len() >= drafts,
            |row| row.of_shares(|_, rows| SeveralRates(rates_of_several_noises(rows, all, width))),
            |rates| rates.0[drafts - 1].clone(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_number::quadrature::gauss_legendre;

    /// The noises themselves, drawn: 100,000 runs, within 4.5 standard errors (false-positive rate
    /// 7e-6 a number). One noise in place of several is told apart.
    #[test]
    fn it_is_what_several_noises_do() {
        let mut rng = ChaCha8Rng::seed_from_u64(95);
        let p = [0.05, 0.4, 0.0, 0.3, 0.15, 0.1];
        let q = [0.3, 0.2, 0.2, 0.0, 0.05, 0.25];
        let runs = 100_000;
        let mut kept = [0.0; 4];
        for _ in 0..runs {
            for n in 1..=4usize {
                let (mut drafts, mut first) = (Vec::new(), (f64::INFINITY, 0));
                for _ in 0..n {
                    let noise = [(); 6].map(|()| -(-rng.random::<f64>()).ln_1p());
                    let mut drafted = (f64::INFINITY, 0);
                    for x in 0..6 {
                        if q[x] > 0.0 && noise[x] / q[x] < drafted.0 {
                            drafted = (noise[x] / q[x], x);
                        }
                        if p[x] > 0.0 && noise[x] / p[x] < first.0 {
                            first = (noise[x] / p[x], x);
                        }
                    }
                    drafts.push(drafted.1);
                }
                kept[n - 1] += f64::from(u8::from(drafts.contains(&first.1)));
            }
        }
        for (kept, rate) in kept
            .iter()
            .zip(rates_of_several_noises(Rows::new(&p, &q), 4, 1e-9))
        {
            let value = rate.value();
            let error = (value * (1.0 - value) / f64::from(runs)).sqrt();
            let off = kept / f64::from(runs) - value;
            assert!(
                rate.width() < 1e-8 && off.abs() < 4.5 * error,
                "{rate:?} {off} {error}"
            );
        }
    }

    /// Both integrals by Gauss-Legendre rules on panels, from p and q alone: no order, no Q.
    fn by_panels(p: &[f64], q: &[f64], drafts: i32) -> f64 {
        let rule = gauss_legendre(16);
        let integral = |from: f64, to: f64, f: &dyn Fn(f64) -> f64| -> f64 {
            let half = 0.5 * (to - from);
            let at = |(x, w): &(f64, f64)| w * half * f(from + half * (1.0 + x));
            rule.iter().map(at).sum()
        };
        let ahead = |s: f64| -> f64 {
            let each = p.iter().zip(q).map(|(p, q)| (s * q - p).max(0.0));
            each.sum()
        };
        let mut cuts: Vec<f64> = p.iter().zip(q).map(|(p, q)| p / q).collect();
        cuts.sort_by(f64::total_cmp);
        let mut kept = 0.0;
        for (p_y, q_y) in p.iter().zip(q) {
            let l = p_y / q_y;
            let f = |log: f64| {
                let t = log.exp();
                let n = f64::from(drafts);
                let weight = |s: f64| q_y * t * (-t * ahead(s)).exp();
                let mut g = 0.0;
                for pair in cuts.windows(2).filter(|pair| pair[0] >= l) {
                    for k in 0..8 {
                        let at = |k: i32| pair[0] + (pair[1] - pair[0]) * f64::from(k) / 8.0;
                        g += integral(at(k), at(k + 1), &weight);
                    }
                }
                // All have begun: A has slope 1.
                g += q_y * (-t * ahead(cuts[cuts.len() - 1])).exp();
                let lost = (1.0 - (-t * ahead(l)).exp()) * (1.0 - g).powi(drafts - 1);
                n * t * (-n * t).exp() * (1.0 - lost)
            };
            let panels = (-34..4).map(|k| integral(f64::from(k), f64::from(k + 1), &f));
            kept += p_y * panels.sum::<f64>();
        }
        kept
    }

    #[test]
    fn panels_give_the_same() {
        let mut rng = ChaCha8Rng::seed_from_u64(96);
        for (vocab, nats) in [(2, 1.0), (5, 3.0), (7, 5.0)] {
            let mut row = || {
                let row: Vec<f64> = (0..vocab)
                    .map(|_| (nats * rng.random::<f64>()).exp())
                    .collect();
                let sum: f64 = row.iter().sum();
                row.iter().map(|x| x / sum).collect::<Vec<f64>>()
            };
            let (p, q) = (row(), row());
            let rates = rates_of_several_noises(Rows::new(&p, &q), 6, 1e-12);
            let wide = rates_of_several_noises(Rows::new(&p, &q), 6, 1e-3);
            for (n, (rate, wide)) in (1..).zip(rates.iter().zip(&wide)) {
                let other = by_panels(&p, &q, n);
                assert!((rate.value() - other).abs() < 1e-11, "{n} {rate:?} {other}");
                assert!(rate.width() < 2e-12 && wide.width() < 1e-3);
                assert!(wide.lower() <= rate.value() && rate.value() <= wide.upper());
            }
        }
    }

    #[test]
    fn rows_at_the_edges() {
        let of = |p: &[f64], q: &[f64], n| rates_of_several_noises(Rows::new(p, q), n, 1e-10);
        for (p, q, expected) in [
            (vec![1.0, 0.0], vec![1.0, 0.0], 1.0),
            (vec![0.0, 1.0], vec![1.0, 0.0], 0.0),
            (vec![0.25, 0.75], vec![0.25, 0.75], 1.0),
            // A draft that is never put out, and an output that is hardly ever drafted.
            (vec![0.5, 0.5], vec![5e-324, 1.0], 0.5),
            (vec![0.5, 0.5], vec![1e-250, 1.0], 0.5),
        ] {
            for rate in of(&p, &q, 64) {
                assert!(rate.lower() <= expected + 1e-10 && expected <= rate.upper() + 1e-10);
                assert!(rate.width() < 1e-9, "{p:?} {q:?} {rate:?}");
            }
        }
    }
}
