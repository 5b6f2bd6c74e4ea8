//! No suspect wins on average what the claim says, and each says what its law is.

use super::*;
use crate::audit::model::engine::{Engine, Laws};
use crate::audit::suspects::capital::SHARES;
use crate::audit::suspects::family::Families;
use specgap_core::rule::Drafts;

const P: [f64; 6] = [0.30, 0.25, 0.2, 0.15, 0.08, 0.02];
const Q: [f64; 6] = [0.1, 0.05, 0.4, 0.3, 0.1, 0.05];
const BEFORE: [[f64; 6]; 2] = [
    [0.1, 0.1, 0.1, 0.1, 0.1, 0.5],
    [0.5, 0.1, 0.1, 0.1, 0.1, 0.1],
];
const LOGITS: [f64; 6] = [3.0, 2.8, 2.6, 2.3, 1.7, 0.3];
const CAME: [[f64; 6]; 2] = [
    [3.0, 1.0, 4.0, 1.0, 5.0, 0.0],
    [2.5, 2.0, 3.0, 3.0, 2.0, 9.0],
];

fn past() -> Past {
    Past {
        seen: [
            vec![(1, 2), (3, 1), (4, 4)],
            vec![(1, 1), (4, 2)],
            vec![(4, 1)],
            vec![(3, 1), (4, 2)],
        ],
        banned: [vec![4], vec![1, 2], vec![3]],
        late: [vec![(1, 1, true)], vec![(1, 2, false), (3, 1, true)]],
    }
}

#[derive(Clone)]
struct Case {
    rule: Rule,
    carried: [f64; 2],
    drafts: Vec<usize>,
    kept: bool,
    output: usize,
    outside: bool,
    /// The last place of both rows is all that is not listed.
    rest: bool,
}

impl Case {
    /// A token that came without a draft.
    fn alone(rule: Rule, carried: [f64; 2], output: usize, outside: bool) -> Self {
        Self {
            rule,
            carried,
            drafts: Vec::new(),
            kept: false,
            output,
            outside,
            rest: false,
        }
    }

    /// A draft that was kept or not.
    fn of(rule: Rule, carried: [f64; 2], draft: usize, kept: bool, output: usize) -> Self {
        Self {
            drafts: vec![draft],
            kept,
            ..Self::alone(rule, carried, output, false)
        }
    }
}

/// A step on these rows, with stated noise.
fn here<'a>(
    case: &'a Case,
    sigma: f64,
    [p, q]: [&'a [f64]; 2],
    claimed: &'a Claimed,
    past: &'a Past,
) -> Here<'a> {
    Here {
        rule: case.rule,
        claimed,
        noise: Noise {
            sigma,
            stated: true,
        },
        p: View::new(p, case.rest),
        q: View::new(q, case.rest),
        whole: p,
        least: 0.02,
        logits: &[],
        reach: case.carried[0],
        stands: case.carried[1],
        drafts: &case.drafts,
        siblings: false,
        by_output: false,
        kept: case.kept,
        output: case.output,
        outside: case.outside,
        lacks_draft: false,
        before: None,
        past,
        came: [None; 2],
        known: Known::default(),
        made: Made::default(),
    }
}

/// Tells what each suspect says of a step, in their order.
fn told(case: &Case, noise: f64, ask: &mut dyn FnMut(usize, Told)) {
    let (claimed, past) = (Claimed::at(1.0), past());
    let here = match case.rest {
        true => here(case, noise, [&LISTED[0], &LISTED[1]], &claimed, &past),
        false => Here {
            logits: &LOGITS,
            before: Some([&BEFORE[0], &BEFORE[1]]),
            came: [Some([&CAME[0], &CAME[1]]); 2],
            ..here(case, noise, [&P, &Q], &claimed, &past)
        },
    };
    let here = here.settle();
    let families = Families::of(case.rule, 0, 0, false);
    let changes = Changes::new(&families);
    for (place, suspect) in families.suspects.iter().enumerate() {
        ask(place, here.told(suspect, &changes));
    }
}

/// The ratio of all that a suspect says of a round.
fn of_rule(told: &Told) -> f64 {
    told.rule.iter().map(|one| one.ratio).product()
}

/// All that can happen at a step with one draft, with its chance under the claim.
fn outcomes(rule: Rule, [reach, stands]: [f64; 2]) -> Vec<(Case, f64)> {
    outcomes_of(rule, [reach, stands], [&P, &Q])
}

fn outcomes_of(rule: Rule, [reach, stands]: [f64; 2], [p, q]: [&[f64]; 2]) -> Vec<(Case, f64)> {
    let mut at = Position::new(p, q);
    at.reach = reach;
    at.stands = stands;
    let laws = Laws::new(rule, &Engine::HONEST, &at);
    let likeliest = (0..q.len()).map(|place| f64::from(u8::from(place == 2)));
    let drawn = match rule.drafts() {
        Drafts::Any => q.to_vec(),
        Drafts::Likeliest => likeliest.collect(),
        _ => laws.draft.clone().unwrap(),
    };
    let mut all = Vec::new();
    let mut push = |x: usize, kept: bool, output: usize, mass: f64| {
        all.push((Case::of(rule, [reach, stands], x, kept, output), mass));
    };
    for (x, mass) in drawn.iter().enumerate() {
        let keep = laws.keep(x);
        push(x, true, x, mass * keep);
        for (y, own) in laws.correction(x).iter().enumerate() {
            push(x, false, y, mass * (1.0 - keep) * own);
        }
    }
    all.retain(|(_, mass)| *mass > 1e-14);
    all
}

/// No suspect wins on average while the claim is true: the sum over all that can happen of what
/// it is claimed to have as chance, times what the suspect says. What the claim excludes may be
/// missing to 1, and nothing is above.
#[test]
fn no_suspect_wins_on_average() {
    let rules = [
        (Rule::TOKEN, [1.0, 1.0]),
        (Rule::BLOCK, [0.6, 1.0]),
        (Rule::BLOCK, [1.0, 1.0]),
        (Rule::CARRIED, [1.0, 0.7]),
        (Rule::ONE_HOT, [1.0, 1.0]),
        (Rule::EXACT_MATCH, [1.0, 1.0]),
    ];
    for (rule, carried) in rules {
        let families = Families::of(rule, 0, 0, false);
        let size = families.suspects.len();
        let mut sums = vec![[0.0f64; 2 * SHARES.len()]; size];
        let mut total = 0.0;
        let stands = carried[1];
        for (case, mass) in outcomes(rule, carried) {
            total += mass;
            told(&case, 0.0, &mut |place, told| {
                let ratios = [of_rule(&told), told.output.ratio];
                for (slot, (share, _)) in SHARES.iter().enumerate() {
                    for (which, ratio) in ratios.iter().enumerate() {
                        // Given the text alone a draft may not stand.
                        let mass = if which == 1 { mass * stands } else { mass };
                        sums[place][2 * slot + which] += mass * (1.0 - share + share * ratio);
                    }
                }
            });
        }
        assert!((total - 1.0).abs() < 1e-9, "{rule}: {total}");
        if stands < 1.0 {
            let over = P.iter().zip(Q);
            let over: Vec<f64> = over.map(|(p, q)| (p - stands * q).max(0.0)).collect();
            let left: f64 = over.iter().sum();
            for (output, over) in over.iter().enumerate().filter(|(_, over)| **over > 0.0) {
                let case = Case::alone(rule, carried, output, false);
                told(&case, 0.0, &mut |place, told| {
                    for (slot, (share, _)) in SHARES.iter().enumerate() {
                        sums[place][2 * slot + 1] += (1.0 - stands) * over / left
                            * (1.0 - share + share * told.output.ratio);
                    }
                });
            }
        }
        for (suspect, sum) in families.suspects.iter().zip(&sums) {
            for one in sum {
                assert!(*one <= 1.0 + 1e-9, "{rule} {:?}: {one}", suspect.law);
            }
        }
        let moved = sums.iter().filter(|sum| sum[0] > 0.2).count();
        assert!(moved > size / 2, "{rule}");
    }
}

/// Rows of which two tokens are not listed; and what is known of them.
const WHOLE: [[f64; 7]; 2] = [
    [0.3, 0.2, 0.2, 0.1, 0.05, 0.1, 0.05],
    [0.1, 0.05, 0.4, 0.25, 0.1, 0.02, 0.08],
];
const LISTED: [[f64; 6]; 2] = [
    [0.3, 0.2, 0.2, 0.1, 0.05, 0.15],
    [0.1, 0.05, 0.4, 0.25, 0.1, 0.1],
];

/// The same on lists, with and without noise: of what comes out, and of what is done with drafts.
#[test]
fn no_suspect_wins_on_lists() {
    for rule in [Rule::TOKEN, Rule::ONE_HOT, Rule::EXACT_MATCH] {
        let families = Families::of(rule, 0, 0, false);
        let mut sums = vec![[[0.0f64; 2]; 2]; families.suspects.len()];
        for (mut case, mass) in outcomes_of(rule, [1.0; 2], [&WHOLE[0], &WHOLE[1]]) {
            case.rest = true;
            case.output = case.output.min(5);
            case.drafts[0] = case.drafts[0].min(5);
            for (slot, noise) in [0.0, 0.1].into_iter().enumerate() {
                told(&case, noise, &mut |place, told| {
                    let own = told.rule.iter().map(|one| one.ratio / (1.0 + one.price));
                    sums[place][slot][0] += mass * own.product::<f64>();
                    sums[place][slot][1] += mass * told.output.ratio / (1.0 + told.output.price);
                });
            }
        }
        for (suspect, sum) in families.suspects.iter().zip(&sums) {
            for one in sum.iter().flatten() {
                assert!(*one <= 1.0 + 1e-9, "{rule} {:?}: {one}", suspect.law);
            }
        }
    }
}

/// The same of a token that came without a draft, in a round and outside of any.
#[test]
fn no_suspect_wins_on_tokens_alone() {
    for (rule, outside) in [
        (Rule::TOKEN, false),
        (Rule::TOKEN, true),
        (Rule::TEXT, false),
        (Rule::EXACT_MATCH, false),
    ] {
        let families = Families::of(rule, 0, 0, false);
        let mut sums = vec![[0.0f64; 2]; families.suspects.len()];
        for (output, mass) in P.iter().enumerate() {
            let case = Case::alone(rule, [1.0, 1.0], output, outside);
            told(&case, 0.0, &mut |place, told| {
                sums[place][0] += mass * of_rule(&told);
                sums[place][1] += mass * told.output.ratio;
            });
        }
        for (suspect, sum) in families.suspects.iter().zip(&sums) {
            for one in sum {
                assert!((one - 1.0).abs() < 1e-9, "{rule} {:?}: {one}", suspect.law);
            }
        }
    }
}

/// Long rows are gone through once for what a law of corrections pays, and in lanes: it is what
/// they pay token by token.
#[test]
fn long_rows_pay_what_their_tokens_do() {
    let made = |by: usize| {
        let row = (0..1500).map(|i| 1.0 / (1 + i * by % 1499) as f64);
        let mut row: Vec<f64> = row.collect();
        specgap_core::rule::normalise(&mut row);
        row
    };
    let (p, q) = (made(7), made(11));
    let (claimed, past) = (Claimed::at(1.0), past());
    let case = Case::of(Rule::TOKEN, [1.0, 1.0], 3, false, 0);
    let here = Here {
        least: 0.0,
        before: Some([&q, &p]),
        ..here(&case, 0.2, [&p, &q], &claimed, &past)
    };
    let here = here.settle();
    let families = Families::of(Rule::TOKEN, 0, 0, false);
    let mut found = 0;
    for change in &families.changes {
        let Some(row) = here.changed(*change) else {
            continue;
        };
        let left = here.left_of(&row);
        let plainly: f64 = (0..1500).map(|i| (row.at(i) - q[i]).max(0.0)).sum();
        assert!((left - plainly).abs() < 1e-12, "{change:?}");
        if left <= 0.0 {
            continue;
        }
        let law = |place: usize| (row.at(place) - q[place]).max(0.0) / left;
        let [plain, own] = [here.on_correction(law), here.corrected(&row, || left)];
        assert_eq!(plain.ratio, own.ratio);
        assert!((plain.price - own.price).abs() < 1e-9, "{change:?}");
        found += usize::from(own.price > 1e-6);
    }
    assert!(found > 100, "{found}");
}

/// With noise, at both ends of what it leaves open: what is paid covers what may be won.
#[test]
fn noise_is_covered_at_both_ends() {
    let sigma = 0.2;
    let noise = Noise {
        sigma,
        stated: true,
    };
    // The noisy end: acceptance and corrections at the price of an option.
    let sum: f64 = P.iter().zip(Q).map(|(p, q)| noise.call(*p, q)).sum();
    let keep = |x: usize, noisy: bool| match noisy {
        true => ((P[x] - noise.call(P[x], Q[x])) / Q[x]).clamp(0.0, 1.0),
        false => (P[x] / Q[x]).min(1.0),
    };
    let left: f64 = P.iter().zip(Q).map(|(p, q)| (p - q).max(0.0)).sum();
    for noisy in [false, true] {
        let mut sums: Vec<f64> = Vec::new();
        for (x, drawn) in Q.iter().enumerate() {
            let kept = keep(x, noisy);
            for (is_kept, y) in std::iter::once((true, x)).chain((0..6).map(|y| (false, y))) {
                let correction = match noisy {
                    true => noise.call(P[y], Q[y]) / sum,
                    false => (P[y] - Q[y]).max(0.0) / left,
                };
                let refused = (1.0 - kept) * correction;
                let chance = if is_kept { kept } else { refused };
                let case = Case::of(Rule::TOKEN, [1.0, 1.0], x, is_kept, y);
                told(&case, sigma, &mut |place, told| {
                    let own = told.rule.iter().map(|one| one.ratio / (1.0 + one.price));
                    sums.resize(sums.len().max(place + 1), 0.0);
                    sums[place] += drawn * chance * own.product::<f64>();
                });
            }
        }
        let families = Families::of(Rule::TOKEN, 0, 0, false);
        for (suspect, sum) in families.suspects.iter().zip(&sums) {
            assert!(*sum <= 1.0 + 1e-9, "{noisy} {:?}: {sum}", suspect.law);
        }
    }
}
