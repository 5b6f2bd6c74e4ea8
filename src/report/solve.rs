//! Reports of `specgap solve`.

use super::table::{Column, Row, Table};
use super::text::{counted, exact_or_decimal, seconds, small, wrap};
use super::{JSON_SCHEMA, terminal};
use crate::distribution::{Rational, format_rational};
use crate::known::Known;
use crate::solve::{Basis, MethodRun, Solution, Status};
use serde::Serialize;
use std::fmt::Write as _;

/// Definitions that go under every text report.
pub const DEFINITIONS: &str = "\
alpha*      optimal acceptance rate: the largest P(output is one of the drafts) over all verifiers
            whose output follows the target p exactly; dimensionless, in [0, 1]
P(H), Q(H)  target mass of the token set H; probability that every draft lies in H
exact       computed in rational arithmetic, checked with tolerance 0
difference  |method - certified alpha*|; linear programs are floating point and agree within 1e-9
status      optimal: answer with checked optimality conditions; imprecise: a solver's answer whose
            recomputed conditions fail, shown and not counted; unsolved: no answer; skipped: not run";

#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    problem: &'a str,
    scheme: &'static str,
    vocab: usize,
    drafts: usize,
    optimal_acceptance_rate: JsonRate,
    methods: Vec<JsonMethod<'a>>,
    certificate: JsonCertificate<'a>,
    agreement: JsonAgreement<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<JsonExpected<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_law_without_replacement: Option<JsonSibling>,
    ok: bool,
}

#[derive(Serialize)]
pub(super) struct JsonRate {
    value: f64,
    lower: f64,
    upper: f64,
    exact: Option<String>,
}

impl From<&Known> for JsonRate {
    fn from(rate: &Known) -> Self {
        let exact = rate.rational().map(format_rational);
        Self {
            value: rate.value(),
            lower: rate.lower(),
            upper: rate.upper(),
            exact,
        }
    }
}

#[derive(Serialize)]
struct JsonMethod<'a> {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<&'static str>,
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<String>,
    seconds: f64,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    primal_infeasibility: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dual_infeasibility: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duality_gap: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subset: Option<&'a [usize]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonCertificate<'a> {
    subset: &'a [usize],
    flow_equals_cut: bool,
    basis: &'static str,
    target_mass: f64,
    inside: f64,
    statement: String,
}

#[derive(Serialize)]
struct JsonAgreement<'a> {
    max_abs_difference: f64,
    methods: usize,
    ok: bool,
    complaints: &'a [String],
}

#[derive(Serialize)]
struct JsonExpected<'a> {
    ok: bool,
    optimal_acceptance_rate: &'a str,
    tolerance: f64,
    source: Option<&'a str>,
    complaint: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonSibling {
    scheme: &'static str,
    optimal_acceptance_rate: JsonRate,
    difference: f64,
}

#[derive(Serialize)]
struct JsonSkipped<'a> {
    schema: u32,
    problem: &'a str,
    status: &'static str,
    reason: &'a str,
}

/// One JSON object on one line.
///
/// # Errors
/// None that a `Solution` can cause; serialisation is fallible by type.
pub fn json(solution: &Solution) -> serde_json::Result<String> {
    let rate = &solution.optimal_acceptance_rate;
    serde_json::to_string(&Json {
        schema: JSON_SCHEMA,
        problem: &solution.problem,
        scheme: solution.scheme.as_str(),
        vocab: solution.vocab,
        drafts: solution.drafts,
        optimal_acceptance_rate: rate.into(),
        methods: solution.methods.iter().map(json_method).collect(),
        certificate: JsonCertificate {
            subset: &solution.proof.subset,
            flow_equals_cut: solution.proof.basis == Basis::FlowEqualsCut
                && rate.rational().is_some(),
            basis: basis(solution.proof.basis),
            target_mass: solution.proof.target_mass,
            inside: solution.proof.inside,
            statement: statement(solution),
        },
        agreement: JsonAgreement {
            max_abs_difference: solution.agreement.max_abs_difference,
            methods: solution.agreement.methods,
            ok: solution.agreement.complaints.is_empty(),
            complaints: &solution.agreement.complaints,
        },
        expected: solution.expected.as_ref().map(|check| JsonExpected {
            ok: check.complaint.is_none(),
            optimal_acceptance_rate: &check.expected,
            tolerance: check.tolerance,
            source: check.source.as_deref(),
            complaint: check.complaint.as_deref(),
        }),
        other_law_without_replacement: solution.sibling.as_ref().map(|sibling| JsonSibling {
            scheme: sibling.scheme.as_str(),
            optimal_acceptance_rate: (&sibling.rate).into(),
            difference: sibling.rate.value() - rate.value(),
        }),
        ok: solution.ok(),
    })
}

/// The JSON object of a problem that a command does not take.
///
/// # Errors
/// As for [`json`].
pub fn json_skipped(problem: &str, reason: &str) -> serde_json::Result<String> {
    serde_json::to_string(&JsonSkipped {
        schema: JSON_SCHEMA,
        problem,
        status: "skipped",
        reason,
    })
}

fn json_method(run: &MethodRun) -> JsonMethod<'_> {
    let rigorous = run.rate.as_ref().filter(|_| run.backend.is_none());
    JsonMethod {
        name: run.method.as_str(),
        backend: run.backend.map(crate::lp::BackendName::as_str),
        value: run.rate.as_ref().map(|rate| rate.value()),
        lower: rigorous.map(|rate| rate.lower()),
        upper: rigorous.map(|rate| rate.upper()),
        exact: rigorous
            .and_then(|rate| rate.rational())
            .map(format_rational),
        seconds: run.seconds,
        status: run.status.as_str(),
        reason: run.status.reason(),
        primal_infeasibility: run.residuals.map(|r| r.primal_infeasibility),
        dual_infeasibility: run.residuals.map(|r| r.dual_infeasibility),
        duality_gap: run.residuals.map(|r| r.duality_gap),
        subset: run.subset.as_deref(),
        note: run.note.as_deref(),
    }
}

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::FlowEqualsCut => "flow equals cut, exactly",
        Basis::FlowMeetsCut => "flow and cut on capacities rounded to 2^-120, enclosed",
        Basis::Subset => "subset above, theorem below",
    }
}

/// The proof of a solution in words.
pub fn statement(solution: &Solution) -> String {
    let proof = &solution.proof;
    let rate = &solution.optimal_acceptance_rate;
    let number = |value: f64, exact: Option<&Rational>| match exact {
        Some(exact) if format_rational(exact).len() <= 24 => format_rational(exact),
        _ => format!("{value}"),
    };
    let p = number(proof.target_mass, proof.exact.as_ref().map(|(p, _)| p));
    let q = number(proof.inside, proof.exact.as_ref().map(|(_, q)| q));
    let rejected = match &proof.exact {
        Some((p, q)) => number(proof.inside - proof.target_mass, Some(&(q - p))),
        None => format!("{}", proof.inside - proof.target_mass),
    };
    let drafts = match solution.drafts {
        1 => "The draft lies".to_owned(),
        n => format!("All {n} drafts lie"),
    };
    let above = if proof.subset.is_empty() {
        "No set of tokens is drafted more often than the target can absorb, so nothing forces a \
         rejection."
            .to_owned()
    } else {
        format!(
            "{drafts} in H = {} with probability Q(H) = {q}; then only tokens of H can be accepted, \
             and the target has room for P(H) = {p} of them. So every verifier rejects at least \
             Q(H) - P(H) = {rejected}.",
            set(&proof.subset)
        )
    };
    let below = match proof.basis {
        Basis::FlowEqualsCut if rate.rational().is_some() => format!(
            "A plan that accepts {} was checked entry by entry in exact arithmetic: flow = cut.",
            number(rate.value(), rate.rational())
        ),
        Basis::FlowEqualsCut => "The plan and the subset do not meet.".to_owned(),
        Basis::FlowMeetsCut if rate.rational().is_some() => {
            "The value is exact by a theorem or formula; a plan was checked entry by entry to \
             come within rounding of it."
                .to_owned()
        }
        Basis::FlowMeetsCut => format!(
            "A plan that accepts at least {} was checked entry by entry; rounding is in the bounds.",
            rate.lower()
        ),
        Basis::Subset => format!(
            "The problem is too large for a plan; that at least {} can be accepted follows from \
             a method's own bound.",
            rate.lower()
        ),
    };
    format!("{above} {below}")
}

/// A set of tokens, cut short in the middle if it is long.
fn set(tokens: &[usize]) -> String {
    let list = |tokens: &[usize]| {
        tokens
            .iter()
            .map(usize::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    if tokens.len() <= 16 {
        return format!("{{{}}}", list(tokens));
    }
    let (head, tail) = (&tokens[..8], &tokens[tokens.len() - 4..]);
    format!(
        "{{{}, ..., {}}} ({} tokens)",
        list(head),
        list(tail),
        tokens.len()
    )
}

/// A report for people; `width` wraps the table and the prose.
pub fn text(solution: &Solution, width: u16) -> String {
    let rate = &solution.optimal_acceptance_rate;
    let mut out = format!("{}\n", solution.problem);
    let _ = wrap(
        &mut out,
        &format!("{}: {}", solution.scheme, solution.scheme.law()),
        width,
    );
    let _ = writeln!(out, "  V = {}, n = {}", solution.vocab, solution.drafts);
    let _ = match &rate.rational() {
        Some(exact) => writeln!(out, "  alpha* = {}", exact_or_decimal(exact, rate.value())),
        None => writeln!(
            out,
            "  alpha* = {} enclosed in [{}, {}], width {:.1e}",
            rate.value(),
            rate.lower(),
            rate.upper(),
            rate.width()
        ),
    };
    let columns = vec![
        Column::words("method"),
        Column::words("solver"),
        Column::number("alpha*"),
        Column::number("difference"),
        Column::number("time"),
        Column::words("status"),
    ];
    let rows = solution.methods.iter().map(|run| row(run, rate));
    let table = Table::new("methods", "", columns).rows(rows);
    terminal::table(&mut out, &table, width, "  ");
    for (reason, names) in skipped(&solution.methods) {
        let _ = wrap(
            &mut out,
            &format!("skipped {}: {reason}", names.join(", ")),
            width,
        );
    }
    for run in &solution.methods {
        let name = run.method.as_str();
        let solver = run
            .backend
            .map_or(String::new(), |b| format!(" ({})", b.as_str()));
        if let (Some(note), true) = (&run.note, run.status == Status::Optimal) {
            let _ = wrap(&mut out, &format!("{name}{solver}: {note}"), width);
        }
        if let Status::Unsolved(reason) = &run.status {
            let _ = wrap(
                &mut out,
                &format!("{name}{solver} unsolved: {reason}"),
                width,
            );
        }
    }
    let methods = solution.agreement.methods;
    let verdict = match (solution.agreement.complaints.is_empty(), methods) {
        (true, 1) => "agrees",
        (true, _) => "agree",
        (false, 1) => "DISAGREES",
        (false, _) => "DISAGREE",
    };
    let _ = writeln!(
        out,
        "  {} {verdict}; largest difference {}",
        counted(methods, "method"),
        small(solution.agreement.max_abs_difference, 1)
    );
    for complaint in &solution.agreement.complaints {
        let _ = wrap(&mut out, &format!("DISAGREES: {complaint}"), width);
    }
    let _ = wrap(
        &mut out,
        &format!("certificate: {}", statement(solution)),
        width,
    );
    if let Some(sibling) = &solution.sibling {
        let line = format!(
            "not the same law: under {} alpha* is {} ({:+.6} against this one)",
            sibling.scheme,
            sibling.rate.value(),
            sibling.rate.value() - rate.value()
        );
        let _ = wrap(&mut out, &line, width);
    }
    if let Some(check) = &solution.expected {
        let source = check
            .source
            .as_deref()
            .map_or(String::new(), |s| format!(" ({s})"));
        let line = match &check.complaint {
            None => format!("expected: {}{source}: ok", check.expected),
            Some(complaint) => format!("EXPECTATION FAILS: {complaint}{source}"),
        };
        let _ = wrap(&mut out, &line, width);
    }
    out
}

/// Reasons for skipping, each with the methods that it stopped.
fn skipped(methods: &[MethodRun]) -> Vec<(&str, Vec<String>)> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for run in methods {
        let Status::Skipped(reason) = &run.status else {
            continue;
        };
        let name = match run.backend {
            Some(backend) => format!("{} ({})", run.method.as_str(), backend.as_str()),
            None => run.method.as_str().to_owned(),
        };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    reasons
}

fn row(run: &MethodRun, certified: &Known) -> Row {
    let value = run
        .rate
        .as_ref()
        .map_or_else(String::new, |rate| format!("{:.12}", rate.value()));
    let difference = run.rate.as_ref().map_or_else(String::new, |rate| {
        if rate.rational().is_some() && rate.rational() == certified.rational() {
            "0".to_owned()
        } else {
            small((rate.value() - certified.value()).abs(), 1)
        }
    });
    let status = match &run.status {
        Status::Optimal
            if run
                .rate
                .as_ref()
                .is_some_and(|rate| rate.rational().is_some()) =>
        {
            "optimal, exact".to_owned()
        }
        other => other.as_str().to_owned(),
    };
    let time = if matches!(run.status, Status::Skipped(_)) {
        String::new()
    } else {
        seconds(run.seconds)
    };
    let backend = run
        .backend
        .map_or("", crate::lp::BackendName::as_str)
        .to_owned();
    Row::texts([
        run.method.as_str().to_owned(),
        backend,
        value,
        difference,
        time,
        status,
    ])
}
