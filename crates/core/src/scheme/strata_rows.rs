//! Stratified drafts at rows of a log: passes over strata, kept with the row.

use super::Straddle;
use specgap_number::distribution::{Draft, Target};
use specgap_number::known::Known;
use specgap_plan::{
    Falling, Heaviest, Interiors, LevelPasses, LevelRates, Levels, ListedRates, ListedRows,
    RatioOrder, listed_rates,
};
use specgap_row::{CutQuestion, CutRow, Row, RowError, Rows};
use std::sync::Arc;

/// What level rules of a row are made of, for all n; answers are those of one n.
struct Planned {
    heaviest: Heaviest,
    falling: Arc<Falling>,
    drafts: usize,
    interiors: Option<Interiors>,
    /// What adaptive passes found.
    limits: Vec<(Straddle, LevelRates)>,
}

/// p and q as plans take them, and the order of tokens by p/q.
struct Ordered(Target, Draft, RatioOrder);

/// Asks p, q and the order of tokens by p/q, which are kept with the row.
pub(crate) fn ordered<A>(
    row: &mut Row<'_>,
    answer: impl FnOnce(&Target, &Draft, &RatioOrder) -> A,
) -> Result<A, RowError> {
    let ordered = match row.memo().take::<Ordered>() {
        Some(ordered) => ordered,
        None => {
            let rows = row.rows();
            let p = Target::new(rows.target).map_err(RowError::Target)?;
            let q = Draft::new(rows.draft).map_err(RowError::Draft)?;
            let order = RatioOrder::of(&p, &q);
            Box::new(Ordered(p, q, order))
        }
    };
    let answer = answer(&ordered.0, &ordered.1, &ordered.2);
    row.memo().keep(ordered);
    Ok(answer)
}

/// Asks what passes of `drafts` drafts go over, and p; and what adaptive ones found. All is kept with
/// the row.
fn asked<A>(
    row: &mut Row<'_>,
    drafts: usize,
    answer: impl FnOnce(&Interiors, &[f64], &mut Vec<(Straddle, LevelRates)>) -> A,
) -> Result<A, RowError> {
    row.of_shares(|row, shares| asked_of(row, shares, drafts, answer))
}

fn asked_of<A>(
    row: &mut Row<'_>,
    shares: Rows<'_>,
    drafts: usize,
    answer: impl FnOnce(&Interiors, &[f64], &mut Vec<(Straddle, LevelRates)>) -> A,
) -> Result<A, RowError> {
    let (p, q) = (shares.target, shares.draft);
    let mut planned = row.memo().take::<Planned>().unwrap_or_else(|| {
        Box::new(Planned {
            heaviest: Heaviest::of(q),
            falling: Falling::of((p, q)),
            drafts: 0,
            interiors: None,
            limits: Vec::new(),
        })
    });
    if planned.drafts != drafts {
        planned.interiors = None;
        planned.limits.clear();
        planned.drafts = drafts;
    }
    let Planned {
        heaviest,
        falling,
        interiors,
        limits,
        ..
    } = &mut *planned;
    let interiors =
        interiors.get_or_insert_with(|| Interiors::of(falling, heaviest.strata(q, drafts)));
    let answer = answer(interiors, p, limits);
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
    asked(row, drafts, |all, row, _| {
        LevelPasses::of_interiors(all, row, straddle, Levels::FOUR).given(token, p)
    })
}

/// Returns what passes at fixed levels accept. O(V).
pub(crate) fn passes(
    row: &mut Row<'_>,
    drafts: usize,
    straddle: Straddle,
    levels: Levels<'static>,
) -> Result<Known, RowError> {
    asked(row, drafts, |all, _, _| {
        LevelRates::of_interiors(all, straddle, levels).acceptance
    })
}

/// alpha\* and what the level rule accepts, from one run of adaptive passes.
pub(crate) fn limit(
    row: &mut Row<'_>,
    drafts: usize,
    straddle: Straddle,
) -> Result<LevelRates, RowError> {
    asked(row, drafts, |all, _, limits| {
        if let Some((_, known)) = limits.iter().find(|(known, _)| *known == straddle) {
            return known.clone();
        }
        let rates = LevelRates::of_interiors(all, straddle, Levels::Best);
        limits.push((straddle, rates.clone()));
        rates
    })
}

/// Bounds for rows that list some tokens; where what is not listed decides which tokens are
/// certain, i.i.d. drafts bound alpha\* from below, and nothing from above.
pub(crate) fn listed(
    row: &mut CutRow<'_>,
    ask: CutQuestion,
    straddle: Straddle,
) -> Result<ListedRates, RowError> {
    let mut asked = row.memo().take::<Listed>().unwrap_or_default();
    let same = |one: &&(CutQuestion, Straddle, ListedRates)| one.0 == ask && one.1 == straddle;
    let known = asked.0.iter().find(same).map(|one| one.2);
    let rates = match known {
        Some(known) => known,
        None => listed_anew(row, ask, straddle)?,
    };
    if known.is_none() {
        asked.0.push((ask, straddle, rates));
    }
    row.memo().keep(asked);
    Ok(rates)
}

/// Bounds of a row that lists some tokens.
#[derive(Default)]
struct Listed(Vec<(CutQuestion, Straddle, ListedRates)>);

fn listed_anew(
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
