"""Stratified drafts and rejection by level for a batch of rows, in torch.

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

from typing import Any

import torch

from .rules import IID_LEVELS, STRATA_LEVELS, Straddle


def _inverse(law: Any, coin: Any) -> Any:
    """The token at which the distribution function passes each coin; never one without mass."""
    ends = law.cumsum(1)
    found = torch.searchsorted(ends, coin * ends[:, -1:], right=True)
    return torch.minimum(found, torch.searchsorted(ends, ends[:, -1:].contiguous()))


def _strata(q: Any, n: int, straddle: Straddle) -> tuple[Any, Any, list[Any], list[Any], list[Any]]:
    """Certain tokens, -1 behind them; how many strata; and of each of n strata its law, its first and
    last token, and its links: all of a stratum that a row lacks are 0 and 1."""
    size = q.shape[1]
    heavy, ids = q.topk(min(n - 1, size), dim=1)
    left = q.sum(1, keepdim=True) - heavy.cumsum(1) + heavy
    needs = n - torch.arange(heavy.shape[1], device=q.device)
    sure = ((needs * heavy >= left * (1 - 2**-40)) & (left > 0) & (heavy > 0)).cumprod(1).bool()
    rest = q.scatter(1, ids, heavy.masked_fill(sure, 0))
    ends = rest.cumsum(1)
    total = ends[:, -1:].clone()
    count = torch.where(total > 0, n - sure.sum(1, keepdim=True), 0)
    ends = ends / total.clamp(min=torch.finfo(q.dtype).tiny) * count
    final = torch.searchsorted(ends, ends[:, -1:].contiguous())
    laws: list[Any] = []
    places: list[Any] = []
    links: list[Any] = []
    one, nil = torch.ones_like(total), torch.zeros_like(total)
    for j in range(n):
        there = j < count
        law = (ends - j).clamp(0, 1).diff(dim=1, prepend=nil) * there
        start = torch.searchsorted(ends, one * j, right=True).clamp(max=size - 1)
        stop = torch.minimum(torch.searchsorted(ends, one * (j + 1)), final)
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
    return ids.masked_fill(~sure, -1), count, laws, places, links


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
    certain, count, laws, places, links = _strata(q, n, straddle)
    first_slot = (certain >= 0).sum(1, keepdim=True)
    left = p.clone()
    ends = [[law.gather(1, place) for place in pair] for law, pair in zip(laws, places)]
    middles = [
        torch.where(j < count, law.sum(1, keepdim=True) - a - b, 1)
        for j, (law, (a, b)) in enumerate(zip(laws, ends))
    ]
    token = torch.full_like(first_slot, -1)
    slot = token.clone()
    for turn, level in enumerate(levels):
        for j in reversed(range(n)):
            # Messages along the chain, as in `specgap.rules`.
            other, same = torch.ones_like(middles[0]), torch.zeros_like(middles[0])
            for (begin, end), middle, link in zip(ends[:j], middles, links):
                first, others = _onwards(other, same, link)
                other, same = first * begin + others * middle, others * end
            first, others = _onwards(other, same, links[j])
            after = shared = torch.ones_like(middles[0])
            for i in range(n - 1, j, -1):
                one, many, again, besides = links[i]
                rest = middles[i] * after + ends[i][1] * shared
                after, shared = (
                    one * ends[i][0] * after + many * rest,
                    again * ends[i][0] * after + besides * rest,
                )
            start, stop = places[j]
            mass = laws[j] * (others * after)
            mass.scatter_(1, stop, laws[j].gather(1, stop) * others * shared)
            mass.scatter_(1, start, laws[j].gather(1, start) * first * after)
            give = ((left - level * mass) / (1 - level)).clamp(min=0).minimum(mass)
            place = (first_slot + j).clamp(max=n - 1)
            x = drafts.gather(1, place).clamp(min=0)
            here, kept = mass.gather(1, x), give.gather(1, x)
            coin = coins[:, turn * n + j, None]
            hit = (j < count) & (slot < 0) & (token < 0) & (kept > 0) & (coin * here < kept)
            token, slot = torch.where(hit, x, token), torch.where(hit, place, slot)
            left -= give
            laws[j] *= 1 - torch.where(mass > 0, give / mass, 0)
            ends[j] = [laws[j].gather(1, start), laws[j].gather(1, stop)]
            middle = laws[j].sum(1, keepdim=True) - ends[j][0] - ends[j][1]
            middles[j] = torch.where(j < count, middle, 1)
    left = left.clamp(min=0)
    last = _inverse(torch.where(left.sum(1, keepdim=True) > 0, left, p), coins[:, -1:])
    sure = torch.full_like(drafts, -1)
    sure[:, : certain.shape[1]] = certain
    same_token = (sure == last).to(torch.int8)
    among = torch.where(same_token.any(1, keepdim=True), same_token.argmax(1, keepdim=True), -1)
    slot = torch.where(token < 0, among, slot)
    return torch.where(token < 0, last, token)[:, 0], slot[:, 0]


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
