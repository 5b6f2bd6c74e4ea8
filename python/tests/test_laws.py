"""Draft laws of one's own, against sums over all sets and tuples in fractions."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import specgap as sg

Floats = NDArray[np.float64]
Weights = Mapping[tuple[int, ...], Fraction]


def fractions(row: Sequence[float]) -> list[Fraction]:
    """A row as fractions that sum to 1."""
    exact = [Fraction(float(x)) for x in row]
    return [x / sum(exact) for x in exact]


def optimum(p: Sequence[float], law: Weights) -> Fraction:
    """alpha* by the definition: 1 + the least p(H) - Q(H) of all sets H."""
    target, least = fractions(p), Fraction(0)
    for bits in range(1 << len(target)):
        inside = {i for i in range(len(target)) if bits >> i & 1}
        mass = sum((w for drafts, w in law.items() if inside.issuperset(drafts)), Fraction(0))
        least = min(least, sum((target[i] for i in inside), Fraction(0)) - mass)
    return 1 + least


def draws(rows: Sequence[Sequence[Fraction]]) -> Weights:
    """One draw from each of several rows."""
    law: dict[tuple[int, ...], Fraction] = {}
    for drafts in itertools.product(*(range(len(row)) for row in rows)):
        mass = Fraction(1)
        for row, token in zip(rows, drafts):
            mass *= row[token]
        if mass:
            law[drafts] = mass
    return law


def top_two_and_a_draw(q: Sequence[float]) -> Weights:
    """The two heaviest tokens, and a draw from the others."""
    row = fractions(q)
    order = sorted(range(len(row)), key=lambda i: (-row[i], i))
    rest = 1 - row[order[0]] - row[order[1]]
    return {(order[0], order[1], i): row[i] / rest for i in order[2:] if row[i]}


TOP_TWO = {
    "law": "union",
    "of": [
        {"law": "top", "drafts": 2},
        {"law": "with-replacement", "drafts": 1, "avoid_top": 2},
    ],
}


def strata(q: Floats, n: int) -> tuple[list[tuple[int, ...]], list[float]]:
    """Stratified draws with one uniform number: draft i is where (i + U)/n falls in q."""
    ends = np.cumsum(q)
    ends /= ends[-1]
    own = [np.clip(n * ends - i, 0.0, 1.0) for i in range(n)]
    cuts = np.unique(np.concatenate([[0.0, 1.0], *own]))
    middles = 0.5 * (cuts[1:] + cuts[:-1])
    columns = [np.searchsorted(ends, (i + middles) / n, side="right") for i in range(n)]
    tokens = [np.minimum(one, len(q) - 1).tolist() for one in columns]
    return list(zip(*tokens)), np.diff(cuts).tolist()


@pytest.fixture(scope="module")
def pairs() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(11)
    return rng.dirichlet(np.full(7, 0.7), 12), rng.dirichlet(np.full(7, 0.7), 12)


def test_composed_laws_are_those_of_all_sets(pairs: tuple[Floats, Floats]) -> None:
    p, q = pairs
    law = sg.laws.composed(TOP_TWO)
    found = sg.alpha(p, q, scheme=law)
    assert (found.n, found.scheme) == (3, "composed")
    half = sg.laws.composed(
        {
            "law": "mixture",
            "weights": [Fraction(1, 3), "2/3"],
            "of": [{"law": "with-replacement", "drafts": n} for n in (1, 2)],
        }
    )
    mixed = sg.alpha(p, q, scheme=half)
    for row, (one, other) in enumerate(zip(p, q)):
        exact = optimum(one, top_two_and_a_draw(other))
        assert found.lower[row] <= exact <= found.upper[row] < found.lower[row] + 1e-13
        subset = found.subset[row]
        assert 1 + one[subset].sum() - found.inside[row] == pytest.approx(float(exact), abs=1e-13)
        weights = fractions(other)
        law_of = {d: w / 3 for d, w in draws([weights]).items()}
        law_of |= {d: 2 * w / 3 for d, w in draws([weights] * 2).items()}
        assert mixed.value[row] == pytest.approx(float(optimum(one, law_of)), abs=1e-13)
    # A problem file of the same law, by every method.
    problem = {
        "target": p[0].tolist(),
        "drafts": 3,
        "draft": {"scheme": "composed", "law": TOP_TWO, "q": q[0].tolist()},
    }
    solved = sg.solve(problem).to_dict()["optimal_acceptance_rate"]["value"]
    assert found.value[0] == pytest.approx(solved, abs=1e-13)
    again = sg.alpha(p, q, scheme=pickle.loads(pickle.dumps(law)))
    assert again.value.tolist() == found.value.tolist()
    # Logits of the same rows, in single precision.
    a, b = (np.log(x).astype(np.float32) for x in (p, q))
    assert sg.alpha(a, b, scheme=law, logits=True).value == pytest.approx(found.value, abs=1e-5)


def test_independent_drafts_are_those_of_all_sets(pairs: tuple[Floats, Floats]) -> None:
    p, q = pairs
    for rows in ([q, p], [q, np.roll(q, 3, axis=1), q[0]]):
        law = sg.laws.independent(rows)
        found = sg.alpha(p, scheme=law)
        rrs = sg.acceptance("rrs", p, scheme=law)
        assert found.n == rrs.n == len(rows)
        for at, one in enumerate(p):
            drawn = [np.atleast_2d(row)[at if row.ndim == 2 else 0] for row in rows]
            exact = optimum(one, draws([fractions(row) for row in drawn]))
            assert found.lower[at] <= exact <= found.upper[at] < found.lower[at] + 1e-12
            # Recursive rejection, from its definition.
            left, missed = fractions(one), Fraction(1)
            for row in map(fractions, drawn):
                rest = [max(a - b, Fraction(0)) for a, b in zip(left, row)]
                missed *= sum(rest)
                left = [x / sum(rest) for x in rest] if sum(rest) else left
            assert rrs.value[at] == pytest.approx(float(1 - missed), abs=1e-13)
            assert rrs.lower[at] <= 1 - missed <= rrs.upper[at]
    # Two equal rows are two i.i.d. drafts.
    same = sg.alpha(p, scheme=sg.laws.independent([q, q]))
    assert same.value == pytest.approx(sg.alpha(p, q, 2).value, abs=1e-13)


def test_where_no_method_fits_bounds_hold_alpha(pairs: tuple[Floats, Floats]) -> None:
    """Tokens that are cut into equal pieces leave alpha* as it is: P - Q is concave in the share of
    the pieces of a token that are taken, so that all or none are."""
    p, q = pairs
    pieces = 60
    for one, other, third in zip(p[:4], q[:4], q[4:8]):
        drafts = [fractions(row) for row in (other, third, np.roll(other, 2))]
        exact = float(optimum(one, draws(drafts)))
        cut = [np.repeat(np.array(row, dtype=float) / pieces, pieces) for row in drafts]
        law = sg.laws.independent(cut)
        found = sg.alpha(np.repeat(one / pieces, pieces), scheme=law)
        assert found.kind == "enclosed"
        assert found.lower <= exact <= found.upper
        assert found.upper == pytest.approx(exact, abs=1e-9)
        assert found.upper - found.lower < 0.02
        rrs = sg.acceptance("rrs", np.repeat(one / pieces, pieces), scheme=law)
        assert rrs.value <= found.upper


def test_the_two_laws_of_a_paper_on_rows_of_a_log(log: str) -> None:
    """The top two and a draw, and stratified draws, on rows of the shipped log beside named laws;
    and stratified draws of 2,000 tokens."""
    composed = sg.laws.composed(TOP_TWO, name="top-2 and a draw")
    pairs: list[tuple[Floats, Floats]] = []

    def seen(p: Floats, q: Floats, drafts: NDArray[np.int64], rng: Any) -> Floats:
        if not pairs or not np.array_equal(pairs[-1][0], p):
            pairs.append((p, q))
        return p

    found = sg.evaluate(
        seen, log, scheme=composed, top_k=200, temperature=1.0, samples=400, threads=1
    )
    assert (found.scheme, found.n, found.positions) == ("top-2 and a draw", 3, 400)
    # It is the named law greedy, as a report has it.
    report = sg.gap(log, drafts=3, schemes="greedy", temperature=1.0, top_k=200).to_dict()
    greedy = report["cells"][0]["optimal_acceptance_rate"]["mean"]
    assert found.optimal_acceptance[0] == pytest.approx(greedy, abs=1e-9)
    assert len(pairs) == 400
    pairs = pairs[3:400:180]
    rng = np.random.default_rng(5)
    # The 1,881 tokens that can be drafted have 1,880 ends between them, each a cut of [0, 1].
    q = np.zeros(2000)
    q[rng.permutation(2000)[:1881]] = rng.dirichlet(np.full(1881, 0.5))
    pairs.append((rng.dirichlet(np.full(2000, 0.05)), q))
    for p, q in pairs:
        listed, masses = strata(q, 2)
        law = sg.laws.tuples(listed, masses, name="strata")
        stratified = sg.alpha(p, scheme=law)
        problem = {
            "target": p.tolist(),
            "drafts": 2,
            "draft": {"scheme": "explicit", "tuples": listed, "probabilities": masses},
        }
        solved = sg.solve(problem).to_dict()["optimal_acceptance_rate"]["value"]
        assert stratified.value == pytest.approx(solved, abs=1e-12)
        assert stratified.lower <= solved <= stratified.upper < stratified.lower + 1e-12
        # Token i is drafted with min(1, 2 q_i).
        assert np.minimum(p, q).sum() - 1e-12 <= stratified.value
        assert stratified.value <= np.minimum(p, np.minimum(1.0, 2.0 * q)).sum() + 1e-12
        best = sg.alpha(p, q, scheme=composed)
        problem["drafts"] = 3
        problem["draft"] = {"scheme": "composed", "law": TOP_TWO, "q": q.tolist()}
        solved = sg.solve(problem).to_dict()["optimal_acceptance_rate"]["value"]
        assert best.value == pytest.approx(solved, abs=1e-11)
        assert best.value == pytest.approx(sg.alpha(p, q, 3, "greedy").value, abs=1e-12)
    assert len(listed) == 1881


def test_plans_put_out_the_target(pairs: tuple[Floats, Floats]) -> None:
    p, q = pairs
    composed, two = sg.laws.composed(TOP_TWO), sg.laws.independent([q[0], q[1]])
    cases: list[tuple[sg.Plan, Weights, float]] = [
        (
            sg.plan(p[0], q[0], scheme=composed),
            top_two_and_a_draw(q[0]),
            sg.alpha(p[0], q[0], scheme=composed).value,
        ),
        (
            sg.plan(p[0], scheme=two),
            draws([fractions(row) for row in q[:2]]),
            sg.alpha(p[0], scheme=two).value,
        ),
    ]
    for plan, law, best in cases:
        output, accepted = np.zeros(7), 0.0
        for drafts, weight in law.items():
            output += float(weight) * plan.law(drafts)
            accepted += float(weight) * float(plan.accepted(drafts).sum())
        assert output == pytest.approx(p[0], abs=1e-13)
        assert accepted == pytest.approx(best, abs=1e-13)
        assert plan.is_optimal and plan.acceptance[0] == pytest.approx(best, abs=1e-13)
        token, slot = plan.emit(drafts, rng=3)
        assert slot is None or drafts[slot] == token
        assert (token, slot) == plan.emit(drafts, rng=3)


def optimal(law: sg.laws.Law) -> Any:
    """The optimal rule of a law, as a function."""

    def rule(p: Floats, q: Floats, drafts: NDArray[np.int64], rng: Any) -> Floats:
        own = q if law.name == "composed" else None
        return sg.plan(p, own, scheme=law).law(drafts.tolist())

    return rule


def first_or_target(p: Floats, q: Floats, drafts: NDArray[np.int64], rng: Any) -> int:
    """A bug: it keeps the first draft half of the time."""
    return int(drafts[0]) if len(drafts) and rng.branch(0.5) else int(rng.choice(len(p), p=p))


def test_own_rules_are_summed_under_own_laws(pairs: tuple[Floats, Floats], tmp_path: Any) -> None:
    p, q = pairs
    composed = sg.laws.composed(TOP_TWO)
    found = sg.evaluate(optimal(composed), p[:3], q[:3], scheme=composed)
    assert found.exact and found.lossless == "exact" and found.n == 3
    assert found.acceptance[0] == pytest.approx(found.optimal_acceptance[0], abs=1e-12)
    assert found.optimal_acceptance[0] == pytest.approx(
        np.mean(sg.alpha(p[:3], q[:3], scheme=composed).value), abs=1e-13
    )
    # Laws that draft fewer at times, and none.
    poisson = sg.laws.composed({"law": "poisson", "chances": [0.5, 0.25, 0.0, 0.125, 0, 0, 0]})
    fewer = sg.evaluate(optimal(poisson), p[0], q[0], scheme=poisson)
    assert fewer.lossless == "exact" and fewer.n == 3
    assert fewer.gap[0] == pytest.approx(0.0, abs=1e-12)
    # A lossy rule is refuted, and the pair is a problem that refutes it again.
    listed = sg.laws.tuples([[0, 1], [5, 2]], [0.5, 0.5])
    laws = [composed, sg.laws.independent([q[0], q[1]]), listed]
    for law in laws:
        own = q[0] if law is composed else None
        path = tmp_path / f"{law.name}.json"
        lossy = sg.evaluate(first_or_target, p[0], own, scheme=law, counterexample=path)
        assert lossy.exact and lossy.lossless == "refuted"
        assert ("this pair" in str(lossy)) == (own is None)
        assert not sg.verify(path).ok


def test_steps_see_the_row_of_their_draft(pairs: tuple[Floats, Floats]) -> None:
    p, q = pairs
    law = sg.laws.independent([q[:4], q[4:8], q[8:]])

    def step(p: Floats, q: Floats, i: int, n: int) -> tuple[Floats, Floats]:
        left = np.maximum(p - q, 0.0)
        return np.minimum(1.0, p / q), left / left.sum() if left.sum() > 0 else p

    for rule in (sg.Sequential(step, name="own"), sg.Sequential(step, name="own", rows=False)):
        found = sg.evaluate(rule, p[:4], scheme=law)
        assert found.lossless == "exact" and found.n == 3
        rrs = sg.acceptance("rrs", p[:4], scheme=law)
        assert found.acceptance[0] == pytest.approx(np.mean(rrs.value), abs=1e-13)
        # The same rule as a function, by its tuples.
        listed = sg.evaluate(rule.__call__, p[:4], scheme=law)
        assert listed.lossless == "exact"
        assert listed.acceptance[0] == pytest.approx(found.acceptance[0], abs=1e-13)
    with pytest.raises(TypeError, match="drawn by themselves"):
        sg.evaluate(rule, p[0], q[0], scheme=sg.laws.composed(TOP_TWO))


def test_samplers_are_simulated_and_nothing_else(pairs: tuple[Floats, Floats]) -> None:
    p, q = pairs

    def twice(q: Floats, n: int, rng: np.random.Generator) -> list[int]:
        return [int(token) for token in rng.choice(len(q), n, p=q)]

    law = sg.laws.sampler(twice)
    found = sg.evaluate(sg.rules.rrs, p[0], q[0], 2, scheme=law, samples=4_000)
    assert not found.exact and found.lossless == "not refuted" and found.scheme == "twice"
    low, high = found.acceptance[1:]
    assert low <= sg.acceptance("rrs", p[0], q[0], 2).value <= high
    assert np.isnan(found.optimal_acceptance[0]) and found.optimal_acceptance[1:] == (0.0, 1.0)
    assert found.to_dict()["optimal_acceptance"] == [None, 0.0, 1.0]
    lossy = sg.evaluate(first_or_target, p[0], q[0], 2, scheme=law, samples=4_000)
    assert lossy.lossless == "refuted" and lossy.counterexample is None
    for call in (
        lambda: sg.alpha(p[0], q[0], 2, law),
        lambda: sg.acceptance("rrs", p[0], q[0], 2, law),
        lambda: sg.plan(p[0], q[0], 2, law),
    ):
        with pytest.raises(ValueError, match="twice is a sampler, which can only be drawn from"):
            call()
    bad = sg.laws.sampler(lambda q, n, rng: [9] * n, name="bad")
    with pytest.raises(ValueError, match="tokens are 0 to 6"):
        sg.evaluate(sg.rules.rrs, p[0], q[0], 2, scheme=bad)


def test_rules_may_use_the_noise_that_drafts_were_drawn_by() -> None:
    p, q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.2, 0.2, 0.5, 0.1])

    def gumbel(q: Floats, n: int, rng: np.random.Generator) -> tuple[Any, Floats]:
        noise = rng.gumbel(size=len(q))
        return np.argsort(-(np.log(q) + noise))[:n], noise

    def same(p: Floats, q: Floats, drafts: Any, rng: Any) -> int:
        return int(np.argmax(np.log(p) + drafts.noise))

    def halved(p: Floats, q: Floats, drafts: Any, rng: Any) -> int:
        return int(np.argmax(np.log(p) + 0.5 * drafts.noise))

    # Of two races by the same clocks token x wins both with 1/sum of max(p_y/p_x, q_y/q_x).
    ratios = [np.maximum(p / p[x], q / q[x]).sum() for x in range(4)]
    both = sum(1.0 / ratio for ratio in ratios)
    law = sg.laws.sampler(gumbel, noise=True)
    found = sg.evaluate(same, p, q, 1, law, samples=4_000)
    assert found.lossless == "not refuted"
    assert found.acceptance[1] < both < found.acceptance[2]
    assert sg.evaluate(halved, p, q, 1, law, samples=4_000).lossless == "refuted"

    # One uniform number for draft and output: they agree where the two laws' intervals overlap.
    def uniform(q: Floats, n: int, rng: np.random.Generator) -> tuple[Any, float]:
        u = rng.random()
        return [int(np.searchsorted(np.cumsum(q), u, side="right"))], u

    def shared(p: Floats, q: Floats, drafts: Any, rng: Any) -> int:
        return int(np.searchsorted(np.cumsum(p), drafts.noise, side="right"))

    ends = [np.concatenate([[0.0], np.cumsum(row)]) for row in (p, q)]
    starts, stops = (pick([end[s] for end in ends], axis=0) for pick, s in (
        (np.max, slice(None, -1)), (np.min, slice(1, None))
    ))  # fmt: skip
    together = np.maximum(stops - starts, 0.0).sum()
    found = sg.evaluate(shared, p, q, 1, sg.laws.sampler(uniform, noise=True), samples=4_000)
    assert found.lossless == "not refuted"
    assert found.acceptance[1] < together < found.acceptance[2]
    # Along a log too.
    rng = np.random.default_rng(5)
    target = rng.normal(size=(60, 4))
    arrays = {"target_logits": target, "draft_logits": target + rng.normal(size=target.shape)}
    along = sg.evaluate(same, arrays, 1, scheme=law, temperature=1.0, samples=3_000)
    rows = [np.exp(one) / np.exp(one).sum(axis=1, keepdims=True) for one in arrays.values()]
    each = [
        sum(1.0 / np.maximum(a / a[x], b / b[x]).sum() for x in range(4)) for a, b in zip(*rows)
    ]
    assert along.lossless == "not refuted" and abs(along.acceptance[0] - np.mean(each)) < 0.03
    with pytest.raises(ValueError, match="with noise=True a sampler returns the tuple"):
        sg.evaluate(same, p, q, 1, sg.laws.sampler(lambda q, n, rng: [0], noise=True))


def test_own_laws_are_measured_on_logs() -> None:
    rng = np.random.default_rng(2)
    target = 2.0 * rng.normal(size=(12, 9))
    log = {
        "target_logits": target,
        "draft_logits": target + rng.normal(size=target.shape),
        "prompt_id": np.repeat(np.arange(4), 3),
        "position": np.tile(np.arange(3), 4),
    }
    p, q = (np.exp(log[key]) / np.exp(log[key]).sum(axis=1, keepdims=True) for key in list(log)[:2])
    law = sg.laws.composed(TOP_TWO)
    found = sg.evaluate(
        optimal(law), log, scheme=law, temperature=1.0, compare=["optimal", "exact-match"]
    )
    best = sg.alpha(p, q, scheme=law).value
    assert found.exact and found.lossless == "exact" and (found.n, found.scheme) == (3, "composed")
    assert found.table["optimum"] == pytest.approx(best, abs=1e-12)
    assert found.table["acceptance"] == pytest.approx(best, abs=1e-12)
    assert found.differences["optimal"][0] == pytest.approx(0.0, abs=1e-12)
    match = sg.acceptance("exact-match", p, q, scheme=law).value
    assert found.table["exact-match"] == pytest.approx(match, abs=1e-12)
    assert found.clusters == 4 and found.optimal_acceptance[0] == pytest.approx(best.mean())
    # Too few draws to list: outputs are drawn.
    drawn = sg.evaluate(optimal(law), log, scheme=law, temperature=1.0, samples=60)
    assert not drawn.exact and drawn.samples == 12 * 6 and drawn.lossless == "not refuted"
    assert abs(drawn.gap[0]) < 0.1
    # Independent drafts by position.
    two = sg.laws.independent([q, np.roll(q, 1, axis=0)])

    def step(p: Floats, q: Floats, i: int, n: int) -> tuple[Floats, Floats]:
        left = np.maximum(p - q, 0.0)
        return np.minimum(1.0, p / q), left / left.sum() if left.sum() > 0 else p

    both = sg.evaluate(sg.Sequential(step), log, scheme=two, temperature=1.0, compare="rrs")
    assert both.exact and both.lossless == "exact"
    assert both.table["rrs"] == pytest.approx(both.table["acceptance"], abs=1e-12)
    assert both.table["rrs"] == pytest.approx(sg.acceptance("rrs", p, scheme=two).value, abs=1e-12)
    listed = sg.laws.tuples([[0, 1], [5, 2]], [0.5, 0.5])
    tuples = sg.evaluate(optimal(listed), log, 2, scheme=listed, temperature=1.0)
    best = sg.alpha(p, scheme=listed).value
    assert tuples.exact and tuples.table["acceptance"] == pytest.approx(best, abs=1e-12)
    sampled = sg.laws.sampler(lambda q, n, rng: rng.choice(len(q), n, p=q).tolist(), name="iid")
    noisy = sg.evaluate(sg.rules.rrs, log, 2, scheme=sampled, temperature=1.0, samples=6_000)
    assert not noisy.exact and np.isnan(noisy.gap[0]) and noisy.scheme == "iid"
    assert noisy.to_dict()["gap"] == [None] * 3 and "nan" in str(noisy)
    rrs = sg.acceptance("rrs", p, q, 2).value
    assert noisy.acceptance[0] == pytest.approx(rrs.mean(), abs=0.03)
    wrong = sg.evaluate(first_or_target, log, scheme=law, temperature=1.0)
    assert wrong.exact and wrong.lossless == "refuted"


def test_laws_that_name_tokens_need_full_rows(log: str) -> None:
    for law in (
        sg.laws.composed({"law": "fixed", "tokens": [5]}),
        sg.laws.tuples([[0, 1]], [1]),
        sg.laws.independent([[0.5, 0.5]]),
    ):
        with pytest.raises(ValueError, match="names tokens by their ids"):
            sg.evaluate(first_or_target, log, scheme=law, top_k=50)


def test_what_is_refused_says_why(pairs: tuple[Floats, Floats]) -> None:
    p, q = pairs
    for scheme, message in (
        (TOP_TWO, r"did you mean specgap.laws.composed"),
        ([q[0], q[1]], r"specgap.laws.independent"),
        (lambda q, n, rng: [0], r"did you mean specgap.laws.sampler"),
        (3, "is int; give a name of schemes"),
    ):
        for call in (sg.alpha, sg.plan):
            with pytest.raises(TypeError, match=message):
                call(p[0], q[0], 2, scheme)  # type: ignore[arg-type, call-overload]
        with pytest.raises(TypeError, match=message):
            sg.acceptance("rrs", p[0], q[0], 2, scheme)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=message):
            sg.evaluate(first_or_target, p[0], q[0], 2, scheme)  # type: ignore[call-overload]
    law, two = sg.laws.composed(TOP_TWO), sg.laws.independent([q[0], q[1]])
    with pytest.raises(ValueError, match="n is 2; composed drafts up to 3: leave n out"):
        sg.alpha(p[0], q[0], 2, law)
    with pytest.raises(TypeError, match="q: composed draws from it"):
        sg.alpha(p[0], scheme=law)
    with pytest.raises(ValueError, match="q: independent draws from rows of its own"):
        sg.alpha(p[0], q[0], scheme=two)
    with pytest.raises(ValueError, match="use optimal or exact-match"):
        sg.acceptance("rrs", p[0], q[0], scheme=law)
    with pytest.raises(ValueError, match="q\\[0\\] .1, 7.; a draft has a row"):
        sg.alpha(p[:, :6] / p[:, :6].sum(axis=1, keepdims=True), scheme=two)
    with pytest.raises(ValueError, match="law.of\\[1\\].drafts"):
        sg.alpha(p[0], q[0], scheme=sg.laws.composed(
            {"law": "union", "of": [{"law": "top", "drafts": 1}, {"law": "top", "drafts": 9}]}
        ))
    with pytest.raises(ValueError, match="all of one length"):
        sg.laws.tuples([[0, 1], [1]], [0.5, 0.5])
    with pytest.raises(ValueError, match="threshold: composed"):
        _ = sg.alpha(p[0], q[0], scheme=law).threshold
    with pytest.raises(TypeError, match="q: give the draft's row"):
        sg.alpha(p[0], n=2)
