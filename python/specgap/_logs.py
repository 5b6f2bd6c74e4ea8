"""Logs: rows of a target and a draft model, position by position, read and written."""

from __future__ import annotations

import difflib
import json
import math
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._arrays import ArrayLike, as_single, integers, rows, typed
from ._errors import Refused
from ._parquet import KNOWN, is_parquet, open_parquet, write_parquet
from ._tables import arrow_table, is_table, open_table

PathLike: TypeAlias = "str | os.PathLike[str]"

#: The names that a log's rows may have.
_ROWS = tuple(
    f"{model}_{kind}" for model in ("target", "draft") for kind in ("logits", "probs", "logprobs")
)
#: Tensors of floating point beside them.
_FLOATS = (
    "target_rest", "draft_rest", "head_acceptance", "head_overlap",
    "hit", "p_hit", "max_q", "overlap", "coverage",
)  # fmt: skip


#: Files of other kinds, and how they become logs.
_FOREIGN = {
    ".npy": "numpy.load both models' rows: gap(target, draft)",
    ".jsonl": "read it and give Log.of_lists; exports of engines go through specgap import",
    ".arrow": "read it by pyarrow or datasets, and give the table",
} | dict.fromkeys(
    (".pt", ".pth", ".bin"), "torch.load it and give the dict of its tensors, such as target_logits"
)


def is_foreign(path: str) -> bool:
    """Whether this is a file of another kind, by its name."""
    return os.path.splitext(path)[1] in _FOREIGN


@dataclass(frozen=True)
class Row:
    """One position of a log.

    - ``target``: The target's row, as it is logged: logits, probabilities or log probabilities.
    - ``draft``: The draft's row; nan throughout where the log has none.
    - ``token_ids``: Ids of the tokens that the row lists; None if it has all.
    - ``prompt_id``, ``position``: The text it is of, and the place in it.
    - ``token``: The token that was drawn from the target.
    - ``target_rest``: The target's mass on tokens that the row does not list, at each of the
      metadata's ``rest_temperatures``; empty for a full row.
    - ``draft_rest``: The same of the draft.
    - ``head_acceptance``, ``head_overlap``: What heads on the draft predict: that ``token`` is
      accepted, and the overlap of the rows.
    """

    target: NDArray[np.float64]
    draft: NDArray[np.float64]
    token_ids: NDArray[np.int64] | None
    prompt_id: int | None
    position: int | None
    token: int | None
    target_rest: NDArray[np.float64]
    draft_rest: NDArray[np.float64]
    head_acceptance: float | None
    head_overlap: float | None

    @property
    def lacks_draft(self) -> bool:
        """Whether the log has no row of the draft here."""
        return bool(np.isnan(self.draft).all())


class Served(NamedTuple):
    """Positions as rules see them, [M, V]: probabilities that sum to 1, 0 where a cut leaves nothing, NaN
    where the log has no row of the draft."""

    p: NDArray[np.float64]
    q: NDArray[np.float64]
    #: Of rows that list tokens, the ids of entries, [M, listed], -1 behind the last; None of full rows.
    token_ids: NDArray[np.int64] | None


@dataclass(frozen=True)
class EngineRecord:
    """What an engine did at a position; None where the log does not say.

    - ``drafts``: Tokens that were drafted for it and behind it, -1 where there are fewer.
    - ``output``: The token that was put out.
    - ``accepted``: How many drafts were accepted of those that start here; -1 where no round does.
    - ``round``: How far into its round the position is.
    - ``batch_size``: Requests of the engine's batch.
    - ``seed``: The seed of the request's own random numbers; -1 where it draws from the engine's
      stream.
    """

    drafts: list[int]
    output: int | None
    accepted: int | None
    round: int | None
    batch_size: int | None
    seed: int | None


class Log:
    """Logged rows, of files or of arrays in memory. Rows are read where they lie. ``Log(path)`` is
    :meth:`open`."""

    def __init__(
        self, native: _native.Log | PathLike, again: tuple[Callable[..., Log], Any] | None = None
    ) -> None:
        if isinstance(native, (str, os.PathLike)):
            native, again = _opened(native, None, None)
        self._native = native
        #: What opens it anew, and what of.
        self._again = again

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
        return cls(*_opened(path, vocabulary, metadata))

    @classmethod
    def of_table(
        cls,
        table: Any,
        *,
        name: str = "table",
        vocabulary: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Log:
        """A log of a table in memory: a frame of pandas or polars, a table of pyarrow, a dataset
        of Hugging Face, or whatever has ``__arrow_c_stream__``. Needs pyarrow.

        Columns are those of Parquet files: lists under the names of a log's tensors, such as
        ``target_logprobs``, ``draft_logprobs`` and ``token_ids``, one a position; others are not
        looked at. Lists may be of unequal length. ``metadata`` is as :meth:`open` takes it; of
        lists it has to say the ``vocabulary``.
        """
        return _of_table(arrow_table(table), name, vocabulary, metadata)

    @classmethod
    def of_lists(
        cls,
        *,
        target: Sequence[Mapping[int, float]],
        draft: Sequence[Mapping[int, float] | None],
        vocabulary: int,
        rows: str = "logprobs",
        name: str = "lists",
        metadata: Mapping[str, Any] | None = None,
        **tensors: ArrayLike,
    ) -> Log:
        """A log of what engines return as top tokens: of each position a dict from token to log
        probability, of the target and of the draft, of any lengths.

        ``vocabulary`` is V, ``rows`` what the numbers are: ``logprobs`` (to base e) or ``probs``.
        A draft that is None has no row there. ``tensors`` are the others of :meth:`of_arrays`,
        such as ``prompt_id`` and ``token``. What a list leaves out of 1 is the mass of the tokens
        that it does not name. Raises :class:`specgap.Refused` for tokens outside V, with their row.

        >>> import specgap as sg
        >>> log = sg.Log.of_lists(
        ...     target=[{3: -0.2, 1: -2.5}], draft=[{3: -0.1}], vocabulary=5, token=[3]
        ... )
        >>> log.row(0).token_ids.tolist(), log.vocabulary
        ([1, 3], 5)
        """
        if rows not in ("logprobs", "probs"):
            raise Refused(f"rows: {rows!r} is not known; numbers of lists are logprobs or probs")
        if len(target) != len(draft):
            raise Refused(
                f"draft: has {len(draft)} positions and target {len(target)}; give one list of "
                "both for each, or None where the draft has none"
            )
        given = [one is not None for one in draft]
        listed: dict[str, ArrayLike] = {}
        # A row that is not there is nan, of some token.
        drafts = [{0: math.nan} if one is None else one for one in draft]
        for model, lists in (("target", target), ("draft", drafts)):
            listed |= _padded(model, rows, lists, vocabulary)
        if not all(given):
            listed["draft_row"] = np.array(given, dtype=np.int64)
        said = {**(metadata or {}), "vocabulary": vocabulary}
        return cls.of_arrays(name=name, metadata=said, **listed, **tensors)

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
        and draft_logits (or target_probs, target_logprobs), and where they are there prompt_id
        (strings too), position, token, drafts, accepted, output, round, batch_size, seed, draft_row,
        token_ids, group (names too) ...

        Of a draft whose rows depend on where its round began, ``draft_logits`` is [N, K, V]: entry
        (s, j) is its row for the token at position s + j in a round that starts at s, given the
        text's tokens before. ``d2t`` [Vd] says which tokens a draft of Vd tokens has: i + d2t[i].

        Nothing is copied: of any strides, rows are read where they lie. They must not change
        while a call reads them. ``metadata`` is what a log says of itself, such as
        ``{"temperature_applied": 0.7}``.
        """
        held: list[tuple[str, NDArray[Any], str]] = []
        for key, array in tensors.items():
            if array is None:
                continue
            if key == "group":
                array, named = _numbered(array)
                metadata = {**(metadata or {}), **named}
            if key.startswith("draft_") and getattr(array, "ndim", 0) == 3:
                held.append(_by_depth(array, key))
            elif key in _ROWS:
                held.append((key, *rows(array, key)))
            elif key in _FLOATS:
                held.append((key, *typed(array, key)))
            elif key == "allowed":  # truth values are bytes of 0 and 1
                own, _ = typed(array, key)
                own = own.view(np.uint8) if own.dtype == np.bool_ else own
                held.append((key, own, own.dtype.name))
            else:
                own, dtype = typed(array, key)
                if key not in KNOWN and own.dtype.kind not in "iu":
                    raise _no_tensor(key)
                own = integers(array, key)
                held.append((key, own, own.dtype.name))
        return _of_arrays(name, held, json.dumps(dict(metadata or {})), vocabulary)

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
    def depths(self) -> int:
        """K: rows of the draft that a position has, one for each depth of a round; 1 as a rule."""
        return self._native.depths

    @property
    def depth(self) -> int:
        """Which of them is read, from 1."""
        return self._native.depth

    def at_depth(self, depth: int) -> Log:
        """The same positions with the draft's rows at a depth, from 1 to :attr:`depths`: that of
        position t is the row which a round that began at t - depth + 1 has for it. The first
        depth - 1 positions of every text have none. ``gap(log.at_depth(2))`` measures it.

        >>> import numpy as np, specgap as sg
        >>> log = sg.Log.of_arrays(
        ...     target_logits=np.zeros((2, 2)), prompt_id=[0, 0], position=[0, 1],
        ...     draft_logits=np.array([[[1.0, 0], [2, 0]], [[3, 0], [4, 0]]]),
        ... )
        >>> log.depths, log.row(1).draft.tolist(), log.at_depth(2).row(1).draft.tolist()
        (2, [3.0, 0.0], [2.0, 0.0])
        """
        return Log(self._native.at_depth(depth), (_at_depth_again, (self, depth)))

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

    def served(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        cut_order: str | None = None,
    ) -> Served:
        """Positions ``start`` to ``stop`` as rules see them, at a temperature and cut as :func:`gap` cuts
        rows; as the log's text was sampled if nothing is said.

        Raises :class:`Refused` where rows list some tokens and others can be drawn. O(V) numbers a
        position are held, so ask for some positions at a time of a long log.

        >>> import numpy as np
        >>> import specgap as sg
        >>> rows = np.log(np.random.default_rng(0).dirichlet(np.ones(20), 8))
        >>> log = sg.Log.of_arrays(target_logits=rows[:4], draft_logits=rows[4:])
        >>> some = log.served(0, 2, temperature=1.0, top_k=3)
        >>> some.p.shape, (some.p > 0).sum(axis=1).tolist(), some.token_ids is None
        ((2, 20), [3, 3], True)
        """
        from ._reports import _asked, _of_logs, serving

        first, last, _ = slice(start, stop).indices(self.positions)
        said = {"top_k": top_k, "top_p": top_p, "min_p": min_p, "cut_order": cut_order}
        at, cuts = serving(self, temperature, said)
        asked = _of_logs(_asked(1, at, verifiers=[], **cuts), [self])
        p, q, ids = _native.served(self._native, asked["options"], first, max(first, last))
        p, q = (one / one.sum(axis=1, keepdims=True) for one in (p, q))
        return Served(p, q, ids)

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

    def called(self, name: str) -> Log:
        """The same log under another name, by which reports call it."""
        return Log(self._native.called(name), (_called_again, (self, name)))

    def __reduce__(self) -> tuple[Any, ...]:
        """By its path and what was said of it; arrays and tables go as they are."""
        if self._again is None:
            raise TypeError(f"cannot pickle {self!r}: it was not made by open, or of arrays")
        return self._again

    def __len__(self) -> int:
        return self.positions

    def __iter__(self) -> Iterator[Row]:
        return (self.row(index) for index in range(self.positions))

    def __repr__(self) -> str:
        return f"Log({self.path!r}, positions={self.positions}, vocabulary={self.vocabulary})"


def _opened(
    path: PathLike, vocabulary: int | None, metadata: Mapping[str, Any] | None
) -> tuple[_native.Log, tuple[Callable[..., Log], Any]]:
    name = os.fspath(path)
    if is_foreign(name) and os.path.exists(name):
        cure = _FOREIGN[os.path.splitext(name)[1]]
        raise Refused(f"{name}: is no log, which is .safetensors, .npz or a folder; {cure}")
    if is_parquet(name):
        native = open_parquet(name, vocabulary=vocabulary, metadata=metadata)
    elif metadata is not None:
        raise ValueError(
            f"metadata: goes with Parquet files and arrays; of {name} it is metadata of log.json, or of the "
            f"file itself (docs/reference/log-format.md)"
        )
    else:
        native = _native.Log.open(name, vocabulary)
    return native, (_opened_again, (name, vocabulary, metadata))


def _opened_again(path: str, vocabulary: int | None, metadata: Mapping[str, Any] | None) -> Log:
    return Log.open(path, vocabulary=vocabulary, metadata=metadata)


def _of_arrays(
    name: str, held: list[tuple[str, NDArray[Any], str]], metadata: str, vocabulary: int | None
) -> Log:
    native = _native.Log.held(name, held, metadata, vocabulary)
    return Log(native, (_of_arrays, (name, held, metadata, vocabulary)))


def _of_table(
    table: Any, name: str, vocabulary: int | None, metadata: Mapping[str, Any] | None
) -> Log:
    native = open_table(table, name=name, vocabulary=vocabulary, metadata=metadata)
    return Log(native, (_of_table, (table, name, vocabulary, metadata)))


def _at_depth_again(log: Log, depth: int) -> Log:
    return log.at_depth(depth)


def _numbered(groups: ArrayLike) -> tuple[ArrayLike, dict[str, Any]]:
    """Groups as numbers, and their names where they have names."""
    if hasattr(groups, "is_cuda"):
        # A tensor, which has no names.
        return groups, {}
    array = np.asarray(groups)
    if array.dtype.kind not in "UO":
        return groups, {}
    names, numbers = np.unique(array.astype(str), return_inverse=True)
    return numbers.reshape(array.shape).astype(np.int64), {"groups": names.tolist()}


def _by_depth(array: Any, name: str) -> tuple[str, NDArray[Any], str]:
    """What a draft says at each depth, [N, K, ..]: rows that lie behind one another."""
    own, dtype = typed(array, name)
    if name.endswith("_ids"):
        own = integers(array, name)
        dtype = own.dtype.name
    if own.shape[0] > 1 and own.strides[0] != own.strides[1] * own.shape[1]:
        own = np.ascontiguousarray(own)
    return name, own, dtype


def _called_again(log: Log, name: str) -> Log:
    return log.called(name)


def _no_tensor(name: str) -> Refused:
    near = difflib.get_close_matches(name, sorted(KNOWN), n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return Refused(
        f"no such tensor: {name}; rows are target_logits and draft_logits, or .._probs or "
        f".._logprobs, and prompt_id, position, token .. say more of them{meant}",
        name,
    )


def _entries(given: Mapping[int, float] | None) -> tuple[list[int], NDArray[np.float32]]:
    """A list as tokens and numbers; none of a model that has no row."""
    tokens = [operator.index(token) for token in given or {}]
    for token in tokens:
        if not 0 <= token < 1 << 32:
            raise Refused(f"token {token} is outside the vocabulary; tokens are at least 0")
    return tokens, np.array(list((given or {}).values()), dtype=np.float32)


def _padded(
    model: str, kind: str, lists: Sequence[Mapping[int, float]], vocabulary: int
) -> dict[str, ArrayLike]:
    """Lists of a model as two matrices as wide as the longest: ids, -1 behind them, and rows."""
    width = max((len(one) for one in lists), default=0)
    ids = np.full((len(lists), max(width, 1)), -1, dtype=np.int64)
    numbers = np.zeros(ids.shape)
    for row, one in enumerate(lists):
        tokens = np.fromiter(one.keys(), dtype=np.int64, count=len(one))
        outside = np.flatnonzero((tokens < 0) | (tokens >= vocabulary))
        if len(outside):
            column = int(outside[0])
            raise Refused(
                f"{model}: row {row}: token {tokens[column]} is outside the vocabulary of "
                f"{vocabulary}; tokens are 0 .. {vocabulary - 1}",
                model,
                row,
                column,
            )
        ids[row, : len(one)] = tokens
        numbers[row, : len(one)] = np.fromiter(one.values(), dtype=np.float64, count=len(one))
    return {f"{model}_token_ids": ids, f"{model}_{kind}": numbers}


#: A log: its path, the log itself, arrays under the names of its tensors, or a table.
LogLike: TypeAlias = "str | os.PathLike[str] | Log | Mapping[str, Any] | SupportsArrow"


class SupportsArrow(Protocol):
    """A table that hands over Arrow's C stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


def is_one(logs: object) -> bool:
    """Whether this is a log, and not several."""
    return (
        isinstance(logs, (str, os.PathLike, Log)) or is_table(logs)
    ) or (isinstance(logs, Mapping) and not is_named(logs))


def is_named(logs: object) -> bool:
    """Whether these are logs by name, and not the arrays of one."""
    return (
        isinstance(logs, Mapping)
        and len(logs) > 0
        and not any(name in KNOWN for name in logs)
        and all(is_one(log) for log in logs.values())
    )


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
    if is_table(log):
        return Log.of_table(log, vocabulary=vocabulary, metadata=metadata)
    raise TypeError(
        "a log is a path, a specgap.Log, a table with columns of lists, or a dict of arrays such "
        f"as {{'target_logits': .., 'draft_logits': ..}}; this is {type(log).__name__}"
    )


def each_opened(
    logs: Any, vocabulary: int | None, metadata: Mapping[str, Any] | None = None
) -> list[Log]:
    """The logs that are meant: of one, of several, or of several by name."""
    if is_named(logs):
        named = logs.items()
        return [opened(log, vocabulary, metadata).called(name) for name, log in named]
    if is_one(logs):
        return [opened(logs, vocabulary, metadata)]
    if hasattr(logs, "dtype"):
        raise TypeError("rows of the target alone; give those of the draft too: gap(target, draft)")
    if not isinstance(logs, Iterable):
        # Says what a log is.
        return [opened(logs, vocabulary, metadata)]
    return [opened(log, vocabulary, metadata) for log in logs]


#: Of a model whose row is not given, which is an error; None says that there is none.
_UNSAID: Any = object()


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
        lists: bool = False,
    ) -> None:
        """``dtype`` is that of full rows: float16, bfloat16, float32 or float64. ``top`` keeps
        the likeliest tokens of both models alone, with the mass of the others at
        ``rest_temperatures``. ``lists``: positions are the lists of tokens that an engine returns,
        in float32. ``resume`` goes on with a log that is there. ``vocabulary`` is that of the
        first row, if not given; lists do not tell it."""
        if lists and (vocabulary is None or top is not None):
            raise Refused(
                "lists: are of the tokens that they name, of a vocabulary that they do not; give "
                "vocabulary, and no top"
            )
        self._path = os.fspath(path)
        self._layout = (dtype, json.dumps(dict(metadata or {})))
        self._top = (top, list(rest_temperatures), shard_bytes, resume, lists)
        self._lists = lists
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
        target_logits: ArrayLike = _UNSAID,
        draft_logits: ArrayLike | None = _UNSAID,
        target_logprobs: Mapping[int, float] = _UNSAID,
        draft_logprobs: Mapping[int, float] | None = _UNSAID,
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
        """Adds a position: both models' logits on the same prefix, or, in a log of ``lists``, dicts
        from token to natural logarithm of its probability, as :meth:`Log.of_lists` takes them.

        ``draft_logits`` (``draft_logprobs``) is None where the draft has no row, as behind drafts that were all
        accepted. ``token`` is the one that was drawn from the target. ``position`` counts the positions
        of each prompt, if not given. What an engine did there: ``drafts``, how many were
        ``accepted`` of those that start there (-1 where no round starts), its ``output``, how
        far into its ``round`` the position is, the ``batch_size``, and the ``seed`` of the
        request's own random numbers (-1 where it draws from one stream of the engine).

        Raises ``ValueError``, and adds nothing, for tokens outside the vocabulary and rows that
        are none: NaN, +inf, -inf at all tokens; and as soon as two rows show it, for rows that
        are probabilities, negative log-likelihoods or logarithms to base 2 or 10.
        """
        full, listed = (target_logits, draft_logits), (target_logprobs, draft_logprobs)
        wanted, others = (listed, full) if self._lists else (full, listed)
        if any(one is _UNSAID for one in wanted) or any(one is not _UNSAID for one in others):
            raise TypeError(
                "a log of lists takes target_logprobs and draft_logprobs, which may be None"
                if self._lists
                else "a log of full rows takes target_logits and draft_logits, which may be None; for "
                "lists of tokens say LogWriter(.., vocabulary=V, lists=True)"
            )
        ids, draft = None, None
        if self._lists:
            (of_target, target), (of_draft, draft) = map(_entries, (target_logprobs, draft_logprobs))
            ids, size = (of_target, of_draft), 0
        else:
            target = as_single(target_logits, "target_logits")
            if draft_logits is not None:
                draft = as_single(draft_logits, "draft_logits")
            size = len(target)
        writer = self._begin(size)
        wholes = {
            "prompt_id": prompt_id, "position": position, "token": token, "accepted": accepted,
            "output": output, "round": round, "batch_size": batch_size, "seed": seed,
        }  # fmt: skip
        for name, value in wholes.items():
            is_whole = isinstance(value, (int, np.integer)) and -(1 << 63) <= value < 1 << 63
            if value is not None and not is_whole:
                raise TypeError(f"{name}: give a whole number of 64 bits; this is {value!r}")
        if position is None:
            position = self._next.get(prompt_id, 0)
        writer.append(
            target,
            draft,
            ids,
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
