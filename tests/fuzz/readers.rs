//! Every reader, with the files that its inputs are made of.

use crate::Target;
use crate::break_input::{self, Seed};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use specgap::audit::Records;
use specgap::certify::Certificate;
use specgap::claims::Baseline;
use specgap::counters::{Settings as CountersAsked, Source, Text, count, predict};
use specgap::distribution::{format_rational, parse_rational};
use specgap::gap::{Part, Settings, Summary, summarise};
use specgap::import::{Engine, Request, import, open_tokens};
use specgap::log::{Layout, Log, LogWriter, Metadata, Position, Row};
use specgap::problem::{AnyProblem, Problem, parse_json, parse_toml};
use specgap::replay::{
    LengthSettings, Limits, NamedTree, Parts, PathSettings, Timings, TreeSettings, measure_lengths,
    measure_paths, measure_trees,
};
use specgap::rule::RuleName;
use specgap::scheme::SchemeName;
use specgap::tree::DraftTree;
use specgap::verifier::VerifierName;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Break = fn(&mut ChaCha8Rng, &Seed, &Seed) -> Vec<u8>;
type Read = Box<dyn FnMut(&[u8]) -> Result<bool, String>>;

/// A reader of bytes that are made of a few good files.
struct Reader {
    name: &'static str,
    seeds: Vec<Seed>,
    breaks: Break,
    read: Read,
}

impl Target for Reader {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn input(&mut self, rng: &mut ChaCha8Rng) -> Vec<u8> {
        let [one, other] = [0, 1].map(|_| &self.seeds[rng.random_range(0..self.seeds.len())]);
        (self.breaks)(rng, one, other)
    }

    fn run(&mut self, input: &[u8]) -> Result<bool, String> {
        (self.read)(input)
    }

    /// A first file that is refused would make inputs of nothing but refusals.
    fn sound(&mut self) -> Result<(), String> {
        let Some(seed) = self.seeds.first() else {
            return Err("has no file to break".to_owned());
        };
        match (self.read)(seed.bytes()) {
            Ok(true) => Ok(()),
            Ok(false) => Err("refuses the file that is broken".to_owned()),
            Err(message) => Err(message),
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn fixture(name: &str) -> Vec<u8> {
    let path = root().join("tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The problem files of at most this many bytes.
fn problem_files(folder: &Path, most: usize, into: &mut Vec<String>) {
    let mut inside: Vec<PathBuf> = (std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    inside.sort();
    for path in inside {
        if path.is_dir() {
            problem_files(&path, most, into);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let text = std::fs::read_to_string(&path).unwrap();
            if text.len() <= most {
                into.push(text);
            }
        }
    }
}

fn as_json(rng: &mut ChaCha8Rng, seed: &Seed, _: &Seed) -> Vec<u8> {
    break_input::json(rng, seed)
}

fn as_bytes(rng: &mut ChaCha8Rng, seed: &Seed, other: &Seed) -> Vec<u8> {
    break_input::bytes(rng, seed.bytes(), other.bytes())
}

/// What a text reader makes of bytes: files that are no text are refused before it.
fn text(mut read: impl FnMut(&str) -> Result<bool, String> + 'static) -> Read {
    Box::new(move |bytes| std::str::from_utf8(bytes).map_or(Ok(false), &mut read))
}

/// Reads the first rows of a log.
fn rows_of(log: &Log) {
    let mut row = Row::default();
    for span in log.spans(8).into_iter().take(16) {
        let Ok(chunk) = log.chunk(&span) else {
            continue;
        };
        for position in chunk.positions() {
            let _ = chunk.read(position, &mut row);
        }
    }
    let _ = (log.engine_records(), log.identity());
}

/// Reads a log at each of its depths, and replays what it takes for texts.
fn depths_of(log: &Log) {
    for depth in 1..=log.depths().min(8) {
        log.at_depth(depth).iter().for_each(rows_of);
    }
    let logs = std::slice::from_ref(log);
    let lengths = LengthSettings::default();
    let _ = measure_lengths(logs, &lengths, "fuzz", &|_| ());
    let trees = TreeSettings {
        trees: vec![NamedTree {
            name: "2x2".to_owned(),
            tree: DraftTree::named("2x2").unwrap(),
        }],
        schemes: vec![SchemeName::WITH_REPLACEMENT],
        verifiers: vec![RuleName::RRS],
        limits: Limits {
            budget: 4,
            depth: 3,
            branch: 2,
        },
        timings: None,
        temperature: None,
        slot_values: true,
        price: false,
        engine: None,
        parts: Parts::Whole,
        seed: 0,
    };
    let _ = measure_trees(logs, &trees, "fuzz", &|_| ());
    let paths = PathSettings {
        drafts: vec![1, 2],
        length: Some(2),
        ..PathSettings::default()
    };
    let _ = measure_paths(logs, &paths, "fuzz", &|_| ());
}

/// Small logs by depth: full rows of a draft vocabulary, lists, and the text's own tokens alone.
fn logs_by_depth() -> Vec<Vec<u8>> {
    let floats = |name: &str, shape: &[usize], entry: &dyn Fn(usize) -> f32| {
        let count = shape.iter().product::<usize>();
        let data: Vec<u8> = (0..count).flat_map(|at| entry(at).to_le_bytes()).collect();
        (name.to_owned(), "F32", shape.to_vec(), data)
    };
    let whole = |name: &str, shape: &[usize], entry: &dyn Fn(usize) -> i64| {
        let count = shape.iter().product::<usize>();
        let data: Vec<u8> = (0..count).flat_map(|at| entry(at).to_le_bytes()).collect();
        (name.to_owned(), "I64", shape.to_vec(), data)
    };
    let text = || {
        vec![
            whole("prompt_id", &[6], &|at| at as i64 / 3),
            whole("position", &[6], &|at| at as i64 % 3),
            whole("token", &[6], &|at| at as i64 % 2),
        ]
    };
    let said = |name| floats(name, &[6, 2], &|at| at as f32 / 16.0);
    let row = |at: usize| [0.5, -1.0, 0.25, -0.5][at % 4];
    let full = vec![
        floats("target_logits", &[6, 4], &row),
        floats("draft_logits", &[6, 2, 3], &row),
        whole("d2t", &[3], &|at| at as i64 / 2),
        floats("coverage", &[6], &|_| 0.75),
    ];
    let list = |at: usize| [-1.0, -2.0][at % 2];
    let lists = vec![
        whole("target_token_ids", &[6, 2], &|at| at as i64 % 2),
        floats("target_logprobs", &[6, 2], &list),
        whole("draft_token_ids", &[6, 2, 2], &|at| at as i64 % 2),
        floats("draft_logprobs", &[6, 2, 2], &list),
        said("p_hit"),
    ];
    let own = vec![
        whole("target_token_ids", &[6, 1], &|at| at as i64 % 2),
        floats("target_logprobs", &[6, 1], &|_| -1.0),
        whole("draft_token_ids", &[6, 2, 1], &|at| {
            (at as i64 / 2 + at as i64) % 2
        }),
        floats("draft_logprobs", &[6, 2, 1], &|_| -0.5),
        floats("hit", &[6, 2], &|at| (at % 2) as f32),
        said("max_q"),
        said("overlap"),
    ];
    let file = |tensors: Vec<(String, &str, Vec<usize>, Vec<u8>)>, top: usize| {
        let said = json!({"vocabulary": 4, "top": top, "temperature_applied": 1.0,
            "sampling": {"temperature": 1.0}});
        let mut header = serde_json::Map::new();
        header.insert(
            "__metadata__".to_owned(),
            json!({"specgap": said.to_string()}),
        );
        let mut all = Vec::new();
        for (name, dtype, shape, data) in tensors.into_iter().chain(text()) {
            let place = [all.len(), all.len() + data.len()];
            header.insert(
                name,
                json!({"dtype": dtype, "shape": shape, "data_offsets": place}),
            );
            all.extend(data);
        }
        let header = Value::Object(header).to_string().into_bytes();
        [&(header.len() as u64).to_le_bytes()[..], &header, &all].concat()
    };
    vec![file(full, 4), file(lists, 2), file(own, 0)]
}

fn file_of_log(name: &'static str) -> Read {
    Box::new(move |bytes| {
        let log = Log::from_bytes(Path::new(name), Arc::from(bytes));
        log.iter().for_each(rows_of);
        Ok(log.is_ok())
    })
}

/// The first record of an export, on a line.
fn record(name: &str) -> Value {
    let text = String::from_utf8(fixture(&format!("engines/{name}"))).unwrap();
    serde_json::from_str(text.lines().next().unwrap_or_default()).unwrap()
}

/// Records of each model in a file, and `joint`, records of both in one. Fixtures begin with the
/// engine's name, as `name` behind `import`.
fn importer(
    name: &'static str,
    engine: Engine,
    [target, draft]: [&str; 2],
    joint: &[[&str; 2]],
    folder: &Path,
) -> Reader {
    let folder = folder.join(name.replace(' ', "-"));
    std::fs::create_dir(&folder).unwrap();
    let arrays = engine == Engine::HuggingFace;
    let ending = if arrays { "npz" } else { "jsonl" };
    let place = |side: &str| folder.join(format!("{side}.{ending}"));
    let (written, beside, out) = (place("target"), place("draft"), folder.join("log"));
    let of = name.trim_start_matches("import ");
    let file = |name: &str| format!("{of}-{name}.{ending}");
    let first = |name: &str| {
        if arrays {
            fixture(&format!("engines/{}", file(name)))
        } else {
            record(&file(name)).to_string().into_bytes()
        }
    };
    std::fs::write(&beside, first(draft)).unwrap();
    let pair = |[target, draft]: &[&str; 2]| {
        let both = json!({"target": record(&file(target)), "draft": record(&file(draft))});
        both.to_string().into_bytes()
    };
    let vocabulary = Some(64);
    let separate = Request {
        target: vec![written.clone()],
        draft: vec![beside],
        vocabulary,
        prompt_tokens: (engine == Engine::Vllm).then_some(2),
        ..Request::new(engine)
    };
    let together = Request {
        joint: vec![written.clone()],
        vocabulary,
        ..Request::new(engine)
    };
    Reader {
        name,
        seeds: std::iter::once(first(target))
            .chain(joint.iter().map(pair))
            .map(Seed::new)
            .collect(),
        breaks: if arrays { as_bytes } else { as_json },
        read: Box::new(move |bytes| {
            std::fs::write(&written, bytes).unwrap();
            let both = bytes.starts_with(b"{\"draft\":{");
            let request = if both { &together } else { &separate };
            let made = import(request, &out, "specgap import");
            if made.is_ok() {
                let log = Log::open(&out).map_err(|error| format!("its log: {error}"))?;
                rows_of(&log);
                std::fs::remove_dir_all(&out).unwrap();
            } else if out.exists() {
                return Err("it failed and wrote a log".to_owned());
            }
            Ok(made.is_ok())
        }),
    }
}

/// A log in a folder of its own.
fn small_log(folder: &Path) -> PathBuf {
    let log = folder.join("small");
    let request = Request {
        target: vec![root().join("tests/fixtures/engines/vllm-scored-target.jsonl")],
        draft: vec![root().join("tests/fixtures/engines/vllm-scored-draft.jsonl")],
        vocabulary: Some(64),
        prompt_tokens: Some(2),
        ..Request::new(Engine::Vllm)
    };
    import(&request, &log, "specgap import").unwrap();
    log
}

/// The shard of a log of full rows, which is a log by itself.
fn full_shard(folder: &Path) -> Vec<u8> {
    let log = folder.join("full");
    let layout = Layout::new(5);
    let mut writer = LogWriter::create(&log, Metadata::default(), layout).unwrap();
    for at in 0..6u8 {
        let row = [0.0, 1.0, f32::from(at), -2.5, f32::NEG_INFINITY];
        let position = Position {
            prompt_id: i64::from(at / 3),
            position: i64::from(at % 3),
            token: 1,
            target: &row,
            draft: &[0.5; 5],
        };
        writer.append(&position).unwrap();
    }
    writer.commit().unwrap();
    std::fs::read(log.join("shard-00000.safetensors")).unwrap()
}

/// Of a log with every verifier, or with the few that a small file has room for.
fn summary_of(log: Log, few: bool) -> Summary {
    let mut settings = Settings::new(&[1.0], &[2], 0).unwrap();
    if few {
        settings.schemes = vec![SchemeName::WITH_REPLACEMENT];
        settings.verifiers = vec![VerifierName::RRS, VerifierName::OPTIMAL];
    }
    summarise(&[log], &settings, Part::WHOLE, None, &|_| ()).unwrap()
}

/// The claims and problems of a baseline, of which it has hundreds, some of each.
fn small_baseline() -> Vec<u8> {
    let text = std::fs::read(root().join("reports/baseline.json")).unwrap();
    let mut whole: Value = serde_json::from_slice(&text).unwrap();
    for part in whole.as_object_mut().unwrap().values_mut() {
        match part {
            Value::Array(all) => all.truncate(4),
            Value::Object(all) => *all = std::mem::take(all).into_iter().take(4).collect(),
            _ => {}
        }
    }
    whole.to_string().into_bytes()
}

fn valid_problem() -> Problem {
    let path = "problems/without-replacement/two-laws-sequential.toml";
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    match parse_toml(&text).unwrap() {
        AnyProblem::Single(problem) => problem,
        AnyProblem::Block(_) => panic!("{path}: is a block"),
    }
}

const TIMINGS: &str = r#"{"schema": 1, "target_step": {"seconds": 0.02, "standard_error": 0.0001},
"draft_step": {"seconds": 0.002}, "overhead": {"seconds": 0.0004},
"verify": [{"tokens": 1, "seconds": 0.02}, {"tokens": 5, "seconds": 0.024, "standard_error": 0.0002}]}"#;
const TIMINGS_TOML: &str = "schema = 1\ntarget_step = { seconds = 0.020 }\n\
draft_step = { seconds = 0.004, standard_error = 1e-4 }\n[[verify]]\ntokens = 1\nseconds = 0.02\n\
[[verify]]\ntokens = 5\nseconds = 0.03\n";
const RECORDS: &str = "p,q,accepted,u_q,u_p,prompt,depth\n0.5,0.25,1,0.0,0.31,0,0\n,,,,0.77,0,1\n\
0.125,1e-3,0,0.5,0.9,1,0\n";

const TOKENS: &str = "prompt,position,logp,logq,hit,logq_2,hit_2,overlap_2\na,0,-0.5,-1,1,-2,0,0.5\n\
a,1,-2,-0.9,0,-1.5,0,0.25\na,2,-1,-1,1,,,\nb,0,-0.25,-3,0,,,\n";
const TOKENS_JSON: &str = "{\"prompt\": 1, \"position\": 0, \"logp\": -1, \"logq\": [-1, -2], \
\"token\": 3}\n{\"prompt\": 1, \"position\": 1, \"logp\": -0.5, \"logq\": [-0.25], \"token\": 0}\n";

/// A table of tokens, and what is replayed of it.
fn tokens(ending: &'static str, folder: &Path) -> Read {
    let path = folder.join(format!("tokens.{ending}"));
    Box::new(move |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let log = open_tokens(&path, None);
        log.iter().for_each(depths_of);
        Ok(log.is_ok())
    })
}

fn timings(json: bool) -> Read {
    text(move |text| {
        let Ok(timings) = Timings::parse(text, json) else {
            return Ok(false);
        };
        for drafts in 0..8 {
            if timings.round(drafts).is_some_and(f64::is_nan) {
                return Err(format!("a round of {drafts} drafts takes NaN"));
            }
        }
        Ok(true)
    })
}

const METRICS: &str = "# TYPE vllm:spec_decode_num_drafts_total counter\n\
vllm:spec_decode_num_drafts_total{engine=\"0\",model_name=\"m\"} 1000.0\n\
vllm:spec_decode_num_draft_tokens_total{engine=\"0\",model_name=\"m\"} 2900.0\n\
vllm:spec_decode_num_accepted_tokens_total{engine=\"0\",model_name=\"m\"} 1240.0\n\
vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name=\"m\",position=\"0\"} 710.0\n\
vllm:spec_decode_num_accepted_tokens_per_pos_total{model_name=\"m\",position=\"1\"} 530.0\n";
const SERVER_LOG: &str = "slot print_timing: id 0 | draft acceptance = 0.57576 (  171 accepted /   297 \
generated), mean len =  2.73\n  acc per pos = (0.808, 0.535, 0.384)\ndraft acceptance = 0.00000 (    0 \
accepted /    30 generated), mean len =  1.00\n";
const SUBSETS: &str = "subset,num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,\
acceptance_at_pos_0,acceptance_at_pos_1\nHumanEval,1000.0,2000.0,1240.0,2.24,0.71,0.53\n\
\"a, b\",10.0,20.0,3.0,1.3,0.2,0.1\n";
const COUNTED: [&str; 5] = [
    r#"{"metrics": {"speculative_decoding": {"acceptance_histogram": [1, 1, 0, 1], "num_spec_steps": 3,
    "num_accepted_draft_tokens": 4, "num_draft_tokens": 8, "num_spec_tokens": 3,
    "per_step_accepted": [3, 1, 0], "per_step_drafted": [3, 3, 2]}}}"#,
    r#"{"metrics": {"speculative_decoding": {"acceptance_histogram": [39, 1, 0, 3], "num_spec_tokens": 3}}}"#,
    r#"{"spec_decode_acceptance_length": 2.8, "spec_decode_num_drafts": 5, "spec_decode_draft_tokens": 18,
    "spec_decode_accepted_tokens": 9, "spec_decode_per_position_acceptance_rates": [1.0, 0.6, 0.2]}"#,
    r#"{"total_spec_decode_steps": {"avg": 11.0}, "total_draft_tokens": {"avg": 44.0},
    "pooled_spec_decode_acceptance_histogram": {"0": 2, "1": 3, "2": 2, "3": 3, "4": 1}}"#,
    r#"{"spec_decode_acceptance": {"acceptance_histogram": {"0": 1, "1": 2}, "num_draft_tokens": 12}}"#,
];

/// A file of counts told by what is in it, and as each tool's.
fn counts() -> Read {
    text(|text| {
        let file = Text { name: "fuzz", text };
        let mut read = false;
        for from in std::iter::once(None).chain(Source::ALL.map(Some)) {
            let Ok(counted) = count(&[file], from, &[]) else {
                continue;
            };
            let report = predict(&counted, &CountersAsked::default());
            for at in &report.lengths {
                let mean = at.acceptance_length.mean;
                if !(mean >= 1.0 && mean <= at.length as f64 + 1.0 + 1e-6) {
                    return Err(format!("{} drafts put out {mean}", at.length));
                }
            }
            read |= from.is_none();
            // The difference to itself has no round.
            let _ = count(&[file, file], from, &[]);
        }
        Ok(read)
    })
}

fn reader<S: Into<Vec<u8>>>(
    name: &'static str,
    seeds: impl IntoIterator<Item = S>,
    breaks: Break,
    read: Read,
) -> Reader {
    let seeds = seeds.into_iter().map(|seed| Seed::new(seed.into()));
    Reader {
        name,
        seeds: seeds.collect(),
        breaks,
        read,
    }
}

/// All readers; files that they need are written to `folder`.
pub fn all(folder: &Path) -> Vec<Box<dyn Target>> {
    let log = small_log(folder);
    let file = |name: &str| std::fs::read(log.join(name)).unwrap();
    let (index, held) = (file("log.json"), file("shard-00000.safetensors"));
    let shard = full_shard(folder);
    let rows = Log::from_bytes(Path::new("full.safetensors"), Arc::from(&*shard)).unwrap();
    let summaries = [
        summary_of(rows, true),
        summary_of(Log::open(&log).unwrap(), false),
    ];
    let [small, whole] = summaries
        .each_ref()
        .map(|summary| summary.to_json().unwrap().into_bytes());
    // The larger one in one of eight.
    let parts: Vec<Vec<u8>> = (std::iter::repeat_n(small, 7).chain([whole])).collect();
    let report = serde_json::to_vec(&summaries[0].report("specgap gap")).unwrap();
    let mut problems = Vec::new();
    problem_files(&root().join("problems"), 1500, &mut problems);
    let jsons: Vec<Vec<u8>> = (problems.iter())
        .filter_map(|text| toml::from_str::<serde_json::Value>(text).ok())
        .map(|value| serde_json::to_vec(&value).unwrap())
        .collect();
    let certificates = [
        "valid",
        "plan-empty",
        "mass-moved-by-a-hair",
        "set-unsorted",
    ]
    .map(|name| fixture(&format!("certificates/{name}.json")));
    let logs = [
        "numpy-stored",
        "numpy-compressed",
        "probabilities",
        "big-endian",
        "fortran-order",
    ];
    let logs = logs.map(|name| fixture(&format!("logs/{name}.npz")));
    let npz = logs.into_iter().chain([fixture("engines/hf-target-0.npz")]);
    let problem = valid_problem();
    let rewritten = log.join("log.json");
    let log_folder = log.clone();
    let mut readers = vec![
        reader(
            "problem toml",
            problems,
            as_bytes,
            text(|text| Ok(parse_toml(text).is_ok())),
        ),
        reader(
            "problem json",
            jsons,
            as_json,
            text(|text| Ok(parse_json(text).is_ok())),
        ),
        reader(
            "rational",
            [
                "1/3",
                "0.1",
                "-7/9",
                "1e-310",
                "25e100",
                "123456789/1000000007",
                "5e-324",
            ],
            as_bytes,
            text(|text| {
                let Ok(number) = parse_rational(text) else {
                    return Ok(false);
                };
                let again = format_rational(&number);
                match parse_rational(&again) {
                    Ok(same) if same == number => Ok(true),
                    other => Err(format!("{text:?} is {again}, which is {other:?}")),
                }
            }),
        ),
        reader(
            "certificate",
            certificates,
            as_json,
            text(move |text| {
                let Ok(certificate) = serde_json::from_str::<Certificate>(text) else {
                    return Ok(false);
                };
                Ok(certificate.check(&problem).is_ok())
            }),
        ),
        reader(
            "log.json",
            [index],
            as_json,
            Box::new(move |bytes| {
                // Files are opened for one of eight; the others' shard is in memory.
                let log = if bytes.len().is_multiple_of(8) {
                    std::fs::write(&rewritten, bytes).unwrap();
                    Log::open(&log_folder)
                } else {
                    let Ok(text) = std::str::from_utf8(bytes) else {
                        return Ok(false);
                    };
                    Log::embedded(Path::new("fuzz"), text, &[&held])
                };
                log.iter().for_each(rows_of);
                Ok(log.is_ok())
            }),
        ),
        reader(
            "safetensors",
            [shard],
            as_bytes,
            file_of_log("fuzz.safetensors"),
        ),
        reader("npz", npz, as_bytes, file_of_log("fuzz.npz")),
        reader(
            "log by depth",
            logs_by_depth(),
            as_bytes,
            Box::new(|bytes| {
                let log = Log::from_bytes(Path::new("fuzz.safetensors"), Arc::from(bytes));
                log.iter().for_each(depths_of);
                Ok(log.is_ok_and(|log| log.depths() > 1))
            }),
        ),
        reader("tokens csv", [TOKENS], as_bytes, tokens("csv", folder)),
        reader(
            "tokens jsonl",
            [TOKENS_JSON],
            as_bytes,
            tokens("jsonl", folder),
        ),
        reader(
            "summary",
            parts,
            as_json,
            text(|text| {
                let Ok(mut summary) = Summary::from_json(text) else {
                    return Ok(false);
                };
                let _ = summary.report("specgap merge");
                let again = summary.clone();
                let _ = summary.merge(&again);
                Ok(true)
            }),
        ),
        reader(
            "report",
            [report],
            as_json,
            text(|text| Ok(serde_json::from_str::<specgap::gap::GapReport>(text).is_ok())),
        ),
        reader(
            "baseline",
            [small_baseline()],
            as_json,
            text(|text| Ok(serde_json::from_str::<Baseline>(text).is_ok())),
        ),
        reader(
            "tree",
            [
                "[[0],[1],[0,0],[0,0,0]]",
                "[[0]]",
                "[[0],[1],[2],[0,0],[0,1],[1,0],[0,0,0],[0,0,1]]",
            ],
            as_json,
            text(|text| {
                let Ok(tree) = DraftTree::from_json(text) else {
                    return Ok(false);
                };
                let _ = (tree.shape(), tree.depth());
                Ok(true)
            }),
        ),
        reader(
            "tree name",
            [
                "chain-5",
                "1x5",
                "4x3",
                "spechub-binary-5",
                "prefix-3-2-1",
                "eagle-25",
                "2x2x2",
            ],
            as_bytes,
            text(|text| Ok(DraftTree::named(text).is_ok())),
        ),
        reader("timings json", [TIMINGS], as_json, timings(true)),
        reader("timings toml", [TIMINGS_TOML], as_bytes, timings(false)),
        reader(
            "audit records",
            [RECORDS],
            as_bytes,
            text(|text| Ok(Records::parse("fuzz.csv".as_ref(), text).is_ok())),
        ),
        reader(
            "counters text",
            [METRICS, SERVER_LOG, SUBSETS],
            as_bytes,
            counts(),
        ),
        reader("counters json", COUNTED, as_json, counts()),
        importer(
            "import vllm",
            Engine::Vllm,
            ["scored-target", "scored-draft"],
            &[
                ["chat-target", "scored-draft"],
                ["completion-target", "completion-draft"],
                ["completion-target", "flat-draft"],
            ],
            folder,
        ),
        importer(
            "import sglang",
            Engine::Sglang,
            ["cold-target", "cold-draft"],
            &[["target", "cold-draft"], ["flat-target", "b64-draft"]],
            folder,
        ),
        importer(
            "import llama-cpp",
            Engine::LlamaCpp,
            ["target", "draft"],
            &[["target", "draft"], ["after-target", "after-draft"]],
            folder,
        ),
        importer(
            "import hf",
            Engine::HuggingFace,
            ["target-0", "draft-0"],
            &[],
            folder,
        ),
    ];
    #[cfg(feature = "onnx")]
    readers.push(reader(
        "prompts",
        [
            "{\"id\": \"a\", \"prompt\": \"Once\"}\n{\"id\": 7, \"prompt\": \"x\"}\n\n",
            "{\"prompt\": \"\"}\n{\"prompt\": \"\\u00e9\"}\n",
        ],
        as_bytes,
        Box::new(|bytes| {
            Ok(specgap::capture::parse_prompts(Path::new("fuzz.jsonl"), bytes).is_ok())
        }),
    ));
    readers
        .into_iter()
        .map(|reader| Box::new(reader) as Box<dyn Target>)
        .collect()
}
