"""Rules that go draft by draft: what they put out and accept, as sums over the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._arrays import count, typed, widened
from ._drafting import Floats, rows_of_drafts
from ._names import LawName, RuleName
from .laws import Law

Step: TypeAlias = "Callable[[Floats, Floats, int, int], Any]"
#: Which draft is next, turn by turn.
Order: TypeAlias = "Sequence[int] | Callable[[int], Sequence[int]] | None"

#: Rules of one's own: functions of drafts too, and formulas.
OwnRule: TypeAlias = "Sequential | Formula | Callable[[Any, Any, Any, Any], Any]"
#: Names, and rules of one's own, some with the law of their drafts.
_One: TypeAlias = "RuleName | OwnRule | tuple[RuleName | OwnRule, LawName | Law]"
Rivals: TypeAlias = "_One | Sequence[_One] | None"

#: A step that is reached less often than this is not asked: what rounding leaves of p - q where
#: the two are one is no law.
_NEVER = 1e-14
#: What a residual may sum to besides 1: single precision over a large vocabulary.
_NEAR_1 = 1e-5
#: Total variation above which a rule that is said to be lossless is refused in a report.
LOSSY = 1e-6
#: How the drafts of these rules are drawn.
LAW = "with-replacement"
#: So are these, each from its own stratum.
STRATA = "stratified-independent"


class SequentialLaw(NamedTuple):
    """What a rule does with n independent drafts: of one pair of rows, or an entry a row."""

    #: The law of its output, an entry a token.
    output: Floats
    #: P(it accepts a draft).
    algorithmic: Floats
    #: P(its output is one of the drafts): what reports call acceptance.
    membership: Floats
    #: Half the sum over tokens of ``|output - p|``: 0, but for rounding, if it is lossless.
    total_variation: Floats


class _Called:
    """What has a name, as functions have."""

    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Sequential(_Called):
    """A rule for n drafts from q, each by itself, that goes draft by draft and remembers nothing
    of those that it rejected. Most rules of the literature are such.

    ``step(p, q, i, n)`` is asked for i = 0 .. n-1 and returns ``keep``, an array of V: the chance
    to keep a draft x, if it is the i-th and all before were rejected. With ``(keep, residual)`` it
    also says what is to be drawn once this draft is rejected: the next step gets the residual as
    its p, and the last one is the law of what is put out where all are rejected. With ``keep``
    alone p stays as it is, and one more call, with i = n, returns that law. ``q`` is the draft's
    row always, and entries of ``keep`` where q is 0 are not looked at.

    So the law of its output, and what it accepts, are sums over the vocabulary: exact, but for
    rounding in double precision, at any vocabulary and any n. Nothing is drawn. With k_i for the
    keeps and R = prod of r_i for the chance that all are rejected, r_i = sum_x q(x) (1 - k_i(x)):

    - Output: sum over i of r_0 .. r_{i-1} q(x) k_i(x), plus R residual(x). The i-th draft is drawn
      from q whatever came before, and is reached with r_0 .. r_{i-1}, as each rejection depends on
      its own draft alone.
    - Algorithmic acceptance: 1 - R, the sum of what is kept.
    - Membership acceptance: a kept draft is among the drafts. If all are rejected, x is put out
      with residual(x), whatever the drafts are, and is among them unless none of them is x. All
      are rejected and none is x with prod of (r_i - q(x) (1 - k_i(x))), since the n drafts are
      independent and the i-th is rejected and not x with that factor. So membership acceptance is
      1 - R + sum over x of residual(x) (R - prod over i of (r_i - q(x) (1 - k_i(x)))).

    ``name`` is that of reports (the function's, if not given) and ``words`` what stands in their
    definitions. ``lossless=True`` has a report refuse rows on which the rule is lossy; ``False``
    says that it is meant to be. ``digest`` tells the rule from others of its name: summaries of
    parts merge only where it is given, and one. With ``rows=True`` a step takes and returns rows
    [N, V]: ``evaluate`` then asks it once for all rows.

    ``order`` has other turns than one for each draft: numbers of drafts, such as ``[1, 0, 1, 0]``, or a
    function of n that returns them. The step is then asked for turn i of n turns, and q is the law of
    the draft whose turn it is, given that it was not kept before: q(x) k(x) above is the mass that
    turns take of it, and the drafts stay independent of one another while all are rejected. Levels
    of :func:`specgap.rules.by_levels` are such a rule. O(V) a turn.

    Of drafts of :func:`specgap.laws.independent` q is the row of draft i, at step i, and of the
    last draft in the call with i = n; q(x) above is then that row's.

    A rule is also a verifier that :func:`specgap.evaluate` takes for any drafts: called with
    ``(p, q, drafts, rng)`` it returns the law of the output.

    >>> import numpy as np
    >>> import specgap as sg
    >>> def step(p, q, i, n):
    ...     left = np.maximum(p - q, 0.0)
    ...     total = left.sum()
    ...     return np.minimum(1.0, p / q), left / total if total > 0 else p
    >>> mine = sg.Sequential(step, name="mine")
    >>> law = mine.law(np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6]), n=2)
    >>> round(float(law.membership), 12), bool(law.total_variation < 1e-15)
    (0.76, True)
    """

    def __init__(
        self,
        step: Step,
        *,
        name: str | None = None,
        lossless: bool | None = None,
        words: str = "",
        digest: str | None = None,
        rows: bool = False,
        order: Order = None,
    ) -> None:
        if not callable(step):
            raise TypeError(
                f"step: give a function of (p, q, i, n); this is {type(step).__name__}"
            )
        for given, what in ((name, "name"), (digest, "digest")):
            if given is not None and not isinstance(given, str):
                raise TypeError(f"{what}: give a string; this is {type(given).__name__}")
        own = str(getattr(step, "__name__", "")).strip("<>_") or type(step).__name__
        self.step = step
        self.name = name if name is not None else "own" if own == "lambda" else own
        self.lossless = lossless
        self.words = words
        self.digest = digest
        self.rows = rows
        self.order = order

    def _order(self, n: int) -> list[int]:
        """Which draft is next, turn by turn."""
        if self.order is None:
            return list(range(n))
        order = [int(one) for one in (self.order(n) if callable(self.order) else self.order)]
        if not order or min(order) < 0 or max(order) >= n:
            raise ValueError(
                f"{self.name}: order is {order}, and there are {n} drafts: give numbers from 0 to {n - 1}, "
                f"or a function of n"
            )
        return order

    def law(self, p: Floats, q: Floats, n: int) -> SequentialLaw:
        """What it does with n drafts: of one row [V] each, or of rows [N, V]. Probabilities, in
        double precision. O(n V), and n or n + 1 calls of the step a row."""
        shape = tuple(np.shape(p))
        if shape != tuple(np.shape(q)) or len(shape) not in (1, 2) or 0 in shape:
            raise ValueError(
                f"p has shape {shape} and q {tuple(np.shape(q))}; give one row [V] each, or rows [N, V]"
            )
        p, q = _distributions(p, "p"), _distributions(q, "q")
        n = count(n, "n", "drafts")
        if p.ndim == 2 and self.rows:
            return self._sums(p, q, n)
        if p.ndim == 1:
            found = self._sums(p[None], q[None], n) if self.rows else self._sums(p, q, n)
            return SequentialLaw(*(one[0] for one in found)) if self.rows else found
        each = []
        for row, pair in enumerate(zip(p, q)):
            try:
                each.append(self._sums(*pair, n))
            except ValueError as error:
                raise ValueError(f"row {row}: {error}") from error
        return SequentialLaw(*(np.stack(column) for column in zip(*each)))

    def each(self, p: Floats, qs: Floats) -> SequentialLaw:
        """The same with n independent drafts of different laws: draft i is drawn from qs[i]. p is
        one row [V], qs are rows [n, V]."""
        p, qs = _distributions(p, "p"), _distributions(qs, "qs")
        if p.ndim != 1 or qs.ndim != 2 or qs.shape[1] != len(p):
            raise ValueError(f"p has shape {p.shape} and qs {qs.shape}; give [V] and [n, V]")
        rows = (p[None], qs[:, None]) if self.rows else (p, qs)
        found = self._sums(*rows, len(qs), True)
        return SequentialLaw(*(one[0] for one in found)) if self.rows else found

    def _sums(self, p: Floats, q: Floats, n: int, each: bool = False) -> SequentialLaw:
        turns = _Turns(self, p, q if each else [q] * n)
        output = np.zeros_like(p)
        for _, keep in turns:
            output += turns.reach[..., None] * (turns.q * keep)
            turns.reject(keep)
        algorithmic = output.sum(axis=-1)
        left, reach = turns.residual(), turns.reach[..., None]
        output += reach * left
        # All are rejected, and none is this token.
        avoided = np.ones_like(p)
        for alive in turns.alive_laws:
            avoided *= alive.sum(axis=-1)[..., None] - alive
        membership = algorithmic + (left * (reach - avoided)).sum(axis=-1)
        distance = 0.5 * np.abs(output - p).sum(axis=-1)
        return SequentialLaw(output, algorithmic, membership, distance)

    def __call__(self, p: Floats, q: Floats, drafts: NDArray[np.int64], rng: Any) -> Floats:
        """The law of the output given the drafts."""
        # Of independent drafts of different laws q is [n, V].
        qs = q if q.ndim == 2 else [q] * len(drafts)
        first, each = (p[None], [row[None] for row in qs]) if self.rows else (p, list(qs))
        turns = _Turns(self, first, each)
        law, alive = np.zeros_like(p), 1.0
        for draft, keep in turns:
            token = int(drafts[draft])
            kept = float(keep[..., token].item())
            law[token] += alive * kept
            alive *= 1.0 - kept
            turns.reject(keep)
        if alive > 0.0:
            law += alive * turns.residual().reshape(p.shape)
        return law

    def _measured_under(self, scheme: str) -> Callable[..., tuple[float, float, float]]:
        """What a report asks of a position, under a law of the table."""

        def measured(
            p: Floats, q: Floats, n: int, position: int, seed: int
        ) -> tuple[float, float, float]:
            return self._checked(under(self, scheme, p, q, n), n)

        return measured

    def _checked(self, found: SequentialLaw, n: int) -> tuple[float, float, float]:
        """What a report has of it, unless it is lossy and was said not to be."""
        away = float(found.total_variation)
        if self.lossless and away > LOSSY:
            raise ValueError(
                f"it is said to be lossless, and with n = {n} its output is {away:.3g} from p in "
                f"total variation; mend the rule, or leave out lossless=True"
            )
        # Rounding is no acceptance.
        return min(float(found.membership), 1.0), min(float(found.algorithmic), 1.0), away


def called(rule: Any) -> str:
    """What a rule of one's own is called: names of the table are told apart."""
    name = str(getattr(rule, "__name__", type(rule).__name__)).strip("<>")
    known = {one.replace("-", "_") for one, *_ in _native.verifiers()}
    if not isinstance(rule, (Sequential, Formula)) and name.replace("-", "_") in known:
        return f"own {name}"
    return name


class Formula(_Called):
    """A rule of which a formula says what it accepts, and nothing else is known: in ``verifiers=`` of
    :func:`specgap.gap` and in ``compare=`` of :func:`specgap.evaluate` on a log.

    ``rate(p, q, n)`` returns P(the output is a draft) of one pair of rows, probabilities: q is [V], or
    [n, V] under a law of independent drafts. ``name``, ``words`` and ``digest`` are those of
    :class:`Sequential`. Whether such a rule is lossless no report says.

    >>> import numpy as np
    >>> import specgap as sg
    >>> def one_noise(p, q, n):  # docs/theory: one draft and the target of the same exponentials
    ...     both = (p > 0) & (q > 0)
    ...     p, q = p[both], q[both]
    ...     each = np.maximum(p[:, None] / p, q[:, None] / q).sum(axis=0)
    ...     return float((1.0 / each).sum())
    >>> mine = sg.Formula(one_noise, name="one noise")
    >>> rows = np.log(np.random.default_rng(0).dirichlet(np.ones(20), 8))
    >>> report = sg.gap(rows[:4], rows[4:], drafts=1, temperature=1.0, schemes="with-replacement",
    ...                 verifiers=[mine, "rrs"], progress=False)
    >>> [row["name"] for row in report.to_dict()["cells"][0]["verifiers"]]
    ['rrs', 'one noise']
    """

    def __init__(
        self,
        rate: Callable[[Floats, Floats, int], float],
        *,
        name: str | None = None,
        words: str = "",
        digest: str | None = None,
    ) -> None:
        if not callable(rate):
            raise TypeError(f"rate: give a function of (p, q, n); this is {type(rate).__name__}")
        self.rate, self.words, self.digest = rate, words, digest
        self.name = name or str(getattr(rate, "__name__", "formula")).strip("<>")

    def of(self, p: Floats, q: Floats, n: int) -> float:
        """What the formula says of a pair of rows, if that is a probability."""
        rate = float(self.rate(p.copy(), q.copy(), n))
        if not -1e-9 <= rate <= 1.0 + 1e-9:
            raise ValueError(f"{self.name}: the formula gives {rate} with n = {n}, and no probability")
        return min(max(rate, 0.0), 1.0)


class _Turns:
    """The steps of a rule on one pair of rows, or on several at once, each answer checked."""

    def __init__(self, rule: Sequential, p: Floats, qs: Sequence[Floats] | Floats) -> None:
        self.rule, self.order = rule, rule._order(len(qs))
        self.n = len(self.order)
        #: By draft: the mass of its tokens that is not kept so far, and whether a turn took of it.
        self.alive_laws = list(qs)
        self._taken = [False] * len(qs)
        self._turn = 0
        #: The law of the draft whose turn it is, given that it was not kept before.
        self.q: Floats = qs[0]
        self.left: Floats = p
        #: The chance that all drafts so far are rejected.
        self.reach: Floats = np.ones(p.shape[:-1])
        self.given: Floats | None = None

    @property
    def alive(self) -> Any:
        """Rows on which a further step is reached."""
        return self.reach > _NEVER

    def __iter__(self) -> Any:
        for i, draft in enumerate(self.order):
            if not self.alive.any():
                return
            self._turn, left = draft, self.alive_laws[draft]
            if self._taken[draft]:
                total = left.sum(axis=-1)[..., None]
                left = np.where(total > 0.0, left / np.maximum(total, 1e-300), left)
            self.q = left
            result = self._asked(i)
            if isinstance(result, tuple):
                if len(result) != 2:
                    raise ValueError(
                        f"step {i}: returned a tuple of {len(result)}; return keep, or "
                        f"(keep, residual)"
                    )
                keep, self.given = result
            else:
                keep, self.given = result, None
            yield draft, self._keep(keep, i)
            if self.given is not None:
                self.left = self._law(self.given, f"step {i}: the residual")

    def reject(self, keep: Floats) -> None:
        """Goes on where this draft was rejected."""
        self.reach = self.reach * (self.q * (1.0 - keep)).sum(axis=-1)
        self.alive_laws[self._turn] = self.alive_laws[self._turn] * (1.0 - keep)
        self._taken[self._turn] = True

    def residual(self) -> Floats:
        """The law of what is put out where all drafts are rejected."""
        if self.given is None and self.alive.any():
            result = self._asked(self.n)
            if isinstance(result, tuple):
                raise ValueError(
                    f"step {self.n}: returned a tuple; the call with i = n returns the residual, "
                    f"as the steps before returned keep alone"
                )
            self.left = self._law(result, f"step {self.n}: the residual")
        return self.left

    def _asked(self, i: int) -> Any:
        # 0/0 of tokens that are never drafted is looked at by nobody.
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.rule.step(self.left.copy(), self.q.copy(), i, self.n)

    def _array(self, given: Any, what: str) -> Floats:
        array, dtype = typed(given, what)
        if array.shape != self.q.shape or dtype == "bfloat16" or array.dtype.kind not in "fiub":
            raise ValueError(
                f"{what} is {dtype} of shape {array.shape}; give floats of shape {self.q.shape}"
            )
        return array.astype(np.float64)

    def _keep(self, given: Any, i: int) -> Floats:
        keep = self._array(given, f"step {i}: keep")
        keep = np.where((self.q > 0.0) & self.alive[..., None], keep, 0.0)
        bad = ~((keep >= 0.0) & (keep <= 1.0))
        if bad.any():
            at = tuple(int(x) for x in np.argwhere(bad)[0])
            raise ValueError(
                f"{_place(at)}step {i}: token {at[-1]} is kept with {float(keep[at]):.6g}; "
                f"a chance is in [0, 1], such as numpy.minimum(1, p / q)"
            )
        return keep

    def _law(self, given: Any, what: str) -> Floats:
        law = self._array(given, what)
        law = np.where(self.alive[..., None], law, self.left)
        bad = ~((law >= 0.0) & np.isfinite(law))
        if bad.any():
            at = tuple(int(x) for x in np.argwhere(bad)[0])
            raise ValueError(
                f"{_place(at)}{what} is {float(law[at]):.6g} at token {at[-1]}; probabilities are >= 0 "
                f"(where nothing is left to draw, return p)"
            )
        sums = np.atleast_1d(law.sum(axis=-1))
        if (np.abs(sums - 1.0) > _NEAR_1).any():
            row = int(np.argmax(np.abs(sums - 1.0)))
            token = int(np.atleast_2d(law)[row].argmax())
            raise ValueError(
                f"{_place((row,) * law.ndim)}{what} sums to {sums[row]:.6g}, most of it at token "
                f"{token}; probabilities sum to 1: divide by the sum, and where it is 0 return p"
            )
        return law


def refuse_law(name: str, scheme: str | Law) -> None:
    """Raises if drafts of this law are not what a Sequential rule is for."""
    if isinstance(scheme, Law):
        if not scheme.is_independent:
            raise TypeError(
                f"{name}: a Sequential rule is for drafts that are each drawn by themselves, and "
                f"those of {scheme.name} are not; give a function of (p, q, drafts, rng)"
            )
    elif scheme not in (LAW, STRATA):
        raise TypeError(
            f"{name}: a Sequential rule is for {LAW} and {STRATA} drafts, each by itself; of {scheme} "
            f"drafts give a function of (p, q, drafts, rng)"
        )


def under(rule: Sequential, scheme: str | Law, p: Floats, shown: Floats, n: int) -> SequentialLaw:
    """What a rule does with drafts of a law at one pair of rows, ``shown`` being what it sees as q."""
    refuse_law(rule.name, scheme)
    if scheme == LAW:
        return rule.law(p, shown, n)
    if isinstance(scheme, str):
        rows = rows_of_drafts(shown / shown.sum(), n, scheme)
        assert rows is not None
        shown = rows
    return rule.each(p, shown)


def _distributions(given: Any, name: str) -> Floats:
    """Rows in double precision, if they are distributions."""
    array, dtype = typed(np.asarray(given) if isinstance(given, (list, tuple)) else given, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: has entries of type {dtype}; give probabilities")
    rows = widened(array, dtype)
    sums = rows.sum(axis=-1)
    bad = ~((np.abs(sums - 1.0) <= _NEAR_1) & (rows >= 0.0).all(axis=-1))
    if bad.any():
        at = tuple(int(x) for x in np.argwhere(bad)[0])
        raise ValueError(
            f"{name}: {_place((*at, 0))}sums to {float(sums[at]):.6g}, with a least entry of "
            f"{float(rows[at].min()):.6g}; give probabilities, which are >= 0 and sum to 1 (of logits "
            f"take the softmax; divide by the sum what was rounded)"
        )
    return rows


def _place(at: tuple[int, ...]) -> str:
    return f"row {at[0]}: " if len(at) > 1 else ""


#: Rules of one's own, each with the law that was said with it.
OwnAsked: TypeAlias = "list[tuple[OwnRule, str | Law | None]]"


def split(verifiers: Any) -> tuple[list[str] | None, OwnAsked, list[tuple[str, str | Law]]]:
    """The names among verifiers, None for the usual ones, the rules that are no names, and the names
    that a law was said with."""
    if verifiers is None:
        return None, [], []
    pair = isinstance(verifiers, tuple) and len(verifiers) == 2 and is_law(verifiers[1])
    if pair or isinstance(verifiers, (str, Formula)) or callable(verifiers):
        verifiers = [verifiers]
    if not isinstance(verifiers, Iterable):
        raise TypeError(f"verifiers: give names and rules of your own; this is {type(verifiers).__name__}")
    names: list[str] = []
    own: OwnAsked = []
    told: list[tuple[str, str | Law]] = []
    for one in verifiers:
        rule, law = one if isinstance(one, tuple) and len(one) == 2 else (one, None)
        if isinstance(law, str):
            law = _native.law_named(law)
        if isinstance(rule, str):
            if rule not in names:
                names.append(rule)
            if law is not None:
                told.append((rule, law))
        elif isinstance(rule, Formula) or callable(rule):
            if isinstance(rule, Sequential) and law is not None:
                refuse_law(rule.name, law)
            own.append((rule, law))
        else:
            raise TypeError(
                f"verifiers: give names, specgap.Sequential rules, specgap.Formula or functions of "
                f"(p, q, drafts, rng), each alone or as (rule, law); this is {type(one).__name__}"
            )
    return names, own, told


def is_law(one: Any) -> bool:
    """Whether this is a law, and no rule."""
    rules = {name for name, _, _ in _native.verifiers()}
    laws = {name for name, _, _ in _native.schemes()}
    return isinstance(one, Law) or (isinstance(one, str) and one in laws - rules)
