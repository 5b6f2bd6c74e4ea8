"""Trees at one price: the drafter's functions give the shapes that were replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import specgap as sg
from specgap import rules


def texts(generator: Any, prompts: int, length: int, size: int) -> dict[str, Any]:
    """Whole rows, peaked and flat ones, and tokens drawn from the target's."""
    scale = generator.uniform(0.5, 4.0, (prompts * length, 1))
    target = (generator.normal(size=(prompts * length, size)) * scale).astype(np.float32)
    draft = (target + generator.normal(size=target.shape)).astype(np.float32)
    p = np.exp(target - target.max(1, keepdims=True).astype(float))
    p /= p.sum(1, keepdims=True)
    return {
        "target_logits": target,
        "draft_logits": draft,
        "token": np.array([generator.choice(size, p=row) for row in p]),
        "prompt_id": np.repeat(np.arange(prompts), length),
        "position": np.tile(np.arange(length), prompts),
    }


def test_the_drafter_shapes_trees_as_they_were_replayed(tmp_path: Path) -> None:
    prompts, length, size = 8, 12, 24
    made = texts(np.random.default_rng(5), prompts, length, size)
    np.savez(tmp_path / "log.npz", **made)
    report = sg.tree(
        tmp_path / "log.npz", price=True, topology="2x2", schemes="stratified",
        verifiers="level-4", budget=6, max_depth=4, max_branch=5, temperature=1.0,
    ).to_dict()["priced"]  # fmt: skip
    price = report["price"]
    q = np.exp(made["draft_logits"].astype(float))
    q /= q.sum(1, keepdims=True)
    counts = np.zeros((4, 6), dtype=int)
    # The half that measures: those whose number has an odd count of ones.
    for prompt in (at for at in range(prompts) if bin(at).count("1") % 2 == 1):
        for start in range(length):
            chance = 1.0
            for depth, at in enumerate(range(start, min(start + 4, length))):
                row = q[prompt * length + at]
                n = rules.children(price, row, depth, chance)
                counts[depth, n] += 1
                if n == 0:
                    break
                token = int(made["token"][prompt * length + at])
                chance = rules.chance_of_child(price, row, n, token, chance)
    assert counts.tolist() == report["children"]
    assert (counts[0] > 0).sum() >= 2 and (counts[3] > 0).sum() >= 2


def test_all_chances_of_children_are_known() -> None:
    """Where all tokens are told apart: p = q, so that every draft is accepted."""
    one = [2.0**k for k in range(11)]
    price = {
        "price": 0.1, "levels": 2, "children": 4, "heaviest": 16, "q": [2.0**-10, 1.0],
        "factor": one, "ratio": [[1.0] * 11] * 2, "rest": [1.0] * 11, "worth": one,
        "ahead": [[0.0] * 11, [0.0] + [1.0] * 10],
    }  # fmt: skip
    q = np.array([0.6, 0.2, 0.1, 0.1])
    # One draft is always right. Of two one is sure, accepted with .6, and one of the rest with .4.
    assert rules.chance_of_child(price, q, 1, 2) == 1.0
    assert np.isclose(rules.chance_of_child(price, q, 2, 0, 0.5), 0.3)
    assert np.isclose(rules.chance_of_child(price, q, 2, 3), 0.4)
    # With nothing but the price behind, more than one is for nothing.
    assert rules.children(price, q, 1, 1.0) == 1
    assert rules.children(price, q, 2, 1.0) == 0
    assert rules.children(price, q, 0, 0.1) == 0
