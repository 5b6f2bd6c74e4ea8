//! What a gap report shows, in every format.

use crate::says::Says;
use specgap::advice::{Basis, Change, Needs, Unit, Verdict};
use specgap::gap::{
    BlockEstimate, Cell, ChainRounds, Comparison, FormulaError, Gap, GapReport, HISTOGRAM_EDGES,
    LogSummary, Optimum, OverlapRow, OwnNumbers, OwnRuleRow, PlanRow, RateAudit, RestMass,
    RoundsOfLength, SCHEMA, Settings, Strip, StripText, StripToken, VerifierRow, measure,
};
use specgap::known::Kind;
use specgap::log::{FileIdentity, Log, Metadata, PromptRecord, Sampling};
use specgap::page::Figure;
use specgap::page::paper::PaperTables;
use specgap::report::gap::page;
use specgap::statistics::Estimate;
use std::collections::BTreeMap;

fn estimate(mean: f64, half: f64) -> Estimate {
    Estimate {
        mean,
        ci95: [mean - half, mean + half],
        truncation: Some([mean - 0.0015, mean + 0.002]),
        between: None,
    }
}

/// From rrs on i.i.d. drafts to another law and rule.
fn change(to: &str, needs: Needs, difference: Estimate) -> Change {
    Change {
        temperature: Some(1.0),
        drafts: Some(3),
        cost_ratio: None,
        from: "with-replacement/rrs".into(),
        to: to.into(),
        engines: Vec::new(),
        settings: Vec::new(),
        needs,
        unit: Unit::Acceptance,
        now: estimate(0.829, 0.01),
        difference,
        basis: Basis::Paired,
        verdict: Verdict::of(&difference, Unit::Acceptance.floor(0.829)),
    }
}

fn quantiles(values: [f64; 5]) -> BTreeMap<String, f64> {
    let shares = ["0.05", "0.25", "0.5", "0.75", "0.95"];
    shares.map(str::to_owned).into_iter().zip(values).collect()
}

fn verifier(name: &str, kind: Kind, optimum: f64, gap: f64) -> VerifierRow {
    let mut histogram = vec![0; HISTOGRAM_EDGES.len() - 1];
    if gap == 0.0 {
        histogram[0] = 20;
    } else {
        (histogram[0], histogram[7], histogram[9]) = (3, 12, 5);
    }
    VerifierRow {
        name: name.into(),
        acceptance: estimate(optimum - gap, 0.01),
        kind,
        width_max: if kind == Kind::Exact { 0.0 } else { 3e-13 },
        gap: Gap {
            estimate: Estimate {
                // What is attained is attained whatever the rows do not list.
                truncation: Some(match gap == 0.0 {
                    true => [0.0, 0.0],
                    false => [gap - 0.0015, gap + 0.002],
                }),
                ..estimate(gap, gap / 5.0)
            },
            quantiles: quantiles([0.0, gap / 3.0, gap / 2.0, gap, 2.0 * gap]),
            max: 3.0 * gap,
            histogram,
        },
        p_value: if gap == 0.0 { 1.0 } else { 3.25e-9 },
        own: None,
    }
}

fn cell(t: f64, n: usize, scheme: &str, optimum: f64, verifiers: Vec<VerifierRow>) -> Cell {
    Cell {
        temperature: t,
        drafts: n,
        scheme: scheme.into(),
        optimal_acceptance_rate: Optimum {
            estimate: estimate(optimum, 0.012),
            kind: Kind::Truncated,
            width_max: 2e-13,
            status: "proved".into(),
            quantiles: quantiles([0.4, 0.7, 0.8, 0.9, 1.0]),
        },
        verifiers,
    }
}

fn report() -> GapReport {
    let mut cells = Vec::new();
    for t in [0.7, 1.0] {
        for n in [2, 3] {
            let optimum = 0.8 + 0.05 * n as f64 - 0.05 * t;
            let below = vec![
                verifier("rrs", Kind::Truncated, optimum, 0.07125),
                verifier("k-seq", Kind::MonteCarlo, optimum, 0.02875),
            ];
            cells.push(cell(t, n, "with-replacement", optimum, below));
            let below = vec![verifier("rrs-wo", Kind::Truncated, optimum + 0.01, 0.05)];
            cells.push(cell(t, n, "without-replacement", optimum + 0.01, below));
            let attained = vec![verifier("greedy", Kind::Truncated, optimum + 0.005, 0.0)];
            cells.push(cell(t, n, "greedy", optimum + 0.005, attained));
            if n == 2 {
                cells.push(cell(
                    t,
                    n,
                    "distinct-conditioned",
                    optimum + 0.015,
                    Vec::new(),
                ));
            }
        }
    }
    let identity = |name: &str, digit: char| {
        Some(FileIdentity {
            name: name.into(),
            sha256: Some(std::iter::repeat_n(digit, 64).collect()),
        })
    };
    let token = |text: &str, gap: f64| StripToken {
        text: text.into(),
        optimum: 0.9,
        acceptance: 0.9 - gap,
    };
    GapReport {
        schema: SCHEMA,
        tool: "specgap 0.1.0".into(),
        command: "specgap gap <log> --drafts 2,3".into(),
        seed: 7,
        logs: vec![LogSummary {
            name: "small & quick".into(),
            positions: 20,
            vocabulary: 49152,
            rows: "top-heavy".into(),
            listed: 1873,
            own_lists: false,
            dtypes: ["f16".into(), "f16".into()],
            rest: vec![RestMass {
                temperature: 1.0,
                target_mean: 0.00225,
                target_max: 0.02,
                draft_mean: 0.00425,
                draft_max: 0.03,
            }],
            ignored_tensors: vec!["hidden".into()],
            engine_tensors: Vec::new(),
            repetition: None,
            surprise: None,
            unsaid_temperature: false,
            fit: None,
            masked: false,
            repeated_positions: 0,
            without_draft: 0,
            depth: None,
            missing_mass: None,
            files: Vec::new(),
            metadata: Metadata {
                target: identity("target.onnx", 'a'),
                draft: identity("draft.onnx", 'c'),
                tokenizer: identity("tokenizer.json", 'e'),
                runtime: Some("ONNX Runtime".into()),
                sampling: Some(Sampling {
                    temperature: 1.0,
                    seed: Some(7),
                    max_tokens: Some(32),
                    chat: Some("none".into()),
                    ..Sampling::default()
                }),
                prompts: vec![PromptRecord {
                    id: 0,
                    name: "p-0".into(),
                    positions: 20,
                }],
                ..Metadata::default()
            },
        }],
        positions: 20,
        clusters: 4,
        cluster_unit: "prompt".into(),
        definitions: BTreeMap::from([("gap".into(), "alpha* minus acceptance".into())]),
        overlap: vec![OverlapRow {
            temperature: 1.0,
            estimate: estimate(0.62, 0.01),
            kind: Kind::Truncated,
            width_max: 1.5e-14,
            quantiles: quantiles([0.3, 0.5, 0.64, 0.72, 0.81]),
            along_text: None,
        }],
        cells,
        engine: None,
        advice: vec![
            change(
                "with-replacement/k-seq",
                Needs::Rule,
                estimate(0.0425, 0.004),
            ),
            change("greedy/greedy", Needs::Law, estimate(0.076, 0.004)),
        ],
        comparisons: [
            ("with-replacement/k-seq", "with-replacement/rrs", 0.0425),
            ("greedy/greedy", "with-replacement/rrs", 0.076),
        ]
        .map(|(first, second, mean)| Comparison {
            temperature: 1.0,
            drafts: 3,
            first: first.into(),
            second: second.into(),
            difference: estimate(mean, 0.004),
            kind: Kind::MonteCarlo,
            width_max: 6e-13,
            p_value: 1.5e-4,
            p_holm: 4.5e-4,
        })
        .to_vec(),
        plans: vec![],
        redrafted: Vec::new(),
        served: None,
        audits: vec![],
        one_draft: Vec::new(),
        published_formula: vec![FormulaError {
            temperature: 1.0,
            drafts: 3,
            difference: Estimate {
                truncation: Some([0.0039, 0.0043]),
                ..estimate(0.0041, 0.0006)
            },
            kind: Kind::Truncated,
            width_max: 4e-13,
            max: 0.021,
            min: -0.003,
        }],
        blocks: [(1, "block-optimum", 2.25), (2, "lemma-5.1", 2.625)]
            .into_iter()
            .map(|(drafts, metric, mean)| BlockEstimate {
                temperature: 1.0,
                length: 5,
                drafts,
                metric: metric.into(),
                expected_accepted_length: estimate(mean, 0.1),
                kind: Kind::Estimate,
                blocks: 17,
            })
            .collect(),
        rounds: vec![ChainRounds {
            temperature: 1.0,
            texts: 4,
            tokens: 20,
            unlisted: 3,
            lengths: vec![RoundsOfLength {
                length: 4,
                starts: 8,
                token: estimate(1.9125, 0.1),
                block: estimate(2.0625, 0.1),
                greedy_block: estimate(2.1375, 0.1),
                block_over_token: estimate(0.15, 0.02),
                greedy_block_over_block: estimate(0.075, 0.01),
                token_per_call: estimate(2.75, 0.2),
                block_per_call: estimate(2.875, 0.2),
                block_over_token_per_call: estimate(0.125, 0.03),
            }],
        }],
        draft_paths: None,
        cost_ratio: None,
        costs: None,
        strip: Some(Strip {
            temperature: 1.0,
            drafts: 3,
            scheme: "with-replacement".into(),
            verifier: "rrs".into(),
            texts: vec![StripText {
                prompt: "p-0".into(),
                tokens: vec![
                    token(" The", 0.0),
                    token("<script>alert('x')</script>", 0.12),
                    token("\n\n", 0.35),
                    token("  ", 0.03),
                    token("a|b", 0.06),
                ],
            }],
        }),
        own_rules: Vec::new(),
        own_laws: Vec::new(),
        left_out: vec!["without-replacement/exact-match: slow".into()],
    }
}

/// Every element that is opened is closed, in order; returns how many there are.
fn check_nesting(page: &str) -> usize {
    const VOID: [&str; 2] = ["meta", "br"];
    let mut open: Vec<String> = Vec::new();
    let mut elements = 0;
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("a tag ends");
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if tag.starts_with('!') {
            continue;
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes of <{tag}>");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "</{name}> closes");
            continue;
        }
        elements += 1;
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "<{tag}>");
        if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name.to_owned());
        }
    }
    assert_eq!(open, Vec::<String>::new());
    elements
}

/// All formats of one report, which must not be empty.
fn everything(report: &GapReport) -> (String, String) {
    let page = page(report);
    for figure in page.figures() {
        check_nesting(&figure.svg().unwrap());
        assert!(!figure.alt.is_empty() && !figure.caption.is_empty());
    }
    let html = page.html().unwrap();
    assert!(check_nesting(&html) > 20);
    for verbose in [false, true] {
        for width in [60, 110] {
            assert!(page.text(width, verbose).lines().count() > 1);
        }
    }
    (html, page.markdown())
}

/// Every number in a JSON value.
fn numbers(value: &serde_json::Value, into: &mut Vec<f64>) {
    match value {
        serde_json::Value::Number(number) => into.extend(number.as_f64()),
        serde_json::Value::Array(all) => all.iter().for_each(|one| numbers(one, into)),
        serde_json::Value::Object(all) => all.values().for_each(|one| numbers(one, into)),
        _ => {}
    }
}

#[test]
fn markdown_of_a_small_report() {
    let (_, markdown) = everything(&report());
    insta::assert_snapshot!("gap-report", markdown);
}

#[test]
fn text_of_a_small_report() {
    insta::assert_snapshot!("gap-report-text", page(&report()).text(110, false));
}

#[test]
fn the_page_has_all_numbers_of_the_data() {
    let mut report = report();
    // Tokens are shown with four digits.
    let strip = report.strip.take();
    let (page, _) = everything(&report);
    // Counts have separators.
    let page = page.clone() + &page.replace(',', "");
    let mut all = Vec::new();
    let mut data = serde_json::to_value(&report).unwrap();
    for cell in data["cells"].as_array_mut().unwrap() {
        for row in cell["verifiers"].as_array_mut().unwrap() {
            // A gap cannot be negative: no page shows this.
            assert!(row.as_object_mut().unwrap().remove("p_value").is_some());
        }
    }
    // Told in points, whose every digit tests/library/advice.rs finds in the JSON.
    assert!(data.as_object_mut().unwrap().remove("advice").is_some());
    numbers(&data, &mut all);
    assert!(all.len() > 300);
    for number in all {
        let digits = number.to_string();
        let small = format!("{number:.1e}");
        assert!(page.contains(&digits) || page.contains(&small), "{digits}");
    }
    report.strip = strip;
    let (page, _) = everything(&report);
    assert!(page.contains("title=\"α* 90.0%, rrs 78.0%, gap 12.0%\""));
}

#[test]
fn text_of_the_log_cannot_become_markup() {
    let (page, markdown) = everything(&report());
    for document in [&page, &markdown] {
        assert!(!document.contains("<script"));
        assert!(document.contains("&lt;script&gt;"));
    }
    assert!(page.contains("specgap gap &lt;log&gt;"));
    assert!(page.contains("⏎⏎") && page.contains("␣␣"));
    assert!(markdown.contains("a\\|b"));
}

/// Up to eight columns stand side by side; more are one table a temperature.
#[test]
fn wide_tables_are_one_a_temperature() {
    let mut report = report();
    let (page, document) = everything(&report);
    assert!(page.contains("id=\"acceptance\"") && document.contains("T = 0.7, n = 2"));
    for t in [0.7, 1.0] {
        for n in 4..=6 {
            let rows = vec![verifier("rrs", Kind::Enclosed, 0.9, 0.05)];
            report.cells.push(cell(t, n, "with-replacement", 0.9, rows));
        }
    }
    let (page, document) = everything(&report);
    for at in ["0.7", "1.0"] {
        assert_eq!(
            page.matches(&format!("T = {at}: acceptance rate in percent, mean"))
                .count(),
            1
        );
        assert_eq!(
            document
                .matches(&format!("T = {at}: acceptance rate in percent, mean"))
                .count(),
            1
        );
    }
    // What holds for all of them is said below the last.
    let note = "the most that a lossless verifier of these drafts can accept";
    assert_eq!(document.matches(note).count(), 1);
    let last = document
        .find("T = 1.0: acceptance rate in percent")
        .unwrap();
    assert!(document.find(note).unwrap() > last);
}

#[test]
fn the_page_needs_nothing_else() {
    let (page, _) = everything(&report());
    for outside in ["src=", "href=\"http", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn figures_name_what_they_show() {
    let page = page(&report());
    let figures = page.figures();
    let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "possible-t1.0-n3",
            "loss-by-drafts-t0.7",
            "loss-by-drafts-t1.0",
            "gap-distribution-t1.0-n3",
            "overlap",
            "acceptance-by-drafts-t0.7",
            "acceptance-by-drafts-t1.0",
            "acceptance-by-temperature-n3",
        ]
    );
    // What attains its optimum loses nothing, whatever the number of drafts.
    let all = |figure: &&&Figure| !figure.name.starts_with("loss") && figure.name != "overlap";
    for figure in figures.iter().filter(all) {
        for verifier in ["rrs", "k-seq", "rrs-wo", "greedy"] {
            let svg = figure.svg().unwrap();
            assert!(svg.contains(verifier), "{}: {verifier}", figure.name);
        }
    }
    let panels = figures
        .iter()
        .find(|figure| figure.name == "acceptance-by-drafts-t0.7");
    let svg = panels.unwrap().svg().unwrap();
    for law in [
        "with-replacement",
        "without-replacement",
        "distinct-conditioned",
    ] {
        assert!(svg.contains(law), "{law}");
    }
}

#[test]
fn a_report_of_little_reads_well_too() {
    let full = report();
    let one_place = |t: f64, n: usize| GapReport {
        cells: full
            .cells
            .iter()
            .filter(|cell| cell.temperature == t && cell.drafts == n)
            .cloned()
            .collect(),
        ..full.clone()
    };
    let (page, _) = everything(&one_place(0.7, 2));
    assert!(page.contains("at temperature 0.7 with 2 drafts"));

    let no_interval = |estimate: &mut Estimate| estimate.ci95 = [estimate.mean; 2];
    let mut single = one_place(1.0, 3);
    single.clusters = 1;
    for cell in &mut single.cells {
        no_interval(&mut cell.optimal_acceptance_rate.estimate);
        for row in &mut cell.verifiers {
            no_interval(&mut row.acceptance);
            no_interval(&mut row.gap.estimate);
        }
    }
    for row in &mut single.overlap {
        no_interval(&mut row.estimate);
    }
    let (page, _) = everything(&single);
    assert!(page.contains("There is one prompt only, so that no interval can be given."));

    let bare = GapReport {
        logs: Vec::new(),
        definitions: BTreeMap::new(),
        overlap: Vec::new(),
        comparisons: Vec::new(),
        plans: Vec::new(),
        one_draft: Vec::new(),
        published_formula: Vec::new(),
        blocks: Vec::new(),
        rounds: Vec::new(),
        strip: None,
        left_out: Vec::new(),
        ..full.clone()
    };
    let (page, markdown) = everything(&bare);
    for absent in [
        "Comparisons",
        "Blocks",
        "Left out",
        "Where the gap lies",
        "Rounds along the text",
    ] {
        assert!(
            !page.contains(absent) && !markdown.contains(absent),
            "{absent}"
        );
    }
    // Only as what comes next, with a text.
    assert_eq!(markdown.matches("specgap length").count(), 1);
    assert!(markdown.contains("then specgap length and tree say"));
    let (page, _) = everything(&GapReport {
        cells: Vec::new(),
        ..bare
    });
    assert!(page.contains("no cell of temperature, drafts and scheme was evaluated"));
}

#[test]
fn odd_values_do_no_harm() {
    let mut odd = report();
    for (index, cell) in odd.cells.iter_mut().enumerate() {
        for row in &mut cell.verifiers {
            row.gap.histogram.truncate(index);
            row.gap.quantiles.clear();
            row.name = "<b>\"'&".into();
            row.acceptance.mean = [f64::NAN, f64::INFINITY, -1e300, 1e300][index % 4];
        }
        cell.optimal_acceptance_rate.estimate = estimate(0.0, 0.0);
    }
    odd.strip = Some(Strip {
        texts: Vec::new(),
        ..odd.strip.unwrap()
    });
    everything(&odd);
    for cell in &mut odd.cells {
        cell.temperature = 1e-300;
        cell.drafts = usize::MAX;
    }
    everything(&odd);
}

/// A report of full rows: nothing else of it differs.
fn full_rows() -> GapReport {
    let mut text = serde_json::to_value(report()).unwrap();
    fn change(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.remove("truncation");
                fields.remove("rest");
                for (name, value) in fields {
                    if name == "kind" && value == "truncated" {
                        *value = "enclosed".into();
                    }
                    change(value);
                }
            }
            serde_json::Value::Array(all) => all.iter_mut().for_each(change),
            _ => {}
        }
    }
    change(&mut text);
    serde_json::from_value(text).unwrap()
}

/// What stands before the first section.
fn first_lines(report: &GapReport) -> [String; 3] {
    let page = page(report);
    let cut = |text: String, end: &str| {
        let at = text.find(end).unwrap_or_else(|| panic!("{end} in {text}"));
        // Wrapped lines are one again.
        text[..at].split_whitespace().collect::<Vec<_>>().join(" ")
    };
    [
        cut(
            page.html().unwrap().replace('\u{a0}', " "),
            "<details class=\"part\">",
        ),
        cut(page.markdown().replace('\\', ""), "## Every rule in a line"),
        cut(page.text(80, true), "\nEvery rule in a line\n"),
    ]
}

#[test]
fn truncated_rows_are_called_so_and_bounded() {
    for lines in first_lines(&report()) {
        lines.says("Truncated rows: they list at most 1,873 of 49,152 tokens");
        // The sampling error and the bounds stand apart.
        lines.says("Full rows move an optimum by at most 0.17 points.");
        assert!(!lines.contains("No bounds"), "{lines}");
    }
    let (page, markdown) = everything(&report());
    // In percent; the bounds stand behind the number, and how wide they are under the table.
    assert!(page.contains(">90.0\u{a0}±\u{a0}1.2</td>") || page.contains(">90.0 ± 1.2</td>"));
    assert!(page.contains("full rows within [0.89"));
    assert!(markdown.contains("| 90.0 ± 1.2 |"));
    assert!(markdown.contains("by more than 0.2 points, whatever the others are"));
    assert!(page.contains("<dt>truncated, w</dt>"));
    for text in [page, markdown] {
        assert!(!text.contains("nclosed"), "truncated rows are not enclosed");
    }
}

/// No number is without a word that says how well it is known, nor with another one.
#[test]
fn a_kind_that_is_none_is_refused() {
    let whole = serde_json::to_value(report()).unwrap();
    for (place, said) in [
        ("/cells/0/optimal_acceptance_rate/kind", Some("upper-bound")),
        ("/cells/0/verifiers/0/kind", Some("")),
        ("/overlap/0/kind", None),
        ("/comparisons/0/kind", None),
        ("/published_formula/0/kind", Some("lower-bound")),
        ("/blocks/0/kind", None),
    ] {
        let mut report = whole.clone();
        let kind = report.pointer_mut(place).unwrap();
        assert!(kind.is_string(), "{place}");
        *kind = said.into();
        serde_json::from_value::<GapReport>(report).unwrap_err();
    }
    serde_json::from_value::<GapReport>(whole).unwrap();
}

/// A report of truncated rows without their bounds says that there are none.
#[test]
fn bounds_that_are_not_known_are_not_promised() {
    let mut text = serde_json::to_value(report()).unwrap();
    fn change(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.remove("truncation");
                fields.values_mut().for_each(change);
            }
            serde_json::Value::Array(all) => all.iter_mut().for_each(change),
            _ => {}
        }
    }
    change(&mut text);
    let report: GapReport = serde_json::from_value(text).unwrap();
    for lines in first_lines(&report) {
        lines.says("No bounds of these are in this report");
    }
    let (page, markdown) = everything(&report);
    for text in [page, markdown] {
        assert!(!text.contains("nclosed") && !text.contains("in [0."));
        assert!(text.contains("truncated, 3.0e-13") || text.contains("truncated, 2.0e-13"));
    }
}

#[test]
fn full_rows_are_enclosed() {
    for lines in first_lines(&full_rows()) {
        assert!(!lines.contains("runcated"), "{lines}");
    }
    let (page, markdown) = everything(&full_rows());
    assert!(page.contains("<dt>enclosed, w</dt>"));
    assert!(
        markdown
            .contains("Computed: enclosed, 3.0e-13 (all others); Monte Carlo, 3.0e-13 (k-seq).")
    );
    for text in [page, markdown] {
        assert!(!text.contains("truncated") && !text.contains("0.8970"));
    }
}

/// Estimates are called so, with what the audit found; and a finding that they are wrong is
/// among the first lines.
#[test]
fn estimates_are_audited_where_they_stand() {
    let mut report = full_rows();
    for cell in &mut report.cells {
        for row in &mut cell.verifiers {
            if row.name == "rrs-wo" {
                row.kind = Kind::Estimate;
            }
        }
    }
    report.audits = vec![RateAudit {
        temperature: 1.0,
        drafts: 3,
        scheme: "without-replacement".into(),
        verifier: "rrs-wo".into(),
        positions: 12,
        difference_max: 2.5e-8,
        difference_mean: 1.25e-8,
        width_max: 1e-5,
        outside: 0,
        kind: Kind::Enclosed,
    }];
    let (page, markdown) = everything(&report);
    for text in [&page, &markdown] {
        assert!(text.contains("est.: an estimate by a fast rule"));
        assert!(text.contains("Of 12 rates the slow way was gone too, and all are within"));
        assert!(text.contains("Audit of estimates") && text.contains("2.5e-8"));
        assert!(text.contains(" est."), "{text}");
    }
    let first = |report: &GapReport| {
        let lines = first_lines(report).join("\n");
        lines.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(!first(&report).contains("outside of the enclosure"));
    report.audits[0].outside = 2;
    assert!(first(&report).contains(
        "Estimates are outside of the enclosure: rrs-wo at T = 1.0 with 3 drafts: 2 of 12 audited \
         positions. Measure again with --rrs-wo enclosed."
    ));
}

/// Plans that were solved as a check say at how many positions; all of them, that they were all;
/// and a finding that they fall short is among the first lines.
#[test]
fn plans_say_where_they_were_solved() {
    let mut report = full_rows();
    let row = PlanRow {
        temperature: 1.0,
        drafts: 3,
        scheme: "with-replacement".into(),
        positions: None,
        shortfall_max: 2e-12,
        law_l1_max: Some(4e-15),
        laws_measured: Some(9),
        seconds_mean: None,
    };
    report.plans = vec![row.clone()];
    let (page, markdown) = everything(&report);
    for text in [&page, &markdown] {
        assert!(text.contains("Optimal plans, solved at every position"));
        assert!(!text.contains("as a check"), "{text}");
    }
    let checked = PlanRow {
        positions: Some(1234),
        ..row.clone()
    };
    let sequential = PlanRow {
        scheme: "without-replacement".into(),
        ..row
    };
    report.plans = vec![checked, sequential];
    let (page, markdown) = everything(&report);
    for text in [&page, &markdown] {
        assert!(text.contains("Optimal plans, solved at audited positions as a check"));
        text.says("is a theorem (docs/theory/level-rule.md)");
        assert!(!text.contains("solved at every position"), "{text}");
    }
    let cells = |scheme: &str| -> Vec<String> {
        let table = &markdown[markdown
            .find("solved at audited positions as a check")
            .unwrap()..];
        let start = format!("| {scheme}, ");
        let line = table.lines().find(|line| line.starts_with(&start)).unwrap();
        line.split(" | ")
            .skip(1)
            .take(2)
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(cells("with-replacement"), ["1,234", "2.0e-12"]);
    assert_eq!(cells("without-replacement"), ["all", "2.0e-12"]);
    let lines = |report: &GapReport| first_lines(report).join("\n");
    assert!(!lines(&report).contains("accept less than alpha*"));
    // Of plans that are solved for their rate the gap would be read as a loss.
    assert!(!lines(&report).contains("did not reach alpha*"));
    report.plans[1].shortfall_max = 3e-5;
    assert!(!lines(&report).contains("accept less than alpha*"));
    assert!(lines(&report).contains(
        "Plans of level did not reach alpha*: without-replacement at T = 1.0 with 3 drafts: by \
         up to 3.0e-5. That is where their solver stopped, and not what an optimal plan loses."
    ));
    report.plans[0].shortfall_max = 3e-5;
    for lines in first_lines(&report) {
        lines.says(
            "accept less than alpha*: with-replacement at T = 1.0 with 3 drafts: by up to 3.0e-5.",
        );
    }
}

#[test]
fn bold_is_told_apart_from_the_next_of_its_drafts() {
    let bold = |report: &GapReport| -> Vec<String> {
        let (page, markdown) = everything(report);
        let cells = page.split("<td class=\"n best\"").skip(1);
        let texts: Vec<String> = cells
            .map(|rest| {
                let start = rest.find('>').unwrap() + 1;
                rest[start..start + rest[start..].find('<').unwrap()].to_owned()
            })
            .collect();
        assert_eq!(page.contains("Bold:"), !texts.is_empty());
        assert_eq!(markdown.contains("Bold:"), !texts.is_empty());
        texts
    };
    let mut report = report();
    assert_eq!(bold(&report), ["87.1 ± 1.0 MC"]);
    // Whichever way round the two are compared.
    let comparison = &mut report.comparisons[0];
    std::mem::swap(&mut comparison.first, &mut comparison.second);
    assert_eq!(bold(&report).len(), 1);
    report.comparisons[0].p_holm = 0.05;
    assert_eq!(bold(&report), [""; 0]);
    report.comparisons.clear();
    assert_eq!(bold(&report), [""; 0]);
}

#[test]
fn lemma_5_1_is_no_row_of_bounds() {
    let (page, _) = everything(&report());
    let table = |id: &str| {
        let start = page.find(&format!("id=\"table-{id}\"")).unwrap();
        page[start..start + page[start..].find("</table>").unwrap()].to_owned()
    };
    assert!(table("blocks").contains("block-optimum") && !table("blocks").contains("lemma"));
    assert!(table("lemma").contains("lemma-5.1"));
    assert!(page.contains("it is a lower bound of the block optimum"));
}

#[test]
fn a_gap_has_no_p_value() {
    let (page, markdown) = everything(&report());
    for text in [
        page,
        markdown,
        specgap::report::gap::page(&report()).text(110, true),
    ] {
        assert!(!text.contains("3.3e-9") && !text.contains("3.25e-9") && !text.contains("3.2e-9"));
        assert!(!text.contains("the gap is 0 on average"));
    }
}

/// What the drafts get, what they could get, and what that is worth, in numbers of the report.
#[test]
fn the_first_lines_answer_what_a_reader_asks() {
    let mut report = report();
    for lines in first_lines(&report) {
        for words in [
            "one sampled draft is accepted 62.0 ± 1.0% of the time",
            "rrs 82.9 ± 1.0% (with-replacement), rrs-wo 86.0 ± 1.0% (without-replacement)",
            "no lossless rule of one position at a time accepts more than with-replacement 90.0%",
            "Usual rules leave 7.1 ± 1.4 (rrs) and 5.0 ± 1.0 (rrs-wo) points; k-seq 2.9 ± 0.6.",
            "greedy leaves nothing.",
            "rrs 1.829 → 1.900 at the optimum (+3.9%)",
            "--cost-ratio C makes that a speed",
            "If you draft 3 tokens of with-replacement and verify them by rrs, verify them by \
             k-seq, +4.2 ± 0.4 points; or draft the 2 likeliest tokens and a draw, verified by \
             `greedy`, +7.6 ± 0.4 points.",
            "± is 95% over prompts",
        ] {
            assert!(lines.contains(words), "{words}: {lines}");
        }
    }
    // A draft step of a quarter: 1.829 / 1.25.
    report.cost_ratio = Some(0.25);
    for lines in first_lines(&report) {
        assert!(lines.contains("takes 0.25 of a target step"), "{lines}");
        assert!(lines.contains("rrs 1.463 → 1.520"), "{lines}");
        assert!(!lines.contains("--cost-ratio"), "{lines}");
    }
    // Without a comparison that tells them apart, nothing is said to be recovered.
    let closing = "k-seq recovers 4.2 ± 0.4 of the 7.1 points that rrs leaves.";
    assert!(page(&report).text(110, true).contains(closing));
    report.comparisons[0].p_holm = 0.2;
    assert!(!page(&report).text(110, true).contains("recovers"));
}

/// All that a reader or a paper gets of a report.
fn all_forms(report: &GapReport) -> String {
    let page = page(report);
    let mut all = page.html().unwrap() + &page.markdown() + &page.text(110, true);
    for figure in page.figures() {
        all.push_str(&figure.svg().unwrap());
        all.push_str(figure.canvas.data());
    }
    let asked = PaperTables::default();
    for (name, text) in page
        .paper_latex(&asked)
        .into_iter()
        .chain(page.paper_csv(&asked))
    {
        all.push_str(&name);
        all.push_str(&String::from_utf8(text).unwrap());
    }
    all
}

/// Moves the middle of every number whose bounds are wider than its interval, within the bounds,
/// and what is made of such middles; says how many there were.
fn move_middles(value: &mut serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::Array(all) => all.iter_mut().map(move_middles).sum(),
        Value::Object(fields) => {
            let number = |value: &Value| value.as_f64().unwrap();
            let ends = |name: &str| {
                let ends = fields.get(name)?.as_array()?;
                Some([number(&ends[0]), number(&ends[1])])
            };
            let open = ends("truncation")
                .zip(ends("ci95"))
                .filter(|([a, b], [c, d])| b - a > (d - c) / 2.0);
            let Some(([low, high], ci95)) = open.filter(|([a, b], _)| b - a > 1e-6) else {
                return fields.values_mut().map(move_middles).sum();
            };
            let by = (high - low) / 5.0;
            fields["mean"] = Value::from(number(&fields["mean"]) + by);
            fields["ci95"] = Value::from(ci95.map(|end| end + by).to_vec());
            if let Some(Value::Object(quantiles)) = fields.get_mut("quantiles") {
                for one in quantiles.values_mut() {
                    *one = Value::from(number(one) + by);
                }
            }
            if let Some(max) = fields.get_mut("max") {
                *max = Value::from(number(max) + by);
            }
            if let Some(Value::Array(histogram)) = fields.get_mut("histogram") {
                histogram.reverse();
            }
            1
        }
        _ => 0,
    }
}

/// Nothing that is printed or drawn of a shipped log of lists depends on a middle of bounds that are
/// wider than the sample's interval: neither as a number nor in an order.
#[test]
fn no_middle_of_wide_bounds_is_shown() {
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/models/logs/smollm2-demo");
    let settings = Settings::new(&[1.0], &[2, 3], 0).unwrap();
    let logs = [Log::open(log.as_ref()).unwrap()];
    let report = measure(&logs, &settings, "specgap gap", &|_| ()).unwrap();
    let mut value = serde_json::to_value(&report).unwrap();
    assert!(move_middles(&mut value) > 10);
    let moved: GapReport = serde_json::from_value(value).unwrap();
    assert_ne!(report, moved);
    let [before, after] = [&report, &moved].map(all_forms);
    let differs = before.lines().zip(after.lines()).find(|(a, b)| a != b);
    assert_eq!(differs, None);
    assert_eq!(before.len(), after.len());

    let cell = report.cells.iter().find(|cell| {
        (cell.temperature, cell.drafts, cell.scheme.as_str()) == (1.0, 3, "without-replacement")
    });
    let row = cell
        .unwrap()
        .verifiers
        .iter()
        .find(|row| row.name == "rrs-wo");
    let row = row.unwrap();
    let points = |ends: [f64; 2]| format!("{:.1} to {:.1}", 100.0 * ends[0], 100.0 * ends[1]);
    let [accepts, loses] =
        [&row.acceptance, &row.gap.estimate].map(|one| points(one.open().unwrap()));
    let loses = loses.replace('-', "");
    for words in [
        format!("rrs-wo {accepts}% (without-replacement)"),
        format!("{loses} (rrs-wo)"),
        format!("rrs-wo loses {loses} points"),
    ] {
        assert!(before.contains(&words), "{words}");
    }
    // No share of the optimum, and no part in what a better rule is worth.
    let worth = page(&report).text(2000, true);
    let worth = worth.lines().find(|line| line.contains("Worth:")).unwrap();
    assert!(!worth.contains("rrs-wo") && !worth.contains('→'), "{worth}");
}

/// What the interval of a difference does not tell apart is no advice, and the lines say so.
#[test]
fn what_is_not_told_apart_is_not_advised() {
    let mut report = report();
    let greedy = |difference| change("greedy/greedy", Needs::Law, difference);
    report.advice[1] = greedy(estimate(0.002, 0.004));
    let instead = "draft the 2 likeliest tokens and a draw, verified by `greedy`";
    for lines in first_lines(&report) {
        let words = format!("{instead} (+0.2 ± 0.4 points, not told apart).");
        assert!(lines.contains(&words), "{lines}");
        assert!(!lines.contains(&format!("{instead},")), "{lines}");
    }
    // An interval that does not hold 0 is not enough where full rows may be on the other side.
    let open = |truncation| Estimate {
        truncation: Some(truncation),
        ..estimate(0.002, 0.001)
    };
    report.advice[1] = greedy(open([-0.01, 0.014]));
    for lines in first_lines(&report) {
        let words = format!("{instead} (−1.0 to +1.4 points, which the rows leave open).");
        assert!(lines.contains(&words), "{lines}");
    }
    // Where they only leave open how much it is, the worst case is worth it, or is not.
    for (low, words) in [
        (0.011, format!("{instead}, at least +1.1 points.")),
        (
            0.003,
            format!("{instead} (+0.3 to +1.4 points, less than half a point)."),
        ),
    ] {
        report.advice[1] = greedy(open([low, 0.014]));
        for lines in first_lines(&report) {
            assert!(lines.contains(&words), "{words}: {lines}");
        }
    }
    report.advice.clear();
    for lines in first_lines(&report) {
        assert!(!lines.contains("If you draft"), "{lines}");
    }
}

/// A text of another temperature, or one that was not drawn from its rows, gives no advice.
#[test]
fn where_numbers_are_of_another_text_nothing_is_advised() {
    let mut report = report();
    let sampling = report.logs[0].metadata.sampling.as_mut().unwrap();
    sampling.temperature = 0.6;
    report.cells.retain(|cell| cell.temperature == 1.0);
    report.advice.clear();
    for lines in first_lines(&report) {
        let words = "Nothing is advised at temperature 1.0: the text was sampled at 0.6.";
        assert!(lines.contains(words), "{lines}");
        assert!(!lines.contains("If you draft"), "{lines}");
    }
}

/// A terminal shows a verifier a line; the rest is for those who ask.
#[test]
fn short_texts_have_a_line_a_verifier() {
    let page = page(&report());
    let short = page.text(80, false);
    let lines = |name: &str| {
        let start = format!("│   {name} ");
        short
            .lines()
            .filter(|line| line.starts_with(&start))
            .count()
    };
    for name in ["rrs", "k-seq", "rrs-wo", "greedy"] {
        assert_eq!(lines(name), 1, "{name}: {short}");
    }
    assert!(short.lines().count() < 60, "{short}");
    assert!(!short.contains("Rounds along the text") && page.text(80, true).contains("Rounds"));
}

#[test]
fn the_first_lines_say_what_the_numbers_rest_on() {
    let mut report = report();
    for lines in first_lines(&report) {
        assert!(lines.contains("There are 4 prompts only."), "{lines}");
        lines.says("The text was sampled at T = 1.0. What is said of T = 0.7 is evaluated");
        lines.says("at temperature 1.0, at which the text was sampled, with 3 drafts");
    }
    report.clusters = 10;
    report.logs[0]
        .metadata
        .sampling
        .as_mut()
        .unwrap()
        .temperature = 0.7;
    for lines in first_lines(&report) {
        assert!(!lines.contains("prompts only"), "{lines}");
        lines.says("at temperature 0.7, at which the text was sampled, with 3 drafts");
        lines.says("What is said of T = 1.0 is evaluated");
    }
    report.cells.retain(|cell| cell.temperature == 0.7);
    for lines in first_lines(&report) {
        assert!(!lines.contains("The text was sampled"), "{lines}");
    }
    // No template was added, which does not say that the prompts are in none.
    let (page, _) = everything(&report);
    assert!(page.contains("prompts as their file has them, no template added"));
    assert!(!page.contains("prompt template none"));
}

#[test]
fn one_is_not_many() {
    let mut report = report();
    report.positions = 1;
    report.clusters = 1;
    report.logs[0].positions = 1;
    report.logs[0].metadata.prompts[0].positions = 1;
    let (page, markdown) = everything(&report);
    for text in [page, markdown] {
        assert!(text.contains("1 position"));
        for wrong in ["1 positions", "1 prompts", "1 drafts", "1 tokens"] {
            assert!(!text.contains(&format!(" {wrong}")), "{wrong}");
            assert!(!text.contains(&format!(">{wrong}")), "{wrong}");
        }
    }
}

#[test]
fn every_section_can_be_opened_and_linked_to() {
    let page = page(&report());
    let html = page.html().unwrap();
    for section in &page.sections {
        let content = format!("<div id=\"{}\">", section.id);
        let heading = format!("<summary><h2>{}</h2>", section.title);
        assert_eq!(html.matches(&content).count(), 1, "{}", section.id);
        assert_eq!(html.matches(&heading).count(), 1, "{}", section.id);
    }
    assert_eq!(html.matches("<h2").count(), page.sections.len());
    assert_eq!(
        html.matches("<details class=\"part\">").count(),
        page.sections.len()
    );
}

/// A rule of the caller's own is named wherever rules are, and what it accepts is worth nothing
/// where it is lossy: it is said first, and neither bold nor recommended.
#[test]
fn own_rules_are_named_and_lossy_ones_first() {
    let own = |away: Option<f64>| OwnNumbers {
        algorithmic: Some(estimate(0.8, 0.01)),
        total_variation_max: away,
        total_variation_mean: away,
        noise: None,
    };
    let with = |gap: f64, away: Option<f64>| {
        let mut report = report();
        for cell in &mut report.cells {
            if cell.scheme == "with-replacement" {
                let optimum = cell.optimal_acceptance_rate.estimate.mean;
                let mut row = verifier("mine", Kind::Float, optimum, gap);
                for estimate in [&mut row.acceptance, &mut row.gap.estimate] {
                    estimate.truncation = None;
                }
                row.gap.estimate.ci95 = [gap - 0.01, gap + 0.01];
                row.own = Some(own(away));
                cell.verifiers.push(row);
                let ahead = |second: &str| Comparison {
                    temperature: cell.temperature,
                    drafts: cell.drafts,
                    first: "with-replacement/mine".into(),
                    second: format!("with-replacement/{second}"),
                    difference: Estimate {
                        mean: 0.05,
                        ci95: [0.04, 0.06],
                        truncation: None,
                        between: None,
                    },
                    kind: Kind::Float,
                    width_max: 0.0,
                    p_value: 1e-9,
                    p_holm: 1e-8,
                };
                report.comparisons.extend([ahead("rrs"), ahead("k-seq")]);
            }
        }
        report.own_rules = vec![OwnRuleRow {
            name: "mine".into(),
            scheme: "with-replacement".into(),
            words: "keeps <all>".into(),
            digest: Some("v1".into()),
        }];
        report
    };
    let recovers = "mine recovers 5.0 ± 1.0 of the";
    let lossy = with(-0.02, Some(0.125));
    let text = serde_json::to_string(&lossy).unwrap();
    assert_eq!(serde_json::from_str::<GapReport>(&text).unwrap(), lossy);
    let (html, markdown) = everything(&lossy);
    let first = "Not lossless is mine (total variation up to 0.12)";
    for page in [&html, &markdown] {
        assert!(page.contains(first) && page.contains("Rules of your own"));
        assert!(!page.contains(recovers));
    }
    assert!(html.contains("keeps &lt;all&gt;") && html.contains("digest v1"));
    assert!(markdown.find(first) < markdown.find("## "));
    let (_, markdown) = everything(&with(0.02, Some(1e-16)));
    assert!(markdown.contains(recovers) && !markdown.contains("Not lossless is"));
    let (_, markdown) = everything(&with(0.02, Some(2e-6)));
    assert!(markdown.contains("Not lossless is mine (total variation up to 2.0e-6)"));
    // Above what any lossless rule accepts, by more than the interval.
    let (_, markdown) = everything(&with(-0.02, None));
    assert!(
        markdown.contains("Not lossless is mine (it accepts more than α\\*)"),
        "{markdown}"
    );
    assert!(markdown.contains("| mine, not lossless |"));
    assert!(markdown.contains("first is not lossless"));
    // What it does not say is not taken for granted.
    let (_, markdown) = everything(&with(0.02, None));
    assert!(markdown.contains("not said") && !markdown.contains(recovers));
}
