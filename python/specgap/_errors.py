"""What is refused: an exception that says where, in Python's names."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

_Call = TypeVar("_Call", bound=Callable[..., Any])

#: Settings whose keyword has another name.
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


def _spelled(message: str) -> str:
    """A text with its settings, which stand in ⟨⟩, as keywords; those that are none, as options."""
    first, *parts = message.split("⟨")
    for part in parts:
        setting, end, rest = part.partition("⟩")
        name, _, value = setting.partition(" ")
        keyword = _KEYWORDS.get(name, name.replace("-", "_"))
        if not (end and name.isascii() and name.replace("-", "").isalpha()):
            first += f"⟨{part}"
        elif keyword not in _keywords():
            first += f"--{setting}{rest}"
        else:
            # Of something that is wrong with all of it no value stands.
            equals = "" if not value and not first and rest.startswith(":") else "="
            first += keyword + equals + (f'"{value}"' if value[:1].islower() else value) + rest
    return first


#: Keywords that mean one thing, of which a call has one.
_ALIKE = (
    ("n", "drafts"),
    ("scheme", "schemes", "law", "laws"),
    ("verifier", "verifiers", "rule", "rules"),
    ("topology", "tree", "trees"),
)


def by_any_name(call: _Call) -> _Call:
    """A decorator: a keyword by which another call knows the same thing is read as this call's own, and
    of one that none has the message names the nearest."""
    own = inspect.signature(call).parameters
    open_ended = any(one.kind is one.VAR_KEYWORD for one in own.values())

    @functools.wraps(call)
    def read(*args: Any, **given: Any) -> Any:
        for name in [name for name in given if name not in own]:
            meant = [one for group in _ALIKE if name in group for one in group if one in own]
            if len(meant) == 1 and meant[0] not in given:
                given[meant[0]] = given.pop(name)
            elif not open_ended:
                raise unexpected(call.__name__, name, own)
        return call(*args, **given)

    return cast("_Call", read)


def unexpected(call: str, name: str, known: Iterable[str]) -> TypeError:
    """The error of a keyword that a call does not have."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    meant = f"; did you mean {near[0]}=?" if near else ""
    return TypeError(f"{call}() got an unexpected keyword argument {name!r}{meant}")


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
        super().__init__(_spelled(message))
        self.tensor, self.row, self.column = tensor, row, column

    def within(self, place: str) -> Refused:
        """The same, of something in a file or table."""
        return Refused(f"{place}: {self}", self.tensor, self.row, self.column)

    @property
    def cure(self) -> str | None:
        """What to do: the message behind what is wrong."""
        return str(self).partition("; ")[2] or None
