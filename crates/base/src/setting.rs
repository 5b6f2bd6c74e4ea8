//! Settings as refusals name them: `⟨draft-top-k 5⟩`, a name and perhaps a value between two marks.
//!
//! A library knows no shell and no Python. Who prints a refusal spells the settings in it. An option
//! that stands in a text as it is typed, `--draft`, is of a command for a shell that is told as such.

/// A text with its settings as options of a command.
///
/// ```
/// use specgap_base::setting::for_shell;
/// assert_eq!(for_shell("give ⟨drafts 2⟩, or ⟨top-k⟩"), "give --drafts 2, or --top-k");
/// assert_eq!(for_shell("no token ⟨\u{e9}⟩ or ⟨ here"), "no token ⟨\u{e9}⟩ or ⟨ here");
/// ```
pub fn for_shell(text: &str) -> String {
    let mut parts = text.split('⟨');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('⟩') {
            Some((setting, rest)) if is_named(setting) => {
                out.extend(["--", setting, rest]);
            }
            _ => out.extend(["⟨", part]),
        }
    }
    out
}

fn is_named(setting: &str) -> bool {
    let name = setting.split(' ').next().unwrap_or_default();
    !name.is_empty() && name.bytes().all(|c| c.is_ascii_lowercase() || c == b'-')
}
