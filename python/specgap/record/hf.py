"""Records assisted generation of Hugging Face transformers.

    with sg.record.hf(model, assistant, out="log"):
        torch.manual_seed(7)
        model.generate(
            **inputs, assistant_model=assistant, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
            min_p=None, typical_p=1.0, epsilon_cutoff=0.0, eta_cutoff=0.0, repetition_penalty=1.0,
            no_repeat_ngram_size=0, bad_words_ids=None, suppress_tokens=None,
        )

``transformers.generation.utils._speculative_sampling`` is wrapped while the context is open. It
is called only where tokens are sampled: greedy assisted generation compares argmaxes and never
comes here. Rows are those that are drawn from, after temperature, top-k and top-p: the library's
own idea of p, as the log says (``rows_from``). ``torch.manual_seed`` is watched: texts behind a call
have its seed in the log, so that an audit does not take texts of one seed for independent.

What a call does not say comes from the model's ``generation_config``, often a top-p and a penalty: p
is then of these. Three defaults of transformers change what is measured. ``assistant_confidence_threshold`` (0.4)
ends drafts early; ``num_assistant_tokens`` (20) is long; ``top_k`` (50) cuts the rows that are
drawn from. With ``assistant_ensemble_weight`` outputs do not follow the target, by design.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .._logs import PathLike
from ._rounds import PROCESSED, STREAM, Rounds, Sampling, seed_of, to_numpy


#: The module whose global function verifies, and what the recorder reads of a call.
HOME = "transformers.generation.utils"
FUNCTION = "_speculative_sampling"
ARGUMENTS = ("candidate_input_ids", "candidate_logits", "candidate_length", "new_logits")


class Recording:
    """What was recorded so far."""

    def __init__(self, log: Rounds) -> None:
        self._log = log
        self._text = -1
        self._start = 0
        self._seed = STREAM
        self._ids: list[int] = []
        self.seed = STREAM

    @property
    def rounds(self) -> int:
        """Rounds that were verified."""
        return self._log.rounds

    @property
    def positions(self) -> int:
        """Positions that were logged."""
        return self._log.writer.positions

    def _add(
        self,
        candidate_input_ids: Any,
        candidate_logits: Any,
        count: int,
        new_logits: Any,
        result: tuple[Any, Any],
    ) -> None:
        if candidate_logits.shape[0] != 1:
            raise ValueError("one sequence at a time: assisted generation has a batch of 1")
        valid, matches = result
        ids = [int(x) for x in to_numpy(candidate_input_ids)[0]]
        before, drafts = ids[: len(ids) - count], ids[len(ids) - count :]
        outputs = [int(x) for x in to_numpy(valid)[0]]
        # What does not begin with all that came out before is another text.
        if self._text < 0 or before != self._ids:
            self._text += 1
            self._seed = self.seed
            self._start = len(before)
        accepted = int(matches)
        self._log.add(
            text=self._text,
            start=len(before) - self._start,
            target=to_numpy(new_logits)[0],
            draft=to_numpy(candidate_logits)[0],
            drafts=drafts,
            accepted=accepted,
            outputs=outputs,
            batch_size=1,
            seed=self._seed,
        )
        self._ids = before + outputs


def _name(model: Any) -> dict[str, str] | None:
    name = getattr(getattr(model, "config", None), "_name_or_path", None)
    if model is None:
        return None
    return {"name": str(name or type(model).__name__)}


@contextlib.contextmanager
def verified(seen: Callable[[Any, Any, int, Any, tuple[Any, Any]], object]) -> Iterator[None]:
    """Shows every verification to ``seen`` while the context is open: ``candidate_input_ids``,
    ``candidate_logits``, ``candidate_length`` and ``new_logits``, and the result, ``(valid_tokens,
    n_matches)``. For recordings of another form than a log."""
    utils = importlib.import_module(HOME)
    original = getattr(utils, FUNCTION)

    def wrapped(
        candidate_input_ids: Any,
        candidate_logits: Any,
        candidate_length: Any,
        new_logits: Any,
        *rest: Any,
        **more: Any,
    ) -> Any:
        result = original(
            candidate_input_ids, candidate_logits, candidate_length, new_logits, *rest, **more
        )
        seen(candidate_input_ids, candidate_logits, int(candidate_length), new_logits, result)
        return result

    setattr(utils, FUNCTION, wrapped)
    try:
        yield
    finally:
        setattr(utils, FUNCTION, original)


@contextlib.contextmanager
def _seeded(recording: Recording) -> Iterator[None]:
    """Notes the seed that PyTorch is given."""
    torch = sys.modules.get("torch")
    original = getattr(torch, "manual_seed", None)
    if torch is None or original is None:
        yield
        return

    def manual_seed(seed: Any) -> Any:
        recording.seed = seed_of(seed)
        return original(seed)

    torch.manual_seed = manual_seed  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch.manual_seed = original  # type: ignore[attr-defined]


@contextlib.contextmanager
def hf(
    model: Any = None,
    assistant: Any = None,
    *,
    out: PathLike,
    temperature: float = 1.0,
    dtype: str = "float32",
) -> Iterator[Recording]:
    """Writes the log ``out`` of the rounds that are verified while the context is open.

    ``model`` and ``assistant`` are named in the log. ``temperature`` is that of ``generate``,
    by which the rows are divided. Rows are kept as they are by float32, the default; float16
    halves the log, and its rounding is within an audit's tolerance.
    """
    said: dict[str, Any] = {"target": _name(model), "draft": _name(assistant)}
    said["rows_from"] = PROCESSED
    log = Rounds(
        out,
        applied=temperature,
        sampling=Sampling(temperature),
        dtype=dtype,
        metadata={key: value for key, value in said.items() if value is not None},
    )
    recording = Recording(log)
    try:
        with verified(recording._add), _seeded(recording):
            yield recording
    finally:
        log.close()
    if recording.rounds == 0:
        raise ValueError(
            "nothing was recorded: tokens have to be sampled (do_sample=True) by "
            "generate(assistant_model=..)"
        )
