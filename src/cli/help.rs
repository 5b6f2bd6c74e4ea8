//! Help: the commands in groups, their options below headings, an example each, and `-h`, which
//! fits one screen. `--help` is clap's own, with all that is to be said.

use super::colour::ends;
use super::options::OF_ALL;
use super::output::width;
use crate::audit::Rule;
use clap::builder::styling::Style;
use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;

/// The most columns that help takes.
pub(super) const WIDEST: usize = 100;

/// Rows and columns of the screen that `-h` fits.
#[cfg(test)]
const SCREEN: [usize; 2] = [40, 80];

const MEASURE: &str = "What to measure";
const SERVED: &str = "As served";
const EFFORT: &str = "Effort";
const OUTPUT: &str = "Output";
const COMPARING: &str = "Comparing";
const PARTS: &str = "Parts";
const MODELS: &str = "Models and prompts";
const DRAWN: &str = "How text is drawn";
const ROUNDS: &str = "Rounds";
const READ: &str = "What to read";
const ROLLOUTS: &str = "Rollouts";

/// A heading, and the options below it: those that `-h` explains, and behind a bar those that it
/// names.
type Options = (&'static str, &'static str);

/// What help says of a command beside what its options say.
struct Help {
    name: &'static str,
    /// What it is for, in the list of commands.
    words: &'static str,
    example: &'static str,
    options: &'static [Options],
}

/// The commands by what they are for.
const GROUPS: [(&str, &[Help]); 6] = [
    ("Measure logged rows", &MEASURING),
    ("Choose what to draft", &CHOOSING),
    ("Get rows", &GETTING),
    ("Test an engine", &TESTING),
    ("Exact problems", &EXACT),
    ("Look up", &LOOKING_UP),
];

const FILES: Options = (OUTPUT, "out | figures table digits columns");

const MEASURING: [Help; 3] = [
    Help {
        name: "demo",
        words: "the report of a shipped log; nothing to install",
        example: "demo --out out/demo",
        options: &[
            (MEASURE, "drafts temperature schemes verifiers"),
            (
                SERVED,
                "top-k top-p | min-p draft-temperature draft-top-k draft-top-p draft-min-p",
            ),
            (EFFORT, "plans | rrs-wo block-length timing"),
            (OUTPUT, "out"),
        ],
    },
    Help {
        name: "gap",
        words: "every verifier against the optimum",
        example: "gap log.npz --drafts 2-4 --cost-ratio 0.05 --out report",
        options: &[
            (
                MEASURE,
                "drafts temperature schemes verifiers cost-ratio timings | depth vocab",
            ),
            (
                SERVED,
                "top-k top-p | min-p draft-temperature draft-top-k draft-top-p draft-min-p",
            ),
            (EFFORT, "plans | rrs-wo block-length timing"),
            (OUTPUT, "out | positions figures table digits columns"),
            (COMPARING, "baseline paired | pool tolerance junit"),
            (PARTS, "shard partial"),
        ],
    },
    Help {
        name: "merge",
        words: "one report of parts that were measured anywhere",
        example: "merge part-1.json part-2.json --out report",
        options: &[
            FILES,
            (COMPARING, "baseline tolerance junit pool"),
            (PARTS, "partial incomplete"),
        ],
    },
];

const CHOOSING: [Help; 4] = [
    Help {
        name: "length",
        words: "how many tokens to draft",
        example: "length log --cost-ratio 0.05 --out lengths",
        options: &[
            (
                MEASURE,
                "lengths policies verifiers drafts max-length cost-ratio timings temperature vocab",
            ),
            (SERVED, "draft-top-k draft-top-p draft-min-p"),
            (OUTPUT, "out profile | figures table digits columns"),
        ],
    },
    Help {
        name: "tree",
        words: "which tree of drafts to verify",
        example: "tree log --budget 16 --cost-ratio 0.05 --out trees",
        options: &[
            (
                MEASURE,
                "topology schemes verifiers budget max-depth max-branch cost-ratio timings slot-values \
                 temperature | vocab",
            ),
            FILES,
        ],
    },
    Help {
        name: "paths",
        words: "what several draft paths could give",
        example: "paths log --paths 2-4 --out paths",
        options: &[(MEASURE, "paths length temperature vocab"), FILES],
    },
    Help {
        name: "counters",
        words: "every draft length from what a server counts",
        example: "counters metrics.txt --cost-ratio 0.05",
        options: &[
            (READ, "from where definitions"),
            (MEASURE, "cost-ratio timings timings-by-batch up-to"),
            (OUTPUT, "out profile | figures table digits columns"),
        ],
    },
];

const GETTING: [Help; 3] = [
    Help {
        name: "capture",
        words: "run two ONNX models over prompts and log their rows",
        example: "capture --target t.onnx --draft d.onnx --tokenizer tokenizer.json --prompts p.jsonl \
                  --out log",
        options: &[
            (MODELS, "target draft tokenizer prompts | chat"),
            (DRAWN, "temperature max-tokens | top-k top-p stop no-stop"),
            (EFFORT, "batch device | onnxruntime"),
            (OUTPUT, "out dtype top | rest-temperatures vocab"),
            (ROLLOUTS, "rollouts paths | every rollout-target"),
        ],
    },
    Help {
        name: "import",
        words: "exports of vLLM, SGLang, llama.cpp, transformers to a log",
        example: "import rows.jsonl --from vllm --vocab 151936 --out log",
        options: &[
            (
                READ,
                "from target draft vocab | prompt-tokens target-name draft-name",
            ),
            (
                SERVED,
                "temperature top-k top-p logprobs-mode original-logprobs",
            ),
            (OUTPUT, "out"),
        ],
    },
    Help {
        name: "decode",
        words: "decode prompts with two ONNX models, live",
        example: "decode --target t.onnx --draft d.onnx --tokenizer tokenizer.json --prompts p.jsonl \
                  --length 4",
        options: &[
            (MODELS, "target draft tokenizer prompts | chat vocab"),
            (DRAWN, "temperature max-tokens | top-k top-p stop no-stop"),
            (ROUNDS, "length paths tree verifier scheme"),
            (MEASURE, "timing predict | bound"),
            (EFFORT, "device | onnxruntime"),
            (OUTPUT, "out"),
        ],
    },
];

const TESTING: [Help; 2] = [
    Help {
        name: "audit",
        words: "whether an engine samples what it claims",
        example: "audit log --rule token --out audit",
        options: &[
            (
                MEASURE,
                "rule counters law scheme seeds tolerance level alpha positive-control negative-control",
            ),
            (
                SERVED,
                "temperature top-k top-p | min-p draft-temperature draft-cut draft-top-k draft-mask stop vocab",
            ),
            (OUTPUT, "out junit markdown | figures table digits columns"),
        ],
    },
    Help {
        name: "conformance",
        words: "test vectors for a verification kernel",
        example: "conformance --out vectors",
        options: &[(MEASURE, "vocab rules"), (OUTPUT, "out")],
    },
];

const EXACT: [Help; 5] = [
    Help {
        name: "solve",
        words: "the optimum by every method, with its certificate",
        example: "solve problems/hand",
        options: &[(OUTPUT, "out")],
    },
    Help {
        name: "certify",
        words: "check a certificate of an optimum",
        example: "certify problem.toml certificates/problem.json",
        options: &[],
    },
    Help {
        name: "verify",
        words: "every verifier: exact acceptance, gap, losslessness",
        example: "verify problems/hand/coin-two-drafts.toml",
        options: &[],
    },
    Help {
        name: "block",
        words: "blocks of draft tokens: optimum, bounds, verifiers",
        example: "block problems/golden-blocks --drafts 1-2",
        options: &[(MEASURE, "drafts")],
    },
    Help {
        name: "check",
        words: "the ledger of claims and a folder of problems",
        example: "check --problems problems --baseline baseline.json",
        options: &[
            (MEASURE, "claims problems list"),
            (OUTPUT, "out report"),
            (COMPARING, "baseline write-baseline junit"),
        ],
    },
];

const LOOKING_UP: [Help; 4] = [
    Help {
        name: "explain",
        words: "what a word of a report or a table means",
        example: "explain alpha* worth \"draft law\"",
        options: &[],
    },
    Help {
        name: "cite",
        words: "BibTeX of specgap, and of what a report uses",
        example: "cite report/report.json",
        options: &[],
    },
    Help {
        name: "schema",
        words: "JSON Schemas of files that are read and written",
        example: "schema gap",
        options: &[],
    },
    Help {
        name: "completions",
        words: "a script by which your shell completes commands",
        example: "completions bash",
        options: &[],
    },
];

/// Options beside which short help has no room for more.
const MANY_OPTIONS: usize = 16;

fn of(command: &str) -> Option<&'static Help> {
    let mut all = GROUPS.iter().flat_map(|(_, commands)| commands.iter());
    all.find(|help| help.name == command)
}

/// The headings of a command, each with the options that `-h` explains and those that it names.
fn headings(help: &'static Help) -> impl Iterator<Item = (&'static str, [Vec<&'static str>; 2])> {
    help.options.iter().map(|(heading, options)| {
        let (shown, named) = options.split_once('|').unwrap_or((options, ""));
        (
            *heading,
            [shown, named].map(|words| words.split_whitespace().collect()),
        )
    })
}

/// The heading of an option of a command.
fn heading(help: &'static Help, option: &str) -> Option<&'static str> {
    let has = |options: &[Vec<&str>; 2]| options.iter().flatten().any(|name| *name == option);
    headings(help).find_map(|(heading, options)| has(&options).then_some(heading))
}

/// The command line, with its options below headings and an example for each command.
pub(super) fn arranged(program: Command) -> Command {
    let mut program = program.max_term_width(WIDEST);
    let names: Vec<String> = (program.get_subcommands())
        .map(|command| command.get_name().to_owned())
        .collect();
    for name in names {
        let Some(help) = of(&name) else {
            continue;
        };
        program = program.mut_subcommand(name, |command| adorned(command, help));
    }
    program
}

fn adorned(command: Command, help: &'static Help) -> Command {
    let command = command.mut_args(|arg| {
        let found = arg.get_long().and_then(|name| heading(help, name));
        match found {
            Some(heading) => arg.help_heading(heading),
            None => arg,
        }
    });
    let more = (command.get_after_long_help()).or(command.get_after_help());
    let more = more.map_or_else(String::new, |text| format!("\n\n{text}"));
    let after = format!("Example:\n  specgap {}{more}", help.example);
    command.after_long_help(after)
}

/// What is printed for `-h` where these arguments ask for it: help of a command, or of all.
pub(super) fn asked_short(args: &[OsString], program: Command) -> Option<String> {
    let words = args.iter().skip(1).map(|word| word.to_string_lossy());
    let mut command = None;
    for word in words.take_while(|word| word != "--") {
        if word == "--help" || (command.is_none() && word == "help") {
            return None;
        }
        let is_short = |word: &str| {
            let letters = word.strip_prefix('-').filter(|rest| !rest.is_empty());
            letters
                .is_some_and(|rest| rest.chars().all(|c| "vqh".contains(c)) && rest.contains('h'))
        };
        if is_short(&word) {
            let command = command.map(|help: &Help| help.name);
            return Some(short(program, command, width().into()));
        }
        command = command.or_else(|| of(&word));
    }
    None
}

/// Help on one screen: of a command, or of the program.
fn short(mut program: Command, command: Option<&str>, width: usize) -> String {
    let width = width.clamp(60, WIDEST);
    program.build();
    let paint = Paint::of(&program);
    let Some(name) = command else {
        return all(&mut program, &paint, width);
    };
    let (Some(command), Some(help)) = (program.find_subcommand_mut(name), of(name)) else {
        return String::new();
    };
    let mut out = String::new();
    if let Some(about) = command.get_about() {
        wrapped(&mut out, "", &about.to_string(), "", width);
    }
    usage(&mut out, command, &paint, width);
    let example = format!("specgap {}", help.example);
    let [on, off] = paint.heading();
    out.push_str(&format!("{on}Example:{off}\n"));
    wrapped(&mut out, "  ", &example, "    ", width);
    out.push('\n');

    let args: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .collect();
    let by_name = |name: &&str| {
        let mut own = args.iter().copied();
        own.find(|arg| arg.get_long() == Some(*name))
    };
    let mut sections: Vec<(&str, Vec<&Arg>, Vec<&Arg>)> = Vec::new();
    let positional: Vec<&Arg> = (args.iter().copied())
        .filter(|arg| arg.is_positional())
        .collect();
    sections.push(("Arguments", positional, Vec::new()));
    for (heading, [shown, named]) in headings(help) {
        let [shown, named] = [shown, named].map(|names| names.iter().filter_map(by_name).collect());
        sections.push((heading, shown, named));
    }
    let shown = sections.iter().flat_map(|(_, shown, _)| shown);
    let column = shown.map(|arg| label(arg).chars().count()).max();
    let column = 4 + column.unwrap_or(0).min(28);
    for (heading, shown, named) in &sections {
        if shown.is_empty() && named.is_empty() {
            continue;
        }
        out.push_str(&format!("{on}{heading}:{off}\n"));
        for arg in shown {
            option(&mut out, arg, column, &paint, width);
        }
        if !named.is_empty() {
            let names = named.iter().filter_map(|arg| arg.get_long());
            let names: Vec<String> = names.map(|name| format!("--{name}")).collect();
            let text = format!("and {}", names.join(", "));
            wrapped(&mut out, "  ", &text, "    ", width);
        }
    }
    let short_list = args.len() < MANY_OPTIONS;
    if let Some(after) = command.get_after_help().filter(|_| short_list) {
        let after = after.to_string();
        let (text, _) = after
            .split_once("\n\nOptions there:")
            .unwrap_or((&after, ""));
        out.push('\n');
        for line in text.lines() {
            wrapped(&mut out, "", line, "", width);
        }
    }
    out.push_str(&of_all(&paint));
    out
}

/// The commands in their groups.
fn all(program: &mut Command, paint: &Paint, width: usize) -> String {
    let mut out = String::new();
    if let Some(about) = program.get_about() {
        wrapped(&mut out, "", &about.to_string(), "", width);
    }
    usage(&mut out, program, paint, width);
    let ([on, off], [bold, plain]) = (paint.heading(), paint.literal());
    out.push_str(&format!("{on}Example:{off} specgap demo\n\n"));
    let names = GROUPS.iter().flat_map(|(_, commands)| commands.iter());
    let column = names.map(|help| help.name.len()).max().unwrap_or(0) + 4;
    for (group, commands) in &GROUPS {
        out.push_str(&format!("{on}{group}:{off}\n"));
        for help in *commands {
            let gap = " ".repeat(column - 2 - help.name.len());
            let first = format!("  {bold}{}{plain}{gap}", help.name);
            hanging(&mut out, &first, column, help.words, width);
        }
    }
    out.push_str(&of_all(paint));
    out.push_str("specgap COMMAND -h has its options and an example.\n");
    out
}

/// Options of every command, in a few words.
fn of_all(paint: &Paint) -> String {
    let [on, off] = paint.heading();
    format!(
        "{on}{OF_ALL}:{off}\n  --format json, --threads N, --seed N, -v says more, -q less, --help says \
         all\n"
    )
}

fn usage(out: &mut String, command: &mut Command, paint: &Paint, width: usize) {
    let text = command.render_usage().to_string();
    let text = text.trim_start_matches("Usage:").trim();
    let [on, off] = paint.heading();
    out.push('\n');
    hanging(out, &format!("{on}Usage:{off} "), 7, text, width);
}

/// An option with its first clause.
fn option(out: &mut String, arg: &Arg, column: usize, paint: &Paint, width: usize) {
    let label = label(arg);
    let [on, off] = paint.literal();
    let first = format!("  {on}{label}{off}");
    let taken = 2 + label.chars().count();
    let help = arg.get_help().map_or_else(String::new, ToString::to_string);
    let mut text = clause(&help).to_owned();
    if arg.get_long() == Some("rule") {
        let rules: Vec<&str> = Rule::entries().map(|rule| rule.name).collect();
        text.push_str(&format!(": {}", rules.join(", ")));
    }
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|one| one.to_string_lossy()).collect();
    if takes_value(arg) && !defaults.is_empty() && defaults.len() < 3 {
        text.push_str(&format!(" [{}]", defaults.join(" ")));
    }
    if taken + 2 > column {
        out.push_str(&format!("{first}\n"));
        hanging(out, &" ".repeat(column), column, &text, width);
    } else {
        let gap = " ".repeat(column - taken);
        hanging(out, &format!("{first}{gap}"), column, &text, width);
    }
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// What an option is called, with its value.
fn label(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| format!("<{name}>"));
    let value = value.collect::<Vec<_>>().join(" ");
    match arg.get_long() {
        Some(long) if takes_value(arg) => format!("--{long} {value}"),
        Some(long) => format!("--{long}"),
        None => value,
    }
}

/// The beginning of a help text, up to where it goes into detail.
fn clause(help: &str) -> &str {
    // A word or two before a colon are no sentence.
    const SHORTEST: usize = 16;
    let ends = ["; ", ": ", " [default", " (docs/", ", so that ", ", which "];
    let found = ends.iter().filter_map(|end| {
        let mut places = help.match_indices(end).map(|(place, _)| place);
        places.find(|place| *place >= SHORTEST)
    });
    // Not behind an abbreviation.
    let sentence = (help.match_indices(". ")).find(|(place, _)| {
        !help
            .get(..*place)
            .is_some_and(|before| before.ends_with("i.i.d"))
    });
    let end = found.chain(sentence.map(|(place, _)| place)).min();
    help.get(..end.unwrap_or(help.len())).unwrap_or(help)
}

/// Appends a paragraph: `first` before it, `next` before each line but the first.
fn wrapped(out: &mut String, first: &str, text: &str, next: &str, width: usize) {
    hanging(out, first, next.len(), text, width);
}

/// Appends `first`, which may have styles, and a text whose lines begin at a column.
fn hanging(out: &mut String, first: &str, column: usize, text: &str, width: usize) {
    out.push_str(first);
    let mut at = plain_width(first);
    let mut fresh = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !fresh && at + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(column));
            at = column;
            fresh = true;
        }
        if !fresh {
            out.push(' ');
            at += 1;
        }
        out.push_str(word);
        at += length;
        fresh = false;
    }
    out.push('\n');
}

/// Columns that a text takes on a terminal.
fn plain_width(text: &str) -> usize {
    anstream::adapter::strip_str(text)
        .to_string()
        .chars()
        .count()
}

/// How clap writes headings and options.
struct Paint {
    heading: Style,
    literal: Style,
}

impl Paint {
    fn of(program: &Command) -> Self {
        let styles = program.get_styles();
        Self {
            heading: *styles.get_header(),
            literal: *styles.get_literal(),
        }
    }

    fn heading(&self) -> [String; 2] {
        ends(self.heading)
    }

    fn literal(&self) -> [String; 2] {
        ends(self.literal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::program;

    fn commands() -> Vec<String> {
        let program = program();
        let names = program
            .get_subcommands()
            .map(|one| one.get_name().to_owned());
        names.collect()
    }

    #[test]
    fn short_help_of_every_command_fits_one_screen() {
        let [rows, columns] = SCREEN;
        let all = commands();
        assert!(all.len() > 20);
        let mut wrong = Vec::new();
        for name in all.iter().map(|name| Some(name.as_str())).chain([None]) {
            let text = anstream::adapter::strip_str(&short(program(), name, columns)).to_string();
            assert!(text.contains("Usage: specgap"), "{text}");
            let long = |line: &str| line.chars().count() > columns;
            if text.lines().count() > rows || text.lines().any(long) {
                wrong.push(format!("{} rows\n{text}", text.lines().count()));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_option_stands_below_a_heading_and_is_named_in_short_help() {
        for command in program().get_subcommands() {
            let name = command.get_name();
            let text = short(program(), Some(name), 80);
            for option in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let Some(long) = option.get_long() else {
                    continue;
                };
                assert!(
                    option.get_help_heading().is_some(),
                    "{name} --{long}: give it a heading"
                );
                let plain = anstream::adapter::strip_str(&text).to_string();
                assert!(plain.contains(&format!("--{long}")), "{name} --{long}");
            }
        }
    }

    #[test]
    fn every_command_stands_in_a_group_and_its_example_is_taken() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, commands)| commands.iter().map(|help| help.name))
            .collect();
        let mut there = commands();
        grouped.sort_unstable();
        there.sort_unstable();
        assert_eq!(grouped, there);
        for name in grouped {
            let help = of(name).unwrap();
            let line = format!("specgap {}", help.example.replace('"', ""));
            assert!(
                program()
                    .try_get_matches_from(line.split_whitespace())
                    .is_ok(),
                "{line}"
            );
            let text = anstream::adapter::strip_str(&short(program(), Some(name), 80)).to_string();
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words(&text).contains(&words(help.example)), "{text}");
        }
    }

    #[test]
    fn a_clause_ends_where_detail_begins() {
        for (help, expected) in [
            (
                "Numbers of drafts, 1 to 64; 2-4 is 2,3,4",
                "Numbers of drafts, 1 to 64",
            ),
            (
                "Logs: .npz files, or folders",
                "Logs: .npz files, or folders",
            ),
            (
                "Plans of i.i.d. drafts. That they are",
                "Plans of i.i.d. drafts",
            ),
            ("The draft model", "The draft model"),
        ] {
            assert_eq!(clause(help), expected);
        }
    }

    #[test]
    fn the_first_flag_decides_which_help_it_is() {
        let asked = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(Into::into).collect();
            asked_short(&args, program())
                .map(|text| anstream::adapter::strip_str(&text).to_string())
        };
        assert!(
            asked("specgap gap -h")
                .unwrap()
                .contains("specgap gap [OPTIONS]")
        );
        assert!(
            asked("specgap --format json gap -vh")
                .unwrap()
                .contains("--drafts")
        );
        assert!(
            asked("specgap -h")
                .unwrap()
                .contains("Choose what to draft:")
        );
        for line in [
            "specgap gap --help",
            "specgap help gap",
            "specgap gap --help -h",
            "specgap gap -- -h",
        ] {
            assert_eq!(asked(line), None, "{line}");
        }
    }
}
