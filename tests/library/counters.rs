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

/// q/p of the drafts of a round that starts at each token of all texts, which stand behind one another; what
/// the log does not have behind the end of a text is as at depth 1. First for depth 1, then deeper.
fn by_depth(draft: &str) -> Vec<Vec<f64>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/logs/smollm2-by-depth");
    let log = Log::open(&folder.join(format!("{draft}.safetensors"))).unwrap();
    let texts = Texts::read(&[log], None, &|_| ()).unwrap();
    let first = ratios(draft).concat();
    let most = texts.depths();
    let (mut all, mut before) = (vec![Vec::new(); most], 0);
    for text in &texts.texts {
        for start in 0..text.places.len() {
            let ahead = text.ahead(start);
            for (depth, all) in all.iter_mut().enumerate() {
                let other = first[(before + start + depth) % first.len()];
                all.push(ahead.get(depth).map_or(other, |place| place.ratio));
            }
        }
        before += text.places.len();
    }
    all
}

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

/// Tokens a round of `length` drafts along glued texts, where the coin of the d-th draft of a round that
/// starts at s is that of (s, d): heads of a drafter.
fn truth_by_depth(by_depth: &[Vec<f64>], length: usize) -> f64 {
    let n = by_depth[0].len();
    let mut starts = vec![0.0; n + length + 2];
    starts[0] = 1.0;
    let (mut rounds, mut tokens) = (0.0, 0.0);
    for at in 0..n - length {
        let mut all = starts[at];
        rounds += all;
        for place in 0..length {
            tokens += all;
            let next = all * by_depth[place][at].min(1.0);
            starts[at + place + 1] += all - next;
            all = next;
        }
        tokens += all;
        starts[at + length + 1] += all;
    }
    tokens / rounds
}

/// The same as counters of many such rounds.
fn predicted_by_depth(by_depth: &[Vec<f64>], most: usize) -> CountersReport {
    let n = by_depth[0].len();
    let mut starts = vec![0.0; n + most + 2];
    starts[0] = 1.0;
    let (mut rounds, mut reached) = (0.0, vec![0.0; most]);
    for at in 0..n - most {
        let mut all = starts[at];
        rounds += all;
        for place in 0..most {
            let next = all * by_depth[place][at].min(1.0);
            reached[place] += next;
            starts[at + place + 1] += all - next;
            all = next;
        }
        starts[at + most + 1] += all;
    }
    let whole = |count: f64| (1e4 * count).round() as u64;
    let mut histogram = vec![whole(rounds)];
    histogram.extend(reached.into_iter().map(whole));
    for at in 0..most {
        histogram[at] -= histogram[at + 1];
    }
    let total: u64 = histogram.iter().sum();
    let text = format!(
        "{{\"distribution\": {histogram:?}, \"total_draft_tokens\": {}}}",
        most as u64 * total
    );
    let file = Text {
        name: "stats",
        text: &text,
    };
    predict(&count(&[file], None, &[]).unwrap(), &Settings::default())
}

/// The truth along shipped texts lies in every range, of drafts whose coin belongs to the token and of heads,
/// and the mean is near it: nearer than the first places of longer rounds are.
#[test]
fn counters_say_other_lengths_within_their_ranges() {
    let (mut squares, mut of_places, mut compared) = (0.0, 0.0, 0.0);
    for draft in DRAFTS {
        let ratios = glued(draft);
        let depths = by_depth(draft);
        let deepest = depths.len();
        assert!(deepest >= 3, "{draft}: {deepest}");
        let heads: Vec<Vec<f64>> = depths.iter().map(|one| one.repeat(8)).collect();
        let by_token = |most: usize| predicted(&ratios, most, true, &Settings::default());
        let runs = [8, 5, 3, 2, 1].map(|most| (by_token(most), most, false));
        let of_heads = (1..=deepest).map(|most| (predicted_by_depth(&heads, most), most, true));
        for (report, most, is_head) in runs.into_iter().chain(of_heads) {
            assert_eq!(report.length, Some(most));
            for at in &report.lengths {
                if is_head && at.length > deepest {
                    continue;
                }
                let truth = match is_head {
                    true => truth_by_depth(&heads, at.length),
                    false => truth(&ratios, at.length),
                };
                let tokens = at.acceptance_length;
                let [low, high] = tokens.ends();
                let off = tokens.mean / truth - 1.0;
                // The end of a text cuts a round or two of thousands that are counted.
                let slack = if at.kind == Kind::Counted { 1e-3 } else { 0.0 };
                assert!(
                    low - slack <= truth && truth <= high + slack,
                    "{draft}, {most} to {}, {is_head}: {truth} {at:?}",
                    at.length
                );
                assert!(off.abs() < 0.06, "{draft}, {most} to {}: {off}", at.length);
                let curve = report.curve.as_ref().unwrap();
                if at.length < most {
                    let places = curve.marginal[..at.length].iter().map(|share| share.mean);
                    let prefix = (1.0 + places.sum::<f64>()) / truth - 1.0;
                    squares += off * off;
                    of_places += prefix * prefix;
                    compared += 1.0;
                }
                if at.length == most {
                    assert_eq!((at.kind, tokens.range), (Kind::Counted, None));
                }
            }
        }
    }
    let [own, places] = [squares, of_places].map(|sum: f64| (sum / compared).sqrt());
    println!("root mean square: {own:.5} by runs, {places:.5} by places, of {compared}");
    assert!(own < 0.01, "{own} {places}");
}

/// Servers whose drafts are hard for a while and easy for a while, from independent coins to whole texts, with
/// short texts and long: rounds of every length along the same coins lie in the range that counts of another
/// length leave.
#[test]
fn made_servers_lie_in_the_ranges() {
    let mut rng = ChaCha8Rng::seed_from_u64(29);
    let mut shut = 0;
    for case in 0..400 {
        let (easy, hard) = (rng.random_range(0.5..1.0), rng.random_range(0.0..0.8));
        let stay = [0.5, 0.8, 0.95, 0.995][case % 4];
        let most = rng.random_range(1..=8);
        // One text without an end, or requests of all lengths.
        let texts: Vec<usize> = match case % 3 {
            0 => vec![6_000],
            1 => (0..60).map(|_| rng.random_range(30..200)).collect(),
            _ => (0..200).map(|_| rng.random_range(2..40)).collect(),
        };
        let mut is_easy = true;
        let coins: Vec<Vec<bool>> = texts
            .iter()
            .map(|tokens| {
                (0..tokens + 20)
                    .map(|_| {
                        is_easy ^= rng.random::<f64>() > stay;
                        rng.random::<f64>() < if is_easy { easy } else { hard }
                    })
                    .collect()
            })
            .collect();
        let rounds = |length: usize| -> Vec<Vec<usize>> {
            let each = texts.iter().zip(&coins).map(|(tokens, coins)| {
                let (mut at, mut all) = (0, Vec::new());
                while at < *tokens {
                    let drafts = coins[at..].iter().take(length);
                    let accepted = drafts.take_while(|coin| **coin).count();
                    at += accepted + 1;
                    all.push(accepted);
                }
                all
            });
            each.collect()
        };
        let truth = |length: usize| {
            let all = rounds(length).concat();
            1.0 + all.iter().sum::<usize>() as f64 / all.len() as f64
        };
        let mut lines = String::new();
        for all in rounds(most) {
            let mut histogram = vec![0; most + 1];
            for accepted in &all {
                histogram[*accepted] += 1;
            }
            let drafted = most * all.len();
            writeln!(
                lines,
                "{{\"acceptance_histogram\": {histogram:?}, \"num_draft_tokens\": {drafted}}}"
            )
            .unwrap();
        }
        let file = Text {
            name: "responses",
            text: &lines,
        };
        let report = predict(&count(&[file], None, &[]).unwrap(), &Settings::default());
        let own = report.length.unwrap();
        for at in &report.lengths {
            let (truth, [low, high]) = (truth(at.length), at.acceptance_length.ends());
            // One text is a request of which the last round is a hundredth of a thousandth.
            let slack = 1e-9;
            assert!(
                low - slack <= truth && truth <= high + slack,
                "{case}: K = {own} ({most}), k = {}: {truth} {at:?}",
                at.length
            );
            shut += usize::from(at.kind == Kind::Runs && high - low < 0.1);
        }
    }
    assert!(shut > 100, "{shut}");
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
        let [low, high] = at.acceptance_length.range.unwrap();
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
