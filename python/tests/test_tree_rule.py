"""Traversal of drafted trees: by every tree and coin, against the target's law and the replay."""

from __future__ import annotations

import inspect
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import specgap as sg
from specgap import rules
from specgap._evaluate import _explored

from .conftest import Coins
from .test_documents import blocks

Rows = dict[tuple[int, ...], tuple[Any, Any]]
#: How many children a node gets: its ranks from the root on, and all nodes so far.
Shape = Callable[[tuple[int, ...], list[int]], int]


def by_depth(*counts: int) -> Shape:
    return lambda ranks, _: counts[len(ranks)] if len(ranks) < len(counts) else 0


def of(**counts: int) -> Shape:
    """By ranks: ``root`` of the text, ``x01`` of the second child of the first."""
    return lambda ranks, _: counts.get("x" + "".join(map(str, ranks)) if ranks else "root", 0)


def by_others(ranks: tuple[int, ...], drawn: list[int]) -> int:
    """Numbers that depend on what was drawn in other branches."""
    return 2 if not ranks else (sum(drawn) + len(ranks)) % 3 if len(drawn) < 5 and len(ranks) < 2 else 0


def models(generator: Any, size: int, length: int) -> Rows:
    """Rows p and q behind every prefix, with zeros, ties, one-hot rows and p = q among them."""

    def row() -> Any:
        kind = generator.random()
        if kind < 0.08:
            return np.eye(size)[generator.integers(size)]
        parts = generator.integers(1, 9, size) * (generator.random(size) < 0.85)
        parts = np.ones(size) if kind > 0.95 or not parts.any() else parts.astype(float)
        return parts / parts.sum()

    rows = {}
    for depth in range(length):
        for prefix in itertools.product(range(size), repeat=depth):
            p, q = row(), row()
            rows[prefix] = (p, p.copy() if generator.random() < 0.08 else q)
    return rows


def drawn(rows: Rows, shape: Shape, rng: Any, straddle: Any, iid: bool, merged: bool) -> Any:
    """A tree: tokens, parents, slots, and the prefix of every row. Where drafts are ``merged``, one
    token over a cut that is drawn twice is one node."""
    tokens: list[int] = []
    parents: list[int] = []
    slots: list[list[int]] = []
    prefixes: list[tuple[int, ...]] = [()]
    ranks: list[tuple[int, ...]] = [()]
    for row in itertools.count():
        if row == len(prefixes):
            return tokens, parents, slots, prefixes
        count, q = shape(ranks[row], tokens), rows[prefixes[row]][1] if prefixes[row] in rows else None
        slots.append([])
        if not count:
            continue
        assert q is not None
        if iid:
            drafts = [int(rng.choice(len(q), p=q)) for _ in range(count)]
        else:
            drafts = rules.draft_strata(q, count, rng, straddle).tolist()
        for rank, token in enumerate(drafts):
            if merged and rank and token == drafts[rank - 1]:
                slots[row].append(len(tokens) - 1)
                continue
            slots[row].append(len(tokens))
            tokens.append(token)
            parents.append(row)
            prefixes.append((*prefixes[row], token))
            ranks.append((*ranks[row], rank))


class LastLaw:
    """Random numbers of which the last draw is not made: its law is kept."""

    law: Any = None

    def __init__(self, rng: Any) -> None:
        self.random = rng.random

    def choice(self, size: int, p: Any) -> int:
        self.law = p
        return -1


def rounds(
    rows: Rows,
    shape: Shape,
    verify: Any = rules.verify_tree,
    levels: Any = rules.TRAVERSAL,
    straddle: Any = "once",
    iid: bool = False,
    merged: bool = False,
) -> tuple[dict[tuple[int, ...], float], dict[tuple[tuple[int, ...], int], float]]:
    """Over all trees and coins: the law of the text as far as there are rows, and by text and number
    of kept tokens their probability."""
    size, length = len(rows[()][0]), max(map(len, rows)) + 1

    def run(rng: Any) -> Any:
        tokens, parents, slots, prefixes = drawn(rows, shape, rng, straddle, iid, merged)
        nothing = np.full(size, np.nan)
        p = [rows[one][0] for one in prefixes]
        q = [rows[one][1] if slots[row] else nothing for row, one in enumerate(prefixes)]
        last = LastLaw(rng)
        path, _ = verify(
            p, q, tokens, parents, last, levels, straddle, slots if merged else None, iid
        )
        assert [parents[i] for i in path] == [0, *(i + 1 for i in path)][: len(path)]
        return tuple(tokens[i] for i in path), last.law

    kept: dict[tuple[tuple[int, ...], int], float] = defaultdict(float)
    for rng, (prefix, law) in _explored(run):
        pending = [(prefix + (x,), rng.weight * law[x]) for x in range(size) if law[x] > 0]
        while pending:
            text, mass = pending.pop()
            if len(text) < length:
                p = rows[text][0]
                pending += [(text + (x,), mass * p[x]) for x in range(size) if p[x] > 0]
            else:
                kept[text, len(prefix)] += mass
    texts: dict[tuple[int, ...], float] = defaultdict(float)
    for (text, _), mass in kept.items():
        texts[text] += mass
    return texts, kept


def chance(rows: Rows, text: Sequence[int]) -> float:
    return float(np.prod([rows[tuple(text[:k])][0][x] for k, x in enumerate(text)]))


def apart(rows: Rows, texts: dict[tuple[int, ...], float]) -> float:
    size, length = len(rows[()][0]), max(map(len, rows)) + 1
    every = itertools.product(range(size), repeat=length)
    return max(abs(texts.get(text, 0.0) - chance(rows, text)) for text in every)


CASES: list[tuple[str, int, Shape]] = [
    ("chain", 3, by_depth(1, 1)),
    ("2-1", 3, by_depth(2, 1)),
    ("2-2", 3, by_depth(2, 2)),
    ("2-1-1", 2, by_depth(2, 1, 1)),
    ("3-1", 4, of(root=3, x0=2, x2=1)),
    ("uneven", 3, of(root=2, x1=2)),
    ("by others", 3, by_others),
]


def cases(seed: int, models_of_each: int) -> Iterator[tuple[str, Rows, Shape]]:
    generator = np.random.default_rng(seed)
    for name, size, shape in CASES:
        for _ in range(models_of_each):
            yield name, models(generator, size, 3 if name.count("-") < 2 else 4), shape


STRATA: list[dict[str, Any]] = [
    {"straddle": "once"},
    {"straddle": "independent"},
    {"straddle": "independent", "merged": True},
]
IID: dict[str, Any] = {"iid": True}
EVERYWHERE = (rules.STRATA_LEVELS, rules.STRATA_LEVELS)


@pytest.mark.parametrize("levels", [rules.TRAVERSAL, rules.TRAVERSAL_4, EVERYWHERE])
def test_the_text_has_the_law_of_the_target(levels: Any) -> None:
    for kind, count in [*((kind, 8) for kind in STRATA), (IID, int(levels != EVERYWHERE))]:
        for name, rows, shape in cases(1, count):
            texts, _ = rounds(rows, shape, levels=levels, **kind)
            assert apart(rows, texts) < 1e-13, (name, kind)


#: Neighbours of the rule that are not lossless: what is left out of it.
BUGS = {
    "R as it was, behind a refused subtree": ("        here -= give\n", ""),
    "drafts as they were, at the next offer": ("if x not in drafts:", "if True:"),
    "coins of their own for each offer": (
        "if coins[x - 1] < refused[x - 1]",
        "if coins[x - 1] < 1.0 - _kept(float(left.sum()), alive)",
    ),
    "sure tokens that take nothing of S": ("            alive *= 1.0 - chance\n", ""),
    "a weight that is not passed on": ("left = p[x] * (weight * alive)", "left = p[x] * alive"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_neighbour_of_the_rule_is_refuted(bug: str) -> None:
    source = inspect.getsource(rules)
    right, wrong = BUGS[bug]
    assert source.count(right) == 1
    scope = dict(vars(rules))
    exec(compile(source.replace(right, wrong), "bug", "exec"), scope)
    found = [
        apart(rows, rounds(rows, shape, scope["verify_tree"], rules.TRAVERSAL_4)[0])
        for _, rows, shape in cases(1, 8)
    ]
    assert max(found) > 1e-2, found


def test_a_text_takes_as_many_rounds_as_its_replay_says(tmp_path: Any) -> None:
    """All texts of three tokens in rounds of `verify_tree`, by every tree and coin, against
    `specgap tree` on a log of them. Rows of q fall by id, as strata of the log are cut by weight."""
    generator = np.random.default_rng(5)
    size, length = 3, 3
    everywhere: Rows = {}
    for depth in range(length):
        for prefix in itertools.product(range(size), repeat=depth):
            p, q = generator.dirichlet([0.6] * size) + 0.02, generator.dirichlet([3.0] * size) + 0.02
            everywhere[prefix] = (p / p.sum(), np.sort(q / q.sum())[::-1].copy())
    texts = list(itertools.product(range(size), repeat=length))
    with sg.LogWriter(tmp_path / "log", dtype="float64") as log:
        for prompt, text in enumerate(texts):
            for k, x in enumerate(text):
                p, q = np.log(everywhere[text[:k]])
                log.append(target_logits=p, draft_logits=q, prompt_id=prompt, token=x)
    trees = {"2x2": by_depth(2, 2), str(tmp_path / "tree.json"): of(root=2, x1=1)}
    (tmp_path / "tree.json").write_text("[[0], [1], [1, 0]]")
    report = sg.tree(
        tmp_path / "log",
        topology=list(trees),
        schemes=["stratified", "stratified-independent", "with-replacement"],
        verifiers=["traversal", "traversal-4"],
        budget=2,
        temperature=1.0,
    ).to_dict()
    kinds = dict(zip(["stratified", "stratified-independent", "with-replacement"], [*STRATA[:2], IID]))
    seen = []
    for one in report["results"]:
        shape = trees[next(name for name in trees if name.endswith(one["tree"]))]
        levels = {"traversal": rules.TRAVERSAL, "traversal-4": rules.TRAVERSAL_4}[one["verifier"]]

        def cut(left: int) -> Shape:
            return lambda ranks, drawn: shape(ranks, drawn) if len(ranks) < left else 0

        def after(start: tuple[int, ...]) -> Any:
            rows = {k[len(start) :]: v for k, v in everywhere.items() if k[: len(start)] == start}
            more = cut(length - 1 - len(start))
            return rounds(rows, more, levels=levels, **kinds[one["scheme"]])[1], rows

        kept = {text[:k]: after(text[:k]) for text in texts for k in range(length)}

        def calls(text: tuple[int, ...], start: int) -> float:
            if start >= length:
                return 0.0
            ends, rows = kept[text[:start]]
            total = 1.0
            for count in range(length - start):
                mass = ends.get((text[start:], count), 0.0) / chance(rows, text[start:])
                total += mass * calls(text, start + count + 1)
            return total

        mean = sum(calls(text, 0) for text in texts) / len(texts)
        assert one["tokens_per_call"]["mean"] == pytest.approx(length / mean, abs=1e-7), one
        seen.append(mean)
    assert len(set(np.round(seen, 6))) == len(seen) == 12


def test_drafts_of_another_row_are_refused() -> None:
    p, q = np.full((3, 4), 0.25), np.tile([0.1, 0.2, 0.3, 0.4], (3, 1))
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="outside its stratum"):
        rules.verify_tree(p, q, [3, 0], [0, 0], rng)
    with pytest.raises(ValueError, match="sure by its q"):
        rules.verify_tree(p, np.tile([0.7, 0.1, 0.1, 0.1], (3, 1)), [1, 0], [0, 0], rng)
    assert rules.verify_tree(p, q, [], [], rng)[0] == []


@pytest.mark.parametrize("levels", [rules.TRAVERSAL, rules.TRAVERSAL_4, EVERYWHERE])
@pytest.mark.parametrize("kind", [*STRATA, IID])
def test_torch_keeps_the_same_nodes_with_the_same_coins(levels: Any, kind: Any) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from specgap import kernels

    generator = np.random.default_rng(11)
    depths = set()
    for shape in [by_depth(1, 1), by_depth(3, 2, 1), of(root=2, x1=3), of(root=4, x0=2, x00=1, x3=1)]:
        parents: list[int] = []
        ranks: list[tuple[int, ...]] = [()]
        slots: list[list[int]] = []
        for row in itertools.count():
            if row == len(ranks):
                break
            count = shape(ranks[row], [])
            slots.append(list(range(len(parents), len(parents) + count)))
            parents += [row] * count
            ranks += [(*ranks[row], rank) for rank in range(count)]
        size, batch, nodes = 7, 60, len(parents)
        p, q = np.empty((2, batch, nodes + 1, size))
        tokens = np.full((batch, nodes), -1)
        named = [np.tile(own, (batch, 1)) for own in slots]
        for b, row in itertools.product(range(batch), range(nodes + 1)):
            p[b, row], q[b, row] = next(iter(models(generator, size, 1).values()))
            for slot in range(len(slots[row])):
                named[row][b, slot] = slots[row][slot]
            if kind.get("iid"):
                drafts = list(generator.choice(size, len(slots[row]), p=q[b, row]))
            elif slots[row]:
                drafts = list(rules.draft_strata(q[b, row], len(slots[row]), generator, kind["straddle"]))
            else:
                drafts = []
            for rank, token in enumerate(drafts):
                tokens[b, slots[row][rank]] = token
                if kind.get("merged") and rank and token == drafts[rank - 1]:
                    named[row][b, rank] = named[row][b, rank - 1]
        coins = generator.random((batch, nodes + 1)) ** 2  # nodes are refused less often
        path, token = kernels.verify_tree(
            torch.tensor(p),
            torch.tensor(q),
            torch.tensor(tokens),
            parents,
            torch.tensor(coins),
            levels,
            kind.get("straddle", "once"),
            [torch.tensor(own, dtype=torch.int64).reshape(batch, -1) for own in named]
            if kind.get("merged")
            else None,
            bool(kind.get("iid")),
        )
        for b in range(batch):
            wanted = rules.verify_tree(
                p[b],
                q[b],
                tokens[b].tolist(),
                parents,
                Coins(coins[b]),  # type: ignore[arg-type]
                levels,
                kind.get("straddle", "once"),
                [own[b].tolist() for own in named],
                bool(kind.get("iid")),
            )
            found = [i for i in path[b].tolist() if i >= 0]
            assert (found, int(token[b])) == wanted, (b, kind)
            assert path[b].tolist()[: len(found)] == found
            depths.add(len(found))
    assert depths == {0, 1, 2, 3}


def test_the_functions_of_the_guide_do_the_same_with_the_same_coins() -> None:
    page: dict[str, Any] = {}
    for _, code in blocks("docs/guide/better-drafts.md", "The two functions"):
        exec(compile(code, "better-drafts.md", "exec"), page)
    generator = np.random.default_rng(6)
    shape = of(root=4, x0=2, x00=1, x1=2, x3=1)
    lengths: dict[int, int] = defaultdict(int)
    for _ in range(300):
        size = int(generator.integers(3, 9))
        tokens: list[int] = []
        parents: list[int] = []
        ranks: list[tuple[int, ...]] = [()]
        rows = []
        for row in itertools.count():
            if row == len(ranks):
                break
            rows.append(next(iter(models(generator, size, 1).values())))
            if count := shape(ranks[row], tokens):
                coins = generator.random(count)
                drafts = page["draft"](rows[row][1], count, Coins(coins))
                again = rules.draft_strata(rows[row][1], count, Coins(coins), "independent")  # type: ignore[arg-type]
                assert drafts == again.tolist()
                tokens += drafts
                parents += [row] * len(drafts)
                ranks += [(*ranks[row], rank) for rank in range(len(drafts))]
        p, q = (list(of) for of in zip(*rows))
        coins = generator.random(len(tokens) + 1) ** 2
        for levels in (0.8, 0.5, 0.2, 0.0), (0.0,):
            found = page["verify_tree"](p, q, tokens, parents, Coins(coins), levels)
            both = (levels, (0.0,))
            known = rules.verify_tree(p, q, tokens, parents, Coins(coins), both, "independent")  # type: ignore[arg-type]
            assert found == known
            lengths[len(found[0])] += 1
    assert min(lengths[k] for k in range(4)) > 20, lengths


def test_vectors_of_conformance_are_kept_as_they_say(tmp_path: Any, command: Any) -> None:
    command("conformance", "--out", tmp_path / "vectors", "--verifiers", "traversal,traversal-4")
    trees = json.loads((tmp_path / "vectors" / "trees.json").read_text())["vectors"]
    try:
        import torch

        from specgap import kernels
    except ImportError:
        torch = None
    assert len(trees) > 200
    for tree in trees:
        p, q = np.array(tree["target"]), np.array(tree["draft"])
        straddle: Any = "once" if tree["law"] == "stratified" else "independent"
        iid = tree["law"] == "with-replacement"
        levels: Any = tuple(map(tuple, tree["levels"]))
        wanted = [(one["kept"], one["token"]) for one in tree["coins"]]
        coins = np.array([[*one["nodes"], one["last"]] for one in tree["coins"]])
        for own, right in zip(coins, wanted):
            path, token = rules.verify_tree(
                p,
                q,
                tree["tokens"],
                tree["parents"],
                Coins(own),  # type: ignore[arg-type]
                levels,
                straddle,
                tree["slots"],
                iid,
            )
            assert (path[-1] + 1 if path else 0, token) == right, tree
        for dtype in (torch.float64, torch.float32) if torch is not None else ():
            batch = len(coins)
            kept, next_token = kernels.verify_tree(
                torch.tensor(p, dtype=dtype).expand(batch, -1, -1),
                torch.tensor(q, dtype=dtype).expand(batch, -1, -1),
                torch.tensor(tree["tokens"]).expand(batch, -1),
                tree["parents"],
                torch.tensor(coins, dtype=dtype),
                levels,
                straddle,
                [torch.tensor(own, dtype=torch.int64).expand(batch, -1) for own in tree["slots"]],
                iid,
            )
            last = (kept.max(1).values + 1).tolist()
            assert list(zip(last, next_token.tolist())) == wanted, (dtype, tree)
