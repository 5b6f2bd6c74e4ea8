//! What an audit holds a log to, and settings that it refuses.

use crate::audit::AuditError;
use crate::audit::data::{Claimed, Settings};
use specgap_log::log::Log;
use std::collections::BTreeSet;

/// Returns how a log says that it was sampled, unless the settings say it.
///
/// # Errors
/// A temperature of 0 or out of range, cuts out of range.
pub fn claimed_of(log: &Log, settings: &Settings) -> Result<Claimed, AuditError> {
    let claimed = match (&settings.claimed, &log.metadata().sampling) {
        (Some(claimed), _) => claimed.clone(),
        (None, Some(sampling)) => Claimed {
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            cut_order: sampling.cut_order,
            ..Claimed::at(sampling.temperature)
        },
        (None, None) => Claimed::at(1.0),
    };
    let refused = |message: String| AuditError::Log(format!("{}: {message}", log.path().display()));
    for (name, t) in [
        ("temperature", claimed.temperature),
        ("draft temperature", claimed.draft_temperature),
    ] {
        if t == 0.0 {
            return Err(refused(format!(
                "the {name} is 0: a greedy engine has no law to test; compare its tokens with the \
                 rows' likeliest"
            )));
        }
        if !(t.is_finite() && t > 0.0) {
            let words = format!("the {name} is {t}; it is finite and above 0");
            return Err(refused(words));
        }
    }
    for (name, k) in [
        ("top-k", claimed.top_k),
        ("draft top-k", claimed.draft_top_k),
    ] {
        if k == Some(0) {
            return Err(refused(format!("{name} is 0; it is at least 1")));
        }
    }
    for (name, share) in [
        ("top-p", claimed.top_p),
        ("min-p", claimed.min_p),
        ("draft top-p", claimed.draft_top_p),
        ("draft min-p", claimed.draft_min_p),
    ] {
        if let Some(share) = share
            && !(share > 0.0 && share <= 1.0)
        {
            let words = format!("{name} is {share}; it is above 0 and at most 1");
            return Err(refused(words));
        }
    }
    Ok(claimed)
}

pub(super) fn check_settings(settings: &Settings) -> Result<(), AuditError> {
    let Settings {
        tolerance,
        exclude,
        alpha,
        ..
    } = *settings;
    let noise = settings.noise.unwrap_or(0.0);
    let refused = |name: &str, value: f64, range: &str| {
        let words = format!("⟨{name} {value}⟩ is out of range; it is {range}");
        Err(AuditError::Log(words))
    };
    if !(0.0..0.5).contains(&tolerance) {
        return refused("tolerance", tolerance, "at least 0 and below 0.5");
    }
    if !(0.0..=2.0).contains(&noise) {
        return refused("noise", noise, "at least 0 and at most 2");
    }
    if !(exclude > 0.0 && exclude <= 1.0) {
        return refused("exclude", exclude, "above 0 and at most 1");
    }
    if !(alpha > 0.0 && alpha < 1.0) {
        return refused("alpha", alpha, "above 0 and below 1");
    }
    Ok(())
}

/// Tokens that end texts, from the metadata and the settings.
pub(crate) fn stop_tokens(log: &Log, settings: &Settings) -> BTreeSet<u32> {
    let noted = log.metadata().extra.get("stop_tokens");
    let noted = noted.and_then(serde_json::Value::as_array);
    let noted = noted.into_iter().flatten();
    let ids = noted.filter_map(|id| u32::try_from(id.as_u64()?).ok());
    ids.chain(settings.stop.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::audit_records;
    use crate::audit::model::rule::Rule;
    use crate::audit::tests::log;
    use crate::audit::verdict::records::tests::named;

    /// How a log says that it was sampled, and what is out of range.
    #[test]
    fn what_is_claimed_of_a_log() {
        let log = log(&[([0.5, 0.25, 0.25], [0.8, 0.1, 0.1])], &[([0, 0], 0, 1)]);
        let with = |change: &dyn Fn(&mut Claimed)| {
            let mut claimed = Claimed::at(0.7);
            change(&mut claimed);
            let mut settings = Settings::new(Rule::TOKEN);
            settings.claimed = Some(claimed);
            claimed_of(&log, &settings).map_err(|error| error.to_string())
        };
        assert_eq!(with(&|_| {}).unwrap(), Claimed::at(0.7));
        let noted = claimed_of(&log, &Settings::new(Rule::TOKEN)).unwrap();
        assert_eq!(noted, Claimed::at(1.0));
        for share in [1.0, 1e-9] {
            assert!(with(&|c| (c.top_p, c.min_p) = (Some(share), Some(share))).is_ok());
        }
        assert!(with(&|c| c.top_k = Some(1)).is_ok());
        type Change = fn(&mut Claimed, f64);
        let temperature: Change = |claimed, t| claimed.temperature = t;
        let of_draft: Change = |claimed, t| claimed.draft_temperature = t;
        let top_k: Change = |claimed, _| claimed.top_k = Some(0);
        let draft_top_k: Change = |claimed, _| claimed.draft_top_k = Some(0);
        let top_p: Change = |claimed, share| claimed.top_p = Some(share);
        let min_p: Change = |claimed, share| claimed.min_p = Some(share);
        let draft_min_p: Change = |claimed, share| claimed.draft_min_p = Some(share);
        for (change, value, words) in [
            (temperature, 0.0, "the temperature is 0: a greedy engine"),
            (of_draft, 0.0, "the draft temperature is 0: a greedy"),
            (temperature, -1.0, "the temperature is -1; it is finite"),
            (
                temperature,
                f64::NAN,
                "the temperature is NaN; it is finite",
            ),
            (of_draft, f64::INFINITY, "the draft temperature is inf; it"),
            (top_k, 0.0, "top-k is 0; it is at least 1"),
            (draft_top_k, 0.0, "draft top-k is 0; it is at least 1"),
            (top_p, 0.0, "top-p is 0; it is above 0"),
            (top_p, 1.5, "top-p is 1.5; it is above 0"),
            (min_p, 0.0, "min-p is 0; it is above 0 and at most 1"),
            (min_p, 1.0000001, "min-p is 1.0000001; it is"),
            (min_p, f64::NAN, "min-p is NaN; it is above 0"),
            (draft_min_p, 2.0, "draft min-p is 2; it is above 0"),
        ] {
            let message = with(&|claimed| change(claimed, value)).unwrap_err();
            let is_named = message.contains(words) && message.contains("made.safetensors");
            assert!(is_named, "{message}");
        }
    }

    #[test]
    fn levels_and_tolerances_out_of_range_are_refused() {
        for (tolerance, alpha, fits) in [
            (0.0, 0.01, true),
            (0.499, 0.999, true),
            (0.5, 0.01, false),
            (-1e-9, 0.01, false),
            (f64::NAN, 0.01, false),
            (0.0, 0.0, false),
            (0.0, 1.0, false),
            (0.0, -0.5, false),
            (0.0, 2.0, false),
            (0.0, f64::NAN, false),
        ] {
            let mut settings = Settings::new(Rule::TOKEN);
            settings.tolerance = tolerance;
            settings.alpha = alpha;
            let found = check_settings(&settings);
            assert_eq!(found.is_ok(), fits, "{tolerance} {alpha}");
            let found = audit_records(&named(Vec::new()), &settings, "");
            assert_eq!(found.is_ok(), fits, "{tolerance} {alpha}");
        }
    }
}
