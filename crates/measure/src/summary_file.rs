//! A summary as JSON, for carrying it between machines.

use super::data::{HISTOGRAM_EDGES, LogSummary, StripToken};
use super::metric::{
    AboutLaw, AboutOwn, DraftRule, LawRef, Metric, Other, Own, OwnLawId, Place, Rule, Temperature,
};
use super::own::{OwnRule, RuleTold};
use super::own_law::{LawTold, OwnLaw};
use super::settings::{Settings, SlowRates, SolvedPlans};
use super::summary::{Cluster, HeldPaths, LogPart, Rest, Summary};
use super::surprise::Surprises;
use super::tally::{ExactSum, Tally};
use super::unit::{LogKey, Unit};
use super::{GapError, sequence};
use serde::{Deserialize, Serialize};
use specgap_base::sorted::Map;
use specgap_base::typed;
use specgap_core::verifier::VerifierName;
use specgap_log::log::{FileDigest, LogIdentity};
use specgap_number::known::Kind;
use specgap_sampling::Cuts;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

const FORMAT: &str = "specgap summary";
/// The version of the format.
const SCHEMA: u32 = 1;
/// What stands around the hash of a file.
const HASH: &str = ",\"sha256\":\"";
const END: &str = "\"}";

fn hash(text: &str) -> String {
    FileDigest::of_bytes(Path::new(""), text.as_bytes()).sha256
}

/// Positions of a log at most, so that counts of many logs are within 64 bits.
const MOST_POSITIONS: usize = 1 << 48;

/// What every version has.
#[derive(Deserialize)]
struct Head {
    format: String,
    schema: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    schema: u32,
    tool: String,
    settings: SettingsRecord,
    /// Tokens of every row that were kept, if that was asked for.
    kept: Option<usize>,
    /// By name.
    logs: Vec<LogRecord>,
    tallies: Vec<TallyRecord>,
    strip: Vec<StripRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paths: Option<HeldPaths>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsRecord {
    temperatures: Vec<f64>,
    drafts: Vec<usize>,
    schemes: Vec<String>,
    verifiers: Vec<String>,
    /// Absent from summaries of versions without a choice, which solved all.
    #[serde(default = "every")]
    plans: String,
    /// Of earlier versions, which could solve plans of sequential draws; never written.
    #[serde(default, skip_serializing)]
    sequential_plans: bool,
    /// Absent from summaries of versions without a choice, which took this one.
    #[serde(default = "enclosed")]
    rrs_wo: String,
    block_length: usize,
    seed: u64,
    timing: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    draft_temperatures: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    draft_cuts: Option<Cuts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cuts: Option<Cuts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    own_rules: Vec<RuleTold>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    own_laws: Vec<LawTold>,
}

fn every() -> String {
    SolvedPlans::Every.as_str().to_owned()
}

fn enclosed() -> String {
    SlowRates::Enclosed.as_str().to_owned()
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogRecord {
    summary: LogSummary,
    identity: LogIdentity,
    /// With their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<(usize, FileDigest)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    held: bool,
    by_prompt: bool,
    has_tokens: bool,
    /// First and last position number of each stretch.
    measured: Vec<[usize; 2]>,
    #[serde(default, skip_serializing_if = "super::data::is_zero")]
    without_draft: usize,
    rest: Vec<Rest>,
    /// Positions, and sums over them in units of 2^-80.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    surprises: Option<(u64, [ExactSum; 5])>,
    /// Prompts, or positions.
    clusters: Vec<Cluster>,
}

/// One number; sums are whole numbers of 2^-80, a cluster each, log by log.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TallyRecord {
    about: String,
    temperature: Temperature,
    /// Where the draft's row is made otherwise than the target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    draft: Option<DraftRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drafts: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheme: Option<String>,
    /// `scheme/verifier`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rules: Vec<String>,
    sums: Vec<ExactSum>,
    bins: Vec<(u16, u64)>,
    histogram: Vec<u64>,
    lowest: f64,
    highest: f64,
    widest: f64,
    /// How well the number is known that is known least.
    kind: Option<Kind>,
    truncated: u64,
    lower: ExactSum,
    upper: ExactSum,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StripRecord {
    /// Which of `logs`.
    log: usize,
    number: i64,
    prompt: String,
    tokens: Vec<(usize, StripToken)>,
}

impl Summary {
    /// The summary as one line of JSON: the same bytes for the same positions, however they
    /// were measured and merged.
    ///
    /// # Errors
    /// None that is known of: numbers are finite.
    pub fn to_json(&self) -> Result<String, GapError> {
        let logs: Vec<&Arc<LogKey>> = self.logs.keys().collect();
        let document = Document {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            tool: self.tool.clone(),
            settings: SettingsRecord::new(&self.settings),
            kept: self.kept,
            logs: self
                .logs
                .iter()
                .map(|(key, part)| self.log_record(key, part))
                .collect(),
            tallies: self
                .tallies
                .iter()
                .map(|(&metric, tally)| self.tally_record(metric, tally))
                .collect(),
            strip: (self.strip.texts.iter())
                .map(|(unit, (prompt, tokens))| StripRecord {
                    log: logs.iter().position(|key| **key == unit.log).unwrap_or(0),
                    number: unit.number,
                    prompt: prompt.clone(),
                    tokens: tokens.clone().into_iter().collect(),
                })
                .collect(),
            paths: self.paths.clone(),
        };
        typed::line(&document).map_err(|error| GapError::Summary(error.to_string()))
    }

    /// Reads what [`Summary::to_json`] wrote.
    ///
    /// # Errors
    /// Text that is no summary, is cut off or of another version; numbers that contradict
    /// one another.
    pub fn from_json(text: &str) -> Result<Self, GapError> {
        let refused = |message: String| GapError::Summary(message);
        // Before the fields, which another version may have named otherwise.
        let head: Head = serde_json::from_str(text)
            .ok()
            .filter(|head: &Head| head.format == FORMAT)
            .ok_or_else(|| {
                refused("is no whole summary of specgap gap --partial; write it again".to_owned())
            })?;
        if head.schema != u64::from(SCHEMA) {
            return Err(refused(format!(
                "schema is {}; this version of specgap reads {SCHEMA}",
                head.schema
            )));
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let document: Document = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| refused(format!("{}: {}", error.path(), error.inner())))?;
        document.summary().map_err(refused)
    }

    /// The summary as a file has it: [`Self::to_json`] with one field more, the hash of all before it.
    ///
    /// # Errors
    /// Those of [`Self::to_json`].
    pub fn to_file(&self) -> Result<String, GapError> {
        let text = self.to_json()?;
        let own = text.trim_end().strip_suffix('}').unwrap_or(&text);
        Ok(format!("{own}{HASH}{}{END}\n", hash(own)))
    }

    /// Reads what [`Self::to_file`] wrote, and what earlier versions did, without a hash.
    ///
    /// # Errors
    /// A file that is not what was written; those of [`Self::from_json`].
    pub fn from_file(text: &str) -> Result<Self, GapError> {
        let signed = text.trim_end().strip_suffix(END);
        let Some((own, said)) = signed.and_then(|text| text.rsplit_once(HASH)) else {
            return Self::from_json(text);
        };
        if said != hash(own) {
            return Err(GapError::Summary(
                "sha256: is not that of the file, which is not what was written; write it again"
                    .to_owned(),
            ));
        }
        Self::from_json(&format!("{own}}}"))
    }

    fn log_record(&self, key: &Arc<LogKey>, part: &LogPart) -> LogRecord {
        LogRecord {
            summary: part.summary.clone(),
            identity: part.identity.clone(),
            files: part.files.clone().into_iter().collect(),
            held: part.held,
            by_prompt: part.by_prompt,
            has_tokens: part.has_tokens,
            measured: (part.measured.iter())
                .map(|range| [range.start, range.end - 1])
                .collect(),
            without_draft: part.without_draft,
            rest: part.rest.clone(),
            surprises: part.surprises.map(|all| (all.positions, all.sums)),
            clusters: (self.places.iter())
                .filter(|(unit, _)| unit.log == *key)
                .filter_map(|(_, &place)| {
                    let mut cluster = self.clusters.get(place)?.clone();
                    cluster.text.sort_by(sequence::order);
                    let unlisted = &mut cluster.unlisted;
                    unlisted.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
                    Some(cluster)
                })
                .collect(),
        }
    }

    fn tally_record(&self, metric: Metric, tally: &Tally) -> TallyRecord {
        // The same number with the draft's row as the target's, and how it is made.
        let (metric, draft) = match metric {
            Metric::Redrafted { draft, .. } => (metric.as_before(), Some(draft)),
            metric => (metric, None),
        };
        let (temperature, drafts) = metric.at();
        let scheme = match metric {
            Metric::Optimum { scheme, .. } => Some(scheme.as_str().to_owned()),
            _ => None,
        };
        TallyRecord {
            about: metric.word().to_owned(),
            temperature,
            draft,
            drafts,
            scheme,
            rules: self.settings.rates(metric),
            sums: (self.places.values())
                .map(|&place| tally.sum(place))
                .collect(),
            bins: tally.bins.clone().into_iter().collect(),
            histogram: tally.histogram.to_vec(),
            lowest: tally.lowest,
            highest: tally.highest,
            widest: tally.widest,
            kind: tally.kind,
            truncated: tally.truncated,
            lower: tally.lower,
            upper: tally.upper,
        }
    }
}

impl SettingsRecord {
    fn new(settings: &Settings) -> Self {
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let [schemes, verifiers] = settings.names();
        Self {
            temperatures: settings.temperatures.clone(),
            drafts: settings.drafts.clone(),
            schemes: own(&schemes),
            verifiers: own(&verifiers),
            plans: settings.plans.as_str().to_owned(),
            sequential_plans: false,
            rrs_wo: settings.rrs_wo.as_str().to_owned(),
            block_length: settings.block_length,
            seed: settings.seed,
            timing: settings.timing,
            draft_temperatures: settings.draft_temperatures.clone(),
            draft_cuts: settings.draft_cuts,
            cuts: (!settings.cuts.keep_all()).then_some(settings.cuts),
            own_rules: settings.own_rules.iter().map(OwnRule::as_told).collect(),
            own_laws: settings.own_laws.iter().map(OwnLaw::as_told).collect(),
        }
    }

    fn settings(&self) -> Result<Settings, String> {
        if self.sequential_plans {
            return Err(
                "settings: sequential_plans: plans of sequential draws are not solved any more; \
                 measure the log again"
                    .to_owned(),
            );
        }
        let settings = Settings::new(&self.temperatures, &self.drafts, self.seed)
            .and_then(|settings| settings.served(self.cuts.unwrap_or_default()))
            .and_then(|settings| settings.redrafted(&self.draft_temperatures, self.draft_cuts))
            .map_err(|error| format!("settings: {error}"))?;
        Ok(Settings {
            schemes: names(&self.schemes)?,
            verifiers: names(&self.verifiers)?,
            plans: (self.plans.parse()).map_err(|why| format!("settings: plans: {why}"))?,
            rrs_wo: (self.rrs_wo.parse()).map_err(|why| format!("settings: rrs_wo: {why}"))?,
            block_length: self.block_length,
            timing: self.timing,
            own_rules: (self.own_rules.iter().map(OwnRule::carried))
                .collect::<Result<_, _>>()
                .map_err(|why| format!("settings: own_rules: {why}"))?,
            own_laws: (self.own_laws.iter())
                .map(|law| OwnLaw::carried(law, name(&law.made)?))
                .collect::<Result<_, _>>()
                .map_err(|why| format!("settings: own_laws: {why}"))?,
            ..settings
        })
    }
}

/// Names of this version.
fn names<T: FromStr>(names: &[String]) -> Result<Vec<T>, String> {
    names.iter().map(|text| name(text)).collect()
}

fn name<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no scheme or verifier of this version of specgap"))
}

impl Document {
    fn summary(self) -> Result<Summary, String> {
        let settings = self.settings.settings()?;
        let mut summary = Summary::empty(self.tool, settings, self.kept);
        let mut keys = Vec::new();
        for record in self.logs {
            let name = record.summary.name.clone();
            let key = record
                .open(&mut summary)
                .map_err(|error| format!("log {name}: {error}"))?;
            keys.push(key);
        }
        let positions = summary.positions() as u64;
        let sizes: Vec<u64> = (summary.clusters.iter())
            .map(|cluster| cluster.positions)
            .collect();
        // Steps of solvers that took steps: earlier versions counted them.
        let counted = |record: &TallyRecord| record.about != "plan-steps";
        for record in self.tallies.into_iter().filter(counted) {
            let about = record.about.clone();
            let asked = summary
                .settings
                .temperatures
                .contains(&record.temperature.0);
            let (metric, tally) = (asked.then_some(record))
                .ok_or_else(|| "temperature: is none of the settings".to_owned())
                .and_then(|record| record.open(&summary.settings, &sizes, positions))
                .map_err(|error| format!("tally of {about}: {error}"))?;
            if summary.tallies.insert(metric, tally).is_some() {
                return Err(format!("tally of {about}: is there twice"));
            }
        }
        for record in self.strip {
            let log = keys
                .get(record.log)
                .ok_or("strip: names a log that is not there")?;
            let unit = Unit {
                log: Arc::clone(log),
                number: record.number,
            };
            let tokens = record.tokens.into_iter().collect();
            summary.strip.texts.insert(unit, (record.prompt, tokens));
        }
        summary.paths = self.paths;
        Ok(summary)
    }
}

impl LogRecord {
    fn open(self, summary: &mut Summary) -> Result<Arc<LogKey>, String> {
        if self.summary.positions > MOST_POSITIONS {
            return Err(format!("{} positions are too many", self.summary.positions));
        }
        let mut measured: Vec<Range<usize>> = Vec::new();
        for &[first, last] in &self.measured {
            let follows = measured.last().is_none_or(|before| before.end < first);
            if !follows || last < first || last >= self.summary.positions {
                return Err(format!(
                    "measured: {first} to {last} is no stretch of its own"
                ));
            }
            measured.push(first..last + 1);
        }
        let seen: usize = measured.iter().map(Range::len).sum();
        let count = seen.checked_sub(self.without_draft).ok_or_else(|| {
            format!(
                "without_draft: {} of {seen} positions that are measured",
                self.without_draft
            )
        })? as u64;
        for (sum, largest) in (self.rest.iter()).flat_map(|rest| {
            [
                (rest.target_sum, rest.target_largest),
                (rest.draft_sum, rest.draft_largest),
            ]
        }) {
            if !(0..=ExactSum::of_equal(largest, count).0).contains(&sum.0) {
                return Err(format!(
                    "rest: the sum is {:e} of {count} positions up to {largest:e}",
                    sum.value()
                ));
            }
        }
        if self.rest.len() != self.summary.metadata.rest_temperatures.len() {
            return Err("rest: is not for each of rest_temperatures".to_owned());
        }
        let counted = (self.clusters.iter())
            .try_fold(0u64, |sum, cluster| sum.checked_add(cluster.positions));
        if counted != Some(count) {
            return Err("clusters: do not have the positions that are measured".to_owned());
        }
        if self
            .surprises
            .is_some_and(|(positions, _)| positions > count)
        {
            return Err(format!("surprises: are of more than the {count} positions"));
        }
        let part = LogPart {
            by_prompt: self.by_prompt,
            has_tokens: self.has_tokens,
            measured,
            without_draft: self.without_draft,
            rest: self.rest,
            surprises: (self.surprises).map(|(positions, sums)| Surprises { positions, sums }),
            summary: self.summary,
            identity: self.identity,
            files: self.files.into_iter().collect(),
            held: self.held,
        };
        let key = Arc::new(part.key());
        // Sums are in this order.
        let last = summary.logs.last_key_value();
        if last.is_some_and(|(before, _)| *before >= key) {
            return Err("is not in its place among the logs".to_owned());
        }
        summary.logs.insert(Arc::clone(&key), part);
        for cluster in self.clusters {
            let unit = Unit {
                log: Arc::clone(&key),
                number: cluster.number,
            };
            let last = summary.places.last_key_value();
            if last.is_some_and(|(before, _)| *before >= unit) {
                return Err(format!("clusters: {} is not in its place", cluster.number));
            }
            summary.places.insert(unit, summary.clusters.len());
            summary.clusters.push(cluster);
        }
        Ok(key)
    }
}

impl TallyRecord {
    /// Reads that of an own rule, if the first rule that it names is one.
    fn of_own(&self, settings: &Settings) -> Result<Option<Metric>, String> {
        let find = |at: usize| {
            let text = self.rules.get(at)?;
            let (scheme, rule) = text.split_once('/')?;
            let mut own = settings.own_rules.iter();
            own.position(|one| one.name() == rule && one.scheme() == scheme)
                .map(Own)
        };
        let Some(own) = find(0) else { return Ok(None) };
        let about = match self.about.as_str() {
            "acceptance" => AboutOwn::Acceptance,
            "gap" => AboutOwn::Gap,
            "algorithmic" => AboutOwn::Algorithmic,
            "total-variation" => AboutOwn::TotalVariation,
            "noise" => AboutOwn::Noise,
            "difference" => AboutOwn::Less(match find(1) {
                Some(other) => Other::Own(other),
                None => match self.under(settings, 1)? {
                    Some((LawRef::Own(law), Some(rule))) => Other::Under(law, rule),
                    _ => Other::Table(self.rule(1)?),
                },
            }),
            about => return Err(format!("{about:?} is no number of an own rule")),
        };
        let place = self.place()?;
        Ok(Some(Metric::Own { place, own, about }))
    }

    /// The law and the rule of the table of one of the names, of alpha* no rule; nothing if it is
    /// no such name.
    fn under(
        &self,
        settings: &Settings,
        at: usize,
    ) -> Result<Option<(LawRef, Option<VerifierName>)>, String> {
        let Some((law, rule)) = self.rules.get(at).and_then(|text| text.split_once('/')) else {
            return Ok(None);
        };
        let own = settings.own_laws.iter().position(|one| one.name() == law);
        let law = match own {
            Some(at) => LawRef::Own(OwnLawId(at)),
            None => LawRef::Table(name(law)?),
        };
        let rule = match rule {
            "optimum" => None,
            rule => Some(name(rule)?),
        };
        Ok(Some((law, rule)))
    }

    /// Reads that of an own law, if the first rate that it names is of one.
    fn of_law(&self, settings: &Settings) -> Result<Option<Metric>, String> {
        let is_own = (self.rules.first().and_then(|text| text.split_once('/')))
            .is_some_and(|(law, _)| settings.own_laws.iter().any(|one| one.name() == law));
        if !is_own {
            return Ok(None);
        }
        let Some((LawRef::Own(law), rule)) = self.under(settings, 0)? else {
            return Ok(None);
        };
        let about = match (self.about.as_str(), rule) {
            ("optimum", None) => AboutLaw::Optimum,
            ("acceptance", Some(rule)) => AboutLaw::Acceptance(rule),
            ("gap", Some(rule)) => AboutLaw::Gap(rule),
            ("difference", rule) => match self.under(settings, 1)? {
                Some((other, theirs)) if theirs == rule => AboutLaw::Less(rule, other),
                _ => return Err("rules: are not the same rate of two laws".to_owned()),
            },
            (about, _) => return Err(format!("{about:?} is no number of an own law")),
        };
        let place = self.place()?;
        Ok(Some(Metric::OfLaw { place, law, about }))
    }

    fn place(&self) -> Result<Place, String> {
        let drafts = self.drafts.ok_or("drafts: is missing")?;
        Ok(Place::new(self.temperature, drafts))
    }

    fn rule(&self, at: usize) -> Result<Rule, String> {
        let text = self.rules.get(at).ok_or("rules: is too short")?;
        let (scheme, verifier) = text
            .split_once('/')
            .ok_or_else(|| format!("rules: {text:?} is not scheme/verifier"))?;
        Ok((name(scheme)?, name(verifier)?))
    }

    fn open(
        self,
        settings: &Settings,
        sizes: &[u64],
        positions: u64,
    ) -> Result<(Metric, Tally), String> {
        let mut metric = self.metric(settings)?;
        if let Some(draft) = self.draft {
            metric =
                (metric.redrafted(draft)).ok_or("draft: is there of a number that is no rate")?;
        }
        if self.sums.len() != sizes.len() {
            return Err(format!(
                "sums: has {} entries for {} clusters",
                self.sums.len(),
                sizes.len()
            ));
        }
        let histogram: [u64; HISTOGRAM_EDGES.len() - 1] = self
            .histogram
            .try_into()
            .map_err(|_| "histogram: has another number of bins".to_owned())?;
        let bins: Map<u16, u64> = self.bins.into_iter().collect();
        let total = |mut counts: Box<dyn Iterator<Item = &u64> + '_>| {
            counts.try_fold(0u64, |sum, &count| sum.checked_add(count))
        };
        let counted = total(Box::new(bins.values()));
        let all = match counted {
            Some(some) if metric.is_audit() => 0 < some && some <= positions,
            counted => counted == Some(positions),
        };
        if !all
            || total(Box::new(histogram.iter())) != counted
            || self.truncated > positions
            || positions == 0
        {
            return Err(format!("does not count the {positions} positions"));
        }
        if self.lowest.is_nan() || self.highest.is_nan() || self.lowest > self.highest {
            return Err(format!(
                "lowest: is {}, and highest is {}",
                self.lowest, self.highest
            ));
        }
        let tally = Tally {
            sums: self.sums,
            bins,
            histogram,
            lowest: self.lowest,
            highest: self.highest,
            widest: self.widest,
            kind: self.kind,
            truncated: self.truncated,
            lower: self.lower,
            upper: self.upper,
        };
        match tally.contradiction(sizes, counted == Some(positions)) {
            Some(why) => Err(why),
            None => Ok((metric, tally)),
        }
    }

    fn metric(&self, settings: &Settings) -> Result<Metric, String> {
        if let Some(metric) = self.of_own(settings)? {
            return Ok(metric);
        }
        if let Some(metric) = self.of_law(settings)? {
            return Ok(metric);
        }
        let temperature = self.temperature;
        Ok(match self.about.as_str() {
            "overlap" => Metric::Overlap { temperature },
            "optimum" => Metric::Optimum {
                place: self.place()?,
                scheme: name(self.scheme.as_ref().ok_or("scheme: is missing")?)?,
            },
            "formula-error" => Metric::FormulaError {
                place: self.place()?,
            },
            "difference" => Metric::Difference {
                place: self.place()?,
                first: self.rule(0)?,
                second: self.rule(1)?,
            },
            about => {
                let (place, rule) = (self.place()?, self.rule(0)?);
                let all = [
                    Metric::Acceptance { place, rule },
                    Metric::Gap { place, rule },
                    Metric::PlanError { place, rule },
                    Metric::PlanSeconds { place, rule },
                    Metric::AuditDifference { place, rule },
                    Metric::AuditOutside { place, rule },
                    Metric::PlanShortfall { place, rule },
                ];
                (all.into_iter().find(|one| one.word() == about))
                    .ok_or_else(|| format!("{about:?} is no number of this version of specgap"))?
            }
        })
    }
}
