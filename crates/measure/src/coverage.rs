//! What is asked for and cannot be measured, and why.

use super::GapError;
use super::metric::schemes;
use super::own::{Law, OwnRule, by_commas};
use super::settings::{LawMeasured, Settings};
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::{Lossless, VerifierName, any_of};

/// A line for everything that the settings ask for in vain.
///
/// # Errors
/// Nothing at all is left to measure: no scheme has the numbers of drafts, or none of
/// the verifiers that were named has a rate.
pub(super) fn left_out(settings: &Settings) -> Result<Vec<String>, GapError> {
    if let Some(why) = refused(settings) {
        return Err(GapError::Settings(why));
    }
    let mut lines: Vec<String> = schemes_without_drafts(settings).collect();
    lines.extend(own_laws_left_out(settings));
    let measured = settings.drafts.iter().map(|&n| settings.measured(n));
    let measured: Vec<LawMeasured<'_>> = measured.flatten().collect();
    if measured.is_empty() {
        return Err(nothing(settings, &lines));
    }
    let mut missing: Vec<String> = schemes_without_rates(settings).collect();
    // By default, a verifier is measured wherever it fits.
    if settings.verifiers != Settings::verifiers() {
        missing.extend(verifiers_without_rates(settings));
        let has_rate = |law: &LawMeasured<'_>| !law.rules.is_empty() || !law.own.is_empty();
        let any_rate = measured.iter().any(has_rate);
        if !any_rate && !settings.verifiers.is_empty() {
            let reasons = if missing.is_empty() { lines } else { missing };
            return Err(nothing(settings, &reasons));
        }
    }
    lines.extend(missing);
    lines.extend(own_rules_left_out(settings));
    Ok(lines)
}

fn nothing(settings: &Settings, reasons: &[String]) -> GapError {
    let mut options = Vec::new();
    if settings.schemes != Settings::schemes() {
        options.push(format!("⟨laws {}⟩", by_commas(&settings.schemes)));
    }
    if settings.verifiers != Settings::verifiers() {
        options.push(format!("⟨verifiers {}⟩", by_commas(&settings.verifiers)));
    }
    for law in &settings.own_laws {
        options.push(format!("own law {}", law.name()));
    }
    options.push(format!("⟨drafts {}⟩", by_commas(&settings.drafts)));
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
            "{scheme} for {}: its draws are {only} drafts, so ask for ⟨drafts {only}⟩",
            drafts(&missing)
        ))
    })
}

/// Returns why a verifier that is lossless has no rate.
fn why(name: VerifierName, scheme: Option<SchemeName>) -> &'static str {
    if name == VerifierName::OPTIMAL {
        return "it accepts alpha*, which is measured; its plan is made for i.i.d. drafts alone";
    }
    match scheme.and_then(|scheme| name.on_row(scheme)) {
        Some(_) => "level, which accepts alpha*, stands for it unless rules are named",
        None => "its rate is not computed at rows of a log",
    }
}

/// Schemes for which a verifier, though it is lossless and has a rate for others, has none.
fn schemes_without_rates(settings: &Settings) -> impl Iterator<Item = String> {
    VerifierName::ALL.into_iter().filter_map(|name| {
        let asked = |scheme: &SchemeName| {
            let drafts = settings.drafts.iter();
            settings.asks_for((*scheme, name))
                && drafts
                    .into_iter()
                    .any(|&n| scheme.fits(n) && name.is_lossless(*scheme, n))
        };
        let (with, without): (Vec<SchemeName>, Vec<SchemeName>) =
            schemes().filter(asked).partition(|&scheme| {
                name.on_row(scheme)
                    .is_some_and(|row| settings.measures(&row))
            });
        let why = why(name, without.first().copied());
        let line = || format!("{name} of {} drafts: {why}", enumerated(&without));
        (!with.is_empty() && !without.is_empty()).then(line)
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
                .filter(|&n| {
                    let mut laws = settings.laws(n).into_iter();
                    !laws.any(|(_, law)| settings.rules_of(law, n).contains(&name))
                })
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
                    "{name}{place}: it is lossless for {lossless} only, so ask for ⟨drafts 1⟩"
                ));
            }
            let mut asked = settings.schemes.iter();
            let fits =
                |scheme: &&SchemeName| missing.iter().any(|&n| name.is_lossless(**scheme, n));
            let why = match asked.find(fits) {
                _ if matches!(lossless, Lossless::Always) => why(name, None).to_owned(),
                Some(&scheme) => format!("with {scheme} drafts, {}", why(name, Some(scheme))),
                None => format!("it is lossless for {lossless} only"),
            };
            let measured: Vec<&str> = schemes()
                .filter(|&scheme| name.on_row(scheme).is_some())
                .map(SchemeName::as_str)
                .collect();
            let cure = any_of(&measured);
            Some(format!("{name}{place}: {why}, so ask for ⟨laws {cure}⟩"))
        })
}

/// `1 draft`, `2, 3 and 4 drafts`.
fn drafts(numbers: &[usize]) -> String {
    let plural = if numbers == [1] { "" } else { "s" };
    format!("{} draft{plural}", enumerated(numbers))
}

/// `2`, `2 and 3`, `2, 3 and 4`.
fn enumerated<T: ToString>(all: &[T]) -> String {
    let names: Vec<String> = all.iter().map(ToString::to_string).collect();
    match names.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        names => names.concat(),
    }
}

/// Returns why own rules and laws cannot be measured together.
fn refused(settings: &Settings) -> Option<String> {
    let all = &settings.own_rules;
    let same =
        |one: &OwnRule, other: &OwnRule| one.name() == other.name() && one.of() == other.of();
    let twice = (all.iter().enumerate())
        .find(|(at, one)| all.iter().take(*at).any(|other| same(one, other)));
    if let Some((_, one)) = twice {
        let name = one.name();
        return Some(format!("own rule {name}: is there twice; name each once"));
    }
    let all = &settings.own_laws;
    let twice = (all.iter().enumerate())
        .find(|(at, one)| all.iter().take(*at).any(|other| other.name() == one.name()));
    twice.map(|(_, one)| {
        format!(
            "own law {}: is there twice; name each once, or give one law all numbers of drafts",
            one.name()
        )
    })
}

/// A line for every own rule that is asked for in vain.
fn own_rules_left_out(settings: &Settings) -> Vec<String> {
    let line = |rule: &OwnRule| {
        let name = rule.name();
        let scheme = match rule.of() {
            Law::Table(scheme) => *scheme,
            Law::Own(law) => {
                let mut all = settings.own_laws.iter();
                let known = all.any(|one| one.name() == law);
                return (!known).then(|| {
                    format!(
                        "own rule {name}: it is for drafts of own law {law}, which is not asked for"
                    )
                });
            }
        };
        if !settings.schemes.contains(&scheme) {
            return Some(format!(
                "own rule {name}: it is for {scheme} drafts, so ask for ⟨laws {scheme}⟩"
            ));
        }
        let missing = settings.drafts.iter().any(|&n| !scheme.fits(n));
        let only = scheme.entry().only.filter(|_| missing)?;
        Some(format!("own rule {name}: it is for {only} drafts alone"))
    };
    settings.own_rules.iter().filter_map(line).collect()
}

/// A line for every own law that is not measured at every number of drafts, and for every rule that
/// is not measured under it.
fn own_laws_left_out(settings: &Settings) -> Vec<String> {
    let mut lines = Vec::new();
    for law in &settings.own_laws {
        let is_measured = settings.drafts.iter().any(|&n| settings.has_law(law, n));
        lines.extend(
            law.left_out(&settings.drafts)
                .filter(|_| !(law.is_sampled() && is_measured)),
        );
        if settings.verifiers.contains(&VerifierName::OPTIMAL) && !law.is_sampled() {
            let name = law.name();
            lines.push(format!(
                "optimal of {name} drafts: it accepts alpha*, which is measured"
            ));
        }
        // By default, a verifier is measured wherever it fits.
        let is_named = settings.verifiers != Settings::verifiers();
        for &name in settings.verifiers.iter().filter(|_| is_named) {
            let fits = |n: &&usize| settings.has_law(law, **n);
            let mut numbers = settings.drafts.iter().filter(fits).peekable();
            let drawn = law.is_sampled() && name != VerifierName::OPTIMAL;
            let none = numbers.peek().is_some()
                && numbers.all(|&n| drawn || !name.is_lossless(law.made(), n));
            if none {
                let (law, lossless) = (law.name(), name.entry().lossless);
                lines.push(format!(
                    "{name} of {law} drafts: it is lossless for {lossless} only"
                ));
            }
        }
        for (rule, why) in law.lacks() {
            lines.push(format!("{rule} of {} drafts: {why}", law.name()));
        }
    }
    lines
}
