//! A position's rows, as what is known of its token.

use super::ReplayError;
use super::asked::Answers;
use super::position::{Rest, TextPosition};
use serde::{Deserialize, Serialize};
use specgap_entries::{Likeliest, Moments};
use specgap_log::log::{Chunk, Log, LogError, Rollouts, Row, RowKind, Span};
use specgap_measure::{Singles, Surprised};
use specgap_number::distribution::{Rows, Softmax};
use specgap_row::{CUT_ROUNDING, Unlisted, Workspace as Scan};
use specgap_sampling::{Cuts, Lists, Logged, Model, Room, Serving};

/// What else is asked of a position's rows, beside what a [`TextPosition`] holds: of both rows, the
/// column of the text's token, and a number that no other position of all logs has. Tokens that a row
/// does not list are the last columns, as few as they can be.
pub(super) type Question<'a> =
    dyn Fn(&mut Scan, Rows<'_>, usize, u64) -> Result<Answers, String> + Sync + 'a;

/// A position as it is read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Read {
    pub(super) prompt: i64,
    pub(super) position: i64,
    pub(super) place: TextPosition,
    pub(super) untold: [bool; 3],
    pub(super) lacks_draft: bool,
    pub(super) surprised: Option<Surprised>,
    /// None of depths that no round reaches.
    pub(super) asked: Option<Answers>,
    pub(super) apart: Option<Answers>,
}

/// Room for one position at a time.
#[derive(Default)]
pub(super) struct Workspace {
    pub(super) row: Row,
    pub(super) target: Vec<f64>,
    pub(super) draft: Vec<f64>,
    pub(super) room: Room,
    pub(super) scan: Scan,
}

/// What is the same for all positions of a log.
pub(super) struct Task<'a> {
    pub(super) log: &'a Log,
    pub(super) temperature: f64,
    /// What is kept of the target's row, and of the draft's, before a token is drawn.
    pub(super) cuts: [Cuts; 2],
    pub(super) lists: Option<Lists>,
    /// Which tokens tell whether the text was drawn from the rows.
    pub(super) singles: Singles,
    pub(super) question: Option<&'a Question<'a>>,
    pub(super) rollouts: Option<&'a Rollouts>,
    /// Positions of the logs before this one.
    pub(super) before: u64,
}

/// Returns what makes shares of a log's rows, for text that was drawn at a temperature.
pub(super) fn softmax(log: &Log, temperature: f64) -> Softmax {
    Softmax {
        temperature: temperature / log.metadata().applied(),
    }
}

/// Rows of a log as they were sampled from.
pub(super) struct ServedRows<'a> {
    pub(super) log: &'a Log,
    pub(super) lists: Option<&'a Lists>,
    pub(super) temperature: f64,
    /// What is kept of the target's row, and of the draft's.
    pub(super) cuts: [Cuts; 2],
}

impl ServedRows<'_> {
    /// Fills p or q of the listed tokens, over the sum of those that are kept for certain; gives what is
    /// known of tokens that the row does not tell.
    pub(super) fn fill(
        &self,
        model: Model,
        row: &Row,
        room: &mut Room,
        out: &mut Vec<f64>,
    ) -> Result<Unlisted, String> {
        let [target, draft] = self.cuts;
        let logged = Logged {
            lists: self.lists,
            applied: self.log.metadata().applied(),
            row,
        };
        let serving = Serving {
            model,
            temperature: self.temperature,
            cuts: match model {
                Model::Target => target,
                Model::Draft => draft,
            },
            own: draft != target,
        };
        logged.fill(serving, room, out)
    }
}

impl Task<'_> {
    /// The same of the draft's rows at another depth.
    pub(super) fn at<'b>(&'b self, view: &'b Log) -> Task<'b> {
        Task {
            log: view,
            // Each position once: rollouts and the text's surprise are those of depth 1.
            rollouts: None,
            lists: self.lists.clone(),
            ..*self
        }
    }

    /// The positions of a span, by depth: `self` is of the first, and `deeper` of the others.
    pub(super) fn span(
        &self,
        deeper: &[Task<'_>],
        span: &Span,
        workspace: &mut Workspace,
    ) -> Result<Vec<Vec<Read>>, ReplayError> {
        let tasks = || std::iter::once(self).chain(deeper);
        let chunks: Result<Vec<Chunk<'_>>, LogError> =
            tasks().map(|task| task.log.chunk(span)).collect();
        let chunks = chunks?;
        let mut read: Vec<Vec<Read>> = chunks.iter().map(|_| Vec::new()).collect();
        for number in span.positions() {
            for ((task, chunk), read) in tasks().zip(&chunks).zip(&mut read) {
                read.push(task.read(chunk, number, workspace)?);
            }
        }
        Ok(read)
    }

    fn read(
        &self,
        chunk: &Chunk<'_>,
        number: usize,
        workspace: &mut Workspace,
    ) -> Result<Read, ReplayError> {
        chunk.read(number, &mut workspace.row)?;
        if let Some(rollouts) = self.rollouts {
            for &index in rollouts.paths_at(number) {
                rollouts.check_row(index, &workspace.row, self.log)?;
            }
        }
        if self.log.depth() > 1 && workspace.row.lacks_draft {
            // No round that began in this text drafts so far.
            return Ok(Read::default());
        }
        if self.log.depth() == 1 {
            // Deeper rows are held against the same target's row.
            self.log.mask_target(number, &mut workspace.row)?;
        }
        self.position(number, workspace)
            .map_err(|message| ReplayError::of_position(self.log, number, message))
    }

    fn position(&self, number: usize, workspace: &mut Workspace) -> Result<Read, String> {
        let Workspace {
            scan,
            row,
            target,
            draft,
            room,
        } = workspace;
        let prompt = row.prompt_id.ok_or("has no prompt_id")?;
        let position = row.position.ok_or(
            "has no index in its text; texts are replayed in order: add the tensor position [N] \
             (i64)",
        )?;
        let token = row.token.and_then(|token| u32::try_from(token).ok()).ok_or(
            "has no sampled token (token is -1); the text is replayed token by token: log whole \
             texts",
        )?;
        let rule = softmax(self.log, self.temperature);
        let unlisted = self.fill(row, room, [&mut *target, &mut *draft])?;
        // All that can be drawn is listed; lists alone lack shares.
        let has_all = || target.iter().chain(&*draft).all(|share| !share.is_nan());
        let is_told = unlisted.iter().all(|one| *one == Unlisted::NONE)
            && (self.lists.is_none() || has_all());
        let rests = unlisted.map(|one| one.middle());
        let place = match row.token_ids.is_empty() {
            true => Some(token as usize),
            false => row.token_ids.iter().position(|&id| id == token),
        };
        // What the two rows list of the token.
        let listed = [&*target, &*draft].map(|row| {
            let share = place.map_or(Some(0.0), |place| row.get(place).copied());
            share.filter(|share| !share.is_nan() && place.is_some())
        });
        let [p, q] = [0, 1].map(|of| {
            // Where a log-probability is listed, it is its exponential that loses no digit.
            let whole = self.listed_whole(row, of, place, unlisted[of], rule.temperature);
            // All tokens that are not listed count as one.
            let share = || listed[of].map_or(rests[of], |share| share * (1.0 - rests[of]));
            whole.unwrap_or_else(share)
        });
        if p <= 0.0 {
            return Err(format!(
                "the target gives probability 0 to token {token}, which is logged as drawn from it \
                 at temperature {}{}; the text is not this target's, or was drawn otherwise",
                self.temperature,
                kept(self.cuts[0], self.temperature)
            ));
        }
        let ratio_bounds = ratio_bounds(listed, unlisted);
        let ratio = match listed {
            [Some(_), Some(_)] | [None, None] => (q / p).min(f64::MAX),
            // The middle of what may be accepted.
            _ => 0.5 * (ratio_bounds[0].min(1.0) + ratio_bounds[1].min(1.0)),
        };
        let spread = self.log.vocabulary().saturating_sub(draft.len()).max(1) as f64;
        let of_draft = match row.lacks_draft {
            true => Moments::default(),
            false => {
                let logarithms = row.draft_kind != RowKind::Probabilities;
                Moments::new(&row.draft, logarithms, rule.temperature, draft)
            }
        };
        // The text's surprise is told once.
        let surprised = match self.log.depth() {
            1 => Surprised::new(self.singles, row, target, rule.temperature, unlisted[0]),
            _ => None,
        };
        let [target_rest, draft_rest] = rests;
        let listed_mass = [1.0 - target_rest, 1.0 - draft_rest];
        let common = specgap_entries::common(target, draft, listed_mass);
        let of_target = |of: Option<f64>| of.filter(|_| self.cuts[0].keep_all());
        let covered = of_target(row.covered).or_else(|| {
            let ids = self.log.sub_vocabulary().filter(|_| self.lists.is_none())?;
            let mass = |&id: &u32| target.get(id as usize).copied().unwrap_or(0.0);
            Some(ids.iter().map(mass).sum::<f64>().min(1.0))
        });
        let likeliest = likeliest(self.lists.as_ref(), row);
        let overlap = (common + target_rest.min(draft_rest)).min(1.0);
        // What a log says of the whole row is not about a cut one.
        let is_uncut = self.cuts.iter().all(|cuts| cuts.keep_all());
        let said = |of: Option<f64>| of.filter(|_| is_uncut);
        let exact_overlap = said(row.overlap).or(is_told.then_some(overlap));
        let rest = match is_told {
            true => Rest::None,
            false => rest([&*target, &*draft], unlisted),
        };
        let p_hit = of_target(row.p_hit).or_else(|| match is_told || self.lists.is_none() {
            true => likeliest.map(|at| target[at]),
            false => None,
        });
        let open = (!is_told).then_some(unlisted);
        let [asked, apart] = self.answers([target, draft], open, place, number, scan)?;
        // Lists of which nothing but the text's own token is sure.
        let mut bare = (self.lists.as_ref().and_then(Lists::tops))
            .unwrap_or([1; 2])
            .map(|top| top == 0);
        bare[1] |= row.lacks_draft;
        Ok(Read {
            untold: [
                bare[1] && said(row.max_q).is_none(),
                bare[1],
                bare.contains(&true) && said(row.overlap).is_none(),
            ],
            lacks_draft: row.lacks_draft,
            surprised,
            asked,
            apart,
            prompt,
            position,
            place: TextPosition {
                ratio,
                draft: if listed[1].is_some() { q } else { q / spread },
                draft_bounds: match listed[1] {
                    Some(_) if unlisted[1].is_known() => [q; 2],
                    Some(share) => [1, 0].map(|end| share * (1.0 - unlisted[1].mass[end])),
                    None => [0.0, unlisted[1].most()],
                },
                hit: row
                    .hit
                    .map(|hit| hit > 0.5)
                    .or_else(|| likeliest.map(|at| Some(at) == place)),
                one_noise: of_one_noise([target, draft], listed, unlisted, ratio_bounds[1]),
                p_hit,
                exact_overlap,
                covered,
                top: said(row.max_q).unwrap_or(of_draft.top * (1.0 - draft_rest)),
                entropy: entropy(&of_draft, draft_rest, spread),
                overlap: exact_overlap.unwrap_or(overlap),
                head_acceptance: row.head_acceptance,
                head_overlap: row.head_overlap,
                listed: listed[0].is_some() && listed[1].is_some(),
                ratio_bounds: match listed {
                    // Nothing is open, and the ratio is what it was computed to be.
                    [Some(_), Some(_)] if unlisted.iter().all(Unlisted::is_known) => [ratio; 2],
                    _ => ratio_bounds,
                },
                unlisted: [target_rest, draft_rest],
                rest,
            },
        })
    }

    /// Shares of the listed tokens, and what is known of the others.
    fn fill(
        &self,
        row: &Row,
        room: &mut Room,
        [target, draft]: [&mut Vec<f64>; 2],
    ) -> Result<[Unlisted; 2], String> {
        let rows = ServedRows {
            log: self.log,
            lists: self.lists.as_ref(),
            temperature: self.temperature,
            cuts: self.cuts,
        };
        // Whole rows of the target are those of the depth before, and nothing changed them.
        let mut unlisted = [Unlisted::NONE; 2];
        if self.log.depth() == 1 || self.lists.is_some() {
            unlisted[0] = rows.fill(Model::Target, row, room, target)?;
        }
        if row.lacks_draft {
            draft.clone_from(&row.draft);
            unlisted[1] = Unlisted::ALL;
        } else {
            unlisted[1] = rows.fill(Model::Draft, row, room, draft)?;
        }
        Ok(unlisted)
    }

    /// The token's probability in the target's row, 0, or in the draft's, 1, where the row
    /// lists its logarithm in a softmax over all tokens.
    fn listed_whole(
        &self,
        logged: &Row,
        row: usize,
        place: Option<usize>,
        unlisted: Unlisted,
        temperature: f64,
    ) -> Option<f64> {
        let (entries, kind) = match row {
            0 => (&logged.target, logged.target_kind),
            _ => (&logged.draft, logged.draft_kind),
        };
        let is_whole = self.cuts[row].keep_all()
            && kind == RowKind::LogProbabilities
            && self.lists.is_some()
            && temperature == 1.0
            && unlisted.is_known()
            && unlisted.middle() > 0.0;
        let entry = entries.get(place?).filter(|_| is_whole);
        entry
            .filter(|entry| !entry.is_nan())
            .map(|entry| entry.exp())
    }

    /// Answers to what else is asked of a position's rows: where all tokens that are not
    /// listed are common to both rows, and where those of the two rows are apart. The shares
    /// of the listed tokens are given, and may be changed.
    fn answers(
        &self,
        [target, draft]: [&mut Vec<f64>; 2],
        unlisted: Option<[Unlisted; 2]>,
        place: Option<usize>,
        number: usize,
        scan: &mut Scan,
    ) -> Result<[Option<Answers>; 2], String> {
        let Some(question) = self.question else {
            return Ok([None, None]);
        };
        let column = place.unwrap_or(target.len());
        let number = self.before + number as u64;
        let listed = target.len();
        let Some(unlisted) = unlisted else {
            let asked = question(scan, Rows { target, draft }, column, number)?;
            // Of a log of lists all positions have both.
            let apart = self.lists.as_ref().map(|_| asked.clone());
            return Ok([Some(asked), apart]);
        };
        let others = self.log.vocabulary().saturating_sub(listed);
        let count = in_proportion([&mut *target, &mut *draft], unlisted, others);
        let asked = question(scan, Rows { target, draft }, column, number)?;
        target.truncate(listed);
        target.push(unlisted[0].middle());
        target.resize(listed + count + 1, 0.0);
        draft.insert(listed, 0.0);
        let apart = question(scan, Rows { target, draft }, column, number)?;
        Ok([Some(asked), Some(apart)])
    }
}

/// Lays what two rows do not list behind it, in proportion, on as few of so many tokens as can hold it, and
/// says on how many.
pub(super) fn in_proportion(
    rows: [&mut Vec<f64>; 2],
    unlisted: [Unlisted; 2],
    others: usize,
) -> usize {
    let count = pieces(unlisted, others);
    for (row, rest) in rows.into_iter().zip(unlisted.map(|one| one.middle())) {
        for mass in row.iter_mut() {
            *mass = if mass.is_nan() {
                0.0
            } else {
                *mass * (1.0 - rest)
            };
        }
        row.resize(row.len() + count, rest / count as f64);
    }
    count
}

/// The most that a token has that is not listed, over what the listed ones have.
pub(super) fn most_unlisted(unlisted: Unlisted) -> f64 {
    let [_, rest] = unlisted.mass;
    (unlisted.largest * (1.0 + ROUNDING)).min((rest + CUT_ROUNDING) / (1.0 - rest))
}

/// Returns what is known of the tokens that rows do not tell.
fn rest([target, draft]: [&[f64]; 2], unlisted: [Unlisted; 2]) -> Rest {
    let mut known = unlisted.iter();
    let is_known = known.all(|one| one.is_known() && one.largest.is_finite())
        && target.iter().chain(draft).all(|mass| !mass.is_nan());
    match is_known {
        true => Rest::Known {
            heaviest: heavier(draft, unlisted[1]),
        },
        false => Rest::Open,
    }
}

fn kept(cuts: Cuts, temperature: f64) -> String {
    match cuts.keep_all() {
        true => String::new(),
        false => format!(" with {}", cuts.in_words(&[temperature])),
    }
}

/// Room for the rounding of what is compared.
const ROUNDING: f64 = 1e-12;

/// Returns how many listed tokens have more of a row than any token that is not listed, for
/// certain: of two that tie it is not known which comes first.
fn heavier(shares: &[f64], unlisted: Unlisted) -> usize {
    if unlisted.mass[1] <= 0.0 {
        return usize::MAX;
    }
    let most = most_unlisted(unlisted);
    shares.iter().filter(|&&share| share > most).count()
}

/// Most tokens that stand for those that rows do not list.
const MOST_PIECES: usize = 1024;

/// The fewest equal tokens that have the masses of the rest, none of them heavier than it may
/// be.
fn pieces(unlisted: [Unlisted; 2], others: usize) -> usize {
    let of = |one: &Unlisted| match one.most() > 0.0 {
        true => (one.mass[1] / one.most()).ceil(),
        false => 1.0,
    };
    let count = unlisted.iter().map(of).fold(1.0, f64::max) as usize;
    count.clamp(1, others.clamp(1, MOST_PIECES))
}

/// At least 1; for blocks, more than any other ratio takes back.
const ACCEPTED: f64 = 1e100;

/// How often a token is drafted by the noise that gave it, 1 / sum of max(p, q p(y)/q(y))
/// (`docs/theory/shared-noise.md`): where the unlisted tokens count as one, and its bounds. `most` is
/// the most that q(y)/p(y) can be.
fn of_one_noise(
    [target, draft]: [&[f64]; 2],
    listed: [Option<f64>; 2],
    unlisted: [Unlisted; 2],
    most: f64,
) -> [f64; 3] {
    let (p, q) = match listed {
        [Some(p), Some(q)] if p > 0.0 && q > 0.0 => (p, q),
        // A token of the text that has no q is no draft.
        [Some(_), Some(_)] => return [0.0; 3],
        _ => return [0.5 * most.min(1.0), 0.0, most.min(1.0)],
    };
    let ratio = p / q;
    // What one row lists may be what the other does not.
    let alone = |row: &[f64], other: &[f64]| -> f64 {
        let pairs = row.iter().zip(other);
        pairs
            .filter(|(_, other)| other.is_nan())
            .map(|(own, _)| own)
            .sum()
    };
    let [of_p, of_q] = [alone(target, draft), alone(draft, target)];
    // A maximum is what both have without the minimum, of listed tokens that sum to 1.
    let common = specgap_entries::common(target, draft, [1.0, ratio]);
    let of_listed = (1.0 - of_p) + ratio * (1.0 - of_q) - common;
    // By what p does not list, at least and at most, and q.
    let sum = |[least, most]: [f64; 2], of_draft: f64, both: f64| {
        let most = (1.0 - least) * of_p + most;
        let of_draft = (1.0 - least) * ratio * (of_q + of_draft / (1.0 - of_draft));
        let larger = most.max(of_draft);
        (1.0 - least) * of_listed + larger + both * (most + of_draft - larger)
    };
    let ([a, b], [c, d]) = (unlisted[0].mass, unlisted[1].mass);
    let middle = unlisted.map(|one| one.middle());
    let sums = [
        sum([middle[0]; 2], middle[1], 0.0),
        sum([a, b], d, 1.0),
        sum([b, a], c, 0.0),
    ];
    sums.map(|sum| match sum.is_nan() {
        true => 0.0,
        false => 1.0 / sum.max(1.0),
    })
}

/// Bounds on q/p of a token of which each row lists a share, or nothing.
fn ratio_bounds(listed: [Option<f64>; 2], unlisted: [Unlisted; 2]) -> [f64; 2] {
    let [[p_least, p_most], [q_least, q_most]] = [0, 1].map(|row| {
        let [least, most] = unlisted[row].mass;
        match listed[row] {
            Some(share) => [share * (1.0 - most), share * (1.0 - least)],
            None => [0.0, unlisted[row].most()],
        }
    });
    let over = |q: f64, p: f64| {
        if q <= 0.0 {
            0.0
        } else if p > 0.0 {
            (q / p).min(ACCEPTED)
        } else {
            ACCEPTED
        }
    };
    [over(q_least, p_most), over(q_most, p_least)]
}

/// Returns where the draft's likeliest token stands in its row, of equal ones that with the lowest
/// id; `None` where tokens that the row does not list may be as likely.
fn likeliest(lists: Option<&Lists>, row: &Row) -> Option<usize> {
    let Likeliest {
        place,
        listed,
        equal,
    } = Likeliest::of(&row.draft, &row.token_ids)?;
    let Some(lists) = lists else {
        return Some(place);
    };
    if listed >= lists.vocabulary() {
        return Some(place);
    }
    // A list of one may be the text's own token.
    let both = row.draft.len() == listed;
    let top = match lists.tops() {
        Some([_, draft]) => draft,
        None if both => listed / 2,
        None => listed - 1,
    };
    (top > 0 && (equal == 1 || equal < top)).then_some(place)
}

/// The entropy of a row by that of its listed tokens' shares, with a mass that is not listed
/// spread evenly over so many tokens.
fn entropy(listed: &Moments, rest: f64, spread: f64) -> f64 {
    let kept = 1.0 - rest;
    let of_rest = match rest > 0.0 {
        true => -rest * (rest / spread).ln(),
        false => 0.0,
    };
    let of_listed = match kept > 0.0 {
        true => kept * (listed.mean - kept.ln()),
        false => 0.0,
    };
    (of_listed + of_rest).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropies_are_those_of_the_row() {
        let half = 0.5f64.ln();
        let probabilities = [0.5, 0.25, 0.25, 0.0];
        let logits = probabilities.map(f64::ln);
        let moments = Moments::new(&logits, true, 1.0, &probabilities);
        assert!((entropy(&moments, 0.0, 1.0) + 1.5 * half).abs() < 1e-15);
        // Half of the mass is not listed: as two tokens of 1/4 each.
        let moments = Moments::new(&[0.0, 0.0], true, 1.0, &[0.5, 0.5]);
        assert!((entropy(&moments, 0.5, 2.0) - 4.0f64.ln()).abs() < 1e-15);
    }
}
