"""Logs whose rows are columns of Parquet files: read a row group at a time, and written."""

from __future__ import annotations

import json
import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._errors import Refused

if TYPE_CHECKING:
    from ._logs import Log, Row

#: The key of the files' metadata that has what `log.json` calls `metadata`.
KEY = b"specgap"

_ROWS = tuple(
    f"{model}_{kind}" for model in ("target", "draft") for kind in ("logits", "probs", "logprobs")
)
_IDS = ("token_ids", "target_token_ids", "draft_token_ids")
_OWN_IDS = (("target_token_ids", "target_"), ("draft_token_ids", "draft_"))
_RESTS = ("target_rest", "draft_rest")
_HEADS = ("head_acceptance", "head_overlap")
#: Whole numbers in which null stands for "none".
_MAY_LACK = ("token", "output", "accepted", "round", "batch_size", "seed", "group")
_SCALARS = ("prompt_id", "position", "draft_row", *_MAY_LACK, *_HEADS)
_LISTS = (*_ROWS, *_IDS, *_RESTS, "drafts")
#: The tensors of a log that are looked at in columns.
KNOWN = frozenset((*_SCALARS, *_LISTS))

#: Rows that are held at once, in bytes; at least a row group for each thread that reads, and
#: one more.
_BUDGET = 16 << 20


def library() -> tuple[Any, Any, Any]:
    try:
        import pyarrow
        import pyarrow.fs
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "logs in Parquet files need pyarrow: pip install 'specgap[parquet]'"
        ) from error
    return pyarrow, pyarrow.fs, pyarrow.parquet


def is_parquet(path: str) -> bool:
    """Whether this is a log in Parquet files: a file `*.parquet`, a folder of such and without
    a `log.json`, or either as a URI, such as `s3://..`."""
    if "://" in path or path.endswith(".parquet"):
        return True
    if not os.path.isdir(path) or os.path.exists(os.path.join(path, "log.json")):
        return False
    return any(name.endswith(".parquet") for name in os.listdir(path))


@dataclass(frozen=True)
class Group:
    """A row group: where it is, and the number of its first row."""

    file: int
    index: int
    first: int
    rows: int


@dataclass(frozen=True)
class _Column:
    """A column that a log knows: the entries of a row (0 for a number) and their type."""

    name: str
    width: int
    dtype: np.dtype[Any]

    @property
    def filler(self) -> int:
        """What stands behind the end of a short list."""
        return -1 if self.dtype.kind == "i" else 0


class ArrowRows:
    """The columns of a log in Arrow's memory, handed over by rows.

    Groups of rows are decoded when their rows are asked for, and the last few are kept.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, str], NDArray[Any]] = OrderedDict()
        self._bytes = 0
        self._groups: list[Group] = []

    def _begin(self, schema: Any) -> None:
        """Looks at the columns, once the groups are known."""
        arrow, _, _ = library()
        twice = {name for name in KNOWN if schema.names.count(name) > 1}
        if twice:
            raise Refused(f"{self._path}: has two columns {twice.pop()}; leave one of them out")
        said = (schema.metadata or {}).get(KEY)
        try:
            self.metadata: dict[str, Any] = json.loads(said) if said else {}
        except ValueError as error:
            raise Refused(
                f"{self._path}: its metadata {KEY.decode()!r} is no JSON: {error}"
            ) from None
        self._firsts = [group.first for group in self._groups]
        # A column that has nothing but null is none.
        self.columns = {
            field.name: self._column(schema, field.name)
            for field in schema
            if field.name in KNOWN and not arrow.types.is_null(field.type)
        }
        if not any(name in self.columns for name in _ROWS):
            raise Refused(
                f"{self._path}: has no rows; a log has a column of lists such as target_logits or "
                f"target_logprobs, and one of the draft's; these are {', '.join(schema.names)}"
            )
        largest = max((group.rows for group in self._groups), default=0)
        width = sum(max(one.width, 1) * one.dtype.itemsize for one in self.columns.values())
        self._largest = largest * width
        self._readers: set[int] = set()

    def _in(self, group: Group) -> str:
        """Which of several files a group is of."""
        return ""

    def _array(self, number: int, name: str) -> Any:
        """A column of a group, as Arrow's chunks."""
        raise NotImplementedError

    def _entries(self, number: int, name: str) -> int:
        """How many entries the lists of a group have together."""
        raise NotImplementedError

    @property
    def positions(self) -> int:
        """N."""
        return self._groups[-1].first + self._groups[-1].rows if self._groups else 0

    def _column(self, schema: Any, name: str) -> _Column:
        """What a column has, by its type; the length of lists by looking at them."""
        arrow, _, _ = library()
        types = arrow.types
        kind = schema.field(name).type
        fixed = types.is_fixed_size_list(kind)
        listed = fixed or types.is_list(kind) or types.is_large_list(kind)
        entries = kind.value_type if listed else kind
        whole = name not in (*_ROWS, *_RESTS, *_HEADS)
        if whole and types.is_integer(entries):
            dtype = np.dtype(np.int32 if types.is_int32(entries) else np.int64)
        elif not whole and types.is_floating(entries):
            dtype = np.dtype(entries.to_pandas_dtype())
        else:
            wanted = "whole numbers" if whole else "floating point"
            raise TypeError(f"{self._path}: {name}: has entries of type {entries}; give {wanted}")
        if name in _SCALARS and listed:
            raise TypeError(f"{self._path}: {name}: has lists; give one number for a position")
        if not listed and name not in (*_SCALARS, *_RESTS):
            raise TypeError(f"{self._path}: {name}: is of type {kind}; give lists, one a position")
        if not listed:
            return _Column(name, 0, dtype)
        if fixed:
            return _Column(name, kind.list_size, dtype)
        return self._of_lists(schema, name, dtype)

    def _of_lists(self, schema: Any, name: str, dtype: np.dtype[Any]) -> _Column:
        """A column of lists that may be of unequal length: as wide as the longest.

        Rows are as long as their lists of tokens, or all of one length, which is checked when
        they are read. Other lists are looked at.
        """
        counts = set()
        for number, group in enumerate(self._groups):
            counts.add(self._entries(number, name) / group.rows)
        mean = next(iter(counts), 0.0)
        if name not in (*_IDS, "drafts") and len(counts) <= 1 and mean.is_integer():
            return _Column(name, int(mean), dtype)
        if name in _ROWS and any(one in _IDS for one in schema.names):
            return _Column(name, 0, dtype)
        longest = 0
        for number in range(len(self._groups)):
            try:
                lengths, _ = self._read(number, name)
            except Refused as error:
                raise error.within(self._path) from None
            longest = max(longest, int(lengths.max(initial=0)))
        return _Column(name, longest, dtype)

    def _read(self, number: int, name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """A column of a row group: the lengths of its lists, and all entries."""
        arrow, _, _ = library()
        group = self._groups[number]
        array = self._array(number, name).combine_chunks()
        if array.null_count and name in _MAY_LACK:
            array = array.fill_null(-1)
        self._refuse_nulls(array, group, name)
        kind = array.type
        if arrow.types.is_fixed_size_list(kind):
            lengths = np.full(len(array), kind.list_size, dtype=np.int64)
        elif arrow.types.is_list(kind) or arrow.types.is_large_list(kind):
            lengths = np.diff(np.asarray(array.offsets)).astype(np.int64)
        else:
            return np.ones(len(array), dtype=np.int64), np.asarray(array)
        entries = array.flatten()
        if entries.null_count:
            lacks = int(np.argmax(np.asarray(entries.is_null())))
            row = int(np.searchsorted(np.cumsum(lengths), lacks, side="right"))
            row += group.first
            raise Refused(f"{name}: row {row}{self._in(group)}: an entry is null", name, row)
        return lengths, np.asarray(entries)

    def _refuse_nulls(self, array: Any, group: Group, name: str) -> None:
        if array.null_count:
            row = group.first + int(np.argmax(np.asarray(array.is_null())))
            raise Refused(f"{name}: row {row}{self._in(group)}: is null; every position has one", name, row)

    def _rows(self, number: int, name: str) -> NDArray[Any]:
        """A column of a row group as rows of one width. Kept for a while."""
        key = number, name
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        column = self.columns[name]
        lengths, entries = self._read(number, name)
        rows = self._of_width(column, number, lengths, entries)
        self._kept[key] = rows
        self._bytes += rows.nbytes
        budget = max(_BUDGET, self._largest * (1 + len(self._readers)))
        while self._bytes > budget and len(self._kept) > 1:
            _, old = self._kept.popitem(last=False)
            self._bytes -= old.nbytes
        return rows

    def _of_width(
        self, column: _Column, number: int, lengths: NDArray[np.int64], entries: NDArray[Any]
    ) -> NDArray[Any]:
        entries = np.ascontiguousarray(entries, dtype=column.dtype)
        width = max(column.width, 1)
        if (lengths == width).all():
            return entries.reshape(len(lengths), width)
        wanted, of = self._lengths(column.name, number, width)
        if wanted is not None and (lengths != wanted).any():
            short = int(np.argmax(lengths != wanted))
            group = self._groups[number]
            row = group.first + short
            raise Refused(
                f"{column.name}: row {row}{self._in(group)}: has {lengths[short]} entries where {of} "
                f"{wanted[short]}; full rows have all V, and in lists of unequal length each entry "
                "has its token in token_ids",
                column.name,
                row,
            )
        rows = np.full((len(lengths), width), column.filler, dtype=column.dtype)
        rows[np.arange(width) < lengths[:, None]] = entries
        return rows

    def _lengths(
        self, name: str, number: int, width: int
    ) -> tuple[NDArray[np.int64] | None, str]:
        """How long the lists of a row group have to be, and what says so."""
        if name in _IDS or name == "drafts":
            return None, ""
        model = name.partition("_")[0]
        for ids in ("token_ids", f"{model}_token_ids"):
            if name in _ROWS and ids in self.columns:
                return (self._rows(number, ids) >= 0).sum(axis=1), f"{ids} has"
        return np.full(self._groups[number].rows, width), "others have"

    def fetch(self, name: str, first: int, count: int) -> NDArray[np.uint8]:
        """The bytes of some rows of a column."""
        with self._lock:
            # Threads measure stretches that lie apart.
            self._readers.add(threading.get_ident())
            number = bisect_right(self._firsts, first) - 1
            parts = []
            while count > 0:
                group = self._groups[number]
                start = first - group.first
                rows = self._rows(number, name)[start : start + count]
                parts.append(rows)
                first, count, number = first + len(rows), count - len(rows), number + 1
            joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
            return np.ascontiguousarray(joined).reshape(-1).view(np.uint8)

    def tensors(self) -> list[tuple[str, list[int], str]]:
        """Names, shapes and types, as a log has them."""
        def shape(one: _Column) -> list[int]:
            listed = one.name in _LISTS
            return [self.positions, max(one.width, 1)] if listed else [self.positions]

        columns = self._same_widths().values()
        return [(one.name, shape(one), one.dtype.name) for one in columns]

    def _same_widths(self) -> dict[str, _Column]:
        """Lists that belong to each other are as wide as the longest of them."""
        for ids, models in (("token_ids", ("target_", "draft_")), *_OWN_IDS):
            if ids not in self.columns:
                continue
            widest = self.columns[ids].width
            for name in _ROWS:
                if name.startswith(models) and name in self.columns:
                    self.columns[name] = _Column(name, widest, self.columns[name].dtype)
        return self.columns


class ParquetRows(ArrowRows):
    """The columns of Parquet files: a group is a row group."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._opened: tuple[int, Any] | None = None
        _, fs, _ = library()
        if "://" in path:
            self._system, root = fs.FileSystem.from_uri(path)
        else:
            self._system, root = fs.LocalFileSystem(), path
        self._files = self._found(fs, root)
        schema = None
        for number, name in enumerate(self._files):
            file = self._file(number)
            if schema is None:
                schema = file.schema_arrow
            elif not file.schema_arrow.equals(schema):
                raise Refused(
                    f"{path}: {os.path.basename(name)} has other columns or types than "
                    f"{os.path.basename(self._files[0])}; files of a log have the same"
                )
            for index in range(file.metadata.num_row_groups):
                rows = file.metadata.row_group(index).num_rows
                if rows:
                    self._groups.append(Group(number, index, self.positions, rows))
        assert schema is not None
        self._begin(schema)

    def _found(self, fs: Any, root: str) -> list[str]:
        info = self._system.get_file_info(root)
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(f"{self._path}: cannot be opened: there is no such file")
        if info.type != fs.FileType.Directory:
            return [root]
        inside = self._system.get_file_info(fs.FileSelector(root))
        names = sorted(
            one.path for one in inside
            if one.is_file and one.path.endswith(".parquet") and not one.base_name.startswith((".", "_"))
        )
        if not names:
            raise Refused(f"{self._path}: has no files *.parquet")
        return names

    def _in(self, group: Group) -> str:
        return f" ({os.path.basename(self._files[group.file])})" if len(self._files) > 1 else ""

    def _file(self, number: int) -> Any:
        """One of the files. The last one stays open."""
        if self._opened is None or self._opened[0] != number:
            arrow, _, parquet = library()
            name = self._files[number]
            try:
                source = self._system.open_input_file(name)
                opened = parquet.ParquetFile(source, page_checksum_verification=True)
            except arrow.ArrowInvalid as error:
                raise Refused(f"{name}: is no Parquet file: {error}") from None
            self._opened = number, opened
        return self._opened[1]

    def _array(self, number: int, name: str) -> Any:
        arrow, _, _ = library()
        group = self._groups[number]
        file = self._file(group.file)
        try:
            table = file.read_row_group(group.index, columns=[name], use_threads=False)
        except (arrow.ArrowInvalid, OSError) as error:
            raise Refused(
                f"{self._files[group.file]}: row group {group.index}: {name}: cannot be decoded: "
                f"{error}"
            ) from None
        return table.column(name)

    def _entries(self, number: int, name: str) -> int:
        group = self._groups[number]
        data = self._file(group.file).metadata.row_group(group.index)
        return int(data.column(self._places(group.file)[name]).num_values)

    def _places(self, number: int) -> dict[str, int]:
        """Which of a file's leaves belong to a column."""
        schema = self._file(number).schema
        return {
            schema.column(place).path.partition(".")[0]: place
            for place in range(len(schema.names))
        }


def open_parquet(
    path: str, *, vocabulary: int | None, metadata: Mapping[str, Any] | None
) -> _native.Log:
    """The log in Parquet files."""
    rows = ParquetRows(path)
    said = {**rows.metadata, **(metadata or {})}
    name = path.rstrip("/")
    text = json.dumps(said)
    return _native.Log.fetched(name, rows.tensors(), rows.fetch, text, vocabulary, False)


def write_parquet(
    log: Log, path: str, *, row_group: int, compression: str, positions: int | None = None
) -> None:
    """Writes a log, or its first positions, as one Parquet file, whole or not at all."""
    arrow, _, parquet = library()
    if row_group < 1:
        raise ValueError(f"row_group is {row_group}; it must be at least 1")
    if not log.positions:
        raise ValueError(f"{log.path}: has no positions to write")
    columns = _Columns(log)
    # Rollouts are not written, so that nothing is to say how they were drawn.
    said = {key: value for key, value in log.metadata.items() if key != "rollouts"}
    schema = arrow.schema(
        list(columns.types.items()), metadata={KEY: json.dumps(said).encode()}
    )
    unfinished = f"{path}.unfinished"
    try:
        with parquet.ParquetWriter(
            unfinished,
            schema,
            compression=compression,
            use_dictionary=False,
            write_page_checksum=True,
        ) as file:
            count = log.positions if positions is None else positions
            for start in range(0, count, row_group):
                numbers = range(start, min(start + row_group, count))
                file.write_table(columns.table(numbers, schema), row_group_size=row_group)
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise


class _Columns:
    """A log's positions as columns."""

    def __init__(self, log: Log) -> None:
        arrow, _, _ = library()
        self._log = log
        native = log._native
        self._kinds = dict(zip(("target", "draft"), native.kinds, strict=True))
        self._own = native.own_lists
        engine = set(native.engine_tensors)
        self._engine = log.engine_records() if engine else []
        first = log.row(0)
        whole = arrow.int64()
        # Lists of one length need not be looked at to know it; what is short is filled up.
        width = -1 if self._own else log.listed
        self.types: dict[str, Any] = {}
        for model, dtype in zip(("target", "draft"), log.dtypes, strict=True):
            # Parquet has no bfloat16; all of its numbers are numbers of float32.
            entry = {"f16": arrow.float16(), "f64": arrow.float64()}.get(dtype, arrow.float32())
            self.types[f"{model}_{self._kinds[model]}"] = arrow.list_(entry, width)
        if first.token_ids is not None:
            names = [name for name, _ in _OWN_IDS] if self._own else ["token_ids"]
            self.types |= dict.fromkeys(names, arrow.list_(arrow.int32(), width))
        for name, rest in zip(_RESTS, (first.target_rest, first.draft_rest), strict=True):
            if len(rest):
                self.types[name] = arrow.list_(arrow.float64(), len(rest))
        for name in ("prompt_id", "position"):
            if getattr(first, name) is not None:
                self.types[name] = whole
        if native.has_tokens:
            self.types["token"] = whole
        for name in _HEADS:
            if getattr(first, name) is not None:
                self.types[name] = arrow.float64()
        if "drafts" in engine:
            count = len(self._engine[0].drafts)
            self.types["drafts"] = arrow.list_(arrow.int32(), count)
        if native.may_lack_drafts:
            self.types["draft_row"] = whole
        self.types |= {
            name: whole for name in ("output", "accepted", "round", "batch_size", "seed") if name in engine
        }

    def table(self, numbers: Sequence[int], schema: Any) -> Any:
        """Some positions."""
        arrow, _, _ = library()
        rows = [self._log.row(number) for number in numbers]
        arrays = [
            _array(self._values(name, rows, numbers), kind) for name, kind in self.types.items()
        ]
        return arrow.Table.from_arrays(arrays, schema=schema)

    def _values(self, name: str, rows: Sequence[Row], numbers: Sequence[int]) -> list[Any]:
        model = name.partition("_")[0]
        if name in _ROWS:
            return [_listed(getattr(row, model), self._own) for row in rows]
        if name == "token_ids":
            return [row.token_ids for row in rows]
        if name in _IDS:
            return [_own_ids(row, getattr(row, model)) for row in rows]
        if name == "draft_row":
            return [int(not row.lacks_draft) for row in rows]
        if name == "drafts" or name in ("output", "accepted", "round", "batch_size", "seed"):
            return [getattr(self._engine[number], name) for number in numbers]
        return [getattr(row, name) for row in rows]


def _array(values: Sequence[Any], kind: Any) -> Any:
    """A column. Lists go by all of their entries at once, which is what takes time."""
    arrow, _, _ = library()
    fixed = arrow.types.is_fixed_size_list(kind)
    if not fixed and not arrow.types.is_list(kind):
        return arrow.array(values, type=kind)
    dtype = np.dtype(kind.value_type.to_pandas_dtype())
    rows = [np.asarray(row, dtype=dtype) for row in values]
    if fixed:
        filled = np.full((len(rows), kind.list_size), -1 if dtype.kind == "i" else 0, dtype=dtype)
        for place, row in enumerate(rows):
            filled[place, : len(row)] = row
        entries = arrow.array(filled.reshape(-1), type=kind.value_type)
        return arrow.FixedSizeListArray.from_arrays(entries, kind.list_size)
    entries = arrow.array(np.concatenate(rows), type=kind.value_type)
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return arrow.ListArray.from_arrays(offsets, entries)


def _listed(row: NDArray[np.float64], own: bool) -> NDArray[np.float64]:
    """What a model's own list has; the other's tokens are nan in it."""
    return row[~np.isnan(row)] if own else row


def _own_ids(row: Row, of: NDArray[np.float64]) -> NDArray[np.int64]:
    assert row.token_ids is not None
    ids: NDArray[np.int64] = row.token_ids[~np.isnan(of)]
    return ids
