//! A draft law that is given row after row: `[draft]` of a problem file without its q.

use super::build::build_tuples;
use super::composed::composition;
use super::entries::{missing, unexpected, wrong_number};
use super::read::whole;
use super::{FieldError, MAX_DRAFTS, ProblemError};
use crate::scheme::{Composed, DraftScheme, MadeOf, Product, SchemeName, TuplesToLaw};
use specgap_number::distribution::Draft;
use specgap_tables::{self as tables, LawTable, Number};
use std::sync::Arc;

/// What the drafts are drawn by at every row, whatever its q is.
///
/// It is read from the table `[draft]` of a problem file, as JSON, of scheme `composed`,
/// `product` or `explicit`. Rows of q come later, one pair of rows after another: one for
/// `composed`, one a draft for `product`, and none for `explicit`.
///
/// # Example
/// ```
/// use specgap_core::problem::RowLaw;
/// let law = RowLaw::parse_json(r#"{"scheme": "composed", "law": {"law": "union", "of": [
///     {"law": "top", "drafts": 1}, {"law": "with-replacement", "drafts": 2}]}}"#)?;
/// let scheme = law.on(3, &[vec![0.5, 0.25, 0.25]])?;
/// assert_eq!((scheme.drafts(), scheme.inside(&[0, 1])), (3, 0.5625));
/// # Ok::<(), specgap_core::problem::FieldError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowLaw(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Composed(Box<LawTable>),
    /// A law of the table, alone, with so many drafts.
    Named(SchemeName, usize, Box<LawTable>),
    Independent,
    Tuples(TuplesToLaw, Vec<Vec<i64>>, Vec<Number>),
}

impl RowLaw {
    /// Reads the table of a law.
    ///
    /// # Errors
    /// [`FieldError`]: no such table, another scheme, or rows of q in it.
    pub fn parse_json(text: &str) -> Result<Self, FieldError> {
        let table = whole(text, tables::draft_in_json)?;
        let cure = || {
            let names = SchemeName::ALL.into_iter();
            let names = names.filter(|one| !matches!(one.entry().made_of, MadeOf::OneDraft(_)));
            let names: Vec<&str> = names.map(SchemeName::as_str).collect();
            format!("name one of {}", names.join(", "))
        };
        let name = table
            .scheme
            .ok_or_else(|| missing("draft.scheme", cure()))?;
        if table.q.is_some() || table.qs.is_some() {
            let cure = "rows come with the pairs that the law is asked of";
            return Err(unexpected("draft.q", cure));
        }
        let name: SchemeName = name.parse()?;
        match (name.entry().made_of, table.law, table.tuples) {
            (MadeOf::Parts(_), Some(law), None) => {
                let law = Box::new(law);
                Ok(Self(match named(&law) {
                    Some((name, drafts)) => Kind::Named(name, drafts, law),
                    None => Kind::Composed(law),
                }))
            }
            (MadeOf::EachDraft(_), None, None) => Ok(Self(Kind::Independent)),
            (MadeOf::Tuples(make), None, Some(tuples)) => {
                let masses = table.probabilities.unwrap_or_default();
                Ok(Self(Kind::Tuples(make, tuples, masses)))
            }
            (made_of, ..) => {
                let wanted = made_of.fields();
                Err(missing(
                    "draft",
                    format!("scheme {name} is given by {}", wanted.join(" and ")),
                ))
            }
        }
    }

    /// Returns what it is made as: a part alone that draws as a law of the table does is that law.
    pub fn made(&self) -> SchemeName {
        match &self.0 {
            Kind::Composed(_) => SchemeName::COMPOSED,
            Kind::Named(name, ..) => *name,
            Kind::Independent => SchemeName::PRODUCT,
            Kind::Tuples(..) => SchemeName::EXPLICIT,
        }
    }

    /// Returns whether the law draws from as many rows of q.
    pub fn takes(&self, rows: usize) -> bool {
        match &self.0 {
            Kind::Composed(_) | Kind::Named(..) => rows == 1,
            Kind::Independent => rows >= 1,
            Kind::Tuples(..) => rows == 0,
        }
    }

    /// The law over `vocab` tokens, drawn from these rows of q, which sum to 1.
    ///
    /// # Errors
    /// [`FieldError`]: what the law says does not fit q or the vocabulary, or the number of rows
    /// is another ([`Self::takes`]).
    pub fn on(&self, vocab: usize, rows: &[Vec<f64>]) -> Result<Arc<dyn DraftScheme>, FieldError> {
        if !self.takes(rows.len()) {
            let wanted = match self.0 {
                Kind::Composed(_) | Kind::Named(..) => "1".to_owned(),
                Kind::Independent => format!("in 1..={MAX_DRAFTS}"),
                Kind::Tuples(..) => "0".to_owned(),
            };
            return Err(wrong_number("number of rows of q", rows.len(), wanted));
        }
        if let Kind::Named(name, drafts, _) = &self.0
            && let MadeOf::OneDraft(make) = name.entry().made_of
            && (*drafts <= vocab || !name.draws_distinct_tokens())
            && let [row] = rows
            && let Ok(q) = Draft::new(row)
        {
            return Ok(make(q, *drafts));
        }
        let law: Arc<dyn DraftScheme> = match &self.0 {
            Kind::Composed(law) | Kind::Named(.., law) => {
                let q: Vec<Number> = rows.concat().into_iter().map(Number::Float).collect();
                Arc::new(Composed::new(
                    vocab,
                    composition(law.as_ref().clone(), vocab, Some(&q))?,
                )?)
            }
            Kind::Independent => {
                let one = |(index, row): (usize, &Vec<f64>)| {
                    Draft::new(row).map_err(|source| {
                        FieldError::Distribution(format!("draft.qs[{index}]"), source)
                    })
                };
                let rows = rows.iter().enumerate().map(one).collect::<Result<_, _>>()?;
                let field = "draft.qs".to_owned();
                Arc::new(Product::new(rows).ok_or(FieldError::Empty(field))?)
            }
            Kind::Tuples(make, tuples, masses) => {
                let drafts = tuples.first().map_or(0, Vec::len);
                let (tuples, masses) = (Some(tuples.clone()), Some(masses.clone()));
                build_tuples(*make, tuples, masses, vocab, drafts)?
            }
        };
        let drafts = law.drafts();
        if !(1..=MAX_DRAFTS).contains(&drafts) {
            return Err(ProblemError::Drafts(drafts).into());
        }
        Ok(law)
    }
}

/// The law of the table, and the number of drafts, that a part is of which nothing else is said.
fn named(law: &LawTable) -> Option<(SchemeName, usize)> {
    let drafts = usize::try_from(law.drafts?).ok()?;
    let alone = law.present().eq(["drafts"]) && (1..=MAX_DRAFTS).contains(&drafts);
    let name: SchemeName = law.law.as_ref().filter(|_| alone)?.parse().ok()?;
    matches!(name.entry().made_of, MadeOf::OneDraft(_)).then_some((name, drafts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use specgap_number::distribution::Rational;

    #[test]
    fn laws_of_rows_are_those_of_problem_files() {
        let refused = |text: &str| RowLaw::parse_json(text).unwrap_err().to_string();
        assert_eq!(
            refused(r#"{"law": {"law": "fixed"}}"#),
            "draft.scheme is missing; name one of product, explicit, composed"
        );
        assert_eq!(
            refused(r#"{"scheme": "product", "qs": [[1]]}"#),
            "draft.q does not belong here; rows come with the pairs that the law is asked of"
        );
        assert_eq!(
            refused(r#"{"scheme": "hub"}"#),
            "draft is missing; scheme hub is given by draft.q"
        );
        let rows = [vec![0.5, 0.5], vec![0.25, 0.75]];
        let two = RowLaw::parse_json(r#"{"scheme": "product"}"#).unwrap();
        assert!(two.takes(2) && !two.takes(0));
        let law = two.on(2, &rows).unwrap();
        assert_eq!((law.drafts(), law.inside(&[1])), (2, 0.375));
        let listed = r#"{"scheme": "explicit", "tuples": [[0, 1], [1, 1]], "probabilities": ["1/3", "2/3"]}"#;
        let listed = RowLaw::parse_json(listed).unwrap();
        let law = listed.on(2, &[]).unwrap();
        assert_eq!(law.inside_exact(&[1]), Rational::new(2.into(), 3.into()));
        assert_eq!(
            listed.on(2, &rows).unwrap_err().to_string(),
            "number of rows of q is 2; it must be 0"
        );
        // A part alone that draws as a law of the table does is that law, with its rules.
        let part =
            |law: &str| RowLaw::parse_json(&format!(r#"{{"scheme": "composed", "law": {law}}}"#));
        for (law, made) in [
            (
                r#"{"law": "with-replacement", "drafts": 2}"#,
                SchemeName::WITH_REPLACEMENT,
            ),
            (
                r#"{"law": "with-replacement", "drafts": 2, "avoid_top": 1}"#,
                SchemeName::COMPOSED,
            ),
            (
                r#"{"law": "without-replacement", "drafts": 2}"#,
                SchemeName::WITHOUT_REPLACEMENT,
            ),
        ] {
            let law = part(law).unwrap();
            assert_eq!(law.made(), made);
            assert_eq!(law.on(3, &[vec![0.5, 0.25, 0.25]]).unwrap().name(), made);
        }
        // The most probable of what is left, not of what is gone.
        let cut = r#"{"law": "with-replacement", "drafts": 1, "avoid": [0], "avoid_top": 1}"#;
        let cut = part(cut).unwrap().on(3, &[vec![0.5, 0.3, 0.2]]).unwrap();
        assert_eq!([1, 2].map(|token| cut.inside(&[token])), [0.0, 1.0]);
        let few = part(r#"{"law": "without-replacement", "drafts": 3}"#).unwrap();
        assert_eq!(few.on(2, &rows[..1]).map(|law| law.name()).ok(), None);
        let none = r#"{"scheme": "composed", "law": {"law": "fixed", "tokens": []}}"#;
        let none = RowLaw::parse_json(none).unwrap();
        assert_eq!(
            none.on(2, &rows[..1]).unwrap_err().to_string(),
            "draft.law: the law never drafts a token; give at least one part that does"
        );
    }
}
