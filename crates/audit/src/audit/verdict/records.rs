//! Records of five numbers a drafted token, for engines that cannot log rows.

use crate::audit::AuditError;
use crate::audit::data::{
    AuditReport, Conclusion, Outcome, PartReport, RequestsReport, Settings, Suspect,
};
use crate::audit::evidence::bets::{SCORE_STAKES, STAKES, log_step, log_sum};
use crate::audit::evidence::judge::{Part, Tally};
use crate::audit::evidence::requests::{Place, Requests, Settled, repeated};
use crate::audit::evidence::steps::Count;
use crate::audit::model::rule::Rule;
use crate::audit::verdict::capital::{Capital, smallest_tv};
use crate::audit::verdict::measure::{conclude, of_requests};
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
/// docs/guide/audit.md says what they are.
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

const NEEDED: [&str; 5] = ["p", "q", "accepted", "u_q", "u_p"];
const OPTIONAL: [&str; 4] = ["u_c", "prompt", "depth", "seed"];

impl Records {
    /// Reads a file's text.
    ///
    /// # Errors
    /// Missing or unknown columns, lines of another length, numbers out of range; each names
    /// file, line and column.
    pub fn parse(file: &Path, text: &str) -> Result<Self, AuditError> {
        let refused = |line: usize, message: String| AuditError::Record {
            file: file.to_owned(),
            line: line + 1,
            message,
        };
        let mut lines = text.lines().enumerate();
        let (_, header) = lines
            .next()
            .ok_or_else(|| refused(0, "is empty; the first line names the columns".to_owned()))?;
        let header = header.trim_start_matches('\u{feff}');
        let columns: Vec<&str> = header.split(',').map(str::trim).collect();
        for (index, column) in columns.iter().enumerate() {
            if !NEEDED.contains(column) && !OPTIONAL.contains(column) {
                return Err(refused(
                    0,
                    format!(
                        "column {column:?} is unknown; there are {} and {}",
                        NEEDED.join(", "),
                        OPTIONAL.join(", ")
                    ),
                ));
            }
            if columns.iter().take(index).any(|other| other == column) {
                return Err(refused(0, format!("column {column} stands there twice")));
            }
        }
        // A text alone has none of the columns of drafts.
        let (of_drafts, _) = NEEDED.split_at(NEEDED.len() - 1);
        let is_text = !of_drafts.iter().any(|name| columns.contains(name));
        let missing =
            |name: &&&str| !(columns.contains(*name) || is_text && of_drafts.contains(*name));
        if let Some(missing) = NEEDED.iter().find(missing) {
            return Err(refused(0, format!("column {missing} is missing")));
        }
        let mut records = Vec::new();
        for (number, line) in lines {
            if line.trim().is_empty() {
                continue;
            }
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            if fields.len() != columns.len() {
                return Err(refused(
                    number,
                    format!(
                        "has {} fields; the header has {}",
                        fields.len(),
                        columns.len()
                    ),
                ));
            }
            let field = |name: &str| {
                let place = columns.iter().position(|column| *column == name);
                place
                    .and_then(|place| fields.get(place))
                    .copied()
                    .unwrap_or("")
            };
            let share = |name: &str| -> Result<Option<f64>, AuditError> {
                let text = field(name);
                if text.is_empty() {
                    return Ok(None);
                }
                let value: f64 = text
                    .parse()
                    .map_err(|_| refused(number, format!("{name}: {text:?} is no number")))?;
                if !(0.0..=1.0).contains(&value) {
                    return Err(refused(
                        number,
                        format!("{name} is {value}; it is in [0, 1]"),
                    ));
                }
                Ok(Some(value))
            };
            let whole = |name: &str| -> Result<Option<i64>, AuditError> {
                let text = field(name);
                if text.is_empty() {
                    return Ok(None);
                }
                let value = text.parse();
                let value = value
                    .map_err(|_| refused(number, format!("{name}: {text:?} is no integer")))?;
                Ok(Some(value))
            };
            let accepted = match field("accepted") {
                "" => None,
                "0" => Some(false),
                "1" => Some(true),
                other => {
                    return Err(refused(
                        number,
                        format!("accepted is {other:?}; it is 0 or 1"),
                    ));
                }
            };
            let draft = match (share("p")?, share("q")?, accepted, share("u_q")?) {
                (Some(p), Some(q), Some(accepted), Some(u_q)) => {
                    if u_q + q > 1.0 + 1e-6 {
                        return Err(refused(
                            number,
                            format!("u_q + q is {}; it is the mass up to x, at most 1", u_q + q),
                        ));
                    }
                    Some(DraftRecord {
                        p,
                        q,
                        accepted,
                        u_q,
                    })
                }
                (None, None, None, None) => None,
                _ => {
                    let message = "p, q, accepted and u_q are all there, or all empty where \
                                   nothing was drafted";
                    return Err(refused(number, message.to_owned()));
                }
            };
            let Some(u_p) = share("u_p")? else {
                return Err(refused(
                    number,
                    "u_p is empty; every line has one".to_owned(),
                ));
            };
            records.push(Record {
                prompt: whole("prompt")?,
                depth: whole("depth")?,
                seed: whole("seed")?,
                draft,
                u_p,
                u_c: share("u_c")?,
            });
        }
        if records.is_empty() {
            return Err(refused(0, "has no records".to_owned()));
        }
        let name = file.file_name().map_or_else(
            || file.display().to_string(),
            |name| name.to_string_lossy().into(),
        );
        Ok(Self { name, records })
    }
}

/// A bet that is one of a part's.
struct Bettor {
    name: &'static str,
    words: &'static str,
    weight: f64,
    logs: Vec<f64>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// The density 1/w on [0, w), and a little everywhere.
    Head(f64),
    /// The same on [1-w, 1].
    Tail(f64),
    /// Keeps with this times the rule's probability, at most 1.
    Lenient(f64),
    /// Keeps with p(x).
    Exact,
    /// A score with its mean.
    Score,
}

const KEPT: f64 = 0.02;

impl Bettor {
    fn list(part: Part, rule: Rule) -> Vec<Self> {
        let head = "tokens stand too far up in the order of their probabilities: argmax, top-k, \
                    or a temperature that is too low";
        let tail = "tokens stand too far down in the order of their probabilities: a temperature \
                    that is too high, or a cut that is missing";
        let mut all: Vec<(&'static str, &'static str, f64, Kind)> = Vec::new();
        if part == Part::Acceptance {
            let words = "drafts are kept with 1/0.9 of the rule's probability";
            all.push(("lenient-acceptance", words, 3.0, Kind::Lenient(0.9)));
            let words = "nearly every draft is kept";
            all.push(("accepts-everything", words, 2.0, Kind::Lenient(1e-3)));
            if rule == Rule::TOKEN {
                let words = "drafts are kept with p(x), as exact-match does, which loses nothing";
                all.push(("exact-match", words, 3.0, Kind::Exact));
            }
            let words = "drafts are kept too often, or too seldom";
            all.push(("accepted", words, 2.0, Kind::Score));
        } else {
            for (w, weight) in [
                (0.02, 1.0),
                (0.1, 2.0),
                (0.3, 1.0),
                (0.6, 1.0),
                (0.8, 1.0),
                (0.9, 1.0),
                (0.95, 1.0),
            ] {
                all.push(("too-likely", head, weight, Kind::Head(w)));
            }
            for w in [0.05, 0.2, 0.5] {
                all.push(("too-unlikely", tail, 0.7, Kind::Tail(w)));
            }
            all.push((
                "rank",
                "tokens are likelier, or less likely, than draws",
                2.0,
                Kind::Score,
            ));
        }
        let total: f64 = all.iter().map(|(.., weight, _)| weight).sum();
        all.into_iter()
            .map(|(name, words, weight, kind)| Self {
                name,
                words,
                weight: weight / total,
                logs: vec![
                    0.0;
                    if matches!(kind, Kind::Score) {
                        SCORE_STAKES.len()
                    } else {
                        STAKES.len()
                    }
                ],
                kind,
            })
            .collect()
    }

    fn log(&self) -> f64 {
        let weights = |index: usize| match self.kind {
            Kind::Score => -(SCORE_STAKES.len() as f64).ln(),
            _ => STAKES
                .get(index)
                .map_or(f64::NEG_INFINITY, |(_, weight)| weight.ln()),
        };
        log_sum(
            self.logs
                .iter()
                .enumerate()
                .map(|(index, log)| log + weights(index)),
        )
    }

    fn play(&mut self, gain: f64, range: f64, tolerance: f64) {
        for (slot, (stake, _)) in self.logs.iter_mut().zip(STAKES) {
            *slot += log_step(gain, range, stake, tolerance);
        }
    }

    fn score(&mut self, value: f64, mean: f64, tolerance: f64) {
        for (slot, stake) in self.logs.iter_mut().zip(SCORE_STAKES) {
            *slot += log_step(stake * (value - mean), 1.0, 1.0, tolerance * stake.abs());
        }
    }

    /// A number that is uniform in [0, 1], or known to lie evenly in an interval.
    fn uniform(&mut self, from: f64, width: f64, tolerance: f64) {
        let gain = |inside: f64, w: f64| {
            let mean = if width > 0.0 { inside / width } else { inside };
            (1.0 - KEPT) * (mean / w - 1.0)
        };
        let to = from + width;
        let (gain, w) = match self.kind {
            Kind::Score => {
                self.score((0.5 * (from + to)).min(1.0), 0.5, tolerance);
                return;
            }
            Kind::Head(w) if width > 0.0 => (gain((to.min(w) - from).max(0.0), w), w),
            Kind::Tail(w) if width > 0.0 => (gain((to - from.max(1.0 - w)).max(0.0), w), w),
            Kind::Head(w) => (gain(f64::from(u8::from(from < w)), w), w),
            Kind::Tail(w) => (gain(f64::from(u8::from(from >= 1.0 - w)), w), w),
            Kind::Lenient(_) | Kind::Exact => return,
        };
        self.play(gain, (1.0 - KEPT) / w, tolerance);
    }

    /// A draft that is kept with a probability under the rule.
    fn kept(&mut self, keep: f64, p: f64, accepted: bool, tolerance: f64) {
        let wrong = match self.kind {
            Kind::Lenient(factor) => (keep / factor).min(1.0),
            Kind::Exact => p,
            Kind::Score => {
                self.score(f64::from(u8::from(accepted)), keep, tolerance);
                return;
            }
            Kind::Head(_) | Kind::Tail(_) => return,
        };
        let (claimed, wrong) = ([keep, 1.0 - keep], [wrong, 1.0 - wrong]);
        if let Some(bet) = crate::audit::evidence::bets::Bet::new(&claimed, &wrong, tolerance) {
            let place = usize::from(!accepted);
            self.play(bet.gain(claimed[place], wrong[place]), bet.range, tolerance);
        }
    }
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
    let rule = settings.rule;
    if rule.needs_full_rows().is_some() {
        return Err(AuditError::Log(format!(
            "{}: five numbers a token do not tell {rule} from others; log rows, or audit one of \
             token, one-hot, exact-match, threshold:A",
            records.name
        )));
    }
    let is_tolerance = (0.0..0.5).contains(&settings.tolerance);
    if !is_tolerance || settings.alpha <= 0.0 || settings.alpha >= 1.0 || settings.alpha.is_nan() {
        return Err(AuditError::Log(
            "--tolerance is at least 0 and below 0.5, --alpha above 0 and below 1".to_owned(),
        ));
    }
    let tolerance = settings.tolerance;
    let drafted = records.records.iter().any(|record| record.draft.is_some());
    if rule != Rule::TEXT && !drafted && !records.records.is_empty() {
        return Err(AuditError::Log(format!(
            "{}: has no draft in any line, so that {rule} cannot be told; a text alone is audited \
             by --rule text",
            records.name
        )));
    }
    let places = records.records.iter().map(|record| Place {
        prompt: record.prompt,
        position: None,
        seed: record.seed,
    });
    let requests = Requests::new(places, settings.seeds);
    let fresh = || Part::ALL.map(|part| Bettor::list(part, rule));
    let mut units = Map::<usize, ([Vec<Bettor>; 4], [u64; 4])>::new();
    let (mut zero, mut undrafted, mut after) =
        (Count::default(), Count::default(), Count::default());
    let mut before: Option<Record> = None;
    let mut rounds = 0;
    for (index, record) in records.records.iter().enumerate() {
        if record.depth.is_none_or(|depth| depth == 0) {
            rounds += 1;
        }
        if let (Some(depth), Some(last)) = (record.depth, before)
            && depth > 0
            && last.prompt == record.prompt
            && last.draft.is_none_or(|draft| !draft.accepted)
        {
            after.found(index);
        }
        before = Some(*record);
        let (bettors, steps) = units.at_or(requests.unit_at(index), || (fresh(), [0; 4]));
        let is_text = rule == Rule::TEXT;
        if let Some(draft) = record.draft.filter(|_| !is_text) {
            if draft.accepted && draft.p <= 0.0 {
                zero.found(index);
            }
            if draft.q <= 0.0 && rule.drafts() != Drafts::Any {
                undrafted.found(index);
            }
            match rule.drafts() {
                Drafts::Any => {}
                Drafts::Likeliest => {
                    steps[0] += 1;
                    let hit = f64::from(u8::from(draft.u_q <= 0.0));
                    for bettor in &mut bettors[0] {
                        if matches!(bettor.kind, Kind::Score) {
                            bettor.score(hit, 1.0, tolerance);
                        }
                    }
                }
                Drafts::Drawn(_) => {
                    steps[0] += 1;
                    for bettor in &mut bettors[0] {
                        bettor.uniform(draft.u_q, draft.q, tolerance);
                    }
                }
            }
            let keep = if !rule.tests_drafts() {
                (draft.p / rule.over()).min(1.0)
            } else if draft.p <= 0.0 {
                0.0
            } else {
                (draft.p / draft.q).min(1.0)
            };
            steps[1] += 1;
            for bettor in &mut bettors[1] {
                bettor.kept(keep, draft.p, draft.accepted, tolerance);
            }
        }
        let replaced = record.draft.is_none_or(|draft| !draft.accepted);
        if let Some(u_c) = record.u_c.filter(|_| replaced && !is_text) {
            steps[2] += 1;
            for bettor in &mut bettors[2] {
                bettor.uniform(u_c, 0.0, tolerance);
            }
        }
        if rule.is_lossless() {
            steps[3] += 1;
            for bettor in &mut bettors[3] {
                bettor.uniform(record.u_p, 0.0, tolerance);
            }
        }
    }
    let (bettors, settled) = settle(&requests, fresh(), &units);
    let steps = settled.total.steps;
    let mut parts: Vec<PartReport> = Part::ALL
        .into_iter()
        .zip(&bettors)
        .map(|(part, bettors)| verdict(part, bettors, &settled, rule, settings))
        .collect();
    if rule == Rule::TEXT {
        parts.retain(|one| one.part == Part::TargetLaw.name());
    }
    // Ranks that were drawn by themselves are hardly ever equal to three places.
    let mut ranks = vec![Vec::new(); requests.texts()];
    for (text, record) in requests.text.iter().zip(&records.records) {
        let bits = record.u_p.to_bits();
        if let Some(ranks) = ranks.get_mut(*text) {
            ranks.push(((bits ^ (bits >> 32)) as u32, 1e-3f64.ln()));
        }
    }
    let averaged = requests.averaged();
    let requests = RequestsReport {
        texts: requests.texts(),
        fresh: requests.texts() - averaged,
        averaged,
        seeds: requests.basis.to_owned(),
        repeated: repeated(&ranks),
    };
    let mut notes = vec![
        "records of five numbers: bugs are told apart less well than from rows, and bets are on \
         the order of probabilities"
            .to_owned(),
    ];
    notes.extend(of_requests(&requests));
    let mut report = AuditReport {
        schema: 1,
        tool: concat!("specgap ", env!("CARGO_PKG_VERSION")).to_owned(),
        command: command.to_owned(),
        files: Vec::new(),
        unfinished: None,
        log: records.name.clone(),
        target: None,
        draft: None,
        rule: rule.to_string(),
        rule_words: rule.words().to_owned(),
        claimed: None,
        positions: records.records.len(),
        rounds,
        not_audited: 0,
        tolerance,
        alpha: settings.alpha,
        false_alarm: settings.alpha * steps.iter().filter(|steps| **steps > 0).count() as f64,
        rows_from: None,
        not_comparable: None,
        requests,
        plan: None,
        hard_checks: vec![
            zero.check(
                "target-zero",
                "a draft of probability 0 under the target was accepted",
            ),
            undrafted.check(
                "draft-zero",
                "a token was drafted that the draft gives probability 0",
            ),
            after.check(
                "accepted-after-rejection",
                "a round went on behind its rejection",
            ),
        ],
        parts,
        conclusion: Conclusion::Undecided,
        fits: None,
        lossy_by_design: None,
        negative_control: None,
        notes,
        ok: false,
    };
    if rule == Rule::TEXT {
        report.hard_checks.clear();
    }
    let refuted =
        |report: &AuditReport, part: Part| report.parts[part.index()].verdict == Outcome::Refuted;
    if rule == Rule::TOKEN
        && refuted(&report, Part::Acceptance)
        && !refuted(&report, Part::TargetLaw)
        && report.parts[Part::Acceptance.index()].suspect.as_deref() == Some("exact-match")
    {
        let other = Settings {
            rule: Rule::EXACT_MATCH,
            ..settings.clone()
        };
        let other = audit_records(records, &other, command)?;
        report.fits = other.ok.then(|| "exact-match".to_owned());
    }
    conclude(&mut report, rule);
    Ok(report)
}

/// Bets of all texts as those of one: multiplied where random numbers are a text's own, averaged
/// where they may be shared.
fn settle(
    requests: &Requests,
    mut all: [Vec<Bettor>; 4],
    units: &Map<usize, ([Vec<Bettor>; 4], [u64; 4])>,
) -> ([Vec<Bettor>; 4], Settled) {
    let tallies = units.iter().map(|(unit, (bettors, steps))| {
        let logs = bettors.iter().flatten().flat_map(|one| &one.logs);
        let tally = Tally {
            steps: *steps,
            logs: logs.copied().collect(),
        };
        (*unit, tally)
    });
    let tallies: Map<usize, Tally> = tallies.collect();
    let logs = all.iter().flatten().map(|one| one.logs.len()).sum();
    let settled = requests.settle(logs, None, &tallies);
    let slots = all.iter_mut().flatten().flat_map(|one| &mut one.logs);
    for (slot, log) in slots.zip(&settled.total.logs) {
        *slot = *log;
    }
    (all, settled)
}

fn verdict(
    part: Part,
    bettors: &[Bettor],
    settled: &Settled,
    rule: Rule,
    settings: &Settings,
) -> PartReport {
    let steps = settled.total.steps[part.index()];
    let counted = settled.counted[part.index()];
    let log = log_sum(bettors.iter().map(|one| one.weight.ln() + one.log()));
    let evidence = bettors.iter().map(|one| Suspect {
        name: one.name.to_owned(),
        words: one.words.to_owned(),
        cure: "log rows to tell bugs apart".to_owned(),
        log10_e_value: one.log() / std::f64::consts::LN_10,
        is_bug: part == Part::Acceptance && !matches!(one.kind, Kind::Score),
    });
    let scores = bettors.iter().filter(|one| matches!(one.kind, Kind::Score));
    let share = scores.map(|one| one.weight).fold(1.0, f64::min);
    let (tolerance, alpha) = (settings.tolerance, settings.alpha);
    let limit = smallest_tv(share, tolerance, counted, alpha, settled.price);
    let untestable = match part {
        Part::DraftLaw if rule.drafts() == Drafts::Any => {
            Some(format!("{rule} claims nothing of how drafts are drawn"))
        }
        Part::Correction if steps == 0 => Some(
            "five numbers do not tell it: add column u_c, as u_p under the law that the token was \
             drawn from, where it was no accepted draft"
                .to_owned(),
        ),
        Part::TargetLaw if !rule.is_lossless() => {
            Some("a lossy rule's outputs do not follow p; what they follow needs rows".to_owned())
        }
        _ if limit.is_none() => Some(format!("{steps} steps are too few")),
        _ => None,
    };
    Capital {
        part,
        steps,
        log,
        limit,
        evidence: evidence.collect(),
        groups: Vec::new(),
        untestable,
    }
    .verdict(settings.alpha)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::data::Tampering;
    use rand::{Rng, SeedableRng};

    #[test]
    fn bets_on_intervals_are_fair() {
        // q = (.5, .3, .2) in its order: intervals [0, .5), [.5, .8), [.8, 1).
        let cells = [(0.0, 0.5), (0.5, 0.3), (0.8, 0.2)];
        for mut bettor in Bettor::list(Part::DraftLaw, Rule::TOKEN) {
            let mut mean = vec![0.0; bettor.logs.len()];
            for (from, width) in cells {
                bettor.logs.fill(0.0);
                bettor.uniform(from, width, 0.0);
                for (mean, log) in mean.iter_mut().zip(&bettor.logs) {
                    *mean += width * log.exp();
                }
            }
            for mean in mean {
                assert!((mean - 1.0).abs() < 1e-8, "{} {mean}", bettor.name);
            }
        }
    }

    /// What a bet gains on an interval, or on a number, by hand.
    #[test]
    fn gains_on_intervals_by_hand() {
        let (head, tail) = (Kind::Head(0.25), Kind::Tail(0.25));
        // The part of the interval that is inside, over its width and over 1/4.
        for (kind, from, width, inside) in [
            (head, 0.0, 0.125, 1.0),
            (head, 0.125, 0.25, 0.5),
            (head, 0.125, 0.5, 0.25),
            (head, 0.25, 0.5, 0.0),
            (head, 0.5, 0.25, 0.0),
            (head, 0.0, 0.0, 1.0),
            (head, 0.2499, 0.0, 1.0),
            (head, 0.25, 0.0, 0.0),
            (tail, 0.875, 0.125, 1.0),
            (tail, 0.625, 0.25, 0.5),
            (tail, 0.25, 0.75, 1.0 / 3.0),
            (tail, 0.25, 0.5, 0.0),
            (tail, 0.0, 0.25, 0.0),
            (tail, 0.75, 0.0, 1.0),
            (tail, 0.7499, 0.0, 0.0),
        ] {
            let mut bettor = Bettor::list(Part::DraftLaw, Rule::TOKEN).swap_remove(0);
            bettor.kind = kind;
            let before = bettor.logs.clone();
            assert_eq!(before, [0.0; 3]);
            bettor.uniform(from, width, 0.01);
            let gain = 0.98 * (inside / 0.25 - 1.0);
            for (log, (stake, _)) in bettor.logs.iter().zip(STAKES) {
                let paid = 1.0 + 0.01 * stake * 0.98 / 0.25;
                let expected = ((1.0 + stake * gain) / paid).ln() - 1e-9;
                assert!(
                    (log - expected).abs() < 1e-13,
                    "{from} {width} {log} {expected}"
                );
            }
            // An acceptance says nothing of them.
            let after = bettor.logs.clone();
            bettor.kept(0.5, 0.25, true, 0.01);
            assert_eq!(bettor.logs, after);
        }
        for (from, width, value) in [(0.25, 0.0, 0.25), (0.25, 0.5, 0.5), (0.9, 0.4, 1.0)] {
            let mut bettors = Bettor::list(Part::DraftLaw, Rule::TOKEN);
            let bettor = bettors.last_mut().unwrap();
            assert_eq!(bettor.name, "rank");
            bettor.uniform(from, width, 0.01);
            for (log, stake) in bettor.logs.iter().zip(SCORE_STAKES) {
                let gain = 1.0 + stake * (value - 0.5);
                let expected = (gain / (1.0 + 0.01 * f64::abs(stake))).ln() - 1e-9;
                assert!((log - expected).abs() < 1e-13, "{from} {width} {stake}");
            }
        }
        // Bets on acceptance know nothing of ranks.
        for mut bettor in Bettor::list(Part::Acceptance, Rule::TOKEN) {
            let score = matches!(bettor.kind, Kind::Score);
            bettor.uniform(0.1, 0.0, 0.0);
            assert_eq!(bettor.logs.iter().all(|log| *log == 0.0), !score);
        }
    }

    /// A draft is kept with 0.4 by the rule; what each bettor thinks, by hand.
    #[test]
    fn gains_on_kept_drafts_by_hand() {
        for mut bettor in Bettor::list(Part::Acceptance, Rule::TOKEN) {
            let wrong = match bettor.name {
                "lenient-acceptance" => 0.4 / 0.9,
                "accepts-everything" => 1.0,
                "exact-match" => 0.3,
                _ => {
                    bettor.kept(0.4, 0.3, true, 0.0);
                    for (log, stake) in bettor.logs.iter().zip(SCORE_STAKES) {
                        assert!((log - (1.0 + stake * 0.6).ln()).abs() < 1e-8);
                    }
                    continue;
                }
            };
            bettor.kept(0.4, 0.3, false, 0.0);
            // The likelihood ratio, less the part that is never staked, in one of three sizes;
            // the cap cuts only what is above it.
            let bet =
                crate::audit::evidence::bets::Bet::new(&[0.4, 0.6], &[wrong, 1.0 - wrong], 0.0);
            let gain = bet.unwrap().gain(0.6, 1.0 - wrong);
            assert!((gain > 0.0) == (wrong < 0.4), "{}", bettor.name);
            for (log, (stake, _)) in bettor.logs.iter().zip(STAKES) {
                assert!(
                    (log - (1.0 + stake * gain).ln()).abs() < 1e-8,
                    "{}",
                    bettor.name
                );
            }
        }
        let named = |rule| -> Vec<&str> {
            let all = Bettor::list(Part::Acceptance, rule);
            all.iter().map(|one| one.name).collect()
        };
        assert_eq!(named(Rule::TOKEN).len(), 4);
        assert!(!named(Rule::ONE_HOT).contains(&"exact-match"));
    }

    /// One record: each part's e-value from its definition.
    #[test]
    fn e_values_of_one_record() {
        let draft = DraftRecord {
            p: 0.3,
            q: 0.25,
            accepted: false,
            u_q: 0.05,
        };
        let record = Record {
            draft: Some(draft),
            u_p: 0.97,
            u_c: Some(0.01),
            ..Record::default()
        };
        let settings = Settings {
            tolerance: 0.0,
            alpha: 0.25,
            ..Settings::new(Rule::TOKEN)
        };
        let audit = |records: Vec<Record>, rule: Rule| {
            let records = Records {
                name: "r.csv".to_owned(),
                records,
            };
            let settings = Settings {
                rule,
                ..settings.clone()
            };
            audit_records(&records, &settings, "").unwrap()
        };
        // Heads, tails, and the score, with their weights; `density` is what the record has in
        // the interval over its width.
        let expected = |head: &dyn Fn(f64) -> f64, tail: &dyn Fn(f64) -> f64, rank: f64| {
            let mixed = |density: f64| {
                let gain = 0.98 * (density - 1.0);
                0.8 * (1.0 + gain) + 0.1 * (1.0 + 0.25 * gain) + 0.1 * (1.0 + 0.0625 * gain)
            };
            let heads = [
                (0.02, 1.0),
                (0.1, 2.0),
                (0.3, 1.0),
                (0.6, 1.0),
                (0.8, 1.0),
                (0.9, 1.0),
                (0.95, 1.0),
            ];
            let heads: f64 = heads
                .iter()
                .map(|&(w, weight)| weight * mixed(head(w)))
                .sum();
            let tails: f64 = [0.05, 0.2, 0.5].iter().map(|&w| 0.7 * mixed(tail(w))).sum();
            let score = SCORE_STAKES.map(|stake| 1.0 + stake * (rank - 0.5));
            let score = 2.0 * score.iter().sum::<f64>() / 14.0;
            (heads + tails + score) / 12.1
        };
        let report = audit(vec![record], Rule::TOKEN);
        // The draft has u_q from 0.05 to 0.3, its correction 0.01, and the output 0.97.
        let drafted = expected(
            &|w| (w.min(0.3) - 0.05f64).max(0.0) / 0.25 / w,
            &|w| (0.3 - (1.0 - w).max(0.05)).max(0.0) / 0.25 / w,
            0.175,
        );
        let corrected = expected(&|w| if 0.01 < w { 1.0 / w } else { 0.0 }, &|_| 0.0, 0.01);
        let out = expected(
            &|_| 0.0,
            &|w| if 0.97 >= 1.0 - w { 1.0 / w } else { 0.0 },
            0.97,
        );
        for (part, e) in [(0, drafted), (2, corrected), (3, out)] {
            let found = report.parts[part].e_value;
            assert!((found / e - 1.0).abs() < 1e-7, "{part}: {found} {e}");
            let log10 = report.parts[part].log10_e_value;
            assert!((log10 - e.log10()).abs() < 1e-7, "{part}: {log10}");
        }
        // p/q is above 1: the rule never rejects such a draft, and exact match does.
        assert!(report.parts[1].e_value > 1.0);
        assert_eq!(
            report.parts.iter().map(|one| one.steps).collect::<Vec<_>>(),
            [1; 4]
        );
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
            Record {
                u_c: None,
                ..record
            },
            Record {
                draft: Some(kept),
                ..record
            },
            Record {
                draft: None,
                ..record
            },
        ];
        let report = audit(records.clone(), Rule::TOKEN);
        assert_eq!(
            report.parts.iter().map(|one| one.steps).collect::<Vec<_>>(),
            [2, 2, 1, 3]
        );
        // A lossy rule's outputs are not tested, and exact match claims nothing of drafts.
        let lossy = audit(records.clone(), Rule::threshold(0.5).unwrap());
        let steps: Vec<u64> = lossy.parts.iter().map(|one| one.steps).collect();
        assert_eq!((steps, lossy.false_alarm), (vec![2, 2, 1, 0], 0.75));
        assert!(lossy.parts[3].reason.as_deref().unwrap().contains("lossy"));
        let exact = audit(records, Rule::EXACT_MATCH);
        let steps: Vec<u64> = exact.parts.iter().map(|one| one.steps).collect();
        assert_eq!(steps, [0, 2, 1, 3]);
        assert!(
            exact.parts[0]
                .reason
                .as_deref()
                .unwrap()
                .contains("claims nothing")
        );
        assert!(
            exact.parts[1]
                .reason
                .as_deref()
                .unwrap()
                .contains("2 steps are too few")
        );
    }

    /// The chance of being kept by each rule, seen by the score of acceptance.
    #[test]
    fn rules_keep_drafts_as_often_as_they_say() {
        let e_value = |rule: Rule, p: f64, q: f64| {
            let draft = DraftRecord {
                p,
                q,
                accepted: true,
                u_q: 0.0,
            };
            let records = Records {
                name: "r.csv".to_owned(),
                records: vec![Record {
                    draft: Some(draft),
                    u_p: 0.5,
                    ..Record::default()
                }],
            };
            let settings = Settings {
                tolerance: 0.0,
                ..Settings::new(rule)
            };
            let report = audit_records(&records, &settings, "").unwrap();
            report.parts[1].e_value
        };
        let bets = |rule: Rule, keep: f64, p: f64| {
            let mut sum = 0.0;
            for mut bettor in Bettor::list(Part::Acceptance, rule) {
                bettor.kept(keep, p, true, 0.0);
                sum += bettor.weight * bettor.log().exp();
            }
            sum
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
            assert!(
                (found / expected - 1.0).abs() < 1e-12,
                "{rule} {p} {q}: {found} {expected}"
            );
        }
    }

    #[test]
    fn records_are_read_as_they_stand() {
        let read = |text: &str| Records::parse(Path::new("some/r.csv"), text);
        let text = "\u{feff}depth, u_p,p,q,accepted,u_q,u_c,prompt\n\
                    1,0.5,0.25,0.5,1,0.125,,-3\n\n,1,,,,,0.75,\n2,0,0,1,0,0.000001,0,4\n";
        let records = read(text).unwrap();
        assert_eq!(records.name, "r.csv");
        let draft = DraftRecord {
            p: 0.25,
            q: 0.5,
            accepted: true,
            u_q: 0.125,
        };
        let first = Record {
            prompt: Some(-3),
            depth: Some(1),
            seed: None,
            draft: Some(draft),
            u_p: 0.5,
            u_c: None,
        };
        let second = Record {
            u_p: 1.0,
            u_c: Some(0.75),
            ..Record::default()
        };
        let third = Record {
            prompt: Some(4),
            depth: Some(2),
            seed: None,
            draft: Some(DraftRecord {
                p: 0.0,
                q: 1.0,
                accepted: false,
                // As much above 1 as is taken for rounding, and no more.
                u_q: 1e-6,
            }),
            u_p: 0.0,
            u_c: Some(0.0),
        };
        assert_eq!(records.records, [first, second, third]);
        let head = "p,q,accepted,u_q,u_p";
        for (text, words) in [
            (
                "p,q,accepted,u_q,u_p,p\n".to_owned(),
                "line 1: column p stands there twice",
            ),
            (
                "p,q,accepted,u_q\n".to_owned(),
                "line 1: column u_p is missing",
            ),
            (format!("{head}\n\n"), "line 1: has no records"),
            (
                format!("{head}\n\n0.5,0.5,yes,0,0\n"),
                "line 3: accepted is \"yes\"",
            ),
            (format!("{head}\n,0.5,,,0\n"), "all there, or all empty"),
            (
                format!("{head},depth\n,,,,0,1.5\n"),
                "depth: \"1.5\" is no integer",
            ),
            (
                format!("{head},prompt\n,,,,0,a\n"),
                "prompt: \"a\" is no integer",
            ),
            (format!("{head}\n,,,,-0.1\n"), "u_p is -0.1"),
            (format!("{head}\n0.1,0.5,0,0.5001,0\n"), "u_q + q is 1.0001"),
        ] {
            let message = read(&text).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }

    /// Capital of 1 before the first bet, in every bettor and in all: else it proves nothing.
    #[test]
    fn capital_begins_at_one() {
        for part in Part::ALL {
            for rule in [Rule::TOKEN, Rule::ONE_HOT] {
                let bettors = Bettor::list(part, rule);
                let whole: f64 = bettors.iter().map(|one| one.weight).sum();
                assert!((whole - 1.0).abs() < 1e-14, "{part:?} {whole}");
                for one in &bettors {
                    assert!(one.weight > 0.0 && one.weight < 1.0);
                    assert!(one.log().abs() < 1e-14, "{} {}", one.name, one.log());
                }
            }
        }
    }

    /// Under the claimed chance of being kept, and under any within the tolerance, no bettor
    /// gains on average; under the bug that it bets on, it does.
    #[test]
    fn bets_on_kept_drafts_are_fair() {
        for (keep, p) in [(0.4, 0.3), (0.9, 0.45), (0.05, 0.01)] {
            for tolerance in [0.0, 1e-3] {
                let fresh = || Bettor::list(Part::Acceptance, Rule::TOKEN);
                let capital = |place: usize, accepted: bool| {
                    let mut one = fresh().swap_remove(place);
                    one.kept(keep, p, accepted, tolerance);
                    one.log().exp()
                };
                for (place, one) in fresh().iter().enumerate() {
                    let [kept, refused] = [true, false].map(|was| capital(place, was));
                    for chance in [keep - tolerance, keep, keep + tolerance] {
                        let mean = chance * kept + (1.0 - chance) * refused;
                        if chance <= 1.0 {
                            assert!(mean < 1.0 + 1e-8, "{} {keep} {tolerance}: {mean}", one.name);
                        }
                        if chance == keep && tolerance == 0.0 {
                            assert!(mean > 1.0 - 1e-6, "{} {keep}: {mean}", one.name);
                        }
                    }
                    if one.name == "accepts-everything" && keep < 0.5 {
                        assert!(kept > 1.0 && refused < 1.0, "{kept} {refused}");
                    }
                    if one.name == "exact-match" && tolerance == 0.0 && keep < 1.0 {
                        assert!(kept < 1.0 && refused > 1.0, "{kept} {refused}");
                    }
                }
            }
        }
    }

    /// What cannot happen is counted, with the first line where it did.
    #[test]
    fn records_of_what_cannot_happen_fail_hard() {
        let draft = DraftRecord {
            p: 0.25,
            q: 0.5,
            accepted: true,
            u_q: 0.0,
        };
        let record = |depth: i64, draft: Option<DraftRecord>| Record {
            prompt: Some(1),
            depth: Some(depth),
            seed: None,
            draft,
            u_p: 0.5,
            u_c: None,
        };
        let rejected = DraftRecord {
            accepted: false,
            ..draft
        };
        let found = |records: Vec<Record>, rule: Rule| {
            let records = Records {
                name: "r.csv".to_owned(),
                records,
            };
            let report = audit_records(&records, &Settings::new(rule), "").unwrap();
            let checks = report.hard_checks.iter();
            let counts: Vec<_> = checks.map(|c| (c.violations, c.first_position)).collect();
            (counts, report.rounds, report.ok)
        };
        const NONE: (u64, Option<usize>) = (0, None);
        // Kept, kept, rejected; a new round, and one without a draft.
        let fine = vec![
            record(0, Some(draft)),
            record(1, Some(draft)),
            record(2, Some(rejected)),
            record(0, Some(rejected)),
            record(0, None),
        ];
        assert_eq!(found(fine, Rule::TOKEN).0, [NONE; 3]);
        let impossible = DraftRecord { p: 0.0, ..draft };
        let refused = DraftRecord {
            accepted: false,
            ..impossible
        };
        let records = vec![
            record(0, Some(refused)),
            record(0, Some(impossible)),
            record(0, Some(impossible)),
        ];
        let (counts, rounds, ok) = found(records, Rule::TOKEN);
        assert_eq!(counts, [(2, Some(1)), NONE, NONE]);
        // Such a draft is refused by every rule: that it was says nothing.
        let one = Records {
            name: "r.csv".to_owned(),
            records: vec![record(0, Some(refused))],
        };
        for rule in [Rule::TOKEN, Rule::ONE_HOT, Rule::threshold(0.5).unwrap()] {
            let report = audit_records(&one, &Settings::new(rule), "").unwrap();
            let part = &report.parts[Part::Acceptance.index()];
            assert!(part.log10_e_value.abs() < 1e-3, "{rule}: {part:?}");
        }
        assert_eq!((rounds, ok), (3, false));
        let undrafted = DraftRecord { q: 0.0, ..rejected };
        let records = vec![record(0, Some(rejected)), record(0, Some(undrafted))];
        let (counts, _, ok) = found(records.clone(), Rule::TOKEN);
        assert_eq!((counts, ok), (vec![NONE, (1, Some(1)), NONE], false));
        // Exact match says nothing of drafts.
        assert_eq!(found(records, Rule::EXACT_MATCH).0, [NONE; 3]);
        // Behind a rejection, and behind a token without a draft; not in another text.
        for last in [Some(rejected), None] {
            let records = vec![record(0, last), record(1, Some(rejected))];
            let (counts, rounds, ok) = found(records, Rule::TOKEN);
            assert_eq!(counts, [NONE, NONE, (1, Some(1))]);
            assert_eq!((rounds, ok), (1, false));
            let other = Record {
                prompt: Some(2),
                ..record(1, Some(rejected))
            };
            let (counts, ..) = found(vec![record(0, last), other], Rule::TOKEN);
            assert_eq!(counts, [NONE; 3]);
        }
    }

    /// Records of speculative sampling, or of exact match, on three tokens.
    fn run(exact: bool, argmax: bool, count: usize) -> Records {
        let (p, q) = ([0.2, 0.5, 0.3], [0.6, 0.3, 0.1]);
        // Mass before a token in the order of p.
        let before = [0.8, 0.0, 0.5];
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let draw = |law: &[f64], u: f64| {
            let mut sum = 0.0;
            law.iter().position(|x| {
                sum += x;
                u < sum
            })
        };
        let records = (0..count)
            .map(|_| {
                let x = if argmax {
                    0
                } else {
                    draw(&q, random.random()).unwrap_or(2)
                };
                let keep: f64 = if exact { p[x] } else { (p[x] / q[x]).min(1.0) };
                let accepted = random.random::<f64>() < keep;
                let y = if accepted {
                    x
                } else if exact {
                    let mut off = p;
                    off[x] = 0.0;
                    let total: f64 = off.iter().sum();
                    draw(&off.map(|m| m / total), random.random()).unwrap_or(2)
                } else {
                    // (p - q)+ = (0, .2, .2).
                    1 + usize::from(random.random::<bool>())
                };
                Record {
                    draft: Some(DraftRecord {
                        p: p[x],
                        q: q[x],
                        accepted,
                        u_q: [0.0, 0.6, 0.9][x],
                    }),
                    u_p: before[y] + random.random::<f64>() * p[y],
                    ..Record::default()
                }
            })
            .collect();
        Records {
            name: "run.csv".to_owned(),
            records,
        }
    }

    #[test]
    fn records_tell_an_honest_engine_from_two_others() {
        let settings = Settings::new(Rule::TOKEN);
        let honest = audit_records(&run(false, false, 4000), &settings, "").unwrap();
        assert!(honest.ok, "{honest:#?}");
        assert_eq!(honest.conclusion, Conclusion::AsClaimed);
        assert!(honest.parts[2].reason.as_deref().unwrap().contains("u_c"));
        let exact = audit_records(&run(true, false, 4000), &settings, "").unwrap();
        assert_eq!(
            exact.conclusion,
            Conclusion::LosslessAnotherRule,
            "{exact:#?}"
        );
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
                let accepted = index % 2 == 0;
                let draft = DraftRecord {
                    p: 0.5,
                    q: 0.75,
                    accepted,
                    u_q,
                };
                Record {
                    draft: Some(draft),
                    u_p: (index as f64 + 0.5) / 400.0,
                    ..Record::default()
                }
            });
            let records = Records {
                name: "r.csv".to_owned(),
                records: records.collect(),
            };
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
        let report = audit_records(&run(false, false, 400), &Settings::new(Rule::TOKEN), "");
        let report = report.unwrap();
        for (ok, controls, expected) in [
            (true, vec![], true),
            (true, vec![control(Some(true)), control(None)], true),
            (true, vec![control(Some(true)), control(Some(false))], false),
            (false, vec![control(Some(true))], false),
            (false, vec![], false),
        ] {
            let report = AuditReport {
                ok,
                ..report.clone()
            };
            assert_eq!(
                report.with_control(controls.clone()).ok,
                expected,
                "{controls:?}"
            );
        }
    }

    #[test]
    fn bad_records_name_line_and_column() {
        let refused = |text: &str| {
            Records::parse(Path::new("r.csv"), text)
                .unwrap_err()
                .to_string()
        };
        let head = "p,q,accepted,u_q,u_p\n";
        for (line, words) in [
            ("0.5,0.5,2,0,0.1", "line 2: accepted is \"2\""),
            ("0.5,1.5,1,0,0.1", "q is 1.5"),
            ("0.5,0.5,1,0.9,0.1", "u_q + q"),
            ("0.5,,1,0,0.1", "all there, or all empty"),
            ("0.5,0.5,1,0", "has 4 fields"),
            ("0.5,0.5,1,0,", "u_p is empty"),
            ("x,0.5,1,0,0.1", "\"x\" is no number"),
            ("NaN,0.5,1,0,0.1", "p is NaN"),
        ] {
            let message = refused(&format!("{head}{line}\n"));
            assert!(message.contains(words), "{message}");
        }
        assert!(refused("p,q,zz\n").contains("\"zz\" is unknown"));
        assert!(refused("").contains("is empty"));
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
        assert_eq!(honest.conclusion, Conclusion::AsClaimed, "{honest:#?}");
        assert_eq!((honest.parts.len(), honest.hard_checks.len()), (1, 0));
        assert_eq!((honest.requests.fresh, honest.requests.averaged), (4, 0));
        let skewed = ask(&text(2, &[-1]), Rule::TEXT).unwrap();
        assert_eq!(skewed.conclusion, Conclusion::Lossy);
        let shared = ask(&text(2, &[3]), Rule::TEXT).unwrap();
        assert_eq!((shared.requests.fresh, shared.requests.averaged), (0, 4));
        let [product, mean] = [&skewed, &shared].map(|one| one.parts[0].log10_e_value);
        assert!(product > 2.0 * mean && mean > 1.0, "{product} {mean}");
        assert_eq!((skewed.requests.repeated, shared.requests.repeated), (0, 0));
        // The recorder's own numbers, again for each text.
        let mut again = text(1, &[-1]);
        for at in 100..400 {
            again.records[at].u_p = again.records[at % 100].u_p;
        }
        let again = ask(&again, Rule::TEXT).unwrap();
        assert_eq!(again.requests.repeated, 4);
        assert!(again.notes.iter().any(|note| note.contains("repeat")));
        let message = ask(&text(1, &[-1]), Rule::TOKEN).unwrap_err().to_string();
        assert!(message.contains("--rule text"), "{message}");
        let message = Records::parse("t.csv".as_ref(), "p,u_p\n0.5,0.5\n").unwrap_err();
        assert!(
            message.to_string().contains("column q is missing"),
            "{message}"
        );
    }
}
