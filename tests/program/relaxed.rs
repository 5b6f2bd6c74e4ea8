//! `specgap relaxed`: the files, what stands in them, and what is refused.

use crate::made_log::{rows, write_drawn};
use crate::run::{ROOT, specgap};
use specgap::replay::{RelaxedReport, Standing};
use std::path::Path;

#[test]
fn a_log_becomes_a_table_of_relaxed_rules() {
    let folder = tempfile::tempdir().unwrap();
    write_drawn(&folder.path().join("log"), &rows(40));
    let run = specgap(folder.path(), "relaxed log --out made".split(' ')).ok();
    assert!(
        run.out
            .contains("None of these rules keeps the target's law."),
        "{}",
        run.out
    );
    let text = std::fs::read_to_string(folder.path().join("made/report.json")).unwrap();
    let report: RelaxedReport = serde_json::from_str(&text).unwrap();
    assert_eq!(report.of.command, "specgap relaxed log");
    for one in &report.rules {
        let name = format!("{} {}", one.rule, one.value);
        let most = report.overlap.mean + one.variation.mean;
        let below = most - one.accepted.mean;
        assert!((below - one.below_frontier.mean).abs() < 1e-9, "{name}");
        let above = one.accepted.mean - report.overlap.mean;
        assert!((above - one.above_lossless.mean).abs() < 1e-9, "{name}");
        assert_eq!(
            one.divergence.is_none(),
            one.let_through.mean > 0.0,
            "{name}"
        );
        let is_lossless = one.variation.mean < 1e-9;
        assert_eq!(one.standing == Standing::Lossless, is_lossless, "{name}");
    }
    let find = |rule: &str, value: f64| {
        let mut rules = report.rules.iter();
        rules
            .find(|one| one.rule == rule && one.value == value)
            .unwrap()
    };
    // A mixture keeps w of the overlap and all of the rest: (1 - w) + w overlap.
    let mixed = find("ensemble", 0.4);
    assert!((mixed.accepted.mean - (0.6 + 0.4 * report.overlap.mean)).abs() < 1e-9);
    assert_eq!(mixed.standing, Standing::OnFrontier);
    assert_eq!(find("ensemble", 1.0).above_lossless.ci95, [0.0; 2]);
    assert_eq!(find("casc-opt", 1.0).accepted.mean, 1.0);
    assert!(folder.path().join("made/relaxed.svg").is_file());
    let lists = Path::new(ROOT).join("models/logs/smollm2-demo");
    specgap(folder.path(), ["relaxed", lists.to_str().unwrap()])
        .refused(&["smollm2-demo", "log whole rows"]);
}
