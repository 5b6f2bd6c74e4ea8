//! From `draft.law` of a problem file to what a law is composed of.

use super::entries::{
    distribution, each, in_range, missing, needed, of_tokens, out_of_range, rational, same_length,
    unexpected, wrong_number,
};
use super::{FieldError, MAX_DRAFTS};
use crate::scheme::{Composition, Draws, MOST_LEVELS, most_probable, nucleus};
use specgap_number::distribution::{Draft, Rational, format_rational};
use specgap_tables::{LawTable, Number};

/// The fields of parts that are drawn.
const DRAWN: &[&str] = &["drafts", "q", "top_k", "top_p", "avoid", "avoid_top"];

/// The kinds of parts, with the fields that each may have.
const KINDS: [(&str, &[&str]); 10] = [
    ("fixed", &["tokens"]),
    ("top", DRAWN),
    ("with-replacement", DRAWN),
    (
        "without-replacement",
        &[
            "drafts",
            "q",
            "top_k",
            "top_p",
            "avoid",
            "avoid_top",
            "stop",
        ],
    ),
    ("distinct-conditioned", DRAWN),
    ("poisson", &["chances"]),
    ("union", &["of"]),
    ("mixture", &["of", "weights"]),
    ("avoiding", &["tokens", "of"]),
    ("merged", &["into", "of"]),
];

/// How many entries lists over the vocabulary have.
const TOKENS: &str = "the number of tokens";

/// What a part may use of the parts around it.
#[derive(Clone, Copy)]
struct Around<'a> {
    /// V of the part.
    vocab: usize,
    /// `draft.q`, for parts over the same vocabulary that give none.
    q: Option<&'a [Number]>,
    level: usize,
}

/// The law at `draft.law`, over `vocab` tokens.
pub(super) fn composition(
    table: LawTable,
    vocab: usize,
    q: Option<&[Number]>,
) -> Result<Composition, FieldError> {
    let around = Around { vocab, q, level: 0 };
    part(table, "draft.law", around)
}

fn part(mut table: LawTable, field: &str, around: Around<'_>) -> Result<Composition, FieldError> {
    if around.level > MOST_LEVELS {
        let field = format!("depth of {field}");
        let limit = format!("0..={MOST_LEVELS}");
        return Err(out_of_range(field, around.level, limit));
    }
    let names = || KINDS.map(|(name, _)| name).join(", ");
    let Some(name) = table.law.take() else {
        return Err(missing(
            format!("{field}.law"),
            format!("name one of {}", names()),
        ));
    };
    let Some(&(name, fields)) = KINDS.iter().find(|(known, _)| *known == name) else {
        return Err(FieldError::Part(format!("{field}.law"), name, names()));
    };
    if let Some(other) = table.present().find(|other| !fields.contains(other)) {
        let cure = format!("a part of law {name} is given by {}", fields.join(", "));
        return Err(unexpected(format!("{field}.{other}"), cure));
    }
    match name {
        "fixed" => {
            let name = format!("{field}.tokens");
            Ok(Composition::Fixed(tokens(
                table.tokens,
                &name,
                around.vocab,
            )?))
        }
        "poisson" => {
            let name = format!("{field}.chances");
            let chances = needed(table.chances, name.clone(), "give each token's chance")?;
            same_length(&name, chances.len(), around.vocab, TOKENS)?;
            Ok(Composition::Poisson(rationals(&name, &chances)?))
        }
        "union" => Ok(Composition::Union(parts(table.of, field, around)?)),
        "mixture" => {
            let laws = parts(table.of, field, around)?;
            let name = format!("{field}.weights");
            let weights = needed(table.weights, name.clone(), "give one weight a part")?;
            let weights = rationals(&name, &weights)?;
            same_length(&name, weights.len(), laws.len(), "the number of parts")?;
            Ok(Composition::Mixture(
                weights.into_iter().zip(laws).collect(),
            ))
        }
        "avoiding" => {
            let tokens = tokens(table.tokens, &format!("{field}.tokens"), around.vocab)?;
            let law = one_part(table.of, field, around)?;
            Ok(Composition::Avoiding(tokens, Box::new(law)))
        }
        "merged" => {
            let name = format!("{field}.into");
            let into = tokens(table.into, &name, around.vocab)?;
            if into.is_empty() {
                return Err(FieldError::Empty(name));
            }
            let inside = Around {
                vocab: into.len(),
                q: None,
                ..around
            };
            let law = one_part(table.of, field, inside)?;
            Ok(Composition::Merged {
                into,
                law: Box::new(law),
            })
        }
        _ => drawn(name, table, field, around),
    }
}

fn drawn(
    name: &str,
    table: LawTable,
    field: &str,
    around: Around<'_>,
) -> Result<Composition, FieldError> {
    let name_of_drafts = format!("{field}.drafts");
    let cure = "give the number of drafts of this part";
    let drafts = needed(table.drafts, name_of_drafts.clone(), cure)?;
    let count = in_range(&name_of_drafts, drafts, 1, MAX_DRAFTS)?;
    if name != "with-replacement" && count > around.vocab {
        let limit = format!(
            "1..={}, the tokens there are: a part of law {name} draws distinct tokens",
            around.vocab
        );
        return Err(out_of_range(name_of_drafts, count, limit));
    }
    let draft = truncated(&table, field, around)?;
    let how = match (name, &table.stop) {
        ("top", _) => return Ok(Composition::Fixed(most_probable(&draft, count))),
        ("with-replacement", _) => Draws::Independent,
        ("distinct-conditioned", _) => Draws::Distinct,
        (_, None) => Draws::Sequential,
        (_, Some(stop)) => Draws::Stopped(rational(&format!("{field}.stop"), stop)?),
    };
    Ok(Composition::Draws { draft, count, how })
}

/// q of a part: its own or `draft.q`; then the most probable tokens of it; then without those
/// to avoid.
fn truncated(table: &LawTable, field: &str, around: Around<'_>) -> Result<Draft, FieldError> {
    let (name, row) = match (&table.q, around.q) {
        (Some(row), _) => (format!("{field}.q"), row.as_slice()),
        (None, Some(row)) => ("draft.q".to_owned(), row),
        (None, None) => {
            return Err(missing(
                format!("{field}.q"),
                "list the probabilities that this part draws from; draft.q is for all parts but those of a merged \
                 law, which are over its own tokens",
            ));
        }
    };
    same_length(&name, row.len(), around.vocab, TOKENS)?;
    let mut draft = distribution(&name, row, Draft::new, Draft::from_rationals)?;
    // Only these tokens, or all others.
    let only = |draft: &Draft, tokens: Vec<usize>, others: bool| {
        let mut listed = vec![false; draft.vocab()];
        for token in tokens {
            listed[token] = true;
        }
        let left = draft.restricted(|token| listed[token] != others);
        left.ok_or_else(|| {
            FieldError::Empty(format!(
                "{field}: what top_k, top_p, avoid and avoid_top leave of q"
            ))
        })
    };
    // In the order k, p, in fractions. `Cut` of the member `sampling` is in `f64`, one floor above.
    if let Some(count) = table.top_k {
        let count = in_range(&format!("{field}.top_k"), count, 1, around.vocab)?;
        let tokens = most_probable(&draft, count);
        draft = only(&draft, tokens, false)?;
    }
    if let Some(share) = &table.top_p {
        let name = format!("{field}.top_p");
        let share = rational(&name, share)?;
        if share <= Rational::default() || share > Rational::from_integer(1.into()) {
            return Err(out_of_range(name, format_rational(&share), "(0, 1]"));
        }
        let tokens = nucleus(&draft, &share);
        draft = only(&draft, tokens, false)?;
    }
    if table.avoid.is_some() {
        let tokens = tokens(table.avoid.clone(), &format!("{field}.avoid"), around.vocab)?;
        draft = only(&draft, tokens, true)?;
    }
    if let Some(count) = table.avoid_top {
        let count = in_range(&format!("{field}.avoid_top"), count, 0, around.vocab)?;
        let tokens = most_probable(&draft, count);
        draft = only(&draft, tokens, true)?;
    }
    Ok(draft)
}

fn parts(
    of: Option<Vec<LawTable>>,
    field: &str,
    around: Around<'_>,
) -> Result<Vec<Composition>, FieldError> {
    let of = needed(of, format!("{field}.of"), "list the parts")?;
    let inside = Around {
        level: around.level + 1,
        ..around
    };
    if of.is_empty() {
        return Err(FieldError::Empty(format!("{field}.of")));
    }
    each(&format!("{field}.of"), of, |field, table| {
        part(table, field, inside)
    })
}

fn one_part(
    of: Option<Vec<LawTable>>,
    field: &str,
    around: Around<'_>,
) -> Result<Composition, FieldError> {
    let mut parts = parts(of, field, around)?;
    match (parts.pop(), parts.len()) {
        (Some(part), 0) => Ok(part),
        (_, more) => Err(wrong_number(
            format!("number of parts in {field}.of"),
            more + 1,
            "1; put several into one union or mixture",
        )),
    }
}

fn tokens(list: Option<Vec<i64>>, field: &str, vocab: usize) -> Result<Vec<usize>, FieldError> {
    let list = needed(list, field.to_owned(), "list token ids")?;
    of_tokens(field, list.len(), 0)?;
    each(field, list, |field, token| {
        in_range(field, token, 0, vocab.saturating_sub(1))
    })
}

fn rationals(field: &str, numbers: &[Number]) -> Result<Vec<Rational>, FieldError> {
    each(field, numbers, rational)
}
