//! Rules of the caller's own in a report, against what is summed by hand.

use super::{
    Columns, Entry, GapReport, OwnRate, OwnRow, OwnRule, Part, PositionSink, RedraftedVerifier,
    Settings, Summary, VerifierRow, measure, summarise,
};
use specgap_core::scheme::SchemeName;
use specgap_log::log::{Dtype, HeldTensor, Log, Metadata};
use specgap_sampling::Cuts;
use specgap_statistics::Clustered;
use std::io;
use std::sync::{Arc, Mutex};

const IID: SchemeName = SchemeName::WITH_REPLACEMENT;

/// Weights of p and q at six positions, in three prompts of one, two and three.
pub(super) const ROWS: [[[f32; 4]; 2]; 6] = [
    [[1.0, 2.0, 3.0, 10.0], [4.0, 4.0, 4.0, 4.0]],
    [[5.0, 1.0, 1.0, 1.0], [1.0, 5.0, 1.0, 1.0]],
    [[2.0, 2.0, 3.0, 1.0], [2.0, 1.0, 3.0, 2.0]],
    [[1.0, 1.0, 1.0, 1.0], [8.0, 4.0, 2.0, 2.0]],
    [[7.0, 3.0, 4.0, 2.0], [7.0, 4.0, 3.0, 2.0]],
    [[1.0, 9.0, 1.0, 5.0], [3.0, 3.0, 1.0, 1.0]],
];
const PROMPTS: [i64; 6] = [0, 1, 1, 2, 2, 2];

pub(super) fn tensor(name: &str, dtype: Dtype, shape: &[usize], bytes: Vec<u8>) -> HeldTensor {
    HeldTensor {
        name: name.to_owned(),
        dtype,
        shape: shape.to_vec(),
        entries: Arc::new(bytes),
    }
}

pub(super) fn log_of(more: Vec<HeldTensor>, metadata: Metadata) -> Log {
    let logits = |side: usize| {
        let rows = ROWS.iter().flat_map(move |row| row[side]);
        rows.flat_map(|weight| weight.ln().to_le_bytes()).collect()
    };
    let prompts = PROMPTS.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut tensors = vec![
        tensor("target_logits", Dtype::F32, &[6, 4], logits(0)),
        tensor("draft_logits", Dtype::F32, &[6, 4], logits(1)),
        tensor("prompt_id", Dtype::I64, &[6], prompts),
    ];
    tensors.extend(more);
    Log::held("made".as_ref(), metadata, tensors, None).unwrap()
}

pub(super) fn log() -> Log {
    log_of(Vec::new(), Metadata::default())
}

/// The same rows as lists of four tokens of nine, a tenth of the mass being elsewhere.
fn lists() -> Log {
    let ids = (0..6).flat_map(|_| [0i32, 1, 2, 3]);
    let rest = |name: &str| {
        let bytes = [0.1f64; 6].iter().flat_map(|x| x.to_le_bytes()).collect();
        tensor(name, Dtype::F64, &[6, 1], bytes)
    };
    let ids = ids.flat_map(i32::to_le_bytes).collect();
    let more = vec![
        tensor("token_ids", Dtype::I32, &[6, 4], ids),
        rest("target_rest"),
        rest("draft_rest"),
    ];
    let metadata = Metadata {
        vocabulary: Some(9),
        rest_temperatures: vec![1.0],
        ..Metadata::default()
    };
    log_of(more, metadata)
}

/// A token that n draws of q hold: the target's own draw, if it was drafted.
fn drawn(row: OwnRow<'_>) -> f64 {
    let missed = |q: f64| (1.0 - q).powi(row.drafts as i32);
    let both = row.target.iter().zip(row.draft);
    both.map(|(p, q)| p * (1.0 - missed(*q))).sum()
}

fn matching(name: &str) -> OwnRule {
    let rate = |row: OwnRow<'_>| {
        Ok(OwnRate {
            membership: drawn(row),
            algorithmic: Some(drawn(row) / 2.0),
            total_variation: Some(1e-17),
            noise: None,
        })
    };
    OwnRule::new(name, IID, rate).unwrap()
}

fn settings(own: OwnRule) -> Settings {
    let mut settings = Settings::new(&[1.0, 2.0], &[1, 3], 5).unwrap();
    settings.own_rules.push(own);
    settings
}

pub(super) fn report(settings: &Settings) -> GapReport {
    measure(&[log()], settings, "", &|_| ()).unwrap()
}

/// Why a log is not measured.
pub(super) fn refused(log: Log, settings: &Settings) -> String {
    let refused = measure(&[log], settings, "", &|_| ());
    refused.unwrap_err().to_string()
}

/// One of two parts.
pub(super) fn half(settings: &Settings, index: usize) -> Summary {
    let part = Part { index, count: 2 };
    summarise(&[log()], settings, part, None, &|_| ()).unwrap()
}

/// That two halves merge into the whole, also from files, where what is of the caller's own is
/// known to be one: `told` gives it a digest, and `none` has nothing of the kind. Gives the report
/// of the whole, and that of two files with a digest; `why` says that a file has no function.
#[track_caller]
pub(super) fn merged_where_one(
    plain: &Settings,
    told: impl Fn(&str) -> Settings,
    none: &Settings,
    what: &str,
    why: &str,
) -> [GapReport; 2] {
    let whole = report(plain);
    // One function, in one process.
    let (mut first, second) = (half(plain, 1), half(plain, 2));
    first.merge(&second).unwrap();
    assert_eq!(first.report(""), whole);
    assert_eq!(carried(&first).report(""), whole);
    assert_eq!(carried(&first).to_json().unwrap(), first.to_json().unwrap());
    // Without a digest, nothing tells of a summary from elsewhere by which function it was made.
    let apart = carried(&half(plain, 1)).merge(&second).unwrap_err();
    says(&apart.to_string(), &[&format!("own {what} mine"), "digest"]);
    let mut first = carried(&half(&told("v1"), 2));
    first.merge(&carried(&half(&told("v1"), 1))).unwrap();
    let merged = first.report("");
    assert_eq!(merged.cells, whole.cells);
    let apart = carried(&half(&told("v1"), 1)).fits(&half(&told("v2"), 2));
    says(&apart.unwrap_err(), &["v1", "v2"]);
    let apart = half(plain, 1).fits(&half(none, 2));
    says(&apart.unwrap_err(), &["own rules none"]);
    // What was read has no function to measure with.
    let again = refused(log(), carried(&second).settings());
    says(&again, &["position 0", why]);
    [whole, merged]
}

/// A report on lists, which are refused unless they hold all that is kept.
#[track_caller]
pub(super) fn of_lists(settings: Settings, what: &str) -> GapReport {
    let words = format!("position 0: own {what} mine: the row lists some tokens only");
    says(&refused(lists(), &settings), &[&words]);
    let cuts = Cuts {
        top_k: Some(1),
        ..Cuts::default()
    };
    measure(&[lists()], &settings.served(cuts).unwrap(), "", &|_| ()).unwrap()
}

/// A summary as it comes from a file.
pub(super) fn carried(summary: &Summary) -> Summary {
    Summary::from_json(&summary.to_json().unwrap()).unwrap()
}

/// That a message has some words.
#[track_caller]
pub(super) fn says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{message}");
    }
}

/// The row of a rule.
#[track_caller]
pub(super) fn row<'a>(rows: &'a [VerifierRow], name: &str) -> &'a VerifierRow {
    rows.iter().find(|row| row.name == name).unwrap()
}

/// Returns what a rule accepts of another row of the draft, on average.
#[track_caller]
pub(super) fn redrafted(rows: &[RedraftedVerifier], name: &str) -> f64 {
    let row = rows.iter().find(|row| row.name == name).unwrap();
    row.acceptance.estimate.mean
}

/// The shares of a row at a temperature, from its weights alone.
fn shares(weights: [f32; 4], temperature: f64) -> Vec<f64> {
    let powers = weights.map(|weight| f64::from(weight).powf(1.0 / temperature));
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|x| x / sum).collect()
}

/// Sums and sizes of the three prompts.
pub(super) fn clusters(rates: &[f64]) -> Vec<(f64, f64)> {
    let of = |prompt: i64| {
        let own = PROMPTS.iter().zip(rates).filter(|(p, _)| **p == prompt);
        own.fold((0.0, 0.0), |(sum, size), (_, rate)| {
            (sum + rate, size + 1.0)
        })
    };
    (0..3).map(of).collect()
}

/// Rows of the table of positions.
#[derive(Default)]
struct Kept(Vec<Vec<Option<f64>>>);

impl PositionSink for Kept {
    fn row(&mut self, entries: &[Entry<'_>]) -> io::Result<()> {
        let number = |entry: &Entry<'_>| match *entry {
            Entry::Number(x) => x,
            Entry::Integer(x) => x.map(|x| x as f64),
            Entry::Text(_) => None,
        };
        self.0.push(entries.iter().map(number).collect());
        Ok(())
    }
}

/// The summary, and what the table's column of a name has at a temperature and n.
pub(super) fn with_columns(
    settings: &Settings,
) -> (Summary, impl Fn(&str, f64, usize) -> Vec<f64>) {
    let mut kept = Kept::default();
    let summary = summarise(&[log()], settings, Part::WHOLE, Some(&mut kept), &|_| ()).unwrap();
    let names = Columns::new(settings).names();
    let column = move |name: &str, temperature: f64, n: usize| -> Vec<f64> {
        let at = |name: &str| names.iter().position(|(one, _)| one == name).unwrap();
        let rows = kept.0.iter();
        rows.filter(|row| row[at("temperature")] == Some(temperature))
            .filter(|row| row[at("drafts")] == Some(n as f64))
            .filter_map(|row| row[at(name)])
            .collect()
    };
    (summary, column)
}

#[test]
fn means_intervals_and_differences_are_those_by_hand() {
    let settings = settings(matching("mine"));
    let (summary, column) = with_columns(&settings);
    let report = summary.report("");
    let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-14, "{one} {other}");
    let mut checked = 0;
    for cell in report
        .cells
        .iter()
        .filter(|cell| cell.scheme == IID.as_str())
    {
        let (temperature, n) = (cell.temperature, cell.drafts);
        let by_hand: Vec<f64> = (ROWS.iter())
            .map(|row| {
                let [target, draft] = row.map(|weights| shares(weights, temperature));
                let missed = |q: f64| (1.0 - q).powi(n as i32);
                (target.iter().zip(&draft))
                    .map(|(p, q)| p * (1.0 - missed(*q)))
                    .sum()
            })
            .collect();
        let own = row(&cell.verifiers, "mine");
        // Behind those of the table, and as the rule of the table that does the same.
        assert_eq!(cell.verifiers.last().unwrap().name, "mine");
        let same = row(&cell.verifiers, "exact-match");
        let (own_mean, same_mean) = (own.acceptance.mean, same.acceptance.mean);
        assert!((own_mean - same_mean).abs() < 1e-12);
        let interval = |rates: &[f64]| Clustered::new(clusters(rates).into_iter()).estimate();
        // The shares of f32 logits are off by as much.
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-6, "{one} {other}");
        near(own_mean, by_hand.iter().sum::<f64>() / 6.0);
        near(own.acceptance.ci95[0], interval(&by_hand).ci95[0]);
        let rates = column("with-replacement/mine", temperature, n);
        assert_eq!(rates.len(), 6);
        let whole = interval(&rates);
        close(own_mean, whole.mean);
        close(own.acceptance.ci95[1], whole.ci95[1]);
        let optima = column("with-replacement/optimum", temperature, n);
        let gaps: Vec<f64> = optima.iter().zip(&rates).map(|(a, b)| a - b).collect();
        close(own.gap.estimate.mean, interval(&gaps).mean);
        close(own.gap.estimate.ci95[0], interval(&gaps).ci95[0]);
        let numbers = own.own.as_ref().unwrap();
        close(numbers.algorithmic.unwrap().mean, own_mean / 2.0);
        assert_eq!(numbers.total_variation_max, Some(1e-17));
        let away = column("with-replacement/mine/total-variation", temperature, n);
        assert_eq!(away, [1e-17; 6]);
        // Paired, and with one prompt a cluster.
        let first = "with-replacement/mine";
        let differences = (report.comparisons.iter())
            .filter(|one| one.first == first && (one.temperature, one.drafts) == (temperature, n));
        for one in differences {
            let other = column(&one.second, temperature, n);
            let less: Vec<f64> = rates.iter().zip(&other).map(|(a, b)| a - b).collect();
            let by_hand = interval(&less);
            close(one.difference.mean, by_hand.mean);
            close(one.difference.ci95[0], by_hand.ci95[0]);
            checked += 1;
        }
        // A rule that accepts alpha* is what the gap is to.
        let level = |one: &&super::Comparison| one.first == first && one.second.ends_with("level");
        assert!(!report.comparisons.iter().any(|one| level(&one)));
    }
    assert!(checked >= 4 * 3, "{checked}");
    let told: Vec<&str> = report
        .own_rules
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(told, ["mine"]);
    assert!(report.definitions.contains_key("verifier mine"));
    // No command line has a function.
    assert_eq!(summary.command(), "");
}

#[test]
fn rows_are_those_that_rules_of_the_table_see() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&seen);
    let rate = move |row: OwnRow<'_>| {
        let all = (
            row.position,
            row.drafts,
            row.target.to_vec(),
            row.draft.to_vec(),
        );
        into.lock().unwrap().push(all);
        Ok(OwnRate::from(drawn(row)))
    };
    let cuts = Cuts {
        top_k: Some(2),
        ..Cuts::default()
    };
    let mut settings = Settings::new(&[1.0], &[2], 0)
        .unwrap()
        .served(cuts)
        .unwrap();
    settings
        .own_rules
        .push(OwnRule::new("mine", IID, rate).unwrap());
    let report = report(&settings);
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_by_key(|row| row.0);
    assert_eq!(
        seen.iter().map(|row| row.0).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5]
    );
    for (_, drafts, target, draft) in &seen {
        assert_eq!(*drafts, 2);
        for row in [target, draft] {
            assert_eq!(row.iter().filter(|&&x| x > 0.0).count(), 2);
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        }
    }
    // 10 and 3 of 1, 2, 3, 10.
    assert!((seen[0].2[3] - 10.0 / 13.0).abs() < 1e-7);
    let [own, same] = ["mine", "exact-match"].map(|name| row(&report.cells[0].verifiers, name));
    assert!((own.acceptance.mean - same.acceptance.mean).abs() < 1e-12);
    // It did not say how far its law is from p.
    assert_eq!(own.own.as_ref().unwrap().total_variation_max, None);
}

/// A draft at another temperature is measured with it too.
#[test]
fn redrafted_rows_are_asked_again() {
    let settings = settings(matching("mine")).redrafted(&[0.5], None).unwrap();
    for one in &report(&settings).redrafted {
        let cell = one.cells.iter().find(|cell| cell.scheme == IID.as_str());
        let rows = &cell.unwrap().verifiers;
        let [own, same] = ["mine", "exact-match"].map(|name| redrafted(rows, name));
        assert!((own - same).abs() < 1e-12, "{own} {same}");
    }
}

#[test]
fn summaries_carry_what_was_measured_and_merge_where_the_rule_is_known_to_be_one() {
    let own = matching("mine").words("keeps  what the target draws");
    let told = |digest: &str| settings(own.clone().digest(digest));
    let none = Settings::new(&[1.0, 2.0], &[1, 3], 5).unwrap();
    let why = "no function";
    let [whole, told] = merged_where_one(&settings(own.clone()), told, &none, "rule", why);
    assert_eq!(whole.own_rules[0].words, "keeps what the target draws");
    assert_eq!(told.own_rules[0].digest.as_deref(), Some("v1"));
}

/// Two own rules are compared with one another too, the first that is named minus the other.
#[test]
fn own_rules_are_told_apart_from_one_another() {
    let half = OwnRule::new("half", IID, |row| Ok(OwnRate::from(drawn(row) / 2.0))).unwrap();
    let mut settings = settings(matching("mine"));
    settings.own_rules.push(half);
    settings.verifiers.clear();
    settings.schemes = vec![IID];
    let report = report(&settings);
    assert_eq!(report.comparisons.len(), 4);
    for one in &report.comparisons {
        assert_eq!(one.first, "with-replacement/mine");
        assert_eq!(one.second, "with-replacement/half");
        let cell = (report.cells.iter())
            .find(|cell| (cell.temperature, cell.drafts) == (one.temperature, one.drafts))
            .unwrap();
        let [mine, half] = [0, 1].map(|at| cell.verifiers[at].acceptance.mean);
        assert!((one.difference.mean - (mine - half)).abs() < 1e-15);
    }
}

#[test]
fn refusals_name_the_rule_and_the_cure() {
    let named = |name: &str| {
        let rule = OwnRule::new(name, IID, |row| Ok(OwnRate::from(drawn(row))));
        rule.unwrap_err().to_string()
    };
    // A name, an alias, a law, a column.
    for name in [
        "rrs",
        "single",
        "token",
        "greedy",
        "without-replacement",
        "optimum",
    ] {
        says(&named(name), &["already"]);
    }
    for name in ["", " ", "a/b", "a,b", "a\nb", &"x".repeat(65)] {
        says(&named(name), &["own rule"]);
    }
    let mut twice = settings(matching("mine"));
    twice.own_rules.push(matching("mine"));
    says(&refused(log(), &twice), &["mine: is there twice"]);
    let wrong = |rate: f64| {
        let rate = move |row: OwnRow<'_>| match row.position {
            4 => Ok(OwnRate::from(rate)),
            _ => Ok(OwnRate::from(0.5)),
        };
        let settings = settings(OwnRule::new("mine", IID, rate).unwrap());
        refused(log(), &settings)
    };
    for rate in [1.5, -0.25, f64::NAN] {
        let words = "position 4: own rule mine: its acceptance with n = 1";
        says(&wrong(rate), &[words]);
    }
    // Under a law that is not asked for it is left out, and said to be.
    let mut other = settings(matching("mine"));
    other.schemes = vec![SchemeName::WITHOUT_REPLACEMENT];
    let report = report(&other);
    assert!(report.left_out.iter().any(|line| {
        line.contains("own rule mine") && line.contains("--laws with-replacement")
    }));
    other.verifiers.clear();
    assert!(
        report
            .cells
            .iter()
            .all(|cell| cell.verifiers.iter().all(|row| row.own.is_none()))
    );
}

/// Of a row that lists some tokens only nothing bounds an own rule, unless it lists all that is
/// kept.
#[test]
fn lists_are_refused_unless_they_hold_all_that_is_kept() {
    let mut settings = Settings::new(&[1.0], &[2], 0).unwrap();
    settings.own_rules.push(matching("mine"));
    let report = of_lists(settings, "rule");
    let find = |name: &str| {
        let mut rows = report.cells.iter().flat_map(|cell| &cell.verifiers);
        rows.find(|row| row.name == name).unwrap().acceptance.mean
    };
    assert!((find("mine") - find("exact-match")).abs() < 1e-12);
}
