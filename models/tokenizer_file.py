"""Builds a `tokenizer.json` (format of the Hugging Face tokenizers library).

The tokenizer is a byte-level BPE: the text is cut into pieces, each piece is written
as bytes in the GPT-2 alphabet and merged by rank. SmolLM2 cuts off single digits and
cuts the rest by the GPT-2 expression; Qwen2.5 cuts by one expression of its own, after
composing characters (Unicode NFC).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

# How Qwen2.5 cuts a text: endings such as 's, words with the sign before them, single
# digits, runs of other signs, line ends, spaces.
QWEN2_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# Token kinds in GGUF metadata.
KIND_CONTROL = 3
KIND_USER_DEFINED = 4


def byte_alphabet() -> list[str]:
    """The GPT-2 alphabet: a printable character for each of the 256 bytes."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {byte: chr(byte) for byte in printable}
    others = (byte for byte in range(256) if byte not in alphabet)
    for offset, byte in enumerate(others):
        alphabet[byte] = chr(0x100 + offset)
    return [alphabet[byte] for byte in range(256)]


def bpe_tokenizer(
    tokens: Sequence[str], kinds: Sequence[int], merges: Sequence[str], pieces: str | None = None
) -> dict:
    """The content of tokenizer.json: token i of `tokens` gets the id i.

    `pieces` is the expression that cuts a composed text; None means digits one by one,
    then the GPT-2 expression, without composing.
    """
    added = [
        {
            "id": index,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind == KIND_CONTROL,
        }
        for index, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind in (KIND_CONTROL, KIND_USER_DEFINED)
    ]
    byte_level = {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": pieces is None, "use_regex": pieces is None,
    }
    cut = {"type": "Digits", "individual_digits": True}
    if pieces is not None:
        cut = {"type": "Split", "pattern": {"Regex": pieces}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None if pieces is None else {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": list(merges),
        },
    }


def write_tokenizer(content: dict, path: Path) -> None:
    """Writes to a temporary name, then renames."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    os.replace(temporary, path)
