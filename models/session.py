"""Runs a built graph with ONNX Runtime, with a cache and with padding on the left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime


class Session:
    """One graph; `cache` is the list of its past keys and values."""

    def __init__(self, path: Path, threads: int = 2) -> None:
        if not path.exists():
            raise SystemExit(f"{path.name}: not built yet; run `models/build {path.stem}` first")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.past = [i for i in self.session.get_inputs() if i.name.startswith("past_key_values.")]
        outputs = [o.name for o in self.session.get_outputs()]
        self.rows = ["logits", *(name for name in outputs if name.startswith("present."))]
        self.vocabulary = self.session.get_outputs()[0].shape[2]

    def empty_cache(self, batch: int) -> list[np.ndarray]:
        return [np.zeros((batch, i.shape[1], 0, i.shape[3]), np.float32) for i in self.past]

    def run(
        self, ids: np.ndarray, mask: np.ndarray, cache: list[np.ndarray]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """(logits, grown cache); `mask` covers the cached and the new positions."""
        positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, -ids.shape[1] :]
        feed = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
        feed |= {i.name: value for i, value in zip(self.past, cache, strict=True)}
        feed = {k: v if v.dtype == np.float32 else v.astype(np.int64) for k, v in feed.items()}
        found = self.session.run(self.rows, feed)
        return found[0], found[1 : len(self.rows)]

    def whole(self, tokens: list[int]) -> np.ndarray:
        """Logits [sequence, vocabulary] of one sequence without a cache."""
        ids = np.array([tokens])
        return self.run(ids, np.ones_like(ids), self.empty_cache(1))[0][0]


def pad_left(sequences: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """(ids, mask) of sequences of unequal length."""
    longest = max(map(len, sequences))
    ids = np.zeros((len(sequences), longest), np.int64)
    mask = np.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, longest - len(sequence) :] = sequence
        mask[row, longest - len(sequence) :] = 1
    return ids, mask
