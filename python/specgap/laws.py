"""Draft laws of one's own, wherever a law's name is taken for rows: ``scheme=`` of
:func:`specgap.alpha`, :func:`specgap.acceptance`, :func:`specgap.plan` and
:func:`specgap.evaluate`, and among the ``schemes=`` of :func:`specgap.gap`.

===================  ==================================  ==========================================
law                  q                                   what there is
===================  ==================================  ==========================================
:func:`composed`     one row a position                  alpha*, rules, plans where sets are few
:func:`independent`  the law's own, one a draft          alpha*, ``rrs`` and others, plans
:func:`tuples`       none                                alpha*, rules, plans
:func:`of_rows`      one row a position                  alpha*, rules
:func:`sampler`      what it likes                       ``evaluate`` alone: its outputs are drawn
===================  ==================================  ==========================================

alpha* is that of the fastest method that is proved to find it: a small flow, one sort where the law
is convex in one score, linear thresholds where in two, a larger flow. Elsewhere ``lower`` and
``upper`` are bounds that need not meet: 1 + p(H) - Q(H) of the best set that was met, and Edmonds'
bound below.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._arrays import ArrayLike, Typed, count, rows, widened
from ._errors import Refused

__all__ = ["Law", "composed", "independent", "of_rows", "sampler", "tuples"]

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"
Sampler: TypeAlias = "Callable[[Any, int, np.random.Generator], Any]"
OfRow: TypeAlias = "Callable[[Floats], Any]"



class Drafts(np.ndarray[Any, Any]):
    """Drafts, with the noise that they were drawn by, which a rule may use too."""

    #: What a sampler that was made with ``noise=True`` returned beside the drafts; else None.
    noise: Any

    def __array_finalize__(self, of: Any) -> None:
        self.noise = getattr(of, "noise", None)


#: Tuples that are listed at most, to be drawn from or summed over.
MOST_TUPLES = 100_000


class Law:
    """A draft law of one's own; :func:`composed`, :func:`independent`, :func:`tuples` and
    :func:`sampler` make it."""

    def __init__(
        self,
        name: str,
        table: Mapping[str, Any] | None,
        own: Sequence[Typed] = (),
        n: int | None = None,
        function: Sampler | None = None,
        noise: bool = False,
        of: OfRow | None = None,
        digest: str | None = None,
    ) -> None:
        self.name = name
        self._noise = noise
        self._of = of
        #: What tells a function of q from others of its name.
        self.digest = digest
        #: Drafts of a draw, if every row has as many.
        self.n = n
        #: ``[draft]`` of a problem file, without q; None of a sampler.
        self.table = table
        self._own, self._function = tuple(own), function
        self._law = None if table is None else _native.RowLaw(json.dumps(table))

    def __repr__(self) -> str:
        return f"Law({self.name!r})" if self.n is None else f"Law({self.name!r}, n={self.n})"

    def __reduce__(self) -> tuple[Any, ...]:
        made = self._own, self.n, self._function, self._noise, self._of, self.digest
        return Law, (self.name, self.table, *made)

    @property
    def is_independent(self) -> bool:
        """Whether each draft is drawn by itself, from a row of its own."""
        return bool(self._own) or (self.table or {}).get("scheme") == "product"

    @property
    def is_of_rows(self) -> bool:
        """Whether a function of q says at each row what it is."""
        return self._of is not None

    @property
    def has_rows(self) -> bool:
        """Whether what it draws from is not the draft's row: :meth:`rows_at` has it."""
        return self.is_independent or self.is_of_rows

    @property
    def is_sampled(self) -> bool:
        """Whether its drafts can be drawn and nothing else is known of them."""
        return self._law is None

    @property
    def names_tokens(self) -> bool:
        """Whether it holds ids of tokens, so that it fits one vocabulary."""
        ids = {"tokens", "tuples", "avoid", "chances", "into", "q"}

        def named(table: Any) -> bool:
            if isinstance(table, list):
                return any(named(one) for one in table)
            return isinstance(table, dict) and (
                not ids.isdisjoint(table) or any(named(one) for one in table.values())
            )

        return bool(self._own) or (self._of is None and named(self.table))

    def known(self, what: str) -> _native.RowLaw:
        """The law, if more is known of it than draws."""
        if self._law is None:
            raise Refused(
                f"scheme: {self.name} is a sampler, which can only be drawn from, and {what} needs "
                f"probabilities; give the law as laws.composed, laws.independent or laws.tuples, "
                f"or simulate a rule by evaluate(rule, p, q, n, scheme=..)"
            )
        return self._law

    def drawn_from(self, q: ArrayLike) -> list[Typed]:
        """The rows that the law draws from, of those that were given."""
        if self._of is None and (self._own or self.table is not None and "tuples" in self.table):
            if q is not None:
                whose = "rows of its own" if self._own else "a list of tuples"
                raise Refused(f"q: {self.name} draws from {whose}; give None for q")
            return list(self._own)
        if q is None:
            raise TypeError(f"q: {self.name} draws from it; give the draft's row or rows")
        return [rows(q, "q")]

    def drafts(self, n: object, found: int) -> int:
        """The number of drafts, if ``n`` is that or None."""
        if n is not None and count(n, "n", "drafts") != found:
            raise Refused(f"n is {n}; {self.name} drafts up to {found}: leave n out")
        return found

    def shown(self, q: Floats | None, row: int) -> Floats | None:
        """What a verifier is shown as q at a row: [n, V] of independent drafts."""
        if self._of is not None and self.is_independent:
            return self._made(q)
        if not self._own:
            return q
        each = []
        for own, dtype in self._own:
            at = 0 if len(own) == 1 else row
            if at >= len(own):
                raise Refused(
                    f"scheme: {self.name} has {len(own)} rows a draft, and this is position {row}"
                )
            one = widened(own[at : at + 1], dtype)[0]
            each.append(one / one.sum())
        return np.stack(each)

    def at(self, shown: Floats | None, vocabulary: int) -> _native.DraftLaw:
        """The law where a verifier is shown this."""
        law = self.known("a sum over drafts")
        if self._of is not None and not self.is_independent:
            return self._listed_at(shown).at(vocabulary, [])
        if "tuples" in (self.table or {}):
            return law.at(vocabulary, [])
        assert shown is not None
        return law.at(vocabulary, list(np.atleast_2d(shown)))

    def rows_at(self, position: int, q: Floats) -> Any:
        """What it draws from at a position of a log: rows, or a law of tuples."""
        q = q / q.sum()
        return self.shown(q, position) if self.is_independent else self._listed_at(q)

    def _made(self, q: Floats | None) -> Floats:
        """The rows that a function of q makes, [n, V]."""
        assert self._of is not None
        if q is None:
            raise TypeError(f"q: {self.name} is made of it; give the draft's row or rows")
        made = np.asarray(self._of(q.copy()), dtype=np.float64)
        if made.shape != (self.n, len(q)):
            raise Refused(
                f"scheme: {self.name} made rows of shape {made.shape}; give one of {len(q)} for each of "
                f"{self.n} drafts"
            )
        sums = made.sum(axis=1)
        if not ((made >= 0).all() and (np.abs(sums - 1.0) <= 1e-6).all()):
            raise Refused(
                f"scheme: {self.name} made rows that sum to {sums.tolist()}, with a least entry of "
                f"{made.min():.6g}; probabilities are >= 0 and sum to 1"
            )
        found: Floats = made / sums[:, None]
        return found

    def _listed_at(self, q: Floats | None) -> _native.RowLaw:
        """The law of the tuples that a function of q makes."""
        assert self._of is not None
        if q is None:
            raise TypeError(f"q: {self.name} is made of it; give the draft's row or rows")
        made = self._of(q.copy())
        if not isinstance(made, tuple) or len(made) != 2:
            raise Refused(f"scheme: {self.name} returned {type(made).__name__}; give (tuples, probabilities)")
        law = tuples(*made, name=self.name)
        if law.n != self.n:
            raise Refused(f"scheme: {self.name} made tuples of {law.n} drafts, and n is {self.n}")
        return law.known("a row")

    def listed(self, shown: Floats | None, vocabulary: int) -> tuple[list[Integers], Floats] | None:
        """All tuples of drafts and their probabilities; None if they are too many."""
        law = self.at(shown, vocabulary)
        if law.count > MOST_TUPLES:
            return None
        return without_padding(*law.tuples())

    def drawer(
        self, shown: Floats | None, n: int, vocabulary: int
    ) -> Callable[[np.random.Generator], Integers]:
        """Draws drafts where a verifier is shown this."""
        if self._function is not None:
            function = self._function

            def sampled(generator: np.random.Generator) -> Integers:
                given = None if shown is None else shown.copy()
                result = function(given, n, generator)
                if not self._noise:
                    return _checked(result, n, vocabulary, self.name)
                if not isinstance(result, tuple) or len(result) != 2:
                    raise Refused(
                        f"scheme: {self.name} returned {result!r}; with noise=True a sampler returns the "
                        "tuple (drafts, noise)"
                    )
                drafts = _checked(result[0], n, vocabulary, self.name).view(Drafts)
                drafts.noise = result[1]
                return drafts

            return sampled
        if self.is_independent:
            assert shown is not None
            return lambda generator: np.array(
                [generator.choice(vocabulary, p=row) for row in shown], dtype=np.int64
            )
        found = self.listed(shown, vocabulary)
        if found is None:
            raise Refused(
                f"scheme: {self.name} has more than {MOST_TUPLES:,} tuples at this row, too many "
                f"to list and draw from; cut rows (top_k), or draw them yourself by laws.sampler"
            )
        tuples, probabilities = found
        cumulative = np.cumsum(probabilities)

        def drawn(generator: np.random.Generator) -> Integers:
            at = int(np.searchsorted(cumulative, generator.random() * cumulative[-1], side="right"))
            return tuples[min(at, len(tuples) - 1)]

        return drawn

    def problem(self, shown: Floats | None) -> dict[str, Any]:
        """``[draft]`` of a problem file where a verifier is shown this."""
        table = dict(self.table or {})
        if self._of is not None and not self.is_independent and shown is not None:
            table = dict(tuples(*self._of(shown.copy())).table or {})
        elif shown is not None and "tuples" not in table:
            table["qs" if self.is_independent else "q"] = shown.tolist()
        return table


def without_padding(tuples: Integers, masses: Floats) -> tuple[list[Integers], Floats]:
    """Tuples with their probabilities, each as long as it is."""
    return [one[one >= 0] for one in tuples], masses


def _checked(result: Any, n: int, vocabulary: int, name: str) -> Integers:
    drafts = np.asarray(result)
    if drafts.ndim != 1 or len(drafts) > n or (len(drafts) and drafts.dtype.kind not in "iu"):
        raise Refused(
            f"scheme: {name} returned {result!r}; a sampler returns up to n = {n} tokens"
        )
    if len(drafts) and not (0 <= drafts.min() and drafts.max() < vocabulary):
        raise Refused(
            f"scheme: {name} returned {drafts.tolist()}; tokens are 0 to {vocabulary - 1}"
        )
    return drafts.astype(np.int64)


def composed(law: Mapping[str, Any], *, name: str = "composed") -> Law:
    """A law that is made of others, drawn from each row's q: forced tokens, unions, mixtures,
    stopped races, conditioned and merged draws. ``law`` is what ``draft.law`` of a problem file is,
    in the same words; numbers may be fractions.

    >>> import specgap as sg
    >>> top_and_draw = sg.laws.composed({"law": "union", "of": [
    ...     {"law": "top", "drafts": 1},
    ...     {"law": "without-replacement", "drafts": 1, "avoid_top": 1},
    ... ]})
    >>> best = sg.alpha([0.125, 0.125, 0.75], [0.5, 0.25, 0.25], scheme=top_and_draw)
    >>> best.n, best.value, best.subset.tolist()
    (2, 0.75, [0, 1])
    """
    if not isinstance(law, Mapping):
        raise TypeError(
            f"law: give the dict that draft.law of a problem file is; this is {type(law).__name__}"
        )
    return Law(name, {"scheme": "composed", "law": plain(law)})


def independent(rows_of_drafts: Sequence[ArrayLike], *, name: str = "independent") -> Law:
    """Draft i from row i, each by itself: several drafters, several temperatures, strata. A draft
    has one row [V] for all positions, or rows [N, V]; logits where the call says ``logits=True``.

    >>> import specgap as sg
    >>> two = sg.laws.independent([[0.5, 0.5], [0.75, 0.25]])
    >>> round(sg.acceptance("rrs", [0.25, 0.75], scheme=two).value, 12)
    0.8125
    """
    if isinstance(rows_of_drafts, (str, Mapping)) or len(rows_of_drafts) == 0:
        raise Refused("rows_of_drafts: give a list of rows, one for each draft")
    own = [rows(one, f"q[{index}]") for index, one in enumerate(rows_of_drafts)]
    return Law(name, {"scheme": "product"}, own, len(own))


def tuples(
    tuples: Sequence[Sequence[int]] | ArrayLike,
    probabilities: Sequence[Any] | ArrayLike,
    *,
    name: str = "tuples",
) -> Law:
    """A list of tuples of drafts and the probability of each, the same at all rows. Tuples that are
    there twice add up. Probabilities are floats, or fractions, which are taken exactly.

    >>> import specgap as sg
    >>> pair = sg.laws.tuples([[0, 1], [2, 1]], ["1/4", "3/4"])
    >>> round(sg.alpha([0.5, 0.25, 0.25], scheme=pair).value, 12)
    0.75
    """
    try:
        listed = [[operator.index(token) for token in one] for one in tuples]
    except TypeError:
        raise TypeError("tuples: give lists of tokens' ids, which are whole numbers") from None
    masses = [plain(mass) for mass in probabilities]
    lengths = {len(one) for one in listed}
    if len(lengths) != 1 or 0 in lengths:
        raise Refused(
            f"tuples: have {sorted(lengths)} tokens; give at least one, all of one length"
        )
    table = {"scheme": "explicit", "tuples": listed, "probabilities": masses}
    return Law(name, table, n=lengths.pop())


def of_rows(
    function: OfRow, n: int, *, tuples: bool = False, name: str | None = None, digest: str | None = None
) -> Law:
    """A law that a function makes of each row of the draft, a log's too, listed tokens alone included:
    ``function(q)`` returns rows [n, V], from which n independent drafts are drawn, or, with ``tuples``,
    ``(tuples, probabilities)`` as :func:`tuples` takes them, of n tokens each by their place in q. q is
    a copy, probabilities. ``digest`` tells the function from others of its name, where parts merge.

    >>> import numpy as np
    >>> import specgap as sg
    >>> def sharper(q):
    ...     powers = np.stack([q, q ** 2])
    ...     return powers / powers.sum(axis=1, keepdims=True)
    >>> law = sg.laws.of_rows(sharper, 2)
    >>> round(sg.alpha([0.5, 0.5], [0.75, 0.25], scheme=law).value, 12)
    0.825
    """
    if not callable(function):
        raise TypeError(f"function: give a function of q; this is {type(function).__name__}")
    n = count(n, "n", "drafts")
    own = str(getattr(function, "__name__", "of rows")).strip("<>")
    table: dict[str, Any] = {"scheme": "product"}
    if tuples:
        table = {"scheme": "explicit", "tuples": [[0] * n], "probabilities": [1]}
    return Law(name or own, table, n=n, of=function, digest=digest)


def sampler(function: Sampler, *, name: str | None = None, noise: bool = False) -> Law:
    """A law that can only be drawn from: ``function(q, n, rng)`` returns up to n tokens, ``rng`` being a
    numpy Generator. :func:`specgap.evaluate` simulates rules with it; alpha* is then unknown.

    With ``noise`` it returns ``(tokens, noise)``, and the rule finds the second as ``drafts.noise``: for
    rules that use the drafter's own random numbers, as Gumbel lists and shared uniforms do. Whether the
    output has the law p is then tested over that noise too.

    >>> import numpy as np
    >>> import specgap as sg
    >>> def gumbel(q, n, rng):
    ...     noise = rng.gumbel(size=len(q))
    ...     return np.argsort(-(np.log(q) + noise))[:n], noise
    >>> def same_noise(p, q, drafts, rng):
    ...     return int(np.argmax(np.log(p) + drafts.noise))
    >>> law = sg.laws.sampler(gumbel, noise=True)
    >>> p, q = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    >>> found = sg.evaluate(same_noise, p, q, 1, law, samples=2_000)
    >>> found.lossless, found.acceptance[1] < 0.5765 < found.acceptance[2]
    ('not refuted', True)
    """
    if not callable(function):
        raise TypeError(
            f"function: give a function of (q, n, rng); this is {type(function).__name__}"
        )
    own = str(getattr(function, "__name__", "sampler")).strip("<>")
    return Law(name or own, None, function=function, noise=noise)


def plain(value: Any) -> Any:
    """As JSON has it: fractions as text, arrays as lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(one) for one in value]
    return value


def given(scheme: object) -> Law | None:
    """The law of one's own, or None of a name."""
    if isinstance(scheme, Law):
        return scheme
    if isinstance(scheme, str):
        return None
    cure = "give a name of schemes(), or a law of specgap.laws"
    if isinstance(scheme, Mapping):
        cure = "did you mean specgap.laws.composed(..)?"
    elif isinstance(scheme, (list, tuple, np.ndarray)):
        cure = (
            "did you mean specgap.laws.composed(..), specgap.laws.independent([q1, q2, ..]) or "
            "specgap.laws.tuples(tuples, probabilities)?"
        )
    elif callable(scheme):
        cure = "did you mean specgap.laws.sampler(..)?"
    raise TypeError(f"scheme: is {type(scheme).__name__}; {cure}")
