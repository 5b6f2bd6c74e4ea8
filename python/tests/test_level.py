"""Stratified drafts and rejection by level: every draw and coin is gone through, and the rates are
those of the oracle, which enumerates tuples in fractions."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from specgap import rules
from specgap._drafting import strata as cut_strata

from .conftest import ROOT, Coins

#: (q, p, n): ties, sure tokens, zeros of a mask and of a cut, one-hot rows, n above the support.
EDGES = [
    ([1 / 3, 1 / 3, 1 / 3], [0.6, 0.4, 0.0], 2),
    ([0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4], 3),
    ([0.125] * 8, [0.3, 0.0, 0.1, 0.0, 0.2, 0.2, 0.1, 0.1], 4),
    ([0.0, 0.0, 1.0, 0.0], [0.0, 0.5, 0.5, 0.0], 2),
    ([0.3, 0.4, 0.3], [0.0, 0.0, 1.0], 2),
    ([0.0, 0.7, 0.0, 0.3], [0.4, 0.1, 0.0, 0.5], 4),
    ([0.05, 0.6, 0.05, 0.1, 0.1, 0.1], [0.5, 0.1, 0.0, 0.2, 0.2, 0.0], 3),
    ([0.0, 0.2, 0.0, 0.2, 0.3, 0.3], [0.0, 0.5, 0.0, 0.5, 0.0, 0.0], 3),
    ([0.6, 0.4], [0.0, 1.0], 1),
    ([0.5, 0.5, 0.0], [0.0, 0.0, 1.0], 2),
]


def rows(seed: int, count: int) -> Iterator[tuple[Any, Any, int]]:
    generator = np.random.default_rng(seed)
    for _ in range(count):
        size = int(generator.integers(2, 8))
        p, q = generator.dirichlet([0.5] * size), generator.dirichlet([0.7] * size)
        if generator.random() < 0.3:
            q[generator.integers(size)] = 0.0
        if q.sum() > 0:
            yield q / q.sum(), p, int(generator.integers(1, 5))
    for draft, target, n in EDGES:
        yield np.array(draft), np.array(target), n


class Explored:
    """Random numbers of which every outcome is gone through, by a script of outcomes."""

    def __init__(self, script: list[int]) -> None:
        self.script, self.at, self.weight = script, 0, 1.0
        self.open: list[list[int]] = []

    def choice(self, a: int, p: Any = None) -> int:
        weights = [1.0 / a] * a if p is None else list(p)
        if self.at == len(self.script):
            self.script.append(int(np.flatnonzero(weights)[0]))
        taken = self.script[self.at]
        self.open.append([int(x) for x in np.flatnonzero(weights) if x > taken])
        self.at += 1
        self.weight *= float(weights[taken])
        return taken

    def branch(self, prob: float) -> bool:
        return self.choice(2, [1.0 - prob, prob]) == 1


def outcomes(run: Callable[[Any], Any]) -> Iterator[tuple[float, Any]]:
    script: list[int] | None = []
    while script is not None:
        rng = Explored(script)
        found = run(rng)
        yield rng.weight, found
        left = [k for k, more in enumerate(rng.open) if more]
        script = [*rng.script[: left[-1]], rng.open[left[-1]][0]] if left else None


def summed(run: Callable[[Any], Any], size: int) -> tuple[Any, float]:
    """The law of the output, and the probability that it is one of the drafts."""
    law, hits = np.zeros(size), 0.0
    for weight, (drafts, (token, slot)) in outcomes(run):
        law[token] += weight
        hits += weight * (token in drafts)
        assert slot is None or drafts[slot] == token
    return law, hits


@pytest.fixture(scope="module")
def oracle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("oracle", ROOT / "scripts" / "oracle.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def problem(oracle: ModuleType, p: Any, q: Any, n: int, scheme: str, **more: str) -> Any:
    row = {"scheme": scheme, "q": [float(x) for x in q], **more}
    return oracle.Problem(
        {"schema": 1, "name": "", "target": [float(x) for x in p], "drafts": n, "draft": row}
    )


@pytest.mark.parametrize("straddle", ["once", "independent"])
def test_strata_have_their_shares_and_level_puts_out_the_target(straddle: Any) -> None:
    for q, p, n in rows(1, 30):
        drawn = np.zeros(len(q))
        repeats = 0.0

        def run(rng: Any) -> Any:
            drafts = rules.draft_strata(q, n, rng, straddle)
            return drafts, rules.verify_level(p, q, drafts, rng, straddle)

        for weight, drafts in outcomes(lambda rng: rules.draft_strata(q, n, rng, straddle)):
            assert len(drafts) == min(n, np.count_nonzero(q)) and (q[drafts] > 0).all()
            np.add.at(drawn, drafts, weight)
            repeats += weight * (len(set(drafts.tolist())) < len(drafts))
        # min(1, c q), with the c that makes n of it.
        factor = 1e300
        if np.count_nonzero(q) > n:
            low, factor = 0.0, n / q[q > 0].min()
            for _ in range(200):
                middle = 0.5 * (low + factor)
                low, factor = (
                    (low, middle) if np.minimum(1, middle * q).sum() > n else (middle, factor)
                )
        assert drawn == pytest.approx(np.minimum(1.0, factor * q), abs=1e-11)
        assert repeats == 0.0 or straddle == "independent"
        law, _ = summed(run, len(q))
        assert law == pytest.approx(p, abs=1e-12), (q, p, n)


@pytest.mark.parametrize("straddle", ["once", "independent"])
def test_level_over_strata_accepts_what_the_oracle_says(
    oracle: ModuleType, straddle: Any
) -> None:
    for q, p, n in rows(2, 25):
        if n > len(q):
            continue
        order = np.argsort(-q, kind="stable")  # the kernel cuts by token id
        p, q = p[order], q[order]

        def run(rng: Any) -> Any:
            drafts = rules.draft_strata(q, n, rng, straddle)
            return drafts, rules.verify_level(p, q, drafts, rng, straddle)

        _, hits = summed(run, len(q))
        asked = problem(oracle, p, q, n, "stratified", straddle=straddle)
        assert hits == pytest.approx(float(oracle.level_strata(asked)), abs=1e-11), (q, p, n)


def test_level_4_takes_drafts_that_are_cut_by_weight(oracle: ModuleType) -> None:
    for q, p, n in rows(3, 15):
        if n > len(q):
            continue
        asked = problem(oracle, p, q, n, "stratified")
        law = np.zeros(len(q))
        for drafts, weight in oracle.draft_tuples(asked):
            for chance, (token, _) in outcomes(
                lambda rng: rules.level_4(p, q, np.array(drafts), rng)
            ):
                law[token] += chance * float(weight)
        assert law == pytest.approx(p, abs=1e-12)


def test_passes_over_independent_drafts(oracle: ModuleType) -> None:
    for q, p, n in rows(4, 12):
        n = min(n, 3)
        asked = problem(oracle, p, q, n, "with-replacement")
        law, hits = np.zeros(len(q)), 0.0
        for drafts, weight in oracle.draft_tuples(asked):
            for chance, (token, slot) in outcomes(
                lambda rng: rules.level_4_iid(p, q, np.array(drafts), rng)
            ):
                assert slot is None or drafts[slot] == token
                law[token] += chance * float(weight)
                hits += chance * float(weight) * (token in drafts)
        assert law == pytest.approx(p, abs=1e-12)
        assert hits == pytest.approx(float(oracle.level_iid(asked)), abs=1e-9)


def test_drafts_of_another_cut_are_refused() -> None:
    q = np.array([0.1, 0.2, 0.3, 0.4])
    with pytest.raises(ValueError, match="outside its stratum"):
        rules.verify_level(q, q, np.array([3, 0]), Explored([0] * 20))  # type: ignore[arg-type]


@pytest.mark.parametrize("straddle", ["once", "independent"])
def test_torch_does_the_same_with_the_same_coins(straddle: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from specgap import kernels

    generator = np.random.default_rng(5)
    for n in (1, 2, 4):
        size = 9
        p, q = (generator.dirichlet([0.4] * size, 300) for _ in range(2))
        q[::3, 2] = 0.0
        q[::7, 1:] = 0.0
        q[::5] = np.round(q[::5] * 8) + 1.0
        p[1::4] = np.eye(size)[generator.integers(size, size=len(p[1::4]))]
        q[::2] = np.maximum(q[::2] - 0.05, 0)
        q[q.sum(1) == 0, 4] = 1.0
        q /= q.sum(1, keepdims=True)
        coins, flips = generator.random((300, n)), generator.random((300, 4 * n + 1))
        rows_p, rows_q = torch.tensor(p), torch.tensor(q)
        drafts = kernels.draft_strata(rows_q, n, torch.tensor(coins), straddle)
        token, slot = kernels.verify_level(rows_p, rows_q, drafts, torch.tensor(flips), straddle)
        again = generator.random((300, 8 * (n + 1) + 1))
        ids = np.array([generator.choice(size, n, p=row) for row in q])
        free, place = kernels.verify_level_iid(
            rows_p, rows_q, torch.tensor(ids), torch.tensor(again)
        )
        for row in range(300):
            wanted = rules.draft_strata(q[row], n, Coins(list(coins[row])), straddle)  # type: ignore[arg-type]
            # Which of equal sure tokens comes first is left open.
            assert sorted(drafts[row].tolist()) == sorted([*wanted, *[-1] * (n - len(wanted))])
            wanted = drafts[row, : len(wanted)].numpy()
            strata = len(cut_strata(q[row], n, straddle)[1])
            used = [flips[row, t * n + j] for t in range(4) for j in reversed(range(strata))]
            fed = Coins([*used, flips[row, -1]])
            if len(wanted) == n:  # else the kernel in NumPy cuts the row for fewer drafts
                got = rules.verify_level(p[row], q[row], wanted, fed, straddle)  # type: ignore[arg-type]
                assert (int(token[row]), int(slot[row])) == (got[0], -1 if got[1] is None else got[1])
            else:
                assert p[row, int(token[row])] > 0
            assert _by_turns(p[row], q[row], ids[row], again[row]) == (
                int(free[row]),
                int(place[row]),
            )


def test_torch_draws_by_one_noise_as_numpy_does() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from specgap import kernels

    generator = np.random.default_rng(6)
    p, q = (generator.dirichlet([0.4] * 5, 200) for _ in range(2))
    q[::3, 1:] = 0.0
    p[1::4] = np.eye(5)[generator.integers(5, size=len(p[1::4]))]
    noise = generator.exponential(size=(200, 5))
    for n in (1, 2, 7):
        drafts, token, slot = kernels.shared_gumbel(torch.tensor(p), torch.tensor(q), torch.tensor(noise), n)
        for row in range(200):
            wanted, own, place = rules.shared_gumbel(p[row], q[row], noise[row], n)
            assert drafts[row].tolist() == wanted + [-1] * (n - len(wanted))
            assert (int(token[row]), int(slot[row])) == (own, -1 if place is None else place)


def test_the_example_of_the_kernels_runs() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    outcome = doctest.testmod(importlib.import_module("specgap.kernels"))
    assert outcome.failed == 0 and outcome.attempted > 3


def _by_turns(p: Any, q: Any, drafts: Any, coins: Any) -> tuple[int, int]:
    """`level_4_iid` with a coin for every choice of a pass, taken or not."""
    n = len(drafts)

    class Turns(Coins):
        flipped = 0

        def branch(self, prob: float) -> bool:
            turn, k = divmod(self.flipped, n)
            self.flipped += 1
            self.coins = [coins[turn * (n + 1) + n]]
            return bool(coins[turn * (n + 1) + k] < prob)

        def choice(self, a: int, p: Any = None) -> int:
            self.coins = self.coins if p is None else [coins[-1]]
            return super().choice(a, p)

    token, slot = rules.level_4_iid(p, q, drafts, Turns([]))  # type: ignore[arg-type]
    return token, -1 if slot is None else slot
