//! What is asked for and cannot be measured, and why.

use super::metric::{rules, schemes};
use super::{GapError, Settings};
use crate::scheme::SchemeName;
use crate::verifier::{Lossless, VerifierName, any_of};

/// A line for everything that the settings ask for in vain.
///
/// # Errors
/// Nothing at all is left to measure: no scheme has the numbers of drafts, or none of
/// the verifiers that were named has a rate.
pub(super) fn left_out(settings: &Settings) -> Result<Vec<String>, GapError> {
    let mut lines = Vec::new();
    lines.extend(schemes_without_drafts(settings));
    let any_optimum = settings
        .drafts
        .iter()
        .any(|&n| settings.optima(n).next().is_some());
    if !any_optimum {
        return Err(nothing(settings, &lines));
    }
    lines.extend(costly(settings));
    // By default, a verifier is measured wherever it fits.
    if settings.verifiers != Settings::verifiers() {
        lines.extend(verifiers_without_rates(settings));
        let any_rate = settings
            .drafts
            .iter()
            .any(|&n| settings.rules(n).next().is_some());
        if !any_rate && !settings.verifiers.is_empty() {
            return Err(nothing(settings, &lines));
        }
    }
    Ok(lines)
}

fn nothing(settings: &Settings, reasons: &[String]) -> GapError {
    let list = |names: Vec<String>| names.join(",");
    let mut options = Vec::new();
    if settings.schemes != Settings::schemes() {
        let names = settings.schemes.iter().map(ToString::to_string).collect();
        options.push(format!("--schemes {}", list(names)));
    }
    if settings.verifiers != Settings::verifiers() {
        let names = settings.verifiers.iter().map(ToString::to_string).collect();
        options.push(format!("--verifiers {}", list(names)));
    }
    let drafts = settings.drafts.iter().map(ToString::to_string).collect();
    options.push(format!("--drafts {}", list(drafts)));
    GapError::Settings(format!(
        "{} leave nothing to measure: {}",
        options.join(" "),
        reasons.join("; ")
    ))
}

fn schemes_without_drafts(settings: &Settings) -> impl Iterator<Item = String> {
    settings.schemes.iter().filter_map(|&scheme| {
        if !schemes().any(|known| known == scheme) {
            return Some(format!("{scheme}: a log's rows do not make such drafts"));
        }
        let missing = settings.drafts.iter().copied().filter(|&n| !scheme.fits(n));
        let missing: Vec<usize> = missing.collect();
        let only = scheme.entry().only.filter(|_| !missing.is_empty())?;
        Some(format!(
            "{scheme} for {}: its draws are {only} drafts, so ask for --drafts {only}",
            drafts(&missing)
        ))
    })
}

/// Rates that take an option of their own, or are not to be had for so many drafts.
fn costly(settings: &Settings) -> impl Iterator<Item = String> {
    rules().filter_map(|((scheme, name), rule)| {
        if !settings.asks_for((scheme, name)) {
            return None;
        }
        if let Some(why) = rule.slow.filter(|_| !settings.sequential_plans) {
            return Some(format!("{scheme}/{name}: {why}"));
        }
        let most = rule.most;
        let beyond = settings.drafts.iter().any(|&n| n > most);
        beyond.then(|| {
            format!("{scheme}/{name} for more than {most} drafts: no plan is built for them")
        })
    })
}

/// Verifiers that none of the schemes suits.
fn verifiers_without_rates(settings: &Settings) -> impl Iterator<Item = String> {
    let asked = |name: &VerifierName| settings.verifiers.contains(name);
    VerifierName::ALL
        .into_iter()
        .filter(asked)
        .filter_map(|name| {
            let suits = |scheme: SchemeName, n: usize| {
                settings.schemes.contains(&scheme)
                    && name.is_lossless(scheme, n)
                    && name.on_row(scheme).is_some()
            };
            let missing: Vec<usize> = settings
                .drafts
                .iter()
                .copied()
                .filter(|&n| !schemes().any(|scheme| suits(scheme, n)))
                .collect();
            if missing.is_empty() {
                return None;
            }
            let place = if missing.len() == settings.drafts.len() {
                String::new()
            } else {
                format!(" for {}", drafts(&missing))
            };
            let lossless = name.entry().lossless;
            if matches!(lossless, Lossless::OneDraft) {
                return Some(format!(
                    "{name}{place}: it is lossless for {lossless} only, so ask for --drafts 1"
                ));
            }
            let why = if matches!(lossless, Lossless::Always) {
                "its rate is not computed for these schemes".to_owned()
            } else {
                format!("it is lossless for {lossless} only")
            };
            let measured: Vec<&str> = schemes()
                .filter(|&scheme| name.on_row(scheme).is_some())
                .map(SchemeName::as_str)
                .collect();
            let cure = any_of(&measured);
            Some(format!("{name}{place}: {why}, so ask for --schemes {cure}"))
        })
}

/// `1 draft`, `2, 3 and 4 drafts`.
fn drafts(numbers: &[usize]) -> String {
    let names: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [one] if one == "1" => "1 draft".to_owned(),
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last} drafts", rest.join(", ")),
        _ => format!("{} drafts", names.concat()),
    }
}
