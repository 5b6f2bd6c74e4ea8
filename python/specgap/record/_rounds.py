"""Rounds of an engine to positions of a log; shared by all recorders."""

from __future__ import annotations

import atexit
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._logs import LogWriter, PathLike

#: Names a folder for the logs of engines that are recorded by their plugins.
FOLDER = "SPECGAP_RECORD"

#: Positions after which a plugin's log is made durable.
_COMMIT_EVERY = 64


#: Whose the target's rows are, as a log says it: the engine's behind its own temperature and
#: truncation, or its raw logits.
PROCESSED, RAW = "engine-processed", "engine-raw"

#: The seed of requests that draw from one stream of the engine.
STREAM = -1

#: Reasons that are told apart; there may be as many messages as rounds.
_MOST_REASONS = 20


def seed_of(number: int) -> int:
    """A seed of up to 64 bits as a log has it."""
    return min(int(number) & (2**63 - 1), 2**63 - 2)


@dataclass(frozen=True)
class Sampling:
    """What a request asks for."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    cut_order: str | None = None

    def said(self) -> dict[str, Any]:
        """As a log's metadata has it."""
        return {key: value for key, value in vars(self).items() if value is not None}


class Missing:
    """Rounds that are not in a log, by reason."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()

    def add(self, reason: str) -> None:
        """Counts one. Numbers of a message do not make another reason."""
        reason = re.sub(r"\d+", "N", reason)
        if reason not in self.reasons and len(self.reasons) >= _MOST_REASONS:
            reason = "other reasons"
        self.reasons[reason] += 1

    def said(self) -> dict[str, Any]:
        """As a log's metadata has it."""
        return {"count": self.reasons.total(), "reasons": dict(self.reasons)}


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

    A round has rows of both models at its first min(m + 1, K) tokens, and these are logged. The
    token that follows K accepted drafts has no row of the draft model: it is logged where the
    target's row is given, and the log says that the draft's is missing.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        applied: float,
        sampling: Sampling,
        dtype: str,
        metadata: dict[str, Any],
    ) -> None:
        self.said = {
            "tool": "specgap.record",
            "temperature_applied": applied,
            "sampling": sampling.said(),
            **metadata,
        }
        self.writer = LogWriter(path, dtype=dtype, metadata=self.said)
        self.rounds = 0

    def say(self, **more: Any) -> None:
        """Says more of the log; written by the next commit."""
        if any(self.said.get(key) != value for key, value in more.items()):
            self.said |= more
            self.writer.set_metadata(self.said)

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
        seed: int | None = None,
    ) -> None:
        """Logs one round. ``start`` is the index of its first token in the text; rows are
        logits, ``target`` of at least min(m + 1, K) prefixes, K + 1 for the token that follows
        K accepted drafts, and ``draft`` of K."""
        count = len(drafts)
        if not 0 <= accepted <= count or len(outputs) < min(accepted + 1, count):
            raise ValueError(
                f"a round of {count} drafts with {accepted} accepted put out {len(outputs)} tokens"
            )
        # A round is in the log as a whole or not at all.
        put_out = min(accepted + 1, count)
        bonus = accepted == count and len(outputs) > count and len(target) > count
        kept = put_out + int(bonus)
        for model, rows in (("target", target), ("draft", draft)):
            for row in np.asarray(rows[:kept], dtype=np.float64):
                if np.isnan(row).any() or not np.isfinite(row.max()):
                    wrong = "nan" if np.isnan(row).any() else "inf"
                    raise ValueError(f"a row of the {model} has {wrong}")
        for place in range(kept):
            output = int(outputs[place])
            self.writer.append(
                target_logits=target[place],
                draft_logits=draft[place] if place < put_out else None,
                prompt_id=text,
                position=start + place,
                token=output,
                drafts=[int(x) for x in drafts] if place == 0 else [],
                accepted=accepted if place == 0 else -1,
                output=output,
                round=place,
                batch_size=batch_size,
                seed=seed,
            )
        self.rounds += 1

    def close(self) -> None:
        """Makes the log complete."""
        self.writer.close()


class Plugin:
    """A recorder that is switched on by the environment, in each process of an engine.

    A log has one sampling, so that there is a log for each that is asked for: ``ENGINE-PID``,
    ``ENGINE-PID-2`` ... Each says how many rounds of the process are in none of them, and why.
    """

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.lock = threading.Lock()
        self.logs: dict[tuple[Sampling, str], Rounds] = {}
        self.begun = 0
        self.next_text = 0
        self.committed = 0
        self.warned: set[str] = set()
        self.lost = Missing()
        self.not_comparable = Missing()

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
                positions = sum(log.writer.positions for log in self.logs.values())
                if positions - self.committed >= _COMMIT_EVERY:
                    self._say()
                    for log in self.logs.values():
                        log.writer.commit()
                    self.committed = positions
        except Exception as error:  # noqa: BLE001
            self.lose(error)

    def lose(self, error: Exception) -> None:
        """Counts a round that could not be recorded."""
        self.lost.add(str(error) or type(error).__name__)
        self.warn(f"a round was not recorded: {error}")

    def leave_out(self, reason: str) -> None:
        """Counts a round whose p does not follow from its rows and the sampling."""
        self.not_comparable.add(reason)
        self.warn(f"rounds are left out, because p does not follow from their rows: {reason}")

    def text(self) -> int:
        """The number of a new text."""
        self.next_text += 1
        return self.next_text - 1

    def add(
        self,
        *,
        sampling: Sampling = Sampling(),
        rows_from: str = PROCESSED,
        text: int | None = None,
        start: int = 0,
        **one: Any,
    ) -> None:
        """Logs a round; as a text of its own, where the engine does not say whose it is."""
        try:
            log = self._log(sampling, rows_from)
            log.add(text=self.text() if text is None else text, start=start, **one)
        except Exception as error:  # noqa: BLE001
            self.lose(error)

    def _log(self, sampling: Sampling, rows_from: str) -> Rounds:
        known = self.logs.get((sampling, rows_from))
        if known is not None:
            return known
        home = self.folder
        assert home is not None
        os.makedirs(home, exist_ok=True)
        self.begun += 1
        number = f"-{self.begun}" if self.begun > 1 else ""
        log = Rounds(
            os.path.join(home, f"{self.engine}-{os.getpid()}{number}"),
            applied=1.0,
            sampling=sampling,
            dtype="float32",
            metadata={"command": f"specgap.record of {self.engine}", "rows_from": rows_from},
        )
        if not self.logs:
            atexit.register(self.close)
        self.logs[sampling, rows_from] = log
        return log

    def _say(self) -> None:
        missing = {"lost_rounds": self.lost, "not_comparable": self.not_comparable}
        for log in self.logs.values():
            log.say(**{key: one.said() for key, one in missing.items()})

    def close(self) -> None:
        """Makes the logs complete. What is recorded later begins others."""
        self._say()
        for log in self.logs.values():
            log.close()
        self.logs = {}
        self.committed = 0
