"""Logs in Parquet files: the same rows, and the same report to the byte."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specgap as sg
from specgap import _parquet

arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

ASKED: dict[str, Any] = {"drafts": 2, "temperature": 1.0, "verifiers": "rrs"}
LISTS = {"vocabulary": 40, "rest_temperatures": [1.0], "sampling": {"temperature": 1.0}}


def same_rows(one: sg.Log, other: sg.Log) -> None:
    assert len(one) == len(other) and one.metadata == other.metadata
    for mine, its in zip(one, other, strict=True):
        for name in ("target", "draft", "target_rest", "draft_rest"):
            assert np.array_equal(getattr(mine, name), getattr(its, name), equal_nan=True), name
        assert np.array_equal(mine.token_ids, its.token_ids)  # type: ignore[arg-type]
        for name in ("prompt_id", "position", "token", "head_acceptance", "head_overlap"):
            assert getattr(mine, name) == getattr(its, name)
    assert one.engine_records() == other.engine_records()


def folder_of(home: Path, log: str, **written: Any) -> Path:
    """A folder of the log's name with one Parquet file."""
    folder = home / Path(log).name
    folder.mkdir()
    sg.Log.open(log).write_parquet(folder / "rows.parquet", **written)
    return folder


def measured(report: sg.Report) -> str:
    """The report without the digests of what it was measured on, which Parquet files have not."""
    report_as_data = report.to_dict()
    for log in report_as_data["logs"]:
        log.pop("files", None)
    return json.dumps(report_as_data)


def test_the_report_is_that_of_the_log_to_the_byte(log: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, log, row_group=37)
    again = sg.Log.open(folder)
    same_rows(sg.Log.open(log), again)
    assert again.dtypes == sg.Log.open(log).dtypes
    assert measured(sg.gap(folder, **ASKED)) == measured(sg.gap(log, **ASKED))
    parts = [sg.Summary.of(folder, part=(k, 3), **ASKED) for k in (2, 3, 1)]
    merged = parts[0].merge(parts[1]).merge(parts[2]).report()
    assert measured(merged) == measured(sg.gap(log, **ASKED))


def test_files_of_a_folder_are_one_log(log: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, log, row_group=50)
    whole = parquet.read_table(folder / "rows.parquet")
    (folder / "rows.parquet").unlink()
    for number, start in enumerate(range(0, len(whole), 150)):
        parquet.write_table(whole.slice(start, 150), folder / f"part-{number}.parquet")
    assert measured(sg.gap(folder, **ASKED)) == measured(sg.gap(log, **ASKED))
    # By a name that Arrow resolves, too.
    assert measured(sg.gap(folder.as_uri(), **ASKED)) == measured(sg.gap(log, **ASKED))


def test_commands_take_it(log: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, log)
    mine, its = (sg.length(one, lengths=[2], verifiers="token") for one in (folder, log))
    assert mine.to_dict()["results"] == its.to_dict()["results"]


def test_row_groups_are_decoded_as_they_are_needed(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path, log, row_group=20)
    monkeypatch.setattr(_parquet, "_BUDGET", 1)
    rows = _parquet.ParquetRows(str(folder))
    assert rows.positions == 400
    name = next(one for one in rows.columns if one.startswith("target_"))
    got = rows.fetch(name, 390, 10).view(rows.columns[name].dtype)
    row = sg.Log.open(folder).row(390).target
    assert np.array_equal(got.reshape(10, -1)[0, : len(row)], row)
    # Across ends of row groups, with no more kept than a thread needs.
    for name in rows.columns:
        rows.fetch(name, 0, 400)
    held = sum(part.nbytes for part in rows._kept.values())
    assert held <= 2 * rows._largest and held == rows._bytes
    assert max(number for number, _ in rows._kept) == 19


def uneven(home: Path) -> tuple[Path, dict[str, Any]]:
    """Lists of unequal length, as a frame of Spark or pandas has them."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {name: [] for name in ("token_ids", "target_logprobs")}
    columns |= {name: [] for name in ("draft_logprobs", "target_rest", "draft_rest", "token")}
    for _ in range(30):
        count = int(rng.integers(3, 9))
        columns["token_ids"].append(rng.permutation(40)[:count].tolist())
        for model in ("target", "draft"):
            p = rng.dirichlet(np.ones(count + 1))
            columns[f"{model}_logprobs"].append(np.log(p[:-1]).tolist())
            columns[f"{model}_rest"].append(float(1 - p[:-1].sum()))
        columns["token"].append(None)
    path = home / "uneven.parquet"
    parquet.write_table(arrow.table(columns), path, row_group_size=7)
    return path, columns


def test_lists_of_unequal_length(tmp_path: Path) -> None:
    path, columns = uneven(tmp_path)
    with pytest.raises(ValueError, match="the metadata does not say the vocabulary"):
        sg.Log.open(path)
    log = sg.Log.open(path, metadata=LISTS)
    assert (log.positions, log.vocabulary, log.listed) == (30, 40, 8)
    row = log.row(11)
    # Tokens stand by their ids, whichever order they were written in.
    listed = sorted(zip(columns["token_ids"][11], columns["target_logprobs"][11], strict=True))
    assert row.token_ids is not None and row.token_ids.tolist() == [token for token, _ in listed]
    assert row.target.tolist() == [entry for _, entry in listed]
    assert row.target_rest.tolist() == [columns["target_rest"][11]]
    assert row.token is None
    report = sg.gap(path, metadata=LISTS, **ASKED)
    summary = sg.Summary.of(path, metadata=LISTS, **ASKED)
    assert summary.report().json == report.json
    # Written again, it is the same.
    log.write_parquet(tmp_path / "again.parquet", row_group=4, compression="none")
    same_rows(log, sg.Log.open(tmp_path / "again.parquet"))


def test_lists_whose_mean_length_is_whole(tmp_path: Path) -> None:
    lists = [[3, 1, 5, 2], [4, 0], [7, 6, 1]]
    rows = [[0.1] * len(one) for one in lists]
    table = {"token_ids": lists, "target_probs": rows, "draft_probs": rows, "drafts": [[1], [], [2, 3]]}
    parquet.write_table(arrow.table(table), tmp_path / "three.parquet")
    log = sg.Log.open(tmp_path / "three.parquet", metadata={"vocabulary": 8})
    assert log.listed == 4
    assert [row.token_ids.tolist() for row in log if row.token_ids is not None] == [
        sorted(one) for one in lists
    ]
    assert [one.drafts for one in log.engine_records()] == [[1, -1], [-1, -1], [2, 3]]
    # Rows are as long as their tokens' lists.
    table["draft_probs"] = [rows[0], rows[1], rows[2][:2]]
    parquet.write_table(arrow.table(table), tmp_path / "short.parquet")
    with pytest.raises(ValueError, match="draft_probs: row 2: has 2 entries where token_ids has 3"):
        sg.gap(tmp_path / "short.parquet", metadata={"vocabulary": 8}, **ASKED)


def test_own_lists_and_what_an_engine_did(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(5), 6)[:, :4], rng.dirichlet(np.ones(5), 6)[:, :4]
    log = sg.Log.of_arrays(
        target_token_ids=np.tile([3, 1, 7, 5], (6, 1)),
        draft_token_ids=np.tile([0, 3, 9, 1], (6, 1)),
        target_logprobs=np.log(p),
        draft_logprobs=np.log(q),
        prompt_id=np.arange(6) // 3,
        position=np.arange(6) % 3,
        token=np.array([3, 1, -1, 7, 5, 1]),
        drafts=np.array([[3, 1], [-1, -1], [9, -1], [0, 0], [-1, -1], [1, -1]]),
        accepted=np.array([1, -1, 0, 0, -1, 1]),
        output=np.array([3, 1, 7, 7, 5, 1]),
        metadata={"vocabulary": 12},
    )
    log.write_parquet(tmp_path / "own.parquet", row_group=2)
    same_rows(log, sg.Log.open(tmp_path / "own.parquet"))


def test_types_of_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for dtype, kept in (("float16", "f16"), ("float32", "f32"), ("float64", "f64")):
        a, b = rng.normal(size=(2, 9, 6)).astype(dtype)
        log = sg.Log.of_arrays(target_logits=a, draft_logits=b)
        log.write_parquet(tmp_path / f"{dtype}.parquet")
        again = sg.Log.open(tmp_path / f"{dtype}.parquet")
        assert again.dtypes == (kept, kept)
        same_rows(log, again)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"other": [1]}, ValueError, "has no rows; a log has a column of lists"),
        ({"target_logits": [1.0], "draft_logits": [1.0]}, TypeError, "give lists, one a position"),
        (
            {"target_logits": [[1, 2]], "draft_logits": [[1, 2]]},
            TypeError,
            "target_logits: has entries of type int64; give floating point",
        ),
        (
            {"target_logits": [[0.0, 1.0]], "draft_logits": [[0.0, 1.0]], "token": [[1]]},
            TypeError,
            "token: has lists; give one number",
        ),
        (
            {"target_logits": [[0.0, 1.0]], "draft_logits": [[0.0, 1.0]], "token": ["a"]},
            TypeError,
            "token: has entries of type string; give whole numbers",
        ),
        (
            {"target_logits": [[0.0, 1.0], None], "draft_logits": [[0.0, 1.0]] * 2},
            ValueError,
            "target_logits: row 1: is null",
        ),
        (
            {"target_logits": [[0.0, 1.0]] * 2, "draft_logits": [[0.0, 1.0], [0.0, None]]},
            ValueError,
            "draft_logits: row 1: an entry is null",
        ),
        (
            {"target_logits": [[0.0, 1.0], [2.0]], "draft_logits": [[0.0, 1.0]] * 2},
            ValueError,
            "target_logits: row 1: has 1 entries where others have 2; full rows have all V",
        ),
        (
            {
                "target_logits": [[0.0, 1.0]] * 2,
                "draft_logits": [[0.0, 1.0]] * 2,
                "prompt_id": [1, None],
            },
            ValueError,
            "prompt_id: row 1: is null",
        ),
    ],
)
def test_what_is_refused(
    columns: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.parquet"
    parquet.write_table(arrow.table(columns), path)
    with pytest.raises(error, match=message) as raised:
        sg.gap(path, **ASKED)
    assert "bad.parquet" in str(raised.value)


def test_a_folder_names_its_file_and_leaves_hidden_ones_out(tmp_path: Path) -> None:
    rows = [[0.0, 1.0]] * 2
    for name, own in (("a", rows), ("b", [[0.0, 1.0], None]), (".c", [[0.0]]), ("_d", [[0.0]])):
        table = arrow.table({"target_logits": own, "draft_logits": rows[: len(own)]})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match=r"target_logits: row 3 \(b.parquet\): is null"):
        sg.gap(tmp_path, **ASKED)
    (tmp_path / "b.parquet").unlink()
    assert sg.Log.open(tmp_path).positions == 2


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    rows = arrow.array([[0.0, 1.0]])
    table = arrow.Table.from_arrays([rows] * 3, names=["target_logits", "draft_logits", "target_logits"])
    parquet.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(ValueError, match="twice.parquet: has two columns target_logits"):
        sg.gap(tmp_path / "twice.parquet", **ASKED)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none.parquet: cannot be opened"):
        sg.gap(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("no table")
    with pytest.raises(ValueError, match="is no Parquet file"):
        sg.gap(tmp_path / "text.parquet")
    one, other = ({"target_logits": [[0.0, x]], "draft_logits": [[0.0, x]]} for x in (1.0, 2.0))
    (tmp_path / "two").mkdir()
    parquet.write_table(arrow.table(one), tmp_path / "two" / "a.parquet")
    parquet.write_table(arrow.table(other | {"token": [1]}), tmp_path / "two" / "b.parquet")
    with pytest.raises(ValueError, match="b.parquet has other columns or types than a.parquet"):
        sg.gap(tmp_path / "two")
    table = arrow.table(one).replace_schema_metadata({"specgap": "{"})
    parquet.write_table(table, tmp_path / "said.parquet")
    with pytest.raises(ValueError, match="its metadata 'specgap' is no JSON"):
        sg.gap(tmp_path / "said.parquet")


def test_a_file_that_is_damaged_where_its_rows_are(log: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, log)
    path = folder / "rows.parquet"
    data = bytearray(path.read_bytes())
    data[1000:3000] = bytes(2000)
    path.write_bytes(data)
    with pytest.raises(ValueError, match="cannot be decoded"):
        sg.gap(folder, **ASKED)


def test_what_is_written_is_whole_or_not_there(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = sg.Log.open(log)
    with pytest.raises(ValueError, match="row_group is 0; it must be at least 1"):
        rows.write_parquet(tmp_path / "rows.parquet", row_group=0)

    def fails(self: sg.Log, index: int) -> sg.Row:
        raise KeyboardInterrupt

    original = sg.Log.row
    monkeypatch.setattr(sg.Log, "row", lambda self, n: original(self, n) if n < 5 else fails(self, n))
    with pytest.raises(KeyboardInterrupt):
        rows.write_parquet(tmp_path / "rows.parquet", row_group=3)
    assert list(tmp_path.iterdir()) == []


def test_metadata_is_for_files_that_have_none(log: str) -> None:
    with pytest.raises(ValueError, match="metadata: goes with Parquet files"):
        sg.gap(log, metadata={"vocabulary": 3}, **ASKED)
    with pytest.raises(ValueError, match="metadata: say it where the log is opened"):
        sg.gap(sg.Log.open(log), metadata={"vocabulary": 3}, **ASKED)


def test_pyarrow_is_named_where_it_is_missing(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'specgap\[parquet\]'"):
        sg.gap(tmp_path / "rows.parquet")
    assert json.loads(measured(sg.gap(log, **ASKED)))["positions"] == 400
