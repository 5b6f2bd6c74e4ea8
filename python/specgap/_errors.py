"""What is refused: an exception that says where, in Python's names."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

_Call = TypeVar("_Call", bound=Callable[..., Any])

#: An option of a command, and its value where that is a number, a placeholder or a name.
_OPTION = re.compile(
    r"'?--([a-z][a-z-]*)"
    r"(?:[ =](<[^>]+>|-?\d[\w.,-]*|[A-Z]+\b|[a-z]+(?:-[a-z0-9]+)+(?:,[\w-]+)*))?'?"
)
#: Options whose keyword has another name.
_KEYWORDS = {
    "vocab": "vocabulary",
    "laws": "schemes",
    "law": "scheme",
    "trees": "topology",
    "draft-kinds": "drafts",
}


#: The calls that stand for commands.
_commands: list[Callable[..., Any]] = []


def stands_for_a_command(call: _Call) -> _Call:
    """A decorator: what is refused names options of the command as keywords of this call."""
    _commands.append(call)
    return call


@functools.cache
def _keywords() -> frozenset[str]:
    calls = map(inspect.signature, _commands)
    return frozenset(name for call in calls for name in call.parameters)


def _keyword(found: re.Match[str]) -> str:
    option, value = found.groups()
    keyword = _KEYWORDS.get(option, option.replace("-", "_"))
    # What a shell is told stays as it is.
    told = re.split(r"[;:]\s", found.string[: found.start()])[-1]
    if keyword not in _keywords() or "specgap " in told:
        return found.group()
    if value is None or value.startswith("<"):
        return f"{keyword}="
    return f'{keyword}="{value}"' if value[0].islower() else f"{keyword}={value}"


class Refused(ValueError):
    """Rows, a log, or what is asked of them cannot be used.

    Fields are None where there is nothing to say. A pipeline may drop the row and go on:

    >>> import specgap as sg
    >>> try:
    ...     sg.alpha([[0.5, 0.5], [1.5, -0.5]], [[0.5, 0.5], [0.5, 0.5]], 2)
    ... except sg.Refused as error:
    ...     error.tensor, error.row, error.column, error.cure.split(";")[0]
    ('p', 1, 1, 'probabilities must be >= 0')
    """

    #: The array or the log's tensor: ``p``, ``q``, ``target_logits``, ``token`` ..
    tensor: str | None
    #: The row, from 0; of a log in several files, within the file that the message names.
    row: int | None
    #: The entry of the row, from 0.
    column: int | None

    def __init__(
        self,
        message: str,
        tensor: str | None = None,
        row: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(_OPTION.sub(_keyword, message) if "--" in message else message)
        self.tensor, self.row, self.column = tensor, row, column

    def within(self, place: str) -> Refused:
        """The same, of something in a file or table."""
        return Refused(f"{place}: {self}", self.tensor, self.row, self.column)

    @property
    def cure(self) -> str | None:
        """What to do: the message behind what is wrong."""
        return str(self).partition("; ")[2] or None
