//! The page of several logs side by side, from a [`LogComparison`].
//!
//! [`page`] alone decides what stands on it. Where a later log holds the same text as the
//! first, differences are of the same positions; where it does not, the page says so before
//! any number.
//!
//! # Example
//! ```no_run
//! use specgap_measure::LogComparison;
//! use specgap_report::compare::page;
//!
//! let comparison: LogComparison = serde_json::from_slice(&std::fs::read("report.json")?)?;
//! std::fs::write("report.html", page(&comparison).html()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod drafts;
mod select;

use self::select::{headline_drafts, headline_temperature, is_file_of, names, temperatures};
use super::certainty::{
    ALPHA, BETWEEN, Tally, exactness, is_kind, meanings, signed_entry, signed_plus_minus,
};
use super::columns::head;
use super::sections::shown;
use super::{cautions, sections};
use crate::advice::{Said, of_draft, of_logs};
use crate::gap::cuts::served;
use specgap_base::glossary;
use specgap_base::once::grouped;
use specgap_measure::{AgainstFirst, ComparedLog, ComparedRate, LogComparison, LogDifference};
use specgap_number::known::Kind;
use specgap_page::table::{Column, Entry, Row, Table};
use specgap_page::words::{count, counted, listed, temperature};
use specgap_page::{Block, Link, Page, Section};
use specgap_statistics::Estimate;
use specgap_statistics::advice::Change;
use std::cmp::Ordering;

/// The comparison as a page.
pub fn page(comparison: &LogComparison) -> Page {
    Page {
        title: title(comparison),
        subtitle: subtitle(comparison),
        lead: lead(comparison),
        sections: [
            rates(comparison),
            logs(comparison),
            definitions(comparison),
            made_by(comparison),
        ]
        .into(),
        next: super::advice::after_logs(comparison),
        papers: drafts::tables(comparison),
    }
    .picture_first()
}

/// The names that logs go by here, each another one.
fn folders(comparison: &LogComparison) -> impl Iterator<Item = &str> {
    comparison.logs.iter().map(|log| log.folder.as_str())
}

/// The later logs, with their number and what they have in common with the first.
fn later(comparison: &LogComparison) -> impl Iterator<Item = (usize, &ComparedLog, &AgainstFirst)> {
    let logs = (0..).zip(&comparison.logs);
    logs.filter_map(|(number, log)| Some((number, log, log.against_first.as_ref()?)))
}

fn first(comparison: &LogComparison) -> &str {
    folders(comparison).next().unwrap_or_default()
}

/// Names of logs up to which a title lists them.
const MOST_NAMES: usize = 3;

fn title(comparison: &LogComparison) -> String {
    let names: Vec<&str> = folders(comparison).collect();
    match names.len() <= MOST_NAMES {
        true => format!("Acceptance compared: {}", listed(&names)),
        false => format!("Acceptance compared: {}", counted(names.len(), "log")),
    }
}

/// The models of each log, where it names them; the target once, if it is one.
fn subtitle(comparison: &LogComparison) -> String {
    let models: Vec<[&str; 3]> = (comparison.logs.iter())
        .filter_map(|log| Some([&log.folder, log.target.as_deref()?, log.draft.as_deref()?]))
        .collect();
    let own = |[folder, _, draft]: &[&str; 3]| {
        // A log is named as its draft is, if that is all that tells it from others.
        match is_file_of(draft, folder) {
            true => (*draft).to_owned(),
            false => format!("{draft} ({folder})"),
        }
    };
    match models.as_slice() {
        [] => String::new(),
        [[_, target, _], rest @ ..] if rest.iter().all(|one| one[1] == *target) => {
            let drafts: Vec<String> = models.iter().map(own).collect();
            format!("target {target} · drafts {}", drafts.join(", "))
        }
        _ => {
            let all = models.iter();
            let said = all
                .map(|[folder, target, draft]| format!("{folder}: target {target}, draft {draft}"));
            said.collect::<Vec<_>>().join(" · ")
        }
    }
}

fn lead(comparison: &LogComparison) -> Vec<Block> {
    let first = first(comparison);
    let not_drawn: Vec<Block> = not_drawn(comparison).collect();
    let said = advice(comparison).filter(|_| not_drawn.is_empty());
    // Of many logs the table says it, where something else leads.
    let each = comparison.logs.len() <= MOST_NAMES || said.is_none();
    // The draft that gains most leads.
    let gain = |number: usize| {
        let at = headline_temperature(comparison)?;
        let one_draft = (comparison.rates.iter()).find(|rate| {
            rate.temperature == at && rate.drafts.is_none() && rate.verifier.is_none()
        });
        let difference = one_draft?.differences.get(number)?.as_ref()?;
        Some(-difference.estimate.mean)
    };
    let mut others: Vec<_> = later(comparison).filter(|_| each).collect();
    others.sort_by(|a, b| gain(a.0).partial_cmp(&gain(b.0)).unwrap_or(Ordering::Equal));
    let mut points: Vec<String> = (others.into_iter())
        .filter_map(|later| headline_sentence(comparison, later))
        .collect();
    if let Some(said) = &said {
        // Which draft comes before what to do with one.
        let changes = [&said.others, &said.not_worth].into_iter().flatten();
        points.push(said.verdict.clone());
        points.extend(changes.cloned());
    }
    let mut blocks = Vec::new();
    if not_drawn.is_empty() && !points.is_empty() {
        blocks.push(Block::Paragraph(points.remove(0)));
    }
    blocks.push(Block::Paragraph(format!(
        "Each log is measured by itself, and every later one is compared with the first, {first}\
         {}. ±: 95%.",
        served(comparison.served, &temperatures(comparison))
    )));
    blocks.extend(pairings(comparison));
    blocks.extend(other_targets(comparison).map(Block::Caution));
    blocks.extend(cautions(comparison).into_iter().map(Block::Caution));
    if !not_drawn.is_empty() {
        return not_drawn.into_iter().chain(blocks).collect();
    }
    if !points.is_empty() {
        blocks.push(Block::List(points));
    }
    blocks
}

/// Says what changes are worth on these logs, at the temperature and with the number of drafts that
/// summaries speak of.
fn advice(comparison: &LogComparison) -> Option<Said> {
    let at = headline_temperature(comparison)?;
    let n = headline_drafts(comparison).unwrap_or(1);
    let logs: Vec<(&str, &[Change])> = (comparison.logs.iter())
        .map(|log| (log.folder.as_str(), log.advice.as_slice()))
        .collect();
    of_logs(&logs, comparison.engine.as_ref(), at, n)
}

/// Logs whose text was not drawn from their rows, or whose draft's rows are about other positions.
fn not_drawn(comparison: &LogComparison) -> impl Iterator<Item = Block> {
    comparison.logs.iter().flat_map(|log| {
        let found = [
            cautions::not_drawn(log.surprise.as_ref()),
            cautions::strange_draft(log.fit.as_ref()),
        ];
        let texts = found.into_iter().flatten();
        texts.map(|text| Block::Caution(format!("{}: {text}", log.folder)))
    })
}

/// Something that may be said of a log.
type SaysOf = fn(&ComparedLog) -> Option<String>;

/// Says what has to be known of the logs: once where it is the same of all, else with their names.
fn cautions(comparison: &LogComparison) -> Vec<String> {
    let says: [SaysOf; 6] = [
        |log| cautions::unfinished([log.unfinished].into_iter()),
        |log| cautions::missing([log.missing_mass].into_iter()),
        |log| cautions::masked(log.masked),
        |log| cautions::repeated(log.repeated_positions),
        |log| cautions::looping([(log.positions, log.repetition)].into_iter()),
        |log| cautions::parallel(log.parallel),
    ];
    let mut all = Vec::new();
    for say in says {
        let logs = comparison.logs.iter();
        let said = logs.filter_map(|log| Some((say(log)?, log.folder.as_str())));
        all.extend(grouped(said).into_iter().map(|(text, names)| {
            match names.len() == comparison.logs.len() {
                true => text,
                false => format!("{}: {text}", listed(&names)),
            }
        }));
    }
    all
}

/// Says which later logs are of the text of the first, in a sentence for all that have as much in
/// common with it, and which are not.
fn pairings(comparison: &LogComparison) -> Vec<Block> {
    let first = first(comparison);
    let each = later(comparison).map(|(_, log, against)| (against, log.folder.as_str()));
    let groups = grouped(each);
    let all = later(comparison).count();
    let block = |(against, names): &(&AgainstFirst, Vec<&str>)| {
        let who = match names.len() {
            1 => format!("{} and {first} are", names.concat()),
            many if many == all => format!("All later logs and {first} are"),
            _ => format!("{} and, each by itself, {first} are", names.join(", ")),
        };
        match &against.why {
            None => Block::Paragraph(format!(
                "{who} paired: differences are over {} of {} that are of the same text in both.",
                counted(against.positions, "position"),
                counted(against.prompts, "prompt"),
            )),
            Some(why) => Block::Caution(format!(
                "{who} not paired: {why}. Their differences are of the two means, with intervals \
                 that take the logs for independent samples."
            )),
        }
    };
    groups.iter().map(block).collect()
}

/// Says how far a log's overlap and optima are from the first one's: at the temperature and with
/// the number of drafts that summaries speak of.
fn headline_sentence(
    comparison: &LogComparison,
    (number, log, against): (usize, &ComparedLog, &AgainstFirst),
) -> Option<String> {
    let at = headline_temperature(comparison)?;
    let drafts = headline_drafts(comparison);
    let differences = |n: Option<usize>| {
        let rates = comparison.rates.iter().filter(move |rate| {
            rate.temperature == at && rate.drafts == n && rate.verifier.is_none()
        });
        rates.filter_map(move |rate| Some((rate, rate.differences.get(number)?.as_ref()?)))
    };
    let said = |difference: &LogDifference| {
        let doubt = match difference.estimate.side().is_none() {
            true => " (not told apart)",
            false => "",
        };
        format!("{}{doubt}", signed_plus_minus(&difference.estimate))
    };
    let first = comparison.logs.first()?;
    // Drafts of one text; not the same log at several depths.
    let is_choice = against.paired && (log.files.is_empty() || log.files != first.files);
    let mut parts: Vec<String> = differences(None)
        .map(|(_, difference)| match is_choice {
            true => of_draft(&first.folder, &log.folder, &difference.estimate),
            false => format!(
                "{} minus {}: overlap {}",
                log.folder,
                first.folder,
                said(difference)
            ),
        })
        .collect();
    let optima: Vec<String> = differences(drafts)
        .filter_map(|(rate, difference)| {
            Some(format!("{} {}", rate.scheme.as_ref()?, said(difference)))
        })
        .collect();
    if let Some(n) = drafts.filter(|_| !optima.is_empty()) {
        parts.push(format!(
            "what is possible with {}: {}",
            counted(n, "draft"),
            optima.join(", ")
        ));
    }
    (!parts.is_empty()).then(|| format!("{} (T = {}).", parts.join("; "), temperature(at)))
}

/// `T = 1.0, n = 3, greedy`.
fn place(rate: &ComparedRate) -> String {
    let mut words = vec![format!("T = {}", temperature(rate.temperature))];
    words.extend(rate.drafts.map(|n| format!("n = {n}")));
    words.extend(rate.scheme.clone());
    words.join(", ")
}

fn what(rate: &ComparedRate) -> &str {
    match (rate.what.as_str(), &rate.verifier) {
        (_, Some(verifier)) => verifier,
        ("overlap", None) => "the overlap",
        (_, None) => "α*",
    }
}

fn rates(comparison: &LogComparison) -> Section {
    let tables = temperatures(comparison).into_iter();
    shown(
        "rates | Rates | What each log gives, and how far the later ones are from the first.",
        tables.map(|at| table(comparison, at)),
    )
}

/// All rates at a temperature.
fn table(comparison: &LogComparison, at: f64) -> Table {
    let mut columns = head("drafts and verifier");
    let names = names(comparison);
    let of = |number: usize| names.get(number).copied().unwrap_or_default();
    columns.extend((names.iter()).map(|name| Column::number(*name).over("mean")));
    let minus = format!("minus {}", of(0));
    columns.extend(
        later(comparison).map(|(number, _, _)| Column::number(of(number)).over(minus.clone())),
    );
    let caption = format!("Acceptance rates in percent at T = {}", temperature(at));
    let mut table = Table::new(format!("rates-t{}", temperature(at)), caption, columns);
    let mut tally = Tally::default();
    let here = || comparison.rates.iter().filter(|one| one.temperature == at);
    for rate in here() {
        let row = row(comparison, rate, &mut tally);
        let title = rate.drafts.map_or_else(
            || "one draft".to_owned(),
            |n| format!("n = {n}, {}", rate.scheme.as_deref().unwrap_or_default()),
        );
        match table.groups.last_mut() {
            Some(group) if group.title.as_ref() == Some(&title) => group.rows.push(row),
            _ => table.group(
                title,
                vec![row],
                rate.drafts.is_none() || rate.drafts == headline_drafts(comparison),
            ),
        }
    }
    let is_told = |rate: &ComparedRate| {
        later(comparison).any(|one| told(rate, one.0).is_some_and(|one| one.1))
    };
    let estimates = |rate: &ComparedRate, is: fn(&Estimate) -> bool| {
        let all = rate.estimates.iter().flatten();
        all.into_iter().any(|one| is(&one.estimate))
    };
    let is_between = |rate: &ComparedRate| estimates(rate, |one| one.between.is_some());
    let is_bounded = |rate: &ComparedRate| estimates(rate, |one| one.truncation.is_some());
    let notes = [
        Some(format!(
            "{ALPHA} Means are over all positions of each log, differences over those that are the same \
             where logs are paired."
        )),
        here().any(is_told).then(|| {
            "Bold: the 95% interval of the difference does not hold 0. Nothing is corrected for \
             the number of differences."
                .to_owned()
        }),
        (comparison.rates.iter().any(is_between)).then(|| BETWEEN.to_owned()),
        here().any(is_bounded).then(|| {
            "Rows list some tokens only: bounds of what full rows would give, whatever the others are, \
             stand behind each number. a to b: such bounds alone, where they are further apart than ±."
                .to_owned()
        }),
        Some(tally.line()),
    ];
    table.notes(notes)
}

/// A rate in all logs, and how far the later ones are from the first.
fn row(comparison: &LogComparison, rate: &ComparedRate, tally: &mut Tally) -> Row {
    let name = match &rate.verifier {
        None if rate.what == "optimum" => "α*, the optimum",
        None => "overlap",
        Some(verifier) => verifier,
    };
    let mut entries = vec![Entry::plain(name)];
    entries.extend(rate.estimates.iter().map(|one| {
        let name = format!("{} of {}", what(rate), place(rate));
        let one = one.as_ref();
        one.map(|one| tally.entry(&one.estimate, one.kind, one.width_max, name))
            .into()
    }));
    entries.extend(later(comparison).map(|(number, _, _)| {
        let entry = told(rate, number).map(|(one, is_told)| {
            let how = exactness(one.kind, one.width_max);
            signed_entry(&one.estimate, &how).bold(is_told)
        });
        Entry::from(entry)
    }));
    match rate.verifier {
        None => Row::reference(entries),
        Some(_) => Row::new(entries),
    }
}

/// How far a later log is from the first, and whether that is told apart from 0.
fn told(rate: &ComparedRate, number: usize) -> Option<(&LogDifference, bool)> {
    let one = rate.differences.get(number)?.as_ref()?;
    Some((one, one.estimate.side().is_some()))
}

fn logs(comparison: &LogComparison) -> Section {
    let mut columns = head("");
    columns.extend(folders(comparison).map(Column::words));
    let rows: [(&str, SaysOf); 6] = [
        ("target", |log| log.target.clone()),
        ("draft", |log| log.draft.clone()),
        ("V", |log| Some(count(log.vocabulary))),
        ("positions", |log| Some(count(log.positions))),
        ("intervals count", |log| {
            Some(counted(log.clusters, &log.cluster_unit))
        }),
        ("paired with the first", |log| {
            let against = log.against_first.as_ref()?;
            Some(match against.paired {
                true => counted(against.positions, "position"),
                false => "no".to_owned(),
            })
        }),
    ];
    let rows = rows.map(|(name, say)| {
        let entries = comparison.logs.iter().map(|log| say(log).into());
        Row::new(std::iter::once(Entry::plain(name)).chain(entries))
    });
    let links = comparison.logs.iter().map(|log| Link {
        text: format!("{}: its own report", log.folder),
        file: format!("{}/report", log.folder),
    });
    shown(
        "logs | Logs | What is compared, and where each log's own report is.",
        [Table::new("logs", "What is compared", columns).rows(rows)],
    )
    .with([Block::Links(links.collect())])
}

/// Says what stands on this page.
fn definitions(comparison: &LogComparison) -> Section {
    let mut words = glossary::of::<Vec<_>>("compare");
    let is_shown = |word: &str| match word.split_once(' ') {
        Some(("scheme", name)) => {
            (comparison.rates.iter()).any(|rate| rate.scheme.as_deref() == Some(name))
        }
        Some(("verifier", name)) => {
            (comparison.rates.iter()).any(|rate| rate.verifier.as_deref() == Some(name))
        }
        _ => {
            let of_rates = ["acceptance", "optimal acceptance rate", "overlap"];
            of_rates.contains(&word) || word == "position" || word == "temperature"
        }
    };
    let all = specgap_measure::definitions(1).into_iter();
    words.extend(all.filter(|(word, _)| !is_kind(word) && is_shown(word)));
    let kinds: Vec<Kind> = (comparison.rates.iter())
        .flat_map(|rate| rate.estimates.iter().flatten())
        .map(|one| one.kind)
        .collect();
    words.extend(meanings(&kinds));
    sections::definitions("What the words and numbers on this page mean.", words)
}

fn made_by(comparison: &LogComparison) -> Section {
    let tool = format!("{}, report schema {}.", comparison.tool, comparison.schema);
    specgap_page::made_by(&comparison.command, tool)
}

/// Says that logs are not of one target, where both name theirs.
fn other_targets(comparison: &LogComparison) -> Option<String> {
    let target = comparison.logs.first()?.target.as_ref()?;
    let others = comparison.logs.iter().filter_map(|log| {
        let other = log.target.as_ref().filter(|other| *other != target)?;
        Some(format!("{} {other}", log.folder))
    });
    let others: Vec<String> = others.collect();
    (!others.is_empty()).then(|| {
        format!(
            "The logs are not of one target: {} has {target}, {}. A difference then says nothing \
             of the drafts alone.",
            first(comparison),
            listed(&others)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> LogComparison {
        let shipped = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../reports/ladder/report.json"
        );
        serde_json::from_slice(&std::fs::read(shipped).unwrap()).unwrap()
    }

    #[test]
    fn of_many_logs_the_first_screen_says_what_to_change() {
        let sentences = |logs: usize| {
            let mut compared = shipped();
            compared.logs.truncate(logs);
            let text = page(&compared).markdown();
            text.matches("what is possible with 3 drafts").count()
        };
        assert_eq!([2, 3, 4, 8].map(sentences), [1, 2, 0, 0]);
    }

    #[test]
    fn logs_of_other_targets_are_named() {
        let shipped = shipped();
        let cautions = |targets: &[Option<&str>]| {
            let mut compared = shipped.clone();
            compared.logs.truncate(targets.len());
            let named = targets.iter().zip(["a", "b", "c"]);
            for (log, (target, name)) in compared.logs.iter_mut().zip(named) {
                log.target = target.map(str::to_owned);
                log.folder = name.to_owned();
            }
            let words = lead(&compared).into_iter().filter_map(|block| match block {
                Block::Caution(words) if words.starts_with("The logs are") => Some(words),
                _ => None,
            });
            words.collect::<Vec<_>>()
        };
        assert_eq!(
            cautions(&[Some("big"), Some("big"), Some("huge")]),
            [
                "The logs are not of one target: a has big, c huge. A difference then says nothing \
                 of the drafts alone."
            ]
        );
        assert!(cautions(&[Some("big"), None, Some("big")]).is_empty());
        assert!(cautions(&[None, Some("big")]).is_empty());
    }
}
