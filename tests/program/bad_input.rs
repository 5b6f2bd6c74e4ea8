//! Is bad input refused with exit code 2 and a message that names the file, the
//! field, the entry and the limit? And does no input panic?

use crate::run::{cases, specgap};
use proptest::prelude::*;
use specgap::problem::{parse_json, parse_toml};

/// A valid problem, with the given line put in place of the one that starts with
/// the same word.
fn toml_with(line: &str) -> String {
    let word = line.split(['=', ' ']).next().unwrap_or_default();
    let valid = [
        "schema = 1",
        "name = \"p\"",
        "target = [0.5, 0.25, 0.25]",
        "drafts = 2",
        "[draft]",
        "scheme = \"with-replacement\"",
        "q = [0.25, 0.25, 0.5]",
    ];
    let lines: Vec<&str> = valid
        .iter()
        .map(|&old| {
            if old.split(['=', ' ']).next() == Some(word) {
                line
            } else {
                old
            }
        })
        .collect();
    lines.join("\n")
}

/// A file with this name and text is refused by its name, with all of these words.
fn refuse(name: &str, text: &str, wanted: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    specgap(folder.path(), ["solve", name]).refused(&[&[name], wanted].concat());
}

const ENTRIES: &str = r#"
    schema = 2 -> schema is 2 | schema 1
    schema = "one" -> schema | invalid type
    name = "" -> name
    target = [] -> target | empty
    target = [0.5, nan, 0.5] -> target | entry 1 | finite
    target = [0.5, inf, 0.5] -> target | entry 1 | finite
    target = [0.5, -0.1, 0.6] -> target | entry 1 | -0.1 | >= 0
    target = ["1/2", "-1/2", "1"] -> target | entry 1 | -1/2 | >= 0
    target = ["1/2", nan, "1/2"] -> target | entry 1 | finite
    target = [0.5, 0.25, 0.2] -> target | sum to 0.95 | 1e-6
    target = ["1/2", "1/4", "1/5"] -> target | sum to 0.95
    target = [0.0, 0.0, 0.0] -> target | sum to 0
    # The sum overflows, and no comparison with what it then is holds.
    target = [1e308, 1e308, 0.0] -> target | sum to inf | 1e-6
    q = [1e308, 1e308, 0.0] -> draft.q | sum to inf
    target = ["1/2", "1/0", "1/2"] -> target | entry 1 | zero
    target = ["1/2", "1/x", "1/2"] -> target | entry 1 | fraction
    target = ["1/2", "", "1/2"] -> target | entry 1
    target = ["1/2", "1e999999", "1/2"] -> target | entry 1 | too large
    target = [0.5, true, 0.5] -> target[1] | a number
    target = [0.5, 0.5] -> draft.q | 3 | length of target
    target = 0.5 -> target | sequence
    drafts = 0 -> drafts is 0 | 1..=64
    drafts = 65 -> drafts is 65 | 1..=64
    drafts = -3 -> drafts is -3 | 1..=64
    drafts = 1.5 -> drafts | 1.5
    drafts = 99999999999999999999 -> drafts
    scheme = "without" -> draft.scheme | without | with-replacement
    scheme = "without-replacement"\ncolour = 3 -> draft | colour
    scheme = "product" -> draft.q | draft.qs
    scheme = "explicit" -> draft.q | draft.tuples
    q = [0.5, 0.5] -> draft.q | 2 | must be 3
    q = [0.5, 0.6, -0.1] -> draft.q | entry 2 | -0.1
    q = [0.5, 0.5, 0.0]\nqs = [[0.5, 0.5, 0.0]] -> draft.qs | draft.q
    q = [0.5, 0.5, 0.0]\nq = [0.5, 0.5, 0.0] -> duplicate key
    target = [0.5, 0.25, 0.25 -> line 4
    drafts = 2\nbogus = 1 -> bogus | unknown field
"#;

#[test]
fn refused_entries_name_field_entry_and_limit() {
    for (line, wanted) in cases(ENTRIES) {
        refuse("bad.toml", &toml_with(&line), &wanted);
    }
}

const SCHEMES: &str = r#"
    drafts = 2\n -> draft is missing
    drafts = 2\n[draft]\nq = [0.5, 0.5] -> draft.scheme is missing
    drafts = 2\n[draft]\nscheme = "greedy" -> draft.q is missing
    drafts = 3\n[draft]\nscheme = "without-replacement"\nq = [0.5, 0.5] -> drafts is 3 | 2 tokens | distinct
    drafts = 3\n[draft]\nscheme = "distinct-conditioned"\nq = [0.5, 0.5] -> drafts is 3 | distinct
    drafts = 3\n[draft]\nscheme = "greedy"\nq = [0.5, 0.5] -> drafts is 3
    drafts = 1\n[draft]\nscheme = "hub"\nq = [0.5, 0.5] -> drafts is 1 | hub
    drafts = 2\n[draft]\nscheme = "product"\nqs = [[0.5, 0.5]] -> draft.qs | is 1 | number of drafts
    drafts = 2\n[draft]\nscheme = "product"\nqs = [[0.5, 0.5], [1.0]] -> draft.qs[1] | length of target
    drafts = 2\n[draft]\nscheme = "product"\nqs = [[0.5, 0.5], [0.5, -0.5]] -> draft.qs[1] | entry 1 | -0.5
    drafts = 2\n[draft]\nscheme = "explicit"\ntuples = [[0, 1], [1]]\nprobabilities = [0.5, 0.5] -> draft.tuples | tuple 1 | 1 tokens
    drafts = 2\n[draft]\nscheme = "explicit"\ntuples = [[0, 1], [1, 2]]\nprobabilities = [0.5, 0.5] -> draft.tuples | tuple 1 | token 2 | 0..2
    drafts = 2\n[draft]\nscheme = "explicit"\ntuples = [[0, -1]]\nprobabilities = [1.0] -> draft.tuples | tuple 0 | token -1
    drafts = 2\n[draft]\nscheme = "explicit"\ntuples = [[0, 1]]\nprobabilities = [0.5, 0.5] -> draft.tuples | 1 tuples | 2 probabilities
    drafts = 2\n[draft]\nscheme = "explicit"\ntuples = []\nprobabilities = [] -> draft.tuples: the list is empty
    drafts = 2\n[draft]\nscheme = "explicit"\ntuples = [] -> draft.tuples: the list is empty
    drafts = 2\n[draft]\nscheme = "explicit"\ntuples = [[0, 1]]\nprobabilities = [] -> draft.probabilities | empty
    drafts = 1\n[draft]\nscheme = "explicit"\ntuples = [[0, 1]]\nprobabilities = [1.0] -> draft.tuples | drafts is 1
"#;

#[test]
fn refused_schemes_name_what_they_need() {
    let head = "schema = 1\nname = \"p\"\ntarget = [0.5, 0.5]\n";
    for (tail, wanted) in cases(SCHEMES) {
        refuse("bad.toml", &format!("{head}{tail}"), &wanted);
    }
    // Of a law that takes two drafts alone, fewer of them are no cure.
    let one =
        "schema = 1\nname = \"p\"\ntarget = [1]\ndrafts = 2\n[draft]\nscheme = \"hub\"\nq = [1]";
    refuse(
        "bad.toml",
        one,
        &["scheme hub", "it needs 2 tokens at least"],
    );
}

const COMPOSITIONS: &str = r#"
    { drafts = 2 } -> draft.law.law is missing | union, mixture
    { law = "iid" } -> draft.law.law | "iid" | with-replacement
    { law = "fixed", drafts = 2 } -> draft.law.drafts | law fixed | tokens
    { law = "fixed", size = 2 } -> size | unknown field
    { law = "fixed", tokens = [0, 3] } -> draft.law.tokens[1] is 3 | 0..=2
    { law = "fixed", tokens = [] } -> draft.law | never drafts
    { law = "union", of = [] } -> draft.law.of | empty
    { law = "union", of = [{ law = "top", drafts = 1 }, { law = "top" }] } -> draft.law.of[1].drafts is missing
    { law = "without-replacement", drafts = 4 } -> draft.law.drafts is 4 | 1..=3 | distinct
    { law = "without-replacement", drafts = 2, stop = 0 } -> draft.law | stop is 0 | 1e-9
    { law = "with-replacement", drafts = 2, stop = 1 } -> draft.law.stop | with-replacement
    { law = "with-replacement", drafts = 2, q = [0.5, 0.5] } -> entries of draft.law.q is 2 | must be 3
    { law = "with-replacement", drafts = 2, top_p = 1.5 } -> draft.law.top_p is 3/2 | (0, 1]
    { law = "with-replacement", drafts = 2, avoid = [0, 1, 2] } -> draft.law | avoid_top | empty
    { law = "with-replacement", drafts = 2, avoid = [0], avoid_top = 2 } -> draft.law | avoid_top | empty
    { law = "with-replacement", drafts = 1 } -> drafts is 2 | must be 1, | draft.law
    { law = "poisson", chances = [0.5, 0.5] } -> entries of draft.law.chances is 2
    { law = "poisson", chances = [0.5, 1.5, 0] } -> draft.law | chances[1] is 3/2 | [0, 1]
    { law = "mixture", weights = [1], of = [{ law = "top", drafts = 2 }, { law = "top", drafts = 1 }] } -> draft.law.weights is 1 | must be 2,
    { law = "mixture", weights = [1, -1], of = [{ law = "top", drafts = 2 }, { law = "top", drafts = 1 }] } -> draft.law | weights[1] is -1 | above 0
    { law = "avoiding", tokens = [0], of = [{ law = "top", drafts = 2 }] } -> draft.law | every draw holds one of the tokens to avoid
    { law = "merged", into = [0, 1, 2, 2], of = [{ law = "top", drafts = 2 }] } -> draft.law.of[0].q is missing | draft.q
"#;

#[test]
fn refused_compositions_name_the_part() {
    let with_q = "drafts = 2\n[draft]\nscheme = \"composed\"\nq = [0.5, 0.25, 0.25]\nlaw = ";
    let head = "schema = 1\nname = \"p\"\ntarget = [0.5, 0.25, 0.25]\n";
    for (law, wanted) in cases(COMPOSITIONS) {
        refuse("bad.toml", &format!("{head}{with_q}{law}"), &wanted);
    }
    refuse(
        "bad.toml",
        &format!("{head}drafts = 2\n[draft]\nscheme = \"composed\"\nq = [0.5, 0.25, 0.25]"),
        &["draft.law is missing"],
    );
    refuse(
        "bad.toml",
        &toml_with("q = [0.25, 0.25, 0.5]\nlaw = { law = \"top\", drafts = 2 }"),
        &["draft.law does not belong here", "draft.q"],
    );
    // Deeper than any law.
    let mut nested = "{ law = \"top\", drafts = 2 }".to_owned();
    for _ in 0..40 {
        nested = format!("{{ law = \"union\", of = [{nested}] }}");
    }
    refuse(
        "bad.toml",
        &format!("{head}{with_q}{nested}"),
        &["bad.toml"],
    );
}

const EXPECTATIONS: &str = r#"
    optimal_acceptance_rate = "15/" -> expected.optimal_acceptance_rate | 15/
    optimal_acceptance_rate = 1.5 -> expected.optimal_acceptance_rate | [0, 1]
    optimal_acceptance_rate = nan -> expected.optimal_acceptance_rate | finite
    tolerance = -1.0 -> expected.tolerance | [0, inf)
    certainty = 1 -> certainty | unknown field
    block_lp = 0.5 -> expected.block_lp | block problems
    [expected.acceptance_rate]\nrrr = 0.5 -> bad.toml: expected.acceptance_rate: "rrr" is not a verifier; choose one of token, rrs,
    [expected.acceptance_rate]\nrrs = -0.5 -> expected.acceptance_rate.rrs | [0, 1]
"#;

#[test]
fn refused_expectations_name_the_field() {
    for (line, wanted) in cases(EXPECTATIONS) {
        let text = format!("{}\n[expected]\n{line}", toml_with("drafts = 2"));
        refuse("bad.toml", &text, &wanted);
    }
}

#[test]
fn refused_block_problems_name_the_prefix() {
    let head = "schema = 1\nname = \"b\"\n[block]\nvocab = 2\nlength = 2\n";
    let draft = "[block.draft]\n\"\" = [0.5, 0.5]\n\"0\" = [0.5, 0.5]\n\"1\" = [0.5, 0.5]\n";
    let target = draft.replace("draft", "target");
    let whole = format!("{head}{target}{draft}");
    // What stands in the problem, what is put in its last place, and words of the refusal.
    let changes = r#"
        "1" = [0.5, 0.5] => "2" = [0.5, 0.5] -> block | prefix "2"
        "1" = [0.5, 0.5] => "0  1" = [0.5, 0.5] -> block | prefix "0  1"
        "0" = [0.5, 0.5]\n"1" = [0.5, 0.5] => -> block | prefix "0"
        0.5, 0.5 => 1.0 -> block | 1 entries
        0.5, 0.5 => 0.5, 0.6 -> block | sum to
        0.5, 0.5 => 1e308, 1e308 -> block | sum to inf
        length = 2 => length = 60 -> block | million
        vocab = 2 => vocab = 0 -> block | block.vocab
    "#;
    for (change, words) in cases(changes) {
        let (from, to) = change.split_once(" =>").unwrap();
        let at = whole.rfind(from).unwrap_or_else(|| panic!("{from}"));
        let mut text = whole.clone();
        text.replace_range(at..at + from.len(), to.trim_start());
        refuse("bad.toml", &text, &words);
    }
    refuse("bad.toml", &format!("{head}{draft}"), &["block", "target"]);
    // Expectations stand beside the block.
    let expectations = r#"
        [expected]\nblock_lp = nan -> expected | expected.block_lp is NaN
        [expected.spectr_gbv]\nexpected_accepted_length = inf -> expected.spectr_gbv.expected_accepted_length is inf
    "#;
    for (table, words) in cases(expectations) {
        refuse("bad.toml", &format!("{whole}{table}\n"), &words);
    }
    // A whole block problem is for another command.
    refuse("block.toml", &whole, &["block problem", "specgap block"]);
}

#[test]
fn json_is_refused_like_toml() {
    let valid = r#"{"schema":1,"name":"p","target":[0.5,0.5],"drafts":2,
        "draft":{"scheme":"with-replacement","q":[0.75,0.25]}}"#;
    assert!(parse_json(valid).is_ok());
    refuse(
        "bad.json",
        &valid.replace("0.75", "-0.75"),
        &["draft.q", "entry 0", "-0.75"],
    );
    refuse(
        "bad.json",
        &valid.replace("0.75", "1e999"),
        &["out of range"],
    );
    refuse(
        "bad.json",
        &valid.replace("0.75", "null"),
        &["draft.q[0]", "a number"],
    );
    refuse(
        "bad.json",
        &valid.replace("\"drafts\":2", "\"drafts\":2,\"x\":1"),
        &["unknown field"],
    );
    refuse("bad.json", &format!("{valid} {valid}"), &["trailing"]);
    refuse("bad.json", &valid[..40], &["EOF"]);
    refuse("bad.json", "", &["EOF"]);
    // Lists of values are no tables, wherever a table stands; by serde alone they would be.
    let listed =
        r#"[1,"x",["1/2","1/2"],2,{"scheme":"with-replacement","q":["1/2","1/2"]},null,null,null]"#;
    for text in ["[]", "null", listed] {
        refuse("bad.json", text, &["an object with named fields"]);
    }
    let draft = r#"{"scheme":"with-replacement","q":[0.75,0.25]}"#;
    let list = r#"["with-replacement",[0.75,0.25],null,null,null,null,null]"#;
    refuse(
        "bad.json",
        &valid.replace(draft, list),
        &["draft: invalid type: sequence", "named fields"],
    );
    for (number, word) in [
        ("NaN", "NaN"),
        ("-Infinity", "Infinity"),
        ("Infinity", "Infinity"),
    ] {
        refuse(
            "bad.json",
            &valid.replace("[0.5,", &format!("[{number},")),
            &["target[0]: ", word, "JSON has no such number", "finite"],
        );
    }
    // No key stands twice, in maps either, of which serde would keep the last.
    let twice = r#"
        "drafts":2, -> "drafts":2,"drafts":2, -> duplicate field `drafts`
        "draft": -> "expected":{"acceptance_rate":{"rrs":"1/9","rrs":"1"}},"draft": -> expected.acceptance_rate: key "rrs" is there twice
        "draft": -> "rule":{"name":"r","outputs":{"0 0":[0,1],"0 0":[1,0]}},"draft": -> rule.outputs: key "0 0" is there twice
    "#;
    for (change, words) in cases(twice) {
        let (to, words) = (words[0].split_once(" -> ")).unwrap();
        refuse("bad.json", &valid.replace(&*change, to), &[words]);
    }
    let rows = r#"{"":["1/2","1/2"],"":["1","0"]}"#;
    let blocks = format!(
        r#"{{"schema":1,"name":"b","drafts":1,"block":{{"vocab":2,"length":1,"target":{rows},"draft":{rows}}}}}"#
    );
    refuse(
        "bad.json",
        &blocks,
        &["block.target: key \"\" is there twice"],
    );
    // A byte order mark is no part of the text.
    refuse("bad.json", "\u{feff}{", &["EOF"]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.json"), format!("\u{feff}{valid}")).unwrap();
    specgap(folder.path(), ["solve", "p.json"]).ok();
}

#[test]
fn refused_paths_say_what_they_are() {
    refuse("problem.txt", "schema = 1", &[".toml or .json"]);
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| specgap(folder.path(), args);
    run(&["solve", "."]).refused(&["no .toml or .json"]);
    run(&["solve", "missing.toml"]).refused(&["missing.toml", "cannot be read"]);
    std::fs::write(folder.path().join("latin.toml"), b"name = \"\xe9\"").unwrap();
    run(&["solve", "."]).refused(&["latin.toml"]);
    for usage in [
        &["solve"][..],
        &["bogus"],
        &["solve", "--format", "xml", "x"],
    ] {
        run(usage).refused(&[]);
    }
    // Nothing at all asks for help.
    assert_eq!(run(&[]).code, Some(2));
}

/// A message that quotes what is wrong can be read however long that is, and still begins with
/// the file.
#[test]
fn a_message_is_not_as_long_as_what_it_quotes() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(50_000);
    for (name, text) in [
        ("field.json", format!("{{\"schema\":1,\"{long}\":3}}")),
        ("scheme.toml", toml_with(&format!("scheme = \"{long}\""))),
        (
            "target.toml",
            toml_with(&format!("target = [\"{long}\", 0.5]")),
        ),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
        let run = specgap(folder.path(), ["solve", name]);
        run.refused(&[name]);
        assert!(run.err.len() < 2_500, "{} characters", run.err.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever stands in a file, reading it ends in a problem or an error.
    #[test]
    fn no_text_panics(text in "\\PC*", cut in any::<prop::sample::Index>()) {
        let _ = parse_toml(&text);
        let _ = parse_json(&text);
        let valid = toml_with("drafts = 2");
        let at = cut.index(valid.len());
        let _ = parse_toml(&format!("{}{text}", &valid[..at]));
        let _ = parse_toml(&format!("{text}{}", &valid[at..]));
    }

    #[test]
    fn no_number_panics(
        a in any::<f64>(), b in "[-+0-9./eE]{0,12}", drafts in any::<i64>(), c in any::<f64>(),
    ) {
        let _ = parse_toml(&toml_with(&format!("target = [{a:?}, \"{b}\", {c:?}]")));
        let _ = parse_toml(&toml_with(&format!("drafts = {drafts}")));
    }
}
