"""Every example of the gallery runs, is short, and prints what its page says."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from .conftest import ROOT


def script() -> ModuleType:
    """``scripts/gallery``, which writes the page."""
    loader = importlib.machinery.SourceFileLoader("gallery", str(ROOT / "scripts/gallery"))
    spec = importlib.util.spec_from_loader("gallery", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


GALLERY = script()
NUMBER = re.compile(r"[-+]?\d+\.\d+")


@pytest.mark.parametrize("name", GALLERY.ORDER)
def test_an_example_prints_what_its_page_says(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    if name == "generate":
        pytest.importorskip("torch")
        pytest.importorskip("transformers")
    code = GALLERY.parts(name)[2]
    assert len([line for line in code.splitlines() if line.strip()]) <= 30
    page = GALLERY.PAGE.read_text(encoding="utf-8")
    assert code in page, "scripts/gallery writes the page"
    out, said = GALLERY.run(name, tmp_path).strip(), GALLERY.printed(name).strip()
    assert (tmp_path / "gallery.svg").stat().st_size > 5000
    assert NUMBER.sub("#", out) == NUMBER.sub("#", said)
    # A text that is drawn may take another turn where another processor rounds otherwise.
    off = 0.4 if name == "generate" else 0.011
    for found, wanted in zip(NUMBER.findall(out), NUMBER.findall(said), strict=True):
        assert abs(float(found) - float(wanted)) <= off, (out, said)


def test_every_example_is_on_the_page() -> None:
    files = sorted(path.stem for path in (ROOT / "examples/gallery").glob("*.py"))
    assert files == sorted(GALLERY.ORDER)
    assert sorted(path.stem for path in (ROOT / "docs/gallery").glob("*.svg")) == files
