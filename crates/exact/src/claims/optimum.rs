//! Claims about the optimum and its formulations.

use super::Finding;
use super::claim::claims;
use super::family::{
    Family, drafting, each, optimum, over, overlap, part, positive, rows, subsets, under, whole,
};
use specgap_core::certify;
use specgap_core::coupling::Coupling;
use specgap_core::lp::formulation::{TupleLaw, dual, full};
use specgap_core::lp::{Backend, MiniLp};
use specgap_core::optimum::{ScaledInstance, closed_form, enumeration, flow};
use specgap_core::problem::Problem;
use specgap_core::scheme::{SchemeName, WithReplacement};
use specgap_number::distribution::Rational;
use specgap_number::number::Number;

claims! {
    holds "otm-membership-equal" by membership_equal,
        "the membership program has the optimum of the full transport program",
        "SpecHub, Theorem 1; Hu et al., Lemma 1",
        "On random problems of every law the exact optimum of the membership \
        program (a maximum flow) is extended to a full coupling, whose marginals and acceptance \
        are checked in fractions; the full program, solved in floating point, must not be above \
        it.";
    holds "otm-subset-equal" by subset_equal,
        "alpha* = 1 + min over H of [P(H) - Q(H)] for any law of the drafts",
        "Hu et al., eq. 8",
        "Maximum flow against all 2^V subsets, in exact arithmetic, on random problems \
        of every law.";
    holds "dual-integral" by dual_integral,
        "the dual program has an optimal 0/1 vertex, because its matrix is totally \
        unimodular",
        "Hu et al., sec. 3.2",
        "Every square submatrix of up to four rows of a small instance's constraint matrix has \
        determinant -1, 0 or 1; and on random problems some 0/1 vector, found by rounding the \
        simplex answer, has exactly the value alpha*.";
    holds "khisti-n2" by khisti,
        "Khisti et al.'s formula for two i.i.d. drafts is the subset selection formula",
        "Hu et al., App. B, eq. 34",
        "min over H of P(H) + q(H^c)^2 + 2 q(H) q(H^c) against the flow, exactly: \
        the last two terms are 1 - q(H)^2.";
    holds "spectr-upper-tight" by spectr_upper,
        "SpecTr's upper bound, minimised over its set, equals alpha*",
        "SpecTr, Theorem 1 (stated as an upper bound)",
        "The bound is evaluated as printed for every set, in fractions. It is never \
        below alpha*, and at the optimal H it cannot be above 1 + P(H) - Q(H): its first sum is \
        at most P(H), its second at most P(some draft outside H).";
    holds "monotone-n" by monotone,
        "alpha* never falls with one more i.i.d. draft; its limit is the target's mass on \
        the draft's support",
        "SpecTr, Lemma 1",
        "Exact optima for n = 1 to 6 on random pairs; and at n = 64 the distance to \
        the limit is at most (1 - smallest q)^64 a token.";
    holds "uniform" by uniform,
        "draft uniform on d tokens, target uniform on d/r of them: alpha* = 1-(1-1/r)^n",
        "SpecTr, App. B.2",
        "Exact flow against the formula for all d <= 12, r dividing d, n <= 4.";
    holds "bernoulli" by bernoulli,
        "two tokens, i.i.d. drafts: alpha* = min(p, 1-(1-q)^n) + min(1-p, 1-q^n)",
        "SpecTr, App. B.2",
        "Exact flow against the formula for p, q in {0, 1/8, ..., 1} and n <= 5.";
}

fn membership_equal(finding: &mut Finding) {
    let mut worst: f64 = 0.0;
    let problems = Family::new(101).of_all_schemes(30, 5, 3);
    finding.count("problems a law", 30);
    over(finding, &problems, |finding, problem| {
        let alpha = optimum(problem);
        let coupling = Coupling::extend(problem, &flow::solve(problem).into_plan());
        let accepted = certify::coupling(problem, &coupling).map(certify::Certified::into_inner);
        finding.equal(accepted.as_ref(), Ok(&alpha));
        let law = TupleLaw::of(problem.scheme());
        let program = full(problem.target().probabilities(), &law);
        let primal = MiniLp.solve(&program).primal?;
        worst = worst.max(certify::distance(program.objective_at(&primal), &alpha));
        Some(())
    });
    finding.at_most("the full program is off", worst, 1e-9);
    finding.text("full program within", "1e-9");
}

fn subset_equal(finding: &mut Finding) {
    let problems = Family::new(102).of_all_schemes(150, 5, 3);
    finding.count("problems a law", 150);
    over(finding, &problems, |finding, problem| {
        let by_subsets = match ScaledInstance::exact(problem) {
            ScaledInstance::Native(instance) => enumeration::solve(&instance),
            ScaledInstance::Big(instance) => enumeration::solve(&instance),
        };
        finding.equal(by_subsets.rate.rational(), Some(&optimum(problem)));
        Some(())
    });
}

fn dual_integral(finding: &mut Finding) {
    minors(finding);
    let problems = Family::new(104).of_all_schemes(25, 5, 3);
    finding.count("problems a law", 25);
    over(finding, &problems, |finding, problem| {
        let alpha = optimum(problem);
        let law = TupleLaw::of(problem.scheme());
        let answer = MiniLp.solve(&dual(problem.target().probabilities(), &law));
        // Some level set of y is an optimal vertex, exactly.
        let y = &answer.primal?[..problem.vocab()];
        let exact = (0..=4).any(|level| {
            let threshold = f64::from(level) * 0.25 + 1e-6;
            let tokens = 0..problem.vocab();
            let subset: Vec<usize> = tokens.filter(|&token| y[token] >= threshold).collect();
            certify::upper_bound(problem, &subset).is_ok_and(|bound| *bound.get() == alpha)
        });
        finding.require(exact, || format!("no level set of {y:?}"));
        Some(())
    });
}

/// Square submatrices of one instance's matrix: three tokens, all nine pairs.
fn minors(finding: &mut Finding) -> Option<()> {
    let third = || vec![part(1, 3); 3];
    let problem = iid(third(), third(), 2)?;
    let law = TupleLaw::of(problem.scheme());
    let program = dual(problem.target().probabilities(), &law);
    let rows = program.rows.iter().map(|row| {
        let mut entries = vec![0; program.variables()];
        for &(variable, coefficient) in &row.terms {
            entries[variable] = coefficient as i64;
        }
        entries
    });
    let matrix: Vec<Vec<i64>> = rows.collect();
    let choices = |count: usize, size: usize| -> Vec<Vec<usize>> {
        subsets(count).filter(|set| set.len() == size).collect()
    };
    for size in 1..=matrix.len().min(program.variables()).min(4) {
        let columns = choices(program.variables(), size);
        for rows in choices(matrix.len(), size) {
            for columns in &columns {
                finding.add("minors", 1);
                let entries = |row: &Vec<i64>| columns.iter().map(|&at| row[at]).collect();
                let minor = rows.iter().map(|&row| entries(&matrix[row]));
                let value = determinant(&minor.collect::<Vec<_>>());
                finding.require(value.abs() <= 1, || format!("a minor is {value}"));
            }
        }
    }
    Some(())
}

/// Laplace expansion along the first row.
fn determinant(matrix: &[Vec<i64>]) -> i64 {
    let Some((first, rest)) = matrix.split_first() else {
        return 1;
    };
    let columns = (0..first.len()).filter(|&column| first[column] != 0);
    let terms = columns.map(|column| {
        let mut minor = rest.to_vec();
        for row in &mut minor {
            row.remove(column);
        }
        let sign = if column % 2 == 0 { 1 } else { -1 };
        sign * first[column] * determinant(&minor)
    });
    terms.sum()
}

fn khisti(finding: &mut Finding) {
    let mut family = Family::new(105);
    finding.count("problems", 200);
    for _ in 0..200 {
        let vocab = family.between(2, 7);
        let problems = family.problem(SchemeName::WITH_REPLACEMENT, vocab, 2);
        over(finding, problems.as_slice(), |finding, problem| {
            let (p, q) = (problem.target().exact(), problem.scheme().draft()?.exact());
            let formula = subsets(vocab).map(|subset| {
                let inside = q.mass(&subset);
                let outside = inside.complement();
                p.mass(&subset) + outside.power(2) + &inside * &outside + inside * outside
            });
            finding.equal(formula.min(), Some(optimum(problem)));
            Some(())
        });
    }
}

fn spectr_upper(finding: &mut Finding) {
    let problems = Family::new(106).problems(SchemeName::WITH_REPLACEMENT, 150, 5, 3);
    each(finding, "problems", &problems, |finding, problem| {
        let (alpha, target) = (optimum(problem), problem.target().exact());
        let drafted: Vec<Rational> = (0..problem.vocab())
            .map(|token| {
                let others: Vec<usize> = (0..problem.vocab()).filter(|&x| x != token).collect();
                problem.scheme().inside_exact(&others).complement()
            })
            .collect();
        let mut best = whole(2);
        for set in subsets(problem.vocab()) {
            // sum over the set of min(p(y), P(y is drafted))
            let members = set.iter();
            let mut bound: Rational = members
                .map(|&token| target.probability(token).smaller(&drafted[token]))
                .sum();
            // sum over tuples of min(D(X), p of its tokens outside the set)
            problem.scheme().for_each_tuple_exact(&mut |tuple, chance| {
                let tokens = specgap_core::coupling::distinct(tuple).into_iter();
                let tokens = tokens.map(|token| token as usize);
                let outside: Vec<usize> = tokens.filter(|token| !set.contains(token)).collect();
                bound += target.mass(&outside).smaller(chance);
            });
            finding.require(bound >= alpha, || format!("at {set:?}"));
            best = best.min(bound);
        }
        finding.equal(best, alpha);
        Some(())
    });
}

fn monotone(finding: &mut Finding) {
    let mut family = Family::new(107);
    finding.count("pairs", 120);
    for _ in 0..120 {
        let vocab = family.between(2, 4);
        let problems = family.problem(SchemeName::WITH_REPLACEMENT, vocab, 1);
        over(finding, problems.as_slice(), |finding, one| {
            let [p, q] = rows(one)?;
            let with = |drafts: usize| {
                let more = under(one, |q, _| WithReplacement::new(q, drafts));
                more.map(|problem| optimum(&problem))
            };
            let mut before = Rational::zero();
            for drafts in 1..=6 {
                let now = with(drafts)?;
                finding.at_most("with fewer drafts", &before, &now);
                before = now;
            }
            let limit: Rational = positive(&q).map(|(token, _)| &p[token]).sum();
            let (_, rarest) = positive(&q).min_by_key(|(_, mass)| *mass)?;
            let distance = limit - with(64)?;
            let bound = rarest.complement().power(64) * whole(vocab);
            let near = distance >= Rational::zero() && distance <= bound;
            finding.require(near, || "n = 64 is not near the limit".to_owned());
            Some(())
        });
    }
}

fn uniform(finding: &mut Finding) {
    for d in 1usize..=12 {
        for r in (1..=d).filter(|r| d % r == 0) {
            for drafts in 1..=4usize {
                let even = |count: usize| vec![part(1, count); count];
                let (q, mut p) = (even(d), even(d / r));
                p.resize(d, Rational::zero());
                let formula = part(1, r).complement().power(drafts).complement();
                let name = || format!("d = {d}, r = {r}, n = {drafts}");
                finding.about(name, |finding| {
                    let problem = iid(p, q, drafts)?;
                    finding.add("cases", 1);
                    finding.equal(&optimum(&problem), &formula);
                    let closed = closed_form::solve(&problem)?;
                    finding.equal(closed.rate.rational(), Some(&formula));
                    Some(())
                });
            }
        }
    }
}

fn bernoulli(finding: &mut Finding) {
    for (a, b) in (0..=8).flat_map(|a| (0..=8).map(move |b| (a, b))) {
        for drafts in 1..=5usize {
            let [p, q] = [a, b].map(|k: i32| vec![part(k, 8), part(8 - k, 8)]);
            // Token i is drafted but where all drafts are the other one.
            let drafted = |i: usize| q[1 - i].power(drafts).complement();
            let formula = overlap(&p, &[drafted(0), drafted(1)]);
            let name = || format!("{p:?} {q:?} {drafts}");
            finding.about(name, |finding| {
                let problem = iid(p.clone(), q.clone(), drafts)?;
                finding.add("cases", 1);
                finding.equal(optimum(&problem), formula);
                Some(())
            });
        }
    }
}

fn iid(p: Vec<Rational>, q: Vec<Rational>, drafts: usize) -> Option<Problem> {
    drafting(p, q, |q| WithReplacement::new(q, drafts))
}
