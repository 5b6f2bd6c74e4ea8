"""What a drafter would accept, summed over a validation loop: ``sg.drafter``."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._arrays import ArrayLike, count, integers, typed
from ._drafter_report import DrafterReport
from ._drafter_rows import Asked, Columns, Law, Shape, columns, far, sampled
from ._errors import Refused
from ._logs import Log
from ._shape import threshold, widths

_MAGIC = b"specgap drafter 2\n"

#: Columns of a position and their types; those of a position and a depth.
_OF_POSITION = {
    "prompt": "<i8",
    "position": "<i8",
    "token": "<i8",
    "logp": "<f8",
    "entropy": "<f8",
    "square": "<f8",
    "logp_before": "<f8",
    "logp_after": "<f8",
    "coverage": "<f8",
    "other": "<f8",
}
_OF_DEPTH = {"logq": "<f8", "hit": "<i1", "p_hit": "<f8", "max_q": "<f8", "overlap": "<f8"}
_OF_SAMPLE = {"prompt": "<i8", "position": "<i8", "value": "<f8"}

#: How far two measurements of one position may be apart: rounding of bfloat16 models by batch.
_APART = 0.25
#: Tokens from which on a shift is looked for; standard errors, and nats, that show one.
_ENOUGH, _ERRORS, _NATS = 32, 6.0, 1.0

Frame = dict[str, NDArray[Any]]


def drafter(
    depth: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    *,
    cut_order: str = "transformers",
    optima: Sequence[int] = (),
    trees: Sequence[str] = (),
    every: int = 16,
) -> Drafter:
    """An accumulator of what a drafter would accept along text that the target wrote.

    Feed it a validation loop's logits by :meth:`Drafter.add`, join the processes' by
    :meth:`Drafter.merge`, and ask :meth:`Drafter.report` for the numbers.

    - ``depth``: K, how many tokens a round drafts.
    - ``temperature``: both models' logits are divided by it; above 0.
    - ``top_k``, ``top_p``: how the text was cut: p keeps the ``top_k`` heaviest tokens (the lowest
      ids among equals) and of these the fewest heaviest that hold ``top_p`` of their mass, and is
      normalised. q is not cut.
    - ``cut_order``: the order of these and the temperature, as :func:`gap` has it: top-k first and
      the temperature before both, unless it names another (``"joint"``, ``"llama.cpp"``).
    - ``optima``: numbers of drafts n of which alpha\\* is measured too, the most that any lossless
      verifier accepts of n independent drafts of a depth; at one start of ``every`` (on average;
      the same ones in any run).
    - ``trees``: shapes by depth, such as ``"4x2"`` or ``"prefix-4-2-1"``, of which tokens a round are
      measured at those starts: children from the strata of q, kept by ``level-4``, or the whole tree by
      a rule that goes through it from its leaves, ``"4x2:traversal-4"``; or ``"threshold-0.05"``,
      at all starts: every node whose product of q reaches that, as EAGLE-2, EAGLE-3 and SGLang choose
      trees, of which the target's own draws are kept.

    Raises :class:`specgap.Refused` for settings out of range.

    >>> import numpy as np, specgap as sg
    >>> rng = np.random.default_rng(0)
    >>> p = np.log([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])     # the law after a token
    >>> text = np.zeros((4, 9), dtype=int)
    >>> for t in range(1, 9):
    ...     text[:, t] = [rng.choice(3, p=np.exp(p[y])) for y in text[:, t - 1]]
    >>> target = p[text[:, :-1]]                  # [B, T, V]: row t is about token t of text[:, 1:]
    >>> draft = np.stack([0.5 * target] * 2, axis=2)                        # [B, T, K, V]
    >>> draft[:, :-1, 1] = 0.5 * target[:, 1:]    # at depth 2 about the next token
    >>> acc = sg.drafter(depth=2)
    >>> acc.add(target, draft, text[:, 1:], prompt_id=range(4))
    >>> found = acc.report().metrics("eval/")
    >>> 1 <= found["eval/acceptance_length"] <= 3
    True
    """
    return Drafter(
        depth, temperature, top_k, top_p, cut_order=cut_order, optima=optima, trees=trees, every=every
    )


class Drafter:
    """The sums of :func:`specgap.drafter`: a line of numbers for each position, and no rows.

    It holds 10 numbers for each position and 33 bytes for each (position, depth) beside them: 20 MB
    of 65,536 positions at K = 7. Columns are kept in double precision and in the order of (prompt,
    position), so that the same columns give the same bytes and the same report in whatever order
    they were added and merged.
    """

    def __init__(
        self,
        depth: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        *,
        cut_order: str = "transformers",
        optima: Sequence[int] = (),
        trees: Sequence[str] = (),
        every: int = 16,
    ) -> None:
        self.depth = count(depth, "depth", "drafted tokens")
        self.law = _law(temperature, top_k, top_p, cut_order)
        counts = tuple(sorted({count(n, "optima", "drafts") for n in optima}))
        self.optima, self.every = counts, count(every, "every", "starts")
        self.trees = tuple(dict.fromkeys([trees] if isinstance(trees, str) else trees))
        shapes = [tree for tree in self.trees if threshold(tree) is None]
        self._children = [_shape(tree, self.depth) for tree in shapes]
        self._sizes: tuple[int, int] | None = None
        self._frames: list[Frame] = []
        self._samples: list[Frame] = []
        self._warned = False

    # --- adding ---

    def add(
        self,
        target_logits: ArrayLike,
        draft_logits: ArrayLike,
        tokens: ArrayLike,
        prompt_id: ArrayLike,
        position: ArrayLike = None,
        d2t: ArrayLike = None,
        t2d: ArrayLike = None,
        mask: ArrayLike = None,
    ) -> None:
        """Adds a batch: B texts (or stretches of texts) of T tokens.

        **Alignment.** Row t of a text is about token t of it, at every depth:

        - ``tokens[b, t]``, y_t: the text, drawn from p; negative numbers (-1, -100) are padding.
        - ``target_logits[b, t]`` [B, T, V]: p of y_t. A causal model's ``logits[:, t]`` is about
          the token at t + 1: give ``logits[:, :-1]`` and ``tokens = ids[:, 1:]``.
        - ``draft_logits[b, s, j]`` [B, T, K, Vd], j = 0..K-1: the draft's row for y_(s+j) in a
          round that starts at s, so that its first drafted token is the one at s. Tokens before s +
          j are the text's own (teacher forcing). It is compared with ``target_logits[b, s + j]``;
          entries with s + j >= T are not read. With depth 1 also [B, T, Vd].

        If a head reads the hidden state of y_(s-1) and puts out ``heads[b, s - 1, j]`` for the j-th
        token after it, then ``draft_logits = heads[:, :-1]``, by the same shift as the target's.

        - ``prompt_id`` [B]: whole numbers, or strings, told apart by 63 bits of a hash; ± are by prompt. ``position``: the place of each token
          in its text, [B, T], or of the first one [B]; if not given, counted from the first token
          that is scored.
        - ``mask`` [B, T]: true where a token counts; false at prompts, at padding, and at turns
          that the target did not write. Rounds do not reach over what does not count.
        - ``d2t`` [Vd]: the draft's token i is the target's token i + d2t[i]; or ``t2d`` [V], true
          where the draft has a token, in order. q is 0 elsewhere; p is taken as it is, over all V
          tokens.

        Arrays are all of torch, on one device, or all of NumPy: float16, bfloat16, float32 or
        float64. In torch the rows stay where they are, and their sums are in float32 (float64 if a
        row is); in NumPy they are in float64. Besides the rows, torch takes three buffers of at
        most 2^23 numbers, 96 MiB in float32, or of one row if that is more (2^26 on a device). Time
        O(B T K V), with ``top_p`` also a sort of some heavy tokens of p.

        A position that was added before is the same one: it counts once, as where a sampler of
        several processes repeats texts to fill a batch.

        Raises :class:`specgap.Refused`, naming the argument, for shapes that do not fit, rows with
        NaN, rows that are probabilities, tokens that p cannot draw, and for tokens of which p gives
        a neighbour far more than the token itself: then rows are off by one. ``UserWarning`` where
        that holds of the draft's rows.
        """
        asked, prompts, places = self._asked(
            target_logits, draft_logits, tokens, prompt_id, position, d2t, t2d, mask
        )
        scored = asked.tokens >= 0
        if not scored.any():
            return
        found = columns(asked)
        self._refuse_rows(found, asked)
        _refuse_shift(found, scored)
        if not self._warned:
            self._warned = _warn_of_shift(found)
        sizes = int(asked.target.shape[-1]), int(asked.draft.shape[-1])
        frame: Frame = {
            "prompt": np.broadcast_to(prompts[:, None], scored.shape)[scored],
            "position": places[scored],
            "token": asked.tokens[scored],
        }
        found["other"] = _elsewhere(found, asked.tokens)
        for name in list(_OF_POSITION)[3:]:
            frame[name] = found[name][scored]
        for name in _OF_DEPTH:
            frame[name] = found[name][scored]
        frame["hit"] = np.where(np.isnan(frame["hit"]), -1, frame["hit"]).astype(np.int8)
        self._fit(self._settings() | {"sizes": list(sizes)})
        self._sizes = sizes
        self._frames.append(frame)
        if self.optima or self._children:
            self._sample(asked, prompts, places)

    def _asked(
        self,
        target: Any,
        draft: Any,
        tokens: Any,
        prompt_id: Any,
        position: Any,
        d2t: Any,
        t2d: Any,
        mask: Any,
    ) -> tuple[Asked, NDArray[np.int64], NDArray[np.int64]]:
        """What was given, if it can be meant; prompts [B], places [B, T]."""
        target, draft = _rows(target, "target_logits"), _rows(draft, "draft_logits")
        _refuse_mixture(target, draft)
        if target.ndim != 3:
            raise Refused(
                f"target_logits: has shape {tuple(target.shape)}; give [B, T, V], such as "
                "target_logits[None] of one text",
                "target_logits",
            )
        batch, length, size = target.shape
        if draft.ndim == 3 and self.depth == 1:
            draft = draft[:, :, None]
        if draft.ndim != 4 or tuple(draft.shape[:3]) != (batch, length, self.depth):
            raise Refused(
                f"draft_logits: has shape {tuple(draft.shape)}; give [B, T, K, Vd] with B = "
                f"{batch} and T = {length}, as target_logits has, and K = {self.depth}, as depth "
                "says" + (", or [B, T, Vd] with depth=1" if draft.ndim == 3 else ""),
                "draft_logits",
            )
        ids = _ids(d2t, t2d, size, int(draft.shape[3]))
        own = _wholes(tokens, "tokens", (batch, length))
        scored = own >= 0
        if mask is not None:
            scored &= _flags(mask, "mask", (batch, length))
        if (own[scored] >= size).any():
            b, t = (int(one[0]) for one in np.nonzero(scored & (own >= size)))
            raise Refused(
                f"tokens: entry ({b}, {t}) is {own[b, t]}, and the target has {size} tokens; give "
                "ids below that, or -1 for padding",
                "tokens", b, t,
            )  # fmt: skip
        own = np.where(scored, own, -1)
        prompts = _wholes(prompt_id, "prompt_id", (batch,))
        places = _places(position, scored)
        # How many tokens follow without a gap, the first included.
        run = np.zeros((batch, length + 1), dtype=np.int64)
        for t in reversed(range(length)):
            joined = (
                (places[:, t + 1] == places[:, t] + 1)
                if t + 1 < length
                else np.zeros(batch, dtype=bool)
            )
            run[:, t] = np.where(scored[:, t], 1 + np.where(joined, run[:, t + 1], 0), 0)
        known = np.minimum(run[:, :-1], self.depth)
        _refuse_probabilities(target, own, "target_logits")
        _refuse_probabilities(draft[:, :, 0], own, "draft_logits")
        return Asked(target, draft, own, known, ids, self.law), prompts, places

    def _refuse_rows(self, found: Columns, asked: Asked) -> None:
        scored = asked.tokens >= 0
        bad = scored & np.isnan(found["entropy"])
        if bad.any():
            b, t = (int(one[0]) for one in np.nonzero(bad))
            raise Refused(
                f"target_logits: row ({b}, {t}) has NaN, +inf, or no finite logit; mask=False "
                "leaves a position out",
                "target_logits", b, t,
            )  # fmt: skip
        deep = np.arange(self.depth) < asked.known[..., None]
        bad = deep & np.isnan(found["overlap"])
        if bad.any():
            b, s, j = (int(one[0]) for one in np.nonzero(bad))
            raise Refused(
                f"draft_logits: row ({b}, {s}, {j}) has NaN, +inf, or no finite logit; mask=False "
                "leaves a position out",
                "draft_logits", b, s,
            )  # fmt: skip
        for name in ("logq", "hit", "p_hit", "max_q", "overlap"):
            found[name][~deep] = np.nan
        bad = scored & ~(found["logp"] > -np.inf)
        if bad.any():
            b, t = (int(one[0]) for one in np.nonzero(bad))
            cut = " or top_k, top_p and cut_order" if self.law.cuts else ""
            raise Refused(
                f"tokens: entry ({b}, {t}) is {asked.tokens[b, t]}, which p cannot draw at "
                f"temperature {self.law.temperature:g}{self._cuts()}; give text that the target "
                f"wrote, and the temperature{cut} it was written with, or mask=False where it was "
                "not",
                "tokens", b, t,
            )  # fmt: skip

    def _cuts(self) -> str:
        said = (("top_k", self.law.top_k), ("top_p", self.law.top_p))
        words = "".join(f", {name} {value:g}" for name, value in said if value is not None)
        return f"{words}, cut_order {self.law.cut_order}" if words else ""

    def _sample(self, asked: Asked, prompts: Any, places: Any) -> None:
        """alpha* at some whole starts, and what each level of a tree keeps."""
        prompt = np.broadcast_to(prompts[:, None], places.shape)
        starts = (asked.known == self.depth) & (_mixed(prompt, places) % self.every == 0)
        if starts.any():
            self._samples.append(
                {
                    "prompt": prompt[starts],
                    "position": places[starts],
                    "value": sampled(asked, starts, self.optima, self._children),
                }
            )

    # --- joining ---

    def merge(self, other: Drafter) -> Drafter:
        """Takes in what another one has, of the same settings, and returns itself. Associative and
        commutative: the same bytes and the same report in any order.

        Of several processes: ``torch.distributed.all_gather_object(parts, acc.to_bytes())``, and
        then merge ``sg.Drafter.from_bytes`` of each. Raises :class:`specgap.Refused` for other
        settings, and for a position that both have with another token or other numbers.

        >>> import specgap as sg
        >>> parts = [sg.drafter(depth=2).to_bytes() for rank in range(3)]
        >>> whole = sg.drafter(depth=2)
        >>> for part in parts:
        ...     whole.merge(sg.Drafter.from_bytes(part))
        Drafter(depth=2, positions=0)
        Drafter(depth=2, positions=0)
        Drafter(depth=2, positions=0)
        """
        if not isinstance(other, Drafter):
            raise TypeError(
                f"other: is {type(other).__name__}; give a Drafter, such as "
                "Drafter.from_bytes(data)"
            )
        self._fit(other._settings())
        both = _joined([*self._frames, *other._frames], _OF_POSITION | _OF_DEPTH)
        self._frames = [both] if both else []
        kept = _joined([*self._samples, *other._samples], _OF_SAMPLE)
        self._samples = [kept] if kept else []
        self._sizes = self._sizes or other._sizes
        return self

    def _settings(self) -> dict[str, Any]:
        return {
            "depth": self.depth,
            "temperature": self.law.temperature,
            "top_k": self.law.top_k,
            "top_p": self.law.top_p,
            "cut_order": self.law.cut_order,
            "optima": list(self.optima),
            "trees": list(self.trees),
            "every": self.every,
            "sizes": None if self._sizes is None else list(self._sizes),
        }

    def _fit(self, other: dict[str, Any]) -> None:
        """Raises if settings differ."""
        for name, mine in self._settings().items():
            theirs = other[name]
            if name == "sizes" and (mine is None or theirs is None):
                continue
            if mine != theirs:
                what = "vocabularies (of target and draft)" if name == "sizes" else name
                raise Refused(
                    f"{what}: {theirs} here and {mine} before; sums are of one drafter at one "
                    "setting, so take another sg.drafter for the other",
                    name,
                )

    def _whole(self) -> Frame:
        """All columns, by prompt and position."""
        whole = _joined(self._frames, _OF_POSITION | _OF_DEPTH)
        if not whole:
            whole = {name: np.zeros(0, kind) for name, kind in _OF_POSITION.items()}
            whole |= {name: np.zeros((0, self.depth), kind) for name, kind in _OF_DEPTH.items()}
        self._frames = [whole]
        return whole

    def _sampled(self) -> Frame | None:
        kept = _joined(self._samples, _OF_SAMPLE)
        self._samples = [kept] if kept else []
        return kept or None

    def to_bytes(self) -> bytes:
        """The same bytes for the same columns, however they were added and merged."""
        whole, kept = self._whole(), self._sampled() or {}
        parts = [(f"sample_{name}", kept[name]) for name in _OF_SAMPLE if kept]
        arrays = [*whole.items(), *parts]
        head = self._settings() | {
            "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in arrays]
        }
        text = json.dumps(head, sort_keys=True).encode()
        data = b"".join(np.ascontiguousarray(array).tobytes() for _, array in arrays)
        return _MAGIC + len(text).to_bytes(8, "little") + text + data

    @classmethod
    def from_bytes(cls, data: bytes) -> Drafter:
        """Reads what :meth:`to_bytes` wrote."""
        data = bytes(data)
        broken = Refused(
            "data: is not whole, or not what Drafter.to_bytes wrote; give it unchanged"
        )
        if not data.startswith(_MAGIC):
            raise broken
        at = len(_MAGIC) + 8
        length = int.from_bytes(data[at - 8 : at], "little")
        try:
            head = json.loads(data[at : at + length])
            made = cls(
                head["depth"],
                head["temperature"],
                head["top_k"],
                head["top_p"],
                cut_order=head.get("cut_order", "transformers"),
                optima=head["optima"],
                trees=head.get("trees", ()),
                every=head["every"],
            )
            made._sizes = None if head["sizes"] is None else tuple(head["sizes"])
            at += length
            frames: tuple[Frame, Frame] = {}, {}
            for name, kind, shape in head["arrays"]:
                size = np.dtype(kind).itemsize * int(np.prod(shape))
                array = np.frombuffer(data[at : at + size], kind).reshape(shape)
                at += size
                frames[name.startswith("sample_")][name.removeprefix("sample_")] = array
        except (KeyError, TypeError, ValueError):
            raise broken from None
        needed = set(_OF_POSITION | _OF_DEPTH)
        if (
            at != len(data)
            or set(frames[0]) != needed
            or (set(frames[1]) not in (set(), set(_OF_SAMPLE)))
        ):
            raise broken
        made._frames = [frames[0]] if len(frames[0]["prompt"]) else []
        made._samples = [frames[1]] if frames[1] else []
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return (Drafter.from_bytes, (self.to_bytes(),))

    # --- asking ---

    @property
    def positions(self) -> int:
        """Tokens that are counted."""
        return len(self._whole()["token"])

    def report(self, costs: Sequence[float] = (0.05, 0.1)) -> DrafterReport:
        """The numbers, each with its definition. ``costs`` are those of a drafted token as shares
        of a step of the target, at which the best number of drafts is said.

        Raises :class:`specgap.Refused` where nothing was added, and where p gives neighbours of the
        text's tokens far more than the tokens themselves. ``UserWarning`` where the text does not
        look drawn from p.
        """
        whole = self._whole()
        if not len(whole["token"]):
            raise Refused("report: no token was added; call add with a batch in which some count")
        _refuse_shift(whole, np.ones(len(whole["token"]), dtype=bool))
        report = DrafterReport(self._settings(), whole, self._sampled(), costs)
        if report.warning:
            warnings.warn(report.warning, UserWarning, stacklevel=2)
        return report

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The record without rows, as a log by depth (docs/reference/log-format.md):
        ``target_logprobs`` [N, 1] and ``draft_logprobs`` [N, K, 1] of the text's tokens, their ids,
        ``hit``, ``p_hit``, ``max_q`` and ``overlap`` [N, K], -1 beyond a text's end, ``token``,
        ``coverage``, ``prompt_id`` and ``position``, which begins anew at 0 in each stretch without
        a gap. ln q is -700 where q is 0.

        Raises :class:`specgap.Refused` where a text came in pieces, of whose ends some depths are
        not known.
        """
        whole = self._whole()
        prompt, position, token = (whole[name] for name in ("prompt", "position", "token"))
        begins = np.r_[True, (np.diff(prompt) != 0) | (np.diff(position) != 1)][: len(token)]
        first = np.flatnonzero(begins)
        place = np.arange(len(token)) - np.repeat(first, np.diff(np.r_[first, len(token)]))
        ends = np.r_[first[1:], len(token)]
        left = np.repeat(ends, np.diff(np.r_[first, len(token)])) - np.arange(len(token))
        known = (whole["hit"] >= 0).sum(1)
        lacking = np.flatnonzero(known < np.minimum(left, self.depth))
        if len(lacking):
            row = int(lacking[0])
            raise Refused(
                f"prompt {prompt[row]}: of the round that starts at position {position[row]} "
                f"{known[row]} of {min(int(left[row]), self.depth)} depths are known, since the "
                "text came in pieces; give whole texts, each in one row of a batch",
                "position",
                row,
            )
        there = whole["hit"] >= 0
        ahead = np.minimum(np.arange(len(token))[:, None] + np.arange(self.depth), len(token) - 1)

        def filled(name: str) -> NDArray[np.float64]:
            return np.where(there, whole[name], -1.0)

        return {
            "target_logprobs": whole["logp"][:, None].copy(),
            "target_token_ids": token[:, None].copy(),
            "draft_logprobs": np.where(there, np.maximum(whole["logq"], -700.0), 0.0)[..., None],
            "draft_token_ids": np.where(there, token[ahead], -1)[..., None],
            "token": token.copy(),
            "prompt_id": prompt.copy(),
            "position": place,
            "hit": filled("hit"),
            "p_hit": filled("p_hit"),
            "max_q": filled("max_q"),
            "overlap": filled("overlap"),
            "coverage": whole["coverage"].copy(),
        }

    def metadata(self) -> dict[str, Any]:
        """What the log of :meth:`arrays` says of itself."""
        said: dict[str, Any] = {
            "vocabulary": self._sizes[0] if self._sizes else 1,
            "top": 0,
            "temperature_applied": self.law.temperature,
            # Rows are those that are drawn from: p is cut already.
            "sampling": {"temperature": self.law.temperature},
        }
        cuts = {"top_k": self.law.top_k, "top_p": self.law.top_p}
        if self.law.cuts:
            cut = {name: value for name, value in cuts.items() if value is not None}
            said["target_cut"] = cut | {"cut_order": self.law.cut_order}
        return said

    def log(self, name: str = "drafter") -> Log:
        """The record without rows as a :class:`specgap.Log`, for :func:`specgap.length`."""
        arrays: dict[str, Any] = self.arrays()
        return Log.of_arrays(name=name, metadata=self.metadata(), **arrays)

    def __repr__(self) -> str:
        return f"Drafter(depth={self.depth}, positions={self.positions})"


def _law(temperature: object, top_k: object, top_p: object, cut_order: str) -> Law:
    try:
        heat = float(temperature)  # type: ignore[arg-type]
        held = None if top_p is None else float(top_p)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError("temperature, top_p: give numbers, such as 0.7 and 0.95") from None
    if not 0 < heat < float("inf"):
        raise Refused(
            f"temperature is {heat:g}; give a number above 0, that of the text; coins of text "
            "that was written greedily are hits, and there is no law to estimate"
        )
    if held is not None and not 0 < held <= 1:
        raise Refused(f"top_p is {held:g}; give a number in (0, 1], or leave it out")
    kept = None if top_k is None else count(top_k, "top_k", "tokens that are kept")
    held = None if held == 1 else held
    return Law(heat, kept, held, _native.cut_order(cut_order, heat, kept, held))


def _rows(array: Any, name: str) -> Any:
    """Rows as they are: a tensor, or an array of NumPy."""
    if type(array).__module__.partition(".")[0] == "torch":
        dtype = str(array.dtype).removeprefix("torch.")
        rows = array.detach()
    else:
        rows, dtype = typed(array, name)
        rows = array if dtype == "bfloat16" else rows
    if dtype not in ("float16", "bfloat16", "float32", "float64"):
        raise TypeError(
            f"{name}: has entries of type {dtype}; logits are float16, bfloat16, float32 or float64"
        )
    if rows.ndim == 0 or 0 in rows.shape:
        raise Refused(f"{name}: has shape {tuple(rows.shape)}; give logits with entries", name)
    return rows


def _refuse_mixture(target: Any, draft: Any) -> None:
    kinds = [type(one).__module__.partition(".")[0] == "torch" for one in (target, draft)]
    if kinds[0] != kinds[1]:
        raise TypeError(
            "draft_logits: one of target_logits and draft_logits is a torch tensor and the other "
            "is not; give both of torch, or both of NumPy"
        )
    if kinds[0] and target.device != draft.device:
        raise Refused(
            f"draft_logits: is on {draft.device} and target_logits on {target.device}; move one "
            "to the other's device",
            "draft_logits",
        )


def _shape(tree: str, depth: int) -> Shape:
    """Children of a node at each level, and what verifies them."""
    name, _, rule = tree.partition(":")
    found = widths(name)
    if found is None or len(found) > depth:
        raise Refused(
            f"trees: {tree!r} has {0 if found is None else len(found)} levels, and depth is {depth}; give "
            "shapes of at most that, such as '4x2' or 'prefix-4-2-1'",
            "trees",
        )
    if rule not in ("", "level-4", "traversal", "traversal-4"):
        raise Refused(
            f"trees: {tree!r}: {rule} is no rule of these trees; give level-4, traversal or traversal-4, "
            "such as '4x2:traversal-4'",
            "trees",
        )
    return found, rule or "level-4"


def _wholes(array: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.int64]:
    if isinstance(array, range):
        array = list(array)
    found = np.array(integers(array, name), dtype=np.int64)
    if found.shape != shape:
        raise Refused(
            f"{name}: has shape {found.shape}; give {list(shape)}, as target_logits has it",
            name,
        )
    return found


def _flags(array: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    own, dtype = typed(array, name)
    if dtype != "bool" and own.dtype.kind not in "iu":
        raise TypeError(f"{name}: has entries of type {dtype}; give true and false, or 1 and 0")
    if own.shape != shape:
        raise Refused(
            f"{name}: has shape {own.shape}; give {list(shape)}, as target_logits has it", name
        )
    flags: NDArray[np.bool_] = own != 0
    return flags


def _places(position: Any, scored: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The place of each token in its text, [B, T]."""
    batch, length = scored.shape
    steps = np.arange(length)
    if position is None:
        places: NDArray[np.int64] = steps - scored.argmax(1)[:, None]
        return places
    given = np.array(integers(position, "position"), dtype=np.int64)
    if given.shape == (batch,):
        places = given[:, None] + steps - scored.argmax(1)[:, None]
    elif given.shape == (batch, length):
        places = given
    else:
        raise Refused(
            f"position: has shape {given.shape}; give the place of each token, {[batch, length]}, "
            f"or of each row's first one that is scored, {[batch]}",
            "position",
        )
    if (places[scored] < 0).any():
        raise Refused(
            "position: is below 0 where a token counts; places are counted from 0", "position"
        )
    return places


def _ids(d2t: Any, t2d: Any, size: int, drafted: int) -> NDArray[np.int64] | None:
    """The target's ids of the draft's tokens; None if they are the same."""
    found = []
    if t2d is not None:
        flags = _flags(t2d, "t2d", (size,))
        found.append(np.flatnonzero(flags).astype(np.int64))
        if len(found[0]) != drafted:
            raise Refused(
                f"t2d: marks {len(found[0])} tokens, and draft_logits has Vd = {drafted}; give "
                "true for each token that the draft has",
                "t2d",
            )
    if d2t is not None:
        ids = np.arange(drafted) + _wholes(d2t, "d2t", (drafted,))
        outside = np.flatnonzero((ids < 0) | (ids >= size))
        if len(outside) or len(np.unique(ids)) != drafted:
            at = int(outside[0]) if len(outside) else _repeated(ids)
            why = f"outside the target's {size}" if len(outside) else "which another one is too"
            raise Refused(
                f"d2t: entry {at} makes the draft's token {at} the target's {ids[at]}, {why}; "
                "entries are offsets, so of a list of the target's ids subtract arange(Vd)",
                "d2t",
                at,
            )
        found.append(ids)
    if len(found) == 2 and (np.sort(found[1]) != found[0]).any():
        raise Refused("t2d: marks other tokens than d2t names; give those of one checkpoint", "t2d")
    if not found:
        if size != drafted:
            raise Refused(
                f"draft_logits: has Vd = {drafted} and target_logits V = {size}; give d2t or t2d "
                "of a draft with a vocabulary of its own, or cut the padding of the longer one, "
                f"such as target_logits[..., :{min(size, drafted)}]",
                "draft_logits",
            )
        return None
    return found[-1]


def _repeated(ids: NDArray[np.int64]) -> int:
    _, first = np.unique(ids, return_index=True)
    return int(np.setdiff1d(np.arange(len(ids)), first)[0])


def _refuse_probabilities(rows: Any, tokens: NDArray[np.int64], name: str) -> None:
    """Raises if the first rows that count are probabilities."""
    b, t = (one[:4] for one in np.nonzero(tokens >= 0))
    if len(b) < 2 or rows.shape[-1] < 2:
        return
    few = [rows[int(one), int(two)] for one, two in zip(b, t)]
    looks = []
    for row in few:
        row = row.float().cpu().numpy() if hasattr(row, "detach") else row.astype(np.float64)
        equal = bool((row == row[0]).all())
        looks.append(not equal and bool((row >= 0).all()) and abs(float(row.sum()) - 1) <= 1e-2)
    if all(looks):
        raise Refused(
            f"{name}: row ({b[0]}, {t[0]}): entries are in [0, 1] and sum to 1: these are "
            "probabilities, and "
            "no logits; take natural logarithms",
            name,
        )


def _refuse_shift(found: Any, scored: NDArray[np.bool_]) -> None:
    """Raises if p gives neighbours of the text's tokens far more than the tokens themselves."""
    own = found["logp"][scored]
    cures = {
        "logp_after": (
            "after it",
            "a causal model's logits[:, t] are about the token at t + 1: give target_logits = "
            "logits[:, :-1] and "
            "tokens = ids[:, 1:]",
        ),
        "logp_before": (
            "before it",
            "give target_logits and tokens such that row t is about token t; they are shifted "
            "once too often",
        ),
    }
    for name, (where, cure) in cures.items():
        more = _gained(own, found[name][scored])
        if more is not None:
            raise Refused(
                f"tokens: are off by one against target_logits: row t gives the token {where} "
                f"{more[0]:.1f} nats "
                f"more than token t, {min(more[1], 999):.0f} standard errors; {cure}",
                "tokens",
            )


def _elsewhere(found: Columns, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """min(1, q(y)/p(y)) of the first draft's row and a token y of another position, p of that one:
    its mean is the overlap of q with another position's p. nan where there is none."""
    place = far(tokens)
    logp = np.take_along_axis(found["logp"], np.maximum(place, 0), 1)
    coin = np.exp(np.minimum(found["logq_far"][..., 0] - logp, 0.0))
    return np.where(place >= 0, coin, np.nan)


def _warn_of_shift(found: Columns) -> bool:
    for j in range(found["logq"].shape[-1]):
        own = found["logq"][..., j].ravel()
        for name, where in (("logq_after", "after it"), ("logq_before", "before it")):
            more = _gained(own, found[name][..., j].ravel())
            if more is not None:
                warnings.warn(
                    f"draft_logits: depth {j + 1} looks off by one: row (s, {j}) gives the token "
                    f"{where} {more[0]:.1f} nats more than token s + {j}, which it is compared "
                    "with; an untrained head may do so, a trained one is shifted",
                    UserWarning,
                    stacklevel=3,
                )
                return True
    return False


def _gained(own: Any, other: Any) -> tuple[float, float] | None:
    """How much likelier others are, in nats and standard errors, where it is beyond chance."""
    # Where neither is outside a vocabulary; nan is neither.
    there = (own > -np.inf) & (other > -np.inf)
    if there.sum() < _ENOUGH:
        return None
    more = other[there] - own[there]
    mean, error = float(more.mean()), float(more.std() / np.sqrt(len(more)))
    if mean > _NATS and mean > _ERRORS * error:
        return mean, mean / max(error, 1e-9)
    return None


def _mixed(prompt: NDArray[np.int64], position: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A number of each (prompt, position) that looks drawn evenly: splitmix64."""
    with np.errstate(over="ignore"):
        x = prompt.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = x + (position.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
        return x ^ (x >> np.uint64(31))


def _joined(frames: Sequence[Frame], kinds: dict[str, str]) -> Frame:
    """Frames as one, by prompt and position; a position that several have is there once."""
    frames = [one for one in frames if len(one["prompt"])]
    if not frames:
        return {}
    whole = {
        name: np.concatenate([one[name] for one in frames]).astype(kind, copy=False)
        for name, kind in kinds.items()
    }
    order = np.lexsort((whole["position"], whole["prompt"]))
    if (order != np.arange(len(order))).any():
        whole = {name: column[order] for name, column in whole.items()}
    same = (np.diff(whole["prompt"]) == 0) & (np.diff(whole["position"]) == 0)
    if same.any():
        whole = _once(whole, same)
    return whole


def _once(whole: Frame, same: NDArray[np.bool_]) -> Frame:
    """Of lines of one position the one with most depths, and of these the least by its bytes."""
    number = len(same) + 1
    keep = np.ones(number, dtype=bool)
    values = [name for name in whole if name not in ("prompt", "position")]

    def key(row: int) -> tuple[int, bytes]:
        known = int((whole["hit"][row] >= 0).sum()) if "hit" in whole else 0
        return -known, b"".join(whole[name][row].tobytes() for name in values)

    for row in np.flatnonzero(same):
        # The one before is the best so far of its group.
        before, after = int(row), int(row) + 1
        _refuse_other(whole, before, after)
        if key(after) > key(before):
            for name in values:
                pair = whole[name][[after, before]]
                whole[name] = _writable(whole[name])
                whole[name][[before, after]] = pair
        keep[before] = False
    return {name: column[keep] for name, column in whole.items()}


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.flags.writeable else array.copy()


def _refuse_other(whole: Frame, one: int, two: int) -> None:
    where = f"prompt {whole['prompt'][one]}, position {whole['position'][one]}"
    if "token" in whole and whole["token"][one] != whole["token"][two]:
        raise Refused(
            f"prompt_id: {where} was added with token {whole['token'][one]} and with "
            f"{whole['token'][two]}; give each text a prompt_id of its own",
            "prompt_id",
        )
    for name in ("logp", "logq"):
        if name in whole:
            apart = np.abs(np.exp(whole[name][one]) - np.exp(whole[name][two]))
            if (np.nan_to_num(apart) > _APART).any():
                raise Refused(
                    f"prompt_id: {where} was added twice with other numbers ({name}); sums are of "
                    "one target and one drafter, so take another sg.drafter for another "
                    "checkpoint",
                    "prompt_id",
                )
