"""Progress of long calls: in a notebook, on a terminal, or to a function of the caller's."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

#: None: shown in notebooks and on terminals. False: never. Or a function that is called with
#: the positions (of a simulation, outputs) that are done and, once known, all of them; if it raises, the call stops.
Progress: TypeAlias = bool | Callable[[int, int | None], object] | None

#: Seconds before anything is shown.
_PATIENCE = 0.5


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    current = shell.get_ipython()
    return current is not None and type(current).__name__ == "ZMQInteractiveShell"


class _Bar:
    """What is shown of one call."""

    def __init__(self, what: str) -> None:
        self.start, self.what = time.monotonic(), what
        self.shown: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        seconds = time.monotonic() - self.start
        if total is None or (self.shown is None and (seconds < _PATIENCE or done >= total)):
            return
        left = (
            f", {seconds * (total - done) / done:.0f} s left"
            if 0 < done < total
            else f", {seconds:.1f} s"
        )
        self.show(done, total, f"{done:,} of {total:,} {self.what}{left}")

    def show(self, done: int, total: int, words: str) -> None:
        raise NotImplementedError


class _Notebook(_Bar):
    def show(self, done: int, total: int, words: str) -> None:
        from IPython.display import HTML, display

        shown = HTML(f"<progress value='{done}' max='{total}'></progress> {words}")
        if self.shown is None:
            self.shown = display(shown, display_id=True)
        else:
            self.shown.update(shown)


class _Terminal(_Bar):
    def show(self, done: int, total: int, words: str) -> None:
        self.shown = True
        filled = 32 * done // max(total, 1)
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r[{'=' * filled:32}] {words}\x1b[K{end}")
        sys.stderr.flush()


def shown(
    progress: Progress, what: str = "positions"
) -> Callable[[int, int | None], object] | None:
    """The function that is told of positions, or of something else; None for nobody."""
    if callable(progress):
        return progress
    if progress is False:
        return None
    if _in_notebook():
        return _Notebook(what)
    if progress is True or sys.stderr.isatty():
        return _Terminal(what)
    return None
