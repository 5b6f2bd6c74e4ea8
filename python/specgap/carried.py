"""Rules of one drafted path that carry a few numbers from token to token: lossless as text, and
with fewer target calls than block verification (``docs/reference/carried.md``).

An object belongs to one text. ``verify`` settles a round, and keeps what goes on to the next one.
Rows are NumPy arrays or torch tensors, which stay on their device: a few numbers per drafted token
come to the host.

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
from typing import Any, Protocol

import numpy as np

from ._drafting import Floats

Rows = Any
"""A NumPy array or a torch tensor."""


class Draws(Protocol):
    """What draws tokens: a NumPy generator, one that goes through all outcomes, or :class:`TorchDraws`."""

    def choice(self, a: int, *, p: Rows) -> int: ...


class TorchDraws:
    """Draws from laws that are torch tensors, on their device. ``generator`` is of that device.

    >>> import torch
    >>> rule = Carried(most=1)
    >>> p, q = torch.tensor([[0.5, 0.5]] * 2), torch.tensor([[0.0, 1.0]] * 2)
    >>> rule.verify(p, q, [1], TorchDraws(torch.Generator().manual_seed(3)))[0] in (0, 1)
    True
    """

    def __init__(self, generator: Any = None) -> None:
        self.generator = generator

    def choice(self, a: int, *, p: Rows) -> int:
        import torch

        law = torch.as_tensor(p)
        here = self.generator.device if self.generator is not None else law.device
        if law.device != here:  # a coin
            law = law.to(here)
        return int(torch.multinomial(law, 1, generator=self.generator))


def _where(rows: Rows) -> Any:
    if isinstance(rows, np.ndarray):
        return np.where
    import torch

    return torch.where


def _token(law: Rows, otherwise: Rows, rng: Draws) -> int:
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
        self, p: Rows, q: Rows, drafts: Sequence[int], rng: Draws
    ) -> tuple[int, int]:
        """How many drafts are kept, and the token behind them. ``p`` and ``q`` [K + 1, V], the last
        rows behind the last draft; where that token cannot be drafted, as the last one that a
        limit allows, its row of q is 0."""
        for k, x in enumerate([*drafts, None]):
            standing = float(self.shares.sum())
            if x is not None:
                own, offered = float(p[k, x]), standing * float(q[k, x])
                if _happens(own / max(offered, 1e-300), rng):
                    self._pass(own, float(q[k, x]))
                    continue
            token = _token((p[k] - standing * q[k]).clip(min=0), p[k], rng)
            self._pass(float(p[k, token]), float(q[k, token]))
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
        self, p: Rows, q: Rows, drafts: Sequence[int], rng: Draws
    ) -> tuple[int, int]:
        """As :meth:`Carried.verify`."""
        nodes = []
        for k in range(len(drafts) + 1):
            given = self._given_out(p[k], q[k])
            nodes.append((self.ages, given))
            if k < len(drafts):
                self._pass(given, p[k], q[k], drafts[k])
        for k in reversed(range(len(nodes))):
            self.ages, given = nodes[k]
            drafted, kept = self.ages[k]
            behind = float(given[k].sum()) if k < self.most else 0.0
            alone = kept - behind if kept - behind > 1e-13 else 0.0
            if k == 0 or _happens(alone / max(drafted - behind, 1e-300), rng):
                break
        token = _token((p[k] - sum(given)).clip(min=0), p[k], rng)
        self._pass(given, p[k], q[k], token)
        return k, token

    def _given_out(self, p: Rows, q: Rows) -> list[Rows]:
        """What each age gives out of a row."""
        drafted, kept = self.ages[: self.most].T
        wanted = drafted * (self.most - np.arange(self.most)) / self.most
        even = _where(p)(float(wanted.sum()) * q > p, p / max(float(wanted.sum()), 1e-300), q)
        many = np.minimum(wanted, kept / max(float(even.sum()), 1e-300))
        left = (p - float(many.sum()) * even).clip(min=0)
        given = []
        for share, (all_drafted, all_kept) in zip(many, self.ages):
            own = float(share) * even
            room = (float(all_drafted) * q - own).clip(min=0)
            room = _where(p)(room > left, left, room)
            more = float(all_kept) - float(own.sum())
            if float(room.sum()) > 0 and more > 0:
                alone = room * min(more / float(room.sum()), 1.0)
                own = own + alone
                left = left - alone
            given.append(own)
        return given

    def _pass(self, given: list[Rows], p: Rows, q: Rows, token: int) -> None:
        own, ratio = float(p[token]), 0.0
        kept = np.zeros(self.most)
        if own > 0:
            kept = np.array([float(share[token]) for share in given]) / own
            ratio = float(q[token]) / own
        drafted = self.ages[:-1, 0] * ratio
        start = max(1 - kept.sum(), 0.0)
        self.ages = np.vstack([[start, start], np.stack([drafted, kept], axis=1)])
