//! What parts and checks of records say together, and how many positions would tell.

use crate::audit::data::{AuditReport, Conclusion};
use crate::audit::evidence::book::Part;
use crate::audit::model::rule::Rule;
use crate::audit::outcome::Outcome;

/// The normal quantile of a power of 99%.
const POWER: f64 = 2.326_347_874_040_841;

/// Concludes from what parts and checks of records say together.
pub(crate) fn conclude(report: &mut AuditReport, rule: Rule, exclude: f64) {
    let broken = |names: &[&str]| {
        let all = report.hard_checks.iter();
        all.filter(|check| names.contains(&check.name.as_str()))
            .any(|check| check.violations > 0)
    };
    let any_check = report.hard_checks.iter().any(|check| check.violations > 0);
    let mut refuted = report
        .parts
        .iter()
        .filter(|one| one.is_refuted())
        .peekable();
    let any_part = refuted.peek().is_some();
    let off = refuted.any(|one| one.part == Part::TargetLaw.name()) && report.fits.is_none();
    let lossy = off || broken(&["target-zero", "text-after-its-end"]);
    // What was tested has to have been able to fail.
    let tested = report.parts.iter();
    let tested = tested.filter(|one| one.verdict != Outcome::NotTestable);
    let least = tested.map(|one| one.smallest_tv_excluded.unwrap_or(1.0));
    let largest = least.fold(f64::NEG_INFINITY, f64::max);
    report.conclusion = if lossy && rule.is_lossless() {
        Conclusion::Lossy
    } else if any_part || any_check {
        match report.fits.is_some() {
            true => Conclusion::LosslessOther,
            false => Conclusion::NotTheRule,
        }
    } else if largest > exclude || largest < 0.0 {
        let requests = &report.requests;
        let cure = match (requests.averaged, requests.seeds.as_str()) {
            (0, _) => "log more".to_owned(),
            (averaged, "unknown") => format!(
                "say --seeds fresh if each of {averaged} texts drew numbers of its own, or log column seed. \
                 Else they are averaged, and longer texts are needed, not more"
            ),
            (averaged, _) => format!(
                "log longer texts; {averaged} that share numbers are averaged, and more of them do not help"
            ),
        };
        report.open.push(match largest < 0.0 {
            true => format!("the records are too few to tell anything: {cure}"),
            false => format!(
                "a departure of {largest:.3} in total variation would not have been found, and {exclude} is asked for: {cure}"
            ),
        });
        Conclusion::Undecided
    } else {
        Conclusion::AsClaimed
    };
    report.ok = !any_part && !any_check;
}

/// The least n with n m - z sqrt(n v) at least what is wanted.
pub(crate) fn positions_for(mean: f64, square: f64, wanted: f64) -> Option<u64> {
    // Growth that small takes more positions than anybody logs, and is not told from none.
    let least = 1e-7;
    let spread = (square - mean * mean).max(0.0).sqrt();
    if mean <= least || mean.is_nan() {
        return None;
    }
    let root = (POWER * spread + (POWER * POWER * spread * spread + 4.0 * mean * wanted).sqrt())
        / (2.0 * mean);
    let positions = (root * root).ceil();
    (positions < 1e12).then_some(positions as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::audit_records;
    use crate::audit::data::Settings;
    use crate::audit::evidence::steps::Checks;
    use crate::audit::verdict::records::tests::named;

    /// The root of n m - z sqrt(n v) = wanted, rounded up.
    #[test]
    fn positions_that_are_needed() {
        assert_eq!(positions_for(0.5, 0.25, 8.0), Some(16));
        assert_eq!(positions_for(0.5, 0.25, 8.1), Some(17));
        // Up to a million millions, and no more.
        let mean = 2f64.powi(-20);
        let most = |positions: f64| positions_for(mean, mean * mean, positions * mean);
        assert_eq!(most(999_998_000_001.0), Some(999_998_000_001));
        assert_eq!(most(1e12), None);
        for (mean, square, wanted) in [(0.1, 0.5, 15.0), (0.01, 0.09, 20.0), (2.0, 5.0, 7.0)] {
            let spread = f64::sqrt(square - mean * mean);
            let enough = |n: f64| n * mean - 2.326_347_874_040_841 * spread * n.sqrt() >= wanted;
            let n = positions_for(mean, square, wanted).unwrap() as f64;
            let is_least = enough(n) && !enough(n - 1.0);
            assert!(is_least, "{mean} {square} {wanted}: {n}");
        }
        // Less spread than none is rounding, and no growth takes for ever.
        assert_eq!(positions_for(0.5, 0.2499, 8.0), Some(16));
        for mean in [0.0, -0.1, 1e-7, f64::NAN] {
            assert_eq!(positions_for(mean, 1.0, 10.0), None, "{mean}");
        }
        assert_eq!(positions_for(2e-7, 1.0, 10.0), None);
        assert!(positions_for(2e-7, 0.0, 10.0).is_some_and(|n| n >= 50_000_000));
    }

    fn report(verdicts: [Outcome; 4], broken: Option<&str>) -> AuditReport {
        let settings = Settings::new(Rule::TOKEN);
        let mut report = audit_records(&named(Vec::new()), &settings, "").unwrap();
        for (part, verdict) in report.parts.iter_mut().zip(verdicts) {
            part.verdict = verdict;
        }
        report.hard_checks = Checks::default().list(true);
        for check in &mut report.hard_checks {
            check.violations = u64::from(Some(check.name.as_str()) == broken);
        }
        report
    }

    #[test]
    fn what_parts_and_checks_say_together() {
        use Conclusion::{AsClaimed, Lossy, NotTheRule, Undecided};
        use Outcome::{Consistent as C, NotTestable as N, Refuted as R};
        let another = Conclusion::LosslessOther;
        let lossy = Rule::threshold(0.5).unwrap();
        let token = Rule::TOKEN;
        let cut = Some("outside-claimed-cut");
        let (zero, undrafted) = (Some("target-zero"), Some("draft-zero"));
        let ended = Some("text-after-its-end");
        for (rule, verdicts, broken, fits, expected) in [
            (token, [C; 4], None, false, AsClaimed),
            (token, [N; 4], None, false, Undecided),
            (token, [N, N, N, C], None, false, AsClaimed),
            (token, [R, C, C, C], None, false, NotTheRule),
            (token, [C, C, R, C], None, true, another),
            // What comes out is off given how rounds went, and not given the text.
            (token, [R, R, C, R], None, true, another),
            (token, [R, R, C, R], None, false, Lossy),
            (token, [C; 4], cut, true, another),
            (lossy, [C, C, C, R], None, false, NotTheRule),
            (lossy, [R, C, C, N], None, false, NotTheRule),
            (lossy, [C; 4], None, false, AsClaimed),
            (token, [C; 4], zero, false, Lossy),
            (token, [N; 4], cut, false, NotTheRule),
            (token, [C; 4], ended, false, Lossy),
            (token, [C; 4], undrafted, false, NotTheRule),
            (lossy, [C; 4], zero, false, NotTheRule),
        ] {
            let mut report = report(verdicts, broken);
            report.fits = fits.then(|| "one-hot".to_owned());
            let tested = report.parts.iter_mut().filter(|one| one.verdict == C);
            tested.for_each(|one| one.smallest_tv_excluded = Some(0.04));
            conclude(&mut report, rule, 0.05);
            let case = (rule, verdicts, broken);
            assert_eq!(report.conclusion, expected, "{case:?}");
            let fine = !verdicts.contains(&R) && broken.is_none();
            assert_eq!(report.ok, fine, "{case:?}");
        }
        // What is excluded has to be below what is asked for.
        let mut report = report([C; 4], None);
        for part in &mut report.parts {
            part.smallest_tv_excluded = Some(0.06);
        }
        conclude(&mut report, token, 0.05);
        assert_eq!((report.conclusion, report.ok), (Undecided, true));
        let open = &report.open;
        assert!(open.iter().any(|one| one.contains("0.06")), "{open:?}");
    }
}
