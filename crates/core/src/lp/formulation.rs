//! The optimal transport problem as linear programs.
//!
//! With p over V tokens and D over the tuples of positive probability:
//!
//! | program | variables | objective |
//! | --- | --- | --- |
//! | [`full`] | `C[i, X]`, all i and X | max sum of C over i in A(X) |
//! | [`membership`] | `S[i, X]`, i in A(X) | max sum of S |
//! | [`dual`] | `y[i]`, `z[X]` | min p.y + D.z, y_i + z_X >= 1 for i in A(X) |
//!
//! Sources: SpecTr eq. 4 and Hu et al. eq. 7 (full), SpecHub sec. 3.2
//! (membership), Hu et al. eq. 10 to 13 (dual).

use super::{Direction, LinearProgram, Masses, Relation, Row};
use crate::scheme::{DraftScheme, Probability};

/// The tuples of positive probability and their probabilities, in `f64`.
#[derive(Clone, Debug)]
pub struct TupleLaw {
    /// Tuples as drawn; tokens may repeat.
    pub tuples: Vec<Vec<u32>>,
    /// Their probabilities.
    pub probabilities: Vec<f64>,
}

impl TupleLaw {
    /// All tuples of a scheme, those with the same tokens in the same order
    /// once; see [`DraftScheme::tuple_count`] for how many.
    pub fn of(scheme: &dyn DraftScheme) -> Self {
        let (tuples, probabilities) = f64::listed(scheme);
        Self {
            tuples,
            probabilities,
        }
    }

    /// The pairs (tuple index, token) with the token in the tuple, each once.
    fn memberships(&self) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for (index, tuple) in self.tuples.iter().enumerate() {
            for (position, &token) in tuple.iter().enumerate() {
                if !tuple[..position].contains(&token) {
                    pairs.push((index, token as usize));
                }
            }
        }
        pairs
    }
}

/// The full program: variable `i * tuples + X` is C[i, X].
///
/// The V + |supp D| equality rows have one redundancy, since both sides sum to
/// one; rounding would turn it into a contradiction, so the row of the heaviest
/// token is left out.
pub fn full(target: &[f64], law: &TupleLaw) -> LinearProgram {
    let tuples = law.tuples.len();
    let mut objective = vec![0.0; target.len() * tuples];
    for (index, token) in law.memberships() {
        objective[token * tuples + index] = 1.0;
    }
    let heaviest = (0..target.len()).max_by(|&a, &b| target[a].total_cmp(&target[b]));
    let vocab = target.len();
    let of_token = |token: usize| (0..tuples).map(move |index| token * tuples + index);
    let of_tuple = |index: usize| (0..vocab).map(move |token| token * tuples + index);
    let others = (0..vocab).filter(|&token| Some(token) != heaviest);
    let of_tokens = others.map(|token| equal(of_token(token), target[token]));
    let of_tuples = law.probabilities.iter().enumerate();
    let of_tuples = of_tuples.map(|(index, &mass)| equal(of_tuple(index), mass));
    most(objective, of_tokens.chain(of_tuples).collect())
}

/// The row of a sum of variables.
fn equal(variables: impl Iterator<Item = usize>, bound: f64) -> Row {
    Row {
        terms: variables.map(|variable| (variable, 1.0)).collect(),
        relation: Relation::Equal,
        bound,
    }
}

/// The largest of an objective over masses.
fn most(objective: Vec<f64>, rows: Vec<Row>) -> LinearProgram {
    LinearProgram {
        direction: Direction::Maximise,
        masses: Masses::Bounds,
        objective,
        rows,
    }
}

/// The membership program, and for each variable its (tuple, token).
///
/// Rows: V for the tokens, then one a tuple.
pub fn membership(target: &[f64], law: &TupleLaw) -> (LinearProgram, Vec<(usize, usize)>) {
    let pairs = law.memberships();
    let bounds = target.iter().chain(&law.probabilities);
    let rows = bounds.map(|&bound| Row {
        terms: Vec::new(),
        relation: Relation::AtMost,
        bound,
    });
    let mut rows: Vec<Row> = rows.collect();
    for (variable, &(index, token)) in pairs.iter().enumerate() {
        rows[token].terms.push((variable, 1.0));
        rows[target.len() + index].terms.push((variable, 1.0));
    }
    (most(vec![1.0; pairs.len()], rows), pairs)
}

/// The dual program: variables `y[0..V]`, then `z` one a tuple.
///
/// Its constraint matrix is the incidence matrix of a bipartite graph, hence
/// totally unimodular: an optimal 0/1 vertex exists, and y is then the
/// indicator of an optimal subset H. Bounds are 1, not probabilities.
pub fn dual(target: &[f64], law: &TupleLaw) -> LinearProgram {
    let objective = target.iter().chain(&law.probabilities).copied().collect();
    let rows = law.memberships().into_iter();
    let rows = rows.map(|(index, token)| Row {
        terms: vec![(token, 1.0), (target.len() + index, 1.0)],
        relation: Relation::AtLeast,
        bound: 1.0,
    });
    LinearProgram {
        direction: Direction::Minimise,
        masses: Masses::Objective,
        objective,
        rows: rows.collect(),
    }
}
