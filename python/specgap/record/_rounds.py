"""Rounds of an engine to positions of a log; shared by all recorders."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._logs import LogWriter, PathLike

#: Names a folder for the logs of engines that are recorded by their plugins.
FOLDER = "SPECGAP_RECORD"

#: Positions after which a plugin's log is made durable.
_COMMIT_EVERY = 64


def to_numpy(tensor: Any) -> NDArray[Any]:
    """A tensor of any device and type, or an array, as a NumPy array."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach()
        if tensor.is_floating_point():
            tensor = tensor.float()
        return np.asarray(tensor.cpu().numpy())
    return np.asarray(tensor)


def log_rows(probabilities: NDArray[Any]) -> NDArray[np.float32]:
    """Logits whose softmax are these rows."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities.astype(np.float64)).astype(np.float32)


def certain(tokens: Sequence[int], vocabulary: int) -> NDArray[np.float32]:
    """Rows of drafts that are taken for certain."""
    rows = np.full((len(tokens), vocabulary), -np.inf, dtype=np.float32)
    rows[np.arange(len(tokens)), tokens] = 0.0
    return rows


class Rounds:
    """A log of rounds: K drafts are verified at once, m are accepted, and one more token comes.

    A round has rows of both models at its first min(m + 1, K) tokens, and these are logged; the
    token that follows K accepted drafts has no row of the draft model, and is not.
    """

    def __init__(
        self, path: PathLike, *, temperature: float, dtype: str, metadata: dict[str, Any]
    ) -> None:
        said = {
            "tool": "specgap.record",
            "temperature_applied": temperature,
            "sampling": {"temperature": temperature},
            **metadata,
        }
        self.writer = LogWriter(path, dtype=dtype, metadata=said)
        self.rounds = 0

    def add(
        self,
        *,
        text: int,
        start: int,
        target: NDArray[Any],
        draft: NDArray[Any],
        drafts: Sequence[int],
        accepted: int,
        outputs: Sequence[int],
        batch_size: int | None = None,
    ) -> None:
        """Logs one round. ``start`` is the index of its first token in the text; rows are
        logits, ``target`` of at least min(m + 1, K) and ``draft`` of K prefixes."""
        count = len(drafts)
        if not 0 <= accepted <= count or len(outputs) < min(accepted + 1, count):
            raise ValueError(
                f"a round of {count} drafts with {accepted} accepted put out {len(outputs)} tokens"
            )
        for place in range(min(accepted + 1, count)):
            output = int(outputs[place])
            self.writer.append(
                target_logits=target[place],
                draft_logits=draft[place],
                prompt_id=text,
                position=start + place,
                token=output,
                drafts=[int(x) for x in drafts] if place == 0 else [],
                accepted=accepted if place == 0 else -1,
                output=output,
                round=place,
                batch_size=batch_size,
            )
        self.rounds += 1

    def close(self) -> None:
        """Makes the log complete."""
        self.writer.close()


class Plugin:
    """A recorder that is switched on by the environment, in each process of an engine."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.lock = threading.Lock()
        self.log: Rounds | None = None
        self.next_text = 0
        self.committed = 0
        self.warned: set[str] = set()

    @property
    def folder(self) -> str | None:
        """Where logs go; None if nothing is to be recorded."""
        return os.environ.get(FOLDER) or None

    def warn(self, message: str) -> None:
        """Says something once."""
        if message not in self.warned:
            self.warned.add(message)
            print(f"specgap: recording {self.engine}: {message}", file=sys.stderr)

    def observe(self, record: Callable[[], None]) -> None:
        """Runs what records. An engine goes on whatever happens there."""
        try:
            with self.lock:
                record()
                log = self.log
                if log is not None and log.writer.positions - self.committed >= _COMMIT_EVERY:
                    log.writer.commit()
                    self.committed = log.writer.positions
        except Exception as error:  # noqa: BLE001
            self.warn(f"a round was not recorded: {error}")

    def add(self, **one: Any) -> None:
        """Logs a round as a text of its own: an engine's sampler does not know its requests."""
        if self.log is None:
            home = self.folder
            assert home is not None
            os.makedirs(home, exist_ok=True)
            # Rows are those that are drawn from, so that 1 is the temperature to look at.
            self.log = Rounds(
                os.path.join(home, f"{self.engine}-{os.getpid()}"),
                temperature=1.0,
                dtype="float32",
                metadata={"command": f"specgap.record of {self.engine}", "texts": "one a round"},
            )
            atexit.register(self.close)
        self.log.add(text=self.next_text, start=0, **one)
        self.next_text += 1

    def close(self) -> None:
        """Makes the log complete. What is recorded later begins another."""
        if self.log is not None:
            self.log.close()
            self.log = None
            self.committed = 0
