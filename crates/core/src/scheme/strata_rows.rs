//! Stratified drafts at rows of a log: passes over strata, kept with the row.

use super::Straddle;
use specgap_number::distribution::{Draft, Target};
use specgap_number::known::Known;
use specgap_plan::plan::{LevelPasses, Levels, ListedRates, ListedRows, Strata, listed_rates};
use specgap_row::row::{CutQuestion, CutRow, Row, RowError};

/// What passes over a row are made of; strata are those of one n.
struct Planned {
    p: Target,
    q: Draft,
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

/// Asks passes of `drafts` drafts.
fn asked<A>(
    row: &mut Row<'_>,
    drafts: usize,
    answer: impl FnOnce(&Target, &Draft, &Strata, &mut Vec<(Straddle, Limit)>) -> A,
) -> Result<A, RowError> {
    let mut planned = match row.memo().take::<Planned>() {
        Some(planned) => planned,
        None => {
            let rows = row.rows();
            Box::new(Planned {
                p: Target::new(rows.target).map_err(RowError::Target)?,
                q: Draft::new(rows.draft).map_err(RowError::Draft)?,
                strata: None,
                limits: Vec::new(),
            })
        }
    };
    let Planned {
        p,
        q,
        strata,
        limits,
    } = &mut *planned;
    let (_, strata) = match strata.take() {
        Some(same) if same.0 == drafts => strata.insert(same),
        _ => {
            limits.clear();
            strata.insert((drafts, Strata::of(q, drafts)))
        }
    };
    let answer = answer(p, q, strata, limits);
    row.memo().keep(planned);
    Ok(answer)
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
    asked(row, drafts, |target, q, strata, _| {
        LevelPasses::over(target, q, strata, straddle, Levels::FOUR).given(token, p)
    })
}

/// What passes at fixed levels accept. O(V) behind the first question of a row.
pub(crate) fn passes(
    row: &mut Row<'_>,
    drafts: usize,
    straddle: Straddle,
    levels: Levels<'static>,
) -> Result<Known, RowError> {
    asked(row, drafts, |p, q, strata, _| {
        let passes = LevelPasses::over(p, q, strata, straddle, levels);
        passes.acceptance_rate().clone()
    })
}

/// alpha\* and what the level rule accepts, from one run of adaptive passes.
pub(crate) fn limit(
    row: &mut Row<'_>,
    drafts: usize,
    straddle: Straddle,
) -> Result<Limit, RowError> {
    asked(row, drafts, |p, q, strata, limits| {
        if let Some((_, known)) = limits.iter().find(|(known, _)| *known == straddle) {
            return known.clone();
        }
        let passes = LevelPasses::over(p, q, strata, straddle, Levels::ADAPTIVE);
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
            largest: listed.largest,
        };
        listed_rates(rows, ask.drafts, straddle)
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
