"""Tables and lists in memory are logs: the same rows, and the same report."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specgap as sg

from .test_parquet import ASKED, LISTS, measured, same_rows

arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")


class Rows:
    """A dataset as Hugging Face's library has them: an index may choose rows of a table."""

    def __init__(self, table: Any, index: list[int] | None = None) -> None:
        self._table, self._index = table, index

    @property
    def column_names(self) -> list[str]:
        return list(self._table.column_names)

    def select(self, index: list[int]) -> Rows:
        return Rows(self._table, index)

    def with_format(self, kind: str) -> Rows:
        assert kind == "arrow"
        return self

    def __getitem__(self, rows: slice) -> Any:
        assert rows == slice(None)
        return self._table if self._index is None else self._table.take(self._index)


def pandas_frame(table: Any) -> Any:
    pytest.importorskip("pandas", reason="pandas is not installed")
    return table.to_pandas()


def polars_frame(table: Any) -> Any:
    return pytest.importorskip("polars", reason="polars is not installed").from_arrow(table)


KINDS: list[Callable[[Any], Any]] = [lambda table: table, pandas_frame, polars_frame, Rows]


def lists(count: int = 2500) -> tuple[dict[str, Any], sg.Log]:
    """Lists of unequal length, and a log of the same as arrays."""
    rng = np.random.default_rng(4)
    width = 6
    ids = np.array([rng.permutation(40)[:width] for _ in range(count)], dtype=np.int32)
    lengths = rng.integers(3, width + 1, count)
    p, q = rng.dirichlet(np.ones(width + 1), (2, count))
    there = np.arange(width) < lengths[:, None]
    columns = {
        "token_ids": [list(map(int, one[:n])) for one, n in zip(ids, lengths)],
        "target_logprobs": [list(map(float, np.log(one[:n]))) for one, n in zip(p, lengths)],
        "draft_logprobs": [list(map(float, np.log(one[:n]))) for one, n in zip(q, lengths)],
        "prompt_id": (np.arange(count) // 50).tolist(),
        "position": (np.arange(count) % 50).tolist(),
        "text": ["not looked at"] * count,
    }
    held = sg.Log.of_arrays(
        name="table",
        token_ids=np.where(there, ids, -1),
        target_logprobs=np.where(there, np.log(p[:, :width]), 0.0),
        draft_logprobs=np.where(there, np.log(q[:, :width]), 0.0),
        prompt_id=np.arange(count) // 50,
        position=np.arange(count) % 50,
        metadata=LISTS,
    )
    return columns, held


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_the_log_of_its_columns(kind: Callable[[Any], Any]) -> None:
    columns, held = lists(200)
    table = kind(arrow.table(columns))
    log = sg.Log.of_table(table, metadata=LISTS)
    same_rows(log, held)
    asked = {**ASKED, "metadata": LISTS}
    want = measured(sg.gap(held, **ASKED))
    assert measured(sg.gap(table, **asked)) == want
    assert measured(sg.gap(pickle.loads(pickle.dumps(log)), **ASKED)) == want
    compared = sg.gap({"mine": log, "other": held}, **ASKED)
    assert [one["name"] for one in compared.to_dict()["logs"]] == ["mine", "other"]


def test_long_tables_in_pieces_and_chunks() -> None:
    columns, held = lists()
    table = arrow.table(columns)
    # Chunks that end within the pieces that are read, and an offset in front.
    pieces = [table.slice(0, 700), table.slice(700, 900), table.slice(1600)]
    chunked = arrow.concat_tables([table.slice(0, 3), *pieces]).slice(3)
    assert chunked.column("token_ids").num_chunks > 1
    same_rows(sg.Log.of_table(chunked, metadata=LISTS), held)
    parts = [
        sg.Summary.of(chunked, part=(k, 3), metadata=LISTS, drafts=2, temperature=1.0)
        for k in (1, 2, 3)
    ]
    merged = parts[0].merge(parts[1]).merge(parts[2]).report().to_dict()
    assert merged["cells"] == sg.gap(held, drafts=2, temperature=1.0).to_dict()["cells"]


def test_an_index_of_a_dataset_chooses_its_rows() -> None:
    columns, held = lists(60)
    chosen = [5, 2, 41]
    log = sg.Log.of_table(Rows(arrow.table(columns)).select(chosen), metadata=LISTS)
    assert len(log) == 3
    for at, row in zip(chosen, log, strict=True):
        assert (row.target == held.row(at).target).all() and row.prompt_id == at // 50


def test_a_real_dataset() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    columns, held = lists(60)
    dataset = datasets.Dataset.from_dict(columns)
    same_rows(sg.Log.of_table(dataset, metadata=LISTS), held)
    assert sg.Log.of_table(dataset.shuffle(seed=1).select(range(9)), metadata=LISTS).positions == 9


def test_full_rows_go_to_every_command(log: str, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    sg.Log.open(log).write_parquet(tmp_path / "rows.parquet")
    table = parquet.read_table(tmp_path / "rows.parquet")
    polars = polars_frame(table)
    asked: dict[str, Any] = {"lengths": [1, 2], "policies": "fixed"}
    want = sg.length(log, **asked).to_dict()["results"]
    # What a log says of itself travels in the schema's metadata, which polars drops.
    said = sg.Log.open(log).metadata
    for log_of_table in (sg.Log.of_table(table), sg.Log.of_table(polars, metadata=said)):
        assert sg.length(log_of_table, **asked).to_dict()["results"] == want
    assert sg.length(table, **asked).to_dict()["results"] == want


def test_own_rules_go_through_tables() -> None:
    rows = np.random.default_rng(8).normal(size=(2, 20, 9))
    names = ("target_logits", "draft_logits")
    table = arrow.table({name: list(one) for name, one in zip(names, rows)})
    rule = sg.Sequential(lambda p, q, i, n: (np.minimum(1.0, p / q), p), name="mine")
    arrays = dict(zip(names, rows))
    found = [sg.evaluate(rule, log, 2, temperature=1.0) for log in (table, arrays)]
    assert found[0].acceptance == found[1].acceptance and len(found[0].table["number"]) == 20


def test_what_tables_are_refused_for() -> None:
    with pytest.raises(sg.Refused, match="table: has no rows; a log has a column of lists"):
        sg.gap(arrow.table({"a": [1.0]}))
    ragged = arrow.table({"target_logits": [[0.0, 1.0], [2.0]], "draft_logits": [[0.0, 1.0]] * 2})
    with pytest.raises(sg.Refused, match="row 1: has 1 entries where others have 2") as raised:
        sg.gap(ragged, **ASKED)
    assert (raised.value.tensor, raised.value.row) == ("target_logits", 1)
    absent = arrow.table({"target_logits": [[0.0, 1.0], None], "draft_logits": [[0.0, 1.0]] * 2})
    with pytest.raises(sg.Refused, match="target_logits: row 1: is null") as raised:
        sg.gap(absent, **ASKED)
    assert (raised.value.tensor, raised.value.row) == ("target_logits", 1)


def test_lists_of_engines_are_logs() -> None:
    rng = np.random.default_rng(5)
    target: list[dict[int, float]] = []
    draft: list[dict[int, float]] = []
    p, q = np.zeros((2, 30, 12))
    for at in range(30):
        for rows, full, count in ((target, p, 4 + at % 3), (draft, q, 3)):
            ids = rng.permutation(12)[:count]
            masses = rng.dirichlet(np.ones(count + 1))[:count]
            full[at, ids] = masses
            rows.append({int(one): float(np.log(mass)) for one, mass in zip(ids, masses)})
    log = sg.Log.of_lists(
        target=target, draft=draft, vocabulary=12, prompt_id=np.arange(30) // 5,
        token=[next(iter(one)) for one in target],
    )  # fmt: skip
    assert log.vocabulary == 12 and len(log) == 30
    for at, row in enumerate(log):
        assert row.token_ids is not None
        for found, full in ((row.target, p), (row.draft, q)):
            mine = np.zeros(12)
            known = ~np.isnan(found)
            mine[row.token_ids[known]] = np.exp(found[known])
            assert mine == pytest.approx(full[at], abs=1e-12)
    # One draft, over the tokens that both list: sum of min(p, q) lies within what is not listed.
    table = sg.gap(log, drafts=1, temperature=1.0).positions().to_numpy()
    least = np.minimum(p, q).sum(axis=1)
    left = 1 - np.minimum(p.sum(axis=1), q.sum(axis=1))
    assert (table["overlap/lower"] <= least + left + 1e-9).all()
    assert (table["overlap/upper"] >= least - 1e-9).all()
    probs = sg.Log.of_lists(
        target=[{k: float(np.exp(x)) for k, x in one.items()} for one in target],
        draft=[{k: float(np.exp(x)) for k, x in one.items()} for one in draft],
        vocabulary=12, rows="probs",
    )  # fmt: skip
    one, other = (
        sg.gap(which, drafts=2, temperature=1.0).to_dict()["cells"][0]["optimal_acceptance_rate"]
        for which in (log, probs)
    )
    assert one["mean"] == pytest.approx(other["mean"], abs=1e-9)


def test_positions_without_a_draft() -> None:
    log = sg.Log.of_lists(
        target=[{0: -0.5, 3: -1.2}, {1: -0.1}], draft=[{0: -0.3}, None], vocabulary=4
    )
    assert [row.lacks_draft for row in log] == [False, True]
    assert json.loads(sg.gap(log, drafts=2, temperature=1.0).json)["positions"] >= 1


def test_what_lists_are_refused_for() -> None:
    with pytest.raises(sg.Refused, match="draft: row 1: token 9 is outside") as raised:
        sg.Log.of_lists(target=[{0: 0.0}] * 2, draft=[{0: 0.0}, {1: -1.0, 9: -1.0}], vocabulary=9)
    assert (raised.value.tensor, raised.value.row, raised.value.column) == ("draft", 1, 1)
    with pytest.raises(sg.Refused, match="has 1 positions and target 2"):
        sg.Log.of_lists(target=[{0: 0.0}] * 2, draft=[{0: 0.0}], vocabulary=9)
    with pytest.raises(sg.Refused, match="rows: 'bits' is not known"):
        sg.Log.of_lists(target=[{0: 0.0}], draft=[{0: 0.0}], vocabulary=9, rows="bits")


def test_a_frame_that_lost_what_its_file_said_says_how_to_say_it(log: str, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    path = tmp_path / "rows.parquet"
    sg.Log.open(log).write_parquet(path)
    frame = polars.read_parquet(path)
    asked: dict[str, Any] = {"drafts": 2, "schemes": "top", "verifiers": "exact-match"}
    for lost in ({}, {"vocabulary": 49152}, {"metadata": {"vocabulary": 49152}}):
        with pytest.raises(sg.Refused, match=r"metadata=specgap.Log.open\(path\).metadata"):
            sg.gap(frame, **lost, **asked)
    report = sg.gap(frame, metadata=sg.Log.open(log).metadata, **asked).to_dict()
    assert report["cells"] == sg.gap(log, **asked).to_dict()["cells"]
    # Lists without a rest need the vocabulary alone.
    small = polars.DataFrame({
        "token_ids": [[0, 1], [1, 2]], "target_logprobs": [[-0.7, -0.7], [-0.1, -2.5]],
        "draft_logprobs": [[-0.7, -0.7], [-0.1, -2.5]],
    })  # fmt: skip
    assert sg.Log.of_table(small, vocabulary=3).vocabulary == 3
