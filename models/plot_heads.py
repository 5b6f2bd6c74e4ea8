"""Draws what is known of the heads: models/heads/reliability.svg and front.svg."""

from __future__ import annotations

import argparse
import json
import os
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent / "heads"
SIZE, LEFT, TOP = 380, 64, 34
# Head, depth, weight and inputs of the reliability curves.
SHOWN = [
    ("acceptance", 3, 1.0, "drafted"), ("acceptance", 3, 6.0, "mixed"), ("acceptance from q", None, 1.0, None),
    ("overlap", 2, 1.0, None),
]
COLOURS = ["#1f5fa8", "#c2571a", "#2f7d4f", "#8a4a9e", "#7a7a7a", "#b0243a", "#111111", "#0a8a9a"]


class Plot:
    """Lines over two axes from `low` to `high` each."""

    def __init__(self, title: str, axes: tuple[str, str], low: tuple[float, float], high: tuple[float, float]) -> None:
        self.low, self.high = low, high
        self.parts = [
            f'<text x="{LEFT}" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
            f'<rect x="{LEFT}" y="{TOP}" width="{SIZE}" height="{SIZE}" fill="none" stroke="#999"/>',
            f'<text x="{LEFT + SIZE / 2}" y="{TOP + SIZE + 36}" text-anchor="middle">{escape(axes[0])}</text>',
            f'<text transform="translate(16 {TOP + SIZE / 2}) rotate(-90)" text-anchor="middle">{escape(axes[1])}</text>',
        ]
        for step in range(6):
            x, y = (low[i] + (high[i] - low[i]) * step / 5 for i in (0, 1))
            across, down = self.place(x, y)
            self.parts += [
                f'<path d="M{across:.1f} {TOP + SIZE}v4M{LEFT} {down:.1f}h-4" stroke="#999"/>',
                f'<text x="{across:.1f}" y="{TOP + SIZE + 18}" text-anchor="middle">{x:.2g}</text>',
                f'<text x="{LEFT - 8}" y="{down + 4:.1f}" text-anchor="end">{y:.2g}</text>',
            ]
        self.names = 0

    def place(self, x: float, y: float) -> tuple[float, float]:
        part = [(v - low) / (high - low) for v, low, high in zip((x, y), self.low, self.high)]
        return LEFT + part[0] * SIZE, TOP + (1 - part[1]) * SIZE

    def line(self, name: str, points: list[tuple[float, float]], dashed: bool = False, dots: bool = True) -> None:
        colour = COLOURS[self.names % len(COLOURS)] if name else "#999"
        inside = [p for p in points if all(low <= v <= high for v, low, high in zip(p, self.low, self.high))]
        places = [self.place(*point) for point in inside]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        if dots:
            self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in places]
        if name:
            y = TOP + 14 + 18 * self.names
            x = LEFT + SIZE + 16
            self.parts.append(f'<path d="M{x} {y - 4}h22" stroke="{colour}" stroke-width="2"{dash}/>')
            self.parts.append(f'<text x="{x + 28}" y="{y}">{escape(name)}</text>')
            self.names += 1

    def write(self, path: Path) -> None:
        width, height = LEFT + SIZE + 270, TOP + SIZE + 48
        text = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(self.parts) + "\n</svg>\n"
        )
        temporary = path.with_name(path.name + ".part")
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)


def front(curve: list[list[float]]) -> list[tuple[float, float]]:
    """The points of a curve that no other point beats, then their lower convex hull: what mixing attains."""
    points = sorted({(x, y) for _, x, y in curve})
    hull: list[tuple[float, float]] = []
    for point in points:
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (point[1] - hull[-2][1]) <= (
            point[0] - hull[-2][0]
        ) * (hull[-1][1] - hull[-2][1]):
            hull.pop()
        hull.append(point)
    return hull


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    record = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    plot = Plot("Reliability on held-out prompts", ("predicted", "mean label of these positions"), (0, 0), (1, 1))
    plot.line("", [(0, 0), (1, 1)], dashed=True, dots=False)
    for row in record["table"]:
        name = row["head"]
        facts = (name, row.get("depth"), row.get("weight"), row.get("inputs"))
        if facts not in SHOWN:
            continue
        if row.get("depth") is not None:
            name += f", D = {row['depth']}"
        if row.get("inputs"):
            name += f", w = {row['weight']:g}, {row['inputs']}"
        plot.line(name, [(x, y) for _, x, y in row["reliability"]])
    plot.write(folder / "reliability.svg")
    found = json.loads((folder / "front.json").read_text(encoding="utf-8"))
    plot = Plot("Stopping rules on held-out prompts", ("target calls a token", "discarded drafts a token"),
                (0.59, 0.2), (0.74, 2.2))
    for row in found["table"]:
        # Those outside the picture, and the head that loses to its like, are left out.
        if "curve" in row and row["rule"] not in ("p-min", "svip") and "w=6" not in row["rule"]:
            plot.line(row["rule"].split(" ", 1)[0], front(row["curve"]), dashed=row["rule"] in ("perfect", "overlap"))
    plot.write(folder / "front.svg")


if __name__ == "__main__":
    main()
