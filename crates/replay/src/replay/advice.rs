//! What reports on replayed text advise: changes from what a decoder does now.

use super::measured::MeasuredTexts;
use super::{AtCost, AtDrafts, Chosen, ChosenPolicy, DecidedOn, Drafts, FAMILIES, Family};
use super::{LengthReport, TreeReport};
use specgap_core::rule::RuleName;
use specgap_core::scheme::engines_with;
use specgap_measure::Surprise;
use specgap_statistics::Estimate;
use specgap_statistics::advice::{Basis, Change, Needs, Unit, Verdict, settings_of};

/// Costs of a draft step that advice is given at where none was given.
const COSTS: [f64; 3] = [0.02, 0.1, 0.3];

/// Returns whether the text or the draft is not that of the rows, or not all of it is there.
pub(super) fn is_void(of: &MeasuredTexts, surprise: &Surprise) -> bool {
    let mut logs = of.logs.iter();
    of.is_off(surprise) || logs.any(|log| log.metadata.unfinished().is_some())
}

/// The costs that a report on lengths speaks of: the given one, or .02, .1 and .3.
#[must_use]
pub fn costs_shown(report: &LengthReport) -> Vec<&AtCost> {
    match &report.at_cost {
        Some(at) => vec![at],
        None => COSTS
            .iter()
            .filter_map(|&ratio| report.by_cost.iter().find(|at| at.cost_ratio == ratio))
            .collect(),
    }
}

impl AtCost {
    /// The best length of some drafts and a verifier.
    #[must_use]
    pub fn found(&self, drafts: Drafts, verifier: &str) -> Option<&Chosen> {
        let mut all = self.chosen.iter();
        all.find(|one| one.drafts == drafts && one.verifier == verifier)
    }

    /// Returns how much quicker one chosen length is than another, on the same prompts.
    #[must_use]
    pub fn more(&self, one: &Chosen, other: &Chosen) -> Option<Estimate> {
        let is = |drafts: Drafts, verifier: &str, of: &Chosen| {
            drafts == of.drafts && verifier == of.verifier
        };
        self.paired.iter().find_map(|pair| {
            let first = |of: &Chosen| is(pair.drafts, &pair.verifier, of);
            let second = |of: &Chosen| is(pair.over_drafts, &pair.over_verifier, of);
            if first(one) && second(other) {
                Some(pair.speedup)
            } else if first(other) && second(one) {
                Some(pair.speedup.negated())
            } else {
                None
            }
        })
    }

    /// The best of what needs nothing new: the first, unless another one is told apart from it and
    /// worth the change.
    #[must_use]
    pub fn first(&self) -> Option<&Chosen> {
        let mut all = self.chosen.iter();
        let first = all.next()?;
        Some(all.fold(first, |best, one| {
            let floor = Unit::Speed.floor(best.speedup.mean);
            let more = self.more(one, best);
            match more.is_some_and(|more| Verdict::of(&more, floor) == Verdict::Worth) {
                true => one,
                false => best,
            }
        }))
    }

    /// The policy that is quickest where it was chosen, of those that a decoder can run, as they do
    /// not look at the target: with a trained head, or without.
    #[must_use]
    pub fn policy(&self, fixed: &Chosen, head: bool) -> Option<&ChosenPolicy> {
        let seen = [DecidedOn::BothRows, DecidedOn::TrueAcceptance];
        let fits =
            |family: &Family| !seen.contains(&family.decided_on) && family.needs_head() == head;
        let known = |name: &str| FAMILIES.iter().find(|family| family.name == name);
        (self.policies.iter())
            .filter(|one| known(&one.policy).is_some_and(fits))
            .filter(|one| fixed.drafts == Drafts::Sampled && one.verifier == fixed.verifier)
            .reduce(
                |best, one| match best.speedup_where_chosen >= one.speedup_where_chosen {
                    true => best,
                    false => one,
                },
            )
    }
}

/// The engines whose one draft is of some kind unless they are told otherwise.
fn engines_of(drafts: Drafts) -> Vec<String> {
    let [by_default, _] = engines_with(|here| match drafts {
        Drafts::Sampled => here.verifier == "token",
        Drafts::OneHot => here.one && here.verifier == "exact-match" && here.law == "top",
        Drafts::ExactMatch => here.one && here.verifier == "exact-match" && here.law != "top",
        // No engine does so unless told otherwise.
        Drafts::SharedGumbel => false,
    });
    by_default.into_iter().map(str::to_owned).collect()
}

/// `drafts/verifier, K`.
fn name(one: &Chosen) -> String {
    format!("{}/{}, {}", one.drafts, one.verifier, one.parameter)
}

/// Returns what lengths, drafts and policies could be changed to, at each cost that is spoken of.
/// All were chosen on half of the prompts, and are measured on the others.
#[must_use]
pub fn length_changes(report: &LengthReport) -> Vec<Change> {
    if is_void(&report.of, &report.surprise) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for at in costs_shown(report) {
        let change = |from: &Chosen, to: String, needs: Needs, difference: Estimate| {
            let engines = engines_of(from.drafts);
            Change {
                temperature: Some(report.of.temperature),
                drafts: None,
                cost_ratio: Some(at.cost_ratio),
                from: name(from),
                to,
                settings: match needs {
                    Needs::Setting => settings_of(&engines),
                    _ => Vec::new(),
                },
                engines,
                needs,
                unit: Unit::Speed,
                now: from.speedup,
                difference,
                basis: Basis::OtherPrompts,
                verdict: Verdict::of(&difference, Unit::Speed.floor(from.speedup.mean)),
            }
        };
        let token = at.found(Drafts::Sampled, "token");
        for kind in [Drafts::OneHot, Drafts::ExactMatch] {
            if let (Some(now), Some(then)) = (at.found(kind, "token"), token)
                && let Some(more) = at.more(then, now)
            {
                all.push(change(now, name(then), Needs::Setting, more));
            }
        }
        if let (Some(now), Some(then)) = (token, at.found(Drafts::Sampled, "block"))
            && let Some(more) = at.more(then, now)
        {
            all.push(change(now, name(then), Needs::Rule, more));
        }
        // Without rollouts there is none but the schedule.
        let policies = report.rollouts.is_some();
        if let Some(fixed) = at.first().filter(|_| policies) {
            for (head, needs) in [(false, Needs::Rule), (true, Needs::Head)] {
                if let Some(one) = at.policy(fixed, head) {
                    let to = format!("{}/{}, {}", one.policy, one.verifier, one.parameter);
                    all.push(change(fixed, to, needs, one.over_fixed));
                }
            }
        }
    }
    all
}

/// From the best tree that engines have to the one that was grown, on prompts that chose neither.
#[must_use]
pub fn tree_changes(report: &TreeReport) -> Vec<Change> {
    let both = report.reference.as_ref().zip(report.best.first());
    let Some((reference, best)) = both.filter(|_| !is_void(&report.of, &report.surprise)) else {
        return Vec::new();
    };
    let more = &reference.best_minus_this;
    let (unit, now, difference) = match (reference.speedup, more.speedup) {
        (Some(now), Some(more)) => (Unit::Speed, now, more),
        _ => (
            Unit::TokensPerCall,
            reference.tokens_per_call,
            more.tokens_per_call,
        ),
    };
    let depth = best.paths.iter().map(Vec::len).max().unwrap_or(0);
    vec![Change {
        temperature: Some(report.of.temperature),
        drafts: None,
        cost_ratio: report.timings.as_ref().map(super::Timings::draft_cost),
        from: format!(
            "{}, {}/{}",
            reference.tree, reference.scheme, reference.verifier
        ),
        to: format!(
            "{} tokens, depth {depth}, {}/{}",
            best.paths.len(),
            best.scheme,
            best.verifier
        ),
        engines: (report.engine.iter())
            .map(|one| one.engine.clone())
            .collect(),
        settings: Vec::new(),
        needs: Needs::Tree,
        unit,
        now,
        difference,
        basis: Basis::OtherPrompts,
        verdict: Verdict::of(&difference, unit.floor(now.mean)),
    }]
}

/// What changes nothing later: of one path in wide use, of one as a block, and of several.
pub(super) const PATHS: [RuleName; 3] = [RuleName::TOKEN, RuleName::BLOCK, RuleName::SELECT_BLOCK];

/// From one path, token by token and as a block, to several as a block, by the paired difference of
/// tokens per call: `more` of the last of [`PATHS`] than of the two others.
pub(super) fn paths_changes(at: &AtDrafts, more: [Option<Estimate>; 2]) -> Vec<Change> {
    let calls = |rule: RuleName| {
        let mut verifiers = at.verifiers.iter();
        verifiers
            .find(|one| one.verifier == rule.as_str())?
            .tokens_per_call
    };
    let [token, block, several] = PATHS;
    let each = [token, block].into_iter().zip(more);
    let changes = each.filter_map(|(from, more)| {
        let (now, difference) = (calls(from)?, more?);
        Some(Change {
            temperature: None,
            drafts: Some(at.drafts),
            cost_ratio: None,
            from: format!("1 path, {from}"),
            to: format!("{} paths, {several}", at.drafts),
            engines: Vec::new(),
            settings: Vec::new(),
            needs: Needs::Tree,
            unit: Unit::TokensPerCall,
            now,
            difference,
            basis: Basis::Paired,
            verdict: Verdict::of(&difference, Unit::TokensPerCall.floor(now.mean)),
        })
    });
    match at.drafts > 1 {
        true => changes.collect(),
        false => Vec::new(),
    }
}
