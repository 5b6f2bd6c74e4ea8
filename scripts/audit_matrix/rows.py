"""Three sources of rows, each a table of contexts: the row behind a token is that of its context."""

import json
import pathlib
import struct

import numpy

DEMO = pathlib.Path(__file__).parents[2] / "models/logs/smollm2-demo/shard-00000.safetensors"
ORDERS = {
    "transformers": "k,p,m",
    "vllm": "m,k,p",
    "sglang": "p,k,m",  # k,p,m where there is a min-p
    "sglang-verifier": "k,p,m",
    "joint": "p,k,m",
    "llama.cpp": "k,p,m,T",
    "mlx-lm": "p,m,k,T",
}


class Rows:
    """Logits of target and draft [contexts, V] as the log stores them, and each token's context."""

    def __init__(self, name, target, draft, follows):
        self.name, self.follows = name, follows
        self.stored = {"target": target, "draft": draft}
        self.target, self.draft = target.astype(float), draft.astype(float)
        self.vocabulary = target.shape[1]


def markov():
    """Made rows of order 1: V = 48, and a draft that is the target with noise."""
    random = numpy.random.default_rng(48)
    target = 1.5 * random.normal(size=(48, 48))
    draft = target + 0.9 * random.normal(size=(48, 48))
    return Rows("made", target.astype("f4"), draft.astype("f4"), numpy.arange(48))


def demo(most=400):
    """The demo log's 400 rows on its 400 commonest tokens; behind each token stands one of them."""
    with open(DEMO, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()

    def tensor(name):
        kind = {"F16": "<f2", "I32": "<i4"}[header[name]["dtype"]]
        begin, end = header[name]["data_offsets"]
        return numpy.frombuffer(data[begin:end], kind).reshape(header[name]["shape"])

    ids = tensor("token_ids")
    listed = {model: tensor(f"{model}_logits").astype(float) for model in ("target", "draft")}
    full = {}
    for model, logits in listed.items():
        lowest = numpy.where(ids >= 0, logits, numpy.inf).min(axis=1)
        full[model] = numpy.repeat(lowest[:, None] - 1, ids.max() + 1, axis=1)
        row, place = numpy.nonzero(ids >= 0)
        full[model][row, ids[row, place]] = logits[row, place]
    mass = softmax(full["target"]).sum(axis=0)
    common = numpy.sort(numpy.argsort(-mass, kind="stable")[:most])
    shift = {model: rows[:, common] - rows[:, common].max(axis=1, keepdims=True) for model, rows in full.items()}
    follows = numpy.random.default_rng(20).permutation(len(ids))[:most] % len(ids)
    return Rows("demo", shift["target"].astype("f2"), shift["draft"].astype("f2"), follows)


def peaked():
    """Zipf's rows of V = 2,000 and about 2 nats, and one context in five that is nearly certain."""
    random = numpy.random.default_rng(2000)
    contexts, vocabulary = 200, 2000
    ranks = random.permuted(numpy.tile(numpy.arange(1, vocabulary + 1), (contexts, 1)), axis=1)
    target = -1.9 * numpy.log(ranks) + 0.3 * random.normal(size=ranks.shape)
    target += numpy.where((ranks == 1) & (numpy.arange(contexts) % 5 == 0)[:, None], 5.0, 0.0)
    draft = target + 0.7 * random.normal(size=ranks.shape)
    follows = random.integers(contexts, size=vocabulary)
    return Rows("peaked", target.astype("f2"), draft.astype("f2"), follows)


SOURCES = {"made": markov, "demo": demo, "peaked": peaked}


def softmax(logits):
    weights = numpy.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def sampled(logits, temperature=1.0, cuts=None, order="k,p,m"):
    """The law of a request: temperature and cuts in their order, of equal tokens the lowest id first."""
    cuts = cuts or {}
    order = "sglang-verifier" if order == "sglang" and "min_p" in cuts else order
    order = ORDERS.get(order, order)
    steps, last = order.removesuffix(",T").split(","), order.endswith(",T")
    falling = numpy.argsort(-logits, kind="stable")
    if temperature == 0:
        return numpy.eye(logits.size)[falling[0]]
    law = softmax(logits if last else logits / temperature)
    whole = law.copy()
    for step in steps:
        law = law / law.sum()
        key = {"k": "top_k", "p": "top_p", "m": "min_p"}[step]
        if key not in cuts:
            continue
        if step == "k":
            alive = falling[law[falling] > 0]
            law[alive[cuts[key]:]] = 0
        elif step == "p":
            before = numpy.cumsum(law[falling]) - law[falling]
            law[falling[before >= cuts[key]]] = 0
        else:
            law[law < cuts[key] * law.max()] = 0
    if last:
        law = numpy.where(law > 0, numpy.exp((logits - logits.max()) / temperature), 0)
    elif not cuts:
        law = whole
    return law / law.sum()
