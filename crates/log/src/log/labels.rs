//! Which position of which text a row is, without the row.

use super::error::LogError;
use super::reader::Log;
use super::tensor::Tensor;

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
        let mut rest = labels.as_mut_slice();
        for shard in &self.shards {
            let (own, after) = rest.split_at_mut(shard.positions.min(rest.len()));
            fill(own, shard.prompt_id.as_ref(), |label| &mut label.prompt)?;
            fill(own, shard.position.as_ref(), |label| &mut label.position)?;
            fill(own, shard.token.as_ref(), |label| &mut label.token)?;
            rest = after;
        }
        Ok(labels)
    }
}

fn fill(
    labels: &mut [Label],
    tensor: Option<&Tensor>,
    field: impl Fn(&mut Label) -> &mut Option<i64>,
) -> Result<(), LogError> {
    let Some(tensor) = tensor else {
        return Ok(());
    };
    let window = tensor.window(0..labels.len())?;
    for (row, label) in labels.iter_mut().enumerate() {
        *field(label) = window.integers(row).next();
    }
    Ok(())
}
