//! SpecHub's toy table, drawn again.

use super::Finding;
use super::claim::claims;
use super::family::Family;
use specgap_base::side_by_side;
use specgap_core::optimum::ratio_scan::float_order;
use specgap_core::problem::Problem;
use specgap_core::scheme::{DraftScheme, Hub, WithReplacement, WithoutReplacement};
use specgap_core::verifier::{VerifierName, verifier};
use specgap_number::distribution::{Draft, Softmax, Target, TwoFloat, compensated_sum};
use std::sync::Arc;

claims! {
    supported "spechub-table4" by check,
        "the toy table of SpecHub: acceptance of RRS, RRSw, OTM, OTMw and SpecHub for \
        T in {0.1, 0.25, 0.5} and similarity s in {0.7, 0.5}",
        "SpecHub, App. D",
        "Standard normal logits u, v over 50 tokens, p = softmax(u/T), \
        q = softmax((s u + (1-s) v)/T), n = 2; the published cells are averages over 100 draws, ours \
        over 10,000, every acceptance computed without simulation. A cell's z is the difference over \
        its standard error, both averages' noise included; the check asks for |z| < 4 in all 30 \
        cells (by chance alone exceeded once in 500 tables). The paper's text says uniform logits; \
        those do not reproduce it. RRSw, OTMw: without replacement.";
}

const VOCAB: usize = 50;
const DRAWS: usize = 10_000;
/// Draws of each line on which formulas are compared with the verifiers.
const AUDITED: usize = 10;
/// Draws behind a published cell.
const PUBLISHED_DRAWS: f64 = 100.0;
const LIMIT: f64 = 4.0;

/// (T, s, published averages of RRS, RRSw, OTM, OTMw, SpecHub, names of our evidence).
type Line = (f64, f64, [f64; 5], [&'static str; 5]);

#[rustfmt::skip]
const TABLE: [Line; 6] = [
    (0.1, 0.7, [0.6273, 0.7120, 0.6380, 0.7345, 0.7402],
     ["T=.1 s=.7 RRS", "T=.1 s=.7 RRSw", "T=.1 s=.7 OTM", "T=.1 s=.7 OTMw", "T=.1 s=.7 SpecHub"]),
    (0.1, 0.5, [0.3323, 0.4057, 0.3346, 0.4125, 0.4123],
     ["T=.1 s=.5 RRS", "T=.1 s=.5 RRSw", "T=.1 s=.5 OTM", "T=.1 s=.5 OTMw", "T=.1 s=.5 SpecHub"]),
    (0.25, 0.7, [0.7354, 0.7653, 0.7846, 0.8321, 0.8113],
     ["T=.25 s=.7 RRS", "T=.25 s=.7 RRSw", "T=.25 s=.7 OTM", "T=.25 s=.7 OTMw", "T=.25 s=.7 SpecHub"]),
    (0.25, 0.5, [0.4564, 0.4978, 0.4743, 0.5245, 0.4968],
     ["T=.25 s=.5 RRS", "T=.25 s=.5 RRSw", "T=.25 s=.5 OTM", "T=.25 s=.5 OTMw", "T=.25 s=.5 SpecHub"]),
    (0.5, 0.7, [0.8090, 0.8122, 0.9037, 0.9150, 0.8500],
     ["T=.5 s=.7 RRS", "T=.5 s=.7 RRSw", "T=.5 s=.7 OTM", "T=.5 s=.7 OTMw", "T=.5 s=.7 SpecHub"]),
    (0.5, 0.5, [0.6456, 0.6593, 0.7052, 0.7206, 0.6403],
     ["T=.5 s=.5 RRS", "T=.5 s=.5 RRSw", "T=.5 s=.5 OTM", "T=.5 s=.5 OTMw", "T=.5 s=.5 SpecHub"]),
];

fn check(finding: &mut Finding) {
    finding.count("draws a cell", DRAWS as u64);
    let moments: Vec<Option<[(f64, f64); 5]>> = side_by_side::each_number(TABLE.len(), |line| {
        let (temperature, similarity, ..) = TABLE[line];
        moments(line, temperature, similarity)
    });
    let mut largest: f64 = 0.0;
    for (&(_, _, published, names), moments) in TABLE.iter().zip(moments) {
        let Some(moments) = moments else {
            finding.require(false, || {
                "a draw failed, or a formula differs from its verifier".into()
            });
            continue;
        };
        for ((name, published), (mean, variance)) in names.into_iter().zip(published).zip(moments) {
            let draws = DRAWS as f64;
            let error = (variance / draws).sqrt();
            let z = (published - mean) / (variance * (1.0 / draws + 1.0 / PUBLISHED_DRAWS)).sqrt();
            largest = largest.max(z.abs());
            let cell = format!("{mean:.4} ± {error:.4}; published {published:.4}, z = {z:+.2}");
            finding.require(z.abs() < LIMIT, || format!("{name}: {cell}"));
            finding.text(name, cell);
        }
    }
    finding.number("largest |z|", largest);
}

/// Mean and variance of each method over the draws of one line.
fn moments(line: usize, temperature: f64, similarity: f64) -> Option<[(f64, f64); 5]> {
    let mut family = Family::new(400 + line as u64);
    let mut sums = [(0.0, 0.0); 5];
    for index in 0..DRAWS {
        let cells = draw(&mut family, temperature, similarity, index < AUDITED)?;
        for ((sum, squares), cell) in sums.iter_mut().zip(cells) {
            *sum += cell;
            *squares += cell * cell;
        }
    }
    let draws = DRAWS as f64;
    Some(sums.map(|(sum, squares)| {
        let mean = sum / draws;
        (mean, (squares - sum * mean) / (draws - 1.0))
    }))
}

/// The five acceptances of one draw of the logits.
fn draw(family: &mut Family, temperature: f64, similarity: f64, audit: bool) -> Option<[f64; 5]> {
    let u: Vec<f64> = (0..VOCAB).map(|_| family.normal()).collect();
    let mixed = u
        .iter()
        .map(|u| similarity * u + (1.0 - similarity) * family.normal());
    let mixed: Vec<f64> = mixed.collect();
    let rule = Softmax { temperature };
    let p = Target::from_logits(&u, &rule).ok()?;
    let q = Draft::from_logits(&mixed, &rule).ok()?;
    let with = WithReplacement::new(q.clone(), 2);
    let without = WithoutReplacement::new(q.clone(), 2);
    let optimum = [scan(&p, &q, &with), scan(&p, &q, &without)];
    let hub = Hub::new(q.clone());
    let (rrs, spechub) = (rrs_of_two(&p, &q), spechub(&p, &q, hub.hub()));
    let rate = |law: Arc<dyn DraftScheme>, name| {
        let problem = Problem::from_law("toy", p.clone(), law).ok()?;
        let acceptance = verifier(name, &problem).ok()?.acceptance();
        Some(acceptance.membership.value())
    };
    if audit {
        // The formulas against the verifiers themselves.
        let library = rate(Arc::new(with), VerifierName::RRS)?;
        let library_hub = rate(Arc::new(hub), VerifierName::SPECHUB)?;
        if (library - rrs).abs() > 1e-12 || (library_hub - spechub).abs() > 1e-12 {
            return None;
        }
    }
    let rrs_wo = rate(Arc::new(without), VerifierName::RRS_WO)?;
    Some([rrs, rrs_wo, optimum[0], optimum[1], spechub])
}

/// Recursive rejection with two i.i.d. drafts: after a rejection, which has
/// probability r, the residual is (p - q)+ / r, so token x is accepted with
/// min(p, q) + min((p - q)+, r q) = min(p, (1 + r) q).
fn rrs_of_two(p: &Target, q: &Draft) -> f64 {
    let rows = || p.probabilities().iter().zip(q.probabilities());
    let rejected = compensated_sum(rows().map(|(p, q)| (p - q).max(0.0)));
    compensated_sum(rows().map(|(p, q)| p.min((1.0 + rejected) * q)))
}

/// p(a) + sum over x != a of min(p, q / (1 - q(a))).
fn spechub(p: &Target, q: &Draft, hub: usize) -> f64 {
    let row = q.probabilities();
    let others = (0..row.len()).filter(|&x| x != hub);
    let rest = compensated_sum(others.map(|x| row[x]));
    let rows = p.probabilities().iter().zip(q.probabilities()).enumerate();
    compensated_sum(rows.map(|(x, (p, q))| if x == hub { *p } else { p.min(q / rest) }))
}

/// The ratio scan in `f64`; its error is far below the table's noise.
fn scan(p: &Target, q: &Draft, scheme: &dyn DraftScheme) -> f64 {
    let row = p.probabilities();
    let order = float_order(row, q.probabilities());
    let mut held = TwoFloat::ZERO;
    let prefixes = order.iter().zip(scheme.prefix_scan(&order).inside);
    let values = prefixes.map(|(&token, inside)| {
        held += row[token];
        held.value() - inside
    });
    1.0 + values.fold(0.0, f64::min)
}
