//! What was measured: logs, own rules and laws, and the words of the report.

use super::super::data::{LogSummary, OwnLawRow, OwnRuleRow, RestMass};
use super::super::glossary::definitions;
use super::super::own::OwnRule;
use super::super::own_law::{OwnLaw, STATUS};
use super::super::settings::Settings;
use super::super::summary::LogPart;
use super::super::surprise::Surprises;
use super::super::tally::ExactSum;
use specgap_statistics::advice::Change;
use std::collections::BTreeMap;

/// Returns what every word of the report means.
pub(super) fn words(settings: &Settings) -> BTreeMap<String, String> {
    let mut all = definitions(settings.block_length);
    let said = |words: &str| match words {
        "" => String::new(),
        words => format!(": {words}"),
    };
    for rule in &settings.own_rules {
        let same = settings
            .own_rules
            .iter()
            .filter(|one| one.name() == rule.name());
        let laws: Vec<&str> = same.map(OwnRule::scheme).collect();
        let meaning = format!(
            "rule of the caller's own for {} drafts{}",
            laws.join(" and "),
            said(rule.told())
        );
        all.insert(format!("verifier {}", rule.name()), meaning);
    }
    for law in settings.own_laws.iter().filter(|law| !law.is_sampled()) {
        let meaning = format!(
            "draft law of the caller's own, made as {}{}; its alpha* {STATUS}",
            law.made(),
            said(law.told())
        );
        all.insert(format!("scheme {}", law.name()), meaning);
    }
    all
}

pub(super) fn law_row(law: &OwnLaw) -> OwnLawRow {
    OwnLawRow {
        name: law.name().to_owned(),
        made: (!law.is_sampled()).then(|| law.made().as_str().to_owned()),
        drafts: law.numbers().to_vec(),
        words: law.told().to_owned(),
        digest: law.digested().map(str::to_owned),
    }
}

pub(super) fn own_row(rule: &OwnRule) -> OwnRuleRow {
    OwnRuleRow {
        name: rule.name().to_owned(),
        scheme: rule.scheme().to_owned(),
        words: rule.told().to_owned(),
        digest: rule.digested().map(str::to_owned),
    }
}

/// Returns what a log says of an engine's doings, which no number of a report is made of.
pub(super) fn engine_tensors(log: &LogPart) -> Option<String> {
    let tensors = &log.summary.engine_tensors;
    // A text has a seed without an engine's rounds, too.
    let has_rounds = tensors.iter().any(|name| name != "seed");
    has_rounds.then(|| {
        format!(
            "{} {} of {}: what an engine did there is checked and not measured, since these numbers \
             are made of the models' rows alone; specgap audit tests it",
            if tensors.len() == 1 { "tensor" } else { "tensors" },
            tensors.join(" and "),
            log.summary.name
        )
    })
}

pub(super) fn log_summary(log: &LogPart) -> LogSummary {
    let count = log.count() as f64;
    let mean = |sum: ExactSum| sum.value() / count;
    let temperatures = log.summary.metadata.rest_temperatures.iter();
    LogSummary {
        without_draft: log.without_draft,
        surprise: log.surprises.as_ref().map(Surprises::surprise),
        rest: temperatures
            .zip(&log.rest)
            .filter(|_| count > 0.0)
            .map(|(&temperature, rest)| RestMass {
                temperature,
                target_mean: mean(rest.target_sum),
                target_max: rest.target_largest,
                draft_mean: mean(rest.draft_sum),
                draft_max: rest.draft_largest,
            })
            .collect(),
        files: log.files.values().cloned().collect(),
        ..log.summary.clone()
    }
}

/// Returns whether the text is not that of the rows, not all of it, or of another temperature.
pub(super) fn is_void(logs: &[LogSummary], change: &Change) -> bool {
    logs.iter().any(|log| {
        let sampling = log.metadata.sampling.as_ref();
        let sampled = sampling.map(|sampling| sampling.temperature);
        log.surprise
            .is_some_and(|surprise| surprise.not_drawn().is_some())
            || log.fit.is_some_and(|fit| fit.is_strange())
            || log.metadata.unfinished().is_some()
            || sampled.is_some_and(|sampled| change.temperature != Some(sampled))
    })
}
