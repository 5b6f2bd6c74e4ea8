"""Verifiers of the literature, each written from its definition: examples for
:func:`specgap.evaluate`, templates for rules of your own, and some that are wrong on purpose.

===========================  ===================  ==============================================
rule                         drafts               lossless
===========================  ===================  ==============================================
:func:`token`                n = 1                yes: speculative sampling
:func:`rrs`                  with-replacement     yes: recursive rejection
:func:`level_4`              stratified           yes: rejection by falling level
:func:`level_4_iid`          with-replacement     yes: the same, all drafts at once
:func:`by_levels`            independent          yes: levels of one's own, exact
:func:`rrs_wo`               without-replacement  yes: the same, q renormalised after a rejection
:func:`shared_gumbel`        without-replacement  yes: draft and target have one noise
:func:`gls`                  with-replacement     yes: a noise a draft, and all for the target
:func:`k_seq`                with-replacement     yes: SpecTr's rule at a fixed factor
:func:`one_hot`              top                  yes: drafts taken for certain, as EAGLE does
:func:`exact_match`          any                  yes: the target's own draw
:func:`typical`              any                  no, by design: Medusa's typical acceptance
:func:`lenient`              any                  no, by design: a threshold on the ratio
:func:`residual_of_target`   n = 1                no: corrections are drawn from p
:func:`subtracts_drafted`    n = 1                no: q is subtracted at the draft alone
:func:`rrs_on_distinct`      without-replacement  no: distinct drafts verified as independent
===========================  ===================  ==============================================

:func:`draft_strata`, :func:`verify_level` and :func:`verify_tree` are the functions of the guide
``docs/guide/better-drafts.md``: one draft from each stratum of q; rejection by level at one
position; traversal of a tree. :func:`children` shapes trees at one price. They cut q in the order of token ids and sort nothing that is as long
as the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._drafting import Floats, Integers, Straddle, Stratum, by_weight, drawn
from ._drafting import strata as _strata
from ._evaluate import Branching
from ._sequential import Sequential

_Accepted = tuple[int, int | None]

#: Levels of the passes over strata, and over i.i.d. drafts.
STRATA_LEVELS = (0.8, 0.5, 0.2, 0.0)
IID_LEVELS = (0.8, 0.6, 0.45, 0.3, 0.15, 0.0, 0.0, 0.0)
#: Levels of :func:`verify_tree` at the root, and below it.
TRAVERSAL = ((0.0,), (0.0,))
TRAVERSAL_4 = (STRATA_LEVELS, (0.0,))


def _residual(p: Floats, q: Floats) -> Floats:
    """What is left of p where a draft from q was rejected; p where nothing is."""
    left = np.maximum(p - q, 0.0)
    total = left.sum()
    return left / total if total > 0 else p


def _kept(p: float, q: float) -> float:
    """The chance to keep a draft: min(1, p/q)."""
    return 0.0 if p <= 0 else 1.0 if p >= q else p / q


def _drawn(law: Floats, rng: Branching | np.random.Generator) -> int:
    return int(rng.choice(len(law), p=law))


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


def shared_gumbel(p: Floats, q: Floats, noise: Floats, n: int) -> tuple[list[int], int, int | None]:
    """Drafts and output of one noise, E ~ Exp(1) for each token (lalamo, pull request 209; one draft:
    Daliri, Musco, Suresh): the n tokens of least E/q, in this order, the token of least E/p, and
    which of the drafts it is, or None. The output follows p whatever q is.

    Draft and target each need their own row and the noise of the place: ``noise =
    numpy.random.default_rng([seed, place]).exponential(size=len(p))``. Tokens of q = 0 are no drafts.
    A text is then the one that the target writes alone from the same noise. O(V log V)."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        of_draft, of_target = (np.where(row > 0, noise / row, np.inf) for row in (q, p))
    order = np.argsort(of_draft, kind="stable")[:n]
    drafts = [int(x) for x in order if q[x] > 0]
    token = int(of_target.argmin())
    return drafts, token, drafts.index(token) if token in drafts else None


def gls(p: Floats, q: Floats, noise: Floats) -> tuple[list[int], int, int | None]:
    """The same with a noise of its own for each draft, ``noise[k]`` (GLS, 2506.05632): draft k is the
    token of least noise[k]/q, the output that of least noise[k]/p over all k. Drafts are
    independent, and a text is the one that the target writes alone from the same noises. O(nV)."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        of_draft, of_target = (np.where(row > 0, noise / row, np.inf) for row in (q, p))
    drafts = [int(x) for x in of_draft.argmin(axis=1)]
    token = int(of_target.min(axis=0).argmin())
    return drafts, token, drafts.index(token) if token in drafts else None


def draft_strata(
    q: Floats, n: int, rng: Branching | np.random.Generator, straddle: Straddle = "once"
) -> Integers:
    """The sure tokens of q, then one token from each of the equal strata of the rest, cut in the
    order of token ids. A token over a cut is in two strata: it is drafted at most once, or in each
    for itself (``"independent"``). As many drafts as q has tokens where these are fewer than n.
    O(V), no sort."""
    return drawn(*_strata(q, n, straddle), rng)


def _cut(top: Floats, n: int) -> tuple[int, int, float]:
    """How many of n drafts are sure tokens, how many are of strata, and these over their mass."""
    sure, left = 0, 1.0
    while sure < min(n - 1, len(top)) and 0.0 < top[sure] >= left * (1 - 2**-40) / (n - sure):
        left -= float(top[sure])
        sure += 1
    strata = n - sure if left > 1e-9 else 0
    return sure, strata, strata / max(left, 1e-9)


def _accepted(price: Mapping[str, Any], q: Floats, factor: Floats) -> Floats:
    """How likely drafts are accepted whose tokens have such a q and are drafted ``factor`` times it."""
    rows = np.array([np.interp(q, price["q"], column) for column in zip(*price["ratio"])]).T
    ratio = np.array([np.interp(c, price["factor"], row) for c, row in zip(factor, rows)])
    return np.minimum(ratio / np.maximum(factor, 1.0), 1.0)


def children(price: Mapping[str, Any], q: Floats, depth: int = 0, chance: float = 1.0) -> int:
    """How many children a node gets whose row of the draft is q, so many levels below the text.

    ``price`` is ``best-tree.price.json`` of ``specgap tree --price``; ``price["price"]`` may be set
    anew for every round. ``chance`` is how likely the node is accepted: 1 for the text, and for a
    child :func:`chance_of_child`. The children with most value are taken, each at its chance less
    the price, with what lies ahead of it."""
    left, worth = price["levels"] - depth, chance / price["price"]
    if left < 1 or worth <= 1.0:
        return 0
    top = np.sort(np.partition(q, -min(len(q), price["heaviest"]))[-price["heaviest"] :])[::-1]
    values = [0.0]
    for n in range(1, price["children"] + 1):
        sure, strata, factor = _cut(top, n)
        each = np.full(len(top), factor)
        each[:sure] = 1.0 / top[:sure]
        rest = np.interp(factor, price["factor"], price["rest"]) / max(factor, 1.0)
        worths = worth * np.append(_accepted(price, top, each), min(rest, 1.0))
        gains = worths - 1.0 + np.interp(worths, price["worth"], price["ahead"][left - 1])
        values.append(float(np.append(top * each, factor * max(1.0 - top.sum(), 0.0)) @ gains))
    return int(np.argmax(values))


def chance_of_child(
    price: Mapping[str, Any], q: Floats, n: int, token: int, chance: float = 1.0
) -> float:
    """How likely the child that drafted a token is accepted, one of n of a node with this row and
    chance: as :func:`children` takes it for the child."""
    rank = int((q > q[token]).sum() + (q[:token] == q[token]).sum())
    sure, _, factor = _cut(np.sort(q)[::-1][: price["heaviest"]], n)
    if rank >= price["heaviest"]:
        rest = np.interp(factor, price["factor"], price["rest"]) / max(factor, 1.0)
        return chance * float(min(rest, 1.0))
    own = np.array([1.0 / q[token] if rank < sure else factor])
    return chance * float(_accepted(price, q[[token]], own)[0])


def _reach(parts: list[Stratum], alive: list[Floats], sums: list[float], j: int) -> list[float]:
    """What stratum j's first token, those between and its last are multiplied by, for the
    probability that they are drafted and no draft is accepted yet: messages along the chain."""
    other, same = 1.0, 0.0  # all before are alive, and the last is not, or is, the shared token
    for part, law, total in zip(parts[:j], alive, sums):
        (first, others), (again, besides) = part.link
        first, others = other * first + same * again, other * others + same * besides
        end = float(law[-1])
        other, same = first * float(law[0]) + others * (total - float(law[0]) - end), others * end
    after, shared = 1.0, 1.0  # all behind are alive, where the shared token is not, or is, drafted
    for part, law, total in zip(parts[:j:-1], alive[:j:-1], sums[:j:-1]):
        begin, end = float(law[0]), float(law[-1])
        rest = (total - begin - end) * after + end * shared
        after, shared = (one * begin * after + many * rest for one, many in part.link)
    (first, others), (again, besides) = parts[j].link
    first, others = other * first + same * again, other * others + same * besides
    return [first * after, others * after, others * shared]


class _Drafts:
    """The drafts of a row, given that none of them was accepted so far."""

    def __init__(self, q: Floats, n: int, straddle: Straddle, iid: bool = False) -> None:
        own = Stratum(0, q, ((1.0, 1.0), (1.0, 1.0)))
        self.certain, self.parts = ([], [own] * n) if iid or not n else _strata(q, n, straddle)
        self.alive = [part.law.copy() for part in self.parts]
        self.sums = [1.0] * len(self.parts)

    def mass(self, j: int, reach: list[float]) -> Floats:
        """The probability that stratum j drafted each of its tokens, and nothing is accepted."""
        first, others, last = reach
        mass = self.alive[j] * others
        mass[-1], mass[0] = self.alive[j][-1] * last, self.alive[j][0] * first
        return mass

    def survival(self) -> float:
        """The probability that nothing is accepted."""
        j = len(self.parts) - 1
        return float(self.mass(j, self.reach(j)).sum()) if self.parts else 1.0

    def reach(self, j: int) -> list[float]:
        return _reach(self.parts, self.alive, self.sums, j)

    def take(self, j: int, left: Floats, level: float, slot: int, token: int) -> float:
        """Takes of ``left`` what stratum j accepts in a pass at a level; the chance that its draft,
        which is this token, is accepted."""
        part, law = self.parts[j], self.alive[j]
        x = token - part.start
        if not 0 <= x < len(law):
            raise ValueError(f"draft {slot} is {token}, outside its stratum of this q")
        first, others, last = reach = self.reach(j)
        mass = self.mass(j, reach)
        here = left[part.start : part.start + len(law)]
        give = mass * -level
        give += here
        give *= 1.0 / (1.0 - level)
        np.clip(give, 0.0, mass, out=give)
        chance = _kept(float(give[x]), float(mass[x]))
        here -= give
        mass -= give
        if others > 0.0:
            np.multiply(mass, 1.0 / others, out=law)
        law[-1] = mass[-1] / last if last > 0.0 else 0.0
        law[0] = mass[0] / first if first > 0.0 else 0.0
        self.sums[j] = float(law.sum())
        return chance


def verify_level(
    p: Floats,
    q: Floats,
    drafts: Integers,
    rng: Branching,
    straddle: Straddle = "once",
    levels: tuple[float, ...] = STRATA_LEVELS,
) -> _Accepted:
    """Rejection by falling level, for drafts of :func:`draft_strata`. At level t the draft of a
    stratum is accepted with what brings the ratio of what is left of p to its own law, both given
    that nothing is accepted yet, down to t; level 0 alone is recursive rejection. Strata from the
    last to the first in each pass. A draw from what is left at last may be a sure draft, which
    counts as accepted. O(V) a pass."""
    own, left = _Drafts(q, len(drafts), straddle), p.copy()
    sure = len(own.certain)
    for level in levels:
        for j in reversed(range(len(own.parts))):
            x = int(drafts[sure + j])
            if rng.branch(own.take(j, left, level, sure + j, x)):
                return x, sure + j
    left = np.maximum(left, 0.0)
    token = _drawn(left / left.sum() if left.sum() > 0 else p, rng)
    slots = np.flatnonzero(drafts[:sure] == token)
    return token, int(slots[0]) if len(slots) else None


def verify_tree(
    p: Sequence[Floats] | Floats,
    q: Sequence[Floats] | Floats,
    tokens: Sequence[int],
    parents: Sequence[int],
    rng: Branching | np.random.Generator,
    levels: tuple[tuple[float, ...], tuple[float, ...]] = TRAVERSAL_4,
    straddle: Straddle = "once",
    slots: Sequence[Sequence[int]] | None = None,
    iid: bool = False,
) -> tuple[list[int], int]:
    """Traversal verification by levels: the nodes that are kept, from the root on, and the next
    token. Row 0 is the text and row i + 1 drafted node i, of which ``parents`` has the row of its
    parent. ``p`` has the target's row behind the text and each node, ``q`` the draft's, read where
    there are children; these are drafts of :func:`draft_strata`, in its order. ``slots`` has the
    nodes of each row's drafts where two drafts of a row are one node; ``iid`` is for children that
    are drawn from all of q each.

    A node is *offered* a weight, the text 1. It offers its children what it takes for them, and is
    kept with what that leaves, or refused. It may be offered again, and knows what was refused.
    Each node has one coin: it is refused while the coin is below the chance that all its offers so
    far were refused. ``levels`` are those of passes at the root, and below it. O(V) a pass and
    visit."""
    if slots is None:
        slots = [[i for i, row in enumerate(parents) if row == x] for x in range(len(tokens) + 1)]
    coins, refused = [rng.random() for _ in tokens], [1.0] * len(tokens)
    drafts: dict[int, _Drafts] = {}

    def offer(x: int, weight: float) -> tuple[list[int], int] | None:
        nodes = slots[x]
        if x not in drafts:
            drafts[x] = _Drafts(q[x], len(nodes), straddle, iid)
            certain = drafts[x].certain
            if sorted(certain) != sorted(tokens[i] for i in nodes[: len(certain)]):
                raise ValueError(f"row {x}: its first drafts are not {certain}, sure by its q")
        own = drafts[x]
        sure, alive = len(own.certain), own.survival()
        left = p[x] * (weight * alive)
        for level in levels[x > 0]:
            for j in range(len(own.parts)) if iid else reversed(range(len(own.parts))):
                i = nodes[sure + j]
                chance = own.take(j, left, level, sure + j, tokens[i])
                if chance > 0.0 and (kept := offer(i + 1, chance)):
                    return [i, *kept[0]], kept[1]
        alive = own.survival()
        for i in nodes[:sure]:
            chance = _kept(left[tokens[i]], alive)
            if chance > 0.0 and (kept := offer(i + 1, chance)):
                return [i, *kept[0]], kept[1]
            left[tokens[i]] -= chance * alive
            alive *= 1.0 - chance
        left = np.maximum(left, 0.0)
        if x > 0:
            refused[x - 1] *= 1.0 - _kept(float(left.sum()), alive)
            if coins[x - 1] < refused[x - 1]:
                return None
        return [], _drawn(left / left.sum() if left.sum() > 0 else p[x], rng)

    kept = offer(0, 1.0)
    assert kept is not None  # the text is kept
    return kept


def level_share(p: Floats, q: Floats, n: int, token: int) -> float:
    """How often a draft was accepted where ``level-4`` over law ``stratified`` put out this token: the
    part of p that its passes give out. 1 of a sure token. O(V log V)."""
    order = by_weight(q)
    own, left = _Drafts(q[order], n, "once"), p[order].copy()
    places = np.flatnonzero(order == token)
    if not len(places) or p[token] <= 0.0:
        return 0.0
    place = int(places[0])
    if place in own.certain:
        return 1.0
    for level in STRATA_LEVELS:
        for j in reversed(range(len(own.parts))):
            own.take(j, left, level, j, own.parts[j].start)
    return _kept(max(float(p[token] - left[place]), 0.0), float(p[token]))


def level_4(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> _Accepted:
    """:func:`verify_level` for law ``stratified``, which cuts q heaviest token first."""
    order = np.argsort(-q, kind="stable")
    token, slot = verify_level(p[order], q[order], np.argsort(order)[drafts], rng)
    return int(order[token]), slot


def by_levels(levels: Sequence[float] = STRATA_LEVELS, *, name: str | None = None) -> Sequential:
    """Rejection by falling level over independent drafts, i.i.d. or each of its own row, as a rule that
    is exact at any vocabulary: from the last draft to the first at each level, in levels that fall to
    0. At level t a draft x is kept with min(1, (p/q - t)/(1 - t)), p being what is left of the target
    and q the draft's law given that it was not kept yet. Lossless where the last level is 0, and for
    independent drafts never below alpha* (1 - alpha*/4) (docs/theory/level-rule.md, Theorem G). Level 0
    alone is recursive rejection. O(V) a turn.

    >>> import specgap as sg
    >>> p, q = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    >>> found = sg.evaluate(sg.rules.by_levels((0.5, 0.0)), p, q, 2)
    >>> found.lossless, found.acceptance[0] > sg.acceptance("rrs", p, q, 2).value
    ('exact', True)
    """
    falling = [float(level) for level in levels]
    if not falling or falling != sorted(falling, reverse=True) or falling[0] >= 1 or falling[-1] < 0:
        raise ValueError(f"levels: {falling} do not fall from below 1 to 0; give such as (0.8, 0.5, 0.0)")

    def step(p: Floats, q: Floats, i: int, n: int) -> tuple[Floats, Floats]:
        level = falling[i * len(falling) // n]
        give = np.clip((p - level * q) / (1.0 - level), 0.0, q)
        left = np.maximum(p - give, 0.0)
        total = left.sum()
        return np.where(q > 0, give / q, 0.0), left / total if total > 0 else p

    return Sequential(
        step,
        name=name or f"levels {' '.join(f'{one:g}' for one in falling)}",
        words=f"rejection at levels {', '.join(f'{one:g}' for one in falling)}",
        digest=repr(falling),
        order=lambda n: [*reversed(range(n))] * len(falling),
    )


def level_4_iid(p: Floats, q: Floats, drafts: Integers, rng: Branching) -> _Accepted:
    """Eight passes over all of n independent drafts at once. In a pass a draft of token x rings
    with the chance e(x), at an even moment, and the first to ring is accepted: any of those that
    ring is the first with the same chance."""
    n, s = len(drafts), float(q.sum())
    left, law = p.copy(), q.copy()
    for level in IID_LEVELS:
        if s <= 0.0:
            break
        top = price = n * s ** (n - 1)
        over = left - level * top * law
        for _ in range(3):  # the price falls from step to step, so that left stays >= 0
            give = np.clip(over / max(price - level * top, 1e-300), 0.0, law)
            rest = max(s - float(give.sum()), 0.0)
            price = sum(s**i * rest ** (n - 1 - i) for i in range(n))
            paid, price = price, max(price, level * top)
        rung = [k for k, x in enumerate(drafts) if rng.branch(_kept(give[x], law[x]))]
        if rung:
            slot = rung[int(rng.choice(len(rung)))]
            return int(drafts[slot]), slot
        left = np.maximum(left - paid * give, 0.0)
        law -= give
        s = rest
    return _drawn(left / left.sum() if left.sum() > 0 else p, rng), None


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
