//! Stratified drafts at rows of a log: passes over strata, kept with the row.

use super::Straddle;
use specgap_number::distribution::{Draft, Target};
use specgap_number::known::Known;
use specgap_plan::plan::{
    LevelPasses, Levels, ListedRates, ListedRows, RatioOrder, Strata, listed_rates,
};
use specgap_row::row::{CutQuestion, CutRow, Row, RowError};

/// What level rules of a row are made of, for all n; strata are those of one n.
struct Planned {
    p: Target,
    q: Draft,
    order: RatioOrder,
    strata: Option<(usize, Strata)>,
    /// What adaptive passes found for that n.
    limits: Vec<(Straddle, Limit)>,
}

/// What adaptive passes say.
#[derive(Clone)]
pub(crate) struct Limit {
    /// alpha\*.
    pub optimum: Known,
    /// What the passes accept.
    pub acceptance: Known,
}

/// Asks what the row's rules are made of, which is kept with the row.
fn planned<A>(row: &mut Row<'_>, answer: impl FnOnce(&mut Planned) -> A) -> Result<A, RowError> {
    let mut planned = match row.memo().take::<Planned>() {
        Some(planned) => planned,
        None => {
            let rows = row.rows();
            let p = Target::new(rows.target).map_err(RowError::Target)?;
            let q = Draft::new(rows.draft).map_err(RowError::Draft)?;
            Box::new(Planned {
                order: RatioOrder::of(&p, &q),
                p,
                q,
                strata: None,
                limits: Vec::new(),
            })
        }
    };
    let answer = answer(&mut planned);
    row.memo().keep(planned);
    Ok(answer)
}

/// Asks p, q and the order of tokens by p/q.
pub(crate) fn ordered<A>(
    row: &mut Row<'_>,
    answer: impl FnOnce(&Target, &Draft, &RatioOrder) -> A,
) -> Result<A, RowError> {
    planned(row, |Planned { p, q, order, .. }| answer(p, q, order))
}

/// Runs passes of `drafts` drafts, or looks whether what is asked is known already.
fn asked<A>(
    row: &mut Row<'_>,
    drafts: usize,
    answer: impl FnOnce(&dyn Fn(Straddle, Levels<'_>) -> LevelPasses, &mut Vec<(Straddle, Limit)>) -> A,
) -> Result<A, RowError> {
    planned(row, |planned| {
        let (p, q, order) = (&planned.p, &planned.q, &planned.order);
        let (_, strata) = match planned.strata.take() {
            Some(same) if same.0 == drafts => planned.strata.insert(same),
            _ => {
                planned.limits.clear();
                planned.strata.insert((drafts, Strata::of(q, drafts)))
            }
        };
        let strata = &*strata;
        let run = |straddle, levels: Levels<'_>| {
            LevelPasses::in_order((p, q), order, strata, straddle, levels)
        };
        answer(&run, &mut planned.limits)
    })
}

/// Given that the output is a token of mass p: how often it comes through which drafts, by
/// `level-4`.
pub(crate) fn given(
    row: &mut Row<'_>,
    token: u32,
    p: f64,
    drafts: usize,
    straddle: Straddle,
) -> Result<Vec<(usize, f64)>, RowError> {
    asked(row, drafts, |run, _| {
        run(straddle, Levels::FOUR).given(token, p)
    })
}

/// What passes at fixed levels accept. O(V) behind the first question of a row.
pub(crate) fn passes(
    row: &mut Row<'_>,
    drafts: usize,
    straddle: Straddle,
    levels: Levels<'static>,
) -> Result<Known, RowError> {
    asked(row, drafts, |run, _| {
        run(straddle, levels).acceptance_rate().clone()
    })
}

/// alpha\* and what the level rule accepts, from one run of adaptive passes.
pub(crate) fn limit(
    row: &mut Row<'_>,
    drafts: usize,
    straddle: Straddle,
) -> Result<Limit, RowError> {
    asked(row, drafts, |run, limits| {
        if let Some((_, known)) = limits.iter().find(|(known, _)| *known == straddle) {
            return known.clone();
        }
        let passes = run(straddle, Levels::ADAPTIVE);
        let limit = Limit {
            optimum: passes.optimal_acceptance_rate().clone(),
            acceptance: passes.acceptance_rate().clone(),
        };
        limits.push((straddle, limit.clone()));
        limit
    })
}

/// Bounds for rows that list some tokens; where what is not listed decides which tokens are
/// certain, i.i.d. drafts bound alpha\* from below, and nothing from above.
pub(crate) fn listed(
    row: &mut CutRow<'_>,
    ask: CutQuestion,
    straddle: Straddle,
) -> Result<ListedRates, RowError> {
    let known = row.listed_by_draft().and_then(|listed| {
        let rows = ListedRows {
            target: &listed.target,
            draft: &listed.draft,
            unlisted: listed.unlisted,
            apart: listed.apart,
            largest: listed.largest,
        };
        listed_rates(rows, ask.drafts, straddle, |c| row.more(|q| c * q))
    });
    if let Some(rates) = known {
        return Ok(rates);
    }
    let [least, _] = row.optimum_iid(ask)?;
    Ok(ListedRates {
        optimum: [least, 1.0],
        passes: [least - least * least / 4.0, 1.0],
    })
}
