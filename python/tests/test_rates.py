"""Rows of every kind of array are read where they lie, and answered alike."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import specgap as sg

Rows = tuple[NDArray[np.float64], NDArray[np.float64]]


@pytest.fixture(scope="module")
def rows() -> Rows:
    rng = np.random.default_rng(1)
    return rng.normal(0, 3, (5, 300)), rng.normal(0, 3, (5, 300))


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    weights = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def test_alpha_is_the_minimum_over_prefixes(rows: Rows) -> None:
    p, q = softmax(rows[0]), softmax(rows[1])
    rates = sg.alpha(p, q, 3)
    for row in range(5):
        order = np.argsort(-q[row] / p[row])
        inside = np.cumsum(q[row][order]) ** 3
        best = 1 + min(0.0, float((np.cumsum(p[row][order]) - inside).min()))
        assert rates.lower[row] <= best + 1e-12 and best - 1e-12 <= rates.upper[row]
        assert rates.value[row] == pytest.approx(best, abs=1e-12)
        subset = rates.subset[row]
        shown = 1 + p[row][subset].sum() - q[row][subset].sum() ** 3
        assert shown == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(
    "law", ["with-replacement", "without-replacement", "distinct-conditioned"]
)
def test_a_certificate_is_its_threshold_and_its_masses(rows: Rows, law: Any) -> None:
    p, q = softmax(rows[0]), softmax(rows[1])
    for n in (1, 3):
        best = sg.alpha(p, q, n, law)
        inside = [q[row][best.subset[row]] for row in range(5)]
        assert best.mass == pytest.approx([own.sum() for own in inside], abs=1e-14)
        assert best.value == pytest.approx(1 + best.target_mass - best.inside, abs=1e-14)
        for row in range(5):
            ratio, held = q[row] / p[row], best.subset[row]
            assert best.threshold[row] == pytest.approx(ratio[held].min(), rel=1e-14)
            assert (np.flatnonzero(ratio >= best.threshold[row] * (1 - 1e-14)) == held).all()
            assert best.target_mass[row] == pytest.approx(p[row][held].sum(), abs=1e-14)
        if law == "with-replacement":
            assert best.inside == pytest.approx(best.mass**n, abs=1e-15)
        one = sg.alpha(p[3], q[3], n, law)
        for name in ("threshold", "mass", "target_mass", "inside"):
            own = getattr(one, name)
            assert isinstance(own, float) and own == getattr(best, name)[3]
        assert (one.subset == best.subset[3]).all()


def test_a_threshold_says_what_ties_are() -> None:
    # Four tokens of ratio 2, of two rows of 20: all are in H.
    p, q = np.full(20, 0.5 / 16), np.full(20, 0.0)
    p[[3, 5, 11, 17]], q[[3, 5, 11, 17]] = 0.125, 0.25
    best = sg.alpha(p, q, 2)
    assert best.subset.tolist() == [3, 5, 11, 17] and best.threshold == 2.0
    assert (best.target_mass, best.mass, best.inside) == (0.5, 1.0, 1.0)
    # H that p does not reach, and an empty one.
    apart = sg.alpha([0.0, 1.0], [1.0, 0.0], 3)
    assert apart.subset.tolist() == [0] and apart.threshold == np.inf and apart.mass == 1.0
    same = sg.alpha([0.5, 0.5], [0.5, 0.5], 3)
    assert same.value == 1.0 and (same.threshold == np.inf) == (same.mass == 0.0)


def test_only_a_scan_has_a_certificate(rows: Rows) -> None:
    p, q = softmax(rows[0]), softmax(rows[1])
    for rates in (sg.alpha(p, q, 2, "top"), sg.acceptance("rrs", p, q, 2)):
        for name in ("subset", "threshold", "mass", "target_mass", "inside"):
            with pytest.raises(ValueError, match=f"{name}: these numbers have no set"):
                getattr(rates, name)


def test_rates_do_not_keep_rows() -> None:
    rng = np.random.default_rng(4)
    p, q = rng.dirichlet(np.full(1000, 0.1), 8), rng.dirichlet(np.full(1000, 0.1), 8)
    best = sg.alpha(p, q, 3)
    subset = best.subset
    for row in range(8):
        shown = 1 + p[row][subset[row]].sum() - q[row][subset[row]].sum() ** 3
        assert shown == pytest.approx(best.value[row], abs=1e-14)
    alive = weakref.ref(p), weakref.ref(q)
    del p, q
    gc.collect()
    assert [one() for one in alive] == [None, None]
    kept = pickle.dumps(best)
    assert len(kept) < 10_000
    arrays = [one for one in vars(best).values() if isinstance(one, np.ndarray)]
    arrays += [*best._certificates]  # type: ignore[misc]
    assert sum(sys.getsizeof(one) + (one.base is not None) * one.nbytes for one in arrays) < 10_000
    again = pickle.loads(kept)
    assert (again.value == best.value).all() and (again.threshold == best.threshold).all()
    assert all((a == b).all() for a, b in zip(again.subset, subset))


def test_a_row_and_rows_of_logits_and_of_probabilities_agree(rows: Rows) -> None:
    many = sg.acceptance("rrs", *rows, 2, logits=True, temperature=0.7)
    one = sg.acceptance("rrs", rows[0][3], rows[1][3], 2, logits=True, temperature=0.7)
    assert isinstance(one.value, float) and one.value == many.value[3]
    given = sg.acceptance("rrs", softmax(rows[0] / 0.7), softmax(rows[1] / 0.7), 2)
    assert given.value == pytest.approx(many.value, abs=1e-12)
    assert one.scheme == "with-replacement" and one.kind == "enclosed"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_strides_types_and_files_do_not_matter(
    rows: Rows, dtype: type[Any], tmp_path: Path
) -> None:
    p, q = rows[0].astype(dtype), rows[1].astype(dtype)
    want = sg.alpha(p.astype(np.float64), q.astype(np.float64), 2, logits=True).value
    wide = np.zeros((10, 600), dtype)
    wide[::2, 1::2] = p
    backwards = p[::-1, ::-1].copy()[::-1, ::-1]
    np.save(tmp_path / "p.npy", p)
    mapped = np.load(tmp_path / "p.npy", mmap_mode="r")
    frozen = p.copy()
    frozen.flags.writeable = False
    for own in (p, np.asfortranarray(p), wide[::2, 1::2], backwards, mapped, frozen):
        assert (sg.alpha(own, q, 2, logits=True).value == want).all()
        report = sg.gap(own, q, drafts=2, temperature=1.0, verifiers="rrs", positions=True)
        table = report.positions().to_numpy()["with-replacement/optimum"]
        assert table == pytest.approx(want, abs=1e-12)
        again = sg.gap(p, q, drafts=2, temperature=1.0, verifiers="rrs")
        assert report.json == again.json


def test_bfloat16_is_read_by_its_bits(rows: Rows) -> None:
    types = pytest.importorskip("ml_dtypes")
    p, q = rows[0].astype(types.bfloat16), rows[1].astype(types.bfloat16)
    want = sg.alpha(p.astype(np.float64), q.astype(np.float64), 2, logits=True).value
    assert (sg.alpha(p, q, 2, logits=True).value == want).all()
    mixed = sg.alpha(np.asfortranarray(p), q.astype(np.float32), 2, logits=True)
    assert (mixed.value == want).all()


def test_torch_tensors_share_their_memory(rows: Rows) -> None:
    torch = pytest.importorskip("torch")
    p, q = torch.from_numpy(rows[0]), torch.from_numpy(rows[1])
    want = sg.alpha(*rows, 2, logits=True).value
    assert (sg.alpha(p, q, 2, logits=True).value == want).all()
    assert (sg.alpha(p.T.contiguous().T, q, 2, logits=True).value == want).all()
    half = sg.alpha(p.bfloat16(), q.bfloat16(), 2, logits=True).value
    assert (half == sg.alpha(p.bfloat16().double(), q.bfloat16().double(), 2, logits=True).value).all()
    report = sg.gap(p.bfloat16(), q.bfloat16(), drafts=2, temperature=1.0)
    assert report.summary is not None and report.summary.positions == 5


def test_rows_are_not_copied() -> None:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(2, 64, 100_000)).astype(np.float32)
    own = wide[:, :, ::2]
    tracemalloc.start()
    sg.gap(own[0], own[1], drafts=2, temperature=1.0, verifiers="rrs", threads=1)
    sg.alpha(own[0], own[1], 2, logits=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # NumPy tells tracemalloc of every array that it makes.
    assert peak < own[0].nbytes / 10


def test_what_is_refused_says_what_it_takes(rows: Rows) -> None:
    p, q = softmax(rows[0]), softmax(rows[1])
    with pytest.raises(TypeError, match="p: has entries of type int64; rows are float16"):
        sg.alpha(np.ones((1, 3), dtype=np.int64), q, 2)
    with pytest.raises(TypeError, match="other byte order"):
        sg.alpha(p.astype(">f8"), q, 2)
    with pytest.raises(ValueError, match="p: has 3 axes"):
        sg.alpha(p[None], q, 2)
    with pytest.raises(ValueError, match="both are rows over one vocabulary"):
        sg.alpha(p[:, :-1], q, 2)
    with pytest.raises(ValueError, match="p: row 0: sums to .* say logits=True"):
        sg.alpha(np.abs(rows[0]), q, 2)
    with pytest.raises(ValueError, match="q: row 2: entry 7 is -0.5"):
        bad = q.copy()
        bad[2, 7] = -0.5
        sg.alpha(p, bad, 2)
    with pytest.raises(ValueError, match="p: row 1: entry 3 is NaN"):
        logits = rows[0].copy()
        logits[1, 3] = np.nan
        sg.alpha(logits, rows[1], 2, logits=True)
    with pytest.raises(ValueError, match="product has no optimum of rows"):
        sg.alpha(p, q, 2, "product")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="rrs is for with-replacement, .* not for 2 without-replacement drafts; .* take rrs-wo"):
        sg.acceptance("rrs", p, q, 2, "without-replacement")
    with pytest.raises(ValueError, match="nonsense"):
        sg.acceptance("nonsense", p, q, 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="drafts|65"):
        sg.alpha(p, q, 65)


def test_numbers_that_cannot_be_meant(rows: Rows) -> None:
    p, q = softmax(rows[0]), softmax(rows[1])
    for n, error, message in [
        (-1, ValueError, "n is -1; drafts are at least 1"),
        (0, ValueError, "n is 0; drafts are at least 1"),
        (2.5, TypeError, "n: give drafts as a whole number, such as 2; this is float"),
        (None, TypeError, "this is NoneType"),
    ]:
        for ask in (sg.alpha, sg.plan):
            with pytest.raises(error, match=message):
                ask(p[0], q[0], n)  # type: ignore[arg-type]
    assert sg.alpha(p[0], q[0], np.int64(2)).n == 2  # type: ignore[call-overload]
    # Probabilities would be left as they are, and the answer be of another temperature.
    with pytest.raises(ValueError, match="temperature is 0.7, which is for logits: say logits=True"):
        sg.alpha(p, q, 2, temperature=0.7)
    with pytest.raises(TypeError, match="the verifier's name comes first"):
        sg.acceptance(p, q, 2, "rrs")  # type: ignore[arg-type]


def test_every_scheme_and_verifier_has_words() -> None:
    assert "with-replacement" in sg.schemes() and "rrs" in sg.verifiers()
    assert all(sg.schemes().values()) and all(sg.verifiers().values())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_plan_is_lossless_and_optimal(n: int) -> None:
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.full(5, 0.7)), rng.dirichlet(np.full(5, 0.7))
    plan = sg.plan(p, q, n)
    best = sg.alpha(p, q, n)
    assert plan.acceptance[0] == pytest.approx(best.value, abs=1e-9) and plan.is_optimal

    def rule(p: Any, q: Any, drafts: Any, rng: sg.Branching) -> Any:
        return plan.law(drafts)

    found = sg.evaluate(rule, p, q, n)
    assert found.lossless == "exact" and abs(found.gap[0]) < 1e-9
    assert 0.0 <= plan.shortfall < 1e-12
    with pytest.raises(ValueError, match="plans for with-replacement, not for without-replacement"):
        sg.plan(p, q, n, "without-replacement")  # type: ignore[arg-type]


def test_a_plan_emits_by_its_law() -> None:
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    plan = sg.plan(p, q, 2)
    drafts = np.tile([0, 1], (20_000, 1))
    tokens, accepted = plan.emit(drafts, np.random.default_rng(5))
    law = plan.law([0, 1])
    # Four standard deviations: wrong once in 10,000 a token.
    seen = np.bincount(tokens, minlength=3) / len(tokens)
    assert np.abs(seen - law).max() < 4 * 0.5 / np.sqrt(len(tokens))
    assert set(np.unique(accepted)) <= {-1, 0, 1}
    assert plan.emit([0, 1], 3) == plan.emit([0, 1], 3)
    with pytest.raises(ValueError, match="token 3 is outside the vocabulary of 3"):
        plan.emit([0, 3])
    with pytest.raises(ValueError, match="has 3 tokens a tuple; the plan is for 2"):
        plan.emit([0, 1, 2])


FORMS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "these are probabilities": lambda p: p,
    "to base 2": np.log2,
    "to base 10": np.log10,
    "negative log-likelihoods": lambda p: -np.log(p),
}


@pytest.mark.parametrize("words", FORMS)
def test_what_is_called_logits_and_is_not_is_refused(
    words: str, rows: Rows, tmp_path: Path
) -> None:
    p, q = softmax(rows[0]), softmax(rows[1])
    other = FORMS[words](p)
    calls = [
        lambda: sg.alpha(other, q, 2, logits=True),
        lambda: sg.alpha(rows[0], other, 2, logits=True),
        lambda: sg.acceptance("rrs", other, rows[1], 2, logits=True),
        lambda: sg.plan(other[0], rows[1][0], 2, logits=True),
        lambda: sg.gap(other, rows[1]),
        lambda: sg.Log.of_arrays(target_logits=rows[0], draft_logits=other),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"row 0: .*{words}"):
            call()  # type: ignore[no-untyped-call]
    # The writer would subtract a constant from each row, which hides it.
    for dtype in ("float16", "float32"):
        with (
            pytest.raises(ValueError, match=f"target_logits: row 0: .*{words}"),
            sg.LogWriter(tmp_path / dtype, dtype=dtype) as log,
        ):
            for row in range(5):
                log.append(target_logits=other[row], draft_logits=rows[1][row])
    # Natural logarithms are logits, whatever is added to each row.
    for natural in (np.log(p), np.log(p) - np.log(p).max(-1, keepdims=True)):
        sg.gap(natural, rows[1], drafts=2, temperature=1.0)
        sg.plan(natural[0], rows[1][0], 2, logits=True)
        with sg.LogWriter(tmp_path / f"fine-{natural.max()}") as log:
            for row in range(5):
                log.append(target_logits=natural[row], draft_logits=rows[1][row])


def test_logits_where_probabilities_are_wanted_say_so(rows: Rows) -> None:
    calls: list[Callable[..., object]] = [sg.alpha, sg.plan]
    for call in calls:
        with pytest.raises(ValueError, match="if these are logits, say logits=True"):
            call(rows[0][0], rows[1][0], 2)
        with pytest.raises(ValueError, match="if these are logits, say logits=True"):
            call(np.abs(rows[0][0]), np.abs(rows[1][0]), 2)


def test_masked_arrays_are_refused(rows: Rows) -> None:
    p, q = softmax(rows[0]), softmax(rows[1])
    masked = np.ma.masked_less(p, 0.1)
    for call in (
        lambda: sg.alpha(masked, q, 2),
        lambda: sg.alpha([row for row in masked], q, 2),
        lambda: sg.gap({"target_probs": masked, "draft_probs": q}),
        lambda: sg.gap(*rows, token=np.ma.masked_less(np.arange(5), 2)),
    ):
        with pytest.raises(TypeError, match="masked array.*filled"):
            call()
    sg.alpha(np.ma.masked_less(p, -1.0).filled(0), q, 2)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_a_small_call_is_answered_where_it_is_made() -> None:
    code = """
import os, numpy as np, specgap as sg
p, q = np.random.default_rng(0).dirichlet(np.ones(20), (2, 300))
before = len(os.listdir("/proc/self/task"))
sg.alpha(p[0], q[0], 2), sg.alpha(p[0], q[0], 2, "hub"), sg.acceptance("rrs", p[0], q[0], 2)
assert len(os.listdir("/proc/self/task")) == before
many, one = sg.alpha(p, q, 2).value, [sg.alpha(*pair, 2).value for pair in zip(p, q)]
assert len(os.listdir("/proc/self/task")) > before and (many == one).all()
told = []
sg.alpha(p[:3], q[:3], 2, progress=lambda *numbers: told.append(numbers))
assert told == [(3, 3)]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_several_numbers_of_drafts_are_those_of_each_alone() -> None:
    rng = np.random.default_rng(17)
    p, q = rng.dirichlet(np.full(40, 0.3), 6), rng.dirichlet(np.full(40, 0.3), 6)
    drafts = [4, 1, 2]
    for scheme in ("with-replacement", "without-replacement", "greedy", "distinct-conditioned"):
        law: Any = scheme
        every = sg.alpha(p, q, drafts, law)
        assert [one.n for one in every] == drafts
        for one in every:
            alone = sg.alpha(p, q, one.n, law)
            assert one.value == pytest.approx(alone.value, abs=1e-13)
            assert (one.lower <= alone.upper).all() and (alone.lower <= one.upper).all()
            assert one.kind == alone.kind and one.scheme == alone.scheme
            if scheme != "greedy":
                assert one.inside == pytest.approx(alone.inside, abs=1e-12)
                for row, subset in enumerate(one.subset):
                    found = 1 + p[row][subset].sum() - one.inside[row]
                    assert found == pytest.approx(one.value[row], abs=1e-12)
    several: Any = np.array([1, 3])
    single: Any = sg.alpha(p[0], q[0], several)
    assert [type(one.value) for one in single] == [float, float]
    assert single[0].value == pytest.approx(float(np.minimum(p[0], q[0]).sum()), abs=1e-14)
    with pytest.raises(ValueError, match="n: is an empty list"):
        sg.alpha(p, q, [])
    with pytest.raises(ValueError, match="n is 0; drafts are at least 1"):
        sg.alpha(p, q, [2, 0])
    with pytest.raises(TypeError, match="several, and two says itself"):
        two: Any = sg.laws.independent([q, q], name="two")
        sg.alpha(p, None, [2], two)
