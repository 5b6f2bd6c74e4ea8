//! Plans of one weight a token: steps, groups, acceptance, weights.

use super::rows::pairs;
use super::{Number, Record, count, known, many, plain, refusal, unseen};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Target};
use specgap::plan::{Draws, PlanSettings, RatioBins, Selection, TokenPlan, even_selection};
use specgap::row::sequential_subset;

fn of_plan(plan: &TokenPlan, target: &Target, draft: &Draft) -> Vec<Number> {
    let vocab = plan.vocab();
    let mut shares = Vec::new();
    let mut emitted = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for first in 0..vocab.min(400) {
        let drafts = (0..plan.drafts()).map(|draft| (first + draft * (first + 1)) % vocab);
        let tuple: Vec<u32> = drafts.map(|token| token as u32).collect();
        shares.extend(plan.accepted(&tuple));
        let verdict = format!("{:?}", plan.emit(&tuple, &mut rng));
        emitted.extend(verdict.into_bytes());
    }
    let mut all = vec![
        count(plan.iterations()),
        count(plan.groups()),
        count(plan.tiers()),
        known(plan.optimal_acceptance_rate()),
        known(plan.acceptance_rate()),
        many(&shares),
        unseen(emitted),
        many(plan.residual()),
        plain(plan.shortfall()),
    ];
    // That of sequential draws takes hundreds of exponentials a token.
    if plan.draws() == Draws::Iid || vocab <= 60 {
        let law = plan.law(target, draft);
        all.extend([
            many(&law.output),
            plain(law.acceptance_rate),
            plain(law.l1_error),
        ]);
    }
    all
}

#[test]
fn plans_for_independent_drafts() {
    let mut record = Record::new("plans-iid.txt", include_str!("plans-iid.txt"));
    for pair in pairs() {
        let (p, q) = pair.typed();
        for drafts in [1, 2, 3, 6] {
            let plan = TokenPlan::iid(&p, &q, drafts, &PlanSettings::default()).unwrap();
            record.line(&format!("{} n={drafts}", pair.name), of_plan(&plan, &p, &q));
        }
    }
    record.compare();
}

#[test]
fn plans_for_sequential_drafts() {
    let mut record = Record::new("plans-sequential.txt", include_str!("plans-sequential.txt"));
    for pair in pairs() {
        if pair.target.len() > 500 {
            continue;
        }
        let (p, q) = pair.typed();
        let counts: &[usize] = if pair.target.len() > 100 {
            &[3]
        } else {
            &[2, 3, 5]
        };
        for &drafts in counts {
            let name = format!("{} n={drafts}", pair.name);
            let plan = sequential_subset(&p, &q, drafts).map(|subset| {
                TokenPlan::sequential(&p, &q, drafts, subset, &PlanSettings::default()).unwrap()
            });
            match plan {
                Ok(plan) => record.line(&name, of_plan(&plan, &p, &q)),
                Err(error) => record.line(&name, [refusal(&error)]),
            }
        }
    }
    record.compare();
}

/// Few steps, coarse groups, wide ties: settings that are not the ones by default.
#[test]
fn plans_by_other_settings() {
    let mut record = Record::new("plans-settings.txt", include_str!("plans-settings.txt"));
    let plain = PlanSettings::default();
    let all = [
        PlanSettings {
            iterations: 3,
            ..plain
        },
        PlanSettings {
            residual: 1e-4,
            grouping: 1e-5,
            ..plain
        },
        PlanSettings {
            tie: 1e-3,
            tolerance: 1e-15,
            ..plain
        },
    ];
    for pair in pairs() {
        if pair.target.len() > 250 {
            continue;
        }
        let (p, q) = pair.typed();
        for (place, settings) in all.iter().enumerate() {
            let plan = TokenPlan::iid(&p, &q, 3, settings).unwrap();
            record.line(&format!("{} {place}", pair.name), of_plan(&plan, &p, &q));
            // These take tens of milliseconds and more.
            let is_short = pair.target.len() <= 40;
            if let Ok(subset) = sequential_subset(&p, &q, 3)
                && is_short
            {
                let plan = TokenPlan::sequential(&p, &q, 3, subset, settings).unwrap();
                let name = format!("{} {place}, sequential", pair.name);
                record.line(&name, of_plan(&plan, &p, &q));
            }
        }
    }
    record.compare();
}

#[test]
fn selections() {
    let mut record = Record::new("selections.txt", include_str!("selections.txt"));
    for pair in pairs() {
        let bins = RatioBins::new(&pair.target, &pair.draft);
        let vocab = pair.target.len();
        let selections = [1, 2, 4].map(|drafts| {
            let selection = Selection::new(&bins, drafts);
            let mut all = even_selection(&pair.target, &pair.draft, drafts);
            let mut rng = ChaCha8Rng::seed_from_u64(6);
            for token in 0..vocab.min(300) {
                let q = pair.draft[token];
                all.push(selection.probability(&bins, token, q));
                all.extend(selection.by_copies(&bins, token, q));
                let tuple: Vec<u32> = (0..drafts)
                    .map(|draft| ((token + draft * (token + 1)) % vocab) as u32)
                    .collect();
                all.extend(selection.shares(&bins, &tuple));
                all.push(selection.select(&bins, &tuple, &mut rng) as f64);
            }
            many(&all)
        });
        record.line(pair.name, selections);
    }
    record.compare();
}
