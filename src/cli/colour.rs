//! Weight and colour of what is printed for people, in the styles that clap has for help and
//! errors. Where the output is no terminal, `TERM` is `dumb` or `NO_COLOR` is set, there is none.

use crate::page::terminal::{Role, Text};
use crate::setting::for_shell;
use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Style};
use std::io::{self, ErrorKind, StdoutLock, Write};

/// Returns what begins and what ends a style.
pub(super) fn ends(style: Style) -> [String; 2] {
    [style.render().to_string(), style.render_reset().to_string()]
}

/// A stream whose reader may go away, as in `specgap audit LOG | head -1`: what is printed then is
/// dropped, so that the command goes on, its files are written and its exit code is what it found.
pub(super) struct Shown<W>(W);

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

/// Standard output, which drops styles that it cannot show.
pub(super) fn stdout() -> Shown<anstream::AutoStream<StdoutLock<'static>>> {
    Shown(anstream::stdout().lock())
}

/// Standard output as it is, for data.
pub(super) fn plain() -> Shown<StdoutLock<'static>> {
    Shown(io::stdout().lock())
}

/// Prints for people on standard error. Nobody is left to tell if it cannot be printed.
pub(super) fn tell(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
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
    tell(&format!("\n  {on}tip:{off} {message}"));
}

fn said(word: &str, style: Style, message: &str) {
    let [on, off] = ends(style);
    tell(&format!("{on}{word}:{off} {}", for_shell(message)));
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

    /// A pipe that nobody reads any more, or a disk that is full.
    struct Refusing(ErrorKind);

    impl Write for Refusing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_reader_that_left_stops_nothing_and_a_full_disk_does() {
        let mut left = Shown(Refusing(ErrorKind::BrokenPipe));
        assert!(writeln!(left, "a").and_then(|()| left.flush()).is_ok());
        let mut full = Shown(Refusing(ErrorKind::StorageFull));
        assert!(writeln!(full, "a").is_err() && full.flush().is_err());
    }

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
