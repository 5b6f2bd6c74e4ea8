"""Rules beside rules: drawn, summed, by a formula or named, each with drafts of its own law."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import specgap as sg
from specgap import _native, rules
from specgap._drafting import drawer, rows_of_drafts

from .conftest import prompted

Floats = NDArray[np.float64]

PROMPTS, EACH, V = 10, 4, 12


@pytest.fixture(scope="module")
def arrays() -> dict[str, Any]:
    return prompted(8, PROMPTS, EACH, V)


def rows(arrays: dict[str, Any]) -> tuple[Floats, Floats]:
    both = [np.exp(arrays[f"{name}_logits"]) for name in ("target", "draft")]
    p, q = (one / one.sum(axis=1, keepdims=True) for one in both)
    return p, q


def verifier(report: sg.Report, law: str, n: int, name: str) -> dict[str, Any]:
    (cell,) = [
        one for one in report.to_dict()["cells"] if (one["scheme"], one["drafts"]) == (law, n)
    ]
    (row,) = [one for one in cell["verifiers"] if one["name"] == name]
    return dict(row)


def as_function(rule: sg.Sequential, name: str) -> Any:
    """A rule as a function of (p, q, drafts, rng), of which nothing else is known."""

    def called(p: Floats, q: Floats, drafts: NDArray[np.int64], rng: Any) -> Floats:
        return rule(p, q, drafts, rng)

    called.__name__ = name
    return called


# Drafts.


@pytest.mark.parametrize("scheme", list(sg.schemes()))
def test_drafts_are_drawn_as_the_law_lists_them(scheme: str) -> None:
    """20,000 draws: a tuple of probability m is off by 5 standard errors once in a million."""
    rng = np.random.default_rng(3)
    for q in (rng.dirichlet(np.ones(5)), np.array([0.7, 0.1, 0.1, 0.1, 0.0]), np.array([0.5, 0.5, 0, 0, 0])):
        n = 2
        padded, masses = _native.DraftLaw(scheme, q.tolist(), n).tuples()
        if not len(masses) or not masses.sum() > 0.99:
            continue  # no draw of two different tokens
        draw = drawer(q, n, scheme)
        seen = Counter(tuple(draw(rng).tolist()) for _ in range(20_000))
        listed: Counter[tuple[int, ...]] = Counter()
        for one, mass in zip(padded, masses):
            listed[tuple(int(x) for x in one if x >= 0)] += mass
        assert set(seen) <= {one for one, mass in listed.items() if mass > 0}
        for one, mass in listed.items():
            error = math.sqrt(mass * (1 - mass) / 20_000)
            assert abs(seen[one] / 20_000 - mass) <= 5 * error + 1e-12
        alone = rows_of_drafts(q, n, scheme)
        if alone is not None:
            for j, row in enumerate(alone):
                own = np.zeros(len(q))
                for one, mass in listed.items():
                    own[one[j]] += mass
                assert np.abs(own - row).max() < 1e-12


@pytest.mark.parametrize("scheme", ["stratified", "stratified-independent"])
def test_strata_are_drawn_without_a_list_of_tuples(scheme: Any) -> None:
    """1.8e8 tuples, of which a list took 8 GB."""
    p, q = np.random.default_rng(0).dirichlet(np.full(2000, 0.1), 2)
    tracemalloc.start()
    found = sg.evaluate(rules.level_4, p, q, 4, scheme, samples=40)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.samples == 40 and not found.exact and most < 64 << 20
    # One draft of each of 20,000 tokens has as many laws of as many tokens.
    wide = np.full(20_000, 1 / 20_000)
    lists = sg.evaluate(lambda p, q, drafts, rng: p, wide, wide, 1, samples=4)
    assert not lists.exact and "too many to keep" in str(lists.reason)


def test_drawn_rules_on_strata_are_right_with_less_noise_than_their_hits(arrays: dict[str, Any]) -> None:
    """Six runs of 4,000 outputs: their mean is off by 4 standard errors once in 16,000 times."""
    samples = 4_000
    found = [
        sg.evaluate(
            rules.level_4, arrays, 3, scheme="stratified", temperature=1.0, samples=samples, seed=seed,
            compare="level-4",
        )
        for seed in range(6)
    ]  # fmt: skip
    off = [one.differences["level-4"][0] for one in found]
    rate = found[0].acceptance[0]
    alone = math.sqrt(rate * (1 - rate) / samples)
    assert abs(np.mean(off)) < 4 * alone / math.sqrt(len(off))
    assert np.std(off) < 0.8 * alone


# Levels.


def test_several_turns_are_summed_as_tuples_are() -> None:
    rng = np.random.default_rng(5)
    for trial in range(6):
        n = 2 + trial % 2
        p, *qs = rng.dirichlet(np.full(4, 0.7), 1 + n)
        order = [int(x) for x in rng.integers(0, n, size=5)]

        def step(p: Floats, q: Floats, i: int, turns: int) -> tuple[Floats, Floats]:
            keep = np.minimum(1.0, (0.5 + 0.1 * i) * p / np.maximum(q, 1e-300))
            left = np.maximum(p - q * keep, 0.0)
            return keep, left / left.sum()

        rule = sg.Sequential(step, order=order, name="turns")
        law = rule.each(p, np.stack(qs))
        output, membership, algorithmic = np.zeros(4), 0.0, 0.0
        for drafts in itertools.product(range(4), repeat=n):
            chance = math.prod(qs[j][x] for j, x in enumerate(drafts))
            given = rule(p, np.stack(qs), np.array(drafts), None)
            output += chance * given
            membership += chance * given[list(set(drafts))].sum()
            # Its own account, from the definition: laws of drafts given that they were not kept.
            left, alive, reach = p, [q.copy() for q in qs], 1.0
            for i, j in enumerate(order):
                keep, left = step(left, alive[j] / alive[j].sum(), i, len(order))
                algorithmic += chance * reach * keep[drafts[j]]
                reach *= 1.0 - keep[drafts[j]]
                alive[j] = alive[j] * (1.0 - keep)
        assert np.abs(law.output - output).max() < 1e-12
        assert law.membership == pytest.approx(membership, abs=1e-12)
        assert law.algorithmic == pytest.approx(algorithmic, abs=1e-12)
        assert law.total_variation < 1e-12


def test_turns_are_refused_by_their_numbers() -> None:
    p, q = np.array([0.5, 0.5]), np.array([0.75, 0.25])
    for order in ([0, 2], [], [-1]):
        with pytest.raises(ValueError, match="order is .* there are 2 drafts"):
            sg.Sequential(lambda p, q, i, n: p, order=order).law(p, q, 2)
    for levels in ((), (0.2, 0.5), (1.0, 0.0), (0.5, -0.1)):
        with pytest.raises(ValueError, match="levels: .* fall from below 1"):
            rules.by_levels(levels)


def test_level_4_is_computed_of_independent_drafts_of_any_rows() -> None:
    rng = np.random.default_rng(2)
    for n in (2, 3, 4):
        p, *qs = rng.dirichlet(np.full(4, 0.6), 1 + n)
        law = sg.laws.independent(qs)
        found = sg.acceptance("level-4", p, scheme=law)
        own = rules.by_levels().each(p, np.stack(qs))
        assert found.lower - 1e-14 <= own.membership <= found.upper + 1e-14
        assert found.upper - found.lower < 1e-12 and own.total_variation < 1e-13
        assert sg.acceptance("rrs", p, scheme=law).value == pytest.approx(
            rules.by_levels([0.0]).each(p, np.stack(qs[::-1])).membership, abs=1e-12
        )
        assert found.value <= sg.alpha(p, scheme=law).upper
    # At a vocabulary where it is in floats.
    p, *qs = rng.dirichlet(np.full(3000, 0.1), 5)
    found = sg.acceptance("level-4", p, scheme=sg.laws.independent(qs))
    own = rules.by_levels().each(p, np.stack(qs))
    assert abs(found.value - own.membership) < 1e-12 and found.upper - found.lower < 1e-12


def test_level_is_computed_of_independent_drafts_of_any_rows() -> None:
    rng = np.random.default_rng(2)
    for n in (2, 3):
        p, *qs = rng.dirichlet(np.full(5, 0.6), 1 + n)
        law = sg.laws.independent(qs)
        found, four = (sg.acceptance(rule, p, scheme=law) for rule in ("level", "level-4"))
        # alpha* from its definition.
        best = min(
            1 + p[list(held)].sum() - math.prod(q[list(held)].sum() for q in qs)
            for size in range(6)
            for held in itertools.combinations(range(5), size)
        )
        assert four.value < found.value <= best + 1e-12 and found.lower > best - 1e-4
    # Equal rows are i.i.d. drafts.
    p, q = rng.dirichlet(np.full(300, 0.1), 2)
    same = sg.acceptance("level", p, scheme=sg.laws.independent([q, q, q]))
    assert same.value == pytest.approx(sg.alpha(p, q, 3).value, abs=1e-8)


def test_level_of_independent_drafts_stands_in_gap_and_evaluate(arrays: dict[str, Any]) -> None:
    p, q = rows(arrays)
    law = sg.laws.of_rows(lambda q: [q, q**2 / (q**2).sum()], 2, name="sharper")
    report = sg.gap(arrays, verifiers=["level", "level-4"], schemes=law, temperature=1.0)
    other = np.stack([one**2 / (one**2).sum() for one in q])
    by_row = sg.acceptance("level", p, scheme=sg.laws.independent([q, other]))
    level, four = (verifier(report, "sharper", 2, name) for name in ("level", "level-4"))
    assert level["acceptance"]["mean"] == pytest.approx(by_row.value.mean(), abs=1e-12)
    assert level["gap"]["mean"] < 1e-4 < four["gap"]["mean"]
    own = sg.evaluate(rules.by_levels(), arrays, scheme=law, temperature=1.0, compare=["level", "level-4"])
    assert abs(own.differences["level-4"][0]) < 1e-12
    assert own.differences["level"][0] == pytest.approx(
        four["acceptance"]["mean"] - level["acceptance"]["mean"], abs=1e-12
    )


def test_names_are_told_with_laws(arrays: dict[str, Any]) -> None:
    asked: Any = {"drafts": 2, "temperature": 1.0}
    report = sg.gap(arrays, verifiers=[("level-4", "stratified"), ("rrs", "with-replacement")], **asked)
    whole = sg.gap(
        arrays, verifiers=["level-4", "rrs"], schemes=["with-replacement", "stratified"], **asked
    )
    assert report.to_dict()["cells"] == whole.to_dict()["cells"]
    one = sg.gap(arrays, verifiers=("level-4", "stratified"), **asked)
    assert {cell["scheme"] for cell in one.to_dict()["cells"]} == {"stratified"}
    # What no law was told with stands under i.i.d. drafts, or what was asked for.
    mixed = sg.gap(arrays, verifiers=["k-seq", ("level-4", "stratified")], **asked)
    assert verifier(mixed, "with-replacement", 2, "k-seq")
    law = sg.laws.of_rows(lambda q: [q, q**2 / (q**2).sum()], 2, name="sharper")
    own = sg.gap(arrays, verifiers=[("level", law), ("level", "with-replacement")], temperature=1.0)
    assert verifier(own, "sharper", 2, "level") and verifier(own, "with-replacement", 2, "level")
    with pytest.raises(sg.Refused, match="k-seq is lossless for with-replacement drafts, and not for strat"):
        sg.gap("no log is opened", verifiers=[("k-seq", "stratified")])
    drawn = sg.laws.sampler(lambda q, n, rng: [0], name="first")
    with pytest.raises(sg.Refused, match="rrs: drafts of first can only be drawn.*give a function"):
        sg.gap("no log is opened", verifiers=[("rrs", drawn)])


def test_level_4_is_computed_of_iid_drafts(arrays: dict[str, Any]) -> None:
    p, q = rows(arrays)
    for n in (2, 3):
        rate = sg.acceptance("level-4", p[:4, :5] / p[:4, :5].sum(axis=1, keepdims=True),
                             q[:4, :5] / q[:4, :5].sum(axis=1, keepdims=True), n, "with-replacement")  # fmt: skip
        for row in range(4):
            one, other = (x[row, :5] / x[row, :5].sum() for x in (p, q))
            summed = sg.evaluate(rules.level_4_iid, one, other, n).acceptance[0]
            assert rate.lower[row] - 1e-12 <= summed <= rate.upper[row] + 1e-12
        assert (rate.upper - rate.lower).max() < 1e-3
    assert sg.acceptance("level-4", p, q, 2).scheme == "stratified"
    report = sg.gap(arrays, verifiers=["level-4"], schemes="with-replacement", drafts=2, temperature=1.0)
    own = verifier(report, "with-replacement", 2, "level-4")["acceptance"]["mean"]
    rates = sg.acceptance("level-4", p, q, 2, "with-replacement").value
    assert own == pytest.approx(rates.mean(), abs=1e-12)
    # Where no rules are named the report is what it was.
    cells = sg.gap(arrays, drafts=2, temperature=1.0).to_dict()["cells"]
    iid = next(one for one in cells if one["scheme"] == "with-replacement")
    assert "level-4" not in [row["name"] for row in iid["verifiers"]]


def test_independent_strata_are_enclosed_as_their_rows_are() -> None:
    found = sg.alpha([0.71, 0.22, 0.01, 0.06], [0.35, 0.24, 0.21, 0.20], 2, "stratified-independent")
    assert found.upper - found.lower < 1e-9 and found.lower <= 0.99 <= found.upper
    rng = np.random.default_rng(1)
    for n, size in ((2, 5), (3, 8), (4, 60)):
        for _ in range(25):
            p, q = rng.dirichlet(np.full(size, 0.5), 2)
            strata = rows_of_drafts(q, n, "stratified-independent")
            assert strata is not None
            rate = sg.alpha(p, q, n, "stratified-independent")
            same = sg.alpha(p, scheme=sg.laws.independent(list(strata)))
            assert rate.upper - rate.lower <= same.upper - same.lower + 1e-8
            assert rate.lower <= same.upper and same.lower <= rate.upper


def test_a_composed_law_that_is_one_of_the_table_has_its_rules(arrays: dict[str, Any]) -> None:
    p, q = rows(arrays)
    iid = sg.laws.composed({"law": "with-replacement", "drafts": 2}, name="two draws")
    for name in ("rrs", "k-seq", "level-4", "level"):
        named: Any = name
        own = sg.acceptance(named, p, q, scheme=iid).value
        assert own == pytest.approx(sg.acceptance(named, p, q, 2, "with-replacement").value, abs=1e-9)
    assert sg.gap(arrays, schemes=[iid], temperature=1.0).to_dict()["own_laws"][0]["made"] == "with-replacement"


# Beside one another.


def test_a_rule_of_a_sampler_stands_beside_a_named_one_with_its_own_drafts() -> None:
    even = np.full((4, 3), 1 / 3)
    log = {"target_probs": even, "draft_probs": even}
    law = sg.laws.sampler(lambda q, n, rng: [0], name="zeros")
    found = sg.evaluate(lambda p, q, drafts, rng: p, log, 1, scheme=law, compare=["rrs"], samples=16)
    # Two of the same rows accept 1, and this rule a third.
    assert found.differences["rrs (with-replacement)"][0] == pytest.approx(1 / 3 - 1)
    assert math.isnan(found.optimal_acceptance[0])


def test_rules_of_all_kinds_are_compared_at_the_same_positions(arrays: dict[str, Any]) -> None:
    p, q = rows(arrays)
    levels = rules.by_levels((0.5, 0.0), name="two levels")
    overlap = sg.Formula(lambda p, q, n: float(np.minimum(p, q).sum()), name="one draft")
    two = sg.laws.of_rows(lambda q: np.stack([q, q[::-1]]), 2, name="two rows")
    strata: Any = ("level-4", "stratified")
    rivals: Any = [
        "rrs", strata, levels, (levels, "stratified-independent"), (levels, two), overlap,
        (as_function(levels, "the same drawn"), two), ("rrs", two), as_function(levels, "drawn"),
    ]  # fmt: skip
    found = sg.evaluate(
        rules.by_levels(name="four levels"), arrays, 2, temperature=1.0, compare=rivals, samples=12_000
    )
    strata_rows = [rows_of_drafts(row, 2, "stratified-independent") for row in q]
    want = {
        "rrs": sg.acceptance("rrs", p, q, 2).value,
        "level-4 (stratified)": sg.acceptance("level-4", p, q, 2, "stratified").value,
        "two levels": levels.law(p, q, 2).membership,
        "two levels (stratified-independent)": [
            levels.each(*pair).membership for pair in zip(p, strata_rows)  # type: ignore[arg-type]
        ],
        "two levels (two rows)": [levels.each(a, np.stack([b, b[::-1]])).membership for a, b in zip(p, q)],
        "one draft": np.minimum(p, q).sum(axis=1),
        "rrs (two rows)": sg.acceptance("rrs", p, q, scheme=two).value,
    }
    for label, rates in want.items():
        assert found.table[label] == pytest.approx(np.asarray(rates), abs=1e-11), label
        assert found.differences[label][0] == pytest.approx(
            float(np.mean(found.table["acceptance"] - np.asarray(rates))), abs=1e-11
        )
    for label, exact in (
        ("drawn", "two levels"), ("the same drawn (two rows)", "two levels (two rows)")
    ):
        assert abs(float(np.mean(found.table[label])) - float(np.mean(want[exact]))) < 0.01
    one = sg.evaluate(levels, arrays, 2, temperature=1.0, compare=("level-4", "stratified"))
    assert list(one.differences) == ["level-4 (stratified)"]
    with pytest.raises(ValueError, match="compare: rrs is there twice"):
        sg.evaluate(levels, arrays, 2, temperature=1.0, compare=["rrs", "rrs"])
    with pytest.raises(ValueError, match="rrs-wo is lossless for without-replacement"):
        sg.evaluate(levels, arrays, 2, temperature=1.0, compare=[("rrs-wo", "stratified")])
    with pytest.raises(TypeError, match="compare: give names, rules .* this is int"):
        sg.evaluate(levels, arrays, 2, temperature=1.0, compare=[3])  # type: ignore[list-item]
    bad = sg.Formula(lambda p, q, n: 2.0, name="two")
    with pytest.raises(ValueError, match="compare: two: two: the formula gives 2"):
        sg.evaluate(levels, arrays, 2, temperature=1.0, compare=[bad])


def test_rules_of_all_kinds_stand_in_reports(arrays: dict[str, Any]) -> None:
    p, q = rows(arrays)
    levels = rules.by_levels((0.5, 0.0), name="two levels")
    overlap = sg.Formula(lambda p, q, n: float(np.minimum(p, q).sum()), name="one draft")
    drawn = as_function(levels, "drawn")

    class Coins:
        def __init__(self, seed: int) -> None:
            self.rng = np.random.default_rng(seed)

        def branch(self, chance: float) -> bool:
            return bool(self.rng.random() < chance)

        def choice(self, a: int, p: Floats) -> int:
            return int(self.rng.choice(a, p=p))

    def simulated(p: Floats, q: Floats, drafts: NDArray[np.int64], rng: Any) -> int:
        return rules.rrs(p, q, drafts, Coins(rng.seed()))[0]  # type: ignore[arg-type]

    names: Any = ["with-replacement", "stratified", "stratified-independent"]
    report = sg.gap(
        arrays, schemes=names, drafts=2, temperature=1.0, samples=16_000,
        verifiers=[
            levels, overlap, (simulated, "with-replacement"), (drawn, "with-replacement"), "rrs",
        ],
    )  # fmt: skip
    summed = sg.gap(
        arrays, schemes="stratified", drafts=2, temperature=1.0, samples=10**6,
        verifiers=[(rules.level_4, "stratified"), "level-4"],
    )  # fmt: skip
    mean: dict[str, Any] = {
        "with-replacement/two levels": levels.law(p, q, 2).membership,
        "with-replacement/one draft": np.minimum(p, q).sum(axis=1),
        "stratified/one draft": np.minimum(p, q).sum(axis=1),
        "stratified-independent/two levels": [
            levels.each(a, rows_of_drafts(b, 2, "stratified-independent")).membership  # type: ignore[arg-type]
            for a, b in zip(p, q)
        ],
    }
    mean["with-replacement/drawn"] = mean["with-replacement/two levels"]
    four = verifier(summed, "stratified", 2, "own level_4")
    rates = sg.acceptance("level-4", p, q, 2, "stratified").value
    assert four["acceptance"]["mean"] == pytest.approx(float(np.mean(rates)), abs=1e-10)
    assert four["own"]["total_variation_max"] < 1e-12
    for name, rates in mean.items():
        law, rule = name.split("/")
        own = verifier(report, law, 2, rule)["acceptance"]
        assert own["mean"] == pytest.approx(float(np.mean(rates)), abs=1e-10), name
    exact = sg.acceptance("rrs", p, q, 2).value
    own = verifier(report, "with-replacement", 2, "simulated")
    # 400 outputs a position: a mean of 0.8 would be off by 0.0032 without what rrs says of the drafts.
    assert abs(own["acceptance"]["mean"] - exact.mean()) < 4 * 0.0032
    assert "total_variation_max" not in own["own"]
    told = {(one["name"], one["scheme"]) for one in report.to_dict()["own_rules"]}
    assert ("simulated", "with-replacement") in told and ("one draft", "stratified") in told
    pairs = {(one["first"], one["second"]) for one in report.to_dict()["comparisons"]}
    assert ("with-replacement/simulated", "with-replacement/rrs") in pairs
    # No schemes: i.i.d. drafts, and a pair's law is added to those that are named.
    alone = sg.gap(arrays, verifiers=[overlap], drafts=2, temperature=1.0).to_dict()["own_rules"]
    assert [one["scheme"] for one in alone] == ["with-replacement"]
    added = sg.gap(
        arrays, verifiers=[(overlap, "hub")], schemes="with-replacement", drafts=2, temperature=1.0
    )
    assert {one["scheme"] for one in added.to_dict()["cells"]} == {"with-replacement", "hub"}


# Laws that a function makes of q.


def test_laws_of_rows_are_those_of_the_rows_that_are_made(arrays: dict[str, Any]) -> None:
    p, q = rows(arrays)

    def two(q: Floats) -> Floats:
        powers = np.stack([q, q**2])
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def antithetic(q: Floats) -> tuple[list[list[int]], list[float]]:
        order = np.argsort(-q, kind="stable")
        return [[int(a), int(b)] for a, b in zip(order, order[::-1])], q[order].tolist()

    law = sg.laws.of_rows(two, 2)
    made = [two(row) for row in q]
    given = sg.laws.independent([np.stack([one[j] for one in made]) for j in (0, 1)])
    for found, want in (
        (sg.alpha(p, q, scheme=law), sg.alpha(p, scheme=given)),
        (sg.acceptance("rrs", p, q, scheme=law), sg.acceptance("rrs", p, scheme=given)),
    ):
        assert found.value == pytest.approx(want.value, abs=1e-12) and found.n == 2
    pairs = sg.laws.of_rows(antithetic, 2, tuples=True)
    best = sg.alpha(p, q, scheme=pairs)
    listed = [sg.alpha(a, scheme=sg.laws.tuples(*antithetic(b))).value for a, b in zip(p, q)]
    assert best.value == pytest.approx(listed, abs=1e-12)
    report = sg.gap(arrays, schemes=[law, pairs], verifiers=["rrs", "exact-match"], temperature=1.0)
    cells = {one["scheme"]: one["optimal_acceptance_rate"]["mean"] for one in report.to_dict()["cells"]}
    assert cells["two"] == pytest.approx(float(np.mean(sg.alpha(p, q, scheme=law).value)), abs=1e-12)
    assert cells["antithetic"] == pytest.approx(float(np.mean(listed)), abs=1e-12)
    both = sg.evaluate(rules.by_levels([0.0]), arrays, scheme=law, temperature=1.0, compare="rrs")
    assert both.exact and both.optimal_acceptance[0] == pytest.approx(cells["two"], abs=1e-12)
    keeps = sg.evaluate(lambda p, q, drafts, rng: p, p[0], q[0], scheme=pairs)
    assert keeps.exact and keeps.optimal_acceptance[0] == pytest.approx(listed[0], abs=1e-12)


def test_laws_of_rows_see_the_listed_tokens_of_a_log(log: str) -> None:
    def flatter(q: Floats) -> Floats:
        rows = np.stack([q, q**0.5])
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    law = sg.laws.of_rows(flatter, 2, digest="v1")
    report = sg.gap(log, schemes=["with-replacement", law], temperature=1.0, top_k=50, verifiers="rrs")
    best = {one["scheme"]: one["optimal_acceptance_rate"] for one in report.to_dict()["cells"]}
    assert set(best) == {"with-replacement", "flatter"} and best["flatter"]["kind"] == "enclosed"
    assert 0.3 < best["flatter"]["mean"] < 0.6
    assert "2 drafts of rows made of q" in report.markdown()


def test_laws_of_rows_are_refused_by_what_was_made() -> None:
    p, q = [0.5, 0.5], [0.75, 0.25]
    for function, message in (
        (lambda q: q, "made rows of shape .2,.; give one of 2 for each of 2"),
        (lambda q: np.stack([q, 2 * q]), r"rows that sum to \[1.0, 2.0\]"),
    ):
        with pytest.raises(sg.Refused, match=message):
            sg.alpha(p, q, scheme=sg.laws.of_rows(function, 2))
    with pytest.raises(sg.Refused, match=r"returned ndarray; give \(tuples, probabilities\)"):
        sg.alpha(p, q, scheme=sg.laws.of_rows(lambda q: q, 2, tuples=True))
    with pytest.raises(sg.Refused, match="made tuples of 1 drafts, and n is 2"):
        sg.alpha(p, q, scheme=sg.laws.of_rows(lambda q: ([[0]], [1.0]), 2, tuples=True))
    with pytest.raises(sg.Refused, match="logits: .* is made of the draft's row"):
        sg.alpha(p, q, scheme=sg.laws.of_rows(lambda q: np.stack([q, q]), 2), logits=True)
    with pytest.raises(TypeError, match="function: give a function of q"):
        sg.laws.of_rows(3, 2)  # type: ignore[arg-type]
