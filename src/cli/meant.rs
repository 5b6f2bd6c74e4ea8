//! What was probably meant by a name that is not there.

use specgap_core::entry_name;
use std::path::{Path, PathBuf};

/// The most entries of a folder that are compared.
const MOST: usize = 4096;

/// The name that is most like a word, if one is.
pub(super) fn nearest<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
) -> Option<&'a str> {
    entry_name::nearest(word, names.into_iter().map(|name| (name, name)))
}

/// The name that is most like a word, of those that a message lists which does not say it itself.
pub(super) fn listed<'a>(word: &str, message: &'a str) -> Option<&'a str> {
    // Shorter ones are like many.
    const SHORTEST: usize = 3;
    // A number is no name that was misspelt.
    if message.contains("did you mean") || word.parse::<f64>().is_ok() {
        return None;
    }
    let begins = ["there are ", "one of ", "none of "];
    let behind = begins.iter().filter_map(|begin| message.split_once(begin));
    let list = behind.map(|(_, list)| list).next().unwrap_or(message);
    let names = list.split(|c: char| c.is_whitespace() || ",;\"()".contains(c));
    let names = names.filter(|name| name.len() >= SHORTEST && *name != word);
    nearest(word, names)
}

/// The path that a message is about, where there is none of that name, but one like it.
pub(super) fn path(message: &str) -> Option<PathBuf> {
    let (named, _) = message.split_once(": ")?;
    let named = Path::new(named);
    if named.exists() {
        return None;
    }
    // The part that is not there may be a folder.
    let (missing, folder) = named
        .ancestors()
        .zip(named.ancestors().skip(1))
        .find(|(_, above)| above.as_os_str().is_empty() || above.is_dir())?;
    let here = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let names: Vec<String> = (std::fs::read_dir(here).ok()?.flatten())
        .take(MOST)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    let found = nearest(
        missing.file_name()?.to_str()?,
        names.iter().map(String::as_str),
    )?;
    let below = named.strip_prefix(missing).ok()?;
    let found = folder.join(found);
    let whole = match below.as_os_str().is_empty() {
        true => found,
        false => found.join(below),
    };
    whole.exists().then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_among_those_that_a_message_lists() {
        let message = "blok is no verifier; there are token, block, greedy-block or carried";
        assert_eq!(listed("blok", message), Some("block"));
        assert_eq!(listed("tkoen", message), Some("token"));
        assert_eq!(listed("other", message), None);
        assert_eq!(listed("nan", "NaN is no cost; it is 0 or more"), None);
        assert_eq!(listed("blok", "blok: is none; did you mean block?"), None);
    }

    #[test]
    fn a_path_is_found_by_the_part_that_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("smollm2-demo")).unwrap();
        std::fs::write(folder.path().join("smollm2-demo/log.json"), "").unwrap();
        let at = |name: &str| folder.path().join(name);
        let meant = |name: &str| path(&format!("{}: cannot be read", at(name).display()));
        assert_eq!(meant("smollm-demo"), Some(at("smollm2-demo")));
        assert_eq!(
            meant("smolm2-demo/log.json"),
            Some(at("smollm2-demo/log.json"))
        );
        assert_eq!(
            meant("smollm2-demo/log.jsn"),
            Some(at("smollm2-demo/log.json"))
        );
        assert_eq!(meant("smolm2-demo/none"), None);
        assert_eq!(meant("smollm2-demo"), None);
        assert_eq!(meant("another"), None);
        assert_eq!(path("no path here"), None);
    }
}
