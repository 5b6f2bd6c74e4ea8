//! What counts advise: a change from the draft length that ran.

use super::data::{AtLength, Best};
use specgap_statistics::Estimate;
use specgap_statistics::advice::{Basis, Change, Needs, Unit, Verdict};

/// Lists changes from the length that ran, judged at the same costs, to the quickest; nothing where
/// rounds were of several lengths, or the quickest ran.
///
/// A change is worth what it says where the least that the range and the interval of the new length
/// allow is above the most that those of the old one do.
pub(super) fn changes(
    lengths: &[AtLength],
    best: Option<&Best>,
    ran: Option<usize>,
) -> Vec<Change> {
    let change = || {
        let (best, ran) = (best?, ran?);
        let of = |length: usize| lengths.iter().find(|at| at.length == length);
        let now = of(ran)?.speedup?;
        // A speed is tokens a round times what stands for them all.
        let ends = |length: usize, speed: f64| {
            let Some(tokens) = of(length).map(|at| at.acceptance_length) else {
                return [speed; 2];
            };
            let [low, high] = tokens.ends();
            let by = speed / tokens.mean;
            [low.min(tokens.ci95[0]) * by, high.max(tokens.ci95[1]) * by]
        };
        let is_told = ends(best.length, best.speedup)[0] > ends(ran, now)[1];
        let alone = |value: f64| Estimate::plus_minus(value, 0.0);
        let more = best.speedup - now;
        let verdict = if !is_told {
            Verdict::NotToldApart
        } else if more >= Unit::Speed.floor(now) {
            Verdict::Worth
        } else {
            Verdict::BelowFloor
        };
        (best.length != ran).then(|| Change {
            temperature: None,
            drafts: None,
            cost_ratio: None,
            from: format!("K = {ran}"),
            to: format!("K = {}", best.length),
            engines: Vec::new(),
            settings: Vec::new(),
            needs: Needs::Setting,
            unit: Unit::Speed,
            now: alone(now),
            difference: alone(more),
            basis: Basis::Counts,
            verdict,
        })
    };
    change().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{Costs, Kind, Settings, TokensARound};

    /// Lengths 1 and 2 at 2 and 2.5 tokens, at no cost and at one that eats the gain.
    #[test]
    fn a_change_is_from_what_ran() {
        let at = |length: usize, tokens: f64, range: f64, costs: &Costs| AtLength {
            length,
            acceptance_length: TokensARound {
                mean: tokens,
                ci95: [tokens - 0.01, tokens + 0.01],
                range: Some([tokens - range, tokens + range]),
            },
            kind: Kind::Runs,
            acceptance_rate: 0.5,
            speedup: costs.speedup(length, tokens),
        };
        let of = |ratio: f64, ran: usize, range: f64| {
            let costs = Costs::ratio(ratio);
            let lengths = [at(1, 2.0, range, &costs), at(2, 2.5, range, &costs)];
            let best = super::super::best::best(&lengths, &costs);
            changes(&lengths, best.as_ref(), Some(ran))
        };
        let one = of(0.01, 1, 0.2).remove(0);
        assert_eq!((one.from.as_str(), one.to.as_str()), ("K = 1", "K = 2"));
        assert_eq!(one.verdict, Verdict::Worth);
        assert!((one.difference.mean - (2.5 / 1.02 - 2.0 / 1.01)).abs() < 1e-15);
        assert!(of(0.01, 2, 0.2).is_empty());
        // Ranges that meet tell nothing.
        assert_eq!(of(0.01, 1, 0.3).remove(0).verdict, Verdict::NotToldApart);
        // 2.5 / (1 + 2 c) = 2 / (1 + c) at c = 1/3, and the shorter one stands where they are near.
        assert!(of(0.33, 1, 0.0).is_empty());
        assert_eq!(of(0.33, 2, 0.0).remove(0).verdict, Verdict::NotToldApart);
        assert!(Settings::default().costs.is_none());
    }
}
