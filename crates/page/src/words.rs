//! How numbers, counts and paragraphs are written.

/// Seconds with three significant digits and a fitting unit.
///
/// # Example
/// ```
/// use specgap_page::seconds;
/// assert_eq!(seconds(0.00001234), "12.3 µs");
/// assert_eq!(seconds(2.5), "2.50 s");
/// ```
pub fn seconds(value: f64) -> String {
    let (scaled, unit) = match value {
        value if value >= 1.0 => (value, "s"),
        value if value >= 1e-3 => (value * 1e3, "ms"),
        value => (value * 1e6, "µs"),
    };
    let decimals = match scaled {
        scaled if scaled >= 100.0 => 0,
        scaled if scaled >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.decimals$} {unit}")
}

/// A temperature, always with a decimal point.
pub fn temperature(value: f64) -> String {
    format!("{value:?}")
}

/// A rate or a difference of rates: four decimals, or powers of ten where those
/// would hide it.
pub fn rate(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if size < 1e-4 {
        signed(format!("{value:.1e}"))
    } else {
        signed(format!("{value:.4}"))
    }
}

/// A minus sign instead of a hyphen.
fn signed(text: String) -> String {
    match text.strip_prefix('-') {
        Some(digits) => format!("−{digits}"),
        None => text,
    }
}

/// `a to b`, of a number that is only known to lie between them.
pub fn range([low, high]: [f64; 2], number: impl Fn(f64) -> String) -> String {
    format!("{} to {}", number(low), number(high))
}

/// A small number in powers of ten; 0 as it is.
pub fn small(value: f64, decimals: usize) -> String {
    match value == 0.0 {
        true => "0".to_owned(),
        false => format!("{value:.decimals$e}"),
    }
}

/// A p-value with two digits.
pub fn p_value(value: f64) -> String {
    if value < 1e-300 {
        "< 1e-300".to_owned()
    } else if value < 1e-3 {
        format!("{value:.1e}")
    } else {
        format!("{value:.3}")
    }
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// A whole number with its thousands apart.
pub fn count(value: usize) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 prompt`, `16 prompts`.
pub fn counted(value: usize, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(value))
}

/// `1 agrees`, `2 agree`.
pub fn agree(value: usize) -> String {
    let ending = if value == 1 { "s" } else { "" };
    format!("{} agree{ending}", count(value))
}

/// `1 does not`, `2 do not`.
pub fn disagree(value: usize) -> String {
    let verb = if value == 1 { "does" } else { "do" };
    format!("{} {verb} not", count(value))
}

/// A width with two digits, rounded up.
pub fn at_most(width: f64) -> String {
    if width == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{width:.1e}");
    match text.parse::<f64>().is_ok_and(|shown| shown < width) {
        true => format!("{:.1e}", width * 1.05),
        false => text,
    }
}

/// `a`, `a and b`, `a, b and c`.
pub fn listed<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [most @ .., last] => {
            let most: Vec<&str> = most.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", most.join(", "), last.as_ref())
        }
    }
}

/// A text as a sentence goes on with it.
pub fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_lowercase);
    first.chain(letters).collect()
}

/// Text inside XML or HTML, in an attribute too.
pub(crate) fn markup_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The most columns of a paragraph: longer lines are hard to follow.
const WIDEST: usize = 110;

/// A paragraph, wrapped and indented by two, hanging by four.
pub fn wrapped(text: &str, width: u16) -> String {
    let width = usize::from(width).clamp(40, WIDEST);
    let mut out = String::new();
    let mut line = String::from("  ");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > width && line.trim() != "" {
            out = out + &line + "\n";
            line = String::from("    ");
        }
        if !line.ends_with(' ') {
            line.push(' ');
        }
        line.push_str(word);
    }
    out + &line + "\n"
}

/// Names as words of a command line.
pub fn words<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = names.map(word).collect();
    words.join(" ")
}

/// A name as a word of a command line.
fn word(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "._-+/".contains(c);
    match name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_take_the_right_form() {
        assert_eq!(counted(1, "position"), "1 position");
        assert_eq!(counted(0, "position"), "0 positions");
        assert_eq!(counted(49_152, "token"), "49,152 tokens");
        assert_eq!((agree(1), agree(2)), ("1 agrees".into(), "2 agree".into()));
        let both = (disagree(1), disagree(0));
        assert_eq!(both, ("1 does not".into(), "0 do not".into()));
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn nothing_is_0_and_widths_are_rounded_up() {
        assert_eq!(small(0.0, 1), "0");
        assert_eq!(small(2.5e-7, 1), "2.5e-7");
        assert_eq!(at_most(0.0), "0");
        assert_eq!(at_most(1.01e-7), "1.1e-7");
        assert_eq!(rate(-0.00004), "−4.0e-5");
    }
}
