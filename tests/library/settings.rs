//! Do refusals of the members name settings, which who prints them spells, and no shell's options?

use clap::CommandFactory;
use std::collections::BTreeSet;
use std::path::Path;

/// Lines of a file that name options as they are typed, and why.
const TYPED: &str = "
    changes.rs cuts.rs settings.rs summary.rs whole.rs: commands that reports record
    summary_file.rs paths/measure.rs: a command that is told for a shell
    programs.rs: options of cargo
    engines.rs forms.rs lists.rs llama_cpp_log.rs notes.rs options.rs requests.rs: options of engines
    conclude.rs family.rs parts.rs prometheus.rs speculators.rs verdict/measure.rs verdict/whole.rs: words of \
    reports, which are of commands
    left_out.rs trees/measure.rs: commands that log rollouts, as a report has them
";

fn read(folder: &Path, each: &mut impl FnMut(&str, &str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            read(&path, each);
        } else if name.ends_with(".rs") && !name.contains("test") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let lines = code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            lines.for_each(|line| each(&name, line));
        }
    }
}

#[test]
fn members_name_no_options_and_settings_that_there_are() {
    let mut typed = BTreeSet::new();
    let mut settings = BTreeSet::new();
    let mut each = |file: &str, line: &str| {
        let mut words = line.split("--").skip(1);
        let before = |at: &str| at.starts_with(|c: char| c.is_ascii_lowercase());
        // What a report says is of commands.
        let is_member = file.starts_with("crates") && !file.starts_with("crates/report");
        if is_member && words.any(before) && !line.contains("---") {
            typed.insert(file.to_owned());
        }
        for setting in line.split('⟨').skip(1) {
            let name = setting.split(['⟩', ' ']).next().unwrap();
            settings.insert(name.to_owned());
        }
    };
    read(Path::new("crates"), &mut each);
    read(Path::new("src/cli"), &mut each);
    let why: BTreeSet<&str> = TYPED.split([' ', ':', '\n']).collect();
    let unknown = |file: &&String| {
        !why.iter()
            .any(|one| one.ends_with(".rs") && file.ends_with(one))
    };
    let found: Vec<_> = typed.iter().filter(unknown).collect();
    assert!(
        found.is_empty(),
        "name settings as ⟨this⟩ (base/src/setting.rs): {found:?}"
    );
    let all = specgap::cli::Cli::command();
    let commands = all.get_subcommands().chain([&all]);
    let mut options: BTreeSet<&str> = commands
        .flat_map(|command| command.get_arguments().filter_map(clap::Arg::get_long))
        .collect();
    // Of capture, which is in builds with models.
    options.insert("path-length");
    let strange = |name: &&String| {
        !options.contains(name.as_str()) && name.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    };
    let strange: Vec<_> = settings.iter().filter(strange).collect();
    assert!(settings.len() > 40 && strange.is_empty(), "{strange:?}");
}
