//! Random rows through every rule, with exact fractions and symmetries as judges.
//!
//! What takes milliseconds is asked of some of the rows: its part is beside it, and how often each
//! was asked is said at the end. A number of the input decides, so that an input that failed
//! fails again.

use crate::Target;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Rational, Target as Wanted, exact_value};
use specgap::evaluate::{Evaluated, verify};
use specgap::gap::{Part, Settings, Summary, summarise};
use specgap::known::{Kind, Known};
use specgap::log::{Dtype, HeldTensor, Log, Metadata};
use specgap::problem::Problem;
use specgap::row::{Rows, Workspace};
use specgap::scheme::{DraftScheme, LAWS, Law, MadeOf, SchemeName};
use specgap::verifier::{RowRate, RowRule, VERIFIERS};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Rows of a few tokens.
struct RandomRows {
    workspace: Workspace,
    /// Of one and of two threads.
    pools: [rayon::ThreadPool; 2],
    asked: BTreeMap<String, u64>,
}

/// What can be asked of rows.
pub fn all() -> Vec<Box<dyn Target>> {
    let pool = |threads| {
        let built = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        built.unwrap()
    };
    vec![Box::new(RandomRows {
        workspace: Workspace::new(),
        pools: [pool(1), pool(2)],
        asked: BTreeMap::new(),
    })]
}

/// One of so many rows is asked for alpha* by enumeration in fractions.
const ENUMERATED: u64 = 16;
/// And for the laws of all verifiers, of those.
const VERIFIED: u64 = 16;
/// And with tokens in another order.
const PERMUTED: u64 = 4;
/// And is made a log with others, which is measured whole and in parts, by one thread and by two.
const AS_LOG: u64 = 2000;

/// Plans that are further below alpha* are counted.
const PLAN: f64 = 1e-10;

/// One of so many rows is asked for a verifier's rate.
fn part_asked(rule: &RowRule) -> u64 {
    match rule.rate {
        RowRate::Planned(_) => 8,
        _ => 1,
    }
}

/// Which questions a row is asked: the same for the same number.
#[derive(Clone, Copy)]
struct Choice(u64);

impl Choice {
    /// Whether the row is the one of `part` that is asked a question.
    fn takes(self, question: u64, part: u64) -> bool {
        ChaCha8Rng::seed_from_u64(self.0 ^ question.rotate_left(32))
            .next_u64()
            .is_multiple_of(part)
    }
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

/// The input as numbers of eight bytes: n, what is asked, then both rows.
fn encoded(drafts: usize, choice: u64, p: &[f64], q: &[f64]) -> Vec<u8> {
    let rows = p.iter().chain(q).map(|x| x.to_bits());
    let numbers = [drafts as u64, choice].into_iter().chain(rows);
    numbers.flat_map(u64::to_le_bytes).collect()
}

fn decoded(input: &[u8]) -> (usize, Choice, Vec<f64>, Vec<f64>) {
    let (numbers, _) = input.as_chunks::<8>();
    let numbers: Vec<u64> = numbers.iter().map(|&x| u64::from_le_bytes(x)).collect();
    let rows: Vec<f64> = numbers[2..].iter().map(|&x| f64::from_bits(x)).collect();
    let (p, q) = rows.split_at(rows.len() / 2);
    (
        numbers[0] as usize,
        Choice(numbers[1]),
        p.to_vec(),
        q.to_vec(),
    )
}

/// An answer about a row: alpha* of a law, or what a verifier accepts of its drafts.
struct Rate {
    law: SchemeName,
    /// `optimum`, or the verifier.
    of: String,
    rate: Known,
    /// What a plan accepts that was solved for the row, and may have stopped short of alpha*.
    planned: bool,
}

impl RandomRows {
    /// What is asked of a row of a log with n drafts.
    fn rates(
        &mut self,
        p: &[f64],
        q: &[f64],
        drafts: usize,
        choice: Choice,
    ) -> Result<Vec<Rate>, String> {
        let rows = Rows {
            target: p,
            draft: q,
        };
        let mut row = self
            .workspace
            .load(rows, drafts)
            .map_err(|error| error.to_string())?;
        let mut rates = Vec::new();
        for (number, law) in LAWS.iter().enumerate() {
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
                planned: false,
            });
            for (other, verifier) in VERIFIERS.iter().enumerate() {
                let name = verifier
                    .rule
                    .as_str()
                    .parse::<specgap::verifier::VerifierName>();
                let name = name.map_err(|_| verifier.rule.to_string())?;
                let Some(rule) = name.on_row(scheme) else {
                    continue;
                };
                if !name.is_lossless(scheme, drafts) {
                    continue;
                }
                let question = (1 + number * VERIFIERS.len() + other) as u64;
                if !choice.takes(question, part_asked(&rule)) {
                    continue;
                }
                let answer = rule.answer(&mut row, drafts, 0);
                let answer =
                    answer.map_err(|error| format!("{}/{}: {error}", law.name, verifier.rule))?;
                rates.push(Rate {
                    law: scheme,
                    of: verifier.rule.to_string(),
                    rate: answer.rate,
                    planned: matches!(rule.rate, RowRate::Planned(_)),
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
    fn check(
        &mut self,
        drafts: usize,
        choice: Choice,
        p: &[f64],
        q: &[f64],
    ) -> Result<bool, String> {
        let rates = self.rates(p, q, drafts, choice)?;
        for one in &rates {
            let name = format!("{} of {}", one.of, one.law);
            let (low, high) = (one.rate.lower(), one.rate.upper());
            if !(0.0 <= low && low <= one.rate.value() && one.rate.value() <= high && high <= 1.0) {
                return Err(format!("{name}, n = {drafts}: {:?}", one.rate));
            }
            let optimum = rates
                .iter()
                .find(|other| other.law == one.law && other.of == "optimum");
            if let Some(optimum) = optimum {
                if low > optimum.rate.upper() {
                    return Err(format!(
                        "{name}, n = {drafts}: {:?} is above {:?}",
                        one.rate, optimum.rate
                    ));
                }
                if one.planned && high + PLAN < optimum.rate.lower() {
                    self.count(&format!("{name}, more than {PLAN:e} below alpha*"));
                }
            }
            self.count(&name);
        }
        let all = u64::MAX;
        if choice.takes(all, PERMUTED) {
            self.count("tokens in another order");
            self.same_elsewhere(drafts, choice, p, q, &rates)?;
        }
        if choice.takes(all - 1, ENUMERATED) {
            self.as_fractions(drafts, choice, p, q, &rates)?;
        }
        if choice.takes(all - 2, AS_LOG) {
            self.count("parts and threads of a log");
            self.as_log(drafts, choice, p, q)?;
        }
        Ok(!rates.is_empty())
    }

    fn count(&mut self, question: &str) {
        match self.asked.get_mut(question) {
            Some(times) => *times += 1,
            None => {
                self.asked.insert(question.to_owned(), 1);
            }
        }
    }

    /// Tokens in another order, and tokens that neither model ever draws.
    fn same_elsewhere(
        &mut self,
        drafts: usize,
        choice: Choice,
        p: &[f64],
        q: &[f64],
        rates: &[Rate],
    ) -> Result<(), String> {
        let mut rng = ChaCha8Rng::seed_from_u64(choice.0);
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
        // Rows are normalised anew, so that their last digits differ.
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a;
        let near_ties = (1..q.len()).any(|token| q[..token].iter().any(|&x| near(q[token], x)));
        let others = self.rates(&permuted[0], &permuted[1], drafts, choice)?;
        for one in rates {
            // Strata are laid by ids there, and passes that follow the ratio end where a last
            // digit says.
            let strata = one.law.as_str().starts_with("stratified");
            if strata && (near_ties || one.of == "level") {
                continue;
            }
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
            // Each holds what its own plan accepts, which may end elsewhere.
            if !one.planned && !one.rate.may_equal(&other.rate) {
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
        &mut self,
        drafts: usize,
        choice: Choice,
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
            self.count(&format!("optimum of {} by enumeration", law.name));
            let truth = by_enumeration(&target, &*scheme);
            if !holds(&optimum.rate, &truth) {
                return Err(format!(
                    "alpha* of {}, n = {drafts}: {:?}, truth {truth}",
                    law.name, optimum.rate
                ));
            }
            // The laws of all verifiers take longer still.
            if !choice.takes(0, VERIFIED) || scheme.set_count() > 200.0 {
                continue;
            }
            self.count(&format!(
                "laws of all verifiers of {} as a problem",
                law.name
            ));
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
                let Some(truth) = exactly else { continue };
                // A plan of fractions attains alpha*, which one that was solved for the row may miss.
                let wrong = if one.planned {
                    exact_value(one.rate.lower()).is_none_or(|lower| lower > *truth)
                } else {
                    !holds(&one.rate, truth)
                };
                if wrong {
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

/// Positions in a log of rows of one length, four to a prompt.
const POSITIONS: usize = 10;

impl RandomRows {
    /// The row with others in a log: parts and threads change no bit of what is measured.
    fn as_log(
        &mut self,
        drafts: usize,
        choice: Choice,
        p: &[f64],
        q: &[f64],
    ) -> Result<(), String> {
        let mut rng = ChaCha8Rng::seed_from_u64(choice.0);
        let mut rows = [p.to_vec(), q.to_vec()];
        for _ in 1..POSITIONS {
            for row in &mut rows {
                row.extend(weights(&mut rng, p.len()));
            }
        }
        let tensor = |name: &str, dtype, shape: Vec<usize>, entries: Vec<u8>| HeldTensor {
            name: name.to_owned(),
            dtype,
            shape,
            entries: Arc::new(entries),
        };
        let numbers = |name: &str, row: &[f64]| {
            let entries = row.iter().flat_map(|x| x.to_le_bytes()).collect();
            tensor(name, Dtype::F64, vec![POSITIONS, p.len()], entries)
        };
        let integers = |name: &str, value: fn(usize) -> usize| {
            let entries = (0..POSITIONS).flat_map(|at| (value(at) as i64).to_le_bytes());
            tensor(name, Dtype::I64, vec![POSITIONS], entries.collect())
        };
        let tensors = vec![
            numbers("target_probs", &rows[0]),
            numbers("draft_probs", &rows[1]),
            integers("prompt_id", |at| at / 4),
            integers("position", |at| at % 4),
        ];
        let log = Log::held(Path::new("rows"), Metadata::default(), tensors, None);
        let logs = [log.map_err(|error| error.to_string())?];
        let mut settings = Settings::new(&[0.5, 1.0], &[1, drafts.min(4)], choice.0)
            .map_err(|error| error.to_string())?;
        settings.schemes.retain(|scheme| {
            let law = LAWS.iter().find(|law| law.name == scheme.as_str());
            law.is_some_and(|law| fits(law, p.len(), drafts))
        });
        let measured = |pool: &rayon::ThreadPool, part: Part| {
            pool.install(|| summarise(&logs, &settings, part, None, &|_| ()))
                .map_err(|error| error.to_string())
        };
        let written = |summary: &Summary| summary.to_json().map_err(|error| error.to_string());
        let [one, two] = &self.pools;
        // A row may list fewer tokens than a law needs. All have to say so alike.
        let whole = measured(one, Part::WHOLE).and_then(|whole| written(&whole));
        let again = measured(two, Part::WHOLE).and_then(|whole| written(&whole));
        if whole != again {
            return Err(format!("one thread: {whole:?}; two: {again:?}"));
        }
        let Ok(whole) = whole else { return Ok(()) };
        self.count("parts and threads of a log that is measured");
        let count = 2 + (choice.0 % 3) as usize;
        let [one, two] = &self.pools;
        let mut merged = measured(
            two,
            Part {
                index: count,
                count,
            },
        )?;
        for index in 1..count {
            // Carried as files, as they are between machines.
            let part = written(&measured(one, Part { index, count })?)?;
            let part = Summary::from_json(&part).map_err(|error| error.to_string())?;
            merged.merge(&part).map_err(|error| error.to_string())?;
        }
        let merged = written(&merged)?;
        if merged != whole {
            return Err(format!("whole: {whole}; of {count} parts: {merged}"));
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
        encoded(drafts, rng.next_u64(), &p, &q)
    }

    fn run(&mut self, input: &[u8]) -> Result<bool, String> {
        let (drafts, choice, p, q) = decoded(input);
        self.check(drafts, choice, &p, &q)
            .map_err(|message| format!("p = {p:?}, q = {q:?}: {message}"))
    }

    /// Plans of sequential draws are slow where q spans hundreds of decades.
    fn limit(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn summary(&self) -> String {
        let lines =
            (self.asked.iter()).map(|(question, times)| format!("    {times} {question}\n"));
        lines.collect()
    }
}
