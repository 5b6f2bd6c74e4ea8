//! The laws of rules whose rounds know what the text before them left.

use super::laws::Laws;
use super::rows::{most, wide};
use super::situation::Vector;
use specgap_core::rounds::{BlockCarry, Carry};
use specgap_core::rule::RuleName;
use specgap_number::distribution::{Draft, Rational, Target, exact_value};
use specgap_number::number::{Number, normalised};
use std::error::Error;

/// The laws of a rule that carries numbers.
pub(super) fn laws(rule: RuleName, vector: &Vector, exact: bool) -> Result<Laws, Box<dyn Error>> {
    let rational = |x: f64| exact_value(x).unwrap_or_default();
    let mut laws = match (rule == RuleName::CARRIED, exact) {
        (true, true) => by_token::<Rational>(vector, rational)?,
        (true, false) => by_token::<f64>(vector, |x| x)?,
        (false, true) => by_block::<Rational>(vector, rational)?,
        (false, false) => by_block::<f64>(vector, |x| x)?,
    };
    laws.exact = exact;
    Ok(laws)
}

type Rows<T> = Vec<(Vec<T>, Vec<T>)>;

fn rows<T: Number>(vector: &Vector) -> Result<Rows<T>, Box<dyn Error>> {
    let pairs = vector.target.iter().zip(&vector.draft);
    let rows = pairs.map(|(p, q)| {
        let (p, q) = (Target::new(&wide(p))?, Draft::new(&wide(q))?);
        Ok((T::row(&p), T::row(&q)))
    });
    rows.collect()
}

/// p and q of the token that was drafted at a place.
fn drafted<'a, T>(vector: &Vector, rows: &'a Rows<T>, at: usize) -> Option<[&'a T; 2]> {
    let (token, (p, q)) = (*vector.drafts.get(at)? as usize, rows.get(at)?);
    Some([p.get(token)?, q.get(token)?])
}

fn floats<'a, T: Number>(row: impl IntoIterator<Item = &'a T>) -> Vec<f64> {
    row.into_iter().map(T::to_f64).collect()
}

impl Laws {
    /// One more number of accepted drafts that can be, with what the next token is in proportion
    /// to, and what is carried on behind its likeliest.
    fn end<T: Number>(
        &mut self,
        accepted: &T,
        free: &[T],
        width: usize,
        pass: impl FnOnce(usize) -> Vec<f64>,
    ) {
        self.accepted.push(accepted.to_f64());
        let law = Some(free)
            .filter(|_| !accepted.is_nil())
            .and_then(normalised);
        let law = law.map_or_else(|| vec![0.0; free.len()], |law| floats(&law));
        let likeliest = most(law.len(), |token| law[token]);
        let token = Some(likeliest).filter(|&token| law.get(token).is_some_and(|x| *x > 0.0));
        let mut carry = token.map_or_else(Vec::new, pass);
        carry.resize(width, 0.0);
        self.next_token.push(token.map_or(-1, |token| token as i64));
        self.carry_next.push(carry);
        self.next.push(law);
    }
}

/// A draft is kept with min(1, p/(d q)), and every other token drawn from (p - d q)+.
fn by_token<T: Number>(vector: &Vector, number: impl Fn(f64) -> T) -> Result<Laws, Box<dyn Error>> {
    let (rows, most) = (rows::<T>(vector)?, vector.drafts.len());
    let mut carry = Carry::from_shares(most, vector.carry.iter().map(|&x| number(x)));
    let (mut laws, mut reached) = (Laws::default(), T::one());
    let ratio = |p: &T, q: &T| if p.is_nil() { T::zero() } else { q.over(p) };
    for (at, (p, q)) in rows.iter().enumerate() {
        let standing = carry.standing();
        let draft = drafted(vector, &rows, at);
        let keep = match draft {
            Some([p, q]) if !p.is_nil() => carry.keeps(&q.over(p)),
            _ => T::zero(),
        };
        let free = p
            .iter()
            .zip(q)
            .map(|(p, q)| p.excess_over(&standing.times(q)));
        let free: Vec<T> = free.collect();
        laws.end(&reached.times(&keep.complement()), &free, most, |token| {
            let mut next = carry.clone();
            next.pass(&ratio(&p[token], &q[token]));
            floats(next.shares())
        });
        if let Some([p, q]) = draft {
            laws.keeps.push(keep.to_f64());
            laws.spread.push(0.0);
            carry.pass(&ratio(p, q));
            reached = reached.times(&keep);
        }
    }
    Ok(laws)
}

/// The path is settled from its end.
fn by_block<T: Number>(vector: &Vector, number: impl Fn(f64) -> T) -> Result<Laws, Box<dyn Error>> {
    let (rows, most) = (rows::<T>(vector)?, vector.drafts.len());
    let mut ages = (vector.carry.chunks_exact(2)).map(|pair| [number(pair[0]), number(pair[1])]);
    let [_, start] = ages.next().ok_or("nothing is carried")?;
    let mut carry = BlockCarry::from_ages(most, start, ages);
    let mut nodes = Vec::with_capacity(rows.len());
    for (at, (p, q)) in rows.iter().enumerate() {
        let given = carry.give_out(Some((p, q)));
        let stops = given.stops(&carry, at);
        nodes.push((carry.clone(), given.clone(), stops));
        if let Some(draft) = drafted(vector, &rows, at) {
            carry.pass_given(&given, draft);
        }
    }
    let mut unsettled = T::one();
    let mut accepted = Vec::with_capacity(nodes.len());
    for (_, _, stops) in nodes.iter().rev() {
        accepted.push(unsettled.times(stops));
        unsettled = unsettled.times(&stops.complement());
    }
    let mut laws = Laws::default();
    let ends = accepted.iter().rev().zip(&rows).zip(nodes).enumerate();
    for (at, ((accepted, (p, q)), (carry, given, stops))) in ends {
        let free: Vec<T> = p.iter().zip(q).map(|(p, q)| given.free(p, q)).collect();
        let kept = carry.ages().nth(at).is_some_and(|[_, kept]| !kept.is_nil());
        laws.end(accepted, &free, 2 * (most + 1), |token| {
            let mut next = carry;
            next.pass_given(&given, [&p[token], &q[token]]);
            floats(next.ages().flatten())
        });
        if at > 0 {
            laws.keeps.push(stops.to_f64());
            // A difference of sums, where something was kept.
            laws.spread.push(if kept { 1e-5 } else { 0.0 });
        }
    }
    Ok(laws)
}
