//! What all rows of a log are, and what its lists leave out.

use super::error::LogError;
use super::metadata::UnlistedTokens;
use super::reader::Log;
use super::row::{Row, RowKind};
use serde::{Deserialize, Serialize};
use specgap_entries::{Dtype, Form, FormGuard};

/// Mass that lists leave out, in rows evenly spaced over a log that does not give it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MissingMass {
    /// Rows that were looked at.
    pub rows: usize,
    /// The mean of the target's, as its entries are called.
    pub target: f64,
    /// The mean of the draft's.
    pub draft: f64,
    /// What the lists of both would leave out, the larger of two means, if their entries were
    /// logarithms to base 2; where that is possible and much less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_2: Option<f64>,
}

impl MissingMass {
    /// From here on it has to be told first.
    pub const LARGE: f64 = 0.1;

    /// Tells whether either list leaves out much.
    pub fn is_large(&self) -> bool {
        self.target.max(self.draft) >= Self::LARGE
    }
}

/// Mass that the lists of one model leave out.
#[derive(Default)]
struct Left {
    by_e: f64,
    by_2: f64,
    above: bool,
}

impl Log {
    /// Refuses rows that are called logits and are something else: every one of up to 64 rows,
    /// evenly spaced over the log, shows it. See [`FormGuard`].
    ///
    /// # Errors
    /// Names the tensor, the first row that shows it, and the cure; as [`Log::read`], too.
    pub fn refuse_other_forms(&self) -> Result<(), LogError> {
        let (target, draft) = self.kinds();
        let (target_type, draft_type) = self.dtypes();
        let mut guards = [
            ("target", target, FormGuard::new(target_type)),
            ("draft", draft, FormGuard::new(draft_type)),
        ];
        let temperatures = &self.metadata().rest_temperatures;
        let whole = temperatures.iter().position(|&t| t == 1.0);
        let mut row = Row::default();
        for number in FormGuard::rows(self.positions()) {
            let done =
                |(_, kind, guard): &(_, _, FormGuard)| *kind != RowKind::Logits || guard.is_done();
            if guards.iter().all(done) {
                break;
            }
            self.read(number, &mut row)?;
            let rest = |rest: &[f64]| {
                let at = whole.and_then(|column| rest.get(column));
                at.copied().unwrap_or(0.0)
            };
            if self.sub_vocabulary().is_some() {
                // What the file has: no entry stands where the draft has no token.
                row.draft.retain(|&entry| entry > f64::NEG_INFINITY);
            }
            let rows = [
                (&row.target, row.target_kind, rest(&row.target_rest)),
                (&row.draft, row.draft_kind, rest(&row.draft_rest)),
            ];
            let read = if row.lacks_draft { 1 } else { 2 };
            for ((_, called, guard), (entries, kind, rest)) in
                guards.iter_mut().zip(rows).take(read)
            {
                // Files of a log may differ in what they have.
                if kind != RowKind::Logits {
                    *called = kind;
                }
                guard.look(number, entries, rest);
            }
        }
        for (model, kind, guard) in guards {
            if let (RowKind::Logits, Some((form, number))) = (kind, guard.found()) {
                let tensor = format!("{model}_logits");
                let message = form.refusal(&format!("call the tensor {model}_probs, or"));
                return Err(LogError::row(self.path(), &tensor, number, message));
            }
        }
        Ok(())
    }

    /// The mass that lists of probabilities or of their logarithms leave out, if the log gives
    /// neither that mass nor says that what is left out is never drawn.
    ///
    /// # Errors
    /// As [`Log::read`].
    pub fn missing_mass(&self) -> Result<Option<MissingMass>, LogError> {
        let (target, draft) = self.kinds();
        let told = self.has_rests().contains(&true)
            || self.metadata().unlisted == Some(UnlistedTokens::NeverDrawn);
        if told || !self.is_top_heavy() || [target, draft].contains(&RowKind::Logits) {
            return Ok(None);
        }
        let mut row = Row::default();
        let (mut rows, mut left) = (0, [Left::default(), Left::default()]);
        for number in FormGuard::rows(self.positions()) {
            self.read(number, &mut row)?;
            if row.lacks_draft {
                continue;
            }
            rows += 1;
            let models = [(&row.target, row.target_kind), (&row.draft, row.draft_kind)];
            for (left, (entries, kind)) in left.iter_mut().zip(models) {
                let listed = || entries.iter().filter(|x| !x.is_nan());
                let by = |form: Form| listed().map(|&x| form.probability(x)).sum::<f64>();
                let sum = match kind {
                    RowKind::Probabilities => by(Form::Probabilities),
                    _ => listed().map(|x| x.exp()).sum(),
                };
                left.by_e += (1.0 - sum).max(0.0);
                let sum = match kind {
                    RowKind::LogProbabilities if listed().count() > 1 => by(Form::Base2),
                    _ => f64::INFINITY,
                };
                left.by_2 += (1.0 - sum).max(0.0);
                left.above |= sum > 1.0 + Dtype::F32.sum_tolerance();
            }
        }
        let mean = |sum: f64| sum / rows.max(1) as f64;
        let [target, draft] = left.each_ref().map(|left| mean(left.by_e));
        // Natural logarithms to base 2 sum to more than 1 in nearly any row.
        let much_less = |left: &Left| !left.above && left.by_2 <= 0.5 * left.by_e;
        let base_2 = (rows > 1 && left.iter().all(much_less))
            .then(|| mean(left.iter().map(|left| left.by_2).fold(0.0, f64::max)));
        Ok(Some(MissingMass {
            rows,
            target,
            draft,
            base_2,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{HeldTensor, Metadata};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn logits(rng: &mut ChaCha8Rng, tokens: usize, scale: f64) -> Vec<f64> {
        let level = 20.0 * rng.random::<f64>() - 10.0;
        let one = |rng: &mut ChaCha8Rng| level + scale * (rng.random::<f64>() - 0.5);
        (0..tokens).map(|_| one(rng)).collect()
    }

    fn probabilities(logits: &[f64]) -> Vec<f64> {
        let sum: f64 = logits.iter().map(|x| x.exp()).sum();
        logits.iter().map(|x| x.exp() / sum).collect()
    }

    /// Returns what a row of probabilities is in a form.
    fn written(form: Form, row: &[f64]) -> Vec<f64> {
        let entry = |p: &f64| form.factor().map_or(*p, |factor| p.ln() / factor);
        row.iter().map(entry).collect()
    }

    #[test]
    fn the_shipped_logs_rows_are_logits() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../models/logs/smollm2-demo"
        );
        let log = Log::open(path.as_ref()).unwrap();
        log.refuse_other_forms().unwrap();
        // It gives the mass of the rest itself.
        assert_eq!(log.missing_mass().unwrap(), None);
    }

    fn floats(name: &str, rows: &[Vec<f64>]) -> HeldTensor {
        let bytes: Vec<u8> = rows
            .iter()
            .flatten()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        HeldTensor::new(name, Dtype::F64, &[rows.len(), rows[0].len()], bytes)
    }

    /// A log of rows that are called so, of the target and of the draft.
    fn log(names: [&str; 2], target: &[Vec<f64>], draft: &[Vec<f64>]) -> Log {
        let tensors = vec![floats(names[0], target), floats(names[1], draft)];
        Log::held("mine".as_ref(), Metadata::default(), tensors, None).unwrap()
    }

    #[test]
    fn a_log_of_another_form_names_tensor_row_and_cure() {
        let rows = vec![vec![0.0, 1.0, 2.5], vec![0.3, -0.2, 0.0]];
        let laws: Vec<Vec<f64>> = rows.iter().map(|row| probabilities(row)).collect();
        for (form, cure) in [
            (Form::Probabilities, "call the tensor draft_probs, or take"),
            (Form::Base2, "multiply them by ln 2"),
            (Form::Negative, "change their sign"),
        ] {
            let other: Vec<Vec<f64>> = laws.iter().map(|law| written(form, law)).collect();
            let log = log(["target_logits", "draft_logits"], &rows, &other);
            let told = log.refuse_other_forms().unwrap_err().to_string();
            assert!(told.starts_with("mine: draft_logits: row 0: "), "{told}");
            assert!(told.contains(cure), "{told}");
        }
        let log = log(["target_logits", "draft_logits"], &rows, &rows);
        log.refuse_other_forms().unwrap();
    }

    /// Rows that are refused for what they are called say what they are.
    #[test]
    fn a_row_that_is_no_law_says_what_it_is() {
        let rows = [vec![0.5, 0.3, 0.2], vec![0.1, 0.1, 0.8]];
        let as_form = |form: Form| rows.iter().map(|law| written(form, law)).collect();
        let natural = |law: &Vec<f64>| law.iter().map(|p| p.ln()).collect();
        let natural = rows.iter().map(natural).collect();
        let other = |x: f64| vec![vec![x, 0.1, 2.0]; 2];
        let (probs, logprobs) = ("target_probs", "target_logprobs");
        for (name, rows, words) in [
            (probs, natural, "call the tensor *_logprobs"),
            (
                probs,
                as_form(Form::Base2),
                "to base 2; multiply them by ln 2",
            ),
            (probs, other(-3.0), "call the tensor *_logits"),
            (
                logprobs,
                as_form(Form::Probabilities),
                "call the tensor *_probs",
            ),
            (
                logprobs,
                as_form(Form::Base10),
                "to base 10; multiply them by ln 10",
            ),
            (logprobs, as_form(Form::Negative), "change their sign"),
            (logprobs, other(3.0), "call the tensor *_logits"),
        ] {
            let log = log([name, "draft_logits"], &rows, &rows);
            let told = log.read(0, &mut Row::default()).unwrap_err().to_string();
            assert!(told.contains(words), "{name}: {told}");
        }
    }

    /// Lists of 20 of 200 tokens: in base 2 they look as if they left out much.
    #[test]
    fn lists_that_leave_out_much_are_asked_for_their_base() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let lists = |scale: f64, rng: &mut ChaCha8Rng| -> Vec<Vec<f64>> {
            let one = |rng: &mut ChaCha8Rng| {
                let mut row = logits(rng, 200, 1.0);
                row.iter_mut()
                    .for_each(|x| *x = scale * (*x).rem_euclid(1.0));
                row.sort_by(|a, b| b.total_cmp(a));
                let law = probabilities(&row);
                law.into_iter().take(20).map(f64::ln).collect()
            };
            (0..30).map(|_| one(rng)).collect()
        };
        let log = |rows: &[Vec<f64>]| {
            let ids = (0..20i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>();
            let ids = ids.repeat(rows.len());
            let ids = HeldTensor::new("token_ids", Dtype::I32, &[rows.len(), 20], ids);
            let tensors = vec![
                floats("target_logprobs", rows),
                floats("draft_logprobs", rows),
                ids,
            ];
            let metadata = serde_json::from_str(r#"{"vocabulary": 200}"#).unwrap();
            Log::held("lists".as_ref(), metadata, tensors, None).unwrap()
        };
        for (scale, large) in [(5.0, true), (60.0, false)] {
            let rows = lists(scale, &mut rng);
            let found = log(&rows).missing_mass().unwrap().unwrap();
            let left: f64 = (rows.iter())
                .map(|row| 1.0 - row.iter().map(|x| x.exp()).sum::<f64>())
                .sum::<f64>()
                / 30.0;
            assert!((found.target - left).abs() < 1e-12 && found.target == found.draft);
            assert_eq!((found.is_large(), found.base_2), (large, None));
        }
        let honest = lists(20.0, &mut rng);
        let base_2: Vec<Vec<f64>> = (honest.iter())
            .map(|row| row.iter().map(|x| x / std::f64::consts::LN_2).collect())
            .collect();
        let [honest, base_2] = [&honest, &base_2].map(|rows| log(rows).missing_mass());
        let (honest, base_2) = (honest.unwrap().unwrap(), base_2.unwrap().unwrap());
        assert!(base_2.is_large(), "{base_2:?}");
        assert!((base_2.base_2.unwrap() - honest.target).abs() < 1e-12);
        assert_eq!(honest.base_2, None);
    }
}
