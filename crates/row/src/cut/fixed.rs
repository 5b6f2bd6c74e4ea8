//! Bounds for drafts that are the heaviest tokens of q, on rows that list some tokens only.
//!
//! A list of the most probable tokens of q holds these drafts. Where it is not known to, some
//! tokens that it does not list may take their places.

use super::{CutQuestion, CutRow, ROUNDING, RowError, TIE, Token, Unlisted};

/// The heaviest tokens of q, as far as they are known.
struct Top {
    /// All of them are listed.
    is_listed: bool,
    /// The least q of them.
    last: f64,
    /// Of tokens that are so much apart it is not known which has more.
    room: f64,
    /// Several tokens have that q, and some of them are outside.
    is_tied: bool,
}

/// Whether a token is among the heaviest.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Surely,
    Perhaps,
    Not,
}

impl Top {
    fn has(&self, q: f64) -> Within {
        if q <= 0.0 || q < self.last - self.room {
            Within::Not
        } else if self.is_tied && q <= self.last + self.room {
            Within::Perhaps
        } else {
            Within::Surely
        }
    }
}

fn least_q(token: &Token) -> Option<f64> {
    Some(token.draft?[0])
}

impl CutRow<'_> {
    /// The `count` heaviest tokens; `None` for no tokens.
    fn top(&self, count: usize) -> Option<Top> {
        let last = count.checked_sub(1)?;
        let Some(&token) = self.heaviest.get(last) else {
            return Some(Top {
                is_listed: self.unlisted[1].mass[1] <= 0.0,
                last: 0.0,
                room: 0.0,
                is_tied: false,
            });
        };
        let last = self.tokens[token].least()[1];
        let as_heavy = self.tokens.iter().filter_map(least_q);
        // A difference to 1 is rounded, and a tie with it may not show.
        let room = if self.whole.is_some() { TIE } else { 0.0 };
        Some(Top {
            is_listed: self.most_unlisted() < last,
            last,
            room,
            is_tied: as_heavy.filter(|&q| q >= last - room).count() > count,
        })
    }

    /// No token that the draft does not list has more q, at the most mass of the rest as
    /// what is listed: widened by the rounding of both, so that a listed token that has more
    /// is none that may tie with an unlisted one.
    pub(super) fn most_unlisted(&self) -> f64 {
        let Unlisted { mass, largest } = self.unlisted[1];
        let [_, most] = mass;
        if most <= 0.0 {
            return 0.0;
        }
        (largest * (1.0 - most) * (1.0 + ROUNDING)).min(most + TIE)
    }

    /// The least and the most of q over what is left of it outside of the `fixed` heaviest
    /// tokens, for a token with these bounds on q.
    fn over_others(&self, fixed: usize) -> impl Fn([f64; 2]) -> [f64; 2] + use<> {
        let [least, most] = self.unlisted[1].mass;
        let others = self.without(fixed);
        // `without` is at the most mass of the rest.
        let more = match 1.0 - most {
            0.0 => 0.0,
            listed => others * ((1.0 - least) / listed),
        };
        let share = |q: f64, all: f64| match all > 0.0 {
            true => (q / all).min(1.0),
            // Of next to nothing it may be all.
            false => f64::from(u8::from(q > 0.0)),
        };
        move |[low, high]| [share(low, others + most), share(high, more + least)]
    }

    /// Bounds alpha* where the n-1 heaviest tokens of q are drafts anyway: p(top) + sum over the
    /// others of min(p, q/(1-q(top))).
    pub fn optimum_with_fixed(&mut self, ask: CutQuestion) -> Result<[f64; 2], RowError> {
        Ok(self.with_fixed(ask, |p, share| p.min(share), |a, share| a.min(share)))
    }

    /// Bounds the hits of the heaviest tokens of q and one draw from the others: p(top) + sum over
    /// the others of p q/(1-q(top)).
    pub fn hits_with_fixed(&mut self, ask: CutQuestion) -> Result<[f64; 2], RowError> {
        Ok(self.with_fixed(ask, |p, share| p * share, |a, share| a * share))
    }

    /// p(top) + sum over the others of what `accepted` says of p and q/(1-q(top)), and of the
    /// rest at most what `of_rest` says of its masses.
    fn with_fixed(
        &self,
        ask: CutQuestion,
        accepted: fn(f64, f64) -> f64,
        of_rest: fn(f64, f64) -> f64,
    ) -> [f64; 2] {
        let fixed = ask.drafts.saturating_sub(1);
        let [target, draft] = self.unlisted;
        let shares = self.over_others(fixed);
        let top = self.top(fixed);
        if top.as_ref().is_some_and(|top| !top.is_listed) {
            return self.with_unknown(fixed, accepted);
        }
        let within = |q: f64| top.as_ref().map_or(Within::Not, |top| top.has(q));
        let (mut lower, mut upper) = (0.0, 0.0);
        for token in self.tokens {
            let (Some([p, p_most]), Some(q)) = (token.target, token.draft) else {
                continue;
            };
            let [share, share_most] = shares(q);
            let is_within = within(q[0]);
            lower += match is_within {
                Within::Surely => p,
                _ => accepted(p, share),
            };
            upper += match is_within {
                Within::Not => accepted(p_most, share_most),
                _ => p_most,
            };
        }
        let most_share = |q: f64| shares([q, q])[1];
        let rest = if self.is_alike {
            of_rest(target.mass[1], most_share(draft.mass[1]))
        } else {
            // Tokens of the top that the target does not list.
            let last = top.as_ref().map_or(f64::INFINITY, |top| top.last);
            self.more(|q| if q >= last { 1.0 } else { most_share(q) })
        };
        [lower, upper + rest]
    }

    /// The same where some unlisted tokens may be among the heaviest, whose q is then between
    /// that of the heaviest listed ones and that and all of the rest.
    fn with_unknown(&self, fixed: usize, accepted: fn(f64, f64) -> f64) -> [f64; 2] {
        let target = self.unlisted[0];
        let (shares, unlisted) = (self.over_others(fixed), self.most_unlisted());
        let last = self.top(fixed).map_or(f64::INFINITY, |top| top.last);
        // What is left if all of the rest is among the heaviest.
        let others = self.without(fixed);
        let (mut lower, mut upper) = (0.0, target.mass[1]);
        for (place, token) in self.tokens.iter().enumerate() {
            let [p, q] = token.least();
            let stays = q > unlisted && self.heaviest.iter().take(fixed).any(|&t| t == place);
            lower += if stays {
                p
            } else {
                accepted(p, shares([q, q])[0])
            };
            if let Some([_, p]) = token.target {
                let is_free = token.draft.is_none() || q >= last || others <= 0.0;
                upper += if is_free {
                    p
                } else {
                    accepted(p, (q / others).min(1.0))
                };
            }
        }
        [lower, upper]
    }

    /// p of the n tokens of largest q. Which of equal ones are drafted is left open.
    pub fn top_mass(&mut self, ask: CutQuestion) -> Result<[f64; 2], RowError> {
        let (target, unlisted) = (self.unlisted[0], self.most_unlisted());
        let Some(top) = self.top(ask.drafts) else {
            return Ok([0.0, 0.0]);
        };
        let (mut lower, mut upper, mut of_draft) = (0.0, 0.0, 0.0);
        for token in self.tokens {
            let Some([q, _]) = token.draft else {
                // It is drafted only if it is not listed and among the top.
                upper += token.target.map_or(0.0, |[_, p]| p) * f64::from(u8::from(!top.is_listed));
                continue;
            };
            let within = top.has(q);
            if within == Within::Not {
                continue;
            }
            match token.target {
                Some([p, most]) => {
                    let stays = match top.is_listed {
                        true => within == Within::Surely,
                        false => q > unlisted,
                    };
                    lower += if stays { p } else { 0.0 };
                    upper += most;
                }
                None => of_draft += target.most(),
            }
        }
        let rest = if top.is_listed {
            target.mass[1].min(of_draft)
        } else {
            target.mass[1]
        };
        Ok([lower, upper + rest])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CutQuestion, CutRow, CutWorkspace, Listed, Unlisted};

    /// p = 2/5, 1/5, 1/5 and q = 1/5, 2/5, 1/5, and a fifth of each that is not listed, of
    /// which no token of the draft has more than this over what is.
    fn with_row(largest: f64, check: impl FnOnce(&mut CutRow<'_>)) {
        let rest = |largest| Unlisted {
            mass: [0.2, 0.2],
            largest,
        };
        let listed = Listed {
            target: &[0.5, 0.25, 0.25],
            draft: &[0.25, 0.5, 0.25],
            unlisted: [rest(f64::INFINITY), rest(largest)],
            vocabulary: 50,
            missing: 3,
        };
        let mut workspace = CutWorkspace::default();
        check(&mut workspace.load(listed, 4).unwrap().unwrap());
    }

    fn ask(drafts: usize) -> CutQuestion {
        CutQuestion {
            drafts,
            overlap: [0.0, 1.0],
        }
    }

    fn are(found: [f64; 2], expected: [f64; 2]) {
        let close = |i: usize| (found[i] - expected[i]).abs() < 1e-14;
        assert!(close(0) && close(1), "{found:?} {expected:?}");
    }

    #[test]
    fn the_heaviest_tokens_are_listed() {
        with_row(0.1, |row| {
            are(row.top_mass(ask(0)).unwrap(), [0.0, 0.0]);
            are(row.top_mass(ask(1)).unwrap(), [0.2, 0.2]);
            // Tokens 0 and 2 tie for the second place: neither is sure.
            are(row.top_mass(ask(2)).unwrap(), [0.2, 0.8]);
            are(row.top_mass(ask(3)).unwrap(), [0.8, 0.8]);
            // Token 1, and min(p, q/(3/5)) of the others; of the rest, a fifth of p at most.
            are(
                row.optimum_with_fixed(ask(2)).unwrap(),
                [0.2 + 1.0 / 3.0 + 0.2, 0.2 + 1.0 / 3.0 + 0.2 + 0.2],
            );
            are(
                row.hits_with_fixed(ask(2)).unwrap(),
                [0.2 + 0.6 / 3.0, 0.2 + 0.8 / 3.0],
            );
            // One draw of q: the overlap.
            are(row.optimum_with_fixed(ask(1)).unwrap(), [0.6, 0.8]);
            are(row.hits_with_fixed(ask(1)).unwrap(), [0.2, 0.24]);
        });
    }

    /// Where a cut may keep nothing of the rest, what it keeps may still be all that is left.
    #[test]
    fn a_rest_that_may_be_nothing_may_be_all_of_the_others() {
        let listed = Listed {
            target: &[0.125, 0.5, 0.375],
            draft: &[1.0, f64::NAN, f64::NAN],
            unlisted: [
                Unlisted::NONE,
                Unlisted {
                    mass: [0.0, 0.2],
                    largest: 0.25,
                },
            ],
            vocabulary: 6,
            missing: 3,
        };
        let mut workspace = CutWorkspace::default();
        let row = &mut workspace.load(listed, 4).unwrap().unwrap();
        for found in [
            row.optimum_with_fixed(ask(2)).unwrap(),
            row.hits_with_fixed(ask(2)).unwrap(),
        ] {
            let [lower, upper] = found;
            // Token 1 alone of the rest, with next to no q: p of both; of the hits p q too.
            assert!(lower <= 0.125 && upper >= 0.625 - 1e-12, "{found:?}");
        }
    }

    /// q of 1/2 and three times 1/6, one of which is what the others lack: in f32 that is less.
    #[test]
    fn a_rest_that_was_rounded_may_tie() {
        let sixth = f64::from(1.0f32 / 6.0);
        let rest = 1.0 - (0.5 + sixth + sixth);
        assert!(rest < sixth);
        let listed = 1.0 - rest;
        let row = |p: [f64; 4]| {
            let listed = Listed {
                target: &p,
                draft: &[0.5 / listed, sixth / listed, sixth / listed, f64::NAN],
                unlisted: [
                    Unlisted::NONE,
                    Unlisted {
                        mass: [rest, rest],
                        largest: sixth / listed,
                    },
                ],
                vocabulary: 5,
                missing: 4,
            };
            let mut workspace = CutWorkspace::default();
            let row = &mut workspace.load(listed, 4).unwrap().unwrap();
            [3, 4].map(|drafts| row.top_mass(ask(drafts)).unwrap())
        };
        // Three drafts may leave out any of the sixths; four leave out none that is listed.
        are(row([0.0, 0.0, 1.0, 0.0])[0], [0.0, 1.0]);
        are(row([0.0, 0.0, 0.0, 1.0])[0], [0.0, 1.0]);
        are(row([1.0, 0.0, 0.0, 0.0])[0], [1.0, 1.0]);
        are(row([0.0, 0.0, 0.0, 1.0])[1], [0.0, 1.0]);
    }

    #[test]
    fn the_heaviest_tokens_may_be_others() {
        with_row(f64::INFINITY, |row| {
            // Token 1 is heavier than all of the rest, and the next ones are not.
            are(row.top_mass(ask(1)).unwrap(), [0.2, 0.2]);
            are(row.top_mass(ask(2)).unwrap(), [0.2, 1.0]);
            // Two of them and one draw: half of what is left for 0 and 2 at least.
            are(row.optimum_with_fixed(ask(3)).unwrap(), [0.8, 1.0]);
            are(row.hits_with_fixed(ask(3)).unwrap(), [0.5, 1.0]);
        });
    }
}
