"""Own rules of blocks and of whole texts: every draft and coin, against other derivations."""

from __future__ import annotations

import doctest
import functools
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import specgap as sg
from specgap import _evaluate_text, _problems
from specgap.carried import Carried, CarriedBlock

from .conftest import ROOT
from .test_carried import model


def token(p: Any, q: Any, drafts: Any, rng: Any) -> tuple[int, int]:
    for k, x in enumerate(drafts):
        if not rng.branch(min(1.0, p[k, x] / q[k, x])):
            left = np.maximum(p[k] - q[k], 0)
            return k, rng.choice(len(left), p=left / left.sum())
    return len(drafts), rng.choice(p.shape[1], p=p[-1])


def by_block(p: Any, q: Any, drafts: Any, rng: Any) -> tuple[int, int]:
    """Sun et al., Algorithm 2: the longest accepted prefix wins."""
    reach, best, left = 1.0, 0, np.maximum(p[0] - q[0], 0)
    many = len(drafts)
    for k in range(many + 1):
        if k > 0:
            x = drafts[k - 1]
            reach = min(1.0, reach * p[k - 1, x] / q[k - 1, x])
        own = np.maximum(reach * p[k] - (q[k] if k < many else 0.0), 0)
        mass = own.sum()
        chance = reach if k == many else mass / (mass + 1 - reach) if mass + 1 - reach > 0 else 1.0
        if k == 0 or rng.branch(chance):
            best, left = k, own
    left = left if left.sum() > 0 else p[best]
    return best, rng.choice(len(left), p=left / left.sum())


def test_one_path_of_a_block() -> None:
    for seed, (size, length) in enumerate([(2, 2), (3, 2), (2, 3)]):
        rows = model(seed, size, length + 1)
        p, q = ({prefix: row[of] for prefix, row in rows.items()} for of in (0, 1))
        mine = sg.evaluate_block(token, p, q, length=length)
        best = sg.evaluate_block(by_block, p, q, length=length)
        for found in (mine, best):
            assert found.lossless == "exact" and found.total_variation < 1e-12
        # Block verification is the best that leaves later rounds alone; greedy blocks have more.
        assert best.block is not None and abs(best.accepted - best.block) < 1e-12
        assert mine.accepted <= best.accepted + 1e-12 and best.gap > -1e-9
        greedy = sum(
            min(*(np.prod([rows[path[:k]][of][x] for k, x in enumerate(path)]) for of in (0, 1)))
            for many in range(1, length + 1)
            for path in product(range(size), repeat=many)
        )
        assert abs(best.optimum - greedy) < 1e-9
        accepted = sum(
            np.prod([min(rows[path[:k]][0][x], rows[path[:k]][1][x]) for k, x in enumerate(path)])
            for many in range(1, length + 1)
            for path in product(range(size), repeat=many)
        )
        assert abs(mine.accepted - accepted) < 1e-12


def test_several_paths_and_a_rule_that_is_lossy() -> None:
    p, q = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]

    def first_path(p: Any, q: Any, drafts: Any, rng: Any) -> tuple[int, int, int]:
        return (0, *token(p[0], q[0], drafts[0], rng))

    one = sg.evaluate_block(token, p, q, length=1)
    two = sg.evaluate_block(first_path, p, q, length=1, paths=2)
    assert two.lossless == "exact" and abs(two.accepted - one.accepted) < 1e-12
    # alpha* of two drafts of one token is the optimum of the block.
    assert abs(two.optimum - sg.alpha(p, q, 2).value) < 1e-9 and two.gap > 0.01

    def likeliest(p: Any, q: Any, drafts: Any, rng: Any) -> tuple[int, int, int]:
        x = max(int(drafts[0, 0]), int(drafts[1, 0]))
        path = int(drafts[0, 0] != x)
        if rng.branch(min(1.0, p[0, 0, x] / q[0, 0, x])):
            return path, 1, rng.choice(3, p=p[0, 1])
        return path, 0, rng.choice(3, p=p[0, 0])

    lossy = sg.evaluate_block(likeliest, p, q, length=1, paths=2)
    assert lossy.lossless == "refuted" and lossy.witness is not None and lossy.witness[0] == 2
    assert "NO" in str(lossy) and "2" in lossy._repr_html_()


def test_block_problems() -> None:
    path = ROOT / "problems" / "golden-blocks" / "block-v2-l3-k2-7.toml"
    found = sg.block(path).to_dict()
    value = found["block_optimum"]["value"]
    assert found["drafts"] == 2 and sg.block(path, drafts=3).to_dict()["block_optimum"]["value"] > value
    with pytest.raises(ValueError, match="sg.block"):
        sg.solve(path)
    with pytest.raises(ValueError, match="drafts is 0"):
        sg.block(path, drafts=0)


@pytest.mark.parametrize("shape", [(2, 4, 1), (2, 4, 2), (3, 3, 2)])
def test_whole_texts(shape: tuple[int, int, int]) -> None:
    size, tokens, drafts = shape
    rows = model(3, size, tokens)
    p, q = ({prefix: row[of] for prefix, row in rows.items()} for of in (0, 1))

    def of(rule: Any) -> sg.TextEvaluation:
        return sg.evaluate_text(rule, p, q, tokens=tokens, drafts=drafts)

    by_token, block = of(token), of(by_block)
    carried, carried_block = of(lambda: Carried(drafts)), of(lambda: CarriedBlock(drafts))
    for found in (by_token, block, carried, carried_block):
        assert found.lossless == "exact", found
        assert found.calls >= found.fewest - 1e-9
        assert abs(found.tokens_per_call * found.calls - tokens) < 1e-12
    assert abs(by_token.calls - by_token.token) < 1e-9 and abs(block.calls - block.block) < 1e-9
    if drafts == 1:
        assert abs(carried.calls - carried.fewest) < 1e-9

    class Forgets(Carried):
        def verify(self, *args: Any) -> tuple[int, int]:
            self.shares = self.shares * 0 + 1 / len(self.shares)
            return super().verify(*args)

    lossy = of(lambda: Forgets(drafts))
    if drafts == 1:
        # It is token verification, but for the token behind a whole chain.
        assert lossy.lossless == "refuted" and lossy.witness is not None
        assert "NO" in str(lossy) and str(lossy.witness) in lossy._repr_html_()


def test_numbers_in_fractions() -> None:
    # p = (1/2, 1/2), q = (3/4, 1/4), three tokens: 33/16 calls by token, 2 at least.
    found = sg.evaluate_text(token, [0.5, 0.5], [[0.75, 0.25]] * 3, tokens=3, drafts=1)
    assert Fraction(found.calls) == Fraction(33, 16) and found.fewest == 2.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": [0.5, 0.4]}, "target, behind .*sums to 0.9"),
        ({"target": {(): [0.5, 0.5]}}, "target, behind .0.: there is no row"),
        ({"draft": [[0.5, 0.5]]}, "draft, behind .0.: there are 1 rows"),
        ({"rule": lambda p, q, drafts, rng: 3}, "return .accepted, token."),
        ({"rule": lambda p, q, drafts, rng: (9, 0)}, "2 drafts can be accepted"),
        ({"rule": lambda p, q, drafts, rng: (0, int(rng.integers(2)))}, "cannot be enumerated"),
        ({"length": 0}, "length is 0"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"rule": token, "target": [0.5, 0.5], "draft": [0.5, 0.5], "length": 2}
    asked.update(given)
    with pytest.raises(ValueError, match=message):
        sg.evaluate_block(asked["rule"], asked["target"], asked["draft"], length=asked["length"])


@pytest.mark.parametrize("module", [_evaluate_text, _problems])
def test_the_examples_run(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_what_cannot_be_meant_is_said() -> None:
    toy = {"target": [0.5, 0.5], "draft": [0.75, 0.25], "tokens": 3, "drafts": 1}
    for rule, error, words in [
        (3, TypeError, "rule: is int; give a function of"),
        (Carried, TypeError, "rule: takes .*give a function of"),
        (lambda: None, TypeError, "returned NoneType; return an object with a method"),
        (lambda p, q, drafts, rng: (0.7, 1.9), ValueError, "all of them whole numbers"),
        (lambda p, q, drafts, rng: (0, None), ValueError, "all of them whole numbers"),
    ]:
        with pytest.raises(error, match=words):
            sg.evaluate_text(rule, **toy)  # type: ignore[arg-type]
    for target, draft in ([[0.5, 0.5], [0.2, 0.3, 0.5]], [[0.2, 0.3, 0.5], [0.5, 0.5]]):
        with pytest.raises(ValueError, match="draft, behind .*all are over one vocabulary"):
            sg.evaluate_text(token, target, draft, tokens=3, drafts=1)
        with pytest.raises(ValueError, match="draft, behind .*all are over one vocabulary"):
            sg.evaluate_block(token, target, draft, length=1)
    with pytest.raises(ValueError, match="target, behind .*: gives no row of numbers"):
        sg.evaluate_text(token, [[0.5, 0.5], [1.0]], [0.5, 0.5], tokens=2, drafts=1)
    with pytest.raises(ValueError, match="returned path 7; paths are 0 to 1"):
        sg.evaluate_block(lambda *_: (7, 0, 0), [0.5, 0.5], [0.5, 0.5], length=1, paths=2)
    with pytest.raises(ValueError, match="more than 400,000 texts of 5"):
        sg.evaluate_text(token, np.eye(100)[0], np.eye(100)[0], tokens=5, drafts=1)


def test_a_rule_that_makes_another_may_have_defaults() -> None:
    for rule in (lambda most=1: Carried(most), functools.partial(Carried, most=1)):
        found = sg.evaluate_text(rule, [0.5, 0.5], [0.75, 0.25], tokens=3, drafts=1)
        assert found.lossless == "exact" and found.calls == 2.0


def test_own_random_numbers_are_no_outcomes() -> None:
    rng = np.random.default_rng(0)

    def own(p: Any, q: Any, drafts: Any, _: Any) -> tuple[int, int]:
        return 0, int(rng.random() < p[0, 1])

    with pytest.raises(ValueError, match="random numbers of its own"):
        sg.evaluate_text(own, [0.5, 0.5], [0.75, 0.25], tokens=4, drafts=1)


def test_fewer_calls_than_lossless_rules_make_are_below() -> None:
    found = sg.evaluate_text(
        lambda p, q, drafts, rng: (len(drafts), 0), [0.5, 0.5], [0.75, 0.25], tokens=3, drafts=2
    )
    assert found.lossless == "refuted" and "% below the fewest" in str(found)
