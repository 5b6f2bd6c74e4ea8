//! Tokens of some texts with the gap at each.

use super::Settings;
use super::answers::Answers;
use super::data::{Strip, StripText, StripToken};
use super::metric::{Metric, Place, Rule, Temperature};
use super::unit::Unit;
use specgap_base::sorted::Map;
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::VerifierName;
use specgap_log::log::Metadata;
use specgap_number::known::Known;

/// Texts of the strip, and tokens of each.
const TEXTS: usize = 6;
const TOKENS: usize = 64;

/// Whose gap is shown.
const RULE: Rule = (SchemeName::WITH_REPLACEMENT, VerifierName::RRS);

/// The first tokens of the texts that come first, by unit and by position: what two
/// builders hold of two parts of the positions is enough for what one holds of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StripBuilder {
    /// By text, its prompt's name and its tokens by position number.
    pub texts: Map<Unit, (String, Map<usize, StripToken>)>,
}

/// Returns where the strip's gap is measured: the highest temperature, three drafts if there are.
fn place(settings: &Settings) -> Option<Place> {
    let three = settings.drafts.iter().copied().find(|&n| n == 3);
    let drafts = three.or(settings.drafts.first().copied())?;
    let temperature = Temperature(*settings.temperatures.last()?);
    Some(Place::new(temperature, drafts))
}

impl StripBuilder {
    /// Adds a position, if its text is among the first and its token has a text.
    pub(super) fn add(
        &mut self,
        settings: &Settings,
        metadata: &Metadata,
        unit: &Unit,
        number: usize,
        token: Option<i64>,
        answers: &Answers,
    ) {
        let late = self.texts.len() >= TEXTS
            && self
                .texts
                .last_key_value()
                .is_some_and(|(last, _)| unit > last);
        if late {
            return;
        }
        let Some(place) = place(settings) else { return };
        let find = |metric| answers.get(&metric).map(Known::value);
        let (scheme, rule) = (RULE.0, RULE);
        let (Some(text), Some(optimum), Some(acceptance)) = (
            token.and_then(|token| metadata.token_text.get(&token)),
            find(Metric::Optimum { place, scheme }),
            find(Metric::Acceptance { place, rule }),
        ) else {
            return;
        };
        let (_, tokens) = self.texts.at_or(unit.clone(), || {
            let record = metadata
                .prompts
                .iter()
                .find(|record| record.id == unit.number);
            let name = record.map_or_else(
                || format!("prompt {}", unit.number),
                |record| record.name.clone(),
            );
            (name, Map::new())
        });
        tokens.insert(
            number,
            StripToken {
                text: text.clone(),
                optimum,
                acceptance,
            },
        );
        self.cut();
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (unit, (name, tokens)) in &other.texts {
            let (_, own) = self
                .texts
                .at_or(unit.clone(), || (name.clone(), Map::new()));
            own.extend(
                tokens
                    .iter()
                    .map(|(&number, token)| (number, token.clone())),
            );
        }
        self.cut();
    }

    /// Keeps what comes first.
    fn cut(&mut self) {
        while self.texts.len() > TEXTS {
            self.texts.pop_last();
        }
        for (_, tokens) in self.texts.values_mut() {
            while tokens.len() > TOKENS {
                tokens.pop_last();
            }
        }
    }

    pub(super) fn strip(&self, settings: &Settings) -> Option<Strip> {
        let place = place(settings).filter(|_| !self.texts.is_empty())?;
        let texts = self.texts.values();
        Some(Strip {
            temperature: place.temperature.0,
            drafts: place.drafts,
            scheme: RULE.0.as_str().to_owned(),
            verifier: RULE.1.as_str().to_owned(),
            texts: texts
                .map(|(prompt, tokens)| StripText {
                    prompt: prompt.clone(),
                    tokens: tokens.values().cloned().collect(),
                })
                .collect(),
        })
    }
}
