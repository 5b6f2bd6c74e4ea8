//! The page of `specgap counters`, from a [`CountersReport`].
//!
//! [`page`] alone decides what stands on it and in which order: which length to set, every length
//! with how it is known, then what has to be known of the counts and what they cannot say.

use super::advice::of_counts;
use super::certainty::{in_percent, point};
use super::columns::{head, head_if};
use super::length::numbers::{cost, decimals, entry, maybe, plus_minus, rate_entry};
use super::sections::{definitions, shown};
use specgap_counters::counters::{
    AtLength, Best, CountersReport, GroupCounts, Kind, Served, ToolDefinition, tool_definitions,
};
use specgap_page::plot::{Axis, Line, LinePlot, Stroke};
use specgap_page::table::{Entry, Row, Table};
use specgap_page::words::{counted, listed, percent, range};
use specgap_page::{Block, Fact, Figure, Page, Section, made_by};
use specgap_statistics::Estimate;
use specgap_statistics::advice::Verdict;

/// The report as a page.
pub fn page(report: &CountersReport) -> Page {
    let served = &report.served;
    let of = match report.length {
        Some(length) => {
            let drafted = served.drafted_per_round;
            let short = drafted.is_some_and(|drafted| drafted < length as f64 - 1e-9);
            let to = if short { "up to " } else { "" };
            format!("rounds of {to}{}", counted(length, "draft"))
        }
        None => "rounds of several lengths".to_owned(),
    };
    let length = plus_minus(&served.acceptance_length, 3);
    let words = report.definitions.iter();
    let words = words.map(|(word, meaning)| (word.clone(), format!("{meaning}.")));
    let sections = [
        lengths(report),
        by_group(report),
        by_cost(report),
        by_batch(report),
        Some(ran(report)),
        Some(Section::new(
            "unknown",
            "What no counter can say",
            "Counts are of one engine's rule on its own text.",
            [Block::List(report.unknown.clone())],
        )),
        Some(tools()),
        Some(definitions("What every number is.", words.collect())),
        Some(made_by(
            &report.command,
            format!(
                "specgap {}, report schema {}.",
                specgap_log::log::version(),
                report.schema
            ),
        )),
    ];
    let notes = report.notes.iter();
    let notes = notes.map(|note| Block::Caution(format!("{}: {}", note.name, note.says)));
    Page {
        title: format!("Counters: {of} put out {length} tokens"),
        subtitle: format!("{}, from {}", numbers(report), report.source.words()),
        lead: std::iter::once(Block::Paragraph(advice(report)))
            .chain(notes)
            .collect(),
        sections: sections.into_iter().flatten().collect(),
        next: super::advice::after_counters(report),
        papers: Vec::new(),
    }
    .picture_first()
}

fn numbers(report: &CountersReport) -> String {
    let served = &report.served;
    let rounds = match served.rounds {
        Some(rounds) => format!("{rounds:.0} rounds with drafts"),
        None => "rates alone".to_owned(),
    };
    match served.requests {
        Some(requests) => format!("{rounds} of {}", counted(requests, "request")),
        None => rounds,
    }
}

/// Says what to set, and how sure that is.
fn advice(report: &CountersReport) -> String {
    if report.lengths.is_empty() {
        return format!(
            "Nothing follows for any one draft length. The rounds that ran put out {} tokens each, the \
             bonus token included.",
            plus_minus(&report.served.acceptance_length, 3)
        );
    }
    if let Some(best) = &report.best {
        return verdict(report, best);
    }
    if report.notes.iter().any(|note| note.name == "few-rounds") {
        return "These are too few rounds to choose a length by. Count some hundred, and ask again."
            .to_owned();
    }
    if !report.by_batch.is_empty() {
        return by_batch_advice(report);
    }
    let range = (report.by_cost.first()).zip(report.by_cost.last());
    let known = range.map_or_else(String::new, |(cheap, dear)| {
        if cheap.best.length == dear.best.length {
            return format!(
                " From c = {} to {} it is K = {}.",
                cost(cheap.cost_ratio),
                cost(dear.cost_ratio),
                cheap.best.length
            );
        }
        format!(
            " Between c = {} and {} it is K = {} down to {}: the table by cost has more.",
            cost(cheap.cost_ratio),
            cost(dear.cost_ratio),
            cheap.best.length,
            dear.best.length
        )
    });
    format!(
        "Give --cost-ratio C, the time of a draft step over that of a target step, or --timings FILE \
         to be told which length to set.{known}"
    )
}

fn by_batch_advice(report: &CountersReport) -> String {
    let is_open = |best: &Best| best.alike.iter().any(|&length| length != best.length);
    let open = report.by_batch.iter().filter(|at| is_open(&at.best));
    let open: Vec<String> = open.map(|at| at.batch.to_string()).collect();
    let to = "vLLM's num_speculative_tokens_per_batch_size to the list below.";
    if open.is_empty() {
        return format!("Set {to}");
    }
    let batches = listed(&open);
    format!(
        "Try {to} At batch size {batches} the counts do not tell which length is quickest: run the list, and \
         count again."
    )
}

/// Says how much quicker that length is, and between what that lies.
fn speed(best: &Best) -> String {
    let mean = decimals(best.speedup, 2);
    best.speedup_between.map_or(mean.clone(), |ends| {
        format!("{mean} ({})", range(ends, |end| decimals(end, 2)))
    })
}

fn verdict(report: &CountersReport, best: &Best) -> String {
    let others: Vec<String> = (best.alike.iter())
        .filter(|&&length| length != best.length)
        .map(usize::to_string)
        .collect();
    if best.length == 0 {
        let maybe = match others.as_slice() {
            [] => String::new(),
            _ => format!(" By their ranges K = {} may be.", listed(&others)),
        };
        return format!(
            "Do not draft: at these costs no draft length is quicker than the target alone by more than \
             1%.{maybe}"
        );
    }
    let ran = report.length;
    let open = (report.advice.first()).filter(|change| change.verdict == Verdict::NotToldApart);
    let verb = match (ran == Some(best.length), open) {
        (true, _) => "Keep",
        (false, None) => "Set",
        (false, Some(_)) => "Try",
    };
    let set = format!(
        "{verb} K = {}: {} times as fast as the target alone at these costs.",
        best.length,
        speed(best)
    );
    let how = match (best.kind, ran, open) {
        (Kind::Counted, ..) => " That length ran.".to_owned(),
        (_, Some(ran), Some(change)) => format!(
            " It did not run, and its range does not show that it is quicker than K = {ran}, which ran: {} \
             times. Run it and count again.",
            decimals(change.now.mean, 2)
        ),
        (_, Some(ran), None) => format!(" It is told by rounds of {}.", counted(ran, "draft")),
        _ => String::new(),
    };
    let alike = match others.as_slice() {
        [] => String::new(),
        _ => format!(" By its range K = {} may be as quick.", others.join(", ")),
    };
    let doubt = match best.speedup_between {
        Some([low, _]) if low <= 1.0 => " These counts do not show a gain over not drafting.",
        _ => "",
    };
    format!("{set}{doubt}{how}{alike}{}", of_counts(&report.advice))
}

/// Shows what a length lies between.
fn ends(at: &AtLength) -> Entry {
    let ends = at.acceptance_length.range;
    ends.map_or_else(Entry::none, |[low, high]| {
        Entry::plain(format!("{} to {}", decimals(low, 3), decimals(high, 3)))
    })
}

fn lengths(report: &CountersReport) -> Option<Section> {
    let first = report.lengths.first()?;
    let fast = first.speedup.is_some();
    let columns = [
        head("#drafts k | #tokens a round | known as | range | #rate"),
        head_if(fast, "#speed-up"),
    ]
    .concat();
    let best = report.best.as_ref().map(|best| best.length);
    let rows = report.lengths.iter().map(|at| {
        let mut entries = vec![
            Entry::plain(at.length.to_string()),
            entry(&at.acceptance_length.estimate(), 3),
            Entry::plain(at.kind.as_str()),
            ends(at),
            Entry::plain(in_percent(at.acceptance_rate)),
        ];
        if fast {
            let speed = at.speedup.map(|speed| decimals(speed, 3));
            entries.push(Entry {
                strong: best == Some(at.length),
                ..speed.map_or_else(Entry::none, Entry::plain)
            });
        }
        Row::new(entries)
    });
    let caption = "Tokens a round, the bonus token included";
    let mut table = Table::new("lengths", caption, columns)
    .rows(rows)
    .note("Rate, in percent, is accepted by drafted tokens: it falls with k by arithmetic, and measures no drafter.");
    if report
        .lengths
        .iter()
        .any(|at| at.acceptance_length.range.is_some())
    {
        table = table.note(
            "The range is what counts alone leave open for draft models, and within 1% for heads. It is no \
             confidence interval.",
        );
    }
    let over = if report.served.requests.is_some() {
        "requests"
    } else {
        "rounds"
    };
    table = table.note(format!("± is half of a 95% interval over {over}."));
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(figure(report).map(Block::Figure));
    let section = Section::new(
        "lengths",
        "Every draft length",
        "What rounds of k drafts put out, and how that is known.",
        blocks,
    );
    // Short texts have the lengths by cost alone, if there are any.
    Some(match report.by_cost.is_empty() {
        true => section.main(),
        false => section,
    })
}

/// Compares the shortest and the longest length that rounds ran, or that is part of such rounds.
fn longer(report: &CountersReport) -> Option<String> {
    let is_known = |at: &&AtLength| matches!(at.kind, Kind::Counted | Kind::Runs);
    let known = || report.lengths.iter().filter(is_known);
    let ends = [
        known().min_by_key(|at| at.length)?,
        known().max_by_key(|at| at.length)?,
    ];
    let [(short, few), (long, many)] =
        ends.map(|at| (at.length, decimals(at.acceptance_length.mean, 2)));
    (short < long)
        .then(|| format!("A round puts out {few} tokens with K = {short}, {many} with K = {long}"))
}

fn figure(report: &CountersReport) -> Option<Figure> {
    if report.lengths.len() < 2 {
        return None;
    }
    let kinds = [
        Kind::Counted,
        Kind::Runs,
        Kind::Replayed,
        Kind::Extrapolated,
    ];
    let lines = kinds.into_iter().enumerate().filter_map(|(hue, kind)| {
        let of_kind = report.lengths.iter().filter(|at| at.kind == kind);
        let points: Vec<_> = of_kind
            .map(|at| {
                let tokens = at.acceptance_length;
                let open = Estimate {
                    truncation: tokens.range,
                    ..tokens.estimate()
                };
                point(at.length as f64, &open)
            })
            .collect();
        (!points.is_empty()).then(|| Line {
            label: kind.as_str().to_owned(),
            hue,
            stroke: Stroke::Solid,
            points,
        })
    });
    let stops = report.lengths.iter().map(|at| at.length);
    let title = "Tokens a round by drafts".to_owned();
    let plot = LinePlot {
        title: title.clone(),
        x: Axis::new(
            "drafts a round",
            stops.map(|length| (length as f64, length.to_string())),
        ),
        y_label: "tokens a round".to_owned(),
        lines: lines.collect(),
        ..LinePlot::default()
    };
    Some(Figure {
        name: "tokens-by-length".to_owned(),
        title: longer(report).unwrap_or(title),
        alt: "Tokens a round puts out against the drafts of a round, by how they are known."
            .to_owned(),
        caption: "The bonus token is included.".to_owned(),
        canvas: plot.draw(),
    })
}

/// Shows what the requests of each group put out, beside all of them.
fn by_group(report: &CountersReport) -> Option<Section> {
    if report.groups.is_empty() {
        return None;
    }
    let has_best = report.best.is_some();
    let columns = [
        head("group | #requests | #rounds | #tokens a round | #less all others | told apart"),
        head_if(has_best, "#set K"),
    ]
    .concat();
    let row = |name: &str, of: &Served, more: Option<&GroupCounts>, best: Option<&Best>| {
        let told = |one: &GroupCounts| Entry::plain(if one.is_told { "yes" } else { "no" });
        let more = more.filter(|one| one.more.is_some());
        let mut entries = vec![
            Entry::plain(name),
            of.requests
                .map_or_else(Entry::none, |requests| Entry::plain(requests.to_string())),
            of.rounds
                .map_or_else(Entry::none, |rounds| Entry::plain(format!("{rounds:.0}"))),
            entry(&of.acceptance_length, 3),
            maybe(more.and_then(|one| one.more.as_ref()), 3),
            more.map_or_else(Entry::none, told),
        ];
        if has_best {
            let length = best.map(|best| best.length.to_string());
            entries.push(length.map_or_else(Entry::none, Entry::plain));
        }
        Row::new(entries)
    };
    let total = row("all requests", &report.served, None, report.best.as_ref());
    let groups = report.groups.iter();
    let groups = groups.map(|one| row(&one.group, &one.served, Some(one), one.best.as_ref()));
    let table = Table::new("by-group", "Tokens a round by group of requests", columns)
        .rows(std::iter::once(total).chain(groups))
        .note(
            "“Less all others” is against the requests of all other groups; its intervals hold \
             together for all groups with 95%, and a group whose interval holds 0 is not told apart. \
             No number depends on the order of requests or files.",
        );
    Some(shown(
        "by-group",
        "By group of requests",
        "What each workload gets of the rounds that ran.",
        [Block::Table(table)],
    ))
}

fn by_cost(report: &CountersReport) -> Option<Section> {
    if report.by_cost.is_empty() {
        return None;
    }
    let columns = head("#cost ratio c | #set K | #speed-up | known as | alike");
    let rows = report.by_cost.iter().map(|at| {
        let alike: Vec<String> = at.best.alike.iter().map(usize::to_string).collect();
        Row::texts([
            cost(at.cost_ratio),
            at.best.length.to_string(),
            decimals(at.best.speedup, 2),
            at.best.kind.as_str().to_owned(),
            alike.join(", "),
        ])
    });
    let table = Table::new("by-cost", "", columns).rows(rows).note(
        "Speed-up is AL(k)/(1 + k c); alike are lengths that may be as quick, by their ranges.",
    );
    Some(shown(
        "by-cost",
        "Which length to set, by cost",
        "c is the time of a draft step over that of a target step.",
        [Block::Table(table)],
    ))
}

fn by_batch(report: &CountersReport) -> Option<Section> {
    if report.by_batch.is_empty() {
        return None;
    }
    let columns = head("#batch size | #set K | #speed-up | known as");
    let rows = report.by_batch.iter().map(|at| {
        Row::texts([
            at.batch.to_string(),
            at.best.length.to_string(),
            decimals(at.best.speedup, 2),
            at.best.kind.as_str().to_owned(),
        ])
    });
    let list = &report.num_speculative_tokens_per_batch_size;
    let list: Vec<String> = list
        .iter()
        .map(|[first, last, length]| format!("[{first}, {last}, {length}]"))
        .collect();
    let blocks = [
        Block::Table(Table::new("by-batch", "", columns).rows(rows)),
        Block::Command(format!(
            "\"num_speculative_tokens_per_batch_size\": [{}]",
            list.join(", ")
        )),
    ];
    Some(shown(
        "by-batch",
        "Which length to set, by batch size",
        "Each holds up to the next batch size; the list is a field of vLLM's --speculative-config.",
        blocks,
    ))
}

fn ran(report: &CountersReport) -> Section {
    let served = &report.served;
    let mut facts = vec![
        Fact::new(
            "acceptance length, with the bonus token",
            plus_minus(&served.acceptance_length, 3),
        ),
        Fact::new(
            "accepted drafts a round, without it",
            decimals(served.accepted_per_round, 3),
        ),
    ];
    if let Some(rate) = served.acceptance_rate {
        facts.push(Fact::new("accepted/drafted", percent(rate)));
    }
    if let Some(drafted) = served.drafted_per_round {
        facts.push(Fact::new("drafted a round", decimals(drafted, 3)));
    }
    let mut blocks = vec![Block::Facts(facts)];
    if let Some(curve) = &report.curve {
        let columns = head("#place i | #accepted there, S_i | #of those that came so far");
        let mut before = 1.0;
        let rows = curve.marginal.iter().enumerate().map(|(index, share)| {
            let conditional = if before > 0.0 {
                Entry::plain(in_percent(share.mean / before))
            } else {
                Entry::none()
            };
            before = share.mean;
            Row::new([
                Entry::plain((index + 1).to_string()),
                rate_entry(share),
                conditional,
            ])
        });
        let rows: Vec<Row> = rows.collect();
        blocks.push(Block::Table(
            Table::new("places", "Place by place, by rounds, in percent", columns).rows(rows),
        ));
    }
    Section::new(
        "ran",
        "What ran",
        "The same counts by each of their usual names.",
        blocks,
    )
}

/// Shows what tools mean by an acceptance rate or length.
fn tools() -> Section {
    Section::new(
        "tools",
        "What tools print",
        "d rounds with drafts, t drafted and a accepted tokens; K = t/d, and x is the number itself.",
        [Block::Table(tools_table(tool_definitions()))],
    )
}

fn tools_table(all: &[ToolDefinition]) -> Table {
    let columns = head("tool | number | is | acceptance length");
    let rows = all
        .iter()
        .map(|one| Row::texts([one.tool, one.name, one.is, one.acceptance_length]));
    Table::new("tools", "", columns).rows(rows)
}

/// The page of `--definitions`: what tools print, and what words mean here.
pub fn definitions_page() -> Page {
    let words = specgap_counters::counters::counters_definitions().into_iter();
    let words = words.map(|(word, meaning)| (word, format!("{meaning}.")));
    Page {
        title: "Acceptance rates and lengths, by tool".to_owned(),
        subtitle: String::new(),
        lead: Vec::new(),
        sections: vec![
            tools().main(),
            definitions("What words mean here.", words.collect()).main(),
        ],
        next: String::new(),
        papers: Vec::new(),
    }
}
