//! `specgap length`: how many tokens to draft, from logged text.

use super::options::{Common, Costs, Counts, DraftCuts, Drafting, Ordered};
use super::output::{CliError, Verdict};
use super::parts::Parted;
use super::printed;
use super::profile::Profiles;
use super::texts::Texts;
use crate::import::{is_tokens, open_tokens};
use crate::log::Log;
use crate::once::each_once;
use crate::replay::{Drafts, FAMILIES, Family, LengthSettings, Policy, RolloutList};
use crate::report;
use crate::rounds::ChainRule;
use crate::rule::RuleName;
use crate::sampling::Cuts;
use clap::Args;
use std::str::FromStr;

/// Arguments of `specgap length`.
#[derive(Args, Debug)]
#[command(after_long_help = printed::definitions(crate::replay::length_definitions()))]
pub struct LengthArgs {
    /// Fixed lengths that are replayed; 1-4 is 1,2,3,4.
    #[arg(long, value_name = "K,...", value_delimiter = ',', value_parser = |text: &str| Counts::up_to(text, 1024))]
    lengths: Vec<Counts>,
    /// Policies beside fixed lengths: a family with its usual numbers, or NAME=NUMBER; all
    /// families if not given.
    #[arg(long, value_name = "NAME[=X],...", value_delimiter = ',', value_parser = policies, long_help = policies_help())]
    policies: Vec<Named>,
    /// Verifiers to take, instead of the usual ones.
    ///
    /// token, block, greedy-block; these if not given. Also carried and carried-block. Rounds of
    /// carried-block and greedy-block are replayed where they are named, from the rows; carried is always
    /// among the bounds.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = verified)]
    verifiers: Vec<RuleName>,
    /// What is drafted: sampled, one-hot (the likeliest token), exact-match (sampled, and kept if
    /// the target draws the same), all that the log can tell of if not given; shared-gumbel
    /// (exact-match where draft and target draw by one noise).
    #[arg(long = "draft-kinds", alias = "drafts", value_name = "KIND,...", value_delimiter = ',', value_parser = Drafts::from_str)]
    drafts: Vec<Drafts>,
    #[command(flatten)]
    draft: DraftCuts,
    #[command(flatten)]
    ordered: Ordered,
    /// The most tokens of a round, for policies that stop by themselves [default: 16, or as
    /// many as the log's rollouts have, if these are fewer].
    #[arg(long, alias = "max", value_name = "K", value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_length: Option<u16>,
    #[command(flatten)]
    profiles: Profiles,
    #[command(flatten)]
    costs: Costs,
    #[command(flatten)]
    drafting: Drafting,
    #[command(flatten)]
    pub(super) parted: Parted,
    #[command(flatten)]
    pub(super) texts: Texts,
}

/// What `--policies` names.
#[derive(Clone, Debug)]
struct Named {
    text: String,
    policies: Vec<Policy>,
}

fn policies(text: &str) -> Result<Named, String> {
    let policies = if text.contains('=') {
        vec![text.parse()?]
    } else {
        Family::named(text)?.usual().collect()
    };
    Ok(Named {
        text: text.to_owned(),
        policies,
    })
}

/// A rule that is replayed along texts.
fn verified(text: &str) -> Result<RuleName, String> {
    match text.parse() {
        Ok(rule) if RuleName::carries(rule) => Ok(rule),
        _ => ChainRule::from_str(text)
            .map(ChainRule::rule)
            .map_err(|error| {
                let carry = RuleName::ALL.into_iter().filter(|rule| rule.carries());
                let carry: Vec<&str> = carry.map(RuleName::as_str).collect();
                format!("{error}, {}", carry.join(" or "))
            }),
    }
}

fn policies_help() -> String {
    let mut help = "Policies beside fixed lengths: a family with its usual numbers, or \
        NAME=NUMBER; all families if not given:\n"
        .to_owned();
    for family in FAMILIES {
        help.push_str(&format!("- {}: {}\n", family.name, family.rule));
    }
    help
}

impl LengthArgs {
    fn settings(&self) -> Result<LengthSettings, CliError> {
        let usual = LengthSettings::default();
        let mut policies: Vec<Policy> = if self.policies.is_empty() {
            usual.policies
        } else {
            let named = self.policies.iter();
            named.flat_map(|named| named.policies.clone()).collect()
        };
        let fixed = |policy: &Policy| policy.family.name == "fixed";
        if !self.lengths.is_empty() {
            policies.retain(|policy| !fixed(policy));
        }
        if !policies.iter().any(fixed) {
            // What everything else is measured against.
            let mut lengths: Vec<Policy> = if self.lengths.is_empty() {
                let first = FAMILIES.iter().find(|family| family.name == "fixed");
                first
                    .into_iter()
                    .flat_map(|family| family.usual())
                    .collect()
            } else {
                let lengths = Counts::all(&self.lengths);
                lengths.into_iter().map(Policy::fixed).collect()
            };
            lengths.append(&mut policies);
            policies = lengths;
        }
        let mut verifiers = usual.verifiers;
        if !self.verifiers.iter().all(|rule| rule.carries()) {
            verifiers.retain(|verifier| self.verifiers.contains(&verifier.rule()));
        }
        Ok(LengthSettings {
            policies: each_once(policies),
            verifiers,
            drafts: self.drafts.clone(),
            draft_cuts: self.draft_cuts()?,
            linked: (self.verifiers.iter().copied())
                .filter(|&rule| rule.carries() || rule == RuleName::GREEDY_BLOCK)
                .collect(),
            round_starts: self.profiles.is_asked(),
            timings: self.costs.timings()?,
            max_length: self.max_length.map(usize::from),
            temperature: self.texts.temperature,
            engine: self.drafting.engine,
            parts: self.parted.rows(),
        })
    }

    /// Returns what is kept of the draft's row.
    fn draft_cuts(&self) -> Result<Cuts, CliError> {
        let cuts = self.draft.cuts(&self.ordered);
        match cuts.check("draft-") {
            Ok(()) => Ok(cuts),
            Err(message) => Err(CliError::missing(message)),
        }
    }

    /// The command that makes the report.
    fn command(&self) -> String {
        let mut command = self.texts.recorded("length");
        command
            .list("lengths", Counts::all(&self.lengths))
            .list("policies", self.policies.iter().map(|named| &named.text))
            .list("verifiers", &self.verifiers)
            .list("draft-kinds", &self.drafts)
            .option("draft-top-k", self.draft.draft_top_k)
            .number("draft-top-p", self.draft.draft_top_p)
            .number("draft-min-p", self.draft.draft_min_p)
            .option("cut-order", self.ordered.cut_order)
            .option("max-length", self.max_length)
            .list("profile", &self.profiles.profile);
        self.costs.record(&mut command);
        self.drafting.record(&mut command);
        self.texts.record(&mut command);
        command.into_line()
    }
}

pub(super) fn run(args: &LengthArgs, common: &Common) -> Result<Verdict, CliError> {
    let mut settings = args.settings()?;
    args.profiles.check(&args.texts.folder, common)?;
    args.texts.report(
        (args.costs.file().as_slice(), &args.parted),
        common,
        |path| match is_tokens(path) {
            true => Ok(open_tokens(path, args.texts.temperature)?),
            false => args.texts.open(path, common),
        },
        |logs, bar| {
            if args.policies.is_empty() {
                // Those that most logs cannot tell of.
                let has = |family: &&Family| match family.list {
                    Some(RolloutList::HeadAcceptance) => logs.iter().all(Log::has_head_acceptance),
                    Some(RolloutList::HeadOverlap) => logs.iter().all(Log::has_head_overlap),
                    _ => false,
                };
                let heads = FAMILIES.iter().filter(has);
                settings.policies.extend(heads.flat_map(Family::usual));
            }
            let command = args.command();
            let found =
                crate::replay::measure_lengths(logs, &settings, &command, &|done| bar.inc(done));
            args.parted.ended(found, &settings.parts, &command, common)
        },
        report::length::page,
        |report| args.profiles.of_lengths(report),
    )
}
