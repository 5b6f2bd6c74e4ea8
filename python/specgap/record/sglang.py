"""A plugin of SGLang that records speculative sampling of chains.

    SPECGAP_RECORD=logs python -m sglang.launch_server --model-path MODEL --speculative-... \\
        --speculative-eagle-topk 1

SGLang loads it when it starts (entry point ``sglang.srt.plugins``). It does nothing unless
``SPECGAP_RECORD`` names a folder. Then the two sampling functions of
``sglang.srt.speculative.eagle_utils`` are hooked, and each process that verifies writes the log
``sglang-PID`` there: ``chain_speculative_sampling_triton`` (rejection sampling: audit it by the rule
``single``, or ``block``) and ``tree_speculative_sampling_target_only``, which takes drafts for
certain (``one-hot``; of chains alone, as a log has no rows for the branches of a tree).

Rows are those that are drawn from, after temperature, top-k and top-p. Each round is a text of its
own, because the kernel does not know the requests: use ``gap`` and ``audit``, and not ``length``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._rounds import Plugin, certain, log_rows, to_numpy

_plugin = Plugin("sglang")

_HOME = "sglang.srt.speculative.eagle_utils"
_SAMPLERS = ("chain_speculative_sampling_triton", "tree_speculative_sampling_target_only")


def plugin() -> None:
    """What SGLang calls when it starts."""
    if _plugin.folder is None:
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for name in _SAMPLERS:
        HookRegistry.register(f"{_HOME}.{name}", around, HookType.AROUND)


def around(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A sampling function, recorded. SGLang calls it by keywords."""
    result = original(*args, **kwargs)
    if args:
        _plugin.warn("a call without keywords is not recorded")
    else:
        _plugin.observe(lambda: _record(kwargs))
    return result


def _record(call: dict[str, Any]) -> None:
    candidates = to_numpy(call["candidates"])
    if not _is_chain(call, candidates.shape):
        _plugin.warn("trees with branches are not recorded; set --speculative-eagle-topk 1")
        return
    target, draft = to_numpy(call["target_probs"]), to_numpy(call["draft_probs"])
    accepted = to_numpy(call["accept_token_num"]).reshape(-1)
    predicts = to_numpy(call["predicts"]).reshape(-1)
    places = to_numpy(call["accept_index"])
    for request, chain in enumerate(candidates):
        # The first is the token that was put out last.
        drafts = [int(x) for x in chain[1:]]
        count, kept = len(drafts), int(accepted[request])
        if count == 0:
            continue
        rows = draft[request][:count]
        _plugin.add(
            target=log_rows(target[request][:count]),
            draft=log_rows(rows) if rows.any() else certain(drafts, target.shape[-1]),
            drafts=drafts,
            accepted=kept,
            outputs=[int(predicts[place]) for place in places[request][: kept + 1]],
            batch_size=len(candidates),
        )


def _is_chain(call: dict[str, Any], shape: tuple[int, ...]) -> bool:
    """Whether no candidate has a sibling."""
    siblings = call.get("retrive_next_sibling")
    if siblings is None:
        return True
    return bool((np.asarray(to_numpy(siblings)).reshape(shape) < 0).all())
