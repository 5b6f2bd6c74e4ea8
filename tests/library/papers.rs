//! Tables and pictures for papers, of all reports that are shipped: they fit a page, and their
//! numbers are those of report.json.

use crate::pages::{SHIPPED, page_of, shipped};
use specgap::gap::{GapReport, LogComparison};
use specgap::page::Page;
use specgap::page::paper::{FigureFormat, PaperTables};
use specgap::report;
use std::process::Command;

fn pages() -> [(&'static str, Page); SHIPPED.len()] {
    SHIPPED.map(|name| (name, page_of(name)))
}

/// Runs pdflatex on a document, and returns its log; nothing where TeX is not at hand.
fn compiled(preamble: &str, body: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "\\documentclass{{article}}\n\\usepackage[letterpaper,margin=1in]{{geometry}}\n{preamble}\n\
         \\setlength{{\\parindent}}{{0pt}}\n\\begin{{document}}\n{body}\n\\end{{document}}\n"
    );
    std::fs::write(folder.path().join("all.tex"), text).unwrap();
    // What longtable measures is right at the second time.
    let mut left = 2;
    loop {
        let made = Command::new("pdflatex")
            .args(["-interaction=nonstopmode", "-halt-on-error", "all.tex"])
            .current_dir(folder.path())
            .output();
        let Ok(made) = made else {
            eprintln!("pdflatex is not at hand: tables and pictures for papers were not compiled");
            return None;
        };
        let said = String::from_utf8_lossy(&made.stdout).into_owned();
        assert!(made.status.success(), "{said}");
        let log = std::fs::read(folder.path().join("all.log")).unwrap();
        let log = String::from_utf8_lossy(&log).into_owned();
        left -= 1;
        if left == 0 || !log.contains("Table widths have changed") {
            return Some(log);
        }
    }
}

fn boxes(log: &str, kind: &str) -> Vec<String> {
    let mut lines = log.lines().peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("table: ") {
            found.push(line.to_owned());
        }
        if line.contains(kind) {
            found.push(format!("{line} {}", lines.peek().unwrap_or(&"")));
        }
    }
    // The name of the table before what is wrong with it.
    let wrong = |at: usize| found[at].contains(kind);
    let kept = (0..found.len()).filter(|&at| wrong(at) || found.len() > at + 1 && wrong(at + 1));
    kept.map(|at| found[at].clone()).collect()
}

#[test]
fn every_shipped_table_fits_a_page() {
    let mut body = String::new();
    let mut count = 0;
    for (name, page) in pages() {
        for (file, text) in page.paper_latex(&PaperTables::default()) {
            let text = String::from_utf8(text).unwrap();
            body.push_str(&format!(
                "\\typeout{{table: {name} {file}}}\n{text}\n\\clearpage\n"
            ));
            count += 1;
        }
    }
    assert!(count > 80, "{count}");
    let packages = "\\usepackage{booktabs,longtable}";
    if let Some(log) = compiled(packages, &body) {
        for kind in ["Overfull \\hbox", "Overfull \\vbox", "Float too large"] {
            assert_eq!(boxes(&log, kind), Vec::<String>::new());
        }
    }
    // A table that is too wide is refused by this very test.
    let wide = format!(
        "\\begin{{tabular}}{{l}}{}\\end{{tabular}}",
        "wide ".repeat(200)
    );
    if let Some(log) = compiled(packages, &wide) {
        assert_eq!(boxes(&log, "Overfull \\hbox").len(), 1);
    }
}

#[test]
fn every_shipped_picture_is_an_axis_of_pgfplots() {
    let mut body = String::new();
    let mut count = 0;
    for (name, page) in pages() {
        let files = page.paper_figures(&[FigureFormat::Tex]).unwrap();
        let axes = files.into_iter().filter(|(file, _)| file.ends_with(".tex"));
        // Each takes TeX a second.
        for (file, text) in axes.take(2) {
            let text = String::from_utf8(text).unwrap();
            body.push_str(&format!(
                "\\typeout{{table: {name} {file}}}\n{text}\n\\clearpage\n"
            ));
            count += 1;
        }
    }
    assert!(count > 8, "{count}");
    let found = Command::new("kpsewhich").arg("pgfplots.sty").output();
    if found.is_ok_and(|found| found.status.success()) {
        compiled("\\usepackage{pgfplots}\\pgfplotsset{compat=1.16}", &body);
    }
}

/// Fields of a line without quotes.
fn fields(line: &str) -> Vec<&str> {
    line.split(',').collect()
}

/// The table of drafts and rules, looked up in the data by another way than it is made.
#[test]
fn numbers_are_those_of_the_data() {
    let data: serde_json::Value = shipped("ladder");
    let comparison: LogComparison = shipped("ladder");
    let page = report::compare::page(&comparison);
    let asked = PaperTables {
        tables: vec!["drafts-with-replacement".to_owned()],
        columns: vec!["T = 0.7".to_owned()],
        ..PaperTables::default()
    };
    let files = page.paper_csv(&asked);
    let text = std::str::from_utf8(&files[0].1).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert!(
        text.starts_with("group,rule,\"T = 0.7, n = 2\",\"T = 0.7, n = 2/low\""),
        "{text}"
    );
    assert!(!head.iter().any(|name| name.contains("T = 1.0")));
    let bounds = text.lines().next().unwrap().contains("/lower");
    let width = if bounds { 5 } else { 3 };
    let (mut seen, logs) = (0, data["logs"].as_array().unwrap());
    for line in lines {
        let cells = fields(line);
        let log = logs
            .iter()
            .position(|log| log["folder"] == cells[0])
            .unwrap();
        for (number, drafts) in [2, 3].into_iter().enumerate() {
            let rate = data["rates"].as_array().unwrap().iter().find(|rate| {
                rate["temperature"] == 0.7
                    && rate["drafts"] == drafts
                    && rate["scheme"] == "with-replacement"
                    && match rate.get("verifier").and_then(|name| name.as_str()) {
                        Some(name) => name == cells[1],
                        None => cells[1] == "α*" && rate["what"] == "optimum",
                    }
            });
            let estimate = &rate.unwrap()["estimates"][log];
            let cells = &cells[2 + number * width..];
            let bits = |text: &str| text.parse::<f64>().unwrap();
            if cells[0].is_empty() {
                let bounds = &estimate["truncation"];
                assert_eq!(bits(cells[3]), bounds[0].as_f64().unwrap());
                assert_eq!(bits(cells[4]), bounds[1].as_f64().unwrap());
            } else {
                assert_eq!(bits(cells[0]), estimate["mean"].as_f64().unwrap());
                assert_eq!(bits(cells[1]), estimate["ci95"][0].as_f64().unwrap());
                assert_eq!(bits(cells[2]), estimate["ci95"][1].as_f64().unwrap());
            }
            seen += 1;
        }
    }
    assert!(seen >= 2 * 3 * logs.len(), "{seen}");
}

/// LaTeX has the same numbers, rounded to the digits that are asked for, under grouped headings.
#[test]
fn latex_rounds_the_numbers_of_the_data() {
    let report: GapReport = shipped("demo");
    let page = report::gap::page(&report);
    let latex = |digits, columns: &[&str]| {
        let asked = PaperTables {
            tables: vec!["acceptance".to_owned()],
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            digits,
        };
        String::from_utf8(page.paper_latex(&asked).remove(0).1).unwrap()
    };
    let text = latex(Some(2), &[]);
    assert!(text.contains("\\cmidrule(lr){2-"), "{text}");
    assert!(text.contains("$\\alpha^*$, the optimum & "), "{text}");
    let known = report.cells.iter().flat_map(|cell| {
        let rows = cell.verifiers.iter().map(|row| &row.acceptance);
        rows.chain([&cell.optimal_acceptance_rate.estimate])
    });
    let mut seen = 0;
    for estimate in known.filter(|estimate| estimate.open().is_none()) {
        let half = (estimate.ci95[1] - estimate.ci95[0]) / 2.0;
        // In percent, which has two digits fewer.
        let (mean, half) = (100.0 * estimate.mean, 100.0 * half);
        let cell = format!("{mean:.0} {{\\scriptsize$\\pm$\\,{half:.0}");
        assert!(text.contains(&cell), "{cell}: {text}");
        seen += 1;
    }
    assert!(seen > 5, "{seen}");
    let (all, one) = (latex(None, &[]), latex(None, &["n = 3"]));
    assert!(all.contains("n = 2 ") && !one.contains("n = 2 "), "{one}");
}
