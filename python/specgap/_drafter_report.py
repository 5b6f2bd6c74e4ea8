"""What an accumulator's columns say: estimates with intervals by prompt, and two of them
compared."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._errors import Refused
from ._first_screen import Lead, first_screen
from ._native import __version__
from ._paper import escaped, floated, label_of, legend, plain_table
from ._reports import Report
from ._shape import threshold

Floats = NDArray[np.float64]
Frame = dict[str, NDArray[Any]]

#: Standard errors of surprise beyond which a text hardly is the target's.
_SURPRISED = 4.0

#: Estimates of :meth:`DrafterReport.metrics` where nothing else is asked for.
_FEW = (
    "acceptance_length", "acceptance_length_one_hot", "lost_to_vocabulary_1", "lost_to_drafter_1",
)  # fmt: skip

#: What is printed of each number; ``_d`` is a depth, ``_k`` a number of drafts.
DEFINITIONS = {
    "acceptance_length": "1 + E[tau], tokens a round with the target's own (bonus) token counted: "
    "tau is how many of "
    "K drafted tokens are accepted. Drafts sampled from q, kept with min(1, p/q) token by token: "
    "E[tau] is the sum "
    "over i of E[product over d <= i of a_d], a_d = min(1, q(y)/p(y)) of the row at depth d. Mean "
    "over all positions "
    "at which K tokens of the text are left",
    "acceptance_length_by_means": "the same with the last coin by its mean, E[product over d < i "
    "of a_d * overlap_i]: "
    "as unbiased, and usually narrower",
    "acceptance_length_one_hot": "1 + E[tau] where the draft is q's likeliest token (the default "
    "of vLLM, llama.cpp "
    "and TensorRT-LLM): the coin is 1 if that is the text's token, else 0",
    "acceptance_length_one_hot_by_means": "the same with the last coin by its mean, p of q's "
    "likeliest token",
    "acceptance_length_exact_match": "1 + E[tau] where a sampled draft is kept if the target "
    "draws the same token: the coin is q(y)",
    "acceptance_length_block": "1 + E[tau] of sampled drafts with block verification: P(tau >= "
    "i) = E[min over 0 <= j <= i of R_j], R_j the product of q(y)/p(y) over the first j depths",
    "acceptance_length_greedy_block": "1 + E[tau] of one round with greedy block verification: "
    "P(tau >= i) = E[min(1, R_i)]",
    "acceptance_length_tree_t": "1 + E[tau], on a sample of starts, of a tree t with so many children "
    "of a node at each depth, drawn from the strata of q and kept by level-4: E[tau] is the sum over i "
    "of E[product over d <= i of s_d], s_d how often a child is accepted where the text's token is put "
    "out; of t:traversal-4 by that rule, which goes through the tree from its leaves. Of threshold-h, at all starts: tau is how many tokens of the text are in the tree of every node "
    "whose product of q from the start on is at least h",
    "acceptance_marginal_d": "E[a_d] of sampled drafts along the text, whether or not earlier "
    "ones were accepted",
    "acceptance_joint_d": "P(tau >= d) of sampled drafts, E[product of a_1 .. a_d]: the first d "
    "drafts are all accepted",
    "acceptance_conditional_d": "P(tau >= d) / P(tau >= d - 1): the d-th is accepted where those "
    "before it were",
    "acceptance_joint_one_hot_d": "P(tau >= d) of one-hot drafts: the first d are all the text's "
    "tokens",
    "overlap_d": "mean over starts of the sum of min(p, q) over the draft's vocabulary, q the "
    "row at depth d and p the target's law over all tokens, not normalised to that vocabulary",
    "coverage_d": "mean mass of p inside the draft's vocabulary; no draft from it is accepted "
    "more often",
    "lost_to_vocabulary_d": "1 - coverage: acceptance that this vocabulary cannot have",
    "lost_to_drafter_d": "coverage - overlap: acceptance that a better drafter with this "
    "vocabulary would have",
    "alpha_star_n_d": "mean over a sample of starts of alpha*, the most that any lossless "
    "verifier accepts of n independent drafts of the row at depth d; a row by itself, whatever "
    "was accepted before",
    "tokens_per_call_k": "tokens of the text over expected calls of the target, for k drafts a "
    "round, sampled, token by token: rounds are replayed from each text's first token, and start "
    "where rounds end",
    "best_length_at_c": "the k that is quickest on half of the prompts (numbers 0, 3, 5, 6, 9, ..), at "
    "a drafted token's "
    "cost of c target steps",
    "speedup_at_c": "tokens / (calls + c drafted tokens) at that k, on the other prompts, which "
    "had no say in it",
    "surprise_z": "standard errors between the mean of -ln p(y) and the mean entropy of p: a "
    "standard normal if the "
    "text was drawn from p",
    "tokens": "positions that count",
    "prompts": "prompts; ± are by prompt",
    "starts": "positions at which K tokens are left, over which means are taken",
    "_ci95": "half of the 95% interval: Student's t over prompts, of a ratio of sums (the "
    "clustered delta method), sqrt(C/(C-1) sum of (S_c - mean m_c)^2) / sum of m_c of C prompts; "
    "0 of one prompt, which shows nothing",
}


class Estimate(NamedTuple):
    """A ratio of sums over prompts, with half of its 95% interval."""

    mean: float
    half: float

    def plain(self) -> dict[str, Any]:
        return {"mean": self.mean, "ci95": [self.mean - self.half, self.mean + self.half]}

    def shifted(self, by: float) -> Estimate:
        return Estimate(self.mean + by, self.half)

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half:.3f}"


def clustered(sums: Floats, sizes: Floats) -> Estimate:
    """sum of S_c / sum of m_c over C prompts, and t sqrt(C/(C-1) sum of (S_c - mean m_c)^2) / sum
    of m_c."""
    if not sizes.sum() > 0:
        return Estimate(0.0, 0.0)
    mean, low, high = _native.clustered_sums(sums.tolist(), sizes.tolist())
    return Estimate(mean, (high - low) / 2)


class Coins(NamedTuple):
    """Of starts [S] at which K tokens are left: P(tau >= i) given the text [S, K], by kind of
    draft, and the same with the last coin by its mean."""

    joint: dict[str, Any]
    means: dict[str, Any]
    marginal: Floats


KINDS = ("sampled", "block", "greedy-block", "one-hot", "exact-match")


def coins(logp: Floats, logq: Floats, hit: Floats, p_hit: Floats, overlap: Floats) -> Coins:
    """Coins of starts: all arrays are [S, K], entry (s, j) about the token at s + j."""
    ratio = np.where(logq > -np.inf, logq - logp, -np.inf)
    single = np.exp(np.minimum(ratio, 0.0))
    joint = np.cumprod(single, 1)
    total = np.cumsum(ratio, 1)
    hits = np.cumprod(hit, 1)
    start = np.ones((len(logp), 1))
    return Coins(
        {
            "sampled": joint,
            "block": np.exp(np.minimum(np.minimum.accumulate(total, 1), 0.0)),
            "greedy-block": np.exp(np.minimum(total, 0.0)),
            "one-hot": hits,
            "exact-match": np.cumprod(np.exp(logq), 1),
        },
        {
            "sampled": np.hstack([start, joint[:, :-1]]) * overlap,
            "one-hot": np.hstack([start, hits[:, :-1]]) * p_hit,
        },
        single,
    )


def _ahead(column: NDArray[Any], depth: int) -> NDArray[Any]:
    """Entries (s, j) of a column at s + j; the last one's beyond the end."""
    places = np.minimum(np.arange(len(column))[:, None] + np.arange(depth), len(column) - 1)
    out: NDArray[Any] = column[places]
    return out


class _Sums:
    """Sums of values over prompts, in the order of prompts."""

    def __init__(self, prompt: NDArray[np.int64]) -> None:
        self.number = len(prompt)
        self.first = (
            np.flatnonzero(np.r_[True, np.diff(prompt) != 0]) if self.number else np.zeros(0, int)
        )
        self.sizes = self.of(np.ones(self.number))

    def of(self, values: Floats) -> Floats:
        out: Floats = np.add.reduceat(values, self.first) if self.number else np.zeros(0)
        return out

    def mean(self, values: Floats) -> Estimate:
        return clustered(self.of(values), self.sizes)

    def ratio(self, values: Floats, others: Floats) -> Estimate:
        return clustered(self.of(values), self.of(others))


def _replayed(joint: Floats, runs: Sequence[tuple[int, int]], length: int) -> tuple[Floats, Floats]:
    """Expected calls of the target and drafted tokens of each run, with `length` drafts a round.

    A round that starts at s drafts n = min(length, tokens left - 1); the next one starts at s + i
    with m_(i-1) - m_i for i = 1..n and at s + n + 1 with m_n, m_i = P(tau >= i) from s on.
    """
    calls, drafts = np.zeros(len(runs)), np.zeros(len(runs))
    first = np.array([run[0] for run in runs])
    sizes = np.array([run[1] for run in runs])
    longest = int(sizes.max()) if len(runs) else 0
    weight = np.zeros((len(runs), longest + length + 2))
    weight[:, 0] = 1.0
    for s in range(longest):
        there = np.flatnonzero(sizes > s)
        here = weight[there, s]
        calls[there] += here
        n = np.minimum(length, sizes[there] - 1 - s)
        drafts[there] += here * n
        before = np.ones(len(there))
        for i in range(1, length + 1):
            drafted = n >= i
            after = np.where(drafted, joint[first[there] + s, i - 1], before)
            weight[there, s + i] += np.where(drafted, here * (before - after), 0.0)
            before = after
        weight[there, s + n + 1] += here * before
    return calls, drafts


class DrafterReport(Report):
    """What :meth:`specgap.Drafter.report` found.

    ``metrics(prefix)`` is a flat dict of floats for a logger, ``to_dict()`` and ``json`` all of it,
    ``save(folder)`` a page with its files, ``text()``, ``html()`` and ``markdown()`` the page alone,
    ``by_depth()`` and ``starts()`` columns for a frame.
    ``definitions`` says what each number is. ``warning`` is None, or what makes the numbers
    doubtful.
    """

    definitions = DEFINITIONS

    def __init__(
        self, settings: dict[str, Any], whole: Frame, sample: Frame | None, costs: Sequence[float]
    ) -> None:
        self.command, self.summary = "drafter", None
        self._positions = self._again = None
        self.settings = settings
        self.depth = int(settings["depth"])
        self._columns = whole
        depth = self.depth
        prompt = whole["prompt"]
        known = (whole["hit"] >= 0).sum(1)
        full = known == depth
        if not full.any():
            raise Refused(
                f"depth: no text has {depth} tokens that count without a gap, as a round drafts; "
                "give longer texts, or a smaller depth"
            )
        logp = _ahead(whole["logp"], depth)
        columns = [whole[name] for name in ("logq", "hit", "p_hit", "overlap")]
        self._coins = coins(*(column[full].astype(np.float64) for column in (logp, *columns)))
        self._starts = {name: whole[name][full] for name in ("prompt", "position")} | {
            "tokens": _ahead(whole["token"], depth)[full]
        }
        sums = _Sums(self._starts["prompt"])
        self._sums = sums
        #: ln of q's product from a start on, along the text.
        self._products = np.cumsum(whole["logq"][full], 1)
        self.tokens, self.starts_counted = len(prompt), int(full.sum())
        self.prompts = len(np.unique(prompt))
        self.surprise = self._surprise()
        self._strange = self._strange_draft()
        self.lengths = {
            kind: sums.mean(joint.sum(1)).shifted(1) for kind, joint in self._coins.joint.items()
        }
        self.by_means = {
            kind: sums.mean(values.sum(1)).shifted(1) for kind, values in self._coins.means.items()
        }
        coverage = _ahead(whole["coverage"], depth)[full]
        overlap = whole["overlap"][full]
        self._depths: list[dict[str, Estimate]] = []
        for d in range(depth):
            joint = self._coins.joint["sampled"]
            before = joint[:, d - 1] if d else np.ones(len(joint))
            self._depths.append(
                {
                    "acceptance_marginal": sums.mean(self._coins.marginal[:, d]),
                    "acceptance_conditional": sums.ratio(joint[:, d], before),
                    "acceptance_joint": sums.mean(joint[:, d]),
                    "acceptance_joint_one_hot": sums.mean(self._coins.joint["one-hot"][:, d]),
                    "overlap": sums.mean(overlap[:, d]),
                    "coverage": sums.mean(coverage[:, d]),
                    "lost_to_vocabulary": sums.mean(1 - coverage[:, d]),
                    "lost_to_drafter": sums.mean(coverage[:, d] - overlap[:, d]),
                }
            )
        self.optima = self._optima(sample)
        self.trees = self._trees(sample)
        self.per_call, self.best = self._replays(known, costs)

    def _surprise(self) -> dict[str, float]:
        """Mean -ln p(y), mean entropy, and how many standard errors they are apart."""
        whole = self._columns
        observed, expected = -whole["logp"], whole["entropy"]
        spread = float(np.maximum(whole["square"] - expected**2, 0.0).sum())
        off = float((observed - expected).sum())
        z = off / math.sqrt(spread) if spread > 1e-12 * len(expected) else 0.0
        return {"observed": float(observed.mean()), "expected": float(expected.mean()), "z": z}

    def _strange_draft(self) -> str | None:
        """That the first draft's rows are no better at their positions than at others."""
        whole = self._columns
        there = ~np.isnan(whole["other"]) & (whole["hit"][:, 0] >= 0)
        sums = _Sums(whole["prompt"][there])
        columns = (whole["overlap"][:, 0], whole["other"], whole["coverage"])
        found = [sums.of(column[there]).tolist() for column in columns]
        return _native.strange_draft(list(zip(*found, sums.sizes.tolist())))

    def _optima(self, sample: Frame | None) -> dict[int, list[Estimate]]:
        if sample is None:
            return {}
        sums = _Sums(sample["prompt"])
        values = sample["value"]
        return {
            n: [sums.mean(values[:, d, k]) for d in range(self.depth)]
            for k, n in enumerate(self.settings["optima"])
        }

    def _trees(self, sample: Frame | None) -> dict[str, Estimate]:
        found: dict[str, Estimate] = {}
        at = len(self.settings["optima"])
        for tree in self.settings["trees"]:
            least = threshold(tree)
            if least is not None:
                # Products fall, so those that reach it come first.
                inside = self._products >= math.log(least) - 1e-12
                found[tree] = self._sums.mean(inside.sum(1).astype(np.float64)).shifted(1)
            elif sample is not None:
                shares = sample["value"][:, :, at]
                found[tree] = _Sums(sample["prompt"]).mean(np.cumprod(shares, 1).sum(1)).shifted(1)
                at += 1
        return found

    def _replays(
        self, known: NDArray[np.int64], costs: Sequence[float]
    ) -> tuple[dict[str, list[Estimate]], list[dict[str, Any]]]:
        """Tokens a call for 1 to K drafts a round, and the best number at each cost; nothing of
        texts in pieces, whose rounds cannot be replayed."""
        whole, depth = self._columns, self.depth
        prompt, position = whole["prompt"], whole["position"]
        joined = (np.diff(prompt) == 0) & (np.diff(position) == 1)
        first = np.flatnonzero(np.r_[True, ~joined])
        sizes = np.diff(np.r_[first, len(prompt)])
        left = np.repeat(first + sizes, sizes) - np.arange(len(prompt))
        if (known < np.minimum(left, depth)).any():
            return {}, []
        runs = list(zip(first.tolist(), sizes.tolist()))
        kept = [np.nan_to_num(whole[name], nan=0.0) for name in ("logq", "hit", "p_hit", "overlap")]
        kept[0] = whole["logq"]
        every = coins(_ahead(whole["logp"], depth), *(one.astype(np.float64) for one in kept))
        sums = _Sums(prompt[first])
        tokens = sums.of(sizes.astype(np.float64))
        per_call: dict[str, list[Estimate]] = {}
        sampled = []
        for kind in KINDS:
            if kind == "greedy-block":
                continue
            joint = np.nan_to_num(every.joint[kind], nan=0.0)
            found = [_replayed(joint, runs, k) for k in range(1, depth + 1)]
            per_call[kind] = [clustered(tokens, sums.of(calls)) for calls, _ in found]
            if kind == "sampled":
                sampled = [(sums.of(calls), sums.of(drafts)) for calls, drafts in found]
        chooses = np.array([bin(at).count("1") % 2 == 0 for at in range(len(tokens))])
        best = []
        for cost in costs:
            spent = [calls + cost * drafts for calls, drafts in sampled]
            choice, rest = (chooses, ~chooses) if len(tokens) > 1 else (chooses, chooses)
            speeds = [float(tokens[choice].sum() / one[choice].sum()) for one in spent]
            k = int(np.argmax(speeds))
            speedup = clustered(tokens[rest], spent[k][rest])
            best.append({"cost_ratio": float(cost), "length": k + 1, "speedup": speedup})
        return per_call, best

    @property
    def warning(self) -> str | None:
        """Why the numbers may be of something else; None if nothing was seen."""
        z = self.surprise["z"]
        if abs(z) < _SURPRISED:
            return self._strange
        return (
            f"the text does not look drawn from p: its surprise is {abs(z):.1f} standard errors "
            f"{'above' if z > 0 else 'below'} p's entropy ({self.surprise['observed']:.3f} and "
            f"{self.surprise['expected']:.3f} nats); give text that the target itself wrote at "
            "this temperature, top_k, top_p and cut_order, row t about token t: of other text these numbers "
            "are not what a server accepts"
        )

    # --- what is handed out ---

    def _estimates(self) -> Iterator[tuple[str, Estimate]]:
        """All estimates by their flat names."""
        yield "acceptance_length", self.lengths["sampled"]
        yield "acceptance_length_by_means", self.by_means["sampled"]
        for kind in KINDS[1:]:
            yield f"acceptance_length_{kind.replace('-', '_')}", self.lengths[kind]
        yield "acceptance_length_one_hot_by_means", self.by_means["one-hot"]
        for tree, estimate in self.trees.items():
            yield f"acceptance_length_tree_{tree}", estimate
        for d, numbers in enumerate(self._depths, 1):
            for name, estimate in numbers.items():
                yield f"{name}_{d}", estimate
        for n, estimates in self.optima.items():
            for d, estimate in enumerate(estimates, 1):
                yield f"alpha_star_{n}_{d}", estimate
        for k, estimate in enumerate(self.per_call.get("sampled", []), 1):
            yield f"tokens_per_call_{k}", estimate
        for one in self.best:
            yield f"speedup_at_{one['cost_ratio']:g}", one["speedup"]

    def metrics(
        self, prefix: str = "", only: Literal["few", "all"] | Sequence[str] = "few"
    ) -> dict[str, float]:
        """A flat dict of floats, as loggers take it: each estimate by its name, and ``NAME_ci95``,
        half of its 95% interval. Names are those of ``definitions``, a number in place of d, k, n
        or c. ``only`` the few that a panel has room for, if nothing else is said: acceptance lengths of
        sampled and one-hot drafts and of trees, what the first depth loses to the vocabulary and to the
        drafter, tokens a call at K, the best lengths, surprise and tokens; ``"all"``; or names.

        >>> # writer.add_scalar for each item, trainer.log(report.metrics("eval/")), wandb.log(..)
        """
        found: dict[str, float] = {}
        for name, estimate in self._estimates():
            found[name], found[f"{name}_ci95"] = estimate
        for one in self.best:
            found[f"best_length_at_{one['cost_ratio']:g}"] = float(one["length"])
        found["surprise_z"] = self.surprise["z"]
        found["tokens"] = float(self.tokens)
        found["prompts"] = float(self.prompts)
        found["starts"] = float(self.starts_counted)
        if only == "few":
            of_costs = [name for name in found if "_at_" in name and not name.endswith("_ci95")]
            trees = [f"acceptance_length_tree_{tree}" for tree in self.trees]
            last = f"tokens_per_call_{self.depth}"
            kept = [*_FEW, *trees, *([last] if last in found else []), *of_costs, "surprise_z", "tokens"]
        else:
            kept = list(found) if only == "all" else [only] if isinstance(only, str) else list(only)
        chosen: dict[str, float] = {}
        for name in kept:
            if name not in found:
                self.definition(name)
                raise ValueError(f"only: this report has no {name}; it has {', '.join(found)}")
            chosen[f"{prefix}{name}"] = found[name]
            if f"{name}_ci95" in found:
                chosen[f"{prefix}{name}_ci95"] = found[f"{name}_ci95"]
        return chosen

    def definition(self, name: str) -> str:
        """What a number of :meth:`metrics` is, by its name without the prefix.

        >>> from specgap import DrafterReport
        >>> DrafterReport.definitions["tokens"]
        'positions that count'
        """
        name, _, half = name.partition("_ci95") if name.endswith("_ci95") else (name, "", "")
        if name in self.definitions:
            return self.definitions[name]
        stem = name.rstrip("0123456789.e-").rstrip("_")
        for ending in ("_d", "_k", "_c"):
            if f"{stem}{ending}" in self.definitions:
                return self.definitions[f"{stem}{ending}"]
        if name.startswith("acceptance_length_tree_"):
            return self.definitions["acceptance_length_tree_t"]
        if stem.startswith("alpha_star"):
            return self.definitions["alpha_star_n_d"]
        raise ValueError(
            f"name: there is no number {name!r}; metrics(only='all') has {', '.join(self.metrics(only='all'))}"
        )

    def by_depth(self) -> dict[str, Floats]:
        """Columns with an entry for each depth: ``pandas.DataFrame(report.by_depth())``."""
        columns: dict[str, Floats] = {"depth": np.arange(1.0, self.depth + 1)}
        for name in self._depths[0]:
            columns[name] = np.array([numbers[name].mean for numbers in self._depths])
            columns[f"{name}_ci95"] = np.array([numbers[name].half for numbers in self._depths])
        for n, estimates in self.optima.items():
            columns[f"alpha_star_{n}"] = np.array([one.mean for one in estimates])
            columns[f"alpha_star_{n}_ci95"] = np.array([one.half for one in estimates])
        return columns

    def starts(self) -> dict[str, NDArray[Any]]:
        """Columns with an entry for each start: prompt, position, and E[tau] given the text of each
        kind."""
        own = {name: self._starts[name].copy() for name in ("prompt", "position")}
        return own | {
            f"accepted_{kind.replace('-', '_')}": joint.sum(1)
            for kind, joint in self._coins.joint.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """All numbers, as plain data."""
        names = {name: one.plain() for name, one in self._estimates()}
        return {
            "schema": 1,
            "tool": f"specgap {__version__}",
            "command": "drafter",
            "settings": self.settings,
            "tokens": self.tokens,
            "prompts": self.prompts,
            "starts": self.starts_counted,
            "surprise": self.surprise,
            "warning": self.warning,
            "estimates": names,
            "tokens_per_call": {
                kind: [one.plain() for one in found] for kind, found in self.per_call.items()
            },
            "best_length": [one | {"speedup": one["speedup"].plain()} for one in self.best],
            "definitions": self.definitions,
        }

    @property
    def json(self) -> str:
        """:meth:`to_dict` as JSON, indented."""
        return json.dumps(self.to_dict(), indent=2)

    @cached_property
    def _made(self) -> _native.Made:  # type: ignore[override]
        return _native.drafter(self.json)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_made"}

    def __reduce__(self) -> tuple[Any, ...]:
        return (object.__new__, (type(self),), self.__getstate__())

    def __str__(self) -> str:
        return self.text(whole=True)

    def __repr__(self) -> str:
        return f"DrafterReport(depth={self.depth}, acceptance_length={self.lengths['sampled']})"


class Comparison:
    """Two drafters on the same starts: b less a, paired.

    ``acceptance_length`` by kind of drafts and ``joint`` by depth are :class:`Estimate` of ``mean``
    and ``half``, half of the 95% interval by prompt. ``starts`` were compared; ``only_in_a`` and
    ``only_in_b`` have no partner.
    """

    def __init__(
        self,
        acceptance_length: dict[str, Estimate],
        joint: list[Estimate],
        starts: int,
        only: tuple[int, int],
        prompts: int,
    ) -> None:
        self.acceptance_length = acceptance_length
        self.joint = joint
        self.starts = starts
        self.only_in_a, self.only_in_b = only
        self.prompts = prompts

    def metrics(self, prefix: str = "") -> dict[str, float]:
        """A flat dict of floats: differences b - a, and ``NAME_ci95``, half of their 95%
        intervals."""
        found: dict[str, float] = {}
        named = {
            "acceptance_length" + ("" if kind == "sampled" else f"_{kind.replace('-', '_')}"): one
            for kind, one in self.acceptance_length.items()
        }
        named |= {f"acceptance_joint_{d}": one for d, one in enumerate(self.joint, 1)}
        for name, one in named.items():
            found[f"{prefix}{name}"], found[f"{prefix}{name}_ci95"] = one.mean, one.half
        return found

    def to_dict(self) -> dict[str, Any]:
        """All numbers, as plain data."""
        return {
            "schema": 1,
            "tool": f"specgap {__version__}",
            "command": "drafter compare",
            "starts": self.starts,
            "only_in_a": self.only_in_a,
            "only_in_b": self.only_in_b,
            "prompts": self.prompts,
            "acceptance_length": {
                kind: one.plain() for kind, one in self.acceptance_length.items()
            },
            "acceptance_joint": [one.plain() for one in self.joint],
        }

    @property
    def verdict(self) -> str:
        """Which of the two accepts more sampled drafts, if that is told."""
        one = self.acceptance_length["sampled"]
        if abs(one.mean) <= one.half or one.half == 0:
            return f"The two are not told apart: b puts out {one.mean:+.3f} ± {one.half:.3f} tokens a round"
        more = "more" if one.mean > 0 else "fewer"
        return f"b puts out {abs(one.mean):.3f} ± {one.half:.3f} {more} tokens a round than a"

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [f"acceptance length, {kind}", f"{one.mean:+.3f} ± {one.half:.3f}"]
            for kind, one in self.acceptance_length.items()
        ]
        rows += [
            [f"joint acceptance, depth {d}", f"{one.mean:+.3f} ± {one.half:.3f}"]
            for d, one in enumerate(self.joint, 1)
        ]
        return ["b − a", "difference"], [[cell.replace("-0", "−0") for cell in row] for row in rows]

    def latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        """The differences as a float that stands in a paper as it is."""
        if caption is None:
            caption = escaped(
                f"Drafter b less drafter a, paired over {self.starts} starts of {self.prompts} "
                f"prompts. {legend('drafter compare', {})}"
            )
        columns, rows = self._rows()
        return floated(
            [plain_table(columns, rows)], caption, label or label_of("specgap", "compare")
        )

    def _repr_html_(self) -> str:
        title, *_ = self.text().split("\n")
        columns, rows = self._rows()
        lead = Lead("Two drafters on the same starts", [], self.verdict, [title])
        return first_screen(lead, ("", columns, rows, ""))

    def text(self) -> str:
        """The differences in words."""
        lines = [
            f"b - a, paired over {self.starts} starts of {self.prompts} prompts; ± is half of a "
            f"95% interval by prompt. Without a partner: {self.only_in_a} starts of a, "
            f"{self.only_in_b} of b."
        ]
        for kind, one in self.acceptance_length.items():
            lines.append(f"acceptance length, {kind}: {one.mean:+.3f} ± {one.half:.3f}")
        for d, one in enumerate(self.joint, 1):
            lines.append(f"joint acceptance, depth {d}: {one.mean:+.3f} ± {one.half:.3f}")
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        one = self.acceptance_length["sampled"]
        return (
            f"Comparison(starts={self.starts}, acceptance_length={one.mean:+.3f} ± {one.half:.3f})"
        )


def compare(a: DrafterReport, b: DrafterReport) -> Comparison:
    """What drafter b accepts more than drafter a on the same text, paired by (prompt, position).

    Means over the starts that both reports have of ``b - a``, of each kind's E[tau] and of P(tau >=
    d) at each depth, with 95% intervals clustered by prompt: ``t sqrt(C/(C-1) sum of (D_c - mean
    m_c)^2) / sum of m_c``. What the texts have in common cancels, so that these are much narrower
    than either report's own.

    Raises :class:`specgap.Refused` for reports of other depths, temperatures or cuts, of other
    texts (tokens that differ at a start, with its prompt and position), and without a start in
    common.

    >>> import numpy as np, specgap as sg
    >>> reports = []
    >>> tokens = np.random.default_rng(0).integers(2, size=(8, 20))
    >>> for rate in (0.1, 0.2):
    ...     acc = sg.drafter(depth=1)
    ...     acc.add(np.zeros((8, 20, 2)), np.full((8, 20, 2), [0, rate]), tokens, range(8))
    ...     reports.append(acc.report())
    >>> sg.compare(*reports).acceptance_length["sampled"].mean < 0
    True
    """
    for name, one in (("a", a), ("b", b)):
        if not isinstance(one, DrafterReport):
            raise TypeError(f"{name}: is {type(one).__name__}; give what Drafter.report returned")
    for name in ("depth", "temperature", "top_k", "top_p", "cut_order"):
        if a.settings[name] != b.settings[name]:
            raise Refused(
                f"b: {name} is {b.settings[name]} and a's {a.settings[name]}; measure both "
                "drafters at one setting"
            )
    keys = [np.stack([one._starts["prompt"], one._starts["position"]], 1) for one in (a, b)]
    pairs: Any = [
        np.ascontiguousarray(key).view([("prompt", "<i8"), ("position", "<i8")]).ravel()
        for key in keys
    ]
    _, of_a, of_b = np.intersect1d(pairs[0], pairs[1], assume_unique=True, return_indices=True)
    if not len(of_a):
        raise Refused(
            "b: has no start (prompt, position) that a has; give both the same texts, prompt_id "
            "and position"
        )
    tokens_a, tokens_b = a._starts["tokens"][of_a], b._starts["tokens"][of_b]
    other = np.flatnonzero((tokens_a != tokens_b).any(1))
    if len(other):
        at = int(other[0])
        prompt, position = keys[0][of_a[at]].tolist()
        j = int(np.flatnonzero(tokens_a[at] != tokens_b[at])[0])
        raise Refused(
            f"b: is of another text: prompt {prompt}, position {position + j} is token "
            f"{tokens_b[at, j]} there and "
            f"{tokens_a[at, j]} in a; measure both drafters on the same tokens"
        )
    sums = _Sums(a._starts["prompt"][of_a])
    joints = [(a._coins.joint[kind][of_a], b._coins.joint[kind][of_b]) for kind in KINDS]
    lengths = {kind: sums.mean(two.sum(1) - one.sum(1)) for kind, (one, two) in zip(KINDS, joints)}
    one, two = joints[0]
    return Comparison(
        lengths,
        [sums.mean(two[:, d] - one[:, d]) for d in range(a.depth)],
        len(of_a),
        (len(keys[0]) - len(of_a), len(keys[1]) - len(of_b)),
        len(sums.sizes),
    )
