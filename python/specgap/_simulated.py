"""Rules of one's own that are drawn at positions of a log, with less noise than their draws have."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ._drafting import Floats, Integers, rows_of_drafts
from ._evaluate import Verifier, _by_rank, _Drawing, _Rule, drawer, typical
from ._sequential import LAW
from .laws import Law

#: Cells of the test whether the output's law is p.
_CELLS = 8
#: Weight of what had to come up, so that the first bets are small.
_PRIOR = 8.0


class Simulated:
    """A rule that is drawn at every position. What it accepts is averaged over the law of its
    output where it returns one. What recursive rejection accepts of the same independent drafts, or
    another number of drafts whose mean is known, takes away the noise that the two have in common."""

    def __init__(self, verifier: Verifier, scheme: str | Law, each: int) -> None:
        self.verifier, self.scheme = verifier, scheme
        # Two halves.
        self.each = 2 * max((each + 1) // 2, 2)
        #: By position: of each half its acceptance and how it goes with the control, algorithmic
        #: acceptance, and in what cells outputs fell, beside p there.
        self.seen: dict[int, tuple[Floats, float, list[tuple[Floats, Floats]]]] = {}

    def __call__(
        self, p: Floats, q: Floats, n: int, position: int, seed: int
    ) -> tuple[float, None, None]:
        # What rows lack of 1 by rounding.
        p, q = p / p.sum(), q / q.sum()
        return self.drawn(p, q, n, position, seed)

    def drawn(
        self, p: Floats, q: Floats, n: int, position: int, seed: int
    ) -> tuple[float, None, None]:
        """The same of distributions; q is what the rule is shown."""
        generator = np.random.default_rng(seed)
        rule, rng = _Rule(self.verifier, p, q), _Drawing(generator)
        one = typical(p, q)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(one > 0, np.log(p) - np.log(one), np.inf)
        cells = [_by_rank(np.where(p > 0, ratio, -np.inf), p, _CELLS), _by_rank(-p, p, _CELLS)]
        came = np.zeros((len(cells), self.each, _CELLS))
        hits, claims = np.zeros(self.each), np.zeros(self.each)
        tuples: Integers | list[Integers]
        if self.scheme == LAW:
            tuples = generator.choice(len(q), (self.each, n), p=q).astype(np.int64)
        else:
            draws = drawer(q, n, self.scheme, len(p))
            tuples = [draws(generator) for _ in range(self.each)]
        for at, drafts in enumerate(tuples):
            found = rule(drafts, rng)
            claims[at] = math.nan if found.accepted is None else found.accepted
            if found.law is None:
                hits[at] = found.token in drafts
                for own, cell in zip(came, cells):
                    own[at, cell[found.token]] = 1.0
            else:
                hits[at] = found.law[np.unique(drafts)].sum()
                for own, cell in zip(came, cells):
                    own[at] = np.bincount(cell, weights=found.law, minlength=_CELLS)
        masses: list[Floats] = [
            np.bincount(cell, weights=p, minlength=_CELLS).astype(np.float64) for cell in cells
        ]
        control, mean = _control(p, q, n, self.scheme, tuples)
        self.seen[position] = (
            _halves(hits, control, mean), float(claims.mean()), list(zip(came, masses))
        )
        # Of all positions together it is known better: :meth:`rates`.
        return min(max(float(hits.mean()), 0.0), 1.0), None, None

    def rates(self, positions: Sequence[int]) -> Floats:
        """Acceptance at positions: the mean of hits, less what the control says of their noise. How
        much it says is told by the other halves of all positions, so that the mean has no bias, and
        few draws a position are enough."""
        halves = np.array([self.seen[position][0] for position in positions])
        _, _, products, squares = halves.sum(axis=0).T
        slopes = np.where(squares > 1e-12, products / np.maximum(squares, 1e-12), 0.0)[::-1]
        rates: Floats = (halves[:, :, 0] - slopes * halves[:, :, 1]).mean(axis=1)
        return rates

    def rate(self, position: int) -> tuple[float, float]:
        """The same of a position by itself, without bias too, so that it may be beyond 0 or 1, and the
        variance that draws leave of it, as its halves differ. As few draws tell little of a slope, a
        guess of 1 has the weight of some."""
        half = self.seen[position][0]
        slopes = ((half[:, 2] + 1.0) / (half[:, 3] + 1.0))[::-1]
        first, second = half[:, 0] - slopes * half[:, 1]
        return float(first + second) / 2.0, float(first - second) ** 2 / 4.0

    def e_value(self) -> float:
        """Evidence against losslessness: what bets on the cells of outputs come to, each of which
        has mean 1 if outputs are drawn from p. Positions in their order, at most at any time."""
        capitals = np.zeros(2)
        best = 0.0
        tallies = np.full((2, 2, _CELLS), _PRIOR / _CELLS)
        for _, (_, _, partitions) in sorted(self.seen.items()):
            for at in range(self.each):
                for k, (came, masses) in enumerate(partitions):
                    tilt = tallies[k, 0] / tallies[k, 1]
                    mean = float(masses @ tilt)
                    if mean > 0.0:
                        # A part is kept back, so that nothing is ever lost for good.
                        capitals[k] += math.log(0.1 + 0.9 * float(came[at] @ tilt) / mean)
                    tallies[k, 0] += came[at]
                    tallies[k, 1] += masses
                peak = float(capitals.max())
                now = peak + math.log(float(np.exp(capitals - peak).mean()))
                best = max(best, now)
        return math.exp(min(best, 700.0))


def _control(
    p: Floats, q: Floats, n: int, scheme: str | Law, tuples: Integers | Sequence[Integers]
) -> tuple[Floats, float]:
    """A number of each tuple that goes with what a rule accepts of it, and its mean; 0 where none is
    known. Of independent drafts it is what recursive rejection accepts. Of strata, whose tokens over a
    cut are drafted once, the sum over drafts of min(1, p/r), r being how often a token is drafted."""
    if isinstance(scheme, Law):
        rows = q if scheme.is_independent else None
    else:
        rows = rows_of_drafts(q, n, scheme)
    if rows is None:
        return np.zeros(len(tuples)), 0.0
    drafts = np.asarray(tuples)
    if scheme != "stratified":
        return _rejection(p, rows, drafts)
    often = rows.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(often > 0, np.minimum(1.0, p / often), 0.0)
    return worth[drafts].sum(axis=1), float(often @ worth)


def _rejection(p: Floats, rows: Floats, tuples: Integers) -> tuple[Floats, float]:
    """What recursive rejection accepts given each tuple, and its mean over independent drafts, each of
    its row."""
    missed, all_missed = np.ones(len(tuples)), 1.0
    left = p
    for q, column in zip(rows, tuples.T):
        with np.errstate(divide="ignore", invalid="ignore"):
            keep = np.where(q > 0, np.minimum(1.0, left / q), 0.0)
        missed *= 1.0 - keep[column]
        all_missed *= float((q * (1.0 - keep)).sum())
        rest = np.maximum(left - q, 0.0)
        total = float(rest.sum())
        left = rest / total if total > 0.0 else left
    return 1.0 - missed, 1.0 - all_missed


def _halves(hits: Floats, control: Floats, mean: float) -> Floats:
    """Of each half of the draws: the mean of hits, by how much the control's is off, and the sums
    of which a slope is made."""
    found = []
    for own in (slice(0, len(hits) // 2), slice(len(hits) // 2, None)):
        spread = control[own] - control[own].mean()
        sums = spread @ hits[own], spread @ spread
        found.append([hits[own].mean(), control[own].mean() - mean, *sums])
    return np.array(found, dtype=np.float64)
