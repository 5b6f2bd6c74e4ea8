"""A Llama decoder in PyTorch: batched sampling (bfloat16) and training of the draft."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from decoder_graph import DecoderConfig

MATRICES = ("query", "key", "value", "attention_output", "gate", "up", "down")
GAINS = ("attention_norm", "feed_forward_norm")


def rope(config: DecoderConfig, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the given positions, each [..., head_dim]."""
    half = config.head_dim // 2
    frequencies = config.rope_base ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = positions.to(torch.float64).unsqueeze(-1) * frequencies
    return torch.cat([angles.cos()] * 2, -1).to(dtype), torch.cat([angles.sin()] * 2, -1).to(dtype)


def rotate(value: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = value.chunk(2, -1)
    return value * cosine + torch.cat((-second, first), -1) * sine


def rms_norm(value: Tensor, gain: Tensor, epsilon: float) -> Tensor:
    """In float32, whatever the matrices are stored in."""
    value = value.float()
    return value * torch.rsqrt(value.square().mean(-1, keepdim=True) + epsilon) * gain


class Layer(nn.Module):
    """One pre-norm layer. Matrices are [outputs, inputs]."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        c = config
        shapes = {
            "query": (c.heads * c.head_dim, c.width), "key": (c.kv_heads * c.head_dim, c.width),
            "value": (c.kv_heads * c.head_dim, c.width), "attention_output": (c.width, c.heads * c.head_dim),
            "gate": (c.feed_forward, c.width), "up": (c.feed_forward, c.width), "down": (c.width, c.feed_forward),
        }
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))
        for name in GAINS:
            self.register_parameter(name, nn.Parameter(torch.empty(c.width)))

    def norm(self, value: Tensor, gain: Tensor) -> Tensor:
        return rms_norm(value, gain, self.config.norm_epsilon).to(self.query.dtype)

    def query_key_value(self, hidden: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[batch, heads, sequence, head_dim] each, rotated."""
        batch, sequence, _ = hidden.shape
        normed = self.norm(hidden, self.attention_norm)
        split = [
            F.linear(normed, matrix).view(batch, sequence, -1, self.config.head_dim).transpose(1, 2)
            for matrix in (self.query, self.key, self.value)
        ]
        return rotate(split[0], cosine, sine), rotate(split[1], cosine, sine), split[2]

    def feed_forward(self, hidden: Tensor) -> Tensor:
        normed = self.norm(hidden, self.feed_forward_norm)
        return F.linear(F.silu(F.linear(normed, self.gate)) * F.linear(normed, self.up), self.down)

    def finish(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        batch, _, sequence, _ = mixed.shape
        joined = mixed.transpose(1, 2).reshape(batch, sequence, -1)
        hidden = hidden + F.linear(joined, self.attention_output)
        return hidden + self.feed_forward(hidden)

    def forward(self, hidden: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """A whole sequence that starts at its first token; padding stands at its end."""
        query, key, value = self.query_key_value(hidden, cosine, sine)
        group = self.config.heads // self.config.kv_heads
        key, value = (part.repeat_interleave(group, 1) for part in (key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.finish(hidden, mixed)


class Decoder(nn.Module):
    """Layers and the output norm; embedding and head are the target's and stay outside."""

    def __init__(self, config: DecoderConfig, layers: int) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList(Layer(config) for _ in range(layers))
        self.output_norm = nn.Parameter(torch.empty(config.width))

    def load(self, weights: dict, sources: list[int]) -> None:
        """Copies source layers out of weights named as in `decoder_graph`."""
        with torch.no_grad():
            for layer, source in zip(self.layers, sources, strict=True):
                for name in MATRICES:
                    value = torch.from_numpy(weights[f"layers.{source}.{name}"].copy())
                    getattr(layer, name).copy_(value.T)
                for name in GAINS:
                    getattr(layer, name).copy_(torch.from_numpy(weights[f"layers.{source}.{name}"].copy()))
            self.output_norm.copy_(torch.from_numpy(weights["output_norm"].copy()))

    def forward(self, hidden: Tensor) -> Tensor:
        """Normed final hidden states [batch, sequence, width] of embedded tokens."""
        positions = torch.arange(hidden.shape[1])
        cosine, sine = rope(self.config, positions, hidden.dtype)
        for layer in self.layers:
            hidden = layer(hidden, cosine, sine)
        return rms_norm(hidden, self.output_norm, self.config.norm_epsilon)


def draw(logits: Tensor, temperature: Tensor, generator: torch.Generator, block: int = 128) -> Tensor:
    """One token for each row, by the inverse of the cumulative distribution.

    The cumulative sum runs over blocks of tokens first and then inside the block
    that was hit, which is several times faster than one over the vocabulary.
    """
    drawn = []
    for rows, degrees in zip(logits.split(32), temperature.split(32)):
        scaled = rows.float() / degrees[:, None]
        mass = (scaled - scaled.amax(-1, keepdim=True)).exp_().view(len(rows), -1, block)
        sums = mass.sum(-1, dtype=torch.float64).cumsum(-1)
        point = torch.rand(len(rows), 1, generator=generator, dtype=torch.float64) * sums[:, -1:]
        hit = torch.searchsorted(sums, point, right=True).clamp_(max=sums.shape[1] - 1)
        before = torch.where(hit > 0, sums.gather(1, (hit - 1).clamp(min=0)), 0.0)
        inside = mass.gather(1, hit[..., None].expand(-1, -1, block)).squeeze(1).double().cumsum(-1)
        offset = torch.searchsorted(inside, point - before, right=True).clamp_(max=block - 1)
        drawn.append((hit * block + offset).squeeze(1))
    return torch.cat(drawn)


@torch.no_grad()
def sample(
    model: Decoder, embedding: Tensor, prompts: list[list[int]], temperature: Tensor, new_tokens: int, end: int,
    generator: torch.Generator, taps: tuple[int, ...] = (), stored: torch.dtype = torch.float16,
) -> list[tuple[list[int], Tensor]]:
    """Samples an answer to each prompt; returns its tokens and the target's hidden states.

    Row t of the hidden states [answer, width] gives the logits (through the head)
    from which token t of the answer was drawn. Prompts are padded on the left.
    Finished sequences leave the batch every 16 tokens.

    With `taps` the states are [prompt + answer - 1, taps + 1, width], of every token that was
    read: the inputs of the layers `taps`, each divided by its root mean square, then the final one.
    """
    config, dtype = model.config, embedding.dtype
    group = config.heads // config.kv_heads
    batch, longest = len(prompts), max(map(len, prompts))
    ids = torch.zeros(batch, longest, dtype=torch.long)
    real = torch.zeros(batch, longest, dtype=torch.bool)
    for row, prompt in enumerate(prompts):
        ids[row, longest - len(prompt):] = torch.tensor(prompt)
        real[row, longest - len(prompt):] = True
    positions = (real.long().cumsum(1) - 1).clamp(min=0)
    size = longest + new_tokens
    shape = (batch, config.kv_heads, size, config.head_dim)
    cache = [(torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)) for _ in model.layers]
    bias = torch.zeros(batch, 1, 1, size, dtype=dtype)
    bias[:, 0, 0, :longest].masked_fill_(~real, -1e9)
    scale = config.head_dim**-0.5

    hidden = F.embedding(ids, embedding).float()
    cosine, sine = (part.unsqueeze(1) for part in rope(config, positions, dtype))
    causal = torch.full((longest, longest), -1e9, dtype=dtype).triu(1)
    one = torch.ones(config.width)
    tapped: list[Tensor] = []
    for index, (layer, (keys, values)) in enumerate(zip(model.layers, cache)):
        if index in taps:
            tapped.append(rms_norm(hidden, one, config.norm_epsilon).to(stored))
        query, key, value = layer.query_key_value(hidden, cosine, sine)
        keys[:, :, :longest], values[:, :, :longest] = key, value
        key, value = (part.repeat_interleave(group, 1) for part in (key, value))
        mask = bias[:, :, :, :longest] + causal
        hidden = layer.finish(hidden, F.scaled_dot_product_attention(query, key, value, attn_mask=mask))
    states: list[list[Tensor]] = [[] for _ in range(batch)]
    if taps:
        final = rms_norm(hidden, model.output_norm, config.norm_epsilon).to(stored)
        read = torch.stack([*tapped, final], 2)
        for row, prompt in enumerate(prompts):
            # The last token of the prompt follows below, with the first that is drawn.
            states[row] = list(read[row, longest - len(prompt) : -1].clone())
        tapped = [part[:, -1] for part in tapped]
    hidden = hidden[:, -1:]
    positions = positions[:, -1]

    answers: list[list[int]] = [[] for _ in range(batch)]
    rows = list(range(batch))
    open_rows = torch.ones(batch, dtype=torch.bool)
    for step in range(new_tokens):
        normed = rms_norm(hidden[:, 0], model.output_norm, config.norm_epsilon).to(dtype)
        tokens = draw(F.linear(normed, embedding), temperature, generator)
        kept = normed.to(stored)
        if taps:
            kept = torch.stack([*tapped, kept], 1)
        for slot, token in enumerate(tokens.tolist()):
            if open_rows[slot]:
                answers[rows[slot]].append(token)
                states[rows[slot]].append(kept[slot])
        open_rows &= tokens != end
        if step + 1 == new_tokens or not open_rows.any():
            break
        if step % 16 == 15 and not open_rows.all():
            left = open_rows.nonzero().squeeze(1)
            rows = [rows[slot] for slot in left.tolist()]
            tokens, positions, temperature, bias = (v[left] for v in (tokens, positions, temperature, bias))
            cache = [(keys[left], values[left]) for keys, values in cache]
            open_rows = open_rows[left]
        positions = positions + 1
        place = longest + step
        hidden = F.embedding(tokens[:, None], embedding).float()
        cosine, sine = (part[:, None, None] for part in rope(config, positions, dtype))
        tapped = []
        for index, (layer, (keys, values)) in enumerate(zip(model.layers, cache)):
            if index in taps:
                tapped.append(rms_norm(hidden[:, 0], one, config.norm_epsilon).to(stored))
            query, key, value = layer.query_key_value(hidden, cosine, sine)
            keys[:, :, place : place + 1], values[:, :, place : place + 1] = key, value
            # Three dimensions: bmm reads a slice of the cache where it lies.
            query = (query * scale).reshape(-1, group, config.head_dim)
            past_keys, past_values = (part.flatten(0, 1)[:, : place + 1] for part in (keys, values))
            scores = torch.bmm(query, past_keys.transpose(1, 2)).view(len(rows), config.kv_heads, group, -1)
            weights = torch.softmax(scores + bias[..., : place + 1], -1)
            mixed = torch.bmm(weights.flatten(0, 1), past_values)
            hidden = layer.finish(hidden, mixed.reshape(len(rows), config.heads, 1, config.head_dim))
    return [(answer, torch.stack(state)) for answer, state in zip(answers, states)]
