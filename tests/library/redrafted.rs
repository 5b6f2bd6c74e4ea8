//! The draft at another temperature, and cut: the same numbers as of a log whose draft rows
//! are changed so, the target's row as it is, and lists that do not tell it refused.

use specgap::gap::{
    GapReport, KnownEstimate, Part, Redrafted, Settings, Summary, measure, summarise,
};
use specgap::known::Kind;
use specgap::log::{KeptTokens, Log};
use specgap::sampling::Cuts;
use std::path::Path;

use crate::made_log::{Pair, V, rows, write};

const DRAFTS: [usize; 2] = [2, 3];

fn settings(temperatures: &[f64], top_k: Option<usize>, top_p: Option<f64>) -> Settings {
    let settings = Settings::new(&[1.0], &DRAFTS, 3).unwrap();
    settings
        .redrafted(temperatures, cuts(top_k, top_p))
        .unwrap()
}

fn cuts(top_k: Option<usize>, top_p: Option<f64>) -> Option<Cuts> {
    let cuts = Cuts {
        top_k,
        top_p,
        ..Cuts::default()
    };
    (cuts != Cuts::default()).then_some(cuts)
}

fn report_of(path: &Path, settings: &Settings) -> Result<GapReport, String> {
    let logs = [Log::open(path).unwrap()];
    measure(&logs, settings, "specgap gap log", &|_| ()).map_err(|error| error.to_string())
}

fn log(folder: &Path, name: &str, rows: &[Pair], tokens: KeptTokens) -> std::path::PathBuf {
    let path = folder.join(name);
    write(&path, rows, tokens);
    path
}

/// Every rate of a changed draft, by name.
fn changed(row: &Redrafted) -> Vec<(String, KnownEstimate)> {
    let mut all = vec![("overlap".to_owned(), row.overlap.clone())];
    for cell in &row.cells {
        let name = format!("{} {}", cell.drafts, cell.scheme);
        all.push((name.clone(), cell.optimal_acceptance_rate.clone()));
        for verifier in &cell.verifiers {
            let name = format!("{name} {}", verifier.name);
            all.push((name, verifier.acceptance.clone()));
        }
    }
    all
}

/// The same of a report's own rows.
fn usual(report: &GapReport) -> Vec<(String, KnownEstimate)> {
    let overlap = &report.overlap[0];
    let known = |estimate, kind, width_max| KnownEstimate {
        estimate,
        kind,
        width_max,
    };
    let mut all = vec![(
        "overlap".to_owned(),
        known(overlap.estimate, overlap.kind, overlap.width_max),
    )];
    for cell in &report.cells {
        let name = format!("{} {}", cell.drafts, cell.scheme);
        let best = &cell.optimal_acceptance_rate;
        all.push((
            name.clone(),
            known(best.estimate, best.kind, best.width_max),
        ));
        for row in &cell.verifiers {
            let name = format!("{name} {}", row.name);
            all.push((name, known(row.acceptance, row.kind, row.width_max)));
        }
    }
    all
}

/// Rows whose draft's logits are changed.
fn with_drafts(rows: &[Pair], change: impl Fn(&[f32]) -> Vec<f32>) -> Vec<Pair> {
    let changed = rows
        .iter()
        .map(|(target, draft)| (target.clone(), change(draft)));
    changed.collect()
}

/// Masks all but the `top_k` largest, and of these the fewest largest that have a share of them.
fn masked(row: &[f32], top_k: Option<usize>, top_p: f64) -> Vec<f32> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
    order.truncate(top_k.unwrap_or(row.len()));
    let mass = |tokens: &[usize]| -> f64 { tokens.iter().map(|&i| f64::from(row[i]).exp()).sum() };
    let is_enough = |&count: &usize| mass(&order[..count]) >= top_p * mass(&order);
    let count = (1..order.len()).find(is_enough).unwrap_or(order.len());
    let mut out = vec![f32::NEG_INFINITY; row.len()];
    order[..count].iter().for_each(|&i| out[i] = row[i]);
    out
}

#[test]
fn a_temperature_of_the_draft_is_that_of_its_row_alone() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(14);
    let path = log(folder.path(), "log", &rows, KeptTokens::All);
    let report = report_of(&path, &settings(&[1.0, 0.5], None, None)).unwrap();
    let [sharp, same] = &report.redrafted[..] else {
        panic!("{:?}", report.redrafted.len());
    };
    assert_eq!(
        (sharp.draft_temperature, same.draft_temperature),
        (0.5, 1.0)
    );
    // Nothing is changed at the target's temperature.
    let own = usual(&report);
    assert_eq!(changed(same), own);
    assert!(own.len() > 20, "{own:?}");
    // At half of it, logits are doubled, which is exact.
    let doubled = with_drafts(&rows, |row| row.iter().map(|x| 2.0 * x).collect());
    let other = log(folder.path(), "doubled", &doubled, KeptTokens::All);
    let plain = Settings::new(&[1.0], &DRAFTS, 3).unwrap();
    assert_eq!(changed(sharp), usual(&report_of(&other, &plain).unwrap()));
    // The draft's likeliest tokens are the same at any temperature.
    for (name, one) in changed(sharp) {
        let (_, at_1) = own.iter().find(|(own, _)| *own == name).unwrap();
        let is_top = name.ends_with(" top") || name.contains(" top ");
        assert_eq!(one.estimate == at_1.estimate, is_top, "{name}");
    }
    // What is not asked for is not there, and the rest of the report is what it was.
    let without = report_of(&path, &plain).unwrap();
    assert!(without.redrafted.is_empty());
    assert_eq!(without.cells, report.cells);
    let text = serde_json::to_string(&without).unwrap();
    assert!(!text.contains("redrafted"));
}

#[test]
fn a_cut_of_the_draft_is_that_of_its_row_alone() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(14);
    let path = log(folder.path(), "log", &rows, KeptTokens::All);
    let plain = Settings::new(&[1.0], &DRAFTS, 3).unwrap();
    for (number, (top_k, top_p)) in [(Some(3), None), (None, Some(0.8)), (Some(4), Some(0.7))]
        .into_iter()
        .enumerate()
    {
        let report = report_of(&path, &settings(&[], top_k, top_p)).unwrap();
        let [row] = &report.redrafted[..] else {
            panic!("{:?}", report.redrafted.len());
        };
        assert_eq!((row.draft_temperature, row.draft_top_k), (1.0, top_k));
        let cut = with_drafts(&rows, |row| masked(row, top_k, top_p.unwrap_or(1.0)));
        let other = log(
            folder.path(),
            &format!("cut-{number}"),
            &cut,
            KeptTokens::All,
        );
        for ((name, ours), (_, theirs)) in changed(row)
            .iter()
            .zip(usual(&report_of(&other, &plain).unwrap()))
        {
            let apart = (ours.estimate.mean - theirs.estimate.mean).abs();
            // Masked before or after the softmax, which rounds otherwise.
            assert!(apart < 1e-12, "{name}: {apart}");
        }
        assert_ne!(changed(row)[0], usual(&report)[0]);
    }
}

#[test]
fn lists_tell_a_changed_draft_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(14);
    let full = log(folder.path(), "full", &rows, KeptTokens::All);
    let top = KeptTokens::Top {
        count: 3,
        rest_temperatures: vec![0.5, 1.0],
    };
    let lists = log(folder.path(), "lists", &rows, top);
    for (temperatures, top_k, top_p) in [
        (&[0.5, 2.0][..], None, None),
        (&[0.5, 2.0], Some(3), None),
        (&[0.5], None, Some(0.6)),
        (&[0.5, 1.0], Some(3), Some(0.9)),
        (&[1.0], None, Some(0.9999)),
    ] {
        let settings = settings(temperatures, top_k, top_p);
        let [whole, listed] = [&full, &lists].map(|path| report_of(path, &settings).unwrap());
        let (mut checked, mut open) = (0, 0);
        for (whole, listed) in whole.redrafted.iter().zip(&listed.redrafted) {
            for ((name, whole), (_, listed)) in changed(whole).iter().zip(changed(listed)) {
                let mean = whole.estimate.mean;
                let [low, high] = listed
                    .estimate
                    .truncation
                    .unwrap_or([listed.estimate.mean; 2]);
                let room = 1e-9 + 3e-2 * f64::from(whole.kind == Kind::MonteCarlo);
                assert!(
                    low - room <= mean && mean <= high + room,
                    "{name}: {mean} {listed:?}"
                );
                checked += 1;
                open += usize::from(high - low > 1e-9);
            }
        }
        assert!(checked > 10 && open > 0, "{checked} {open}");
    }
    // What the lists do not tell.
    let error = report_of(&lists, &settings(&[1.0], Some(4), None)).unwrap_err();
    assert!(
        error.contains("fewer than ⟨draft-top-k 4⟩") && error.contains("position "),
        "{error}"
    );
    // More tokens than there are is no cut.
    assert!(report_of(&full, &settings(&[1.0], Some(V + 5), None)).is_ok());
}

#[test]
fn changed_drafts_travel_with_summaries() {
    let folder = tempfile::tempdir().unwrap();
    let path = log(folder.path(), "log", &rows(12), KeptTokens::All);
    let settings = settings(&[0.5], Some(4), Some(0.9));
    let logs = [Log::open(&path).unwrap()];
    let part = |index| {
        let part = Part { index, count: 2 };
        summarise(&logs, &settings, part, None, &|_| ()).unwrap()
    };
    let (mut first, second) = (part(1), part(2));
    let second = Summary::from_json(&second.to_json().unwrap()).unwrap();
    first.merge(&second).unwrap();
    let whole = summarise(&logs, &settings, Part::WHOLE, None, &|_| ()).unwrap();
    assert_eq!(first.report("x"), whole.report("x"));
    assert_eq!(first.report("x").redrafted.len(), 1);
    let other = Settings::new(&[1.0], &DRAFTS, 3).unwrap();
    let other = summarise(&logs, &other, Part { index: 2, count: 2 }, None, &|_| ()).unwrap();
    let error = part(1).merge(&other).unwrap_err().to_string();
    assert!(error.contains("⟨draft-temperature"), "{error}");
}

#[test]
fn settings_of_the_draft_that_mean_nothing_are_refused() {
    let settings = || Settings::new(&[1.0], &[2], 0).unwrap();
    for (temperatures, top_k, top_p, says) in [
        (
            &[-0.5][..],
            None,
            None,
            "⟨draft-temperature -0.5⟩ is out of range",
        ),
        (&[f64::NAN], None, None, "⟨draft-temperature NaN⟩"),
        (&[], Some(0), None, "⟨draft-top-k 0⟩"),
        (&[], None, Some(0.0), "⟨draft-top-p 0⟩"),
        (&[], None, Some(1.5), "⟨draft-top-p 1.5⟩"),
    ] {
        let error = settings()
            .redrafted(temperatures, cuts(top_k, top_p))
            .unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
}
