//! Light tokens of a tier gathered into groups, first weights for them, and functions on
//! groups carried back to tokens.

use super::race::Class;
use super::tier::{CEILING, FLOOR_INNER, Items, Tier, coordinate};
use crate::quadrature::Resolution;

/// Widest group, and the most that its mass times its width squared may be.
const WIDEST: f64 = 0.125;
const SPREAD: f64 = 2e-6;

/// Groups up to which the Hessian is taken on all nodes.
const SMALL: usize = 16;

/// Contiguous tokens of a class that share a weight while groups are solved.
pub(super) struct Groups {
    pub(super) items: Items,
    /// First item of every group, and the end; heavy tokens are groups of one.
    pub(super) starts: Vec<usize>,
    /// Coordinate of every group.
    pub(super) at: Vec<f64>,
    pub(super) mass: Vec<f64>,
    /// First group of every class, and the end.
    pub(super) classes: Vec<usize>,
}

impl Tier<'_> {
    pub(super) fn groups(&self) -> Groups {
        let heavy = self.race.heavy.len();
        let mut groups = Groups {
            items: Items {
                classes: Vec::new(),
                wanted: self.items.wanted[..heavy].to_vec(),
                low: self.items.low[..heavy].to_vec(),
                up: self.items.up[..heavy].to_vec(),
            },
            starts: (0..heavy).collect(),
            at: self.at[..heavy].to_vec(),
            mass: self.mass[..heavy].to_vec(),
            classes: vec![heavy],
        };
        // Light mass is what is drafted of it.
        let total: f64 = self.items.up.iter().sum::<f64>().max(1e-300);
        let mut first = heavy;
        for class in &self.items.classes {
            let end = first + class.len();
            let mut moments = vec![Vec::new(); class.terms];
            let mut start = first;
            while start < end {
                let mut stop = start + 1;
                let mut held = self.items.up[start];
                while stop < end {
                    let width = self.at[stop] - self.at[start];
                    held += self.items.up[stop];
                    if width > 8.0 * WIDEST
                        || (width > 1e-12 && held / total * width * width > SPREAD)
                        || (width > WIDEST && held / total > 1e-9)
                    {
                        break;
                    }
                    stop += 1;
                }
                let sum = |values: &[f64]| values[start..stop].iter().sum::<f64>();
                for (row, own) in moments.iter_mut().zip(&class.moments) {
                    row.push(own[start - first..stop - first].iter().sum());
                }
                let mass = sum(&self.mass);
                let centre = self.at[start..stop]
                    .iter()
                    .zip(&self.mass[start..stop])
                    .map(|(at, q)| at * (q / mass))
                    .sum();
                groups.items.wanted.push(sum(&self.items.wanted));
                groups.items.low.push(sum(&self.items.low));
                groups.items.up.push(sum(&self.items.up));
                groups.starts.push(start);
                groups.at.push(centre);
                groups.mass.push(mass);
                start = stop;
            }
            groups.items.classes.push(Class {
                terms: class.terms,
                moments,
            });
            groups.classes.push(groups.starts.len());
            first = end;
        }
        groups.starts.push(self.tokens.len());
        groups
    }

    pub(super) fn steering(&self, groups: &Groups) -> Resolution {
        if groups.at.len() <= SMALL {
            Resolution::Fine
        } else {
            Resolution::Coarse
        }
    }

    pub(super) fn first(&self, groups: &Groups, touched: f64) -> Vec<f64> {
        let mut theta = groups.at.clone();
        if self.outer() {
            // Where targets are cut if all are in proportion to q.
            let mut order: Vec<usize> = (0..theta.len()).collect();
            order.sort_by(|&a, &b| theta[a].total_cmp(&theta[b]));
            let mut left = touched;
            let mut open: f64 = groups.mass.iter().sum();
            let mut shift = 0.0;
            for &item in &order {
                shift = theta[item];
                let ratio = groups.items.wanted[item] / groups.mass[item];
                if ratio * open >= left {
                    break;
                }
                left -= groups.items.wanted[item];
                open -= groups.mass[item];
            }
            for theta in &mut theta {
                *theta -= shift;
            }
        }
        for theta in &mut theta {
            *theta = theta.clamp(-40.0, 40.0);
        }
        self.bounded(&mut theta);
        if !self.outer() {
            self.shift(groups, &mut theta, touched);
        }
        theta
    }

    /// Moves all weights of the inner tier by one factor, so that as much is rejected
    /// as must be: the secant method in log odds, which are nearly linear.
    fn shift(&self, groups: &Groups, theta: &mut [f64], touched: f64) {
        let goal = coordinate(groups.items.wanted.iter().sum(), 0.0, touched);
        let (mut before, mut rate) = (None, 1.0);
        for _ in 0..8 {
            let emitted = self.emission(&groups.items, theta, self.steering(groups), false);
            let now = coordinate(emitted.value.iter().sum(), 0.0, touched);
            if let Some((last, moved)) = before {
                let slope: f64 = (now - last) / moved;
                if slope.is_finite() && slope > 0.0 {
                    rate = slope.clamp(0.1, 2.0);
                }
            }
            let step = ((goal - now) / rate).clamp(-5.0, 5.0);
            if step.abs() < 0.1 || step.is_nan() {
                break;
            }
            before = Some((now, step));
            for theta in theta.iter_mut() {
                *theta = (*theta + step).clamp(FLOOR_INNER, CEILING);
            }
        }
    }

    /// A function on the groups that are not held, carried to every item: the value
    /// itself for heavy tokens, straight lines between groups of a class.
    pub(super) fn spread(&self, groups: &Groups, value: &[f64], held: &[bool]) -> Vec<f64> {
        let heavy = self.race.heavy.len();
        let mut spread = value[..heavy].to_vec();
        for range in groups.classes.windows(2) {
            let points: Vec<(f64, f64)> = (range[0]..range[1])
                .filter(|&group| !held[group])
                .map(|group| (groups.at[group], value[group]))
                .collect();
            let tokens = groups.starts[range[0]]..groups.starts[range[1]];
            let mut next = 0;
            for &at in &self.at[tokens] {
                while next < points.len() && points[next].0 <= at {
                    next += 1;
                }
                spread.push(
                    match (
                        next.checked_sub(1).and_then(|k| points.get(k)),
                        points.get(next),
                    ) {
                        (Some(a), Some(b)) => {
                            a.1 + (b.1 - a.1) * (at - a.0) / (b.0 - a.0).max(1e-300)
                        }
                        (Some(end), None) | (None, Some(end)) => end.1,
                        (None, None) => 0.0,
                    },
                );
            }
        }
        spread
    }
}
