"""The command `specgap`: the whole command line of the library, without a Rust toolchain."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> int:
    """Runs the command line and returns its exit code."""
    # The command does its own work; Python's handler would wait until it is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.main(["specgap", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
