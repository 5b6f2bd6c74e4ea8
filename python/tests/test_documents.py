"""Every block of Python in the documents runs, in the order of its page."""

from __future__ import annotations

import doctest
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def blocks(page: str, under: str | None = None) -> list[tuple[str, str]]:
    """The blocks of a page, each with the heading that it stands under."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for block in _BLOCK.finditer(text):
        heading = _HEADING.findall(text[: block.start()])[-1]
        if under is None or heading == under:
            found.append((heading, block.group(1)))
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, log: str) -> tuple[Path, dict[str, Any]]:
    """A folder with the shipped log, and the names that blocks share."""
    folder = tmp_path_factory.mktemp("documents")
    shutil.copytree(log, folder / "log")
    return folder, {}


PAGE = blocks("docs/guide/python.md")


def test_the_page_has_ten_calls() -> None:
    numbered = [heading for heading, _ in PAGE if re.match(r"\d+\. ", heading)]
    assert [heading.split(".")[0] for heading in numbered] == [str(k) for k in range(1, 11)]


@pytest.mark.parametrize(("heading", "code"), PAGE, ids=[heading for heading, _ in PAGE])
def test_blocks_of_the_page_run(
    heading: str, code: str, place: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, names = place
    monkeypatch.chdir(folder)
    if "torch" in code:
        pytest.importorskip("torch", reason="torch is not installed")
    if "parquet" in code:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    exec(compile(code, heading, "exec"), names)


def test_the_torch_pair_of_the_page_made_a_report(place: tuple[Path, dict[str, Any]]) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    folder, names = place
    assert (folder / "out" / "pair" / "report.html").exists()
    data = names["pair"].to_dict()
    assert data["positions"] == 320 and data["clusters"] == 8
    assert data["logs"][0]["dtypes"] == ["bf16", "bf16"]
    assert data["blocks"], "tokens were drawn at the temperature that is measured"


def test_the_counterexample_of_the_page_is_refuted(place: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = place
    words = [sys.executable, "-m", "specgap", "verify", "bug.json"]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "mine: NOT LOSSLESS" in ran.stdout


def test_the_readme_runs(
    place: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = place
    monkeypatch.chdir(folder)
    found = blocks("README.md", "From Python")
    assert len(found) == 1
    exec(compile(found[0][1], "README.md", "exec"), {})


def test_the_page_on_drafters_runs() -> None:
    found = blocks("docs/guide/drafters.md")
    assert len(found) == 1
    exec(compile(found[0][1], "drafters.md", "exec"), {})


@pytest.mark.parametrize(
    "name", ["_rates", "_logs", "_problems", "_evaluate", "_reports", "_sequential", "laws"]
)
def test_examples_of_the_docstrings_run(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(f"specgap.{name}"))
    assert outcome.failed == 0
