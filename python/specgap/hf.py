"""Speculative decoding in Hugging Face transformers, by strata and level or any law and rule of the
tables, for all that ``generate`` samples.

    from specgap.hf import speculative

    decode = speculative(draft, tree="4", law="stratified", rule="level-4", seed=0, record="log")
    out = target.generate(**inputs, custom_generate=decode, max_new_tokens=256)
    decode.tokens_per_call, decode.stats

:func:`generate` is the same in one call, with ``streamer=``, which ``generate(custom_generate=..)``
drops without a word; or say ``stream=`` there.

What follows is the law of plain ``generate`` with the same options: processors and warpers act on the
rows of target and draft at every node, with the node's own path for a prefix; nothing behind an end of
text or any other stop is returned; without sampling tokens are those of the argmax (rows of a pass over
several tokens are rounded otherwise, so that near ties may fall the other way, above all in bfloat16).

Limits. Rows of a batch are decoded one after the other. Caches are plain dynamic ones. Refused, each
with its cure: beams, contrastive search, encoder-decoders, recurrent and linear attention, attention
other than ``sdpa`` and ``eager``, static caches, processors with a state or that ask for a row's number.
Keys beyond a sliding window are kept, and masked. At its first text a model's pass over a tree is compared with plain
passes.

A tree pays where a pass over its tokens takes hardly longer than one over a single token. On CPUs it
does for few tokens, and with ``pack=True`` alone: ``nn.Linear`` lays its weights out anew for every pass
over several tokens.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import json
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "specgap.hf needs PyTorch and transformers: pip install torch transformers", name="torch"
    ) from None

from . import _native
from ._errors import Refused
from ._logs import LogWriter, PathLike
from ._shape import Chooser, Shape, Times
from ._shape import price as _price
from ._shape import widths as _widths
from .record._rounds import PROCESSED
from .rules import STRATA_LEVELS, TRAVERSAL, TRAVERSAL_4, shared_gumbel

__all__ = ["Speculative", "generate", "ngram", "skip", "speculative", "timings"]

Rows = Callable[[list[int], list[int], list[int]], Any]
#: A rule of one's own.
Rule = Callable[[NDArray[Any], NDArray[Any], list[int], list[int], np.random.Generator], tuple[Sequence[int], int]]

#: The rule by which draft and target draw from one noise a place.
_NOISE = "shared-gumbel"
#: Of each rule: whether it begins at the leaves, and its levels by depth.
_RULES: dict[str, tuple[bool, tuple[tuple[float, ...], ...]]] = {
    "token": (False, TRAVERSAL),
    "block": (True, TRAVERSAL),
    "rrs": (False, TRAVERSAL),
    "level-4": (False, (STRATA_LEVELS,)),
    "traversal": (True, TRAVERSAL),
    "traversal-4": (True, TRAVERSAL_4),
    _NOISE: (True, TRAVERSAL),
}
_LAWS = ("with-replacement", "without-replacement", "stratified", "stratified-independent", "top")
_ATTENTION = ("sdpa", "eager")
#: Processors that keep a state, or take the number of a row in the batch.
_NOT_ON_TREES = (
    "UnbatchedClassifierFreeGuidanceLogitsProcessor",
    "ClassifierFreeGuidanceLogitsProcessor",
    "EncoderNoRepeatNGramLogitsProcessor",
    "EncoderRepetitionPenaltyLogitsProcessor",
    "SynthIDTextWatermarkLogitsProcessor",
    "WhisperTimeStampLogitsProcessor",
)
_checked: weakref.WeakSet[Any] = weakref.WeakSet()


class _Node(NamedTuple):
    """A drafted node; its row is its number + 1, and row 0 is behind the text."""

    token: int
    parent: int
    depth: int
    #: The row of the sibling that drafted this token first; else its own.
    first: int


class _Cached:
    """A model with the cache of one text. A tree's tokens stand behind the text's until
    :meth:`keep` leaves those of one path."""

    def __init__(self, model: Any, kept: Any = None) -> None:
        from transformers import DynamicCache

        #: ``kept``: the tokens of a head that has not all.
        self.model, self.kept = model, kept
        self._empty = DynamicCache
        # The name changed; wrappers take whatever comes, which is the new one.
        names = inspect.signature(model.forward).parameters
        self._cache_name = "past_key_values" if "past_key_values" in names else "cache"
        self._adds_mask = getattr(model.config, "_attn_implementation", None) == "eager"
        config = model.config.get_text_config()
        #: Of layers with a window: its length; and whether others have none.
        self._window, kinds = _window(config)
        self._is_mixed = "full_attention" in kinds and self._window is not None
        self.begin([])

    def begin(self, ids: list[int]) -> None:
        """Another text, which begins so."""
        self.cache = self._empty()
        self.length = self.extra = 0
        self.above: dict[int, list[int]] = {0: []}
        #: Places of this round's nodes.
        self._depths: list[int] = []
        if ids:
            self.feed(ids, (), ())

    def _masked(self, sees: Any) -> Any:
        mask = sees[None, None].to(self.model.device)
        if not self._adds_mask:
            return mask
        low = torch.finfo(self.model.dtype).min
        return torch.zeros(mask.shape, dtype=self.model.dtype, device=mask.device).masked_fill(~mask, low)

    def _pass(self, tokens: list[int], sees: Any, positions: list[int], rows: int) -> Any:
        device = self.model.device
        mask: Any = None
        if sees is not None:
            near = sees
            if self._window is not None:
                # Places of what is known and new: tokens of the text, then nodes by their depth.
                at = torch.tensor(positions)[:, None]
                near = sees & (torch.tensor(self._places)[None] > at - self._window)
            mask = self._masked(near)
            if self._is_mixed:
                mask = {"full_attention": self._masked(sees), "sliding_attention": mask}
        found = self.model(
            input_ids=torch.tensor([tokens], device=device),
            attention_mask=mask,
            position_ids=torch.tensor([positions], device=device),
            use_cache=True,
            logits_to_keep=rows,
            **{self._cache_name: self.cache},
        )
        return found.logits[0, -rows:].float()

    def feed(
        self, pending: Sequence[int], rows: Sequence[int], nodes: Sequence[_Node], every: bool = False
    ) -> Any:
        """Logits behind the last of the text's ``pending`` tokens (behind ``every`` one), and behind
        nodes of these rows."""
        behind = len(pending) if every else min(len(pending), 1)
        new, known = len(pending) + len(nodes), self.length + self.extra
        positions = list(range(self.length, self.length + len(pending)))
        sees = None
        if nodes:
            sees = torch.zeros(new, known + new, dtype=torch.bool)
            for at in range(len(pending)):
                sees[at, : self.length + at + 1] = True
            text = self.length + len(pending)
            for at, (row, node) in enumerate(zip(rows, nodes), len(pending)):
                path = [*self.above[node.parent], known + at]
                self.above[row] = path
                sees[at, :text] = True
                sees[at, path] = True
                positions.append(text + len(path) - 1)
            self._places = [*range(self.length), *self._depths, *positions]
            self._depths += positions[len(pending) :]
        logits = self._pass([*pending, *(node.token for node in nodes)], sees, positions, behind + len(nodes))
        self.length += len(pending)
        self.extra += len(nodes)
        return logits

    def keep(self, path: Sequence[int]) -> int:
        """Keeps the tokens of a path's rows, as far as they were fed: how many."""
        offsets = [self.above[row][-1] for row in path if row in self.above]
        start, end = self.length, self.length + len(offsets)
        is_scattered = offsets != list(range(start, end))
        for layer in self.cache.layers:
            if getattr(layer, "keys", None) is None or not layer.keys.numel():
                continue
            for name in ("keys", "values"):
                held = getattr(layer, name)
                if is_scattered:
                    held[:, :, start:end] = held[:, :, offsets]
                setattr(layer, name, held[:, :, :end])
        self.length, self.extra, self.above, self._depths = end, 0, {0: []}, []
        return len(offsets)


class _Called:
    """The same of a function ``rows(ids, nodes, parents)``."""

    def __init__(self, function: Rows, device: Any) -> None:
        self.function, self.device = function, device
        self.begin([])

    def begin(self, ids: list[int]) -> None:
        self.ids = list(ids)
        self._forget()

    def _forget(self) -> None:
        self.nodes: list[int] = []
        self.parents: list[int] = []
        self.rows = {0: 0}

    def feed(
        self, pending: Sequence[int], rows: Sequence[int], nodes: Sequence[_Node], every: bool = False
    ) -> Any:
        before = len(self.ids)
        self.ids += pending
        for row, node in zip(rows, nodes):
            self.nodes.append(node.token)
            self.parents.append(self.rows[node.parent])
            self.rows[row] = len(self.nodes)
        found = self._asked(self.ids)
        if nodes:
            return found[len(found) - len(nodes) :]
        if not every:
            return found[:1]
        self.rows = {0: 0}
        return torch.cat([self._asked(self.ids[:end])[:1] for end in range(before + 1, len(self.ids) + 1)])

    def _asked(self, ids: list[int]) -> Any:
        found = self.function(list(ids), list(self.nodes), list(self.parents))
        found = torch.as_tensor(found, device=self.device).float()
        if found.dim() != 2 or len(found) != 1 + len(self.nodes):
            raise Refused(
                f"draft: its rows are {tuple(found.shape)} for {len(self.nodes)} nodes; give logits "
                "[1 + nodes, V], the first behind the text"
            )
        return found

    def keep(self, path: Sequence[int]) -> int:
        self._forget()
        return 0


def _of_row(processors: Any, at: int) -> list[Any]:
    """Processors of a batch as those of one of its rows, whose nodes are then the batch."""
    made = []
    for one in processors or ():
        one = copy.copy(one)
        ignored: Any = getattr(one, "prompt_ignore_length", None)
        if torch.is_tensor(ignored):
            one.prompt_ignore_length = int(ignored[at])
        allowed = getattr(one, "_prefix_allowed_tokens_fn", None)
        if allowed is not None:
            one._prefix_allowed_tokens_fn = lambda _, ids, allowed=allowed: allowed(at, ids)
        made.append(one)
    return made


class _Log:
    """Positions of texts in a log; each waits for the draft's row."""

    def __init__(self, path: PathLike, temperature: float) -> None:
        said = {
            "tool": "specgap.hf",
            "temperature_applied": temperature,
            "sampling": {"temperature": temperature},
            "rows_from": PROCESSED,
        }
        self.temperature = temperature
        self.writer = LogWriter(path, dtype="float32", metadata=said)
        #: With the length of the text before each.
        self.open: list[tuple[int, dict[str, Any]]] = []

    def write(self) -> None:
        """What has its row."""
        while self.open and self.open[0][1]["draft_logits"] is not None:
            one = self.open.pop(0)[1]
            rows = {name: one.pop(name).cpu().numpy() for name in ("target_logits", "draft_logits")}
            self.writer.append(**rows, **one)


def _size(model: Any) -> int:
    """The length of a row."""
    head = model.get_output_embeddings()
    return int(model.config.get_text_config().vocab_size if head is None else head.weight.shape[0])


def _fitted(logits: Any, size: int, kept: Any) -> Any:
    """Logits of a draft whose vocabulary is padded otherwise, or has ``kept`` tokens alone."""
    if kept is not None:
        whole = logits.new_full((len(logits), size), -torch.inf)
        whole[:, kept] = logits
        return whole
    if logits.shape[1] < size:
        return torch.nn.functional.pad(logits, (0, size - logits.shape[1]), value=-torch.inf)
    return logits[:, :size]


class Speculative:
    """What :func:`speculative` returns. Counts go on over all texts that it decodes."""

    def __init__(
        self,
        draft: Any,
        widths: tuple[int, ...] | None,
        law: str,
        rule: str | Rule,
        price: tuple[dict[str, Any], _native.Priced] | None,
        *,
        seed: int | None,
        record: PathLike | None,
        pack: bool,
        streamer: Any,
        kept: Any,
    ) -> None:
        self._kept = kept
        self.draft, self.law, self.rule = draft, law, rule
        #: Of the next round; a chooser changes it between rounds.
        self.widths: tuple[int, ...] = () if widths is None else widths
        #: What shapes trees by the draft's rows, where there is one; ``price["price"]`` may be set anew.
        self.price: dict[str, Any] = price[0] if price else {}
        self._priced = price[1] if price else None
        self._is_auto, self._chooser = widths is None, cast(Chooser | None, None)
        self._traversal, self._levels = _RULES[rule] if isinstance(rule, str) else (True, TRAVERSAL)
        self._seed, self._record, self._pack, self._streamer = seed, record, pack, streamer
        self._log: _Log | None = None
        self._packed: dict[int, Any] = {}
        self.texts = self.tokens = self.rounds = 0
        self._depths: list[int] = []
        #: Rounds of each tree.
        self._trees: dict[str, int] = {}
        self._seconds = dict.fromkeys(("prefill", "draft", "target", "rule", "rest"), 0.0)

    def _needed(self, nodes: int) -> int:
        """How many random numbers a round takes."""
        if self._traversal:
            return nodes + 1
        if self._priced is not None:
            return (len(self._levels[0]) + 1) * nodes + 1
        return len(self._levels[0]) * sum(self.widths) + len(self.widths) + 1

    @property
    def tokens_per_call(self) -> float:
        """Tokens a pass of the target."""
        return self.tokens / self.rounds if self.rounds else float("nan")

    @property
    def stats(self) -> dict[str, Any]:
        """Texts, tokens, rounds, tokens a call, the share of rounds that kept a token at each depth,
        rounds by tree (at a price by its draft tokens), seconds by part."""
        at_least = np.cumsum(self._depths[::-1])[::-1][1:]
        return {
            "texts": self.texts,
            "tokens": self.tokens,
            "rounds": self.rounds,
            "tokens_per_call": self.tokens_per_call,
            "accepted_by_depth": [float(one) / max(self.rounds, 1) for one in at_least],
            "trees": dict(self._trees),
            "seconds": dict(self._seconds),
        }

    def close(self) -> None:
        """Ends the log. All that is decoded is in it at the end of each call."""
        if self._log is not None:
            self._log.writer.close()

    def __call__(
        self,
        model: Any,
        input_ids: Any,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: Any,
        stream: Any = None,
        **model_kwargs: Any,
    ) -> Any:
        """As ``generate`` calls it."""
        _refuse(model, generation_config, logits_processor, model_kwargs)
        streamer = stream if stream is not None else self._streamer
        if streamer is not None and len(input_ids) > 1:
            raise Refused("stream: takes one text at a time; give one prompt and no num_return_sequences")
        mask = model_kwargs.get("attention_mask")
        with torch.no_grad(), self._ready(model, input_ids[0, -3:].tolist()) as (target, source):
            _refuse_states(_of_row(logits_processor, 0), input_ids[:1], _size(model))
            if self._is_auto and self._chooser is None:
                self._chooser = Chooser(_times(target, source), self.law, str(self.rule))
            if self._record is not None:
                self._begin_log(generation_config)
            texts = [
                _Text(self, target, source, ids, None if mask is None else mask[at], _of_row(logits_processor, at),
                      stopping_criteria, generation_config, streamer)
                for at, ids in enumerate(input_ids)
            ]
            for text in texts:
                text.decode()
            if self._log is not None:
                self._log.writer.commit()
            if streamer is not None:
                streamer.end()
        return _output(texts, input_ids, generation_config)

    @contextlib.contextmanager
    def _ready(self, model: Any, ids: list[int]) -> Iterator[tuple[_Cached, Any]]:
        """Target and draft, packed where asked, compared with plain passes on these tokens."""
        is_model = isinstance(self.draft, torch.nn.Module)
        with contextlib.ExitStack() as stack:
            if self._pack:
                for one in (model, self.draft) if is_model else (model,):
                    stack.enter_context(self._packing(one))
            target = _Cached(model)
            source: Any = _Cached(self.draft, self._kept) if is_model else _Called(self.draft, model.device)
            for one in (target, source) if is_model else (target,):
                _compare(one, ids)
            yield target, source

    def _begin_log(self, config: Any) -> None:
        temperature = 1.0 if config.temperature is None else float(config.temperature)
        if not config.do_sample:
            raise Refused("record: without sampling there is no law to audit; say do_sample=True")
        if self._log is None:
            assert self._record is not None
            self._log = _Log(self._record, temperature)
        if self._log.temperature != temperature:
            raise Refused(
                f"record: the log is of temperature {self._log.temperature}; record {temperature} elsewhere"
            )

    @contextlib.contextmanager
    def _packing(self, model: Any) -> Iterator[None]:
        """Weights laid out for passes over several tokens, as ``torch.compile`` lays them out."""
        layers = [one for one in model.modules() if type(one) is torch.nn.Linear]
        if any(one.weight.device.type != "cpu" for one in layers) or not torch.backends.mkldnn.is_available():
            raise Refused("pack: is for models on a CPU with oneDNN; leave it out")
        try:
            for one in layers:
                held = self._packed.get(id(one.weight))
                if held is None:
                    # 8 is the number of rows to plan for; 1 gains nothing.
                    packed = torch.ops.mkldnn._reorder_linear_weight(one.weight.detach(), 8)
                    held = self._packed[id(one.weight)] = (one.weight, packed)
                one.forward = _linear(held[1], one.bias)
            yield
        finally:
            for one in layers:
                one.__dict__.pop("forward", None)


def _linear(weight: Any, bias: Any) -> Callable[[Any], Any]:
    def forward(x: Any) -> Any:
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")

    return forward


class _Text:
    """One text, from its prompt to its stop."""

    def __init__(
        self,
        decode: Speculative,
        target: _Cached,
        source: Any,
        ids: Any,
        mask: Any,
        processors: Any,
        criteria: Any,
        config: Any,
        streamer: Any,
    ) -> None:
        self.decoder, self.target, self.source = decode, target, source
        #: With its padding, which processors and criteria see.
        self.whole = ids
        self.prompt = ids.tolist() if mask is None else ids[mask.bool()].tolist()
        self.processors, self.criteria, self.streamer = processors, criteria, streamer
        self.sample = bool(config.do_sample)
        self.law = decode.law if self.sample else "top"
        self.raw = bool(config.output_logits)
        self.held = bool(config.output_scores) or self.raw
        self.scores: list[Any] = []
        self.logits: list[Any] = []
        self.most = criteria.max_length if criteria.max_length is not None else 1 << 62
        self.size = _size(target.model)
        if decode._seed is None:
            self.seed = int(torch.randint(1 << 62, ()))
        else:
            mixed = np.random.SeedSequence([decode._seed, decode.texts]).generate_state(1, np.uint64)
            self.seed = int(mixed[0]) >> 2
        self.number = decode.texts
        decode.texts += 1
        self.coins = np.random.default_rng(self.seed)
        self.count = 0
        # Written anew in every round.
        self.q = np.zeros((1, self.size), dtype=np.float32)

    def _noise(self, depth: int) -> NDArray[np.float64]:
        """Of the place so many tokens behind the text, for all branches and both models."""
        random = np.random.default_rng([self.seed, len(self.whole) + depth])
        return random.exponential(size=self.size)

    def _own(self, p: NDArray[np.float32], nodes: list[_Node]) -> tuple[list[int], int]:
        """The target's own tokens by the noise of their places, as far as they are nodes."""
        path: list[int] = []
        row = 0
        while True:
            token = shared_gumbel(p[row], p[row], self._noise(len(path)), 1)[1]
            below = [at for at, node in enumerate(nodes) if node.parent == row and node.token == token]
            if not below:
                return path, token
            path.append(below[0])
            row = below[0] + 1

    @contextlib.contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.decoder._seconds[part] += time.perf_counter() - begin

    def decode(self) -> None:
        if not self.prompt:
            raise Refused("inputs: a prompt has no token; give at least one, such as the beginning of text")
        with self._timed("prefill"):
            self.target.begin(self.prompt[:-1])
            self.source.begin(self.prompt[:-1])
        self.pending = [self.prompt[-1]]
        is_open = True
        while is_open:
            is_open = self.round()
        log = self.decoder._log
        if log is not None and log.open:
            self._fill(log, self.source.feed(self.pending, (), (), every=True))

    def _note(self, log: _Log, at: int, path: int, nodes: list[_Node], row: int, **rows: Any) -> None:
        """Notes the position of the last token; ``at`` in its round, which kept ``path`` drafts."""
        decoder, place = self.decoder, {}
        if decoder.rule in ("token", "block"):
            drafts = [node.token for node in nodes] if at == 0 else []
            place = {"drafts": drafts, "accepted": -1 if at else path, "round": at}
        elif decoder.rule == "rrs" and decoder.law == "with-replacement":
            drafts = [node.token for node in nodes if node.parent == row]
            place = {"drafts": drafts, "accepted": -1 if at else path, "round": at}
        token = int(self.whole[-1])
        numbers = {"prompt_id": self.number, "position": self.count, "seed": self.seed}
        log.open.append((len(self.whole) - 1, {**rows, **numbers, "token": token, "output": token, **place}))
        log.write()

    def _fill(self, log: _Log, logits: Any) -> None:
        """Gives positions that wait for it the draft's row, one behind each of ``pending``."""
        known = len(self.whole) - len(self.pending)
        for length, one in log.open:
            row = logits[length - 1 - known, None]
            scores = self.processed([[]], _fitted(row, self.size, self.decoder._kept), self.whole[:length])
            one["draft_logits"] = scores[0]
        log.write()

    def processed(self, paths: list[list[int]], logits: Any, whole: Any = None) -> Any:
        """Scores at nodes, each behind the text and its own path; depth by depth."""
        whole = self.whole if whole is None else whole
        if not self.processors:
            return logits
        scores = torch.empty_like(logits)
        for depth in sorted({len(path) for path in paths}):
            at = [row for row, path in enumerate(paths) if len(path) == depth]
            ids = whole.expand(len(at), -1)
            if depth:
                more = torch.tensor([paths[row] for row in at], device=ids.device)
                ids = torch.cat([ids, more], dim=1)
            some = logits[at]
            for one in self.processors:
                some = one(ids, some)
            scores[at] = some
        return scores

    def drafted(self) -> tuple[list[_Node], dict[int, list[int]], dict[int, Any]]:
        """Nodes, depth by depth; the path to each row; the draft's scores at rows with children."""
        decoder, log, priced = self.decoder, self.decoder._log, self.decoder._priced
        nodes: list[_Node] = []
        chances = [1.0]
        paths: dict[int, list[int]] = {0: []}
        scores: dict[int, Any] = {}
        open_rows = [0]
        widths = decoder.widths
        if priced is not None:
            levels, most = priced.limits
            widths = (most,) * levels
        depths = min(len(widths), self.most - len(self.whole) - 1)
        for depth, width in enumerate(widths[:depths]):
            if depth:
                logits = self.source.feed((), open_rows, [nodes[row - 1] for row in open_rows])
            else:
                logits = self.source.feed(self.pending, (), (), every=log is not None)
                if log is not None:
                    self._fill(log, logits)
                self.pending = []
                logits = logits[-1:]
            here = self.processed([paths[row] for row in open_rows], _fitted(logits, self.size, decoder._kept))
            is_law = here.max(dim=1).values > -torch.inf
            has_law = is_law.tolist()
            rows = torch.softmax(torch.where(is_law[:, None], here, 0.0), dim=1).cpu().numpy()
            drawn: Sequence[tuple[Sequence[int], Sequence[float]]]
            if decoder.rule == _NOISE and self.sample:
                drawn = [(shared_gumbel(q, q, self._noise(depth), width)[0], (1.0,) * width) for q in rows]
            elif priced is None:
                drafts = _native.draft_rows(rows, width, self.law, self.coins.random((len(rows), width)))
                drawn = [([token for token in one if token >= 0], (1.0,) * width) for one in drafts.tolist()]
            else:
                own, coins = [chances[row] for row in open_rows], self.coins.random((len(rows), width))
                drawn = priced.draft_rows(rows, self.law, decoder.price["price"], depth, own, coins)
            self._hold(1 + len(nodes))
            following: list[int] = []
            for at, (row, (tokens, kept)) in enumerate(zip(open_rows, drawn)):
                if not has_law[at]:
                    continue
                self.q[row] = rows[at]
                scores[row] = here[at]
                seen: dict[int, int] = {}
                for token, chance in zip(tokens, kept):
                    mine = len(nodes) + 1
                    first = seen.setdefault(token, mine)
                    nodes.append(_Node(token, row, depth + 1, first))
                    paths[mine] = [*paths[row], token]
                    chances.append(chance)
                    # What is worth no more than the price has no child, so that its row is not asked for.
                    if first == mine and (priced is None or chance > decoder.price["price"]):
                        following.append(mine)
            open_rows = following
            if not open_rows:
                break
        self._hold(1 + len(nodes))
        return nodes, paths, scores

    def _hold(self, rows: int) -> None:
        """Makes room for so many rows of the draft."""
        if len(self.q) < rows:
            more = np.zeros((rows - len(self.q), self.size), dtype=np.float32)
            self.q = np.concatenate([self.q, more])

    def round(self) -> bool:
        """A tree, a pass, a path. False where the text ends."""
        decoder, begin = self.decoder, time.perf_counter()
        chooser = decoder._chooser
        if chooser is not None:
            decoder.widths = chooser.begin()
        spent = decoder._seconds
        before = sum(spent.values())
        with self._timed("draft"):
            nodes, paths, drafted = self.drafted()
        fed = [row for row, node in enumerate(nodes, 1) if node.first == row]
        with self._timed("target"):
            logits = self.target.feed([int(self.whole[-1])], fed, [nodes[row - 1] for row in fed])
            scores = self.processed([[], *(paths[row] for row in fed)], logits)
            if self.sample:
                p = torch.softmax(scores, dim=1)
            else:
                p = torch.zeros_like(scores).scatter_(1, scores.argmax(dim=1, keepdim=True), 1.0)
            place = {row: at for at, row in enumerate([0, *fed])}
            place.update({row: place[node.first] for row, node in enumerate(nodes, 1)})
            if len(fed) < len(nodes):
                p = p[[place[row] for row in range(len(nodes) + 1)]]
            p_rows: NDArray[np.float32] = p.cpu().numpy()
        q_rows = self.q[: len(p_rows)]
        tokens, parents = [node.token for node in nodes], [node.parent for node in nodes]
        with self._timed("rule"):
            if callable(decoder.rule):
                path, token = _kept(decoder.rule(p_rows, q_rows, tokens, parents, self.coins), nodes, p_rows[0].size)
            elif decoder.rule == _NOISE:
                path, token = self._own(p_rows, nodes)
            else:
                coins = self.coins.random(decoder._needed(len(nodes)))
                path, token = _native.verify_tree(
                    p_rows, q_rows, tokens, parents, self.law, decoder._traversal, decoder._levels, coins
                )
        if chooser is not None and 0 in drafted:
            chooser.note(p_rows[0], self.q[0])
        rows = [nodes[at].first for at in path]
        self.target.keep(rows)
        known = self.source.keep(rows)
        out = [*(nodes[at].token for at in path), token]
        is_open, emitted = True, 0
        for at, (row, token) in enumerate(zip([0, *rows], out)):
            self.whole = torch.cat([self.whole, self.whole.new_tensor([token])])
            if self.held:
                self.scores.append(scores[place[row]])
                self.logits.append(logits[place[row]])
            if decoder._log is not None:
                both = {"target_logits": scores[place[row]], "draft_logits": drafted.get(row)}
                self._note(decoder._log, at, len(path), nodes, row, **both)
            if self.streamer is not None:
                self.streamer.put(self.whole[-1:].cpu())
            self.count += 1
            emitted += 1
            if bool(self.criteria(self.whole[None], None)[0]):
                is_open = False
                break
        self.pending += out[known:emitted]
        decoder.tokens += emitted
        decoder.rounds += 1
        decoder._depths += [0] * (len(path) + 1 - len(decoder._depths))
        decoder._depths[len(path)] += 1
        tree = "-".join(map(str, decoder.widths)) or "none"
        if decoder._priced is not None:
            tree = f"{len(nodes)} nodes"
        decoder._trees[tree] = decoder._trees.get(tree, 0) + 1
        spent["rest"] += time.perf_counter() - begin - (sum(spent.values()) - before)
        return is_open


def _kept(said: Any, nodes: list[_Node], size: int) -> tuple[list[int], int]:
    """What a rule of one's own said, if it is a path from the root and a token."""
    try:
        path, token = [int(at) for at in said[0]], int(said[1])
        rows = [0, *(at + 1 for at in path)]
        is_path = all(0 <= at < len(nodes) and nodes[at].parent == row for at, row in zip(path, rows))
    except (TypeError, ValueError, IndexError):
        is_path, path, token = False, [], -1
    if not is_path or not 0 <= token < size:
        raise Refused(
            f"rule: it returned {said!r}; return the numbers of the nodes that it keeps, each a child of the one "
            "before, and the token behind them"
        )
    return path, token


def _output(texts: list[_Text], prompts: Any, config: Any) -> Any:
    """As ``generate`` gives it: shorter texts are padded behind their end."""
    longest = max(len(text.whole) for text in texts)
    pad = config._pad_token_tensor
    pad = 0 if pad is None else int(pad)
    ids = prompts.new_full((len(texts), longest), pad)
    for row, text in zip(ids, texts):
        row[: len(text.whole)] = text.whole
    if not config.return_dict_in_generate:
        return ids
    from transformers.generation import GenerateDecoderOnlyOutput

    def steps(rows: list[list[Any]]) -> tuple[Any, ...]:
        nothing = torch.full_like(rows[0][0], -torch.inf)
        count = max(map(len, rows))
        return tuple(torch.stack([one[at] if at < len(one) else nothing for one in rows]) for at in range(count))

    return GenerateDecoderOnlyOutput(
        sequences=ids,
        scores=steps([text.scores for text in texts]) if config.output_scores else None,
        logits=steps([text.logits for text in texts]) if config.output_logits else None,
    )


def _refuse(model: Any, config: Any, processors: Any, given: Mapping[str, Any]) -> None:
    """Raises for what is not plain sampling of a decoder's own text."""
    why = "trees of drafts stand for sampling token by token"
    settings = {
        "num_beams": ((config.num_beams or 1) > 1, "say num_beams=1"),
        "penalty_alpha": (bool(getattr(config, "penalty_alpha", None)), "leave contrastive search out"),
        "dola_layers": (getattr(config, "dola_layers", None) is not None, "leave it out"),
        "prompt_lookup_num_tokens": (
            getattr(config, "prompt_lookup_num_tokens", None) is not None,
            "give speculative(draft=ngram(vocabulary)) instead",
        ),
        "output_attentions": (bool(config.output_attentions), "leave it out"),
        "output_hidden_states": (bool(config.output_hidden_states), "leave it out"),
        "cache_implementation": (
            config.cache_implementation not in (None, "dynamic", "dynamic_full"),
            "leave it out: the cache is a dynamic one",
        ),
    }
    for name, (is_refused, cure) in settings.items():
        if is_refused:
            raise Refused(f"{name}: is not supported, as {why}; {cure}")
    for one in processors or ():
        if type(one).__name__ in _NOT_ON_TREES:
            raise Refused(
                f"logits_processor: {type(one).__name__} keeps a state or asks for a row's number, and branches "
                "share neither; leave it out, or write it as a function of the ids"
            )
    known = {"attention_mask", "position_ids", "use_cache", "logits_to_keep", "cache", "past_key_values", "cache_position"}
    more = sorted(name for name, value in given.items() if name not in known and value is not None)
    if more:
        raise Refused(f"{more[0]}: is not passed on to a tree's passes; give input_ids and attention_mask alone")
    held = given.get("cache", given.get("past_key_values"))
    if held is not None and held.get_seq_length() > 0:
        raise Refused("cache: a tree's cache begins with the text; leave past_key_values out")
    mask = given.get("attention_mask")
    if mask is not None and bool((mask.diff(dim=1) < 0).any()):
        raise Refused("attention_mask: has a gap behind a token; pad on the left")
    _refuse_model(model, "the model")


def _refuse_states(processors: Any, ids: Any, size: int) -> None:
    """Raises where a processor of one's own says another thing of a prefix when it is asked again."""
    for one in processors or ():
        if type(one).__module__.startswith("transformers."):
            continue
        longer = torch.cat([ids, ids[:, -1:]], dim=1)
        flat = torch.zeros(1, size, device=ids.device)
        said = [one(prefix, flat.clone()) for prefix in (ids, longer, ids, longer)]
        if not (torch.equal(said[0], said[2]) and torch.equal(said[1], said[3])):
            raise Refused(
                f"logits_processor: {type(one).__name__} keeps a state, and branches do not share it; write it as a "
                "function of the ids"
            )


def _refuse_model(model: Any, name: str) -> None:
    config = model.config.get_text_config()
    _, kinds = _window(config)
    if model.config.is_encoder_decoder:
        raise Refused(f"{name}: is an encoder-decoder; take a decoder alone")
    if getattr(model, "_is_stateful", False) or kinds - {"full_attention", "sliding_attention"}:
        raise Refused(f"{name}: has states of one path (recurrent, linear or chunked attention); take one with full attention")
    attention = getattr(config, "_attn_implementation", "sdpa")
    if attention not in _ATTENTION:
        raise Refused(f"{name}: attn_implementation={attention!r} takes no mask of a tree; load it with 'sdpa'")


def _window(config: Any) -> tuple[int | None, set[str]]:
    """The length of a sliding window, if layers have one, and the kinds of layers."""
    kinds = set(getattr(config, "layer_types", None) or ())
    window: Any = getattr(config, "sliding_window", None)
    slides = window is not None and getattr(config, "use_sliding_window", True)
    return (window if slides and (not kinds or "sliding_attention" in kinds) else None), kinds


def _compare(one: _Cached, ids: list[int]) -> None:
    """One pass over a tree against plain passes, once a model."""
    model = one.model
    if model in _checked:
        return
    a, b, c = ids[-1], ids[0], ids[len(ids) // 2]
    b = b if b != a else (a + 1) % one.model.config.get_text_config().vocab_size
    nodes = [_Node(a, 0, 1, 1), _Node(b, 0, 1, 2), _Node(c, 1, 2, 3)]
    one.begin([])
    try:
        found = one.feed(ids, (1, 2, 3), nodes)
        one.keep([2])
        found = torch.cat([found, one.feed([c], (), ())])
    except Exception as error:
        raise Refused(f"{type(model).__name__}: makes no pass over a tree ({error}); take another model") from error
    one.begin([])
    paths = [[], [a], [b], [a, c], [b, c]]
    device = model.device
    plain = [model(input_ids=torch.tensor([ids + path], device=device), use_cache=False) for path in paths]
    wanted = torch.stack([rows.logits[0, -1].float() for rows in plain])
    spread = float((wanted.max(dim=1).values - wanted.min(dim=1).values).mean())
    apart = float((found - wanted).abs().max())
    if not apart <= spread * (1e-3 if model.dtype in (torch.float32, torch.float64) else 0.1):
        raise Refused(
            f"{type(model).__name__}: a pass over a tree gives logits {apart:.2g} off plain passes, whose spread is "
            f"{spread:.2g}; its attention does not follow the mask: take another model, or attn_implementation='eager'"
        )
    _checked.add(model)


def speculative(
    draft: Any,
    tree: Shape = "4",
    law: str = "stratified",
    rule: str | Rule = "level-4",
    *,
    seed: int | None = None,
    record: PathLike | None = None,
    pack: bool = False,
    draft_tokens: Any = None,
    streamer: Any = None,
) -> Speculative:
    """A function for ``generate(custom_generate=..)``.

    ``draft`` is a model with the target's tokens, or a function ``rows(ids, nodes, parents)`` that
    gives logits ``[1 + nodes, V]`` behind ``ids`` and behind each node, whose parent is a row of these;
    -inf at all tokens for no draft (:func:`ngram`, :func:`skip`). ``tree``: children by depth, ``"4"``,
    ``"4-2-1"``, ``"chain-4"``; ``"auto"`` times both models' passes in its first text, and takes the tree, or
    none, that makes the most tokens a second there (:data:`specgap._shape.TREES`); or ``best-tree.price.json``
    of ``specgap tree --price``, its path or as read, whose trees follow the draft's rows. ``law`` of each
    node's children: ``stratified``, ``stratified-independent``, ``with-replacement``, ``top``; ``without-replacement`` for ``shared-gumbel``.
    ``rule``: ``token`` and ``block`` for chains; ``rrs``; ``level-4``; ``traversal`` and ``traversal-4``, from the
    leaves; ``shared-gumbel``, by one noise a place for draft and target, made of seed and place: a text does not
    depend on the draft or the tree. A rule of one's own is
    a function ``rule(p, q, tokens, parents, random)`` of the rows behind the text and behind each node
    (``[1 + nodes, V]``), the nodes' tokens and their parents' rows; it returns the numbers of the nodes
    that it keeps, from the root down, and the token behind them.

    ``seed``: of all texts together; torch's own generator if not given. ``record``: a folder for a log
    that ``audit``, ``length`` and ``tree`` read. ``pack``: lays weights out for passes over several
    tokens, on CPUs, for a second copy of them. ``draft_tokens``: ids that the draft's head keeps.
    """
    price = _price(tree)
    widths = _widths(cast(Any, tree)) if price is None else ()
    if law not in _LAWS:
        raise Refused(f"law: {law!r} is none of trees; say one of {', '.join(_LAWS)}")
    if not callable(rule) and rule not in _RULES:
        raise Refused(f"rule: {rule!r} is none of trees; say one of {', '.join(_RULES)}")
    if widths is None and (callable(rule) or rule == _NOISE):
        raise Refused(f"tree: 'auto' knows what named rules keep, but not {_NOISE}; give a tree")
    if price is not None and law != price[1].law:
        raise Refused(f"law: the price is of {price[1].law} drafts, and not of {law}; say law={price[1].law!r}")
    if price is not None and rule in ("token", "block"):
        raise Refused(f"rule: {rule} is for chains, and a price makes trees; say rule='level-4' or 'traversal-4'")
    if rule in ("token", "block") and max(widths or (1,)) > 1:
        raise Refused(f"rule: {rule} is for chains; say tree='chain-{len(widths or ())}', or rule='level-4' or 'traversal'")
    if (law == "without-replacement") != (rule == _NOISE):
        raise Refused(f"rule: {_NOISE} is for law='without-replacement', and that law for it alone; say both or neither")
    if law == "with-replacement" and rule in ("level-4", "traversal-4"):
        raise Refused(f"rule: the levels of {rule} are for strata; with independent draws say 'rrs' or 'traversal'")
    kept = None
    if isinstance(draft, torch.nn.Module):
        _refuse_model(draft, "the draft")
        if draft_tokens is not None:
            kept = torch.as_tensor(draft_tokens, device=draft.device)
            if kept.ndim != 1 or not len(kept) or kept.is_floating_point():
                raise Refused("draft_tokens: give ids of tokens, one dimension of at least one")
            draft = _cut_head(draft, kept)
    elif not callable(draft) or draft_tokens is not None:
        raise Refused("draft: give a model, or (without draft_tokens) a function rows(ids, nodes, parents)")
    return Speculative(draft, widths, law, rule, price, seed=seed, record=record, pack=pack, streamer=streamer, kept=kept)


def generate(
    model: Any,
    inputs: Any = None,
    *,
    draft_model: Any,
    tree: Shape = "4",
    law: str = "stratified",
    rule: str | Rule = "level-4",
    seed: int | None = None,
    record: PathLike | None = None,
    pack: bool = False,
    draft_tokens: Any = None,
    streamer: Any = None,
    **options: Any,
) -> Any:
    """``model.generate(inputs, **options)`` with drafts of ``draft_model``; ``inputs`` may be what a
    tokenizer returns. See :func:`speculative`."""
    if options.get("assistant_model") is not None:
        raise Refused("assistant_model: the draft is draft_model; leave it out")
    if isinstance(inputs, Mapping):
        inputs, options = None, {**inputs, **options}
    decode = speculative(
        draft_model, tree, law, rule, seed=seed, record=record, pack=pack, draft_tokens=draft_tokens, streamer=streamer
    )
    if streamer is not None:
        # The prompt first, as generate does.
        ids = options.get("input_ids") if inputs is None else inputs
        if ids is not None:
            streamer.put(ids.cpu())
    return model.generate(inputs, custom_generate=decode, **options)


def timings(
    target: Any,
    draft: Any,
    path: PathLike | None = None,
    *,
    pack: bool = False,
    draft_tokens: Any = None,
    context: int = 100,
    repeats: int = 9,
) -> dict[str, Any]:
    """Times of passes behind a text of ``context`` tokens and more, as ``--timings`` of ``length``, ``tree``
    and ``gap`` reads them; written to ``path`` as JSON.

    Seconds, each the median of ``repeats`` passes in turn, with the standard error that their spread gives.
    A pass is the model's and the softmax of its rows; the rest of a round is what four drafts of one row, and
    their verification by level-4, take.
    """
    decode = speculative(draft, pack=pack, draft_tokens=draft_tokens)
    ids = [at % (_size(target) - 1) for at in range(context)]
    with torch.no_grad(), decode._ready(target, ids[:3]) as (one, other):
        found = _measured(one, other, ids, repeats)

    def said(seconds: list[float]) -> dict[str, float]:
        middle = float(np.median(seconds))
        spread = 1.4826 * float(np.median(np.abs(np.subtract(seconds, middle))))
        return {"seconds": middle, "standard_error": spread * (np.pi / 2 / len(seconds)) ** 0.5}

    passes = [{"tokens": tokens, **said(found[tokens])} for tokens in _PASSES]
    alone = {name: passes[0][name] for name in ("seconds", "standard_error")}
    steps = {"target_step": alone, "draft_step": said(found["draft"]), "overhead": said(found["rest"])}
    made = {"schema": 1, **steps, "verify": passes}
    if path is not None:
        Path(path).write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return made


#: Tokens of the passes that are timed.
_PASSES = (1, 2, 3, 5, 8, 11, 16, 21)


def _measured(target: _Cached, source: Any, ids: list[int], repeats: int) -> dict[Any, list[float]]:
    """Seconds of the target's passes by their tokens, of a draft step, and of the rest of a round."""
    random = np.random.default_rng(0)
    found: dict[Any, list[float]] = {}
    target.begin(ids[:-1])
    source.begin(ids[:-1])

    def timed(name: Any, model: Any, nodes: Sequence[_Node]) -> NDArray[np.float32]:
        begin = time.perf_counter()
        logits = model.feed(ids[-1:], range(1, 1 + len(nodes)), nodes)
        rows: NDArray[np.float32] = torch.softmax(logits, dim=1).cpu().numpy()
        spent = time.perf_counter() - begin
        model.keep([])
        # The first turn warms up.
        if turn:
            found.setdefault(name, []).append(spent)
        return rows[:1]

    for turn in range(repeats + 1):
        timed("draft", source, ())
        for tokens in _PASSES:
            behind = timed(tokens, target, [_Node(ids[at % len(ids)], 0, 1, at) for at in range(1, tokens)])
        begin = time.perf_counter()
        drafts = [int(one) for one in _native.draft_rows(behind, 4, "stratified", random.random((1, 4)))[0] if one >= 0]
        same = np.repeat(behind, len(drafts) + 1, axis=0)
        levels, coins = (STRATA_LEVELS,), random.random(4 * len(STRATA_LEVELS) + 2)
        _native.verify_tree(same, same, drafts, [0] * len(drafts), "stratified", False, levels, coins)
        if turn:
            found.setdefault("rest", []).append(time.perf_counter() - begin)
    return found


def _times(target: _Cached, source: Any) -> Times:
    """The medians of a few passes."""
    ids = [at % (_size(target.model) - 1) for at in range(64)]
    middle = {name: float(np.median(all_)) for name, all_ in _measured(target, source, ids, 3).items()}
    passes = tuple((tokens, middle[tokens]) for tokens in _PASSES)
    return Times(middle["draft"], passes, middle["rest"])


def _shallow(module: Any) -> Any:
    """A copy that shares weights and may have other parts."""
    made = copy.copy(module)
    made._modules = dict(module._modules)
    return made


def _cut_head(model: Any, kept: Any) -> Any:
    head = model.get_output_embeddings()
    cut = torch.nn.Linear(1, 1, bias=head.bias is not None, device="meta")
    cut.weight = torch.nn.Parameter(head.weight.detach()[kept], requires_grad=False)
    if head.bias is not None:
        cut.bias = torch.nn.Parameter(head.bias.detach()[kept], requires_grad=False)
    made = _shallow(model)
    name = next(name for name, module in model.named_children() if module is head)
    setattr(made, name, cut)
    return made


def skip(model: Any, layers: Sequence[int]) -> Any:
    """A draft made of some of a model's own layers; weights are shared. For models whose decoder is
    ``model.model`` with its ``layers``, as in Llama and Qwen."""
    made, inner = _shallow(model), _shallow(model.model)
    chosen = []
    for number, at in enumerate(layers):
        layer, attention = _shallow(model.model.layers[at]), _shallow(model.model.layers[at].self_attn)
        attention.layer_idx = number
        layer.self_attn = attention
        chosen.append(layer)
    inner.layers = torch.nn.ModuleList(chosen)
    for one in (made, inner):
        one.config = copy.copy(one.config)
        one.config.num_hidden_layers = len(chosen)
        if getattr(one.config, "layer_types", None):
            one.config.layer_types = [one.config.layer_types[at] for at in layers]
    made.model = inner
    return made


def ngram(vocabulary: int, longest: int = 3) -> Rows:
    """A draft without a model: what followed the last tokens where they stood before, of up to
    ``longest`` tokens. For chains: ``speculative(ngram(V), tree="chain-4")``."""

    def following(text: list[int]) -> int | None:
        for size in range(min(longest, len(text) - 1), 0, -1):
            tail = text[-size:]
            for start in range(len(text) - size - 1, -1, -1):
                if text[start : start + size] == tail:
                    return text[start + size]
        return None

    def rows(ids: list[int], nodes: list[int], parents: list[int]) -> Any:
        made = torch.full((1 + len(nodes), vocabulary), -torch.inf)
        paths: list[list[int]] = [[]]
        paths += [[] for _ in nodes]
        for row, (token, parent) in enumerate(zip(nodes, parents), 1):
            paths[row] = [*paths[parent], token]
        for row, path in enumerate(paths):
            if (next_token := following(ids + path)) is not None:
                made[row, next_token] = 0.0
        return made

    return rows
