//! The line that vLLM's server logs every ten seconds.
//!
//! Looked up in vLLM (`vllm/v1/spec_decode/metrics.py` at ee4ceaae): `SpecDecoding metrics: Mean acceptance
//! length: 2.37, .., Accepted: 89 tokens, Drafted: 975 tokens, Per-position acceptance rate: 0.600, ..,
//! Avg Draft acceptance rate: 9.1%`.

use super::read::{Text, agree_by_place, by_rates, word};
use crate::counters::counted::{Counted, CountersError, Rounds, Source};

const LINE: &str = "SpecDecoding metrics:";

pub(super) fn is_it(text: &str) -> bool {
    text.contains(LINE)
}

/// The number behind a name.
fn number(line: &str, name: &str) -> Option<f64> {
    let word = word(line, &[name], char::is_whitespace, &[',', ' ', '%'])?;
    let number: f64 = word.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

fn rates(line: &str) -> Option<Vec<f64>> {
    let (_, rest) = line.split_once("Per-position acceptance rate:")?;
    let words = rest.split(',').map(str::trim);
    let rates: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
    (!rates.is_empty()).then_some(rates)
}

pub(super) fn read(files: &[Text<'_>]) -> Result<Counted, CountersError> {
    let (mut all, mut rounded) = (Vec::new(), false);
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let Some((_, line)) = line.split_once(LINE) else {
                continue;
            };
            let refused = |what: String| file.refused_at(index, what);
            let lacks = |name: &str| refused(format!("lacks {name}"));
            let of = |name: &str| number(line, name).ok_or_else(|| lacks(name));
            let (accepted, drafted) = (of("Accepted:")?, of("Drafted:")?);
            if drafted == 0.0 {
                continue;
            }
            let rates = rates(line);
            let length = number(line, "Mean acceptance length:");
            // K places at every round, if that agrees with the mean, which has two digits.
            let places = rates.as_ref().map_or(0, Vec::len).max(1) as f64;
            let even = (drafted / places).round();
            let agrees = |rounds: f64| {
                length.is_none_or(|length| (1.0 + accepted / rounds - length).abs() <= 0.0051)
            };
            let rounds = match length {
                _ if rates.is_some() && drafted % places == 0.0 && agrees(even) => even,
                Some(length) if length > 1.0 => {
                    rounded = true;
                    (accepted / (length - 1.0)).round().max(1.0)
                }
                _ => {
                    let why = match length {
                        Some(_) => "no draft was accepted, and places do not tell it",
                        None => {
                            "the line has neither Mean acceptance length nor rates by place, as those of old servers"
                        }
                    };
                    let lacks = "lacks the number of rounds";
                    return Err(refused(format!("{lacks}: {why}; GET /metrics has it")));
                }
            };
            let reached = rates.map(|rates| by_rates(&rates, rounds, 0.0005));
            if rounds == even {
                let names = ["Accepted", "Per-position acceptance rate"];
                agree_by_place(names, accepted, reached.as_deref()).map_err(refused)?;
            }
            let one = Rounds::new(rounds, Some(drafted), accepted, reached);
            one.check().map_err(refused)?;
            all.push(one);
        }
    }
    let mut read = Counted::of(Source::VllmLog, vec![Rounds::sum(&all)]);
    if rounded {
        let words = "Rounds were not all of K drafts, so their number is accepted drafts by the mean \
            length less 1, which is printed with two digits; GET /metrics has whole counts.";
        read.note("rounded", words);
    }
    Ok(read)
}
