"""Drafts with a row for each start and depth: logs of arrays, and what is measured of them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import specgap as sg
from numpy.typing import NDArray

TEXTS, LENGTH, DEPTHS, TOKENS = 5, 7, 3, 6


def laws(generator: np.random.Generator, *shape: int) -> NDArray[np.float64]:
    rows = generator.gamma(0.7, size=(*shape, TOKENS)) + 1e-3
    normal: NDArray[np.float64] = rows / rows.sum(-1, keepdims=True)
    return normal


def arrays(seed: int = 3) -> dict[str, Any]:
    """Texts drawn from p; rows beyond their ends are no rows."""
    generator = np.random.default_rng(seed)
    target = laws(generator, TEXTS * LENGTH)
    draft = laws(generator, TEXTS * LENGTH, DEPTHS)
    tokens = np.array([generator.choice(TOKENS, p=row) for row in target])
    position = np.tile(np.arange(LENGTH), TEXTS)
    for depth in range(DEPTHS):
        draft[position + depth >= LENGTH, depth] = np.nan
    return {
        "target_probs": target,
        "draft_probs": draft,
        "token": tokens,
        "position": position,
        "prompt_id": np.repeat(np.arange(TEXTS), LENGTH),
        "metadata": {"sampling": {"temperature": 1.0}},
    }


def coins(given: dict[str, Any]) -> NDArray[np.float64]:
    """min(1, q/p) at the text's tokens, by start and depth; nan where the text has ended."""
    p, q, tokens = given["target_probs"], given["draft_probs"], given["token"]
    found = np.full((TEXTS * LENGTH, DEPTHS), np.nan)
    for start in range(TEXTS * LENGTH):
        for depth in range(DEPTHS):
            at = start + depth
            if given["position"][start] + depth < LENGTH:
                found[start, depth] = min(1.0, q[start, depth, tokens[at]] / p[at, tokens[at]])
    return found


def test_length_replays_each_round_by_its_own_rows() -> None:
    given = arrays()
    log = sg.Log.of_arrays(**given)
    assert (log.depths, log.depth, log.positions) == (DEPTHS, 1, TEXTS * LENGTH)
    report = sg.length(log, drafts="sampled", verifiers="token").to_dict()
    accepted = coins(given)
    for row in report["by_depth"]:
        depth = row["depth"]
        there = accepted[~np.isnan(accepted[:, depth - 1])]
        assert row["starts"] == len(there)
        assert row["marginal"]["mean"] == pytest.approx(there[:, depth - 1].mean(), abs=1e-12)
        joint = there[:, :depth].prod(1)
        assert row["joint"]["mean"] == pytest.approx(joint.mean(), abs=1e-12)
        if depth > 1:
            before = there[:, : depth - 1].prod(1)
            assert row["conditional"]["mean"] == pytest.approx(joint.sum() / before.sum(), abs=1e-12)
    # Calls of a text, from its end: V(s) = 1 + sum over i of P(i accepted) V(s + i + 1).
    calls = 0.0
    for text in range(TEXTS):
        value = [0.0] * (LENGTH + 1)
        for start in reversed(range(LENGTH)):
            drafts = min(2, LENGTH - start - 1)
            reached = [1.0, *np.cumprod(accepted[text * LENGTH + start, :drafts])]
            ends = [a - b for a, b in zip(reached, [*reached[1:], 0.0])]
            value[start] = 1 + sum(end * value[start + i + 1] for i, end in enumerate(ends))
        calls += value[0]
    rows = [row for row in report["results"] if (row["policy"], row["parameter"]) == ("fixed", 2)]
    assert rows[0]["verification_rate"]["mean"] == pytest.approx(calls / (TEXTS * LENGTH), abs=1e-12)
    # The bound over several rounds holds with one draft a round alone.
    assert [row["most"] for row in report["bounds"]["fewest_calls"]] == [1]


def test_texts_may_take_turns() -> None:
    given = arrays()
    turns = np.arange(TEXTS * LENGTH).reshape(TEXTS, LENGTH).T.ravel()
    metadata = given.pop("metadata")
    there = {name: array[turns] for name, array in given.items()}
    one, other = (
        sg.length(sg.Log.of_arrays(**rows, metadata=metadata), drafts="sampled").to_dict()
        for rows in (given, there)
    )
    for part in ("results", "by_depth", "acceptance"):
        assert one[part] == other[part]


def test_each_depth_is_a_log_like_any_other() -> None:
    given = arrays()
    log = sg.Log.of_arrays(**given)
    for depth in range(1, DEPTHS + 1):
        view = pickle.loads(pickle.dumps(log.called("mine"))).at_depth(depth)
        assert view.depth == depth
        report = sg.gap(view, drafts=2, temperature=1.0).to_dict()
        starts = np.flatnonzero(given["position"] + depth - 1 < LENGTH)
        p = given["target_probs"][starts + depth - 1]
        q = given["draft_probs"][starts, depth - 1]
        overlap = np.minimum(p, q).sum(1).mean()
        assert report["overlap"][0]["mean"] == pytest.approx(overlap, abs=1e-9)
        assert report["logs"][0]["depth"] == {"depth": depth, "of": DEPTHS}
    with pytest.raises(sg.Refused, match="depths 1 to 3, and none at depth 4"):
        log.at_depth(4)


def test_draft_vocabularies() -> None:
    given = arrays()
    metadata = given.pop("metadata")
    kept = np.array([4, 1, 2])
    narrow = given["draft_probs"][..., kept]
    narrow = narrow / narrow.sum(-1, keepdims=True)
    given |= {"draft_probs": narrow, "d2t": kept - np.arange(3)}
    log = sg.Log.of_arrays(**given, metadata=metadata)
    report = sg.length(log, drafts="sampled").to_dict()
    whole = np.zeros((TEXTS * LENGTH, DEPTHS, TOKENS))
    whole[..., kept] = narrow
    same = sg.length(
        sg.Log.of_arrays(**{**given, "d2t": None, "draft_probs": whole}, metadata=metadata),
        drafts="sampled",
    ).to_dict()
    assert report["results"] == same["results"]
    covered = given["target_probs"][:, kept].sum(1).mean()
    assert report["by_depth"][0]["covered"]["mean"] == pytest.approx(covered, abs=1e-12)
    assert "covered" not in same["by_depth"][0]
    as_logits = {name: rows for name, rows in given.items() if name != "draft_probs"}
    as_logits["draft_logits"] = np.nan_to_num(narrow, nan=1 / 3)
    with pytest.raises(sg.Refused, match="draft_logits: row .*these are probabilities"):
        sg.Log.of_arrays(**as_logits)
    with pytest.raises(sg.Refused, match="leads to token 1 of the target, as entry 0 does"):
        sg.Log.of_arrays(**{**given, "d2t": np.array([1, 0, 0])})
