//! Plans: acceptance, tiers, shares of tuples, laws; and selections.

use super::rows::pairs;
use super::{Number, Record, count, known, many, plain, unseen};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use specgap::distribution::{Draft, Target};
use specgap::plan::{LevelPlan, RatioBins, Selection, even_selection};

fn of_plan(plan: &LevelPlan, target: &Target, draft: &Draft) -> Vec<Number> {
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
    let law = plan.law(target, draft);
    vec![
        count(plan.tiers()),
        known(plan.optimal_acceptance_rate()),
        known(plan.acceptance_rate()),
        many(&shares),
        unseen(emitted),
        many(plan.residual()),
        many(&law.output),
        plain(law.acceptance_rate),
        plain(law.l1_error),
    ]
}

#[test]
fn plans_for_independent_drafts() {
    let mut record = Record::new("plans-iid.txt", include_str!("plans-iid.txt"));
    for pair in pairs() {
        let (p, q) = pair.typed();
        for drafts in [1, 2, 3, 6] {
            let plan = LevelPlan::iid(&p, &q, drafts).unwrap();
            record.line(&format!("{} n={drafts}", pair.name), of_plan(&plan, &p, &q));
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
