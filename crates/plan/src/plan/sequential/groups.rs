//! Light tokens of a tier gathered into groups, first weights for them, and functions on
//! groups carried back to tokens.

use super::race::Class;
use super::tier::{CEILING, FLOOR_INNER, Items, Tier, coordinate};
use specgap_number::quadrature::Resolution;
use specgap_number::scratch::Scratch;

/// Widest group, and the most that its mass times its width squared may be.
const WIDEST: f64 = 0.35;
const SPREAD: f64 = 1e-4;

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
                wanted: Scratch::copied(&self.items.wanted[..heavy]),
                low: Scratch::copied(&self.items.low[..heavy]),
                up: Scratch::copied(&self.items.up[..heavy]),
                goal: Scratch::copied(&self.items.goal[..heavy]),
            },
            starts: (0..heavy).collect(),
            at: self.items.goal[..heavy].to_vec(),
            mass: self.mass[..heavy].to_vec(),
            classes: vec![heavy],
        };
        // Light mass is what is drafted of it.
        let total: f64 = self.items.up.iter().sum::<f64>().max(1e-300);
        let mut first = heavy;
        for class in &self.items.classes {
            let end = first + class.len();
            let mut moments = vec![Scratch::default(); class.terms];
            let mut start = first;
            while start < end {
                let mut stop = start + 1;
                let mut held = self.items.up[start];
                while stop < end {
                    let width = self.items.goal[stop] - self.items.goal[start];
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
                let centre = self.items.goal[start..stop]
                    .iter()
                    .zip(&self.mass[start..stop])
                    .map(|(at, q)| at * (q / mass))
                    .sum();
                let (wanted, low, up) = (
                    sum(&self.items.wanted),
                    sum(&self.items.low),
                    sum(&self.items.up),
                );
                groups.items.wanted.push(wanted);
                groups.items.low.push(low);
                groups.items.up.push(up);
                groups.items.goal.push(coordinate(wanted, low, up));
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
                if slope > 0.0 {
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

    /// A function on the groups that are not held, at their places `at`, carried to every item:
    /// the value itself for heavy tokens, cubics between groups of a class that stay between
    /// the values at their ends.
    pub(super) fn spread(
        &self,
        groups: &Groups,
        at: &[f64],
        value: &[f64],
        held: &[bool],
    ) -> Scratch<f64> {
        let heavy = self.race.heavy.len();
        let mut spread = Scratch::with_capacity(self.tokens.len());
        spread.extend_from_slice(&value[..heavy]);
        for range in groups.classes.windows(2) {
            let points: Vec<(f64, f64)> = (range[0]..range[1])
                .filter(|&group| !held[group])
                .map(|group| (at[group], value[group]))
                .collect();
            let rises = rises(&points);
            let tokens = groups.starts[range[0]]..groups.starts[range[1]];
            let mut rest = &self.items.goal[tokens];
            for next in 0..=points.len() {
                let end = match points.get(next) {
                    Some(point) => rest.partition_point(|&at| at < point.0),
                    None => rest.len(),
                };
                let (own, after) = rest.split_at(end);
                rest = after;
                let last = next.checked_sub(1);
                let (from, [a, b, c, d]) = match (last, points.get(next)) {
                    (Some(last), Some(&(end, to))) => {
                        let (from, value) = points[last];
                        let width = (end - from).max(1e-300);
                        let rise = (to - value) / width;
                        let (first, second) = (rises[last], rises[next]);
                        let square = (3.0 * rise - 2.0 * first - second) / width;
                        let cube = ((first + second) - 2.0 * rise) / (width * width);
                        (from, [value, first, square, cube])
                    }
                    (Some(last), None) => (0.0, [points[last].1, 0.0, 0.0, 0.0]),
                    (None, Some(point)) => (0.0, [point.1, 0.0, 0.0, 0.0]),
                    (None, None) => (0.0, [0.0; 4]),
                };
                spread.extend(own.iter().map(|at| {
                    let t = at - from;
                    a + t * (b + t * (c + t * d))
                }));
            }
        }
        spread
    }
}

/// How steep a curve through points is there: the weighted harmonic mean of the straight lines
/// to both sides, and nothing where it turns (Fritsch and Butland, SIAM Journal on Scientific
/// and Statistical Computing 5 (1984)).
fn rises(points: &[(f64, f64)]) -> Vec<f64> {
    let lines: Vec<(f64, f64)> = (points.windows(2))
        .map(|pair| {
            let width = pair[1].0 - pair[0].0;
            let rise = (pair[1].1 - pair[0].1) / width;
            (width, if width > 1e-9 { rise } else { 0.0 })
        })
        .collect();
    let inner = lines.windows(2).map(|pair| {
        let ((before, first), (after, second)) = (pair[0], pair[1]);
        if first * second <= 0.0 {
            return 0.0;
        }
        let (a, b) = (2.0 * after + before, after + 2.0 * before);
        (a + b) / (a / first + b / second)
    });
    let ends = |line: Option<&(f64, f64)>| line.map_or(0.0, |line| line.1);
    let mut rises = vec![ends(lines.first())];
    rises.extend(inner);
    if points.len() > 1 {
        rises.push(ends(lines.last()));
    }
    rises
}
