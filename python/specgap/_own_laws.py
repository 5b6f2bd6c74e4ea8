"""Draft laws of one's own in a report: what a gap report is asked of them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from . import _native
from ._errors import Refused
from ._drafting import Floats
from ._evaluate import _NotEnumerable, _summed
from ._logs import Log
from ._sequential import LAW, STRATA, Formula, Sequential, called, under
from ._simulated import Simulated
from .laws import Law

#: Letters of a law that its definition repeats.
_MOST_WORDS = 240


def split_schemes(schemes: Any) -> tuple[list[str] | None, list[Law]]:
    """The names among schemes, None for the usual ones, and the laws that are no names."""
    if schemes is None:
        return None, []
    every = list(schemes) if isinstance(schemes, Iterable) and not isinstance(schemes, str) else [schemes]
    for one in every:
        if not isinstance(one, (str, Law)):
            raise TypeError(
                f"schemes: give names of schemes() and laws of specgap.laws; this is "
                f"{type(one).__name__}"
            )
    names = [_native.law_named(one) for one in every if isinstance(one, str)]
    return names, [one for one in every if isinstance(one, Law)]


def with_told(
    named: list[str] | None,
    laws: list[Law],
    told: Sequence[tuple[str, str | Law]],
    *,
    others: bool,
    drafts: Sequence[int],
) -> tuple[list[str] | None, list[Law]]:
    """The same with the laws that names were told with. Where no schemes were asked for these are all,
    with that of i.i.d. drafts for ``others``, rules that no law was told with."""
    if not told:
        return named, laws
    if named is None:
        named = [LAW] if others else []
    for name, law in told:
        if isinstance(law, Law):
            if law.is_sampled:
                raise Refused(f"verifiers: {name}: {_sampled(law)}")
            made = law.known("a report").made
            numbers = [law.n] if law.n is not None else drafts
        else:
            made, numbers = law, drafts
        if all(_native.law_for(name, made, n) != made for n in numbers):
            fits = _native.law_for(name, None, numbers[0])
            raise Refused(
                f"verifiers: {name} is lossless for {fits} drafts, and not for "
                f"{getattr(law, 'name', law)} ones; name another law beside it, or none"
            )
        if isinstance(law, Law):
            laws = laws if law in laws else [*laws, law]
        else:
            named = named if law in named else [*named, law]
    return named, laws


def drafts_of(law: Law, vocabulary: int) -> int:
    """The most drafts of a draw."""
    if law.n is not None:
        return law.n
    return law.at(np.full(vocabulary, 1.0 / vocabulary), vocabulary).drafts


def complete(
    asked: dict[str, Any],
    laws: Sequence[Law],
    rules: Sequence[tuple[Any, str | Law | None]],
    logs: Sequence[Log],
    drafts_given: bool,
    samples: int,
) -> None:
    """Adds laws, and rules under them and under laws of the table, to what is asked of logs."""
    every = list(laws)
    for _, law in rules:
        if isinstance(law, Law) and law not in every:
            every.append(law)
    for one in every:
        _refuse_logs(one, logs)
    vocabulary = min(log.listed for log in logs)
    groups: dict[str, dict[int, Law]] = {}
    for one in every:
        if one.is_sampled:
            continue
        n, group = drafts_of(one, vocabulary), groups.setdefault(one.name, {})
        if n in group:
            raise Refused(
                f"schemes: {one.name} is there twice with n = {n}; give each law a name (name=..)"
            )
        group[n] = one
    if not drafts_given and groups:
        asked["drafts"] = sorted({n for group in groups.values() for n in group})
    for one in every:
        if not one.is_sampled:
            continue
        if one.name in groups:
            raise Refused(f"schemes: {one.name} is there twice; give each law a name (name=..)")
        groups[one.name] = dict.fromkeys(asked["drafts"], one)
    positions = max(sum(log.positions for log in logs), 1)
    lacks: dict[str, list[tuple[str, str]]] = {}
    for rule, law in rules:
        tables = _tables(rule, law, asked["schemes"], bool(every))
        for name in tables:
            if asked["schemes"] is not None and law is not None and name not in asked["schemes"]:
                asked["schemes"].append(name)
            asked["own"].append(_under(rule, name, None, (positions, samples)))
        found, why = bool(tables), ""
        for of, group in groups.items():
            if law is not None and law not in group.values():
                continue
            unfit = _unfit(rule, group)
            if unfit is None:
                found = True
                asked["own"].append(_under(rule, of, group, (positions, samples)))
            else:
                why = f"{unfit} ({of})"
                lacks.setdefault(of, []).append((called(rule), unfit))
        if not found:
            raise TypeError(f"verifiers: {called(rule)}: {why}")
    for of, group in groups.items():
        if any(law.is_sampled for law in group.values()):
            asked["laws"].append((of, "", None, None, lacks.get(of, []), []))
            continue
        made = {law.known("a report").made for law in group.values()}
        if len(made) > 1:
            raise Refused(
                f"schemes: {of} is made as {' and as '.join(sorted(made))}; give laws of two kinds two names"
            )
        numbered = [
            (n, law.known("a report"), law.rows_at if law.has_rows else None)
            for n, law in sorted(group.items())
        ]
        asked["laws"].append(
            (of, _words(group), made.pop(), _digest(group), lacks.get(of, []), numbered)
        )


def _tables(
    rule: Any, law: str | Law | None, schemes: list[str] | None, has_laws: bool
) -> list[str]:
    """The laws of the table that a rule is measured under: the one that was said with it, or those
    that are asked for by name; i.i.d. drafts where none are."""
    if law is not None:
        return [law] if isinstance(law, str) else []
    if isinstance(rule, Sequential):
        named = [] if schemes is None else schemes
        return ([LAW] if schemes != [] else []) + [STRATA] * (STRATA in named)
    if schemes is None:
        return [] if has_laws else [LAW]
    return list(schemes)


def _refuse_logs(law: Law, logs: Sequence[Log]) -> None:
    for log in logs:
        if law.names_tokens and log.listed < log.vocabulary:
            raise Refused(
                f"schemes: {law.name} names tokens by their ids, and this log lists {log.listed:,} of "
                f"{log.vocabulary:,} tokens a row, which are all that a law is shown; give full rows"
            )
    for count in {len(own) for own, _ in law._own}:
        wrong = [log.positions for log in logs if count != log.positions]
        if count != 1 and (wrong or len(logs) > 1):
            raise Refused(
                f"schemes: {law.name} has {count} rows a draft, one for each position of one log, and "
                f"there are {len(logs)} logs of {[log.positions for log in logs]} positions; give a "
                f"draft one row for all, or measure the log that its rows are of"
            )


def _sampled(law: Law) -> str:
    return (
        f"drafts of {law.name} can only be drawn, and what a named rule accepts of them is in no table; "
        f"give a function of (p, q, drafts, rng)"
    )


def _unfit(rule: Any, group: dict[int, Law]) -> str | None:
    """Why a rule cannot be measured under laws of one name."""
    if isinstance(rule, Sequential) and not all(law.is_independent for law in group.values()):
        return (
            "a Sequential rule is for drafts that are each drawn by themselves, and these are not; "
            "give a function of (p, q, drafts, rng)"
        )
    return None


def _under(
    rule: Any, of: str, group: dict[int, Law] | None, draws: tuple[int, int]
) -> tuple[str, str, str, str | None, bool, Callable[..., Any]]:
    """A rule under a law of the table, or under laws of one name by number of drafts: exact where it
    goes draft by draft, is a formula, or its outputs can be summed; else drawn."""
    of_one_step = isinstance(rule, (Sequential, Formula))
    words = rule.words if of_one_step else "a function of the drafts, drawn where it is not summed"
    digest = rule.digest if of_one_step else None
    positions, samples = draws

    def measured(
        p: Floats, q: Floats, n: int, position: int, seed: int
    ) -> tuple[float, float | None, float | None, float | None]:
        law: str | Law = of if group is None else group[n]
        p, q = p / p.sum(), q / q.sum()
        shown = law.shown(q, position) if isinstance(law, Law) else q
        assert shown is not None
        if isinstance(rule, Formula):
            return rule.of(p, shown, n), None, None, None
        if isinstance(rule, Sequential):
            return *rule._checked(under(rule, law, p, shown, n), n), None
        each = -(-samples // positions)
        # Where that takes no more calls than draws would.
        of_draws = isinstance(law, Law) and law.is_sampled
        if not of_draws and _tuples(law, shown, n, len(p)) <= each:
            try:
                found = _summed(rule, p, shown, n, law, each)
            except _NotEnumerable:
                pass
            else:
                # Rounding is no acceptance, and a rule need not say what it accepts.
                membership, algorithmic = (
                    min(float(one), 1.0) for one in (found.membership, found.algorithmic)
                )
                return membership, _said(algorithmic), float(found.total_variation), None
        drawn = Simulated(rule, law, each)
        drawn.drawn(p, shown, n, position, seed)
        rate, noise = drawn.rate(position)
        return rate, _said(drawn.seen[position][1]), None, noise

    return called(rule), words, of, digest, not of_one_step, measured


def _tuples(law: str | Law, shown: Floats, n: int, vocabulary: int) -> float:
    """How many tuples of drafts there are."""
    if isinstance(law, Law):
        return law.at(shown, vocabulary).count
    if law == LAW:
        return float(np.count_nonzero(shown)) ** n
    return _native.DraftLaw(law, [float(x) for x in shown], n).count


def _said(algorithmic: float) -> float | None:
    return None if math.isnan(algorithmic) else min(max(algorithmic, 0.0), 1.0)


def _digest(group: dict[int, Law]) -> str | None:
    """Of all that the laws are: their tables, and rows of their own. Of a function of q what it was
    said to be told by."""
    found = hashlib.sha256()
    for n, law in sorted(group.items()):
        if law.is_of_rows and law.digest is None:
            return None
        found.update(json.dumps([n, law.table, law.digest], sort_keys=True).encode())
        for rows, dtype in law._own:
            found.update(f"{dtype} {rows.shape}".encode())
            found.update(np.ascontiguousarray(rows).tobytes())
    return found.hexdigest()[:16]


def _words(group: dict[int, Law]) -> str:
    each = []
    for n, law in sorted(group.items()):
        table = law.table or {}
        if law.is_of_rows:
            each.append(f"{n} drafts of {'rows' if law.is_independent else 'tuples'} made of q")
        elif law.is_independent:
            each.append(f"{n} drafts, each from a row of its own")
        elif "tuples" in table:
            each.append(f"one of {len(table['tuples']):,} tuples of {n} tokens")
        else:
            text = json.dumps(table["law"])
            each.append(text if len(text) <= _MOST_WORDS else f"{text[:_MOST_WORDS]} ..")
    return "; ".join(each)
