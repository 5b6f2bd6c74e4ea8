"""Verifiers of the literature, each written from its definition: examples for
:func:`specgap.evaluate`, templates for rules of your own, and some that are wrong on purpose.

===========================  ===================  ==============================================
rule                         drafts               lossless
===========================  ===================  ==============================================
:func:`token`                n = 1                yes: speculative sampling
:func:`rrs`                  with-replacement     yes: recursive rejection
:func:`rrs_wo`               without-replacement  yes: the same, q renormalised after a rejection
:func:`k_seq`                with-replacement     yes: SpecTr's rule at a fixed factor
:func:`one_hot`              top                  yes: drafts taken for certain, as EAGLE does
:func:`exact_match`          any                  yes: the target's own draw
:func:`typical`              any                  no, by design: Medusa's typical acceptance
:func:`lenient`              any                  no, by design: a threshold on the ratio
:func:`residual_of_target`   n = 1                no: corrections are drawn from p
:func:`subtracts_drafted`    n = 1                no: q is subtracted at the draft alone
:func:`rrs_on_distinct`      without-replacement  no: distinct drafts verified as independent
===========================  ===================  ==============================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._evaluate import Branching, Floats, Integers

_Accepted = tuple[int, int | None]


def _residual(p: Floats, q: Floats) -> Floats:
    """What is left of p where a draft from q was rejected; p where nothing is."""
    left = np.maximum(p - q, 0.0)
    total = left.sum()
    return left / total if total > 0 else p


def _kept(p: float, q: float) -> float:
    """The chance to keep a draft: min(1, p/q)."""
    return 0.0 if p <= 0 else 1.0 if p >= q else p / q


def _drawn(law: Floats, rng: Branching) -> int:
    return rng.choice(len(law), p=law)


def token(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> _Accepted:
    """Speculative sampling (Leviathan et al. 2023, Chen et al. 2023): keep the draft x with
    min(1, p(x)/q(x)), else draw from (p - q)+."""
    x = int(drafts[0])
    if rng.branch(_kept(p[x], q[x])):
        return x, 0
    return _drawn(_residual(p, q), rng), None


def rrs(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> _Accepted:
    """Recursive rejection sampling over independent drafts (SpecInfer): each rejection leaves
    the residual for the next draft."""
    for slot, x in enumerate(int(x) for x in drafts):
        if rng.branch(_kept(p[x], q[x])):
            return x, slot
        p = _residual(p, q)
    return _drawn(p, rng), None


def rrs_wo(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> NDArray[np.float64]:
    """The same for drafts without replacement (Sequoia, RSD): q is renormalised over what is
    left. Returns the law of the output."""
    law, reached = np.zeros_like(p), 1.0
    for x in (int(x) for x in drafts):
        kept = _kept(p[x], q[x])
        law[x] += reached * kept
        reached *= 1.0 - kept
        if reached <= 0:
            return law
        p = _residual(p, q)
        q = q.copy()
        q[x] = 0.0
        q /= q.sum() if q.sum() > 0 else 1.0
    return law + reached * p


def k_seq(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> _Accepted:
    """SpecTr's sequential selection: each of n independent drafts is kept with
    min(1, p/(f q)), f being the least factor in [1, n] with which the rule is lossless."""
    n = len(drafts)
    low, factor = 1.0, float(n)
    # Lossless is f b >= 1 - (1 - b)^n, b = sum of min(p/f, q), from one factor on.
    for _ in range(52):
        middle = 0.5 * (low + factor)
        beta = float(np.minimum(p / middle, q).sum())
        if middle * beta >= 1.0 - (1.0 - beta) ** n:
            factor = middle
        else:
            low = middle
    flow = np.minimum(p / factor, q)
    beta = float(flow.sum())
    for slot, x in enumerate(int(x) for x in drafts):
        if rng.branch(_kept(p[x], factor * q[x])):
            return x, slot
    # A kept draft is x with flow(x)/beta, whichever slot it is.
    left = np.maximum(p - flow * ((1.0 - (1.0 - beta) ** n) / beta if beta > 0 else 0.0), 0.0)
    return _drawn(left if left.sum() > 0 else p, rng), None


def one_hot(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> NDArray[np.float64]:
    """EAGLE's posterior for its likeliest tokens: each draft is kept with the share of p that is
    left at it, as if it had been certain. Returns the law of the output."""
    law, left = np.zeros_like(p), p.copy()
    for x in (int(x) for x in drafts):
        law[x] += left[x]
        left[x] = 0.0
    return law + left


def exact_match(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> _Accepted:
    """The target's own draw, accepted if it was drafted."""
    token = _drawn(p, rng)
    slots = np.flatnonzero(drafts == token)
    return token, int(slots[0]) if len(slots) else None


def typical(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> _Accepted:
    """Medusa's typical acceptance: keep the first draft with p above min(0.3, 0.09 e^H), H the
    negative entropy; else the likeliest token. Lossy by design."""
    entropy = -float(np.sum(p[p > 0] * np.log(p[p > 0])))
    threshold = min(0.3, 0.09 * np.exp(-entropy))
    for slot, x in enumerate(int(x) for x in drafts):
        if p[x] > threshold:
            return x, slot
    return int(np.argmax(p)), None


def lenient(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> _Accepted:
    """Rejection sampling that keeps whatever has p/q above 0.6. Lossy by design."""
    for slot, x in enumerate(int(x) for x in drafts):
        if p[x] > 0.6 * q[x] or rng.branch(_kept(p[x], q[x])):
            return x, slot
        p = _residual(p, q)
    return _drawn(p, rng), None


def residual_of_target(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> _Accepted:
    """A bug: after a rejection the token is drawn from p, and not from what is left of it."""
    x = int(drafts[0])
    if rng.branch(_kept(p[x], q[x])):
        return x, 0
    return _drawn(p, rng), None


def subtracts_drafted(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> _Accepted:
    """A bug that an engine had: q is subtracted at the rejected draft alone."""
    x = int(drafts[0])
    if rng.branch(_kept(p[x], q[x])):
        return x, 0
    left = p.copy()
    left[x] = max(left[x] - q[x], 0.0)
    return _drawn(left if left.sum() > 0 else p, rng), None


def rrs_on_distinct(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> _Accepted:
    """A bug: drafts without replacement, verified as if each had been drawn from all of q. Give
    it ``scheme="without-replacement"``."""
    return rrs(p, q, drafts, rng)


#: The names of earlier versions.
single, target_only = token, exact_match
