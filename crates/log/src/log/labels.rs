//! Which position of which text a row is, without the row.

use super::beside::Beside;
use super::error::LogError;
use super::reader::Log;

/// What a log says of where a position stands, as far as it does.
///
/// ```no_run
/// use specgap_log::log::Log;
/// let log = Log::open("log".as_ref())?;
/// let tokens = log.labels()?.iter().filter(|label| label.token.is_some()).count();
/// # Ok::<(), specgap_log::log::LogError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// Which prompt it belongs to.
    pub prompt: Option<i64>,
    /// Its index in the generated text, from 0.
    pub position: Option<i64>,
    /// The token that was drawn from the target there; -1 stands for none.
    pub token: Option<i64>,
}

impl Log {
    /// The labels of all positions, in order. O(N) memory; no row is read.
    ///
    /// # Errors
    /// Files that were shortened since the log was opened, or cannot be read.
    pub fn labels(&self) -> Result<Vec<Label>, LogError> {
        let mut labels = vec![Label::default(); self.positions()];
        for (shard, &first) in self.shards.iter().zip(&self.starts) {
            for of in [Beside::PromptId, Beside::Position, Beside::Token] {
                shard.integers(of, |_, [row, _], value| {
                    let label = &mut labels[first + row];
                    let field = match of {
                        Beside::PromptId => &mut label.prompt,
                        Beside::Position => &mut label.position,
                        _ => &mut label.token,
                    };
                    *field = Some(value);
                    Ok(())
                })?;
            }
        }
        Ok(labels)
    }
}
