"""Draft laws of one's own in a report: what a gap report is asked of them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _native
from ._errors import Refused
from ._evaluate import Floats, _NotEnumerable, _summed
from ._logs import Log
from ._sequential import Sequential
from .laws import MOST_TUPLES, Law

#: Entries of the laws of all tuples' outputs that a rule is summed over at a position.
_MOST_ENTRIES = 50_000_000
#: Letters of a law that its definition repeats.
_MOST_WORDS = 240


def split_schemes(schemes: Any) -> tuple[list[str] | None, list[Law]]:
    """The names among schemes, None for the usual ones, and the laws that are no names."""
    if schemes is None or isinstance(schemes, str):
        return (None if schemes is None else [schemes]), []
    every = [schemes] if isinstance(schemes, Law) else list(schemes)
    for one in every:
        if not isinstance(one, (str, Law)):
            raise TypeError(
                f"schemes: give names of schemes() and laws of specgap.laws; this is "
                f"{type(one).__name__}"
            )
    return [one for one in every if isinstance(one, str)], [one for one in every if isinstance(one, Law)]


def drafts_of(law: Law, vocabulary: int) -> int:
    """The most drafts of a draw."""
    if law.n is not None:
        return law.n
    return law.at(np.full(vocabulary, 1.0 / vocabulary), vocabulary).drafts


def complete(
    asked: dict[str, Any],
    laws: Sequence[Law],
    rules: Sequence[Any],
    logs: Sequence[Log],
    drafts_given: bool,
) -> None:
    """Adds laws, and rules under them, to what is asked of logs."""
    if not laws:
        return
    for law in laws:
        _refuse_logs(law, logs)
    vocabulary = min(log.listed for log in logs)
    groups: dict[str, dict[int, Law]] = {}
    sampled = [law for law in laws if law.is_sampled]
    for law in laws:
        if law.is_sampled:
            continue
        n, group = drafts_of(law, vocabulary), groups.setdefault(law.name, {})
        if n in group:
            raise Refused(
                f"schemes: {law.name} is there twice with n = {n}; give each law a name (name=..)"
            )
        group[n] = law
    if not drafts_given and groups:
        asked["drafts"] = sorted({n for group in groups.values() for n in group})
    lacks: dict[str, list[tuple[str, str]]] = {}
    measured = set()
    for rule in rules:
        name = _named(rule)
        for of, group in groups.items():
            why = _unfit(rule, group)
            if why is None:
                measured.add(id(rule))
                asked["own"].append(_under(rule, name, of, group))
            else:
                lacks.setdefault(of, []).append((name, why))
    for rule in rules:
        named = isinstance(rule, Sequential) and asked["schemes"] != []
        if id(rule) not in measured and not named:
            whys = [f"{why} ({of})" for of, all_ in lacks.items() for one, why in all_ if one == _named(rule)]
            raise TypeError(f"verifiers: {_named(rule)}: {'; '.join(whys) or _sampled(sampled)}")
    for of, group in groups.items():
        made = {(law.table or {})["scheme"] for law in group.values()}
        if len(made) > 1:
            raise Refused(
                f"schemes: {of} is made as {' and as '.join(sorted(made))}; give laws of two kinds two names"
            )
        numbered = [
            (n, law.known("a report"), _rows_of(law) if law.is_independent else None)
            for n, law in sorted(group.items())
        ]
        asked["laws"].append(
            (of, _words(group), made.pop(), _digest(group), lacks.get(of, []), numbered)
        )
    asked["laws"] += [(law.name, "", None, None, [], []) for law in sampled]


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


def _named(rule: Any) -> str:
    """What a rule is called in a report; names of the table are told apart."""
    name = str(getattr(rule, "__name__", type(rule).__name__)).strip("<>")
    known = {one.replace("-", "_") for one, *_ in _native.verifiers()}
    if not isinstance(rule, Sequential) and name.replace("-", "_") in known:
        return f"own {name}"
    return name


def _sampled(laws: Sequence[Law]) -> str:
    names = " and ".join(law.name for law in laws)
    return (
        f"drafts of {names} can only be drawn, and a report has no alpha* of them; simulate the rule "
        f"by evaluate(rule, log, n, scheme=law)"
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
    rule: Any, name: str, of: str, group: dict[int, Law]
) -> tuple[str, str, str, str | None, Callable[..., Any]]:
    sequential = rule if isinstance(rule, Sequential) else None
    words, digest = ("", None) if sequential is None else (rule.words, rule.digest)

    def measured(
        p: Floats, q: Floats, n: int, position: int, seed: int
    ) -> tuple[float, float | None, float]:
        law, p, q = group[n], p / p.sum(), q / q.sum()
        shown = law.shown(q, position)
        assert shown is not None
        if sequential is not None:
            return sequential._checked(sequential.each(p, shown), n)
        count = law.at(shown, len(p)).count
        if count > MOST_TUPLES or count * len(p) > _MOST_ENTRIES:
            raise ValueError(
                f"{count:,.0f} tuples of drafts over {len(p):,} tokens are too many to sum; cut rows "
                f"(top_k), or draw its outputs by evaluate({name}, log, scheme=law)"
            )
        try:
            found = _summed(rule, p, shown, n, law)
        except _NotEnumerable as refused:
            raise ValueError(
                f"{refused}, so that its outputs cannot be summed; draw them by evaluate({name}, log, "
                f"scheme=law)"
            ) from None
        # Rounding is no acceptance, and a rule need not say what it accepts.
        membership, algorithmic = (
            min(float(one), 1.0) for one in (found.membership, found.algorithmic)
        )
        said = None if math.isnan(algorithmic) else algorithmic
        return membership, said, float(found.total_variation)

    return name, words, of, digest, measured


def _rows_of(law: Law) -> Callable[[int], Floats]:
    def rows(position: int) -> Floats:
        shown = law.shown(None, position)
        assert shown is not None
        return shown

    return rows


def _digest(group: dict[int, Law]) -> str:
    """Of all that the laws are: their tables, and rows of their own."""
    found = hashlib.sha256()
    for n, law in sorted(group.items()):
        found.update(json.dumps([n, law.table], sort_keys=True).encode())
        for rows, dtype in law._own:
            found.update(f"{dtype} {rows.shape}".encode())
            found.update(np.ascontiguousarray(rows).tobytes())
    return found.hexdigest()[:16]


def _words(group: dict[int, Law]) -> str:
    each = []
    for n, law in sorted(group.items()):
        table = law.table or {}
        if law.is_independent:
            each.append(f"{n} drafts, each from a row of its own")
        elif "tuples" in table:
            each.append(f"one of {len(table['tuples']):,} tuples of {n} tokens")
        else:
            text = json.dumps(table["law"])
            each.append(text if len(text) <= _MOST_WORDS else f"{text[:_MOST_WORDS]} ..")
    return "; ".join(each)
