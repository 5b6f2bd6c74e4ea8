//! What was counted, whichever tool counted it.

use serde::{Deserialize, Serialize};
use specgap_base::{names, read_by_name};
use std::cmp::Ordering;
use thiserror::Error;

/// The most drafts of a round that are read: more is a broken file.
pub const MOST_DRAFTS: usize = 1024;

/// Which file a count is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Counters of vLLM or of llama.cpp's server, as text of Prometheus.
    Prometheus,
    /// Responses of vLLM that say what each request accepted.
    VllmRequests,
    /// The result of `vllm bench serve`.
    VllmBench,
    /// A summary or the records of aiperf.
    Aiperf,
    /// The log of llama.cpp's server.
    LlamaCppLog,
    /// `acceptance.csv` of speculators' evaluation.
    Speculators,
    /// The log of vLLM's server.
    VllmLog,
    /// Responses of SGLang that say what each request accepted.
    SglangRequests,
    /// The result of SGLang's `bench_serving`.
    SglangBench,
    /// Statistics of TensorRT-LLM's iterations.
    TensorrtLlm,
    /// Responses of llama.cpp's server with timings.
    LlamaCpp,
    /// Responses of mlx-vlm with timings.
    MlxVlm,
    /// The log of omlx.
    OmlxLog,
    /// What ATOM's `/debug/mtp_stats` gives.
    Atom,
    /// The metrics of MLC.
    Mlc,
}

names! {
    Source,
    /// Says what such a file is.
    words:
    Prometheus "prometheus"
        "the text that GET /metrics of vLLM, SGLang, TensorRT-LLM, llama.cpp's server or MAX gives";
    VllmRequests "vllm-requests"
        "responses of vLLM with metrics.speculative_decoding, streamed or not";
    VllmBench "vllm-bench" "the result of vllm bench serve";
    Aiperf "aiperf" "profile_export_aiperf.json, or aiperf's records";
    LlamaCppLog "llama-cpp-log" "the log of llama.cpp's server";
    Speculators "speculators" "acceptance.csv of speculators' evaluation";
    VllmLog "vllm-log" "the log of vLLM's server";
    SglangRequests "sglang-requests" "responses of SGLang with meta_info or sglext";
    SglangBench "sglang-bench" "the result of SGLang's bench_serving";
    TensorrtLlm "tensorrt-llm" "specDecodingStats of TensorRT-LLM's iterations";
    LlamaCpp "llama-cpp" "responses of llama.cpp's server with timings, streamed or not";
    MlxVlm "mlx-vlm" "responses of mlx-vlm with timings";
    OmlxLog "omlx-log" "the log of omlx";
    Atom "atom" "what /debug/mtp_stats of ATOM gives";
    Mlc "mlc" "the metrics of MLC";
}

read_by_name!(Source, |_text, all| format!("is none of {all}"));

/// Why counts are refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CountersError {
    /// A file cannot be read as counts, or contradicts itself: the file; the field, the entry, and
    /// the cure.
    #[error("{0}: {1}")]
    File(String, String),
    /// Files do not go together.
    #[error("{0}")]
    Together(String),
}

/// One round of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Tokens that were drafted and verified.
    pub drafted: usize,
    /// How many of them were accepted.
    pub accepted: usize,
}

/// The rounds of one request, or of everything where requests are not told apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// How many rounds had drafts.
    pub rounds: f64,
    /// Tokens drafted in them, where it is counted.
    pub drafted: Option<f64>,
    /// Drafts accepted.
    pub accepted: f64,
    /// Rounds that accepted at least i drafts, i = 1, 2, ..; none where places are not counted.
    pub reached: Option<Vec<f64>>,
    /// Every round in order, where they are listed.
    pub steps: Option<Vec<Step>>,
}

impl Rounds {
    /// Counts of rounds that are not listed.
    pub(super) fn new(
        rounds: f64,
        drafted: Option<f64>,
        accepted: f64,
        reached: Option<Vec<f64>>,
    ) -> Self {
        Self {
            rounds,
            drafted,
            accepted,
            reached,
            steps: None,
        }
    }

    /// Counts rounds in order.
    #[must_use]
    pub fn of_steps(steps: Vec<Step>) -> Self {
        let most = steps.iter().map(|step| step.accepted).max().unwrap_or(0);
        let mut histogram = vec![0.0; most + 1];
        for step in &steps {
            if let Some(count) = histogram.get_mut(step.accepted) {
                *count += 1.0;
            }
        }
        let drafted = steps.iter().map(|step| step.drafted as f64).sum();
        Self {
            drafted: Some(drafted),
            steps: Some(steps),
            ..Self::of_histogram(&histogram, None)
        }
    }

    /// The counts of a histogram: of rounds that accepted exactly j drafts, j = 0, 1, ..
    #[must_use]
    pub fn of_histogram(histogram: &[f64], drafted: Option<f64>) -> Self {
        let mut reached = histogram.to_vec();
        let mut above = 0.0;
        for count in reached.iter_mut().rev() {
            above += *count;
            *count = above;
        }
        let behind = reached.split_off(reached.len().min(1));
        let rounds = reached.first().copied().unwrap_or(0.0);
        Self::new(rounds, drafted, behind.iter().sum(), Some(behind))
    }

    /// Refuses counts that contradict themselves.
    ///
    /// # Errors
    /// Names the counts and both numbers.
    pub fn check(&self) -> Result<(), String> {
        let numbers = [Some(self.rounds), self.drafted, Some(self.accepted)];
        let places = self.reached.iter().flatten().copied();
        for count in numbers.into_iter().flatten().chain(places) {
            if !(0.0..=MOST_COUNTED).contains(&count) {
                return Err(format!("{count} is no count; counts are from 0 to 2^53"));
            }
        }
        if self.rounds > 0.0 && self.rounds < 1.0 {
            return Err(format!("{} rounds are no count", self.rounds));
        }
        if let Some(drafted) = self.drafted
            && self.accepted > drafted + SLACK
        {
            return Err(format!(
                "{} drafts are accepted and only {drafted} drafted; the two are of different \
                 times or models",
                self.accepted
            ));
        }
        if let Some(drafted) = self.drafted
            && drafted > self.rounds * MOST_DRAFTS as f64
        {
            return Err(format!(
                "{drafted} tokens are drafted in {} rounds, which is above {MOST_DRAFTS} a round",
                self.rounds
            ));
        }
        let mut before = (self.rounds, "rounds are counted".to_owned());
        for (index, &count) in self.reached.iter().flatten().enumerate() {
            if count > before.0 + SLACK {
                return Err(format!(
                    "place {} is accepted {count} times, and {} {}; no later place is accepted \
                     more often",
                    index + 1,
                    before.0,
                    before.1
                ));
            }
            before = (count, format!("at place {}", index + 1));
        }
        if let Some(reached) = &self.reached {
            let places: f64 = reached.iter().sum();
            let off = (places - self.accepted).abs();
            if off > TORN * self.accepted.max(places) + reached.len() as f64 {
                return Err(format!(
                    "the places add up to {places} accepted drafts, and {} are counted; the two \
                     are of different times or models",
                    self.accepted
                ));
            }
        }
        Ok(())
    }
}

/// Counts above this are not whole in an `f64`.
const MOST_COUNTED: f64 = 9_007_199_254_740_992.0;

/// What rounding of a rate can add to a count.
const SLACK: f64 = 1e-6;

/// Counters are read one after the other while a server counts on: so far they may be apart.
const TORN: f64 = 0.01;

/// Everything that was counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Which file it is from.
    pub source: Source,
    /// K: the most drafts of a round; none where neither places nor a whole number a round tell.
    pub length: Option<usize>,
    /// Each request, or one entry for all.
    pub clusters: Vec<Rounds>,
    /// Whether entries are requests, over which intervals can be taken.
    pub by_request: bool,
    /// Whether rates are all that is known: one round then stands for all, and nothing is advised.
    pub rates_alone: bool,
    /// The group of each entry, none where it does not say; empty where none says.
    pub groups: Vec<Option<String>>,
    /// What has to be known of how these were counted: a word, and what it says.
    pub notes: Vec<(String, String)>,
}

impl Counted {
    /// Counts of a tool whose requests are not told apart; or none yet.
    pub(super) fn of(source: Source, clusters: Vec<Rounds>) -> Self {
        Self {
            source,
            length: None,
            clusters,
            by_request: false,
            rates_alone: false,
            groups: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the i-th of k parts, from 1: each k-th request, and everything else in the first.
    #[must_use]
    pub fn part(&self, index: usize, count: usize) -> Self {
        let own = |at: &usize| match self.by_request {
            true => at % count.max(1) + 1 == index,
            false => index == 1,
        };
        let numbers = || (0..self.clusters.len()).filter(own);
        let clusters = numbers().filter_map(|at| self.clusters.get(at).cloned());
        let groups = numbers().filter_map(|at| self.groups.get(at).cloned());
        Self {
            clusters: clusters.collect(),
            groups: groups.collect(),
            ..self.clone()
        }
    }

    /// Takes another part's requests.
    pub fn append(&mut self, other: Self) {
        self.clusters.extend(other.clusters);
        self.groups.extend(other.groups);
    }

    /// Adds what has to be known: a word, and what it says.
    pub(super) fn note(&mut self, name: &str, says: impl Into<String>) {
        self.notes.push((name.to_owned(), says.into()));
    }

    /// The sums of all entries.
    #[must_use]
    pub fn total(&self) -> Rounds {
        Rounds::sum(&self.clusters)
    }

    /// Tells whether there are requests to take an interval over; one alone has its rounds.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        self.by_request && self.clusters.len() > 1
    }

    /// The names of groups, in order.
    #[must_use]
    pub fn group_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.groups.iter().flatten().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The entries of a group alone, or all but these of entries that have one.
    #[must_use]
    pub(super) fn of_group(&self, name: &str, own: bool) -> Self {
        let mut some = Self {
            length: self.length,
            by_request: self.by_request,
            rates_alone: self.rates_alone,
            ..Self::of(self.source, Vec::new())
        };
        for (one, group) in self.clusters.iter().zip(&self.groups) {
            if group.as_ref().is_some_and(|group| (group == name) == own) {
                some.clusters.push(one.clone());
            }
        }
        some
    }

    /// Puts requests in an order that depends on what they count alone, so that sums over them are
    /// the same to the bit whatever the order of records and files.
    pub(super) fn sort(&mut self) {
        self.groups.resize(self.clusters.len(), None);
        let clusters = std::mem::take(&mut self.clusters);
        let groups = std::mem::take(&mut self.groups);
        let mut both: Vec<(Rounds, Option<String>)> = clusters.into_iter().zip(groups).collect();
        both.sort_by(|(one, group), (other, others)| {
            let numbers = |of: &Rounds| {
                let places = of.reached.iter().flatten().copied();
                let sums = [of.rounds, of.accepted, of.drafted.unwrap_or(-1.0)];
                let steps = of.steps.iter().flatten();
                let steps = steps.flat_map(|step| [step.drafted as f64, step.accepted as f64]);
                let all = sums.into_iter().chain(places).chain(steps);
                all.collect::<Vec<f64>>()
            };
            let (own, theirs) = (numbers(one), numbers(other));
            let pairs = own.iter().zip(&theirs).map(|(a, b)| a.total_cmp(b));
            let order = pairs.fold(Ordering::Equal, Ordering::then);
            let order = order.then(own.len().cmp(&theirs.len()));
            order.then_with(|| group.cmp(others))
        });
        (self.clusters, self.groups) = both.into_iter().unzip();
        if self.groups.iter().all(Option::is_none) {
            self.groups.clear();
        }
    }
}

impl Rounds {
    /// The sums of several.
    pub(super) fn sum(all: &[Self]) -> Self {
        let mut total = Self {
            drafted: Some(0.0),
            reached: Some(Vec::new()),
            ..Self::default()
        };
        for one in all {
            total.add(one);
        }
        total
    }

    /// Adds another's counts; what one of the two does not have, the sum has not.
    fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.accepted += other.accepted;
        self.drafted = self.drafted.zip(other.drafted).map(|(a, b)| a + b);
        self.reached = match (self.reached.take(), &other.reached) {
            (Some(mut all), Some(more)) => {
                all.resize(all.len().max(more.len()), 0.0);
                for (sum, count) in all.iter_mut().zip(more) {
                    *sum += count;
                }
                Some(all)
            }
            _ => None,
        };
        self.steps = None;
    }
}
