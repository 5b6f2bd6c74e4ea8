"""Draft laws of one's own in reports, against named laws, evaluate and alpha of rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import specgap as sg

Floats = NDArray[np.float64]
V, PROMPTS, EACH = 12, 4, 3
N = PROMPTS * EACH

TOP_AND_DRAW = {
    "law": "union",
    "of": [
        {"law": "top", "drafts": 1},
        {"law": "without-replacement", "drafts": 1, "avoid_top": 1},
    ],
}


def draws(n: int) -> dict[str, Any]:
    return {"law": "with-replacement", "drafts": n}


@pytest.fixture(scope="module")
def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    rows = [np.log(rng.dirichlet(np.full(V, 0.6), N)) for _ in range(2)]
    return {
        "target_logits": rows[0],
        "draft_logits": rows[1],
        "prompt_id": np.repeat(np.arange(PROMPTS), EACH),
    }


def rows(arrays: dict[str, Any], temperature: float = 1.0) -> tuple[Floats, Floats]:
    found = []
    for name in ("target_logits", "draft_logits"):
        scaled = arrays[name] / temperature
        row = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        found.append(row / row.sum(axis=1, keepdims=True))
    return found[0], found[1]


def cell(report: sg.Report, law: str, n: int, temperature: float = 1.0) -> dict[str, Any]:
    (one,) = [
        one
        for one in report.to_dict()["cells"]
        if (one["scheme"], one["drafts"], one["temperature"]) == (law, n, temperature)
    ]
    return dict(one)


def verifier(one: dict[str, Any], name: str) -> dict[str, Any]:
    (row,) = [row for row in one["verifiers"] if row["name"] == name]
    return dict(row)


def stratum(q: Floats, n: int, j: int) -> Floats:
    """Row j of n: what of q, heaviest first, lies in [j/n, (j+1)/n)."""
    order = np.lexsort((np.arange(len(q)), -q))
    ends = np.concatenate([[0.0], np.cumsum(q[order])])
    own: Floats = np.zeros(len(q))
    own[order] = np.diff(np.clip(n * ends - j, 0.0, 1.0))
    own /= own.sum()
    return own


def test_laws_that_are_named_ones_have_their_numbers(arrays: dict[str, Any]) -> None:
    # So hot that no token is certain.
    hot = 6.0
    p, q = rows(arrays, hot)
    iid = [sg.laws.composed(draws(n), name="mine") for n in (2, 3)]
    wor = sg.laws.composed({"law": "without-replacement", "drafts": 2}, name="mine-wor")
    each = [np.stack([stratum(row, 2, j) for row in q]) for j in (0, 1)]
    strata = sg.laws.independent(each, name="mine-strata")
    same = sg.laws.independent([q, q, q], name="mine-three")
    names: Any = ["with-replacement", "without-replacement", "stratified-independent"]
    asked: dict[str, Any] = {"temperature": hot, "drafts": (2, 3)}
    report = sg.gap(arrays, schemes=[*names, *iid, wor, strata, same], **asked)
    compared = 0
    for law, other, n in (
        ("mine", "with-replacement", 2),
        ("mine", "with-replacement", 3),
        ("mine-wor", "without-replacement", 2),
        ("mine-strata", "stratified-independent", 2),
        ("mine-three", "with-replacement", 3),
    ):
        own, named = cell(report, law, n, hot), cell(report, other, n, hot)
        one, two = own["optimal_acceptance_rate"], named["optimal_acceptance_rate"]
        near = one["width_max"] + two["width_max"] + 1e-12
        assert near < 1e-10 and abs(one["mean"] - two["mean"]) <= near
        assert one["ci95"] == pytest.approx(two["ci95"], abs=1e-9)
        assert one["kind"] == "enclosed" and "between" not in one and "flow" in one["status"]
        for row in own["verifiers"]:
            theirs = [one for one in named["verifiers"] if one["name"] == row["name"]]
            for found in theirs:
                assert row["acceptance"]["mean"] == pytest.approx(
                    found["acceptance"]["mean"], abs=1e-9
                )
                compared += 1
    assert compared >= 5
    (none,) = [
        one for one in report.to_dict()["comparisons"]
        if (one["first"], one["second"], one["drafts"])
        == ("mine-three/optimum", "with-replacement/optimum", 3)
    ]  # fmt: skip
    assert abs(none["difference"]["mean"]) < 1e-12 and none["p_value"] == 1.0
    # Named laws are what they were, to the bit.
    alone = sg.gap(arrays, schemes=names, **asked).to_dict()
    assert all(one in report.to_dict()["cells"] for one in alone["cells"])
    assert alone["overlap"] == report.to_dict()["overlap"]


def test_a_report_has_what_alpha_and_evaluate_have(arrays: dict[str, Any]) -> None:
    p, q = rows(arrays)
    law = sg.laws.composed(TOP_AND_DRAW, name="top and a draw")

    def first(p: Floats, q: Floats, drafts: NDArray[np.int64], rng: Any) -> tuple[int, int | None]:
        """Keeps the last draft as if it were drawn from q; lossy."""
        x = int(drafts[-1])
        if rng.branch(min(1.0, p[x] / q[x])):
            return x, len(drafts) - 1
        return int(rng.choice(len(p), p=p)), None

    report = sg.gap(arrays, schemes=law, verifiers=[first, "exact-match"], temperature=1.0, positions=True)
    one = cell(report, "top and a draw", 2)
    best = sg.alpha(p, q, scheme=law)
    columns = report.positions().to_numpy()
    assert np.abs(columns["top and a draw/optimum"] - best.value).max() < 1e-13
    assert (columns["top and a draw/optimum/lower"] <= best.upper).all()
    optimum = one["optimal_acceptance_rate"]
    assert optimum["mean"] == pytest.approx(float(np.mean(best.value)), abs=1e-13)
    found = sg.evaluate(first, arrays, scheme=law, temperature=1.0, compare="exact-match", samples=10_000)
    assert found.exact and found.n == 2
    own = verifier(one, "first")
    for numbers, interval in (
        (own["acceptance"], found.acceptance),
        (own["gap"], found.gap),
        (optimum, found.optimal_acceptance),
    ):
        assert numbers["mean"] == pytest.approx(interval[0], abs=1e-12)
        assert numbers["ci95"] == pytest.approx(interval[1:], abs=1e-11)
    assert own["own"]["total_variation_max"] == pytest.approx(found.total_variation, abs=1e-12)
    assert own["own"]["algorithmic"]["mean"] == pytest.approx(found.algorithmic_acceptance)
    (paired,) = [
        one for one in report.to_dict()["comparisons"]
        if (one["first"], one["second"]) == ("top and a draw/first", "top and a draw/exact-match")
    ]  # fmt: skip
    value, low, high = found.differences["exact-match"]
    assert paired["difference"]["mean"] == pytest.approx(value, abs=1e-12)
    assert paired["difference"]["ci95"] == pytest.approx([low, high], abs=1e-11)
    long = report.positions().to_long().to_numpy()
    assert "top and a draw" in set(long["scheme"])
    # Without drafts= as many as the law has; one thread makes the same.
    again = sg.gap(
        arrays, schemes=law, verifiers=[first, "exact-match"], temperature=1.0, threads=1
    )
    assert again.json == report.json


def test_sequential_rules_stand_under_both_laws(arrays: dict[str, Any]) -> None:
    p, q = rows(arrays)

    def step(p: Floats, q: Floats, i: int, n: int) -> tuple[Floats, Floats]:
        left = np.maximum(p - q, 0.0)
        return np.minimum(1.0, p / q), left / left.sum() if left.sum() > 0 else p

    rule = sg.Sequential(step, name="mine", lossless=True)
    two = sg.laws.independent([q, np.roll(q, 1, axis=1)], name="two models")
    composed = sg.laws.composed(TOP_AND_DRAW, name="composed")
    report = sg.gap(
        arrays, schemes=["with-replacement", two, composed], verifiers=[rule, "rrs"], temperature=1.0
    )
    data = report.to_dict()
    for law in ("with-replacement", "two models"):
        one = cell(report, law, 2)
        own, rrs = verifier(one, "mine"), verifier(one, "rrs")
        assert own["acceptance"]["mean"] == pytest.approx(rrs["acceptance"]["mean"], abs=1e-13)
        assert own["own"]["total_variation_max"] < 1e-14
    rates = sg.acceptance("rrs", p, scheme=two).value
    assert verifier(one, "rrs")["acceptance"]["mean"] == pytest.approx(np.mean(rates), abs=1e-13)
    assert cell(report, "composed", 2)["verifiers"] == []
    assert any(
        line.startswith("mine of composed drafts: a Sequential rule is for drafts that are each")
        for line in data["left_out"]
    )
    assert any(
        line.startswith("rrs of composed drafts: it is lossless for") for line in data["left_out"]
    )
    pairs = {(one["first"], one["second"]) for one in data["comparisons"]}
    for pair in (
        ("two models/optimum", "with-replacement/optimum"),
        ("two models/optimum", "composed/optimum"),
        ("two models/rrs", "with-replacement/rrs"),
        ("two models/mine", "two models/rrs"),
        ("with-replacement/mine", "two models/mine"),
    ):
        assert pair in pairs
    found = sg.evaluate(rule, arrays, scheme=two, temperature=1.0, compare="rrs")
    own = verifier(cell(report, "two models", 2), "mine")
    assert own["acceptance"]["ci95"] == pytest.approx(found.acceptance[1:], abs=1e-12)
    assert own["gap"]["ci95"] == pytest.approx(found.gap[1:], abs=1e-10)


def one_noise(q: Floats, n: int, rng: np.random.Generator) -> tuple[Any, Floats]:
    noise = rng.gumbel(size=len(q))
    return np.argsort(-(np.log(q) + noise))[:n], noise


def same_noise(p: Floats, q: Floats, drafts: Any, rng: Any) -> int:
    return int(np.argmax(np.log(p) + drafts.noise))


def test_rules_are_drawn_under_samplers(arrays: dict[str, Any]) -> None:
    law = sg.laws.sampler(one_noise, noise=True, name="one noise")
    known = sg.Formula(lambda p, q, n: 0.25, name="known")
    asked: dict[str, Any] = {"temperature": 1.0, "samples": 40 * N, "seed": 4, "drafts": [1, 2]}
    report = sg.gap(arrays, verifiers=[(same_noise, law), (known, law), "rrs"], **asked)
    for n in (1, 2):
        one = cell(report, "one noise", n)
        assert one["optimal_acceptance_rate"]["between"] == [0.0, 1.0]
        assert [row["name"] for row in one["verifiers"]] == ["same_noise", "known"]
        drawn, formula = one["verifiers"]
        found = sg.evaluate(
            same_noise, arrays, n, scheme=law, temperature=1.0, samples=40 * N, seed=4, compare="rrs"
        )
        assert drawn["acceptance"]["mean"] == pytest.approx(found.acceptance[0], abs=1e-12)
        assert drawn["acceptance"]["ci95"] == pytest.approx(found.acceptance[1:], abs=1e-12)
        assert 0.01 < drawn["own"]["noise"] < 0.05
        assert (formula["acceptance"]["mean"], formula["own"]) == (0.25, {})
        (pair,) = [
            pair["difference"]
            for pair in report.to_dict()["comparisons"]
            if (pair["drafts"], pair["first"], pair["second"])
            == (n, "one noise/same_noise", "with-replacement/rrs")
        ]
        (differences,) = found.differences.values()
        assert [pair["mean"], *pair["ci95"]] == pytest.approx(differences, abs=1e-12)
    table = report.positions().to_numpy()
    assert np.isfinite(table["one noise/same_noise"]).all()
    text = report.text(whole=True)
    assert "MC: estimated by Monte Carlo." in text and "nothing limits its α" in text
    assert "no lossless rule of one position at a time accepts more than with-replacement" in " ".join(text.split())


def test_what_draws_leave_is_what_another_seed_changes(arrays: dict[str, Any]) -> None:
    def token(p: Floats, q: Floats, drafts: Any, rng: np.random.Generator) -> int:
        return int(rng.choice(len(p), p=p))

    law = sg.laws.sampler(one_noise, noise=True, name="one noise")
    for rule, scheme, name in ((token, None, "with-replacement"), (same_noise, law, law.name)):
        verifiers: Any = [(rule, scheme or name)]
        found = [
            cell(
                sg.gap(arrays, drafts=2, temperature=1.0, samples=20 * N, seed=seed, verifiers=verifiers),
                name,
                2,
            )["verifiers"][-1]
            for seed in range(25)
        ]
        spread = 1.96 * np.std([row["acceptance"]["mean"] for row in found], ddof=1)
        assert 0.6 < np.mean([row["own"]["noise"] for row in found]) / spread < 1.6


def test_pages_name_laws_and_samplers_are_said_to_have_no_optimum(
    arrays: dict[str, Any], tmp_path: Any
) -> None:
    law = sg.laws.composed(TOP_AND_DRAW, name="top and a draw")
    drawn = sg.laws.sampler(lambda q, n, rng: rng.choice(len(q), n, p=q), name="drawn")
    listed = sg.laws.tuples([[0, 1], [2, 3]], ["1/3", "2/3"], name="listed")
    report = sg.gap(arrays, schemes=["with-replacement", law, drawn, listed], temperature=1.0)
    left = report.to_dict()["left_out"]
    assert any("own law drawn: it can only be drawn from" in line for line in left)
    for page in (report.markdown(), report.html(), report.text(whole=True)):
        assert "Draft laws of your own" in page
        assert "top and a draw" in page and "which can only be drawn from: nothing limits its α" in page
        assert "one of 2 tuples of 2 tokens" in page
        assert "1 + P(H) - Q(H)" in page
    latex = report.table("acceptance").to_latex()
    assert "top and a draw" in latex and "listed" in latex
    report.save(tmp_path / "out", tables=["latex", "csv"])
    assert "top and a draw" in (tmp_path / "out" / "report.json").read_text()
    told = report.to_dict()
    assert told["definitions"]["scheme listed"].startswith("draft law of the caller's own, made as explicit")
    kinds = {one["name"]: one.get("made") for one in told["own_laws"]}
    assert kinds == {"top and a draw": "composed", "drawn": None, "listed": "explicit"}
    assert "command" not in told
    # alpha* of tuples is that of the rows.
    p, _ = rows(arrays)
    best = float(np.mean(sg.alpha(p, scheme=listed).value))
    mean = cell(report, "listed", 2)["optimal_acceptance_rate"]["mean"]
    assert mean == pytest.approx(best, abs=1e-13)
    # Several logs.
    other = dict(arrays, draft_logits=arrays["target_logits"])
    both = sg.gap({"one": arrays, "two": other}, schemes=[law], temperature=1.0).to_dict()
    (rate,) = [one for one in both["rates"] if one["what"] == "optimum"]
    assert rate["scheme"] == "top and a draw" and len(rate["estimates"]) == 2


def test_bounds_of_an_optimum_that_no_method_finds_are_not_called_intervals() -> None:
    rng = np.random.default_rng(3)
    size = 20_000
    p, q, a, b = (rng.dirichlet(np.ones(size), 2) for _ in range(4))
    law = sg.laws.independent([q, a, b], name="three models")
    with np.errstate(divide="ignore"):
        log = {"target_logits": np.log(p), "draft_logits": np.log(q), "prompt_id": np.zeros(2, int)}
    best = sg.alpha(p, scheme=law)
    assert (best.upper - best.lower).min() > 1e-6
    report = sg.gap(log, schemes=[law], verifiers="rrs", temperature=1.0)
    one = cell(report, "three models", 3)["optimal_acceptance_rate"]
    low, high = one["between"]
    assert one["kind"] == "enclosed" and "truncation" not in one
    assert low == pytest.approx(float(np.mean(best.lower)), abs=1e-8)
    assert high == pytest.approx(float(np.mean(best.upper)), abs=1e-8)
    page = report.markdown()
    assert "no method finds it at some position" in page and "runcated rows" not in page
    assert "between bounds that do not meet" in page


def test_summaries_of_parts_merge_by_what_the_laws_are(arrays: dict[str, Any]) -> None:
    q = rows(arrays)[1]
    laws = [
        sg.laws.composed(TOP_AND_DRAW, name="composed"),
        sg.laws.independent([q, np.roll(q, 1, axis=1)], name="two"),
        sg.laws.tuples([[0, 1]], [1], name="listed"),
    ]
    asked: dict[str, Any] = {"schemes": ["with-replacement", *laws], "temperature": 1.0}
    parts = [sg.Summary.of(arrays, part=(k, 2), **pickle.loads(pickle.dumps(asked))) for k in (1, 2)]
    first, second = (pickle.loads(pickle.dumps(part)) for part in parts)
    whole = sg.gap(arrays, **asked)
    assert second.merge(first).report().json == whole.json
    other = dict(asked, schemes=["with-replacement", *laws[:2], sg.laws.tuples([[0, 2]], [1], name="listed")])
    with pytest.raises(ValueError, match="own law listed of digest"):
        first.merge(sg.Summary.of(arrays, part=(2, 2), **other))


def test_what_cannot_be_measured_is_refused(arrays: dict[str, Any], log: str) -> None:
    q = rows(arrays)[1]
    composed = sg.laws.composed(TOP_AND_DRAW, name="composed")
    two = sg.laws.independent([q, q[0]], name="two")
    drawn = sg.laws.sampler(lambda q, n, rng: [0], name="drawn")
    asked: dict[str, Any] = {"temperature": 1.0}

    def token(p: Floats, q: Floats, drafts: NDArray[np.int64], rng: Any) -> int:
        return int(rng.choice(len(p), p=p))

    def coin(p: Floats, q: Floats, drafts: NDArray[np.int64], rng: Any) -> int:
        return int(np.random.default_rng(rng.seed()).choice(len(p), p=p))

    with pytest.raises(TypeError, match="schemes: give names of schemes.* this is dict"):
        sg.gap(arrays, schemes=[TOP_AND_DRAW], **asked)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="own law drawn: it can only be drawn from"):
        sg.gap(arrays, schemes=[drawn], **asked)
    with pytest.raises(TypeError, match="a Sequential rule is for drafts that are each drawn by"):
        sg.gap(arrays, schemes=[drawn], verifiers=[sg.Sequential(lambda p, q, i, n: p)], **asked)
    with pytest.raises(sg.Refused, match="drawn is there twice"):
        sg.gap(arrays, schemes=[drawn, sg.laws.sampler(one_noise, name="drawn")], **asked)
    with pytest.raises(ValueError, match="nothing to measure: own law composed for 3 drafts"):
        sg.gap(arrays, schemes=[composed], drafts=3, **asked)
    with pytest.raises(ValueError, match="composed is there twice with n = 2"):
        sg.gap(arrays, schemes=[composed, composed], **asked)
    with pytest.raises(ValueError, match="own law \"rrs\".*already"):
        sg.gap(arrays, schemes=[sg.laws.composed(TOP_AND_DRAW, name="rrs")], **asked)
    # A function stands under all laws that are asked for; where it cannot be summed it is drawn.
    every: dict[str, Any] = {**asked, "drafts": 2, "schemes": ["with-replacement", composed]}
    exact = sg.gap(arrays, verifiers=[token], samples=10**7, **every)
    few = sg.gap(arrays, verifiers=[coin], samples=6_000, **every)
    for of in ("with-replacement", "composed"):
        summed, drawn_one = verifier(cell(exact, of, 2), "own token"), verifier(cell(few, of, 2), "coin")
        assert summed["own"]["total_variation_max"] < 1e-12
        assert "total_variation_max" not in drawn_one["own"]
        assert drawn_one["acceptance"]["mean"] == pytest.approx(summed["acceptance"]["mean"], abs=0.02)
    with pytest.raises(TypeError, match="mine: a Sequential rule is for drafts that are each drawn"):
        rule = sg.Sequential(lambda p, q, i, n: p, name="mine")
        sg.gap(arrays, schemes=[composed], verifiers=[rule], **asked)
    # Rows of another log.
    with pytest.raises(ValueError, match="two has 12 rows a draft, one for each position"):
        sg.gap([arrays, arrays], schemes=[two], **asked)
    # Lists, unless all that is kept is listed.
    listed = sg.laws.tuples([[0, 1]], [1], name="listed")
    with pytest.raises(ValueError, match="listed names tokens by their ids, and this log lists"):
        sg.gap(log, schemes=[listed], **asked)
    with pytest.raises(ValueError, match="position 0: own law composed: the row lists some tokens"):
        sg.gap(log, schemes=[composed], **asked)
    with pytest.raises(ValueError, match="own law composed"):
        sg.gap(log, schemes=["with-replacement", composed], **asked)
    with pytest.raises(TypeError, match="schemes: .*Law"):
        sg.tree(log, schemes=composed)  # type: ignore[arg-type]
    # Rules of the literature keep their names apart from the table's.
    iid = sg.laws.composed(draws(2), name="two draws")
    report = sg.gap(arrays, schemes=[iid], verifiers=[sg.rules.rrs, "exact-match"], samples=10**7, **asked)
    found = cell(report, "two draws", 2)
    assert [row["name"] for row in found["verifiers"]] == ["exact-match", "own rrs"]
    rrs = np.mean(sg.acceptance("rrs", *rows(arrays), 2).value)
    assert verifier(found, "own rrs")["acceptance"]["mean"] == pytest.approx(rrs, abs=1e-12)


def test_a_law_of_a_paper_on_the_shipped_log(log: str) -> None:
    law = sg.laws.composed(TOP_AND_DRAW, name="top and a draw")
    report = sg.gap(log, schemes=["greedy", law], temperature=1.0, top_k=200)
    own, named = (
        cell(report, name, 2)["optimal_acceptance_rate"] for name in ("top and a draw", "greedy")
    )
    assert own["mean"] == pytest.approx(named["mean"], abs=1e-9)
    assert own["ci95"] == pytest.approx(named["ci95"], abs=1e-8)
