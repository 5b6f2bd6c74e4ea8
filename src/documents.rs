//! Tables in the documents are those of the crate.
//!
//! What stands between two comments, `<!-- laws -->` and `<!-- end of laws -->`, is
//! generated. With `SPECGAP_WRITE_DOCUMENTS=1` in the environment the test writes it.

use crate::distribution::Draft;
use crate::scheme::{MadeOf, SchemeName};
use crate::verifier::{Lossless, VerifierName};
use std::path::Path;

/// The text with what stands between the marks of `name` replaced.
fn filled(text: &str, name: &str, inside: &str) -> String {
    let (open, close) = (
        format!("<!-- {name} -->"),
        format!("<!-- end of {name} -->"),
    );
    let start = text.find(&open).expect("the opening mark") + open.len();
    let end = start + text[start..].find(&close).expect("the closing mark");
    format!("{}{inside}{}", &text[..start], &text[end..])
}

fn is_as_generated(file: &str, parts: &[(&str, String)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let found = std::fs::read_to_string(&path).unwrap();
    let generated = parts.iter().fold(found.clone(), |text, (name, inside)| {
        filled(&text, name, inside)
    });
    if std::env::var_os("SPECGAP_WRITE_DOCUMENTS").is_some() {
        std::fs::write(&path, generated).unwrap();
        return;
    }
    assert!(
        found == generated,
        "{file} does not list the tables' laws and verifiers; write it by \
         SPECGAP_WRITE_DOCUMENTS=1 cargo test --lib documents"
    );
}

fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let line = |cells: [String; N]| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("\n{}", line(head.map(str::to_owned)));
    text.push_str(&line(head.map(|_| "---".to_owned())));
    for row in rows {
        text.push_str(&line(row));
    }
    text
}

/// How alpha* is found without a flow.
fn method(scheme: SchemeName) -> String {
    let law = scheme.entry();
    let fixed = match law.made_of {
        MadeOf::OneDraft(make) => {
            let draft = Draft::new(&[0.25; 4]).unwrap();
            make(draft, law.only.unwrap_or(2)).fixed_drafts().is_some()
        }
        MadeOf::EachDraft(_) | MadeOf::Tuples(_) => false,
    };
    match law.sort_theorem {
        Some(source) => format!("ratio scan ({source})"),
        None if fixed => "closed form".to_owned(),
        None => "submodular minimiser".to_owned(),
    }
}

fn laws() -> String {
    table(
        [
            "scheme",
            "law of the n drafts",
            "Q(H) = P(all drafts in H)",
            "alpha* without a flow",
        ],
        SchemeName::ALL.into_iter().map(|scheme| {
            let law = scheme.entry();
            let mut words = law.words.to_owned();
            if let Some(only) = law.only {
                words.push_str(&format!(" (n = {only})"));
            }
            let method = method(scheme);
            [format!("`{scheme}`"), words, law.inside.to_owned(), method]
        }),
    )
}

fn verifiers() -> String {
    table(
        ["verifier", "drafts", "rule", "acceptance"],
        VerifierName::ALL.into_iter().map(|name| {
            let drafts = match name.entry().lossless {
                Lossless::Under(schemes) => {
                    let names = schemes.iter().map(|scheme| format!("`{scheme}`"));
                    names.collect::<Vec<_>>().join(", ")
                }
                Lossless::OneDraft => "any, n = 1".to_owned(),
                Lossless::Always => "any".to_owned(),
            };
            let (rule, acceptance) = (name.rule(), name.entry().acceptance);
            [
                format!("`{name}`"),
                drafts,
                rule.to_owned(),
                acceptance.to_owned(),
            ]
        }),
    )
}

#[test]
fn documents_list_every_law_and_every_verifier() {
    let quoted = |names: Vec<&str>| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let schemes = quoted(SchemeName::ALL.map(SchemeName::as_str).to_vec());
    let names = quoted(VerifierName::ALL.map(VerifierName::as_str).to_vec());
    is_as_generated("README.md", &[("laws", laws()), ("verifiers", verifiers())]);
    is_as_generated(
        "docs/formats.md",
        &[("laws", schemes), ("verifiers", names)],
    );
}
