"""Rules of drafted blocks and of whole texts, by every draft and coin."""

from __future__ import annotations

import html
import inspect
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from . import _native
from ._drafting import Floats
from ._evaluate import _MOST_RUNS, Branching, _explored, _Exploring, _NotEnumerable
from ._problems import block

#: Rows of a model: one row [V], rows by place [N, V], or a function or mapping of the prefix, a
#: tuple of token ids.
Rows: TypeAlias = "Callable[[tuple[int, ...]], Any] | Mapping[tuple[int, ...], Any] | Any"

#: Outcomes that are run twice.
_AGAIN = 64

#: Laws that differ by less are equal but for the rounding of sums of floats.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class BlockEvaluation:
    """A rule on one round. Numbers are sums over all drafts and coins, good to rounding.

    - ``lossless``: ``"exact"``: what the round writes, and the target behind it, has the target's
      law; or ``"refuted"``.
    - ``total_variation``: Total variation between that law and the target's, of length + 1 tokens.
    - ``witness``: The tokens that come out too often most, where it is refuted.
    - ``accepted``: E[tau], accepted drafts of a round.
    - ``optimum``: E*, the most that any lossless rule accepts in a round, from ``sg.block``: of
      rules that may change the law of later rounds, as greedy block verification does.
    - ``block``: E[tau] of block verification, the most of one path where later rounds are left
      alone; None of several paths.
    - ``runs``: Runs of the rule.
    """

    lossless: str
    total_variation: float
    witness: tuple[int, ...] | None
    accepted: float
    optimum: float
    block: float | None
    runs: int

    @property
    def gap(self) -> float:
        """E* - E[tau]."""
        return self.optimum - self.accepted

    def __str__(self) -> str:
        yes = self.lossless == "exact"
        alone = "" if self.block is None else f"block verification: {self.block:.6f}"
        return "\n".join(
            [
                f"lossless: {'yes' if yes else 'NO'} (total variation {self.total_variation:.2g}, "
                f"{self.runs:,} outcomes)",
                *([] if yes else [f"  comes out too often: {self.witness}"]),
                f"accepted drafts a round: {self.accepted:.6f}",
                *([alone] if alone else []),
                f"the most that a round can have: {self.optimum:.6f}, {self.gap:.6f} more",
            ]
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True)
class TextEvaluation:
    """A rule on whole texts, round after round. Numbers are sums over all drafts and coins, good to
    rounding.

    - ``lossless``: ``"exact"``: the text has the target's law; or ``"refuted"``.
    - ``total_variation``: Total variation between the law of the text and the target's.
    - ``witness``: The text that comes out too often most, where it is refuted.
    - ``calls``: Expected target calls of a text.
    - ``fewest``: The fewest calls of any lossless rule of one path with as many drafts.
    - ``token``, ``block``: Calls of token and of block verification with as many drafts.
    - ``tokens``: Tokens of a text.
    - ``runs``: Runs of the decoder.
    """

    lossless: str
    total_variation: float
    witness: tuple[int, ...] | None
    calls: float
    fewest: float
    token: float
    block: float
    tokens: int
    runs: int

    @property
    def tokens_per_call(self) -> float:
        return self.tokens / self.calls

    def __str__(self) -> str:
        yes = self.lossless == "exact"
        more = 100 * (self.calls / self.fewest - 1)
        return "\n".join(
            [
                f"lossless as text: {'yes' if yes else 'NO'} (total variation "
                f"{self.total_variation:.2g}, {self.runs:,} outcomes)",
                *([] if yes else [f"  comes out too often: {self.witness}"]),
                f"target calls of {self.tokens} tokens: {self.calls:.6f}, {abs(more):.2f}% "
                f"{'below' if more < -0.005 else 'above'} the fewest",
                f"token verification {self.token:.6f}, block {self.block:.6f}, no lossless rule of one "
                f"path below {self.fewest:.6f}",
            ]
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class _Model:
    """Conditional laws by prefix, checked when they are asked for."""

    def __init__(self, rows: Rows, name: str) -> None:
        self.rows, self.name = rows, name
        self.known: dict[tuple[int, ...], Floats] = {}
        #: How many tokens its rows have, and which row says so.
        self.size: tuple[int, str] | None = None

    def __call__(self, prefix: tuple[int, ...]) -> Floats:
        if prefix not in self.known:
            self.known[prefix] = self._checked(prefix)
        return self.known[prefix]

    def _checked(self, prefix: tuple[int, ...]) -> Floats:
        where = f"{self.name}, behind {list(prefix)}"
        if isinstance(self.rows, Mapping):
            if prefix not in self.rows:
                raise ValueError(f"{where}: there is no row; give one for every prefix")
            found = self.rows[prefix]
        elif callable(self.rows):
            found = self.rows(prefix)
        else:
            found = self.rows
        try:
            row = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: gives no row of numbers: {error}") from None
        if row.ndim == 2 and not callable(self.rows) and not isinstance(self.rows, Mapping):
            if len(prefix) >= len(row):
                raise ValueError(f"{where}: there are {len(row)} rows; give one for every place")
            row = row[len(prefix)]
        if row.ndim != 1 or len(row) < 2:
            raise ValueError(f"{where}: a row has 2 or more probabilities; this has shape {row.shape}")
        if not (row >= 0).all() or not abs(row.sum() - 1) <= 1e-6:
            raise ValueError(
                f"{where}: a row sums to 1 and has no entry below 0; this sums to {row.sum():.6g}, "
                f"with {row.min():.6g}"
            )
        self.size = self.size or (len(row), where)
        if len(row) != self.size[0]:
            raise ValueError(
                f"{where}: the row has {len(row)} tokens, and that of {self.size[1]} has "
                f"{self.size[0]}; all are over one vocabulary"
            )
        law: Floats = row / row.sum()
        return law

    def along(self, prefix: tuple[int, ...], tokens: Sequence[int]) -> float:
        """The probability of these tokens behind a prefix."""
        weight = 1.0
        for at, token in enumerate(tokens):
            weight *= float(self(prefix + tuple(tokens[:at]))[token])
        return weight


def _models(target: Rows, draft: Rows, tokens: int) -> tuple[_Model, _Model, int]:
    """Both models, and their vocabulary."""
    p, q = _Model(target, "target"), _Model(draft, "draft")
    vocabulary = len(p(()))
    q.size = p.size
    if vocabulary**tokens > _MOST_RUNS:
        raise ValueError(
            f"{vocabulary} tokens make more than {_MOST_RUNS:,} texts of {tokens}: take fewer tokens "
            f"or a smaller vocabulary"
        )
    return p, q, vocabulary


def _count(value: int, name: str, least: int) -> int:
    if not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} is {value!r}; it is a whole number of at least {least}")
    return int(value)


def _stacked(model: _Model, prefix: tuple[int, ...], path: Sequence[int], many: int) -> Floats:
    return np.array([model(prefix + tuple(path[:k])) for k in range(many)])


def _settled(found: Any, drafts: Any, vocabulary: int, several: bool) -> tuple[int, ...]:
    """The tokens that a round writes, of what a rule returned."""
    wanted = "(path, accepted, token)" if several else "(accepted, token)"
    if not isinstance(found, tuple) or len(found) != 2 + several:
        raise ValueError(f"the rule returned {found!r}; return {wanted}")
    try:
        *which, accepted, token = (operator.index(one) for one in found)
    except TypeError:
        raise ValueError(
            f"the rule returned {found!r}; return {wanted}, all of them whole numbers"
        ) from None
    if which and not 0 <= which[0] < len(drafts):
        raise ValueError(f"the rule returned path {which[0]}; paths are 0 to {len(drafts) - 1}")
    path = drafts[which[0]] if several else drafts
    if not 0 <= accepted <= len(path) or not 0 <= token < vocabulary:
        raise ValueError(
            f"the rule returned {found!r}: {len(path)} drafts can be accepted, and tokens are 0 to "
            f"{vocabulary - 1}"
        )
    return (*(int(x) for x in path[:accepted]), token)


def _stateful(rule: Callable[..., Any]) -> bool:
    """Whether a rule is a function of nothing that makes one for each text."""
    wanted = (
        "give a function of (p, q, drafts, rng), or one of nothing that returns an object with such a "
        "verify, as lambda: Carried(most=2)"
    )
    if not callable(rule):
        raise TypeError(f"rule: is {type(rule).__name__}; {wanted}")
    try:
        signature = inspect.signature(rule)
    except ValueError:  # of a builtin, which has none
        return False

    def takes(*given: object) -> bool:
        try:
            signature.bind(*given)
        except TypeError:
            return False
        return True

    if not isinstance(rule, type) and takes(*"pqdr"):
        return False
    if not takes():
        raise TypeError(f"rule: takes {signature}; {wanted}")
    return True


def _of_text(rule: Callable[[], Any]) -> Callable[..., Any]:
    """The ``verify`` of a text's own object."""
    made = rule()
    verify = getattr(made, "verify", None)
    if not callable(verify):
        raise TypeError(
            f"rule: takes nothing and returned {type(made).__name__}; return an object with a method "
            f"verify(p, q, drafts, rng)"
        )
    return verify  # type: ignore[no-any-return]


def _run(run: Callable[[Branching], Any]) -> Iterator[tuple[float, Any]]:
    """Every outcome of a program that draws from what it is given, with its probability."""
    try:
        for number, (rng, found) in enumerate(_explored(run)):
            if number == _MOST_RUNS:
                raise ValueError(
                    f"more than {_MOST_RUNS:,} outcomes: take fewer tokens, fewer drafts or a smaller "
                    f"vocabulary"
                )
            # What depends on these draws alone comes out alike a second time.
            if number < _AGAIN and run(_Exploring(rng.script, rng.options)) != found:
                raise _NotEnumerable(
                    "it draws from random numbers of its own, or carries numbers over"
                )
            yield rng.weight, found
    except _NotEnumerable as why:
        raise ValueError(
            f"the rule cannot be enumerated: {why}. Draw through rng.branch, rng.choice, or "
            f"comparisons with rng.random()"
        ) from None


def _verdict(
    law: Mapping[tuple[int, ...], float], target: _Model, vocabulary: int, tokens: int
) -> tuple[str, float, tuple[int, ...] | None]:
    over: dict[tuple[int, ...], float] = {
        text: law.get(text, 0.0) - target.along((), text)
        for text in itertools.product(range(vocabulary), repeat=tokens)
    }
    distance = 0.5 * math.fsum(abs(excess) for excess in over.values())
    if distance <= _ROUNDING:
        return "exact", distance, None
    return "refuted", distance, max(over, key=lambda text: over[text])


def evaluate_block(
    rule: Callable[..., Any], target: Rows, draft: Rows, *, length: int, paths: int = 1
) -> BlockEvaluation:
    """A rule of a drafted block on a toy, by every draft and coin: is one round lossless, and how
    many drafts does it accept, against the most that any rule can?

    ``rule(p, q, drafts, rng)`` gets the rows along the drafted path, p and q [length + 1, V] of
    which the last ones are behind the last draft, and its tokens [length]; it returns (accepted,
    token). With ``paths`` = M i.i.d. paths these are [M, length + 1, V] and [M, length], and it
    returns (path, accepted, token): the first ``accepted`` tokens of that path, then the token.
    Behind it the text goes on as the target's.

    ``target`` and ``draft``: a row [V], rows by place, or a function or mapping of the prefix.

    Exact but for the rounding of sums. O(outcomes); at most 400,000. Raises ValueError where rows
    are no laws, where the rule returns something else, or cannot be enumerated.

    >>> import specgap as sg
    >>> def token(p, q, drafts, rng):
    ...     for k, x in enumerate(drafts):
    ...         if not rng.branch(min(1.0, p[k, x] / q[k, x])):
    ...             left = (p[k] - q[k]).clip(min=0)
    ...             return k, rng.choice(len(left), p=left / left.sum())
    ...     return len(drafts), rng.choice(len(p[-1]), p=p[-1])
    >>> found = sg.evaluate_block(token, [0.5, 0.5], [0.75, 0.25], length=2)
    >>> found.lossless, found.accepted, found.block, found.optimum
    ('exact', 1.3125, 1.375, 1.4375)
    """
    length, paths = _count(length, "length", 1), _count(paths, "paths", 1)
    p, q, vocabulary = _models(target, draft, length + 1)
    several = paths > 1

    def one(rng: Branching) -> tuple[int, ...]:
        drafts: list[tuple[int, ...]] = []
        for _ in range(paths):
            path: tuple[int, ...] = ()
            for _ in range(length):
                row = q(path)
                path += (int(rng.choice(len(row), p=row)),)
            drafts.append(path)
        rows = [
            np.array([_stacked(model, (), path, length + 1) for path in drafts]) for model in (p, q)
        ]
        given = np.array(drafts, dtype=np.int64)
        if not several:
            rows, given = [row[0] for row in rows], given[0]
        return _settled(rule(*rows, given, rng), given, vocabulary, several)

    law: dict[tuple[int, ...], float] = {}
    accepted, runs = 0.0, 0
    for weight, written in _run(one):
        runs += 1
        accepted += weight * (len(written) - 1)
        for rest in itertools.product(range(vocabulary), repeat=length + 1 - len(written)):
            text = written + rest
            law[text] = law.get(text, 0.0) + weight * p.along(written, rest)
    lossless, distance, witness = _verdict(law, p, vocabulary, length + 1)
    known = _known(p, q, vocabulary, length, paths)
    return BlockEvaluation(lossless, distance, witness, accepted, *known, runs)


def _known(
    p: _Model, q: _Model, vocabulary: int, length: int, paths: int
) -> tuple[float, float | None]:
    """The optimum of the block, and what block verification accepts of one path."""

    def table(model: _Model, depth: int) -> dict[str, list[float]]:
        prefixes = (
            prefix
            for many in range(depth)
            for prefix in itertools.product(range(vocabulary), repeat=many)
        )
        return {" ".join(map(str, one)): [float(x) for x in model(one)] for one in prefixes}

    problem = {
        "drafts": paths,
        "block": {
            "vocab": vocabulary,
            "length": length,
            "target": table(p, length + 1),
            "draft": table(q, length),
        },
    }
    found = block(problem).to_dict()
    of_rule = {rule["name"]: rule.get("expected_accepted_length") for rule in found["verifiers"]}
    return float(found["block_optimum"]["value"]), of_rule["block"] if paths == 1 else None


def evaluate_text(
    rule: Callable[..., Any], target: Rows, draft: Rows, *, tokens: int, drafts: int
) -> TextEvaluation:
    """A rule of one drafted path on texts of a toy, round after round, by every draft and coin: does
    the text have the target's law, and how many target calls does it take, against the fewest
    that any lossless rule makes (``docs/theory/several-rounds.md``)?

    ``rule`` is a function as in :func:`evaluate_block`, or a function of nothing that returns an
    object with such a ``verify``, one for each text: for rules that carry numbers from round to
    round. Rounds draft ``drafts`` tokens, or as many as leave the last token of the text undrafted;
    where the token behind the drafts is the last one, its row of q is 0.

    Exact but for the rounding of sums. O(outcomes); at most 400,000. Raises as
    :func:`evaluate_block`.

    >>> import specgap as sg
    >>> from specgap.carried import Carried
    >>> found = sg.evaluate_text(lambda: Carried(most=1), [0.5, 0.5], [0.75, 0.25],
    ...                          tokens=3, drafts=1)
    >>> found.lossless, found.calls, found.fewest, found.token
    ('exact', 2.0, 2.0, 2.0625)
    """
    tokens, drafts = _count(tokens, "tokens", 1), _count(drafts, "drafts", 0)
    p, q, vocabulary = _models(target, draft, tokens)
    stateful = _stateful(rule)

    def one(rng: Branching) -> tuple[tuple[int, ...], int]:
        verify = _of_text(rule) if stateful else rule
        text: tuple[int, ...] = ()
        calls = 0
        while len(text) < tokens:
            path: tuple[int, ...] = ()
            for _ in range(min(drafts, tokens - 1 - len(text))):
                row = q(text + path)
                path += (int(rng.choice(len(row), p=row)),)
            rows = [_stacked(model, text, path, len(path) + 1) for model in (p, q)]
            if len(text) + len(path) + 1 == tokens:
                rows[1][-1] = 0.0
            given = np.array(path, dtype=np.int64)
            text += _settled(verify(*rows, given, rng), given, vocabulary, False)
            calls += 1
        return text, calls

    law: dict[tuple[int, ...], float] = {}
    calls, runs = 0.0, 0
    for weight, (text, count) in _run(one):
        runs += 1
        calls += weight * count
        law[text] = law.get(text, 0.0) + weight
    lossless, distance, witness = _verdict(law, p, vocabulary, tokens)
    along = [
        [weight * number for number in _native.calls(ratios, drafts)]
        for weight, ratios in _texts(p, q, vocabulary, tokens)
    ]
    fewest, token, by_block = (math.fsum(column) for column in zip(*along))
    return TextEvaluation(
        lossless, distance, witness, calls, fewest, token, by_block, tokens, runs
    )


def _texts(p: _Model, q: _Model, vocabulary: int, tokens: int) -> list[tuple[float, list[float]]]:
    """Texts with their probability and q/p of every token."""
    found = []
    for text in itertools.product(range(vocabulary), repeat=tokens):
        weight = p.along((), text)
        if weight > 0:
            ratios = [float(q(text[:t])[x] / p(text[:t])[x]) for t, x in enumerate(text)]
            found.append((weight, ratios))
    return found
