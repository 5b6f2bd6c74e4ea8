//! Texts of logs, with what the identities need of each position.

use super::ReplayError;
use super::asked::Answers;
use super::parts::Parts;
use super::position::{Rest, TextPosition, ahead};
use super::rollouts::{RolledOut, RolloutKind, RolloutList};
use super::rows::{Question, Read, ServedRows, Task, Workspace, in_proportion, most_unlisted};
use super::spill::{Piece, Spill};
use specgap_base::side_by_side;
use specgap_log::log::{Groups, Log, Rollouts, Span};
use specgap_measure::{Singles, Surprise, Surprises};
use specgap_number::distribution::Rows;
use specgap_row::Unlisted;
use specgap_sampling::{Cuts, Lists, Model};
use specgap_statistics::{Clustered, Estimate};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Positions that one task takes: of rows, and of lists that are this much shorter as many more.
const SPAN: usize = 16;
const LISTED: usize = 256;

/// Positions that are held in memory where texts may go to a file, or outcomes of prompts: some 65 MB.
pub(super) const HELD: usize = 1 << 18;

/// A text from its first token on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    /// The prompt that it continues, by its number among all prompts.
    pub cluster: usize,
    /// Its positions.
    pub places: Vec<TextPosition>,
    /// q/p at its tokens.
    pub ratios: Vec<f64>,
    /// What the draft wrote on its own behind some of its starts.
    pub rollouts: Vec<RolledOut>,
    /// One over the probability that a rollout starts at a position, and over how many start
    /// together.
    pub spacing: f64,
    /// Where the draft's rows depend on where a round begins: for each start what it drafts from
    /// there, first, second, and so on. Empty where `places` says all.
    pub by_start: Vec<Vec<TextPosition>>,
    /// What else was asked of the rows at depth 2, 3, and so on, as `asked` and `apart`.
    pub(super) deeper: Vec<[Vec<Answers>; 2]>,
    /// The number of each position among those of all logs; texts may lie side by side.
    pub(super) numbers: Vec<usize>,
    /// What else was asked of its rows, position by position.
    pub(super) asked: Vec<Answers>,
    /// The same where no token of the rest has both p and q: as many, or none.
    pub(super) apart: Vec<Answers>,
    /// Stretches before these positions that are not in memory.
    pub(super) pieces: Vec<Piece>,
}

impl Text {
    /// How many it has.
    pub(super) fn tokens(&self) -> usize {
        let away = self.pieces.iter().map(|piece| piece.tokens);
        self.places.len() + away.sum::<usize>()
    }

    /// Takes its positions out of memory.
    fn put_away(&mut self, spill: &Spill) -> io::Result<()> {
        self.pieces.push(spill.put(&self.places, &self.numbers)?);
        (self.places, self.ratios, self.numbers) = Default::default();
        Ok(())
    }

    /// It with all of its positions. Of a text that cannot be read there are none, and
    /// [`Spill::check`] tells.
    fn whole(&self, spill: &Spill) -> Cow<'_, Self> {
        if self.pieces.is_empty() {
            return Cow::Borrowed(self);
        }
        let (mut places, mut numbers) = (Vec::with_capacity(self.tokens()), Vec::new());
        let mut pieces = self.pieces.iter();
        let read = pieces.try_for_each(|piece| spill.get(piece, &mut places, &mut numbers));
        match spill.done(read) {
            Some(()) => {
                places.extend_from_slice(&self.places);
                numbers.extend_from_slice(&self.numbers);
            }
            None => (places, numbers) = Default::default(),
        }
        Cow::Owned(Self {
            ratios: places.iter().map(|place| place.ratio).collect(),
            places,
            numbers,
            pieces: Vec::new(),
            ..self.clone()
        })
    }

    /// All positions that rounds may meet, at every depth.
    fn met(&self) -> impl Iterator<Item = &TextPosition> {
        let flat = self.places.iter().filter(|_| self.by_start.is_empty());
        flat.chain(self.by_start.iter().flatten())
    }

    /// The positions that a round meets which begins behind `start` tokens, as the draft saw them
    /// from there.
    pub fn ahead(&self, start: usize) -> &[TextPosition] {
        ahead(&self.places, &self.by_start, start)
    }
}

/// What is asked of logs beside their texts.
#[derive(Default)]
pub(super) struct Reading<'a> {
    /// What is kept of the draft's row, if not what is kept of the target's.
    pub(super) cuts: Option<Cuts>,
    /// What else the rows are asked.
    pub(super) question: Option<&'a Question<'a>>,
    /// Whether rollouts are read.
    pub(super) rollouts: bool,
    /// Whose rows are read.
    pub(super) parts: Parts,
    /// How many positions stay in memory, where the others may go to a file: of texts alone.
    pub(super) held: Option<usize>,
}

impl<'a> Reading<'a> {
    /// Asks rows a question, of the text alone.
    pub(super) fn asking(question: &'a Question<'a>) -> Self {
        Self {
            question: Some(question),
            ..Self::default()
        }
    }
}

/// What is read of a span, at every depth.
type VisitSpan<'a> = dyn FnMut(Vec<Vec<Read>>) -> Result<(), ReplayError> + 'a;

/// Both rows, the text's token, and where they leave tokens out how many they list and the most q that
/// another token has.
type VisitRows<'a> = dyn FnMut(Rows<'_>, usize, Option<(usize, f64)>) + 'a;

/// Reads all spans of a log, each at every depth.
type SpansRead<'a> =
    dyn Fn(&Task<'_>, &[Task<'_>], &mut VisitSpan<'_>) -> Result<(), ReplayError> + 'a;

/// Where the texts of a log are that is being read.
#[derive(Default)]
struct Reader {
    prompts: BTreeMap<i64, usize>,
    /// The text that each prompt is in, and its next index.
    open: BTreeMap<usize, (usize, i64)>,
}

/// What is known of all positions that rounds may meet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) met: usize,
    /// Whether it is not known if the token is the draft's likeliest: at so many.
    pub(super) without_hit: usize,
    /// Tokens of texts that rows do not list.
    unlisted: usize,
    /// What rows do not list leaves a ratio open, q at a token, or what one noise drafts; and rows list
    /// some tokens only.
    is_open: bool,
    draft_is_open: bool,
    pub(super) noise_is_open: bool,
    is_cut: bool,
    /// The target's mass on what the draft can draw is told somewhere.
    pub(super) covers: bool,
    /// The overlap, or p of the likeliest token, is not known at some position.
    pub(super) lacks_overlap: bool,
    pub(super) lacks_p_hit: bool,
    /// A head says nothing of some place but the last of a text, which is never drafted.
    pub(super) lacks_head: [bool; 2],
}

impl Seen {
    fn of(text: &Text) -> Self {
        let mut seen = Self::default();
        for place in text.met() {
            seen.met += 1;
            seen.without_hit += usize::from(place.hit.is_none());
            seen.is_open |= place.ratio_bounds[0] < place.ratio_bounds[1];
            seen.draft_is_open |= place.draft_bounds[0] < place.draft_bounds[1];
            seen.noise_is_open |= place.one_noise[1] < place.one_noise[2];
            seen.is_cut |= place.rest != Rest::None;
            seen.covers |= place.covered.is_some();
            seen.lacks_overlap |= place.exact_overlap.is_none();
            seen.lacks_p_hit |= place.p_hit.is_none();
        }
        seen.unlisted = text.places.iter().filter(|place| !place.listed).count();
        for place in text.places.iter().rev().skip(1) {
            seen.lacks_head[0] |= place.head_acceptance.is_none();
            seen.lacks_head[1] |= place.head_overlap.is_none();
        }
        seen
    }

    fn and(self, other: Self) -> Self {
        Self {
            met: self.met + other.met,
            without_hit: self.without_hit + other.without_hit,
            unlisted: self.unlisted + other.unlisted,
            is_open: self.is_open | other.is_open,
            draft_is_open: self.draft_is_open | other.draft_is_open,
            noise_is_open: self.noise_is_open | other.noise_is_open,
            is_cut: self.is_cut | other.is_cut,
            covers: self.covers | other.covers,
            lacks_overlap: self.lacks_overlap | other.lacks_overlap,
            lacks_p_hit: self.lacks_p_hit | other.lacks_p_hit,
            lacks_head: [0, 1].map(|at| self.lacks_head[at] | other.lacks_head[at]),
        }
    }
}

/// All texts of some logs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts {
    /// The temperature at which they were drawn.
    pub temperature: f64,
    /// What was kept of the target's row before a token was drawn from it, and of the draft's where
    /// nothing else is asked for.
    pub(super) served: Cuts,
    /// What was kept of the draft's row before a token was drafted from it.
    cuts: Cuts,
    /// The texts, by prompt.
    pub texts: Vec<Text>,
    /// How many prompts there are.
    pub clusters: usize,
    /// Where those are that are not in memory.
    pub(super) spill: Arc<Spill>,
    /// What is known of all positions.
    pub(super) seen: Seen,
    /// How many logs were read.
    logs: usize,
    /// What the rollouts of each log tell; empty unless all logs have some.
    pub rollouts: Vec<RolloutKind>,
    /// How surprising their tokens are.
    surprises: Surprises,
    /// Positions without a row of the draft.
    lacking: usize,
    /// K, where the draft has a row for each start and depth.
    depths: Option<usize>,
    /// Whether the draft's largest probability, its entropy, and the overlap are not told at
    /// some position.
    untold: [bool; 3],
    /// The names of groups that logs give their prompts.
    pub(super) groups: Vec<String>,
    /// The group of each prompt, by its place among these.
    pub(super) group_of: Vec<Option<usize>>,
}

impl Texts {
    /// Reads the texts of some logs. `temperature`, if given, has to be the one at which
    /// they were drawn; `progress` is told of positions as they are done. Rows are cut as the text
    /// was sampled, which the log says; those that list all that can be drawn are not cut again.
    ///
    /// # Errors
    /// Logs without sampled tokens, prompts or places in the text; texts drawn at another
    /// temperature or with other cuts, or at temperature 0; lists that are too short for the cut;
    /// texts with gaps;
    /// tokens to which the target gives no probability; rows that are refused; rollouts that
    /// do not fit their positions, or of another temperature. Each names the log, and the
    /// position where there is one, and says what to do.
    ///
    /// # Complexity
    /// O(N V) time; memory grows by some 250 bytes a position.
    pub fn read(
        logs: &[Log],
        temperature: Option<f64>,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Self, ReplayError> {
        let asked = Reading {
            rollouts: true,
            ..Reading::default()
        };
        Self::read_with(logs, temperature, &asked, progress)
    }

    /// The same, with all that is asked beside.
    pub(super) fn read_with(
        logs: &[Log],
        temperature: Option<f64>,
        asked: &Reading<'_>,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Self, ReplayError> {
        let Reading {
            cuts,
            question,
            rollouts,
            parts,
            held,
        } = asked;
        let (cuts, rollouts, question) = (*cuts, *rollouts, *question);
        let mut all = Self::default();
        // Everything that can be refused is, before the long part.
        for (index, log) in logs.iter().enumerate() {
            let refused = |message: String| Err(ReplayError::of_log(log, message));
            let (drawn, served) = drawn_at(log, temperature)?;
            if index > 0 && served != all.served {
                return refused(format!(
                    "its text was drawn {}, and that of the log before it {}; replay them one by one",
                    kept_in_words(served, drawn),
                    kept_in_words(all.served, all.temperature)
                ));
            }
            all.served = served;
            if index > 0 && drawn != all.temperature {
                return refused(format!(
                    "its text was drawn at temperature {drawn}, and that of the log before it at \
                     {}; replay them one by one",
                    all.temperature
                ));
            }
            all.temperature = drawn;
            if index > 0 && all.depths() != log.depths() {
                return refused(format!(
                    "has rows of the draft at {} depths, and the log before it at {}; replay them \
                     one by one",
                    log.depths(),
                    all.depths()
                ));
            }
            all.depths = Some(log.depths()).filter(|&depths| depths > 1);
            one_pair(&logs[..index], log)?;
            log.refuse_texts()?;
            let lists = lists_of(log)?;
            if question.is_some() && lists.and_then(|lists| lists.tops()) == Some([0; 2]) {
                return refused(
                    "lists the text's own tokens alone, which tell of one chain of drafts \
                     (specgap length) and of nothing beside it; log rows, or lists of the most \
                     probable tokens"
                        .to_owned(),
                );
            }
            if question.is_some() && log.may_lack_drafts() {
                return refused(
                    "has positions without a row of the draft (draft_row is 0), as recorders leave \
                     behind drafts that were all accepted; they bound a chain of drafts (specgap \
                     length), and nothing beside it: score the texts that came out with both models \
                     (docs/guide/engines.md)"
                        .to_owned(),
                );
            }
            log.refuse_other_forms()?;
            log.refuse_masked_lists()?;
        }
        all.cuts = cuts.unwrap_or(all.served);
        // They were drawn from whole rows.
        let rollouts = rollouts && all.served.keep_all();
        let with_rollouts = rollouts && logs.iter().all(Log::has_rollouts);
        let mut logs_of_paths = logs.iter().filter(|log| log.has_rollouts());
        let is_text_alone = question.is_none() && logs_of_paths.next().is_none();
        let held = held.filter(|_| is_text_alone && !all.is_by_depth());
        for log in logs {
            let rollouts = if with_rollouts { log.rollouts()? } else { None };
            if let Some(rollouts) = &rollouts {
                let kind = RolloutKind::new(log, rollouts, all.temperature)?;
                all.rollouts.push(kind);
            }
            let number = all.logs;
            let reading = |task: &Task<'_>, deeper: &[Task<'_>], visit: &mut VisitSpan<'_>| {
                let work = |span: &Span| {
                    // Who watches may stop the work before it.
                    progress(0);
                    let result = task.span(deeper, span, &mut Workspace::default());
                    progress(span.positions().len());
                    result
                };
                let shorter = (LISTED / log.listed().max(1)).clamp(1, SPAN);
                parts.each(number, log, SPAN * shorter, work, visit)
            };
            all.add(log, (question, held), rollouts.as_ref(), &reading)?;
            all.logs += 1;
        }
        parts.end()?;
        all.see();
        Ok(all)
    }

    /// Reads the rows of a text again, in order; tokens that they leave out are then behind the others in
    /// proportion.
    pub(super) fn rows_along(
        &self,
        logs: &[Log],
        text: &Text,
        visit: &mut VisitRows<'_>,
    ) -> Result<(), ReplayError> {
        let Workspace {
            mut row,
            mut target,
            mut draft,
            mut room,
            ..
        } = Workspace::default();
        let lists: Vec<_> = logs.iter().map(lists_of).collect::<Result<_, _>>()?;
        for &number in &text.numbers {
            let mut here = number;
            let Some((log, lists)) = logs.iter().zip(&lists).find(|(log, _)| {
                let inside = here < log.positions();
                here -= if inside { 0 } else { log.positions() };
                inside
            }) else {
                continue;
            };
            log.read(here, &mut row)?;
            log.mask_target(here, &mut row)?;
            let rows = ServedRows {
                lists: lists.as_ref(),
                log,
                temperature: self.temperature,
                cuts: [self.served, self.cuts],
            };
            let mut fill = |model, out| rows.fill(model, &row, &mut room, out);
            let unlisted = fill(Model::Target, &mut target)
                .and_then(|one| Ok([one, fill(Model::Draft, &mut draft)?]))
                .map_err(|message| ReplayError::of_position(log, here, message))?;
            let most = |rest: Unlisted| most_unlisted(rest) * (1.0 - rest.middle());
            let is_cut = unlisted != [Unlisted::NONE; 2];
            let listed = is_cut.then(|| (draft.len(), most(unlisted[1])));
            if let Some((count, _)) = listed {
                let others = log.vocabulary().saturating_sub(count);
                in_proportion([&mut target, &mut draft], unlisted, others);
            }
            let place = |token: i64| match row.token_ids.is_empty() {
                true => usize::try_from(token).ok(),
                false => (row.token_ids.iter())
                    .position(|&id| i64::from(id) == token)
                    .or(Some(row.token_ids.len())),
            };
            let token = row.token.and_then(place);
            let rows = Rows {
                target: &target,
                draft: &draft,
            };
            visit(rows, token.unwrap_or(usize::MAX), listed);
        }
        Ok(())
    }

    /// K, if the draft's rows depend on where a round begins: what a round drafts at most. 1 where
    /// they depend on the text alone.
    pub fn depths(&self) -> usize {
        self.depths.unwrap_or(1)
    }

    /// The same, or another number where the draft's rows depend on the text alone.
    pub(super) fn depths_or(&self, other: usize) -> usize {
        self.depths.unwrap_or(other)
    }

    /// Returns whether a round of so many drafts is told of.
    pub(super) fn reach(&self, drafts: f64) -> bool {
        self.depths.is_none_or(|most| drafts <= most as f64)
    }

    /// All positions that rounds may meet, at every depth, of texts that are in memory.
    pub(super) fn met(&self) -> impl Iterator<Item = &TextPosition> {
        self.texts.iter().flat_map(Text::met)
    }

    /// What each text gives, whole, in their order.
    pub(super) fn each<T: Send>(&self, of: impl Fn(&Text) -> T + Sync) -> Vec<T> {
        self.each_of(0..self.texts.len(), of)
    }

    /// The same of some of them.
    pub(super) fn each_of<T: Send>(
        &self,
        range: Range<usize>,
        of: impl Fn(&Text) -> T + Sync,
    ) -> Vec<T> {
        side_by_side::each(&self.texts[range], |text| of(&self.whole(text)))
    }

    /// A text with all of its positions.
    pub(super) fn whole<'a>(&self, text: &'a Text) -> Cow<'a, Text> {
        text.whole(&self.spill)
    }

    /// Refuses what was made of numbers that could not be written, or read again.
    pub(super) fn check(&self) -> Result<(), ReplayError> {
        Ok(self.spill.check()?)
    }

    /// Goes through all positions once.
    fn see(&mut self) {
        let each = self.each(Seen::of);
        self.seen = each.into_iter().fold(Seen::default(), Seen::and);
    }

    /// Returns whether all rows that rounds may meet list all tokens.
    pub(super) fn are_whole(&self) -> bool {
        !self.seen.is_cut
    }

    /// Returns whether the draft's rows depend on where a round begins.
    pub fn is_by_depth(&self) -> bool {
        self.depths.is_some()
    }

    /// Returns whether the rollouts of all logs have a list.
    pub(super) fn rollouts_have(&self, list: RolloutList) -> bool {
        !self.rollouts.is_empty() && self.rollouts.iter().all(|kind| kind.has(list))
    }

    /// The most tokens of a rollout, if there are any.
    pub(super) fn rollout_tokens(&self) -> Option<usize> {
        self.rollouts.iter().map(|kind| kind.tokens).min()
    }

    /// Returns what each text gives, in their order, added up by prompt.
    pub(super) fn by_prompt<T: Clone + Default, F>(
        &self,
        each: impl IntoIterator<Item = F>,
        add: impl Fn(&mut T, F),
    ) -> Vec<T> {
        let mut sums = vec![T::default(); self.clusters];
        for (text, one) in self.texts.iter().zip(each) {
            add(&mut sums[text.cluster], one);
        }
        sums
    }

    /// The same of a number that each text gives.
    pub(super) fn sums(&self, each: impl IntoIterator<Item = f64>) -> Vec<f64> {
        self.by_prompt(each, |sum, one| *sum += one)
    }

    /// Tokens of each prompt.
    pub(super) fn tokens(&self) -> Vec<f64> {
        self.sums(self.texts.iter().map(|text| text.tokens() as f64))
    }

    /// Tokens that their rows do not list, where there are rows.
    pub(super) fn unlisted(&self) -> usize {
        self.seen.unlisted - self.lacking
    }

    /// Positions at which the log has no row of the draft.
    pub(super) fn lacking(&self) -> usize {
        self.lacking
    }

    /// Returns whether the same leaves q open at any token.
    pub(super) fn draft_is_open(&self) -> bool {
        self.seen.draft_is_open
    }

    /// Returns whether the rows tell what a policy decides on that needs this list of rollouts:
    /// more than what they give the text's own tokens.
    pub(super) fn rows_tell(&self, list: Option<RolloutList>) -> bool {
        let [top, entropy, overlap] = self.untold;
        match list {
            Some(RolloutList::Top) => !top,
            Some(RolloutList::Entropy) => !entropy,
            Some(RolloutList::Overlap) => !overlap,
            _ => true,
        }
    }

    /// Returns whether what rows do not list leaves any ratio open.
    pub(super) fn are_open(&self) -> bool {
        self.seen.is_open
    }

    /// Returns how often a drafted token of the text is accepted by token verification, min(1, q/p)
    /// on average, with bounds where rows leave q/p open.
    pub(super) fn acceptance(&self) -> Estimate {
        let tokens = self.tokens();
        let of = |ratio: &(dyn Fn(&TextPosition) -> f64 + Sync)| {
            let sum = |text: &Text| text.places.iter().map(|place| ratio(place).min(1.0)).sum();
            let sums = self.sums(self.each(sum));
            Clustered::new(sums.into_iter().zip(tokens.iter().copied())).estimate()
        };
        let end = |end: usize| of(&|place| place.ratio_bounds[end]).mean;
        Estimate {
            truncation: self.are_open().then(|| [end(0), end(1)]),
            ..of(&|place| place.ratio)
        }
    }

    /// Returns whether rows leave it more open than the sample does: nothing is chosen by the
    /// middles of such bounds.
    pub(super) fn are_wide(&self) -> bool {
        self.lacking > 0 || self.acceptance().open().is_some()
    }

    /// Returns whether they look drawn from their rows.
    pub(super) fn surprise(&self) -> Surprise {
        self.surprises.surprise()
    }

    /// N, over all texts.
    pub fn positions(&self) -> usize {
        self.texts.iter().map(Text::tokens).sum()
    }

    /// Adds the texts of a log.
    fn add(
        &mut self,
        log: &Log,
        (question, most): (Option<&Question<'_>>, Option<usize>),
        rollouts: Option<&Rollouts>,
        reading: &SpansRead<'_>,
    ) -> Result<(), ReplayError> {
        let before = self.positions();
        let lists = lists_of(log)?;
        let grouped = log.groups()?;
        let task = Task {
            singles: Singles::new(log, lists.as_ref())?,
            log,
            question,
            rollouts,
            before: before as u64,
            temperature: self.temperature,
            cuts: [self.served, self.cuts],
            lists,
        };
        let mut views = Vec::<Log>::new();
        for depth in 2..=log.depths() {
            // Each of the one before, which knows where texts go on.
            views.push(views.last().unwrap_or(log).at_depth(depth)?);
        }
        let deeper: Vec<Task<'_>> = views.iter().map(|view| task.at(view)).collect();
        let first = self.texts.len();
        let spacing = match (rollouts, self.rollouts.last()) {
            (Some(_), Some(kind)) => kind.spacing(),
            _ => 1.0,
        };
        let (mut reader, mut number) = (Reader::default(), 0);
        let mut held: usize = self.texts.iter().map(|text| text.places.len()).sum();
        let mut further: Vec<Vec<Read>> = deeper.iter().map(|_| Vec::new()).collect();
        reading(&task, &deeper, &mut |span| {
            let mut depths = span.into_iter();
            for read in depths.next().unwrap_or_default() {
                self.take(&task, &mut reader, grouped.as_ref(), spacing, number, read)?;
                number += 1;
                held += 1;
            }
            if most.is_some_and(|most| held > most) {
                self.put_away()?;
                held = 0;
            }
            for (all, one) in further.iter_mut().zip(depths) {
                all.extend(one);
            }
            Ok(())
        })?;
        for text in self.texts.iter_mut().skip(first) {
            text.add_depths(&further, before);
        }
        Ok(())
    }

    /// Takes all texts out of memory.
    fn put_away(&mut self) -> Result<(), ReplayError> {
        let mut held = (self.texts.iter_mut()).filter(|text| !text.places.is_empty());
        Ok(held.try_for_each(|text| text.put_away(&self.spill))?)
    }

    /// Puts a position of a log, by its number there, behind the others of its text.
    fn take(
        &mut self,
        task: &Task<'_>,
        reader: &mut Reader,
        grouped: Option<&Groups>,
        spacing: f64,
        number: usize,
        read: Read,
    ) -> Result<(), ReplayError> {
        let (log, rollouts) = (task.log, task.rollouts);
        let Reader { prompts, open } = reader;
        let next = self.clusters;
        let cluster = *prompts.entry(read.prompt).or_insert(next);
        self.clusters = self.clusters.max(cluster + 1);
        if let Some(grouped) = grouped {
            self.take_group(log, grouped, (number, read.prompt), cluster)?;
        }
        let wanted = open.get(&cluster).map_or(0, |&(_, next)| next);
        if read.position != wanted && read.position != 0 {
            return Err(ReplayError::of_position(
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
            let start = text.tokens();
            let here = rollouts.map_or(&[][..], |all| all.paths_at(number));
            let here = here.iter().filter_map(|&index| rollouts?.get(index));
            (text.rollouts).extend(here.map(|one| RolledOut::new(start, &one)));
            for (untold, here) in self.untold.iter_mut().zip(read.untold) {
                *untold |= here;
            }
            (read.surprised.iter()).for_each(|one| self.surprises.add(one));
            self.lacking += usize::from(read.lacks_draft);
            text.ratios.push(read.place.ratio);
            text.places.push(read.place);
            text.numbers.push(task.before as usize + number);
            text.asked.extend(read.asked);
            text.apart.extend(read.apart);
            *next += 1;
        }
        Ok(())
    }
}

impl Texts {
    /// Takes the group of a position's prompt, which is the same at all of its positions.
    fn take_group(
        &mut self,
        log: &Log,
        grouped: &Groups,
        (number, prompt): (usize, i64),
        cluster: usize,
    ) -> Result<(), ReplayError> {
        let place = grouped.of.get(number).copied().flatten();
        let name = place.and_then(|place| grouped.names.get(place));
        let known = self.group_of.get(cluster).copied();
        let before = known.map(|group| group.and_then(|group| self.groups.get(group)));
        match before {
            Some(before) if before != name => {
                let word = |name: Option<&String>| {
                    name.map_or_else(|| "none".to_owned(), |name| format!("{name:?}"))
                };
                Err(ReplayError::of_position(
                    log,
                    number,
                    format!(
                        "its group is {}, and {} at an earlier position of prompt {prompt}; a prompt \
                         is of one group: give the tensor group one number for all of its positions",
                        word(name),
                        word(before)
                    ),
                ))
            }
            Some(_) => Ok(()),
            None => {
                let group = name.map(|name| {
                    let known = self.groups.iter().position(|other| other == name);
                    known.unwrap_or_else(|| {
                        self.groups.push(name.clone());
                        self.groups.len() - 1
                    })
                });
                // Prompts of logs without groups are of none.
                self.group_of.resize(cluster, None);
                self.group_of.push(group);
                Ok(())
            }
        }
    }

    /// The texts of some prompts in an order that depends on what they are alone: not on which log
    /// they come from, nor where they stand in it. Without what was asked of their rows, and without
    /// rollouts.
    pub(super) fn sorted(&self, keep: &dyn Fn(Option<usize>) -> bool) -> Self {
        let of = |cluster: usize| self.group_of.get(cluster).copied().flatten();
        let mut prompts: BTreeMap<usize, Vec<(u64, &Text)>> = BTreeMap::new();
        let digests = self.each(Text::digest).into_iter().zip(&self.texts);
        for (digest, text) in digests.filter(|(_, text)| keep(of(text.cluster))) {
            let own = prompts.entry(text.cluster).or_default();
            own.push((digest, text));
        }
        let mut prompts: Vec<(usize, Vec<(u64, &Text)>)> = prompts.into_iter().collect();
        for (_, texts) in &mut prompts {
            texts.sort_by_key(|&(digest, _)| digest);
        }
        let digests = |texts: &[(u64, &Text)]| texts.iter().map(|one| one.0).collect::<Vec<_>>();
        prompts.sort_by_cached_key(|(_, texts)| digests(texts));
        let group_of = prompts.iter().map(|&(cluster, _)| of(cluster)).collect();
        let clusters = prompts.len();
        let texts = (prompts.into_iter())
            .enumerate()
            .flat_map(|(cluster, (_, texts))| {
                texts.into_iter().map(move |(_, text)| Text {
                    cluster,
                    places: text.places.clone(),
                    ratios: text.ratios.clone(),
                    by_start: text.by_start.clone(),
                    spacing: text.spacing,
                    pieces: text.pieces.clone(),
                    ..Text::default()
                })
            });
        let mut sorted = Self {
            texts: texts.collect(),
            clusters,
            spill: self.spill.clone(),
            temperature: self.temperature,
            served: self.served,
            cuts: self.cuts,
            depths: self.depths,
            untold: self.untold,
            groups: self.groups.clone(),
            group_of,
            ..Self::default()
        };
        sorted.see();
        sorted
    }
}

impl Text {
    /// A hash of what is known of its tokens (FNV-1a).
    fn digest(&self) -> u64 {
        let flat = self.places.iter();
        let met = flat.chain(self.by_start.iter().flatten());
        let numbers = met.flat_map(|place| [place.ratio.to_bits(), place.draft.to_bits()]);
        let bytes = numbers.flat_map(u64::to_le_bytes);
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Returns what else was asked of the row that a round has `depth` tokens behind its start.
    pub(super) fn asked_at(&self, start: usize, depth: usize) -> Option<&Answers> {
        let asked = match depth.checked_sub(1) {
            Some(below) if !self.by_start.is_empty() => {
                self.deeper.get(below).map(|[asked, _]| asked)
            }
            _ => Some(&self.asked),
        };
        asked?.get(start + depth)
    }

    /// Adds what rounds draft behind their first token, `deeper` by depth from 2 on and by the
    /// position's number behind `before`.
    fn add_depths(&mut self, deeper: &[Vec<Read>], before: usize) {
        if deeper.is_empty() {
            return;
        }
        let here = |number: &usize| number - before;
        self.by_start = (0..self.numbers.len())
            .map(|start| {
                let first = self.places.get(start).copied();
                let numbers = self.numbers.iter().skip(start + 1).map(here);
                let more = deeper.iter().zip(numbers);
                let more = more.filter_map(|(reads, number)| Some(reads.get(number)?.place));
                first.into_iter().chain(more).collect()
            })
            .collect();
        let of = |first: &[Answers], of: fn(&Read) -> &Option<Answers>, reads: &[Read]| {
            let numbers = self.numbers.iter().map(here);
            let each = first.iter().zip(numbers).map(|(first, number)| {
                let own = reads.get(number).and_then(|read| of(read).clone());
                // Where no round drafts so far nothing was asked.
                own.unwrap_or_else(|| first.nil())
            });
            each.collect()
        };
        let answers = |reads: &Vec<Read>| {
            [
                of(&self.asked, |read| &read.asked, reads),
                of(&self.apart, |read| &read.apart, reads),
            ]
        };
        self.deeper = deeper.iter().map(answers).collect();
    }
}

/// Refuses a log of other models than those before it, and one that is there already.
fn one_pair(before: &[Log], log: &Log) -> Result<(), ReplayError> {
    let (Some(first), metadata) = (before.first(), log.metadata()) else {
        return Ok(());
    };
    let refused = |message: String| Err(ReplayError::of_log(log, message));
    let known = first.metadata();
    if (&known.target, &known.draft, &known.tokenizer)
        != (&metadata.target, &metadata.draft, &metadata.tokenizer)
        || first.vocabulary() != log.vocabulary()
    {
        return refused(format!(
            "is of other models than {}: names or hashes of target, draft or tokenizer, or V \
             differ; texts of one pair alone count together, so replay them one by one",
            first.path().display()
        ));
    }
    let own = log.identity()?.digest;
    for other in before {
        if other.identity()?.digest == own {
            return refused(format!(
                "has the same rows as {}; its texts would count twice, name it once",
                other.path().display()
            ));
        }
    }
    Ok(())
}

fn kept_in_words(cuts: Cuts, temperature: f64) -> String {
    match cuts.keep_all() {
        true => "from whole rows".to_owned(),
        false => format!("with {}", cuts.in_words(&[temperature])),
    }
}

/// The temperature at which a log's text was drawn, and what was kept of the target's rows that are
/// logged.
fn drawn_at(log: &Log, asked: Option<f64>) -> Result<(f64, Cuts), ReplayError> {
    let refused = |message: String| Err(ReplayError::of_log(log, message));
    if let Some(asked) = asked.filter(|t| !(t.is_finite() && *t > 0.0)) {
        return refused(format!(
            "⟨temperature {asked}⟩ is out of range; it is finite and above 0"
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
            Some(asked) => Ok((asked, Cuts::default())),
            None => refused(
                "does not say how its tokens were drawn; if they were drawn from the whole target \
                 at temperature T, say so with ⟨temperature T⟩"
                    .to_owned(),
            ),
        };
    };
    let drawn = sampling.temperature;
    if drawn <= 0.0 {
        return refused(
            "its text was drawn at temperature 0, the most probable token always; acceptance by \
             sampling needs text drawn at a temperature above 0: capture with ⟨temperature 1⟩"
                .to_owned(),
        );
    }
    match asked {
        Some(asked) if asked != drawn => refused(format!(
            "its text was drawn at temperature {drawn}, and ⟨temperature⟩ asks for {asked}; every \
             identity needs text drawn at the temperature it is about: capture with \
             ⟨temperature {asked}⟩"
        )),
        _ => Ok((drawn, Cuts::of_text(log))),
    }
}

/// Returns what the log's rows leave out; `None` if they are complete.
fn lists_of(log: &Log) -> Result<Option<Lists>, ReplayError> {
    // The message names the log.
    Lists::new(log).map_err(ReplayError::Settings)
}
