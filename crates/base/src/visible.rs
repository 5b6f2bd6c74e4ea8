//! Text of unknown origin, such as a name in a log, with what is not seen made visible.

/// The text with what is not seen made visible, as `\u{1b}`: control characters but line ends and
/// tabs, and what turns or hides the text around it. Terminals obey some of these, and eyes the
/// others.
pub fn visible(text: String) -> String {
    if !text.chars().any(is_hidden) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Left and right, embedded, overridden and isolated.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => {
            true
        }
        // Lines and paragraphs, blanks of no width, annotations, and tags.
        '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// Makes text visible in one line.
pub fn one_line(text: &str) -> String {
    visible(text.replace(['\n', '\t'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_seen() {
        let seen = |text: &str| visible(text.to_owned());
        assert_eq!(
            seen("\u{1b}]0;x\u{7}\u{1b}[2J"),
            "\\u{1b}]0;x\\u{7}\\u{1b}[2J"
        );
        assert_eq!(seen("a\u{202e}b\u{9b}c\rd"), "a\\u{202e}b\\u{9b}c\\u{d}d");
        for plain in ["α* ± 1\n\tnext", "naïve 日本 👩\u{200d}🔬", "مرحبا"] {
            assert_eq!(seen(plain), plain);
        }
    }
}
