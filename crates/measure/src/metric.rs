//! What a number of a position is about: its key from the position to the report.

use serde::{Deserialize, Serialize};
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::{RowRate, RowRule, VerifierName};
use specgap_sampling::{CutOrder, Cuts};
use std::cmp::Ordering;

/// A scheme and a verifier that is lossless under it.
pub(super) type Rule = (SchemeName, VerifierName);

/// Schemes with an optimum on a row, in the order of reports.
pub(super) fn schemes() -> Listed<SchemeName> {
    let all = SchemeName::ALL.into_iter();
    listed(all.filter(|scheme| scheme.entry().on_row.is_some()))
}

/// What is walked once a report: a list, so that what walks it is not compiled for every way in
/// which it is made.
pub(super) type Listed<T> = std::vec::IntoIter<T>;

/// A list of what an iterator gives.
pub(super) fn listed<T>(all: impl Iterator<Item = T>) -> Listed<T> {
    all.collect::<Vec<_>>().into_iter()
}

/// The name of a rule under a law.
pub(super) fn rule_name((scheme, verifier): Rule) -> String {
    format!("{scheme}/{verifier}")
}

/// Every verifier with a rate on a row, scheme by scheme, in the order of reports.
pub(super) fn rules() -> Listed<(Rule, RowRule)> {
    let mut all = Vec::new();
    for scheme in schemes() {
        for name in VerifierName::ALL {
            all.extend(name.on_row(scheme).map(|rule| ((scheme, name), rule)));
        }
    }
    all.into_iter()
}

/// The likeliest tokens with the target's own draw, as engines that draw no drafts do it. No
/// lossless rule accepts more of them.
pub(super) const LIKELIEST: Rule = (SchemeName::TOP, VerifierName::EXACT_MATCH);

/// Pairs whose acceptance is compared at the same positions: each rule with those that
/// its entry names, under the same scheme where that is possible, else under the first; and
/// with the likeliest tokens.
pub(super) fn pairs() -> Listed<(Rule, Rule)> {
    let alone = [VerifierName::EXACT_MATCH, VerifierName::OPTIMAL];
    let rules_of_drafts = rules().filter(move |(rule, _)| !alone.contains(&rule.1));
    let mut all = named_pairs();
    all.extend(rules_of_drafts.map(|(rule, _)| (rule, LIKELIEST)));
    all.into_iter()
}

fn named_pairs() -> Vec<(Rule, Rule)> {
    let mut all = Vec::new();
    for (first, _) in rules() {
        for &name in first.1.entry().compared_with {
            let same = rules().find(|&(rule, _)| rule == (first.0, name));
            let other = same.or_else(|| rules().find(|&(rule, _)| rule.1 == name));
            all.extend(other.map(|(second, _)| (first, second)));
        }
    }
    all
}

/// Rules whose plans are solved at rows.
pub(super) fn plans() -> Listed<Rule> {
    let planned = rules().filter(|(_, row)| matches!(row.rate, RowRate::Planned(_)));
    listed(planned.map(|(rule, _)| rule))
}

/// I.i.d. drafts by recursive rejection, as most papers do it: one draft is kept with min(1, p/q).
pub(super) const SAMPLED: Rule = (SchemeName::WITH_REPLACEMENT, VerifierName::RRS);

/// I.i.d. drafts with the target's own draw.
pub(super) const MATCHED: Rule = (SchemeName::WITH_REPLACEMENT, VerifierName::EXACT_MATCH);

/// What engines do with one draft.
pub(super) const ONE_DRAFT: [Rule; 3] = [LIKELIEST, SAMPLED, MATCHED];

/// Those of [`ONE_DRAFT`] that are compared.
pub(super) const ONE_DRAFT_PAIRS: [(Rule, Rule); 3] = [
    (LIKELIEST, SAMPLED),
    (LIKELIEST, MATCHED),
    (SAMPLED, MATCHED),
];

/// Returns what reports call it: of one draft a law and its rule have one name.
pub(super) fn one_draft_name(rule: Rule) -> &'static str {
    if rule == LIKELIEST {
        "one-hot"
    } else if rule == SAMPLED {
        "token"
    } else {
        rule.1.as_str()
    }
}

/// A temperature as a part of keys, finite and not below 0; or a share.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Temperature(pub f64);

impl Ord for Temperature {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Temperature {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Temperature {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Temperature {}

/// A temperature and n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub temperature: Temperature,
    pub drafts: usize,
}

impl Place {
    pub(super) fn new(temperature: Temperature, drafts: usize) -> Self {
        Self {
            temperature,
            drafts,
        }
    }
}

/// How the draft's row is made of its logits, where that is not how the target's is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftRule {
    pub temperature: Temperature,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<Temperature>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_p: Option<Temperature>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_order: Option<CutOrder>,
}

impl DraftRule {
    pub(super) fn new(temperature: f64, cuts: Cuts) -> Self {
        Self {
            temperature: Temperature(temperature),
            top_k: cuts.top_k,
            top_p: cuts.top_p.map(Temperature),
            min_p: cuts.min_p.map(Temperature),
            cut_order: cuts.cut_order,
        }
    }

    pub(super) fn cuts(self) -> Cuts {
        Cuts {
            top_k: self.top_k,
            top_p: self.top_p.map(|p| p.0),
            min_p: self.min_p.map(|p| p.0),
            cut_order: self.cut_order,
        }
    }
}

/// Which of the settings' own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Own(pub usize);

/// Which of the settings' own laws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OwnLawId(pub usize);

/// A draft law: of the table, or the caller's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LawRef {
    Table(SchemeName),
    Own(OwnLawId),
}

/// What a number of an own law is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AboutLaw {
    /// alpha*.
    Optimum,
    /// Membership acceptance of a rule of the table.
    Acceptance(VerifierName),
    /// alpha* minus it.
    Gap(VerifierName),
    /// Such an acceptance, alpha* if no rule is named, minus the same of another law.
    Less(Option<VerifierName>, LawRef),
}

/// What a number of an own rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AboutOwn {
    /// Membership acceptance.
    Acceptance,
    /// alpha* minus it.
    Gap,
    /// Acceptance of a draft, by its own account.
    Algorithmic,
    /// How far the law of its output is from p.
    TotalVariation,
    /// The variance that its draws leave of acceptance.
    Noise,
    /// Its acceptance minus that of another rule.
    Less(Other),
}

/// A rule that an own rule is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Other {
    /// Of the table.
    Table(Rule),
    /// Of the caller's own.
    Own(Own),
    /// Of the table, under an own law.
    Under(OwnLawId, VerifierName),
}

impl Other {
    /// Returns its acceptance.
    pub(super) fn rate(self, place: Place) -> Metric {
        match self {
            Self::Table(rule) => Metric::Acceptance { place, rule },
            Self::Own(own) => Metric::Own {
                place,
                own,
                about: AboutOwn::Acceptance,
            },
            Self::Under(law, name) => rate_of(place, LawRef::Own(law), Some(name)),
        }
    }
}

/// A rate with such a row of the draft, of a number of drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Redrafted {
    Overlap,
    Optimum(usize, SchemeName),
    Acceptance(usize, Rule),
    Own(usize, Own),
    /// alpha* of an own law, or what a rule of the table accepts of it.
    OfLaw(usize, OwnLawId, Option<VerifierName>),
}

/// One number a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Metric {
    /// Sum of min(p, q).
    Overlap { temperature: Temperature },
    /// alpha*.
    Optimum { place: Place, scheme: SchemeName },
    /// Membership acceptance.
    Acceptance { place: Place, rule: Rule },
    /// alpha* minus it.
    Gap { place: Place, rule: Rule },
    /// The first rule's acceptance minus the second's.
    Difference {
        place: Place,
        first: Rule,
        second: Rule,
    },
    /// The published optimum without replacement minus the sequential law's.
    FormulaError { place: Place },
    /// Sum of |output law - p| of the optimal plan.
    PlanError { place: Place, rule: Rule },
    /// Seconds of its solve.
    PlanSeconds { place: Place, rule: Rule },
    /// A rate of the target's row at the temperature and of another row of the draft.
    Redrafted {
        temperature: Temperature,
        draft: DraftRule,
        rate: Redrafted,
    },
    /// How far a fast rate is from the slow one, at positions that are audited.
    AuditDifference { place: Place, rule: Rule },
    /// 1 where it is outside of the slow one's bounds, else 0.
    AuditOutside { place: Place, rule: Rule },
    /// alpha* minus what the optimal plan accepts, where a plan is solved as a check.
    PlanShortfall { place: Place, rule: Rule },
    /// Of a rule of the caller's own.
    Own {
        place: Place,
        own: Own,
        about: AboutOwn,
    },
    /// Of a draft law of the caller's own.
    OfLaw {
        place: Place,
        law: OwnLawId,
        about: AboutLaw,
    },
}

impl Metric {
    /// Returns what it is, in a word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Overlap { .. } => "overlap",
            Self::Optimum { .. } => "optimum",
            Self::Acceptance { .. } => "acceptance",
            Self::Gap { .. } => "gap",
            Self::Difference { .. } => "difference",
            Self::FormulaError { .. } => "formula-error",
            Self::PlanError { .. } => "plan-error",
            Self::PlanSeconds { .. } => "plan-seconds",
            Self::PlanShortfall { .. } => "plan-shortfall",
            Self::AuditDifference { .. } => "audit-difference",
            Self::AuditOutside { .. } => "audit-outside",
            Self::Redrafted { .. } => "redrafted",
            Self::Own { about, .. } => match about {
                AboutOwn::Acceptance => "acceptance",
                AboutOwn::Gap => "gap",
                AboutOwn::Algorithmic => "algorithmic",
                AboutOwn::TotalVariation => "total-variation",
                AboutOwn::Noise => "noise",
                AboutOwn::Less(_) => "difference",
            },
            Self::OfLaw { about, .. } => match about {
                AboutLaw::Optimum => "optimum",
                AboutLaw::Acceptance(_) => "acceptance",
                AboutLaw::Gap(_) => "gap",
                AboutLaw::Less(..) => "difference",
            },
        }
    }

    /// The temperature, and n where it is of drafts and not [`Metric::Redrafted`].
    pub(super) fn at(self) -> (Temperature, Option<usize>) {
        match self {
            Self::Overlap { temperature } | Self::Redrafted { temperature, .. } => {
                (temperature, None)
            }
            Self::Optimum { place, .. }
            | Self::Acceptance { place, .. }
            | Self::Gap { place, .. }
            | Self::Difference { place, .. }
            | Self::FormulaError { place }
            | Self::PlanError { place, .. }
            | Self::PlanSeconds { place, .. }
            | Self::PlanShortfall { place, .. }
            | Self::AuditDifference { place, .. }
            | Self::AuditOutside { place, .. }
            | Self::Own { place, .. }
            | Self::OfLaw { place, .. } => (place.temperature, Some(place.drafts)),
        }
    }

    /// Returns the same rate with another row of the draft; nothing of what is no rate.
    pub(super) fn redrafted(self, draft: DraftRule) -> Option<Self> {
        let rate = match self {
            Self::Overlap { .. } => Redrafted::Overlap,
            Self::Optimum { place, scheme } => Redrafted::Optimum(place.drafts, scheme),
            Self::Acceptance { place, rule } => Redrafted::Acceptance(place.drafts, rule),
            Self::Own {
                place,
                own,
                about: AboutOwn::Acceptance,
            } => Redrafted::Own(place.drafts, own),
            Self::OfLaw { place, law, about } => match about {
                AboutLaw::Optimum => Redrafted::OfLaw(place.drafts, law, None),
                AboutLaw::Acceptance(name) => Redrafted::OfLaw(place.drafts, law, Some(name)),
                AboutLaw::Gap(_) | AboutLaw::Less(..) => return None,
            },
            _ => return None,
        };
        Some(Self::Redrafted {
            temperature: self.at().0,
            draft,
            rate,
        })
    }

    /// The rate with the draft's row made as the target's; other numbers as they are.
    pub(super) fn as_before(self) -> Self {
        let Self::Redrafted {
            temperature, rate, ..
        } = self
        else {
            return self;
        };
        let at = |drafts| Place::new(temperature, drafts);
        match rate {
            Redrafted::Overlap => Self::Overlap { temperature },
            Redrafted::Optimum(n, scheme) => rate_of(at(n), LawRef::Table(scheme), None),
            Redrafted::Acceptance(n, rule) => Other::Table(rule).rate(at(n)),
            Redrafted::Own(n, own) => Other::Own(own).rate(at(n)),
            Redrafted::OfLaw(n, law, rule) => rate_of(at(n), LawRef::Own(law), rule),
        }
    }

    /// Returns whether it may be known at some positions alone: those that are audited, or where an
    /// own rule says it.
    pub(super) fn is_audit(self) -> bool {
        matches!(
            self,
            Self::AuditDifference { .. }
                | Self::AuditOutside { .. }
                | Self::PlanShortfall { .. }
                | Self::PlanError { .. }
                | Self::PlanSeconds { .. }
                | Self::Own {
                    about: AboutOwn::Algorithmic | AboutOwn::TotalVariation | AboutOwn::Noise,
                    ..
                }
        )
    }

    /// Returns whether it is a rate of its own, and not made of others or about a solve.
    pub(super) fn is_rate(self) -> bool {
        matches!(
            self,
            Self::Overlap { .. }
                | Self::Optimum { .. }
                | Self::Acceptance { .. }
                | Self::Own {
                    about: AboutOwn::Acceptance,
                    ..
                }
                | Self::OfLaw {
                    about: AboutLaw::Optimum | AboutLaw::Acceptance(_),
                    ..
                }
        )
    }

    /// Returns whether it is of an own law, or of an own rule, so that bounds that do not meet are
    /// those of alpha*.
    pub(super) fn may_be_loose(self) -> bool {
        let of = match self {
            Self::Redrafted { rate, .. } => return matches!(rate, Redrafted::OfLaw(..)),
            other => other,
        };
        matches!(of, Self::Own { .. } | Self::OfLaw { .. })
    }
}

/// Returns where a rate of a law stands: alpha* if no rule is named.
pub(super) fn rate_of(place: Place, law: LawRef, name: Option<VerifierName>) -> Metric {
    match (law, name) {
        (LawRef::Table(scheme), None) => Metric::Optimum { place, scheme },
        (LawRef::Table(scheme), Some(name)) => {
            let rule = (scheme, name);
            Metric::Acceptance { place, rule }
        }
        (LawRef::Own(law), name) => {
            let about = name.map_or(AboutLaw::Optimum, AboutLaw::Acceptance);
            Metric::OfLaw { place, law, about }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_comparisons_come_in_their_order() {
        let all: Vec<[String; 2]> = pairs().map(|(a, b)| [a, b].map(rule_name)).collect();
        let expected = [
            ["with-replacement/k-seq", "with-replacement/rrs"],
            ["without-replacement/rrs-wo", "with-replacement/rrs"],
            ["without-replacement/rrs-wo", "with-replacement/k-seq"],
            ["greedy/greedy", "with-replacement/k-seq"],
            ["greedy/greedy", "without-replacement/rrs-wo"],
            ["hub/spechub", "without-replacement/rrs-wo"],
            // What engines that draft the likeliest tokens could do instead.
            ["with-replacement/rrs", "top/exact-match"],
            ["with-replacement/k-seq", "top/exact-match"],
            ["without-replacement/rrs-wo", "top/exact-match"],
            ["greedy/greedy", "top/exact-match"],
            ["hub/spechub", "top/exact-match"],
        ];
        let places: Vec<usize> = expected
            .iter()
            .map(|pair| all.iter().position(|one| one == pair).unwrap())
            .collect();
        assert!(places.is_sorted(), "{all:?}");
    }

    #[test]
    fn schemes_of_a_report_have_colours_of_their_own() {
        let hues: Vec<usize> = schemes().map(|scheme| scheme.entry().hue).collect();
        let mut distinct = hues.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), hues.len(), "{hues:?}");
    }
}
