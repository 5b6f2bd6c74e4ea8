"""Ray's workers make the report of one process, byte for byte, also when one is killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import specgap as sg

ray = pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("ray.data", reason="ray[data] is not installed")

ASKED: dict[str, Any] = {"drafts": (2, 3), "temperature": 1.0, "verifiers": ("rrs", "rrs-wo")}


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    # Workers do not find this module by its name.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    ray.shutdown()


def test_two_workers_make_the_report_of_one_process(log: str, cluster: None) -> None:
    from specgap.ray import gap

    report = gap(log, shards=5, **ASKED)
    assert report.json == sg.gap(log, **ASKED).json
    assert report.summary is not None and report.summary.positions == 400


def test_rows_in_parquet_files_by_reference(log: str, cluster: None, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    from specgap.ray import gap

    folder = tmp_path / Path(log).name
    folder.mkdir()
    sg.Log.open(log).write_parquet(folder / "rows.parquet", row_group=64)
    alone = sg.gap(folder, **ASKED).json
    assert sg.gap(folder, **ASKED).to_dict()["cells"] == sg.gap(log, **ASKED).to_dict()["cells"]
    assert gap(folder, shards=5, **ASKED).json == alone
    assert gap(folder.as_uri(), shards=2, **ASKED).json == alone


def _kills_itself_once(row: dict[str, Any]) -> dict[str, Any]:
    from specgap.ray import summarise_shard

    mark = Path(row["mark"])
    if row["index"] == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return summarise_shard(row)


def test_a_killed_worker_changes_nothing(log: str, cluster: None, tmp_path: Path) -> None:
    from specgap.ray import MergeSummaries, shards

    mark = tmp_path / "killed"
    data = shards(log, 4, **ASKED).add_column("mark", lambda _: str(mark), batch_format="pandas")
    measured = data.map(_kills_itself_once, num_cpus=1)
    merged = measured.aggregate(MergeSummaries("summary", alias_name="summary"))
    assert mark.exists()
    mine = sg.Summary.from_bytes(merged["summary"]).report()
    assert mine.json == sg.gap(log, **ASKED).json


def test_summaries_travel_by_pickle(log: str, cluster: None) -> None:
    @ray.remote  # type: ignore[untyped-decorator]
    def part(index: int) -> sg.Summary:
        return sg.Summary.of(log, part=(index, 3), threads=1, **ASKED)

    first, second, third = ray.get([part.remote(index) for index in (1, 2, 3)])
    assert third.merge(first).merge(second).report().json == sg.gap(log, **ASKED).json


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("length", {"cost_ratio": 0.1, "lengths": "1-3", "verifiers": "token"}),
        ("tree", {"topology": "2x2", "budget": 4, "schemes": "with-replacement"}),
        ("audit", {"rule": "text", "noise": 0.0}),
    ],
)
def test_other_reports_in_parts(
    log: str, cluster: None, command: str, asked: dict[str, Any]
) -> None:
    import specgap.ray

    alone = getattr(sg, command)(log, **asked)
    report = getattr(specgap.ray, command)(log, shards=5, **asked)
    assert report.json == alone.json and report.ok == alone.ok


def test_refusals_come_before_the_first_task(log: str, cluster: None) -> None:
    import specgap.ray

    with pytest.raises(Exception, match="verifiers|verifier"):
        specgap.ray.length(log, verifiers="nobody")
    with pytest.raises(FileNotFoundError, match="no-such-log"):
        specgap.ray.audit("no-such-log", rule="text")
