//! The first lines: what to set, and what it buys.

use super::numbers::{cost, decimals, plus_minus};
use super::tables;
use crate::page::Block;
use crate::page::words::{count, counted, listed, percent};
use crate::replay::{
    AtCost, Chosen, ChosenPolicy, DecidedOn, Drafts, FAMILIES, Family, LengthReport,
};
use crate::report::{cautions, draft_paths, replayed};
use crate::scheme::engines_with;
use crate::statistics::Estimate;

pub(super) fn title(report: &LengthReport) -> String {
    format!("Draft lengths: {}", replayed::names(&report.of))
}

pub(super) fn subtitle(report: &LengthReport) -> String {
    let of = replayed::subtitle(&report.of);
    match &report.draft_cuts {
        Some(cuts) => {
            let words = cuts
                .words()
                .map(|(name, number)| format!("{name} {number}"));
            let words: Vec<String> = words.collect();
            format!("{of} · q cut to {}, renormalised", words.join(", then "))
        }
        None => of,
    }
}

pub(super) fn lead(report: &LengthReport) -> Vec<Block> {
    let says = || {
        vec![
            Block::Paragraph(advice(report)),
            Block::List(points(report)),
        ]
    };
    let cautions = [
        unlisted(report),
        replayed::few_prompts(report.of.clusters, "length"),
        cautions::surprise(&report.surprise),
    ];
    replayed::lead(&report.of, &report.surprise, says, cautions)
}

/// The least gain, of a speed, that is worth a change.
const WORTH: f64 = 0.01;

/// What is set against each other in a sentence: whether a gain is told from nothing and worth
/// its price.
fn is_worth(more: &Estimate, than: &Estimate) -> bool {
    is_told(more) && more.mean >= WORTH * than.mean
}

/// Whether there is an interval and it lies above 0.
fn is_told(more: &Estimate) -> bool {
    let [low, high] = more.ci95;
    low > 0.0 && high > low
}

/// The best of what needs nothing new: the first, unless another one is told apart from it.
fn first(at: &AtCost) -> Option<&Chosen> {
    let mut all = at.chosen.iter();
    let first = all.next()?;
    Some(all.fold(first, |best, one| {
        let more = tables::more(at, one, best);
        match more.is_some_and(|more| is_worth(&more, &best.speedup)) {
            true => one,
            false => best,
        }
    }))
}

/// What is drafted and how it is verified, behind a length.
fn way(one: &Chosen) -> String {
    match one.drafts {
        Drafts::Sampled => format!("with {} verification", one.verifier),
        other => format!("of {other} drafts"),
    }
}

/// What to set and what it buys, in a sentence.
fn advice(report: &LengthReport) -> String {
    if let Some(at) = &report.at_cost {
        let Some(best) = first(at) else {
            return no_choice(report);
        };
        let cost = cost(at.cost_ratio);
        if best.speedup.ci95[1] <= 1.0 {
            return format!(
                "Do not draft at this cost: at c = {cost} the best fixed length, {} {}, gives {} \
                 times the speed of the target alone.",
                best.parameter,
                way(best),
                plus_minus(&best.speedup, 2)
            );
        }
        let unsure = if best.speedup.ci95[0] <= 1.0 {
            " (the interval holds 1: these prompts do not show a gain)"
        } else {
            ""
        };
        return format!(
            "Draft {} a round {}: {} as fast as the target alone at c = {cost}, on prompts that \
             had no say in the choice{unsure}.",
            counted(best.parameter as usize, "token"),
            way(best),
            times(best)
        );
    }
    let shown: Vec<(f64, &Chosen)> = (tables::SHOWN.iter())
        .filter_map(|&ratio| {
            let at = report.by_cost.iter().find(|at| at.cost_ratio == ratio)?;
            Some((ratio, first(at)?))
        })
        .collect();
    let Some(&(_, one)) = shown.first() else {
        return no_choice(report);
    };
    let alike = shown.iter().all(|(_, other)| way(other) == way(one));
    let parts: Vec<String> = (shown.iter())
        .map(|&(ratio, best)| {
            let own = if alike {
                String::new()
            } else {
                format!(" {}", way(best))
            };
            format!(
                "{}{own} at c = {} ({} as fast as the target alone)",
                counted(best.parameter as usize, "token"),
                cost(ratio),
                times(best)
            )
        })
        .collect();
    let all = match alike {
        true => {
            let way = way(one);
            let (head, tail) = way.split_at(1);
            format!(" {}{tail}:", head.to_uppercase())
        }
        false => String::new(),
    };
    format!(
        "How many tokens to draft depends on what a draft step costs, c of a target step.{all} {}.",
        listed(&parts)
    )
}

/// What a setting adds or takes: in words, by a paired difference.
fn difference(more: &Estimate) -> String {
    let [low, high] = more.ci95;
    let size = Estimate {
        mean: more.mean.abs(),
        ..*more
    };
    if low > 0.0 || high < 0.0 {
        let word = if low > 0.0 { "more" } else { "less" };
        let half = (high - low) / 2.0;
        let ends = [size.mean - half, size.mean + half];
        let size = Estimate { ci95: ends, ..size };
        format!("{} {word}", plus_minus(&size, 2))
    } else {
        format!("no difference shown, {}", plus_minus(more, 2))
    }
}

/// What other verification, and what the drafts of engines as they come, give.
fn settings(report: &LengthReport) -> Vec<String> {
    let Some(at) = tables::shown(report).into_iter().next() else {
        return Vec::new();
    };
    let cost = cost(at.cost_ratio);
    let token = tables::found(at, Drafts::Sampled, "token");
    let block = tables::found(at, Drafts::Sampled, "block");
    let mut lines = Vec::new();
    if let (Some(token), Some(block)) = (token, block)
        && let Some(more) = tables::more(at, block, token)
    {
        lines.push(format!(
            "Block against token verification at c = {cost}, each at its own best length, {} and \
             {}: {}.",
            block.parameter,
            token.parameter,
            difference(&more)
        ));
    }
    for kind in [Drafts::OneHot, Drafts::ExactMatch] {
        let Some(one) = tables::found(at, kind, "token") else {
            continue;
        };
        let strict = kind == Drafts::ExactMatch;
        let [by_default, _] = engines_with(|here| {
            here.one && here.verifier == "exact-match" && (here.law == "top") != strict
        });
        let [sampling, told] = engines_with(|here| here.verifier == "token");
        let sampled = token.and_then(|token| {
            let more = tables::more(at, token, one)?;
            Some(format!(
                " Sampled drafts kept with min(1, p/q), as {} can be told to draft and {} does, \
                 with {}: {}.",
                listed(&told),
                listed(&sampling),
                counted(token.parameter as usize, "token"),
                difference(&more)
            ))
        });
        lines.push(format!(
            "{} drafts, the default of {}, at c = {cost}: {} a round, {}.{}",
            if strict { "Exact-match" } else { "One-hot" },
            listed(&by_default),
            counted(one.parameter as usize, "token"),
            times(one),
            sampled.unwrap_or_default()
        ));
    }
    lines
}

/// Why there is no length to set.
fn no_choice(report: &LengthReport) -> String {
    if report.of.without_draft > 0 {
        "No length is chosen: what each gives is known between bounds only, in the table of fixed \
         lengths."
            .to_owned()
    } else if report.of.clusters < 2 {
        "There is one prompt only. A length has to be chosen on some prompts and reported on \
         others: log more prompts."
            .to_owned()
    } else {
        "No verifier was asked for whose rounds can be replayed, so that no length is chosen: ask \
         for token or block."
            .to_owned()
    }
}

/// Whether a family does not look at the target, so that a decoder can run it.
fn is_blind(name: &str) -> bool {
    let known = FAMILIES.iter().find(|family| family.name == name);
    known.is_some_and(|family| {
        !matches!(
            family.decided_on,
            DecidedOn::BothRows | DecidedOn::TrueAcceptance
        )
    })
}

/// The policy that is quickest where it was chosen, of those that a decoder can run: they do
/// not look at the target. With a trained head, or without.
fn chosen_policy<'a>(at: &'a AtCost, fixed: &Chosen, head: bool) -> Option<&'a ChosenPolicy> {
    let has_head = |name: &str| {
        let known = FAMILIES.iter().find(|family| family.name == name);
        known.is_some_and(Family::needs_head)
    };
    (at.policies.iter())
        .filter(|one| is_blind(&one.policy) && has_head(&one.policy) == head)
        .filter(|one| fixed.drafts == Drafts::Sampled && one.verifier == fixed.verifier)
        .reduce(|best, one| {
            if best.speedup_where_chosen >= one.speedup_where_chosen {
                best
            } else {
                one
            }
        })
}

/// What rules that stop by themselves add to the best that needs nothing new.
fn against_fixed(report: &LengthReport) -> Vec<String> {
    // Without rollouts there is none but the schedule.
    if report.rollouts.is_none() {
        return Vec::new();
    }
    let of = |head: bool| {
        let parts: Vec<String> = tables::shown(report)
            .into_iter()
            .filter_map(|at| {
                let fixed = first(at)?;
                let one = chosen_policy(at, fixed, head)?;
                let shown = if is_worth(&one.over_fixed, &fixed.speedup) {
                    "worth it"
                } else if is_told(&one.over_fixed) {
                    "less than 1%: not worth it"
                } else if one.over_fixed.ci95[1] < 0.0 {
                    "slower"
                } else {
                    "no difference shown"
                };
                Some(format!(
                    "at c = {} {} at {}, {} more than {} ({shown})",
                    cost(at.cost_ratio),
                    one.policy,
                    one.parameter,
                    plus_minus(&one.over_fixed, 3),
                    counted(fixed.parameter as usize, "token")
                ))
            })
            .collect();
        let what = match head {
            true => "What a trained head that stops drafting adds to that speed-up",
            false => "What a rule that stops by itself and needs no head adds to that speed-up",
        };
        (!parts.is_empty()).then(|| format!("{what}: {}.", parts.join("; ")))
    };
    [false, true].into_iter().filter_map(of).collect()
}

fn times(chosen: &Chosen) -> String {
    format!("{} times", plus_minus(&chosen.speedup, 2))
}

fn points(report: &LengthReport) -> Vec<String> {
    let mut points = vec![format!(
        "A drafted token of the text is accepted with probability {} on average by token \
         verification.{}",
        plus_minus(&report.acceptance, 3),
        no_fewer(report)
    )];
    points.extend(above(report));
    if let Some(at) = &report.at_cost {
        let chosen = tables::found(at, Drafts::Sampled, "token").map(|one| one.speedup.mean);
        let share = chosen.map_or_else(String::new, |speed| {
            format!(
                "; the best length with it has {} of that",
                percent(speed / at.oracle.mean)
            )
        });
        points.push(format!(
            "At c = {} no choice of lengths with sampled drafts and token verification is more than {} \
             times as fast as the target alone{share}.",
            cost(at.cost_ratio),
            plus_minus(&at.oracle, 2)
        ));
    }
    points.extend(settings(report));
    points.extend(against_fixed(report));
    let known = report.results.iter();
    let known = known.filter(|row| row.policy == "fixed" && row.drafts == Drafts::Sampled);
    let known = known.filter_map(|row| Some((row, row.break_even_cost_ratio?)));
    // The first of those that are as high.
    let best = known.reduce(|best, one| if one.1.mean > best.1.mean { one } else { best });
    if let Some((row, ratio)) = best {
        points.push(format!(
            "Drafting pays below a cost of about c = {}, the break-even of fixed length {} with {} \
             verification.",
            decimals(ratio.mean, 2),
            row.parameter,
            row.verifier
        ));
    }
    points.extend(super::groups::sentence(report));
    let paths = report.draft_paths.as_ref();
    let logs = report.of.logs.iter().map(|log| log.name.as_str());
    points.extend(paths.and_then(|paths| draft_paths::sentence(paths, logs)));
    points
}

/// The least calls of any lossless rule of one path, however long its drafts.
fn no_fewer(report: &LengthReport) -> String {
    let rows = &report.bounds.fewest_calls;
    let unlimited = rows.iter().find(|row| row.most.is_none());
    unlimited.map_or_else(String::new, |row| {
        format!(
            " No lossless rule of one path makes fewer than {} target calls a token over all rounds \
             of a text, however long its drafts.",
            plus_minus(&row.verification_rate, 3)
        )
    })
}

/// How far rules are from the least calls with as many drafts a round.
fn above(report: &LengthReport) -> Option<String> {
    let rows = report.bounds.fewest_calls.iter();
    let known: Vec<_> = rows.filter(|row| !row.above.is_empty()).collect();
    // One that is in use, where it is asked for.
    let usual = |most: u64| known.iter().find(|row| row.most == Some(most));
    let row = usual(4).or_else(|| usual(1)).or(known.first())?;
    let parts: Vec<String> = (row.above.iter())
        .map(|one| {
            let percent = |value: f64| format!("{}%", decimals(100.0 * value, 1));
            let [low, high] = one.more_calls.ci95;
            format!(
                "{} {} more ({} to {})",
                one.rule,
                percent(one.more_calls.mean),
                percent(low),
                percent(high)
            )
        })
        .collect();
    Some(format!(
        "With at most {} a round no lossless rule of one path makes fewer than {} target calls a \
         token; of rules that draft as many every round, {}.",
        counted(row.most? as usize, "draft"),
        plus_minus(&row.verification_rate, 3),
        listed(&parts)
    ))
}

fn unlisted(report: &LengthReport) -> Option<String> {
    if report.of.without_draft > 0 {
        return Some(format!(
            "At {} of the text's {} positions the log has no row of the draft, as behind drafts \
             that were all accepted. A draft there is accepted with a probability between 0 and 1: \
             “a to b” bounds what all rows would give. To choose a length, score the texts that \
             came out with both models (docs/guide/engines.md).",
            count(report.of.without_draft),
            count(report.of.positions)
        ));
    }
    if report.of.unlisted > 0 {
        return Some(format!(
            "Rows list only some tokens, and {} of the text's {} tokens are not among them. Their \
             acceptance is taken from the mass of all tokens that are not listed; “in [a, b]” \
             bounds what full rows would give, where such bounds are known.",
            count(report.of.unlisted),
            count(report.of.positions)
        ));
    }
    report.acceptance.truncation.map(|_| {
        "Rows list only some tokens, and the mass of the others is known between bounds only; “in \
         [a, b]” bounds what full rows would give, where such bounds are known."
            .to_owned()
    })
}
