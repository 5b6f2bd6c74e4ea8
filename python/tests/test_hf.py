"""Speculative decoding in transformers, on models with random weights: the law of whole texts, and every
option of ``generate`` that it takes or refuses."""

from __future__ import annotations

import copy
import functools
import itertools
import tempfile
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specgap as sg
from specgap import _native, rules
from specgap._shape import Times

from .conftest import Coins
from .test_documents import blocks

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
hf = pytest.importorskip("specgap.hf")

PROMPT = torch.tensor([[1, 2, 3]])
#: Shape, law and rule of every kind.
ARMS = [
    ("4", "stratified", "level-4"),
    ("2-2", "stratified", "traversal-4"),
    ("3-1-1", "stratified-independent", "traversal"),
    ("chain-3", "with-replacement", "block"),
    ("chain-2", "with-replacement", "token"),
    ("3-2", "with-replacement", "rrs"),
    ("2-1", "top", "traversal"),
    ("2-1", "without-replacement", "shared-gumbel"),
]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Passes of a few thousand weights: threads would wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def model(size: int, seed: int = 0, **more: Any) -> Any:
    torch.manual_seed(seed)
    given: dict[str, Any] = {
        "vocab_size": size, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 256,
        "initializer_range": 0.6, "bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0,
    }  # fmt: skip
    made = transformers.LlamaForCausalLM(transformers.LlamaConfig(**given | more)).eval()
    made.generation_config.update(pad_token_id=0, eos_token_id=None, top_k=0)
    return made


def pair(size: int) -> tuple[Any, Any]:
    """The draft is the target with noise on its weights."""
    target = model(size)
    draft = copy.deepcopy(target)
    with torch.no_grad():
        for weights in draft.parameters():
            weights += 0.1 * torch.randn_like(weights)
    return target, draft


def law(target: Any, tokens: int, eos: int | None, **options: Any) -> dict[tuple[int, ...], float]:
    """Of texts of so many tokens: from the scores that plain ``generate`` draws one token from."""
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(tokens):
        texts = [text for text in found if eos is None or eos not in text]
        ids = torch.cat([PROMPT.expand(len(texts), -1), torch.tensor(texts, dtype=torch.long)], dim=1)
        said = target.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, max_new_tokens=1,
            return_dict_in_generate=True, output_scores=True, **options,
        )  # fmt: skip
        rows = torch.softmax(said.scores[0].double(), dim=1).tolist()
        for text, row in zip(texts, rows):
            weight = found.pop(text)
            found |= {(*text, token): weight * p for token, p in enumerate(row) if p > 0}
    return found


@pytest.mark.parametrize(
    ("arm", "options"),
    list(zip(ARMS, [
        {"temperature": 0.8, "top_k": 4},
        {"repetition_penalty": 1.5},
        {"eos_token_id": 2},
        {"top_p": 0.8},
        {"min_p": 0.1, "temperature": 1.3},
        {},
        {"no_repeat_ngram_size": 2},
        {"temperature": 0.7},
    ])),
)  # fmt: skip
def test_texts_follow_the_law_of_plain_sampling(arm: tuple[str, str, str], options: dict[str, Any]) -> None:
    """Chi-square of three tokens; the level is 1e-4 in each of eight, seeds are fixed."""
    target, draft = pair(5)
    decode = hf.speculative(draft, *arm, seed=7)
    follows_the_law(target, decode, options)


@functools.cache
def fitted(size: int, scheme: Any = "stratified") -> dict[str, Any]:
    """A report's trees at one price, of :func:`pair`'s own texts."""
    target, draft = pair(size)
    with tempfile.TemporaryDirectory() as folder:
        decode = hf.speculative(draft, "2-1", seed=2, record=f"{folder}/log")
        target.generate(PROMPT.expand(40, -1), custom_generate=decode, do_sample=True, max_new_tokens=20)
        decode.close()
        rules_: Any = ["level-4", "traversal", "traversal-4"]
        report = sg.tree(
            f"{folder}/log", price=True, topology="2x2", schemes=scheme, verifiers=rules_,
            budget=8, max_depth=3, max_branch=4,
        )  # fmt: skip
    found: dict[str, Any] = report.to_dict()["priced"]
    return found


@pytest.mark.parametrize(
    ("rule", "scheme", "options"),
    [
        ("level-4", "stratified", {"temperature": 0.8, "top_k": 4}),
        ("traversal", "stratified", {"eos_token_id": 2}),
        ("traversal-4", "stratified-independent", {"repetition_penalty": 1.5}),
        ("level-4", "stratified-independent", {}),
    ],
)
def test_texts_of_trees_at_a_price_follow_the_law(rule: str, scheme: str, options: dict[str, Any]) -> None:
    target, draft = pair(5)
    price = fitted(5, scheme)["price"] | {"price": 0.1}
    decode = hf.speculative(draft, price, scheme, rule, seed=11)
    follows_the_law(target, decode, options)
    assert len(decode.stats["trees"]) > 2, decode.stats


def test_calls_at_a_price_are_those_of_the_text() -> None:
    """Given the texts, by each position's own rows: nodes above it, their chances, and what level-4 gives."""
    target, draft = pair(20)
    price = fitted(20)["price"]
    decode = hf.speculative(draft, price, rule="level-4", seed=21)
    length, apart = 20, []
    for _ in range(30):
        before = decode.rounds
        text = target.generate(PROMPT, custom_generate=decode, do_sample=True, max_new_tokens=length)[0]
        with torch.no_grad():
            p, q = (torch.softmax(one(text[None]).logits[0], dim=1).numpy() for one in (target, draft))
        starts = np.zeros(length + 1)
        starts[0] = 1.0
        for start in range(length):
            kept, chance, depth = [1.0], 1.0, 0
            while depth < min(price["levels"], length - start - 1) and kept[-1] > 0:
                at, token = start + depth + 2, int(text[start + depth + 3])
                n = rules.children(price, q[at], depth, chance)
                share = rules.level_share(p[at].astype(float), q[at].astype(float), n, token) if n else 0.0
                kept.append(kept[-1] * share)
                chance = rules.chance_of_child(price, q[at], n, token, chance) if n else 0.0
                depth += 1
            for depth, (here, next_) in enumerate(zip(kept, [*kept[1:], 0.0])):
                starts[start + depth + 1] += starts[start] * (here - next_)
        apart.append(decode.rounds - before - starts[:length].sum())
    z = np.sum(apart) / np.sqrt(np.sum(np.square(apart)))
    assert abs(z) < 4 and decode.tokens_per_call > 1.8, (z, decode.stats)


@pytest.mark.parametrize("rule", ["traversal", "traversal-4"])
def test_trees_at_a_price_make_what_the_replay_says(tmp_path: Path, rule: str) -> None:
    target, draft = pair(20)
    found = fitted(20)
    (tmp_path / "best-tree.price.json").write_text(json.dumps(found["price"]))
    said = next(one for one in found["at"] if one["price"] == found["price"]["price"])
    wanted = next(by for by in said["by"] if by["verifier"] == rule)["tokens_per_call"]["mean"]
    decode = hf.speculative(draft, tmp_path / "best-tree.price.json", rule=rule, seed=4)
    options: dict[str, Any] = {"do_sample": True, "max_new_tokens": 20}
    target.generate(PROMPT.expand(60, -1), custom_generate=decode, **options)
    assert abs(decode.tokens_per_call - wanted) < 0.2, (wanted, decode.stats)
    rounds = {int(name.split()[0]): count for name, count in decode.stats["trees"].items()}
    drafted = sum(nodes * count for nodes, count in rounds.items()) / decode.rounds
    # Rounds at a text's end have no room for all levels.
    assert abs(drafted - said["nodes"]["mean"]) < 1.0 and len(rounds) > 4, (said["nodes"], rounds)
    # Another price from one text to the next.
    decode = hf.speculative(draft, str(tmp_path / "best-tree.price.json"), rule=rule, seed=4)
    decode.price["price"] = 1.0
    target.generate(PROMPT, custom_generate=decode, **options)
    assert decode.tokens_per_call == 1.0
    decode.price["price"] = 0.02
    target.generate(PROMPT, custom_generate=decode, **options)
    assert decode.tokens_per_call > 1.2


def test_the_compiled_drafts_at_a_price_are_those_of_specgap_rules() -> None:
    random = np.random.default_rng(3)
    price = fitted(20)["price"]
    compiled = _native.Priced(json.dumps(price))
    assert (compiled.law, compiled.limits) == ("stratified", (3, 4))
    counts = []
    for size, sharp, depth in itertools.product((3, 20, 500), (0.05, 0.5, 2.0), range(4)):
        q = random.dirichlet(np.full(size, sharp), size=6).astype(np.float32)
        chances, coins = random.random(6), random.random((6, 4))
        drawn = compiled.draft_rows(q, "stratified", 0.05, depth, chances.tolist(), coins)
        for row, chance, own, (tokens, kept) in zip(q.astype(float), chances, coins, drawn):
            n = rules.children(price | {"price": 0.05}, row, depth, chance)
            drafted = rules.draft_strata(row, n, Coins(own)).tolist() if n else []  # type: ignore[arg-type]
            assert tokens == drafted
            wanted = [rules.chance_of_child(price, row, n, token, chance) for token in tokens]
            assert kept == pytest.approx(wanted)
            counts.append(n)
    assert set(counts) == {0, 1, 2, 3, 4}


def test_one_noise_writes_one_text_whatever_the_draft() -> None:
    target, draft = pair(5)
    texts, calls = [], []
    for one, tree in ((draft, "3-1"), (draft, "chain-2"), (model(5, seed=3), "4"), (draft, "2x2")):
        decode = hf.speculative(one, tree, "without-replacement", "shared-gumbel", seed=7)
        ids = target.generate(PROMPT, custom_generate=decode, do_sample=True, max_new_tokens=24)
        texts.append(ids[0].tolist())
        calls.append(decode.tokens_per_call)
    # And the target alone.
    text, seed = PROMPT[0].tolist(), int(np.random.SeedSequence([7, 0]).generate_state(1, np.uint64)[0]) >> 2
    while len(text) < len(texts[0]):
        with torch.no_grad():
            p = torch.softmax(target(torch.tensor([text])).logits[0, -1], dim=0).numpy()
        noise = np.random.default_rng([seed, len(text)]).exponential(size=5)
        text.append(rules.shared_gumbel(p, p, noise, 1)[1])
    assert texts == [text] * 4
    assert min(calls) > 1 and max(calls) > 1.5
    with pytest.raises(sg.Refused, match="say both or neither"):
        hf.speculative(draft, "2", "stratified", "shared-gumbel")


def follows_the_law(target: Any, decode: Any, options: dict[str, Any]) -> None:
    truth = law(target, 3, options.get("eos_token_id"), **options)
    count = 400
    ids = target.generate(
        PROMPT.expand(count, -1), custom_generate=decode, do_sample=True, max_new_tokens=3, **options
    )
    seen = dict.fromkeys(truth, 0)
    for text in ids[:, 3:].tolist():
        eos = options.get("eos_token_id")
        seen[tuple(text[: text.index(eos) + 1] if eos in text else text)] += 1
    order = sorted(truth, key=lambda text: truth[text])
    # Rare texts together, so that each cell has five or more.
    wanted, got, cells = 0.0, 0, []
    for text in order:
        wanted, got = wanted + count * truth[text], got + seen[text]
        if wanted >= 5:
            cells.append((wanted, got))
            wanted, got = 0.0, 0
    cells[-1] = (cells[-1][0] + wanted, cells[-1][1] + got)
    statistic = sum((got - wanted) ** 2 / wanted for wanted, got in cells)
    freedom = len(cells) - 1
    # Wilson and Hilferty's normal.
    z = ((statistic / freedom) ** (1 / 3) - 1 + 2 / (9 * freedom)) / (2 / (9 * freedom)) ** 0.5
    assert freedom > 3 and z < 3.72, f"{statistic:.1f} of {freedom}"
    assert decode.tokens_per_call > 1


@pytest.mark.parametrize(
    ("times", "arm", "chosen"),
    [
        # A tree for nothing; no use in any tree; a pass over two tokens for the price of one.
        (Times(0.0, ((1, 1.0), (21, 1.0)), 0.0), ("stratified", "traversal-4"), "4-2-1"),
        (Times(1.0, ((1, 1.0), (2, 9.0)), 0.0), ("with-replacement", "rrs"), "none"),
        (Times(0.8, ((1, 1.0), (2, 1.0), (3, 2.0), (5, 2.0)), 0.0), ("stratified-independent", "level-4"), "1"),
        (Times(0.0, ((1, 1.0), (9, 1.0)), 0.0), ("with-replacement", "block"), "1-1-1-1"),
        (Times(0.5, ((1, 1.0), (9, 1.0)), 0.0), ("top", "traversal"), None),
    ],
)
def test_the_tree_of_the_most_tokens_a_second(
    monkeypatch: pytest.MonkeyPatch, times: Times, arm: tuple[str, str], chosen: str | None
) -> None:
    """The law stays whichever tree is chosen, and when."""
    target, draft = pair(5)
    monkeypatch.setattr(hf, "_times", lambda *_: times)
    decode = hf.speculative(draft, "auto", *arm, seed=9)
    follows_the_law(target, decode, {"temperature": 1.1})
    trees = decode.stats["trees"]
    most = max(trees, key=trees.get)
    assert chosen in (None, most), trees
    chooser = decode._chooser
    kept = {width: total / chooser._seen for width, total in chooser._sums.items()}

    def speed(tree: tuple[int, ...]) -> float:
        # Level by level: a token is there if all above it are.
        made, alive, nodes = 1.0, 1.0, 1
        for depth, width in enumerate(tree):
            alive *= kept[width]
            made += alive
            nodes += int(np.prod(tree[: depth + 1]))
        at, seconds = zip(*times.passes)
        spent = len(tree) * times.draft + np.interp(nodes, at, seconds) + times.rest if tree else times.passes[0][1]
        return float(made / spent)

    assert speed(chooser.best) == pytest.approx(max(map(speed, chooser.trees)))


def test_measured_times_are_what_a_report_reads(tmp_path: Path) -> None:
    target, draft = pair(20)
    decode = hf.speculative(draft, "2-1", seed=1, record=tmp_path / "log")
    target.generate(PROMPT.expand(9, -1), custom_generate=decode, do_sample=True, max_new_tokens=8)
    decode.close()
    made = hf.timings(target, draft, tmp_path / "t.json", context=20, repeats=3)
    assert json.loads((tmp_path / "t.json").read_text()) == made
    assert [one["tokens"] for one in made["verify"]] == [1, 2, 3, 5, 8, 11, 16, 21]
    assert min(one["seconds"] for one in [made["draft_step"], made["overhead"], *made["verify"]]) > 0
    report = json.loads(sg.tree(tmp_path / "log", timings=tmp_path / "t.json").json)
    assert "speedup" in json.dumps(report["results"][0])


def test_a_rule_of_ones_own() -> None:
    target, draft = pair(5)

    def token(p: Any, q: Any, tokens: list[int], parents: list[int], random: Any) -> tuple[list[int], int]:
        path: list[int] = []
        for at, x in enumerate(tokens):
            assert parents == list(range(len(tokens)))
            if random.random() * q[at, x] >= p[at, x]:
                rest = np.maximum(p[at].astype(float) - q[at], 0)
                return path, int(random.choice(rest.size, p=rest / rest.sum()))
            path.append(at)
        last = p[len(tokens)].astype(float)
        return path, int(random.choice(last.size, p=last / last.sum()))

    decode = hf.speculative(draft, "chain-2", "with-replacement", token, seed=3)
    follows_the_law(target, decode, {"top_k": 4})
    options: dict[str, Any] = {"do_sample": True, "max_new_tokens": 9}
    for said in (([1], 0), ([0, 0], 0), ([], 5), ([7], 0), None):
        decode = hf.speculative(draft, "chain-2", rule=lambda *_, said=said: said)
        with pytest.raises(sg.Refused, match="rule: it returned"):
            target.generate(PROMPT, custom_generate=decode, **options)
    with pytest.raises(sg.Refused, match="tree: 'auto' knows what named rules keep"):
        hf.speculative(draft, "auto", rule=token)


@pytest.mark.parametrize("arm", ARMS)
def test_without_sampling_the_text_is_that_of_generate(arm: tuple[str, str, str]) -> None:
    target, draft = pair(20)
    ids = torch.tensor([[0, 0, 1, 2, 3], [5, 4, 1, 2, 3]])
    options: dict[str, Any] = {
        "attention_mask": torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]),
        "do_sample": False, "max_new_tokens": 14, "repetition_penalty": 1.3, "eos_token_id": [11],
    }  # fmt: skip
    plain = target.generate(ids, **options)
    for decode in (hf.speculative(draft, *arm), hf.speculative(draft, fitted(20)["price"])):
        assert torch.equal(target.generate(ids, custom_generate=decode, **options), plain)
        assert decode.tokens_per_call > 1 and sum(decode.stats["seconds"].values()) > 0


def test_drafts_of_other_makes() -> None:
    target, draft = pair(20)
    ids = torch.tensor([[1, 2, 3, 4, 5, 1, 2]])
    plain = target.generate(ids, do_sample=False, max_new_tokens=20)
    asked: list[tuple[int, list[int], list[int]]] = []

    def rows(text: list[int], nodes: list[int], parents: list[int]) -> Any:
        asked.append((len(text), nodes, parents))
        return np.tile(np.arange(20.0), (1 + len(nodes), 1))

    made: list[tuple[Any, dict[str, Any]]] = [
        (rows, {"tree": (2, 2)}),
        (hf.skip(target, [1]), {"tree": "2x2"}),
        (hf.ngram(20), {"tree": "chain-3"}),
        (draft, {"draft_tokens": [3, 4, 5, 7, 9, 11, 12, 19]}),
        (model(24, seed=1), {}),
        (draft, {"pack": True}),
    ]
    for one, options in made:
        decode = hf.speculative(one, seed=1, **options)
        assert torch.equal(target.generate(ids, custom_generate=decode, do_sample=False, max_new_tokens=20), plain)
        assert target.generate(ids, custom_generate=decode, do_sample=True, max_new_tokens=9).shape == (1, 16)
    assert asked[:2] == [(7, [], []), (7, [19, 18], [0, 0])]
    assert not any("forward" in vars(one) for one in [*target.modules(), *draft.modules()])


def windowed(kind: str, seed: int) -> Any:
    """A model whose layers, or every second one, see six tokens."""
    torch.manual_seed(seed)
    given = {
        "vocab_size": 20, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "head_dim": 8,
        "num_attention_heads": 2, "num_key_value_heads": 2, "initializer_range": 0.6, "sliding_window": 6,
        "eos_token_id": None, "pad_token_id": 0,
    }  # fmt: skip
    if kind == "mistral":
        made = transformers.MistralForCausalLM(transformers.MistralConfig(**given))
    elif kind == "gemma":
        mixed = {"layer_types": ["sliding_attention", "full_attention"], "tie_word_embeddings": False}
        made = transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**given, **mixed))
    else:
        made = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**given, use_sliding_window=True, max_window_layers=1))
    made.generation_config.update(pad_token_id=0, eos_token_id=None, top_k=0)
    return made.eval()


@pytest.mark.parametrize("kind", ["mistral", "gemma", "qwen"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_texts_beyond_a_sliding_window(kind: str, attention: str) -> None:
    target = windowed(kind, 0)
    target.set_attn_implementation(attention)
    draft = copy.deepcopy(target)
    with torch.no_grad():
        for weights in draft.parameters():
            weights += 0.05 * torch.randn_like(weights)
    options: dict[str, Any] = {"do_sample": False, "max_new_tokens": 40}
    plain = target.generate(PROMPT, **options)
    # The window matters: without it the text is another.
    wide = copy.deepcopy(target)
    for module in wide.modules():
        if getattr(module, "sliding_window", None):
            module.sliding_window = 100
    wide.config.sliding_window = 100
    assert not torch.equal(wide.generate(PROMPT, **options), plain)
    for arm in (("4-2-1", "stratified", "traversal-4"), ("chain-8", "top", "traversal")):
        decode = hf.speculative(draft, *arm)
        assert torch.equal(target.generate(PROMPT, custom_generate=decode, **options), plain)
        assert decode.tokens_per_call > 1.2


class Stream:
    def __init__(self) -> None:
        self.got: list[int] = []
        self.ended = 0

    def put(self, tokens: Any) -> None:
        self.got += tokens.flatten().tolist()

    def end(self) -> None:
        self.ended += 1


def test_stops_streams_and_what_is_returned() -> None:
    target, draft = pair(20)
    stream, again = Stream(), Stream()
    options: dict[str, Any] = {"do_sample": True, "max_new_tokens": 12, "tree": "3-2-1", "rule": "traversal"}
    ids = hf.generate(target, PROMPT, draft_model=draft, streamer=stream, seed=3, **options)
    assert stream.got == ids[0].tolist() and stream.ended == 1 and ids.shape == (1, 15)
    inputs = {"input_ids": PROMPT, "attention_mask": torch.ones_like(PROMPT)}
    assert torch.equal(hf.generate(target, inputs, draft_model=draft, seed=3, **options), ids)
    # Nothing behind a stop, which may be in the middle of a round.
    end = int(ids[0, 7])
    cut = hf.generate(target, PROMPT, draft_model=draft, seed=3, eos_token_id=end, streamer=again, **options)
    wanted = ids[0].tolist()[: ids[0].tolist().index(end, 3) + 1]
    assert cut[0].tolist() == wanted and again.got == wanted

    class Stop:
        def __call__(self, ids: Any, scores: Any, **more: Any) -> Any:
            return torch.full((len(ids),), ids.shape[1] >= 8)

    cut = hf.generate(target, PROMPT, draft_model=draft, seed=3, stopping_criteria=[Stop()], **options)
    assert torch.equal(cut, ids[:, :8])
    decode = hf.speculative(draft, seed=5)
    out = target.generate(
        PROMPT, custom_generate=decode, do_sample=True, num_return_sequences=3, max_new_tokens=5, top_k=4,
        return_dict_in_generate=True, output_scores=True, output_logits=True,
    )  # fmt: skip
    assert out.sequences.shape == (3, 8) and len(out.scores) == len(out.logits) == 5
    assert ((out.scores[0] > -torch.inf).sum(dim=1) == 4).all()
    chosen = target.compute_transition_scores(out.sequences, out.scores)
    assert torch.isfinite(chosen).all()
    assert decode.stats["texts"] == 3 and decode.stats["tokens"] == 15
    torch.manual_seed(1)
    one = target.generate(PROMPT, custom_generate=hf.speculative(draft), do_sample=True, max_new_tokens=9)
    torch.manual_seed(1)
    assert torch.equal(one, target.generate(PROMPT, custom_generate=hf.speculative(draft), do_sample=True, max_new_tokens=9))


@pytest.mark.parametrize("arm", [("chain-3", "with-replacement", "block"), ("3-2", "with-replacement", "rrs"),
                                 ("2-2", "stratified", "traversal-4")])  # fmt: skip
def test_a_record_is_audited_and_predicts_its_own_tokens_a_call(tmp_path: Path, arm: tuple[str, str, str]) -> None:
    target, draft = pair(20)
    tree, rule = arm[0], arm[2]
    law_: Any = arm[1]
    rule_: Any = rule
    decode = hf.speculative(draft, *arm, seed=2, record=tmp_path / "log")
    options = {"do_sample": True, "max_new_tokens": 24, "temperature": 0.9, "top_k": 15}
    ids = target.generate(PROMPT.expand(40, -1), custom_generate=decode, **options)
    target.generate(PROMPT, custom_generate=decode, **options)
    decode.close()
    log = sg.Log.open(tmp_path / "log")
    assert log.positions == 41 * 24
    assert sg.audit(tmp_path / "log", rule="text").ok
    if tree == "3-2" or "chain" in tree:
        assert sg.audit(tmp_path / "log", rule=rule).ok
    if "chain" not in tree:
        report = sg.tree(tmp_path / "log", topology=[f"prefix-{tree}"], schemes=[law_], verifiers=[rule_])
        rows = json.loads(report.json)["results"]
        said = next(row for row in rows if row["tree"] == f"prefix-{tree}")["tokens_per_call"]
        assert abs(said["mean"] - decode.tokens_per_call) < 0.2, (said, decode.stats)
    assert len(ids) == 40


def test_what_is_refused_says_which_option_and_the_cure(tmp_path: Path) -> None:
    target, draft = pair(20)
    decode = hf.speculative(draft)

    def says(match: str, of: Any = target, **options: Any) -> None:
        given = {"do_sample": True, "max_new_tokens": 4, "custom_generate": decode, **options}
        with pytest.raises(sg.Refused, match=match):
            of.generate(options.pop("inputs", PROMPT), **{k: v for k, v in given.items() if k != "inputs"})

    says("num_beams.*say num_beams=1", num_beams=2)
    says("output_attentions", output_attentions=True, return_dict_in_generate=True)
    says("cache_implementation", cache_implementation="static")
    says("logits_processor: Unbatched", guidance_scale=2.0)
    says("attention_mask", inputs=PROMPT, attention_mask=torch.tensor([[1, 1, 0]]))
    says("stream: takes one text", num_return_sequences=2, stream=Stream())

    class Counts:
        calls = 0

        def __call__(self, ids: Any, scores: Any) -> Any:
            self.calls += 1
            scores[:, self.calls % 20] = -torch.inf
            return scores

    says("logits_processor: Counts keeps a state", logits_processor=[Counts()])
    target.set_attn_implementation("eager")
    target.generate(PROMPT, custom_generate=decode, max_new_tokens=4)
    with pytest.raises(sg.Refused, match="record: without sampling"):
        target.generate(PROMPT, custom_generate=hf.speculative(draft, record="x"), do_sample=False, max_new_tokens=4)
    for wrong, match in [
        ({"tree": "4-0"}, "tree: '4-0' is none"),
        ({"law": "greedy"}, "law: 'greedy' is none"),
        ({"rule": "optimal"}, "rule: 'optimal' is none"),
        ({"rule": "block"}, "rule: block is for chains"),
        ({"law": "with-replacement"}, "rule: the levels of level-4"),
    ]:
        with pytest.raises(sg.Refused, match=match):
            hf.speculative(draft, **wrong)
    price = fitted(5)["price"]
    Path(tmp_path / "list.json").write_text("[[0], [1]]")
    for wrong, match in [
        ({"tree": price, "law": "top"}, "law: the price is of stratified drafts, and not of top; say law='stratified'"),
        ({"tree": price, "rule": "token"}, "rule: token is for chains, and a price makes trees; say"),
        ({"tree": price, "law": "without-replacement", "rule": "shared-gumbel"}, "law: the price is of stratified"),
        ({"tree": price | {"worth": [1.0]}}, "tree: worth: is not what a price has; give best-tree.price.json"),
        ({"tree": price | {"worth": {1}}}, "tree: is not read: .*give best-tree.price.json"),
        ({"tree": "none.json"}, "tree: is not read: .*none.json.*give best-tree.price.json"),
        ({"tree": tmp_path / "list.json"}, "tree: is no price: .*give best-tree.price.json"),
    ]:
        with pytest.raises(sg.Refused, match=match):
            hf.speculative(draft, **wrong)
    with pytest.raises(sg.Refused, match="draft_tokens: give ids"):
        hf.speculative(pair(20)[1], draft_tokens=[])
    with pytest.raises(sg.Refused, match="draft: give a model"):
        hf.speculative("draft")
    with pytest.raises(sg.Refused, match="draft: its rows are"):
        target.generate(PROMPT, custom_generate=hf.speculative(lambda ids, nodes, parents: torch.zeros(5, 20)))


@pytest.mark.parametrize("straddle", ["once", "independent"])
def test_the_compiled_round_is_that_of_specgap_rules_coin_by_coin(straddle: Any) -> None:
    random = np.random.default_rng(0)
    scheme = "stratified" if straddle == "once" else "stratified-independent"
    for size, n, _ in itertools.product((5, 40, 1000), range(1, 6), range(12)):
        q = random.dirichlet(np.full(size, random.choice([0.05, 0.3, 1.0])))
        p = q * np.exp(random.normal(size=size))
        p /= p.sum()
        coins, more = random.random((1, n)), random.random(99)
        drafts = _native.draft_rows(q[None], n, scheme, coins)[0]
        drafts = drafts[drafts >= 0]
        wanted = rules.draft_strata(q, n, Coins(coins[0]), straddle)  # type: ignore[arg-type]
        assert drafts.tolist() == wanted.tolist()
        rows = np.tile(p, (len(drafts) + 1, 1))
        path, token = _native.verify_tree(
            rows, np.tile(q, (len(drafts) + 1, 1)), drafts.tolist(), [0] * len(drafts), scheme, False,
            [rules.STRATA_LEVELS], more,
        )  # fmt: skip
        said, slot = rules.verify_level(p, q, drafts, Coins(more), straddle)  # type: ignore[arg-type]
        assert (path[0], drafts[path[0]]) == (slot, said) if path else (None, token) == (slot, said)


@pytest.mark.parametrize("straddle", ["once", "independent"])
def test_a_tree_from_its_leaves_is_that_of_specgap_rules_coin_by_coin(straddle: Any) -> None:
    reference = getattr(rules, "verify_tree", None)
    if reference is None:
        pytest.skip("specgap.rules has no verify_tree")
    random = np.random.default_rng(1)
    scheme = "stratified" if straddle == "once" else "stratified-independent"
    for size, widths, levels in itertools.product(
        (5, 300), ((4,), (2, 2), (3, 1, 1)), (((0.0,), (0.0,)), (rules.STRATA_LEVELS, (0.0,)))
    ):
        for _ in range(20):
            tokens: list[int] = []
            parents: list[int] = []
            q, open_rows = [random.dirichlet(np.full(size, 0.5))], [0]
            for width in widths:
                following = []
                for row in open_rows:
                    for token in _native.draft_rows(q[row][None], width, scheme, random.random((1, width)))[0]:
                        if token >= 0:
                            tokens.append(int(token))
                            parents.append(row)
                            following.append(len(tokens))
                q += [random.dirichlet(np.full(size, 0.5)) for _ in following]
                open_rows = following
            p = np.array([row * np.exp(random.normal(size=size)) for row in q])
            p /= p.sum(axis=1, keepdims=True)
            coins = random.random(len(tokens) + 1)
            found = _native.verify_tree(p, np.array(q), tokens, parents, scheme, True, levels, coins)

            assert found == reference(p, q, tokens, parents, Coins(coins), levels, straddle)


def test_the_lines_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [(_, lines)] = blocks("docs/guide/better-drafts.md", "In transformers")
    target, draft = pair(20)
    made = {"models/out/hf/target": target, "models/out/hf/draft": draft}
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", made.get)

    def tokenizer(text: str, return_tensors: str) -> dict[str, Any]:
        return {"input_ids": PROMPT, "attention_mask": torch.ones_like(PROMPT)}

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda name: tokenizer)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(lines, names)
    assert names["ids"].shape == (1, 67) and names["decode"].tokens_per_call > 1
    assert sg.audit("log", rule="text").ok
