//! A row as it is served: at a temperature, and cut to its most probable tokens.
//!
//! The logits are divided by the temperature, and the softmax is cut, in a [`CutOrder`]; or it
//! is cut first. What is kept is renormalised. At temperature 0 the most probable token has all
//! of the mass. Of equal tokens those with lower ids come first, so that a top-k keeps k tokens.
//!
//! A list of the most probable tokens tells a cut row whole if the last token that is kept is
//! certain to be listed. Where a mass that is open decides which tokens are kept, those that
//! are open join the unlisted ones, and the row is known between bounds like any list
//! (`docs/theory/truncated-rows.md`). A list that is too short for a top-k, or for the most
//! probable token, is refused.

use super::cuts::{Cut, Cuts};
use super::lists::{Lists, Model, probabilities};
use specgap_log::log::Row;
use specgap_number::distribution::{Softmax, compensated_sum};
use specgap_row::Unlisted;
use std::cmp::Ordering;

/// What is asked of a row.
#[derive(Clone, Copy, Debug)]
pub struct Serving {
    /// Whose row is asked for.
    pub model: Model,
    /// The temperature; 0 takes the most probable token.
    pub temperature: f64,
    /// What is kept.
    pub cuts: Cuts,
    /// Whether the cuts are the draft's own: messages name their options.
    pub own: bool,
}

/// Room for one row at a time.
#[derive(Debug, Default)]
pub struct Room {
    logits: Vec<f64>,
    places: Vec<usize>,
    /// The row at temperature 1.
    uncut: Vec<f64>,
}

/// A logged row, with what its log says of all.
#[derive(Clone, Copy, Debug)]
pub struct Logged<'a> {
    /// What the log says of tokens that its rows do not list.
    pub lists: Option<&'a Lists>,
    /// Rows are raw logits over this.
    pub applied: f64,
    /// The row.
    pub row: &'a Row,
}

impl Logged<'_> {
    /// Fills `out` with shares of the listed tokens, NaN for those that the row does not tell;
    /// gives what is known of all tokens that it does not tell.
    ///
    /// O(V) without cuts and at temperature 0, O(V + K log K) where K tokens are kept.
    pub fn fill(
        &self,
        serving: Serving,
        room: &mut Room,
        out: &mut Vec<f64>,
    ) -> Result<Unlisted, String> {
        let Serving {
            model, temperature, ..
        } = serving;
        let (entries, kind) = match model {
            Model::Target => (&self.row.target, self.row.target_kind),
            Model::Draft => (&self.row.draft, self.row.draft_kind),
        };
        if temperature == 0.0 {
            return self.likeliest(serving, entries, room, out);
        }
        let mut at = |temperature: f64, out: &mut Vec<f64>| {
            let softmax = Softmax {
                temperature: temperature / self.applied,
            };
            probabilities(entries, kind, &softmax, &mut room.logits, out)
                .map_err(|error| format!("{}: {error}", model.name()))?;
            Ok::<_, String>(match self.lists {
                Some(lists) => lists.unlisted_of(self.row, model, temperature),
                None => Unlisted::NONE,
            })
        };
        let unlisted = at(temperature, out)?;
        if serving.cuts.keep_all() {
            return Ok(unlisted);
        }
        let serving = Serving {
            cuts: serving.cuts.at(temperature),
            ..serving
        };
        let last = serving.cuts.order().temperature_last();
        let (shares, unlisted_there) = match last {
            true => {
                let there = at(1.0, &mut room.uncut)?;
                (&room.uncut, there)
            }
            false => (&*out, unlisted),
        };
        let mut order = self.order(entries, &mut room.places);
        let whole = Whole {
            shares,
            unlisted: unlisted_there,
            top: self.top(model, entries, order.len()),
            is_complete: self.is_complete(order.len()),
        };
        let kept = whole.kept(serving, &mut order)?;
        if last && kept.is_open() {
            return Err(format!(
                "does not tell which tokens of the {} are kept at temperature 1, and what others \
                 have at {temperature:?} is not known; capture with a larger ⟨top⟩",
                model.name()
            ));
        }
        Ok(kept.apply(&mut order, unlisted, out))
    }

    /// All of the mass on the most probable token.
    fn likeliest(
        &self,
        serving: Serving,
        entries: &[f64],
        room: &mut Room,
        out: &mut Vec<f64>,
    ) -> Result<Unlisted, String> {
        let name = serving.model.name();
        let mut order = self.order(entries, &mut room.places);
        if !self.is_complete(order.len()) && self.top(serving.model, entries, order.len()) == 0 {
            return Err(format!(
                "does not list the most probable token of the {name}, which temperature 0 draws; \
                 capture with a larger ⟨top⟩"
            ));
        }
        let first = order.get(0).ok_or_else(|| format!("{name}: no token"))?;
        out.clear();
        out.resize(entries.len(), 0.0);
        if let Some(share) = out.get_mut(first) {
            *share = 1.0;
        }
        Ok(Unlisted::NONE)
    }

    fn order<'a>(&'a self, entries: &'a [f64], places: &'a mut Vec<usize>) -> Order<'a> {
        places.clear();
        places.extend((0..entries.len()).filter(|&i| !entries[i].is_nan()));
        Order {
            entries,
            ids: &self.row.token_ids,
            places,
            sorted: 0,
        }
    }

    /// Tells whether a row with so many entries of its own says everything that can be drawn.
    fn is_complete(&self, own: usize) -> bool {
        self.lists.is_none_or(|lists| own >= lists.vocabulary())
    }

    /// Counts its tokens, by falling probability, that are certain to be the most probable.
    fn top(&self, model: Model, entries: &[f64], own: usize) -> usize {
        let both = own == entries.len();
        self.lists.map_or(own, |lists| lists.top(model, own, both))
    }
}

/// The places of a row's own entries, sorted by falling entry as far as that was asked for.
struct Order<'a> {
    entries: &'a [f64],
    /// Empty where a place is a token's id.
    ids: &'a [u32],
    places: &'a mut Vec<usize>,
    sorted: usize,
}

impl Order<'_> {
    /// Places that are sorted first.
    const FIRST: usize = 256;

    fn len(&self) -> usize {
        self.places.len()
    }

    /// The place of the token of a rank, from 0.
    fn get(&mut self, rank: usize) -> Option<usize> {
        if rank >= self.sorted && rank < self.places.len() {
            self.sort(rank + 1);
        }
        self.places.get(rank).copied()
    }

    fn sort(&mut self, least: usize) {
        let (entries, ids) = (self.entries, self.ids);
        let by = |&a: &usize, &b: &usize| -> Ordering {
            let id = |place: usize| ids.get(place).map_or(place, |&id| id as usize);
            entries[b].total_cmp(&entries[a]).then(id(a).cmp(&id(b)))
        };
        let wanted = least.max(4 * self.sorted).max(Self::FIRST);
        let Some(tail) = self.places.get_mut(self.sorted..) else {
            return;
        };
        let more = wanted - self.sorted;
        if more < tail.len() {
            tail.select_nth_unstable_by(more - 1, by);
            tail[..more].sort_unstable_by(by);
            self.sorted = wanted;
        } else {
            tail.sort_unstable_by(by);
            self.sorted = self.places.len();
        }
    }
}

/// A row before it is cut.
struct Whole<'a> {
    /// Of the listed mass.
    shares: &'a [f64],
    unlisted: Unlisted,
    top: usize,
    is_complete: bool,
}

/// What a cut keeps.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// Tokens of lower rank are kept for certain.
    certain: usize,
    /// Those from here on are not.
    out: usize,
    /// Whether tokens that the row does not list may be kept.
    unlisted: bool,
    /// Bounds on what is kept besides the certain ones, as a share of all that is.
    mass: [f64; 2],
    /// None of them has more, as a share of the listed mass.
    largest: f64,
}

impl Whole<'_> {
    fn share(&self, order: &mut Order<'_>, rank: usize) -> f64 {
        let place = order.get(rank);
        place.and_then(|at| self.shares.get(at)).map_or(0.0, |x| *x)
    }

    /// One cut after the other.
    fn kept(&self, serving: Serving, order: &mut Order<'_>) -> Result<Kept, String> {
        let listed = order.len();
        let mut kept = Kept {
            certain: listed,
            out: listed,
            unlisted: !self.is_complete && self.unlisted.mass[1] > 0.0,
            mass: self.unlisted.mass,
            largest: self.unlisted.largest,
        };
        let mut is_whole = true;
        for cut in serving.cuts.in_order() {
            kept = match cut {
                Cut::TopK(k) if is_whole || kept.is_open() => {
                    self.check_top_k(serving, k)?;
                    self.limited(order, kept, k, false)
                }
                Cut::TopP(p) if kept.unlisted && is_whole => self.nucleus(order, p),
                Cut::TopP(_) if kept.is_open() => {
                    return Err(format!(
                        "does not list all tokens of the {} that ⟨{}⟩ keeps, of which ⟨{}⟩ takes its \
                         share; capture with a larger ⟨top⟩",
                        serving.model.name(),
                        serving.option("min-p"),
                        serving.option("top-p"),
                    ));
                }
                Cut::MinP(_) => self.above(order, kept, cut),
                _ => Kept::first(self.keep(cut, order, kept.certain)),
            };
            is_whole = false;
        }
        if kept.certain == 0 {
            return Err(format!(
                "lists no token of the {} that ⟨{}⟩ is certain to keep; capture with a larger ⟨top⟩",
                serving.model.name(),
                serving.option(match serving.cuts.effective().top_p {
                    Some(_) => "top-p",
                    None => "min-p",
                }),
            ));
        }
        Ok(kept)
    }

    /// Counts those that a cut keeps of the first `among` tokens, which are all that there are.
    fn keep(&self, cut: Cut, order: &mut Order<'_>, among: usize) -> usize {
        let kept = cut.keep(among, 0.0, |rank| self.share(order, rank));
        kept.unwrap_or(among)
    }

    /// Refuses a top-k of tokens that the row may not list.
    fn check_top_k(&self, serving: Serving, k: usize) -> Result<(), String> {
        if self.is_complete || k <= self.top {
            return Ok(());
        }
        let (model, option) = (serving.model.name(), serving.option("top-k"));
        Err(match self.top {
            0 => format!(
                "does not say that it lists the most probable tokens of the {model}, which \
                 ⟨{option} {k}⟩ keeps; leave ⟨{option}⟩ out, or capture with ⟨top {k}⟩ or more"
            ),
            top => format!(
                "lists the {top} most probable tokens of the {model}, fewer than ⟨{option} {k}⟩; \
                 give at most {top}, or capture with a larger ⟨top⟩"
            ),
        })
    }

    /// The fewest most probable tokens with a mass of p, of all: those that the row does not
    /// list are less probable than its `top`, and have the mass that it lacks.
    ///
    /// With A the share of the tokens before one and x the listed mass, a token is kept if
    /// A x < p, but that unlisted ones may come before it from the rank `top` on. It is not
    /// if A x >= p. All that is kept, M, is at least p, and less than p and its least token.
    fn nucleus(&self, order: &mut Order<'_>, p: f64) -> Kept {
        let listed = order.len();
        let [rest_low, rest_high] = self.unlisted.mass;
        let (least, most) = (1.0 - rest_high, 1.0 - rest_low);
        let (mut certain, mut held, mut before) = (None, 0.0, 0.0);
        let mut rank = 0;
        let out = loop {
            let is_kept = match rank < self.top {
                true => before * most < p,
                false => before * least + rest_high < p,
            };
            if certain.is_none() && (!is_kept || rank == listed) {
                certain = Some(rank);
                held = before;
            }
            if before * least >= p {
                break Some(rank);
            }
            if rank == listed {
                break None;
            }
            before += self.share(order, rank);
            rank += 1;
        };
        let certain = certain.unwrap_or(rank);
        let unlisted = out.is_none_or(|out| out > self.top);
        let out = out.unwrap_or(listed);
        if certain == out && !unlisted {
            return Kept::first(certain);
        }
        let next = match certain < out {
            true => self.share(order, certain),
            false => 0.0,
        };
        let largest = match unlisted {
            true => next.max(self.unlisted.largest),
            false => next,
        };
        let all = (p + largest * least).min(1.0);
        Kept {
            certain,
            out,
            unlisted,
            mass: [1.0 - held * most / p, 1.0 - held * least / all].map(|x| x.clamp(0.0, 1.0)),
            largest,
        }
    }

    /// Limits what is kept to the tokens that have at least a share of the largest.
    fn above(&self, order: &mut Order<'_>, kept: Kept, cut: Cut) -> Kept {
        if self.top == 0 && !self.is_complete {
            // The largest of all may be unlisted.
            return Kept::first(0);
        }
        let above = self.keep(cut, order, kept.out);
        let least = match cut {
            Cut::MinP(share) => share * self.share(order, 0),
            _ => 0.0,
        };
        self.limited(order, kept, above, self.unlisted.largest >= least)
    }

    /// Limits what is kept to the first tokens, and those that are not listed if they may be kept.
    fn limited(&self, order: &mut Order<'_>, kept: Kept, first: usize, others: bool) -> Kept {
        let (certain, out) = (kept.certain.min(first), kept.out.min(first));
        let unlisted = kept.unlisted && others;
        if certain == out && !unlisted {
            return Kept::first(certain);
        }
        let mut sum = |count: usize| -> f64 { (0..count).map(|i| self.share(order, i)).sum() };
        let (before, now) = (sum(kept.certain), sum(certain));
        // What is open is at most what it was, beside less.
        let [_, most] = kept.mass;
        let open = most * before;
        let all = open + (1.0 - most) * now;
        Kept {
            certain,
            out,
            unlisted,
            mass: [0.0, if all > 0.0 { open / all } else { 1.0 }],
            largest: kept.largest,
        }
    }
}

impl Kept {
    /// Keeps so many tokens, and none that is open.
    fn first(count: usize) -> Self {
        Self {
            certain: count,
            out: count,
            unlisted: false,
            mass: [0.0, 0.0],
            largest: 0.0,
        }
    }

    /// Tells whether it is unknown of some token whether it is kept.
    fn is_open(self) -> bool {
        self.unlisted || self.certain < self.out
    }

    /// Leaves in a row what is kept, as shares of the certain tokens.
    fn apply(self, order: &mut Order<'_>, before: Unlisted, shares: &mut [f64]) -> Unlisted {
        let keeps_all = self.certain == order.len() && self.unlisted && self.mass == before.mass;
        if keeps_all {
            return before;
        }
        let kept: Vec<(usize, f64)> = (0..self.out)
            .filter_map(|rank| order.get(rank))
            .map(|place| (place, shares.get(place).copied().unwrap_or(0.0)))
            .collect();
        let mass = compensated_sum(kept.iter().take(self.certain).map(|&(_, share)| share));
        for share in shares.iter_mut() {
            *share = match share.is_nan() && self.unlisted {
                true => f64::NAN,
                false => 0.0,
            };
        }
        for (rank, (place, share)) in kept.into_iter().enumerate() {
            if let Some(out) = shares.get_mut(place) {
                *out = match rank < self.certain {
                    true => share / mass,
                    false => f64::NAN,
                };
            }
        }
        if self.certain == self.out && !self.unlisted {
            return Unlisted::NONE;
        }
        Unlisted {
            mass: self.mass,
            largest: self.largest / mass,
        }
    }
}

impl Serving {
    /// The option that asks for a cut.
    fn option(&self, name: &str) -> String {
        format!("{}{name}", if self.own { "draft-" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use specgap_log::log::RowKind;

    /// Of equal tokens the first ones are kept, by id and not by their place in a list. That they
    /// are kept by place where a place is an id, and what each cut keeps, is tested by the
    /// definition (`specgap_measure`'s tests of served rows).
    #[test]
    fn equal_tokens_are_kept_by_their_ids() {
        let mut row = Row::default();
        row.target = vec![1.0 / 7.0, 2.0 / 7.0, 2.0 / 7.0, 2.0 / 7.0];
        row.target_kind = RowKind::Probabilities;
        row.token_ids = vec![9, 7, 5, 3];
        let logged = Logged {
            lists: None,
            applied: 1.0,
            row: &row,
        };
        let fill = |temperature: f64, top_k: Option<usize>| {
            let cuts = Cuts {
                top_k,
                ..Cuts::default()
            };
            let serving = Serving {
                model: Model::Target,
                temperature,
                cuts,
                own: false,
            };
            let mut out = Vec::new();
            logged
                .fill(serving, &mut Room::default(), &mut out)
                .unwrap();
            out
        };
        assert_eq!(fill(0.0, None), [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(fill(1.0, Some(2)), [0.0, 0.0, 0.5, 0.5]);
    }

    /// Returns what a sampler of an order keeps, by its definition: a list of tokens that each letter
    /// makes shorter.
    fn by_definition(logits: &[f64], (cuts, order): (Cuts, &str), temperature: f64) -> Vec<f64> {
        let softmax = |tokens: &[usize], temperature: f64| -> Vec<f64> {
            let weights = tokens.iter().map(|&i| (logits[i] / temperature).exp());
            let weights: Vec<f64> = weights.collect();
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|x| x / sum).collect()
        };
        let at = if order.ends_with(",T") {
            1.0
        } else {
            temperature
        };
        let mut left: Vec<usize> = (0..logits.len()).collect();
        left.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).unwrap());
        for letter in order.trim_end_matches(",T").split(',') {
            let row = softmax(&left, at);
            let before = |i: usize| row[..i].iter().sum::<f64>();
            let keep = |i: &usize| match letter {
                "k" => cuts.top_k.is_none_or(|k| *i < k),
                "p" => cuts.top_p.is_none_or(|p| before(*i) < p - 1e-12),
                _ => cuts
                    .min_p
                    .is_none_or(|m| row[*i] >= m * row[0] * (1.0 - 1e-12)),
            };
            let kept: Vec<usize> = (0..left.len()).filter(keep).map(|i| left[i]).collect();
            left = kept;
        }
        let mut out = vec![0.0; logits.len()];
        for (&token, share) in left.iter().zip(softmax(&left, temperature)) {
            out[token] = share;
        }
        out
    }

    const ORDERS: [&str; 12] = [
        "k,p,m", "k,m,p", "p,k,m", "p,m,k", "m,k,p", "m,p,k", "k,p,m,T", "k,m,p,T", "p,k,m,T",
        "p,m,k,T", "m,k,p,T", "m,p,k,T",
    ];

    /// Full rows with ties and zeros are what the definition says; a list of the most probable of
    /// their tokens, with the mass of the others at both temperatures, tells nothing that is wrong.
    #[test]
    fn rows_are_cut_in_every_order() {
        let mut rng = SmallRng::seed_from_u64(11);
        let (mut differ, mut told, mut open, mut refused) = (0, 0, 0, 0);
        for round in 0..6000 {
            let size = rng.random_range(1..24usize);
            let mut logits: Vec<f64> = (0..size)
                .map(|_| match rng.random_range(0..8u8) {
                    0 => f64::NEG_INFINITY,
                    // Few values: many are equal.
                    1..=3 => f64::from(rng.random_range(-3..=2i8)),
                    _ => rng.random_range(-4.0..4.0),
                })
                .collect();
            logits[round % size] = 2.0;
            let [k, p, m] = [0; 3].map(|_| rng.random_bool(0.75));
            let temperature = [1.0, 0.6, 1.7][rng.random_range(0..3usize)];
            let order = ORDERS[rng.random_range(0..12usize)];
            let cuts = Cuts {
                top_k: k.then(|| rng.random_range(1..=size)),
                top_p: p.then(|| rng.random_range(0.1..0.999)),
                min_p: m.then(|| rng.random_range(0.01..0.5)),
                cut_order: Some(order.parse().unwrap()),
            };
            let truth = by_definition(&logits, (cuts, order), temperature);
            differ += usize::from(truth != by_definition(&logits, (cuts, "k,p,m"), temperature));
            let mut row = Row::default();
            row.target.clone_from(&logits);
            let serving = Serving {
                model: Model::Target,
                temperature,
                cuts,
                own: false,
            };
            let fill = |row: &Row, lists: Option<&Lists>| {
                let (applied, mut out) = (1.0, Vec::new());
                let logged = Logged {
                    lists,
                    applied,
                    row,
                };
                let unlisted = logged.fill(serving, &mut Room::default(), &mut out);
                unlisted.map(|unlisted| (unlisted, out))
            };
            let (unlisted, found) = fill(&row, None).unwrap();
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9 && (a > 0.0) == (b > 0.0);
            let same = found.iter().zip(&truth).all(|(&a, &b)| near(a, b));
            let said = format!("{logits:?} {cuts:?} {temperature}: {found:?} {truth:?}");
            assert!(same && unlisted == Unlisted::NONE, "{said}");
            // The same row, of which the most probable are listed.
            let listed = rng.random_range(1..=size);
            let mut ids: Vec<usize> = (0..size).collect();
            ids.sort_by(|&a, &b| logits[b].partial_cmp(&logits[a]).unwrap());
            let rest = |temperature: f64| {
                let weight = |&i: &usize| (logits[i] / temperature).exp();
                let rest: f64 = ids[listed..].iter().map(weight).sum();
                rest / ids.iter().map(weight).sum::<f64>()
            };
            row.target = ids[..listed].iter().map(|&i| logits[i]).collect();
            row.token_ids = ids[..listed].iter().map(|&i| i as u32).collect();
            row.target_rest = vec![rest(1.0), rest(0.6), rest(1.7)];
            let lists = Lists::made(vec![1.0, 0.6, 1.7], size, Some([listed, listed]));
            let Ok((unlisted, found)) = fill(&row, Some(&lists)) else {
                refused += 1;
                continue;
            };
            let certain = (0..listed).filter(|&at| !found[at].is_nan());
            let mass: f64 = certain.clone().map(|at| truth[ids[at]]).sum();
            for at in certain {
                assert!(
                    near(found[at], truth[ids[at]] / mass),
                    "{said} {listed} {found:?}"
                );
            }
            let [low, high] = unlisted.mass;
            let others = 1.0 - mass;
            assert!(
                low - 1e-9 <= others && others <= high + 1e-9,
                "{said} {unlisted:?}"
            );
            told += 1;
            open += usize::from(high > 0.0);
        }
        let seen = [differ, told, open, refused];
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
    }
}
