//! Claims about rules that circulate as code and in issues, and not in a paper's theorem.

use super::Finding;
use super::claim::claims;
use super::family::{Family, drafting, half, optimum, overlap, part, positive, rows, whole};
use super::scores::is_in;
use super::text::{Pair, residual};
use crate::block::{Block, BlockVerifier, Outcomes, output_law};
use num_traits::Signed;
use specgap_core::problem::{BlockProblem, Problem};
use specgap_core::rounds::{ChainRule, replay};
use specgap_core::scheme::WithReplacement;
use specgap_core::tree::TokenTree;
use specgap_core::verifier::{VerifierName, verifier};
use specgap_number::distribution::{Draft, Rational, Target};
use specgap_number::number::{Number, normalised};

claims! {
    refuted "hsd-uncapped" of hierarchical,
        in ["refuted/hsd-uncapped.toml"]
        "hierarchical speculative decoding, as its public code runs it, keeps the target's law",
        "arXiv 2601.05724, by its code in transformers at b8575e2 and its algorithm_clean.py; the paper's text \
        was not read",
        "Wrong as it runs: it keeps a whole block with min(1, the product of p/q), uncapped on the way, and \
        steps back by the capped one. On its own toy, p = (1/3, 2/3) and q = (2/3, 1/3) at two places, it accepts 4/3 \
        tokens where block verification accepts 11/9, and its first tokens are off by a total variation of 1/9. With \
        the capped product there too it is block verification: the law of the text and of what is accepted are the \
        same, by every draft and stop, in fractions, on the toy and on random rows.";
    refuted "draw-for-each-candidate" by candidates,
        in ["refuted/draw-for-each-candidate.toml"]
        "a draw of the target for each drafted path, of which the path that agrees longest with its own wins, \
        keeps the target's law",
        "a reading of an engine's code (fms-extras, issue 12)",
        "Wrong: paths that begin a, a, a, e, with p(a) = p(e) = 1/2, put out a unless all three draws of its \
        paths miss it, 7/8, a total variation of 3/8. One draw a node is lossless.";
    refuted "beam-as-sample" of beam,
        in ["refuted/prune-after-draw.toml"]
        "the likeliest path of a draft's beam may be verified as a sample of q, with min(1, p/q) and (p - q)+",
        "a reading of recurrent drafting by beams",
        "Wrong: with p = (1/2, 1/2) and q = (3/4, 1/4) the beam drafts token 0 each time. Kept with 2/3, else \
        token 1: the output is (2/3, 1/3). Kept with p, as a one-hot law, it is lossless; both in fractions on random \
        rows.";
    refuted "rule-by-the-drafts" of chosen,
        in ["refuted/prune-after-draw.toml"]
        "where two rules are lossless, one may be chosen in each round by what was drafted",
        "a reading of rules that switch",
        "Wrong: with p = (1/2, 1/2) and q = (3/4, 1/4), token verification behind a draft of 0 and a plain draw \
        behind a draft of 1 put out 0 with 3/4 2/3 + 1/4 1/2 = 5/8. A choice that does not look at the drafts is \
        lossless, and accepts the mean: the output's law is a mean of two that are p.";
    refuted "block-by-marginals" of by_marginals,
        in ["refuted/block-by-marginals.toml"]
        "a block drafter that draws each place by itself from the right marginal is accepted as one that draws \
        the block",
        "a natural reading of block drafters (dflash, issue 169)",
        "Wrong: the target writes 00 or 11, each with 1/2. Places drawn by themselves from (1/2, 1/2) have 1 + \
        1/2 tokens accepted of 2 by token verification, and by any lossless rule; drafts of the joint law, of the same \
        marginals, 2. Token verification by the marginal of each place is lossless, as each draft is a sample of the \
        row that it is tested with; what is lost is acceptance. On random targets, in fractions.";
    holds "cut-after-verification" by cut_behind_token,
        "an engine that verifies all its drafts by token, and then keeps at most c of those that were \
        accepted, c told by the text up to there, and a draw from p, saves no call on any text",
        "a reading of engines that apply a draft's confidence behind the pass (sglang, issue 30204)",
        "And every pass was paid whole. Proof: give each place of the text one coin of chance min(1, q/p), \
        for whichever round tests it, as no two do. A round ends behind its first failure, or its last draft. A \
        round that starts earlier or is cut ends no later. So the k-th round of the engine that cuts ends no later \
        than that of one that does not. Checked on texts of random models with every coin enumerated, and the mean \
        against the replay, in fractions. It is lossless: a stop behind a token that is kept (see replay).";
    holds "cut-of-the-output" by cut_output,
        "an engine that verifies drafts against all of p, and then replaces an output outside a cut of p (top-k, \
        top-p) by a draw from the cut row, writes the law of the cut row, and accepts at most alpha* of it, which one \
        draft verified against the cut row is accepted with",
        "a natural question on cuts behind the verifier; ours",
        "Proof: the output is p; what the cut C keeps of it is p on C, and 1 - p(C) more is drawn in proportion to \
        that. So it is one more lossless rule for the cut row. On random pairs, cut to the heavier \
        half, by recursive rejection of one and two drafts, every tuple in fractions.";
    refuted "cut-after-block-verification" of cut_behind_block,
        in ["refuted/prune-after-draw.toml"]
        "an engine that verifies all its drafts by block, and then keeps fewer of those that were accepted (as in \
        cut-after-verification), saves no call on any text",
        "a natural reading",
        "Wrong text by text. With p = (1/2, 1/2) and q = (3/4, 1/4) at each place, two drafts a round, and the \
        text 0 0 0 1 and one more: all of the first round is accepted, and the next tests 1 alone, q/p = 1/2. Cut \
        to one draft the first round leaves 0 1 to the second, which keeps both with 3/2 1/2 = 3/4: 9/4 calls for \
        5/2. In the mean over texts no cut of one round saved a call, on this pair and on random models.";
}

/// Hierarchical speculative decoding: back from the whole block by joint products, of which the target's is over
/// the largest ratio on the way. The whole block is kept with the ratio of this one, or with the plain one.
struct Hierarchical {
    is_capped: bool,
}

impl BlockVerifier<Rational> for Hierarchical {
    fn verify(
        &self,
        tree: &TokenTree<Rational>,
        blocks: &[usize],
        outcomes: &mut Outcomes<'_, Rational>,
    ) {
        let leaf = tree.leaf(blocks.first().copied().unwrap_or(0));
        let mut most = Rational::one();
        let capped: Vec<Rational> = (0..=tree.length())
            .map(|depth| {
                let node = tree.ancestor(leaf, depth);
                most = most.clone().max(tree.target(node) / tree.draft(node));
                tree.target(node) / &most
            })
            .collect();
        let aimed = match self.is_capped {
            true => &capped[tree.length()],
            false => tree.target(leaf),
        };
        let whole = (aimed / tree.draft(leaf)).smaller(&Rational::one());
        outcomes.stop(leaf, &whole, tree.target_next(leaf));
        let mut left = whole.complement();
        for depth in (0..tree.length()).rev() {
            let node = tree.ancestor(leaf, depth);
            let Some(p) = tree.target_next(node) else {
                continue;
            };
            let (mut gain, mut loss) = (Vec::new(), Rational::zero());
            for (p, q) in p.iter().zip(tree.draft_next(node)) {
                let (aimed, had) = (p * &capped[depth], q * tree.draft(node));
                gain.push(aimed.excess_over(&had));
                loss += had.excess_over(&aimed);
            }
            let sum = Rational::total(&gain);
            let more = loss.max(sum.clone());
            let here = match more.is_nil() {
                true => Rational::one(),
                false => sum / more,
            };
            let next = normalised(&gain);
            outcomes.stop(node, &(&left * &here), next.as_deref());
            left *= here.complement();
        }
    }
}

/// Rows of the target and of the draft by place, whatever is before them.
fn by_place(family: &mut Family) -> Option<BlockProblem> {
    let (vocab, places) = (family.between(2, 3), family.between(1, 3));
    let target: Vec<_> = (0..=places).map(|_| family.row(vocab)).collect();
    let draft: Vec<_> = (0..places).map(|_| family.row(vocab)).collect();
    let made = BlockProblem::by_prefix("by place", vocab, places, |prefix| {
        let row = |rows: &[Vec<Rational>]| rows.get(prefix.len()).cloned();
        (
            row(&target).and_then(|row| Target::from_rationals(row).ok()),
            row(&draft).and_then(|row| Draft::from_rationals(row).ok()),
        )
    });
    made.ok()
}

fn hierarchical(finding: &mut Finding, [toy]: [BlockProblem; 1]) {
    let mut family = Family::new(2_601);
    let others = (0..40).filter_map(|_| by_place(&mut family));
    for (index, problem) in std::iter::once(toy).chain(others).enumerate() {
        let tree = TokenTree::<Rational>::new(&problem);
        let runs = output_law(&tree, &Hierarchical { is_capped: false });
        let capped = output_law(&tree, &Hierarchical { is_capped: true });
        let by_block = output_law(&tree, &Block);
        let variation = &runs.total_variation;
        if index == 0 {
            finding.fraction("accepted on the toy", &runs.expected_accepted_length);
            let lossless = &by_block.expected_accepted_length;
            finding.fraction("by block verification", lossless);
            finding.fraction("total variation on the toy", variation);
        }
        finding.tally("of 41, off as the code runs", !variation.is_nil());
        let is_block = capped.total_variation.is_nil() && capped == by_block;
        let name = "of 41, lossless and as block verification when capped";
        finding.tally(name, is_block);
        finding.require(variation.is_nil(), || {
            format!("the text's law is off by {variation}")
        });
    }
}

fn candidates(finding: &mut Finding) {
    let drafts = [0, 0, 0, 1];
    // Every draw of every path: the first path that agrees, or else the first one's draw.
    let mut law = [Rational::zero(), Rational::zero()];
    for number in 0..1usize << drafts.len() {
        let draws = [0, 1, 2, 3].map(|path| number >> path & 1);
        let agrees = |&path: &usize| draws[path] == drafts[path];
        let won = (0..drafts.len()).find(agrees).unwrap_or(0);
        law[draws[won]] += half().power(drafts.len());
    }
    finding.fraction("P(a)", &law[0]);
    let off = law[0].excess_over(&half());
    finding.require(off.is_nil(), || format!("the output's law is off by {off}"));
}

/// Rows of the shipped pair, and of random ones.
fn pairs(shipped: &Problem, seed: u64) -> Vec<[Vec<Rational>; 2]> {
    let mut family = Family::new(seed);
    let random = (0..200).map(|_| {
        let vocab = family.between(2, 5);
        family.rows(vocab)
    });
    rows(shipped).into_iter().chain(random).collect()
}

fn times(row: &[Rational], by: &Rational) -> Vec<Rational> {
    row.iter().map(|one| one * by).collect()
}

/// What token verification puts out behind a draft: the share kept, and the law behind a refusal.
fn token(p: &[Rational], q: &[Rational], draft: usize) -> Vec<Rational> {
    let kept = (&p[draft] / &q[draft]).smaller(&Rational::one());
    let mut law = times(&residual(p, q, &Rational::one()), &kept.complement());
    law[draft] += kept;
    law
}

fn beam(finding: &mut Finding, [coin]: [Problem; 1]) {
    for (index, [p, q]) in pairs(&coin, 2_602).iter().enumerate() {
        let best = (0..q.len()).fold(0, |best, x| if q[x] > q[best] { x } else { best });
        let law = token(p, q, best);
        if index == 0 {
            finding.fraction("P(token 0)", &law[0]);
        }
        finding.tally("of 201, off", law != *p);
        finding.require(law == *p, || format!("token 0 comes with {}", law[0]));
        let mut hot = p.clone();
        hot[best] = Rational::zero();
        let left = normalised(&hot).unwrap_or_else(|| p.clone());
        let mut one_hot = times(&left, &p[best].complement());
        one_hot[best] += p[best].clone();
        finding.tally("of 201, lossless as one-hot", one_hot == *p);
    }
}

fn chosen(finding: &mut Finding, [coin]: [Problem; 1]) {
    for (index, [p, q]) in pairs(&coin, 2_603).iter().enumerate() {
        let by = |plain: &dyn Fn(usize) -> Rational| {
            let mut law = vec![Rational::zero(); p.len()];
            for (draft, mass) in positive(q) {
                let (verified, share) = (token(p, q, draft), plain(draft));
                for (sum, (one, own)) in law.iter_mut().zip(verified.iter().zip(p)) {
                    *sum += mass * (one * share.complement() + own * &share);
                }
            }
            law
        };
        let switched = by(&|draft| whole(draft.min(1)));
        if index == 0 {
            finding.fraction("P(token 0)", &switched[0]);
        }
        finding.tally("of 201, off", switched != *p);
        let first = &switched[0];
        finding.require(switched == *p, || format!("token 0 comes with {first}"));
        let by_coin = by(&|_| part(1, 3));
        finding.tally("of 201, lossless by a coin", by_coin == *p);
    }
}

fn by_marginals(finding: &mut Finding, [shipped]: [BlockProblem; 1]) {
    let mut family = Family::new(2_604);
    // The first row, and the second behind each first token.
    let row = |prefix: &[u32]| shipped.target().get(prefix).map(|row| Rational::row(row));
    let second = [row(&[0]), row(&[1])].into_iter().flatten();
    let toy = (row(&[]).unwrap_or_default(), second.collect::<Vec<_>>());
    let random = (0..100).map(|_| {
        let vocab = family.between(2, 4);
        let first = family.row(vocab);
        (first, (0..vocab).map(|_| family.row(vocab)).collect())
    });
    for (index, (first, second)) in std::iter::once(toy).chain(random).enumerate() {
        let rows = || first.iter().zip(&second);
        let marginal: Vec<Rational> = (0..first.len())
            .map(|y| rows().map(|(p, row)| p * &row[y]).sum())
            .collect();
        // The first draft is always kept; the second by the overlap of its row and the marginal.
        let kept: Rational = rows().map(|(p, row)| p * overlap(row, &marginal)).sum();
        let accepted = Rational::one() + kept;
        if index == 0 {
            finding.fraction("accepted of 2, drawn apart", &accepted);
        }
        let joint = whole(2);
        finding.tally("of 101, accepted less", accepted < joint);
        finding.require(accepted == joint, || {
            format!("{accepted} of 2 are accepted")
        });
        for row in &second {
            let mut law = vec![Rational::zero(); row.len()];
            for (y, mass) in positive(&marginal) {
                let verified = token(row, &marginal, y);
                law.iter_mut()
                    .zip(&verified)
                    .for_each(|(sum, one)| *sum += one * mass);
            }
            finding.same(&law, row, || {
                "token verification by the marginal".to_owned()
            });
        }
    }
}

/// Calls for a text where rounds from each start keep at most so many drafts.
fn calls(verifier: ChainRule, ratios: &[Rational], kept: &[usize]) -> Rational {
    replay(verifier, ratios, kept).map_or_else(Rational::zero, |rounds| rounds.calls)
}

fn cut_behind_token(finding: &mut Finding) {
    let mut family = Family::new(2_605);
    for _ in 0..40 {
        let pair = Pair::random(&mut family, 2, 5);
        let length = family.between(1, 4);
        for text in pair.texts().into_keys() {
            let ratios = pair.ratios(&text);
            let cuts: Vec<usize> = text.iter().map(|_| family.below(length + 1)).collect();
            let whole_rounds = vec![length; text.len()];
            // How many rounds there are where the coins of some places fail.
            let rounds = |failed: usize, kept: &[usize]| {
                let (mut start, mut rounds) = (0, 0usize);
                while start < text.len() {
                    let room = kept[start].min(text.len() - start - 1);
                    let fails = |place: &usize| is_in(failed, *place);
                    start = (start..start + room).find(fails).unwrap_or(start + room) + 1;
                    rounds += 1;
                }
                rounds
            };
            let [mut uncut, mut cut] = [Rational::zero(), Rational::zero()];
            for failed in 0..1usize << text.len() {
                let coins = ratios.iter().enumerate().map(|(place, ratio)| {
                    let kept = ratio.smaller(&Rational::one());
                    if is_in(failed, place) {
                        kept.complement()
                    } else {
                        kept
                    }
                });
                let chance: Rational = coins.product();
                let [few, many] = [rounds(failed, &whole_rounds), rounds(failed, &cuts)];
                finding.require(few <= many, || format!("{ratios:?} {cuts:?} {failed:b}"));
                uncut += &chance * &whole(few);
                cut += chance * &whole(many);
            }
            let replayed =
                [&whole_rounds, &cuts].map(|kept| calls(ChainRule::TOKEN, &ratios, kept));
            finding.add("texts", 1);
            finding.tally("with more calls when cut", cut > uncut);
            finding.same(&replayed, &[uncut, cut], || format!("{ratios:?} {cuts:?}"));
        }
    }
}

fn cut_output(finding: &mut Finding) {
    let mut made = |p: &[Rational], q: &[Rational], drafts: usize| {
        let of = |row: &[Rational]| {
            let law = |q| WithReplacement::new(q, drafts);
            drafting(row.to_vec(), q.to_vec(), law)
        };
        let mut heaviest: Vec<usize> = (0..p.len()).collect();
        heaviest.sort_by(|&a, &b| p[b].cmp(&p[a]));
        let kept = &heaviest[..p.len().div_ceil(2)];
        let mut cut = vec![Rational::zero(); p.len()];
        kept.iter().for_each(|&x| cut[x] = p[x].clone());
        let (share, cut) = (Rational::total(&cut), normalised(&cut)?);
        let problem = of(p)?;
        let rule = verifier(VerifierName::RRS, &problem).ok()?;
        let (mut law, mut accepted) = (times(&cut, &share.complement()), Rational::zero());
        problem.scheme().for_each_tuple_exact(&mut |tuple, chance| {
            let Some(given) = rule.conditional_exact(tuple) else {
                return;
            };
            for (&token, mass) in tuple.iter().zip(&given.accepted) {
                if kept.contains(&(token as usize)) {
                    law[token as usize] += chance * mass;
                    accepted += chance * mass;
                }
            }
            for &token in kept {
                law[token] += chance * &(&given.rejected * &given.residual[token]);
            }
        });
        finding.same(&law, &cut, || "the law behind the cut".to_owned());
        let most = optimum(&of(&cut)?);
        finding.at_most("what is accepted", &accepted, &most);
        finding.add("pairs and numbers of drafts", 1);
        finding.tally("that accept less than against the cut row", accepted < most);
        Some(())
    };
    let mut family = Family::new(2_607);
    for _ in 0..60 {
        let vocab = family.between(2, 5);
        let [p, q] = family.rows(vocab);
        for drafts in [1, 2] {
            let _ = made(&p, &q, drafts);
        }
    }
}

fn cut_behind_block(finding: &mut Finding, [problem]: [Problem; 1]) {
    let rows = rows(&problem).unwrap_or_default();
    let coin = Pair::new(2, 5, || rows.clone());
    let ratios = coin.ratios(&[0, 0, 0, 1, 0]);
    let [uncut, cut] =
        [[2; 5], [1, 2, 2, 2, 2]].map(|kept| calls(ChainRule::BLOCK, &ratios, &kept));
    finding.fraction("calls for 0 0 0 1 and a token", &uncut);
    finding.fraction("with one draft of the first round", &cut);
    finding.require(uncut <= cut, || format!("{uncut} calls, cut {cut}"));
    let mut family = Family::new(2_606);
    let random = (0..40).map(|_| Pair::random(&mut family, 2, 5));
    for pair in std::iter::once(coin).chain(random) {
        let texts = pair.texts();
        for (prefix, _) in pair.all_rows() {
            for (length, kept) in [(2, 0), (2, 1), (3, 1), (3, 2)] {
                let behind = texts.iter().filter(|(text, _)| text.starts_with(prefix));
                let more = behind.map(|(text, weight)| {
                    let ratios = pair.ratios(text);
                    let mut rounds = vec![length; text.len()];
                    let uncut = calls(ChainRule::BLOCK, &ratios, &rounds);
                    rounds[prefix.len()] = kept;
                    weight * &(calls(ChainRule::BLOCK, &ratios, &rounds) - uncut)
                });
                let saves = more.sum::<Rational>().is_negative();
                finding.tally("cuts of one round that save calls in the mean", saves);
            }
        }
    }
}
