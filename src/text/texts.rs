//! Texts of logs, with what the identities need of each position.

use super::TextError;
use super::place::{Place, Rest};
use super::rollouts::{RolledOut, RolloutKind, RolloutList};
use crate::distribution::{Rows, Softmax};
use crate::gap::{Lists, Moments, Singles, Surprise, Surprised, Surprises, probabilities};
use crate::log::{Log, Rollouts, Row, RowKind, Span};
use crate::row::{CUT_ROUNDING, Unlisted, Workspace as Scan};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Positions that one task takes.
const SPAN: usize = 16;

/// A text from its first token on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    /// The prompt that it continues, by its number among all prompts.
    pub cluster: usize,
    /// Its positions.
    pub places: Vec<Place>,
    /// q/p at its tokens.
    pub ratios: Vec<f64>,
    /// What the draft wrote on its own behind some of its starts.
    pub rollouts: Vec<RolledOut>,
    /// One over the probability that a rollout starts at a position, and over how many start
    /// together.
    pub spacing: f64,
    /// The number of each position among those of all logs; texts may lie side by side.
    pub(super) numbers: Vec<usize>,
    /// What else was asked of its rows, position by position.
    pub(super) asked: Vec<f64>,
    /// The same where no token of the rest has both p and q: as many, or none.
    pub(super) apart: Vec<f64>,
}

/// What else is asked of a position's rows, beside what a [`Place`] holds: of both rows, the
/// column of the text's token, and a number that no other position has. Tokens that a row
/// does not list are the last columns, as few as they can be. As many numbers at every
/// position.
pub(super) type Question<'a> =
    dyn Fn(&mut Scan, Rows<'_>, usize, u64) -> Result<Vec<f64>, String> + Sync + 'a;

/// All texts of some logs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts {
    /// The temperature at which they were drawn.
    pub temperature: f64,
    /// The texts, by prompt.
    pub texts: Vec<Text>,
    /// How many prompts there are.
    pub clusters: usize,
    /// What the rollouts of each log tell; empty unless all logs have some.
    pub rollouts: Vec<RolloutKind>,
    /// How surprising their tokens are.
    surprises: Surprises,
    /// Positions without a row of the draft.
    lacking: usize,
    /// Whether the draft's largest probability, its entropy, and the overlap are not told at
    /// some position.
    untold: [bool; 3],
}

impl Texts {
    /// Reads the texts of some logs. `temperature`, if given, has to be the one at which
    /// they were drawn; `progress` is told of positions as they are done.
    ///
    /// # Errors
    /// Logs without sampled tokens, prompts or places in the text; texts drawn at another
    /// temperature, at temperature 0, or from part of the target's tokens; texts with gaps;
    /// tokens to which the target gives no probability; rows that are refused; rollouts that
    /// do not fit their positions, or of another temperature. Each names the log, and the
    /// position where there is one, and says what to do.
    ///
    /// # Complexity
    /// O(N V) time; memory grows by 100 bytes a position.
    pub fn read(
        logs: &[Log],
        temperature: Option<f64>,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Self, TextError> {
        Self::read_asking(logs, temperature, progress, None, true)
    }

    /// The same, with a question to the rows, and with rollouts or without.
    pub(super) fn read_asking(
        logs: &[Log],
        temperature: Option<f64>,
        progress: &(dyn Fn(usize) + Sync),
        question: Option<&Question<'_>>,
        rollouts: bool,
    ) -> Result<Self, TextError> {
        let mut all = Self::default();
        // Everything that can be refused is, before the long part.
        for (index, log) in logs.iter().enumerate() {
            let drawn = drawn_at(log, temperature)?;
            if index > 0 && drawn != all.temperature {
                return Err(refused(
                    log,
                    format!(
                        "its text was drawn at temperature {drawn}, and that of the log before it \
                         at {}; replay them one by one",
                        all.temperature
                    ),
                ));
            }
            all.temperature = drawn;
            one_pair(&logs[..index], log)?;
            let lists = lists_of(log)?;
            if question.is_some() && lists.and_then(|lists| lists.tops()) == Some([0; 2]) {
                return Err(refused(
                    log,
                    "lists the text's own tokens alone, which tell of one chain of drafts \
                     (specgap length) and of nothing beside it; log rows, or lists of the most \
                     probable tokens"
                        .to_owned(),
                ));
            }
            if question.is_some() && log.may_lack_drafts() {
                return Err(refused(
                    log,
                    "has positions without a row of the draft (draft_row is 0), as recorders leave \
                     behind drafts that were all accepted; they bound a chain of drafts (specgap \
                     length), and nothing beside it: score the texts that came out with both models \
                     (docs/guide/engines.md)"
                        .to_owned(),
                ));
            }
            log.refuse_other_forms()?;
        }
        let with_rollouts = rollouts && logs.iter().all(Log::has_rollouts);
        for log in logs {
            let rollouts = if with_rollouts { log.rollouts()? } else { None };
            if let Some(rollouts) = &rollouts {
                let kind = RolloutKind::new(log, rollouts, all.temperature)?;
                all.rollouts.push(kind);
            }
            all.add(log, progress, question, rollouts.as_ref())?;
        }
        Ok(all)
    }

    /// Whether the rollouts of all logs have a list.
    pub(super) fn rollouts_have(&self, list: RolloutList) -> bool {
        !self.rollouts.is_empty() && self.rollouts.iter().all(|kind| kind.has(list))
    }

    /// The most tokens of a rollout, if there are any.
    pub(super) fn rollout_tokens(&self) -> Option<usize> {
        self.rollouts.iter().map(|kind| kind.tokens).min()
    }

    /// Places that a head has to say something of: all but the last of each text, which is
    /// never drafted.
    pub(super) fn drafted_places(&self) -> impl Iterator<Item = &Place> {
        self.texts.iter().flat_map(|text| {
            let all = text.places.split_last();
            all.map_or(&[][..], |(_, before)| before)
        })
    }

    /// Tokens of each prompt.
    pub(super) fn tokens(&self) -> Vec<f64> {
        let mut tokens = vec![0.0; self.clusters];
        for text in &self.texts {
            tokens[text.cluster] += text.places.len() as f64;
        }
        tokens
    }

    /// Tokens that their rows do not list, where there are rows.
    pub(super) fn unlisted(&self) -> usize {
        let places = self.texts.iter().flat_map(|text| &text.places);
        places.filter(|place| !place.listed).count() - self.lacking
    }

    /// Positions at which the log has no row of the draft.
    pub(super) fn lacking(&self) -> usize {
        self.lacking
    }

    /// Whether the same leaves q open at any token.
    pub(super) fn draft_is_open(&self) -> bool {
        let mut places = self.texts.iter().flat_map(|text| &text.places);
        places.any(|place| place.draft_bounds[0] < place.draft_bounds[1])
    }

    /// Whether the rows tell what a policy decides on that needs this list of rollouts: more
    /// than what they give the text's own tokens.
    pub(super) fn rows_tell(&self, list: Option<RolloutList>) -> bool {
        let [top, entropy, overlap] = self.untold;
        match list {
            Some(RolloutList::Top) => !top,
            Some(RolloutList::Entropy) => !entropy,
            Some(RolloutList::Overlap) => !overlap,
            _ => true,
        }
    }

    /// Whether what rows do not list leaves any ratio open.
    pub(super) fn are_open(&self) -> bool {
        let mut places = self.texts.iter().flat_map(|text| &text.places);
        places.any(|place| place.ratio_bounds[0] < place.ratio_bounds[1])
    }

    /// Whether they look drawn from their rows.
    pub(super) fn surprise(&self) -> Surprise {
        self.surprises.surprise()
    }

    /// N, over all texts.
    pub fn positions(&self) -> usize {
        self.texts.iter().map(|text| text.places.len()).sum()
    }

    /// Adds the texts of a log.
    fn add(
        &mut self,
        log: &Log,
        progress: &(dyn Fn(usize) + Sync),
        question: Option<&Question<'_>>,
        rollouts: Option<&Rollouts>,
    ) -> Result<(), TextError> {
        let before = self.positions();
        let lists = lists_of(log)?;
        let task = Task {
            singles: Singles::new(log, lists.as_ref())?,
            log,
            question,
            rollouts,
            before: before as u64,
            temperature: self.temperature,
            lists,
        };
        let read: Vec<Vec<Read>> = log
            .spans(SPAN)
            .par_iter()
            .map_init(Workspace::default, |workspace, span| {
                let result = task.span(span, workspace);
                progress(span.positions().len());
                result
            })
            .collect::<Result<_, _>>()?;
        let spacing = match (rollouts, self.rollouts.last()) {
            (Some(_), Some(kind)) => kind.spacing(),
            _ => 1.0,
        };
        let mut prompts = BTreeMap::<i64, usize>::new();
        // The text that each prompt is in, and its next index.
        let mut open = BTreeMap::<usize, (usize, i64)>::new();
        for (number, read) in read.into_iter().flatten().enumerate() {
            let next = self.clusters;
            let cluster = *prompts.entry(read.prompt).or_insert(next);
            self.clusters = self.clusters.max(cluster + 1);
            let wanted = open.get(&cluster).map_or(0, |&(_, next)| next);
            if read.position != wanted && read.position != 0 {
                return Err(position_refused(
                    log,
                    number,
                    format!(
                        "its index in the text of prompt {} is {}, where {wanted} is expected; \
                         rounds are replayed from a text's first token (index 0) without gaps, so \
                         log whole texts in order{}",
                        read.prompt,
                        read.position,
                        match log.engine_tensors().contains(&"accepted") {
                            // Behind a whole chain the draft has no row.
                            true => {
                                ". Recorded rounds lack tokens without drafts: score the texts \
                                 that came out with both models (docs/guide/engines.md)"
                            }
                            false => "",
                        }
                    ),
                ));
            }
            if read.position == 0 {
                self.texts.push(Text {
                    cluster,
                    spacing,
                    ..Text::default()
                });
                open.insert(cluster, (self.texts.len() - 1, 0));
            }
            if let Some((index, next)) = open.get_mut(&cluster)
                && let Some(text) = self.texts.get_mut(*index)
            {
                let start = text.places.len();
                let here = rollouts.map_or(&[][..], |all| all.paths_at(number));
                let here = here.iter().filter_map(|&index| rollouts?.get(index));
                (text.rollouts).extend(here.map(|one| RolledOut::new(start, &one)));
                for (untold, here) in self.untold.iter_mut().zip(read.untold) {
                    *untold |= here;
                }
                read.surprised
                    .iter()
                    .for_each(|one| self.surprises.add(one));
                self.lacking += usize::from(read.lacks_draft);
                text.ratios.push(read.place.ratio);
                text.places.push(read.place);
                text.numbers.push(before + number);
                text.asked.extend(read.asked);
                text.apart.extend(read.apart);
                *next += 1;
            }
        }
        Ok(())
    }
}

fn refused(log: &Log, message: String) -> TextError {
    TextError::Log {
        log: log.path().to_owned(),
        message,
    }
}

fn position_refused(log: &Log, position: usize, message: String) -> TextError {
    TextError::Position {
        log: log.path().to_owned(),
        position,
        message,
    }
}

/// Refuses a log of other models than those before it, and one that is there already.
fn one_pair(before: &[Log], log: &Log) -> Result<(), TextError> {
    let (Some(first), metadata) = (before.first(), log.metadata()) else {
        return Ok(());
    };
    let known = first.metadata();
    if (&known.target, &known.draft, &known.tokenizer)
        != (&metadata.target, &metadata.draft, &metadata.tokenizer)
        || first.vocabulary() != log.vocabulary()
    {
        return Err(refused(
            log,
            format!(
                "is of other models than {}: names or hashes of target, draft or tokenizer, or V \
                 differ; texts of one pair alone count together, so replay them one by one",
                first.path().display()
            ),
        ));
    }
    let own = log.identity()?.digest;
    for other in before {
        if other.identity()?.digest == own {
            return Err(refused(
                log,
                format!(
                    "has the same rows as {}; its texts would count twice, name it once",
                    other.path().display()
                ),
            ));
        }
    }
    Ok(())
}

/// The temperature at which a log's text was drawn from the whole target.
fn drawn_at(log: &Log, asked: Option<f64>) -> Result<f64, TextError> {
    let refused = |message: String| Err(refused(log, message));
    if let Some(asked) = asked.filter(|t| !(t.is_finite() && *t > 0.0)) {
        return refused(format!(
            "--temperature {asked} is out of range; it is finite and above 0"
        ));
    }
    if !log.has_tokens() {
        return refused(
            "has no tensor token, the token that was drawn from the target at each position; \
             draft lengths are replayed along that text: capture with specgap capture, or add \
             token [N] (i64)"
                .to_owned(),
        );
    }
    if !log.has_prompts() {
        return refused(
            "has no tensor prompt_id; draft lengths are replayed text by text: add prompt_id [N] \
             and position [N] (i64)"
                .to_owned(),
        );
    }
    let Some(sampling) = &log.metadata().sampling else {
        return match asked {
            Some(asked) => Ok(asked),
            None => refused(
                "does not say how its tokens were drawn; if they were drawn from the whole target \
                 at temperature T, say so with --temperature T"
                    .to_owned(),
            ),
        };
    };
    let cut = [
        sampling.top_k.map(|k| format!("top-k {k}")),
        sampling.top_p.map(|p| format!("top-p {p}")),
        sampling.min_p.map(|p| format!("min-p {p}")),
    ];
    let cut: Vec<String> = cut.into_iter().flatten().collect();
    if !cut.is_empty() {
        return refused(format!(
            "its text was drawn with {}, not from the rows that are logged; every identity needs \
             text drawn from the target's whole row: capture without --top-k and --top-p",
            cut.join(" and ")
        ));
    }
    let drawn = sampling.temperature;
    if drawn <= 0.0 {
        return refused(
            "its text was drawn at temperature 0, the most probable token always; acceptance by \
             sampling needs text drawn at a temperature above 0: capture with --temperature 1"
                .to_owned(),
        );
    }
    match asked {
        Some(asked) if asked != drawn => refused(format!(
            "its text was drawn at temperature {drawn}, and --temperature asks for {asked}; every \
             identity needs text drawn at the temperature it is about: capture with --temperature \
             {asked}"
        )),
        _ => Ok(drawn),
    }
}

/// What the log's rows leave out; `None` if they are complete.
fn lists_of(log: &Log) -> Result<Option<Lists>, TextError> {
    // The message names the log.
    Lists::new(log).map_err(TextError::Settings)
}

/// A position as it is read.
struct Read {
    prompt: i64,
    position: i64,
    place: Place,
    untold: [bool; 3],
    lacks_draft: bool,
    surprised: Option<Surprised>,
    asked: Vec<f64>,
    apart: Vec<f64>,
}

/// Room for one position at a time.
#[derive(Default)]
struct Workspace {
    row: Row,
    logits: Vec<f64>,
    target: Vec<f64>,
    draft: Vec<f64>,
    scan: Scan,
}

/// What is the same for all positions of a log.
struct Task<'a> {
    log: &'a Log,
    temperature: f64,
    lists: Option<Lists>,
    /// Which tokens tell whether the text was drawn from the rows.
    singles: Singles,
    question: Option<&'a Question<'a>>,
    rollouts: Option<&'a Rollouts>,
    /// Positions of the logs before this one.
    before: u64,
}

impl Task<'_> {
    fn span(&self, span: &Span, workspace: &mut Workspace) -> Result<Vec<Read>, TextError> {
        let chunk = self.log.chunk(span)?;
        chunk
            .positions()
            .map(|number| {
                chunk.read(number, &mut workspace.row)?;
                if let Some(rollouts) = self.rollouts {
                    for &index in rollouts.paths_at(number) {
                        rollouts.check_row(index, &workspace.row, self.log)?;
                    }
                }
                self.position(number, workspace)
                    .map_err(|message| position_refused(self.log, number, message))
            })
            .collect()
    }

    fn position(&self, number: usize, workspace: &mut Workspace) -> Result<Read, String> {
        let Workspace {
            scan,
            row,
            logits,
            target,
            draft,
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
        let rule = Softmax {
            temperature: self.temperature / self.log.metadata().applied(),
            ..Softmax::default()
        };
        probabilities(&row.target, row.target_kind, &rule, logits, target)
            .map_err(|error| format!("target: {error}"))?;
        let mut unlisted = match &self.lists {
            Some(lists) => lists.unlisted(row, self.temperature),
            None => [Unlisted::NONE; 2],
        };
        if row.lacks_draft {
            draft.clone_from(&row.draft);
            unlisted[1] = Unlisted::ALL;
        } else {
            probabilities(&row.draft, row.draft_kind, &rule, logits, draft)
                .map_err(|error| format!("draft: {error}"))?;
        }
        let rests = unlisted.map(|one| one.middle());
        let place = if row.token_ids.is_empty() {
            Some(token as usize)
        } else {
            row.token_ids.iter().position(|&id| id == token)
        };
        // What the two rows list of the token.
        let listed = [&*target, &*draft].map(|row| {
            let share = place.map_or(Some(0.0), |place| row.get(place).copied());
            share.filter(|share| !share.is_nan() && place.is_some())
        });
        // Where a log-probability is listed, it is its exponential that loses no digit.
        let logged = &*row;
        let listed_whole = |row: usize| {
            let (entries, kind) = match row {
                0 => (&logged.target, logged.target_kind),
                _ => (&logged.draft, logged.draft_kind),
            };
            let is_whole = kind == RowKind::LogProbabilities
                && self.lists.is_some()
                && rule.temperature == 1.0
                && unlisted[row].is_known()
                && rests[row] > 0.0;
            let entry = place
                .and_then(|place| entries.get(place))
                .filter(|_| is_whole);
            entry
                .filter(|entry| !entry.is_nan())
                .map(|entry| entry.exp())
        };
        let [p, q] = [0, 1].map(|row| {
            if let Some(whole) = listed_whole(row) {
                return whole;
            }
            // All tokens that are not listed count as one.
            listed[row].map_or(rests[row], |share| share * (1.0 - rests[row]))
        });
        if p <= 0.0 {
            return Err(format!(
                "the target gives probability 0 to token {token}, which is logged as drawn from it \
                 at temperature {}; the text is not this target's, or was drawn otherwise",
                self.temperature
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
            false => Moments::new(&row.draft, row.draft_kind, rule.temperature, draft),
        };
        let surprised = Surprised::new(self.singles, row, target, rule.temperature, unlisted[0]);
        let [target_rest, draft_rest] = rests;
        let common: f64 = target
            .iter()
            .zip(draft.iter())
            .filter(|(p, q)| !p.is_nan() && !q.is_nan())
            .map(|(p, q)| (p * (1.0 - target_rest)).min(q * (1.0 - draft_rest)))
            .sum();
        let likeliest = likeliest(self.lists.as_ref(), row);
        let overlap = (common + target_rest.min(draft_rest)).min(1.0);
        let exact_overlap = row
            .overlap
            .or((self.lists.is_none() && !row.lacks_draft).then_some(overlap));
        let rest = match (&self.lists, listed) {
            (None, _) if !row.lacks_draft => Rest::None,
            _ if unlisted
                .iter()
                .all(|one| one.is_known() && one.largest.is_finite())
                && target.iter().chain(draft.iter()).all(|mass| !mass.is_nan()) =>
            {
                Rest::Known {
                    heaviest: heavier(draft, unlisted[1]),
                }
            }
            _ => Rest::Open,
        };
        let (mut asked, mut apart) = (Vec::new(), Vec::new());
        if let Some(question) = self.question {
            let column = place.unwrap_or(target.len());
            let number = self.before + number as u64;
            let listed = target.len();
            if self.lists.is_some() {
                for (row, rest) in [(&mut *target, target_rest), (&mut *draft, draft_rest)] {
                    for mass in row.iter_mut() {
                        *mass = if mass.is_nan() {
                            0.0
                        } else {
                            *mass * (1.0 - rest)
                        };
                    }
                }
                // In proportion, on tokens that are no heavier than they may be.
                let count = pieces(unlisted, self.log.vocabulary().saturating_sub(listed));
                for (row, rest) in [(&mut *target, target_rest), (&mut *draft, draft_rest)] {
                    row.resize(listed + count, rest / count as f64);
                }
                asked = question(scan, Rows { target, draft }, column, number)?;
                target.truncate(listed);
                target.push(target_rest);
                target.resize(listed + count + 1, 0.0);
                draft.insert(listed, 0.0);
                apart = question(scan, Rows { target, draft }, column, number)?;
            } else {
                asked = question(scan, Rows { target, draft }, column, number)?;
            }
        }
        // Lists of which nothing but the text's own token is sure.
        let mut bare = (self.lists.as_ref().and_then(Lists::tops))
            .unwrap_or([1; 2])
            .map(|top| top == 0);
        bare[1] |= row.lacks_draft;
        Ok(Read {
            untold: [
                bare[1] && row.max_q.is_none(),
                bare[1],
                bare.contains(&true) && row.overlap.is_none(),
            ],
            lacks_draft: row.lacks_draft,
            surprised,
            asked,
            apart,
            prompt,
            position,
            place: Place {
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
                p_hit: row.p_hit.or_else(|| match self.lists {
                    None => likeliest.map(|at| target[at]),
                    Some(_) => None,
                }),
                exact_overlap,
                top: (row.max_q).unwrap_or(of_draft.top * (1.0 - draft_rest)),
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
}

/// Room for the rounding of what is compared.
const ROUNDING: f64 = 1e-12;

/// How many listed tokens have more of a row than any token that is not listed, for certain:
/// of two that tie it is not known which comes first.
fn heavier(shares: &[f64], unlisted: Unlisted) -> usize {
    let [_, rest] = unlisted.mass;
    if rest <= 0.0 {
        return usize::MAX;
    }
    let most = (unlisted.largest * (1.0 + ROUNDING)).min((rest + CUT_ROUNDING) / (1.0 - rest));
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

/// Where the draft's likeliest token stands in its row, of equal ones that with the lowest id;
/// `None` where tokens that the row does not list may be as likely.
fn likeliest(lists: Option<&Lists>, row: &Row) -> Option<usize> {
    let own = (0..row.draft.len()).filter(|&place| !row.draft[place].is_nan());
    let best = own.clone().reduce(|best, place| {
        let by_entry = row.draft[place].total_cmp(&row.draft[best]);
        let by_id = row.token_at(best).cmp(&row.token_at(place));
        if by_entry.then(by_id).is_gt() {
            place
        } else {
            best
        }
    })?;
    let Some(lists) = lists else {
        return Some(best);
    };
    let listed = own.clone().count();
    if listed >= lists.vocabulary() {
        return Some(best);
    }
    // A list of one may be the text's own token.
    let both = row.draft.len() == listed;
    let top = match lists.tops() {
        Some([_, draft]) => draft,
        None if both => listed / 2,
        None => listed - 1,
    };
    let equal = own
        .filter(|&place| row.draft[place] == row.draft[best])
        .count();
    (top > 0 && (equal == 1 || equal < top)).then_some(best)
}

/// The entropy of a row by that of its listed tokens' shares, with a mass that is not listed
/// spread evenly over so many tokens.
fn entropy(listed: &Moments, rest: f64, spread: f64) -> f64 {
    let kept = 1.0 - rest;
    let of_rest = if rest > 0.0 {
        -rest * (rest / spread).ln()
    } else {
        0.0
    };
    let of_listed = if kept > 0.0 {
        kept * (listed.mean - kept.ln())
    } else {
        0.0
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
        let moments = Moments::new(&logits, RowKind::Logits, 1.0, &probabilities);
        assert!((entropy(&moments, 0.0, 1.0) + 1.5 * half).abs() < 1e-15);
        // Half of the mass is not listed: as two tokens of 1/4 each.
        let moments = Moments::new(&[0.0, 0.0], RowKind::Logits, 1.0, &[0.5, 0.5]);
        assert!((entropy(&moments, 0.5, 2.0) - 4.0f64.ln()).abs() < 1e-15);
    }
}
