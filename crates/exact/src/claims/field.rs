//! Claims about rules that circulate as code and in issues, and not in a paper's theorem.

use super::claim::problem;
use super::family::{Family, fraction};
use super::{Claim, Finding};
use specgap_number::distribution::Rational;
use specgap_number::number::Number;

const COIN: &str = problem!("refuted/prune-after-draw");

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        id: "hsd-uncapped",
        statement: "hierarchical speculative decoding, as its public code runs it, keeps the target's law",
        source: "arXiv 2601.05724, by its code in transformers at b8575e2 and its algorithm_clean.py; the paper's text \
            was not read",
        explanation: "Wrong as it runs: it keeps a whole block with min(1, the product of p/q), uncapped on the way, and \
            steps back by the capped one. On its own toy, p = (1/3, 2/3) and q = (2/3, 1/3) at two places, it accepts 4/3 \
            tokens where block verification accepts 11/9, and its first tokens are off by a total variation of 1/9. With \
            the capped product there too it is block verification: the law of the text and of what is accepted are the \
            same, by every draft and stop, in fractions, on the toy and on random rows.",
        check: hierarchical,
        ..Claim::refuted(&["refuted/hsd-uncapped.toml"])
    },
    Claim {
        id: "draw-for-each-candidate",
        statement: "a draw of the target for each drafted path, of which the path that agrees longest with its own wins, \
            keeps the target's law",
        source: "a reading of an engine's code (fms-extras, issue 12)",
        explanation: "Wrong: paths that begin a, a, a, e, with p(a) = p(e) = 1/2, put out a unless all three draws of its \
            paths miss it, 7/8, a total variation of 3/8. One draw a node is lossless.",
        check: candidates,
        ..Claim::refuted(&["refuted/draw-for-each-candidate.toml"])
    },
    Claim {
        id: "beam-as-sample",
        statement: "the likeliest path of a draft's beam may be verified as a sample of q, with min(1, p/q) and (p - q)+",
        source: "a reading of recurrent drafting by beams",
        explanation: "Wrong: with p = (1/2, 1/2) and q = (3/4, 1/4) the beam drafts token 0 each time. Kept with 2/3, else \
            token 1: the output is (2/3, 1/3). Kept with p, as a one-hot law, it is lossless; both in fractions on random \
            rows.",
        check: beam,
        ..Claim::refuted(&["refuted/prune-after-draw.toml"])
    },
    Claim {
        id: "rule-by-the-drafts",
        statement: "where two rules are lossless, one may be chosen in each round by what was drafted",
        source: "a reading of rules that switch",
        explanation: "Wrong: with p = (1/2, 1/2) and q = (3/4, 1/4), token verification behind a draft of 0 and a plain draw \
            behind a draft of 1 put out 0 with 3/4 2/3 + 1/4 1/2 = 5/8. A choice that does not look at the drafts is \
            lossless, and accepts the mean: the output's law is a mean of two that are p.",
        check: chosen,
        ..Claim::refuted(&["refuted/prune-after-draw.toml"])
    },
    Claim {
        id: "block-by-marginals",
        statement: "a block drafter that draws each place by itself from the right marginal is accepted as one that draws \
            the block",
        source: "a natural reading of block drafters (dflash, issue 169)",
        explanation: "Wrong: the target writes 00 or 11, each with 1/2. Places drawn by themselves from (1/2, 1/2) have 1 + \
            1/2 tokens accepted of 2 by token verification, and by any lossless rule; drafts of the joint law, of the same \
            marginals, 2. Token verification by the marginal of each place is lossless, as each draft is a sample of the \
            row that it is tested with; what is lost is acceptance. On random targets, in fractions.",
        check: by_marginals,
        ..Claim::refuted(&["refuted/block-by-marginals.toml"])
    },
];

/// The law of the first L + 1 tokens, by the numbers of their digits in base V, and how many drafts are accepted.
struct Played {
    law: Vec<Rational>,
    accepted: Rational,
}

/// Where a round of drafts ends: the probability of each number of kept drafts, and the law of the next token.
type Stops = Vec<(Rational, Vec<Rational>)>;

/// Plays a round of L drafts, `stops` being told of a path, and the target's rows behind it.
fn play(
    target: &[Vec<Rational>],
    draft: &[Vec<Rational>],
    stops: &dyn Fn(&[usize]) -> Stops,
) -> Played {
    let (places, vocab) = (draft.len(), draft[0].len());
    let mut played = Played {
        law: vec![Rational::zero(); vocab.pow(places as u32 + 1)],
        accepted: Rational::zero(),
    };
    for number in 0..vocab.pow(places as u32) {
        let path = digits(number, places, vocab);
        let drafted = product(draft, &path);
        if drafted.is_nil() {
            continue;
        }
        for (kept, (chance, next)) in stops(&path).into_iter().enumerate() {
            let mass = &drafted * &chance;
            played.accepted += &mass * &Rational::from_integer(kept.into());
            for (end, share) in played.law.iter_mut().enumerate() {
                let text = digits(end, places + 1, vocab);
                if text[..kept] == path[..kept] {
                    let later = product(&target[kept + 1..], &text[kept + 1..]);
                    *share += &mass * &next[text[kept]] * later;
                }
            }
        }
    }
    played
}

fn digits(mut number: usize, places: usize, vocab: usize) -> Vec<usize> {
    let mut found = vec![0; places];
    for digit in found.iter_mut().rev() {
        *digit = number % vocab;
        number /= vocab;
    }
    found
}

fn product(rows: &[Vec<Rational>], path: &[usize]) -> Rational {
    let each = rows.iter().zip(path).map(|(row, &token)| &row[token]);
    each.fold(Rational::one(), |all, one| &all * one)
}

fn minus(one: &[Rational], other: &[Rational]) -> Vec<Rational> {
    one.iter()
        .zip(other)
        .map(|(a, b)| a.excess_over(b))
        .collect()
}

fn times(row: &[Rational], by: &Rational) -> Vec<Rational> {
    row.iter().map(|one| one * by).collect()
}

fn normalised(row: Vec<Rational>, or: &[Rational]) -> Vec<Rational> {
    let total = Rational::total(&row);
    match total.is_nil() {
        true => or.to_vec(),
        false => row.iter().map(|one| one / &total).collect(),
    }
}

/// HSD's stops in its own notation: joint products, the capped ratio, and how much is to be made up either way.
fn hsd(
    target: &[Vec<Rational>],
    draft: &[Vec<Rational>],
    path: &[usize],
    is_capped: bool,
) -> Stops {
    let places = path.len();
    let (mut joint_p, mut joint_q) = (Rational::one(), Rational::one());
    let (mut most, mut states) = (Rational::one(), Vec::new());
    for place in 0..=places {
        let capped = &joint_p / &most;
        states.push((capped, joint_q.clone()));
        if place < places {
            joint_p *= &target[place][path[place]];
            joint_q *= &draft[place][path[place]];
            most = most.max(&joint_p / &joint_q);
        }
    }
    let whole = match is_capped {
        true => &states[places].0 / &joint_q,
        false => (&joint_p / &joint_q).smaller(&Rational::one()),
    };
    let mut stops = vec![(Rational::zero(), Vec::new()); places + 1];
    let mut left = whole.complement();
    stops[places] = (whole, target[places].clone());
    for place in (0..places).rev() {
        let (capped, joint) = &states[place];
        let [aimed, had] = [times(&target[place], capped), times(&draft[place], joint)];
        let [gain, loss] = [minus(&aimed, &had), minus(&had, &aimed)];
        let [sum, other] = [&gain, &loss].map(|row| Rational::total(row.iter()));
        let more = sum.clone().max(other);
        let here = if more.is_nil() {
            Rational::one()
        } else {
            &sum / &more
        };
        stops[place] = (&left * &here, normalised(gain, &target[place]));
        left *= here.complement();
    }
    stops
}

/// Block verification's stops (Sun et al., Algorithm 2): w = min(1, w p/q), and back from the end.
fn block(target: &[Vec<Rational>], draft: &[Vec<Rational>], path: &[usize]) -> Stops {
    let places = path.len();
    let mut weights = vec![Rational::one()];
    for (place, &token) in path.iter().enumerate() {
        let next = &weights[place] * &target[place][token] / &draft[place][token];
        weights.push(next.smaller(&Rational::one()));
    }
    let mut stops = vec![(Rational::zero(), Vec::new()); places + 1];
    let mut left = Rational::one();
    for place in (0..=places).rev() {
        let weight = &weights[place];
        let (here, next) = match place == places {
            true => (weight.clone(), target[place].clone()),
            false => {
                let more = minus(&times(&target[place], weight), &draft[place]);
                let sum = Rational::total(&more);
                let all = &sum + &weight.complement();
                let here = if all.is_nil() {
                    Rational::one()
                } else {
                    &sum / &all
                };
                (here, normalised(more, &target[place]))
            }
        };
        stops[place] = (&left * &here, next);
        left *= here.complement();
    }
    stops
}

fn hierarchical(finding: &mut Finding) {
    let row = |texts: [&str; 2]| texts.map(fraction).to_vec();
    let toy = [vec![row(["1/3", "2/3"]); 3], vec![row(["2/3", "1/3"]); 2]];
    let mut family = Family::new(2_601);
    let mut all = vec![toy];
    for _ in 0..40 {
        let (vocab, places) = (family.between(2, 3), family.between(1, 3));
        let target = (0..=places).map(|_| family.row(vocab)).collect();
        all.push([target, (0..places).map(|_| family.row(vocab)).collect()]);
    }
    let (mut off, mut same) = (0, 0);
    for [target, draft] in &all {
        let whole = digits_law(target);
        let runs = play(target, draft, &|path| hsd(target, draft, path, false));
        let capped = play(target, draft, &|path| hsd(target, draft, path, true));
        let by_block = play(target, draft, &|path| block(target, draft, path));
        let variation = Rational::total(&minus(&runs.law, &whole));
        if off + same == 0 {
            finding.fraction("accepted on the toy", &runs.accepted);
            finding.fraction("by block verification", &by_block.accepted);
            finding.fraction("total variation on the toy", &variation);
        }
        off += u64::from(!variation.is_nil());
        same += u64::from(
            capped.law == whole && by_block.law == whole && capped.accepted == by_block.accepted,
        );
        finding.require(variation.is_nil(), || {
            format!("the text's law is off by {variation}")
        });
    }
    finding.count("of 41, off as the code runs", off);
    finding.count(
        "of 41, lossless and as block verification when capped",
        same,
    );
}

/// The target's law of the first tokens.
fn digits_law(target: &[Vec<Rational>]) -> Vec<Rational> {
    let (places, vocab) = (target.len(), target[0].len());
    let all = 0..vocab.pow(places as u32);
    all.map(|number| product(target, &digits(number, places, vocab)))
        .collect()
}

fn candidates(finding: &mut Finding) {
    let (drafts, p) = ([0, 0, 0, 1], [fraction("1/2"), fraction("1/2")]);
    // Every draw of every path: the first path that agrees, or else the first one's draw.
    let mut law = [Rational::zero(), Rational::zero()];
    for number in 0..2usize.pow(4) {
        let draws = digits(number, 4, 2);
        let chance = draws
            .iter()
            .fold(Rational::one(), |all, &draw| &all * &p[draw]);
        let won = (0..4)
            .find(|&path| draws[path] == drafts[path])
            .unwrap_or(0);
        law[draws[won]] += chance;
    }
    finding.fraction("P(a)", &law[0]);
    let off = law[0].excess_over(&p[0]);
    finding.require(off.is_nil(), || format!("the output's law is off by {off}"));
}

/// Rows of the shipped pair, and of random ones.
fn pairs(finding: &mut Finding, seed: u64) -> Vec<[Vec<Rational>; 2]> {
    let mut all = Vec::new();
    if let Some([problem]) = finding.shipped([COIN])
        && let Some(q) = problem.scheme().draft()
    {
        all.push([Rational::row(problem.target()), Rational::row(q)]);
    }
    let mut family = Family::new(seed);
    all.extend((0..200).map(|_| {
        let vocab = family.between(2, 5);
        family.rows(vocab)
    }));
    all
}

/// What token verification puts out behind a draft: the share kept, and the law behind a refusal.
fn token(p: &[Rational], q: &[Rational], draft: usize) -> Vec<Rational> {
    let kept = (&p[draft] / &q[draft]).smaller(&Rational::one());
    let mut law = times(&normalised(minus(p, q), p), &kept.complement());
    law[draft] += kept;
    law
}

fn beam(finding: &mut Finding) {
    let (mut off, mut lossless) = (0, 0);
    for (index, [p, q]) in pairs(finding, 2_602).iter().enumerate() {
        let best = (0..q.len()).fold(0, |best, x| if q[x] > q[best] { x } else { best });
        let law = token(p, q, best);
        if index == 0 {
            finding.fraction("P(token 0)", &law[0]);
        }
        off += u64::from(law != *p);
        finding.require(law == *p, || format!("token 0 comes with {}", law[0]));
        let mut hot = p.clone();
        hot[best] = Rational::zero();
        let mut one_hot = times(&normalised(hot, p), &p[best].complement());
        one_hot[best] += p[best].clone();
        lossless += u64::from(one_hot == *p);
    }
    finding.count("of 201, off", off);
    finding.count("of 201, lossless as one-hot", lossless);
}

fn chosen(finding: &mut Finding) {
    let (mut off, mut lossless) = (0, 0);
    for (index, [p, q]) in pairs(finding, 2_603).iter().enumerate() {
        let by = |plain: &dyn Fn(usize) -> Rational| {
            let mut law = vec![Rational::zero(); p.len()];
            for draft in (0..q.len()).filter(|&x| !q[x].is_nil()) {
                let (verified, share) = (token(p, q, draft), plain(draft));
                for (sum, (one, own)) in law.iter_mut().zip(verified.iter().zip(p)) {
                    *sum += &q[draft] * &(one * share.complement() + own * &share);
                }
            }
            law
        };
        let switched = by(&|draft| Rational::from_integer(draft.min(1).into()));
        if index == 0 {
            finding.fraction("P(token 0)", &switched[0]);
        }
        off += u64::from(switched != *p);
        finding.require(switched == *p, || {
            format!("token 0 comes with {}", switched[0])
        });
        lossless += u64::from(by(&|_| fraction("1/3")) == *p);
    }
    finding.count("of 201, off", off);
    finding.count("of 201, lossless by a coin", lossless);
}

fn by_marginals(finding: &mut Finding) {
    let mut family = Family::new(2_604);
    let half = || vec![fraction("1/2"), fraction("1/2")];
    let certain = |token: usize| {
        (0..2)
            .map(|x| Rational::from_integer(usize::from(x == token).into()))
            .collect()
    };
    // The first row, and the second behind each first token.
    let mut all: Vec<(Vec<Rational>, Vec<Vec<Rational>>)> =
        vec![(half(), vec![certain(0), certain(1)])];
    for _ in 0..100 {
        let vocab = family.between(2, 4);
        all.push((
            family.row(vocab),
            (0..vocab).map(|_| family.row(vocab)).collect(),
        ));
    }
    let mut less = 0;
    for (index, (first, second)) in all.iter().enumerate() {
        let marginal: Vec<Rational> = (0..first.len())
            .map(|y| first.iter().zip(second).map(|(p, row)| p * &row[y]).sum())
            .collect();
        // The first draft is always kept; the second by the overlap of its row and the marginal.
        let overlap: Rational = first
            .iter()
            .zip(second)
            .map(|(p, row)| {
                row.iter()
                    .zip(&marginal)
                    .map(|(a, b)| p * a.smaller(b))
                    .sum::<Rational>()
            })
            .sum();
        let accepted = Rational::one() + &overlap;
        if index == 0 {
            finding.fraction("accepted of 2, drawn apart", &accepted);
        }
        let joint = Rational::from_integer(2.into());
        less += u64::from(accepted < joint);
        finding.require(accepted == joint, || {
            format!("{accepted} of 2 are accepted")
        });
        for row in second {
            let law: Vec<Rational> = (0..row.len())
                .filter(|&y| !marginal[y].is_nil())
                .map(|y| times(&token(row, &marginal, y), &marginal[y]))
                .fold(vec![Rational::zero(); row.len()], |sum, one| {
                    sum.iter().zip(&one).map(|(a, b)| a + b).collect()
                });
            finding.same(&law, row, || {
                "token verification by the marginal".to_owned()
            });
        }
    }
    finding.count("of 101, accepted less", less);
}
