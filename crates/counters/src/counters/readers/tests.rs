//! Files in the form of each tool, and what is refused of them.

use super::*;

const VLLM: &str = "# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.\n\
    # TYPE vllm:spec_decode_num_drafts_total counter\n\
    vllm:spec_decode_num_drafts_total{engine=\"0\",model_name=\"m\"} 1000.0\n\
    # TYPE vllm:spec_decode_num_drafts_created gauge\n\
    vllm:spec_decode_num_drafts_created{engine=\"0\",model_name=\"m\"} 1.764125e+09\n\
    vllm:spec_decode_num_draft_tokens_total{engine=\"0\",model_name=\"m\"} 3000.0\n\
    vllm:spec_decode_num_accepted_tokens_total{engine=\"0\",model_name=\"m\"} 1660.0\n\
    vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",model_name=\"m\",position=\"0\"} 710.0\n\
    vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",model_name=\"m\",position=\"1\"} 530.0\n\
    vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",model_name=\"m\",position=\"2\"} 420.0\n\
    vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n";

fn read_all(texts: &[&str]) -> Result<Counted, CountersError> {
    let names = ["a", "b", "c"];
    let files: Vec<Text<'_>> = names
        .into_iter()
        .zip(texts)
        .map(|(name, text)| Text { name, text })
        .collect();
    count(&files, None, &[])
}

fn read_one(text: &str) -> Counted {
    read_all(&[text]).unwrap()
}

/// A file of this tool, with rounds of so many drafts.
fn read_as(source: Source, length: usize, text: &str) -> Counted {
    let counted = read_one(text);
    assert_eq!((counted.source, counted.length), (source, Some(length)));
    counted
}

/// Returns what has this label, or this entry of a column.
fn chosen(text: &str, key: &str, value: &str) -> Result<Counted, CountersError> {
    let file = Text { name: "a", text };
    count(&[file], None, &[(key.to_owned(), value.to_owned())])
}

fn refused(texts: &[&str], words: &[&str]) {
    let message = read_all(texts).unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "{message} lacks {word}");
    }
}

/// Cases a line: what stands in a text, what is put there, and all words of the refusal.
fn refused_with(text: &str, cases: &str) {
    for case in cases.trim().lines() {
        let (change, words) = case.trim().split_once(" -> ").unwrap();
        let (from, to) = change.split_once(" =>").unwrap();
        assert!(text.contains(from), "{from}");
        let changed = text.replace(from, to.trim_start());
        refused(&[&changed], &words.split(" | ").collect::<Vec<_>>());
    }
}

fn has_note(counted: &Counted, name: &str) -> bool {
    counted.notes.iter().any(|(own, _)| *own == name)
}

#[test]
fn counters_of_vllm_and_llama_cpp() {
    let counted = read_as(Source::Prometheus, 3, VLLM);
    let total = counted.total();
    assert_eq!(
        (total.rounds, total.drafted, total.accepted),
        (1000.0, Some(3000.0), 1660.0)
    );
    assert_eq!(total.reached, Some(vec![710.0, 530.0, 420.0]));
    assert!(has_note(&counted, "since-start"));
    // llama.cpp has no labels but the place, and names no place that was never accepted.
    let server = VLLM
        .replace("vllm:", "llamacpp:")
        .replace("engine=\"0\",model_name=\"m\",", "")
        .replace("{engine=\"0\",model_name=\"m\"}", "")
        .replace("draft_tokens_total 3000", "draft_tokens_total 4000");
    let reached = read_as(Source::Prometheus, 4, &server).total().reached;
    assert_eq!(reached, Some(vec![710.0, 530.0, 420.0, 0.0]));
    // The names of older versions, and both at once.
    let old = VLLM.replace("_total{", "{");
    assert_eq!(read_one(&old).total(), read_one(VLLM).total());
    assert_eq!(
        read_one(&format!("{old}{VLLM}")).total(),
        read_one(VLLM).total()
    );
}

#[test]
fn two_dumps_count_what_was_between_them() {
    let later = VLLM
        .replace(" 1000.0", " 1600.0")
        .replace(" 3000.0", " 4800.0")
        .replace(" 1660.0", " 2661.0")
        .replace(" 710.0", " 1111.0")
        .replace(" 530.0", " 880.0")
        .replace(" 420.0", " 670.0");
    let between = read_all(&[VLLM, &later]).unwrap();
    let total = between.total();
    assert_eq!((total.rounds, total.accepted), (600.0, 1001.0));
    assert_eq!(total.reached, Some(vec![401.0, 350.0, 250.0]));
    assert!(!has_note(&between, "since-start"));
    refused(
        &[&later, VLLM],
        &["b: ", "was 1111 in a", "started again", "the earlier first"],
    );
    let gone = "vllm:spec_decode_num_drafts_total{engine=\"1\",model_name=\"m\"} 9\n";
    refused(
        &[&format!("{VLLM}{gone}"), &later],
        &["is missing, and was 9"],
    );
    refused(&[VLLM, VLLM], &["no round with drafts"]);
    refused(&[VLLM, VLLM, VLLM], &["3 dumps"]);
}

#[test]
fn labels_are_summed_or_chosen() {
    let second = VLLM.replace("engine=\"0\"", "engine=\"1\"");
    let both = format!("{VLLM}{second}");
    let counted = read_one(&both);
    assert_eq!(counted.total().rounds, 2000.0);
    assert!(has_note(&counted, "summed"));
    let second = chosen(&both, "engine", "1").unwrap();
    assert_eq!(second.total().rounds, 1000.0);
    let message = chosen(&both, "engine", "7").unwrap_err().to_string();
    assert!(message.contains("no counter has engine=7"), "{message}");
    let other = VLLM.replace("model_name=\"m\"", "model_name=\"a \\\"b\\\"\"");
    refused(
        &[&format!("{VLLM}{other}")],
        &["several models (a \"b\", m)", "⟨where model_name="],
    );
    let server = VLLM.replace("vllm:", "llamacpp:");
    refused(
        &[&format!("{VLLM}{server}")],
        &["several servers (llamacpp:, vllm:)"],
    );
}

#[test]
fn counters_that_say_too_little_or_contradict_themselves() {
    let without = |name: &str| {
        let lines = VLLM.lines().filter(|line| !line.contains(name));
        lines.collect::<Vec<_>>().join("\n")
    };
    refused(
        &[&without("num_drafts")],
        &["a: lacks the number of drafts, spec_decode_num_drafts"],
    );
    refused_with(
        VLLM,
        r#"
            1660.0 => 3001.0 -> only 3000 drafted
            3000.0 => 1e9 -> above 1024 a round
            1000.0 => 0.5 -> is 0.5; rounds and tokens are whole
            1000.0 => 1e17 -> is no count | from 0 to 2^53
            530.0 => 720.0 -> place 2 is accepted 720 times, and 710 at place 1
            710.0 => 1001.0 -> place 1 is accepted 1001 times, and 1000 rounds
            420.0 => 120.0 -> add up to 1360 | 1660 are counted
            420.0 => much -> line 10 | "much" is no value
            420.0 => -1 -> from 0 on
            position="2" => position="2000" -> position "2000"
            position="2" => position="02" -> position "02"
            ,position="2" => ,position="2 -> labels are broken
            ,position="2" => -> no label position
        "#,
    );
    refused(&[&format!("{VLLM}{VLLM}")], &["twice"]);
    let half = VLLM.replace(" 1660.0", " 1660.5");
    refused(&[&half], &["is 1660.5", "rounds and tokens are whole"]);
    refused(&["# HELP vllm:x y\nvllm:x 1\n"], &["has not drafted"]);
    refused(
        &["sglang:spec_accept_length{model_name=\"m\"} 2.9\n"],
        &["SGLang's gauges", "number of drafts"],
    );
    // A scrape in which a counter moved on is no contradiction, and is said.
    let torn = read_one(&VLLM.replace(" 1660.0", " 1662.0"));
    assert!(has_note(&torn, "torn"));
    // Without places there is K, and nothing by place; without that, rounds of mixed lengths.
    let counted = read_one(&without("per_pos"));
    assert_eq!((counted.length, counted.total().reached), (Some(3), None));
    let mixed = without("per_pos").replace(" 3000.0", " 2900.0");
    assert_eq!(read_one(&mixed).length, None);
    refused(
        &["nothing of this kind"],
        &["prometheus", "vllm-requests", "speculators"],
    );
}

/// The worked example of vLLM's page.
const REQUEST: &str = r#"{"id": "cmpl-1", "choices": [], "usage": {}, "metrics": {"speculative_decoding":
    {"mean_acceptance_length": 1.2325581395348837, "draft_acceptance_rate": 0.07751937984496124,
    "acceptance_histogram": [39, 1, 0, 3], "num_spec_steps": 43, "num_accepted_draft_tokens": 10,
    "num_draft_tokens": 129, "num_spec_tokens": 3}}}"#;

const DETAILED: &str = r#"{"metrics": {"speculative_decoding": {"acceptance_histogram": [1, 1, 0, 1],
    "num_spec_steps": 3, "num_accepted_draft_tokens": 4, "num_draft_tokens": 8, "num_spec_tokens": 3,
    "per_step_accepted": [3, 1, 0], "per_step_drafted": [3, 3, 2]}}}"#;

#[test]
fn requests_say_which_group_they_are_of() {
    let one = |group: &str, counts: &str| {
        format!(
            "{{{group} \"metrics\": {{\"speculative_decoding\": {{\"acceptance_histogram\": {counts}, \
             \"num_spec_tokens\": 2}}}}}}"
        )
    };
    let lines = [
        one("\"group\": \"code\",", "[1, 2, 3]"),
        one("", "[2, 2, 2]"),
        one("\"group\": \"idle\",", "[0, 0, 0]"),
        one("\"group\": 7,", "[3, 1, 0]"),
    ];
    let counted = read_one(&lines.join("\n"));
    // One without rounds counts for nothing, and keeps no other from its group.
    let groups: Vec<Option<&str>> = counted.groups.iter().map(Option::as_deref).collect();
    assert_eq!(groups, [Some("code"), None, Some("7")]);
    assert_eq!(counted.group_names(), ["7", "code"]);
    let text = one("\"group\": [\"code\"],", "[1, 2, 3]");
    let words = ["a: record 1: group: is", "the workload's name as a text"];
    refused(&[&text], &words);
}

#[test]
fn responses_of_vllm_are_a_request_each() {
    let lines = format!(
        "{}\n{}\n{{\"metrics\": {{\"speculative_decoding\": null}}}}\n",
        REQUEST.replace('\n', " "),
        DETAILED.replace('\n', " ")
    );
    let counted = read_as(Source::VllmRequests, 3, &lines);
    assert!(counted.by_request && has_note(&counted, "not-counted"));
    assert_eq!(counted.clusters.len(), 2);
    assert_eq!(counted.clusters[1].steps.as_ref().unwrap().len(), 3);
    assert_eq!(counted.total().reached, Some(vec![6.0, 4.0, 4.0]));
    // The same as a list, and in the output of a batch.
    let list = format!("[{REQUEST}, {DETAILED}]");
    assert_eq!(read_one(&list).clusters, counted.clusters);
    let batch = format!("{{\"response\": {{\"body\": {REQUEST}}}}}");
    assert_eq!(read_one(&batch).clusters, counted.clusters[..1]);
    refused_with(
        DETAILED,
        r#"
            [3, 1, 0] => [3, 4, 0] -> record 1: metrics.speculative_decoding. | per_step_accepted[1]: is 4, and 3 were drafted
            [3, 1, 0] => [3, 1] -> has 3 steps, and per_step_accepted 2
            [3, 1, 0] => [3, 1, 0.5] -> no counts
            [3, 1, 0] => [3, 1, "x"] -> per_step_accepted[2]: is "x"
            "per_step_drafted": [3, 3, 2] => "x": 1 -> per_step_drafted
            [1, 1, 0, 1] => [1, 1, 1, 0] -> acceptance_histogram: is 3, and | come to 4
            "num_spec_steps": 3 => "num_spec_steps": 4 -> num_spec_steps: is 4
            "num_draft_tokens": 8 => "num_draft_tokens": 9 -> num_draft_tokens: is 9
            "num_spec_tokens": 3 => "num_spec_tokens": 1e9 -> num_spec_tokens
        "#,
    );
    refused_with(
        REQUEST,
        r#"
            [39, 1, 0, 3] => [] -> num_accepted_draft_tokens: is 10, and the steps or the histogram
            129 => 9 -> only 9 drafted
        "#,
    );
    let other = REQUEST.replace("\"num_spec_tokens\": 3", "\"num_spec_tokens\": 5");
    refused(
        &[REQUEST, &other],
        &["b: ", "num_spec_tokens: is 5, and 3 in others"],
    );
    refused(
        &["{\"metrics\": {\"speculative_decoding\": null}}"],
        &["--per-request-spec-decode-metrics"],
    );
    refused(&["{\"metrics\": "], &["is no JSON"]);
}

#[test]
fn results_of_vllm_bench_serve() {
    let text = r#"{"date": "20260801-120000", "num_prompts": 80, "spec_decode_acceptance_rate": 50.0,
        "spec_decode_acceptance_length": 2.8, "spec_decode_num_drafts": 5,
        "spec_decode_draft_tokens": 18, "spec_decode_accepted_tokens": 9,
        "spec_decode_per_position_acceptance_rates": [1.0, 0.6, 0.2, 0.0]}"#;
    let counted = read_as(Source::VllmBench, 4, text);
    assert_eq!(counted.total().reached, Some(vec![5.0, 3.0, 1.0, 0.0]));
    assert_eq!(read_all(&[text, text]).unwrap().total().rounds, 10.0);
    refused_with(
        text,
        r#"
            spec_decode_num_drafts => drafts -> lacks the number of drafts, spec_decode_num_drafts
            2.8 => 1.8 -> spec_decode_acceptance_length: is 1.8 | 2.8
            [1.0, => [null, -> rates[0]: is null
        "#,
    );
    refused(&[text, VLLM], &["a is of vllm-bench and b of prometheus"]);
}

#[test]
fn summaries_and_records_of_aiperf() {
    let text = r#"{"spec_decode_acceptance_length": {"avg": 3.2, "unit": "ratio"},
        "total_spec_decode_steps": {"avg": 11.0, "unit": "count"},
        "total_draft_tokens": {"avg": 44.0}, "total_accepted_draft_tokens": {"avg": 20.0},
        "pooled_spec_decode_acceptance_histogram": {"0": 2, "1": 3, "2": 2, "3": 3, "4": 1}}"#;
    let counted = read_as(Source::Aiperf, 4, text);
    assert_eq!(counted.total().reached, Some(vec![9.0, 6.0, 4.0, 1.0]));
    let record = r#"{"spec_decode_acceptance": {"engine": "vllm", "acceptance_histogram": {"0": 1, "1": 2},
        "num_accepted_draft_tokens": 2, "num_draft_tokens": 12, "num_spec_steps": 3,
        "num_spec_tokens": 4, "per_step_accepted": null, "per_step_drafted": null}}"#;
    assert!(read_as(Source::Aiperf, 4, record).by_request);
    refused_with(
        text,
        r#"
            11.0 => 12.0 -> total_spec_decode_steps: is 12 | comes to 11
            "4": 1 => "9999": 1 -> histogram.9999
        "#,
    );
    let no_drafted = text.replace("total_draft_tokens", "x");
    assert!(has_note(&read_one(&no_drafted), "no-drafted"));
}

#[test]
fn the_log_of_llama_cpp() {
    let line = "slot print_timing: id  0 | task 7 | draft acceptance = 0.57576 (  171 accepted /   \
        297 generated), mean len =  2.73\n";
    let places = "slot print_timing: id  0 | task 7 |      acc per pos = (0.808, 0.535, 0.384)\n";
    let counted = read_as(Source::LlamaCppLog, 3, line);
    let total = counted.total();
    assert_eq!((total.rounds, total.reached), (99.0, None));
    assert!(has_note(&counted, "rounded"));
    let counted = read_one(&format!("{line}{places}"));
    let reached = counted.total().reached.unwrap();
    assert!((reached[0] - 79.992).abs() < 1e-9, "{reached:?}");
    // A request without an accepted draft takes its rounds from the others.
    let none = "draft acceptance = 0.00000 (    0 accepted /    30 generated), mean len =  1.00\n";
    let both = read_one(&format!("{line}{places}{none}"));
    assert_eq!((both.clusters.len(), both.total().rounds), (2, 109.0));
    let old = "draft acceptance rate = 0.57576 (  171 accepted /   297 generated)\n";
    refused(
        &[&format!("main: ready\n{old}")],
        &[
            "line 2 lacks the number of drafts",
            "171 of 297",
            ".576",
            "GET /metrics",
        ],
    );
    refused(&[none], &["no request of the log has an accepted draft"]);
    refused_with(
        line,
        r#"
            2.73 => 1.00 -> line 1 | mean length is 1
            2.73 => 1.01 -> line 1: 171 | 17100 rounds
            171 => 571 -> are 330 rounds, and 297
        "#,
    );
}

#[test]
fn the_table_of_speculators() {
    let head = "subset,num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_length,\
        acceptance_at_pos_0,acceptance_at_pos_1,acceptance_at_pos_2\n";
    let rows = "HumanEval,1000.0,3000.0,1660.0,2.66,0.71,0.53,0.42\n\"a, b\",10.0,30.0,3.0,1.3,0.2,0.1,0.0\n";
    let text = format!("{head}{rows}");
    let counted = read_as(Source::Speculators, 3, &text);
    assert_eq!(counted.total().reached, Some(vec![712.0, 531.0, 420.0]));
    let one = chosen(&text, "subset", "a, b").unwrap();
    assert_eq!(one.total().rounds, 10.0);
    let message = chosen(&text, "set", "x").unwrap_err().to_string();
    assert!(message.contains("lacks the column set"), "{message}");
    assert!(chosen(&text, "subset", "x").is_err());
    refused_with(
        &text,
        r#"
            num_drafts => drafts -> lacks the number of drafts | num_drafts
            1660.0 => lots -> line 2: num_accepted_tokens: is "lots"
            0.53 => 0.73 -> line 2: place 2 is accepted 730
        "#,
    );
}

#[test]
fn a_tool_can_be_named() {
    let file = Text {
        name: "a",
        text: VLLM,
    };
    let message = count(&[file], Some(Source::LlamaCppLog), &[])
        .unwrap_err()
        .to_string();
    assert!(message.contains("has no line of the server"), "{message}");
    for source in Source::ALL {
        assert_eq!(source.as_str().parse(), Ok(source));
        let _ = count(&[file], Some(source), &[]);
    }
    assert!("vllm".parse::<Source>().unwrap_err().contains("prometheus"));
    assert!(count(&[], None, &[]).is_err());
}
