//! What an engine did at the positions of a log, without the rows.

use super::beside::Beside;
use super::error::{LogError, outside};
use super::reader::Log;

/// What a log says of an engine's doings at one position, as far as it does.
///
/// ```no_run
/// use specgap_log::log::Log;
/// let log = Log::open("log".as_ref())?;
/// let rounds = log.engine_records()?.iter().filter(|one| one.accepted >= Some(0)).count();
/// # Ok::<(), specgap_log::log::LogError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineRecord {
    /// Which prompt it belongs to.
    pub prompt: Option<i64>,
    /// Its index in the generated text, from 0.
    pub position: Option<i64>,
    /// What `drafts` has there; -1 stands for none.
    pub drafts: Vec<i64>,
    /// The token that came out; -1 stands for none.
    pub output: Option<i64>,
    /// Drafts accepted in the round that starts there; -1 where none does.
    pub accepted: Option<i64>,
    /// How far into its round it is, from 0.
    pub round: Option<i64>,
    /// Sequences that the engine verified together.
    pub batch_size: Option<i64>,
    /// The seed of the request's own random numbers; -1 where it draws from the engine's stream,
    /// which no other request draws the same numbers from.
    pub seed: Option<i64>,
}

impl Log {
    /// The engine's doings at all positions, in order. O(N) memory; no row is read.
    ///
    /// # Errors
    /// Files that were shortened since the log was opened, or cannot be read; tokens of
    /// `drafts` and `output` outside the vocabulary, numbers of `accepted`, `round`,
    /// `batch_size` and `seed` below -1. Each names file, tensor, row and column.
    pub fn engine_records(&self) -> Result<Vec<EngineRecord>, LogError> {
        let mut records = vec![EngineRecord::default(); self.positions()];
        let tokens = i64::try_from(self.vocabulary()).unwrap_or(i64::MAX);
        for (shard, &first) in self.shards.iter().zip(&self.starts) {
            let places = [Beside::PromptId, Beside::Position];
            for of in places.into_iter().chain(Beside::OF_ENGINE) {
                let end = match of {
                    Beside::Drafts | Beside::Output => tokens,
                    _ => i64::MAX,
                };
                shard.integers(of, |tensor, [row, column], value| {
                    if !places.contains(&of) && !(-1..end).contains(&value) {
                        let message = complaint(of, value, end);
                        return Err(LogError::entry(
                            &shard.path,
                            &tensor.name,
                            row,
                            column,
                            message,
                        ));
                    }
                    let record = &mut records[first + row];
                    match of {
                        Beside::PromptId => record.prompt = Some(value),
                        Beside::Position => record.position = Some(value),
                        Beside::Drafts => record.drafts.push(value),
                        Beside::Output => record.output = Some(value),
                        Beside::Accepted => record.accepted = Some(value),
                        Beside::Round => record.round = Some(value),
                        Beside::BatchSize => record.batch_size = Some(value),
                        _ => record.seed = Some(value),
                    }
                    Ok(())
                })?;
            }
        }
        Ok(records)
    }
}

fn complaint(of: Beside, value: i64, end: i64) -> String {
    match of {
        Beside::Drafts | Beside::Output => outside(value, end),
        Beside::Seed => {
            format!("is {value}; a seed is 0 or more, and -1 stands for the engine's stream")
        }
        _ => format!("is {value}; it is a count, or -1 for none"),
    }
}
