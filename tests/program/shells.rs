//! `specgap completions`: a script a shell, of the commands and options that there are.

use crate::run::{ROOT, specgap};
use std::path::Path;

#[test]
fn every_shell_has_a_script_that_names_commands_and_options() {
    let root = Path::new(ROOT);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = specgap(root, ["completions", shell]);
        assert_eq!(run.code, Some(0), "{shell}: {}", run.err);
        for word in ["gap", "explain", "cost-ratio", "temperature"] {
            assert!(run.out.contains(word), "{shell} has no {word}");
        }
    }
    specgap(root, ["completions", "tcsh"]).refused(&["tcsh", "bash"]);
}
