"""What rejection by level accepts as a differentiable function of rows, in torch: passes over sums.

A pass treats tokens by t = p/(p + q) alone: what it leaves of a token's p and q is (p + q) times
functions of t, linear between knots. So tokens between two knots may be one token that has their sums,
and the gradient at it is theirs. Knots follow from the scalars of passes, and these from sums, at first
of even bins of t; once what is accepted stays, the knots are those of the rows. Behind it rows keep the
place of each token among some ten sums a pass, and the gradients at these.

Of strata each has knots of its own. Tokens over a cut, the first and the last of a stratum, stay alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from ._drafting import Straddle
from .kernels import _cuts, _onwards

#: Bins of t, of each stratum.
_BINS = 1024
#: Entries of rows that are looked at together on the processor, and elsewhere, where it is the number
#: of small operations that takes the time.
_ENTRIES, _ENTRIES_OF_DEVICE = 1 << 21, 1 << 24
#: How often rows are summed at most, and the change in units of rounding that is none.
_TURNS, _SETTLED = 6, 8
#: Of each pass: the price [N, 1] below which a token gives nothing, what is above it where it gives all
#: that is left of its draft, for each try of that price, and what is paid.
Scalars: TypeAlias = "list[tuple[Any, list[Any], Any]]"


def wide(rows: Any) -> Any:
    """Rows in double precision, where the device has it."""
    return rows if rows.device.type == "mps" else rows.double()


def symmetric(p: Any, q: Any, n: int, levels: Sequence[float]) -> tuple[Any, Scalars]:
    """What symmetric passes accept, [N], as :func:`specgap.kernels.verify_level_iid` makes them."""
    left, law, s = p, q, q.sum(1, keepdim=True)
    # Below this a price is of what is accepted but for nothing, and its inverse overflows.
    least = 1e-12 if p.dtype == torch.float32 else 1e-30
    made: Scalars = []
    for level in levels:
        price = n * s ** (n - 1)
        bound = level * price
        over = left - bound * law
        rooms = []
        for _ in range(3):
            rooms.append((price - bound).clamp(min=least))
            give = (over / rooms[-1]).clamp(min=0).minimum(law)
            rest = (s - give.sum(1, keepdim=True)).clamp(min=0)
            paid = sum(s**i * rest ** (n - 1 - i) for i in range(n))
            price = torch.maximum(paid, bound)
        left = (left - paid * give).clamp(min=0)
        law, s = law - give, rest
        made.append((bound.detach(), [room.detach() for room in rooms], paid.detach()))
    return 1 - s[:, 0] ** n, made


def _links(laws: list[Any], shared: Any) -> list[Any]:
    """What the first token of a stratum and the others are multiplied by, where the draft before is
    not that token and where it is; no division by 0, so that gradients have none either."""
    one = torch.ones_like(laws[0][:, :1])
    nil = torch.zeros_like(one)
    links = [(one, one, one, one)]
    for before, law, over in zip(laws, laws[1:], shared.split(1, 1)):
        here, behind = (torch.where(over, part, 0) for part in (law[:, :1], before[:, -1:]))
        besides = 1 / torch.where(here < 1, 1 - here, 1)
        again = 1 / torch.where(behind < 1, 1 - behind, 1)
        others = (1 - here * again) * besides
        values = ((again, one), (others, one), (nil, one), (besides, one))
        links.append(tuple(torch.where(over, *pair) for pair in values))
    return links


class Cut:
    """Rows cut into strata, and where what is summed of them lies: certain tokens first, then of each
    stratum its first token, if it is not the last of the one before, its sums, and its last token."""

    def __init__(self, q: Any, n: int, straddle: Straddle) -> None:
        self.certain, self.count, self.ends, self.starts, self.stops = _cuts(q, n)
        self.n, self.once = n, straddle == "once"

    def place(self, bins: Any) -> Any:
        """Places of tokens whose sums are those of the bins of each stratum."""
        place = self.ends.long().clamp_(max=(self.count - 1).clamp(min=0))
        place.mul_(_BINS + 2).add_(2).add_(bins)
        for j in range(self.n):
            place.scatter_(1, self.starts[:, j : j + 1], 1 + j * (_BINS + 2))
        for j in reversed(range(self.n)):
            place.scatter_(1, self.stops[:, j : j + 1], (j + 1) * (_BINS + 2))
        # Behind them comes the first once more; in a row without any, a token that stays.
        some = self.certain[:, :1] >= 0
        ids = torch.where(self.certain < 0, self.certain[:, :1], self.certain).clamp(min=0)
        return place.scatter_(1, ids, torch.where(some, 0, place.gather(1, ids)))

    def _laws(self, own: list[Any]) -> tuple[Any, list[Any]]:
        """What masses are multiplied by, and laws: what the last token of the stratum before has of
        this one, and its own tokens."""
        held = torch.stack([part.sum(1) for part in own], 1).cumsum(1)
        scale = self.count / held[:, -1:].clamp(min=torch.finfo(held.dtype).tiny)
        cuts = torch.arange(1, self.n + 1, device=held.device)
        spill = torch.where(cuts < self.count, (held * scale - cuts).clamp(min=0), 0)
        before = pad(spill[:, :-1], (1, 0))
        laws = []
        for j, part in enumerate(own):
            law = torch.cat([before[:, j : j + 1], part * scale], 1)
            laws.append(torch.cat([law[:, :-1], law[:, -1:] - spill[:, j : j + 1]], 1))
        return scale, laws

    def passes(self, p: Any, q: Any, levels: Sequence[float]) -> tuple[Any, Scalars]:
        """What level passes accept, [N], as :func:`specgap.kernels.verify_level` makes them."""
        left, own = (list(rows[:, 1:].unflatten(1, (self.n, -1)).unbind(1)) for rows in (p, q))
        one, nil = torch.ones_like(p[:, :1]), torch.zeros_like(p[:, :1])
        scale, laws = self._laws(own)
        inner = torch.arange(1, self.n, device=p.device) < self.count
        links = _links(laws, inner & (self.starts[:, 1:] == self.stops[:, :-1]) & self.once)

        def ends_of(j: int) -> tuple[Any, Any, Any]:
            begin, end = laws[j][:, :2].sum(1, keepdim=True), laws[j][:, -1:]
            middle = laws[j][:, 2:-1].sum(1, keepdim=True)
            return begin, end, torch.where(j < self.count, middle, 1)

        parts = [ends_of(j) for j in range(self.n)]
        made: Scalars = []
        for level in levels:
            masses = []
            for j in reversed(range(self.n)):
                other, same = one, nil
                for (begin, end, middle), link in zip(parts[:j], links):
                    first, others = _onwards(other, same, link)
                    other, same = first * begin + others * middle, others * end
                first, others = _onwards(other, same, links[j])
                after = shared = one
                for i in range(self.n - 1, j, -1):
                    alone, many, again, besides = links[i]
                    begin, end, middle = parts[i]
                    rest = middle * after + end * shared
                    after, shared = (
                        alone * begin * after + many * rest,
                        again * begin * after + besides * rest,
                    )
                law = laws[j]
                between = (others * after).expand(-1, law.shape[1] - 3)
                mass = law * torch.cat([first * after] * 2 + [between, others * shared], 1)
                here = torch.cat([left[j - 1][:, -1:] if j else nil, left[j]], 1)
                give = ((here - level * mass) / (1 - level)).clamp(min=0).minimum(mass)
                here = here - give
                if j:
                    left[j - 1] = torch.cat([left[j - 1][:, :-1], here[:, :1]], 1)
                left[j] = here[:, 1:]
                laws[j] = law * (1 - give / torch.where(mass > 0, mass, 1))
                parts[j] = ends_of(j)
                masses.append((scale * others * after).detach())
            price = torch.cat(masses[::-1], 1).reshape(-1, 1)
            made.append((level * price, [(1 - level) * price], price))
        return 1 - torch.cat(left, 1).clamp(min=0).sum(1), made


def _knots(made: Scalars) -> Any:
    """Where passes treat tokens differently, 0 and 1 among them, [N, K]. With values there the next
    knot is where a line passes 0; the ratio of what is left of p and q does not fall in t."""
    one = torch.ones_like(made[0][0])
    ends = torch.cat([0 * one, one], 1)
    lines = torch.stack([ends, ends, 1 - ends], 1)
    for bound, rooms, paid in made:
        low = high = torch.zeros_like(one, dtype=torch.int64)
        for price in (bound, *(bound + room for room in rooms)):
            over = lines[:, 1] - price * lines[:, 2]
            place = torch.arange(over.shape[1] + 1, device=over.device)
            above = (over > 0) & (place[:-1] > low)
            high = above.to(torch.int8).argmax(1, keepdim=True).clamp(min=1)
            below, over = over.gather(1, high - 1).clamp(max=0), over.gather(1, high)
            before, behind = (lines.gather(2, i[:, None].expand(-1, 3, 1)) for i in (high - 1, high))
            found = before + (below / (below - over))[:, None] * (behind - before)
            source = torch.where(place == high, place[-1], place - (place > high).long())
            lines = torch.cat([lines, found], 2).gather(2, source[:, None].expand(-1, 3, -1))
            low = high if price is bound else low
        # At the first and the last new knot what is given is known, be there hardly room between.
        place = torch.arange(lines.shape[2], device=one.device)
        t, left, law = lines.unbind(1)
        give = (left - bound * law) / rooms[-1].clamp(min=torch.finfo(t.dtype).tiny)
        give = torch.where(place >= high, law, give.clamp(min=0).minimum(law))
        give = torch.where(place <= low, 0, give)
        lines = torch.stack([t, (left - paid * give).clamp(min=0), law - give], 1)
    return lines[:, 0]


def _places(knots: Any, t: Any, bins: Any, alone: int) -> Any:
    """Places of tokens among the sums between knots [N, groups, K], of their places among bins: a bin
    tells where no knot is inside it. With ``alone`` 1 each group has a place of a token before and behind,
    and all have one before."""
    rows, groups, sums = knots.shape[0], knots.shape[1], knots.shape[2] - 1
    own = torch.arange(rows * groups, device=t.device).reshape(rows, groups, 1)
    inner = (knots[..., 1:-1] + 2 * own).flatten()
    edges = torch.arange(_BINS + 1, dtype=knots.dtype, device=t.device) / _BINS + 2 * own
    found = torch.searchsorted(inner, edges, right=True)
    first = own % groups * (sums + 2 * alone) + alone
    to_place = first + alone - own * (sums - 1)
    table = found[..., :-1] + to_place
    mixed = pad(found[..., 1:] > found[..., :-1], (alone, alone))
    if alone:
        table = torch.cat([first, table, first + sums + 1], 2)
    place, some = (pad(of.flatten(1), (alone, 0)).gather(1, bins) for of in (table, mixed))
    some = some.nonzero(as_tuple=True)
    own = some[0] * groups + (bins[some] - alone) // (_BINS + 2 * alone)
    among = torch.searchsorted(inner, t[some] + 2 * own.to(knots.dtype), right=True)
    place[some] = among + to_place.flatten()[own]
    return place


def _merged(
    p: Any,
    q: Any,
    n: int,
    straddle: Straddle | None,
    levels: Sequence[float],
    least: float,
    of_gradient: bool,
) -> Any:
    """What passes accept, [N], within ``least``, and for a gradient places of tokens, [N, V], and what
    it is there by p and by q."""
    t = (p + q).clamp_(min=torch.finfo(p.dtype).tiny)
    t = torch.div(p, t, out=t)
    bins = (t * _BINS).long().clamp_(max=_BINS - 1)
    p, q = wide(p), wide(q)
    cut = None if straddle is None else Cut(q, n, straddle)
    groups, alone = (1, 0) if cut is None else (n, 1)
    if cut is not None:
        bins = cut.place(bins)
    knots = torch.arange(_BINS + 1, dtype=p.dtype, device=p.device) / _BINS
    knots = knots.expand(len(p), groups, -1)
    # Next to no mass is between any two knots, so that tokens without any have the gradient there.
    nil = torch.finfo(p.dtype).tiny ** 0.75
    place, before = bins, torch.inf
    for turn in range(_TURNS):
        middle = (knots[..., 1:] + knots[..., :-1]) / 2
        sums = []
        for rows, share in ((p, middle), (q, 1 - middle)):
            one = pad(pad(nil * share, (alone, alone)).flatten(1), (alone, 0))
            sums.append(one.scatter_add_(1, place, rows).requires_grad_(of_gradient and turn > 0))
        with torch.set_grad_enabled(of_gradient):
            passes = (
                symmetric(sums[0], sums[1], n, levels)
                if cut is None
                else cut.passes(sums[0], sums[1], levels)
            )
            rates, total = passes[0].detach(), passes[0].sum()
        # One look at the device is less than another turn.
        if turn and bool(((rates - before).abs() <= least).all()):
            break
        if turn + 1 < _TURNS:
            before, knots = rates, _knots(passes[1]).unflatten(0, (-1, groups))
            place = _places(knots, t, bins, alone)
    if not of_gradient:
        return (rates,)
    few = sums[0].shape[1] < 1 << 15
    return rates, place.to(torch.int16 if few else torch.int32), *torch.autograd.grad(total, sums)


class Passed(torch.autograd.Function):  # type: ignore[misc]
    """What passes accept of rows [N, V], [N]: over strata, or with None symmetric ones. Two bytes a
    token are kept, and with them the gradients at sums."""

    @staticmethod
    def forward(
        ctx: Any,
        p: Any,
        q: Any,
        n: int,
        straddle: Straddle | None,
        levels: Sequence[float],
        dtype: Any,
    ) -> Any:
        most = _ENTRIES if p.device.type == "cpu" else _ENTRIES_OF_DEVICE
        ctx.step, ctx.dtypes = max(1, most // p.shape[1]), (p.dtype, q.dtype)
        parts = zip(p.split(ctx.step), q.split(ctx.step))
        least, wanted = _SETTLED * torch.finfo(dtype).eps, any(ctx.needs_input_grad)
        kept = [_merged(*part, n, straddle, levels, least, wanted) for part in parts]
        ctx.save_for_backward(*(one for part in kept for one in part[1:]))
        return torch.cat([part[0] for part in kept])

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Any) -> Any:
        found: list[Any] = [None, None]
        places = [place.long() for place in ctx.saved_tensors[::3]]
        for side in (0, 1):
            if not ctx.needs_input_grad[side]:
                continue
            parts = zip(gradient.split(ctx.step), ctx.saved_tensors[1 + side :: 3], places)
            rows = [(g[:, None] * at).to(ctx.dtypes[side]).gather(1, place) for g, at, place in parts]
            found[side] = torch.cat(rows) if len(rows) > 1 else rows[0]
        return *found, None, None, None, None
