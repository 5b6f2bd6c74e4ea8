//! From texts and logged draft paths to a report.

use super::super::ReplayError;
use super::super::asked::{Answers, Slots};
use super::super::measured::read_measured;
use super::super::read::{Reading, Texts};
use super::by_agreement::Tables;
use super::contexts::{Contexts, logged_paths};
use super::data::PathsReport;
use super::possible::length_of;
use super::settings::PathSettings;
use specgap_core::rounds::ChainRule;
use specgap_core::rule::RuleName;
use specgap_log::log::Log;
use specgap_number::distribution::Rows;
use specgap_row::Workspace;
use std::collections::BTreeSet;

/// Verifiers of K paths, in the order of reports: of one path, and level by level.
pub(super) fn rules() -> Vec<RuleName> {
    let of_one = ChainRule::all().map(ChainRule::rule);
    let several = (RuleName::ALL.into_iter()).filter(|rule| rule.entry().shared.is_some());
    of_one.chain(several).collect()
}

/// Reads the texts of some logs, and the draft paths that they have, and says what K paths
/// could give and what verifiers get of it. `command` goes into the report, and `progress` is
/// told of positions as they are read.
///
/// # Errors
/// As [`Texts::read`]; also K or L out of range, and draft paths that were drawn at another
/// temperature than the text.
///
/// # Complexity
/// O(N V) for reading, and some milliseconds a position for selections from up to 8 drafts;
/// memory grows by 8 bytes a position for each of 3 K (K + 1)/2 numbers.
pub fn measure_paths(
    logs: &[Log],
    settings: &PathSettings,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<PathsReport, ReplayError> {
    let most = most_drafts(settings)?;
    let drawn = (logs.iter())
        .map(logged_paths)
        .collect::<Result<Vec<_>, _>>()?;
    let length = length_of(settings.length, logs, &drawn)?;
    let asked = Asked::new(most).map_err(|why| ReplayError::Settings(why.to_owned()))?;
    let question =
        |scan: &mut Workspace, rows: Rows<'_>, token: usize, _: u64| asked.ask(scan, rows, token);
    let reading = Reading::asking(&question);
    let (texts, of) = read_measured(logs, settings.temperature, &reading, command, progress)?;
    let contexts = Contexts::new(logs, drawn, &texts, length)?;
    let drafts: BTreeSet<usize> = settings.drafts.iter().copied().collect();
    let drafts: Vec<usize> = drafts.into_iter().collect();
    Ok(Measurement {
        rules: rules(),
        texts: &texts,
        asked: &asked,
        drafts,
        contexts,
    }
    .report(of))
}

/// What is asked of a position: tables.
pub(super) struct Asked {
    slots: Slots,
    pub(super) tables: Tables,
}

impl Asked {
    pub(super) fn new(most: usize) -> Result<Self, &'static str> {
        let mut slots = Slots::default();
        Ok(Self {
            tables: Tables::new(most, &mut slots)?,
            slots,
        })
    }

    pub(super) fn ask(
        &self,
        scan: &mut Workspace,
        rows: Rows<'_>,
        token: usize,
    ) -> Result<Answers, String> {
        self.slots
            .answered(|answers| self.tables.put(answers, scan, rows, token))
    }
}

fn most_drafts(settings: &PathSettings) -> Result<usize, ReplayError> {
    let most = settings.drafts.iter().copied().max().unwrap_or(0);
    let fits = |&drafts: &usize| (1..=PathSettings::MOST_DRAFTS).contains(&drafts);
    if settings.drafts.iter().all(fits) && most > 0 {
        return Ok(most);
    }
    Err(ReplayError::Settings(format!(
        "numbers of paths {:?}: give at least one, each in 1..={}",
        settings.drafts,
        PathSettings::MOST_DRAFTS
    )))
}

/// The texts and draft paths of some logs, and what is measured of them.
pub(super) struct Measurement<'a> {
    /// What is measured: [`rules`].
    pub(super) rules: Vec<RuleName>,
    pub(super) texts: &'a Texts,
    pub(super) asked: &'a Asked,
    /// K, rising.
    pub(super) drafts: Vec<usize>,
    pub(super) contexts: Contexts<'a>,
}
