//! A table with a row for each (position, temperature, n), for questions of one's own.

#[cfg(feature = "parquet")]
mod parquet;

#[cfg(feature = "parquet")]
pub use parquet::ParquetTable;

use super::metric::{
    AboutLaw, AboutOwn, Metric, Own, OwnLawId, Place, Rule, Temperature, rule_name, rules, schemes,
};
use super::own::OwnRule;
use super::own_law::OwnLaw;
use super::settings::Settings;
use super::summary::Measured;
use specgap_core::scheme::SchemeName;
use specgap_log::log::Metadata;
use specgap_number::known::{Kind, Known};
use std::io;

/// What an entry of a table is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Entry<'a> {
    /// A name.
    Text(&'a str),
    /// A whole number, if there is one.
    Integer(Option<i64>),
    /// A number, if there is one.
    Number(Option<f64>),
}

/// What the entries of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// [`Entry::Text`]
    Text,
    /// [`Entry::Integer`]
    Integer,
    /// [`Entry::Number`]
    Number,
}

/// Where rows of a table go, one after the other.
pub trait PositionSink {
    /// Takes a row, with an entry for each of [`Columns::names`].
    ///
    /// # Errors
    /// If it cannot be written.
    fn row(&mut self, entries: &[Entry<'_>]) -> io::Result<()>;
}

/// Columns of the table that some settings lead to.
///
/// `log`, `number` (of the position in the log, from 0), `prompt_id`, `position`, `token`,
/// `temperature`, `drafts`, `target_rest` and `draft_rest` (of rows that list some tokens);
/// then three columns a number, `NAME`, `NAME/lower` and `NAME/upper`: `overlap`,
/// `SCHEME/optimum` (alpha*) and `SCHEME/VERIFIER` (acceptance), also of own laws and rules, which have no
/// bounds, and for these `SCHEME/RULE/total-variation` in the same way. Bounds are those of
/// rounding, of a 99.9% interval where a rate is simulated, of where it is thought to be where
/// it is an estimate, or, where the row lists some tokens only, such that they hold the full
/// row's number. What is not measured is empty.
///
/// # Example
/// ```
/// use specgap_measure::{Columns, Settings};
/// let columns = Columns::new(&Settings::new(&[1.0], &[2], 0)?);
/// let names: Vec<String> = columns.names().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names[..4], ["log", "number", "prompt_id", "position"]);
/// assert!(names.contains(&"with-replacement/rrs/lower".to_owned()));
/// # Ok::<(), specgap_measure::GapError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Columns {
    temperatures: Vec<Temperature>,
    drafts: Vec<usize>,
    numbers: Vec<Number>,
}

/// What three columns are about, at any temperature and n.
#[derive(Clone, Debug)]
enum Number {
    Overlap,
    Optimum(SchemeName),
    Acceptance(Rule),
    /// With the column's name.
    Own(Own, AboutOwn, String),
    OfLaw(OwnLawId, AboutLaw, String),
}

const PLACE: [(&str, ColumnKind); 9] = [
    ("log", ColumnKind::Text),
    ("number", ColumnKind::Integer),
    ("prompt_id", ColumnKind::Integer),
    ("position", ColumnKind::Integer),
    ("token", ColumnKind::Integer),
    ("temperature", ColumnKind::Number),
    ("drafts", ColumnKind::Integer),
    ("target_rest", ColumnKind::Number),
    ("draft_rest", ColumnKind::Number),
];

impl Columns {
    /// Lists what is measured with these settings.
    pub fn new(settings: &Settings) -> Self {
        let any = |asked: &dyn Fn(usize) -> bool| settings.drafts.iter().any(|&n| asked(n));
        let schemes =
            schemes().filter(|&scheme| any(&|n| settings.optima(n).any(|one| one == scheme)));
        let rules = rules()
            .map(|(rule, _)| rule)
            .filter(|&rule| any(&|n| settings.has(n, rule)));
        let measured = |(at, _): &(usize, &OwnRule)| {
            any(&|n| settings.own(n).iter().any(|(own, _)| own.0 == *at))
        };
        let own =
            (settings.own_rules.iter().enumerate().filter(measured)).flat_map(|(at, rule)| {
                let name = rule.full_name();
                let away = format!("{name}/total-variation");
                [
                    Number::Own(Own(at), AboutOwn::Acceptance, name),
                    Number::Own(Own(at), AboutOwn::TotalVariation, away),
                ]
            });
        let fits = |(_, law): &(usize, &OwnLaw)| any(&|n| settings.has_law(law, n));
        let laws = settings.own_laws.iter().enumerate().filter(fits);
        let laws = laws.flat_map(|(at, law)| {
            let mut names: Vec<_> = (settings.drafts.iter())
                .filter(|&&n| law.fits(n))
                .flat_map(|&n| settings.rules_of(law, n))
                .collect();
            names.sort();
            names.dedup();
            let rates = names.into_iter();
            let rates = rates.map(|name| (AboutLaw::Acceptance(name), name.as_str()));
            let all = std::iter::once((AboutLaw::Optimum, "optimum")).chain(rates);
            all.map(move |(about, rate)| {
                Number::OfLaw(OwnLawId(at), about, format!("{}/{rate}", law.name()))
            })
        });
        Self {
            temperatures: (settings.temperatures.iter().copied())
                .map(Temperature)
                .collect(),
            drafts: settings.drafts.clone(),
            numbers: std::iter::once(Number::Overlap)
                .chain(schemes.map(Number::Optimum))
                .chain(rules.map(Number::Acceptance))
                .chain(laws)
                .chain(own)
                .collect(),
        }
    }

    /// The columns' names and what their entries are, in order.
    pub fn names(&self) -> Vec<(String, ColumnKind)> {
        let mut names: Vec<_> = PLACE.map(|(name, kind)| (name.to_owned(), kind)).into();
        for number in &self.numbers {
            let name = match number {
                Number::Overlap => "overlap".to_owned(),
                Number::Optimum(scheme) => format!("{scheme}/optimum"),
                Number::Acceptance(rule) => rule_name(*rule),
                Number::Own(_, _, name) | Number::OfLaw(_, _, name) => name.clone(),
            };
            names.push((format!("{name}/lower"), ColumnKind::Number));
            names.push((format!("{name}/upper"), ColumnKind::Number));
            let value = names.len() - 2;
            names.insert(value, (name, ColumnKind::Number));
        }
        names
    }

    /// The rows of one position.
    pub(super) fn rows(
        &self,
        log: &str,
        metadata: &Metadata,
        measured: &Measured,
        table: &mut dyn PositionSink,
    ) -> io::Result<()> {
        let integer = |x: usize| Entry::Integer(i64::try_from(x).ok());
        for &temperature in &self.temperatures {
            let rests = metadata.rest_temperatures.iter().zip(&measured.rest);
            let rest = rests
                .filter(|&(&at, _)| at == temperature.0)
                .map(|(_, &rest)| rest)
                .next();
            for &drafts in &self.drafts {
                let mut row = vec![
                    Entry::Text(log),
                    integer(measured.number),
                    Entry::Integer(measured.prompt),
                    Entry::Integer(measured.position),
                    Entry::Integer(measured.token),
                    Entry::Number(Some(temperature.0)),
                    integer(drafts),
                    Entry::Number(rest.map(|[target, _]| target)),
                    Entry::Number(rest.map(|[_, draft]| draft)),
                ];
                let place = Place::new(temperature, drafts);
                for number in &self.numbers {
                    let answer = measured.answers.get(&match *number {
                        Number::Overlap => Metric::Overlap { temperature },
                        Number::Optimum(scheme) => Metric::Optimum { place, scheme },
                        Number::Acceptance(rule) => Metric::Acceptance { place, rule },
                        Number::Own(own, about, _) => Metric::Own { place, own, about },
                        Number::OfLaw(law, about, _) => Metric::OfLaw { place, law, about },
                    });
                    row.push(Entry::Number(answer.map(Known::value)));
                    // A plain number has no bounds.
                    let bounded = answer.filter(|answer| answer.kind() != Kind::Float);
                    row.push(Entry::Number(bounded.map(Known::lower)));
                    row.push(Entry::Number(bounded.map(Known::upper)));
                }
                table.row(&row)?;
            }
        }
        Ok(())
    }
}
