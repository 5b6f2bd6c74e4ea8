//! What reports advise: nothing that intervals do not tell apart, nothing that is not in the JSON,
//! nothing that is not lossless and achieved.

use crate::pages::shipped;
use crate::says::Says;
use crate::{made_log, made_paths};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::Value;
use specgap::advice::{Basis, Change, KnownBy, Needs, Unit, Verdict, settings_of};
use specgap::counters;
use specgap::gap::{GapReport, LogComparison, Part, Settings, measure, summarise_each};
use specgap::log::Log;
use specgap::page::Page;
use specgap::replay::{
    LengthReport, LengthSettings, PathSettings, PathsReport, Timings, TreeReport,
};
use specgap::replay::{
    length_changes, measure_lengths, measure_paths, measure_trees, tree_changes,
};
use specgap::report;
use specgap::scheme::{EngineName, SchemeName};
use specgap::statistics::Estimate;
use specgap::verifier::VerifierName;
use std::collections::BTreeSet;

/// The report of a made log with enough prompts for a choice.
fn made() -> GapReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    made_log::write_drawn(&path, &made_log::rows(60));
    let settings = Settings::new(&[0.5, 1.0], &[2, 3], 3).unwrap();
    measure(&[Log::open(&path).unwrap()], &settings, "test", &|_| ()).unwrap()
}

fn gap_reports() -> Vec<GapReport> {
    let mut all: Vec<GapReport> = ["demo", "qwen", "smollm2"].map(shipped).to_vec();
    all.push(made());
    all
}

/// A number as a page may write it.
fn shown(value: f64) -> impl Iterator<Item = String> {
    let rounded = |value: f64, places: usize| format!("{:.places$}", value.abs());
    [0, 1, 2, 3].into_iter().flat_map(move |places| {
        let percent = rounded(100.0 * value, places);
        [rounded(value, places), percent]
    })
}

/// Every number of a JSON value and half the width of every interval, as pages write them.
fn numbers(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Number(number) => into.extend(number.as_f64().into_iter().flat_map(shown)),
        Value::Array(all) => {
            if let [Value::Number(low), Value::Number(high)] = all.as_slice() {
                let width = high.as_f64().unwrap() - low.as_f64().unwrap();
                into.extend(shown(width / 2.0));
            }
            all.iter().for_each(|one| numbers(one, into));
        }
        Value::Object(all) => all.values().for_each(|one| numbers(one, into)),
        _ => {}
    }
}

/// The numbers with a decimal point that stand in a text.
fn decimals(text: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_digit() || letter == '.';
    let words = text.split(|letter| !is_part(letter));
    let words = words.map(|word| word.trim_matches('.').to_owned());
    words
        .filter(|word| word.matches('.').count() == 1)
        .collect()
}

/// The lines of a page that advise.
fn advising(page: &Page) -> Vec<String> {
    const STARTS: [&str; 11] = [
        "Set K = ",
        "tokens for each target call",
        "unless told otherwise: ",
        "If you draft",
        "Block against",
        "One-hot drafts",
        "Exact-match drafts",
        "What a rule",
        "What a trained",
        "verify by",
        "The tree below",
    ];
    let text = page.markdown();
    let lead = text.lines().take_while(|line| !line.starts_with("## "));
    lead.filter(|line| STARTS.iter().any(|start| line.contains(start)))
        .map(str::to_owned)
        .collect()
}

/// Every number of the lines that advise stands in the report's JSON.
fn every_number_is_there(
    what: &str,
    report: &impl Serialize,
    page: &Page,
    advice: &[Change],
) -> usize {
    advice.iter().for_each(is_as_its_numbers_say);
    let mut known = BTreeSet::new();
    numbers(&serde_json::to_value(report).unwrap(), &mut known);
    assert!(
        advice
            .iter()
            .all(|change| { shown(change.difference.mean).all(|digits| known.contains(&digits)) })
    );
    let mut read = 0;
    for line in advising(page) {
        for number in decimals(&line) {
            assert!(known.contains(&number), "{what}: {number} in {line}");
            read += 1;
        }
    }
    read
}

/// What a change says is what its numbers say, whoever made them.
fn is_as_its_numbers_say(change: &Change) {
    let floor = change.unit.floor(change.now.mean);
    let said = Verdict::of(&change.difference, floor);
    match change.basis {
        // Of several comparisons, corrected for how many there are.
        Basis::Paired if change.unit == Unit::Acceptance => {
            assert!(change.verdict == said || change.verdict == Verdict::NotToldApart);
        }
        Basis::Counts => {}
        _ => assert_eq!(change.verdict, said, "{change:?}"),
    }
    if change.verdict == Verdict::Worth {
        let [low, high] = change.difference.ci95;
        // Counts have no interval.
        let is_wide = high > low || change.basis == Basis::Counts;
        assert!(
            low > 0.0 && is_wide && change.least() >= floor,
            "{change:?}"
        );
        let bounds = change.difference.bounds();
        assert!(bounds.is_none_or(|[low, _]| low > 0.0), "{change:?}");
    }
}

#[test]
fn numbers_of_advice_are_those_of_the_json() {
    let mut read = 0;
    for report in gap_reports() {
        let page = report::gap::page(&report);
        read += every_number_is_there("gap", &report, &page, &report.advice);
    }
    let mut settings = LengthSettings {
        timings: Some(Timings::cost_ratio(0.125).unwrap()),
        ..LengthSettings::default()
    };
    let given = crate::replay::report(&settings);
    settings.timings = None;
    for report in [shipped("length"), given, crate::replay::report(&settings)] {
        let report: LengthReport = report;
        let advice = length_changes(&report);
        assert!(report.advice == advice);
        let setting = |change: &&Change| change.needs == Needs::Setting;
        for change in advice.iter().filter(setting) {
            assert_eq!(change.settings, settings_of(&change.engines));
        }
        read += every_number_is_there("length", &report, &report::length::page(&report), &advice);
    }
    let tree: TreeReport = shipped("tree");
    let advice = tree_changes(&tree);
    read += every_number_is_there("tree", &tree, &report::tree::page(&tree), &advice);
    let paths: PathsReport = shipped("paths");
    read += every_number_is_there("paths", &paths, &report::paths::page(&paths), &paths.advice);
    assert!(read > 30, "{read} numbers");
}

/// What is advised is a lossless rule of drafts that it is made for, and has a rate here.
#[test]
fn what_is_advised_is_lossless_and_achieved() {
    let mut several = 0;
    for report in gap_reports() {
        for change in &report.advice {
            let at = change.temperature.unwrap();
            let n = change.drafts.unwrap();
            for name in [&change.from, &change.to] {
                let Some((law, rule)) = name.split_once('/') else {
                    assert_eq!(n, 1, "{name}");
                    continue;
                };
                let cell = report.cells.iter().find(|cell| {
                    (cell.temperature, cell.drafts, cell.scheme.as_str()) == (at, n, law)
                });
                let mut rows = cell.unwrap().verifiers.iter();
                let row = rows.find(|row| row.name == rule).unwrap();
                assert!(row.own.is_none() && rule != VerifierName::OPTIMAL.as_str());
                let verifier: VerifierName = rule.parse().unwrap();
                let law: SchemeName = law.parse().unwrap();
                assert!(verifier.is_lossless(law, n), "{name}");
                several += 1;
            }
        }
    }
    assert!(several > 20, "{several}");
}

/// A report chooses on one half and measures on the other, from what engines do.
#[test]
fn a_made_report_has_a_choice_of_every_place() {
    let report = made();
    // At another temperature than the text's nothing is advised.
    let all = report.advice.iter();
    assert!(all.clone().all(|change| change.temperature == Some(1.0)));
    let at = 1.0;
    for n in [2, 3] {
        let here: Vec<&Change> = (report.advice.iter())
            .filter(|one| one.drafts == Some(n) && one.temperature == Some(at))
            .collect();
        let from: Vec<&str> = here.iter().map(|one| one.from.as_str()).collect();
        assert_eq!(from, ["top/exact-match", "with-replacement/rrs"]);
        assert!(here.iter().all(|one| one.basis == Basis::CrossFitted));
        // The plain paired difference of what all prompts choose is near.
        for one in here {
            let rate = |name: &str| {
                let (law, rule) = name.split_once('/').unwrap();
                let mut cells = report.cells.iter();
                let cell = cells
                    .find(|cell| {
                        (cell.temperature, cell.drafts, cell.scheme.as_str()) == (at, n, law)
                    })
                    .unwrap();
                let mut rows = cell.verifiers.iter();
                rows.find(|row| row.name == rule).unwrap().acceptance.mean
            };
            let plain = rate(&one.to) - rate(&one.from);
            assert!(
                (one.difference.mean - plain).abs() < 0.1,
                "{one:?}: {plain}"
            );
            assert!((one.now.mean - rate(&one.from)).abs() < 1e-12);
        }
    }
}

/// Whatever is widened until it holds 0 is no longer advised.
#[test]
fn nothing_is_advised_that_its_interval_does_not_tell_apart() {
    let mut advised = 0;
    for mut report in gap_reports() {
        advised += usize::from(
            report::gap::page(&report)
                .markdown()
                .contains("If you draft"),
        );
        for change in &mut report.advice {
            let size = change.difference.mean.abs() + 1.0;
            change.difference = Estimate {
                ci95: [-size, size],
                ..change.difference
            };
            change.verdict = Verdict::of(&change.difference, change.unit.floor(change.now.mean));
        }
        let text = report::gap::page(&report).markdown();
        let lead = text.split("\n## ").next().unwrap();
        for line in lead.lines().filter(|line| line.contains("If you draft")) {
            assert!(line.contains("Not worth it"), "{line}");
            assert_eq!(
                line.matches("not told apart").count() + line.matches("leave open").count(),
                line.matches(" points, ").count(),
                "{line}"
            );
        }
        assert!(lead.contains("Nothing to change"), "{lead}");
    }
    assert_eq!(advised, 4);
}

/// A report of before it had advice is read, and its page leads with what was found.
#[test]
fn a_report_without_advice_is_drawn_without() {
    let mut old = serde_json::to_value(made()).unwrap();
    old.as_object_mut().unwrap().remove("advice").unwrap();
    let old: GapReport = serde_json::from_value(old).unwrap();
    let text = report::gap::page(&old).markdown();
    let advises = ["If you draft", "Nothing to change"];
    assert!(!advises.iter().any(|words| text.contains(words)), "{text}");
    assert!(text.lines().any(|line| line.starts_with("**")), "{text}");
}

/// From what each engine does, and from nothing that another one does.
#[test]
fn advice_starts_from_what_an_engine_does() {
    let mut report = made();
    let plain = report::gap::page(&report).markdown();
    assert!(plain.contains("as SGLang and EAGLE do unless told otherwise"));
    let said = |report: &GapReport| {
        let text = report::gap::page(report).markdown();
        let lead = text.split("\n## ").next().unwrap().to_owned();
        let wanted = |line: &&str| {
            let words = ["unless told otherwise", "in ", "| "];
            words.iter().any(|one| line.contains(one))
        };
        lead.lines()
            .filter(wanted)
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .join(" ")
    };
    for engine in EngineName::all() {
        report.assume(Some(engine));
        let assumed = report.engine.clone().unwrap();
        assert_eq!(
            (assumed.engine.as_str(), assumed.known_by),
            (engine.as_str(), KnownBy::Option)
        );
        let (words, name) = (said(&report), engine.as_str());
        let own = |from: &str| {
            let mut all = report.advice.iter();
            all.any(|one| one.from == from && one.engines.contains(&name.to_owned()))
        };
        for here in engine.defaults().filter_map(|row| row.here) {
            let [from, does] = match (here.law, here.verifier, here.one) {
                ("top", _, true) => ["one-hot", "drafts the likeliest token alone"],
                ("top", _, false) => ["top/exact-match", "drafts the 3 likeliest tokens"],
                (_, "exact-match", _) => ["exact-match", "one sampled token"],
                _ => ["", "no rule accepts more of one sampled draft"],
            };
            assert!(from.is_empty() || own(from), "{name}: {from}");
            assert!(
                words.contains(does) && words.contains(name),
                "{name}: {words}"
            );
        }
        for other in EngineName::all().filter(|other| *other != engine) {
            assert!(!words.contains(other.as_str()), "{name}, {other}: {words}");
        }
    }
    // What it does was not measured: that is said, with the options that measure it.
    report.advice.retain(|change| change.drafts == Some(1));
    report.assume("sglang".parse().ok());
    let text = report::gap::page(&report).markdown();
    text.says("top among --laws and exact-match among --verifiers");
    let command = report.command;
    assert!(command.starts_with("test --engine vllm") && command.ends_with(" --engine sglang"));
}

/// Lengths and trees start there too, and the tree that the best is compared with is the engine's.
#[test]
fn lengths_and_trees_start_from_what_an_engine_does() {
    let timings = Some(Timings::cost_ratio(0.125).unwrap());
    for (engine, says) in [
        (
            "vllm",
            "vLLM drafts the likeliest token unless told otherwise: at c = 0.125",
        ),
        ("mlx-lm", "(mlx-lm: sampler=specgap.mlx.Sampler(\"token\"))"),
        ("transformers", "token verification is what it does now"),
        ("eagle", "specgap tree does"),
    ] {
        let report = crate::replay::report(&LengthSettings {
            timings: timings.clone(),
            engine: engine.parse().ok(),
            ..LengthSettings::default()
        });
        let text = report::length::page(&report).markdown();
        assert!(text.contains(says), "{engine}: {text}");
        assert!(!text.contains("One-hot drafts, the default of"), "{engine}");
    }
    for (engine, tree, drawn) in [
        ("vllm", "chain-2", "top/exact-match"),
        ("sglang", "2x2", "top/exact-match"),
        ("transformers", "chain-2", "with-replacement/token"),
        ("mlx-lm", "chain-2", "with-replacement/exact-match"),
    ] {
        let mut settings = crate::trees::settings(&["chain-2", "2x2"]);
        settings.engine = engine.parse().ok();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        made_log::write_drawn(&path, &made_log::rows(60));
        let logs = [Log::open(&path).unwrap()];
        let mut report = measure_trees(&logs, &settings, "test", &|_| ()).unwrap();
        let one = report.reference.as_ref().unwrap();
        assert_eq!(one.tree, tree, "{engine}");
        assert_eq!(
            format!("{}/{}", one.scheme, one.verifier).replace("rrs", "token"),
            drawn
        );
        assert_eq!(
            report.advice[0].engines,
            [settings.engine.unwrap().as_str()]
        );
        let text = report::tree::page(&report).markdown();
        assert!(
            text.contains(" does unless told otherwise: "),
            "{engine}: {text}"
        );
        report.reference = None;
        let text = report::tree::page(&report).markdown();
        assert!(
            text.contains("was not replayed: it takes"),
            "{engine}: {text}"
        );
    }
}

/// Three drafts of one text, of which the last is the target itself.
fn compared() -> LogComparison {
    let folder = tempfile::tempdir().unwrap();
    let rows = made_log::rows(80);
    let mixed = |share: f32| {
        let one = |(p, q): &made_log::Pair| {
            let mix = |(p, q): (&f32, &f32)| match p.is_finite() {
                true => share * p + (1.0 - share) * q,
                false => *q,
            };
            let draft = p.iter().zip(q).map(mix);
            (p.clone(), draft.collect())
        };
        rows.iter().map(one).collect::<Vec<made_log::Pair>>()
    };
    let logs = [("far", 0.0), ("near", 0.9), ("same", 1.0)].map(|(name, share)| {
        let path = folder.path().join(name);
        made_log::write_drawn(&path, &mixed(share));
        Log::open(&path).unwrap()
    });
    let settings = Settings::new(&[1.0], &[3], 3).unwrap();
    let (each, pairings) = summarise_each(&logs, &settings, Part::WHOLE, None, &|_| ()).unwrap();
    LogComparison::new(&each, &pairings, &settings.options())
}

/// Of several logs a change is told with the numbers of their own advice; what is told apart on no
/// log is none.
#[test]
fn a_comparison_leads_with_changes_of_its_logs() {
    let mut comparison = compared();
    let all = |comparison: &LogComparison| -> Vec<Change> {
        comparison
            .logs
            .iter()
            .flat_map(|log| log.advice.clone())
            .collect()
    };
    let advice = all(&comparison);
    advice.iter().for_each(is_as_its_numbers_say);
    assert!(advice.iter().any(|one| one.verdict == Verdict::Worth));
    let page = report::compare::page(&comparison);
    let read = every_number_is_there("compare", &comparison, &page, &advice);
    assert!(read > 3, "{read} numbers");
    let text = page.markdown();
    // Which draft comes first, the one that gains most before others; what to do with one next.
    text.says("\n**Draft with same instead of far: +46.9");
    text.says("\n- Draft with near instead of far: +42.6");
    text.says("\n- If you draft the 3 likeliest tokens");
    text.says("next: specgap length LOG --cost-ratio C");
    // With an engine, from what it does alone.
    comparison.assume("vllm".parse().ok());
    let text = report::compare::page(&comparison).markdown();
    assert!(text.contains("\n- vLLM drafts the likeliest token alone unless told otherwise:"));
    let lead = text.split("\n## ").next().unwrap();
    assert!(!lead.contains("SGLang"), "{lead}");
    comparison.engine = None;
    for change in comparison.logs.iter_mut().flat_map(|log| &mut log.advice) {
        change.difference.ci95 = [-1.0, 1.0];
        change.verdict = Verdict::of(&change.difference, change.unit.floor(change.now.mean));
    }
    let text = report::compare::page(&comparison).markdown();
    assert!(
        text.contains("Nothing to change") && !text.contains("from +"),
        "{text}"
    );
    // Two logs: which draft comes first, unless it is the same one at another depth.
    let mut two = comparison.clone();
    two.logs.truncate(2);
    let first = |comparison: &LogComparison| {
        let text = report::compare::page(comparison).markdown();
        text.lines()
            .find(|line| line.starts_with("**"))
            .unwrap()
            .to_owned()
    };
    assert!(first(&two).starts_with("**Draft with near instead of far: +"));
    two.logs[1].files = two.logs[0].files.clone();
    assert!(first(&two).starts_with("**near minus far: overlap +"));
}

/// Whether a change of the first one is advised, or no difference is told.
fn is_worth(changes: &[Change]) -> bool {
    !changes.is_empty() && changes.iter().all(|one| one.verdict == Verdict::Worth)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// What pages say of random text and of random counts is what their numbers say.
    #[test]
    fn random_reports_rank_what_is_told_apart_by_numbers_that_they_have(
        seed in any::<u64>(),
        prompts in 2usize..16,
        tokens in 4usize..12,
        paths in 2usize..5,
        length in 1usize..4,
        ratio in 0.0f64..0.6,
        ratios in prop::collection::vec(0.0f64..1.5, 20..60),
        by_place in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let made = made_paths::Made { prompts, tokens, paths, length, seed, ..Default::default() };
        made_paths::write(&path, &made);
        let logs = [Log::open(&path).unwrap()];
        let timings = Some(Timings::cost_ratio(ratio).unwrap());

        let settings = Settings::new(&[1.0], &[2], seed).unwrap();
        let report = measure(&logs, &settings, "test", &|_| ()).unwrap();
        every_number_is_there("gap", &report, &report::gap::page(&report), &report.advice);

        let settings = LengthSettings { timings: timings.clone(), ..Default::default() };
        let report = measure_lengths(&logs, &settings, "test", &|_| ()).unwrap();
        every_number_is_there("length", &report, &report::length::page(&report), &report.advice);

        let mut settings = crate::trees::settings(&["chain-2", "2x2"]);
        settings.verifiers.retain(|rule| ["rrs", "level-4", "exact-match"].contains(&rule.as_str()));
        settings.timings = timings;
        let report = measure_trees(&logs, &settings, "test", &|_| ()).unwrap();
        let (page, advice) = (report::tree::page(&report), tree_changes(&report));
        every_number_is_there("tree", &report, &page, &advice);
        let grown = page.title.contains("the grown tree") || page.markdown().contains("draft the tree below");
        prop_assert!(!grown || report.reference.is_none() || is_worth(&advice), "{}", page.markdown());
        let shown = report.best.iter().map(|best| (&best.scheme, &best.verifier));
        let shown = shown.chain(report.reference.iter().map(|one| (&one.scheme, &one.verifier)));
        for (law, rule) in shown {
            let [law, rule]: [&str; 2] = [law, rule];
            let verifier: VerifierName = rule.parse().unwrap();
            let children = if law == "hub" { 2 } else { 1 };
            prop_assert!(verifier.is_lossless(law.parse().unwrap(), children), "{law}/{rule}");
        }

        let settings = PathSettings { drafts: vec![1, 2, paths], length: Some(length), temperature: None };
        let report = measure_paths(&logs, &settings, "test", &|_| ()).unwrap();
        let page = report::paths::page(&report);
        every_number_is_there("paths", &report, &page, &report.advice);
        let several: Vec<Change> = report.advice.iter().filter(|one| one.drafts == Some(paths)).cloned().collect();
        prop_assert!(!page.markdown().contains("verify by") || is_worth(&several), "{}", page.markdown());

        let settings = counters::Settings { costs: Some(counters::Costs::ratio(ratio)), ..Default::default() };
        let report = crate::counters::predicted(&ratios.repeat(20), 3, by_place, &settings);
        let page = report::counters::page(&report);
        every_number_is_there("counters", &report, &page, &report.advice);
        let bracket = report.best.as_ref().and_then(|best| best.speedup_between);
        let gains = bracket.is_none_or(|[low, _]| low > 1.0);
        prop_assert!(gains || page.markdown().contains("do not show a gain"), "{}", page.markdown());
        let untold = report.advice.iter().any(|one| one.verdict == Verdict::NotToldApart);
        let is_said = page.markdown().contains("does not show that it is quicker");
        prop_assert!(!untold || is_said || !page.markdown().contains(", which ran: "), "{}", page.markdown());
    }
}
