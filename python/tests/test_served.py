"""Texts that were drawn from cut rows: commands cut rows as the log says that its text was sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import specgap as sg

Array = NDArray[Any]

V, PROMPTS, LENGTH = 12, 8, 10


def cut(row: Array, top_k: int, top_p: float) -> Array:
    """The K most probable tokens, then the fewest of these with a share of P, by their definition."""
    order = np.argsort(-row, kind="stable")[:top_k]
    kept = row[order] / row[order].sum()
    order = order[: int(np.searchsorted(np.cumsum(kept), top_p)) + 1]
    out = np.zeros_like(row)
    out[order] = row[order] / row[order].sum()
    return out


def softmax(rows: Array) -> Array:
    weights = np.exp(rows - rows.max(-1, keepdims=True))
    shares: Array = weights / weights.sum(-1, keepdims=True)
    return shares


@pytest.fixture
def logits() -> tuple[Array, Array]:
    random = np.random.default_rng(59)
    target = 1.5 * random.normal(size=(PROMPTS * LENGTH, V))
    return target, target + 0.8 * random.normal(size=target.shape)


def text(laws: Array) -> dict[str, Any]:
    random = np.random.default_rng(60)
    places = np.arange(len(laws))
    return {
        "token": np.array([random.choice(V, p=law) for law in laws]),
        "prompt_id": places // LENGTH,
        "position": places % LENGTH,
    }


TOP_K, TOP_P = 5, 0.9
SAMPLING = {"temperature": 1.0, "top_k": TOP_K, "top_p": TOP_P}


def same(found: Any, expected: Any, path: str = "") -> None:
    if isinstance(expected, dict):
        told = {"logs", "command", "cuts", "surprise", "definitions"}
        for key in expected.keys() - told:
            same(found[key], expected[key], f"{path}/{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for at, (one, other) in enumerate(zip(found, expected, strict=True)):
            same(one, other, f"{path}[{at}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), path
    else:
        assert found == expected, path


def test_rows_are_cut_as_the_text_was_sampled(logits: tuple[Array, Array]) -> None:
    target, draft = logits
    laws = [np.array([cut(row, TOP_K, TOP_P) for row in softmax(rows)]) for rows in logits]
    words = text(laws[0])
    by_hand = sg.Log.of_arrays(
        metadata={"sampling": {"temperature": 1.0}}, target_probs=laws[0], draft_probs=laws[1], **words
    )
    raw = sg.Log.of_arrays(
        metadata={"sampling": SAMPLING}, target_logits=target, draft_logits=draft, **words
    )
    # The eight most probable tokens of either row, and no word of the others.
    ids = np.array(
        [
            sorted(set(np.argsort(-p)[:8]) | set(np.argsort(-q)[:8]))[:V]
            for p, q in zip(target, draft, strict=True)
        ],
        dtype=object,
    )
    width = max(len(row) for row in ids)
    listed = np.array([list(row) + [-1] * (width - len(row)) for row in ids], np.int32)
    both = (("target", target), ("draft", draft))
    columns: dict[str, Any] = {"token_ids": listed, **words}
    for name, rows in both:
        own = np.take_along_axis(rows, np.maximum(listed, 0), 1)
        columns[f"{name}_logits"] = np.where(listed < 0, -np.inf, own)
        rests = [[1 - law[row[row >= 0]].sum()] for law, row in zip(softmax(rows), listed, strict=True)]
        columns[f"{name}_rest"] = np.array(rests)
    lists = sg.Log.of_arrays(
        metadata={"sampling": SAMPLING, "vocabulary": V, "rest_temperatures": [1.0], "top": 8}, **columns
    )
    asked: list[tuple[Any, dict[str, Any]]] = [
        (sg.length, {"lengths": "1-3", "cost_ratio": 0.1}),
        (sg.tree, {"cost_ratio": 0.1, "budget": 6}),
        (sg.gap, {"drafts": [2, 3]}),
    ]
    for command, options in asked:
        expected = command(by_hand, **options).to_dict()
        for log in (raw, lists):
            found = command(log, **options).to_dict()
            if command is sg.gap:
                mean = [cell["optimal_acceptance_rate"]["mean"] for cell in expected["cells"]]
                assert [
                    cell["optimal_acceptance_rate"]["mean"] for cell in found["cells"]
                ] == pytest.approx(mean, abs=1e-9)
                assert all("truncation" not in cell["optimal_acceptance_rate"] for cell in found["cells"])
            else:
                same(found["results"], expected["results"])
                assert found["cuts"] == {"top_k": TOP_K, "top_p": TOP_P}
                assert "cuts" not in expected


def test_a_token_that_the_cut_leaves_out_is_refused(logits: tuple[Array, Array]) -> None:
    target, draft = logits
    words = text(softmax(target))
    words["token"][7] = int(target[7].argmin())
    log = sg.Log.of_arrays(
        metadata={"sampling": SAMPLING}, target_logits=target, draft_logits=draft, **words
    )
    with pytest.raises(sg.Refused, match="at temperature 1 with top-k 5"):
        sg.length(log, lengths="1-2")


def test_logs_of_other_cuts_are_replayed_one_by_one(logits: tuple[Array, Array]) -> None:
    target, draft = logits
    words = text(np.array([cut(row, TOP_K, TOP_P) for row in softmax(target)]))
    logs = [
        sg.Log.of_arrays(
            metadata={"sampling": {"temperature": 1.0, "top_k": top_k}},
            target_logits=target + shift,
            draft_logits=draft,
            **words,
        )
        for top_k, shift in ((5, 0.0), (6, 1.0))
    ]
    with pytest.raises(sg.Refused, match="replay them one by one"):
        sg.length(logs, lengths="1-2")
