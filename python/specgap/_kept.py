"""A report without the native half that made it: what travels by pickle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from . import _native

#: Columns of the text that is kept.
_WIDTH = 100

#: What ``files`` is asked for beside the page.
NO_PAPER: dict[str, Any] = {
    "figures": [], "latex": None, "csv": None, "columns": [], "digits": None
}  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """What a report says, as it was made; its text at one width."""

    ok: bool
    regressions: list[str]
    json: bytes
    page: str
    marked: str
    texts: tuple[str, str]
    first: tuple[str, list[str], str, list[str]]
    saved: list[tuple[str, bytes]]

    @classmethod
    def of(cls, made: _native.Made | Kept) -> Kept:
        texts = made.text(_WIDTH, False), made.text(_WIDTH, True)
        return cls(
            made.ok,
            made.regressions,
            made.json,
            made.html(),
            made.markdown(),
            texts,
            made.lead(),
            made.files(NO_PAPER),
        )

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

    def lead(self) -> tuple[str, list[str], str, list[str]]:
        return self.first

    def tables(self) -> NoReturn:
        raise ValueError(
            "tables and figures for papers are not in a report that came by pickle; take them from the "
            "report that was made, or pickle its summary"
        )

    def table(self, name: str, columns: Sequence[str], digits: int | None) -> NoReturn:
        self.tables()

    def figures(self) -> NoReturn:
        self.tables()

    def figure(self, name: str, kind: str) -> NoReturn:
        self.tables()

    def files(self, paper: dict[str, Any]) -> list[tuple[str, bytes]]:
        if paper["figures"] or not paper["latex"] is paper["csv"] is None:
            self.tables()
        return self.saved
