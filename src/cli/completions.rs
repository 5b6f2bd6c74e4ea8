//! `specgap completions`: a script by which a shell completes commands and options.

use super::output::{CliError, Verdict};
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::Write;

/// Arguments of `specgap completions`.
#[derive(Args, Debug)]
#[command(after_help = "For example, once:\n  \
    bash: specgap completions bash > ~/.local/share/bash-completion/completions/specgap\n  \
    zsh:  specgap completions zsh > ~/.zfunc/_specgap    (with ~/.zfunc in fpath before compinit)\n  \
    fish: specgap completions fish > ~/.config/fish/completions/specgap.fish")]
pub(super) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script for a command line.
pub(super) fn run(args: &CompletionsArgs, command_line: &mut Command) -> Result<Verdict, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command_line, "specgap", &mut script);
    let mut out = super::colour::plain();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Verdict::Agrees)
}
