"""Verifiers of one's own on a log: at its positions, with intervals over its prompts."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._evaluate import (
    Floats,
    Integers,
    Lossless,
    Verifier,
    _by_rank,
    _Drawing,
    _NotEnumerable,
    _Rule,
    _summed,
    draw,
    drawer,
    own_optimum,
    tv_words,
    typical,
    without_nan,
)
from ._logs import LogLike, opened
from ._names import LawName, RuleName
from ._progress import Progress, shown
from ._reports import _asked, _names, _numbers, _of_logs
from ._sequential import LAW, Sequential, refuse_law
from .laws import Law

#: A mean over positions, and its interval of 95% over prompts.
Interval = tuple[float, float, float]

#: What the rule is called while it is measured: a name that no rule of the table has, as examples
#: of these in :mod:`specgap.rules` are called as they are.
_CALLED = "the rule"
#: Cells of the test whether the output's law is p.
_CELLS = 8
#: Weight of what had to come up, so that the first bets are small.
_PRIOR = 8.0


@dataclass(frozen=True)
class LogEvaluation:
    """What a verifier of one's own does on a log. Acceptance, alpha*, gap and differences are
    means over its positions: value, lower and upper end of an interval of 95% over prompts, which
    has the noise of a simulation in it too. With one prompt there is no interval: its ends are the
    value.

    - ``name``, ``scheme``, ``n``, ``temperature``: What it is called, the draft law, drafts, and T.
    - ``positions``, ``clusters``: Positions, and independent units of the intervals: prompts, or
      positions where the log has none.
    - ``exact``: Whether every position was summed; else outputs were drawn.
    - ``samples``: Outputs that were drawn over all positions, of a rule that was not summed.
    - ``acceptance``: P(output is one of the drafts).
    - ``algorithmic_acceptance``: P(the verifier says that it accepts a draft); nan if it does not
      say.
    - ``optimal_acceptance``: alpha*.
    - ``gap``: alpha* minus acceptance at the same positions. Below 0, it accepts more than any
      lossless verifier can.
    - ``differences``: Acceptance minus that of a named rule, at the same positions.
    - ``lossless``: ``exact``: the output's law is p at every position, up to the tolerance.
      ``refuted``: it is not. ``not refuted``: outputs were drawn, and nothing was found.
    - ``total_variation``: Half the sum over tokens of ``|law of the output - p|``, the largest of
      any position; None where outputs were drawn.
    - ``worst``: The number of that position.
    - ``e_value``: Of drawn outputs: evidence against losslessness. Above 1/alpha it is refuted.
    - ``table``: By position: number, prompt_id (-1 if unknown), acceptance, optimum, and where
      they are known total_variation and the named rules' acceptance.
    """

    name: str
    scheme: str
    n: int
    temperature: float
    positions: int
    clusters: int
    exact: bool
    samples: int | None
    acceptance: Interval
    algorithmic_acceptance: float
    optimal_acceptance: Interval
    gap: Interval
    differences: dict[str, Interval]
    lossless: Lossless
    total_variation: float | None
    worst: int | None
    e_value: float | None
    table: dict[str, NDArray[Any]] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """All of it as data, but for the table."""
        names = [name for name in self.__dataclass_fields__ if name != "table"]
        fields: dict[str, Any] = without_nan({name: getattr(self, name) for name in names})
        return fields

    def __str__(self) -> str:
        how = "summed at every position" if self.exact else f"{self.samples:,} outputs drawn"
        lines = [
            f"{self.name}: n = {self.n}, {self.scheme}, T = {self.temperature:g}, "
            f"{self.positions:,} positions of {self.clusters:,} clusters; {how}"
        ]

        def line(what: str, numbers: Interval) -> str:
            value, low, high = numbers
            half = 0.5 * (high - low)
            return f"  {what:24}{value:.6f}" + (f" ± {half:.6f}" if half > 0.0 else "")

        lines.append(line("acceptance", self.acceptance))
        lines.append(line("alpha*", self.optimal_acceptance))
        lines.append(line("gap", self.gap))
        lines += [line(f"more than {name}", one) for name, one in self.differences.items()]
        if self.lossless == "exact":
            lines.append(f"  lossless                yes: TV at most {self.total_variation:.1e}")
        elif self.total_variation is not None:
            lines.append(
                f"  lossless                NO: TV {tv_words(self.total_variation)} at position "
                f"{self.worst}"
            )
        else:
            verdict = "NO" if self.lossless == "refuted" else "not refuted"
            lines.append(f"  lossless                {verdict}: e-value {self.e_value:.3g}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class _Simulated:
    """A rule that is drawn at every position. What it accepts is averaged over the law of its
    output where it returns one. Of i.i.d. drafts what recursive rejection accepts of the same
    drafts, whose mean is known, takes away the noise that the two have in common."""

    def __init__(self, verifier: Verifier, scheme: str | Law, each: int) -> None:
        self.verifier, self.scheme = verifier, scheme
        # Two halves.
        self.each = 2 * max((each + 1) // 2, 2)
        #: By position: of each half its acceptance and how it goes with the control, algorithmic
        #: acceptance, and in what cells outputs fell, beside p there.
        self.seen: dict[int, tuple[Floats, float, list[tuple[Floats, Floats]]]] = {}

    def __call__(
        self, p: Floats, q: Floats, n: int, position: int, seed: int
    ) -> tuple[float, None, None]:
        # What rows lack of 1 by rounding.
        p, q = p / p.sum(), q / q.sum()
        return self.drawn(p, q, n, position, seed)

    def drawn(
        self, p: Floats, q: Floats, n: int, position: int, seed: int
    ) -> tuple[float, None, None]:
        """The same of distributions; q is what the rule is shown."""
        generator = np.random.default_rng(seed)
        rule, rng = _Rule(self.verifier, p, q), _Drawing(generator)
        one = typical(p, q)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(one > 0, np.log(p) - np.log(one), np.inf)
        cells = [_by_rank(np.where(p > 0, ratio, -np.inf), p, _CELLS), _by_rank(-p, p, _CELLS)]
        came = np.zeros((len(cells), self.each, _CELLS))
        hits, claims = np.zeros(self.each), np.zeros(self.each)
        tuples: Integers | list[Integers]
        if isinstance(self.scheme, Law):
            draws = drawer(q, n, self.scheme, len(p))
            tuples = [draws(generator) for _ in range(self.each)]
        elif self.scheme == LAW:
            tuples = generator.choice(len(q), (self.each, n), p=q).astype(np.int64)
        else:
            tuples = np.stack([draw(q, n, self.scheme, generator) for _ in range(self.each)])
        for at, drafts in enumerate(tuples):
            found = rule(drafts, rng)
            claims[at] = math.nan if found.accepted is None else found.accepted
            if found.law is None:
                hits[at] = found.token in drafts
                for own, cell in zip(came, cells):
                    own[at, cell[found.token]] = 1.0
            else:
                hits[at] = found.law[np.unique(drafts)].sum()
                for own, cell in zip(came, cells):
                    own[at] = np.bincount(cell, weights=found.law, minlength=_CELLS)
        masses: list[Floats] = [
            np.bincount(cell, weights=p, minlength=_CELLS).astype(np.float64) for cell in cells
        ]
        control, mean = 0.0 * hits, 0.0
        if self.scheme == LAW:
            control, mean = _rejection(p, q, np.asarray(tuples))
        self.seen[position] = (
            _halves(hits, control, mean), float(claims.mean()), list(zip(came, masses))
        )
        # Of all positions together it is known better: :meth:`rates`.
        return min(max(float(hits.mean()), 0.0), 1.0), None, None

    def rates(self, positions: Sequence[int]) -> Floats:
        """Acceptance at positions: the mean of hits, less what the control says of their noise. How
        much it says is told by the other halves of all positions, so that the mean has no bias, and
        few draws a position are enough."""
        halves = np.array([self.seen[position][0] for position in positions])
        _, _, products, squares = halves.sum(axis=0).T
        slopes = np.where(squares > 1e-12, products / np.maximum(squares, 1e-12), 0.0)[::-1]
        rates: Floats = (halves[:, :, 0] - slopes * halves[:, :, 1]).mean(axis=1)
        return rates

    def e_value(self) -> float:
        """Evidence against losslessness: what bets on the cells of outputs come to, each of which
        has mean 1 if outputs are drawn from p. Positions in their order, at most at any time."""
        capitals = np.zeros(2)
        best = 0.0
        tallies = np.full((2, 2, _CELLS), _PRIOR / _CELLS)
        for _, (_, _, partitions) in sorted(self.seen.items()):
            for at in range(self.each):
                for k, (came, masses) in enumerate(partitions):
                    tilt = tallies[k, 0] / tallies[k, 1]
                    mean = float(masses @ tilt)
                    if mean > 0.0:
                        # A part is kept back, so that nothing is ever lost for good.
                        capitals[k] += math.log(0.1 + 0.9 * float(came[at] @ tilt) / mean)
                    tallies[k, 0] += came[at]
                    tallies[k, 1] += masses
                peak = float(capitals.max())
                now = peak + math.log(float(np.exp(capitals - peak).mean()))
                best = max(best, now)
        return math.exp(min(best, 700.0))


class _OnOwnLaw(_Simulated):
    """A rule under a law of one's own: summed where the law lists no more tuples than would be
    drawn, or the rule goes draft by draft; else drawn. alpha* and what named rules accept are of
    that law."""

    def __init__(
        self, verifier: Verifier, law: Law, each: int, n: int | None, names: Sequence[str]
    ) -> None:
        super().__init__(verifier, law, each)
        self.law, self.n, self.names = law, n, names
        #: By position: alpha*, what named rules accept, and total variation where it was summed.
        self.found: dict[int, tuple[float, list[float], float | None]] = {}
        #: The most drafts of any position.
        self.drafts = 0

    def __call__(
        self, p: Floats, q: Floats, n: int, position: int, seed: int
    ) -> tuple[float, None, None]:
        p, q = p / p.sum(), q / q.sum()
        shown = self.law.shown(q, position)
        assert shown is not None
        best = own_optimum(p, shown, self.law)[0]
        rates: list[float] = []
        if not self.law.is_sampled:
            law = self.law.at(shown, len(p))
            n = self.law.drafts(self.n, law.drafts)
            rates = [law.acceptance(name, [float(x) for x in p])[0] for name in self.names]
        self.drafts = max(self.drafts, n)
        summed = self._exactly(p, shown, n)
        away = None
        if summed is None:
            self.drawn(p, shown, n, position, seed)
        else:
            rate, algorithmic, away = summed
            self.seen[position] = np.array([[rate, 0.0, 0.0, 0.0]] * 2), algorithmic, []
        self.found[position] = best, rates, away
        mean = float(self.seen[position][0][:, 0].mean())
        return min(max(mean, 0.0), 1.0), None, None

    def _exactly(self, p: Floats, shown: Floats, n: int) -> tuple[float, float, float] | None:
        if isinstance(self.verifier, Sequential):
            law = self.verifier.each(p, shown)
            return float(law.membership), float(law.algorithmic), float(law.total_variation)
        if self.law.is_sampled or self.law.at(shown, len(p)).count > self.each:
            return None
        try:
            found = _summed(self.verifier, p, shown, n, self.law)
        except _NotEnumerable:
            return None
        return found.membership, found.algorithmic, found.total_variation


def _rejection(p: Floats, q: Floats, tuples: Integers) -> tuple[Floats, float]:
    """What recursive rejection accepts given each tuple, and its mean over i.i.d. drafts."""
    missed, all_missed = np.ones(len(tuples)), 1.0
    left = p
    for column in tuples.T:
        with np.errstate(divide="ignore", invalid="ignore"):
            keep = np.where(q > 0, np.minimum(1.0, left / q), 0.0)
        missed *= 1.0 - keep[column]
        all_missed *= float((q * (1.0 - keep)).sum())
        rest = np.maximum(left - q, 0.0)
        total = float(rest.sum())
        left = rest / total if total > 0.0 else left
    return 1.0 - missed, 1.0 - all_missed


def _halves(hits: Floats, control: Floats, mean: float) -> Floats:
    """Of each half of the draws: the mean of hits, by how much the control's is off, and the sums
    of which a slope is made."""
    found = []
    for own in (slice(0, len(hits) // 2), slice(len(hits) // 2, None)):
        spread = control[own] - control[own].mean()
        sums = spread @ hits[own], spread @ spread
        found.append([hits[own].mean(), control[own].mean() - mean, *sums])
    return np.array(found, dtype=np.float64)


def evaluate_log(
    verifier: Verifier,
    log: LogLike,
    n: int | None,
    scheme: str | Law,
    *,
    name: str,
    samples: int,
    alpha: float,
    tolerance: float,
    seed: int,
    temperature: float | None = None,
    compare: RuleName | Sequence[RuleName] | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    cut_order: str | None = None,
    vocabulary: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    threads: int = 0,
    progress: Progress = None,
) -> LogEvaluation:
    """As :func:`specgap.evaluate` says it."""
    rows = opened(log, vocabulary, metadata)
    own = isinstance(scheme, Law)
    if isinstance(scheme, Law) and scheme.names_tokens and rows.listed < rows.vocabulary:
        raise ValueError(
            f"scheme: {scheme.name} names tokens by their ids, and this log lists "
            f"{rows.listed:,} of {rows.vocabulary:,} tokens a row, which are all that a rule is "
            f"shown; give full rows"
        )
    exact = isinstance(verifier, Sequential) and not own
    if isinstance(verifier, Sequential):
        refuse_law(name, scheme)
    if samples < 1:
        raise ValueError(f"samples is {samples}; at least 1 output is drawn")
    cuts: dict[str, Any] = {"top_k": top_k, "top_p": top_p, "min_p": min_p, "cut_order": cut_order}
    if temperature is None:
        usual, kept = _native.usual_serving([rows._native])
        temperature = usual[0] if len(usual) == 1 else 1.0
        if (top_k, top_p, min_p) == (None, None, None):
            cuts = kept
    given = _numbers(temperature, "temperature")
    if len(given) != 1:
        raise ValueError(
            f"temperature: {len(given)} are given; a rule is measured at one, so call evaluate for each"
        )
    (at,) = given
    if compare is None:
        compare = ("rrs", "k-seq") if scheme == LAW else None
    # The log's rows are read as for i.i.d. drafts, and the law of one's own is asked at each.
    drafts, law = 1 if n is None else n, LAW if isinstance(scheme, Law) else scheme
    asked = _asked(
        drafts,
        at,
        schemes=cast("LawName", law),
        verifiers=[] if own else cast("list[RuleName] | None", _names(compare)),
        seed=seed,
        **cuts,
    )
    asked = _of_logs(asked, [rows])
    function: Callable[..., Any]
    if exact:
        function = cast("Sequential", verifier)._own()[-1]
        # Whether it is lossless is the question here.
        if cast("Sequential", verifier).lossless:
            function = _unasked(cast("Sequential", verifier))
    else:
        each = -(-samples // max(rows.positions, 1))
        if isinstance(scheme, Law):
            function = _OnOwnLaw(verifier, scheme, each, n, _names(compare) or [])
        else:
            function = _Simulated(verifier, scheme, each)
    asked["own"] = [(_CALLED, "", law, None, function)]
    try:
        _, columns = _native.Summary.measure(
            [rows._native], asked, 1, 1, True, threads, shown(progress)
        )
    except ValueError as error:
        error.args = (str(error).replace(f"own rule {_CALLED}:", f"{name}:"),)
        raise
    assert columns is not None
    if not own:
        _refuse_other_drafts(columns, law, _names(compare) or [])
    return _found(columns, function, exact, alpha, tolerance, (name, scheme, drafts, at))


def _compared(columns: Mapping[str, Any], scheme: str) -> list[str]:
    """Named rules that were measured beside the rule."""
    own, prefix = ("optimum", _CALLED, f"{_CALLED}/total-variation"), f"{scheme}/"
    keys = [key[len(prefix) :] for key in columns if key.startswith(prefix)]
    return [key for key in keys if key not in own and not key.endswith(("/lower", "/upper"))]


def _refuse_other_drafts(columns: Mapping[str, Any], scheme: str, names: list[str]) -> None:
    found = _compared(columns, scheme)
    if len(found) < len(set(names)):
        drafts = {name: words for name, _, words in _native.verifiers()}
        others = [f"{name} is for {drafts[name]}" for name in names if name in set(drafts) - set(found)]
        raise ValueError(
            f"compare: {', '.join(others)}; the rule's drafts are {scheme}: compare it with rules of these"
        )


def _unasked(rule: Sequential) -> Callable[..., Any]:
    same = Sequential(rule.step, name=rule.name, rows=rule.rows)
    return same._own()[-1]


def _found(
    columns: Mapping[str, tuple[Any, NDArray[np.bool_] | None]],
    function: Callable[..., Any],
    exact: bool,
    alpha: float,
    tolerance: float,
    asked: tuple[str, str | Law, int, float],
) -> LogEvaluation:
    name, law, n, temperature = asked
    scheme = LAW if isinstance(law, Law) else law
    drafted = np.asarray(columns["drafts"][0]) == n
    numbers = np.asarray(columns["number"][0])[drafted]
    prompts, unknown = (np.asarray(one)[drafted] for one in columns["prompt_id"])
    by_prompt = not unknown.any()
    clusters = [int(x) for x in (prompts if by_prompt else numbers)]

    def column(key: str) -> Floats:
        every: Floats = np.asarray(columns[f"{scheme}/{key}"][0], dtype=np.float64)
        chosen: Floats = every[drafted]
        return chosen

    def mean(values: Floats) -> Interval:
        if np.isnan(values).any():
            return math.nan, math.nan, math.nan
        return _native.clustered([float(x) for x in values], clusters)

    rates, algorithmic = column(_CALLED), math.nan
    away: Floats | None = column(f"{_CALLED}/total-variation") if exact else None
    e_value: float | None = None
    verdict: Lossless
    if isinstance(function, _Simulated):
        seen = [function.seen[int(number)] for number in numbers]
        rates = function.rates([int(number) for number in numbers])
        algorithmic = float(np.mean([one[1] for one in seen]))
        e_value = function.e_value()
        verdict = "refuted" if e_value >= 1.0 / alpha else "not refuted"
    else:
        assert away is not None
        verdict = "refuted" if float(away.max()) > tolerance else "exact"
    best = column("optimum")
    named = _compared(columns, scheme)
    table: dict[str, NDArray[Any]] = {
        "number": numbers,
        "prompt_id": np.where(unknown, -1, prompts),
        "acceptance": rates,
        "optimum": best,
    }
    if away is not None:
        table["total_variation"] = away
    rivals = {key: column(key) for key in named}
    if isinstance(function, _OnOwnLaw):
        scheme, n = function.law.name, function.drafts
        own_found = [function.found[int(number)] for number in numbers]
        best = table["optimum"] = np.array([one[0] for one in own_found])
        rivals = {
            key: np.array([one[1][at] for one in own_found])
            for at, key in enumerate(function.names)
        }
        if all(one[2] is not None for one in own_found):
            exact = True
            away = table["total_variation"] = np.array([one[2] for one in own_found])
            verdict = "refuted" if float(away.max()) > tolerance else "exact"
        elif any((one[2] or 0.0) > tolerance for one in own_found):
            verdict = "refuted"
    table.update(rivals)
    drawn = None
    if isinstance(function, _Simulated) and not exact:
        drawn = function.each * len(numbers)
    return LogEvaluation(
        name=name,
        scheme=scheme,
        n=n,
        temperature=temperature,
        positions=len(numbers),
        clusters=len(set(clusters)),
        exact=exact,
        samples=drawn,
        acceptance=mean(rates),
        algorithmic_acceptance=algorithmic,
        optimal_acceptance=mean(best),
        gap=mean(best - rates),
        differences={key: mean(rates - other) for key, other in rivals.items()},
        lossless=verdict,
        total_variation=None if away is None else float(away.max()),
        worst=None if away is None else int(numbers[int(away.argmax())]),
        e_value=None if exact else e_value,
        table=table,
    )
