//! Random rows through every rule, with exact fractions and symmetries as judges.

use crate::Target;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Rational, Target as Wanted, exact_value};
use specgap::evaluate::{Evaluated, verify};
use specgap::known::{Kind, Known};
use specgap::problem::Problem;
use specgap::row::{Rows, Workspace};
use specgap::scheme::{DraftScheme, LAWS, Law, MadeOf, SchemeName};
use specgap::verifier::VERIFIERS;
use std::sync::Arc;

/// Rows of a few tokens.
struct RandomRows {
    workspace: Workspace,
    runs: u64,
}

/// What can be asked of rows.
pub fn all() -> Vec<Box<dyn Target>> {
    vec![Box::new(RandomRows {
        workspace: Workspace::new(),
        runs: 0,
    })]
}

/// One row of weights: whole numbers, ties and zeros, many orders of magnitude, one token.
fn weights(rng: &mut ChaCha8Rng, vocab: usize) -> Vec<f64> {
    let kind = rng.random_range(0..6);
    let decades = [3, 16, 80, 300][rng.random_range(0..4)];
    let mut row: Vec<f64> = (0..vocab)
        .map(|_| match kind {
            0 => f64::from(rng.random_range(0..5u8)),
            1 => rng.random::<f64>(),
            2 => 10f64.powi(-rng.random_range(0..decades)),
            3 => 10f64.powf(-rng.random::<f64>() * f64::from(decades)),
            4 => 1.0 + f64::from(rng.random_range(0..3u8)) * f64::EPSILON,
            _ => [0.0, 0.0, 0.5, 1.0, 1e-9, 1e-17][rng.random_range(0..6)],
        })
        .collect();
    if !row.iter().any(|&x| x > 1e-3) {
        let token = rng.random_range(0..vocab);
        row[token] = 1.0;
    }
    let total: f64 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= total);
    row
}

/// The input as numbers: n, then both rows.
fn encoded(drafts: usize, p: &[f64], q: &[f64]) -> Vec<u8> {
    let numbers = [drafts as f64]
        .into_iter()
        .chain(p.iter().chain(q).copied());
    numbers.flat_map(f64::to_le_bytes).collect()
}

fn decoded(input: &[u8]) -> (usize, Vec<f64>, Vec<f64>) {
    let number = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap());
    let numbers: Vec<f64> = input.chunks(8).map(number).collect();
    let vocab = numbers.len() / 2;
    (
        numbers[0] as usize,
        numbers[1..=vocab].to_vec(),
        numbers[vocab + 1..].to_vec(),
    )
}

/// An answer about a row: alpha* of a law, or what a verifier accepts of its drafts.
struct Rate {
    law: SchemeName,
    /// `optimum`, or the verifier.
    of: String,
    rate: Known,
}

impl RandomRows {
    /// Everything that is asked of a row of a log with n drafts.
    fn rates(&mut self, p: &[f64], q: &[f64], drafts: usize) -> Result<Vec<Rate>, String> {
        let rows = Rows {
            target: p,
            draft: q,
        };
        let mut row = self
            .workspace
            .load(rows, drafts)
            .map_err(|error| error.to_string())?;
        let mut rates = Vec::new();
        for law in LAWS {
            let Some(on_row) = &law.on_row else { continue };
            if law.only.is_some_and(|only| only != drafts) || !fits(law, p.len(), drafts) {
                continue;
            }
            let scheme: SchemeName = law.name.parse().map_err(|_| law.name.to_owned())?;
            // Refused: fewer tokens can be drawn than there are distinct drafts.
            let Ok(optimum) = (on_row.optimum.full)(&mut row, drafts) else {
                continue;
            };
            rates.push(Rate {
                law: scheme,
                of: "optimum".to_owned(),
                rate: optimum,
            });
            for verifier in VERIFIERS {
                let name = verifier.name.parse::<specgap::verifier::VerifierName>();
                let name = name.map_err(|_| verifier.name.to_owned())?;
                let Some(rule) = name.on_row(scheme) else {
                    continue;
                };
                if !name.is_lossless(scheme, drafts) || drafts > rule.most {
                    continue;
                }
                let answer = rule.answer(&mut row, drafts, 0);
                let answer =
                    answer.map_err(|error| format!("{}/{}: {error}", law.name, verifier.name))?;
                rates.push(Rate {
                    law: scheme,
                    of: verifier.name.to_owned(),
                    rate: answer.rate,
                });
            }
        }
        Ok(rates)
    }
}

fn fits(law: &Law, vocab: usize, drafts: usize) -> bool {
    !law.distinct || drafts <= vocab
}

fn scheme_of(law: &Law, q: &[f64], drafts: usize) -> Option<Arc<dyn DraftScheme>> {
    match law.made_of {
        MadeOf::OneDraft(build) => Some(build(Draft::new(q).ok()?, drafts)),
        _ => None,
    }
}

/// Whether an enclosure holds a fraction; anything does that promises nothing.
fn holds(rate: &Known, truth: &Rational) -> bool {
    if !matches!(rate.kind(), Kind::Exact | Kind::Enclosed) {
        return true;
    }
    let (lower, upper) = (exact_value(rate.lower()), exact_value(rate.upper()));
    lower.is_some_and(|lower| lower <= *truth) && upper.is_some_and(|upper| *truth <= upper)
}

/// 1 + the least of P(H) - Q(H) over all sets of tokens, in fractions.
fn by_enumeration(target: &Wanted, scheme: &dyn DraftScheme) -> Rational {
    let one = Rational::from_integer(1.into());
    (0u32..1 << target.vocab())
        .map(|bits| {
            let set: Vec<usize> = (0..target.vocab())
                .filter(|&token| bits >> token & 1 == 1)
                .collect();
            &one + target.exact().mass(&set) - scheme.inside_exact(&set)
        })
        .min()
        .unwrap_or(one)
}

impl RandomRows {
    fn check(&mut self, drafts: usize, p: &[f64], q: &[f64]) -> Result<bool, String> {
        self.runs += 1;
        let rates = self.rates(p, q, drafts)?;
        for one in &rates {
            let name = format!("{} of {}, n = {drafts}", one.of, one.law);
            let (low, high) = (one.rate.lower(), one.rate.upper());
            if !(0.0 <= low && low <= one.rate.value() && one.rate.value() <= high && high <= 1.0) {
                return Err(format!("{name}: {:?}", one.rate));
            }
            let optimum = rates
                .iter()
                .find(|other| other.law == one.law && other.of == "optimum");
            if let Some(optimum) = optimum
                && low > optimum.rate.upper()
            {
                return Err(format!(
                    "{name}: {:?} is above {:?}",
                    one.rate, optimum.rate
                ));
            }
        }
        self.same_elsewhere(drafts, p, q, &rates)?;
        self.as_fractions(drafts, p, q, &rates)?;
        Ok(!rates.is_empty())
    }

    /// Tokens in another order, and tokens that neither model ever draws.
    fn same_elsewhere(
        &mut self,
        drafts: usize,
        p: &[f64],
        q: &[f64],
        rates: &[Rate],
    ) -> Result<(), String> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.runs);
        let mut order: Vec<usize> = (0..p.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, rng.random_range(0..=last));
        }
        let mut permuted =
            [p, q].map(|row| order.iter().map(|&token| row[token]).collect::<Vec<_>>());
        for row in &mut permuted {
            row.extend([0.0; 3]);
        }
        let ties = (1..q.len()).any(|token| q[..token].contains(&q[token]));
        let others = self.rates(&permuted[0], &permuted[1], drafts)?;
        for one in rates {
            // Of tokens that are equally probable, those with the lower ids are its top.
            if ties && ["greedy", "hub", "top"].contains(&one.law.as_str()) {
                continue;
            }
            let other = others
                .iter()
                .find(|other| other.law == one.law && other.of == one.of);
            let Some(other) = other else {
                return Err(format!(
                    "{} of {}: no answer with tokens permuted",
                    one.of, one.law
                ));
            };
            if !one.rate.may_equal(&other.rate) {
                return Err(format!(
                    "{} of {}, n = {drafts}: {:?}, permuted {:?}",
                    one.of, one.law, one.rate, other.rate
                ));
            }
        }
        Ok(())
    }

    /// The optimum by enumeration, every verifier's law as a problem, and what the row says.
    fn as_fractions(
        &self,
        drafts: usize,
        p: &[f64],
        q: &[f64],
        rates: &[Rate],
    ) -> Result<(), String> {
        let Ok(target) = Wanted::new(p) else {
            return Ok(());
        };
        for law in LAWS {
            let Some(optimum) = rates
                .iter()
                .find(|one| one.law.as_str() == law.name && one.of == "optimum")
            else {
                continue;
            };
            let Some(scheme) = scheme_of(law, q, drafts) else {
                continue;
            };
            // Fractions of many digits take milliseconds each.
            if (scheme.exact_bits() + target.exact_bits() as f64) * (1u64 << p.len()) as f64 > 2e5 {
                continue;
            }
            let truth = by_enumeration(&target, &*scheme);
            if !holds(&optimum.rate, &truth) {
                return Err(format!(
                    "alpha* of {}, n = {drafts}: {:?}, truth {truth}",
                    law.name, optimum.rate
                ));
            }
            // The laws of all verifiers take longer still.
            if !self.runs.is_multiple_of(8) || scheme.set_count() > 200.0 {
                continue;
            }
            let Ok(problem) = Problem::from_law("fuzz", target.clone(), scheme) else {
                continue;
            };
            let checked = verify(&problem);
            if !checked.is_ok() {
                return Err(format!("{}: {:?}", law.name, checked.complaints()));
            }
            for one in rates.iter().filter(|one| one.law.as_str() == law.name) {
                let measured = one.of.parse().ok().and_then(|name| checked.measured(name));
                let exactly = measured.and_then(|measured| measured.membership.rational());
                if let Some(truth) = exactly
                    && !holds(&one.rate, truth)
                {
                    return Err(format!(
                        "{} of {}, n = {drafts}: {:?}, truth {truth}",
                        one.of, law.name, one.rate
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Target for RandomRows {
    fn name(&self) -> String {
        "rows".to_owned()
    }

    fn input(&mut self, rng: &mut ChaCha8Rng) -> Vec<u8> {
        let vocab = rng.random_range(1..7);
        let drafts = [1, 2, 2, 3, 3, 4, 6, 64][rng.random_range(0..8)];
        let p = weights(rng, vocab);
        let q = if rng.random_bool(0.1) {
            p.clone()
        } else {
            weights(rng, vocab)
        };
        encoded(drafts, &p, &q)
    }

    fn run(&mut self, input: &[u8]) -> Result<bool, String> {
        let (drafts, p, q) = decoded(input);
        self.check(drafts, &p, &q)
            .map_err(|message| format!("p = {p:?}, q = {q:?}: {message}"))
    }
}
