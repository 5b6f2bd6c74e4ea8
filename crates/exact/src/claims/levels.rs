//! Claims about stratified drafts and rejection by level.

use super::Finding;
use super::claim::claims;
use super::family::{
    Family, describe, drafting, each, fraction, fractions, many, optimum, over, overlap, part,
    positive, rows, subsets, under, whole,
};
use specgap_core::certify;
use specgap_core::problem::Problem;
use specgap_core::scheme::{
    DistinctConditioned, DraftScheme, Explicit, Product, SchemeName, Straddle, Stratified,
    WithReplacement, WithoutReplacement,
};
use specgap_core::verifier::{
    Level, Verifier, VerifierName, output_law, output_law_exact, total_variation, verifier,
};
use specgap_number::distribution::{Draft, Rational, Target, TupleProbabilities, round_nearest};
use specgap_number::number::Number;
use specgap_plan::{LevelPasses, LevelPlan, Levels, Strata};

claims! {
    holds "level-optimal-iid" by level_of_iid,
        "for n i.i.d. drafts the level rule accepts exactly alpha*, and the tokens that \
        it does not use up are a set H with alpha* = 1 + P(H) - q(H)^n",
        "ours; docs/theory/level-rule.md, Theorem L1",
        "The rule's own H is put into 1 + P(H) - q(H)^n, in fractions, against the \
        flow. The rule, in floats, is summed over all tuples: its output against p, what it \
        accepts against the flow.";
    holds "level-optimal-strata" by level_of_strata,
        "for independent drafts, no token in two of them, the level rule accepts exactly \
        alpha*",
        "ours; docs/theory/level-rule.md, Theorem L2",
        "Strata that no token straddles, with certain tokens and without: levels that \
        follow the largest ratio enclose the flow's optimum within 1e-5, and the set that they \
        do not use up has 1 + P(H) - Q(H) = alpha*, in fractions; level-4, summed over all \
        tuples in fractions, is never above. Strata that share tokens are enclosed too, but \
        the enclosure need not close.";
    holds "rejection-three-quarters" by three_quarters,
        "recursive rejection and level passes of independent drafts accept at least \
        alpha* - alpha*^2/4, hence 3/4 of alpha*; one pass of n i.i.d. drafts at least c_n \
        alpha*, c_n = 1 - max of h^n (1 - h^(n-1)), and no more in general",
        "ours; docs/theory/level-rule.md, Theorem G",
        "Acceptance summed over all tuples, in fractions, of i.i.d. drafts, drafts of \
        different laws and independent strata, against the flow; the rejected share w against \
        (1 - P(H)) Q(H), H the tokens that the residual lacks. p = (1 - h^n, h^n), \
        q = (1 - h, h) attains c_n: 23/27 for n = 2, and h to three digits for others; two \
        different drafts attain 3/4.";
    holds "rrs-hockey-stick" by hockey_stick,
        "recursive rejection of n i.i.d. drafts accepts 1 - phi(K_n), phi(K) = sum of \
        (p - K q)+, K_0 = 0, K_(m+1) = K_m + phi(K_m), and its residual is (p - K_n q)+",
        "ours; docs/theory/level-rule.md, section 4",
        "The recursion in fractions against the verifier's law summed over all tuples \
        and its residual.";
    holds "stratified-dominates-iid" by dominates_iid,
        "stratified drafts, straddling tokens drafted once or not, have Q(H) <= q(H)^n for \
        every H, so that their alpha* is never below that of n i.i.d. drafts",
        "ours; docs/theory/stratified.md, Theorem S1",
        "Q of both laws on all subsets against the power, in fractions; and the optima.";
    holds "deville-dominates" by once_dominates,
        "strata whose straddling tokens are drafted once have Q(H) at most that of \
        independent strata for every H, and draft no token twice",
        "ours; docs/theory/stratified.md, Theorem D",
        "Q of both laws on all subsets, in fractions; every tuple's tokens differ; and \
        the optima.";
    holds "pps-ceiling" by ceiling,
        "stratified drafts draft x with pi(x) = min(1, c q(x)), the sum of pi being n; \
        alpha* is at most the sum of min(p, pi), and equal to it just if no draw has two \
        tokens of U = {p >= pi} and each C outside U is hit by draws without U with p(C) at \
        least",
        "ours; docs/theory/stratified.md, section 5",
        "pi by water-filling of q against the law of the sets, and alpha* by flow against \
        the ceiling and the condition, on every C, in fractions.";
    supported "level-optimal-once" by level_of_once,
        "the level rule, with one clock a token, accepts alpha* of stratified drafts that \
        draft straddling tokens once",
        "ours; docs/theory/level-rule.md, section 6 (a conjecture)",
        "Levels that follow the largest ratio are made finer until alpha* is enclosed; \
        what they accept is held against the flow, on random problems with straddling tokens.";
    supported "level-optimal-independent" by level_of_independent,
        "the level rule, with one clock a token, accepts alpha* of independent drafts, each of \
        a row of its own",
        "ours; docs/theory/level-rule.md, section 6 (a conjecture)",
        "What the rule's passes accept is held against the flow, and 1 + P(H) - Q(H), H the \
        tokens that they do not use up, in fractions: on random problems, and on the strata that \
        share a token, where a clock for each draft and token stays below.";
    supported "level-optimal-sequential" by level_of_sequential,
        "the level rule accepts alpha* of sequential draws without replacement, and of \
        i.i.d. draws given that all differ",
        "ours; docs/theory/level-rule.md, section 6 (a conjecture)",
        "Passes token by token over the law of the sets, at levels that fall from the \
        largest ratio by 10%, 2% and so on to .016% until they are within 2e-4 of the flow's optimum. Explicit \
        laws of pairs, for which the level rule need not be optimal, show that the search can fail.";
    supported "rrs-wo-three-quarters" by rrs_wo_three_quarters,
        "recursive rejection without replacement accepts at least 3/4 of alpha* of \
        sequential draws",
        "ours; docs/theory/level-rule.md, section 6 (a conjecture)",
        "Its acceptance, summed over all tuples in fractions, against the flow, on random \
        problems and, from the lowest of them, by random steps of p and q downhill.";
    refuted "certain-not-monotone" of certain_not_monotone,
        in ["refuted/certain-not-monotone-one.toml", "refuted/certain-not-monotone-none.toml"]
        "of two cuts of one q, the one with more certain tokens has the smaller Q(H) for \
        every H",
        "a natural guess; refuted by specgap",
        "Wrong for n = 4: q = (12, 8, 5, 5, 5, 5)/40, H = {0, 1, 4, 5}. With token 0 \
        certain, as the law has it, Q(H) = 3/49; in four strata without a certain token it is 0, \
        as one of 2 and 3 is always drafted. For p = (0, 0, 1/2, 1/2, 0, 0) the optima are 46/49 \
        and 1.";
    refuted "strata-not-undominated" of strata_not_undominated,
        in ["refuted/strata-not-undominated-independent.toml",
            "refuted/strata-not-undominated-sequential.toml"]
        "sequential draws are not at least as good as independent strata for every target",
        "a natural guess; refuted by specgap",
        "Wrong for q uniform on three tokens and n = 2: Q({1}) is 1/9 of independent \
        strata and 0 of sequential draws, Q({0, 2}) 4/9 and 1/3, and Q of all other sets is the \
        same. For p = (1/2, 0, 1/2) the optima are 8/9 and 1.";
    refuted "thresholds-not-optimal" of thresholds_not_optimal,
        in ["refuted/thresholds-not-optimal.toml"]
        "passes over i.i.d. drafts that take whole tokens at falling thresholds of p/q come \
        to alpha* as the thresholds grow finer",
        "a natural guess; refuted by specgap",
        "Wrong: infinitely fine thresholds take one token after the other, by falling p/q, \
        each to the end. For q = (1, 1, 3)/5, p = (0, 1, 4)/5 and n = 2 they accept 47/50 of \
        24/25. The order is a vertex of what can be given out; the optimum is a mixture of \
        vertices, which tokens of one current ratio, run together, attain.";
    refuted "fixed-levels-do-not-converge" of fixed_levels,
        in ["refuted/fixed-levels-do-not-converge.toml"]
        "passes over strata at m levels of equal distance come to alpha* as m grows",
        "a natural guess; refuted by specgap",
        "Wrong: on two strata of two tokens each, 1,024 levels lose nothing, and 16,000 \
        lose .0177. Where the ratio of tied tokens wants to rise, a pass takes large bites \
        however close the levels are. Levels that follow the largest ratio converge.";
    refuted "madow-not-dominating" of madow_not_dominating,
        in ["refuted/madow-not-dominating-madow.toml", "refuted/madow-not-dominating-iid.toml"]
        "Madow's systematic sampling, one uniform number for all strata, has Q(H) <= q(H)^n \
        for every H",
        "a natural guess; refuted by specgap",
        "Wrong, although its inclusion is min(1, c q) too: for q = (1, 5, 5, 2, 2)/15 and \
        n = 2 both drafts are in {1, 3} with 4/15, and two i.i.d. ones with 49/225. For the \
        target that fits i.i.d. drafts without loss it accepts 214/225.";
    refuted "straddled-strata-not-reached" of straddled_strata,
        in ["refuted/straddled-strata-not-reached.toml"]
        "level passes, draft by draft, come to alpha* of independent strata that share a token",
        "a natural guess; refuted by specgap",
        "Wrong: q = (1, 2, 2, 2)/7, n = 2, p = (2, 2, 1, 0)/5. Token 2 has 3/7 of the first \
        stratum and 1/7 of the second, where its ratio looks high: it is taken there at once, at \
        any level. 199/245 is accepted of 31/35.";
    refuted "level-not-universal" of universal,
        in ["refuted/level-not-universal.toml"]
        "the level rule accepts alpha* of every law of drafts",
        "a natural guess; refuted by specgap",
        "Wrong: pairs {0, 1}, {0, 2}, {2, 3} with 4/11, 1/11, 6/11, and p = (1, 0, 1, 1)/3. \
        H = {0, 1} alone attains alpha* = 32/33, so a rule that does has to use up 2 and 3 \
        before 0. But 0 has the largest ratio, 11/15 to 11/21 and 11/18. Until it meets 3 it \
        comes out on 1/35 of all draws that have 2 as well, and at most 32/33 - 1/35 is accepted.";
    refuted "slots-apart-below-three-quarters" of slots_apart,
        in ["refuted/slots-apart-below-three-quarters.toml"]
        "level-4 accepts at least 3/4 of alpha* of drafts that straddle once",
        "a natural guess; refuted by specgap",
        "Wrong: Theorem G needs independent drafts or one clock a token, and level-4 \
        treats the two slots of a straddling token as two tokens. Of three tokens of 1/3, n = 2 \
        and p = (3/5, 2/5, 0), it accepts 11/15 of 1.";
}

/// Sums what a rule accepts over all tuples in fractions; a violation where its output is not p.
fn summed(finding: &mut Finding, problem: &Problem, name: VerifierName) -> Option<Rational> {
    let rule = verifier(name, problem).ok();
    let law = rule.and_then(|rule| output_law_exact(&*rule, problem.scheme()));
    let target = Rational::row(problem.target());
    let fits = law.as_ref().is_some_and(|law| law.output == target);
    finding.require(fits, || format!("{name} does not put out p"));
    law.map(|law| law.membership)
}

/// Problems of several drafts. Half of the rows are as [`Family::problem`] has them, half have no
/// heavy tokens: such a q is cut into several strata, and tokens straddle the cuts.
fn mixed<S: DraftScheme + 'static>(
    family: &mut Family,
    count: usize,
    vocab: usize,
    law: impl Fn(Draft, usize) -> S,
) -> Vec<Problem> {
    many(count, || {
        let vocab = family.between(3, vocab);
        let drafts = family.between(2, 4.min(vocab - 1));
        let [p, q] = [(); 2].map(|()| match family.below(2) {
            0 => (0..vocab).map(|_| family.below(8) as u64 + 1).collect(),
            _ => family.weights(vocab),
        });
        drafting(fractions(&p), fractions(&q), |q| law(q, drafts))
    })
}

fn once(draft: Draft, drafts: usize) -> Stratified {
    Stratified::new(draft, drafts, Straddle::Once)
}

fn apart(draft: Draft, drafts: usize) -> Stratified {
    Stratified::new(draft, drafts, Straddle::Independent)
}

/// 1 + P(H) - Q(H).
fn bound(problem: &Problem, held: &[usize]) -> Option<Rational> {
    Some(certify::upper_bound(problem, held).ok()?.into_inner())
}

fn held(problem: &Problem, holds: impl Fn(u32) -> bool) -> Vec<usize> {
    let tokens = 0..problem.vocab();
    tokens.filter(|&token| holds(token as u32)).collect()
}

fn level_of_iid(finding: &mut Finding) {
    let problems = mixed(&mut Family::new(901), 500, 6, WithReplacement::new);
    each(finding, "problems", &problems, |finding, problem| {
        let alpha = optimum(problem);
        let draft = problem.scheme().draft()?;
        let plan = LevelPlan::iid(problem.target(), draft, problem.drafts()).ok()?;
        let set = held(problem, |token| plan.holds(token));
        finding.tally("with a set H that is not empty", !set.is_empty());
        finding.equal(&bound(problem, &set)?, &alpha);
        let rule = verifier(VerifierName::LEVEL, problem).ok()?;
        let law = output_law(&*rule, problem.scheme());
        let fits = (law.algorithmic - round_nearest(&alpha)).abs() <= 1e-12
            && total_variation(&law, problem.target()).value <= 1e-12;
        finding.require(fits, || format!("not p, or not alpha* = {alpha}"));
        Some(())
    });
    finding.text("rule summed over tuples within", "1e-12");
}

/// Independent strata that no token straddles, two at least, and in some problems certain tokens.
fn clean_strata(family: &mut Family, count: usize) -> Vec<Problem> {
    many(count, || {
        let (vocab, drafts) = (family.between(3, 7), family.between(2, 4));
        let mut weights: Vec<u64> = (0..vocab).map(|_| family.between(1, 6) as u64).collect();
        if family.below(3) == 0 {
            weights[0] = 60;
        }
        let problem = drafting(family.row(vocab), fractions(&weights), |q| apart(q, drafts))?;
        let strata = Strata::of(problem.scheme().draft()?, drafts);
        let is_clean = strata.strata() > 1 && strata.straddlers().iter().all(Option::is_none);
        is_clean.then_some(problem)
    })
}

/// More passes than rows of a log get: where all that is drafted can be accepted, the enclosure
/// narrows no faster than the steps do.
const FOLLOWING: Levels<'_> = Levels::Adaptive {
    width: 1e-9,
    passes: 200_000,
};

/// The passes whose levels follow the largest ratio.
fn adaptive(problem: &Problem, straddle: Straddle) -> Option<LevelPasses> {
    let draft = problem.scheme().draft()?;
    let (target, drafts) = (problem.target(), problem.drafts());
    LevelPasses::solve(target, draft, drafts, straddle, FOLLOWING).ok()
}

/// Tells whether alpha\* is in the enclosure, and how wide that is.
fn enclosed(passes: &LevelPasses, alpha: &Rational) -> (bool, f64) {
    let (known, alpha) = (passes.optimal_acceptance_rate(), round_nearest(alpha));
    let inside = known.lower() <= alpha + 1e-12 && alpha <= known.upper() + 1e-12;
    (inside, known.width())
}

fn level_of_strata(finding: &mut Finding) {
    let mut family = Family::new(902);
    let (mut attained, mut closed, mut widest) = (0, 0, 0.0f64);
    let clean = clean_strata(&mut family, 200);
    let straddled = mixed(&mut family, 100, 6, apart);
    for (name, problems, is_clean) in [
        ("problems without straddling tokens", clean, true),
        ("with them, or with one stratum", straddled, false),
    ] {
        each(finding, name, &problems, |finding, problem| {
            let alpha = optimum(problem);
            let passes = adaptive(problem, Straddle::Independent)?;
            let (inside, width) = enclosed(&passes, &alpha);
            finding.require(inside, || format!("{alpha} is outside"));
            if is_clean {
                widest = widest.max(width);
                finding.at_most("the width", width, 1e-5);
                let least = bound(problem, &held(problem, |token| passes.holds(token)))?;
                finding.equal(&least, &alpha);
            } else {
                closed += u64::from(width <= 1e-5);
            }
            let four = summed(finding, problem, VerifierName::LEVEL_4)?;
            finding.at_most("level-4", &four, &alpha);
            attained += u64::from(four == alpha);
            Some(())
        });
    }
    finding.number("widest enclosure without straddling tokens", widest);
    finding.count("closed among the others", closed);
    finding.count("of all, level-4 attains alpha* in", attained);
}

/// Tells whether x <= max over h of h^n (1 - h^(n-1)), which is at h^(n-1) = n/(2n-1).
fn at_most_worst(share: &Rational, drafts: usize) -> bool {
    if drafts < 2 {
        return share.is_nil();
    }
    // It is h n (n-1)/(2n-1)^2, so that h >= x (2n-1)^2/(n (n-1)).
    let odd = whole(2 * drafts - 1);
    let least = share * &odd * &odd / whole(drafts * (drafts - 1));
    least.power(drafts - 1) <= whole(drafts) / odd
}

/// c_n in floats.
fn least_share(drafts: usize) -> f64 {
    let n = drafts as f64;
    let power = n / (2.0 * n - 1.0);
    1.0 - power.powf(n / (n - 1.0)) * (1.0 - power)
}

/// Tokens that the residual lacks.
fn used_up(problem: &Problem, rule: &dyn Verifier) -> Option<Vec<usize>> {
    let mut residual = None;
    problem.scheme().for_each_tuple_exact(&mut |tuple, _| {
        if residual.is_none() {
            residual = rule.conditional_exact(tuple).map(|law| law.residual);
        }
    });
    let residual = residual?;
    Some(held(problem, |token| residual[token as usize].is_nil()))
}

/// Returns what recursive rejection of drafts of these laws accepts where the optimum is 1.
fn of_worst(finding: &mut Finding, p: Vec<Rational>, rows: Vec<Vec<Rational>>) -> Rational {
    let made = || {
        let drafts = rows.into_iter().map(Draft::from_rationals);
        let law = Product::new(drafts.collect::<Result<_, _>>().ok()?)?;
        Problem::new("worst", Target::from_rationals(p).ok()?, law).ok()
    };
    let problem = made().filter(|problem| optimum(problem) == Rational::one());
    finding.require(problem.is_some(), || {
        "an optimum of 1 is missing".to_owned()
    });
    let accepted = problem.and_then(|problem| summed(finding, &problem, VerifierName::RRS));
    accepted.unwrap_or_default()
}

fn three_quarters(finding: &mut Finding) {
    let mut family = Family::new(903);
    let runs: [(SchemeName, &[VerifierName]); 3] = [
        (SchemeName::WITH_REPLACEMENT, &[VerifierName::RRS]),
        (SchemeName::PRODUCT, &[VerifierName::RRS]),
        (
            SchemeName::STRATIFIED_INDEPENDENT,
            &[VerifierName::RRS, VerifierName::LEVEL_4],
        ),
    ];
    let mut smallest = Rational::one();
    for (scheme, names) in runs {
        over(
            finding,
            &family.problems(scheme, 150, 5, 3),
            |finding, problem| {
                let alpha = optimum(problem);
                let least = &alpha - &alpha * &alpha / whole(4);
                for &name in names {
                    let accepted = summed(finding, problem, name)?;
                    finding.add("runs", 1);
                    finding.at_most("3/4", &least, &accepted);
                    if !alpha.is_nil() {
                        let ratio = &accepted / &alpha;
                        let iid = scheme == SchemeName::WITH_REPLACEMENT;
                        let sharp = !iid || at_most_worst(&ratio.complement(), problem.drafts());
                        finding.require(sharp, || format!("{accepted} of {alpha} is below c_n"));
                        smallest = smallest.clone().min(ratio);
                    }
                    let rejected = accepted.complement();
                    finding.tally(REJECTING, !rejected.is_nil());
                    if !rejected.is_nil() {
                        let set = used_up(problem, &*verifier(name, problem).ok()?)?;
                        let missed = problem.target().exact().mass(&set).complement();
                        let most = missed * problem.scheme().inside_exact(&set);
                        finding.at_most("w", &rejected, &most);
                    }
                }
                Some(())
            },
        );
    }
    finding.number("smallest ratio to alpha*", round_nearest(&smallest));
    finding.same(finding.counted("runs"), 600, || "runs".to_owned());

    for (drafts, name, h) in [
        (2, "c_2 attained", "2/3"),
        (3, "c_3 attained", "775/1000"),
        (4, "c_4 attained", "830/1000"),
        (8, "c_8 attained", "914/1000"),
    ] {
        let h = fraction(h);
        let split = |share: Rational| vec![share.complement(), share];
        let rows = vec![split(h.clone()); drafts];
        let accepted = of_worst(finding, split(h.power(drafts)), rows);
        let share = round_nearest(&accepted);
        finding.number(name, share);
        let attains = at_most_worst(&accepted.complement(), drafts)
            && (share - least_share(drafts)).abs() < 1e-6
            && (drafts > 2 || accepted == fraction("23/27"));
        finding.require(attains, || format!("n = {drafts}: {accepted}"));
    }
    let row = |share: &str| vec![fraction(share), fraction(share).complement()];
    let accepted = of_worst(finding, row("1/2"), vec![row("0"), row("1/2")]);
    finding.fraction("two different drafts attain", &accepted);
    finding.same(accepted, fraction("3/4"), || {
        "two different drafts".to_owned()
    });
}

const REJECTING: &str = "of them with w > 0, held against (1 - P(H)) Q(H)";

fn hockey_stick(finding: &mut Finding) {
    let problems = mixed(&mut Family::new(904), 200, 5, WithReplacement::new);
    each(finding, "problems", &problems, |finding, problem| {
        let [p, q] = rows(problem)?;
        let rest = |factor: &Rational| -> Vec<Rational> {
            let rows = p.iter().zip(&q);
            rows.map(|(p, q)| p.excess_over(&(factor * q))).collect()
        };
        let phi = |factor: &Rational| Rational::total(&rest(factor));
        let mut factor = Rational::zero();
        for _ in 0..problem.drafts() {
            factor += phi(&factor);
        }
        let left = phi(&factor);
        let found = summed(finding, problem, VerifierName::RRS)?;
        finding.equal(found, left.complement());
        finding.tally("residuals", !left.is_nil());
        if !left.is_nil() {
            let rule = verifier(VerifierName::RRS, problem).ok()?;
            let tuple = vec![positive(&q).next()?.0 as u32; problem.drafts()];
            let law = rule.conditional_exact(&tuple)?;
            let expected: Vec<Rational> = rest(&factor).iter().map(|rest| rest / &left).collect();
            let same = law.residual[..] == expected;
            finding.require(same, || "the residual differs".to_owned());
        }
        Some(())
    });
}

/// Q of the first laws on all subsets, each against that of the last.
fn never_above(finding: &mut Finding, laws: &[&Problem], mut seen: impl FnMut(&mut Finding, bool)) {
    let Some((last, laws)) = laws.split_last() else {
        return;
    };
    for set in subsets(last.vocab()) {
        let most = last.scheme().inside_exact(&set);
        for law in laws {
            let inside = law.scheme().inside_exact(&set);
            seen(finding, inside < most);
            finding.require(inside <= most, || {
                format!("{} at {set:?}: {inside} > {most}", describe(law))
            });
        }
    }
}

/// Checks two shipped laws so, if they are what they are shipped as; whether they are is evidence.
fn never_above_if(finding: &mut Finding, name: &'static str, holds: bool, laws: [&Problem; 2]) {
    finding.text(name, if holds { "yes" } else { "no" });
    if holds {
        never_above(finding, &laws, |_, _| ());
    }
}

/// Random draws that straddle once, with other laws of the same q: Q of the last is never below, and
/// its optimum never above that of the others. Counts the sets, on how many Q is smaller, and how many
/// optima are larger.
fn dominated(
    finding: &mut Finding,
    (seed, count): (u64, usize),
    [sets, better]: [&'static str; 2],
    others: impl Fn(&mut Finding, &Problem) -> Option<Vec<Problem>>,
) {
    let problems = mixed(&mut Family::new(seed), count, 7, once);
    each(finding, "problems", &problems, |finding, own| {
        let others = others(finding, own)?;
        let laws: Vec<&Problem> = std::iter::once(own).chain(&others).collect();
        never_above(finding, &laws, |finding, is_less| {
            finding.add(sets, 1);
            finding.tally("of them strictly", is_less);
        });
        let optima: Vec<Rational> = laws.iter().map(|law| optimum(law)).collect();
        let (least, optima) = optima.split_last()?;
        for alpha in optima {
            finding.tally(better, alpha > least);
            finding.at_most("the optimum of the last", least, alpha);
        }
        Some(())
    });
}

fn dominates_iid(finding: &mut Finding) {
    let names = ["sets, of both laws", "optima strictly above, of both laws"];
    dominated(finding, (905, 400), names, |_, own| {
        Some(vec![under(own, apart)?, under(own, WithReplacement::new)?])
    });
}

fn once_dominates(finding: &mut Finding) {
    let names = ["sets", "optima strictly above"];
    dominated(finding, (906, 500), names, |finding, own| {
        own.scheme().for_each_tuple_exact(&mut |tuple, _| {
            let differ = specgap_core::coupling::distinct(tuple).len() == tuple.len();
            finding.require(differ, || format!("{tuple:?}"));
        });
        Some(vec![under(own, apart)?])
    });
}

/// min(1, c q) that sums to n, by raising c until so many tokens are full; all of a support that
/// is smaller than n.
fn inclusion(draft: &Draft, drafts: usize) -> Vec<Rational> {
    let q = |token: usize| draft.exact().probability(token);
    let mut falling = draft.support();
    falling.sort_by_key(|&token| std::cmp::Reverse(q(token)));
    let mut rest: Rational = falling.iter().map(|&token| q(token)).sum();
    for (full, &token) in falling.iter().enumerate().take(drafts) {
        let factor = whole(drafts - full) / &rest;
        if &factor * q(token) <= Rational::one() && drafts <= falling.len() {
            let pi = |token| (&factor * q(token)).min(Rational::one());
            return (0..draft.vocab()).map(pi).collect();
        }
        rest -= q(token);
    }
    let pi = |token| whole(u32::from(draft.is_positive(token)));
    (0..draft.vocab()).map(pi).collect()
}

fn ceiling(finding: &mut Finding) {
    let problems = mixed(&mut Family::new(907), 600, 6, once);
    each(finding, "problems", &problems, |finding, problem| {
        let (draft, strata) = (problem.scheme().draft()?, under(problem, apart)?);
        let target = Rational::row(problem.target());
        let pi = inclusion(draft, problem.drafts());
        let law = problem.scheme().exact_set_law();
        let mass = |counts: &dyn Fn(&[u32]) -> bool| -> Rational {
            let sets = law.sets.iter().zip(&law.weights);
            let counted = sets.filter(|(set, _)| counts(set)).map(|one| one.1.clone());
            let sum: num_bigint::BigUint = counted.sum();
            specgap_number::distribution::ratio(&sum, &law.total)
        };
        for (token, pi) in pi.iter().enumerate() {
            finding.equal(&mass(&|set| set.contains(&(token as u32))), pi);
        }
        let most = overlap(&target, &pi);
        let alpha = optimum(problem);
        finding.at_most("alpha*", &alpha, &most);
        finding.at_most("alpha* of strata", &optimum(&strata), &most);
        let scarce = |token: u32| target[token as usize] >= pi[token as usize];
        let among = |set: &[u32]| set.iter().filter(|&&token| scarce(token)).count();
        let condition = law.sets.iter().all(|set| among(set) < 2)
            && subsets(problem.vocab()).all(|others| {
                if others.iter().any(|&token| scarce(token as u32)) {
                    return true;
                }
                let hit = |set: &[u32]| set.iter().any(|&token| others.contains(&(token as usize)));
                let wanted: Rational = others.iter().map(|&token| &target[token]).sum();
                mass(&|set| among(set) == 0 && hit(set)) >= wanted
            });
        let attains = alpha == most;
        finding.require(condition == attains, || {
            format!("{alpha} of {most}: {condition}")
        });
        finding.tally("of them at the ceiling", condition);
        Some(())
    });
}

fn level_of_once(finding: &mut Finding) {
    let mut worst = 0.0f64;
    let problems = mixed(&mut Family::new(908), 400, 7, once);
    each(finding, "problems", &problems, |finding, problem| {
        let passes = adaptive(problem, Straddle::Once)?;
        let straddles = passes.strata().straddlers().iter().any(Option::is_some);
        finding.tally("of them with straddling tokens", straddles);
        let alpha = optimum(problem);
        let (inside, width) = enclosed(&passes, &alpha);
        let short = round_nearest(&alpha) - passes.acceptance_rate().value();
        finding.require(inside && width <= 1e-4 && short <= 1e-4, || {
            format!("{short:e} below {alpha}, open by {width:e}")
        });
        worst = worst.max(short);
        Some(())
    });
    finding.number("largest distance", worst);
}

fn level_of_independent(finding: &mut Finding) {
    let mut worst = 0.0f64;
    let mut problems = Family::new(913).problems(SchemeName::PRODUCT, 300, 6, 4);
    // problems/refuted/straddled-strata-not-reached.toml, as independent rows.
    let rows = [[0, 4, 3, 0], [2, 0, 1, 4]].map(|row| Draft::from_rationals(fractions(&row)));
    let target = Target::from_rationals(fractions(&[2, 2, 1, 0]));
    if let ([Ok(first), Ok(second)], Ok(target)) = (rows, target) {
        let law = Product::new(vec![first, second]);
        problems.extend(law.and_then(|law| Problem::new("strata", target, law).ok()));
    }
    each(finding, "problems", &problems, |finding, problem| {
        let rule = Level::new(problem).ok()?;
        let (alpha, rate) = (optimum(problem), rule.acceptance().membership);
        let short = round_nearest(&alpha) - rate.value();
        let least = bound(problem, &rule.held())?;
        finding.require(least >= alpha && short.abs() <= 1e-4, || {
            format!("{short:e} below {alpha}")
        });
        finding.tally("of them with a set that attains alpha*", least == alpha);
        worst = worst.max(short);
        Some(())
    });
    finding.number("largest distance", worst);
}

/// Passes over a law of sets, token by token, one clock a token.
struct Clocks {
    sets: Vec<Vec<usize>>,
    /// P(set is drafted and nothing is accepted yet).
    alive: Vec<f64>,
    /// Of p, what is not given out yet.
    left: Vec<f64>,
    /// Tokens of all sets, which have no clock: the last draw accepts them.
    certain: Vec<usize>,
}

impl Clocks {
    fn new(problem: &Problem) -> Self {
        let law = problem.scheme().set_law();
        let set = |set: &[u32]| set.iter().map(|&token| token as usize).collect();
        let sets: Vec<Vec<usize>> = law.sets.iter().map(set).collect();
        let in_all = |token: &usize| sets.iter().all(|set| set.contains(token));
        Self {
            certain: (0..problem.vocab()).filter(in_all).collect(),
            sets,
            alive: law.probabilities,
            left: problem.target().probabilities().to_vec(),
        }
    }

    fn drafted(&self, token: usize) -> f64 {
        let sets = self.sets.iter().zip(&self.alive);
        sets.filter(|(set, _)| set.contains(&token))
            .map(|one| one.1)
            .sum()
    }

    /// The largest ratio of what is left of the target to what is left of the drafts.
    fn largest(&self) -> f64 {
        let tokens = (0..self.left.len()).filter(|token| !self.certain.contains(token));
        tokens
            .map(|token| (self.left[token], self.drafted(token)))
            .filter(|&(left, drafted)| left > 0.0 && drafted > 0.0)
            .map(|(left, drafted)| left / drafted)
            .fold(0.0, f64::max)
    }

    /// Brings ratios above the level down to it.
    fn pass(&mut self, level: f64, order: &[usize]) {
        for &token in order {
            let drafted = self.drafted(token);
            if self.certain.contains(&token) || drafted <= 0.0 {
                continue;
            }
            let left = self.left[token];
            let take = if left >= drafted {
                drafted
            } else {
                ((left - level * drafted) / (1.0 - level)).clamp(0.0, left)
            };
            self.left[token] -= take;
            let survives = if take < drafted {
                1.0 - take / drafted
            } else {
                0.0
            };
            for (set, alive) in self.sets.iter().zip(&mut self.alive) {
                if set.contains(&token) {
                    *alive *= survives;
                }
            }
        }
    }

    fn accepted(&self) -> f64 {
        let certain: f64 = self.certain.iter().map(|&token| self.left[token]).sum();
        1.0 - self.alive.iter().sum::<f64>() + certain
    }

    /// Levels that fall from the largest ratio by a part, and 0 where no token can be used up
    /// any more.
    fn follow(mut self, part: f64) -> f64 {
        let order: Vec<usize> = (0..self.left.len()).collect();
        let low = 0.5 / (order.len() + 1) as f64;
        loop {
            let ratio = self.largest();
            if ratio < low {
                self.pass(0.0, &order);
                return self.accepted();
            }
            self.pass((1.0 - part) * ratio.min(1.0), &order);
        }
    }
}

/// What steps of a finite size may leave of a distance.
const CLOSE: f64 = 2e-4;

/// Returns how far the level rule stays below alpha\*, at levels as fine as [`CLOSE`] needs.
fn falls_short(problem: &Problem) -> f64 {
    let alpha = round_nearest(&optimum(problem));
    let mut short = 1.0;
    for part in [0.1, 0.02, 0.004, 0.0008, 0.00016] {
        short = f64::min(short, alpha - Clocks::new(problem).follow(part));
        if short <= CLOSE {
            break;
        }
    }
    short
}

/// Problems of two different tokens, drawn by any law.
fn any_pairs(family: &mut Family, count: usize) -> Vec<Problem> {
    let vocab = 5;
    let pairs = || (0..vocab).flat_map(move |y| (0..y).map(move |x| vec![x, y]));
    many(count, || {
        let weights = family.row(pairs().count());
        let p = Target::from_rationals(fractions(&family.positive_weights(vocab as usize)));
        let law = TupleProbabilities::from_rationals(weights).ok()?;
        let law = Explicit::new(vocab as usize, 2, pairs().collect(), law).ok()?;
        Problem::new("random", p.ok()?, law).ok()
    })
}

fn level_of_sequential(finding: &mut Finding) {
    let mut family = Family::new(909);
    let mut worst: f64 = 0.0;
    for problems in [
        mixed(&mut family, 300, 6, WithoutReplacement::new),
        mixed(&mut family, 300, 6, DistinctConditioned::new),
    ] {
        over(finding, &problems, |finding, problem| {
            let short = falls_short(problem);
            worst = worst.max(short);
            let is_close = (-1e-12..=CLOSE).contains(&short);
            finding.require(is_close, || format!("{short:e} below alpha*"));
            Some(())
        });
    }
    finding.count("problems a law", 300);
    finding.number("largest distance", worst);
    let pairs = any_pairs(&mut family, 600);
    let distances: Vec<f64> = pairs.iter().map(falls_short).collect();
    let misses = distances.iter().filter(|short| **short > CLOSE).count();
    finding.count("any laws of pairs", pairs.len() as u64);
    finding.count("of them further below", misses as u64);
    finding.number("by up to", distances.into_iter().fold(0.0, f64::max));
    finding.enough(&["of them further below"], 0);
}

fn rrs_wo_three_quarters(finding: &mut Finding) {
    let mut family = Family::new(910);
    // What is accepted over alpha* for n sequential draws of whole weights.
    let ratio = |finding: &mut Finding, [p, q]: &[Vec<u64>; 2], drafts: usize| {
        let law = |q| WithoutReplacement::new(q, drafts);
        let problem = drafting(fractions(p), fractions(q), law)?;
        let alpha = optimum(&problem);
        let accepted = summed(finding, &problem, VerifierName::RRS_WO)?;
        let ratio = (!alpha.is_nil()).then(|| accepted / alpha)?;
        finding.require(ratio >= fraction("3/4"), || {
            format!("{}: {ratio}", describe(&problem))
        });
        Some(ratio)
    };
    let (mut tried, mut stepped) = (0, 0);
    for (drafts, name) in [(2, "lowest ratio for n = 2"), (3, "for n = 3")] {
        let mut lowest = Rational::one();
        for _ in 0..6 {
            let mut best: Option<(Rational, [Vec<u64>; 2])> = None;
            for _ in 0..30 {
                let rows = [(); 2].map(|()| family.weights(drafts + 1));
                let Some(found) = ratio(finding, &rows, drafts) else {
                    continue;
                };
                tried += 1;
                if best.as_ref().is_none_or(|(known, _)| found < *known) {
                    best = Some((found, rows));
                }
            }
            let Some((mut least, mut rows)) = best else {
                continue;
            };
            for _ in 0..200 {
                let mut next = rows.clone();
                let row = &mut next[family.below(2)];
                let place = family.below(row.len());
                row[place] = match family.below(4) {
                    0 => row[place] * 3 / 2 + 1,
                    1 => row[place] * 2 / 3,
                    2 => row[place].saturating_sub(1),
                    _ => row[place] + 1,
                };
                if row.iter().all(|&weight| weight == 0) || row[place] > 100_000 {
                    continue;
                }
                stepped += 1;
                let found = ratio(finding, &next, drafts).unwrap_or_else(Rational::one);
                if found <= least {
                    (least, rows) = (found, next);
                }
            }
            lowest = lowest.min(least);
        }
        finding.number(name, round_nearest(&lowest));
    }
    finding.count("random problems", tried);
    finding.count("steps downhill", stepped);
    finding.enough(&["random problems"], 200);
}

fn certain_not_monotone(finding: &mut Finding, [one, none]: [Problem; 2]) {
    finding.optimum("alpha* with a certain token", &one);
    finding.optimum("alpha* without", &none);
    // The second law is of the first one's q: of 4 drafts a share of q(x) is x in the mean.
    let mut shares = vec![Rational::zero(); none.vocab()];
    none.scheme().for_each_tuple_exact(&mut |tuple, mass| {
        for &token in tuple {
            shares[token as usize] += mass / whole(4);
        }
    });
    let same = rows(&one).is_some_and(|[_, q]| q == shares);
    for (name, problem) in [("Q({0, 1, 4, 5}) with it", &one), ("without", &none)] {
        let inside = problem.scheme().inside_exact(&[0, 1, 4, 5]);
        finding.fraction(name, &inside);
    }
    let name = "drafts of both in proportion to one q";
    never_above_if(finding, name, same, [&one, &none]);
}

fn strata_not_undominated(finding: &mut Finding, [strata, sequential]: [Problem; 2]) {
    finding.optimum("alpha* of independent strata", &strata);
    finding.optimum("alpha* of sequential draws", &sequential);
    let (mut above, mut below) = (0, 0);
    for set in subsets(strata.vocab()) {
        let [a, b] = [&strata, &sequential].map(|law| law.scheme().inside_exact(&set));
        above += u64::from(b > a);
        below += u64::from(b < a);
    }
    finding.count("sets where Q of sequential draws is larger", above);
    finding.count("sets where it is smaller", below);
    finding.require(above > 0 || below == 0, || {
        let name = describe(&strata);
        format!("{name}: sequential draws are better for every target")
    });
}

/// Returns what is accepted where tokens run one after the other by falling p/q, each through all
/// drafts to the end; tokens of one ratio together.
fn by_thresholds(problem: &Problem) -> Option<Rational> {
    let [p, q] = rows(problem)?;
    let ratio = |token: usize| &p[token] / &q[token];
    let mut tokens: Vec<usize> = positive(&q).map(|(token, _)| token).collect();
    tokens.sort_by_key(|&token| std::cmp::Reverse(ratio(token)));
    let mut left = p.clone();
    // Of each draft, what no pass took.
    let mut rest = vec![Rational::one(); problem.drafts()];
    for tied in tokens.chunk_by(|&a, &b| ratio(a) == ratio(b)) {
        for draft in 0..rest.len() {
            let others = rest.iter().enumerate().filter(|(other, _)| *other != draft);
            let price: Rational = others.map(|one| one.1).product();
            for &token in tied {
                let take = (&price * &q[token]).min(left[token].clone());
                left[token] -= &take;
                if !price.is_nil() {
                    rest[draft] -= take / &price;
                }
            }
        }
    }
    Some(rest.iter().product::<Rational>().complement())
}

fn thresholds_not_optimal(finding: &mut Finding, [problem]: [Problem; 1]) {
    let alpha = finding.optimum("alpha*", &problem);
    let accepted = by_thresholds(&problem).unwrap_or_else(|| alpha.clone());
    finding.fraction("accepted by thresholds", &accepted);
    finding.require(accepted >= alpha, || {
        format!("{}: {accepted} of {alpha}", describe(&problem))
    });
    let mut most = 0.0f64;
    let problems = mixed(&mut Family::new(911), 300, 6, WithReplacement::new);
    finding.count("random problems", problems.len() as u64);
    for problem in &problems {
        let short = by_thresholds(problem).map(|accepted| optimum(problem) - accepted);
        let short = round_nearest(&short.unwrap_or_default());
        finding.tally("of them below alpha*", short > 0.0);
        most = most.max(short);
    }
    finding.number("below by up to", most);
}

fn fixed_levels(finding: &mut Finding, [problem]: [Problem; 1]) {
    let alpha = round_nearest(&optimum(&problem));
    // From the last stratum to the first: {1, 3}, then {0, 2}.
    let order = [1, 3, 0, 2];
    let [coarse, _, fine] = [
        (1024, "1,024 levels lose"),
        (1000, "1,000 lose"),
        (16_000, "16,000 lose"),
    ]
    .map(|(count, name)| {
        let mut clocks = Clocks::new(&problem);
        for level in (0..count).rev() {
            clocks.pass(f64::from(level) / f64::from(count), &order);
        }
        let loss = alpha - clocks.accepted();
        finding.text(name, format!("{:.4}", loss.abs()));
        loss
    });
    let follows = (alpha - Clocks::new(&problem).follow(1e-3)).abs();
    finding.text("levels that follow the ratio lose", format!("{follows:.4}"));
    // Sixteen times finer, and further away.
    finding.require(fine <= coarse + 1e-4, || {
        format!("product, n = 2: 16,000 levels lose {fine:.4}")
    });
}

/// The tokens at the places u, 1 + u and so on of q stretched to n, u uniform on [0, 1), in the
/// order of their ids.
fn madow(q: &[Rational], drafts: usize) -> Vec<(Vec<usize>, Rational)> {
    let count = whole(drafts);
    let mut end = Rational::zero();
    let ends: Vec<Rational> = (q.iter().map(|mass| mass * &count))
        .map(|length| {
            end += length;
            end.clone()
        })
        .collect();
    let mut cuts: Vec<Rational> = ends.iter().map(Rational::fract).collect();
    cuts.extend([Rational::zero(), Rational::one()]);
    cuts.sort();
    cuts.dedup();
    let draw = |from: &Rational| -> Vec<usize> {
        let place = |stratum: usize| from + whole(stratum);
        (0..drafts)
            .map(|stratum| ends.partition_point(|end| *end <= place(stratum)))
            .collect()
    };
    cuts.windows(2)
        .map(|pair| (draw(&pair[0]), &pair[1] - &pair[0]))
        .collect()
}

fn madow_not_dominating(finding: &mut Finding, [systematic, iid]: [Problem; 2]) {
    finding.optimum("alpha* of Madow's draws", &systematic);
    finding.optimum("alpha* of i.i.d. drafts", &iid);
    let q = rows(&iid).map(|[_, q]| q).unwrap_or_default();
    let inside = |law: &[(Vec<usize>, Rational)], set: &[usize]| -> Rational {
        let draws = law.iter();
        let whole = draws.filter(|(draw, _)| draw.iter().all(|token| set.contains(token)));
        whole.map(|one| &one.1).sum()
    };
    let law = madow(&q, 2);
    let same =
        subsets(q.len()).all(|set| inside(&law, &set) == systematic.scheme().inside_exact(&set));
    let name = "the shipped draws are Madow's";
    never_above_if(finding, name, same, [&systematic, &iid]);
    // How often it fails.
    let mut family = Family::new(912);
    let (mut tried, mut fails) = (0, 0);
    while tried < 300 {
        let (vocab, drafts) = (family.between(3, 6), family.between(2, 3));
        let q = fractions(&family.positive_weights(vocab));
        if q.iter().any(|mass| *mass > part(1, drafts)) {
            continue;
        }
        tried += 1;
        let law = madow(&q, drafts);
        fails += u64::from(subsets(vocab).any(|set| {
            let mass: Rational = set.iter().map(|&token| &q[token]).sum();
            inside(&law, &set) > mass.power(drafts)
        }));
    }
    finding.count("random q without a certain token", tried);
    finding.count("of them with a set where it fails", fails);
}

fn straddled_strata(finding: &mut Finding, [problem]: [Problem; 1]) {
    let alpha = finding.optimum("alpha*", &problem);
    let four = summed(finding, &problem, VerifierName::LEVEL_4).unwrap_or_default();
    finding.fraction("level-4", &four);
    let Some(passes) = adaptive(&problem, Straddle::Independent) else {
        return;
    };
    let known = passes.acceptance_rate();
    finding.number("levels that follow the ratio", known.value());
    finding.require(known.upper() >= round_nearest(&alpha) - 1e-6, || {
        format!("{}: {} of {alpha}", describe(&problem), known.value())
    });
}

/// The level rule's first token, x, runs alone until its ratio meets the largest of tokens that
/// are never drafted with it, which stay. Where every set that attains alpha\* holds x, what it
/// gives out of draws that touch the complement is lost (`docs/theory/level-rule.md`, Lemma 0).
fn universal(finding: &mut Finding, [problem]: [Problem; 1]) {
    let alpha = finding.optimum("alpha*", &problem);
    let vocab = problem.vocab();
    let target = problem.target().exact();
    let mut law: Vec<(Vec<usize>, Rational)> = Vec::new();
    problem.scheme().for_each_tuple_exact(&mut |tuple, mass| {
        let tuple = tuple.iter().map(|&token| token as usize);
        law.push((tuple.collect(), mass.clone()));
    });
    let drafted = |holds: &dyn Fn(&[usize]) -> bool| -> Rational {
        let draws = law.iter().filter(|(draw, _)| holds(draw));
        draws.map(|(_, mass)| mass).sum()
    };
    let minimisers: Vec<Vec<usize>> = subsets(vocab)
        .filter(|set| bound(&problem, set).as_ref() == Some(&alpha))
        .collect();
    let included = |x: usize| drafted(&|draw| draw.contains(&x));
    let ratio = |x: usize| match included(x) {
        all if all.is_nil() => Rational::zero(),
        all => target.probability(x) / all,
    };
    let Some(first) = (0..vocab).max_by_key(|&x| ratio(x)) else {
        return;
    };
    let with_first =
        |x: usize| drafted(&|draw: &[usize]| draw.contains(&x) && draw.contains(&first));
    let others = (0..vocab).filter(|&x| x != first);
    let apart = others.clone().filter(|&x| with_first(x).is_nil());
    let met = apart.map(ratio).max().unwrap_or_default();
    // (p - (1 - t) pi)/(t pi) = met; others that are drafted with it are below until then.
    let one = Rational::one;
    let gone = one() - (one() - ratio(first)) / (one() - &met);
    let alone = others.filter(|&x| !included(x).is_nil()).all(|x| {
        let left = included(x) - &gone * with_first(x);
        target.probability(x) <= &met * left
    });
    let least = minimisers.iter().map(|set| {
        let across =
            |draw: &[usize]| draw.contains(&first) && draw.iter().any(|x| !set.contains(x));
        match set.contains(&first) {
            true => drafted(&across) * &gone,
            false => Rational::zero(),
        }
    });
    let lost = least.min().unwrap_or_default();
    finding.count("sets that attain it", minimisers.len() as u64);
    finding.count("the token that runs first", first as u64);
    finding.fraction("its ratio", &ratio(first));
    finding.fraction("the ratio that it meets", &met);
    finding.fraction("lost at least", &lost);
    finding.require(!alone || lost <= Rational::zero(), || {
        format!("{}: at most {alpha} - {lost}", describe(&problem))
    });
}

fn slots_apart(finding: &mut Finding, [problem]: [Problem; 1]) {
    let alpha = finding.optimum("alpha*", &problem);
    let Some(four) = summed(finding, &problem, VerifierName::LEVEL_4) else {
        return;
    };
    finding.fraction("level-4", &four);
    finding.require(&four / &alpha >= fraction("3/4"), || {
        format!("{}: {four} of {alpha}", describe(&problem))
    });
}
