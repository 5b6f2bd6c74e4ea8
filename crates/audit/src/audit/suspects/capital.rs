//! What suspects have won along a log.

use super::factor::Factor;
use super::family::{Families, Suspect};
use super::step::Told;
use crate::audit::evidence::bets::log_sum;
use crate::audit::evidence::requests::Group;
use serde::{Deserialize, Serialize};
use specgap_base::sorted::Map;

/// Shares of steps at which a suspect's law is followed, and their weights.
pub(crate) const SHARES: [(f64, f64); 5] = [
    (1.0, 0.52),
    (0.5, 0.12),
    (0.15, 0.12),
    (0.04, 0.12),
    (0.01, 0.12),
];

const EACH: usize = SHARES.len();

/// ln of capital, by share.
pub(crate) type Logs = [f64; EACH];

/// What one suspect has won.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Won {
    pub rule: Logs,
    pub output: Logs,
    pub parts: [Logs; 4],
    /// Of the rule and of outputs: the sums of r l and r l^2 over steps, l = ln r - ln(1 + price):
    /// the growth of capital if the suspect were true, and its square, weighed back from the claim.
    pub growth: [[f64; 2]; 2],
    /// Of the rule and of outputs: what noise was paid, in nats.
    pub paid: [f64; 2],
    /// Of the rule: steps that it says something of, and the sums of r and r^2 there. What they lack
    /// to 1 on average, the suspect gives to what the claim excludes.
    pub mass: [f64; 3],
    /// The sum of |r - 1|/2 of outputs: total variation, likewise; and of (1 - 1/r)+: the same if
    /// the suspect is true.
    pub apart: [f64; 2],
    /// How many drafts it keeps, by the cells of [`Tally::kept`].
    pub kept: [f64; TESTED],
}

/// Cells that tested drafts are counted in.
pub(crate) const TESTED: usize = 16;

/// Chi-square of 15 degrees of freedom is above this with probability 1e-4.
const MISFITS: f64 = 44.3;

/// The sums over some positions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub won: Vec<Won>,
    /// Drafts, decisions, corrections, tokens without a draft, and tokens that came out.
    pub steps: [u64; 5],
    /// By cell: drafts that were tested, those that were kept, those that the claim keeps, and how far that may be off.
    pub kept: [[f64; 4]; TESTED],
    /// By group its steps, and what suspects have won there at all steps.
    pub groups: Map<Group, (u64, Vec<f64>)>,
    /// By suspect, until [`Tally::settle`].
    #[serde(skip)]
    owed: Vec<Owed>,
}

/// What sums of logs are yet to be given, as products: a product costs less than a logarithm.
#[derive(Clone, Copy, Debug)]
struct Owed {
    rule: Logs,
    output: Logs,
    parts: [Logs; 4],
}

impl Owed {
    const NOTHING: Self = Self {
        rule: [1.0; EACH],
        output: [1.0; EACH],
        parts: [[1.0; EACH]; 4],
    };

    fn give(&self, won: &mut Won) {
        let owed = self.rule.iter().chain(&self.output);
        let sums = won.rule.iter_mut().chain(&mut won.output);
        let parts = self.parts.iter().flatten();
        let sums = sums.chain(won.parts.iter_mut().flatten());
        for (sum, product) in sums.zip(owed.chain(parts)) {
            if *product != 1.0 {
                *sum += product.ln();
            }
        }
    }
}

/// Adds the ln of a factor to what is owed to a sum.
fn owe(sum: &mut f64, product: &mut f64, factor: f64) {
    let next = *product * factor;
    if (1e-200..1e200).contains(&next) {
        *product = next;
        return;
    }
    *sum += product.ln() + factor.ln();
    *product = 1.0;
}

/// (1 - s + s r) / (1 + s price), and the share that is left for the next part of the step.
fn go_on(share: f64, factor: &Factor) -> (f64, f64) {
    let mixed = 1.0 + share * (factor.ratio - 1.0);
    if mixed <= 0.0 {
        return (0.0, share);
    }
    let paid = 1.0 + share * factor.price;
    (mixed / paid, (share * factor.ratio / mixed).min(1.0))
}

impl Won {
    fn add(&mut self, other: &Self) {
        let sums = self.sums();
        // A copy is mutable.
        for (own, more) in sums.zip({ *other }.sums()) {
            *own += *more;
        }
    }

    /// All sums.
    fn sums(&mut self) -> impl Iterator<Item = &mut f64> {
        let logs = self.rule.iter_mut().chain(&mut self.output);
        let logs = logs.chain(self.parts.iter_mut().flatten());
        let logs = logs.chain(self.growth.iter_mut().flatten());
        let logs = logs.chain(&mut self.paid);
        let logs = logs.chain(&mut self.mass).chain(&mut self.apart);
        logs.chain(&mut self.kept)
    }

    fn is_of_the_rule(&self) -> bool {
        self.rule.iter().any(|log| *log != 0.0)
    }

    /// Returns the sums of the rule, or of outputs where the rule says nothing.
    pub(crate) fn logs(&self) -> &Logs {
        match self.is_of_the_rule() {
            true => &self.rule,
            false => &self.output,
        }
    }

    /// Returns a log of [`Won::logs`] as if nothing were paid for noise, or a little less: what is paid for a
    /// share of steps is at least that share of what is paid for all. Shares are compared by it.
    pub(crate) fn unpaid(&self, (log, share): (f64, f64)) -> f64 {
        let [rule, output] = self.paid;
        log + share * if self.is_of_the_rule() { rule } else { output }
    }

    /// One step. Returns the log of the rule's capital at the whole share.
    fn look(&mut self, told: &Told, owed: &mut Owed) -> f64 {
        let mut whole = 0.0;
        if told.rule != [Factor::ONE; 4] {
            for (slot, (share, _)) in SHARES.iter().enumerate() {
                let mut left = *share;
                for (part, factor) in told.rule.iter().enumerate() {
                    if *factor == Factor::ONE {
                        continue;
                    }
                    let (own, _) = go_on(*share, factor);
                    owe(
                        &mut self.parts[part][slot],
                        &mut owed.parts[part][slot],
                        own,
                    );
                    let (grown, next) = go_on(left, factor);
                    owe(&mut self.rule[slot], &mut owed.rule[slot], grown);
                    left = next;
                }
            }
            let ratio: f64 = told.rule.iter().map(|one| one.ratio).product();
            let paid: f64 = told.rule.iter().map(|one| 1.0 + one.price).product();
            self.paid[0] += paid.ln();
            whole = grow(&mut self.growth[0], ratio, paid);
            if ratio < 1e20 {
                for (sum, more) in self.mass.iter_mut().zip([1.0, ratio, ratio * ratio]) {
                    *sum += more;
                }
            }
        }
        if told.output != Factor::ONE {
            for (slot, (share, _)) in SHARES.iter().enumerate() {
                let (grown, _) = go_on(*share, &told.output);
                owe(&mut self.output[slot], &mut owed.output[slot], grown);
            }
            let Factor { ratio, price } = told.output;
            self.paid[1] += price.ln_1p();
            grow(&mut self.growth[1], ratio, 1.0 + price);
            if ratio < 1e20 {
                self.apart[0] += 0.5 * (ratio - 1.0).abs();
            }
            self.apart[1] += (1.0 - 1.0 / ratio.max(1e-300)).max(0.0);
        }
        whole
    }
}

/// Returns ln of what a capital has become, and adds it up as it would grow under the suspect.
fn grow(sums: &mut [f64; 2], ratio: f64, paid: f64) -> f64 {
    let log = (ratio / paid).ln();
    if ratio > 0.0 && ratio < 1e20 {
        sums[0] += ratio * log;
        sums[1] += ratio * log * log;
    }
    log
}

impl Tally {
    pub(crate) fn new(families: &Families) -> Self {
        Self {
            won: vec![Won::default(); families.suspects.len()],
            owed: vec![Owed::NOTHING; families.suspects.len()],
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (own, more) in self.won.iter_mut().zip(&other.won) {
            own.add(more);
        }
        for (own, more) in self.steps.iter_mut().zip(other.steps) {
            *own += more;
        }
        let kept = self.kept.iter_mut().flatten();
        kept.zip(other.kept.iter().flatten())
            .for_each(|(own, more)| *own += more);
        for (group, (steps, logs)) in &other.groups {
            let (own, sums) = self.groups.at_or(*group, || (0, vec![0.0; logs.len()]));
            *own += steps;
            for (sum, log) in sums.iter_mut().zip(logs) {
                *sum += log;
            }
        }
    }

    /// Gives the sums what they are owed, behind the last step.
    pub(crate) fn settle(&mut self) {
        for (won, owed) in self.won.iter_mut().zip(std::mem::take(&mut self.owed)) {
            owed.give(won);
        }
    }

    /// Tells whether drafts were kept as often as if this suspect's law were followed at so many of the steps, or at
    /// any share of them, wherever the claimed one keeps more or less.
    pub(crate) fn fits(&self, won: &Won, share: f64) -> bool {
        let misfit = |share: f64| -> f64 {
            let of = |([n, kept, claim, width], own): (&[f64; 4], &f64)| {
                let mean = ((1.0 - share) * claim + share * own) / n.max(1.0);
                let spread = (n * mean * (1.0 - mean)).max(0.25);
                let off = (kept - n * mean).abs() - width;
                off.max(0.0).powi(2) / spread
            };
            self.kept.iter().zip(&won.kept).map(of).sum()
        };
        let mut shares = if share >= 1.0 { 100..101 } else { 1..101 };
        shares.any(|share| misfit(f64::from(share) / 100.0) < MISFITS)
    }

    /// One step; `groups` are those that it is in, `tested` says what was claimed of its draft.
    pub(crate) fn look(
        &mut self,
        suspects: &[Suspect],
        groups: &[Group],
        tested: Option<(usize, [f64; 2], bool)>,
        tell: impl Fn(&Suspect) -> Told,
    ) {
        if let Some((cell, [keep, width], kept)) = tested {
            let more = [1.0, f64::from(u8::from(kept)), keep, width];
            self.kept[cell]
                .iter_mut()
                .zip(more)
                .for_each(|(sum, more)| *sum += more);
        }
        let mut logs = vec![0.0; suspects.len()];
        let own = self.won.iter_mut().zip(&mut self.owed);
        for ((suspect, (won, owed)), log) in suspects.iter().zip(own).zip(&mut logs) {
            let told = tell(suspect);
            if let Some((cell, [keep, _], _)) = tested {
                won.kept[cell] += told.keep.unwrap_or(keep);
            }
            *log = won.look(&told, owed);
        }
        for group in groups {
            let (steps, sums) = self.groups.at_or(*group, || (0, vec![0.0; logs.len()]));
            *steps += 1;
            for (sum, log) in sums.iter_mut().zip(&logs) {
                *sum += log;
            }
        }
    }
}

/// The largest of a suspect's logs, and its share.
pub(crate) fn best(logs: &Logs) -> (f64, f64) {
    let mut found = (logs[0], 1.0);
    for (log, (share, _)) in logs.iter().zip(SHARES).skip(1) {
        if *log > found.0 {
            found = (*log, share);
        }
    }
    found
}

/// ln of weighted logs of all shares.
pub(crate) fn of_shares(logs: &Logs) -> f64 {
    let terms = logs.iter().zip(SHARES);
    log_sum(terms.map(|(log, (_, weight))| log + weight.ln()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one step wins.
    fn won(told: &Told) -> Won {
        let (mut won, mut owed) = (Won::default(), Owed::NOTHING);
        won.look(told, &mut owed);
        owed.give(&mut won);
        won
    }

    fn told(ratios: [f64; 4]) -> Told {
        let mut told = Told::NOTHING;
        told.rule = ratios.map(|ratio| Factor { ratio, price: 0.0 });
        told
    }

    #[test]
    fn a_share_of_steps_is_a_share_of_products() {
        // 1 - s + s times the product, however it is split.
        let own = won(&told([2.0, 0.25, 3.0, 1.0]));
        for (log, (share, _)) in own.rule.iter().zip(SHARES) {
            assert!((log.exp() - (1.0 - share + share * 1.5)).abs() < 1e-12);
        }
        let dead = won(&told([1.0, 0.0, 1.0, 1.0]));
        assert_eq!(dead.rule[0], f64::NEG_INFINITY);
        assert!((dead.rule[1].exp() - 0.5).abs() < 1e-12);
        assert!((SHARES.iter().map(|one| one.1).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn noise_is_paid_for() {
        let (ratio, price) = (2.0, 0.5);
        let won = won(&Told {
            output: Factor { ratio, price },
            ..Told::NOTHING
        });
        assert!((won.output[0].exp() - 2.0 / 1.5).abs() < 1e-12);
        assert!((won.output[1].exp() - 1.5 / 1.25).abs() < 1e-12);
        assert!((won.apart[0] - 0.5).abs() < 1e-12);
    }
}
