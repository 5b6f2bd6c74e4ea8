"""A plugin of vLLM that records rejection sampling.

    SPECGAP_RECORD=logs vllm serve MODEL --speculative-config '...'

vLLM loads it in all of its processes (entry point ``vllm.general_plugins``). It does nothing
unless ``SPECGAP_RECORD`` names a folder. Then ``rejection_sample`` of both model runners is wrapped,
in ``vllm.v1.sample.rejection_sampler`` (the first) and
``vllm.v1.worker.gpu.spec_decode.rejection_sampler`` (the second, which newer versions prefer), and
each process that verifies writes the log ``vllm-PID`` there. With tensor parallelism every rank
verifies the same rounds: take the log of one.

The target's rows are the raw logits that go into ``apply_sampling_constraints`` (of the second runner:
``Sampler.apply_sampling_params``), and the request's temperature, top_k, top_p and min_p are in the
log, so that ``audit`` computes p itself: vLLM's own p would hide a mistake in these very steps. Each
sampling has a log of its own (``vllm-PID``, ``vllm-PID-2`` ...). Where the raw logits are not found,
the processed ones are recorded, and the log says so (``rows_from``). Requests with penalties, bad
words, allowed tokens, biases, grammars or other logits processors are left out, as p does not follow
from the raw logits: the log counts them (``not_comparable``). What could not be recorded is counted too
(``lost_rounds``), and fails the audit.

Drafts are argmaxes by default (``draft_sample_method`` is ``greedy``): without the
draft's rows a draft is taken for certain and its row says so, and the rule to audit is ``one-hot``.
With ``rejection_sample_method`` ``block`` it is ``block``; ``fly`` and ``synthetic`` do not keep the
target's law, by design. Requests that are decoded greedily are left out, and so are the rounds by
which vLLM warms up. The second runner says which rounds are of one request; of the first this is known
of requests with a seed, and each other round is a text of its own. Tokens without drafts are not in the
log: use ``gap`` and ``audit``, and not ``length``. ``seed`` has the seeds of requests, and -1 where one
draws from the stream of all.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._rounds import (
    PROCESSED,
    RAW,
    STREAM,
    Plugin,
    Sampling,
    certain,
    log_rows,
    seed_of,
    to_numpy,
)

_plugin = Plugin("vllm")

#: Modules whose global ``rejection_sample`` verifies: of the first model runner and the second.
FIRST = "vllm.v1.sample.rejection_sampler"
SECOND = "vllm.v1.worker.gpu.spec_decode.rejection_sampler"

#: What the recorder asks of each function, by the names of its arguments. Where a name was
#: another in older versions, any of them will do.
ARGUMENTS = {
    FIRST: (
        ("draft_token_ids",),
        ("num_draft_tokens",),
        ("draft_probs",),
        ("target_logits", "target_probs"),
        ("sampling_metadata",),
    ),
    SECOND: (
        ("target_logits",),
        ("draft_logits",),
        ("draft_sampled",),
        ("cu_num_logits",),
        ("idx_mapping",),
        ("temperature",),
    ),
}

#: What sees the raw logits before: a function of the first runner's module, and a method of a class of
#: the second's.
CONSTRAINTS = "apply_sampling_constraints"
SAMPLER = ("vllm.v1.worker.gpu.sample.sampler", "Sampler", "apply_sampling_params")

#: What the recorder reads of these calls.
BEFORE = {
    CONSTRAINTS: (("logits",), ("sampling_metadata",)),
    SAMPLER[2]: (("logits",), ("expanded_idx_mapping",), ("pos",)),
}

#: Functions that verify rounds of nobody, to warm up.
WARM_UP = ("_dummy_sampler_run", "_warmup_kernels")

#: Marks what was wrapped, as plugins may be loaded several times.
_MARK = "_specgap_records"


@dataclass(frozen=True)
class _Request:
    """One request's part of a round."""

    target: NDArray[Any]
    #: Logits; None if its drafts are taken for certain.
    draft: NDArray[Any] | None
    drafts: list[int]
    outputs: list[int]
    greedy: bool
    sampling: Sampling = Sampling()
    rows_from: str = PROCESSED
    #: Why p does not follow from the rows and the sampling.
    otherwise: str | None = None
    seed: int = STREAM
    text: int | None = None
    start: int = 0


@dataclass
class _Raw:
    """Raw logits on their way to be verified."""

    logits: NDArray[Any] | None = None
    #: What the same call of the verifier has: the sampling metadata, or the sampler with the
    #: requests and positions of its rows.
    of: Any = None
    rows: tuple[Any, ...] = field(default=())


_raw = _Raw()

#: Texts that are known: by generator (first runner), or by slot (second), with the text's number, the
#: next index in it and what tells it from another.
_texts: dict[Any, tuple[int, int, Any]] = {}


def plugin() -> None:
    """What vLLM calls when it starts."""
    if _plugin.folder is None:
        return
    hooked = 0
    for home, read in ((FIRST, _first), (SECOND, _second)):
        try:
            module = importlib.import_module(home)
            original = module.rejection_sample
        except (ImportError, AttributeError):
            continue
        # What calls it looks it up in this module.
        module.rejection_sample = wrap(original, home, read)  # type: ignore[attr-defined]
        hooked += 1
    _watch(FIRST, None, CONSTRAINTS, _constraints)
    _watch(*SAMPLER, _sampler)
    if not hooked:
        _plugin.warn(
            "nothing is recorded: this version of vLLM has no rejection_sample where 0.33.0 has it; "
            "scripts/engines/check_signatures.py says what is missing"
        )


Reader = Callable[[dict[str, Any]], Callable[[Any], Iterator[_Request]]]


def wrap(original: Callable[..., Any], home: str, read: Reader) -> Callable[..., Any]:
    """``rejection_sample``, recorded."""
    if getattr(original, _MARK, False):
        return original
    signature = inspect.signature(original)

    @functools.wraps(original)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        if _warms_up():
            return original(*args, **kwargs)
        after: list[Callable[[Any], Iterator[_Request]]] = []

        def before() -> None:
            # Kernels may write into what they are given.
            call = signature.bind(*args, **kwargs)
            call.apply_defaults()
            after.append(read(call.arguments))

        _plugin.observe(before)
        result = original(*args, **kwargs)
        if after:
            _plugin.observe(lambda: _record(after[0](result)))
        return result

    setattr(recorded, _MARK, True)
    return recorded


def _watch(home: str, owner: str | None, name: str, note: Callable[[dict[str, Any]], None]) -> None:
    """Shows calls to ``note`` before they are made, as they work in place."""
    try:
        module = importlib.import_module(home)
        place = getattr(module, owner) if owner else module
        original = getattr(place, name)
    except (ImportError, AttributeError):
        return
    if getattr(original, _MARK, False):
        return
    signature = inspect.signature(original)

    @functools.wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        def before() -> None:
            note(signature.bind(*args, **kwargs).arguments)

        if not _warms_up():
            _plugin.observe(before)
        return original(*args, **kwargs)

    setattr(watched, _MARK, True)
    setattr(place, name, watched)


def _constraints(call: dict[str, Any]) -> None:
    """What goes into the first runner's temperature and truncation."""
    _raw.logits, _raw.of = _copy(call["logits"]), call["sampling_metadata"]


def _sampler(call: dict[str, Any]) -> None:
    """What goes into the second runner's biases, penalties, temperature and truncation."""
    _raw.logits, _raw.of = _copy(call["logits"]), call["self"]
    _raw.rows = (_copy(call["expanded_idx_mapping"]), _copy(call["pos"]))


def _taken(rows: int, is_its: Callable[[], bool]) -> NDArray[Any] | None:
    """The raw logits of a call that verifies so many rows, if they are its own. Once."""
    logits, _raw.logits = _raw.logits, None
    return logits if logits is not None and len(logits) == rows and is_its() else None


def _number(value: float, none: Callable[[float], bool]) -> float | None:
    """A parameter as it was asked for: the shortest decimal of its 32 bits."""
    return None if none(value) else float(str(np.float32(value)))


def _asked(temperature: float, top_k: float, top_p: float, min_p: float, tokens: int) -> Sampling:
    k = int(top_k)
    return Sampling(
        _number(temperature, lambda _: False) or 1.0,
        k if 0 < k < tokens else None,
        _number(top_p, lambda p: p >= 1),
        _number(min_p, lambda p: p <= 0),
        "vllm",
    )


def _masked(rows: NDArray[Any]) -> str | None:
    """Tokens that are out of question before the sampler: all but those behind the vocabulary."""
    own = rows[:, : int(np.isfinite(rows).any(axis=0).nonzero()[0].max(initial=-1)) + 1]
    return "tokens are masked before sampling, as by a grammar" if np.isneginf(own).any() else None


def _warms_up() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in WARM_UP:
            return True
        frame = frame.f_back
    return False


def _record(requests: Iterator[_Request]) -> None:
    every = list(requests)
    for one in every:
        if not one.drafts:
            continue
        if one.greedy:
            _plugin.warn("requests that are decoded greedily are left out")
            continue
        if one.otherwise is not None:
            _plugin.leave_out(one.otherwise)
            continue
        draft = certain(one.drafts, one.target.shape[1]) if one.draft is None else one.draft
        _plugin.add(
            target=one.target,
            draft=draft,
            drafts=one.drafts,
            accepted=len(one.outputs) - 1,
            outputs=one.outputs,
            batch_size=len(every),
            sampling=one.sampling,
            rows_from=one.rows_from,
            seed=one.seed,
            text=one.text,
            start=one.start,
        )


def _say_if_lossy(call: dict[str, Any]) -> None:
    if call.get("fly_window_size"):
        _plugin.warn("the method fly does not keep the target's law, by design")
    if call.get("synthetic_mode") or call.get("synthetic_conditional_rates") is not None:
        _plugin.warn("the method synthetic does not keep the target's law, by design")


def _copy(tensor: Any) -> NDArray[Any]:
    return np.array(to_numpy(tensor))


def _first(call: dict[str, Any]) -> Callable[[Any], Iterator[_Request]]:
    """A call of the first model runner's function: rows of all requests, one behind the other."""
    _say_if_lossy(call)
    target = _copy(call["target_logits"] if "target_logits" in call else call["target_probs"])
    # Newer versions hand over logits, older ones probabilities.
    if len(target) and (target >= 0).all() and np.allclose(target.sum(axis=-1), 1.0, atol=1e-3):
        target = log_rows(target)
    draft = None if call["draft_probs"] is None else log_rows(_copy(call["draft_probs"]))
    tokens = _copy(call["draft_token_ids"]).reshape(-1)
    counts = [int(count) for count in call["num_draft_tokens"]]
    asked = call["sampling_metadata"]
    greedy = _greedy(asked, len(counts))
    raw = _taken(len(target), lambda: _raw.of is asked)
    # Drafts are drawn from their rows as they are: the audit divides by the target's temperature.
    sampling = [Sampling()] * len(counts)
    otherwise: list[str | None] = [None] * len(counts)
    if raw is not None:
        of = range(len(counts))
        sampling = [_asked_of_first(asked, one, raw.shape[1]) for one in of]
        otherwise = [_otherwise_in_first(asked, one) for one in of]
    generators = getattr(asked, "generators", None) or {}

    def after(result: Any) -> Iterator[_Request]:
        start = 0
        for one, (count, outputs) in enumerate(zip(counts, to_numpy(result), strict=True)):
            here = slice(start, start + count)
            start += count
            rows, heat = (target if raw is None else raw)[here], sampling[one].temperature
            # -1 stands behind what came out.
            put_out = [int(token) for token in outputs if token >= 0]
            generator, seed, text, at = generators.get(one), STREAM, None, 0
            if generator is not None:
                seed = seed_of(generator.initial_seed())
                # The generator is kept, so that no other can be taken for it.
                text, at, _ = _texts.get((FIRST, id(generator))) or (_plugin.text(), 0, None)
                _texts[FIRST, id(generator)] = (text, at + len(put_out), generator)
            yield _Request(
                target=rows,
                draft=None if draft is None else draft[here] * np.float32(heat),
                drafts=[int(token) for token in tokens[here]],
                outputs=put_out,
                greedy=greedy[one],
                sampling=sampling[one],
                rows_from=PROCESSED if raw is None else RAW,
                otherwise=otherwise[one] or (None if raw is None else _masked(rows)),
                seed=seed,
                text=text,
                start=at,
            )

    return after


def _greedy(metadata: Any, requests: int) -> list[bool]:
    """Which requests are not sampled."""
    if getattr(metadata, "all_greedy", False):
        return [True] * requests
    temperature = getattr(metadata, "temperature", None)
    if temperature is None or getattr(metadata, "all_random", False):
        return [False] * requests
    return [bool(x <= 0) for x in to_numpy(temperature).reshape(-1)]


def _of_request(values: Any, request: int, none: float) -> float:
    return none if values is None else float(to_numpy(values).reshape(-1)[request])


def _processors(metadata: Any) -> list[Any]:
    every = getattr(metadata, "logitsprocs", None)
    kinds = ("argmax_invariant", "non_argmax_invariant")
    return [one for kind in kinds for one in getattr(every, kind, None) or ()]


def _asked_of_first(metadata: Any, request: int, tokens: int) -> Sampling:
    of = {name: getattr(metadata, name, None) for name in ("temperature", "top_k", "top_p")}
    floors = [one.min_p_cpu for one in _processors(metadata) if getattr(one, "min_p_count", 0)]
    return _asked(
        _of_request(of["temperature"], request, 1.0),
        _of_request(of["top_k"], request, tokens),
        _of_request(of["top_p"], request, 1.0),
        _of_request(floors[0] if floors else None, request, 0.0),
        tokens,
    )


def _otherwise_in_first(metadata: Any, request: int) -> str | None:
    """What else than the sampling p of a request follows from."""
    if not getattr(metadata, "no_penalties", True):
        kinds = {"frequency_penalties": 0.0, "presence_penalties": 0.0, "repetition_penalties": 1.0}
        for name, none in kinds.items():
            if _of_request(getattr(metadata, name, None), request, none) != none:
                return "penalties"
    mask = getattr(metadata, "allowed_token_ids_mask", None)
    if mask is not None and bool(to_numpy(mask)[request].any()):
        return "allowed tokens"
    if (getattr(metadata, "bad_words_token_ids", None) or {}).get(request):
        return "bad words"
    for one in _processors(metadata):
        # Processors keep what is asked of a request under its number, and this one has a mean.
        held = [value for value in vars(one).values() if isinstance(value, dict)]
        known = hasattr(one, "min_p_count")
        if any(request in of for of in held) or not (held or known):
            return f"the logits processor {type(one).__name__}"
    return None


def _second(call: dict[str, Any]) -> Callable[[Any], Iterator[_Request]]:
    """A call of the second model runner's function.

    A request has one row of the target more than drafts, and its drafts stand behind the token
    that was put out before. Draft logits lie by the slots of requests and are kept as they were
    before the temperature; the target's are processed.
    """
    _say_if_lossy(call)
    target = _copy(call["target_logits"])
    slots = _copy(call["idx_mapping"]).reshape(-1)
    starts = _copy(call["cu_num_logits"]).reshape(-1)
    tokens = _copy(call["draft_sampled"]).reshape(-1)
    temperature = _copy(call["temperature"]).reshape(-1)[slots]
    raw = _taken(len(target), lambda: _same_rows(call))
    sampling = [Sampling()] * len(slots)
    otherwise: list[str | None] = [None] * len(slots)
    seeds = None if call.get("seed") is None else _copy(call["seed"]).reshape(-1)
    places = None if call.get("pos") is None else _copy(call["pos"]).reshape(-1)
    if raw is not None:
        every = [_asked_of_second(_raw.of, int(slot), raw.shape[1]) for slot in slots]
        asked = [one for one in every if one is not None]
        if len(asked) < len(every):
            _plugin.warn("parameters of requests are not where 0.33.0 has them: processed rows")
            raw = None
        else:
            sampling = [one[0] for one in asked]
            otherwise = [one[1] for one in asked]
    rows_of = target if raw is None else raw
    draft = call["draft_logits"]
    if draft is not None:
        # The slots of these requests alone leave the accelerator.
        draft = _copy(draft[call["idx_mapping"]])
        # A padded target has more entries; they are not looked at.
        width = min(rows_of.shape[1], draft.shape[2])
        rows_of, draft = rows_of[:, :width], draft[:, :, :width]

    def after(result: Any) -> Iterator[_Request]:
        sampled, counts = (to_numpy(one) for one in result)
        for request in range(len(slots)):
            start, end = int(starts[request]), int(starts[request + 1])
            drafts = [int(token) for token in tokens[start + 1 : end]]
            # A placeholder ends what is verified.
            drafts = drafts[: drafts.index(-1)] if -1 in drafts else drafts
            count, heat = len(drafts), float(temperature[request])
            rows = None
            if draft is not None and heat > 0:
                # An audit divides both rows by the temperature of the log.
                rows = draft[request, :count] / np.float32(heat if raw is None else 1.0)
            put_out = [int(token) for token in sampled[request][: int(counts[request])]]
            slot, text, at, seed = int(slots[request]), None, 0, STREAM
            if seeds is not None:
                seed = seed_of(seeds[slot])
            if places is not None and len(places) > start:
                text, at = _text_of(slot, int(places[start]), seed)
            target = rows_of[start : start + count]
            yield _Request(
                target=target,
                draft=rows,
                drafts=drafts,
                outputs=put_out,
                greedy=heat <= 0,
                sampling=sampling[request],
                rows_from=PROCESSED if raw is None else RAW,
                otherwise=otherwise[request] or (None if raw is None else _masked(target)),
                seed=seed,
                text=text,
                start=at,
            )

    return after


def _same_rows(call: dict[str, Any]) -> bool:
    """Whether the raw logits that were seen last are those of a call."""
    own = (call.get("expanded_idx_mapping"), call.get("pos"))
    if any(one is None for one in own):
        return False
    return all(
        np.array_equal(seen, to_numpy(one)) for seen, one in zip(_raw.rows, own, strict=False)
    )


def _asked_of_second(sampler: Any, slot: int, tokens: int) -> tuple[Sampling, str | None] | None:
    """The sampling of a request, and what else p follows from; None where that is not found."""

    def held(state: str, name: str) -> float:
        values = getattr(getattr(sampler, state), name)
        return float(to_numpy(getattr(values, "np", values)).reshape(-1)[slot])

    try:
        names = ("temperature", "top_k", "top_p", "min_p")
        heat, top_k, top_p, min_p = (held("sampling_states", name) for name in names)
        others = {
            "penalties": held("penalties_state", "use_penalty"),
            "bad words": held("bad_words_state", "num_bad_words"),
            "allowed tokens or biases": held("logit_bias_state", "use_logit_bias"),
        }
    except AttributeError:
        return None
    otherwise = next((name for name, value in others.items() if value), None)
    return _asked(heat, top_k, top_p, min_p, tokens), otherwise


def _text_of(slot: int, place: int, seed: int) -> tuple[int, int]:
    """The text that a slot's request writes, and the index of a place in it. A slot gets another
    request when places begin anew, or with another seed."""
    known = _texts.get((SECOND, slot))
    if known is None or known[2][1] != seed or place <= known[1]:
        known = (_plugin.text(), place, (place, seed))
    text, _, (first, _) = known
    _texts[SECOND, slot] = (text, place, (first, seed))
    return text, place - first
