//! What a gap report shows, in every format.

use specgap::gap::{
    BlockEstimate, Cell, Comparison, Estimate, FormulaError, Gap, GapReport, HISTOGRAM_EDGES,
    LogSummary, Optimum, OverlapRow, RestMass, SCHEMA, Strip, StripText, StripToken, VerifierRow,
};
use specgap::log::{FileIdentity, Metadata, PromptRecord, Sampling};
use specgap::report::gap::{html, markdown, pictures, text};
use std::collections::BTreeMap;

fn estimate(mean: f64, half: f64) -> Estimate {
    Estimate {
        mean,
        ci95: [mean - half, mean + half],
        truncation: None,
    }
}

fn quantiles(values: [f64; 5]) -> BTreeMap<String, f64> {
    let shares = ["0.05", "0.25", "0.5", "0.75", "0.95"];
    shares.map(str::to_owned).into_iter().zip(values).collect()
}

fn verifier(name: &str, kind: &str, optimum: f64, gap: f64) -> VerifierRow {
    let mut histogram = vec![0; HISTOGRAM_EDGES.len() - 1];
    if gap == 0.0 {
        histogram[0] = 20;
    } else {
        (histogram[0], histogram[7], histogram[9]) = (3, 12, 5);
    }
    VerifierRow {
        name: name.into(),
        acceptance: estimate(optimum - gap, 0.01),
        kind: kind.into(),
        width_max: if kind == "exact" { 0.0 } else { 3e-13 },
        gap: Gap {
            estimate: estimate(gap, gap / 5.0),
            quantiles: quantiles([0.0, gap / 3.0, gap / 2.0, gap, 2.0 * gap]),
            max: 3.0 * gap,
            histogram,
        },
        p_value: if gap == 0.0 { 1.0 } else { 3.25e-9 },
    }
}

fn cell(t: f64, n: usize, scheme: &str, optimum: f64, verifiers: Vec<VerifierRow>) -> Cell {
    let conjectured = scheme == "without-replacement";
    Cell {
        temperature: t,
        drafts: n,
        scheme: scheme.into(),
        optimal_acceptance_rate: Optimum {
            estimate: estimate(optimum, 0.012),
            kind: if conjectured {
                "upper-bound"
            } else {
                "enclosed"
            }
            .into(),
            width_max: 2e-13,
            status: if conjectured { "conjectured" } else { "proved" }.into(),
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
                verifier("rrs", "enclosed", optimum, 0.07125),
                verifier("k-seq", "monte-carlo", optimum, 0.02875),
            ];
            cells.push(cell(t, n, "with-replacement", optimum, below));
            let below = vec![verifier("rrs-wo", "enclosed", optimum + 0.01, 0.05)];
            cells.push(cell(t, n, "without-replacement", optimum + 0.01, below));
            let attained = vec![verifier("greedy", "exact", optimum + 0.005, 0.0)];
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
            dtypes: ["f16".into(), "f16".into()],
            rest: vec![RestMass {
                temperature: 1.0,
                target_mean: 0.00225,
                target_max: 0.02,
                draft_mean: 0.00425,
                draft_max: 0.03,
            }],
            ignored_tensors: vec!["hidden".into()],
            metadata: Metadata {
                target: identity("target.onnx", 'a'),
                draft: identity("draft.onnx", 'c'),
                tokenizer: identity("tokenizer.json", 'e'),
                runtime: Some("ONNX Runtime".into()),
                sampling: Some(Sampling {
                    temperature: 1.0,
                    seed: 7,
                    max_tokens: Some(32),
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
            kind: "enclosed".into(),
            width_max: 1.5e-14,
            quantiles: quantiles([0.3, 0.5, 0.64, 0.72, 0.81]),
        }],
        cells,
        comparisons: vec![Comparison {
            temperature: 1.0,
            drafts: 3,
            first: "with-replacement/k-seq".into(),
            second: "with-replacement/rrs".into(),
            difference: estimate(0.0425, 0.004),
            kind: "monte-carlo".into(),
            width_max: 6e-13,
            p_value: 1.5e-4,
            p_holm: 4.5e-4,
        }],
        plans: vec![],
        published_formula: vec![FormulaError {
            temperature: 1.0,
            drafts: 3,
            difference: estimate(0.0041, 0.0006),
            kind: "lower-bound".into(),
            width_max: 4e-13,
            max: 0.021,
            min: -0.003,
        }],
        blocks: vec![BlockEstimate {
            temperature: 1.0,
            length: 5,
            drafts: 2,
            metric: "lemma-5.1".into(),
            expected_accepted_length: estimate(2.625, 0.1),
            kind: "estimate".into(),
            blocks: 17,
        }],
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
        left_out: vec!["without-replacement/naive: slow".into()],
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
    let pictures = pictures(report).unwrap();
    for picture in &pictures {
        check_nesting(&picture.svg);
        let reader = png::Decoder::new(picture.png.as_slice())
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size()];
        let mut reader = reader;
        reader.next_frame(&mut pixels).unwrap();
        assert!(pixels.iter().any(|&byte| byte < 128), "{}", picture.name);
        assert!(!picture.alt.is_empty() && !picture.caption.is_empty());
    }
    let page = html(report, &pictures);
    assert!(check_nesting(&page) > 20);
    for verbose in [false, true] {
        for width in [60, 110] {
            assert!(text(report, width, verbose).lines().count() > 1);
        }
    }
    (page, markdown(report, &pictures))
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
    insta::assert_snapshot!("gap-report-text", text(&report(), 110, false));
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
    numbers(&serde_json::to_value(&report).unwrap(), &mut all);
    assert!(all.len() > 300);
    for number in all {
        let digits = number.to_string();
        let small = format!("{number:.1e}");
        assert!(page.contains(&digits) || page.contains(&small), "{digits}");
    }
    report.strip = strip;
    let (page, _) = everything(&report);
    assert!(page.contains("title=\"α* 0.9000, rrs 0.7800, gap 0.1200\""));
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
            let rows = vec![verifier("rrs", "enclosed", 0.9, 0.05)];
            report.cells.push(cell(t, n, "with-replacement", 0.9, rows));
        }
    }
    let (page, document) = everything(&report);
    for at in ["0.7", "1.0"] {
        assert_eq!(
            page.matches(&format!("T = {at}: acceptance rate, mean"))
                .count(),
            1
        );
        assert_eq!(
            document
                .matches(&format!("T = {at}: acceptance rate, mean"))
                .count(),
            1
        );
    }
    // What holds for all of them is said below the last.
    let bold = "Bold: the verifier that accepts most";
    assert_eq!(document.matches(bold).count(), 1);
    let last = document.find("T = 1.0: acceptance rate").unwrap();
    assert!(document.find(bold).unwrap() > last);
}

#[test]
fn the_page_needs_nothing_else() {
    let (page, _) = everything(&report());
    for outside in ["src=", "href=\"http", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn pictures_name_what_they_show() {
    let report = report();
    let pictures = pictures(&report).unwrap();
    let names: Vec<&str> = pictures
        .iter()
        .map(|picture| picture.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "acceptance-by-drafts-t0.7",
            "acceptance-by-drafts-t1.0",
            "acceptance-by-temperature-n3",
            "gap-distribution-t1.0-n3",
            "overlap",
        ]
    );
    for picture in &pictures[..4] {
        for verifier in ["rrs", "k-seq", "rrs-wo", "greedy"] {
            assert!(
                picture.svg.contains(verifier),
                "{}: {verifier}",
                picture.name
            );
        }
    }
    for scheme in [
        "with-replacement",
        "without-replacement (≤)",
        "distinct-conditioned",
    ] {
        assert!(
            pictures[0].svg.contains(&format!("α* {scheme}")),
            "{scheme}"
        );
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
        published_formula: Vec::new(),
        blocks: Vec::new(),
        strip: None,
        left_out: Vec::new(),
        ..full.clone()
    };
    let (page, markdown) = everything(&bare);
    for absent in ["Comparisons", "Blocks", "Left out", "Where the gap lies"] {
        assert!(
            !page.contains(absent) && !markdown.contains(absent),
            "{absent}"
        );
    }
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
