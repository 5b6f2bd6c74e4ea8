//! Lines of comma-separated values.

use std::borrow::Cow;

/// The entries of a line; in quotes a comma is text, and two quotes are one.
#[must_use]
pub fn fields(line: &str) -> Fields<'_> {
    Fields { rest: Some(line) }
}

/// The entries of a line, one after the other.
pub struct Fields<'a> {
    rest: Option<&'a str>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Cow<'a, str>> {
        let rest = self.rest?;
        let end = rest.bytes().position(|byte| byte == b',' || byte == b'"');
        match end.map(|end| (rest.as_bytes()[end], rest.split_at(end))) {
            Some((b',', (field, behind))) => {
                self.rest = Some(&behind[1..]);
                Some(Cow::Borrowed(field))
            }
            Some(_) => Some(Cow::Owned(self.quoted(rest))),
            None => self.rest.take().map(Cow::Borrowed),
        }
    }
}

impl Fields<'_> {
    fn quoted(&mut self, rest: &str) -> String {
        let (mut field, mut quoted) = (String::new(), false);
        let mut letters = rest.char_indices().peekable();
        let mut end = rest.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' if quoted && letters.next_if(|&(_, next)| next == '"').is_some() => {
                    field.push('"');
                }
                '"' => quoted = !quoted,
                ',' if !quoted => {
                    end = at;
                    break;
                }
                _ => field.push(letter),
            }
        }
        self.rest = self.rest.and_then(|rest| rest.get(end + 1..));
        field
    }
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn commas_and_quotes_in_quotes_are_text() {
        let all = |line: &str| fields(line).collect::<Vec<_>>().join("|");
        assert_eq!(all("a,\"b,c\",,\"d\"\"e\""), "a|b,c||d\"e");
        assert_eq!(all("\"a\"b,\"\",é\",\"é,"), "ab||é,é|");
        assert_eq!(all(","), "|");
        assert_eq!(fields("").collect::<Vec<_>>(), [""]);
    }
}
