"""Records what transformers' assisted generation verifies, for `specgap import --from hf`.

    from record_transformers import record

    with record("rounds.npz") as calls:
        for ids in prompts:
            calls.next_text()
            model.generate(ids, assistant_model=draft, do_sample=True, max_new_tokens=64)

    specgap import --from hf rounds.npz --temperature 1.0 --out log

`transformers.generation.utils._speculative_sampling` is wrapped while the context is open. It
is called only where tokens are sampled: greedy assisted generation compares argmaxes and never
comes here. The rows are those that are drawn from, after temperature, top-k and top-p, so tell
`specgap import` the temperature. Two defaults that change what is measured:
`assistant_confidence_threshold` (0.4 stops a draft early) and `num_assistant_tokens` (20). With
`assistant_ensemble_weight` the output is not the target's law, by design.

Checked with transformers 5.23.0. Needs NumPy; rows are kept in memory as float32 until the
context closes, 4 V bytes each.
"""

import contextlib
import os

import numpy


class Calls:
    """The calls so far, under the names of the function's arguments and results."""

    def __init__(self):
        self.text = -1
        self.rows = {"candidate_logits": [], "new_logits": []}
        self.ids = {"candidate_input_ids": [], "valid_tokens": []}
        self.each = {"candidate_length": [], "n_matches": [], "prompt_id": []}

    def next_text(self):
        """What comes next belongs to another text."""
        self.text += 1

    def add(self, candidate_input_ids, candidate_logits, candidate_length, new_logits, result):
        valid_tokens, n_matches = result
        if candidate_logits.shape[0] != 1:
            raise ValueError("one sequence at a time: assisted generation has a batch of 1")
        length = int(candidate_length)
        self.rows["candidate_logits"].append(as_rows(candidate_logits[0, :length]))
        self.rows["new_logits"].append(as_rows(new_logits[0, : length + 1]))
        self.ids["candidate_input_ids"].append(as_ids(candidate_input_ids[0, -length:]))
        self.ids["valid_tokens"].append(as_ids(valid_tokens[0]))
        self.each["candidate_length"].append(length)
        self.each["n_matches"].append(int(n_matches))
        self.each["prompt_id"].append(max(self.text, 0))

    def save(self, path):
        """Writes the file whole or not at all."""
        if not self.each["candidate_length"]:
            raise ValueError("nothing was recorded: is do_sample=True, and assistant_model given?")
        arrays = {name: numpy.concatenate(rows) for name, rows in self.rows.items()}
        arrays |= {name: numpy.concatenate(ids) for name, ids in self.ids.items()}
        arrays |= {name: numpy.asarray(values, numpy.int64) for name, values in self.each.items()}
        unfinished = f"{os.fspath(path)}.unfinished"
        try:
            with open(unfinished, "wb") as file:
                numpy.savez(file, **arrays)
            os.replace(unfinished, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unfinished)
            raise


def as_rows(tensor):
    return tensor.detach().float().cpu().numpy()


def as_ids(tensor):
    return tensor.detach().cpu().numpy().astype(numpy.int64)


@contextlib.contextmanager
def record(path):
    """Wraps the function, and writes what it was called with when the context closes."""
    from transformers.generation import utils

    original = utils._speculative_sampling
    calls = Calls()

    def wrapped(candidate_input_ids, candidate_logits, candidate_length, new_logits, *rest, **more):
        result = original(
            candidate_input_ids, candidate_logits, candidate_length, new_logits, *rest, **more
        )
        calls.add(candidate_input_ids, candidate_logits, candidate_length, new_logits, result)
        return result

    utils._speculative_sampling = wrapped
    try:
        yield calls
    finally:
        utils._speculative_sampling = original
    calls.save(path)
