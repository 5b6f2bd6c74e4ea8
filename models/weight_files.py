"""Weights of an ONNX graph in files beside it, each tensor on a page boundary.

ONNX Runtime maps such files into memory, so that graphs which name the same file
(target and drafts share the embedding) share its pages too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

PAGE = 4096


def write_weights(path: Path, weights: Mapping[str, np.ndarray]) -> dict[str, TensorProto]:
    """Writes tensors to one file, bytes as they are and all others as float32; returns the
    initialisers that point into it."""
    tensors = {}
    temporary = path.with_name(path.name + ".part")
    with temporary.open("wb") as file:
        for name, value in weights.items():
            offset = file.tell() + (-file.tell()) % PAGE
            file.seek(offset)
            kind, stored = (TensorProto.UINT8, "u1") if value.dtype == np.uint8 else (TensorProto.FLOAT, "<f4")
            data = np.ascontiguousarray(value, dtype=stored).tobytes()
            file.write(data)
            tensors[name] = _external(name, kind, value.shape, path.name, offset, len(data))
    os.replace(temporary, path)
    return tensors


def _external(
    name: str, kind: int, shape: Iterable[int], location: str, offset: int, length: int
) -> TensorProto:
    tensor = TensorProto()
    tensor.name = name
    tensor.data_type = kind
    tensor.dims.extend(shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
    return tensor


def initialisers(path: Path) -> dict[str, TensorProto]:
    """The initialisers of a built graph, external ones still external."""
    if not path.exists():
        raise SystemExit(f"{path.name}: not built yet; run `models/build target` first")
    model = onnx.load(path, load_external_data=False)
    return {tensor.name: tensor for tensor in model.graph.initializer}


def write_graph(model: ModelProto, path: Path) -> None:
    """Writes the graph to a temporary name, then renames."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(model.SerializeToString())
    os.replace(temporary, path)
