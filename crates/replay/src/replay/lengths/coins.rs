//! What drafts are accepted by along a text, as rounds are replayed by it.

use super::super::position::TextPosition;
use super::super::read::Text;
use super::drafts::Drafts;
use specgap_core::rounds::floats::oracle_calls;
use specgap_core::rounds::{ByStart, Coins, oracle_calls_to_the_end};

/// A number of a position.
pub(super) type OfPlace<T> = fn(&TextPosition) -> T;

/// Which ratios stand for those that depend on tokens that rows do not list.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Unlisted {
    /// Those of the mass that is not listed.
    Whole,
    /// The least that they can be: none is accepted that need not be.
    Rejected,
    /// The most that they can be.
    Accepted,
}

/// The coins of drafts along a text, by a number of which 1 is the most that counts; of sampled
/// ones q/p, of which block verification takes all.
pub(super) fn coins(text: &Text, drafts: Drafts, unlisted: Unlisted) -> TextCoins {
    TextCoins::of(&text.places, &text.by_start, coin(drafts, unlisted))
}

/// The same of the first draft of a round alone, whichever token that is.
pub(super) fn ratios(text: &Text, drafts: Drafts, unlisted: Unlisted) -> Vec<f64> {
    text.places.iter().map(coin(drafts, unlisted)).collect()
}

/// Numbers of the positions that rounds meet along a text.
#[derive(Clone, Debug)]
pub(super) enum TextCoins {
    /// The same from every start.
    ByToken(Vec<f64>),
    ByStart(ByStart<f64>),
}

impl TextCoins {
    /// A number of each position of a text, or of those that it meets behind each start where that
    /// depends on the start.
    pub(super) fn of(
        places: &[TextPosition],
        by_start: &[Vec<TextPosition>],
        value: impl Fn(&TextPosition) -> f64,
    ) -> Self {
        match by_start.is_empty() {
            true => Self::ByToken(places.iter().map(value).collect()),
            false => {
                let rows = by_start.iter();
                Self::ByStart(ByStart(
                    rows.map(|row| row.iter().map(&value).collect()).collect(),
                ))
            }
        }
    }

    /// The calls of the oracle: of tokens that no coin accepts.
    pub(super) fn oracle_calls(&self) -> f64 {
        match self {
            Self::ByToken(ratios) => oracle_calls(ratios),
            Self::ByStart(coins) => coins.oracle_calls().max(fewest_by_length(coins)),
        }
    }

    /// The same where a text's last token is always the target's.
    pub(super) fn oracle_calls_to_the_end(&self) -> f64 {
        match self {
            Self::ByToken(ratios) => oracle_calls_to_the_end(ratios),
            Self::ByStart(coins) => coins.oracle_calls_to_the_end().max(fewest_by_length(coins)),
        }
    }
}

/// A call puts out K drafts and one token at most.
fn fewest_by_length(coins: &ByStart<f64>) -> f64 {
    let most = coins.0.iter().map(Vec::len).max().unwrap_or(0);
    (coins.0.len() as f64 / (most + 1) as f64).ceil()
}

impl Coins<f64> for TextCoins {
    fn tokens(&self) -> usize {
        match self {
            Self::ByToken(coins) => coins.tokens(),
            Self::ByStart(coins) => coins.tokens(),
        }
    }

    fn ahead(&self, start: usize) -> &[f64] {
        match self {
            Self::ByToken(coins) => coins.ahead(start),
            Self::ByStart(coins) => coins.ahead(start),
        }
    }
}

/// A position's coin.
fn coin(drafts: Drafts, unlisted: Unlisted) -> impl Fn(&TextPosition) -> f64 {
    let (value, bounds): (OfPlace<f64>, OfPlace<[f64; 2]>) = match drafts {
        Drafts::Sampled => (|place| place.ratio, |place| place.ratio_bounds),
        Drafts::OneHot => (hit, |place| [hit(place); 2]),
        Drafts::ExactMatch => (|place| place.draft, |place| place.draft_bounds),
        Drafts::SharedGumbel => (
            |place| place.one_noise[0],
            |place| [place.one_noise[1], place.one_noise[2]],
        ),
    };
    move |place: &TextPosition| match unlisted {
        Unlisted::Whole => value(place),
        Unlisted::Rejected => bounds(place)[0],
        Unlisted::Accepted => bounds(place)[1],
    }
}

fn hit(place: &TextPosition) -> f64 {
    f64::from(u8::from(place.hit == Some(true)))
}

/// Returns what a coin is on average over the token, drawn from p.
pub(super) fn mean_of_coin(place: &TextPosition, drafts: Drafts) -> Option<f64> {
    match drafts {
        Drafts::Sampled => place.exact_overlap,
        Drafts::OneHot => place.p_hit,
        Drafts::ExactMatch | Drafts::SharedGumbel => None,
    }
}
