//! The page of `specgap counters`, from a [`CountersReport`].
//!
//! [`page`] alone decides what stands on it and in which order: which length to set, every length
//! with how it is known, then what has to be known of the counts and what they cannot say.

use super::advice::of_counts;
use super::certainty::{in_percent, point};
use super::columns::table;
use super::length::numbers::{cost, decimals, entry, maybe, plus_minus, rate_entry};
use super::sections::{if_any, of_numbers, of_table, section, shown};
use specgap_counters::counters::{AtLength, Best, CountersReport, Kind, tool_definitions};
use specgap_page::plot::{Axis, Line, LinePlot};
use specgap_page::table::Entry;
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
    let made = format!(
        "specgap {}, report schema {}.",
        specgap_log::log::version(),
        report.schema
    );
    let sections = [
        lengths(report),
        by_group(report),
        by_cost(report),
        by_batch(report),
        Some(ran(report)),
        Some(section(
            "unknown | What no counter can say | Counts are of one engine's rule on its own text.",
            [Block::List(report.unknown.clone())],
        )),
        Some(tools()),
        Some(of_numbers("What every number is.", &report.definitions)),
        Some(made_by(&report.command, made)),
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
        ..Page::default()
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

/// What a length lies between.
fn ends_of(at: &AtLength) -> Option<String> {
    let [low, high] = at.acceptance_length.range?;
    Some(format!("{} to {}", decimals(low, 3), decimals(high, 3)))
}

fn lengths(report: &CountersReport) -> Option<Section> {
    let fast = report.lengths.first()?.speedup.is_some();
    let best = report.best.as_ref().map(|best| best.length);
    let speed = |at: &AtLength| {
        let speed = at.speedup.map(|speed| decimals(speed, 3));
        Entry::from(speed).bold(best == Some(at.length))
    };
    let mut table = table! {
        "lengths", "Tokens a round, the bonus token included", at in report.lengths.iter();
        "#drafts k" => at.length,
        "#tokens a round" => entry(&at.acceptance_length.estimate(), 3),
        "known as" => at.kind.as_str(),
        "range" => ends_of(at),
        "#rate" => in_percent(at.acceptance_rate),
        "#speed-up" if fast => speed(at),
    }
    .note(
        "Rate, in percent, is accepted by drafted tokens: it falls with k by arithmetic, and measures no \
         drafter.",
    );
    let mut all = report.lengths.iter();
    if all.any(|at| at.acceptance_length.range.is_some()) {
        table = table.note(
            "The range is what counts alone leave open for draft models, and within 1% for heads. It is no \
             confidence interval.",
        );
    }
    let over = match report.served.requests {
        Some(_) => "requests",
        None => "rounds",
    };
    let section = section(
        "lengths | Every draft length | What rounds of k drafts put out, and how that is known.",
        [table.note(format!("± is half of a 95% interval over {over}."))],
    );
    let section = section.with(figure(report));
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
    let lines = kinds.into_iter().enumerate().map(|(hue, kind)| {
        let of_kind = report.lengths.iter().filter(|at| at.kind == kind);
        let points = of_kind.map(|at| {
            let tokens = at.acceptance_length;
            let open = Estimate {
                truncation: tokens.range,
                ..tokens.estimate()
            };
            point(at.length as f64, &open)
        });
        Line::solid(kind.as_str(), hue, points)
    });
    let lines = lines.filter(|line| !line.points.is_empty());
    let stops = report.lengths.iter().map(|at| at.length);
    let stops = stops.map(|length| (length as f64, length.to_string()));
    let title = "Tokens a round by drafts";
    let x = Axis::new("drafts a round", stops);
    Some(Figure {
        name: "tokens-by-length".to_owned(),
        title: longer(report).unwrap_or(title.to_owned()),
        alt: "Tokens a round puts out against the drafts of a round, by how they are known."
            .to_owned(),
        caption: "The bonus token is included.".to_owned(),
        canvas: LinePlot::new(title, x, "tokens a round", lines.collect()).draw(),
    })
}

/// Shows what the requests of each group put out, beside all of them.
fn by_group(report: &CountersReport) -> Option<Section> {
    if report.groups.is_empty() {
        return None;
    }
    let has_best = report.best.is_some();
    let total = ("all requests", &report.served, None, report.best.as_ref());
    let groups = report.groups.iter();
    let groups = groups.map(|one| {
        (
            one.group.as_str(),
            &one.served,
            Some(one),
            one.best.as_ref(),
        )
    });
    let all = std::iter::once(total).chain(groups);
    let all =
        all.map(|(name, of, one, best)| (name, of, one.filter(|one| one.more.is_some()), best));
    let table = table! {
        "by-group", "Tokens a round by group of requests", (name, of, against, best) in all;
        "group" => name,
        "#requests" => of.requests,
        "#rounds" => of.rounds.map(|rounds| format!("{rounds:.0}")),
        "#tokens a round" => entry(&of.acceptance_length, 3),
        "#less all others" => maybe(against.and_then(|one| one.more.as_ref()), 3),
        "told apart" => against.map(|one| if one.is_told { "yes" } else { "no" }),
        "#set K" if has_best => best.map(|best| best.length),
    };
    Some(shown(
        "by-group | By group of requests | What each workload gets of the rounds that ran.",
        [table.note(
            "“Less all others” is against the requests of all other groups; its intervals hold \
             together for all groups with 95%, and a group whose interval holds 0 is not told apart. \
             No number depends on the order of requests or files.",
        )],
    ))
}

fn by_cost(report: &CountersReport) -> Option<Section> {
    let alike = |best: &Best| {
        let alike = best.alike.iter().map(usize::to_string);
        alike.collect::<Vec<_>>().join(", ")
    };
    let table = table! {
        "by-cost", "", at in report.by_cost.iter();
        "#cost ratio c" => cost(at.cost_ratio),
        "#set K" => at.best.length,
        "#speed-up" => decimals(at.best.speedup, 2),
        "known as" => at.best.kind.as_str(),
        "alike" => alike(&at.best),
    };
    let table = if_any(table.note(
        "Speed-up is AL(k)/(1 + k c); alike are lengths that may be as quick, by their ranges.",
    ));
    let section = of_table(
        "by-cost | Which length to set, by cost | c is the time of a draft step over that of a target \
         step.",
        table,
    );
    section.map(Section::main)
}

fn by_batch(report: &CountersReport) -> Option<Section> {
    let table = table! {
        "by-batch", "", at in report.by_batch.iter();
        "#batch size" => at.batch.to_string(),
        "#set K" => at.best.length,
        "#speed-up" => decimals(at.best.speedup, 2),
        "known as" => at.best.kind.as_str(),
    };
    let list = report.num_speculative_tokens_per_batch_size.iter();
    let list = list.map(|[first, last, length]| format!("[{first}, {last}, {length}]"));
    let list = list.collect::<Vec<_>>().join(", ");
    let set = format!("\"num_speculative_tokens_per_batch_size\": [{list}]");
    let section = of_table(
        "by-batch | Which length to set, by batch size | Each holds up to the next batch size; the list \
         is a field of vLLM's --speculative-config.",
        if_any(table),
    );
    section.map(|section| section.with([Block::Command(set)]).main())
}

fn ran(report: &CountersReport) -> Section {
    let served = &report.served;
    let facts = [
        (
            "acceptance length, with the bonus token",
            Some(plus_minus(&served.acceptance_length, 3)),
        ),
        (
            "accepted drafts a round, without it",
            Some(decimals(served.accepted_per_round, 3)),
        ),
        ("accepted/drafted", served.acceptance_rate.map(percent)),
        (
            "drafted a round",
            served.drafted_per_round.map(|drafted| decimals(drafted, 3)),
        ),
    ];
    let facts = facts.into_iter();
    let facts = facts.filter_map(|(name, value)| Some(Fact::new(name, value?)));
    let places = report.curve.as_ref().map(|curve| {
        let befores = std::iter::once(1.0).chain(curve.marginal.iter().map(|share| share.mean));
        table! {
            "places", "Place by place, by rounds, in percent",
            (place, (share, before)) in (1usize..).zip(curve.marginal.iter().zip(befores));
            "#place i" => place,
            "#accepted there, S_i" => rate_entry(share),
            "#of those that came so far" =>
                (before > 0.0).then(|| in_percent(share.mean / before)),
        }
    });
    section(
        "ran | What ran | The same counts by each of their usual names.",
        [Block::Facts(facts.collect())],
    )
    .with(places)
}

/// Shows what tools mean by an acceptance rate or length.
fn tools() -> Section {
    section(
        "tools | What tools print | d rounds with drafts, t drafted and a accepted tokens; K = t/d, and x \
         is the number itself.",
        [table! {
            "tools", "", one in tool_definitions().iter();
            "tool" => one.tool,
            "number" => one.name,
            "is" => one.is,
            "acceptance length" => one.acceptance_length,
        }],
    )
}

/// The page of `--definitions`: what tools print, and what words mean here.
pub fn definitions_page() -> Page {
    let words = specgap_counters::counters::counters_definitions();
    Page {
        title: "Acceptance rates and lengths, by tool".to_owned(),
        sections: vec![
            tools().main(),
            of_numbers("What words mean here.", &words).main(),
        ],
        ..Page::default()
    }
}
