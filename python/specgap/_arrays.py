"""Arrays of any library as NumPy arrays that share their memory, and the names of their types."""

from __future__ import annotations

import functools
import hashlib
import operator
import os
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ._errors import Refused

#: Rows: a NumPy array, a torch tensor, or anything that NumPy takes for an array.
ArrayLike: TypeAlias = Any

Typed: TypeAlias = tuple[NDArray[Any], str]

_ROWS = ("float16", "bfloat16", "float32", "float64")


def _is_torch(array: object) -> bool:
    return type(array).__module__.partition(".")[0] == "torch"


def _of_torch(array: Any, name: str) -> Typed:
    """A tensor's memory, where it is the processor's; bfloat16 as a view of its bits."""
    tensor = array.detach()
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_nested:
        raise TypeError(
            f"{name}: is a nested tensor; give rows of one length, {name}.to_padded_tensor(0.0) of "
            "probabilities, or with -float('inf') of logits"
        )
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"{name}: is a sparse tensor; give {name}.to_dense()")
    if dtype.startswith(("float8", "float4")):
        raise TypeError(f"{name}: has entries of type {dtype}; give {name}.float()")
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        import torch

        bits: NDArray[Any] = tensor.view(torch.int16).numpy().view(np.uint16)
        return bits, "bfloat16"
    own: NDArray[Any] = tensor.numpy()
    return own, own.dtype.name


@functools.cache
def _dtype_name(dtype: np.dtype[Any]) -> str:
    # NumPy puts it together anew at every call, which a small row feels.
    return dtype.name


def _masked(name: str) -> TypeError:
    return TypeError(
        f"{name}: is a masked array, whose mask would be ignored; say what masked entries are: "
        f"{name}.filled(0) of probabilities, {name}.filled(-numpy.inf) of logits, "
        f"{name}.filled(-1) of tokens"
    )


def _of_any(array: Any, name: str, dtype: Any = None) -> NDArray[Any]:
    """What NumPy takes for an array; lists that are none are told which row is to blame."""
    try:
        own: NDArray[Any] = np.asarray(array, dtype=dtype)
    except ValueError as error:
        lengths = [len(one) if hasattr(one, "__len__") else None for one in array]
        other = next((at for at, one in enumerate(lengths) if one != lengths[0]), None)
        if other is None:
            raise Refused(f"{name}: is no array: {error}; give lists of numbers", name) from None
        raise Refused(
            f"{name}: row {other} has {lengths[other] or 'no'} entries and row 0 has "
            f"{lengths[0] or 'none'}; give rows of one length, filled with 0 (probabilities), -inf "
            "(logits) or -1 (tokens); Log.of_lists takes lists of tokens",
            name,
            other,
        ) from None
    return own


def typed(array: ArrayLike, name: str) -> Typed:
    """An array and the name of its type. Nothing is copied that lies in this process's memory."""
    if np.ma.isMaskedArray(array):
        raise _masked(name)
    if _is_torch(array):
        own, dtype = _of_torch(array, name)
    else:
        own = _of_any(array, name)
        dtype = _dtype_name(own.dtype)
        if dtype == "bfloat16":  # of ml_dtypes, as JAX has it
            own = own.view(np.uint16)
    if not own.dtype.isnative:
        raise TypeError(
            f"{name}: its entries are in the other byte order; "
            f"give {name}.astype({name}.dtype.newbyteorder('='))"
        )
    return own, dtype


def rows(array: ArrayLike, name: str) -> Typed:
    """A matrix of rows, of floating point; a single row becomes a matrix of one."""
    return row_or_rows(array, name)[0]


def row_or_rows(array: ArrayLike, name: str) -> tuple[Typed, bool]:
    """The same, and whether it was a single row."""
    if isinstance(array, (list, tuple)):
        if any(isinstance(row, np.ma.MaskedArray) for row in array):
            raise _masked(name)
        # Python's own numbers are float64, whole ones too.
        array = _of_any(array, name, np.float64)
    own, dtype = typed(array, name)
    if dtype not in _ROWS:
        if isinstance(array, (str, os.PathLike)) or hasattr(array, "engine_records"):
            raise TypeError(
                f"{name}: is a log, or the path of one, and here rows are wanted, arrays [V] or "
                "[N, V]; gap(log), length(log) and evaluate(rule, log, n) take logs"
            )
        raise TypeError(
            f"{name}: has entries of type {dtype}; rows are float16, bfloat16, float32 or float64"
        )
    single = own.ndim == 1
    if single:
        own = own[None, :]
    if own.ndim != 2:
        raise Refused(
            f"{name}: has {own.ndim} axes, of shape {own.shape}; give one row [V] or rows [N, V], "
            f"such as {name}.reshape(-1, {own.shape[-1] if own.shape else 'V'})",
            name,
        )
    if own.shape[1] == 0:
        raise Refused(f"{name}: its rows have no entries; give one for each token", name)
    return (own, dtype), single


def single(array: ArrayLike, name: str) -> NDArray[np.float64]:
    """One row, in double precision."""
    own, dtype = rows(array, name)
    if own.shape[0] != 1:
        raise Refused(f"{name}: has {own.shape[0]} rows; give one", name)
    row: NDArray[np.float64] = widened(own, dtype)[0]
    return row


def widened(own: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """The same in double precision; of bfloat16, its bits are given."""
    if dtype == "bfloat16":
        own = (own.astype(np.uint32) << np.uint32(16)).view(np.float32)
    double: NDArray[np.float64] = own.astype(np.float64)
    return double


def as_double(array: ArrayLike, name: str) -> NDArray[np.float64]:
    """Rows in double precision; a copy."""
    return widened(*rows(array, name))


def as_single(array: ArrayLike, name: str) -> NDArray[np.float32]:
    """One row in single precision, contiguous."""
    own, dtype = rows(array, name)
    if own.shape[0] != 1:
        raise Refused(f"{name}: has {own.shape[0]} rows; give one", name)
    if dtype == "bfloat16":
        own = widened(own, dtype)
    return np.ascontiguousarray(own[0], dtype=np.float32)


def _told_apart(prompt_id: Any) -> Any:
    """Strings as numbers, the same in every process."""
    if hasattr(prompt_id, "is_cuda") or isinstance(prompt_id, range):
        return prompt_id
    names = np.asarray(prompt_id)
    if names.dtype.kind not in "UO" or not all(isinstance(one, str) for one in names.flat):
        return prompt_id
    hashes = [hashlib.blake2b(one.encode(), digest_size=8).digest() for one in names.flat]
    found = [int.from_bytes(one, "little") >> 1 for one in hashes]
    return np.array(found, dtype=np.int64).reshape(names.shape)


def integers(array: ArrayLike, name: str) -> NDArray[Any]:
    """Whole numbers, as int32 or int64; of prompts strings too, told apart by 63 bits of a hash."""
    own, dtype = typed(_told_apart(array) if name == "prompt_id" else array, name)
    if own.dtype.kind not in "iu":
        raise TypeError(f"{name}: has entries of type {dtype}; give whole numbers")
    return own if dtype in ("int32", "int64") else own.astype(np.int64)


#: The largest count that is taken: that of a C int.
_MOST = 2**31 - 1


def count(value: object, name: str, what: str) -> int:
    """A whole number of at least 1."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{name}: give {what} as a whole number, such as 2; this is {type(value).__name__}"
        ) from None
    if number < 1:
        raise Refused(f"{name} is {number}; {what} are at least 1")
    if number > _MOST:
        raise Refused(f"{name} is {number}; {what} are at most {_MOST}")
    return number


def natural(value: object, name: str) -> int:
    """A whole number from 0 on, below 2^64."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name}: give a whole number; this is {value!r}") from None
    if not 0 <= number < 1 << 64:
        raise Refused(f"{name} is {number}; give a whole number from 0 on, below 2^64")
    return number


def threads_of(value: object) -> int:
    """A number of threads; 0 for one a core."""
    if isinstance(value, (int, np.integer)) and value == 0 and not isinstance(value, bool):
        return 0
    return count(value, "threads", "threads")
