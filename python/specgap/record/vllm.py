"""A plugin of vLLM that records rejection sampling.

    SPECGAP_RECORD=logs vllm serve MODEL --speculative-config '...'

vLLM loads it in all of its processes (entry point ``vllm.general_plugins``). It does nothing
unless ``SPECGAP_RECORD`` names a folder. Then ``vllm.v1.sample.rejection_sampler.rejection_sample``
is wrapped, and each process that verifies writes the log ``vllm-PID`` there.

Rows are those that are drawn from, after temperature, top-k and top-p, so audit them at
temperature 1. Without ``draft_probs`` a draft is taken for certain and its row says so: the rule
to audit is then ``one-hot``. Requests that are decoded greedily are left out. Each round is a text
of its own, because the sampler does not know the requests: use ``gap`` and ``audit``, and not
``length``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ._rounds import Plugin, certain, log_rows, to_numpy

_plugin = Plugin("vllm")

#: Marks what was wrapped, as plugins may be loaded several times.
_MARK = "_specgap_records"


def plugin() -> None:
    """What vLLM calls when it starts."""
    if _plugin.folder is None:
        return
    from vllm.v1.sample import rejection_sampler

    rejection_sampler.rejection_sample = wrap(rejection_sampler.rejection_sample)


def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
    """``rejection_sample``, recorded."""
    if getattr(original, _MARK, False):
        return original

    @functools.wraps(original)
    def recorded(
        draft_token_ids: Any,
        num_draft_tokens: Any,
        max_spec_len: Any,
        cu_num_draft_tokens: Any,
        draft_probs: Any,
        target: Any,
        *rest: Any,
        **more: Any,
    ) -> Any:
        # Kernels may write into what they are given.
        before = _rows(target, draft_probs)
        result = original(
            draft_token_ids,
            num_draft_tokens,
            max_spec_len,
            cu_num_draft_tokens,
            draft_probs,
            target,
            *rest,
            **more,
        )
        metadata = more.get("sampling_metadata", rest[1] if len(rest) > 1 else None)
        _plugin.observe(
            lambda: _record(draft_token_ids, num_draft_tokens, before, result, metadata)
        )
        return result

    setattr(recorded, _MARK, True)
    return recorded


def _rows(target: Any, draft_probs: Any) -> tuple[Any, Any]:
    rows = to_numpy(target).copy()
    return rows, None if draft_probs is None else to_numpy(draft_probs).copy()


def _record(
    draft_token_ids: Any, num_draft_tokens: Any, before: tuple[Any, Any], result: Any, metadata: Any
) -> None:
    target, draft = before
    # Newer versions hand over logits, older ones probabilities.
    if (target >= 0).all() and np.allclose(target.sum(axis=-1), 1.0, atol=1e-3):
        target = log_rows(target)
    tokens = to_numpy(draft_token_ids).reshape(-1)
    outputs = to_numpy(result)
    greedy = _greedy(metadata, len(outputs))
    start = 0
    for request, count in enumerate(int(x) for x in num_draft_tokens):
        here = slice(start, start + count)
        start += count
        if count == 0:
            continue
        if greedy[request]:
            _plugin.warn("requests that are decoded greedily are left out")
            continue
        drafts = [int(x) for x in tokens[here]]
        out = [int(x) for x in outputs[request] if x >= 0]
        rows = target[here]
        _plugin.add(
            target=rows,
            draft=certain(drafts, rows.shape[1]) if draft is None else log_rows(draft[here]),
            drafts=drafts,
            accepted=len(out) - 1,
            outputs=out,
            batch_size=len(outputs),
        )


def _greedy(metadata: Any, requests: int) -> list[bool]:
    """Which requests are not sampled."""
    if getattr(metadata, "all_greedy", False):
        return [True] * requests
    temperature = getattr(metadata, "temperature", None)
    if temperature is None or getattr(metadata, "all_random", False):
        return [False] * requests
    return [bool(x <= 0) for x in to_numpy(temperature).reshape(-1)]
