//! What logs cannot tell of draft lengths, and the cure.

use super::super::ReplayError;
use super::super::measured::capture_with;
use super::super::rollouts::RolloutList;
use super::super::timings::Timings;
use super::drafts::Drafts;
use super::measure::Measurement;
use super::outcome::{Known, Played};
use super::policy::Policy;
use specgap_core::rounds::ChainRule;
use specgap_log::log::Log;
use std::collections::BTreeSet;

/// Whether a log has something.
type AsksLog = fn(&Log) -> bool;

impl Measurement<'_> {
    /// Refuses policies of heads of which a log says nothing.
    pub(super) fn refuse_missing_heads(&self, logs: &[Log]) -> Result<(), ReplayError> {
        for policy in &self.settings.policies {
            let family = policy.family;
            let [lacks_acceptance, lacks_overlap] = self.texts.seen.lacks_head;
            let (tensor, has, lacks): (&str, AsksLog, bool) = match family.list {
                Some(RolloutList::HeadAcceptance) => (
                    "head_acceptance",
                    Log::has_head_acceptance,
                    lacks_acceptance,
                ),
                Some(RolloutList::HeadOverlap) => {
                    ("head_overlap", Log::has_head_overlap, lacks_overlap)
                }
                _ => continue,
            };
            let refused = |log: &Log, what: &str| {
                Err(ReplayError::of_log(
                    log,
                    format!(
                        "{what} of the tensor {tensor}, which {} decides on: capture with a draft \
                         whose graph has this head, or leave {} out of ⟨policies⟩ (docs/reference/log-format.md, \
                         Heads)",
                        family.name, family.name
                    ),
                ))
            };
            if let Some(log) = logs.iter().find(|log| !has(log)) {
                return refused(log, "has nothing");
            }
            if let (Some(log), true) = (logs.first(), lacks) {
                return refused(log, "has -1 at some token before a text's last");
            }
        }
        Ok(())
    }

    /// Refuses kinds of drafts that are asked for and that the log does not tell of.
    pub(super) fn refuse_drafts(&self, logs: &[Log]) -> Result<(), ReplayError> {
        let mut asked = self.settings.drafts.iter();
        let lacking = asked.find_map(|&drafts| self.cannot_tell(drafts));
        let nothing = || self.ways().is_empty() || self.policies.is_empty();
        let lacking = lacking.or_else(|| {
            let what = match self.texts.lacking() {
                0 => "lists of tokens that leave acceptance wide open",
                _ => "positions without a row of the draft (draft_row is 0)",
            };
            (self.is_wide && nothing()).then(|| {
                format!(
                    "has {what}, where token verification of fixed lengths is bounded and nothing \
                     else: ask for these, or score the texts that came out with both models \
                     (docs/guide/engines.md)"
                )
            })
        });
        match (lacking, logs.first()) {
            (Some(message), Some(log)) => Err(ReplayError::of_log(log, message)),
            _ => Ok(()),
        }
    }

    /// Returns why rules that carry rows are not replayed although they were asked for.
    fn lacks_whole_rows(&self) -> impl Iterator<Item = String> {
        let settings = self.settings;
        let is_told = !self.texts.is_by_depth();
        let lacking = (settings.linked.iter())
            .filter(move |&&rule| is_told && !self.linked.iter().any(|one| one.rule == rule));
        lacking.map(|rule| {
            format!(
                "{rule}: rows of this log list some tokens only, and what the rule gives out of a \
                 row needs them all; capture without ⟨top⟩"
            )
        })
    }

    /// Returns why nothing can be said of a kind of drafts, and the cure.
    pub(super) fn cannot_tell(&self, drafts: Drafts) -> Option<String> {
        let unknown = self.texts.seen.without_hit;
        (drafts == Drafts::OneHot && unknown > 0).then(|| {
            format!(
                "one-hot drafts: of {unknown} of {} tokens it is not known whether they are the \
                 draft's likeliest; log the draft's most probable token beside the text's own, \
                 or a column hit (docs/reference/log-format.md)",
                self.texts.seen.met
            )
        })
    }

    /// The command that logs what all policies' drafts need.
    pub(super) fn needs(&self, logs: &[Log], played: &[Played]) -> Option<String> {
        let lacking = || played.iter().filter(|one| !one.known.is_whole());
        // Rollouts are of whole rows.
        lacking()
            .next()
            .filter(|_| self.settings.draft_cuts.keep_all() && self.texts.served.keep_all())?;
        let target = lacking().any(|one| on_both(one.policy.family.list));
        let more = if target { " --rollout-target" } else { "" };
        let options = format!("--rollouts {} --every 4{more}", self.max_length);
        Some(capture_with(logs, &options))
    }

    pub(super) fn left_out(&self, logs: &[Log], played: &[Played]) -> Vec<String> {
        let mut lines = Vec::new();
        let why = match self.texts.lacking() {
            0 => "the lists leave acceptance more open than the sample does; log full rows, or longer \
                  lists"
                .to_owned(),
            lacking => format!(
                "at {lacking} of {} positions the log has no row of the draft",
                self.texts.positions()
            ),
        };
        if self.is_wide {
            lines.push(format!(
                "target calls of block verification, policies other than fixed lengths, and the best \
                 length at a cost: {why}"
            ));
        } else if self.are_open {
            lines.push(
                "bounds of what full rows would give, for target calls with block verification and for \
                 policies other than fixed lengths: they do not rise or fall with what rows do not \
                 list. Log full rows"
                    .to_owned(),
            );
        }
        lines.extend(self.behind_rejections(logs, played));
        lines.extend(self.by_depth());
        lines.extend(self.not_in_logs(logs));
        lines.extend(self.not_asked());
        lines.extend(self.lacks_whole_rows());
        if !self.texts.groups.is_empty() && self.is_wide {
            lines.push(format!("numbers by group: {why}"));
        }
        lines
    }

    /// Returns what is drafted behind rejected tokens, as far as rollouts do not tell it.
    fn behind_rejections(&self, logs: &[Log], played: &[Played]) -> Vec<String> {
        let mut lines = Vec::new();
        let names = |known: Known, wants: &dyn Fn(Option<RolloutList>) -> bool| {
            let those = played.iter().filter(|one| one.known == known);
            let mut names: Vec<&str> = Vec::new();
            for one in those.filter(|one| wants(one.policy.family.list)) {
                if !names.contains(&one.policy.family.name) {
                    names.push(one.policy.family.name);
                }
            }
            (!names.is_empty()).then(|| names.join(", "))
        };
        let cut = match self.settings.draft_cuts.keep_all() {
            false => {
                let options = self.settings.draft_cuts.options();
                Some(options.trim_start().replace("--", "--draft-"))
            }
            true => (!self.texts.served.keep_all())
                .then(|| self.texts.served.in_words(&[self.texts.temperature])),
        };
        if let Some(cut) = cut {
            lines.extend(names(Known::AtLeast, &|_| true).map(|names| {
                format!(
                    "draft tokens, discards and speed of {names}, but for bounds, and what several \
                     draft paths could give: rollouts are drawn from the draft's whole row, and here \
                     it is cut ({cut})"
                )
            }));
        } else if self.texts.rollouts.is_empty() {
            let lacking = logs.iter().find(|log| !log.has_rollouts());
            let lacking = lacking.filter(|_| logs.iter().any(Log::has_rollouts));
            let which = lacking.map_or_else(
                || "this log".to_owned(),
                |log| format!("all logs: {} has none", log.path().display()),
            );
            for (wants, more) in [(false, ""), (true, " --rollout-target")] {
                if let Some(names) = names(Known::AtLeast, &|list| on_both(list) == wants) {
                    lines.push(format!(
                        "draft tokens, discards and speed of {names}: they need rollouts, what the \
                         draft writes by itself, which are not in {which}; log them with {}. Target \
                         calls follow from the text alone, and the part of the drafts that it shows \
                         bounds the rest",
                        capture_with(logs, &format!("--rollouts {} --every 4{more}", self.max_length))
                    ));
                }
            }
        } else {
            let lists: BTreeSet<&str> = (played.iter())
                .filter(|one| one.known == Known::AtLeast)
                .filter_map(|one| Some(one.policy.family.list?.tensor()))
                .collect();
            for tensor in lists {
                let wants =
                    |list: Option<RolloutList>| list.map(RolloutList::tensor) == Some(tensor);
                if let Some(names) = names(Known::AtLeast, &wants) {
                    let cure = match tensor {
                        "rollout_target_p" | "rollout_overlap" => capture_with(
                            logs,
                            &format!("--rollouts {} --every 4 --rollout-target", self.max_length),
                        ),
                        _ => format!("rollouts with {tensor}"),
                    };
                    lines.push(format!(
                        "draft tokens, discards and speed of {names}: its rollouts have no {tensor}; \
                         log them with {cure}"
                    ));
                }
            }
            if let Some(names) = names(Known::Between, &|_| true) {
                let tokens = self.texts.rollout_tokens().unwrap_or(0);
                lines.push(format!(
                    "drafts and speed of {names}, but for bounds: rollouts of {tokens} tokens end \
                     before these policies do, which may draft {}; ask for ⟨max-length {tokens}⟩, or \
                     log longer ones with {}",
                    self.max_length,
                    capture_with(logs, &format!("--rollouts {} --every 4", self.max_length))
                ));
            }
        }
        lines
    }

    /// Returns what a draft whose rows depend on where a round begins leaves open.
    fn by_depth(&self) -> Vec<String> {
        if !self.texts.is_by_depth() {
            return Vec::new();
        }
        let most = self.texts.depths();
        let mut lines = vec![
            "the fewest calls of any lossless rule, and the rules that carry, with more than one draft \
             a round: they are known where the draft's rows depend on the text alone; here they depend \
             on where a round began, and it can pay to accept less (docs/theory/several-rounds.md)"
                .to_owned(),
        ];
        let fixed =
            |policy: &&Policy| policy.family.name == "fixed" && !self.texts.reach(policy.parameter);
        let longer: Vec<String> = (self.settings.policies.iter().filter(fixed))
            .map(|policy| policy.parameter.to_string())
            .collect();
        if !longer.is_empty() {
            lines.push(format!(
                "lengths {}: the log has rows of the draft at {most} depths",
                longer.join(", ")
            ));
        }
        lines
    }

    /// Returns what rows and heads of these logs do not tell.
    fn not_in_logs(&self, logs: &[Log]) -> Vec<String> {
        let mut lines = Vec::new();
        if self.settings.drafts.is_empty() {
            lines.extend(self.cannot_tell(Drafts::OneHot));
        }
        let mut untold: Vec<&str> = Vec::new();
        for policy in &self.settings.policies {
            let name = policy.family.name;
            if !self.texts.rows_tell(policy.family.list) && !untold.contains(&name) {
                untold.push(name);
            }
        }
        if !untold.is_empty() {
            lines.push(format!(
                "{}: they are decided on the draft's row, and the log lists the text's own tokens \
                 alone; log rows, or the column max_q for p-min and overlap for overlap",
                untold.join(", ")
            ));
        }
        lines.push(
            "adaedl with a threshold that follows past acceptance: its calls depend on the drafts \
             that earlier rounds rejected, so that rollouts would have to follow one another as \
             rounds do"
                .to_owned(),
        );
        if !logs
            .iter()
            .all(|log| log.has_head_acceptance() || log.has_head_overlap())
        {
            lines.push(
                "specdec, specdec-late and overlap-head: they need what a head on the draft \
                 predicts, at the text's tokens and on rollouts (head_acceptance and \
                 rollout_acceptance, head_overlap and rollout_head_overlap)"
                    .to_owned(),
            );
        }
        lines
    }

    /// Returns what these settings leave open.
    fn not_asked(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let greedy = ChainRule::GREEDY_BLOCK;
        if self.settings.verifiers.contains(&greedy)
            && !self.settings.linked.contains(&greedy.rule())
        {
            lines.push(
                "calls of greedy-block: a round changes the target of the next; name it in \
                 ⟨verifiers⟩ to have its rounds replayed, which takes long; its number is one \
                 round's"
                    .to_owned(),
            );
        }
        let timings = self.settings.timings.as_ref();
        if timings.is_none() {
            lines.push(
                "speed at your cost: give ⟨cost-ratio⟩ (a draft step's time over a target step's) \
                 or ⟨timings⟩"
                    .to_owned(),
            );
        }
        if let Some(most) = timings.and_then(Timings::most_drafts) {
            let longer: Vec<String> = (self.lengths().into_iter())
                .filter(|&length| length > most)
                .map(|length| length.to_string())
                .collect();
            if !longer.is_empty() {
                lines.push(format!(
                    "speed of lengths {}: the timings have no verifying pass of more than {} \
                     tokens",
                    longer.join(", "),
                    most + 1
                ));
            }
        }
        lines
    }
}

/// Returns whether a list needs the target on rollouts.
fn on_both(list: Option<RolloutList>) -> bool {
    matches!(list, Some(RolloutList::Overlap | RolloutList::TargetP))
}
