"""Bring your own verifier: is it lossless, how much does it accept, and how far is that from
alpha*?

A verifier is a function ``verifier(p, q, drafts, rng)`` of the target's row p, the draft's row q
(float64 arrays of V), the n drafted tokens in the order in which they were drawn, and random
numbers. It returns one of

- a token: the output;
- ``(token, accepted)``: the output, and which draft it is, or None;
- an array of V: the law of the output given the drafts.

Under a law of :mod:`specgap.laws` q is what that law is drawn from: the draft's row, [n, V] of
independent drafts, or what was given, None included, of tuples and samplers. There may be fewer
than n drafts, and none.

Rules that return a law, or that draw through ``rng.branch``, ``rng.choice`` or comparisons with
``rng.random()``, are summed exactly where the drafts can be listed: every outcome is explored,
with its probability. Everything else is simulated.
"""

from __future__ import annotations

import html
import inspect
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, overload

import numpy as np

from . import _native
from ._arrays import ArrayLike, as_double, count, natural, typed
from ._drafting import Drawer, Floats, Integers
from ._drafting import drawer as drawer_of_table
from ._errors import Refused, by_any_name, unexpected
from ._logs import Log, LogLike, PathLike
from ._names import LawName
from ._problems import save_problem
from ._progress import Progress, shown
from ._sequential import LAW, Rivals, Sequential, SequentialLaw, refuse_law, under
from ._tables import is_table
from .laws import MOST_TUPLES, Law, given, without_padding

if TYPE_CHECKING:
    from ._evaluate_log import LogEvaluation

_Result = TypeVar("_Result")
Verifier: TypeAlias = "Callable[[Floats, Floats, Integers, Branching], Any]"

#: Runs of a verifier that an exact sum may take.
_MOST_RUNS = 400_000
#: Entries of the laws of all tuples' outputs: 0.4 GB.
_MOST_ENTRIES = 50_000_000
#: Decisions of one run: a rule that loops until a coin falls may make any number of them, and
#: where each run goes one round further than the last all of them take the square of this.
_MOST_DECISIONS = 1_000
#: Total variation below which a rule counts as lossless where its law is summed in floats.
_TOLERANCE = 1e-9


class _NotEnumerable(Exception):
    """The verifier's random numbers cannot be explored."""


class Branching:
    """The random numbers of a verifier. Where outcomes are explored, each call goes through
    all that have a positive probability; else it draws."""

    def branch(self, prob: float) -> bool:
        """True with this probability."""
        return self.choice(2, p=(1.0 - _probability(prob), _probability(prob))) == 1

    def choice(self, a: int | Sequence[int], p: ArrayLike = None) -> int:
        """One of the tokens of ``a``, or of 0 .. a-1: in proportion to ``p``, or evenly."""
        tokens = range(a) if isinstance(a, (int, np.integer)) else a
        weights = np.full(len(tokens), 1.0) if p is None else np.asarray(p, dtype=np.float64)
        total = float(weights.sum())
        if weights.shape != (len(tokens),) or not (weights >= 0).all() or not total > 0:
            raise ValueError(
                f"rng.choice: p has {weights.size} weights for {len(tokens)} tokens, sum {total}; "
                f"give one for each, none below 0, not all 0"
            )
        return int(tokens[self._decide(weights / total)])

    def random(self) -> Any:
        """A number drawn evenly from [0, 1)."""
        raise NotImplementedError

    def seed(self) -> int:
        """A seed below 2^62 for another library's random numbers. A rule that asks for it is
        simulated: what is drawn from them cannot be explored."""
        raise NotImplementedError

    def _decide(self, probabilities: Floats) -> int:
        raise NotImplementedError


def _probability(prob: Any) -> float:
    value = float(prob)
    if math.isnan(value):
        raise ValueError("rng.branch: the probability is nan; is it 0/0?")
    return min(max(value, 0.0), 1.0)


class _Drawing(Branching):
    """Draws. Other methods are those of a numpy Generator."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def random(self, *of: Any, **more: Any) -> Any:
        return self.generator.random(*of, **more)

    def choice(self, a: int | Sequence[int], p: ArrayLike = None, **more: Any) -> Any:
        return self.generator.choice(a, p=p, **more) if more else super().choice(a, p)

    def branch(self, prob: float) -> bool:
        return bool(self.generator.random() < _probability(prob))

    def seed(self) -> int:
        return int(self.generator.integers(0, 2**62))

    def _decide(self, probabilities: Floats) -> int:
        at = int(np.searchsorted(np.cumsum(probabilities), self.generator.random(), side="right"))
        return min(at, int(np.flatnonzero(probabilities)[-1]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.generator, name)


class _Exploring(Branching):
    """Follows a script of outcomes, and the first possible one after its end."""

    def __init__(self, script: Sequence[int], known: Sequence[Floats]) -> None:
        self.script = list(script)
        self.known = known
        self.options: list[Floats] = []
        self.weight = 1.0

    def _decide(self, probabilities: Floats) -> int:
        at = len(self.options)
        if at == _MOST_DECISIONS:
            raise _NotEnumerable(f"one run of it makes more than {_MOST_DECISIONS:,} decisions")
        if at < len(self.known) and not np.array_equal(self.known[at], probabilities):
            raise _NotEnumerable("it draws from random numbers of its own")
        if at == len(self.script):
            self.script.append(int(np.flatnonzero(probabilities)[0]))
        outcome = self.script[at]
        self.options.append(probabilities)
        self.weight *= float(probabilities[outcome])
        return outcome

    def random(self, *of: Any, **more: Any) -> Any:
        if of or more:
            raise _NotEnumerable("it draws several numbers by rng.random(..)")
        return _Uniform(self, [0.0, 1.0])

    def choice(self, a: int | Sequence[int], p: ArrayLike = None, **more: Any) -> int:
        if more:
            raise _NotEnumerable(f"it calls rng.choice with {', '.join(more)}")
        return super().choice(a, p)

    def seed(self) -> int:
        raise _NotEnumerable("it draws from another library's random numbers")

    def __getattr__(self, name: str) -> Any:
        raise _NotEnumerable(f"it calls rng.{name}")


def _explored(run: Callable[[_Exploring], _Result]) -> Iterator[tuple[_Exploring, _Result]]:
    """Every outcome of a program that draws from what it is given, with what it drew; the
    probability is ``weight`` of that."""
    script: list[int] = []
    known: list[Floats] = []
    while True:
        rng = _Exploring(script, known)
        try:
            found = run(rng)
        except (AttributeError, RuntimeError, TypeError) as error:
            # What another library says of a number that it cannot compute with.
            if _Uniform.__name__ not in str(error):
                raise
            raise _NotEnumerable(_COMPUTES) from error
        yield rng, found
        path = list(zip(rng.script, rng.options))
        while path:
            outcome, probabilities = path.pop()
            later = np.flatnonzero(probabilities[outcome + 1 :])
            if len(later):
                script = [one for one, _ in path] + [outcome + 1 + int(later[0])]
                known = [options for _, options in path] + [probabilities]
                break
        else:
            return


_COMPUTES = "it computes with rng.random() beyond a comparison"


def _number(value: Any) -> float:
    try:
        return float(value)
    except (RuntimeError, TypeError, ValueError) as error:
        raise _NotEnumerable(_COMPUTES) from error


class _Uniform:
    """An even draw that is known by what it was compared with: scale U + shift, of which U is
    even in the stretch."""

    __array_ufunc__ = None

    def __init__(
        self, rng: _Exploring, stretch: list[float], scale: float = 1.0, shift: float = 0.0
    ) -> None:
        self._parts = (rng, stretch, scale, shift)

    def _below(self, limit: Any) -> bool:
        rng, stretch, scale, shift = self._parts
        bound = _number(limit) - shift
        if math.isnan(bound) or scale == 0.0:
            return 0.0 < bound
        bound /= scale
        low, high = stretch
        share = min(max((bound - low) / (high - low), 0.0), 1.0)
        # Below the bound, of U; of a falling function the other way round.
        under = rng._decide(np.array([1.0 - share, share])) == 1
        stretch[:] = [low, min(bound, high)] if under else [max(bound, low), high]
        return under == (scale > 0.0)

    def __lt__(self, limit: Any) -> bool:
        return self._below(limit)

    __le__ = __lt__

    def __gt__(self, limit: Any) -> bool:
        return not self._below(limit)

    __ge__ = __gt__

    def _affine(self, scale: float, shift: float) -> _Uniform:
        rng, stretch, own, by = self._parts
        return _Uniform(rng, stretch, own * scale, by * scale + shift)

    def __mul__(self, factor: Any) -> _Uniform:
        return self._affine(_number(factor), 0.0)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> _Uniform:
        return self._affine(1.0 / _number(divisor), 0.0)

    def __add__(self, term: Any) -> _Uniform:
        return self._affine(1.0, _number(term))

    __radd__ = __add__

    def __sub__(self, term: Any) -> _Uniform:
        return self._affine(1.0, -_number(term))

    def __rsub__(self, term: Any) -> _Uniform:
        return self._affine(-1.0, _number(term))

    def _opaque(self, *_: object, **__: object) -> Any:
        raise _NotEnumerable(_COMPUTES)

    __float__ = __int__ = __index__ = __bool__ = _opaque
    __array__ = __pow__ = __rpow__ = __rtruediv__ = _opaque

    def __eq__(self, other: object) -> bool:
        return bool(self._opaque())

    __hash__ = object.__hash__


@dataclass(frozen=True)
class _Outcome:
    """What a verifier returned: a law, or a token; and whether a draft was accepted, if it
    says so."""

    law: Floats | None
    token: int
    accepted: bool | None


def _outcome(result: Any, vocabulary: int, drafts: int) -> _Outcome:
    accepted: bool | None = None
    if isinstance(result, tuple):
        if len(result) != 2:
            raise ValueError(
                f"the verifier returned a tuple of {len(result)}; return a token, (token, index of "
                f"the accepted draft or None), or a law of {vocabulary}"
            )
        result, slot = result
        if slot is not None and not 0 <= int(slot) < drafts:
            raise ValueError(
                f"the verifier says that draft {int(slot)} was accepted; drafts are 0 to "
                f"{drafts - 1}, and None is for no draft"
            )
        accepted = slot is not None
    value, dtype = typed(result, "the verifier's result")
    if value.ndim == 0:
        token = int(value) if value.dtype.kind in "iu" else -1
        if not 0 <= token < vocabulary:
            raise ValueError(f"the verifier returned {result!r}; tokens are 0 to {vocabulary - 1}")
        return _Outcome(None, token, accepted)
    if value.size == 1 and value.dtype.kind in "iu":
        return _outcome(value.reshape(()), vocabulary, drafts)
    if value.shape != (vocabulary,) or dtype == "bfloat16":
        raise ValueError(
            f"the verifier returned an array of shape {value.shape}; a law has {vocabulary} entries"
        )
    law = value.astype(np.float64)
    total = float(law.sum())
    if not (law >= 0).all() or not abs(total - 1.0) <= 1e-3:
        raise ValueError(
            f"the verifier returned a law that sums to {total:.6g} with a least entry of {law.min():.6g}; "
            f"probabilities are >= 0 and sum to 1"
        )
    return _Outcome(law / total, -1, accepted)


class _Rule:
    """A verifier, called with one pair of rows."""

    def __init__(
        self, verifier: Verifier, p: Floats, q: Floats | None, most: int = _MOST_RUNS
    ) -> None:
        self.verifier, self.p, self.q = verifier, p, q
        self.runs, self.most = 0, most

    def __call__(self, drafts: Integers, rng: Branching) -> _Outcome:
        self.runs += 1
        # Of its own: a verifier may write to what it is given.
        q = cast("Floats", None if self.q is None else self.q.copy())
        result = self.verifier(self.p.copy(), q, drafts.copy(), rng)
        return _outcome(result, len(self.p), len(drafts))

    def explored(self, drafts: Integers) -> Iterator[tuple[float, _Outcome]]:
        """All outcomes, with their probabilities."""

        def run(rng: _Exploring) -> _Outcome:
            if self.runs > self.most:
                raise _NotEnumerable(f"its outcomes take more than {self.most:,} runs")
            return self(drafts, rng)

        for rng, found in _explored(run):
            yield rng.weight, found

    def law(self, drafts: Integers, *, again: bool) -> tuple[Floats, float]:
        """The law of the output given the drafts, and the probability that a draft is
        accepted (nan if the verifier does not say)."""
        law = np.zeros_like(self.p)
        accepted = 0.0
        for weight, found in self.explored(drafts):
            if found.law is None:
                law[found.token] += weight
            else:
                law += weight * found.law
            accepted += weight * (math.nan if found.accepted is None else found.accepted)
        if again:
            for _ in range(6):
                # One run more, so that what counts its calls is met at another of them.
                self(drafts, _Exploring([], []))
                other, _ = self.law(drafts, again=False)
                if not np.array_equal(law, other):
                    raise _NotEnumerable("it draws from random numbers of its own")
        return law, accepted


@dataclass(frozen=True)
class _Exact:
    """A rule on one pair of rows, summed."""

    tuples: Integers | list[Integers]
    probabilities: Floats
    laws: Floats
    output: Floats
    membership: float
    algorithmic: float
    total_variation: float

    def witness(self, p: Floats) -> tuple[list[int], int] | None:
        """The drafts after which the token that is put out too often comes most."""
        token = int(np.argmax(self.output - p))
        if not self.output[token] > p[token] or not len(self.tuples):
            return None
        at = int(np.argmax(self.probabilities * self.laws[:, token]))
        return [int(one) for one in self.tuples[at]], token


def _listed(
    q: Floats | None, n: int, scheme: str | Law, vocabulary: int
) -> tuple[Integers | list[Integers], Floats]:
    """All tuples of drafts, and their probabilities."""
    if isinstance(scheme, Law):
        if scheme.is_sampled:
            raise _NotEnumerable(f"the drafts of {scheme.name} can only be drawn")
        found = scheme.listed(q, vocabulary)
        if found is None:
            raise _NotEnumerable("its drafts have too many tuples to list")
        return found
    assert q is not None
    drawn = _native.DraftLaw(scheme, [float(x) for x in q], n)
    if drawn.count > MOST_TUPLES:
        raise _NotEnumerable(f"{drawn.count:,.0f} tuples of drafts are too many to list")
    return without_padding(*drawn.tuples())


def _summed(
    verifier: Verifier,
    p: Floats,
    q: Floats | None,
    n: int,
    scheme: str | Law,
    most: int = _MOST_RUNS,
) -> _Exact:
    tuples, probabilities = _listed(q, n, scheme, len(p))
    if len(tuples) * len(p) > _MOST_ENTRIES:
        raise _NotEnumerable(
            f"laws of {len(tuples):,} tuples of drafts over {len(p):,} tokens are too many to keep"
        )
    rule = _Rule(verifier, p, q, most)
    laws = np.zeros((len(tuples), len(p)))
    algorithmic = membership = 0.0
    for at, (drafts, probability) in enumerate(zip(tuples, probabilities)):
        laws[at], accepted = rule.law(drafts, again=at < 8)
        algorithmic += float(probability) * accepted
        membership += float(probability) * float(laws[at][np.unique(drafts)].sum())
    output = np.array([math.fsum(column) for column in (laws * probabilities[:, None]).T])
    distance = 0.5 * math.fsum(np.abs(output - p))
    if distance > _TOLERANCE:
        # Summed of one draw of its own random numbers a lossless rule seems this far off, and as often
        # as that a second look at a tuple differs: missing all of them has probability 1e-6.
        left = (most - rule.runs) * len(tuples) // rule.runs
        looks = min(500, left, 1 + int(14.0 / distance))
        law = probabilities / probabilities.sum()
        for at in np.random.default_rng(0).choice(len(tuples), max(looks, 0), p=law):
            if not np.array_equal(rule.law(tuples[at], again=False)[0], laws[at]):
                raise _NotEnumerable("it draws from random numbers of its own")
    return _Exact(tuples, probabilities, laws, output, membership, algorithmic, distance)


def _of_sequential(
    rule: Sequential, p: Floats, q: Floats, n: int, scheme: str | Law
) -> list[_Exact]:
    """A rule that goes draft by draft, by sums over the vocabulary."""
    refuse_law(rule.name, scheme)
    if scheme == LAW:
        found = rule.law(p, q, n)
    else:
        each = [under(rule, scheme, *pair, n) for pair in zip(p, q)]
        found = SequentialLaw(*(np.stack(column) for column in zip(*each)))
    none = np.zeros((0, n), dtype=np.int64)
    return [
        _Exact(
            none,
            np.zeros(0),
            np.zeros((0, p.shape[1])),
            output,
            float(membership),
            float(algorithmic),
            float(distance),
        )
        for output, algorithmic, membership, distance in zip(*found)
    ]


def _kl(a: float, b: float) -> float:
    """Divergence of a coin of mean a from one of mean b."""
    total = 0.0
    for x, y in ((a, b), (1.0 - a, 1.0 - b)):
        if x > 0.0:
            total += x * math.log(x / y) if y > 0.0 else math.inf
    return total


def _interval(mean: float, samples: int, error: float) -> tuple[float, float]:
    """Bounds on the mean of independent numbers in [0, 1], by Chernoff and Hoeffding: wrong
    with probability at most ``error``."""
    room = math.log(2.0 / error) / samples

    def end(towards: float) -> float:
        near, far = mean, towards
        for _ in range(60):
            middle = 0.5 * (near + far)
            near, far = (near, middle) if _kl(mean, middle) > room else (middle, far)
        return far

    return end(0.0), end(1.0)


def _smallest_found(samples: int, alpha: float) -> float:
    """The smallest total variation that this many outputs show with probability 99%: of a
    departure that moves an indicator of mean 1/2 in full."""
    stakes = np.array([0.0125 * 2.0**k for k in range(7)])
    need = math.log(1.0 / alpha) + math.log(3.0)

    def capital(hits: int) -> float:
        logs = hits * np.log1p(stakes) + (samples - hits) * np.log1p(-stakes)
        peak = float(logs.max())
        return peak + math.log(float(np.exp(logs - peak).mean()) / 2.0)

    first, last = samples // 2, samples + 1
    while first < last:
        hits = (first + last) // 2
        reached = hits <= samples and capital(hits) >= need
        first, last = (first, hits) if reached else (hits + 1, last)
    if first > samples:
        return 1.0
    rate = first / samples
    near, far = rate, 1.0
    for _ in range(60):
        middle = 0.5 * (near + far)
        enough = math.exp(-samples * _kl(rate, middle)) <= 0.01
        near, far = (near, middle) if enough else (middle, far)
    return min(1.0, far - 0.5)


class _Capital:
    """Bets on the output, of which each has mean 1 if it is drawn from p: an e-process.

    Outcomes are sorted into cells of each row, whose masses under p are known. What is bet is
    how often cells came up before, over how often they had to.
    """

    #: Weight of what had to come up, so that the first bets are small.
    PRIOR = 8.0

    def __init__(self, cells: Sequence[Integers], masses: Sequence[Floats], count: int) -> None:
        self.cells, self.masses = cells, masses
        self.seen = np.zeros(count)
        self.due = np.zeros(count)
        self.log = 0.0

    def bet(self, row: int, law: Floats | None, token: int) -> None:
        cells, masses = self.cells[row], self.masses[row]
        came: Floats
        if law is None:
            came = np.zeros(len(self.seen))
            came[cells[token]] = 1.0
        else:
            came = np.bincount(cells, weights=law, minlength=len(self.seen)).astype(np.float64)
        tilt = (self.seen + self.PRIOR / len(self.seen)) / (self.due + self.PRIOR / len(self.seen))
        mean = float(masses @ tilt)
        if mean > 0.0:
            bet = float(came @ tilt) / mean
            # A part is kept back, so that nothing is ever lost for good.
            self.log += math.log(0.1 + 0.9 * bet)
        self.seen += came
        self.due += masses


def _by_rank(key: Floats, p: Floats, count: int) -> Integers:
    """Cells of about equal mass under p, by the order of a key."""
    order = np.argsort(key, kind="stable")
    before = np.cumsum(p[order]) - 0.5 * p[order]
    cells = np.empty(len(p), dtype=np.int64)
    cells[order] = np.minimum((before * count).astype(np.int64), count - 1)
    return cells


def _capitals(p: Floats, q: Floats) -> list[_Capital]:
    made = []

    def add(cells: list[Integers], count: int) -> None:
        masses: list[Floats] = [
            np.bincount(c, weights=row, minlength=count).astype(np.float64)
            for c, row in zip(cells, p)
        ]
        made.append(_Capital(cells, masses, count))

    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(q > 0, np.log(p) - np.log(q), np.inf)
    ratios = np.where(p > 0, ratios, -np.inf)
    add([_by_rank(ratio, row, 8) for ratio, row in zip(ratios, p)], 8)
    add([_by_rank(-row, row, 8) for row in p], 8)
    if p.size <= 4_096:
        # Each token of each row by itself.
        size = p.shape[1]
        made.append(
            _Capital(
                [np.arange(size, dtype=np.int64) + size * row for row in range(len(p))],
                [np.concatenate([p[row] if row == k else np.zeros(size) for k in range(len(p))])
                 for row in range(len(p))],
                p.size,
            )
        )
    return made


@dataclass(frozen=True)
class _Simulated:
    samples: int
    membership: tuple[float, float, float]
    algorithmic: float
    e_value: float
    refuted_after: int | None
    at_least: float


def _simulated(
    verifier: Verifier,
    p: Floats,
    q: Sequence[Floats | None] | Floats,
    n: int,
    scheme: str | Law,
    samples: int,
    alpha: float,
    seed: int,
    progress: Progress = False,
) -> _Simulated:
    bar = shown(progress, "outputs")
    generator = np.random.default_rng(seed)
    rng = _Drawing(generator)
    rules = [_Rule(verifier, *pair) for pair in zip(p, q)]
    drawers = [drawer(one, n, scheme, p.shape[1]) for one in q]
    q = np.stack([typical(*pair) for pair in zip(p, q)])
    capitals = _capitals(p, q)
    hits, accepted = 0.0, 0.0
    best, refuted_after = 0.0, None
    outputs: list[tuple[int, int]] = []
    for at in range(samples):
        if bar is not None and at % 64 == 0:
            bar(at, samples)
        row = at % len(p)
        drafts = drawers[row](generator)
        found = rules[row](drafts, rng)
        for one in capitals:
            one.bet(row, found.law, found.token)
        if found.law is None:
            token = found.token
            hits += float(token in drafts)
        else:
            token = rng.choice(p.shape[1], p=found.law)
            hits += float(found.law[np.unique(drafts)].sum())
        outputs.append((row, token))
        accepted += math.nan if found.accepted is None else found.accepted
        now = math.log(sum(math.exp(min(one.log, 700.0)) for one in capitals) / len(capitals))
        best = max(best, now)
        if refuted_after is None and now >= -math.log(alpha):
            refuted_after = at + 1
    if bar is not None:
        bar(samples, samples)
    mean = hits / samples
    low, high = _interval(min(mean, 1.0), samples, 0.05)
    return _Simulated(
        samples,
        (mean, low, high),
        accepted / samples,
        math.exp(min(best, 700.0)),
        refuted_after,
        _distance_at_least(p, q, outputs),
    )


def _distance_at_least(p: Floats, q: Floats, outputs: list[tuple[int, int]]) -> float:
    """A lower bound on the mean total variation, at 95%: of the cells that came up too often
    in the first half, in the second."""
    first, second = outputs[::2], outputs[1::2]
    if len(second) < 100:
        return 0.0
    best = 0.0
    capitals = _capitals(p, q)
    for one in capitals:
        for row, token in first:
            one.seen[one.cells[row][token]] += 1.0
            one.due += one.masses[row]
        often = one.seen > one.due
        hits = sum(bool(often[one.cells[row][token]]) for row, token in second) / len(second)
        due = sum(float(one.masses[row][often].sum()) for row, _ in second) / len(second)
        best = max(best, _interval(hits, len(second), 0.1 / len(capitals))[0] - due)
    return best


def drawer(q: Floats | None, n: int, scheme: str | Law, vocabulary: int) -> Drawer:
    """Draws n drafts by a law."""
    if isinstance(scheme, Law):
        return scheme.drawer(q, n, vocabulary)
    assert q is not None
    return drawer_of_table(q, n, scheme)


def typical(p: Floats, q: Floats | None) -> Floats:
    """A row by which outputs are sorted for tests: the mean law of a draft, if it is known."""
    return p if q is None else q if q.ndim == 1 else q.mean(axis=0)


Lossless: TypeAlias = Literal["exact", "refuted", "not refuted"]


def without_nan(value: Any) -> Any:
    """As JSON has it: nan is None."""
    if isinstance(value, dict):
        return {key: without_nan(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


@dataclass(frozen=True)
class Evaluation:
    """What a verifier does.

    - ``name``, ``scheme``, ``n``, ``vocabulary``: What it is called, the draft law, drafts, and V.
    - ``rows``: Pairs of rows.
    - ``exact``: Whether everything was summed; else it was simulated.
    - ``reason``: Why it was simulated.
    - ``acceptance``: P(output is one of the drafts): value, lower, upper. Simulated, an interval
      of 95%.
    - ``algorithmic_acceptance``: P(the verifier says that it accepts a draft); nan if it does not
      say.
    - ``optimal_acceptance``: alpha*, the mean over rows: value, lower, upper.
    - ``lossless``: ``exact``: the output's law is p. ``refuted``: it is not. ``not refuted``: it
      was simulated, and nothing was found.
    - ``total_variation``: Largest distance of the output's law from p over the rows, where it was
      summed; else a lower bound at 95%.
    - ``witness``: Drafts after which a token comes that is put out too often, and the token.
    - ``e_value``: Of a simulation: evidence against losslessness. Above 1/alpha it is refuted.
    - ``samples``, ``refuted_after``: Outputs that were drawn, and after which it was refuted.
    - ``smallest_tv_excluded``: Of a simulation that refuted nothing: departures of this total
      variation that show in one indicator in full would have been found with probability 99%.
    - ``counterexample``: The smallest problem found on which the rule is lossy, as
      ``specgap verify`` reads it.
    """

    name: str
    scheme: str
    n: int
    vocabulary: int
    rows: int
    exact: bool
    reason: str | None
    acceptance: tuple[float, float, float]
    algorithmic_acceptance: float
    optimal_acceptance: tuple[float, float, float]
    lossless: Lossless
    total_variation: float
    witness: tuple[list[int], int] | None
    e_value: float | None
    samples: int | None
    refuted_after: int | None
    smallest_tv_excluded: float | None
    counterexample: dict[str, Any] | None

    @property
    def gap(self) -> tuple[float, float, float]:
        """alpha* minus acceptance: value, lower, upper. Below 0, it accepts more than any
        lossless verifier can."""
        best, mine = self.optimal_acceptance, self.acceptance
        return best[0] - mine[0], best[1] - mine[2], best[2] - mine[1]

    def save(self, path: PathLike) -> None:
        """Writes the counterexample as a problem file, which ``specgap verify`` refutes."""
        if self.counterexample is None:
            raise ValueError(f"{self.name} has no counterexample: it is {self.lossless}")
        save_problem(self.counterexample, path)

    def to_dict(self) -> dict[str, Any]:
        """All of it as data."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields["gap"] = self.gap
        return cast("dict[str, Any]", without_nan(fields))

    def __str__(self) -> str:
        how = "summed exactly" if self.exact else f"simulated, {self.samples:,} outputs"
        rows = "" if self.rows == 1 else f", {self.rows} pairs of rows"
        lines = [
            f"{self.name}: n = {self.n}, {self.scheme}, V = {self.vocabulary}{rows}; {how}",
        ]
        if self.reason:
            lines.append(f"  (not summed exactly: {self.reason})")

        def line(what: str, numbers: tuple[float, float, float]) -> str:
            value, low, high = numbers
            bounds = "" if high - low < 1e-9 else f"  [{low:.4f}, {high:.4f}]"
            return f"  {what:22}{value:.6f}{bounds}"

        lines.append(line("acceptance", self.acceptance))
        lines.append(line("alpha*", self.optimal_acceptance))
        lines.append(line("gap", self.gap))
        if self.lossless == "exact":
            lines.append(f"  lossless              yes: TV {self.total_variation:.1e}")
        elif self.lossless == "refuted":
            least = "" if self.exact else "at least "
            lines.append(f"  lossless              NO: TV {least}{tv_words(self.total_variation)}")
            if self.refuted_after:
                lines.append(
                    f"  refuted after {self.refuted_after:,} outputs, e-value {self.e_value:.3g}"
                )
        else:
            lines.append(
                f"  lossless              not refuted; e-value at most {self.e_value:.3g}, TV of "
                f"{self.smallest_tv_excluded:.3f} would have been found"
            )
        if self.witness:
            drafts, token = self.witness
            lines.append(
                f"  after drafts {drafts} it puts out token {token}, which comes too often"
            )
        if self.counterexample:
            problem = self.counterexample
            q = problem["draft"].get("q")
            rows = f"p = {problem['target']}, q = {q}"
            if q is None or len(q) > 64:
                rows = "this pair of rows"
            lines.append(f"  counterexample: {rows}, n = {problem['drafts']}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def tv_words(value: float) -> str:
    """A total variation that is above 0, as one that is."""
    return f"{value:.6f}" if value >= 1e-5 else f"{value:.1e}"


def _pairs(p: ArrayLike, q: ArrayLike) -> list[Floats]:
    """Rows as distributions; of p alone if there is no q."""
    made: list[Floats] = []
    for array, name in ((p, "p"), (q, "q")):
        if array is None:
            continue
        rows = as_double(array, name)
        sums = rows.sum(axis=1)
        bad = ~np.isfinite(rows) | (rows < 0)
        if bad.any():
            row, entry = (int(x) for x in np.argwhere(bad)[0])
            raise Refused(
                f"{name}: row {row}: entry {entry} is {rows[row, entry]}; "
                "probabilities must be >= 0",
                name,
                row,
                entry,
            )
        if (np.abs(sums - 1.0) > 1e-3).any():
            row = int(np.argmax(np.abs(sums - 1.0)))
            said = f"{name}: row {row}: sums to {sums[row]}; probabilities sum to 1"
            raise Refused(said, name, row)
        made.append(rows / sums[:, None])
    if made[0].shape != made[-1].shape:
        raise Refused(
            f"p has shape {made[0].shape} and q {made[1].shape}; both are rows over one "
            f"vocabulary, in pairs"
        )
    return made


def _shown(
    p: Floats, q: Floats | None, n: int | None, law: Law
) -> tuple[list[Floats | None], int]:
    """What a verifier is shown as q at each row, and how many drafts there are."""
    if q is None or not law.is_of_rows and law.is_independent:
        law.drawn_from(q)
    qs = [law.shown(None if q is None else q[row], row) for row in range(len(p))]
    if law.is_sampled:
        return qs, count(1 if n is None else n, "n", "drafts")
    return qs, law.drafts(n, max(law.at(one, p.shape[1]).drafts for one in qs))


def own_optimum(p: Floats, q: Floats | None, scheme: Law) -> tuple[float, float, float]:
    """alpha* of one pair: value, lower, upper. Of a sampler nothing is known."""
    if scheme.is_sampled:
        return math.nan, 0.0, 1.0
    return scheme.at(q, len(p)).alpha([float(x) for x in p])


def _optimum(
    p: Floats, q: Sequence[Floats | None] | Floats, n: int, scheme: str | Law
) -> tuple[float, float, float]:
    if isinstance(scheme, Law):
        mean = np.mean([own_optimum(*pair, scheme) for pair in zip(p, q)], axis=0)
        return float(mean[0]), float(mean[1]), float(mean[2])
    q = np.asarray(q)
    rows = {name for name, _, on_row in _native.schemes() if on_row}
    if scheme in rows:
        (value, lower, upper, _) = _native.alpha(
            (p, "float64"), (q, "float64"), n, scheme, False, 1.0, 0, None
        )
        return float(value.mean()), float(lower.mean()), float(upper.mean())
    found = np.array(
        [_native.optimum(list(one), list(other), n, scheme) for one, other in zip(p, q)]
    )
    mean = found.mean(axis=0)
    return float(mean[0]), float(mean[1]), float(mean[2])


#: Rows of the smallest problems that are tried, simplest first.
_SMALL = [
    [Fraction(a, sum(parts)) for a in parts]
    for parts in (
        (1, 1), (1, 3), (3, 1), (1, 0), (0, 1), (1, 7), (7, 1),
        (2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 1, 0), (0, 1, 1), (1, 3, 4), (4, 3, 1),
        (1, 1, 1, 1), (4, 2, 1, 1), (1, 1, 2, 4),
    )
]  # fmt: skip


def _candidates(p: Floats, q: Floats, n: int) -> Iterator[tuple[list[Fraction], list[Fraction], int]]:
    """Problems to try, the smallest first; the one that is given last, made simpler."""
    for size in sorted({len(row) for row in _SMALL}):
        rows = [row for row in _SMALL if len(row) == size]
        for drafts, one, other in itertools.product(range(1, n + 1), rows, rows):
            yield one, other, drafts
    for parts in (4, 8, 16, 64, 1 << 20):
        yield _rounded(p, parts), _rounded(q, parts), n


def _rounded(row: Floats, parts: int) -> list[Fraction]:
    """A row of multiples of 1/parts, near to it."""
    whole = np.floor(row * parts).astype(int)
    rest = np.argsort(-(row * parts - whole), kind="stable")[: parts - int(whole.sum())]
    whole[rest] += 1
    return [Fraction(int(x), parts) for x in whole]


def _floats(row: Sequence[Fraction]) -> Floats:
    return np.array([float(x) for x in row])


#: Runs a tuple whose frequencies are put down where a rule cannot be summed.
_FREQUENCY_RUNS = 4_000


def _counterexample(
    verifier: Verifier,
    p: Floats,
    q: Floats,
    n: int,
    scheme: str,
    name: str,
    exact: bool,
    alpha: float,
    seed: int,
    tolerance: float,
) -> dict[str, Any] | None:
    """The first problem tried on which the rule is lossy."""
    budget = 400 if exact else 40
    for one, other, drafts in itertools.islice(_candidates(p, q, n), 4 * budget):
        rows = _floats(one), _floats(other)
        try:
            if exact:
                found = _summed(verifier, *rows, drafts, scheme)
                if found.total_variation <= max(100.0 * tolerance, 1e-6):
                    continue
                tuples, laws, source = found.tuples, found.laws, name
            else:
                if budget == 0:
                    return None
                budget -= 1
                pair = rows[0][None], rows[1][None]
                tried = _simulated(verifier, *pair, drafts, scheme, 2_000, alpha, seed)
                if tried.refuted_after is None:
                    continue
                tuples, laws = _frequencies(verifier, *rows, drafts, scheme, seed)
                source = f"{name}, frequencies of {_FREQUENCY_RUNS} runs"
        except Exception:  # noqa: BLE001 - a rule may refuse rows that it was not made for
            continue
        return {
            "schema": 1,
            "name": f"{name}-counterexample",
            "target": [str(x) for x in one],
            "drafts": drafts,
            "draft": {"scheme": scheme, "q": [str(x) for x in other]},
            "rule": {
                "name": source,
                "outputs": {
                    " ".join(str(int(token)) for token in drawn): [float(x) for x in law]
                    for drawn, law in zip(tuples, laws)
                },
            },
        }
    return None


def _own_counterexample(
    verifier: Verifier, p: Floats, q: Floats | None, n: int, law: Law, name: str
) -> dict[str, Any] | None:
    """The pair itself as a problem, where the rule can be listed."""
    try:
        found = _summed(verifier, p, q, n, law)
    except _NotEnumerable:
        return None
    if found.laws.size > MOST_TUPLES:
        return None
    outputs = {
        " ".join(str(int(token)) for token in drafts): row.tolist()
        for drafts, row in zip(found.tuples, found.laws)
    }
    return {
        "schema": 1,
        "name": f"{name}-counterexample",
        "target": p.tolist(),
        "drafts": n,
        "draft": law.problem(q),
        "rule": {"name": name, "outputs": outputs},
    }


def _frequencies(
    verifier: Verifier, p: Floats, q: Floats, n: int, scheme: str, seed: int
) -> tuple[Integers | list[Integers], Floats]:
    tuples, _ = _listed(q, n, scheme, len(p))
    rule, rng = _Rule(verifier, p, q), _Drawing(np.random.default_rng(seed))
    laws = np.zeros((len(tuples), len(p)))
    for at, drafts in enumerate(tuples):
        for _ in range(_FREQUENCY_RUNS):
            found = rule(drafts, rng)
            if found.law is None:
                laws[at, found.token] += 1.0
            else:
                laws[at] += found.law
    return tuples, laws / laws.sum(axis=1, keepdims=True)


@overload
def evaluate(
    verifier: Verifier,
    p: LogLike,
    n: int | None = None,
    *,
    scheme: LawName | Law = "with-replacement",
    name: str | None = None,
    samples: int = 20_000,
    alpha: float = 1e-6,
    tolerance: float = _TOLERANCE,
    seed: int = 0,
    temperature: float | None = None,
    compare: Rivals = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    cut_order: str | None = None,
    vocabulary: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    threads: int = 0,
    progress: Progress = None,
) -> LogEvaluation: ...


@overload
def evaluate(
    verifier: Verifier,
    p: ArrayLike,
    q: ArrayLike = None,
    n: int | None = None,
    scheme: LawName | Law = "with-replacement",
    *,
    name: str | None = None,
    samples: int = 20_000,
    alpha: float = 1e-6,
    tolerance: float = _TOLERANCE,
    seed: int = 0,
    counterexample: PathLike | None = None,
    progress: Progress = None,
) -> Evaluation: ...


@by_any_name  # type: ignore[misc]  # n stands third where p is a log
def evaluate(
    verifier: Verifier,
    p: ArrayLike,
    q: ArrayLike = None,
    n: int | None = None,
    scheme: LawName | Law = "with-replacement",
    *,
    name: str | None = None,
    samples: int = 20_000,
    alpha: float = 1e-6,
    tolerance: float = _TOLERANCE,
    seed: int = 0,
    counterexample: PathLike | None = None,
    progress: Progress = None,
    **on_log: Any,
) -> Evaluation | LogEvaluation:
    """Whether a verifier of your own is lossless, what it accepts, and how far from alpha*.

    ``verifier(p, q, drafts, rng)`` returns a token, ``(token, index of the accepted draft or
    None)``, or the law of the output given the drafts, an array of V; see
    :mod:`specgap.adapters` for the signatures of public implementations, and
    :mod:`specgap.rules` for examples. ``p`` and ``q`` are one row each or rows [N, V] of
    probabilities; ``scheme`` is how the drafts are drawn.

    Where at most 100,000 tuples of drafts can be drawn, and the verifier returns a law or draws
    through ``rng.branch(prob)``, ``rng.choice(V, p=law)`` or comparisons with ``rng.random()``,
    its output's law is summed over all outcomes: ``lossless`` is then ``exact`` or ``refuted``,
    at a total variation of ``tolerance`` (1e-9; take 1e-6 for rules in single precision).
    Otherwise ``samples`` outputs are drawn; a test that may be looked at any time refutes at
    level ``alpha``, and acceptance has an interval.

    A :class:`specgap.Sequential` rule is summed at any vocabulary and any n.

    ``evaluate(verifier, log, n)`` measures it on a log instead: a path, a :class:`specgap.Log` or a
    dict of arrays. ``temperature`` is the log's own if not given; ``top_k``, ``top_p``,
    ``min_p`` and ``cut_order`` cut rows as :func:`gap` does. A Sequential rule is exact at every position. Of others
    ``samples`` outputs are drawn over all positions: acceptance is averaged over the law of the
    output where one is returned, and made less noisy by what ``rrs`` accepts of the same drafts.
    Every number has an interval over prompts, the gap to alpha* and the differences to the rules
    of ``compare`` are paired by position: names, and rules of your own (functions are drawn too,
    :class:`specgap.Formula` is what it says). ``(rule, law)`` says whose drafts one gets; else they are
    those of the verifier, or of a name that is not for these, its own, which its label then tells.
    Returns a :class:`specgap.LogEvaluation`.

    ``scheme`` may be a law of :mod:`specgap.laws`, whose tuples are listed, or drawn where they are
    too many: composed laws (q is the draft's row), independent drafts (leave q out; q is [n, V],
    and a step of a Sequential rule sees draft i's row), tuples and samplers.

    A rule that is refuted gets a counterexample: the smallest problem found on which it is
    lossy, or of a law of one's own the pair itself. ``counterexample`` names a file for it, which
    ``specgap verify`` reads and refutes.

    >>> import specgap as sg
    >>> def keep(p, q, drafts, rng):
    ...     return drafts[0]
    >>> found = sg.evaluate(keep, [0.5, 0.5], [0.75, 0.25])
    >>> found.lossless, found.total_variation
    ('refuted', 0.25)
    """
    if not callable(verifier):
        raise TypeError(
            "verifier: give a function of (p, q, drafts, rng); "
            f"this is {type(verifier).__name__}. Verifiers of the literature go by name to acceptance()"
        )
    law = given(scheme)
    called = str(name or getattr(verifier, "__name__", type(verifier).__name__))
    seed = natural(seed, "seed")
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha is {alpha}; it is a level between 0 and 1, such as 1e-6")
    if not 0.0 <= tolerance < 1.0:
        raise ValueError(
            f"tolerance is {tolerance}; it is a total variation from 0 to below 1, such as 1e-9"
        )
    if isinstance(p, (str, os.PathLike, Log, Mapping)) or (np.ndim(q) == 0 and is_table(p)):
        if q is not None and n is not None:
            cure = ""
            if isinstance(n, (str, Law)):
                cure = f"; scheme goes by name: evaluate(verifier, log, {q}, scheme={n!r})"
            raise TypeError(
                f"evaluate(verifier, log, n): a log has both rows, and n is one number{cure}"
            )
        if counterexample is not None:
            raise TypeError("counterexample: of rows alone, evaluate(verifier, p, q, n)")
        from ._evaluate_log import evaluate_log

        known = inspect.signature(evaluate_log).parameters
        for wrong in [one for one in on_log if one not in known]:
            raise unexpected("evaluate", wrong, known)
        asked = q if n is None else n
        if law is None and asked is None:
            asked = 1
        return evaluate_log(
            verifier,
            cast("LogLike", p),
            None if asked is None else count(asked, "n", "drafts"),
            scheme,
            name=called,
            samples=samples,
            alpha=alpha,
            tolerance=tolerance,
            seed=seed,
            progress=progress,
            **on_log,
        )
    if on_log:
        raise TypeError(
            f"{', '.join(on_log)}: for logs; p and q are probabilities as they are to be measured"
        )
    if q is None and law is None:
        raise TypeError("q: give the draft's rows beside p, or a log: evaluate(verifier, log, n)")
    if samples < 1:
        raise ValueError("n and samples are at least 1")
    rows_p, *given_q = _pairs(p, q)
    rows_q: Sequence[Floats | None] | Floats
    if law is None:
        n, rows_q = 1 if n is None else count(n, "n", "drafts"), given_q[0]
    else:
        rows_q, n = _shown(rows_p, given_q[0] if given_q else None, n, law)
    optimum = _optimum(rows_p, rows_q, n, scheme)
    reason: str | None = None
    sums: list[_Exact] = []
    try:
        if isinstance(verifier, Sequential):
            sums = _of_sequential(verifier, rows_p, cast("Floats", rows_q), n, scheme)
        else:
            sums = [_summed(verifier, *pair, n, scheme) for pair in zip(rows_p, rows_q)]
    except _NotEnumerable as refused:
        reason = str(refused)
    shared = {
        "name": called,
        "scheme": scheme if law is None else law.name,
        "n": n,
        "vocabulary": rows_p.shape[1],
        "rows": len(rows_p),
        "optimal_acceptance": optimum,
    }

    def smallest(row: int, exact: bool) -> dict[str, Any] | None:
        one, other = rows_p[row], rows_q[row]
        if law is not None:
            made = _own_counterexample(verifier, one, other, n, law, called) if exact else None
        else:
            assert isinstance(scheme, str) and other is not None
            made = _counterexample(
                verifier, one, other, n, scheme, called, exact, alpha, seed, tolerance
            )
        if made is not None and counterexample is not None:
            save_problem(made, os.fspath(counterexample))
        return made

    if reason is None:
        worst = int(np.argmax([one.total_variation for one in sums]))
        distance = sums[worst].total_variation
        mean = float(np.mean([one.membership for one in sums]))
        lossy = distance > tolerance
        return Evaluation(
            **shared,
            exact=True,
            reason=None,
            acceptance=(mean, mean, mean),
            algorithmic_acceptance=float(np.mean([one.algorithmic for one in sums])),
            lossless="refuted" if lossy else "exact",
            total_variation=distance,
            witness=sums[worst].witness(rows_p[worst]) if lossy else None,
            e_value=None,
            samples=None,
            refuted_after=None,
            smallest_tv_excluded=None,
            counterexample=smallest(worst, True) if lossy else None,
        )
    found = _simulated(verifier, rows_p, rows_q, n, scheme, samples, alpha, seed, progress)
    lossy = found.refuted_after is not None
    return Evaluation(
        **shared,
        exact=False,
        reason=reason,
        acceptance=found.membership,
        algorithmic_acceptance=found.algorithmic,
        lossless="refuted" if lossy else "not refuted",
        total_variation=max(found.at_least, 0.0),
        witness=None,
        e_value=found.e_value,
        samples=found.samples,
        refuted_after=found.refuted_after,
        smallest_tv_excluded=None if lossy else _smallest_found(samples, alpha),
        counterexample=smallest(0, False) if lossy else None,
    )
