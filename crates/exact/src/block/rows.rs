//! Block problems whose rows are made prefix by prefix.

use specgap_core::problem::BlockProblem;
use specgap_number::distribution::{Draft, Target, token_id};
use std::collections::BTreeMap;

/// The rows behind a prefix, those that there are.
pub(crate) type Rows = (Option<Target>, Option<Draft>);

/// A problem of one draft whose rows behind each prefix of at most `length` tokens `make` gives,
/// short prefixes first. `None` if it gives none, or if they make no problem.
pub(crate) fn of_rows(
    name: &str,
    vocab: usize,
    length: usize,
    mut make: impl FnMut(&[u32]) -> Option<Rows>,
) -> Option<BlockProblem> {
    let (mut target, mut draft) = (BTreeMap::new(), BTreeMap::new());
    let mut layer: Vec<Vec<u32>> = vec![Vec::new()];
    for _ in 0..=length {
        let mut longer = Vec::new();
        for prefix in layer {
            let words: Vec<String> = prefix.iter().map(u32::to_string).collect();
            let (p, q) = make(&prefix)?;
            target.extend(p.map(|row| (words.join(" "), row)));
            draft.extend(q.map(|row| (words.join(" "), row)));
            if prefix.len() < length {
                let tokens = 0..token_id(vocab);
                longer.extend(tokens.map(|token| [prefix.as_slice(), &[token]].concat()));
            }
        }
        layer = longer;
    }
    BlockProblem::new(name.to_owned(), vocab, length, 1, target, draft, None).ok()
}
