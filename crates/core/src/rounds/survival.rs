//! How many drafted tokens are accepted, given the text that is put out.

use super::coins::Coins;
use crate::entry_name::entry_name;
use crate::rule::{Kept, RULES, RuleEntry, RuleName, named, rejection};
use specgap_number::number::Number;
use std::str::FromStr;

/// A rule that verifies one drafted chain of tokens and has the column [`RuleEntry::survival`].
#[derive(Clone, Copy)]
pub struct ChainRule(&'static RuleEntry, Kept);

entry_name!(ChainRule of RuleEntry);

impl ChainRule {
    /// Each token by itself.
    pub const TOKEN: Self = Self(&rejection::TOKEN, Kept::Tokens);
    /// Whole prefixes.
    pub const BLOCK: Self = Self(&named::BLOCK, Kept::Prefixes);
    /// Whole prefixes, as many as one round can take.
    pub const GREEDY_BLOCK: Self = Self(&named::GREEDY_BLOCK, Kept::MostPrefixes);

    /// All, in the order of the table of rules.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        let rules = RULES.iter().copied();
        rules.filter_map(|rule| Some(Self(rule, rule.survival?)))
    }

    /// The rule in the table of all rules.
    pub fn rule(self) -> RuleName {
        RuleName(self.0)
    }

    /// P(tau >= i) as a formula in the ratios of the text.
    pub fn formula(self) -> &'static str {
        match self.1 {
            Kept::Tokens => "E[product over j <= i of min(1, r_j)]",
            Kept::Prefixes => "E[min over 0 <= j <= i of R_j]",
            Kept::MostPrefixes => "E[min(1, R_i)]",
        }
    }

    /// Returns what it keeps of a chain.
    pub fn kept(self) -> Kept {
        self.1
    }

    /// Returns whether a round leaves the next one the model's own rows, so that rounds can be
    /// replayed one after the other.
    pub fn has_rounds(self) -> bool {
        !self.0.changes_target
    }
}

impl FromStr for ChainRule {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let rule = name.parse().ok();
        let known = Self::all().find(|one| Some(one.rule()) == rule);
        known.ok_or_else(|| {
            let all: Vec<&str> = Self::all().map(Self::as_str).collect();
            let all = all.join(", ");
            format!("{name} is no verifier of a chain; there are {all}")
        })
    }
}

/// The probability, given the text, that all drafts of a round so far are accepted.
///
/// # Formula
/// With r_j = q(y_j)/p(y_j) at the text's own tokens and R_i = r_1 ... r_i, R_0 = 1:
///
/// | verifier | P(tau >= i given the text) |
/// | --- | --- |
/// | token | product over j <= i of min(1, r_j) |
/// | block | min over 0 <= j <= i of R_j |
/// | greedy-block | min(1, R_i) |
///
/// Derived in `docs/theory/text-replay.md`.
///
/// # Exactness
/// Exact in rationals. In `f64` products that leave the range stay at its ends. A text
/// that is drawn from the target does not come near: the product over any stretch of it is
/// above x with probability 1/x at most, its mean being 1 at most.
///
/// # Source
/// token: Leviathan et al.; block and greedy-block: Sun et al., Block verification.
///
/// # Example
/// ```
/// use specgap_core::rounds::{ChainRule, Survival};
///
/// // r = 2, 1/2: the second token's loss is made up for by the first.
/// let reached = |verifier| {
///     let mut survival = Survival::new(verifier);
///     survival.take(&2.0);
///     survival.take(&0.5);
///     *survival.reached()
/// };
/// assert_eq!(reached(ChainRule::TOKEN), 0.5);
/// assert_eq!(reached(ChainRule::BLOCK), 1.0);
/// ```
#[derive(Clone, Debug)]
pub struct Survival<T> {
    kept: Kept,
    steps: Steps<T>,
}

impl<T: Number> Survival<T> {
    /// At the start of a round.
    pub fn new(verifier: ChainRule) -> Self {
        Self {
            kept: verifier.1,
            steps: Steps::start(),
        }
    }

    /// P(all drafts so far are accepted), given the text.
    pub fn reached(&self) -> &T {
        &self.steps.reached
    }

    /// Goes on by a token of the text, with its q/p.
    pub fn take(&mut self, ratio: &T) {
        match self.kept {
            Kept::Tokens => self.steps.token(ratio),
            Kept::Prefixes => self.steps.prefix(ratio),
            Kept::MostPrefixes => self.steps.most_prefixes(ratio),
        }
    }
}

/// The same without the rule, for loops that are compiled for each ([`by_step`]).
#[derive(Clone, Debug)]
pub(super) struct Steps<T> {
    reached: T,
    /// Of prefixes, R_i over the least R so far; of the most prefixes, R_i.
    product: T,
}

impl<T: Number> Steps<T> {
    #[inline(always)]
    pub(super) fn start() -> Self {
        Self {
            reached: T::one(),
            product: T::one(),
        }
    }

    #[inline(always)]
    pub(super) fn reached(&self) -> &T {
        &self.reached
    }

    #[inline(always)]
    pub(super) fn token(&mut self, ratio: &T) {
        self.reached = self.reached.times(&ratio.smaller(&T::one()));
    }

    #[inline(always)]
    pub(super) fn prefix(&mut self, ratio: &T) {
        let one = T::one();
        let product = scaled(&self.product, ratio);
        self.reached = self.reached.times(&product.smaller(&one));
        self.product = if product > one { product } else { one };
    }

    #[inline(always)]
    pub(super) fn most_prefixes(&mut self, ratio: &T) {
        self.product = scaled(&self.product, ratio);
        self.reached = self.product.smaller(&T::one());
    }
}

/// An expression, compiled for each rule's step.
macro_rules! by_step {
    (@$rule:ident, $step:ident => $result:expr) => {{
        let $step = crate::rounds::survival::Steps::$rule;
        $result
    }};
    ($verifier:expr, $step:ident => $result:expr) => {
        match $verifier.kept() {
            crate::rule::Kept::Tokens => by_step!(@token, $step => $result),
            crate::rule::Kept::Prefixes => by_step!(@prefix, $step => $result),
            crate::rule::Kept::MostPrefixes => by_step!(@most_prefixes, $step => $result),
        }
    };
}
pub(super) use by_step;

/// A round starts in front of a text, and behind each token but the last with what `pass` says.
pub(super) fn starts_along<E, T: Number>(text: &[E], pass: impl FnMut(&E) -> T) -> Vec<T> {
    let Some((_, drafted)) = text.split_last() else {
        return Vec::new();
    };
    let first = std::iter::once(T::one());
    first.chain(drafted.iter().map(pass)).collect()
}

/// A product that is 0 where a factor is, however large the other.
pub(super) fn scaled<T: Number>(product: &T, ratio: &T) -> T {
    if product.is_nil() || ratio.is_nil() {
        T::zero()
    } else {
        product.times(ratio)
    }
}

/// For every K from 1 to `most`, the sum of E\[tau given the text\] over the starts at which
/// K tokens are left, and how many such starts there are.
///
/// # Complexity
/// O(N * most).
///
/// # Example
/// ```
/// use specgap_core::rounds::{ChainRule, accepted_lengths};
/// let sums = accepted_lengths(ChainRule::TOKEN, &[0.5, 1.0, 0.25], 2);
/// // K = 2: starts 0 and 1, with 1/2 + 1/2 and 1 + 1/4.
/// assert_eq!(sums, [(1.75, 3), (2.25, 2)]);
/// ```
pub fn accepted_lengths<T: Number>(
    verifier: ChainRule,
    ratios: &(impl Coins<T> + ?Sized),
    most: usize,
) -> Vec<(T, usize)> {
    let mut sums = vec![(T::zero(), 0); most];
    for start in 0..ratios.tokens() {
        let mut survival = Survival::new(verifier);
        let mut length = T::zero();
        for ((sum, starts), ratio) in sums.iter_mut().zip(ratios.ahead(start)) {
            survival.take(ratio);
            length.gain(survival.reached());
            sum.gain(&length);
            *starts += 1;
        }
    }
    sums
}

/// For every K from 1 to `most`, the sum of E\[tau given the text\] over all starts, each with
/// K drafts or as many as tokens are left. The starts are the same for every K, so that it
/// never falls with K.
///
/// # Complexity
/// O(N * most).
///
/// # Example
/// ```
/// use specgap_core::rounds::{ChainRule, accepted_everywhere};
/// let sums = accepted_everywhere(ChainRule::TOKEN, &[0.5, 1.0, 0.25], 2);
/// // K = 2: 1/2 + 1/2, 1 + 1/4, and 1/4 with the one token that is left.
/// assert_eq!(sums, [1.75, 2.5]);
/// ```
pub fn accepted_everywhere<T: Number>(
    verifier: ChainRule,
    ratios: &(impl Coins<T> + ?Sized),
    most: usize,
) -> Vec<T> {
    let mut sums = vec![T::zero(); most];
    for start in 0..ratios.tokens() {
        let mut survival = Survival::new(verifier);
        let mut length = T::zero();
        let mut ahead = ratios.ahead(start).iter();
        for sum in &mut sums {
            if let Some(ratio) = ahead.next() {
                survival.take(ratio);
                length.gain(survival.reached());
            }
            sum.gain(&length);
        }
    }
    sums
}

/// [`accepted_lengths`] of token verification with the last coin of each place by its mean.
///
/// # Formula
/// `P(tau >= i) = E[product over j < i of a_j * m_i]`, a_j being the coins at the text's tokens
/// and m_i the mean of the i-th over a token drawn from p: sum of min(p, q) for sampled drafts,
/// p of q's likeliest token for one-hot ones. The prefix before place i is drawn from p, so that
/// the mean of a_i given it is m_i: as unbiased as the coins, with less scatter.
///
/// # Example
/// ```
/// use specgap_core::rounds::accepted_lengths_by_means;
/// // One start with two tokens left: 1/4 + 1/2 * 3/4.
/// let sums = accepted_lengths_by_means(&[0.5, 1.0], &[0.25, 0.75], 2);
/// assert_eq!(sums[1], (0.625, 1));
/// ```
pub fn accepted_lengths_by_means<T: Number>(
    coins: &(impl Coins<T> + ?Sized),
    means: &(impl Coins<T> + ?Sized),
    most: usize,
) -> Vec<(T, usize)> {
    let mut sums = vec![(T::zero(), 0); most];
    for start in 0..coins.tokens() {
        let mut survival = Survival::<T>::new(ChainRule::TOKEN);
        let mut length = T::zero();
        let ahead = coins.ahead(start).iter().zip(means.ahead(start));
        for ((sum, starts), (coin, mean)) in sums.iter_mut().zip(ahead) {
            length.gain(&survival.reached().times(mean));
            survival.take(coin);
            sum.gain(&length);
            *starts += 1;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimum::fractions;
    use specgap_number::distribution::Rational;

    /// E[tau] from everywhere never falls with K, for any ratios and any verifier.
    #[test]
    fn longer_rounds_from_the_same_starts_accept_no_less() {
        let ratios: Vec<f64> = (1..40u32)
            .map(|i| f64::from(i * i * 37 % 101) / 50.0)
            .collect();
        for verifier in ChainRule::all() {
            let sums = accepted_everywhere(verifier, &ratios, 45);
            assert!(sums.is_sorted(), "{verifier}: {sums:?}");
            // Of one draft every start is one that it fits.
            assert_eq!(sums[0], accepted_lengths(verifier, &ratios, 1)[0].0);
        }
    }

    /// p = (1/2, 1/2), q = (3/4, 1/4) everywhere: over all texts coins and means agree.
    #[test]
    fn the_last_coin_by_its_mean_is_unbiased() {
        let (mut coins, mut means) = (0.0, 0.0);
        for text in 0..8u32 {
            let ratios: Vec<f64> = (0..3)
                .map(|t| if text >> t & 1 == 0 { 1.5 } else { 0.5 })
                .collect();
            coins += accepted_lengths(ChainRule::TOKEN, &ratios, 3)[2].0;
            means += accepted_lengths_by_means(&ratios, &[0.75; 3], 3)[2].0;
        }
        assert!((coins - means).abs() < 1e-12, "{coins} {means}");
    }

    /// p = (1/2, 1/2), q = (3/4, 1/4) at every prefix, L = 3: all eight texts.
    #[test]
    fn the_three_verifiers_of_a_chain_of_three() {
        let ratio = fractions(&["3/2", "1/2"]);
        for (verifier, expected) in ChainRule::all().zip(fractions(&["111/64", "123/64", "67/32"]))
        {
            let mut sum = Rational::zero();
            for text in 0..8 {
                let ratios: Vec<Rational> = (0..3).map(|t| ratio[text >> t & 1].clone()).collect();
                sum.gain(&accepted_lengths(verifier, &ratios, 3)[2].0);
            }
            let eight = Rational::from_integer(8.into());
            assert_eq!(sum.over(&eight), expected, "{verifier}");
        }
    }

    #[test]
    fn ratios_beyond_the_range_leave_probabilities() {
        let wild = [1e300, 1e300, 0.0, f64::MAX, 1e-300, 1e-300, f64::MAX, 1e300];
        for verifier in ChainRule::all() {
            let mut survival = Survival::new(verifier);
            for (index, ratio) in wild.iter().enumerate() {
                survival.take(ratio);
                let reached = *survival.reached();
                assert!((0.0..=1.0).contains(&reached), "{verifier}: {reached}");
                assert_eq!(
                    reached == 1.0,
                    index < 2,
                    "{verifier} at {index}: {reached}"
                );
            }
            // What was rejected for sure stays rejected.
            assert_eq!(*survival.reached(), 0.0, "{verifier}");
        }
        // In the range of the exponent but far from 1: the product comes back.
        let mut survival = Survival::new(ChainRule::BLOCK);
        for ratio in [1e200, 1e-150, 1e-50] {
            survival.take(&ratio);
        }
        assert!((survival.reached() - 1.0).abs() < 1e-12);
        survival.take(&0.25);
        assert!((survival.reached() - 0.25).abs() < 1e-12);
    }
}
