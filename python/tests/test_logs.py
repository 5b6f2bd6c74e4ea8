"""Logs are written and read, with what engines did."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specgap as sg


def test_a_log_comes_back_as_it_was_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    target, draft = rng.normal(size=(2, 6, 10)).astype(np.float32)
    path = tmp_path / "log"
    with sg.LogWriter(path, dtype="float32", metadata={"note": "mine"}) as log:
        for at in range(6):
            log.append(
                target_logits=target[at],
                draft_logits=draft[at],
                prompt_id=at // 3,
                token=at,
                drafts=[1, 2] if at % 3 == 0 else [],
                accepted=1 if at % 3 == 0 else -1,
                output=at,
                round=at % 3,
            )
        assert log.positions == 6
    read = sg.Log.open(path)
    assert len(read) == 6 and read.vocabulary == 10 and read.dtypes == ("f32", "f32")
    assert read.metadata["note"] == "mine"
    for at, row in enumerate(read):
        assert (row.target == target[at]).all() and (row.draft == draft[at]).all()
        assert (row.prompt_id, row.position, row.token) == (at // 3, at % 3, at)
    records = read.engine_records()
    assert records[0].drafts == [1, 2] and records[1].drafts == [-1, -1]
    assert [one.accepted for one in records] == [1, -1, -1, 1, -1, -1]
    assert [one.round for one in records] == [0, 1, 2, 0, 1, 2]
    # The same arrays in memory give the same report, but for the log's name.
    mine = sg.gap(target, draft, prompt_id=[0, 0, 0, 1, 1, 1], temperature=1.0).to_dict()
    assert mine["cells"] == sg.gap(path, temperature=1.0).to_dict()["cells"]


def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "log"
    code = f"""
import os, specgap as sg
log = sg.LogWriter({str(path)!r})
log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0])
log.commit()
log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0])
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert sg.Log.open(path).positions == 1
    with sg.LogWriter(path, vocabulary=2, resume=True) as log:
        log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0], position=1)
    assert sg.Log.open(path).positions == 2


def test_top_heavy_logs_are_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "log"
    with sg.LogWriter(path, top=5, rest_temperatures=[0.7, 1.0]) as log:
        for _ in range(4):
            target, draft = rng.normal(0, 4, (2, 50))
            log.append(target_logits=target, draft_logits=draft)
    read = sg.Log.open(path)
    assert 5 <= read.listed <= 10 and read.row(0).token_ids is not None
    rate = sg.gap(path, drafts=2).to_dict()["cells"][0]["optimal_acceptance_rate"]
    low, high = rate["truncation"]
    assert low < high


def test_positions_are_counted_from_either_end() -> None:
    log = sg.Log.of_arrays(
        target_logits=np.zeros((3, 2)), draft_logits=np.zeros((3, 2)), prompt_id=np.arange(3)
    )
    assert log.row(-1).prompt_id == 2 == log.row(2).prompt_id
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"position {index} of a log of 3"):
            log.row(index)


def test_what_a_log_refuses(tmp_path: Path) -> None:
    log = sg.LogWriter(tmp_path / "log")
    log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0])
    with pytest.raises(ValueError, match="draft_logits.*has 3 entries; the vocabulary has 2"):
        log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="target_logits.* is NaN"):
        log.append(target_logits=[0.0, np.nan], draft_logits=[1.0, 0.0])
    with pytest.raises(ValueError, match="drafts.*token 2 is outside the vocabulary of 2"):
        log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0], drafts=[2])
    wrong: list[dict[str, Any]] = [{"prompt_id": "a"}, {"token": 1.0}, {"seed": 2**64 - 1}]
    for one in wrong:
        with pytest.raises(TypeError, match=f"{next(iter(one))}: give a whole number of 64 bits"):
            log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0], **one)
    log.close()
    with pytest.raises(ValueError, match="was closed"):
        log.append(target_logits=[0.0, 1.0], draft_logits=[1.0, 0.0])
    with pytest.raises(ValueError, match="holds a log already"):
        sg.LogWriter(tmp_path / "log", vocabulary=2)
    with pytest.raises(TypeError, match="int32 or int64|floats|type"):
        sg.LogWriter(tmp_path / "other", vocabulary=2, dtype="float8")
    with pytest.raises(ValueError, match="target_logits.* is missing"):
        sg.Log.of_arrays(draft_logits=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="prompt_id.*must be i64"):
        sg.Log.of_arrays(
            target_logits=np.zeros((2, 3)), draft_logits=np.zeros((2, 3)), prompt_id=[1]
        )
    with pytest.raises(IndexError):
        sg.Log.open(tmp_path / "log").row(5)
    assert sorted(os.listdir(tmp_path)) == ["log"]


def test_minus_zero_is_zero_and_the_lowest_id_comes_first(tmp_path: Path) -> None:
    with sg.LogWriter(tmp_path / "log", top=1, rest_temperatures=[1.0]) as writer:
        writer.append(target_logits=[-0.0, -2.0, 0.0], draft_logits=[-0.0, -2.0, 0.0])
    listed = sg.Log.open(tmp_path / "log").row(0).token_ids
    assert listed is not None and listed.tolist() == [0]
    flat, signed = np.zeros((8, 4)), np.array([[-0.0, -2.0, 0.0, -3.0]] * 8)
    signs: dict[str, Any] = {"prompt_id": np.arange(8) // 4, "position": np.arange(8) % 4, "token": np.zeros(8, int)}
    log = sg.Log.of_arrays(
        target_logits=-signed, draft_logits=signed, metadata={"sampling": {"temperature": 1.0}}, **signs
    )
    assert log.served(0, 1, temperature=1.0, top_k=1).q.tolist() == [[1, 0, 0, 0]]
    assert log.served(0, 1, temperature=0.0).q.tolist() == [[1, 0, 0, 0]]
    found = sg.length(log, lengths=[1], drafts="one-hot").to_dict()["results"]
    log = sg.Log.of_arrays(
        target_logits=-signed, draft_logits=signed + flat, metadata={"sampling": {"temperature": 1.0}}, **signs
    )
    assert found == sg.length(log, lengths=[1], drafts="one-hot").to_dict()["results"]


def test_arrays_go_to_every_command(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    target = rng.normal(0, 2, (60, 30)).astype(np.float32)
    draft = (target + rng.normal(0, 1, target.shape)).astype(np.float32)
    weights = np.exp(target.astype(np.float64))
    token = [int(rng.choice(30, p=row / row.sum())) for row in weights]
    said = {"sampling": {"temperature": 1.0}}
    prompts = np.arange(60) // 20
    with sg.LogWriter(tmp_path / "log", dtype="float32", metadata=said) as log:
        for at in range(60):
            log.append(
                target_logits=target[at],
                draft_logits=draft[at],
                prompt_id=int(prompts[at]),
                token=token[at],
            )
    # Columns first, and every second row: nothing lies as in a file.
    wide = np.zeros((120, 30), np.float32)
    wide[::2] = target
    held = sg.Log.of_arrays(
        target_logits=wide[::2],
        draft_logits=np.asfortranarray(draft),
        prompt_id=prompts,
        position=np.arange(60) % 20,
        token=token,
        metadata=said,
    )
    for report, same in (
        (sg.length(held, lengths=[1, 2]), sg.length(tmp_path / "log", lengths=[1, 2])),
        (sg.tree(held, verifiers="rrs", budget=3), sg.tree(tmp_path / "log", verifiers="rrs", budget=3)),
        (sg.paths(held, paths=[1, 2]), sg.paths(tmp_path / "log", paths=[1, 2])),
    ):
        mine, theirs = report.to_dict(), same.to_dict()
        assert set(mine) | {"command"} == set(theirs)  # arrays have none
        # They differ by the name of the log alone.
        numbers = {key for key in mine if mine[key] != theirs[key]}
        assert numbers <= {"logs", "command", "log", "provenance"}, numbers
        assert mine["results" if "results" in mine else "by_drafts"]


def test_a_token_outside_the_vocabulary_is_refused_as_it_is_appended(tmp_path: Path) -> None:
    with sg.LogWriter(tmp_path / "log") as log:
        for token, drafts in ((8, []), (-7, []), (1, [9]), (1, [-2])):
            with pytest.raises(ValueError, match="outside the vocabulary of 3"):
                log.append(
                    target_logits=[0.5, 1.0, -2.0],
                    draft_logits=[1.0, 0.1, 4.0],
                    token=token,
                    drafts=drafts,
                )
        # What was refused left nothing behind.
        assert log.positions == 0
        log.append(target_logits=[0.5, 1.0, -2.0], draft_logits=[1.0, 0.1, 4.0], token=2)
    assert sg.Log.open(tmp_path / "log").row(0).token == 2


def test_masks_that_a_half_type_cannot_hold_change_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    target, draft = rng.normal(0, 2, (2, 6, 40)).astype(np.float32)
    for at, mask in enumerate((-1e9, np.finfo(np.float32).min, -7e4, -np.inf)):
        target[:, at] = mask
        draft[:, at] = mask
    rates = []
    for dtype in ("float16", "float32"):
        with sg.LogWriter(tmp_path / dtype, dtype=dtype) as log:
            for row in range(6):
                log.append(target_logits=target[row], draft_logits=draft[row])
        report = sg.gap(tmp_path / dtype, drafts=2, temperature=[1.0, 20.0]).to_dict()
        rates.append([cell["optimal_acceptance_rate"]["mean"] for cell in report["cells"]])
    assert rates[0] == pytest.approx(rates[1], abs=2e-3)


def test_what_was_not_said_is_not_in_the_report(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    target, draft = rng.normal(size=(2, 6, 10))
    said = {"sampling": {"temperature": 0.6}}
    labels: dict[str, Any] = {"prompt_id": [0, 0, 0, 1, 1, 1], "token": [1] * 6}
    report = sg.gap(target, draft, metadata=said, **labels)
    assert report.to_dict()["logs"][0]["metadata"]["sampling"] == {"temperature": 0.6}
    assert "temperature_applied" not in report.json
    # And what was said is what is measured.
    assert {cell["temperature"] for cell in report.to_dict()["cells"]} == {0.6}
    assert "at temperature 0.6, at which the text was sampled," in report.text()
    assert "tokens sampled" in report.text(whole=True)
    others = sg.gap(target, draft, **labels).to_dict()["cells"]
    assert {cell["temperature"] for cell in others} == {0.7, 1.0}


def test_reports_have_the_digests_of_what_was_measured(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    target, draft = rng.normal(size=(2, 6, 10)).astype(np.float32)
    # Whichever way the entries lie.
    backwards = target[::-1].copy()[::-1]
    report = sg.gap(backwards, draft, temperature=1.0).to_dict()
    found = {one["name"]: one["sha256"] for one in report["logs"][0]["files"]}
    want = {"target_logits": target, "draft_logits": draft}
    assert found == {
        name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in want.items()
    }
    np.savez(tmp_path / "log.npz", **want)
    both = sg.gap([tmp_path / "log.npz", {**want}], temperature=1.0).to_dict()
    file = hashlib.sha256((tmp_path / "log.npz").read_bytes()).hexdigest()
    assert both["logs"][0]["files"] == [
        {"name": "log.npz", "bytes": (tmp_path / "log.npz").stat().st_size, "sha256": file}
    ]
    assert [one["name"] for one in both["logs"][1]["files"]] == ["target_logits", "draft_logits"]
    # Parts of a log together are the whole log, also in this.
    parts = [sg.Summary.of(tmp_path / "log.npz", part=(k, 2), temperature=1.0) for k in (2, 1)]
    whole = sg.gap(tmp_path / "log.npz", temperature=1.0)
    assert parts[0].merge(parts[1]).report().json == whole.json
    assert whole.to_dict()["logs"][0]["files"][0]["sha256"] == file


def test_arrays_that_are_compared_have_one_name_each_and_no_command() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4, 6, 10))
    logs = [{"target_logits": a, "draft_logits": b} for a, b in (rows[:2], rows[2:])]
    report = sg.gap(logs, temperature=1.0)
    data = report.to_dict()
    names = ["arrays", "arrays-2"]
    assert [log["name"] for log in data["logs"]] == [log["folder"] for log in data["logs"]] == names
    assert "command" not in data and "command" not in sg.gap(logs[0], temperature=1.0).to_dict()
    for text in (report.text(whole=True), sg.gap(logs[0], temperature=1.0).text(whole=True)):
        assert "specgap gap arrays" not in text and "arrays in memory" in text


def test_a_position_that_stands_twice_is_told() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2, 6, 10))
    of: dict[str, Any] = {"prompt_id": [0, 1, 0, 1, 0, 1], "temperature": 1.0, "drafts": 2}
    assert "stands before" not in sg.gap(*rows, position=[0, 0, 1, 1, 2, 2], **of).text()
    # Another text of the same prompt begins at 0 again.
    assert "stands before" not in sg.gap(*rows, position=[0, 0, 1, 1, 0, 0], **of).text()
    twice = sg.gap(*rows, position=[0, 0, 1, 1, 1, 2], **of)
    assert "1 position has an index that stands before it already" in twice.text(width=300)
    assert twice.to_dict()["logs"][0]["repeated_positions"] == 1


def test_lists_that_leave_out_much_say_so_and_ask_for_the_base() -> None:
    rng = np.random.default_rng(0)
    logits = -np.sort(-rng.normal(0, 2, (2, 30, 200)))
    listed = (logits - np.log(np.exp(logits).sum(-1, keepdims=True)))[..., :60]
    ids = np.tile(np.arange(60), (30, 1))

    def text(scale: float) -> str:
        rows = {"target_logprobs": scale * listed[0], "draft_logprobs": scale * listed[1]}
        log = sg.Log.of_arrays(**rows, token_ids=ids, metadata={"vocabulary": 200})
        return sg.gap(log, drafts=2, temperature=1.0).text(width=1000)

    assert "Base 2?" in text(1 / np.log(2)) and "The lists leave out much" in text(1 / np.log(2))
    assert "Base 2?" not in text(1.0)


def test_modules_are_there_without_an_import_of_their_own() -> None:
    code = "import specgap as sg; assert sg.rules.rrs and 'adapters' in dir(sg) and sg.adapters"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'rulez'"):
        sg.rulez  # noqa: B018


def test_lists_are_written_as_engines_return_them(tmp_path: Path) -> None:
    target = [{3: -0.2, 1: -2.5}, {0: -0.7, 4: -0.8, 2: -3.0}, {2: -0.1}]
    draft: list[dict[int, float] | None] = [{3: -0.1}, {4: -0.3, 0: -1.5}, None]
    path = tmp_path / "lists"
    with sg.LogWriter(path, vocabulary=5, lists=True) as log:
        for at, (p, q) in enumerate(zip(target, draft)):
            log.append(
                target_logprobs=p, draft_logprobs=q, token=max(p), drafts=[3], accepted=0, output=1
            )
            # Shards of other widths, which become one.
            log.commit()
        assert log.positions == 3
        for wrong, words in [
            ({5: -0.1}, "token 5 is outside the vocabulary of 5"),
            ({-1: -0.1}, "token -1 is outside the vocabulary"),
            ({1: 0.5}, "logarithms of probabilities are at most 0"),
            ({1: math.nan}, "is NaN; logarithms"),
            ({1: -0.1, 2: -0.2}, "sum to 1.7"),
            ({}, "lists no token"),
        ]:
            with pytest.raises(sg.Refused, match=words):
                log.append(target_logprobs=wrong, draft_logprobs=None)
        with pytest.raises(TypeError, match="a log of lists takes target_logprobs"):
            log.append(target_logits=[0.0] * 5, draft_logits=[0.0] * 5)
        assert log.positions == 3
    same = sg.Log.of_lists(target=target, draft=draft, vocabulary=5)
    read = sg.Log.open(path)
    for at in range(3):
        ours, theirs = read.row(at), same.row(at)
        np.testing.assert_array_equal(ours.token_ids, theirs.token_ids)
        assert ours.lacks_draft == (at == 2)
        for a, b in ((ours.target, theirs.target), (ours.draft, theirs.draft)):
            np.testing.assert_allclose(a, b, rtol=1e-7)
    with sg.LogWriter(path, vocabulary=5, lists=True, resume=True) as log:
        log.append(target_logprobs={1: -0.5}, draft_logprobs={1: -0.4})
        assert log.positions == 4
    with pytest.raises(ValueError, match="was begun with lists of tokens; go on with these"):
        sg.LogWriter(path, vocabulary=5, resume=True)
    with pytest.raises(sg.Refused, match="lists: are of the tokens that they name"):
        sg.LogWriter(tmp_path / "other", lists=True)
    with sg.LogWriter(tmp_path / "full") as log:
        with pytest.raises(TypeError, match="lists of tokens say"):
            log.append(target_logprobs={1: -0.5})


def test_many_small_lists_become_one_file(tmp_path: Path) -> None:
    with sg.LogWriter(tmp_path / "log", vocabulary=50, lists=True) as log:
        for at in range(40):
            tops = {token: -4.0 for token in range(1 + at % 7)}
            log.append(target_logprobs=tops, draft_logprobs=tops if at % 5 else None)
            log.commit()
    read = sg.Log.open(tmp_path / "log")
    assert read.positions == 40 and len(list((tmp_path / "log").glob("shard-*"))) < 20
    for at in range(40):
        row = read.row(at)
        assert row.token_ids is not None
        assert row.token_ids.tolist() == list(range(1 + at % 7)) and row.lacks_draft == (at % 5 == 0)


def test_groups_may_be_names() -> None:
    rows = np.zeros((4, 3))
    named = sg.Log.of_arrays(
        target_logits=rows, draft_logits=rows, group=["code", "code", "chat", "chat"]
    )
    assert named.metadata["groups"] == ["chat", "code"]
    numbered = sg.Log.of_arrays(target_logits=rows, draft_logits=rows, group=[0, 0, 1, 1])
    assert "groups" not in numbered.metadata


def test_prompts_may_have_names() -> None:
    rows = np.random.default_rng(3).normal(size=(2, 12, 9))
    numbers = np.repeat([4, 1, 7], 4)
    asked: dict[str, Any] = {"drafts": 2, "temperature": 1.0, "progress": False}
    for names in ([f"text {one}" for one in numbers], np.array(numbers.astype(str), dtype=object)):
        named, counted = (sg.gap(*rows, prompt_id=one, **asked).to_dict() for one in (names, numbers))
        assert named["clusters"] == counted["clusters"] == 3
        for one, other in zip(named["cells"], counted["cells"]):
            best, same = (cell["optimal_acceptance_rate"]["ci95"] for cell in (one, other))
            assert best == pytest.approx(same, abs=1e-12)
    with pytest.raises(TypeError, match="prompt_id: has entries of type .*; give whole numbers"):
        sg.gap(*rows, prompt_id=["a"] * 11 + [None], **asked)


def test_a_list_without_a_token_that_can_be_drawn_is_refused_by_its_row() -> None:
    of_draft = np.array([[0.5, 0.0], [0.0, 0.0]])
    log = sg.Log.of_arrays(
        metadata={"vocabulary": 5, "rest_temperatures": [1.0]},
        token_ids=np.array([[0, 1], [0, 1]], np.int32),
        target_probs=np.array([[0.6, 0.3], [0.6, 0.3]]),
        draft_probs=of_draft,
        target_rest=np.array([[0.1], [0.1]]),
        draft_rest=1 - of_draft.sum(1, keepdims=True),
    )
    with pytest.raises(sg.Refused, match="draft_probs: row 1: has no listed token that can be drawn"):
        sg.gap(log, temperature=1.0, drafts=[1])


def test_trees_on_own_lists_hold_the_full_rows() -> None:
    rng = np.random.default_rng(3)
    target, draft = rng.dirichlet(np.ones(8), (2, 40))
    token = np.array([rng.choice(8, p=row) for row in target])
    place: Any = {"prompt_id": np.arange(40) // 10, "position": np.arange(40) % 10, "token": token}
    ids, own = (np.argsort(-rows, axis=1)[:, :3] for rows in (target, draft))
    lists: Any = {
        "target_token_ids": ids,
        "draft_token_ids": own,
        "target_probs": np.take_along_axis(target, ids, 1),
        "draft_probs": np.take_along_axis(draft, own, 1),
    }
    said: Any = {"sampling": {"temperature": 1.0}, "vocabulary": 8}
    cut = sg.Log.of_arrays(metadata=said, **lists, **place)
    full = sg.Log.of_arrays(metadata=said, target_probs=target, draft_probs=draft, **place)
    asked: Any = {"topology": ["2x1", "chain-2"], "schemes": "with-replacement", "cost_ratio": 0.1}
    some, whole = (sg.tree(log, budget=1, **asked).to_dict()["results"] for log in (cut, full))
    beside = {(one["tree"], one["verifier"]): one for one in whole}
    assert len(some) >= 8
    for one in some:
        for number in ("tokens_per_call", "speedup"):
            low, high = one[number]["truncation"]
            assert low <= beside[one["tree"], one["verifier"]][number]["mean"] <= high


def test_rows_as_rules_see_them(tmp_path: Path) -> None:
    """The rows that evaluate shows a rule, of full rows and of lists."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(2, 12, 30))
    full = sg.Log.of_arrays(target_logits=rows[0], draft_logits=rows[1], prompt_id=np.arange(12))
    with sg.LogWriter(tmp_path / "tops", vocabulary=30, top=12, dtype="float64") as writer:
        for target, draft in zip(*rows):
            writer.append(target_logits=target, draft_logits=draft)
    tops = sg.Log.open(tmp_path / "tops")
    asked: Any = {"temperature": 0.8, "top_k": 5, "top_p": 0.9}
    for log in (full, tops):
        seen: list[Any] = []

        def shown(p: Any, q: Any, drafts: Any, rng: Any) -> Any:
            seen.append((p.copy(), q.copy()))
            return p

        sg.evaluate(shown, log, 1, samples=12, compare=[], threads=1, **asked)
        some = log.served(3, 9, **asked)
        every = log.served(**asked)
        assert some.p.shape == (6, 30 if log is full else some.p.shape[1])
        for number in range(12):
            own = [one[number][: (one[number] > 0).nonzero()[0].max() + 1] for one in (every.p, every.q)]
            assert any(
                all(
                    len(mine) <= len(x) and (mine == x[: len(mine)]).all() and not x[len(mine) :].any()
                    for mine, x in zip(own, one)
                )
                for one in seen
            )
        assert (some.p == every.p[3:9]).all() and (some.q == every.q[3:9]).all()
        assert ((every.p > 0).sum(axis=1) <= 5).all() and np.abs(every.p.sum(axis=1) - 1).max() < 1e-12
    assert full.served(**asked).token_ids is None
    # Both forms have one law.
    ids = tops.served(**asked).token_ids
    assert ids is not None
    for number in range(12):
        dense = np.zeros(30)
        dense[ids[number][ids[number] >= 0]] = tops.served(**asked).p[number][ids[number] >= 0]
        assert np.abs(dense - full.served(**asked).p[number]).max() < 1e-6
    with pytest.raises(sg.Refused, match="position 0.* lists some tokens only, and others can be drawn; keep no"):
        tops.served(temperature=1.0)
    with pytest.raises(ValueError, match="temperature: 2 are given"):
        full.served(temperature=[0.7, 1.0])  # type: ignore[arg-type]
