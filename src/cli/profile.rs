//! Acceptance as the files that other tools read, beside a report.

use super::options::{Common, Folder};
use super::output::CliError;
use crate::counters::CountersReport;
use crate::curve::{Curve, exactly};
use crate::page::paper::Files;
use crate::profile::{Format, Profile, ProfileError, Source};
use crate::replay::{Drafts, LengthReport, RoundStarts};
use crate::statistics::Estimate;
use clap::Args;
use std::str::FromStr;

/// Which profiles are asked for.
#[derive(Args, Debug)]
pub(super) struct Profiles {
    /// Write acceptance by draft length as other tools read it, into --out: vllm, sglang,
    /// tensorrt-llm, llama.cpp, model-optimizer, inferencex, card (docs/reference/profiles.md).
    #[arg(long, value_name = "FORMAT,...", value_delimiter = ',', value_parser = Format::from_str)]
    pub(super) profile: Vec<Format>,
}

impl Profiles {
    pub(super) fn is_asked(&self) -> bool {
        !self.profile.is_empty()
    }

    /// Files need a folder; a program that runs the command inside itself takes them as they are.
    pub(super) fn check(&self, folder: &Folder, common: &Common) -> Result<(), CliError> {
        if self.is_asked() && folder.out.is_none() && common.host.is_none() {
            return Err(CliError::missing(
                "⟨profile⟩ writes files; say where with ⟨out DIR⟩",
            ));
        }
        Ok(())
    }

    /// The files of profiles, each below a folder if it has a name.
    pub(super) fn files(&self, below: Option<&str>, profile: &Profile) -> Result<Files, CliError> {
        let mut files = Files::new();
        for (place, format) in self.profile.iter().enumerate() {
            if self.profile[..place].contains(format) {
                continue;
            }
            let made = profile.files(*format).map_err(internal)?;
            files.extend(made.into_iter().map(|(name, bytes)| match below {
                Some(folder) => (format!("{folder}/{name}"), bytes),
                None => (name, bytes),
            }));
        }
        Ok(files)
    }

    /// Those of a log: a folder for each kind of drafts and verifier.
    ///
    /// Refused are texts that were not drawn from their rows, logs without rows of the draft
    /// somewhere, and verifiers whose rounds are not replayed.
    pub(super) fn of_lengths(&self, report: &LengthReport) -> Result<Files, CliError> {
        let mut files = Files::new();
        if !self.is_asked() {
            return Ok(files);
        }
        let log = (report.of.logs.first()).map_or("log", |log| log.name.as_str());
        let refused = |message: String| CliError::input(log, format!("⟨profile⟩: {message}"));
        if let Some(z) = report.surprise.not_drawn() {
            return Err(refused(format!(
                "the text was not drawn from these rows (its surprise is {:.1} standard errors off), \
                 so that no file is written that others would take for acceptance; specgap length \
                 without --profile says more",
                z.abs()
            )));
        }
        if report.of.is_off(&report.surprise) {
            return Err(refused(
                "the draft's rows are about other positions, so that no file is written that others \
                 would take for acceptance; specgap length without --profile says more"
                    .to_owned(),
            ));
        }
        if report.of.without_draft > 0 {
            return Err(refused(format!(
                "{} positions have no row of the draft, so that rounds there are not known; log the \
                 draft at every position",
                report.of.without_draft
            )));
        }
        if report.round_starts.is_empty() {
            return Err(refused(
                "no fixed length has a round here: of greedy-block, carried and carried-block no \
                 profile is made (name token or block with ⟨verifiers⟩), and a text needs as many \
                 tokens as the length (⟨lengths⟩)"
                    .to_owned(),
            ));
        }
        for one in &report.round_starts {
            let source = source(report, one);
            let groups = report.by_group.iter().flat_map(|all| &all.groups);
            let groups = groups.filter_map(|group| {
                let own = group
                    .round_starts
                    .iter()
                    .find(|own| own.name() == one.name())?;
                Some((group.group.clone()?, own.curves.clone()))
            });
            let profile = Profile::new(one.curves.clone(), source)
                .and_then(|profile| profile.with_groups(groups))
                .map_err(internal)?;
            files.extend(self.files(Some(&one.name()), &profile)?);
        }
        Ok(files)
    }

    /// Those of what a server counted, at its own length and at shorter ones.
    ///
    /// Refused are counts that do not tell places apart.
    pub(super) fn of_counters(&self, report: &CountersReport) -> Result<Files, CliError> {
        if !self.is_asked() {
            return Ok(Files::new());
        }
        let Some(whole) = &report.curve else {
            return Err(CliError::missing(
                "⟨profile⟩: these counts do not tell how many rounds accept at least i \
                 drafts; take a file that counts by position (\
                 spec_decode_num_accepted_tokens_per_pos) or lists rounds",
            ));
        };
        let all = |whole: &Curve| -> Vec<Curve> {
            let shorter = (1..whole.length).filter_map(|length| prefix(whole, length));
            shorter.chain([whole.clone()]).collect()
        };
        let groups = report.groups.iter();
        let groups = groups.filter_map(|one| Some((one.group.clone(), all(one.curve.as_ref()?))));
        let source = Source {
            prompts: report.served.requests.map(|requests| requests as u64),
            kind: format!(
                "counts of a server ({}) at K = {}, whatever it drafts, verifies and samples with; \
                 shorter lengths are its first places, where rounds of K start: an approximation. \
                 Intervals are over requests, and over rounds where these are not told apart",
                report.source, whole.length
            ),
            command: report.command.clone(),
            tool: crate::log::tool(),
            ..Source::default()
        };
        let profile = Profile::new(all(whole), source)
            .and_then(|profile| profile.with_groups(groups))
            .map_err(internal)?;
        self.files(None, &profile)
    }
}

/// The first places of longer rounds, as if they were rounds of their own.
fn prefix(whole: &Curve, length: usize) -> Option<Curve> {
    let marginal = whole.marginal.get(..length)?.to_vec();
    let all = |of: fn(&Estimate) -> f64| 1.0 + marginal.iter().map(of).sum::<f64>();
    let mean = all(|share| share.mean);
    // Shares of the same rounds rise and fall together: no narrower than this.
    let half = all(|share| (share.ci95[1] - share.ci95[0]) / 2.0) - 1.0;
    Some(Curve {
        length,
        acceptance_length: Estimate::plus_minus(mean, half),
        histogram: Some(exactly(&marginal)),
        rounds: whole.rounds,
        marginal,
    })
}

fn internal(error: ProfileError) -> CliError {
    CliError::internal(error.to_string())
}

fn source(report: &LengthReport, of: &RoundStarts) -> Source {
    let logs = || report.of.logs.iter();
    let named = |names: Vec<Option<&str>>| {
        // Of several logs with other models none is named.
        let first = names.first().copied().flatten()?;
        let same = names.iter().all(|name| *name == Some(first));
        same.then(|| first.to_owned())
    };
    let target = logs().map(|log| log.metadata.target.as_ref().map(|one| one.name.as_str()));
    let draft = logs().map(|log| log.metadata.draft.as_ref().map(|one| one.name.as_str()));
    let mut all = of.curves.iter().flat_map(|curve| &curve.marginal);
    let between = match all.any(|share| share.open().is_some()) {
        true => {
            "; some shares are known between bounds only, as rows do not list all tokens of the text: \
             one number between them stands for each (card has the bounds)"
        }
        false => "",
    };
    let law = match of.drafts {
        Drafts::Sampled if report.draft_cuts.is_none() => {
            "drafts drawn from the draft's rows as logged"
        }
        Drafts::Sampled => "drafts drawn from the draft's cut rows",
        Drafts::OneHot => "drafts of the draft's likeliest token",
        Drafts::ExactMatch => "sampled drafts, kept if the target draws the same token",
        Drafts::SharedGumbel => "drafts of the target's noise, kept if both have the same token",
    };
    let cut = report.draft_cuts.map_or_else(String::new, |cuts| {
        format!(" ({})", cuts.in_words(&[report.of.temperature]))
    });
    Source {
        target: named(target.collect()),
        draft: named(draft.collect()),
        drafts: Some(of.drafts.to_string()),
        verifier: Some(of.verifier.clone()),
        temperature: Some(report.of.temperature),
        prompts: Some(report.of.clusters as u64),
        positions: Some(report.of.positions as u64),
        kind: format!(
            "estimates over round starts of a replay along logged text of the target's law, exact \
             given the text, intervals over prompts; {law}{cut}{between}"
        ),
        command: report.of.command.clone(),
        tool: report.of.tool.clone(),
    }
}
