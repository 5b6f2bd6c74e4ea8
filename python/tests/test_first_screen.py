"""What notebooks and papers get: is it short, safe, and LaTeX that sets?"""

from __future__ import annotations

import csv
import io
import pickle
import re
import shutil
import struct
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specgap as sg
from specgap._first_screen import Lead, first_screen
from specgap._paper import escaped, floated, label_of, legend
from specgap._reports import _pixels

PROMPTS, LENGTH, V = 12, 12, 40


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(5)
    target = 2 * rng.normal(size=(PROMPTS, LENGTH, V))
    draft = target + rng.normal(size=target.shape)
    law = np.exp(target) / np.exp(target).sum(-1, keepdims=True)
    tokens = np.array([[rng.choice(V, p=row) for row in text] for text in law])
    return target, draft, tokens


@pytest.fixture(scope="module")
def log(rows: tuple[Any, Any, Any]) -> sg.Log:
    target, draft, tokens = rows
    return sg.Log.of_arrays(
        target_logits=target.reshape(-1, V),
        draft_logits=draft.reshape(-1, V),
        token=tokens.reshape(-1),
        prompt_id=np.repeat(np.arange(PROMPTS), LENGTH),
        position=np.tile(np.arange(LENGTH), PROMPTS),
        metadata={"sampling": {"temperature": 1.0}, "target": {"name": "<b>big_1 & 50%</b>"}},
    )


@pytest.fixture(scope="module")
def reports(log: sg.Log, rows: tuple[Any, Any, Any]) -> dict[str, Any]:
    target, draft, tokens = rows
    drafters = []
    for noise in (0.0, 3.0):
        acc = sg.drafter(depth=1)
        acc.add(target, draft + noise * np.sin(np.arange(V)), tokens, range(PROMPTS))
        drafters.append(acc.report())
    return {
        "gap": sg.gap(log, drafts=[2, 3], progress=False),
        "length": sg.length(log, cost_ratio=0.05, progress=False),
        "drafter": drafters[0],
        "compare": sg.compare(*drafters),
    }


class Screen(HTMLParser):
    """Tags that are open, and the words outside what is folded away."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.rows = self.items = 0
        self.strong: list[str] = []
        self.feed(page)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag not in ("script", "link", "style", "img")
        self.open.append(tag)
        self.rows += tag == "tr"
        self.items += tag == "li"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "details" not in self.open:
            self.words.append(data)
            if "strong" in self.open:
                self.strong.append(data)


@pytest.mark.parametrize("name", ["gap", "length", "drafter", "compare"])
def test_a_screen_is_short_and_begins_with_the_verdict(name: str, reports: dict[str, Any]) -> None:
    screen = Screen(reports[name]._repr_html_())
    # The title stands over it.
    assert len(screen.strong) == 1 and screen.words[1] == screen.strong[0]
    assert screen.items <= 7 and 2 <= screen.rows <= 9
    assert sum(len(word) for word in screen.words) < 2600
    # Colours are the notebook's own.
    assert not re.search(r"(?<!-)(color|background): #", reports[name]._repr_html_().split("<details")[0])


def test_the_screens_words_are_the_pages(reports: dict[str, Any]) -> None:
    for name in ("gap", "length", "drafter"):
        page = " ".join(reports[name].text(width=100).split())
        for words in Screen(reports[name]._repr_html_()).strong:
            assert " ".join(words.split()) in page
    compared = reports["compare"]
    assert "tokens a round" in compared.verdict and compared.verdict in compared._repr_html_()


def test_numbers_of_the_screen_are_the_tables(reports: dict[str, Any]) -> None:
    table = reports["gap"].table("acceptance")
    columns, lines = table.rows()
    every = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert len(lines) == len(every)
    name = next(one for one in columns if f"{one}/low" in every[0])
    at = columns.index(name)
    compared = 0
    for line, known in zip(lines, every):
        if known[name] and known[f"{name}/low"]:
            half = (float(known[f"{name}/high"]) - float(known[f"{name}/low"])) / 2
            assert line[at] == f"{float(known[name]):.3f} ± {half:.3f}"
            compared += 1
    assert compared > 5


def test_a_report_that_came_by_pickle_shows_its_words(reports: dict[str, Any]) -> None:
    again = pickle.loads(pickle.dumps(reports["length"]))
    one, other = Screen(again._repr_html_()), Screen(reports["length"]._repr_html_())
    assert one.strong == other.strong and one.rows == 0


def test_a_lead_has_no_more_lines_than_there_is_room_for() -> None:
    many = Lead("<i>", [], "<script>", [f"line {at} " + 90 * "x" for at in range(20)])
    screen = Screen(first_screen(many))
    assert screen.items == 8 and "<script>" in screen.words
    assert "13 more: print(report), or the whole page" in screen.words


def test_letters_that_tex_reads_are_escaped() -> None:
    assert escaped("a_b & 50% #1 {x} $ ~ ^ \\ <p|q>\n% x") == (
        r"a\_b \& 50\% \#1 \{x\} \$ \textasciitilde{} \textasciicircum{} \textbackslash{} "
        r"\textless{}p\textbar{}q\textgreater{} \% x"
    )
    assert escaped("α* ± 0.1 − “τ”") == r"$\alpha^{*}$ $\pm$ 0.1 $-$ ``$\tau$''"
    assert label_of("specgap", "gap", "a b/c") == "tab:specgap-gap-a-b-c"
    # A long table, which no float holds, carries its caption itself.
    long = "% x\n\\begin{longtable}{@{}lr@{}}\n\\toprule\na & b\n\\end{longtable}\n"
    made = floated([long], "Words", "tab:x")
    assert "\\begin{table}" not in made and "lr@{}}\n\\caption{Words}\\label{tab:x}\\\\\n" in made


def test_captions_say_what_numbers_are(reports: dict[str, Any]) -> None:
    gap = reports["gap"].latex()
    assert "enclosed by rigorous bounds" in gap and "half of a 95" in gap
    assert r"rrs-wo: estimates whose error is not proven" in gap
    kinds = legend("gap", {"cells": [{"verifiers": [{"name": "a", "kind": "exact"}]}]})
    assert kinds.startswith("At a position: a: exact rationals.")
    assert "exact given the text" in reports["length"].latex("by-cost", label="tab:own")
    assert r"\label{tab:own}" in reports["length"].latex(label="tab:own")
    mine = reports["gap"].table("acceptance").latex(caption="Mine.", digits=2)
    assert r"\caption{Mine.}" in mine and "enclosed" not in mine
    with pytest.raises(ValueError, match="there is no 'nothing'"):
        reports["gap"].latex("nothing")


def test_figures_are_files(reports: dict[str, Any], tmp_path: Path) -> None:
    report = reports["length"]
    made = report.save_figures(tmp_path / "figures")
    assert sorted(made) == sorted((tmp_path / "figures").iterdir())
    assert {path.suffix for path in made} == {".svg", ".pdf"}
    assert {path.stem for path in made} == set(report.figures)
    for path in made:
        begins = {".svg": b"<svg", ".pdf": b"%PDF"}[path.suffix]
        assert begins in path.read_bytes()[:200]
    with pytest.raises(ValueError, match="formats: 'gif' is no format of pictures; give svg, pdf, tex, csv or png"):
        report.save_figures(tmp_path / "none", "gif")
    assert not (tmp_path / "none").exists()


def test_figures_are_pixels(
    reports: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("resvg_py", reason="resvg-py is not installed")
    figure = reports["gap"].figure(reports["gap"].figures[0])
    wide, high = (int(figure.svg.split(side)[1].split(b'"')[1]) for side in (b"<svg width", b" height"))
    size = struct.pack(">II", 2 * wide, 2 * high)
    assert figure.png[:24] == b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + size
    # Letters are there, of no font of the machine's.
    assert figure.png != _pixels(re.sub(rb"<text.*?</text>", b"", figure.svg, flags=re.DOTALL))
    assert figure.savefig(tmp_path / "one.png").read_bytes() == figure.png
    home = reports["gap"].save(tmp_path / "both", figures=["png", "pdf"]).parent
    kinds = [path.suffix for path in home.glob("figure-*") if figure.name in path.name]
    assert sorted(kinds) == [".csv", ".pdf", ".png"]
    assert (home / f"figure-{figure.name}.png").read_bytes() == figure.png
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ModuleNotFoundError, match=r"need resvg-py: pip install 'specgap\[png\]'"):
        reports["gap"].save(tmp_path / "none", figures="png")
    assert not list((tmp_path / "none").glob("*"))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
def test_a_paper_of_all_tables_sets(reports: dict[str, Any], tmp_path: Path) -> None:
    tables = [reports[name].latex(one) for name in ("gap", "length", "drafter") for one in reports[name].tables]
    tables.append(reports["compare"].latex())
    paper = "\n\\clearpage\n".join(tables)
    packages = "\\usepackage[utf8]{inputenc}\\usepackage{booktabs,longtable}"
    (tmp_path / "paper.tex").write_text(
        f"\\documentclass{{article}}{packages}\\begin{{document}}\n{paper}\n\\end{{document}}\n"
    )
    ran = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
    )
    said = ran.stdout.decode(errors="replace")
    assert ran.returncode == 0, said[-2000:]
    # The text of an article at 10 points.
    wide = [float(one) for one in re.findall(r"Overfull .hbox \(([\d.]+)pt", said)]
    assert max(wide, default=0.0) < 1.0, wide
