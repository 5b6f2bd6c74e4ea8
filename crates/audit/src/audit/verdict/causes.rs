//! What explains a refutation where the table of bugs does not: rows that stand one place off, or
//! nothing that is known.
//!
//! Bets name the bug that wins most against p, which is the best of the table and may be far from
//! the truth. So once outputs are refuted, laws of bugs at all their sizes are held against the
//! tokens: by their likelihood, and by where tokens fall in a law's own order (evenly, if it is
//! the law). Nothing here refutes anything: the verdicts stand before.

use crate::audit::AuditError;
use crate::audit::beside::Cause;
use crate::audit::data::{AuditReport, PartReport, Settings};
use crate::audit::evidence::book::Part;
use crate::audit::evidence::rows::Pair;
use crate::audit::evidence::steps::{Happened, follows, records_of};
use crate::audit::model::bugs::{Bug, bugs_of};
use crate::audit::model::engine::{Change, Laws, Position, change, get};
use crate::audit::model::rule::Rule;
use crate::audit::verdict::measure::Opened;
use specgap_base::side_by_side;
use specgap_core::rule::Drafts;
use std::f64::consts::LN_10;
use std::ops::Range;

/// Positions that laws are held against, and how many stand together.
const POSITIONS: usize = 512;
const TOGETHER: usize = 16;

/// Fewer tokens than these with rows on both sides tell nothing of neighbours.
const LEAST: u64 = 16;

/// Cells of a law's own order that tokens are counted in.
const CELLS: usize = 8;

/// The probability with which the true law is taken for a misfit, by either test.
const BY_CHANCE: f64 = 1e-4;

/// The largest sum of squares over those cells that still fits: chi-square of 7 degrees is above it
/// with that probability.
const FITS: f64 = 29.878;

/// A token that a law excludes counts as if it had this probability.
const FLOOR: f64 = 1e-12;

/// Factors of the temperature.
const FACTORS: [f64; 15] = [
    0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2.2, 3.0, 5.0,
];

/// Shares of steps, or weights of a mixture.
const SHARES: [f64; 10] = [0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0];

/// A law that tokens may follow.
#[derive(Clone, Copy, Debug)]
enum Law {
    Own,
    Before,
    After,
    /// p before the claimed cuts.
    Whole,
    Temperature(f64),
    Even(f64),
    Likeliest(f64),
    Draft(f64),
    Bug(&'static Bug),
}

impl Law {
    fn is_neighbour(self) -> bool {
        matches!(self, Self::Before | Self::After)
    }

    fn words(self) -> String {
        match self {
            Self::Own => "p itself".to_owned(),
            Self::Before => "the row of the place before".to_owned(),
            Self::After => "the row of the place behind".to_owned(),
            Self::Whole => "p without the claimed cuts".to_owned(),
            Self::Temperature(factor) => format!("p at {factor} of its temperature"),
            Self::Even(share) => format!("any token at {share} of the steps, p at the others"),
            Self::Likeliest(share) => {
                format!("the likeliest token at {share} of the steps, p at the others")
            }
            Self::Draft(share) => format!("q at {share} of the steps, p at the others"),
            Self::Bug(bug) => format!("{} ({})", bug.name, bug.words),
        }
    }

    /// All that a rule's outputs may follow.
    fn all(rule: Rule, cuts: bool, neighbours: bool) -> Vec<Self> {
        let mut all = vec![Self::Own];
        if neighbours {
            all.extend([Self::Before, Self::After]);
        }
        if cuts {
            all.push(Self::Whole);
        }
        all.extend(FACTORS.map(Self::Temperature));
        for share in SHARES {
            all.extend([Self::Even(share), Self::Likeliest(share)]);
            if rule != Rule::TEXT {
                all.push(Self::Draft(share));
            }
        }
        let moves_outputs = |bug: &&Bug| bug.weights[Part::TargetLaw.index()] > 0.0;
        all.extend(bugs_of(rule).filter(moves_outputs).map(Self::Bug));
        all
    }
}

/// How well a law fits so far.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    /// The sum of ln of the tokens' probabilities.
    log: f64,
    cells: [f64; CELLS],
}

impl Fit {
    /// A token of a law, whose last place stands for `unlisted` tokens, if for any. O(V).
    fn look(&mut self, law: &[f64], outcome: usize, unlisted: Option<f64>) {
        let own = get(law, outcome);
        let alike = match unlisted {
            Some(tokens) if outcome + 1 == law.len() => tokens.max(1.0),
            _ => 1.0,
        };
        self.log += (own / alike).max(FLOOR).ln();
        let (mut above, mut ties) = (0.0, 0.0);
        for x in law {
            if *x > own {
                above += x;
            } else if *x == own {
                ties += x;
            }
        }
        if ties <= 0.0 {
            (above, ties) = (1.0 - FLOOR, FLOOR);
        }
        let (low, high) = (above * CELLS as f64, (above + ties) * CELLS as f64);
        for (cell, number) in self.cells.iter_mut().zip(0u8..) {
            let from = f64::from(number);
            // What rounding puts beyond 1 belongs to the last cell.
            let to = match usize::from(number) + 1 == CELLS {
                true => f64::INFINITY,
                false => from + 1.0,
            };
            *cell += (high.min(to) - low.max(from)).max(0.0) / (high - low);
        }
    }

    fn add(&mut self, other: &Self) {
        self.log += other.log;
        for (mine, theirs) in self.cells.iter_mut().zip(other.cells) {
            *mine += theirs;
        }
    }

    /// The sum of squares over cells, which tokens that share cells make smaller.
    fn off(&self) -> f64 {
        let expected = self.cells.iter().sum::<f64>() / CELLS as f64;
        let squares = self.cells.iter().map(|count| (count - expected).powi(2));
        squares.sum::<f64>() / expected.max(f64::MIN_POSITIVE)
    }
}

/// A step with its row and the rows beside it.
struct Here<'a> {
    rule: Rule,
    siblings: bool,
    rows: [&'a Pair; 3],
    step: &'a Happened,
    stands: f64,
    reach: f64,
    vocabulary: usize,
}

impl Here<'_> {
    fn look(&self, laws: &[Law], fits: &mut [Fit]) {
        let [before, own, after] = self.rows;
        let at = Position {
            stands: self.stands,
            reach: self.reach,
            ..own.position()
        };
        let unlisted = |pair: &Pair| {
            let listed = pair.p.len().saturating_sub(1);
            pair.rest
                .then(|| self.vocabulary.saturating_sub(listed) as f64)
        };
        let mut even = vec![1.0 / self.vocabulary.max(1) as f64; own.p.len()];
        if let (Some(rest), Some(last)) = (unlisted(own), even.last_mut()) {
            *last = rest / self.vocabulary.max(1) as f64;
        }
        let mut best = vec![0.0; own.p.len()];
        if let Some(one) = best.get_mut(at.likeliest(&own.p)) {
            *one = 1.0;
        }
        let mixed = |share: f64, other: &[f64]| -> Vec<f64> {
            let pairs = own.p.iter().zip(other);
            pairs.map(|(p, x)| (1.0 - share) * p + share * x).collect()
        };
        for (law, fit) in laws.iter().zip(fits) {
            let (pair, row) = match *law {
                Law::Own => (own, Some(own.p.clone())),
                Law::Before => (before, Some(before.p.clone())),
                Law::After => (after, Some(after.p.clone())),
                Law::Whole => (own, Some(own.whole.clone())),
                Law::Temperature(factor) => {
                    let row = change(&own.p, Change::Temperature(factor), &at);
                    (own, Some(row))
                }
                Law::Even(share) => (own, Some(mixed(share, &even))),
                Law::Likeliest(share) => (own, Some(mixed(share, &best))),
                Law::Draft(share) => (own, Some(mixed(share, &own.q))),
                Law::Bug(bug) => (own, self.of_bug(bug, &at)),
            };
            // What is not known of a bug is taken to be as claimed.
            let row = row.unwrap_or_else(|| own.p.clone());
            fit.look(&row, pair.place(self.step.output), unlisted(pair));
        }
    }

    /// The law of what comes out of an engine with a bug; `None` where it is not known.
    fn of_bug(&self, bug: &Bug, at: &Position<'_>) -> Option<Vec<f64>> {
        if self.siblings {
            let moved = bug.engine.target != Change::Same;
            return moved.then(|| change(at.p, bug.engine.target, at));
        }
        let laws = Laws::new(self.rule, &bug.engine, at);
        if self.rule == Rule::CARRIED {
            return laws.of_text(at.stands);
        }
        match (self.step.drafts.is_empty(), self.rule.drafts()) {
            (true, _) if bug.engine.drops.is_some() => laws.output(),
            (true, _) | (false, Drafts::Any) => Some(laws.bonus),
            (false, _) => laws.output(),
        }
    }
}

/// Blocks of positions that are spread evenly over a log.
fn blocks(positions: usize) -> Vec<Range<usize>> {
    let all = positions.div_ceil(TOGETHER).max(1);
    let number = all.min(POSITIONS / TOGETHER);
    (0..number)
        .map(|block| {
            let first = block * all / number * TOGETHER;
            // With a row on either side.
            first.saturating_sub(1)..(first + TOGETHER + 1).min(positions)
        })
        .collect()
}

/// How each law fits, and on how many tokens.
fn fits(
    opened: &Opened<'_>,
    laws: &[Law],
    neighbours: bool,
) -> Result<(Vec<Fit>, u64), AuditError> {
    let records = records_of(opened.log, opened.rule)?;
    let place = |at: usize| records.get(at).and_then(|record| record.position);
    let text = |at: usize| opened.requests.text.get(at);
    let beside = |at: usize| text(at) == text(at + 1) && follows(place(at), place(at + 1));
    let parts = side_by_side::each_or_stop(&blocks(opened.log.positions()), |block| {
        let mut fits = vec![Fit::default(); laws.len()];
        let mut tokens = 0;
        let mut rows: Vec<(usize, Pair)> = Vec::new();
        let mut settle = |rows: &[(usize, Pair)]| {
            let window = match rows {
                [before, own, after] if neighbours => {
                    let near = before.0 + 1 == own.0 && own.0 + 1 == after.0;
                    (near && beside(before.0) && beside(own.0)).then_some([before, own, after])
                }
                [.., own] if !neighbours => Some([own, own, own]),
                _ => None,
            };
            let Some([before, own, after]) = window else {
                return;
            };
            let Some(step) = opened.steps.at.get(own.0).and_then(Option::as_ref) else {
                return;
            };
            let here = Here {
                rule: opened.rule,
                siblings: opened.steps.siblings,
                rows: [&before.1, &own.1, &after.1],
                step,
                stands: opened.stands_at(own.0),
                reach: opened.reach_at(own.0),
                vocabulary: opened.log.vocabulary(),
            };
            here.look(laws, &mut fits);
            tokens += 1;
        };
        for span in opened.log.spans_of(block.clone(), block.len().max(1)) {
            opened.rows(&span, &mut |index, pair| {
                if rows.len() == 3 {
                    rows.remove(0);
                }
                rows.push((index, pair.clone()));
                settle(&rows);
                Ok(())
            })?;
        }
        Ok::<_, AuditError>((fits, tokens))
    })?;
    let mut all = (vec![Fit::default(); laws.len()], 0);
    for (fits, tokens) in parts {
        for (mine, theirs) in all.0.iter_mut().zip(&fits) {
            mine.add(theirs);
        }
        all.1 += tokens;
    }
    Ok(all)
}

/// What explains the refuted parts of a report, if the table of bugs does not. O(512 V) for some 60
/// laws, and nothing where nothing is refuted.
pub(crate) fn cause(
    opened: &Opened<'_>,
    settings: &Settings,
    report: &AuditReport,
) -> Result<Option<Cause>, AuditError> {
    let parts: Vec<&PartReport> = (report.parts.iter())
        .filter(|one| one.is_refuted())
        .collect();
    let is_target = |part: &str| part == Part::TargetLaw.name();
    let impossible = ["target-zero", "outside-claimed-cut"];
    let broken = (report.hard_checks.iter())
        .any(|check| check.violations > 0 && impossible.contains(&check.name.as_str()));
    let outputs = broken || parts.iter().any(|one| is_target(&one.part));
    let mut noise: Vec<String> = (parts.iter())
        .filter(|one| !is_target(&one.part))
        .filter(|one| one.evidence.first().is_some_and(|best| !best.is_bug))
        .map(|one| one.part.clone())
        .collect();
    let mut closest = None;
    if outputs && opened.rule.is_lossless() {
        let mut neighbours = true;
        let mut laws = Law::all(opened.rule, opened.claimed.cuts(), neighbours);
        let (mut found, mut tokens) = fits(opened, &laws, neighbours)?;
        if tokens < LEAST {
            neighbours = false;
            laws = Law::all(opened.rule, opened.claimed.cuts(), neighbours);
            (found, tokens) = fits(opened, &laws, neighbours)?;
        }
        let all = || laws.iter().zip(&found);
        let own = found.first().map_or(0.0, |fit| fit.log);
        let Some((law, best)) = all().max_by(|a, b| a.1.log.total_cmp(&b.1.log)) else {
            return Ok(None);
        };
        if law.is_neighbour() && best.log - own >= -settings.alpha.ln() {
            let parts = parts.iter().map(|one| one.part.clone()).collect();
            return Ok(Some(off_by_one(*law, [own, best.log], tokens, parts)));
        }
        // If a law is the true one, another's likelihood is x times its own with probability 1/x at
        // most.
        let least = best.log - (laws.len() as f64 / BY_CHANCE).ln();
        if !all().any(|(_, fit)| fit.log >= least && fit.off() <= FITS) {
            noise.extend(
                (parts.iter().filter(|one| is_target(&one.part))).map(|one| one.part.clone()),
            );
            closest = Some((law.words(), best.off(), tokens));
        }
    }
    Ok((!noise.is_empty()).then(|| unknown(noise, closest, report)))
}

fn off_by_one(law: Law, [own, other]: [f64; 2], tokens: u64, parts: Vec<String>) -> Cause {
    let each = |log: f64| -log / tokens.max(1) as f64;
    let (from, to) = match law {
        Law::Before => ("before", "t - 1"),
        _ => ("behind", "t + 1"),
    };
    Cause {
        name: "rows-off-by-one-place".to_owned(),
        words: format!(
            "the row of the place {from} explains each token better than its own: {:.2} nats of \
             surprise against {:.2}, over {tokens} tokens",
            each(other),
            each(own)
        ),
        cure: format!(
            "write at place t of the log the row that now stands at {to}: the row that the token \
             there was drawn from"
        ),
        parts,
        log10_likelihood_ratio: Some((other - own) / LN_10),
    }
}

fn unknown(parts: Vec<String>, closest: Option<(String, f64, u64)>, report: &AuditReport) -> Cause {
    let mut words = "refuted, and no known bug explains it".to_owned();
    if let Some((law, off, tokens)) = closest {
        words.push_str(&format!(
            ": the nearest law is {law}, and in its order {tokens} tokens are spread as draws from \
             it would be with probability below 1e-4 (chi-square {off:.0}, 7 degrees)"
        ));
    }
    if let Some(surprise) = report.surprise.as_ref().filter(|one| one.z.is_some()) {
        words.push_str(&format!(
            "; surprise is {:.2} nats a token where p leaves {:.2}",
            surprise.surprise, surprise.entropy
        ));
    }
    Cause {
        name: "noise-unlike-any-known-bug".to_owned(),
        words,
        cure: "record for some requests the logits that go into the sampler, and the temperature, \
               top-k, top-p and seed in force at each step; and audit texts of the same engine \
               without speculation: if these are refuted too, p is not the p you think"
            .to_owned(),
        parts,
        log10_likelihood_ratio: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: a token of 1/4 behind one of 1/2 fills cells 4 and 5 of eight; what a law excludes
    /// falls into the last.
    #[test]
    fn where_tokens_fall_in_the_order_of_a_law() {
        let law = [0.25, 0.5, 0.125, 0.125];
        let mut fit = Fit::default();
        fit.look(&law, 0, None);
        assert_eq!(fit.cells, [0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0]);
        assert!((fit.log - 0.25f64.ln()).abs() < 1e-15);
        // Ties stand together.
        fit.look(&law, 3, None);
        assert_eq!(fit.cells, [0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 0.5]);
        let mut none = Fit::default();
        none.look(&[1.0, 0.0], 1, None);
        assert!((none.cells[7] - 1.0).abs() < 1e-6 && (none.log - FLOOR.ln()).abs() < 1e-9);
        // One of five that are not listed.
        let mut rest = Fit::default();
        rest.look(&[0.5, 0.5], 1, Some(5.0));
        assert!((rest.log - 0.1f64.ln()).abs() < 1e-15);
        // Eight tokens, one a cell, fit; eight in one cell are off by 7 times 8.
        let even = Fit {
            cells: [1.0; 8],
            ..Fit::default()
        };
        assert_eq!(even.off(), 0.0);
        let mut one = Fit::default();
        one.cells[0] = 8.0;
        assert!((one.off() - 56.0).abs() < 1e-12);
    }

    #[test]
    fn blocks_cover_short_logs_and_are_spread_over_long_ones() {
        let short = blocks(5);
        assert_eq!((short.len(), short.first()), (1, Some(&(0..5))));
        assert_eq!(blocks(40), [0..17, 15..33, 31..40]);
        let many = blocks(1_000_000);
        assert_eq!(many.len(), 32);
        assert!(
            many.iter()
                .all(|block| block.len() >= 17 && block.end <= 1_000_000)
        );
        assert!(many.last().unwrap().start > 960_000);
    }
}
