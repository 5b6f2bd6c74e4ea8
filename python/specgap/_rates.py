"""Rates of rows: alpha*, what verifiers accept, and the plan that attains alpha*."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast, overload

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._arrays import ArrayLike, Typed, count, integers, natural, row_or_rows, rows, threads_of, widened
from ._errors import Refused, by_any_name
from ._first_screen import table_html
from ._names import LawName, RuleName
from ._progress import Progress, shown
from .laws import Law, given


def _tokens(drafts: ArrayLike) -> NDArray[np.int64]:
    """Drafted tokens, of which there may be none."""
    if np.size(cast("Any", drafts)) == 0:
        return np.asarray(drafts, dtype=np.int64)
    return integers(drafts, "drafts").astype(np.int64)


class _Certificates(NamedTuple):
    """Of each row: the least q/p in H, p(H), q(H), Q(H), and H, a bit a token. Of a law of one's
    own there is no one q."""

    threshold: NDArray[np.float64] | None
    target_mass: NDArray[np.float64]
    draft_mass: NDArray[np.float64] | None
    inside: NDArray[np.float64]
    sets: NDArray[np.uint8]


@dataclass(frozen=True, repr=False)
class Rates:
    """Numbers of rows, each between two bounds.

    ``value``, ``lower`` and ``upper`` are floats if one row was given, else arrays of N.
    Bounds hold all rounding. ``kind`` says in a word how well a number is known: ``enclosed``
    (the bounds are rigorous) or ``monte-carlo`` (a mean over simulated runs, with an interval
    of 99.9%).

    alpha* under a law that is solved by a scan (``with-replacement``, ``without-replacement``,
    ``distinct-conditioned``) also has its certificate: the set H of tokens with
    alpha* = 1 + p(H) - Q(H), Q(H) the probability that all drafts are in H. ``subset``,
    ``threshold``, ``mass``, ``target_mass`` and ``inside`` say what it is; of other numbers they
    raise ``ValueError``. Under a law of :mod:`specgap.laws` H proves ``upper`` = 1 + p(H) - Q(H),
    which is alpha* where ``lower`` meets it, and there is no ``threshold`` and no ``mass``, as
    there is no one q. Rows are not kept: H is, in V/8 bytes a row.

    >>> import specgap as sg
    >>> best = sg.alpha([0.5, 0.5], [0.75, 0.25], 2)
    >>> best.subset.tolist(), best.threshold, best.target_mass, best.mass, best.inside
    ([0], 1.5, 0.5, 0.75, 0.5625)
    """

    value: Any
    lower: Any
    upper: Any
    kind: Any
    #: The draft law.
    scheme: str
    #: Number of drafts.
    n: int
    _certificates: _Certificates | None = field(default=None, repr=False, compare=False)

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        """The first five, and the mean."""
        columns = [np.asarray(one) for one in (self.value, self.lower, self.upper)]
        rows = [[str(row), *(f"{one[row]:.9g}" for one in columns), self.kind[row]]
                for row in range(min(len(columns[0]), 5))]  # fmt: skip
        rows.append(["mean", *(f"{one.mean():.9g}" for one in columns), ""])
        return ["row", "value", "lower", "upper", "kind"], rows

    def __repr__(self) -> str:
        if np.ndim(self.value) == 0:
            fields = ("value", "lower", "upper", "kind", "scheme", "n")
            return f"Rates({', '.join(f'{name}={getattr(self, name)!r}' for name in fields)})"
        names, rows = self._rows()
        wide = [max(len(row[at]) for row in [names, *rows]) for at in range(len(names))]
        lines = ["  ".join(word.rjust(by) for word, by in zip(row, wide)).rstrip() for row in [names, *rows]]
        return f"Rates of {len(self.value)} rows: {self.scheme}, n = {self.n}\n" + "\n".join(lines)

    def _repr_html_(self) -> str:
        if np.ndim(self.value) == 0:
            return f"<pre>{html.escape(repr(self))}</pre>"
        said = f"{len(self.value)} rows: {self.scheme}, n = {self.n}"
        return table_html(said, *self._rows())

    def _certificate(self, name: str) -> _Certificates:
        if self._certificates is None:
            raise ValueError(
                f"{name}: these numbers have no set that certifies them; alpha() has one under "
                "with-replacement, without-replacement and distinct-conditioned, which are solved "
                f"by a scan, and this is of {self.scheme}"
            )
        return self._certificates

    def _number(self, name: str, numbers: NDArray[np.float64] | None) -> Any:
        if numbers is None:
            raise ValueError(
                f"{name}: {self.scheme} is a law of its own, which is not cut by one q/p; subset, "
                "target_mass and inside say what proves the upper bound"
            )
        return float(numbers[0]) if np.ndim(self.value) == 0 else numbers

    @property
    def subset(self) -> Any:
        """The token set H with alpha* = 1 + p(H) - Q(H), rising by id: the certificate.

        One array of tokens for one row, a list of N for rows.
        """
        sets = self._certificate("subset").sets
        found = [np.flatnonzero(np.unpackbits(one, bitorder="little")) for one in sets]
        return found[0] if np.ndim(self.value) == 0 else found

    @property
    def threshold(self) -> Any:
        """c, the least q(x)/p(x) of a token in H, in double precision.

        H is the tokens with q > 0 and q/p >= c, q/p being infinite where p = 0. Of tied tokens, with
        q/p = c, it holds all, as P - Q is concave along ties; only where rounding decides it may be
        those with the lowest ids. ``inf`` if p is 0 on H, or if H is empty, as it may be where p = q;
        then ``mass`` is 0. So ``(q > 0) & (q >= c * p)`` is H, but for tokens at c where rows are
        rounded otherwise, which change alpha* by rounding alone.
        """
        return self._number("threshold", self._certificate("threshold").threshold)

    @property
    def mass(self) -> Any:
        """q(H). With ``target_mass`` and ``n`` it is all that a gradient by logits needs besides H:
        under ``with-replacement`` d alpha*/dp = 1 on H, and d alpha*/dq = -n q(H)^(n-1) on H."""
        return self._number("mass", self._certificate("mass").draft_mass)

    @property
    def target_mass(self) -> Any:
        """p(H)."""
        return self._number("target_mass", self._certificate("target_mass").target_mass)

    @property
    def inside(self) -> Any:
        """Q(H), the probability that all drafts are in H: q(H)^n under ``with-replacement``."""
        return self._number("inside", self._certificate("inside").inside)


def _answered(
    answered: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], list[str]],
    one: bool,
    scheme: str,
    n: int,
    certificates: _native._Certificates | _Certificates | None = None,
) -> Rates:
    value, lower, upper, kind = answered
    shown = None if certificates is None else _Certificates(*certificates)
    if one:
        own = float(value[0]), float(lower[0]), float(upper[0]), kind[0]
        return Rates(*own, scheme, n, shown)
    return Rates(value, lower, upper, kind, scheme, n, shown)


def _heated(logits: bool, temperature: float) -> None:
    if isinstance(temperature, bool) or not isinstance(temperature, (float, int, np.number)):
        raise TypeError(f"temperature: give a number; this is {temperature!r}")
    if not logits and temperature != 1.0:
        raise Refused(
            f"temperature is {temperature}, which is for logits: say logits=True, or give "
            "probabilities at that temperature"
        )


def _asked(q: ArrayLike, n: object, logits: bool, temperature: float) -> int:
    """The number of drafts, if the rest can be meant as it is said."""
    _heated(logits, temperature)
    if q is None:
        raise TypeError("q: give the draft's row or rows; only laws of specgap.laws have their own")
    return count(n, "n", "drafts")


@functools.cache
def _scanned() -> frozenset[str]:
    return frozenset(_native.scanned())


def _pairs(p: ArrayLike, q: ArrayLike) -> tuple[tuple[Typed, Typed], bool]:
    """Rows in pairs, and whether it is a single pair. One row goes with all of the others."""
    ((target, its), single), ((draft, own), alone) = row_or_rows(p, "p"), row_or_rows(q, "q")
    if len(target) != len(draft) and target.shape[1] == draft.shape[1]:
        if len(target) == 1:
            target = np.broadcast_to(target, draft.shape)
        elif len(draft) == 1:
            draft = np.broadcast_to(draft, target.shape)
    return ((target, its), (draft, own)), single and alone


def _bar(progress: Progress, pairs: tuple[Typed, Typed]) -> Callable[..., object] | None:
    """Who is told of progress. A single row is done before a terminal is looked for."""
    return None if progress is None and len(pairs[0][0]) == 1 else shown(progress)


@overload
def alpha(
    p: ArrayLike,
    q: ArrayLike = None,
    n: int | None = None,
    scheme: LawName | Law = "with-replacement",
    *,
    logits: bool = False,
    temperature: float = 1.0,
    threads: int = 0,
    progress: Progress = None,
) -> Rates: ...


@overload
def alpha(
    p: ArrayLike,
    q: ArrayLike,
    n: Sequence[int],
    scheme: LawName = "with-replacement",
    *,
    logits: bool = False,
    temperature: float = 1.0,
    threads: int = 0,
    progress: Progress = None,
) -> list[Rates]: ...


@by_any_name
def alpha(
    p: ArrayLike,
    q: ArrayLike = None,
    n: int | Sequence[int] | None = None,
    scheme: LawName | Law = "with-replacement",
    *,
    logits: bool = False,
    temperature: float = 1.0,
    threads: int = 0,
    progress: Progress = None,
) -> Rates | list[Rates]:
    """alpha*: the largest probability that a lossless verifier puts out one of n drafts.

    ``p`` is the target's row and ``q`` the draft's: probabilities, or logits with
    ``logits=True``, of which softmax at ``temperature`` is taken. One row [V] or rows [N, V],
    of float16, bfloat16, float32 or float64, of NumPy or torch; read where they lie. One row
    goes with each of the other's.
    ``scheme`` is how the ``n`` drafts are drawn from q, one of :func:`schemes`; n is up to 64. It
    may be a law of :mod:`specgap.laws`, which says itself how many drafts it has.
    ``threads`` is 0 for one a core. ``progress`` is None (shown in notebooks and on terminals),
    False, or a function of the rows that are done and all rows, which may raise to stop.

    Returns :class:`Rates`: ``value`` between ``lower`` and ``upper``, which are rigorous, and
    ``subset``, the tokens H with alpha* = 1 + p(H) - Q(H), those with the largest q/p, down to
    ``threshold``; ``specgap.torch.alpha_star`` makes a gradient of these. Raises :class:`Refused`
    for rows that are no probabilities, with row and entry. A row takes one pass, and no sort.

    Of several ``n``, such as ``[1, 2, 4]``, it returns a list of :class:`Rates`, one for each in their
    order; rows are read once under a law that is solved by a scan. A law of :mod:`specgap.laws` has
    its own n.

    >>> import specgap as sg
    >>> sg.alpha([0.5, 0.5], [0.75, 0.25], 2).value
    0.9375
    >>> [one.value for one in sg.alpha([0.5, 0.5], [0.75, 0.25], [1, 2, 4])]
    [0.75, 0.9375, 1.0]
    """
    law, threads = given(scheme), threads_of(threads)
    if isinstance(n, np.ndarray) and not n.ndim:
        n = n.item()
    if isinstance(n, (Sequence, np.ndarray)) and not isinstance(n, str):
        if law is not None:
            raise TypeError(f"n: is several, and {law.name} says itself how many it drafts: leave n out")
        name = cast("LawName", _native.law_named(cast("str", scheme)))
        return _of_several(p, q, list(n), name, logits, temperature, threads, progress)
    if law is not None:
        _heated(logits, temperature)
        own, one = law.known("alpha*"), np.ndim(p) == 1
        if law.is_of_rows:
            return _of_rows(law, p, q, n, logits, lambda at, row: at.alpha(row))
        found, n_found, sets = own.alpha(
            rows(p, "p"), law.drawn_from(q), logits, temperature, threads, shown(progress)
        )
        proof = None if sets is None else _Certificates(None, sets[0], None, sets[1], sets[2])
        return _answered(found, one, law.name, law.drafts(n, n_found), proof)
    scheme = cast("LawName", _native.law_named(cast("str", scheme)))
    n = _asked(q, n, logits, temperature)
    pairs, one = _pairs(p, q)
    bar = _bar(progress, pairs)
    if scheme in _scanned():
        found, certificates = _native.certificates(
            *pairs, [n], scheme, logits, temperature, threads, bar
        )
        return _answered(found, one, scheme, n, certificates)
    found = _native.alpha(*pairs, n, scheme, logits, temperature, threads, bar)
    return _answered(found, one, scheme, n)


def _of_rows(
    law: Law,
    p: ArrayLike,
    q: ArrayLike,
    n: int | None,
    logits: bool,
    question: Callable[[_native.DraftLaw, list[float]], tuple[float, float, float]],
) -> Rates:
    """Numbers of a law that a function makes of each row of q."""
    if logits or q is None:
        what = "logits" if logits else "q"
        raise Refused(f"{what}: {law.name} is made of the draft's row by a function; give q, probabilities")
    (target, draft), one = _pairs(p, q)
    columns: list[tuple[float, float, float]] = []
    for row in range(len(target[0])):
        own, other = (widened(x[row : row + 1], dtype)[0] for x, dtype in (target, draft))
        at = law.at(law.shown(other / other.sum(), row), len(own))
        columns.append(question(at, [float(x) for x in own]))
    value, lower, upper = np.array(columns).T
    return _answered((value, lower, upper, ["enclosed"] * len(columns)), one, law.name, law.drafts(n, law.n or 1))


def _of_several(
    p: ArrayLike,
    q: ArrayLike,
    drafts: Sequence[object],
    scheme: LawName,
    logits: bool,
    temperature: float,
    threads: int,
    progress: Progress,
) -> list[Rates]:
    """alpha* of each of several numbers of drafts."""
    counts = [_asked(q, n, logits, temperature) for n in drafts]
    if not counts:
        raise Refused("n: is an empty list; give at least one number of drafts")
    pairs, one = _pairs(p, q)
    bar = _bar(progress, pairs)
    if scheme not in _scanned():
        return [
            _answered(
                _native.alpha(*pairs, n, scheme, logits, temperature, threads, bar), one, scheme, n
            )
            for n in counts
        ]
    # Numbers of a row come side by side.
    (value, lower, upper, kind), proofs = _native.certificates(
        *pairs, counts, scheme, logits, temperature, threads, bar
    )

    def of(at: int) -> Rates:
        own = slice(at, None, len(counts))
        proof = _Certificates(*cast("Any", [column[own] for column in proofs]))
        numbers = value[own], lower[own], upper[own], kind[own]
        return _answered(numbers, one, scheme, counts[at], proof)

    return [of(at) for at in range(len(counts))]


@by_any_name
def acceptance(
    verifier: RuleName,
    p: ArrayLike,
    q: ArrayLike = None,
    n: int | None = None,
    scheme: LawName | Law | None = None,
    *,
    logits: bool = False,
    temperature: float = 1.0,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = None,
) -> Rates:
    """How often a verifier's output is one of the n drafts: dimensionless, in [0, 1].

    ``p``, ``q``, ``n``, ``logits``, ``temperature``, ``threads`` and ``progress`` are as
    :func:`alpha` takes them.
    ``verifier`` is one of :func:`verifiers`, and ``scheme`` a law of drafts for which it is
    lossless; the first such law if not given. ``seed`` is that of rates that are simulated. Of a
    law of :mod:`specgap.laws` the rules are those that are lossless for it: ``rrs``, ``level-4`` for independent
    drafts, ``optimal`` and ``exact-match`` for all, ``token`` for one draft.
    Returns :class:`Rates`, whose ``kind`` says which these are. Raises :class:`Refused` as
    :func:`alpha` does, and where no rate of rows is computed for so many drafts.

    >>> import specgap as sg
    >>> round(sg.acceptance("rrs", [0.5, 0.5], [0.75, 0.25], 2).value, 12)
    0.8125
    """
    if not isinstance(verifier, str):
        raise TypeError(
            "the verifier's name comes first, as in acceptance(\"rrs\", p, q, n); a function of "
            "your own goes to evaluate()"
        )
    own, threads = None if scheme is None else given(scheme), threads_of(threads)
    seed = natural(seed, "seed")
    if own is not None:
        _heated(logits, temperature)
        law = own.known("a named rule's acceptance")
        if own.is_of_rows:
            return _of_rows(own, p, q, n, logits, lambda at, row: at.acceptance(verifier, row))
        drawn, one = own.drawn_from(q), np.ndim(p) == 1
        found, n_found = law.acceptance(
            verifier, rows(p, "p"), drawn, logits, temperature, seed, threads, shown(progress)
        )
        return _answered(found, one, own.name, own.drafts(n, n_found))
    assert scheme is None or isinstance(scheme, str)
    n = _asked(q, n, logits, temperature)
    pairs, one = _pairs(p, q)
    found, name = _native.acceptance(
        verifier, *pairs, n, scheme, logits, temperature, seed, threads, _bar(progress, pairs)
    )
    return _answered(found, one, name, n)


def schemes() -> dict[LawName, str]:
    """The laws of drafts by name, each in one line. Problems have three more, which are not made of
    one row q: ``product``, ``explicit`` and ``composed``."""
    return {cast("LawName", name): words for name, words, of_rows in _native.schemes() if of_rows}


def verifiers() -> dict[RuleName, str]:
    """The verifiers by name, each in one line."""
    found = _native.verifiers()
    return {cast("RuleName", name): f"{words}; for {drafts}" for name, words, drafts in found}


class Plan:
    """The optimal verifier of one pair of rows: lossless, and it accepts alpha*.

    Made once for a pair of rows, it then emits in O(n): see :func:`plan`.
    """

    def __init__(
        self,
        p: ArrayLike,
        q: ArrayLike = None,
        n: int | None = None,
        scheme: Literal["with-replacement"] | Law = "with-replacement",
        *,
        logits: bool = False,
        temperature: float = 1.0,
    ) -> None:
        own = given(scheme)
        _heated(logits, temperature)
        asked: tuple[Any, ...]
        if own is None:
            n = _asked(q, n, logits, temperature)
            asked = None, [rows(p, "p"), rows(q, "q")], n, scheme, logits, temperature
        else:
            asked = own, [rows(p, "p"), *own.drawn_from(q)], logits, temperature
        self._plan = _solved(*asked)
        if own is not None:
            own.drafts(n, self._plan.drafts)
        # Rows of its own: the caller's may change.
        kept = [(np.array(row), dtype) for row, dtype in asked[1]]
        self._made_of = asked[0], kept, *asked[2:]

    def __reduce__(self) -> tuple[Any, ...]:
        """By its rows; solved anew, to the same bits."""
        return (_solved_again, self._made_of)

    def emit(
        self,
        drafts: Sequence[int] | ArrayLike,
        rng: np.random.Generator | int | None = None,
    ) -> Any:
        """The output for drafts: a token, and which draft it is (None if none was accepted).

        ``drafts`` are n tokens in the order in which they were drawn, or tuples [N, n], for
        which two arrays are returned; there -1 stands for no draft. ``rng`` gives 64 bits a
        call, which seed the draws.
        """
        tuples = _tokens(drafts)
        if not isinstance(rng, np.random.Generator):
            rng = np.random.default_rng(rng)
        seed = int(rng.integers(0, 2**64, dtype=np.uint64))
        tokens, accepted = self._plan.emit(np.atleast_2d(tuples), seed)
        if tuples.ndim == 1:
            slot = int(accepted[0])
            return int(tokens[0]), (None if slot < 0 else slot)
        return tokens, accepted

    def accepted(self, drafts: Sequence[int] | ArrayLike) -> NDArray[np.float64]:
        """The probability that each of the drafts is the output; the rest of 1 goes to
        :attr:`residual`."""
        tuples = _tokens(drafts)
        return self._plan.accepted(np.atleast_2d(tuples)).reshape(tuples.shape)

    def law(self, drafts: Sequence[int]) -> NDArray[np.float64]:
        """The law of the output given n drafts, V entries."""
        if np.ndim(drafts) != 1:
            raise Refused(f"drafts: give one tuple of tokens; this has {np.ndim(drafts)} dimensions")
        shares = self.accepted(drafts)
        law = self.residual * max(0.0, 1.0 - float(shares.sum()))
        np.add.at(law, _tokens(drafts), shares)
        return law

    @property
    def residual(self) -> NDArray[np.float64]:
        """The law of the output where no draft is accepted, V entries."""
        return self._plan.residual

    @property
    def acceptance(self) -> tuple[float, float, float]:
        """What the plan accepts: value, lower, upper."""
        return self._plan.acceptance

    @property
    def optimum(self) -> tuple[float, float, float]:
        """alpha*: value, lower, upper."""
        return self._plan.optimum

    @property
    def shortfall(self) -> float:
        """The most that acceptance can be below alpha*, all error bounds included."""
        return max(0.0, self.optimum[2] - self.acceptance[1])

    @property
    def is_optimal(self) -> bool:
        """Whether it is known to be within 1e-10 of alpha*. It is lossless in any case."""
        return self.shortfall <= 1e-10

    def __repr__(self) -> str:
        plan = self._plan
        return (
            f"Plan(n={plan.drafts}, vocabulary={plan.vocabulary}, "
            f"acceptance={plan.acceptance[0]:.6f}, shortfall={self.shortfall:.1e})"
        )


def _solved(law: Law | None, given_rows: list[Typed], *asked: Any) -> _native.Plan:
    p, *drawn = given_rows
    if law is None:
        return _native.Plan(p, drawn[0], *asked)
    if law.is_of_rows:
        raise Refused(f"scheme: {law.name} is made of q; give a plan laws.independent or laws.tuples of this row")
    return _native.Plan.of_law(law.known("a plan"), p, drawn, *asked)


def _solved_again(*made_of: Any) -> Plan:
    plan = Plan.__new__(Plan)
    plan._made_of, plan._plan = made_of, _solved(*made_of)
    return plan


@by_any_name
def plan(
    p: ArrayLike,
    q: ArrayLike = None,
    n: int | None = None,
    scheme: Literal["with-replacement"] | Law = "with-replacement",
    *,
    logits: bool = False,
    temperature: float = 1.0,
) -> Plan:
    """The optimal verifier of one pair of rows, usable in a decoder.

    ``p`` and ``q`` are one row [V] each, with ``logits`` and ``temperature`` as :func:`alpha` takes
    them. For i.i.d. drafts (``scheme="with-replacement"``) at any ``n``, by the rule ``level``.
    Solved once, in some milliseconds at V = 50,000; then it emits in O(n). Drafts of a law of
    :mod:`specgap.laws` have a plan by maximum flow where there are at most 2 million pairs of a set
    and a token; a draw may then be shorter than n. Returns :class:`Plan`. Raises :class:`Refused`
    for rows that are no probabilities, and for other laws.

    >>> import specgap as sg
    >>> optimal = sg.plan([0.5, 0.5], [0.75, 0.25], 2)
    >>> optimal.emit([0, 1], rng=7)
    (1, 1)
    """
    return Plan(p, q, n, scheme, logits=logits, temperature=temperature)
