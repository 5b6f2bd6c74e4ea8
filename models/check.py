"""Compares the built graphs with the independent NumPy float64 pass of reference.py.

Prints the greatest difference of two logits over several texts: the whole text at
once, token by token with a cache, and in one batch with padding on the left. Also
checks that the tokenizer gives every text back.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gguf
import numpy as np
from tokenizers import Tokenizer

import gemma
import qwen
import source_smollm2 as source
from chat import chat
from draft import COMMITTED
from ladder import RUNGS
from reference import DraftReference, HfReference, Reference, RungReference
from session import Session, pad_left
from target import SKIPPED

# Float32 rounding through 30 layers; logits reach about 40.
TOLERANCE = 1e-3
TEXTS = [
    chat("Name three rivers."),
    "def area(radius):\n    return 3.14159 * radius ** 2\n",
    "In 1969 the 3rd crew flew 384,400 km.",
    "Zażółć gęślą jaźń — naïve café, 東京, 🙂\n\tend",
]
ROUND_TRIPS = [*TEXTS, "", " ", "  two  spaces", "a\r\nb\n\n\nc", "\u200b\ufeff", "x" * 300, "don't won't I'LL", "0123456789 3.14"]


def difference(name: str, session: Session, sequences: list[list[int]], expected: list[np.ndarray]) -> float:
    """The greatest difference of two logits over the three ways to run a graph."""
    whole = max(np.abs(session.whole(s) - e).max() for s, e in zip(sequences, expected))
    cached = 0.0
    sequence, rows = sequences[0], expected[0]
    cache = session.empty_cache(1)
    for position, token in enumerate(sequence):
        mask = np.ones((1, position + 1), np.int64)
        logits, cache = session.run(np.array([[token]]), mask, cache)
        cached = max(cached, np.abs(logits[0, 0] - rows[position]).max())
    ids, mask = pad_left(sequences)
    half = ids.shape[1] // 2
    first, cache = session.run(ids[:, :half], mask[:, :half], session.empty_cache(len(ids)))
    second, _ = session.run(ids[:, half:], mask, cache)
    both = np.concatenate([first, second], 1)
    padded = max(
        np.abs(both[row, ids.shape[1] - len(s) :] - e).max() for row, (s, e) in enumerate(zip(sequences, expected))
    )
    print(f"{name}: whole {whole:.2e}, with cache {cached:.2e}, padded left with cache {padded:.2e}", flush=True)
    return float(max(whole, cached, padded))


def check_tokenizer(path: Path, tokens: list[str]) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    for text in ROUND_TRIPS:
        back = tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False)
        if back != text:
            raise SystemExit(f"tokenizer.json: {text!r} comes back as {back!r}")
    for index in range(len(tokens)):
        if tokenizer.id_to_token(index) != tokens[index]:
            raise SystemExit(f"tokenizer.json: id {index} is {tokenizer.id_to_token(index)!r}, not {tokens[index]!r}")
    print(f"tokenizer.json: {len(tokens)} ids as in the GGUF file, {len(ROUND_TRIPS)} texts come back unchanged")
    return tokenizer


def check_ladder(folder: Path, sequences: list[list[int]], threads: int) -> float:
    """The same for the rungs of the ladder that are built and requantised."""
    names = {part: name for part, (name, is_matrix) in source.PARTS.items() if is_matrix}
    worst = 0.0
    for rung, recipe in RUNGS.items():
        path = folder / f"{rung}.onnx"
        if not path.exists() or (not recipe.bits and rung.removeprefix("skip-") in map(str, SKIPPED)):
            continue
        kept = recipe.kept()
        requantised = {
            f"blk.{layer}.{names[part]}.weight" for layer in kept for part in recipe.parts if layer in recipe.layers
        }
        own = RungReference(source.gguf_path(), recipe.bits, recipe.group, requantised)
        expected = [own.logits(s, kept) for s in sequences[:2]]
        print(f"{rung}: greatest |logit| {max(np.abs(e).max() for e in expected):.1f}")
        worst = max(worst, difference(rung, Session(path, threads), sequences[:2], expected))
    return worst


def same_halves(wide: Path, narrow: Path) -> None:
    """Whether the float16 file is the float32 file, rounded."""
    files = [gguf.GGUFReader(path) for path in (wide, narrow)]
    for a, b in zip(*(file.tensors for file in files), strict=True):
        if a.name != b.name or not np.array_equal(a.data.astype(b.data.dtype), b.data):
            raise SystemExit(f"{narrow.name}: {b.name} is not that of {wide.name}, rounded")
    print(f"{narrow.name}: as {wide.name}, rounded")


def check_engine_files(folder: Path, sequences: list[list[int]], threads: int) -> float:
    """The files that engines read, against the graph of the same name."""
    found: list[tuple[Path, type]] = [(path, Reference) for path in sorted(folder.glob("gguf/*-f32.gguf"))]
    found += [(path.parent, HfReference) for path in sorted(folder.glob("hf/*/config.json"))]
    worst = 0.0
    for path, reader in found:
        name = path.name.removesuffix("-f32.gguf")
        expected = [reader(path).logits(s) for s in sequences]
        kind = path.parent.name
        worst = max(worst, difference(f"{name} ({kind})", Session(folder / f"{name}.onnx", threads), sequences, expected))
        if kind == "gguf":
            same_halves(path, path.with_name(f"{name}-f16.gguf"))
    return worst


def check_gemma(folder: Path, threads: int) -> float:
    """The same for Gemma 3 270M, where it is built; one text is longer than the sliding window."""
    if not (folder / "target.onnx").exists():
        return 0.0
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in ROUND_TRIPS:
        back = tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=True)
        if back != text:
            print(f"gemma tokenizer.json: {text!r} comes back as {back!r}")
    reference = Reference(folder / gemma.FILE)
    long = "The quick brown fox jumps over the lazy dog, and then it rests. " * 40
    sequences = [tokenizer.encode(text).ids for text in ("The capital of France is", TEXTS[2])]
    sequences.append(tokenizer.encode(long).ids[:540])
    worst = 0.0
    kept = [i for i in range(reference.layers) if i not in gemma.SKIPPED]
    for name, layers in (("target", None), (f"skip-{len(kept)}", kept)):
        used = sequences if layers is None else sequences[:2]
        expected = [reference.logits(s, layers) for s in used]
        print(f"gemma {name}: {', '.join(str(len(s)) for s in used)} tokens, "
              f"greatest |logit| {max(np.abs(e).max() for e in expected):.1f}")
        session = Session(folder / f"{name}.onnx", threads)
        worst = max(worst, difference(f"gemma {name}", session, used, expected))
    return worst


def check_qwen(folder: Path, threads: int) -> float:
    """The same for the Qwen2.5-Coder pair, where it is built."""
    worst = 0.0
    for name in ("draft", "target"):
        if not (folder / f"{name}.onnx").exists():
            continue
        path = qwen.gguf_path(folder, name)
        tokens = source.metadata(gguf.GGUFReader(path), "tokenizer.ggml.tokens")
        # Characters that are not composed come back composed: none in these texts.
        tokenizer = check_tokenizer(folder / "tokenizer.json", tokens)
        sequences = [tokenizer.encode(text).ids for text in ("The capital of France is", TEXTS[1])]
        reference = Reference(path)
        expected = [reference.logits(s) for s in sequences]
        print(f"qwen {name}: {', '.join(str(len(s)) for s in sequences)} tokens, "
              f"greatest |logit| {max(np.abs(e).max() for e in expected):.1f}")
        del reference
        worst = max(worst, difference(f"qwen {name}", Session(folder / f"{name}.onnx", threads), sequences, expected))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder of the built graphs")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    _, _, reader = source.load()
    tokens = source.metadata(reader, "tokenizer.ggml.tokens")
    tokenizer = check_tokenizer(arguments.output / "tokenizer.json", tokens)
    sequences = [tokenizer.encode(text).ids for text in TEXTS]
    print(f"{len(sequences)} texts of {', '.join(str(len(s)) for s in sequences)} tokens")
    reference = Reference(source.gguf_path())
    worst = 0.0
    graphs = {"target": None} | {
        f"skip-{kept}": [i for i in range(reference.layers) if i not in dropped] for kept, dropped in SKIPPED.items()
    }
    for name, kept in graphs.items():
        path = arguments.output / f"{name}.onnx"
        if path.exists():
            expected = [reference.logits(s, kept) for s in sequences]
            print(f"{name}: greatest |logit| {max(np.abs(e).max() for e in expected):.1f}")
            worst = max(worst, difference(name, Session(path, arguments.threads), sequences, expected))
    worst = max(worst, check_ladder(arguments.output, sequences, arguments.threads))
    path = arguments.output / "draft.onnx"
    if path.exists():
        own = DraftReference(source.gguf_path(), COMMITTED)
        expected = [own.logits(s) for s in sequences]
        print(f"draft: greatest |logit| {max(np.abs(e).max() for e in expected):.1f}")
        worst = max(worst, difference("draft", Session(path, arguments.threads), sequences, expected))
    worst = max(worst, check_engine_files(arguments.output, sequences, arguments.threads))
    worst = max(worst, check_gemma(arguments.output / "gemma", arguments.threads))
    worst = max(worst, check_qwen(arguments.output / "qwen", arguments.threads))
    print(f"greatest difference of two logits: {worst:.2e} (allowed {TOLERANCE:.0e})")
    if not worst <= TOLERANCE:
        raise SystemExit("check: the graphs do not compute what the GGUF file says")


if __name__ == "__main__":
    main()
