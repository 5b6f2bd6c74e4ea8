//! Tokens a call where a round drafts n i.i.d. tokens at each of K positions and selects one of
//! each as evenly against p as can be: verified round by round, and by rules that carry.
//!
//!     cargo run --release --example siblings_that_carry -- models/logs/smollm2-demo 1
//!
//! `docs/theory/several-rounds.md`, section 7, has what is proved. Where rows list some tokens, all
//! others count as one: then the numbers are of this coarser vocabulary.

use specgap::distribution::Softmax;
use specgap::log::{Log, Row};
use specgap::plan::even_selection;
use specgap::rounds::{ChainRule, FixedLength, carried_starts, fewest_calls, replay};
use specgap::sampling::probabilities;
use std::collections::BTreeMap;
use std::path::PathBuf;

const DRAFTS: [usize; 4] = [1, 2, 4, 8];

type Failure = Box<dyn std::error::Error>;

/// p and q of the listed tokens, and of all others as one; and where the text's token is.
fn rows(log: &Log, row: &Row, token: u32) -> Result<([Vec<f64>; 2], usize), Failure> {
    let metadata = log.metadata();
    let softmax = Softmax {
        temperature: 1.0 / metadata.applied(),
    };
    let column = metadata.rest_temperatures.iter().position(|t| *t == 1.0);
    let read = |entries: &[f64], kind, rest: &[f64]| -> Result<Vec<f64>, Failure> {
        let (mut scratch, mut shares) = (Vec::new(), Vec::new());
        probabilities(entries, kind, &softmax, &mut scratch, &mut shares)?;
        if !row.token_ids.is_empty() {
            let mass = column.and_then(|column| rest.get(column));
            let mass = *mass.ok_or("the log has no mass of unlisted tokens at temperature 1")?;
            shares.iter_mut().for_each(|share| *share *= 1.0 - mass);
            shares.push(mass);
        }
        Ok(shares)
    };
    let p = read(&row.target, row.target_kind, &row.target_rest)?;
    let q = read(&row.draft, row.draft_kind, &row.draft_rest)?;
    let place = match row.token_ids.is_empty() {
        true => token as usize,
        false => (row.token_ids.iter().position(|id| *id == token)).unwrap_or(p.len() - 1),
    };
    Ok(([p, q], place))
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let log = arguments.next().ok_or("give a log")?;
    let length: usize = arguments.next().unwrap_or("1".into()).parse()?;
    let log = Log::open(&PathBuf::from(log))?;
    let labels = log.labels()?;
    // s*/p at the tokens of each text, by number of drafts.
    let mut texts = BTreeMap::<Option<i64>, [Vec<f64>; DRAFTS.len()]>::new();
    let mut row = Row::default();
    for span in log.spans(64) {
        let chunk = log.chunk(&span)?;
        for index in chunk.positions() {
            chunk.read(index, &mut row)?;
            let label = &labels[index];
            let token = label.token.ok_or("the log has no token [N]")?;
            let ([p, q], place) = rows(&log, &row, u32::try_from(token)?)?;
            let ratios = texts.entry(label.prompt).or_default();
            for (ratios, drafts) in ratios.iter_mut().zip(DRAFTS) {
                ratios.push(even_selection(&p, &q, drafts)[place] / p[place]);
            }
        }
    }
    println!("tokens a call, {length} positions a round");
    println!("drafts each   round by round   by block   carried   no rule of the selected drafts");
    for (number, drafts) in DRAFTS.iter().enumerate() {
        let ratios = || texts.values().map(|ratios| ratios[number].as_slice());
        let tokens: usize = ratios().map(<[f64]>::len).sum();
        let by = |calls: &dyn Fn(&[f64]) -> f64| tokens as f64 / ratios().map(calls).sum::<f64>();
        let replayed = |verifier| {
            let calls =
                move |of: &[f64]| replay(verifier, of, &FixedLength(length)).map(|r| r.calls);
            by(&|of| calls(of).unwrap_or(0.0))
        };
        println!(
            "{drafts:>11}   {:>14.3}   {:>8.3}   {:>7.3}   {:>30.3}",
            replayed(ChainRule::TOKEN),
            replayed(ChainRule::BLOCK),
            by(&|of| carried_starts(of, length).iter().sum()),
            by(&|of| fewest_calls(of, length)),
        );
    }
    Ok(())
}
