"""What a notebook shows of a report: a verdict, a few lines and one small table.

At most a screen, without scripts or files, legible on dark and on light: text has the notebook's own
colour, and lines are a grey that stands on both.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import NamedTuple

#: Lines, the verdict's among them, and about how many letters stand in one.
_LINES = 8
_WIDE = 130
#: Rows and columns of the table.
_ROWS = 8
_COLUMNS = 5
#: What a column's name has that stands in the whole table alone.
_ASIDE = ("coin-blind", "oracle", "of α*")
_NUMBER = re.compile(r"[-−+]?\d")

_RULE = "1px solid #8888"
_CELL = "padding: .15em .8em .15em 0; border: 0; background: none; color: inherit"


class Lead(NamedTuple):
    """The first words of a page."""

    title: str
    #: What has to be known of the verdict.
    warnings: list[str]
    #: The first sentence, and the lines under it.
    verdict: str
    lines: list[str]


def _fitting(lead: Lead) -> tuple[list[str], int]:
    """The lines that there is room for, and how many are left out."""

    def height(text: str) -> int:
        return -(-len(text) // _WIDE)

    room = _LINES - sum(height(text) for text in (lead.verdict, *lead.warnings))
    shown: list[str] = []
    for line in lead.lines:
        if height(line) > room:
            break
        room -= height(line)
        shown.append(line)
    return shown, len(lead.lines) - len(shown)


def table_html(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    more: str = "",
    most: tuple[int, int] = (_ROWS, _COLUMNS),
) -> str:
    """HTML of so many rows and columns of a table at most, with what is said where there is more."""
    kept = [at for at, one in enumerate(columns) if not any(word in one for word in _ASIDE)]
    kept = kept[: most[1]]
    numeric = {at for at in kept[1:] if any(_NUMBER.match(row[at]) for row in rows)}

    def cell(tag: str, text: str, at: int, rule: str = "") -> str:
        side = "right; white-space: nowrap" if at in numeric else "left"
        return f'<{tag} style="{_CELL}; text-align: {side}{rule}">{html.escape(text)}</{tag}>'

    head = "".join(cell("th", columns[at], at, f"; border-bottom: {_RULE}") for at in kept)
    body = "".join(
        "<tr>" + "".join(cell("td", row[at], at) for at in kept) + "</tr>" for row in rows[: most[0]]
    )
    left = len(rows) - most[0]
    under = f"{left} more rows{more}" if left > 0 else f"{more.removeprefix(', ')}"
    note = f'<div style="opacity: .75; font-size: .9em">{html.escape(under)}</div>' if under else ""
    return (
        f'<div style="overflow-x: auto"><table style="border-collapse: collapse; color: inherit; font: inherit; margin: .5em 0; border-top: {_RULE}; '
        f'border-bottom: {_RULE}"><caption style="text-align: left; color: inherit; opacity: .75">'
        f"{html.escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{note}"
    )


def first_screen(
    lead: Lead,
    table: tuple[str, Sequence[str], Sequence[Sequence[str]], str] | None = None,
    beyond: str = "",
) -> str:
    """HTML of a lead and of a table: caption, columns, rows, and where there is more of it.
    ``beyond`` is HTML behind them."""
    shown, left = _fitting(lead)
    parts = [f'<div style="opacity: .75">{html.escape(lead.title)}</div>']
    if lead.verdict:
        parts.append(
            f'<div style="margin: .3em 0"><strong>{html.escape(lead.verdict)}</strong></div>'
        )
    parts += [
        '<div style="border-left: 3px solid #d08700; padding-left: .6em; margin: .3em 0">'
        f"{html.escape(text)}</div>"
        for text in lead.warnings
    ]
    if shown or left:
        items = [f"<li>{html.escape(line)}</li>" for line in shown]
        if left:
            items.append(
                f'<li style="opacity: .75">{left} more: print(report), or the whole page</li>'
            )
        parts.append(f'<ul style="margin: .3em 0; padding-left: 1.2em">{"".join(items)}</ul>')
    if table is not None and table[2]:
        parts.append(table_html(*table))
    return (
        '<div class="specgap" style="max-width: 62em; line-height: 1.4; color: inherit; '
        f'background: none">{"".join(parts)}{beyond}</div>'
    )
