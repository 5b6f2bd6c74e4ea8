"""Logs with a row for each (start, depth) of the heads of heads.py, and what they say.

`--write` runs every head along the held-out text and writes, of each, the compact record: ln p and
ln q of the text's own tokens and what is said of rows that are not logged; of the first also, on a
part of the text, lists of the likeliest tokens. `numbers.json` gets what needs whole rows.

Without it the records alone are read, in plain NumPy, and `numbers.json` gets what they tell:

    a_{s,j} = min(1, q_{s,j}(y_{s+j}) / p_{s+j}(y_{s+j}))        drafts that are sampled
    tokens a round = 1 + E[tau] = 1 + sum_{i=1..K} mean over s of prod_{j<i} a_{s,j}

The target's own token is counted. The mean is over starts with K tokens left; standard errors are
by prompt. Drafts that are the likeliest token have a_{s,j} = `hit`.

`--rows FOLDER` also writes whole rows of every head, 300 MB each, for `specgap tree` and `gap`: over the
sub-vocabulary, and one token more for all others. No draft is ever one of these, so that what is
accepted does not change.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

RECORDS = ("eagle-kl", "eagle-tv", "eagle-lk", "eagle-alpha", "block-kl")
#: Sub-vocabularies: the likeliest so many of the trained one.
CUTS = (1024, 2048, 4096, 8192)
LISTED, LISTED_PROMPTS, LISTED_POSITIONS = 32, 8, 24
FOLDER = Path(__file__).parent / "logs" / "smollm2-by-depth"
#: ln q where q is 0.
NEVER = -700.0


def by_prompt(values: np.ndarray, prompts: np.ndarray) -> tuple[float, float]:
    """Mean, and its standard error with prompts as clusters."""
    mean = values.mean()
    sums = np.bincount(prompts, weights=values - mean)
    groups = len(np.unique(prompts))
    return float(mean), float(np.sqrt((sums**2).sum() * groups / (groups - 1)) / len(values))


def read_record(path: Path) -> dict[str, np.ndarray]:
    with safe_open(path, framework="np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def complete(record: dict[str, np.ndarray]) -> np.ndarray:
    """Starts with K tokens left."""
    return (record["draft_token_ids"][:, :, 0] >= 0).all(1)


def lengths(accepted: np.ndarray) -> np.ndarray:
    """Expected tokens of a round, of a_{s,j} [starts, K]."""
    return 1 + accepted.cumprod(1).sum(1)


def sampled(record: dict[str, np.ndarray]) -> np.ndarray:
    """a_{s,j} of drafts drawn from q, at starts with K tokens left."""
    starts = np.flatnonzero(complete(record))
    depths = record["draft_logprobs"].shape[1]
    log_p = record["target_logprobs"][:, 0].astype(np.float64)
    log_p = np.stack([log_p[starts + j] for j in range(depths)], 1)
    return np.exp(np.minimum(0.0, record["draft_logprobs"][starts, :, 0].astype(np.float64) - log_p))


def rounded(value: object) -> object:
    if isinstance(value, (list, tuple, np.ndarray)):
        return [rounded(v) for v in value]
    return round(float(value), 6)


def of_record(record: dict[str, np.ndarray]) -> dict:
    """All that the compact record tells."""
    here = complete(record)
    prompts = record["prompt_id"][here]
    accepted = sampled(record)
    joint = accepted.cumprod(1).mean(0)
    entries = record["overlap"] >= 0
    hits = [record["hit"][entries[:, j], j].mean() for j in range(entries.shape[1])]
    overlap = np.array(record["overlap"][here], dtype=np.float64)
    likeliest = record["hit"][here].astype(np.float64)
    return {
        "positions": len(record["token"]), "starts": int(here.sum()), "prompts": len(np.unique(prompts)),
        "expected_tokens": rounded(by_prompt(lengths(accepted), prompts)),
        "marginal": rounded(accepted.mean(0)),
        "conditional": rounded(joint / np.concatenate([[1.0], joint[:-1]])),
        "joint": rounded(joint),
        "expected_tokens_likeliest": rounded(by_prompt(lengths(likeliest), prompts)),
        "products_of_overlaps": rounded(by_prompt(lengths(overlap), prompts)),
        "products_of_overlaps_less_exact": rounded(by_prompt(lengths(overlap) - lengths(accepted), prompts)),
        "product_of_mean_overlaps": rounded(lengths(overlap.mean(0)[None])[0]),
        "product_of_mean_hits": rounded(lengths(np.array(hits)[None])[0]),
    }


def compared(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> list[float]:
    """Tokens a round of the first less those of the second, start by start, and the standard error by prompt."""
    assert np.array_equal(first["token"], second["token"])
    difference = lengths(sampled(first)) - lengths(sampled(second))
    return rounded(by_prompt(difference, first["prompt_id"][complete(first)]))


def report(names: list[str], folder: Path) -> None:
    """Adds what the records tell to numbers.json, and prints it."""
    path = folder / "numbers.json"
    numbers = json.loads(path.read_text(encoding="utf-8"))
    records = {name: read_record(folder / f"{name}.safetensors") for name in names}
    for name, record in records.items():
        numbers["heads"][name] |= of_record(record)
    numbers["less_first"] = {name: compared(records[name], records[names[0]]) for name in names[1:]}
    path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    for name, found in numbers["heads"].items():
        print(f"\n{name}: " + "; ".join(f"{key} {value}" for key, value in found.items() if key != "cuts"))
        for cut, values in found["cuts"].items():
            print(f"  vocabulary {cut}: {values}")
    print(f"\nless {names[0]}:", numbers["less_first"])


def write(names: list[str], text: Path, run: Path, folder: Path, threads: int, whole_rows: Path | None) -> None:
    """The records, the lists of the first head, and the numbers that need whole rows."""
    import torch
    from torch import Tensor

    import heads
    import source_smollm2 as source
    from chat import held_out_prompts
    from heads import DEPTHS, Block, Eagle, Head, best_of_two, collate, load_target, read_text
    from heads_text import HELD_OUT_TOKENS, TAPS
    from heads_text import SEED as TEXT_SEED

    torch.set_num_threads(threads)
    target = load_target()
    data, _ = read_text(text / "held-out.npz", target.embedding)
    file = np.load(run / "vocabulary.npz")
    ids, rank = torch.from_numpy(file["ids"]), torch.from_numpy(file["rank"])
    head = target.embedding[ids].contiguous()
    place = torch.full((len(target.embedding),), -1)
    place[ids] = torch.arange(len(ids))
    starts = torch.tensor([0, *(s.answer for s in data)]).cumsum(0)
    count = int(starts[-1])
    prompt_id = torch.cat([torch.full((s.answer,), i) for i, s in enumerate(data)])
    token = torch.cat([s.tokens[s.prompt :] for s in data])
    left = torch.cat([torch.arange(s.answer, 0, -1) for s in data])
    final = torch.cat([s.states[s.prompt - 1 :, -1] for s in data])

    def target_log_rows(part: slice) -> Tensor:
        return torch.log_softmax((final[part] @ target.embedding.T).double(), -1)

    log_p, p_sub, likeliest = [], [], []
    top_p: list[tuple[Tensor, Tensor]] = []
    for first in range(0, count, 128):
        rows = target_log_rows(slice(first, first + 128))
        log_p.append(rows.gather(1, token[first : first + 128, None])[:, 0])
        p_sub.append(rows[:, ids].exp())
        likeliest.append(rows.argmax(1))
        top_p.append(tuple(rows.topk(LISTED)))
    log_p, p_sub, likeliest = torch.cat(log_p), torch.cat(p_sub), torch.cat(likeliest)
    top_values, top_ids = torch.cat([v for v, _ in top_p]), torch.cat([i for _, i in top_p])

    titles = [name for name, _ in held_out_prompts()]
    base = {
        "tool": "specgap models/heads_log.py",
        "target": {"name": source.PACKAGE + ": SmolLM2-135M-Instruct, GGUF Q4_1 dequantised", "sha256": source.SHA256},
        "tokenizer": {"name": "models/tokenizer.json"},
        "temperature_applied": 1.0,
        "sampling": {"temperature": 1.0, "seed": TEXT_SEED, "max_tokens": HELD_OUT_TOKENS, "chat": "none"},
        "vocabulary": len(target.embedding),
        "draft_vocabulary": len(ids),
    }

    def save(path: Path, tensors: dict[str, Tensor], metadata: dict) -> None:
        arrays = {name: np.ascontiguousarray(value.numpy()) for name, value in tensors.items()}
        save_file(arrays, path, metadata={"specgap": json.dumps(metadata)})
        path.chmod(0o644)

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "draft-vocabulary.safetensors"
    save_file({"d2t": (ids - torch.arange(len(ids))).int().numpy(), "rank": rank.int().numpy()},
              vocabulary)
    vocabulary.chmod(0o644)
    shutil.copyfile(run / "training.json", folder / "training.json")
    numbers: dict = {"depths": DEPTHS, "heads": {}}
    for name in names:
        model: Head = (Block if name.startswith("block") else Eagle)(target)
        model.load_state_dict(torch.load(run / f"{name}.pt"))
        model.eval()
        with torch.no_grad():
            features = torch.cat([model(collate([s]))[0] for s in data])
        shape = (count, DEPTHS)
        log_q = torch.full(shape, NEVER, dtype=torch.float64)
        columns = {c: torch.full(shape, -1.0, dtype=torch.float64) for c in ("hit", "p_hit", "max_q", "overlap")}
        agree, best, cross = (torch.zeros(shape, dtype=torch.float64) for _ in range(3))
        by_cut = {cut: {c: torch.zeros(shape, dtype=torch.float64) for c in ("accepted", "overlap", "kept")}
                  for cut in CUTS}
        drafted = torch.full((*shape, 1), -1)
        # Of what lies beyond a text's end nothing is read.
        whole_q = torch.zeros(*shape, len(ids) + 1) if whole_rows else None
        lists = [torch.full((*shape, LISTED), -1), torch.full((*shape, LISTED), NEVER, dtype=torch.float64)]
        for depth in range(DEPTHS):
            for first in range(0, count, 256):
                here = torch.arange(first, min(first + 256, count))
                here = here[left[here] > depth]
                at = here + depth
                logits = (features[here, depth] @ head.T).double()
                rows = torch.log_softmax(logits, -1)
                q, p = rows.exp(), p_sub[at]
                y = place[token[at]]
                drafted[here, depth, 0] = token[at]
                own = torch.where(y >= 0, rows.gather(1, y.clamp(min=0)[:, None])[:, 0], NEVER)
                log_q[here, depth] = own.clamp(min=NEVER)
                if whole_q is not None:
                    whole_q[here, depth, : len(ids)] = q.float()
                columns["max_q"][here, depth], top = q.max(1)
                columns["hit"][here, depth] = (ids[top] == token[at]).double()
                columns["p_hit"][here, depth] = p.gather(1, top[:, None])[:, 0]
                columns["overlap"][here, depth] = torch.minimum(p, q).sum(1)
                agree[here, depth] = (ids[top] == likeliest[at]).double()
                cross[here, depth] = -(p * rows).sum(1)
                best[here, depth] = 1 - best_of_two(p, q)[0]
                values, places = rows.topk(LISTED)
                lists[0][here, depth], lists[1][here, depth] = ids[places], values
                for cut, found in by_cut.items():
                    inside = rank < cut
                    q_cut = torch.softmax(logits.masked_fill(~inside, -torch.inf), -1)
                    p_cut = p * inside
                    found["overlap"][here, depth] = torch.minimum(p_cut, q_cut).sum(1)
                    p_kept = p_cut / p_cut.sum(1, keepdim=True)
                    found["kept"][here, depth] = torch.minimum(p_kept, q_cut).sum(1)
                    y_q = torch.where(y >= 0, q_cut.gather(1, y.clamp(min=0)[:, None])[:, 0], 0.0)
                    found["accepted"][here, depth] = (y_q / log_p[at].exp()).clamp(max=1)
        metadata = base | {
            "draft": {"name": f"{name} of models/heads.py"},
            "prompts": [{"id": i, "name": n, "positions": s.answer} for i, (n, s) in enumerate(zip(titles, data))],
        }
        if name.startswith("block"):
            metadata["drafter"] = "parallel"
        position = torch.cat([torch.arange(s.answer) for s in data])
        save(folder / f"{name}.safetensors", {
            "prompt_id": prompt_id.int(), "position": position.int(), "token": token.int(),
            "target_token_ids": token[:, None].int(), "target_logprobs": log_p[:, None].float(),
            "draft_token_ids": drafted.int(), "draft_logprobs": log_q[..., None].float(),
            "hit": columns["hit"].half(), **{c: columns[c].float() for c in ("p_hit", "max_q", "overlap")},
        }, metadata | {"top": 0})
        if whole_q is not None:
            whole_rows.mkdir(parents=True, exist_ok=True)
            inside = place[token]
            save(whole_rows / f"{name}.safetensors", {
                "prompt_id": prompt_id.int(), "position": position.int(),
                # All answers draw from one generator.
                "seed": torch.full_like(prompt_id, -1).int(),
                "token": torch.where(inside >= 0, inside, len(ids)).int(),
                "target_probs": torch.cat([p_sub, (1 - p_sub.sum(1, keepdim=True)).clamp(min=0)], 1).float(),
                "draft_probs": whole_q,
            }, metadata | {"vocabulary": len(ids) + 1})
        if name == names[0]:
            keep = ((prompt_id < LISTED_PROMPTS) & (position < LISTED_POSITIONS)).nonzero()[:, 0]
            # A part of a text ends where it is cut: rows about tokens behind it are left out.
            last = torch.tensor([min(LISTED_POSITIONS, s.answer) for s in data])[prompt_id]
            over = (position[:, None] + torch.arange(DEPTHS) >= last[:, None])[..., None]
            listed, values = lists[0].masked_fill(over, -1), lists[1].masked_fill(over, NEVER)
            rest = torch.where(over[..., 0], 1.0, 1 - lists[1].exp().sum(-1)).clamp(min=0)
            save(folder / f"{name}-lists.safetensors", {
                "prompt_id": prompt_id[keep].int(), "position": position[keep].int(), "token": token[keep].int(),
                "target_token_ids": top_ids[keep].int(), "target_logprobs": top_values[keep].float(),
                "target_rest": (1 - top_values[keep].float().double().exp().sum(-1, keepdim=True)).clamp(min=0),
                "draft_token_ids": listed[keep].int(), "draft_logprobs": values[keep].float(),
                "draft_rest": rest[keep][..., None],
            }, metadata | {
                "top": LISTED, "rest_temperatures": [1.0],
                "prompts": [p | {"positions": min(LISTED_POSITIONS, p["positions"])}
                            for p in metadata["prompts"][:LISTED_PROMPTS]],
            })
        whole = left >= DEPTHS
        prompts = prompt_id[whole].numpy()
        entry = left[:, None] > torch.arange(DEPTHS)

        def mean(values: Tensor) -> list[float]:
            return rounded([values[entry[:, j], j].mean() for j in range(DEPTHS)])

        cuts = {}
        for cut, found in by_cut.items():
            rows = {c: lengths(v[whole].numpy()) for c, v in found.items()}
            cuts[str(cut)] = {
                "covered": rounded(p_sub[:, rank < cut].sum(1).mean()),
                "expected_tokens": rounded(by_prompt(rows["accepted"], prompts)),
                "products_of_overlaps": rounded(by_prompt(rows["overlap"], prompts)),
                "products_of_overlaps_renormalised": rounded(by_prompt(rows["kept"], prompts)),
            }
        accuracy = [agree[entry[:, j], j].mean() for j in range(DEPTHS)]
        numbers["heads"][name] = {
            "overlap": mean(columns["overlap"]), "alpha_star_2": mean(best), "cross_entropy_inside": mean(cross),
            "argmax_accuracy": rounded(accuracy),
            "product_of_mean_argmax_accuracies": rounded(lengths(np.array(accuracy)[None])[0]),
            "expected_tokens_by_torch": rounded(heads.expected_length(model, data, ids, head)[0]),
            "cuts": cuts,
        }
        print(f"{name}: written", flush=True)
    (folder / "numbers.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--write", nargs=2, type=Path, metavar=("TEXT", "RUN"),
                        help="folders of heads_text.py and heads.py: write the logs first")
    parser.add_argument("--records", nargs="+", default=list(RECORDS), metavar="RUN",
                        help="runs of heads.py; the others are compared with the first, whose lists are written")
    parser.add_argument("--rows", type=Path, metavar="FOLDER", help="with --write: whole rows go there")
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()
    if a.write:
        write(a.records, *a.write, a.folder, a.threads, a.rows)
    written = json.loads((a.folder / "numbers.json").read_text(encoding="utf-8"))["heads"]
    report(a.records if a.write else list(written), a.folder)


if __name__ == "__main__":
    main()
