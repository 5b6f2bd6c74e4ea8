//! What relaxed rules accept along logged text, and what it does to the law.
//!
//! A relaxed rule keeps a draft more often than a lossless one may. Of rows p and q, with the law of its output o, it
//! accepts at most the overlap plus TV(o, p) (claim `lossy-frontier`). All rules here verify one draft of q.

use super::asked::{Answers, Slot, Slots};
use super::measured::{MeasuredTexts, read_measured};
use super::position::Rest;
use super::read::{Reading, Text};
use super::{ReplayError, Surprise};
use serde::{Deserialize, Serialize};
use specgap_base::glossary;
use specgap_log::log::Log;
use specgap_number::distribution::Rows;
use specgap_statistics::{Clustered, Estimate};
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// The version of the report's `report.json`.
pub const RELAXED_SCHEMA: u32 = 1;

/// A rule of a paper or an engine, by its parameter.
struct Relaxed {
    name: &'static str,
    /// What is set, as its source calls it.
    parameter: &'static str,
    values: &'static [f64],
    /// The law of the output in the last argument; returns what is accepted.
    law: fn(&Pair<'_>, f64, &mut Vec<f64>) -> f64,
}

/// All rules, with the values that their sources use.
///
/// Definitions as read in an implementation of the first six for vLLM (graphcore-research,
/// relaxed-spec-dec-repro at c28353f), in vllm#31483 (EARS), in TensorRT-LLM#3865 (`relaxed-top-k`: max p - delta among
/// the 10 likeliest) and in Medusa (`typical`, whose delta is the square root of epsilon).
static RULES: [Relaxed; 9] = [
    Relaxed {
        name: "ensemble",
        parameter: "w",
        values: &[1.0, 0.9, 0.8, 0.6, 0.4],
        law: |rows, w, out| rows.kept(|p, q| ((1.0 - w) * q + w * p).min(q), out),
    },
    Relaxed {
        name: "mentored",
        parameter: "alpha",
        values: &[0.05, 0.3, 0.7],
        law: |rows, alpha, out| rows.kept(|p, q| (p / (1.0 - alpha)).min(q), out),
    },
    Relaxed {
        name: "cactus",
        parameter: "delta",
        values: &[0.01, 0.1, 1.0],
        law: |rows, delta, out| rows.cactus(delta, out),
    },
    Relaxed {
        name: "casc-opt",
        parameter: "alpha",
        values: &[0.1, 0.5, 1.0],
        law: |rows, alpha, out| {
            let defers = most(rows.draft) < most(rows.target) - alpha * rows.variation;
            rows.verified(|p, q| if defers { p } else { q }, out)
        },
    },
    Relaxed {
        name: "casc-tok",
        parameter: "alpha",
        values: &[0.1, 0.5, 0.9],
        law: |rows, alpha, out| {
            let least = (1.0 - alpha) * most(rows.target);
            let pairs = rows.target.iter().zip(rows.draft);
            let outside: f64 = (pairs.filter(|(p, _)| **p < least)).map(|(_, q)| q).sum();
            rows.verified(|p, q| if p >= least { q } else { 0.0 } + outside * p, out)
        },
    },
    Relaxed {
        name: "r-fuzzy",
        parameter: "JS",
        values: &[0.05, 0.1, 0.2, 0.3],
        law: |rows, most, out| {
            let near = rows.divergence() <= most;
            rows.verified(|p, q| if near { q } else { p }, out)
        },
    },
    Relaxed {
        name: "ears",
        parameter: "alpha",
        values: &[0.05, 0.1, 0.2, 0.5],
        law: |rows, alpha, out| {
            let more = alpha * (1.0 - most(rows.target));
            rows.kept(|p, q| (p + more * q).min(q), out)
        },
    },
    Relaxed {
        name: "relaxed-top-k",
        parameter: "delta",
        values: &[0.1, 0.3, 0.6],
        law: |rows, delta, out| {
            let p = |x: usize| rows.target[x];
            let mut heavy: Vec<usize> = (0..rows.target.len()).collect();
            let tenth = 9.min(heavy.len() - 1);
            heavy.select_nth_unstable_by(tenth, |&a, &b| p(b).total_cmp(&p(a)).then(a.cmp(&b)));
            // Of equal tokens, those with lower ids come first.
            let (last, least) = (heavy[tenth], most(rows.target) - delta);
            let is_listed = |x| p(x) > p(last) || p(x) == p(last) && x <= last;
            rows.or_likeliest(|x| p(x) >= least && is_listed(x), out)
        },
    },
    Relaxed {
        name: "typical",
        parameter: "epsilon",
        values: &[0.05, 0.09, 0.3],
        law: |rows, epsilon: f64, out| {
            let entropy: f64 = (rows.target.iter()).map(|&p| -xlogy(p, p)).sum();
            let least = epsilon.min(epsilon.sqrt() * (-entropy).exp());
            rows.or_likeliest(|x| rows.target[x] >= least, out)
        },
    },
];

/// Every rule at each of its values.
fn tried() -> impl Iterator<Item = (&'static Relaxed, f64)> {
    let each = |rule: &'static Relaxed| rule.values.iter().map(move |&at| (rule, at));
    RULES.iter().flat_map(each)
}

/// Rows of a position.
struct Pair<'a> {
    target: &'a [f64],
    draft: &'a [f64],
    overlap: f64,
    variation: f64,
    /// Tokens of p > 0 by rising q/p, where a rule asks for them.
    order: OnceCell<Vec<usize>>,
}

fn most(row: &[f64]) -> f64 {
    row.iter().copied().fold(0.0, f64::max)
}

fn xlogy(x: f64, y: f64) -> f64 {
    if x > 0.0 { x * y.ln() } else { 0.0 }
}

impl<'a> Pair<'a> {
    fn new(rows: Rows<'a>) -> Self {
        let pairs = || rows.target.iter().zip(rows.draft);
        Self {
            target: rows.target,
            draft: rows.draft,
            overlap: pairs().map(|(p, q)| p.min(*q)).sum(),
            variation: pairs().map(|(p, q)| (p - q).max(0.0)).sum(),
            order: OnceCell::new(),
        }
    }

    /// Keeps a draft with a mass of its token, and draws from (p - q)+ else.
    fn kept(&self, mass: impl Fn(f64, f64) -> f64, out: &mut Vec<f64>) -> f64 {
        let pairs = || self.target.iter().zip(self.draft);
        out.clear();
        out.extend(pairs().map(|(&p, &q)| mass(p, q)));
        let accepted: f64 = out.iter().sum();
        let left = (1.0 - accepted).max(0.0);
        for (share, (p, q)) in out.iter_mut().zip(pairs()) {
            *share += match self.variation > 0.0 {
                true => left * (p - q).max(0.0) / self.variation,
                false => left * p,
            };
        }
        accepted
    }

    /// Verifies losslessly against another law than p.
    fn verified(&self, law: impl Fn(f64, f64) -> f64, out: &mut Vec<f64>) -> f64 {
        let pairs = self.target.iter().zip(self.draft);
        out.clear();
        out.extend(pairs.map(|(&p, &q)| law(p, q)));
        out.iter().zip(self.draft).map(|(law, q)| law.min(*q)).sum()
    }

    /// Keeps a draft that stands, and puts the likeliest token out else.
    fn or_likeliest(&self, stands: impl Fn(usize) -> bool, out: &mut Vec<f64>) -> f64 {
        out.clear();
        let each = self.draft.iter().enumerate();
        out.extend(each.map(|(x, &q)| if stands(x) { q } else { 0.0 }));
        let accepted: f64 = out.iter().sum();
        let top = most(self.target);
        if let Some(best) = self.target.iter().position(|&p| p >= top) {
            out[best] += (1.0 - accepted).max(0.0);
        }
        accepted
    }

    /// The Jensen-Shannon divergence, in nats.
    fn divergence(&self) -> f64 {
        let pairs = self.target.iter().zip(self.draft);
        let each = |(&p, &q): (&f64, &f64)| {
            let middle = 0.5 * (p + q);
            0.5 * (xlogy(p, p) + xlogy(q, q)) - xlogy(middle, middle)
        };
        pairs.map(each).sum()
    }

    fn ratio(&self, token: usize) -> f64 {
        self.draft[token] / self.target[token]
    }

    fn order(&self) -> &[usize] {
        self.order.get_or_init(|| {
            let tokens = 0..self.target.len();
            let mut order: Vec<usize> = tokens.filter(|&x| self.target[x] > 0.0).collect();
            order.sort_by(|&x, &y| self.ratio(x).total_cmp(&self.ratio(y)));
            order
        })
    }

    /// Keeps x with min(1, g/q), `g = min(1, p + sqrt(2 d p (1 - p)))`, and draws from (H - q)+ else, H being g at x and
    /// p (1 - g)/(1 - p) elsewhere. O(V log V): what a refused x leaves is `(c p - q)+`, c of x alone, over its sum.
    fn cactus(&self, delta: f64, out: &mut Vec<f64>) -> f64 {
        let lifted = |p: f64| (p + (2.0 * delta * p * (1.0 - p)).max(0.0).sqrt()).min(1.0);
        let pairs = || self.target.iter().zip(self.draft);
        out.clear();
        out.extend(pairs().map(|(&p, &q)| lifted(p).min(q)));
        let accepted = out.iter().sum();
        let order = self.order();
        // c of each refused token, with how often it is refused; the largest last.
        let mut refused: Vec<(f64, f64)> = (pairs().zip(&*out))
            .filter(|((_, q), kept)| *q > *kept)
            .map(|((&p, q), kept)| ((1.0 - lifted(p)) / (1.0 - p), q - kept))
            .collect();
        refused.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut place, mut sums) = (0, [0.0; 2]);
        let weighed: Vec<[f64; 3]> = (refused.into_iter())
            .map(|(scale, weight)| {
                while let Some(&x) = order.get(place).filter(|&&x| self.ratio(x) < scale) {
                    sums = [sums[0] + self.target[x], sums[1] + self.draft[x]];
                    place += 1;
                }
                let left = scale * sums[0] - sums[1];
                [scale, weight * scale / left, weight / left]
            })
            .collect();
        // From the tokens that most refused ones leave nothing for, back to those that all do.
        let (mut next, mut gives) = (weighed.len(), [0.0; 2]);
        for &x in order.iter().rev() {
            while next > 0 && weighed[next - 1][0] > self.ratio(x) {
                next -= 1;
                gives = [gives[0] + weighed[next][1], gives[1] + weighed[next][2]];
            }
            out[x] += (self.target[x] * gives[0] - self.draft[x] * gives[1]).max(0.0);
        }
        accepted
    }
}

/// What relaxed rules accept, and what they do to the law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RelaxedReport {
    /// [`RELAXED_SCHEMA`].
    pub schema: u32,
    /// What was measured.
    #[serde(flatten)]
    pub of: MeasuredTexts,
    /// Whether the text looks like drawn from the target's rows.
    pub surprise: Surprise,
    /// The mean of the sum of min(p, q), which token verification accepts.
    pub overlap: Estimate,
    /// Every rule at each of its parameters.
    pub rules: Vec<RelaxedRate>,
    /// What every metric means, by its name.
    pub definitions: BTreeMap<String, String>,
}

/// A relaxed rule at a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RelaxedRate {
    /// Its name.
    pub rule: String,
    /// What is set, as its source calls it.
    pub parameter: String,
    /// To what.
    pub value: f64,
    /// The draft tokens that it keeps, of one a position.
    pub accepted: Estimate,
    /// That less the overlap, paired by prompt.
    pub above_lossless: Estimate,
    /// TV between the law of its output and the target's.
    pub variation: Estimate,
    /// KL(output || p) in nats; none where it is infinite, as something is let through.
    pub divergence: Option<Estimate>,
    /// The mass that it puts on tokens of probability 0 under the target.
    pub let_through: Estimate,
    /// Overlap + TV less what is accepted: 0 on the frontier, never below.
    pub below_frontier: Estimate,
    /// Where it stands.
    pub standing: Standing,
}

/// Where a relaxed rule stands between a lossless one and the frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Its output has the target's law, to 1e-9.
    Lossless,
    /// No rule of its variation accepts more.
    OnFrontier,
    /// One does.
    BelowFrontier,
    /// Token verification accepts more, and changes nothing.
    Dominated,
}

/// What is asked of a position: the overlap, and five numbers a rule.
struct Asked {
    slots: Slots,
    overlap: Slot,
    rules: Vec<Slot>,
}

/// Numbers of a rule: accepted, TV, KL without what is let through, let through, below the frontier.
const NUMBERS: usize = 5;

impl Asked {
    fn new() -> Self {
        let mut slots = Slots::default();
        let overlap = slots.numbers(1);
        let rules = tried().map(|_| slots.numbers(NUMBERS)).collect();
        Self {
            slots,
            overlap,
            rules,
        }
    }

    fn ask(&self, rows: Rows<'_>) -> Result<Answers, String> {
        let (pair, mut out) = (Pair::new(rows), Vec::new());
        self.slots.answered(|answers| {
            answers.put(&self.overlap, [pair.overlap])?;
            for ((rule, at), slot) in tried().zip(&self.rules) {
                let accepted = (rule.law)(&pair, at, &mut out);
                let (mut variation, mut divergence, mut through) = (0.0, 0.0, 0.0);
                for (&o, &p) in out.iter().zip(pair.target) {
                    variation += (o - p).max(0.0);
                    if p > 0.0 {
                        divergence += xlogy(o, o) - xlogy(o, p);
                    } else {
                        through += o;
                    }
                }
                let below = (pair.overlap + variation - accepted).max(0.0);
                let numbers = [accepted, variation, divergence.max(0.0), through, below];
                answers.put(slot, numbers)?;
            }
            Ok(())
        })
    }
}

/// Reads the rows along some logs' texts and tells what each relaxed rule accepts there, how far its output is from the
/// target's, and from the most that a rule so far from it can accept.
///
/// # Formula
/// With o the law of a rule's output at a position: `accepted <= sum min(p, q) + TV(o, p)`, which is an equality on the
/// frontier. Means are over positions, with 95% intervals over prompts. In `f64`; laws sum to 1 within 1e-12 V.
///
/// # Errors
/// As [`Texts::read`](super::Texts::read); also rows that leave tokens open: what such a rule does to the law is not told by lists.
///
/// # Complexity
/// O(V log V) a position, and O(V) a parameter; the refused tokens of `cactus` are sorted.
pub fn measure_relaxed(
    logs: &[Log],
    temperature: Option<f64>,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<RelaxedReport, ReplayError> {
    let asked = Asked::new();
    let question = |_: &mut _, rows: Rows<'_>, _: usize, _: u64| asked.ask(rows);
    let reading = Reading::asking(&question);
    let (texts, of) = read_measured(logs, temperature, &reading, command, progress)?;
    if let (Some(log), true) = (logs.first(), texts.met().any(|at| at.rest != Rest::None)) {
        let message = "its rows list some tokens, and what a relaxed rule does to the others is open; log whole rows, or \
                       all that the sampler may draw";
        return Err(ReplayError::of_log(log, message.to_owned()));
    }
    let mut prompts = vec![Sums::new(asked.rules.len()); texts.clusters];
    for text in &texts.texts {
        prompts[text.cluster].add(text, &asked);
    }
    let by_position = |of: &dyn Fn(&Sums) -> f64| {
        let each: Vec<_> = prompts.iter().map(|sums| (of(sums), sums.count)).collect();
        Clustered::new(each.into_iter())
    };
    let overlap = by_position(&|sums| sums.overlap);
    let rules = tried().enumerate().map(|(index, (rule, value))| {
        let number = |of: usize| by_position(&|sums| sums.rules[index][of]);
        let [accepted, variation, divergence, through, below] =
            [0, 1, 2, 3, 4].map(|of| number(of).estimate());
        let pairs: Vec<_> = (prompts.iter())
            .map(|sums| [sums.rules[index][0], sums.overlap].map(|sum| (sum, sums.count)))
            .map(|[one, other]| (one, other))
            .collect();
        let above = Clustered::difference(pairs.into_iter()).estimate();
        let standing = match above.side() {
            _ if variation.mean < 1e-9 => Standing::Lossless,
            Some(std::cmp::Ordering::Less) => Standing::Dominated,
            _ if below.mean < 1e-9 => Standing::OnFrontier,
            _ => Standing::BelowFrontier,
        };
        RelaxedRate {
            rule: rule.name.to_owned(),
            parameter: rule.parameter.to_owned(),
            value,
            accepted,
            above_lossless: above,
            variation,
            divergence: (through.mean <= 0.0).then_some(divergence),
            let_through: through,
            below_frontier: below,
            standing,
        }
    });
    Ok(RelaxedReport {
        schema: RELAXED_SCHEMA,
        surprise: texts.surprise(),
        overlap: overlap.estimate(),
        rules: rules.collect(),
        definitions: relaxed_definitions(),
        of,
    })
}

/// Words of a report on relaxed rules.
pub fn relaxed_definitions() -> BTreeMap<String, String> {
    glossary::of("relaxed")
}

/// Sums over a prompt's positions.
#[derive(Clone)]
struct Sums {
    count: f64,
    overlap: f64,
    rules: Vec<[f64; NUMBERS]>,
}

impl Sums {
    fn new(rules: usize) -> Self {
        Self {
            count: 0.0,
            overlap: 0.0,
            rules: vec![[0.0; NUMBERS]; rules],
        }
    }

    fn add(&mut self, text: &Text, asked: &Asked) {
        for answers in &text.asked {
            self.count += 1.0;
            self.overlap += asked.overlap.of(answers)[0];
            for (sums, slot) in self.rules.iter_mut().zip(&asked.rules) {
                for (sum, number) in sums.iter_mut().zip(slot.of(answers)) {
                    *sum += number;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str, value: f64, target: &[f64], draft: &[f64]) -> (f64, Vec<f64>) {
        let rule = RULES.iter().find(|rule| rule.name == name).unwrap();
        let mut out = Vec::new();
        let accepted = (rule.law)(&Pair::new(Rows { target, draft }), value, &mut out);
        (accepted, out)
    }

    fn variation(out: &[f64], target: &[f64]) -> f64 {
        out.iter().zip(target).map(|(o, p)| (o - p).max(0.0)).sum()
    }

    /// The published toy: accepted and TV, by hand.
    #[test]
    fn rules_of_the_toy_accept_what_papers_say() {
        let (p, q) = ([0.5, 0.3, 0.2], [0.2, 0.2, 0.6]);
        for (name, value, accepted, off) in [
            ("ensemble", 0.8, 0.68, 0.08),
            ("ensemble", 1.0, 0.6, 0.0),
            ("mentored", 0.3, 0.4 + 0.2 / 0.7, 0.2 / 0.7 - 0.2),
            (
                "cactus",
                0.1,
                0.4 + 0.2 + (0.2f64 * 0.2 * 0.8).sqrt(),
                (0.2f64 * 0.2 * 0.8).sqrt(),
            ),
            ("ears", 0.2, 0.66, 0.06),
            ("casc-tok", 0.5, 0.52, 0.08),
            ("casc-opt", 0.5, 1.0, 0.4),
            ("relaxed-top-k", 0.2, 0.4, 0.3),
            ("typical", 0.09, 1.0, 0.4),
        ] {
            let (kept, out) = at(name, value, &p, &q);
            assert!((kept - accepted).abs() < 1e-12, "{name}: {kept}");
            assert!((variation(&out, &p) - off).abs() < 1e-12, "{name}: {out:?}");
        }
    }

    /// Ten tokens stand where twenty are as likely, and none beyond them where the tenth has p = 0.
    #[test]
    fn ten_tokens_stand_whichever_tie() {
        let uniform = [0.05; 20];
        let (kept, out) = at("relaxed-top-k", 0.1, &uniform, &uniform);
        assert!((kept - 0.5).abs() < 1e-12, "{kept}");
        assert!((out[0] - 0.55).abs() < 1e-12 && out[9] == 0.05 && out[10] == 0.0);
        let (mut p, mut q) = ([0.0; 20], [0.0; 20]);
        p[0] = 0.5;
        p[1] = 0.5;
        q[10..].fill(0.1);
        assert_eq!(at("relaxed-top-k", 0.6, &p, &q).0, 0.0);
    }

    /// Every rule by each draft and what is drawn behind it, from its words, token by token.
    #[test]
    fn laws_are_those_of_every_draft_and_draw() {
        let rows = [
            ([0.5, 0.3, 0.2, 0.0], [0.2, 0.2, 0.5, 0.1]),
            ([0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4]),
            ([1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]),
            ([0.4, 0.4, 0.1, 0.1], [0.4, 0.4, 0.1, 0.1]),
            ([0.05, 0.05, 0.05, 0.85], [0.6, 0.25, 0.1, 0.05]),
        ];
        for (p, q) in rows {
            let pair = Pair::new(Rows {
                target: &p,
                draft: &q,
            });
            for rule in &RULES {
                for &value in rule.values {
                    let mut out = Vec::new();
                    let accepted = (rule.law)(&pair, value, &mut out);
                    let (kept, law) = by_hand(rule.name, value, &p, &q);
                    assert!(
                        (kept - accepted).abs() < 1e-12,
                        "{} {value} {p:?}",
                        rule.name
                    );
                    for (one, other) in out.iter().zip(&law) {
                        assert!(
                            (one - other).abs() < 1e-12,
                            "{} {value}: {out:?} {law:?}",
                            rule.name
                        );
                    }
                    let most = pair.overlap + variation(&out, &p);
                    assert!(
                        accepted <= most + 1e-12 && (out.iter().sum::<f64>() - 1.0).abs() < 1e-12
                    );
                }
            }
        }
    }

    /// The same from the words of the sources: draft x, keep it or draw from what the rule says.
    fn by_hand(name: &str, a: f64, p: &[f64; 4], q: &[f64; 4]) -> (f64, [f64; 4]) {
        let top = p.iter().copied().fold(0.0, f64::max);
        let likeliest = p.iter().position(|&one| one == top).unwrap();
        let tv: f64 = (0..4).map(|x| (p[x] - q[x]).abs() / 2.0).sum();
        let js: f64 = (0..4)
            .map(|x| {
                let m = (p[x] + q[x]) / 2.0;
                [p[x], q[x]]
                    .map(|s| if s > 0.0 { s * (s / m).ln() / 2.0 } else { 0.0 })
                    .iter()
                    .sum::<f64>()
            })
            .sum();
        let entropy: f64 = (p.iter())
            .map(|&one| if one > 0.0 { -one * one.ln() } else { 0.0 })
            .sum();
        let residual = |of: &[f64; 4]| {
            let left: Vec<f64> = (0..4).map(|x| (of[x] - q[x]).max(0.0)).collect();
            let sum: f64 = left.iter().sum();
            [0, 1, 2, 3].map(|x| if sum > 1e-15 { left[x] / sum } else { of[x] })
        };
        let by = |pi: [f64; 4]| -> Box<dyn Fn(usize) -> (f64, [f64; 4])> {
            let left = residual(&pi);
            let q = *q;
            Box::new(move |x| ((pi[x] / q[x]).min(1.0), left))
        };
        let mut sorted = *p;
        sorted.sort_by(|a, b| b.total_cmp(a));
        let (p, q) = (*p, *q);
        let left = residual(&p);
        let mut one_hot = [0.0; 4];
        one_hot[likeliest] = 1.0;
        let rule: Box<dyn Fn(usize) -> (f64, [f64; 4])> = match name {
            "ensemble" => Box::new(move |x| ((1.0 - a + a * p[x] / q[x]).min(1.0), left)),
            "mentored" => Box::new(move |x| ((p[x] / ((1.0 - a) * q[x])).min(1.0), left)),
            "ears" => Box::new(move |x| ((p[x] / q[x] + a * (1.0 - top)).min(1.0), left)),
            "relaxed-top-k" => Box::new(move |x| {
                let stands = p[x] >= sorted[3] && p[x] >= top - a;
                (f64::from(stands), one_hot)
            }),
            "typical" => Box::new(move |x| {
                (
                    f64::from(p[x] >= a.min(a.sqrt() * (-entropy).exp())),
                    one_hot,
                )
            }),
            "cactus" => Box::new(move |x| {
                let g = (p[x] + (2.0 * a * p[x] * (1.0 - p[x])).sqrt()).min(1.0);
                let law = [0, 1, 2, 3].map(|y| match y == x {
                    true => g,
                    false => p[y] * (1.0 - g) / (1.0 - p[x]),
                });
                (
                    (g / q[x]).min(1.0),
                    match g < q[x] {
                        true => residual_of(&law, &q),
                        false => [0.0; 4],
                    },
                )
            }),
            "casc-opt" => {
                let best = q.iter().copied().fold(0.0, f64::max);
                by(if best < top - a * tv { p } else { q })
            }
            "casc-tok" => {
                let outside: f64 = (0..4)
                    .filter(|&x| p[x] < (1.0 - a) * top)
                    .map(|x| q[x])
                    .sum();
                by([0, 1, 2, 3]
                    .map(|x| if p[x] >= (1.0 - a) * top { q[x] } else { 0.0 } + outside * p[x]))
            }
            _ => by(if js <= a { q } else { p }),
        };
        let (mut accepted, mut out) = (0.0, [0.0; 4]);
        for x in (0..4).filter(|&x| q[x] > 0.0) {
            let (keep, law) = rule(x);
            accepted += q[x] * keep;
            out[x] += q[x] * keep;
            for y in 0..4 {
                out[y] += q[x] * (1.0 - keep) * law[y];
            }
        }
        (accepted, out)
    }

    fn residual_of(of: &[f64; 4], q: &[f64; 4]) -> [f64; 4] {
        let left = [0, 1, 2, 3].map(|x| (of[x] - q[x]).max(0.0));
        let sum: f64 = left.iter().sum();
        left.map(|one| one / sum)
    }
}
