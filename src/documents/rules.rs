//! Tables of what rules accept on a shipped log, from the numbers that `scripts/reports rules` writes.

use super::{root, table};
use specgap_base::csv::fields;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The temperatures of `table-acceptance-0.csv` and on.
const TEMPERATURES: [&str; 3] = ["0.3", "0.7", "1.0"];

/// Lines of a file of numbers, by their first cells, each with its cells by column.
fn lines(file: &str, keys: usize) -> BTreeMap<Vec<String>, BTreeMap<String, String>> {
    let text = std::fs::read_to_string(root().join("reports/rules").join(file)).unwrap();
    let cells = |line| fields(line).map(Cow::into_owned).collect::<Vec<_>>();
    let mut lines = text.lines().map(cells);
    let head = lines.next().unwrap();
    let line = |line: Vec<String>| {
        let by_column = head.iter().cloned().zip(line.iter().cloned());
        (line[..keys].to_vec(), by_column.collect())
    };
    lines.map(line).collect()
}

fn number(cells: &BTreeMap<String, String>, column: &str) -> f64 {
    cells[column].parse().unwrap()
}

/// What is accepted at T of a law's drafts by a rule, of so many drafts.
struct Accepted(Vec<BTreeMap<Vec<String>, BTreeMap<String, String>>>);

impl Accepted {
    /// Of a folder of `reports/rules`.
    fn read(folder: &str) -> Self {
        let file = |k| lines(&format!("{folder}table-acceptance-{k}.csv"), 2);
        Self((0..TEMPERATURES.len()).map(file).collect())
    }

    fn at(&self, temperature: &str, law: &str, rule: &str, drafts: usize) -> String {
        let place = TEMPERATURES.iter().position(|t| *t == temperature).unwrap();
        let row = &self.0[place][&vec![law.to_owned(), rule.to_owned()]];
        short(format!("{:.3}", number(row, &format!("n = {drafts}"))))
    }
}

fn short(number: String) -> String {
    number.replace("0.", ".")
}

/// Temperatures and numbers of drafts, with what a row begins with.
fn places(drafts: &[usize]) -> impl Iterator<Item = (&'static str, usize, String)> {
    let each = ["1.0", "0.7", "0.3"].into_iter();
    each.flat_map(|at| drafts.iter().map(move |&n| (at, n)))
        .map(|(at, n)| (at, n, short(format!("{}, {n}", at.trim_end_matches(".0")))))
}

/// Better drafts beside what engines do, with paired differences.
pub(super) fn better() -> String {
    let accepted = Accepted::read("");
    let differences = lines("table-comparisons.csv", 3);
    let mut rows = Vec::new();
    for (temperature, drafts, place) in places(&[2, 4, 8]) {
        let of = |law, rule| accepted.at(temperature, law, rule, drafts);
        let more = |than: &str| {
            let group = format!("T = {temperature}, n = {drafts}");
            let key = [group.as_str(), "stratified/level-4", than].map(str::to_owned);
            let row = &differences[&key.to_vec()];
            let ends = ["difference/low", "difference/high"].map(|end| number(row, end));
            let (mean, half) = (number(row, "difference"), (ends[1] - ends[0]) / 2.0);
            short(format!("{mean:+.3} ± {half:.3}"))
        };
        rows.push([
            place,
            of("top", "exact-match"),
            of("greedy", "α*, the optimum"),
            of("with-replacement", "rrs"),
            of("with-replacement", "importance"),
            of("without-replacement", "shared-gumbel"),
            format!("**{}**", of("stratified", "level-4")),
            more("top/exact-match"),
            more("with-replacement/rrs"),
        ]);
    }
    let head = [
        "T, drafts",
        "likeliest tokens",
        "`greedy` drafts",
        "recursive rejection",
        "best rule of i.i.d. drafts",
        "[one noise](../theory/shared-noise.md)",
        "**strata, level-4**",
        "against likeliest",
        "against recursive rejection",
    ];
    table(head, rows.into_iter())
}

/// Rules of shared noise beside others.
pub(super) fn noise() -> String {
    let accepted = Accepted::read("");
    let mut rows = Vec::new();
    for (temperature, drafts, place) in places(&[1, 2, 4, 8]) {
        let of = |law, rule| accepted.at(temperature, law, rule, drafts);
        rows.push([
            place,
            of("without-replacement", "shared-gumbel"),
            of("without-replacement", "rrs-wo"),
            of("without-replacement", "α*, the optimum"),
            of("with-replacement", "gls"),
            of("with-replacement", "rrs"),
            of("with-replacement", "importance"),
            of("with-replacement", "exact-match"),
        ]);
    }
    let head = [
        "T, drafts",
        "`shared-gumbel`",
        "`rrs-wo`",
        "α\\* of sequential draws",
        "`gls`",
        "`rrs`",
        "`importance`, α\\* of i.i.d. drafts",
        "`exact-match` of these",
    ];
    table(head, rows.into_iter())
}

/// Four drafts of one target, from the least overlap to the largest.
pub(super) fn pairs() -> String {
    let (mut rows, mut above, mut cells) = (Vec::new(), 0, 0);
    for pair in ["draft", "skip-25", "q4-64", "skip-29"] {
        let accepted = Accepted::read(&format!("{pair}/"));
        for (temperature, drafts, place) in places(&[1, 2, 4, 8]) {
            let of = |law, rule| accepted.at(temperature, law, rule, drafts);
            let others = [
                of("with-replacement", "rrs"),
                of("with-replacement", "gls"),
                of("without-replacement", "shared-gumbel"),
                of("with-replacement", "importance"),
                of("greedy", "α*, the optimum"),
            ];
            let strata = of("stratified", "level-4");
            if drafts > 1 {
                cells += 1;
                above += usize::from(others.iter().all(|other| *other <= strata));
            }
            let [rrs, gls, one, best, greedy] = others;
            let row = [pair.to_owned(), place, rrs, gls, one, best, greedy];
            let [a, b, c, d, e, f, g] = row;
            rows.push([a, b, c, d, e, f, g, format!("**{strata}**")]);
        }
    }
    let head = [
        "draft",
        "T, drafts",
        "`rrs`",
        "`gls`",
        "`shared-gumbel`",
        "`importance`, α\\* of i.i.d. drafts",
        "α\\* of `greedy` drafts",
        "**strata, level-4**",
    ];
    let said = format!(
        "\nDraft strata and verify them by `level-4`: nothing else here accepts more, to three digits, in {above} of {cells} rows with \
         two drafts or more.\n"
    );
    said + &table(head, rows.into_iter())
}
