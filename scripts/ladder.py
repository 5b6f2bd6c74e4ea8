#!/usr/bin/env python3
"""Adds "By the quality of the draft" to the report of several drafts of one text.

    python3 scripts/ladder.py FOLDER

reads report.json and report.md of `specgap gap LOG LOG ...`, draws the rates over the overlap of each draft, one
picture of a kind at each temperature, and writes them and the section into FOLDER.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 800, 400, 52, 30, 46, 310
COLOURS = ["#1f6fb4", "#c8500a", "#1b8a5a", "#8a4fb0", "#8c6d00", "#b0306a"]
ONE_DRAFT = [("top", "exact-match", "one-hot: p(argmax q)"), ("with-replacement", "rrs", "token: sum of min(p, q)"),
             ("with-replacement", "exact-match", "exact-match: sum of p q")]
Line = tuple[str, str, bool, list[tuple[float, float, float, float]]]


class Ladder:
    """A comparison, its drafts from the least overlap to the largest at T = 1 and with 3 drafts, or the nearest."""

    def __init__(self, report: dict) -> None:
        if not report["paired"] or len(report["logs"]) < 3:
            raise SystemExit("report.json: a ladder is of three or more logs of one text")
        self.rates, self.names = report["rates"], [log["folder"] for log in report["logs"]]
        self.temperatures = list(dict.fromkeys(rate["temperature"] for rate in self.rates))
        self.at = min(self.temperatures, key=lambda t: abs(t - 1))
        drafts = {rate["drafts"] for rate in self.rates if rate["what"] == "optimum"}
        self.n = max((n for n in drafts if n <= 3), default=min(drafts))
        overlap = self.find(self.at, None)[0]
        self.order = sorted(range(len(self.names)), key=lambda log: overlap["estimates"][log]["mean"])

    def find(self, at: float, n: int | None) -> list[dict]:
        """Rates of n drafts, or the overlap, but for rules that do not look at several drafts."""
        return [rate for rate in self.rates if rate["temperature"] == at and rate.get("drafts") == n
                and (n == 1 or rate.get("verifier") != "exact-match")]

    def points(self, rate: dict, minus: dict | None = None) -> list[tuple[float, float, float, float]]:
        """(overlap, rate, and its interval), or the difference of two without one."""
        overlap, out = self.find(rate["temperature"], None)[0], []
        for log in self.order:
            x, one = overlap["estimates"][log]["mean"], rate["estimates"][log]
            y = one["mean"] - (minus["estimates"][log]["mean"] if minus else 0)
            out.append((x, y, *([y, y] if minus else one["ci95"])))
        return sorted(out)


def colours(rates: list[dict]) -> dict[str, str]:
    """A colour of each law."""
    laws = dict.fromkeys(rate["scheme"] for rate in rates)
    return {law: COLOURS[number % len(COLOURS)] for number, law in enumerate(laws)}


def acceptance(ladder: Ladder, at: float) -> list[Line]:
    """Optima, and verifiers that do not attain theirs."""
    rates, lines = ladder.find(at, ladder.n), []
    hue, best = colours(rates), {rate["scheme"]: rate for rate in rates if rate["what"] == "optimum"}
    for rate in rates:
        law, verifier = rate["scheme"], rate.get("verifier")
        gaps = ladder.points(best[law], rate)
        if verifier is None:
            lines.append((f"α* {law}", hue[law], False, ladder.points(rate)))
        elif max(abs(gap[1]) for gap in gaps) > 1e-6:
            lines.append((f"{verifier}, {law}", hue[law], True, ladder.points(rate)))
    return lines


def worth(ladder: Ladder, at: float) -> list[Line]:
    """What verifiers leave of their optimum, and optima less that of the first law."""
    rates, lines = ladder.find(at, ladder.n), []
    hue, best = colours(rates), {rate["scheme"]: rate for rate in rates if rate["what"] == "optimum"}
    usual = next(iter(best))
    for rate in rates:
        law, verifier = rate["scheme"], rate.get("verifier")
        if verifier:
            lines.append((f"left by {verifier}, {law}", hue[law], True, ladder.points(best[law], rate)))
        elif law != usual:
            lines.append((f"{law} instead of {usual}", hue[law], False, ladder.points(rate, best[usual])))
    return [line for line in lines if max(abs(point[1]) for point in line[3]) > 1e-6]


def one_draft(ladder: Ladder, at: float) -> list[Line]:
    """What engines do with one draft."""
    found = {(rate["scheme"], rate["verifier"]): rate for rate in ladder.find(at, 1)}
    return [(words, COLOURS[number], False, ladder.points(found[law, rule]))
            for number, (law, rule, words) in enumerate(ONE_DRAFT) if (law, rule) in found]


def svg(title: str, axis: str, lines: list[Line]) -> str:
    """Lines over the overlap, with their names beside them."""
    points = [point for line in lines for point in line[3]]
    x0, x1 = (round(10 * f(p[0] for p in points) + s) / 10 for f, s in ((min, -0.5), (max, 0.5)))
    y0, y1 = min(0.0, *(p[2] for p in points)), max(p[3] for p in points)
    step = next(step for step in (0.02, 0.05, 0.1, 0.2, 1) if (y1 - y0) / step <= 7)
    y0, y1 = step * (y0 // step), step * -(-y1 // step)
    x = lambda v: LEFT + (v - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)  # noqa: E731
    y = lambda v: HEIGHT - BOTTOM - (v - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM)  # noqa: E731
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
           f'font-family="sans-serif" font-size="12" fill="#222"><title>{escape(title)}</title>',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           f'<text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>']
    for k in range(round((y1 - y0) / step) + 1):
        v = y0 + k * step
        out.append(f'<path d="M{LEFT} {y(v):.1f}H{WIDTH - RIGHT}" stroke="{"#888" if abs(v) < 1e-9 else "#ddd"}"/>'
                   f'<text x="{LEFT - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{100 * v:.0f}</text>')
    for k in range(round(10 * (x1 - x0)) + 1):
        v = x0 + k / 10
        out.append(f'<text x="{x(v):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{100 * v:.0f}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">overlap of draft and target, %</text>'
               f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{axis}</text>')
    for number, (words, colour, dashed, at) in enumerate(lines):
        dash = f' stroke-dasharray="{2 + 2 * (number % 4)} 3"' if dashed else ""
        path = "M" + "L".join(f"{x(p[0]):.1f} {y(p[1]):.1f}" for p in at)
        bars = "".join(f"M{x(p[0]):.1f} {y(p[2]):.1f}V{y(p[3]):.1f}" for p in at if p[2] < p[3])
        place = TOP + 12 + 18 * number
        out.append(f'<g fill="none" stroke="{colour}"><path d="{path}" stroke-width="1.8"{dash}/>'
                   f'<path d="{bars or "M0 0"}" opacity=".45"/>'
                   f'<path d="M{WIDTH - RIGHT + 12} {place}h24" stroke-width="1.8"{dash}/></g>'
                   f'<text x="{WIDTH - RIGHT + 42}" y="{place + 4}">{escape(words)}</text>')
    return "\n".join([*out, "</svg>", ""])


def figures(ladder: Ladder, at: float) -> dict[str, tuple[str, str, list[Line]]]:
    """Title, axis and lines of each picture at a temperature, by its name."""
    n = ladder.n
    all_ = {
        f"acceptance-by-overlap-t{at:.1f}-n{n}": (f"Acceptance, T = {at}, n = {n}", "accepted, %", acceptance(ladder, at)),
        f"worth-by-overlap-t{at:.1f}-n{n}": (f"Verifier or draft law, T = {at}, n = {n}", "points", worth(ladder, at)),
        f"one-draft-by-overlap-t{at:.1f}": (f"One draft, T = {at}", "accepted, %", one_draft(ladder, at)),
    }
    return {name: figure for name, figure in all_.items() if figure[2]}


def section(ladder: Ladder, folder: Path) -> str:
    """The table and the pictures, which are written too."""
    out = ["## By the quality of the draft", ""]
    lines = one_draft(ladder, ladder.at) + acceptance(ladder, ladder.at)
    out += [f"Acceptance in percent, from the least overlap to the largest, at T = {ladder.at}; behind the ways with one "
            f"draft of {ladder.n} drafts. ±: 95%. A verifier that attains its α* has no column.", "",
            "| draft | " + " | ".join(line[0] for line in lines) + " |", "| --- |" + " ---: |" * len(lines)]
    for place, log in enumerate(ladder.order):
        cells = [line[3][place] for line in lines]
        words = [f"{100 * y:.1f} ± {50 * (high - low):.1f}" for _, y, low, high in cells]
        out.append(f"| {ladder.names[log]} | " + " | ".join(words) + " |")
    out += ["", "Solid: optima α*, and how far the α* of another law of the drafts is above that of the first. Dashed: "
            "verifiers, and what each leaves of its α*. Bars: 95% intervals.", ""]
    for at in sorted(ladder.temperatures, key=lambda t: t != ladder.at):
        for name, (title, axis, drawn) in figures(ladder, at).items():
            (folder / f"{name}.svg").write_text(svg(title, axis, drawn), encoding="utf-8")
            said = [f"{words} goes from {100 * p[0][1]:.1f}% to {100 * p[-1][1]:.1f}%" for words, _, _, p in drawn]
            out += [f"![{title}. {'; '.join(said)}.]({name}.svg)", ""]
    return "\n".join(out).replace("*", "\\*") + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    ladder = Ladder(json.loads((folder / "report.json").read_text(encoding="utf-8")))
    page = (folder / "report.md").read_text(encoding="utf-8")
    head, first, rest = page.partition("\n## ")
    (folder / "report.md").write_text(f"{head}\n{section(ladder, folder)}{first.lstrip()}{rest}", encoding="utf-8")


if __name__ == "__main__":
    main()
