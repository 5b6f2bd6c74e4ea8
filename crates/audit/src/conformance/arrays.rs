//! The arrays of a file.

use super::carry;
use super::coins::{self, Order};
use super::laws::Laws;
use super::situation::Vector;
use specgap_base::pairs;
use specgap_core::rule::RuleName;
use specgap_log::log::{Dtype, RawTensor};

/// What each array is, with M vectors, K drafts, V tokens and U choices of uniform numbers or noises.
pub(super) const WORDS: [(&str, &str); 18] = pairs! {
    "target" "f32 [M, K+1, V]: p at each draft of a chain and behind it; of siblings [M, 1, V]";
    "draft"
        "f32 [M, K, V]: q at each draft of a chain, and of `carried` and `carried-block` behind it, \
        [M, K+1, V]; of siblings [M, 1, V], the row that the first \
        one was drawn from; of one-hot, one-hot";
    "drafts" "i64 [M, K]: the drafted tokens";
    "possible"
        "i64 [M]: 0 if these drafts cannot have been drawn; then no law is asked for, but only \
        tokens of positive p may come out";
    "keeps"
        "f64 [M, K]: probability that draft k is kept, once it is its turn; of `carried-block`, whose \
        turns come from the end, that the chain is kept up to it";
    "accepted_law"
        "f64 [M, K+1]: of a chain, probability that k drafts are accepted; of siblings, that draft \
        k is accepted, and at last that none is";
    "next_law"
        "f64 [M, K+1, V]: of a chain, law of the next token where k drafts are accepted, 0 where \
        draft k is never rejected; of siblings [M, 1, V], law of the output";
    "coins"
        "f64 [M, U, K]: uniform numbers for kernels that keep draft k if the k-th is below (or at) \
        its probability";
    "coins_accepted"
        "i64 [M, U]: how many drafts of a chain are accepted then, or which sibling is (K for none); \
        -1 where rounding may decide";
    "final_coin"
        "f64 [M, U]: a uniform number for kernels that draw the next token of a chain by the \
        inverse of its distribution function, in order of id";
    "final_token" "i64 [M, U]: the token that comes out then; -1 for any of positive probability";
    "carry"
        "what the text before left; a round starts here. Of `carried` f64 [M, K]: the probability, \
        given the text, that a round has kept j drafts. Of `carried-block` f64 [M, K+1, 2]: of \
        each age what is drafted and kept. Values of f32";
    "next_token"
        "i64 [M, K+1]: the likeliest next token behind k accepted drafts; -1 where there is none";
    "carry_next" "f64 [M, K+1, ...]: what is carried behind that token; 0 where there is none";
    "noise"
        "f32 [M, U, V]: of `shared-gumbel`, -ln of an even number for each token, which draft and target \
        share";
    "noise_drafts" "i64 [M, U, K]: the tokens of least noise/q, -1 behind the last with q > 0";
    "noise_token" "i64 [M, U]: the token of least noise/p";
    "noise_accepted" "i64 [M, U]: which draft that is; K for none";
};

/// A number of an array.
pub(super) trait Entry {
    const DTYPE: Dtype;

    fn bytes(self) -> impl Iterator<Item = u8>;
}

macro_rules! entries {
    ($($entry:ty: $dtype:ident),+) => {$(
        impl Entry for $entry {
            const DTYPE: Dtype = Dtype::$dtype;

            fn bytes(self) -> impl Iterator<Item = u8> {
                self.to_le_bytes().into_iter()
            }
        }
    )+};
}

entries!(&f32: F32, &f64: F64, i64: I64);

/// The arrays of a file, which are filled one vector after the other: the first axis of each.
#[derive(Default)]
pub(super) struct Arrays(Vec<RawTensor>);

impl Arrays {
    /// A vector with its laws.
    pub(super) fn push(&mut self, rule: RuleName, vector: &Vector, laws: &Laws) {
        let k = vector.drafts.len();
        let v = vector.target.first().map_or(0, Vec::len);
        let (p, q) = (&vector.target, &vector.draft);
        self.put("target", &[p.len(), v], p.iter().flatten());
        self.put("draft", &[q.len(), v], q.iter().flatten());
        let drafts = vector.drafts.iter().map(|&token| i64::from(token));
        self.put("drafts", &[k], drafts);
        self.put("possible", &[], [i64::from(vector.possible)]);
        self.put("keeps", &[k], &laws.keeps);
        self.put("accepted_law", &[k + 1], &laws.accepted);
        let next = &laws.next;
        self.put("next_law", &[next.len(), v], next.iter().flatten());
        let coins = coins::all(laws, Order::of(rule));
        let u = coins.len();
        self.put("coins", &[u, k], coins.iter().flat_map(|one| &one.tests));
        self.put("coins_accepted", &[u], coins.iter().map(|one| one.accepted));
        self.put("final_coin", &[u], coins.iter().map(|one| &one.last));
        self.put("final_token", &[u], coins.iter().map(|one| one.token));
        let carried = match carry::width(rule, k) {
            0 => return,
            width if width == k => vec![k],
            _ => vec![k + 1, 2],
        };
        self.put("carry", &carried, &vector.carry);
        self.put("next_token", &[k + 1], laws.next_token.iter().copied());
        let behind = [&[k + 1][..], &carried].concat();
        self.put("carry_next", &behind, laws.carry_next.iter().flatten());
    }

    /// One entry of the first axis more, of an array that has this shape behind it.
    pub(super) fn put<T: Entry>(
        &mut self,
        name: &'static str,
        shape: &[usize],
        values: impl IntoIterator<Item = T>,
    ) {
        if self.0.iter().all(|one| one.name != name) {
            self.0.push(RawTensor {
                name,
                dtype: T::DTYPE,
                shape: [&[0][..], shape].concat(),
                data: Vec::new(),
            });
        }
        if let Some(one) = self.0.iter_mut().find(|one| one.name == name) {
            one.data.extend(values.into_iter().flat_map(T::bytes));
            one.shape[0] += 1;
        }
    }

    pub(super) fn finish(self) -> Vec<RawTensor> {
        self.0
    }
}
