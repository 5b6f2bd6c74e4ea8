//! Optima of problems: every method on laws of every kind, with what it says of its own work.

use super::rows::pairs;
use super::{Number, Record, count, known};
use specgap::coupling::Coupling;
use specgap::distribution::{Draft, Target, parse_rational};
use specgap::optimum::{
    Optimum, ScaledInstance, best, closed_form, enumeration, flow, ratio_scan, submodular,
    thresholds,
};
use specgap::problem::Problem;
use specgap::scheme::{
    Composed, Composition, DistinctConditioned, DraftScheme, Draws, Greedy, Hub, Product, Top,
    WithReplacement, WithoutReplacement,
};
use std::sync::Arc;

/// A rate, with the hash of the set and of what is said beside it, which is shown.
fn optimum(found: Option<&Optimum>) -> Number {
    let Some(found) = found else {
        return Number {
            text: "-".to_owned(),
            bits: Vec::new(),
        };
    };
    let mut number = known(&found.rate);
    let note = found.note.as_deref().unwrap_or_default();
    let more = format!("{:?} {:?} {note}", found.rate.rational(), found.subset);
    number.bits.extend(more.bytes().map(u64::from));
    let of_work = note.split(|c: char| !c.is_ascii_digit());
    let of_work: Vec<&str> = of_work.filter(|digits| digits.len() > 1).collect();
    if !of_work.is_empty() {
        number.text += &format!("({})", of_work.join(" "));
    }
    number
}

/// How much was looked at for a flow, with the hash of all that it is made of.
fn of_flow_itself(solved: &flow::SolvedFlow) -> Number {
    let (visits, text) = match solved {
        flow::SolvedFlow::Native(instance, flow) => (flow.visits, format!("{instance:?} {flow:?}")),
        flow::SolvedFlow::Big(instance, flow) => (flow.visits, format!("{instance:?} {flow:?}")),
    };
    Number {
        text: visits.to_string(),
        bits: text.bytes().map(u64::from).collect(),
    }
}

/// Laws of every kind that draw from q, or from q and another row.
fn laws(q: &Draft, other: &Draft) -> Vec<(&'static str, Arc<dyn DraftScheme>)> {
    let vocab = q.vocab();
    let draws = |draft: &Draft, count, how| Composition::Draws {
        draft: draft.clone(),
        count,
        how,
    };
    let composed = |law| Arc::new(Composed::new(vocab, law).unwrap());
    let chance =
        |token: usize| parse_rational(&format!("{}/{}", 1 + token % 3, 5 + token)).unwrap();
    let third = || parse_rational("1/3").unwrap();
    let mixture = Composition::Mixture(vec![
        (third(), draws(q, 2, Draws::Independent)),
        (third(), draws(other, 1, Draws::Independent)),
    ]);
    let union = Composition::Union(vec![
        draws(q, 2, Draws::Independent),
        draws(other, 1, Draws::Independent),
    ]);
    let forced = Composition::Union(vec![
        Composition::Fixed(vec![vocab / 2]),
        draws(q, 2, Draws::Sequential),
    ]);
    let sequential_of_both = Composition::Union(vec![
        draws(q, 2, Draws::Sequential),
        draws(other, 2, Draws::Sequential),
    ]);
    let models = Product::new(vec![q.clone(), other.clone()]).unwrap();
    let more_models = Product::new(vec![q.clone(), other.clone(), other.clone()]).unwrap();
    vec![
        ("iid", Arc::new(WithReplacement::new(q.clone(), 2))),
        ("iid of 4", Arc::new(WithReplacement::new(q.clone(), 4))),
        (
            "sequential",
            Arc::new(WithoutReplacement::new(q.clone(), 2)),
        ),
        (
            "sequential of 3",
            Arc::new(WithoutReplacement::new(q.clone(), 3)),
        ),
        ("distinct", Arc::new(DistinctConditioned::new(q.clone(), 2))),
        ("greedy", Arc::new(Greedy::new(q.clone(), 2))),
        ("hub", Arc::new(Hub::new(q.clone()))),
        ("top", Arc::new(Top::new(q.clone(), 2))),
        ("two models", Arc::new(models)),
        ("models, one twice", Arc::new(more_models)),
        ("mixture", composed(mixture)),
        ("union", composed(union)),
        ("forced", composed(forced)),
        ("sequential of both", composed(sequential_of_both)),
        (
            "chances",
            composed(Composition::Poisson((0..vocab).map(chance).collect())),
        ),
        ("stopped", composed(draws(q, 3, Draws::Stopped(third())))),
    ]
}

/// Rows of short fractions of both rows of a pair: whole numbers below 1000 over their sum.
fn short(row: &[f64]) -> Vec<specgap::distribution::Rational> {
    let most = row.iter().copied().fold(0.0, f64::max);
    let whole: Vec<u32> = row.iter().map(|x| (x / most * 999.0) as u32).collect();
    crate::rows::fractions(&whole)
}

fn problems(most: usize, is_short: bool) -> Vec<(String, Problem)> {
    let mut all = Vec::new();
    for pair in pairs() {
        if pair.target.len() > most {
            continue;
        }
        let mut turned = pair.draft.clone();
        turned.rotate_left(1);
        turned.swap(0, 1);
        let (target, [draft, other]) = if is_short {
            let target = Target::from_rationals(short(&pair.target)).unwrap();
            let rows = [&pair.draft, &turned];
            let rows = rows.map(|row| Draft::from_rationals(short(row)).unwrap());
            (target, rows)
        } else {
            let rows = [&pair.draft, &turned].map(|row| Draft::new(row).unwrap());
            (Target::new(&pair.target).unwrap(), rows)
        };
        for (law, scheme) in laws(&draft, &other) {
            let name = format!("{} {law}", pair.name);
            // Some laws have no so many drafts of so few tokens.
            if let Ok(problem) = Problem::from_law(&name, target.clone(), scheme) {
                all.push((name, problem));
            }
        }
    }
    all
}

fn by_every_method(record: &mut Record, most: usize, is_short: bool) {
    for (name, problem) in problems(most, is_short) {
        let small = flow::plan_size(&problem) <= 3_000.0;
        let solved = small.then(|| flow::solve(&problem));
        let of_flow = solved.as_ref().map(flow::SolvedFlow::optimum);
        let rounded = small.then(|| {
            let instance = ScaledInstance::Native(ScaledInstance::rounded(&problem));
            flow::SolvedFlow::of(instance).optimum()
        });
        let tried =
            (small && problem.vocab() <= 12).then(|| match ScaledInstance::exact(&problem) {
                ScaledInstance::Native(instance) => enumeration::solve(&instance),
                ScaledInstance::Big(instance) => enumeration::solve(&instance),
            });
        let two = thresholds::solve(&problem).ok();
        let enclosed = thresholds::enclose(&problem).ok();
        let found = [
            of_flow,
            rounded,
            tried,
            closed_form::solve(&problem),
            ratio_scan::solve(&problem),
            two,
            enclosed,
            submodular::solve(&problem),
            best(&problem).ok(),
        ];
        let mut numbers = vec![count(flow::plan_size(&problem) as usize)];
        numbers.extend(solved.as_ref().map(of_flow_itself));
        numbers.extend(found.iter().map(|found| optimum(found.as_ref())));
        record.line(&name, numbers);
    }
}

#[test]
fn optima_of_long_numbers() {
    let mut record = Record::new("optima-long.txt", include_str!("optima-long.txt"));
    by_every_method(&mut record, 40, false);
    record.compare();
}

#[test]
fn optima_of_short_numbers() {
    let mut record = Record::new("optima-short.txt", include_str!("optima-short.txt"));
    by_every_method(&mut record, 40, true);
    record.compare();
}

/// Drafts of two models, and of one, on rows of some size.
#[test]
fn optima_of_many_tokens() {
    let mut record = Record::new("optima-large.txt", include_str!("optima-large.txt"));
    for pair in pairs() {
        if !(100..=2000).contains(&pair.target.len()) {
            continue;
        }
        let (target, draft) = pair.typed();
        let mut other = pair.draft.clone();
        other.rotate_left(7);
        let other = Draft::new(&other).unwrap();
        for (name, scheme) in laws(&draft, &other) {
            let name = format!("{} {name}", pair.name);
            if let Ok(problem) = Problem::from_law(&name, target.clone(), scheme) {
                let found = [
                    closed_form::solve(&problem),
                    ratio_scan::solve(&problem),
                    thresholds::enclose(&problem).ok(),
                ];
                record.line(&name, found.iter().map(|found| optimum(found.as_ref())));
            }
        }
    }
    record.compare();
}

/// The plan that a flow leaves, and the coupling that it becomes.
#[test]
fn plans_of_flows() {
    let mut record = Record::new("flow-plans.txt", include_str!("flow-plans.txt"));
    for (name, problem) in problems(12, true) {
        let size = (problem.vocab() as f64).powi(problem.drafts() as i32);
        if flow::plan_size(&problem) > 1_000.0 || size > 2_000.0 {
            continue;
        }
        let plan = flow::solve(&problem).into_plan();
        let coupling = Coupling::extend(&problem, &plan);
        let text = format!("{:?} {:?}", plan.acceptance_rate(), coupling.mass);
        let mut number = count(plan.accepted.len());
        number.bits.extend(text.bytes().map(u64::from));
        record.line(&name, [number]);
    }
    record.compare();
}
