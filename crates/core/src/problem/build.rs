//! From the fields of a problem file to a problem, or to what is wrong with them.

use super::block::write_prefix;
use super::composed::composition;
use super::entries::{
    distribution, each, in_range, missing, needed, out_of_range, rational, refuse, same_length,
    unexpected, wrong_number,
};
use super::{
    AnyProblem, BlockExpected, BlockProblem, Expected, ExpectedValue, FieldError, MAX_DRAFTS,
    MAX_VOCAB, Problem, ProblemError, Rule, SCHEMA, SpecTrGbvExpected,
};
use crate::rule::RuleName;
use crate::scheme::{DraftScheme, ExplicitError, MadeOf, SchemeName, TuplesToLaw};
use specgap_number::distribution::{
    DistributionError, Draft, Output, Rational, Target, TupleProbabilities, round_nearest,
};
use specgap_tables::{BlockTable, DraftTable, ExpectedTable, File, Number, RuleTable};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) fn build(file: File) -> Result<AnyProblem, FieldError> {
    let schema = needed(file.schema, "schema", "write schema = 1")?;
    if schema != SCHEMA {
        return Err(FieldError::Schema(schema));
    }
    let name = needed(file.name, "name", "give the problem a name")?;
    if name.trim().is_empty() {
        return Err(missing("name", "give the problem a name that is not empty"));
    }
    if let Some(block) = file.block {
        refuse(
            [
                ("target", file.target.is_some()),
                ("draft", file.draft.is_some()),
            ],
            "a block problem has block.target and block.draft instead",
        )?;
        refuse(
            [("rule", file.rule.is_some())],
            "rules are tabulated for single-step problems only",
        )?;
        return build_block(name, file.drafts, block, file.expected).map(AnyProblem::Block);
    }
    let target = needed(file.target, "target", "list the target's probabilities")?;
    let drafts = needed(file.drafts, "drafts", "give the number of draft tokens")?;
    let drafts = in_range("drafts", drafts, 1, MAX_DRAFTS)?;
    let draft = needed(file.draft, "draft", "add a [draft] table with scheme and q")?;
    let target = distribution("target", &target, Target::new, Target::from_rationals)?;
    let scheme = build_scheme(draft, target.vocab(), drafts)?;
    let expected = file.expected.map(build_expected).transpose()?;
    let problem = Problem::from_parts(name, target, scheme, expected)?;
    Ok(AnyProblem::Single(match file.rule {
        Some(table) => {
            let rule = build_rule(table, &problem)?;
            problem.with_rule(rule)
        }
        None => problem,
    }))
}

/// Most rows of a rule.
const MOST_RULE_ROWS: f64 = 1e6;

fn build_rule(table: RuleTable, problem: &Problem) -> Result<Rule, FieldError> {
    let vocab = problem.vocab();
    let refused = |field: &str, message: String| FieldError::Rule(field.to_owned(), message);
    let name = table.name.filter(|name| !name.trim().is_empty());
    let name = needed(name, "rule.name", "say what the rule is called")?;
    let mut outputs = BTreeMap::new();
    for (key, row) in &table.outputs {
        let field = format!("rule.outputs.\"{key}\"");
        let token = |word: &str| {
            let token = word.parse().ok();
            token.filter(|&token: &u32| (token as usize) < vocab)
        };
        let tuple: Option<Vec<u32>> = key.split_whitespace().map(token).collect();
        let tuple = tuple.ok_or_else(|| {
            let message = format!("is no list of tokens below {vocab}, joined by spaces");
            refused(&field, message)
        })?;
        if row.len() != vocab {
            let message = format!("has {} entries; the target has {vocab}", row.len());
            return Err(refused(&field, message));
        }
        let row = distribution(&field, row, Output::new, Output::from_rationals)?;
        if outputs.insert(tuple, row).is_some() {
            return Err(refused(
                &field,
                "is there twice; keep one of them".to_owned(),
            ));
        }
    }
    let tuples = problem.scheme().tuple_count();
    if tuples > MOST_RULE_ROWS {
        let message = format!("{tuples:.3e} tuples of drafts are too many; lower V or drafts");
        return Err(refused("rule.outputs", message));
    }
    // Laws of distinct tokens draw fewer than n where q has fewer, others at times, or none.
    let mut lengths = BTreeSet::new();
    let mut absent = None;
    problem.scheme().for_each_tuple(&mut |tuple, mass| {
        if mass > 0.0 {
            lengths.insert(tuple.len());
            if absent.is_none() && !outputs.contains_key(tuple) {
                absent = Some(tuple.to_vec());
            }
        }
    });
    if let Some(tuple) = outputs.keys().find(|tuple| !lengths.contains(&tuple.len())) {
        let drawn: Vec<String> = lengths.iter().map(ToString::to_string).collect();
        let (listed, drawn) = (tuple.len(), drawn.join(" or "));
        let message = format!("lists {listed} drafts; {drawn} are drawn at a time");
        let field = format!("rule.outputs.\"{}\"", write_prefix(tuple));
        return Err(refused(&field, message));
    }
    match absent {
        None => Ok(Rule { name, outputs }),
        Some(tuple) => {
            let words = write_prefix(&tuple);
            let message = format!("has no row \"{words}\", and these drafts can be drawn");
            Err(refused("rule.outputs", message))
        }
    }
}

fn build_scheme(
    table: DraftTable,
    vocab: usize,
    drafts: usize,
) -> Result<Arc<dyn DraftScheme>, FieldError> {
    let named = || format!("name one of {}", SchemeName::list());
    let text = table
        .scheme
        .ok_or_else(|| missing("draft.scheme", named()))?;
    let name = straddled(text.parse()?, table.straddle.as_deref())?;
    let made_of = name.entry().made_of;
    let wanted = made_of.fields();
    let given = [
        ("draft.q", table.q.is_some()),
        ("draft.qs", table.qs.is_some()),
        ("draft.tuples", table.tuples.is_some()),
        ("draft.probabilities", table.probabilities.is_some()),
        ("draft.law", table.law.is_some()),
    ];
    refuse(
        given.map(|(field, is_there)| (field, is_there && !wanted.contains(&field))),
        &format!("scheme {name} is given by {}", wanted.join(" and ")),
    )?;
    let same_vocab =
        |field: &str, entries: usize| same_length(field, entries, vocab, "the length of target");
    match made_of {
        MadeOf::OneDraft(make) => {
            let row = needed(table.q, "draft.q", "list the draft's probabilities")?;
            same_vocab("draft.q", row.len())?;
            let draft = distribution("draft.q", &row, Draft::new, Draft::from_rationals)?;
            if drafts > vocab && name.draws_distinct_tokens() {
                return Err(ProblemError::MoreDraftsThanTokens(drafts, vocab, name).into());
            }
            if let Some(only) = name.entry().only.filter(|&only| only != drafts) {
                let wanted = format!("{only} for scheme {name}");
                return Err(wrong_number("drafts", drafts, wanted));
            }
            Ok(make(draft, drafts))
        }
        MadeOf::EachDraft(make) => {
            let rows = needed(table.qs, "draft.qs", "list one distribution a draft")?;
            if rows.len() != drafts {
                let field = "number of distributions in draft.qs";
                let wanted = format!("{drafts}, the number of drafts");
                return Err(wrong_number(field, rows.len(), wanted));
            }
            let rows = each("draft.qs", &rows, |field, row| {
                same_vocab(field, row.len())?;
                distribution(field, row, Draft::new, Draft::from_rationals)
            })?;
            make(rows).ok_or(FieldError::Empty("draft.qs".to_owned()))
        }
        MadeOf::Tuples(make) => {
            build_tuples(make, table.tuples, table.probabilities, vocab, drafts)
        }
        MadeOf::Parts(make) => {
            let law = needed(table.law, "draft.law", "say what the law is composed of")?;
            let law = composition(law, vocab, table.q.as_deref())?;
            let most = law.most();
            let law = make(vocab, law)?;
            if most != drafts {
                let wanted = format!("{most}, the most that draft.law can draft");
                return Err(wrong_number("drafts", drafts, wanted));
            }
            Ok(law)
        }
    }
}

/// The law that `draft.straddle` makes of another.
fn straddled(name: SchemeName, straddle: Option<&str>) -> Result<SchemeName, FieldError> {
    let field = "draft.straddle";
    match straddle {
        None => Ok(name),
        Some(_) if name != SchemeName::STRATIFIED => {
            let cure = format!("only scheme {} has it", SchemeName::STRATIFIED);
            Err(unexpected(field, cure))
        }
        Some("once") => Ok(SchemeName::STRATIFIED),
        Some("independent") => Ok(SchemeName::STRATIFIED_INDEPENDENT),
        Some(other) => {
            let limit = "\"once\", \"independent\"";
            Err(out_of_range(field, format!("{other:?}"), limit))
        }
    }
}

pub(super) fn build_tuples(
    make: TuplesToLaw,
    tuples: Option<Vec<Vec<i64>>>,
    probabilities: Option<Vec<Number>>,
    vocab: usize,
    drafts: usize,
) -> Result<Arc<dyn DraftScheme>, FieldError> {
    let tuples = needed(tuples, "draft.tuples", "list the draft tuples")?;
    if tuples.is_empty() {
        return Err(FieldError::Empty("draft.tuples".to_owned()));
    }
    let cure = "list one probability a tuple";
    let probabilities = needed(probabilities, "draft.probabilities", cure)?;
    let tuples = tuples
        .into_iter()
        .enumerate()
        .map(|(index, tuple)| {
            tuple
                .into_iter()
                .map(|token| {
                    u32::try_from(token)
                        .ok()
                        .filter(|&id| (id as usize) < vocab)
                        .ok_or(ExplicitError::OutOfRange(index, token, vocab))
                })
                .collect::<Result<Vec<u32>, _>>()
        })
        .collect::<Result<Vec<_>, _>>()?;
    let law = distribution(
        "draft.probabilities",
        &probabilities,
        TupleProbabilities::new,
        TupleProbabilities::from_rationals,
    )?;
    Ok(make(vocab, drafts, tuples, law)?)
}

fn expected_value(field: &str, number: &Number) -> Result<ExpectedValue, FieldError> {
    let exact = rational(field, number)?;
    let value = round_nearest(&exact);
    Ok(ExpectedValue { exact, value })
}

fn rate(field: &str, number: &Number) -> Result<ExpectedValue, FieldError> {
    let value = expected_value(field, number)?;
    let [zero, one] = [0, 1].map(|whole| Rational::from_integer(whole.into()));
    // A rate from another floating-point program may exceed 1 by rounding.
    if value.exact < zero || (value.exact > one && value.value > 1.0 + 1e-9) {
        return Err(out_of_range(field, value.value, "[0, 1]"));
    }
    Ok(value)
}

fn tolerance(number: Option<&Number>) -> Result<Option<ExpectedValue>, FieldError> {
    let field = "expected.tolerance";
    let Some(number) = number else {
        return Ok(None);
    };
    let value = expected_value(field, number)?;
    if value.value < 0.0 {
        return Err(out_of_range(field, value.value, "[0, inf)"));
    }
    Ok(Some(value))
}

fn build_expected(table: ExpectedTable) -> Result<Expected, FieldError> {
    let of_blocks = [
        ("expected.block_lp", table.block_lp.is_some()),
        ("expected.per_depth_bound", table.per_depth_bound.is_some()),
        ("expected.lemma_5_1", table.lemma_5_1.is_some()),
        ("expected.spectr_gbv", table.spectr_gbv.is_some()),
    ];
    refuse(of_blocks, "it is expected of block problems only")?;
    let mut acceptance_rate = BTreeMap::new();
    for (verifier, number) in &table.acceptance_rate {
        let field = format!("expected.acceptance_rate.{verifier}");
        let value = rate(&field, number)?;
        // Rules had other names.
        let rule = verifier.parse::<RuleName>();
        let name = rule.map_or_else(|_| verifier.clone(), |rule| rule.to_string());
        let twice = format!("is given twice, as {name} is the same rule; keep one of them");
        if acceptance_rate.insert(name, value).is_some() {
            return Err(FieldError::Rule(field, twice));
        }
    }
    Ok(Expected {
        optimal_acceptance_rate: table
            .optimal_acceptance_rate
            .map(|number| rate("expected.optimal_acceptance_rate", &number))
            .transpose()?,
        acceptance_rate,
        tolerance: tolerance(table.tolerance.as_ref())?,
        source: table.source,
    })
}

fn build_block(
    name: String,
    drafts: Option<i64>,
    table: BlockTable,
    expected: Option<ExpectedTable>,
) -> Result<BlockProblem, FieldError> {
    let drafts = in_range("drafts", drafts.unwrap_or(1), 1, MAX_DRAFTS)?;
    let vocab = in_range("block.vocab", table.vocab, 1, MAX_VOCAB)?;
    let length = in_range("block.length", table.length, 1, 64)?;
    let target = conditionals("target", table.target, Target::new, Target::from_rationals)?;
    let draft = conditionals("draft", table.draft, Draft::new, Draft::from_rationals)?;
    let expected = expected.map(build_block_expected).transpose()?;
    Ok(BlockProblem::new(
        name, vocab, length, drafts, target, draft, expected,
    )?)
}

/// The rows of one side of a block problem, by prefix.
fn conditionals<D>(
    side: &str,
    rows: BTreeMap<String, Vec<Number>>,
    floats: impl Fn(&[f64]) -> Result<D, DistributionError>,
    rationals: impl Fn(Vec<Rational>) -> Result<D, DistributionError>,
) -> Result<BTreeMap<String, D>, FieldError> {
    let rows = rows.into_iter().map(|(prefix, row)| {
        let field = format!("block.{side}.\"{prefix}\"");
        Ok((prefix, distribution(&field, &row, &floats, &rationals)?))
    });
    rows.collect()
}

fn build_block_expected(table: ExpectedTable) -> Result<BlockExpected, FieldError> {
    let of_steps = [
        (
            "expected.optimal_acceptance_rate",
            table.optimal_acceptance_rate.is_some(),
        ),
        (
            "expected.acceptance_rate",
            !table.acceptance_rate.is_empty(),
        ),
    ];
    refuse(of_steps, "it is expected of single-step problems only")?;
    let value = |field: &str, number: Option<Number>| {
        number
            .map(|number| expected_value(field, &number))
            .transpose()
    };
    let spectr_gbv = table.spectr_gbv.map(|table| {
        let length = "expected.spectr_gbv.expected_accepted_length";
        let undefined = "expected.spectr_gbv.undefined_mass";
        Ok::<_, FieldError>(SpecTrGbvExpected {
            expected_accepted_length: expected_value(length, &table.expected_accepted_length)?,
            undefined_mass: value(undefined, table.undefined_mass)?,
        })
    });
    Ok(BlockExpected {
        block_lp: value("expected.block_lp", table.block_lp)?,
        per_depth_bound: value("expected.per_depth_bound", table.per_depth_bound)?,
        lemma_5_1: value("expected.lemma_5_1", table.lemma_5_1)?,
        spectr_gbv: spectr_gbv.transpose()?,
        tolerance: tolerance(table.tolerance.as_ref())?,
        source: table.source,
    })
}
