//! Which method gives alpha*.

use super::{Optimum, closed_form, flow, ratio_scan, submodular, thresholds};
use crate::problem::Problem;
use crate::scheme::{Product, SchemeName, Straddle, Stratified, limit, ordered};
use specgap_number::distribution::{Draft, PROBABILITY_RELATIVE_ERROR, Target};
use specgap_number::known::Known;
use specgap_row::{Question, Row, RowError};

/// A plan of a row that is solved by flow before anything else: so small that it is exact at once.
const SMALL_PLAN: f64 = 2.0e4;

/// No method gives alpha* of a problem of that size.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{pairs:.3e} (set, token) pairs are too many for a flow (at most {limit:.0e}), and {scheme} \
     drafts have no closed form, no ratio scan and no \
     linear thresholds",
    limit = flow::LARGEST_PLAN
)]
pub struct NoMethod {
    /// About how many (set, token) pairs there are.
    pub pairs: f64,
    /// The law of the drafts.
    pub scheme: SchemeName,
}

/// alpha* by the method that knows it best: maximum flow up to
/// [`flow::LARGEST_PLAN`] pairs, else a formula, else the ratio scan where it is proved
/// optimal, else linear thresholds for laws of two scores, else the submodular minimiser up to [`submodular::LARGEST_VOCAB`] tokens.
///
/// # Errors
/// [`NoMethod`] where none of them applies.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::optimum::best;
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("coin", Target::new(&[0.5, 0.5])?, scheme)?;
/// assert_eq!(best(&problem)?.rate.value(), 0.9375);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn best(problem: &Problem) -> Result<Optimum, NoMethod> {
    let pairs = flow::plan_size(problem);
    if pairs <= flow::LARGEST_PLAN {
        return Ok(flow::solve(problem).optimum());
    }
    closed_form::solve(problem)
        .or_else(|| ratio_scan::solve(problem))
        .or_else(|| thresholds::solve(problem).ok())
        .or_else(|| {
            (problem.vocab() <= submodular::LARGEST_VOCAB)
                .then(|| submodular::solve(problem))
                .flatten()
        })
        .ok_or_else(|| NoMethod {
            pairs,
            scheme: problem.scheme().name(),
        })
}

/// alpha* of a pair of rows under any law, for one row after another: by flow if that is small,
/// else by what is fastest. Where no method finds the optimum, between the bounds of
/// [`submodular::enclose`]. The subset proves the upper bound.
///
/// # Exactness
/// Enclosed: a row is rounded, by [`PROBABILITY_RELATIVE_ERROR`] an entry. Tuples are sums of
/// products and quotients of no more than 4n entries, so that Q moves by 4n times that, and P by
/// twice that.
///
/// # Errors
/// [`NoMethod`] where numbers left the range of `f64`.
///
/// # Example
/// ```
/// use specgap_number::distribution::{Draft, Target};
/// use specgap_core::optimum::on_row;
/// use specgap_core::problem::Problem;
/// use specgap_core::scheme::WithReplacement;
/// let scheme = WithReplacement::new(Draft::new(&[0.75, 0.25])?, 2);
/// let problem = Problem::new("coin", Target::new(&[0.5, 0.5])?, scheme)?;
/// let found = on_row(&problem)?;
/// assert!((found.rate.value() - 0.9375).abs() < 1e-15);
/// assert_eq!(found.subset.unwrap(), [0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn on_row(problem: &Problem) -> Result<Optimum, NoMethod> {
    let pairs = flow::plan_size(problem);
    let by_flow = |most: f64| (pairs <= most).then(|| flow::solve(problem).optimum());
    let found = by_flow(SMALL_PLAN)
        .or_else(|| ratio_scan::solve(problem))
        .or_else(|| thresholds::solve(problem).ok())
        .or_else(|| by_flow(flow::LARGEST_PLAN))
        .or_else(|| submodular::enclose(problem))
        .ok_or_else(|| NoMethod {
            pairs,
            scheme: problem.scheme().name(),
        })?;
    let rounded = (4 * problem.drafts() + 2) as f64 * PROBABILITY_RELATIVE_ERROR;
    let (lower, upper) = (found.rate.lower() - rounded, found.rate.upper() + rounded);
    Ok(Optimum {
        rate: Known::rate(found.rate.value(), lower, upper),
        ..found
    })
}

/// How alpha\* of a law's drafts is found at rows of a log: as the law says, and of independent
/// strata, where that leaves bounds apart, by [`on_row`] too. `None` if no log holds such drafts.
pub fn row_question(scheme: SchemeName) -> Option<Question> {
    let own = scheme.entry().on_row.as_ref()?.optimum;
    Some(match scheme == SchemeName::STRATIFIED_INDEPENDENT {
        true => Question {
            full: independent_strata,
            ..own
        },
        false => own,
    })
}

/// Bounds of alpha\* that are further apart are looked for again.
const APART: f64 = 1e-9;

fn independent_strata(row: &mut Row<'_>, drafts: usize) -> Result<Known, RowError> {
    let passes = limit(row, drafts, Straddle::Independent)?.optimum;
    if passes.width() <= APART {
        return Ok(passes);
    }
    let other = ordered(row, |p, q, _| by_rows(p, q, drafts))?;
    Ok(match other {
        Some(other) => {
            let lower = passes.lower().max(other.lower());
            let upper = passes.upper().min(other.upper()).max(lower);
            Known::rate(other.value().clamp(lower, upper), lower, upper)
        }
        None => passes,
    })
}

/// alpha\* of independent strata, each a row of its own.
fn by_rows(p: &Target, q: &Draft, drafts: usize) -> Option<Known> {
    let law = Stratified::new(q.clone(), drafts, Straddle::Independent);
    let alone = law.certain().iter().map(|&token| vec![(token, 1.0)]);
    let strata = law.strata().strata().iter();
    let strata = strata.map(|all| all.iter().map(|one| (one.token, one.share)).collect());
    let rows: Option<Vec<Draft>> = (alone.chain(strata))
        .map(|tokens: Vec<(usize, f64)>| {
            let mut row = vec![0.0; q.vocab()];
            for (token, mass) in tokens {
                row[token] = mass;
            }
            Draft::new(&row).ok()
        })
        .collect();
    let problem = Problem::new("strata", p.clone(), Product::new(rows?)?).ok()?;
    Some(on_row(&problem).ok()?.rate)
}
