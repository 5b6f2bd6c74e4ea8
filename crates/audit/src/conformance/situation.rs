//! The situations in which kernels go wrong, as rows.

use super::carry;
use super::rows::{draw, most, near, normalised, one_hot, row, wide};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap_base::named;
use specgap_core::rule::{Drafts, RuleName};
use specgap_core::scheme::SchemeName;

named! {
    /// What is special about the first position of a vector; the others of a chain are
    /// ordinary.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Situation {
        Random "random" "two rows that have little to do with each other";
        Close "close" "rows that are almost alike";
        Equal "equal" "p = q: every draft is kept, and nothing is left of p - q";
        Uniform "uniform" "all tokens equal in both rows";
        Peaked "peaked" "nearly all mass on one token, another one in each row";
        Disjoint "disjoint" "no token has mass in both rows: every draft is rejected";
        ZeroTarget "zero-target"
            "p = 0 at the drafted token, which is never kept, at u = 0 neither; half of the \
            tokens are 0/0";
        ZeroDraft "zero-draft"
            "q = 0 at the drafted token, which cannot have been drawn: only tokens of positive \
            p may come out";
        ZeroOverZero "zero-over-zero"
            "p = q = 0 at the drafted token: only tokens of positive p may come out";
        OneHotSame "one-hot-same" "both rows one-hot at the drafted token";
        OneHotDifferent "one-hot-different" "both rows one-hot, at different tokens";
        OneHotDraft "one-hot-draft" "q one-hot at the drafted token";
        OneHotTarget "one-hot-target" "p one-hot at another token than the drafted one";
        TinyResidual "tiny-residual"
            "p = q but for two tokens of mass 1e-15; a draft of one of them is rejected half of \
            the time, and then the other one comes out";
        Duplicate "duplicate" "the same token is drafted twice";
    }
}

/// What a kernel is given.
#[derive(Clone, Debug)]
pub(super) struct Vector {
    /// p of each position, and behind the chain.
    pub target: Vec<Vec<f32>>,
    /// q of each position of a chain, behind it where numbers are carried, or the one of all siblings.
    pub draft: Vec<Vec<f32>>,
    pub drafts: Vec<u32>,
    /// What the text before left, of rules that carry numbers.
    pub carry: Vec<f64>,
    /// The drafts can have been drawn.
    pub possible: bool,
}

/// The mass of [`Situation::TinyResidual`].
const TINY: f32 = 1e-15;

/// Those in which p alone has a say.
const OF_P: [Situation; 6] = {
    use Situation::{OneHotSame, OneHotTarget, Peaked, Random, Uniform, ZeroTarget};
    [
        Random,
        Uniform,
        Peaked,
        ZeroTarget,
        OneHotSame,
        OneHotTarget,
    ]
};

/// Those that have several tokens to draft.
const OF_DISTINCT: [Situation; 8] = {
    use Situation::{Close, Disjoint, Equal, OneHotTarget, Peaked, Random, Uniform, ZeroTarget};
    [
        Random,
        Close,
        Equal,
        Uniform,
        Peaked,
        Disjoint,
        ZeroTarget,
        OneHotTarget,
    ]
};

impl Situation {
    /// Those that a rule has at some size.
    pub(super) fn of(
        rule: RuleName,
        vocabulary: usize,
        drafts: usize,
        few: bool,
    ) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |situation| {
            let has_room = match situation {
                // Tokens of no mass, of some, and enough for distinct drafts.
                Self::ZeroTarget | Self::ZeroDraft | Self::ZeroOverZero => {
                    vocabulary >= 2 * drafts.max(2)
                }
                Self::TinyResidual => vocabulary >= 5,
                Self::Disjoint => vocabulary >= 2 * drafts.max(1),
                _ => true,
            };
            let fits = match rule.entry().drafts {
                Drafts::Drawn(_) if rule.is_chain() => *situation != Self::Duplicate,
                // Of q, the drafted token is all that there is.
                Drafts::Likeliest => OF_P.contains(situation),
                // Distinct drafts need as many tokens of positive q.
                Drafts::Drawn(law) if law.entry().distinct => {
                    vocabulary >= 2 * drafts && OF_DISTINCT.contains(situation)
                }
                Drafts::Drawn(_) => !matches!(situation, Self::ZeroDraft | Self::ZeroOverZero),
                // q plays no part.
                Drafts::Any => OF_P.contains(situation) || *situation == Self::Duplicate,
            };
            let chosen = !few
                || match rule.entry().drafts {
                    Drafts::Drawn(_) if rule.is_chain() => {
                        matches!(situation, Self::Random | Self::TinyResidual)
                    }
                    Drafts::Any => *situation == Self::Duplicate,
                    _ => *situation == Self::Random,
                };
            has_room && fits && chosen
        })
    }

    /// Lists whether it is had inside a text, of rules that carry numbers, and at the start of one.
    pub(super) fn places(self, rule: RuleName, few: bool) -> &'static [bool] {
        match (carry::width(rule, 1) > 0, few) {
            (false, _) => &[false],
            (true, false) => &[false, true],
            // What is left is tiny at the start of a text alone.
            (true, true) if self == Self::TinyResidual => &[false],
            (true, true) => &[true],
        }
    }

    /// The rows and drafts of this situation; of rules that carry numbers at the start of a text
    /// or inside one.
    pub(super) fn vector(
        self,
        rule: RuleName,
        vocabulary: usize,
        drafts: usize,
        inside: bool,
        seed: u64,
    ) -> Vector {
        let mut random = ChaCha8Rng::seed_from_u64(
            seed ^ ((vocabulary as u64) << 24)
                ^ ((drafts as u64) << 16)
                ^ (rule.entry().vectors.map_or(0, |vectors| vectors.stream) << 8)
                ^ self as u64,
        );
        let mut vector = self.first(vocabulary, &mut random);
        if rule == RuleName::ONE_HOT {
            let token = vector.drafts.first().copied().unwrap_or(0);
            vector.draft = vec![one_hot(vocabulary, token as usize)];
        }
        if rule.is_chain() {
            for _ in 1..drafts {
                let p = row(vocabulary, 2.0, &mut random);
                let q = near(&p, 0.7, &mut random);
                let token = draw(&q, &mut random);
                vector.draft.push(match rule == RuleName::ONE_HOT {
                    true => one_hot(vocabulary, token),
                    false => q,
                });
                vector.target.push(p);
                vector.drafts.push(token as u32);
            }
            let p = row(vocabulary, 2.0, &mut random);
            if carry::width(rule, drafts) > 0 {
                vector.draft.push(near(&p, 0.7, &mut random));
            }
            vector.target.push(p);
            vector.carry = match inside {
                true => carry::inside(rule, drafts, &mut random),
                false => carry::fresh(rule, drafts),
            };
        } else if rule.entry().drafts == Drafts::Drawn(SchemeName::STRATIFIED) {
            let q = vector.draft.first().cloned().unwrap_or_default();
            let wanted = vector.drafts.first().copied().unwrap_or(0);
            vector.drafts = of_strata(&q, wanted, drafts, &mut random);
        } else {
            let q = vector.draft.first().cloned().unwrap_or_default();
            while vector.drafts.len() < drafts {
                let distinct = rule.entry().drafts.are_distinct() || !rule.tests_drafts();
                let next = match (self, distinct) {
                    (Self::Duplicate, _) if vector.drafts.len() == 1 => {
                        vector.drafts.first().copied().unwrap_or(0)
                    }
                    (_, true) => another(&q, &vector.drafts),
                    _ => draw(&q, &mut random) as u32,
                };
                vector.drafts.push(next);
            }
        }
        vector
    }

    /// The first position.
    fn first(self, vocabulary: usize, random: &mut ChaCha8Rng) -> Vector {
        let last = vocabulary - 1;
        let half = vocabulary / 2;
        let spread = |random: &mut ChaCha8Rng| row(vocabulary, 2.0, random);
        let only = |row: &[f32], keep: &dyn Fn(usize) -> bool| {
            let kept = row.iter().enumerate();
            let kept = kept.map(|(i, &x)| if keep(i) { f64::from(x) } else { 0.0 });
            normalised(kept.collect())
        };
        let (target, draft, token, possible) = match self {
            Self::Random | Self::Duplicate => {
                let (p, q) = (spread(random), spread(random));
                let token = draw(&q, random);
                (p, q, token, true)
            }
            Self::Close => {
                let p = spread(random);
                let q = near(&p, 0.1, random);
                // A token that can be rejected.
                let token = most(vocabulary, |i| f64::from(q[i]) - f64::from(p[i]));
                (p, q, token, true)
            }
            Self::Equal => {
                let p = spread(random);
                let token = draw(&p, random);
                (p.clone(), p, token, true)
            }
            Self::Uniform => {
                let p = normalised(vec![1.0; vocabulary]);
                (p.clone(), p, last, true)
            }
            Self::Peaked => {
                let peak = |at: usize, random: &mut ChaCha8Rng| {
                    let all = (0..vocabulary).map(|_| random.random::<f64>());
                    let mut all: Vec<f64> = all.collect();
                    let rest: f64 = all.iter().sum();
                    all[at] = 1e6 * rest;
                    normalised(all)
                };
                let p = peak(0, random);
                let q = peak(last, random);
                (p, q, last, true)
            }
            Self::Disjoint => {
                let (p, q) = (spread(random), spread(random));
                let (p, q) = (only(&p, &|i| i < half), only(&q, &|i| i >= half));
                let token = draw(&q, random);
                (p, q, token, true)
            }
            Self::ZeroTarget | Self::ZeroDraft | Self::ZeroOverZero => {
                let (p, q) = (spread(random), spread(random));
                // The upper half is 0 in both rows, but for what is drafted there.
                let held = |i: usize| i < vocabulary - half;
                let p = only(&p, &|i| held(i) || (i == last && self == Self::ZeroDraft));
                let q = only(&q, &|i| held(i) || (i == last && self == Self::ZeroTarget));
                (p, q, last, self == Self::ZeroTarget)
            }
            Self::OneHotSame => {
                let p = one_hot(vocabulary, last);
                (p.clone(), p, last, true)
            }
            Self::OneHotDifferent => (one_hot(vocabulary, last), one_hot(vocabulary, 0), 0, true),
            Self::OneHotDraft => {
                let p = spread(random);
                (p, one_hot(vocabulary, half), half, true)
            }
            Self::OneHotTarget => {
                let q = spread(random);
                (one_hot(vocabulary, last), q, 0, true)
            }
            Self::TinyResidual => {
                let p = spread(random);
                let mut p = only(&p, &|i| i >= 2);
                let mut q = p.clone();
                // Token 1 was drafted twice as often as wanted; token 0 never was.
                (p[0], q[0]) = (TINY, 0.0);
                (p[1], q[1]) = (TINY, 2.0 * TINY);
                (p, q, 1, true)
            }
        };
        Vector {
            target: vec![target],
            draft: vec![draft],
            drafts: vec![token as u32],
            carry: Vec::new(),
            possible,
        }
    }
}

/// Drafts of strata, a token that has some of q among them: it is drafted where it first can be.
fn of_strata(row: &[f32], wanted: u32, count: usize, random: &mut ChaCha8Rng) -> Vec<u32> {
    let q = wide(row);
    let (mut drafts, mut weights) = (Vec::with_capacity(count), Vec::new());
    let drafting = SchemeName::STRATIFIED.drafting(&q, count);
    for _ in 0..count {
        drafting.next(&drafts, &mut weights);
        let law: Vec<f32> = weights.iter().map(|&x| x as f32).collect();
        let can_be = law.get(wanted as usize).is_some_and(|&x| x > 0.0);
        drafts.push(match can_be && !drafts.contains(&wanted) {
            true => wanted,
            false => draw(&law, random) as u32,
        });
    }
    drafts
}

/// The likeliest token that is not among some; where all mass is taken, the first of the
/// others.
fn another(row: &[f32], taken: &[u32]) -> u32 {
    let free = |i: &usize| !taken.contains(&(*i as u32));
    let value = |i: usize| row.get(i).copied().unwrap_or(0.0);
    let all = (0..row.len()).filter(free);
    let best = all.max_by(|&a, &b| value(a).total_cmp(&value(b)).then(b.cmp(&a)));
    best.unwrap_or(0) as u32
}
