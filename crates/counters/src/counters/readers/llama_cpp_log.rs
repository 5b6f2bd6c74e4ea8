//! The log of llama.cpp's server: a line behind each request.
//!
//! Looked up in llama.cpp's `tools/server/server-context.cpp` as of b10902. The line is `draft
//! acceptance = 0.57576 (  171 accepted /   297 generated), mean len =  2.73`; older servers write
//! `draft acceptance rate = 0.57576 (  171 accepted /   297 generated)` and no more. At trace
//! verbosity `acc per pos = (0.800, 0.600)` follows.
//!
//! Behind it stand `statistics` lines, one a drafter, which count everything since the server started:
//! `#gen drafts` are rounds, `#gen tokens` and `#acc tokens` drafted and accepted ones. What a line has
//! more than the one before it is the request's, to the round.

use super::read::{Text, by_rates, rates, whole, word};
use crate::counters::counted::{Counted, CountersError, Rounds, Source};
use std::collections::BTreeMap;

/// What begins a line, behind the server's own prefix.
const LINE: &str = "draft acceptance";

/// Names of the mean length, with the bonus token.
const LENGTHS: [&str; 2] = ["mean len = ", "mean acceptance length = "];

/// Names of the rates by place.
const PLACES: [&str; 2] = ["acc per pos = (", "acceptance rate per position = ("];

/// What ends a number.
const ENDS: [char; 2] = [',', ' '];

pub(super) fn is_it(text: &str) -> bool {
    text.lines()
        .any(|line| accepted(line).is_some() || statistics(line).is_some())
}

/// What a line says of a request.
struct Line {
    index: usize,
    accepted: f64,
    drafted: f64,
    length: Option<f64>,
    rates: Option<Vec<f64>>,
}

/// Accepted and drafted tokens of a line that has them.
fn accepted(line: &str) -> Option<[f64; 2]> {
    let (_, rest) = line.split_once(LINE)?;
    let (_, rest) = rest.split_once('(')?;
    let (accepted, rest) = rest.split_once(" accepted /")?;
    let (drafted, _) = rest.split_once(" generated)")?;
    Some([whole(accepted)?, whole(drafted)?])
}

/// Rates by place behind one of some names.
fn rates_behind(line: &str, names: &[&str]) -> Option<Vec<f64>> {
    let (_, list) = names.iter().find_map(|name| line.split_once(name))?;
    rates(list.split_once(')')?.0)
}

fn lines(file: &Text<'_>) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some([accepted, drafted]) = accepted(line) {
            let length = word(line, &LENGTHS, char::is_whitespace, &ENDS)
                .and_then(|word| word.trim().parse().ok());
            all.push(Line {
                index,
                accepted,
                drafted,
                length: length.filter(|length: &f64| length.is_finite()),
                rates: rates_behind(line, &PLACES),
            });
        } else if let Some(found) = rates_behind(line, &PLACES)
            && let Some(last) = all.last_mut()
            && last.rates.is_none()
        {
            last.rates = Some(found);
        }
    }
    all
}

/// What a drafter has counted since the server started.
struct Statistics<'a> {
    drafter: &'a str,
    rounds: f64,
    drafted: f64,
    accepted: f64,
    rates: Option<Vec<f64>>,
}

fn statistics(line: &str) -> Option<Statistics<'_>> {
    let (_, rest) = line.split_once("statistics ")?;
    let (drafter, rest) = rest.split_once(':')?;
    let sign = |c: char| matches!(c, ' ' | '=');
    let count = |name: &str| {
        let count: u64 = word(rest, &[name], sign, &ENDS)?.parse().ok()?;
        Some(count as f64)
    };
    Some(Statistics {
        drafter: drafter.trim(),
        rounds: count("#gen drafts")?,
        drafted: count("#gen tokens")?,
        accepted: count("#acc tokens")?,
        rates: rates_behind(rest, &["#acc rate/pos = ("]),
    })
}

/// What the statistics count of one drafter: of each request, if every line of a request has one behind
/// it that agrees, or of all together.
struct Known {
    requests: Option<Vec<Rounds>>,
    total: Rounds,
    /// Other drafters, which had rounds too.
    others: Vec<String>,
}

fn known(
    file: &Text<'_>,
    lines: &[Line],
    chosen: &[(String, String)],
) -> Result<Option<Known>, CountersError> {
    let all: Vec<Statistics<'_>> = file.text.lines().filter_map(statistics).collect();
    let mut last: BTreeMap<&str, f64> = BTreeMap::new();
    for one in &all {
        last.insert(one.drafter, one.rounds);
    }
    let most = last.iter().max_by(|a, b| a.1.total_cmp(b.1));
    let Some((&most, _)) = most.filter(|(_, rounds)| **rounds > 0.0) else {
        return Ok(None);
    };
    let drafter = match chosen.first() {
        None => most,
        Some((_, name)) if last.contains_key(name.as_str()) => name,
        Some((key, name)) => {
            let names: Vec<&str> = last.keys().copied().collect();
            let names = names.join(", ");
            return Err(file.refused(format!("no drafter is {key}={name}; there are {names}")));
        }
    };
    let mut before = [0.0; 3];
    let mut parts: Vec<Rounds> = Vec::new();
    for one in all.iter().filter(|one| one.drafter == drafter) {
        let now = [one.rounds, one.drafted, one.accepted];
        // A server that started again counts from 0.
        if now.iter().zip(before).any(|(now, before)| *now < before) {
            before = [0.0; 3];
        }
        let [rounds, drafted, accepted] = [0, 1, 2].map(|at| now[at] - before[at]);
        // Rates are of everything so far.
        let rates = one.rates.as_ref().filter(|_| before[0] == 0.0);
        if rounds > 0.0 {
            let reached = rates.map(|rates| by_rates(rates, rounds, DIGIT));
            parts.push(Rounds::new(rounds, Some(drafted), accepted, reached));
        }
        before = now;
    }
    let agrees = |(line, part): (&&Line, &mut Rounds)| {
        if let Some(rates) = &line.rates {
            part.reached = Some(by_rates(rates, part.rounds, DIGIT));
        }
        (line.accepted, Some(line.drafted)) == (part.accepted, part.drafted)
    };
    let drafted: Vec<&Line> = lines.iter().filter(|line| line.drafted > 0.0).collect();
    let total = Rounds::sum(&parts);
    let agree = drafted.len() == parts.len() && drafted.iter().zip(&mut parts).all(agrees);
    let others = last
        .iter()
        .filter(|(name, rounds)| **name != drafter && **rounds > 0.0);
    Ok(Some(Known {
        requests: agree.then_some(parts),
        total,
        others: others.map(|(name, _)| (*name).to_owned()).collect(),
    }))
}

/// Rates by place have three digits.
const DIGIT: f64 = 0.0005;

pub(super) fn read(
    files: &[Text<'_>],
    chosen: &[(String, String)],
) -> Result<Counted, CountersError> {
    let mut read = Counted::of(Source::LlamaCppLog, Vec::new());
    read.by_request = true;
    let mut totals = Vec::new();
    let mut rounded = false;
    let mut without = Vec::new();
    for file in files {
        let lines = lines(file);
        let known = known(file, &lines, chosen)?;
        if lines.is_empty() && known.is_none() {
            return Err(file.refused(format!("has no line of the server that says {LINE}")));
        }
        if let Some(known) = &known
            && !known.others.is_empty()
        {
            let words = format!(
                "Other drafters had rounds too, which are not counted: {}; --where drafter=NAME takes one.",
                known.others.join(", ")
            );
            read.note("other-drafters", words);
        }
        match known {
            Some(Known {
                requests: Some(requests),
                ..
            }) => read.clusters.extend(requests),
            Some(known) if lines.iter().any(|line| line.length.is_none()) || lines.is_empty() => {
                totals.push(known.total);
            }
            _ => {
                rounded = true;
                of_lines(file, &lines, &mut read, &mut without)?;
            }
        }
    }
    if !totals.is_empty() {
        totals.append(&mut read.clusters);
        read.clusters.push(Rounds::sum(&totals));
        read.by_request = false;
    }
    // Whose number of rounds no length tells.
    let sum = |of: fn(&Rounds) -> f64| read.clusters.iter().map(of).sum::<f64>();
    let (rounds, drafted) = (sum(|one| one.rounds), sum(|one| one.drafted.unwrap_or(0.0)));
    if rounds == 0.0 {
        return Err(CountersError::Together(
            "no request of the log has an accepted draft, so that the number of drafts is not \
             known; GET /metrics has it"
                .to_owned(),
        ));
    }
    for &few in without.iter().filter(|&&few| few > 0.0) {
        let rounds = (few * rounds / drafted).round().max(1.0);
        let one = Rounds::new(rounds, Some(few), 0.0, Some(Vec::new()));
        read.clusters.push(one);
    }
    if rounded {
        let words = "The lines of requests have no number of drafts: it is accepted drafts by the mean length less \
            1, which is printed with two digits, so that lengths are off by up to .005; GET /metrics of the \
            server (--metrics) has whole counts, and so have the statistics lines of newer servers.";
        read.note("rounded", words);
    }
    Ok(read)
}

/// What the lines of requests say by themselves.
fn of_lines(
    file: &Text<'_>,
    lines: &[Line],
    read: &mut Counted,
    without: &mut Vec<f64>,
) -> Result<(), CountersError> {
    for line in lines {
        let (accepted, drafted) = (line.accepted, line.drafted);
        let refused = |message: String| file.refused_at(line.index, message);
        let Some(length) = line.length else {
            return Err(file.refused(unknown(lines, line.index + 1)));
        };
        if accepted == 0.0 {
            without.push(drafted);
            continue;
        }
        if length <= 1.0 {
            return Err(refused(format!(
                "{accepted} drafts are accepted, and the mean length is {length}, without any"
            )));
        }
        let rounds = (accepted / (length - 1.0)).round().max(1.0);
        if rounds > drafted {
            return Err(refused(format!(
                "{accepted} accepted drafts at a mean length of {length} are {rounds} rounds, and \
                 {drafted} tokens are drafted"
            )));
        }
        let reached = (line.rates.as_ref()).map(|rates| by_rates(rates, rounds, 0.0));
        let one = Rounds::new(rounds, Some(drafted), accepted, reached);
        one.check().map_err(refused)?;
        read.clusters.push(one);
    }
    Ok(())
}

/// Says what can be known of lines without a mean length.
fn unknown(lines: &[Line], number: usize) -> String {
    let sum = |of: fn(&Line) -> f64| lines.iter().map(of).sum::<f64>();
    let (accepted, drafted) = (sum(|line| line.accepted), sum(|line| line.drafted));
    format!(
        "line {number} lacks the number of drafts: it has accepted and drafted tokens alone, in all \
         {accepted} of {drafted}, a rate of {:.3}. The same rate is another length for each K. \
         Newer servers print the mean length there, and GET /metrics (--metrics) counts the drafts",
        accepted / drafted.max(1.0)
    )
}
