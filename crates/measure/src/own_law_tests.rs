//! Draft laws of the caller's own in a report, against laws of the table, all sets of tokens, and
//! sums by hand.

use super::own_tests::{
    carried, clusters, half, log, log_of, merged_where_one, of_lists, redrafted, refused, report,
    row, says, tensor, with_columns,
};
use super::{
    Cell, GapReport, OwnLaw, OwnRate, OwnRow, OwnRule, Part, Settings, measure, summarise_each,
};
use specgap_core::problem::RowLaw;
use specgap_core::scheme::{
    DraftScheme, Product, SchemeName, Straddle, Stratified, WithReplacement, WithoutReplacement,
};
use specgap_core::verifier::VerifierName;
use specgap_log::log::{Dtype, Log, Metadata};
use specgap_number::distribution::Draft;
use specgap_number::known::Kind;
use specgap_statistics::Clustered;
use std::sync::Arc;

const IID: SchemeName = SchemeName::WITH_REPLACEMENT;

fn draft(row: &[f64]) -> Result<Draft, String> {
    Draft::new(row).map_err(|error| error.to_string())
}

fn of(scheme: impl DraftScheme + 'static) -> Arc<dyn DraftScheme> {
    Arc::new(scheme)
}

/// A draw of each stratum of q, put together here from its tokens by falling mass.
fn strata(row: OwnRow<'_>) -> Result<Arc<dyn DraftScheme>, String> {
    let (q, n) = (row.draft, row.drafts as f64);
    let mut order: Vec<usize> = (0..q.len()).collect();
    order.sort_by(|&a, &b| q[b].total_cmp(&q[a]).then(a.cmp(&b)));
    let rows = (0..row.drafts).map(|j| {
        let (mut own, mut before) = (vec![0.0; q.len()], 0.0);
        for &token in &order {
            let ends = [before, before + q[token]].map(|end| (n * end - j as f64).clamp(0.0, 1.0));
            own[token] = ends[1] - ends[0];
            before += q[token];
        }
        let sum: f64 = own.iter().sum();
        draft(&own.iter().map(|x| x / sum).collect::<Vec<_>>())
    });
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(of(Product::new(rows).ok_or("no rows")?))
}

/// The likeliest token and a draw from the others.
fn top_and_a_draw(name: &str) -> OwnLaw {
    let law = RowLaw::parse_json(
        r#"{"scheme": "composed", "law": {"law": "union", "of": [
            {"law": "top", "drafts": 1},
            {"law": "without-replacement", "drafts": 1, "avoid_top": 1}]}}"#,
    )
    .unwrap();
    let at = move |row: OwnRow<'_>| {
        let found = law.on(row.draft.len(), &[row.draft.to_vec()]);
        found.map_err(|error| error.to_string())
    };
    OwnLaw::new(name, SchemeName::COMPOSED, &[2], at).unwrap()
}

fn with(laws: impl IntoIterator<Item = OwnLaw>, drafts: &[usize]) -> Settings {
    let mut settings = Settings::of_all_schemes(&[0.5, 1.0], drafts, 3);
    settings.own_laws.extend(laws);
    settings
}

fn cells<'a>(report: &'a GapReport, law: &'a str) -> impl Iterator<Item = &'a Cell> {
    report.cells.iter().filter(move |cell| cell.scheme == law)
}

/// A law that draws independently.
fn iid(row: OwnRow<'_>) -> Result<Arc<dyn DraftScheme>, String> {
    Ok(of(WithReplacement::new(draft(row.draft)?, row.drafts)))
}

/// What is made of table laws, or is one by another way, has the numbers of the table's.
#[test]
fn laws_that_are_those_of_the_table_have_their_numbers() {
    let wor = |row: OwnRow<'_>| Ok(of(WithoutReplacement::new(draft(row.draft)?, row.drafts)));
    let each = |row: OwnRow<'_>| {
        let rows = vec![draft(row.draft)?; row.drafts];
        Ok(of(Product::new(rows).ok_or("no rows")?))
    };
    let own_strata = |row: OwnRow<'_>| {
        let straddle = Straddle::Independent;
        Ok(of(Stratified::new(draft(row.draft)?, row.drafts, straddle)))
    };
    let law = |name: &str, made, law: fn(OwnRow<'_>) -> Result<Arc<dyn DraftScheme>, String>| {
        OwnLaw::new(name, made, &[], law).unwrap()
    };
    let laws = [
        (law("mine-iid", IID, iid), IID.as_str()),
        (law("mine-each", SchemeName::PRODUCT, each), IID.as_str()),
        (
            law("mine-wor", SchemeName::WITHOUT_REPLACEMENT, wor),
            "without-replacement",
        ),
        (
            law(
                "mine-strata",
                SchemeName::STRATIFIED_INDEPENDENT,
                own_strata,
            ),
            "stratified-independent",
        ),
    ];
    let settings = with(laws.iter().map(|(law, _)| law.clone()), &[1, 2, 3]);
    let found = report(&settings);
    let mut compared = 0;
    for (law, same) in &laws {
        let (own, named): (Vec<_>, Vec<_>) = (
            cells(&found, law.name()).collect(),
            cells(&found, same).collect(),
        );
        assert_eq!((own.len(), named.len()), (6, 6), "{}", law.name());
        for (own, named) in own.into_iter().zip(named) {
            assert_eq!(own.drafts, named.drafts);
            let [one, other] = [own, named].map(|cell| &cell.optimal_acceptance_rate);
            let near = one.width_max + other.width_max + 1e-12;
            assert!(near < 1e-10, "{near}");
            let off = (one.estimate.mean - other.estimate.mean).abs();
            assert!(off <= near, "{}: {off} {near}", law.name());
            let off = (one.estimate.ci95[0] - other.estimate.ci95[0]).abs();
            assert!(off < 1e-9, "{}: {off}", law.name());
            assert_eq!((one.kind, one.estimate.between), (Kind::Enclosed, None));
            for rule in &own.verifiers {
                let mut theirs = named.verifiers.iter();
                let Some(theirs) = theirs.find(|row| row.name == rule.name) else {
                    continue;
                };
                let near = rule.width_max + theirs.width_max + 1e-12;
                let off = (rule.acceptance.mean - theirs.acceptance.mean).abs();
                assert!(off <= near, "{} {}: {off} {near}", law.name(), rule.name);
                assert!(near < 1e-7, "{} {}: {near}", law.name(), rule.name);
                compared += 1;
            }
        }
        // It differs from the table's law by nothing.
        let first = format!("{}/optimum", law.name());
        for one in found.comparisons.iter().filter(|one| one.first == first) {
            if one.second == format!("{same}/optimum") {
                assert!(one.difference.mean.abs() < 1e-12 && one.p_value == 1.0);
            }
        }
    }
    assert!(compared > 40, "{compared}");
    // Two uniform numbers' worth of strata, of which the table's law joins none for certain.
    let mut mild = with([law("own", SchemeName::PRODUCT, strata)], &[2]);
    mild.temperatures = vec![8.0];
    let mild = report(&mild);
    let mean = |law: &str| {
        let cell = cells(&mild, law).next().unwrap();
        cell.optimal_acceptance_rate.estimate.mean
    };
    assert!((mean("own") - mean("stratified-independent")).abs() < 1e-12);
    // Named laws are what they were, to the bit.
    let alone = report(&with([], &[1, 2, 3]));
    for cell in &alone.cells {
        assert!(found.cells.contains(cell));
    }
    assert_eq!(alone.overlap, found.overlap);
}

/// 1 + the least P(H) - Q(H) of all 16 sets, and the law's Q by its pairs.
fn by_all_sets(p: &[f64], q: &[f64]) -> f64 {
    let top = (0..q.len())
        .max_by(|&a, &b| q[a].total_cmp(&q[b]).then(b.cmp(&a)))
        .unwrap();
    let least = (0..1usize << q.len()).map(|bits| {
        let has = |token: usize| bits >> token & 1 == 1;
        let mass = |row: &[f64], but: Option<usize>| -> f64 {
            let held = (0..row.len()).filter(|&token| has(token) && Some(token) != but);
            held.map(|token| row[token]).sum()
        };
        let inside = match has(top) {
            true => mass(q, Some(top)) / (1.0 - q[top]),
            false => 0.0,
        };
        mass(p, None) - inside
    });
    1.0 + least.fold(0.0, f64::min)
}

#[test]
fn optima_means_and_intervals_are_those_by_all_sets() {
    let mut settings = with([top_and_a_draw("mine")], &[2, 3]);
    let words = "the likeliest  token,\n and a draw";
    settings.own_laws[0] = settings.own_laws[0].clone().words(words);
    settings.schemes = vec![IID, SchemeName::GREEDY];
    settings.verifiers = vec![
        VerifierName::EXACT_MATCH,
        VerifierName::RRS,
        VerifierName::GREEDY,
    ];
    let by_sets = OwnRule::new("by-sets", &settings.own_laws[0], |row| {
        // What a rule accepts that attains the optimum.
        Ok(OwnRate::from(by_all_sets(row.target, row.draft)))
    });
    settings.own_rules.push(by_sets.unwrap());
    let (summary, column) = with_columns(&settings);
    let report = summary.report(&summary.command());
    assert_eq!(report.command, "");
    // Of 3 drafts the law has none.
    assert!(column("mine/optimum", 1.0, 3).is_empty());
    let left: Vec<_> = report
        .left_out
        .iter()
        .filter(|line| line.contains("mine"))
        .collect();
    assert!(
        left[0].starts_with("own law mine for 3 drafts: it has 2,"),
        "{left:?}"
    );
    let mut seen = 0;
    for cell in cells(&report, "mine") {
        let at = cell.temperature;
        let [optima, by_sets] =
            ["optimum", "by-sets"].map(|name| column(&format!("mine/{name}"), at, 2));
        assert_eq!((optima.len(), by_sets.len()), (6, 6));
        for (one, other) in optima.iter().zip(&by_sets) {
            assert!((one - other).abs() < 1e-13, "{one} {other}");
        }
        // It is the law greedy, whose rule attains the optimum.
        let greedy = column("greedy/optimum", at, 2);
        for (one, other) in optima.iter().zip(&greedy) {
            assert!((one - other).abs() < 1e-12, "{one} {other}");
        }
        let best = &cell.optimal_acceptance_rate;
        let by_hand = Clustered::new(clusters(&by_sets).into_iter()).estimate();
        assert!((best.estimate.mean - by_hand.mean).abs() < 1e-13);
        assert!((best.estimate.ci95[1] - by_hand.ci95[1]).abs() < 1e-12);
        assert!(best.status.contains("maximum flow"), "{}", best.status);
        let rules: Vec<_> = cell.verifiers.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(rules, ["exact-match", "by-sets"]);
        // The target's own draw, if it was drafted: p(x) (1 - Q(all but x)) summed.
        let matched = column("mine/exact-match", at, 2);
        let gaps: Vec<f64> = optima.iter().zip(&matched).map(|(a, b)| a - b).collect();
        let by_hand = Clustered::new(clusters(&gaps).into_iter()).estimate();
        let gap = &row(&cell.verifiers, "exact-match").gap.estimate;
        assert!((gap.mean - by_hand.mean).abs() < 1e-13 && gap.mean > 0.0);
        assert!((gap.ci95[0] - by_hand.ci95[0]).abs() < 1e-12);
        assert!(row(&cell.verifiers, "by-sets").gap.estimate.mean.abs() < 1e-12);
        // Paired with the usual law at the same positions.
        let theirs = column("with-replacement/optimum", at, 2);
        let more: Vec<f64> = optima.iter().zip(&theirs).map(|(a, b)| a - b).collect();
        let by_hand = Clustered::new(clusters(&more).into_iter()).estimate();
        let comparison = |first: &str, second: &str| {
            let mut all = report.comparisons.iter();
            all.find(|one| {
                (one.temperature, one.first.as_str(), one.second.as_str()) == (at, first, second)
            })
        };
        let found = comparison("mine/optimum", "with-replacement/optimum").unwrap();
        assert!((found.difference.mean - by_hand.mean).abs() < 1e-13);
        assert!((found.difference.ci95[0] - by_hand.ci95[0]).abs() < 1e-12);
        for second in ["mine/exact-match", "with-replacement/rrs"] {
            assert!(comparison("mine/by-sets", second).is_some(), "{second}");
        }
        assert!(comparison("mine/exact-match", "with-replacement/exact-match").is_some());
        seen += 1;
    }
    assert_eq!(seen, 2);
    let told = &report.definitions["scheme mine"];
    let made = "made as composed: the likeliest token, and a draw;";
    says(told, &[made, "maximum flow"]);
    assert_eq!(report.own_laws[0].made.as_deref(), Some("composed"));
    assert_eq!(report.own_laws[0].drafts, [2]);
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<GapReport>(&text).unwrap(), report);
}

/// Three drafters over 40 tokens that are cut into equal pieces: alpha* is that of the whole tokens,
/// which a flow finds, and no method finds it of the pieces.
#[test]
fn bounds_that_do_not_meet_are_told_as_such_and_hold_alpha() {
    const TOKENS: usize = 40;
    const PIECES: usize = 500;
    let weight = |seed: usize, token: usize| {
        let mixed = ((token + 1) * (seed + 3) * 2_654_435_761) >> 7;
        (5.0 * (mixed % 997) as f64 / 997.0).exp()
    };
    let cut = |side: usize, pieces: usize| -> Vec<u8> {
        let logits = [0, 10]
            .into_iter()
            .flat_map(|row| (0..TOKENS).map(move |token| weight(row + side, token).ln() as f32));
        let repeated = logits.flat_map(|logit| std::iter::repeat_n(logit, pieces));
        repeated.flat_map(f32::to_le_bytes).collect()
    };
    let log = |pieces: usize| {
        let shape = [2, TOKENS * pieces];
        let tensors = vec![
            tensor("target_logits", Dtype::F32, &shape, cut(0, pieces)),
            tensor("draft_logits", Dtype::F32, &shape, cut(1, pieces)),
        ];
        Log::held("made".as_ref(), Metadata::default(), tensors, None).unwrap()
    };
    let three = move |row: OwnRow<'_>| {
        let pieces = row.draft.len() / TOKENS;
        let other = |seed: usize| {
            let row: Vec<f64> = (0..TOKENS * pieces)
                .map(|piece| weight(seed + row.position, piece / pieces))
                .collect();
            let sum: f64 = row.iter().sum();
            draft(&row.iter().map(|x| x / sum).collect::<Vec<_>>())
        };
        let rows = vec![draft(row.draft)?, other(20)?, other(30)?];
        Ok(of(Product::new(rows).ok_or("no rows")?))
    };
    let law = OwnLaw::new("three", SchemeName::PRODUCT, &[3], three).unwrap();
    let mut settings = Settings::new(&[1.0], &[3], 0).unwrap();
    let half = OwnRule::new("half", &law, |_| Ok(OwnRate::from(0.5))).unwrap();
    settings.own_laws.push(law);
    settings.own_rules.push(half);
    settings.verifiers = vec![VerifierName::RRS];
    let measured = |pieces: usize| measure(&[log(pieces)], &settings, "", &|_| ()).unwrap();
    let (whole, cut) = (measured(1), measured(PIECES));
    let [whole, found] = [&whole, &cut].map(|report| cells(report, "three").next().unwrap());
    let exact = &whole.optimal_acceptance_rate;
    assert!(exact.estimate.between.is_none() && exact.width_max < 1e-12);
    let best = &found.optimal_acceptance_rate;
    let [low, high] = best.estimate.between.expect("bounds that do not meet");
    assert!(low <= exact.estimate.mean && exact.estimate.mean <= high + 1e-7);
    assert!(high - low > 1e-6 && high - low < 0.05, "{low} {high}");
    assert_eq!(
        (best.kind, best.estimate.truncation),
        (Kind::Enclosed, None)
    );
    let sure = specgap_statistics::Estimate {
        ci95: [best.estimate.mean; 2],
        ..best.estimate
    };
    assert_eq!(sure.open(), Some([low, high]));
    // The same of gaps, of a rule with bounds of rounding and of one without.
    let rrs = row(&found.verifiers, "rrs");
    assert_eq!((rrs.kind, rrs.acceptance.between), (Kind::Enclosed, None));
    let [least, most] = rrs.gap.estimate.between.unwrap();
    assert!(least >= 0.0 && (most - (high - rrs.acceptance.mean)).abs() < 1e-7);
    let half = row(&found.verifiers, "half");
    let ends = half.gap.estimate.between.unwrap();
    assert!((ends[0] - (low - 0.5)).abs() < 1e-7 && (ends[1] - (high - 0.5)).abs() < 1e-7);
    // No difference is told that the bounds leave open.
    for one in &cut.comparisons {
        if let Some([low, high]) = one.difference.between {
            assert!(one.first.ends_with("optimum"));
            assert!(low > 0.0 || high < 0.0 || one.p_value == 1.0, "{one:?}");
        }
    }
    // Laws of the table have no such bounds.
    for cell in cells(&cut, "with-replacement") {
        assert_eq!(cell.optimal_acceptance_rate.estimate.between, None);
    }
}

#[test]
fn redrafted_rows_and_other_logs_are_asked_too() {
    let law = OwnLaw::new("mine", IID, &[], iid).unwrap();
    let settings = with([law], &[2]).redrafted(&[0.5, 2.0], None).unwrap();
    let found = report(&settings);
    assert_eq!(found.redrafted.len(), 4);
    for one in &found.redrafted {
        let of = |law: &str| one.cells.iter().find(|cell| cell.scheme == law).unwrap();
        let [own, named] = ["mine", "with-replacement"].map(|law| {
            let cell = of(law);
            let optimum = cell.optimal_acceptance_rate.estimate.mean;
            [optimum, redrafted(&cell.verifiers, "rrs")]
        });
        assert!((own[0] - named[0]).abs() < 1e-12 && (own[1] - named[1]).abs() < 1e-12);
    }
    // Two logs, one of which has a draft that is the target.
    let logs = [log(), log_of(Vec::new(), Metadata::default())];
    let (each, pairings) = summarise_each(&logs, &settings, Part::WHOLE, None, &|_| ()).unwrap();
    let both = super::LogComparison::new(&each, &pairings, "");
    assert_eq!(both.command, "");
    let of = |what: &str, verifier: Option<&str>| {
        let mut rates = both.rates.iter();
        rates.find(|rate| {
            (
                rate.what.as_str(),
                rate.scheme.as_deref(),
                rate.verifier.as_deref(),
            ) == (what, Some("mine"), verifier)
        })
    };
    let optimum = of("optimum", None).unwrap();
    let mean = |at: usize| optimum.estimates[at].as_ref().unwrap();
    assert_eq!(mean(0).estimate.mean, mean(1).estimate.mean);
    assert!(of("acceptance", Some("rrs")).is_some());
}

#[test]
fn summaries_carry_laws_and_merge_where_a_digest_says_that_they_are_one() {
    let settings = |law: OwnLaw| {
        let rule = OwnRule::new("half", &law, |_| Ok(OwnRate::from(0.5))).unwrap();
        let mut settings = with([law, OwnLaw::sampled("drawn").unwrap()], &[2]);
        settings.own_rules.push(rule.digest("half"));
        settings
    };
    let law = || {
        top_and_a_draw("mine")
            .words("one and one")
            .without("step", "no such drafts")
    };
    let told = |digest: &str| settings(law().digest(digest));
    let why = "own law mine: it was read from a summary";
    let [whole, told] = merged_where_one(&settings(law()), told, &with([], &[2]), "law", why);
    assert_eq!(told.own_laws[0].digest.as_deref(), Some("v1"));
    let composed = settings(top_and_a_draw("composed"));
    let found = half(&composed, 1);
    assert_eq!(carried(&found).report(""), found.report(""));
    for line in [
        "own law drawn: it can only be drawn from",
        "step of mine drafts: no such drafts",
    ] {
        let mut left = whole.left_out.iter();
        assert!(
            left.any(|one| one.starts_with(line)),
            "{line}: {:?}",
            whole.left_out
        );
    }
}

/// What rules accept of a law that can only be drawn from is measured, and nothing of its alpha*.
#[test]
fn rules_are_measured_under_a_law_that_can_only_be_drawn_from() {
    let law = OwnLaw::sampled("drawn").unwrap();
    let rate = |row: OwnRow<'_>| {
        Ok(OwnRate {
            noise: (row.position > 0).then_some(0.01),
            ..OwnRate::from(0.25)
        })
    };
    let rule = OwnRule::new("mine", &law, rate).unwrap();
    let mut settings = with([law, OwnLaw::sampled("bare").unwrap()], &[2]);
    settings.own_rules.push(rule.drawn().digest("v1"));
    let found = report(&settings);
    let left = |name: &str| found.left_out.iter().any(|line| line.contains(name));
    assert!(left("own law bare: it can only be drawn") && !left("own law drawn"));
    assert_eq!(cells(&found, "bare").count(), 0);
    let cell = cells(&found, "drawn").next().unwrap();
    let best = &cell.optimal_acceptance_rate;
    assert_eq!(best.estimate.between, Some([0.0, 1.0]));
    assert!(!best.is_known() && best.status.contains("can only be drawn from"));
    let [row] = cell.verifiers.as_slice() else {
        panic!("named rules are measured: {:?}", cell.verifiers)
    };
    assert_eq!(row.acceptance.mean, 0.25);
    assert_eq!(row.gap.estimate.between, Some([-0.25, 0.75]));
    // One of six positions was not drawn.
    let noise = 1.959_963_984_540_054 * 0.05f64.sqrt() / 6.0;
    assert!((row.noise().unwrap() - noise).abs() < 1e-15 && row.is_simulated());
    let pairs = found.comparisons.iter();
    let pairs: Vec<_> = pairs
        .filter(|one| one.first.starts_with("drawn/"))
        .collect();
    assert!(!pairs.is_empty() && pairs.iter().all(|one| one.second == "with-replacement/rrs"));
    let mut parts = carried(&half(&settings, 1));
    parts.merge(&carried(&half(&settings, 2))).unwrap();
    assert_eq!(parts.report("").cells, found.cells);
}

#[test]
fn refusals_name_the_law_and_the_cure() {
    for name in ["", "a/b", "rrs", "iid", "greedy", "optimum"] {
        let refused = OwnLaw::new(name, IID, &[], iid).unwrap_err().to_string();
        assert!(refused.starts_with("own law"), "{refused}");
    }
    // Laws that are made of more than a row are none of a report.
    assert!(OwnLaw::new("composed", IID, &[], iid).is_ok());
    let none = OwnLaw::new("mine", IID, &[0], iid).unwrap_err();
    says(&none.to_string(), &["0 drafts are out of range"]);
    let other = OwnLaw::new("mine", SchemeName::PRODUCT, &[], iid);
    let more = |row: OwnRow<'_>| Ok(of(WithReplacement::new(draft(row.draft)?, row.drafts + 1)));
    let none = |_: OwnRow<'_>| Err("no such row".to_owned());
    for (law, words) in [
        (
            other,
            "position 0: own law mine: it is said to be made as product, and is",
        ),
        (
            OwnLaw::new("mine", IID, &[2], more),
            "drafts up to 3 tokens here, and 2 are asked for",
        ),
        (
            OwnLaw::new("mine", IID, &[2], none),
            "position 0: own law mine: no such row",
        ),
    ] {
        says(&refused(log(), &with([law.unwrap()], &[2])), &[words]);
    }
    let mut twice = with([top_and_a_draw("mine"), top_and_a_draw("mine")], &[2]);
    says(&refused(log(), &twice), &["own law mine: is there twice"]);
    // Nothing is left.
    twice.own_laws.pop();
    twice.schemes.clear();
    twice.drafts = vec![3];
    let words = "nothing to measure: own law mine for 3 drafts";
    says(&refused(log(), &twice), &[words]);
    let mut sampled = with([OwnLaw::sampled("drawn").unwrap()], &[2]);
    sampled.schemes.clear();
    let words = "own law drawn: it can only be drawn from";
    says(&refused(log(), &sampled), &[words]);
    // A named rule that is none of the law.
    let mut named = with([top_and_a_draw("mine")], &[2]);
    named.verifiers = vec![
        VerifierName::RRS,
        VerifierName::EXACT_MATCH,
        VerifierName::OPTIMAL,
    ];
    let left = report(&named).left_out;
    let of = |line: &&String| line.contains(" of mine drafts: ");
    let left: Vec<_> = left.iter().filter(of).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(
        left[0].starts_with("optimal of mine drafts: it accepts alpha*"),
        "{left:?}"
    );
    assert!(
        left[1].starts_with("rrs of mine drafts: it is lossless for with-replacement"),
        "{left:?}"
    );
    // A rule of a law that is not there.
    let rule = OwnRule::new("lost", &top_and_a_draw("mine"), |_| Ok(OwnRate::from(0.5)));
    let mut lost = with([], &[2]);
    lost.own_rules.push(rule.unwrap());
    let left = report(&lost).left_out;
    assert!(
        left.iter()
            .any(|line| line.contains("own law mine, which is not asked for"))
    );
}

/// Of a row that lists some tokens only nothing bounds an own law, unless it lists all that is
/// kept.
#[test]
fn lists_are_refused_unless_they_hold_all_that_is_kept() {
    let mut settings = Settings::new(&[1.0], &[2], 0).unwrap();
    let law = OwnLaw::new("mine", IID, &[], iid).unwrap();
    settings.own_laws.push(law);
    settings.schemes = vec![IID];
    let report = of_lists(settings, "law");
    let of = |law: &str| {
        let cell = cells(&report, law).next().unwrap();
        cell.optimal_acceptance_rate.estimate.mean
    };
    assert!((of("mine") - of("with-replacement")).abs() < 1e-12);
}
