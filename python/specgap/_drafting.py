"""Drafts of the laws of the table, drawn in O(n V): nothing is listed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"
Straddle = Literal["once", "independent"]
#: Draws n drafts by random numbers.
Drawer: TypeAlias = "Callable[[np.random.Generator], Integers]"


class Stratum(NamedTuple):
    """The law of one draft from token ``start`` on. ``link`` multiplies its first entry, and the
    others: where the draft before is not this first token, and where it is."""

    start: int
    law: Floats
    link: tuple[tuple[float, float], tuple[float, float]]


def strata(q: Floats, n: int, straddle: Straddle) -> tuple[list[int], list[Stratum]]:
    """The certain tokens of q, heaviest first, and the strata of the rest by token id. O(n V)."""
    rest, left = q.copy(), float(q.sum())
    certain: list[int] = []
    while len(certain) < n - 1:
        x = int(rest.argmax())
        # A token of a whole stratum counts as certain in spite of rounding.
        if rest[x] <= 0.0 or (n - len(certain)) * rest[x] < left * (1 - 2**-40):
            break
        certain.append(x)
        left -= float(rest[x])
        rest[x] = 0.0
    ends = np.cumsum(rest)
    total, count = float(ends[-1]), n - len(certain)
    cuts = [total * j / count for j in range(count + 1)]
    parts: list[Stratum] = []
    stop = -1
    for j in range(count if total > 0.0 else 0):
        behind, start = stop, int(np.searchsorted(ends, cuts[j], side="right"))
        stop = int(np.searchsorted(ends, min(cuts[j + 1], total)))
        law = rest[start : stop + 1] * (count / total)
        if stop > start:
            law[0] = (ends[start] - cuts[j]) * count / total
            law[-1] = (cuts[j + 1] - ends[stop - 1]) * count / total
        link = ((1.0, 1.0), (1.0, 1.0))
        if straddle == "once" and start == behind:
            here, before = float(law[0]), float(parts[-1].law[-1])
            chance = here / (1.0 - before)
            link = ((chance / here, (1.0 - chance) / (1.0 - here)), (0.0, 1.0 / (1.0 - here)))
        parts.append(Stratum(start, law, link))
    return certain, parts


def drawn(certain: list[int], parts: list[Stratum], rng: Any) -> Integers:
    """The certain tokens, then a draft of each stratum given the one before. O(V)."""
    drafts = list(certain)
    for part in parts:
        first, others = part.link[bool(drafts) and drafts[-1] == part.start]
        law = part.law * others
        law[0] = part.law[0] * first
        drafts.append(part.start + int(rng.choice(len(law), p=law / law.sum())))
    return np.array(drafts, dtype=np.int64)


#: What stratified laws do with a token over a cut.
STRADDLES: dict[str, Straddle] = {
    "stratified": "once",
    "stratified-independent": "independent",
}
#: Draws of independent drafts that are tried for n different ones.
_MOST_TRIES = 100_000


def _distinct(q: Floats, n: int, generator: np.random.Generator) -> Integers:
    """n independent drafts, drawn again until all differ."""
    for _ in range(_MOST_TRIES):
        drafts = generator.choice(len(q), n, p=q).astype(np.int64)
        if len(np.unique(drafts)) == n:
            return drafts
    raise ValueError(
        f"scheme: {n} independent drafts of this q were not all different in {_MOST_TRIES:,} draws; "
        "take without-replacement, fewer drafts or a higher temperature"
    )


def _but(q: Floats, gone: Integers, generator: np.random.Generator) -> Integers:
    """One draft from q without some tokens; none where nothing else is left."""
    left = q.copy()
    left[gone] = 0.0
    total = float(left.sum())
    count = 1 if total > 0.0 else 0
    return generator.choice(len(q), count, p=left / total if count else None).astype(np.int64)


def by_weight(q: Floats) -> Integers:
    """The tokens with q > 0, heaviest first and then by id, as laws of the table cut them. O(V log V)."""
    return np.argsort(-q, kind="stable")[: np.count_nonzero(q)].astype(np.int64)


def drawer(q: Floats, n: int, scheme: str) -> Drawer:
    """Draws drafts of a law by its name. O(V log V) once, and O(n V) a draw at most."""
    falling = by_weight(q)
    if scheme in STRADDLES:
        certain, parts = strata(q[falling], n, STRADDLES[scheme])
        return lambda generator: falling[drawn(certain, parts, generator)]
    if scheme == "top":
        return lambda generator: falling[:n]
    if scheme == "greedy":
        top = falling[: n - 1]
        return lambda generator: np.concatenate([top, _but(q, top, generator)])
    if scheme == "hub":

        def pair(generator: np.random.Generator) -> Integers:
            first = generator.choice(len(q), 1, p=q).astype(np.int64)
            hub = falling[:1]
            other = _but(q, hub, generator) if first[0] == hub[0] else hub
            return np.concatenate([first, other])

        return pair
    if scheme == "distinct-conditioned":
        return lambda generator: _distinct(q, n, generator)
    if scheme == "without-replacement":
        if len(falling) < n:
            raise ValueError(f"{n} distinct drafts need as many tokens with q > 0")

        def first_to_ring(generator: np.random.Generator) -> Integers:
            # The first n of exponential clocks.
            with np.errstate(divide="ignore"):
                clocks = np.where(q > 0, generator.exponential(size=len(q)) / q, np.inf)
            return np.argsort(clocks, kind="stable")[:n].astype(np.int64)

        return first_to_ring
    return lambda generator: generator.choice(len(q), n, p=q).astype(np.int64)


def rows_of_drafts(q: Floats, n: int, scheme: str) -> Floats | None:
    """The law of each draft alone, [n, V], of i.i.d. and stratified drafts; None of others. Drafts of
    ``with-replacement`` and ``stratified-independent`` are independent of one another."""
    if scheme == "with-replacement":
        return np.broadcast_to(q, (n, len(q)))
    if scheme not in STRADDLES:
        return None
    falling = by_weight(q)
    certain, parts = strata(q[falling], n, STRADDLES[scheme])
    rows = np.zeros((len(certain) + len(parts), len(q)))
    rows[np.arange(len(certain)), falling[certain]] = 1.0
    for row, part in zip(rows[len(certain) :], parts):
        row[falling[part.start : part.start + len(part.law)]] = part.law
    return rows
