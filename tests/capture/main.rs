//! Does `specgap capture` log what the models say, once, whatever interrupts it?
//!
//! Needs ONNX Runtime; see `runtime_library`.

mod decode;
mod heads;
mod onnx;
mod rollouts;
#[path = "../run/mod.rs"]
mod run;
#[path = "../says/mod.rs"]
mod says;

use onnx::{FLOAT, FLOAT16, INT32};
use run::{ROOT, Run, cases, command, specgap};
use says::Says;
use serde_json::Value;
use specgap::capture::{
    Capture, ChatTemplate, Device, DrawnRollout, EncodedPrompt, Event, Generation, Model,
    RolloutPlan, Row as CapturedRow, RowSink, Runtime, Sampler, Sampling, Settings, SinkError,
    Stop, Tally, TextCodec, read_prompts,
};
use specgap::log::{Log, LogWriter, Row};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TARGET: &str = "tests/fixtures/tiny-model/target.onnx";
const DRAFT: &str = "tests/fixtures/tiny-model/draft.onnx";
const TOKENIZER: &str = "tests/fixtures/tiny-model/tokenizer.json";

/// The library that the tests run with. Without one they fail: a test that does
/// not run proves nothing.
fn runtime_library() -> PathBuf {
    let named = ["SPECGAP_ONNXRUNTIME", "ORT_DYLIB_PATH"]
        .iter()
        .find_map(std::env::var_os);
    PathBuf::from(named.expect(
        "these tests need ONNX Runtime: run ./scripts/test, which gets it, or \
         `pip install onnxruntime` and set SPECGAP_ONNXRUNTIME to its capi/libonnxruntime.so.*",
    ))
}

/// A folder for a test's files, and the command on the tiny model.
struct Bench {
    folder: TempDir,
}

impl Bench {
    /// With prompts of unequal lengths.
    fn new(prompts: usize) -> Self {
        let bench = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let texts = [
            "Once upon a time",
            "Hi",
            "The quick brown fox jumps over",
            "12 + 34 =",
        ];
        let lines: String = (0..prompts)
            .map(|i| {
                format!(
                    "{{\"id\": \"p{i}\", \"prompt\": \"{}\"}}\n",
                    texts[i % texts.len()]
                )
            })
            .collect();
        bench.write("prompts.jsonl", lines.as_bytes());
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    fn arguments(&self, out: &str, more: &[&str]) -> Vec<String> {
        let mut arguments: Vec<String> = vec!["capture".into()];
        for (flag, value) in [
            ("--target", TARGET.to_owned()),
            ("--draft", DRAFT.to_owned()),
            ("--tokenizer", TOKENIZER.to_owned()),
            (
                "--prompts",
                self.path("prompts.jsonl").display().to_string(),
            ),
            ("--out", self.path(out).display().to_string()),
            ("--onnxruntime", runtime_library().display().to_string()),
            ("--device", "cpu".to_owned()),
            ("--max-tokens", "12".to_owned()),
        ] {
            // What a test gives replaces the default.
            if !more.contains(&flag) {
                arguments.extend([flag.to_owned(), value]);
            }
        }
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        arguments
    }

    fn run(&self, out: &str, more: &[&str]) -> Run {
        specgap(Path::new(ROOT), self.arguments(out, more))
    }

    /// Runs and expects success; the log.
    fn capture(&self, out: &str, more: &[&str]) -> Vec<Position> {
        self.run(out, more).ok();
        positions(&self.path(out))
    }

    /// The prompts as tokens.
    fn encoded(&self) -> Vec<EncodedPrompt> {
        let prompts = read_prompts(&self.path("prompts.jsonl")).unwrap();
        codec().encode(&prompts, 299).unwrap()
    }

    /// Captures five tokens of each prompt at seed 0 in batches of three, with prompts in pieces of so
    /// many logits.
    fn in_pieces(
        &self,
        logits: usize,
        sampling: Sampling,
        rollouts: Option<RolloutPlan>,
        heard: &mut dyn FnMut(Event),
    ) -> (Tally, Memory) {
        let settings = Settings {
            sampling,
            seed: 0,
            max_tokens: 5,
            batch: 3,
            vocabulary: None,
            rollouts,
        };
        let [target, draft] = opened([TARGET, DRAFT]);
        let mut capture = Capture::new(target, draft, codec(), settings)
            .unwrap()
            .with_prefill_logits(logits);
        let (mut memory, quiet) = (Memory::default(), AtomicBool::new(false));
        let tally = capture
            .run(&self.encoded(), &|_| false, &mut memory, &quiet, heard)
            .unwrap();
        (tally, memory)
    }

    /// Runs and expects a refusal that says all of these.
    fn refuse(&self, more: &[&str], says: &[&str]) -> String {
        let run = self.run("refused", more);
        run.refused(&["error: "]);
        let mut lines = run.err.lines();
        let error = lines.find(|line| line.starts_with("error: ")).unwrap();
        for what in says {
            assert!(error.contains(what), "{more:?} should say {what}: {error}");
        }
        error.to_owned()
    }
}

/// A target and a draft.
fn opened(paths: [impl AsRef<Path>; 2]) -> [Model; 2] {
    let runtime = Runtime::load(Some(&runtime_library()), 1).unwrap();
    paths.map(|path| Model::open(&runtime, path.as_ref(), Device::Cpu).unwrap())
}

fn codec() -> TextCodec {
    TextCodec::read(Path::new(TOKENIZER), ChatTemplate::None, &Stop::Never).unwrap()
}

/// Logits behind tokens that go through a model from their beginning.
fn full_pass(model: &mut Model, prefix: &[i64]) -> Vec<f32> {
    model.start(1).unwrap();
    let mask = vec![1; prefix.len()];
    let positions: Vec<i64> = (0..prefix.len() as i64).collect();
    let logits = model.run(prefix, &mask, &positions).unwrap();
    logits.last(0, &mut Vec::new()).unwrap().to_vec()
}

#[derive(Clone, Debug, PartialEq)]
struct Position {
    prompt: i64,
    position: i64,
    token: i64,
    target: Vec<f64>,
    draft: Vec<f64>,
}

/// All positions of a log, in its order.
fn positions(path: &Path) -> Vec<Position> {
    let log = Log::open(path).unwrap();
    let mut row = Row::default();
    let mut all = Vec::new();
    for span in log.spans(64) {
        let chunk = log.chunk(&span).unwrap();
        for index in chunk.positions() {
            chunk.read(index, &mut row).unwrap();
            all.push(Position {
                prompt: row.prompt_id.unwrap(),
                position: row.position.unwrap(),
                token: row.token.unwrap(),
                target: row.target.clone(),
                draft: row.draft.clone(),
            });
        }
    }
    all
}

/// By prompt, then position.
fn sorted(mut positions: Vec<Position>) -> Vec<Position> {
    positions.sort_by_key(|position| (position.prompt, position.position));
    positions
}

fn index(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path.join("log.json")).ok()?;
    Some(serde_json::from_str(&text).expect("log.json is whole at every moment"))
}

fn tokens(positions: &[Position]) -> Vec<(i64, i64, i64)> {
    positions
        .iter()
        .map(|position| (position.prompt, position.position, position.token))
        .collect()
}

fn assert_close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= tolerance, "entry {i}: {a} and {b}");
    }
}

/// What ONNX Runtime has to say is in the message, and not in a line of its own before it.
#[test]
fn a_graph_that_cannot_be_read_is_refused_in_our_words_alone() {
    let bench = Bench::new(1);
    let broken = bench.write("broken.onnx", b"no graph");
    let run = bench.run("log", &["--target", broken.to_str().unwrap()]);
    run.refused(&["broken.onnx"]);
    assert!(!run.err.contains("onnxruntime:,"), "{}", run.err);
}

/// ONNX Runtime is not left to write to the user's cache, where it keeps what it would send.
#[test]
fn a_capture_leaves_nothing_in_the_home_of_its_user() {
    let bench = Bench::new(1);
    let home = tempfile::tempdir().unwrap();
    let output = command(Path::new(ROOT), bench.arguments("log", &[]))
        .env("HOME", home.path())
        .env_remove("XDG_CACHE_HOME")
        .env_remove("ORT_DISABLE_TELEMETRY")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn logged_rows_are_those_of_a_full_forward_pass() {
    let bench = Bench::new(3);
    let logged = sorted(bench.capture("log", &["--dtype", "f32", "--no-stop"]));
    assert_eq!(logged.len(), 3 * 12);

    // The same again without a cache, without padding and without the command.
    let [mut target, mut draft] = opened([TARGET, DRAFT]);
    let sampling = Sampling::new(1.0, None, None).unwrap();
    let wide = |row: &[f32]| -> Vec<f64> { row.iter().map(|&x| f64::from(x)).collect() };
    let mut logged = logged.into_iter();
    for prompt in &bench.encoded() {
        let mut prefix: Vec<i64> = prompt.tokens.iter().map(|&token| token.into()).collect();
        let mut sampler = Sampler::new(0, &prompt.id);
        for position in 0..12 {
            let found = logged.next().unwrap();
            assert_eq!(
                (found.prompt, found.position),
                (prompt.index as i64, position)
            );
            let target = full_pass(&mut target, &prefix);
            assert_close(&found.target, &wide(&target), 1e-4);
            assert_close(&found.draft, &wide(&full_pass(&mut draft, &prefix)), 1e-4);
            let token = sampler.draw(&target, &sampling).unwrap() as i64;
            assert_eq!(found.token, token);
            prefix.push(token);
        }
    }
    assert_eq!(logged.next(), None);
}

/// Keeps everything.
#[derive(Default)]
struct Memory {
    begun: Vec<(usize, usize)>,
    rows: Vec<Position>,
    rollouts: Vec<DrawnRollout>,
    finished: Vec<Generation>,
}

impl RowSink for Memory {
    fn begin(&mut self, prompts: &[EncodedPrompt], positions: usize) -> Result<(), SinkError> {
        self.begun.push((prompts.len(), positions));
        Ok(())
    }
    fn append(&mut self, row: &CapturedRow<'_>) -> Result<(), SinkError> {
        let wide = |row: &[f32]| row.iter().map(|&x| f64::from(x)).collect();
        self.rows.push(Position {
            prompt: row.prompt as i64,
            position: row.position as i64,
            token: row.token.into(),
            target: wide(row.target),
            draft: wide(row.draft),
        });
        Ok(())
    }
    fn append_rollout(&mut self, rollout: &DrawnRollout) -> Result<(), SinkError> {
        self.rollouts.push(rollout.clone());
        Ok(())
    }
    fn commit(&mut self, finished: &[Generation]) -> Result<(), SinkError> {
        self.finished.extend(finished.iter().cloned());
        Ok(())
    }
}

#[test]
fn prompts_that_go_through_in_pieces_give_the_same_rows() {
    let bench = Bench::new(4);
    let run = |logits: usize| {
        let mut tokens = 0;
        let sampling = Sampling::new(1.0, None, None).unwrap();
        let (tally, memory) = bench.in_pieces(logits, sampling, None, &mut |event| match event {
            Event::Tokens(count) => tokens += count,
            Event::Rollout(_) => panic!("none was asked for"),
            Event::Batch { saved, .. } => assert_eq!(saved, 0),
        });
        assert_eq!(memory.begun, [(3, 15), (1, 5)]);
        assert_eq!((tally.prompts, tally.positions, tokens), (4, 20, 20));
        assert!(
            memory
                .finished
                .iter()
                .all(|done| done.tokens.len() == 5 && !done.stopped)
        );
        memory.rows
    };
    let whole = run(usize::MAX);
    // One column a run, and two.
    for logits in [0, 2 * 3 * 299] {
        let pieces = run(logits);
        assert_eq!(tokens(&pieces), tokens(&whole));
        for (a, b) in pieces.iter().zip(&whole) {
            assert_close(&a.target, &b.target, 1e-4);
            assert_close(&a.draft, &b.draft, 1e-4);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_log_and_another_one_another() {
    let bench = Bench::new(4);
    let first = bench.capture("a", &["--seed", "5"]);
    assert_eq!(first, bench.capture("b", &["--seed", "5"]));
    assert_ne!(
        tokens(&first),
        tokens(&bench.capture("c", &["--seed", "6"]))
    );
    let greedy = bench.capture("d", &["--temperature", "0", "--seed", "5"]);
    assert_eq!(
        greedy,
        bench.capture("e", &["--temperature", "0", "--seed", "6"])
    );
    for position in &greedy {
        let token = position.token as usize;
        assert!(position.target.iter().all(|&x| x <= position.target[token]));
    }
}

#[test]
fn the_batch_changes_no_token_and_no_row() {
    let bench = Bench::new(5);
    let alone = sorted(bench.capture("alone", &["--batch", "1", "--dtype", "f32"]));
    for batch in ["2", "5"] {
        let together = sorted(bench.capture(batch, &["--batch", batch, "--dtype", "f32"]));
        assert_eq!(tokens(&together), tokens(&alone));
        for (a, b) in together.iter().zip(&alone) {
            assert_close(&a.target, &b.target, 1e-4);
            assert_close(&a.draft, &b.draft, 1e-4);
        }
    }
}

#[test]
fn a_stop_token_is_logged_and_ends_its_prompt() {
    let bench = Bench::new(4);
    let free = sorted(bench.capture("free", &["--no-stop", "--max-tokens", "30"]));
    // Some token that one prompt has in the middle of its text.
    let token = free[10].token.to_string();
    let stopped = sorted(bench.capture("stopped", &["--stop", &token, "--max-tokens", "30"]));
    for prompt in 0..4 {
        let of = |log: &[Position]| -> Vec<i64> {
            let here = log.iter().filter(|position| position.prompt == prompt);
            here.map(|position| position.token).collect()
        };
        let (free, stopped) = (of(&free), of(&stopped));
        let end = free.iter().position(|&t| t.to_string() == token);
        let expected = end.map_or(30, |end| end + 1);
        assert_eq!(stopped, free[..expected]);
    }
    assert!(stopped.len() < free.len());
}

#[test]
fn the_log_says_where_it_comes_from() {
    let bench = Bench::new(2);
    let more = [
        "--seed",
        "3",
        "--temperature",
        "0.8",
        "--top-p",
        "0.9",
        "--chat",
        "chatml",
    ];
    bench.capture("log", &more);
    let log = Log::open(&bench.path("log")).unwrap();
    let metadata = log.metadata();
    assert_eq!(metadata.temperature_applied, Some(1.0));
    assert_eq!(metadata.vocabulary, Some(299));
    let sampling = metadata.sampling.as_ref().unwrap();
    assert_eq!(
        (sampling.temperature, sampling.top_p, sampling.seed),
        (0.8, Some(0.9), Some(3))
    );
    assert_eq!(sampling.chat.as_deref(), Some("chatml"));
    for file in [&metadata.target, &metadata.draft, &metadata.tokenizer] {
        assert_eq!(file.as_ref().unwrap().sha256.as_ref().unwrap().len(), 64);
    }
    assert_ne!(metadata.target, metadata.draft);
    let runtime = metadata.runtime.as_ref().unwrap();
    assert!(runtime.ends_with("CPUExecutionProvider"), "{runtime}");
    assert!(metadata.command.as_ref().unwrap().contains("--top-p 0.9"));
    let names: Vec<_> = metadata.prompts.iter().map(|prompt| &prompt.name).collect();
    assert_eq!(names, ["p0", "p1"]);
    // The first 8 bytes of SHA-256 of the seed (8 bytes, the lowest first) and the id, less the
    // highest bit.
    let seeds = [1_770_323_434_755_059_753, 7_852_735_277_146_927_476];
    for record in log.engine_records().unwrap() {
        let prompt = usize::try_from(record.prompt.unwrap()).unwrap();
        assert_eq!(record.seed, Some(seeds[prompt]));
    }
    let nodes = &metadata.extra["target_ran_on"]["nodes"]["CPUExecutionProvider"];
    assert!(
        nodes.as_u64().unwrap() > 10,
        "the profiler saw {nodes} nodes"
    );
}

#[test]
fn the_device_in_use_is_said() {
    let bench = Bench::new(1);
    let output = bench
        .run("log", &["--device", "auto", "--format", "json"])
        .ok();
    let object = output.json();
    assert_eq!(object["schema"], 1);
    let provider = object["target"]["provider"].as_str().unwrap();
    assert!(object["target"]["nodes"][provider].as_u64().unwrap() > 10);
    output.err.says(&format!("device: {provider}"));
    if provider == "CPUExecutionProvider" {
        assert!(output.err.contains("CUDA is not used: "), "{}", output.err);
        bench.refuse(
            &["--device", "cuda"],
            &["--device cuda", "onnxruntime-gpu", "--device cpu or auto"],
        );
        assert!(!bench.path("refused").exists());
    }
}

#[test]
fn a_missing_or_wrong_library_says_how_to_get_one() {
    let bench = Bench::new(1);
    let cure = [
        "pip install onnxruntime",
        "--onnxruntime",
        "SPECGAP_ONNXRUNTIME",
    ];
    let nowhere = bench.path("nowhere.so").display().to_string();
    bench.refuse(
        &["--onnxruntime", &nowhere],
        &[&cure[..], &["no such file"]].concat(),
    );
    bench.refuse(&["--onnxruntime", TOKENIZER], &cure);
    let empty = bench.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let empty = empty.display().to_string();
    bench.refuse(
        &["--onnxruntime", &empty],
        &[&cure[..], &["holds no onnxruntime library"]].concat(),
    );
}

/// Starts a capture that would take a while.
fn start(bench: &Bench, out: &str, more: &[&str]) -> std::process::Child {
    command(Path::new(ROOT), bench.arguments(out, more))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for a log to list more shards than it did; how many.
fn wait_for_shard(log: &Path, before: usize, child: &mut std::process::Child) -> usize {
    let started = Instant::now();
    loop {
        let shards = index(log).map_or(0, |index| index["shards"].as_array().unwrap().len());
        if shards > before {
            return shards;
        }
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before a shard"
        );
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "no shard in time"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

const MANY: [&str; 4] = ["--batch", "2", "--max-tokens", "16"];

#[test]
fn what_was_logged_survives_kill_9_and_nothing_is_doubled() {
    let bench = Bench::new(48);
    let whole = bench.capture("whole", &MANY);
    let killed = bench.path("killed");
    let mut shards = 0;
    for _ in 0..3 {
        let mut child = start(&bench, "killed", &MANY);
        shards = wait_for_shard(&killed, shards, &mut child);
        // SIGKILL.
        child.kill().unwrap();
        child.wait().unwrap();
        let kept = positions(&killed);
        assert!(kept.len() < whole.len(), "it was killed too late");
        assert_eq!(kept, whole[..kept.len()]);
        // A shard may have come between the look and the kill.
        shards = index(&killed).unwrap()["shards"]
            .as_array()
            .unwrap()
            .len()
            .max(shards);
    }
    let output = bench.run("killed", &MANY).ok();
    assert!(output.err.contains("continuing: "), "{}", output.err);
    assert_eq!(positions(&killed), whole);
    let files = std::fs::read_dir(&killed).unwrap().count();
    let listed = index(&killed).unwrap()["shards"].as_array().unwrap().len();
    assert_eq!(
        files,
        listed + 2,
        "only shards, log.json and the lock are left"
    );

    // Once more has nothing to do.
    bench.run("killed", &MANY).ok();
    assert_eq!(positions(&killed), whole);
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_a_log_that_continues() {
    let bench = Bench::new(48);
    let whole = bench.capture("whole", &MANY);
    let stopped = bench.path("stopped");
    let mut child = start(&bench, "stopped", &MANY);
    wait_for_shard(&stopped, 0, &mut child);
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(sent.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    // As shells say of a program that SIGINT ended.
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("stopped: interrupted; "), "{error}");
    error.says("the same command again continues");
    // Until it is finished, reports are told.
    let unfinished = |path| LogWriter::said_by(path).unwrap().unfinished();
    let [done, planned] = unfinished(&stopped).unwrap();
    assert!(done < planned && planned == 48, "{done} of {planned}");
    assert_eq!(bench.capture("stopped", &MANY), whole);
    assert_eq!(unfinished(&stopped), None);
}

#[test]
fn a_prompt_that_a_model_has_no_room_for_is_refused_before_anything_is_run() {
    let bench = Bench::new(2);
    for graph in [TARGET, DRAFT] {
        let name = Path::new(graph).file_name().unwrap();
        std::fs::copy(Path::new(ROOT).join(graph), bench.path("").join(name)).unwrap();
    }
    let draft = bench.path("draft.onnx").display().to_string();
    bench.write("config.json", br#"{"max_position_embeddings": 3}"#);
    bench.refuse(
        &["--draft", &draft],
        &[
            "prompt \"p0\": has ",
            "draft.onnx takes 3",
            "config.json",
            "shorten",
        ],
    );
    assert!(!bench.path("refused").exists());
    bench.write("config.json", br#"{"max_position_embeddings": 20}"#);
    let run = bench
        .run("out", &["--draft", &draft, "--max-tokens", "20"])
        .ok();
    run.err.says("warning: prompt \"p0\" has ");
}

#[test]
fn a_text_that_a_graph_has_no_room_for_is_refused_and_says_how_long_it_may_be() {
    let bench = Bench::new(1);
    let more = ["--max-tokens", "300", "--no-stop"];
    let words = [
        "--max-tokens 300: prompt \"p0\" has ",
        "takes 256 (specgap.context of ",
    ];
    let error = bench.refuse(&more, &words);
    let fit = error
        .split("may have ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let rolled = [&more[..], &["--rollouts", "9", "--every", "1"]].concat();
    let shorter = (fit.parse::<usize>().unwrap() - 8).to_string();
    let words = format!("may have {shorter} tokens, with rollouts behind it");
    bench.refuse(&rolled, &[&words]);
    assert!(!bench.path("refused").exists());
    // As many do fit.
    let run = ["--max-tokens", fit, "--no-stop"];
    assert_eq!(bench.capture("text", &run).len().to_string(), fit);
    bench.capture(
        "rolled",
        &[&rolled[2..], &["--max-tokens", &shorter]].concat(),
    );
}

#[test]
fn rollouts_that_no_report_reads_are_warned_of() {
    let bench = Bench::new(1);
    let run = bench
        .run(
            "cut",
            &["--paths", "2", "--path-length", "2", "--top-k", "5"],
        )
        .ok();
    run.err
        .says("warning: rollouts and draft paths are drawn from the draft's whole row");
    let run = bench
        .run("whole", &["--rollouts", "2", "--top-p", "1"])
        .ok();
    assert!(!run.err.contains("whole row"), "{}", run.err);
}

#[test]
fn a_killed_capture_leaves_no_profile_for_longer_than_to_the_next() {
    let bench = Bench::new(1);
    let temporary = bench.path("temporary");
    std::fs::create_dir_all(temporary.join(".specgap-profile-a1B2c3")).unwrap();
    std::fs::write(temporary.join(".specgap-profile-a1B2c3/profile.json"), "[").unwrap();
    let run = command(Path::new(ROOT), bench.arguments("out", &[]))
        .env("TMPDIR", &temporary)
        .output()
        .unwrap();
    assert!(run.status.success());
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn a_log_is_continued_only_with_its_own_settings() {
    let bench = Bench::new(2);
    bench.capture("refused", &[]);
    let before = index(&bench.path("refused"));
    let other = bench.write(
        "other.jsonl",
        b"{\"id\": \"p0\", \"prompt\": \"x\"}\n{\"id\": \"p1\", \"prompt\": \"y\"}\n",
    );
    let other = other.display().to_string();
    let table = format!(
        r#"
        --temperature 0.5 -> --temperature was 1.0 and is now 0.5
        --seed 1 -> --seed was 0 and is now 1
        --max-tokens 13 -> --max-tokens was 12 and is now 13
        --top-k 3 -> --top-k was null and is now 3
        --top-p 0.5 -> --top-p
        --batch 1 -> --batch was 8 and is now 1
        --chat chatml -> --chat was "none" and is now "chatml"
        --stop <|im_start|> -> --stop was [0,2] and is now [1]
        --dtype f32 -> --dtype was "f16" and is now "f32"
        --top 9 -> --top was null and is now 9
        --draft {TARGET} -> the file of --draft
        --prompts {other} -> the file of --prompts
        "#
    );
    for (more, mut words) in cases(&table) {
        words.extend(["same setting", "another --out"]);
        bench.refuse(&more.split(' ').collect::<Vec<_>>(), &words);
    }
    bench.refuse(&["--vocab", "298"], &["--vocab was 299 and is now 298"]);
    assert_eq!(index(&bench.path("refused")), before);

    // As a capture on a GPU would have left it: rows of two devices are not one log's.
    let file = bench.path("refused").join("log.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace("), CPUExecutionProvider", "), CUDAExecutionProvider");
    std::fs::write(&file, &text).unwrap();
    bench.refuse(
        &[],
        &[
            "the runtime or --device was",
            "CUDAExecutionProvider",
            "and is now",
            "another --out",
        ],
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_folder_with_other_files_is_left_alone() {
    let bench = Bench::new(1);
    std::fs::create_dir(bench.path("refused")).unwrap();
    let mine = bench.write("refused/shard-notes.txt", b"mine");
    bench.refuse(&[], &["holds files and no log", "--out"]);
    assert_eq!(std::fs::read(mine).unwrap(), b"mine");
}

#[test]
fn a_disk_that_is_too_small_is_said_before_anything_is_run() {
    let bench = Bench::new(1024);
    // Of graphs that do not say how long a text they take.
    let [target, draft] = [TARGET, DRAFT].map(|graph| {
        let (graph, field) = (Path::new(ROOT).join(graph), b"specgap.context");
        let mut bytes = std::fs::read(&graph).unwrap();
        let mut places = bytes.windows(field.len());
        let at = places.position(|window| window == field).unwrap();
        bytes[at] = b'S';
        let name = graph.file_name().unwrap().to_str().unwrap();
        bench.write(name, &bytes).display().to_string()
    });
    // 1024 prompts of 10^9 positions of two rows of 299 f16 numbers: 1.2 PB.
    let error = bench.refuse(
        &[
            "--target",
            &target,
            "--draft",
            &draft,
            "--batch",
            "1024",
            "--max-tokens",
            "1000000000",
        ],
        &["bytes free", "may need", "run the same command again"],
    );
    let needed: u64 = error
        .split_once("may need ")
        .and_then(|(_, rest)| rest.split(';').next())
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_else(|| panic!("{error}"));
    assert!(
        (1_200_000_000_000_000..1_300_000_000_000_000).contains(&needed),
        "{needed}"
    );
}

#[test]
fn top_heavy_rows_hold_the_heaviest_tokens() {
    let bench = Bench::new(2);
    let full = bench.capture("full", &["--dtype", "f32"]);
    bench
        .run(
            "top",
            &[
                "--dtype",
                "f32",
                "--top",
                "10",
                "--rest-temperatures",
                "0.5,1",
            ],
        )
        .ok();
    let log = Log::open(&bench.path("top")).unwrap();
    assert!(log.is_top_heavy());
    assert_eq!(log.metadata().rest_temperatures, [0.5, 1.0]);
    let mut row = Row::default();
    for (number, full) in full.iter().enumerate() {
        log.read(number, &mut row).unwrap();
        assert_eq!(row.token, Some(full.token));
        assert!(row.token_ids.len() >= 10 && row.token_ids.len() <= 20);
        for (place, &id) in row.token_ids.iter().enumerate() {
            assert_eq!(row.target[place], full.target[id as usize]);
            assert_eq!(row.draft[place], full.draft[id as usize]);
        }
        assert_eq!(row.target_rest.len(), 2);
    }
}

#[test]
fn prompts_are_refused_by_file_and_line() {
    let bench = Bench::new(1);
    let bad = |contents: &[u8], says: &[&str]| {
        let path = bench.write("bad.jsonl", contents).display().to_string();
        bench.refuse(
            &["--prompts", &path],
            &[&["bad.jsonl: line "], says].concat(),
        );
    };
    bad(b"", &["line 1", "no prompts"]);
    bad(
        b"{\"prompt\": \"x\"}\n{\"text\": \"y\"}\n",
        &["line 2", "unknown field `text`"],
    );
    bad(b"{\"prompt\": \"x\"", &["line 1", "EOF"]);
    bad(b"\xff\xfe", &["line 1", "not UTF-8"]);
    bench.refuse(
        &["--prompts", "nowhere.jsonl"],
        &["nowhere.jsonl: cannot be read"],
    );
}

#[test]
fn tokenizers_are_refused_by_file() {
    let bench = Bench::new(1);
    let huge = std::fs::read(TARGET).unwrap();
    for contents in [&b""[..], b"{}", b"[1, 2", b"{\"model\": 3}", &huge] {
        let path = bench.write("bad.json", contents).display().to_string();
        bench.refuse(
            &["--tokenizer", &path],
            &["bad.json: not a tokenizer.json: "],
        );
    }
    bench.refuse(
        &["--tokenizer", "nowhere.json"],
        &["nowhere.json: cannot be read"],
    );
    bench.refuse(&["--stop", "<nothing>"], &["has no token \"<nothing>\""]);
    let plain = std::fs::read_to_string(TOKENIZER)
        .unwrap()
        .replace("<|im_start|>", "<|begin|>");
    let path = bench
        .write("plain.json", plain.as_bytes())
        .display()
        .to_string();
    bench.refuse(
        &["--tokenizer", &path, "--chat", "chatml"],
        &["plain.json: has no token <|im_start|>", "--chat none"],
    );
}

#[test]
fn graphs_that_are_none_are_refused_by_file() {
    let bench = Bench::new(1);
    let target = std::fs::read(TARGET).unwrap();
    for contents in [&b""[..], b"not a graph", &target[..target.len() / 2]] {
        let path = bench.write("bad.onnx", contents).display().to_string();
        bench.refuse(&["--target", &path], &["bad.onnx: "]);
        bench.refuse(&["--draft", &path], &["bad.onnx: "]);
    }
    bench.refuse(
        &["--target", "nowhere.onnx"],
        &["nowhere.onnx: cannot be read"],
    );
}

#[test]
fn graphs_that_break_the_contract_are_refused_by_input() {
    let bench = Bench::new(1);
    let row = [0.0, 1.0, 2.0];
    let good = || onnx::model(&row, FLOAT);
    let refuse = |graph: &onnx::Graph, says: &[&str]| {
        let path = bench
            .write("graph.onnx", &graph.model())
            .display()
            .to_string();
        bench.refuse(&["--target", &path], &[&["graph.onnx: "], says].concat());
    };

    let mut graph = good();
    graph.inputs.remove(1);
    refuse(&graph, &["has no input attention_mask"]);

    let mut graph = good();
    graph.inputs[1] = onnx::value("attention_mask", FLOAT, &["batch", "total"]);
    refuse(
        &graph,
        &["input attention_mask is", "expected i64 of 2 axes"],
    );

    let mut graph = good();
    graph.inputs[0] = onnx::value("input_ids", INT32, &["batch", "sequence"]);
    refuse(&graph, &["input input_ids is"]);

    let mut graph = good();
    graph
        .inputs
        .push(onnx::value("pixels", FLOAT, &["batch", "3"]));
    refuse(&graph, &["input pixels is none of"]);

    let mut graph = good();
    graph.outputs.remove(0);
    refuse(&graph, &["has no output logits"]);

    let mut graph = good();
    graph.outputs.remove(1);
    refuse(
        &graph,
        &["past_key_values.0.key and no output present.0.key"],
    );

    let mut graph = good();
    graph.inputs[2] = onnx::value(
        "past_key_values.0.key",
        FLOAT,
        &["batch", "heads", "past", "1"],
    );
    refuse(
        &graph,
        &["input past_key_values.0.key has shape", "fixed numbers"],
    );

    let mut graph = good();
    graph.inputs.remove(2);
    graph.outputs.remove(1);
    graph.nodes.remove(7);
    refuse(&graph, &["without a key-value cache are not supported"]);
}

/// Two models by hand: V, the type, and rows that may be broken.
fn by_hand(bench: &Bench, target: &onnx::Graph, draft: &onnx::Graph) -> Vec<String> {
    let target = bench.write("t.onnx", &target.model()).display().to_string();
    let draft = bench.write("d.onnx", &draft.model()).display().to_string();
    vec!["--target".into(), target, "--draft".into(), draft]
}

fn ramp(size: usize) -> Vec<f32> {
    (0..size).map(|i| i as f32 / 4096.0).collect()
}

#[test]
fn vocabularies_that_differ_are_cut_only_on_request() {
    let bench = Bench::new(2);
    let models = by_hand(
        &bench,
        &onnx::model(&ramp(300), FLOAT),
        &onnx::model(&ramp(320), FLOAT),
    );
    let models: Vec<&str> = models.iter().map(String::as_str).collect();
    bench.refuse(
        &models,
        &[
            "target has 300 logits a row and the draft 320",
            "--vocab 300",
        ],
    );
    for (asked, says) in [
        ("0", "1..=300"),
        ("301", "1..=300"),
        ("50", "--vocab is too small"),
    ] {
        bench.refuse(&[&models[..], &["--vocab", asked]].concat(), &[says]);
    }
    let log = bench.capture("log", &[&models[..], &["--vocab", "299"]].concat());
    assert!(
        log.iter()
            .all(|position| position.target.len() == 299 && position.token < 299)
    );
}

#[test]
fn half_precision_graphs_run_as_well() {
    let bench = Bench::new(3);
    let models = by_hand(
        &bench,
        &onnx::model(&ramp(299), FLOAT16),
        &onnx::model(&ramp(299), FLOAT),
    );
    let models: Vec<&str> = models.iter().map(String::as_str).collect();
    let log = sorted(bench.capture("log", &[&models[..], &["--no-stop"]].concat()));
    assert_eq!(log.len(), 36);
    for pair in log
        .windows(2)
        .filter(|pair| pair[0].prompt == pair[1].prompt)
    {
        // Logits are (token + 1) times the row, up to a constant; f16 keeps 11
        // bits, twice here.
        let last = (pair[0].token + 1) as f64 * 298.0 / 4096.0;
        for row in [&pair[1].target, &pair[1].draft] {
            assert!(((row[298] - row[0]) / last - 1.0).abs() < 2e-3);
        }
    }
}

#[test]
fn rows_that_are_no_law_are_refused_by_model_and_prompt() {
    let bench = Bench::new(1);
    let good = onnx::model(&ramp(299), FLOAT);
    for broken in [f32::NAN, f32::INFINITY] {
        let mut row = ramp(299);
        row[7] = broken;
        let bad = onnx::model(&row, FLOAT);
        for (target, draft, file) in [(&bad, &good, "t.onnx"), (&good, &bad, "d.onnx")] {
            let models = by_hand(&bench, target, draft);
            let models: Vec<&str> = models.iter().map(String::as_str).collect();
            bench.refuse(
                &models,
                &[file, "prompt \"p0\", position 0", "NaN or plus infinity"],
            );
            std::fs::remove_dir_all(bench.path("refused")).unwrap();
        }
    }
    // Masked tokens are no error, and are not drawn.
    let mut row = ramp(299);
    row[200..].fill(f32::NEG_INFINITY);
    let models = by_hand(&bench, &onnx::model(&row, FLOAT), &good);
    let models: Vec<&str> = models.iter().map(String::as_str).collect();
    let log = bench.capture("log", &models);
    assert!(log.iter().all(|position| position.token < 200));
    assert_eq!(log[0].target[250], f64::NEG_INFINITY);
}

#[test]
fn a_cache_of_the_wrong_length_is_noticed() {
    let bench = Bench::new(1);
    let mut graph = onnx::model(&ramp(299), FLOAT);
    // The present is the past: nothing is added.
    graph.outputs[1] = onnx::value("present.0.key", FLOAT, &["batch", "1", "total", "1"]);
    graph.nodes[7] = onnx::node("Identity", &["past_key_values.0.key"], "present.0.key", &[]);
    let models = by_hand(&bench, &graph, &onnx::model(&ramp(299), FLOAT));
    let models: Vec<&str> = models.iter().map(String::as_str).collect();
    bench.refuse(&models, &["t.onnx: output present.0.key has shape"]);
}

#[test]
fn settings_out_of_range_name_their_flag() {
    let bench = Bench::new(1);
    bench.refuse(&["--temperature", "NaN"], &["--temperature NaN"]);
    bench.refuse(&["--temperature=-1"], &["--temperature -1"]);
    bench.refuse(&["--top-k", "0"], &["--top-k 0"]);
    bench.refuse(&["--top-p", "1.5"], &["--top-p 1.5"]);
    bench.refuse(&["--top", "0"], &["--top <K>", "0 is not in 1.."]);
    let rest = ["--top", "3", "--rest-temperatures", "1,0"];
    bench.refuse(
        &rest,
        &["'0' for '--rest-temperatures <T>': is a number above 0"],
    );
    for (flag, value) in [("--max-tokens", "0"), ("--batch", "0"), ("--batch", "9999")] {
        bench.refuse(&[flag, value], &[flag]);
    }
}

#[test]
fn several_drafts_are_asked_about_one_text() {
    let bench = Bench::new(5);
    let more = ["--dtype", "f32", "--no-stop", "--batch", "2"];
    let alone = bench.capture("alone", &more);
    let drafts = ["--draft", DRAFT, "--draft", TARGET];
    let together: Vec<&str> = more.into_iter().chain(drafts).collect();
    let run = bench.run("both", &together).ok();
    for words in ["both/draft: ", "both/target: ", "--paired"] {
        assert!(run.out.contains(words), "{}", run.out);
    }
    let logs = ["draft", "target"].map(|name| bench.path("both").join(name));
    let [first, second] = logs.each_ref().map(|path| positions(path));
    // What the first draft would have got alone, and the same text for the other: the target
    // itself, whose rows are the target's.
    assert_eq!(first, alone);
    assert_eq!(tokens(&second), tokens(&alone));
    for (own, alone) in second.iter().zip(&alone) {
        assert_eq!(own.target, alone.target);
        assert_eq!(own.draft, alone.target);
    }
    let name = |path: &Path| index(path).unwrap()["metadata"]["draft"]["name"].clone();
    assert_eq!(
        [name(&logs[0]), name(&logs[1])],
        ["draft.onnx", "target.onnx"]
    );

    // Again: nothing is left to do. Another list of drafts is another capture.
    let again = bench.run("both", &together);
    again.err.says("5 of 5 prompts are in the log");
    let other = ["--draft", TARGET, "--draft", DRAFT];
    let other: Vec<&str> = more.into_iter().chain(other).collect();
    let refused = bench.run("both", &other);
    refused.refused(&["the list of --draft"]);
    let only: Vec<&str> = more.into_iter().collect();
    bench.run("both", &only).refused(&["both"]);

    // Compared at the same positions, or not at all.
    let gap = |logs: &[&Path], out: &str| {
        let mut arguments = vec!["gap".to_owned()];
        arguments.extend(logs.iter().map(|log| log.display().to_string()));
        for word in ["--paired", "--drafts", "2", "--temperature", "1", "--out"] {
            arguments.push(word.to_owned());
        }
        arguments.push(bench.path(out).display().to_string());
        specgap(Path::new(ROOT), arguments)
    };
    gap(&[&logs[0], &logs[1]], "report").ok();
    let report = std::fs::read(bench.path("report/report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["paired"], true);
    assert_eq!(report["logs"][1]["against_first"]["positions"], 60);
    let overlap = &report["rates"][0]["estimates"][1];
    assert!(
        (overlap["mean"].as_f64().unwrap() - 1.0).abs() < 1e-12,
        "{overlap}"
    );
    let elsewhere = bench.path("elsewhere");
    let seed: Vec<&str> = more.into_iter().chain(["--seed", "5"]).collect();
    bench.capture("elsewhere", &seed);
    gap(&[&logs[0], &elsewhere], "none").refused(&["elsewhere", "cannot be paired with"]);
    gap(&[&logs[0]], "none").refused(&["name at least two"]);
    assert!(!bench.path("none").exists());
}

#[test]
fn drafts_that_cannot_be_asked_together_are_refused() {
    let bench = Bench::new(1);
    let both = ["--draft", DRAFT, "--draft", TARGET];
    let with = |more: &[&'static str]| -> Vec<&'static str> {
        both.into_iter().chain(more.iter().copied()).collect()
    };
    bench.refuse(&with(&["--rollouts", "2"]), &["one draft", "2 were given"]);
    bench.refuse(&["--draft", DRAFT, "--draft", DRAFT], &["given twice"]);
    let mut arguments = bench.arguments("refused", &with(&[]));
    arguments[0] = "decode".to_owned();
    specgap(Path::new(ROOT), arguments).refused(&["decode runs one draft"]);
    assert!(!bench.path("refused").exists());
}
