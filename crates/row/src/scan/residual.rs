//! What rejection leaves of p, and the order of the tokens, from the buckets of a scan.

use super::Row;
use super::buckets::{Masses, bucket_of, lower_edge};
use multiversion::multiversion;
use specgap_number::distribution::split_sum;

/// Sum of (p - factor q)+.
#[multiversion(targets = "simd")]
fn positive_parts(target: &[f64], draft: &[f64], factor: f64) -> f64 {
    split_sum(target, draft, |p, q| {
        let rest = p - factor * q;
        if rest > 0.0 { rest } else { 0.0 }
    })
}

impl Row<'_> {
    /// M(L) = sum over tokens of (p - L q)+, the mass of p that is left after a share L >= 0
    /// of q was taken from it; p and q divided by their sums.
    ///
    /// # Exactness
    /// Within 8 epsilon (1 + L): sums over buckets are exact but for 4u, tokens of the one
    /// bucket that holds q/p = 1/L are added one by one, and a token that rounding puts on
    /// the wrong side of 1/L has |p - L q| below 2 epsilon p.
    ///
    /// # Complexity
    /// O(m + log buckets) for the m tokens of that bucket, which are remembered; the first
    /// few buckets are searched for among all tokens.
    pub fn residual_mass(&mut self, factor: f64) -> f64 {
        let scale = self.scaled(factor);
        let bucket = usize::from(bucket_of(1.0 / scale));
        let links = self.scan.buckets.links();
        let index = links.partition_point(|link| link.bucket < bucket);
        if links.get(index).is_some_and(|link| link.bucket == bucket) {
            return self.residual_in(index, scale);
        }
        let beyond = match links.get(index) {
            Some(link) => self.scan.buckets.all().without(&link.before),
            None => Masses::default(),
        };
        self.share(&beyond, scale, 0.0)
    }

    /// The factor L in [`low`, `high`] at which `holds(L, M(L))` turns from true to false,
    /// and M there. It has to turn once at most, and is looked at where buckets end before
    /// any token is.
    pub fn turning_factor(
        &mut self,
        low: f64,
        high: f64,
        holds: impl Fn(f64, f64) -> bool,
    ) -> (f64, f64) {
        let (mut low, mut high) = (low, high);
        let end = |index: usize| {
            let link = &self.scan.buckets.links()[index];
            1.0 / (lower_edge(link.bucket) * self.scaled(1.0))
        };
        let links = self.scan.buckets.links().len();
        let (mut first, mut last) = (0, links);
        while first < last {
            let middle = usize::midpoint(first, last);
            let factor = end(middle);
            let mass = || self.share(&self.beyond(middle), self.scaled(factor), 0.0);
            let before = factor <= low || factor < high && holds(factor, mass());
            if before {
                first = middle + 1;
            } else {
                last = middle;
            }
        }
        if first > 0 {
            low = low.max(end(first - 1));
        }
        let mut crossed = Crossed::default();
        if first < links {
            high = high.min(end(first));
            crossed = self.crossed(first);
        }
        self.turn(low, high.max(low), &mut crossed, holds)
    }

    /// [`Self::turning_factor`] by halving, where M is that of a bucket from `low` to `high`.
    fn turn(
        &self,
        mut low: f64,
        mut high: f64,
        crossed: &mut Crossed,
        holds: impl Fn(f64, f64) -> bool,
    ) -> (f64, f64) {
        let at = |crossed: &Crossed, factor: f64| {
            let scale = self.scaled(factor);
            let tokens = positive_parts(&crossed.target, &crossed.draft, scale);
            self.share(&crossed.beyond, scale, tokens)
        };
        let mut halved = 0;
        while low < high {
            let middle = low.midpoint(high);
            if middle <= low || middle >= high {
                break;
            }
            if holds(middle, at(crossed, middle)) {
                low = middle;
            } else {
                high = middle;
            }
            halved += 1;
            if halved % HALVINGS == 0 {
                crossed.narrow(self.scaled(low), self.scaled(high));
            }
        }
        let mass = at(crossed, low);
        if holds(low, mass) {
            (high, at(crossed, high))
        } else {
            (low, mass)
        }
    }

    /// The factor on rows as they are: p/sum p - L q/sum q is 1/sum p of it.
    fn scaled(&self, factor: f64) -> f64 {
        let (target, draft) = self.totals();
        factor * (target / draft)
    }

    fn share(&self, beyond: &Masses, scale: f64, tokens: f64) -> f64 {
        let whole = (beyond.target() - scale * beyond.draft()).max(0.0);
        (whole + tokens) / self.scan.buckets.all().target()
    }

    /// M where 1/L lies in the bucket of a link, or next to it with no token between.
    fn residual_in(&mut self, index: usize, scale: f64) -> f64 {
        let beyond = self.beyond(index);
        let (target, draft) = self.scan.buckets.pick(self.rows, index);
        let tokens = positive_parts(target, draft, scale);
        self.share(&beyond, scale, tokens)
    }

    /// Sums over the buckets after that of a link.
    fn beyond(&self, index: usize) -> Masses {
        let link = &self.scan.buckets.links()[index];
        let mut until = link.before;
        until.merge(&link.own);
        self.scan.buckets.all().without(&until)
    }

    fn crossed(&mut self, index: usize) -> Crossed {
        let beyond = self.beyond(index);
        let (target, draft) = self.scan.buckets.pick(self.rows, index);
        Crossed {
            beyond,
            target: target.to_vec(),
            draft: draft.to_vec(),
        }
    }
}

/// Halvings after which the tokens are looked through: few are left to look at then.
const HALVINGS: usize = 4;

/// What M is made of while L moves within a bucket.
#[derive(Default)]
struct Crossed {
    /// Sums over tokens of p/q above all of these L.
    beyond: Masses,
    /// p and q of those whose p/q is among them.
    target: Vec<f64>,
    draft: Vec<f64>,
}

impl Crossed {
    /// For L from `low` to `high` alone.
    fn narrow(&mut self, low: f64, high: f64) {
        let mut kept = 0;
        for token in 0..self.target.len() {
            let (p, q) = (self.target[token], self.draft[token]);
            if p > high * q {
                self.beyond.add(p, q);
            } else if p > low * q {
                (self.target[kept], self.draft[kept]) = (p, q);
                kept += 1;
            }
        }
        self.target.truncate(kept);
        self.draft.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Workspace;
    use crate::test_rows::normalised;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use specgap_number::distribution::{Rows, TwoFloat};

    /// p and q of 1 to 3,000 tokens: flat, peaked, with zeros, with ties.
    fn rows(rng: &mut ChaCha8Rng, trial: usize) -> [Vec<f64>; 2] {
        let count = [1, 2, 7, 100, 3_000][trial % 5];
        let spread = [0.1, 3.0, 60.0, 600.0][trial / 5 % 4];
        let mut shared = Vec::new();
        let mut row = |zeros: f64, ties: bool| {
            shared.resize_with(count, || spread * rng.random::<f64>());
            let entries = shared.iter().enumerate().map(|(i, shared)| {
                let own = if ties { 0.0 } else { 2.0 * rng.random::<f64>() };
                let kept = i == 0 || rng.random::<f64>() >= zeros;
                if kept { (-shared - own).exp() } else { 0.0 }
            });
            normalised(entries.collect())
        };
        let zeros = [0.0, 0.3][trial % 2];
        let ties = trial.is_multiple_of(3);
        [row(zeros, ties), row(zeros, ties)]
    }

    fn summed([p, q]: &[Vec<f64>; 2], factor: f64) -> f64 {
        let total = |row: &[f64]| {
            row.iter()
                .fold(TwoFloat::ZERO, |sum, &x| sum + x.into())
                .value()
        };
        let (p_sum, q_sum) = (total(p), total(q));
        let mut sum = TwoFloat::ZERO;
        for (p, q) in p.iter().zip(q) {
            sum += (p / p_sum - factor * q / q_sum).max(0.0);
        }
        sum.value()
    }

    /// Rows that sum to 1 but for what is allowed: both are divided by their sums.
    #[test]
    fn rows_are_divided_by_their_sums() {
        let (above, below) = (1.0 + 2f64.powi(-21), 1.0 - 2f64.powi(-21));
        let target = [0.125, 0.25, 0.625].map(|p| p * above);
        let draft = [0.5, 0.25, 0.25].map(|q| q * below);
        let mut scan = Workspace::new();
        let mut row = scan.load(Rows::new(&target, &draft), 2).unwrap();
        // p - L q above 0: 3/8 for L = 1, 5/8 - L/4 from there on, 1/8 for L = 2.
        for (factor, mass) in [
            (0.0, 1.0),
            (0.5, 0.625),
            (1.0, 0.375),
            (2.0, 0.125),
            (2.5, 0.0),
        ] {
            let found = row.residual_mass(factor);
            assert!((found - mass).abs() < 1e-15, "{factor}: {found} {mass}");
        }
        // It is 1/4 at L = 3/2.
        let (factor, mass) = row.turning_factor(1.0, 8.0, |_, mass| mass > 0.25);
        assert!(
            (factor - 1.5).abs() < 1e-14 && (mass - 0.25).abs() < 1e-14,
            "{factor} {mass}"
        );
        // It holds nowhere, or everywhere.
        let (factor, mass) = row.turning_factor(1.0, 8.0, |_, mass| mass > 0.5);
        assert!(
            factor == 1.0 && (mass - 0.375).abs() < 1e-15,
            "{factor} {mass}"
        );
        let (factor, mass) = row.turning_factor(1.0, 2.0, |_, mass| mass > 0.1);
        assert!(
            factor == 2.0 && (mass - 0.125).abs() < 1e-15,
            "{factor} {mass}"
        );
        // By the factor alone.
        let (factor, _) = row.turning_factor(1.0, 8.0, |factor, _| factor < 2.0);
        assert!((factor - 2.0).abs() < 1e-14, "{factor}");
    }

    #[test]
    fn masses_and_turning_factors_agree_with_sums_over_all_tokens() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut scan = Workspace::new();
        for trial in 0..120 {
            let rows = rows(&mut rng, trial);
            let [target, draft] = &rows;
            let mut at = scan.load(Rows { target, draft }, 2).unwrap();
            for factor in [
                0.0,
                1e-30,
                0.3,
                1.0,
                1.0 + 1e-9,
                1.7,
                2.0,
                64.0,
                1e14,
                1e300,
            ] {
                let (mass, sum) = (at.residual_mass(factor), summed(&rows, factor));
                let bound = 8.0 * f64::EPSILON * (1.0 + factor);
                assert!(
                    (mass - sum).abs() <= bound,
                    "{trial} {factor}: {mass} {sum}"
                );
            }
            for wanted in [0.0, 1e-6, 0.1, 0.5, 0.9, 1.0] {
                let (factor, mass) = at.turning_factor(1.0, 8.0, |_, mass| mass > wanted);
                assert!((1.0..=8.0).contains(&factor));
                let bound = 8.0 * f64::EPSILON * (1.0 + factor);
                assert!(
                    (mass - summed(&rows, factor)).abs() <= bound,
                    "{trial} {wanted}"
                );
                let step = 1e-12 * factor;
                assert!(factor == 8.0 || summed(&rows, factor + step) <= wanted + 1e-14);
                assert!(factor == 1.0 || summed(&rows, factor - step) >= wanted - 1e-14);
            }
        }
    }
}
