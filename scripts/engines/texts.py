"""What the scripts of this folder share: prompts, and logs of texts that an engine wrote."""

import json
import pathlib
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]


def chat_prompts(count: int) -> list[str]:
    """The first prompts of the repository's captures."""
    lines = (ROOT / "models/prompts/capture-chat.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["prompt"] for line in lines[:count]]


def write_log(path: pathlib.Path, texts: list[list[int]], rows: dict[str, list[np.ndarray]], engine: str) -> None:
    """A log of texts at T = 1, each of a request with a seed of its own; `rows` are logits by tensor and text."""
    each = [len(text) for text in texts]
    tokens, request = np.concatenate(texts).astype(np.int64), np.repeat(np.arange(len(each)), each)
    np.savez(
        path,
        **{name: np.concatenate(all_rows) for name, all_rows in rows.items()},
        token=tokens, output=tokens, prompt_id=request, seed=request,
        position=np.concatenate([np.arange(count) for count in each]),
    )
    metadata = {
        "rows_from": "scoring", "temperature_applied": 1.0, "engine": engine,
        "sampling": {"temperature": 1.0, "top_k": None, "top_p": None, "seed": 0},
    }
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("log.json", json.dumps(metadata))
