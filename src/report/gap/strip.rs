//! Tokens of a text as they can be shown.

use crate::gap::StripToken;

/// Least gaps of the classes that tokens are coloured by; below the first there
/// is no colour.
pub(super) const CLASSES: [f64; 5] = [0.01, 0.05, 0.1, 0.2, 0.3];

/// alpha* minus acceptance.
pub(super) fn gap(token: &StripToken) -> f64 {
    token.optimum - token.acceptance
}

/// The class of a gap: 0 for none.
pub(super) fn class(gap: f64) -> usize {
    CLASSES.iter().filter(|&&least| gap >= least).count()
}

/// A token's text with symbols for what cannot be seen or would change the text
/// around it.
pub(super) fn visible(text: &str) -> String {
    if text.is_empty() {
        return "∅".to_owned();
    }
    let blank = text.chars().all(|c| c == ' ');
    let mut out = String::new();
    for c in text.chars() {
        match c {
            ' ' if blank => out.push('␣'),
            '\n' => out.push('⏎'),
            '\t' => out.push('⇥'),
            '\r' => out.push('␍'),
            c if is_hidden(c) => out.push_str(&format!("⟨U+{:04X}⟩", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Controls, marks of direction, and characters without a width.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{ad}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_characters_become_symbols() {
        assert_eq!(visible(" the"), " the");
        assert_eq!(visible("  "), "␣␣");
        assert_eq!(visible("\n\n"), "⏎⏎");
        assert_eq!(visible("a\u{202e}b"), "a⟨U+202E⟩b");
        assert_eq!(visible(""), "∅");
    }

    #[test]
    fn classes_begin_at_their_least_gap() {
        assert_eq!(class(0.0), 0);
        assert_eq!(class(-0.1), 0);
        assert_eq!(class(0.01), 1);
        assert_eq!(class(1.0), CLASSES.len());
    }
}
