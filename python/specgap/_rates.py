"""Rates of rows: alpha*, what verifiers accept, and the plan that attains alpha*."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._arrays import ArrayLike, Typed, count, rows
from ._progress import Progress, shown


@dataclass(frozen=True)
class Rates:
    """Numbers of rows, each between two bounds.

    ``value``, ``lower`` and ``upper`` are floats if one row was given, else arrays of N.
    Bounds hold all rounding. ``kind`` says in a word how well a number is known: ``enclosed``
    (the bounds are rigorous) or ``monte-carlo`` (a mean over simulated runs, with an interval
    of 99.9%).
    """

    value: Any
    lower: Any
    upper: Any
    kind: Any
    #: The draft law.
    scheme: str
    #: Number of drafts.
    n: int
    _pairs: tuple[Typed, Typed] = field(repr=False, compare=False)
    _logits: bool = field(repr=False, compare=False)
    _temperature: float = field(repr=False, compare=False)

    @property
    def subset(self) -> Any:
        """The token set H with alpha* = 1 + p(H) - Q(H), rising by id: the certificate.

        One array of tokens for one row, a list of N for rows. Only alpha* has one, and only
        under the laws that are solved by a scan.
        """
        sets = _native.subsets(*self._pairs, self.n, self.scheme, self._logits, self._temperature)
        return sets[0] if np.ndim(self.value) == 0 else sets


def _answered(
    answered: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], list[str]],
    one: bool,
    scheme: str,
    n: int,
    pairs: tuple[Typed, Typed],
    logits: bool,
    temperature: float,
) -> Rates:
    value, lower, upper, kind = answered
    settings = (scheme, n, pairs, logits, temperature)
    if one:
        return Rates(float(value[0]), float(lower[0]), float(upper[0]), kind[0], *settings)
    return Rates(value, lower, upper, kind, *settings)


def _asked(n: object, logits: bool, temperature: float) -> int:
    """The number of drafts, if the rest can be meant as it is said."""
    if not logits and temperature != 1.0:
        raise ValueError(
            f"temperature is {temperature}, which is for logits: say logits=True, or give "
            "probabilities at that temperature"
        )
    return count(n, "n", "drafts")


def alpha(
    p: ArrayLike,
    q: ArrayLike,
    n: int,
    scheme: str = "with-replacement",
    *,
    logits: bool = False,
    temperature: float = 1.0,
    threads: int = 0,
    progress: Progress = None,
) -> Rates:
    """alpha*: the largest probability that a lossless verifier puts out one of n drafts.

    ``p`` is the target's row and ``q`` the draft's: probabilities, or logits with
    ``logits=True``, of which softmax at ``temperature`` is taken. One row [V] or rows [N, V],
    of float16, bfloat16, float32 or float64, of NumPy or torch; read where they lie.
    ``scheme`` is how the drafts are drawn from q, one of :func:`schemes`; there are up to 64.

    Returns :class:`Rates`: ``value`` between ``lower`` and ``upper``, which are rigorous, and
    ``subset``, the tokens H with alpha* = 1 + p(H) - Q(H). Raises ``ValueError`` for rows that
    are no probabilities, with row and entry. A row takes one pass, and no sort.

    >>> import specgap as sg
    >>> sg.alpha([0.5, 0.5], [0.75, 0.25], 2).value
    0.9375
    """
    n = _asked(n, logits, temperature)
    pairs = (rows(p, "p"), rows(q, "q"))
    found = _native.alpha(*pairs, n, scheme, logits, temperature, threads, shown(progress))
    return _answered(found, np.ndim(p) == 1, scheme, n, pairs, logits, temperature)


def acceptance(
    verifier: str,
    p: ArrayLike,
    q: ArrayLike,
    n: int,
    scheme: str | None = None,
    *,
    logits: bool = False,
    temperature: float = 1.0,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = None,
) -> Rates:
    """How often a verifier's output is one of the n drafts; rows as :func:`alpha` takes them.

    ``verifier`` is one of :func:`verifiers`, and ``scheme`` a law of drafts for which it is
    lossless; the first such law if not given. ``seed`` is that of rates that are simulated.
    Returns :class:`Rates`, whose ``kind`` says which these are.

    >>> import specgap as sg
    >>> round(sg.acceptance("rrs", [0.5, 0.5], [0.75, 0.25], 2).value, 12)
    0.8125
    """
    if not isinstance(verifier, str):
        raise TypeError(
            "the verifier's name comes first, as in acceptance(\"rrs\", p, q, n); a function of "
            "your own goes to evaluate()"
        )
    n = _asked(n, logits, temperature)
    pairs = (rows(p, "p"), rows(q, "q"))
    found, law = _native.acceptance(
        verifier, *pairs, n, scheme, logits, temperature, seed, threads, shown(progress)
    )
    return _answered(found, np.ndim(p) == 1, law, n, pairs, logits, temperature)


def schemes() -> dict[str, str]:
    """The laws of drafts by name, each in one line."""
    return {name: words for name, words, _ in _native.schemes()}


def verifiers() -> dict[str, str]:
    """The verifiers by name, each in one line."""
    return {name: f"{words}; for {drafts}" for name, words, drafts in _native.verifiers()}


class Plan:
    """The optimal verifier of one pair of rows: lossless, and it accepts alpha*.

    Made once for a pair of rows, it then emits in O(n): see :func:`plan`.
    """

    def __init__(
        self,
        p: ArrayLike,
        q: ArrayLike,
        n: int,
        scheme: str = "with-replacement",
        *,
        logits: bool = False,
        temperature: float = 1.0,
    ) -> None:
        n = _asked(n, logits, temperature)
        self._plan = _native.Plan(rows(p, "p"), rows(q, "q"), n, scheme, logits, temperature)

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
        tuples = np.asarray(drafts, dtype=np.int64)
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
        tuples = np.asarray(drafts, dtype=np.int64)
        return self._plan.accepted(np.atleast_2d(tuples)).reshape(tuples.shape)

    def law(self, drafts: Sequence[int]) -> NDArray[np.float64]:
        """The law of the output given n drafts, V entries."""
        shares = self.accepted(drafts)
        law = self.residual * max(0.0, 1.0 - float(shares.sum()))
        np.add.at(law, np.asarray(drafts, dtype=np.int64), shares)
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


def plan(
    p: ArrayLike,
    q: ArrayLike,
    n: int,
    scheme: str = "with-replacement",
    *,
    logits: bool = False,
    temperature: float = 1.0,
) -> Plan:
    """The optimal verifier of one pair of rows, usable in a decoder.

    For i.i.d. drafts (``with-replacement``) at any n, by the rule ``level``. Solved once, in some
    milliseconds at V = 50,000; then it emits in O(n). Returns :class:`Plan`.

    >>> import specgap as sg
    >>> optimal = sg.plan([0.5, 0.5], [0.75, 0.25], 2)
    >>> optimal.emit([0, 1], rng=7)
    (1, 1)
    """
    return Plan(p, q, n, scheme, logits=logits, temperature=temperature)
