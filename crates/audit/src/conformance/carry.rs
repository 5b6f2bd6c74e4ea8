//! What the text before a round left: the numbers that some rules carry.

use super::rows::{draw, near, row, wide};
use rand_chacha::ChaCha8Rng;
use specgap_core::rounds::{BlockCarry, Carry};
use specgap_core::rule::RuleName;

/// Numbers that a rule carries, in front of a round of at most so many drafts; of most rules none.
pub(super) fn width(rule: RuleName, drafts: usize) -> usize {
    if rule == RuleName::CARRIED {
        drafts
    } else if rule == RuleName::CARRIED_BLOCK {
        2 * (drafts + 1)
    } else {
        0
    }
}

/// Returns what is carried at the start of a text: a round starts there.
pub(super) fn fresh(rule: RuleName, drafts: usize) -> Vec<f64> {
    let ones = if rule == RuleName::CARRIED { 1 } else { 2 };
    let number = |at: usize| if at < ones { 1.0 } else { 0.0 };
    (0..width(rule, drafts)).map(number).collect()
}

/// Carried numbers are multiples of this where they add up, so that `f32` holds them.
const STEP: f64 = 1.0 / (1 << 20) as f64;

/// Makes up what is carried inside a text, in front of a token at which a round may start. All
/// numbers are values of `f32`.
pub(super) fn inside(rule: RuleName, drafts: usize, random: &mut ChaCha8Rng) -> Vec<f64> {
    let mut carry = Carry::new(drafts);
    let mut block = BlockCarry::new(drafts);
    let mut tokens = 0;
    loop {
        let p = row(4, 1.0, random);
        let q = near(&p, 1.0, random);
        let token = draw(&p, random);
        let (p, q) = (wide(&p), wide(&q));
        carry.pass(&(q[token] / p[token]));
        block.pass(Some((&p, &q)), token);
        tokens += 1;
        let ranges = 0.05..0.95;
        if tokens > drafts && ranges.contains(carry.start()) && ranges.contains(block.start()) {
            break;
        }
    }
    let floor = |x: f64| (x / STEP).floor() * STEP;
    let mut carried = Vec::with_capacity(width(rule, drafts));
    if rule == RuleName::CARRIED {
        // Sums are rounded, so that they stay at most 1, and 1 where they are.
        let (mut sum, mut before) = (0.0, 0.0);
        for share in carry.shares() {
            sum += share;
            carried.push(floor(sum) - before);
            before = floor(sum);
        }
    } else {
        let older = block.ages().skip(1);
        let older = older.map(|&[drafted, kept]| [f64::from(drafted as f32), floor(kept)]);
        let older: Vec<[f64; 2]> = older.collect();
        let start = 1.0 - older.iter().map(|[_, kept]| kept).sum::<f64>();
        carried.extend([start, start]);
        carried.extend(older.into_iter().flatten());
    }
    carried.resize(width(rule, drafts), 0.0);
    carried
}
