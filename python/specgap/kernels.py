"""Stratified drafts and rejection by level, and drafts of one noise, for a batch of rows, in torch.

The functions of :mod:`specgap.rules` of the same names, for rows ``[B, V]`` on any device: nothing is
sorted but the n - 1 heaviest tokens of a row, and no number is read back. Random numbers are arguments,
even in [0, 1), so that a run can be repeated and compared. They are references: a fused kernel lets a
stratum touch its own tokens only, and here each touches the whole row.

>>> import torch
>>> from specgap import kernels
>>> q = torch.tensor([[0.1, 0.2, 0.3, 0.4]], dtype=torch.float64)
>>> drafts = kernels.draft_strata(q, 2, torch.tensor([[0.5, 0.5]], dtype=torch.float64))
>>> drafts.tolist()
[[1, 3]]
>>> token, slot = kernels.verify_level(q, q, drafts, torch.full((1, 9), 0.5, dtype=torch.float64))
>>> token.tolist(), slot.tolist()
([1], [0])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ._drafting import Straddle
from .rules import IID_LEVELS, STRATA_LEVELS, TRAVERSAL_4


def _inverse(law: Any, coin: Any) -> Any:
    """The token at which the distribution function passes each coin; never one without mass."""
    ends = law.cumsum(1)
    found = torch.searchsorted(ends, coin * ends[:, -1:], right=True)
    return torch.minimum(found, torch.searchsorted(ends, ends[:, -1:].contiguous()))


def _cuts(q: Any, n: int) -> tuple[Any, Any, Any, Any, Any]:
    """Certain tokens, -1 behind them; how many strata; up to where in them each token's mass goes; and
    the first and the last token of each of n strata, of one that a row lacks any."""
    size = q.shape[1]
    heavy, ids = q.topk(min(n - 1, size), dim=1)
    left = q.sum(1, keepdim=True) - heavy.cumsum(1) + heavy
    needs = n - torch.arange(heavy.shape[1], device=q.device)
    sure = ((needs * heavy >= left * (1 - 2**-40)) & (left > 0) & (heavy > 0)).cumprod(1).bool()
    rest = q.scatter(1, ids, heavy.masked_fill(sure, 0))
    ends = rest.cumsum_(1)
    total = ends[:, -1:].clone()
    count = torch.where(total > 0, n - sure.sum(1, keepdim=True), 0)
    ends.div_(total.clamp(min=torch.finfo(q.dtype).tiny)).mul_(count)
    final = torch.searchsorted(ends, ends[:, -1:].contiguous())
    cuts = torch.arange(n + 1, dtype=q.dtype, device=q.device).repeat(len(q), 1)
    starts = torch.searchsorted(ends, cuts[:, :-1].contiguous(), right=True).minimum(final)
    stops = torch.searchsorted(ends, cuts[:, 1:].contiguous()).minimum(final)
    return ids.masked_fill(~sure, -1), count, ends, starts, stops


def _strata(q: Any, n: int, straddle: Straddle) -> tuple[Any, Any, list[Any], list[Any], list[Any]]:
    """Certain tokens, -1 behind them; how many strata; and of each of n strata its law, its first and
    last token, and its links: all of a stratum that a row lacks are 0 and 1."""
    certain, count, ends, starts, stops = _cuts(q, n)
    laws: list[Any] = []
    places: list[Any] = []
    links: list[Any] = []
    one, nil = torch.ones_like(q[:, :1]), torch.zeros_like(q[:, :1])
    for j in range(n):
        there = j < count
        law = (ends - j).clamp(0, 1).diff(dim=1, prepend=nil) * there
        start, stop = starts[:, j : j + 1], stops[:, j : j + 1]
        link = (one, one, one, one)
        if straddle == "once" and j > 0:
            shared = there & (start == places[-1][1])
            here = law.gather(1, start)
            before = laws[-1].gather(1, places[-1][1])
            chance = here / (1 - before)
            values = (1 / (1 - before), (1 - chance) / (1 - here), nil, 1 / (1 - here))
            link = tuple(torch.where(shared, value, one) for value in values)
        laws.append(law)
        places.append((start, stop))
        links.append(link)
    return certain, count, laws, places, links


def draft_strata(q: Any, n: int, coins: Any, straddle: Straddle = "once") -> Any:
    """Drafts ``[B, n]``: certain tokens, then one of each stratum, then -1 where a row has fewer
    tokens. ``coins`` [B, n]."""
    certain, count, laws, places, links = _strata(q, n, straddle)
    first_slot = (certain >= 0).sum(1, keepdim=True)
    drafts = torch.full((len(q), n + 1), -1, dtype=torch.int64, device=q.device)
    drafts[:, : certain.shape[1]] = certain
    before = torch.full_like(first_slot, -1)
    for j in range(n):
        first, others, again, besides = links[j]
        start, same = places[j][0], before == places[j][0]
        law = laws[j] * torch.where(same, besides, others)
        law.scatter_(1, start, laws[j].gather(1, start) * torch.where(same, again, first))
        before = _inverse(law, coins[:, j : j + 1])
        # What a row has no stratum for goes to a column of its own.
        slot = torch.where(j < count, first_slot + j, n)
        drafts.scatter_(1, slot, before)
    return drafts[:, :n]


def _onwards(other: Any, same: Any, link: Any) -> tuple[Any, Any]:
    first, others, again, besides = link
    return other * first + same * again, other * others + same * besides


class _Alive:
    """What is alive of the draft of each stratum, given that nothing was accepted."""

    def __init__(self, laws: list[Any], count: Any, places: list[Any], links: list[Any]) -> None:
        self.laws, self.count, self.places, self.links = list(laws), count, places, links
        self.ends: list[Any] = [None] * len(laws)
        self.middles: list[Any] = [None] * len(laws)
        for j in range(len(laws)):
            self._sum(j)

    def _sum(self, j: int) -> None:
        law, (start, stop) = self.laws[j], self.places[j]
        begin, end = self.ends[j] = law.gather(1, start), law.gather(1, stop)
        middle = law.sum(1, keepdim=True) - begin - end
        self.middles[j] = torch.where(j < self.count, middle, 1)

    def mass(self, j: int) -> Any:
        """The probability that stratum j drafted each token, and nothing is accepted: messages along
        the chain, as in `specgap.rules`."""
        other, same = torch.ones_like(self.middles[0]), torch.zeros_like(self.middles[0])
        for (begin, end), middle, link in zip(self.ends[:j], self.middles, self.links):
            first, others = _onwards(other, same, link)
            other, same = first * begin + others * middle, others * end
        first, others = _onwards(other, same, self.links[j])
        after = shared = torch.ones_like(self.middles[0])
        for i in range(len(self.laws) - 1, j, -1):
            one, many, again, besides = self.links[i]
            rest = self.middles[i] * after + self.ends[i][1] * shared
            after, shared = (
                one * self.ends[i][0] * after + many * rest,
                again * self.ends[i][0] * after + besides * rest,
            )
        law, (start, stop) = self.laws[j], self.places[j]
        mass = law * (others * after)
        mass.scatter_(1, stop, law.gather(1, stop) * others * shared)
        return mass.scatter_(1, start, law.gather(1, start) * first * after)

    def take(self, j: int, left: Any, level: float, x: Any, here: Any = True) -> tuple[Any, Any]:
        """What a pass takes of ``left`` in stratum j where it is made, at token x, and what x had."""
        mass = self.mass(j)
        give = ((left - level * mass) / (1 - level)).clamp(min=0).minimum(mass)
        give = torch.where((j < self.count) & here, give, 0)
        left -= give
        self.laws[j] = self.laws[j] * (1 - torch.where(mass > 0, give / mass, 0))
        self._sum(j)
        return give.gather(1, x), mass.gather(1, x)

    def survival(self) -> Any:
        return torch.where(self.count > 0, self.mass(0).sum(1, keepdim=True), 1)


def verify_level(
    p: Any,
    q: Any,
    drafts: Any,
    coins: Any,
    straddle: Straddle = "once",
    levels: tuple[float, ...] = STRATA_LEVELS,
) -> tuple[Any, Any]:
    """Tokens ``[B]``, and which draft each is, or -1. ``coins`` [B, passes n + 1]: one for each
    draft in each pass, and one for the draw from what is left."""
    n = drafts.shape[1]
    certain, count, *strata = _strata(q, n, straddle)
    own = _Alive(strata[0], count, *strata[1:])
    first_slot = (certain >= 0).sum(1, keepdim=True)
    left = p.clone()
    token = torch.full_like(first_slot, -1)
    slot = token.clone()
    for turn, level in enumerate(levels):
        for j in reversed(range(n)):
            place = (first_slot + j).clamp(max=n - 1)
            x = drafts.gather(1, place).clamp(min=0)
            kept, here = own.take(j, left, level, x)
            coin = coins[:, turn * n + j, None]
            hit = (slot < 0) & (token < 0) & (kept > 0) & (coin * here < kept)
            token, slot = torch.where(hit, x, token), torch.where(hit, place, slot)
    left = left.clamp(min=0)
    last = _inverse(torch.where(left.sum(1, keepdim=True) > 0, left, p), coins[:, -1:])
    sure = torch.full_like(drafts, -1)
    sure[:, : certain.shape[1]] = certain
    same_token = (sure == last).to(torch.int8)
    among = torch.where(same_token.any(1, keepdim=True), same_token.argmax(1, keepdim=True), -1)
    slot = torch.where(token < 0, among, slot)
    return torch.where(token < 0, last, token)[:, 0], slot[:, 0]


class _Nodes:
    """The rows of a batch of trees of one shape: their drafts, and what is alive of these."""

    def __init__(self, q: Any, slots: list[Any], straddle: Straddle, iid: bool) -> None:
        batch, rows, size = q.shape
        most = max(own.shape[1] for own in slots)
        self.batch = torch.arange(batch, device=q.device)
        self.laws, self.links = q.new_zeros(batch, rows, most, size), q.new_ones(batch, rows, most, 4)
        whole = dict(dtype=torch.int64, device=q.device)
        self.places = torch.zeros(batch, rows, most, 2, **whole)
        self.slots = torch.full((batch, rows, most), -1, **whole)
        self.count, self.sure = torch.zeros(batch, rows, **whole), torch.zeros(batch, rows, **whole)
        for x, own in enumerate(slots):
            n = own.shape[1]
            self.slots[:, x, :n] = own
            if iid or n == 0:
                self.count[:, x] = n
                self.laws[:, x, :n] = q[:, x, None]
                self.places[:, x, :n, 1] = size - 1
                continue
            certain, count, laws, places, links = _strata(q[:, x], n, straddle)
            self.sure[:, x], self.count[:, x] = (certain >= 0).sum(1), count[:, 0]
            for j in range(n):
                self.laws[:, x, j] = laws[j]
                self.places[:, x, j] = torch.cat(places[j], 1)
                self.links[:, x, j] = torch.cat(links[j], 1)

    def alive(self, x: Any, n: int) -> _Alive:
        laws, places, links = (of[self.batch, x] for of in (self.laws, self.places, self.links))
        return _Alive(
            [laws[:, j] for j in range(n)],
            self.count[self.batch, x][:, None],
            [places[:, j].split(1, 1) for j in range(n)],
            [links[:, j].split(1, 1) for j in range(n)],
        )


def verify_tree(
    p: Any,
    q: Any,
    tokens: Any,
    parents: Sequence[int],
    coins: Any,
    levels: tuple[tuple[float, ...], tuple[float, ...]] = TRAVERSAL_4,
    straddle: Straddle = "once",
    slots: Sequence[Any] | None = None,
    iid: bool = False,
) -> tuple[Any, Any]:
    """Nodes that are kept, from the root on, ``[B, depth]`` with -1 behind the last, and next tokens
    ``[B]``: :func:`specgap.rules.verify_tree` for trees of one shape. ``p`` and ``q`` are
    [B, 1 + m, V], ``tokens`` [B, m] with -1 for drafts that a row lacks, ``coins`` [B, m + 1]: one a
    node, and one for the last draw. ``slots`` has of each row the nodes of its drafts, [B, n]."""
    rows, device = len(parents) + 1, tokens.device
    if slots is None:
        of_row = [[i for i, row in enumerate(parents) if row == x] for x in range(rows)]
        slots = [torch.tensor(own, dtype=torch.int64, device=device).expand(len(p), -1) for own in of_row]
    depths = [0]
    for row in parents:
        depths.append(depths[row] + 1)
    widest = [0] * (max(depths) + 1)
    for depth, own in zip(depths, slots):
        widest[depth] = max(widest[depth], own.shape[1])
    nodes = _Nodes(q, list(slots), straddle, iid)
    batch = nodes.batch
    refused = torch.ones_like(coins[:, :-1])
    last_row, token = torch.full_like(batch, -1), torch.full_like(batch, -1)

    def child(x: Any, place: Any) -> tuple[Any, Any]:
        node = nodes.slots[batch, x].gather(1, place).clamp(min=0)
        return node[:, 0] + 1, tokens.gather(1, node).clamp(min=0)

    def offer(x: Any, weight: Any, depth: int) -> None:
        n = widest[depth]
        own, sure = nodes.alive(x, n), nodes.sure[batch, x][:, None]
        alive = own.survival() if n else torch.ones_like(weight)
        left = p[batch, x] * (weight * alive)
        for level in levels[depth > 0] if n else ():
            for j in range(n) if iid else reversed(range(n)):
                below, y = child(x, (sure + j).clamp(max=nodes.slots.shape[2] - 1))
                here = (weight > 0) & (last_row[:, None] < 0)
                kept, had = own.take(j, left, level, y, here)
                nodes.laws[batch, x, j] = own.laws[j]
                offer(below, torch.where(kept > 0, kept / had, 0), depth + 1)
        alive = own.survival() if n else alive
        for s in range(0 if iid else n - 1):
            below, y = child(x, torch.full_like(sure, s))
            wanted = torch.where((s < sure) & (weight > 0), left.gather(1, y), 0)
            chance = torch.where(wanted > 0, (wanted / alive).clamp(max=1), 0)
            offer(below, chance, depth + 1)
            left.scatter_add_(1, y, -chance * alive)
            alive = alive * (1 - chance)
        left = left.clamp(min=0)
        total = left.sum(1, keepdim=True)
        kept = (weight[:, 0] > 0) & (last_row < 0)
        if depth > 0:
            chance = torch.where(total > 0, (total / alive).clamp(max=1), 0)[:, 0]
            node = x - 1
            refused[batch, node] *= torch.where(kept, 1 - chance, 1)
            kept = kept & (coins[batch, node] >= refused[batch, node])
        drawn = _inverse(torch.where(total > 0, left, p[batch, x]), coins[:, -1:])[:, 0]
        token.copy_(torch.where(kept, drawn, token))
        last_row.copy_(torch.where(kept, x, last_row))

    offer(torch.zeros_like(batch), torch.ones_like(coins[:, -1:]), 0)
    up = torch.tensor([0, *parents], dtype=torch.int64, device=device)
    path, row = [], last_row
    for _ in range(max(depths)):
        path.append(row - 1)
        row = up[row]
    kept_nodes = torch.stack(path[::-1], 1) if path else tokens[:, :0]
    # From the root on, with -1 behind.
    order = torch.argsort((kept_nodes < 0).to(torch.int8), dim=1, stable=True)
    return kept_nodes.gather(1, order), token


def verify_level_iid(p: Any, q: Any, drafts: Any, coins: Any) -> tuple[Any, Any]:
    """The same for independent drafts, in symmetric passes. ``coins`` [B, passes (n + 1) + 1]: in
    each pass one for each draft, and one to choose among those that ring."""
    n = drafts.shape[1]
    left, law, s = p.clone(), q.clone(), q.sum(1, keepdim=True)
    token = torch.full_like(drafts[:, :1], -1)
    slot = token.clone()
    for turn, level in enumerate(IID_LEVELS):
        price = n * s ** (n - 1)
        bound = level * price
        over = left - bound * law
        for _ in range(3):
            room = (price - bound).clamp(min=torch.finfo(p.dtype).tiny)
            give = (over / room).clamp(min=0).minimum(law)
            rest = (s - give.sum(1, keepdim=True)).clamp(min=0)
            paid = sum(s**i * rest ** (n - 1 - i) for i in range(n))
            price = torch.maximum(torch.as_tensor(paid), bound)
        here, kept = law.gather(1, drafts), give.gather(1, drafts)
        at = turn * (n + 1)
        rings = (kept > 0) & (coins[:, at : at + n] * here < kept)
        chosen = (coins[:, at + n, None] * rings.sum(1, keepdim=True)).long()
        place = ((rings.cumsum(1) == chosen + 1) & rings).to(torch.int8).argmax(1, keepdim=True)
        hit = rings.any(1, keepdim=True) & (slot < 0)
        slot = torch.where(hit, place, slot)
        token = torch.where(hit, drafts.gather(1, place), token)
        left = (left - paid * give).clamp(min=0)
        law = law - give
        s = rest
    last = _inverse(torch.where(left.sum(1, keepdim=True) > 0, left, p), coins[:, -1:])
    return torch.where(slot < 0, last, token)[:, 0], slot[:, 0]


def shared_gumbel(p: Any, q: Any, noise: Any, n: int) -> tuple[Any, Any, Any]:
    """Drafts ``[B, n]`` with -1 behind the last, next tokens ``[B]`` and which draft each is, ``[B]`` with -1 for
    none: :func:`specgap.rules.shared_gumbel` for rows ``[B, V]`` and ``noise`` ``[B, V]``, -log(1 - u) of even
    numbers. Drafter and verifier may each do their half: nothing of q reaches the one that has p."""
    never = torch.finfo(noise.dtype).max
    of_draft, of_target = (torch.where(row > 0, noise / row, never) for row in (q, p))
    clocks, drafts = of_draft.topk(min(n, q.shape[1]), dim=1, largest=False)
    drafts = torch.where(clocks < never, drafts, -1)
    drafts = torch.nn.functional.pad(drafts, (0, n - drafts.shape[1]), value=-1)
    token = of_target.argmin(dim=1)
    hits = drafts == token[:, None]
    return drafts, token, torch.where(hits.any(1), hits.to(torch.int8).argmax(1), -1)
