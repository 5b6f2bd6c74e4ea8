//! Rows that list only some tokens: what the others can change.
//!
//! Such a row lists tokens with their p or q, and the mass of the others is known, or between
//! two bounds. The full row is one of many completions. For each number of a report there
//! are bounds that hold its value under every completion; `docs/theory/truncated-rows.md` has the
//! proofs. Laws and verifiers name theirs in their entries.
//!
//! With A the tokens that both rows list, three rows do most of the work:
//!
//! - *sure*: every listed token has the least that it can have, and nothing of the rest can
//!   be accepted: p of the rest is one token with q = 0, and q of the rest is many tokens
//!   with p = 0. Whatever rises with listed p and q is at least what it is here.
//! - *likely*: the tokens of A have the most that they can have, and the rest is one token
//!   with q = 0 and one with p = 0. What tokens outside A add to a number here is bounded
//!   by [`CutRow::more`].
//! - *merged*: all tokens outside A are one. It is there if the masses are known.

mod bounds;
mod fixed;
mod optima;

use super::Answer;
use super::memo::Memo;
use super::scan::{Row, RowError, Rows, Workspace};
use specgap_number::distribution::heaviest;

/// Most tokens that stand for what the draft does not list. Where there are more of them,
/// what more could change is added to the bounds.
const MOST_PIECES: usize = 1024;

/// Relative rounding of a bound on one token against what a row lists, and more.
const ROUNDING: f64 = 1e-12;

/// Equal masses of a row of f32 seem to be so much apart at most, where one of them is what the
/// others lack to 1.
const TIE: f64 = 1e-6;

/// Bounds are widened by this at least, which is more than any rate is off by rounding, but for
/// that of a rest which is found by difference: [`CutRow::rounding`].
pub const CUT_ROUNDING: f64 = 1e-11;

/// Bounds [lower, upper] on a number of the full row, but for [`CUT_ROUNDING`].
pub type CutAnswer = fn(&mut CutRow<'_>, CutQuestion) -> Result<[f64; 2], RowError>;

/// What is asked of a cut row, and what is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutQuestion {
    /// n.
    pub drafts: usize,
    /// Bounds on the full row's sum of min(p, q).
    pub overlap: [f64; 2],
}

/// What two rows list, and what is known of the rest. Tokens are in order of their ids: of
/// equal ones the first is the heaviest.
///
/// # Example
/// ```
/// use specgap_row::{CutWorkspace, Listed, Unlisted};
/// // Three of ten tokens: p is 0.4, 0.3, 0.1, and 0.2 are not listed.
/// let unlisted = Unlisted { mass: [0.2, 0.2], largest: f64::INFINITY };
/// let listed = Listed {
///     target: &[0.5, 0.375, 0.125],
///     draft: &[0.25, 0.5, 0.25],
///     unlisted: [unlisted, unlisted],
///     vocabulary: 10,
///     missing: 3,
/// };
/// let mut workspace = CutWorkspace::default();
/// let row = workspace.load(listed, 2)?.ok_or("complete")?;
/// let [lower, upper] = row.overlap();
/// assert!((lower - 0.6).abs() < 1e-12 && (upper - 0.8).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// p of each token over the sum of those that the target lists; NaN where it does not
    /// list the token, which the draft does.
    pub target: &'a [f64],
    /// q likewise.
    pub draft: &'a [f64],
    /// Of the target's row and of the draft's.
    pub unlisted: [Unlisted; 2],
    /// V: listed tokens and others.
    pub vocabulary: usize,
    /// The first id that neither row lists: so many listed tokens have a lower one.
    pub missing: usize,
}

/// The tokens that the draft lists, of rows whose masses are known.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedByDraft {
    /// p of each token, 0 where the target does not list it.
    pub target: Vec<f64>,
    /// q of each token.
    pub draft: Vec<f64>,
    /// Mass of q that is not listed.
    pub unlisted: f64,
    /// q of the tokens that the target does not list.
    pub apart: f64,
    /// No token that the draft does not list has more.
    pub largest: f64,
}

impl ListedByDraft {
    /// Tells by id where the token that has what the others lack to 1 stands among those of its
    /// mass. Where rounding hides which have more, these and all lighter ones may be in any order.
    fn tie(&mut self, place: usize) {
        let own = self.draft[place];
        let others = self.draft.iter().enumerate().filter(|one| one.0 != place);
        let near = || others.clone().filter(|one| (one.1 - own).abs() <= TIE);
        let Some((_, &q)) = near().next() else {
            return;
        };
        if near().all(|one| *one.1 == q) && (q - own).abs() <= ROUNDING {
            self.draft[place] = q;
        } else {
            self.largest = near().fold(own, |most, one| most.max(*one.1));
        }
    }
}

/// What is known of the tokens that one row does not list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unlisted {
    /// Bounds on their mass.
    pub mass: [f64; 2],
    /// None of them has more than this, over the mass of the listed tokens; infinite if
    /// nothing is known.
    pub largest: f64,
}

impl Unlisted {
    /// Tokens that cannot be drawn.
    pub const NONE: Self = Self {
        mass: [0.0, 0.0],
        largest: 0.0,
    };

    /// A row of which nothing is known.
    pub const ALL: Self = Self {
        mass: [0.0, 1.0],
        largest: f64::INFINITY,
    };

    /// No token of the rest has more than this.
    pub fn most(&self) -> f64 {
        let [least, most] = self.mass;
        most.min(self.largest * (1.0 - least)).max(0.0)
    }

    /// The middle of the bounds on their mass.
    pub fn middle(&self) -> f64 {
        let [least, most] = self.mass;
        0.5 * (least + most)
    }

    /// Their mass is known.
    pub fn is_known(&self) -> bool {
        let [least, most] = self.mass;
        least >= most
    }
}

/// A pair of rows being built.
#[derive(Debug, Default)]
struct Pair {
    target: Vec<f64>,
    draft: Vec<f64>,
    scan: Workspace,
}

impl Pair {
    fn clear(&mut self) {
        self.target.clear();
        self.draft.clear();
    }

    fn push(&mut self, p: f64, q: f64) {
        self.target.push(p.max(0.0));
        self.draft.push(q.max(0.0));
    }

    /// Adds what is missing of each row, which takes part in nothing.
    fn push_dead(&mut self) {
        let missing = |row: &[f64]| 1.0 - row.iter().sum::<f64>();
        let (p, q) = (missing(&self.target), missing(&self.draft));
        self.push(p, 0.0);
        self.push(0.0, q);
    }

    fn load(&mut self, most_drafts: usize) -> Result<Row<'_>, RowError> {
        let (target, draft) = (&self.target, &self.draft);
        self.scan.load(Rows { target, draft }, most_drafts)
    }
}

/// Room for one cut row after another.
#[derive(Debug, Default)]
pub struct CutWorkspace {
    sure: Pair,
    likely: Pair,
    merged: Pair,
    tokens: Vec<Token>,
}

/// A token that at least one row lists.
#[derive(Clone, Copy, Debug)]
struct Token {
    /// p at least and at most, if the target lists it.
    target: Option<[f64; 2]>,
    /// q likewise.
    draft: Option<[f64; 2]>,
}

impl Token {
    fn least(&self) -> [f64; 2] {
        [self.target, self.draft].map(|mass| mass.map_or(0.0, |[least, _]| least))
    }

    /// The most of both, if both rows list it.
    fn both(&self) -> Option<[f64; 2]> {
        Some([self.target?[1], self.draft?[1]])
    }
}

/// Two rows of listed tokens, and what is known of the others.
#[derive(Debug)]
pub struct CutRow<'a> {
    sure: Row<'a>,
    likely: Row<'a>,
    merged: Option<Row<'a>>,
    tokens: &'a [Token],
    unlisted: [Unlisted; 2],
    /// Both rows list the same tokens.
    is_alike: bool,
    /// The place of the only token that neither row lists: it has what they lack.
    whole: Option<usize>,
    /// The tokens of largest q that the draft lists, by falling q.
    heaviest: Vec<usize>,
    /// The least q of the tokens that the draft lists but the k heaviest, for k from 0: sums,
    /// so that nothing cancels.
    without: Vec<f64>,
    /// One over the tokens that q of the rest was spread over, 0 if these are all.
    spare: f64,
}

impl CutWorkspace {
    /// The rows of what is listed; `None` if nothing is missing.
    ///
    /// # Errors
    /// As [`Workspace::load`].
    pub fn load<'a>(
        &'a mut self,
        listed: Listed<'_>,
        most_drafts: usize,
    ) -> Result<Option<CutRow<'a>>, RowError> {
        let mut unlisted = listed.unlisted;
        let both = || listed.target.iter().zip(listed.draft);
        let is_alike = both().all(|(p, q)| !p.is_nan() && !q.is_nan());
        let [[_, target_rest], [_, draft_rest]] = unlisted.map(|one| one.mass);
        if is_alike && target_rest <= 0.0 && draft_rest <= 0.0 {
            return Ok(None);
        }
        let span = |share: f64, unlisted: &Unlisted| {
            let [least, most] = unlisted.mass;
            (!share.is_nan()).then_some([share * (1.0 - most), share * (1.0 - least)])
        };
        self.tokens.clear();
        self.tokens.extend(both().map(|(&p, &q)| Token {
            target: span(p, &unlisted[0]),
            draft: span(q, &unlisted[1]),
        }));
        // One token that neither lists has all of the rest, as if it were listed.
        let is_whole = is_alike
            && self.tokens.len() + 1 == listed.vocabulary
            && unlisted.iter().all(Unlisted::is_known);
        if is_whole {
            let [target, draft] = unlisted.map(|one| Some(one.mass));
            let place = listed.missing.min(self.tokens.len());
            self.tokens.insert(place, Token { target, draft });
            unlisted = [Unlisted::NONE; 2];
        }
        let others = {
            let known = self.tokens.iter().filter(|token| token.draft.is_some());
            listed.vocabulary.saturating_sub(known.count()).max(1)
        };
        let pieces = others.min(MOST_PIECES);
        self.fill(
            unlisted[1].mass[1],
            pieces,
            unlisted.iter().all(Unlisted::is_known),
        );
        let merged = match self.merged.target.is_empty() {
            true => None,
            false => Some(self.merged.load(most_drafts)?),
        };
        let draft: Vec<f64> = self.tokens.iter().map(|token| token.least()[1]).collect();
        let heaviest = heaviest(&draft, most_drafts);
        let rest = draft.iter().enumerate();
        let rest = rest.filter(|(token, _)| !heaviest.contains(token));
        let mut without = vec![rest.map(|(_, &q)| q).sum::<f64>()];
        for &token in heaviest.iter().rev() {
            without.push(without[without.len() - 1] + draft[token]);
        }
        without.reverse();
        Ok(Some(CutRow {
            sure: self.sure.load(most_drafts)?,
            likely: self.likely.load(most_drafts)?,
            merged,
            tokens: &self.tokens,
            unlisted,
            is_alike,
            whole: is_whole.then_some(listed.missing.min(self.tokens.len() - 1)),
            heaviest,
            without,
            spare: match pieces < others {
                true => 1.0 / pieces as f64,
                false => 0.0,
            },
        }))
    }

    /// Fills the three rows from the tokens.
    fn fill(&mut self, draft_rest: f64, pieces: usize, is_known: bool) {
        let Self {
            sure,
            likely,
            merged,
            tokens,
        } = self;
        for pair in [&mut *sure, &mut *likely, &mut *merged] {
            pair.clear();
        }
        for token in tokens.iter() {
            let [p, q] = token.least();
            sure.push(p, q);
            let [p, q] = token.both().unwrap_or_default();
            likely.push(p, q);
            if is_known {
                merged.push(p, q);
            }
        }
        let missing = 1.0 - sure.target.iter().sum::<f64>();
        sure.push(missing, 0.0);
        if draft_rest > 0.0 {
            let piece = draft_rest / pieces as f64;
            (0..pieces).for_each(|_| sure.push(0.0, piece));
        }
        likely.push_dead();
        if is_known {
            let missing = |row: &[f64]| 1.0 - row.iter().sum::<f64>();
            let (p, q) = (missing(&merged.target), missing(&merged.draft));
            merged.push(p, q);
        }
    }
}

impl CutRow<'_> {
    /// Returns whether full rows with the merged row's numbers fit what is listed.
    fn is_merged_attained(&self) -> bool {
        self.is_alike && self.merged.is_some()
    }

    /// Returns what is kept between the questions that are asked of this row.
    pub fn memo(&mut self) -> &mut Memo {
        self.sure.memo()
    }

    /// Returns what rounding can change of n drafts' bounds. A rest that is what listed
    /// probabilities lack to 1 is rounded as 1 is; a draft that comes from what heavier ones leave
    /// of q has that over this, and the laws of n of them differ by as much each.
    pub fn rounding(&self, drafts: usize) -> f64 {
        let whole = self
            .whole
            .map_or(0.0, |place| self.tokens[place].least()[1]);
        let rest = self.unlisted[1].mass[1];
        if whole + rest <= 0.0 {
            return CUT_ROUNDING;
        }
        let left = self.without(drafts.saturating_sub(1)) + rest;
        (2.0 * f64::EPSILON * drafts as f64 / left).clamp(CUT_ROUNDING, 1.0)
    }

    /// Bounds on the masses of the target and of the draft that are not listed.
    pub fn rests(&self) -> [[f64; 2]; 2] {
        self.unlisted.map(|one| one.mass)
    }

    /// Returns what the draft lists, where all masses are known: p of each of its tokens (0 where
    /// the target does not list it), q, the mass of the others, and the most that one of them has.
    pub fn listed_by_draft(&self) -> Option<ListedByDraft> {
        let is_known = self.unlisted.iter().all(Unlisted::is_known);
        let mut listed = ListedByDraft {
            target: Vec::new(),
            draft: Vec::new(),
            unlisted: self.unlisted[1].mass[1],
            apart: 0.0,
            largest: self.most_unlisted(),
        };
        let mut whole = None;
        for (place, token) in self.tokens.iter().enumerate() {
            if let Some([q, _]) = token.draft {
                if self.whole == Some(place) {
                    whole = Some(listed.draft.len());
                }
                listed.target.push(token.target.map_or(0.0, |[p, _]| p));
                listed.draft.push(q);
                if token.target.is_none() {
                    listed.apart += q;
                }
            }
        }
        if let Some(place) = whole {
            listed.tie(place);
        }
        is_known.then_some(listed)
    }

    /// Bounds a number that rises with p and q of every listed token, and that is largest on the
    /// merged row where all listed masses are known; `more` bounds what tokens outside A add.
    fn rises(&mut self, drafts: usize, answer: Answer, more: f64) -> Result<[f64; 2], RowError> {
        let lower = answer(&mut self.sure, drafts)?.lower();
        let mut upper = f64::INFINITY;
        if let Some(merged) = &mut self.merged {
            upper = answer(merged, drafts)?.upper();
        }
        if !self.is_merged_attained() {
            upper = upper.min(answer(&mut self.likely, drafts)?.upper() + more);
        }
        Ok([lower, upper])
    }

    /// The most that tokens outside A can add to what is accepted, where a token of draft
    /// mass q is drafted with probability at most `reach(q)`, and so is any of several that
    /// have q together.
    ///
    /// What is put out there is in the target's list, and then it was drafted, or it has
    /// target mass that is not listed. The same the other way round.
    pub fn more(&self, reach: impl Fn(f64) -> f64) -> f64 {
        let [target, draft] = self.unlisted;
        let reach = |q: f64| reach(q).min(1.0);
        let (mut of_target, mut of_draft) = (0.0, 0.0);
        for token in self.tokens {
            match (token.target, token.draft) {
                (Some([_, p]), None) => of_target += p.min(reach(draft.most())),
                (None, Some([_, q])) => of_draft += target.most().min(reach(q)),
                _ => {}
            }
        }
        let [rest, drafted] = [target.mass[1], reach(draft.mass[1])];
        (of_target + rest).min(drafted + rest.min(of_draft))
    }

    /// P(a token of draft mass q is among n independent drafts).
    pub fn drafted_iid(drafts: usize) -> impl Fn(f64) -> f64 {
        move |q| -(drafts as f64 * (-q.min(1.0)).ln_1p()).exp_m1()
    }

    /// The same of sequential draws, at most: what is left at each draw is the token itself,
    /// and no less than all tokens that the draft lists but as many of the heaviest.
    fn drafted_in_turn(&self, drafts: usize) -> impl Fn(f64) -> f64 + '_ {
        move |q| {
            let chance = |draw: usize| {
                let all = self.without(draw).max(q);
                if all > 0.0 { q / all } else { 0.0 }
            };
            (0..drafts).map(chance).sum()
        }
    }

    /// The mean number of pairs among n sequential drafts that are both from the rest, at
    /// most, `gone` more listed tokens being out: the probability of any event is off by no
    /// more where one token stands for all of the rest, and by a share of that where several
    /// do.
    ///
    /// Draw j is from the rest with probability at most c(j-1) = b / (b + q of the listed
    /// tokens but the j-1 heaviest), and c(j-2) if an earlier one was.
    fn meeting(&self, drafts: usize, gone: usize) -> f64 {
        let b = self.unlisted[1].mass[1];
        if b <= 0.0 {
            return 0.0;
        }
        let one = |drawn: usize| b / (b + self.without(drawn + gone));
        let mut sum = 0.0;
        let mut earlier = 0.0;
        for draw in 2..=drafts {
            earlier += one(draw - 2);
            sum += earlier * one(draw - 2);
        }
        sum
    }

    /// q of the listed tokens but the heaviest ones, at least.
    fn without(&self, heaviest: usize) -> f64 {
        let last = self.without.len() - 1;
        self.without[heaviest.min(last)]
    }
}
