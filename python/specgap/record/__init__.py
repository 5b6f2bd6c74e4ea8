"""Recorders: what an engine drafts, accepts and puts out, as a log for ``gap`` and ``audit``.

- :func:`hf` records ``generate(assistant_model=..)`` of transformers while a context is open.
- :mod:`specgap.record.vllm` and :mod:`specgap.record.sglang` are plugins of these engines. They
  are installed with the wheel and do nothing unless the environment variable
  ``SPECGAP_RECORD`` names a folder for their logs, one a process.

Recording copies every row from the accelerator, so it is for measurements and not for service.
"""

from __future__ import annotations

from .hf import hf

__all__ = ["hf"]
