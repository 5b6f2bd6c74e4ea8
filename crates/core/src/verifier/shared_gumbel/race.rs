//! The law of the output given the drafts in their order.
//!
//! Let the output be w, and t = E_w/p_w, of density e^-t. Then E_x/q_x is t z_x, where z_x for
//! x other than w is p_x/q_x and a wait of rate t q_x behind it, and z_w = p_w/q_w. So along z
//! token x rings at rate t q_x from p_x/q_x on, and w when z gets there. Between two ratios rates
//! are constant, and the drafts that rang in the right order are a chain: from k of them on to the
//! next at rate t q of it, and out at the rate of all others that may ring. The draws end with the
//! last draft.
//!
//! Before w can ring, the chain is the same for every w. Where w is no draft, all drafts have to
//! be there by then; where it is the next one, the chain goes on behind it. The chance of that is a
//! sum of c e^{-a t}, and its integral over t, the sum of c/(1+a), is
//! P(output w, these drafts) over p_w.

use specgap_number::distribution::Rational;
use specgap_number::number::Number;
use std::collections::BTreeMap;

/// A sum of c e^{-a t}: c by a.
pub(in crate::verifier) type Terms = BTreeMap<Rational, Rational>;

/// Its integral over t, times e^{-nt}.
pub(in crate::verifier) fn integral(terms: &Terms, noises: usize) -> Rational {
    let noises = Rational::from_integer(noises.into());
    let mut sum = Rational::zero();
    for (rate, c) in terms {
        sum.gain(&c.over(&noises.plus(rate)));
    }
    sum
}

fn all_of(factors: impl Iterator<Item = Rational>) -> Rational {
    factors.fold(Rational::one(), |product, factor| product.times(&factor))
}

/// Where no rates change.
struct Span {
    /// `None` for the last, which has no end.
    length: Option<Rational>,
    /// Rate over t of the next draft, of 0, 1.. that have rung.
    moves: Vec<Rational>,
    /// The same of all that may ring; 0 once all drafts have.
    leaves: Vec<Rational>,
}

/// The chain of one tuple.
pub(in crate::verifier) struct Race {
    spans: Vec<Span>,
    /// The span that begins at p/q of a token; as many as there are for q = 0.
    starts: Vec<usize>,
    /// Which draft a token is.
    places: Vec<Option<usize>>,
    drafts: usize,
}

impl Race {
    /// Makes one; `None` if the tuple is never drawn.
    pub(in crate::verifier) fn new(p: &[Rational], q: &[Rational], tuple: &[u32]) -> Option<Self> {
        let drafts = tuple.len();
        let mut places = vec![None; q.len()];
        for (place, &token) in tuple.iter().enumerate() {
            let token = token as usize;
            if places.get(token)?.is_some() || q[token].is_nil() {
                return None;
            }
            places[token] = Some(place);
        }
        let support = (0..q.len()).filter(|&token| !q[token].is_nil());
        let mut order: Vec<_> = support
            .map(|token| (p[token].over(&q[token]), token))
            .collect();
        order.sort();
        let (mut spans, mut starts) = (Vec::new(), vec![usize::MAX; q.len()]);
        let mut others = Rational::zero();
        let mut moves = vec![Rational::zero(); drafts];
        let mut rest = order.as_slice();
        while let Some((ratio, _)) = rest.first() {
            let same = rest.partition_point(|one| one.0 <= *ratio);
            for &(_, token) in &rest[..same] {
                starts[token] = spans.len();
                match places[token] {
                    Some(place) => moves[place] = q[token].clone(),
                    None => others.gain(&q[token]),
                }
            }
            rest = &rest[same..];
            let mut left = others.clone();
            let mut leaves = vec![Rational::zero(); drafts + 1];
            for place in (0..drafts).rev() {
                left.gain(&moves[place]);
                leaves[place] = left.clone();
            }
            spans.push(Span {
                length: rest.first().map(|next| next.0.minus(ratio)),
                moves: moves.clone(),
                leaves,
            });
        }
        let ends = starts.into_iter().map(|start| start.min(spans.len()));
        Some(Self {
            starts: ends.collect(),
            spans,
            places,
            drafts,
        })
    }

    /// P(output w, these drafts) for every w.
    pub(super) fn masses(&self, p: &[Rational]) -> Vec<Rational> {
        let (given, _) = self.given();
        let each = p.iter().zip(&given);
        each.map(|(p, terms)| p.times(&integral(terms, 1)))
            .collect()
    }

    /// P(these drafts | output w, t) for every w, and where no output is known but that it is later
    /// than t.
    pub(in crate::verifier) fn given(&self) -> (Vec<Terms>, Terms) {
        let alone = |place: usize, terms: &Terms| {
            let mut states = vec![Terms::new(); self.drafts + 1];
            states[place].clone_from(terms);
            states
        };
        let one = Terms::from([(Rational::zero(), Rational::one())]);
        let mut at = vec![alone(0, &one)];
        for span in &self.spans {
            let next = at.last().map(|states| span.pass(states));
            at.extend(next);
        }
        let outputs = self.starts.iter().zip(&self.places);
        let terms = |(&start, place): (&usize, &Option<usize>)| {
            let mut states = at[start].clone();
            if let Some(place) = place {
                states = alone(place + 1, &states[*place]);
                for span in &self.spans[start..] {
                    states = span.pass(&states);
                }
            }
            states.swap_remove(self.drafts)
        };
        let given = outputs.map(terms).collect();
        (given, at[self.spans.len()][self.drafts].clone())
    }
}

impl Span {
    /// From k to j in a time T with different rates r out of each: the product of the moves times the
    /// sum over i from k to j of e^{-r_i T} / product of (r_l - r_i).
    fn pass(&self, states: &[Terms]) -> Vec<Terms> {
        let last = states.len() - 1;
        let mut after = vec![Terms::new(); states.len()];
        let mut add = |to: usize, rate: Rational, c: Rational| {
            let sum = after[to].entry(rate).or_insert_with(Rational::zero);
            sum.gain(&c);
        };
        let some = states.iter().enumerate();
        for (from, terms) in some.filter(|(_, terms)| !terms.is_empty()) {
            let mut moved = Rational::one();
            for to in from..=last {
                if to > from {
                    moved = moved.times(&self.moves[to - 1]);
                }
                if moved.is_nil() {
                    break;
                }
                let Some(length) = &self.length else {
                    if to == last {
                        let left = all_of(self.leaves[from..last].iter().cloned());
                        let share = moved.over(&left);
                        for (rate, c) in terms {
                            add(to, rate.clone(), c.times(&share));
                        }
                    }
                    continue;
                };
                for at in from..=to {
                    let own = &self.leaves[at];
                    let others = (from..=to).filter(|other| *other != at);
                    let gaps = all_of(others.map(|other| self.leaves[other].minus(own)));
                    let (share, aged) = (moved.over(&gaps), own.times(length));
                    for (rate, c) in terms {
                        add(to, rate.plus(&aged), c.times(&share));
                    }
                }
            }
        }
        after
    }
}
