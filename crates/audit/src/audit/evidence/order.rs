//! In which order the positions of a log are audited: text after text, and each from its first token on.

use crate::audit::model::rule::Rule;
use crate::audit::{AuditError, refused_at};
use specgap_log::log::{EngineRecord, Log};
use std::collections::{BTreeMap, BTreeSet};

/// By place in that order, the position's number in the log; none where the log has them so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order(Vec<usize>);

impl Order {
    /// What a log says of each position for a rule, in order.
    pub(crate) fn records(log: &Log, rule: Rule) -> Result<(Self, Vec<EngineRecord>), AuditError> {
        let records = records_of(log, rule)?;
        let order = Self::of(&records).map_err(|(at, words)| refused_at(log, at, words))?;
        let records = order.sorted(records);
        Ok((order, records))
    }

    /// Rows of a prompt are one text, wherever they stand. Where an index comes twice, those of a seed are; and where
    /// it comes twice in these, they are texts one after the other, each of which rises. O(N log N), and no row is read.
    ///
    /// # Errors
    /// Texts of one prompt in no order: the position, and the cure.
    pub(crate) fn of(records: &[EngineRecord]) -> Result<Self, (usize, String)> {
        if is_in_order(records) {
            return Ok(Self::default());
        }
        let mut seen = BTreeSet::new();
        let again = |record: &&EngineRecord| !seen.insert((record.prompt, record.position));
        let shared: BTreeSet<_> = records.iter().filter(again).map(|one| one.prompt).collect();
        let mut rows = BTreeMap::<_, Vec<usize>>::new();
        for (at, record) in records.iter().enumerate() {
            // Of one text a prompt, seeds may be those of rounds.
            let seed = record.seed.filter(|_| shared.contains(&record.prompt));
            rows.entry((record.prompt, seed)).or_default().push(at);
        }
        let place = |at: usize| records.get(at).and_then(|record| record.position);
        let rises = |a: &usize, b: &usize| place(*a).is_none() || place(*a) < place(*b);
        let mut texts: Vec<(usize, Vec<usize>)> = Vec::new();
        for rows in rows.into_values() {
            let rising: Vec<&[usize]> = rows.chunk_by(rises).collect();
            let mut sorted = rows.clone();
            sorted.sort_by_key(|at| place(*at));
            let same = sorted.chunk_by(|a, b| place(*a) == place(*b));
            let most = same.map(<[usize]>::len).max().unwrap_or(1);
            if rising.len() > 2 * most && most > 1 {
                let at = rising
                    .get(1)
                    .and_then(|rows| rows.first())
                    .copied()
                    .unwrap_or(0);
                let words = "position does not rise along the rows of its prompt_id and seed, and comes in them \
                             twice: which rows are of one text is not known. Give each text a prompt_id of its own, \
                             or sort rows by text and position";
                return Err((at, words.to_owned()));
            }
            let first = |rows: &[usize]| rows.iter().copied().min().unwrap_or(0);
            match most == 1 {
                true => texts.push((first(&rows), sorted)),
                false => texts.extend(rising.into_iter().map(|rows| (first(rows), rows.to_vec()))),
            }
        }
        texts.sort_unstable();
        let order: Vec<usize> = texts.into_iter().flat_map(|(_, rows)| rows).collect();
        Ok(Self(if order.is_sorted() { Vec::new() } else { order }))
    }

    /// A position's number in the log.
    pub(crate) fn at(&self, index: usize) -> usize {
        self.0.get(index).copied().unwrap_or(index)
    }

    /// Tells whether it is the log's own.
    pub(crate) fn is_own(&self) -> bool {
        self.0.is_empty()
    }

    /// What a log has of each position, in order.
    pub(crate) fn sorted<T: Default>(&self, mut all: Vec<T>) -> Vec<T> {
        match self.is_own() {
            true => all,
            false => self
                .0
                .iter()
                .filter_map(|at| all.get_mut(*at).map(std::mem::take))
                .collect(),
        }
    }

    /// What is in order, as the log has it.
    pub(crate) fn back<T: Default>(&self, all: Vec<T>) -> Vec<T> {
        let mut places: Vec<(usize, T)> = all
            .into_iter()
            .enumerate()
            .map(|(index, one)| (self.at(index), one))
            .collect();
        places.sort_by_key(|(at, _)| *at);
        places.into_iter().map(|(_, one)| one).collect()
    }
}

/// The text of a log: what came out, or was drawn, at each position, and nothing of rounds.
fn text_of(log: &Log) -> Result<Vec<EngineRecord>, AuditError> {
    let has_output = log.engine_tensors().contains(&"output");
    if !has_output && !log.has_tokens() {
        return Err(AuditError::Log(format!(
            "{}: has neither token nor output; a text is audited by the token that came out at \
             each position: add output [N] or token [N] (docs/reference/log-format.md)",
            log.path().display()
        )));
    }
    let records = log.engine_records()?.into_iter().zip(log.labels()?);
    let records = records.map(|(record, label)| EngineRecord {
        drafts: Vec::new(),
        output: if has_output {
            record.output
        } else {
            label.token
        },
        accepted: None,
        round: None,
        ..record
    });
    Ok(records.collect())
}

/// Reads what a log says of each position; of its text alone, if that is what is audited.
fn records_of(log: &Log, rule: Rule) -> Result<Vec<EngineRecord>, AuditError> {
    match rule == Rule::TEXT {
        true => text_of(log),
        false => Ok(log.engine_records()?),
    }
}

/// Tells whether each prompt's rows stand together and rise: as most logs are.
fn is_in_order(records: &[EngineRecord]) -> bool {
    let mut prompts = BTreeSet::new();
    records.chunk_by(|a, b| a.prompt == b.prompt).all(|rows| {
        let prompt = rows.first().map(|one| one.prompt);
        let mut pairs = rows.iter().zip(rows.iter().skip(1));
        let rises = |(a, b): (&EngineRecord, &EngineRecord)| {
            b.position.is_none() || a.position < b.position
        };
        prompts.insert(prompt) && pairs.all(rises)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of rows by prompt and position.
    fn order(rows: &[(i64, i64)]) -> Result<Vec<usize>, (usize, String)> {
        let record = |(prompt, position): &(i64, i64)| EngineRecord {
            prompt: Some(*prompt),
            position: Some(*position),
            ..EngineRecord::default()
        };
        let records: Vec<EngineRecord> = rows.iter().map(record).collect();
        let order = Order::of(&records)?;
        let all: Vec<usize> = (0..rows.len()).collect();
        let sorted = order.sorted(all.clone());
        assert_eq!(order.back(sorted.clone()), all);
        Ok(sorted)
    }

    #[test]
    fn texts_stand_one_after_the_other() {
        // In order, and two of one prompt.
        assert_eq!(
            order(&[(0, 3), (0, 4), (1, 0), (0, 3), (0, 6)]),
            Ok(vec![0, 1, 2, 3, 4])
        );
        // In turn, from the last on, and in none.
        assert_eq!(
            order(&[(4, 0), (2, 0), (4, 1), (2, 1), (4, 2)]),
            Ok(vec![0, 2, 4, 1, 3])
        );
        assert_eq!(order(&[(2, 2), (2, 1), (2, 0)]), Ok(vec![2, 1, 0]));
        assert_eq!(
            order(&[(2, 2), (1, 7), (2, 0), (1, 3), (2, 1)]),
            Ok(vec![2, 4, 0, 3, 1])
        );
        // Two texts of one prompt at once are not told apart.
        let both: Vec<(i64, i64)> = (0..12).map(|at| (7, at / 2)).collect();
        let (at, words) = order(&both).unwrap_err();
        assert!(
            at == 1 && words.contains("prompt_id of its own"),
            "{at} {words}"
        );
        // Of two texts of a prompt seeds tell which is which; of one they are those of its rounds.
        let seeded = |rows: &[(i64, i64)]| {
            let record = |(position, seed): &(i64, i64)| EngineRecord {
                prompt: Some(0),
                position: Some(*position),
                seed: Some(*seed),
                ..EngineRecord::default()
            };
            let records: Vec<EngineRecord> = rows.iter().map(record).collect();
            let all = (0..rows.len()).collect();
            Order::of(&records).unwrap().sorted::<usize>(all)
        };
        assert_eq!(seeded(&[(0, 5), (0, 6), (1, 5), (1, 6)]), [0, 2, 1, 3]);
        assert_eq!(seeded(&[(0, 5), (1, 6), (2, 5), (3, 6)]), [0, 1, 2, 3]);
        // Without places the rows of a prompt are a text.
        let bare = [0, 1, 0].map(|prompt| EngineRecord {
            prompt: Some(prompt),
            ..EngineRecord::default()
        });
        assert_eq!(Order::of(&bare).unwrap().sorted(vec![0, 1, 2]), [0, 2, 1]);
    }
}
