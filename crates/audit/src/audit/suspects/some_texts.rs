//! Numbers that come again in some texts of many.
//!
//! A text draws with numbers of its own, or with those of one of the first texts: its law is a mixture over both,
//! whose weights are learnt from the texts before it. It is told of whole texts, since one token says little of which
//! of them its text repeats.

use super::sequence::{Drawn, Fact, Number};
use super::view::common;
use crate::audit::evidence::bets::log_sum;
use specgap_base::sorted::Map;

/// Texts that others are held against.
pub(crate) const FIRST: usize = 32;

/// What a token gains that came there before, where the sampler has no cells.
const GAIN: f64 = 8.0;

/// Cells are known to about so much: sums over many tokens end elsewhere by that.
const ROUNDING: f64 = 1e-9;

/// Tokens in the row's order, by falling mass, and those that come again; of all numbers, and of tokens alone.
const LAWS: [&str; 6] = [
    "of some texts, with tokens in the row's order",
    "of some texts, with tokens by falling probability",
    "of some texts, by tokens that come again",
    "of tokens of some texts, in the row's order",
    "of tokens of some texts, by falling probability",
    "of tokens of some texts that come again",
];
const ORDERS: usize = 3;

type Cells = [Option<[f64; 2]>; 2];

/// By law: ln of how likely a text is, if it draws with the numbers of each of the first, over the claim.
type Open = [[f64; FIRST]; LAWS.len()];

/// One law of all texts.
#[derive(Clone, Debug, Default)]
struct Shares {
    log: f64,
    /// Texts that drew with numbers of their own, and with those of each of the first.
    own: f64,
    of: [f64; FIRST],
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SomeTexts {
    laws: [Shares; LAWS.len()],
    /// What the first texts drew, by round, place in it and kind.
    first: Map<(usize, usize, Drawn), Vec<(usize, Cells)>>,
    open: Map<usize, Open>,
}

/// The share of a cell that lies in another, over what it has of all numbers.
fn factor(known: [f64; 2], own: [f64; 2]) -> f64 {
    let [known, own] = [known, own].map(|[low, high]| [low - ROUNDING, high + ROUNDING]);
    common(known, own) / ((known[1] - known[0]) * (own[1] - own[0]))
}

impl SomeTexts {
    pub(crate) fn look(&mut self, fact: &Fact) {
        let open = self.open.at_or(fact.text, || [[0.0; FIRST]; LAWS.len()]);
        for number in &fact.numbers {
            let place = (fact.round, fact.depth + number.nth, number.drawn);
            let first = self.first.get(&place).into_iter().flatten();
            for (text, cells) in first.filter(|(text, _)| *text < fact.text) {
                for (order, factor) in factors(number, *text, cells).into_iter().enumerate() {
                    let log = factor.max(0.0).ln();
                    open[order][*text] += log;
                    if number.drawn == Drawn::Token {
                        open[order + ORDERS][*text] += log;
                    }
                }
            }
            if fact.text < FIRST {
                self.first.at(place).push((fact.text, number.cells));
            }
        }
        if fact.ends {
            self.close(fact.text);
        }
    }

    /// Weighs texts of which nothing held against its row came last.
    pub(crate) fn close_all(&mut self) {
        while let Some((&text, _)) = self.open.first_key_value() {
            self.close(text);
        }
    }

    fn close(&mut self, text: usize) {
        let open = self.open.remove(&text);
        for (law, logs) in self.laws.iter_mut().zip(open.iter().flatten()) {
            law.look(logs.get(..text.min(FIRST)).unwrap_or_default());
        }
    }

    /// The largest of the laws, with its name.
    pub(crate) fn largest(&self) -> (f64, &'static str) {
        let laws = self.laws.iter().map(|law| law.log).zip(LAWS);
        laws.fold(
            (0.0, ""),
            |most, own| if own.0 > most.0 { own } else { most },
        )
    }

    /// ln of their mean.
    pub(crate) fn mixture(&self) -> f64 {
        log_sum(self.laws.iter().map(|law| law.log)) - (LAWS.len() as f64).ln()
    }
}

/// By order: what a text's number says of that it is this one.
fn factors(number: &Number, text: usize, known: &Cells) -> [f64; ORDERS] {
    let of = |order: usize| match (known[order], number.cells[order]) {
        (Some(known), Some(own)) => factor(known, own),
        _ => 1.0,
    };
    if number.drawn == Drawn::Coin {
        return [of(0); ORDERS];
    }
    let mut first = number.first.iter();
    let again = first.find(|(first, ..)| *first == text);
    let again = again.map_or(1.0, |(_, hit, mass)| {
        (1.0 + f64::from(u8::from(*hit)) * GAIN) / (1.0 + GAIN * mass)
    });
    [of(0), of(1), again]
}

impl Shares {
    /// A text, by what it is if it draws as each of those before it.
    fn look(&mut self, logs: &[f64]) {
        if logs.is_empty() {
            return;
        }
        let all = self.of.iter().take(logs.len());
        let sum: f64 = all.clone().sum();
        let seen = self.own + sum;
        let each = logs.len() as f64;
        let parts = logs.iter().zip(all);
        let parts = parts.map(|(log, count)| log + ((count + 1.0 / each) / (seen + 2.0)).ln());
        let own = ((self.own + 1.0) / (seen + 2.0)).ln();
        let parts: Vec<f64> = parts.collect();
        let log = log_sum(parts.iter().copied().chain([own]));
        self.log += log;
        self.own += (own - log).exp();
        for (count, part) in self.of.iter_mut().zip(parts) {
            *count += (part - log).exp();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_draws_alone_or_as_one_before_it() {
        let fact = |text: usize, cell: [f64; 2], ends: bool| Fact {
            text,
            ends,
            numbers: vec![Number {
                drawn: Drawn::Coin,
                nth: 0,
                cells: [Some(cell), None],
                again: [None; 2],
                first: Vec::new(),
            }],
            ..Fact::default()
        };
        let mut found = SomeTexts::default();
        found.look(&fact(0, [0.0, 0.5], true));
        // A text whose last token is held against nothing is weighed in the end.
        found.look(&fact(1, [0.0, 0.25], false));
        assert_eq!(found.largest(), (0.0, ""));
        found.close_all();
        let same = 0.25 / (0.5 * 0.25);
        let expected = (0.5f64 + 0.5 * same).ln();
        let of = |law: usize| found.laws[law].log;
        assert!((of(0) - expected).abs() < 1e-7 && of(ORDERS).abs() < 1e-12);
    }
}
