//! How well a number is known, in words.
//!
//! Two uncertainties are kept apart. `± x` is about prompts that were not logged. How a
//! number came about is about the rows that were: it is exact, enclosed, Monte Carlo, or
//! that of truncated rows. Where bounds of truncated rows are further apart than ±
//! ([`Estimate::open`]) they stand alone.
//!
//! Rates and differences of rates are shown in percent; reports as data have them as shares.

use specgap_number::known::Kind;
use specgap_page::plot::Point;
use specgap_page::table::{Entry, Number};
use specgap_page::words::{at_most, listed, range};
use specgap_statistics::statistics::Estimate;
use std::cmp::Ordering;

/// What bounds of alpha* say that no method found.
pub(super) const BETWEEN: &str = "α* of a law of your own in [a, b], or a to b: no method finds it at \
    some position, and the bounds are of α* itself, not of a sample, nor of tokens that rows do not \
    list. The value before them is the upper one.";

/// What that is.
pub(super) const ALPHA: &str = "α*: the most that a lossless verifier of these drafts can accept in a position that \
    starts with the target's own law.";

/// Half the width of the interval; `None` where there is one cluster only, so
/// that no interval can be given.
fn half_width(estimate: &Estimate) -> Option<f64> {
    let [low, high] = estimate.ci95;
    (high > low).then(|| (high - low) / 2.0)
}

/// Digits behind the point of percents that tell a share of this size from 0.
pub(super) fn decimals(size: f64) -> usize {
    match size {
        size if size == 0.0 || size >= 5e-4 => 1,
        size if size >= 5e-5 => 2,
        _ => 3,
    }
}

/// A share in percent with so many digits behind the point.
pub(super) fn with_decimals(value: f64, decimals: usize) -> String {
    signed(format!("{:.decimals$}", 100.0 * value))
}

/// Puts a minus sign in place of a hyphen, and none where nothing is left.
fn signed(text: String) -> String {
    match text.strip_prefix('-') {
        Some(digits) if digits.chars().all(|c| c == '0' || c == '.') => digits.to_owned(),
        Some(digits) => format!("−{digits}"),
        None => text,
    }
}

/// A share in percent, without a sign of it; powers of ten where digits would hide it.
pub(super) fn in_percent(value: f64) -> String {
    let size = value.abs();
    if size > 0.0 && size < 5e-6 {
        return signed(format!("{:.1e}", 100.0 * value));
    }
    with_decimals(value, decimals(size))
}

/// Puts a difference in percent, always with its sign.
pub(super) fn signed_percent(value: f64) -> String {
    let text = in_percent(value);
    match value > 0.0 {
        true => format!("+{text}"),
        false => text,
    }
}

/// `mean ± half the width of the 95% interval` in percent, or `a to b` where only bounds are known.
pub(super) fn plus_minus(estimate: &Estimate) -> String {
    if let Some(ends) = estimate.open() {
        return range(ends, |end| with_decimals(end, 1));
    }
    match half_width(estimate) {
        Some(half) => {
            let digits = decimals(half);
            let mean = with_decimals(estimate.mean, digits);
            format!("{mean} ± {}", with_decimals(half, digits))
        }
        None => in_percent(estimate.mean),
    }
}

/// Puts a difference in words with ±, always with its sign.
pub(super) fn signed_plus_minus(estimate: &Estimate) -> String {
    let sign = |value: f64, text: String| match value > 0.0 {
        true => format!("+{text}"),
        false => text,
    };
    match estimate.open() {
        Some(ends) => range(ends, |end| sign(end, with_decimals(end, 1))),
        None => sign(estimate.mean, plus_minus(estimate)),
    }
}

/// Bounds of an alpha* that was not found beside the value: `in [a, b]`; nothing where they stand
/// alone. Bounds of full rows are behind each number, and their width is told once.
pub(super) fn bounds(estimate: &Estimate) -> Option<String> {
    let [low, high] = (estimate.between).filter(|_| estimate.open().is_none())?;
    let ends = [low, high].map(|end| with_decimals(end, 1));
    Some(format!("in [{}, {}]", ends[0], ends[1]))
}

/// Says how far full rows may be from these numbers, where their bounds are nearer than ±.
pub(super) fn cut<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> Option<String> {
    let halves = estimates.filter(|estimate| estimate.open().is_none());
    let halves = halves.filter_map(|estimate| estimate.truncation);
    let widest = halves
        .map(|[low, high]| (high - low) / 2.0)
        .reduce(f64::max)?;
    Some(format!(
        "Rows list some tokens only: with all of them no number that has a ± moves by more than {} \
         points, whatever the others are. The bounds stand behind each number.",
        in_percent(widest)
    ))
}

/// A point of a picture with its interval, or with its bounds where only these are known.
pub(super) fn point(x: f64, estimate: &Estimate) -> Point {
    match estimate.open() {
        Some(ends) => Point::between(x, ends),
        None => Point {
            interval: estimate.ci95,
            ..Point::new(x, estimate.mean)
        },
    }
}

/// Tells which of two means is larger, where their intervals, or those of their bounds, do not
/// meet. Less than a paired difference would tell, for numbers that have none.
pub(super) fn larger(one: &Estimate, other: &Estimate) -> Option<Ordering> {
    let ends = |estimate: &Estimate| {
        let [low, high] = estimate.ci95;
        let half = (high - low) / 2.0;
        let [low, high] = estimate.bounds().unwrap_or([estimate.mean; 2]);
        (half > 0.0).then_some([low - half, high + half])
    };
    let ([a, b], [c, d]) = (ends(one)?, ends(other)?);
    if a > d {
        Some(Ordering::Greater)
    } else if b < c {
        Some(Ordering::Less)
    } else {
        None
    }
}

/// All digits of an estimate, to stand behind a rounded one.
pub(super) fn all_digits(estimate: &Estimate) -> String {
    let of = match estimate.between {
        Some(_) => "the mean itself",
        None => "full rows",
    };
    if let Some([low, high]) = estimate.open() {
        return format!("{of} within [{low}, {high}]");
    }
    let [low, high] = estimate.ci95;
    let mut out = format!("mean {}, 95% interval [{low}, {high}]", estimate.mean);
    if let Some([low, high]) = estimate.bounds() {
        out.push_str(&format!(", {of} within [{low}, {high}]"));
    }
    out
}

/// The number behind a text: its mean and interval, or only its bounds where nothing more is known.
pub(super) fn number(estimate: &Estimate) -> Number {
    let open = estimate.open();
    let [low, high] = estimate.ci95;
    Number {
        value: open.is_none().then_some(estimate.mean),
        interval: (open.is_none() && high > low).then_some([low, high]),
        bounds: open.or(estimate.bounds()),
        ..Number::default()
    }
}

/// A mean with its interval, over its bounds where rows are truncated.
pub(super) fn entry(estimate: &Estimate, how: &str) -> Entry {
    Entry {
        under: bounds(estimate),
        number: Some(Number {
            percent: true,
            ..number(estimate)
        }),
        ..Entry::titled(
            plus_minus(estimate),
            format!("{}; {how}", all_digits(estimate)),
        )
    }
}

/// Makes the entry of a difference, always with its sign.
pub(super) fn signed_entry(estimate: &Estimate, how: &str) -> Entry {
    Entry {
        text: signed_plus_minus(estimate),
        number: Some(Number {
            signed: true,
            percent: true,
            ..number(estimate)
        }),
        ..entry(estimate, how)
    }
}

/// Says how a number of this kind came about, with the widest enclosure.
pub(super) fn exactness(kind: Kind, width: f64) -> String {
    match kind {
        Kind::Exact => "exact".to_owned(),
        Kind::Enclosed => format!("enclosed, {}", at_most(width)),
        Kind::MonteCarlo => format!("Monte Carlo, {}", at_most(width)),
        Kind::Truncated => format!("truncated, {}", at_most(width)),
        Kind::Estimate if width > 0.0 => format!("estimate, {}", at_most(width)),
        Kind::Estimate => "estimate".to_owned(),
        Kind::Float => "plain floating point, without bounds".to_owned(),
    }
}

/// Numbers of a table with how they came about, to be told in one line under it.
#[derive(Default)]
pub(super) struct Tally {
    /// A kind, its widest enclosure, and what is known so.
    kinds: Vec<(Kind, f64, Vec<String>)>,
}

impl Tally {
    /// Adds a number; `name` says whose it is.
    pub fn add(&mut self, kind: Kind, width: f64, name: impl Into<String>) {
        let name = name.into();
        match self.kinds.iter_mut().find(|(known, _, _)| *known == kind) {
            Some((_, widest, names)) => {
                *widest = widest.max(width);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            None => self.kinds.push((kind, width, vec![name])),
        }
    }

    /// Adds a number, and returns what is shown of it.
    pub fn entry(
        &mut self,
        estimate: &Estimate,
        kind: Kind,
        width: f64,
        name: impl Into<String>,
    ) -> Entry {
        self.add(kind, width, name);
        entry(estimate, &exactness(kind, width))
    }

    /// Adds a difference, and returns what is shown of it.
    pub fn signed_entry(
        &mut self,
        estimate: &Estimate,
        kind: Kind,
        width: f64,
        name: impl Into<String>,
    ) -> Entry {
        self.add(kind, width, name);
        signed_entry(estimate, &exactness(kind, width))
    }

    /// The line: each kind once, with the widest enclosure, and whose numbers they
    /// are unless they are most.
    pub fn line(&self) -> String {
        let most = (0..self.kinds.len())
            .rev()
            .max_by_key(|&index| self.kinds[index].2.len());
        let parts: Vec<String> = (self.kinds.iter())
            .enumerate()
            .map(|(index, (kind, width, names))| {
                let how = exactness(*kind, *width);
                if self.kinds.len() == 1 {
                    how
                } else if most == Some(index) {
                    format!("{how} (all others)")
                } else {
                    format!("{how} ({})", listed(names))
                }
            })
            .collect();
        format!("Computed: {}.", parts.join("; "))
    }
}

/// The kinds, what the page calls them, and what they mean.
const KINDS: [(Kind, &str, &str); 4] = [
    (
        Kind::Exact,
        "exact",
        "A rational number, computed without rounding.",
    ),
    (
        Kind::Enclosed,
        "enclosed, w",
        "Rounding, and all that the computation left out, moves the value by no more than an \
             interval of width w, the widest of any position.",
    ),
    (
        Kind::MonteCarlo,
        "Monte Carlo, w",
        "A mean over simulated runs, with the width of an interval that holds the value with \
             probability 0.999 at each position; in a mean over positions most of it cancels, and \
             what is left is in the mean's interval.",
    ),
    (
        Kind::Truncated,
        "truncated, w",
        "Rows list only their most probable tokens. The full rows' value lies within the bounds \
             that stand behind the number, whatever the tokens not listed are, and the value that is \
             shown is the middle of these; w is the room for rounding in it. Where the bounds are further \
             apart than the value's ± they stand alone, “a to b”: nothing more is known.",
    ),
];

/// Says what each kind means, of those that are there: as the page calls it, and in words.
pub(super) fn meanings(kinds: &[Kind]) -> Vec<(String, String)> {
    (KINDS.iter())
        .filter(|(kind, _, _)| kinds.contains(kind))
        .map(|(_, word, meaning)| ((*word).to_owned(), (*meaning).to_owned()))
        .collect()
}

/// True for the name of a kind.
pub(super) fn is_kind(word: &str) -> bool {
    KINDS.iter().any(|(kind, _, _)| kind.as_str() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_wider_than_the_interval_stand_alone() {
        let estimate = |half: f64, truncation| Estimate {
            mean: 0.5543,
            ci95: [0.5543 - half, 0.5543 + half],
            truncation,
            between: None,
        };
        let known = estimate(0.045, Some([0.54, 0.58]));
        assert_eq!(plus_minus(&known), "55.4 ± 4.5");
        assert_eq!(bounds(&known), None);
        let said = cut([&known].into_iter()).unwrap();
        assert!(said.contains("by more than 2.0 points"), "{said}");
        let open = estimate(0.003, Some([-0.01, 0.058]));
        assert_eq!(plus_minus(&open), "−1.0 to 5.8");
        assert_eq!(signed_plus_minus(&open), "−1.0 to +5.8");
        assert_eq!(bounds(&open), None);
        assert_eq!(all_digits(&open), "full rows within [-0.01, 0.058]");
        assert_eq!(cut([&open].into_iter()), None);
        // One prompt has no interval, and bounds of rounding alone leave nothing open.
        assert!(estimate(0.0, Some([0.5, 0.6])).open().is_some());
        assert!(estimate(0.0, Some([0.5543, 0.5543])).open().is_none());
        // Of an optimum that no method found, and not of rows that list some tokens.
        let between = Estimate {
            truncation: None,
            between: Some([-0.01, 0.058]),
            ..open
        };
        assert_eq!(plus_minus(&between), "−1.0 to 5.8");
        assert_eq!(
            all_digits(&between),
            "the mean itself within [-0.01, 0.058]"
        );
    }

    #[test]
    fn percents_have_digits_that_tell_them_from_0() {
        let of = |value: f64| (in_percent(value), signed_percent(value));
        assert_eq!(of(0.5261), ("52.6".into(), "+52.6".into()));
        assert_eq!(of(-0.00021), ("−0.02".into(), "−0.02".into()));
        assert_eq!(of(0.0), ("0.0".into(), "0.0".into()));
        assert_eq!(in_percent(2e-9), "2.0e-7");
        assert_eq!(with_decimals(-0.0001, 1), "0.0");
    }

    #[test]
    fn a_side_is_told_where_neither_bound_reaches_0() {
        use Ordering::{Greater, Less};
        let difference = |mean: f64, half: f64, truncation| Estimate {
            mean,
            ci95: [mean - half, mean + half],
            truncation,
            between: None,
        };
        assert_eq!(difference(0.02, 0.01, None).side(), Some(Greater));
        assert_eq!(difference(-0.02, 0.01, None).side(), Some(Less));
        assert_eq!(difference(0.02, 0.03, None).side(), None);
        // The lower bound has an interval as well.
        let near = Some([0.008, 0.03]);
        assert_eq!(difference(0.019, 0.01, near).side(), None);
        let far = Some([0.012, 0.03]);
        assert_eq!(difference(0.021, 0.01, far).side(), Some(Greater));
        // One prompt tells nothing.
        assert_eq!(difference(0.02, 0.0, None).side(), None);
        // Two means without a paired difference.
        let one = difference(0.5, 0.01, None);
        assert_eq!(larger(&one, &difference(0.47, 0.01, None)), Some(Greater));
        assert_eq!(larger(&one, &difference(0.53, 0.01, None)), Some(Less));
        assert_eq!(larger(&one, &difference(0.49, 0.01, None)), None);
        let open = difference(0.53, 0.001, Some([0.505, 0.555]));
        assert_eq!(larger(&one, &open), None);
        assert_eq!(larger(&one, &difference(0.3, 0.0, None)), None);
    }

    #[test]
    fn a_tally_names_all_but_the_most() {
        let mut tally = Tally::default();
        tally.add(Kind::Enclosed, 1e-13, "rrs");
        assert_eq!(tally.line(), "Computed: enclosed, 1.0e-13.");
        tally.add(Kind::Enclosed, 2e-13, "greedy");
        tally.add(Kind::MonteCarlo, 1e-5, "rrs-wo");
        assert_eq!(
            tally.line(),
            "Computed: enclosed, 2.0e-13 (all others); Monte Carlo, 1.0e-5 (rrs-wo)."
        );
    }
}
