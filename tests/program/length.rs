//! `specgap length`: the files, exit codes, and what is refused, which leaves everything as
//! it was.

use crate::made_log::{V, drawn, rows, write_at, write_drawn};
use crate::run::{ROOT, Run, cases, names, specgap};
use crate::says::Says;
use serde_json::Value;
use specgap::log::{Dtype, KeptTokens, Layout};
use specgap::replay::LengthReport;
use std::path::Path;

/// `specgap length` in a folder, by a line of words.
fn length(folder: &Path, line: &str) -> Run {
    specgap(
        folder,
        ["length"].into_iter().chain(line.split_whitespace()),
    )
}

/// A folder with a log of four texts of five tokens.
fn folder_with_log() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_drawn(&folder.path().join("log"), &rows(20));
    folder
}

fn refused(folder: &Path, line: &str, words: &[&str]) {
    let before = names(folder);
    length(folder, line).refused(words);
    assert_eq!(names(folder), before, "{line}");
}

#[test]
fn a_log_becomes_a_folder_of_files() {
    let folder = folder_with_log();
    let run = length(
        folder.path(),
        "log --lengths 1,2,4 --verifiers token,block --cost-ratio 0.1 --out made",
    )
    .ok();
    assert!(run.out.starts_with("Draft lengths: log, "), "{}", run.out);
    let last = run.out.lines().last().unwrap();
    assert_eq!(last, "report: made/report.html");
    let made = folder.path().join("made");
    let text = std::fs::read_to_string(made.join("report.json")).unwrap();
    let report: LengthReport = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (report.of.positions, report.of.texts, report.of.clusters),
        (20, 4, 4)
    );
    assert_eq!(
        report.of.command,
        "specgap length log --lengths 1,2,4 --verifiers token,block --cost-ratio 0.1"
    );
    let html = std::fs::read_to_string(made.join("report.html")).unwrap();
    assert!(made.join("report.md").is_file());
    for (name, definition) in &report.definitions {
        assert!(html.contains(name) && !definition.is_empty(), "{name}");
    }
    assert!(html.contains("id=\"what-to-set\"") && !html.contains("<script"));
    for picture in ["speed-by-cost", "tokens-per-call", "calls-and-discards"] {
        assert!(made.join(format!("{picture}.svg")).is_file(), "{picture}");
    }
    // The same to the byte, on any number of threads.
    length(
        folder.path(),
        "log --lengths 1,2,4 --verifiers token,block --cost-ratio 0.1 --threads 1 --out again",
    )
    .ok();
    let other = std::fs::read_to_string(folder.path().join("again/report.json")).unwrap();
    assert_eq!(other, text);
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let folder = folder_with_log();
    let run = length(
        folder.path(),
        "log --lengths 1,4 --policies schedule,confidence=0.4 --verifiers token --cost-ratio 0.1 \
         --format json",
    );
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert_eq!(run.out.lines().count(), 1);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["positions"], 20);
    assert_eq!(report["temperature"], 1.0);
    let results = report["results"].as_array().unwrap();
    let kinds = |kind: &str| results.iter().filter(|row| row["drafts"] == kind).count();
    // Of drafts that are not sampled nothing that stops by itself is known.
    assert_eq!(["sampled", "one-hot", "exact-match"].map(kinds), [4, 3, 3]);
    let names: Vec<(&str, f64)> = (results.iter())
        .filter(|row| row["drafts"] == "sampled")
        .map(|row| {
            let parameter = row["parameter"].as_f64().unwrap();
            (row["policy"].as_str().unwrap(), parameter)
        })
        .collect();
    let expected = [
        ("fixed", 1.0),
        ("fixed", 4.0),
        ("schedule", 5.0),
        ("confidence", 0.4),
    ];
    assert_eq!(names, expected);
    assert!(results[0]["parameter"].is_u64());
    for field in [
        "expected_accepted_length",
        "tokens_per_call",
        "verification_rate",
        "discard_rate",
        "speedup",
    ] {
        let estimate = &results[1][field];
        assert!(estimate["mean"].is_f64(), "{field}");
        assert_eq!(estimate["ci95"].as_array().unwrap().len(), 2, "{field}");
    }
    // What the text alone does not tell.
    assert!(results[3]["discard_rate"].is_null() && results[3]["speedup"].is_null());
    assert!(results[3]["verification_rate"]["mean"].is_f64());
    assert!(results[3]["discard_rate_at_least"]["mean"].is_f64());
    assert!(report["bounds"]["oracle"]["verification_rate"]["mean"].is_f64());
    assert!(report["bounds"]["coin_blind"]["speedup"]["mean"].is_f64());
}

#[test]
fn the_shipped_log_gives_advice() {
    let log = Path::new(ROOT).join("models/logs/smollm2-demo");
    let folder = tempfile::tempdir().unwrap();
    let line = format!("{} --cost-ratio 0.05", log.display());
    let run = length(folder.path(), &line).ok();
    run.out
        .says("Draft 2 tokens a round with token verification: 1.39");
    run.out.says("3 of the text's 400 tokens");
    let without = length(folder.path(), &log.display().to_string()).ok();
    without.out.says("depends on what a draft step costs");
}

/// One prompt chooses nothing; a verifier without rounds has nothing to choose.
#[test]
fn what_cannot_be_chosen_is_said() {
    let folder = tempfile::tempdir().unwrap();
    write_drawn(&folder.path().join("log"), &rows(5));
    let one = length(folder.path(), "log --max 3").ok();
    one.out.says("There is one prompt only. A length has");
    assert!(one.out.contains("no interval"), "{}", one.out);
    write_drawn(&folder.path().join("more"), &rows(20));
    let greedy = length(folder.path(), "more --verifiers greedy-block").ok();
    greedy.out.says("whose rounds can be replayed");
}

#[test]
fn bad_input_is_refused_with_its_cure() {
    let folder = folder_with_log();
    let here = folder.path();
    std::fs::write(
        here.join("bad.toml"),
        "schema = 1\ntarget_step = { seconds = -1.0 }\ndraft_step = { seconds = 1.0 }\n\
         verify = [{ tokens = 1, seconds = 1.0 }]\n",
    )
    .unwrap();
    std::fs::write(
        here.join("word.json"),
        "{\"schema\": 1, \"target_step\": \"fast\"}",
    )
    .unwrap();
    for (line, words) in cases(
        r#"
            -> LOG
            missing -> missing
            log log -> log | named twice
            log --temperature 0.7 -> log | drawn at temperature 1 | 0.7 | capture
            log --temperature 0 -> --temperature 0 | above 0
            log --cost-ratio -0.1 -> --cost-ratio | 0 or more
            log --cost-ratio fast -> --cost-ratio | 0.1
            log --lengths 0 -> --lengths | 1..=1024
            log --lengths 1,x -> --lengths | x
            log --verifiers tree -> tree | token, block, greedy-block, carried or carried-block
            log --policies nothing -> nothing | confidence
            log --draft-top-k 0 -> --draft-top-k 0 | at least 1
            log --draft-top-p 1.5 -> --draft-top-p 1.5 | at most 1
            log --draft-min-p -1 -> --draft-min-p -1 | from 0 to 1
            log --policies svip=x -> svip=x | NAME=NUMBER
            log --timings bad.toml -> bad.toml | target_step.seconds | > 0
            log --timings word.json -> word.json | target_step
            log --timings none.toml -> none.toml | cannot be read
            log --timings bad.toml --cost-ratio 0.1 -> --cost-ratio
        "#,
    ) {
        refused(here, &line, &words);
    }
    // Logs that do not belong together.
    write_drawn(&here.join("copy"), &rows(20));
    refused(
        here,
        "log copy",
        &["copy", "same rows as log", "name it once"],
    );
    std::fs::remove_dir_all(here.join("copy")).unwrap();
    // A log that says nothing of its text.
    let rows = Path::new(ROOT).join("tests/fixtures/logs/numpy-stored.npz");
    refused(
        here,
        &rows.display().to_string(),
        &["numpy-stored.npz", "say so with --temperature T"],
    );
    // One without text.
    let rows = Path::new(ROOT).join("tests/fixtures/logs/probabilities.npz");
    refused(
        here,
        &rows.display().to_string(),
        &["probabilities.npz", "has no tensor token", "capture"],
    );
}

/// 1,500 tokens of 30 prompts, each drawn from the target's row of the position that many
/// before its own; with `swapped`, rows of the draft's are called the target's.
fn text(path: &Path, late: usize, swapped: bool) {
    const COUNT: usize = 1_500;
    let mut rows = rows(COUNT);
    for (target, draft) in &mut rows {
        // A draft that knows something of the target's row.
        let half = |(x, y): (&mut f32, &f32)| *x += 0.5 * y.max(-9.0);
        draft.iter_mut().zip(target.iter()).for_each(half);
    }
    let tokens = drawn(&rows);
    let made: Vec<_> = (rows.iter())
        .map(|(target, draft)| match swapped {
            true => (draft.clone(), target.clone()),
            // No token is masked, as a shifted one would be.
            false => {
                let target = target.iter().map(|&x| x.max(-9.0)).collect();
                (target, draft.clone())
            }
        })
        .collect();
    let layout = Layout {
        dtype: Dtype::F32,
        tokens: KeptTokens::All,
        ..Layout::new(V)
    };
    let place = |n: usize| {
        let token = tokens[(n + COUNT - late) % COUNT];
        ((n / 50) as i64, (n % 50) as i64, token)
    };
    write_at(path, &made, layout, place);
}

/// Tokens one row late and models that are swapped: every command that rests on the text says so
/// before all else, and advises nothing; of honest text none says anything.
#[test]
fn text_that_was_not_drawn_from_its_rows_is_said_first_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    for (name, late, swapped) in [
        ("honest", 0, false),
        ("late", 1, false),
        ("swapped", 0, true),
    ] {
        text(&folder.path().join(name), late, swapped);
        for command in [
            "gap --drafts 2 --temperature 1.0",
            // At the temperature of the text, whatever is measured.
            "gap --drafts 2 --temperature 0.5",
            "length --cost-ratio 0.1",
            "tree --cost-ratio 0.1 --trees 2x2",
            "paths --paths 2 --length 3",
        ] {
            let line = format!("{command} {name}");
            let run = specgap(folder.path(), line.split_whitespace());
            assert_eq!(run.code, Some(0), "{line}: {}", run.err);
            let lines: Vec<&str> = run.out.lines().map(str::trim).collect();
            let said = lines[1..].iter().find(|line| !line.is_empty()).unwrap();
            let is_first = said.starts_with("! The text was not drawn from these rows");
            assert_eq!(is_first, name != "honest", "{line}: {}", run.out);
            let advice = [
                "Draft ",
                "Possible:",
                "If a call may",
                "At c = 0.1, draft",
                "With 2 draft paths",
            ];
            let advised = advice.iter().any(|word| {
                let starts = |line: &&str| line.starts_with(word);
                lines.iter().skip(1).any(starts)
            });
            assert_eq!(advised, name == "honest", "{line}: {}", run.out);
            assert_eq!(run.out.contains("was not drawn"), name != "honest");
        }
    }
}

/// A cut of the draft's row is on the page, in the command and in the file; tables of the text's
/// own tokens do not tell it.
#[test]
fn drafts_of_cut_rows_are_said_everywhere() {
    let folder = folder_with_log();
    let line = "log --lengths 1,2 --draft-top-k 3 --draft-top-p 0.9 --cost-ratio 0.1 --out made";
    let run = length(folder.path(), line).ok();
    let said = "q cut to top-k 3, top-p 0.9, in the order k,p,m (assumed; else give --cut-order), \
                renormalised";
    let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(said), "{}", run.out);
    let text = std::fs::read_to_string(folder.path().join("made/report.json")).unwrap();
    let report: LengthReport = serde_json::from_str(&text).unwrap();
    assert_eq!(
        report.of.command,
        "specgap length log --lengths 1,2 --draft-top-k 3 --draft-top-p 0.9 --cost-ratio 0.1"
    );
    report
        .left_out
        .says("here it is cut (--draft-top-k 3 --draft-top-p 0.9)");
    std::fs::write(
        folder.path().join("two.csv"),
        "prompt,position,logp,logq\na,0,-0.5,-1.25\n",
    )
    .unwrap();
    refused(
        folder.path(),
        "two.csv --draft-top-k 3",
        &[
            "two.csv",
            "position 0",
            "--draft-top-k 3",
            "capture with --top",
        ],
    );
}

/// Of a text that was cut as it was sampled, a draft that is said to be whole is not cut.
#[test]
fn a_whole_draft_beside_a_cut_target() {
    let folder = folder_with_log();
    let tokens = |more: &str| {
        let line = format!("log --lengths 1,3 --policies fixed {more}--format json");
        let report: serde_json::Value =
            serde_json::from_str(&length(folder.path(), &line).ok().out).unwrap();
        let means = report["results"].as_array().unwrap().iter();
        let means: Vec<f64> = means
            .map(|row| row["tokens_per_call"]["mean"].as_f64().unwrap_or(0.0))
            .collect();
        (means, report["draft_cuts"].clone())
    };
    let whole = tokens("").0;
    let head = folder.path().join("log/log.json");
    let mut metadata: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&head).unwrap()).unwrap();
    metadata["metadata"]["sampling"]["top_p"] = 0.9.into();
    std::fs::write(&head, metadata.to_string()).unwrap();
    let (cut, said) = tokens("");
    assert!(said.is_null() && cut != whole);
    let (own, said) = tokens("--draft-top-p 1 ");
    assert_eq!(said, serde_json::json!({"top_p": 1.0}));
    assert_ne!(own, cut);
    for (own, all) in own.iter().zip(tokens("--draft-top-k 1000000 ").0) {
        assert!((own - all).abs() < 1e-12);
    }
}

/// Groups are on the page, in the file, and in the profiles that have a place for them.
#[test]
fn groups_of_a_table_are_told_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "prompt,position,logp,logq,hit,group\n".to_owned();
    for n in 0..600u32 {
        let (prompt, at) = (n / 10, n % 10);
        let mixed = f64::from(n.wrapping_mul(2_654_435_761) >> 16) / 65_536.0;
        let (group, most) = [("code", 0.4), ("a chat | _x_", 1.2)][(prompt % 2) as usize];
        let (p, q) = (0.5f64, 0.5 * most * (0.4 + 0.6 * mixed));
        text.push_str(&format!(
            "p{prompt},{at},{:?},{:?},{},{group}\n",
            p.ln(),
            q.ln(),
            u8::from(n % 2 == 1 || q > 0.5)
        ));
    }
    std::fs::write(folder.path().join("text.csv"), text).unwrap();
    let line =
        "text.csv -v --lengths 1,3 --cost-ratio 0.1 --profile model-optimizer,card --out made";
    let run = length(folder.path(), line).ok();
    let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "By group of prompts",
        "Told apart from all others: a chat | _x_ and code.",
    ] {
        assert!(words.contains(said), "{}", run.out);
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join("made").join(name)).unwrap();
    let report: LengthReport = serde_json::from_str(&read("report.json")).unwrap();
    assert!(report.definitions.contains_key("told apart, of groups"));
    let by_group = report.by_group.unwrap();
    let profile: Value =
        serde_json::from_str(&read("sampled-token/speculation_profile.json")).unwrap();
    let categories = profile["per_category"].as_object().unwrap();
    assert_eq!(categories.len(), 2);
    for of in &by_group.groups {
        let starts = of
            .round_starts
            .iter()
            .find(|one| one.name() == "sampled-token")
            .unwrap();
        let curve = starts.curves.last().unwrap();
        let written = &categories[of.group.as_deref().unwrap()];
        let mean = written["mean_accept_length"].as_f64().unwrap();
        assert!((mean - curve.acceptance_length.mean).abs() < 1e-6);
        assert_eq!(written["num_speculative_tokens"], 3);
        assert_eq!(
            written["marginal_accept_rates"].as_array().unwrap().len(),
            3
        );
    }
    let card = read("one-hot/card.md");
    card.says("|tokens a round of|K = 1|K = 3|\n|---|---|---|\n");
    assert!(
        card.contains("|a chat \\| \\_x\\_|") && card.contains("|code|"),
        "{card}"
    );
    specgap(
        folder.path(),
        ["import", "--from", "tokens", "text.csv", "--out", "log"],
    )
    .ok();
    let run = length(
        folder.path(),
        "log --lengths 1,3 --cost-ratio 0.1 --format json",
    );
    let imported: LengthReport = serde_json::from_str(&run.out).unwrap();
    let means = |by_group: &specgap::replay::ByGroup| {
        let all = by_group.groups.iter().flat_map(|of| &of.results);
        all.map(|row| row.tokens_per_call).collect::<Vec<_>>()
    };
    assert_eq!(means(&imported.by_group.unwrap()), means(&by_group));
}

/// Two numbers a token, as a table and as the log that is made of it.
#[test]
fn a_table_of_tokens_is_a_log_for_lengths_and_for_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "prompt,position,logp,logq,hit\n".to_owned();
    for n in 0..400u32 {
        let [p, q] = [n * 7919 % 97, n * 104_729 % 89].map(|x| -f64::from(x + 1) / 60.0);
        let hit = u8::from(q > -0.69);
        text.push_str(&format!("prompt {},{},{p},{q},{hit}\n", n / 40, n % 40));
    }
    std::fs::write(folder.path().join("text.csv"), &text).unwrap();
    let line = "text.csv --lengths 1,2,4 --policies fixed --cost-ratio 0.1 --format json";
    let table = length(folder.path(), line);
    assert_eq!((table.code, table.err.as_str()), (Some(0), ""));
    let made = specgap(
        folder.path(),
        ["import", "--from", "tokens", "text.csv", "--out", "log"],
    )
    .ok();
    made.out.says("400 positions of 10 texts from tokens");
    assert!(
        made.out
            .ends_with("next: specgap length log --cost-ratio 0.1\n"),
        "{}",
        made.out
    );
    let log = length(folder.path(), &line.replace("text.csv", "log"));
    let results = |run: &Run| {
        let report: Value = serde_json::from_str(&run.out).unwrap();
        assert!(report["surprise"]["z"].is_null());
        (report["results"].clone(), report["at_cost"].clone())
    };
    assert_eq!(results(&table), results(&log));
    let kinds = results(&table).0;
    assert_eq!(kinds.as_array().unwrap().len(), 3 * (3 + 2));
    let page = length(folder.path(), "text.csv --cost-ratio 0.1");
    for words in [
        "! Nothing checks that the text was drawn from these rows",
        "One-hot drafts, the default of vLLM, llama.cpp and TensorRT-LLM,",
        "Exact-match drafts, the default of",
    ] {
        let plain = page.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(words), "{words}: {}", page.out);
    }
    // One draft is told by the text, which nothing checks.
    let gap = specgap(folder.path(), ["gap", "log", "-v", "--drafts", "1"]).ok();
    for words in [
        "by the text's own tokens, which leave nothing open",
        "! Nothing checks that the text was drawn from these rows",
    ] {
        let plain = gap.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(words), "{words}: {}", gap.out);
    }
    for (command, words) in [
        (
            "tree log --cost-ratio 0.1",
            "lists the text's own tokens alone",
        ),
        (
            "paths log --paths 2 --length 3",
            "lists the text's own tokens alone",
        ),
        (
            "gap log --drafts 2 --temperature 1.0",
            "fewer than the 2 distinct drafts that --drafts asks for; ask for 1 at most",
        ),
        ("tree text.csv", "is no log"),
        ("length missing.csv", "missing.csv: cannot be read"),
        (
            "length log --draft-kinds two",
            "there are sampled, one-hot, exact-match, shared-gumbel",
        ),
    ] {
        let run = specgap(folder.path(), command.split_whitespace());
        assert_eq!(run.code, Some(2), "{command}: {}", run.out);
        let plain = run.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(words), "{command}: {}", run.err);
    }
    // A line that cannot be is named.
    let wrong = text.replace("prompt 3,7,-", "prompt 3,7,");
    std::fs::write(folder.path().join("wrong.csv"), wrong).unwrap();
    refused(
        folder.path(),
        "wrong.csv --out made",
        &["(line 129)", "logp", "at most 0"],
    );
    let silent = text.replace(",hit\n", ",note\n");
    std::fs::write(folder.path().join("silent.csv"), silent).unwrap();
    refused(
        folder.path(),
        "silent.csv --drafts one-hot",
        &["a column hit"],
    );
}

/// All files below a folder, by their names there.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        match entry.path().is_dir() {
            true => found.extend(
                files(&entry.path())
                    .iter()
                    .map(|one| format!("{name}/{one}")),
            ),
            false => found.push(name),
        }
    }
    found.sort();
    found
}

#[test]
fn profiles_stand_beside_the_report_by_what_is_drafted() {
    let folder = folder_with_log();
    let line = "log --lengths 1,2 --profile vllm,card,llama.cpp,card --out made";
    let run = length(folder.path(), line).ok();
    let made = folder.path().join("made");
    let found = files(&made);
    for way in ["sampled-token", "sampled-block", "one-hot", "exact-match"] {
        for name in [
            "card.md",
            "llama.cpp-k1.env",
            "llama.cpp-k2.env",
            "vllm-k1.json",
            "vllm-k2.json",
        ] {
            assert!(
                found.contains(&format!("{way}/{name}")),
                "{way}/{name}: {found:?}"
            );
        }
    }
    let read = |name: &str| std::fs::read_to_string(made.join(name)).unwrap();
    let report: LengthReport = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!(
        report.of.command,
        "specgap length log --lengths 1,2 --profile vllm,card,llama.cpp,card"
    );
    // The numbers of the report.
    let one_hot = report
        .round_starts
        .iter()
        .find(|one| one.name() == "one-hot")
        .unwrap();
    let config: Value = serde_json::from_str(&read("one-hot/vllm-k2.json")).unwrap();
    for (rate, share) in (config["synthetic_acceptance_rates"]
        .as_array()
        .unwrap()
        .iter())
    .zip(&one_hot.curves[1].marginal)
    {
        assert!((rate.as_f64().unwrap() - share.mean).abs() < 1e-6);
    }
    let card = read("one-hot/card.md");
    card.says("one-hot drafts, token verification, temperature 1.0");
    assert!(card.contains("4 prompts, 20 tokens"), "{card}");
    assert!(run.out.contains("How far rounds get"), "{}", run.out);
    // Named drafts and verifiers alone.
    let line =
        "log --lengths 2 --draft-kinds sampled --verifiers block --profile sglang --out less";
    length(folder.path(), line).ok();
    let profiles: Vec<String> = (files(&folder.path().join("less")).into_iter())
        .filter(|name| name.contains('/'))
        .collect();
    assert_eq!(profiles, ["sampled-block/sglang-k2.env"]);
    // Another length into the same folder: no file of the earlier one stays beside it.
    length(folder.path(), &line.replace("lengths 2", "lengths 1")).ok();
    let found = files(&folder.path().join("less"));
    assert!(
        found.contains(&"sampled-block/sglang-k1.env".to_owned()),
        "{found:?}"
    );
    assert!(
        !found.contains(&"sampled-block/sglang-k2.env".to_owned()),
        "{found:?}"
    );
}

/// Lists that leave acceptance more open than the sample does rank no length and no tree.
#[test]
fn wide_lists_give_ranges_and_no_choice() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(60);
    let tokens = drawn(&rows);
    let place = |n: usize| ((n / 5) as i64, (n % 5) as i64, tokens[n]);
    for (name, count) in [("wide", 1), ("full", V)] {
        let layout = Layout {
            dtype: Dtype::F32,
            tokens: KeptTokens::Top {
                count,
                rest_temperatures: vec![1.0],
            },
            ..Layout::new(V)
        };
        write_at(&folder.path().join(name), &rows, layout, place);
        let is_wide = name == "wide";
        let line = format!("{name} --lengths 1-3 --cost-ratio 0.1");
        let run = length(folder.path(), &line).ok();
        let first: Vec<&str> = run.out.lines().take(3).collect();
        assert_eq!(
            first.concat().contains("No length is chosen"),
            is_wide,
            "{}",
            run.out
        );
        assert_eq!(first.concat().contains("K = 3:"), is_wide, "{}", run.out);
        for words in ["break-even of fixed", "What to set, by cost", "more; "] {
            assert!(!is_wide || !run.out.contains(words), "{words}: {}", run.out);
        }
        let report: LengthReport =
            serde_json::from_value(length(folder.path(), &format!("{line} --format json")).json())
                .unwrap();
        assert_eq!(report.acceptance.open().is_some(), is_wide);
        assert_eq!(
            (report.by_cost.is_empty(), report.advice.is_empty()),
            (is_wide, is_wide)
        );
        for row in report.results.iter().filter(|row| row.policy == "fixed") {
            let open = row
                .tokens_per_call
                .is_none_or(|tokens| tokens.open().is_some());
            let is_sure = row.drafts == specgap::replay::Drafts::OneHot;
            assert!(!is_wide || open || is_sure, "{row:?}");
        }
        let line =
            format!("tree {name} --trees eagle-25 --budget 4 --cost-ratio 0.1 --format json");
        let json = specgap(folder.path(), line.split(' ')).json();
        for best in json["best"].as_array().unwrap() {
            let minus = &best["minus_best"]["speedup"];
            let open = |speed: &Value| speed["truncation"].is_array();
            let is_open = open(&best["speedup"]) && (minus.is_null() || open(minus));
            assert_eq!(is_open, is_wide, "{best}");
        }
        for change in json["advice"].as_array().into_iter().flatten() {
            assert!(!is_wide || change["verdict"] != "worth", "{change}");
        }
        let line = format!("tree {name} --trees eagle-25 --budget 4");
        let run = specgap(folder.path(), line.split(' ')).ok();
        let first: Vec<&str> = run.out.lines().take(4).collect();
        assert_eq!(
            first.concat().contains("No tree is chosen"),
            is_wide,
            "{}",
            run.out
        );
        // The tree that the first lines speak of is the one that is drawn.
        let line = format!("{line} --format json");
        let json = specgap(folder.path(), line.split(' ')).json();
        let paths = json["best"][0]["paths"].as_array().unwrap();
        let deepest = paths.iter().map(|path| path.as_array().unwrap().len());
        let drawn = run.out.lines().map(|line| line.matches(" ─── ").count());
        assert!(!is_wide || deepest.max() == drawn.max(), "{}", run.out);
    }
}

/// Why no tree is grown is said as it is.
#[test]
fn a_tree_that_is_not_grown_says_why() {
    let log = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/models/logs/smollm2-by-depth/eagle-kl-lists.safetensors"
    );
    let line = ["tree", log, "--budget", "2", "--verifiers", "traversal"];
    let run = specgap(std::path::Path::new("."), line).ok();
    assert!(
        run.out.contains("No tree is grown. Left out: traversal on"),
        "{}",
        run.out
    );
}

/// What would be taken for acceptance and is none leaves no file.
#[test]
fn profiles_of_nothing_are_refused() {
    let folder = folder_with_log();
    let here = folder.path();
    for (line, words) in cases(
        r#"
            log --profile vllm -> --profile | --out
            log --profile trt --out made -> trt | vllm, sglang, tensorrt-llm
            log --profile vllm --draft-kinds sampled --verifiers greedy-block --out made -> log | --profile | greedy-block | token or block
            log --profile vllm --lengths 6 --out made -> log | --profile | --lengths
            log --profile card --temperature 0.7 --out made -> log | drawn at temperature 1 | 0.7
        "#,
    ) {
        refused(here, &line, &words);
    }
    text(&here.join("late"), 1, false);
    refused(
        here,
        "late --profile card --out made",
        &["late", "--profile", "not drawn from these rows"],
    );
    // Texts of two temperatures make no one profile.
    write_drawn(&here.join("warm"), &rows(25));
    let place = here.join("warm/log.json");
    let mut metadata: Value =
        serde_json::from_str(&std::fs::read_to_string(&place).unwrap()).unwrap();
    metadata["metadata"]["sampling"]["temperature"] = 0.5.into();
    std::fs::write(&place, metadata.to_string()).unwrap();
    refused(
        here,
        "log warm --profile card --out made",
        &["warm", "temperature"],
    );
}

/// What a server counted by position, at its own length and shorter ones.
#[test]
fn profiles_are_made_of_counters_too() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let place = |position: u32, count: u32| {
        let name = "vllm:spec_decode_num_accepted_tokens_per_pos_total";
        format!("{name}{{position=\"{position}\"}} {count}\n")
    };
    let whole = "vllm:spec_decode_num_drafts_total 1000\n\
                 vllm:spec_decode_num_draft_tokens_total 3000\n\
                 vllm:spec_decode_num_accepted_tokens_total 1300\n";
    let by_place = place(0, 700) + &place(1, 400) + &place(2, 200);
    std::fs::write(here.join("places.txt"), whole.to_owned() + &by_place).unwrap();
    std::fs::write(here.join("whole.txt"), whole).unwrap();
    let counters = |line: &str| specgap(here, ["counters"].into_iter().chain(line.split(' ')));
    counters("places.txt --profile vllm,card,model-optimizer --out made").ok();
    let read = |name: &str| std::fs::read_to_string(here.join("made").join(name)).unwrap();
    for (length, rates) in [(1, "[0.7]"), (2, "[0.7,0.4]"), (3, "[0.7,0.4,0.2]")] {
        let config = read(&format!("vllm-k{length}.json"));
        assert!(config.contains(rates), "{config}");
    }
    let card = read("card.md");
    card.says("|2|2.100 ± 0.059|0.700 ± 0.028, 0.400 ± 0.030|0.700, 0.571|");
    assert!(
        card.contains("at K = 3") && card.contains("approximation"),
        "{card}"
    );
    let profile: Value = serde_json::from_str(&read("speculation_profile.json")).unwrap();
    assert_eq!(profile["mean_accept_length"], 2.3);
    for (line, words) in cases(
        r#"
            places.txt --profile vllm -> --profile | --out
            places.txt --profile sg --out new -> sg is no format | sglang
            whole.txt --profile vllm --out new -> --profile | spec_decode_num_accepted_tokens_per_pos
        "#,
    ) {
        counters(&line).refused(&words);
        assert!(!here.join("new").exists(), "{line}");
    }
}

/// The coin of one noise is summed here, and integrated for trees.
#[test]
fn chains_of_one_noise_are_trees_of_single_children() {
    let folder = folder_with_log();
    let means = |run: Run, of: &str| -> Vec<f64> {
        let report: Value = serde_json::from_str(&run.ok().out).unwrap();
        let results = report["results"].as_array().unwrap().iter();
        results
            .map(|row| row[of]["mean"].as_f64().unwrap())
            .collect()
    };
    let line = "log --lengths 1,2,4 --draft-kinds shared-gumbel --policies fixed --format json";
    let run = || length(folder.path(), line);
    let chains = means(run(), "tokens_per_call");
    assert_eq!(chains.len(), 3);
    for (chain, depth) in chains.iter().zip([1, 2, 4]) {
        let line = format!(
            "tree log --trees chain-{depth} --laws without-replacement --verifiers shared-gumbel \
             --budget 1 --format json"
        );
        let trees = means(
            specgap(folder.path(), line.split_whitespace()),
            "tokens_per_call",
        );
        let same = |tree: &&f64| (*tree - chain).abs() < 1e-9;
        assert!(
            trees.iter().any(|tree| same(&tree)),
            "{depth}: {chain} {trees:?}"
        );
    }
    // Half of what sampled drafts keep over 2 less that, and no more than they do.
    let line =
        "log --lengths 1 --draft-kinds sampled --verifiers token --policies fixed --format json";
    let [kept, most] =
        [run(), length(folder.path(), line)].map(|run| means(run, "accepted_from_everywhere")[0]);
    assert!(most / (2.0 - most) <= kept && kept <= most, "{kept} {most}");
}

/// A length or a depth at the end of what was tried is said to be there.
#[test]
fn the_end_of_what_was_tried_is_said() {
    for (line, is_end, said) in [
        (
            "length --lengths 1,2 --cost-ratio 0.01",
            true,
            "No longer one was tried",
        ),
        (
            "length --lengths 1,2,12 --cost-ratio 0.2",
            false,
            "No longer one was tried",
        ),
        (
            "tree --budget 12 --max-depth 2 --laws stratified",
            true,
            "no deeper one was tried",
        ),
        (
            "tree --budget 8 --max-depth 8 --laws stratified",
            false,
            "no deeper one was tried",
        ),
    ] {
        let words = line.split(' ').chain(["models/logs/smollm2-chat"]);
        let run = specgap(Path::new(ROOT), words).ok();
        let text = run.out.replace("\n    ", " ");
        assert_eq!(text.contains(said), is_end, "{line}: {text}");
    }
}
