//! Verifiers of K i.i.d. paths that go level by level, along a text.
//!
//! At a prefix that m of the K paths share, one token is taken: accepted by a rule for m i.i.d.
//! drafts, or selected. What matters later is how many of the m have it. So with
//!
//! ```text
//! S(m, m') = P(y is taken, and m' of the m drafts are y) / p(y)
//! ```
//!
//! at each position of a text y that was drawn from p, the masses a_m of "the text's prefix is
//! taken, and m paths share it", over p of that prefix, follow from one position to the next:
//! a_m' of the longer prefix is the sum over m of a_m S(m, m'). Their sum is P(accepted) for
//! rules that accept, and s/p for the law s of a selected path.

use super::super::asked::{Answers, Slot, Slots};
use super::super::moments::{CountMoments, spread};
use specgap_core::scheme::SchemeName;
use specgap_core::verifier::{TokenRule, VerifierName};
use specgap_number::distribution::Rows;
use specgap_number::number::Number;
use specgap_plan::{RatioBins, Selection};
use specgap_row::Workspace;

/// Numbers of a table for up to so many drafts.
pub(super) fn entries(drafts: usize) -> usize {
    drafts * (drafts + 1) / 2
}

/// S(m, m') of a table that begins with S(1,1), S(2,1), S(2,2), S(3,1).
fn entry<T>(table: &[T], before: usize, after: usize) -> Option<&T> {
    table.get(entries(before - 1) + after - 1)
}

/// The tables that are asked of every position.
pub(super) struct Tables {
    drafts: usize,
    /// k-seq at rho*.
    pub(super) k_seq: (TokenRule, Slot),
    /// Recursive rejection.
    pub(super) rrs: (TokenRule, Slot),
    /// One draft is selected, nearly as evenly as possible.
    pub(super) selected: Slot,
}

impl Tables {
    /// For up to so many drafts.
    pub(super) fn new(drafts: usize, slots: &mut Slots) -> Result<Self, &'static str> {
        let mut table = || slots.numbers(entries(drafts));
        let rule = |name: VerifierName| name.token_rule(SchemeName::WITH_REPLACEMENT);
        Ok(Self {
            drafts,
            k_seq: (rule(VerifierName::K_SEQ)?, table()),
            rrs: (rule(VerifierName::RRS)?, table()),
            selected: table(),
        })
    }

    /// Puts all of a row and its text's token.
    ///
    /// # Complexity
    /// O(V) to load the row and for its bins; then k-seq's factor for every m, and some tens of
    /// rounds over bins and nodes for every selection.
    pub(super) fn put(
        &self,
        answers: &mut Answers,
        scan: &mut Workspace,
        rows: Rows<'_>,
        token: usize,
    ) -> Result<(), String> {
        let Rows { target, draft } = rows;
        let bins = RatioBins::new(target, draft);
        let mut row = scan
            .load(rows, self.drafts)
            .map_err(|error| error.to_string())?;
        let share = |row: &[f64], sum: f64| row.get(token).map_or(0.0, |mass| mass / sum);
        let (p_sum, q_sum) = row.totals();
        let (p, q) = (share(target, p_sum), share(draft, q_sum));
        let mut each = |rule: &TokenRule, drafts: usize| {
            rule.shares(&mut row, token, drafts, 0)
                .map_err(|error| error.to_string())
        };
        let mut table = Vec::with_capacity(entries(self.drafts));
        for drafts in 1..=self.drafts {
            table.extend(k_seq(&each(&self.k_seq.0, drafts)?, p, q));
        }
        answers.put(&self.k_seq.1, table)?;
        let shares = each(&self.rrs.0, self.drafts)?;
        let of = |drafts: usize| rrs(shares.get(..drafts).unwrap_or(&[]), q);
        answers.put(&self.rrs.1, (1..=self.drafts).flat_map(of))?;
        let of = |drafts: usize| {
            let shares = Selection::new(&bins, drafts).by_copies(&bins, token, q);
            let over = |share: f64| if p > 0.0 { share / p } else { 0.0 };
            shares.into_iter().map(over).collect::<Vec<_>>()
        };
        answers.put(&self.selected, (1..=self.drafts).flat_map(of))
    }
}

/// What `select-block` keeps of K paths along a text, position by position.
///
/// # Example
/// ```
/// use specgap_number::distribution::Rows;
/// use specgap_row::Workspace;
/// use specgap_replay::replay::SelectedAlong;
///
/// let (p, q) = ([0.5, 0.5], [0.75, 0.25]);
/// let mut along = SelectedAlong::new(2)?;
/// for token in [1, 0] {
///     let rows = Rows { target: &p, draft: &q };
///     along.take(&mut Workspace::new(), rows, token)?;
/// }
/// // Token 1 is selected with 7/16 and has p = 1/2: so often the first round writes both.
/// let calls = along.spread(1).calls;
/// assert!((calls.mean - (2.0 - 7.0 / 8.0)).abs() < 1e-9);
/// # Ok::<(), String>(())
/// ```
pub struct SelectedAlong {
    slots: Slots,
    tables: Tables,
    answers: Vec<Answers>,
}

impl SelectedAlong {
    /// Of so many paths.
    ///
    /// # Errors
    /// None for numbers of paths that a decoder drafts; in words.
    pub fn new(drafts: usize) -> Result<Self, String> {
        let mut slots = Slots::default();
        Ok(Self {
            tables: Tables::new(drafts, &mut slots).map_err(str::to_owned)?,
            slots,
            answers: Vec::new(),
        })
    }

    /// The text's next position: its rows and its token.
    ///
    /// # Errors
    /// Rows that are refused, in words.
    ///
    /// # Complexity
    /// As a position of [`measure_paths`](super::measure_paths).
    pub fn take(
        &mut self,
        scan: &mut Workspace,
        rows: Rows<'_>,
        token: usize,
    ) -> Result<(), String> {
        let put = |answers: &mut Answers| self.tables.put(answers, scan, rows, token);
        self.answers.push(self.slots.answered(put)?);
        Ok(())
    }

    /// Mean and variance of calls and drafts of a decoder that drafts paths of `length` tokens
    /// a round, given the text, as
    /// [`moments_of_chain`](super::super::moments_of_chain) has them for one path.
    pub fn spread(&self, length: usize) -> CountMoments<f64> {
        let Tables {
            drafts, selected, ..
        } = &self.tables;
        spread(self.answers.len(), |start, left| {
            let levels = length.min(left);
            let answers = self.answers.iter().skip(start).take(levels);
            let reached = reached(answers.map(|one| selected.of(one)), *drafts, true);
            let [block, _] = reached.selected;
            (block, levels * drafts)
        })
    }
}

/// Returns how likely so many of `draws` are a token of probability q.
fn binomial(draws: usize, count: usize, q: f64) -> f64 {
    let ways = (0..count).fold(1.0, |ways, i| ways * (draws - i) as f64 / (i + 1) as f64);
    ways * q.powi(count as i32) * (1.0 - q).max(0.0).powi((draws - count) as i32)
}

/// S(m, .) of a rule that accepts draft k as y with probability `shares[k]` p(y), all drafts
/// before it being rejected and independent: one of them is y with probability `again`.
fn in_turn(shares: &[f64], q: f64, again: f64) -> Vec<f64> {
    let drafts = shares.len();
    let mut table = vec![0.0; drafts];
    for (k, share) in shares.iter().enumerate() {
        for before in 0..=k {
            for after in 0..drafts - k {
                if let Some(entry) = table.get_mut(before + after) {
                    *entry +=
                        share * binomial(k, before, again) * binomial(drafts - 1 - k, after, q);
                }
            }
        }
    }
    table
}

/// Every draft is accepted as y with min(p/rho, q) and rejected with 1 - b; a rejected one is y
/// with probability (q - min(p/rho, q))/(1 - b).
fn k_seq(shares: &[f64], p: f64, q: f64) -> Vec<f64> {
    let rejected = match shares {
        [first, second, ..] if *first > 0.0 => second / first,
        _ => 0.0,
    };
    let again = if rejected > 0.0 {
        let accepted = shares.first().copied().unwrap_or(0.0) * p;
        ((q - accepted) / rejected).clamp(0.0, 1.0)
    } else {
        0.0
    };
    in_turn(shares, q, again)
}

/// A token that was rejected has nothing left in the residual: no draft before the accepted
/// one is y.
fn rrs(shares: &[f64], q: f64) -> Vec<f64> {
    in_turn(shares, q, 0.0)
}

/// The masses a_m along a text, from K paths at its start.
#[derive(Clone, Debug)]
pub(super) struct ByAgreement<T> {
    masses: Vec<T>,
}

impl<T: Number> ByAgreement<T> {
    pub(super) fn new(drafts: usize) -> Self {
        let mut masses = vec![T::zero(); drafts];
        if let Some(all) = masses.last_mut() {
            *all = T::one();
        }
        Self { masses }
    }

    /// Goes on by a token, with the table of its position; `kept` is what is left of S(m, .)
    /// of every m.
    pub(super) fn take(&mut self, table: &[T], kept: impl Fn(&T) -> T) {
        let mut next = vec![T::zero(); self.masses.len()];
        for (before, mass) in (1..).zip(&self.masses) {
            if mass.is_nil() {
                continue;
            }
            let shares = (1..=before).filter_map(|after| entry(table, before, after));
            let shares: Vec<&T> = shares.collect();
            let share = kept(&T::total(shares.iter().copied()));
            for (sum, one) in next.iter_mut().zip(shares) {
                sum.gain(&mass.times(one).times(&share));
            }
        }
        self.masses = next;
    }

    /// Their sum.
    pub(super) fn total(&self) -> T {
        T::total(&self.masses)
    }
}

/// P(tau >= i given a text), i = 1, 2, .., of verifiers that go level by level.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reached {
    /// The rule accepts what it takes; of a selection, min(1, p/s) of it.
    pub by_token: Vec<f64>,
    /// The selected path is verified by blocks, by greedy blocks.
    pub selected: [Vec<f64>; 2],
}

/// Of `drafts` paths, along the tables of some positions; `selects` where tokens are selected
/// and not accepted.
pub(super) fn reached<'a>(
    tables: impl Iterator<Item = &'a [f64]>,
    drafts: usize,
    selects: bool,
) -> Reached {
    let mut by_token = ByAgreement::<f64>::new(drafts);
    let mut path = ByAgreement::<f64>::new(drafts);
    let mut all = Reached::default();
    let mut least = 1.0f64;
    for table in tables {
        let keep = |share: &f64| match selects && *share > 1.0 {
            true => 1.0 / share,
            false => 1.0,
        };
        by_token.take(table, keep);
        all.by_token.push(by_token.total());
        if selects {
            path.take(table, |_| 1.0);
            let ratio = path.total();
            least = least.min(ratio);
            let [block, greedy] = &mut all.selected;
            block.push(least);
            greedy.push(ratio.min(1.0));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::along::calls;
    use super::super::measure::Asked;
    use super::*;
    use crate::random_problem::{each_draw, leaf, random_problem};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use specgap_core::problem::BlockProblem;
    use specgap_core::tree::TokenTree;
    use specgap_exact::block::{
        BlockRule, BlockVerifier, Change, SpecTr, output_law, several_rounds,
    };

    /// The mass of each text that has any, and the tables of its positions.
    fn texts(
        problem: &BlockProblem,
        tree: &TokenTree<f64>,
        asked: &Asked,
    ) -> Vec<(f64, Vec<Answers>)> {
        let masses = tree.target_layer(tree.length()).iter().enumerate();
        let texts = masses.filter(|(_, p)| **p > 0.0).map(|(block, &p)| {
            let text = tree.tokens(leaf(tree, block));
            let tables = (0..text.len()).map(|place| {
                let prefix = &text[..place];
                let rows = Rows {
                    target: problem.target().get(prefix).unwrap().probabilities(),
                    draft: problem.draft().get(prefix).unwrap().probabilities(),
                };
                let token = text[place] as usize;
                asked.ask(&mut Workspace::new(), rows, token).unwrap()
            });
            (p, tables.collect())
        });
        texts.collect()
    }

    struct Accepted {
        by_token: f64,
        selected: [f64; 2],
    }

    fn along(
        problem: &BlockProblem,
        tree: &TokenTree<f64>,
        slot: impl Fn(&Tables) -> &Slot,
        (drafts, selects): (usize, bool),
    ) -> Accepted {
        let asked = Asked::new(drafts).unwrap();
        let mut mean = Accepted {
            by_token: 0.0,
            selected: [0.0; 2],
        };
        for (p, all) in texts(problem, tree, &asked) {
            let rows = all.iter().map(|row| slot(&asked.tables).of(row));
            let here = reached(rows, drafts, selects);
            mean.by_token += p * here.by_token.iter().sum::<f64>();
            for (mean, here) in mean.selected.iter_mut().zip(&here.selected) {
                *mean += p * here.iter().sum::<f64>();
            }
        }
        mean
    }

    #[test]
    fn spectr_along_texts_is_what_enumeration_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        for (vocab, length, drafts) in [(2, 2, 2), (3, 2, 3), (2, 3, 3), (4, 2, 2)] {
            for _ in 0..6 {
                let problem = random_problem(&mut rng, vocab, length);
                let tree = TokenTree::<f64>::new(&problem);
                let slots: [fn(&Tables) -> &Slot; 2] = [|all| &all.k_seq.1, |all| &all.rrs.1];
                for (slot, name) in
                    (slots.into_iter()).zip([VerifierName::K_SEQ, VerifierName::RRS])
                {
                    let verifier = SpecTr::new(&problem, name, drafts);
                    let law = output_law(&tree, &verifier as &dyn BlockVerifier<f64>);
                    let mean = along(&problem, &tree, slot, (drafts, false)).by_token;
                    let accepted = law.expected_accepted_length;
                    assert!((mean - accepted).abs() < 1e-9, "{name}: {mean} {accepted}");
                }
            }
        }
    }

    /// Rounds of whole texts: replayed along each, and with every state between rounds
    /// enumerated.
    #[test]
    fn rounds_along_texts_are_those_of_enumerated_texts() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        for (vocab, total, length, drafts) in [(2, 3, 2, 2), (3, 3, 2, 2), (2, 4, 2, 3)] {
            for _ in 0..2 {
                let problem = random_problem(&mut rng, vocab, total);
                let tree = TokenTree::<f64>::new(&problem);
                let asked = Asked::new(drafts).unwrap();
                let mut means = [0.0; 2];
                for (p, all) in texts(&problem, &tree, &asked) {
                    let from = |start: usize, slot: &Slot, selects: bool| {
                        let rows = all[start..].iter().take(length);
                        reached(rows.map(|row| slot.of(row)), drafts, selects)
                    };
                    let k_seq: Vec<_> = (0..total)
                        .map(|start| from(start, &asked.tables.k_seq.1, false).by_token)
                        .collect();
                    let select: Vec<_> = (0..total)
                        .map(|start| from(start, &asked.tables.selected, true).selected[0].clone())
                        .collect();
                    means[0] += p * calls(total, |start| &k_seq[start]);
                    means[1] += p * calls(total, |start| &select[start]);
                }
                // Plans in fractions are even to the last digit, in bins to 1e-4 and to what
                // tokens share a bin.
                let names = [
                    (BlockRule::SPECTR_K_SEQ, 1e-9),
                    (BlockRule::SELECT_BLOCK, 0.02),
                ];
                for (mean, (name, within)) in means.iter().zip(names) {
                    let known = several_rounds(&problem, length, drafts, name, Change::Carried);
                    let known = known.unwrap().rounds.to_f64();
                    assert!((mean - known).abs() < within, "{name}: {mean} {known}");
                }
            }
        }
    }

    /// The law of the selected path, by enumeration of every tuple of paths.
    fn selected_law(problem: &BlockProblem, tree: &TokenTree<f64>, drafts: usize) -> Vec<f64> {
        let (width, length) = (tree.width(tree.length()), tree.length());
        let mut law = vec![0.0; width];
        let draft = tree.draft_layer(length).to_vec();
        each_draw(&vec![draft; drafts], |paths, &chance| {
            let texts: Vec<Vec<u32>> = (paths.iter())
                .map(|&path| tree.tokens(leaf(tree, path)))
                .collect();
            // Paths that still agree, by which is selected.
            let mut going: Vec<(Vec<usize>, f64)> = vec![((0..drafts).collect(), chance)];
            for depth in 0..length {
                let mut next: Vec<(Vec<usize>, f64)> = Vec::new();
                for (alive, mass) in going {
                    let prefix = &texts[alive[0]][..depth];
                    let bins = RatioBins::new(
                        problem.target().get(prefix).unwrap().probabilities(),
                        problem.draft().get(prefix).unwrap().probabilities(),
                    );
                    let tokens: Vec<u32> = alive.iter().map(|&path| texts[path][depth]).collect();
                    let selection = Selection::new(&bins, alive.len());
                    let shares = selection.shares(&bins, &tokens);
                    for (slot, share) in shares.iter().enumerate() {
                        let same = alive.iter().zip(&tokens);
                        let same = same.filter(|(_, token)| **token == tokens[slot]);
                        let same: Vec<usize> = same.map(|(&path, _)| path).collect();
                        next.push((same, mass * share));
                    }
                }
                going = next;
            }
            for (alive, mass) in going {
                law[paths[alive[0]]] += mass;
            }
        });
        law
    }

    #[test]
    fn a_selected_path_is_verified_as_its_law_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(10);
        for (vocab, length, drafts) in [(2, 2, 2), (3, 2, 3), (2, 3, 2), (4, 2, 2)] {
            for _ in 0..5 {
                let problem = random_problem(&mut rng, vocab, length);
                let tree = TokenTree::<f64>::new(&problem);
                let mut layers = vec![selected_law(&problem, &tree, drafts)];
                for _ in 0..length {
                    let below = layers.last().unwrap();
                    layers.push(
                        below
                            .chunks(vocab)
                            .map(|chunk| chunk.iter().sum())
                            .collect(),
                    );
                }
                layers.reverse();
                let selected = tree.clone().with_draft(layers);
                let mean = along(&problem, &tree, |all| &all.selected, (drafts, true));
                for (mean, law) in mean.selected.iter().zip([
                    output_law(&selected, &specgap_exact::block::Block),
                    output_law(&selected, &specgap_exact::block::GreedyBlock),
                ]) {
                    let accepted = law.expected_accepted_length;
                    assert!((mean - accepted).abs() < 1e-8, "{mean} {accepted}");
                    assert!(law.total_variation < 1e-8);
                }
                // Token by token of the same selection accepts no more than greedy blocks.
                assert!(mean.by_token <= mean.selected[1] + 1e-9);
            }
        }
    }
}
