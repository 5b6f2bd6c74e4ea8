"""A sampler that verifies in mlx-lm: the law of whole texts, by every draft and coin; and its refusals."""

from __future__ import annotations

import doctest
import importlib
from itertools import product
from typing import Any

import numpy as np
import pytest

import specgap as sg
from specgap import mlx

from .test_carried import model
from .test_level import outcomes


class Behind(mlx.Sampler):
    """With the row that a draft model would give."""

    rows: Any
    place: tuple[int, ...]

    def _behind(self, token: int) -> Any:
        return self.rows[self.place][1] if self.place in self.rows else np.zeros_like(self.rows[()][1])


def engine(sampler: Behind, rows: Any, length: int, most: int) -> tuple[int, ...]:
    """What mlx-lm 0.32 does with a sampler, over rows by prefix."""
    text: tuple[int, ...] = ()
    while len(text) < length:
        count = min(length - len(text), most)
        drafts: tuple[int, ...] = ()
        with np.errstate(divide="ignore"):
            for _ in range(count):
                drafts += (int(sampler(np.log(rows[text + drafts][1])[None])[0]),)
            # A row behind the last token that may come: mlx-lm runs it, and looks at none of it.
            path = [rows.get(text + drafts[:k], rows[()])[0] for k in range(count + 1)]
            sampler.place = text + drafts
            tokens = [int(token) for token in sampler(np.log(np.array(path)))]
        n = 0
        while n < count and tokens[n] == drafts[n]:
            n += 1
        text += drafts[:n]
        if len(text) < length:
            text += (tokens[n],)
    return text


@pytest.mark.parametrize("rule", ["token", "block", "carried"])
@pytest.mark.parametrize(("size", "length", "most"), [(2, 3, 2), (3, 2, 1), (2, 4, 2), (3, 3, 2)])
def test_the_text_has_the_targets_law(rule: Any, size: int, length: int, most: int) -> None:
    for seed in range(3):
        rows = model(seed, size, length)
        found: dict[tuple[int, ...], float] = {}

        def run(rng: Any, rows: Any = rows) -> tuple[int, ...]:
            sampler = Behind(rule, most, rng=rng, draft_model=0, prompt_cache=[])
            sampler.rows = rows
            return engine(sampler, rows, length, most)

        for chance, text in outcomes(run):
            found[text] = found.get(text, 0.0) + chance
        assert len(found) > 1
        for text in product(range(size), repeat=length):
            law = np.prod([rows[text[:k]][0][text[k]] for k in range(length)])
            assert found.get(text, 0.0) == pytest.approx(law, abs=1e-12), (seed, text)


def test_what_mlx_lm_cannot_give_is_refused() -> None:
    for words, options in [
        ("there is no 'carried-block' for mlx-lm", {"rule": "carried-block"}),
        ("num_draft_tokens is 0", {"num_draft_tokens": 0}),
        ("leave sampler out", {"temp": 0.0}),
        ("give draft_model", {"rule": "carried"}),
    ]:
        with pytest.raises(sg.Refused, match=words):
            mlx.Sampler(**options)  # type: ignore[arg-type]
    row = np.log(np.array([[0.5, 0.5]]))
    sampler = mlx.Sampler("token", 1)
    sampler(row)
    with pytest.raises(sg.Refused, match="1 rows behind 1 drafts"):
        sampler(row)
    with pytest.raises(sg.Refused, match="3 rows behind 1 drafts"):
        sampler(np.repeat(row, 3, 0))


def test_examples_run() -> None:
    failed, tried = doctest.testmod(importlib.import_module("specgap.mlx"))
    assert tried > 0 and failed == 0
