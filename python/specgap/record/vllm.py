"""A plugin of vLLM that records rejection sampling.

    SPECGAP_RECORD=logs vllm serve MODEL --speculative-config '...'

vLLM loads it in all of its processes (entry point ``vllm.general_plugins``). It does nothing
unless ``SPECGAP_RECORD`` names a folder. Then ``rejection_sample`` of both model runners is wrapped,
in ``vllm.v1.sample.rejection_sampler`` (the first) and
``vllm.v1.worker.gpu.spec_decode.rejection_sampler`` (the second, which newer versions prefer), and
each process that verifies writes the log ``vllm-PID`` there. With tensor parallelism every rank
verifies the same rounds: take the log of one.

Rows are those that are drawn from, after temperature, top-k and top-p, so audit them at
temperature 1. Drafts are argmaxes by default (``draft_sample_method`` is ``greedy``): without the
draft's rows a draft is taken for certain and its row says so, and the rule to audit is ``one-hot``.
With ``rejection_sample_method`` ``block`` it is ``block``; ``fly`` and ``synthetic`` do not keep the
target's law, by design. Requests that are decoded greedily are left out, and so are the rounds by
which vLLM warms up. Each round is a text of its own, because the sampler does not know the
requests: use ``gap`` and ``audit``, and not ``length``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._rounds import Plugin, certain, log_rows, to_numpy

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
        draft = certain(one.drafts, one.target.shape[1]) if one.draft is None else one.draft
        _plugin.add(
            target=one.target,
            draft=draft,
            drafts=one.drafts,
            accepted=len(one.outputs) - 1,
            outputs=one.outputs,
            batch_size=len(every),
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
    greedy = _greedy(call["sampling_metadata"], len(counts))

    def after(result: Any) -> Iterator[_Request]:
        start = 0
        for count, outputs, is_greedy in zip(counts, to_numpy(result), greedy, strict=True):
            here = slice(start, start + count)
            start += count
            yield _Request(
                target=target[here],
                draft=None if draft is None else draft[here],
                drafts=[int(token) for token in tokens[here]],
                # -1 stands behind what came out.
                outputs=[int(token) for token in outputs if token >= 0],
                greedy=is_greedy,
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
    draft = call["draft_logits"]
    if draft is not None:
        # The slots of these requests alone leave the accelerator.
        draft = _copy(draft[call["idx_mapping"]])
        # A padded target has more entries; they are not looked at.
        width = min(target.shape[1], draft.shape[2])
        target, draft = target[:, :width], draft[:, :, :width]

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
                rows = draft[request, :count] / np.float32(heat)
            yield _Request(
                target=target[start : start + count],
                draft=rows,
                drafts=drafts,
                outputs=[int(token) for token in sampled[request][: int(counts[request])]],
                greedy=heat <= 0,
            )

    return after
