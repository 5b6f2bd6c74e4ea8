"""`sg.drafter`: against enumeration of decoders on models whose rows depend on where a round began,
against
`sg.length`, torch against NumPy, and any order of adds and merges against any other."""

from __future__ import annotations

import csv
import doctest
import functools
import itertools
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specgap as sg
from specgap import _drafter, _drafter_report, _drafter_rows, _native, rules
from specgap._evaluate import _explored

try:
    import torch
except ModuleNotFoundError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")

Text = tuple[int, ...]


# --- a tiny world, enumerated ---------------------------------------------------------------------

V, LENGTH, DEPTH = 2, 4, 2


def _number(*parts: int) -> np.random.Generator:
    return np.random.default_rng([17, *parts])


@functools.cache
def p_of(text: Text) -> tuple[float, ...]:
    """The target's law after a text, in quarters."""
    one = int(_number(1, len(text), *text).integers(1, 4)) / 4
    return one, 1 - one


@functools.cache
def q_of(start: int, text: Text) -> tuple[float, ...]:
    """The draft's law after a text in a round that starts at `start`: another one for each
    start."""
    one = float(_number(2, start, len(text), *text).uniform(0.05, 0.95))
    return one, 1 - one


def texts() -> Iterator[tuple[Text, int]]:
    """All texts, each as often as its probability says of 4^LENGTH."""
    for text in itertools.product(range(V), repeat=LENGTH):
        chance = 1.0
        for t, y in enumerate(text):
            chance *= 4 * p_of(text[:t])[y]
        yield text, round(chance)


def rows() -> tuple[Any, Any, Any]:
    """Logits of all texts as often as they come: [B, T, V], [B, T, K, V], tokens."""
    every = [text for text, times in texts() for _ in range(times)]
    target = np.log([[p_of(text[:t]) for t in range(LENGTH)] for text in every])
    draft = np.full((len(every), LENGTH, DEPTH, V), np.nan)
    for b, text in enumerate(every):
        for s, j in itertools.product(range(LENGTH), range(DEPTH)):
            if s + j < LENGTH:
                draft[b, s, j] = np.log(q_of(s, text[: s + j]))
    return target, draft, np.array(every)


@functools.cache
def world() -> Any:
    acc = sg.drafter(depth=DEPTH, optima=[2, 3], every=1)
    target, draft, tokens = rows()
    acc.add(target, draft, tokens, prompt_id=np.arange(len(tokens)))
    return acc.report()


def prefixes(length: int) -> Iterator[tuple[Text, float]]:
    for text in itertools.product(range(V), repeat=length):
        chance = 1.0
        for t, y in enumerate(text):
            chance *= p_of(text[:t])[y]
        yield text, chance


def by_starts(accepted: Callable[[Text], list[float]]) -> list[float]:
    """Mean over starts with DEPTH tokens left and over texts before them, of P(tau >= i)."""
    found = np.zeros(DEPTH)
    starts = range(LENGTH - DEPTH + 1)
    for s in starts:
        for text, chance in prefixes(s):
            found += chance * np.array(accepted(text)) / len(starts)
    return list(found)


def drafted(text: Text) -> Iterator[tuple[Text, float]]:
    """All drafts after a text, with their probabilities."""
    for draft in itertools.product(range(V), repeat=DEPTH):
        chance = 1.0
        for j, x in enumerate(draft):
            chance *= q_of(len(text), text + draft[:j])[x]
        yield draft, chance


def by_token(text: Text) -> list[float]:
    """P(tau >= i) of rejection token by token, over all drafts and coins."""
    found = [0.0] * DEPTH
    for draft, chance in drafted(text):
        for j, x in enumerate(draft):
            before = text + draft[:j]
            chance *= min(1, p_of(before)[x] / q_of(len(text), before)[x])
            found[j] += chance
    return found


def by_block(text: Text) -> list[float]:
    """The same of block verification, whose coins come up from the end of the block on."""
    found = [0.0] * DEPTH
    for draft, chance in drafted(text):
        w, coins = 1.0, []
        for j, x in enumerate(draft):
            before = text + draft[:j]
            w = min(1.0, w * p_of(before)[x] / q_of(len(text), before)[x])
            after = text + draft[: j + 1]
            if j + 1 == DEPTH:
                coins.append(w)
            else:
                s = sum(max(0, w * a - b) for a, b in zip(p_of(after), q_of(len(text), after)))
                coins.append(s / (s + 1 - w) if s + 1 - w > 0 else 1.0)
        for i in range(DEPTH):
            found[i] += chance * (1 - math.prod(1 - h for h in coins[i:]))
    return found


def by_greedy_block(text: Text) -> list[float]:
    found = [0.0] * DEPTH
    for i in range(1, DEPTH + 1):
        for draft in itertools.product(range(V), repeat=i):
            of_p = of_q = 1.0
            for j, x in enumerate(draft):
                of_p *= p_of(text + draft[:j])[x]
                of_q *= q_of(len(text), text + draft[:j])[x]
            found[i - 1] += min(of_p, of_q)
    return found


def by_one_hot(text: Text) -> list[float]:
    draft: Text = ()
    found, chance = [], 1.0
    for _ in range(DEPTH):
        x = int(np.argmax(q_of(len(text), text + draft)))
        chance *= p_of(text + draft)[x]
        draft += (x,)
        found.append(chance)
    return found


def by_exact_match(text: Text) -> list[float]:
    """Draft and target draw by themselves; all pairs."""
    found = [0.0] * DEPTH
    for draft, chance in drafted(text):
        for j, x in enumerate(draft):
            chance *= p_of(text + draft[:j])[x]
            found[j] += chance
    return found


@pytest.mark.parametrize(
    "kind, accepted",
    [
        ("sampled", by_token),
        ("block", by_block),
        ("greedy-block", by_greedy_block),
        ("one-hot", by_one_hot),
        ("exact-match", by_exact_match),
    ],
)
def test_lengths_are_those_of_all_texts_drafts_and_coins(
    kind: str, accepted: Callable[[Text], list[float]]
) -> None:
    report = world()
    want = by_starts(accepted)
    assert report.lengths[kind].mean == pytest.approx(1 + sum(want), abs=1e-12)
    if kind in report.by_means:
        assert report.by_means[kind].mean == pytest.approx(1 + sum(want), abs=1e-12)
    if kind == "sampled":
        found = report.metrics(only="all")
        for d in range(DEPTH):
            assert found[f"acceptance_joint_{d + 1}"] == pytest.approx(want[d], abs=1e-12)
            before = want[d - 1] if d else 1.0
            conditional = found[f"acceptance_conditional_{d + 1}"]
            assert conditional == pytest.approx(want[d] / before, abs=1e-12)


def test_overlaps_and_marginals_are_those_of_all_texts() -> None:
    found = world().metrics(only="all")
    starts = range(LENGTH - DEPTH + 1)
    for d in range(DEPTH):
        want = sum(
            chance * sum(map(min, p_of(text), q_of(s, text))) / len(starts)
            for s in starts
            for text, chance in prefixes(s + d)
        )
        assert found[f"overlap_{d + 1}"] == pytest.approx(want, abs=1e-12)
        # Along the text of the target the mean coin is the overlap.
        assert found[f"acceptance_marginal_{d + 1}"] == pytest.approx(want, abs=1e-12)
        assert found[f"coverage_{d + 1}"] == 1


def calls(text: Text, most: int) -> float:
    """Expected calls of a real decoder from here to the text's end, over all drafts, coins and
    draws."""
    if len(text) == LENGTH:
        return 0.0
    count = min(most, LENGTH - len(text) - 1)

    def round_of(draft: Text) -> float:
        here = text + draft
        if len(draft) == count:
            return sum(a * calls((*here, y), most) for y, a in enumerate(p_of(here)))
        p, q = p_of(here), q_of(len(text), here)
        kept = [min(a, b) for a, b in zip(p, q)]
        total = sum(a * round_of((*draft, x)) for x, a in enumerate(kept))
        return total + sum(
            (p[y] - kept[y]) * calls((*here, y), most) for y in range(V) if p[y] > kept[y]
        )

    return 1 + round_of(())


@pytest.mark.parametrize("most", range(1, DEPTH + 1))
def test_tokens_a_call_are_those_of_a_decoder(most: int) -> None:
    found = world().metrics(only="all")[f"tokens_per_call_{most}"]
    assert found == pytest.approx(LENGTH / calls((), most), abs=1e-12)


def test_optima_are_means_of_alpha() -> None:
    found = world().metrics(only="all")
    starts = range(LENGTH - DEPTH + 1)
    for n, d in itertools.product((2, 3), range(DEPTH)):
        want = sum(
            chance * sg.alpha(p_of(text), q_of(s, text), n).value / len(starts)
            for s in starts
            for text, chance in prefixes(s + d)
        )
        assert found[f"alpha_star_{n}_{d + 1}"] == pytest.approx(want, abs=1e-12)


# --- a world of chance ----------------------------------------------------------------------------


def chain(
    batch: int = 12,
    length: int = 30,
    depth: int = 3,
    size: int = 7,
    seed: int = 0,
    drift: float = 0.0,
) -> tuple[Any, Any, Any]:
    """Text of a Markov chain, its logits, and a drafter's of (start, depth); with drift 0 a draft
    model's, whose row does not depend on the start."""
    rng = np.random.default_rng(seed)
    target = 1.5 * rng.normal(size=(size, size))
    near = target + rng.normal(size=(size, size))
    laws = np.exp(target) / np.exp(target).sum(1, keepdims=True)
    text = np.zeros((batch, length + 1), dtype=np.int64)
    for t in range(1, length + 1):
        text[:, t] = [rng.choice(size, p=laws[y]) for y in text[:, t - 1]]
    draft = np.zeros((batch, length, depth, size))
    for j in range(depth):
        draft[:, : length - j, j] = near[text[:, j:-1]]
    draft += drift * rng.normal(size=draft.shape)
    return target[text[:, :-1]], draft, text[:, 1:]


def report_of(target: Any, draft: Any, tokens: Any, depth: int = 3, **asked: Any) -> Any:
    acc = sg.drafter(depth=depth, **asked)
    acc.add(target, draft, tokens, prompt_id=np.arange(len(tokens)))
    return acc.report()


def test_a_draft_model_is_measured_as_by_length() -> None:
    """Its rows are those of a log by position, which the crate replays."""
    target, draft, tokens = chain()
    batch, length, size = target.shape
    acc = sg.drafter(depth=3)
    acc.add(target, draft, tokens, prompt_id=range(batch))
    report = acc.report(costs=[0.5])
    log = sg.Log.of_arrays(
        target_logits=target.reshape(-1, size),
        draft_logits=draft[:, :, 0].reshape(-1, size),
        token=tokens.ravel(),
        prompt_id=np.repeat(np.arange(batch), length),
        position=np.tile(np.arange(length), batch),
        metadata={"sampling": {"temperature": 1.0}},
    )
    same_as_length(report, sg.length(log, cost_ratio=0.5).to_dict())


def same_as_length(report: Any, said: dict[str, Any]) -> None:
    own = report.to_dict()["estimates"]
    seen = 0
    for found in said["results"]:
        if found["policy"] != "fixed" or found["parameter"] > report.depth:
            continue
        k, kind = int(found["parameter"]), found["drafts"]
        rule = kind if found["verifier"] == "token" else found["verifier"]
        if found["tokens_per_call"] is not None and rule != "greedy-block":
            mine = report.per_call[rule][k - 1].plain()
            assert_same(mine, found["tokens_per_call"])
            seen += 1
        if k == report.depth:
            name = "acceptance_length" + ("" if rule == "sampled" else f"_{rule.replace('-', '_')}")
            assert_same(own[name], found["expected_accepted_length"], 1)
            means = found.get("expected_accepted_length_by_means")
            if means is not None:
                assert_same(own[f"{name}_by_means"], means, 1)
            seen += 1
    assert seen >= 4 * report.depth
    for name, value in said["surprise"].items():
        assert report.surprise[name] == pytest.approx(value, abs=1e-9)
    at = said["at_cost"]["chosen"][0]
    best = report.best[0]
    assert best["cost_ratio"] == 0.5 and best["length"] == at["parameter"]
    assert_same(best["speedup"].plain(), at["speedup"])


def assert_same(mine: dict[str, Any], theirs: dict[str, Any], more: float = 0) -> None:
    assert mine["mean"] == pytest.approx(theirs["mean"] + more, abs=1e-9)
    assert mine["ci95"] == pytest.approx([end + more for end in theirs["ci95"]], abs=1e-8)


def test_a_log_without_rows_is_read_by_length() -> None:
    target, draft, tokens = chain(drift=0.5)
    acc = sg.drafter(depth=3)
    acc.add(target, draft, tokens, prompt_id=range(len(tokens)))
    log = acc.log()
    assert (log.depths, log.positions) == (3, 360)
    said = sg.length(log, cost_ratio=0.5).to_dict()
    # The text's own tokens alone do not tell the entropy.
    said["surprise"] = {}
    same_as_length(acc.report(costs=[0.5]), said)


def test_a_log_of_text_that_was_cut_has_the_law_it_was_drawn_from() -> None:
    target, draft, tokens = drawn({"top_k": 20, "top_p": 0.9})
    acc = sg.drafter(depth=3, top_k=20, top_p=0.9)
    acc.add(target, draft, tokens, prompt_id=range(4))
    cut = {"top_k": 20, "top_p": 0.9, "cut_order": "k,p,m"}
    assert acc.metadata()["target_cut"] == cut
    said = sg.length(acc.log(), cost_ratio=0.5).to_dict()
    said["surprise"] = {}
    same_as_length(acc.report(costs=[0.5]), said)


def test_columns_are_the_record_of_a_log_by_depth() -> None:
    target, draft, tokens = chain(batch=3, length=5)
    acc = sg.drafter(depth=3)
    acc.add(target, draft, tokens, prompt_id=[4, 2, 9])
    arrays = acc.arrays()
    assert {name: array.shape for name, array in arrays.items()} == {
        "target_logprobs": (15, 1),
        "target_token_ids": (15, 1),
        "draft_logprobs": (15, 3, 1),
        "draft_token_ids": (15, 3, 1),
        "token": (15,),
        "prompt_id": (15,),
        "position": (15,),
        "hit": (15, 3),
        "p_hit": (15, 3),
        "max_q": (15, 3),
        "overlap": (15, 3),
        "coverage": (15,),
    }
    assert arrays["prompt_id"].tolist() == [2] * 5 + [4] * 5 + [9] * 5
    assert arrays["position"].tolist() == [0, 1, 2, 3, 4] * 3
    assert (arrays["token"][:5] == tokens[1]).all()
    ids = arrays["draft_token_ids"][:5, :, 0]
    assert ids.tolist() == [[*tokens[1][s : s + 3], *[-1] * max(0, s - 2)] for s in range(5)]
    q = np.exp(draft - np.log(np.exp(draft).sum(-1, keepdims=True)))
    for s, j in itertools.product(range(5), range(3)):
        place = slice(0, 5)
        if s + j < 5:
            y, row = tokens[1, s + j], q[1, s, j]
            p = np.exp(target[1, s + j]) / np.exp(target[1, s + j]).sum()
            assert arrays["draft_logprobs"][place][s, j, 0] == pytest.approx(np.log(row[y]))
            assert arrays["hit"][place][s, j] == (row.argmax() == y)
            assert arrays["p_hit"][place][s, j] == pytest.approx(p[row.argmax()])
            assert arrays["max_q"][place][s, j] == pytest.approx(row.max())
            assert arrays["overlap"][place][s, j] == pytest.approx(np.minimum(p, row).sum())
        else:
            assert arrays["hit"][place][s, j] == arrays["overlap"][place][s, j] == -1
    assert acc.metadata() == {
        "vocabulary": 7,
        "top": 0,
        "temperature_applied": 1.0,
        "sampling": {"temperature": 1.0},
    }


# --- order ----------------------------------------------------------------------------------------


def test_any_order_of_adds_and_merges_gives_the_same_bytes() -> None:
    target, draft, tokens = chain(drift=0.3)
    rng = np.random.default_rng(3)

    def part(rows: Any) -> sg.Drafter:
        acc = sg.drafter(depth=3, optima=[2], every=4)
        for row in rows:
            acc.add(target[[row]], draft[[row]], tokens[[row]], prompt_id=[row])
        return acc

    whole = sg.drafter(depth=3, optima=[2], every=4)
    whole.add(target, draft, tokens, prompt_id=range(12))
    data, found = whole.to_bytes(), whole.report().json
    for _ in range(5):
        order = rng.permutation(12)
        cuts = np.sort(rng.choice(np.arange(1, 12), 3, replace=False))
        parts = [part(rows) for rows in np.split(order, cuts)]
        while len(parts) > 1:
            one, two = rng.choice(len(parts), 2, replace=False)
            # As a process that gathers does: one of them came as bytes.
            joined = parts[one].merge(sg.Drafter.from_bytes(parts[two].to_bytes()))
            parts = [joined, *(part for k, part in enumerate(parts) if k not in (one, two))]
        assert parts[0].to_bytes() == data
        assert parts[0].report().json == found
    assert pickle.loads(pickle.dumps(whole)).to_bytes() == data
    # An empty one changes nothing, from either side.
    empty = sg.drafter(depth=3, optima=[2], every=4)
    assert sg.Drafter.from_bytes(data).merge(empty).to_bytes() == data
    assert empty.merge(whole).to_bytes() == data


def test_texts_that_a_sampler_repeats_count_once() -> None:
    target, draft, tokens = chain()
    once, twice = sg.drafter(depth=3), sg.drafter(depth=3)
    once.add(target, draft, tokens, prompt_id=range(12))
    parts = [sg.drafter(depth=3) for _ in range(3)]
    # The same text, of rows that were rounded otherwise.
    for part, rounding in zip(parts, (0, 1e-7, -1e-7)):
        part.add(target * (1 + rounding), draft, tokens, prompt_id=range(12))
    made = set()
    for order in itertools.permutations(range(3)):
        twice = sg.drafter(depth=3)
        for k in order:
            twice.merge(sg.Drafter.from_bytes(parts[k].to_bytes()))
        made.add(twice.to_bytes())
    assert len(made) == 1
    assert twice.report().tokens == once.report().tokens
    own = twice.report().lengths["sampled"].mean
    assert own == pytest.approx(once.report().lengths["sampled"].mean, abs=1e-6)


def test_positions_that_differ_are_no_repetition() -> None:
    target, draft, tokens = chain()
    acc, other = sg.drafter(depth=3), sg.drafter(depth=3)
    acc.add(target, draft, tokens, prompt_id=range(12))
    other.add(target[1:], draft[1:], tokens[1:], prompt_id=range(11))
    with pytest.raises(sg.Refused, match=r"prompt_id: prompt 0, position .* with token"):
        acc.merge(other)
    changed = sg.drafter(depth=3)
    changed.add(target, 0 * draft, tokens, prompt_id=range(12))
    acc = sg.drafter(depth=3)
    acc.add(target, draft, tokens, prompt_id=range(12))
    with pytest.raises(sg.Refused, match=r"added twice with other numbers \(logq\)"):
        acc.merge(changed)


@pytest.mark.parametrize(
    "settings, named",
    [
        ({"depth": 2}, "depth: 2 here and 3 before"),
        ({"depth": 3, "temperature": 0.5}, "temperature: 0.5 here and 1.0 before"),
        ({"depth": 3, "top_k": 5}, "top_k: 5 here"),
        ({"depth": 3, "optima": [2]}, "optima"),
    ],
)
def test_settings_that_differ_do_not_merge(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(sg.Refused, match=named):
        sg.drafter(depth=3).merge(sg.drafter(**settings))


def test_bytes_that_are_broken_are_refused() -> None:
    target, draft, tokens = chain(batch=2)
    acc = sg.drafter(depth=3)
    acc.add(target, draft, tokens, prompt_id=[0, 1])
    data = acc.to_bytes()
    for broken in (b"", data[:-1], data + b"x", data[:40], b"x" + data[1:]):
        with pytest.raises(sg.Refused, match="not what Drafter.to_bytes wrote"):
            sg.Drafter.from_bytes(broken)


def test_prompts_may_come_in_several_batches() -> None:
    target, draft, tokens = chain()
    whole, parts = sg.drafter(depth=3), sg.drafter(depth=3)
    whole.add(target, draft, tokens, prompt_id=range(12))
    # Texts of one prompt in different batches: other positions, so that they are apart.
    for k in range(3):
        rows = slice(4 * k, 4 * k + 4)
        parts.add(target[rows], draft[rows], tokens[rows], [0, 1, 2, 3], position=[100 * k] * 4)
    one, two = whole.report(), parts.report()
    assert (two.prompts, two.tokens) == (4, one.tokens)
    assert two.lengths["sampled"].mean == pytest.approx(one.lengths["sampled"].mean, abs=1e-12)
    assert two.metrics(only="all")["tokens_per_call_3"] == pytest.approx(
        one.metrics(only="all")["tokens_per_call_3"], abs=1e-12
    )
    assert parts.arrays()["position"].tolist() == whole.arrays()["position"].tolist()


def test_texts_in_pieces_have_no_replay() -> None:
    target, draft, tokens = chain()
    acc = sg.drafter(depth=3)
    for piece, at in ((slice(0, 10), 0), (slice(10, 30), 10)):
        acc.add(target[:, piece], draft[:, piece], tokens[:, piece], range(12), position=[at] * 12)
    report = acc.report()
    # Starts whose rounds reach over the end of a piece are left out, and no other.
    assert report.starts_counted == 12 * (8 + 18)
    assert "tokens_per_call_1" not in report.metrics(only="all") and report.best == []
    with pytest.raises(sg.Refused, match="came in pieces; give whole texts"):
        acc.arrays()


# --- torch ----------------------------------------------------------------------------------------


def maps(size: int, drafted: int, seed: int = 5) -> Any:
    """Offsets d2t of a draft that has some of the target's tokens."""
    ids = np.sort(np.random.default_rng(seed).choice(size, drafted, replace=False))
    return ids - np.arange(drafted)


LAWS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.7},
    {"top_k": 20},
    {"top_p": 0.95},
    {"temperature": 1.3, "top_k": 30, "top_p": 0.9},
    {"temperature": 0.6, "top_k": 12, "top_p": 0.8, "cut_order": "joint"},
    {"temperature": 0.6, "top_k": 12, "top_p": 0.8, "cut_order": "k,p,m,T"},
    {"temperature": 1.7, "top_p": 0.8, "cut_order": "joint,T"},
]


def drawn(
    law: dict[str, Any], size: int = 50, drafted: int | None = None, round_to: Any = None
) -> tuple[Any, Any, Any]:
    """Logits that have nothing to do with each other, and tokens drawn from the law."""
    rng = np.random.default_rng(8)
    target = 2 * rng.normal(size=(4, 9, size))
    draft = rng.normal(size=(4, 9, 3, drafted or size))
    for j in range(3):
        draft[:, : 9 - j, j] += target[:, j:, :drafted]
    if round_to is not None:
        target, draft = round_to(target), round_to(draft)
    heat = _drafter_rows.Law(**{"temperature": 1.0, "top_k": None, "top_p": None, **law})
    tokens = np.array(
        [
            [rng.choice(size, p=_drafter_rows.law_of_row(row, heat)) for row in text]
            for text in target
        ]
    )
    return target, draft, tokens


def both(target: Any, draft: Any, tokens: Any, dtype: Any, law: Any, **asked: Any) -> list[Any]:
    def tensor(rows: Any) -> Any:
        return torch.from_numpy(rows).to(dtype)

    found = []
    for made in (np.asarray, tensor):
        acc = sg.drafter(depth=3, optima=[1, 2], every=1, **law)
        acc.add(made(target), made(draft), tokens, prompt_id=range(4), **asked)
        found.append(acc)
    return found


@needs_torch
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("at_once", [1, 120, 1 << 20])
def test_torch_and_numpy_agree(
    law: dict[str, Any], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever pieces the rows are worked on in."""
    monkeypatch.setattr(_drafter_rows, "_AT_ONCE", at_once)
    target, draft, tokens = drawn(law)
    one, two = both(target, draft, tokens, torch.float64, law)
    same_columns(one, two, 1e-10)
    target, draft, tokens = drawn(law, drafted=30)
    one, two = both(target, draft, tokens, torch.float64, law, d2t=maps(50, 30))
    same_columns(one, two, 1e-10)


def same_columns(one: Any, two: Any, tolerance: float) -> None:
    for mine, theirs in ((one._whole(), two._whole()), (one._sampled(), two._sampled())):
        assert list(mine) == list(theirs)
        for name, column in mine.items():
            np.testing.assert_allclose(theirs[name], column, tolerance, tolerance, err_msg=name)


@needs_torch
@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_rows_of_fewer_digits(name: str) -> None:
    """Rows are rounded once, and what is made of them is nearly what double precision makes of
    them."""
    dtype = getattr(torch, name)
    target, draft, tokens = drawn(
        {}, round_to=lambda rows: torch.from_numpy(rows).to(dtype).double().numpy()
    )
    one, two = both(target, draft, tokens, dtype, {})
    same_columns(one, two, 2e-5)


def test_numpy_takes_rows_of_few_digits() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    for dtype in (np.float16, np.float32, ml_dtypes.bfloat16):
        target, draft, tokens = drawn({}, round_to=lambda rows: rows.astype(dtype).astype(float))
        found = []
        for kind in (np.float64, dtype):
            acc = sg.drafter(depth=3)
            acc.add(target.astype(kind), draft.astype(kind), tokens, prompt_id=range(4))
            found.append(acc.to_bytes())
        assert found[0] == found[1]


@needs_torch
def test_a_shifted_view_is_taken_as_it_is() -> None:
    """`logits[:, :-1]` is no contiguous tensor."""
    target, draft, tokens = chain(drift=0.2)
    logits = torch.from_numpy(np.concatenate([target, target[:, :1]], 1))
    heads = torch.from_numpy(np.concatenate([draft, draft[:, :1]], 1)).requires_grad_()
    acc, other = sg.drafter(depth=3), sg.drafter(depth=3)
    acc.add(logits[:, :-1], heads[:, :-1], torch.from_numpy(tokens), torch.arange(12))
    other.add(target, draft, tokens, range(12))
    same = acc.report().metrics(only="all"), other.report().metrics(only="all")
    assert same[0] == pytest.approx(same[1], abs=1e-12)


@needs_torch
def test_processes_gather_to_the_bit(tmp_path: Path) -> None:
    """Two processes of torch.distributed, each with half of the texts, and one that both have."""
    program = """
import sys, torch, torch.distributed as dist
import numpy as np, specgap as sg
rank, store, data = int(sys.argv[1]), sys.argv[2], np.load(sys.argv[3])
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
acc = sg.drafter(depth=3)
for row in ([0, 1, 2, 3, 4, 5, 6], [11, 10, 9, 8, 7, 6])[rank]:
    names = ("target", "draft", "tokens")
    target, draft, tokens = (torch.from_numpy(data[name][[row]]) for name in names)
    acc.add(target, draft, tokens, [row])
parts = [None, None]
dist.all_gather_object(parts, acc.to_bytes())
whole = sg.drafter(depth=3)
for part in parts[::-1] if rank else parts:
    whole.merge(sg.Drafter.from_bytes(part))
open(f"{store}-{rank}", "wb").write(whole.to_bytes())
dist.destroy_process_group()
"""
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("torch.distributed has no gloo here")
    target, draft, tokens = chain(drift=0.3)
    np.savez(tmp_path / "rows.npz", target=target, draft=draft, tokens=tokens)
    store = str(tmp_path / "store")
    words = [store, str(tmp_path / "rows.npz")]
    ran = [
        subprocess.Popen([sys.executable, "-c", program, str(rank), *words], stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    errors = [one.communicate(timeout=120)[1].decode() for one in ran]
    assert [one.returncode for one in ran] == [0, 0], errors
    acc = sg.drafter(depth=3)
    acc.add(torch.from_numpy(target), torch.from_numpy(draft), torch.from_numpy(tokens), range(12))
    made = {Path(f"{store}-{rank}").read_bytes() for rank in range(2)}
    assert made == {acc.to_bytes()}


def test_the_module_needs_no_torch() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np, specgap as sg\n"
        "acc = sg.drafter(depth=1, optima=[2], every=1)\n"
        "rows = np.random.default_rng(0).normal(size=(3, 5, 4))\n"
        "acc.add(rows, rows + 1, np.zeros((3, 5), int), [0, 1, 2])\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "assert acc.report().metrics(only='all')['overlap_1'] > 0.999\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# --- vocabularies, masks --------------------------------------------------------------------------


def test_a_draft_vocabulary_is_a_draft_with_masked_tokens() -> None:
    target, draft, tokens = drawn({})
    offsets = maps(50, 30)
    ids = offsets + np.arange(30)
    masked = np.full_like(draft, -np.inf)
    masked[..., ids] = draft[..., ids]
    whole, part, other = (sg.drafter(depth=3, optima=[2], every=1) for _ in range(3))
    whole.add(target, masked, tokens, range(4))
    part.add(target, draft[..., ids], tokens, range(4), d2t=offsets)
    flags = np.zeros(50, dtype=bool)
    flags[ids] = True
    other.add(target, draft[..., ids], tokens, range(4), t2d=flags)
    assert part.to_bytes() == other.to_bytes()
    one, two = whole.report().metrics(only="all"), part.report().metrics(only="all")
    p = np.exp(target) / np.exp(target).sum(-1, keepdims=True)
    for name, value in two.items():
        if name.startswith(("coverage", "lost")):
            continue
        assert value == pytest.approx(one[name], abs=1e-9), name
    # Starts have three tokens left: those of depth d are 7 positions from d on.
    for d in range(3):
        held = p[:, d : d + 7, ids].sum(-1).mean()
        assert two[f"coverage_{d + 1}"] == pytest.approx(held, abs=1e-12)
        lost = two[f"lost_to_vocabulary_{d + 1}"] + two[f"lost_to_drafter_{d + 1}"]
        assert lost == pytest.approx(1 - two[f"overlap_{d + 1}"], abs=1e-12)
        assert two[f"overlap_{d + 1}"] < held
    # A token that the draft does not have is never accepted.
    outside = ~np.isin(tokens, ids)
    assert outside.any()
    arrays = part.arrays()
    assert (arrays["draft_logprobs"][:, 0, 0].reshape(4, 9)[outside] == -700).all()
    assert (arrays["hit"][:, 0].reshape(4, 9)[outside] == 0).all()
    np.testing.assert_allclose(arrays["coverage"].reshape(4, 9), p[..., ids].sum(-1), atol=1e-12)
    assert sg.length(part.log(), cost_ratio=0.1).ok


def test_maps_need_not_rise() -> None:
    target, draft, tokens = drawn({})
    ids = np.random.default_rng(1).permutation(50)
    found = []
    for rows, offsets in ((draft, None), (draft[..., ids], ids - np.arange(50))):
        acc = sg.drafter(depth=3)
        acc.add(target, rows, tokens, range(4), d2t=offsets)
        found.append(acc.report().metrics(only="all"))
    assert found[0] == pytest.approx(found[1], abs=1e-12)


def test_padding_and_masks_leave_texts_as_they_are() -> None:
    target, draft, tokens = chain(length=20)
    want = sg.drafter(depth=3)
    want.add(target, draft, tokens, range(12))
    pads = (5, 4)

    def padded(rows: Any, value: float) -> Any:
        return np.pad(rows, [(0, 0), pads, *[(0, 0)] * (rows.ndim - 2)], constant_values=value)

    scored = padded(np.ones_like(tokens), 0)
    for filler, mask in ((-1, None), (-100, None), (0, scored), (0, scored.astype(bool))):
        acc = sg.drafter(depth=3)
        # What rows of padding hold is not looked at.
        acc.add(
            padded(target, np.nan),
            padded(draft, np.nan),
            padded(tokens, filler),
            range(12),
            mask=mask,
        )
        assert acc.to_bytes() == want.to_bytes() if mask is None else True
        mine, theirs = acc.report().metrics(only="all"), want.report().metrics(only="all")
        assert mine == pytest.approx(theirs, abs=1e-12)


def test_rounds_do_not_reach_over_a_turn_that_is_masked() -> None:
    target, draft, tokens = chain(length=20)
    mask = np.ones_like(tokens)
    mask[:, 8:11] = 0
    acc = sg.drafter(depth=3)
    acc.add(target, draft, tokens, range(12), mask=mask)
    report = acc.report()
    assert report.tokens == 12 * 17 and report.starts_counted == 12 * (6 + 7)
    starts = report.starts()["position"][:13].tolist()
    assert starts == [*range(6), *range(11, 18)]
    # Two texts of a prompt, each from its own start.
    assert acc.arrays()["position"][:17].tolist() == [*range(8), *range(9)]


def test_a_batch_in_which_nothing_counts_adds_nothing() -> None:
    target, draft, tokens = chain(batch=2)
    acc = sg.drafter(depth=3)
    acc.add(target, draft, np.full_like(tokens, -100), [0, 1])
    assert acc.positions == 0
    with pytest.raises(sg.Refused, match="no token was added"):
        acc.report()


# --- what is refused ------------------------------------------------------------------------------


def refused(match: str, error: Any = sg.Refused, depth: int = 3, **changed: Any) -> None:
    target, draft, tokens = chain(batch=3, length=40)
    given = {
        "target_logits": target,
        "draft_logits": draft,
        "tokens": tokens,
        "prompt_id": np.arange(3),
    } | changed
    acc = sg.drafter(depth=depth)
    with pytest.raises(error, match=match):
        acc.add(**given)
    # Nothing of a batch that is refused is kept.
    assert acc.positions == 0


def test_what_does_not_fit_is_refused_with_its_name() -> None:
    target, draft, tokens = chain(batch=3, length=40)
    refused(r"target_logits: has shape \(40, 7\); give \[B, T, V\]", target_logits=target[0])
    refused(r"draft_logits: has shape .* K = 2, as depth says", depth=2)
    refused(r"draft_logits: has shape \(3, 40, 7\); give", draft_logits=draft[:, :, 0])
    refused(r"tokens: has shape \(3, 39\); give \[3, 40\]", tokens=tokens[:, 1:])
    refused(r"prompt_id: has shape \(2,\); give \[3\]", prompt_id=[0, 1])
    refused(r"mask: has shape", mask=np.ones((3, 1)) > 0)
    refused(r"mask: has entries of type float64", TypeError, mask=np.ones((3, 40)))
    refused(r"position: has shape \(2,\)", position=[0, 1])
    refused(r"tokens: entry \(1, 4\) is 7, and the target has 7", tokens=at(tokens, (1, 4), 7))
    refused(r"tokens: has entries of type float64; give whole", TypeError, tokens=tokens + 0.5)
    refused(
        r"draft_logits: has Vd = 5 and target_logits V = 7; give d2t", draft_logits=draft[..., :5]
    )
    refused(r"d2t: entry 6 makes .* 7, outside the target's 7", d2t=np.r_[np.zeros(6, int), 1])
    refused(r"d2t: entry 1 makes .* which another one is too", d2t=np.r_[0, -1, 0, 0, 0, 0, 0])
    refused(r"t2d: marks 6 tokens, and draft_logits has Vd = 7", t2d=np.arange(7) > 0)
    refused(
        r"target_logits: has entries of type int64", TypeError, target_logits=target.astype(int)
    )


def at(array: Any, place: Any, value: Any) -> Any:
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize("of_torch", [False, pytest.param(True, marks=needs_torch)])
def test_rows_that_are_no_logits_are_refused(of_torch: bool) -> None:
    target, draft, tokens = chain(batch=3, length=40)

    def check(match: str, target: Any = target, draft: Any = draft, tokens: Any = tokens) -> None:
        rows = (torch.from_numpy(x) if of_torch else x for x in (target, draft))
        given = dict(zip(("target_logits", "draft_logits"), rows))
        refused(match, **given, tokens=tokens)

    for value in (np.nan, np.inf):
        check(r"target_logits: row \(1, 7\) has NaN", target=at(target, (1, 7, 2), value))
        check(r"draft_logits: row \(2, 3, 1\) has NaN", draft=at(draft, (2, 3, 1, 0), value))
    check(r"target_logits: row \(1, 7\) has NaN", target=at(target, (1, 7), -np.inf))
    drawn = at(target, (1, 7, tokens[1, 7]), -np.inf)
    check(r"tokens: entry \(1, 7\) is ., which p cannot draw at temperature 1", target=drawn)
    p = np.exp(target) / np.exp(target).sum(-1, keepdims=True)
    check(r"target_logits: row \(0, 0\): entries are in \[0, 1\]", target=p)
    q = np.exp(draft) / np.exp(draft).sum(-1, keepdims=True)
    check(r"draft_logits: row \(0, 0\): entries are in \[0, 1\]", draft=q)


def sharp(shift: int) -> tuple[Any, Any, Any]:
    """Rows that are nearly sure of their token, of text that is shifted against them."""
    target, draft, tokens = chain(batch=3, length=40, size=20)
    rng = np.random.default_rng(2)
    tokens = rng.integers(20, size=(3, 42))
    rows = 6.0 * np.eye(20)[tokens]
    target = rows[:, 1 + shift : 41 + shift]
    draft = np.zeros((3, 40, 3, 20))
    for j in range(3):
        draft[:, : 40 - j, j] = target[:, j:]
    return target, draft, tokens[:, 1:41]


def test_rows_that_are_off_by_one_are_refused() -> None:
    for shift, match in (
        (1, r"gives the token after it .*logits\[:, :-1\]"),
        (-1, "the token before it"),
    ):
        target, draft, tokens = sharp(shift)
        acc = sg.drafter(depth=3)
        with pytest.raises(sg.Refused, match=f"tokens: are off by one .*{match}"):
            acc.add(target, draft, tokens, range(3))
        assert acc.positions == 0
    # A few tokens at a time are no evidence; all together are.
    target, draft, tokens = sharp(1)
    acc = sg.drafter(depth=3)
    for row in range(3):
        for t in range(0, 40, 10):
            piece = slice(t, t + 10)
            rows = target[[row], piece], draft[[row], piece], tokens[[row], piece]
            acc.add(*rows, [row], position=[t])
    with pytest.raises(sg.Refused, match="tokens: are off by one"):
        acc.report()


def test_a_drafter_that_is_off_by_one_is_told() -> None:
    target, draft, tokens = sharp(0)
    acc = sg.drafter(depth=3)
    with pytest.warns(UserWarning, match=r"draft_logits: depth 1 looks off by one: .* after it"):
        acc.add(target, np.roll(draft, -1, axis=1), tokens, range(3))


@pytest.mark.filterwarnings("error")
def test_text_of_the_target_is_not_told_off() -> None:
    target, draft, tokens = chain(batch=20, length=60)
    assert report_of(target, draft, tokens).warning is None
    # Nor where most of its tokens are outside the draft's vocabulary.
    acc = sg.drafter(depth=3)
    acc.add(target, draft[..., :2], tokens, range(20), t2d=np.arange(7) < 2)
    assert acc.report().warning is None


@pytest.mark.parametrize("wrong", ["a map of ids", "rows of another text", "one row everywhere"])
def test_a_draft_that_knows_nothing_of_its_position_is_told(wrong: str) -> None:
    target, draft, tokens = chain(batch=80, length=60)
    if wrong == "a map of ids":
        draft = draft[..., ::-1].copy()
    elif wrong == "rows of another text":
        draft = np.roll(draft, 1, axis=0)
    else:
        draft = np.broadcast_to(draft[:1, :1, :1], draft.shape).copy()
    with pytest.warns(UserWarning, match="the draft knows nothing of its position: its rows overlap"):
        report = report_of(target, draft, tokens)
    assert report.warning in " ".join(report.text().split())
    assert "4,800 positions looked at" in report.warning
    # Bytes carry what it rests on.
    acc = sg.drafter(depth=3)
    acc.add(target, draft, tokens, range(80))
    with pytest.warns(UserWarning, match="knows nothing"):
        assert sg.Drafter.from_bytes(acc.to_bytes()).report().warning == report.warning


def test_text_of_another_law_is_told() -> None:
    """Greedy text, and rows at another temperature than the text's."""
    target, draft, tokens = chain(batch=20, length=60)
    with pytest.warns(UserWarning, match=r"standard errors below p's entropy"):
        report = report_of(target, draft, target.argmax(-1))
    assert report.warning in " ".join(report.text().split()) and report.to_dict()["warning"]
    with pytest.warns(UserWarning, match="above p's entropy"):
        report_of(target, draft, tokens, temperature=0.3)


@pytest.mark.parametrize(
    ("name", "order"),
    [("transformers", "kp"), ("vllm", "kp"), ("sglang", "pk"), ("llama.cpp", "kpT"),
     ("mlx-lm", "pkT")],
)  # fmt: skip
def test_text_that_was_cut_in_an_order_is_of_that_law(name: str, order: str) -> None:
    heat, k, share, size = 0.6, 6, 0.8, 30
    rng = np.random.default_rng(3)
    # Many are equal, and some are masked.
    rows = (2 * rng.normal(size=(8, 40, size))).round()
    rows[rng.random(rows.shape) < 0.1] = -np.inf

    def law(row: Any) -> Any:
        left = sorted(range(size), key=lambda y: (-row[y], y))
        for letter in order.removesuffix("T"):
            weights = np.exp(row[left] / (1.0 if "T" in order else heat))
            before = weights.cumsum() - weights
            count = k if letter == "k" else (before < share * weights.sum() * (1 - 1e-12)).sum()
            left = left[:count]
        out = np.zeros(size)
        out[left] = np.exp(row[left] / heat)
        return out / out.sum()

    laws = np.array([[law(row) for row in text] for text in rows])
    cuts: dict[str, Any] = {"temperature": heat, "top_k": k, "top_p": share}
    acc = sg.drafter(depth=1, cut_order=name, **cuts)
    for row, p in zip(rows.reshape(-1, size), laws.reshape(-1, size)):
        assert _drafter_rows.law_of_row(row, acc.law) == pytest.approx(p, abs=1e-12)
    tokens = np.array([[rng.choice(size, p=p) for p in text] for text in laws])
    acc.add(rows, rows[:, :, None], tokens, range(8))
    assert acc.report().warning is None
    assert sg.Drafter.from_bytes(acc.to_bytes()).law == acc.law
    usual = sg.drafter(depth=1, **cuts)
    if order == "kp":
        assert usual.law == acc.law
        return
    with pytest.raises(sg.Refused, match="cut_order: k,p,m here and"):
        acc.merge(usual)
    with pytest.raises(sg.Refused, match=r"cut_order k,p,m; .* top_k, top_p and cut_order it was"):
        usual.add(rows, rows[:, :, None], tokens, range(8))


def test_settings_out_of_range_are_refused() -> None:
    for asked, match in (
        ({"depth": 0}, "depth is 0"),
        ({"depth": 1, "temperature": 0}, "temperature is 0; give a number above 0"),
        ({"depth": 1, "top_k": 0}, "top_k is 0"),
        ({"depth": 1, "top_p": 1.5}, "top_p is 1.5"),
        ({"depth": 1, "cut_order": "sglong"}, 'cut_order: "sglong" is no order of cuts'),
        ({"depth": 1, "optima": [0]}, "optima is 0"),
    ):
        with pytest.raises(sg.Refused, match=match):
            sg.drafter(**asked)
    with pytest.raises(TypeError, match="depth: give drafted tokens as a whole number"):
        sg.drafter(depth=1.5)  # type: ignore[arg-type]
    target, draft, tokens = chain(length=2)
    acc = sg.drafter(depth=3)
    acc.add(target, draft, tokens, range(12))
    with pytest.raises(sg.Refused, match="no text has 3 tokens that count"):
        acc.report()


@needs_torch
def test_torch_and_numpy_are_not_mixed() -> None:
    target, draft, _ = chain(batch=3, length=40)
    refused(
        "give both of torch, or both of NumPy", TypeError, target_logits=torch.from_numpy(target)
    )


# --- the loss ---


@needs_torch
@pytest.mark.parametrize("name", ["alpha_star", "level_rate", "rrs_rate"])
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("cut", [False, True])
def test_the_loss_has_the_gradient_of_differences(name: str, n: int, cut: bool) -> None:
    rng = np.random.default_rng(n)
    target = torch.from_numpy(rng.normal(size=(2, 4, 6)))
    draft = torch.from_numpy(rng.normal(size=(2, 4, 3, 4 if cut else 6))).requires_grad_()
    mask = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 0]])
    asked = {"rate": getattr(sg.torch, name), "mask": mask, "temperature": 0.9}
    if cut:
        asked["d2t"] = torch.tensor([0, 1, 1, 2])

    def loss(rows: Any) -> Any:
        return sg.torch.drafter_loss(target, rows, n, **asked)

    # The mean over the starts of each depth, one row at a time.
    p = torch.softmax(target / 0.9, -1)
    q = torch.softmax(draft.detach() / 0.9, -1)
    if cut:
        q = torch.zeros(2, 4, 3, 6, dtype=torch.float64).index_copy(
            -1, torch.tensor([0, 2, 3, 5]), q
        )
    runs = {0: 4, 1: 0}, {(1, 1): 2, (1, 2): 1}
    known = {(0, s): runs[0][0] - s for s in range(4)} | runs[1]
    want = 0.0
    for j in range(3):
        rates = [
            asked["rate"](p[b, s + j], q[b, s, j], n).item()
            for (b, s), left in known.items()
            if left > j
        ]
        want -= sum(rates) / len(rates)
    value = loss(draft)
    assert value.item() == pytest.approx(want, abs=1e-9)
    value.backward()
    step = 1e-6
    for place in rng.integers(draft.shape, size=(25, 4)).tolist():
        moved = []
        for sign in (1, -1):
            rows = draft.detach().clone()
            rows[tuple(place)] += sign * step
            moved.append(loss(rows).item())
        slope = (moved[0] - moved[1]) / (2 * step)
        assert draft.grad[tuple(place)].item() == pytest.approx(slope, abs=2e-5)


@needs_torch
def test_the_loss_refuses_what_does_not_fit() -> None:
    target, draft = torch.zeros(2, 4, 6), torch.zeros(2, 4, 3, 6)
    for changed, match in (
        ({"target_logits": target[0]}, r"target_logits: has shape \(4, 6\); give \[B, T, V\]"),
        ({"draft_logits": draft[:, 1:]}, "draft_logits: has shape .* both have a row"),
        ({"d2t": torch.ones(6, dtype=torch.int64)}, "d2t: makes two tokens one, or"),
        ({"mask": torch.zeros(2, 4)}, "mask: no token counts"),
        ({"mask": torch.zeros(2, 3)}, "mask: has shape"),
    ):
        with pytest.raises(ValueError, match=match):
            sg.torch.drafter_loss(**({"target_logits": target, "draft_logits": draft} | changed))


# --- reports --------------------------------------------------------------------------------------


def test_metrics_are_flat_and_each_has_a_definition() -> None:
    target, draft, tokens = chain(drift=0.2)
    report = report_of(target, draft, tokens, optima=[2, 3], every=4)
    found = report.metrics("eval/", only="all")
    assert all(name.startswith("eval/") and type(value) is float for name, value in found.items())
    for name in report.metrics(only="all"):
        assert report.definition(name) in report.definitions.values(), name
    assert report.definition("speedup_at_0.05").startswith("tokens / (calls")
    assert report.definition("overlap_2") == report.definitions["overlap_d"]
    with pytest.raises(ValueError, match="there is no number 'loss'"):
        report.definition("loss")
    estimates = [name for name in found if f"{name}_ci95" in found]
    plain = {
        "surprise_z",
        "tokens",
        "prompts",
        "starts",
        "best_length_at_0.05",
        "best_length_at_0.1",
    }
    assert {name.removeprefix("eval/") for name in found if not name.endswith("_ci95")} == plain | {
        name.removeprefix("eval/") for name in estimates
    }
    few = report.metrics("eval/")
    assert few.items() <= found.items() and 12 <= len(few) <= 20
    assert "eval/acceptance_length_ci95" in few and "eval/surprise_z" in few
    assert list(report.metrics(only=["overlap_2"])) == ["overlap_2", "overlap_2_ci95"]
    with pytest.raises(ValueError, match="there is no number 'overlapp'"):
        report.metrics(only=["overlapp"])
    assert json.loads(report.json) == report.to_dict()
    for page in (report.text(whole=True), str(report)):
        page = " ".join(page.split())
        assert "acceptance length" in page and "α*, n = 3" in page
        for words in report.definitions.values():
            assert " ".join(words.split()) in page
    assert len(report.by_depth()["overlap"]) == 3
    again = pickle.loads(pickle.dumps(report))
    assert again.json == report.json and again.metrics(only="all") == report.metrics(only="all")
    assert again.html() == report.html()


def test_the_report_is_a_page_as_others_are(tmp_path: Any) -> None:
    report = report_of(*chain(batch=20), optima=[2])
    place = report.save(tmp_path / "made", tables="csv")
    names = {path.name for path in place.parent.iterdir()}
    assert names >= {"report.html", "report.md", "report.json", "by-depth.svg", "tokens-per-call.svg"}
    assert json.loads((place.parent / "report.json").read_text()) == report.to_dict()
    assert place.read_text() == report.html() and "<svg" in report.html()
    assert report.tables == [
        "acceptance-length", "best-length", "by-depth", "rows-by-depth", "tokens-per-call"
    ]  # fmt: skip
    columns = report.by_depth()
    for row in range(3):
        for table, name, column in (
            ("by-depth", "joint", "acceptance_joint"),
            ("rows-by-depth", "overlap", "overlap"),
            ("rows-by-depth", "α*, n = 2", "alpha_star_2"),
        ):
            head, *lines = csv.reader(report.table(table).to_csv().splitlines())
            found = dict(zip(head, lines[row]))
            mean, half = columns[column][row], columns[f"{column}_ci95"][row]
            assert float(found[name]) == pytest.approx(mean, abs=1e-12)
            assert float(found[f"{name}/high"]) == pytest.approx(mean + half, abs=1e-9)
    shown = csv.DictReader(report.table("tokens-per-call").to_csv().splitlines())
    calls = [float(one["sampled, rejection"]) for one in shown]
    assert calls == pytest.approx([one.mean for one in report.per_call["sampled"]])


def test_orders_of_kinds_hold() -> None:
    """Token <= block <= greedy block, on any text."""
    found = report_of(*chain(drift=0.4)).lengths
    assert found["sampled"].mean <= found["block"].mean <= found["greedy-block"].mean


def test_a_comparison_is_paired() -> None:
    target, draft, tokens = chain(batch=20, drift=0.3)
    better = draft.copy()
    better[:, :, 0] = target
    a, b = report_of(target, draft, tokens), report_of(target, better, tokens)
    found = sg.compare(a, b)
    want = {kind: b.lengths[kind].mean - one.mean for kind, one in a.lengths.items()}
    for kind, one in found.acceptance_length.items():
        assert one.mean == pytest.approx(want[kind], abs=1e-12)
    for d, one in enumerate(found.joint, 1):
        mine, theirs = (report.metrics(only="all")[f"acceptance_joint_{d}"] for report in (b, a))
        assert one.mean == pytest.approx(mine - theirs, abs=1e-12)
    # By hand: differences summed by prompt, Student's t of 19 degrees.
    gain = b.starts()["accepted_sampled"] - a.starts()["accepted_sampled"]
    sums = gain.reshape(20, -1).sum(1)
    error = np.sqrt(20 / 19 * ((sums - sums.mean()) ** 2).sum()) / gain.size
    half = found.acceptance_length["sampled"].half
    assert half == pytest.approx(2.093024054 * error, rel=1e-8)
    assert half < b.lengths["sampled"].half
    same = sg.compare(a, a).acceptance_length["sampled"]
    assert (same.mean, same.half) == (0, 0)
    assert "paired over" in found.text() and found.metrics("gain/")["gain/acceptance_length"] > 0
    json.dumps(found.to_dict())


def test_a_comparison_says_what_has_no_partner_and_refuses_other_texts() -> None:
    target, draft, tokens = chain()
    a = report_of(target, draft, tokens)
    acc = sg.drafter(depth=3)
    acc.add(target[:8, :25], draft[:8, :25], tokens[:8, :25], range(8))
    found = sg.compare(a, acc.report())
    assert (found.starts, found.only_in_a, found.only_in_b) == (8 * 23, 12 * 28 - 8 * 23, 0)
    other = at(tokens, (3, 9), (tokens[3, 9] + 1) % 7)
    with pytest.raises(sg.Refused, match=r"b: is of another text: prompt 3, position 9 is token"):
        sg.compare(a, report_of(target, draft, other))
    with pytest.raises(sg.Refused, match="b: temperature is 0.9 and a's 1.0"):
        sg.compare(a, report_of(target, draft, tokens, temperature=0.9))
    acc = sg.drafter(depth=3)
    acc.add(target, draft, tokens, range(50, 62))
    with pytest.raises(sg.Refused, match="no start"):
        sg.compare(a, acc.report())


def test_intervals_of_a_few_prompts() -> None:
    """Quantiles of Student's t, of tables."""
    for freedom, want in (
        (1, 12.7062047),
        (2, 4.30265273),
        (7, 2.36462425),
        (200, 1.97189622),
        (1000, 1.96233908),
    ):
        # Sums 1 and -1 of C prompts of size 1: the error is sqrt(2 C/(C - 1))/C.
        prompts = freedom + 1
        sums = np.zeros(prompts)
        sums[:2] = 1.0, -1.0
        half = _drafter_report.clustered(sums, np.ones(prompts)).half
        error = math.sqrt(2 * prompts / freedom) / prompts
        assert half / error == pytest.approx(want, rel=1e-8)
    one = _drafter_report.clustered(np.array([5.0]), np.array([10.0]))
    assert one == (0.5, 0.0)


def test_examples_of_docstrings_run() -> None:
    for module in (_drafter, _drafter_report, _drafter_rows):
        assert doctest.testmod(module).failed == 0


# Trees, and prompts that have names.


def test_a_tree_of_strata_has_the_length_that_every_draw_sums_to() -> None:
    """How often a child is accepted given the output, from all tuples of drafts and the rule's law."""
    target, draft, tokens = chain(batch=3, length=12)
    acc = sg.drafter(depth=2, trees=["2x2", "prefix-3-1"], every=1)
    acc.add(target, draft[:, :, :2], tokens, prompt_id=[f"text {b}" for b in range(len(tokens))])
    report = acc.report()
    found = report.metrics()

    def softmax(row: Any) -> Any:
        powers = np.exp(row - row.max())
        return powers / powers.sum()

    known: dict[Any, float] = {}

    def share(p: Any, q: Any, n: int, token: int) -> float:
        key = (p.tobytes(), q.tobytes(), n, token)
        if key not in known:
            padded, masses = _native.DraftLaw("stratified", q.tolist(), n).tuples()
            accepted = 0.0
            for one, mass in zip(padded, masses):
                drafts = one[one >= 0]
                for rng, (put_out, slot) in _explored(functools.partial(rules.level_4, p, q, drafts)):
                    accepted += mass * rng.weight * (put_out == token and slot is not None)
            known[key] = min(accepted / p[token], 1.0)
        return known[key]

    shapes = {"2x2": (2, 2), "prefix-3-1": (3, 1)}
    for tree, children in shapes.items():
        lengths = []
        for b in range(len(tokens)):
            for s in range(tokens.shape[1] - 1):
                kept = [
                    share(softmax(target[b, s + j]), softmax(draft[b, s, j]), n, int(tokens[b, s + j]))
                    for j, n in enumerate(children)
                ]
                lengths.append(1 + kept[0] + kept[0] * kept[1])
        assert found[f"acceptance_length_tree_{tree}"] == pytest.approx(np.mean(lengths), abs=1e-9)
    assert "strata, tree 2x2, level-4" in report.text(whole=True)
    assert report.definition("acceptance_length_tree_2x2").startswith("1 + E[tau], on a sample")
    # The same by other processes, whose prompts have the same names.
    again = sg.Drafter.from_bytes(acc.to_bytes())
    other = sg.drafter(depth=2, trees=["2x2", "prefix-3-1"], every=1)
    other.add(target, draft[:, :, :2], tokens, prompt_id=[f"text {b}" for b in range(len(tokens))])
    assert again.merge(other).report().metrics() == found
    for bad in ("5x3", "none"):
        with pytest.raises(sg.Refused, match="trees: '5x3' has 3 levels|tree: 'none' is none"):
            sg.drafter(depth=2, trees=[bad])


def test_a_tree_by_products_of_q_has_the_length_that_tree_replays() -> None:
    """SGLang's and EAGLE-2's trees: the same rows as a log by depth."""
    target, draft, tokens = chain(batch=4, length=30)
    names = [f"threshold-{least:g}" for least in (0.5, 0.2, 0.05)]
    acc = sg.drafter(depth=2, trees=[*names, "2x2"])
    acc.add(target, draft[:, :, :2], tokens, prompt_id=range(4))
    report = acc.report()
    n = tokens.size
    whole = sg.tree(
        {
            "target_logits": target.reshape(n, -1),
            "draft_logits": draft[:, :, :2].reshape(n, 2, -1),
            "token": tokens.reshape(n),
            "prompt_id": np.repeat(range(4), tokens.shape[1]),
            "position": np.tile(range(tokens.shape[1]), 4),
        },
        temperature=1.0, max_depth=2, progress=False,
    ).to_dict()  # fmt: skip
    replayed = {f"threshold-{one['threshold']:g}": one for one in whole["dynamic"]}
    found = report.metrics()
    for name in names:
        assert replayed[name]["levels"] == 2
        mean = replayed[name]["expected_accepted_length"]["mean"]
        assert found[f"acceptance_length_tree_{name}"] == pytest.approx(1 + mean, abs=1e-6)
    assert len({found[f"acceptance_length_tree_{name}"] for name in names}) == 3
    assert "all nodes of product 0.05 or more" in report.text(whole=True)
    assert report.definition(f"acceptance_length_tree_{names[0]}").startswith("1 + E[tau], on a sample")
    assert sg.Drafter.from_bytes(acc.to_bytes()).report().metrics() == found
    for bad in ("threshold-0", "threshold-2", "threshold-x"):
        with pytest.raises(sg.Refused, match=f"trees: '{bad}' is none; give a product of q"):
            sg.drafter(depth=2, trees=[bad])


def test_a_tree_verified_from_its_leaves_has_the_length_that_tree_replays() -> None:
    # A draft model's rows, which do not depend on where a round began.
    target, draft, tokens = chain(batch=4, length=30)
    rules: Any = ("traversal", "traversal-4")
    acc = sg.drafter(depth=2, trees=[f"{shape}:{rule}" for shape in ("2x2", "prefix-3-1") for rule in rules], every=1)
    acc.add(target, draft[:, :, :2], tokens, prompt_id=range(4))
    report = acc.report()
    found = report.metrics()
    n = tokens.size
    whole = sg.tree(
        {
            "target_logits": target.reshape(n, -1),
            "draft_logits": draft[:, :, 0].reshape(n, -1),
            "token": tokens.reshape(n),
            "prompt_id": np.repeat(range(4), tokens.shape[1]),
            "position": np.tile(range(tokens.shape[1]), 4),
        },
        temperature=1.0, topology=["2x2", "prefix-3-1"], schemes="stratified", verifiers=rules, progress=False,
    ).to_dict()  # fmt: skip
    replayed = {f"{one['tree']}:{one['verifier']}": one for one in whole["results"]}
    for name in acc.trees:
        mean = replayed[name]["expected_accepted_length"]["mean"]
        assert found[f"acceptance_length_tree_{name}"] == pytest.approx(1 + mean, abs=1e-9)
    assert found["acceptance_length_tree_2x2:traversal-4"] > found["acceptance_length_tree_2x2:traversal"]
    assert "strata, tree 2x2, traversal-4 (a sample)" in report.text(whole=True)
    with pytest.raises(sg.Refused, match="trees: '2x2:rrs': rrs is no rule of these trees"):
        sg.drafter(depth=2, trees=["2x2:rrs"])
