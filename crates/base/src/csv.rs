//! Lines of comma-separated values.

/// The entries of a line; in quotes a comma is text, and two quotes are one.
#[must_use]
pub fn fields(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                all.last_mut().into_iter().for_each(|field| field.push('"'));
            }
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            _ => all
                .last_mut()
                .into_iter()
                .for_each(|field| field.push(letter)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn commas_and_quotes_in_quotes_are_text() {
        assert_eq!(fields("a,\"b,c\",,\"d\"\"e\""), ["a", "b,c", "", "d\"e"]);
        assert_eq!(fields(""), [""]);
    }
}
