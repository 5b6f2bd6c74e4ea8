//! The gap report against the exact solvers, position by position, and its
//! promises: the same to the bit on any number of threads, means and intervals
//! by hand, refusals with their place.

use crate::log::{f32s, i64s, safetensors};
use crate::says::Says;
use specgap::distribution::{Draft, Softmax, Target};
use specgap::evaluate::{Verification, verify};
use specgap::gap::{
    GapReport, Part, Settings, SlowRates, SolvedPlans, Summary, against, measure, summarise,
};
use specgap::known::Kind;
use specgap::log::{Dtype, KeptTokens, Layout, Log};
use specgap::optimum::best;
use specgap::problem::Problem;
use specgap::report::gap::page;
use specgap::scheme::{MadeOf, SchemeName};
use specgap::statistics::Estimate;
use specgap::verifier::{RrsWo, RrsWoSettings, VerifierName};
use std::path::{Path, PathBuf};

use crate::made_log::{Pair, V, rows, write, write_at};

fn log_of(folder: &Path, count: usize) -> (PathBuf, Vec<Pair>) {
    let path = folder.join("log");
    let rows = rows(count);
    write(&path, &rows, KeptTokens::All);
    (path, rows)
}

fn report(path: &Path, temperatures: &[f64], drafts: &[usize]) -> GapReport {
    let logs = [Log::open(path).unwrap()];
    let settings = Settings::new(temperatures, drafts, 3).unwrap();
    measure(&logs, &settings, "specgap gap log", &|_| ()).unwrap()
}

/// Every scheme at one position, by maximum flow and enumeration.
fn exact(target: &[f32], draft: &[f32], temperature: f64, n: usize) -> Vec<Verification> {
    let problems = problems(target, draft, temperature, n);
    problems.iter().map(verify).collect()
}

fn problems(target: &[f32], draft: &[f32], temperature: f64, n: usize) -> Vec<Problem> {
    let rule = Softmax { temperature };
    let wide = |row: &[f32]| row.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let p = Target::from_logits(&wide(target), &rule).unwrap();
    let q = Draft::from_logits(&wide(draft), &rule).unwrap();
    Settings::schemes()
        .into_iter()
        .filter(|scheme| scheme.fits(n))
        .map(|scheme| match scheme.entry().made_of {
            MadeOf::OneDraft(make) => Problem::from_law("", p.clone(), make(q.clone(), n)).unwrap(),
            _ => panic!("a log has one draft distribution"),
        })
        .collect()
}

#[test]
fn every_mean_is_that_of_the_exact_solvers() {
    let folder = tempfile::tempdir().unwrap();
    let (path, rows) = log_of(folder.path(), 12);
    let temperatures = [0.6, 1.0];
    let drafts = [1, 2, 3];
    let logs = [Log::open(&path).unwrap()];
    let mut settings = Settings::new(&temperatures, &drafts, 3).unwrap();
    let of_noise = [VerifierName::SHARED_GUMBEL, VerifierName::GLS];
    settings.verifiers.extend(of_noise);
    let report = measure(&logs, &settings, "specgap gap log", &|_| ()).unwrap();
    assert_eq!((report.positions, report.clusters), (12, 3));
    let mut cells = report.cells.iter();
    for temperature in temperatures {
        for n in drafts {
            let all: Vec<Vec<Verification>> = rows
                .iter()
                .map(|(target, draft)| exact(target, draft, temperature, n))
                .collect();
            for scheme in 0..all[0].len() {
                let cell = cells.next().unwrap();
                assert_eq!(cell.scheme, all[0][scheme].scheme.as_str());
                assert_eq!((cell.temperature, cell.drafts), (temperature, n));
                let mean = |f: &dyn Fn(&Verification) -> f64| {
                    all.iter().map(|one| f(&one[scheme])).sum::<f64>() / rows.len() as f64
                };
                let optimum = mean(&|e| e.optimum.as_ref().unwrap().value());
                let ours = &cell.optimal_acceptance_rate;
                assert!((ours.estimate.mean - optimum).abs() < 1e-11, "{cell:?}");
                if cell.scheme.ends_with("replacement") {
                    assert!(cell.verifiers.iter().any(|row| row.name == "exact-match"));
                }
                for row in &cell.verifiers {
                    let name: VerifierName = row.name.parse().unwrap();
                    let rate = mean(&|e| e.measured(name).unwrap().membership.value());
                    // The budget of rrs-wo aims at 1e-6.
                    let error = row.width_max + 1e-11;
                    assert!((row.acceptance.mean - rate).abs() < error, "{row:?} {rate}");
                    let gap = row.gap.estimate.mean;
                    assert!((gap - (optimum - rate)).abs() < error + 1e-11);
                    assert!(gap > -1e-11);
                    assert_eq!(row.gap.histogram.iter().sum::<u64>(), 12);
                }
            }
        }
    }
    assert!(cells.next().is_none());
    for row in &report.overlap {
        let mean = rows
            .iter()
            .map(|(target, draft)| {
                let all = exact(target, draft, row.temperature, 1);
                all[0].optimum.as_ref().unwrap().value()
            })
            .sum::<f64>()
            / 12.0;
        assert!((row.estimate.mean - mean).abs() < 1e-13);
    }
}

/// The optimum of sequential draws is that of the flow, enclosed, and the report says why
/// no plan of theirs is measured.
#[test]
fn the_optimum_of_sequential_draws_stays_as_a_ceiling() {
    let folder = tempfile::tempdir().unwrap();
    let (path, rows) = log_of(folder.path(), 6);
    let logs = [Log::open(&path).unwrap()];
    let mut settings = Settings::new(&[1.0], &[2, 3], 3).unwrap();
    settings.verifiers.push(VerifierName::OPTIMAL);
    let report = measure(&logs, &settings, "", &|_| ()).unwrap();
    let mut seen = 0;
    for cell in &report.cells {
        if cell.scheme != "without-replacement" {
            continue;
        }
        seen += 1;
        let mean = rows
            .iter()
            .map(|(p, q)| {
                best(&problems(p, q, 1.0, cell.drafts)[1])
                    .unwrap()
                    .rate
                    .value()
            })
            .sum::<f64>()
            / rows.len() as f64;
        let ours = &cell.optimal_acceptance_rate;
        assert_eq!(ours.kind, Kind::Enclosed);
        assert!(ours.width_max < 1e-9, "{ours:?}");
        assert!((ours.estimate.mean - mean).abs() < 1e-9, "{ours:?} {mean}");
        assert!(cell.verifiers.iter().all(|row| row.name != "optimal"));
    }
    assert_eq!(seen, 2);
    let planned: Vec<(&str, usize)> = (report.plans.iter())
        .map(|plan| (plan.scheme.as_str(), plan.drafts))
        .collect();
    // Those of level; those of optimal are the same.
    let iid = "with-replacement";
    assert_eq!(planned, [(iid, 2), (iid, 3)]);
    for plan in &report.plans {
        assert!(
            plan.law_l1_max.unwrap() < 1e-10 && plan.shortfall_max < 1e-9,
            "{plan:?}"
        );
        // Some laws are measured, of a log that is longer than what is audited of it.
        assert!(plan.laws_measured.unwrap() >= 1);
    }
    assert!(
        report
            .published_formula
            .iter()
            .all(|row| row.kind == Kind::Enclosed)
    );
    let why = "without-replacement";
    let said = |line: &&String| line.starts_with("optimal of ") && line.contains(why);
    let line = report.left_out.iter().find(said).unwrap();
    line.says("it accepts alpha*, which is measured");
    assert!(
        report
            .published_formula
            .iter()
            .all(|row| row.width_max < 1e-10)
    );
}

/// Plans are solved where rates are audited, and the rate of `level` is alpha*; or all are
/// solved, and its rate is theirs. Both are alpha* of the exact solvers.
#[test]
fn plans_are_a_check_unless_all_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (path, rows) = log_of(folder.path(), 45);
    let logs = [Log::open(&path).unwrap()];
    let mut settings = Settings::new(&[1.0], &[2, 3], 3).unwrap();
    settings.schemes = vec![SchemeName::WITH_REPLACEMENT];
    settings.verifiers = vec![VerifierName::LEVEL];
    let audited = measure(&logs, &settings, "", &|_| ()).unwrap();
    let mut every = settings.clone();
    every.plans = SolvedPlans::Every;
    assert!(every.options().contains(" --plans every"));
    let all = measure(&logs, &every, "", &|_| ()).unwrap();
    for (cell, solved) in audited.cells.iter().zip(&all.cells) {
        let exact = |(p, q): &Pair| {
            let problem = &problems(p, q, 1.0, cell.drafts)[0];
            best(problem).unwrap().rate.value()
        };
        let mean = rows.iter().map(exact).sum::<f64>() / rows.len() as f64;
        let (optimum, row) = (&cell.optimal_acceptance_rate, &cell.verifiers[0]);
        assert_eq!(row.acceptance, optimum.estimate);
        assert_eq!(
            (row.kind, row.width_max),
            (Kind::Enclosed, optimum.width_max)
        );
        assert_eq!((row.gap.max, row.gap.estimate.mean), (0.0, 0.0));
        assert!((row.acceptance.mean - mean).abs() < 1e-12);
        let solved = &solved.verifiers[0];
        assert_eq!(solved.kind, Kind::Enclosed);
        // The enclosure of a solve is another one.
        assert!(solved.width_max > row.width_max);
        assert!((solved.acceptance.mean - mean).abs() < 1e-9);
    }
    // Every fifth of 45.
    let solved = |report: &GapReport| -> Vec<(usize, Option<u64>, Option<u64>)> {
        let plans = report.plans.iter();
        plans
            .map(|plan| (plan.drafts, plan.positions, plan.laws_measured))
            .collect()
    };
    assert_eq!(
        solved(&audited),
        [(2, Some(9), Some(9)), (3, Some(9), Some(9))]
    );
    assert_eq!(solved(&all), [(2, None, Some(9)), (3, None, Some(9))]);
    for plan in audited.plans.iter().chain(&all.plans) {
        assert!(plan.shortfall_max < 1e-9 && plan.law_l1_max.unwrap() < 1e-10);
    }
    // Stretches of three: some have no position that is audited.
    let part = |settings: &Settings, index| {
        let part = Part { index, count: 15 };
        let part = summarise(&logs, settings, part, None, &|_| ()).unwrap();
        Summary::from_json(&part.to_json().unwrap()).unwrap()
    };
    let second = part(&settings, 3).report("");
    assert!(second.plans.is_empty());
    let why = "none of these positions is audited";
    assert!(second.left_out.iter().any(|line| line.contains(why)));
    let mut merged = part(&settings, 3);
    for index in [7, 1, 2, 15, 14, 13, 12, 11, 10, 9, 8, 4, 5, 6] {
        merged.merge(&part(&settings, index)).unwrap();
    }
    assert_eq!(merged.report(""), audited);
    let refusal = merged.merge(&part(&every, 1)).unwrap_err().to_string();
    assert!(
        refusal.contains("⟨plans every⟩") && refusal.contains("audited"),
        "{refusal}"
    );
    // A summary from before there was a choice is of plans that were all solved.
    let text = summarise(&logs, &every, Part::WHOLE, None, &|_| ()).unwrap();
    let text = text.to_json().unwrap();
    let older = text.replace("\"plans\":\"every\",", "");
    assert_ne!(older, text);
    let older = Summary::from_json(&older).unwrap();
    assert_eq!(older.settings(), &every);
    assert_eq!(older.report(""), all);
    // Earlier versions solved plans of sequential draws if asked, and counted steps.
    let asked = |flag: &str| {
        let said = format!("\"sequential_plans\":{flag},\"plans\":\"every\",");
        Summary::from_json(&text.replace("\"plans\":\"every\",", &said))
    };
    assert_eq!(asked("false").unwrap().report(""), all);
    let refusal = asked("true").unwrap_err().to_string();
    assert!(refusal.contains("measure the log again"), "{refusal}");
    let steps = text.replace("\"about\":\"plan-error\"", "\"about\":\"plan-steps\"");
    assert_ne!(steps, text);
    let steps = Summary::from_json(&steps).unwrap().report("");
    assert!(steps.plans.len() == 2 && steps.plans.iter().all(|one| one.law_l1_max.is_none()));
}

#[test]
fn only_what_is_asked_for_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = log_of(folder.path(), 6);
    let logs = [Log::open(&path).unwrap()];
    let mut settings = Settings::new(&[1.0], &[2], 3).unwrap();
    let all = measure(&logs, &settings, "", &|_| ()).unwrap();
    settings.schemes = vec![SchemeName::WITH_REPLACEMENT, SchemeName::HUB];
    settings.verifiers = vec![VerifierName::K_SEQ, VerifierName::RRS];
    let part = measure(&logs, &settings, "", &|_| ()).unwrap();
    let names: Vec<(&str, Vec<&str>)> = (part.cells.iter())
        .map(|cell| {
            let rows = cell.verifiers.iter().map(|row| row.name.as_str());
            (cell.scheme.as_str(), rows.collect())
        })
        .collect();
    let expected = [("with-replacement", vec!["rrs", "k-seq"]), ("hub", vec![])];
    assert_eq!(names, expected);
    assert!(part.plans.is_empty() && part.published_formula.is_empty());
    // The numbers are the same.
    let cell = |report: &GapReport, at: usize| serde_json::to_value(&report.cells[at]).unwrap();
    let (whole, part) = (cell(&all, 0), cell(&part, 0));
    assert_eq!(
        whole["optimal_acceptance_rate"],
        part["optimal_acceptance_rate"]
    );
    assert_eq!(whole["verifiers"][0], part["verifiers"][0]);
}

/// Above four drafts the rate of rrs-wo is a mean over rejected paths, near the exact one.
#[test]
fn many_sequential_drafts_are_simulated_and_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let (path, rows) = log_of(folder.path(), 6);
    let logs = [Log::open(&path).unwrap()];
    let mut settings = Settings::new(&[1.0], &[5], 3).unwrap();
    settings.schemes = vec![SchemeName::WITHOUT_REPLACEMENT];
    settings.verifiers = vec![VerifierName::RRS_WO];
    settings.rrs_wo = SlowRates::Enclosed;
    let report = measure(&logs, &settings, "", &|_| ()).unwrap();
    assert!(report.audits.is_empty());
    let row = &report.cells[0].verifiers[0];
    assert_eq!((row.name.as_str(), row.kind), ("rrs-wo", Kind::MonteCarlo));
    let mean = rows
        .iter()
        .map(|(p, q)| {
            let rule = RrsWo::new(&problems(p, q, 1.0, 5)[1]).unwrap();
            let (low, high) = rule.enclosure(&RrsWoSettings::default());
            assert!(high - low < 1e-3);
            0.5 * (low + high)
        })
        .sum::<f64>()
        / rows.len() as f64;
    assert!((row.acceptance.mean - mean).abs() < 1e-3, "{row:?} {mean}");
    assert!(row.width_max > 0.0 && row.width_max < 0.1);
}

/// The fast way says that it is an estimate, is audited at the same positions however they are
/// dealt, and is near what the slow way says.
#[test]
fn fast_rates_are_estimates_and_audited() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = log_of(folder.path(), 45);
    let logs = [Log::open(&path).unwrap()];
    let mut settings = Settings::new(&[1.0], &[2, 3, 4, 5], 3).unwrap();
    settings.schemes = vec![SchemeName::WITHOUT_REPLACEMENT];
    settings.verifiers = vec![VerifierName::RRS_WO];
    let of = |settings: &Settings| measure(&logs, settings, "", &|_| ()).unwrap();
    let fast = of(&settings);
    settings.rrs_wo = SlowRates::Enclosed;
    let slow = of(&settings);
    for (fast, slow) in fast.cells.iter().zip(&slow.cells) {
        let (n, fast, slow) = (fast.drafts, &fast.verifiers[0], &slow.verifiers[0]);
        let apart = (fast.acceptance.mean - slow.acceptance.mean).abs();
        match n {
            2 => assert_eq!((fast.kind, slow.kind), (Kind::Enclosed, Kind::Enclosed)),
            3 | 4 => assert_eq!((fast.kind, slow.kind), (Kind::Estimate, Kind::Enclosed)),
            _ => assert_eq!((fast.kind, slow.kind), (Kind::Estimate, Kind::MonteCarlo)),
        }
        let room = if n == 5 {
            1e-3
        } else {
            fast.width_max + slow.width_max
        };
        assert!(apart <= room, "{n}: {apart} {room}");
        // A difference to an optimum is no better known than the estimate.
        assert!(fast.gap.estimate.mean >= 0.0);
    }
    let audits: Vec<(usize, u64, u64)> = (fast.audits.iter())
        .map(|audit| (audit.drafts, audit.positions, audit.outside))
        .collect();
    // Every fifth of 45.
    assert_eq!(audits, [(3, 9, 0), (4, 9, 0), (5, 9, 0)]);
    for audit in &fast.audits {
        assert!(audit.difference_mean <= audit.difference_max);
        assert!(
            audit.difference_max <= 0.5 * audit.width_max + 1e-15,
            "{audit:?}"
        );
    }
    assert!(slow.audits.is_empty());
    settings.rrs_wo = SlowRates::Fast;
    let part = |index| {
        let part = Part { index, count: 4 };
        let part = summarise(&logs, &settings, part, None, &|_| ()).unwrap();
        Summary::from_json(&part.to_json().unwrap()).unwrap()
    };
    let mut merged = part(3);
    for index in [1, 4, 2] {
        merged.merge(&part(index)).unwrap();
    }
    assert_eq!(merged.report(""), fast);
}

#[test]
fn a_report_is_the_same_to_the_bit_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = log_of(folder.path(), 45);
    let with = |threads| {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap()
            .install(|| serde_json::to_string(&report(&path, &[0.8, 1.0], &[2, 3])).unwrap())
    };
    let one = with(1);
    assert_eq!(one, with(2));
    assert_eq!(one, with(5));
    let back: GapReport = serde_json::from_str(&one).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), one);
}

#[test]
fn intervals_are_over_prompts_and_sizes_count() {
    let folder = tempfile::tempdir().unwrap();
    // Prompts of 5, 5 and 2 positions.
    let (path, rows) = log_of(folder.path(), 12);
    let report = report(&path, &[1.0], &[1]);
    let values: Vec<f64> = rows
        .iter()
        .map(|(target, draft)| {
            exact(target, draft, 1.0, 1)[0]
                .optimum
                .as_ref()
                .unwrap()
                .value()
        })
        .collect();
    let mean = values.iter().sum::<f64>() / 12.0;
    let squares: f64 = values
        .chunks(5)
        .map(|c| (c.iter().sum::<f64>() - mean * c.len() as f64).powi(2))
        .sum();
    // Student's t, 97.5%, 2 degrees of freedom.
    let half = 4.302_652_729_911_3 * (1.5 * squares).sqrt() / 12.0;
    let [low, high] = report.overlap[0].estimate.ci95;
    assert!((low - (mean - half)).abs() < 1e-7, "{low} {}", mean - half);
    assert!((high - (mean + half)).abs() < 1e-7);
}

/// The full rows' means are between the bounds, at temperatures of which the log gives the
/// mass of the others and at others; the mean that is given is the middle of them.
#[test]
fn top_heavy_rows_are_their_tokens_and_bounds_on_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(10);
    let top = folder.path().join("top");
    let kept = KeptTokens::Top {
        count: 2,
        rest_temperatures: vec![1.0],
    };
    write(&top, &rows, kept);
    let temperatures = [0.7, 1.0];
    let ours = report(&top, &temperatures, &[2]);
    assert_eq!(ours.logs[0].rows, "top-heavy");
    let rest = &ours.logs[0].rest[0];
    assert!(rest.target_mean > 0.0 && rest.target_mean < rest.target_max);
    let of_all = |temperature: f64| -> Vec<Vec<Verification>> {
        let each = rows.iter();
        each.map(|(target, draft)| exact(target, draft, temperature, 2))
            .collect()
    };
    let all = temperatures.map(of_all);
    let schemes = ours.cells.len() / temperatures.len();
    for (index, cell) in ours.cells.iter().enumerate() {
        let optimum = &cell.optimal_acceptance_rate;
        let here = &all[index / schemes];
        assert_eq!(cell.temperature, temperatures[index / schemes]);
        let of = |one: &Vec<Verification>| one[index % schemes].optimum.as_ref().unwrap().value();
        let full = here.iter().map(of).sum::<f64>() / 10.0;
        let [low, high] = optimum.estimate.truncation.unwrap();
        assert!(low - 1e-6 <= full && full <= high + 1e-6, "{cell:?} {full}");
        assert!((optimum.estimate.mean - 0.5 * (low + high)).abs() < 1e-9);
        assert!(high > low);
        if cell.scheme == "with-replacement" && cell.temperature == 1.0 {
            assert!(high - low <= rest.target_mean + 1e-9);
        }
    }
}

#[test]
fn blocks_and_strip_come_from_the_sampled_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let (path, rows) = log_of(folder.path(), 20);
    let report = report(&path, &[0.5, 1.0], &[2]);
    let strip = report.strip.as_ref().unwrap();
    assert_eq!((strip.temperature, strip.drafts), (1.0, 2));
    assert_eq!(strip.texts.len(), 4);
    assert_eq!(strip.texts[1].tokens[2].text, "<2>");
    // One block of 5 a prompt, at the temperature of the sampling only.
    let of = |metric: &str| -> Vec<_> {
        let rows = report.blocks.iter();
        rows.filter(|one| one.metric == metric).collect()
    };
    assert_eq!([of("block-optimum").len(), of("lemma-5.1").len()], [1, 1]);
    let optimum = of("block-optimum")[0];
    assert_eq!((optimum.length, optimum.drafts, optimum.blocks), (5, 1, 4));
    let mut expected = 0.0;
    for (prompt, text) in rows.chunks(5).enumerate() {
        let mut ratio = 1.0;
        for (t, (target, draft)) in text.iter().enumerate() {
            let token = (prompt * 5 + t + 1) % V;
            let share = |row: &[f32]| {
                let total: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
                f64::from(row[token]).exp() / total
            };
            ratio *= share(draft) / share(target);
            expected += ratio.min(1.0);
        }
    }
    let mean = optimum.expected_accepted_length.mean;
    assert!((mean - expected / 4.0).abs() < 1e-12, "{mean} {expected}");
    assert!(!report.left_out.iter().any(|line| line.contains("blocks")));
}

/// `specgap length` reads the log itself, and `gap` keeps what it needs of each token.
#[test]
fn rounds_along_the_text_are_those_of_specgap_length() {
    let folder = tempfile::tempdir().unwrap();
    for (name, kept) in [
        ("full", KeptTokens::All),
        (
            "cut",
            KeptTokens::Top {
                count: 2,
                rest_temperatures: vec![1.0],
            },
        ),
    ] {
        let path = folder.path().join(name);
        crate::made_log::write(&path, &crate::made_log::rows(20), kept);
        let of_gap = report(&path, &[1.0], &[2]);
        let settings = specgap::replay::LengthSettings {
            policies: [1, 2, 4, 5].map(specgap::replay::Policy::fixed).to_vec(),
            ..specgap::replay::LengthSettings::default()
        };
        let logs = [Log::open(&path).unwrap()];
        let of_length = specgap::replay::measure_lengths(&logs, &settings, "", &|_| ()).unwrap();
        let rounds = &of_gap.rounds[0];
        assert_eq!(
            (
                rounds.temperature,
                rounds.texts,
                rounds.tokens,
                rounds.unlisted
            ),
            (1.0, 4, 20, of_length.of.unlisted)
        );
        assert_eq!(rounds.unlisted > 0, name == "cut");
        let lengths: Vec<usize> = rounds.lengths.iter().map(|row| row.length).collect();
        assert_eq!(lengths, [1, 2, 4, 5], "no text has eight tokens");
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} {other}");
        let same = |one: &Estimate, other: &Estimate| {
            near(one.mean, other.mean);
            near(one.ci95[0], other.ci95[0]);
            near(one.ci95[1], other.ci95[1]);
            assert_eq!(one.truncation.is_some(), other.truncation.is_some());
            for (a, b) in one.truncation.iter().zip(&other.truncation) {
                near(a[0], b[0]);
                near(a[1], b[1]);
            }
        };
        for row in &rounds.lengths {
            let of = |verifier: &str| {
                let mut rows = of_length.results.iter();
                rows.find(|one| {
                    one.verifier == verifier && one.parameter.to_string() == row.length.to_string()
                })
                .unwrap()
            };
            for (verifier, accepted, calls) in [
                ("token", &row.token, Some(&row.token_per_call)),
                ("block", &row.block, Some(&row.block_per_call)),
                ("greedy-block", &row.greedy_block, None),
            ] {
                let one = of(verifier);
                same(accepted, one.accepted_from_everywhere.as_ref().unwrap());
                // Of wide lists length says what has bounds.
                assert!(one.tokens_per_call.is_some() || name == "cut" || calls.is_none());
                if let (Some(calls), Some(theirs)) = (calls, &one.tokens_per_call) {
                    same(calls, theirs);
                }
            }
            near(row.block_over_token.mean, row.block.mean - row.token.mean);
            near(
                row.block_over_token_per_call.mean,
                row.block_per_call.mean - row.token_per_call.mean,
            );
            assert!(row.block_over_token.mean >= 0.0 && row.greedy_block_over_block.mean >= 0.0);
        }
        if name == "full" {
            // From the same starts a longer round accepts no less.
            let accepted = |of: fn(&specgap::gap::RoundsOfLength) -> &Estimate| {
                let values = rounds.lengths.iter().map(|row| of(row).mean);
                assert!(values.is_sorted());
            };
            accepted(|row| &row.token);
            accepted(|row| &row.block);
            accepted(|row| &row.greedy_block);
        }
        let page = specgap::report::gap::page(&of_gap).markdown();
        for words in [
            "Rounds along the text",
            &format!("specgap length {name} --cost-ratio 0.1"),
            &format!("specgap tree {name} --cost-ratio 0.1"),
        ] {
            assert!(page.contains(words), "{words}");
        }
        // Text of another temperature tells nothing.
        if name == "full" {
            let other = report(&path, &[0.7], &[2]);
            assert!(other.rounds.is_empty());
            let says = "draft lengths along the text: the tokens were drawn at temperature 1, which \
                        is not asked for";
            other.left_out.says(says);
            // Half of the log: texts begin within it, and their rounds cannot be followed.
            let half = specgap::gap::Part { index: 2, count: 3 };
            let settings = Settings::new(&[1.0], &[2], 0).unwrap();
            let part = specgap::gap::summarise(&logs, &settings, half, None, &|_| ()).unwrap();
            let part = part.report("");
            assert!(part.rounds.is_empty());
            part.left_out.says("begin at index 0 or has gaps");
        }
    }
}

#[test]
fn texts_that_loop_and_parallel_drafters_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let layout = Layout {
        dtype: Dtype::F32,
        ..Layout::new(V)
    };
    // One text of twenty equal tokens, one of twenty that never repeat three times.
    let token = |n: usize| if n < 20 { 2 } else { (n * n / 7 % V) as i64 };
    let place = |n: usize| ((n / 20) as i64, (n % 20) as i64, token(n));
    write_at(&path, &rows(40), layout, place);
    let text = |report: &GapReport| {
        let text = page(report).text(100, false);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let looping = report(&path, &[1.0], &[2]);
    let found = looping.logs[0].repetition.unwrap();
    assert_eq!(
        (found.texts, found.looping_texts, found.looping_positions),
        (2, 1, 20)
    );
    let says = text(&looping);
    assert!(says.contains("The text loops: 50.0%"), "{says}");
    assert!(says.contains("in 1 of 2 texts"), "{says}");
    assert!(!says.contains("drafter is parallel"));

    let index = path.join("log.json");
    let json = std::fs::read_to_string(&index).unwrap();
    let json = json.replace("\"sampling\"", "\"drafter\": \"parallel\", \"sampling\"");
    std::fs::write(&index, json).unwrap();
    assert!(text(&report(&path, &[1.0], &[2])).contains("The drafter is parallel"));

    let (plain, _) = log_of(folder.path().join("plain").as_path(), 15);
    let plain = report(&plain, &[1.0], &[2]);
    assert_eq!(plain.logs[0].repetition, None);
    let says = text(&plain);
    assert!(!says.contains("The text loops") && !says.contains("drafter is parallel"));
}

#[test]
fn a_baseline_is_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = log_of(folder.path(), 15);
    let baseline = report(&path, &[1.0], &[2]);
    let regressions = |now: &GapReport, before: &GapReport| {
        let mut all = against(now, before, None);
        all.retain(|number| !number.holds());
        all
    };
    assert!(regressions(&baseline, &baseline).is_empty());
    let more = report(&path, &[0.7, 1.0], &[2, 3]);
    assert!(regressions(&more, &baseline).is_empty());
    let missing = regressions(&baseline, &more);
    assert!(!missing.is_empty() && missing.iter().all(|r| r.now.is_none()));
    let mut worse = baseline.clone();
    let high = worse.cells[0].verifiers[0].acceptance.ci95[1];
    worse.cells[0].verifiers[0].acceptance.mean = high + 0.01;
    let found = regressions(&worse, &baseline);
    assert_eq!(found.len(), 1);
    assert!(found[0].what.contains("acceptance of rrs"), "{found:?}");
}

#[test]
fn rows_with_fewer_tokens_than_drafts_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = log_of(folder.path(), 3);
    let logs = [Log::open(&path).unwrap()];
    let settings = Settings::new(&[1.0], &[V + 1], 0).unwrap();
    let error = measure(&logs, &settings, "", &|_| ())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(
            "position 0: the vocabulary has 6 tokens, fewer than the 7 distinct drafts that ⟨drafts⟩ \
             asks for; ask for 6 at most"
        ),
        "{error}"
    );
    for (temperatures, drafts) in [
        (&[][..], &[2][..]),
        (&[1.0], &[]),
        (&[f64::NAN], &[2]),
        (&[-1.0], &[2]),
        (&[1.0], &[0]),
        (&[1.0], &[65]),
    ] {
        assert!(Settings::new(temperatures, drafts, 0).is_err());
    }
}

/// What engines do with one draft: the numbers of `one_draft` and their differences, derived
/// from the rows alone, at every temperature and whatever numbers of drafts are asked for.
#[test]
fn one_draft_is_derived_from_the_rows_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, rows) = log_of(folder.path(), 23);
    let temperatures = [0.4, 1.0, 1.7];
    let report = report(&path, &temperatures, &[3]);
    let softmax = |row: &[f32], temperature: f64| -> Vec<f64> {
        let weights = row.iter().map(|&x| (f64::from(x) / temperature).exp());
        let weights: Vec<f64> = weights.collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|x| x / total).collect()
    };
    assert_eq!(report.one_draft.len(), temperatures.len());
    for (one, temperature) in report.one_draft.iter().zip(temperatures) {
        assert_eq!(one.temperature, temperature);
        // Of each position: one-hot, sampled, strict.
        let values: Vec<[f64; 3]> = (rows.iter())
            .map(|(target, draft)| {
                let (p, q) = (softmax(target, temperature), softmax(draft, temperature));
                let highest = draft.iter().copied().fold(f32::MIN, f32::max);
                let likeliest = draft.iter().position(|&x| x == highest).unwrap();
                let pairs = || p.iter().zip(&q);
                [
                    p[likeliest],
                    pairs().map(|(p, q)| p.min(*q)).sum(),
                    pairs().map(|(p, q)| p * q).sum(),
                ]
            })
            .collect();
        let n = values.len() as f64;
        let mean = |of: &dyn Fn(&[f64; 3]) -> f64| values.iter().map(of).sum::<f64>() / n;
        for (at, found) in [&one.one_hot, &one.token, &one.exact_match]
            .into_iter()
            .enumerate()
        {
            let expected = mean(&|value| value[at]);
            assert!((found.mean - expected).abs() < 1e-12, "{one:?} {expected}");
            assert!(found.truncation.is_none());
        }
        let places = ["one-hot", "token", "exact-match"];
        let place = |name: &str| places.iter().position(|place| *place == name).unwrap();
        let mut pairs: Vec<[usize; 2]> = Vec::new();
        for pair in &one.differences {
            let [a, b] = [place(&pair.first), place(&pair.second)];
            pairs.push([a, b]);
            let expected = mean(&|value| value[a] - value[b]);
            assert!(
                (pair.difference.mean - expected).abs() < 1e-12,
                "{pair:?} {expected}"
            );
            // The interval is that of a mean over prompts, five positions each.
            let [low, high] = pair.difference.ci95;
            let half = interval_by_prompt(values.iter().map(|value| value[a] - value[b]));
            assert!((0.5 * (high - low) - half).abs() < 1e-9, "{pair:?} {half}");
            assert!((pair.p_value..=1.0).contains(&pair.p_holm), "{pair:?}");
        }
        assert_eq!(pairs, [[0, 1], [0, 2], [1, 2]]);
        // Strict accepts a part of what sampled does.
        assert!(one.exact_match.mean < one.token.mean);
    }
}

/// Half of the 95% interval of a mean over prompts of five positions each, the last one
/// shorter: five of them, so Student's t with 4 degrees of freedom.
fn interval_by_prompt(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let prompts: Vec<&[f64]> = values.chunks(5).collect();
    assert_eq!(prompts.len(), 5);
    let off = |prompt: &&[f64]| prompt.iter().map(|x| x - mean).sum::<f64>().powi(2);
    let squares: f64 = prompts.iter().map(off).sum();
    2.776_445_105_197_798_7 * (5.0 / 4.0 * squares).sqrt() / n
}

/// One draft of any law is verified by `token`, where that is asked for; where it cannot
/// be, the report says so.
#[test]
fn single_is_measured_at_one_draft_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (path, rows) = log_of(folder.path(), 6);
    let logs = [Log::open(&path).unwrap()];
    let mut settings = Settings::new(&[1.0], &[1, 2], 3).unwrap();
    assert!(!settings.verifiers.contains(&VerifierName::TOKEN));
    settings.verifiers = vec![VerifierName::TOKEN];
    let report = measure(&logs, &settings, "", &|_| ()).unwrap();
    let all: Vec<Vec<Verification>> = rows.iter().map(|(p, q)| exact(p, q, 1.0, 1)).collect();
    let one_draft: Vec<_> = report
        .cells
        .iter()
        .filter(|cell| cell.drafts == 1)
        .collect();
    assert_eq!(one_draft.len(), all[0].len());
    for (index, cell) in one_draft.into_iter().enumerate() {
        let rate = |one: &Vec<Verification>| {
            let measured = one[index].measured(VerifierName::TOKEN).unwrap();
            measured.membership.value()
        };
        let mean = all.iter().map(rate).sum::<f64>() / rows.len() as f64;
        let row = &cell.verifiers[0];
        assert_eq!((cell.verifiers.len(), row.name.as_str()), (1, "token"));
        assert!(
            (row.acceptance.mean - mean).abs() < 1e-12,
            "{cell:?} {mean}"
        );
        assert!(row.gap.max.abs() < 1e-12);
        if cell.scheme == "with-replacement" {
            assert!((mean - report.overlap[0].estimate.mean).abs() < 1e-12);
        }
    }
    let two_drafts = report.cells.iter().filter(|cell| cell.drafts == 2);
    assert!(two_drafts.into_iter().all(|cell| cell.verifiers.is_empty()));
    let said = |start: &str, cure: &str| {
        let lines = report.left_out.iter();
        lines
            .filter(|line| line.starts_with(start) && line.contains(cure))
            .count()
    };
    assert_eq!(said("token for 2 drafts: ", "--drafts 1"), 1);
    assert_eq!(said("hub for 1 draft: ", "--drafts 2"), 1);
}

/// By default every verifier is measured wherever it has a rate, and where it has none, a
/// line says so.
#[test]
fn rates_that_are_not_computed_are_left_out_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = log_of(folder.path(), 10);
    let log = [Log::open(&path).unwrap()];
    let mut settings = Settings::new(&[1.0], &[2, 3], 0).unwrap();
    let report = measure(&log, &settings, "", &|_| ()).unwrap();
    let said = |report: &GapReport, line: &str| report.left_out.iter().any(|one| one == line);
    let why = "its rate is not computed at rows of a log";
    let lines = [format!(
        "exact-match of distinct-conditioned and stratified drafts: {why}"
    )];
    for line in &lines {
        assert!(said(&report, line), "{line}: {:#?}", report.left_out);
    }
    for cell in &report.cells {
        let naive = cell.verifiers.iter().any(|row| row.name == "exact-match");
        let without = ["distinct-conditioned", "stratified"].contains(&cell.scheme.as_str());
        assert_eq!(naive, !without, "{}", cell.scheme);
    }
    settings.schemes = vec![SchemeName::WITH_REPLACEMENT, SchemeName::GREEDY];
    let report = measure(&log, &settings, "", &|_| ()).unwrap();
    assert!(!said(&report, &lines[0]));
    settings.verifiers.push(VerifierName::OPTIMAL);
    let report = measure(&log, &settings, "", &|_| ()).unwrap();
    let why = "it accepts alpha*, which is measured; its plan is made for i.i.d. drafts alone";
    assert!(said(&report, &format!("optimal of greedy drafts: {why}")));
}

/// What an engine drafted and put out is no part of the numbers, and the report says so in
/// a line, once a log.
#[test]
fn tensors_of_an_engine_are_named_as_unused() {
    let folder = tempfile::tempdir().unwrap();
    let logits = f32s(&[0.5, 0.25, -1.0, 0.75, 0.125, 2.0]);
    let report = |name: &str, engine: &[(&str, Vec<usize>)]| {
        let rows = ["target_logits", "draft_logits"];
        let rows = rows.map(|name| (name, "F32", &[2, 3][..], logits.clone()));
        let engine = engine.iter().map(|(name, shape)| {
            let integers = &[1, 2, 0, 1][..shape.iter().product::<usize>()];
            (*name, "I64", &shape[..], i64s(integers))
        });
        let all: Vec<_> = rows.into_iter().chain(engine).collect();
        let path = folder.path().join(name);
        std::fs::write(&path, safetensors(&all)).unwrap();
        let settings = Settings::new(&[1.0], &[2], 0).unwrap();
        measure(&[Log::open(&path).unwrap()], &settings, "", &|_| ()).unwrap()
    };
    let lines = |report: &GapReport| -> Vec<String> {
        let lines = report
            .left_out
            .iter()
            .filter(|line| line.contains("engine"));
        lines.cloned().collect()
    };
    let plain = report("plain.safetensors", &[]);
    assert!(lines(&plain).is_empty());
    let both = [("drafts", vec![2, 2]), ("output", vec![2])];
    let with = report("with.safetensors", &both);
    let [line] = &lines(&with)[..] else {
        panic!("{:?}", with.left_out);
    };
    assert!(
        line.starts_with("tensors drafts and output of with.safetensors"),
        "{line}"
    );
    assert_eq!(with.logs[0].engine_tensors, ["drafts", "output"]);
    assert_eq!(with.cells, plain.cells);
    let one = report("one.safetensors", &both[1..]);
    assert!(lines(&one)[0].starts_with("tensor output of one.safetensors"));
}

/// Masks are applied to the target's rows: the numbers are those of rows that were masked before they
/// were logged, in gap, in length and in tree. Lists with masks are refused.
#[test]
fn masked_rows_are_those_that_were_masked_before() {
    let count = 40;
    let rows = rows(count);
    let is_allowed = |n: usize, i: usize| !(n + i).is_multiple_of(3);
    let masked = |n: usize| {
        (0..V).map(move |i| {
            if is_allowed(n, i) {
                rows_of(n)[i]
            } else {
                f32::NEG_INFINITY
            }
        })
    };
    let tokens: Vec<i64> = (0..count)
        .map(|n| {
            (0..V)
                .find(|&i| is_allowed(n, i) && rows[n].0[i].is_finite())
                .unwrap() as i64
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let place = |of: fn(usize) -> i64| -> Vec<i64> { (0..count).map(of).collect() };
    let (wide, long) = ([count, V], [count]);
    let write = |name: &str, target: Vec<f32>, allowed: bool| {
        let draft: Vec<f32> = rows.iter().flat_map(|row| row.1.clone()).collect();
        let mut tensors = vec![
            ("target_logits", "F32", &wide[..], f32s(&target)),
            ("draft_logits", "F32", &wide[..], f32s(&draft)),
            ("token", "I64", &long[..], i64s(&tokens)),
            (
                "prompt_id",
                "I64",
                &long[..],
                i64s(&place(|n| (n / 5) as i64)),
            ),
            (
                "position",
                "I64",
                &long[..],
                i64s(&place(|n| (n % 5) as i64)),
            ),
        ];
        let mask: Vec<i64> = (0..count * V)
            .map(|at| i64::from(is_allowed(at / V, at % V)))
            .collect();
        if allowed {
            tensors.push(("allowed", "I64", &wide[..], i64s(&mask)));
        }
        let path = folder.path().join(name);
        std::fs::write(&path, safetensors(&tensors)).unwrap();
        Log::open(&path).unwrap()
    };
    let raw: Vec<f32> = rows.iter().flat_map(|row| row.0.clone()).collect();
    let logs = [
        write("raw.safetensors", raw, true),
        write(
            "before.safetensors",
            (0..count).flat_map(masked).collect(),
            false,
        ),
    ];
    let settings = Settings::new(&[1.0], &[2], 3).unwrap();
    let reports = logs.each_ref().map(|log| {
        let log = std::slice::from_ref(log);
        let gap = measure(log, &settings, "", &|_| ()).unwrap();
        let lengths = specgap::replay::LengthSettings {
            temperature: Some(1.0),
            ..Default::default()
        };
        let length = specgap::replay::measure_lengths(log, &lengths, "", &|_| ()).unwrap();
        (gap, length)
    });
    let [(gap, length), (other, theirs)] = &reports;
    assert_eq!(
        (&gap.cells, gap.logs[0].surprise),
        (&other.cells, other.logs[0].surprise)
    );
    assert_eq!(
        (&length.results, length.surprise),
        (&theirs.results, theirs.surprise)
    );
    assert!(gap.logs[0].masked && !other.logs[0].masked);
    page(gap)
        .markdown()
        .says("masks (allowed) are applied to the target's rows");
    let found = specgap::report::length::page(length).markdown();
    found.says("masks (allowed) are applied to the target's rows");
}

/// The target's row of a position.
fn rows_of(n: usize) -> Vec<f32> {
    rows(n + 1).pop().unwrap().0
}
