"""Rates of rows as losses: alpha* and what rules accept, with gradients, in torch.

=========================  ======================================================================
:func:`alpha_star`         the most that a lossless verifier can accept of n drafts
:func:`rrs_rate`           what recursive rejection accepts of n independent drafts
:func:`k_seq_rate`         what SpecTr's k-SEQ accepts, at its best factor
:func:`level_rate`         what rejection by level accepts in a few passes
:func:`expected_tokens`    tokens a round of the rates by depth
:func:`drafter_loss`       minus a rate over all starts and depths of a drafter in training
=========================  ======================================================================

p is the target and q the draft: rows ``[V]``, ``[N, V]``, ``[B, D, V]`` or of any number of axes,
probabilities, or logits with ``logits=True``. ``n`` is a number of drafts, or several, for which
there is one more, last axis. Results are on the tensors' device, in float64 if a row is, else in
float32. Each is to be made large; a loss is its negative mean.

Rows sum to 1, so that a gradient by probabilities is one up to a constant a row. A softmax, of
torch or by ``logits=True``, takes any constant out. Gradients of second order are not given.

>>> import torch
>>> import specgap as sg
>>> p = torch.tensor([0.5, 0.5])
>>> q = torch.tensor([0.75, 0.25], requires_grad=True)
>>> rate = sg.torch.alpha_star(p, q, 2)
>>> rate.backward()
>>> rate.item(), q.grad.tolist()
(0.9375, [-1.5, 0.0])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "specgap.torch needs PyTorch, which is not installed: pip install torch", name="torch"
    ) from None
from torch.autograd.function import once_differentiable

from . import _native
from ._arrays import count
from ._arrays import rows as _rows
from ._drafting import Straddle
from ._errors import Refused
from ._passes import Passed
from ._passes import wide as _wide
from ._race import missed
from .rules import IID_LEVELS, STRATA_LEVELS

__all__ = ["alpha_star", "drafter_loss", "expected_tokens", "k_seq_rate", "level_rate", "rrs_rate"]

Law = Literal["with-replacement", "without-replacement", "distinct-conditioned"]

_LAWS = ("with-replacement", "without-replacement", "distinct-conditioned")
_MOST_DRAFTS = 64
#: How far a sum of probabilities may be from 1, by type.
_OFF = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 2e-2}
#: Entries that are sorted at once.
_CHUNK = 1 << 25


class _Asked(NamedTuple):
    """Rows [N, V] as they were given, the numbers of drafts, and what becomes of the result."""

    p: Any
    q: Any
    counts: list[int]
    logits: bool
    temperature: float
    shape: tuple[int, ...]
    dtype: Any

    def probabilities(self) -> tuple[Any, Any]:
        """Rows as distributions, in torch."""

        def one(rows: Any) -> Any:
            rows = rows.to(self.dtype)
            if self.logits:
                return torch.softmax(rows / self.temperature, -1)
            # As the scan does: what rows of few digits lack of 1 is no probability.
            return rows / rows.detach().sum(-1, keepdim=True)

        return one(self.p), one(self.q)

    def shaped(self, rates: Any) -> Any:
        """Rates [N, number of drafts] in the shape that was asked for."""
        return rates.to(self.dtype).reshape(self.shape)


def _counts(n: object) -> tuple[list[int], bool]:
    """Numbers of drafts, and whether it is one."""
    of_one = getattr(n, "ndim", 1) == 0 or not isinstance(n, Iterable)
    several: Iterable[Any] = [n] if of_one else n  # type: ignore[assignment]
    counts = [count(one, "n", "drafts") for one in several]
    if not counts:
        raise ValueError("n: is empty; give a number of drafts, or several, such as [1, 2, 3]")
    if max(counts) > _MOST_DRAFTS:
        raise ValueError(f"n is {max(counts)}; rates are for up to {_MOST_DRAFTS} drafts")
    return counts, of_one


#: What rows that are called logits may be instead: the factor by which they become natural
#: logarithms, what shows it, and what they are.
_FORMS = (
    (math.log(2), "2^x", "logarithms of probabilities to base 2", "multiply them by ln 2"),
    (math.log(10), "10^x", "logarithms of probabilities to base 10", "multiply them by ln 10"),
    (-1.0, "exp(-x)", "negative log-likelihoods", "change their sign"),
    (-math.log(2), "2^-x", "negative log-likelihoods to base 2", "multiply them by -ln 2"),
    (-math.log(10), "10^-x", "negative log-likelihoods to base 10", "multiply them by -ln 10"),
)


def _refuse_forms(few: Any, name: str, off: float) -> None:
    """Raises if all of these rows are another form of probabilities than logits. One of few digits
    is not enough to tell."""
    if few.shape[-1] < 2 or len(few) < (1 if off <= 1e-4 else 2):
        return
    if bool(((few.amax(-1) > off) & (few.amin(-1) < -off)).any()):
        return  # All forms have one sign.
    few = _wide(few)
    factors = torch.tensor([one[0] for one in _FORMS], dtype=few.dtype, device=few.device)
    powers = (few * factors[:, None, None]).exp()
    # Where one token has all, the sum is 1 whatever the others are.
    near = ((powers.sum(-1) - 1).abs() <= off) & (powers.amax(-1) <= 0.99)
    for found, (_, shown, what, cure) in zip(near.all(-1).tolist(), _FORMS):
        if found:
            raise ValueError(
                f"{name}: row 0: {shown} sums to 1: these are {what}, and no logits; {cure}"
            )


def _refuse_rows(rows: Any, name: str, logits: bool) -> None:
    """Raises if a row is no distribution. One number crosses to the host."""
    if logits:
        top = rows.amax(-1)
        bad = ~torch.isfinite(top)
        words = "has NaN, +inf, or no finite logit"
        # Of the first rows alone: whoever passes probabilities passes them in all.
        few = rows[:4].float()
        looks = (few.amin(-1) >= 0) & ((few.sum(-1) - 1).abs() <= 1e-2) & (few.shape[-1] > 1)
        if len(few) and bool((looks.all() & ~bad.any())):
            raise Refused(
                f"{name}: row 0: entries are in [0, 1] and sum to 1: these are probabilities, and no "
                "logits; leave logits=True out, or take natural logarithms",
                name,
                0,
            )
        if not bool(bad.any()):
            _refuse_forms(rows[:4], name, _OFF[rows.dtype])
    else:
        total = rows.sum(-1, dtype=torch.promote_types(rows.dtype, torch.float32))
        off = _OFF[rows.dtype]
        bad = ~((rows.amin(-1) >= 0) & ((total - 1).abs() <= off))
        words = (
            f"is no distribution: probabilities are >= 0 and sum to 1 within {off:g}; if these are "
            "logits, say logits=True"
        )
    if bool(bad.any()):
        row = int(bad.to(torch.int8).argmax())
        raise Refused(f"{name}: row {row}: {words}", name, row)


def _asked(p: Any, q: Any, n: object, logits: bool, temperature: float) -> _Asked:
    """What was asked for, if it can be meant."""
    for name, rows in (("p", p), ("q", q)):
        if not isinstance(rows, torch.Tensor):
            raise TypeError(
                f"{name}: is {type(rows).__name__}; give a torch tensor, or take specgap.alpha, which "
                "takes arrays"
            )
        if rows.dtype not in _OFF:
            raise TypeError(
                f"{name}: has entries of type {rows.dtype}; rows are float16, bfloat16, float32 or "
                "float64"
            )
        if rows.layout is not torch.strided:
            raise TypeError(f"{name}: is {rows.layout}; give {name}.to_dense()")
        if rows.ndim == 0 or rows.shape[-1] == 0:
            raise ValueError(f"{name}: has shape {tuple(rows.shape)}; give rows [.., V]")
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(
            f"p has {p.shape[-1]} tokens and q {q.shape[-1]}; both are rows over one vocabulary"
        )
    if p.device != q.device:
        raise ValueError(f"p is on {p.device} and q on {q.device}; move one to the other's device")
    try:
        p, q = torch.broadcast_tensors(p, q)
    except RuntimeError:
        raise ValueError(
            f"p has shape {tuple(p.shape)} and q {tuple(q.shape)}; axes but the last are equal, or 1"
        ) from None
    try:
        temperature = float(temperature)
    except (TypeError, ValueError):
        raise TypeError(
            f"temperature: give a number above 0; this is {type(temperature).__name__}"
        ) from None
    if not temperature > 0 or temperature == float("inf"):
        raise ValueError(f"temperature is {temperature}; give a number above 0")
    if not logits and temperature != 1.0:
        raise ValueError(
            f"temperature is {temperature}, which is for logits: say logits=True, or give "
            "probabilities at that temperature"
        )
    counts, one = _counts(n)
    shape = tuple(p.shape[:-1]) + (() if one else (len(counts),))
    dtype = torch.float64 if torch.float64 in (p.dtype, q.dtype) else torch.float32
    p, q = (rows.reshape(-1, rows.shape[-1]) for rows in (p, q))
    return _Asked(p, q, counts, bool(logits), float(temperature), shape, dtype)


def _refuse_all(asked: _Asked) -> None:
    for name, rows in (("p", asked.p), ("q", asked.q)):
        if len(rows):
            _refuse_rows(rows.detach(), name, asked.logits)


def _checked(p: Any, q: Any, n: object, logits: bool, temperature: float) -> _Asked:
    asked = _asked(p, q, n, logits, temperature)
    _refuse_all(asked)
    return asked


class _Scanned(torch.autograd.Function):  # type: ignore[misc]
    """alpha* of independent drafts on the processor: the crate's scan, which hands out H."""

    @staticmethod
    def forward(
        ctx: Any,
        p: Any,
        q: Any,
        counts: list[int],
        logits: bool,
        temperature: float,
        of_gradient: bool,
    ) -> Any:
        kept = []
        for rows, needed in zip((p, q), ctx.needs_input_grad):
            wide = torch.float64 if rows.dtype == torch.float64 else torch.float32
            out = torch.empty(rows.shape, dtype=wide) if needed and logits and of_gradient else None
            kept.append(out)
        (value, *_), found = _certificates(
            p, q, counts, "with-replacement", logits, temperature, kept
        )
        _, p_mass, q_mass, _, sets = found
        ctx.counts, ctx.scale, ctx.dtypes = counts, 1 / temperature, (p.dtype, q.dtype)
        ctx.of_logits, ctx.shape = logits, p.shape
        ctx.masses = p_mass, q_mass
        ctx.save_for_backward(torch.from_numpy(sets), *kept)
        return torch.from_numpy(value).reshape(len(p), len(counts))

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Any) -> Any:
        sets, *kept = ctx.saved_tensors
        given = gradient.double().numpy() * ctx.scale
        n = np.array(ctx.counts, dtype=np.float64)
        p_mass, q_mass = (mass.reshape(given.shape) for mass in ctx.masses)
        sides = ((given, p_mass), (-given * n * q_mass ** (n - 1), q_mass))
        found: list[Any] = []
        for k, (weights, mass) in enumerate(sides):
            if not ctx.needs_input_grad[k]:
                found.append(None)
                continue
            wide = torch.float64 if ctx.dtypes[k] == torch.float64 else torch.float32
            into = torch.empty(ctx.shape, dtype=wide)
            centres = (weights * mass).sum(1) if ctx.of_logits else np.zeros(len(weights))
            _native.weigh_certificates(
                sets.numpy(),
                np.ascontiguousarray(weights).ravel(),
                centres,
                kept[k].numpy() if ctx.of_logits else None,
                into.numpy(),
                torch.get_num_threads(),
            )
            found.append(into.to(ctx.dtypes[k]))
        return found[0], found[1], None, None, None, None


def _certificates(
    p: Any,
    q: Any,
    counts: Sequence[int],
    law: str,
    logits: bool,
    temperature: float,
    kept: Sequence[Any] = (None, None),
) -> Any:
    """alpha* and its certificates by the crate's scan, of rows on the processor."""
    outs = [None if out is None else out.numpy() for out in kept]
    return _native.certificates(
        _rows(p, "p"),
        _rows(q, "q"),
        counts,
        law,
        logits,
        temperature,
        torch.get_num_threads(),
        None,
        *outs,
    )


class _Certified(torch.autograd.Function):  # type: ignore[misc]
    """1 + p(H) - q(H)^n at sets H [N, k, V]; the gradient is the certificate."""

    @staticmethod
    def forward(ctx: Any, p: Any, q: Any, counts: list[int], sets: Any) -> Any:
        n = torch.tensor(counts, dtype=p.dtype, device=p.device)
        p_mass, q_mass = ((rows[:, None] * sets).sum(-1) for rows in (p, q))
        ctx.save_for_backward(sets, n * q_mass ** (n - 1))
        return 1 + p_mass - q_mass**n

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Any) -> Any:
        sets, slope = ctx.saved_tensors
        weights = (gradient, -gradient * slope)
        needed = zip(ctx.needs_input_grad, weights)
        found = [(weight[..., None] * sets).sum(1) if wanted else None for wanted, weight in needed]
        return found[0], found[1], None, None


def _symmetric(values: Any, n: int) -> list[Any]:
    """e_1 to e_n of each prefix of the last axis, by the recurrence, in which nothing cancels."""
    found, before = [], torch.ones_like(values)
    for _ in range(n):
        sums = (values * before).cumsum(-1)
        found.append(sums)
        before = sums.roll(1, -1) * (torch.arange(values.shape[-1], device=values.device) > 0)
    return found


def _inside_by_turn(rest: Any, values: Any, size: Any) -> Any:
    """Q of two sequential draws: 1 - (1 - q(H)) (1 + sum over H of q/(1 - q)). ``rest`` is
    1 - q(H), ``values`` q on H, ``size`` how to sum over H."""
    whole = 1 - values
    share = values / torch.where(whole > 0, whole, 1)
    return 1 - rest * (1 + size(share))


def _prefixes(q: Any, n: int, law: str) -> Any:
    """Q of every prefix of rows [N, V] that are in the order of the scan."""
    held = q.cumsum(-1)
    if law == "with-replacement" or n == 1:
        return held**n
    support = (q > 0).sum(-1, keepdim=True)
    if law == "without-replacement":
        found = _inside_by_turn(1 - held, q, lambda share: share.cumsum(-1))
        return torch.where(support > 1, found, held)
    sums = torch.stack(_symmetric(q, n), -1)
    draws = support.clamp(1, n)[..., None].expand(*q.shape, 1)
    own = sums.gather(-1, draws - 1)[..., 0]
    return own / own[:, -1:]


def _inside(q: Any, sets: Any, n: int, law: str) -> Any:
    """Q(H) of rows [N, V] and sets [N, V], with the gradient that torch makes of it."""
    q = _wide(q)
    own = q * sets
    held = own.sum(-1)
    if law == "with-replacement" or n == 1:
        return held**n
    support = (q > 0).sum(-1)
    if law == "without-replacement" and n > 2:
        return 1 - missed(q, sets, n)
    if law == "without-replacement":
        # Of one token alone every draw is it.
        safe = torch.where(support[:, None] > 1, own, 0)
        found = _inside_by_turn(1 - held, safe, lambda share: share.sum(-1))
        return torch.where(support > 1, found, held)
    draws = support.clamp(1, n)[:, None] - 1
    of_set, of_all = (
        torch.stack([sums[:, -1] for sums in _symmetric(values, n)], -1).gather(-1, draws)[:, 0]
        for values in (own, q)
    )
    return of_set / of_all


def _sets_by_sort(p: Any, q: Any, counts: Sequence[int], law: str) -> Any:
    """H of each row for each number of drafts, [N, k, V], on the rows' device: prefixes in order
    of falling q/p, ties by id. Sums are in float64 where the device has it."""
    size = p.shape[1]
    sets = torch.empty(len(p), len(counts), size, dtype=torch.bool, device=p.device)
    step = max(1, _CHUNK // size)
    for start in range(0, len(p), step):
        some_p, some_q = p[start : start + step], q[start : start + step]
        ratio = torch.where(some_q > 0, some_q / some_p, -1)
        order = ratio.sort(dim=-1, descending=True, stable=True).indices
        some_p, some_q = (_wide(rows.gather(-1, order)) for rows in (some_p, some_q))
        held = some_p.cumsum(-1)
        for k, n in enumerate(counts):
            lost, place = (held - _prefixes(some_q, n, law)).min(-1, keepdim=True)
            ends = torch.where(lost < 0, place, -1)
            inside = torch.arange(size, device=p.device) <= ends
            sets[start : start + step, k].scatter_(-1, order, inside)
    return sets


def alpha_star(
    p: Any,
    q: Any,
    n: int | Sequence[int],
    law: Law = "with-replacement",
    logits: bool = False,
    temperature: float = 1.0,
) -> Any:
    """alpha*, the largest probability that a lossless verifier puts out one of n drafts, as a
    differentiable function of the rows.

    ``alpha* = min over H of 1 + p(H) - Q(H)``, Q(H) the probability that all drafts are in H. By
    Danskin's theorem its gradient is that of the function at the minimiser H, the certificate:
    ``1[H]`` by p, and by q ``-n q(H)^(n-1) 1[H]`` for independent drafts. For n = 1 it is
    ``sum(min(p, q))``. Where two sets are equally low, as at ties and where p = q, alpha* has a
    kink, and this is one of its supergradients.

    ``p``, ``q``: tensors [V], [N, V], [B, D, V]..; axes but the last are broadcast. ``n``: 1 to 64,
    or several, as ``range(1, 5)``; then the result is [.., len(n)], else [..]. ``law``:
    ``with-replacement``, ``without-replacement`` (sequential draws; elsewhere than on the processor
    for n = 1 and 2) or ``distinct-conditioned``. ``logits``: rows are logits; their softmax at ``temperature``, and its
    gradient, are part of the function.

    On the processor rows are read where they lie and scanned as by :func:`specgap.alpha`, in double
    precision: O(V) a row without a sort. Forward and backward of independent drafts cost no more than
    those of ``sum(min(p, q))`` in torch, and keep p and q of logits, and V/8 bytes for each
    row and n. Elsewhere they stay on their device and are sorted, in pieces, O(V log V); values are
    then 1 + p(H) - Q(H) in float32 or float64, and no more is read back than whether all rows are
    distributions. This way is tested on the processor, and was not timed on a GPU.

    Raises ``TypeError`` for what is no tensor of floating point, ``ValueError`` for rows that do
    not fit, are no distributions (with row) or another form than said, and for what has no gradient.

    >>> import torch, specgap as sg
    >>> target, draft = torch.randn(2, 4, 100), torch.randn(2, 4, 100, requires_grad=True)
    >>> rates = sg.torch.alpha_star(target, draft, [1, 2, 3], logits=True)
    >>> (-rates[..., 2].mean()).backward()
    >>> rates.shape, draft.grad.shape
    (torch.Size([2, 4, 3]), torch.Size([2, 4, 100]))
    """
    if law not in _LAWS:
        raise ValueError(f"law: {law!r} is not solved by a scan; take one of {', '.join(_LAWS)}")
    asked = _asked(p, q, n, logits, temperature)
    if asked.p.device.type == "cpu":
        return asked.shaped(_of_host(asked, law))
    return asked.shaped(_of_device(asked, law))


def _of_host(asked: _Asked, law: Law) -> Any:
    """alpha* [N, k] by the crate's scan."""
    settings = asked.counts, asked.logits, asked.temperature
    if law == "with-replacement":
        return _Scanned.apply(asked.p, asked.q, *settings, torch.is_grad_enabled())
    own_p, own_q = asked.p.detach(), asked.q.detach()
    (value, *_), found = _certificates(own_p, own_q, asked.counts, law, *settings[1:])
    value = torch.from_numpy(value).reshape(len(own_p), len(asked.counts))
    if not (torch.is_grad_enabled() and (asked.p.requires_grad or asked.q.requires_grad)):
        return value
    sets = np.unpackbits(found[-1], axis=1, count=own_p.shape[1], bitorder="little")
    made = _at_sets(asked, torch.from_numpy(sets).bool().reshape(*value.shape, -1), law)
    # The scan's value, with the gradient of the certificate.
    return made + (value - made.detach())


def _of_device(asked: _Asked, law: Law) -> Any:
    """alpha* [N, k] where the rows are."""
    if law == "without-replacement" and max(asked.counts) > 2:
        raise ValueError(
            f"n is {max(asked.counts)}; under without-replacement the set of more than 2 drafts is found "
            "on the processor alone: move the rows there, as p.cpu(), q.cpu()"
        )
    _refuse_all(asked)
    p, q = (rows.detach() for rows in asked.probabilities())
    return _at_sets(asked, _sets_by_sort(p, q, asked.counts, law), law)


def _at_sets(asked: _Asked, sets: Any, law: Law) -> Any:
    """1 + p(H) - Q(H) [N, k] at sets [N, k, V], with its gradient."""
    p, q = asked.probabilities()
    if law == "with-replacement":
        return _Certified.apply(p, q, asked.counts, sets)
    rates = [
        1 + (p * sets[:, k]).sum(-1) - _inside(q, sets[:, k], one, law)
        for k, one in enumerate(asked.counts)
    ]
    return torch.stack(rates, -1)


class _Rejection(torch.autograd.Function):  # type: ignore[misc]
    """What recursive rejection accepts of 1 to n independent drafts, [N, n]."""

    @staticmethod
    def forward(ctx: Any, p: Any, q: Any, n: int) -> Any:
        factor = torch.ones_like(p[:, :1])
        factors, left = [], []
        for _ in range(n):
            factors.append(factor)
            left.append((p - factor * q).clamp_(min=0).sum(-1, keepdim=True))
            factor = factor + left[-1]
        ctx.save_for_backward(p, q, torch.cat(factors, -1))
        return 1 - torch.cat(left, -1)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Any) -> Any:
        p, q, factors = ctx.saved_tensors
        by_p, by_q = torch.zeros_like(p), torch.zeros_like(q)
        by_factor = torch.zeros_like(p[:, :1])
        for k in reversed(range(factors.shape[1])):
            factor = factors[:, k : k + 1]
            above = p > factor * q
            by_left = by_factor - gradient[:, k : k + 1]
            by_factor = by_factor - by_left * (q * above).sum(-1, keepdim=True)
            by_p += by_left * above
            by_q -= by_left * factor * above
        return by_p, by_q, None


def rrs_rate(
    p: Any, q: Any, n: int | Sequence[int], logits: bool = False, temperature: float = 1.0
) -> Any:
    """What recursive rejection sampling (``rrs``) accepts of n independent drafts.

    ``1 - phi(K_n)`` with ``phi(K) = sum of (p - K q)+``, ``K_1 = 1`` and ``K_(m+1) = K_m +
    phi(K_m)``: what is left of p after m rejections is ``(p - K_(m+1) q)+``, normalised. All n from
    one run, and the gradient from a second one backwards; exact but for rounding, with kinks where
    ``p = K q`` (there such a token counts as below).

    Arguments, shapes and errors as :func:`alpha_star`, on any device; O(n V) without a sort.

    >>> import torch, specgap as sg
    >>> sg.torch.rrs_rate(torch.tensor([0.5, 0.5]), torch.tensor([0.75, 0.25]), [1, 2]).tolist()
    [0.75, 0.8125]
    """
    asked = _checked(p, q, n, logits, temperature)
    rates = _Rejection.apply(*asked.probabilities(), max(asked.counts))
    return asked.shaped(rates[:, [one - 1 for one in asked.counts]])


def _taken(p: Any, q: Any, factor: Any) -> tuple[Any, Any, Any]:
    """The sum of min(p, factor q) [N], its slope by the factor, and where p is above."""
    offer = factor[:, None] * q
    above = p > offer
    taken = torch.minimum(p, offer, out=offer).sum(-1)
    return taken, torch.mul(q, above, out=offer).sum(-1), above


def _root(start: Any, slope: Any, n: int) -> Any:
    """The factor f with f b = 1 - (1 - b)^n and f b = start + slope f; n where it is any."""

    def accepted(b: Any) -> Any:
        return -torch.expm1(n * torch.log1p(-b))

    low, high = slope.clamp(max=1), torch.ones_like(slope)
    for _ in range(26):
        b = (low + high) / 2
        over = accepted(b) * (b - slope) > start * b
        low, high = torch.where(over, low, b), torch.where(over, b, high)
    b = (low + high) / 2
    for _ in range(3):
        all_of = accepted(b)
        steep = n * (1 - b) ** (n - 1) * (b - slope) + all_of - start
        step = (all_of * (b - slope) - start * b) / torch.where(steep > 0, steep, torch.inf)
        b = torch.minimum(torch.maximum(b - step, slope), torch.ones_like(b))
    return torch.where(b > 0, accepted(b) / torch.where(b > 0, b, 1), n)


def _factor(p: Any, q: Any, n: int) -> Any:
    """rho of rows, by tangents: `taken` is concave in the factor, so that its tangent's root is below
    the root, and is no lower than the factor before."""
    factor = torch.ones_like(p[:, 0])
    # Where a look costs nothing it ends as soon as no factor moves.
    looks = p.device.type == "cpu"
    least = 2 * torch.finfo(p.dtype).eps
    for _ in range(16 if p.dtype == torch.float64 else 10):
        taken, slope, _ = _taken(p, q, factor)
        found = _root((taken - slope * factor).clamp(min=0), slope, n)
        before, factor = factor, torch.maximum(factor, found.clamp(max=n))
        if looks and not bool((factor > before * (1 + least)).any()):
            break
    return factor


class _Sequence(torch.autograd.Function):  # type: ignore[misc]
    """What k-SEQ accepts of n independent drafts at its best factor, [N]."""

    @staticmethod
    def forward(ctx: Any, p: Any, q: Any, n: int) -> Any:
        factor = _factor(p, q, n)
        taken, slope, above = _taken(p, q, factor)
        weight = n * (1 - taken / factor).clamp(min=0) ** (n - 1) / factor
        chance = weight * taken / factor
        steep = slope * (1 - weight) + chance
        share = torch.where(steep > 0, chance / torch.where(steep > 0, steep, 1), 0)
        # Of rows with no token in common every factor is as good, and the limit is 1.
        share = torch.where(taken > 0, share, 1)
        ctx.save_for_backward(above, factor, share)
        return taken.clamp(max=1)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Any) -> Any:
        above, factor, share = ctx.saved_tensors
        by_taken = (gradient * share)[:, None]
        return by_taken * ~above, (by_taken * factor[:, None]) * above, None


def k_seq_rate(
    p: Any, q: Any, n: int | Sequence[int], logits: bool = False, temperature: float = 1.0
) -> Any:
    """What SpecTr's k-SEQ (``k-seq``) accepts of n independent drafts, at its best factor rho.

    ``1 - (1 - b)^n`` with ``b = sum of min(p/rho, q)`` and rho the least factor with which the rule
    is lossless: the root of ``rho b = 1 - (1 - b)^n`` in [1, n]. It is found by tangents of ``rho b``,
    which is concave in rho, from below, at most 10 of them in float32 and 16 in float64, and the gradient
    is that of the root, by the implicit function theorem. Kinks are where ``p = rho q`` (such a
    token counts as below); at p = q and n > 1 the gradient is 0.

    Arguments, shapes and errors as :func:`alpha_star`, on any device; O(V) a step, for each n.

    >>> import torch, specgap as sg
    >>> rate = sg.torch.k_seq_rate(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]), 2)
    >>> round(rate.item(), 6)
    0.5
    """
    asked = _checked(p, q, n, logits, temperature)
    rows = asked.probabilities()
    return asked.shaped(torch.stack([_Sequence.apply(*rows, n) for n in asked.counts], -1))


def level_rate(
    p: Any,
    q: Any,
    n: int | Sequence[int],
    logits: bool = False,
    temperature: float = 1.0,
    law: Literal["with-replacement", "stratified"] = "with-replacement",
    straddle: Straddle = "once",
    levels: Sequence[float] | None = None,
) -> Any:
    """What rejection by level accepts in a few passes, as :mod:`specgap.kernels` makes them.

    ``with-replacement``: symmetric passes over n independent drafts, ``1 - s^n``, s the mass that
    is left of q; a last draw that happens to be a draft does not count. In the limit of many passes
    this is :func:`alpha_star`. ``stratified``: passes over
    the strata of q, cut in the order of token ids, and ``1 -`` what is left of p outside the
    certain tokens. ``levels`` are those of the rule unless given.

    The gradient is that of the rate which these passes attain, steps for the price included, not of
    their limit. It is one-sided at kinks: where a token is just given out whole or not at all, at
    ties of the heaviest tokens of q, and where a cut between strata is the end of a token. Which
    tokens are certain and which strata a token is in are taken as they are.

    Passes run over sums of tokens that they treat alike, in double precision where the device has
    it, and each token has the gradient of its sum. So a few runs over the row are all that costs:
    forward and backward of 16 rows of V = 131,072 and n = 4 took 2.7 times as long as those of
    softmax and ``sum(min(p, q))``, over strata 4.3 times, in one thread of a processor. Kept are two
    bytes a token besides the rows, which are in double precision for strata; some 200 MB more are in
    use for a while, however many the rows. Elsewhere than on a processor it was not timed.

    Other arguments, shapes and errors as :func:`alpha_star`, on any device. O(V) a row.

    >>> import torch, specgap as sg
    >>> p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.75, 0.25])
    >>> sg.torch.level_rate(p, q, 2, law="stratified").item()
    1.0
    """
    if law not in ("with-replacement", "stratified"):
        raise ValueError(f"law: {law!r}; level_rate is for with-replacement and stratified")
    if straddle not in get_args(Straddle):
        raise ValueError(f"straddle: {straddle!r}; there are {' and '.join(get_args(Straddle))}")
    usual = IID_LEVELS if law == "with-replacement" else STRATA_LEVELS
    passes = tuple(usual if levels is None else levels)
    if not passes or not all(0 <= level < 1 for level in passes) or passes[-1] != 0:
        raise ValueError(f"levels are {passes}; give numbers in [0, 1), the last of which is 0")
    asked = _checked(p, q, n, logits, temperature)
    wide = asked
    if law == "stratified" and asked.p.device.type != "mps":
        # Shares of what is behind certain tokens: in float32 their slopes overflow to NaN.
        wide = asked._replace(dtype=torch.float64)
    rows = wide.probabilities()
    cut = None if law == "with-replacement" else straddle
    return asked.shaped(
        torch.stack([Passed.apply(*rows, n, cut, passes, asked.dtype) for n in asked.counts], -1)
    )


def expected_tokens(rates_by_depth: Any) -> Any:
    """Tokens a round of a chain or tree, the last one of the target included, of the rates by depth.

    ``1 + a_1 + a_1 a_2 + .. + a_1 .. a_K``: a_d is the probability that one of the drafts at depth d
    is accepted where those before it were. ``rates_by_depth`` is a tensor [.., K], or a list of K
    tensors, one a depth, which are broadcast; the result is [..], differentiable. Take the mean
    over positions of the result: the product of means is something else.

    A product of rates is right where a_d does not depend on *which* tokens were accepted before it:
    rows of independent depths, as of heads that do not see earlier drafts' tokens against a target
    that does not either, or a rate that is the same after all of them. Of rows that were logged
    along a text it is an approximation: a_2 is then of the text's token, and which token is accepted
    at depth 1 depends on p and q there, so that ``E[a_1 a_2]`` under the rule differs by their
    covariance, of either sign. :func:`specgap.length` and :func:`specgap.tree` count rounds along
    the text itself and have no such error.

    Raises ``TypeError`` for what is no tensor of floating point, ``ValueError`` for shapes that do
    not fit or no depth. Rates outside [0, 1] are not looked for. O(K).

    >>> import torch, specgap as sg
    >>> sg.torch.expected_tokens(torch.tensor([0.5, 0.5])).item()
    1.75
    """
    if isinstance(rates_by_depth, (list, tuple)):
        depths = rates_by_depth
        for k, rates in enumerate(depths):
            if not isinstance(rates, torch.Tensor):
                raise TypeError(
                    f"rates_by_depth: depth {k} is {type(rates).__name__}; give a tensor of rates"
                )
        if not depths:
            raise ValueError("rates_by_depth: is empty; give the rates of at least one depth")
        try:
            rates_by_depth = torch.stack(torch.broadcast_tensors(*depths), -1)
        except RuntimeError:
            shapes = ", ".join(str(tuple(rates.shape)) for rates in depths)
            raise ValueError(
                f"rates_by_depth: depths of shapes {shapes} do not fit each other"
            ) from None
    if not isinstance(rates_by_depth, torch.Tensor) or not rates_by_depth.is_floating_point():
        kind = getattr(rates_by_depth, "dtype", type(rates_by_depth).__name__)
        raise TypeError(f"rates_by_depth: is {kind}; give a tensor of rates [.., K], or a list of such")
    if rates_by_depth.ndim == 0 or rates_by_depth.shape[-1] == 0:
        raise ValueError(
            f"rates_by_depth: has shape {tuple(rates_by_depth.shape)}; give rates [.., K], K >= 1"
        )
    return 1 + rates_by_depth.cumprod(-1).sum(-1)


def drafter_loss(
    target_logits: Any,
    draft_logits: Any,
    n: int = 1,
    *,
    rate: Callable[..., Any] = alpha_star,
    d2t: Any = None,
    mask: Any = None,
    temperature: float = 1.0,
) -> Any:
    """A loss for a drafter with a row for each (start, depth): minus the sum over depths of the
    mean rate.

    ``-sum over j of the mean over s of rate(p_(s+j), q_(s,j))``, a number in [-K, 0].
    ``target_logits`` [B, T, V] and ``draft_logits`` [B, T, K, Vd] are aligned as
    :meth:`specgap.Drafter.add` has them: row (s, j) is about the token at s + j. ``mask`` [B, T] is
    true where a token counts; a row counts if the tokens from s to s + j do. ``d2t`` [Vd]: the
    draft's token i is the target's i + d2t[i], and q is 0 elsewhere. ``rate`` is :func:`alpha_star`
    of ``n`` drafts (of one: the sum of min(p, q)), or :func:`level_rate`, the rate of a few passes,
    :func:`rrs_rate` or :func:`k_seq_rate`.

    The gradient is that of the rate, by both models' logits; detach the target's if they have one.
    Exact but for rounding. Raises ``TypeError`` and ``ValueError`` as :func:`alpha_star` does, and
    ``ValueError`` where no row counts. Time that of ``rate`` for B T K rows; with ``d2t`` rows of
    the draft are copied at the target's size.

    >>> import torch, specgap as sg
    >>> target, draft = torch.randn(2, 5, 9), torch.randn(2, 5, 3, 9, requires_grad=True)
    >>> sg.torch.drafter_loss(target, draft, n=2).backward()
    >>> bool((draft.grad[:, -1, 1:] == 0).all()), bool((draft.grad[:, 0] != 0).any())
    (True, True)
    """
    for name, rows, axes in (
        ("target_logits", target_logits, 3),
        ("draft_logits", draft_logits, 4),
    ):
        if not isinstance(rows, torch.Tensor):
            raise TypeError(f"{name}: is {type(rows).__name__}; give a torch tensor")
        if rows.ndim != axes:
            wanted = "[B, T, V]" if axes == 3 else "[B, T, K, Vd]"
            raise ValueError(f"{name}: has shape {tuple(rows.shape)}; give {wanted}")
    batch, length, size = target_logits.shape
    if draft_logits.shape[:2] != target_logits.shape[:2]:
        raise ValueError(
            f"draft_logits: has shape {tuple(draft_logits.shape)} and target_logits "
            f"{tuple(target_logits.shape)}; both have a row for each of the same B x T tokens"
        )
    drafted = draft_logits.shape[3]
    ids = None
    if d2t is not None:
        offsets = torch.as_tensor(d2t, device=draft_logits.device)
        if offsets.shape != (drafted,):
            raise ValueError(
                f"d2t: has shape {tuple(offsets.shape)}; give one offset a draft's token"
            )
        ids = torch.arange(drafted, device=offsets.device) + offsets
        if bool(((ids < 0) | (ids >= size)).any()) or len(ids.unique()) != drafted:
            raise ValueError("d2t: makes two tokens one, or a token that the target does not have")
    counted = torch.ones(batch, length, dtype=torch.bool, device=target_logits.device)
    if mask is not None:
        counted = torch.as_tensor(mask, device=target_logits.device) != 0
        if counted.shape != (batch, length):
            raise ValueError(f"mask: has shape {tuple(counted.shape)}; give {[batch, length]}")
    total: Any = None
    whole = counted
    for j in range(min(draft_logits.shape[2], length)):
        if j:
            whole = whole[:, :-1] & counted[:, j:]
        if not bool(whole.any()):
            break
        p = target_logits[:, j:][whole]
        q = draft_logits[:, : length - j, j][whole]
        if ids is not None:
            q = torch.full_like(q[:, :1], -torch.inf).expand(-1, size).index_copy(-1, ids, q)
        mean = rate(p, q, n, logits=True, temperature=temperature).mean()
        total = -mean if total is None else total - mean
    if total is None:
        raise ValueError("mask: no token counts; give a batch in which some do")
    return total
