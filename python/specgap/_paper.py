"""LaTeX of tables that stand in a paper as they are: caption, label and booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "·": r"$\cdot$", "→": r"$\to$",
    "≤": r"$\le$", "≥": r"$\ge$", "∞": r"$\infty$", "√": r"$\surd$", "≠": r"$\ne$",
    "α": r"$\alpha$", "τ": r"$\tau$", "γ": r"$\gamma$", "Σ": r"$\sum$", "∑": r"$\sum$",
    "“": "``", "”": "''", "’": "'", "–": "--", "—": "---", "…": r"\dots{}",
    "⁻": "$^{-}$", "²": "$^{2}$", "\u00a0": "~",
}  # fmt: skip

#: How well the numbers of one position are known, by their kind in the data.
_KINDS = {
    "exact": "exact rationals",
    "enclosed": "enclosed by rigorous bounds",
    "truncated": "known between bounds, as rows list some tokens only",
    "monte-carlo": "means of simulated runs",
    "estimate": "estimates whose error is not proven",
    "float": "rounded in double precision",
}


def escaped(text: str) -> str:
    """Text that LaTeX sets as it is, in one line."""
    plain = "".join(" " if one.isspace() and one != "\u00a0" else one for one in text)
    plain = plain.replace("α*", "\0")
    made = "".join(_LATEX.get(one, one if one.isprintable() or one == "\0" else " ") for one in plain)
    return made.replace("\0", r"$\alpha^{*}$")


def _kinds(data: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Every number's name and kind."""
    if isinstance(data, Mapping):
        name = data["name"] if isinstance(data.get("name"), str) else name
        if data.get("kind") in _KINDS:
            yield name, data["kind"]
        for key, value in data.items():
            yield from _kinds(value, "α*" if key == "optimal_acceptance_rate" else name)
    elif isinstance(data, Sequence) and not isinstance(data, str):
        for value in data:
            yield from _kinds(value, name)


def legend(command: str, data: Mapping[str, Any]) -> str:
    """What every number of a report is: exact, enclosed, or an estimate with its interval."""
    if command == "gap":
        found: dict[str, list[str]] = {}
        for name, kind in _kinds(data.get("cells", [])):
            found.setdefault(name, []).append(kind)
        # A name is no better known than where it is known least.
        least = {name: max(kinds, key=list(_KINDS).index) for name, kinds in found.items()}
        each = []
        for kind, words in _KINDS.items():
            names = [name for name, one in least.items() if one == kind]
            if names:
                each.append(f"{', '.join(names)}: {words}")
        known = f"At a position: {'; '.join(each)}. " if each else ""
        return f"{known}Means are estimates over positions; ±: half of a 95% interval over prompts."
    if command in ("length", "tree", "paths", "relaxed"):
        return (
            "Estimates, exact given the text, which is a sample; ±: half of a 95% interval over "
            "prompts."
        )
    if command in ("drafter", "drafter compare"):
        return "Estimates over starts of rounds; ±: half of a 95% interval over prompts."
    if command == "audit":
        return (
            "Counts are exact; e-values are products of bets, computed in double precision; means "
            "are estimates, ±: half of a 95% interval."
        )
    return "Estimates; ±: half of a 95% interval."


def label_of(*words: str) -> str:
    """A label without letters that TeX takes for something else."""
    return "tab:" + "-".join(re.sub(r"[^A-Za-z0-9.-]+", "-", word).strip("-") for word in words)


def floated(parts: Sequence[str], caption: str, label: str) -> str:
    """The parts of a table, each as ``to_latex`` makes it, as one float with its caption. A long
    table, which breaks over pages, carries the caption itself."""
    packages = "booktabs"
    bodies = []
    for part in parts:
        kept = [line for line in part.splitlines() if not line.startswith("%")]
        bodies.append("\n".join(kept).strip())
    head = f"\\caption{{{caption}}}\\label{{{label}}}"
    if any(r"\begin{longtable}" in body for body in bodies):
        packages += ",longtable"
        first, *others = bodies
        opened = re.sub(
            r"(\\begin\{longtable\}\{.*\}\n)", lambda found: f"{found[1]}{head}\\\\\n", first, count=1
        )
        made = "\n\\medskip\n".join([opened, *others])
    else:
        joined = "\n\n\\medskip\n".join(bodies)
        made = f"\\begin{{table}}\n\\centering\n{head}\n{joined}\n\\end{{table}}"
    return f"% \\usepackage{{{packages}}}\n{made}\n"


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A booktabs tabular: words on the left of the first column, numbers on the right."""

    def line(cells: Sequence[str]) -> str:
        return " & ".join(escaped(cell) for cell in cells) + r" \\"

    body = "\n".join(line(row) for row in rows)
    sides = "l" + "r" * (len(columns) - 1)
    return (
        f"\\begin{{tabular}}{{@{{}}{sides}@{{}}}}\n\\toprule\n{line(columns)}\n\\midrule\n{body}\n"
        "\\bottomrule\n\\end{tabular}"
    )
