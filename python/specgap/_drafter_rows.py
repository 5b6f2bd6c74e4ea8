"""Columns of rows: what is kept of a target's and a drafter's logits, in torch or in NumPy.

Both ways compute the same numbers. In torch they are found where the rows are, some rows at a time,
and columns alone cross to the host. In NumPy they are found row by row in double precision.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._arrays import typed, widened
from .rules import level_share

#: Columns [N], of the target's row and of the token at a position.
OF_TARGET = ("logp", "entropy", "square", "logp_before", "logp_after", "coverage")
#: Columns [N, K], of the draft's rows of a start.
OF_DRAFT = ("logq", "hit", "p_hit", "max_q", "overlap", "logq_before", "logq_after", "logq_far")

#: Entries of rows that are worked on at once, on the processor and elsewhere.
_AT_ONCE = 1 << 23
_AT_ONCE_ON_DEVICE = 1 << 26

#: Tokens that top_p looks for its mass among first.
_FEW = 1024

Columns = dict[str, NDArray[np.float64]]
#: A tree: children of a node at each level, and the rule that verifies it.
Shape = tuple[tuple[int, ...], str]


class Law(NamedTuple):
    """How the text was drawn from the target's logits."""

    temperature: float
    top_k: int | None
    top_p: float | None
    #: ``k,p,m`` or ``joint``, and ``,T`` behind it.
    cut_order: str = "k,p,m"

    @property
    def cuts(self) -> bool:
        return self.top_k is not None or self.top_p is not None

    @property
    def cut_at(self) -> float:
        """The temperature of the weights that are cut."""
        return 1.0 if self.cut_order.endswith(",T") else self.temperature

    @property
    def before_top_p(self) -> int | None:
        """How many heaviest tokens top_p takes its share of; None for all."""
        return None if self.cut_order.startswith("joint") else self.top_k


class Asked(NamedTuple):
    """Rows [B, T, V] and [B, T, K, Vd], tokens [B, T] with -1 where none counts, how many depths of
    a start are known [B, T], and the target's ids of the draft's tokens [Vd] if they are not
    all."""

    target: Any
    draft: Any
    tokens: NDArray[np.int64]
    known: NDArray[np.int64]
    ids: NDArray[np.int64] | None
    law: Law


def _neighbours(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """Tokens [B, T, 4]: one's own, the one before, the one after, and the one half a text away
    (:func:`far`); -1 for none."""
    out = np.full((*tokens.shape, 4), -1, dtype=np.int64)
    out[..., 0] = tokens
    place = far(tokens)
    out[..., 3] = np.where(place >= 0, np.take_along_axis(tokens, np.maximum(place, 0), 1), -1)
    out[:, 1:, 1] = tokens[:, :-1]
    out[:, :-1, 2] = tokens[:, 1:]
    return out


def far(tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each token that counts the place of another, half of its text's tokens away; -1 of texts
    that have fewer than eight."""
    out = np.full(tokens.shape, -1, dtype=np.int64)
    for row, text in zip(out, tokens):
        places = np.flatnonzero(text >= 0)
        if len(places) >= 8:
            row[places] = np.roll(places, len(places) // 2)
    return out


def _draft_ids(tokens: NDArray[np.int64], ids: NDArray[np.int64] | None, size: int) -> Any:
    """The same tokens by the draft's ids; -1 for those that it does not have."""
    if ids is None:
        return tokens
    place = np.full(size + 1, -1, dtype=np.int64)
    place[ids] = np.arange(len(ids))
    return place[tokens]


def columns(asked: Asked) -> Columns:
    """All columns, [B, T] of the target and [B, T, K] of the draft; nan where nothing is known."""
    if type(asked.target).__module__.partition(".")[0] == "torch":
        return _by_torch(asked)
    return _by_numpy(asked)


# --- torch ---------------------------------------------------------------------------------------


def _kept(weights: Any, law: Law) -> Any:
    """Where weights [.., V] at ``law.cut_at`` are kept: the top_k heaviest, lowest ids first among
    equals, and of these (or of all) the fewest heaviest that hold top_p of their mass."""
    import torch

    size = weights.shape[-1]
    k = min(law.top_k or size, size)
    most = k if law.top_p is None else min(law.before_top_p or size, size)
    # Values alone: which of equals are kept is found below. Without top_k a few nearly always do.
    few = most if most < size or law.top_p is None else min(most, _FEW)
    while True:
        order = weights.topk(few, -1).values
        if law.top_p is None:
            number = torch.full_like(weights[..., :1], most, dtype=torch.int64)
            break
        held = (order if order.device.type == "mps" else order.double()).cumsum(-1)
        total = held[..., -1:]
        if few < most:
            total = weights.sum(-1, keepdim=True, dtype=held.dtype)
        wanted = law.top_p * total
        if few == most or bool((held[..., -1:] >= wanted).all()):
            number = (1 + (held < wanted).sum(-1, keepdim=True)).clamp_(max=few)
            break
        few = min(most, 16 * few)
    number.clamp_(max=k)
    least = order.gather(-1, number - 1)
    above = weights > least
    equal = weights == least
    room = number - above.sum(-1, keepdim=True)
    return above | (equal & (equal.cumsum(-1) <= room))


def _blocks(shape: tuple[int, int, int], at_once: int) -> Iterator[tuple[slice, slice]]:
    """Stretches of [B, T] that hold about so many entries of rows."""
    batch, length, size = shape
    rows = max(1, at_once // size)
    long = min(length, rows)
    wide = max(1, rows // max(long, 1))
    for b in range(0, batch, wide):
        for t in range(0, length, max(long, 1)):
            yield slice(b, min(b + wide, batch)), slice(t, min(t + long, length))


def _tempered(rows: Any, dtype: Any, temperature: float) -> Any:
    """Logits over the temperature, in a type that sums well."""
    rows = rows.to(dtype)
    return rows if temperature == 1.0 else rows / temperature


#: Entries of which the largest is found at once.
_PIECE = 256


def _largest(rows: Any) -> Any:
    """The place of each row's largest entry, the first one among equals; [.., 1]. By the largest of
    each piece first, which is one quick pass, as torch's own argmax is not."""
    import torch

    size = rows.shape[-1]
    whole = size // _PIECE
    if whole < 4:
        return rows.argmax(-1, keepdim=True)
    tops = [rows[..., : whole * _PIECE].unflatten(-1, (whole, _PIECE)).amax(-1)]
    if size % _PIECE:
        tops.append(rows[..., whole * _PIECE :].amax(-1, keepdim=True))
    piece = torch.cat(tops, -1).argmax(-1, keepdim=True)
    inside = piece * _PIECE + torch.arange(_PIECE, device=rows.device)
    few = rows.gather(-1, inside.clamp_(max=size - 1))
    return inside.gather(-1, few.argmax(-1, keepdim=True))


class _Softmax:
    """Softmax of rows into buffers that are made once."""

    def __init__(self, entries: int, dtype: Any, device: Any, temperature: float) -> None:
        import torch

        self.temperature = temperature
        self._buffers = [torch.empty(entries, dtype=dtype, device=device) for _ in range(3)]

    def buffer(self, number: int, shape: Any) -> Any:
        return self._buffers[number][: shape.numel()].view(shape)

    def shifted(self, rows: Any, top: Any, number: int) -> Any:
        """(row - its largest) / temperature."""
        import torch

        out = torch.sub(rows, top, out=self.buffer(number, rows.shape))
        return out if self.temperature == 1.0 else out.mul_(1 / self.temperature)

    def of(self, rows: Any) -> Any:
        """The softmax of rows / temperature, in buffers 1 and 2."""
        import torch

        out = self.buffer(2, rows.shape)
        if rows.dtype != out.dtype or self.temperature != 1.0:
            rows = self.buffer(1, rows.shape).copy_(rows)
            if self.temperature != 1.0:
                rows.mul_(1 / self.temperature)
        return torch.softmax(rows, -1, out=out)

    def log_at(self, rows: Any, top: Any, total: Any, tokens: Any) -> Any:
        """ln of what the softmax gives tokens, by the sum of its weights; -inf where there is
        none."""
        import torch

        logits = rows.gather(-1, tokens.clamp(min=0)).to(top.dtype)
        found = (logits - top) / self.temperature - total.log()
        return torch.where(tokens >= 0, found, -torch.inf)


def _of_target(rows: Any, tokens: Any, softmax: _Softmax, law: Law) -> tuple[Any, list[Any]]:
    """p in a buffer, and ln p of tokens [.., 4], the entropy and the mean of ln^2 p."""
    import torch

    out = softmax.buffer(0, rows.shape)
    top = rows.amax(-1, keepdim=True).to(out.dtype)
    logs = softmax.shifted(rows, top, 1)
    p = torch.exp(logs, out=out)
    kept = None
    if law.cuts:
        same = law.cut_at == law.temperature
        kept = _kept(p if same else torch.exp(logs * (law.temperature / law.cut_at)), law)
        p.mul_(kept)
    total = p.sum(-1, keepdim=True)
    p.div_(total)
    logp = softmax.log_at(rows, top, total, tokens)
    if kept is not None:
        logp = torch.where(kept.gather(-1, tokens.clamp(min=0)), logp, -torch.inf)
    # A masked token has no share, and no logarithm either.
    logs.clamp_(min=-1e4)
    share = torch.mul(p, logs, out=softmax.buffer(2, rows.shape))
    mean = share.sum(-1)
    square = share.mul_(logs).sum(-1)
    less = total[..., 0].log()
    entropy = less - mean
    return p, [
        logp[..., 0],
        entropy,
        square - 2 * less * mean + less**2,
        logp[..., 1],
        logp[..., 2],
    ]


def _of_draft(rows: Any, p: Any, tokens: Any, softmax: _Softmax) -> list[Any]:
    """Columns of the draft's rows, beside the target's p and the draft's ids of the text's
    tokens."""
    import torch

    best = _largest(rows)
    q = softmax.of(rows)
    top = rows.gather(-1, best).to(q.dtype)
    total = 1 / q.gather(-1, best)
    logq = softmax.log_at(rows, top, total, tokens)
    overlap = torch.minimum(p, q, out=q).sum(-1)
    hit = (best == tokens[..., :1])[..., 0].to(q.dtype)
    p_hit = p.gather(-1, best)[..., 0]
    near = [logq[..., place] for place in (1, 2, 3)]
    return [logq[..., 0], hit, p_hit, 1 / total[..., 0], overlap, *near]


def _by_torch(asked: Asked) -> Columns:
    import torch

    target, draft, law = asked.target, asked.draft, asked.law
    device = target.device
    dtype = torch.float64 if torch.float64 in (target.dtype, draft.dtype) else torch.float32
    batch, length, size = target.shape
    depth = draft.shape[2]
    own = _neighbours(asked.tokens)
    drafted = torch.from_numpy(_draft_ids(own, asked.ids, size)).to(device)
    own_ids = torch.from_numpy(own).to(device)
    ids = None if asked.ids is None else torch.from_numpy(asked.ids).to(device)
    nan = float("nan")
    of_target = torch.full((len(OF_TARGET), batch, length), nan, dtype=dtype, device=device)
    of_draft = torch.full((len(OF_DRAFT), batch, length, depth), nan, dtype=dtype, device=device)
    at_once = _AT_ONCE if device.type == "cpu" else _AT_ONCE_ON_DEVICE
    entries = max(size, min(at_once, batch * length * size))
    softmax = _Softmax(entries, dtype, device, law.temperature)
    with torch.no_grad():
        for b, t in _blocks((batch, length, size), at_once):
            if not (asked.tokens[b, t] >= 0).any():
                continue
            p, found = _of_target(target[b, t], own_ids[b, t], softmax, law)
            if ids is not None:
                p = p.index_select(-1, ids)
                found.append(p.sum(-1))
            else:
                found.append(torch.ones_like(found[0]))
            of_target[:, b, t] = torch.stack(found)
            for j in range(depth):
                # The row for a token at t is of the start at t - j.
                first = max(t.start, j)
                if first >= t.stop:
                    break
                starts = slice(first - j, t.stop - j)
                if (asked.known[b, starts] > j).any():
                    rows, tokens = draft[b, starts, j], drafted[b, first : t.stop]
                    found = _of_draft(rows, p[:, first - t.start :], tokens, softmax)
                    of_draft[:, b, starts, j] = torch.stack(found)
    of_host = of_target.cpu().double().numpy(), of_draft.cpu().double().numpy()
    return dict(zip((*OF_TARGET, *OF_DRAFT), (*of_host[0], *of_host[1])))


# --- NumPy ---------------------------------------------------------------------------------------


def _softmax(row: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        weights = np.exp((row - row.max()) / temperature)
    out: NDArray[np.float64] = weights / weights.sum()
    return out


def law_of_row(row: NDArray[np.float64], law: Law) -> NDArray[np.float64]:
    """p [V] of a row of logits, cut and normalised."""
    p = _softmax(row, law.temperature)
    if not law.cuts:
        return p
    weights = _softmax(row, law.cut_at)
    order = np.argsort(-weights, kind="stable")
    if law.top_p is not None:
        held = np.cumsum(weights[order[: law.before_top_p]])
        order = order[: int((held < law.top_p * held[-1]).sum()) + 1]
    order = order[: law.top_k]
    out = np.zeros_like(p)
    out[order] = p[order] / p[order].sum()
    return out


def _log_at(row: Any, p: Any, tokens: Any, temperature: float) -> NDArray[np.float64]:
    """ln of the law p of a row of logits at tokens; -inf where there is none."""
    best = int(p.argmax())
    with np.errstate(invalid="ignore"):
        out = (row[tokens] - row[best]) / temperature + np.log(p[best])
    there = (tokens >= 0) & ((p[tokens] > 0) | (row[tokens] > -np.inf))
    found: NDArray[np.float64] = np.where(there, out, -np.inf)
    return found


def _by_numpy(asked: Asked) -> Columns:
    law = asked.law
    (target, kind), (draft, draft_kind) = (
        typed(asked.target, "target_logits"),
        typed(asked.draft, "draft_logits"),
    )
    batch, length, size = target.shape
    depth = draft.shape[2]
    own = _neighbours(asked.tokens)
    drafted = _draft_ids(own, asked.ids, size)
    out = {name: np.full((batch, length), np.nan) for name in OF_TARGET}
    out |= {name: np.full((batch, length, depth), np.nan) for name in OF_DRAFT}
    for b, t in zip(*np.nonzero(asked.tokens >= 0)):
        row = widened(target[b, t], kind)
        p = law_of_row(row, law)
        logp = _log_at(row, p, own[b, t], law.temperature)
        if law.cuts:
            logp = np.where(p[own[b, t]] > 0, logp, -np.inf)
        logs = np.log(np.maximum(p, np.finfo(np.float64).tiny))
        held = p if asked.ids is None else p[asked.ids]
        found = (logp[0], -(p * logs).sum(), (p * logs * logs).sum(), logp[1], logp[2])
        for name, value in zip(OF_TARGET, (*found, 1.0 if asked.ids is None else held.sum())):
            out[name][b, t] = value
        for j in range(min(depth, t + 1)):
            start = b, t - j, j
            if asked.known[b, t - j] <= j:
                continue
            row = widened(draft[start], draft_kind)
            q = _softmax(row, law.temperature)
            logq = _log_at(row, q, drafted[b, t], law.temperature)
            best = int(row.argmax())
            values = (
                logq[0],
                float(best == drafted[b, t, 0]),
                held[best],
                q[best],
                np.minimum(held, q).sum(),
                logq[1],
                logq[2],
                logq[3],
            )
            for name, value in zip(OF_DRAFT, values):
                out[name][start] = value
    return out


# --- optima --------------------------------------------------------------------------------------


def sampled(
    asked: Asked,
    starts: NDArray[np.bool_],
    counts: tuple[int, ...],
    trees: Sequence[Shape],
) -> NDArray[np.float64]:
    """At starts, by depth: alpha* of so many independent drafts, and of each tree how often a child of
    its level is kept where the text's token is put out and the levels above were kept (0 below its
    levels). [M, K, ..], in the order of ``numpy.nonzero``."""
    depth = asked.draft.shape[2]
    places = list(zip(*np.nonzero(starts)))
    found = np.zeros((len(places), depth, len(counts) + len(trees)))
    of_torch = type(asked.target).__module__.partition(".")[0] == "torch"
    rows = _rows_by_torch if of_torch else _rows_by_numpy
    for place, (b, t) in enumerate(places):
        p, q = rows(asked, int(b), int(t))
        if counts:
            found[place, :, : len(counts)] = _optima(p, q, counts)
        if trees:
            shares = _shares(p, q, asked.tokens[b, t : t + depth], trees)
            found[place, :, len(counts) :] = shares
    return found


def _optima(p: Any, q: Any, counts: tuple[int, ...]) -> Any:
    if isinstance(p, np.ndarray):
        from ._rates import alpha

        return np.stack([alpha(p, q, n).value for n in counts], -1)
    alpha_star = importlib.import_module("specgap.torch").alpha_star
    return alpha_star(p, q, list(counts)).cpu().double().numpy()


def _shares(p: Any, q: Any, tokens: NDArray[np.int64], trees: Sequence[Shape]) -> NDArray[np.float64]:
    rows = [one if isinstance(one, np.ndarray) else one.cpu().double().numpy() for one in (p, q)]
    p, q = (np.ascontiguousarray(one / one.sum(axis=1, keepdims=True)) for one in rows)
    found = np.zeros((len(tokens), len(trees)))
    known: dict[tuple[int, int], float] = {}
    for at, (widths, rule) in enumerate(trees):
        levels = len(widths)
        if rule == "level-4":
            for j, n in enumerate(widths):
                if (j, n) not in known:
                    known[j, n] = level_share(p[j], q[j], n, int(tokens[j]))
                found[j, at] = known[j, n]
            continue
        text = [int(token) for token in tokens[:levels]]
        kept = np.array(_native.kept_from_leaves(rule, widths, p[:levels], q[:levels], text))
        before = np.r_[1.0, kept[:-1]]
        found[:levels, at] = np.divide(kept, before, out=np.zeros(levels), where=before > 0)
    return found


def _rows_by_torch(asked: Asked, b: int, t: int) -> tuple[Any, Any]:
    """p and q of a start, [K, V]."""
    import torch

    depth = asked.draft.shape[2]
    dtype = (
        torch.float64 if torch.float64 in (asked.target.dtype, asked.draft.dtype) else torch.float32
    )
    with torch.no_grad():
        rows = asked.target[b, t : t + depth]
        p = torch.softmax(_tempered(rows, dtype, asked.law.temperature), -1)
        if asked.law.cuts:
            weights = torch.softmax(_tempered(rows, dtype, asked.law.cut_at), -1)
            p.mul_(_kept(weights, asked.law))
            p.div_(p.sum(-1, keepdim=True))
        q = torch.softmax(_tempered(asked.draft[b, t], dtype, asked.law.temperature), -1)
        if asked.ids is not None:
            ids = torch.from_numpy(asked.ids).to(q.device)
            q = torch.zeros_like(p).index_copy_(-1, ids, q)
        return p, q


def _rows_by_numpy(asked: Asked, b: int, t: int) -> tuple[Any, Any]:
    (target, kind), (draft, draft_kind) = (
        typed(asked.target, "target_logits"),
        typed(asked.draft, "draft_logits"),
    )
    depth = draft.shape[2]
    p = np.array([law_of_row(widened(target[b, t + j], kind), asked.law) for j in range(depth)])
    q = np.zeros_like(p)
    for j in range(depth):
        row = _softmax(widened(draft[b, t, j], draft_kind), asked.law.temperature)
        q[j, slice(None) if asked.ids is None else asked.ids] = row
    return p, q
