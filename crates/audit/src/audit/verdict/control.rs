//! The negative control: an audit that can find nothing finds nothing wrong.

use crate::audit::AuditError;
use crate::audit::data::{Plan, Settings, Tampering};
use crate::audit::evidence::book::{Part, Tally};
use crate::audit::evidence::judge::{Judge, Step};
use crate::audit::evidence::play::{Player, visit};
use crate::audit::evidence::requests::Settled;
use crate::audit::evidence::steps::Steps;
use crate::audit::model::bugs::BUGS;
use crate::audit::verdict::capital::judged;
use crate::audit::verdict::measure::{MASKED, Opened, RowChecks, stop_tokens};
use crate::audit::verdict::simulate::tampered_rounds;
use specgap_base::sorted::Map;
use specgap_log::log::Log;

/// Rows that the negative control plays on.
const CONTROL_ROWS: usize = 400;

/// Positions that the negative control plays at most.
const MOST_POSITIONS: u64 = 400_000;

/// Plays every bug on the log's rows, tampers with its rounds, and audits what comes of it:
/// an audit that can find nothing finds nothing wrong. Bugs that the log is too short for are
/// played on its rows as often as they need, and `own_positions_enough` says so.
///
/// # Errors
/// As [`audit`](crate::audit::audit()).
pub fn negative_control(
    log: &Log,
    settings: &Settings,
    plan: &Plan,
) -> Result<Vec<Tampering>, AuditError> {
    let opened = Opened::new(log, settings, settings.rule, None)?;
    let rule = settings.rule;
    let judge = Judge::new(rule, settings.tolerance);
    let all = opened.log.positions();
    let rows = CONTROL_ROWS.min(all);
    let siblings = opened.steps.siblings;
    let most = opened.steps.most.max(1);
    let mut results: Vec<Tampering> = Vec::new();
    let mut players: Vec<Player> = Vec::new();
    let mut of_player: Vec<usize> = Vec::new();
    for (number, minimum) in plan.minimum.iter().enumerate() {
        let bug = BUGS.iter().find(|bug| bug.name == minimum.bug);
        // What `positions` a bug needs is an estimate: half as many more.
        let wanted = minimum.positions.map(|n| n + n / 2 + 50);
        let reason = match (wanted, minimum.output_tv) {
            (None, Some(tv)) => Some(format!(
                "harmless at this size: it moves outputs by {tv:.1e} in total variation, and no \
                 part by more than the tolerance"
            )),
            (None, None) => Some("within the tolerance on these rows".to_owned()),
            (Some(n), _) if n > MOST_POSITIONS => Some(format!(
                "takes about {n} positions, more than are played here"
            )),
            _ => None,
        };
        let copies = match (&reason, wanted) {
            (None, Some(n)) => n.div_ceil(rows.max(1) as u64).max(1),
            _ => 0,
        };
        if let Some(bug) = bug {
            for copy in 0..copies {
                // Streams that the plan does not use.
                let stream = (1 << 40) + ((number as u64) << 24) + copy;
                let seed = settings.seed;
                players.push(Player::new(rule, &bug.engine, most, siblings, seed, stream));
                of_player.push(number);
            }
        }
        results.push(Tampering {
            name: minimum.bug.clone(),
            words: minimum.words.clone(),
            refuted: None,
            by: Vec::new(),
            positions: copies * rows as u64,
            own_positions_enough: minimum
                .positions
                .is_some_and(|n| n <= plan.multiplied as u64),
            reason,
        });
    }
    let mut tallies = vec![Tally::new(&judge.book); players.len()];
    let mut checks = vec![RowChecks::default(); results.len()];
    // What no engine may put out, put out: of probability 0, masked, and outside of the cuts.
    let mut forbidden: [Option<RowChecks>; 3] = [None; 3];
    opened.for_each_row(rows, |index, pair| {
        let at = pair.position();
        visit(
            &judge,
            &at,
            siblings,
            &mut players,
            &mut tallies,
            |player, step| {
                if let Some(checks) = of_player.get(player).and_then(|&bug| checks.get_mut(bug)) {
                    checks.look(rule, pair, step, judge.book.tolerance, index);
                }
            },
        );
        let tolerance = judge.book.tolerance;
        let kinds: [&dyn Fn(usize) -> bool; 3] = [
            &|place| pair.whole.get(place).is_some_and(|p| *p <= 0.0),
            &|place| pair.is_masked(place),
            &|place| pair.is_outside(place, tolerance),
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
                let checks = found.insert(RowChecks::default());
                checks.look(rule, pair, &step, tolerance, index);
            }
        }
    })?;
    let [zero, masked, outside] = forbidden;
    for (number, result) in results.iter_mut().enumerate() {
        if result.positions == 0 {
            continue;
        }
        let mut total = Tally::new(&judge.book);
        for (tally, _) in tallies
            .iter()
            .zip(&of_player)
            .filter(|(_, bug)| **bug == number)
        {
            total.add(tally);
        }
        let total = Settled::whole(total);
        let none = Map::new();
        for one in Part::ALL {
            let found = judged(&judge, one, &total, &none, settings.alpha);
            if found.is_refuted() {
                result.by.push(found.part);
            }
        }
        if let Some(checks) = checks.get(number) {
            let broken = checks.list(&Steps::default(), opened.claimed.cuts());
            let broken = broken.into_iter().filter(|check| check.violations > 0);
            result.by.extend(broken.map(|check| check.name));
        }
        result.refuted = Some(!result.by.is_empty());
    }
    let mut hard = |name: &str, words: &str, refuted: Result<bool, String>| {
        let reason = refuted.as_ref().err().cloned();
        let refuted = refuted.ok();
        results.push(Tampering {
            name: name.to_owned(),
            words: words.to_owned(),
            by: refuted
                .filter(|done| *done)
                .map(|_| name.to_owned())
                .into_iter()
                .collect(),
            refuted,
            positions: 1,
            own_positions_enough: refuted == Some(true),
            reason,
        });
    };
    hard(
        "target-zero",
        "an accepted token is replaced by one of probability 0",
        zero.map(|found| found.target_zero.violations == 1)
            .ok_or_else(|| "no token of these rows has probability 0".to_owned()),
    );
    if log.has_masks() {
        hard(
            MASKED,
            "an accepted token is replaced by one that `allowed` masks",
            masked
                .map(|found| found.masked.violations == 1)
                .ok_or_else(|| "no token of these rows is masked".to_owned()),
        );
    }
    if opened.claimed.cuts() {
        hard(
            "outside-claimed-cut",
            "an accepted token is replaced by one that the claimed cuts leave out (min-p dropped \
             while speculating)",
            outside
                .map(|found| found.outside.violations == 1)
                .ok_or_else(|| "no token of these rows is left out".to_owned()),
        );
    }
    let stop = stop_tokens(log, settings);
    for (name, words, outcome) in tampered_rounds(&opened, &stop)? {
        hard(name, words, outcome);
    }
    Ok(results)
}
