"""An independent forward pass in NumPy float64, straight from the GGUF tensors.

It shares no code with the graph builder: it rotates interleaved pairs as GGUF
stores them, repeats keys and values, works position by position through a list of
past keys and values, and never pads.
"""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file


# Elements of a matrix that is kept in float32.
LARGE = 1 << 21


class Reference:
    """A Llama, Gemma 3 or Qwen2 decoder that reads one token after the other."""

    def __init__(self, path: Path) -> None:
        reader = gguf.GGUFReader(path)
        self.architecture = reader.fields["general.architecture"].contents()
        self.gemma = self.architecture == "gemma3"
        # Which pairs a rotation turns: (i, i + head_dim / 2), else (2 i, 2 i + 1).
        self.halves = self.gemma or self.architecture == "qwen2"
        self.tensors = {t.name: t for t in reader.tensors}
        self.loaded: dict[str, np.ndarray] = {}

        def fact(key: str, default=None):
            field = reader.fields.get(f"{self.architecture}.{key}")
            return field.contents() if field else default

        self.layers = fact("block_count")
        self.width = fact("embedding_length")
        self.heads = fact("attention.head_count")
        self.kv_heads = fact("attention.head_count_kv")
        self.head_dim = fact("attention.key_length", self.width // self.heads)
        self.epsilon = fact("attention.layer_norm_rms_epsilon")
        self.base = fact("rope.freq_base")
        self.window = fact("attention.sliding_window", 0)

    def tensor(self, name: str) -> np.ndarray:
        if name not in self.loaded:
            t = self.tensors[name]
            value = gguf.quants.dequantize(t.data, t.tensor_type)
            # Embeddings and the matrices of large models stay in float32 to save memory;
            # products widen them.
            narrow = name in ("token_embd.weight", "output.weight") or value.size > LARGE
            self.loaded[name] = value if narrow else value.astype(np.float64)
        return self.loaded[name]

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        gain = self.tensor(name)
        return gain * x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.epsilon)

    def states(self, tokens: list[int], kept: list[int] | None = None) -> np.ndarray:
        """Final hidden states [sequence, width] of a sequence through the kept layers."""
        kept = list(range(self.layers)) if kept is None else kept
        past: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {layer: [] for layer in kept}
        table = self.tensor("token_embd.weight")
        rows = []
        for position, token in enumerate(tokens):
            x = table[token].astype(np.float64)
            if self.gemma:
                x = x * np.sqrt(self.width)
            for layer in kept:
                x = self.layer(layer, x, position, past[layer])
            rows.append(self.norm(x, "output_norm.weight"))
        return np.stack(rows)

    def rows(self, states: np.ndarray) -> np.ndarray:
        """Logits [sequence, vocabulary] of final hidden states."""
        table = self.tensor("output.weight" if "output.weight" in self.tensors else "token_embd.weight")
        return np.concatenate([states @ part.T.astype(np.float64) for part in np.array_split(table, 8)], axis=1)

    def logits(self, tokens: list[int], kept: list[int] | None = None) -> np.ndarray:
        """Logits [sequence, vocabulary] of a sequence through the kept layers."""
        return self.rows(self.states(tokens, kept))

    def layer(self, layer: int, x: np.ndarray, position: int, past: list) -> np.ndarray:
        block = f"blk.{layer}."
        h = self.norm(x, block + "attn_norm.weight")
        q, k, v = (self.tensor(f"{block}attn_{part}.weight") @ h for part in "qkv")
        if f"{block}attn_q.bias" in self.tensors:
            q, k, v = (row + self.tensor(f"{block}attn_{part}.bias") for part, row in zip("qkv", (q, k, v)))
        q = q.reshape(self.heads, self.head_dim)
        k, v = k.reshape(self.kv_heads, self.head_dim), v.reshape(self.kv_heads, self.head_dim)
        base = self.base
        seen = 0
        if self.gemma:
            q, k = self.norm(q, block + "attn_q_norm.weight"), self.norm(k, block + "attn_k_norm.weight")
            if layer not in (5, 11, 17):
                # A local layer: this position and the 511 before it.
                base, seen = 10000.0, max(0, position - self.window + 1)
        q, k = self.turn(q, position, base), self.turn(k, position, base)
        past.append((k, v))
        mixed = []
        for head in range(self.heads):
            own = head * self.kv_heads // self.heads
            score = np.array([q[head] @ key[own] for key, _ in past[seen:]]) / np.sqrt(self.head_dim)
            weight = np.exp(score - score.max())
            weight /= weight.sum()
            mixed.append(sum(w * value[own] for w, (_, value) in zip(weight, past[seen:])))
        change = self.tensor(block + "attn_output.weight") @ np.concatenate(mixed)
        if self.gemma:
            change = self.norm(change, block + "post_attention_norm.weight")
        x = x + change
        h = self.norm(x, block + "ffn_norm.weight")
        gate = self.tensor(block + "ffn_gate.weight") @ h
        up = self.tensor(block + "ffn_up.weight") @ h
        if not self.gemma:
            return x + self.tensor(block + "ffn_down.weight") @ (gate / (1.0 + np.exp(-gate)) * up)
        gate = gate * 0.5 * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (gate + 0.044715 * gate**3)))
        change = self.tensor(block + "ffn_down.weight") @ (gate * up)
        return x + self.norm(change, block + "post_ffw_norm.weight")

    def turn(self, heads: np.ndarray, position: int, base: float) -> np.ndarray:
        """Each pair of a head as a complex number, times exp(i angle)."""
        count = heads.shape[1] // 2
        if self.halves:
            pairs = heads[:, :count] + 1j * heads[:, count:]
        else:
            pairs = heads[:, 0::2] + 1j * heads[:, 1::2]
        turned = pairs * np.exp(1j * position / base ** (np.arange(count) / count))
        if self.halves:
            return np.concatenate([turned.real, turned.imag], axis=1)
        return np.stack([turned.real, turned.imag], axis=-1).reshape(heads.shape)


class RungReference(Reference):
    """A rung of the ladder, requantised from the GGUF tensors as `models/ladder.py` says.

    Works row by row and group by group on the tensors as they are stored, [outputs, inputs].
    """

    def __init__(self, path: Path, bits: int, group: int, requantised: set[str]) -> None:
        super().__init__(path)
        self.bits = bits
        self.group = group
        # GGUF names of the matrices.
        self.requantised = requantised

    def tensor(self, name: str) -> np.ndarray:
        if name in self.requantised and name not in self.loaded:
            value = super().tensor(name)
            self.loaded[name] = np.stack([
                np.concatenate([self.rounded(row[at : at + self.group]) for at in range(0, len(row), self.group)])
                for row in value
            ])
        return super().tensor(name)

    def rounded(self, entries: np.ndarray) -> np.ndarray:
        steps = (1 << self.bits) - 1
        least, most = min(entries.min(), 0.0), max(entries.max(), 0.0)
        step = float(np.float32((most - least) / steps)) or 1.0
        zero = min(max(np.rint(-least / step), 0.0), steps)
        return (np.clip(np.rint(entries / step) + zero, 0.0, steps) - zero) * step


class DraftReference(Reference):
    """The distilled draft: committed weights, and the embedding of the GGUF file."""

    NAMES = {
        "attn_norm": "attention_norm", "attn_q": "query", "attn_k": "key", "attn_v": "value",
        "attn_output": "attention_output", "ffn_norm": "feed_forward_norm", "ffn_gate": "gate",
        "ffn_up": "up", "ffn_down": "down",
    }

    def __init__(self, path: Path, committed: Path) -> None:
        super().__init__(path)
        self.stored = load_file(committed)
        self.halves = True
        self.layers = 1 + max(int(n.split(".")[1]) for n in self.stored if n.startswith("layers."))

    def tensor(self, name: str) -> np.ndarray:
        if name == "token_embd.weight":
            return super().tensor(name)
        if name not in self.loaded:
            own = "output_norm"
            if name.startswith("blk."):
                _, layer, part, _ = name.split(".")
                own = f"layers.{layer}.{self.NAMES[part]}"
            value = self.stored[own].astype(np.float64)
            if value.ndim == 2:
                scales = self.stored[f"{own}.scales"].astype(np.float64)
                value *= np.repeat(scales, value.shape[1] // scales.shape[1], axis=1)
            self.loaded[name] = value
        return self.loaded[name]


class HfReference(Reference):
    """A Llama in a Hugging Face folder."""

    NAMES = {
        "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    }

    def __init__(self, folder: Path) -> None:
        facts = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.file = safe_open(folder / "model.safetensors", framework="np")
        self.gemma, self.halves, self.window = False, True, 0
        self.tensors = set()
        self.loaded = {}
        self.layers, self.width = facts["num_hidden_layers"], facts["hidden_size"]
        self.heads, self.kv_heads = facts["num_attention_heads"], facts["num_key_value_heads"]
        self.head_dim = facts["head_dim"]
        self.epsilon, self.base = facts["rms_norm_eps"], facts["rope_theta"]

    def tensor(self, name: str) -> np.ndarray:
        if name not in self.loaded:
            own = {"token_embd.weight": "model.embed_tokens", "output_norm.weight": "model.norm"}.get(name)
            if own is None:
                _, layer, part, _ = name.split(".")
                own = f"model.layers.{layer}.{self.NAMES[part]}"
            value = self.file.get_tensor(f"{own}.weight")
            self.loaded[name] = value if value.size > LARGE else value.astype(np.float64)
        return self.loaded[name]
