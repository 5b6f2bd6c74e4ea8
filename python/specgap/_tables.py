"""Tables in memory as logs: of pandas, polars, pyarrow, Hugging Face datasets, or any library that
hands over Arrow's C stream. Columns are those of a log in Parquet files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _native
from ._errors import Refused
from ._parquet import ArrowRows, Group, library

#: Rows that are looked at together.
_TOGETHER = 1024


def is_table(log: object) -> bool:
    """Whether this is a table with named columns."""
    return (
        hasattr(log, "__arrow_c_stream__") and hasattr(log, "columns") or _is_dataset(log)
    ) and not isinstance(log, type)


def _is_dataset(log: object) -> bool:
    """Whether this is a dataset of Hugging Face, whose rows an index may choose."""
    return hasattr(log, "with_format") and hasattr(log, "column_names")


def arrow_table(log: Any) -> Any:
    """The table as pyarrow has it; what lies in Arrow's memory is not copied."""
    arrow, _, _ = library()
    if _is_dataset(log):
        return log.with_format("arrow")[:]
    if type(log).__module__.partition(".")[0] == "pandas":
        # Its index is no column.
        return arrow.Table.from_pandas(log, preserve_index=False)
    return arrow.table(log)


class TableRows(ArrowRows):
    """The columns of a table, handed over by rows."""

    def __init__(self, table: Any, name: str) -> None:
        super().__init__(name)
        self._table = table
        for first in range(0, len(table), _TOGETHER):
            rows = min(_TOGETHER, len(table) - first)
            self._groups.append(Group(0, len(self._groups), first, rows))
        self._begin(table.schema)

    def _array(self, number: int, name: str) -> Any:
        group = self._groups[number]
        return self._table.column(name).slice(group.first, group.rows)

    def _entries(self, number: int, name: str) -> int:
        lengths, _ = self._read(number, name)
        return int(np.sum(lengths))


def open_table(
    table: Any, *, name: str, vocabulary: int | None, metadata: Mapping[str, Any] | None
) -> _native.Log:
    """The log that is a table of pyarrow."""
    rows = TableRows(table, name)
    said = {**rows.metadata, **(metadata or {})}
    if vocabulary is not None:
        said.setdefault("vocabulary", vocabulary)
    for column, key in (("token_ids", "vocabulary"), ("target_rest", "rest_temperatures")):
        if column in table.schema.names and key not in said:
            raise Refused(
                f"{name}: has {column}, and nothing says the {key}: a frame does not keep what its file "
                f"says of itself; give metadata=specgap.Log.open(path).metadata, or the file's path"
            )
    return _native.Log.fetched(name, rows.tensors(), rows.fetch, json.dumps(said), vocabulary, True)


