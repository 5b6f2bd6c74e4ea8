"""Rules of one drafted path that carry a few numbers from token to token: lossless as text, and
with fewer target calls than block verification (``docs/guide/best-possible.md``).

An object belongs to one text. ``verify`` settles a round, and keeps what goes on to the next one.

>>> import numpy as np
>>> from specgap.carried import Carried
>>> rng = np.random.default_rng(0)
>>> p, q = np.array([[0.5, 0.5]] * 2), np.array([[0.75, 0.25]] * 2)
>>> rule = Carried(most=1)
>>> accepted, token = rule.verify(p, q, [1], rng)
>>> accepted, round(rule.shares[0], 6) in (1.0, 0.5, 0.25, 0.0, 0.75)
(1, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ._evaluate import Floats


class Draws(Protocol):
    """What draws tokens: a NumPy generator, or one that goes through all outcomes."""

    def choice(self, a: int, *, p: Floats) -> int: ...


def _token(law: Floats, otherwise: Floats, rng: Draws) -> int:
    # By rounding alone nothing is left.
    law = law if law.sum() > 0 else otherwise
    return int(rng.choice(len(law), p=law / law.sum()))


def _happens(chance: float, rng: Draws) -> bool:
    chance = min(max(chance, 0.0), 1.0)
    return int(rng.choice(2, p=np.array([1 - chance, chance]))) == 1


class Carried:
    """Keeps w_j, the probability given the text so far that the running round has kept j drafts.
    With d their sum a draft x ~ q is kept with min(1, p(x)/(d q(x))), and every other token is
    drawn from (p - d q)+, behind a rejected draft and behind a whole chain."""

    def __init__(self, most: int) -> None:
        self.shares: Floats = np.eye(most)[0]

    def verify(
        self, p: Floats, q: Floats, drafts: Sequence[int], rng: Draws
    ) -> tuple[int, int]:
        """How many drafts are kept, and the token behind them. ``p`` and ``q`` [K + 1, V], the last
        rows behind the last draft; where that token cannot be drafted, as the last one that a
        limit allows, its row of q is 0."""
        for k, x in enumerate([*drafts, None]):
            offered = self.shares.sum() * q[k]
            if x is not None and _happens(p[k, x] / max(offered[x], 1e-300), rng):
                self._pass(p[k, x], q[k, x])
                continue
            token = _token(np.maximum(p[k] - offered, 0), p[k], rng)
            self._pass(p[k, token], q[k, token])
            return k, token
        raise AssertionError("a round ends behind its last draft")

    def _pass(self, p: float, q: float) -> None:
        standing = self.shares.sum()
        kept = min(1.0, standing * q / p)
        older = self.shares[:-1] / standing * kept if kept > 0 else 0 * self.shares[:-1]
        self.shares = np.array([1 - kept, *older])


class CarriedBlock:
    """Keeps, for each age j of rounds, what they have drafted and kept of the text, over its
    probability. A round settles its path from the end, by what each age gives out of a row."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.ages: Floats = np.eye(most + 1)[0][:, None] * np.ones(2)

    def verify(
        self, p: Floats, q: Floats, drafts: Sequence[int], rng: Draws
    ) -> tuple[int, int]:
        """As :meth:`Carried.verify`."""
        nodes = []
        for k in range(len(drafts) + 1):
            given = self._given_out(p[k], q[k])
            nodes.append((self.ages, given))
            if k < len(drafts):
                self._pass(given, p[k, drafts[k]], q[k, drafts[k]], drafts[k])
        for k in reversed(range(len(nodes))):
            self.ages, given = nodes[k]
            drafted, kept = self.ages[k]
            behind = given[k].sum() if k < self.most else 0.0
            alone = kept - behind if kept - behind > 1e-13 else 0.0
            if k == 0 or _happens(alone / max(drafted - behind, 1e-300), rng):
                break
        token = _token(np.maximum(p[k] - given.sum(axis=0), 0), p[k], rng)
        self._pass(given, p[k, token], q[k, token], token)
        return k, token

    def _given_out(self, p: Floats, q: Floats) -> Floats:
        drafted, kept = self.ages[: self.most].T
        wanted = drafted * (self.most - np.arange(self.most)) / self.most
        even = np.where(wanted.sum() * q > p, p / max(wanted.sum(), 1e-300), q)
        given: Floats = np.minimum(wanted, kept / max(even.sum(), 1e-300))[:, None] * even
        left = np.maximum(p - given.sum(axis=0), 0)
        for share, (all_drafted, all_kept) in zip(given, self.ages):
            room = np.clip(all_drafted * q - share, 0, left)
            more = all_kept - share.sum()
            if room.sum() > 0 and more > 0:
                alone = room * min(more / room.sum(), 1.0)
                share += alone
                left = left - alone
        return given

    def _pass(self, given: Floats, p: float, q: float, token: int) -> None:
        kept = given[:, token] / p if p > 0 else 0 * given[:, token]
        drafted = self.ages[:-1, 0] * (q / p if p > 0 else 0.0)
        start = max(1 - kept.sum(), 0.0)
        self.ages = np.vstack([[start, start], np.stack([drafted, kept], axis=1)])
