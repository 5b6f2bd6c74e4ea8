//! Claims about what no lossless rule of one path can pass over several rounds.

use super::Finding;
use super::claim::claims;
use super::family::{Family, part, positive};
use super::text::{Decoded, Pair, carried, extended};
use num_traits::Signed;
use specgap_core::rounds::{
    BlockCarry, ChainRule, FixedLength, carried_block_starts, carried_starts, fewest_calls,
    fewest_calls_unlimited, fewest_starts, oracle_calls_to_the_end, replay,
};
use specgap_number::distribution::Rational;
use specgap_number::number::Number;
use std::collections::BTreeMap;

claims! {
    holds "rounds-optimum" by optimum,
        "over all lossless rules of one path with at most L fresh drafts a round, \
        whatever they couple or remember, the least expected number of target calls for N \
        tokens is the mean over the target's texts of the sum over t < N of s_t, s_0 = 1, s_t = \
        (1 - sum over k = 1..min(L, t) of s_(t-k) r_(t-k+1) ... r_t)+",
        "ours; docs/theory/several-rounds.md, Theorem 1",
        "In fractions, on random models whose rows depend on the whole prefix, zeros \
        among them: multipliers that prove that no rule makes fewer calls, held against every \
        constraint, and a decoder that makes as many, by its masses of every draft, stop and \
        next token: they have the law of the drafts, and the text is the target's. \
        scripts/several_rounds.py solves the program over all couplings of all rounds in \
        fractions, without this theory, and finds the same.";
    holds "block-optimal-unlimited" by unlimited,
        "with drafts as long as the text, block verification makes the least expected \
        number of target calls of all lossless rules of one path: the total of the largest of the \
        hybrids p(x_1..x_j) q(x_(j+1)..x_(N-1) | x_1..x_j) over j < N; given the text a round \
        starts at t with probability (1 - r_t Z_(t-1))+, Z_t = max(1, r_t Z_(t-1)), Z_0 = 1. \
        Shorter drafts are not optimal",
        "ours, for the rule of Sun et al., Block verification; \
        docs/theory/several-rounds.md, Theorem 2",
        "Text by text against the replay of block verification, and in the mean \
        against the hybrids, in fractions. For L = 1, 2 below N - 1 block verification is above \
        the optimum on most of the models.";
    holds "carried-lossless" by carried_is_lossless,
        "the rule that keeps a draft with probability min(1, p/(d q)) and draws every \
        other token from (p - d q)+, d being the probability, given the text so far, that a draft \
        stands there, writes the target's text for every L; for L = 1 no lossless rule makes \
        fewer calls",
        "ours; docs/theory/several-rounds.md, Theorem 4",
        "Every draft and coin of random models, in fractions: the law of the text, \
        and calls against the mean over texts of what is replayed along them. For L = 1 against \
        the optimum, text by text; for L > 1 never below it in the mean, and above it on some.";
    holds "carried-block-lossless" by carried_block_is_lossless,
        "the block rule that keeps, for each age of rounds, what they drafted and kept of \
        the text, gives each row out in proportion to the drafts that they have to go, and settles \
        a path from its end, writes the target's text for every L; for L = 1 no lossless rule \
        makes fewer calls. For L > 1 some do",
        "ours; docs/theory/several-rounds.md, Theorem 5",
        "Every draft, stop and next token of random models, in fractions: the law of \
        the text, and calls against the mean over texts of what is replayed along them, the \
        least calls, block verification and the rule that carries by token.";
    holds "calls-ordered" by ordered,
        "a rule whose round, from every start and whatever was before, accepts given the \
        text stochastically at least what token verification of as many drafts does, makes given \
        the text at most as many target calls in expectation",
        "ours; docs/theory/several-rounds.md, Theorem 3",
        "Random texts, in fractions: block verification; coins of at least min(1, r), \
        as rules of several drafts a position have; and laws of the accepted number that are \
        at least token verification's and otherwise random, from each start another. Without \
        token verification on the lower side it fails: rounds that accept at least what block \
        verification does can make more calls, which the check finds too.";
    holds "token-above-fewest" by token_is_above,
        "text by text token verification makes at least the sum of s_t target calls, the \
        fewest in the mean of all lossless rules of one path",
        "ours; docs/theory/several-rounds.md, section 4",
        "Random texts, in fractions, with the multipliers of the proof: chances that a \
        place is marked, whose sum is at least that of s_t and at most token verification's calls. \
        Block verification makes fewer than the sum on some texts, which the check finds too.";
    holds "given-out-lossless" by any_giving_is_lossless,
        "whatever is given out at each prefix and age within g_j(y) <= sigma_j s_j(y), sum over \
        y of g_j <= a_j, sum over j of g_j(y) <= p(y), a path that is settled from its end writes the \
        target's text, also if the draft's rows s_j depend on where the round began",
        "ours; docs/theory/several-rounds.md, Theorem 5",
        "Random choices within the bounds, rows by start and prefix: every draft, stop and \
        next token in fractions, the law of the text and the chance of a start behind each prefix.";
}

/// Models of (tokens of the vocabulary, of the text, drafts), rows with zeros among them.
const SHAPES: [(usize, usize, usize); 8] = [
    (2, 3, 1),
    (2, 4, 2),
    (3, 3, 2),
    (2, 5, 2),
    (2, 5, 3),
    (3, 4, 1),
    (3, 4, 3),
    (2, 6, 2),
];

fn optimum(finding: &mut Finding) {
    let mut family = Family::new(1901);
    for index in 0..48 {
        let (pair, most, name) = model(&mut family, index);
        finding.about(name, |finding| {
            let mean = mean_calls(&pair, |ratios| fewest_calls(ratios, most));
            finding.equal(proved_least(&pair, most), Ok(mean.clone()));
            let made = decoder(&pair, most);
            finding.add("models, bound and decoder in fractions", 1);
            let masses = made.as_ref().map_or(0, |(_, count)| *count);
            finding.add("drafts, stops and next tokens of decoders", masses);
            finding.equal(made.map(|(calls, _)| calls), Ok(mean.clone()));
            let name = "models on which block verification makes more calls";
            finding.tally(name, mean < block_calls(&pair, most));
            Some(())
        });
    }
}

/// A random model, its L, and its name.
fn model(family: &mut Family, index: usize) -> (Pair, usize, impl Fn() -> String + use<>) {
    let (vocab, tokens, most) = SHAPES[index % SHAPES.len()];
    let name = move || format!("V = {vocab}, N = {tokens}, L = {most}, model {index}");
    (Pair::random(family, vocab, tokens), most, name)
}

/// The mean over texts of a number of calls.
pub(super) fn mean_calls(pair: &Pair, of: impl Fn(&[Rational]) -> Rational) -> Rational {
    let texts = pair.texts().into_iter();
    texts
        .map(|(text, weight)| weight * of(&pair.ratios(&text)))
        .sum()
}

/// Calls of a verifier along a text, with at most so many drafts a round.
pub(super) fn replayed(verifier: ChainRule, ratios: &[Rational], most: usize) -> Rational {
    let found = replay(verifier, ratios, &FixedLength(most));
    found.map_or_else(Rational::zero, |found| found.calls)
}

/// The mean of block verification.
fn block_calls(pair: &Pair, most: usize) -> Rational {
    mean_calls(pair, |ratios| replayed(ChainRule::BLOCK, ratios, most))
}

/// Drafts that are one token longer, with their probabilities.
fn one_longer(pair: &Pair, paths: &[(Vec<usize>, Rational)]) -> Vec<(Vec<usize>, Rational)> {
    let longer = paths.iter().flat_map(|(path, weight)| {
        let draft = pair.rows(path).map_or(&[][..], |[_, draft]| draft);
        let drawn = draft.iter().enumerate();
        drawn.map(move |(token, q)| (extended(path, token), weight * q))
    });
    longer.collect()
}

/// Prefixes behind which a round may start, parents first, with their probabilities.
fn starts_of(pair: &Pair) -> BTreeMap<Vec<usize>, Rational> {
    let mut all = BTreeMap::from([(Vec::new(), Rational::one())]);
    for (prefix, [target, _]) in pair.all_rows() {
        if prefix.len() + 1 < pair.tokens() {
            let before = all.get(prefix).cloned().unwrap_or_default();
            for (token, p) in target.iter().enumerate() {
                all.insert(extended(prefix, token), &before * p);
            }
        }
    }
    all
}

/// S of the forward solution: the least starts behind each prefix, given those before.
fn forward(pair: &Pair, most: usize) -> BTreeMap<Vec<usize>, Rational> {
    let mut starts = BTreeMap::<Vec<usize>, Rational>::new();
    for (prefix, p) in starts_of(pair) {
        let first = prefix.len().saturating_sub(most);
        let supply: Rational = (first..prefix.len())
            .map(|from| &starts[&prefix[..from]] * pair.drafted(&prefix, from))
            .sum();
        starts.insert(prefix, p.excess_over(&supply));
    }
    starts
}

/// Returns the least calls that multipliers prove; an error if they break a constraint.
fn proved_least(pair: &Pair, most: usize) -> Result<Rational, String> {
    let starts = forward(pair, most);
    // Behind each prefix: how far the next marked one on a path of the draft is, at it or
    // behind it; the last entry is for `most` and more.
    let mut next = BTreeMap::<Vec<usize>, Vec<Rational>>::new();
    let mut multipliers = BTreeMap::new();
    for (prefix, start) in starts.iter().rev() {
        let mut behind = vec![Rational::zero(); most + 1];
        let is_last = prefix.len() + 1 == pair.tokens();
        match pair.rows(prefix) {
            Some([_, draft]) if !is_last => {
                for (token, q) in draft.iter().enumerate() {
                    for (sum, share) in behind.iter_mut().zip(&next[&extended(prefix, token)]) {
                        *sum += q * share;
                    }
                }
            }
            _ => behind[most] = Rational::one(),
        }
        let mut here = vec![Rational::zero(); most + 1];
        for (distance, share) in behind.iter().enumerate().take(most) {
            here[distance + 1] += share;
        }
        let free = behind.swap_remove(most);
        let multiplier = match start.is_positive() {
            true => {
                here[0] += &free;
                free
            }
            false => {
                here[most] += free;
                Rational::zero()
            }
        };
        multipliers.insert(prefix.clone(), multiplier);
        next.insert(prefix.clone(), here);
    }
    let probabilities = starts_of(pair);
    for start in probabilities.keys() {
        let near = multipliers
            .iter()
            .filter(|(prefix, _)| prefix.starts_with(start) && prefix.len() - start.len() <= most);
        let sum: Rational = near
            .map(|(prefix, multiplier)| multiplier * pair.drafted(prefix, start.len()))
            .sum();
        if sum > Rational::one() || multipliers[start].is_negative() {
            return Err(format!("multipliers behind {start:?} come to {sum}"));
        }
    }
    let parts = probabilities.iter();
    Ok(parts.map(|(prefix, p)| p * &multipliers[prefix]).sum())
}

/// By start and prefix: what rounds from the start accept of the prefix.
type Accepted = BTreeMap<(Vec<usize>, Vec<usize>), Rational>;

/// Sums what rounds from a start accept of a prefix and one more token.
fn onwards(accepted: &Accepted, vocab: usize, start: &[usize], prefix: &[usize]) -> Rational {
    let each = (0..vocab).filter_map(|token| {
        let longer = (start.to_vec(), extended(prefix, token));
        accepted.get(&longer).cloned()
    });
    each.sum()
}

/// Chooses what rounds of the decoder accept, from the longest prefixes on; an error if there is no
/// choice.
fn acceptances(
    pair: &Pair,
    most: usize,
    starts: &BTreeMap<Vec<usize>, Rational>,
) -> Result<Accepted, String> {
    let mut accepted = Accepted::new();
    for (prefix, p) in starts_of(pair).iter().rev() {
        let mut left = p - &starts[prefix];
        let first = prefix.len().saturating_sub(most);
        let mut ends = Vec::new();
        for from in first..prefix.len() {
            let start = prefix[..from].to_vec();
            let least = onwards(&accepted, pair.vocab(), &start, prefix);
            let largest = &starts[&start] * pair.drafted(prefix, from);
            left -= &least;
            ends.push((start, least, largest));
        }
        for (start, least, largest) in ends {
            let more = left.smaller(&(&largest - &least));
            if more.is_negative() {
                return Err(format!("rounds accept too much behind {prefix:?}"));
            }
            left -= &more;
            accepted.insert((start, prefix.clone()), least + more);
        }
        if !left.is_nil() {
            return Err(format!("{left} of {prefix:?} is neither drafted nor free"));
        }
    }
    Ok(accepted)
}

/// Calls of a decoder that is built, and the number of its masses; an error if it is none, or
/// not lossless.
fn decoder(pair: &Pair, most: usize) -> Result<(Rational, u64), String> {
    let tokens = pair.tokens();
    let starts = forward(pair, most);
    let probabilities = starts_of(pair);
    let accepted = acceptances(pair, most, &starts)?;
    // Stops, those of the most accepted drafts first, are laid on drafted paths.
    let mut written = BTreeMap::<Vec<usize>, Rational>::new();
    let (mut calls, mut masses) = (Rational::zero(), 0);
    for (start, mass) in &starts {
        calls += mass;
        let length = most.min(tokens - 1 - start.len());
        let mut paths: Vec<(Vec<usize>, Rational)> = vec![(start.clone(), mass.clone())];
        let mut stops: Vec<(Vec<usize>, Rational)> = Vec::new();
        for age in 0..=length {
            for (path, _) in &paths {
                let whole = match age {
                    0 => mass.clone(),
                    _ => accepted[&(start.clone(), path.clone())].clone(),
                };
                stops.push((
                    path.clone(),
                    whole - onwards(&accepted, pair.vocab(), start, path),
                ));
            }
            if age < length {
                paths = one_longer(pair, &paths);
            }
        }
        for (stop, mut wanted) in stops.into_iter().rev() {
            if wanted.is_negative() {
                return Err(format!("behind {stop:?} more is accepted than before"));
            }
            // Behind a stop the next token is drawn alike, whatever the round.
            let free: Vec<Rational> = (0..pair.vocab())
                .map(|token| {
                    let longer = extended(&stop, token);
                    match starts.get(&longer) {
                        Some(start) => start.clone(),
                        None => pair.rows(&stop).map_or_else(Rational::zero, |[target, _]| {
                            &probabilities[&stop] * &target[token]
                        }),
                    }
                })
                .collect();
            let total: Rational = free.iter().sum();
            for (path, left) in &mut paths {
                if !path.starts_with(&stop) || wanted.is_nil() {
                    continue;
                }
                let taken = left.smaller(&wanted);
                *left -= &taken;
                wanted -= &taken;
                for (token, share) in positive(&free) {
                    masses += 1;
                    *written.entry(extended(&stop, token)).or_default() += &taken * share / &total;
                }
            }
            if !wanted.is_nil() {
                return Err(format!("no draft is left for a stop behind {stop:?}"));
            }
        }
        if paths.iter().any(|(_, left)| !left.is_nil()) {
            return Err(format!("drafts behind {start:?} that nothing is done with"));
        }
    }
    // Where rounds end, rounds start; where texts end, they have the target's law.
    for (prefix, mass) in &starts {
        let ended = written.remove(prefix).unwrap_or_default();
        if !prefix.is_empty() && ended != *mass {
            return Err(format!(
                "rounds end behind {prefix:?} with {ended}, not {mass}"
            ));
        }
    }
    match written == pair.texts() {
        true => Ok((calls, masses)),
        false => Err("the text's law is not the target's".to_owned()),
    }
}

fn unlimited(finding: &mut Finding) {
    let mut family = Family::new(1902);
    let (mut texts, mut shorter) = (0, 0);
    for index in 0..60 {
        let (vocab, tokens) = [(2, 4), (3, 3), (2, 6), (3, 4)][index % 4];
        let pair = Pair::random(&mut family, vocab, tokens);
        finding.add("models", 1);
        for text in pair.texts().keys() {
            let ratios = pair.ratios(text);
            let fewest = fewest_starts(&ratios, tokens - 1);
            let block = replay(ChainRule::BLOCK, &ratios, &FixedLength(tokens - 1));
            let starts = block.map(|found| found.starts).unwrap_or_default();
            texts += 1;
            finding.require(starts.get(..tokens) == Some(&fewest[..]), || {
                format!("{ratios:?}: block verification's rounds start with {starts:?}")
            });
            let calls = fewest_calls_unlimited(&ratios);
            finding.same(&calls, &Rational::total(&fewest), || format!("{ratios:?}"));
            // And no choice of lengths makes fewer with token verification.
            finding.at_most("calls", &calls, &oracle_calls_to_the_end(&ratios));
        }
        // The largest hybrids, over all prefixes of N - 1 tokens.
        let whole = starts_of(&pair);
        let longest = whole.keys().filter(|prefix| prefix.len() + 1 == tokens);
        let hybrids = longest.filter_map(|path| {
            let each = (0..tokens).map(|from| &whole[&path[..from]] * pair.drafted(path, from));
            each.max()
        });
        let mean = mean_calls(&pair, fewest_calls_unlimited);
        finding.same(mean, hybrids.sum(), || format!("model {index}, hybrids"));
        for most in 1..=2.min(tokens - 2) {
            let block = block_calls(&pair, most);
            let least = mean_calls(&pair, |ratios| fewest_calls(ratios, most));
            finding.at_most("the least", &least, &block);
            shorter += u64::from(least < block);
        }
    }
    finding.count("texts", texts);
    let name = "models and shorter L with fewer calls than block verification";
    finding.count(name, shorter);
    finding.enough(&[name], 30);
}

/// Checks a rule that carries by the law of its text and by its calls, all drafts and coins and along
/// the texts; the least calls.
pub(super) fn least_of_carried(
    finding: &mut Finding,
    (pair, most): (&Pair, usize),
    law: &BTreeMap<Vec<usize>, Rational>,
    [calls, along]: [&Rational; 2],
) -> Rational {
    finding.same(law, &pair.texts(), || "text".to_owned());
    finding.same(calls, along, || "along the texts".to_owned());
    let least = mean_calls(pair, |ratios| fewest_calls(ratios, most));
    finding.at_most("the least", &least, calls);
    if most == 1 {
        finding.equal(calls, &least);
    }
    least
}

/// Every draft, stop and next token of rounds that settle their paths from the end: the chances of
/// rounds that start behind each prefix, and of texts. `paths` drafts from a start that is come to so
/// often. `stops` says of a node and how many drafts are accepted there which share of what comes to
/// it from below stops, and in proportion to what the next token is drawn.
fn settled(
    pair: &Pair,
    paths: impl Fn(&[usize], Rational) -> Vec<(Vec<usize>, Rational)>,
    stops: impl Fn(&[usize], usize) -> Option<(Rational, Vec<Rational>)>,
) -> [BTreeMap<Vec<usize>, Rational>; 2] {
    let mut starts = BTreeMap::from([(Vec::new(), Rational::one())]);
    let mut texts = BTreeMap::<Vec<usize>, Rational>::new();
    for length in 0..pair.tokens() {
        let begun = starts.iter().filter(|(start, _)| start.len() == length);
        let drafted = begun.flat_map(|(start, weight)| paths(start, weight.clone()));
        for (path, mut weight) in drafted.collect::<Vec<_>>() {
            for age in (0..=path.len() - length).rev() {
                let node = &path[..length + age];
                let Some((share, free)) = stops(node, age) else {
                    continue;
                };
                let stopped = &weight * share;
                weight -= &stopped;
                let total = Rational::total(&free);
                let is_last = node.len() + 1 == pair.tokens();
                let all = if is_last { &mut texts } else { &mut starts };
                for (token, share) in positive(&free).filter(|_| stopped.is_positive()) {
                    let mass = &stopped * share / &total;
                    *all.entry(extended(node, token)).or_default() += mass;
                }
            }
        }
    }
    [starts, texts]
}

/// Every draft and coin of the rule that carries by block.
fn carried_block(pair: &Pair, most: usize) -> Decoded {
    let carries = carries_of(pair, most);
    let paths = |start: &[usize], weight: Rational| {
        let mut paths = vec![(start.to_vec(), weight)];
        for _ in 0..most.min(pair.tokens() - 1 - start.len()) {
            paths = one_longer(pair, &paths);
            paths.retain(|(_, weight)| weight.is_positive());
        }
        paths
    };
    let stops = |node: &[usize], age: usize| {
        let ([target, draft], carry) = (pair.rows(node)?, &carries[node]);
        let drafts_on = node.len() + 1 < pair.tokens();
        let given = carry.give_out(drafts_on.then_some((target, draft)));
        let free = target.iter().zip(draft).map(|(p, q)| given.free(p, q));
        Some((given.stops(carry, age), free.collect()))
    };
    let [starts, texts] = settled(pair, paths, stops);
    (Rational::total(starts.values()), texts)
}

/// Returns what is carried behind every prefix that the target may write.
fn carries_of(pair: &Pair, most: usize) -> BTreeMap<Vec<usize>, BlockCarry<Rational>> {
    let mut all = BTreeMap::from([(Vec::new(), BlockCarry::new(most))]);
    for (prefix, [target, draft]) in pair.all_rows() {
        if prefix.len() + 1 < pair.tokens() {
            let before: BlockCarry<Rational> = all[prefix].clone();
            for token in 0..target.len() {
                let mut carry = before.clone();
                carry.pass(Some((target, draft)), token);
                all.insert(extended(prefix, token), carry);
            }
        }
    }
    all
}

/// Checks a rule that carries on random models, by its calls and the law of its text and by its calls
/// along a model's texts. Then tells `seen` the model, L, the rule's calls, the least, and block
/// verification's.
fn each_carried(
    finding: &mut Finding,
    seed: u64,
    decoded: fn(&Pair, usize) -> Decoded,
    along: fn(&Pair, usize) -> Rational,
    mut seen: impl FnMut(&mut Finding, &Pair, usize, [&Rational; 3]),
) {
    let mut family = Family::new(seed);
    for index in 0..64 {
        let (pair, most, name) = model(&mut family, index);
        finding.about(name, |finding| {
            let (calls, law) = decoded(&pair, most);
            let both = [&calls, &along(&pair, most)];
            let least = least_of_carried(finding, (&pair, most), &law, both);
            let all = [&calls, &least, &block_calls(&pair, most)];
            seen(finding, &pair, most, all);
            Some(())
        });
    }
}

/// Calls of the rule that carries by token, along the texts.
fn carried_calls(pair: &Pair, most: usize) -> Rational {
    mean_calls(pair, |ratios| {
        Rational::total(&carried_starts(ratios, most))
    })
}

/// Calls of the rule that carries by block, along the texts.
fn carried_block_calls(pair: &Pair, most: usize) -> Rational {
    let texts = pair.texts().into_iter().map(|(text, weight)| {
        let rows = (0..text.len()).filter_map(|at| {
            let [target, draft] = pair.rows(&text[..at])?;
            Some((&target[..], &draft[..], text[at]))
        });
        let rows: Vec<_> = rows.collect();
        weight * Rational::total(&carried_block_starts(&rows, most))
    });
    texts.sum()
}

fn carried_block_is_lossless(finding: &mut Finding) {
    let (decoded, along) = (carried_block, carried_block_calls);
    let [models, attained] = [
        "models, every draft, stop and next token",
        "models on which no rule makes fewer calls",
    ];
    let [below_block, below_token, above_block] = [
        "models with fewer calls than block verification",
        "models with fewer calls than carrying by token",
        "models with more calls than block verification",
    ];
    each_carried(finding, 1905, decoded, along, |finding, pair, most, all| {
        let [calls, least, block] = all;
        finding.add(models, 1);
        finding.tally(attained, least == calls);
        finding.tally(below_block, calls < block);
        finding.tally(below_token, *calls < carried_calls(pair, most));
        finding.tally(above_block, calls > block);
    });
    let some = finding.counted(attained) < finding.counted(models);
    finding.require(some, || "no model has a rule with fewer calls".to_owned());
}

fn carried_is_lossless(finding: &mut Finding) {
    each_carried(
        finding,
        1903,
        carried,
        carried_calls,
        |finding, _, most, all| {
            let ([calls, least, block], is_several) = (all, most > 1);
            finding.add("models, all drafts and coins", 1);
            let attains = is_several && least == calls;
            finding.tally("of these with L > 1 and the least calls", attains);
            let is_above = is_several && least < calls;
            finding.tally("of these with L > 1 and more than the least", is_above);
            let name = "of these with fewer calls than block verification";
            finding.tally(name, calls < block);
        },
    );
}

/// Calls of rounds that accept i of n drafts and more with the probabilities `law` tells of a
/// start and n.
fn calls_by(
    tokens: usize,
    most: usize,
    mut law: impl FnMut(usize, usize) -> Vec<Rational>,
) -> Rational {
    let mut starts = vec![Rational::zero(); tokens + 1];
    starts[0] = Rational::one();
    for start in 0..tokens {
        let length = most.min(tokens - 1 - start);
        let reached = law(start, length);
        for accepted in 0..=length {
            let beyond = reached.get(accepted + 1).cloned().unwrap_or_default();
            let ended = &starts[start] * (&reached[accepted] - beyond);
            starts[start + accepted + 1] += ended;
        }
    }
    Rational::total(&starts[..tokens])
}

fn ordered(finding: &mut Finding) {
    let mut family = Family::new(1904);
    let one = Rational::one();
    for _ in 0..600 {
        let tokens = family.between(2, 8);
        let most = family.between(1, 4);
        let ratios = random_ratios(&mut family, tokens);
        // A law of the accepted number from chances one after the other.
        let reached = |next: &mut dyn FnMut(&Rational, &Rational) -> Rational,
                       chances: &[Rational]| {
            let mut reached = vec![Rational::one()];
            for chance in chances {
                reached.push(next(&reached[reached.len() - 1], chance));
            }
            reached
        };
        let products = |coins: &[Rational]| reached(&mut |before, coin| before * coin, coins);
        let coins: Vec<Rational> = ratios.iter().map(|ratio| ratio.smaller(&one)).collect();
        let of_token = |start: usize, length: usize| products(&coins[start..start + length]);
        let token = calls_by(tokens, most, of_token);
        let by_replay = replayed(ChainRule::TOKEN, &ratios, most);
        finding.same(&token, &by_replay, || format!("{ratios:?}"));
        let block = replayed(ChainRule::BLOCK, &ratios, most);
        // Coins that are no less, and laws that are no less: from each start another.
        let raised = coins
            .iter()
            .map(|coin| coin + coin.complement() * quarters(&mut family));
        let raised: Vec<Rational> = raised.collect();
        let several = calls_by(tokens, most, |start, length| {
            products(&raised[start..start + length])
        });
        let mut raise = |law: Vec<Rational>| {
            let mut next =
                |most: &Rational, least: &Rational| least + (most - least) * quarters(&mut family);
            reached(&mut next, &law[1..])
        };
        let any = calls_by(tokens, most, |start, length| raise(of_token(start, length)));
        finding.add("texts, three rules each", 1);
        for calls in [&block, &several, &any] {
            let name = "rules with fewer calls than token verification";
            finding.tally(name, *calls < token);
            finding.require(*calls <= token, || {
                format!("{ratios:?}, L = {most}: {calls} calls, token verification {token}")
            });
        }
        // At least block verification's is not enough to be ordered against it.
        let of_block = |start: usize, length: usize| {
            let mut product = Rational::one();
            let mut next = |before: &Rational, ratio: &Rational| {
                product *= ratio;
                before.smaller(&product)
            };
            reached(&mut next, &ratios[start..start + length])
        };
        let beyond = calls_by(tokens, most, |start, length| raise(of_block(start, length)));
        let name = "rules above block verification a round, with more calls than it";
        finding.tally(name, beyond > block);
    }
}

/// 0, 1/4, .. or 1.
fn quarters(family: &mut Family) -> Rational {
    part(family.between(0, 4), 4)
}

/// Ratios of so many tokens.
fn random_ratios(family: &mut Family, tokens: usize) -> Vec<Rational> {
    let ratios = (0..tokens).map(|_| part(family.between(0, 9), family.between(1, 6)));
    ratios.collect()
}

/// The chance that each place of a text is marked, if the path from it lives there: a place with s > 0
/// of which none of the next `most` that the path lives to is marked.
fn marks(coins: &[Rational], least: &[Rational], most: usize) -> Vec<Rational> {
    let mut marks = vec![Rational::zero(); least.len()];
    // How far the next marked place is, at it or behind it; the last entry is for `most` and more.
    let mut next = vec![Rational::zero(); most + 1];
    next[most] = Rational::one();
    for place in (0..least.len()).rev() {
        // The coin of the token behind this place lets a path live.
        let coin = coins.get(place).cloned().unwrap_or_default();
        let free = &coin * &next[most] + coin.complement();
        let mut here = vec![Rational::zero(); most + 1];
        for distance in 0..most {
            here[distance + 1] += &coin * &next[distance];
        }
        let entry = if least[place].is_positive() { 0 } else { most };
        here[entry] += &free;
        if entry == 0 {
            marks[place] = free;
        }
        next = here;
    }
    marks
}

fn token_is_above(finding: &mut Finding) {
    let mut family = Family::new(1906);
    let (mut equal, mut block_below) = (0, 0);
    let one = Rational::one();
    for _ in 0..2000 {
        let (tokens, most) = (family.between(1, 9), family.between(1, 4));
        let ratios = random_ratios(&mut family, tokens);
        finding.add("texts", 1);
        let name = || format!("{ratios:?}, L = {most}");
        finding.about(name, |finding| {
            let least = fewest_starts(&ratios, most);
            let coins: Vec<Rational> = ratios.iter().map(|ratio| ratio.smaller(&one)).collect();
            let marks = marks(&coins, &least, most);
            let (fewest, proved) = (Rational::total(&least), Rational::total(&marks));
            finding.at_most("the fewest", &fewest, &proved);
            // No start has more than one marked place among itself and those that its drafts live
            // to.
            for start in 0..marks.len() {
                let (mut alive, mut sum) = (Rational::one(), marks[start].clone());
                for place in start + 1..marks.len().min(start + most + 1) {
                    alive *= &coins[place - 1];
                    sum += &alive * &marks[place];
                }
                finding.at_most("marks behind a start", &sum, &one);
            }
            let token = replayed(ChainRule::TOKEN, &ratios, most);
            finding.at_most("what is proved", &proved, &token);
            equal += u64::from(token == fewest);
            block_below += u64::from(replayed(ChainRule::BLOCK, &ratios, most) < fewest);
            Some(())
        });
    }
    finding.count("of these with as many calls as the sum", equal);
    let name = "of these on which block verification makes fewer";
    finding.count(name, block_below);
    finding.enough(&[name], 0);
}

/// What is carried at a prefix: sigma and a by age.
#[derive(Clone)]
struct Carried {
    drafted: Vec<Rational>,
    kept: Vec<Rational>,
    /// Given out, by age and token.
    given: Vec<Vec<Rational>>,
}

/// The rows of rounds, by where they began.
type RowsByStart = BTreeMap<(usize, Vec<usize>), Vec<Rational>>;

fn any_giving_is_lossless(finding: &mut Finding) {
    let mut family = Family::new(1907);
    for index in 0..48 {
        let (pair, most, name) = model(&mut family, index);
        let mut rows = RowsByStart::new();
        for prefix in starts_of(&pair).keys() {
            for start in prefix.len().saturating_sub(most)..=prefix.len() {
                rows.insert((start, prefix.clone()), family.row(pair.vocab()));
            }
        }
        let carried = choose(&mut family, &pair, &rows, most);
        let [starts, texts] = decoded_by_start(&pair, &rows, &carried);
        finding.same(&texts, &pair.texts(), &name);
        for (prefix, p) in starts_of(&pair) {
            if p.is_positive() {
                let begun = starts.get(&prefix).cloned().unwrap_or_default();
                finding.same(begun, &p * &carried[&prefix].drafted[0], || {
                    format!("{}, starts behind {prefix:?}", name())
                });
            }
        }
        finding.add("models, every draft, stop and next token", 1);
        let moves = |one: &Carried| one.drafted[0] < Rational::one();
        let moved = "of these in which rounds do not start everywhere";
        finding.tally(moved, carried.values().any(moves));
    }
}

/// Chooses what is given out behind every prefix, parents first.
fn choose(
    family: &mut Family,
    pair: &Pair,
    rows: &RowsByStart,
    most: usize,
) -> BTreeMap<Vec<usize>, Carried> {
    let mut all = BTreeMap::<Vec<usize>, Carried>::new();
    for (prefix, chance) in starts_of(pair) {
        let (mut drafted, mut kept) = (vec![Rational::one()], vec![Rational::one()]);
        if let Some((&token, before)) = prefix.split_last() {
            let Some([target, _]) = pair.rows(before).filter(|_| chance.is_positive()) else {
                continue;
            };
            let (here, p) = (&all[before], &target[token]);
            let ages = here.given.len();
            let longer = (0..ages).map(|age| {
                &here.drafted[age] * &rows[&(before.len() - age, before.to_vec())][token] / p
            });
            drafted.extend(longer);
            kept.extend((0..ages).map(|age| &here.given[age][token] / p));
            let onwards: Rational = kept[1..].iter().sum();
            kept[0] = onwards.complement();
            drafted[0] = kept[0].clone();
        }
        let Some([target, _]) = pair.rows(&prefix) else {
            continue;
        };
        let mut left = target.clone();
        let ages = match prefix.len() + 1 < pair.tokens() {
            true => drafted.len().min(most),
            false => 0,
        };
        let mut given = vec![vec![Rational::zero(); target.len()]; ages];
        for age in 0..ages {
            let row = &rows[&(prefix.len() - age, prefix.clone())];
            let mut budget = kept[age].clone();
            for token in 0..target.len() {
                let offered = &drafted[age] * &row[token];
                let most = offered.smaller(&left[token]).smaller(&budget);
                let given_out = most * quarters(family);
                left[token] -= &given_out;
                budget -= &given_out;
                given[age][token] = given_out;
            }
        }
        let chosen = Carried {
            drafted,
            kept,
            given,
        };
        all.insert(prefix, chosen);
    }
    all
}

/// Every draft, stop and next token: where rounds start, and the texts.
fn decoded_by_start(
    pair: &Pair,
    rows: &RowsByStart,
    carried: &BTreeMap<Vec<usize>, Carried>,
) -> [BTreeMap<Vec<usize>, Rational>; 2] {
    let paths = |start: &[usize], weight: Rational| {
        let (mut open, mut whole) = (vec![(start.to_vec(), weight)], Vec::new());
        while let Some((path, weight)) = open.pop() {
            let age = path.len() - start.len();
            if carried.get(&path).is_some_and(|one| age < one.given.len()) {
                let row = positive(&rows[&(start.len(), path.clone())]);
                open.extend(row.map(|(token, q)| (extended(&path, token), &weight * q)));
            } else {
                whole.push((path, weight));
            }
        }
        whole
    };
    let stops = |node: &[usize], age: usize| {
        let (one, [target, _]) = (carried.get(node)?, pair.rows(node)?);
        let out: Rational = one.given.get(age).iter().flat_map(|row| row.iter()).sum();
        let all = &one.drafted[age] - &out;
        let free = (0..target.len()).map(|token| {
            let given = one.given.iter().map(|row| &row[token]);
            &target[token] - given.sum::<Rational>()
        });
        (!all.is_nil()).then(|| ((&one.kept[age] - &out) / all, free.collect()))
    };
    settled(pair, paths, stops)
}
