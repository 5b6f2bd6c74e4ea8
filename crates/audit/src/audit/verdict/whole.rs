//! A whole audit of a log: its verdict, and what explains it.

use crate::audit::AuditError;
use crate::audit::beside::Cause;
use crate::audit::data::{AuditReport, Conclusion, HardCheck, Settings};
use crate::audit::evidence::steps::Check;
use crate::audit::evidence::surprise::summed;
use crate::audit::model::rule::Rule;
use crate::audit::suspects::capital::SHARES;
use crate::audit::suspects::factor::IMPOSSIBLE;
use crate::audit::suspects::family::{Families, HOTTEST, Law, Shared, is_size, short};
use crate::audit::verdict::checks::lost;
use crate::audit::verdict::conclude::{Candidate, NAMED, NEAR, Weighed, concluded, open};
use crate::audit::verdict::laws::{Asked, Evidence, Found};
use crate::audit::verdict::notes::{notes, unsaid};
use crate::audit::verdict::opened::Opened;
use serde_json::json;
use specgap_log::log::Log;
use std::f64::consts::LN_10;

/// Audits a log. `command` is what is printed as the command; `progress` is told of positions
/// as they are done.
///
/// The e-values are functions of the log and the settings alone, the same to the bit on any
/// number of threads.
///
/// # Errors
/// Logs without `drafts` and `output`; rounds that contradict themselves; rows that are refused;
/// rows that list some tokens only, where the rule needs all; settings out of range.
///
/// # Complexity
/// O(N V) for each suspect that asks whole rows, some 100 of 500, on rejected drafts, and for few
/// of them elsewhere; a sort of the heaviest tokens of each row. Memory O(V + N).
pub fn audit(
    log: &Log,
    settings: &Settings,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<AuditReport, AuditError> {
    audit_read(log, settings, None, command, progress)
}

/// Audits a log as [`audit`] does, to the bit, with what has been read of all its stretches.
///
/// Rows are read again where the claim is refuted, for its cause.
///
/// # Errors
/// As [`audit`]; evidence that is not of this log.
pub fn audit_read(
    log: &Log,
    settings: &Settings,
    read: Option<&Evidence>,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<AuditReport, AuditError> {
    if let Some(read) = read {
        read.check(log)?;
    }
    let opened = Opened::new(log, settings, settings.rule, None)?;
    let first = audited(&opened, settings, read, command, progress)?;
    if first.conclusion.stands() {
        return Ok(first);
    }
    // What nobody said and explains the tokens is as good as what is usual.
    for (claimed, words) in unsaid(&opened.claimed) {
        let other = Settings {
            claimed: Some(claimed),
            ..settings.clone()
        };
        let opened = Opened::new(log, &other, settings.rule, None)?;
        let mut found = audited(&opened, &other, None, command, &|_| {})?;
        if found.conclusion.stands() {
            found.notes.insert(0, words);
            return Ok(found);
        }
    }
    Ok(first)
}

/// Checks that fail a text by themselves.
const LOSSY: [Check; 3] = [Check::TargetZero, Check::Masked, Check::AfterEnd];

/// Checks of outcomes against rows.
const ROWS: [Check; 3] = [Check::TargetZero, Check::DraftZero, Check::Outside];

/// A token outside of a claimed cut is a finding of the suspects, which know other orders.
const OUTSIDE: &str = Check::Outside.as_str();

fn is_among(checks: &[Check], name: &str) -> bool {
    checks.iter().any(|check| check.as_str() == name)
}

fn is_broken(checks: &[HardCheck], is: impl Fn(&str) -> bool) -> bool {
    let mut broken = checks.iter().filter(|check| check.violations > 0);
    broken.any(|check| is(&check.name))
}

/// Tells whether the rule falls, and what comes out of it.
fn fall(weighed: &Weighed<'_>) -> [bool; 2] {
    [weighed.of_rule >= weighed.needed(), weighed.outputs_fall()]
}

/// What capital and hard checks say together, and whether that is a lossless law at some of the steps.
fn told(
    opened: &Opened<'_>,
    settings: &Settings,
    weighed: &Weighed<'_>,
    checks: &[HardCheck],
    numbers: Option<&str>,
) -> Result<(Option<Conclusion>, bool), AuditError> {
    let falls = fall(weighed);
    let mut conclusion = concluded(weighed, falls, numbers, !weighed.found.shares);
    // A rule that the log fits holds against an audit by its own name.
    let name = conclusion.and_then(|one| named(weighed, one));
    let is_mixed = name.as_ref().is_some_and(|name| name.contains('%'));
    if let Some(rule) = name.and_then(|name| name.parse().ok())
        && other_of_chains(opened) != Some(rule)
        && held(opened, settings, rule)?.is_none()
    {
        conclusion = Some(Conclusion::NotTheRule);
    }
    let is_lossless = opened.rule.is_lossless();
    let loses = is_broken(checks, |name| is_among(&LOSSY, name));
    if loses && is_lossless {
        conclusion = Some(Conclusion::Lossy);
    } else if conclusion.is_none()
        && is_broken(checks, |name| name != OUTSIDE && name != "lost-rounds")
    {
        conclusion = Some(Conclusion::NotTheRule);
    }
    // Rounds that say that another token came out leave steps that are chosen by what did: of these all but the text
    // says nothing.
    let is_chosen = is_broken(checks, |name| is_among(&[Check::NotEmitted], name));
    let is_chosen = is_chosen && !falls[1] && !loses;
    let conclusion = conclusion.map(|one| match one {
        Conclusion::Lossy if is_chosen || !is_lossless => Conclusion::NotTheRule,
        Conclusion::LosslessOther if is_chosen => Conclusion::NotTheRule,
        one => one,
    });
    Ok((conclusion, is_mixed))
}

fn audited(
    opened: &Opened<'_>,
    settings: &Settings,
    read: Option<&Evidence>,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<AuditReport, AuditError> {
    let log = opened.log;
    let found = Found::of(opened, settings, read, progress)?;
    let mut weighed = Weighed::new(&found, opened.rule, settings.alpha);
    let surprise = summed(&found.surprises);
    let hard_checks = checks(opened, &found);
    let falls = fall(&weighed);
    // That drafts are distinct is a claim of the rule alone.
    let of_rule = [Check::Outside, Check::Repeated];
    let others = is_broken(&hard_checks, |name| !is_among(&of_rule, name));
    let mut may_fit = None;
    if falls == [true, false] && !others {
        may_fit = rival(opened, settings, &mut weighed)?;
    }
    let numbers = weighed.numbers();
    let (excluded, wanted) = weighed.excluded(settings.exclude);
    let left_out = left_out(log);
    let mut open = open(
        &found,
        settings,
        [log.positions(), left_out],
        surprise.as_ref(),
        wanted,
    );
    let (mut conclusion, is_mixed) = told(opened, settings, &weighed, &hard_checks, numbers)?;
    if numbers == Some("shared-stream") && conclusion.is_none() {
        open.insert(
            0,
            "requests share random numbers, and the log does not say whether they were sent with \
             one seed: log seed [N], or say --seeds shared if they were and --seeds fresh if not"
                .to_owned(),
        );
    }
    if numbers.is_none() && conclusion.is_none() && weighed.hangs_on_numbers() {
        open.insert(0, hangs_on_numbers(found.shares));
    }
    open.extend(near(&weighed, opened.rule.is_lossless(), found.looked));
    may_fit =
        may_fit.filter(|_| conclusion != Some(Conclusion::LosslessOther) && numbers.is_none());
    let mut fits = None;
    if conclusion.is_some() && numbers.is_none() && !others && may_fit.is_none() {
        let falls = [falls[0], weighed.of_outputs >= weighed.needed()];
        let conclusion = conclusion.filter(|_| !is_mixed);
        fits = another(opened, settings, &weighed, falls, conclusion)?;
    }
    if fits.is_some() {
        conclusion = Some(Conclusion::LosslessOther);
    } else if may_fit.is_some() && !falls[1] {
        // Nothing refutes a rule that loses nothing.
        conclusion = Some(Conclusion::NotTheRule);
    }
    let refuted = falls.contains(&true) || numbers.is_some();
    let is_fit = fits.is_some() || may_fit.is_some();
    let finer = Families::finer(opened.rule, weighed.drafts_fall());
    if falls.contains(&true) && numbers.is_none() && !is_fit && !finer.suspects.is_empty() {
        weighed.sharpen(&Asked::new(opened, settings, finer).found(&|_| {})?);
    }
    let cause = led(&weighed, refuted, numbers, is_fit);
    let cause = cause.filter(|(one, _)| tells_a_law(&weighed, one, &hard_checks));
    // The cause of a rule is that rule.
    let is_of = |one: &Candidate, fits: &String| {
        let own = called(&weighed, one);
        own.parse::<Rule>().is_err() || own == *fits
    };
    let cause = cause.filter(|(one, _)| fits.as_ref().is_none_or(|fits| is_of(one, fits)));
    if cause.as_ref().is_some_and(|(one, _)| one.name == "noise") {
        conclusion = None;
        open.insert(
            0,
            "the rows are those of another pass, with more noise than is allowed for".to_owned(),
        );
    }
    let cause = cause.map(|(one, margin)| explained(opened, settings, &weighed, &one, margin));
    let cause = cause.transpose()?.flatten();
    let cause = cause.filter(|cause| !is_off_the_grid(cause));
    let conclusion = conclusion.unwrap_or(match open.is_empty() {
        true => Conclusion::AsClaimed,
        false => Conclusion::Undecided,
    });
    let least = settings.exclude.max(weighed.pairs_excluded());
    let least = (conclusion == Conclusion::AsClaimed).then_some(least);
    let is_other = conclusion == Conclusion::LosslessOther;
    let ok = conclusion.stands() || is_other && !settings.strict;
    Ok(AuditReport {
        hard_checks,
        surprise,
        conclusion,
        ok,
        fits: fits.or_else(|| named(&weighed, conclusion)),
        excluded: if refuted { Vec::new() } else { excluded },
        tokens_wanted: wanted.filter(|more| !refuted && *more > 0),
        open: match conclusion {
            Conclusion::Undecided => open,
            Conclusion::NotTheRule => may_fit.map(too_few_for).into_iter().collect(),
            _ => Vec::new(),
        },
        ..begun(opened, settings, command, &weighed, (cause, refuted), least)?
    })
}

/// Counts the positions that a recorder left out or lost.
fn left_out(log: &Log) -> usize {
    let said = log.metadata();
    let counts = [&said.not_comparable, &said.lost_rounds]
        .map(|one| one.as_ref().map_or(0, |one| one.count));
    usize::try_from(counts.into_iter().sum::<u64>()).unwrap_or(usize::MAX)
}

/// Tells whether a law has more for it than one or two outcomes that the claim excludes: these are a finding by
/// themselves, and each may count in three parts of its step.
fn tells_a_law(weighed: &Weighed<'_>, one: &Candidate, checks: &[HardCheck]) -> bool {
    let excluded = checks.iter();
    let excluded = excluded.filter(|check| is_among(&ROWS, &check.name));
    let excluded = excluded.map(|check| check.violations).sum::<u64>();
    excluded > 2 || one.log - 3.0 * excluded as f64 * IMPOSSIBLE.ln() >= weighed.needed()
}

/// Says of a rule that nothing refutes it.
fn too_few_for(rule: Rule) -> String {
    format!(
        "nothing refutes {rule} here, in too few tokens to say that it is that: --rule {rule} says how many \
         it takes"
    )
}

/// Says, where evidence against the claim is near what refutes it, how near.
fn near(weighed: &Weighed<'_>, is_lossless: bool, looked: usize) -> Option<String> {
    let of_outputs = if is_lossless { weighed.of_outputs } else { 0.0 };
    let (near, needed) = (weighed.of_rule.max(of_outputs), weighed.needed());
    (NEAR..needed).contains(&near).then(|| {
        format!(
            "evidence against the claim is 1e{:.1}, of the 1e{:.1} that refute it: about {:.0} tokens more would decide",
            near / LN_10,
            needed / LN_10,
            (looked as f64 * (needed / near - 1.0)).ceil()
        )
    })
}

/// Begins the report: all but what is concluded.
fn begun(
    opened: &Opened<'_>,
    settings: &Settings,
    command: &str,
    weighed: &Weighed<'_>,
    (cause, refuted): (Option<Cause>, bool),
    least: Option<f64>,
) -> Result<AuditReport, AuditError> {
    let (log, found) = (opened.log, weighed.found);
    let mut parts = weighed.parts();
    for part in &mut parts {
        let cause = cause.as_ref().filter(|_| part.is_refuted());
        part.suspect = cause.map(|cause| cause.name.clone());
    }
    if let Some(part) = parts.last_mut() {
        part.smallest_tv_excluded = least;
    }
    if let Some(part) = parts.get_mut(1).filter(|_| refuted) {
        part.groups = weighed.groups();
    }
    if opened.rule == Rule::TEXT {
        parts.retain(|part| part.part == "target-law");
    }
    let (said, (off, lossy)) = (log.metadata(), found.lossy);
    let command = if log.is_held() { "" } else { command };
    let files = log.digests(&(0..log.positions()));
    let files = files.map_err(|error| AuditError::Log(error.to_string()))?;
    Ok(AuditReport {
        files: files.into_values().collect(),
        unfinished: said.unfinished(),
        target: said.target.as_ref().map(|file| file.name.clone()),
        draft: said.draft.as_ref().map(|file| file.name.clone()),
        claimed: Some(opened.claimed.clone()),
        positions: log.positions(),
        rounds: opened.steps.rounds,
        not_audited: log.positions() - found.looked,
        looked_at: found.looked,
        noise: found.noise.sigma,
        false_alarm: settings.alpha,
        rows_from: said.rows_from,
        not_comparable: said.not_comparable.clone(),
        parts,
        lossy_by_design: (lossy > 0).then(|| off / lossy as f64),
        notes: notes(opened),
        is_sampling_assumed: settings.claimed.is_none() && said.sampling.is_none(),
        cause,
        suspects: weighed.listed(),
        capital: Some(weighed.capital()),
        ..AuditReport::begun(log.name(), command, settings, opened.requests.report(0))
    })
}

/// Returns what explains the log, and by how much it beats the next. Where another rule fits, nothing
/// lossy does.
fn led(
    weighed: &Weighed<'_>,
    refuted: bool,
    numbers: Option<&str>,
    fits: bool,
) -> Option<(Candidate, f64)> {
    if let Some(name) = numbers {
        let own = weighed.candidates.iter().find(|one| one.name == name);
        return own.map(|one| (one.clone(), weighed.needed()));
    }
    let (one, margin) = weighed.leader().filter(|_| refuted)?;
    let is_named = margin >= NAMED && one.name != "outputs-unlike-their-rows";
    (is_named && (!fits || one.lossless)).then(|| (one.clone(), margin))
}

/// The lossless rule that leads, by its name.
fn named(weighed: &Weighed<'_>, conclusion: Conclusion) -> Option<String> {
    let (lossless, _) = weighed.is_lossless();
    let one = lossless.filter(|_| conclusion == Conclusion::LosslessOther)?;
    let name = called(weighed, one);
    Some(match one.share < 1.0 {
        true => format!("{name} at about {:.0}% of the steps", 100.0 * one.share),
        false => name,
    })
}

/// The rule that a lossless law is.
fn called(weighed: &Weighed<'_>, one: &Candidate) -> String {
    match one.name {
        "draft-sampled" => "exact-match".to_owned(),
        "carries-nothing" => "token".to_owned(),
        _ if one.law == Some(Law::Shares(Shared::Clocks)) => "shared-gumbel".to_owned(),
        "draft-of-its-own-row" => format!("{} with another q", weighed.rule),
        name => name.to_owned(),
    }
}

fn checks(opened: &Opened<'_>, found: &Found) -> Vec<HardCheck> {
    let mut checks = found.checks;
    checks.add(opened.steps.checks);
    let mut all = checks.list(opened.claimed.cuts());
    if opened.rule == Rule::TEXT {
        all.retain(|one| one.name == OUTSIDE || is_among(&LOSSY, &one.name));
    }
    for check in &mut all {
        check.first_position = check.first_position.map(|at| opened.order.at(at));
    }
    all.extend(lost(opened.log));
    all
}

/// Of a chain, the rule that keeps drafts one by one, or together, where the other one is claimed.
fn other_of_chains(opened: &Opened<'_>) -> Option<Rule> {
    let chains = [Rule::BLOCK, Rule::TOKEN];
    let other = chains.into_iter().find(|rule| *rule != opened.rule);
    other.filter(|_| chains.contains(&opened.rule) && !opened.steps.siblings)
}

/// Weighs that rule, and returns it where it may fit.
fn rival(
    opened: &Opened<'_>,
    settings: &Settings,
    weighed: &mut Weighed<'_>,
) -> Result<Option<Rule>, AuditError> {
    let Some(rule) = other_of_chains(opened) else {
        return Ok(None);
    };
    let claimed = weighed.found.sequence.claimed;
    let held = held(opened, settings, rule)?;
    Ok(held.and_then(|held| weighed.take(rule, held.likelihood - claimed, held.is_calm)))
}

/// What a rule says of a log that does not refute it.
struct Held {
    /// ln of how likely what happened with drafts is.
    likelihood: f64,
    is_calm: bool,
    /// What would be lossy is excluded.
    decides: bool,
}

/// Holds a log against another rule: none where that is refuted, or needs more of a log than it has.
fn held(opened: &Opened<'_>, settings: &Settings, rule: Rule) -> Result<Option<Held>, AuditError> {
    let Ok(other) = Opened::new(opened.log, settings, rule, Some(opened.steps.clone())) else {
        return Ok(None);
    };
    let found = Found::of(&other, settings, None, &|_| {})?;
    let own = Weighed::new(&found, rule, settings.alpha);
    let broken = found.checks.list(other.claimed.cuts());
    let broken = broken.iter().any(|check| check.violations > 0);
    let holds = own.of_rule < own.needed() && own.of_outputs < own.needed();
    if !holds || broken || found.tally.steps[1] == 0 {
        return Ok(None);
    }
    // That it is not refuted says little of a short log: as of the claim itself, what would be lossy
    // has to be excluded.
    let (_, wanted) = own.excluded(settings.exclude);
    let positions = [opened.log.positions(), 0];
    let surprise = summed(&found.surprises);
    Ok(Some(Held {
        likelihood: found.sequence.claimed,
        is_calm: own.is_calm(),
        decides: open(&found, settings, positions, surprise.as_ref(), wanted).is_empty(),
    }))
}

/// A lossless rule under which nothing is refuted, and acceptance is tested.
fn another(
    opened: &Opened<'_>,
    settings: &Settings,
    weighed: &Weighed<'_>,
    [rule_falls, outputs_fall]: [bool; 2],
    conclusion: Option<Conclusion>,
) -> Result<Option<String>, AuditError> {
    if !rule_falls || conclusion == Some(Conclusion::LosslessOther) {
        return Ok(None);
    }
    // A law that leads explains the log better than another rule would.
    let leader = weighed.leader();
    let leads = leader.is_some_and(|(one, margin)| !one.lossless && margin >= NAMED);
    let fits = |rule: &Rule| match opened.steps.siblings {
        true => rule.has_siblings(),
        false => rule.has_chains(),
    };
    let mut candidates: Vec<Rule> = Rule::with_laws().filter(fits).collect();
    if opened.steps.siblings {
        // Rules of drawn drafts claim more.
        candidates.sort_by_key(|rule| !rule.tests_drafts());
    }
    // Other rules claim that outputs follow p given all that was before; one claims less.
    candidates.retain(|rule| !outputs_fall || *rule == Rule::CARRIED);
    // Of a claim that loses by design, what loses nothing is a size of it.
    if leads && !opened.steps.siblings && opened.rule.is_lossless() {
        return Ok(None);
    }
    // What drafts are no draws of, no rule that draws them so fits.
    if weighed.drafts_fall() && !opened.steps.siblings {
        candidates.retain(|rule| rule.drafts() != opened.rule.drafts());
    }
    let chain = other_of_chains(opened);
    candidates.retain(|rule| *rule != settings.rule && Some(*rule) != chain);
    for rule in candidates {
        if held(opened, settings, rule)?.is_some_and(|held| held.decides) {
            return Ok(Some(rule.to_string()));
        }
    }
    Ok(None)
}

/// A cause with its size, if drafts are kept as it says. Else what explains outputs that are refuted, whatever was
/// drafted: of two faults at once the cause, if it says as much of them.
fn explained(
    opened: &Opened<'_>,
    settings: &Settings,
    weighed: &Weighed<'_>,
    one: &Candidate,
    margin: f64,
) -> Result<Option<Cause>, AuditError> {
    let (cause, is_explained) = sized(opened, settings, weighed, one, margin)?;
    if is_explained || !weighed.outputs_fall() {
        return Ok(Some(cause).filter(|_| is_explained));
    }
    let settings = Settings {
        rule: Rule::TEXT,
        ..settings.clone()
    };
    let text = Opened::new(opened.log, &settings, Rule::TEXT, None)?;
    let text = audited(&text, &settings, None, "", &|_| {})?;
    let most = text
        .suspects
        .first()
        .map_or(0.0, |one| one.log10_e_value * LN_10);
    let says = one.outputs.is_some_and(|own| own >= most - NAMED);
    Ok(if says { Some(cause) } else { text.cause })
}

/// A cause with its size, from a finer grid around the best, and all sizes that fit nearly as well; and whether
/// drafts are kept as it says.
fn sized(
    opened: &Opened<'_>,
    settings: &Settings,
    weighed: &Weighed<'_>,
    one: &Candidate,
    margin: f64,
) -> Result<(Cause, bool), AuditError> {
    // A law at some of the steps that says nothing of what comes out explains no outputs that are refuted.
    let is_silent = one.share < 1.0 && one.law.is_some() && one.tv.is_none_or(|tv| tv <= 0.0);
    let may = !(is_silent && weighed.outputs_fall());
    let mut is_explained = weighed.explains(one);
    let mut cause = weighed.cause(one, margin);
    // A size between those of the grid, at all steps, is simpler than one of them at some.
    let whole = weighed.whole(one);
    let whole = whole.as_ref().map(|own| (own, one.unpaid - NAMED));
    for (own, least) in whole.into_iter().chain([(one, f64::NEG_INFINITY)]) {
        let around = own.law.map(Law::around).unwrap_or_default();
        let mut its = weighed.cause(own, margin);
        if around.len() > 1 {
            let (most, fits) = fit_among(&around, own, &mut its, opened, settings)?;
            if most > least {
                (cause, is_explained) = (its, fits);
                break;
            }
        }
    }
    let factor = cause.fit.get("factor").and_then(serde_json::Value::as_f64);
    if let (Some(factor), "temperature") = (factor, cause.name.as_str()) {
        let own = (factor * opened.claimed.temperature * 1e4).round() / 1e4;
        cause.fit.insert("temperature".to_owned(), json!(own));
        cause.words = format!("{}: {own}", cause.words);
    }
    if let (Some(Law::Target(change, _)), "cut-order") = (one.law, cause.name.as_str())
        && let Some(order) = change.order_of(&opened.claimed)
    {
        cause.fit.insert("order".to_owned(), json!(order));
        cause.words = format!("the row is cut in another order: {order}");
        cause.cure = format!(
            "if that is your tool's order, say --cut-order {order}, or write sampling.cut_order into the log"
        );
    }
    if let (Some(factor), "accepts-more") = (factor, cause.name.as_str()) {
        // Of the drafts that the rule refuses, so many are kept.
        let share = share_of(weighed.kept_share(), factor);
        cause.fit.insert("share".to_owned(), json!(share));
    }
    Ok((cause, is_explained && may))
}

/// Tells whether a temperature is beyond all that are looked at: that is no temperature, but what is nearest to
/// something else.
fn is_off_the_grid(cause: &Cause) -> bool {
    let factor = cause.fit.get("factor").and_then(serde_json::Value::as_f64);
    cause.name == "temperature" && factor.is_some_and(|factor| factor > HOTTEST)
}

/// The best of sizes around a cause's own, and all that fit nearly as well. Returns the best one's logarithm
/// without what noise was paid, and whether drafts are kept as it says.
fn fit_among(
    around: &[Law],
    one: &Candidate,
    cause: &mut Cause,
    opened: &Opened<'_>,
    settings: &Settings,
) -> Result<(f64, bool), AuditError> {
    let families = Families::only(one.name, around.to_vec());
    let found = Asked::new(opened, settings, families).found(&|_| {})?;
    let logs = found.tally.won.iter().map(|won| {
        let mut own = won.logs().iter().zip(SHARES);
        let own = own.find(|(_, (share, _))| *share == one.share);
        own.map_or(f64::NEG_INFINITY, |(log, _)| won.unpaid((*log, one.share)))
    });
    let logs: Vec<f64> = logs.collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let size = around.len() as f64;
    let mean = most + (logs.iter().map(|log| (log - most).exp()).sum::<f64>() / size).ln();
    let sized = || around.iter().zip(&logs);
    let fits = sized().filter(|(_, log)| **log >= mean - 20f64.ln());
    let fits: Vec<_> = fits.map(|(law, _)| law.fit()).collect();
    let best = sized().position(|(_, log)| *log == most && most.is_finite());
    let best = best.and_then(|at| around.get(at).zip(found.tally.won.get(at)));
    let Some((law, won)) = best else {
        return Ok((f64::NEG_INFINITY, false));
    };
    let is_explained = found.tally.fits(won, one.share);
    let share = std::mem::replace(&mut cause.fit, law.fit()).remove("share");
    cause.words = law.words();
    for (name, value) in law.fit() {
        let values = fits.iter();
        let values = values.filter_map(|fit| fit.get(&name).and_then(serde_json::Value::as_f64));
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(f64::NEG_INFINITY, f64::max);
        if value.is_number() && low.is_finite() && is_size(&name) {
            let range = json!([low, high]);
            cause.fit.insert(format!("{name}_range"), range);
            cause.words = format!("{} ({} to {})", cause.words, short(low), short(high));
        }
    }
    if let Some(share) = share {
        cause.words = format!("{}, at about {share} of the steps", cause.words);
        cause.fit.insert("share".to_owned(), share);
    }
    Ok((most, is_explained))
}

/// Returns by how much the share of drafts kept has grown, if that is so many times as often.
fn share_of(kept: f64, factor: f64) -> f64 {
    let more = (kept * (1.0 - 1.0 / factor)).clamp(0.0, 1.0);
    (more * 1e4).round() / 1e4
}

/// Says what would tell numbers that come again from a law that is not the rows'.
fn hangs_on_numbers(may_share: bool) -> String {
    let (who, cure) = match may_share {
        true => (
            "requests may share random numbers",
            ": log seed [N], or say --seeds fresh if each drew its own",
        ),
        false => ("rounds of a text draw with the same random numbers", ""),
    };
    format!("{who}, or what was drawn is not of the rows; tokens are too few to tell which{cure}")
}
