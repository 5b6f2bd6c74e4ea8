//! A row as it is served: at a temperature, and cut to its most probable tokens.
//!
//! The logits are divided by the temperature. Of the softmax the `top_k` most probable tokens
//! are kept; of these the fewest that have `top_p` of their mass; of these the ones that have
//! at least `min_p` times the largest. What is kept is renormalised. At temperature 0 the
//! most probable token has all of the mass. Of equal tokens those with lower ids come first,
//! so that a top-k keeps k tokens.
//!
//! A list of the most probable tokens tells a cut row whole if the last token that is kept is
//! certain to be listed. Where a mass that is open decides which tokens are kept, those that
//! are open join the unlisted ones, and the row is known between bounds like any list
//! (`docs/theory/truncated-rows.md`). A list that is too short for a top-k, or for the most
//! probable token, is refused.

use super::cuts::Cuts;
use super::lists::{Lists, Model, probabilities};
use specgap_log::log::Row;
use specgap_number::distribution::{Softmax, compensated_sum};
use specgap_row::row::Unlisted;
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
        let softmax = Softmax {
            temperature: temperature / self.applied,
            ..Softmax::default()
        };
        probabilities(entries, kind, &softmax, &mut room.logits, out)
            .map_err(|error| format!("{}: {error}", model.name()))?;
        let unlisted = match self.lists {
            Some(lists) => lists.unlisted_of(self.row, model, temperature),
            None => Unlisted::NONE,
        };
        if serving.cuts.keep_all() {
            return Ok(unlisted);
        }
        let mut order = self.order(entries, &mut room.places);
        let whole = Whole {
            shares: out,
            unlisted,
            top: self.top(model, entries, order.len()),
            is_complete: self.is_complete(order.len()),
        };
        let kept = whole.kept(serving, &mut order)?;
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
                 capture with a larger --top"
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

    /// Whether a row with so many entries of its own says everything that can be drawn.
    fn is_complete(&self, own: usize) -> bool {
        self.lists.is_none_or(|lists| own >= lists.vocabulary())
    }

    /// How many of its tokens, by falling probability, are certain to be the most probable.
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

    /// Top-k, then top-p, then min-p.
    fn kept(&self, serving: Serving, order: &mut Order<'_>) -> Result<Kept, String> {
        let Cuts {
            top_k,
            top_p,
            min_p,
        } = serving.cuts.effective();
        let listed = order.len();
        let mut kept = Kept {
            certain: listed,
            out: listed,
            unlisted: !self.is_complete && self.unlisted.mass[1] > 0.0,
            mass: self.unlisted.mass,
            largest: self.unlisted.largest,
        };
        if let Some(k) = top_k {
            if k > self.top && !self.is_complete {
                let (model, option) = (serving.model.name(), serving.option("top-k"));
                return Err(match self.top {
                    0 => format!(
                        "does not say that it lists the most probable tokens of the {model}, which \
                         {option} {k} keeps; leave {option} out, or capture with --top {k} or more"
                    ),
                    top => format!(
                        "lists the {top} most probable tokens of the {model}, fewer than {option} \
                         {k}; give at most {top}, or capture with a larger --top"
                    ),
                });
            }
            kept = Kept::first(k.min(listed));
        }
        if let Some(p) = top_p {
            kept = match kept.unlisted {
                false => Kept::first(self.heaviest(order, kept.certain, p)),
                true => self.nucleus(order, p),
            };
        }
        if let Some(share) = min_p {
            kept = self.above(order, kept, share);
        }
        if kept.certain == 0 {
            return Err(format!(
                "lists no token of the {} that {} is certain to keep; capture with a larger --top",
                serving.model.name(),
                serving.option(if top_p.is_some() { "top-p" } else { "min-p" }),
            ));
        }
        Ok(kept)
    }

    /// How many tokens have a share of p of the first `among`; all of these if rounding lacks
    /// some.
    fn heaviest(&self, order: &mut Order<'_>, among: usize, p: f64) -> usize {
        let total: f64 = (0..among).map(|rank| self.share(order, rank)).sum();
        let mut sum = 0.0;
        for rank in 0..among {
            sum += self.share(order, rank);
            if sum >= p * total {
                return rank + 1;
            }
        }
        among
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

    /// Of what is kept, the tokens that have at least a share of the largest.
    fn above(&self, order: &mut Order<'_>, kept: Kept, share: f64) -> Kept {
        if self.top == 0 && !self.is_complete {
            // The largest of all may be unlisted.
            return Kept::first(0);
        }
        let least = share * self.share(order, 0);
        let mut above = 0;
        while above < kept.out && self.share(order, above) >= least {
            above += 1;
        }
        let (certain, out) = (kept.certain.min(above), kept.out.min(above));
        let unlisted = kept.unlisted && self.unlisted.largest >= least;
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
    /// So many tokens, and none that is open.
    fn first(count: usize) -> Self {
        Self {
            certain: count,
            out: count,
            unlisted: false,
            mass: [0.0, 0.0],
            largest: 0.0,
        }
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
        format!("--{}{name}", if self.own { "draft-" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
