"""Stratified drafts and rejection by level as kernels: one program a row, in Triton.

The functions of :mod:`specgap.kernels` of the same names with ``straddle="independent"``, recursive rejection
written in the same way, and shared noise that no memory holds (:func:`race`). A stratum touches its own tokens
only. A draft is tested before its pass is made, so that a row whose draft is accepted makes no further pass: most
rows read little. Random numbers are arguments, even in [0, 1). Rows are ``[B, V]``, contiguous, in single
precision, each normalised. What the drafting kernel cut is handed on in :class:`Cuts`; the verifier never cuts a
row anew.

>>> import torch
>>> from specgap import fused
>>> if torch.cuda.is_available():
...     q = torch.tensor([[0.1, 0.2, 0.3, 0.4]], device="cuda")
...     drafts, cuts = fused.draft_strata(q, 2, torch.full((1, 2), 0.5, device="cuda"))
...     token, slot = fused.verify_level(q, q, drafts, cuts, torch.full((1, 9), 0.5, device="cuda"))

Errors: ``ImportError`` without Triton; ``ValueError`` where shapes do not fit. Rows are not read for NaN.
Time, O(V) a program: to draft, a row is read once for each certain token and three or four times besides; to
verify, a stratum once a level as long as its draft is rejected, and a row twice to draw from what is left.
Exactness: single precision; 13 of 8,192 rows of up to 40,000 tokens came out otherwise than in double precision.
What the verifier accepts is of the cuts that it is handed. Run on an H100 and an H200 with Triton 3.6, but for
:func:`race`, which Triton's interpreter alone has run.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from .rules import STRATA_LEVELS


class Cuts(NamedTuple):
    """How a row was cut: of each of n strata its first and last token, [B, n], and the shares of these
    two in its law; how many strata a row has, [B]; and what a token's weight is multiplied by, [B]."""

    first: Any
    last: Any
    first_share: Any
    last_share: Any
    count: Any
    scale: Any


@triton.jit
def _without(weight, x, drafts, count):
    """The weights of tokens x, 0 for those among the first `count` drafts."""
    i = 0
    while i < count:
        weight = tl.where(tl.load(drafts + i) == x, 0.0, weight)
        i += 1
    return weight


@triton.jit
def _heaviest(row, drafts, found, size, BLOCK: tl.constexpr):
    """The heaviest token that is not among the first `found` drafts, and its weight."""
    lanes = tl.arange(0, BLOCK)
    best = tl.full([BLOCK], -1.0, tl.float32)
    place = tl.zeros([BLOCK], tl.int32)
    for start in range(0, size, BLOCK):
        x = start + lanes
        weight = tl.load(row + x, mask=x < size, other=-1.0)
        weight = _without(weight, x, drafts, found)
        better = weight > best
        best = tl.where(better, weight, best)
        place = tl.where(better, x, place)
    weight = tl.max(best, 0)
    # The first of several that are as heavy, as an argmax of the whole row.
    token = tl.min(tl.where(best == weight, place, size), 0)
    return weight, token


@triton.jit
def _draft(
    q, coins, drafts, first, last, first_share, last_share, count, scale, size,
    n: tl.constexpr, BLOCK: tl.constexpr, POINTS: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64)
    row = q + at * size
    drafts += at * n
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, size, BLOCK):
        total += tl.load(row + start + lanes, mask=start + lanes < size, other=0.0)
    left = tl.sum(total, 0)
    # Certain tokens: none where even the heaviest one is below an n-th of the row.
    sure = 0
    more = n > 1
    while more:
        weight, token = _heaviest(row, drafts, sure, size, BLOCK)
        more = (weight > 0.0) & ((n - sure) * weight >= left * (1 - 1e-6))
        if more:
            tl.store(drafts + sure, token)
            sure += 1
            left -= weight
            more = sure < n - 1
        tl.debug_barrier()
    # Points: the cuts between strata, then the draws. A draw's point lies in its own stratum.
    points = tl.arange(0, POINTS)
    strata = n - sure
    is_cut = points < n
    j = tl.where(is_cut, points, points - n)
    real = (points < 2 * n) & (j < strata)
    coin = tl.load(coins + at * n + j, mask=real & ~is_cut, other=0.0)
    rest = tl.zeros([BLOCK], tl.float32)
    final = tl.zeros([BLOCK], tl.int32)
    for start in range(0, size, BLOCK):
        x = start + lanes
        weight = tl.load(row + x, mask=x < size, other=0.0)
        weight = _without(weight, x, drafts, sure)
        rest += weight
        final = tl.where(weight > 0.0, x, final)
    left = tl.sum(rest, 0)
    final = tl.max(final, 0)
    strata = tl.where(left > 0.0, strata, 0)
    real = real & (j < strata)
    point = (j.to(tl.float32) + coin) * left / tl.maximum(strata, 1)
    passed = tl.zeros([POINTS, BLOCK], tl.int32)
    below = tl.zeros([POINTS, BLOCK], tl.float32)
    base = 0.0
    for start in range(0, size, BLOCK):
        x = start + lanes
        weight = tl.load(row + x, mask=x < size, other=0.0)
        weight = _without(weight, x, drafts, sure)
        ends = base + tl.cumsum(weight, 0)
        base += tl.sum(weight, 0)
        behind = (ends[None, :] <= point[:, None]) & (x < size)[None, :]
        passed += behind.to(tl.int32)
        below = tl.where(behind, tl.maximum(below, ends[None, :]), below)
    token = tl.minimum(tl.sum(passed, 1), final)
    under = tl.max(below, 1)
    # What is left of the token in which a cut lies is the first share of the stratum behind the cut.
    weight = tl.load(row + token, mask=real, other=0.0)
    times = strata / tl.where(left > 0.0, left, 1.0)
    before = tl.minimum(tl.maximum((point - under) * times, 0.0), weight * times)
    slot = at * n + j
    is_cut = is_cut & real
    tl.store(first + slot, tl.where(j == 0, 0, token), mask=is_cut)
    tl.store(first_share + slot, weight * times - before, mask=is_cut & (j > 0))
    tl.store(last + slot - 1, token, mask=is_cut & (j > 0))
    tl.store(last_share + slot - 1, before, mask=is_cut & (j > 0))
    tl.store(drafts + sure + j, token, mask=real & ~is_cut)
    tl.store(count + at, strata)
    tl.store(scale + at, times)
    tl.debug_barrier()
    # The row's two ends belong to the outermost strata.
    if strata > 0:
        head = _without(tl.load(row), 0, drafts, sure)
        tail = _without(tl.load(row + size - 1), size - 1, drafts, sure)
        if strata > 1:
            # Of a token that is cut the share before the cut has been stored.
            if tl.load(last + at * n) == 0:
                tl.store(first_share + at * n, tl.load(last_share + at * n))
            else:
                tl.store(first_share + at * n, head * times)
            final_slot = at * n + strata - 1
            tl.store(last + final_slot, size - 1)
            if tl.load(first + final_slot) == size - 1:
                tl.store(last_share + final_slot, tl.load(first_share + final_slot))
            else:
                tl.store(last_share + final_slot, tail * times)
        else:
            tl.store(first_share + at * n, head * times)
            tl.store(last + at * n, size - 1)
            tl.store(last_share + at * n, tail * times)


@triton.jit
def _take(left, law, price, level):
    return tl.minimum(tl.maximum((left / price - level * law) / (1 - level), 0.0), law)


@triton.jit
def _drawn(row, size, coin, BLOCK: tl.constexpr):
    """A draw from a row of any sum, by its distribution function; -1 if the sum is 0."""
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    final = tl.full([BLOCK], -1, tl.int32)
    for start in range(0, size, BLOCK):
        x = start + lanes
        weight = tl.maximum(tl.load(row + x, mask=x < size, other=0.0), 0.0)
        total += weight
        final = tl.where(weight > 0.0, x, final)
    point = tl.sum(total, 0) * coin
    passed = tl.zeros([BLOCK], tl.int32)
    base = 0.0
    for start in range(0, size, BLOCK):
        x = start + lanes
        weight = tl.maximum(tl.load(row + x, mask=x < size, other=0.0), 0.0)
        ends = base + tl.cumsum(weight, 0)
        base += tl.sum(weight, 0)
        passed += ((ends <= point) & (x < size)).to(tl.int32)
    return tl.minimum(tl.sum(passed, 0), tl.max(final, 0))


@triton.jit
def _verify(
    p, q, drafts, coins, first, last, first_share, last_share, count, scale, left, law, tokens, slots, size, levels,
    n: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64)
    p += at * size
    q += at * size
    left += at * size
    law += at * size
    drafts += at * n
    first += at * n
    last += at * n
    first_share += at * n
    last_share += at * n
    coins += at * (LEVELS * n + 1)
    lanes = tl.arange(0, BLOCK)
    strata = tl.load(count + at)
    times = tl.load(scale + at)
    sure = n - strata
    token = -1
    slot = -1
    # The probability that nothing is accepted yet, and what is left of each law, which sum to 1.
    alive = 1.0
    places = tl.arange(0, 16)
    rests = tl.full([16], 1.0, tl.float32)
    i = 0
    while i < strata:
        a = tl.load(first + i)
        b = tl.load(last + i)
        tl.store(left + a, tl.load(p + a))
        tl.store(left + b, tl.load(p + b))
        i += 1
    tl.debug_barrier()
    turn = 0
    while (turn < LEVELS) & (token < 0):
        level = tl.load(levels + turn)
        j = strata - 1
        while (j >= 0) & (token < 0):
            a = tl.load(first + j)
            b = tl.load(last + j)
            rest = tl.sum(tl.where(places == j, rests, 0.0), 0)
            price = alive / tl.maximum(rest, 1e-30)
            draft = tl.load(drafts + sure + j).to(tl.int32)
            # The draft's own tokens first: if it is kept no pass is made.
            edge = (draft == a) | (draft == b)
            if turn == 0:
                here_law = tl.load(q + draft) * times
                if edge:
                    here_left = tl.load(left + draft)
                else:
                    here_left = tl.load(p + draft)
            else:
                here_left = tl.load(left + draft)
                here_law = tl.load(law + draft)
            here_law = tl.where(draft == a, tl.load(first_share + j), here_law)
            here_law = tl.where((draft == b) & (a != b), tl.load(last_share + j), here_law)
            kept = _take(here_left, here_law, price, level)
            if tl.load(coins + turn * n + j) * here_law < kept:
                token = draft
                slot = sure + j
            else:
                # Its two ends, whose tokens it may share with its neighbours.
                end_share = tl.load(first_share + j)
                end_has = tl.load(left + a)
                end_gone = _take(end_has, end_share, price, level)
                tl.store(left + a, end_has - price * end_gone)
                tl.store(first_share + j, end_share - end_gone)
                taken = end_gone
                if a != b:
                    end_share = tl.load(last_share + j)
                    end_has = tl.load(left + b)
                    end_gone = _take(end_has, end_share, price, level)
                    tl.store(left + b, end_has - price * end_gone)
                    tl.store(last_share + j, end_share - end_gone)
                    taken += end_gone
                sums = tl.zeros([BLOCK], tl.float32)
                for start in range(a // BLOCK * BLOCK, b + 1, BLOCK):
                    x = start + lanes
                    inner = (x > a) & (x < b)
                    if turn == 0:
                        has = tl.load(p + x, mask=inner, other=0.0)
                        share = tl.load(q + x, mask=inner, other=0.0) * times
                        share = _without(share, x, drafts, sure)
                    else:
                        has = tl.load(left + x, mask=inner, other=0.0)
                        share = tl.load(law + x, mask=inner, other=0.0)
                    gone = _take(has, share, price, level)
                    tl.store(left + x, has - price * gone, mask=inner)
                    tl.store(law + x, share - gone, mask=inner)
                    sums += gone
                taken += tl.sum(sums, 0)
                alive *= tl.maximum(1 - taken / tl.maximum(rest, 1e-30), 0.0)
                rests = tl.where(places == j, rest - taken, rests)
            tl.debug_barrier()
            j -= 1
        turn += 1
    if token < 0:
        coin = tl.load(coins + LEVELS * n)
        if strata > 0:
            token = _drawn(left, size, coin, BLOCK)
        if token < 0:
            token = _drawn(p, size, coin, BLOCK)
        i = sure - 1
        while i >= 0:
            slot = tl.where(tl.load(drafts + i) == token, i, slot)
            i -= 1
    tl.store(tokens + at, token)
    tl.store(slots + at, slot)


@triton.jit
def _recursive(p, q, drafts, coins, left, tokens, slots, size, n: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64)
    p += at * size
    q += at * size
    left += at * size
    drafts += at * n
    coins += at * (n + 1)
    lanes = tl.arange(0, BLOCK)
    token = -1
    slot = -1
    total = 1.0
    i = 0
    while (i < n) & (token < 0):
        draft = tl.load(drafts + i).to(tl.int32)
        if i == 0:
            has = tl.load(p + draft)
        else:
            has = tl.load(left + draft) / total
        if tl.load(coins + i) * tl.load(q + draft) < has:
            token = draft
            slot = i
        else:
            sums = tl.zeros([BLOCK], tl.float32)
            for start in range(0, size, BLOCK):
                x = start + lanes
                there = x < size
                if i == 0:
                    here = tl.load(p + x, mask=there, other=0.0)
                else:
                    here = tl.load(left + x, mask=there, other=0.0) / total
                here = tl.maximum(here - tl.load(q + x, mask=there, other=0.0), 0.0)
                tl.store(left + x, here, mask=there)
                sums += here
            total = tl.maximum(tl.sum(sums, 0), 1e-30)
        tl.debug_barrier()
        i += 1
    if token < 0:
        coin = tl.load(coins + n)
        token = _drawn(left, size, coin, BLOCK)
        if token < 0:
            token = _drawn(p, size, coin, BLOCK)
    tl.store(tokens + at, token)
    tl.store(slots + at, slot)


@triton.jit
def _independent(q, coins, drafts, size, n: tl.constexpr, BLOCK: tl.constexpr, POINTS: tl.constexpr):
    at = tl.program_id(0).to(tl.int64)
    row = q + at * size
    lanes = tl.arange(0, BLOCK)
    points = tl.arange(0, POINTS)
    total = tl.zeros([BLOCK], tl.float32)
    final = tl.zeros([BLOCK], tl.int32)
    for start in range(0, size, BLOCK):
        x = start + lanes
        weight = tl.load(row + x, mask=x < size, other=0.0)
        total += weight
        final = tl.where(weight > 0.0, x, final)
    point = tl.load(coins + at * n + points, mask=points < n, other=0.0) * tl.sum(total, 0)
    passed = tl.zeros([POINTS, BLOCK], tl.int32)
    base = 0.0
    for start in range(0, size, BLOCK):
        x = start + lanes
        weight = tl.load(row + x, mask=x < size, other=0.0)
        ends = base + tl.cumsum(weight, 0)
        base += tl.sum(weight, 0)
        passed += ((ends[None, :] <= point[:, None]) & (x < size)[None, :]).to(tl.int32)
    token = tl.minimum(tl.sum(passed, 1), tl.max(final, 0))
    tl.store(drafts + at * n + points, token, mask=points < n)


@triton.jit
def _exponential(seed, x):
    return -tl.log(1.0 - tl.rand(seed, x))


@triton.jit
def _noise(seeds, noise, size, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64)
    seed = tl.load(seeds + at)
    for start in range(0, size, BLOCK):
        x = start + tl.arange(0, BLOCK)
        tl.store(noise + at * size + x, _exponential(seed, x), mask=x < size)


@triton.jit
def _race(row, seeds, tokens, size, n: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64)
    row += at * size
    seed = tl.load(seeds + at)
    lanes = tl.arange(0, BLOCK)
    last = -1.0
    before = -1
    i = 0
    while i < n:
        least = tl.full([BLOCK], float("inf"), tl.float32)
        token = tl.full([BLOCK], 2147483647, tl.int32)
        for start in range(0, size, BLOCK):
            x = start + lanes
            weight = tl.load(row + x, mask=x < size, other=0.0)
            clock = _exponential(seed, x) / tl.where(weight > 0.0, weight, 1.0)
            later = (clock > last) | ((clock == last) & (x > before))
            first = (weight > 0.0) & later & (clock < least)
            least = tl.where(first, clock, least)
            token = tl.where(first, x, token)
        last = tl.min(least, 0)
        before = tl.min(tl.where(least == last, token, 2147483647), 0)
        tl.store(tokens + at * n + i, tl.where(last < float("inf"), before, -1))
        i += 1


#: Tokens of a row that a program reads at once, and its warps.
BLOCK, WARPS = 2048, 8


def _rows(n: int, **rows: Any) -> tuple[int, int]:
    if not 1 <= n <= 16:
        raise ValueError(f"n = {n} drafts, not 1 to 16")
    shape = next(iter(rows.values())).shape
    for name, value in rows.items():
        if value.ndim != 2 or value.shape != shape or value.dtype != torch.float32 or not value.is_contiguous():
            raise ValueError(f"{name} is no contiguous [B, V] of float32 of the shape {tuple(shape)}")
    return int(shape[0]), int(shape[1])


def _rows_and_coins(n: int, coins: int, given: Any, **rows: Any) -> tuple[int, int]:
    batch, size = _rows(n, **rows)
    if tuple(given.shape) != (batch, coins) or given.dtype != torch.float32 or not given.is_contiguous():
        raise ValueError(f"coins are no contiguous [{batch}, {coins}] of float32")
    return batch, size


@cache
def _levels(levels: tuple[float, ...], device: Any) -> Any:
    return torch.tensor(levels, dtype=torch.float32, device=device)


def _block(size: int) -> int:
    return int(min(BLOCK, max(32 * WARPS, triton.next_power_of_2(size))))


def draft_strata(q: Any, n: int, coins: Any) -> tuple[Any, Cuts]:
    """Drafts [B, n], as :func:`specgap.kernels.draft_strata` with independent strata, -1 where a row has
    fewer tokens; and how the rows were cut. ``coins`` [B, n]."""
    batch, size = _rows_and_coins(n, n, coins, q=q)
    drafts = torch.full((batch, n), -1, dtype=torch.int64, device=q.device)
    whole = [torch.zeros((batch, n), dtype=torch.int32, device=q.device) for _ in range(2)]
    shares = [torch.zeros((batch, n), dtype=torch.float32, device=q.device) for _ in range(2)]
    count = torch.empty(batch, dtype=torch.int32, device=q.device)
    scale = torch.empty(batch, dtype=torch.float32, device=q.device)
    cuts = Cuts(whole[0], whole[1], shares[0], shares[1], count, scale)
    block = min(_block(size), 1024)
    if n == 1:
        _independent[(batch,)](q, coins, drafts, size, n=1, BLOCK=block, POINTS=8, num_warps=WARPS)
        total = q.sum(1)
        cuts.last.fill_(size - 1)
        cuts.count.copy_(total > 0)
        cuts.scale.copy_(1 / total)
        cuts.first_share.copy_(q[:, :1] / total[:, None])
        cuts.last_share.copy_(q[:, -1:] / total[:, None])
        return drafts, cuts
    points = max(8, triton.next_power_of_2(2 * n))
    _draft[(batch,)](q, coins, drafts, *cuts, size, n=n, BLOCK=block, POINTS=points, num_warps=WARPS)
    return drafts, cuts


def verify_level(
    p: Any, q: Any, drafts: Any, cuts: Cuts, coins: Any, levels: tuple[float, ...] = STRATA_LEVELS
) -> tuple[Any, Any]:
    """Tokens [B], and which draft each is, or -1. ``coins`` [B, passes n + 1], as
    :func:`specgap.kernels.verify_level` takes them."""
    n = drafts.shape[1]
    batch, size = _rows_and_coins(n, len(levels) * n + 1, coins, p=p, q=q)
    left, law = torch.empty_like(p), torch.empty_like(q)
    tokens, slots = (torch.empty(batch, dtype=torch.int64, device=p.device) for _ in range(2))
    # The shares at the cuts are used up.
    cuts = cuts._replace(first_share=cuts.first_share.clone(), last_share=cuts.last_share.clone())
    _verify[(batch,)](
        p, q, drafts, coins, *cuts, left, law, tokens, slots, size,
        _levels(tuple(levels), p.device),
        n=n, LEVELS=len(levels), BLOCK=_block(size), num_warps=WARPS,
    )  # fmt: skip
    return tokens, slots


def draft_independent(q: Any, n: int, coins: Any) -> Any:
    """n draws from each row of q, [B, n]. ``coins`` [B, n]."""
    batch, size = _rows_and_coins(n, n, coins, q=q)
    drafts = torch.empty((batch, n), dtype=torch.int64, device=q.device)
    block = min(_block(size), 1024)
    points = max(8, triton.next_power_of_2(n))
    _independent[(batch,)](q, coins, drafts, size, n=n, BLOCK=block, POINTS=points, num_warps=WARPS)
    return drafts


def verify_rrs(p: Any, q: Any, drafts: Any, coins: Any) -> tuple[Any, Any]:
    """Recursive rejection of independent drafts. Tokens [B], and which draft each is, or -1.
    ``coins`` [B, n + 1]: one for each draft, and one for the draw from what is left."""
    n = drafts.shape[1]
    batch, size = _rows_and_coins(n, n + 1, coins, p=p, q=q)
    left = torch.empty_like(p)
    tokens, slots = (torch.empty(batch, dtype=torch.int64, device=p.device) for _ in range(2))
    _recursive[(batch,)](
        p, q, drafts, coins, left, tokens, slots, size, n=n, BLOCK=_block(size), num_warps=WARPS
    )
    return tokens, slots


def noise(seeds: Any, size: int) -> Any:
    """The noise ``[B, size]`` of :func:`race`, -log(1 - u) of Philox's even numbers by seed and token."""
    found = torch.empty((seeds.shape[0], size), dtype=torch.float32, device=seeds.device)
    _noise[(seeds.shape[0],)](seeds, found, size, BLOCK=_block(size), num_warps=WARPS)
    return found


def race(rows: Any, seeds: Any, n: int = 1) -> Any:
    """The n tokens ``[B, n]`` that come first where each has its noise over its probability for a clock, -1
    behind the last: of rows q the drafts, of rows p with the same ``seeds`` ``[B]``, whole numbers, one a position
    of a request, the next token, as :func:`specgap.kernels.shared_gumbel` of :func:`noise`. A draft is accepted if
    it is that token. The noise is in no memory; a row is read n times."""
    batch, size = _rows(n, rows=rows)
    if tuple(seeds.shape) != (batch,) or seeds.dtype.is_floating_point or not seeds.is_contiguous():
        raise ValueError(f"seeds are no contiguous [{batch}] of whole numbers")
    tokens = torch.empty((batch, n), dtype=torch.int64, device=rows.device)
    _race[(batch,)](rows, seeds, tokens, size, n=n, BLOCK=_block(size), num_warps=WARPS)
    return tokens
