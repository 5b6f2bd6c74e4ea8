//! What to measure.

use super::GapError;
use super::metric::{
    AboutLaw, AboutOwn, DraftRule, LawRef, Listed, Metric, ONE_DRAFT, ONE_DRAFT_PAIRS, Other, Own,
    OwnLawId, Place, Rule, listed, pairs, rate_of, rule_name, rules, schemes,
};
use super::own::{Law, OwnAsked, OwnRule};
use super::own_law::{LawAsked, OwnLaw};
use specgap_base::{names, read_by_name};
use specgap_core::optimum::row_question;
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::{RowRule, VerifierName};
use specgap_log::log::Log;
use specgap_row::{MAX_DRAFTS, Question};
use specgap_sampling::Cuts;

/// How rates are computed that have a fast way, with an error that is estimated, and a slow
/// one with a proven error: `rrs-wo` from three drafts on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowRates {
    /// Fast, and checked against the slow way at some positions
    /// ([`GapReport::audits`](super::GapReport::audits)).
    #[default]
    Fast,
    /// Enclosed, or a Monte Carlo mean with an interval where an enclosure takes too long.
    Enclosed,
}

names!(SlowRates: Fast "fast", Enclosed "enclosed");

read_by_name!(SlowRates, |word, _all| format!(
    "{word:?} is neither fast nor enclosed"
));

/// At which positions the optimal plans of i.i.d. drafts are solved.
///
/// That such a plan accepts alpha* is a theorem (`docs/theory/level-rule.md`), so the rate of
/// `level` needs no plan. Solving plans in `f64` checks the theorem and the solver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SolvedPlans {
    /// At those where fast rates are audited; the rate of `level` is alpha* with its
    /// enclosure everywhere, and [`GapReport::plans`](super::GapReport::plans) is of the plans
    /// that were solved.
    #[default]
    Audited,
    /// At every position; the rate of `level` is what the plans accept.
    Every,
}

names!(SolvedPlans: Audited "audited", Every "every");

read_by_name!(SolvedPlans, |word, _all| format!(
    "{word:?} is neither audited nor every"
));

/// Positions of a log that are audited at least, if it has so many, and one in how many of a
/// long one.
const AUDITED: usize = 8;
const AUDIT_STRIDE: usize = 512;

/// Returns whether a position of a log of so many is one where fast rates and theorems are checked:
/// the same ones however its positions are dealt.
pub(super) fn is_audited(number: usize, positions: usize) -> bool {
    number.is_multiple_of((positions / AUDITED).clamp(1, AUDIT_STRIDE))
}

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Applied to target and draft alike; at 0 the most probable token has all of the mass.
    pub temperatures: Vec<f64>,
    /// Numbers of drafts n, 1..=64.
    pub drafts: Vec<usize>,
    /// Schemes whose optima are measured; those of [`Settings::schemes`] at first.
    pub schemes: Vec<SchemeName>,
    /// Verifiers that are measured, under every scheme above for which they are
    /// lossless; those of [`Settings::verifiers`] at first.
    pub verifiers: Vec<VerifierName>,
    /// Temperatures of the draft alone: optima and acceptance are measured again with the
    /// draft's row at each of them, and the target's as it is.
    pub draft_temperatures: Vec<f64>,
    /// What is kept there of the draft's row, if it is not what is kept of the target's.
    pub draft_cuts: Option<Cuts>,
    /// What is kept of both rows at every temperature.
    pub cuts: Cuts,
    /// Where the optimal plans of i.i.d. drafts are solved.
    pub plans: SolvedPlans,
    /// How `rrs-wo` is computed on rows that list all tokens.
    pub rrs_wo: SlowRates,
    /// L of the bounds on blocks.
    pub block_length: usize,
    /// Seed of whatever is random.
    pub seed: u64,
    /// Whether times go into the report, which then differs from run to run.
    pub timing: bool,
    /// Rules of the caller's own that are measured too, each under the law of its drafts if that
    /// is among the schemes.
    pub own_rules: Vec<OwnRule>,
    /// Draft laws of the caller's own that are measured too, where they have so many drafts.
    pub own_laws: Vec<OwnLaw>,
}

fn is_temperature(t: f64) -> bool {
    t.is_finite() && t >= 0.0
}

fn list<T: std::fmt::Debug>(items: &[T]) -> String {
    let words: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
    words.join(",")
}

/// Each once, and 0 without a sign.
fn ascending(temperatures: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = temperatures.iter().map(|t| t + 0.0).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// What is asked of n drafts at every position, looked up in the tables of laws and
/// verifiers once.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// n.
    pub drafts: usize,
    /// Schemes whose optima are measured.
    pub optima: Vec<(SchemeName, Question)>,
    /// Verifiers that are run.
    pub rules: Vec<(Rule, RowRule)>,
    /// Those of them that are computed the fast way, as they are computed the slow way.
    pub audited: Vec<(Rule, RowRule)>,
    /// Those of them that are compared.
    pub pairs: Vec<(Rule, Rule)>,
    /// Rules of the caller's own.
    pub own: Vec<OwnAsked>,
    /// Laws of the caller's own.
    pub laws: Vec<LawAsked>,
}

/// A law whose alpha* is measured, with the rules that are measured under it, in the order of reports.
pub(super) struct LawMeasured<'a> {
    pub law: LawRef,
    pub name: &'a str,
    /// How its alpha* is got.
    pub status: &'static str,
    pub rules: Vec<VerifierName>,
    /// Rules of the caller's own.
    pub own: Vec<(Own, &'a OwnRule)>,
}

impl LawMeasured<'_> {
    /// Returns what its rules accept, by their names.
    pub(super) fn rates(&self, place: Place) -> impl Iterator<Item = (&str, Metric)> {
        let rules = self.rules.iter().map(move |name| {
            let metric = rate_of(place, self.law, Some(*name));
            (name.as_str(), metric)
        });
        let own = self.own.iter();
        rules.chain(own.map(move |&(own, rule)| (rule.name(), Other::Own(own).rate(place))))
    }
}

/// Adds what engines do with one draft, whatever else is asked for.
fn add_one_draft(asked: &mut Vec<Asked>) {
    let at = match asked.iter().position(|one| one.drafts == 1) {
        Some(at) => at,
        None => {
            asked.push(Asked {
                drafts: 1,
                ..Asked::default()
            });
            asked.len() - 1
        }
    };
    let Some(one) = asked.get_mut(at) else { return };
    for rule in ONE_DRAFT {
        let (scheme, name) = rule;
        if let (false, Some(row)) = (
            one.optima.iter().any(|(known, _)| *known == scheme),
            scheme.entry().on_row.as_ref(),
        ) {
            one.optima.push((scheme, row.optimum));
        }
        if let (false, Some(computed)) = (
            one.rules.iter().any(|(known, _)| *known == rule),
            name.on_row(scheme),
        ) {
            one.rules.push((rule, computed));
        }
    }
    for pair in ONE_DRAFT_PAIRS {
        if !one.pairs.contains(&pair) {
            one.pairs.push(pair);
        }
    }
}

/// Temperatures that may be asked for.
const MOST_TEMPERATURES: usize = 64;

/// Temperatures that are measured where logs do not say theirs.
const USUAL_TEMPERATURES: [f64; 2] = [0.7, 1.0];

impl Settings {
    /// The temperatures that are measured where none are asked for: those at which the logs' texts
    /// were sampled, or 0.7 and 1 if any log does not say it, or has no tokens.
    pub fn usual_temperatures(logs: &[Log]) -> Vec<f64> {
        let own = |log: &Log| {
            let sampling = log.metadata().sampling.as_ref();
            let at = sampling.filter(|_| log.has_tokens())?.temperature;
            is_temperature(at).then_some(at)
        };
        let told: Option<Vec<f64>> = logs.iter().map(own).collect();
        match told.filter(|all| !all.is_empty()) {
            Some(told) => ascending(&told),
            None => USUAL_TEMPERATURES.to_vec(),
        }
    }

    /// Returns what is kept of rows where neither temperatures nor cuts are asked for: what was kept as all
    /// logs' texts were sampled; everything where they differ, or do not say it.
    pub fn usual_cuts(logs: &[Log]) -> Cuts {
        let mut all = logs.iter().map(Cuts::of_text);
        let first = all.next().unwrap_or_default();
        match all.all(|cuts| cuts == first) {
            true => first,
            false => Cuts::default(),
        }
    }

    /// Schemes that a log's rows can make, which have an optimum in a report.
    pub fn all_schemes() -> Vec<SchemeName> {
        schemes().collect()
    }

    /// Those of them that a report measures where none are named.
    pub fn schemes() -> Vec<SchemeName> {
        schemes().filter(|name| name.entry().by_default).collect()
    }

    /// Verifiers that a report measures where none are named.
    pub fn verifiers() -> Vec<VerifierName> {
        VerifierName::ALL
            .into_iter()
            .filter(|name| name.entry().by_default)
            .collect()
    }

    /// L, if nothing else is asked for.
    pub const BLOCK_LENGTH: usize = 5;

    /// Checks and sorts temperatures and drafts.
    ///
    /// # Errors
    /// No temperatures or drafts, or any out of range.
    ///
    /// # Example
    /// ```
    /// use specgap_measure::Settings;
    /// let settings = Settings::new(&[1.0, 0.7, 1.0], &[3, 2], 0)?;
    /// assert_eq!(settings.temperatures, [0.7, 1.0]);
    /// assert_eq!(settings.drafts, [2, 3]);
    /// assert!(Settings::new(&[-0.5], &[2], 0).is_err());
    /// # Ok::<(), specgap_measure::GapError>(())
    /// ```
    pub fn new(temperatures: &[f64], drafts: &[usize], seed: u64) -> Result<Self, GapError> {
        let refused = |message: String| Err(GapError::Settings(message));
        if temperatures.is_empty() || drafts.is_empty() {
            return refused("at least one temperature and one number of drafts are needed".into());
        }
        if temperatures.len() > MOST_TEMPERATURES {
            return refused(format!(
                "{} temperatures are too many, each of which is measured; ask for {MOST_TEMPERATURES} \
                 at most",
                temperatures.len()
            ));
        }
        if let Some(t) = temperatures.iter().find(|t| !is_temperature(**t)) {
            return refused(format!(
                "temperature {t} is out of range; temperatures are finite and not below 0"
            ));
        }
        if let Some(n) = drafts.iter().find(|&&n| n == 0 || n > MAX_DRAFTS) {
            return refused(format!(
                "{n} drafts are out of range; there are 1 to {MAX_DRAFTS}"
            ));
        }
        let temperatures = ascending(temperatures);
        let mut drafts = drafts.to_vec();
        drafts.sort_unstable();
        drafts.dedup();
        Ok(Self {
            temperatures,
            drafts,
            schemes: Self::schemes(),
            verifiers: Self::verifiers(),
            draft_temperatures: Vec::new(),
            draft_cuts: None,
            cuts: Cuts::default(),
            plans: SolvedPlans::default(),
            rrs_wo: SlowRates::default(),
            block_length: Self::BLOCK_LENGTH,
            seed,
            timing: false,
            own_rules: Vec::new(),
            own_laws: Vec::new(),
        })
    }

    /// Settings with the laws too that are not measured by default.
    #[cfg(test)]
    pub(crate) fn of_all_schemes(temperatures: &[f64], drafts: &[usize], seed: u64) -> Self {
        Self {
            schemes: Self::all_schemes(),
            ..Self::new(temperatures, drafts, seed).unwrap()
        }
    }

    /// Keeps of both rows what an engine keeps that serves with these settings.
    ///
    /// # Errors
    /// Any out of range.
    pub fn served(mut self, cuts: Cuts) -> Result<Self, GapError> {
        cuts.check("").map_err(GapError::Settings)?;
        self.cuts = cuts.effective();
        Ok(self)
    }

    /// Takes the order of cuts that logs say, where none is asked for.
    ///
    /// # Errors
    /// Logs that say different ones.
    pub fn ordered(&mut self, logs: &[Log]) -> Result<(), GapError> {
        let ordered = |cuts: Cuts, temperatures: &[f64]| {
            let cuts = cuts.ordered(logs, temperatures);
            cuts.map_err(GapError::Settings)
        };
        self.cuts = ordered(self.cuts, &self.temperatures)?;
        let of_draft = match self.draft_temperatures.as_slice() {
            [] => &self.temperatures,
            all => all,
        };
        if let Some(cuts) = self.draft_cuts {
            self.draft_cuts = Some(ordered(cuts, of_draft)?);
        }
        Ok(())
    }

    /// Measures again with other rows of the draft: at these temperatures, or at the target's
    /// if there are none, and cut by `cuts`, or as the target's row if there are none.
    ///
    /// # Errors
    /// Any out of range.
    ///
    /// # Example
    /// ```
    /// use specgap_measure::Settings;
    /// use specgap_sampling::Cuts;
    /// let cuts = Cuts { top_k: Some(40), ..Cuts::default() };
    /// let settings = Settings::new(&[1.0], &[2], 0)?.redrafted(&[0.7, 0.5], Some(cuts))?;
    /// let own = " --draft-temperature 0.5,0.7 --draft-top-k 40";
    /// assert!(settings.options().ends_with(own));
    /// # Ok::<(), specgap_measure::GapError>(())
    /// ```
    pub fn redrafted(mut self, temperatures: &[f64], cuts: Option<Cuts>) -> Result<Self, GapError> {
        if let Some(t) = temperatures.iter().find(|t| !is_temperature(**t)) {
            return Err(GapError::Settings(format!(
                "⟨draft-temperature {t}⟩ is out of range; temperatures are finite and not below 0"
            )));
        }
        let of_draft = cuts.unwrap_or_default();
        of_draft.check("draft-").map_err(GapError::Settings)?;
        self.draft_temperatures = ascending(temperatures);
        self.draft_cuts = cuts;
        Ok(self)
    }

    /// Returns whether other rows of the draft are asked for.
    pub fn redraws(&self) -> bool {
        !self.draft_temperatures.is_empty() || self.draft_cuts.is_some()
    }

    /// The other rows of the draft that are measured beside the target's row at a temperature.
    pub(super) fn draft_rules(&self, temperature: f64) -> Vec<DraftRule> {
        let own = [temperature];
        let all = match self.draft_temperatures.as_slice() {
            [] if self.draft_cuts.is_some() => &own,
            all => all,
        };
        let cuts = self.draft_cuts.unwrap_or(self.cuts);
        let rule = |&temperature: &f64| DraftRule::new(temperature, cuts);
        all.iter().map(rule).collect()
    }

    /// Returns what is asked of them.
    pub(super) fn asked_again(&self) -> Vec<Asked> {
        let mut asked = self.asked();
        asked.retain(|one| self.drafts.contains(&one.drafts));
        for one in &mut asked {
            one.rules.retain(|(rule, _)| self.asks_for(*rule));
            one.optima
                .retain(|(scheme, _)| self.schemes.contains(scheme));
            one.pairs.clear();
            for own in &mut one.own {
                own.pairs.clear();
            }
            for law in &mut one.laws {
                law.pairs.clear();
            }
        }
        asked
    }

    /// The verifiers that are run for n drafts.
    pub(super) fn rules(&self, drafts: usize) -> Listed<(Rule, RowRule)> {
        listed(rules().filter(|&((scheme, name), row)| {
            self.asks_for((scheme, name))
                && self.measures(&row)
                && scheme.fits(drafts)
                && name.is_lossless(scheme, drafts)
        }))
    }

    /// Returns whether a rule is measured: some are where rules are named alone.
    pub(super) fn measures(&self, row: &RowRule) -> bool {
        !row.if_named || self.verifiers != Self::verifiers()
    }

    /// Returns what is asked at every position, for each n.
    pub(super) fn asked(&self) -> Vec<Asked> {
        let of = |&drafts: &usize| {
            let mut rules: Vec<(Rule, RowRule)> = self.rules(drafts).collect();
            let mut audited = Vec::new();
            if self.rrs_wo == SlowRates::Fast {
                let fast = rules.iter().filter(|(_, row)| row.fast.is_some());
                // One draft and two are enclosed either way.
                audited.extend(fast.filter(|_| drafts > 2).copied());
                for (_, row) in &mut rules {
                    *row = row.quickened();
                }
            }
            let runs = |rule: Rule| rules.iter().any(|&(known, _)| known == rule);
            let optimum = |scheme: SchemeName| Some((scheme, row_question(scheme)?));
            let table: Vec<Rule> = rules.iter().map(|(rule, _)| *rule).collect();
            Asked {
                drafts,
                own: self.own_asked(drafts, &table),
                laws: self.laws_asked(drafts, &table),
                optima: self.optima(drafts).filter_map(optimum).collect(),
                pairs: pairs().filter(|&(a, b)| runs(a) && runs(b)).collect(),
                rules,
                audited,
            }
        };
        let mut asked: Vec<Asked> = self.drafts.iter().map(of).collect();
        add_one_draft(&mut asked);
        asked
    }

    pub(super) fn asks_for(&self, (scheme, name): Rule) -> bool {
        self.schemes.contains(&scheme) && self.verifiers.contains(&name)
    }

    /// The schemes whose optima are measured for n drafts.
    pub(super) fn optima(&self, drafts: usize) -> Listed<SchemeName> {
        listed(schemes().filter(|scheme| self.schemes.contains(scheme) && scheme.fits(drafts)))
    }

    /// The own laws that are measured for n drafts.
    pub(super) fn laws(&self, drafts: usize) -> Vec<(OwnLawId, &OwnLaw)> {
        let all = self.own_laws.iter().enumerate();
        all.filter(|(_, law)| self.has_law(law, drafts))
            .map(|(at, law)| (OwnLawId(at), law))
            .collect()
    }

    /// Returns whether an own law is measured for n drafts: one that can only be drawn from is where a
    /// rule of the caller's own is drawn under it.
    pub(super) fn has_law(&self, law: &OwnLaw, drafts: usize) -> bool {
        let mut rules = self.own_rules.iter();
        law.fits(drafts) && (!law.is_sampled() || rules.any(|rule| rule.scheme() == law.name()))
    }

    /// Rules of the table that are measured under an own law: those that are lossless for what it
    /// is made as, but the one whose acceptance is alpha*.
    pub(super) fn rules_of(&self, law: &OwnLaw, drafts: usize) -> Vec<VerifierName> {
        let all = VerifierName::ALL.into_iter();
        all.filter(|name| *name != VerifierName::OPTIMAL && self.verifiers.contains(name))
            .filter(|name| !law.is_sampled() && name.is_lossless(law.made(), drafts))
            .collect()
    }

    /// The laws that are measured for n drafts, with their rules: those of the table, then own ones.
    pub(super) fn measured(&self, drafts: usize) -> Vec<LawMeasured<'_>> {
        let all = self.own(drafts);
        let own = |law: &str| {
            let of = all.iter().filter(|(_, rule)| rule.scheme() == law);
            of.copied().collect()
        };
        let of_table = |scheme: SchemeName| {
            let rules = self.rules(drafts).map(|(rule, _)| rule);
            LawMeasured {
                law: LawRef::Table(scheme),
                name: scheme.as_str(),
                status: scheme.entry().on_row.as_ref().map_or("", |row| row.status),
                rules: rules
                    .filter(|rule| rule.0 == scheme)
                    .map(|rule| rule.1)
                    .collect(),
                own: own(scheme.as_str()),
            }
        };
        let mut laws: Vec<LawMeasured<'_>> = self.optima(drafts).map(of_table).collect();
        laws.extend(self.laws(drafts).into_iter().map(|(id, law)| LawMeasured {
            law: LawRef::Own(id),
            name: law.name(),
            status: law.status(),
            rules: self.rules_of(law, drafts),
            own: own(law.name()),
        }));
        laws
    }

    /// The law whose drafts an own rule is for, if it is measured for n drafts.
    fn law_of(&self, rule: &OwnRule, drafts: usize) -> Option<LawRef> {
        match rule.of() {
            Law::Table(scheme) => (self.optima(drafts))
                .any(|one| one == *scheme)
                .then_some(LawRef::Table(*scheme)),
            Law::Own(name) => (self.laws(drafts).into_iter())
                .find(|(_, law)| law.name() == name)
                .map(|(id, _)| LawRef::Own(id)),
        }
    }

    /// The own rules that are measured for n drafts.
    pub(super) fn own(&self, drafts: usize) -> Vec<(Own, &OwnRule)> {
        let all = self.own_rules.iter().enumerate();
        all.filter(|(_, rule)| self.law_of(rule, drafts).is_some())
            .map(|(at, rule)| (Own(at), rule))
            .collect()
    }

    /// The law of the table that own laws are compared with: i.i.d. drafts, or else the first that
    /// is measured.
    fn usual_law(&self, drafts: usize) -> Option<SchemeName> {
        let mut all = self.optima(drafts);
        let iid = SchemeName::WITH_REPLACEMENT;
        all.clone().find(|one| *one == iid).or_else(|| all.next())
    }

    /// The own laws with their rules, each rate compared with the same of the usual law and of own
    /// laws behind it.
    fn laws_asked(&self, drafts: usize, table: &[Rule]) -> Vec<LawAsked> {
        let (all, usual) = (self.laws(drafts), self.usual_law(drafts));
        let asked = |(at, &(id, law)): (usize, &(OwnLawId, &OwnLaw))| {
            let rules = self.rules_of(law, drafts);
            let behind: Vec<_> = all.iter().skip(at + 1).copied().collect();
            let is_known = |law: &OwnLaw| !law.is_sampled();
            let mut pairs = Vec::new();
            let rates = std::iter::once(None).chain(rules.iter().copied().map(Some));
            for name in rates.filter(|_| is_known(law)) {
                let has = |rule: Rule| table.contains(&rule);
                let theirs = usual.filter(|&scheme| name.is_none_or(|name| has((scheme, name))));
                pairs.extend(theirs.map(|scheme| (name, LawRef::Table(scheme))));
                let has = |other: &OwnLaw| {
                    name.map_or_else(
                        || is_known(other),
                        |name| self.rules_of(other, drafts).contains(&name),
                    )
                };
                let others = behind.iter().filter(|(_, other)| has(other));
                pairs.extend(others.map(|&(id, _)| (name, LawRef::Own(id))));
            }
            LawAsked {
                id,
                law: law.clone(),
                rules,
                pairs,
            }
        };
        all.iter().enumerate().map(asked).collect()
    }

    /// The own rules, each with the rules of the table that are run on the same drafts, but those
    /// that accept alpha*, with the usual rule of i.i.d. drafts if its own are others, and with the
    /// own rules behind it on the same drafts, or of the same name.
    fn own_asked(&self, drafts: usize, table: &[Rule]) -> Vec<OwnAsked> {
        let all = self.own(drafts);
        let asked = |(at, &(own, rule)): (usize, &(Own, &OwnRule))| {
            let law = self.law_of(rule, drafts)?;
            let is_compared = |&(scheme, name): &Rule| match law {
                LawRef::Table(own) => scheme == own && !(name.entry().attains)(scheme),
                LawRef::Own(_) => {
                    (scheme, name) == (SchemeName::WITH_REPLACEMENT, VerifierName::RRS)
                }
            };
            let named = table.iter().copied().filter(is_compared);
            let mut pairs: Vec<Other> = named.map(Other::Table).collect();
            if let LawRef::Own(id) = law {
                let under = self.own_laws.get(id.0).into_iter();
                let under = under.flat_map(|law| self.rules_of(law, drafts));
                pairs.extend(under.map(|name| Other::Under(id, name)));
            }
            let others = all.iter().skip(at + 1).filter(|(_, other)| {
                self.law_of(other, drafts) == Some(law) || other.name() == rule.name()
            });
            pairs.extend(others.map(|&(other, _)| Other::Own(other)));
            Some(OwnAsked {
                own,
                rule: rule.clone(),
                law,
                pairs,
            })
        };
        all.iter().enumerate().filter_map(asked).collect()
    }

    /// Returns whether anything is measured that no command line can name.
    pub(super) fn has_own(&self) -> bool {
        !self.own_rules.is_empty() || !self.own_laws.is_empty()
    }

    pub(super) fn has(&self, drafts: usize, rule: Rule) -> bool {
        self.rules(drafts).any(|(known, _)| known == rule)
    }

    /// Names of the rules whose number it is, or of the two whose rates it is the difference of, each
    /// behind that of its law; alpha* of an own law is called its `optimum`.
    pub(super) fn rates(&self, metric: Metric) -> Vec<String> {
        let own_name = |Own(at): Own| {
            let rule = self.own_rules.get(at);
            rule.map_or_else(String::new, OwnRule::full_name)
        };
        let law_name = |law: LawRef, rule: Option<VerifierName>| {
            let law = match law {
                LawRef::Table(scheme) => scheme.as_str(),
                LawRef::Own(OwnLawId(at)) => self.own_laws.get(at).map_or("", OwnLaw::name),
            };
            format!("{law}/{}", rule.map_or("optimum", VerifierName::as_str))
        };
        match metric {
            Metric::Overlap { .. }
            | Metric::Optimum { .. }
            | Metric::FormulaError { .. }
            | Metric::Redrafted { .. } => Vec::new(),
            Metric::Acceptance { rule, .. }
            | Metric::Gap { rule, .. }
            | Metric::PlanError { rule, .. }
            | Metric::PlanSeconds { rule, .. }
            | Metric::PlanShortfall { rule, .. }
            | Metric::AuditDifference { rule, .. }
            | Metric::AuditOutside { rule, .. } => vec![rule_name(rule)],
            Metric::Difference { first, second, .. } => [first, second].map(rule_name).into(),
            Metric::Own { own, about, .. } => {
                let mut names = vec![own_name(own)];
                if let AboutOwn::Less(other) = about {
                    names.push(match other {
                        Other::Table(rule) => rule_name(rule),
                        Other::Own(own) => own_name(own),
                        Other::Under(law, name) => law_name(LawRef::Own(law), Some(name)),
                    });
                }
                names
            }
            Metric::OfLaw { law, about, .. } => {
                let own = |rule| law_name(LawRef::Own(law), rule);
                match about {
                    AboutLaw::Optimum => vec![own(None)],
                    AboutLaw::Acceptance(rule) | AboutLaw::Gap(rule) => vec![own(Some(rule))],
                    AboutLaw::Less(rule, other) => vec![own(rule), law_name(other, rule)],
                }
            }
        }
    }

    /// Returns what differs where two measurements are of other numbers, and its words.
    fn told(&self) -> [(&'static str, String); 14] {
        let any = |all: Vec<String>| match all.is_empty() {
            true => "none".to_owned(),
            false => all.join(", "),
        };
        let rule = |rule: &OwnRule| format!("{} of {} drafts", rule.name(), rule.scheme());
        let law = |law: &OwnLaw| {
            let sampled = if law.is_sampled() { "sampled " } else { "" };
            let (name, made, numbers) = (law.name(), law.made(), law.numbers());
            format!("{sampled}{name} as {made} of {numbers:?} drafts")
        };
        let [schemes, verifiers] = self.names();
        [
            ("⟨temperature⟩", list(&self.temperatures)),
            ("⟨drafts⟩", list(&self.drafts)),
            ("⟨laws⟩", schemes.join(",")),
            ("⟨verifiers⟩", verifiers.join(",")),
            ("⟨plans⟩", self.plans.as_str().to_owned()),
            ("⟨rrs-wo⟩", self.rrs_wo.as_str().to_owned()),
            ("⟨block-length⟩", self.block_length.to_string()),
            ("⟨draft-temperature⟩", list(&self.draft_temperatures)),
            (
                "⟨top-k⟩, ⟨top-p⟩, ⟨min-p⟩",
                format!("{:?}", self.cuts.told()),
            ),
            (
                "⟨draft-top-k⟩, ⟨draft-top-p⟩, ⟨draft-min-p⟩",
                format!("{:?}", self.draft_cuts),
            ),
            ("⟨seed⟩", self.seed.to_string()),
            ("⟨solve-times⟩", self.timing.to_string()),
            ("own rules", any(self.own_rules.iter().map(rule).collect())),
            ("own laws", any(self.own_laws.iter().map(law).collect())),
        ]
    }

    /// Checks whether two measurements are of the same numbers; if not, what differs.
    pub(super) fn same(&self, other: &Self) -> Result<(), String> {
        for ((what, own), (_, other)) in self.told().into_iter().zip(other.told()) {
            if own != other {
                let with = what.strip_suffix('⟩').map_or_else(
                    || format!("{what} {other}"),
                    |setting| format!("{setting} {other}⟩"),
                );
                return Err(format!(
                    "was measured with {with}, and the other part with {own}; give all \
                     parts the same options"
                ));
            }
        }
        let mut both = self.own_laws.iter().zip(&other.own_laws);
        both.try_for_each(|(own, other)| own.same(other))?;
        let mut both = self.own_rules.iter().zip(&other.own_rules);
        both.try_for_each(|(own, other)| own.same(other))
    }

    /// Names of the schemes and of the verifiers, in the order of reports and each once.
    pub(super) fn names(&self) -> [Vec<&'static str>; 2] {
        let schemes = schemes().filter(|name| self.schemes.contains(name));
        let verifiers = VerifierName::ALL
            .into_iter()
            .filter(|name| self.verifiers.contains(name));
        [
            schemes.map(|name| name.as_str()).collect(),
            verifiers.map(|name| name.as_str()).collect(),
        ]
    }

    /// The options of `specgap gap` that ask for this, but for defaults; each after a space.
    ///
    /// # Example
    /// ```
    /// use specgap_measure::Settings;
    /// let settings = Settings::new(&[0.7, 1.0], &[2, 3], 7)?;
    /// assert_eq!(settings.options(), " --drafts 2,3 --temperature 0.7,1.0 --seed 7");
    /// # Ok::<(), specgap_measure::GapError>(())
    /// ```
    pub fn options(&self) -> String {
        let [schemes, verifiers] = self.names();
        let mut options = format!(
            " --drafts {} --temperature {}",
            list(&self.drafts),
            list(&self.temperatures)
        );
        options += &self.cuts.options();
        if self.schemes != Self::schemes() {
            options += &format!(" --laws {}", schemes.join(","));
        }
        if self.verifiers != Self::verifiers() {
            options += &format!(" --verifiers {}", verifiers.join(","));
        }
        if self.plans != SolvedPlans::default() {
            options += &format!(" --plans {}", self.plans.as_str());
        }
        if self.rrs_wo != SlowRates::default() {
            options += &format!(" --rrs-wo {}", self.rrs_wo.as_str());
        }
        if self.block_length != Self::BLOCK_LENGTH {
            options += &format!(" --block-length {}", self.block_length);
        }
        if self.timing {
            options += " --solve-times";
        }
        if !self.draft_temperatures.is_empty() {
            options += &format!(" --draft-temperature {}", list(&self.draft_temperatures));
        }
        let of_draft = self.draft_cuts.unwrap_or_default();
        for (name, number) in of_draft.words() {
            options += &format!(" --draft-{name} {number}");
        }
        if let Some(order) = of_draft.cut_order.filter(|_| self.cuts.keep_all()) {
            options += &format!(" --cut-order {order}");
        }
        if self.seed != 0 {
            options += &format!(" --seed {}", self.seed);
        }
        options
    }
}

/// One of some parts of the positions of each log, which are dealt in stretches: of N
/// positions, part i of K has those from `N (i-1) / K` to `N i / K`, rounded down.
///
/// Stretches are as long as one another but for one position, follow the order of shards,
/// and may end within a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which one, from 1.
    pub index: usize,
    /// Of how many.
    pub count: usize,
}

impl Part {
    /// All positions.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// Returns its position numbers in a log of N.
    ///
    /// # Example
    /// ```
    /// use specgap_measure::Part;
    /// let part = |index| Part { index, count: 3 }.of(10);
    /// assert_eq!([part(1), part(2), part(3)], [0..3, 3..6, 6..10]);
    /// ```
    pub fn of(self, positions: usize) -> std::ops::Range<usize> {
        let count = self.count.max(1) as u128;
        let before = |parts: usize| {
            let end = positions as u128 * parts as u128 / count;
            usize::try_from(end).unwrap_or(positions).min(positions)
        };
        before(self.index.saturating_sub(1))..before(self.index)
    }
}
