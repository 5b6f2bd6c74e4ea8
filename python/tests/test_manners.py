"""Python's manners: refusals that say where, names nearly right, what travels, and help."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import specgap as sg
from specgap import _native

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])


def logits(shape: tuple[int, ...], seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 2, shape).astype(np.float32)


def pair(seed: int = 0) -> dict[str, Any]:
    target = logits((12, 30), 7)
    draft = target + logits((12, 30), seed) / 3
    return {"target_logits": target, "draft_logits": draft, "prompt_id": np.arange(12) // 4}


def refused(call: Any, *given: Any, **named: Any) -> sg.Refused:
    with pytest.raises(sg.Refused) as raised:
        call(*given, **named)
    return raised.value


def test_a_pipeline_may_drop_the_row_and_go_on() -> None:
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(40), (2, 60))
    clean = sg.alpha(np.delete(p, [7, 31], 0), np.delete(q, [7, 31], 0), 3).value
    p[31, 4], q[7] = -0.25, np.nan
    dropped = []
    while True:
        try:
            found = sg.alpha(p, q, 3)
            break
        except sg.Refused as error:
            dropped.append((error.tensor, error.row, error.column))
            p, q = np.delete(p, error.row or 0, 0), np.delete(q, error.row or 0, 0)
    # The first one is told first, on any number of threads.
    assert dropped == [("q", 7, 0), ("p", 30, 4)] and (found.value == clean).all()


def test_refusals_have_fields(tmp_path: Path, log: str) -> None:
    error = refused(sg.alpha, [[0.5, 0.5], [1.5, -0.5]], [[0.5, 0.5]] * 2, 2)
    assert (error.tensor, error.row, error.column) == ("p", 1, 1)
    assert error.cure is not None and error.cure.startswith("probabilities must be >= 0")
    assert isinstance(error, ValueError)
    error = refused(sg.alpha, np.ones((2, 2)), np.ones((2, 2)), 2)
    assert (error.tensor, error.row, error.column) == ("p", 0, None)
    bad = logits((3, 5))
    bad[2, 3] = np.nan
    for ask in (sg.alpha, lambda *given, **named: sg.acceptance("rrs", *given, **named)):
        error = refused(ask, bad, bad, 2, logits=True)
        assert (error.tensor, error.row, error.column) == ("p", 2, 3)
    error = refused(sg.plan, bad[2], bad[0], 2, logits=True)
    assert (error.tensor, error.row, error.column) == ("p", 0, 3)
    error = refused(sg.evaluate, rule, [[0.5, 0.5], [1.5, -0.5]], [[0.5, 0.5]] * 2, 1)
    assert (error.tensor, error.row, error.column) == ("p", 1, 1)
    error = refused(sg.gap, bad, logits((3, 5)))
    assert (error.tensor, error.row, error.column) == ("target_logits", 2, 3)
    error = refused(sg.Log.of_arrays, draft_logits=bad)
    assert (error.tensor, error.row) == ("target_logits", None)
    with sg.LogWriter(tmp_path / "log") as writer:
        error = refused(writer.append, target_logits=bad[2], draft_logits=bad[0])
        assert error.tensor == "target_logits" and error.column == 3
    error = refused(sg.gap, log, verifiers="zz")
    assert (error.tensor, error.row, error.column) == (None, None, None)
    again = pickle.loads(pickle.dumps(refused(sg.alpha, [-1.0, 2.0], [0.5, 0.5], 2)))
    assert (again.tensor, again.row, again.column) == ("p", 0, 0) and "entry 0" in str(again)


def rule(p: Any, q: Any, drafts: Any, rng: Any) -> Any:
    return drafts[0]


#: The call, the exception, and what it has to say.
MISLED: list[tuple[Any, type[Exception], str]] = [
    (lambda log: sg.gap({"p": P, "q": Q}), ValueError, "no such tensor: p; rows are target_logits"),
    (
        lambda log: sg.gap({"target_logit": P, "draft_logits": Q}),
        ValueError,
        r"no such tensor: target_logit; .*did you mean target_logits\?",
    ),
    (lambda log: sg.alpha(log, Q, 2), TypeError, "p: is a log, or the path of one"),
    (lambda log: sg.alpha(sg.Log.open(log), Q, 2), TypeError, r"\(rule, log, n\) take logs"),
    (lambda log: sg.evaluate(rule, log, log, 3), TypeError, "a log has both rows"),
    (
        lambda log: sg.gap(log, verifiers=[("k-seq", "stratified")]),
        ValueError,
        "verifiers: k-seq is lossless for with-replacement drafts, and not for stratified ones",
    ),
    (
        lambda log: sg.evaluate(rule, P, Q, [1, 2]),  # type: ignore[call-overload]
        TypeError,
        "n: give drafts as a whole number, such as 2; this is list",
    ),
    (
        lambda log: sg.alpha([[0.5, 0.5], [1.0]], [[0.5, 0.5]] * 2, 2),
        ValueError,
        "p: row 1 has 1 entries and row 0 has 2; give rows of one length",
    ),
    (
        lambda log: sg.gap(log, drafts="2-x"),
        ValueError,
        "drafts: give whole numbers of at least 1, or such as '2-4'; this is '2-x'",
    ),
    (lambda log: sg.gap(log, drafts=2.5), ValueError, "this is 2.5"),  # type: ignore[arg-type]
    (lambda log: sg.tree(log, topology="none-such"), ValueError, "^(?!.*--).*none-such"),
    (lambda log: sg.audit(log, rule="rrss"), ValueError, "'rrss' for rule="),
    (lambda log: sg.length(log, lengths="many"), ValueError, "'many' for lengths="),
    (lambda log: sg.gap(log, top_p=2.0), ValueError, "^top_p=2 is out of range"),
    (lambda log: sg.gap(log, vocabulary=0), ValueError, "vocabulary=0 keeps no token"),
    (
        lambda log: sg.gap(log, schemes="hub", drafts=3),
        ValueError,
        "ask for drafts=2",
    ),
    (
        lambda log: sg.alpha(P, Q, 2, "without_replacement"),  # type: ignore[call-overload]
        ValueError,
        r"did you mean without-replacement\?",
    ),
    (
        lambda log: sg.alpha(P, Q, 2, "wr"),  # type: ignore[call-overload]
        ValueError,
        r"^(?!.*(product|explicit|composed)).*did you mean with-replacement\?",
    ),
    (
        lambda log: sg.gap(log, schemes="Hubb"),  # type: ignore[arg-type]
        ValueError,
        r"did you mean hub\?",
    ),
    (
        lambda log: sg.gap(log, verifiers="rrss"),  # type: ignore[arg-type]
        ValueError,
        r"did you mean rrs\?",
    ),
    (
        lambda log: sg.evaluate(rule, log, 2, topk=200),  # type: ignore[call-overload]
        TypeError,
        r"evaluate\(\) got an unexpected keyword argument 'topk'; did you mean top_k=\?",
    ),
    (
        lambda log: sg.evaluate(rule, log, 4, "stratified"),  # type: ignore[call-overload]
        TypeError,
        "scheme goes by name: evaluate.verifier, log, 4, scheme='stratified'",
    ),
    (
        lambda log: sg.gap(log, draft=2),  # type: ignore[call-arg]
        TypeError,
        r"gap\(\) got an unexpected keyword argument 'draft'; did you mean drafts=\?",
    ),
    (
        lambda log: sg.gap(log, schemes="rrs"),  # type: ignore[arg-type]
        ValueError,
        "choose one of with-replacement, .*, top$",
    ),
    (lambda log: sg.tree(log, topology="2by2"), ValueError, '^topology: "2by2" is no tree'),
    (
        lambda log: sg.acceptance("rrs", P, Q, 2, "without-replacement"),
        ValueError,
        "of without-replacement drafts take rrs-wo",
    ),
    (
        lambda log: sg.acceptance("kseq", P, Q, 2),  # type: ignore[arg-type]
        ValueError,
        r"did you mean k-seq\?",
    ),
    (lambda log: sg.gap(log, schemes=5), TypeError, "schemes: give names .* this is int"),  # type: ignore[arg-type]
    (lambda log: sg.gap(log, verifiers=5), TypeError, "verifiers: give names .* this is int"),  # type: ignore[arg-type]
    (lambda log: sg.gap(log, junit="a.xml"), ValueError, "junit: goes with baseline="),
    (lambda log: sg.gap(log, within=0.1), ValueError, "within: goes with baseline="),
    (lambda log: sg.Summary.of(log, part="1/3"), TypeError, "part: give the I-th of K"),  # type: ignore[arg-type]
    (lambda log: sg.acceptance("rrs", P, Q, 2, seed=-1), ValueError, "seed is -1; give a whole number"),
    (lambda log: sg.evaluate(rule, P, Q, seed=-1), ValueError, "seed is -1; give a whole number"),
    (
        lambda log: sg.alpha(P, Q, 2, logits=True, temperature="1"),  # type: ignore[call-overload]
        TypeError,
        "temperature: give a number; this is '1'",
    ),
    (lambda log: sg.alpha(P, Q, np.array(9), "stratified"), ValueError, "stratified draws distinct tokens"),  # type: ignore[call-overload]
    (lambda log: sg.alpha(P, Q, 9, "greedy"), ValueError, "greedy draws distinct tokens"),
    (lambda log: sg.laws.tuples([[0.7, 1.2]], [1]), TypeError, "tuples: give lists of tokens' ids"),
    (
        lambda log: sg.plan(P, Q, 2).law([[0, 1], [1, 1]]),  # type: ignore[list-item]
        ValueError,
        "drafts: give one tuple of tokens",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), MISLED)
def test_messages_say_what_was_meant(
    call: Any, error: type[Exception], message: str, log: str
) -> None:
    with pytest.raises(error, match=message):
        call(log)


def test_settings_are_spelled_as_keywords_and_commands_stay() -> None:
    for said, meant in [
        ("⟨vocab 7⟩ keeps nothing", "vocabulary=7 keeps nothing"),
        ("invalid value 'x' for ⟨rule⟩", "invalid value 'x' for rule="),
        ("hub is for 2, so ask for ⟨drafts 2⟩", "hub is for 2, so ask for drafts=2"),
        ("so ask for ⟨laws without-replacement⟩", 'so ask for schemes="without-replacement"'),
        ("⟨alpha⟩ is above 0", "alpha= is above 0"),
        ("run specgap gap log --drafts 2", "run specgap gap log --drafts 2"),
        ("capture it anew with ⟨rollouts 4⟩", "capture it anew with --rollouts 4"),
        ("no setting: ⟨x y or ⟨2⟩", "no setting: ⟨x y or ⟨2⟩"),
    ]:
        assert str(sg.Refused(said)) == meant


def test_files_of_other_kinds_say_how_they_become_logs(tmp_path: Path) -> None:
    for name, cure in [
        ("x.pt", "torch.load"),
        ("x.npy", "numpy.load"),
        ("x.jsonl", "of_lists"),
        ("x.arrow", "table"),
    ]:
        (tmp_path / name).write_bytes(b"x")
        for call in (sg.gap, sg.length):
            assert cure in str(refused(call, tmp_path / name))


def test_tensors_of_other_kinds_say_what_to_give() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    for rows, cure in (
        (nested, "to_padded_tensor"),
        (torch.eye(3).to_sparse(), r"p\.to_dense\(\)"),
        (torch.eye(3).to(torch.float8_e4m3fn), r"float8_e4m3fn; give p.float\(\)"),
    ):
        with pytest.raises(TypeError, match=cure):
            sg.alpha(rows, torch.eye(3), 2)


def test_aliases_are_read() -> None:
    for alias, law in (("iid", "with-replacement"), ("gumbel-top-k", "without-replacement")):
        found: Any = sg.alpha(P, Q, 2, alias)  # type: ignore[call-overload]
        assert found.value == sg.alpha(P, Q, 2, law).value  # type: ignore[call-overload]


def test_types_of_names_are_the_tables() -> None:
    assert set(get_args(sg.LawName)) == set(sg.schemes())
    assert set(get_args(sg.RuleName)) == set(sg.verifiers())
    every = {name: of_rows for name, _, of_rows in _native.schemes()}
    assert {name for name, of_rows in every.items() if of_rows} == set(sg.schemes())


def test_drafts_as_the_command_line_has_them(log: str) -> None:
    small: dict[str, Any] = {"temperature": 1.0, "verifiers": "rrs", "schemes": "with-replacement"}
    arrays = pair()
    want = sg.gap(arrays, drafts=[2, 3, 4], **small).json
    for drafts in ("2-4", "2,3-4", [2.0, 3, 4], np.array([2, 3, 4])):
        assert sg.gap(arrays, drafts=drafts, **small).json == want  # type: ignore[arg-type]


def test_one_row_goes_with_many() -> None:
    p, q = np.random.default_rng(3).dirichlet(np.ones(50), (2, 6))
    for one, other in ((p[0], q), (p, q[0]), (p[:1], q)):
        pairs = np.broadcast_to(one, p.shape), np.broadcast_to(other, p.shape)
        assert (sg.alpha(one, other, 2).value == sg.alpha(*pairs, 2).value).all()
        own = sg.acceptance("rrs", one, other, 2).value
        assert (own == sg.acceptance("rrs", *pairs, 2).value).all()
    with pytest.raises(ValueError, match="both are rows over one vocabulary"):
        sg.alpha(p[:2], q, 2)


def test_logs_by_name_are_compared(tmp_path: Path) -> None:
    with sg.LogWriter(tmp_path / "third", dtype="float32") as log:
        arrays = pair(3)
        for at in range(12):
            log.append(
                target_logits=arrays["target_logits"][at],
                draft_logits=arrays["draft_logits"][at],
                prompt_id=int(arrays["prompt_id"][at]),
            )
    named: Any = {"eagle": pair(1), "medusa": pair(2), "mine": tmp_path / "third"}
    small: dict[str, Any] = {"drafts": 2, "temperature": 1.0, "verifiers": "rrs"}
    report = sg.gap(named, **small)
    data = report.to_dict()
    assert [one["name"] for one in data["logs"]] == ["eagle", "medusa", "mine"]
    assert all(name in report.markdown() for name in named)
    saved = report.save(tmp_path / "out")
    assert all((saved.parent / name / "report.json").exists() for name in named)
    alone = sg.gap(sg.Log.open(tmp_path / "third").called("mine"), **small).to_dict()
    assert alone["logs"][0]["name"] == "mine"
    with pytest.raises(ValueError, match="compares none by name"):
        sg.length(named)


TRAVELS: dict[str, Any] = {"drafts": 2, "temperature": 1.0, "verifiers": "rrs"}


def carried(one: Any) -> list[Any]:
    return [pickle.loads(pickle.dumps(one)), copy.deepcopy(one)]


def test_logs_travel(log: str) -> None:
    arrays = sg.Log.of_arrays(**pair(), metadata={"note": "x"})
    for one in (arrays, sg.Log.open(log), arrays.called("mine")):
        for again in carried(one):
            assert again.path == one.path and again.metadata == one.metadata
            assert len(again) == len(one) and again.vocabulary == one.vocabulary
            assert (again.row(5).target == one.row(5).target).all()
    assert sg.gap(carried(arrays)[0], **TRAVELS).json == sg.gap(arrays, **TRAVELS).json


def test_plans_travel() -> None:
    plan = sg.plan(P, Q, 2)
    for again in carried(plan):
        assert again.acceptance == plan.acceptance and (again.residual == plan.residual).all()
        assert again.emit([[0, 1]] * 50, 7)[0].tolist() == plan.emit([[0, 1]] * 50, 7)[0].tolist()


def test_reports_travel(log: str, tmp_path: Path) -> None:
    single, compared = sg.gap(pair(), **TRAVELS), sg.gap([pair(1), pair(2)], **TRAVELS)
    replayed = sg.length(log, lengths=2, policies="fixed")
    for at, report in enumerate((single, compared, replayed)):
        for again in carried(report):
            assert (again.command, again.ok, again.json) == (report.command, report.ok, report.json)
            assert again.html() == report.html() and again.markdown() == report.markdown()
            for whole in (False, True):
                assert again.text(whole=whole) == report.text(whole=whole)
            again.save(tmp_path / f"{at}-again")
        report.save(tmp_path / f"{at}")
        names = [one.relative_to(tmp_path / f"{at}") for one in (tmp_path / f"{at}").rglob("*.*")]
        for file in names:
            saved = (tmp_path / f"{at}" / file).read_bytes()
            assert (tmp_path / f"{at}-again" / file).read_bytes() == saved
    with pytest.raises(ValueError, match="has its text at 100 columns"):
        carried(replayed)[0].text(width=60)
    # A summary makes pages anew, of any width.
    assert carried(single)[0].text(width=60) == single.text(width=60)
    table = carried(single)[0].positions().to_numpy()
    for name, column in single.positions().to_numpy().items():
        assert np.array_equal(table[name], column, equal_nan=column.dtype.kind == "f")


def test_a_small_table_is_kept_as_it_was_measured() -> None:
    calls: list[int] = []
    report = sg.gap(pair(), progress=lambda done, total: calls.append(done), **TRAVELS)
    told = len(calls)
    assert len(report.positions()) == 12 and len(calls) == told
    again = sg.gap(
        pair(), positions=False, progress=lambda done, total: calls.append(done), **TRAVELS
    )
    told = len(calls)
    assert len(again.positions()) == 12 and len(calls) > told


def test_positions_in_long_form() -> None:
    wide = sg.gap(
        pair(), drafts=[2, 3], temperature=[0.7, 1.0], verifiers=["rrs", "k-seq"]
    ).positions()
    long = wide.to_long()
    assert long.names == [
        "log", "number", "prompt_id", "position", "token", "temperature", "drafts", "scheme",
        "verifier", "value", "lower", "upper",
    ]  # fmt: skip
    columns, table = wide.to_numpy(), long.to_numpy()
    numbers = [name for name in wide.names if f"{name}/lower" in wide.names]
    assert len(long) == sum(int(np.isfinite(columns[name]).sum()) for name in numbers)
    found = {
        (int(n), float(t), int(d), str(s), str(v)): (float(x), float(low), float(high))
        for n, t, d, s, v, x, low, high in zip(
            *(table[name] for name in ("number", "temperature", "drafts", "scheme", "verifier")),
            *(table[name] for name in ("value", "lower", "upper")),
            strict=True,
        )
    }
    assert len(found) == len(long)
    for row in range(len(wide)):
        for name in numbers:
            if not np.isfinite(columns[name][row]):
                continue
            law, _, its = name.rpartition("/")
            key = int(columns["number"][row]), float(columns["temperature"][row]), int(
                columns["drafts"][row]
            )
            want = [columns[f"{name}{end}"][row] for end in ("", "/lower", "/upper")]
            assert found[(*key, law, its)] == tuple(map(float, want))
    assert {"optimum", "rrs", "k-seq", "overlap"} <= set(table["verifier"].tolist())
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(long.to_pandas())
    means = frame[frame.verifier == "rrs"].groupby(["temperature", "drafts"]).value.mean()
    assert len(means) == 4


def test_help_says_what_comes_in_and_out() -> None:
    for call in (
        sg.alpha, sg.acceptance, sg.plan, sg.gap, sg.length, sg.tree, sg.paths, sg.audit
    ):  # fmt: skip
        words = inspect.getdoc(call) or ""
        assert "Returns" in words and "Raises" in words, call.__name__
        for name in inspect.signature(call).parameters:
            assert re.search(f"``{name}(=[^`]*)?``", words), (call.__name__, name)
    for kind in (
        sg.Evaluation, sg.LogEvaluation, sg.BlockEvaluation, sg.TextEvaluation, sg.Row,
        sg.EngineRecord,
    ):  # fmt: skip
        words = inspect.getdoc(kind) or ""
        for field in dataclasses.fields(kind):
            assert f"``{field.name}``" in words, (kind.__name__, field.name)


CTRL_C = """
import sys, time, numpy as np, specgap as sg
rng = np.random.default_rng(0)
p, q = rng.dirichlet(np.full({vocabulary}, 0.1), (2, 400))
print("begun", flush=True)
try:
    {call}
except KeyboardInterrupt:
    sys.exit(3)
"""


@pytest.mark.parametrize(
    ("vocabulary", "call"),
    [
        (20_000, "[sg.alpha(p, q, 64, 'without-replacement') for _ in range(100)]"),
        (20_000, "sg.acceptance('rrs-wo', p, q, 8)"),
        (4_000, "sg.gap(np.log(p), np.log(q), temperature=1.0, plans='every')"),
        (20, "[sg.alpha(p[0], q[0], 2) for _ in range(10**8)]"),
        (
            150,
            "[sg.solve({'target': p[0], 'drafts': 3, 'draft': {'scheme': 'with-replacement', 'q': q[0]}}) for _ in range(100)]",
        ),
    ],
)
def test_ctrl_c_stops_at_once(vocabulary: int, call: str) -> None:
    code = CTRL_C.format(vocabulary=vocabulary, call=call)
    running = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # A shell without job control has Ctrl-C ignored in what it starts in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    try:
        assert running.stdout is not None and running.stdout.readline() == b"begun\n"
        time.sleep(1.0)
        assert running.poll() is None, "it was done before it was stopped"
        asked = time.monotonic()
        os.kill(running.pid, signal.SIGINT)
        assert running.wait(timeout=60) == 3
        # At the end of the row that is in hand, on a busy machine.
        assert time.monotonic() - asked < 5.0
    finally:
        running.kill()
        running.wait()


def test_numbers_out_of_range_are_named() -> None:
    p, q = [0.5, 0.5], [0.75, 0.25]
    with pytest.raises(sg.Refused, match="n is 1180591620717411303424; drafts are at most"):
        sg.alpha(p, q, 2**70)
    with pytest.raises(sg.Refused, match="threads is -1"):
        sg.alpha(p, q, 2, threads=-1)
    with pytest.raises(sg.Refused, match="threads is -1"):
        sg.acceptance("rrs", p, q, 2, threads=-1)
    with pytest.raises(TypeError, match="n: give .* this is bool"):
        sg.alpha(p, q, True)
    plan = sg.plan(p, q, 2)
    with pytest.raises(TypeError, match="drafts: has entries of type float64"):
        plan.emit([1.5, 1])


def test_one_thing_is_read_under_each_of_its_names(log: str) -> None:
    call: Any = sg.alpha
    assert call(P, Q, drafts=2, law="iid").scheme == "with-replacement"
    small: dict[str, Any] = {"temperature": 1.0, "verifiers": "rrs", "schemes": "with-replacement"}
    want = sg.gap(pair(), drafts=2, **small).json
    for other in (
        {"n": 2, "scheme": "with-replacement", "rule": "rrs"},
        {"n": 2, "laws": "with-replacement", "rules": "rrs"},
    ):
        assert sg.gap(pair(), temperature=1.0, **other).json == want  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'n'"):
        sg.gap(pair(), drafts=2, n=3, **small)  # type: ignore[call-arg]


def test_a_log_opens_by_its_path_and_a_problem_takes_arrays(log: str) -> None:
    assert sg.Log(log).positions == sg.Log.open(log).positions
    assert pickle.loads(pickle.dumps(sg.Log(log))).vocabulary == sg.Log.open(log).vocabulary
    q = np.array([0.75, 0.25])
    coin = {"target": np.array([0.5, 0.5]), "drafts": 2, "draft": {"scheme": "with-replacement", "q": q}}
    assert sg.solve(coin).to_dict()["optimal_acceptance_rate"]["exact"] == "15/16"


def test_what_a_package_shows_is_what_it_has() -> None:
    assert "alpha" in dir(sg) and "kernels" in dir(sg)
    assert not [name for name in dir(sg) if name in ("Any", "annotations", "importlib", "_kept")]
    assert sg.carried.Carried is not None


def test_rates_of_many_rows_are_a_small_table() -> None:
    p, q = np.random.default_rng(0).dirichlet(np.full(50, 0.1), (2, 400))
    found = sg.alpha(p, q, 4)
    assert len(repr(found)) < 1000 and f"{found.value.mean():.9g}" in repr(found)
    assert repr(sg.alpha(p[0], q[0], 4)).startswith("Rates(value=0.")
    assert found._repr_html_().count("<tr>") == 7


def test_bounds_stand_in_the_cells_of_tables_where_nothing_more_is_known(log: str) -> None:
    report = sg.gap(log, verifiers="rrs-wo", schemes="without-replacement", drafts=2, temperature=1.0)
    table = report.table("acceptance")
    _, lines = table.rows()
    (row,) = [line for line in lines if "rrs-wo" in line]
    low, high = (float(word) for word in row[-1].split(" to "))
    assert 0.0 < low < high < 1.0
    assert "rrs-wo" in table._repr_html_()
    for frame in (table.to_pandas(), table.to_polars()):
        assert len(frame) == len(lines)
    assert report.positions()._repr_html_().count("<tr>") == 6


def test_what_parts_cannot_share_is_said_before_any_work() -> None:
    from specgap._reports import refuse_in_parts

    step: Any = lambda p, q, i, n: p  # noqa: E731
    with pytest.raises(sg.Refused, match="mine has no digest.*digest=.."):
        refuse_in_parts(verifiers=[sg.Sequential(step, name="mine")])
    with pytest.raises(TypeError, match="'top_kk'; did you mean top_k="):
        refuse_in_parts(top_kk=3)
    refuse_in_parts(verifiers=[sg.Sequential(step, digest="1"), "rrs"], top_k=3)
