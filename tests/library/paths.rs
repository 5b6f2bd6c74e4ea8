//! Are bounds on several draft paths, and what verifiers get of them, what they claim to be?

use crate::made_paths::{Made, V, rows, write};
use specgap::block::level_sets::path_optimum;
use specgap::block::{
    Block, BlockVerifier, GreedyBlock, SpecTr, Token, lemma_5_1, output_law, single_draft_optimum,
};
use specgap::distribution::{Draft, Target};
use specgap::log::Log;
use specgap::problem::BlockProblem;
use specgap::replay::{AtDrafts, PathSettings, PathsReport, Texts, measure_paths};
use specgap::report::paths::page;
use specgap::rounds::{ChainRule, FixedLength, accepted_lengths, replay};
use specgap::statistics::Estimate;
use specgap::tree::TokenTree;
use specgap::verifier::VerifierName;

fn report_of(made: &Made, settings: &PathSettings) -> Result<PathsReport, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    write(&path, made);
    let log = Log::open(&path).unwrap();
    measure_paths(&[log], settings, "specgap paths log", &|_| ()).map_err(|e| e.to_string())
}

fn settings(drafts: &[usize]) -> PathSettings {
    PathSettings {
        drafts: drafts.to_vec(),
        ..PathSettings::default()
    }
}

/// The chain of a made log as a problem, from the first token's predecessor on.
fn problem(first: usize, length: usize) -> BlockProblem {
    let made = BlockProblem::by_prefix("chain", V, length, |prefix| {
        let last = prefix.last().map_or(first, |&token| token as usize);
        let rows = (prefix.len() < length).then(|| rows(last));
        let target = rows.as_ref().map(|[p, _]| Target::new(p).unwrap());
        let draft = rows.as_ref().map(|[_, q]| Draft::new(q).unwrap());
        (target, draft)
    });
    made.unwrap()
}

fn accepted(at: &AtDrafts, name: &str) -> Estimate {
    let found = at.verifiers.iter().find(|one| one.verifier == name);
    found.unwrap().expected_accepted_length
}

/// Within so many half widths of its 95% interval.
fn near(estimate: &Estimate, truth: f64) -> bool {
    let half = (estimate.ci95[1] - estimate.ci95[0]) / 2.0;
    (estimate.mean - truth).abs() <= 2.5 * half
}

/// Texts of two tokens and blocks of two: only the first position starts one, and prompts
/// begin behind every token alike. So the truth is a mean over five small problems.
#[test]
fn numbers_of_a_log_are_those_of_its_chain() {
    const LENGTH: usize = 2;
    let made = Made {
        prompts: 800,
        tokens: 2,
        length: LENGTH,
        ends: false,
        ..Made::default()
    };
    let report = report_of(&made, &settings(&[1, 2])).unwrap();
    assert_eq!((report.starts, report.length), (800, LENGTH));
    // Every second prompt has paths at its first position.
    assert_eq!((report.anchors, report.logged_paths), (400, 4));
    let problems: Vec<BlockProblem> = (0..V).map(|first| problem(first, LENGTH)).collect();
    let mean = |of: &dyn Fn(&BlockProblem, &TokenTree<f64>) -> f64| {
        let each = problems.iter().map(|one| of(one, &TokenTree::new(one)));
        each.sum::<f64>() / V as f64
    };
    let law = |tree: &TokenTree<f64>, verifier: &dyn BlockVerifier<f64>| {
        output_law(tree, verifier).expected_accepted_length
    };
    let two = &report.by_drafts[1];
    for (name, truth) in [
        ("token", mean(&|_, tree| law(tree, &Token))),
        ("block", mean(&|_, tree| law(tree, &Block))),
        ("greedy-block", mean(&|_, tree| law(tree, &GreedyBlock))),
        (
            "spectr-k-seq",
            mean(&|problem, tree| law(tree, &SpecTr::new(problem, VerifierName::K_SEQ, 2))),
        ),
        (
            "spectr-rrs",
            mean(&|problem, tree| law(tree, &SpecTr::new(problem, VerifierName::RRS, 2))),
        ),
    ] {
        let found = accepted(two, name);
        assert!(near(&found, truth), "{name}: {found:?}, truth {truth}");
    }
    let optimum = mean(&|_, tree| path_optimum(tree, 2, 2e9).upper);
    let lemma = mean(&|_, tree| lemma_5_1(tree, 2));
    assert!(near(&two.lower_bound, lemma));
    let greedy = accepted(two, "select-greedy-block");
    assert!(greedy.mean > accepted(two, "select-block").mean);
    assert!(accepted(two, "select-block").mean > accepted(two, "block").mean);
    assert!(greedy.ci95[0] <= optimum);
    let forms: Vec<&str> = two
        .upper_bounds
        .iter()
        .map(|one| one.form.as_str())
        .collect();
    assert_eq!(forms, ["several paths", "pooled paths", "pooled text"]);
    for bound in &two.upper_bounds {
        let estimate = bound.expected_accepted_length;
        assert!(estimate.ci95[1] >= optimum, "{bound:?} {optimum}");
        assert!(estimate.mean < optimum + 0.15, "{bound:?} {optimum}");
    }
    // One path: the bound is the optimum, which greedy blocks attain.
    let one = &report.by_drafts[0];
    let single = mean(&|_, tree| single_draft_optimum(tree));
    assert!(near(&one.upper_bounds[0].expected_accepted_length, single));
    assert!(near(&accepted(one, "select-greedy-block"), single));
    for check in &report.checks {
        assert!(near(&check.difference, 0.0), "{check:?}");
    }
}

#[test]
fn blocks_end_with_their_text_and_start_wherever_they_may() {
    // Texts that end by themselves: every position from which L tokens may be written.
    let made = Made::default();
    let report = report_of(&made, &settings(&[2])).unwrap();
    assert!(report.ends_with_text);
    assert!(report.of.positions < made.prompts * made.tokens);
    // Of texts that run to the limit, all but the last two positions.
    let all = Made {
        ends: false,
        ..made.clone()
    };
    let whole = report_of(&all, &settings(&[2])).unwrap();
    assert!(!whole.ends_with_text);
    assert_eq!(whole.starts, made.prompts * (made.tokens - 2));
    // One path is what `specgap length` says of it, start by start and round by round.
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("log"), &all);
    let texts = Texts::read(
        &[Log::open(&folder.path().join("log")).unwrap()],
        None,
        &|_| (),
    );
    let texts = texts.unwrap();
    for verifier in ChainRule::all() {
        let (mut sum, mut starts, mut calls, mut tokens) = (0.0, 0, 0.0, 0);
        for text in &texts.texts {
            let (accepted, count) = accepted_lengths(verifier, &text.ratios, 3)[2];
            sum += accepted;
            starts += count;
            tokens += text.ratios.len();
            let found = replay(verifier, &text.ratios, &FixedLength(3));
            calls += found.map_or(0.0, |found| found.calls);
        }
        let found = accepted(&whole.by_drafts[0], verifier.as_str());
        assert!(
            (found.mean - sum / starts as f64).abs() < 1e-12,
            "{verifier}"
        );
        let verifiers = &whole.by_drafts[0].verifiers;
        let one = verifiers
            .iter()
            .find(|one| one.verifier == verifier.as_str());
        match one.unwrap().tokens_per_call {
            Some(found) => assert!((found.mean - tokens as f64 / calls).abs() < 1e-12),
            None => assert_eq!(verifier, ChainRule::GREEDY_BLOCK),
        }
    }
    // What cannot be accepted behind an end makes blocks shorter.
    let at = |report: &PathsReport| accepted(&report.by_drafts[0], "block").mean;
    assert!(at(&report) < at(&whole));
    for report in [&report, &whole] {
        for check in &report.checks {
            assert!(near(&check.difference, 0.0), "{check:?}");
        }
    }
}

#[test]
fn a_log_without_paths_is_bounded_by_its_text() {
    let made = Made {
        paths: 0,
        ..Made::default()
    };
    let report = report_of(&made, &settings(&[1, 3])).unwrap();
    assert_eq!((report.anchors, report.logged_paths), (0, 0));
    assert!(report.checks.is_empty());
    assert_eq!(report.length, PathSettings::LENGTH);
    for at in &report.by_drafts {
        assert_eq!(at.upper_bounds.len(), 1);
        assert_eq!(at.upper_bounds[0].form, "pooled text");
        assert!(at.upper_bounds[0].expected_accepted_length.mean >= at.lower_bound.mean - 1e-9);
    }
    let text = page(&report).text(100, true);
    assert!(text.contains("This log has no draft paths"), "{text}");
    // One path a context: pooled, and said so.
    let one = Made {
        paths: 1,
        ..Made::default()
    };
    let report = report_of(&one, &settings(&[1, 2])).unwrap();
    let form = |at: usize| report.by_drafts[at].upper_bounds[0].form.as_str();
    assert_eq!((form(0), form(1)), ("several paths", "pooled paths"));
    assert!(report.left_out[0].contains("capture with --paths 2"));
}

#[test]
fn paths_of_a_cut_draft_are_not_read_and_the_page_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    write(&path, &Made::default());
    let index = path.join("log.json");
    let text = std::fs::read_to_string(&index).unwrap();
    let mut log: serde_json::Value = serde_json::from_str(&text).unwrap();
    log["metadata"]["sampling"]["top_k"] = V.into();
    std::fs::write(&index, log.to_string()).unwrap();
    let log = [Log::open(&path).unwrap()];
    let report = measure_paths(&log, &settings(&[2]), "specgap paths log", &|_| ()).unwrap();
    assert_eq!(report.by_drafts[0].upper_bounds[0].form, "pooled text");
    let lead = page(&report).text(100, false);
    let lead = lead.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [&lead, &report.left_out[0]] {
        assert!(
            said.contains("whole row, and here it is cut (top-k 5)"),
            "{said}"
        );
        assert!(
            said.contains("apture text that is not cut, with --paths 2"),
            "{said}"
        );
        assert!(!said.contains("has no draft paths"), "{said}");
    }
}

#[test]
fn numbers_do_not_depend_on_threads_and_pages_say_what_to_read() {
    let made = Made::default();
    let report = report_of(&made, &settings(&[1, 2, 4])).unwrap();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let alone = pool.install(|| report_of(&made, &settings(&[1, 2, 4])).unwrap());
    assert_eq!(report, alone);
    let text = serde_json::to_string(&report).unwrap();
    let read: PathsReport = serde_json::from_str(&text).unwrap();
    assert_eq!(read, report);
    let old = text.replace("spectr-optimal", "spectr-plan");
    let old: PathsReport = serde_json::from_str(&old).unwrap();
    assert_eq!(old.by_drafts, report.by_drafts);
    let page = page(&report);
    let html = page.html().unwrap();
    for (word, meaning) in &report.definitions {
        assert!(html.contains(word) && !meaning.is_empty(), "{word}");
    }
    let text = page.text(100, true);
    for words in [
        "With 4 draft paths of 3 tokens verify by select-block:",
        "tokens for each target call, one path",
        "In a round that starts with the target's own law, no verifier of 4 draft paths of 3 tokens \
         accepts more than",
        "one path gives at most",
        "The bound is without bias",
        "E[τ] by verifier and number of paths",
    ] {
        // Lines are wrapped.
        let flat: Vec<&str> = text.split_whitespace().collect();
        assert!(flat.join(" ").contains(words), "{words}\n{text}");
    }
    // No rule that a decoder's next rounds cannot follow is recommended first.
    let lead = text.find("select-block").unwrap();
    assert!(
        text.find("greedy").is_none_or(|greedy| lead < greedy),
        "{text}"
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let made = Made::default();
    for (made, settings, words) in [
        (
            made.clone(),
            PathSettings {
                length: Some(4),
                ..PathSettings::default()
            },
            &["draft paths have 3 tokens", "⟨path-length 4⟩"][..],
        ),
        (
            Made {
                temperature: 0.5,
                ..made.clone()
            },
            settings(&[2]),
            &["drawn at temperature 0.5", "capture both together"],
        ),
        (made.clone(), settings(&[]), &["at least one"]),
        (made.clone(), settings(&[17]), &["1..=16"]),
        (
            made.clone(),
            PathSettings {
                temperature: Some(0.7),
                ..settings(&[2])
            },
            &["temperature 1", "0.7"],
        ),
    ] {
        let error = report_of(&made, &settings).unwrap_err();
        for word in words {
            assert!(error.contains(word), "{word:?} in {error}");
        }
    }
    // A block longer than any text: nothing is bounded, and that is said.
    let short = Made {
        paths: 0,
        tokens: 3,
        ..made
    };
    let report = report_of(&short, &settings(&[2])).unwrap();
    assert_eq!(report.starts, 0);
    assert!(page(&report).text(100, true).contains("smaller"));
}
