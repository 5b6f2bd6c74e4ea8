//! The least P - Q over the prefixes of the chain, from Q at a few of them.
//!
//! P and Q are both convex along the chain. Between two prefixes where Q is known, Q lies below
//! its chord. P less a chord is known everywhere and cheap, and where it is least, Q is asked
//! for next: at ends of buckets first, then at tokens of buckets that stay in question.
//! `docs/theory/scan.md` proves what is left over when it stops.

use super::buckets::{Buckets, Link, Masses, Sorted};
use super::lanes::Running;
use super::minimum::{Best, Interior, ScannedRate, at, end_of, is_doubtful, sure_tokens};
use specgap_number::distribution::Rows;

/// The search stops where P - Q is known to this part of its error.
const PART_OF_ERROR: f64 = 1.0 / 8.0;

/// What a search needs to know of the draws.
pub(super) trait Prefixes {
    /// q of a link.
    fn mass(&self, link: usize) -> f64;

    /// Q of all links before `link` and the tokens of masses `more` of that link, `rest` being
    /// its others; NaN where it is not known. Without both, of the links before alone.
    fn inside(&mut self, link: usize, more: &[f64], rest: &[f64]) -> f64;

    /// The most that P - Q errs by, in all that was asked.
    fn error(&self) -> f64;
}

/// What a search works with. Nothing is allocated from the second position on.
#[derive(Clone, Debug, Default)]
pub(super) struct Chords {
    stops: Vec<Stop>,
    intervals: Vec<Interval>,
    /// Tokens of the links that were sorted, and their q.
    tokens: Vec<Sorted>,
    rates: Vec<f64>,
    /// Prefixes whose Q was asked for.
    pub(super) asked: usize,
}

/// A piece of the chain: a bucket, or tokens of one ratio.
#[derive(Clone, Copy, Debug, Default)]
struct Stop {
    /// P and q of the chain up to its end, normalised.
    held: f64,
    drafted: f64,
    /// P of the piece, normalised, and its q, which is not.
    target: f64,
    mass: f64,
    /// Bounds on dP/dx within, P normalised.
    least_slope: f64,
    most_slope: f64,
    /// Whether prefixes may end within.
    is_open: bool,
    link: u32,
    /// Where its tokens end, and those of the link start and end; all 0 for whole links.
    tokens: [u32; 3],
}

/// Stops between two prefixes where Q is known, or is taken for 1.
#[derive(Clone, Copy, Debug)]
struct Interval {
    start: usize,
    end: usize,
    /// P before the first stop.
    held: f64,
    q_start: f64,
    q_end: f64,
    /// Whether Q is known at the start, and at the end.
    is_known: [bool; 2],
    /// P - Q is no less at any prefix within.
    bound: f64,
    next: Next,
}

/// What to do with an interval.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Ask at the end of a stop.
    Ask(usize),
    /// Look into an open stop.
    Open(usize),
}

/// alpha* = 1 + min over prefixes of [P - Q].
pub(super) fn by_chords(
    buckets: &mut Buckets,
    rows: Rows<'_>,
    chords: &mut Chords,
    mut prefixes: impl Prefixes,
) -> ScannedRate {
    let totals = buckets.totals();
    let mut best = Best::EMPTY;
    chords.begin(buckets, &prefixes);
    loop {
        let enough = best.difference() - PART_OF_ERROR * prefixes.error();
        let least = (chords.intervals.iter().enumerate())
            .min_by(|(_, a), (_, b)| a.bound.total_cmp(&b.bound));
        let Some((place, &interval)) = least else {
            break;
        };
        if interval.bound >= enough {
            best.lower(interval.bound);
            break;
        }
        match interval.next {
            Next::Ask(index) => {
                let stop = chords.stops[index];
                let inside = chords.ask(&stop, &mut prefixes);
                let cut = chords.cut(&buckets.links()[stop.link as usize], &stop);
                let most = best.offer(stop.held, stop.drafted, inside, cut);
                let is_known = !inside.is_nan();
                let [before, after] = interval.parted(index, stop.held, most, is_known);
                chords.intervals.swap_remove(place);
                let enough = best.difference() - PART_OF_ERROR * prefixes.error();
                chords.look_at(before, enough);
                chords.look_at(after, enough);
            }
            Next::Open(index) => {
                let link = buckets.links()[chords.stops[index].link as usize];
                chords.tokens.extend_from_slice(buckets.sort(rows, &link));
                let more = chords.open(index, &link, rows, totals, &mut best);
                let mut interval = chords.intervals.swap_remove(place);
                interval.end += more;
                chords.look_at(interval, enough);
            }
        }
    }
    best.rate(prefixes.error())
}

impl Chords {
    /// Nothing is known but Q of nothing and of everything.
    fn begin(&mut self, buckets: &Buckets, prefixes: &impl Prefixes) {
        let (target_total, draft_total) = buckets.totals();
        self.tokens.clear();
        self.rates.clear();
        self.intervals.clear();
        self.stops.clear();
        self.asked = 0;
        for (index, link) in buckets.links().iter().enumerate() {
            let mut end = link.before;
            end.merge(&link.own);
            self.stops.push(Stop {
                held: end.target() / target_total,
                drafted: end.draft() / draft_total,
                target: link.own.target() / target_total,
                mass: prefixes.mass(index),
                least_slope: link.least_slope,
                most_slope: link.most_slope,
                is_open: link.tokens > 1,
                link: index as u32,
                tokens: [0; 3],
            });
        }
        let whole = Interval {
            start: 0,
            end: self.stops.len(),
            held: 0.0,
            q_start: 0.0,
            q_end: 1.0,
            is_known: [true; 2],
            bound: f64::INFINITY,
            next: Next::Ask(0),
        };
        self.look_at(whole, 0.0);
    }

    /// Q of the prefix that ends with a stop.
    fn ask(&mut self, stop: &Stop, prefixes: &mut impl Prefixes) -> f64 {
        self.asked += 1;
        let link = stop.link as usize;
        let [until, start, end] = stop.tokens.map(|place| place as usize);
        if until == end {
            prefixes.inside(link + 1, &[], &[])
        } else {
            prefixes.inside(link, &self.rates[start..until], &self.rates[until..end])
        }
    }

    /// The prefix that ends with a stop.
    fn cut(&self, link: &Link, stop: &Stop) -> specgap_number::distribution::RatioCut {
        let [until, _, end] = stop.tokens;
        if until == end {
            return end_of(link);
        }
        let (key, token) = self.tokens[until as usize - 1];
        at(key, token)
    }

    /// Puts tokens in the place of a stop, which were sorted and appended to `tokens`: one
    /// stop for each ratio. Returns how many stops there are more.
    fn open(
        &mut self,
        index: usize,
        link: &Link,
        rows: Rows<'_>,
        (target_total, draft_total): (f64, f64),
        best: &mut Best,
    ) -> usize {
        let start = self.rates.len();
        let tokens = &self.tokens[start..];
        let count = |tokens: &[Sorted]| {
            let parts = tokens.chunk_by(|a, b| a.0 == b.0);
            parts.count()
        };
        let (stops, end) = (count(tokens), start + tokens.len());
        let sure = sure_tokens(tokens);
        let more = stops - 1;
        let old = self.stops.len();
        self.stops.resize(old + more, Stop::default());
        self.stops.copy_within(index + 1..old, index + 1 + more);
        for interval in &mut self.intervals {
            if interval.start > index {
                interval.start += more;
                interval.end += more;
                match &mut interval.next {
                    Next::Ask(place) | Next::Open(place) => *place += more,
                }
            }
        }
        let number = self.stops[index].link;
        let (mut sums, mut until) = (link.before, start);
        let parts = tokens.chunk_by(|a, b| a.0 == b.0);
        for (stop, part) in self.stops[index..].iter_mut().zip(parts) {
            // From the first token of unsure order on, P - Q is no less than this.
            if until == start + sure && is_doubtful(f64::from_bits(!part[0].0)) {
                best.lower(sums.target() / target_total - 1.0);
            }
            let (mut own, mut mass) = (Masses::default(), Running::default());
            for &(_, token) in part {
                let (p, q) = (rows.target[token as usize], rows.draft[token as usize]);
                own.add(p, q);
                mass.add(q);
                self.rates.push(q);
            }
            sums.merge(&own);
            until += part.len();
            *stop = Stop {
                held: sums.target() / target_total,
                drafted: sums.draft() / draft_total,
                target: own.target() / target_total,
                mass: mass.value(),
                least_slope: 0.0,
                most_slope: 0.0,
                is_open: false,
                link: number,
                tokens: [until as u32, start as u32, end as u32],
            };
        }
        more
    }

    /// Bounds an interval from below, and keeps it if that is below `enough`, or to be
    /// reported.
    fn look_at(&mut self, mut interval: Interval, enough: f64) {
        let stops = &self.stops[interval.start..interval.end];
        let [start_known, end_known] = interval.is_known;
        if !start_known {
            // Q stays unknown until it is 1: `floor` has the one, and this finds the other.
            let middle = interval.start + (stops.len() - 1) / 2;
            let is_open = stops.len() == 1 && stops[0].is_open;
            if end_known && (stops.len() > 1 || is_open) {
                interval.bound = interval.held - 1.0;
                interval.next = if is_open {
                    Next::Open(middle)
                } else {
                    Next::Ask(middle)
                };
                self.intervals.push(interval);
            }
            return;
        }
        let mut whole = Running::default();
        for stop in stops {
            whole.add(stop.mass);
        }
        let whole = whole.value();
        if whole == 0.0 {
            // Q is one and the same, and P grows.
            return;
        }
        let rise = interval.q_end - interval.q_start;
        let (mut least_end, mut end_at) = (f64::INFINITY, 0);
        let (mut least_within, mut within_at) = (f64::INFINITY, 0);
        let (mut held, mut chord) = (interval.held, interval.q_start);
        let mut mass = Running::default();
        for (place, stop) in (interval.start..).zip(stops) {
            mass.add(stop.mass);
            let is_last = place + 1 == interval.end;
            let end = if is_last {
                interval.q_end
            } else {
                interval.q_start + rise * (mass.value() / whole)
            };
            if stop.is_open {
                let bucket = Interior {
                    least_slope: stop.least_slope,
                    most_slope: stop.most_slope,
                    mass: stop.mass,
                    slack: 0.0,
                    target: stop.target,
                    held,
                    q_start: chord,
                    q_end: end,
                };
                if let Some(turn) = bucket.turn() {
                    let bound = bucket.lower_bound(turn, f64::INFINITY);
                    if bound < least_within {
                        (least_within, within_at) = (bound, place);
                    }
                }
            }
            let difference = stop.held - end;
            if !is_last && difference < least_end {
                (least_end, end_at) = (difference, place);
            }
            (held, chord) = (stop.held, end);
        }
        interval.bound = least_end.min(least_within);
        interval.next = if least_end < enough || least_within == f64::INFINITY {
            Next::Ask(end_at)
        } else {
            Next::Open(within_at)
        };
        if interval.bound < f64::INFINITY {
            self.intervals.push(interval);
        }
    }
}

impl Interval {
    /// The two parts that the end of a stop divides it into.
    fn parted(&self, index: usize, held: f64, inside: f64, is_known: bool) -> [Self; 2] {
        let [start_known, end_known] = self.is_known;
        let before = Self {
            end: index + 1,
            q_end: inside,
            is_known: [start_known, is_known],
            ..*self
        };
        let after = Self {
            start: index + 1,
            held,
            q_start: inside,
            is_known: [is_known, end_known],
            ..*self
        };
        [before, after]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Rows, Workspace};
    use crate::test_rows::listed;

    #[test]
    fn few_prefixes_of_real_rows_are_asked_for() {
        let mut scan = Workspace::new();
        let (mut most, mut sum, mut scans) = (0, 0, 0);
        for temperature in [0.7, 1.0] {
            for rows in listed(9, temperature) {
                // The rest in 64 shares.
                let [p, q] = rows.map(|(mut row, rest)| {
                    row.iter_mut().for_each(|x| *x *= 1.0 - rest);
                    row.extend([rest / 64.0; 64]);
                    row
                });
                for n in [2, 3, 4, 6, 8, 16] {
                    let mut position = scan.load(Rows::new(&p, &q), n).unwrap();
                    let found = position.without_replacement(n).unwrap();
                    assert!(found.rate.width() < 4e-11, "{n} {:?}", found.rate);
                    let asked = scan.chords.asked;
                    (most, sum, scans) = (most.max(asked), sum + asked, scans + 1);
                }
            }
        }
        assert!(
            most <= 24 && sum <= 10 * scans,
            "{most} at most, {} on average",
            sum as f64 / scans as f64
        );
    }
}
