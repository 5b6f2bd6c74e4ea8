//! alpha* of one position at real vocabularies, against the time of the two
//! softmax passes that make p and q, and against a sort.
//!
//!     cargo bench --bench scan                        ours, and a plain f32 softmax in Rust
//!     SPECGAP_PYTHON=.venv/bin/python cargo bench --bench scan
//!
//! The second form also runs `benches/scan_baseline.py` on the same rows in the same
//! run; it needs a Python with NumPy: `python3 -m venv .venv`, then
//! `.venv/bin/pip install -r benches/requirements.txt`. All times are on one thread,
//! the least of many repetitions with the rows in cache, as they are right after a
//! softmax. Rows are softmax of normal logits, the draft's those of the target plus
//! noise, fixed seed.
//!
//! `cargo bench --bench scan -- sequential` measures sequential draws only, by n, on these
//! rows and on those of the shipped log.
//!
//! `cargo bench --bench scan -- level` measures the level plan of i.i.d. drafts against the scan
//! for alpha*, in one run.
//!
//! `cargo bench --bench scan -- rrs-wo` measures its fast way against the slow one only.
//!
//! `SPECGAP_WRITE_RESULTS=1` writes what README shows of it to `benches/results.json`.

mod python;
mod results;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use results::{Row, Span};
use specgap::distribution::{Draft, Softmax, Target};
use specgap::log::{Log, Row as LogRow};
use specgap::plan::{LevelPlan, RatioOrder};
use specgap::row::{RejectionBudget, Rows, ScannedRate, Workspace};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

const VOCABS: [usize; 3] = [49_152, 151_936, 262_144];
const DRAFTS: std::ops::RangeInclusive<usize> = 1..=8;

/// Time spent repeating one measurement.
const PATIENCE: Duration = Duration::from_millis(300);
const LEAST_REPEATS: usize = 5;

struct Instance {
    name: String,
    target: Vec<f32>,
    draft: Vec<f32>,
}

/// A standard normal draw, by Box and Muller.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * random.random_range(f64::MIN_POSITIVE..1.0).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random_range(0.0..1.0)).cos()
}

/// Logits with the spread of a language model's: `width` 2 is a flat row, 4 a
/// peaked one.
fn instance(vocab: usize, width: f64) -> Instance {
    let mut random = ChaCha8Rng::seed_from_u64(vocab as u64);
    let target: Vec<f64> = (0..vocab).map(|_| width * normal(&mut random)).collect();
    let draft = target
        .iter()
        .map(|logit| (0.9 * logit + 0.8 * normal(&mut random)) as f32)
        .collect();
    Instance {
        name: format!("V={vocab} width={width}"),
        target: target.iter().map(|&logit| logit as f32).collect(),
        draft,
    }
}

/// Least seconds of one call.
fn seconds(mut call: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut least = f64::INFINITY;
    let mut repeats = 0;
    while repeats < LEAST_REPEATS || begun.elapsed() < PATIENCE {
        let started = Instant::now();
        call();
        least = least.min(started.elapsed().as_secs_f64());
        repeats += 1;
    }
    least
}

/// What one would write first: three loops in `f32`.
fn plain_softmax(logits: &[f32], row: &mut Vec<f32>) {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.clear();
    row.extend(logits.iter().map(|&logit| (logit - largest).exp()));
    let total: f32 = row.iter().sum();
    row.iter_mut().for_each(|entry| *entry /= total);
}

#[derive(Default)]
struct Times {
    plain_softmax: f64,
    softmax: f64,
    load: f64,
    /// Load and one question, by n.
    with_replacement: Vec<f64>,
    distinct: Vec<f64>,
    /// Load, every n, both laws.
    everything: f64,
    without: Vec<f64>,
    values: Vec<f64>,
    widths: [f64; 3],
}

fn measure(instance: &Instance) -> Times {
    let mut times = Times::default();
    let softmax = Softmax::default();
    let (mut plain_p, mut plain_q) = (Vec::new(), Vec::new());
    times.plain_softmax = seconds(|| {
        plain_softmax(black_box(&instance.target), &mut plain_p);
        plain_softmax(black_box(&instance.draft), &mut plain_q);
        black_box((&plain_p, &plain_q));
    });
    let (mut p, mut q) = (Vec::new(), Vec::new());
    times.softmax = seconds(|| {
        softmax
            .fill(black_box(&instance.target), &mut p)
            .expect("finite logits");
        softmax
            .fill(black_box(&instance.draft), &mut q)
            .expect("finite logits");
        black_box((&p, &q));
    });
    let rows = Rows {
        target: &p,
        draft: &q,
    };
    let most = *DRAFTS.end();
    let mut scan = Workspace::new();
    times.load = seconds(|| {
        black_box(scan.load(black_box(rows), most).expect("two distributions"));
    });
    let width = |widest: &mut f64, found: &ScannedRate| *widest = widest.max(found.rate.width());
    for n in DRAFTS {
        times.with_replacement.push(seconds(|| {
            let mut position = scan.load(black_box(rows), n).expect("two distributions");
            let found = position.with_replacement(n).expect("n in range");
            width(&mut times.widths[0], &found);
            black_box(found);
        }));
        times.distinct.push(seconds(|| {
            let mut position = scan.load(black_box(rows), n).expect("two distributions");
            let found = position.distinct_conditioned(n).expect("n in range");
            width(&mut times.widths[1], &found);
            black_box(found);
        }));
        times.without.push(seconds(|| {
            let mut position = scan.load(black_box(rows), n).expect("two distributions");
            let found = position.without_replacement(n).expect("n in range");
            width(&mut times.widths[2], &found);
            black_box(found);
        }));
        let mut position = scan.load(rows, n).expect("two distributions");
        times.values.push(
            position
                .with_replacement(n)
                .expect("n in range")
                .rate
                .value(),
        );
    }
    times.everything = seconds(|| {
        let mut position = scan.load(black_box(rows), most).expect("two distributions");
        for n in DRAFTS {
            black_box(position.with_replacement(n).expect("n in range"));
            black_box(position.distinct_conditioned(n).expect("n in range"));
        }
    });
    times
}

/// What the Python baseline says about one instance.
struct Baseline {
    softmax: f64,
    /// argsort and cumsum, by n.
    sorted: Vec<f64>,
    values: Vec<f64>,
}

fn baselines(instances: &[Instance]) -> Option<(String, BTreeMap<String, Baseline>)> {
    let input: Vec<serde_json::Value> = instances
        .iter()
        .map(|instance| {
            serde_json::json!({
                "name": instance.name,
                "target_logits": instance.target,
                "draft_logits": instance.draft,
                "drafts": DRAFTS.collect::<Vec<_>>(),
            })
        })
        .collect();
    let report = python::run("scan_baseline.py", &[], &input)?;
    let versions = format!("Python {}, NumPy {}", report["python"], report["numpy"]);
    let numbers = |value: &serde_json::Value| -> Option<Vec<f64>> {
        value
            .as_array()?
            .iter()
            .map(serde_json::Value::as_f64)
            .collect()
    };
    let mut found = BTreeMap::new();
    for record in report["instances"].as_array()? {
        found.insert(
            record["name"].as_str()?.to_owned(),
            Baseline {
                softmax: record["softmax_seconds"].as_f64()?,
                sorted: numbers(&record["scan_seconds"])?,
                values: numbers(&record["values"])?,
            },
        );
    }
    Some((versions.replace('"', ""), found))
}

/// One time of specgap's beside what it is compared with, in seconds.
struct Compared {
    ours: f64,
    plain: f64,
    numpy: Option<f64>,
    /// argsort and cumsum, where they would answer the same question.
    sorted: Option<f64>,
}

/// What is written down: for each V and law the least and the greatest time over widths of
/// rows and numbers of drafts, beside each baseline.
fn rows(measured: &[(&Instance, &Times, Option<&Baseline>)]) -> Vec<Row> {
    type Law = (&'static str, fn(&Times, Option<&Baseline>) -> Vec<Compared>);
    fn of(times: &Times, numpy: Option<&Baseline>, ours: &[f64]) -> Vec<Compared> {
        let compared = |&ours: &f64| Compared {
            ours,
            plain: times.plain_softmax,
            numpy: numpy.map(|numpy| numpy.softmax),
            sorted: None,
        };
        ours.iter().map(compared).collect()
    }
    let laws: [Law; 4] = [
        ("with replacement, n = 1 to 8", |times, numpy| {
            let mut all = of(times, numpy, &times.with_replacement);
            for (index, compared) in all.iter_mut().enumerate() {
                compared.sorted = numpy.map(|numpy| numpy.sorted[index]);
            }
            all
        }),
        ("distinct-conditioned, n = 2 to 8", |times, numpy| {
            of(times, numpy, &times.distinct[1..])
        }),
        ("both, n = 1 to 8, in one pass", |times, numpy| {
            of(times, numpy, &[times.everything])
        }),
        ("without replacement, n = 3", |times, numpy| {
            of(times, numpy, &times.without[2..3])
        }),
    ];
    type Against = (&'static str, fn(&Compared) -> Option<f64>);
    let baselines: [Against; 3] = [
        ("two f32 softmax passes, NumPy", |compared| compared.numpy),
        ("two f32 softmax passes, plain Rust", |compared| {
            Some(compared.plain)
        }),
        ("argsort and cumsum, NumPy", |compared| compared.sorted),
    ];
    let mut rows = Vec::new();
    for vocab in VOCABS {
        for (law, compare) in laws {
            let all: Vec<Compared> = (measured.iter())
                .filter(|(instance, ..)| instance.target.len() == vocab)
                .flat_map(|(_, times, numpy)| compare(times, *numpy))
                .collect();
            for (baseline, of) in baselines {
                let Some(theirs) = all.iter().map(of).collect::<Option<Vec<f64>>>() else {
                    continue;
                };
                let ratios = all
                    .iter()
                    .zip(&theirs)
                    .map(|(own, theirs)| own.ours / theirs);
                rows.push(Row {
                    row: format!("alpha* {law}, V = {}", results::thousands(vocab)),
                    way: "specgap".to_owned(),
                    unit: "ms".to_owned(),
                    ours: Span::of(all.iter().map(|own| 1e3 * own.ours)),
                    baseline: Some(baseline.to_owned()),
                    theirs: Some(Span::of(theirs.iter().map(|theirs| 1e3 * theirs))),
                    ratio: Some(Span::of(ratios)),
                    note: None,
                });
            }
        }
    }
    rows
}

/// Draws at a time, for sequential draws.
const DRAWS: [usize; 8] = [2, 3, 4, 5, 6, 7, 8, 16];

/// p and q.
type Pair = (Vec<f64>, Vec<f64>);

/// The rows of the shipped log at temperature 1: the 1,024 tokens that it lists, and a tail
/// over the other tokens, whose mass it lists, with log-normal shares.
fn logged() -> Vec<Pair> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/logs/smollm2-demo");
    let log = Log::open(&path).expect("the shipped log");
    let mut random = ChaCha8Rng::seed_from_u64(20);
    let mut row = LogRow::default();
    let mut pairs = Vec::new();
    for index in (0..log.positions()).step_by(10) {
        log.read(index, &mut row).expect("a row");
        let mut complete = |listed: &[f64], rest: f64| {
            let most = listed.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mut full = vec![0.0; log.vocabulary()];
            for place in 0..listed.len() {
                full[row.token_at(place) as usize] = (listed[place] - most).exp();
            }
            let held: f64 = full.iter().sum();
            full.iter_mut().for_each(|x| *x *= (1.0 - rest) / held);
            let mut tail: Vec<f64> = (full.iter())
                .map(|&x| {
                    if x == 0.0 {
                        (1.5 * normal(&mut random)).exp()
                    } else {
                        0.0
                    }
                })
                .collect();
            let whole: f64 = tail.iter().sum();
            tail.iter_mut().for_each(|x| *x *= rest / whole);
            (full.iter().zip(tail))
                .map(|(x, y)| x + y)
                .collect::<Vec<f64>>()
        };
        let last = row.target_rest.len() - 1;
        let target = complete(&row.target, row.target_rest[last]);
        let draft = complete(&row.draft, row.draft_rest[last]);
        pairs.push((target, draft));
    }
    pairs
}

/// Sequential draws by n: the mean over rows of the least seconds of load and question, the
/// longest, and the widest enclosure.
fn sequential(name: &str, pairs: &[Pair]) {
    let mut scan = Workspace::new();
    let mut cells = Vec::new();
    for n in DRAWS {
        let (mut sum, mut longest, mut widest) = (0.0, 0.0f64, 0.0f64);
        for (target, draft) in pairs {
            let rows = Rows { target, draft };
            let mut least = f64::INFINITY;
            for _ in 0..if pairs.len() > 1 { 5 } else { 40 } {
                let started = Instant::now();
                let mut position = scan.load(black_box(rows), n).expect("two distributions");
                let found = position.without_replacement(n).expect("n in range");
                least = least.min(started.elapsed().as_secs_f64());
                widest = widest.max(found.rate.width());
                black_box(found);
            }
            sum += least;
            longest = longest.max(least);
        }
        let mean = 1e3 * sum / pairs.len() as f64;
        cells.push(format!("{mean:.3} ({:.3}) {widest:.1e}", 1e3 * longest));
    }
    println!("| {name} | {} |", cells.join(" | "));
}

/// Sequential draws alone: `cargo bench --bench scan -- sequential`.
fn sequential_only(instances: &[Instance]) {
    println!("Without replacement, load included: mean (longest) in milliseconds, widest:\n");
    println!("| rows | {} |", DRAWS.map(|n| n.to_string()).join(" | "));
    println!("| --- |{}", " --- |".repeat(DRAWS.len()));
    let softmax = Softmax::default();
    let filled = |logits: &[f32]| {
        let mut row = Vec::new();
        softmax.fill(logits, &mut row).expect("finite logits");
        row
    };
    for instance in instances {
        let pair = (filled(&instance.target), filled(&instance.draft));
        sequential(&instance.name, &[pair]);
    }
    let pairs = logged();
    sequential("shipped log, V=49152", &pairs);
    let listed: Vec<Pair> = pairs
        .iter()
        .map(|(p, q)| {
            // The heaviest of either row, and the rest in 64 shares, as a report takes them.
            let mut order: Vec<usize> = (0..p.len()).collect();
            order.sort_by(|&a, &b| p[b].total_cmp(&p[a]));
            let kept = |row: &[f64]| {
                let mut kept: Vec<f64> = order[..1024].iter().map(|&token| row[token]).collect();
                let rest = 1.0 - kept.iter().sum::<f64>();
                kept.extend([rest.max(0.0) / 64.0; 64]);
                kept
            };
            (kept(p), kept(q))
        })
        .collect();
    sequential("shipped log, 1,024 tokens and the rest", &listed);
}

/// Drafts of [`rejections`].
const REJECTED: [usize; 7] = [2, 3, 4, 5, 6, 7, 8];

/// rrs-wo on real rows, `cargo bench --bench scan -- rrs-wo`: the fast way and the slow one,
/// load and what is kept of a row included; means over rows, and how far the two are apart.
fn rejections(pairs: &[Pair]) -> Vec<Row> {
    println!(
        "rrs-wo on {} rows of the shipped log, in milliseconds:\n",
        pairs.len()
    );
    println!(
        "| n | fast | longest | slow | x | apart, at most | told, at most | slow one's width |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut scan = Workspace::new();
    let mut found = Vec::new();
    for n in REJECTED {
        // As reports take it.
        let (width, work_limit) = match n {
            ..=3 => (1e-5, 10_000_000),
            4 => (5e-4, 10_000_000),
            _ => (1e-6, 0),
        };
        let budget = RejectionBudget {
            width,
            work_limit,
            samples: 5_000,
            ..RejectionBudget::default()
        };
        let (mut sums, mut longest) = ([0.0; 2], 0.0f64);
        let (mut apart, mut told, mut widest) = (0.0f64, 0.0f64, 0.0f64);
        for (target, draft) in pairs {
            let rows = Rows { target, draft };
            let mut timed = |fast: bool| {
                let mut least = f64::INFINITY;
                let mut rate = None;
                for _ in 0..if fast { 5 } else { 1 } {
                    let started = Instant::now();
                    let mut row = scan.load(black_box(rows), n).expect("two distributions");
                    rate = Some(if fast {
                        row.accepted_in_turn_fast(n, &budget)
                    } else {
                        row.accepted_in_turn(n, &budget)
                    });
                    least = least.min(started.elapsed().as_secs_f64());
                }
                (rate.expect("one run at least"), least)
            };
            let ((fast, quick), (slow, long)) = (timed(true), timed(false));
            sums[0] += quick;
            sums[1] += long;
            longest = longest.max(quick);
            let middle = 0.5 * (slow.lower() + slow.upper());
            apart = apart.max((fast.value() - middle).abs());
            told = told.max(0.5 * fast.width());
            widest = widest.max(slow.width());
        }
        let [fast, slow] = sums.map(|sum| 1e3 * sum / pairs.len() as f64);
        println!(
            "| {n} | {fast:.3} | {:.3} | {slow:.2} | {:.3} | {apart:.1e} | {told:.1e} | {widest:.1e} |",
            1e3 * longest,
            fast / slow
        );
        found.push(Row {
            row: format!("rrs-wo, n = {n}, V = {}", results::thousands(VOCABS[0])),
            way: "specgap, fast".to_owned(),
            unit: "ms".to_owned(),
            ours: Span(fast, fast),
            baseline: Some("specgap, enclosed or Monte Carlo".to_owned()),
            theirs: Some(Span(slow, slow)),
            ratio: Some(Span(fast / slow, fast / slow)),
            note: Some(format!("apart by {apart:.0e} at most")),
        });
    }
    println!();
    found
}

/// The level plan of i.i.d. drafts, `cargo bench --bench scan -- level`: the scan for alpha*
/// with its load, the plan with its sort, and the plan where the order is at hand, as it is
/// for a second n.
fn level_only(instances: &[Instance]) {
    println!(
        "The level plan of i.i.d. drafts, in milliseconds; `x` is its time over the scan's:\n"
    );
    println!("| instance | n | scan | plan | x | plan, sorted | x | plan's width |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let softmax = Softmax::default();
    let filled = |logits: &[f32]| {
        let mut row = Vec::new();
        softmax.fill(logits, &mut row).expect("finite logits");
        row
    };
    let mut scan = Workspace::new();
    for instance in instances {
        let target = Target::new(&filled(&instance.target)).expect("a distribution");
        let draft = Draft::new(&filled(&instance.draft)).expect("a distribution");
        let (p, q) = (target.probabilities(), draft.probabilities());
        let rows = Rows {
            target: p,
            draft: q,
        };
        let order = RatioOrder::of(&target, &draft);
        for n in [1, 2, 4, 8] {
            let scanned = seconds(|| {
                let mut position = scan.load(black_box(rows), n).expect("two distributions");
                black_box(position.with_replacement(n).expect("n in range"));
            });
            let planned = seconds(|| {
                black_box(LevelPlan::iid(black_box(&target), &draft, n).expect("n in range"));
            });
            let sorted = seconds(|| {
                let plan = LevelPlan::iid_in_order(black_box(&target), &draft, &order, n);
                black_box(plan.expect("n in range"));
            });
            let plan = LevelPlan::iid(&target, &draft, n).expect("n in range");
            println!(
                "| {} | {n} | {:.3} | {:.3} | {:.1} | {:.3} | {:.1} | {:.1e} |",
                instance.name,
                1e3 * scanned,
                1e3 * planned,
                planned / scanned,
                1e3 * sorted,
                sorted / scanned,
                plan.optimal_acceptance_rate().width()
            );
        }
    }
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.3} ms", 1e3 * seconds)
}

fn main() {
    let instances: Vec<Instance> = VOCABS
        .into_iter()
        .flat_map(|vocab| [2.0, 4.0].map(|width| instance(vocab, width)))
        .collect();
    if std::env::args().any(|argument| argument == "sequential") {
        return sequential_only(&instances);
    }
    if std::env::args().any(|argument| argument == "level") {
        return level_only(&instances);
    }
    let rejected = rejections(&logged());
    if std::env::args().any(|argument| argument == "rrs-wo") {
        return;
    }
    let measured: Vec<Times> = instances.iter().map(measure).collect();
    let baseline = baselines(&instances);
    match &baseline {
        Some((versions, _)) => println!("{versions}\n"),
        None => println!("No baseline: set SPECGAP_PYTHON to a Python with NumPy.\n"),
    }
    println!("Two rows of logits to two rows of probabilities, and the scan's pass over them:\n");
    println!("| instance | NumPy f32 | plain Rust f32 | specgap f64 | scan's pass |");
    println!("| --- | --- | --- | --- | --- |");
    let numpy = |instance: &Instance| baseline.as_ref()?.1.get(&instance.name);
    for (instance, times) in instances.iter().zip(&measured) {
        let theirs = numpy(instance).map_or("".to_owned(), |b| milliseconds(b.softmax));
        println!(
            "| {} | {theirs} | {} | {} | {} |",
            instance.name,
            milliseconds(times.plain_softmax),
            milliseconds(times.softmax),
            milliseconds(times.load)
        );
    }
    println!("\nalpha* from p and q, the pass included; `x` is the time over that of the two f32");
    println!("softmax passes (NumPy's, then plain Rust's):\n");
    println!(
        "| instance | n | with replacement | x | x | distinct | x | x | argsort, cumsum | x |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (instance, times) in instances.iter().zip(&measured) {
        let theirs = numpy(instance);
        let over = |seconds: f64| {
            let numpy = theirs.map_or("".to_owned(), |b| format!("{:.2}", seconds / b.softmax));
            format!(
                "{} | {numpy} | {:.2}",
                milliseconds(seconds),
                seconds / times.plain_softmax
            )
        };
        for (index, n) in DRAFTS.enumerate() {
            let sorted = theirs.map_or(" | ".to_owned(), |b| {
                assert!((b.values[index] - times.values[index]).abs() < 1e-6);
                format!(
                    "{} | {:.1}",
                    milliseconds(b.sorted[index]),
                    b.sorted[index] / b.softmax
                )
            });
            println!(
                "| {} | {n} | {} | {} | {sorted} |",
                instance.name,
                over(times.with_replacement[index]),
                over(times.distinct[index])
            );
        }
        println!(
            "| {} | 1..8, both | {} | | | | | |",
            instance.name,
            over(times.everything)
        );
    }
    println!("\nWithout replacement, load included, in milliseconds by n:\n");
    println!("| instance | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (instance, times) in instances.iter().zip(&measured) {
        let cells: Vec<String> = times
            .without
            .iter()
            .map(|s| format!("{:.2}", 1e3 * s))
            .collect();
        println!("| {} | {} |", instance.name, cells.join(" | "));
    }
    let widest = |law: usize| measured.iter().map(|t| t.widths[law]).fold(0.0, f64::max);
    println!(
        "\nWidest enclosure: {:.1e} with replacement, {:.1e} distinct, {:.1e} without replacement.",
        widest(0),
        widest(1),
        widest(2)
    );
    if results::wanted() {
        let measured: Vec<_> = (instances.iter().zip(&measured))
            .map(|(instance, times)| (instance, times, numpy(instance)))
            .collect();
        let remark = format!(
            "one thread; enclosures at most {:.0e} wide with replacement, {:.0e} distinct, \
             {:.0e} without replacement",
            widest(0),
            widest(1),
            widest(2)
        );
        let versions = baseline.as_ref().map(|(versions, _)| versions.clone());
        let mut all = rows(&measured);
        all.extend(rejected);
        results::write("scan", versions, Some(remark), all)
            .expect("benches/results.json can be written");
    }
}
