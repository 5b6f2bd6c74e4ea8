"""The command `specgap`: the whole command line of the library, without a Rust toolchain."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path

from . import _native

#: Variables that say where ONNX Runtime is, which `specgap capture` loads.
_LIBRARY = ("SPECGAP_ONNXRUNTIME", "ORT_DYLIB_PATH")


def _onnx_runtime() -> Path | None:
    """The folder of the library in the package onnxruntime, if that is installed. The package is
    found and not imported."""
    spec = importlib.util.find_spec("onnxruntime")
    for home in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(home) / "capi"
        patterns = ("libonnxruntime.so*", "libonnxruntime*.dylib", "onnxruntime.dll")
        if any(next(folder.glob(pattern), None) is not None for pattern in patterns):
            return folder
    return None


def main() -> int:
    """Runs the command line and returns its exit code."""
    # The command does its own work; Python's handler would wait until it is done. Where SIGINT is
    # ignored, as in what a shell runs in the background, there is no such handler, and it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not any(name in os.environ for name in _LIBRARY):
        library = _onnx_runtime()
        if library is not None:
            os.environ[_LIBRARY[0]] = str(library)
    return _native.main(["specgap", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
