"""Problems: a target, a law of drafts, and what is known of them."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from . import _native
from ._arrays import threads_of
from ._logs import PathLike
from .laws import plain

#: A problem: the path of a file, the text of one (TOML or JSON), or its fields as a dict, of which rows
#: may be arrays.
ProblemLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"


@dataclass(frozen=True)
class Result:
    """What a command finds out about one problem."""

    #: Whether everything that was checked agrees.
    ok: bool
    _json: str
    _text: str

    @property
    def name(self) -> str:
        """The problem's name."""
        return str(self.to_dict()["problem"])

    def to_dict(self) -> dict[str, Any]:
        """The data, as the command prints it with ``--format json``."""
        return cast("dict[str, Any]", json.loads(self._json))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Result({self.name!r}, ok={self.ok})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self._text)}</pre>"


def _where(problem: ProblemLike) -> tuple[str | None, str | None]:
    if isinstance(problem, Mapping):
        return None, json.dumps(plain({"schema": 1, "name": "problem", **problem}))
    if isinstance(problem, str) and ("\n" in problem or problem.lstrip().startswith("{")):
        return None, problem
    return os.fspath(problem), None


def _one(found: list[tuple[str, str, bool]], problem: ProblemLike) -> Result:
    if len(found) != 1:
        raise ValueError(
            f"{problem!r} has {len(found)} problems; name one file, or use the command line"
        )
    text, words, ok = found[0]
    return Result(ok, text, words)


def solve(problem: ProblemLike, *, threads: int = 0) -> Result:
    """alpha* of a problem by every method that fits, their agreement, and the proof.

    >>> import specgap as sg
    >>> coin = {"target": [0.5, 0.5], "drafts": 2,
    ...         "draft": {"scheme": "with-replacement", "q": [0.75, 0.25]}}
    >>> sg.solve(coin).to_dict()["optimal_acceptance_rate"]["exact"]
    '15/16'
    """
    return _one(_native.solve(*_where(problem), threads_of(threads)), problem)


def verify(problem: ProblemLike, *, seed: int = 0, threads: int = 0) -> Result:
    """Every verifier on a problem: exact acceptance, gap to alpha*, losslessness; and the rule
    that the problem tabulates, if it does."""
    return _one(_native.verify(*_where(problem), seed, threads_of(threads)), problem)


def block(problem: ProblemLike, *, drafts: int | None = None, threads: int = 0) -> Result:
    """The optimum E* of a block problem, and E[tau] and losslessness of every block verifier, for
    ``drafts`` paths instead of the problem's own number.

    >>> import specgap as sg
    >>> coin = {"drafts": 1, "block": {"vocab": 2, "length": 1, "draft": {"": ["3/4", "1/4"]},
    ...                                "target": {w: ["1/2", "1/2"] for w in ("", "0", "1")}}}
    >>> sg.block(coin).to_dict()["block_optimum"]["exact"]
    '3/4'
    """
    return _one(_native.block(*_where(problem), drafts, threads_of(threads)), problem)


def save_problem(problem: Mapping[str, Any], path: PathLike) -> None:
    """Writes a problem as a file that ``specgap solve`` and ``specgap verify`` read."""
    text = json.dumps(plain({"schema": 1, "name": "problem", **problem}), indent=1)
    temporary = f"{os.fspath(path)}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    os.replace(temporary, path)
