//! Help: the commands in groups, an example each, their options below headings, and `-h`, which
//! fits one screen. `--help` is clap's own, with all that is to be said.

use super::colour::ends;
use super::options::OF_ALL;
use super::output::width;
use clap::builder::Styles;
use clap::{Arg, Command};
use std::ffi::{OsStr, OsString};

/// The most columns that help takes.
const WIDEST: usize = 100;

/// An example of each command, indented below what some are for.
const EXAMPLES: &str = include_str!("examples.txt");

/// The options below each heading: those that `-h` explains, and behind a bar those that it names.
const HEADINGS: &str = include_str!("headings.txt");

/// The heading of an option, and whether `-h` names it alone.
fn place(option: &str) -> Option<(&'static str, bool)> {
    let has = |names: &str| names.split_whitespace().any(|name| name == option);
    HEADINGS.lines().find_map(|line| {
        let (heading, options) = line.split_once(": ")?;
        let (explained, named) = options.split_once('|').unwrap_or((options, ""));
        (has(explained) || has(named)).then_some((heading, has(named)))
    })
}

fn examples() -> impl Iterator<Item = &'static str> {
    EXAMPLES.lines().filter_map(|line| line.strip_prefix("  "))
}

/// The example of a command, which begins with its name.
fn example(command: &str) -> Option<&'static str> {
    examples().find(|example| example.split(' ').next() == Some(command))
}

/// The command line, with its options below headings and an example for each command.
pub(super) fn arranged(program: Command) -> Command {
    program.max_term_width(WIDEST).mut_subcommands(|command| {
        let command = command.mut_args(|arg| match arg.get_long().and_then(place) {
            Some((heading, _)) => arg.help_heading(heading),
            None => arg,
        });
        let more = (command.get_after_long_help()).or(command.get_after_help());
        let more = more.map_or_else(String::new, |text| format!("\n\n{text}"));
        let example = example(command.get_name()).unwrap_or_default();
        command.after_long_help(format!("Example:\n  specgap {example}{more}"))
    })
}

/// Returns what is printed for `-h` where these arguments ask for it: help of a command, or of all.
pub(super) fn asked_short(args: &[OsString], program: Command) -> Option<String> {
    let words = args.iter().skip(1).map(|word| word.to_string_lossy());
    let mut command = None;
    for word in words.take_while(|word| word != "--") {
        if word == "--help" || (command.is_none() && word == "help") {
            return None;
        }
        let letters = word.strip_prefix('-').unwrap_or_default();
        if letters.contains('h') && letters.chars().all(|c| "vqh".contains(c)) {
            return Some(short(program, command.as_deref(), width().into()));
        }
        command = command.or_else(|| example(&word).map(|_| word.into_owned()));
    }
    None
}

/// Help on one screen: of a command, or of the program.
fn short(program: Command, name: Option<&str>, width: usize) -> String {
    let width = width.clamp(60, WIDEST);
    // What every command has is said below.
    let mut program = (program.disable_help_flag(true).disable_version_flag(true))
        .mut_args(|arg| arg.hide_short_help(true));
    program.build();
    let Some(command) = (match name {
        Some(name) => program.find_subcommand_mut(name),
        None => Some(&mut program),
    }) else {
        return String::new();
    };
    let mut out = String::new();
    if let Some(about) = command.get_about() {
        hanging(&mut out, "", 0, &about.to_string(), width);
    }
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:");
    let first = format!("\n{} ", heading("Usage"));
    hanging(&mut out, &first, 7, usage, width);
    let example = format!("specgap {}", name.and_then(example).unwrap_or("demo"));
    let first = format!("{} ", heading("Example"));
    hanging(&mut out, &first, 9, &example, width);
    out.push('\n');
    match name {
        Some(_) => options(&mut out, command, width),
        None => groups(&mut out, command, width),
    }
    out.push_str(&heading(OF_ALL));
    out.push_str(
        "\n  --format json, --threads N, --seed N, -v says more, -q less, --help says all\n",
    );
    if name.is_none() {
        out.push_str("specgap COMMAND -h has its options and an example.\n");
    }
    out
}

/// Writes what short help explains below its headings, in order, and the names of other options.
fn options(out: &mut String, command: &Command, width: usize) {
    let is_named = |arg: &&Arg| matches!(arg.get_long().and_then(place), Some((_, true)));
    let titles = HEADINGS.lines().filter_map(|line| line.split(": ").next());
    for title in std::iter::once("Arguments").chain(titles) {
        let below = |arg: &Arg| arg.get_help_heading().unwrap_or("Arguments") == title;
        let args: Vec<(String, &Arg)> = (command.get_arguments())
            .filter(|arg| below(arg) && !arg.is_hide_short_help_set() && !is_named(arg))
            .map(|arg| (arg.to_string(), arg))
            .collect();
        let Some(longest) = args.iter().map(|(label, _)| label.chars().count()).max() else {
            continue;
        };
        out.push_str(&format!("{}\n", heading(title)));
        for (label, arg) in args {
            let name = arg
                .get_long()
                .map_or_else(String::new, |long| format!("--{long}"));
            let shown = label.replacen(&name, &literal(&name), usize::from(!name.is_empty()));
            let defaults = arg.get_default_values().join(OsStr::new(" "));
            let help = arg.get_help().map_or_else(String::new, ToString::to_string);
            let mut help = clause(&help).to_owned();
            if arg.get_action().takes_values() && !defaults.is_empty() {
                help += &format!(" [default: {}]", defaults.display());
            }
            let blanks = " ".repeat(longest + 2 - label.chars().count());
            hanging(
                out,
                &format!("  {shown}{blanks}"),
                longest + 4,
                &help,
                width,
            );
        }
    }
    let names = (command.get_arguments().filter(is_named)).filter_map(Arg::get_long);
    let names: Vec<String> = names.map(|name| format!("--{name}")).collect();
    if !names.is_empty() {
        let more = format!("{} ", heading("More"));
        hanging(out, &more, 2, &names.join(", "), width);
    }
    if let Some(after) = command.get_after_help() {
        for line in after.to_string().lines() {
            hanging(out, "", 0, line, width);
        }
    }
}

/// The commands in their groups.
fn groups(out: &mut String, program: &Command, width: usize) {
    let commands = || program.get_subcommands();
    let column = 4 + commands()
        .map(|command| command.get_name().len())
        .max()
        .unwrap_or(0);
    for line in EXAMPLES.lines() {
        let Some(example) = line.strip_prefix("  ") else {
            out.push_str(&format!("{}\n", heading(line)));
            continue;
        };
        let mut named = commands().filter(|one| example.split(' ').next() == Some(one.get_name()));
        if let Some((name, about)) = named
            .next()
            .and_then(|one| Some((one.get_name(), one.get_about()?)))
        {
            let first = format!("  {}{}", literal(name), " ".repeat(column - 2 - name.len()));
            hanging(out, &first, column, &about.to_string(), width);
        }
    }
}

fn heading(text: &str) -> String {
    ends(*Styles::styled().get_header()).join(&format!("{text}:"))
}

fn literal(text: &str) -> String {
    ends(*Styles::styled().get_literal()).join(text)
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
    plain(text).chars().count()
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
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
        let [rows, columns] = [40, 80];
        let all = commands();
        assert!(all.len() > 20);
        let mut wrong = Vec::new();
        for name in all.iter().map(|name| Some(name.as_str())).chain([None]) {
            let text = plain(&short(program(), name, columns));
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
            let text = plain(&short(program(), Some(name), 80));
            for option in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let Some(long) = option.get_long() else {
                    continue;
                };
                assert!(
                    option.get_help_heading().is_some(),
                    "{name} --{long}: give it a heading"
                );
                assert!(text.contains(&format!("--{long}")), "{name} --{long}");
            }
        }
    }

    #[test]
    fn every_command_stands_in_a_group_and_its_example_is_taken() {
        let names = examples().filter_map(|one| one.split(' ').next());
        let mut grouped: Vec<&str> = names.collect();
        let mut there = commands();
        grouped.sort_unstable();
        there.sort_unstable();
        assert_eq!(grouped, there);
        for name in grouped {
            let example = example(name).unwrap();
            let line = format!("specgap {}", example.replace('"', ""));
            assert!(
                program()
                    .try_get_matches_from(line.split_whitespace())
                    .is_ok(),
                "{line}"
            );
            let text = plain(&short(program(), Some(name), 80));
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words(&text).contains(example), "{text}");
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
            asked_short(&args, program()).map(|text| plain(&text))
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
