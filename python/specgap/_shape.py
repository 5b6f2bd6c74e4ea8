"""Which tree a decoder drafts: by measured times, and by what its own rows would have kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._errors import Refused
from ._rates import acceptance

#: A tree as :func:`widths` or :func:`price` reads it.
Shape = str | int | Sequence[int] | PathLike[str] | Mapping[str, Any]

#: Children by depth; the first is no tree at all.
TREES: tuple[tuple[int, ...], ...] = (
    (), (1,), (2,), (4,), (8,), (1, 1), (2, 1), (4, 1), (2, 2), (4, 2), (1, 1, 1), (2, 1, 1), (4, 2, 1), (1, 1, 1, 1),
)  # fmt: skip
_WIDTHS = (1, 2, 4, 8)
#: Rounds that look at their rows before a tree is chosen; then one does after so many.
FIRST, EVERY = 12, 32


def widths(tree: str | int | Sequence[int]) -> tuple[int, ...] | None:
    """Children of a node at each depth: of ``4``, ``"4-2-1"``, ``"prefix-4-2-1"``, ``"chain-4"``,
    ``"2x3"`` or numbers; none for ``"auto"``."""
    text = tree if isinstance(tree, str) else ""
    if text == "auto":
        return None
    try:
        if text.startswith("chain-"):
            found = [1] * int(text[6:])
        elif "x" in text.removeprefix("prefix-"):
            width, depth = map(int, text.split("x"))
            found = [width] * depth
        elif text:
            found = [int(part) for part in text.removeprefix("prefix-").split("-")]
        else:
            found = [int(tree)] if isinstance(tree, int) else [int(part) for part in tree]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise Refused(
            f"tree: {tree!r} is none; give children by depth: 4, '4-2-1', (4, 2, 1), 'chain-4' or '2x3', or 'auto'"
        )
    return tuple(found)


def price(tree: Shape) -> tuple[dict[str, Any], _native.Priced] | None:
    """What ``specgap tree --price`` wrote, of its path or as it was read; none of a shape."""
    read = tree
    try:
        if isinstance(tree, PathLike) or (isinstance(tree, str) and tree.endswith(".json")):
            read = json.loads(Path(tree).read_text(encoding="utf-8"))
        elif not isinstance(tree, Mapping):
            return None
        text = json.dumps(read)
    except (OSError, TypeError, ValueError) as error:
        raise Refused(f"tree: is not read: {error}; give best-tree.price.json of specgap tree --price") from None
    checked = _native.Priced(text)
    return cast(dict[str, Any], read), checked


def threshold(tree: str) -> float | None:
    """h of ``"threshold-h"``, the tree of every node whose product of q reaches h; None of shapes."""
    if not tree.startswith("threshold-"):
        return None
    try:
        least = float(tree.removeprefix("threshold-"))
    except ValueError:
        least = 0.0
    if not 0.0 < least <= 1.0:
        raise Refused(f"trees: {tree!r} is none; give a product of q in (0, 1], such as 'threshold-0.05'")
    return least


class Times(NamedTuple):
    """Seconds: of a draft step, of a pass by its tokens (ascending from 1), of the rest of a round."""

    draft: float
    passes: tuple[tuple[int, float], ...]
    rest: float

    def round(self, widths: Sequence[int]) -> float:
        """Of a round with a tree: a draft step a level, a pass over the text's last token and all
        nodes, by straight lines between what was measured, and the rest."""
        if not widths:
            return self.passes[0][1]
        nodes = 1 + int(np.cumprod(widths).sum())
        counts, seconds = zip(*self.passes)
        return self.draft * len(widths) + float(np.interp(nodes, counts, seconds)) + self.rest


def tokens(widths: Sequence[int], kept: Mapping[int, float]) -> float:
    """A call's: 1 + a(w1) (1 + a(w2) (1 + ..)), where a(w) is how often one of w children is kept. An
    estimate: it takes rows behind kept drafts to be like those at the root."""
    made = 1.0
    for width in reversed(widths):
        made = 1.0 + kept[width] * made
    return made


class Chooser:
    """The tree with the most tokens a second, as far as this text's rows tell."""

    def __init__(self, times: Times, law: str, rule: str) -> None:
        self.times = times
        chains = rule in ("token", "block")
        self.trees = [one for one in TREES if not chains or set(one) <= {1}]
        self._widths = (1,) if chains else _WIDTHS
        self._law: Any = law
        self._rule: Any = {"top": "exact-match", "with-replacement": "rrs"}.get(law, "level-4")
        self._sums = dict.fromkeys(self._widths, 0.0)
        self._seen = self._rounds = self._looked = 0
        self.best: tuple[int, ...] = (1,) if chains else (4,)

    def begin(self) -> tuple[int, ...]:
        """The next round's tree. Now and then one that looks, where none is drafted otherwise."""
        self._rounds += 1
        self._looks = self._seen < FIRST or self._rounds >= self._looked + EVERY
        return self.best or ((1,) if self._looks else ())

    def note(self, p: NDArray[Any], q: NDArray[Any]) -> None:
        """Rows behind the text, of a round that looks."""
        if not self._looks:
            return
        self._seen, self._looked = self._seen + 1, self._rounds
        for width in self._widths:
            drafts = min(width, int(np.count_nonzero(q)))
            self._sums[width] += acceptance(self._rule, p, q, drafts, self._law).value
        if self._seen >= FIRST:
            kept = {width: total / self._seen for width, total in self._sums.items()}
            self.best = max(self.trees, key=lambda one: tokens(one, kept) / self.times.round(one))
