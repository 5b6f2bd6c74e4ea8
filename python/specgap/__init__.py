"""Exact optimal-transport analysis of multi-draft speculative decoding.

=====================  =========================================================================
:func:`alpha`          the largest acceptance of a step that is lossless, of rows
:func:`acceptance`     what a verifier accepts, of rows
:func:`plan`           the optimal verifier of one pair of rows, usable in a decoder
:func:`gap`            every verifier against the optimum, on logged rows
:func:`length`         how many tokens to draft, from logged text
:func:`tree`           which tree of drafts to verify, from logged text
:func:`paths`          what several draft paths could give, from logged text
:func:`relaxed`        what rules that are not lossless accept, and what they do to the law
:func:`audit`          whether an engine samples what it claims
:func:`drafter`        what a drafter in training would accept, in a validation loop;
                       :func:`compare` two of them
:func:`evaluate`       whether a verifier of your own is lossless, and how far from the optimum
:class:`Sequential`    a rule of your own that goes draft by draft, measured exactly
:class:`Formula`       a rule of which a formula says what it accepts
:func:`evaluate_block`  a rule of a drafted block; :func:`evaluate_text` of whole texts, state included
:func:`solve`          one problem by every method, with the proof; :func:`verify` its verifiers;
                       :func:`block` of a block
:func:`cite`           BibTeX of specgap and of the papers of a report
:class:`Log`           logged rows, of files or arrays; :class:`LogWriter` writes them
:mod:`specgap.laws`    draft laws of your own: composed, independent, tuples, a sampler
:class:`Refused`       raised where rows or logs cannot be used: tensor, row, column and cure
:mod:`specgap.torch`   rates as losses, with gradients
:mod:`specgap.record`  recorders of engines' rounds
:mod:`specgap.ray`     the same report from many machines
=====================  =========================================================================

p is always the target and q the draft.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import laws, record
from ._drafter import Drafter, drafter
from ._drafter_report import Comparison, DrafterReport, compare
from ._errors import Refused
from ._evaluate import Branching, Evaluation, evaluate
from ._evaluate_log import LogEvaluation
from ._logs import EngineRecord, Log, LogWriter, Row, Served
from ._names import LawName, RuleName
from ._native import __version__
from ._evaluate_text import BlockEvaluation, TextEvaluation, evaluate_block, evaluate_text
from ._problems import Result, block, save_problem, solve, verify
from ._rates import Plan, Rates, acceptance, alpha, plan, schemes, verifiers
from ._reports import (
    Figure,
    Positions,
    Report,
    Summary,
    Table,
    audit,
    cite,
    gap,
    length,
    paths,
    relaxed,
    tree,
)
from ._sequential import Formula, Sequential, SequentialLaw

__all__ = [
    "BlockEvaluation",
    "Branching",
    "Comparison",
    "Drafter",
    "DrafterReport",
    "EngineRecord",
    "Evaluation",
    "Figure",
    "Formula",
    "LawName",
    "Log",
    "LogEvaluation",
    "LogWriter",
    "Plan",
    "Positions",
    "Rates",
    "Refused",
    "Report",
    "Result",
    "Row",
    "RuleName",
    "Sequential",
    "SequentialLaw",
    "Served",
    "Summary",
    "Table",
    "TextEvaluation",
    "__version__",
    "acceptance",
    "alpha",
    "audit",
    "block",
    "cite",
    "compare",
    "drafter",
    "evaluate",
    "evaluate_block",
    "evaluate_text",
    "gap",
    "laws",
    "length",
    "paths",
    "relaxed",
    "plan",
    "record",
    "save_problem",
    "schemes",
    "solve",
    "tree",
    "verifiers",
    "verify",
]

#: Modules that are imported when they are asked for.
_LATER = ("adapters", "carried", "fused", "hf", "kernels", "mlx", "ray", "rules", "sglang", "torch")


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATER})
