//! Rows of lists against the full rows that they were cut from, where tokens tie and where
//! what is not listed is a difference.

use super::Settings;
use super::answers::Answers;
use super::metric::{Metric, Place, Temperature};
use super::own_tests::tensor;
use super::position::{Task, Workspace, evaluate};
use super::truncation::tests::of_full_rows;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::VerifierName;
use specgap_log::log::{Dtype, Log, Metadata};
use specgap_number::known::Kind;
use specgap_sampling::Lists;

/// One position, as it is logged.
#[derive(Clone, Debug)]
struct Logged {
    vocabulary: usize,
    /// Ids and probabilities of the target's list and of the draft's.
    lists: [(Vec<u32>, Vec<f64>); 2],
    /// Masses of the rest at temperature 1, if they are logged.
    rests: Option<[f64; 2]>,
    /// Whether logarithms are logged.
    logarithms: bool,
    /// `top` in the metadata.
    top: usize,
    never_drawn: bool,
}

impl Logged {
    fn new(vocabulary: usize, lists: [(&[u32], &[f64]); 2]) -> Self {
        Self {
            vocabulary,
            lists: lists.map(|(ids, entries)| (ids.to_vec(), entries.to_vec())),
            rests: None,
            logarithms: false,
            top: lists.iter().map(|(ids, _)| ids.len()).min().unwrap_or(0),
            never_drawn: false,
        }
    }

    /// Both rows list the same tokens.
    fn shared(vocabulary: usize, ids: &[u32], target: &[f64], draft: &[f64]) -> Self {
        Self::new(vocabulary, [(ids, target), (ids, draft)])
    }

    fn log(&self) -> Log {
        let is_shared = self.lists[0].0 == self.lists[1].0;
        let mut tensors = Vec::new();
        for (model, (ids, entries)) in ["target", "draft"].iter().zip(&self.lists) {
            let kind = if self.logarithms { "logprobs" } else { "probs" };
            let entries = entries
                .iter()
                .map(|p| if self.logarithms { p.ln() } else { *p });
            let bytes = entries.flat_map(f64::to_le_bytes).collect();
            let (row, shape) = (format!("{model}_{kind}"), [1, ids.len()]);
            tensors.push(tensor(&row, Dtype::F64, &shape, bytes));
            let name = match (is_shared, *model) {
                (false, _) => format!("{model}_token_ids"),
                (true, "target") => "token_ids".to_owned(),
                _ => continue,
            };
            let bytes = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            tensors.push(tensor(&name, Dtype::I32, &shape, bytes));
        }
        let mut metadata = serde_json::json!({"vocabulary": self.vocabulary, "top": self.top});
        if let Some(rests) = self.rests {
            metadata["rest_temperatures"] = serde_json::json!([1.0]);
            for (model, rest) in ["target", "draft"].iter().zip(rests) {
                let bytes = rest.to_le_bytes().to_vec();
                tensors.push(tensor(&format!("{model}_rest"), Dtype::F64, &[1, 1], bytes));
            }
        }
        if self.never_drawn {
            metadata["unlisted"] = "never-drawn".into();
        }
        let metadata: Metadata = serde_json::from_value(metadata).unwrap();
        Log::held("made".as_ref(), metadata, tensors, None).unwrap()
    }

    fn answers(&self, temperature: f64, drafts: usize) -> Answers {
        let log = self.log();
        let settings = Settings::of_all_schemes(&[temperature], &[drafts], 0);
        let task = Task {
            log: &log,
            settings: &settings,
            asked: settings.asked(),
            asked_again: Vec::new(),
            lists: Lists::new(&log).unwrap(),
            sampled_at: None,
            drawn: None,
        };
        let mut workspace = Workspace::default();
        log.read(0, &mut workspace.row).unwrap();
        evaluate(&task, 0, &mut workspace).unwrap();
        workspace.answers
    }

    fn optimum(&self, temperature: f64, drafts: usize, scheme: SchemeName) -> [f64; 2] {
        let place = Place::new(Temperature(temperature), drafts);
        let answers = self.answers(temperature, drafts);
        let best = &answers[&Metric::Optimum { place, scheme }];
        [best.lower(), best.upper()]
    }

    /// Every number of the full rows is within what the lists leave open. Gives how many
    /// were looked at, and how many of these are between bounds less than 0.9 apart.
    fn holds(&self, [p, q]: [&[f64]; 2], temperature: f64, drafts: usize) -> [usize; 2] {
        let answers = self.answers(temperature, drafts);
        let power = 1.0 / temperature;
        let [p, q] = [p, q].map(|row| {
            let weights: Vec<f64> = row.iter().map(|x| x.powf(power)).collect();
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|x| x / sum).collect::<Vec<f64>>()
        });
        let place = Place::new(Temperature(temperature), drafts);
        let mut counts = [0; 2];
        let level = |metric: Metric| match metric {
            Metric::Acceptance { rule, .. } | Metric::Gap { rule, .. } => {
                rule.1 == VerifierName::LEVEL
            }
            _ => false,
        };
        let settings = Settings::of_all_schemes(&[temperature], &[drafts], 0);
        for (metric, full) in of_full_rows([&p, &q], place, &settings) {
            let Some(answer) = answers.get(&metric) else {
                continue;
            };
            let (lower, upper) = (answer.lower(), answer.upper());
            // Beside that of the bounds, the rounding of what is compared.
            let room = match answer.kind() {
                Kind::MonteCarlo => 0.1,
                // Its passes end near alpha*, and a last bit of a row decides where: most within
                // 1e-9, and at 20,000 passes where they close in slowly.
                _ if level(metric) => 1e-5,
                _ => 1e-12,
            };
            assert!(
                lower - room <= full && full <= upper + room,
                "{metric:?} is {full} of the full row, outside {answer:?}; p {p:?}, q {q:?}, \
                 {self:?}"
            );
            counts[0] += 1;
            counts[1] += usize::from(upper - lower < 0.9);
        }
        counts
    }
}

fn are(found: [f64; 2], expected: [f64; 2]) {
    let close = |i: usize| (found[i] - expected[i]).abs() < 1e-10;
    assert!(close(0) && close(1), "{found:?} {expected:?}");
}

/// A list that is all of the row ties by token id, in whichever order it is logged.
#[test]
fn whole_rows_tie_by_token_id() {
    let row = Logged::shared(3, &[0, 1, 2], &[1.0, 0.0, 0.0], &[0.25, 0.5, 0.25]);
    are(row.optimum(1.0, 2, SchemeName::TOP), [1.0; 2]);
    let row = Logged::shared(3, &[1, 2, 0], &[0.0, 0.0, 1.0], &[0.5, 0.25, 0.25]);
    are(row.optimum(1.0, 2, SchemeName::TOP), [1.0; 2]);
    // The hub is token 0.
    for (ids, p) in [([0, 1, 2], [1.0, 0.0, 0.0]), ([1, 0, 2], [0.0, 1.0, 0.0])] {
        let row = Logged::shared(3, &ids, &p, &[0.4, 0.4, 0.2]);
        for scheme in [SchemeName::GREEDY, SchemeName::HUB] {
            are(row.optimum(1.0, 2, scheme), [1.0; 2]);
        }
        are(row.optimum(1.0, 1, SchemeName::TOP), [1.0; 2]);
    }
    // Drafts are 2 and 1; all mass of q is listed, of one token of five nothing is said.
    let (fifth, seven) = (1.0 / 25.0, 7.0 / 25.0);
    let p = [5.0 / 6.0, 0.0, 0.0, 0.0, 1.0 / 6.0];
    let q = [fifth, seven, 0.4, 0.0, seven];
    for ids in [[0, 4, 1, 2], [0, 1, 2, 4], [4, 2, 1, 0]] {
        let of = |row: &[f64; 5]| ids.map(|id| row[id as usize]);
        for never_drawn in [false, true] {
            let mut row = Logged::shared(5, &ids, &of(&p), &of(&q));
            row.never_drawn = never_drawn;
            let [lower, upper] = row.optimum(1.0, 2, SchemeName::TOP);
            assert!(lower <= 1e-10 && upper >= -1e-10, "{lower} {upper}");
            if never_drawn {
                are([lower, upper], [0.0; 2]);
            }
            row.holds([&p, &q], 1.0, 2);
        }
        let lists = [of(&p), of(&q)];
        Logged::new(5, [(&ids, &lists[0]), (&ids, &lists[1])]).holds([&p, &q], 1.0, 2);
    }
}

/// Which of a listed token and one that is not listed is drafted is open where they tie, and
/// rounding does not settle it.
#[test]
fn ties_with_tokens_that_are_not_listed_are_left_open() {
    for step in 0..300 {
        let a = 0.2390136 + f64::from(step) * 1e-5 / 3.0;
        let (p, q) = ([1.0, 0.0, 0.0], [a, 1.0 - 2.0 * a, a]);
        let mut row = Logged::new(3, [(&[0, 1], &p[..2]), (&[1, 2], &q[1..])]);
        for logarithms in [false, true] {
            row.logarithms = logarithms;
            let [lower, upper] = row.optimum(1.0, 2, SchemeName::TOP);
            assert!(lower < 1e-9 && upper > 1.0 - 1e-9, "{a} {lower} {upper}");
            let shared = Logged {
                logarithms,
                ..Logged::shared(3, &[1, 2], &[0.0, 1e-300], &q[1..])
            };
            let [lower, upper] = shared.optimum(1.0, 2, SchemeName::TOP);
            assert!(lower < 1e-9 && upper > 1.0 - 1e-9, "{a} {lower} {upper}");
        }
    }
    let (p, q) = ([0.0, 1.0, 0.0, 0.0, 0.0], [0.125, 0.125, 0.5, 0.125, 0.125]);
    let of = |row: &[f64; 5], ids: [u32; 4]| ids.map(|id| row[id as usize]);
    let (target, draft) = ([1, 0, 3, 4], [2, 4, 0, 3]);
    let lists = [of(&p, target), of(&q, draft)];
    let row = Logged::new(5, [(&target, &lists[0]), (&draft, &lists[1])]);
    for drafts in [2, 3, 4] {
        row.holds([&p, &q], 1.0, drafts);
    }
}

/// Few tokens with many ties, in lists of any order: the full row is never excluded.
#[test]
fn lists_with_ties_hold_the_full_row() {
    let mut rng = SmallRng::seed_from_u64(34);
    let mut counts = [0; 2];
    for round in 0..400 {
        let vocabulary = rng.random_range(3..=6usize);
        let n = rng.random_range(1..=3usize);
        // Whole numbers of balls: equal ones are equal in f64 too.
        let balls = [8, 16, 25, 31][rng.random_range(0..4)];
        let mut row = || {
            let few = rng.random_range(1..=vocabulary);
            let mut row = vec![0.0; vocabulary];
            (0..balls).for_each(|_| row[rng.random_range(0..few) * vocabulary / few] += 1.0);
            row.shuffle(&mut rng);
            row.iter()
                .map(|x| x / f64::from(balls))
                .collect::<Vec<f64>>()
        };
        let rows = [row(), row()];
        // The most probable of each, any of equal ones; of one list all tokens of both.
        let length = rng.random_range(n..=vocabulary);
        let mut lists = [0, 1].map(|model: usize| {
            let mut ids: Vec<u32> = (0u32..).take(vocabulary).collect();
            ids.shuffle(&mut rng);
            let of = |id: u32| rows[model][id as usize];
            ids.sort_by(|&a, &b| of(b).total_cmp(&of(a)));
            ids.truncate(length);
            ids.shuffle(&mut rng);
            ids
        });
        if round % 2 == 0 {
            let [target, draft] = &mut lists;
            let more: Vec<u32> = draft
                .iter()
                .copied()
                .filter(|id| !target.contains(id))
                .collect();
            target.extend(more);
            draft.clone_from(target);
        }
        let entries = [0, 1].map(|model: usize| {
            let ids = lists[model].iter();
            ids.map(|&id| rows[model][id as usize])
                .collect::<Vec<f64>>()
        });
        let rests = [0, 1].map(|model: usize| {
            let ids = (0..vocabulary).filter(|&id| !lists[model].contains(&(id as u32)));
            ids.map(|id| rows[model][id]).sum::<f64>()
        });
        let [target, draft] = [0, 1].map(|model: usize| (&*lists[model], &*entries[model]));
        let mut logged = Logged::new(vocabulary, [target, draft]);
        logged.top = length;
        logged.logarithms = rng.random_bool(0.5);
        logged.rests = rng.random_bool(0.5).then_some(rests);
        let temperature = [1.0, 1.0, 0.5, 2.0, 4.0][round % 5];
        let full = [&*rows[0], &*rows[1]];
        let [all, narrow] = logged.holds(full, temperature, n);
        counts = [counts[0] + all, counts[1] + narrow];
        if rests == [0.0; 2] {
            logged.rests = None;
            logged.never_drawn = true;
            logged.holds(full, temperature, n);
        }
    }
    let [all, narrow] = counts;
    assert!(all > 4_000 && narrow * 2 > all, "{narrow} of {all}");
}

/// What listed probabilities lack to 1 is a difference: at another temperature it is not
/// known to the last digit.
#[test]
fn a_difference_to_one_is_between_bounds_at_other_temperatures() {
    let ids = [0, 1, 2, 3];
    for (temperature, target, draft) in [
        (
            4.0,
            [
                0.41728869655849166,
                0.22570803628318759,
                0.3567969674842858,
                0.00020629967403495986,
            ],
            [
                0.19525422746501042,
                0.36949736924953136,
                0.25724519508625987,
                0.17800320819919835,
            ],
        ),
        (
            10.0,
            [
                0.20078495395473428,
                0.23910621484070527,
                0.2563211896148093,
                0.30378764158975113,
            ],
            [
                0.34304568047314565,
                0.4276256461362856,
                0.01344794896696333,
                0.2158807244236054,
            ],
        ),
    ] {
        for logarithms in [false, true] {
            let logged = Logged {
                logarithms,
                ..Logged::shared(8, &ids, &target, &draft)
            };
            let full = [target, draft].map(|row| [&row[..], &[0.0; 4]].concat());
            logged.holds([&full[0], &full[1]], temperature, 2);
        }
    }
    // A list that lacks 3e-17 may leave that to others, which have a share of it at 10 and 100.
    let row = Logged::shared(6, &[0, 1, 2], &[0.7, 0.2, 0.1], &[0.1, 0.2, 0.7]);
    let lacking = 2f64.powi(-55);
    let full = [[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]].map(|listed| {
        let rest = [lacking / 3.0; 3];
        [listed, rest].concat()
    });
    for temperature in [1.0, 2.0, 10.0, 100.0] {
        row.holds([&full[0], &full[1]], temperature, 2);
        let [lower, upper] = row.optimum(temperature, 2, SchemeName::WITH_REPLACEMENT);
        assert_eq!(upper - lower > 1e-3, temperature > 2.0, "{lower} {upper}");
    }
    // Full rows of any tokens, of which some list what the others lack.
    let mut rng = SmallRng::seed_from_u64(2);
    for round in 0..150 {
        let vocabulary = rng.random_range(4..=6usize);
        let listed = rng.random_range(2..vocabulary);
        let tail = [1e-3, 1e-9, 1e-15, 1e-17, 0.0][round % 5];
        let rows = [0, 1].map(|_| {
            let scale = |id: usize| if id < listed { 1.0 } else { tail };
            let row: Vec<f64> = (0..vocabulary)
                .map(|id| scale(id) * rng.random_range(0.1..1.0f64))
                .collect();
            let sum: f64 = row.iter().sum();
            row.iter().map(|x| x / sum).collect::<Vec<f64>>()
        });
        let ids: Vec<u32> = (0u32..).take(listed).collect();
        let logged = Logged {
            logarithms: rng.random_bool(0.5),
            ..Logged::shared(vocabulary, &ids, &rows[0][..listed], &rows[1][..listed])
        };
        for temperature in [0.7, 1.5, 4.0, 10.0] {
            let n = rng.random_range(1..=2usize);
            logged.holds([&rows[0], &rows[1]], temperature, n);
        }
    }
}

/// Where one token alone is not listed, it has what the rows lack.
#[test]
fn one_token_that_is_not_listed_is_known() {
    let (p, q) = ([0.4, 0.3, 0.1, 0.2], [0.2, 0.4, 0.2, 0.2]);
    let row = Logged::shared(4, &[0, 1, 2], &p[..3], &q[..3]);
    let answers = row.answers(1.0, 2);
    for (metric, answer) in &answers {
        let place = Place::new(Temperature(1.0), 2);
        // Which of the three tied tokens a law takes is open, and what is sampled is between.
        let known = [
            SchemeName::WITH_REPLACEMENT,
            SchemeName::WITHOUT_REPLACEMENT,
        ];
        let is_known = match *metric {
            Metric::Overlap { .. } => true,
            Metric::Optimum { scheme, place: at } => at == place && known.contains(&scheme),
            Metric::Acceptance { rule, place: at } => {
                let (law, verifier) = rule;
                at == place
                    && law == SchemeName::WITH_REPLACEMENT
                    && [VerifierName::EXACT_MATCH, VerifierName::K_SEQ].contains(&verifier)
            }
            _ => false,
        };
        if is_known {
            assert!(
                answer.upper() - answer.lower() < 1e-10,
                "{metric:?} {answer:?}"
            );
        }
    }
    row.holds([&p, &q], 1.0, 2);
}
