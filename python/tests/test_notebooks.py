"""Notebooks of `examples/`: every cell runs, in order, and prints what is stored beside it.

`SPECGAP_WRITE_DOCUMENTS=1` stores what it prints now. IPython is not needed: as there, a cell's last
expression is shown."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def ran(code: str, names: dict[str, Any]) -> str:
    """What a cell prints, its last expression included."""
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            if value is not None:
                print(value)
    return printed.getvalue()


def stored(cell: dict[str, Any]) -> str:
    return "".join(line for output in cell["outputs"] for line in output["text"])


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_cells_print_what_is_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if any("torch" in "".join(cell["source"]) for cell in cells):
        pytest.importorskip("torch", reason="torch is not installed")
    names: dict[str, Any] = {}
    wrong = []
    for number, cell in enumerate(cells, 1):
        cell["execution_count"] = number
        text = ran("".join(cell["source"]), names)
        if text != stored(cell):
            wrong.append(f"cell {number}:\n{text}")
        lines = text.splitlines(keepends=True)
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if text else []
    if os.environ.get("SPECGAP_WRITE_DOCUMENTS") == "1":
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        assert not wrong, "\n".join(wrong)
