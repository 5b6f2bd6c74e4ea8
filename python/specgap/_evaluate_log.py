"""Verifiers of one's own on a log: at its positions, with intervals over its prompts."""

from __future__ import annotations

import functools
import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._drafting import Floats
from ._errors import Refused
from ._evaluate import (
    Lossless,
    Verifier,
    _NotEnumerable,
    _summed,
    own_optimum,
    tv_words,
    without_nan,
)
from ._logs import LogLike, opened
from ._names import LawName
from ._progress import Progress, shown
from ._own_laws import drafts_of
from ._reports import _asked, _of_logs, serving
from ._simulated import Simulated
from ._sequential import LAW, Formula, Rivals, Sequential, called, is_law, refuse_law, under
from .laws import Law, given

#: A mean over positions, and its interval of 95% over prompts.
Interval = tuple[float, float, float]

#: What the rule is called while it is measured: a name that no rule of the table has, as examples
#: of these in :mod:`specgap.rules` are called as they are.
_CALLED = "the rule"
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
            return f"  {what:23} {value:.6f}" + (f" ± {half:.6f}" if half > 0.0 else "")

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


class _OnOwnLaw(Simulated):
    """A rule under a law of one's own: summed where the law lists no more tuples than would be
    drawn, or the rule goes draft by draft; else drawn. alpha* is of that law."""

    def __init__(self, verifier: Verifier, law: Law, each: int, n: int | None) -> None:
        super().__init__(verifier, law, each)
        self.law, self.n = law, n
        #: By position: alpha*, and total variation where it was summed.
        self.found: dict[int, tuple[float, float | None]] = {}
        #: The most drafts of any position.
        self.drafts = 0

    def __call__(
        self, p: Floats, q: Floats, n: int, position: int, seed: int
    ) -> tuple[float, None, None]:
        p, q = p / p.sum(), q / q.sum()
        shown = self.law.shown(q, position)
        assert shown is not None
        best = own_optimum(p, shown, self.law)[0]
        if not self.law.is_sampled:
            n = self.law.drafts(self.n, self.law.at(shown, len(p)).drafts)
        self.drafts = max(self.drafts, n)
        summed = self._exactly(p, shown, n)
        away = None
        if summed is None:
            self.drawn(p, shown, n, position, seed)
        else:
            rate, algorithmic, away = summed
            self.seen[position] = np.array([[rate, 0.0, 0.0, 0.0]] * 2), algorithmic, []
        self.found[position] = best, away
        mean = float(self.seen[position][0][:, 0].mean())
        return min(max(mean, 0.0), 1.0), None, None

    def _exactly(self, p: Floats, shown: Floats, n: int) -> tuple[float, float, float] | None:
        if isinstance(self.verifier, Sequential):
            law = under(self.verifier, self.law, p, shown, n)
            return float(law.membership), float(law.algorithmic), float(law.total_variation)
        if self.law.is_sampled or self.law.at(shown, len(p)).count > self.each:
            return None
        try:
            found = _summed(self.verifier, p, shown, n, self.law)
        except _NotEnumerable:
            return None
        return found.membership, found.algorithmic, found.total_variation


class _Known:
    """What a rule accepts where no draw is needed: by position."""

    def __init__(self, rate: Callable[[Floats, Floats, int, int], float]) -> None:
        self._rate = rate
        self._seen: dict[int, float] = {}

    def __call__(self, p: Floats, q: Floats, n: int, position: int, seed: int) -> None:
        self._seen[position] = self._rate(p / p.sum(), q / q.sum(), n, position)

    def rates(self, positions: Sequence[int]) -> Floats:
        """Acceptance at positions."""
        return np.array([self._seen[position] for position in positions])


_Rival: TypeAlias = "_Known | Simulated"


def _named(name: str, law: str | Law) -> _Known:
    """What a rule of the table accepts of drafts of a law."""

    def of_table(p: Floats, q: Floats, n: int, position: int) -> float:
        rows = (p[None], "float64"), (q[None], "float64")
        found, _ = _native.acceptance(name, *rows, n, cast("str", law), False, 1.0, 0, 1, None)
        return float(found[0][0])

    def of_own(p: Floats, q: Floats, n: int, position: int) -> float:
        own = cast("Law", law)
        return own.at(own.shown(q, position), len(p)).acceptance(name, [float(x) for x in p])[0]

    return _Known(of_own if isinstance(law, Law) else of_table)


def _rival(one: Any, scheme: str | Law, n: int, each: int) -> tuple[str, _Rival]:
    """A rule to compare with, and what it is called: a name, a rule of one's own, or such with the law
    of its drafts. A name alone is measured with the drafts of the rule that it is compared with, or
    with those that it is for."""
    rule, law = one if isinstance(one, tuple) else (one, None)
    own = scheme if law is None else law if given(law) is not None else _native.law_named(law)
    if isinstance(rule, str):
        made = (own.table or {}).get("scheme") if isinstance(own, Law) else own
        fits = _native.law_for(rule, made, n)
        if law is not None and fits != made:
            raise Refused(
                f"compare: {rule} is lossless for {fits} drafts, and not for {getattr(own, 'name', own)} "
                f"ones; leave the law out, or name one of the rule's"
            )
        own = own if fits == made else fits
    label = rule if isinstance(rule, str) else called(rule)
    if own is not scheme and own != scheme:
        label = f"{label} ({own.name if isinstance(own, Law) else own})"
    if isinstance(rule, str):
        return label, _named(rule, own)
    if isinstance(rule, (Sequential, Formula)):
        if isinstance(rule, Sequential):
            refuse_law(rule.name, own)
        return label, _Known(functools.partial(_without_draws, rule, own))
    if not callable(rule):
        raise TypeError(
            f"compare: give names, rules of your own, or (rule, law); this is {type(rule).__name__}"
        )
    if isinstance(own, Law):
        return label, _OnOwnLaw(rule, own, each, n if own.is_sampled else None)
    return label, Simulated(rule, own, each)


def _without_draws(
    rule: Sequential | Formula, law: str | Law, p: Floats, q: Floats, n: int, position: int
) -> float:
    shown = law.shown(q, position) if isinstance(law, Law) else q
    assert shown is not None
    if isinstance(rule, Formula):
        return rule.of(p, shown, n)
    return float(under(rule, law, p, shown, n).membership)


def _rivals(
    compare: Rivals, scheme: str | Law, n: int, each: int
) -> dict[str, _Rival]:
    """Those that ``compare`` names."""
    if compare is None:
        compare = ("rrs", "k-seq") if scheme == LAW else ()
    pair = isinstance(compare, tuple) and len(compare) == 2 and is_law(compare[1])
    one_alone = pair or isinstance(compare, (str, Formula)) or callable(compare)
    every: list[Any] = [compare] if one_alone else list(cast("Sequence[Any]", compare))
    found: dict[str, _Rival] = {}
    for one in every:
        label, rival = _rival(one, scheme, n, each)
        if label in found:
            raise Refused(f"compare: {label} is there twice; give each rule a name of its own")
        found[label] = rival
    return found


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
    compare: Rivals = None,
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
    if isinstance(scheme, Law) and scheme.names_tokens and rows.listed < rows.vocabulary:
        raise ValueError(
            f"scheme: {scheme.name} names tokens by their ids, and this log lists "
            f"{rows.listed:,} of {rows.vocabulary:,} tokens a row, which are all that a rule is "
            f"shown; give full rows"
        )
    if isinstance(verifier, Sequential):
        refuse_law(name, scheme)
    if samples < 1:
        raise ValueError(f"samples is {samples}; at least 1 output is drawn")
    said = {"top_k": top_k, "top_p": top_p, "min_p": min_p, "cut_order": cut_order}
    at, cuts = serving(rows, temperature, said)
    # The log's rows are read as for i.i.d. drafts, and the law of one's own is asked at each.
    drafts = asked_drafts = 1 if n is None else n
    law = LAW if isinstance(scheme, Law) else scheme
    asked = _asked(drafts, at, schemes=cast("LawName", law), verifiers=[], seed=seed, **cuts)
    asked = _of_logs(asked, [rows])
    each = -(-samples // max(rows.positions, 1))
    function: Any
    if isinstance(scheme, Law):
        function = _OnOwnLaw(verifier, scheme, each, n)
        drafts = drafts if scheme.is_sampled else drafts_of(scheme, rows.listed)
    elif isinstance(verifier, Sequential):
        # Whether it is lossless is the question here.
        same = Sequential(
            verifier.step, name=verifier.name, rows=verifier.rows, order=verifier.order
        )
        function = same._measured_under(scheme)
    else:
        function = Simulated(verifier, scheme, each)
    rivals = _rivals(compare, scheme, drafts, each)

    def every(p: Floats, q: Floats, n: int, position: int, seed: int) -> Any:
        for label, rival in rivals.items():
            try:
                rival(p, q, drafts, position, seed)
            except ValueError as error:
                raise ValueError(f"compare: {label}: {error}") from error
        return function(p, q, n, position, seed)

    asked["own"] = [(_CALLED, "", law, None, False, every)]
    try:
        _, columns = _native.Summary.measure(
            [rows._native], asked, 1, 1, True, threads, shown(progress)
        )
    except ValueError as error:
        error.args = (str(error).replace(f"own rule {_CALLED}:", f"{name}:"),)
        raise
    assert columns is not None
    return _found(columns, function, rivals, asked_drafts, alpha, tolerance, (name, scheme, drafts, at))


def _found(
    columns: Mapping[str, tuple[Any, NDArray[np.bool_] | None]],
    function: Any,
    rivals: Mapping[str, _Rival],
    asked_drafts: int,
    alpha: float,
    tolerance: float,
    asked: tuple[str, str | Law, int, float],
) -> LogEvaluation:
    name, law, n, temperature = asked
    scheme = LAW if isinstance(law, Law) else law
    exact = not isinstance(function, Simulated)
    drafted = np.asarray(columns["drafts"][0]) == asked_drafts
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
    if isinstance(function, Simulated):
        seen = [function.seen[int(number)] for number in numbers]
        rates = function.rates([int(number) for number in numbers])
        algorithmic = float(np.mean([one[1] for one in seen]))
        e_value = function.e_value()
        verdict = "refuted" if e_value >= 1.0 / alpha else "not refuted"
    else:
        assert away is not None
        verdict = "refuted" if float(away.max()) > tolerance else "exact"
    best = column("optimum")
    table: dict[str, NDArray[Any]] = {
        "number": numbers,
        "prompt_id": np.where(unknown, -1, prompts),
        "acceptance": rates,
        "optimum": best,
    }
    if away is not None:
        table["total_variation"] = away
    if isinstance(function, _OnOwnLaw):
        scheme, n = function.law.name, function.drafts
        own_found = [function.found[int(number)] for number in numbers]
        best = table["optimum"] = np.array([one[0] for one in own_found])
        if all(one[1] is not None for one in own_found):
            exact = True
            away = table["total_variation"] = np.array([one[1] for one in own_found])
            verdict = "refuted" if float(away.max()) > tolerance else "exact"
        elif any((one[1] or 0.0) > tolerance for one in own_found):
            verdict = "refuted"
    theirs = {label: one.rates([int(number) for number in numbers]) for label, one in rivals.items()}
    table.update(theirs)
    drawn = None
    if isinstance(function, Simulated) and not exact:
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
        differences={key: mean(rates - other) for key, other in theirs.items()},
        lossless=verdict,
        total_variation=None if away is None else float(away.max()),
        worst=None if away is None else int(numbers[int(away.argmax())]),
        e_value=None if exact else e_value,
        table=table,
    )
