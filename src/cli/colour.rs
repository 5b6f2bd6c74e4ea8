//! Weight and colour of what is printed for people, in the styles that clap has for help and
//! errors. Where the output is no terminal, `TERM` is `dumb` or `NO_COLOR` is set, there is none.

use crate::page::terminal::{Role, Text};
use crate::setting::for_shell;
use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Style};
use std::io::StdoutLock;

/// Returns what begins and what ends a style.
pub(super) fn ends(style: Style) -> [String; 2] {
    [style.render().to_string(), style.render_reset().to_string()]
}

/// Standard output, which drops styles that it cannot show.
pub(super) fn stdout() -> anstream::AutoStream<StdoutLock<'static>> {
    anstream::stdout().lock()
}

/// Says why a command stopped.
pub(super) fn error(message: &str) {
    said("error", *Styles::styled().get_error(), message);
}

/// Says what is probably not meant.
pub(super) fn warning(message: &str) {
    said("warning", WARNING, message);
}

/// Says what is worth knowing.
pub(super) fn note(message: &str) {
    said("note", Style::new().bold(), message);
}

/// Says what got worse.
pub(super) fn regression(message: &str) {
    said("regression", BAD, message);
}

/// Says what may be meant instead, below an error.
pub(super) fn tip(message: &str) {
    let [on, off] = ends(*Styles::styled().get_valid());
    anstream::eprintln!("\n  {on}tip:{off} {message}");
}

fn said(word: &str, style: Style, message: &str) {
    let [on, off] = ends(style);
    anstream::eprintln!("{on}{word}:{off} {}", for_shell(message));
}

const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();

/// A text with its headings and what is best in bold, its cautions in yellow, and what is wrong in
/// red.
pub(super) fn painted(text: &Text) -> String {
    let spans = text.spans().map(|(role, text)| {
        let [on, off] = ends(match role {
            Role::Plain => Style::new(),
            Role::Heading | Role::Best => Style::new().bold(),
            Role::Caution => WARNING,
            Role::Bad => BAD,
        });
        format!("{on}{text}{off}")
    });
    spans.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_painted_by_their_roles() {
        let mut text = Text::default();
        text.add(Role::Bad, "a");
        text.add(Role::Plain, "b");
        text.add(Role::Caution, "c");
        let [red, yellow] = [ends(BAD).join("a"), ends(WARNING).join("c")];
        assert_eq!(painted(&text), red + "b" + &yellow);
    }
}
