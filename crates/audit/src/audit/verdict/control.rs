//! The negative control: an audit that can find nothing finds nothing wrong.

use crate::audit::AuditError;
use crate::audit::data::{Settings, Tampering};
use crate::audit::evidence::steps::{Check, Checks, Step, Steps};
use crate::audit::model::bugs::{Bug, bugs_of};
use crate::audit::model::rule::Rule;
use crate::audit::verdict::claim::stop_tokens;
use crate::audit::verdict::conclude::Weighed;
use crate::audit::verdict::laws::Found;
use crate::audit::verdict::opened::Opened;
use crate::audit::verdict::simulate::{BugName, Simulator, tampered_rounds};
use specgap_log::log::Log;
use std::collections::BTreeSet;

/// Rows that the negative control looks at for tokens that may not come.
const CONTROL_ROWS: usize = 400;

/// How far outputs have to be moved before a bug has to be found: a bug of less may need more
/// text than there is.
const MOVES: f64 = 0.1;

/// The fewest positions on which a bug has to be found.
const ENOUGH: usize = 1000;

/// Plays every bug of the claimed rule along the log's rows, tampers with its rounds, and audits
/// what comes of it.
///
/// # Errors
/// As [`audit`](crate::audit::audit()).
pub fn negative_control(log: &Log, settings: &Settings) -> Result<Vec<Tampering>, AuditError> {
    let opened = Opened::new(log, settings, settings.rule, None)?;
    let mut results = Vec::new();
    if !log.may_lack_drafts() && settings.rule != Rule::TEXT {
        for bug in bugs_of(settings.rule) {
            results.push(played(&opened, settings, bug)?);
        }
    }
    results.extend(tampered(&opened, settings)?);
    Ok(results)
}

/// An engine with a bug, along the log.
fn played(opened: &Opened<'_>, settings: &Settings, bug: &Bug) -> Result<Tampering, AuditError> {
    let (log, rule) = (opened.log, settings.rule);
    let simulator = Simulator {
        bug: bug.name.parse::<BugName>().ok(),
        drafts: opened.steps.most.max(1),
        siblings: opened.steps.siblings,
        ..Simulator::new(settings.clone())
    };
    let records = opened.order.sorted(simulator.log(log)?.records);
    // A simulated engine answers whatever it put out before, a token that ends texts too.
    let steps = Steps::from_records(&records, rule, true, &BTreeSet::new());
    let positions = log.positions();
    let mut result = Tampering {
        name: bug.name.to_owned(),
        words: bug.words.to_owned(),
        refuted: None,
        by: Vec::new(),
        positions: positions as u64,
        own_positions_enough: false,
        reason: None,
    };
    let opened = steps.map_err(|(_, message)| message).and_then(|steps| {
        let opened = Opened::new(log, settings, rule, Some(steps));
        opened.map_err(|error| error.to_string())
    });
    let other = match opened {
        Ok(other) => other,
        Err(message) => {
            result.reason = Some(message);
            return Ok(result);
        }
    };
    let found = Found::of(&other, settings, None, &|_| {})?;
    let weighed = Weighed::new(&found, rule, settings.alpha);
    if weighed.of_rule >= weighed.needed() {
        result.by.push("rule".to_owned());
    }
    if weighed.of_outputs >= weighed.needed() {
        result.by.push("outputs".to_owned());
    }
    let mut checks = found.checks;
    checks.add(other.steps.checks);
    let broken = checks.list(other.claimed.cuts());
    let broken = broken.into_iter().filter(|check| check.violations > 0);
    result.by.extend(broken.map(|check| check.name));
    let moves = weighed.candidates.first().and_then(|one| one.tv);
    let moves = moves.unwrap_or(0.0);
    result.own_positions_enough = !result.by.is_empty();
    match (result.by.is_empty(), positions >= ENOUGH && moves >= MOVES) {
        (false, _) => result.refuted = Some(true),
        (true, true) => result.refuted = Some(false),
        (true, false) => {
            result.reason = Some("not found on these rows: log more text for it".to_owned());
        }
    }
    Ok(result)
}

/// Checks outputs that no engine may put out, and rounds that contradict themselves.
fn tampered(opened: &Opened<'_>, settings: &Settings) -> Result<Vec<Tampering>, AuditError> {
    let (log, rule) = (opened.log, settings.rule);
    let mut forbidden: [Option<Checks>; 3] = [None; 3];
    opened.for_each_row(CONTROL_ROWS.min(log.positions()), |index, pair| {
        let kinds: [&dyn Fn(usize) -> bool; 3] = [
            &|place| pair.whole.get(place).is_some_and(|p| *p <= 0.0),
            &|place| pair.is_masked(place),
            &|place| pair.is_outside(place, 0.0),
        ];
        for (found, is_forbidden) in forbidden.iter_mut().zip(kinds) {
            if found.is_none()
                && let Some(place) = (0..pair.p.len()).find(|&place| is_forbidden(place))
            {
                let step = Step {
                    drafts: vec![place],
                    accepted: true,
                    output: place,
                };
                let checks = found.insert(Checks::default());
                checks.look(rule, pair, &step, 0.0, index);
            }
        }
    })?;
    let [zero, masked, outside] = forbidden;
    let mut results = Vec::new();
    let mut hard = |check: Check, words: &str, refuted: Result<bool, String>| {
        let name = check.as_str().to_owned();
        let is_refuted = refuted == Ok(true);
        results.push(Tampering {
            by: is_refuted.then(|| name.clone()).into_iter().collect(),
            name,
            words: words.to_owned(),
            refuted: refuted.as_ref().ok().copied(),
            positions: 1,
            own_positions_enough: is_refuted,
            reason: refuted.err(),
        });
    };
    let cut = "an accepted token is replaced by one that the claimed cuts leave out (min-p dropped \
               while speculating)";
    let masks = "an accepted token is replaced by one that `allowed` masks";
    let none = "an accepted token is replaced by one of probability 0";
    for (check, is_made, words, found, lacks) in [
        (Check::TargetZero, true, none, zero, "has probability 0"),
        (Check::Masked, log.has_masks(), masks, masked, "is masked"),
        (
            Check::Outside,
            opened.claimed.cuts(),
            cut,
            outside,
            "is left out",
        ),
    ] {
        let found = found.map(|found| found.of(check).violations == 1);
        if is_made {
            let lacks = || format!("no token of these rows {lacks}");
            hard(check, words, found.ok_or_else(lacks));
        }
    }
    let stop = stop_tokens(log, settings);
    for (check, words, outcome) in tampered_rounds(opened, &stop)? {
        hard(check, words, outcome);
    }
    Ok(results)
}
