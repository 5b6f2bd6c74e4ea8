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
    let files = ["a", "b", "c"].into_iter().zip(texts);
    let files: Vec<Text<'_>> = files.map(|(name, text)| Text { name, text }).collect();
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

/// Shows that what was read is refused, in these words.
fn says(read: Result<Counted, CountersError>, words: &[&str]) {
    let message = read.unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "{message} lacks {word}");
    }
}

fn refused(texts: &[&str], words: &[&str]) {
    says(read_all(texts), words);
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
    assert_eq!((total.rounds, total.accepted), (1000.0, 1660.0));
    assert_eq!(total.drafted, Some(3000.0));
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
    for text in [&old, &format!("{old}{VLLM}")] {
        assert_eq!(read_one(text).total(), total);
    }
}

#[test]
fn two_dumps_count_what_was_between_them() {
    let mut later = VLLM.to_owned();
    for change in "1000 1600|3000 4800|1660 2661|710 1111|530 880|420 670".split('|') {
        let (before, behind) = change.split_once(' ').unwrap();
        later = later.replace(&format!(" {before}.0"), &format!(" {behind}.0"));
    }
    let between = read_all(&[VLLM, &later]).unwrap();
    let total = between.total();
    assert_eq!((total.rounds, total.accepted), (600.0, 1001.0));
    assert_eq!(total.reached, Some(vec![401.0, 350.0, 250.0]));
    assert!(!has_note(&between, "since-start"));
    let words = ["b: ", "was 1111 in a", "started again", "the earlier first"];
    refused(&[&later, VLLM], &words);
    let gone = "vllm:spec_decode_num_drafts_total{engine=\"1\",model_name=\"m\"} 9\n";
    let gone = format!("{VLLM}{gone}");
    refused(&[&gone, &later], &["is missing, and was 9"]);
    // A server that started again says so, where its counters have passed the old ones already.
    let anew = later.replace("1.764125e+09", "1.764126e+09");
    refused(
        &[VLLM, &anew],
        &["drafts_created{", "was 1764125000", "started again"],
    );
    let start = |at: &str| format!("process_start_time_seconds 1.75e9 {at}\n");
    let [was, now] = [("1", VLLM), ("2", &later)].map(|(at, text)| start(at) + text);
    assert!(read_all(&[&was, &now]).is_ok());
    let now = now.replace("1.75e9", "1.76e9");
    refused(
        &[&was, &now],
        &["process_start_time_seconds is 1760000000, and was 1750000000 in a"],
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
    says(chosen(&both, "engine", "7"), &["no counter has engine=7"]);
    let other = VLLM.replace("model_name=\"m\"", "model_name=\"a \\\"b\\\"\"");
    let words = ["several models (a \"b\", m)", "⟨where model_name="];
    refused(&[&format!("{VLLM}{other}")], &words);
    // Blanks stand wherever the format has them.
    let wide = VLLM.replace(",model", " ,\t model").replace("=\"", " = \"");
    assert_eq!(read_one(&wide).total(), read_one(VLLM).total());
    let both = format!("{VLLM}{}", VLLM.replace("vllm:", "llamacpp:"));
    refused(&[&both], &["several servers (llamacpp:, vllm:)"]);
}

#[test]
fn counters_that_say_too_little_or_contradict_themselves() {
    let without = |name: &str| {
        let lines = VLLM.lines().filter(|line| !line.contains(name));
        lines.collect::<Vec<_>>().join("\n")
    };
    let lacks = "a: lacks the number of drafts, spec_decode_num_drafts";
    refused(&[&without("num_drafts")], &[lacks]);
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
    let gauges = "sglang:spec_accept_length{model_name=\"m\"} 2.9\n";
    refused(&[gauges], &["SGLang's gauges", "number of drafts"]);
    // A scrape in which a counter moved on is no contradiction, and is said.
    let torn = read_one(&VLLM.replace(" 1660.0", " 1662.0"));
    assert!(has_note(&torn, "torn"));
    assert_eq!(torn.total().accepted, 1660.0);
    let (_, words) = torn.notes.iter().find(|(name, _)| name == "torn").unwrap();
    assert!(
        words.contains("up to 1660 accepted drafts, and 1662 are"),
        "{words}"
    );
    // Without places there is K, and nothing by place; without that, rounds of mixed lengths.
    let counted = read_one(&without("per_pos"));
    assert_eq!((counted.length, counted.total().reached), (Some(3), None));
    let mixed = without("per_pos").replace(" 3000.0", " 2900.0");
    assert_eq!(read_one(&mixed).length, None);
    let tools = ["prometheus", "vllm-requests", "speculators"];
    refused(&["nothing of this kind"], &tools);
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
    let words = ["b: ", "num_spec_tokens: is 5, and 3 in others"];
    refused(&[REQUEST, &other], &words);
    let null = "{\"metrics\": {\"speculative_decoding\": null}}";
    refused(&[null], &["--per-request-spec-decode-metrics"]);
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
            50.0 => 0.5 -> spec_decode_acceptance_rate: is 0.5 | come to 50.0000 percent
            [1.0, => [null, -> rates[0]: is null
            _tokens": 9 => _tokens": 8 -> spec_decode_accepted_tokens: is 8 | rates come to 9 | one run
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
    let lacks = "line 2 lacks the number of drafts";
    let words = [lacks, "171 of 297", ".576", "GET /metrics"];
    refused(&[&format!("main: ready\n{old}")], &words);
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
    says(chosen(&text, "set", "x"), &["lacks the column set"]);
    assert!(chosen(&text, "subset", "x").is_err());
    refused_with(
        &text,
        r#"
            num_drafts => drafts -> lacks the number of drafts | num_drafts
            1660.0 => lots -> line 2: num_accepted_tokens: is "lots"
            0.53 => 0.73 -> line 2: num_accepted_tokens: is 1660 | acceptance_at_pos_ come to 1860
            0.71,0.53 => 0.53,0.71 -> line 2: place 2 is accepted 710
            2.66 => 1.66 -> line 2: acceptance_length: is 1.66 | 2.66
            1660.0 => 1661.0 -> line 2: num_accepted_tokens: is 1661 | come to 1660 | one run
        "#,
    );
}

#[test]
fn a_tool_can_be_named() {
    let (name, text) = ("a", VLLM);
    let file = Text { name, text };
    let log = count(&[file], Some(Source::LlamaCppLog), &[]);
    says(log, &["has no line of the server"]);
    for source in Source::ALL {
        assert_eq!(source.as_str().parse(), Ok(source));
        let _ = count(&[file], Some(source), &[]);
    }
    assert!("vllm".parse::<Source>().unwrap_err().contains("prometheus"));
    assert!(count(&[], None, &[]).is_err());
}

/// Files of other tools, each with its tool, K, rounds, and accepted drafts.
#[test]
fn every_tool_that_counts() {
    let meta = r#"{"text": "..", "meta_info": {"id": "a", "completion_tokens": 106, "spec_accept_length": 2.465,
        "spec_num_correct_drafts": 63, "spec_num_proposed_drafts": 215, "spec_verify_ct": 43,
        "spec_correct_drafts_histogram": [11, 14, 11, 4, 0, 3]}}"#;
    let openai = r#"{"choices": [{"message": {}}], "sglext": {"spec_tokens_details": {"spec_verify_ct": 43,
        "spec_num_correct_drafts": 63, "spec_num_proposed_drafts": 215,
        "spec_correct_drafts_histogram": [11, 14, 11, 4, 0, 3]}}}"#;
    let old = r#"{"meta_info": {"spec_verify_ct": 40, "completion_tokens": 100}}"#;
    let mlx = r#"{"timings": {"predicted_n": 2, "draft_rounds": 1, "draft_n": 7, "draft_n_accepted": 6}}"#;
    let atom =
        r#"{"total_draft_tokens": 300, "distribution": {"0": 30, "1": 25, "2": 15, "3": 30}}"#;
    let mlc = r#"{"spec_decode": {"draft_count": [100, 100, 100], "accept_count": [70, 45, 30]}}"#;
    let iterations = r#"[{"iter": 0, "specDecodingStats": {"numDraftTokens": 12, "numAcceptedTokens": 7,
        "numRequestsWithDraftTokens": 4}}, {"iter": 1, "specDecodingStats": {"numDraftTokens": 12,
        "numAcceptedTokens": 5, "numRequestsWithDraftTokens": 4}}]"#;
    let listed = r#"{"accept_length": 2.5, "output_throughput": 90.5, "speculative_decoding_stats": {"requests": [{"stats":
        {"mode": "detailed", "verify_lengths": [6, 6, 3], "accept_lengths": [4, 5, 3], "num_accepted_draft_tokens": 9}},
        {"stats": null}, {"stats": {"verify_lengths": [6], "accept_lengths": [1]}}]}}"#;
    let tensorrt = r#"{"choices": [{"speculative_decoding": {"total_accepted_draft_tokens": 30, "total_draft_tokens": 60,
        "num_spec_steps": 20, "acceptance_histogram": [8, 0, 6, 6], "num_spec_tokens": 3}}]}"#;
    let choices = r#"{"choices": [{"stats": {"acceptance_histogram": [8, 0, 6, 6]}}]}"#;
    let capture = format!("{{\"data\": {REQUEST}}}");
    let timings = r#"{"timings": {"predicted_n": 200, "draft_n": 347, "draft_n_accepted": 65}}"#;
    let log = "INFO SpecDecoding metrics: Mean acceptance length: 2.37, Accepted throughput: 8.90 tokens/s, \
        Accepted: 89 tokens, Drafted: 195 tokens, Per-position acceptance rate: 0.600, 0.462, 0.308, Avg Draft \
        acceptance rate: 45.6%\n";
    let omlx = "vlm_mtp stats: request=e2af rounds=1079 accepted=1414/2158 (65.5%) tokens_per_round=2.31\n";
    let bench = r#"{"backend": "sglang", "completed": 100, "accept_length": 2.45}"#;
    let no_places = "SpecDecoding metrics: Mean acceptance length: 2.50, Accepted: 150 tokens, Drafted: 290 tokens";
    let cases: [(&str, Source, Option<usize>, f64, f64); 16] = [
        (listed, Source::SglangRequests, Some(5), 4.0, 9.0),
        (tensorrt, Source::TensorrtLlm, Some(3), 20.0, 30.0),
        (meta, Source::SglangRequests, Some(5), 43.0, 63.0),
        (openai, Source::SglangRequests, Some(5), 43.0, 63.0),
        (old, Source::SglangRequests, None, 40.0, 60.0),
        (mlx, Source::MlxVlm, Some(7), 1.0, 6.0),
        (atom, Source::Atom, Some(3), 100.0, 145.0),
        (mlc, Source::Mlc, Some(3), 100.0, 145.0),
        (iterations, Source::TensorrtLlm, Some(3), 8.0, 12.0),
        (choices, Source::VllmRequests, Some(3), 20.0, 30.0),
        (&capture, Source::VllmRequests, Some(3), 43.0, 10.0),
        (timings, Source::LlamaCpp, None, 134.0, 65.0),
        (log, Source::VllmLog, Some(3), 65.0, 89.0),
        (omlx, Source::OmlxLog, Some(2), 1079.0, 1414.0),
        (bench, Source::SglangBench, None, 1.0, 1.4500000000000002),
        (no_places, Source::VllmLog, None, 100.0, 150.0),
    ];
    for (text, source, length, rounds, accepted) in cases {
        let counted = read_one(text);
        assert_eq!((counted.source, counted.length), (source, length), "{text}");
        let total = counted.total();
        assert_eq!((total.rounds, total.accepted), (rounds, accepted), "{text}");
        assert_eq!(counted.rates_alone, source == Source::SglangBench);
    }
    let places = read_one(log).total().reached;
    assert_eq!(places, Some(vec![39.0, 30.0, 20.0]));
    let off = "SpecDecoding metrics: Mean acceptance length: 2.36, Accepted: 409 tokens, Drafted: 900 tokens, \
        Per-position acceptance rate: 0.600, 0.460, 0.300";
    refused(&[off], &["a: line 1: Accepted: is 409", "come to 408"]);
    assert_eq!(read_one(tensorrt).total().drafted, Some(60.0));
    let rounds = read_one(listed);
    assert_eq!(rounds.total().drafted, Some(17.0));
    let steps = rounds.clusters.iter().map(|one| one.steps.as_ref());
    let steps: Vec<_> = steps.map(|steps| steps.map(Vec::len)).collect();
    assert_eq!(steps, [Some(3), Some(1)]);
    let name = "bench.json";
    assert_eq!(throughput(&Text { name, text: listed }).unwrap(), 90.5);
    let aiperf = r#"{"output_token_throughput": {"unit": "tokens/sec", "avg": 118.0}}"#;
    assert_eq!(throughput(&Text { name, text: aiperf }).unwrap(), 118.0);
    for text in [meta, r#"{"output_throughput": 0}"#] {
        let refused = throughput(&Text { name, text }).unwrap_err().to_string();
        let words = ["bench.json says no tokens a second", "bench.json: says"];
        let is_said = words.iter().any(|words| refused.contains(words));
        assert!(is_said, "{refused}");
    }
    let histogram = r#"{"meta_info": {"spec_verify_ct": 43, "spec_num_correct_drafts": 63,
        "spec_correct_drafts_histogram": [11, 14, 11, 4, 0, 2]}}"#;
    let lengths = r#"{"stats": {"verify_lengths": [6, 0], "accept_lengths": [4, 1]}}"#;
    let sums = r#"{"stats": {"verify_lengths": [6], "accept_lengths": [4], "num_accepted_draft_tokens": 4}}"#;
    let tokens = r#"{"meta_info": {"spec_verify_ct": 43}}"#;
    let means = [
        iterations.replacen("{\"numD", "{\"acceptanceLength\": 1.5, \"numD", 1),
        meta.replace("2.465", "0"),
        openai.replace(
            "{\"spec_verify_ct",
            "{\"spec_accept_length\": 0, \"spec_verify_ct",
        ),
        REQUEST.replace("1.2325581395348837", "2.5"),
        atom.replacen('{', "{\"average_tokens_per_forward\": 2.0, ", 1),
        omlx.replace("2.31", "3.31"),
    ];
    let passes = r#"{"timings": {"draft_n": 347, "draft_n_accepted": 65}}"#;
    let more = r#"{"timings": {"predicted_n": 60, "draft_n": 347, "draft_n_accepted": 65}}"#;
    let alone = r#"{"request_perf_metrics": {"speculative_decoding": {"total_accepted_draft_tokens": 3,
        "total_draft_tokens": 9}}}"#;
    let no_mean = "SpecDecoding metrics: Accepted: 9 tokens, Drafted: 290 tokens";
    for (text, words) in [
        (histogram, "spec_verify_ct: is 43"),
        (lengths, "accept_lengths[1]: 0 of -1 are no counts"),
        (
            sums,
            "num_accepted_draft_tokens: is 4, and the rounds come to 3",
        ),
        (tokens, "completion_tokens: is missing"),
        (
            &means[0],
            "acceptanceLength: is 1.5, and 1 + accepted / rounds comes to 2.75; give both",
        ),
        (
            &means[1],
            "spec_accept_length: is 0, and 1 + accepted / rounds comes to 2.46",
        ),
        (&means[2], "spec_accept_length: is 0, and "),
        (&means[3], "mean_acceptance_length: is 2.5, and "),
        (
            &means[4],
            "average_tokens_per_forward: is 2, and 1 + accepted / rounds comes to 2.45",
        ),
        (&means[5], "line 1: tokens_per_round: is 3.31"),
        (passes, "stream = true"),
        (more, "predicted_n only 60"),
        (alone, "numRequestsWithDraftTokens"),
        (r#"{"accept_length": 0.0}"#, "no mean of tokens a round"),
        (no_mean, "the line has neither Mean acceptance length"),
        ("vlm_mtp stats: rounds=3", "line 1: lacks accepted="),
        ("data: {\"a\": 1}\n", "no counts of speculative decoding"),
        ("data: {\n", "line 1: is no JSON"),
    ] {
        refused(&[text], &[words]);
    }
}

/// Streams: the last chunk has the counts, and llama.cpp's chunks tell every round.
#[test]
fn streamed_responses() {
    let vllm = format!(
        "data: {{\"id\":\"c\",\"choices\":[]}}\n\ndata: {}\n\ndata: [DONE]\n",
        REQUEST.replace('\n', " ")
    );
    let counted = read_as(Source::VllmRequests, 3, &format!("{vllm}{vllm}"));
    assert_eq!((counted.clusters.len(), counted.total().rounds), (2, 86.0));
    let chunk = |tokens: u32, drafted: u32, accepted: u32| {
        format!(
            "data: {{\"choices\": [], \"timings\": {{\"predicted_n\": {tokens}, \"draft_n\": {drafted}, \
             \"draft_n_accepted\": {accepted}}}}}\n\n"
        )
    };
    let chunks = |all: [[u32; 3]; 4]| all.map(|[a, b, c]| chunk(a, b, c)).concat();
    let one = chunks([[1, 0, 0], [4, 3, 2], [5, 6, 2], [9, 9, 5]]);
    let counted = read_as(Source::LlamaCpp, 3, &one);
    let steps = counted.clusters[0].steps.as_ref().unwrap();
    let accepted: Vec<usize> = steps.iter().map(|step| step.accepted).collect();
    assert_eq!(accepted, [2, 0, 3]);
    // Two answers one behind the other, and one with tokens between rounds, where is not known.
    assert_eq!(read_one(&format!("{one}{one}")).clusters.len(), 2);
    let gaps = chunks([[1, 0, 0], [4, 3, 2], [9, 3, 2], [10, 6, 2]]);
    let counted = read_as(Source::LlamaCpp, 3, &gaps);
    assert_eq!(counted.total().rounds, 2.0);
    assert_eq!(counted.clusters[0].steps, None);
    let sglang = |id: &str, rounds: u32, accepted: u32| {
        format!(
            "data: {{\"meta_info\": {{\"id\": \"{id}\", \"spec_verify_ct\": {rounds}, \
             \"spec_num_correct_drafts\": {accepted}, \"spec_num_proposed_drafts\": {}}}}}\n\n",
            3 * rounds
        )
    };
    let both = [("a", 1, 1), ("a", 5, 8), ("b", 2, 3), ("b", 7, 9)];
    let both = both
        .map(|(id, rounds, accepted)| sglang(id, rounds, accepted))
        .concat();
    let counted = read_as(Source::SglangRequests, 3, &both);
    let rounds: Vec<f64> = counted.clusters.iter().map(|one| one.rounds).collect();
    assert_eq!(rounds, [5.0, 7.0]);
}

/// Statistics lines of llama.cpp have the rounds, of each request where every line has one.
#[test]
fn statistics_of_llama_cpp() {
    let request = "[53409] slot print_timing: id  1 | draft acceptance = 0.64479 (  167 accepted /   259 \
        generated), mean acceptance length =  2.92, acceptance rate per position = (0.805, 0.632, 0.483)\n";
    let statistics = "[53409] statistics     draft-eagle3: #calls(b,g,a) =    1     87     87, #gen drafts =  \
        87, #acc drafts =    70, #gen tokens =    259, #acc tokens =   167\n";
    let both = format!("{request}{statistics}");
    let counted = read_as(Source::LlamaCppLog, 3, &both);
    let total = counted.total();
    assert_eq!(total.rounds, 87.0);
    assert_eq!(total.reached, Some(vec![70.0, 55.0, 42.0]));
    assert!(counted.by_request && !has_note(&counted, "rounded"));
    // A second request counts what it added.
    let second = request
        .replace("167 acc", " 30 acc")
        .replace("259\n", "259")
        .replace("/   259", "/    60");
    let second = second.replace("(0.805, 0.632, 0.483)", "(0.700, 0.500, 0.300)");
    let later = statistics
        .replace("87,", "107,")
        .replace("259", "319")
        .replace("167", "197");
    let counted = read_one(&format!("{both}{second}{later}"));
    let rounds: Vec<f64> = counted.clusters.iter().map(|one| one.rounds).collect();
    assert_eq!(rounds, [87.0, 20.0]);
    assert_eq!(counted.clusters[1].reached, Some(vec![14.0, 10.0, 6.0]));
    // Older lines have no length; the statistics of the drafter with most rounds stand for all.
    let older = "[1] draft acceptance rate = 0.69811 (  111 accepted /   159 generated)\n\
        [1] statistics ngram-mod: #gen drafts = 7, #acc drafts = 7, #gen tokens = 448, #acc tokens = 90\n\
        [1] statistics draft-mtp: #gen drafts = 1308, #acc drafts = 1134, #gen tokens = 2602, #acc tokens = 2031\n";
    let counted = read_one(older);
    let total = counted.total();
    assert_eq!((total.rounds, total.accepted), (1308.0, 2031.0));
    assert!(has_note(&counted, "other-drafters") && !counted.by_request);
    let other = chosen(older, "drafter", "ngram-mod").unwrap().total();
    assert_eq!((other.rounds, other.accepted), (7.0, 90.0));
    let unknown = chosen(older, "drafter", "eagle");
    says(unknown, &["there are draft-mtp, ngram-mod"]);
}

/// Prometheus of servers that count otherwise than vLLM.
#[test]
fn other_servers_metrics() {
    let tensorrt = "trtllm_spec_decode_num_draft_tokens_total{engine_type=\"pytorch\"} 280\n\
        trtllm_spec_decode_drafted_tokens_total{token_position=\"0\"} 100\n\
        trtllm_spec_decode_drafted_tokens_total{token_position=\"1\"} 100\n\
        trtllm_spec_decode_drafted_tokens_total{token_position=\"2\"} 80\n\
        trtllm_spec_decode_accepted_tokens_total{token_position=\"0\"} 70\n\
        trtllm_spec_decode_accepted_tokens_total{token_position=\"1\"} 45\n\
        trtllm_spec_decode_accepted_tokens_total{token_position=\"2\"} 30\n";
    let total = read_as(Source::Prometheus, 3, tensorrt).total();
    assert_eq!((total.rounds, total.drafted), (100.0, Some(280.0)));
    assert_eq!(total.reached, Some(vec![70.0, 45.0, 30.0]));
    refused_with(
        tensorrt,
        r#"
            "1"} 100 => "1"} 101 -> drafted_tokens is 101 at position 1, and 100 before it
            "2"} 80 => "2"} 20 -> accepted_tokens is 30 at position 2, and only 20 were drafted
        "#,
    );
    let sglang = "sglang:generation_tokens_total{model_name=\"m\"} 24550.0\n\
        sglang:num_requests_total{model_name=\"m\"} 50.0\n\
        sglang:spec_verify_calls_total{model_name=\"m\"} 10000.0\n\
        sglang:spec_accept_length{model_name=\"m\"} 2.45\n";
    let counted = read_one(sglang);
    assert_eq!((counted.length, counted.total().accepted), (None, 14500.0));
    assert!(has_note(&counted, "by-tokens"));
    refused_with(
        sglang,
        r#"
            generation_tokens => other_tokens -> lacks sglang:generation_tokens_total
            24550.0 => 9000.0 -> counts 10000 calls and only 9000 tokens
        "#,
    );
    let max = "maxserve_spec_decode_acceptance_rate_per_position_bucket{position=\"0\",le=\"+Inf\"} 4\n\
        maxserve_spec_decode_acceptance_rate_per_position_sum{position=\"0\"} 300.5\n\
        maxserve_spec_decode_acceptance_rate_per_position_count{position=\"0\"} 4\n\
        maxserve_spec_decode_acceptance_rate_per_position_sum{position=\"1\"} 200\n\
        maxserve_spec_decode_acceptance_rate_per_position_count{position=\"1\"} 4\n";
    let counted = read_as(Source::Prometheus, 2, max);
    assert!(counted.rates_alone);
    assert_eq!(counted.total().reached, Some(vec![0.75125, 0.5]));
    refused_with(max, r#"300.5 => 500 -> at most 100 percent"#);
}
