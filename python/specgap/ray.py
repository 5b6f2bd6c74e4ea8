"""Reports of logs that are read on many machines, by Ray Data.

    import specgap.ray
    specgap.ray.gap(["s3-mount/log-0", "s3-mount/log-1"], shards=64).save("out")
    specgap.ray.length("s3-mount/log-0", shards=64, cost_ratio=0.05)

What goes through Ray is where positions lie and what their rows say, never rows: each task opens
its log where it is and reads one stretch of it. :func:`gap` brings back sums of whole numbers,
:func:`length`, :func:`tree` and :func:`audit` some hundred bytes a token, which one process then
puts together. A report is the same to the bit on any number of workers, in whatever order their
parts come, and where tasks are done again because a worker was lost. Logs have to be at the same
path on all machines.

Without Ray, the same parts are made by ``specgap COMMAND --shard I/K --partial FILE`` and put
together by ``specgap merge``: for job arrays of Slurm, or Spark.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ray.data import Dataset, from_items
from ray.data.aggregate import AggregateFnV2
from ray.data.block import Block, BlockAccessor

from . import _native
from ._logs import PathLike, opened
from ._reports import _SAID, Report, Summary, line_of, refuse_in_parts

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._reports import OfFiles, Whole


def summarise_shard(row: dict[str, Any]) -> dict[str, Any]:
    """Measures the positions that a row names: ``path``, ``index`` and ``count`` of the stretch,
    and ``asked`` as :func:`specgap.gap` takes it. On one thread: Ray counts tasks by cores."""
    part = int(row["index"]), int(row["count"])
    summary = Summary.of(row["path"], part=part, threads=1, progress=False, **row["asked"])
    return {"summary": summary.to_bytes()}


class MergeSummaries(AggregateFnV2[bytes, bytes]):  # type: ignore[misc]
    """Merges a column of summaries, as bytes. No summaries give no bytes."""

    def __init__(self, on: str = "summary", alias_name: str | None = None) -> None:
        super().__init__(
            alias_name or f"merge({on})", zero_factory=lambda: b"", on=on, ignore_nulls=True
        )

    def aggregate_block(self, block: Block) -> bytes:
        """Those of a block."""
        merged = b""
        for row in BlockAccessor.for_block(block).iter_rows(public_row_format=True):
            merged = self.combine(merged, row[self.get_target_column()])
        return merged

    def combine(self, current_accumulator: bytes, new: bytes) -> bytes:
        """Two of them."""
        if not current_accumulator or not new:
            return current_accumulator or new
        both = Summary.from_bytes(current_accumulator).merge(Summary.from_bytes(new))
        return both.to_bytes()


def shards(
    paths: PathLike | Sequence[PathLike], count: int, **given: Unpack[OfFiles]
) -> Dataset:
    """A dataset of ``count`` stretches of each log, by reference: what
    :func:`summarise_shard` takes."""
    asked = cast("dict[str, Any]", given)
    several = _several(paths)
    how = ("vocabulary", "metadata")
    refuse_in_parts(**{name: one for name, one in asked.items() if name not in how})
    if asked.get("temperature") is None:
        # That of all logs, which no stretch of one could know.
        read = [asked.get(name) for name in how]
        logs = [opened(path, *read)._native for path in several]
        asked["temperature"], kept = _native.usual_serving(logs)
        if all(asked.get(cut) is None for cut in ("top_k", "top_p", "min_p")):
            asked.update({name: value for name, value in kept.items() if value is not None})
    rows = [
        {"path": _everywhere(path), "index": index + 1, "count": count, "asked": asked}
        for path in several
        for index in range(count)
    ]
    # Each a block of its own, so that tasks are as many as stretches.
    return from_items(rows, override_num_blocks=len(rows))


def _several(paths: PathLike | Sequence[PathLike]) -> list[PathLike]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def _everywhere(path: PathLike) -> str:
    """A path that means the same in every process; a URI does."""
    name = os.fspath(path)
    return name if "://" in name else os.path.abspath(name)


def summary(
    paths: PathLike | Sequence[PathLike],
    *,
    shards: int = 16,
    num_cpus: float = 1,
    **asked: Unpack[OfFiles],
) -> Summary:
    """The merged summary of all positions of logs of one pair of models."""
    data = _shards(paths, shards, **asked)
    measured = data.map(summarise_shard, num_cpus=num_cpus)
    merged = measured.aggregate(MergeSummaries("summary", alias_name="summary"))
    return Summary.from_bytes(merged["summary"])


_shards = shards


def gap(
    paths: PathLike | Sequence[PathLike],
    *,
    shards: int = 16,
    num_cpus: float = 1,
    **given: Unpack[Whole],
) -> Report:
    """The report of :func:`specgap.gap`, byte for byte, measured by Ray's workers.

    ``shards`` is how many stretches each log is cut into; some three for each core of the
    cluster balance well. Several logs are counted together, as logs of one pair of models.
    Everything else is as :func:`specgap.gap` takes it. Ray shows its own progress bar, and does
    the tasks of a lost worker again.
    """
    asked = cast("dict[str, Any]", given)
    said = {name: asked.pop(name) for name in _SAID & asked.keys()}
    return summary(paths, shards=shards, num_cpus=num_cpus, **asked).report(**said)


def read_part(row: dict[str, Any]) -> dict[str, Any]:
    """Reads what a row names: ``command``, ``paths``, ``vocabulary`` and ``options`` of a report, and ``index``
    and ``count`` of the stretch. On one thread."""
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "part"
        own = {"partial": str(file), "shard": f"{row['index']}/{row['count']}"}
        line, lent = line_of(
            row["command"], row["paths"], row["vocabulary"], {**row["options"], **own}
        )
        _native.keep(line, lent, 1)
        return {"index": row["index"], "part": file.read_bytes()}


def _in_parts(
    command: str,
    paths: PathLike | Sequence[PathLike],
    shards: int,
    num_cpus: float,
    asked: dict[str, Any],
) -> Report:
    row: dict[str, Any] = {
        "command": command,
        "paths": [_everywhere(path) for path in _several(paths)],
        "vocabulary": asked.pop("vocabulary", None),
        "options": asked,
    }
    # A stretch of no position refuses what would be refused.
    read_part({**row, "index": 1, "count": 2**32 - 1})
    rows = [{**row, "index": index + 1, "count": shards} for index in range(shards)]
    read = from_items(rows, override_num_blocks=shards).map(read_part, num_cpus=num_cpus)
    with tempfile.TemporaryDirectory() as home:
        files = []
        for part in read.iter_rows():
            file = Path(home) / str(part["index"])
            file.write_bytes(part["part"])
            files.append(str(file))
        _, lent = line_of(command, row["paths"], row["vocabulary"], {})
        return Report(command, _native.command(["merge", "--", *files], lent, 0, None))


def length(
    paths: PathLike | Sequence[PathLike],
    *,
    shards: int = 16,
    num_cpus: float = 1,
    **asked: Any,
) -> Report:
    """The report of :func:`specgap.length`, byte for byte, of rows that Ray's workers read.

    ``shards`` and ``num_cpus`` are as :func:`gap` takes them, everything else as
    :func:`specgap.length`. What is not taken is refused before the first task.
    """
    return _in_parts("length", paths, shards, num_cpus, asked)


def tree(
    paths: PathLike | Sequence[PathLike],
    *,
    shards: int = 16,
    num_cpus: float = 1,
    **asked: Any,
) -> Report:
    """The report of :func:`specgap.tree`, as :func:`length` makes that of :func:`specgap.length`."""
    return _in_parts("tree", paths, shards, num_cpus, asked)


def audit(path: PathLike, *, shards: int = 16, num_cpus: float = 1, **asked: Any) -> Report:
    """The report of :func:`specgap.audit`, as :func:`length` makes that of :func:`specgap.length`. A stretch also
    adds up p of all positions before it, a softmax a row; where the claim is refuted, its cause is
    sought in one process."""
    return _in_parts("audit", path, shards, num_cpus, asked)
