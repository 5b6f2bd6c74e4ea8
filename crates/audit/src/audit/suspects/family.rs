//! All suspects: what they change, at which sizes, under which name, and in which words.

use super::target::{Change, UNDRAFTED};
use crate::audit::data::Claimed;
use crate::audit::model::bugs::{Bug, bugs_of};
use crate::audit::model::rule::Rule;
use serde_json::{Map, Value, json};
use specgap_base::named;
use specgap_core::rule::Drafts;
use specgap_core::scheme::SchemeName;
use std::collections::BTreeMap;

/// Where a change of p is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Everywhere,
    Check,
    Correction,
    Drafted,
    Bonus,
}

/// How drafts are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Keep {
    /// min(1, p/(c q)), or min(1, p/c) where the rule looks at p alone.
    Over(f64),
    All,
    None,
    /// p/(its largest).
    OfLargest,
    /// If it is the likeliest token.
    IfLikeliest,
    /// Where the rule's coin refuses it.
    IfRefused,
    /// p(x).
    Target,
    /// min(1, p/q).
    Ratio,
}

/// What replaces a rejected draft.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Correct {
    Claimed,
    Residual,
    Target,
    Draft,
    OffDraft,
    Likeliest,
    /// The likeliest of the residual.
    LikeliestLeft,
    First,
    /// exp of the residual, scaled.
    Softmax,
    /// The residual as it is, and what it lacks to 1 on the last token.
    NotNormalised,
}

named! {
    /// A number that is used twice within a round, by the name of its family.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Reused {
        Coin "coin-is-the-drafts-number"
            "the coin of acceptance is the number that drew the draft";
        OtherCoin "coin-is-the-drafts-number"
            "the coin of acceptance is one minus the number that drew the draft";
        CoinCorrects "correction-reuses-the-coin"
            "the correction is drawn with the coin that refused the draft";
        DraftCorrects "correction-reuses-the-drafts-number"
            "the correction is drawn with the number that drew the draft";
        ClocksCorrect "correction-reuses-the-drafts-number"
            "the correction is drawn with the clocks that drew the draft";
    }
}

/// How the numbers that drew a draft draw the target's token too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    ById,
    ByMass,
    /// An exponential clock a token, or its Gumbel noise.
    Clocks,
}

/// A law of what an engine does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Law {
    Target(Change, Place),
    /// p and q at another temperature.
    Both(f64),
    Draft(Change),
    /// Another row of the draft wherever q is used.
    OtherDraft(Change),
    /// Another row of the draft where drafts are tested and replaced, and not where they are drawn.
    Tested(Change),
    /// Each of several drafts is held against a draw of its own from p.
    DrawForEach,
    /// Drafts are drawn where the likeliest is claimed, or the other way around.
    Sampled,
    Likeliest,
    Decide(Keep, Correct),
    Number(Reused, bool),
    /// The draft is kept if the target draws it too, with the numbers that drew it.
    Shares(Shared),
    /// Whatever it does with several drafts, or carries.
    Engine(&'static Bug),
}

/// A suspect: a law in its family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Suspect {
    /// Its place in [`Families::names`].
    pub family: usize,
    pub law: Law,
    /// Its change of p, by its place in [`Families::changes`].
    pub change: usize,
    /// Its change of q, by its place in [`Families::drafts`].
    pub draft: usize,
}

/// All suspects of a rule, family after family.
#[derive(Clone, Debug, Default)]
pub(crate) struct Families {
    pub names: Vec<&'static str>,
    pub suspects: Vec<Suspect>,
    /// All changes of p, and of q, each once.
    pub changes: Vec<Change>,
    pub drafts: Vec<Change>,
}

/// Factors of a temperature. 0 is greedy.
const FACTORS: [f64; 20] = [
    0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.05, 1.1, 1.15, 1.25, 1.4, 1.6, 1.8, 2.0,
    2.5, 3.0,
];

/// The largest of them.
pub(crate) const HOTTEST: f64 = FACTORS[FACTORS.len() - 1];

const TOP_K: [usize; 27] = [
    2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 36, 40, 45, 50, 64, 80, 100, 128, 160, 200, 256,
    320, 400, 512,
];
const TOP_P: [f64; 18] = [
    0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995,
    0.998, 0.999,
];
const MIN_P: [f64; 10] = [0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3];
const FLOOR: [f64; 4] = [1e-2, 3e-3, 1e-3, 1e-4];
const MIXED: [f64; 8] = [0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98];
const PENALTY: [f64; 6] = [0.1, 0.3, 0.5, 1.0, 1.5, 2.0];
const AGAIN: [f64; 6] = [0.3, 0.6, 1.2, 1.5, 2.0, 4.0];
const REPETITION: [f64; 6] = [1.05, 1.1, 1.2, 1.3, 1.5, 2.0];
const OVER: [f64; 12] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0];

/// A few of a grid, for changes at one place of a round.
fn few<T: Copy>(grid: &[T], every: usize) -> impl Iterator<Item = T> + '_ {
    grid.iter().copied().skip(every / 2).step_by(every)
}

/// A row at another temperature, at fewer sizes.
fn tempered() -> impl Iterator<Item = Change> {
    let factors = few(&FACTORS, 2).filter(|factor| *factor > 0.0);
    factors.map(Change::Temperature)
}

/// Claimed cuts that are not made.
fn uncut(cuts: usize) -> impl Iterator<Item = Change> {
    let missing = if cuts > 1 { 0..4 } else { 0..1 };
    missing.map(Change::Uncut)
}

/// What audits may name as a cause, by its name: what the engine does then, of one size, and what to do.
#[must_use]
pub fn causes() -> BTreeMap<&'static str, String> {
    let mut all = BTreeMap::new();
    for rule in [Rule::TEXT, Rule::TOKEN, Rule::ONE_HOT, Rule::CARRIED] {
        let families = Families::of(rule, 3, 2, false);
        for suspect in &families.suspects {
            let meaning = || {
                let (words, cure) = (suspect.law.words(), suspect.law.cure());
                format!("a cause that an audit names. Example: {words}. What to do: {cure}")
            };
            all.entry(families.names[suspect.family])
                .or_insert_with(meaning);
        }
    }
    all
}

impl Families {
    fn add(&mut self, name: &'static str, laws: impl IntoIterator<Item = Law>) {
        let laws: Vec<Law> = laws.into_iter().collect();
        if laws.is_empty() {
            return;
        }
        let family = self.names.len();
        self.names.push(name);
        for law in laws {
            let [change, draft] = self.changes_of(law);
            self.suspects.push(Suspect {
                family,
                law,
                change,
                draft,
            });
        }
    }

    fn changes_of(&mut self, law: Law) -> [usize; 2] {
        let [p, q] = match law {
            Law::Target(change, _) => [Some(change), None],
            Law::Draft(change) | Law::OtherDraft(change) | Law::Tested(change) => {
                [None, Some(change)]
            }
            Law::Both(factor) => [Some(Change::Temperature(factor)); 2],
            _ => [None; 2],
        };
        let place = |all: &mut Vec<Change>, change: Option<Change>| {
            let Some(change) = change else {
                return usize::MAX;
            };
            let found = all.iter().position(|own| *own == change);
            found.unwrap_or_else(|| {
                all.push(change);
                all.len() - 1
            })
        };
        [place(&mut self.changes, p), place(&mut self.drafts, q)]
    }

    /// One family of these laws.
    pub(crate) fn only(name: &'static str, laws: Vec<Law>) -> Self {
        let mut all = Self::default();
        all.add(name, laws);
        all
    }

    /// All suspects of a rule. `cuts` says how many cuts are claimed, `siblings` that drafts are
    /// alternatives for one position.
    pub(crate) fn of(rule: Rule, cuts: usize, orders: usize, siblings: bool) -> Self {
        let mut all = Self::default();
        all.changes_of_p(Place::Everywhere, cuts, orders);
        if rule == Rule::TEXT {
            return all;
        }
        if siblings {
            let sizes = draws_one_by_one(rule);
            if sizes {
                let factors = FACTORS.into_iter().skip(1).map(Change::Temperature);
                all.add("draft-temperature", factors.map(Law::Draft));
                all.cuts("draft-cut", false, Law::Draft);
            }
            for bug in bugs_of(rule).filter(|bug| !is_of_p(bug)) {
                let name = named(bug.name);
                let is_sized = sizes && matches!(name, "draft-temperature" | "draft-cut");
                if !is_sized && name != "lenient-acceptance" {
                    all.add(name, [Law::Engine(bug)]);
                }
            }
            let keeps = |over| Law::Decide(Keep::Over(over), Correct::Claimed);
            all.add("accepts-more", [0.6, 0.8, 0.9].map(keeps));
            all.add("accepts-less", [1.25, 2.0].map(keeps));
            if rule.drafts() == Drafts::Any {
                all.add("target-draw-for-each-draft", [Law::DrawForEach]);
            } else if let Drafts::Drawn(_) = rule.drafts() {
                all.add("draft-of-its-own-row", tempered().map(Law::OtherDraft));
            }
            return all;
        }
        use Place::{Bonus, Check, Correction, Drafted};
        for place in [Check, Correction, Drafted, Bonus] {
            all.changes_at(place, cuts, rule);
        }
        let late = PENALTY.into_iter().flat_map(|b| {
            let window = UNDRAFTED;
            [
                Change::Presence { b, window },
                Change::Frequency { b, window },
            ]
        });
        all.add(
            "penalty-lag",
            late.map(|change| Law::Target(change, Place::Everywhere)),
        );
        let drawn = rule.drafts() == Drafts::Drawn(SchemeName::WITH_REPLACEMENT);
        if drawn {
            all.add("temperature", FACTORS.into_iter().skip(1).map(Law::Both));
        }
        all.drafts(rule, drawn);
        all.decisions(rule);
        if rule.tests_drafts() && rule != Rule::CARRIED && drawn {
            for reused in Reused::ALL {
                let orders: &[bool] = match reused {
                    Reused::ClocksCorrect => &[false],
                    _ => &[false, true],
                };
                let laws = orders.iter().map(|&sorted| Law::Number(reused, sorted));
                all.add(reused.as_str(), laws);
            }
        }
        if shares_numbers(rule) {
            let numbers = [Shared::ById, Shared::ByMass, Shared::Clocks];
            all.add("exact-match-with-shared-numbers", numbers.map(Law::Shares));
        }
        if rule == Rule::CARRIED {
            let carries = |bug: &&Bug| matches!(bug.name, "carries-nothing" | "bonus-from-p");
            for bug in bugs_of(rule).filter(carries) {
                all.add(bug.name, [Law::Engine(bug)]);
            }
        }
        all
    }

    /// Cuts of p, or of drafts, at all sizes that people write: where outcomes are certain, one of them
    /// excludes each neighbour in a coarse grid.
    pub(crate) fn finer(rule: Rule, of_drafts: bool) -> Self {
        let mut all = Self::default();
        if !of_drafts {
            let law = |change| Law::Target(change, Place::Everywhere);
            all.cuts("target-cut", true, law);
        } else if draws_one_by_one(rule) {
            all.cuts("draft-cut", true, Law::Draft);
        }
        all
    }

    /// Tells whether what was drafted is learnt along a log.
    pub(crate) fn learn_drafts(&self) -> bool {
        self.drafts.contains(&Change::Unseen(8.0))
    }

    fn cuts(&mut self, name: &'static str, finer: bool, law: impl Fn(Change) -> Law) {
        let hundredths = |from: u32, to: u32| {
            let all = if finer { from..to } else { 0..0 };
            all.map(|number| f64::from(number) / 100.0)
        };
        let more = if finer { 7..41 } else { 0..0 };
        let top_k = TOP_K.into_iter().chain(more).map(Change::TopK);
        let top_p = TOP_P.into_iter().chain(hundredths(50, 100));
        let min_p = MIN_P.into_iter().chain(hundredths(1, 31));
        self.add(name, top_k.map(&law));
        self.add(name, top_p.map(Change::TopP).map(&law));
        self.add(name, min_p.map(Change::MinP).map(&law));
    }

    fn changes_of_p(&mut self, place: Place, cuts: usize, orders: usize) {
        let law = |change| Law::Target(change, place);
        self.add("temperature", FACTORS.map(Change::Temperature).map(law));
        self.cuts("target-cut", false, law);
        self.add("target-cut", FLOOR.map(Change::Floor).map(law));
        if cuts > 0 {
            self.add("cut-missing", uncut(cuts).map(law));
            self.add("cut-order", (0..orders).map(Change::Order).map(law));
        }
        self.add("ensemble", MIXED.map(Change::Ensemble).map(law));
        let factors = [0.0, 0.35, 0.75, 1.35, 2.7];
        let parts = [2u8, 4, 8].into_iter();
        let parts = parts.flat_map(|of| (0..of).map(move |at| (of, at)));
        let ranges =
            parts.flat_map(|(of, at)| factors.map(|factor| law(Change::Range { of, at, factor })));
        self.add("id-range", ranges);
        let penalties = |of: fn(f64, usize) -> Change| {
            let windows = [usize::MAX, 64, 10].into_iter();
            windows.flat_map(move |window| PENALTY.map(|b| law(of(b, window))))
        };
        let presence = penalties(|b, window| Change::Presence { b, window });
        self.add("presence-penalty", presence);
        let frequency = penalties(|b, window| Change::Frequency { b, window });
        self.add("frequency-penalty", frequency);
        let repetition = REPETITION.map(Change::Repetition).map(law);
        self.add("repetition-penalty", repetition);
        self.add("no-repeat", [1, 2, 3].map(Change::NoRepeat).map(law));
        self.add("pair-bias", AGAIN.map(Change::Again).map(law));
        self.add("rows-off-by-one-place", [law(Change::Before)]);
        self.add("token-bias", [2.0, 8.0].map(Change::Learnt).map(law));
        self.add("token-banned", [3.0, 8.0].map(Change::Unseen).map(law));
    }

    /// Adds changes of the target's row at one place of a round, at fewer sizes.
    fn changes_at(&mut self, place: Place, cuts: usize, rule: Rule) {
        let law = |change| Law::Target(change, place);
        let factors = few(&FACTORS, 2).chain([0.0]);
        self.add("temperature", factors.map(Change::Temperature).map(law));
        let cut = few(&TOP_K, 3).map(Change::TopK);
        let cut = cut.chain(few(&TOP_P, 2).map(Change::TopP));
        let cut = cut.chain(few(&MIN_P, 2).map(Change::MinP));
        self.add("target-cut", cut.map(law));
        if cuts > 0 {
            self.add("cut-missing", uncut(cuts).map(law));
        }
        // Keeping by a mixture is keeping a share of what the rule refuses, and leaves the same residual.
        let is_kept_anyway = matches!(place, Place::Check | Place::Drafted) && rule.tests_drafts();
        if !is_kept_anyway {
            self.add("ensemble", few(&MIXED, 3).map(Change::Ensemble).map(law));
        }
        if place == Place::Bonus {
            self.add("bonus-from-q", [law(Change::Ensemble(0.0))]);
        }
        self.add("rows-off-by-one-place", [law(Change::Before)]);
        let windows = [usize::MAX, 10];
        let both = |b, window| {
            [
                Change::Presence { b, window },
                Change::Frequency { b, window },
            ]
        };
        let penalties = windows
            .into_iter()
            .flat_map(|window| few(&PENALTY, 2).flat_map(move |b| both(b, window)));
        self.add("presence-penalty", penalties.map(law));
        if place == Place::Drafted || place == Place::Bonus {
            let kinds = [(false, false), (false, true), (true, false), (true, true)];
            let lag = |b| kinds.map(|(counts, ever)| Change::Lag { b, counts, ever });
            self.add("penalty-lag", PENALTY.into_iter().flat_map(lag).map(law));
        }
    }

    fn drafts(&mut self, rule: Rule, drawn: bool) {
        if drawn {
            let factors = FACTORS.into_iter().skip(1).map(Change::Temperature);
            self.add("draft-temperature", factors.map(Law::Draft));
            self.cuts("draft-cut", false, Law::Draft);
            self.add("draft-likeliest", [Law::Likeliest]);
            let own = tempered().chain(few(&TOP_K, 3).map(Change::TopK));
            let own: Vec<Change> = own.chain(few(&TOP_P, 2).map(Change::TopP)).collect();
            if rule.tests_drafts() {
                self.add("ratio-of-another-q", own.iter().copied().map(Law::Tested));
            }
            let never = [3.0, 8.0].map(Change::Unseen);
            self.add("draft-banned", never.map(Law::Draft));
            let own = own.into_iter().chain([Change::Allowed]).chain(never);
            self.add("draft-of-its-own-row", own.map(Law::OtherDraft));
            self.add("draft-uniform", [Law::Draft(Change::Uniform)]);
            let before = [Law::Draft(Change::Before), Law::OtherDraft(Change::Before)];
            self.add("draft-rows-off-by-one-place", before);
        } else if rule.drafts() == Drafts::Likeliest {
            self.add("draft-sampled", [Law::Sampled]);
        }
    }

    fn decisions(&mut self, rule: Rule) {
        use Law::Decide;
        let claimed = Correct::Claimed;
        let over = |fits: fn(&f64) -> bool| {
            let sizes = OVER.into_iter().filter(fits);
            sizes.map(|c| Decide(Keep::Over(c), claimed))
        };
        let keeps = |keep| move |correct| Decide(keep, correct);
        let corrects = keeps(Keep::Over(1.0));
        self.add("accepts-more", over(|c| *c < 1.0));
        self.add("accepts-less", over(|c| *c > 1.0));
        self.add("accepts-everything", [Decide(Keep::All, claimed)]);
        self.add(
            "accepts-what-it-should-refuse",
            [Decide(Keep::IfRefused, claimed)],
        );
        self.add("never-accepts", [Decide(Keep::None, Correct::Target)]);
        self.add("never-accepts-and-corrects", [Decide(Keep::None, claimed)]);
        let largest = [claimed, Correct::OffDraft].map(keeps(Keep::OfLargest));
        self.add("accepts-by-the-largest", largest);
        let likeliest = [claimed, Correct::Target].map(keeps(Keep::IfLikeliest));
        self.add("accepts-the-likeliest", likeliest);
        if rule.tests_drafts() {
            self.add("exact-match", [Decide(Keep::Target, Correct::OffDraft)]);
            self.add("accepts-with-p", [Decide(Keep::Target, claimed)]);
            let off = corrects(Correct::OffDraft);
            self.add("correction-off-the-draft-only", [off]);
        } else {
            self.add("token", [Decide(Keep::Ratio, Correct::Residual)]);
            self.add("accepts-with-ratio", [Decide(Keep::Ratio, claimed)]);
            let residual = corrects(Correct::Residual);
            self.add("correction-from-the-residual", [residual]);
        }
        self.add("correction-from-p", [corrects(Correct::Target)]);
        self.add("correction-from-q", [corrects(Correct::Draft)]);
        let likeliest = [Correct::Likeliest, Correct::LikeliestLeft];
        self.add("correction-likeliest", likeliest.map(corrects));
        self.add("correction-first-token", [corrects(Correct::First)]);
        if rule.tests_drafts() {
            self.add("correction-by-softmax", [corrects(Correct::Softmax)]);
            let not_normalised = corrects(Correct::NotNormalised);
            self.add("correction-not-normalised", [not_normalised]);
        }
    }
}

/// Tells whether the next draft is one of q's tokens, but for those that may not come again.
pub(crate) fn draws_one_by_one(rule: Rule) -> bool {
    let laws = [
        SchemeName::WITH_REPLACEMENT,
        SchemeName::WITHOUT_REPLACEMENT,
    ];
    matches!(rule.drafts(), Drafts::Drawn(law) if laws.contains(&law))
}

/// Tells whether shared numbers are suspected where this rule is named.
pub(crate) fn shares_numbers(rule: Rule) -> bool {
    rule.drafts() != Drafts::Likeliest && rule != Rule::CARRIED
}

/// A bug by the name of its cause.
fn named(bug: &'static str) -> &'static str {
    match bug {
        "flatter-drafts" | "sharper-drafts" => "draft-temperature",
        "top-50-drafts" | "top-10-drafts" | "nucleus-drafts" => "draft-cut",
        "argmax-drafts" => "draft-likeliest",
        "sampled-drafts" => "draft-sampled",
        "greedy-acceptance" => "accepts-the-likeliest",
        "residual-never-taken" => "residual-not-updated",
        "rejection-sampling" => "token",
        other => other,
    }
}

/// Tells whether an engine is honest but for its p: those are suspects of their own.
fn is_of_p(bug: &Bug) -> bool {
    use crate::audit::model::engine::{Change, engine};
    let target = bug.engine.target;
    target != Change::Same && bug.engine == engine!(target: target)
}

/// Names the place of a change and puts it in words, where it is a part of its name.
fn at(place: Place) -> Option<(&'static str, &'static str)> {
    match place {
        Place::Everywhere => None,
        Place::Check => Some(("acceptance", "where drafts are accepted")),
        Place::Correction => Some(("correction", "where a rejected draft is replaced")),
        Place::Drafted => Some((
            "drafted",
            "where drafts are verified, and not behind whole chains",
        )),
        Place::Bonus => Some(("bonus", "behind whole chains alone")),
    }
}

impl Law {
    /// Tells whether it says nothing where the draft's row is not known.
    pub(crate) fn needs_draft(self) -> bool {
        match self {
            Self::Target(change, _) => matches!(change, Change::Ensemble(_)),
            Self::Decide(Keep::Ratio, _) => true,
            Self::Decide(_, correct) => {
                use Correct::{Draft, NotNormalised, Residual, Softmax};
                matches!(correct, Draft | NotNormalised | Residual | Softmax)
            }
            _ => true,
        }
    }

    /// Tells whether outputs follow p whatever it does to acceptance.
    pub(crate) fn is_lossless(self, rule: Rule) -> bool {
        match self {
            Self::Decide(Keep::Target, Correct::OffDraft)
            | Self::Decide(Keep::None, Correct::Target)
            | Self::Shares(_) => true,
            Self::Decide(Keep::Ratio, Correct::Residual) => matches!(rule.drafts(), Drafts::Any),
            // What keeps drafts as claimed loses what the claim does.
            Self::Sampled | Self::OtherDraft(_) => rule.is_lossless(),
            Self::Draft(_) | Self::Likeliest => !rule.tests_drafts() && rule.is_lossless(),
            Self::Engine(bug) => matches!(bug.name, "levels-inside-strata" | "carries-nothing"),
            _ => false,
        }
    }

    /// Returns its size, by name.
    pub(crate) fn fit(self) -> Map<String, Value> {
        let mut fit = Map::new();
        let mut put = |name: &str, value: Value| {
            fit.insert(name.to_owned(), value);
        };
        match self {
            Self::Target(change, place) => {
                change.put(&mut put);
                if let Some((name, _)) = at(place) {
                    put("at", json!(name));
                }
            }
            Self::Both(factor) => {
                put("factor", json!(factor));
                put("of", json!("p and q"));
            }
            Self::Draft(change) | Self::OtherDraft(change) | Self::Tested(change) => {
                change.put(&mut put);
            }
            Self::Decide(Keep::Over(over), Correct::Claimed) => {
                put("factor", json!((1e4 / over).round() / 1e4));
            }
            Self::Number(reused, sorted) => {
                let order = if sorted { "by falling mass" } else { "by id" };
                put("order", json!(order));
                if reused == Reused::OtherCoin {
                    put("coin", json!("1 - u"));
                }
            }
            Self::Shares(numbers) => put(
                "numbers",
                json!(match numbers {
                    Shared::ById => "one a place, by id",
                    Shared::ByMass => "one a place, by falling mass",
                    Shared::Clocks => "a clock a token",
                }),
            ),
            _ => {}
        }
        fit
    }

    /// Says in words what the engine does.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Target(change, place) => {
                let place = at(place).map_or(String::new(), |(_, words)| format!(" {words}"));
                format!("{}{place}", change.words("the target's row"))
            }
            Self::Both(factor) => format!(
                "p and q are taken at {} times the claimed temperature",
                short(factor)
            ),
            Self::Draft(change) => match change {
                Change::Before => {
                    "drafts are drawn from the draft's row of the place before".to_owned()
                }
                Change::Uniform => "drafts are any token".to_owned(),
                _ => format!(
                    "{}, for the draws of drafts alone",
                    change.words("the draft's row")
                ),
            },
            Self::OtherDraft(Change::Before) => {
                "the q that drafts is that of the place before, and not the log's".to_owned()
            }
            Self::OtherDraft(change) => format!(
                "{} wherever it is used: the log's q is not the q that drafted",
                change.words("the draft's row")
            ),
            Self::Tested(change) => format!(
                "{} where drafts are tested, and not where they are drawn",
                change.words("the draft's row")
            ),
            Self::DrawForEach => "each draft is held against a draw of its own from p".to_owned(),
            Self::Likeliest => {
                "drafts are the likeliest token of q, and are tested as if drawn from q".to_owned()
            }
            Self::Sampled => {
                "drafts are drawn from q where the likeliest token is claimed".to_owned()
            }
            Self::Decide(keep, correct) => decision(keep, correct),
            Self::Number(reused, _) => reused.words().to_owned(),
            Self::Shares(_) => "the target's token is drawn with the numbers that drew the draft, which is kept if both are the same".to_owned(),
            Self::Engine(bug) => bug.words.to_owned(),
        }
    }

    /// Says what to do about it.
    pub(crate) fn cure(self) -> &'static str {
        match self {
            Self::Target(change, Place::Everywhere) => change.cure(),
            Self::Target(..) => {
                "let every place of a round use the row that plain sampling uses: the same temperature, cuts and penalties for acceptance, correction and the token behind a whole chain"
            }
            Self::Both(_) => {
                "pass --temperature as the request had it, or give the engine the temperature of the request"
            }
            Self::OtherDraft(Change::Before) => {
                "log the row that the draft was drawn from: move the draft's rows by one place, or look for a drafter that is a step behind"
            }
            Self::OtherDraft(Change::Allowed) => {
                "nothing is lost: log the draft's row as it is masked or cut, or say --draft-mask or how it is cut"
            }
            Self::OtherDraft(_) => {
                "nothing is lost: log the q that drafted, or pass --draft-temperature, --draft-cut, --draft-top-k, --draft-top-p or --draft-min-p"
            }
            Self::Tested(_) => "test drafts with the q that they were drawn from",
            Self::DrawForEach => {
                "draw one token of the target, and keep the draft that equals it, if one does"
            }
            Self::Draft(_) => {
                "test drafts with the row that they were drawn from, or draw them from the claimed one"
            }
            Self::Likeliest => {
                "sample the drafts, or test them as one-hot (keep with p(x)) and name the rule one-hot"
            }
            Self::Sampled => {
                "nothing is lost if they are kept with p(x): name the rule exact-match, or draft the likeliest"
            }
            Self::Decide(keep, correct) => cure_of(keep, correct),
            Self::Number(..) => {
                "draw a new random number for each draft, each coin and each correction"
            }
            Self::Shares(_) => {
                "nothing is lost: this keeps more drafts than exact-match with numbers of its own, and min(1, p/q) at least as many"
            }
            Self::Engine(bug) => bug.cure,
        }
    }
}

/// What to do where tokens never come.
pub(crate) const BANS: &str =
    "look for what bans it: bad words, logit_bias, an ended or reserved token";

/// So many sizes between the neighbours of one in a grid.
const FINER: usize = 41;

/// Sizes between the neighbours of one: evenly, of what `of` makes of them.
fn between(grid: &[f64], at: f64, of: fn(f64) -> f64, back: fn(f64) -> f64) -> Vec<f64> {
    let mut sorted = grid.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let sizes = || sorted.iter().copied();
    let below = sizes().filter(|x| *x < at && *x > 0.0);
    let below = below.fold(f64::NAN, f64::max);
    let above = sizes().find(|x| *x > at).unwrap_or(f64::NAN);
    let step = |x: f64, y: f64| match x.is_nan() {
        true => 2.0 * of(at) - of(y),
        false => of(x),
    };
    let (low, high) = (step(below, above), step(above, below));
    let each = (high - low) / (FINER - 1) as f64;
    let all = (0..FINER).map(|i| back(low + each * i as f64));
    all.map(|x| (x * 1e4).round() / 1e4)
        .filter(|x| x.is_finite())
        .chain([at])
        .collect()
}

/// So, and all sizes of one or two digits there, as people write them: of a cut, one outcome may leave a single size.
fn between_written(
    grid: &[f64],
    at: f64,
    of: fn(f64) -> f64,
    back: fn(f64) -> f64,
    part: fn(f64) -> f64,
) -> Vec<f64> {
    let mut all = between(grid, at, of, back);
    let ends = || all.iter().map(|x| part(*x));
    let low = ends().fold(f64::INFINITY, f64::min);
    let high = ends().fold(0.0, f64::max);
    let unit = 10f64.powf(high.log10().ceil() - 2.0);
    let written = (1..=100).map(|i| f64::from(i) * unit);
    let written = written.filter(|x| *x > low && *x < high);
    all.extend(written.map(|x| (part(x) * 1e6).round() / 1e6));
    all.sort_unstable_by(f64::total_cmp);
    all.dedup();
    all
}

/// Sizes between the neighbours of one, evenly by their logarithms.
fn evenly(grid: &[f64], at: f64) -> Vec<f64> {
    between(grid, at, f64::ln, f64::exp)
}

fn each<T, U>(sizes: Vec<T>, of: impl Fn(T) -> U) -> Vec<U> {
    sizes.into_iter().map(of).collect()
}

impl Law {
    /// Lists the same law at sizes around its own.
    pub(crate) fn around(self) -> Vec<Self> {
        match self {
            Self::Target(change, place) => {
                each(change.around(), |change| Self::Target(change, place))
            }
            Self::Draft(change) => each(change.around(), Self::Draft),
            Self::Tested(change) => each(change.around(), Self::Tested),
            Self::OtherDraft(change) => each(change.around(), Self::OtherDraft),
            Self::Both(factor) => each(evenly(&FACTORS, factor), Self::Both),
            Self::Decide(Keep::Over(over), Correct::Claimed) => each(evenly(&OVER, over), |over| {
                Self::Decide(Keep::Over(over), Correct::Claimed)
            }),
            _ => Vec::new(),
        }
    }
}

/// Tells whether a number of a fit is a size.
pub(crate) fn is_size(name: &str) -> bool {
    let sizes = ["factor", "top_k", "top_p", "min_p", "weight", "penalty"];
    sizes.contains(&name)
}

fn decision(keep: Keep, correct: Correct) -> String {
    let keeps = match keep {
        Keep::Over(1.0) => String::new(),
        Keep::Over(over) => format!(
            "drafts are kept with {} times the rule's probability, at most 1",
            short(1.0 / over)
        ),
        Keep::All => "every draft is kept".to_owned(),
        Keep::None => "no draft is ever kept".to_owned(),
        Keep::OfLargest => "drafts are kept with p(x) over the largest p".to_owned(),
        Keep::IfLikeliest => "a draft is kept if it is the target's likeliest token".to_owned(),
        Keep::IfRefused => "a draft is kept where the rule's coin refuses it".to_owned(),
        Keep::Target => "drafts are kept with p(x)".to_owned(),
        Keep::Ratio => "drafts are kept with min(1, p/q)".to_owned(),
    };
    let corrects = match correct {
        Correct::Claimed => return keeps,
        Correct::Residual => "rejected drafts are replaced from (p - q)+",
        Correct::Target if keep == Keep::None => "every token is the target's own draw",
        Correct::Target => "rejected drafts are replaced from all of p",
        Correct::Draft => "rejected drafts are replaced from q",
        Correct::OffDraft => "rejected drafts are replaced from p without them",
        Correct::Likeliest => "rejected drafts are replaced by the target's likeliest token",
        Correct::LikeliestLeft => "rejected drafts are replaced by the likeliest token of (p - q)+",
        Correct::First => "rejected drafts are replaced by token 0",
        Correct::Softmax => "rejected drafts are replaced from a softmax of (p - q)+",
        Correct::NotNormalised => {
            "rejected drafts are replaced from (p - q)+ that is not normalised, so that the last token takes what it lacks"
        }
    };
    match keeps.is_empty() {
        true => corrects.to_owned(),
        false => format!("{keeps}, and {corrects}"),
    }
}

fn cure_of(keep: Keep, correct: Correct) -> &'static str {
    match (keep, correct) {
        (Keep::None, Correct::Target) => {
            "nothing is lost but time: look at why p(x) >= u q(x) never holds (a NaN, a stale q, a counter)"
        }
        (Keep::None, _) => {
            "look at why p(x) >= u q(x) never holds (a NaN, a stale q); while no draft is kept, draw from p"
        }
        (Keep::All, _) => "look for an acceptance test that is skipped",
        (Keep::IfLikeliest, _) => {
            "the verifier's temperature is taken for 0: pass it the request's"
        }
        (Keep::Target, Correct::OffDraft) => {
            "nothing is lost: name the rule exact-match (or one-hot), or test drafts with min(1, p/q), which keeps more"
        }
        (Keep::Ratio, Correct::Residual) => {
            "lossless if drafts are drawn from q (name the rule token), lossy if they are not"
        }
        (Keep::Over(1.0), Correct::OffDraft) => "subtract all of q: (p - q)+",
        (Keep::Over(1.0), Correct::Softmax | Correct::NotNormalised) => {
            "divide (p - q)+ by its sum"
        }
        (Keep::Over(1.0), _) => "draw it from what the rule leaves of p",
        (Keep::Over(_), _) => {
            "set acceptance thresholds to 1, and test p and q of the same temperature and cuts"
        }
        _ => "keep drafts with the rule's own probability",
    }
}

/// A number in as few digits as tell it.
pub(crate) fn short(x: f64) -> String {
    let rounded = (x * 1e4).round() / 1e4;
    match rounded == 0.0 && x > 0.0 {
        true => format!("{x:.1e}"),
        false => format!("{rounded}"),
    }
}

fn window_words(window: usize) -> String {
    match window {
        usize::MAX => "the text".to_owned(),
        UNDRAFTED => "what came otherwise than as a draft that was kept".to_owned(),
        window => format!("the last {window} tokens"),
    }
}

impl Change {
    /// Lists the same change at sizes around its own.
    fn around(self) -> Vec<Self> {
        let plain = |x: f64| x;
        let is_share = |x: &f64| *x > 0.0 && *x < 1.0;
        match self {
            Self::Temperature(at) if at > 0.0 => each(evenly(&FACTORS, at), Self::Temperature),
            Self::TopK(k) => {
                let below = TOP_K.into_iter().filter(|other| *other < k).max();
                let above = TOP_K.into_iter().find(|other| *other > k);
                let (below, above) = (below.unwrap_or(k), above.unwrap_or(2 * k));
                let step = (above - below).div_ceil(64).max(1);
                let sizes = (below..=above).step_by(step).chain([k]);
                sizes.map(Self::TopK).collect()
            }
            Self::TopP(p) => {
                let (of, back) = (|p: f64| (1.0 - p).ln(), |x: f64| 1.0 - x.exp());
                let mut all = between_written(&TOP_P, p, of, back, |p| 1.0 - p);
                all.retain(is_share);
                each(all, Self::TopP)
            }
            Self::MinP(p) => {
                let all = between_written(&MIN_P, p, f64::ln, f64::exp, plain);
                each(all, Self::MinP)
            }
            Self::Ensemble(w) if w > 0.0 => {
                let mut all = between(&MIXED, w, plain, plain);
                all.retain(is_share);
                each(all, Self::Ensemble)
            }
            Self::Presence { b, window } => {
                each(evenly(&PENALTY, b), |b| Self::Presence { b, window })
            }
            Self::Frequency { b, window } => {
                each(evenly(&PENALTY, b), |b| Self::Frequency { b, window })
            }
            Self::Lag { b, counts, ever } => {
                each(evenly(&PENALTY, b), |b| Self::Lag { b, counts, ever })
            }
            Self::Repetition(r) => each(evenly(&REPETITION, r), Self::Repetition),
            _ => Vec::new(),
        }
    }

    /// The order of cuts that it is.
    pub(crate) fn order_of(self, claimed: &Claimed) -> Option<String> {
        let Self::Order(number) = self else {
            return None;
        };
        let all = crate::audit::evidence::rows::orders_of(claimed);
        all.get(number)?.cut_order.as_ref().map(ToString::to_string)
    }

    fn put(self, put: &mut dyn FnMut(&str, Value)) {
        if let Self::Presence { window, .. } | Self::Frequency { window, .. } = self
            && window < usize::MAX
            && window != UNDRAFTED
        {
            put("window", json!(window));
        }
        match self {
            Self::Temperature(factor) => put("factor", json!(factor)),
            Self::TopK(k) => put("top_k", json!(k)),
            Self::TopP(p) => put("top_p", json!(p)),
            Self::MinP(p) => put("min_p", json!(p)),
            Self::Floor(p) => put("floor", json!(p)),
            Self::Ensemble(w) => put("weight", json!(w)),
            Self::Range { of, at, factor } => {
                put("part", json!(at));
                put("of", json!(of));
                put("times", json!(factor));
            }
            Self::Presence { b, .. } | Self::Frequency { b, .. } => put("penalty", json!(b)),
            Self::Repetition(r) | Self::Lag { b: r, .. } => put("penalty", json!(r)),
            Self::NoRepeat(n) => put("tokens", json!(n)),
            Self::Again(times) => put("times", json!(times)),
            Self::Uncut(which) => {
                let cut = CUTS.get(usize::from(which)).copied();
                put("cut", json!(cut.unwrap_or("all")));
            }
            Self::Allowed => put("of", json!("tokens that p has")),
            Self::Order(_) | Self::Before | Self::Uniform | Self::Learnt(_) | Self::Unseen(_) => {}
        }
    }

    fn words(self, row: &str) -> String {
        match self {
            Self::Temperature(0.0) => format!("{row} is taken at temperature 0: its likeliest token"),
            Self::Temperature(factor) => format!("{row} is taken at {} times the claimed temperature", short(factor)),
            Self::TopK(k) => format!("{row} is cut: top-k {k}"),
            Self::TopP(p) => format!("{row} is cut: top-p {}", short(p)),
            Self::MinP(p) => format!("{row} is cut: min-p {}", short(p)),
            Self::Floor(p) => format!("tokens of {row} below {} never come", short(p)),
            Self::Order(_) => format!("{row} is cut in another order"),
            Self::Uncut(0) => format!("the claimed cuts of {row} are not made"),
            Self::Uncut(which) => format!("{} of {row} is not made", CUTS.get(usize::from(which)).copied().unwrap_or("a cut")),
            Self::Ensemble(0.0) => format!("the draft's row stands in the place of {row}"),
            Self::Ensemble(w) => format!("{row} is mixed with the draft's: {} p + {} q", short(w), short(1.0 - w)),
            Self::Range { of, at, factor: 0.0 } => format!("no token of part {} of {of} of the ids comes", at + 1),
            Self::Range { of, at, factor } => format!("tokens of part {} of {of} of the ids come {} times as often against the others", at + 1, short(factor)),
            Self::Presence { b, window } => format!("a presence penalty of {} over {}", short(b), window_words(window)),
            Self::Frequency { b, window } => format!("a frequency penalty of {} over {}", short(b), window_words(window)),
            Self::Repetition(r) => format!("a repetition penalty of {}", short(r)),
            Self::NoRepeat(1) => "the token before never comes again".to_owned(),
            Self::NoRepeat(n) => format!("no {n} tokens that came before come again in a row"),
            Self::Again(times) => format!("pairs of tokens that came before come again {} times as often against others", short(times)),
            Self::Lag { b, counts, ever } => format!("a {} penalty of {} {}", if counts { "frequency" } else { "presence" }, short(b), if ever { "never counts drafts that were kept" } else { "counts the tokens of a round late" }),
            Self::Unseen(_) => "some tokens never come".to_owned(),
            Self::Before => format!("{row} is that of the place before"),
            Self::Uniform => "any token".to_owned(),
            Self::Allowed => format!("{row} has the target's tokens alone"),
            Self::Learnt(_) => "some tokens come more often than they should, and others less, whatever stands before".to_owned(),
        }
    }

    pub(crate) fn cure(self) -> &'static str {
        match self {
            Self::Temperature(0.0) => {
                "pass the request's temperature to the sampler; a greedy engine has no law to test"
            }
            Self::Temperature(_) => {
                "pass --temperature as the request had it, or give the sampler the temperature of the request, once"
            }
            Self::TopK(_) | Self::TopP(_) | Self::MinP(_) | Self::Floor(_) => {
                "asked for no cut? Look for a default: generation_config.json, or the server's own; if it was asked for, pass --top-k, --top-p or --min-p"
            }
            Self::Order(_) => {
                "if that is your tool's order, say it with --cut-order, or in the log's sampling.cut_order"
            }
            Self::Uncut(_) => "make the claimed cuts wherever p is used, or claim what is made",
            Self::Ensemble(_) => "set the weight of the draft to 0",
            Self::Range { .. } => {
                "look for ids that are masked, biased, or padded: bad words, logit_bias, a vocabulary that is cut"
            }
            Self::Lag { .. }
            | Self::Presence {
                window: UNDRAFTED, ..
            }
            | Self::Frequency {
                window: UNDRAFTED, ..
            } => "count each accepted token before the next position is verified",
            Self::Presence { .. } | Self::Frequency { .. } | Self::Repetition(_) => {
                "set penalties to none, or log rows behind them"
            }
            Self::NoRepeat(_) => "set no_repeat_ngram_size to 0, or log rows behind it",
            Self::Again(_) => {
                "look for bans, biases or penalties that depend on the token before (bad words of several tokens, DRY)"
            }
            Self::Before => {
                "move rows by one place: the row of a position is computed from the tokens before it"
            }
            Self::Uniform => "draw from the row",
            Self::Allowed => "mask the draft's row, or say --draft-mask",
            Self::Learnt(_) => "look for a logit bias, or for rows of another head",
            Self::Unseen(_) => BANS,
        }
    }
}

const CUTS: [&str; 4] = ["all", "top-k", "top-p", "min-p"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suspect_has_words_and_a_cure() {
        for rule in Rule::all() {
            for siblings in [false, true] {
                let all = Families::of(rule, 2, 3, siblings);
                assert!(all.names.len() > 10, "{rule}");
                for suspect in &all.suspects {
                    assert!(suspect.family < all.names.len());
                    assert!(!suspect.law.words().is_empty(), "{:?}", suspect.law);
                    assert!(!suspect.law.cure().is_empty(), "{:?}", suspect.law);
                }
            }
        }
    }
}
