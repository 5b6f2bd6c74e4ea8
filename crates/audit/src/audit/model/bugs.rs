//! The bugs that are looked for, each with the engine that has it.

use crate::audit::model::engine::{Carries, Change, Corrects, Engine, Keeps};
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
    pub of: fn(Rule) -> bool,
}

fn sampled(rule: Rule) -> bool {
    matches!(rule.drafts(), Drafts::Drawn(_))
}

fn chain_sampled(rule: Rule) -> bool {
    rule.has_chains() && rule.tests_drafts()
}

fn independent(rule: Rule) -> bool {
    rule.needs_siblings() && !rule.drafts().are_distinct() && !stratified(rule)
}

fn distinct(rule: Rule) -> bool {
    rule.needs_siblings() && rule.drafts().are_distinct() && !stratified(rule)
}

fn straddling_once(rule: Rule) -> bool {
    rule.drafts() == Drafts::Drawn(SchemeName::STRATIFIED)
}

fn independent_strata(rule: Rule) -> bool {
    rule.drafts() == Drafts::Drawn(SchemeName::STRATIFIED_INDEPENDENT)
}

fn stratified(rule: Rule) -> bool {
    straddling_once(rule) || independent_strata(rule)
}

fn drafted(rule: Rule) -> bool {
    rule != Rule::TEXT
}

const HONEST: Engine = Engine::HONEST;

/// All of them.
pub(crate) static BUGS: [Bug; 38] = [
    Bug {
        name: "argmax-drafts",
        words: "drafts are the likeliest token of q, and are tested as if drawn from q",
        cure: "sample the drafts, or test them as one-hot (keep with p(x))",
        engine: HONEST.likeliest().draft(Change::Argmax),
        of: sampled,
    },
    Bug {
        name: "top-50-drafts",
        words: "drafts are drawn from q cut to its 50 likeliest tokens, and tested with all of q",
        cure: "test with the cut and renormalised q, or draw from all of q",
        engine: HONEST.draft(Change::Top(50)),
        of: sampled,
    },
    Bug {
        name: "top-10-drafts",
        words: "drafts are drawn from q cut to its 10 likeliest tokens, and tested with all of q",
        cure: "test with the cut and renormalised q, or draw from all of q",
        engine: HONEST.draft(Change::Top(10)),
        of: sampled,
    },
    Bug {
        name: "nucleus-drafts",
        words: "drafts are drawn from the fewest likeliest tokens that hold 0.9 of q, and tested \
                with all of q",
        cure: "test with the cut and renormalised q, or draw from all of q",
        engine: HONEST.draft(Change::TopP(0.9)),
        of: sampled,
    },
    Bug {
        name: "ensemble",
        words: "the target is mixed with the draft: v = w p + (1 - w) q is verified, and not p",
        cure: "set the weight of the draft to 0 (transformers: assistant_ensemble_weight)",
        engine: HONEST.target(Change::Mixed(0.5)),
        of: drafted,
    },
    Bug {
        name: "sharper-drafts",
        words: "drafts are drawn at 0.7 of the temperature of the q that they are tested with",
        cure: "use one temperature for the draft's draw and for the q of the ratio",
        engine: HONEST.draft(Change::Temperature(0.7)),
        of: sampled,
    },
    Bug {
        name: "flatter-drafts",
        words: "drafts are drawn at 1.4 times the temperature of the q that they are tested with",
        cure: "use one temperature for the draft's draw and for the q of the ratio",
        engine: HONEST.draft(Change::Temperature(1.4)),
        of: sampled,
    },
    Bug {
        name: "prune-after-draw",
        words: "drafts are drawn, and dropped if q(x) < 0.1; the target is asked instead",
        cure: "stop behind the token instead, or test against q restricted to the kept tokens \
               (claim prune-after-draw of `specgap check`)",
        engine: HONEST.drops(0.1),
        of: sampled,
    },
    Bug {
        name: "prune-after-draw-0.4",
        words: "drafts are drawn, and dropped if q(x) < 0.4; the target is asked instead",
        cure: "stop behind the token instead, or test against q restricted to the kept tokens \
               (claim prune-after-draw of `specgap check`)",
        engine: HONEST.drops(0.4),
        of: sampled,
    },
    Bug {
        name: "sampled-drafts",
        words: "drafts are drawn from q where the likeliest token is claimed",
        cure: "lossless if they are kept with p(x); name the rule exact-match, or draft greedily",
        engine: HONEST.draws(),
        of: |rule| rule.drafts() == Drafts::Likeliest,
    },
    Bug {
        name: "lenient-acceptance",
        words: "drafts are kept with 1/0.9 of the rule's probability",
        cure: "set acceptance thresholds to 1",
        engine: HONEST.keeps(Keeps::Over(0.9)),
        of: drafted,
    },
    Bug {
        name: "accepts-everything",
        words: "every draft is kept",
        cure: "look for an acceptance test that is skipped",
        engine: HONEST.keeps(Keeps::Always),
        of: drafted,
    },
    Bug {
        name: "greedy-acceptance",
        words: "a draft is kept if it is the target's likeliest token",
        cure: "the verifier's temperature is taken for 0",
        engine: HONEST.keeps(Keeps::IfLikeliest),
        of: drafted,
    },
    Bug {
        name: "exact-match",
        words: "drafts are kept with p(x), and replaced by a draw from p without them",
        cure: "nothing is lost: name the rule exact-match (or one-hot)",
        engine: HONEST.keeps(Keeps::Target).corrects(Corrects::OffDraft),
        of: chain_sampled,
    },
    Bug {
        name: "rejection-sampling",
        words: "drafts are kept with min(1, p/q), and replaced by a draw from (p - q)+",
        cure: "lossless if drafts are drawn from q (name the rule token), lossy if they are not",
        engine: HONEST.keeps(Keeps::Ratio).corrects(Corrects::Residual),
        of: |rule| rule != Rule::TEXT && !rule.tests_drafts(),
    },
    Bug {
        name: "ratio-of-cut-q",
        words: "drafts are drawn from q, and tested with q cut to its 50 likeliest tokens",
        cure: "test with the q that was drawn from",
        engine: HONEST.ratio(Change::Top(50)),
        of: chain_sampled,
    },
    Bug {
        name: "ratio-at-another-temperature",
        words: "drafts are tested with q at 0.7 of the temperature that they were drawn at",
        cure: "test with the q that was drawn from",
        engine: HONEST.ratio(Change::Temperature(0.7)),
        of: chain_sampled,
    },
    Bug {
        name: "own-noise-correction",
        words: "the correction is drawn with the random numbers that drew the draft",
        cure: "draw new random numbers for the correction",
        engine: HONEST.corrects(Corrects::OwnNoise),
        of: chain_sampled,
    },
    Bug {
        name: "correction-from-q",
        words: "the correction is drawn from q",
        cure: "draw it from (p - q)+",
        engine: HONEST.corrects(Corrects::Draft),
        of: drafted,
    },
    Bug {
        name: "correction-off-the-draft-only",
        words: "the correction is drawn from p less q at the drafted token alone",
        cure: "subtract all of q: (p - q)+",
        engine: HONEST.corrects(Corrects::OffDraft),
        of: sampled,
    },
    Bug {
        name: "correction-from-p",
        words: "the correction is drawn from all of p",
        cure: "draw it from what the rule leaves of p",
        engine: HONEST.corrects(Corrects::Target),
        of: drafted,
    },
    Bug {
        name: "temperature-ignored",
        words: "p is taken at temperature 0, its likeliest token",
        cure: "pass the request's temperature to the verifier",
        engine: HONEST.target(Change::Argmax),
        of: |_| true,
    },
    Bug {
        name: "target-sharper",
        words: "p is taken at 0.7 of its temperature",
        cure: "pass the request's temperature to the verifier, once",
        engine: HONEST.target(Change::Temperature(0.7)),
        of: |_| true,
    },
    Bug {
        name: "target-flatter",
        words: "p is taken at 1.4 times its temperature",
        cure: "pass the request's temperature to the verifier, once",
        engine: HONEST.target(Change::Temperature(1.4)),
        of: |_| true,
    },
    Bug {
        name: "drafts-without-replacement",
        words: "drafts are drawn without replacement where i.i.d. drafts are claimed",
        cure: "name the rule rrs-wo and verify it as such, or draw every draft from all of q",
        engine: HONEST.draws_as(Rule::RRS_WO),
        of: independent,
    },
    Bug {
        name: "drafts-with-replacement",
        words: "drafts are drawn with replacement, so that children are duplicated, and verified \
                as if without",
        cure: "mask what was drafted before, or name the rule rrs",
        engine: HONEST.draws_as(Rule::RRS),
        of: distinct,
    },
    Bug {
        name: "verified-without-replacement",
        words: "i.i.d. drafts are verified as if they were drawn without replacement",
        cure: "test every draft with all of q",
        engine: HONEST.tests_as(Rule::RRS_WO),
        of: independent,
    },
    Bug {
        name: "verified-with-replacement",
        words: "drafts without replacement are verified as if they were i.i.d.",
        cure: "take what was rejected out of q before the next test",
        engine: HONEST.tests_as(Rule::RRS),
        of: distinct,
    },
    Bug {
        name: "drafts-from-all-of-q",
        words: "each draft is drawn from all of q, and verified as if it came from its stratum",
        cure: "draw the certain tokens and one token from each stratum, in that order; or name \
               the rule rrs and verify it as such",
        engine: HONEST.draws_as(Rule::RRS),
        of: stratified,
    },
    Bug {
        name: "strata-without-replacement",
        words: "drafts are drawn from what is left of q, and verified as if from strata",
        cure: "draw one token from each stratum, or name the rule rrs-wo and verify it as such",
        engine: HONEST.draws_as(Rule::RRS_WO),
        of: stratified,
    },
    Bug {
        name: "strata-verified-as-all-of-q",
        words: "each draft of a stratum is tested with all of q: recursive rejection of i.i.d. \
                drafts",
        cure: "test it with the law that it was drawn from, by falling level",
        engine: HONEST.tests_as(Rule::RRS),
        of: stratified,
    },
    Bug {
        name: "straddler-drawn-twice",
        words: "strata are drawn from independently, so that a token across a cut may come twice, \
                and verified as if it could not",
        cure: "if the draft before was the token across the cut, draw from the rest of the \
               stratum; or name the law stratified-independent and verify it as such",
        engine: HONEST.draws_as(Rule::LEVEL_4_INDEPENDENT),
        of: straddling_once,
    },
    Bug {
        name: "verified-as-independent-strata",
        words: "drafts of which none comes twice are verified as if strata were independent",
        cure: "test each draft with its law given that all are still refused; or draw from each \
               stratum independently and name the law stratified-independent",
        engine: HONEST.tests_as(Rule::LEVEL_4_INDEPENDENT),
        of: straddling_once,
    },
    Bug {
        name: "straddler-drawn-once",
        words: "a token across a cut is never drafted twice, and strata are verified as if they \
                were independent",
        cure: "draw from each stratum whatever was drawn before, or name the law stratified and \
               verify it as such",
        engine: HONEST.draws_as(Rule::LEVEL_4),
        of: independent_strata,
    },
    Bug {
        name: "verified-as-straddling-once",
        words: "independent strata are verified as if no token could come twice",
        cure: "test each draft with what is left of its own stratum, or name the law stratified \
               and draw by it",
        engine: HONEST.tests_as(Rule::LEVEL_4),
        of: independent_strata,
    },
    Bug {
        name: "levels-inside-strata",
        words: "loops are swapped: all levels of one stratum, then those of the next, which is \
                one pass of recursive rejection",
        cure: "nothing is lost but acceptance: run the levels outermost, the strata inside",
        engine: HONEST.levels_inside(),
        of: stratified,
    },
    Bug {
        name: "carries-nothing",
        words: "drafts are tested, and corrected, as if one stood at every token",
        cure: "nothing is lost but acceptance: name the rule token; or test with d q, d by the text \
               so far",
        engine: HONEST.carries(Carries::Nothing),
        of: |rule| rule == Rule::CARRIED,
    },
    Bug {
        name: "bonus-from-p",
        words: "behind a whole chain the token is drawn from all of p",
        cure: "draw it from (p - d q)+, with one more row of the draft, as behind a rejected draft",
        engine: HONEST.carries(Carries::ButBehindChains),
        of: |rule| rule == Rule::CARRIED,
    },
];

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
