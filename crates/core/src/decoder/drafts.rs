//! Drafts of a node, and the strata that they are drawn from.

use super::chance::Coins;
use super::mass::Mass;
use super::rows::{DecoderError, Entry, Law};
use specgap_plan::SURE_BITS;
use std::ops::Range;

/// The law of one draft, and what of it is left while none is accepted.
pub(super) struct Part {
    /// The token over the cut before, and its mass.
    pub(super) first: Option<(usize, f64)>,
    /// Tokens of their own mass, `scale` times their entries, but those that are sure.
    pub(super) inside: Range<usize>,
    pub(super) scale: f64,
    /// The mass of those.
    pub(super) middle: f64,
    /// The token over the cut behind, and its mass.
    pub(super) last: Option<(usize, f64)>,
    /// The sum of the row behind the first token.
    from: f64,
    /// What the first token's mass, and the others', is multiplied by: where the draft before is not
    /// this first token, and where it is.
    pub(super) link: [[f64; 2]; 2],
}

const FREE: [[f64; 2]; 2] = [[1.0; 2]; 2];

/// A token of a whole stratum counts as sure in spite of rounding.
const NEARLY: f64 = 1.0 - 1.0 / (1_u64 << SURE_BITS) as f64;

impl Part {
    pub(super) fn first_mass(&self) -> f64 {
        self.first.map_or(0.0, |(_, mass)| mass)
    }

    pub(super) fn last_mass(&self) -> f64 {
        self.last.map_or(0.0, |(_, mass)| mass)
    }

    /// A draft from the whole row.
    pub(super) fn whole<T: Entry>(mass: &Mass<'_, T>, size: usize) -> Self {
        Self {
            first: None,
            inside: 0..size,
            scale: 1.0 / mass.total(),
            middle: 1.0,
            last: None,
            from: 0.0,
            link: FREE,
        }
    }
}

/// Takes the sure tokens out of a row, heaviest first.
fn take_sure<T: Entry>(mass: &mut Mass<'_, T>, n: usize) {
    let mut left = mass.total();
    for needs in (2..=n).rev() {
        match mass.heaviest() {
            Some((token, weight)) if needs as f64 * weight >= left * NEARLY => {
                mass.leave_out(token);
                left -= weight;
            }
            _ => break,
        }
    }
}

/// The strata of a row for `n` drafts; its sure tokens are those that `mass` is then without.
pub(super) fn strata<T: Entry>(mass: &mut Mass<'_, T>, n: usize, once: bool) -> Vec<Part> {
    take_sure(mass, n);
    let total = mass.total();
    let count = n - mass.without().len();
    let mut parts: Vec<Part> = Vec::with_capacity(count);
    if total <= 0.0 {
        return parts;
    }
    let scale = count as f64 / total;
    let cut = |j: usize| total * j as f64 / count as f64;
    for j in 0..count {
        let start = mass.passes(cut(j), false);
        let stop = mass.passes(cut(j + 1).min(total), true);
        let (Some(start), Some(stop)) = (start, stop) else {
            break;
        };
        let mut part = Part {
            first: None,
            inside: start.token + 1..stop.token.max(start.token + 1),
            scale,
            middle: 0.0,
            last: Some((stop.token, 1.0)),
            from: start.after,
            link: FREE,
        };
        if stop.token > start.token {
            let first = (start.after - cut(j)) * scale;
            part.first = Some((start.token, first));
            part.middle = (stop.before - start.after).max(0.0) * scale;
            part.last = Some((stop.token, ((cut(j + 1) - stop.before) * scale).max(0.0)));
        }
        let behind = parts.last().and_then(|part| part.last);
        if let (true, Some((token, before)), Some((shared, here))) = (once, behind, part.first)
            && token == shared
            && before < 1.0
            && here < 1.0
        {
            let chance = here / (1.0 - before);
            let others = (1.0 - chance) / (1.0 - here);
            part.link = [[1.0 / (1.0 - before), others], [0.0, 1.0 / (1.0 - here)]];
        }
        parts.push(part);
    }
    parts
}

/// A draft of a stratum, by a coin in token order. `after`: its first token was the draft before.
fn drawn<T: Entry>(mass: &Mass<'_, T>, part: &Part, after: bool, coin: f64) -> Option<usize> {
    let Some((first, weight)) = part.first else {
        return part.last.map(|(token, _)| token);
    };
    let chance = (weight * part.link[usize::from(after)][0]).min(1.0);
    if coin < chance {
        return Some(first);
    }
    let width = (part.middle + part.last_mass()) / part.scale;
    let share = (coin - chance) / (1.0 - chance);
    let found = mass.passes(part.from + share * width, false)?.token;
    Some(part.last.map_or(found, |(last, _)| found.min(last)))
}

/// Drafts of a node from its row, as many as it has tokens where these are fewer than `n`: sure
/// tokens first, heaviest first, then those of the strata in the order of token ids; independent
/// draws in turn; or the likeliest. One of `coins` for each draw.
///
/// # Errors
/// A row that is no distribution, which is called `rows` and `number`; too few coins.
///
/// # Example
/// ```
/// use specgap_core::decoder::{Law, draft};
/// let row = [0.1_f32, 0.2, 0.3, 0.4];
/// assert_eq!(draft(&row, 0, Law::Stratified, 2, &[0.5, 0.5])?, [1, 3]);
/// assert_eq!(draft(&row, 0, Law::Certain, 2, &[])?, [3, 2]);
/// # Ok::<(), specgap_core::decoder::DecoderError>(())
/// ```
pub fn draft<T: Entry>(
    row: &[T],
    number: usize,
    law: Law,
    n: usize,
    coins: &[f64],
) -> Result<Vec<u32>, DecoderError> {
    let mut mass = Mass::checked(row, "rows", number)?;
    let mut coins = Coins::new(coins, 0)?;
    let mut drafts = Vec::with_capacity(n);
    match law {
        Law::WithReplacement => {
            for _ in 0..n {
                drafts.extend(mass.draw(coins.next()?));
            }
        }
        Law::Certain => {
            while drafts.len() < n
                && let Some((token, _)) = mass.heaviest()
            {
                mass.leave_out(token);
                drafts.push(token);
            }
        }
        Law::Stratified | Law::StratifiedIndependent => {
            let parts = strata(&mut mass, n, law == Law::Stratified);
            drafts.extend(mass.without());
            let mut before = None;
            for part in &parts {
                let after = part.link != FREE && before == part.first.map(|(token, _)| token);
                before = drawn(&mass, part, after, coins.next()?);
                drafts.extend(before);
            }
        }
    }
    Ok(drafts.into_iter().map(|token| token as u32).collect())
}
