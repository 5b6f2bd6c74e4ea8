"""A report without the native half that made it: what travels by pickle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

#: Columns of the text that is kept.
_WIDTH = 100


class Made(Protocol):
    """What a report is read from."""

    @property
    def ok(self) -> bool: ...
    @property
    def json(self) -> bytes: ...
    def html(self) -> str: ...
    def markdown(self) -> str: ...
    def text(self, width: int, whole: bool) -> str: ...
    def files(self) -> list[tuple[str, bytes]]: ...


@dataclass(frozen=True)
class Kept:
    """What a report says, as it was made; its text at one width."""

    ok: bool
    json: bytes
    page: str
    marked: str
    texts: tuple[str, str]
    saved: list[tuple[str, bytes]]

    @classmethod
    def of(cls, made: Made) -> Kept:
        texts = made.text(_WIDTH, False), made.text(_WIDTH, True)
        return cls(made.ok, made.json, made.html(), made.markdown(), texts, made.files())

    def html(self) -> str:
        return self.page

    def markdown(self) -> str:
        return self.marked

    def text(self, width: int, whole: bool) -> str:
        if width != _WIDTH:
            raise ValueError(
                f"width is {width}; a report that came by pickle has its text at {_WIDTH} columns"
            )
        return self.texts[whole]

    def files(self) -> list[tuple[str, bytes]]:
        return self.saved
