//! The reference of commands and options, from what clap knows of them.

use super::cell;
use crate::cli::program;
use crate::once::each_once;
use clap::{Arg, ArgAction, Command};
use std::collections::BTreeMap;

/// Returns what an option is called, with its value.
fn label(arg: &Arg) -> String {
    let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| format!("<{name}>"));
    let value = value.collect::<Vec<_>>().join(" ");
    match (arg.get_short(), arg.get_long()) {
        (_, None) => match arg.is_required_set() {
            true => value,
            false => format!("[{value}]"),
        },
        (short, Some(long)) => {
            let short = short.map_or(String::new(), |short| format!("-{short}, "));
            let value = match takes && !value.is_empty() {
                true => format!(" {value}"),
                false => String::new(),
            };
            format!("{short}--{long}{value}")
        }
    }
}

/// Says what an option does, its default and the values that it takes.
fn meaning(arg: &Arg) -> String {
    // A list is for the terminal alone.
    let whole = arg
        .get_long_help()
        .filter(|help| !help.to_string().contains("\n-"));
    let help = whole
        .or(arg.get_help())
        .map_or(String::new(), ToString::to_string);
    let mut text = cell(help.trim_end_matches('.'));
    let quoted = |names: Vec<String>| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let values = arg.get_possible_values();
    let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
    let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    if takes && !values.is_empty() && values.len() <= 12 {
        let names = values.iter().map(|value| value.get_name().to_owned());
        text.push_str(&format!(". One of {}", quoted(names.collect())));
    }
    let defaults = arg.get_default_values();
    if takes && !defaults.is_empty() {
        let names = defaults.iter();
        let names = names.map(|name| name.to_string_lossy().into_owned());
        text.push_str(&format!(". Default {}", quoted(names.collect())));
    }
    for alias in arg.get_visible_aliases().unwrap_or_default() {
        text.push_str(&format!(". Also `--{alias}`"));
    }
    text
}

/// The row of an option in a table.
fn row(arg: &Arg) -> String {
    format!("|`{}`|{}|\n", label(arg), meaning(arg))
}

/// A table of options, apart where help puts them below headings of their own. Options that
/// mean the same in an earlier command are named after it.
fn table(command: &str, args: &[&Arg], earlier: &mut BTreeMap<String, String>) -> String {
    let mut same: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut own: Vec<&Arg> = Vec::new();
    for arg in args {
        let first = earlier
            .entry(row(arg))
            .or_insert_with(|| command.to_owned());
        if first == command {
            own.push(arg);
        } else {
            let label = label(arg);
            let name = label.split(" <").next().unwrap_or(&label).to_owned();
            same.entry(first.clone())
                .or_default()
                .push(format!("`{name}`"));
        }
    }
    let mut text = String::new();
    let mut headings = each_once(own.iter().map(|arg| arg.get_help_heading()));
    // What stands below none comes first.
    headings.sort_by_key(Option::is_some);
    for heading in headings {
        if let Some(heading) = heading {
            text.push_str(&format!("\n{heading}:\n"));
        }
        text.push_str("\n|option|meaning|\n|---|---|\n");
        for arg in own.iter().filter(|arg| arg.get_help_heading() == heading) {
            text.push_str(&row(arg));
        }
    }
    for (first, names) in same {
        text.push_str(&format!(
            "\nAs for [{first}](#{first}): {}.\n",
            names.join(", ")
        ));
    }
    text
}

fn shown(command: &Command, global: bool) -> Vec<&Arg> {
    let own = command.get_arguments();
    let own = own.filter(|arg| arg.is_global_set() == global && !arg.is_hide_set());
    own.collect()
}

/// Every command with its options.
pub(super) fn options() -> String {
    let program = program();
    let mut earlier = BTreeMap::new();
    let mut text = String::from("\n\n## Options of all commands\n");
    text.push_str(&table("", &shown(&program, true), &mut earlier));
    // The demo is a report of a log, with fewer options.
    let mut commands: Vec<&Command> = program.get_subcommands().collect();
    commands.sort_by_key(|command| command.get_name() == "demo");
    for command in commands {
        let name = command.get_name();
        text.push_str(&format!("\n## {name}\n"));
        if let Some(about) = command.get_about() {
            let about = cell(&about.to_string());
            text.push_str(&format!("\n{}.\n", about.trim_end_matches('.')));
        }
        text.push_str(&table(name, &shown(command, false), &mut earlier));
    }
    text.push('\n');
    text
}
