//! The bugs that are looked for, each with the engine that has it.

use crate::audit::model::engine::{Carries, Change, Corrects, Engine, Keeps, engine};
use crate::audit::model::rule::Rule;
use specgap_core::rule::Drafts;
use specgap_core::scheme::SchemeName;

/// A way in which engines were seen to differ from what they claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bug {
    /// Its name in reports.
    pub name: &'static str,
    /// What the engine does.
    pub words: &'static str,
    /// What to look at.
    pub cure: &'static str,
    pub engine: Engine,
    /// Rules it is a bug of.
    pub of: Of,
}

/// Its name is its own.
impl PartialEq for Bug {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Rules that a bug is of.
type Of = fn(Rule) -> bool;

const DRAFTED: Of = |rule| rule != Rule::TEXT;
const SAMPLED: Of = |rule| matches!(rule.drafts(), Drafts::Drawn(_));
const CHAIN_SAMPLED: Of = |rule| rule.has_chains() && rule.tests_drafts();
const STRADDLING_ONCE: Of = |rule| rule.drafts() == Drafts::Drawn(SchemeName::STRATIFIED);
const INDEPENDENT_STRATA: Of =
    |rule| rule.drafts() == Drafts::Drawn(SchemeName::STRATIFIED_INDEPENDENT);
const STRATIFIED: Of = |rule| STRADDLING_ONCE(rule) || INDEPENDENT_STRATA(rule);
const SIBLINGS: Of = |rule| rule.needs_siblings() && !STRATIFIED(rule);
const INDEPENDENT: Of = |rule| SIBLINGS(rule) && !rule.drafts().are_distinct();
const DISTINCT: Of = |rule| SIBLINGS(rule) && rule.drafts().are_distinct();

/// Name, rules and engine of each; what the engine does, and what to look at.
macro_rules! bugs {
    ($($name:literal of $of:expr; $($field:ident: $value:expr),+, $words:literal, $cure:literal;)+) => {
        /// All of them.
        pub(crate) static BUGS: &[Bug] = &[$(Bug {
            name: $name,
            words: $words,
            cure: $cure,
            engine: engine!($($field: $value),+),
            of: $of,
        }),+];
    };
}

bugs! {
    "argmax-drafts" of SAMPLED; likeliest: true, draft: Change::Argmax,
        "drafts are the likeliest token of q, and are tested as if drawn from q",
        "sample the drafts, or test them as one-hot (keep with p(x))";
    "top-50-drafts" of SAMPLED; draft: Change::Top(50),
        "drafts are drawn from q cut to its 50 likeliest tokens, and tested with all of q",
        "test with the cut and renormalised q, or draw from all of q";
    "top-10-drafts" of SAMPLED; draft: Change::Top(10),
        "drafts are drawn from q cut to its 10 likeliest tokens, and tested with all of q",
        "test with the cut and renormalised q, or draw from all of q";
    "nucleus-drafts" of SAMPLED; draft: Change::TopP(0.9),
        "drafts are drawn from the fewest likeliest tokens that hold 0.9 of q, and tested \
        with all of q",
        "test with the cut and renormalised q, or draw from all of q";
    "ensemble" of DRAFTED; target: Change::Mixed(0.5),
        "the target is mixed with the draft: v = w p + (1 - w) q is verified, and not p",
        "set the weight of the draft to 0 (transformers: assistant_ensemble_weight)";
    "sharper-drafts" of SAMPLED; draft: Change::Temperature(0.7),
        "drafts are drawn at 0.7 of the temperature of the q that they are tested with",
        "use one temperature for the draft's draw and for the q of the ratio";
    "flatter-drafts" of SAMPLED; draft: Change::Temperature(1.4),
        "drafts are drawn at 1.4 times the temperature of the q that they are tested with",
        "use one temperature for the draft's draw and for the q of the ratio";
    "prune-after-draw" of SAMPLED; drops: Some(0.1),
        "drafts are drawn, and dropped if q(x) < 0.1; the target is asked instead",
        "stop behind the token instead, or test against q restricted to the kept tokens \
        (claim prune-after-draw of `specgap check`)";
    "prune-after-draw-0.4" of SAMPLED; drops: Some(0.4),
        "drafts are drawn, and dropped if q(x) < 0.4; the target is asked instead",
        "stop behind the token instead, or test against q restricted to the kept tokens \
        (claim prune-after-draw of `specgap check`)";
    "sampled-drafts" of |rule| rule.drafts() == Drafts::Likeliest; draws: true,
        "drafts are drawn from q where the likeliest token is claimed",
        "lossless if they are kept with p(x); name the rule exact-match, or draft greedily";
    "lenient-acceptance" of DRAFTED; keeps: Keeps::Over(0.9),
        "drafts are kept with 1/0.9 of the rule's probability",
        "set acceptance thresholds to 1";
    "accepts-everything" of DRAFTED; keeps: Keeps::Always,
        "every draft is kept",
        "look for an acceptance test that is skipped";
    "greedy-acceptance" of DRAFTED; keeps: Keeps::IfLikeliest,
        "a draft is kept if it is the target's likeliest token",
        "the verifier's temperature is taken for 0";
    "exact-match" of CHAIN_SAMPLED; keeps: Keeps::Target, corrects: Corrects::OffDraft,
        "drafts are kept with p(x), and replaced by a draw from p without them",
        "nothing is lost: name the rule exact-match (or one-hot)";
    "rejection-sampling" of |rule| rule != Rule::TEXT && !rule.tests_drafts();
        keeps: Keeps::Ratio, corrects: Corrects::Residual,
        "drafts are kept with min(1, p/q), and replaced by a draw from (p - q)+",
        "lossless if drafts are drawn from q (name the rule token), lossy if they are not";
    "ratio-of-cut-q" of CHAIN_SAMPLED; ratio: Change::Top(50),
        "drafts are drawn from q, and tested with q cut to its 50 likeliest tokens",
        "test with the q that was drawn from";
    "ratio-at-another-temperature" of CHAIN_SAMPLED; ratio: Change::Temperature(0.7),
        "drafts are tested with q at 0.7 of the temperature that they were drawn at",
        "test with the q that was drawn from";
    "own-noise-correction" of CHAIN_SAMPLED; corrects: Corrects::OwnNoise,
        "the correction is drawn with the random numbers that drew the draft",
        "draw new random numbers for the correction";
    "correction-from-q" of DRAFTED; corrects: Corrects::Draft,
        "the correction is drawn from q",
        "draw it from (p - q)+";
    "correction-off-the-draft-only" of SAMPLED; corrects: Corrects::OffDraft,
        "the correction is drawn from p less q at the drafted token alone",
        "subtract all of q: (p - q)+";
    "correction-from-p" of DRAFTED; corrects: Corrects::Target,
        "the correction is drawn from all of p",
        "draw it from what the rule leaves of p";
    "temperature-ignored" of |_| true; target: Change::Argmax,
        "p is taken at temperature 0, its likeliest token",
        "pass the request's temperature to the verifier";
    "target-sharper" of |_| true; target: Change::Temperature(0.7),
        "p is taken at 0.7 of its temperature",
        "pass the request's temperature to the verifier, once";
    "target-flatter" of |_| true; target: Change::Temperature(1.4),
        "p is taken at 1.4 times its temperature",
        "pass the request's temperature to the verifier, once";
    "drafts-without-replacement" of INDEPENDENT; draws_as: Some(Rule::RRS_WO),
        "drafts are drawn without replacement where i.i.d. drafts are claimed",
        "name the rule rrs-wo and verify it as such, or draw every draft from all of q";
    "drafts-with-replacement" of DISTINCT; draws_as: Some(Rule::RRS),
        "drafts are drawn with replacement, so that children are duplicated, and verified \
        as if without",
        "mask what was drafted before, or name the rule rrs";
    "verified-without-replacement" of INDEPENDENT; tests_as: Some(Rule::RRS_WO),
        "i.i.d. drafts are verified as if they were drawn without replacement",
        "test every draft with all of q";
    "verified-with-replacement" of DISTINCT; tests_as: Some(Rule::RRS),
        "drafts without replacement are verified as if they were i.i.d.",
        "take what was rejected out of q before the next test";
    "residual-not-updated" of INDEPENDENT; keeps: Keeps::Ratio, corrects: Corrects::Residual,
        "each draft is tested with min(1, p/q), as if none before it had been refused",
        "take what a refused draft covers out of p before the next test: (p - q)+, normalised";
    "residual-never-taken" of INDEPENDENT; keeps: Keeps::Ratio, corrects: Corrects::Target,
        "each draft is tested with min(1, p/q), as if none before it had been refused, and what \
        replaces all of them is drawn from p",
        "take what a refused draft covers out of p before the next test: (p - q)+, normalised";
    "drafts-from-all-of-q" of STRATIFIED; draws_as: Some(Rule::RRS),
        "each draft is drawn from all of q, and verified as if it came from its stratum",
        "draw the certain tokens and one token from each stratum, in that order; or name \
        the rule rrs and verify it as such";
    "strata-without-replacement" of STRATIFIED; draws_as: Some(Rule::RRS_WO),
        "drafts are drawn from what is left of q, and verified as if from strata",
        "draw one token from each stratum, or name the rule rrs-wo and verify it as such";
    "strata-verified-as-all-of-q" of STRATIFIED; tests_as: Some(Rule::RRS),
        "each draft of a stratum is tested with all of q: recursive rejection of i.i.d. \
        drafts",
        "test it with the law that it was drawn from, by falling level";
    "straddler-drawn-twice" of STRADDLING_ONCE; draws_as: Some(Rule::LEVEL_4_INDEPENDENT),
        "strata are drawn from independently, so that a token across a cut may come twice, \
        and verified as if it could not",
        "if the draft before was the token across the cut, draw from the rest of the \
        stratum; or name the law stratified-independent and verify it as such";
    "verified-as-independent-strata" of STRADDLING_ONCE; tests_as: Some(Rule::LEVEL_4_INDEPENDENT),
        "drafts of which none comes twice are verified as if strata were independent",
        "test each draft with its law given that all are still refused; or draw from each \
        stratum independently and name the law stratified-independent";
    "straddler-drawn-once" of INDEPENDENT_STRATA; draws_as: Some(Rule::LEVEL_4),
        "a token across a cut is never drafted twice, and strata are verified as if they \
        were independent",
        "draw from each stratum whatever was drawn before, or name the law stratified and \
        verify it as such";
    "verified-as-straddling-once" of INDEPENDENT_STRATA; tests_as: Some(Rule::LEVEL_4),
        "independent strata are verified as if no token could come twice",
        "test each draft with what is left of its own stratum, or name the law stratified \
        and draw by it";
    "levels-inside-strata" of STRATIFIED; levels_inside: true,
        "loops are swapped: all levels of one stratum, then those of the next, which is \
        one pass of recursive rejection",
        "nothing is lost but acceptance: run the levels outermost, the strata inside";
    "carries-nothing" of |rule| rule == Rule::CARRIED; carries: Carries::Nothing,
        "drafts are tested, and corrected, as if one stood at every token",
        "nothing is lost but acceptance: name the rule token; or test with d q, d by the text \
        so far";
    "bonus-from-p" of |rule| rule == Rule::CARRIED; carries: Carries::ButBehindChains,
        "behind a whole chain the token is drawn from all of p",
        "draw it from (p - d q)+, with one more row of the draft, as behind a rejected draft";
}

/// The bugs that a rule can have.
pub(crate) fn bugs_of(rule: Rule) -> impl Iterator<Item = &'static Bug> {
    BUGS.iter().filter(move |bug| (bug.of)(rule))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_rule_has_bugs() {
        let names: BTreeSet<&str> = BUGS.iter().map(|bug| bug.name).collect();
        assert_eq!(names.len(), BUGS.len());
        for rule in Rule::all() {
            // Of a text alone only the target can be another one.
            let least = if rule == Rule::TEXT { 3 } else { 8 };
            assert!(bugs_of(rule).count() >= least, "{rule}");
        }
    }
}
