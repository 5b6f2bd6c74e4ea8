//! A table for a model card, with ±.

use super::data::{Profile, conditional, half, one_line};
use specgap_statistics::Estimate;

pub(super) fn file(profile: &Profile) -> (String, Vec<u8>) {
    let mut text = "## Acceptance by draft length\n\n|K|tokens a round|S_1 to S_K|conditional|\n\
                    |---|---|---|---|\n"
        .to_owned();
    for curve in &profile.curves {
        let means: Vec<f64> = curve.marginal.iter().map(|one| one.mean).collect();
        let shares: Vec<String> = curve.marginal.iter().map(|one| shown(one, 3)).collect();
        // A ratio of two numbers between bounds is none.
        let open: Vec<bool> = curve
            .marginal
            .iter()
            .map(|one| one.open().is_some())
            .collect();
        let given = |(i, share): (usize, &f64)| match open[i] || i > 0 && open[i - 1] {
            true => "–".to_owned(),
            false => format!("{share:.3}"),
        };
        let rates = conditional(&means);
        let given: Vec<String> = rates.iter().enumerate().map(given).collect();
        text.push_str(&format!(
            "|{}|{}|{}|{}|\n",
            curve.length,
            shown(&curve.acceptance_length, 3),
            shares.join(", "),
            given.join(", ")
        ));
    }
    text.push_str(&by_group(profile));
    text.push_str(
        "\nTokens a round: accepted drafts and the bonus token. S_i: the share of rounds that accept \
         at least i drafts; conditional: S_i / S_(i-1). ±: half of a 95% interval",
    );
    text.push_str(match profile.source.prompts {
        Some(_) => " over prompts",
        None => "",
    });
    text.push_str(". \"a to b\" holds the number whatever rows do not list.\n\n");
    for line in profile.source.lines() {
        text.push_str(&format!("- {}\n", escaped(&one_line(&line))));
    }
    ("card.md".to_owned(), text.into_bytes())
}

/// Tokens a round of each group, a column for each length.
fn by_group(profile: &Profile) -> String {
    if profile.groups.is_empty() {
        return String::new();
    }
    let lengths = || profile.curves.iter().map(|curve| curve.length);
    let heads: String = lengths().map(|length| format!("K = {length}|")).collect();
    let rules: String = lengths().map(|_| "---|").collect();
    let mut text = format!("\n|tokens a round of|{heads}\n|---|{rules}\n");
    for (name, curves) in &profile.groups {
        text.push_str(&format!("|{}|", escaped(&one_line(name))));
        for length in lengths() {
            let curve = curves.iter().find(|curve| curve.length == length);
            let shown = curve.map(|curve| shown(&curve.acceptance_length, 3));
            text.push_str(&format!("{}|", shown.as_deref().unwrap_or("–")));
        }
        text.push('\n');
    }
    text
}

/// A number with its interval, or its bounds alone where these are further apart.
fn shown(estimate: &Estimate, digits: usize) -> String {
    if let Some([low, high]) = estimate.open() {
        return format!("{low:.digits$} to {high:.digits$}");
    }
    let half = half(estimate);
    match half > 0.0 {
        true => format!("{:.digits$} ± {half:.digits$}", estimate.mean),
        false => format!("{:.digits$}", estimate.mean),
    }
}

/// Text that Markdown shows as it is.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if "\\`*_[]<>#|&".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
