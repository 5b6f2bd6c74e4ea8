//! All numbers of one position.

use super::answers::{Answers, find, gap};
use super::metric::{Metric, Place, Redrafted, Temperature};
use super::own_answers;
use super::settings::{Asked, SlowRates, SolvedPlans, is_audited};
use super::surprise::{Singles, Surprised};
use super::{GapError, Settings, truncation};
use specgap_core::scheme::SchemeName;
use specgap_log::log::{Log, Row};
use specgap_number::known::{Kind, Known};
use specgap_row::{CutWorkspace, Listed, Rows, Unlisted, Workspace as RowWorkspace};
use specgap_sampling::{Cuts, Lists, Logged, Model, Room, Serving};
use std::ops::Range;

/// Room for one position at a time; one a thread.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    pub row: Row,
    room: Room,
    pair: Pair,
    pub answers: Answers,
    /// ln of q/p at the sampled token, if asked for.
    pub log_ratio: Option<f64>,
    /// ln of q/p of all tokens together that the row does not list, if the sampled token is one.
    pub unlisted_ratio: Option<f64>,
    /// The sampled token under the row that it was drawn from, if that is known.
    pub surprised: Option<Surprised>,
}

/// What is the same for all positions of a log.
#[derive(Debug)]
pub(super) struct Task<'a> {
    pub log: &'a Log,
    pub settings: &'a Settings,
    /// What is asked of each number of drafts.
    pub asked: Vec<Asked>,
    /// What is asked again with other rows of the draft.
    pub asked_again: Vec<Asked>,
    /// What the log's rows leave out; `None` if they are complete.
    pub lists: Option<Lists>,
    /// The temperature at which the log's tokens were drawn from the whole target.
    pub sampled_at: Option<f64>,
    /// The temperature and the cuts with which the log's tokens were drawn, and which tokens
    /// of its rows tell whether they were.
    pub drawn: Option<(f64, Cuts, Singles)>,
}

impl Task<'_> {
    /// Tells whether tokens were drawn at a temperature and with the cuts that are asked of: rows are then
    /// read as they were drawn from all the same.
    fn is_drawn_as_asked(&self) -> bool {
        self.drawn.is_some_and(|(drawn, cuts, _)| {
            cuts == self.settings.cuts && self.settings.temperatures.contains(&drawn)
        })
    }
}

/// Seeds of neighbouring positions are this far apart.
const SEED_STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Answers everything that is asked of the position in `workspace.row`.
pub(super) fn evaluate(
    task: &Task<'_>,
    number: usize,
    workspace: &mut Workspace,
) -> Result<(), GapError> {
    let refused = |message: String| GapError::Position(task.log.path().to_owned(), number, message);
    let listed = workspace.row.target.len();
    let distinct = |asked: &&Asked| {
        let schemes = (asked.optima.iter().map(|(scheme, _)| scheme))
            .chain(asked.rules.iter().map(|((scheme, _), _)| scheme));
        schemes
            .into_iter()
            .any(|scheme| scheme.draws_distinct_tokens())
    };
    let most = (task.asked.iter().filter(distinct))
        .map(|asked| asked.drafts)
        .max();
    if let Some(most) = most.filter(|&n| n > listed) {
        let (has, more) = match task.log.is_top_heavy() {
            true => ("lists", ", or list more tokens"),
            false => ("the vocabulary has", ""),
        };
        return Err(refused(format!(
            "{has} {listed} tokens, fewer than the {most} distinct drafts that ⟨drafts⟩ asks for; \
             ask for {listed} at most{more}"
        )));
    }
    workspace.answers.clear();
    workspace.log_ratio = None;
    workspace.unlisted_ratio = None;
    workspace.surprised = match task.is_drawn_as_asked() {
        true => None,
        false => surprised(task, workspace),
    };
    for at in 0..task.settings.temperatures.len() {
        at_temperature(task, number, at, workspace).map_err(refused)?;
    }
    match workspace
        .answers
        .iter()
        .find(|(metric, number)| !is_known(**metric, number))
    {
        Some((metric, number)) => Err(refused(format!(
            "internal error: {metric:?} is {number:?}; please report this as a bug"
        ))),
        None => Ok(()),
    }
}

/// Returns whether there is a number, between bounds unless it is about a plan's solve or an own
/// rule.
fn is_known(metric: Metric, number: &Known) -> bool {
    let is_plain = matches!(
        metric,
        Metric::PlanError { .. }
            | Metric::PlanSeconds { .. }
            | Metric::Own { .. }
            | Metric::Redrafted {
                rate: Redrafted::Own(..),
                ..
            }
    );
    let bounds = [number.lower(), number.upper()];
    number.value().is_finite()
        && (bounds.into_iter().all(f64::is_finite) || is_plain && number.kind() == Kind::Float)
}

/// All answers at one of the settings' temperatures.
fn at_temperature(
    task: &Task<'_>,
    number: usize,
    at: usize,
    workspace: &mut Workspace,
) -> Result<(), String> {
    let Some(&degrees) = task.settings.temperatures.get(at) else {
        return Ok(());
    };
    let Workspace {
        row,
        room,
        pair,
        answers,
        log_ratio,
        unlisted_ratio,
        surprised,
    } = workspace;
    let logged = Logged {
        lists: task.lists.as_ref(),
        applied: task.log.metadata().applied(),
        row,
    };
    let (cut, [target, draft]) = pair.fill(logged, degrees, task.settings.cuts, room)?;
    if let Some((drawn, cuts, singles)) = task.drawn
        && (drawn, cuts) == (degrees, task.settings.cuts)
    {
        *surprised = surprise(cuts, singles, drawn, logged, &pair.target, target);
    }
    // What a cut leaves of a list is not known well enough to speak of its unlisted tokens.
    let is_told = task.settings.cuts.keep_all() || [target, draft] == [Unlisted::NONE; 2];
    if task.sampled_at == Some(degrees) && is_told {
        let rests = cut.map_or([0.0, 0.0], |cut| cut.unlisted.map(|one| one.middle()));
        *log_ratio = sampled_ratio(row, &pair.target, &pair.draft, rests);
        *unlisted_ratio = rest_ratio(row, rests);
    }
    let seed = task.settings.seed ^ (number as u64).wrapping_mul(SEED_STRIDE);
    let temperature = Temperature(degrees);
    let audit = is_audited(number, task.log.positions());
    let audit_plans = audit || task.settings.rrs_wo == SlowRates::Enclosed;
    let every_plan = task.settings.plans == SolvedPlans::Every;
    let asked = AskedOf {
        asked: &task.asked,
        audit,
        audit_plans,
        every_plan,
    };
    let whose = (number, seed);
    pair.answer_all(asked, temperature, cut, whose, answers)?;
    for rule in task.settings.draft_rules(degrees) {
        let serving = Serving {
            model: Model::Draft,
            temperature: rule.temperature.0,
            cuts: rule.cuts(),
            own: task.settings.draft_cuts.is_some(),
        };
        let own = logged.fill(serving, room, &mut pair.draft)?;
        // The target's row is what it was.
        let cut = cut.map(|cut| Cut {
            unlisted: [cut.unlisted[0], own],
            ..cut
        });
        let mut again = Answers::new();
        let asked = AskedOf {
            asked: &task.asked_again,
            audit: false,
            // What is asked again is answered the same way.
            ..asked
        };
        pair.answer_all(asked, temperature, cut, whose, &mut again)?;
        let renamed = again
            .into_iter()
            .filter_map(|(metric, number)| Some((metric.redrafted(rule)?, number)));
        answers.extend(renamed);
    }
    Ok(())
}

/// Hands over positions as rules of one's own see them, at the first of the temperatures: the logged
/// row, p and q; no entries of q where the draft has no row.
///
/// # Errors
/// As [`summarise`](super::summarise); rows that list some tokens where others can be drawn.
///
/// # Example
/// ```no_run
/// use specgap_log::log::Log;
/// use specgap_measure::{Settings, shown};
/// let log = Log::open("log".as_ref())?;
/// let mut least = 1.0f64;
/// let settings = Settings::new(&[1.0], &[1], 0)?;
/// shown(&log, &settings, 0..log.positions(), |_, p, q| {
///     let overlap = p.iter().zip(q).map(|(p, q)| p.min(*q)).sum();
///     least = least.min(overlap);
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn shown(
    log: &Log,
    settings: &Settings,
    numbers: Range<usize>,
    mut each: impl FnMut(&Row, &[f64], &[f64]),
) -> Result<(), GapError> {
    log.refuse_texts()?;
    log.refuse_other_forms()?;
    log.refuse_masked_lists()?;
    let lists = Lists::new(log).map_err(GapError::Settings)?;
    let temperature = settings.temperatures.first().copied().unwrap_or(1.0);
    let Workspace {
        row, room, pair, ..
    } = &mut Workspace::default();
    for number in numbers {
        let refused = |message: String| GapError::Position(log.path().to_owned(), number, message);
        log.read(number, row)?;
        let lacks_draft = row.lacks_draft;
        if !lacks_draft {
            log.mask_target(number, row)?;
        }
        let logged = Logged {
            lists: lists.as_ref(),
            applied: log.metadata().applied(),
            row,
        };
        if lacks_draft {
            each(row, &[], &[]);
            continue;
        }
        let (cut, _) = pair
            .fill(logged, temperature, settings.cuts, room)
            .map_err(refused)?;
        if !cut.is_none_or(|cut| cut.is_whole(pair)) {
            return Err(refused(
                "the row lists some tokens only, and others can be drawn; keep no more than is listed \
                 (top-k, top-p or min-p), or log full rows"
                    .to_owned(),
            ));
        }
        each(row, &pair.target, &pair.draft);
    }
    Ok(())
}

/// The sampled token under the target's row as it was drawn from.
fn surprised(task: &Task<'_>, workspace: &mut Workspace) -> Option<Surprised> {
    let (temperature, cuts, singles) = task.drawn?;
    let Workspace {
        row, room, pair, ..
    } = workspace;
    let applied = task.log.metadata().applied();
    let logged = Logged {
        lists: task.lists.as_ref(),
        applied,
        row,
    };
    let serving = Serving {
        model: Model::Target,
        temperature,
        cuts,
        own: false,
    };
    // A list that is too short for the cut tells nothing.
    let unlisted = logged.fill(serving, room, &mut pair.target).ok()?;
    surprise(cuts, singles, temperature, logged, &pair.target, unlisted)
}

/// The same of the target's row as it was drawn from.
fn surprise(
    cuts: Cuts,
    singles: Singles,
    temperature: f64,
    logged: Logged<'_>,
    target: &[f64],
    unlisted: Unlisted,
) -> Option<Surprised> {
    let is_told = cuts.keep_all() || unlisted == Unlisted::NONE;
    let rule = temperature / logged.applied;
    is_told.then(|| Surprised::new(singles, logged.row, target, rule, unlisted))?
}

/// What is asked of a position.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedOf<'a> {
    /// Of each number of drafts.
    pub asked: &'a [Asked],
    /// Whether fast rates are checked against slow ones, and rates that are known by a theorem.
    pub audit: bool,
    /// Whether output laws of plans are measured by a second integral.
    pub audit_plans: bool,
    /// Whether plans are solved for their rates where a theorem says these already.
    pub every_plan: bool,
}

/// What is known of the tokens that a position's rows do not list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub unlisted: [Unlisted; 2],
    /// V.
    pub vocabulary: usize,
    /// The first id that is not listed.
    pub missing: usize,
}

/// The first id that is not among these, which rise.
fn first_missing(ids: &[u32]) -> usize {
    let in_place = |one: &(usize, &u32)| one.0 == *one.1 as usize;
    ids.iter().enumerate().take_while(in_place).count()
}

impl Cut {
    /// Returns whether no token outside of the lists can be drawn.
    fn is_whole(self, pair: &Pair) -> bool {
        let mut listed = pair.target.iter().chain(&pair.draft);
        self.unlisted.iter().all(|one| one.mass[1] <= 0.0) && listed.all(|x| !x.is_nan())
    }
}

/// Listed tokens' shares of p and q at one temperature, and room for what is asked of them.
#[derive(Debug, Default)]
pub(super) struct Pair {
    pub target: Vec<f64>,
    pub draft: Vec<f64>,
    pub workspace: RowWorkspace,
    pub cut_workspace: CutWorkspace,
}

impl Pair {
    /// Takes a logged row as both models are served; what is known of the tokens that it lacks.
    fn fill(
        &mut self,
        logged: Logged<'_>,
        temperature: f64,
        cuts: Cuts,
        room: &mut Room,
    ) -> Result<(Option<Cut>, [Unlisted; 2]), String> {
        let serving = |model: Model| Serving {
            model,
            temperature,
            cuts,
            own: false,
        };
        let unlisted = [
            logged.fill(serving(Model::Target), room, &mut self.target)?,
            logged.fill(serving(Model::Draft), room, &mut self.draft)?,
        ];
        let cut = logged.lists.map(|lists| Cut {
            unlisted,
            vocabulary: lists.vocabulary(),
            missing: first_missing(&logged.row.token_ids),
        });
        Ok((cut, unlisted))
    }

    /// Answers everything that is asked of these rows, which list all tokens, or all but
    /// those that `cut` is about.
    pub(super) fn answer(
        &mut self,
        AskedOf {
            asked,
            audit,
            audit_plans,
            every_plan,
        }: AskedOf<'_>,
        temperature: Temperature,
        cut: Option<Cut>,
        seed: u64,
        answers: &mut Answers,
    ) -> Result<(), String> {
        let Self {
            target,
            draft,
            workspace,
            cut_workspace,
        } = self;
        let most = asked.iter().map(|one| one.drafts).max().unwrap_or(1);
        if let Some(Cut {
            unlisted,
            vocabulary,
            missing,
        }) = cut
        {
            let listed = Listed {
                target,
                draft,
                unlisted,
                vocabulary,
                missing,
            };
            let cut = cut_workspace.load(listed, most);
            if let Some(mut cut) = cut.map_err(|error| error.to_string())? {
                truncation::answer(&mut cut, asked, temperature, answers)?;
                return all_differences(asked, temperature, answers);
            }
        }
        let rows = Rows { target, draft };
        let mut row = workspace
            .load(rows, most)
            .map_err(|error| error.to_string())?;
        // One draft is accepted with the overlap, however it is verified.
        answers.insert(Metric::Overlap { temperature }, row.overlap());
        // What sequential draws take for many drafts serves fewer.
        for one in asked.iter().rev() {
            let drafts = one.drafts;
            let place = Place::new(temperature, drafts);
            for &(scheme, optimum) in &one.optima {
                let best = (optimum.full)(&mut row, drafts).map_err(|error| error.to_string())?;
                answers.insert(Metric::Optimum { place, scheme }, best);
            }
            for &(rule, computed) in &one.rules {
                let known = match computed.by_theorem && !every_plan {
                    true => Some(best(answers, place, rule.0)?),
                    false => None,
                };
                if let (Some(rate), false) = (&known, audit) {
                    answers.insert(Metric::Acceptance { place, rule }, rate.clone());
                    continue;
                }
                let answer = if audit_plans {
                    computed.answer(&mut row, drafts, seed)
                } else {
                    computed.answer_by_the_solve(&mut row, drafts, seed)
                };
                let answer = answer.map_err(|error| error.to_string())?;
                let slow = one
                    .audited
                    .iter()
                    .find(|(known, _)| audit && *known == rule);
                if let Some((_, slow)) = slow {
                    let slow = slow
                        .answer(&mut row, drafts, seed)
                        .map_err(|error| error.to_string())?;
                    let [difference, outside] = audited(&answer.rate, &slow.rate);
                    answers.insert(Metric::AuditDifference { place, rule }, difference);
                    answers.insert(Metric::AuditOutside { place, rule }, outside);
                }
                let rate = match known {
                    Some(known) => {
                        let shortfall = gap(&known, &answer.rate, false);
                        answers.insert(Metric::PlanShortfall { place, rule }, shortfall);
                        known
                    }
                    None => answer.rate,
                };
                answers.insert(Metric::Acceptance { place, rule }, rate);
                if let Some(plan) = answer.plan {
                    for (metric, value) in [
                        (Metric::PlanError { place, rule }, plan.law_l1_error),
                        (Metric::PlanSeconds { place, rule }, Some(plan.seconds)),
                    ] {
                        if let Some(value) = value {
                            answers.insert(metric, Known::float(value));
                        }
                    }
                }
            }
        }
        all_differences(asked, temperature, answers)
    }

    /// Answers the same, and what is asked of laws and rules of the caller's own.
    fn answer_all(
        &mut self,
        asked: AskedOf<'_>,
        temperature: Temperature,
        cut: Option<Cut>,
        whose: (usize, u64),
        answers: &mut Answers,
    ) -> Result<(), String> {
        self.answer(asked, temperature, cut, whose.1, answers)?;
        let whole = cut.is_none_or(|cut| cut.is_whole(self));
        let rows = [self.target.as_slice(), &self.draft];
        own_answers::answer(rows, whole, whose, asked.asked, temperature, answers)
    }
}

/// Returns how far a fast rate is from the middle of a slow one's bounds, between bounds as far
/// apart as these; and 1 if it is outside of them, else 0.
fn audited(fast: &Known, slow: &Known) -> [Known; 2] {
    let outside = fast.value() < slow.lower() || slow.upper() < fast.value();
    let middle = 0.5 * (slow.lower() + slow.upper());
    let difference = (fast.value() - middle).abs();
    let half = 0.5 * slow.width();
    let bounds = (difference - half, difference + half);
    let difference = match slow.sampling() {
        Some(sampling) => Known::monte_carlo(difference, bounds.0, bounds.1, *sampling),
        None => Known::enclosed(difference, bounds.0, bounds.1),
    };
    let outside = if outside { 1.0 } else { 0.0 };
    [difference, Known::enclosed(outside, outside, outside)]
}

/// Adds what follows from optima and acceptances at a temperature.
fn all_differences(
    asked: &[Asked],
    temperature: Temperature,
    answers: &mut Answers,
) -> Result<(), String> {
    for one in asked {
        let place = Place::new(temperature, one.drafts);
        differences(one, place, answers)?;
    }
    Ok(())
}

/// alpha* of drafts of a scheme, which is computed before its rules.
fn best(answers: &Answers, place: Place, scheme: SchemeName) -> Result<Known, String> {
    find(answers, Metric::Optimum { place, scheme })
}

/// Adds what follows from optima and acceptances: gaps and paired differences.
fn differences(asked: &Asked, place: Place, answers: &mut Answers) -> Result<(), String> {
    for &(rule, _) in &asked.rules {
        let scheme = rule.0;
        let best = best(answers, place, scheme)?;
        let rate = find(answers, Metric::Acceptance { place, rule })?;
        let attains = (rule.1.entry().attains)(scheme);
        answers.insert(Metric::Gap { place, rule }, gap(&best, &rate, attains));
    }
    for &(first, second) in &asked.pairs {
        let of = |rule| find(answers, Metric::Acceptance { place, rule });
        let difference = of(first)?.minus(&of(second)?);
        let metric = Metric::Difference {
            place,
            first,
            second,
        };
        answers.insert(metric, difference);
    }
    let known = |scheme| answers.get(&Metric::Optimum { place, scheme });
    if let (Some(published), Some(sequential)) = (
        known(SchemeName::DISTINCT_CONDITIONED),
        known(SchemeName::WITHOUT_REPLACEMENT),
    ) {
        let error = published.minus(sequential);
        answers.insert(Metric::FormulaError { place }, error);
    }
    Ok(())
}

/// ln q/p of all tokens that the row does not list; `None` unless the sampled one is among
/// them.
fn rest_ratio(row: &Row, [target, draft]: [f64; 2]) -> Option<f64> {
    let token = u32::try_from(row.token?).ok()?;
    let unlisted = !row.token_ids.is_empty() && !row.token_ids.contains(&token);
    (unlisted && target > 0.0).then(|| draft.ln() - target.ln())
}

/// ln q/p at the sampled token; `None` if it is unknown or a row does not list it. The rows
/// are shares of what is listed, and lack `rests`.
fn sampled_ratio(row: &Row, target: &[f64], draft: &[f64], rests: [f64; 2]) -> Option<f64> {
    let token = u32::try_from(row.token?).ok()?;
    let place = if row.token_ids.is_empty() {
        token as usize
    } else {
        row.token_ids.iter().position(|&id| id == token)?
    };
    let p = target.get(place)? * (1.0 - rests[0]);
    let q = draft.get(place)? * (1.0 - rests[1]);
    (p > 0.0 && !q.is_nan()).then(|| q.ln() - p.ln())
}
