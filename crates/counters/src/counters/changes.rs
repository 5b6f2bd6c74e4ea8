//! What counts advise: a change from the draft length that ran.

use super::data::{AtLength, Best, Kind};
use specgap_statistics::Estimate;
use specgap_statistics::advice::{Basis, Change, Needs, Unit, Verdict};

/// Lists changes from the length that ran, judged at the same costs, to the quickest; nothing where
/// rounds were of several lengths, or the quickest ran.
///
/// Counts have no interval of a speed. What is known only as the middle of a bracket, or is alike by
/// what is stated of such predictions, is not told apart.
pub(super) fn changes(
    lengths: &[AtLength],
    best: Option<&Best>,
    ran: Option<usize>,
) -> Vec<Change> {
    let change = || {
        let (best, ran) = (best?, ran?);
        let now = lengths.iter().find(|at| at.length == ran)?.speedup?;
        let alone = |value: f64| Estimate::plus_minus(value, 0.0);
        let more = best.speedup - now;
        let verdict = if best.kind == Kind::Bracket || best.alike.contains(&ran) {
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
    use crate::counters::{Costs, Settings};

    /// Lengths 1 and 2 at 2 and 2.5 tokens, at no cost and at one that eats the gain.
    #[test]
    fn a_change_is_from_what_ran() {
        let at = |length: usize, tokens: f64, costs: &Costs| AtLength {
            length,
            acceptance_length: Estimate::plus_minus(tokens, 0.0),
            kind: Kind::Prefix,
            stated_error: None,
            acceptance_rate: 0.5,
            speedup: costs.speedup(length, tokens),
        };
        let of = |ratio: f64, ran: usize| {
            let costs = Costs::ratio(ratio);
            let lengths = [at(1, 2.0, &costs), at(2, 2.5, &costs)];
            let best = super::super::best::best(&lengths, &costs);
            changes(&lengths, best.as_ref(), Some(ran))
        };
        let one = of(0.01, 1).remove(0);
        assert_eq!((one.from.as_str(), one.to.as_str()), ("K = 1", "K = 2"));
        assert_eq!(one.verdict, Verdict::Worth);
        assert!((one.difference.mean - (2.5 / 1.02 - 2.0 / 1.01)).abs() < 1e-15);
        assert!(of(0.01, 2).is_empty());
        // 2.5 / (1 + 2 c) = 2 / (1 + c) at c = 1/3.
        let near = of(0.33, 1).remove(0);
        assert_eq!(near.verdict, Verdict::NotToldApart);
        assert!(Settings::default().costs.is_none());
    }
}
