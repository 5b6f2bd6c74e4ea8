"""Rules that carry numbers between rounds: every draft and coin of whole texts is gone through. The
text has the target's law, and calls are those of a formula along the text."""

from __future__ import annotations

import doctest
from itertools import product
from typing import Any

import numpy as np
import pytest

from specgap import carried

from .test_level import outcomes

SHAPES = [(2, 3, 1), (2, 4, 2), (3, 3, 2), (2, 4, 3), (2, 5, 2)]


def model(seed: int, size: int, length: int) -> dict[tuple[int, ...], Any]:
    """p and q behind every prefix, with zeros in some rows."""
    generator = np.random.default_rng(seed)
    rows = {}
    for depth in range(length):
        for prefix in product(range(size), repeat=depth):
            p, q = generator.dirichlet([0.6] * size, 2)
            if generator.random() < 0.2:
                q = np.eye(size)[generator.integers(size)]
            rows[prefix] = (p, q)
    return rows


def decoded(rule: Any, rows: Any, length: int, most: int, rng: Any) -> tuple[tuple[int, ...], int]:
    text: tuple[int, ...] = ()
    calls = 0
    while len(text) < length:
        drafts: tuple[int, ...] = ()
        for _ in range(min(most, length - 1 - len(text))):
            q = rows[text + drafts][1]
            drafts += (int(rng.choice(len(q), p=q)),)
        path = [rows[text + drafts[:k]] for k in range(len(drafts) + 1)]
        p, q = (np.array([row[of] for row in path]) for of in (0, 1))
        if len(text) + len(drafts) + 1 == length:
            q[-1] = 0
        accepted, token = rule.verify(p, q, drafts, rng)
        text += (*drafts[:accepted], token)
        calls += 1
    return text, calls


def by_formula(rows: Any, text: tuple[int, ...], most: int) -> float:
    """Calls of `Carried` along a text, age by age."""
    ages, calls = [1.0], 1.0
    for t in range(len(text) - 1):
        p, q = (float(row[text[t]]) for row in rows[text[:t]])
        standing = sum(ages[:most])
        kept = min(1.0, standing * q / p)
        ages = [1 - kept, *(age / standing * kept if kept else 0.0 for age in ages[:most])]
        calls += ages[0]
    return calls


@pytest.mark.parametrize("kind", [carried.Carried, carried.CarriedBlock])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_text_has_the_targets_law(kind: Any, shape: tuple[int, int, int]) -> None:
    size, length, most = shape
    for seed in range(2):
        rows = model(seed, size, length)
        law: dict[tuple[int, ...], float] = {}
        calls = 0.0
        for weight, (text, count) in outcomes(
            lambda rng: decoded(kind(most), rows, length, most, rng)
        ):
            law[text] = law.get(text, 0.0) + weight
            calls += weight * count
        wanted = {
            text: float(np.prod([rows[text[:t]][0][x] for t, x in enumerate(text)]))
            for text in product(range(size), repeat=length)
        }
        assert all(abs(law.get(text, 0.0) - p) < 1e-9 for text, p in wanted.items())
        token = sum(p * by_formula(rows, text, most) for text, p in wanted.items())
        if kind is carried.Carried or most == 1:
            assert abs(calls - token) < 1e-9
        else:
            assert calls < token + 1e-9


class AsTensors:
    """The rule with rows that are torch tensors, draws still gone through."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule

    def verify(self, p: Any, q: Any, drafts: Any, rng: Any) -> tuple[int, int]:
        torch = pytest.importorskip("torch")

        class Draws:
            def choice(self, a: int, *, p: Any) -> int:
                return int(rng.choice(a, p=np.asarray(p)))

        found: tuple[int, int] = self.rule.verify(
            torch.as_tensor(p), torch.as_tensor(q), drafts, Draws()
        )
        return found


@pytest.mark.parametrize("kind", [carried.Carried, carried.CarriedBlock])
def test_torch_tensors_are_verified_as_arrays_are(kind: Any) -> None:
    torch = pytest.importorskip("torch")
    rows = model(1, 3, 3)
    both = [
        list(outcomes(lambda rng: decoded(make(kind(2)), rows, 3, 2, rng)))
        for make in (lambda rule: rule, AsTensors)
    ]
    assert len(both[0]) == len(both[1])
    for (weight, found), (other, same) in zip(*both):
        assert abs(weight - other) < 1e-12 and found == same
    # Draws on the tensors' device follow their law.
    rng = carried.TorchDraws(torch.Generator().manual_seed(1))
    law = torch.tensor([0.0, 0.75, 0.25])
    drawn = [rng.choice(3, p=law) for _ in range(2000)]
    assert 0 not in drawn and abs(drawn.count(1) / 2000 - 0.75) < 0.05


def test_numbers_that_are_thrown_away_change_the_text() -> None:
    rows = model(0, 2, 3)
    first: dict[tuple[int, ...], float] = {}

    class Forgets(carried.Carried):
        def verify(self, *args: Any) -> tuple[int, int]:
            self.shares = np.ones(1)
            return super().verify(*args)

    for weight, (text, _) in outcomes(lambda rng: decoded(Forgets(1), rows, 3, 1, rng)):
        first[text] = first.get(text, 0.0) + weight
    wanted = {
        text: float(np.prod([rows[text[:t]][0][x] for t, x in enumerate(text)]))
        for text in product(range(2), repeat=3)
    }
    assert max(abs(first.get(text, 0.0) - p) for text, p in wanted.items()) > 1e-3


@pytest.mark.parametrize("example", doctest.DocTestFinder().find(carried), ids=lambda one: one.name)
def test_the_examples_run(example: doctest.DocTest) -> None:
    if any("import torch" in one.source for one in example.examples):
        pytest.importorskip("torch")
    assert doctest.DocTestRunner().run(example).failed == 0
