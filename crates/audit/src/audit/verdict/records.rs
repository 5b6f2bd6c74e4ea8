//! Records of five numbers a drafted token, for engines that cannot log rows.

use super::capital::part;
use super::notes::of_requests;
use super::parts::conclude;
use crate::audit::AuditError;
use crate::audit::data::{AuditReport, HardCheck, PartReport, Settings};
use crate::audit::evidence::book::{Book, Part, Tally};
use crate::audit::evidence::requests::{Place, Requests, repeated};
use crate::audit::evidence::steps::Count;
use crate::audit::model::rule::Rule;
use specgap_base::sorted::Map;
use specgap_core::rule::Drafts;
use std::path::Path;

/// What is known of one position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Record {
    /// Which text it is of.
    pub prompt: Option<i64>,
    /// How far into its round.
    pub depth: Option<i64>,
    /// The seed of the text's own random numbers; -1 where it draws from the engine's stream.
    pub seed: Option<i64>,
    /// What is known of the draft; `None` where there was none.
    pub draft: Option<DraftRecord>,
    /// A uniform number between the p mass before y in p's order and that with y.
    pub u_p: f64,
    /// A uniform number between the mass before y and that with y of the law that y was drawn
    /// from, where it was no accepted draft.
    pub u_c: Option<f64>,
}

/// What is known of a drafted token x.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DraftRecord {
    /// p(x).
    pub p: f64,
    /// q(x).
    pub q: f64,
    /// x was accepted.
    pub accepted: bool,
    /// The q mass before x in q's order.
    pub u_q: f64,
}

/// The records of an engine's run.
///
/// # Format
/// Comma-separated values with a header. Columns `p`, `q`, `accepted` (0 or 1), `u_q` and `u_p`
/// are needed, `u_c`, `prompt`, `depth` and `seed` may be there, in any order. The first four are
/// empty where nothing was drafted, and are all left out where nothing ever was.
/// docs/reference/audit.md says what they are.
///
/// ```
/// use specgap_audit::audit::Records;
/// let text = "p,q,accepted,u_q,u_p\n0.5,0.25,1,0.0,0.31\n,,,,0.77\n";
/// let records = Records::parse("run.csv".as_ref(), text).unwrap();
/// assert_eq!(records.records.len(), 2);
/// assert!(Records::parse("run.csv".as_ref(), "p,q\n").is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// The file's name.
    pub name: String,
    /// One a line.
    pub records: Vec<Record>,
}

/// Columns of drafts, which a text alone has none of.
const OF_DRAFTS: [&str; 4] = ["p", "q", "accepted", "u_q"];
const OPTIONAL: [&str; 4] = ["u_c", "prompt", "depth", "seed"];

/// A line's fields by their columns' names.
struct Line<'a> {
    columns: &'a [&'a str],
    fields: Vec<&'a str>,
}

impl Line<'_> {
    /// A field; `None` where it is empty or there is no such column.
    fn field<T>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let place = self.columns.iter().position(|column| *column == name);
        let text = place.and_then(|place| self.fields.get(place)).copied();
        text.filter(|text| !text.is_empty()).map(read).transpose()
    }

    fn share(&self, name: &str) -> Result<Option<f64>, String> {
        self.field(name, |text| {
            let value: f64 =
                (text.parse()).map_err(|_| format!("{name}: {text:?} is no number"))?;
            // A sum may be rounded up.
            match (0.0..=1.0 + 1e-6).contains(&value) {
                true => Ok(value.min(1.0)),
                false => Err(format!("{name} is {value}; it is in [0, 1]")),
            }
        })
    }

    fn whole(&self, name: &str) -> Result<Option<i64>, String> {
        let refused = |text: &str| format!("{name}: {text:?} is no integer");
        self.field(name, |text| text.parse().map_err(|_| refused(text)))
    }

    fn record(&self) -> Result<Record, String> {
        let accepted = self.field("accepted", |text| match text {
            "0" => Ok(false),
            "1" => Ok(true),
            other => Err(format!("accepted is {other:?}; it is 0 or 1")),
        })?;
        let shares = (self.share("p")?, self.share("q")?, self.share("u_q")?);
        let draft = match (shares, accepted) {
            ((Some(p), Some(q), Some(u_q)), Some(accepted)) => {
                let end = u_q + q;
                if end > 1.0 + 1e-6 {
                    return Err(format!(
                        "u_q + q is {end}; it is the mass up to x, at most 1"
                    ));
                }
                Some(DraftRecord {
                    p,
                    q,
                    accepted,
                    u_q,
                })
            }
            ((None, None, None), None) => None,
            _ => {
                let message = "p, q, accepted and u_q are all there, or all empty where nothing \
                               was drafted";
                return Err(message.to_owned());
            }
        };
        let u_p = self
            .share("u_p")?
            .ok_or("u_p is empty; every line has one")?;
        Ok(Record {
            prompt: self.whole("prompt")?,
            depth: self.whole("depth")?,
            seed: self.whole("seed")?,
            draft,
            u_p,
            u_c: self.share("u_c")?,
        })
    }
}

/// The names of columns that a file's first line has.
fn columns(header: &str) -> Result<Vec<&str>, String> {
    let header = header.trim_start_matches('\u{feff}');
    let columns: Vec<&str> = header.split(',').map(str::trim).collect();
    let needed = || OF_DRAFTS.iter().chain(&["u_p"]);
    for (index, column) in columns.iter().enumerate() {
        if !needed().chain(&OPTIONAL).any(|known| known == column) {
            let needed: Vec<&str> = needed().copied().collect();
            let (needed, optional) = (needed.join(", "), OPTIONAL.join(", "));
            return Err(format!(
                "column {column:?} is unknown; there are {needed} and {optional}"
            ));
        }
        if columns.iter().take(index).any(|other| other == column) {
            return Err(format!("column {column} stands there twice"));
        }
    }
    let is_text = !OF_DRAFTS.iter().any(|name| columns.contains(name));
    let mut all = needed().skip(if is_text { OF_DRAFTS.len() } else { 0 });
    match all.find(|name| !columns.contains(name)) {
        Some(missing) => Err(format!("column {missing} is missing")),
        None => Ok(columns),
    }
}

impl Records {
    /// Reads a file's text.
    ///
    /// # Errors
    /// Missing or unknown columns, lines of another length, numbers out of range; each names
    /// file, line and column.
    pub fn parse(file: &Path, text: &str) -> Result<Self, AuditError> {
        let at = |line: usize| {
            move |message: String| AuditError::Record(file.to_owned(), line + 1, message)
        };
        let mut lines = text.lines().enumerate();
        let none = || at(0)("is empty; the first line names the columns".to_owned());
        let columns = columns(lines.next().ok_or_else(none)?.1).map_err(at(0))?;
        let mut records = Vec::new();
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let (has, wanted) = (fields.len(), columns.len());
            if has != wanted {
                return Err(at(number)(format!(
                    "has {has} fields; the header has {wanted}"
                )));
            }
            let columns = &columns;
            records.push(Line { columns, fields }.record().map_err(at(number))?);
        }
        if records.is_empty() {
            return Err(at(0)("has no records".to_owned()));
        }
        let name = file.file_name().map_or_else(
            || file.display().to_string(),
            |name| name.to_string_lossy().into(),
        );
        Ok(Self { name, records })
    }
}

impl Book {
    /// All bets on a record.
    fn look(&self, rule: Rule, record: &Record, tally: &mut Tally) {
        let is_text = rule == Rule::TEXT;
        if let Some(draft) = record.draft.filter(|_| !is_text) {
            tally.steps[0] += u64::from(rule.drafts() != Drafts::Any);
            match rule.drafts() {
                Drafts::Any => {}
                Drafts::Likeliest => {
                    let hit = f64::from(u8::from(draft.u_q <= 0.0));
                    for one in self.of(Part::DraftLaw).filter(|one| one.is_score()) {
                        self.score(tally, one, hit, 1.0);
                    }
                }
                Drafts::Drawn(_) => self.uniform(Part::DraftLaw, tally, draft.u_q, draft.q),
            }
            let keep = if !rule.tests_drafts() {
                (draft.p / rule.over()).min(1.0)
            } else if draft.p <= 0.0 {
                0.0
            } else {
                (draft.p / draft.q).min(1.0)
            };
            tally.steps[1] += 1;
            self.kept(tally, keep, draft.p, draft.accepted);
        }
        let replaced = record.draft.is_none_or(|draft| !draft.accepted);
        if let Some(u_c) = record.u_c.filter(|_| replaced && !is_text) {
            tally.steps[2] += 1;
            self.uniform(Part::Correction, tally, u_c, 0.0);
        }
        if rule.is_lossless() {
            tally.steps[3] += 1;
            self.uniform(Part::TargetLaw, tally, record.u_p, 0.0);
        }
    }
}

/// Counts what can never happen, and the rounds.
fn hard_checks(records: &[Record], rule: Rule) -> (Vec<HardCheck>, usize) {
    let [mut zero, mut undrafted, mut after] = [Count::default(); 3];
    let mut rounds = 0;
    let mut before: Option<&Record> = None;
    for (index, record) in records.iter().enumerate() {
        rounds += usize::from(record.depth.is_none_or(|depth| depth == 0));
        if let (Some(1..), Some(last)) = (record.depth, before)
            && last.prompt == record.prompt
            && last.draft.is_none_or(|draft| !draft.accepted)
        {
            after.found(index);
        }
        before = Some(record);
        if let Some(draft) = record.draft {
            if draft.accepted && draft.p <= 0.0 {
                zero.found(index);
            }
            if draft.q <= 0.0 && rule.drafts() != Drafts::Any {
                undrafted.found(index);
            }
        }
    }
    if rule == Rule::TEXT {
        return (Vec::new(), rounds);
    }
    let accepted = "a draft of probability 0 under the target was accepted";
    let drafted = "a token was drafted that the draft gives probability 0";
    let behind = "a round went on behind its rejection";
    let checks = vec![
        zero.check("target-zero", accepted),
        undrafted.check("draft-zero", drafted),
        after.check("accepted-after-rejection", behind),
    ];
    (checks, rounds)
}

/// Audits records.
///
/// # Errors
/// Rules that five numbers cannot tell: those of several drafts, and blocks.
pub fn audit_records(
    records: &Records,
    settings: &Settings,
    command: &str,
) -> Result<AuditReport, AuditError> {
    let Settings {
        rule,
        tolerance,
        alpha,
        ..
    } = *settings;
    let refused = |message: String| Err(AuditError::Log(message));
    let Records { name, records: all } = records;
    if rule.needs_full_rows().is_some() {
        return refused(format!(
            "{name}: five numbers a token do not tell {rule} from others; log rows, or audit one of \
             token, one-hot, exact-match, threshold:A"
        ));
    }
    if !(0.0..0.5).contains(&tolerance) || alpha <= 0.0 || alpha >= 1.0 || alpha.is_nan() {
        let ranges = "⟨tolerance⟩ is at least 0 and below 0.5, ⟨alpha⟩ above 0 and below 1";
        return refused(ranges.to_owned());
    }
    let drafted = all.iter().any(|record| record.draft.is_some());
    if rule != Rule::TEXT && !drafted && !all.is_empty() {
        return refused(format!(
            "{name}: has no draft in any line, so that {rule} cannot be told; a text alone is audited \
             by ⟨rule text⟩"
        ));
    }
    let places = all.iter().map(|record| Place {
        prompt: record.prompt,
        position: None,
        seed: record.seed,
    });
    let requests = Requests::new(places, settings.seeds);
    let book = Book::new(rule, tolerance);
    let mut units = Map::<usize, Tally>::new();
    // Ranks that were drawn by themselves are hardly ever equal to three places.
    let mut ranks = vec![Vec::new(); requests.texts()];
    for (index, (record, text)) in all.iter().zip(&requests.text).enumerate() {
        let tally = units.at_or(requests.unit_at(index), || Tally::new(book.logs));
        book.look(rule, record, tally);
        let bits = record.u_p.to_bits();
        if let Some(ranks) = ranks.get_mut(*text) {
            ranks.push(((bits ^ (bits >> 32)) as u32, 1e-3f64.ln()));
        }
    }
    let settled = requests.settle(book.logs, &units);
    let untestable = |part: Part, limit: Option<f64>| {
        let steps = settled.total.steps[part.index()];
        let reason = match part {
            Part::DraftLaw if rule.drafts() == Drafts::Any => {
                format!("{rule} claims nothing of how drafts are drawn")
            }
            Part::Correction if steps == 0 => {
                "five numbers do not tell it: add column u_c, as u_p under the law that the token \
                 was drawn from, where it was no accepted draft"
                    .to_owned()
            }
            Part::TargetLaw if !rule.is_lossless() => {
                "a lossy rule's outputs do not follow p; what they follow needs rows".to_owned()
            }
            _ if limit.is_none() => format!("{steps} steps are too few"),
            _ => return None,
        };
        Some(reason)
    };
    let verdict = |one| part(&book, one, &settled, alpha, &untestable);
    let mut parts: Vec<PartReport> = Part::ALL.map(verdict).into();
    if rule == Rule::TEXT {
        parts.retain(|one| one.part == Part::TargetLaw.name());
    }
    let requests = requests.report(repeated(&ranks));
    let mut notes = vec![
        "records of five numbers: bugs are told apart less well than from rows, and bets are on \
         the order of probabilities"
            .to_owned(),
    ];
    notes.extend(of_requests(&requests));
    let played = settled.total.steps.iter().filter(|steps| **steps > 0);
    let (hard_checks, rounds) = hard_checks(all, rule);
    let mut report = AuditReport {
        positions: all.len(),
        rounds,
        false_alarm: alpha * played.count() as f64,
        hard_checks,
        parts,
        notes,
        ..AuditReport::begun(name.clone(), command, settings, requests)
    };
    let of = |part: Part| report.parts.get(part.index());
    let refuted = |part| of(part).is_some_and(PartReport::is_refuted);
    if rule == Rule::TOKEN
        && refuted(Part::Acceptance)
        && !refuted(Part::TargetLaw)
        && of(Part::Acceptance).and_then(|one| one.suspect.as_deref()) == Some("exact-match")
    {
        let other = Settings {
            rule: Rule::EXACT_MATCH,
            ..settings.clone()
        };
        let other = audit_records(records, &other, command)?;
        report.fits = other.ok.then(|| "exact-match".to_owned());
    }
    conclude(&mut report, rule, settings.exclude);
    Ok(report)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::audit::data::{Conclusion, Tampering};
    use crate::audit::evidence::bets::SCORE_STAKES;
    use crate::audit::evidence::play::draw;
    use crate::audit::outcome::Outcome;
    use rand::{Rng, SeedableRng};

    fn drafted(p: f64, q: f64, accepted: bool, u_q: f64) -> DraftRecord {
        DraftRecord {
            p,
            q,
            accepted,
            u_q,
        }
    }

    pub(crate) fn named(records: Vec<Record>) -> Records {
        let name = "r.csv".to_owned();
        Records { name, records }
    }

    /// A record of a draft, or of a token without one.
    fn of(draft: Option<DraftRecord>, u_p: f64, u_c: Option<f64>) -> Record {
        Record {
            draft,
            u_p,
            u_c,
            ..Record::default()
        }
    }

    fn steps(report: &AuditReport) -> Vec<u64> {
        report.parts.iter().map(|one| one.steps).collect()
    }

    /// Bets without a tolerance, and a tally of them after what `play` does.
    fn after(rule: Rule, tolerance: f64, play: impl Fn(&Book, &mut Tally)) -> (Book, Tally) {
        let book = Book::new(rule, tolerance);
        let mut tally = Tally::new(book.logs);
        play(&book, &mut tally);
        (book, tally)
    }

    /// The same after one draft that lies there.
    fn on_drafts(from: f64, width: f64, tolerance: f64) -> (Book, Tally) {
        after(Rule::TOKEN, tolerance, |book, tally| {
            book.uniform(Part::DraftLaw, tally, from, width);
        })
    }

    #[test]
    fn bets_on_intervals_are_fair() {
        // q = (.5, .3, .2) in its order: intervals [0, .5), [.5, .8), [.8, 1).
        let cells = [(0.0, 0.5), (0.5, 0.3), (0.8, 0.2)];
        let mut mean = vec![0.0; Book::new(Rule::TOKEN, 0.0).logs];
        for (from, width) in cells {
            let (_, tally) = on_drafts(from, width, 0.0);
            for (mean, log) in mean.iter_mut().zip(&tally.logs) {
                *mean += width * log.exp();
            }
        }
        for (place, mean) in mean.into_iter().enumerate() {
            assert!((mean - 1.0).abs() < 1e-8, "{place} {mean}");
        }
    }

    /// Computes from the definition, by heads, tails and the score with their weights, what a
    /// part's capital comes to on a number that is known to lie evenly in an interval, or known.
    fn on_interval(from: f64, width: f64, tolerance: f64) -> f64 {
        let to = from + width;
        // What the record has there over its width.
        let inside = |low: f64, high: f64| match width > 0.0 {
            true => (to.min(high) - from.max(low)).max(0.0) / width,
            false => f64::from(u8::from(from >= low && from < high)),
        };
        let mixed = |inside: f64, w: f64| {
            let gain = 0.98 * (inside / w - 1.0);
            let staked = |stake: f64| (1.0 + stake * gain) / (1.0 + tolerance * stake * 0.98 / w);
            0.5 * staked(1.0) + 0.25 * staked(0.25) + 0.25 * staked(0.0625)
        };
        let head = |w: f64| mixed(inside(0.0, w), w);
        let tail = |w: f64| mixed(inside(1.0 - w, f64::INFINITY), w);
        let heads: f64 = [0.02, 0.3, 0.6, 0.8, 0.9, 0.95].map(head).iter().sum();
        let tails: f64 = [0.05, 0.2, 0.5].map(tail).iter().sum();
        let rank = (from + 0.5 * width).min(1.0);
        let score = SCORE_STAKES
            .map(|stake| (1.0 + stake * (rank - 0.5)) / (1.0 + tolerance * f64::abs(stake)));
        let score = score.iter().sum::<f64>() / 14.0;
        (heads + 2.0 * head(0.1) + 0.7 * tails + 2.0 * score) / 12.1
    }

    #[test]
    fn capital_on_intervals_is_that_of_the_definition() {
        for (from, width) in [
            (0.0, 0.0625),
            (0.05, 0.1),
            (0.05, 0.2),
            (0.25, 0.5),
            (0.875, 0.125),
            (0.7, 0.2),
            (0.25, 0.75),
            (0.9, 0.4),
            // Numbers at the ends of [0, 0.1) and of [0.8, 1], and beside them.
            (0.0, 0.0),
            (0.0999, 0.0),
            (0.1, 0.0),
            (0.8, 0.0),
            (0.7999, 0.0),
        ] {
            for tolerance in [0.0, 0.01] {
                let (book, tally) = on_drafts(from, width, tolerance);
                let found = book.log_capital(Part::DraftLaw, &tally);
                let expected = on_interval(from, width, tolerance).ln() - 1e-9;
                let case = (from, width, found, expected);
                assert!((found - expected).abs() < 1e-12, "{case:?}");
            }
        }
    }

    /// One record: each part's e-value from its definition.
    #[test]
    fn e_values_of_one_record() {
        let draft = drafted(0.3, 0.25, false, 0.05);
        let audit = |records: Vec<Record>, rule: Rule| {
            let mut settings = Settings::new(rule);
            settings.tolerance = 0.0;
            settings.alpha = 0.25;
            audit_records(&named(records), &settings, "").unwrap()
        };
        let report = audit(vec![of(Some(draft), 0.97, Some(0.01))], Rule::TOKEN);
        // The draft has u_q from 0.05 to 0.3, its correction 0.01, and the output 0.97.
        for (part, from, width) in [(0, 0.05, 0.25), (2, 0.01, 0.0), (3, 0.97, 0.0)] {
            let e = on_interval(from, width, 0.0);
            let found = report.parts[part].e_value;
            assert!((found / e - 1.0).abs() < 1e-7, "{part}: {found} {e}");
            let log10 = report.parts[part].log10_e_value;
            assert!((log10 - e.log10()).abs() < 1e-7, "{part}: {log10}");
        }
        // p/q is above 1: the rule never rejects such a draft, and exact match does.
        assert!(report.parts[1].e_value > 1.0);
        assert_eq!(steps(&report), [1; 4]);
        assert_eq!((report.positions, report.rounds), (1, 1));
        assert_eq!((report.false_alarm, report.alpha), (1.0, 0.25));
        // One such rejection is enough at this level.
        assert_eq!(report.conclusion, Conclusion::NotTheRule);
        assert_eq!(report.parts[1].suspect.as_deref(), Some("exact-match"));
        // Without u_c, and where the draft was kept, there is no correction.
        let kept = DraftRecord {
            accepted: true,
            ..draft
        };
        let records = vec![
            of(Some(draft), 0.97, None),
            of(Some(kept), 0.97, Some(0.01)),
            of(None, 0.97, Some(0.01)),
        ];
        let report = audit(records.clone(), Rule::TOKEN);
        assert_eq!(steps(&report), [2, 2, 1, 3]);
        // A lossy rule's outputs are not tested, and exact match claims nothing of drafts.
        let lossy = audit(records.clone(), Rule::threshold(0.5).unwrap());
        assert_eq!((steps(&lossy), lossy.false_alarm), (vec![2, 2, 1, 0], 0.75));
        let reason = |one: &PartReport| one.reason.clone().unwrap();
        assert!(reason(&lossy.parts[3]).contains("lossy"));
        let exact = audit(records, Rule::EXACT_MATCH);
        assert_eq!(steps(&exact), [0, 2, 1, 3]);
        assert!(reason(&exact.parts[0]).contains("claims nothing"));
        assert!(reason(&exact.parts[1]).contains("2 steps are too few"));
    }

    /// The chance of being kept by each rule, seen by the score of acceptance.
    #[test]
    fn rules_keep_drafts_as_often_as_they_say() {
        let e_value = |rule: Rule, p: f64, q: f64| {
            let records = named(vec![of(Some(drafted(p, q, true, 0.0)), 0.5, None)]);
            let mut settings = Settings::new(rule);
            settings.tolerance = 0.0;
            audit_records(&records, &settings, "").unwrap().parts[1].e_value
        };
        let bets = |rule: Rule, keep: f64, p: f64| {
            let (book, tally) = after(rule, 0.0, |book, tally| book.kept(tally, keep, p, true));
            book.log_capital(Part::Acceptance, &tally).exp()
        };
        for (rule, p, q, keep) in [
            (Rule::TOKEN, 0.2, 0.5, 0.4),
            (Rule::TOKEN, 0.5, 0.2, 1.0),
            (Rule::TOKEN, 0.5, 0.5, 1.0),
            (Rule::TOKEN, 0.0, 0.5, 0.0),
            (Rule::TOKEN, 0.0, 0.0, 0.0),
            (Rule::ONE_HOT, 0.2, 0.5, 0.2),
            (Rule::EXACT_MATCH, 0.2, 0.5, 0.2),
            (Rule::threshold(0.5).unwrap(), 0.2, 0.5, 0.4),
            (Rule::threshold(0.5).unwrap(), 0.7, 0.5, 1.0),
        ] {
            let (found, expected) = (e_value(rule, p, q), bets(rule, keep, p));
            let case = (rule, p, q, found, expected);
            assert!((found / expected - 1.0).abs() < 1e-12, "{case:?}");
        }
    }

    #[test]
    fn records_are_read_as_they_stand() {
        let read = |text: &str| Records::parse(Path::new("some/r.csv"), text);
        let text = "\u{feff}depth, u_p,p,q,accepted,u_q,u_c,prompt\n\
                    1,0.5,0.25,0.5,1,0.125,,-3\n\n,1,,,,,0.75,\n2,0,0,1,0,0.000001,0,4\n";
        let records = read(text).unwrap();
        assert_eq!(records.name, "r.csv");
        let first = Record {
            prompt: Some(-3),
            depth: Some(1),
            ..of(Some(drafted(0.25, 0.5, true, 0.125)), 0.5, None)
        };
        let second = of(None, 1.0, Some(0.75));
        // As much above 1 as is taken for rounding, and no more.
        let third = Record {
            prompt: Some(4),
            depth: Some(2),
            ..of(Some(drafted(0.0, 1.0, false, 1e-6)), 0.0, Some(0.0))
        };
        assert_eq!(records.records, [first, second, third]);
        let rounded =
            read("p,q,accepted,u_q,u_p\n1.0000009,1.0000000000000002,1,0,1.0000000000000002\n");
        let record = of(Some(drafted(1.0, 1.0, true, 0.0)), 1.0, None);
        assert_eq!(rounded.unwrap().records, [record]);
        assert!(read("u_p\n1.000002\n").is_err());
    }

    /// Capital of 1 before the first bet: else it proves nothing.
    #[test]
    fn capital_begins_at_one() {
        for rule in [Rule::TOKEN, Rule::ONE_HOT] {
            let (book, tally) = after(rule, 0.0, |_, _| {});
            for part in Part::ALL {
                let log = book.log_capital(part, &tally);
                let mut weights = book.of(part).map(|one| one.weight);
                let is_fine = weights.all(|weight| weight > 0.0 && weight < 1.0);
                assert!(log.abs() < 1e-14 && is_fine, "{rule} {part:?}");
            }
            let mut names = book.of(Part::Acceptance).map(|one| one.name);
            assert_eq!(names.any(|name| name == "exact-match"), rule == Rule::TOKEN);
        }
    }

    /// Under the claimed chance of being kept, and under any within the tolerance, no bettor
    /// gains on average; under the bug that it bets on, it does.
    #[test]
    fn bets_on_kept_drafts_are_fair() {
        for (keep, p) in [(0.4, 0.3), (0.9, 0.45), (0.05, 0.01)] {
            for tolerance in [0.0, 1e-3] {
                let of = |accepted| {
                    after(Rule::TOKEN, tolerance, |book, tally| {
                        book.kept(tally, keep, p, accepted);
                    })
                };
                let ((book, kept), (_, refused)) = (of(true), of(false));
                for one in book.of(Part::Acceptance) {
                    let [kept, refused] =
                        [&kept, &refused].map(|tally| book.log_of(one, tally).exp());
                    for chance in [keep - tolerance, keep, keep + tolerance] {
                        let mean = chance * kept + (1.0 - chance) * refused;
                        if chance <= 1.0 {
                            assert!(mean < 1.0 + 1e-8, "{} {keep} {tolerance}: {mean}", one.name);
                        }
                        if chance == keep && tolerance == 0.0 {
                            assert!(mean > 1.0 - 1e-6, "{} {keep}: {mean}", one.name);
                        }
                    }
                    let keeps_more = match one.name {
                        "lenient-acceptance" => tolerance == 0.0,
                        name => name == "accepts-everything",
                    };
                    if keeps_more && keep < 0.5 {
                        assert!(kept > 1.0 && refused < 1.0, "{kept} {refused}");
                    }
                    if one.name == "exact-match" && tolerance == 0.0 && keep < 1.0 {
                        assert!(kept < 1.0 && refused > 1.0, "{kept} {refused}");
                    }
                }
            }
        }
    }

    /// Shows that what cannot happen is counted, with the first line where it did.
    #[test]
    fn records_of_what_cannot_happen_fail_hard() {
        let kept = drafted(0.25, 0.5, true, 0.0);
        let rejected = drafted(0.25, 0.5, false, 0.0);
        let refused = DraftRecord { p: 0.0, ..rejected };
        // By its depth and what was made of the draft; behind a bar another text begins.
        let record = |prompt: i64, word: &str| {
            let draft = match &word[1..] {
                "kept" => Some(kept),
                "rejected" => Some(rejected),
                "impossible" => Some(DraftRecord { p: 0.0, ..kept }),
                "refused" => Some(refused),
                "undrafted" => Some(DraftRecord { q: 0.0, ..rejected }),
                _ => None,
            };
            Record {
                prompt: Some(prompt),
                depth: Some(word[..1].parse().unwrap()),
                ..of(draft, 0.5, None)
            }
        };
        let (token, none, first) = (Rule::TOKEN, (0, None), (1, Some(1)));
        let impossible = "0refused 0impossible 0impossible";
        for (rule, words, rounds, expected) in [
            (token, "0kept 1kept 2rejected 0rejected 0", 3, [none; 3]),
            (token, impossible, 3, [(2, Some(1)), none, none]),
            (token, "0rejected 0undrafted", 2, [none, first, none]),
            // Exact match says nothing of drafts.
            (Rule::EXACT_MATCH, "0rejected 0undrafted", 2, [none; 3]),
            // Behind a rejection, and behind a token without a draft; not in another text.
            (token, "0rejected 1rejected", 1, [none, none, first]),
            (token, "0 1rejected", 1, [none, none, first]),
            (token, "0rejected|1rejected", 1, [none; 3]),
            (token, "0|1rejected", 1, [none; 3]),
        ] {
            let texts = (0..).zip(words.split('|'));
            let all = texts
                .flat_map(|(prompt, text)| text.split(' ').map(move |word| record(prompt, word)));
            let report = audit_records(&named(all.collect()), &Settings::new(rule), "").unwrap();
            let checks = report.hard_checks.iter();
            let counts: Vec<_> = checks.map(|c| (c.violations, c.first_position)).collect();
            assert_eq!(counts, expected, "{rule} {words}");
            let is_fine = expected == [none; 3];
            assert_eq!((report.rounds, report.ok), (rounds, is_fine), "{words}");
        }
        // A draft of probability 0 is refused by every rule: that it was says nothing.
        for rule in [token, Rule::ONE_HOT, Rule::threshold(0.5).unwrap()] {
            let one = named(vec![of(Some(refused), 0.5, None)]);
            let report = audit_records(&one, &Settings::new(rule), "").unwrap();
            let part = &report.parts[Part::Acceptance.index()];
            assert!(part.log10_e_value.abs() < 1e-3, "{rule}: {part:?}");
        }
    }

    /// Records of speculative sampling, or of exact match, on three tokens.
    fn run(exact: bool, argmax: bool, count: usize) -> Records {
        let (p, q) = ([0.2, 0.5, 0.3], [0.6, 0.3, 0.1]);
        // Mass before a token in the order of p.
        let before = [0.8, 0.0, 0.5];
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let records = (0..count)
            .map(|_| {
                let x = if argmax { 0 } else { draw(&q, random.random()) };
                let keep: f64 = if exact { p[x] } else { (p[x] / q[x]).min(1.0) };
                let accepted = random.random::<f64>() < keep;
                let y = if accepted {
                    x
                } else if exact {
                    let mut off = p;
                    off[x] = 0.0;
                    draw(&off, random.random())
                } else {
                    // (p - q)+ = (0, .2, .2).
                    1 + usize::from(random.random::<bool>())
                };
                let draft = drafted(p[x], q[x], accepted, [0.0, 0.6, 0.9][x]);
                let u_p = before[y] + random.random::<f64>() * p[y];
                of(Some(draft), u_p, None)
            })
            .collect();
        named(records)
    }

    #[test]
    fn records_tell_an_honest_engine_from_two_others() {
        let settings = Settings::new(Rule::TOKEN);
        let honest = audit_records(&run(false, false, 4000), &settings, "").unwrap();
        assert!(honest.ok, "{honest:#?}");
        // 4,000 records exclude no departure of .05.
        assert_eq!(honest.conclusion, Conclusion::Undecided);
        assert!(honest.parts[2].reason.as_deref().unwrap().contains("u_c"));
        let exact = audit_records(&run(true, false, 4000), &settings, "").unwrap();
        assert_eq!(exact.conclusion, Conclusion::LosslessOther, "{exact:#?}");
        assert_eq!(exact.fits.as_deref(), Some("exact-match"));
        let argmax = audit_records(&run(false, true, 4000), &settings, "").unwrap();
        assert_eq!(argmax.parts[0].verdict, Outcome::Refuted);
        assert_eq!(argmax.parts[1].verdict, Outcome::Consistent);
        assert_eq!(argmax.conclusion, Conclusion::Lossy);
    }

    /// Drafts that are claimed to be the likeliest have no mass before them.
    #[test]
    fn records_of_likeliest_drafts_show_that_they_are() {
        let verdict = |u_q: f64| {
            let records = (0..400).map(|index| {
                let draft = drafted(0.5, 0.75, index % 2 == 0, u_q);
                of(Some(draft), (index as f64 + 0.5) / 400.0, None)
            });
            let records = named(records.collect());
            let report = audit_records(&records, &Settings::new(Rule::ONE_HOT), "").unwrap();
            assert_eq!(report.parts[0].steps, 400);
            assert_eq!(report.parts[1].verdict, Outcome::Consistent);
            report.parts[0].verdict
        };
        assert_eq!(verdict(0.0), Outcome::Consistent);
        assert_eq!(verdict(0.25), Outcome::Refuted);
    }

    /// A negative control that fails makes the report fail, and one that holds mends nothing.
    #[test]
    fn a_negative_control_only_makes_a_report_worse() {
        let control = |refuted: Option<bool>| Tampering {
            name: "lenient".to_owned(),
            words: String::new(),
            refuted,
            by: Vec::new(),
            positions: 1,
            own_positions_enough: true,
            reason: None,
        };
        for (ok, controls, expected) in [
            (true, vec![], true),
            (true, vec![control(Some(true)), control(None)], true),
            (true, vec![control(Some(true)), control(Some(false))], false),
            (false, vec![control(Some(true))], false),
            (false, vec![], false),
        ] {
            let report = AuditReport {
                ok,
                ..AuditReport::default()
            };
            let found = report.with_control(controls.clone()).ok;
            assert_eq!(found, expected, "{controls:?}");
        }
    }

    #[test]
    fn bad_records_name_line_and_column() {
        let refused = |text: &str, words: &str| {
            let read = Records::parse(Path::new("r.csv"), text);
            let message = read.unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        };
        for (line, words) in [
            ("0.5,0.5,2,0,0.1", "line 2: accepted is \"2\""),
            ("\n0.5,0.5,yes,0,0", "line 3: accepted is \"yes\""),
            ("0.5,1.5,1,0,0.1", "q is 1.5"),
            ("0.5,0.5,1,0.9,0.1", "u_q + q"),
            ("0.1,0.5,0,0.5001,0", "u_q + q is 1.0001"),
            ("0.5,,1,0,0.1", "all there, or all empty"),
            (",0.5,,,0", "all there, or all empty"),
            ("0.5,0.5,1,0", "has 4 fields"),
            ("0.5,0.5,1,0,", "u_p is empty"),
            (",,,,-0.1", "u_p is -0.1"),
            ("x,0.5,1,0,0.1", "\"x\" is no number"),
            ("NaN,0.5,1,0,0.1", "p is NaN"),
            ("", "line 1: has no records"),
        ] {
            refused(&format!("p,q,accepted,u_q,u_p\n{line}\n"), words);
        }
        for (text, words) in [
            ("", "is empty"),
            ("p,q,zz\n", "\"zz\" is unknown"),
            (
                "p,q,accepted,u_q,u_p,p\n",
                "line 1: column p stands there twice",
            ),
            ("p,q,accepted,u_q\n", "line 1: column u_p is missing"),
            ("p,u_p\n0.5,0.5\n", "column q is missing"),
            ("u_p,depth\n0,1.5\n", "depth: \"1.5\" is no integer"),
            ("u_p,prompt\n0,a\n", "prompt: \"a\" is no integer"),
        ] {
            refused(text, words);
        }
    }

    /// A text alone: one column, and a mean over texts that may share numbers.
    #[test]
    fn records_of_a_text_alone() {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(4);
        let mut text = |skew: i32, seeds: &[i64]| {
            let mut all = "u_p,prompt,seed\n".to_owned();
            for at in 0..400 {
                let u: f64 = random.random();
                let prompt = at / 100;
                let seed = seeds[prompt % seeds.len()];
                all.push_str(&format!("{},{prompt},{seed}\n", u.powi(skew)));
            }
            Records::parse("t.csv".as_ref(), &all).unwrap()
        };
        let ask = |records: &Records, rule| audit_records(records, &Settings::new(rule), "");
        let honest = ask(&text(1, &[-1]), Rule::TEXT).unwrap();
        assert_eq!(honest.conclusion, Conclusion::Undecided, "{honest:#?}");
        assert_eq!((honest.parts.len(), honest.hard_checks.len()), (1, 0));
        assert_eq!((honest.requests.fresh, honest.requests.averaged), (4, 0));
        let skewed = ask(&text(2, &[-1]), Rule::TEXT).unwrap();
        assert_eq!(skewed.conclusion, Conclusion::Lossy);
        let shared = ask(&text(2, &[3]), Rule::TEXT).unwrap();
        assert_eq!((shared.requests.fresh, shared.requests.averaged), (0, 4));
        let [product, mean] = [&skewed, &shared].map(|one| one.parts[0].log10_e_value);
        assert!(product > 2.0 * mean && mean > 1.0, "{product} {mean}");
        assert_eq!((skewed.requests.repeated, shared.requests.repeated), (0, 0));
        // More texts whose e-values are averaged do not help.
        let mut unsaid = text(1, &[3]);
        let averaged = ask(&unsaid, Rule::TEXT).unwrap();
        assert!(
            averaged.open[0].contains("log longer texts"),
            "{averaged:#?}"
        );
        unsaid.records.iter_mut().for_each(|one| one.seed = None);
        let unsaid = ask(&unsaid, Rule::TEXT).unwrap();
        assert!(unsaid.open[0].contains("seeds fresh if each of 4 texts"));
        assert!(honest.open[0].ends_with("log more"), "{honest:#?}");
        // The recorder's own numbers, again for each text.
        let mut again = text(1, &[-1]);
        for at in 100..400 {
            again.records[at].u_p = again.records[at % 100].u_p;
        }
        let again = ask(&again, Rule::TEXT).unwrap();
        assert_eq!(again.requests.repeated, 4);
        assert!(again.notes.iter().any(|note| note.contains("repeat")));
        let message = ask(&text(1, &[-1]), Rule::TOKEN).unwrap_err().to_string();
        assert!(message.contains("⟨rule text⟩"), "{message}");
    }
}
