//! The arrays of a file.

use super::carry;
use super::coins::{self, Order};
use super::laws::Laws;
use super::situation::Vector;
use specgap_core::rule::RuleName;
use specgap_log::log::{Dtype, RawTensor};

/// What each array is, with M vectors, K drafts, V tokens and U choices of uniform numbers.
pub(super) const WORDS: [(&str, &str); 14] = [
    (
        "target",
        "f32 [M, K+1, V]: p at each draft of a chain and behind it; of siblings [M, 1, V]",
    ),
    (
        "draft",
        "f32 [M, K, V]: q at each draft of a chain, and of `carried` and `carried-block` behind it, \
         [M, K+1, V]; of siblings [M, 1, V], the row that the first \
         one was drawn from; of one-hot, one-hot",
    ),
    ("drafts", "i64 [M, K]: the drafted tokens"),
    (
        "possible",
        "i64 [M]: 0 if these drafts cannot have been drawn; then no law is asked for, but only \
         tokens of positive p may come out",
    ),
    (
        "keeps",
        "f64 [M, K]: probability that draft k is kept, once it is its turn; of `carried-block`, whose \
         turns come from the end, that the chain is kept up to it",
    ),
    (
        "accepted_law",
        "f64 [M, K+1]: of a chain, probability that k drafts are accepted; of siblings, that draft \
         k is accepted, and at last that none is",
    ),
    (
        "next_law",
        "f64 [M, K+1, V]: of a chain, law of the next token where k drafts are accepted, 0 where \
         that cannot be; of siblings [M, 1, V], law of the output",
    ),
    (
        "coins",
        "f64 [M, U, K]: uniform numbers for kernels that keep draft k if the k-th is below (or at) \
         its probability",
    ),
    (
        "coins_accepted",
        "i64 [M, U]: how many drafts of a chain are accepted then, or which sibling is (K for none); \
         -1 where rounding may decide",
    ),
    (
        "final_coin",
        "f64 [M, U]: a uniform number for kernels that draw the next token of a chain by the \
         inverse of its distribution function, in order of id",
    ),
    (
        "final_token",
        "i64 [M, U]: the token that comes out then; -1 for any of positive probability",
    ),
    (
        "carry",
        "what the text before left; a round starts here. Of `carried` f64 [M, K]: the probability, \
         given the text, that a round has kept j drafts. Of `carried-block` f64 [M, K+1, 2]: of \
         each age what is drafted and kept. Values of f32",
    ),
    (
        "next_token",
        "i64 [M, K+1]: the likeliest next token behind k accepted drafts; -1 where there is none",
    ),
    (
        "carry_next",
        "f64 [M, K+1, ...]: what is carried behind that token; 0 where there is none",
    ),
];

/// A file being filled.
#[derive(Default)]
pub(super) struct Arrays {
    vocabulary: usize,
    drafts: usize,
    /// Rows of the target, rows of the draft, and laws of a vector.
    rows: [usize; 3],
    vectors: usize,
    target: Vec<f32>,
    draft: Vec<f32>,
    tokens: Vec<i64>,
    possible: Vec<i64>,
    keeps: Vec<f64>,
    accepted_law: Vec<f64>,
    next_law: Vec<f64>,
    coins: Vec<f64>,
    coins_accepted: Vec<i64>,
    final_coin: Vec<f64>,
    final_token: Vec<i64>,
    /// Shape of what is carried; empty if nothing is.
    carried: Vec<usize>,
    carry: Vec<f64>,
    next_token: Vec<i64>,
    carry_next: Vec<f64>,
    order: Order,
}

impl Arrays {
    pub(super) fn new(rule: RuleName, vocabulary: usize, drafts: usize) -> Self {
        let carried = match carry::width(rule, drafts) {
            0 => Vec::new(),
            width if width == drafts => vec![drafts],
            _ => vec![drafts + 1, 2],
        };
        Self {
            vocabulary,
            drafts,
            rows: if rule.is_chain() {
                let behind = usize::from(!carried.is_empty());
                [drafts + 1, drafts + behind, drafts + 1]
            } else {
                [1, 1, 1]
            },
            carried,
            order: Order::of(rule),
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, vector: &Vector, laws: &Laws) {
        self.vectors += 1;
        self.target.extend(vector.target.iter().flatten());
        self.draft.extend(vector.draft.iter().flatten());
        self.tokens
            .extend(vector.drafts.iter().map(|&token| i64::from(token)));
        self.possible.push(i64::from(vector.possible));
        self.keeps.extend(&laws.keeps);
        self.accepted_law.extend(&laws.accepted);
        self.next_law.extend(laws.next.iter().flatten());
        self.carry.extend(&vector.carry);
        self.next_token.extend(&laws.next_token);
        self.carry_next.extend(laws.carry_next.iter().flatten());
        for coins in coins::all(laws, self.order) {
            self.coins.extend(&coins.tests);
            self.coins_accepted.push(coins.accepted);
            self.final_coin.push(coins.last);
            self.final_token.push(coins.token);
        }
    }

    pub(super) fn finish(self) -> Vec<RawTensor> {
        let (m, k, v, u) = (
            self.vectors,
            self.drafts,
            self.vocabulary,
            coins::count(self.drafts),
        );
        let [p, q, laws] = self.rows;
        let mut tensors = vec![
            floats32("target", vec![m, p, v], &self.target),
            floats32("draft", vec![m, q, v], &self.draft),
            integers("drafts", vec![m, k], &self.tokens),
            integers("possible", vec![m], &self.possible),
            floats("keeps", vec![m, k], &self.keeps),
            floats("accepted_law", vec![m, k + 1], &self.accepted_law),
            floats("next_law", vec![m, laws, v], &self.next_law),
            floats("coins", vec![m, u, k], &self.coins),
            integers("coins_accepted", vec![m, u], &self.coins_accepted),
            floats("final_coin", vec![m, u], &self.final_coin),
            integers("final_token", vec![m, u], &self.final_token),
        ];
        if !self.carried.is_empty() {
            let shape = |first: &[usize]| [first, &self.carried].concat();
            tensors.push(floats("carry", shape(&[m]), &self.carry));
            tensors.push(integers("next_token", vec![m, k + 1], &self.next_token));
            tensors.push(floats("carry_next", shape(&[m, k + 1]), &self.carry_next));
        }
        tensors
    }
}

pub(super) fn floats32(name: &'static str, shape: Vec<usize>, values: &[f32]) -> RawTensor {
    RawTensor {
        name,
        dtype: Dtype::F32,
        shape,
        data: values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

pub(super) fn floats(name: &'static str, shape: Vec<usize>, values: &[f64]) -> RawTensor {
    RawTensor {
        name,
        dtype: Dtype::F64,
        shape,
        data: values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

pub(super) fn integers(name: &'static str, shape: Vec<usize>, values: &[i64]) -> RawTensor {
    RawTensor {
        shape,
        ..RawTensor::integers(name, values)
    }
}
