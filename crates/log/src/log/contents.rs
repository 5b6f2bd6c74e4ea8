//! What a file of rows holds, whatever its format.

use super::tensor::Tensor;
use specgap_base::sorted::Map;

/// The most tensors of a file. A log has some thirty, and the largest models some thousands.
pub(super) const MOST_TENSORS: usize = 1 << 15;

/// How many names a message lists.
const MOST_NAMES: usize = 30;

/// The tensors of one file, before anybody asks what they mean.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub tensors: Map<String, Tensor>,
    /// Names with a type that is not read, and that type.
    pub unreadable: Map<String, String>,
    pub metadata: Option<String>,
}

impl Contents {
    /// All tensors by name, as a message lists them.
    pub fn names(&self) -> String {
        let names: Vec<_> = self
            .tensors
            .keys()
            .chain(self.unreadable.keys())
            .map(String::as_str)
            .collect();
        match names.split_at_checked(MOST_NAMES) {
            _ if names.is_empty() => "no tensors".to_owned(),
            Some((first, rest)) if !rest.is_empty() => {
                format!("{} and {} more", first.join(", "), rest.len())
            }
            _ => names.join(", "),
        }
    }
}
