"""Recorders, against engines that are faked by the signatures of their packages: transformers
5.23, vLLM 0.33, SGLang 0.5.23. Their rounds are honest, and the logs pass the audit."""

from __future__ import annotations

import enum
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import specgap as sg
from specgap.record import _rounds

from .conftest import faked

VOCABULARY = 12


def softmax(logits: Any) -> NDArray[np.float64]:
    weights = np.exp(np.asarray(logits, np.float64) - np.max(logits, axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def verified(p: Any, q: Any, drafts: Any, rng: np.random.Generator) -> tuple[int, list[int]]:
    """Speculative sampling of a chain: how many drafts are kept, and what comes out."""
    for place, x in enumerate(int(x) for x in drafts):
        if rng.random() * q[place][x] >= p[place][x]:
            left = np.maximum(p[place] - q[place], 0)
            out = rng.choice(VOCABULARY, p=left / left.sum())
            return place, [*(int(x) for x in drafts[:place]), int(out)]
    out = rng.choice(VOCABULARY, p=p[len(drafts)] / p[len(drafts)].sum())
    return len(drafts), [*(int(x) for x in drafts), int(out)]


class Models:
    """Rows of a pair of models, and drafts drawn from them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def round(self, count: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
        base = self.rng.normal(0, 1.5, (count + 1, VOCABULARY))
        target = (base + self.rng.normal(0, 1, base.shape)).astype(np.float32)
        draft = base[:count].astype(np.float32)
        drafts = [self.rng.choice(VOCABULARY, p=row / row.sum()) for row in softmax(draft)]
        return target, draft, np.array(drafts)


# --- transformers -------------------------------------------------------------------------------


def test_assisted_generation_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    models, rng = Models(0), np.random.default_rng(1)

    def _speculative_sampling(
        candidate_input_ids: Any,
        candidate_logits: Any,
        candidate_length: int,
        new_logits: Any,
        assistant_ensemble_weight: float | None = None,
    ) -> Any:
        p, q = softmax(new_logits[0]), softmax(candidate_logits[0])
        accepted, out = verified(p, q, candidate_input_ids[0, -candidate_length:], rng)
        return np.array([out]), np.array(accepted)

    utils = faked(
        monkeypatch, "transformers.generation.utils", _speculative_sampling=_speculative_sampling
    )
    expected = []
    with sg.record.hf(out=tmp_path / "log") as recording:
        for text in range(60):
            ids = [text % VOCABULARY]
            for _ in range(5):
                target, draft, drafts = models.round(3)
                valid, matches = utils._speculative_sampling(
                    np.array([[*ids, *drafts]]), draft[None], 3, target[None]
                )
                kept = int(matches) + 1
                expected.append((text, len(ids) - 1, int(matches), list(drafts), kept))
                ids += [int(x) for x in valid[0]]
    assert utils._speculative_sampling is _speculative_sampling
    assert recording.rounds == 300
    log = sg.Log.open(tmp_path / "log")
    assert len(log) == recording.positions == sum(kept for *_, kept in expected)
    records, rows, at = log.engine_records(), list(log), 0
    for text, start, matches, chain, kept in expected:
        assert records[at].drafts == chain and records[at].accepted == matches
        for place in range(kept):
            assert rows[at].prompt_id == text and rows[at].position == start + place
            assert records[at].round == place
            assert (records[at].accepted == -1) == (place > 0)
            # Behind a whole chain the target alone has a row.
            assert rows[at].lacks_draft == (place == 3)
            assert not np.isnan(rows[at].target).any()
            at += 1
    audited = sg.audit(log, rule="token")
    assert audited.ok, str(audited)
    found = sg.gap(log, drafts=2, temperature=1.0)
    bonus = sum(kept == 4 for *_, kept in expected)
    assert found.summary is not None and found.summary.positions == len(log) - bonus
    assert any(f"{bonus} of {len(log)} positions are left out" in line for line in [str(found)])
    # Whole texts, so that draft lengths can be replayed along them.
    lengths = sg.length(log)
    assert lengths.to_dict()["positions"] == len(log)


def test_nothing_recorded_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    faked(monkeypatch, "transformers.generation.utils", _speculative_sampling=None)
    with pytest.raises(ValueError, match="nothing was recorded: tokens have to be sampled"):
        with sg.record.hf(out=tmp_path / "log"):
            pass
    assert sys.modules["transformers.generation.utils"]._speculative_sampling is None


# --- Plugins ------------------------------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """A plugin as a new process has it, switched on."""
    monkeypatch.setenv(_rounds.FOLDER, str(tmp_path / "logs"))
    loaded = []

    def load(name: str) -> Any:
        module = importlib.reload(importlib.import_module(f"specgap.record.{name}"))
        loaded.append(module)
        return module

    yield load
    for module in loaded:
        module._plugin.close()


def only_log(tmp_path: Path) -> sg.Log:
    (path,) = (tmp_path / "logs").iterdir()
    return sg.Log.open(path)


def _vllm(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    rng = np.random.default_rng(2)

    def rejection_sample(
        draft_token_ids: Any,
        num_draft_tokens: list[int],
        max_spec_len: int,
        cu_num_draft_tokens: Any,
        draft_probs: Any,
        target_logits: Any,
        bonus_token_ids: Any,
        sampling_metadata: Any,
        synthetic_mode: bool = False,
        synthetic_conditional_rates: Any = None,
        use_fp64_gumbel: bool = False,
        fly_window_size: int | None = None,
        fly_entropy_threshold: float | None = None,
        fly_entropy_top_k: int = 3,
    ) -> Any:
        out = np.full((len(num_draft_tokens), max_spec_len + 1), -1)
        start = 0
        for request, count in enumerate(num_draft_tokens):
            here = slice(start, start + count)
            start += count
            p = softmax(target_logits[here])
            drafts = draft_token_ids[here]
            q = np.eye(VOCABULARY)[drafts] if draft_probs is None else draft_probs[here]
            bonus = np.eye(VOCABULARY)[int(bonus_token_ids[request, 0])]
            kept, tokens = verified([*p, bonus], q, drafts, rng)
            out[request, : kept + 1] = tokens
        target_logits[:] = np.nan  # as kernels that work in place leave it
        return out

    module = faked(
        monkeypatch, "vllm.v1.sample.rejection_sampler", rejection_sample=rejection_sample
    )
    return module, rejection_sample


@pytest.mark.parametrize("one_hot", [False, True])
def test_vllm_is_recorded(
    one_hot: bool, monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], tmp_path: Path
) -> None:
    module, original = _vllm(monkeypatch)
    fresh("vllm").plugin()
    fresh_plugin = sys.modules["specgap.record.vllm"]
    wrapped = module.rejection_sample
    assert wrapped is not original
    fresh_plugin.plugin()  # as each process may load plugins twice
    assert module.rejection_sample is wrapped
    models = Models(3)
    metadata = types.SimpleNamespace(all_greedy=False, all_random=True, temperature=None)
    for _ in range(150):
        counts = [3, 0, 2]
        rounds = [models.round(count) for count in counts]
        drafts = np.concatenate([one[2] for one in rounds]).astype(np.int64)
        if one_hot:
            drafts = np.concatenate([one[1].argmax(axis=-1) for one in rounds if len(one[1])])
        wrapped(
            drafts,
            counts,
            3,
            np.cumsum(counts),
            None if one_hot else np.concatenate([softmax(one[1]) for one in rounds if len(one[1])]),
            np.concatenate([one[0][: len(one[1])] for one in rounds]),
            np.zeros((3, 1), dtype=int),
            metadata,
        )
    fresh_plugin._plugin.close()
    log = only_log(tmp_path)
    records = log.engine_records()
    assert sum(one.round == 0 for one in records) == 300
    assert {one.batch_size for one in records} == {3}
    audited = sg.audit(log, rule="one-hot" if one_hot else "token")
    assert audited.ok, str(audited)


def test_greedy_requests_of_vllm_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
    fresh: Callable[[str], Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module, _ = _vllm(monkeypatch)
    plugin = fresh("vllm")
    plugin.plugin()
    models = Models(4)
    metadata = types.SimpleNamespace(
        all_greedy=False, all_random=False, temperature=np.array([0.0, 1.0])
    )
    rounds = [models.round(2), models.round(2)]
    module.rejection_sample(
        np.concatenate([one[2] for one in rounds]), [2, 2], 2, np.array([2, 4]),
        np.concatenate([softmax(one[1]) for one in rounds]),
        np.concatenate([one[0][:2] for one in rounds]), np.zeros((2, 1), dtype=int), metadata,
    )  # fmt: skip
    plugin._plugin.close()
    assert sum(one.round == 0 for one in only_log(tmp_path).engine_records()) == 1
    assert "decoded greedily are left out" in capsys.readouterr().err


def test_rounds_by_which_vllm_warms_up_are_left_out(
    monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], tmp_path: Path
) -> None:
    module, _ = _vllm(monkeypatch)
    fresh("vllm").plugin()
    target, draft, drafts = Models(4).round(2)
    metadata = types.SimpleNamespace(all_greedy=False, all_random=True, temperature=None)

    def verify() -> None:
        module.rejection_sample(
            drafts, [2], 2, np.array([2]), softmax(draft), target[:2].copy(),
            np.zeros((1, 1), dtype=int), metadata, synthetic_mode=False,
        )  # fmt: skip

    def _dummy_sampler_run() -> None:
        verify()

    _dummy_sampler_run()
    assert not (tmp_path / "logs").exists()
    verify()
    sys.modules["specgap.record.vllm"]._plugin.close()
    assert sum(one.round == 0 for one in only_log(tmp_path).engine_records()) == 1


def test_methods_of_vllm_that_are_lossy_are_named(
    monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    module, _ = _vllm(monkeypatch)
    fresh("vllm").plugin()
    target, draft, drafts = Models(4).round(2)
    metadata = types.SimpleNamespace(all_greedy=False, all_random=True, temperature=None)
    module.rejection_sample(
        drafts, [2], 2, np.array([2]), softmax(draft), target[:2].copy(), np.zeros((1, 1), dtype=int),
        metadata, fly_window_size=3,
    )  # fmt: skip
    assert "the method fly does not keep the target's law" in capsys.readouterr().err


def _second_runner(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What vLLM's second model runner calls, with the arguments that it has in 0.33."""
    rng = np.random.default_rng(11)

    def rejection_sample(
        target_logits: Any,
        draft_logits: Any,
        draft_sampled: Any,
        cu_num_logits: Any,
        pos: Any,
        idx_mapping: Any,
        expanded_idx_mapping: Any,
        expanded_local_pos: Any,
        temperature: Any,
        seed: Any,
        num_speculative_steps: int,
        synthetic_conditional_rates: Any = None,
        use_fp64: bool = False,
        use_block_verification: bool = False,
        contexts: Any = None,
        watermarking: Any = None,
        watermarking_skip_mask: Any = None,
        watermark_key: int | None = None,
        fly_window_size: int = 0,
        fly_entropy_threshold: float = 0.3,
        fly_entropy_top_k: int = 3,
    ) -> Any:
        # Where nothing was put out is whatever was in memory.
        sampled = np.full((len(idx_mapping), num_speculative_steps + 1), 7)
        count = np.zeros(len(idx_mapping), dtype=np.int32)
        for request, slot in enumerate(idx_mapping):
            start, end = cu_num_logits[request], cu_num_logits[request + 1]
            drafts = [int(x) for x in draft_sampled[start + 1 : end]]
            valid = drafts.index(-1) if -1 in drafts else len(drafts)
            drafts, heat = drafts[:valid], temperature[slot]
            p = softmax(target_logits[start:end])[:, :VOCABULARY]
            if heat == 0:
                sampled[request, 0], count[request] = int(p[0].argmax()), 1
                continue
            q = np.eye(VOCABULARY)[drafts]
            if draft_logits is not None:
                q = softmax(draft_logits[slot, :valid] / heat)
            kept, tokens = verified(p, q, drafts, rng)
            sampled[request, : kept + 1], count[request] = tokens, kept + 1
        target_logits[:] = np.nan
        return sampled, count

    return faked(
        monkeypatch,
        "vllm.v1.worker.gpu.spec_decode.rejection_sampler",
        rejection_sample=rejection_sample,
    )


@pytest.mark.parametrize("one_hot", [False, True])
def test_the_second_runner_of_vllm_is_recorded(
    one_hot: bool, monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], tmp_path: Path
) -> None:
    module = _second_runner(monkeypatch)
    fresh("vllm").plugin()
    models, steps, heats = Models(12), 3, np.array([0.5, 1.0, 2.0, 0.0, 1.0], dtype=np.float32)
    # Slots of the requests; the fourth is decoded greedily, the last drafts two, then nothing.
    slots, counts = np.array([2, 0, 1, 3, 4]), [3, 0, 2, 1, 3]
    expected = 0
    for _ in range(150):
        draft_logits = np.full((5, steps, VOCABULARY), np.nan, dtype=np.float32)
        target, sampled = [], []
        for slot, count in zip(slots, counts, strict=True):
            p, q, _ = models.round(count)
            # Wider than the draft's, as a padded vocabulary is.
            target.append(np.pad(p, ((0, 0), (0, 2)), constant_values=-np.inf))
            draft_logits[slot, :count] = q
            heat = heats[slot] or 1.0
            drafts = [models.rng.choice(VOCABULARY, p=row / row.sum()) for row in softmax(q / heat)]
            if one_hot:
                drafts = list(q.argmax(axis=-1))
            sampled += [0, *drafts]
            expected += count > 0 and heats[slot] > 0
        sampled[-1] = -1
        starts = np.cumsum([0, *(count + 1 for count in counts)])
        module.rejection_sample(
            np.concatenate(target), None if one_hot else draft_logits, np.array(sampled), starts,
            np.arange(starts[-1]), slots, np.repeat(slots, np.diff(starts)), None, heats,
            np.arange(5), steps, None, use_fp64=False, fly_window_size=0,
        )  # fmt: skip
    sys.modules["specgap.record.vllm"]._plugin.close()
    log = only_log(tmp_path)
    assert log.vocabulary == (VOCABULARY + 2 if one_hot else VOCABULARY)
    rounds = [one for one in log.engine_records() if one.round == 0]
    assert len(rounds) == expected == 450
    assert {sum(token >= 0 for token in one.drafts) for one in rounds} == {2, 3}
    audited = sg.audit(log, rule="one-hot" if one_hot else "token")
    assert audited.ok, str(audited)



def _constrained(module: types.ModuleType, temperature: float | None = None) -> None:
    """Gives the first runner's module what comes before: temperature and top_k, in place. With a
    temperature, that is taken whatever is asked for."""

    def apply_sampling_constraints(
        logits: Any, cu_num_draft_tokens: Any, sampling_metadata: Any
    ) -> Any:
        requests = np.searchsorted(cu_num_draft_tokens, np.arange(len(logits)), side="right")
        heats = sampling_metadata.temperature[requests]
        logits /= (heats if temperature is None else np.full_like(heats, temperature))[:, None]
        if sampling_metadata.top_k is not None:
            for row, k in zip(logits, sampling_metadata.top_k[requests], strict=True):
                row[row < np.sort(row)[-int(k)]] = -np.inf
        return logits

    module.apply_sampling_constraints = apply_sampling_constraints  # type: ignore[attr-defined]


def _sampling(log: sg.Log) -> dict[str, Any]:
    """What a log says of its sampling; its own seed is nobody's."""
    return {key: value for key, value in log.metadata["sampling"].items() if key != "seed"}


class _Generator:
    """A generator of PyTorch, as far as it is asked."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def initial_seed(self) -> int:
        return self.seed


def _asked(temperature: list[float], **more: Any) -> types.SimpleNamespace:
    """The sampling metadata of vLLM, of requests without anything special."""
    nothing: dict[str, Any] = {
        "all_greedy": False, "all_random": True, "top_k": None, "top_p": None, "generators": {},
        "no_penalties": True, "frequency_penalties": None, "presence_penalties": None,
        "repetition_penalties": None, "allowed_token_ids_mask": None, "bad_words_token_ids": {},
        "logitsprocs": types.SimpleNamespace(argmax_invariant=[], non_argmax_invariant=[]),
    }  # fmt: skip
    heats = np.array(temperature, dtype=np.float32)
    return types.SimpleNamespace(**(nothing | {"temperature": heats} | more))


def _forward(module: Any, models: Models, asked: Any, raw: NDArray[Any] | None = None) -> None:
    """One step of the first runner: each request drafts two tokens at its temperature."""
    count = len(asked.temperature)
    rounds = [models.round(2) for _ in range(count)]
    q = np.concatenate([softmax(one[1] / heat) for one, heat in zip(rounds, asked.temperature)])
    drafts = np.array([models.rng.choice(VOCABULARY, p=row / row.sum()) for row in q])
    target = np.concatenate([one[0][:2] for one in rounds]) if raw is None else raw
    starts = np.arange(2, 2 * count + 1, 2)
    processed = module.apply_sampling_constraints(target, starts, asked)
    bonus = np.zeros((count, 1), dtype=int)
    module.rejection_sample(drafts, [2] * count, 2, starts, q, processed, bonus, asked)


@pytest.mark.parametrize("temperature", [None, 2.0])
def test_raw_logits_of_vllm_show_a_wrong_temperature(
    temperature: float | None,
    monkeypatch: pytest.MonkeyPatch,
    fresh: Callable[[str], Any],
    tmp_path: Path,
) -> None:
    module, _ = _vllm(monkeypatch)
    _constrained(module, temperature)
    plugin = fresh("vllm")
    plugin.plugin()
    plugin.plugin()
    models = Models(21)
    for _ in range(300):
        _forward(module, models, _asked([0.7], top_k=np.array([8])))
    plugin._plugin.close()
    log = only_log(tmp_path)
    assert log.metadata["rows_from"] == "engine-raw"
    assert _sampling(log) == {"temperature": 0.7, "top_k": 8, "cut_order": "m,k,p"}
    assert log.metadata["lost_rounds"]["count"] == 0
    assert {one.seed for one in log.engine_records()} == {-1}
    # Nothing is cut yet.
    assert np.isfinite(next(iter(log)).target).all()
    audited = sg.audit(log, rule="token")
    assert audited.ok == (temperature is None), str(audited)


def test_samplings_of_vllm_have_logs_of_their_own(
    monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], tmp_path: Path
) -> None:
    module, _ = _vllm(monkeypatch)
    _constrained(module)
    plugin = fresh("vllm")
    plugin.plugin()
    models = Models(22)
    seeded = {0: _Generator(5), 1: _Generator(2**64 - 1)}
    for _ in range(40):
        _forward(module, models, _asked([0.5, 2.0, 1.0], generators=seeded))
    plugin._plugin.close()
    logs = [sg.Log.open(path) for path in sorted((tmp_path / "logs").iterdir())]
    heats = [log.metadata["sampling"]["temperature"] for log in logs]
    assert sorted(heats) == [0.5, 1.0, 2.0]
    for log, heat in zip(logs, heats, strict=True):
        seed = {0.5: 5, 2.0: 2**63 - 2, 1.0: -1}[heat]
        assert {one.seed for one in log.engine_records()} == {seed}
        # A request that is known by its generator is one text.
        texts = {row.prompt_id for row in log}
        assert len(texts) == (40 if heat == 1.0 else 1)
        if heat != 1.0:
            places = [row.position or 0 for row in log]
            assert places == sorted(set(places))


def test_rounds_that_vllm_lost_are_counted(
    monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], tmp_path: Path
) -> None:
    module, _ = _vllm(monkeypatch)
    _constrained(module)
    plugin = fresh("vllm")
    plugin.plugin()
    models = Models(23)
    for step in range(30):
        raw = np.concatenate([models.round(2)[0][:2] for _ in range(2)])
        if step % 3 == 0:
            raw[0, 4] = np.inf
        with np.errstate(invalid="ignore"):
            _forward(module, models, _asked([1.0, 1.0]), raw)
    plugin._plugin.close()
    log = only_log(tmp_path)
    lost = log.metadata["lost_rounds"]
    assert lost == {"count": 10, "reasons": {"a row of the target has inf": 10}}
    assert sum(one.round == 0 for one in log.engine_records()) == 50
    assert "Undecided" in str(sg.audit(log, rule="token"))


def test_requests_of_vllm_whose_p_is_another_are_left_out(
    monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], tmp_path: Path
) -> None:
    module, _ = _vllm(monkeypatch)
    _constrained(module)
    plugin = fresh("vllm")
    plugin.plugin()
    models = Models(24)
    mask = np.zeros((2, VOCABULARY), dtype=bool)
    mask[1, 3] = True
    bias = type("LogitBiasLogitsProcessor", (), {})()
    bias.biases = {1: {3: 1.0}}
    floor = type("MinPLogitsProcessor", (), {})()
    floor.min_p_count, floor.min_p_cpu = 1, np.array([0.0, 0.1])
    unknown = type("Mine", (), {})()

    def processors(**of: Any) -> Any:
        return types.SimpleNamespace(**({"argmax_invariant": [], "non_argmax_invariant": []} | of))

    ones, zeros = np.ones(2), np.zeros(2)
    for more in (
        {"no_penalties": False, "frequency_penalties": zeros, "presence_penalties": zeros,
         "repetition_penalties": np.array([1.0, 1.2])},
        {"allowed_token_ids_mask": mask},
        {"bad_words_token_ids": {1: [[3]]}},
        {"logitsprocs": processors(non_argmax_invariant=[bias])},
        {"logitsprocs": processors(argmax_invariant=[floor]), "top_p": 0.5 * ones},
    ):  # fmt: skip
        _forward(module, models, _asked([1.0, 1.0], **more))
    raw = np.concatenate([models.round(2)[0][:2] for _ in range(2)])
    raw[2:, 3] = -np.inf
    _forward(module, models, _asked([1.0, 1.0]), raw)
    _forward(module, models, _asked([1.0], logitsprocs=processors(non_argmax_invariant=[unknown])))
    plugin._plugin.close()
    logs = [sg.Log.open(path) for path in (tmp_path / "logs").iterdir()]
    # The first request of each step but the last is as it should be, and one with min_p and top_p.
    assert sum(one.round == 0 for log in logs for one in log.engine_records()) == 7
    for log in logs:
        assert log.metadata["not_comparable"] == {
            "count": 6,
            "reasons": {
                "penalties": 1,
                "allowed tokens": 1,
                "bad words": 1,
                "the logits processor LogitBiasLogitsProcessor": 1,
                "tokens are masked before sampling, as by a grammar": 1,
                "the logits processor Mine": 1,
            },
        }
        assert log.metadata["lost_rounds"]["count"] == 0


@pytest.mark.parametrize("found", [True, False])
def test_raw_logits_of_the_second_runner(
    found: bool, monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], tmp_path: Path
) -> None:
    module = _second_runner(monkeypatch)

    class Sampler:
        """What holds the parameters of requests, by slot."""

        def __init__(self) -> None:
            held = {"temperature": [1.0, 0.6], "top_k": [12, 6], "top_p": [1, 1], "min_p": [0, 0]}
            if not found:
                del held["min_p"]
            states = {
                name: types.SimpleNamespace(np=np.array(of, dtype=np.float32))
                for name, of in held.items()
            }
            self.sampling_states = types.SimpleNamespace(**states)
            self.penalties_state = types.SimpleNamespace(use_penalty=np.array([False, False]))
            words = types.SimpleNamespace(np=np.array([0, 0]))
            self.bad_words_state = types.SimpleNamespace(num_bad_words=words)
            self.logit_bias_state = types.SimpleNamespace(use_logit_bias=np.array([False, False]))

        def apply_sampling_params(
            self, logits: Any, expanded_idx_mapping: Any, idx_mapping_np: Any, pos: Any,
            input_ids: Any, expanded_local_pos: Any, skip_top_k_top_p: bool = False,
        ) -> Any:  # fmt: skip
            heats = self.sampling_states.temperature.np[expanded_idx_mapping]
            logits /= heats[:, None]
            for row, slot in zip(logits, expanded_idx_mapping, strict=True):
                row[row < np.sort(row)[-int(self.sampling_states.top_k.np[slot])]] = -np.inf
            return logits

    faked(monkeypatch, "vllm.v1.worker.gpu.sample.sampler", Sampler=Sampler)
    plugin = fresh("vllm")
    plugin.plugin()
    models, slots, heats = Models(25), np.array([1, 0]), np.array([1.0, 0.6], dtype=np.float32)
    starts, expanded = np.array([0, 3, 6]), np.repeat(slots, 3)
    sampler, at = Sampler(), np.array([7, 30])
    for _ in range(150):
        draft_logits = np.zeros((2, 2, VOCABULARY), dtype=np.float32)
        target, sampled = [], []
        for slot in slots:
            p, q, _ = models.round(2)
            draft_logits[slot], rows = q, softmax(q / heats[slot])
            target.append(p)
            sampled += [0, *(models.rng.choice(VOCABULARY, p=row / row.sum()) for row in rows)]
        pos = np.concatenate([place + np.arange(3) for place in at])
        logits = sampler.apply_sampling_params(
            np.concatenate(target), expanded, slots, pos, np.array(sampled), np.tile(np.arange(3), 2)
        )
        _, counts = module.rejection_sample(
            logits, draft_logits, np.array(sampled), starts, pos, slots, expanded, None, heats,
            np.array([5, -9]), 2,
        )  # fmt: skip
        at = at + counts
    plugin._plugin.close()
    logs = [sg.Log.open(path) for path in sorted((tmp_path / "logs").iterdir())]
    assert len(logs) == (2 if found else 1)
    assert {log.metadata["rows_from"] for log in logs} == {
        "engine-raw" if found else "engine-processed"
    }
    for log in logs:
        assert {row.prompt_id for row in log} == ({row.prompt_id for row in log} & {0, 1})
        assert sg.audit(log, rule="token").ok
    seeds = {one.seed for log in logs for one in log.engine_records()}
    assert seeds == {5, 2**63 - 9}
    if found:
        asked = sorted((_sampling(log) for log in logs), key=len)
        vllm = {"cut_order": "m,k,p"}
        assert asked == [{"temperature": 1.0} | vllm, {"temperature": 0.6, "top_k": 6} | vllm]


def test_seeds_of_assisted_generation_are_noted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    models = Models(26)
    given: list[int] = []
    torch = faked(monkeypatch, "torch", manual_seed=given.append)
    original = torch.manual_seed

    def _speculative_sampling(ids: Any, draft: Any, length: int, target: Any) -> Any:
        p, q = softmax(target[0]), softmax(draft[0])
        accepted, out = verified(p, q, ids[0, -length:], models.rng)
        return np.array([out]), accepted

    utils = faked(
        monkeypatch, "transformers.generation.utils", _speculative_sampling=_speculative_sampling
    )
    with sg.record.hf(out=tmp_path / "log"):
        for seed in (None, 4, None, -1):
            if seed is not None:
                torch.manual_seed(seed)
            target, draft, drafts = models.round(2)
            utils._speculative_sampling(np.array([[0, *drafts]]), draft[None], 2, target[None])
    assert given == [4, -1] and torch.manual_seed is original
    log = sg.Log.open(tmp_path / "log")
    seeds = {row.prompt_id: one.seed for row, one in zip(log, log.engine_records(), strict=True)}
    assert seeds == {0: -1, 1: 4, 2: 4, 3: 2**63 - 2}
    assert log.metadata["rows_from"] == "engine-processed"


def test_a_vllm_without_what_is_hooked_is_named(
    monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    faked(monkeypatch, "vllm.v1.sample.rejection_sampler")
    faked(monkeypatch, "vllm.v1.worker.gpu.spec_decode.rejection_sampler")
    fresh("vllm").plugin()
    assert "nothing is recorded: this version of vLLM" in capsys.readouterr().err


def _sglang(
    monkeypatch: pytest.MonkeyPatch, *, without: str | None = None
) -> dict[str, Callable[..., Any]]:
    hooks: dict[str, Callable[..., Any]] = {}

    class HookType(enum.Enum):
        AROUND = "around"

    class HookRegistry:
        @classmethod
        def register(cls, target: str, hook: Any, hook_type: HookType) -> None:
            assert hook_type is HookType.AROUND
            hooks[target.rpartition(".")[2]] = hook

    faked(
        monkeypatch,
        "sglang.srt.plugins.hook_registry",
        HookRegistry=HookRegistry,
        HookType=HookType,
    )
    samplers = ("chain_speculative_sampling_triton", "tree_speculative_sampling_target_only")
    # None where a platform has no kernel.
    members = {name: None if name == without else print for name in samplers}
    faked(monkeypatch, "sglang.srt.speculative.eagle_utils", **members)
    return hooks


def _chain_kernel(rng: np.random.Generator) -> Callable[..., None]:
    def chain_speculative_sampling_triton(
        predicts: Any, accept_index: Any, accept_token_num: Any, candidates: Any,
        retrive_index: Any, retrive_next_token: Any, retrive_next_sibling: Any,
        uniform_samples: Any, uniform_samples_for_final_sampling: Any, target_probs: Any,
        draft_probs: Any, threshold_single: float, threshold_acc: float, deterministic: bool,
        *, block_verification: bool = False,
    ) -> None:  # fmt: skip
        for request, chain in enumerate(candidates):
            drafts = chain[1:]
            kept, out = verified(target_probs[request], draft_probs[request], drafts, rng)
            places = retrive_index[request][: kept + 1]
            accept_index[request, : kept + 1] = places
            predicts[places] = out
            accept_token_num[request] = kept

    return chain_speculative_sampling_triton


def _tree_kernel(rng: np.random.Generator) -> Callable[..., None]:
    def tree_speculative_sampling_target_only(
        predicts: Any, accept_index: Any, accept_token_num: Any, candidates: Any,
        retrive_index: Any, retrive_next_token: Any, retrive_next_sibling: Any,
        uniform_samples: Any, uniform_samples_for_final_sampling: Any, target_probs: Any,
        draft_probs: Any, threshold_single: float = 1.0, threshold_acc: float = 1.0,
        deterministic: bool = True,
    ) -> None:  # fmt: skip
        for request, chain in enumerate(candidates):
            drafts = chain[1:]
            q = np.eye(VOCABULARY)[drafts]
            kept, out = verified(target_probs[request], q, drafts, rng)
            if kept < len(drafts):
                # What the kernel draws from is the target less what it marks so.
                rejected = drafts[kept]
                draft_probs[request, kept, rejected] = target_probs[request, kept, rejected]
            places = retrive_index[request][: kept + 1]
            accept_index[request, : kept + 1] = places
            predicts[places] = out
            accept_token_num[request] = kept

    return tree_speculative_sampling_target_only


@pytest.mark.parametrize("one_hot", [False, True])
def test_sglang_is_recorded(
    one_hot: bool, monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], tmp_path: Path
) -> None:
    hooks = _sglang(monkeypatch)
    plugin = fresh("sglang")
    plugin.plugin()
    assert set(hooks) == set(plugin.SAMPLERS)
    rng, models = np.random.default_rng(5), Models(6)
    kernel = _tree_kernel(rng) if one_hot else _chain_kernel(rng)
    hook = hooks[kernel.__name__]
    for _ in range(150):
        hook(kernel, **_call(models, one_hot))
    plugin._plugin.close()
    log = only_log(tmp_path)
    assert sum(one.round == 0 for one in log.engine_records()) == 300
    audited = sg.audit(log, rule="one-hot" if one_hot else "token")
    assert audited.ok, str(audited)


def _call(models: Models, one_hot: bool) -> dict[str, Any]:
    rounds = [models.round(3) for _ in range(2)]
    chains = [
        [0, *(one[1].argmax(axis=-1) if one_hot else one[2])] for one in rounds
    ]
    q = np.stack([softmax(one[1]) for one in rounds])
    return {
        "predicts": np.zeros(8, dtype=np.int32),
        "accept_index": np.full((2, 4), -1),
        "accept_token_num": np.zeros(2, dtype=np.int32),
        "candidates": np.array(chains),
        "retrive_index": np.arange(8).reshape(2, 4),
        "retrive_next_token": np.array([[1, 2, 3, -1]] * 2),
        "retrive_next_sibling": np.full((2, 4), -1),
        "uniform_samples": None,
        "uniform_samples_for_final_sampling": None,
        "target_probs": np.stack([softmax(one[0]) for one in rounds]),
        "draft_probs": np.zeros((2, 4, VOCABULARY)) if one_hot else q,
        "threshold_single": 1.0,
        "threshold_acc": 1.0,
        "deterministic": True,
    }


def test_trees_of_sglang_are_not_recorded(
    monkeypatch: pytest.MonkeyPatch,
    fresh: Callable[[str], Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hooks = _sglang(monkeypatch)
    plugin = fresh("sglang")
    plugin.plugin()
    call = _call(Models(7), True)
    call["retrive_next_sibling"][0, 1] = 2
    hook = hooks["tree_speculative_sampling_target_only"]
    hook(_tree_kernel(np.random.default_rng(8)), **call)
    assert not (tmp_path / "logs").exists()
    assert "trees with branches are not recorded" in capsys.readouterr().err


def test_a_kernel_that_a_platform_of_sglang_lacks_is_not_hooked(
    monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any]
) -> None:
    """It is None there, and SGLang would put the hook in the place of every None."""
    hooks = _sglang(monkeypatch, without="tree_speculative_sampling_target_only")
    fresh("sglang").plugin()
    assert set(hooks) == {"chain_speculative_sampling_triton"}


def test_thresholds_of_sglang_are_named(
    monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = _sglang(monkeypatch)
    fresh("sglang").plugin()
    call = {**_call(Models(7), True), "threshold_acc": 0.9}
    hooks["tree_speculative_sampling_target_only"](_tree_kernel(np.random.default_rng(8)), **call)
    assert "thresholds below 1 do not keep the target's law" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_plugins_are_inert_unless_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_rounds.FOLDER, raising=False)
    monkeypatch.setitem(sys.modules, name, None)  # importing it would fail
    module = importlib.reload(importlib.import_module(f"specgap.record.{name}"))
    module.plugin()


def test_an_engine_goes_on_when_recording_fails(
    monkeypatch: pytest.MonkeyPatch, fresh: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = _sglang(monkeypatch)
    plugin = fresh("sglang")
    plugin.plugin()
    hook = hooks["chain_speculative_sampling_triton"]
    assert hook(lambda **_: "done", candidates=np.zeros((1, 2), dtype=int)) == "done"
    assert "a round was not recorded" in capsys.readouterr().err


def test_a_dishonest_engine_is_recorded_and_refuted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is drafted is the likeliest token, and is claimed to be drawn."""
    rng, models = np.random.default_rng(9), Models(10)

    def _speculative_sampling(ids: Any, draft: Any, length: int, target: Any) -> Any:
        p, q = softmax(target[0]), softmax(draft[0])
        accepted, out = verified(p, q, ids[0, -length:], rng)
        return np.array([out]), accepted

    utils = faked(
        monkeypatch, "transformers.generation.utils", _speculative_sampling=_speculative_sampling
    )
    with sg.record.hf(out=tmp_path / "log"):
        for _ in range(200):
            target, draft, _ = models.round(2)
            utils._speculative_sampling(
                np.array([[0, *draft.argmax(axis=-1)]]), draft[None], 2, target[None]
            )
    audited = sg.audit(tmp_path / "log", rule="token")
    assert not audited.ok
