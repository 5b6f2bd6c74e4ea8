"""A plugin of SGLang that records speculative sampling of chains.

    SPECGAP_RECORD=logs python -m sglang.launch_server --model-path MODEL --speculative-... \\
        --speculative-eagle-topk 1

SGLang loads it when it starts (entry point ``sglang.srt.plugins``). It does nothing unless
``SPECGAP_RECORD`` names a folder. Then the two sampling functions that
``sglang.srt.speculative.eagle_utils`` calls are hooked, wherever they were imported, and each process
that verifies writes the log ``sglang-PID`` there: ``chain_speculative_sampling_triton`` (rejection
sampling: audit it by the rule ``token``, or by ``block`` where block verification is on) and
``tree_speculative_sampling_target_only``, which takes drafts for certain (``one-hot``; of chains
alone, as a log has no rows for the branches of a tree). On platforms that lack one of them the other
is hooked. Thresholds below 1 (``--speculative-accept-threshold-single``, ``-acc``) do not keep the
target's law, by design.

Rows are those that are drawn from, after temperature, top-k and top-p: the engine's own idea of p,
as the log says (``rows_from``), so that a mistake in these steps is in p too. Each round is a text of
its own, because the kernel does not know the requests: use ``gap`` and ``audit``, and not ``length``.
The kernel is given numbers of one stream for all requests, which the log's ``seed`` of -1 says.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._rounds import STREAM, Plugin, certain, log_rows, to_numpy

_plugin = Plugin("sglang")

HOME = "sglang.srt.speculative.eagle_utils"

#: Functions that verify, and whether they take drafts for certain.
SAMPLERS = {
    "chain_speculative_sampling_triton": False,
    "tree_speculative_sampling_target_only": True,
}

#: What the recorder reads of a call, by the names of its arguments.
ARGUMENTS = (
    "predicts",
    "accept_index",
    "accept_token_num",
    "candidates",
    "retrive_next_sibling",
    "target_probs",
    "draft_probs",
)


def plugin() -> None:
    """What SGLang calls when it starts."""
    if _plugin.folder is None:
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    home = importlib.import_module(HOME)
    hooked = 0
    for name, is_certain in SAMPLERS.items():
        # A function that this platform lacks is None there. To hook it would replace every
        # None of every module, because SGLang looks for what is the same object.
        if getattr(home, name, None) is not None:
            HookRegistry.register(f"{HOME}.{name}", around(is_certain), HookType.AROUND)
            hooked += 1
    if not hooked:
        _plugin.warn(f"nothing is recorded: {HOME} has none of {', '.join(SAMPLERS)}")


def around(is_certain: bool) -> Callable[..., Any]:
    """A hook that records a sampling function. SGLang calls these by keywords."""

    def hook(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        draft: list[NDArray[Any] | None] = []
        if args:
            _plugin.warn("a call without keywords is not recorded")
        else:
            _plugin.observe(lambda: draft.append(_draft_rows(kwargs, is_certain)))
        result = original(*args, **kwargs)
        if draft:
            _plugin.observe(lambda: _record(kwargs, draft[0]))
        return result

    return hook


def _draft_rows(call: dict[str, Any], is_certain: bool) -> NDArray[Any] | None:
    """The laws of the drafts; None if they are taken for certain. Read before the call: the
    kernel for trees marks rejected drafts in the rows that it is given."""
    return None if is_certain else np.array(to_numpy(call["draft_probs"]))


def _record(call: dict[str, Any], draft: NDArray[Any] | None) -> None:
    candidates = to_numpy(call["candidates"])
    if not _is_chain(call, candidates.shape):
        _plugin.warn("trees with branches are not recorded; set --speculative-eagle-topk 1")
        return
    if min(call.get("threshold_single", 1.0), call.get("threshold_acc", 1.0)) < 1.0:
        _plugin.warn("acceptance thresholds below 1 do not keep the target's law, by design")
    target = to_numpy(call["target_probs"])
    accepted = to_numpy(call["accept_token_num"]).reshape(-1)
    predicts = to_numpy(call["predicts"]).reshape(-1)
    places = to_numpy(call["accept_index"])
    for request, chain in enumerate(candidates):
        # The first is the token that was put out last.
        drafts = [int(x) for x in chain[1:]]
        count, kept = len(drafts), int(accepted[request])
        if count == 0:
            continue
        certainly = certain(drafts, target.shape[-1])
        _plugin.add(
            target=log_rows(target[request][:count]),
            draft=certainly if draft is None else log_rows(draft[request][:count]),
            drafts=drafts,
            accepted=kept,
            outputs=[int(predicts[place]) for place in places[request][: kept + 1]],
            batch_size=len(candidates),
            seed=STREAM,
        )


def _is_chain(call: dict[str, Any], shape: tuple[int, ...]) -> bool:
    """Whether no candidate has a sibling."""
    siblings = call.get("retrive_next_sibling")
    if siblings is None:
        return True
    return bool((np.asarray(to_numpy(siblings)).reshape(shape) < 0).all())
