"""Logs: rows of a target and a draft model, position by position, read and written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._arrays import ArrayLike, as_single, integers, rows, typed
from ._parquet import is_parquet, open_parquet, write_parquet

PathLike: TypeAlias = "str | os.PathLike[str]"

#: The names that a log's rows may have.
_ROWS = tuple(
    f"{model}_{kind}" for model in ("target", "draft") for kind in ("logits", "probs", "logprobs")
)
_FLOATS = ("target_rest", "draft_rest", "head_acceptance", "head_overlap")


@dataclass(frozen=True)
class Row:
    """One position of a log."""

    #: The target's row, as it is logged: logits, probabilities or log probabilities.
    target: NDArray[np.float64]
    #: The draft's row; nan throughout where the log has none.
    draft: NDArray[np.float64]
    #: Ids of the tokens that the row lists; None if it has all.
    token_ids: NDArray[np.int64] | None
    prompt_id: int | None
    position: int | None
    #: The token that was drawn from the target.
    token: int | None
    #: The target's mass on tokens that the row does not list, at each of the metadata's
    #: ``rest_temperatures``; empty for a full row.
    target_rest: NDArray[np.float64]
    #: The same of the draft.
    draft_rest: NDArray[np.float64]
    #: What heads on the draft predict: that ``token`` is accepted, and the overlap of the rows.
    head_acceptance: float | None
    head_overlap: float | None

    @property
    def lacks_draft(self) -> bool:
        """Whether the log has no row of the draft here."""
        return bool(np.isnan(self.draft).all())


@dataclass(frozen=True)
class EngineRecord:
    """What an engine did at a position; None where the log does not say."""

    drafts: list[int]
    output: int | None
    accepted: int | None
    round: int | None
    batch_size: int | None
    #: The seed of the request's own random numbers; -1 where it draws from the engine's stream.
    seed: int | None


class Log:
    """Logged rows, of files or of arrays in memory. Rows are read where they lie."""

    def __init__(self, native: _native.Log) -> None:
        self._native = native

    @classmethod
    def open(
        cls,
        path: PathLike,
        *,
        vocabulary: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Log:
        """Opens a .safetensors or .npz file, or a folder with a log.json; with pyarrow also a
        .parquet file, a folder of such, or a URI of either that Arrow knows (``s3://..``).

        ``vocabulary`` keeps the first tokens of every row, where models differ by padding.
        ``metadata`` says of Parquet files what they do not say of themselves, such as
        ``{"vocabulary": 50257, "sampling": {"temperature": 1.0}}``. Their rows are decoded a
        row group at a time, when they are asked for.
        """
        name = os.fspath(path)
        if is_parquet(name):
            return cls(open_parquet(name, vocabulary=vocabulary, metadata=metadata))
        if metadata is not None:
            raise ValueError(f"metadata: {name} has its own; this is for Parquet files and arrays")
        return cls(_native.Log.open(name, vocabulary))

    @classmethod
    def of_arrays(
        cls,
        *,
        name: str = "arrays",
        vocabulary: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        **tensors: ArrayLike,
    ) -> Log:
        """A log of arrays, under the names of a log's tensors (docs/reference/log-format.md): target_logits
        and draft_logits (or target_probs, target_logprobs), and where they are there prompt_id,
        position, token, drafts, accepted, output, round, batch_size, seed, draft_row,
        token_ids ...

        Nothing is copied: of any strides, rows are read where they lie. They must not change
        while a call reads them. ``metadata`` is what a log says of itself, such as
        ``{"temperature_applied": 0.7}``.
        """
        held: list[tuple[str, NDArray[Any], str]] = []
        for key, array in tensors.items():
            if array is None:
                continue
            if key in _ROWS:
                held.append((key, *rows(array, key)))
            elif key in _FLOATS:
                held.append((key, *typed(array, key)))
            else:
                own = integers(array, key)
                held.append((key, own, own.dtype.name))
        text = json.dumps(dict(metadata or {}))
        return cls(_native.Log.held(name, held, text, vocabulary))

    @property
    def path(self) -> str:
        """The file or folder; the name, of arrays."""
        return os.fspath(self._native.path)

    @property
    def positions(self) -> int:
        """How many positions it has: N."""
        return self._native.positions

    @property
    def vocabulary(self) -> int:
        """How many tokens there are: V."""
        return self._native.vocabulary

    @property
    def listed(self) -> int:
        """Tokens that a row lists: V for full rows."""
        return self._native.listed

    @property
    def dtypes(self) -> tuple[str, str]:
        """The types of the target's and of the draft's rows."""
        return self._native.dtypes

    @property
    def metadata(self) -> dict[str, Any]:
        """What the log says of itself."""
        said: dict[str, Any] = json.loads(self._native.metadata())
        return said

    def row(self, index: int) -> Row:
        """One position, by its number from 0; negative numbers count from the end."""
        if not -self.positions <= index < self.positions:
            raise IndexError(f"position {index} of a log of {self.positions}")
        index %= self.positions
        ids, target, draft, numbers, rests, heads = self._native.row(index)
        prompt, position, token = numbers
        return Row(
            target=target,
            draft=draft,
            token_ids=ids if len(ids) else None,
            prompt_id=prompt,
            position=position,
            token=token,
            target_rest=rests[0],
            draft_rest=rests[1],
            head_acceptance=heads[0],
            head_overlap=heads[1],
        )

    def engine_records(self) -> list[EngineRecord]:
        """What an engine did, position by position."""
        return [EngineRecord(drafts, *numbers) for drafts, numbers in self._native.engine()]

    def write_parquet(
        self, path: PathLike, *, row_group: int = 1024, compression: str = "snappy"
    ) -> None:
        """Writes the log as one Parquet file, whole or not at all, with what the log says of
        itself in the file's metadata. :meth:`open` reads it again; needs pyarrow.

        Rows are lists, in row groups of ``row_group`` positions, of which a reader holds a few
        at a time. Rows of bfloat16 become float32, exactly. Rollouts are not written.
        """
        write_parquet(self, os.fspath(path), row_group=row_group, compression=compression)

    def __len__(self) -> int:
        return self.positions

    def __iter__(self) -> Iterator[Row]:
        return (self.row(index) for index in range(self.positions))

    def __repr__(self) -> str:
        return f"Log({self.path!r}, positions={self.positions}, vocabulary={self.vocabulary})"


#: A log: its path, the log itself, or arrays under the names of its tensors.
LogLike: TypeAlias = "str | os.PathLike[str] | Log | Mapping[str, Any]"


def opened(
    log: LogLike, vocabulary: int | None = None, metadata: Mapping[str, Any] | None = None
) -> Log:
    """The log that is meant."""
    if isinstance(log, Log):
        if vocabulary is not None and vocabulary != log._native.kept:
            raise ValueError("vocabulary: say it where the log is opened")
        if metadata is not None:
            raise ValueError("metadata: say it where the log is opened")
        return log
    if isinstance(log, Mapping):
        return Log.of_arrays(vocabulary=vocabulary, metadata=metadata, **log)
    if isinstance(log, (str, os.PathLike)):
        return Log.open(log, vocabulary=vocabulary, metadata=metadata)
    raise TypeError(
        "a log is a path, a specgap.Log, or a dict of arrays such as {'target_logits': .., "
        f"'draft_logits': ..}}; this is {type(log).__name__}"
    )


class LogWriter:
    """Writes a log, a folder of shards with a log.json, that survives being killed.

    >>> import numpy as np, tempfile, os
    >>> import specgap as sg
    >>> folder = os.path.join(tempfile.mkdtemp(), "log")
    >>> with sg.LogWriter(folder) as log:
    ...     log.append(target_logits=[0., 1.], draft_logits=[1., 0.], prompt_id=0, token=1)
    >>> sg.Log.open(folder).positions
    1
    """

    def __init__(
        self,
        path: PathLike,
        *,
        vocabulary: int | None = None,
        dtype: str = "float16",
        metadata: Mapping[str, Any] | None = None,
        top: int | None = None,
        rest_temperatures: Sequence[float] = (1.0,),
        shard_bytes: int = 64 << 20,
        resume: bool = False,
    ) -> None:
        """``dtype`` is that of the rows: float16, bfloat16, float32 or float64. ``top`` keeps
        the likeliest tokens of both models alone, with the mass of the others at
        ``rest_temperatures``. ``resume`` goes on with a log that is there. ``vocabulary`` is
        that of the first row, if not given."""
        self._path = os.fspath(path)
        self._layout = (dtype, json.dumps(dict(metadata or {})))
        self._top = (top, list(rest_temperatures), shard_bytes, resume)
        self._writer: _native.LogWriter | None = None
        self._next: dict[int, int] = {}
        self._closed_at: int | None = None
        if vocabulary is not None:
            self._begin(vocabulary)

    def _begin(self, vocabulary: int) -> _native.LogWriter:
        if self._writer is None:
            dtype, metadata = self._layout
            self._writer = _native.LogWriter(self._path, vocabulary, dtype, metadata, *self._top)
        return self._writer

    def append(
        self,
        *,
        target_logits: ArrayLike,
        draft_logits: ArrayLike | None,
        prompt_id: int = 0,
        token: int | None = None,
        position: int | None = None,
        drafts: Sequence[int] = (),
        accepted: int | None = None,
        output: int | None = None,
        round: int | None = None,
        batch_size: int | None = None,
        seed: int | None = None,
    ) -> None:
        """Adds a position: both models' logits on the same prefix.

        ``draft_logits`` is None where the draft has no row, as behind drafts that were all
        accepted. ``token`` is the one that was drawn from the target. ``position`` counts the positions
        of each prompt, if not given. What an engine did there: ``drafts``, how many were
        ``accepted`` of those that start there (-1 where no round starts), its ``output``, how
        far into its ``round`` the position is, the ``batch_size``, and the ``seed`` of the
        request's own random numbers (-1 where it draws from one stream of the engine).

        Raises ``ValueError``, and adds nothing, for tokens outside the vocabulary and rows that
        are none: NaN, +inf, -inf at all tokens; and as soon as two rows show it, for rows that
        are probabilities, negative log-likelihoods or logarithms to base 2 or 10.
        """
        target = as_single(target_logits, "target_logits")
        draft = None if draft_logits is None else as_single(draft_logits, "draft_logits")
        writer = self._begin(len(target))
        if position is None:
            position = self._next.get(prompt_id, 0)
        writer.append(
            target,
            draft,
            prompt_id,
            position,
            -1 if token is None else token,
            [int(one) for one in drafts],
            output,
            accepted,
            round,
            batch_size,
            seed,
        )
        self._next[prompt_id] = position + 1

    @property
    def positions(self) -> int:
        """Positions that were appended."""
        if self._writer is not None and self._closed_at is None:
            return self._writer.positions
        return self._closed_at or 0

    def commit(self) -> None:
        """Makes everything appended so far part of the log, for good."""
        if self._writer is not None:
            self._writer.commit()

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Says what the log says of itself; written by the next commit."""
        text = json.dumps(dict(metadata))
        if self._writer is None:
            self._layout = (self._layout[0], text)
        else:
            self._writer.set_metadata(text)

    def close(self) -> None:
        """Commits, and lets go of the folder. Nothing can be added after it."""
        if self._writer is not None and self._closed_at is None:
            self._closed_at = self._writer.positions
            self._writer.close()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What was appended before an error is data too.
        self.close()
