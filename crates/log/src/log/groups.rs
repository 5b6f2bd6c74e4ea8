//! Which workload each prompt of a log is of.

use super::beside::Beside;
use super::error::LogError;
use super::reader::Log;
use std::collections::HashMap;

/// The groups of a log: chat, code, ...
///
/// ```no_run
/// use specgap_log::log::Log;
/// let log = Log::open("log".as_ref())?;
/// let named = log.groups()?.map_or(0, |groups| groups.names.len());
/// # Ok::<(), specgap_log::log::LogError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// Their names: those of the metadata's `groups`, or the numbers of the tensor `group`.
    pub names: Vec<String>,
    /// The group of each position, by its place among the names; none where the tensor has -1, or
    /// is not there.
    pub of: Vec<Option<usize>>,
}

impl Log {
    /// The group of every position, in order; `None` where no file has the tensor `group`. O(N)
    /// memory; no row is read.
    ///
    /// # Errors
    /// Numbers below -1, and numbers without a name where the metadata names groups; files that
    /// were shortened since the log was opened, or cannot be read. Each names file, tensor and row.
    pub fn groups(&self) -> Result<Option<Groups>, LogError> {
        if !self.any_has(Beside::Group) {
            return Ok(None);
        }
        let named = &self.metadata().groups;
        let mut places: HashMap<i64, usize> = HashMap::new();
        let mut groups = Groups {
            names: named.clone(),
            of: vec![None; self.positions()],
        };
        for (shard, &first) in self.shards.iter().zip(&self.starts) {
            shard.integers(Beside::Group, |tensor, [row, _], number| {
                let refused =
                    |message: String| Err(LogError::row(&shard.path, &tensor.name, row, message));
                if number < -1 {
                    return refused(format!(
                        "is {number}; a group is a number from 0 on, and -1 stands for none"
                    ));
                }
                let Ok(mut place) = usize::try_from(number) else {
                    return Ok(());
                };
                if !named.is_empty() && place >= named.len() {
                    return refused(format!(
                        "is {number}, and the metadata's groups has {} names; name all groups, or \
                         none",
                        named.len()
                    ));
                }
                if named.is_empty() {
                    let next = places.len();
                    place = *places.entry(number).or_insert(next);
                    if place == Groups::MOST {
                        return refused(Groups::too_many());
                    }
                    if place == groups.names.len() {
                        groups.names.push(number.to_string());
                    }
                }
                groups.of[first + row] = Some(place);
                Ok(())
            })?;
        }
        Ok(Some(groups))
    }
}

impl Groups {
    /// The most groups of a log that have no names of its metadata.
    pub(crate) const MOST: usize = 256;

    /// Says that there are more.
    pub(crate) fn too_many() -> String {
        format!(
            "is another group beyond {}; a group is a workload of many prompts, as chat and code",
            Self::MOST
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::log::{Dtype, HeldTensor, Log, Metadata};

    fn log(metadata: &str, groups: &[i64]) -> Log {
        let n = groups.len();
        let rows = |name| HeldTensor::new(name, Dtype::F64, &[n, 2], vec![0; 16 * n]);
        let numbers: Vec<u8> = groups.iter().flat_map(|x| x.to_le_bytes()).collect();
        let tensors = vec![
            rows("target_logits"),
            rows("draft_logits"),
            HeldTensor::new("group", Dtype::I64, &[n], numbers),
        ];
        let metadata: Metadata = serde_json::from_str(metadata).unwrap();
        Log::held("mine".as_ref(), metadata, tensors, None).unwrap()
    }

    #[test]
    fn groups_have_their_names_or_their_numbers() {
        let named = log(r#"{"groups": ["chat", "code"]}"#, &[1, 0, -1]);
        let groups = named.groups().unwrap().unwrap();
        assert_eq!(
            (groups.names.len(), groups.of),
            (2, vec![Some(1), Some(0), None])
        );
        let numbered = log("{}", &[7, 3, 7]).groups().unwrap().unwrap();
        assert_eq!(numbered.names, ["7", "3"]);
        assert_eq!(numbered.of, [0, 1, 0].map(Some));
        for (metadata, groups, words) in [
            (
                r#"{"groups": ["chat"]}"#,
                [0, 1],
                "mine: group: row 1: is 1, and the metadata",
            ),
            ("{}", [0, -2], "mine: group: row 1: is -2; a group is"),
        ] {
            let error = log(metadata, &groups).groups().unwrap_err().to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }
}
