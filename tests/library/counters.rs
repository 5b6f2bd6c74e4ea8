//! Do counters of rounds of one length say what rounds of other lengths put out? Rounds along the
//! shipped records of trained drafters are counted here, and `length`'s replay is the truth.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::counters::{CountersReport, Kind, Settings, Text, count, predict};
use specgap::log::Log;
use specgap::replay::Texts;
use specgap::rounds::{ChainRule, FixedLength, replay};
use std::fmt::Write;
use std::path::Path;

/// Drafts of which numbers are shipped, token by token.
const DRAFTS: [&str; 5] = [
    "block-kl",
    "eagle-alpha",
    "eagle-kl",
    "eagle-lk",
    "eagle-tv",
];

/// q/p at the tokens of each text, for drafts of depth 1.
fn ratios(draft: &str) -> Vec<Vec<f64>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/logs/smollm2-by-depth");
    let log = Log::open(&folder.join(format!("{draft}.safetensors"))).unwrap();
    let log = log.at_depth(1).unwrap();
    let texts = Texts::read(&[log], None, &|_| ()).unwrap();
    let of = |text: &specgap::replay::Text| text.places.iter().map(|place| place.ratio).collect();
    texts.texts.iter().map(of).collect()
}

/// What a server that drafts `most` tokens a round would count along a text on average: rounds, drafted
/// tokens, and how many rounds accept at least 1, 2, .. drafts. Every start with its probability.
fn counters(ratios: &[f64], most: usize) -> (f64, f64, Vec<f64>) {
    let n = ratios.len();
    let mut starts = vec![0.0; n + most + 2];
    starts[0] = 1.0;
    let (mut rounds, mut drafted, mut reached) = (0.0, 0.0, vec![0.0; most]);
    for at in 0..n {
        let here = starts[at];
        // The last token is the target's own.
        let room = most.min(n - at - 1);
        if room > 0 {
            rounds += here;
        }
        drafted += here * room as f64;
        let mut all = here;
        for place in 0..room {
            let next = all * ratios[at + place].min(1.0);
            reached[place] += next;
            starts[at + place + 1] += all - next;
            all = next;
        }
        starts[at + room + 1] += all;
    }
    (rounds, drafted, reached)
}

/// The same as the text that GET /metrics gives, with or without counts by place, and what is made of
/// it.
pub(crate) fn predicted(
    ratios: &[f64],
    most: usize,
    by_place: bool,
    settings: &Settings,
) -> CountersReport {
    let (rounds, drafted, reached) = counters(ratios, most);
    // Expected counts, as whole numbers of a longer run.
    let whole = |count: f64| (1e4 * count).round();
    let (rounds, drafted) = (whole(rounds), whole(drafted));
    let reached: Vec<f64> = reached.into_iter().map(whole).collect();
    let mut text = String::new();
    let labels = "engine=\"0\",model_name=\"m\"";
    let accepted: f64 = reached.iter().sum();
    for (name, count) in [
        ("drafts", rounds),
        ("draft_tokens", drafted),
        ("accepted_tokens", accepted),
    ] {
        writeln!(
            text,
            "vllm:spec_decode_num_{name}_total{{{labels}}} {count:?}"
        )
        .unwrap();
    }
    for (position, count) in reached.iter().enumerate().filter(|_| by_place) {
        writeln!(
            text,
            "vllm:spec_decode_num_accepted_tokens_per_pos_total{{{labels},position=\"{position}\"}} {count:?}"
        )
        .unwrap();
    }
    let file = Text {
        name: "metrics",
        text: &text,
    };
    predict(&count(&[file], None, &[]).unwrap(), settings)
}

/// All texts of a draft one behind the other, again and again: ends of texts would cut rounds, which is
/// another trap.
fn glued(draft: &str) -> Vec<f64> {
    ratios(draft).concat().repeat(8)
}

fn truth(ratios: &[f64], length: usize) -> f64 {
    let calls = replay(ChainRule::TOKEN, ratios, &FixedLength(length))
        .unwrap()
        .calls;
    ratios.len() as f64 / calls
}

#[test]
fn counters_say_other_lengths_within_the_stated_error() {
    let mut worst = [0.0f64; 2];
    for draft in DRAFTS {
        let ratios = glued(draft);
        for (most, judged) in [(8, 7), (5, 7), (3, 7)] {
            let report = predicted(&ratios, most, true, &Settings::default());
            assert_eq!(report.length, Some(most));
            assert_eq!(report.lengths.len(), 8);
            let mut compared = 0;
            for at in report.lengths.iter().filter(|at| at.stated_error.is_some()) {
                let truth = truth(&ratios, at.length);
                let off = at.acceptance_length.mean / truth - 1.0;
                let [low, high] = at.stated_error.unwrap();
                assert!(
                    (low..=high).contains(&off),
                    "{draft}, {most} to {}: {off}",
                    at.length
                );
                worst = [worst[0].min(off), worst[1].max(off)];
                compared += 1;
            }
            assert_eq!(compared, judged);
            // Its own length is no prediction; the end of the text cuts a round or two.
            let own = &report.lengths[most - 1];
            assert_eq!(own.kind, Kind::Counted);
            let off = own.acceptance_length.mean / truth(&ratios, most) - 1.0;
            assert!(off.abs() < 1e-3, "{draft}: {off}");
        }
    }
    // It is a prediction: were it an identity, these would be rounding.
    assert!(worst[0] < -0.003 && worst[1] > 0.001, "{worst:?}");
}

/// A run whose every coin is known here: the rounds that a server lists leave the coins behind
/// wholly accepted rounds out, and what is replayed of them has the truth between its ends.
#[test]
fn listed_rounds_hold_the_replay_of_shorter_ones() {
    let mut rng = ChaCha8Rng::seed_from_u64(18);
    let most = 4;
    let texts: Vec<Vec<bool>> = ratios("eagle-lk")
        .iter()
        .map(|text| {
            text.iter()
                .map(|ratio| rng.random::<f64>() < (ratio * 2.0).min(0.95))
                .collect()
        })
        .collect();
    let rounds = |coins: &[bool], length: usize| {
        let (mut at, mut steps) = (0, Vec::new());
        while at < coins.len() {
            let accepted = coins[at..]
                .iter()
                .take(length)
                .take_while(|coin| **coin)
                .count();
            steps.push(accepted);
            at += accepted + 1;
        }
        steps
    };
    let mut lines = String::new();
    let (mut tokens, mut own) = (0, 0);
    for coins in &texts {
        let steps = rounds(coins, most);
        let drafted = vec![most; steps.len()];
        let accepted: usize = steps.iter().sum();
        tokens += accepted + steps.len();
        own += steps.len();
        writeln!(
            lines,
            "{{\"metrics\": {{\"speculative_decoding\": {{\"per_step_accepted\": {steps:?}, \
             \"per_step_drafted\": {drafted:?}, \"num_spec_tokens\": {most}, \
             \"num_accepted_draft_tokens\": {accepted}}}}}}}"
        )
        .unwrap();
    }
    let file = Text {
        name: "responses",
        text: &lines,
    };
    let report = predict(&count(&[file], None, &[]).unwrap(), &Settings::default());
    assert_eq!(report.served.requests, Some(texts.len()));
    let counted = &report.lengths[most - 1];
    assert_eq!(counted.kind, Kind::Counted);
    assert!((counted.acceptance_length.mean - tokens as f64 / own as f64).abs() < 1e-12);
    for length in 1..most {
        // Of the text as it was put out, whose last round may hold a token more than the coins.
        let calls: usize = texts.iter().map(|coins| rounds(coins, length).len()).sum();
        let truth = tokens as f64 / calls as f64;
        let at = &report.lengths[length - 1];
        let [low, high] = at.acceptance_length.between.unwrap();
        let room = 2.0 * texts.len() as f64 / calls as f64;
        assert!(
            low - room / 10.0 <= truth && truth <= high + room / 10.0,
            "{length}: {truth} {at:?}"
        );
        assert!(high - low > 1e-3 && high - low < 0.2, "{length}: {at:?}");
        // The places say as much, up to where rounds start.
        let places = report.curve.as_ref().unwrap().marginal[..length].iter();
        let prefix = 1.0 + places.map(|share| share.mean).sum::<f64>();
        assert!(
            (prefix / f64::midpoint(low, high) - 1.0).abs() < 0.1,
            "{length}: {prefix}"
        );
    }
}
